package scenario_test

import (
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/scenario"
)

const sceneHead = "scenario: x\nabout: two scenes\n"

const scenePlan = `plan:
  canary: {target_service: s, steps: [{pct: 1, min_hold_min: 0}]}
  scenes: {a: {}, b: {}}
`

const sceneFeeds = `feed:
  scenes:
    a: {canary_per_min: 10, minutes: 5, base: {solve_rate: 1, violations: 0}, faults: [{fault: violation_burst, count: 3, from: 2}]}
    b: {canary_per_min: 20, minutes: 9, base: {solve_rate: 1}}
`

func TestEachSceneIsAScenarioByItself(t *testing.T) {
	src := sceneHead + scenePlan + sceneFeeds + "expect:\n  - {scene: a, transition: {to: OPEN}}\n  - {scene: b, never: OPEN}\n  - {scene: a, exposure_below: 100}\n"
	sc, list := scenario.Parse("x.yaml", []byte(src))
	if sc == nil {
		t.Fatal(list)
	}
	if len(sc.Scenes) != 2 {
		t.Fatalf("%d scenes", len(sc.Scenes))
	}
	a, b := sc.Scenes[0], sc.Scenes[1]
	if a.Scene != "a" || b.Scene != "b" || a.Name != "x" || a.Config.ServiceName() != "s/a" {
		t.Errorf("%+v %+v", a, b)
	}
	if a.Minutes != 5 || b.Minutes != 9 || a.FaultFrom == nil || *a.FaultFrom != 2 || b.FaultFrom != nil {
		t.Errorf("each has a feed of its own: %+v %+v", a, b)
	}
	if n, _ := a.Expectations(); n != 2 {
		t.Errorf("a has %d expectations", n)
	}
	if n, _ := b.Expectations(); n != 1 {
		t.Errorf("b has %d expectations", n)
	}
}

func TestRecordedFilesAreReadForEachScene(t *testing.T) {
	sc, list := scenario.Parse("x.yaml", []byte(sceneHead+scenePlan+"feed: {files: [day.jsonl]}\nexpect: [{scene: b, never: OPEN}]\n"))
	if sc == nil {
		t.Fatal(list)
	}
	for _, s := range sc.Scenes {
		if len(s.Files) != 1 || s.Files[0] != "day.jsonl" {
			t.Errorf("%+v", s)
		}
	}
}

func TestFindingsOfScenes(t *testing.T) {
	expect := "expect: [{scene: a, never: OPEN}]\n"
	for _, tc := range []struct{ name, src, rule, says string }{
		{"a scene without a feed", sceneHead + scenePlan + "feed: {scenes: {a: {canary_per_min: 1, minutes: 2, base: {solve_rate: 1}}}}\n" + expect, "missing-key", `the plan's scene "b"`},
		{"a feed of no scene", sceneHead + scenePlan + strings.Replace(sceneFeeds, "    b:", "    c:", 1) + expect, "unknown-key", `no scene "c"`},
		{"a feed for all", sceneHead + scenePlan + "feed: {canary_per_min: 1, minutes: 2, base: {solve_rate: 1}}\n" + expect, "unknown-key", "canary_per_min"},
		{"an expectation of nobody", sceneHead + scenePlan + sceneFeeds + "expect: [{never: OPEN}]\n", "missing-key", `needs the key "scene"`},
		{"an expectation of no scene", sceneHead + scenePlan + sceneFeeds + "expect: [{scene: c, never: OPEN}]\n", "unknown-word", `"c" is not known`},
		{"nothing is expected", sceneHead + scenePlan + sceneFeeds + "expect: []\n", "out-of-range", "expect is empty"},
		{"a fault of all", sceneHead + "fault_from: 2\n" + scenePlan + sceneFeeds + expect, "one-of", "each by themselves"},
		{"a mistake in a scene's feed has its place", sceneHead + scenePlan + strings.Replace(sceneFeeds, "solve_rate: 1}}\n", "solve_rate: 2}}\n", 1) + expect, "out-of-range", "solve_rate"},
		{"a step that the scene does not have", sceneHead + scenePlan + sceneFeeds + "expect: [{scene: a, decision: advance, step: 4}]\n", "out-of-range", "the plan has 1 steps"},
		{"exposure of a scene without a fault", sceneHead + scenePlan + sceneFeeds + "expect: [{scene: b, exposure_below: 4}]\n", "missing-key", "the feed has none"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sc, list := scenario.Parse("x.yaml", []byte(tc.src))
			if sc != nil || len(list) == 0 {
				t.Fatal("it was taken")
			}
			for _, f := range list {
				if f.Rule == tc.rule && strings.Contains(f.Message, tc.says) {
					return
				}
			}
			t.Errorf("want %s %q, got %v", tc.rule, tc.says, list)
		})
	}
}
