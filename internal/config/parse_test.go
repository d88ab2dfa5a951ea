package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/diag"
	"github.com/canaryctl/canaryctl/internal/release"
)

const minimal = "canary:\n  target_service: s\n  steps: [{pct: 1, min_hold_min: 0}]\n"

// with puts lines below the minimal file's canary.
func with(lines string) string {
	return minimal + "  " + strings.ReplaceAll(lines, "\n", "\n  ") + "\n"
}

// found lists findings as "line:col rule".
func found(list diag.List) string {
	var out []string
	for _, f := range list {
		out = append(out, fmt.Sprintf("%d:%d %s", f.Line, f.Col, f.Rule))
	}
	return strings.Join(out, ", ")
}

func TestParseFinds(t *testing.T) {
	tests := []struct {
		name, src, want string
		says            string // part of a message or a hint
	}{
		{"empty file", "", "1:1 yaml-document", "canaryctl init"},
		{"comments only", "# nothing\n", "1:1 yaml-document", "empty"},
		{"null document", "~\n", "1:1 yaml-document", "empty"},
		{"a list", "- a\n", "1:1 wrong-type", "want a mapping, not a list"},
		{"a word", "canary\n", "1:1 wrong-type", "its keys are canary"},
		{"second document", minimal + "---\na: 1\n", "5:1 yaml-document", "second document"},
		{"empty second document", minimal + "---\n", "5:1 yaml-document", "second document"},
		{"tab as indentation", "canary:\n\ttarget_service: s\n", "2:1 yaml-syntax", "indent with spaces"},
		{"unclosed bracket is shown where it opens", "canary:\n  target_service: s\n  steps: [{pct: 1\n  exclude: {}\n", "3:10 yaml-syntax", ""},
		{"mapping in a value", "canary:\n  target_service: a: b\n", "2:20 yaml-syntax", "quotes"},
		{"unknown anchor", "canary: *x\n", "1:9 yaml-syntax", "unknown anchor"},
		{"not UTF-8", "canary:\n  target_service: é\xff\n", "2:20 yaml-encoding", "UTF-8"},
		{"UTF-16", "\xff\xfec\x00a\x00", "1:1 yaml-encoding", "UTF-8"},
		{"lone carriage return", "canary:\r  a: 1\n", "1:8 yaml-encoding", "U+000D"},
		{"NUL", "canary: \x00\n", "1:9 yaml-encoding", "U+0000"},
		{"alias", with("exclude: &x {segments: [a]}\ninclude: *x"), "5:12 yaml-alias", "aliases are not followed"},
		{"alias bomb", "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n" + minimal, "1:1 unknown-key, 2:1 unknown-key, 3:1 unknown-key", ""},
		{"duplicate key", with("hash_ring_slots: 100\nhash_ring_slots: 100"), "5:3 duplicate-key", "line 4, column 3"},
		{"duplicate key written otherwise", with("hash_ring_slots: 100\n\"hash_ring_slots\": 100"), "5:3 duplicate-key", ""},
		{"duplicate key where the form is free", minimal + "source: {windows: {path: a, map: {x: a, x: b}}}\n", "4:41 duplicate-key", ""},
		{"not a number where the form is free", minimal + "source: {windows: {path: a, map: {x: .nan}}}\n", "4:38 not-finite", ""},
		{"mapping as key", minimal + "? {a: 1}\n: 2\n", "4:3 wrong-type", "a key is a word"},
		{"NaN", with("requests_per_min: .NaN"), "4:21 not-finite", ""},
		{"infinity", with("requests_per_min: -.inf"), "4:21 not-finite", ""},
		{"infinite minutes", with("approval_timeout_min: .inf"), "4:25 not-finite", ""},
		{"octal", with("hash_ring_slots: 0100"), "4:20 wrong-type", "plain decimal form"},
		{"hexadecimal", with("hash_ring_slots: 0x64"), "4:20 wrong-type", "plain decimal form"},
		{"underscores", with("requests_per_min: 1_000"), "4:21 wrong-type", "plain decimal form"},
		{"plus sign", with("requests_per_min: +5"), "4:21 wrong-type", "plain decimal form"},
		{"huge exponent", with("requests_per_min: 1e999999999"), "4:21 wrong-type", ""},
		{"many digits", with("requests_per_min: 0." + strings.Repeat("3", 24)), "4:21 out-of-range", "too many digits"},
		{"many digits of a whole number", with("hash_ring_slots: 1234567890123456789"), "4:20 out-of-range", "too many digits"},
		{"more digits than a number can be written with", with("requests_per_min: 0." + strings.Repeat("3", 60)), "4:21 out-of-range", "too many digits"},
		{"limits whose product has too many digits", with("metrics: {fast_layer: {p99_baseline_ms: 5, transfer_rate_ratio_limit: 0.123456789012345678}}"), "4:73 out-of-range", "baseline_transfer_rate x transfer_rate_ratio_limit"},
		{"a step's limits whose product has too many digits", "canary: {target_service: s, steps: [{pct: 1, min_hold_min: 1, limits: {violation_ratio_multiplier: 0.123456789012345678}}]}\n", "1:100 out-of-range", "baseline_violation_rate x"},
		{"a floor with too many digits", with("metrics: {slow_layer: {solve_rate_drop_pp: 0.123456789012345678}}"), "4:46 out-of-range", "solve_baseline - solve_rate_drop_pp"},
		{"quoted number", with("requests_per_min: '600'"), "4:21 wrong-type", "remove the quotes"},
		{"half a count", with("hash_ring_slots: 99.5"), "4:20 wrong-type", "whole number"},
		{"minutes with a unit", with("approval_timeout_min: 1d"), "4:25 wrong-unit", "write 1440"},
		{"minutes in seconds", with("approval_timeout_min: 90s"), "4:25 wrong-unit", "write 1.5"},
		{"quoted minutes", with(`approval_timeout_min: "10"`), "4:25 wrong-type", "remove the quotes"},
		{"negative minutes", with("approval_timeout_min: -5"), "4:25 out-of-range", "minutes"},
		{"negative minutes with a unit", with(`approval_timeout_min: "-5m"`), "4:25 wrong-unit", "minutes"},
		{"minutes as a truth value", with("approval_timeout_min: true"), "4:25 wrong-type", "minutes"},
		{"minutes as nothing", with("approval_timeout_min: ~"), "4:25 wrong-type", "want a number of minutes, not nothing"},
		{"minutes as a list", with("approval_timeout_min: []"), "4:25 wrong-type", "want a number of minutes, not a list"},
		{"minutes in an unknown unit", with("approval_timeout_min: 3mo"), "4:25 wrong-unit", "minutes"},
		{"eleven years", with("approval_timeout_min: 6000000"), "4:25 out-of-range", "ten years"},
		{"less than a nanosecond", with("approval_timeout_min: 0.0000000000001"), "4:25 out-of-range", "nanoseconds"},
		{"zero window", with("metrics: {fast_layer: {violation_window_min: 0}}"), "4:48 out-of-range", "above 0"},
		{"success rate above 1", with("metrics: {recovery: {half_open_success_rate: 80}}"), "4:48 out-of-range", "then 0.8"},
		{"no violations allowed", with("metrics: {fast_layer: {violation_limit: 0}}"), "4:43 out-of-range", "at least 1"},
		{"boolean in words", with("metrics: {recovery: {lock_on_escalate: yes}}"), "4:42 wrong-type", "true or false"},
		{"truth value as a mapping", with("metrics: {recovery: {lock_on_escalate: {}}}"), "4:42 wrong-type", "want true or false, not a mapping"},
		{"number as a truth value", with("metrics: {recovery: {lock_on_escalate: 1}}"), "4:42 wrong-type", "true or false"},
		{"key without a value", with("exclude:"), "4:3 wrong-type", "give it a value"},
		{"null text", "canary:\n  target_service:\n  steps: [{pct: 1, min_hold_min: 0}]\n", "2:3 wrong-type", "give it a value"},
		{"blank text", "canary:\n  target_service: ' '\n  steps: [{pct: 1, min_hold_min: 0}]\n", "2:19 wrong-type", "not empty"},
		{"escape sequence in a name", "canary:\n  target_service: \"a\\e[31m\"\n  steps: [{pct: 1, min_hold_min: 0}]\n", "2:19 wrong-type", "control characters"},
		{"two lines in a name", "canary:\n  target_service: \"a\\nb\"\n  steps: [{pct: 1, min_hold_min: 0}]\n", "2:19 wrong-type", "one line"},
		{"variable that cannot be", minimal + "versions: {canary: {api_key_env: LLM-KEY}}\n", "4:34 wrong-type", "environment variable"},
		{"no canary", "state: {dir: x}\n", "1:1 missing-key", `"canary"`},
		{"no steps", "canary: {target_service: s}\n", "1:1 missing-key", `"steps"`},
		{"empty steps", "canary: {target_service: s, steps: []}\n", "1:36 out-of-range", "empty"},
		{"empty gate", "canary: {target_service: s, steps: [{pct: 1, min_hold_min: 0, gate: []}]}\n", "1:69 out-of-range", "empty"},
		{"step without hold", "canary: {target_service: s, steps: [{pct: 1}]}\n", "1:37 missing-key", "min_hold_min"},
		{"step without pct", "canary: {target_service: s, steps: [{min_hold_min: 1}]}\n", "1:37 missing-key", `"pct"`},
		{"step that is a number", "canary: {target_service: s, steps: [0.5]}\n", "1:37 wrong-type", "steps: want a mapping"},
		{"pct 0", "canary: {target_service: s, steps: [{pct: 0, min_hold_min: 1}]}\n", "1:43 out-of-range", "above 0"},
		{"pct that falls", "canary: {target_service: s, steps: [{pct: 0.5, min_hold_min: 1}, {pct: 0.5, min_hold_min: 1}, {pct: 1, min_hold_min: 1}]}\n", "1:72 step-order", ""},
		{"ladder that stops", "canary: {target_service: s, steps: [{pct: 0.5, min_hold_min: 1}]}\n", "1:43 last-step", "say why not"},
		{"max_pct that is not reached", "canary: {target_service: s, steps: [{pct: 0.5, min_hold_min: 1}], max_pct: {pct: 0.6, because: x}}\n", "1:43 last-step", "0.6"},
		{"max_pct without a reason", with("max_pct: {pct: 1}"), "4:3 missing-key", "because"},
		{"max_pct as a number", with("max_pct: 0.5"), "4:12 wrong-type", `max_pct: {pct: 0.5, because: "..."}`},
		{"pct between slots", "canary: {target_service: s, hash_ring_slots: 10, steps: [{pct: 0.05, min_hold_min: 1}, {pct: 1, min_hold_min: 1}]}\n", "1:64 off-ring", "0.1"},
		{"broken ring blames no step", "canary: {target_service: s, hash_ring_slots: 0, steps: [{pct: 0.333, min_hold_min: 1}, {pct: 1, min_hold_min: 1}]}\n", "1:46 out-of-range", ""},
		{"limits of a step that are none", "canary: {target_service: s, steps: [{pct: 1, min_hold_min: 1, limits: {cooldown_min: 5}}]}\n", "1:72 unknown-key", "canary.metrics.recovery"},
		{"floor of a step", "canary: {target_service: s, steps: [{pct: 1, min_hold_min: 1, limits: {solve_baseline: 0.1}}]}\n", "1:88 solve-floor", ""},
		{"drop as large as the baseline", with("metrics: {slow_layer: {solve_baseline: 0.1}}"), "4:42 solve-floor", ""},
		{"a broken limit is blamed once", with("metrics: {slow_layer: {solve_baseline: 7, solve_rate_drop_pp: 95}}"), "4:42 out-of-range", ""},
		{"span that reaches less far back", with("metrics: {slow_layer: {slow_window_max_min: 24}}"), "4:47 span-order", "24 is shorter than slow_window_min 25"},
		{"span of a step beyond the plan's reach", "canary: {target_service: s, steps: [{pct: 1, min_hold_min: 1, limits: {slow_window_min: 61}}], metrics: {slow_layer: {slow_window_max_min: 60}}}\n", "1:140 span-order", "slow_window_min 61"},
		{"cusum without its figures", with("metrics: {slow_layer: {judge: cusum}}"), "4:33 judge-unset", "canaryctl calibrate --judge cusum --write"},
		{"cusum without its figures at one of the steps", "canary: {target_service: s, steps: [{pct: 0.5, min_hold_min: 1, limits: {judge: cusum}}, {pct: 1, min_hold_min: 1, limits: {judge: cusum, cusum: {drop_pp: 5, limit: 9}}}]}\n", "1:81 judge-unset", "step 1"},
		{"half a cusum", with("metrics: {slow_layer: {cusum: {limit: 9}}}"), "4:26 missing-key", `"drop_pp"`},
		{"half a cusum of a step", "canary: {target_service: s, steps: [{pct: 1, min_hold_min: 1, limits: {cusum: {limit: 9}}}]}\n", "1:72 judge-unset", `"drop_pp"`},
		{"half a noise", with("metrics: {slow_layer: {noise: {z: 4}}}"), "4:26 missing-key", `"tau"`},
		{"half a noise of a step", "canary: {target_service: s, steps: [{pct: 1, min_hold_min: 1, limits: {noise: {z: 4}}}]}\n", "1:72 judge-unset", `"tau"`},
		{"half a noise of a step over half a noise", "canary: {target_service: s, steps: [{pct: 1, min_hold_min: 1, limits: {noise: {z: 4}}}], metrics: {slow_layer: {noise: {z: 4}}}}\n", "1:113 missing-key", `"tau"`},
		{"a broken figure is not missed as well", "canary: {target_service: s, steps: [{pct: 1, min_hold_min: 1, limits: {noise: {z: 4, tau: 2pp}}}]}\n", "1:91 wrong-type", "tau"},
		{"fewer than no sigmas", with("metrics: {slow_layer: {noise: {z: -1, tau: 0}}}"), "4:37 out-of-range", "0"},
		{"noise of half and more", with("metrics: {slow_layer: {noise: {z: 4, tau: 0.5}}}"), "4:45 out-of-range", "at least 0 and below 0.5"},
		{"noise in percentage points", with("metrics: {slow_layer: {noise: {z: 4, tau: 2}}}"), "4:45 out-of-range", "in percent? then 0.02"},
		{"noise as a number", with("metrics: {slow_layer: {noise: 0.02}}"), "4:33 wrong-type", "z, tau, se, tau_control or tail"},
		{"unknown tail", with("metrics: {slow_layer: {noise: {z: 4, tau: 0, tail: exakt}}}"), "4:54 unknown-word", `did you mean "exact"?`},
		{"unknown judge", with("metrics: {slow_layer: {judge: ewma}}"), "4:33 unknown-word", "window or cusum"},
		{"drop to the ground", with("metrics: {slow_layer: {cusum: {drop_pp: 90, limit: 9}}}"), "4:43 cusum-drop", "0.9 less a drop_pp of 90"},
		{"drop of a step", "canary: {target_service: s, steps: [{pct: 1, min_hold_min: 1, limits: {solve_baseline: 0.2}}], metrics: {slow_layer: {cusum: {drop_pp: 20, limit: 9}}}}\n", "1:88 cusum-drop", ""},
		{"a drop from certainty", with("metrics: {slow_layer: {solve_baseline: 1, judge: cusum, cusum: {drop_pp: 5, limit: 9}}}"), "4:42 cusum-drop", "0.9995"},
		{"a drop with too many digits", with("metrics: {slow_layer: {cusum: {drop_pp: 1.23456789012345677, limit: 9}}}"), "4:43 out-of-range", "drop_pp / 100 has too many digits"},
		{"a slow rate with too many digits", with("metrics: {fast_layer: {p99_slow_ratio_limit: 0.123456789012345677}}"), "4:48 out-of-range", "p99_slow_rate x p99_slow_ratio_limit"},
		{"noise in the fast layer", with("metrics: {fast_layer: {noise: {}}}"), "4:26 unknown-key", "it belongs under canary.metrics.slow_layer"},
		{"unknown key near a known one", with("hash_ring_slot: 100"), "4:3 unknown-key", `did you mean "hash_ring_slots"?`},
		{"unknown key of another place", with("cooldown_min: 100"), "4:3 unknown-key", "it belongs under canary.metrics.recovery"},
		{"unknown top key", minimal + "canery: {}\n", "4:1 unknown-key", `did you mean "canary"?`},
		{"metrics in both places", with("metrics: {}") + "metrics: {}\n", "5:1 two-places", "line 4"},
		{"metrics in both places, the other way round", "metrics: {}\n" + with("metrics: {}"), "5:3 two-places", "line 1"},
		{"unknown signal", with("signals: {violation: {mode: off}}"), "4:13 unknown-key", `did you mean "violations"?`},
		{"unknown mode", with("signals: {cost: {mode: enforced}}"), "4:26 unknown-word", `did you mean "enforce"?`},
		{"unknown day", with("freeze: [{days: [friday]}]"), "4:20 unknown-word", "mon, tue"},
		{"unknown zone", with("freeze: [{zone: Europe/Nowhere}]"), "4:19 unknown-word", "time zone"},
		{"the machine's own zone", with("freeze: [{zone: Local}]"), "4:19 unknown-word", "time zone"},
		{"hour that is none", with("freeze: [{from: 25:00}]"), "4:19 wrong-unit", "HH:MM"},
		{"past midnight", with("freeze: [{to: \"24:01\"}]"), "4:17 wrong-unit", "HH:MM"},
		{"two sources", minimal + "source: {windows: {path: a}, records: {path: b}}\n", "4:1 one-of", "exactly one"},
		{"no source", minimal + "source: {}\n", "4:1 one-of", "windows, records or prometheus"},
		{"source without path", minimal + "source: {windows: {}}\n", "4:10 missing-key", "path"},
		{"path that is a mapping", minimal + "source: {windows: {path: {a: b}}}\n", "4:26 wrong-type", "path"},
		{"prometheus without url", minimal + "source: {prometheus: {queries: {canary: {total: x}}}}\n", "4:10 one-of", "url_env"},
		{"prometheus with a broken url", minimal + "source: {prometheus: {url: [], queries: {canary: {total: x}}}}\n", "4:28 wrong-type", ""},
		{"two channels in one", minimal + "notify: [{slack: {url_env: A}, webhook: {url_env: A}}]\n", "4:10 one-of", ""},
		{"user on both lists", with("exclude: {user_ids: [7]}\ninclude: {user_ids: ['7']}"), "5:24 route-overlap", ""},
		{"all at once, in order", "canary:\n  steps: [{pct: 2, min_hold_min: 1m}]\n  x: 1\n", "1:1 missing-key, 2:17 out-of-range, 2:34 wrong-unit, 3:3 unknown-key", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, list := Parse("canary.yaml", []byte(tt.src))
			if cfg != nil {
				t.Error("a file with errors gave a configuration")
			}
			if got := found(list); got != tt.want {
				t.Errorf("found %s\nwant  %s", got, tt.want)
			}
			text := ""
			for _, f := range list {
				text += f.Render([]byte(tt.src))
			}
			if !strings.Contains(text, tt.says) {
				t.Errorf("nothing says %q:\n%s", tt.says, text)
			}
		})
	}
}

func TestParseAccepts(t *testing.T) {
	tests := []struct {
		name, src string
		check     func(c *Config) bool
	}{
		{"byte order mark", "\ufeff" + minimal, func(c *Config) bool { return c.TargetService == "s" }},
		{"carriage returns", strings.ReplaceAll(minimal, "\n", "\r\n"), func(c *Config) bool { return c.TargetService == "s" }},
		{"JSON", `{"canary": {"target_service": "s", "steps": [{"pct": 1.00, "min_hold_min": 0}]}}`, func(c *Config) bool { return len(c.Steps) == 1 }},
		{"anchor that nobody uses", with("exclude: &x {segments: [a]}"), func(c *Config) bool { return c.Exclude.Segments[0] == "a" }},
		{"one document with its marks", "---\n" + minimal + "...\n", func(c *Config) bool { return c.TargetService == "s" }},
		{"ids as written", with("exclude: {user_ids: [007, 1.10, 1e3, 2024-01-01, no]}"), func(c *Config) bool {
			return strings.Join(c.Exclude.UserIDs, " ") == "007 1.10 1e3 2024-01-01 no"
		}},
		{"half a minute", with("approval_timeout_min: 0.5"), func(c *Config) bool { return c.ApprovalTimeout == 30*time.Second }},
		{"tenth of a minute, exactly", with("approval_timeout_min: 0.1"), func(c *Config) bool { return c.ApprovalTimeout == 6*time.Second }},
		{"whole number as decimal", with("hash_ring_slots: 100.0"), func(c *Config) bool { return c.HashRingSlots == 100 }},
		{"exponent", with("requests_per_min: 6e2"), func(c *Config) bool { return c.RequestsPerMin == release.NewRatio(600, 1) }},
		{"metrics beside canary", minimal + "metrics: {fast_layer: {violation_limit: 7}}\n", func(c *Config) bool { return c.Fast.ViolationLimit == 7 }},
		{"metrics before canary", "metrics: {fast_layer: {violation_limit: 7}}\n" + minimal, func(c *Config) bool { return c.Fast.ViolationLimit == 7 }},
		{"limits of a step over the plan's", "canary:\n  target_service: s\n  steps: [{pct: 1, min_hold_min: 0, limits: {min_transfer_count: 9, slow_window_min: 60}}]\n  metrics: {fast_layer: {violation_limit: 7}}\n", func(c *Config) bool {
			s := c.Steps[0]
			return s.Fast.MinTransferCount == 9 && s.Fast.ViolationLimit == 7 && s.Slow.SlowWindow == time.Hour && c.Slow.SlowWindow == 25*time.Minute
		}},
		{"a step's noise goes over the plan's key by key", "canary:\n  target_service: s\n  steps: [{pct: 0.5, min_hold_min: 0, limits: {noise: {z: 4.4, tail: exact}}}, {pct: 1, min_hold_min: 0}]\n  metrics: {slow_layer: {noise: {z: 4, tau: 0.02, se: 0.001}}}\n", func(c *Config) bool {
			want := Noise{Z: release.MustRatio("4.4"), Tau: release.MustRatio("0.02"), SE: release.MustRatio("0.001"), TauControl: release.NewRatio(0, 1), Tail: breaker.ExactTail}
			return c.Steps[0].Slow.Noise == want && c.Steps[1].Slow.Noise == c.Slow.Noise && c.Slow.Noise.Tail == breaker.NormalTail
		}},
		{"cusum that every step has for itself", "canary: {target_service: s, steps: [{pct: 1, min_hold_min: 0, limits: {cusum: {drop_pp: 5, limit: 9}}}], metrics: {slow_layer: {judge: cusum}}}", func(c *Config) bool {
			return c.Steps[0].Slow.Judge == breaker.CusumJudge && c.Steps[0].Slow.Cusum == Cusum{release.NewRatio(5, 1), release.NewRatio(9, 1)} && c.Slow.Cusum == Cusum{}
		}},
		{"the reach of a span that is its own", "canary: {target_service: s, steps: [{pct: 0.5, min_hold_min: 0, limits: {slow_window_min: 40}}, {pct: 1, min_hold_min: 0, limits: {slow_window_max_min: 90}}]}", func(c *Config) bool {
			return c.Slow.SlowWindowMax == 25*time.Minute && c.Steps[0].Slow.SlowWindowMax == 40*time.Minute && c.Steps[1].Slow.SlowWindowMax == 90*time.Minute
		}},
		{"a baseline of 1 under the window judge", with("metrics: {slow_layer: {solve_baseline: 1, noise: {z: 4, tau: 0}}}"), func(c *Config) bool { return c.Slow.Judge == breaker.WindowJudge }},
		{"gate without time needs no hold", "canary: {target_service: s, steps: [{pct: 1, gate: [approval]}]}", func(c *Config) bool { return c.Steps[0].MinHold == 0 }},
		{"signals", with("signals: {cost: {mode: enforce}, p99: {mode: off}, transfers: {mode: observe, on_fail: hold}, violations: {on_fail: roll_back}}"), func(c *Config) bool {
			return c.Signals[release.Cost].Mode == release.Required && c.Signals[release.P99].Mode == release.Off &&
				c.Signals[release.Transfers].Mode == release.Observe && c.Signals[release.Transfers].OnFail == release.HoldStep &&
				c.Signals[release.Violations].Mode == release.Enforce && c.Signals[release.SolveRate].Mode == release.Enforce
		}},
		{"freeze", with("freeze: [{zone: Europe/Berlin, days: [fri, sun], from: 16:00, to: 08:30}, {}]"), func(c *Config) bool {
			f, all := c.Freezes[0], c.Freezes[1]
			return f.Days[time.Friday] && f.Days[time.Sunday] && !f.Days[time.Saturday] && f.From == 16*time.Hour &&
				f.To == 8*time.Hour+30*time.Minute && f.Zone.String() == "Europe/Berlin" &&
				all.Days[time.Monday] && all.From == 0 && all.To == 24*time.Hour
		}},
		{"ladder that ends early", "canary: {target_service: s, steps: [{pct: 0.5, min_hold_min: 1}], max_pct: {pct: 0.50, because: no room}}", func(c *Config) bool {
			return c.MaxPct.Because == "no room" && c.Steps[0].Weight == release.Weight{Slots: 50, Ring: 100}
		}},
		{"windows of several paths", minimal + "source: {windows: {path: [a, b], span_min: 10}}\n", func(c *Config) bool {
			return c.Source.Kind == "windows" && strings.Join(c.Source.Paths, " ") == "a b" && c.Source.Span == 10*time.Minute
		}},
		{"prometheus", minimal + "source: {prometheus: {url: http://p, queries: {canary: {total: x}}}}\n", func(c *Config) bool {
			return c.Source.URL == "http://p" && c.Source.Queries[release.Canary]["total"] == "x" && c.Source.Span == time.Minute
		}},
		{"nothing optional", minimal, func(c *Config) bool {
			return c.Source == nil && c.Target == nil && c.Versions.Canary == nil && c.RequestsPerMin.IsZero() && c.State == StateStore{Dir: ".canaryctl"} && c.OnComplete == KeepVersions && c.Notify == nil && c.Hooks == nil &&
				c.CostBaselineUSD.IsZero() && c.MaxPct == nil && c.ApprovalTimeout == 24*time.Hour && c.TrafficDimension == "user_id"
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if c := parseOK(t, tt.src); !tt.check(c) {
				t.Errorf("got %+v", c)
			}
		})
	}
}

// TestPublishedFileWithMetricsBeside: the block may move out of canary and the
// plan stays the same.
func TestPublishedFileWithMetricsBeside(t *testing.T) {
	src := string(published(t))
	from, to := strings.Index(src, "  metrics:\n"), strings.Index(src, "versions:\n")
	block := src[from:to]
	var beside strings.Builder
	for line := range strings.Lines(block) {
		beside.WriteString(strings.TrimPrefix(line, "  "))
	}
	moved := src[:from] + beside.String() + src[to:]
	if a, b := parseOK(t, src).Plan(), parseOK(t, moved).Plan(); a.Digest != b.Digest {
		t.Error("the plan changed with the place of metrics")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(published(f))
	f.Add([]byte(minimal))
	for _, s := range []string{"", "a: [", "canary: *x", "? a\n: b", "canary: {steps: [{pct: .nan}]}", "\xff", "a:\r\n b: |\n  x", "!!set {a, b}", "\"\\x", "a: &a [*a]", "api_key: |\n  sk-abcdefghijkl\n", "canary: {target_service: s, steps: [{pct: 1, min_hold_min: 0}], requests_per_min: 0.001}"} {
		f.Add([]byte(s))
	}
	docs, err := filepath.Glob(filepath.Join(docsDir, "*.md"))
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range docs {
		raw, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, m := range docBlocks.FindAllSubmatch(raw, -1) {
			f.Add(m[2])
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		cfg, list := Parse("f", src)
		if (cfg == nil) != list.HasErrors() {
			t.Fatalf("configuration %v with findings %v", cfg, list)
		}
		checkPositions(t, src, list)
		if cfg == nil {
			return
		}
		if p := cfg.Plan(); len(p.Steps) == 0 {
			t.Fatal("a plan without steps")
		}
		cfg.RequestsPerMin = release.Ratio{} // the estimate of healthy trips takes its time
		checkPositions(t, src, cfg.Lint())
	})
}

// checkPositions fails unless every finding lies inside the source.
func checkPositions(t *testing.T, src []byte, list diag.List) {
	t.Helper()
	lines := strings.Split(strings.TrimPrefix(string(src), "\ufeff"), "\n")
	for _, f := range list {
		if f.Line < 1 || f.Line > len(lines) {
			t.Fatalf("finding %v of %d lines", f, len(lines))
		}
		if n := utf8.RuneCountInString(strings.TrimSuffix(lines[f.Line-1], "\r")); f.Col < 1 || f.Col > n+1 || f.EndCol <= f.Col || f.EndCol > n+2 {
			t.Fatalf("finding %v to column %d of a line of %d", f, f.EndCol, n)
		}
		if f.Rule == "" || f.Message == "" || strings.Contains(f.Message, "%!") {
			t.Fatalf("finding %#v", f)
		}
	}
}
