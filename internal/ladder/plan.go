// Package ladder is the only place where a release is judged: steps, gates,
// holds and the breaker together. [Decide] takes the state of a release, the
// evidence gathered since, and the time, and says what to do next; it does
// nothing itself (DESIGN section 7).
//
//	d := ladder.Decide(&plan, &st, ladder.Evidence{Windows: seen, Observed: readBack}, now)
//	if d.Write { target.Set(d.Weight) } // then read it back and show it to the next Decide
//
// It is pure: the simulator and the live driver call the same Decide, and a
// journal of evidence replayed through it yields the same decisions.
package ladder

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Step is one rung: a share of traffic, how long it is held at least, and
// what it must pass before the next.
type Step struct {
	Weight  release.Weight
	MinHold time.Duration
	MaxWait time.Duration // after so long at this step a hold becomes a notification; 0: never
	Gates   Gates
	Limits  breaker.Limits // the plan's limits with the step's own over them
}

// Gates is the set of gates of a step.
type Gates uint8

// The gates. Approval comes last, when the others have passed.
const (
	TimeGate Gates = 1 << iota
	MetricGate
	ApprovalGate
)

// Has reports whether g is in the set.
func (gs Gates) Has(g Gates) bool { return gs&g != 0 }

// Freeze is a span of wall-clock time on some days in which no step is taken
// forward. Rollback is never frozen.
type Freeze struct {
	Zone     *time.Location
	Days     [7]bool // indexed by time.Weekday, the day on which the span begins
	From, To time.Duration
	// From and To are since midnight by the wall clock; To at or before From
	// reaches into the next day.
}

// Plan is a release's rules, fixed while it runs.
type Plan struct {
	Service         string
	Steps           []Step // at least one, weights rising
	Freezes         []Freeze
	ApprovalTimeout time.Duration // approval_timeout_min
	CostBaselineUSD float64       // cost_baseline_usd: stands in for stable's mean; 0: none
	Digest          string        // of the configuration: approvals and journal name it
	Share           ShareCheck    // of the live driver; the zero value checks nothing
	Adaptive        Adaptive      // how the weight moves within a step
	Candidate       string        // release id: digest of versions.canary without its weight
}

// step returns a step of the release. A changed configuration may have fewer
// than the release has climbed: until it is accepted the last one stands in.
func (p *Plan) step(i int) *Step { return &p.Steps[min(i, len(p.Steps)-1)] }

func (p *Plan) limits(step int) *breaker.Limits { return &p.step(step).Limits }

// mostFrozen bounds how far ahead the end of a freeze is looked for: one that
// lasts longer is said to last so long.
const mostFrozen = 60 * 24 * time.Hour

// Frozen reports whether t falls into a freeze, and until when: where one begins
// as another ends, until the last of them is over.
func (p *Plan) Frozen(t time.Time) (until time.Time, frozen bool) {
	for at := t; at.Sub(t) < mostFrozen; at = until {
		end, in := p.frozenAt(at)
		if !in {
			return until, frozen
		}
		until, frozen = end, true
	}
	return until, frozen
}

// frozenAt looks at one instant: until when the freezes last that it is in.
func (p *Plan) frozenAt(t time.Time) (until time.Time, frozen bool) {
	for i := range p.Freezes {
		if end, in := p.Freezes[i].covers(t); in && end.After(until) {
			until, frozen = end, true
		}
	}
	return until, frozen
}

// covers reports whether t lies in the freeze, and until when. Where clocks go
// back a wall-clock time comes twice, and is frozen both times.
func (f *Freeze) covers(t time.Time) (end time.Time, in bool) {
	if end, in = f.coversOnce(t); in {
		return end, in
	}
	_, offset := t.In(f.Zone).Zone()
	for _, shift := range []time.Duration{time.Hour, 30 * time.Minute} {
		for _, by := range []time.Duration{shift, -shift} {
			twin := t.Add(by)
			if _, o := twin.In(f.Zone).Zone(); time.Duration(offset-o)*time.Second != by {
				continue // not the same by the wall clock
			}
			if end, in = f.coversOnce(twin); in {
				return end.Add(-by), true
			}
		}
	}
	return time.Time{}, false
}

// coversOnce looks at the span that began today and the one that began
// yesterday. A wall-clock time that a change to summer time skips is moved as
// [time.Date] does, so every day has its span.
func (f *Freeze) coversOnce(t time.Time) (end time.Time, in bool) {
	local := t.In(f.Zone)
	for back := range 2 {
		y, m, d := local.AddDate(0, 0, -back).Date()
		day := time.Date(y, m, d, 12, 0, 0, 0, f.Zone)
		if !f.Days[day.Weekday()] {
			continue
		}
		from, to := clock(y, m, d, f.From, f.Zone), clock(y, m, d, f.To, f.Zone)
		if f.To <= f.From {
			to = clock(y, m, d+1, f.To, f.Zone)
		}
		if !t.Before(from) && t.Before(to) {
			return to.UTC(), true
		}
	}
	return time.Time{}, false
}

func clock(y int, m time.Month, d int, since time.Duration, zone *time.Location) time.Time {
	return time.Date(y, m, d, int(since/time.Hour), int(since%time.Hour/time.Minute), 0, 0, zone)
}
