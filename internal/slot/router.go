package slot

import (
	"fmt"
	"math/big"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Set is a set of user ids or segments.
type Set map[string]struct{}

// SetOf returns the set of the names.
func SetOf(names ...string) Set {
	set := make(Set, len(names))
	for _, n := range names {
		set[n] = struct{}{}
	}
	return set
}

// Has reports whether name is in the set; the nil set is empty.
func (s Set) Has(name string) bool {
	_, ok := s[name]
	return ok
}

// Why is what an answer rests on.
type Why uint8

// The reasons, in the order in which they are looked at: the first that
// applies decides.
const (
	ExcludedUser    Why = iota // the user id is on the exclude list
	ExcludedSegment            // the segment is on the exclude list
	Off                        // weight 0: nobody is on the canary, include list or not
	IncludedUser               // the user id is on the include list
	BySlot                     // the slot, against the slots that the weight takes
)

var whyNames = [...]string{"excluded_user", "excluded_segment", "weight_zero", "included_user", "slot"}

// String returns the reason's name in output.
func (w Why) String() string {
	if int(w) < len(whyNames) {
		return whyNames[w]
	}
	return fmt.Sprintf("why(%d)", uint8(w))
}

// MarshalText implements [encoding.TextMarshaler].
func (w Why) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (w *Why) UnmarshalText(b []byte) error {
	for i, name := range whyNames {
		if name == string(b) {
			*w = Why(i)
			return nil
		}
	}
	return fmt.Errorf("unknown reason %q", b)
}

// Answer is where a user goes, and why.
type Answer struct {
	Arm  release.Arm `json:"arm"`
	Slot int64       `json:"slot"`
	Why  Why         `json:"why"`
}

// Router holds the rules of one service. Ring must be positive; the sets may
// be nil.
type Router struct {
	Ring            int64
	ExcludeUsers    Set
	ExcludeSegments Set
	IncludeUsers    Set
}

// Route returns the user's arm at a weight. A segment of "" is none, and is
// never excluded. A weight on another ring (basis points of a gateway) is
// rounded half to even onto the router's.
func (r *Router) Route(user, segment string, weight release.Weight) Answer {
	a := Answer{Arm: release.Stable, Slot: Of(user, r.Ring)}
	below := r.slots(weight)
	switch {
	case r.ExcludeUsers.Has(user):
		a.Why = ExcludedUser
	case segment != "" && r.ExcludeSegments.Has(segment):
		a.Why = ExcludedSegment
	case weight.IsZero():
		a.Why = Off
	case r.IncludeUsers.Has(user):
		a.Arm, a.Why = release.Canary, IncludedUser
	default:
		a.Why = BySlot
		if a.Slot < below {
			a.Arm = release.Canary
		}
	}
	return a
}

// slots returns the slots of the router's ring that a weight takes.
func (r *Router) slots(w release.Weight) int64 {
	switch w.Ring {
	case r.Ring:
		return w.Slots
	case 0:
		return 0
	}
	share := big.NewRat(w.Slots, w.Ring)
	return roundHalfEven(share.Mul(share, new(big.Rat).SetInt64(r.Ring)))
}
