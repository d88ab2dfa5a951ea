package config

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/splice"
)

func published(t testing.TB) []byte {
	t.Helper()
	src, err := os.ReadFile("testdata/published.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// parseOK parses a source that must have no findings.
func parseOK(t testing.TB, src string) *Config {
	t.Helper()
	cfg, list := Parse("canary.yaml", []byte(src))
	for _, f := range list {
		t.Errorf("%s", f.Render([]byte(src)))
	}
	if cfg == nil {
		t.FailNow()
	}
	return cfg
}

func TestPublishedFilePlan(t *testing.T) {
	cfg := parseOK(t, string(published(t)))
	p := cfg.Plan()
	if p.Service != "order-service" || len(p.Steps) != 5 || len(p.Digest) != 64 || len(p.Candidate) != 64 {
		t.Fatalf("plan %+v", p)
	}
	l := p.Steps[0].Limits
	if l.SolveFloor != release.NewRatio(4, 5) || l.P99MS != 900 || l.CostRatio != 2 {
		t.Errorf("limits %+v", l)
	}
	if l.ViolationRate != release.NewRatio(1, 200) || l.TransferRate != release.NewRatio(3, 50) {
		t.Errorf("rates %v %v", l.ViolationRate, l.TransferRate)
	}
	if l.Keep != 25*time.Minute || l.Cooldown != 6*time.Minute || !l.LockOnEscalate || l.MaxRecoveries != 3 {
		t.Errorf("limits %+v", l)
	}
	if s := p.Steps[3]; s.Weight != (release.Weight{Slots: 30, Ring: 100}) || s.MinHold != 12*time.Hour || s.Gates != ladder.TimeGate|ladder.MetricGate {
		t.Errorf("step %+v", s)
	}
}

// TestProductsAreExact: products of decimals that floats get wrong.
func TestProductsAreExact(t *testing.T) {
	l := parseOK(t, with(`metrics:
  fast_layer: {baseline_violation_rate: 0.0001, violation_ratio_multiplier: 3, p99_baseline_ms: 1.1, p99_ratio_limit: 1.1, baseline_transfer_rate: 0.07, transfer_rate_ratio_limit: 3}
  slow_layer: {solve_baseline: 0.93, solve_rate_drop_pp: 3.5}`)).Plan().Steps[0].Limits
	if l.ViolationRate != release.NewRatio(3, 10000) || l.TransferRate != release.NewRatio(21, 100) {
		t.Errorf("rates %v %v", l.ViolationRate, l.TransferRate)
	}
	if l.P99MS != 1.21 {
		t.Errorf("p99 limit %v is not the float nearest to 1.21", l.P99MS)
	}
	if l.SolveFloor != release.NewRatio(895, 1000) {
		t.Errorf("floor %v", l.SolveFloor)
	}
}

// fittedLayers is a metrics block with every key that goes beyond the fixed
// limits off its default.
const fittedLayers = `metrics:
  fast_layer: {p99_judge: count, p99_slow_rate: 0.007, p99_slow_ratio_limit: 3.1, min_slow_count: 5}
  slow_layer:
    solve_baseline: 0.914
    slow_window_max_min: 90
    judge: cusum
    against: stable
    noise: {z: 4.02, tau: 0.012, se: 0.001, tau_control: 0.004, tail: exact}
    cusum: {drop_pp: 2.5, limit: 11.7}`

func TestPlanOfFittedLayers(t *testing.T) {
	l := parseOK(t, with(fittedLayers)).Plan().Steps[0].Limits
	if !l.P99ByCount || l.SlowRate != release.NewRatio(217, 10000) || l.MinSlow != 5 {
		t.Errorf("count form %t %v %d", l.P99ByCount, l.SlowRate, l.MinSlow)
	}
	if want := (breaker.Noise{Z: 4.02, Tau: 0.012, SE: 0.001, TauControl: 0.004, Tail: breaker.ExactTail}); l.Noise != want {
		t.Errorf("noise %+v, want %+v", l.Noise, want)
	}
	if want := (breaker.Cusum{Drop: release.NewRatio(25, 1000), Limit: 11.7}); l.Judge != breaker.CusumJudge || l.Cusum != want {
		t.Errorf("judge %d, cusum %+v, want %+v", l.Judge, l.Cusum, want)
	}
	if !l.AgainstStable || l.SolveBaseline != release.NewRatio(914, 1000) || l.SlowSpanMax != 90*time.Minute || l.Keep != 90*time.Minute {
		t.Errorf("limits %+v", l)
	}
	l = parseOK(t, minimal).Plan().Steps[0].Limits
	if l.P99ByCount || l.SlowRate != release.NewRatio(3, 100) || l.MinSlow != 3 || l.Noise != (breaker.Noise{}) || l.Cusum != (breaker.Cusum{}) ||
		l.Judge != breaker.WindowJudge || l.AgainstStable || l.SolveBaseline != release.NewRatio(9, 10) || l.SlowSpanMax != l.SlowSpan {
		t.Errorf("defaults %+v", l)
	}
}

func TestKeepIsTheLongestReachOfAnyStep(t *testing.T) {
	p := parseOK(t, `canary:
  target_service: s
  steps:
    - {pct: 0.1, min_hold_min: 0, limits: {slow_window_min: 60, label_lag_min: 15}}
    - {pct: 1, min_hold_min: 0, limits: {violation_window_min: 40}}
`).Plan()
	for i := range p.Steps {
		if got := p.Steps[i].Limits.Keep; got != 75*time.Minute {
			t.Errorf("step %d keeps %v", i, got)
		}
	}
}

func TestPlanIsBuiltAnew(t *testing.T) {
	cfg := parseOK(t, with("freeze: [{days: [fri]}]"))
	p := cfg.Plan()
	p.Steps[0].Limits.MinSamples = 1
	p.Freezes[0].From = time.Hour
	if q := cfg.Plan(); q.Steps[0].Limits.MinSamples != 200 || q.Freezes[0].From != 0 {
		t.Error("a change of one plan shows in the next")
	}
}

func TestDigest(t *testing.T) {
	src := string(published(t))
	base := parseOK(t, src).Plan()
	tests := []struct {
		name, old, new string
		same           bool
	}{
		{"a comment", "# what is hashed", "# which", true},
		{"another way to write a number", "p99_baseline_ms: 300", "p99_baseline_ms: 3e2", true},
		{"a default left out", "      min_transfer_count: 3\n", "", true},
		{"order of users", "[C-88001, C-88002]", "[C-88002, C-88001]", true},
		{"how much traffic there is", "requests_per_min: 600 ", "requests_per_min: 900 ", true},
		{"where weights are written", "weights.json", "w.json", true},
		{"a threshold", "min_samples_slow: 200", "min_samples_slow: 201", false},
		{"a threshold beyond a float's digits", "p99_baseline_ms: 300", "p99_baseline_ms: 300.00000000000001", false},
		{"a hold", "min_hold_min: 120", "min_hold_min: 121", false},
		{"a gate", "1440, gate: [time, metric]", "1440, gate: [time]", false},
		{"a step's own limit", "120,  gate: [time, metric]", "120, limits: {violation_limit: 4}", false},
		{"an excluded user", "C-88002]", "C-88003]", false},
		{"an included user", "user_ids: [] }", "user_ids: [a] }", false},
		{"the ring", "hash_ring_slots: 100", "hash_ring_slots: 200", false},
		{"recovery", "cooldown_min: 6", "cooldown_min: 7", false},
		{"a mode", "  metrics:", "  signals: {cost: {mode: observe}}\n  metrics:", false},
		{"a written enforce", "  metrics:", "  signals: {cost: {mode: enforce}}\n  metrics:", false},
		{"p99 by window, said", "      p99_ratio_limit: 3.0", "      p99_ratio_limit: 3.0\n      p99_judge: window\n      p99_slow_rate: 0.010\n      p99_slow_ratio_limit: 3\n      min_slow_count: 3", true},
		{"a fixed span and the window judge, said", "      slow_window_min: 25", "      slow_window_min: 25\n      slow_window_max_min: 25\n      judge: window\n      against: baseline", true},
		{"p99 by count", "      p99_ratio_limit: 3.0", "      p99_ratio_limit: 3.0\n      p99_judge: count", false},
		{"a rate of slow requests", "      p99_ratio_limit: 3.0", "      p99_ratio_limit: 3.0\n      p99_slow_rate: 0.02", false},
		{"a ratio of slow requests", "      p99_ratio_limit: 3.0", "      p99_ratio_limit: 3.0\n      p99_slow_ratio_limit: 4", false},
		{"a number of slow requests", "      p99_ratio_limit: 3.0", "      p99_ratio_limit: 3.0\n      min_slow_count: 4", false},
		{"a span that reaches back", "      slow_window_min: 25", "      slow_window_min: 25\n      slow_window_max_min: 26", false},
		{"against stable", "      slow_window_min: 25", "      slow_window_min: 25\n      against: stable", false},
		{"noise", "      slow_window_min: 25", "      slow_window_min: 25\n      noise: {z: 4, tau: 0}", false},
		{"a cumulative sum", "      slow_window_min: 25", "      slow_window_min: 25\n      cusum: {drop_pp: 5, limit: 9}", false},
		{"a freeze", "  metrics:", "  freeze: [{}]\n  metrics:", false},
		{"the approval's time", "  metrics:", "  approval_timeout_min: 5\n  metrics:", false},
		{"the cost that stands in", "  metrics:", "  cost_baseline_usd: 0.01\n  metrics:", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if strings.Count(src, tt.old) != 1 {
				t.Fatalf("%q stands %d times", tt.old, strings.Count(src, tt.old))
			}
			got := parseOK(t, strings.Replace(src, tt.old, tt.new, 1)).Plan()
			if (got.Digest == base.Digest) != tt.same {
				t.Errorf("same digest: %t, want %t", got.Digest == base.Digest, tt.same)
			}
			if got.Candidate != base.Candidate {
				t.Error("the candidate changed with the rules")
			}
		})
	}
}

// TestDigestsOfBefore: what was written before there were fitted layers keeps
// its digest, and with it its approvals.
func TestDigestsOfBefore(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{"published file", string(published(t)), "a5c2a6ce0cec1225748b0fbe27023c76eaa16d0df72d5c84d022ef8fad69a7f5"},
		{"limits of steps", `canary:
  target_service: s
  steps:
    - {pct: 0.1, min_hold_min: 0, limits: {slow_window_min: 60, label_lag_min: 15, p99_min_samples: 20}}
    - {pct: 1, min_hold_min: 0, limits: {violation_window_min: 40}}
`, "d6a5f7db8d2f935d653fdeeda571c83140b5d71a4ba43195b7de89159f39ebbc"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := parseOK(t, tt.src).Plan().Digest; got != tt.want {
				t.Errorf("digest %s, want %s", got, tt.want)
			}
		})
	}
}

// TestDigestTellsFittedLayersApart: every one of their figures is part of it.
func TestDigestTellsFittedLayersApart(t *testing.T) {
	seen := map[string]string{parseOK(t, with(fittedLayers)).Plan().Digest: "itself"}
	for _, change := range [][2]string{
		{"p99_judge: count", "p99_judge: window"}, {"0.007", "0.008"}, {"3.1", "3.2"}, {"min_slow_count: 5", "min_slow_count: 6"},
		{"max_min: 90", "max_min: 91"}, {"judge: cusum", "judge: window"}, {"against: stable", "against: baseline"}, {"z: 4.02", "z: 4.03"},
		{"tau: 0.012", "tau: 0.013"}, {"se: 0.001", "se: 0.002"}, {"tau_control: 0.004", "tau_control: 0.005"}, {"exact", "normal"},
		{"drop_pp: 2.5", "drop_pp: 2.6"}, {"limit: 11.7", "limit: 11.8"},
	} {
		if strings.Count(fittedLayers, change[0]) != 1 {
			t.Fatalf("%q stands %d times", change[0], strings.Count(fittedLayers, change[0]))
		}
		digest := parseOK(t, with(strings.Replace(fittedLayers, change[0], change[1], 1))).Plan().Digest
		if other, ok := seen[digest]; ok {
			t.Errorf("%s has the digest of %s", change[1], other)
		}
		seen[digest] = change[1]
	}
}

func TestCandidate(t *testing.T) {
	id := func(canary string) string {
		return parseOK(t, minimal+"versions: {canary: {"+canary+"}}\n").Plan().Candidate
	}
	base := id("model_id: a, prompt_version: '7', api_key_env: K, weight: 0.1")
	if got := id("weight: 0.5, api_key_env: K, prompt_version: 7, model_id: a"); got != base {
		t.Error("weight, order or quoting changed the candidate")
	}
	if got := id("model_id: a, prompt_version: '7', api_key_env: K, api_key: sk-0123456789abcdef"); got != base {
		t.Error("a secret is part of the candidate's name")
	}
	for _, other := range []string{
		"model_id: b, prompt_version: '7', api_key_env: K",
		"model_id: a, prompt_version: '8', api_key_env: K",
		"model_id: a, prompt_version: '7', api_key_env: L",
		"model_id: a, prompt_version: '7', api_key_env: K, temperature: 0",
		"model_id: a, prompt_version: '7', api_key_env: K, params: {x: [1, {y: a}]}",
	} {
		if id(other) == base {
			t.Errorf("%s is no other candidate", other)
		}
	}
	if got := parseOK(t, minimal).Plan().Candidate; got != "" {
		t.Errorf("no version is called %q", got)
	}
}

func TestSecretNeverPrints(t *testing.T) {
	cfg := parseOK(t, minimal+"versions: {canary: {api_key: sk-0123456789abcdef}}\n")
	v := cfg.Versions.Canary
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{fmt.Sprintf("%v", *v), fmt.Sprintf("%+v", *v), fmt.Sprintf("%#v", *v), v.APIKey.String(), string(raw)} {
		if strings.Contains(s, "0123456789") {
			t.Errorf("printed %s", s)
		}
	}
	if v.APIKey.Reveal() != "sk-0123456789abcdef" {
		t.Error("the secret cannot be used")
	}
}

// TestSplicedValueIsRead: a value that is put into the published file is the
// one value that changes.
func TestSplicedValueIsRead(t *testing.T) {
	src := published(t)
	base := parseOK(t, string(src))
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"p99_baseline_ms", "cost_min_samples"}).Draw(t, "key")
		n := rapid.Int64Range(1, 1_000_000).Draw(t, "value")
		out, err := splice.Set(src, []string{"canary", "metrics", "fast_layer", name}, strconv.FormatInt(n, 10))
		if err != nil {
			t.Fatal(err)
		}
		cfg, list := Parse("canary.yaml", out)
		if cfg == nil {
			t.Fatalf("%v in\n%s", list, out)
		}
		want := base.Fast
		if name == "p99_baseline_ms" {
			want.P99BaselineMS = release.NewRatio(n, 1)
		} else {
			want.CostMinSamples = n
		}
		if cfg.Fast != want || cfg.Slow != base.Slow || cfg.Recovery != base.Recovery {
			t.Fatalf("got %+v, want %+v", cfg.Fast, want)
		}
	})
}
