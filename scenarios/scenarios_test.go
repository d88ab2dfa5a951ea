package scenarios_test

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/batch"
	"github.com/canaryctl/canaryctl/internal/calibrate"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/scenario"
	"github.com/canaryctl/canaryctl/internal/simulate"
	"github.com/canaryctl/canaryctl/scenarios"
)

// load parses a built-in scenario, changed by replacements (old, new).
func load(t testing.TB, name string, changes ...string) *scenario.Scenario {
	t.Helper()
	src, err := scenarios.FS.ReadFile(name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(src)
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			t.Fatalf("%s does not contain %q", name, changes[i])
		}
		text = strings.ReplaceAll(text, changes[i], changes[i+1])
	}
	sc, list := scenario.Parse(name+".yaml", []byte(text))
	for _, f := range list {
		t.Error(f.Render([]byte(text)))
	}
	if sc == nil {
		t.FailNow()
	}
	return sc
}

// replay runs a scenario under its own plan.
func replay(t testing.TB, sc *scenario.Scenario, seed uint64) *simulate.Outcome {
	t.Helper()
	plan := sc.Config.Plan()
	out, err := simulate.Run(plan, sc.Feed(plan, seed), sc.Options())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// replays runs a scenario with as many seeds as its expectations ask for.
func replays(t testing.TB, sc *scenario.Scenario) []*simulate.Outcome {
	t.Helper()
	outs, err := batch.Run(t.Context(), batch.Seeds(sc.Seed, sc.Runs()), 0, func(_ context.Context, seed uint64) (*simulate.Outcome, error) {
		plan := sc.Config.Plan()
		return simulate.Run(plan, sc.Feed(plan, seed), sc.Options())
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return outs
}

func names(t testing.TB) (names []string) {
	t.Helper()
	files, err := fs.Glob(scenarios.FS, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasPrefix(f, "storm-") { // those have tests of their own
			names = append(names, strings.TrimSuffix(f, ".yaml"))
		}
	}
	return names
}

func TestBuiltInsAreThoseOfTheDesign(t *testing.T) {
	want := "adaptive-share copied-thresholds cost-storm flapping healthy-week incident-0217 kv-exhaustion label-lag low-traffic rate-limited " +
		"scenario-a scenario-b scenes server-errors-5xx slow-decay stream-aborts streaming-missing tail-latency ttft-p99 ttft-slow-share"
	if got := strings.Join(names(t), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, name := range names(t) {
		if sc := load(t, name); sc.Name != name {
			t.Errorf("%s.yaml calls itself %s", name, sc.Name)
		}
	}
}

func TestEveryBuiltInHoldsItsExpectations(t *testing.T) {
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			for _, sc := range parts(load(t, name)) {
				for _, r := range sc.Check(replay(t, sc, sc.Seed)) {
					if !r.OK {
						t.Errorf("\nwant %s\ngot  %s", r.Want, r.Got)
					}
				}
			}
		})
	}
}

func TestEveryBuiltInHoldsItsExpectationsOverRuns(t *testing.T) {
	for _, name := range names(t) {
		sc := load(t, name)
		if sc.Runs() == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			for _, r := range sc.CheckRuns(replays(t, sc)) {
				t.Logf("want %s, got %s", r.Want, r.Got)
				if !r.OK {
					t.Errorf("\nwant %s\ngot  %s", r.Want, r.Got)
				}
			}
		})
	}
}

// An expectation that cannot fail tests nothing: each change of plan or feed
// must break at least the expectation that is about it.
func TestExpectationsFailWhenWhatTheyGuardIsChanged(t *testing.T) {
	for _, tc := range []struct {
		name, scenario string
		changes        []string
		broken         string // part of the want that must fail
		got            string // part of what came instead
	}{
		{"a cooldown of 3 is struck down at its first probe", "scenario-a", []string{"cooldown_min: 6", "cooldown_min: 3"},
			"22 CLOSED -> OPEN violations; 28", "25 HALF_OPEN -> OPEN violations escalated locked"},
		{"a higher limit sees no burst", "scenario-a", []string{"violation_limit: 3", "violation_limit: 5"},
			"22 CLOSED -> OPEN violations; 28", "no transition"},
		{"a later burst is found in its minute", "scenario-a", []string{"from: 21", "from: 30"},
			"22 CLOSED -> OPEN violations; 28", "31 CLOSED -> OPEN violations"},
		{"more samples than the span holds are never there", "scenario-b", []string{"min_samples_slow: 200", "min_samples_slow: 201"},
			"35 CLOSED -> OPEN solve_rate", "no transition"},
		{"a limit below the rate never trips", "scenario-b", []string{"drop_pp: 10", "drop_pp: 20"},
			"ends OPEN, locked, at 0 %", "ends CLOSED, not locked, at 1 %"},
		{"hand-offs as on stable trip nothing", "incident-0217", []string{"count: 4", "count: 1"},
			"fewer than 121 canary requests", "not rolled back after the fault"},
		{"a higher limit misses the incident", "incident-0217", []string{"transfer_rate_ratio_limit: 3.0", "transfer_rate_ratio_limit: 4.0"},
			"0 to 1 CLOSED -> OPEN transfers", "no transition"},
		{"a canary with a drop is no healthy week", "healthy-week", []string{"faults:", "faults:\n    - { fault: solve_drop, pp: 6, from: 3000 }"},
			"no transition", "CLOSED -> OPEN solve_rate"},
		{"thresholds for the traffic do not trip", "copied-thresholds", []string{"min_transfer_count: 3", "min_transfer_count: 9"},
			"at least 50 trips", "trip"},
		{"a lock ends the storm", "cost-storm", []string{"lock_on_escalate: false", "lock_on_escalate: true"},
			"349 complete", "lock at step 1"},
		{"a storm below the limit is none", "cost-storm", []string{"factor: 2.2", "factor: 1.9"},
			"80 CLOSED -> OPEN cost", "no transition"},
		{"latency a little above the baseline is within the limit", "tail-latency", []string{"factor: 5", "factor: 1.2"},
			"90 to 92 CLOSED -> OPEN p99", "no transition"},
		{"probes of six requests cannot tell", "slow-decay", []string{"half_open_min_requests: 60", "half_open_min_requests: 0"},
			"HALF_OPEN -> OPEN probes escalated locked", "HALF_OPEN -> CLOSED probes"},
		{"fewer samples let the step pass", "low-traffic", []string{"min_samples_slow: 200", "min_samples_slow: 150"},
			"never advance", "120 advance at step 2"},
		{"no end of attempts goes on for ever", "flapping", []string{"max_attempts: 3", "max_attempts: 0"},
			"ends OPEN, locked", "not locked"},
		{"labels read at once trip", "label-lag", []string{"label_lag_min: 30", "label_lag_min: 0"},
			"no transition", "19 CLOSED -> OPEN solve_rate"},
		{"labels read too early trip", "label-lag", []string{"label_lag_min: 30", "label_lag_min: 25"},
			"no transition", "CLOSED -> OPEN solve_rate"},
		{"errors at the limit lower no share", "adaptive-share", []string{"rate: 0.12", "rate: 0.05"},
			"60 to 62 adjust", "55 adjust at step 1; 65 adjust"},
		{"without adaptive the share stays", "adaptive-share", []string{"    adaptive: { error_limit: 0.05 }\n", ""},
			"60 to 62 adjust", "0 start at step 1; 180 advance"},
		{"a first token within the limit trips nothing", "ttft-p99", []string{"ms: 4200", "ms: 3000"},
			"80 CLOSED -> OPEN ttft_p99", "no transition"},
		{"a shorter baseline lowers the limit", "ttft-p99", []string{"slow_layer:", "streaming: { ttft_p99: { baseline_ms: 180 } }\n      slow_layer:"},
			"80 CLOSED -> OPEN ttft_p99", "0 CLOSED -> OPEN ttft_p99"},
		{"as few slow streams as allowed trip nothing", "ttft-slow-share", []string{"rate: 0.08", "rate: 0.029"},
			"81 CLOSED -> OPEN ttft_slow", "no transition"},
		{"a cache that does not fill throttles nothing", "kv-exhaustion", []string{"pp_per_hour: 120", "pp_per_hour: 1"},
			"adjust at step 2", "30 advance at step 2"},
		{"an engine that stays fast holds nothing", "kv-exhaustion", []string{"ms: 500", "ms: 150", "pp_per_hour: 120", "pp_per_hour: 1"},
			"ends CLOSED", "complete"},
		{"a limit that rolls back does", "kv-exhaustion", []string{"slow_layer:", "streaming: { kv_cache: { action: trip } }\n      slow_layer:"},
			"no transition", "68 CLOSED -> OPEN kv_cache"},
		{"as few broken streams as allowed trip nothing", "stream-aborts", []string{"rate: 0.05", "rate: 0.004"},
			"80 CLOSED -> OPEN stream_aborts", "no transition"},
		{"as few 5xx as allowed trip nothing", "server-errors-5xx", []string{"rate: 0.05", "rate: 0.008"},
			"80 CLOSED -> OPEN server_errors", "no transition"},
		{"as few refusals as allowed trip nothing", "rate-limited", []string{"rate: 0.1", "rate: 0.008"},
			"80 CLOSED -> OPEN errors", "no transition"},
		{"what is not demanded is not waited for", "streaming-missing", []string{"mode: enforce", "mode: observe"},
			"never advance", "30 advance"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sc := load(t, tc.scenario, tc.changes...)
			for _, r := range sc.Check(replay(t, sc, sc.Seed)) {
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

// The published limits in the place of the derived ones break the budget.
func TestHealthyWeekWithoutItsP99MinimumBreaksTheBudget(t *testing.T) {
	sc := load(t, "healthy-week", "p99_min_samples: 100", "p99_min_samples: 0", "of: 200", "of: 10")
	for _, r := range sc.CheckRuns(replays(t, sc)) {
		if r.OK {
			t.Errorf("want %s\ngot  %s", r.Want, r.Got)
		}
	}
}

// The limits that healthy-week carries are those that calibrate derives from
// its stable version.
func TestHealthyWeekHasTheLimitsThatCalibrateDerives(t *testing.T) {
	sc := load(t, "healthy-week")
	feed := sc.Feed(nil, sc.Seed)
	var stable []release.Window
	for feed.More() {
		tick, err := feed.Next(release.Weight{})
		if err != nil {
			t.Fatal(err)
		}
		stable = append(stable, tick.Stable...)
	}
	report, err := calibrate.Measure(stable, calibrate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, got *float64, want, tolerance float64) {
		t.Helper()
		if got == nil || *got < want-tolerance || *got > want+tolerance {
			t.Errorf("%s: calibrate says %v, the scenario %g", what, show(got), want)
		}
	}
	near("solve_baseline", &report.Slow.SolveBaseline, 0.901, 0.0005)
	near("solve_rate_drop_pp", &report.Slow.ThresholdPP, 5, 0)
	near("baseline_violation_rate", report.Violations.Rate, 0.00005, 0.000005)
	near("baseline_transfer_rate", report.Transfers.Rate, 0.02, 0.0005)
	near("p99_baseline_ms", report.P99.ValueMS, 300, 10)
	near("noise.z", report.Slow.Z, 4.196, 0.0005)
	near("noise.tau", report.Slow.Tau, 0.0079, 0.0005)
	near("noise.se", report.Slow.SE, 0.0018, 0.0003)
	if n := report.Slow.MinSamples; n == nil || *n > 120 || *n < 105 {
		t.Errorf("min_samples_slow: calibrate says %s, the scenario 114", show(n))
	}
	t.Logf("z %s, tau %s, se %s, min_samples %s", show(report.Slow.Z), show(report.Slow.Tau), show(report.Slow.SE), show(report.Slow.MinSamples))
}

func show[T any](v *T) string {
	if v == nil {
		return "nothing"
	}
	return fmt.Sprint(*v)
}

// At the 200th judged request low-traffic passes, not a minute before.
func TestLowTrafficPassesWithItsTwoHundredthRequest(t *testing.T) {
	sc := load(t, "low-traffic", "minutes: 132", "minutes: 300")
	out := replay(t, sc, 1)
	var got []string
	for _, m := range out.Moves {
		if m.Move == release.Advance {
			got = append(got, strconv.Itoa(m.Minute))
		}
	}
	if strings.Join(got, " ") != "133" {
		t.Errorf("advances at %v, want 133", got)
	}
	if out.Last.Why != ladder.WhyTime {
		t.Errorf("ends with %s", out.Last.Why)
	}
}

func TestAboutExplainsEveryScenario(t *testing.T) {
	for _, name := range names(t) {
		if sc := load(t, name); len(strings.Fields(sc.About)) < 50 {
			t.Errorf("%s explains itself in %d words", name, len(strings.Fields(sc.About)))
		}
	}
}

// A replay depends on the scenario and the seed alone.
func TestReplaysAreRepeatable(t *testing.T) {
	for _, name := range []string{"tail-latency", "copied-thresholds"} {
		sc := load(t, name)
		a, b, c := replay(t, sc, 7), replay(t, sc, 7), replay(t, sc, 8)
		if a.Canary != b.Canary || fmt.Sprint(a.Events) != fmt.Sprint(b.Events) {
			t.Errorf("%s: seed 7 differs from itself", name)
		}
		if fmt.Sprint(a.Events) == fmt.Sprint(c.Events) {
			t.Errorf("%s: seeds 7 and 8 are alike", name)
		}
	}
}
