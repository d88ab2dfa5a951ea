package proxy

import (
	"context"
	"sync"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// readLimit bounds one reading of the weight.
const readLimit = 15 * time.Second

// weights follows the weight in the target. Until it has been read once the
// weight is 0; what could not be read leaves it where it was.
type weights struct {
	read func(context.Context) (release.Weight, error)
	say  func(format string, args ...any)
	warn func(format string, args ...any)
	now  func() time.Time

	mu    sync.RWMutex
	is    release.Weight
	at    time.Time // of the last reading
	err   error     // of the last try
	tries int64
}

// get returns the weight in force.
func (w *weights) get() release.Weight {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.is
}

// follow reads it again and again until the context ends.
func (w *weights) follow(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		w.once(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (w *weights) once(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	is, err := w.read(limited)
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	was, wasErr, first := w.is, w.err, w.at.IsZero()
	w.err = err
	w.tries++
	if err == nil {
		w.is, w.at = is, w.now()
	}
	w.mu.Unlock()
	switch {
	case err != nil && wasErr == nil && first:
		w.warn("the weight cannot be read: %v; until it can everybody is on stable", err)
	case err != nil && wasErr == nil:
		w.warn("the weight cannot be read: %v; it stays at %s, as last read", err, was)
	case err == nil && (first || !is.Same(was)):
		w.say("the canary's weight is %s", is)
	case err == nil && wasErr != nil:
		w.say("the weight can be read again: %s", is)
	}
}

// weightState is what is known of the weight, for the status.
type weightState struct {
	Pct   float64  `json:"pct"`   // in force, a fraction of 1
	Known bool     `json:"known"` // it has been read at least once; else 0 stands for it
	Age   *float64 `json:"age_s"` // since it was last read
	Error string   `json:"error,omitempty"`
}

func (w *weights) state() *weightState {
	if w.read == nil {
		return nil
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	s := &weightState{Pct: w.is.Share(), Known: !w.at.IsZero()}
	if s.Known {
		s.Age = new(seconds(w.now().Sub(w.at)))
	}
	if w.err != nil {
		s.Error = w.err.Error()
	}
	return s
}

// seconds rounds to milliseconds.
func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }
