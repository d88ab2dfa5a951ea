package ladder

import (
	"slices"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Adaptive lets the weight of a step follow the canary's error rate: down by a
// factor while the rate is above its limit, else up by another, at most once an
// interval and always between two bounds. Errors are counted over a span of
// time: a number of requests would be seconds by day and minutes by night.
//
// The same machinery answers signals whose action is throttle. They need no
// configuration of this: the weight then falls to half of the step's at most,
// and comes back to the step's and no further.
type Adaptive struct {
	On       bool
	Limit    release.Ratio // error_limit: a share of errors above it lowers the weight
	Span     time.Duration // window_min
	Interval time.Duration // interval_min: between two falls, and from any change to a rise
	Least    int64         // min_requests: with fewer in the span nothing changes
	Down, Up release.Ratio
	// Min and Max bound the weight. The zero Min is half of the step's share, the
	// zero Max one slot below the next step's; a step's own share always lies
	// within.
	Min, Max release.Weight
}

// DefaultAdaptive is how a throttling signal moves the weight where nothing
// else is configured: x 0.8 and x 1.05, once in 5 minutes.
func DefaultAdaptive() Adaptive {
	return Adaptive{Interval: 5 * time.Minute, Down: release.NewRatio(4, 5), Up: release.NewRatio(21, 20)}
}

// whole is the exact share 1 in the parts in which an adapted share is kept: on
// a ring of 100 slots 10 % x 1.05 is no other slot, and two such steps are.
const whole = 1_000_000

// adaption is where the weight of a step has been taken to. The zero value is
// the step's own share.
type adaption struct {
	Base   release.Weight    `json:"base"`           // the step's share
	Parts  int64             `json:"parts"`          // the exact share, in parts of whole
	At     time.Time         `json:"at,omitzero"`    // of the last change that was looked for and found
	Fell   bool              `json:"fell,omitempty"` // that change lowered the share
	Set    time.Time         `json:"set,omitzero"`   // when an adapted weight was last read back
	Hits   release.SignalSet `json:"hits,omitempty"` // throttling signals past their limit since At
	Seen   int64             `json:"seen,omitempty"` // windows with requests since At
	Told   int64             `json:"told,omitempty"` // of them, those whose errors are known
	Recent []errorCount      `json:"recent,omitempty"`
}

// errorCount is the errors of one window.
type errorCount struct {
	T      int64 `json:"t"` // unix nanoseconds
	Of     int64 `json:"of"`
	Errors int64 `json:"errors"`
}

// adaptive returns how the weight moves; a plan that says nothing has the
// default for signals that throttle.
func (p *Plan) adaptive() *Adaptive {
	if p.Adaptive.Down.IsZero() {
		return &byDefault
	}
	return &p.Adaptive
}

var byDefault = DefaultAdaptive()

// bounds returns between which weights a step's may move.
func (p *Plan) bounds(step int) (low, high release.Weight) {
	a, at := p.adaptive(), p.step(step).Weight
	low, high = release.Weight{Slots: max(at.Slots/2, 1), Ring: at.Ring}, at
	if !a.On {
		return low, high
	}
	if !a.Min.IsZero() {
		low = at
		if at.Above(a.Min) {
			low = a.Min
		}
	}
	last := step >= len(p.Steps)-1
	if !last {
		high.Slots = max(p.Steps[step+1].Weight.Slots-1, at.Slots)
	}
	switch {
	case a.Max.IsZero():
	case last, high.Above(a.Max):
		high = at
		if a.Max.Above(at) {
			high = a.Max
		}
	}
	return low, high
}

// heed takes what a window of the canary says of its errors and of the signals
// that throttle.
func (st *State) heed(p *Plan, l *breaker.Limits, w *release.Window) {
	if w.Total <= 0 || st.Breaker.Phase != release.Closed || st.Stage != Climbing || w.T.Before(st.At) {
		return
	}
	st.Adapt.Hits |= st.throttling(l)
	if p.Adaptive.On || st.Adapt.Parts > 0 {
		st.Adapt.Seen++
	}
	if !p.Adaptive.On || !w.Has(release.HasErrors) {
		return
	}
	st.Adapt.Told++
	recent := append(st.Adapt.Recent, errorCount{T: w.T.UnixNano(), Of: w.StatusOf, Errors: w.Errors})
	gone := 0
	for gone < len(recent) && recent[gone].T <= w.T.Add(-p.Adaptive.Span).UnixNano() {
		gone++
	}
	st.Adapt.Recent = slices.Delete(recent, 0, gone)
}

// throttling are the signals that throttle and are past their limit in the
// newest window with requests.
func (st *State) throttling(l *breaker.Limits) (set release.SignalSet) {
	for s := range st.Breaker.Hits.All() {
		if enforced(l, s) && l.Rules[s].OnFail == release.Throttle {
			set = set.With(s)
		}
	}
	return set
}

// errorRate sums the errors of the span.
func (st *State) errorRate(a *Adaptive) release.Finding {
	f := release.Finding{Signal: release.Errors, Limit: a.Limit.Float64(), Span: a.Span}
	for _, c := range st.Adapt.Recent {
		f.Of += c.Of
		f.Count += c.Errors
	}
	if f.Of > 0 {
		f.Value = float64(f.Count) / float64(f.Of)
	}
	return f
}

// trend is where the evidence moves the weight.
type trend int8

const (
	falls   trend = -1
	stays   trend = 0
	returns trend = 1 // up, to the step's share and no further
	climbs  trend = 2 // up
)

// trend reads the evidence: a throttling signal or too many errors lower the
// weight; errors that are few, of enough requests, raise it. Where nobody counts
// errors, or too few requests tell, windows without a hit bring it back to the
// step's share: a share that has fallen must not stay down for want of the
// traffic that it took away. Nothing moves without a newer window.
func (st *State) trend(a *Adaptive, f *release.Finding) trend {
	if st.Adapt.Hits != 0 {
		return falls
	}
	if st.Adapt.Seen == 0 {
		return stays
	}
	few := !a.On || st.Adapt.Told == 0 || f.Of < max(a.Least, 1)
	over := f.Of > 0 && a.Limit.Compare(f.Count, f.Of) > 0
	switch {
	case a.On && over && !few:
		return falls
	case a.On && over:
		return stays
	case few:
		return returns
	}
	return climbs
}

// rise is how far the weight may go up.
type rise int8

const (
	noRise rise = iota
	toStep      // to the step's share: something fails that may not go further
	within      // within the bounds
)

// rise says how far the weight may go up where nothing keeps the ladder still:
// not where no step forward could be taken, and a failing gate lets it come back
// and no further.
func (d *Decision) rise(ev *Evidence, step *Step, frozen bool) rise {
	switch {
	case ev.SourceFailed, frozen, !ev.Observed.Known, d.Off:
		return noRise
	case d.Verdict == release.Fail && step.Gates.Has(MetricGate), step.Gates.Has(ApprovalGate):
		return toStep // beyond it is what a person has not approved
	}
	return within
}

// adapt moves the weight within the bounds of the step, if it is time to. Down
// it may go at any time.
func (st *State) adapt(p *Plan, d *Decision, up rise, now time.Time) bool {
	a := p.adaptive()
	f := st.errorRate(a)
	to := st.trend(a, &f)
	since := now.Sub(st.Adapt.At)
	if to == returns && up == within {
		up = toStep
	}
	switch {
	case to == stays, to > stays && (up == noRise || up == toStep && !st.throttled(p)):
		return false
	case to == falls && st.Adapt.Fell && since < a.Interval:
		return false // what it did is not seen yet
	case to > stays && (!st.Adapt.At.IsZero() && since < a.Interval || now.Sub(st.At) < a.Interval):
		return false
	}
	parts := st.moved(p, to, up)
	hits := st.Adapt.Hits
	st.Adapt.At, st.Adapt.Fell, st.Adapt.Hits, st.Adapt.Seen, st.Adapt.Told = now, to == falls, 0, 0, 0
	if st.Adapt.Parts == 0 {
		st.Adapt.Base = st.Weight
	}
	st.Adapt.Parts = parts
	weight := st.slots(p, parts)
	if weight.Same(st.Weight) {
		return false
	}
	d.Finding, d.Throttled = f, hits
	why := WhyAdapted
	if d.Throttled != 0 || to == returns {
		why = WhyThrottled
	}
	d.write(p, st, release.Adjust, weight, why)
	return true
}

// moved returns the share after one change, in parts, within the bounds. A fall
// never raises it, though another configuration may have put both bounds above
// where it is.
func (st *State) moved(p *Plan, to trend, up rise) int64 {
	parts := st.Adapt.Parts
	if parts == 0 {
		parts = partsOf(st.Weight)
	}
	a := p.adaptive()
	least, most := p.bounds(st.Step)
	low, high := partsOf(least), partsOf(most)
	if to == falls {
		return min(max(a.Down.FloorOf(parts), min(low, parts)), high)
	}
	if up == toStep {
		high = partsOf(p.step(st.Step).Weight)
	}
	return min(max(a.Up.FloorOf(parts), low), high)
}

// partsOf rounds up, so that slots gives the same weight back.
func partsOf(w release.Weight) int64 {
	return (w.Slots*whole + w.Ring - 1) / w.Ring
}

// slots returns a share in whole slots, rounded down: the canary never gets
// more than was reckoned.
func (st *State) slots(p *Plan, parts int64) release.Weight {
	ring := p.step(st.Step).Weight.Ring
	return release.Weight{Slots: release.NewRatio(parts, whole).FloorOf(ring), Ring: ring}
}

// settled takes note that an adapted weight was read back: what was served so
// far was under another one.
func (st *State) settled(at time.Time) {
	st.Share, st.Adapt.Set = recentShare{}, at
}

// forget takes back a change of the weight that was asked for and not made. A
// fall is looked at again at once.
func (st *State) forget() {
	if !st.raising() {
		st.Adapt.Fell = false
	}
	st.Pending = Pending{}
	st.Adapt.Parts = partsOf(st.Weight)
}

// throttled reports whether the weight is below the step's share: nothing goes
// forward from there.
func (st *State) throttled(p *Plan) bool {
	return st.Adapt.Parts > 0 && p.step(st.Step).Weight.Above(st.Weight)
}

// base is the share of the step that the release stands at, which an adapted
// weight is not.
func (st *State) base() release.Weight {
	if st.Adapt.Parts > 0 {
		return st.Adapt.Base
	}
	return st.Weight
}
