package scenarios_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/scenario"
	"github.com/canaryctl/canaryctl/internal/simulate"
	"github.com/canaryctl/canaryctl/scenarios"
)

func stormNames(t testing.TB) (names []string) {
	t.Helper()
	files, err := fs.Glob(scenarios.FS, "storm-*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f, ".yaml"))
	}
	return names
}

// weather lets every client of a storm loose on it.
func weather(t testing.TB, sc *scenario.Scenario, seed uint64) (outs []*simulate.StormOutcome) {
	t.Helper()
	for _, c := range sc.Storm.Clients {
		out, err := simulate.RunStorm(&sc.Storm.Storm, c, seed, nil)
		if err != nil {
			t.Fatal(err)
		}
		outs = append(outs, out)
	}
	return outs
}

// TestEveryStormHoldsItsExpectations, and not by the luck of its seed.
func TestEveryStormHoldsItsExpectations(t *testing.T) {
	if got, want := strings.Join(stormNames(t), " "), "storm-429 storm-injected storm-long-prompts storm-short-timeout"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, name := range stormNames(t) {
		t.Run(name, func(t *testing.T) {
			sc := load(t, name)
			if sc.Name != name || sc.Storm == nil {
				t.Fatalf("%s.yaml calls itself %s", name, sc.Name)
			}
			for seed := range uint64(3) {
				for _, r := range sc.Storm.Check(weather(t, sc, seed+1)) {
					if !r.OK {
						t.Errorf("seed %d\nwant %s\ngot  %s", seed+1, r.Want, r.Got)
					}
				}
			}
		})
	}
}

// An expectation that cannot fail tests nothing.
func TestExpectationsOfStormsFailWhenWhatTheyGuardIsChanged(t *testing.T) {
	for _, tc := range []struct {
		name, storm string
		changes     []string
		broken      string // part of the want that must fail
		got         string // part of what came instead
	}{
		{"a service that does not count refused calls recovers", "storm-429", []string{"refusal_cost: 0.5", "refusal_cost: 0"},
			"naive retries: never recovers", "recovers after"},
		{"without a breaker there is no way out", "storm-429", []string{"breaker: true", "breaker: false"},
			"the whole policy: recovers within 30 s", "never recovers"},
		{"a burst within the limit is no storm", "storm-429", []string{"short_per_sec: 80", "short_per_sec: 1"},
			"the whole policy: the breaker opens within 10 s", "never opens"},
		{"one naive attempt does not amplify", "storm-injected", []string{"attempts: 20", "attempts: 1"},
			"naive retries: calls a request above 5", "calls a request 1 "},
		{"without a breaker all is sent on", "storm-injected", []string{"breaker: true", "breaker: false"},
			"the whole policy: share of 429 below 0.02", "share of 429 0."},
		{"without gates short requests are disturbed", "storm-long-prompts", []string{", gates: true", ""},
			"two gates: share answered of short prompts above 0.9999", "share answered of short prompts 0.8"},
		{"a patient client makes no ghosts", "storm-short-timeout", []string{"timeout_s: 30", "timeout_s: 120"},
			"after 30 s: share of 429 above 0.2", "share of 429 0 "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sc := load(t, tc.storm, tc.changes...)
			for _, r := range sc.Storm.Check(weather(t, sc, sc.Seed)) {
				if strings.Contains(r.Want, tc.broken) {
					if r.OK || !strings.Contains(r.Got, tc.got) {
						t.Errorf("want it broken with %q\nwant %s\ngot  %s\nok   %t", tc.got, r.Want, r.Got, r.OK)
					}
					return
				}
			}
			t.Errorf("no expectation about %q", tc.broken)
		})
	}
}
