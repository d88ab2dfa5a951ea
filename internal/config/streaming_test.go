package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/splice"
)

// TestTheDefaultsOfStreamingAreThePublishedFigures: 3000 ms to the first token
// at the 99th percentile, 3 % of streams above it after 100, 150 ms between
// tokens, 0.5 % broken streams, 1 % of 5xx, 90 % of the KV cache; errors from
// the third on and above 1 %.
func TestTheDefaultsOfStreamingAreThePublishedFigures(t *testing.T) {
	l := parseOK(t, string(published(t))).Limits()
	for s, want := range map[release.Signal]breaker.StreamLimit{
		release.TTFTP99:      {Limit: release.NewRatio(3000*breaker.PerMS, 1)},
		release.TTFTSlow:     {Limit: release.MustRatio("0.03"), Span: 5 * time.Minute, MinOf: 100},
		release.ITL:          {Limit: release.NewRatio(150*breaker.PerMS, 1), Span: time.Minute, MinOf: 10},
		release.StreamAborts: {Limit: release.MustRatio("0.005"), Span: 5 * time.Minute, MinSum: 3},
		release.ServerErrors: {Limit: release.MustRatio("0.01"), Span: time.Minute, MinSum: 3},
		release.Errors:       {Limit: release.MustRatio("0.01"), Span: 5 * time.Minute, MinSum: 3},
		release.KVCache:      {Limit: release.NewRatio(900_000, 1), Span: time.Minute, MinOf: 1},
	} {
		if got := *l.StreamLimitOf(s); got != want {
			t.Errorf("%s: %+v, want %+v", s, got, want)
		}
	}
	for s, want := range map[release.Signal]release.OnFail{
		release.TTFTP99: release.RollBack, release.TTFTSlow: release.RollBack, release.ITL: release.HoldStep, release.StreamAborts: release.RollBack,
		release.ServerErrors: release.RollBack, release.Errors: release.RollBack, release.KVCache: release.Throttle, release.Violations: release.RollBack,
	} {
		if got := l.Rules[s]; got != (breaker.Rule{OnFail: want}) {
			t.Errorf("%s: %+v, want enforced with %v", s, got, want)
		}
	}
}

// TestTheLowerOfBothLimitsOfTTFTHolds: the absolute one and the baseline's
// multiple.
func TestTheLowerOfBothLimitsOfTTFTHolds(t *testing.T) {
	for _, tc := range []struct {
		keys string
		want string // milliseconds
	}{
		{"", "3000"},
		{"baseline_ms: 400", "1500"},
		{"baseline_ms: 900", "3000"},
		{"limit_ms: 2500", "2500"},
		{"ratio_limit: 2.5", "2000"},
		{"baseline_ms: 123.4, ratio_limit: 1.5", "185.1"},
	} {
		l := parseOK(t, minimal+"metrics: {streaming: {ttft_p99: {"+tc.keys+"}}}\n").Limits()
		want, _ := release.MustRatio(tc.want).Mul(release.NewRatio(breaker.PerMS, 1))
		if got := l.StreamLimitOf(release.TTFTP99).Limit; got != want {
			t.Errorf("%q: %v, want %v", tc.keys, got, want)
		}
	}
}

func TestAStepHasItsOwnLimitsOfStreaming(t *testing.T) {
	cfg := parseOK(t, `canary:
  target_service: s
  steps:
    - {pct: 0.1, min_hold_min: 0, limits: {streaming: {ttft_slow: {min_count: 30, span_min: 20}, itl: {limit_ms: 200}}}}
    - {pct: 1, min_hold_min: 0}
  metrics: {streaming: {ttft_slow: {share_limit: 0.05, limit_ms: 2000}, kv_cache: {limit: 0.8}}}
`)
	p := cfg.Plan()
	for i, want := range []struct{ slow, itl breaker.StreamLimit }{
		{breaker.StreamLimit{Limit: release.MustRatio("0.05"), Span: 20 * time.Minute, MinOf: 30}, breaker.StreamLimit{Limit: release.NewRatio(200_000, 1), Span: time.Minute, MinOf: 10}},
		{breaker.StreamLimit{Limit: release.MustRatio("0.05"), Span: 5 * time.Minute, MinOf: 100}, breaker.StreamLimit{Limit: release.NewRatio(150_000, 1), Span: time.Minute, MinOf: 10}},
	} {
		l := &p.Steps[i].Limits
		if got := *l.StreamLimitOf(release.TTFTSlow); got != want.slow {
			t.Errorf("step %d: ttft_slow %+v, want %+v", i+1, got, want.slow)
		}
		if got := *l.StreamLimitOf(release.ITL); got != want.itl {
			t.Errorf("step %d: itl %+v, want %+v", i+1, got, want.itl)
		}
		if got := l.StreamLimitOf(release.KVCache).Limit; got != release.NewRatio(800_000, 1) {
			t.Errorf("step %d: kv_cache %v", i+1, got)
		}
	}
	if got := cfg.Streaming.TTFTSlow.LimitMS; got != release.NewRatio(2000, 1) {
		t.Errorf("streams are slow above %v ms", got)
	}
}

// TestOnFailHasTheLastWordOverAnAction.
func TestOnFailHasTheLastWordOverAnAction(t *testing.T) {
	cfg := parseOK(t, minimal+`metrics: {streaming: {itl: {action: throttle}, errors: {action: hold}, kv_cache: {action: trip}}}
signals: {errors: {on_fail: roll_back}, ttft_p99: {on_fail: throttle, mode: observe}, violations: {on_fail: throttle}, stream_aborts: {mode: enforce}}
`)
	for s, want := range map[release.Signal]breaker.Rule{
		release.ITL: {OnFail: release.Throttle}, release.Errors: {}, release.KVCache: {}, release.TTFTP99: {Mode: release.Observe, OnFail: release.Throttle},
		release.Violations: {OnFail: release.Throttle}, release.StreamAborts: {Mode: release.Required}, release.TTFTSlow: {},
	} {
		if got := cfg.Signals[s]; got != want {
			t.Errorf("%s: %+v, want %+v", s, got, want)
		}
	}
}

// TestASpanOfStreamingHoldsAWindow: one that is written is refused, the default
// is as long as the window.
func TestASpanOfStreamingHoldsAWindow(t *testing.T) {
	const source = "source: {windows: {path: w.jsonl, span_min: 5}}\n"
	l := parseOK(t, minimal+source).Limits()
	if got := l.StreamLimitOf(release.ServerErrors).Span; got != 5*time.Minute {
		t.Errorf("the span of 5xx is %v where windows have 5 minutes", got)
	}
	parseOK(t, minimal+source+"metrics: {streaming: {server_errors: {span_min: 5}}}\n")
	for src, want := range map[string]string{
		minimal + "metrics: {streaming: {server_errors: {span_min: 0.5}}}\n":                                           "server_errors: span_min 0.5 is shorter than a window of 1 minute",
		minimal + source + "metrics: {streaming: {errors: {span_min: 4}}}\n":                                           "errors: span_min 4 is shorter than a window of 5 minutes",
		minimal + source + "metrics: {streaming: {kv_cache: {span_min: 1}}}\n":                                         "kv_cache: span_min 1 is shorter than a window of 5 minutes",
		strings.Replace(minimal, "min_hold_min: 0", "min_hold_min: 0, limits: {streaming: {itl: {span_min: 0.1}}}", 1): "itl: span_min 0.1 is shorter than a window of 1 minute",
	} {
		cfg, list := Parse("canary.yaml", []byte(src))
		if cfg != nil || len(list) != 1 || list[0].Rule != ruleSpanOrder || list[0].Message != want {
			t.Errorf("%s\ngave %v, want %q", src, list, want)
		}
	}
}

func TestWhatIsNoLimitOfStreamingIsRefused(t *testing.T) {
	for keys, rule := range map[string]string{
		"itl: {share_limit: 0.1}":                  ruleUnknownKey,
		"ttft_p99: {span_min: 5}":                  ruleUnknownKey, // percentiles of windows cannot be merged
		"errors: {share_limit: 1}":                 ruleOutOfRange,
		"kv_cache: {limit: 90}":                    ruleOutOfRange,
		"kv_cache: {action: roll_back}":            ruleUnknownWord,
		"stream_aborts: {min_aborts: 0}":           ruleOutOfRange,
		"itl: {limit_ms: 0.123456789012345678901}": ruleOutOfRange,
	} {
		_, list := Parse("canary.yaml", []byte(minimal+"metrics: {streaming: {"+keys+"}}\n"))
		if len(list) != 1 || list[0].Rule != rule {
			t.Errorf("%s: %v, want %s", keys, list, rule)
		}
	}
	for _, keys := range []string{"itl: {action: trip}", "ttft_slow: {limit_ms: 9}"} {
		src := strings.Replace(minimal, "min_hold_min: 0", "min_hold_min: 0, limits: {streaming: {"+keys+"}}", 1)
		if _, list := Parse("canary.yaml", []byte(src)); len(list) != 1 || list[0].Rule != ruleUnknownKey {
			t.Errorf("a step's %s: %v", keys, list)
		}
	}
}

// TestDigestsOfBeforeStreaming: what was written before there were signals of
// streaming keeps its digest, also where windows are longer than a minute, and
// so does a default that is written out.
func TestDigestsOfBeforeStreaming(t *testing.T) {
	const more = "canary: {target_service: s, steps: [{pct: 0.1, min_hold_min: 60}, {pct: 1, min_hold_min: 60, limits: {p99_ratio_limit: 2}}], signals: {cost: {mode: off}, solve_rate: {on_fail: hold}}, metrics: {slow_layer: {min_samples_slow: 150}}}\nsource: {windows: {path: w.jsonl, span_min: 5}}"
	for src, want := range map[string]string{
		"canary: {target_service: s, steps: [{pct: 1, min_hold_min: 0}]}":                                                                         "aae5984c02151107825e06b17ee0fd553dfa1dd4e218c1804c9098637396e984",
		"canary: {target_service: s, steps: [{pct: 1, min_hold_min: 0}]}\nmetrics: {streaming: {itl: {limit_ms: 150, action: hold}, errors: {}}}": "aae5984c02151107825e06b17ee0fd553dfa1dd4e218c1804c9098637396e984",
		more: "bd81e947f53d2f6d836ee009bafafb1c8586a246f543081df5743ade79b247a8",
		strings.Replace(more, "metrics: {", "metrics: {streaming: {kv_cache: {span_min: 5}}, ", 1): "bd81e947f53d2f6d836ee009bafafb1c8586a246f543081df5743ade79b247a8",
	} {
		if got := parseOK(t, src).Plan().Digest; got != want {
			t.Errorf("%s\nhas digest %s, want %s", src, got, want)
		}
	}
}

// TestDigestTellsLimitsOfStreamingApart: every one of their figures is part of
// it, and what becomes of a hit.
func TestDigestTellsLimitsOfStreamingApart(t *testing.T) {
	seen := map[string]string{}
	for _, keys := range []string{
		"", "ttft_p99: {limit_ms: 2999}", "ttft_p99: {baseline_ms: 801}", "ttft_p99: {ratio_limit: 3.8}", "ttft_p99: {min_count: 1}", "ttft_p99: {action: hold}",
		"ttft_slow: {limit_ms: 2999}", "ttft_slow: {share_limit: 0.04}", "ttft_slow: {span_min: 6}", "ttft_slow: {min_count: 99}",
		"itl: {limit_ms: 151}", "itl: {span_min: 2}", "itl: {action: throttle}", "stream_aborts: {min_aborts: 4}", "stream_aborts: {min_count: 4}",
		"server_errors: {min_errors: 4}", "errors: {min_errors: 4}", "errors: {share_limit: 0.02}", "kv_cache: {limit: 0.91}", "kv_cache: {min_count: 2}", "kv_cache: {action: trip}",
	} {
		digest := parseOK(t, minimal+"metrics: {streaming: {"+keys+"}}\n").Plan().Digest
		if other, ok := seen[digest]; ok {
			t.Errorf("%q has the digest of %q", keys, other)
		}
		seen[digest] = keys
	}
}

// TestLintOfStreamingSpeaksOfWhatIsWritten alone.
func TestLintOfStreamingSpeaksOfWhatIsWritten(t *testing.T) {
	const head = "canary:\n  target_service: s\n  requests_per_min: 600\n  steps: [{pct: 0.01, min_hold_min: 60}, {pct: 1, min_hold_min: 60}]\n"
	told := func(src string) (blind, baseline int) {
		for _, f := range parseOK(t, head+src).Lint() {
			switch {
			case f.Rule == ruleBlindSignal:
				blind++
			case f.Rule == ruleDefaultBaseline && strings.HasPrefix(f.Message, "baseline_ms"):
				baseline++
			}
		}
		return blind, baseline
	}
	for src, want := range map[string][2]int{
		"": {0, 0},
		"  metrics: {streaming: {ttft_slow: {}}}\n":                                      {1, 0},
		"  metrics: {streaming: {ttft_slow: {min_count: 30}}}\n":                         {0, 0},
		"  metrics: {streaming: {ttft_slow: {span_min: 17}}}\n":                          {0, 0},
		"  metrics: {streaming: {ttft_p99: {min_count: 7}}}\n":                           {1, 1},
		"  metrics: {streaming: {ttft_p99: {baseline_ms: 500}}}\n":                       {0, 0},
		"  signals: {ttft_slow: {mode: enforce}}\n":                                      {1, 0},
		"  signals: {ttft_slow: {mode: off}}\n  metrics: {streaming: {ttft_slow: {}}}\n": {0, 0},
		"  metrics: {streaming: {kv_cache: {min_count: 1}}}\n":                           {0, 0},
	} {
		if blind, baseline := told(src); blind != want[0] || baseline != want[1] {
			t.Errorf("%s: %d of blind signals, %d of a shipped baseline, want %v", src, blind, baseline, want)
		}
	}
}

// TestAMeasuredBaselineOfTTFTCanBePutIn where there are no limits of streaming
// yet.
func TestAMeasuredBaselineOfTTFTCanBePutIn(t *testing.T) {
	for _, path := range [][]string{{"canary", "metrics", "streaming", "ttft_p99", "baseline_ms"}, {"metrics", "streaming", "ttft_p99", "baseline_ms"}} {
		src := published(t)
		if path[0] == "metrics" {
			src = []byte(minimal)
		}
		out, err := splice.Put(src, path, "412.5")
		if err != nil {
			t.Fatal(err)
		}
		if got := parseOK(t, string(out)).Streaming.TTFTP99.BaselineMS; got != release.MustRatio("412.5") {
			t.Errorf("%v in\n%s", got, out)
		}
	}
}

// TestTheExampleOfTheReferenceIsTheDefaults: what docs/reference/streaming.md
// writes out changes nothing.
func TestTheExampleOfTheReferenceIsTheDefaults(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(docsDir, "streaming.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(raw), "```yaml\ncanary:\n")
	block, _, ends := strings.Cut(block, "```")
	if !found || !ends || strings.Count(block, "action:") != release.Streaming {
		t.Fatalf("no example of %d signals:\n%s", release.Streaming, block)
	}
	if cfg, bare := parseOK(t, minimal+block), parseOK(t, minimal); cfg.Plan().Digest != bare.Plan().Digest || cfg.Streaming != bare.Streaming {
		t.Errorf("%+v\nwithout the example %+v", cfg.Streaming, bare.Streaming)
	}
}
