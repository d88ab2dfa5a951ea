// Package breaker is the circuit breaker over the canary's windows: a fast
// layer of hard limits, a slow layer that judges the solve rate, and the three
// states CLOSED, OPEN and HALF_OPEN (DESIGN section 6).
//
// It is pure. Time is what the caller says it is, a [State] is plain data that
// [Tick], [Step] and [Idle] change in place. A replay folds millions of windows
// that are past nothing: sums are differences of running totals in a ring, what
// cannot trip is ruled out before its limit is computed, and once the ring has
// grown to the longest span nothing is allocated but a transition's event.
//
// A copy of a State shares the ring. It may be read, or gone on with in the
// original's place, but not both be stepped; to keep one, write it as JSON.
//
//	var st breaker.State
//	for _, w := range windows {                  // oldest first, gaps left out
//		if ev := breaker.Tick(&limits, &st, w.T); ev != nil { ... }
//		if ev := breaker.Step(&limits, &st, &w); ev != nil { ... }
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
// cooldown. It returns the transition, or nil.
func Tick(l *Limits, st *State, now time.Time) *release.Event {
	if st.Phase != release.Open {
		return nil
	}
	return st.cooled(l, now)
}

func (st *State) cooled(l *Limits, now time.Time) *release.Event {
	if st.Locked || now.Before(st.Since.Add(l.Cooldown)) {
		return nil
	}
	st.enter(release.HalfOpen, now)
	st.spans.probed = st.spans.hi
	return &release.Event{
		T: now, From: release.Open, To: release.HalfOpen,
		Finding: release.Finding{Signal: release.Cooldown, Span: l.Cooldown},
	}
}

// Step folds the canary's window w, whose time is w.T, and returns the
// transition it brought, or nil. Windows must come oldest first and one at a
// time. A window without requests changes nothing but the reading of probes
// whose labels have come in; a window that comes while OPEN enters no span.
//
// Nearly all windows are of a CLOSED breaker with plain spans, know the usual
// figures, no rare ones, and are past nothing. For those nothing is called: what
// is here does the same as stepAny in fewer instructions, and leaves the rest to
// it or, once they are kept, to judge and the slow layer.
func Step(l *Limits, st *State, w *release.Window) *release.Event {
	s := &st.spans
	if !s.plain {
		return st.stepAny(l, w)
	}
	now := w.T.UnixNano()
	ring, mask, hi := s.ring, int64(len(s.ring)-1), s.hi
	far, near := now-int64(l.SlowSpan), now-int64(l.FastSpan)
	// Of a mask below 0 there is no ring yet; far is past now where time has no nanoseconds since 1970.
	if !s.plainly(l) || st.Phase != release.Closed || w.Known&(usual|release.StreamingFigures) != usual || w.Total <= 0 || hi-s.lo >= mask || mask < 0 || far >= now {
		return st.stepAny(l, w)
	}
	x, sum := &ring[hi&mask], &ring[(hi+1)&mask].before
	x.T, x.known = now, w.Known
	sum.requests = x.before.requests + w.Total
	sum.violations = x.before.violations + w.Violations
	sum.transfers = x.before.transfers + w.Transfers
	sum.judged = x.before.judged + w.Judged
	sum.solved = x.before.solved + w.Solved
	s.hi, s.matured, st.Hits = hi+1, hi+1, 0

	fast, slow := s.fast, s.slow
	for ring[fast&mask].T <= near { // ends with x, which is at now
		fast++
	}
	for ring[slow&mask].T <= far {
		slow++
	}
	s.fast, s.slow, s.lo = fast, slow, slow
	if s.rare != nil || w.Known&rare != 0 {
		s.pushRare(w)
		return st.judge(l, w, now)
	}
	old := &ring[fast&mask].before
	if sum.violations-old.violations >= l.ViolationLimit || w.Known&release.HasCost != 0 && w.Cost >= l.CostRatio || w.Known&release.HasP99 != 0 && w.P99MS >= l.P99MS {
		return st.judge(l, w, now)
	}
	if n := sum.transfers - old.transfers; n >= l.MinTransfers && !below(n, sum.requests-old.requests, l.TransferRate) {
		return st.judge(l, w, now)
	}
	old = &ring[slow&mask].before
	if judged := sum.judged - old.judged; judged >= l.MinSamples && !above(sum.solved-old.solved, judged, l.SolveFloor) && st.slowLayer(l, now) {
		return st.tripSlow(l, w)
	}
	return nil
}

// stepAny is Step of any window in any state.
func (st *State) stepAny(l *Limits, w *release.Window) *release.Event {
	if w.Total <= 0 {
		return Idle(l, st, w.T)
	}
	st.Hits = 0
	if st.Phase == release.Open {
		return nil
	}
	s, now := &st.spans, w.T.UnixNano()
	s.cusum.turn(l, s.hi)
	s.push(w, now)
	s.slide(l, now)
	if st.Phase == release.Closed && s.rare == nil && s.flow.ring == nil && !s.cusum.on && st.quiet(l, w) {
		return nil
	}
	return st.judge(l, w, now)
}

// quiet reports that the newest window is past no limit, where all figures are
// usual ones and there is no cumulative sum. Of one that takes more than a look
// it does not say so.
func (st *State) quiet(l *Limits, w *release.Window) bool {
	s := &st.spans
	sum, old := &s.at(s.hi).before, &s.at(s.fast).before
	if sum.violations-old.violations >= l.ViolationLimit || sum.transfers-old.transfers >= l.MinTransfers ||
		w.Known&release.HasCost != 0 && w.Cost >= l.CostRatio || w.Known&release.HasP99 != 0 && w.P99MS >= l.P99MS {
		return false
	}
	sum, old = &s.at(s.matured).before, &s.at(s.slow).before
	judged := sum.judged - old.judged
	return judged < l.MinSamples || above(sum.solved-old.solved, judged, l.SolveFloor)
}

// judge holds the newest window, and the spans that end with it, against all
// limits.
func (st *State) judge(l *Limits, w *release.Window, now int64) *release.Event {
	if signal, hit := st.fastLayer(l, w); hit {
		return st.tripFast(l, w, signal)
	}
	if st.Phase == release.HalfOpen {
		return st.readProbes(l, w.T)
	}
	if st.slowLayer(l, now) {
		return st.tripSlow(l, w)
	}
	return nil
}

// Idle is a tick without a window, or with an empty one: no check runs, but
// with a label lag the solve rate of an earlier probe may have come in.
func Idle(l *Limits, st *State, now time.Time) *release.Event {
	if st.Phase != release.HalfOpen || l.LabelLag == 0 {
		return nil
	}
	return st.readProbes(l, now)
}

// Amend takes the labels of a window that was folded before and is shown again
// with more of them known. It reports whether the window is there and its
// labels have not been judged: with a label lag a window's outcome is read when
// the lag is over, not when the window is first seen. Stable's part of a
// concurrent control is taken anew with it.
func Amend(l *Limits, st *State, w *release.Window) bool {
	seq, ok := st.amendable(l, w)
	if ok {
		st.spans.relabel(seq, SolveCountsOf(w))
	}
	return ok
}

// Amends reports whether [Amend] would change anything.
func Amends(l *Limits, st *State, w *release.Window) bool {
	seq, ok := st.amendable(l, w)
	return ok && st.spans.solved(seq, seq+1) != SolveCountsOf(w)
}

// amendable finds the sample of a window whose labels have not been judged.
func (st *State) amendable(l *Limits, w *release.Window) (seq int64, ok bool) {
	s, t := &st.spans, w.T.UnixNano()
	first := s.lo
	if st.Phase == release.HalfOpen {
		first = max(first, s.probed)
	}
	for seq = s.hi - 1; seq >= first && s.at(seq).T > s.at(s.hi-1).T-int64(l.LabelLag); seq-- {
		if s.at(seq).T == t {
			return seq, true
		}
	}
	return 0, false
}

// Clear takes a lock away and starts over CLOSED with no evidence and no
// recoveries counted, as a person who takes responsibility asks for.
func Clear(st *State, now time.Time) {
	*st = State{Since: now}
}

// Reset starts over as the zero State, and keeps the memory of the windows: for
// replays, which start over often. A copy of the state is not to be used on.
func (st *State) Reset() {
	was := &st.spans
	kept := spans{ring: was.ring, rare: was.rare, flow: flow{ring: was.flow.ring}}
	if kept.ring != nil {
		kept.ring[0].before = totals{}
	}
	if kept.rare != nil {
		kept.rare[0] = rareTotals{}
	}
	if kept.flow.ring != nil {
		kept.flow.ring[0] = StreamCounts{}
	}
	*st = State{spans: kept}
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
// st.Hits. A figure that is missing leaves its check unjudged. What is cheap to
// rule out is ruled out first: most windows are past nothing.
func (st *State) fastLayer(l *Limits, w *release.Window) (release.Signal, bool) {
	s := &st.spans
	a, b, rareA, rareB := &s.at(s.fast).before, &s.at(s.hi).before, s.rareAt(s.fast), s.rareAt(s.hi)
	if n, of := b.violations-a.violations, b.requests-a.requests-(rareB.unviolated-rareA.unviolated); n >= l.ViolationLimit && of > 0 && n >= l.ViolationsAllowed(of) && st.past(l, release.Violations) {
		return release.Violations, true
	}
	if w.Known&release.HasCost != 0 && w.Cost >= l.CostRatio && w.Total >= l.CostMinSamples && st.past(l, release.Cost) {
		return release.Cost, true
	}
	if l.P99ByCount {
		if n, of := rareB.slow-rareA.slow, rareB.slowOf-rareA.slowOf; n >= l.MinSlow && of > 0 && !below(n, of, l.SlowRate) && st.past(l, release.P99) {
			return release.P99, true
		}
	} else if w.Known&release.HasP99 != 0 && w.P99MS >= l.P99MS && w.Total >= l.P99MinSamples && st.past(l, release.P99) {
		return release.P99, true
	}
	if n, of := b.transfers-a.transfers, b.requests-a.requests-(rareB.untransferred-rareA.untransferred); n >= l.MinTransfers && of > 0 && !below(n, of, l.TransferRate) && st.past(l, release.Transfers) {
		return release.Transfers, true
	}
	if w.Known&release.StreamingFigures == 0 {
		return 0, false
	}
	return st.streamLayer(l, w)
}

// past takes note of a signal that is past its limit and reports whether it
// trips.
func (st *State) past(l *Limits, s release.Signal) bool {
	rule := l.Rules[s]
	if rule.trips() {
		return true
	}
	if rule.Mode != release.Off {
		st.Hits = st.Hits.With(s)
	}
	return false
}

// tripFast opens the breaker for a fast signal that is past its limit.
func (st *State) tripFast(l *Limits, w *release.Window, s release.Signal) *release.Event {
	return st.trip(l, w.T, st.fastFinding(l, w, s))
}

// fastFinding returns the figures of a signal that is past its limit.
func (st *State) fastFinding(l *Limits, w *release.Window, s release.Signal) release.Finding {
	sp := &st.spans
	switch s {
	case release.Violations:
		n, of := sp.violated(sp.fast, sp.hi)
		return release.Finding{Signal: s, Value: float64(n), Limit: float64(l.ViolationsAllowed(of)), Count: n, Of: of, Span: l.FastSpan}
	case release.Cost:
		return release.Finding{Signal: s, Value: w.Cost, Limit: l.CostRatio, Of: w.Total, Span: w.Span}
	case release.P99:
		if l.P99ByCount {
			n, of := sp.slowed(sp.fast, sp.hi)
			return l.CountFinding(s, n, of, l.FastSpan)
		}
		return release.Finding{Signal: s, Value: w.P99MS, Limit: l.P99MS, Of: w.Total, Span: w.Span}
	case release.Transfers:
		n, of := sp.transferred(sp.fast, sp.hi)
		return l.CountFinding(s, n, of, l.FastSpan)
	}
	return st.streamFinding(l, w, s)
}

// slowLayer judges the solve rate: over the slow span once it holds enough
// judged requests, or by its cumulative sum. It reports whether that trips.
func (st *State) slowLayer(l *Limits, now int64) bool {
	rule := l.Rules[release.SolveRate]
	if rule.Mode == release.Off {
		return false
	}
	s := &st.spans
	if s.cusum.on {
		return s.fold(l, now, rule.trips()) && st.past(l, release.SolveRate)
	}
	a, b := &s.at(s.slow).before, &s.at(s.matured).before
	judged, solved := b.judged-a.judged, b.solved-a.solved
	if judged < l.MinSamples || !l.AgainstStable && l.SolveFloor.Compare(solved, judged) > 0 {
		return false // above the floor, whatever noise there is
	}
	c := s.solved(s.slow, s.matured)
	return l.SolveTrips(&c) && st.past(l, release.SolveRate)
}

// tripSlow opens the breaker for a solve rate that is past its limit.
func (st *State) tripSlow(l *Limits, w *release.Window) *release.Event {
	s := &st.spans
	if s.cusum.on {
		return st.trip(l, w.T, s.cusum.finding(l, w.Span))
	}
	c := s.solved(s.slow, s.matured)
	return st.trip(l, w.T, l.SolveFinding(&c, s.slowReach(l, w)))
}

// trip opens the breaker. A trip of HALF_OPEN is a failed probe round: it
// escalates, and locks where the configuration says so.
func (st *State) trip(l *Limits, now time.Time, f release.Finding) *release.Event {
	ev := &release.Event{T: now, From: st.Phase, To: release.Open, Finding: f}
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
		return unixNano(s.at(s.fast).T), now
	case f.Signal.Streaming():
		return unixNano(s.at(s.flow.first[f.Signal-release.FirstStreaming]).T), now
	case f.Form == release.CumulativeSum:
		return unixNano(s.cusum.First), unixNano(s.cusum.Last)
	case f.Signal == release.SolveRate:
		return unixNano(s.at(s.slow).T), unixNano(s.at(s.matured - 1).T)
	case f.Signal == release.Probes:
		return st.Round.First, unixNano(s.at(s.probed - 1).T)
	}
	return now, now
}

func unixNano(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// readProbes counts the windows of this HALF_OPEN whose labels are in by now
// as probes, and ends the round when it has enough of them.
func (st *State) readProbes(l *Limits, now time.Time) *release.Event {
	s := &st.spans
	for s.probed < s.hi && s.at(s.probed).T <= now.UnixNano()-int64(l.LabelLag) {
		x, c := s.at(s.probed), s.solved(s.probed, s.probed+1)
		requests := s.at(s.probed+1).before.requests - x.before.requests
		s.probed++
		if !st.Round.take(l, x.T, requests, &c) {
			continue
		}
		if st.Round.Done >= l.Trials {
			return st.endRound(l, now)
		}
	}
	return nil
}

// take adds a window to the probe in the making and reports whether that
// finished it. A window with nothing judged is no probe.
func (r *Round) take(l *Limits, t, requests int64, c *SolveCounts) bool {
	if c.Judged <= 0 {
		return false
	}
	if r.First.IsZero() {
		r.First = unixNano(t)
	}
	r.Pool.Requests += requests
	r.Pool.Judged += c.Judged
	r.Pool.Solved += c.Solved
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
func (st *State) endRound(l *Limits, now time.Time) *release.Event {
	f := release.Finding{
		Signal: release.Probes, Value: float64(st.Round.Good) / float64(st.Round.Done), Limit: l.SuccessRate.Float64(),
		Count: st.Round.Good, Of: st.Round.Done, Span: now.Sub(st.Since),
	}
	if l.SuccessRate.Compare(st.Round.Good, st.Round.Done) < 0 {
		return st.trip(l, now, f)
	}
	ev := &release.Event{T: now, From: release.HalfOpen, To: release.Closed, Finding: f}
	ev.First, ev.Last = st.extent(&f, now)
	st.spans.drop(l, st.Since.UnixNano())
	st.enter(release.Closed, now)
	st.Recoveries++
	return ev
}
