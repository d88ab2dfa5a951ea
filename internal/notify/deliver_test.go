package notify

import (
	"errors"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
)

func failing(after time.Duration) error {
	return &DeliveryError{To: "x", Err: errors.New("no"), Retry: true, After: after}
}

func TestPausesGrowLongerWithJitterAndEndAtAMinute(t *testing.T) {
	differ := map[time.Duration]bool{}
	for range 200 {
		for i := range 12 {
			most := min(3*time.Second<<i, time.Minute)
			if d := Pause(i+1, failing(0)); d < most*3/4 || d > most {
				t.Fatalf("pause %d is %s, want between %s and %s", i+1, d, most*3/4, most)
			}
		}
		differ[Pause(1, failing(0))] = true
	}
	if len(differ) < 100 {
		t.Errorf("only %d different first pauses in 200", len(differ))
	}
	if d := Pause(1_000_000, failing(0)); d > time.Minute {
		t.Errorf("after very many tries %s", d)
	}
}

func TestAPauseIsWhatTheOtherSideAsksForUpToAMinute(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{20 * time.Second: 20 * time.Second, time.Hour: time.Minute} {
		if d := Pause(1, failing(asked)); d != want {
			t.Errorf("asked for %s, pauses %s", asked, d)
		}
	}
	if d := Pause(5, failing(time.Nanosecond)); d < 36*time.Second {
		t.Errorf("asked for less than the backoff, pauses %s", d)
	}
	if d := Pause(1, errors.New("some other error")); d < 2*time.Second || d > 3*time.Second {
		t.Errorf("an error of another type pauses %s", d)
	}
}

// TestFiveTriesReachOverARestartOfHalfAMinute: a hook's tries are five, and a
// command that ends waits a minute for them.
func TestFiveTriesReachOverARestartOfHalfAMinute(t *testing.T) {
	for range 1000 {
		var last time.Duration
		for try := 1; try < hookTries; try++ {
			last += Pause(try, failing(0))
		}
		if last <= 30*time.Second || last >= time.Minute {
			t.Fatalf("the last try comes after %s", last)
		}
	}
}

func TestASecondSendHasTheSameKey(t *testing.T) {
	r := receive(t, 503, "")
	ch := mustNew(t, config.Channel{Kind: "webhook", URL: r.URL}, environ(nil))
	for range 3 {
		if err := ch.Send(t.Context(), rollback()); err == nil {
			t.Fatal("503 is no success")
		}
	}
	if len(r.got) != 3 {
		t.Fatalf("%d requests", len(r.got))
	}
	for _, got := range r.got {
		if got.header.Get("Idempotency-Key") != rollback().Key {
			t.Errorf("key %q", got.header.Get("Idempotency-Key"))
		}
	}
}
