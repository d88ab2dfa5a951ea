package watch

import (
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Action is what a person can do to a release from the view.
type Action uint8

// The actions.
const (
	Pause Action = iota
	Resume
	Approve
	RollBack
)

// Can reports whether an action makes sense on a live release as it stands. What it
// says no to, the command would refuse or do nothing about.
func (s *Snapshot) Can(a Action) bool {
	o := &s.Outcome
	climbing := s.Stage == ladder.Climbing && !o.Locked
	switch a {
	case Pause:
		return climbing && !o.Paused && o.Phase == release.Closed
	case Resume:
		return o.Paused
	case Approve:
		return climbing && o.Move == release.AwaitApproval
	}
	return !s.Exposed().IsZero() || s.Pending.Move != release.Hold || s.Swapped || s.Stage == ladder.Climbing || s.Stage == ladder.Failed
}

// Exposed is the largest share that the canary may have now: as last read back,
// as asked for, and as the target holds.
func (s *Snapshot) Exposed() release.Weight {
	most := s.Weight
	if forward(s.Pending.Move) && s.Pending.Weight.Above(most) {
		most = s.Pending.Weight
	}
	if !s.Target.At.IsZero() && s.Target.Weight.Above(most) {
		most = s.Target.Weight
	}
	return most
}
