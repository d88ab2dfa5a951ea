package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/diag"
	"github.com/canaryctl/canaryctl/internal/release"
)

// twoScenes is the service of a published incident: summaries are slow, dear
// and risky, answers are not.
const twoScenes = `canary:
  target_service: monolith
  steps:
    - { pct: 0.20, min_hold_min: 60 }
    - { pct: 1.00, min_hold_min: 240 }
  requests_per_min: 15000
  include: { user_ids: [staff-1] }
  metrics:
    fast_layer: { violation_limit: 5, p99_baseline_ms: 900 }
    recovery: { cooldown_min: 10 }
scenes:
  summaries:
    steps:
      - { pct: 0.05, min_hold_min: 120 }
      - { pct: 0.50, min_hold_min: 720 }
    max_pct: { pct: 0.50, because: the other half stays on stable for a month }
    requests_per_min: 12000
    metrics: { fast_layer: { p99_baseline_ms: 8000 } }
  answers: {}
source: { records: { path: "log/*.jsonl" } }
target: { file: { path: weights.json } }
`

func scene(t *testing.T, src, name string) *Config {
	t.Helper()
	cfg := parseOK(t, src).OfScene(name)
	if cfg == nil {
		t.Fatalf("no scene %s", name)
	}
	return cfg
}

func TestASceneHasItsKeysOverCanarys(t *testing.T) {
	summaries, answers := scene(t, twoScenes, "summaries"), scene(t, twoScenes, "answers")
	if got := len(summaries.Steps); got != 2 || summaries.Steps[0].Pct.String() != "0.05" || summaries.Steps[1].MinHold != 12*time.Hour {
		t.Errorf("the ladder of summaries is %+v", summaries.Steps)
	}
	if len(answers.Steps) != 2 || answers.Steps[0].Pct.String() != "0.2" {
		t.Errorf("answers have canary's ladder, and it is %+v", answers.Steps)
	}
	if f := summaries.Fast; f.P99BaselineMS.String() != "8000" || f.ViolationLimit != 5 {
		t.Errorf("metrics are laid over key by key: %+v", f)
	}
	if answers.Fast.P99BaselineMS.String() != "900" || answers.Recovery.Cooldown != 10*time.Minute || summaries.Recovery.Cooldown != 10*time.Minute {
		t.Error("what a scene leaves out is canary's")
	}
	if !slices.Equal(answers.Include, []string{"staff-1"}) || summaries.MaxPct == nil || answers.MaxPct != nil {
		t.Errorf("include %v, max_pct %v and %v", answers.Include, summaries.MaxPct, answers.MaxPct)
	}
	if summaries.RequestsPerMin.String() != "12000" || !answers.RequestsPerMin.IsZero() {
		t.Errorf("the service's whole traffic is no scene's: %v and %v", summaries.RequestsPerMin, answers.RequestsPerMin)
	}
	if summaries.ServiceName() != "monolith/summaries" || summaries.Plan().Service != "monolith/summaries" {
		t.Error("a scene's release is called SERVICE/SCENE")
	}
}

func TestScenesMayStandInCanaryToo(t *testing.T) {
	inside := with("scenes: {a: {}, b: {metrics: {fast_layer: {violation_limit: 9}}}}")
	cfg := parseOK(t, inside)
	if !slices.Equal(cfg.SceneNames(), []string{"a", "b"}) || cfg.OfScene("b").Fast.ViolationLimit != 9 || cfg.OfScene("a").Fast.ViolationLimit != 3 {
		t.Errorf("%+v", cfg.Scenes)
	}
	if cfg.OfScene("c") != nil {
		t.Error("there is no scene c")
	}
}

// TestALadderInEverySceneIsEnough: canary.steps may be left out then.
func TestALadderInEverySceneIsEnough(t *testing.T) {
	cfg := parseOK(t, "canary: {target_service: s}\nscenes: {a: {steps: [{pct: 1, min_hold_min: 0}]}, b: {steps: [{pct: 0.5, min_hold_min: 0}, {pct: 1, min_hold_min: 0}]}}\n")
	if len(cfg.Steps) != 0 || len(cfg.OfScene("a").Steps) != 1 || len(cfg.OfScene("b").Steps) != 2 {
		t.Errorf("%+v", cfg)
	}
	_, list := Parse("c.yaml", []byte("canary: {target_service: s}\nscenes:\n  a: {steps: [{pct: 1, min_hold_min: 0}]}\n  b: {}\n"))
	if len(list) != 1 || list[0].Line != 4 || list[0].Col != 3 || list[0].Rule != ruleMissingKey {
		t.Errorf("want one finding at the scene b: %v", list)
	}
}

// TestDigestsOfScenes: each scene runs under rules of its own, and no other's
// digest; a file without scenes keeps the digest that it always had.
func TestDigestsOfScenes(t *testing.T) {
	src := with("scenes: {a: {}, b: {}}")
	plain, a, b := parseOK(t, minimal).Plan(), scene(t, src, "a").Plan(), scene(t, src, "b").Plan()
	if a.Digest == b.Digest || a.Digest == plain.Digest {
		t.Error("two scenes of the same limits are two configurations")
	}
	if a.Candidate != b.Candidate || a.Candidate != plain.Candidate {
		t.Error("the candidate is one")
	}
	other := strings.Replace(src, "b: {}", "b: {metrics: {fast_layer: {violation_limit: 9}}}", 1)
	if scene(t, other, "a").Plan().Digest != a.Digest {
		t.Error("what changes in b is no change of a")
	}
	if scene(t, other, "b").Plan().Digest == b.Digest {
		t.Error("a changed limit of b is another digest of b")
	}
}

// TestASceneIsJournaledAsAFileOfItsOwn: what the journal keeps parses to the
// same rules, target and source, and holds no secret.
func TestASceneIsJournaledAsAFileOfItsOwn(t *testing.T) {
	for name, src := range map[string]string{
		"plain":       twoScenes,
		"placeholder": strings.NewReplacer("weights.json", "\"w/{scene}.json\"", "log/*", "log/{scene}/*").Replace(twoScenes),
		"secrets": twoScenes + "versions: {stable: {model_id: a, api_key: sk-abcdefghijkl}, canary: {model_id: b, api_key: sk-mnopqrstuvwx}}\n" +
			"notify: [{slack: {url: \"https://hooks.slack.com/services/T0/B0/verysecret\"}}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			for _, s := range parseOK(t, src).Scenes {
				text := string(s.Config.Masked())
				again, list := Parse("journal", []byte(text))
				if again == nil {
					t.Fatalf("%v\n%s", list, text)
				}
				if again.Plan().Digest != s.Config.Plan().Digest || again.ServiceName() != s.Config.ServiceName() {
					t.Errorf("%s has other rules", text)
				}
				if *again.Target.File != *s.Config.Target.File || again.Source.Scene != s.Config.Source.Scene || again.Source.Paths[0] != s.Config.Source.Paths[0] {
					t.Errorf("target %+v source %+v, want %+v %+v", again.Target.File, again.Source, s.Config.Target.File, s.Config.Source)
				}
				if strings.Contains(text, "abcdefghijkl") || strings.Contains(text, "mnopqrstuvwx") || strings.Contains(text, "verysecret") {
					t.Error(text)
				}
				if string(again.Masked()) == "" || string(s.Config.Masked()) != text {
					t.Error("the text is not the same at every call")
				}
			}
		})
	}
}

func TestWhereASceneIsReadAndWritten(t *testing.T) {
	own := scene(t, twoScenes, "summaries")
	if f := own.Target.File; f.Path != "weights.json" || f.Canary != "scenes.summaries.versions.canary.weight" || f.Stable != "scenes.summaries.versions.stable.weight" {
		t.Errorf("without {scene} a file holds every scene under its name: %+v", f)
	}
	if own.Source.Scene != "summaries" {
		t.Errorf("records of one log are told apart by their scene: %+v", own.Source)
	}
	filled := scene(t, strings.NewReplacer("weights.json", "\"w/{scene}.json\"", "log/*", "log/{scene}/*").Replace(twoScenes), "answers")
	if f := filled.Target.File; f.Path != "w/answers.json" || f.Canary != canaryAt {
		t.Errorf("a file of its own has the usual form: %+v", f)
	}
	if filled.Source.Scene != "" || filled.Source.Paths[0] != "log/answers/*.jsonl" {
		t.Errorf("a log of its own need not name the scene: %+v", filled.Source)
	}
	prom := scene(t, strings.Replace(twoScenes, `records: { path: "log/*.jsonl" }`,
		`prometheus: {url: http://p, preset: gen_ai, matchers: {canary: 'version="c", scene="{scene}"', stable: 'version="s", scene="{scene}"'}, queries: {canary: {solved: 'sum(solved{scene="{scene}"})'}}}`, 1), "answers")
	if got := prom.Source.Matchers[release.Canary]; got != `version="c", scene="answers"` {
		t.Error(got)
	}
	if got := prom.Source.Queries[release.Canary]["solved"]; got != `sum(solved{scene="answers"})` {
		t.Error(got)
	}
	hooked := scene(t, twoScenes+"hooks: {on_rollback: [{exec: {command: [purge, \"{scene}\"]}}]}\n", "answers")
	if got := hooked.Hooks[0].Command; !slices.Equal(got, []string{"purge", "answers"}) {
		t.Error(got)
	}
}

// TestOneFileForOneScene: `scene` alone makes a file a scene's, where each has
// a file of its own.
func TestOneFileForOneScene(t *testing.T) {
	cfg := parseOK(t, with("scene: answers")+"source: {records: {path: log}}\ntarget: {file: {path: \"{scene}.json\"}}\n")
	if cfg.ServiceName() != "s/answers" || cfg.Source.Scene != "answers" || cfg.Target.File.Path != "answers.json" || cfg.OfScene("answers") != cfg {
		t.Errorf("%+v", cfg)
	}
	if plain := parseOK(t, minimal); plain.Plan().Digest == cfg.Plan().Digest {
		t.Error("a scene's rules are not the whole service's")
	}
}

func TestFindingsOfScenes(t *testing.T) {
	scenes := func(s string) string { return minimal + "scenes:\n" + s }
	for _, tc := range []struct {
		name, src string
		rule      string
		line, col int
		message   string // part of it
	}{
		{"a name that is no word", scenes("  Sum Maries: {}\n"), ruleUnknownKey, 5, 3, "small letters"},
		{"an unknown key in a scene", scenes("  a: {violation_limit: 3}\n"), ruleUnknownKey, 5, 7, `unknown key "violation_limit"`},
		{"what all scenes share", scenes("  a: {hash_ring_slots: 10}\n"), ruleUnknownKey, 5, 7, "hash_ring_slots"},
		{"a scene that is nothing", scenes("  a:\n"), ruleWrongType, 5, 3, "a: want a mapping"},
		{"a wrong value in a scene", scenes("  a: {metrics: {fast_layer: {violation_limit: 0}}}\n"), ruleOutOfRange, 5, 47, "violation_limit"},
		{"a ladder that does not rise", scenes("  a: {steps: [{pct: 0.5, min_hold_min: 0}, {pct: 0.1, min_hold_min: 0}, {pct: 1, min_hold_min: 0}]}\n"), ruleStepOrder, 5, 50, "scene a: pct 0.1"},
		{"a step without its time", scenes("  a: {steps: [{pct: 1}]}\n"), ruleMissingKey, 5, 15, "min_hold_min"},
		{"a part of what canary does not have", scenes("  a: {metrics: {slow_layer: {noise: {tau: 0.1}}}}\n"), ruleMissingKey, 5, 30, `scene a: noise needs the key "z"`},
		{"a floor that only both together make", "canary: {target_service: s, steps: [{pct: 1, min_hold_min: 0}], metrics: {slow_layer: {solve_rate_drop_pp: 60}}}\nscenes:\n  a: {metrics: {slow_layer: {solve_baseline: 0.5}}}\n  b: {}\n", ruleSolveFloor, 1, 108, "scene a: "},
		{"scene beside scenes", "canary: {target_service: s, scene: a, steps: [{pct: 1, min_hold_min: 0}]}\nscenes: {a: {}}\n", ruleOneOf, 1, 36, "scenes has several"},
		{"scenes in two places", "canary: {target_service: s, scenes: {a: {}}, steps: [{pct: 1, min_hold_min: 0}]}\nscenes: {a: {}}\n", ruleTwoPlaces, 2, 1, "scenes"},
		{"one place for two scenes", scenes("  a: {}\n  b: {}\n") + "target: {exec: {read: [r], write: [w]}}\n", ruleSceneTarget, 7, 16, "scenes a and b"},
		{"one document that is swapped whole", scenes("  a: {}\n  b: {}\n") + "target: {config_api: {url: http://x, canary: \"{scene}.canary\", stable: \"{scene}.stable\"}}\n", ruleSceneTarget, 7, 22, "scenes a and b"},
		{"a weight of stable for two scenes", scenes("  a: {}\n  b: {}\n") + "target: {file: {path: w.json, canary: \"{scene}.canary\", stable: stable}}\n", ruleSceneTarget, 7, 16, "scenes a and b"},
		{"a weight of stable that is left out", scenes("  a: {}\n  b: {}\n") + "target: {file: {path: w.json, canary: \"{scene}.canary\"}}\n", ruleSceneTarget, 7, 16, "scenes a and b"},
		{"files whose names go on like another scene's", scenes("  a: {}\n  a-b: {}\n") + "source: {records: {path: \"log/{scene}-*.jsonl\"}}\n", ruleSceneSource, 7, 26, "log/a-*.jsonl, where the rows of scene a are, takes in files of a-b"},
		{"a file of all beside one of each", scenes("  a: {}\n  b: {}\n") + "source: {windows: {path: [\"{scene}.jsonl\", all.jsonl]}}\n", ruleSceneSource, 7, 26, "all.jsonl"},
		{"queries that name no scene", scenes("  a: {}\n  b: {}\n") + "source: {prometheus: {url: http://p, queries: {canary: {total: x}}}}\n", ruleSceneSource, 7, 64, "does not name the scene"},
		{"matchers that name no scene", scenes("  a: {}\n  b: {}\n") + "source: {prometheus: {url: http://p, preset: vllm, matchers: {canary: 'v=\"c\",s=\"{scene}\"', stable: 'v=\"s\"'}}}\n", ruleSceneSource, 7, 100, "does not name the scene"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg, list := Parse("c.yaml", []byte(tc.src))
			if cfg != nil || len(list) != 1 {
				t.Fatalf("want one finding, got %v", list)
			}
			if f := list[0]; f.Rule != tc.rule || f.Line != tc.line || f.Col != tc.col || !strings.Contains(f.Message, tc.message) {
				t.Errorf("%d:%d %s %s, want %d:%d %s %s", f.Line, f.Col, f.Rule, f.Message, tc.line, tc.col, tc.rule, tc.message)
			}
		})
	}
}

func TestPlacesThatScenesMayShare(t *testing.T) {
	two := minimal + "scenes: {a: {}, b: {}}\n"
	for name, src := range map[string]string{
		"a file for all":               two + "target: {file: {path: w.json}}\n",
		"a file of each":               two + "target: {file: {path: \"{scene}.json\"}}\n",
		"a key of each":                two + "target: {etcd: {endpoints: [http://e], key: \"w/{scene}\"}}\n",
		"a backend of each":            two + "target: {haproxy: {address: /run/h, backend: \"llm_{scene}\"}}\n",
		"a flag of each":               two + "target: {unleash: {url: http://u, token_env: T, feature: \"llm-{scene}\", environment: production}}\n",
		"an argument":                  two + "target: {exec: {read: [r, \"{scene}\"], write: [w, \"{scene}\"]}}\n",
		"a file that has no stable":    two + "target: {git: {files: [{path: values.yaml, canary: \"{scene}.canary\", stable: \"-\"}]}}\n",
		"places of one file in git":    two + "target: {git: {files: [{path: values.yaml, canary: \"{scene}.canary\", stable: \"{scene}.stable\"}]}}\n",
		"a document of each":           two + "target: {config_api: {url: \"http://x/v1/services/s-{scene}\"}}\n",
		"files of each":                two + "source: {records: {path: [\"log/{scene}.*.jsonl\", \"old/{scene}/*.jsonl\"]}}\n",
		"queries of each":              two + "source: {prometheus: {url: http://p, queries: {canary: {total: 'x{scene=\"{scene}\"}'}}}}\n",
		"a preset without a query":     two + "source: {prometheus: {url: http://p, preset: vllm, matchers: {canary: 'v=\"c\",s=\"{scene}\"', stable: 'v=\"s\",s=\"{scene}\"'}, queries: {canary: {p99_ms: \"-\"}}}}\n",
		"a Prometheus of each":         two + "source: {prometheus: {url: \"http://p/{scene}\", queries: {canary: {total: x}}}}\n",
		"one scene needs no splitting": minimal + "scenes: {a: {}}\nsource: {prometheus: {url: http://p, queries: {canary: {total: x}}}}\ntarget: {exec: {read: [r], write: [w]}}\n",
	} {
		t.Run(name, func(t *testing.T) { parseOK(t, src) })
	}
}

// TestLintOfScenesSaysOnceWhatHoldsForAll, and for which what does not.
func TestLintOfScenesSaysOnceWhatHoldsForAll(t *testing.T) {
	seen := map[string]int{}
	for _, f := range parseOK(t, twoScenes).Lint() {
		scene, _, ok := strings.Cut(f.Message, ": ")
		if !ok || !strings.HasPrefix(scene, "scene ") {
			scene = ""
		}
		seen[f.Rule+" "+scene]++
	}
	for want, n := range map[string]int{
		ruleMinSamplesUnset + " ":          1,
		ruleNoTraffic + " scene answers":   1,
		ruleNoTraffic + " scene summaries": 0,
		ruleDefaultBaseline + " ":          3,
	} {
		if seen[want] != n {
			t.Errorf("%q stands there %d times, want %d; all: %v", want, seen[want], n, seen)
		}
	}
}

// TestNoSceneIsToldTwice: a mistake in canary is one, however many scenes have
// it.
func TestNoSceneIsToldTwice(t *testing.T) {
	_, list := Parse("c.yaml", []byte("canary:\n  target_service: s\n  colour: red\n  steps: [{pct: 0.5, min_hold_min: 0}, {pct: 0.3, min_hold_min: 0}]\nscenes: {a: {}, b: {}, c: {}}\n"))
	var rules []string
	for _, f := range list {
		rules = append(rules, f.Rule)
		if f.Severity != diag.Error || strings.HasPrefix(f.Message, "scene ") {
			t.Error(f)
		}
	}
	if want := []string{ruleUnknownKey, ruleLastStep, ruleStepOrder}; !slices.Equal(rules, want) {
		t.Errorf("%v, want %v", rules, want)
	}
}

func FuzzScenes(f *testing.F) {
	f.Add(twoScenes)
	f.Add("canary: {target_service: s}\nscenes: {a: {steps: [{pct: 1, min_hold_min: 0}]}, a: 1, ? [x] : 2}\n")
	f.Add("scenes: {a: &x {b: *x}}\ncanary: {scene: true, <<: {}}\n")
	f.Fuzz(func(t *testing.T, src string) {
		cfg, list := Parse("f.yaml", []byte(src))
		if (cfg == nil) != list.HasErrors() {
			t.Fatalf("config %v with %v", cfg != nil, list)
		}
		if cfg == nil {
			return
		}
		for _, s := range cfg.Scenes {
			if again, findings := Parse("again", s.Config.Masked()); again == nil || again.Plan().Digest != s.Config.Plan().Digest {
				t.Errorf("scene %s is journaled as other rules: %v", s.Name, findings)
			}
		}
	})
}

func TestSchemaAgreesOnScenes(t *testing.T) {
	schema := compiled(t)
	bare := "canary: {target_service: s}\n"
	for _, tt := range []struct {
		name, src string
		ok        bool
	}{
		{"scenes beside canary", twoScenes, true},
		{"scenes in canary", with("scenes: {a: {}, b: {metrics: {slow_layer: {noise: {z: 4, tau: 0.1}}}}}"), true},
		{"a scene's own file", with("scene: a-1_b"), true},
		{"ladders in every scene alone", bare + "scenes: {a: {steps: [{pct: 1, min_hold_min: 0}]}}\n", true},
		{"a scene without a ladder", bare + "scenes: {a: {steps: [{pct: 1, min_hold_min: 0}]}, b: {}}\n", false},
		{"no ladder at all", bare + "scenes: {}\n", false},
		{"no scenes and a ladder", minimal + "scenes: {}\n", true},
		{"a name with a capital", minimal + "scenes: {A: {}}\n", false},
		{"a name with a dot", minimal + "scenes: {a.b: {}}\n", false},
		{"a scene of a scene", minimal + "scenes: {a: {scenes: {}}}\n", false},
		{"a step of a scene without its time", minimal + "scenes: {a: {steps: [{pct: 1}]}}\n", false},
		{"a limit in a step of a scene", minimal + "scenes: {a: {steps: [{pct: 1, min_hold_min: 0, limits: {violation_limit: 4}}]}}\n", true},
		{"a freeze of a scene", minimal + "scenes: {a: {freeze: [{from: 22:00}], signals: {cost: {mode: observe}}, include: {user_ids: [x]}}}\n", true},
		{"versions of a scene", minimal + "scenes: {a: {versions: {}}}\n", false},
		{"scenes in both places", with("scenes: {a: {}}") + "scenes: {a: {}}\n", false},
		{"a list of scenes", minimal + "scenes: [a, b]\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var n yaml.Node
			if err := yaml.Unmarshal([]byte(tt.src), &n); err != nil {
				t.Fatal(err)
			}
			err := schema.Validate(plain(&n))
			cfg, list := Parse("canary.yaml", []byte(tt.src))
			if (err == nil) != tt.ok || (cfg != nil) != tt.ok {
				t.Errorf("want %t; the schema says %v, the parser says %v", tt.ok, err, list)
			}
		})
	}
}

// TestExampleOfScenesDocument: the file that the reference shows can be used,
// and lint has nothing to say that it does not.
func TestExampleOfScenesDocument(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(docsDir, "scenes.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(raw), "```yaml\n")
	src, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("the reference has no example")
	}
	cfg := parseOK(t, src)
	if !slices.Equal(cfg.SceneNames(), []string{"summaries", "answers"}) {
		t.Error(cfg.SceneNames())
	}
}

// TestScenesAreReadAtOnce: a Config is read-only, and several goroutines may
// look at the scenes of one file.
func TestScenesAreReadAtOnce(t *testing.T) {
	var all sync.WaitGroup
	for _, s := range parseOK(t, twoScenes).Scenes {
		all.Go(func() {
			s.Config.Lint()
			s.Config.Masked()
			s.Config.LivePlan()
		})
	}
	all.Wait()
}
