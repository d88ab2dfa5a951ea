// Package breaker is the circuit breaker over the canary's windows: a fast
// layer of hard limits, a slow layer that judges the solve rate, and the three
// states CLOSED, OPEN and HALF_OPEN (DESIGN section 6).
//
// It is pure. Time is what the caller says it is, a [State] is plain data that
// [Tick], [Step] and [Idle] change in place, and nothing is allocated for a
// window once the ring of recent windows has grown to the longest span.
//
//	var st breaker.State
//	for _, w := range windows {                  // oldest first, gaps left out
//		if ev, ok := breaker.Tick(&limits, &st, w.T); ok { ... }
//		if ev, ok := breaker.Step(&limits, &st, &w); ok { ... }
//	}
//
// What it does not do: it knows nothing of steps, weights and holds (package
// ladder), and it does not decide whether a window may count as evidence.
package breaker

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Tick does the change that time alone brings: an OPEN breaker that is not
// locked becomes HALF_OPEN at the first tick at or past the end of its
// cooldown. It reports whether there was one.
func Tick(l *Limits, st *State, now time.Time) (release.Event, bool) {
	if st.Phase != release.Open || st.Locked || now.Before(st.Since.Add(l.Cooldown)) {
		return release.Event{}, false
	}
	ev := release.Event{
		T: now, From: release.Open, To: release.HalfOpen,
		Finding: release.Finding{Signal: release.Cooldown, Span: l.Cooldown},
	}
	st.enter(release.HalfOpen, now)
	st.spans.probed = st.spans.hi
	return ev, true
}

// Step folds the canary's window w, whose time is w.T, and reports the
// transition it brought, if any. Windows must come oldest first and one at a
// time. A window without requests changes nothing but the reading of probes
// whose labels have come in; a window that comes while OPEN enters no span.
func Step(l *Limits, st *State, w *release.Window) (release.Event, bool) {
	if w.Total <= 0 {
		return Idle(l, st, w.T)
	}
	st.Hits = 0
	if st.Phase == release.Open {
		return release.Event{}, false
	}
	st.spans.cusum.turn(l, st.spans.hi)
	st.spans.push(w)
	st.spans.slide(l, w.T.UnixNano())
	if f, hit := st.fastLayer(l, w); hit {
		return st.trip(l, w.T, f), true
	}
	if st.Phase == release.HalfOpen {
		return st.readProbes(l, w.T)
	}
	if f, hit := st.slowLayer(l, w); hit {
		return st.trip(l, w.T, f), true
	}
	return release.Event{}, false
}

// Idle is a tick without a window, or with an empty one: no check runs, but
// with a label lag the solve rate of an earlier probe may have come in.
func Idle(l *Limits, st *State, now time.Time) (release.Event, bool) {
	if st.Phase != release.HalfOpen || l.LabelLag == 0 {
		return release.Event{}, false
	}
	return st.readProbes(l, now)
}

// Amend takes the labels of a window that was folded before and is shown again
// with more of them known. It reports whether the window is there and its
// labels have not been judged: with a label lag a window's outcome is read when
// the lag is over, not when the window is first seen. Stable's part of a
// concurrent control is taken anew with it.
func Amend(l *Limits, st *State, w *release.Window) bool {
	x := st.amendable(l, w)
	if x == nil {
		return false
	}
	x.SolveCounts = SolveCountsOf(w)
	return true
}

// Amends reports whether [Amend] would change anything.
func Amends(l *Limits, st *State, w *release.Window) bool {
	x := st.amendable(l, w)
	return x != nil && x.SolveCounts != SolveCountsOf(w)
}

// amendable returns what is kept of a window whose labels have not been judged.
func (st *State) amendable(l *Limits, w *release.Window) *sample {
	s, t := &st.spans, w.T.UnixNano()
	first := s.lo
	if st.Phase == release.HalfOpen {
		first = max(first, s.probed)
	}
	for seq := s.hi - 1; seq >= first && s.at(seq).T > s.at(s.hi-1).T-int64(l.LabelLag); seq-- {
		if x := s.at(seq); x.T == t {
			return x
		}
	}
	return nil
}

// Clear takes a lock away and starts over CLOSED with no evidence and no
// recoveries counted, as a person who takes responsibility asks for.
func Clear(st *State, now time.Time) {
	*st = State{Since: now}
}

// Trip opens the breaker by hand or for a reason of the ladder's, from any
// phase; locked keeps it open until Clear.
func Trip(st *State, now time.Time, locked bool) {
	st.enter(release.Open, now)
	st.Locked = locked
}

func (st *State) enter(p release.Phase, now time.Time) {
	st.Phase, st.Since, st.Hits, st.Round = p, now, 0, Round{}
	if p == release.Open {
		st.spans.cusum.restart(st.spans.hi) // with the first window of the probe round, once that has passed
	}
}

// fastLayer looks at the fast signals in their fixed order and returns the
// first that trips. Signals past their limit that may not trip are left in
// st.Hits.
func (st *State) fastLayer(l *Limits, w *release.Window) (release.Finding, bool) {
	last := release.Transfers
	if w.Known&release.StreamingFigures != 0 {
		last = release.LastStreaming
	}
	for s := release.Violations; s <= last; s++ {
		rule := l.Rules[s]
		if rule.Mode == release.Off || !st.fastHit(l, w, s) {
			continue
		}
		if rule.trips() {
			return st.fastFinding(l, w, s), true
		}
		st.Hits = st.Hits.With(s)
	}
	return release.Finding{}, false
}

// fastHit holds one fast signal against its limit. A figure that is missing
// leaves the check unjudged.
func (st *State) fastHit(l *Limits, w *release.Window, s release.Signal) bool {
	sum := &st.spans.fast
	switch s {
	case release.Violations:
		return sum.violationsOf > 0 && sum.violations >= l.ViolationsAllowed(sum.violationsOf)
	case release.Cost:
		return w.Has(release.HasCost) && w.Total >= l.CostMinSamples && w.Cost >= l.CostRatio
	case release.P99:
		if l.P99ByCount {
			return l.CountTrips(s, sum.slow, sum.slowOf)
		}
		return w.Has(release.HasP99) && w.Total >= l.P99MinSamples && w.P99MS >= l.P99MS
	case release.Transfers:
		return l.CountTrips(s, sum.transfers, sum.transfersOf)
	}
	return st.streamHit(l, w, s)
}

// fastFinding returns the figures of a signal that is past its limit.
func (st *State) fastFinding(l *Limits, w *release.Window, s release.Signal) release.Finding {
	sum := &st.spans.fast
	switch s {
	case release.Violations:
		return release.Finding{
			Signal: s, Value: float64(sum.violations), Limit: float64(l.ViolationsAllowed(sum.violationsOf)),
			Count: sum.violations, Of: sum.violationsOf, Span: l.FastSpan,
		}
	case release.Cost:
		return release.Finding{Signal: s, Value: w.Cost, Limit: l.CostRatio, Of: w.Total, Span: w.Span}
	case release.P99:
		if l.P99ByCount {
			return l.CountFinding(s, sum.slow, sum.slowOf, l.FastSpan)
		}
		return release.Finding{Signal: s, Value: w.P99MS, Limit: l.P99MS, Of: w.Total, Span: w.Span}
	case release.Transfers:
		return l.CountFinding(s, sum.transfers, sum.transfersOf, l.FastSpan)
	}
	return st.streamFinding(l, w, s)
}

// slowLayer judges the solve rate: over the slow span once it holds enough
// judged requests, or by its cumulative sum.
func (st *State) slowLayer(l *Limits, w *release.Window) (release.Finding, bool) {
	rule := l.Rules[release.SolveRate]
	if rule.Mode == release.Off {
		return release.Finding{}, false
	}
	s := &st.spans
	hit := false
	if s.cusum.on {
		hit = s.fold(l, w.T.UnixNano(), rule.trips())
	} else {
		hit = s.slow.Judged > 0 && s.slow.Judged >= l.MinSamples && l.SolveTrips(&s.slow.SolveCounts)
	}
	switch {
	case !hit:
		return release.Finding{}, false
	case !rule.trips():
		st.Hits = st.Hits.With(release.SolveRate)
		return release.Finding{}, false
	case s.cusum.on:
		return s.cusum.finding(l, w.Span), true
	}
	return l.SolveFinding(&s.slow.SolveCounts, s.slowReach(l, w)), true
}

// trip opens the breaker. A trip of HALF_OPEN is a failed probe round: it
// escalates, and locks where the configuration says so.
func (st *State) trip(l *Limits, now time.Time, f release.Finding) release.Event {
	ev := release.Event{T: now, From: st.Phase, To: release.Open, Finding: f}
	ev.First, ev.Last = st.extent(&f, now)
	ev.Escalated = st.Phase == release.HalfOpen
	ev.Locked = ev.Escalated && l.LockOnEscalate || l.MaxRecoveries > 0 && st.Recoveries >= l.MaxRecoveries
	st.enter(release.Open, now)
	st.Locked = ev.Locked
	return ev
}

// extent returns the starts of the oldest and the newest window that a
// finding rests on.
func (st *State) extent(f *release.Finding, now time.Time) (first, last time.Time) {
	s := &st.spans
	switch {
	case f.Signal == release.Violations, f.Signal == release.Transfers, f.Form == release.ByCount:
		return unixNano(s.at(s.fast.first).T), now
	case f.Signal.Streaming():
		return unixNano(s.at(s.flow.sums[f.Signal-release.FirstStreaming].first).T), now
	case f.Form == release.CumulativeSum:
		return unixNano(s.cusum.First), unixNano(s.cusum.Last)
	case f.Signal == release.SolveRate:
		return unixNano(s.at(s.slow.first).T), unixNano(s.at(s.matured - 1).T)
	case f.Signal == release.Probes:
		return st.Round.First, unixNano(s.at(s.probed - 1).T)
	}
	return now, now
}

func unixNano(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// readProbes counts the windows of this HALF_OPEN whose labels are in by now
// as probes, and ends the round when it has enough of them.
func (st *State) readProbes(l *Limits, now time.Time) (release.Event, bool) {
	s := &st.spans
	for s.probed < s.hi && s.at(s.probed).T <= now.UnixNano()-int64(l.LabelLag) {
		x := s.at(s.probed)
		s.probed++
		if !st.Round.take(l, x) {
			continue
		}
		if st.Round.Done >= l.Trials {
			return st.endRound(l, now), true
		}
	}
	return release.Event{}, false
}

// take adds a window to the probe in the making and reports whether that
// finished it. A window with nothing judged is no probe.
func (r *Round) take(l *Limits, x *sample) bool {
	if x.Judged <= 0 {
		return false
	}
	if r.First.IsZero() {
		r.First = unixNano(x.T)
	}
	r.Pool.Requests += x.Total
	r.Pool.Judged += x.Judged
	r.Pool.Solved += x.Solved
	if r.Pool.Requests < l.ProbeMinRequests {
		return false
	}
	r.Done++
	if l.SuccessRate.Compare(r.Pool.Solved, r.Pool.Judged) >= 0 {
		r.Good++
	}
	r.Pool = Pool{}
	return true
}

// endRound closes the breaker or opens it again. Passed, everything from
// before HALF_OPEN is dropped; the probe windows count on.
func (st *State) endRound(l *Limits, now time.Time) release.Event {
	f := release.Finding{
		Signal: release.Probes, Value: float64(st.Round.Good) / float64(st.Round.Done), Limit: l.SuccessRate.Float64(),
		Count: st.Round.Good, Of: st.Round.Done, Span: now.Sub(st.Since),
	}
	if l.SuccessRate.Compare(st.Round.Good, st.Round.Done) < 0 {
		return st.trip(l, now, f)
	}
	ev := release.Event{T: now, From: release.HalfOpen, To: release.Closed, Finding: f}
	ev.First, ev.Last = st.extent(&f, now)
	st.spans.drop(l, st.Since.UnixNano())
	st.enter(release.Closed, now)
	st.Recoveries++
	return ev
}
