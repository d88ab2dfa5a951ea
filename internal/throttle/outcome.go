package throttle

import "time"

// InsufficientQuota is the error code of a 429 that no waiting mends: the
// account has no credit left.
const InsufficientQuota = "insufficient_quota"

// Outcome is how one call ended, as far as it matters to what comes next.
type Outcome struct {
	// Status is the HTTP status; 0 if no answer came at all.
	Status int
	// TimedOut says that a time limit of the call passed, before or during the
	// answer.
	TimedOut bool
	// Cancelled says that whoever asked went away. Nothing is learnt about the
	// upstream from that.
	Cancelled bool
	// RetryAfter is how long the upstream asked to be left alone, if
	// RetryAfterKnown; see [HeaderWait].
	RetryAfter      time.Duration
	RetryAfterKnown bool
	// Code is the error code in the body, such as rate_limit_exceeded; "" if
	// there is none.
	Code string
}

// Failed reports whether the call counts against the upstream's ability to
// serve: 429 whatever its code, 5xx, a time-out, or no answer. Other statuses
// are the caller's mistakes, and a cancelled call says nothing.
func (o Outcome) Failed() bool {
	return !o.Cancelled && (o.TimedOut || o.Status == 0 || o.Status == 429 || o.Status >= 500)
}

// Retryable reports whether the same call may succeed later: 429 except
// [InsufficientQuota], 500, 502, 503, 504, a time-out, or no answer. It says
// nothing about what has already been passed on to a user: an answer that has
// begun cannot be asked for again.
func (o Outcome) Retryable() bool {
	if o.Cancelled {
		return false
	}
	if o.TimedOut || o.Status == 0 {
		return true
	}
	switch o.Status {
	case 429:
		return o.Code != InsufficientQuota
	case 500, 502, 503, 504:
		return true
	}
	return false
}
