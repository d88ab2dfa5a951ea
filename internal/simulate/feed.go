package simulate

import (
	"errors"
	"fmt"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Tick is what both arms did in one span of a feed. Either slice may be
// empty: a gap, which is no data. They are only valid until the next call of
// the feed.
type Tick struct {
	T      time.Time
	Canary []release.Window
	Stable []release.Window
}

// Feed yields ticks of one length, without holes between them.
type Feed interface {
	// Next returns the next tick under the weight in force, or false at the
	// end. An error ends the replay.
	Next(weight release.Weight) (Tick, bool, error)
	// Span is the length of a tick.
	Span() time.Duration
	// Start is the time of the first tick.
	Start() time.Time
}

// Recorded replays windows as they were recorded, whatever the ladder's share.
type Recorded struct {
	canary, stable []release.Window
	start, end, at time.Time
	span           time.Duration
}

// ErrNoWindows says that there is nothing to replay.
var ErrNoWindows = errors.New("no windows to replay")

// NewRecorded makes a feed of windows, each arm's in order of time. The tick
// is as long as the longest window; the first tick is the first window of any
// arm.
func NewRecorded(canary, stable []release.Window) (*Recorded, error) {
	r := &Recorded{canary: canary, stable: stable}
	for _, arm := range [][]release.Window{canary, stable} {
		for i := range arm {
			w := &arm[i]
			if w.Span <= 0 {
				return nil, fmt.Errorf("window at %s has no span", w.T.Format(time.RFC3339))
			}
			if i > 0 && !w.T.After(arm[i-1].T) {
				return nil, fmt.Errorf("window at %s is not after the one before it", w.T.Format(time.RFC3339))
			}
			r.span = max(r.span, w.Span)
			if r.start.IsZero() || w.T.Before(r.start) {
				r.start = w.T
			}
			if w.T.After(r.end) {
				r.end = w.T
			}
		}
	}
	if r.span == 0 {
		return nil, ErrNoWindows
	}
	r.at = r.start
	return r, nil
}

// Span implements Feed.
func (r *Recorded) Span() time.Duration { return r.span }

// Start implements Feed.
func (r *Recorded) Start() time.Time { return r.start }

// Next implements Feed.
func (r *Recorded) Next(release.Weight) (Tick, bool, error) {
	if r.at.After(r.end) {
		return Tick{}, false, nil
	}
	t := Tick{T: r.at}
	r.at = r.at.Add(r.span)
	t.Canary, r.canary = cut(r.canary, r.at)
	t.Stable, r.stable = cut(r.stable, r.at)
	return t, true, nil
}

// tickOf is the place of a window's tick, counted from the next one.
func (r *Recorded) tickOf(w *release.Window) int { return int(w.T.Sub(r.at) / r.span) }

// cut splits off the windows that start before t.
func cut(ws []release.Window, t time.Time) (head, tail []release.Window) {
	n := 0
	for n < len(ws) && ws[n].T.Before(t) {
		n++
	}
	return ws[:n], ws[n:]
}

// Share returns the canary's share of all requests in recorded windows, and
// false when there were none of stable to compare with.
func Share(canary, stable []release.Window) (float64, bool) {
	c, s := requests(canary), requests(stable)
	if s == 0 || c == 0 {
		return 0, false
	}
	return float64(c) / float64(c+s), true
}

func requests(ws []release.Window) (n int64) {
	for i := range ws {
		n += ws[i].Total
	}
	return n
}
