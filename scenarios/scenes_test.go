package scenarios_test

import (
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/scenario"
)

// parts are the scenes of a scenario, or the scenario itself.
func parts(sc *scenario.Scenario) []*scenario.Scenario {
	if sc.Scenes != nil {
		return sc.Scenes
	}
	return []*scenario.Scenario{sc}
}

// Each scene's expectations fail when what they guard is changed, and those of
// the other scene do not: the scenes are decided by themselves.
func TestAChangeOfOneSceneIsNoneOfTheOther(t *testing.T) {
	for _, tc := range []struct {
		name    string
		changes []string
		scene   string // in which it is broken
		broken  string // part of the want that must fail
		got     string // part of what came instead
	}{
		{"long texts within the limit trip nothing", []string{"ms: 30000", "ms: 26000"}, "summaries", "240 CLOSED -> OPEN p99", "no transition"},
		{"the answers' limit would trip on every summary", []string{"{ p99_baseline_ms: 9000 }", "{ violation_limit: 3 }"}, "summaries", "240 CLOSED -> OPEN p99", "0 CLOSED -> OPEN p99"},
		{"a later fault is found later", []string{"from: 240", "from: 250"}, "summaries", "240 CLOSED -> OPEN p99", "250 CLOSED -> OPEN p99"},
		{"answers as slow as summaries trip", []string{"p99_ms: 900,", "p99_ms: 9000,"}, "answers", "no transition", "0 CLOSED -> OPEN p99"},
		{"a longer hold of the answers advances later", []string{"min_hold_min: 60 }", "min_hold_min: 90 }"}, "answers", "60 to 61 advance at step 2", "90 advance at step 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			found := false
			for _, sc := range load(t, "scenes", tc.changes...).Scenes {
				for _, r := range sc.Check(replay(t, sc, sc.Seed)) {
					switch {
					case sc.Scene != tc.scene && !r.OK:
						t.Errorf("%s: want %s\ngot %s", sc.Scene, r.Want, r.Got)
					case sc.Scene == tc.scene && strings.Contains(r.Want, tc.broken):
						found = true
						if r.OK || !strings.Contains(r.Got, tc.got) {
							t.Errorf("want it broken with %q\nwant %s\ngot  %s\nok   %t", tc.got, r.Want, r.Got, r.OK)
						}
					}
				}
			}
			if !found {
				t.Errorf("no expectation of %s about %q", tc.scene, tc.broken)
			}
		})
	}
}
