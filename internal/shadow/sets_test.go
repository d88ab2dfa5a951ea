package shadow_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/shadow"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// setLimits are the defaults of canary.yaml.
func setLimits() *shadow.SetLimits {
	l := &shadow.SetLimits{
		ViolationLimit: 3, ViolationBaseline: release.MustRatio("0.0005"), ViolationMultiplier: release.MustRatio("10"),
		CostRatio: release.MustRatio("2"), MinTransfers: 3, TransferBaseline: release.MustRatio("0.02"), TransferRatio: release.MustRatio("3"),
		P99Ratio: release.MustRatio("3"), TTFTMS: release.MustRatio("3000"), TTFTRatio: release.MustRatio("3.75"), ITLMS: release.MustRatio("150"), ITLLeast: 10,
		SolveDrop: release.MustRatio("0.1"), MinJudged: 200,
		Shares: map[release.Signal]breaker.StreamLimit{
			release.TTFTSlow:     {Limit: release.MustRatio("0.03"), MinOf: 100},
			release.StreamAborts: {Limit: release.MustRatio("0.005"), MinSum: 3},
			release.ServerErrors: {Limit: release.MustRatio("0.01"), MinSum: 3},
			release.Errors:       {Limit: release.MustRatio("0.01"), MinSum: 3},
		},
	}
	l.Slower, l.Confidence, l.Least = shadow.DefaultSlower()
	return l
}

// said is what the checks say of each figure.
func said(checks []shadow.SetCheck) []string {
	var out []string
	for _, k := range checks {
		out = append(out, fmt.Sprint(k.Signal, " ", k.Figure, " ", k.Verdict))
	}
	return out
}

// The counts are held against the same rules as the breaker's: violations at
// max(3, floor(requests x stable's rate x 10)), transfers at three times
// stable's share, errors above 1 % from 3 on, the solve rate at stable's less
// 10 points.
func TestCountsAtTheirBoundaries(t *testing.T) {
	for _, tt := range []struct {
		name           string
		stable, canary release.Window
		want           string
	}{
		{"two violations", release.Window{Total: 150, Known: release.HasViolations}, release.Window{Total: 150, Violations: 2, Known: release.HasViolations}, "violations count pass"},
		{"three violations", release.Window{Total: 150, Known: release.HasViolations}, release.Window{Total: 150, Violations: 3, Known: release.HasViolations}, "violations count fail"},
		{"nine where stable has 1 %", release.Window{Total: 100, Violations: 1, Known: release.HasViolations}, release.Window{Total: 100, Violations: 9, Known: release.HasViolations}, "violations count pass"},
		{"ten where stable has 1 %", release.Window{Total: 100, Violations: 1, Known: release.HasViolations}, release.Window{Total: 100, Violations: 10, Known: release.HasViolations}, "violations count fail"},
		{"4 of 1000 where stable has none: the configured rate allows 5", release.Window{Total: 10, Known: release.HasViolations}, release.Window{Total: 1000, Violations: 4, Known: release.HasViolations}, "violations count pass"},
		{"5 of 1000 where stable has none", release.Window{Total: 10, Known: release.HasViolations}, release.Window{Total: 1000, Violations: 5, Known: release.HasViolations}, "violations count fail"},
		{"nobody counted stable's violations", release.Window{Total: 10}, release.Window{Total: 100, Violations: 3, Known: release.HasViolations}, "violations count fail"},
		{"nobody counted the canary's violations", release.Window{Total: 10, Known: release.HasViolations}, release.Window{Total: 100}, "violations count no_data"},
		{"twice the cost", release.Window{Total: 10, CostMean: 0.5, Known: release.HasCostMean}, release.Window{Total: 10, CostMean: 1, Known: release.HasCostMean}, "cost mean_usd fail"},
		{"nearly twice the cost", release.Window{Total: 10, CostMean: 0.5, Known: release.HasCostMean}, release.Window{Total: 10, CostMean: 0.999, Known: release.HasCostMean}, "cost mean_usd pass"},
		{"no cost of stable", release.Window{Total: 10}, release.Window{Total: 10, CostMean: 1, Known: release.HasCostMean}, "cost mean_usd no_data"},
		{"transfers at three times stable's", release.Window{Total: 100, Transfers: 10, Known: release.HasTransfers}, release.Window{Total: 100, Transfers: 30, Known: release.HasTransfers}, "transfers share fail"},
		{"transfers below that", release.Window{Total: 100, Transfers: 10, Known: release.HasTransfers}, release.Window{Total: 100, Transfers: 29, Known: release.HasTransfers}, "transfers share pass"},
		{"two transfers of two", release.Window{Total: 100, Known: release.HasTransfers}, release.Window{Total: 2, Transfers: 2, Known: release.HasTransfers}, "transfers share no_data"},
		{"exactly 1 % errors", release.Window{}, release.Window{StatusOf: 300, Errors: 3, Known: release.HasErrors}, "errors share pass"},
		{"above 1 % errors", release.Window{}, release.Window{StatusOf: 299, Errors: 3, Known: release.HasErrors}, "errors share fail"},
		{"two errors of 150 are too few", release.Window{}, release.Window{StatusOf: 150, Errors: 2, Known: release.HasErrors}, "errors share pass"},
		{"99 streams are too few", release.Window{}, release.Window{TTFTOf: 99, TTFTSlow: 99, Known: release.HasTTFTSlow}, "ttft_slow share insufficient"},
		{"4 of 100 streams are slow", release.Window{}, release.Window{TTFTOf: 100, TTFTSlow: 4, Known: release.HasTTFTSlow}, "ttft_slow share fail"},
		{"3 of 100 streams are slow", release.Window{}, release.Window{TTFTOf: 100, TTFTSlow: 3, Known: release.HasTTFTSlow}, "ttft_slow share pass"},
		{"solve rate exactly 10 points down", release.Window{Judged: 100, Solved: 90, Known: release.HasSolved}, release.Window{Judged: 200, Solved: 160, Known: release.HasSolved}, "solve_rate share fail"},
		{"solve rate less than that", release.Window{Judged: 100, Solved: 90, Known: release.HasSolved}, release.Window{Judged: 200, Solved: 161, Known: release.HasSolved}, "solve_rate share pass"},
		{"199 judged are too few", release.Window{Judged: 100, Solved: 90, Known: release.HasSolved}, release.Window{Judged: 199, Solved: 1, Known: release.HasSolved}, "solve_rate share insufficient"},
		{"all are handed over, and the limit is 120 %", release.Window{Total: 100, Transfers: 40, Known: release.HasTransfers}, release.Window{Total: 100, Transfers: 100, Known: release.HasTransfers}, "transfers share no_data"},
		{"no more than stable's, and the limit is 120 %", release.Window{Total: 100, Transfers: 40, Known: release.HasTransfers}, release.Window{Total: 50, Transfers: 20, Known: release.HasTransfers}, "transfers share pass"},
		{"all violate, and 200 of 100 are allowed", release.Window{Total: 100, Violations: 20, Known: release.HasViolations}, release.Window{Total: 100, Violations: 100, Known: release.HasViolations}, "violations count no_data"},
		{"none violates, and 200 of 100 are allowed", release.Window{Total: 100, Violations: 20, Known: release.HasViolations}, release.Window{Total: 100, Known: release.HasViolations}, "violations count pass"},
		{"two errors of two are too few to trip", release.Window{StatusOf: 100, Known: release.HasErrors}, release.Window{StatusOf: 2, Errors: 2, Known: release.HasErrors}, "errors share no_data"},
		{"solve rate 0, and the limit is below it", release.Window{Judged: 100, Solved: 5, Known: release.HasSolved}, release.Window{Judged: 200, Known: release.HasSolved}, "solve_rate share no_data"},
		{"solve rate as stable's, and the limit is below 0", release.Window{Judged: 100, Solved: 5, Known: release.HasSolved}, release.Window{Judged: 200, Solved: 10, Known: release.HasSolved}, "solve_rate share pass"},
		{"solve rate 0, and the limit is 0", release.Window{Judged: 100, Solved: 10, Known: release.HasSolved}, release.Window{Judged: 200, Known: release.HasSolved}, "solve_rate share fail"},
		{"no solve rate of stable", release.Window{}, release.Window{Judged: 200, Solved: 1, Known: release.HasSolved}, "solve_rate share no_data"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := said(shadow.CompareSets(&shadow.RecordSet{Window: tt.stable}, &shadow.RecordSet{Window: tt.canary}, setLimits()))
			if diff := cmp.Diff([]string{tt.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// latencies is a set of n latencies around ms, spread as those of services are.
func latencies(seed uint64, n int, ms float64) *shadow.RecordSet {
	r := rand.New(rand.NewPCG(seed, 1))
	var xs []float64
	for range n {
		xs = append(xs, ms*(0.5+r.ExpFloat64()/2))
	}
	slices.Sort(xs)
	s := &shadow.RecordSet{}
	for _, x := range xs {
		s.Latency = append(s.Latency, stats.Weighted{Value: x, Weight: 1})
	}
	s.Window = release.Window{Total: int64(n), P99MS: stats.NearestRank(xs, release.NewRatio(99, 100)), Known: release.HasP99}
	return s
}

func TestLatencyOfWholeSets(t *testing.T) {
	for _, tt := range []struct {
		name           string
		stable, canary *shadow.RecordSet
		want           string
	}{
		{"the same", latencies(1, 150, 100), latencies(2, 150, 100), "p99 p99_ms pass, p99 median_ms pass"},
		{"twice as slow", latencies(1, 150, 100), latencies(2, 150, 200), "p99 p99_ms pass, p99 median_ms fail"},
		{"a third slower", latencies(1, 150, 100), latencies(2, 150, 133), "p99 p99_ms pass, p99 median_ms pass"},
		{"five times as slow", latencies(1, 150, 100), latencies(2, 150, 500), "p99 p99_ms fail, p99 median_ms fail"},
		{"faster", latencies(1, 150, 200), latencies(2, 150, 100), "p99 p99_ms pass, p99 median_ms pass"},
		{"99 values are too few", latencies(1, 150, 100), latencies(2, 99, 500), "p99 p99_ms insufficient, p99 median_ms insufficient"},
		{"stable has too few", latencies(1, 99, 100), latencies(2, 150, 100), "p99 p99_ms pass, p99 median_ms insufficient"},
		{"stable has none", &shadow.RecordSet{}, latencies(2, 150, 100), "p99 p99_ms no_data, p99 median_ms no_data"},
		{"the canary has none", latencies(2, 150, 100), &shadow.RecordSet{}, "p99 p99_ms no_data, p99 median_ms no_data"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(said(shadow.CompareSets(tt.stable, tt.canary, setLimits())), ", "); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// TestChanceIsNoReason draws sets from one distribution, and from one that is
// exactly at the limit: with 99 % confidence hardly one of a hundred fails.
func TestChanceIsNoReason(t *testing.T) {
	for _, ratio := range []float64{1, 1.5} {
		failed := 0
		for seed := range uint64(300) {
			for _, k := range shadow.CompareSets(latencies(seed, 150, 100), latencies(seed+1000, 150, 100*ratio), setLimits()) {
				if k.Figure == "median_ms" && k.Verdict == release.Fail {
					failed++
				}
			}
		}
		if failed > 3 {
			t.Errorf("medians %g apart: %d of 300 fail", ratio, failed)
		}
	}
}

// TestABaselineOfNoTimeIsNone: nothing is a multiple of 0 ms, and no ratio is
// told that is no number.
func TestABaselineOfNoTimeIsNone(t *testing.T) {
	set := func(ms float64) *shadow.RecordSet {
		return &shadow.RecordSet{
			Window:  release.Window{Total: 200, P99MS: ms, TTFTP99MS: ms, TTFTOf: 200, Known: release.HasP99 | release.HasTTFT},
			Latency: []stats.Weighted{{Value: ms, Weight: 200}}, TTFT: []stats.Weighted{{Value: ms, Weight: 200}},
		}
	}
	for _, tt := range []struct {
		name   string
		canary float64
		want   []string
	}{
		{"the same", 0, []string{"p99 p99_ms no_data", "p99 median_ms no_data", "ttft_p99 p99_ms pass", "ttft_p99 median_ms no_data"}},
		{"slower, and over the limit in milliseconds", 4000, []string{"p99 p99_ms no_data", "p99 median_ms no_data", "ttft_p99 p99_ms fail", "ttft_p99 median_ms no_data"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			checks := shadow.CompareSets(set(0), set(tt.canary), setLimits())
			if diff := cmp.Diff(tt.want, said(checks)); diff != "" {
				t.Error(diff)
			}
			if _, err := json.Marshal(checks); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSignalsThatAreOffOrObserved(t *testing.T) {
	l := setLimits()
	bad := &shadow.RecordSet{Window: release.Window{Total: 100, Violations: 50, StatusOf: 100, Errors: 50, Known: release.HasViolations | release.HasErrors}}
	l.Rules[release.Violations].Mode = release.Off
	l.Rules[release.Errors].Mode = release.Observe
	checks := shadow.CompareSets(bad, bad, l)
	if diff := cmp.Diff([]string{"errors share fail"}, said(checks)); diff != "" || !checks[0].Observe {
		t.Error(diff)
	}
	if got := shadow.Outcome(checks); got != release.NoData {
		t.Errorf("outcome %s of what is only observed, want no_data", got)
	}
}

func TestOutcome(t *testing.T) {
	of := func(verdicts ...release.Verdict) (checks []shadow.SetCheck) {
		for _, v := range verdicts {
			checks = append(checks, shadow.SetCheck{Verdict: v})
		}
		return checks
	}
	for _, tt := range []struct {
		checks []shadow.SetCheck
		want   release.Verdict
	}{
		{of(), release.NoData}, {of(release.Pass), release.Pass}, {of(release.Pass, release.Insufficient), release.Insufficient},
		{of(release.NoData, release.Insufficient), release.NoData}, {of(release.Insufficient, release.Fail), release.Fail},
	} {
		if got := shadow.Outcome(tt.checks); got != tt.want {
			t.Errorf("%v: %s, want %s", said(tt.checks), got, tt.want)
		}
	}
}

// Figures of any size are written: JSON has no infinity.
func TestFiguresBeyondAllNumbersAreNone(t *testing.T) {
	const known = release.HasP99 | release.HasCostMean
	set := func(v float64) *shadow.RecordSet {
		return &shadow.RecordSet{Window: release.Window{Total: 200, P99MS: v, CostMean: v, Known: known}, Latency: []stats.Weighted{{Value: v, Weight: 200}}}
	}
	for _, values := range [][2]float64{{1e-300, 8e8}, {5e-324, 1.7e308}, {1.7e308, 1.7e308}, {1.7e308, 1e-300}} {
		checks := shadow.CompareSets(set(values[0]), set(values[1]), setLimits())
		if _, err := json.Marshal(checks); err != nil {
			t.Errorf("%v: %v", values, err)
		}
		if want := values[0] < values[1]; (shadow.Outcome(checks) == release.Fail) != want {
			t.Errorf("%v: %v", values, said(checks))
		}
	}
}
