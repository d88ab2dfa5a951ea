package throttle

import (
	"fmt"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Lane is one of the two gates. Each has its own places and its own failure
// window, so that neither long prompts nor their failures stop short ones.
type Lane uint8

// The two lanes.
const (
	Short Lane = iota
	Long
)

// Lanes is the number of lanes.
const Lanes = 2

var laneNames = [Lanes]string{"short", "long"}

// String returns the lane's name in output.
func (l Lane) String() string {
	if int(l) < Lanes {
		return laneNames[l]
	}
	return fmt.Sprintf("lane(%d)", uint8(l))
}

// GatesPolicy says how many calls may be in flight at once.
type GatesPolicy struct {
	Short, Long int           // places in each lane; below 1 counts as 1
	SplitTokens int64         // prompts of more tokens are long
	Breaker     BreakerPolicy // of each lane
}

// SplitTokens is the published split: prompts of more than 32,000 tokens are
// long.
const SplitTokens = 32_000

// DefaultGates returns the published policy: 48 short calls, 12 long ones,
// split at 32,000 prompt tokens.
func DefaultGates() GatesPolicy {
	return GatesPolicy{Short: 48, Long: 12, SplitTokens: SplitTokens, Breaker: DefaultBreaker()}
}

// Lane returns the lane of a prompt.
func (p GatesPolicy) Lane(promptTokens int64) Lane {
	if promptTokens > p.SplitTokens {
		return Long
	}
	return Short
}

// Refusal says why a call may not go out.
type Refusal uint8

// The reasons.
const (
	Admitted Refusal = iota // it may
	Full                    // the lane has no place left
	Broken                  // the lane's breaker is OPEN, or HALF_OPEN with its probes under way
)

var refusalNames = [...]string{"admitted", "full", "breaker"}

// String returns the reason's name in output.
func (r Refusal) String() string {
	if int(r) < len(refusalNames) {
		return refusalNames[r]
	}
	return fmt.Sprintf("refusal(%d)", uint8(r))
}

// Gates are the two lanes of a client.
type Gates struct {
	policy GatesPolicy
	lanes  [Lanes]lane
}

type lane struct {
	places   int
	inFlight int
	breaker  *Breaker
}

// Pass is a call under way; it is given back to [Gates.Leave].
type Pass struct {
	Lane   Lane
	ticket Ticket
}

// Probe reports whether the call is a trial of the lane's breaker.
func (p Pass) Probe() bool { return p.ticket.probe }

// NewGates returns gates with nothing in flight and closed breakers.
func NewGates(p GatesPolicy) *Gates {
	g := &Gates{policy: p}
	for l, places := range [Lanes]int{Short: p.Short, Long: p.Long} {
		g.lanes[l] = lane{places: max(places, 1), breaker: NewBreaker(p.Breaker)}
	}
	return g
}

// Enter asks for a place for a call. If it is admitted, the pass must be given
// to Leave exactly once, however the call ends. A call that finds its lane full
// may ask again when one has left. A call that the breaker refuses should fail
// at once, with [LaneState.Wait] as what to tell its caller: calls that wait
// for the breaker come back together when it closes, and open it again.
func (g *Gates) Enter(now time.Time, promptTokens int64) (Pass, Refusal) {
	which := g.policy.Lane(promptTokens)
	l := &g.lanes[which]
	if l.inFlight >= l.places {
		return Pass{}, Full
	}
	ticket, ok := l.breaker.Allow(now)
	if !ok {
		return Pass{}, Broken
	}
	l.inFlight++
	return Pass{Lane: which, ticket: ticket}, Admitted
}

// Leave gives the place back and says how the call ended.
func (g *Gates) Leave(now time.Time, p Pass, o Outcome) {
	l := &g.lanes[p.Lane]
	l.inFlight--
	l.breaker.Done(now, p.ticket, o)
}

// Begun says that the answer to a call has begun well. A trial of the breaker has
// succeeded by that, and need not be waited for to its end, which takes minutes. The
// call keeps its place: the pass that is returned is given to Leave in place of p.
func (g *Gates) Begun(now time.Time, p Pass) Pass {
	p.ticket = g.lanes[p.Lane].breaker.begun(now, p.ticket)
	return p
}

// LaneState is what a lane is doing.
type LaneState struct {
	Phase    release.Phase
	Wait     time.Duration // for how long nothing goes out; 0 unless OPEN
	InFlight int
	Places   int
	Opened   int64 // how often its breaker has opened
}

// State returns what a lane is doing at now.
func (g *Gates) State(which Lane, now time.Time) LaneState {
	l := &g.lanes[which]
	return LaneState{Phase: l.breaker.Phase(now), Wait: l.breaker.Wait(now), InFlight: l.inFlight, Places: l.places, Opened: l.breaker.Opened()}
}
