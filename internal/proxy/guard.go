package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/canaryctl/canaryctl/internal/throttle"
)

// guard is the gates of one upstream, for many goroutines. Who finds a lane
// full waits in line for a bounded time.
type guard struct {
	now       func() time.Time
	place     time.Duration
	noBreaker bool

	mu      sync.Mutex
	gates   *throttle.Gates
	lanes   func(tokens int64) throttle.Lane
	line    [throttle.Lanes][]chan struct{}
	refused [throttle.Broken + 1]int64 // by reason
}

func newGuard(o *Options) *guard {
	policy := o.Gates
	if policy.Short <= 0 {
		policy.Short = unbounded
	}
	if policy.Long <= 0 {
		policy.Long = unbounded
	}
	return &guard{now: o.Now, place: o.Limits.Place, noBreaker: o.NoBreaker, gates: throttle.NewGates(policy), lanes: policy.Lane}
}

// unbounded is more places than there are requests.
const unbounded = 1 << 30

// admission is a call that was let through, or why it was not.
type admission struct {
	guard   *guard
	pass    throttle.Pass
	refusal throttle.Refusal
	state   throttle.LaneState // of the lane, with this call in it
	err     error              // the user went away while it waited
}

// enter asks for a place for a call, and waits for one where the lane is full.
func (g *guard) enter(ctx context.Context, tokens int64) admission {
	a, turn := g.try(tokens, false)
	if a.refusal != throttle.Full {
		return a
	}
	end := time.NewTimer(g.place)
	defer end.Stop()
	for a.refusal == throttle.Full {
		select {
		case <-turn:
			a, turn = g.try(tokens, true)
		case <-end.C:
			g.leaveLine(tokens, turn)
			g.mu.Lock()
			g.refused[throttle.Full]++
			g.mu.Unlock()
			return a
		case <-ctx.Done():
			g.leaveLine(tokens, turn)
			a.err = ctx.Err()
			return a
		}
	}
	return a
}

// try asks once. Who comes anew stands behind those that wait; who was called
// stands before them.
func (g *guard) try(tokens int64, called bool) (a admission, turn chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a.guard = g
	lane, now := g.lanes(tokens), g.now()
	if a.refusal = throttle.Full; called || len(g.line[lane]) == 0 {
		a.pass, a.refusal = g.gates.Enter(now, tokens)
	}
	a.state = g.gates.State(lane, now)
	switch {
	case a.refusal == throttle.Broken:
		g.refused[throttle.Broken]++
		g.call(lane) // the next one is told as well
	case a.refusal == throttle.Full && called:
		turn = make(chan struct{})
		g.line[lane] = append([]chan struct{}{turn}, g.line[lane]...)
	case a.refusal == throttle.Full:
		turn = make(chan struct{})
		g.line[lane] = append(g.line[lane], turn)
	}
	return a, turn
}

// call lets the first in line ask again.
func (g *guard) call(lane throttle.Lane) {
	if len(g.line[lane]) > 0 {
		close(g.line[lane][0])
		g.line[lane] = g.line[lane][1:]
	}
}

// leaveLine takes one that has waited long enough out of the line. If it was
// called just now the next one is called in its place.
func (g *guard) leaveLine(tokens int64, turn chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	lane := g.lanes(tokens)
	for i, other := range g.line[lane] {
		if other == turn {
			g.line[lane] = append(g.line[lane][:i:i], g.line[lane][i+1:]...)
			return
		}
	}
	g.call(lane)
}

// begun says that an answer has begun well. Where the call is a trial of the
// breaker it has succeeded by that; it keeps its place.
func (a *admission) begun() {
	if a.guard == nil || !a.pass.Probe() {
		return
	}
	a.guard.mu.Lock()
	defer a.guard.mu.Unlock()
	a.pass = a.guard.gates.Begun(a.guard.now(), a.pass)
}

// leave gives the place back.
func (a *admission) leave(o throttle.Outcome) {
	g := a.guard
	if g == nil || a.refusal != throttle.Admitted {
		return
	}
	if g.noBreaker {
		o = throttle.Outcome{Cancelled: true} // nothing is to be learnt from it
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gates.Leave(g.now(), a.pass, o)
	g.call(a.pass.Lane)
	a.guard = nil
}

// outcomeOf says how a call went, as far as its head tells.
func outcomeOf(ctx context.Context, resp *http.Response, err error, now time.Time) throttle.Outcome {
	if err != nil { // what this machine has too little of says nothing of the upstream
		return throttle.Outcome{Cancelled: ctx.Err() != nil || noSocket(err), TimedOut: timedOut(err)}
	}
	o := throttle.Outcome{Status: resp.StatusCode}
	if o.Failed() {
		o.RetryAfter, o.RetryAfterKnown = throttle.HeaderWait(resp.Header.Get, now)
	}
	return o
}

func timedOut(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}
