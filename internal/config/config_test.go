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
