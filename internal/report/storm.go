package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/canaryctl/canaryctl/internal/simulate"
)

// Storm is what became of clients in one storm, with what was expected of it.
type Storm struct {
	Name         string
	About        string // one line; may be empty
	Seconds      int
	Seed         uint64
	Faults       bool // there is something to recover from
	Outcomes     []*simulate.StormOutcome
	Expectations []Expectation
}

// StormJSON is the JSON form of a Storm.
type StormJSON struct {
	Schema       int               `json:"schema"`
	Scenario     string            `json:"scenario"`
	Seconds      int               `json:"seconds"`
	Seed         uint64            `json:"seed"`
	Clients      []stormClientJSON `json:"clients"`
	Expectations []Expectation     `json:"expectations"`
}

type stormClientJSON struct {
	*simulate.StormOutcome
	Requests      int64    `json:"requests"`
	Answered      int64    `json:"answered"`
	Load          *float64 `json:"calls_per_request"` // null: no requests
	Amplification *float64 `json:"amplification"`     // null: no 429
}

// JSON returns the document.
func (s *Storm) JSON() StormJSON {
	doc := StormJSON{Schema: schemaVersion, Scenario: s.Name, Seconds: s.Seconds, Seed: s.Seed, Clients: []stormClientJSON{}, Expectations: s.Expectations}
	for _, o := range s.Outcomes {
		doc.Clients = append(doc.Clients, stormClientJSON{
			StormOutcome: o, Requests: o.Requests(), Answered: o.Answered(), Load: quotient(o.Attempts, o.Requests()), Amplification: quotient(o.Extra, o.RateLimited),
		})
	}
	if doc.Expectations == nil {
		doc.Expectations = []Expectation{}
	}
	return doc
}

// quotient is nil of nothing.
func quotient(count, of int64) *float64 {
	if of == 0 {
		return nil
	}
	return new(float64(count) / float64(of))
}

// stormColumns are the columns of the table of clients.
var stormColumns = []struct {
	head string
	cell func(s *Storm, o *simulate.StormOutcome) string
}{
	{"calls", func(_ *Storm, o *simulate.StormOutcome) string { return thousands(o.Attempts) }},
	{"a request", func(_ *Storm, o *simulate.StormOutcome) string {
		return figureOr(quotient(o.Attempts, o.Requests()), 2)
	}},
	{"429", func(_ *Storm, o *simulate.StormOutcome) string { return stormShare(o.RateLimited, o.Attempts) }},
	{"amplif.", func(_ *Storm, o *simulate.StormOutcome) string { return figureOr(quotient(o.Extra, o.RateLimited), 2) }},
	{"answered", func(_ *Storm, o *simulate.StormOutcome) string { return stormShare(o.Answered(), o.Requests()) }},
	{"short", func(_ *Storm, o *simulate.StormOutcome) string { return stormShare(o.Short.Answered, o.Short.Requests) }},
	{"long", func(_ *Storm, o *simulate.StormOutcome) string { return stormShare(o.Long.Answered, o.Long.Requests) }},
	{"recovered", (*Storm).recovered},
}

func stormShare(count, of int64) string {
	if of == 0 {
		return "-"
	}
	tenths := (2000*count + of) / (2 * of) // of a percent
	if tenths == 1000 && count < of {
		tenths-- // nearly all is not all
	}
	return fixed(float64(tenths)/10, 1) + " %"
}

func figureOr(v *float64, n int) string {
	if v == nil {
		return "-"
	}
	return fixed(*v, n)
}

func (s *Storm) recovered(o *simulate.StormOutcome) string {
	switch {
	case !s.Faults:
		return "-"
	case o.RecoveredS == nil:
		return "never"
	}
	return fixed(*o.RecoveredS, 0) + " s"
}

// Text writes the storm for a person: a row and a chart for each client.
func (s *Storm) Text(w io.Writer, style Style) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s of requests, seed %d\n", style.paint(bold, plain(s.Name)), counted(s.Seconds, "second"), s.Seed)
	if s.About != "" {
		fmt.Fprintf(&b, "  %s\n", plain(s.About))
	}
	b.WriteString("\n")
	s.table(&b)
	s.charts(&b)
	s.details(&b)
	expectations(&b, style, s.Expectations)
	return style.write(w, b.String())
}

func (s *Storm) nameWidth() int {
	width := len("client")
	for _, o := range s.Outcomes {
		width = max(width, len([]rune(plain(o.Client))))
	}
	return width
}

func (s *Storm) table(b *strings.Builder) {
	width := s.nameWidth()
	fmt.Fprintf(b, "  %-*s", width, "client")
	for _, c := range stormColumns {
		fmt.Fprintf(b, " %9s", c.head)
	}
	b.WriteString("\n")
	for _, o := range s.Outcomes {
		fmt.Fprintf(b, "  %-*s", width, plain(o.Client))
		for _, c := range stormColumns {
			fmt.Fprintf(b, " %9s", c.cell(s, o))
		}
		b.WriteString("\n")
	}
}

// charts draw, span by span, how much of what arrived was answered.
func (s *Storm) charts(b *strings.Builder) {
	if len(s.Outcomes) == 0 {
		return
	}
	width := s.nameWidth()
	per := (len(s.Outcomes[0].Buckets) + 59) / 60 // spans a column
	b.WriteString("\n")
	for _, o := range s.Outcomes {
		fmt.Fprintf(b, "  %-*s %s\n", width, plain(o.Client), answeredRow(o.Buckets, max(per, 1)))
	}
	fmt.Fprintf(b, "  %-*s answered of what arrived: = 98 %% and more, + half, x less, . nobody came; a column is %d s\n", width, "", max(per, 1)*simulate.StormBucketSeconds)
}

func answeredRow(buckets []simulate.StormBucket, per int) string {
	var row strings.Builder
	for i := 0; i < len(buckets); i += per {
		arrived, answered := int64(0), int64(0)
		for _, k := range buckets[i:min(i+per, len(buckets))] {
			arrived, answered = arrived+k.Arrived, answered+k.Answered
		}
		switch {
		case arrived == 0:
			row.WriteByte('.')
		case 100*answered >= 98*arrived:
			row.WriteByte('=')
		case 2*answered >= arrived:
			row.WriteByte('+')
		default:
			row.WriteByte('x')
		}
	}
	return row.String()
}

// details say for each client what its requests failed of and how long the
// others took.
func (s *Storm) details(b *strings.Builder) {
	b.WriteString("\n")
	for _, o := range s.Outcomes {
		fmt.Fprintf(b, "  %s: failed: %s after the last attempt, %s at the own breaker, %s at the gate; %s\n", plain(o.Client),
			thousands(o.NoRetry), thousands(o.ByBreaker), thousands(o.ByGate), counted(int(o.Timeouts), "time-out"))
		fmt.Fprintf(b, "    breaker opened %s", counted(int(o.Opened), "time"))
		if o.OpenedS != nil {
			fmt.Fprintf(b, ", first %s s after the fault began", fixed(*o.OpenedS, 1))
		}
		for _, l := range []struct {
			name string
			lane *simulate.StormLane
		}{{"short", &o.Short}, {"long", &o.Long}} {
			if l.lane.MedianMS != nil {
				fmt.Fprintf(b, "; %s answered in %s s, p99 %s s", l.name, fixed(*l.lane.MedianMS/1000, 2), fixed(*l.lane.P99MS/1000, 2))
			}
		}
		b.WriteString("\n")
	}
}
