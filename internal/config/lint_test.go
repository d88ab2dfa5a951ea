package config

import (
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/canaryctl/canaryctl/internal/diag"
	"github.com/canaryctl/canaryctl/internal/release"
)

// only returns the findings of a rule.
func only(list diag.List, rule string) diag.List {
	var out diag.List
	for _, f := range list {
		if f.Rule == rule {
			out = append(out, f)
		}
	}
	return out
}

var aWeek = regexp.MustCompile(`about (\d+) times a week: (\d+) by transfers`)

// TestLintOfPublishedFile holds the figures that DESIGN names: blind at 6
// requests a minute with a gate after 34 minutes, some 80 false trips a week by
// transfers, and no complaint about the cooldown.
func TestLintOfPublishedFile(t *testing.T) {
	cfg := parseOK(t, string(published(t)))
	start := time.Now()
	list := cfg.Lint()
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("lint took %v", took)
	}
	blind := only(list, ruleBlindSlowLayer)
	if len(blind) != 1 || blind[0].Line != 6 || !strings.Contains(blind[0].Message, "needs 34 minutes") {
		t.Errorf("blind: %v", blind)
	}
	trips := only(list, ruleHealthyTrips)
	m := aWeek.FindStringSubmatch(trips[0].Message)
	if m == nil {
		t.Fatalf("trips: %v", trips)
	}
	if n, err := strconv.Atoi(m[2]); err != nil || n < 75 || n > 95 {
		t.Errorf("%s trips a week by transfers, want some 80", m[2])
	}
	if probes := only(list, ruleProbeRound); len(probes) != 1 || !strings.Contains(probes[0].Message, "chance of 21.2 %") {
		t.Errorf("probes: %v", probes)
	}
	if n := len(only(list, ruleDefaultBaseline)); n != 4 {
		t.Errorf("%d baselines are the shipped ones", n)
	}
	for _, rule := range []string{ruleShortCooldown, ruleNoTraffic, ruleMinSamplesUnset, ruleInlineKey, ruleWeightSum, ruleShortSpan, ruleShortHold, ruleThresholdInNoise} {
		if l := only(list, rule); len(l) > 0 {
			t.Errorf("unexpected %v", l)
		}
	}
	if l := only(list, rulePlaceholder); len(l) != 1 || l[0].Line != 48 {
		t.Errorf("placeholders: %v", l)
	}
	if len(list) != 12 {
		t.Errorf("%d findings, want 12", len(list))
	}
	again := cfg.Lint()
	if len(again) != len(list) {
		t.Errorf("a second look finds %d, the first %d", len(again), len(list))
	}
	for i := range again {
		if again[i] != list[i] {
			t.Errorf("a second look says %v, the first %v", again[i], list[i])
		}
	}
}

// calibrated is a file of which lint has nothing to say.
const calibrated = `canary:
  target_service: chat
  requests_per_min: 6000
  steps: [{pct: 0.10, min_hold_min: 60}, {pct: 1.00, min_hold_min: 60}]
  metrics:
    fast_layer: {violation_limit: 20, baseline_violation_rate: 0.0004, p99_baseline_ms: 410, baseline_transfer_rate: 0.018}
    slow_layer: {solve_baseline: 0.93, min_samples_slow: 400}
`

func TestCalibratedFileIsSilent(t *testing.T) {
	if list := parseOK(t, calibrated).Lint(); len(list) > 0 {
		t.Errorf("lint says %v", list)
	}
}

func TestLintWarnings(t *testing.T) {
	versions := func(canary, more string) string {
		return calibrated + "versions:\n  stable: {base_url: http://a, model_id: m, prompt_version: p, temperature: 0.20}\n  canary: {" + canary + "}\n" + more
	}
	tests := []struct{ name, src, want string }{
		{"cooldown as long as the window is enough", calibrated + "    recovery: {cooldown_min: 5}\n", ""},
		{"cooldown a little shorter", calibrated + "    recovery: {cooldown_min: 4.9}\n", "8:30 short-cooldown"},
		{"cooldown against the first step's own window", strings.Replace(calibrated, "min_hold_min: 60}, ", "min_hold_min: 60, limits: {violation_window_min: 10}}, ", 1), "5:3 short-cooldown"},
		{"a later step's window does not matter to probes", strings.Replace(calibrated, "60}]", "60, limits: {violation_window_min: 10}}]", 1), ""},
		{"span of a step shorter than a window", strings.Replace(calibrated, "60}]", "60, limits: {slow_window_min: 0.5}}]", 1), "4:98 short-span"},
		{"solve rate off is never blind", strings.Replace(calibrated, "6000", "100", 1) + "  signals: {solve_rate: {mode: off}, transfers: {mode: off}}\n", ""},
		{"one change", versions("base_url: http://a, model_id: n, prompt_version: p, temperature: 0.2", ""), ""},
		{"no change but the weight", versions("base_url: http://a, model_id: m, prompt_version: p, temperature: 0.2, weight: 0.5", ""), "10:3 same-version"},
		{"two changes", versions("base_url: http://b, model_id: n, prompt_version: p, temperature: 0.2", ""), "10:3 multiple-changes"},
		{"two changes with a reason", versions("base_url: http://b, model_id: n, prompt_version: p, temperature: 0.2", "  allow_multiple_changes: the model is served elsewhere\n"), ""},
		{"a key", calibrated + "target: {config_api: {url: 'http://h/?token=abcdef'}}\n", "8:45 inline-key"},
		{"sum of weights", calibrated + "versions: {stable: {weight: 0.3, model_id: a}, canary: {weight: 0.7}}\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := found(parseOK(t, tt.src).Lint()); got != tt.want {
				t.Errorf("found %s, want %s", got, tt.want)
			}
		})
	}
}

// TestCheckWarnsOfSecretsBesideErrors: a broken file still gets the warning
// that cannot wait.
func TestCheckWarnsOfSecretsBesideErrors(t *testing.T) {
	if got, want := found(Check("c", []byte("canary: {api_key: hunter2}\n"))), "1:1 missing-key, 1:1 missing-key, 1:10 unknown-key, 1:19 inline-key"; got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}

// TestProbeFailure: at exactly 8 requests and 0.90 a probe needs 7 of 8
// (0.8131), and a round 4 of 5 of those. Drawn traffic of 6 a minute was
// computed apart, by summing over the Poisson law: 21.20 %, twice the chance
// at exactly 6 (10.32 %).
func TestProbeFailure(t *testing.T) {
	cfg := parseOK(t, string(published(t)))
	good := math.Pow(0.9, 8) + 8*math.Pow(0.9, 7)*0.1
	want := 1 - (math.Pow(good, 5) + 5*math.Pow(good, 4)*(1-good))
	if got := cfg.probeFailure(probeSizes{8, []float64{1}}); math.Abs(got-want) > 1e-12 {
		t.Errorf("at exactly 8 requests %v, want %v", got, want)
	}
	if got := cfg.probeFailure(probeSizes{6, []float64{1}}); math.Abs(got-0.10321) > 1e-5 {
		t.Errorf("at exactly 6 requests %v", got)
	}
	if got := cfg.probeFailure(cfg.probeSizes(0)); math.Abs(got-0.2120) > 1e-4 {
		t.Errorf("at 6 requests a minute %v", got)
	}
	if k := leastCount(release.MustRatio("0.8"), 5); k != 4 {
		t.Errorf("a round needs %d of 5", k)
	}
}

// TestProbeSizes holds the sizes of probes against drawn ones.
func TestProbeSizes(t *testing.T) {
	cfg := parseOK(t, string(published(t)))
	rng := rand.New(rand.NewPCG(1, 2))
	for _, perMin := range []string{"20", "600", "5000"} { // the first step has 1 %
		for _, least := range []int64{0, 1, 7, 20, 60} {
			cfg.RequestsPerMin = release.MustRatio(perMin)
			sizes := cfg.probeSizes(least)
			law := distuv.Poisson{Lambda: cfg.perWindow(0), Src: rng}
			const rounds = 30_000
			drawn := make([]float64, len(sizes.chance))
			for range rounds {
				n := 0.0
				for n < float64(max(least, 1)) {
					n += law.Rand()
				}
				drawn[int64(n)-sizes.least] += 1.0 / rounds
			}
			sum := 0.0
			for i, p := range sizes.chance {
				sum += p
				if math.Abs(p-drawn[i]) > 0.015 {
					t.Errorf("%s a minute, at least %d: %d with %.4f, drawn %.4f", perMin, least, sizes.least+int64(i), p, drawn[i])
				}
			}
			if math.Abs(sum-1) > 1e-9 {
				t.Errorf("%s a minute, at least %d: the chances add up to %v", perMin, least, sum)
			}
		}
	}
}

// TestHealthyTripsAreThoseOfALongWatch: the trips a week were found apart, by an
// independent simulation of 80 weeks; a watch of four weeks said 9.8 for 13.5.
func TestHealthyTripsAreThoseOfALongWatch(t *testing.T) {
	tests := []struct {
		name, src             string
		transfers, solveRates float64
	}{
		{"6 requests a minute", strings.Replace(limited("{}", "{}", ""), "6000", "60", 1), 83.4, 0},
		{"30 requests a minute", strings.Replace(limited("{}", "{}", ""), "6000", "300", 1), 13.5, 0},
		{"two signals", strings.Replace(limited("{min_transfer_count: 6}", "{solve_rate_drop_pp: 3, min_samples_slow: 100}", ""), "6000", "200", 1), 43.1, 40.2},
		{"windows longer than the cooldown", strings.Replace(limited("{violation_window_min: 10}", "{solve_rate_drop_pp: 4}", "source: {windows: {path: w, span_min: 10}}\n"), "6000", "100", 1), 9.7, 10.1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := parseOK(t, tt.src)
			trips, windows := cfg.healthyTrips(0, &cfg.Plan().Steps[0].Limits, 250_000)
			weeks := float64(windows) / perWeek(cfg.windowLength())
			for signal, want := range map[release.Signal]float64{release.Transfers: tt.transfers, release.SolveRate: tt.solveRates} {
				got := float64(trips[signal]) / weeks
				if deviation := 3 * math.Sqrt(want/weeks+want/80); math.Abs(got-want) > deviation {
					t.Errorf("%.1f a week by %s, want %.1f give or take %.1f", got, signal, want, deviation)
				}
			}
		})
	}
}

// TestRatesHaveTheDigitsTheyBear: a figure of few trips is known to one digit.
func TestRatesHaveTheDigitsTheyBear(t *testing.T) {
	tests := []struct {
		trips int64
		weeks float64
		want  string
	}{{5, 4, "1"}, {54, 4, "10"}, {99, 4, "20"}, {100, 4, "25"}, {1000, 11.8, "85"}, {1000, 0.98, "1000"}, {4, 20, "0.2"}, {1000, 740, "1.4"}}
	for _, tt := range tests {
		if got := roughly(tt.trips, tt.weeks); got != tt.want {
			t.Errorf("%d in %v weeks are %s a week, want %s", tt.trips, tt.weeks, got, tt.want)
		}
	}
}

// TestDrawBinomial holds draws of both ways against the law.
func TestDrawBinomial(t *testing.T) {
	src := rand.NewPCG(3, 4)
	for _, law := range []distuv.Binomial{{N: 1, P: 0.3}, {N: 7, P: 0.02}, {N: 60, P: 0.1}, {N: 12, P: 0.8}, {N: 9, P: 0.999}, {N: 400, P: 0.0249}, {N: 400, P: 0.1}} {
		const draws = 50_000
		drawn := map[int64]float64{}
		for range draws {
			drawn[drawBinomial(src, int64(law.N), law.P)] += 1.0 / draws
		}
		for k := range int64(law.N) + 1 {
			if want := law.Prob(float64(k)); math.Abs(drawn[k]-want) > 0.012 {
				t.Errorf("%v of %v: %d drawn with %.4f, want %.4f", law.P, law.N, k, drawn[k], want)
			}
		}
	}
	for _, tt := range []struct {
		n    int64
		p    float64
		want int64
	}{{0, 0.5, 0}, {5, 0, 0}, {5, 1, 5}} {
		if got := drawBinomial(src, tt.n, tt.p); got != tt.want {
			t.Errorf("%v of %d: %d", tt.p, tt.n, got)
		}
	}
}

// limited is a file with the shipped limits and some over them, at a first
// step of 10 % of 6000 requests a minute.
func limited(fast, slow, more string) string {
	return "canary:\n  target_service: s\n  requests_per_min: 6000\n  steps: [{pct: 0.1, min_hold_min: 60}, {pct: 1, min_hold_min: 60}]\n" +
		"  metrics: {fast_layer: " + fast + ", slow_layer: " + slow + "}\n" + more
}

// TestLintOfExtremes: no figure within the bounds of its key makes lint hang,
// panic or print nonsense.
func TestLintOfExtremes(t *testing.T) {
	for _, src := range []string{
		with("requests_per_min: 0.0000001"),
		with("requests_per_min: 1e9"),
		with("requests_per_min: 600\nmetrics: {recovery: {half_open_min_requests: 1000000000000, half_open_trials: 10000}}"),
		with("requests_per_min: 600\nmetrics: {fast_layer: {baseline_violation_rate: 0, baseline_transfer_rate: 1}, slow_layer: {solve_baseline: 1}}"),
		with("requests_per_min: 600\nmetrics: {recovery: {cooldown_min: 5270400}, slow_layer: {min_samples_slow: 1, slow_window_min: 5270400}}"),
		with("requests_per_min: 600") + "source: {windows: {path: a, span_min: 0.000000001}}\n",
		with("requests_per_min: 600") + "source: {windows: {path: a, span_min: 5270400}}\n",
		with("requests_per_min: 1e9\nmetrics: {slow_layer: {solve_baseline: 0.9999999, solve_rate_drop_pp: 0.00001, noise: {z: 100, tau: 0.4999, tail: exact}}}"),
		with("requests_per_min: 1e9\nmetrics: {slow_layer: {solve_rate_drop_pp: 1, noise: {z: 2, tau: 0.02, tail: exact}}}"),
		with("requests_per_min: 3900\nmetrics: {slow_layer: {solve_rate_drop_pp: 1, noise: {z: 1, tau: 0.02, tail: exact}}}"),
		with("requests_per_min: 600\nmetrics: {slow_layer: {min_samples_slow: 100000000000000000, slow_window_max_min: 5270400, noise: {z: 2, tau: 0, tail: exact}}}"),
		with("requests_per_min: 600\nmetrics: {slow_layer: {solve_baseline: 1, solve_rate_drop_pp: 1, noise: {z: 2, tau: 0}}}"),
		with("requests_per_min: 1e9\nmetrics: {fast_layer: {p99_judge: count, p99_slow_rate: 1}, slow_layer: {judge: cusum, solve_baseline: 0.999999, cusum: {drop_pp: 99.9998, limit: 0.000001}}}"),
		"canary: {target_service: s, requests_per_min: 1e9, steps: [{pct: 0.01, min_hold_min: 0}, {pct: 1, min_hold_min: 0}], metrics: {slow_layer: {against: stable, noise: {z: 2, tau: 0.49, tau_control: 0.49, tail: exact}}}}",
		"canary: {target_service: s, requests_per_min: 0.0001, steps: [{pct: 0.01, min_hold_min: 0}, {pct: 1, min_hold_min: 0}], metrics: {slow_layer: {min_samples_slow: 1, against: stable, noise: {z: 2, tau: 0.49, tau_control: 0.49}}}}",
		"canary: {target_service: s, hash_ring_slots: 1000000, requests_per_min: 1, steps: [{pct: 0.000001, min_hold_min: 0}, {pct: 1, min_hold_min: 0}]}\n",
	} {
		start := time.Now()
		for _, f := range parseOK(t, src).Lint() {
			if strings.ContainsAny(f.Message, "!") || strings.Contains(f.Message, "NaN") || strings.Contains(f.Message, "Inf") || strings.Contains(f.Message, " -") {
				t.Errorf("says %s", f)
			}
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s took %v", src, took)
		}
	}
}

func BenchmarkLintPublished(b *testing.B) {
	cfg := parseOK(b, string(published(b)))
	for b.Loop() {
		cfg.Lint()
	}
}
