package config

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// fittedStep is the first step of a ladder whose slow layer has these keys.
func fittedStep(t *testing.T, keys string) fitted {
	t.Helper()
	cfg := parseOK(t, limited("{}", "{"+keys+"}", ""))
	return fittedOf(&cfg.Steps[0], cfg.Plan().Steps[0].Limits)
}

// TestFittedThresholds: sigma(N) and its skew term were worked apart; the
// difference of two arms of 250 and 2250 requests has a sigma of 2.0 points,
// NIST/SEMATECH e-Handbook 7.3.3.
func TestFittedThresholds(t *testing.T) {
	tests := []struct {
		name, keys string
		n          int64
		want       float64 // percentage points
	}{
		{"chance alone", "noise: {z: 4, tau: 0}", 250, 8.39},
		{"chance alone, few requests", "noise: {z: 4, tau: 0}", 200, 9.49},
		{"chance alone, many requests", "noise: {z: 4, tau: 0}", 650, 5.01},
		{"with a moving rate", "noise: {z: 4, tau: 0.019}", 250, 11.14},
		{"with a moving rate, half the requests", "noise: {z: 4, tau: 0.019}", 125, 14.22},
		{"with a moving rate, a tenth", "noise: {z: 4, tau: 0.019}", 25, 32.4},
		{"with a moving rate, ten times", "noise: {z: 4, tau: 0.019}", 2500, 7.98},
		{"against stable", "against: stable, noise: {z: 4, tau: 0.019}", 250, 8.0},
		{"against stable with a difference", "against: stable, noise: {z: 4, tau: 0.019, tau_control: 0.01}", 250, 4 * math.Sqrt(4+2)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := fittedStep(t, "min_samples_slow: 20, "+tt.keys)
			if got := f.at(tt.n) * 100; math.Abs(got-tt.want) > 0.05 {
				t.Errorf("over %d requests %.3f points, want %.2f", tt.n, got, tt.want)
			}
		})
	}
}

// TestExactThreshold: one solved request more is not as rare as z sigmas.
func TestExactThreshold(t *testing.T) {
	f := fittedStep(t, "solve_baseline: 0.995, solve_rate_drop_pp: 2, noise: {z: 3, tau: 0.002, tail: exact}")
	alpha, rho := stats.OneSided(3), stats.ICCOf(0.002*0.002, 0.995)
	for _, n := range []int64{20, 150, 600, 5000} {
		solved := int64(math.Round((0.995 - f.at(n)) * float64(n)))
		if p := stats.BetaBinomialCDF(solved, n, 0.995, rho); p > alpha {
			t.Errorf("%d of %d trips with a chance of %v", solved, n, p)
		}
		if p := stats.BetaBinomialCDF(solved+1, n, 0.995, rho); p <= alpha {
			t.Errorf("%d of %d would have a chance of only %v", solved+1, n, p)
		}
	}
}

// TestEnoughIsTheFirstNumber: over one request less the drop does not decide.
func TestEnoughIsTheFirstNumber(t *testing.T) {
	for _, keys := range []string{"noise: {z: 4, tau: 0}", "noise: {z: 4, tau: 0.019}", "noise: {z: 3, tau: 0.01, se: 0.01}", "against: stable, noise: {z: 4, tau: 0.3, tau_control: 0.01}"} {
		f := fittedStep(t, "min_samples_slow: 1, "+keys)
		n, ok := f.enough()
		if !ok || f.at(n) > f.drop || f.at(n-1) <= f.drop {
			t.Errorf("%s: %d (%t) with %v, before it %v; the drop is %v", keys, n, ok, f.at(n), f.at(n-1), f.drop)
		}
	}
	inside := fittedStep(t, "noise: {z: 4, tau: 0.026}")
	if n, ok := inside.enough(); ok {
		t.Errorf("%d requests would be enough inside the noise", n)
	}
}

// noisy is the file of which lint has nothing to say with keys of the slow
// layer, in place of its own where it has them, and so many requests a minute
// at its first step.
func noisy(perMin, keys string) string {
	for _, own := range []string{"solve_baseline: 0.93", "min_samples_slow: 400"} {
		if name, _, _ := strings.Cut(own, ":"); !strings.Contains(keys, name) {
			keys = own + ", " + keys
		}
	}
	src := strings.Replace(calibrated, "solve_baseline: 0.93, min_samples_slow: 400", keys, 1)
	src = strings.Replace(src, "baseline_transfer_rate: 0.018", "baseline_transfer_rate: 0.018, min_transfer_count: 60", 1)
	return strings.Replace(src, "6000", perMin+"0", 1)
}

func TestLintOfNoise(t *testing.T) {
	tests := []struct{ name, src, want, says string }{
		{"a drop above the noise is silent", noisy("60", "noise: {z: 4.02, tau: 0.009}"), "", ""},
		{"a fitted threshold somewhat above the drop is what calibrate means", noisy("20", "solve_rate_drop_pp: 6, noise: {z: 4.02, tau: 0.009}"), "", ""},
		{"one more than three times the drop is said", noisy("2", "min_samples_slow: 40, solve_rate_drop_pp: 5, noise: {z: 4.02, tau: 0.009}"), "4:17 threshold-in-noise", "step 1: the noise is far above the drop: over 50 requests a solve rate trips from 19 percentage points below the baseline on, more than three times the solve_rate_drop_pp of 5"},
		{"more requests would let the drop decide", noisy("2", "min_samples_slow: 40, solve_rate_drop_pp: 5, noise: {z: 4.02, tau: 0.009}"), "4:17 threshold-in-noise", "min_samples_slow: 965 with slow_window_max_min: 483"},
		{"the threshold is inside the noise, once for all steps", noisy("60", "noise: {z: 4.02, tau: 0.026}"), "7:85 threshold-in-noise", "step 1: threshold inside the noise: 4.02 sigmas of the noise that no traffic shrinks are 10.5 percentage points, which a solve_rate_drop_pp of 10 does not exceed"},
		{"inside the noise even without a figure of traffic", strings.Replace(noisy("60", "noise: {z: 4.02, tau: 0.026}"), "  requests_per_min: 600\n", "", 1), "1:1 no-traffic, 6:85 threshold-in-noise", "inside the noise"},
		{"inside the noise of an uncertain baseline", noisy("60", "noise: {z: 4, tau: 0.02, se: 0.02}"), "7:82 threshold-in-noise", "are 11.3 percentage points"},
		{"three ways out", noisy("60", "noise: {z: 4.02, tau: 0.026}"), "7:85 threshold-in-noise", "three ways out: a larger solve_rate_drop_pp; against: stable"},
		{"against stable the common noise cancels, but for the last step", noisy("60", "against: stable, noise: {z: 4.02, tau: 0.026, tau_control: 0.001}"), "7:102 threshold-in-noise", "step 2: threshold inside the noise"},
		{"a step that can never trip", noisy("2", "solve_baseline: 0.5, solve_rate_drop_pp: 20, min_samples_slow: 20, noise: {z: 8, tau: 0.01}"), "4:17 threshold-in-noise", "step 1: can never trip by solve_rate: over 50 requests a solve rate of 0 is not 8 sigmas below the baseline of 0.5"},
		{"a cumulative sum has no threshold", noisy("60", "noise: {z: 4.02, tau: 0.026}, judge: cusum, cusum: {drop_pp: 9, limit: 1000}"), "", ""},
		{"nor has a solve rate that is off", noisy("60", "noise: {z: 4.02, tau: 0.026}") + "  signals: {solve_rate: {mode: off}}\n", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkLint(t, tt.src, tt.want, tt.says) })
	}
}

// checkLint holds the findings against places and rules, and looks for a text.
// It leaves out what is drawn, which takes its time and has tests of its own.
func checkLint(t *testing.T, src, want, says string) {
	t.Helper()
	cfg, text := parseOK(t, src), ""
	d := *cfg.doc
	d.list = nil
	d.lintUnset(cfg)
	d.lintReach(cfg)
	d.lintNoise(cfg)
	if !cfg.RequestsPerMin.IsZero() {
		d.lintBlind(cfg)
		d.lintHolds(cfg)
	}
	d.list.Sort()
	for _, f := range d.list {
		text += f.Message + "\n" + f.Hint + "\n"
	}
	if got := found(d.list); got != want {
		t.Errorf("found %s, want %s\n%s", got, want, text)
	}
	if !strings.Contains(text, says) {
		t.Errorf("nothing says %q:\n%s", says, text)
	}
}

// TestLintOfReachAndHold: 200 arrivals have come with 95 % certainty after 224
// minutes at 1 a minute, 45 at 5 and 12 at 20: chi-squared tables with 400
// degrees of freedom, 447.63 / 2.
func TestLintOfReachAndHold(t *testing.T) {
	hold := func(perMin, minutes, limits string) string {
		return strings.NewReplacer("6000", perMin+"0", "min_samples_slow: 400", "min_samples_slow: 200, slow_window_max_min: 300", "{pct: 0.10, min_hold_min: 60", "{pct: 0.10, min_hold_min: "+minutes+limits).Replace(calibrated)
	}
	tests := []struct{ name, src, want, says string }{
		{"a hold of 223 minutes", hold("1", "223", ""), "4:37 short-hold", "at 1 requests a minute it takes 224 minutes until the 200 of min_samples_slow are there with 95 % certainty; the gate waits\nmin_hold_min: 224"},
		{"a hold of 224 minutes", hold("1", "224", ""), "", ""},
		{"a hold of 44 minutes at 5", hold("5", "44", ""), "4:37 short-hold", "min_hold_min: 45"},
		{"a hold of 45 minutes at 5", hold("5", "45", ""), "", ""},
		{"a hold of 11 minutes at 20", hold("20", "11", ""), "4:37 short-hold", "min_hold_min: 12"},
		{"a hold of 12 minutes at 20", hold("20", "12", ""), "", ""},
		{"a hold of 0 where one window is enough", hold("300", "0", ""), "", ""},
		{"a hold of 0 where it is not", hold("150", "0", ""), "4:37 short-hold", "it takes 2 minutes until"},
		{"labels that lag", hold("20", "41", ", limits: {label_lag_min: 30}"), "4:37 short-hold", "95 % certainty, then 30 minutes of label lag; the gate waits\nmin_hold_min: 42"},
		{"a hold that waits for them", hold("20", "42", ", limits: {label_lag_min: 30}"), "", ""},
		{"labels that nobody looks at", hold("20", "12", ", limits: {label_lag_min: 30}") + "  signals: {solve_rate: {mode: off}}\n", "", ""},
		{"no metric gate", hold("1", "1", ", gate: [time]"), "", ""},
		{"no time gate", hold("1", "1", ", gate: [metric]"), "", ""},
		{"longer than ten years", strings.Replace(hold("0.0000", "1", ""), "0.00000", "0.00001", 1), "4:17 blind-slow-layer, 4:37 short-hold, 4:47 blind-slow-layer, 4:67 short-hold", "it takes more than ten years"},
		{"a span that reaches back is not blind", noisy("10", "slow_window_max_min: 40"), "", ""},
		{"a span that reaches not far enough is", noisy("10", "slow_window_max_min: 39"), "4:17 blind-slow-layer", "10 requests a minute are 390 in 39 minutes, fewer than the 400 of min_samples_slow; its gate needs 40 minutes\na slow_window_max_min of 40"},
		{"a cumulative sum is never blind", noisy("10", "judge: cusum, cusum: {drop_pp: 5, limit: 12}"), "", ""},
		{"a share of slow requests above all", strings.Replace(noisy("60", "label_lag_min: 0"), "p99_baseline_ms: 410", "p99_judge: count, p99_slow_rate: 0.5, p99_baseline_ms: 410", 1), "6:105 unreachable-limit", "slow requests trip at a share of 0.5 x 3 = 1.5"},
		{"a share that nobody looks at", strings.Replace(noisy("60", "label_lag_min: 0"), "p99_baseline_ms: 410", "p99_slow_rate: 0.5, p99_baseline_ms: 410", 1), "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkLint(t, tt.src, tt.want, tt.says) })
	}
}

// TestHealthyTripsOfFittedLayers: the trips a week were found apart, by an
// independent simulation of 40 weeks.
func TestHealthyTripsOfFittedLayers(t *testing.T) {
	tests := []struct {
		name, perMin, fast, slow string
		signal                   release.Signal
		want                     float64
	}{
		{"slow requests", "30", "p99_judge: count", "", release.P99, 89.3},
		{"more slow requests", "60", "p99_judge: count, min_slow_count: 6", "", release.P99, 14.2},
		{"noise", "30", "", "solve_rate_drop_pp: 3, noise: {z: 2, tau: 0.012}", release.SolveRate, 23.4},
		{"stable beside it", "30", "", "solve_rate_drop_pp: 3, against: stable, noise: {z: 2, tau: 0.02, tau_control: 0.005}", release.SolveRate, 20.0},
		{"cumulative sum", "30", "", "judge: cusum, cusum: {drop_pp: 5, limit: 4}", release.SolveRate, 24.0},
		{"cumulative sum of a moving rate", "60", "", "judge: cusum, cusum: {drop_pp: 5, limit: 9}, noise: {z: 4, tau: 0.02}", release.SolveRate, 39.0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			quiet := "  signals: {violations: {mode: off}, transfers: {mode: off}}\n"
			cfg := parseOK(t, strings.Replace(limited("{"+tt.fast+"}", "{"+tt.slow+"}", quiet), "6000", tt.perMin+"0", 1))
			trips, windows := cfg.healthyTrips(0, &cfg.Plan().Steps[0].Limits, 250_000)
			weeks := float64(windows) / perWeek(time.Minute)
			got := float64(trips[tt.signal]) / weeks
			if deviation := 3 * math.Sqrt(tt.want/weeks+tt.want/40); math.Abs(got-tt.want) > deviation {
				t.Errorf("%.1f a week, want %.1f give or take %.1f", got, tt.want, deviation)
			}
		})
	}
}

// TestHealthyHintNamesTheKeyOfItsJudge: what helps depends on what trips.
func TestHealthyHintNamesTheKeyOfItsJudge(t *testing.T) {
	tests := []struct {
		slow   string
		signal release.Signal
		want   string
	}{
		{"", release.P99, "min_slow_count"},
		{"", release.SolveRate, "solve_rate_drop_pp"},
		{"noise: {z: 2, tau: 0.01}", release.SolveRate, "noise.z"},
		{"noise: {z: 2, tau: 0.01}, judge: cusum, cusum: {drop_pp: 5, limit: 4}", release.SolveRate, "cusum.limit"},
		{"judge: cusum, cusum: {drop_pp: 5, limit: 4}", release.Transfers, "min_transfer_count"},
	}
	for _, tt := range tests {
		cfg := parseOK(t, limited("{}", "{"+tt.slow+"}", ""))
		var trips [release.Judged]int64
		trips[tt.signal] = 9
		if got := cfg.healthyHint(0, trips); !strings.Contains(got, tt.want) {
			t.Errorf("%s with %q: %s", tt.signal, tt.slow, got)
		}
	}
}

// TestHealthyFeedIsTheSameWithoutNoise: figures of before stay what they were,
// whatever else is drawn.
func TestHealthyFeedIsTheSameWithoutNoise(t *testing.T) {
	plain := parseOK(t, limited("{}", "{}", ""))
	fixed := parseOK(t, limited("{}", "{slow_window_max_min: 60, judge: cusum, cusum: {drop_pp: 5, limit: 4}}", ""))
	a, b := plain.healthyFeed(0), fixed.healthyFeed(0)
	for i := range 1000 {
		if x, y := a(), b(); x != y {
			t.Fatalf("window %d: %+v and %+v", i, x, y)
		}
	}
	if w := plain.healthyFeed(0)(); w.Has(release.HasSlow) || w.Has(release.HasControl) {
		t.Errorf("window %+v has figures that nothing asks for", w)
	}
}
