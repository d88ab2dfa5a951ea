package ladder

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// SignalVerdict is a signal over everything that the gate has gathered.
type SignalVerdict struct {
	Finding release.Finding
	Verdict release.Verdict
	MinOf   int64 // samples from which on the signal is judged
	Looked  bool  // false: the signal is off, or optional and never supplied
	Needed  bool  // the gate needs its pass; false with Looked: observed, or held only for show
	Latched bool  // it failed earlier in this attempt
}

// judge forms the verdict of each signal and of the gate. The weakest needed
// verdict decides, in the order of release.Verdict: one failure fails the gate
// even while others lack data. A failure latches within the attempt once the
// gate is due, except of a signal that throttles: less weight may mend it.
func (st *State) judge(p *Plan, d *Decision, sourceFailed, due bool) release.Verdict {
	l := p.limits(st.Step)
	gate, needed := release.Pass, false
	for s := release.Signal(0); int(s) < release.Judged; s++ {
		v := &d.Verdicts[s]
		st.signal(l, s, v)
		if !v.Looked {
			continue
		}
		if v.Needed && due && v.Verdict == release.Fail && p.step(st.Step).Gates.Has(MetricGate) && l.Rules[s].OnFail != release.Throttle {
			st.Latched = st.Latched.With(s)
		}
		if v.Needed && st.Latched.Has(s) {
			v.Verdict, v.Latched = release.Fail, true
		}
		if sourceFailed && v.Verdict != release.Fail {
			v.Verdict = release.Error
		}
		needed = needed || v.Needed
		if v.Needed && v.Verdict.Outranks(gate) {
			gate = v.Verdict
		}
	}
	if !needed {
		return release.NoData // a pass needs positive evidence, and nothing is looked at
	}
	return gate
}

// signal holds one signal's tally against the step's limits: the same limits
// as the breaker's, from min_samples_slow on, or from the min_count of a signal
// of streaming or infrastructure that has one.
func (st *State) signal(l *breaker.Limits, s release.Signal, v *SignalVerdict) {
	mode := l.Rules[s].Mode
	optional := s == release.Cost || s == release.P99 || s.Streaming()
	if mode == release.Off || optional && mode != release.Required && !st.Supplied.Has(s) {
		*v = SignalVerdict{}
		return
	}
	var failing bool
	v.Finding, failing = st.Gate.finding(l, s, st.Gate.Span)
	v.MinOf, v.Looked, v.Needed, v.Latched = minOf(l, s), true, mode != release.Observe, false
	switch {
	case v.Finding.Of == 0:
		v.Verdict = release.NoData
	case v.Finding.Of < v.MinOf:
		v.Verdict = release.Insufficient
	case failing:
		v.Verdict = release.Fail
	default:
		v.Verdict = release.Pass
	}
}

// minOf is how many samples a signal is judged from.
func minOf(l *breaker.Limits, s release.Signal) int64 {
	if s.Streaming() {
		if own := l.StreamLimitOf(s).MinOf; own > 0 {
			return own
		}
	}
	return max(l.MinSamples, 1)
}

// finding reads a signal off a tally and reports whether it is past its
// limit. The p99s of windows cannot be merged: their mean, weighted by
// requests or streams, stands for the step, and likewise the cost ratios'. Counts are
// judged by the breaker's own rules; the solve rate by its window form, also
// where the breaker sums up.
func (t *Tally) finding(l *breaker.Limits, s release.Signal, span time.Duration) (release.Finding, bool) {
	f := release.Finding{Signal: s, Span: span}
	if s.Streaming() {
		c := t.Streaming.Of(s)
		return l.StreamFinding(s, c, span), l.StreamLimitOf(s).Trips(c)
	}
	switch s {
	case release.Violations:
		allowed := l.ViolationsAllowed(t.ViolationsOf)
		f.Value, f.Limit, f.Count, f.Of = float64(t.Violations), float64(allowed), t.Violations, t.ViolationsOf
		return f, t.Violations >= allowed
	case release.Cost:
		f.Limit, f.Of = l.CostRatio, t.CostOf
		f.Value = mean(t.Cost, t.CostOf)
		return f, f.Value >= l.CostRatio
	case release.P99:
		if l.P99ByCount {
			return l.CountFinding(s, t.Slow, t.SlowOf, span), l.CountTrips(s, t.Slow, t.SlowOf)
		}
		f.Limit, f.Of = l.P99MS, t.P99Of
		f.Value = mean(t.P99MS, t.P99Of)
		return f, f.Value >= l.P99MS
	case release.Transfers:
		return l.CountFinding(s, t.Transfers, t.TransfersOf, span), l.CountTrips(s, t.Transfers, t.TransfersOf)
	default:
		return l.SolveFinding(&t.SolveCounts, span), l.SolveTrips(&t.SolveCounts)
	}
}

func mean(sum float64, n int64) float64 {
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}
