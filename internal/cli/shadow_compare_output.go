package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/shadow"
	"github.com/canaryctl/canaryctl/internal/trace"
)

// readContractFile returns the bytes of a contract.
func readContractFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usage(fmt.Errorf("there is no contract %s", path), fmt.Sprintf("name a file, or one of those that ship: %s", strings.Join(config.ContractNames(), ", ")))
	}
	if err != nil {
		return nil, usage(fmt.Errorf("read the contract: %w", err), "")
	}
	defer f.Close() // nothing was written
	src, err := io.ReadAll(io.LimitReader(f, config.MaxSource+1))
	if err != nil {
		return nil, usage(fmt.Errorf("read the contract: %w", err), "")
	}
	return src, nil
}

// compareSummary is what compare counts.
type compareSummary struct {
	Contracts  []string        `json:"contracts"`
	Verdict    shadow.Grade    `json:"verdict"` // the worst
	Pairs      int64           `json:"pairs"`
	Benign     int64           `json:"benign"`
	Risk       int64           `json:"risk"`
	Fatal      int64           `json:"fatal"`
	NoData     int64           `json:"no_data"`
	FatalBy    fatalLevels     `json:"fatal_by_level"`
	Violations int64           `json:"violations"` // what the breaker would count
	Bad        int64           `json:"bad"`
	BadLines   []trace.BadLine `json:"bad_lines"`
}

type fatalLevels struct {
	Structure  int64 `json:"structure"`
	Compliance int64 `json:"compliance"`
	Semantics  int64 `json:"semantics"`
}

func (s *compareSummary) add(v *shadow.Verdict) {
	s.Pairs++
	switch v.Grade {
	case shadow.Benign:
		s.Benign++
	case shadow.Risk:
		s.Risk++
	case shadow.Unjudged:
		s.NoData++
	case shadow.Fatal:
		s.Fatal++
		s.Violations++
		switch v.Level {
		case shadow.Structure:
			s.FatalBy.Structure++
		case shadow.Compliance:
			s.FatalBy.Compliance++
		case shadow.Semantics:
			s.FatalBy.Semantics++
		}
	}
}

// finish names the worst verdict. One that nothing was compared for is worse
// than benign: it is not known to be.
func (s *compareSummary) finish(in *pairReader, contracts []string) {
	s.Contracts, s.Bad, s.BadLines = contracts, in.bad, append([]trace.BadLine{}, in.badLines...)
	switch {
	case s.Fatal > 0:
		s.Verdict = shadow.Fatal
	case s.Risk > 0:
		s.Verdict = shadow.Risk
	case s.NoData > 0:
		s.Verdict = shadow.Unjudged
	}
}

// pairVerdict is one pair as it is reported.
type pairVerdict struct {
	Schema     int             `json:"schema,omitempty"` // in JSON lines
	RequestID  string          `json:"request_id"`
	File       string          `json:"file"`
	Line       int64           `json:"line"`
	Contract   string          `json:"contract"`
	Verdict    shadow.Grade    `json:"verdict"`
	Level      shadow.Level    `json:"level"`
	Similarity *float64        `json:"similarity"` // null where the fields were not compared
	Equal      *float64        `json:"equal_weight"`
	Weight     *float64        `json:"weight"`
	Reasons    []shadow.Reason `json:"reasons"`
	More       int             `json:"more_reasons"`

	judged *shadow.Verdict
}

func newPairVerdict(p *pair, c *shadow.Contract, v *shadow.Verdict) *pairVerdict {
	out := &pairVerdict{
		RequestID: p.id, File: p.file, Line: p.line, Contract: c.Name, Verdict: v.Grade, Level: v.Level,
		Reasons: append([]shadow.Reason{}, v.Reasons...), More: v.More, judged: v,
	}
	if v.Compared() {
		similarity, equal, weight := v.Similarity(), v.Equal.Float64(), v.Of.Float64()
		out.Similarity, out.Equal, out.Weight = &similarity, &equal, &weight
	}
	return out
}

// why says the verdict's ground in one line.
func (p *pairVerdict) why() string {
	var parts []string
	if p.judged.Compared() {
		parts = append(parts, fmt.Sprintf("%s/%s = %s", p.judged.Equal, p.judged.Of, strconv.FormatFloat(*p.Similarity, 'f', 3, 64)))
	}
	for _, r := range p.Reasons {
		parts = append(parts, r.String())
	}
	if p.More > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", p.More))
	}
	return strings.Join(parts, "; ")
}

// pairOutput takes verdicts as they come and holds a bounded number of them.
type pairOutput interface {
	add(*pairVerdict) error
	finish(*compareSummary) error
	drop() // gives back what was not finished
}

func newPairOutput(app *App, format string) (pairOutput, error) {
	switch format {
	case "json":
		return newPairDocument(app.Stdout)
	case "jsonl":
		return &pairLines{app: app, out: bufio.NewWriter(app.Stdout)}, nil
	}
	return &pairText{app: app}, nil
}

// pairText prints the first verdicts of each grade, for a person.
type pairText struct {
	app   *App
	shown []*pairVerdict
	of    [4]int64 // verdicts by grade
}

// shownPairs is how many pairs of a grade are shown; benign ones are few.
var shownPairs = [4]int64{shadow.Benign: 10, shadow.Risk: 20, shadow.Fatal: 20, shadow.Unjudged: 10}

func (t *pairText) add(p *pairVerdict) error {
	if t.of[p.Verdict] < shownPairs[p.Verdict] {
		t.shown = append(t.shown, p)
	}
	t.of[p.Verdict]++
	return nil
}

func (t *pairText) drop() {}

func (t *pairText) finish(s *compareSummary) error {
	out := bufio.NewWriter(t.app.Stdout)
	for _, p := range t.shown {
		id := p.RequestID
		if id == "" {
			id = fmt.Sprintf("%s:%d", p.File, p.Line)
		}
		fmt.Fprintf(out, "%-7s  %s  %s: %s\n", p.Verdict, oneLine(id), p.Level, harmless(p.why()))
	}
	for g, n := range t.of {
		if more := n - shownPairs[g]; more > 0 {
			fmt.Fprintf(out, "%-7s  and %d more; -o jsonl lists all\n", shadow.Grade(g), more)
		}
	}
	fmt.Fprintf(out, "%s: %d benign, %d risk, %d fatal", counted(int(s.Pairs), "pair"), s.Benign, s.Risk, s.Fatal)
	if s.NoData > 0 {
		fmt.Fprintf(out, ", %d without anything to compare with", s.NoData)
	}
	if s.Fatal > 0 {
		fmt.Fprintf(out, " (structure %d, compliance %d, semantics %d)", s.FatalBy.Structure, s.FatalBy.Compliance, s.FatalBy.Semantics)
	}
	fmt.Fprintln(out)
	return out.Flush()
}

// oneLine shows a name of the input in a line of text: no more than 120
// characters, and none that would end the line or turn what follows it.
func oneLine(name string) string {
	const most = 120
	n := 0
	for i := range name {
		if n++; n > most {
			name = name[:i] + "..."
			break
		}
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, name)
}

// pairLines prints one JSON object a pair, as they come.
type pairLines struct {
	app *App
	out *bufio.Writer
}

func (l *pairLines) add(p *pairVerdict) error {
	p.Schema = 1
	return encodeLine(l.out, p)
}

func (l *pairLines) drop() {}

func (l *pairLines) finish(s *compareSummary) error {
	l.app.say("%s: %d benign, %d risk, %d fatal, %d no_data", counted(int(s.Pairs), "pair"), s.Benign, s.Risk, s.Fatal, s.NoData)
	return l.out.Flush()
}

// pairDocument prints one JSON document. The summary comes first, so the pairs
// wait in a file of their own until all are judged.
type pairDocument struct {
	w     io.Writer
	spool *os.File
	buf   *bufio.Writer
	some  bool
}

func newPairDocument(w io.Writer) (*pairDocument, error) {
	f, err := os.CreateTemp("", "canaryctl-pairs-*")
	if err != nil {
		return nil, &Error{Code: ExitFailed, Err: fmt.Errorf("the pairs wait in a file of their own until all are judged: %w", err), Hint: "TMPDIR names the directory; -o jsonl needs none"}
	}
	_ = os.Remove(f.Name()) // open it stays; where that cannot be, drop removes it
	return &pairDocument{w: w, spool: f, buf: bufio.NewWriter(f)}, nil
}

func (d *pairDocument) add(p *pairVerdict) error {
	if d.some {
		d.buf.WriteByte(',') //nolint:errcheck // bufio keeps the error for Flush
	}
	d.some = true
	return encodeLine(d.buf, p)
}

func (d *pairDocument) drop() {
	d.spool.Close()
	os.Remove(d.spool.Name())
}

func (d *pairDocument) finish(s *compareSummary) error {
	if err := d.buf.Flush(); err != nil {
		return err
	}
	if _, err := d.spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	out := bufio.NewWriter(d.w)
	out.WriteString(`{"schema":1,"summary":`) //nolint:errcheck // as above
	if err := encodeLine(out, s); err != nil {
		return err
	}
	out.WriteString(`,"pairs":[`) //nolint:errcheck // as above
	if _, err := io.Copy(out, d.spool); err != nil {
		return err
	}
	out.WriteString("]}\n") //nolint:errcheck // as above
	return out.Flush()
}
