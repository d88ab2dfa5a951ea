// Package source reads live windows: what each arm has done, a window at a
// time, from a Prometheus server, from growing files of records, or from files
// of windows.
//
//	s, err := source.New(cfg.Source, source.Options{Getenv: os.Getenv})
//	b, err := s.Read(ctx, from, now)
//
// Nothing is invented: a window that the source does not know is missing from
// the batch, one that it knows to be empty has total 0, and a source that could
// not be read is an error, which is neither.
package source

import (
	"context"
	"net/http"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Batch is what a source told at one moment.
type Batch struct {
	// Windows that start at or after the time asked for, and ended at least
	// settle before now: by time, then arm, canary before stable.
	Windows []release.Window
	// Until is up to where windows are final: no window that starts before it
	// will come or change any more, but for its labels. Aligned to the span.
	Until time.Time
	// Newest is the end of the newest window with requests, of any arm, seen by
	// this source so far; zero: none. Staleness counts from it.
	Newest time.Time
	// Users tells how many different users each arm served in the windows of
	// the batch. An arm of which some request names no user is not in it; nil
	// where the source does not know users.
	Users map[release.Arm]int64
	Notes []string // for people: counts rounded, lines that could not be read
}

// Source is where live windows come from.
type Source interface {
	// Read returns the windows from a time on that are complete by now. A
	// source keeps what it read from that time on: ask from where you stand,
	// later from reading to reading. An earlier time is read anew, at the cost
	// of a first reading. Errors are *Error; nothing is lost by one, the next
	// reading goes on.
	Read(ctx context.Context, from, now time.Time) (Batch, error)
	// Span is the length of its windows.
	Span() time.Duration
	// Settle is how old a window must be to be read.
	Settle() time.Duration
	// String names the source for people.
	String() string
}

// Options are what sources need of the world.
type Options struct {
	Getenv func(string) string
	Client *http.Client // nil: a sensible one
	Dir    string       // what relative paths are relative to; "" is the working directory
	// SlowMS counts slow requests, for p99_judge: count; 0: not wanted.
	SlowMS float64
	// TTFTLimitMS counts the streams whose first token came later, for
	// ttft_slow; 0: not wanted.
	TTFTLimitMS float64
}

// Error says that a source could not be read, and why. It is about the source
// and never counts against the canary.
type Error struct {
	Source string
	Err    error
	Hint   string // what to do, or ""
}

// Error implements error.
func (e *Error) Error() string { return e.Source + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
