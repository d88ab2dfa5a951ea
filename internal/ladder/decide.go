package ladder

import (
	"slices"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Decide folds the evidence not yet seen into the state and says what to do
// next. It is the only place where a release is judged.
//
// One call folds the unseen windows in order and stops at the first change
// that needs a write or starts an attempt anew; it takes at most one step
// forward, and never one in the instant in which the step before was read
// back. A write counts only when a later Evidence.Observed shows it; until
// then Decide asks for it again: a step forward as long as nothing forbids it,
// everything else whatever comes. HALF_OPEN is entered at now, never for a past
// time.
func Decide(p *Plan, st *State, ev Evidence, now time.Time) (d Decision) {
	d.T = now
	st.decide(p, &d, &ev, now)
	return d
}

// decide fills in the decision: one is large, and is made in place.
func (st *State) decide(p *Plan, d *Decision, ev *Evidence, now time.Time) {
	st.setBack(p, now)
	drift := st.observe(p, ev.Observed)
	for i := range ev.Stable {
		st.Stable.add(&ev.Stable[i])
	}
	if st.Pending.rollback() {
		d.again(p, st) // an unfinished rollback comes before everything
		return
	}
	over := st.Stage != NotStarted && st.Candidate != p.Candidate
	if over && (st.unfinished() || p.Candidate == "") { // no candidate is not another one
		d.hold(p, st, WhyOtherCandidate)
		return
	}
	if ev.Unasked && st.Pending.Move == release.Hold && (over || st.Stage == NotStarted) {
		d.hold(p, st, WhyFailed)
		return
	}
	if over {
		*st = State{Stable: st.Stable, Barred: st.barred()}
		drift = st.observe(p, ev.Observed)
	}
	if st.Stage == NotStarted {
		st.begin(p, d, ev, drift, now)
		return
	}
	if event := st.fold(p, ev); event != nil {
		st.after(p, d, event)
		return
	}
	if ev.More {
		d.hold(p, st, WhyMore)
		return
	}
	if event := st.time(p, now, drift || !ev.Observed.Known); event != nil {
		st.after(p, d, event)
		return
	}
	if st.Pending.Move != release.Hold && !drift {
		if why, held := st.withheld(p, d, now); held {
			d.hold(p, st, why)
			return
		}
		d.again(p, st)
		return
	}
	st.climb(p, d, ev, drift, now)
}

// mostBarred bounds how many candidates are remembered as given up by a person.
const mostBarred = 20

// barred are the candidates that a person has rolled back and not cleared: the
// next release is another's, and the old one does not come back by itself when
// the configuration does.
func (st *State) barred() []string {
	out := st.Barred
	if st.Stage == RolledBack && !slices.Contains(out, st.Candidate) {
		out = append(slices.Clone(out), st.Candidate)
	}
	return out[max(0, len(out)-mostBarred):]
}

// unfinished reports whether another candidate would be in the way: it has to
// wait for the end of this release, or for a person who gives it up. A locked
// or failed one is not over: nobody has looked yet.
func (st *State) unfinished() bool {
	return st.Stage != RolledBack && (st.Stage != Completed || st.Breaker.Phase != release.Closed)
}

// observe takes a reading of the weight: it completes a pending write, or
// finds that somebody else has moved the weight.
func (st *State) observe(p *Plan, o Observed) (drift bool) {
	if !o.Known {
		return false
	}
	switch {
	case st.Stage == NotStarted && st.Pending.Move == release.Hold:
		st.Weight = o.Weight // up to the first step it is adopted as the start
		return o.Weight.Above(p.Steps[0].Weight)
	case st.Pending.Move != release.Hold && o.Weight.Same(st.Pending.Weight):
		st.confirm(p, o)
		return false
	}
	return !o.Weight.Same(st.Weight)
}

// confirm completes the pending write: from its read-back on, windows count
// and holds run.
func (st *State) confirm(p *Plan, o Observed) {
	move := st.Pending.Move
	st.Pending = Pending{}
	wasZero := st.Weight.IsZero()
	st.Weight = o.Weight
	switch move {
	case release.Start:
		st.Stage, st.Serving = Climbing, o.At
		st.climbTo(p, 0, o.At)
	case release.Advance:
		st.climbTo(p, st.Step+1, o.At)
	case release.Probe:
		st.Serving = o.At
		st.enterStep(0, o.At)
	case release.Adjust:
		st.settled(o.At)
	case release.RollBackMove, release.Lock:
		if !wasZero {
			st.enterStep(st.Step, o.At)
		}
		st.CoolFor = o.At.Add(p.limits(0).Cooldown - 2*st.Span)
	}
}

// climbTo enters a step from below; at the last one stable's cost of the day
// before becomes the reference.
func (st *State) climbTo(p *Plan, step int, at time.Time) {
	st.enterStep(step, at)
	if step == len(p.Steps)-1 {
		st.CostRef, _ = st.Stable.mean(at)
	}
}

// withheld names what keeps a step forward that was asked for from being asked
// for again. It may have been done all the same: then it is read back.
func (st *State) withheld(p *Plan, d *Decision, now time.Time) (Why, bool) {
	until, frozen := p.Frozen(now)
	switch {
	case st.Pending.Move == release.Probe, st.Pending.Move == release.Adjust && !st.raising():
		return WhyNone, false
	case st.Digest != p.Digest:
		return WhyConfigChanged, true
	case st.Paused:
		return WhyPaused, true
	case frozen:
		d.Until = until
		return WhyFrozen, true
	}
	return WhyNone, false
}

// begin starts a release, unless something forbids it. A first step that was
// asked for is one of the configuration that it was asked for under.
func (st *State) begin(p *Plan, d *Decision, ev *Evidence, drift bool, now time.Time) {
	st.Candidate, st.Attempt = p.Candidate, max(st.Attempt, 1)
	if slices.Contains(st.Barred, p.Candidate) {
		st.Stage, st.Digest = RolledBack, p.Digest
		d.hold(p, st, WhyFailed)
		return
	}
	if st.Pending.Move == release.Hold {
		st.Digest = p.Digest
	}
	if drift {
		d.hold(p, st, WhyDrift)
		return
	}
	if why, held := st.withheld(p, d, now); held {
		d.hold(p, st, why)
		return
	}
	if st.Pending.Move != release.Hold {
		d.again(p, st)
		return
	}
	if !ev.Observed.Known {
		d.hold(p, st, WhyUnread)
		return
	}
	if ev.SourceFailed {
		d.hold(p, st, WhySourceFailed)
		return
	}
	d.write(p, st, release.Start, p.Steps[0].Weight, WhyStart)
}

// fold feeds the unseen windows to breaker and gate until the breaker
// changes.
func (st *State) fold(p *Plan, ev *Evidence) *release.Event {
	for i := range ev.Windows {
		w, l := &ev.Windows[i], p.limits(st.limitsStep())
		if l.AgainstStable && !w.Has(release.HasControl) {
			with := *w
			control(&with, ev.Stable)
			w = &with
		}
		if !w.T.After(st.Seen) && !st.Seen.IsZero() {
			st.amend(l, w)
			continue
		}
		st.Seen, st.Span = w.T, w.Span
		st.share(&p.Share, w, ev.Stable)
		if w.T.Before(st.Serving) || st.Pending.Move == release.Probe {
			continue // from before the weight was read back: neither probe nor evidence
		}
		if event := st.take(p, w); event != nil {
			return event
		}
	}
	return nil
}

// take feeds one window of canary traffic.
func (st *State) take(p *Plan, w *release.Window) *release.Event {
	l := p.limits(st.limitsStep())
	if ref := st.reference(p, w); ref > 0 {
		priced := *w
		priced.Cost, priced.Known = w.CostMean/ref, w.Known|release.HasCost
		w = &priced
	}
	if w.Total > 0 {
		st.supply(l, w)
		if st.Breaker.Phase == release.Closed && st.Stage == Climbing && !w.T.Before(st.At) {
			if !st.pausedDuring(w) {
				st.Covered += w.Span
			}
			st.gather(w, l.LabelLag)
		}
	}
	event := breaker.Step(l, &st.Breaker, w)
	if event == nil {
		st.latchHits(l)
		st.heed(p, l, w)
	}
	return event
}

// limitsStep is the step whose limits hold: probes run under the first's.
func (st *State) limitsStep() int {
	if st.Breaker.Phase == release.Closed {
		return st.Step
	}
	return 0
}

func (st *State) supply(l *breaker.Limits, w *release.Window) {
	if w.Has(release.HasCost) {
		st.Supplied = st.Supplied.With(release.Cost)
	}
	latency := release.HasP99
	if l.P99ByCount {
		latency = release.HasSlow
	}
	if w.Has(latency) {
		st.Supplied = st.Supplied.With(release.P99)
	}
	if w.Known&release.StreamingFigures == 0 {
		return
	}
	streams := breaker.StreamCountsOf(w)
	for s := release.FirstStreaming; s <= release.LastStreaming; s++ {
		if streams.Of(s).Of > 0 { // a service without streams has no stream that went well
			st.Supplied = st.Supplied.With(s)
		}
	}
}

// latchHits remembers the enforced signals that were past their limit in a
// window and hold instead of rolling back.
func (st *State) latchHits(l *breaker.Limits) {
	if st.Breaker.Hits == 0 {
		return
	}
	for s := release.Signal(0); int(s) < release.Judged; s++ {
		if st.Breaker.Hits.Has(s) && enforced(l, s) && l.Rules[s].OnFail == release.HoldStep {
			st.Latched = st.Latched.With(s)
		}
	}
}

func enforced(l *breaker.Limits, s release.Signal) bool {
	m := l.Rules[s].Mode
	return m == release.Enforce || m == release.Required
}

// time does the breaker's changes by time alone: the end of a cooldown, and
// probes whose labels came in during a minute without a window. While somebody
// else has moved the weight, or nobody can read it, no probe begins.
func (st *State) time(p *Plan, now time.Time, drift bool) *release.Event {
	l := p.limits(0)
	if st.Span > 0 {
		if event := breaker.Idle(l, &st.Breaker, now.Add(-st.Span)); event != nil {
			return event
		}
	}
	if drift || now.Before(st.CoolFor) && st.Stage == Climbing {
		return nil
	}
	return breaker.Tick(l, &st.Breaker, now)
}

// after turns a transition of the breaker into a move of the ladder. A failed
// release stays where it is: the breaker goes on over what traffic there is,
// for the record alone.
func (st *State) after(p *Plan, d *Decision, event *release.Event) {
	d.Event, d.Happened, d.T = *event, true, event.T
	if st.Stage == Failed || st.Stage == RolledBack {
		d.hold(p, st, WhyFailed)
		return
	}
	switch event.To {
	case release.Open:
		move, why := release.RollBackMove, WhyTrip
		if event.Locked {
			move, why = release.Lock, WhyLocked
		}
		d.write(p, st, move, release.Weight{Ring: st.Weight.Ring}, why)
	case release.HalfOpen:
		st.Stage = Climbing
		d.write(p, st, release.Probe, p.Steps[0].Weight, WhyProbe)
	default:
		st.recover(p, d)
	}
}

// recover starts the next attempt at the first step, whose weight the probes
// already have; gate and hold start empty after the window that closed the
// breaker.
func (st *State) recover(p *Plan, d *Decision) {
	st.Attempt++
	st.Latched = 0
	at := d.Event.T.Add(st.Span)
	if at.Before(st.At) {
		at = st.At // the clock was set back: no step forward before it is where it was
	}
	st.enterStep(0, at)
	d.Move, d.Why = release.Start, WhyRecovered
	d.fill(p, st)
}

// climb judges the step's gates and moves on when they have passed.
func (st *State) climb(p *Plan, d *Decision, ev *Evidence, drift bool, now time.Time) {
	st.ripen(now.Add(-st.Span), p.limits(st.limitsStep()).LabelLag)
	_, frozen := p.Frozen(now)
	if why, done := st.standing(p, drift); done {
		if why == WhyPaused || why == WhyConfigChanged {
			if st.adapt(p, d, noRise, now) {
				return
			}
		}
		d.Overdue = why == WhyProbing && st.probesOverdue(p, now)
		d.hold(p, st, why)
		return
	}
	step := p.step(st.Step)
	d.Held = max(min(now.Sub(st.At), st.Covered), 0) // a clock may be set back
	d.Overdue = step.MaxWait > 0 && now.Sub(st.At)-st.PausedFor >= step.MaxWait
	due := !step.Gates.Has(TimeGate) || d.Held >= step.MinHold
	d.fill(p, st)
	d.Verdict = st.judge(p, d, ev.SourceFailed, due)
	st.lapse(p, d.Verdict, now)
	if due && d.Verdict == release.Fail && step.Gates.Has(MetricGate) {
		if st.failGate(p, d) {
			return
		}
	}
	if st.adapt(p, d, d.rise(ev, step, frozen), now) {
		return
	}
	if why, held := st.holding(p, d, step, due, now); held {
		d.hold(p, st, why)
		return
	}
	if !ev.Observed.Known {
		d.hold(p, st, WhyUnread)
		return
	}
	if st.Step >= len(p.Steps)-1 {
		st.Stage = Completed
		d.Move, d.Why = release.Complete, WhyComplete
		return
	}
	d.write(p, st, release.Advance, p.Steps[st.Step+1].Weight, WhyPassed)
}

// standing names what keeps the ladder still whatever the evidence says.
func (st *State) standing(p *Plan, drift bool) (Why, bool) {
	switch {
	case drift:
		return WhyDrift, true
	case st.Stage == Failed, st.Stage == RolledBack:
		return WhyFailed, true
	case st.Breaker.Phase == release.Open && st.Breaker.Locked:
		return WhyLocked, true
	case st.Breaker.Phase == release.Open:
		return WhyCooldown, true
	case st.Breaker.Phase == release.HalfOpen:
		return WhyProbing, true
	case st.Stage == Completed:
		return WhyCompleted, true
	case st.Digest != p.Digest:
		return WhyConfigChanged, true
	case st.Paused:
		return WhyPaused, true
	}
	return WhyNone, false
}

// probesWait is how many times the least that a round of probes takes it may
// take before somebody is told, where max_wait_min says nothing.
const probesWait = 10

// probesOverdue reports whether the probes have been waiting for traffic or
// labels for longer than max_wait_min of the first step.
func (st *State) probesOverdue(p *Plan, now time.Time) bool {
	l, wait := p.limits(0), p.step(0).MaxWait
	if wait == 0 {
		wait = l.LabelLag + probesWait*time.Duration(l.Trials)*st.Span
	}
	return wait > 0 && now.Sub(st.Breaker.Since) >= wait
}

// holding names the first of the holds that apply, in the order in which a
// person would have to clear them; approval comes last.
func (st *State) holding(p *Plan, d *Decision, step *Step, due bool, now time.Time) (Why, bool) {
	metric, past := step.Gates.Has(MetricGate), st.throttling(&step.Limits)
	switch {
	case metric && d.Verdict == release.Fail:
		return WhyFailing, true
	case metric && d.Verdict == release.Error:
		return WhySourceFailed, true
	case d.Off:
		return WhyMismatch, true
	case st.throttled(p):
		return WhyThrottled, true
	case past != 0: // though the share may be as low as it gets
		d.Throttled = past
		return WhyThrottled, true
	case !due:
		return WhyTime, true
	case metric && d.Verdict == release.NoData:
		return WhyNoData, true
	case metric && d.Verdict == release.Insufficient:
		return WhyInsufficient, true
	case !now.After(st.At):
		return WhyTime, true
	}
	if until, frozen := p.Frozen(now); frozen {
		d.Until = until
		return WhyFrozen, true
	}
	if step.Gates.Has(ApprovalGate) && st.Approval == nil {
		return WhyApproval, true
	}
	return WhyNone, false
}

// lapse forgets a person's word that no longer stands. It stands for this
// attempt, step and configuration, until the timeout, and until the verdict is
// once worse than the one shown.
func (st *State) lapse(p *Plan, v release.Verdict, now time.Time) {
	a := st.Approval
	if a == nil {
		return
	}
	if a.Attempt != st.Attempt || a.Step != st.Step || a.Digest != p.Digest || v != release.Error && v.Outranks(a.Shown) ||
		p.ApprovalTimeout > 0 && now.Sub(a.At) >= p.ApprovalTimeout {
		st.Approval = nil
	}
}

// failGate rolls back for good, unless the failing signals are configured to
// hold or to throttle.
func (st *State) failGate(p *Plan, d *Decision) bool {
	l := p.limits(st.Step)
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if v.Needed && v.Verdict == release.Fail && l.Rules[v.Finding.Signal].OnFail == release.RollBack {
			st.Stage = Failed
			d.Finding = v.Finding
			d.write(p, st, release.Lock, release.Weight{Ring: st.Weight.Ring}, WhyGateFailed)
			return true
		}
	}
	return false
}
