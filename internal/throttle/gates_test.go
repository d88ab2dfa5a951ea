package throttle_test

import (
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/throttle"
)

func TestPromptsOverTheSplitAreLong(t *testing.T) {
	p := throttle.DefaultGates()
	for tokens, want := range map[int64]throttle.Lane{0: throttle.Short, 32_000: throttle.Short, 32_001: throttle.Long} {
		if got := p.Lane(tokens); got != want {
			t.Errorf("%d tokens: %v, want %v", tokens, got, want)
		}
	}
}

func TestEachLaneHasItsPlaces(t *testing.T) {
	g := throttle.NewGates(throttle.DefaultGates())
	fill := func(tokens int64) (passes []throttle.Pass) {
		for range 100 {
			pass, refusal := g.Enter(at(0), tokens)
			if refusal != throttle.Admitted {
				if refusal != throttle.Full {
					t.Fatalf("refused: %v", refusal)
				}
				return passes
			}
			passes = append(passes, pass)
		}
		t.Fatal("no end of places")
		return nil
	}
	long := fill(40_000)
	short := fill(100)
	if len(short) != 48 || len(long) != 12 {
		t.Fatalf("%d short and %d long calls at once, want 48 and 12", len(short), len(long))
	}
	g.Leave(at(1), long[0], status(200))
	if _, refusal := g.Enter(at(1), 100); refusal != throttle.Full {
		t.Error("a long call that leaves makes room for a short one")
	}
	if _, refusal := g.Enter(at(1), 40_000); refusal != throttle.Admitted {
		t.Errorf("a place that was given back is not there: %v", refusal)
	}
}

func TestFailuresOfLongPromptsLeaveShortOnesAlone(t *testing.T) {
	g := throttle.NewGates(throttle.DefaultGates())
	for range 20 {
		pass, _ := g.Enter(at(0), 100_000)
		g.Leave(at(0), pass, status(429))
	}
	if _, refusal := g.Enter(at(0), 100_000); refusal != throttle.Broken {
		t.Errorf("long: %v, want broken", refusal)
	}
	if _, refusal := g.Enter(at(0), 100); refusal != throttle.Admitted {
		t.Errorf("short: %v, want admitted", refusal)
	}
	long, short := g.State(throttle.Long, at(0)), g.State(throttle.Short, at(0))
	if long != (throttle.LaneState{Phase: release.Open, Wait: 15 * time.Second, Places: 12, Opened: 1}) {
		t.Errorf("long: %+v", long)
	}
	if short != (throttle.LaneState{Phase: release.Closed, InFlight: 1, Places: 48}) {
		t.Errorf("short: %+v", short)
	}
}

func TestAFullLaneTakesNoProbe(t *testing.T) {
	p := throttle.DefaultGates()
	p.Short, p.Breaker.Failures = 1, 1
	g := throttle.NewGates(p)
	pass, _ := g.Enter(at(0), 1)
	g.Leave(at(0), pass, status(429))
	probe, refusal := g.Enter(at(15), 1)
	if refusal != throttle.Admitted || !probe.Probe() {
		t.Fatalf("%v", refusal)
	}
	for range 10 {
		if _, refusal := g.Enter(at(15), 1); refusal != throttle.Full {
			t.Fatalf("%v, want full", refusal)
		}
	}
	g.Leave(at(16), probe, throttle.Outcome{Cancelled: true})
	if _, refusal := g.Enter(at(16), 1); refusal != throttle.Admitted {
		t.Errorf("after the probe was cancelled: %v", refusal)
	}
}
