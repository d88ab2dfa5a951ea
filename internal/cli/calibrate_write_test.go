package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/calibrate"
	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/splice"
)

var someSettings = []calibrate.Setting{
	{Key: []string{"requests_per_min"}, Value: "138"},
	{Key: []string{"cost_baseline_usd"}, Value: "0.0125"},
	{Step: 1, Key: []string{"violation_limit"}, Value: "4"},
	{Step: 1, Key: []string{"noise", "tail"}, Value: "exact"},
	{Step: 1, Key: []string{"slow_window_max_min"}, Value: "240"},
	{Key: []string{"fast_layer", "baseline_violation_rate"}, InMetrics: true, Value: "0.00001"},
	{Key: []string{"slow_layer", "solve_baseline"}, InMetrics: true, Value: "0.999105"},
	{Key: []string{"slow_layer", "min_samples_slow"}, InMetrics: true, Value: "20"},
	{Key: []string{"slow_layer", "noise", "z"}, InMetrics: true, Value: "4.02"},
	{Key: []string{"slow_layer", "noise", "tau"}, InMetrics: true, Value: "0.0121"},
}

// hasSomeSettings says what of someSettings a configuration does not have.
func hasSomeSettings(cfg *config.Config) string {
	step, slow := &cfg.Steps[0], &cfg.Slow
	got := fmt.Sprint(cfg.RequestsPerMin, cfg.CostBaselineUSD, step.Fast.ViolationLimit, step.Slow.Noise.Tail == breaker.ExactTail, step.Slow.SlowWindowMax,
		cfg.Fast.BaselineViolationRate, slow.SolveBaseline, slow.MinSamplesSlow, slow.Noise.Z, slow.Noise.Tau, slow.Noise.Tail == breaker.ExactTail)
	return cmp.Diff("138 0.0125 4 true 4h0m0s 1e-05 0.999105 20 4.02 0.0121 false", got)
}

const someSteps = "  target_service: shop # ours\n  steps:\n    - { pct: 1, min_hold_min: 5 }  # all at once\n"

// Whatever form the file has, the values arrive where the parser finds them,
// no line that was there is lost, and a second time changes nothing.
func TestPutSettingsIntoAnyForm(t *testing.T) {
	for name, src := range map[string]string{
		"whole":                    "canary:\n" + someSteps + "  metrics:\n    fast_layer: { baseline_violation_rate: 0.5 } # f\n    slow_layer:\n      solve_baseline: 0.9 # s\n",
		"metrics beside canary":    "metrics:\n  slow_layer: { min_samples_slow: 7 } # s\ncanary:\n" + someSteps,
		"a layer is missing":       "canary:\n" + someSteps + "  metrics:\n    slow_layer: {} # s\n",
		"no layers":                "canary:\n" + someSteps + "  metrics: {} # m\n",
		"noise is there":           "canary:\n" + someSteps + "  metrics:\n    slow_layer:\n      noise: { z: 3, tau: 0.2 } # n\n",
		"no metrics":               "canary:\n" + someSteps,
		"no metrics, no newline":   "canary:\n" + strings.TrimSuffix(someSteps, "\n"),
		"no metrics, CRLF":         strings.ReplaceAll("canary:\n"+someSteps, "\n", "\r\n"),
		"cost beside canary":       "cost_baseline_usd: 2 # c\ncanary:\n" + someSteps,
		"one line":                 "canary: { target_service: shop, steps: [{ pct: 1, min_hold_min: 5 }] } # all\n",
		"JSON":                     `{"canary": {"target_service": "shop", "steps": [{"pct": 1, "min_hold_min": 5}]}}`,
		"JSON of several lines":    "{\n  \"canary\": {\n    \"target_service\": \"shop\",\n    \"steps\": [\n      {\n        \"pct\": 1,\n        \"min_hold_min\": 5,\n        \"gate\": [\n          \"time\"\n        ]\n      }\n    ]\n  }\n}\n",
		"steps in blocks":          "canary:\n  target_service: shop\n  steps: # s\n    - pct: 1 # all\n      min_hold_min: 5\n      gate: [time] # no more\n",
		"limits are there":         "canary:\n  target_service: shop\n  steps: [{ pct: 1, min_hold_min: 5, limits: { violation_limit: 9, cost_ratio_limit: 7 } }] # s\n",
		"limits in blocks":         "canary:\n  target_service: shop\n  steps:\n  - pct: 1\n    min_hold_min: 5\n    limits: # own\n      violation_limit: 9 # v\n",
		"a step on two lines":      "canary:\n  target_service: shop\n  steps:\n  - { pct: 1, min_hold_min: 5, # m\n      gate: [time, metric] } # g\n",
		"the published form's end": "canary:\n" + someSteps + "  metrics:\n    slow_layer: { solve_baseline: 0.90 }\n...\n# after\n",
	} {
		t.Run(name, func(t *testing.T) { putsSomeSettings(t, src) })
	}
}

// fataler is a test or a property under test.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// putsSomeSettings puts someSettings into a file and returns it.
func putsSomeSettings(t fataler, src string) string {
	t.Helper()
	out, err := putSettings("canary.yaml", []byte(src), someSettings)
	if err != nil {
		t.Fatalf("%v in\n%s", err, src)
	}
	cfg, findings := config.Parse("canary.yaml", out)
	if cfg == nil {
		t.Fatalf("no longer a configuration: %v\n%s", findings, out)
	}
	if diff := hasSomeSettings(cfg); diff != "" {
		t.Fatalf("values (-want +got) %s in\n%s", diff, out)
	}
	touchesOnlyThem(t, src, string(out))
	again, err := putSettings("canary.yaml", out, someSettings)
	if err != nil || string(again) != string(out) {
		t.Fatalf("a second time: %v\n%s", err, again)
	}
	return string(out)
}

// touchesOnlyThem fails if anything but someSettings is different: another
// value, a comment, a line's end.
func touchesOnlyThem(t fataler, src, out string) {
	t.Helper()
	trees := make([]any, 2)
	for i, text := range []string{src, out} {
		if err := yaml.Unmarshal([]byte(text), &trees[i]); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for _, s := range someSettings {
			for _, path := range places(s) {
				trees[i] = without(trees[i], path)
			}
		}
	}
	if diff := cmp.Diff(trees[0], trees[1]); diff != "" {
		t.Fatalf("other values changed (-before +after): %s in\n%s", diff, out)
	}
	comments := regexp.MustCompile(`#[^\r\n]*`)
	if diff := cmp.Diff(comments.FindAllString(src, -1), comments.FindAllString(out, -1)); diff != "" {
		t.Fatalf("comments changed (-before +after): %s in\n%s", diff, out)
	}
	lf := func(s string) int { return strings.Count(strings.ReplaceAll(s, "\r\n", ""), "\n") }
	if crlf := strings.Contains(src, "\r\n"); crlf && lf(src) == 0 && lf(out) > 0 || !crlf && strings.Contains(out, "\r\n") {
		t.Fatalf("mixed line ends in %q", out)
	}
}

// without returns a tree that lacks the value at path, and what is empty for
// the lack of it.
func without(tree any, path []string) any {
	switch node := tree.(type) {
	case map[string]any:
		if len(path) > 0 {
			if _, ok := node[path[0]]; ok {
				node[path[0]] = without(node[path[0]], path[1:])
			}
			if node[path[0]] == nil {
				delete(node, path[0])
			}
		}
		if len(node) == 0 {
			return nil
		}
		return node
	case []any:
		if i, err := strconv.Atoi(slices.Concat(path, []string{""})[0]); err == nil && i < len(node) {
			node[i] = without(node[i], path[1:])
		}
		return node
	}
	if len(path) == 0 {
		return nil
	}
	return tree
}

// published is the form that canary.yaml has in the design, with its comments.
const published = `canary:
  target_service: order-service
  traffic_dimension: user_id        # what is hashed
  hash_ring_slots: 100
  steps:
    - { pct: 0.01, min_hold_min: 120,  gate: [time, metric] }
    - { pct: 0.05, min_hold_min: 240,  gate: [time, metric] }
    - { pct: 1.00, min_hold_min: 1440, gate: [time, metric] }   # all
  exclude:                           # never on the canary
    segments: [finance, government]
  metrics:
    fast_layer:
      violation_limit: 3
      baseline_violation_rate: 0.0005
    slow_layer:
      solve_baseline: 0.90
      min_samples_slow: 200
      slow_window_min: 25            # the live window
    recovery:
      cooldown_min: 6
`

func TestPutSettingsIntoThePublishedForm(t *testing.T) {
	settings := []calibrate.Setting{
		{Step: 1, Key: []string{"violation_limit"}, Value: "4"},
		{Step: 1, Key: []string{"min_samples_slow"}, Value: "400"},
		{Step: 3, Key: []string{"min_transfer_count"}, Value: "60"},
		{Key: []string{"slow_layer", "solve_baseline"}, InMetrics: true, Value: "0.912"},
		{Key: []string{"slow_layer", "noise", "z"}, InMetrics: true, Value: "4.02"},
		{Key: []string{"slow_layer", "noise", "tau"}, InMetrics: true, Value: "0.0121"},
	}
	const want = `--- a/canary.yaml
+++ b/canary.yaml
@@ -3,9 +3,9 @@
   traffic_dimension: user_id        # what is hashed
   hash_ring_slots: 100
   steps:
-    - { pct: 0.01, min_hold_min: 120,  gate: [time, metric] }
+    - { pct: 0.01, min_hold_min: 120,  gate: [time, metric], limits: { violation_limit: 4, min_samples_slow: 400 } }
     - { pct: 0.05, min_hold_min: 240,  gate: [time, metric] }
-    - { pct: 1.00, min_hold_min: 1440, gate: [time, metric] }   # all
+    - { pct: 1.00, min_hold_min: 1440, gate: [time, metric], limits: { min_transfer_count: 60 } }   # all
   exclude:                           # never on the canary
     segments: [finance, government]
   metrics:
@@ -13,8 +13,11 @@
       violation_limit: 3
       baseline_violation_rate: 0.0005
     slow_layer:
-      solve_baseline: 0.90
+      solve_baseline: 0.912
       min_samples_slow: 200
       slow_window_min: 25            # the live window
+      noise:
+        z: 4.02
+        tau: 0.0121
     recovery:
       cooldown_min: 6
`
	for _, eol := range []string{"\n", "\r\n"} {
		src := strings.ReplaceAll(published, "\n", eol)
		out, err := putSettings("canary.yaml", []byte(src), settings)
		if err != nil {
			t.Fatal(err)
		}
		if got := splice.Diff("canary.yaml", []byte(src), out); strings.ReplaceAll(got, "\r", "") != want {
			t.Errorf("line end %q: %s", eol, cmp.Diff(want, got))
		}
	}
}

func TestPutSettingsIntoBlocks(t *testing.T) {
	src := "canary:\n  target_service: shop\n  steps:\n    - pct: 0.01   # first\n      min_hold_min: 5\n      # how it is passed\n      gate: [time, metric]\n    - pct: 1\n      min_hold_min: 5\n"
	want := "canary:\n  requests_per_min: 138\n  target_service: shop\n  steps:\n    - pct: 0.01   # first\n      min_hold_min: 5\n      # how it is passed\n      gate: [time, metric]\n" +
		"      limits:\n        violation_limit: 4\n        noise:\n          tail: exact\n    - pct: 1\n      min_hold_min: 5\n" +
		"metrics:\n  slow_layer:\n    noise:\n      z: 4.02\n      tau: 0.0121\n"
	want = strings.Replace(want, "  requests_per_min: 138\n  target_service: shop\n", "  target_service: shop\n  requests_per_min: 138\n", 1)
	var settings []calibrate.Setting
	for _, s := range someSettings {
		if slices.Contains([]string{"requests_per_min", "violation_limit", "noise"}, s.Key[0]) || slices.Contains(s.Key, "noise") {
			settings = append(settings, s)
		}
	}
	out, err := putSettings("canary.yaml", []byte(src), settings)
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s", err, cmp.Diff(want, string(out)))
	}
}

// TestPutSettingsTouchesOnlyItsPlaces draws files in mixed styles.
func TestPutSettingsTouchesOnlyItsPlaces(t *testing.T) {
	drawn := 0
	rapid.Check(t, func(t *rapid.T) {
		if drawn++; drawn > 40 {
			return // each is parsed some hundred times
		}
		src := drawConfig(t)
		if cfg, findings := config.Parse("canary.yaml", []byte(src)); cfg == nil {
			t.Fatalf("drawn badly: %v\n%s", findings, src)
		}
		putsSomeSettings(t, src)
	})
}

// drawConfig writes a configuration with steps, metrics and layers in one of
// the forms that each may have.
func drawConfig(t *rapid.T) string {
	one := func(name string, texts ...string) string { return rapid.SampledFrom(texts).Draw(t, name) }
	comment := func() string { return one("comment", "", " # note", "   # a: { b") }
	limits := one("limits", "", ", limits: { violation_limit: 9 }", ", limits: { noise: { z: 2, tau: 0.1 } }", ", limits: {}")
	steps := one("steps",
		"  steps:\n    - { pct: 0.1, min_hold_min: 5"+limits+" }"+comment()+"\n    - { pct: 1, min_hold_min: 5 }\n",
		"  steps:\n  - pct: 0.1"+comment()+"\n    min_hold_min: 5\n"+one("block", "", "    limits:\n      violation_limit: 9"+comment()+"\n")+"  - { pct: 1, min_hold_min: 5 }\n",
		"  steps: [{pct: 0.1, min_hold_min: 5"+limits+"}, {pct: 1, min_hold_min: 5}]"+comment()+"\n")
	layers := "  recovery: { cooldown_min: 9 }\n" + one("fast", "", "  fast_layer: {}"+comment()+"\n", "  fast_layer:\n    baseline_violation_rate: 0.3"+comment()+"\n") +
		one("slow", "", "  slow_layer: { solve_baseline: 0.9 }"+comment()+"\n", "  slow_layer:\n    solve_baseline: 0.9"+comment()+"\n"+
			one("noise", "", "    noise: { z: 3, tau: 0 }"+comment()+"\n", "    noise:\n      z: 3"+comment()+"\n      tau: 0\n"))
	canary := "canary:" + comment() + "\n  target_service: shop\n" + steps
	src := canary
	switch metrics := "metrics:" + comment() + "\n" + layers; one("metrics", "none", "inside", "beside", "before") {
	case "inside":
		for line := range strings.Lines(metrics) {
			src += "  " + line
		}
	case "beside":
		src += metrics
	case "before":
		src = metrics + canary
	}
	return strings.ReplaceAll(src, "\n", one("line end", "\n", "\r\n"))
}

func TestPutSettingsRefusesWhatItCannotWrite(t *testing.T) {
	limit := []calibrate.Setting{{Key: []string{"slow_layer", "solve_baseline"}, InMetrics: true, Value: "0.8"}, {Step: 2, Key: []string{"violation_limit"}, Value: "4"}}
	for _, c := range []struct{ name, src, want string }{
		{"no such step", "canary:\n" + someSteps, "put step 2's violation_limit: 4 into canary.yaml: canary.steps.1.limits.violation_limit (line 4): not found; nothing was changed"},
		{"an alias", "canary:\n  target_service: shop\n  steps:\n    - &s { pct: 1, min_hold_min: 5 }\n    - *s\n", "(line 5): shared by an anchor; nothing was changed"},
		{"a list for limits", "canary:\n  target_service: shop\n  steps:\n    - { pct: 0.1, min_hold_min: 5 }\n    - { pct: 1, limits: [4] }\n", "(line 5): not found; nothing was changed"},
		{"a mapping for a limit", "canary:\n  target_service: shop\n  steps:\n    - { pct: 0.1, min_hold_min: 5 }\n    - { pct: 1, limits: { violation_limit: { a: 1 } } }\n", "not a single value; nothing was changed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := putSettings("canary.yaml", []byte(c.src), limit)
			if out != nil || err == nil || !strings.Contains(err.Error(), c.want) || codeOf(err) != ExitUsage {
				t.Errorf("got %v\n%s", err, out)
			}
		})
	}
}

func TestPutSettingsJudgesTheValuesTogether(t *testing.T) {
	src := []byte("canary:\n" + someSteps + "  metrics: { slow_layer: { solve_baseline: 0.9, solve_rate_drop_pp: 50 } }\n")
	baseline := calibrate.Setting{Key: []string{"slow_layer", "solve_baseline"}, InMetrics: true, Value: "0.4"}
	drop := calibrate.Setting{Key: []string{"slow_layer", "solve_rate_drop_pp"}, InMetrics: true, Value: "5"}
	if _, err := putSettings("canary.yaml", src, []calibrate.Setting{baseline, drop}); err != nil {
		t.Errorf("a baseline of 0.4 goes with a drop of 5: %v", err)
	}
	_, err := putSettings("canary.yaml", src, []calibrate.Setting{baseline})
	if err == nil || !strings.Contains(err.Error(), "canary.yaml:5:") || !strings.Contains(err.Error(), "nothing was changed") || codeOf(err) != ExitUsage {
		t.Errorf("a baseline of 0.4 with a drop of 50: %v", err)
	}
}

// For any file: no panic, and what comes out is a configuration that has the
// values, has them once and for all, and nothing else is different.
func FuzzPutSettings(f *testing.F) {
	f.Add("canary:\n" + someSteps + "  metrics:\n    slow_layer:\n      solve_baseline: 0.9 # s\n")
	f.Add("cost_baseline_usd: 2\ncanary:\n" + someSteps + "metrics: {}\n")
	f.Add(`{"canary": {"target_service": "shop", "steps": [{"pct": 1, "min_hold_min": 5}]}}`)
	f.Add("canary: {target_service: a, steps: [{pct: 1, min_hold_min: 5}]}\n...\n")
	f.Add("---\ncanary:\r\n  target_service: a\r\n  steps: [{pct: 1, min_hold_min: 5}]")
	f.Add(published)
	f.Add("canary:\n  target_service: a\n  steps:\n  - pct: 1\n    limits:\n    gate: [metric] # g\n")
	f.Fuzz(func(t *testing.T, src string) {
		if cfg, _ := config.Parse("canary.yaml", []byte(src)); cfg == nil {
			return
		}
		if _, err := putSettings("canary.yaml", []byte(src), someSettings); err == nil && !strings.Contains(strings.ReplaceAll(src, "\r\n", ""), "\r") {
			putsSomeSettings(t, src)
		}
	})
}
