package scenario_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/scenario"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

// good is a scenario that uses a little of everything; tests break one line of it.
const good = `scenario: all-of-it
about: |
  What happens.

  Why that is expected.
start: 2026-03-02T09:00:00+02:00
plan:
  canary:
    target_service: order-service
    steps:
      - { pct: 0.10, min_hold_min: 30, gate: [time, metric] }
      - { pct: 1.00, min_hold_min: 30, gate: [time, metric] }
feed:
  canary_per_min: 26
  stable_per_min: 234
  mode: drawn
  seed: 7
  minutes: 120
  base:
    solve_rate: 0.9
    violations: 0
    transfer_rate: 0.02
    p99_ms: 300
    cost_usd: 0.004
  faults:
    - { fault: diurnal, traffic: 0.2, solve_pp: 1 }
    - { fault: violation_burst, from: 21, minutes: 2, count: 2 }
    - { fault: flapping, of: tail_latency, factor: 4, from: 50, every: 10, for: 2 }
approve: true
expect:
  - transition: { minute: 22, within: 3, from: CLOSED, to: OPEN, signal: violations }
  - transitions:
      - { between: [21, 25], to: OPEN, escalated: false }
  - { decision: start, step: 1, minute: 0 }
  - exposure_below: 100
  - never: [complete, lock]
  - trips_at_least: 1
  - trips_below: 5
  - final: { state: OPEN, locked: true, pct: 0 }
  - runs: { of: 20, false_trips_per_week_below: 0.5 }
`

func parse(t *testing.T, src string) *scenario.Scenario {
	t.Helper()
	sc, list := scenario.Parse("s.yaml", []byte(src))
	for _, f := range list {
		t.Error(f.Render([]byte(src)))
	}
	if sc == nil {
		t.FailNow()
	}
	return sc
}

func TestParseReadsEverything(t *testing.T) {
	for name, src := range map[string]string{
		"as written":              good,
		"with CRLF":               strings.ReplaceAll(good, "\n", "\r\n"),
		"with a byte mark":        "\xef\xbb\xbf" + good,
		"without last line break": strings.TrimSuffix(good, "\n"),
	} {
		t.Run(name, func(t *testing.T) {
			sc := parse(t, src)
			if sc.File != "s.yaml" || sc.Name != "all-of-it" || sc.About != "What happens.\n\nWhy that is expected." {
				t.Errorf("file %q, name %q, about %q", sc.File, sc.Name, sc.About)
			}
			if !sc.Start.Equal(time.Date(2026, 3, 2, 7, 0, 0, 0, time.UTC)) || sc.Start.Location() != time.UTC {
				t.Errorf("starts at %s", sc.Start)
			}
			if sc.Minutes != 120 || !sc.Drawn || sc.Closed || sc.Seed != 7 || !sc.Approve || sc.Files != nil {
				t.Errorf("got %+v", sc)
			}
			if sc.Config == nil || len(sc.Config.Steps) != 2 || sc.Config.TargetService != "order-service" {
				t.Errorf("plan %+v", sc.Config)
			}
			o := sc.Options()
			if sc.FaultFrom == nil || *sc.FaultFrom != 21 || o.BadFrom == nil || *o.BadFrom != 21 || !o.Approve {
				t.Errorf("fault from %v, options %+v", sc.FaultFrom, o)
			}
			if one, runs := sc.Expectations(); one != 8 || runs != 1 || sc.Runs() != 20 {
				t.Errorf("%d and %d expectations, %d runs", one, runs, sc.Runs())
			}
		})
	}
}

func TestFeedHasTheFiguresOfTheBase(t *testing.T) {
	sc := parse(t, strings.NewReplacer("  mode: drawn\n  seed: 7\n", "", "  - runs: { of: 20, false_trips_per_week_below: 0.5 }\n", "").Replace(good))
	feed := sc.Feed(sc.Config.Plan(), 1)
	if !feed.Start().Equal(sc.Start) || feed.Span() != time.Minute {
		t.Errorf("starts at %s, span %s", feed.Start(), feed.Span())
	}
	n := 0
	for feed.More() {
		tick, err := feed.Next(sc.Config.Plan().Steps[0].Weight)
		if err != nil {
			t.Fatal(err)
		}
		violations := int64(0)
		if n == 21 || n == 22 {
			violations = 2
		}
		if tick.Canary[0].Violations != violations {
			t.Errorf("minute %d: %d violations, want %d", n, tick.Canary[0].Violations, violations)
		}
		if tick.Canary[0].CostMean != 0.004 || tick.Canary[0].Cost != 1 {
			t.Errorf("minute %d: cost %g, mean %g", n, tick.Canary[0].Cost, tick.Canary[0].CostMean)
		}
		n++
	}
	if n != 120 {
		t.Errorf("%d ticks, want 120", n)
	}
}

// lineOf returns the text of a finding's place, to show that it points there.
func lineOf(src string, line int) string { return strings.Split(src, "\n")[line-1] }

// wrong are mistakes in a good scenario, each with its finding.
var wrong = []struct {
	name     string
	old, new string
	rule     string
	at       string // what stands at the finding's place
	message  string
	hint     string
}{
	{"unknown key", "about: |", "abuot: |", "unknown-key", "abuot: |", `unknown key "abuot" in the scenario`, `did you mean "about"?`},
	{"unknown key in feed", "  minutes: 120", "  minuts: 120", "unknown-key", "minuts: 120", `unknown key "minuts" in feed`, `did you mean "minutes"?`},
	{"unknown key in base", "p99_ms: 300", "p99-ms: 300", "unknown-key", "p99-ms: 300", `unknown key "p99-ms" in base`, `did you mean "p99_ms"?`},
	{"unknown fault", "violation_burst", "violations_burst", "unknown-word", "violations_burst, from", `"violations_burst" is not known`, `did you mean "violation_burst"?`},
	{"key of another fault", "minutes: 2, count: 2", "minutes: 2, ms: 2", "unknown-key", "ms: 2", `violation_burst has no key "ms"`, "its keys are fault, from, minutes, arm, rate, count, factor"},
	{"a fault without how much", "minutes: 2, count: 2", "minutes: 2", "one-of", "{ fault: violation_burst", "violation_burst has 0 of the keys rate, count, factor", ""},
	{"a fault with two of them", "count: 2", "count: 2, rate: 0.1", "one-of", "{ fault: violation_burst", "has 2 of the keys", ""},
	{"duplicate key", "approve: true", "approve: true\napprove: false", "duplicate-key", "approve: false", `key "approve" stands twice`, ""},
	{"NaN", "solve_rate: 0.9", "solve_rate: .nan", "not-finite", ".nan", "solve_rate: .nan is not a finite number", ""},
	{"infinity", "solve_rate: 0.9", "solve_rate: .inf", "not-finite", ".inf", "is not a finite number", ""},
	{"negative", "p99_ms: 300", "p99_ms: -3", "out-of-range", "-3", "p99_ms: -3 is negative", ""},
	{"hexadecimal", "p99_ms: 300", "p99_ms: 0x10", "wrong-type", "0x10", "want a number", "decimal digits"},
	{"octal", "p99_ms: 300", "p99_ms: 0300", "wrong-type", "0300", "want a number", ""},
	{"underscore", "p99_ms: 300", "p99_ms: 3_00", "wrong-type", "3_00", "want a number", ""},
	{"text for a number", "p99_ms: 300", "p99_ms: fast", "wrong-type", "fast", `p99_ms: want a number, not "fast"`, ""},
	{"secret for a number", "p99_ms: 300", "p99_ms: sk-abcdefgh12345678", "wrong-type", "sk-abcdefgh12345678", `p99_ms: want a number, not "*******************"`, ""},
	{"quoted number", "p99_ms: 300", `p99_ms: "300"`, "wrong-type", `"300"`, "want a number", ""},
	{"rate above 1", "solve_rate: 0.9", "solve_rate: 90", "out-of-range", "90", "solve_rate: 90 is not between 0 and 1", ""},
	{"fraction of a minute", "minutes: 120", "minutes: 1.5", "wrong-type", "1.5", "want a whole number, not 1.5", ""},
	{"no minutes", "minutes: 120", "minutes: 0", "out-of-range", "0", "minutes: 0 is not between 1", ""},
	{"nothing for a value", "minutes: 120", "minutes:", "wrong-type", "minutes:", "want a number, not nothing", ""},
	{"a rate beside its count", "solve_rate: 0.9", "solve_rate: 0.9\n    solved: 7", "one-of", "7", "solved stands beside solve_rate", ""},
	{"two kinds of traffic", "stable_per_min: 234", "total_per_min: 260", "one-of", "feed:", "feed has 2 of the keys canary_per_min, total_per_min", ""},
	{"stable traffic in a closed loop", "canary_per_min: 26", "total_per_min: 26", "one-of", "234", "with total_per_min stable gets what the canary does not", ""},
	{"a fault on a figure that the base lacks", "    p99_ms: 300\n", "", "bad-feed", "{ fault: flapping", "the base has no latency for it to change", ""},
	{"a seed without draws", "mode: drawn", "mode: exact", "one-of", "7", "a feed in mode exact draws nothing", ""},
	{"unknown mode", "mode: drawn", "mode: draw", "unknown-word", "draw", "", `did you mean "drawn"?`},
	{"fault after the end", "from: 21", "from: 121", "out-of-range", "121", "the feed ends before minute 121", ""},
	{"flapping without a pause", "every: 10, for: 2", "every: 10, for: 10", "out-of-range", "10 }", "is no flapping", ""},
	{"flapping without its fault", "of: tail_latency, factor: 4, ", "", "missing-key", "{ fault: flapping", `flapping needs the key "of"`, ""},
	{"diurnal without a swing", "traffic: 0.2, solve_pp: 1", "arm: both", "missing-key", "{ fault: diurnal", `diurnal needs the key "traffic"`, "solve_pp"},
	{"start without a zone", "2026-03-02T09:00:00+02:00", "2026-03-02T09:00:00", "wrong-type", "2026-03-02T09:00:00", "no time of RFC 3339", "02:17:00Z"},
	{"alias", "approve: true", "approve: *yes", "yaml-syntax", "", "", ""},
	{"tag", "approve: true", "approve: !!str true", "yaml-tag", "!!str true", "values have the type of their key", ""},
	{"anchor and alias", "approve: true", "approve: &x true\nfault_from: *x", "yaml-alias", "*x", "aliases are not followed", ""},
	{"yes for true", "approve: true", "approve: yes", "wrong-type", "yes", "want true or false", ""},
	{"tab", "approve: true", "\tapprove: true", "yaml-syntax", "", "", ""},
	{"second document", "approve: true", "approve: true\n---\nscenario: b", "yaml-document", "scenario: b", "a second document", "a file of its own"},
	{"error in the plan", "pct: 0.10", "pct: 0.105", "off-ring", "0.105", "", ""},
	{"unknown key in the plan", "target_service: order-service", "target_servise: order-service", "unknown-key", "target_servise", "", "target_service"},
	{"plan of the wrong form", "plan:\n  canary:", "plan:\n  canari:", "unknown-key", "canari:", "", "canary"},
	{"unknown state", "to: OPEN, signal", "to: OPENED, signal", "unknown-word", "OPENED", "", `did you mean "OPEN"?`},
	{"unknown signal", "signal: violations", "signal: violation", "unknown-word", "violation }", "", `did you mean "violations"?`},
	{"transition without to", "from: CLOSED, to: OPEN, signal", "from: CLOSED, signal", "missing-key", "transition:", `the transition needs the key "to"`, ""},
	{"within without minute", "minute: 22, within: 3", "within: 3", "missing-key", "3,", "within says nothing without minute", ""},
	{"between beside minute", "between: [21, 25]", "between: [21, 25], minute: 3", "one-of", "[21, 25]", "between stands beside minute", ""},
	{"between backwards", "[21, 25]", "[25, 21]", "out-of-range", "[25, 21]", "the first not after the last", ""},
	{"between one", "[21, 25]", "[25]", "out-of-range", "[25]", "want two minutes", ""},
	{"a minute outside its transition", "- exposure_below: 100", "- { exposure_below: 100, minute: 3 }", "unknown-key", "minute: 3", `exposure_below has no key "minute"`, ""},
	{"two expectations in one", "- exposure_below: 100", "- { exposure_below: 100, trips_below: 3 }", "one-of", "{ exposure_below", "has 2 of the keys", ""},
	{"an expectation of nothing", "- exposure_below: 100", "- {}", "one-of", "{}", "has 0 of the keys", ""},
	{"unknown decision", "decision: start", "decision: begin", "unknown-word", "begin", "", "it is one of start, advance"},
	{"a step that the plan does not have", "decision: start, step: 1", "decision: start, step: 3", "out-of-range", "3", "the plan has 2 steps", ""},
	{"never of a word that is none", "[complete, lock]", "[complete, block]", "unknown-word", "block", "", `did you mean "lock"?`},
	{"never of nothing", "[complete, lock]", "[]", "out-of-range", "[]", "never is empty", ""},
	{"final of nothing", "{ state: OPEN, locked: true, pct: 0 }", "{}", "missing-key", "{}", "final says nothing", ""},
	{"runs without a number", "of: 20, ", "", "missing-key", "runs:", `runs needs the key "of"`, ""},
	{"runs of two kinds", "of: 20,", "of: 20, trips_at_least: 1,", "one-of", "runs:", "has 2 of the keys", ""},
	{"runs of an exact feed", "mode: drawn\n  seed: 7", "mode: exact", "one-of", "{ of: 20", "a feed in mode exact is the same in every run", "mode: drawn"},
	{"a latency of nothing", "p99_ms: 300", "p99_ms: 0", "out-of-range", "0", "p99_ms: 0 is no figure", "leave it out"},
	{"a cache of nothing", "p99_ms: 300", "p99_ms: 300\n    kv_cache: 0", "out-of-range", "0", "kv_cache: 0 is no figure", "leave it out"},
	{"a share of streams without streams", "p99_ms: 300", "p99_ms: 300\n    streams_share: 0.5", "missing-key", "0.5", "streams_share says nothing without", ""},
	{"no streams at all", "p99_ms: 300", "p99_ms: 300\n    itl_ms: 20\n    streams_share: 0", "out-of-range", "0", "a service without streams", ""},
	{"refusals twice", "p99_ms: 300", "p99_ms: 300\n    refusals: 1\n    refusal_rate: 0.1", "one-of", "1", "refusals stands beside refusal_rate", ""},
	{"more broken streams than streams", "p99_ms: 300", "p99_ms: 300\n    aborts: 14\n    streams_share: 0.5", "bad-feed", "feed:", "14 broken streams a minute of 13", ""},
	{"more violations than requests", "violations: 0", "violations: 27", "bad-feed", "feed:", "27 violations a minute of 26", ""},
	{"a name that steers the terminal", "scenario: all-of-it", `scenario: "all\e[31m"`, "wrong-type", `"all`, "control characters", ""},
	{"a canary.yaml", good, "canary:\n  target_service: shop\n", "unknown-key", "canary:", "this is a canary.yaml, no scenario", "-c"},
	{"fault_from after the end", "approve: true", "approve: true\nfault_from: 500", "out-of-range", "500", "the feed ends before minute 500", ""},
}

func TestFindingsPointAtWhatIsWrong(t *testing.T) {
	for _, tc := range wrong {
		t.Run(tc.name, func(t *testing.T) {
			if !strings.Contains(good, tc.old) {
				t.Fatalf("no %q to replace", tc.old)
			}
			src := strings.Replace(good, tc.old, tc.new, 1)
			sc, list := scenario.Parse("s.yaml", []byte(src))
			if sc != nil {
				t.Error("a scenario beside errors")
			}
			for _, f := range list {
				at := string([]rune(lineOf(src, f.Line))[f.Col-1:])
				if f.Rule == tc.rule && strings.HasPrefix(at, tc.at) && strings.Contains(f.Message, tc.message) && strings.Contains(f.Hint, tc.hint) {
					if f.EndCol <= f.Col || f.File != "s.yaml" {
						t.Errorf("place %+v", f)
					}
					return
				}
			}
			t.Errorf("want [%s] %q at %q with hint %q, got:", tc.rule, tc.message, tc.at, tc.hint)
			for _, f := range list {
				t.Log(f.Render([]byte(src)))
			}
		})
	}
}

func TestOneMistakeIsOneFinding(t *testing.T) {
	for _, tc := range []struct{ old, new string }{
		{"pct: 0.10", "pct: 0.105"}, {"abou", "abuo"}, {"minutes: 120", "minutes: x"}, {"to: OPEN, signal", "to: OPEM, signal"},
		{"violation_burst", "violation_brust"}, {"canary_per_min: 26", "canary_per_min: lots"},
	} {
		src := strings.Replace(good, tc.old, tc.new, 1)
		_, list := scenario.Parse("s.yaml", []byte(src))
		if tc.old == "abou" { // the key is unknown
			if len(list) != 1 {
				t.Errorf("%q gives %d findings: %v", tc.new, len(list), list)
			}
			continue
		}
		if len(list) != 1 {
			t.Errorf("%q gives %d findings: %v", tc.new, len(list), list)
		}
	}
}

func TestAllFindingsAtOnceInOrder(t *testing.T) {
	src := strings.NewReplacer("pct: 0.10", "pct: 0.105", "minutes: 120", "minuts: 120", "to: OPEN, signal", "to: OPEM, signal").Replace(good)
	_, list := scenario.Parse("s.yaml", []byte(src))
	if len(list) < 3 {
		t.Fatalf("%d findings, want at least 3: %v", len(list), list)
	}
	for i := range list[1:] {
		if list[i].Line > list[i+1].Line {
			t.Errorf("out of order: %v", list)
		}
	}
}

func TestWhatIsNoScenarioIsRefused(t *testing.T) {
	for name, tc := range map[string]struct{ src, rule string }{
		"empty":         {"", "yaml-document"},
		"only comments": {"# nothing\n", "yaml-document"},
		"null":          {"null\n", "yaml-document"},
		"a list":        {"- a\n", "wrong-type"},
		"a word":        {"hello\n", "wrong-type"},
		"flow style":    {"{scenario: a}\n", "wrong-type"},
		"latin-1":       {"scenario: caf\xe9\n", "yaml-encoding"},
		"a zero byte":   {"scenario: a\x00\n", "yaml-encoding"},
		"unclosed":      {"scenario: [a\n", "yaml-syntax"},
		"too long":      {"# " + strings.Repeat("x", 1<<20) + "\n", "yaml-document"},
	} {
		sc, list := scenario.Parse("s.yaml", []byte(tc.src))
		if sc != nil || len(list) != 1 || list[0].Rule != tc.rule {
			t.Errorf("%s: got %v, want one [%s]", name, list, tc.rule)
		}
	}
}

// A plan in flow style, or with its keys on the same line, keeps its places.
func TestPlanInFlowStyleKeepsItsPlaces(t *testing.T) {
	src := "scenario: a\nabout: b\nplan: {canary: {target_service: s, steps: [{pct: 1.00, min_hold_min: x}]}}\nfeed: {canary_per_min: 1, minutes: 1, base: {}}\nexpect: [{never: OPEN}]\n"
	_, list := scenario.Parse("s.yaml", []byte(src))
	if len(list) != 1 || list[0].Line != 3 || !strings.HasPrefix(lineOf(src, 3)[list[0].Col-1:], "x}") {
		t.Errorf("got %v", list)
	}
	parse(t, strings.Replace(src, "min_hold_min: x", "min_hold_min: 5", 1))
}

func TestScenarioWithoutAPlanNeedsAnothers(t *testing.T) {
	from, to := strings.Index(good, "plan:"), strings.Index(good, "feed:")
	if sc := parse(t, good[:from]+good[to:]); sc.Config != nil {
		t.Error("a plan out of nothing")
	}
}

func TestRecordedFilesAreNamedNotRead(t *testing.T) {
	const src = `scenario: last-night
about: What the night was.
feed: { files: [windows/a.jsonl, ./b.csv.gz] }
fault_from: 12
expect:
  - exposure_below: 50
`
	sc := parse(t, src)
	if diff := cmp.Diff([]string{"windows/a.jsonl", "b.csv.gz"}, sc.Files); diff != "" {
		t.Error(diff)
	}
	if *sc.FaultFrom != 12 || sc.Drawn || sc.Minutes != 0 {
		t.Errorf("got %+v", sc)
	}
	for old, rule := range map[string]string{
		"files: [windows/a.jsonl, ./b.csv.gz]": "",
		"files: []":                            "out-of-range",
		"files: [3]":                           "wrong-type",
		"files: a.jsonl":                       "wrong-type",
		"files: [a.jsonl], minutes: 4":         "one-of",
		"files: [a.jsonl] }\nstart: 2026-03-02T09:00:00Z\napprove: true #": "one-of",
	} {
		_, list := scenario.Parse("s.yaml", []byte(strings.Replace(src, "files: [windows/a.jsonl, ./b.csv.gz]", old, 1)))
		switch {
		case rule == "" && len(list) > 0, rule != "" && (len(list) == 0 || list[0].Rule != rule):
			t.Errorf("%s: got %v, want [%s]", old, list, rule)
		}
	}
}

// Faults that are not the canary's own do not make it bad.
func TestFaultFromIsTheFirstHarmOfTheCanary(t *testing.T) {
	for faults, want := range map[string]int{
		"[]":                               -1,
		"[{fault: diurnal, traffic: 0.1}]": -1,
		"[{fault: label_lag, lag: 5}]":     -1,
		"[{fault: traffic_drop, from: 3}]": -1,
		"[{fault: solve_drop, from: 3, pp: 5, arm: stable}]":                                  -1,
		"[{fault: solve_drop, from: 3, pp: 5, arm: both}]":                                    3,
		"[{fault: solve_drop, from: 9, pp: 5}, {fault: slow_decay, from: 4, pp_per_hour: 1}]": 4,
		"[{fault: flapping, of: traffic_drop, from: 3, every: 5}]":                            -1,
		"[{fault: flapping, of: solve_drop, pp: 5, from: 3, every: 5}]":                       3,
	} {
		sc := parse(t, "scenario: a\nabout: b\nfeed: {canary_per_min: 5, stable_per_min: 5, minutes: 60, base: {solve_rate: 0.9}, faults: "+faults+"}\nexpect: [{never: OPEN}]\n")
		got := -1
		if sc.FaultFrom != nil {
			got = *sc.FaultFrom
		}
		if got != want {
			t.Errorf("%s: fault from %d, want %d", faults, got, want)
		}
	}
}

// Every fault by name reaches the feed.
func TestEveryFaultOfTheTableCanBeWritten(t *testing.T) {
	for _, fault := range []string{
		"violation_burst, rate: 0.1", "violation_burst, count: 3", "violation_burst, factor: 20", "hand_off_surge, count: 4",
		"cost_doubling", "cost_doubling, factor: 3", "tail_latency, factor: 4", "tail_latency, ms: 1200", "slow_decay, pp_per_hour: 2",
		"solve_drop, rate: 0.7", "solve_drop, count: 6", "solve_drop, pp: 12", "traffic_drop", "traffic_drop, factor: 0.5, arm: canary",
		"label_lag, lag: 30", "diurnal, traffic: 0.5", "diurnal, solve_pp: 2, peak_hour: 20", "flapping, of: cost_doubling, every: 10",
		"flapping, of: solve_drop, pp: 20, every: 10, for: 3, arm: both",
	} {
		with := "scenario: a\nabout: b\nfeed: {canary_per_min: 100, stable_per_min: 100, minutes: 60, base: {solve_rate: 0.9, violation_rate: 0.01, transfer_rate: 0.02, p99_ms: 300, cost_usd: 1}, faults: [{fault: " + fault + "}]}\nexpect: [{never: OPEN}]\n"
		a, b := parse(t, with), parse(t, strings.Replace(with, "{fault: "+fault+"}", "", 1))
		if cmp.Equal(windows(t, a), windows(t, b)) {
			t.Errorf("%s changes nothing", fault)
		}
	}
}

func windows(t *testing.T, sc *scenario.Scenario) (ticks []simulate.Tick) {
	t.Helper()
	feed := sc.Feed(nil, 1)
	for feed.More() {
		tick, err := feed.Next(weightOf(10))
		if err != nil {
			t.Fatal(err)
		}
		copied := simulate.Tick{T: tick.T}
		copied.Canary, copied.Stable = append(copied.Canary, tick.Canary...), append(copied.Stable, tick.Stable...)
		ticks = append(ticks, copied)
	}
	return ticks
}

// FuzzParse: whatever the bytes, findings point inside the file and a
// scenario without errors can be replayed.
func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("scenario: a\nabout: b\nfeed: {canary_per_min: 1, minutes: 1, base: {}}\nexpect: [{never: OPEN}]\n"))
	f.Add([]byte("plan: {canary: {}}\nplan: *a\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		sc, list := scenario.Parse("s.yaml", src)
		lines := strings.Split(string(src), "\n")
		for _, x := range list {
			if x.Line < 1 || x.Line > len(lines) || x.Col < 1 || x.EndCol <= x.Col || x.Rule == "" || x.Message == "" {
				t.Fatalf("finding %+v of %d lines", x, len(lines))
			}
		}
		if (sc == nil) != list.HasErrors() {
			t.Fatalf("scenario %v beside %v", sc, list)
		}
		if sc == nil || sc.Files != nil {
			return
		}
		feed := sc.Feed(nil, 1)
		for range min(sc.Minutes, 5) {
			if _, err := feed.Next(weightOf(1)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
