package notify

import (
	"errors"
	"math/rand/v2"
	"time"
)

const (
	firstWait = 3 * time.Second
	// longestWait bounds one wait, also where the other side asks for more: a
	// rollback's hooks are waited for.
	longestWait = 60 * time.Second
)

// Pause is how long to wait after a try that failed, the first being 1: between
// three quarters and all of 3 s, 6 s, 12 s ... up to 60 s, or what the error
// asks for if that is longer, up to 60 s. So many who failed at once do not come
// back at once, and five tries, a hook's default, reach over a restart of half a
// minute at the other side.
func Pause(try int, err error) time.Duration {
	backoff := firstWait
	for i := 1; i < try && backoff < longestWait; i++ {
		backoff = min(2*backoff, longestWait)
	}
	pause := backoff - rand.N(backoff/4+1)
	if failed, ok := errors.AsType[*DeliveryError](err); ok {
		pause = max(pause, min(failed.After, longestWait))
	}
	return pause
}
