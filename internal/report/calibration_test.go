package report_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/calibrate"
	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/report"
)

var weekStart = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// fullReport has every figure: a week of 100 requests a minute with a noise of
// 2 pp between 10-minute windows.
func fullReport() *calibrate.Report {
	hours := make([]calibrate.Hour, 24)
	for h := range hours {
		hours[h] = calibrate.Hour{Hour: h, Judged: 42_000, Rate: new(0.90), SE: new(0.002), RequestsPerMin: new(100.0)}
	}
	*hours[3].Rate, *hours[14].Rate = 0.894, 0.905
	at := func(day, hour, minute int) time.Time {
		return weekStart.Add(time.Duration(day*24+hour)*time.Hour + time.Duration(minute)*time.Minute)
	}
	return &calibrate.Report{
		Schema: 1,
		Meta: calibrate.Meta{LiveMin: 25, TickMin: 1, Version: "v1.2.3", InputSHA256: strings.Repeat("ab12", 16), Seed: 1, Zone: "Europe/Berlin", Coverage: 0.998, Rule: "budget", Judge: "window",
			Budget: calibrate.Budget{PerWeek: 0.1, Shares: map[string]float64{"violations": 0.2, "cost": 0.1, "p99": 0.1, "transfers": 0.1, "solve_rate": 0.5}}},
		Arm:      "stable",
		Totals:   calibrate.Totals{Total: 1_008_000, Judged: 1_008_000, Solved: 907_200, Violations: new(int64(605)), Transfers: new(int64(61_488))},
		Span:     calibrate.Span{From: weekStart, To: at(7, 0, 0), Hours: 168, CoveredMin: 10_060},
		Windows:  calibrate.Windows{Span: "10m", Whole: 1004, Empty: 1, Partial: []calibrate.Partial{{T: at(1, 0, 0), CoveredMin: 5, Total: 500}}, Gaps: []calibrate.Gap{{From: at(1, 0, 5), To: at(1, 0, 25), Minutes: 20}}},
		Centre:   calibrate.Centre{Mean: new(0.899871), P0: new(0.9), P0SE: new(0.00067), Median: new(0.901)},
		Excluded: []calibrate.Gap{{From: at(2, 10, 0), To: at(2, 11, 30), Minutes: 90}},
		Dispersion: map[string]calibrate.Dispersion{
			"10m": {K: 1004, KEff: new(1004.0), Q: new(5416.2), DF: 1003, P: new(0.0), Phi: new(5.4), TauDL: new(0.0205), TauRobust: new(0.02), TauUsed: new(0.02), SigmaZ: new(2.31), SDZ: new(2.32), R1: new(0.01), Drift: new(1.004)},
			"25m": {K: 403, KEff: new(395.0), P: new(0.0), Phi: new(5.1), TauDL: new(0.0125), TauRobust: new(0.012), TauUsed: new(0.012), SigmaZ: new(2.2), SDZ: new(2.3), R1: new(0.01), Drift: new(1.05)},
		},
		Incidents: []calibrate.Incident{
			{From: at(0, 3, 0), To: at(0, 3, 40), Windows: 4, Judged: 4000, Solved: 2848, WorstZ: -9.31},
			{From: at(1, 3, 0), To: at(1, 3, 10), Windows: 1, Judged: 1000, Solved: 790, WorstZ: -5.02, Excluded: true},
			{From: at(2, 3, 0), To: at(2, 3, 10), Windows: 1, Judged: 1000, Solved: 1000, WorstZ: 4.61, Above: true},
			{From: at(3, 3, 0), To: at(3, 3, 10), Windows: 1, Judged: 1000, Solved: 780, WorstZ: -5.2},
			{From: at(4, 3, 0), To: at(4, 3, 10), Windows: 1, Judged: 1000, Solved: 780, WorstZ: -5.2},
		},
		Time: calibrate.TimeStructure{Hours: hours, Swing: new(0.011), SwingP: new(0.4), Halves: &calibrate.Contrast{First: 0.8995, Second: 0.9005, Z: 0.42},
			Weeks: []calibrate.Week{{From: weekStart, Requests: 500_000, Judged: 500_000, Rate: new(0.9)}, {From: at(7, 0, 0), Requests: 515_000, Judged: 515_000, Rate: new(0.8991), Ratio: new(1.03)}}},
		Traffic: calibrate.Traffic{P10: new(61.2), P50: new(100.0), JudgedP10: new(61.2), PeakToTrough: new(3.2), PeakHour: new(14), TroughHour: new(3)},
		Slow: calibrate.Slow{SolveBaseline: 0.9, TolerableDropPP: 5, DetectDropPP: 10, Z: new(4.196), Tau: new(0.012), TauSpan: "25m", TauMethod: "robust", TauFactor: new(1.048), TauMax: new(0.0238),
			SE: new(0.00067), TauControl: new(0.004), Tail: "normal", SigmaPP: new(2.2), ChancePP: new(0.95), ThresholdPP: 5, MinSamples: new(int64(200)), SMinPct: new(13.07), Alpha: 0.0000136,
			Plain: calibrate.Plain{K: 3, SigmaPP: new(2.2), ThreeSigmaPP: new(6.6), ThresholdPP: new(6.6), MinSamples: new(int64(237)), OneWindow: 41, Of: 1004}},
		Violations:     calibrate.Rate{Rate: new(0.0006), Count: new(int64(605)), Requests: 1_008_000, Upper95: new(0.00064), Phi: new(1.02)},
		Transfers:      calibrate.Rate{Rate: new(0.061), Count: new(int64(61_488)), Requests: 1_008_000, Upper95: new(0.0614), Tau: new(0.006), Phi: new(2.3)},
		P99:            calibrate.P99{ValueMS: new(2140.0), CI: []float64{2090, 2195}, Method: "nearest rank over all requests", Judge: "count", SlowMS: new(2140.0), Slow: calibrate.Rate{Rate: new(0.00999), Count: new(int64(10_080)), Requests: 1_008_000, Upper95: new(0.0102)}, Exceed: []calibrate.Exceed{{N: 200, Count: 9}, {N: 1000, Count: 24}}},
		Cost:           calibrate.Cost{MeanUSD: new(0.0125), Requests: 1_008_000, CV: new(1.4), CVFrom: "requests", Top1Share: new(0.12), NRequired: new(int64(126))},
		Steps:          fullSteps(),
		Replay:         fullReplay(),
		RequestsPerMin: new(100.2),
		Verdict:        calibrate.Verdict{OK: true, Reasons: []string{}},
		Warnings: []calibrate.Warning{
			{Code: "never-judged", Text: "at 1 % the traffic does not bring the 200 judged requests that a judgement needs within a week", Hint: "begin with a larger step, or ask for less: a larger --detect-drop"},
			{Code: "partial-figure", Text: "violations are known for 1000 of 2000 requests only"},
		},
	}
}

func fullSteps() []calibrate.Step {
	violations := func(lambda float64, n int64, perWeek float64) *calibrate.Count {
		return &calibrate.Count{Lambda: lambda, Phi: 1, Threshold: n, Ratio: 20, PFalse: perWeek / 10_080, PerWeek: perWeek, DocThreshold: new(int64(3)), DocPFalse: new(5 * perWeek / 10_080)}
	}
	step := func(pct float64, n int64, sigma, trips, catches float64, wait *float64, hold5, hold10 *float64) calibrate.Step {
		return calibrate.Step{Pct: pct, RateP10: new(61.2 * pct), RateP50: new(100 * pct), NWindow: &n, Sigma: &sigma, ThresholdPP: &trips, MDE80PP: &catches,
			CanJudge: n >= 200, WaitP95Min: wait, HoldMin: map[string]*float64{"5": hold5, "10": hold10}, CostSamples: new(int64(128)), CostJudged: pct > 0.5}
	}
	steps := []calibrate.Step{
		step(0.01, 15, 0.0784, 42.1, 51.3, nil, nil, nil),
		step(0.05, 76, 0.0364, 17.5, 21.6, new(76.4), new(143.0), new(39.0)),
		step(0.1, 153, 0.0271, 12.4, 15.1, new(38.2), new(82.0), new(25.0)),
		step(0.3, 459, 0.0185, 8.1, 9.9, new(12.7), new(44.0), new(25.0)),
		step(1, 1530, 0.0143, 6.1, 7.3, new(3.8), new(31.0), new(25.0)),
	}
	steps[1].SpanMaxMin, steps[2].SpanMaxMin = new(77.0), new(39.0)
	for i, n := range []int64{3, 3, 3, 4, 6} {
		steps[i].Violations = violations(0.32*steps[i].Pct, n, 0.001*float64(i+1))
	}
	for i, n := range []int64{4, 8, 12, 22, 55} {
		steps[i].Transfers = &calibrate.Count{Lambda: 30.5 * steps[i].Pct, Phi: 1.3, Threshold: n, Ratio: 2, PFalse: 1e-6, PerWeek: 0.01}
		steps[i].Slow = &calibrate.Count{Lambda: 5 * steps[i].Pct, Phi: 1, Threshold: n / 2, Ratio: 3, PFalse: 1e-6, PerWeek: 0.01}
	}
	return steps
}

func fullReplay() *calibrate.Replayed {
	r := &calibrate.Replayed{
		Weeks: 200, BlockMin: 360, Seed: 1, JointPerWeek: calibrate.Estimate{Count: 26, Rate: 0.13, Lower: 0.0849, Upper: 0.19}, DocPerWeek: calibrate.Estimate{Count: 1080, Rate: 5.4, Lower: 5.08, Upper: 5.73},
		Release: calibrate.ReplayedRelease{Runs: 1000, RolledBack: calibrate.Estimate{Count: 4, Rate: 0.004, Lower: 0.00109, Upper: 0.0102}, Completed: 990},
		Grid:    &calibrate.Grid{Pct: 0.1, Enough: true, RecommendedPP: new(11.5)},
	}
	for i, pct := range []float64{0.01, 0.05, 0.1, 0.3, 1} {
		s := calibrate.ReplayedStep{Pct: pct, PerWeek: calibrate.Estimate{Upper: 0.015}, BySignal: map[string]calibrate.Estimate{"solve_rate": {Upper: 0.015}, "violations": {Upper: 0.015}}, Drops: []calibrate.Detection{
			{DropPP: 5, Runs: 200, Found: 20 * i, DelayP50: new(430.0), DelayP90: new(1230.0), ExposureP50: new(4300 * pct)},
			{DropPP: 10, Runs: 200, Found: 200, DelayP50: new(45.0), DelayP90: new(81.0), ExposureP50: new(4500 * pct)},
		}}
		if i == 0 {
			s.Drops[0].DelayP50, s.Drops[0].DelayP90, s.Drops[0].ExposureP50 = nil, nil, nil
		}
		if i == 2 {
			s.PerWeek = calibrate.Estimate{Count: 26, Rate: 0.13, Lower: 0.0849, Upper: 0.19}
			s.BySignal["solve_rate"] = s.PerWeek
		}
		r.Steps = append(r.Steps, s)
	}
	return r
}

// quietReport has a replay in which nothing tripped.
func quietReport() *calibrate.Report {
	r := fullReport()
	r.Incidents, r.Excluded, r.Warnings, r.Verdict = nil, nil, nil, calibrate.Verdict{OK: true}
	r.Replay.JointPerWeek, r.Replay.DocPerWeek = calibrate.Estimate{Upper: 0.015}, calibrate.Estimate{Upper: 0.015}
	r.Replay.Release.RolledBack = calibrate.Estimate{Upper: 0.003}
	r.Replay.Grid = nil
	r.Meta.Budget.PerRelease, r.Meta.Budget.ReleaseHours = new(0.01), new(6.0)
	return r
}

// bareReport is what windows of counts without anything else leave.
func bareReport() *calibrate.Report {
	return &calibrate.Report{
		Arm: "all", Totals: calibrate.Totals{Total: 8819}, Span: calibrate.Span{From: weekStart, To: weekStart.Add(25 * time.Hour), Hours: 25},
		Windows: calibrate.Windows{Span: "10m", Whole: 150}, Meta: calibrate.Meta{Coverage: 1, Rule: "budget", Budget: calibrate.Budget{PerWeek: 0.1}},
		Slow: calibrate.Slow{TolerableDropPP: 5, DetectDropPP: 10}, Verdict: calibrate.Verdict{OK: true},
		Steps: []calibrate.Step{{Pct: 1, HoldMin: map[string]*float64{}}},
	}
}

func calibration(t *testing.T, r *calibrate.Report, style report.Style) string {
	t.Helper()
	return string(text(t, styled{func(b *bytes.Buffer) error { return report.Calibration(b, r, style) }}))
}

func TestTextOfACalibration(t *testing.T) {
	plainRule := fullReport()
	plainRule.Meta.Rule, plainRule.Slow.Z, plainRule.Slow.Tau, plainRule.Slow.MinSamples, plainRule.Replay, plainRule.Steps = "plain", nil, nil, nil, nil, nil
	for _, tc := range []struct {
		name  string
		r     *calibrate.Report
		style report.Style
	}{
		{"full", fullReport(), report.Style{}},
		{"full-60-columns", fullReport(), report.Style{Width: 60}},
		{"full-40-columns", fullReport(), report.Style{Width: 40}},
		{"quiet-color", quietReport(), report.Style{Color: true, Width: 140}},
		{"bare", bareReport(), report.Style{}},
		{"plain-rule", plainRule, report.Style{Width: 80}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			golden(t, "calibration-"+tc.name+".txt", []byte(calibration(t, tc.r, tc.style)))
		})
	}
}

// TestACalibrationIsOneScreen: with every figure there is, and no line
// wider than the terminal or 100 columns.
func TestACalibrationIsOneScreen(t *testing.T) {
	screen, _, _ := strings.Cut(calibration(t, fullReport(), report.Style{}), "\nwarning:")
	if n := strings.Count(screen, "\n"); n > 60 {
		t.Errorf("%d lines before the warnings", n)
	}
	for _, width := range []int{0, 40, 60, 80, 100, 250} {
		most := width
		if width == 0 || width > 100 {
			most = 100
		}
		for line := range strings.Lines(calibration(t, fullReport(), report.Style{Width: width})) {
			if words := strings.Fields(line); len(strings.TrimRight(line, "\n")) > most && len(words) > 1 {
				t.Errorf("width %d: %d columns: %q", width, len(line)-1, line)
			}
		}
	}
}

// TestACalibrationSaysNothingByColourAlone holds the coloured text to the plain one.
func TestACalibrationSaysNothingByColourAlone(t *testing.T) {
	escape := regexp.MustCompile("\x1b\\[[0-9]*m")
	colored := calibration(t, fullReport(), report.Style{Color: true})
	if diff := cmp.Diff(calibration(t, fullReport(), report.Style{}), escape.ReplaceAllString(colored, "")); diff != "" || !strings.Contains(colored, "\x1b[") {
		t.Errorf("(-plain +coloured): %s", diff)
	}
}

func TestNothingUnknownIsZero(t *testing.T) {
	got := calibration(t, bareReport(), report.Style{})
	for _, want := range []string{"solve rate  not in the input", "violations  not in the input", "cost        not in the input", "unknown", "replay      none"} {
		if !strings.Contains(got, want) {
			t.Errorf("does not say %q:\n%s", want, got)
		}
	}
	if m := regexp.MustCompile(`\b0( pp| min| %)?\b[^-T:,0-9.]`).FindString(strings.ReplaceAll(got, "seed 0", "")); m != "" {
		t.Errorf("a figure that nobody knows is %q in\n%s", m, got)
	}
}

func TestNoTripsAreFewerThanTheRuleOfThree(t *testing.T) {
	got := calibration(t, quietReport(), report.Style{})
	for _, want := range []string{"no false trip, fewer than 0.015 a week (95 %)", "none rolled back falsely, fewer than 0.3 %", "< 0.015"} {
		if !strings.Contains(got, want) {
			t.Errorf("does not say %q:\n%s", want, got)
		}
	}
}

// measured is a report of a real measurement: a week of a noisy service.
func measured(t *testing.T) (*calibrate.Report, *config.Config) {
	t.Helper()
	cfg, findings := config.Parse("canary.yaml", []byte(shop))
	if cfg == nil {
		t.Fatal(findings)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var windows []release.Window
	rate := 0.9
	for m := range 7 * 24 * 60 {
		if m%10 == 0 {
			rate = 0.9 + 0.02*rng.NormFloat64()
		}
		w := release.Window{T: weekStart.Add(time.Duration(m) * time.Minute), Span: time.Minute, Arm: release.Stable, Total: 20, Judged: 20,
			Known: release.HasSolved | release.HasViolations | release.HasTransfers}
		for range w.Judged {
			if rng.Float64() < rate {
				w.Solved++
			}
			if rng.Float64() < 0.0005 {
				w.Violations++
			}
			if rng.Float64() < 0.02 {
				w.Transfers++
			}
		}
		windows = append(windows, w)
	}
	r, err := calibrate.Measure(windows, calibrate.Options{Plan: cfg.Plan()})
	if err != nil {
		t.Fatal(err)
	}
	return r, cfg
}

// TestTheYAMLOfAMeasurementIsAConfiguration pastes it below a service's name.
func TestTheYAMLOfAMeasurementIsAConfiguration(t *testing.T) {
	r, before := measured(t)
	var b bytes.Buffer
	if err := report.CalibrationYAML(&b, r); err != nil {
		t.Fatal(err)
	}
	cfg := pasted(t, b.String())
	if len(cfg.Steps) != len(before.Steps) || cfg.Slow.SolveBaseline.Float64() != r.Slow.SolveBaseline || cfg.Slow.Noise.Z.Float64() != *r.Slow.Z ||
		cfg.Slow.Noise.Tau.Float64() != *r.Slow.Tau || cfg.Steps[0].Fast.ViolationLimit != r.Steps[0].Violations.Threshold {
		t.Errorf("values are lost in\n%s", &b)
	}
	for line := range strings.Lines(b.String()) {
		if _, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && !strings.Contains(value, "# ") && !strings.HasPrefix(value, "[") && !strings.HasPrefix(line, "#") {
			t.Errorf("%q does not say where it comes from", line)
		}
	}
	if got := calibration(t, r, report.Style{}); !strings.Contains(got, "step 1's limits: violation_limit: ") {
		t.Errorf("the text does not show the steps' limits:\n%s", got)
	}
}

// pasted parses keys of canary below a service's name.
func pasted(t *testing.T, keys string) *config.Config {
	t.Helper()
	src := "canary:\n  target_service: shop\n"
	for line := range strings.Lines(keys) {
		src += "  " + line
	}
	cfg, findings := config.Parse("canary.yaml", []byte(src))
	if cfg == nil {
		t.Fatalf("%v in\n%s", findings, src)
	}
	return cfg
}

func TestYAMLOfACalibration(t *testing.T) {
	settings := []calibrate.Setting{
		{Key: []string{"requests_per_min"}, Value: "100.2", Why: "mean of both arms"},
		{Key: []string{"fast_layer", "p99_judge"}, InMetrics: true, Value: "count", Why: "a p99 of few requests is no p99"},
		{Key: []string{"slow_layer", "solve_baseline"}, InMetrics: true, Value: "0.9", Why: "solved of judged"},
		{Key: []string{"slow_layer", "judge"}, InMetrics: true, Value: "cusum", Why: "--judge cusum"},
		{Key: []string{"slow_layer", "cusum", "drop_pp"}, InMetrics: true, Value: "10", Why: "the drop to find"},
		{Key: []string{"slow_layer", "cusum", "limit"}, InMetrics: true, Value: "9.2", Why: "the first step's limit"},
		{Key: []string{"slow_layer", "noise", "z"}, InMetrics: true, Value: "4.02", Why: "sigmas, for 0.1 false trips a week"},
		{Key: []string{"slow_layer", "noise", "tau"}, InMetrics: true, Value: "0.0121", Why: "sd of the true rate between windows of 25m"},
	}
	for _, limit := range []struct{ key, value string }{
		{"violation_limit", "3"}, {"violation_ratio_multiplier", "20"}, {"cost_min_samples", "128"}, {"min_slow_count", "2"}, {"min_transfer_count", "4"}, {"min_samples_slow", "210"},
		{"slow_window_min", "1"}, {"slow_window_max_min", "800"}, {"noise.z", "4.1"}, {"noise.tau", "0.02"}, {"cusum.limit", "9.4"},
	} {
		settings = append(settings, calibrate.Setting{Step: 2, Key: strings.Split(limit.key, "."), Value: limit.value})
	}
	settings = append(settings, calibrate.Setting{Step: 5, Key: []string{"cost_min_samples"}, Value: "128", Why: "as asked for"})
	var b bytes.Buffer
	if err := report.CalibrationYAMLOf(&b, fullReport(), settings); err != nil {
		t.Fatal(err)
	}
	golden(t, "calibration.yaml", b.Bytes())
	cfg := pasted(t, b.String())
	second := cfg.Steps[1]
	got := fmt.Sprint(second.Fast.ViolationLimit, second.Slow.MinSamplesSlow, second.Slow.SlowWindowMax, second.Slow.Noise.Z, second.Slow.Cusum.Limit, cfg.Slow.Noise.Z, cfg.Steps[4].Fast.CostMinSamples, cfg.RequestsPerMin)
	if want := "3 210 13h20m0s 4.1 9.4 4.02 128 100.2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	holds := []time.Duration{}
	for _, s := range cfg.Steps {
		holds = append(holds, s.MinHold)
	}
	if want := []time.Duration{0, 39 * time.Minute, 25 * time.Minute, 25 * time.Minute, 25 * time.Minute}; !slices.Equal(holds, want) {
		t.Errorf("holds %v, want %v", holds, want)
	}
}
