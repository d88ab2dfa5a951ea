package config

import (
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

func TestAdaptiveFindings(t *testing.T) {
	for _, tt := range []struct{ name, lines, want string }{
		{"the limit is required", "adaptive: {up: 1.1}", "4:3 missing-key"},
		{"a limit of all requests", "adaptive: {error_limit: 1}", "4:27 out-of-range"},
		{"a limit of none", "adaptive: {error_limit: 0}", "4:27 out-of-range"},
		{"a fall that raises", "adaptive: {error_limit: 0.05, down: 1}", "4:39 out-of-range"},
		{"a rise that lowers", "adaptive: {error_limit: 0.05, up: 1}", "4:37 out-of-range"},
		{"a bound between two slots", "adaptive: {error_limit: 0.05, min_pct: 0.005}", "4:42 off-ring"},
		{"bounds the wrong way round", "adaptive: {error_limit: 0.05, min_pct: 0.2, max_pct: 0.1}", "4:42 step-order"},
		{"bounds that are one", "adaptive: {error_limit: 0.05, min_pct: 0.2, max_pct: 0.2}", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, list := Parse("canary.yaml", []byte(with(tt.lines)))
			if got := found(list); got != tt.want {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}

// TestAdaptiveMovesByWhatTheTargetHolds: a slot of the ring, whatever the steps.
func TestAdaptiveMovesByWhatTheTargetHolds(t *testing.T) {
	const steps = "canary: {target_service: s, hash_ring_slots: 100, steps: [{pct: 0.10, min_hold_min: 0}, {pct: 1, min_hold_min: 0}]}\n"
	for _, tt := range []struct{ name, adaptive, target, want string }{
		{"a target of whole percents", "adaptive: {error_limit: 0.05}\n", "target: {file: {path: w, unit: {whole: 100}}}\n", ""},
		{"a target of twentieths", "adaptive: {error_limit: 0.05}\n", "target: {file: {path: w, unit: {whole: 20}}}\n", "2:11 off-unit"},
		{"and a share that stays at the steps'", "", "target: {file: {path: w, unit: {whole: 20}}}\n", ""},
		{"a server whose weights are of 256", "adaptive: {error_limit: 0.05}\n", "target: {haproxy: {address: './h.sock', backend: llm, total: 250}}\n", "2:11 off-unit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, list := Parse("canary.yaml", []byte(steps+tt.adaptive+tt.target))
			if got := found(list); got != tt.want {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}

// TestLintOfALimitThatTheBreakerComesBefore.
func TestLintOfALimitThatTheBreakerComesBefore(t *testing.T) {
	for lines, want := range map[string]bool{
		"adaptive: {error_limit: 0.05}":  true,
		"adaptive: {error_limit: 0.01}":  true,
		"adaptive: {error_limit: 0.009}": false,
		"adaptive: {error_limit: 0.05}\nmetrics: {streaming: {errors: {share_limit: 0.3}}}": false,
		"adaptive: {error_limit: 0.05}\nmetrics: {streaming: {errors: {action: hold}}}":     false,
		"adaptive: {error_limit: 0.05}\nsignals: {errors: {mode: observe}}":                 false,
		"metrics: {streaming: {errors: {share_limit: 0.001}}}":                              false,
	} {
		told := false
		for _, f := range parseOK(t, with(lines)).Lint() {
			told = told || f.Rule == ruleUnreachableLimit && strings.HasPrefix(f.Message, "error_limit")
		}
		if told != want {
			t.Errorf("%s: told %t, want %t", lines, told, want)
		}
	}
}

func TestAdaptivePlan(t *testing.T) {
	plan := func(lines string) *ladder.Plan {
		cfg, list := Parse("canary.yaml", []byte(with(lines)))
		if cfg == nil {
			t.Fatal(found(list))
		}
		return cfg.Plan()
	}
	t.Run("left out, only signals that throttle move the weight", func(t *testing.T) {
		if got := plan("requests_per_min: 6").Adaptive; got != ladder.DefaultAdaptive() || got.On {
			t.Errorf("%+v", got)
		}
	})
	t.Run("the published factors are the defaults", func(t *testing.T) {
		got := plan("adaptive: {error_limit: 0.05, max_pct: 0.5}").Adaptive
		want := ladder.Adaptive{
			On: true, Limit: release.MustRatio("0.05"), Span: 5 * time.Minute, Interval: 5 * time.Minute, Least: 20,
			Down: release.MustRatio("0.8"), Up: release.MustRatio("1.05"), Max: release.Weight{Slots: 50, Ring: 100},
		}
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
	t.Run("it is part of the digest, and its absence is not", func(t *testing.T) {
		none, some, other := plan("requests_per_min: 6").Digest, plan("adaptive: {error_limit: 0.05}").Digest, plan("adaptive: {error_limit: 0.06}").Digest
		if none == some || some == other {
			t.Error("digests do not tell them apart")
		}
	})
}
