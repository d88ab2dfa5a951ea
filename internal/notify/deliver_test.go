package notify

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
)

func failing(retry bool, after time.Duration) error {
	return &DeliveryError{To: "x", Err: errors.New("no"), Retry: retry, After: after}
}

// run delivers against a list of outcomes; the last one stays.
func run(ctx context.Context, tries int, outcomes ...error) (attempts int, waits []time.Duration, err error) {
	n := 0
	attempts, err = Deliver(ctx, func(context.Context) error {
		n++
		return outcomes[min(n, len(outcomes))-1]
	}, tries, func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	})
	return attempts, waits, err
}

func TestDeliverTriesAgainOnlyWhatMayMend(t *testing.T) {
	other := errors.New("some other error")
	cases := []struct {
		name     string
		tries    int
		outcomes []error
		attempts int
		fails    bool
	}{
		{"success at once", 5, []error{nil}, 1, false},
		{"success at the third try", 5, []error{failing(true, 0), failing(true, 0), nil}, 3, false},
		{"permanent stops at once", 5, []error{failing(false, 0)}, 1, true},
		{"permanent after a retry stops", 5, []error{failing(true, 0), failing(false, 0)}, 2, true},
		{"an error of another type is permanent", 5, []error{other}, 1, true},
		{"tries are used up", 3, []error{failing(true, 0)}, 3, true},
		{"no tries are one", 0, []error{failing(true, 0)}, 1, true},
	}
	for _, c := range cases {
		attempts, waits, err := run(t.Context(), c.tries, c.outcomes...)
		if attempts != c.attempts || (err != nil) != c.fails || len(waits) != attempts-1 {
			t.Errorf("%s: %d attempts, %d waits, %v", c.name, attempts, len(waits), err)
		}
	}
}

func TestDeliverWaitsLongerAndLongerWithJitter(t *testing.T) {
	differ := map[time.Duration]bool{}
	for range 200 {
		_, waits, _ := run(t.Context(), 9, failing(true, 0))
		for i, d := range waits {
			most := min(time.Second<<i, time.Minute)
			if d < most/2 || d > most {
				t.Fatalf("wait %d is %s, want between %s and %s", i, d, most/2, most)
			}
		}
		differ[waits[0]] = true
	}
	if len(differ) < 100 {
		t.Errorf("only %d different first waits in 200", len(differ))
	}
}

func TestDeliverWaitsAsAskedUpToAMinute(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{20 * time.Second: 20 * time.Second, time.Hour: time.Minute} {
		if _, waits, _ := run(t.Context(), 2, failing(true, asked)); waits[0] != want {
			t.Errorf("asked for %s, waited %s", asked, waits[0])
		}
	}
	if _, waits, _ := run(t.Context(), 6, failing(true, time.Nanosecond)); waits[4] < 8*time.Second {
		t.Errorf("asked for less than the backoff, waited %s", waits[4])
	}
}

func TestDeliverEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		attempts, err := Deliver(ctx, func(context.Context) error { return failing(true, time.Minute) }, 5, nil)
		if _, ok := errors.AsType[*DeliveryError](err); attempts != 1 || !ok || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d attempts, %v", attempts, err)
		}
		attempts, err = Deliver(ctx, func(context.Context) error { t.Error("sent"); return nil }, 5, nil)
		if attempts != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d attempts, %v", attempts, err)
		}
	})
}

func TestDeliverSendsTheSameKeyAgain(t *testing.T) {
	r := receive(t, 503, "")
	ch := mustNew(t, config.Channel{Kind: "webhook", URL: r.URL}, environ(nil))
	attempts, err := Deliver(t.Context(), func(ctx context.Context) error { return ch.Send(ctx, rollback()) }, 3,
		func(context.Context, time.Duration) error { return nil })
	if attempts != 3 || err == nil {
		t.Fatalf("%d attempts, %v", attempts, err)
	}
	for _, got := range r.got {
		if got.header.Get("Idempotency-Key") != rollback().Key {
			t.Errorf("key %q", got.header.Get("Idempotency-Key"))
		}
	}
}
