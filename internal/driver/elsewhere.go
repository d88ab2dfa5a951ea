package driver

import (
	"fmt"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/release"
)

// MovedTargetError says that the configuration names another target than the
// one at which the release's weight was read back: what it holds says nothing
// of where the canary is, and a 0 written there takes it nowhere.
type MovedTargetError struct {
	Was, Is string
}

// Error implements error.
func (e *MovedTargetError) Error() string {
	return fmt.Sprintf("the release's weight was last read back at %s, and the configuration names %s: put the target back, or say that it is the same place with canaryctl resume --accept-config", e.Was, e.Is)
}

// elsewhere returns a *MovedTargetError while a weight is out, or being written,
// at another target than the configuration's.
func (s *session) elsewhere() error {
	l, is := &s.rel.Ladder, s.d.o.Target.String()
	if s.rel.Target == "" || s.rel.Target == is || l.Weight.IsZero() && l.Pending.Move == release.Hold {
		return nil
	}
	return &MovedTargetError{Was: s.rel.Target, Is: is}
}

// acceptTarget takes a person's word for the configuration's target; false: it
// is the one that it was.
func (s *session) acceptTarget() (bool, error) {
	if s.elsewhere() == nil {
		return false, nil
	}
	return true, s.append(&journal.Entry{Kind: journal.Moved, Target: s.d.o.Target.String()})
}
