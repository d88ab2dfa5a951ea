package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/canaryctl/canaryctl/internal/diagnose"
	"github.com/canaryctl/canaryctl/internal/trace"
)

// Diagnosis is what the logs of throttled calls say, and how they were read.
type Diagnosis struct {
	Files     []string
	Bad       int64 // lines that cannot be read
	BadLines  []trace.BadLine
	Diagnosis *diagnose.Diagnosis
}

// DiagnosisJSON is the JSON form of a Diagnosis.
type DiagnosisJSON struct {
	Schema   int             `json:"schema"`
	Files    []string        `json:"files"`
	Bad      int64           `json:"bad"`
	BadLines []trace.BadLine `json:"bad_lines"`
	// Verdicts are the rules of the table that hold, the one to follow first in
	// front.
	Verdicts []diagnose.Rule `json:"verdicts"`
	*diagnose.Diagnosis
}

// JSON returns the diagnosis's document.
func (d *Diagnosis) JSON() DiagnosisJSON {
	doc := DiagnosisJSON{
		Schema: schemaVersion, Files: append([]string{}, d.Files...), Bad: d.Bad, BadLines: append([]trace.BadLine{}, d.BadLines...),
		Verdicts: []diagnose.Rule{}, Diagnosis: d.Diagnosis,
	}
	for _, r := range d.Diagnosis.Table {
		if r.Holds == diagnose.Yes {
			doc.Verdicts = append(doc.Verdicts, r.Rule)
		}
	}
	return doc
}

// Text writes the diagnosis for a person: what to do first, then the figures.
func (d *Diagnosis) Text(w io.Writer, style Style) error {
	var b strings.Builder
	d.headline(&b, style)
	d.verdicts(&b, style)
	b.WriteString("\nfigures\n")
	d.refusals(&b)
	d.retries(&b)
	d.timeouts(&b)
	d.lanes(&b)
	d.inFlight(&b)
	d.unsaid(&b)
	return style.write(w, b.String())
}

func (d *Diagnosis) headline(b *strings.Builder, style Style) {
	x := d.Diagnosis
	fmt.Fprintf(b, "%s: %s", style.paint(bold, "diagnose"), counted(int(x.Attempts), "attempt"))
	if x.Requests != nil {
		fmt.Fprintf(b, " of %s", counted(int(*x.Requests), "request"))
	}
	if x.First != nil {
		fmt.Fprintf(b, ", %s to %s", stamp(*x.First), stamp(*x.Last))
	}
	b.WriteString("\n")
}

// verdicts lists the rules that hold and those nobody can tell.
func (d *Diagnosis) verdicts(b *strings.Builder, style Style) {
	b.WriteString("\nwhat to do\n")
	n := 0
	for _, r := range d.Diagnosis.Table {
		if r.Holds != diagnose.Yes {
			continue
		}
		n++
		fmt.Fprintf(b, "  %d. %s: %s\n     %s: %s\n", n, style.paint(bold, string(r.Rule)), r.Advice, r.When, evidence(r.Evidence))
	}
	if d.Diagnosis.Uncovered != "" {
		n++
		fmt.Fprintf(b, "  not covered by the table: %s\n", d.Diagnosis.Uncovered)
	}
	if n == 0 {
		b.WriteString("  nothing: no rule of the table holds\n")
	}
	for _, r := range d.Diagnosis.Table {
		if r.Holds == diagnose.NoData {
			fmt.Fprintf(b, "  no data for %s (%s): the log has no %s\n", r.Rule, r.When, r.Missing)
		}
	}
}

// evidence words the figures that a rule rests on.
func evidence(list []diagnose.Evidence) string {
	texts := make([]string, len(list))
	for i, e := range list {
		name := strings.ReplaceAll(e.Figure, "_", " ")
		if e.Figure == "rate_limited" {
			name = "429"
		}
		switch {
		case e.Figure == "amplification":
			texts[i] = fmt.Sprintf("%s %s (%s for %s)", name, figure(e.Value), thousands(e.Count), thousands(e.Of))
		case e.Of > 0:
			texts[i] = fmt.Sprintf("%s %s", name, portion(diagnose.Share{Count: e.Count, Of: e.Of}))
		default:
			texts[i] = fmt.Sprintf("%s %s", name, figure(e.Value))
		}
	}
	return strings.Join(texts, ", ")
}

// portion words a share with its counts.
func portion(s diagnose.Share) string {
	if !s.Known() {
		return "no data"
	}
	return fmt.Sprintf("%s (%s of %s)", fixed(100*s.Float64(), 2)+" %", thousands(s.Count), thousands(s.Of))
}

func entry(b *strings.Builder, name, format string, args ...any) {
	fmt.Fprintf(b, "  %-16s %s\n", name, fmt.Sprintf(format, args...))
}

func (d *Diagnosis) refusals(b *strings.Builder) {
	x := d.Diagnosis
	text := portion(x.RateLimited)
	if x.Sent != x.RateLimited {
		text += "; without what our own breaker refused " + portion(x.Sent)
	}
	entry(b, "429", "%s", text)
	if x.Failing.Count > 0 {
		entry(b, "failed otherwise", "%s", portion(x.Failing))
	}
	entry(b, "refused by", "upstream %s, own breaker %s, nobody knows %s", thousands(x.Refusals.Upstream), thousands(x.Refusals.OwnBreaker), thousands(x.Refusals.Unknown))
	if x.Answered != nil {
		entry(b, "requests", "answered %s", portion(diagnose.Share{Count: *x.Answered, Of: *x.Requests}))
	}
	texts := []string{}
	for _, s := range x.Statuses {
		name := fmt.Sprint(s.Status)
		if s.Status == 0 {
			name = "none"
		}
		texts = append(texts, name+": "+thousands(s.Count))
	}
	if len(texts) > 0 {
		entry(b, "statuses", "%s", strings.Join(texts, ", "))
	}
}

func (d *Diagnosis) retries(b *strings.Builder) {
	r := &d.Diagnosis.Retries
	if r.Largest == 0 {
		entry(b, "retries", "no data: the log has neither attempt nor trace_id")
		return
	}
	if r.Amplification == nil {
		entry(b, "amplification", "none: no 429")
	} else {
		entry(b, "amplification", "%s (sum of attempt - 1: %s, for %s of 429); %s retries for each 429",
			fixed(*r.Amplification, 2), thousands(r.Extra), thousands(r.RateLimited), fixed(*r.PerRateLimit, 2))
	}
	entry(b, "attempts", "first %s, second %s, third %s, later %s, largest %d", thousands(r.First), thousands(r.Second), thousands(r.Third.Count), thousands(r.Later), r.Largest)
	entry(b, "third attempts", "%s of first attempts", portion(r.Third))
	if r.TooSoon.Known() {
		entry(b, "too soon", "%s of retries came before Retry-After was over", portion(r.TooSoon))
	}
	if r.Vain.Count > 0 {
		entry(b, "in vain", "%s of retries were of what no retry mends", portion(r.Vain))
	}
}

func (d *Diagnosis) timeouts(b *strings.Builder) {
	x := &d.Diagnosis.Timeouts
	text := "read " + portion(x.Read)
	if x.WithoutRecord.Count > 0 {
		text += ", without an upstream id " + thousands(x.WithoutRecord.Count)
	}
	if x.MedianMS != nil {
		text += fmt.Sprintf(", half of those within %s s", fixed(*x.MedianMS/1000, 1))
	}
	entry(b, "time-outs", "%s; to connect or write %s, for a place %s", text, thousands(x.Other), thousands(x.Pool))
	if c := d.Diagnosis.Breaker; c.Closed+c.Open+c.HalfOpen > 0 {
		entry(b, "breaker", "opened %s, %s, opened again within a minute of a recovery %s",
			counted(int(c.Opened), "time"), counted(int(c.Failed), "failed probe round"), counted(int(c.Soon), "time"))
	}
}

func (d *Diagnosis) lanes(b *strings.Builder) {
	x := d.Diagnosis
	if !x.Short.RateLimited.Known() && !x.Long.RateLimited.Known() {
		entry(b, "prompts", "no data: the log has no prompt_tokens")
		return
	}
	entry(b, "short prompts", "429 %s, time-outs %s", portion(x.Short.RateLimited), thousands(x.Short.Timeouts))
	entry(b, "long prompts", "429 %s, time-outs %s; over 32,000 tokens", portion(x.Long.RateLimited), thousands(x.Long.Timeouts))
	if x.Unsized > 0 {
		entry(b, "unsized prompts", "%s", counted(int(x.Unsized), "attempt"))
	}
}

func (d *Diagnosis) inFlight(b *strings.Builder) {
	x := d.Diagnosis
	if len(x.InFlight) == 0 {
		entry(b, "in flight", "no data: the log has no inflight")
		return
	}
	for i, k := range x.InFlight {
		name := ""
		if i == 0 {
			name = "in flight"
		}
		entry(b, name, "%9s: 429 %s", fmt.Sprintf("%d-%d", k.From, k.To), portion(k.RateLimited))
	}
	if x.Steady != nil {
		entry(b, "", "429 pass 2 %% above %d in flight", *x.Steady)
	}
}

// unsaid ends with what the log leaves open.
func (d *Diagnosis) unsaid(b *strings.Builder) {
	for i, n := range d.Diagnosis.Notes {
		if i == 0 {
			b.WriteString("\nnotes\n")
		}
		fmt.Fprintf(b, "  %s\n", plain(n))
	}
}
