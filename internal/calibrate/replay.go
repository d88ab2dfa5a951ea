package calibrate

import (
	"fmt"
	"math/big"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// ReplayOptions says what to replay. The zero value of a field is its default.
type ReplayOptions struct {
	// Tick is the live window. Default a minute.
	Tick time.Duration
	// Block is the length of the blocks that weeks are drawn in; it divides a
	// day. Default 6 hours.
	Block time.Duration
	// Zone is whose clock the blocks keep. Default UTC.
	Zone *time.Location
	// ArmShare is which share of the whole traffic the baseline's windows are:
	// a step above it gets all of them. Default 1.
	ArmShare float64
	// CostCV is the coefficient of variation of a single request's cost. 0: the
	// cost is not replayed.
	CostCV float64
	// Drops of the solve rate to inject, in percentage points. The last one is
	// the grid's.
	Drops []release.Ratio
	// GridStep is the step whose thresholds are tried out; below 0 none is.
	GridStep int
	// PerWeek is how many false trips a week the recommended threshold may have.
	PerWeek float64
	// TolerableDropPP is the least recommended threshold, in percentage points.
	TolerableDropPP release.Ratio
	// PlainDropPP and PlainMinSamples are the plain rule's, which is tried at
	// GridStep too. A zero PlainDropPP: it is not.
	PlainDropPP     release.Ratio
	PlainMinSamples int64
}

func (o ReplayOptions) withDefaults() ReplayOptions {
	if o.Tick == 0 {
		o.Tick = time.Minute
	}
	if o.Block == 0 {
		o.Block = 6 * time.Hour
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	if o.ArmShare == 0 {
		o.ArmShare = 1
	}
	return o
}

// Replay runs the breaker and the ladder that will guard a release over weeks
// resampled from the baseline: blocks that keep their place in the day, each
// from a random day, weekdays and weekends apart (the block bootstrap of
// Kuensch 1989, with the clock kept). A step sees its share of every minute,
// drawn request by request, which is exact: thinned counts are binomial.
//
// All weeks are drawn from one baseline, whose own luck is in each of them: at
// a share of 1 a replay is the baseline's blocks in another order. The p99 of a
// few requests cannot be drawn from a window's, so of the latency only the
// count form is replayed; the cost only where CostCV says how much single costs
// scatter.
//
// It is read only once made, and safe for concurrent use.
type Replay struct {
	o        ReplayOptions
	plan     *ladder.Plan
	history  *history
	known    release.Figures
	p0       float64 // pooled solve rate; 0: not known
	costMean float64 // pooled, USD a request
	grid     []candidate
	plain    *breaker.Limits
}

// candidate is a fixed threshold of the grid.
type candidate struct {
	pp     release.Ratio
	limits breaker.Limits
}

// NewReplay prepares a replay of a baseline: windows of one arm in order of
// time, those to be left out simply missing. A window may be as long as so many
// ticks, into each of which its requests fall alike, or a whole part of one.
// The plan's steps carry the limits to be tried. The error is
// [ErrReplayShort], or says which window or option does not fit.
func NewReplay(baseline []release.Window, plan *ladder.Plan, o ReplayOptions) (*Replay, error) {
	r := &Replay{o: o.withDefaults(), plan: plan}
	var err error
	if r.history, err = newHistory(baseline, r.o.Tick, r.o.Block, r.o.Zone); err != nil {
		return nil, err
	}
	r.pool(baseline)
	for _, pp := range r.o.Drops {
		if pp.Num <= 0 || pp.Compare(100, 1) < 0 {
			return nil, fmt.Errorf("a drop of %s percentage points is no drop of a rate", pp)
		}
	}
	if r.o.GridStep >= len(plan.Steps) {
		return nil, fmt.Errorf("the grid is for step %d, the plan has %d", r.o.GridStep+1, len(plan.Steps))
	}
	if r.o.GridStep >= 0 && r.known&release.HasSolved != 0 {
		if err := r.candidates(&plan.Steps[r.o.GridStep].Limits); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// pool adds up the baseline.
func (r *Replay) pool(baseline []release.Window) {
	var judged, solved, requests int64
	var cost float64
	for i := range baseline {
		w := &baseline[i]
		r.known |= w.Known & replayable
		if w.Has(release.HasSolved) {
			judged, solved = judged+w.Judged, solved+w.Solved
		}
		if w.Has(release.HasCostMean) {
			requests += w.Total
			cost += float64(w.CostMean * float64(w.Total))
		}
	}
	if judged > 0 {
		r.p0 = float64(solved) / float64(judged)
	}
	if requests > 0 {
		r.costMean = cost / float64(requests)
	}
	if r.p0 == 0 {
		r.known &^= release.HasSolved
	}
	if r.costMean == 0 || r.o.CostCV <= 0 {
		r.known &^= release.HasCostMean
	}
}

// The grid's thresholds, in half percentage points.
const (
	gridFirst = 2
	gridLast  = 50
)

// candidates forms the limits of the grid and of the plain rule. Thresholds
// that leave nothing of the baseline are left out.
func (r *Replay) candidates(l *breaker.Limits) error {
	if l.SolveBaseline.IsZero() {
		return fmt.Errorf("step %d has no solve baseline to take thresholds from", r.o.GridStep+1)
	}
	for half := int64(gridFirst); half <= gridLast; half++ {
		c := candidate{pp: release.NewRatio(half, 2)}
		limits, ok, err := fixed(l, c.pp, l.MinSamples)
		if err != nil {
			return err
		}
		if c.limits = limits; ok {
			r.grid = append(r.grid, c)
		}
	}
	if r.o.PlainDropPP.IsZero() {
		return nil
	}
	limits, ok, err := fixed(l, r.o.PlainDropPP, r.o.PlainMinSamples)
	if limits.SlowSpanMax = 0; ok {
		r.plain = &limits
	}
	return err
}

// fixed returns a step's limits with nothing but a fixed drop of the solve
// rate, and false if the drop leaves nothing of it.
func fixed(l *breaker.Limits, pp release.Ratio, minSamples int64) (breaker.Limits, bool, error) {
	out := solveOnly(l)
	out.Rules[release.SolveRate] = breaker.Rule{Mode: release.Enforce, OnFail: release.RollBack}
	out.Noise, out.AgainstStable, out.Judge, out.MinSamples = breaker.Noise{}, false, breaker.WindowJudge, minSamples
	floor := new(big.Rat).Sub(l.SolveBaseline.Rat(), new(big.Rat).Quo(pp.Rat(), big.NewRat(100, 1)))
	if floor.Sign() <= 0 {
		return out, false, nil
	}
	var err error
	out.SolveFloor, err = release.RatioOf(floor)
	return out, err == nil, err
}

// solveOnly returns limits with all signals off but the solve rate.
func solveOnly(l *breaker.Limits) breaker.Limits {
	out := *l
	for s := range out.Rules {
		if release.Signal(s) != release.SolveRate {
			out.Rules[s].Mode = release.Off
		}
	}
	return out
}

// judged reports whether a step's breaker may trip on a signal that the replay
// can show it.
func (r *Replay) judged(l *breaker.Limits, s release.Signal) bool {
	rule := l.Rules[s]
	if rule.OnFail != release.RollBack || rule.Mode != release.Enforce && rule.Mode != release.Required {
		return false
	}
	switch s {
	case release.TTFTP99, release.TTFTSlow, release.ITL, release.StreamAborts, release.ServerErrors, release.Errors, release.KVCache:
		return false // a baseline thinned to a share says nothing of what an engine does under it
	case release.Violations:
		return r.known&release.HasViolations != 0
	case release.Cost:
		return r.known&release.HasCostMean != 0
	case release.P99:
		return l.P99ByCount && r.known&release.HasSlow != 0
	case release.Transfers:
		return r.known&release.HasTransfers != 0
	}
	return r.known&release.HasSolved != 0
}

// keep is the chance with which a request of the baseline is the canary's
// under a weight.
func (r *Replay) keep(w release.Weight) float64 {
	if w.Slots >= w.Ring {
		return 1
	}
	return min(w.Share()/r.o.ArmShare, 1)
}
