package simulate

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/throttle"
)

// overload is an upstream that allows 30 calls a second and counts half of each
// refused one, with 24 requests a second and a burst of 80 more for 20 s.
func overload() *Storm {
	return &Storm{
		Seconds:  300,
		Short:    StormTraffic{PerSec: 24, Tokens: 1200, Service: time.Second, Spread: 0.3},
		Faults:   []StormFault{{From: 60, Seconds: 20, Short: 80}},
		Upstream: StormUpstream{Refusal: 50 * time.Millisecond, PerSec: 30, Burst: 30, RefusalCost: 0.5, RetryAfter: time.Second},
	}
}

func policyClient() StormClient {
	return StormClient{
		Name: "policy", Retry: throttle.DefaultRetry(), Heeds: true, Breaker: true, Gates: true, Policy: throttle.DefaultGates(),
		Timeout: 180 * time.Second, Queue: 2 * time.Second,
	}
}

func naiveClient() StormClient {
	return StormClient{Name: "naive", Retry: NaiveRetry(20), Policy: throttle.DefaultGates(), Timeout: 180 * time.Second}
}

func storm(t *testing.T, s *Storm, c StormClient) *StormOutcome {
	t.Helper()
	out, err := RunStorm(s, c, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNaiveRetriesKeepAStormGoing: the burst is over after 20 s, and the
// retries of what comes every day keep the upstream at its limit for ever.
func TestNaiveRetriesKeepAStormGoing(t *testing.T) {
	naive, none, policy := storm(t, overload(), naiveClient()), StormClient{Name: "none", Retry: NaiveRetry(1)}, storm(t, overload(), policyClient())
	without := storm(t, overload(), none)
	if naive.RecoveredS != nil {
		t.Errorf("naive retries recover after %g s", *naive.RecoveredS)
	}
	if without.RecoveredS == nil || *without.RecoveredS > 5 {
		t.Errorf("without retries: recovered %v", without.RecoveredS)
	}
	if policy.RecoveredS == nil || *policy.RecoveredS > 30 {
		t.Errorf("under the policy: recovered %v", policy.RecoveredS)
	}
	if naive.Attempts < 5*naive.Requests() || policy.Attempts > 2*policy.Requests() || without.Attempts != without.Requests() {
		t.Errorf("calls for %d requests: naive %d, policy %d, without %d", naive.Requests(), naive.Attempts, policy.Attempts, without.Attempts)
	}
}

// TestInjected429 is the acceptance of the policy: the breaker opens within
// 10 s, nothing goes out while it is open, and half-open lets 3 probes
// through a round.
func TestInjected429(t *testing.T) {
	s := &Storm{
		Seconds:  180,
		Short:    StormTraffic{PerSec: 20, Tokens: 1200, Service: time.Second},
		Faults:   []StormFault{{From: 60, Seconds: 60, Refuse: true}},
		Upstream: StormUpstream{Refusal: 50 * time.Millisecond},
	}
	out := storm(t, s, policyClient())
	if out.OpenedS == nil || *out.OpenedS > 10 || *out.OpenedS < 0 {
		t.Errorf("opened %v s after the first 429, want within 10", out.OpenedS)
	}
	if out.WhileOpen != 0 {
		t.Errorf("%d calls go out while it is open", out.WhileOpen)
	}
	// 20 failures open it; later ones are calls in flight and three rounds of
	// at most 3 probes, of which the first to fail opens it again.
	if out.RateLimited < 20 || out.RateLimited > 20+2+3*3 {
		t.Errorf("%d calls are refused in a minute, want 20 and few more", out.RateLimited)
	}
	if out.Opened < 4 || out.Opened > 5 {
		t.Errorf("opened %d times in a minute, want about one in 15 s", out.Opened)
	}
	if out.RecoveredS == nil || *out.RecoveredS > 20 {
		t.Errorf("recovered %v s after the end, want within 20", out.RecoveredS)
	}
}

// TestLongPromptsDoNotDisturbShortOnes: without gates long prompts fill the
// upstream, with them they stay within their 12 places.
func TestLongPromptsDoNotDisturbShortOnes(t *testing.T) {
	s := &Storm{
		Seconds:  240,
		Short:    StormTraffic{PerSec: 12, Tokens: 1200, Service: 2 * time.Second, Spread: 0.3},
		Long:     StormTraffic{PerSec: 0.1, Tokens: 48_000, Service: 30 * time.Second, Spread: 0.3},
		Faults:   []StormFault{{From: 60, Seconds: 60, Long: 4}},
		Upstream: StormUpstream{Places: 60, Refusal: 50 * time.Millisecond},
	}
	with := policyClient()
	without := with
	without.Gates = false
	a, b := storm(t, s, with), storm(t, s, without)
	if a.Short.Answered != a.Short.Requests {
		t.Errorf("with gates %d of %d short requests are answered", a.Short.Answered, a.Short.Requests)
	}
	if 100*b.Short.Answered > 95*b.Short.Requests {
		t.Errorf("without gates %d of %d short requests are answered: the test shows nothing", b.Short.Answered, b.Short.Requests)
	}
	// And the other way round: short ones do not take the places of long ones.
	s.Faults = []StormFault{{From: 60, Seconds: 60, Short: 100}}
	if a := storm(t, s, with); a.Long.Answered != a.Long.Requests {
		t.Errorf("with gates %d of %d long requests are answered in a storm of short ones", a.Long.Answered, a.Long.Requests)
	}
}

// TestAShortTimeoutMakesGhosts: what the client gives up goes on upstream.
func TestAShortTimeoutMakesGhosts(t *testing.T) {
	s := &Storm{
		Seconds: 300,
		Long:    StormTraffic{PerSec: 1, Tokens: 48_000, Service: 40 * time.Second, Spread: 0.2},
		// 40 calls at once on average.
		Upstream: StormUpstream{Places: 60, Refusal: 50 * time.Millisecond},
	}
	c := policyClient()
	c.Gates, c.Breaker = false, false
	patient := storm(t, s, c)
	c.Timeout = 30 * time.Second
	hasty := storm(t, s, c)
	if patient.Timeouts != 0 || patient.RateLimited != 0 || patient.Answered() != patient.Requests() {
		t.Errorf("180 s: %d time-outs, %d of 429, %d of %d answered", patient.Timeouts, patient.RateLimited, patient.Answered(), patient.Requests())
	}
	if hasty.Timeouts == 0 || hasty.RateLimited == 0 || 2*hasty.Answered() > hasty.Requests() {
		t.Errorf("30 s: %d time-outs, %d of 429, %d of %d answered", hasty.Timeouts, hasty.RateLimited, hasty.Answered(), hasty.Requests())
	}
}

func TestAStormIsTheSameEveryTime(t *testing.T) {
	a, b := storm(t, overload(), policyClient()), storm(t, overload(), policyClient())
	if !reflect.DeepEqual(a, b) {
		t.Error("two runs differ")
	}
	other, err := RunStorm(overload(), policyClient(), 2, nil)
	if err != nil || reflect.DeepEqual(a.Buckets, other.Buckets) {
		t.Errorf("another seed gives the same run: %v", err)
	}
	for i, b := range storm(t, overload(), naiveClient()).Buckets {
		if b.Arrived != a.Buckets[i].Arrived {
			t.Fatal("two clients meet different requests")
		}
	}
}

func TestTooLargeStormsAreRefused(t *testing.T) {
	s := overload()
	s.Short.PerSec = 1e6
	if _, err := RunStorm(s, policyClient(), 1, nil); !errors.Is(err, ErrStormTooLarge) {
		t.Errorf("%v", err)
	}
	stop := errors.New("enough")
	s = overload()
	s.Seconds = 3000
	if _, err := RunStorm(s, naiveClient(), 1, func() error { return stop }); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
}

// TestEveryRequestEnds: whatever storm and client, each request is answered or
// fails for one reason, no request is tried more often than allowed, and no
// call goes out through an open breaker.
func TestEveryRequestEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seconds := func(name string, most float64) time.Duration {
			return time.Duration(rapid.Float64Range(0, most).Draw(t, name) * float64(time.Second))
		}
		s := &Storm{
			Seconds: rapid.IntRange(1, 40).Draw(t, "seconds"),
			Short:   StormTraffic{PerSec: rapid.Float64Range(0, 30).Draw(t, "short"), Tokens: 10, Service: seconds("service", 5), Spread: 0.5},
			Long:    StormTraffic{PerSec: rapid.Float64Range(0, 5).Draw(t, "long"), Tokens: 40_000, Service: seconds("long service", 50), Spread: 0.5},
			Faults:  []StormFault{{From: rapid.IntRange(0, 20).Draw(t, "from"), Seconds: 10, Refuse: rapid.Bool().Draw(t, "refuse"), Short: rapid.Float64Range(0, 100).Draw(t, "burst")}},
			Upstream: StormUpstream{
				Places: rapid.IntRange(0, 40).Draw(t, "places"), Refusal: 50 * time.Millisecond, RetryAfter: seconds("retry after", 10),
				PerSec: rapid.Float64Range(0, 40).Draw(t, "rate"), Burst: 20, RefusalCost: rapid.Float64Range(0, 1).Draw(t, "cost"),
			},
		}
		c := policyClient()
		c.Gates, c.Breaker, c.Heeds = rapid.Bool().Draw(t, "gates"), rapid.Bool().Draw(t, "breaker"), rapid.Bool().Draw(t, "heeds")
		c.Timeout = seconds("timeout", 60)
		if rapid.Bool().Draw(t, "naive") {
			c.Retry = NaiveRetry(rapid.IntRange(1, 8).Draw(t, "attempts"))
		}
		out, err := RunStorm(s, c, rapid.Uint64().Draw(t, "seed"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if ended := out.Answered() + out.NoRetry + out.ByBreaker + out.ByGate; ended != out.Requests() {
			t.Fatalf("%d of %d requests end", ended, out.Requests())
		}
		if out.Attempts > int64(c.Retry.Attempts)*out.Requests() {
			t.Fatalf("%d calls for %d requests", out.Attempts, out.Requests())
		}
		if out.WhileOpen != 0 {
			t.Fatalf("%d calls go out while OPEN", out.WhileOpen)
		}
		if out.RateLimited > out.Attempts || out.Answered() > out.Attempts {
			t.Fatalf("%+v", out)
		}
	})
}
