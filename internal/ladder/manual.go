package ladder

import (
	"errors"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Errors of the commands that a person gives. None of them is a silent no-op.
var (
	ErrNotStarted   = errors.New("no release is under way")
	ErrNotLocked    = errors.New("the release is not locked")
	ErrNotAwaiting  = errors.New("the step does not wait for an approval: its other gates have not passed")
	ErrOtherStep    = errors.New("the approval is for another attempt, step or configuration")
	ErrPaused       = errors.New("the release is paused already")
	ErrNotPaused    = errors.New("the release is not paused")
	ErrConfigIsSame = errors.New("the configuration has not changed")
)

// RollBack takes the canary's weight to 0 for a person, from every state, and
// keeps it there until ClearLock. It returns the decision to carry out.
func RollBack(p *Plan, st *State, now time.Time) (Decision, error) {
	if st.Stage == NotStarted {
		return Decision{}, ErrNotStarted
	}
	breaker.Trip(&st.Breaker, now, true)
	st.Stage = Failed
	d := Decision{T: now}
	return d.write(p, st, release.RollBackMove, release.Weight{Ring: p.Steps[0].Weight.Ring}, WhyManual), nil
}

// ClearLock ends a lock, a failed gate or a manual rollback: the next Decide
// starts a new attempt at the first step with no evidence carried over.
func ClearLock(st *State, now time.Time) error {
	if st.Stage != Failed && !st.Breaker.Locked {
		return ErrNotLocked
	}
	attempt := st.Attempt
	breaker.Clear(&st.Breaker, now)
	st.Stage, st.Latched, st.Pending = NotStarted, 0, Pending{}
	st.enterStep(0, now)
	st.Attempt = attempt + 1
	return nil
}

// Pause stops the ladder's clock. Breaker and rollback go on.
func Pause(st *State) error {
	if st.Paused {
		return ErrPaused
	}
	st.Paused = true
	return nil
}

// Resume ends a pause.
func Resume(st *State) error {
	if !st.Paused {
		return ErrNotPaused
	}
	st.Paused = false
	return nil
}

// AcceptConfig lets a release go on under a changed configuration. Approvals
// given under the old one lapse.
func AcceptConfig(p *Plan, st *State) error {
	if st.Digest == p.Digest {
		return ErrConfigIsSame
	}
	st.Digest, st.Approval = p.Digest, nil
	return nil
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
// in force is kept as it was last read back.
func Restart(st *State) {
	*st = State{Weight: st.Weight, Stable: st.Stable}
}
