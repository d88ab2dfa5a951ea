package throttle

import (
	"math"
	"time"
)

// Retry says how often a call is tried and how long to wait in between.
type Retry struct {
	Base     time.Duration // before the second attempt
	Factor   float64       // each further wait is so many times the one before; below 1 counts as 1
	Most     time.Duration // no wait is longer
	Jitter   float64       // waits are spread by this share to either side, from 0 to 1
	Attempts int           // in all, the first one included
}

// DefaultRetry returns the published policy: 0.35 s, doubling, at most 8 s,
// spread by 30 %, 4 attempts in all.
func DefaultRetry() Retry {
	return Retry{Base: 350 * time.Millisecond, Factor: 2, Most: 8 * time.Second, Jitter: 0.30, Attempts: 4}
}

// Next says whether to try again after attempt number attempt (from 1) ended
// with o, and how long to wait first. u is uniform in [0, 1); calls must draw
// their own, or they all come back at once.
//
// A wait is never longer than Most and, where the upstream said how long to
// wait, never shorter than that. An upstream that asks for more than Most is
// not tried again: to come earlier is what it refused.
func (r Retry) Next(attempt int, o Outcome, u float64) (wait time.Duration, again bool) {
	if attempt >= r.Attempts || !o.Retryable() {
		return 0, false
	}
	wait = r.backoff(attempt, u)
	if o.RetryAfterKnown {
		if o.RetryAfter > r.Most {
			return 0, false
		}
		later := float64(o.RetryAfter) * (1 + float64(r.Jitter*u)) // spread, and never early
		wait = max(wait, o.RetryAfter, time.Duration(min(later, float64(r.Most))))
	}
	return wait, true
}

// backoff is the wait after an attempt that names none. Its middle is kept so
// far below Most that the spread fits below it too: waits cut off at Most would
// end at the same instant.
func (r Retry) backoff(attempt int, u float64) time.Duration {
	if r.Base <= 0 { // it stays nothing, also times what a factor grows to without end
		return 0
	}
	most := float64(r.Most) / (1 + r.Jitter)
	middle := min(float64(r.Base)*math.Pow(max(r.Factor, 1), float64(attempt-1)), most)
	return min(time.Duration(middle*(1+float64(r.Jitter*(2*u-1)))), r.Most)
}
