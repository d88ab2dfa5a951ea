package throttle_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/throttle"
)

var start = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

// call lets one call through that ends at once.
func call(t *testing.T, b *throttle.Breaker, seconds float64, o throttle.Outcome) {
	t.Helper()
	ticket, ok := b.Allow(at(seconds))
	if !ok {
		t.Fatalf("at %g s no call goes out: %v", seconds, b.Phase(at(seconds)))
	}
	b.Done(at(seconds), ticket, o)
}

// opened returns a breaker that opens at 0 s.
func opened(t *testing.T) *throttle.Breaker {
	t.Helper()
	b := throttle.NewBreaker(throttle.DefaultBreaker())
	for range 20 {
		call(t, b, 0, status(429))
	}
	if b.Phase(at(0)) != release.Open {
		t.Fatal("20 failures at once do not open it")
	}
	return b
}

func wantPhase(t *testing.T, b *throttle.Breaker, seconds float64, want release.Phase) {
	t.Helper()
	if got := b.Phase(at(seconds)); got != want {
		t.Errorf("at %g s %v, want %v", seconds, got, want)
	}
}

func TestInjected429OpensWithinTenSeconds(t *testing.T) {
	b := throttle.NewBreaker(throttle.DefaultBreaker())
	for i := range 19 {
		call(t, b, float64(i)*0.5, status(429))
	}
	wantPhase(t, b, 9.4, release.Closed)
	call(t, b, 9.5, status(429))
	wantPhase(t, b, 9.5, release.Open)
	if b.Opened() != 1 || b.Wait(at(9.5)) != 15*time.Second {
		t.Errorf("opened %d times, for %v", b.Opened(), b.Wait(at(9.5)))
	}
}

func TestTwentyFailuresOverTenSecondsDoNotOpen(t *testing.T) {
	b := throttle.NewBreaker(throttle.DefaultBreaker())
	for i := range 100 { // the 20th is 10 s after the 1st, which has just left the span
		call(t, b, float64(i)*10/19, status(503))
	}
	wantPhase(t, b, 53, release.Closed)
}

func TestSuccessesDoNotForgiveFailures(t *testing.T) {
	b := throttle.NewBreaker(throttle.DefaultBreaker())
	for i := range 19 {
		call(t, b, float64(i)*0.1, status(429))
		call(t, b, float64(i)*0.1, status(200))
	}
	call(t, b, 2, throttle.Outcome{TimedOut: true})
	wantPhase(t, b, 2, release.Open)
}

func TestWhatIsNoFailureOfTheUpstreamDoesNotOpen(t *testing.T) {
	b := throttle.NewBreaker(throttle.DefaultBreaker())
	for range 100 {
		call(t, b, 1, throttle.Outcome{Cancelled: true})
		call(t, b, 1, status(401))
		call(t, b, 1, status(400))
	}
	wantPhase(t, b, 1, release.Closed)
}

func TestNoCallGoesOutWhileOpen(t *testing.T) {
	b := opened(t)
	for i := range 150 {
		if _, ok := b.Allow(at(float64(i) * 0.1)); ok {
			t.Fatalf("a call goes out at %.1f s", float64(i)*0.1)
		}
	}
	wantPhase(t, b, 14.999, release.Open)
	wantPhase(t, b, 15, release.HalfOpen)
}

func TestHalfOpenLetsExactlyTheAgreedProbesThrough(t *testing.T) {
	b := opened(t)
	var probes []throttle.Ticket
	for range 50 {
		if ticket, ok := b.Allow(at(15)); ok {
			probes = append(probes, ticket)
		}
	}
	if len(probes) != 3 {
		t.Fatalf("%d probes in flight, want 3", len(probes))
	}
	b.Done(at(16), probes[0], status(200))
	if _, ok := b.Allow(at(16)); ok {
		t.Error("a fourth probe goes out, though two more successes close it and two are under way")
	}
	b.Done(at(16), probes[1], status(200))
	wantPhase(t, b, 16, release.HalfOpen)
	b.Done(at(16), probes[2], status(200))
	wantPhase(t, b, 16, release.Closed)
}

func TestAFailedProbeOpensAgainForTheWholeTime(t *testing.T) {
	b := opened(t)
	probe, _ := b.Allow(at(15))
	other, _ := b.Allow(at(15))
	b.Done(at(17), probe, status(429))
	wantPhase(t, b, 31.9, release.Open)
	b.Done(at(18), other, status(200)) // of a round that is over
	wantPhase(t, b, 31.9, release.Open)
	wantPhase(t, b, 32, release.HalfOpen)
	if b.Opened() != 2 {
		t.Errorf("opened %d times, want 2", b.Opened())
	}
}

func TestACancelledProbeGivesItsPlaceBack(t *testing.T) {
	b := opened(t)
	for range 30 {
		call(t, b, 15, throttle.Outcome{Cancelled: true})
	}
	wantPhase(t, b, 15, release.HalfOpen)
	for range 3 {
		call(t, b, 15, status(200))
	}
	wantPhase(t, b, 15, release.Closed)
}

// TestProbesOfAnEarlierRoundHoldTheirPlaces: a probe that hangs still holds a
// place of the upstream, so the next round has one probe fewer at a time.
func TestProbesOfAnEarlierRoundHoldTheirPlaces(t *testing.T) {
	b := opened(t)
	hanging, _ := b.Allow(at(15))
	failing, _ := b.Allow(at(15))
	b.Done(at(15), failing, status(500))
	first, _ := b.Allow(at(30))
	second, _ := b.Allow(at(30))
	if _, ok := b.Allow(at(30)); ok {
		t.Error("three probes of this round beside one of the round before")
	}
	b.Done(at(31), first, status(200))
	b.Done(at(31), second, status(200))
	b.Done(at(31), hanging, throttle.Outcome{TimedOut: true})
	call(t, b, 31, status(200))
	wantPhase(t, b, 31, release.Closed)
}

func TestCallsFromBeforeTheTripChangeNothing(t *testing.T) {
	b := throttle.NewBreaker(throttle.DefaultBreaker())
	var late []throttle.Ticket
	for range 40 {
		ticket, _ := b.Allow(at(0))
		late = append(late, ticket)
	}
	for _, ticket := range late[:20] {
		b.Done(at(1), ticket, status(429))
	}
	for range 3 {
		call(t, b, 16, status(200))
	}
	for _, ticket := range late[20:] {
		b.Done(at(17), ticket, throttle.Outcome{TimedOut: true})
	}
	wantPhase(t, b, 17, release.Closed)
}

// TestBreakerKeepsItsPromises holds any course of calls to what the policy
// says, against a model that keeps every failure.
func TestBreakerKeepsItsPromises(t *testing.T) {
	outcomes := []throttle.Outcome{status(200), status(429), status(503), status(401), {TimedOut: true}, {Cancelled: true}}
	rapid.Check(t, func(t *rapid.T) {
		p := throttle.BreakerPolicy{
			Failures: rapid.IntRange(1, 4).Draw(t, "failures"), Within: 10 * time.Second, OpenFor: 5 * time.Second,
			Probes: rapid.IntRange(1, 4).Draw(t, "probes"), Successes: rapid.IntRange(1, 4).Draw(t, "successes"),
		}
		b := throttle.NewBreaker(p)
		var flying []throttle.Ticket
		var openUntil time.Time
		now := start
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 6000).Draw(t, "ms")) * time.Millisecond)
			if len(flying) > 0 && rapid.Bool().Draw(t, "ends") {
				i := rapid.IntRange(0, len(flying)-1).Draw(t, "which")
				before := b.Opened()
				b.Done(now, flying[i], rapid.SampledFrom(outcomes).Draw(t, "outcome"))
				flying = append(flying[:i], flying[i+1:]...)
				if b.Opened() > before {
					openUntil = now.Add(p.OpenFor)
				}
				continue
			}
			phase := b.Phase(now)
			ticket, ok := b.Allow(now)
			switch {
			case phase == release.Closed && !ok:
				t.Fatal("CLOSED refuses a call")
			case ok && now.Before(openUntil):
				t.Fatal("a call goes out while OPEN")
			case ok && (phase == release.HalfOpen) != ticket.Probe():
				t.Fatalf("%v lets a call through with probe %v", phase, ticket.Probe())
			}
			if ok {
				flying = append(flying, ticket)
			}
			probes := 0
			for _, f := range flying {
				if f.Probe() {
					probes++
				}
			}
			if probes > p.Probes {
				t.Fatalf("%d probes in flight, at most %d", probes, p.Probes)
			}
		}
		for _, f := range flying { // nothing may be left that keeps it from closing
			b.Done(now, f, throttle.Outcome{Cancelled: true})
		}
		now = now.Add(p.OpenFor)
		for range p.Successes {
			ticket, ok := b.Allow(now)
			if !ok {
				t.Fatalf("%v with nothing in flight refuses a call", b.Phase(now))
			}
			b.Done(now, ticket, status(200))
		}
		if got := b.Phase(now); got != release.Closed {
			t.Fatalf("%v after a round of successes", got)
		}
	})
}
