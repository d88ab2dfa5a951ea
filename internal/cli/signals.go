package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// signalled is why a context ended: a signal of this kind came.
type signalled struct{ os.Signal }

// Error implements error.
func (s signalled) Error() string { return s.String() + " signal received" }

// patience is how long work may go on after its context has ended.
const patience = 20 * time.Millisecond

// promptly returns what work comes to, or the context's error where that has ended
// and work does not see it soon: it may be in the middle of a large block. Work that
// is left behind ends with the process, and must share nothing with what follows.
func promptly[T any](ctx context.Context, work func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	came := make(chan outcome, 1)
	go func() {
		value, err := work()
		came <- outcome{value, err}
	}()
	select {
	case out := <-came:
		return out.value, out.err
	case <-ctx.Done():
	}
	select {
	case out := <-came:
		return out.value, out.err
	case <-time.After(patience):
		var none T
		return none, ctx.Err()
	}
}

// hangup is what happens where the terminal goes away, if a command has taken
// that over.
type hangup struct {
	mu sync.Mutex
	do func()
}

// outlive lets the command go on when its terminal goes away, and do something
// then.
func (h *hangup) outlive(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.do = do
}

// taken does what a command wants done, and reports whether there is such a
// command.
func (h *hangup) taken() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.do != nil {
		h.do()
	}
	return h.do != nil
}

// untilSignal returns a context that Ctrl-C, SIGTERM and the going away of the
// terminal end, so that what is under way can be finished. A second
// Ctrl-C or SIGTERM kills. What nohup has switched off stays off.
func (h *hangup) untilSignal() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	came, over := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(came, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(came, syscall.SIGHUP)
	}
	go func() {
		for {
			select {
			case s := <-came:
				if s == syscall.SIGHUP && h.taken() {
					continue
				}
				signal.Reset(os.Interrupt, syscall.SIGTERM)
				cancel(signalled{s})
				return // a terminal that goes away may say so several times: that is no second signal
			case <-over:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(came)
		close(over)
		cancel(nil)
	}
}
