package diagnose

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

const (
	// apart is how far two failed rounds of probes lie apart at least: probes
	// of one round end one after the other.
	apart = 5 * time.Second
	// soonAfter is how soon after a recovery an opening belongs to it: four
	// times the published 15 s that a breaker stays open.
	soonAfter = time.Minute
	// maxBreakers bounds how many breakers are told apart.
	maxBreakers = 1000
)

// breakers follow the states of a client's breakers through the log.
type breakers struct {
	byName map[string]*course
	lines  [3]int64 // by state
	opened int64    // CLOSED to OPEN
	failed int64    // HALF_OPEN to OPEN: a failed round of probes
	soon   int64    // of opened, those soon after a recovery
	mixed  int64    // lines CLOSED straight after OPEN
	unread int64    // lines of breakers past the bound
}

// course is what one breaker did last.
type course struct {
	phase    release.Phase
	at       time.Time // of the last line
	failed   time.Time // of the last failed round
	closed   time.Time // of the last recovery
	everOpen bool
}

// flaps is how often a breaker came back open from its probes.
func (b *breakers) flaps() int64 { return b.failed + b.soon }

// nextFile forgets where the breakers stood: another file is another client.
func (b *breakers) nextFile() { b.byName = nil }

func (b *breakers) add(a *Attempt) {
	if !a.PhaseKnown {
		return
	}
	b.lines[a.Phase]++
	c := b.byName[a.Breaker]
	if c == nil {
		if len(b.byName) >= maxBreakers {
			b.unread++
			return
		}
		if b.byName == nil {
			b.byName = map[string]*course{}
		}
		c = &course{phase: a.Phase}
		b.byName[a.Breaker] = c
	}
	b.turn(c, a)
}

// turn follows one breaker to the state of its next line.
func (b *breakers) turn(c *course, a *Attempt) {
	from, to := c.phase, a.Phase
	switch {
	case from == release.Open && to == release.Closed && !later(c.at, a.At, soonAfter):
		b.mixed++ // a call from before the trip that ended late, or another breaker
		return
	case from == release.Closed && to != release.Closed:
		b.opened++
		if c.everOpen && !c.closed.IsZero() && !later(c.closed, a.At, soonAfter) {
			b.soon++
		}
	case from == release.HalfOpen && to == release.Open && (c.failed.IsZero() || later(c.failed, a.At, apart)):
		b.failed++
		c.failed = a.At
	case from == release.HalfOpen && to == release.Closed:
		c.closed = a.At
	}
	c.everOpen = c.everOpen || to != release.Closed
	c.phase, c.at = to, a.At
}

// later reports whether b is at least d after a. Where a time is unknown it
// is not known to be.
func later(a, b time.Time, d time.Duration) bool {
	return !a.IsZero() && !b.IsZero() && b.Sub(a) >= d
}
