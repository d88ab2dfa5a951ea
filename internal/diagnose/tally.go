package diagnose

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/throttle"
)

const (
	maxInFlight = 4096 // above it calls in flight are counted as this many
	tenths      = 6000 // waits are counted by tenths of a second up to ten minutes
)

// Tally counts attempts. Use [NewTally]; one goroutine at a time.
type Tally struct {
	lines, unknown, attempts int64
	first, last              time.Time
	fields                   [numFields]int64 // lines that carry each
	statuses                 [600]int64       // 0: no answer

	answered                 int64 // attempts that went well
	limited, quota           int64 // status 429; of those, accounts without credit
	byUpstream, byOwn, byWho int64 // refusals: of the upstream, of our breaker, of nobody knows whom
	limitedOwn               int64 // of limited, those of our own breaker

	numbered, numberedLimited int64    // attempts whose number is known; 429 among them
	extra                     int64    // sum of number - 1
	numbers                   [4]int64 // attempts by number: 1, 2, 3, above
	largest                   int64

	traces        traces
	again, vain   int64 // retries; of what no retry mends
	told, tooSoon int64 // retries after a Retry-After; before it was over
	breakers      breakers
	lanes         [throttle.Lanes]laneTally
	unsized       int64
	inFlight      [maxInFlight + 1][2]int64 // attempts that went out, 429
	readTimeouts  int64
	otherTimeouts int64
	poolTimeouts  int64
	withoutRecord int64         // read time-outs without an upstream id
	waited        [tenths]int64 // how long those took
	waitedKnown   int64
}

type laneTally struct{ attempts, limited, timeouts int64 }

// NewTally returns an empty tally.
func NewTally() *Tally { return &Tally{} }

// NextFile says that the attempts from here on come from another file. Requests
// may go on in it; breakers do not.
func (t *Tally) NextFile() { t.breakers.nextFile() }

// Add counts an attempt.
func (t *Tally) Add(a *Attempt) {
	t.lines++
	for f := range numFields {
		if a.has.has(f) {
			t.fields[f]++
		}
	}
	if !a.At.IsZero() {
		if t.first.IsZero() || a.At.Before(t.first) {
			t.first = a.At
		}
		if a.At.After(t.last) {
			t.last = a.At
		}
	}
	t.breakers.add(a)
	number := t.number(a)
	if !a.known() {
		t.unknown++
		return
	}
	t.attempts++
	t.count(a, number)
}

// number follows the attempt's request and returns the attempt's number: the
// logged one, else its place among the lines of the request.
func (t *Tally) number(a *Attempt) int64 {
	number := a.Number
	if a.Trace == "" {
		return number
	}
	s := t.traces.add(a)
	if number == 0 {
		number = s.number
	}
	t.again += one(s.again)
	t.vain += one(s.hopeless)
	t.told += one(s.told)
	t.tooSoon += one(s.soon)
	return number
}

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// count counts an attempt whose end is known.
func (t *Tally) count(a *Attempt, number int64) {
	if a.Status != 0 || !a.OK {
		t.statuses[a.Status]++
	}
	t.answered += one(a.answered())
	limited := a.Status == 429
	t.limited += one(limited)
	t.quota += one(limited && a.Code == throttle.InsufficientQuota)
	if number > 0 {
		t.numbered++
		t.numberedLimited += one(limited)
		t.extra += number - 1
		t.numbers[min(number, 4)-1]++
		t.largest = max(t.largest, number)
	}
	if a.own() {
		t.byOwn++
		t.limitedOwn += one(limited)
		return // the call never went out
	}
	if a.Waits == PoolTimeout {
		t.poolTimeouts++
		return // nor did this one
	}
	switch {
	case !limited:
	case a.UpstreamID != "" || a.PhaseKnown && a.Phase != release.Open:
		t.byUpstream++
	default:
		t.byWho++
	}
	t.sent(a, limited)
}

// sent counts an attempt that went out.
func (t *Tally) sent(a *Attempt, limited bool) {
	if a.InFlightKnown {
		at := &t.inFlight[min(a.InFlight, maxInFlight)]
		at[0]++
		at[1] += one(limited)
	}
	if a.TokensKnown {
		lane := &t.lanes[throttle.DefaultGates().Lane(a.Tokens)]
		lane.attempts++
		lane.limited += one(limited)
		lane.timeouts += one(a.Waits != NoTimeout)
	} else {
		t.unsized++
	}
	t.otherTimeouts += one(a.Waits == OtherTimeout)
	if a.Waits != ReadTimeout {
		return
	}
	t.readTimeouts++
	if a.UpstreamID != "" {
		return
	}
	t.withoutRecord++
	if a.ElapsedKnown {
		t.waitedKnown++
		t.waited[min(int64(a.Elapsed/(100*time.Millisecond)), tenths-1)]++
	}
}
