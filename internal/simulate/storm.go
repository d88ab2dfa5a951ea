package simulate

import (
	"errors"
	"fmt"
	"time"

	"github.com/canaryctl/canaryctl/internal/throttle"
)

// Storm is an upstream that answers 429 past its capacity, and the requests
// that come to it. [RunStorm] lets a client loose on it, in virtual time.
type Storm struct {
	Seconds  int // requests arrive for so long; the last are waited for
	Short    StormTraffic
	Long     StormTraffic
	Faults   []StormFault
	Upstream StormUpstream
}

// StormTraffic is requests of one size.
type StormTraffic struct {
	PerSec float64 // on average; arrivals are drawn (Poisson)
	Tokens int64   // of each prompt
	// Service is the median time that the upstream works on one, and Spread the
	// sigma of its logarithm.
	Service time.Duration
	Spread  float64
}

// StormFault is what goes wrong for a time.
type StormFault struct {
	From, Seconds int
	// Refuse says that every call is answered 429, whatever the capacity.
	Refuse bool
	// Short and Long are requests a second in addition.
	Short, Long float64
}

// StormUpstream is what an upstream can carry.
type StormUpstream struct {
	Places  int           // calls that it works on at once; 0: no limit
	Refusal time.Duration // how long it takes to answer 429
	// RetryAfter is what its 429 ask for; 0: they do not say.
	RetryAfter time.Duration

	PerSec float64 // calls a second that it allows on average; 0: no limit
	Burst  float64 // calls that it allows at once after a rest
	// RefusalCost is what a refused call takes from that allowance, as many
	// services count refused calls too: 1 is as much as a served one.
	RefusalCost float64
}

// StormClient is how a client calls.
type StormClient struct {
	Name    string
	Retry   throttle.Retry
	Heeds   bool // it honours Retry-After
	Breaker bool // with the published policy
	Gates   bool // two lanes; without, calls in flight have no bound
	Policy  throttle.GatesPolicy
	Timeout time.Duration // of a call, answer included; 0: none
	Queue   time.Duration // how long a call waits for a place in its lane
}

// NaiveRetry tries again at once, so many times in all.
func NaiveRetry(attempts int) throttle.Retry { return throttle.Retry{Attempts: attempts} }

// StormBucketSeconds is the length of the spans in which a storm is told.
const StormBucketSeconds = 5

// StormBucket is what happened in such a span.
type StormBucket struct {
	Second      int   `json:"second"`
	Arrived     int64 `json:"arrived"`
	Answered    int64 `json:"answered"` // of those that arrived in it, whenever
	Attempts    int64 `json:"attempts"`
	RateLimited int64 `json:"rate_limited"`
}

// StormLane is what became of the requests of one size.
type StormLane struct {
	Requests int64 `json:"requests"`
	Answered int64 `json:"answered"`
	// MedianMS and P99MS are from arrival to answer, waits and retries
	// included; nil: none was answered.
	MedianMS *float64 `json:"median_ms"`
	P99MS    *float64 `json:"p99_ms"`

	took []time.Duration
}

// StormOutcome is what became of a client in a storm.
type StormOutcome struct {
	Client string    `json:"client"`
	Short  StormLane `json:"short"`
	Long   StormLane `json:"long"`

	Attempts    int64 `json:"attempts"` // calls that went out
	RateLimited int64 `json:"rate_limited"`
	Timeouts    int64 `json:"timeouts"`
	Extra       int64 `json:"extra_attempts"` // sum of (attempt - 1) over the calls

	NoRetry   int64 `json:"given_up"`          // requests whose last attempt failed
	ByBreaker int64 `json:"failed_by_breaker"` // that the client's own breaker refused last
	ByGate    int64 `json:"failed_by_gate"`    // that waited for a place in vain

	Opened    int64    `json:"opened"`           // how often a breaker opened
	OpenedS   *float64 `json:"opened_after_s"`   // from the first fault's start to the first opening; nil: never
	WhileOpen int64    `json:"calls_while_open"` // calls that went out through an OPEN breaker

	// RecoveredS is from the end of the faults to the span from which on at
	// least 98 % of the requests of every span are answered; nil: never.
	RecoveredS *float64      `json:"recovered_after_s"`
	Buckets    []StormBucket `json:"spans"`
}

// Requests returns the number of requests.
func (o *StormOutcome) Requests() int64 { return o.Short.Requests + o.Long.Requests }

// Answered returns how many of them were answered.
func (o *StormOutcome) Answered() int64 { return o.Short.Answered + o.Long.Answered }

// The largest storm that is run: a bound on memory and time.
const (
	maxStormRequests = 1_000_000
	maxStormEvents   = 30_000_000
)

// ErrStormTooLarge says that a storm has more requests or calls than are run.
var ErrStormTooLarge = errors.New("the storm is too large")

func (s *Storm) check() error {
	requests := (s.Short.PerSec + s.Long.PerSec) * float64(s.Seconds)
	for _, f := range s.Faults {
		requests += (f.Short + f.Long) * float64(f.Seconds)
	}
	if requests > maxStormRequests {
		return fmt.Errorf("%w: %.0f requests, more than %d", ErrStormTooLarge, requests, maxStormRequests)
	}
	return nil
}

// faultSpan returns when the first fault begins and the last one ends, in
// seconds; false without faults.
func (s *Storm) faultSpan() (from, to int, ok bool) {
	for i, f := range s.Faults {
		if i == 0 || f.From < from {
			from = f.From
		}
		to = max(to, f.From+f.Seconds)
	}
	return from, to, len(s.Faults) > 0
}
