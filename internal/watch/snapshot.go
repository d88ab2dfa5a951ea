// Package watch forms what the live view shows: a [Snapshot] of a release at
// one moment, whole in itself. It is formed from a live release ([Live]: the
// saved state, the journal, target and source, all of them only read) or from a
// frame of a replay ([Reel]), and the view is a function of it alone.
//
// Nothing is judged here. What a snapshot says of the release is what
// ladder.Decide said; figures beside it are sums over the same windows.
package watch

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Snapshot is a release at one moment. It is not changed after it was formed:
// those who hold one may share its slices.
type Snapshot struct {
	At        time.Time // when it was looked at; in a replay, the replay's time
	Replay    string    // what is replayed; "": a live release
	Service   string
	Release   string // id, as people see it
	Candidate string // digest; "": it has no name

	Outcome journal.Outcome // what the ladder says at that moment
	Next    string          // what comes next, or the command that lets it go on
	Rungs   []Rung
	Step    int // the release stands at, from 1; 0: at none
	Stage   ladder.Stage
	Weight  release.Weight // as last read back
	Since   time.Time      // when it was; zero: no release has put one there
	Pending ladder.Pending // a write that was asked for and not read back; move hold: none

	Target  Target
	Source  Source
	Decider Decider

	Held    time.Duration // at the present step, blind minutes and pauses left out
	Swapped bool          // the candidate was made the stable of the versions document
	Trips   bool          // a signal can open the breaker at this step
	Locks   bool          // a bad round of probes locks
	Digest  string        // of the configuration that it runs under
	LookErr string        // why the release could not be looked at since; "": it could

	Served int64             // requests of the canary in the present attempt
	Record *journal.Rollback // the newest rollback; nil: none

	Signals []Signal
	Times   Times // of the signals' series
	Events  []Event
	Notes   []string // what is odd, for people
}

// Rung is a step of the ladder.
type Rung struct {
	Weight release.Weight
	Hold   time.Duration
	Gates  ladder.Gates
}

// Target is where the weight is written, as last read.
type Target struct {
	Name   string
	Weight release.Weight // what it holds
	At     time.Time      // when it was read; zero: it never was
	By     string         // who moved it, if it can tell
	Err    string         // why it could not be read now; "": it was
}

// Source is where windows come from.
type Source struct {
	Name   string
	Newest time.Time // end of the newest window with requests; zero: none yet
	Canary time.Time // and of the newest one of the canary's
	Settle time.Duration
	Err    string // why it could not be read now; "": it was
}

// Decider is who moves the release.
type Decider struct {
	At  time.Time // of the newest decision; zero: nobody has decided yet
	Who string    // who made it: user@host, or the CI's actor
	// Blind: it was made without a source that could be read.
	Blind bool
	// Elsewhere: it was made on another machine, of which only the changes are
	// known here, not the holds.
	Elsewhere bool
}

// Standing is how a signal stands, in the words of a verdict or of why there is
// none.
type Standing uint8

// The standings.
const (
	NotJudged Standing = iota // no step is being judged: before the start, while OPEN or HALF_OPEN
	Passing                   // pass
	Failing                   // fail
	Few                       // insufficient
	NoData                    // no_data
	Unknown                   // error: could not look
	WouldFail                 // fails, and only observes
	Off                       // nobody looks at it
	Tripped                   // the rollback in force rests on it
	Absent                    // optional, and the source has never supplied it
)

// Unit says what a figure counts.
type Unit uint8

// The units.
const (
	Count  Unit = iota // a number of requests
	Share              // a fraction of 1
	Ratio              // a multiple of stable's
	Millis             // milliseconds
	Score              // a cumulative sum, without a unit
)

// Figure is a number that may be missing, which is never zero.
type Figure struct {
	Value float64
	Known bool
}

// Known is a figure that is there.
func Known(v float64) Figure { return Figure{Value: v, Known: true} }

// Signal is one row of the table: the canary beside stable, against the limit.
type Signal struct {
	Signal release.Signal
	Form   release.Form
	Unit   Unit
	State  Standing

	Value Figure // the canary's: over what its gate has gathered, else over the breaker's span
	// Beside is stable's over the same time, or the configured baseline; of counts,
	// what stable would have had in as many requests.
	Beside Figure
	// Baseline says that Beside is the configured one: stable had no such figure.
	Baseline bool
	Limit    Figure
	Low      bool // it fails at Limit and below, not at Limit and above
	// Room is the share of the limit that is left: 1 at zero, for a ratio at 1, for
	// the solve rate at its baseline, or better, and 0 at the limit or past it.
	Room    Figure
	Samples int64
	Needed  int64 // from so many on it is judged

	// What each arm did, a point a window, as the breaker counts it: over the span
	// Over that ends with the window, for signals that are counted over one. Line is
	// the breaker's limit for such a point.
	Canary, Stable []Figure
	Over           time.Duration
	Line           Figure
	PointUnit      Unit
	PointLow       bool // a point fails at Line and below
}

// Times are those of a series: point i is of the window that starts at From + i
// times Span. The last point is of the newest window.
type Times struct {
	From time.Time
	Span time.Duration
}

// Points is how many windows a series goes back.
const Points = 60

// Tone is what an event means for the release.
type Tone uint8

// The tones.
const (
	Plain Tone = iota
	Good
	Warning
	Bad
)

// Event is a line of what happened.
type Event struct {
	At     time.Time
	Frame  int   // of a replay
	Line   int64 // of the journal; 0: of none
	Tone   Tone
	Kind   string   // decision, command, write, record, message, ...
	Text   string   // one line
	Detail []string // what unfolds, such as a rollback record; nil: nothing
}
