package diagnose

import (
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/throttle"
)

// Attempt is one line of a log: one attempt of one request. What the line does
// not say is zero, with its Known false where zero could be meant.
type Attempt struct {
	At         time.Time // zero: unknown
	Trace      string    // the request that it is an attempt of; "": unknown
	UpstreamID string    // the upstream's id of the call; "": it answered none
	Number     int64     // from 1; 0: unknown
	Status     int       // HTTP; 0: no answer, or unknown
	Code       string    // error code
	Waits      Waits     // what timed out, by the code
	OK         bool      // the log says that it went well, without a status

	RetryAfter      time.Duration
	RetryAfterKnown bool

	Breaker    string // which breaker, where a client has several; "" is one too
	Phase      release.Phase
	PhaseKnown bool

	InFlight      int64
	InFlightKnown bool
	Tokens        int64 // of the prompt
	TokensKnown   bool
	Elapsed       time.Duration
	ElapsedKnown  bool

	has fieldSet // the fields that the line carries
}

// Waits says which of a client's time limits passed.
type Waits uint8

// The time limits. Published ones: connect 5 s, write 30 s, pool 2 s, read
// 180 s.
const (
	NoTimeout    Waits = iota
	ReadTimeout        // no answer, or no more of it, in time
	OtherTimeout       // to connect, to write
	PoolTimeout        // to get a place in the pool: the call never went out
)

// known reports whether the line says how the attempt ended.
func (a *Attempt) known() bool {
	return a.OK || a.Status != 0 || a.Code != "" || a.PhaseKnown && a.Phase == release.Open
}

// own reports whether our own breaker refused the call: it was OPEN, and the
// upstream has no id for it. A call that was answered or waited for in vain
// went out before the breaker opened.
func (a *Attempt) own() bool {
	return a.PhaseKnown && a.Phase == release.Open && a.UpstreamID == "" && !a.answered() && a.Waits == NoTimeout
}

// answered reports whether the call went well.
func (a *Attempt) answered() bool {
	return a.OK || a.Status >= 200 && a.Status < 400 && a.Waits == NoTimeout && a.Code == ""
}

// outcome is the attempt as the retry policy sees it.
func (a *Attempt) outcome() throttle.Outcome {
	return throttle.Outcome{Status: a.Status, TimedOut: a.Waits != NoTimeout, Code: a.Code}
}

// waitsOf tells the time limit from an error code such as read_timeout or
// APITimeoutError. A status of 400 and above is an answer, so that a gateway's
// 504 is no time-out of the client.
func waitsOf(code string, status int) Waits {
	code = strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(code))
	if status >= 400 || !strings.Contains(code, "timeout") && !strings.Contains(code, "timedout") && !strings.Contains(code, "deadlineexceeded") {
		return NoTimeout
	}
	switch {
	case strings.Contains(code, "pool"):
		return PoolTimeout
	case strings.Contains(code, "connect"), strings.Contains(code, "write"):
		return OtherTimeout
	}
	return ReadTimeout
}

// rateLimitCodes are error codes that come with status 429 and no other.
var rateLimitCodes = []string{"rate_limit_exceeded", throttle.InsufficientQuota}
