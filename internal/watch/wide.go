package watch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/source"
)

// mostKept bounds how many windows of time the view looks back.
const mostKept = 1500

// Wide is a driver's source that asks for the windows of the view's history as
// well, and hands the driver those that it asked for: one reading serves both,
// and they are never of two moments.
//
// What has been read once is kept. Later readings ask for what the driver asks
// for, which is all that can still change, and for what has been missed.
type Wide struct {
	source driver.Source
	back   time.Duration // how far the view looks

	mu      sync.Mutex
	reading bool             // now
	from    time.Time        // kept is whole from here
	until   time.Time        // to here; zero: nothing has been read
	kept    []release.Window // by time, as the source gave them
}

// NewWide returns a wide source over another: the view looks back for its
// series' points, and behind the oldest of them as far as a step lasts at least
// or its limits reach.
func NewWide(s driver.Source, p *ladder.Plan) *Wide {
	span := spanOf(s)
	var reach time.Duration
	for i := range p.Steps {
		reach = max(reach, p.Steps[i].Limits.Reach(), p.Steps[i].MinHold)
	}
	windows := min((reach+span-1)/span, mostKept-Points)
	return &Wide{source: s, back: (Points + windows) * span}
}

// spanOf is the length of a source's windows, never 0.
func spanOf(s driver.Source) time.Duration {
	if span := s.Span(); span > 0 {
		return span
	}
	return time.Minute
}

// Span implements [driver.Source].
func (w *Wide) Span() time.Duration { return w.source.Span() }

// Settle implements [driver.Source].
func (w *Wide) Settle() time.Duration { return w.source.Settle() }

// String implements [driver.Source].
func (w *Wide) String() string { return w.source.String() }

// Read implements [driver.Source]. How many users there were is left out: it
// would be of another time than the windows.
func (w *Wide) Read(ctx context.Context, from, now time.Time) (source.Batch, error) {
	ask := w.ask(from, now)
	defer w.enter()()
	b, err := w.source.Read(ctx, ask, now)
	if err != nil {
		return b, err
	}
	w.keep(b, ask, now)
	b.Windows = slices.DeleteFunc(slices.Clone(b.Windows), func(x release.Window) bool { return x.T.Before(from) })
	b.Users = nil
	return b, nil
}

// earliest is where the view's history begins.
func (w *Wide) earliest(now time.Time) time.Time {
	return now.Add(-w.source.Settle() - w.back).Truncate(spanOf(w.source))
}

// rereads is how many windows before the end of what is kept are asked for
// again, as the driver does: an exporter may be late.
const rereads = 3

// ask is the time to ask from.
func (w *Wide) ask(from, now time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := w.earliest(now)
	if !w.until.IsZero() && !first.Before(w.from) {
		first = w.until.Add(-rereads * spanOf(w.source))
	}
	if from.Before(first) {
		return from
	}
	return first
}

// enter notes that the source is being read, until what it returns is called.
func (w *Wide) enter() (leave func()) {
	set := func(reading bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.reading = reading
	}
	set(true)
	return func() { set(false) }
}

// busy reports whether the source is being read now.
func (w *Wide) busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reading
}

// keep takes a batch that was asked for from a time on in the place of what was
// kept of that time. Windows whose clock is ahead are not kept.
func (w *Wide) keep(b source.Batch, ask, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := w.earliest(now)
	kept := make([]release.Window, 0, len(w.kept)+len(b.Windows))
	for _, x := range w.kept {
		if !x.T.Before(first) && x.T.Before(ask) {
			kept = append(kept, x)
		}
	}
	for _, x := range b.Windows {
		if !x.T.Before(first) && !x.End().After(now) {
			kept = append(kept, x)
		}
	}
	w.kept, w.from, w.until = kept, first, b.Until
}

// windows returns what the newest good reading came to, each arm's windows by
// time.
func (w *Wide) windows() (canary, stable []release.Window) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.kept {
		switch x.Arm {
		case release.Canary:
			canary = append(canary, x)
		case release.Stable:
			stable = append(stable, x)
		}
	}
	return canary, stable
}
