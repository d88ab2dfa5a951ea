package throttle

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// BreakerPolicy says when a client stops calling and how it starts again.
// Counts below 1 count as 1.
type BreakerPolicy struct {
	Failures  int           // so many failures
	Within    time.Duration // in less than this open it
	OpenFor   time.Duration // so long no call goes out
	Probes    int           // then at most so many trial calls are in flight
	Successes int           // and so many that succeed close it
}

// DefaultBreaker returns the published policy: 20 failures in 10 s open it for
// 15 s, 3 probes in flight at most, 3 successes close it.
func DefaultBreaker() BreakerPolicy {
	return BreakerPolicy{Failures: 20, Within: 10 * time.Second, OpenFor: 15 * time.Second, Probes: 3, Successes: 3}
}

// Breaker stops calls to an upstream that keeps failing. While it is OPEN no
// call goes out. When its time is over it is HALF_OPEN: a round of trial calls
// in which no more go out than are needed to close it; the first that fails
// opens it again.
type Breaker struct {
	policy BreakerPolicy
	phase  release.Phase
	round  uint64 // rises with every change, so that calls from before one are known
	opened int64
	until  time.Time // when OPEN ends

	failures []time.Time // of this CLOSED round; a ring of policy.Failures
	next     int         // where the next failure goes

	probing int // trial calls in flight, those of earlier rounds too: they still hold the upstream
	trying  int // those of this round
	good    int // successes in this round
}

// Ticket is a call that was let through; it is given back to [Breaker.Done].
type Ticket struct {
	round uint64
	probe bool
}

// Probe reports whether the call is a trial.
func (t Ticket) Probe() bool { return t.probe }

// NewBreaker returns a closed breaker.
func NewBreaker(p BreakerPolicy) *Breaker {
	p.Failures, p.Probes, p.Successes = max(p.Failures, 1), max(p.Probes, 1), max(p.Successes, 1)
	return &Breaker{policy: p, round: 1, failures: make([]time.Time, 0, p.Failures)}
}

// Phase returns the state at now.
func (b *Breaker) Phase(now time.Time) release.Phase {
	if b.phase == release.Open && !now.Before(b.until) {
		return release.HalfOpen
	}
	return b.phase
}

// Opened returns how often it has opened.
func (b *Breaker) Opened() int64 { return b.opened }

// Wait returns how long no call will go out from now on: what is left of OPEN,
// else 0.
func (b *Breaker) Wait(now time.Time) time.Duration {
	if b.phase != release.Open {
		return 0
	}
	return max(b.until.Sub(now), 0)
}

// Allow reports whether a call may go out now. If so, the ticket must be given
// to Done exactly once, however the call ends.
func (b *Breaker) Allow(now time.Time) (Ticket, bool) {
	if b.phase == release.Open && !now.Before(b.until) {
		b.turn(release.HalfOpen)
	}
	switch b.phase {
	case release.Closed:
		return Ticket{round: b.round}, true
	case release.HalfOpen:
		if b.probing < b.policy.Probes && b.trying+b.good < b.policy.Successes {
			b.probing++
			b.trying++
			return Ticket{round: b.round, probe: true}, true
		}
	case release.Open:
	}
	return Ticket{}, false
}

// Done says how a call ended. A call of an earlier round changes nothing any
// more, and a cancelled one only gives its place back.
func (b *Breaker) Done(now time.Time, t Ticket, o Outcome) {
	if t.probe {
		b.probing--
	}
	if t.round != b.round {
		return
	}
	if t.probe {
		b.trying--
	}
	switch {
	case o.Cancelled:
	case t.probe && o.Failed():
		b.open(now)
	case t.probe:
		if b.good++; b.good >= b.policy.Successes {
			b.turn(release.Closed)
		}
	case o.Failed():
		b.fail(now)
	}
}

// begun says that a trial call's answer has begun well, which is all that a trial
// asks: answers take minutes, and who waits for their ends refuses everybody
// else for so long. The ticket that it returns takes the place of t, and changes
// nothing any more.
func (b *Breaker) begun(now time.Time, t Ticket) Ticket {
	if !t.probe {
		return t
	}
	b.Done(now, t, Outcome{Status: 200})
	return Ticket{}
}

// fail notes a failure and opens the breaker if there are enough within
// (now - Within, now].
func (b *Breaker) fail(now time.Time) {
	if len(b.failures) < cap(b.failures) {
		b.failures = append(b.failures, now)
	} else {
		b.failures[b.next] = now
	}
	b.next = (b.next + 1) % cap(b.failures)
	if len(b.failures) == cap(b.failures) && now.Sub(b.failures[b.next]) < b.policy.Within {
		b.open(now)
	}
}

func (b *Breaker) open(now time.Time) {
	b.turn(release.Open)
	b.opened++
	b.until = now.Add(b.policy.OpenFor)
}

// turn changes the state and forgets what the old one had gathered.
func (b *Breaker) turn(to release.Phase) {
	b.phase = to
	b.round++
	b.failures, b.next = b.failures[:0], 0
	b.trying, b.good = 0, 0
}
