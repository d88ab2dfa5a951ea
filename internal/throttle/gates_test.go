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

func TestATrialThatHasBegunClosesTheBreakerAndKeepsItsPlace(t *testing.T) {
	g := throttle.NewGates(throttle.DefaultGates())
	for range 20 {
		pass, _ := g.Enter(at(0), 0)
		g.Leave(at(0), pass, status(429))
	}
	var trials []throttle.Pass
	for range 3 {
		pass, _ := g.Enter(at(16), 0)
		if !pass.Probe() {
			t.Fatal("no trial")
		}
		trials = append(trials, pass)
	}
	if _, refusal := g.Enter(at(16), 0); refusal != throttle.Broken {
		t.Errorf("a fourth trial: %v", refusal)
	}
	for i := range trials {
		trials[i] = g.Begun(at(17), trials[i])
		trials[i] = g.Begun(at(17), trials[i]) // a second time is none
	}
	if s := g.State(throttle.Short, at(17)); s.Phase != release.Closed || s.InFlight != 3 {
		t.Errorf("%+v", s)
	}
	pass, _ := g.Enter(at(17), 0)
	if g.Begun(at(17), pass) != pass {
		t.Error("a call that is no trial was changed")
	}
	for _, p := range append(trials, pass) {
		g.Leave(at(18), p, throttle.Outcome{TimedOut: true})
	}
	if s := g.State(throttle.Short, at(18)); s.Phase != release.Closed || s.InFlight != 0 {
		t.Errorf("%+v", s)
	}
}
