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
	// More reports whether another tick follows.
	More() bool
	// Next returns the tick that follows under the weight in force. An error
	// ends the replay.
	Next(weight release.Weight) (Tick, error)
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
var ErrNoWindows = errors.New("no windows of the canary to replay")

// maxTicks bounds a replay: a year of windows of a second, or 95 of a minute.
const maxTicks = 50_000_000

// LengthError says that a feed has more ticks than can be replayed, as it has
// when a single time is wrong.
type LengthError struct {
	Start, End time.Time // of the first and the last window
	Span       time.Duration
}

// Error implements error.
func (e *LengthError) Error() string {
	return fmt.Sprintf("the windows reach from %s to %s: more than %d times their length of %s",
		e.Start.UTC().Format(time.RFC3339), e.End.UTC().Format(time.RFC3339), maxTicks, release.Minutes(e.Span))
}

// NewRecorded makes a feed of windows, each arm's in order of time. A tick is
// as long as the canary's longest window, and the canary's first window begins
// one: stable's are only compared with, whatever their length. Windows of
// stable from before the first tick come with it. Without windows of the
// canary it returns [ErrNoWindows], for too many ticks a *[LengthError].
func NewRecorded(canary, stable []release.Window) (*Recorded, error) {
	if len(canary) == 0 {
		return nil, ErrNoWindows
	}
	r := &Recorded{canary: canary, stable: stable, start: canary[0].T}
	for _, arm := range [][]release.Window{canary, stable} {
		if err := r.extend(arm); err != nil {
			return nil, err
		}
	}
	r.span = longest(canary)
	if r.end.Sub(r.start)/maxTicks >= r.span {
		return nil, &LengthError{Start: r.start, End: r.end, Span: r.span}
	}
	r.at = canary[0].T.Add(-canary[0].T.Sub(r.start).Truncate(r.span))
	return r, nil
}

// extend checks an arm's windows and makes room for them between start and end.
func (r *Recorded) extend(arm []release.Window) error {
	for i := range arm {
		w := &arm[i]
		if w.Span <= 0 {
			return fmt.Errorf("window at %s has no span", w.T.Format(time.RFC3339))
		}
		if i > 0 && !w.T.After(arm[i-1].T) {
			return fmt.Errorf("window at %s is not after the one before it", w.T.Format(time.RFC3339))
		}
		if w.T.Before(r.start) {
			r.start = w.T
		}
		if w.T.After(r.end) {
			r.end = w.T
		}
	}
	return nil
}

func longest(ws []release.Window) (span time.Duration) {
	for i := range ws {
		span = max(span, ws[i].Span)
	}
	return span
}

// Span implements Feed.
func (r *Recorded) Span() time.Duration { return r.span }

// Start implements Feed.
func (r *Recorded) Start() time.Time { return r.start }

// More implements Feed.
func (r *Recorded) More() bool { return !r.at.After(r.end) }

// Next implements Feed.
func (r *Recorded) Next(release.Weight) (Tick, error) {
	t := Tick{T: r.at}
	r.at = r.at.Add(r.span)
	t.Canary, r.canary = cut(r.canary, r.at)
	t.Stable, r.stable = cut(r.stable, r.at)
	return t, nil
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
