package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/shadow"
	"github.com/canaryctl/canaryctl/internal/slot"
	"github.com/canaryctl/canaryctl/internal/throttle"
)

// Version is one of the two versions, as somebody to call.
type Version struct {
	BaseURL *url.URL // /chat/completions is put behind its path
	// ModelID takes the place of the model in requests that the canary gets; ""
	// leaves it. Requests to stable are never changed.
	ModelID string
	// Key takes the place of the user's in Authorization; "" passes the user's
	// on, to another host than stable's not.
	Key string
	// Parts are what is known of the version beforehand, for its fingerprint:
	// what is empty is taken from each request.
	Parts shadow.Version
	ID    string // names the version in records
}

// Limits are bounds of time and number.
type Limits struct {
	Body   int64         // bytes of a request that are kept, for a copy or a second attempt
	Answer int64         // bytes of an answer that are kept until it has been looked at
	Copies int           // under way at most
	Copy   time.Duration // of a whole copy
	// StableHeader and CanaryHeader are how long an answer may take to begin,
	// on the user's path.
	StableHeader, CanaryHeader time.Duration
	// Stall is how long a user may take to read what was written, and how long
	// to send the next piece of a request.
	Stall time.Duration
	// Sending is how long a user may take to send all of a request: whoever
	// sends a byte now and then holds a place of everybody's.
	Sending time.Duration
	// Place is how long a request waits for a place among those under way.
	Place time.Duration
}

// DefaultLimits returns the limits that are not asked for by name: those
// published for clients (time-outs apart from each other: 180 s to read, 45 s
// to a first token, 30 s to write, 2 s for a place in the pool, 2.5 s for a
// shadow copy), and bounds on memory.
func DefaultLimits() Limits {
	return Limits{
		Body: 4 << 20, Answer: 1 << 20, Copies: 16, Copy: 2500 * time.Millisecond,
		StableHeader: 180 * time.Second, CanaryHeader: 45 * time.Second,
		Stall: 30 * time.Second, Sending: time.Minute, Place: 2 * time.Second,
	}
}

// Options are what a proxy needs to know. The zero value of what is optional
// switches it off.
type Options struct {
	Stable, Canary Version
	Paths          []string // behind the base URL, that are routed, copied and recorded; nil: /chat/completions

	Sample release.Ratio // share of requests that are copied
	Policy shadow.Policy

	Router    slot.Router
	Weight    func(context.Context) (release.Weight, error) // reads the weight; nil: everybody is on stable
	Every     time.Duration                                 // how often
	Scene     string                                        // scene that records are of, "" for none
	UserFrom  string                                        // header that names the user; without it the body's user does
	SegmentOf string                                        // header that names the user's segment
	PlainIDs  bool                                          // records hold user ids as they are, not hashed

	Retry      throttle.Retry       // Attempts 1 or less: none
	Gates      throttle.GatesPolicy // Short and Long 0: no bound
	NoBreaker  bool
	Limits     Limits
	ClientKey  string // users must show it as their bearer token; "": no matter
	Loopback   bool   // answer requests that name this machine only, and no page of another site
	AdminPaths bool   // answer /-/ beside the API

	Records, Attempts, Pairs io.Writer // JSON lines; nil: not wanted
	Bodies                   bool      // pairs hold request and answers

	Say  func(format string, args ...any) // notes for people; called from many goroutines
	Warn func(format string, args ...any) // what they must know; nil: Say
	Now  func() time.Time
	Rand func() float64 // uniform in [0, 1), from many goroutines

	transport func(name string, header time.Duration) http.RoundTripper // tests: in place of the network
}

// check says what of the options cannot be used.
func (o *Options) check() error {
	for _, v := range []struct {
		arm release.Arm
		url *url.URL
	}{{release.Stable, o.Stable.BaseURL}, {release.Canary, o.Canary.BaseURL}} {
		if v.url == nil || v.url.Host == "" || v.url.Scheme != "http" && v.url.Scheme != "https" {
			return fmt.Errorf("versions.%s.base_url: not an address of the form https://host/v1", v.arm)
		}
	}
	return nil
}
