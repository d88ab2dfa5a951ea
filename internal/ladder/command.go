package ladder

import (
	"fmt"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Verb is what a person tells a release to do.
type Verb uint8

// The verbs.
const (
	DoPause Verb = iota
	DoResume
	DoApprove
	DoRollBack
	DoClearLock
	DoAcceptConfig
	DoRestart
	// DoSwap notes that the canary was made the stable of the versions document
	// after it had completed: nobody is on the canary any more.
	DoSwap
)

var verbNames = [...]string{"pause", "resume", "approve", "rollback", "clear_lock", "accept_config", "restart", "swap"}

// String returns the verb's name in files and output.
func (v Verb) String() string { return nameOf(v, verbNames[:], "verb") }

// MarshalText implements [encoding.TextMarshaler].
func (v Verb) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (v *Verb) UnmarshalText(b []byte) error { return parseName(v, verbNames[:], b) }

// Command is a person's word, with everything that [Apply] needs to do the
// same again in a replay.
type Command struct {
	Verb   Verb      `json:"verb"`
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	// What an approval is for; zero for the other verbs.
	Attempt int    `json:"attempt,omitempty"`
	Step    int    `json:"step,omitempty"` // index into Plan.Steps
	Digest  string `json:"digest,omitempty"`
	// Weight is the target's as read just before, for a rollback of a weight
	// that no release has put there; nil where nobody read it.
	Weight *release.Weight `json:"weight,omitempty"`
}

// Apply carries out a command on the state. last is the decision that the
// person was shown, for an approval. The decision that comes back is one to
// carry out for DoRollBack, and the zero Decision for all others. A command
// that makes no sense where the release stands is an error, one of this
// package's, never a silent no-op.
func Apply(p *Plan, st *State, last *Decision, c Command) (Decision, error) {
	switch c.Verb {
	case DoPause:
		return Decision{}, Pause(st, c.At)
	case DoResume:
		return Decision{}, Resume(st, c.At)
	case DoApprove:
		return Decision{}, Approve(st, last, Approval{Attempt: c.Attempt, Step: c.Step, Digest: c.Digest, By: c.By, At: c.At})
	case DoRollBack:
		was := st.Weight
		if st.Stage == NotStarted {
			if st.Weight = p.Steps[0].Weight; c.Weight != nil { // nobody could read it: it may be anything
				st.Weight = *c.Weight
			}
		}
		d, err := RollBack(p, st, c.At)
		if err != nil {
			st.Weight = was
		}
		return d, err
	case DoClearLock:
		return Decision{}, ClearLock(st, c.At)
	case DoAcceptConfig:
		return Decision{}, AcceptConfig(p, st)
	case DoRestart:
		Restart(st)
		return Decision{}, nil
	case DoSwap:
		return Decision{}, Swap(st, c.At)
	}
	return Decision{}, fmt.Errorf("unknown command %s", c.Verb)
}

// Swap notes that the canary is the stable of the versions document now: its
// weight is 0 from here on, and the release stays complete.
func Swap(st *State, now time.Time) error {
	if st.Stage != Completed {
		return ErrNotComplete
	}
	st.Weight = release.Weight{Ring: st.Weight.Ring}
	st.enterStep(st.Step, now) // the share seen so far was of another weight
	return nil
}

func nameOf[T ~uint8](v T, names []string, kind string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", kind, uint8(v))
}

func parseName[T ~uint8](dst *T, names []string, b []byte) error {
	for i, name := range names {
		if name == string(b) {
			*dst = T(i)
			return nil
		}
	}
	return fmt.Errorf("unknown name %q, want one of %q", b, names)
}
