package notify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	firstWait = time.Second
	// longestWait bounds one wait, also where the other side asks for more: a
	// rollback's hooks are waited for.
	longestWait = 60 * time.Second
)

// Deliver calls send until it succeeds, fails for good, or has been tried
// tries times (at least once), and says how often it was. Only a
// [*DeliveryError] with Retry is tried again. Between tries it waits for
// between half and all of 1 s, 2 s, 4 s ... up to 60 s, or for what the error
// asks for if that is longer, up to 60 s; so that many who failed at once do
// not come back at once. Wait is how it waits; nil is a timer.
//
// The error is the last one of send; if ctx ended the waiting, its error is
// wrapped as well.
func Deliver(ctx context.Context, send func(context.Context) error, tries int, wait func(ctx context.Context, d time.Duration) error) (attempts int, err error) {
	if wait == nil {
		wait = pause
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	for backoff := firstWait; ; backoff = min(2*backoff, longestWait) {
		attempts++
		if err = send(ctx); err == nil {
			return attempts, nil
		}
		failed, ok := errors.AsType[*DeliveryError](err)
		if !ok || !failed.Retry || attempts >= tries || ctx.Err() != nil {
			return attempts, err
		}
		jittered := backoff/2 + rand.N(backoff/2+1)
		if ended := wait(ctx, max(jittered, min(failed.After, longestWait))); ended != nil {
			return attempts, fmt.Errorf("%w; not tried again: %w", err, ended)
		}
	}
}

// pause waits, or ends with ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
