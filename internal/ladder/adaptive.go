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
	Interval time.Duration // interval_min: at most one change in it
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
	Set    time.Time         `json:"set,omitzero"`   // when an adapted weight was last read back
	Hits   release.SignalSet `json:"hits,omitempty"` // throttling signals past their limit since At
	Seen   int64             `json:"seen,omitempty"` // windows with requests since At
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
	for s := range st.Breaker.Hits.All() {
		if enforced(l, s) && l.Rules[s].OnFail == release.Throttle {
			st.Adapt.Hits = st.Adapt.Hits.With(s)
		}
	}
	if p.Adaptive.On || st.Adapt.Parts > 0 {
		st.Adapt.Seen++
	}
	if !p.Adaptive.On || !w.Has(release.HasErrors) {
		return
	}
	recent := append(st.Adapt.Recent, errorCount{T: w.T.UnixNano(), Of: w.StatusOf, Errors: w.Errors})
	gone := 0
	for gone < len(recent) && recent[gone].T <= w.T.Add(-p.Adaptive.Span).UnixNano() {
		gone++
	}
	st.Adapt.Recent = slices.Delete(recent, 0, gone)
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
	falls  trend = -1
	stays  trend = 0
	climbs trend = 1
)

// trend reads the evidence: a throttling signal or too many errors lower the
// weight; only errors that are few, of enough requests, raise it above the
// step's share, and windows without a hit bring it back there.
func (st *State) trend(a *Adaptive, f *release.Finding) trend {
	judged := a.On && f.Of > 0 && f.Of >= a.Least
	switch {
	case st.Adapt.Hits != 0, judged && a.Limit.Compare(f.Count, f.Of) > 0:
		return falls
	case judged, !a.On && st.Adapt.Parts > 0 && st.Adapt.Seen > 0:
		return climbs
	}
	return stays
}

// adapt moves the weight within the bounds of the step, if it is time to. Down
// it may go at any time, up only where a step forward would be allowed.
func (st *State) adapt(p *Plan, d Decision, onlyDown bool, now time.Time) (Decision, bool) {
	a := p.adaptive()
	f := st.errorRate(a)
	to := st.trend(a, &f)
	since := now.Sub(st.Adapt.At)
	switch {
	case to == stays, to == climbs && onlyDown:
		return d, false
	case !st.Adapt.At.IsZero() && since < a.Interval, to == climbs && now.Sub(st.At) < a.Interval:
		return d, false
	}
	parts := st.moved(p, to)
	d.Finding, d.Throttled = f, st.Adapt.Hits
	st.Adapt.At, st.Adapt.Hits, st.Adapt.Seen = now, 0, 0
	if st.Adapt.Parts == 0 {
		st.Adapt.Base = st.Weight
	}
	st.Adapt.Parts = parts
	weight := st.slots(p, parts)
	if weight.Same(st.Weight) {
		return d, false
	}
	why := WhyAdapted
	if d.Throttled != 0 || !a.On {
		why = WhyThrottled
	}
	return d.write(p, st, release.Adjust, weight, why), true
}

// moved returns the share after one change, in parts, within the bounds.
func (st *State) moved(p *Plan, to trend) int64 {
	low, high := p.bounds(st.Step)
	factor := p.adaptive().Up
	if to == falls {
		factor = p.adaptive().Down
	}
	parts := st.Adapt.Parts
	if parts == 0 {
		parts = partsOf(st.Weight)
	}
	return min(max(factor.FloorOf(parts), partsOf(low)), partsOf(high))
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

// forget takes back a change of the weight that was asked for and not made.
func (st *State) forget() {
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
