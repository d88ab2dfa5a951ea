package report

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

// Style says how text is drawn. The zero value is plain: no colour, 80
// columns.
type Style struct {
	Color bool
	Width int // columns; below 40 counts as 40
}

func (s Style) width() int {
	if s.Width == 0 {
		return 80
	}
	return max(s.Width, 40)
}

// paint wraps text in a colour. Nothing is said by colour alone.
func (s Style) paint(color, text string) string {
	if !s.Color || color == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

const (
	red    = "31"
	green  = "32"
	yellow = "33"
	bold   = "1"
)

// noticed is after how many minutes people saw the incident that canaryctl
// was built after; exposure is told against it.
const noticed = 43

// Text writes the simulation for a person: what happened in one line, a
// timeline, the changes, the rollback records, and what was expected.
func (s *Simulation) Text(w io.Writer, style Style) error {
	var b strings.Builder
	s.head(&b, style)
	s.timeline(&b, style)
	s.changes(&b, style)
	for i := range s.Outcome.Rollbacks {
		s.rollback(&b, style, i)
	}
	s.end(&b)
	s.expected(&b, style)
	return style.write(w, b.String())
}

func (s *Simulation) head(b *strings.Builder, style Style) {
	o := s.Outcome
	length := time.Duration(o.Ticks) * o.Span
	fmt.Fprintf(b, "%s: %s\n", style.paint(bold, plain(inScene(s.Name, s.Scene))), s.summary())
	if s.About != "" {
		fmt.Fprintf(b, "  %s\n", plain(s.About))
	}
	fmt.Fprintf(b, "  %s, %s from %s, canary %s requests", plain(s.Plan.Service), release.Minutes(length), stamp(o.Start), thousands(o.Canary))
	if o.Stable > 0 {
		fmt.Fprintf(b, ", stable %s", thousands(o.Stable))
	}
	if o.Gaps > 0 {
		fmt.Fprintf(b, ", %s without canary traffic", counted(o.Gaps, "window"))
	}
	b.WriteString("\n")
	if s.Recorded != nil {
		s.shares(b)
	}
}

// shares prints the recorded share beside the ladder's.
func (s *Simulation) shares(b *strings.Builder) {
	recorded := "unknown (no windows of stable)"
	if s.Recorded.Known {
		recorded = fmt.Sprintf("%.3g %%", s.Recorded.Share*100)
	}
	var most release.Weight
	for i := range s.Outcome.Moves {
		if w := s.Outcome.Moves[i].Weight; w.Above(most) {
			most = w
		}
	}
	how := "the windows are taken as they are"
	if s.Recorded.Thinned {
		how = "the windows are thinned to the ladder's"
	}
	fmt.Fprintf(b, "  recorded share %s; the ladder's would have been up to %s: %s\n", recorded, most, how)
}

// summary says the whole in one sentence.
func (s *Simulation) summary() string {
	o := s.Outcome
	if len(o.Rollbacks) == 0 {
		switch {
		case o.State.Stage == ladder.Completed:
			return "complete, no rollback"
		case o.State.Stage == ladder.NotStarted:
			return "not started: " + o.Last.Reason()
		}
		return fmt.Sprintf("no rollback, at %s after step %d of %d", o.Last.Weight, o.Last.Step+1, o.Last.Steps)
	}
	first := &o.Rollbacks[0]
	by := first.Finding.Signal.String()
	if first.By != "" {
		by = "a person"
	}
	text := fmt.Sprintf("rolled back at minute %d by %s at %s", first.Minute, by, first.Share)
	if n := len(o.Rollbacks); n > 1 {
		text += fmt.Sprintf(", %d times in all", n)
	}
	switch {
	case o.State.Locked():
		text += ", locked"
	case o.Last.Phase == release.Closed:
		text += fmt.Sprintf(", recovered (attempt %d)", o.Last.Attempt)
	}
	return text
}

// timeline draws breaker and share over the whole replay, one column for a
// whole number of ticks.
func (s *Simulation) timeline(b *strings.Builder, style Style) {
	o := s.Outcome
	if o.Ticks == 0 {
		return
	}
	room := style.width() - 12
	ticks := (o.Ticks + room - 1) / room // a column
	phases, shares := s.rows((o.Ticks+ticks-1)/ticks, time.Duration(ticks)*o.Span)
	fmt.Fprintf(b, "\n  breaker   %s\n  share     %s\n", colorPhases(phases, style), shares)
	fmt.Fprintf(b, "  %-9s = CLOSED  x OPEN  ? HALF_OPEN; a column is %s\n\n", "", release.Minutes(time.Duration(ticks)*o.Span))
}

// rows forms the two rows of the timeline. The worst phase of a column wins,
// so that a short trip is seen in a long replay.
func (s *Simulation) rows(columns int, per time.Duration) (phases, shares string) {
	row := []byte(strings.Repeat("=", columns))
	marks := []byte(strings.Repeat(".", columns))
	free := 0
	for _, st := range s.Outcome.Steps {
		from, to := int(st.From/per), int((st.From+st.Length-1)/per)
		for c := from; c <= min(to, columns-1); c++ {
			row[c] = worse(row[c], st.Phase)
		}
		label := strings.ReplaceAll(st.Weight.String(), " ", "")
		if at := max(from, free); at+len(label) <= min(to+1, columns) {
			copy(marks[at:], label)
			free = at + len(label) + 1
		}
	}
	return string(row), string(marks)
}

func worse(have byte, p release.Phase) byte {
	switch {
	case p == release.Open:
		return 'x'
	case p == release.HalfOpen && have != 'x':
		return '?'
	}
	return have
}

func colorPhases(row string, style Style) string {
	if !style.Color {
		return row
	}
	var b strings.Builder
	for _, c := range row {
		switch c {
		case 'x':
			b.WriteString(style.paint(red, "x"))
		case '?':
			b.WriteString(style.paint(yellow, "?"))
		default:
			b.WriteString(style.paint(green, string(c)))
		}
	}
	return b.String()
}

// shown is how many changes the text lists before it points at -o json.
const shown = 40

// changes lists what the ladder did and why; a move that a breaker event
// caused stands for both.
func (s *Simulation) changes(b *strings.Builder, style Style) {
	moves := s.Outcome.Moves
	if len(moves) == 0 {
		return
	}
	fmt.Fprintf(b, "  minute  decision        share   why\n")
	for i := range moves {
		if i == shown {
			fmt.Fprintf(b, "  ...     %d more; -o json has them all\n", len(moves)-shown)
			break
		}
		m := &moves[i]
		fmt.Fprintf(b, "  %6d  %s  %-6s  %s\n", m.Minute, style.paint(moveColor(m.Move), fmt.Sprintf("%-14s", m.Move)), strings.ReplaceAll(m.Weight.String(), " ", ""), m.Reason())
	}
}

func moveColor(m release.Move) string {
	switch m {
	case release.RollBackMove, release.Lock:
		return red
	case release.Probe, release.AwaitApproval:
		return yellow
	case release.Complete, release.Advance, release.Start:
		return green
	case release.Hold:
	}
	return ""
}

// detailed is how many rollback records the text prints in full.
const detailed = 3

func (s *Simulation) rollback(b *strings.Builder, style Style, i int) {
	if i >= detailed {
		if i == detailed {
			fmt.Fprintf(b, "\n%s; -o json has them all\n", counted(len(s.Outcome.Rollbacks)-detailed, "more rollback record"))
		}
		return
	}
	r := &s.Outcome.Rollbacks[i]
	kind := "rollback"
	if r.Escalated {
		kind = "rollback, escalated"
	}
	if r.Locked {
		kind += ", locked"
	}
	fmt.Fprintf(b, "\n%s at minute %d (%s)\n", style.paint(red, kind), r.Minute, stamp(r.T))
	if r.By != "" {
		fmt.Fprintf(b, "  person    %s\n", plain(byHand(r)))
	} else {
		fmt.Fprintf(b, "  signal    %s: %s\n", r.Finding.Signal, r.Finding)
	}
	fmt.Fprintf(b, "  share     %s, step %d of %d, attempt %d\n", r.Share, r.Step+1, len(s.Plan.Steps), r.Attempt)
	switch {
	case r.By != "":
	case r.Gate:
		fmt.Fprintf(b, "  evidence  everything judged at this step (the gate, not the breaker)\n")
	default:
		fmt.Fprintf(b, "  evidence  %s\n", windowsOf(r))
	}
	fmt.Fprintf(b, "  exposure  %s canary requests since the attempt began", thousands(r.Exposure.Requests))
	if r.SinceBad != nil {
		fmt.Fprintf(b, ", %s since the fault", thousands(r.SinceBad.Requests))
	}
	b.WriteString("\n")
	if text, ok := s.person(r); ok && i == 0 {
		fmt.Fprintf(b, "            a person notices after %d minutes: about %s\n", noticed, text)
	}
}

// windowsOf names the windows that a record rests on.
func windowsOf(r *simulate.Rollback) string {
	if r.First.Equal(r.Last) {
		return "the window of " + stamp(r.First)
	}
	return fmt.Sprintf("windows from %s to %s", stamp(r.First), stamp(r.Last))
}

// person tells how many requests the canary would have served until people
// notice, at the rate it had when it was rolled back; two digits, as it is a
// comparison and no measurement.
func (s *Simulation) person(r *simulate.Rollback) (string, bool) {
	o := s.Outcome
	from, served := s.attemptStart(r), r.Exposure.Requests
	if r.SinceBad != nil {
		from, served = o.Start.Add(time.Duration(*o.BadFrom)*time.Minute), r.SinceBad.Requests
	}
	took := r.T.Add(o.Span).Sub(from)
	if took <= 0 || took > noticed*time.Minute || served == 0 {
		return "", false // people might have been faster, or there was nothing to notice
	}
	n := float64(served) / took.Minutes() * noticed
	unit := math.Pow(10, math.Max(math.Floor(math.Log10(n))-1, 0))
	return thousands(int64(math.Round(n/unit)*unit)) + " requests", true
}

// attemptStart is when the rolled back attempt began.
func (s *Simulation) attemptStart(r *simulate.Rollback) time.Time {
	start := s.Outcome.Start
	for i := range s.Outcome.Moves {
		if m := &s.Outcome.Moves[i]; m.Move == release.Start && !m.T.After(r.T) {
			start = m.T
		}
	}
	return start
}

// end says how it stands after the last window.
func (s *Simulation) end(b *strings.Builder) {
	d := &s.Outcome.Last
	fmt.Fprintf(b, "\nat the end  breaker %s, share %s, step %d of %d: %s\n", d.Phase, d.Weight, d.Step+1, d.Steps, d.Reason())
	width := signalColumn
	for i := range d.Verdicts {
		if v := &d.Verdicts[i]; v.Looked {
			width = max(width, len(v.Finding.Signal.String()))
		}
	}
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if !v.Looked {
			continue
		}
		sign := map[release.Verdict]string{release.Pass: "+", release.Fail: "!", release.Insufficient: "?", release.NoData: "-", release.Error: "x"}[v.Verdict]
		text := "no data"
		if v.Finding.Of > 0 {
			text = v.Finding.String()
		}
		verdict := v.Verdict.String()
		if !v.Needed && v.Verdict == release.Fail {
			verdict = "would_fail" // only observed: it decides nothing
		}
		fmt.Fprintf(b, "  %s %-*s %-12s %s\n", sign, width, v.Finding.Signal, verdict, text)
	}
}

func (s *Simulation) expected(b *strings.Builder, style Style) {
	expectations(b, style, s.Expectations)
}

// expectations lists what was expected and, where it was not met, what came.
func expectations(b *strings.Builder, style Style, list []Expectation) {
	if len(list) == 0 {
		return
	}
	bad := failed(list)
	verdict := style.paint(green, "all met")
	if bad > 0 {
		verdict = style.paint(red, fmt.Sprintf("%d not met", bad))
	}
	fmt.Fprintf(b, "\nexpectations  %d, %s\n", len(list), verdict)
	for _, e := range list {
		if e.OK {
			fmt.Fprintf(b, "  ok    %s\n", e.Want)
			continue
		}
		fmt.Fprintf(b, "  %s  want  %s\n        got   %s\n", style.paint(red, "FAIL"), e.Want, e.Got)
	}
}
