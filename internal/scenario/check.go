package scenario

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

// String words when: "22", "0 to 2".
func (s span) String() string {
	if s.low == s.high {
		return strconv.Itoa(s.low)
	}
	return fmt.Sprintf("%d to %d", s.low, s.high)
}

// String words what is expected as the events are worded.
func (t transition) String() string {
	var words []string
	if !t.when.any {
		words = append(words, t.when.String())
	}
	if t.from != nil {
		words = append(words, t.from.String())
	}
	words = append(words, "->", t.to.String())
	if t.signal != nil {
		words = append(words, t.signal.String())
	}
	for _, f := range []struct {
		want *bool
		name string
	}{{t.escalated, "escalated"}, {t.locked, "locked"}} {
		if f.want != nil {
			words = append(words, word(*f.want, f.name))
		}
	}
	return strings.Join(words, " ")
}

func word(yes bool, name string) string {
	if yes {
		return name
	}
	return "not " + name
}

// eventText words an event: "45 HALF_OPEN -> OPEN probes escalated locked".
func eventText(e *simulate.Event) string {
	s := fmt.Sprintf("%d %s -> %s %s", e.Minute, e.From, e.To, e.Finding.Signal)
	if e.Escalated {
		s += " escalated"
	}
	if e.Locked {
		s += " locked"
	}
	return s
}

// maxShown bounds how many events a result shows.
const maxShown = 12

func eventsText(events []simulate.Event) string {
	if len(events) == 0 {
		return "no transition"
	}
	var texts []string
	for i := range events {
		if i == maxShown {
			texts = append(texts, fmt.Sprintf("and %d more", len(events)-i))
			break
		}
		texts = append(texts, eventText(&events[i]))
	}
	return strings.Join(texts, "; ")
}

func (t transition) meets(e *simulate.Event) bool {
	return t.when.holds(e.Minute) &&
		(t.from == nil || *t.from == e.From) && *t.to == e.To &&
		(t.signal == nil || *t.signal == e.Finding.Signal) &&
		(t.escalated == nil || *t.escalated == e.Escalated) &&
		(t.locked == nil || *t.locked == e.Locked)
}

// check looks for the transition among the events.
func (t transition) check(_ *Scenario, out *simulate.Outcome) Result {
	r := Result{Want: t.String()}
	i := slices.IndexFunc(out.Events, func(e simulate.Event) bool { return t.meets(&e) })
	if r.OK = i >= 0; r.OK {
		r.Got = eventText(&out.Events[i])
	} else {
		r.Got = eventsText(out.Events)
	}
	return r
}

// transitions is the complete list of what is expected.
type transitions []transition

func (ts transitions) check(_ *Scenario, out *simulate.Outcome) Result {
	r := Result{Want: "no transition", Got: eventsText(out.Events), OK: len(ts) == len(out.Events)}
	var texts []string
	for i, t := range ts {
		texts = append(texts, t.String())
		r.OK = r.OK && t.meets(&out.Events[i])
	}
	if len(texts) > 0 {
		r.Want = strings.Join(texts, "; ")
	}
	return r
}

// decision is what is expected of a move of the ladder.
type decision struct {
	move release.Move
	step int // from 1; 0: any
	when span
}

func (d decision) check(_ *Scenario, out *simulate.Outcome) Result {
	r := Result{Want: d.move.String()}
	if d.step > 0 {
		r.Want += fmt.Sprintf(" at step %d", d.step)
	}
	if !d.when.any {
		r.Want = d.when.String() + " " + r.Want
	}
	var others []string
	for i := range out.Moves {
		m := &out.Moves[i]
		text := fmt.Sprintf("%d %s at step %d", m.Minute, m.Move, m.Step+1)
		if m.Move == d.move && d.when.holds(m.Minute) && (d.step == 0 || d.step == m.Step+1) {
			r.Got, r.OK = text, true
			return r
		}
		others = append(others, text)
	}
	if len(others) > maxShown {
		others = append(others[:maxShown], fmt.Sprintf("and %d more", len(others)-maxShown))
	}
	r.Got = strings.Join(others, "; ")
	if len(others) == 0 {
		r.Got = "no decision"
	}
	return r
}

// exposureBelow looks at the canary's requests from the fault to the first
// read-back of 0 after it.
func exposureBelow(limit int64) func(*Scenario, *simulate.Outcome) Result {
	return func(sc *Scenario, out *simulate.Outcome) Result {
		r := Result{Want: fmt.Sprintf("fewer than %d canary requests since the fault", limit), Got: "not rolled back after the fault"}
		if out.SinceBad != nil {
			r.Got = fmt.Sprintf("%d canary requests since the fault", out.SinceBad.Requests)
			r.OK = out.SinceBad.Requests < limit
		}
		return r
	}
}

func trips(n int) string {
	if n == 1 {
		return "1 trip"
	}
	return fmt.Sprintf("%d trips", n)
}

func tripsAtLeast(n int) func(*Scenario, *simulate.Outcome) Result {
	return func(_ *Scenario, out *simulate.Outcome) Result {
		return Result{Want: "at least " + trips(n), Got: trips(len(out.Rollbacks)), OK: len(out.Rollbacks) >= n}
	}
}

func tripsBelow(n int) func(*Scenario, *simulate.Outcome) Result {
	return func(_ *Scenario, out *simulate.Outcome) Result {
		return Result{Want: "fewer than " + trips(n), Got: trips(len(out.Rollbacks)), OK: len(out.Rollbacks) < n}
	}
}

// never are states and decisions that must not come.
type never []string

func (ws never) check(_ *Scenario, out *simulate.Outcome) Result {
	r := Result{Want: "never " + strings.Join(ws, ", "), Got: "never", OK: true}
	minute := math.MaxInt
	for i := range out.Events {
		if e := &out.Events[i]; slices.Contains(ws, e.To.String()) && e.Minute < minute {
			minute, r.Got, r.OK = e.Minute, eventText(e), false
		}
	}
	for i := range out.Moves {
		if m := &out.Moves[i]; slices.Contains(ws, m.Move.String()) && m.Minute < minute {
			minute, r.Got, r.OK = m.Minute, fmt.Sprintf("%d %s at step %d", m.Minute, m.Move, m.Step+1), false
		}
	}
	return r
}

// final is where the replay is expected to end; zero fields are not looked at.
type final struct {
	state         *release.Phase
	pct           *release.Ratio
	locked        *bool
	decision, why string
	step, attempt int
}

func (f final) check(_ *Scenario, out *simulate.Outcome) Result {
	r := Result{OK: true}
	var want, got []string
	look := func(name, w, g string) {
		want, got = append(want, name+w), append(got, name+g)
		r.OK = r.OK && w == g
	}
	if f.state != nil {
		look("", f.state.String(), out.State.Breaker.Phase.String())
	}
	if f.locked != nil {
		look("", word(*f.locked, "locked"), word(out.State.Locked(), "locked"))
	}
	if f.pct != nil {
		w := out.State.Weight
		g := w.String()
		if f.pct.Compare(w.Slots, max(w.Ring, 1)) == 0 {
			g = pctText(*f.pct)
		}
		look("at ", pctText(*f.pct), g)
	}
	if f.step > 0 {
		look("step ", strconv.Itoa(f.step), strconv.Itoa(out.State.Step+1))
	}
	if f.attempt > 0 {
		look("attempt ", strconv.Itoa(f.attempt), strconv.Itoa(out.State.Attempt))
	}
	if f.decision != "" {
		look("", f.decision, out.Last.Move.String())
	}
	if f.why != "" {
		look("because of ", f.why, out.Last.Why.String())
	}
	r.Want, r.Got = "ends "+strings.Join(want, ", "), "ends "+strings.Join(got, ", ")
	return r
}

func pctText(r release.Ratio) string { return strconv.FormatFloat(r.Float64()*100, 'g', 6, 64) + " %" }

const week = 7 * 24 * time.Hour

// falseTripsBelow counts trips of a canary that is not bad yet, over the time
// in which it served.
func falseTripsBelow(limit release.Ratio) func(*Scenario, []*simulate.Outcome) Result {
	return func(_ *Scenario, outs []*simulate.Outcome) Result {
		count, healthy := 0, time.Duration(0)
		for _, out := range outs {
			n, d := out.FalseTrips()
			count, healthy = count+n, healthy+d
		}
		r := Result{Want: fmt.Sprintf("fewer than %s false trips a week over %d runs", limit, len(outs)), Got: "no canary served while healthy"}
		if healthy > 0 {
			weeks := float64(healthy) / float64(week)
			r.Got = fmt.Sprintf("%.3g false trips a week (%s in %.4g weeks) over %d runs", float64(count)/weeks, trips(count), weeks, len(outs))
			r.OK = limit.Compare(int64(count)*int64(week/time.Second), int64(healthy/time.Second)) < 0
		}
		return r
	}
}

// everyRun holds a figure of each run against a limit and shows the worst.
func everyRun(outs []*simulate.Outcome, want string, figure func(*simulate.Outcome) (text string, margin float64)) Result {
	r := Result{Want: want, OK: true}
	worst, bad := math.Inf(1), 0
	for _, out := range outs {
		text, margin := figure(out)
		if margin < 0 {
			bad++
		}
		if margin < worst {
			worst, r.Got = margin, text
		}
	}
	r.Got = fmt.Sprintf("%s in the worst of %d runs", r.Got, len(outs))
	if bad > 0 {
		r.OK = false
		r.Got += fmt.Sprintf(", %d of them past it", bad)
	}
	return r
}

func everyRunTrips(n int) func(*Scenario, []*simulate.Outcome) Result {
	return func(_ *Scenario, outs []*simulate.Outcome) Result {
		return everyRun(outs, fmt.Sprintf("at least %s in every run", trips(n)), func(out *simulate.Outcome) (string, float64) {
			return trips(len(out.Rollbacks)), float64(len(out.Rollbacks) - n)
		})
	}
}

func everyExposureBelow(n int64) func(*Scenario, []*simulate.Outcome) Result {
	return func(_ *Scenario, outs []*simulate.Outcome) Result {
		return everyRun(outs, fmt.Sprintf("fewer than %d canary requests since the fault in every run", n), func(out *simulate.Outcome) (string, float64) {
			if out.SinceBad == nil {
				return "not rolled back after the fault", math.Inf(-1)
			}
			return fmt.Sprintf("%d canary requests since the fault", out.SinceBad.Requests), float64(n - 1 - out.SinceBad.Requests)
		})
	}
}

func everyDelayWithin(minutes int) func(*Scenario, []*simulate.Outcome) Result {
	return func(_ *Scenario, outs []*simulate.Outcome) Result {
		limit := time.Duration(minutes) * time.Minute
		return everyRun(outs, fmt.Sprintf("rolled back within %s of the fault in every run", release.Minutes(limit)), func(out *simulate.Outcome) (string, float64) {
			if out.Delay == nil {
				return "not rolled back after the fault", math.Inf(-1)
			}
			return "rolled back after " + release.Minutes(*out.Delay), (limit - *out.Delay).Minutes()
		})
	}
}
