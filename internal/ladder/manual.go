package ladder

import (
	"errors"
	"slices"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Errors of the commands that a person gives. None of them is a silent no-op.
var (
	ErrNotStarted   = errors.New("no release is under way")
	ErrUnfinished   = errors.New("the rollback has not been read back as 0 yet: give rollback again first")
	ErrNotLocked    = errors.New("the release is not locked")
	ErrNotAwaiting  = errors.New("the step does not wait for an approval: its other gates have not passed")
	ErrOtherStep    = errors.New("the approval is for another attempt, step or configuration")
	ErrPaused       = errors.New("the release is paused already")
	ErrNotPaused    = errors.New("the release is not paused")
	ErrConfigIsSame = errors.New("the configuration has not changed")
	ErrNotComplete  = errors.New("the release is not complete")
	ErrOffLadder    = errors.New("the weight in force is no step of the changed configuration: roll back first")
)

// RollBack takes the canary's weight to 0 for a person, from every state, and
// keeps it there until ClearLock. It returns the decision to carry out. It is
// refused only where no release was ever begun and the weight is 0.
func RollBack(p *Plan, st *State, now time.Time) (Decision, error) {
	if st.Stage == NotStarted {
		if st.Weight.IsZero() && st.Pending.Move == release.Hold && st.Attempt == 0 {
			return Decision{}, ErrNotStarted
		}
		st.Candidate, st.Digest, st.Attempt = p.Candidate, p.Digest, max(st.Attempt, 1)
	}
	breaker.Trip(&st.Breaker, now, true)
	st.Stage = RolledBack
	d := Decision{T: now}
	d.write(p, st, release.RollBackMove, release.Weight{Ring: p.Steps[0].Weight.Ring}, WhyManual)
	return d, nil
}

// ClearLock ends a lock, a failed gate or a manual rollback: the next Decide
// starts a new attempt at the first step with no evidence carried over. A
// rollback must have been read back as 0 before.
func ClearLock(st *State, now time.Time) error {
	if !st.Locked() {
		return ErrNotLocked
	}
	if st.Pending.rollback() {
		return ErrUnfinished
	}
	breaker.Clear(&st.Breaker, now)
	st.Stage, st.Latched, st.Pending = NotStarted, 0, Pending{}
	st.Barred = slices.DeleteFunc(slices.Clone(st.Barred), func(c string) bool { return c == st.Candidate })
	st.enterStep(0, now)
	st.Attempt++
	return nil
}

// Pause stops the ladder's clock. Breaker and rollback go on.
func Pause(st *State, now time.Time) error {
	if st.Paused {
		return ErrPaused
	}
	st.Paused, st.PausedAt = true, now
	return nil
}

// Resume ends a pause. Its time never counts, even if its windows are shown
// only afterwards.
func Resume(st *State, now time.Time) error {
	if !st.Paused {
		return ErrNotPaused
	}
	from := st.PausedAt
	st.Paused, st.PausedAt = false, time.Time{}
	st.Pauses = append(st.Pauses, Pausing{From: from, To: now})
	if from.Before(st.At) {
		from = st.At
	}
	st.PausedFor += max(now.Sub(from), 0)
	return nil
}

// pausedDuring reports whether the clock stood in any part of the window, and
// forgets the pauses that no later window can lie in.
func (st *State) pausedDuring(w *release.Window) bool {
	kept := st.Pauses[:0]
	paused := st.Paused && w.End().After(st.PausedAt)
	for _, x := range st.Pauses {
		paused = paused || w.T.Before(x.To) && w.End().After(x.From)
		if w.T.Before(x.To) {
			kept = append(kept, x)
		}
	}
	st.Pauses = kept
	return paused
}

// AcceptConfig lets a release go on under a changed configuration. Approvals
// given under the old one lapse. A weight that is no step of the changed
// ladder is refused: nobody could say which step comes next.
func AcceptConfig(p *Plan, st *State) error {
	switch st.Digest {
	case "":
		return ErrNotStarted
	case p.Digest:
		return ErrConfigIsSame
	}
	step := 0 // where a weight of 0 goes on from
	if !st.Weight.IsZero() && st.Stage != NotStarted {
		step = slices.IndexFunc(p.Steps, func(s Step) bool { return s.Weight.Same(st.base()) })
		if step < 0 {
			return ErrOffLadder
		}
	}
	st.Step, st.Digest, st.Approval = step, p.Digest, nil
	st.reconsider(p)
	return nil
}

// reconsider forgets a step forward that was asked for under the configuration
// before and is not the next one of this: should it arrive, it is somebody
// else's weight. Probes are asked for at the first step of this one.
func (st *State) reconsider(p *Plan) {
	next := 0
	switch st.Pending.Move {
	case release.Probe:
		st.Pending.Weight = p.Steps[0].Weight
		return
	case release.Advance:
		next = st.Step + 1
	case release.Start:
	case release.Adjust:
		if st.raising() {
			st.forget()
		}
		return
	default:
		return
	}
	if next >= len(p.Steps) || !p.Steps[next].Weight.Same(st.Pending.Weight) {
		st.Pending = Pending{}
	}
}

// Approve records a person's word for the step that last, the decision the
// person was shown, waits at.
func Approve(st *State, last *Decision, a Approval) error {
	if last.Move != release.AwaitApproval {
		return ErrNotAwaiting
	}
	if a.Attempt != st.Attempt || a.Step != st.Step || a.Digest != st.Digest {
		return ErrOtherStep
	}
	a.Shown = last.Verdict
	st.Approval = &a
	return nil
}

// Restart gives up an unfinished release for the plan's candidate. The weight
// in force is kept as it was last read back, and so is a rollback that is not
// finished.
func Restart(st *State) {
	pending := st.Pending
	*st = State{Weight: st.Weight, Stable: st.Stable, Barred: st.Barred}
	if pending.rollback() {
		st.Pending = pending
	}
}
