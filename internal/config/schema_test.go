package config

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/diag"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("canary.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("canary.schema.json") // against the draft's own schema as well
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// plain turns a node into what JSON would hold, numbers as written.
func plain(n *yaml.Node) any {
	switch n.Kind {
	case yaml.DocumentNode:
		return plain(n.Content[0])
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = plain(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			list = append(list, plain(c))
		}
		return list
	}
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		return n.Value == "true"
	case "!!int", "!!float":
		return json.Number(n.Value)
	}
	return n.Value
}

func TestSchemaAgreesWithParser(t *testing.T) {
	schema := compiled(t)
	step := func(s string) string { return "canary: {target_service: s, steps: [" + s + "]}\n" }
	tests := []struct {
		name, src string
		ok        bool
	}{
		{"published file", string(published(t)), true},
		{"template", string(template), true},
		{"minimal", minimal, true},
		{"metrics beside", minimal + "metrics: {fast_layer: {violation_limit: 5}}\n", true},
		{"metrics in both places", with("metrics: {}") + "metrics: {}\n", false},
		{"signals beside", minimal + "signals: {cost: {mode: off}}\n", true},
		{"max_pct in both places", with("max_pct: {pct: 1, because: x}") + "max_pct: {pct: 1, because: x}\n", false},
		{"versions in canary", with("versions: {}"), false},
		{"no canary", "state: {dir: x}\n", false},
		{"no service", "canary: {steps: [{pct: 1, min_hold_min: 0}]}\n", false},
		{"no steps", "canary: {target_service: s}\n", false},
		{"empty steps", step(""), false},
		{"unknown key", minimal + "x: 1\n", false},
		{"unknown key in a step", step("{pct: 1, min_hold_min: 0, x: 1}"), false},
		{"all keys of a step", step("{pct: 1, min_hold_min: 0, gate: [time, metric, approval], max_wait_min: 5, limits: {slow_window_min: 60, violation_limit: 2}}"), true},
		{"step without hold", step("{pct: 1}"), false},
		{"step without hold and with a time gate", step("{pct: 1, gate: [metric, time]}"), false},
		{"step without hold and without a time gate", step("{pct: 1, gate: [metric]}"), true},
		{"gate as a word", step("{pct: 1, min_hold_min: 0, gate: time}"), false},
		{"empty gate", step("{pct: 1, min_hold_min: 0, gate: []}"), false},
		{"gate twice", step("{pct: 1, min_hold_min: 0, gate: [time, time]}"), false},
		{"fitted layers", with(fittedLayers), true},
		{"fitted layers of a step", step("{pct: 1, min_hold_min: 0, limits: {p99_judge: count, slow_window_max_min: 60, against: stable, noise: {z: 4, tau: 0, tail: exact}, judge: cusum, cusum: {drop_pp: 5, limit: 9}}}"), true},
		{"a part of noise in a step", "canary: {target_service: s, steps: [{pct: 1, min_hold_min: 0, limits: {noise: {z: 5}}}], metrics: {slow_layer: {noise: {z: 4, tau: 0.01}}}}\n", true},
		{"noise without tau", with("metrics: {slow_layer: {noise: {z: 4}}}"), false},
		{"noise of no sigmas is no fitted form", with("metrics: {slow_layer: {noise: {z: 0, tau: 0.1}}}"), true},
		{"noise of less than no sigmas", with("metrics: {slow_layer: {noise: {z: -1, tau: 0.1}}}"), false},
		{"noise of a half", with("metrics: {slow_layer: {noise: {z: 4, tau: 0.5}}}"), false},
		{"noise just below a half", with("metrics: {slow_layer: {noise: {z: 4, tau: 0.499}}}"), true},
		{"unknown key of noise", with("metrics: {slow_layer: {noise: {z: 4, tau: 0.1, sigma: 1}}}"), false},
		{"cusum without a limit", with("metrics: {slow_layer: {cusum: {drop_pp: 5}}}"), false},
		{"unknown judge of p99", with("metrics: {fast_layer: {p99_judge: both}}"), false},
		{"no slow requests allowed", with("metrics: {fast_layer: {min_slow_count: 0}}"), false},
		{"recovery in limits", step("{pct: 1, min_hold_min: 0, limits: {cooldown_min: 5}}"), false},
		{"pct above 1", step("{pct: 1.01, min_hold_min: 0}"), false},
		{"pct 0", step("{pct: 0, min_hold_min: 0}"), false},
		{"pct in quotes", step(`{pct: "1", min_hold_min: 0}`), false},
		{"negative hold", step("{pct: 1, min_hold_min: -1}"), false},
		{"hold of a unit", step("{pct: 1, min_hold_min: 1h}"), false},
		{"hold of eleven years", step("{pct: 1, min_hold_min: 6000000}"), false},
		{"whole number as decimal", with("hash_ring_slots: 100.0"), true},
		{"half a slot", with("hash_ring_slots: 99.5"), false},
		{"too many slots", with("hash_ring_slots: 1000001"), false},
		{"service that is a number", strings.Replace(minimal, ": s", ": 7", 1), true},
		{"service that is true", strings.Replace(minimal, ": s", ": true", 1), false},
		{"service that is empty", strings.Replace(minimal, ": s", ": ''", 1), false},
		{"service that is nothing", strings.Replace(minimal, ": s", ":", 1), false},
		{"ids", with("exclude: {user_ids: [1, a], segments: []}"), true},
		{"id that is a mapping", with("exclude: {user_ids: [{}]}"), false},
		{"lock as word", with("metrics: {recovery: {lock_on_escalate: yes}}"), false},
		{"lock", with("metrics: {recovery: {lock_on_escalate: false}}"), true},
		{"key without a value", with("exclude:"), false},
		{"unknown signal", with("signals: {x: {}}"), false},
		{"unknown mode", with("signals: {cost: {mode: on}}"), false},
		{"freeze", with("freeze: [{zone: UTC, days: [mon], from: 16:00, to: \"24:00\"}]"), true},
		{"freeze of a bad hour", with("freeze: [{from: 24:30}]"), false},
		{"freeze of a bad day", with("freeze: [{days: [monday]}]"), false},
		{"freeze of no day", with("freeze: [{days: []}]"), false},
		{"max_pct without a reason", with("max_pct: {pct: 1}"), false},
		{"max_pct as a number", with("max_pct: 1"), false},
		{"versions", minimal + "versions: {stable: {model_id: a, params: {top_k: 5}}, canary: {model_id: b, temperature: 0.2, weight: 0.1}, allow_multiple_changes: why}\n", true},
		{"unknown key of a version", minimal + "versions: {stable: {model: a}}\n", false},
		{"two sources", minimal + "source: {windows: {path: a}, records: {path: b}}\n", false},
		{"no source", minimal + "source: {}\n", false},
		{"paths", minimal + "source: {records: {path: [a, b]}}\n", true},
		{"no paths", minimal + "source: {records: {path: []}}\n", false},
		{"prometheus", minimal + "source: {prometheus: {url_env: P, queries: {canary: {total: x}}}}\n", true},
		{"prometheus of two addresses", minimal + "source: {prometheus: {url_env: P, url: http://p, queries: {canary: {total: x}}}}\n", false},
		{"prometheus without queries", minimal + "source: {prometheus: {url: http://p}}\n", false},
		{"target that is a word", minimal + "target: file\n", false},
		{"unknown target", minimal + "target: {consul: {}}\n", false},
		{"every target", minimal + "target: {file: {path: w}}\n", true},
		{"target file without a path", minimal + "target: {file: {}}\n", false},
		{"config API", minimal + "target: {config_api: {url: 'https://h/x', headers: {X-A: '${A}'}, mode: json_patch, unit: {whole: 256}}}\n", true},
		{"config API by template", minimal + "target: {config_api: {url_env: U, mode: template, body: '{canary}'}}\n", true},
		{"template without a body", minimal + "target: {config_api: {url_env: U, mode: template}}\n", false},
		{"body without a template", minimal + "target: {config_api: {url_env: U, body: '{canary}'}}\n", false},
		{"body without the weight", minimal + "target: {config_api: {url_env: U, mode: template, body: x}}\n", false},
		{"config API without an address", minimal + "target: {config_api: {mode: put}}\n", false},
		{"address that is none", minimal + "target: {config_api: {url: 'h/x'}}\n", false},
		{"header with half a variable", minimal + "target: {config_api: {url_env: U, headers: {A: '${B'}}}\n", false},
		{"header that is no name", minimal + "target: {config_api: {url_env: U, headers: {'A B': c}}}\n", false},
		{"header of a list", minimal + "target: {config_api: {url_env: U, headers: {A: []}}}\n", false},
		{"git", minimal + "target: {git: {files: [{path: a/b.yaml, document: kind=X, canary: 'x[0].y', stable: '-', unit: percent}], mode: branch, work_branch: w, open_command: [gh, pr]}}\n", true},
		{"git without files", minimal + "target: {git: {files: []}}\n", false},
		{"git outside the repository", minimal + "target: {git: {files: [{path: ../b}]}}\n", false},
		{"work branch of a push", minimal + "target: {git: {files: [{path: b}], work_branch: w}}\n", false},
		{"etcd", minimal + "target: {etcd: {endpoints: ['http://e:2379'], key: k, user_env: U, password_env: P, canary: c, stable: s}}\n", true},
		{"etcd user without a password", minimal + "target: {etcd: {endpoints: ['http://e:2379'], key: k, user_env: U}}\n", false},
		{"etcd password without a user", minimal + "target: {etcd: {endpoints: ['http://e:2379'], key: k, password_env: U}}\n", false},
		{"haproxy", minimal + "target: {haproxy: {address: 'h:9999', backend: llm, total: 256}}\n", true},
		{"haproxy of too many parts", minimal + "target: {haproxy: {address: 'h:9999', backend: llm, total: 257}}\n", false},
		{"haproxy of no address", minimal + "target: {haproxy: {address: h, backend: llm}}\n", false},
		{"backend that is two commands", minimal + "target: {haproxy: {address: 'h:9', backend: 'a;shutdown'}}\n", false},
		{"unleash", minimal + "target: {unleash: {url: 'https://u', token_env: T, feature: f, environment: e}}\n", true},
		{"unleash without a token", minimal + "target: {unleash: {url: 'https://u', feature: f, environment: e}}\n", false},
		{"programs", minimal + "target: {exec: {read: [a], write: [b, 1.50], unit: {whole: 100, places: 1}}}\n", true},
		{"program that is a word", minimal + "target: {exec: {read: a, write: [b]}}\n", false},
		{"unit that is no word", minimal + "target: {file: {path: w, unit: pct}}\n", false},
		{"unit without a whole", minimal + "target: {file: {path: w, unit: {places: 2}}}\n", false},
		{"unit that is a list", minimal + "target: {file: {path: w, unit: [1]}}\n", false},
		{"preset", minimal + "source: {prometheus: {url_env: P, preset: vllm, matchers: {canary: 'a=\"b\"', stable: 'a=\"c\"'}}}\n", true},
		{"preset without matchers", minimal + "source: {prometheus: {url_env: P, preset: vllm}}\n", false},
		{"preset with a matcher", minimal + "source: {prometheus: {url_env: P, preset: vllm, matchers: {canary: 'a=\"b\"'}}}\n", false},
		{"matchers in braces", minimal + "source: {prometheus: {url_env: P, preset: vllm, matchers: {canary: '{a=\"b\"}', stable: 'a=\"c\"'}}}\n", false},
		{"matchers without a preset", minimal + "source: {prometheus: {url_env: P, queries: {canary: {total: x}}, matchers: {canary: 'a=\"b\"', stable: 'a=\"c\"'}}}\n", false},
		{"queries without the canary", minimal + "source: {prometheus: {url_env: P, queries: {stable: {total: x}}}}\n", false},
		{"queries without a total", minimal + "source: {prometheus: {url_env: P, queries: {canary: {total: x}, stable: {solved: x}}}}\n", false},
		{"queries over a preset", minimal + "source: {prometheus: {url_env: P, preset: vllm, matchers: {canary: 'a=\"b\"', stable: 'a=\"c\"'}, queries: {stable: {solved: x}}}}\n", true},
		{"query of no figure", minimal + "source: {prometheus: {url_env: P, queries: {canary: {total: x, p99: y}}}}\n", false},
		{"seconds with a unit", minimal + "source: {windows: {path: a, timeout_s: 5s}}\n", false},
		{"no seconds", minimal + "source: {windows: {path: a, timeout_s: 0}}\n", false},
		{"channels", minimal + "notify: [{wecom: {url_env: W}}, {alertmanager: {url: 'http://a', labels: {team: llm}}}, {feishu: {url_env: F, keyword: x, events: [started]}}]\n", true},
		{"channel without an address", minimal + "notify: [{slack: {}}]\n", false},
		{"key of another channel", minimal + "notify: [{slack: {url_env: S, keyword: x}}]\n", false},
		{"unknown event", minimal + "notify: [{slack: {url_env: S, events: [finished]}}]\n", false},
		{"label that is no name", minimal + "notify: [{alertmanager: {url_env: A, labels: {a-b: c}}}]\n", false},
		{"hooks", minimal + "hooks: {on_rollback: [{http: {url: 'http://c/purge', method: DELETE, tries: 3}}, {exec: {command: [make, purge]}}]}\n", true},
		{"hook still to be written", minimal + "hooks: {on_rollback: [{http: {...}}, {exec: {...}}]}\n", true},
		{"hook half written", minimal + "hooks: {on_rollback: [{http: {..., tries: 3}}]}\n", false},
		{"target still to be written", minimal + "target: {file: {...}}\n", false},
		{"keep", minimal + "on_complete: keep\n", true},
		{"neither keep nor swap", minimal + "on_complete: swop\n", false},
		{"notify that is a mapping", minimal + "notify: {wecom: {url_env: W}}\n", false},
		{"unknown hook", minimal + "hooks: {on_start: []}\n", false},
		{"a list", "[]\n", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var n yaml.Node
			if err := yaml.Unmarshal([]byte(tt.src), &n); err != nil {
				t.Fatal(err)
			}
			err := schema.Validate(plain(&n))
			cfg, list := Parse("canary.yaml", []byte(tt.src))
			if (err == nil) != tt.ok {
				t.Errorf("the schema says %v", err)
			}
			if (cfg != nil) != tt.ok {
				t.Errorf("the parser says %v", list)
			}
		})
	}
}

// whole uses every part of the schema that one file can.
const whole = `{
"canary": {"target_service": "s", "traffic_dimension": "user_id", "hash_ring_slots": 100, "requests_per_min": 600,
  "steps": [{"pct": 0.01, "min_hold_min": 5, "gate": ["time", "metric"], "max_wait_min": 9, "limits": {"violation_limit": 5, "slow_window_min": 30, "noise": {"tau": 0.02}, "cusum": {"limit": 9}}}, {"pct": 1, "min_hold_min": 0}],
  "exclude": {"segments": ["a"], "user_ids": ["b", 7]}, "include": {"user_ids": ["c"]},
  "metrics": {"fast_layer": {"violation_window_min": 5, "cost_ratio_limit": 2.0, "p99_min_samples": 0, "p99_judge": "count", "p99_slow_rate": 0.01, "p99_slow_ratio_limit": 3, "min_slow_count": 3}, "slow_layer": {"solve_baseline": 0.9, "label_lag_min": 0, "slow_window_max_min": 60, "judge": "cusum", "against": "stable", "noise": {"z": 4, "tau": 0.01, "se": 0, "tau_control": 0, "tail": "exact"}, "cusum": {"drop_pp": 5, "limit": 12}}, "recovery": {"half_open_trials": 5, "lock_on_escalate": true}}},
"signals": {"cost": {"mode": "off"}, "p99": {"on_fail": "hold"}},
"freeze": [{"zone": "UTC", "days": ["mon"], "from": "16:00", "to": "24:00"}], "approval_timeout_min": 60, "max_pct": {"pct": 1, "because": "x"}, "cost_baseline_usd": 0.01,
"versions": {"stable": {"model_id": "a", "temperature": 0, "params": {"k": 1}, "api_key_env": "KEY", "weight": 0.9}, "canary": {"model_id": "b", "base_url": "http://h", "weight": 0.1}, "allow_multiple_changes": "x"},
"source": {"prometheus": {"url_env": "P", "queries": {"canary": {"total": "b", "slow": "c"}, "stable": {"total": "d"}}, "headers": {"X-A": "${B}"}, "span_min": 1, "timeout_s": 5, "stale_min": 10}},
"target": {"config_api": {"url": "http://h/x", "mode": "template", "body": "{canary}", "unit": {"whole": 100, "places": 2}, "token_env": "T", "if_match": "off", "read_back_s": 0}},
"state": {"dir": "d", "in_target": false}, "on_complete": "keep", "notify": [{"slack": {"url_env": "S", "events": ["started"]}}, {"alertmanager": {"url_env": "A", "labels": {"a": "b"}}}],
"hooks": {"on_rollback": [{"http": {"url": "http://u", "method": "PUT"}}, {"http": {"...": null}}, {"exec": {"command": ["a"], "tries": 5}}]}}`

// wholes are what mutations begin with.
var wholes = []string{
	whole,
	`{"canary": {"target_service": "s", "steps": [{"pct": 1, "min_hold_min": 0}]},
"source": {"prometheus": {"url": "http://p", "preset": "vllm", "matchers": {"canary": "a=\"b\"", "stable": "a=\"c\""}, "queries": {"stable": {"solved": "d"}}}},
"target": {"git": {"files": [{"path": "a/b", "document": "kind=X", "canary": "x", "stable": "-", "unit": "percent"}], "mode": "branch", "work_branch": "w", "open_command": ["a"], "state_path": "s", "deadline_s": 5}}, "state": {"in_target": true}}`,
	`{"canary": {"target_service": "s", "steps": [{"pct": 1, "min_hold_min": 0}]},
"source": {"records": {"path": ["a"], "max_bad": 0.1, "timeout_s": 5}},
"target": {"etcd": {"endpoints": ["http://e:1"], "key": "k", "canary": "c", "stable": "s", "user_env": "U", "password_env": "P"}}}`,
	`{"canary": {"target_service": "s", "steps": [{"pct": 1, "min_hold_min": 0}]},
"target": {"haproxy": {"address": "h:1", "backend": "b", "total": 200}}, "on_complete": "keep"}`,
	`{"canary": {"target_service": "s", "steps": [{"pct": 1, "min_hold_min": 0}]},
"target": {"file": {"path": "w", "canary": "a", "stable": "b", "unit": "permille"}}, "on_complete": "swap"}`,
}

// someValues are what mutations put in, as JSON.
var someValues = []string{
	`null`, `true`, `0`, `1`, `-1`, `0.5`, `2.5`, `3.0`, `100`, `1e9`, `1e12`, `1e13`, `5270400`, `5270401`, `1000001`,
	`"x"`, `""`, `" "`, `"3"`, `"5m"`, `"50%"`, `"a\tb"`, `"A_B"`, `"a-b"`, `"observe"`, `"hold"`, `"24:00"`, `"24:01"`, `"9:00"`, `"23:59"`, `"Europe/Berlin"`, `"count"`, `"cusum"`, `"stable"`, `"exact"`, `0.49`,
	`"http://x"`, `"{canary}"`, `"a=\"b\""`, `"../x"`, `"-"`, `"template"`, `"branch"`, `"fraction"`, `"swap"`, `"PUT"`, `"a/b"`, `"${A}"`, `"${"`, `{"...": null}`, `{"whole": 3}`, `{"X-A": "b"}`, `{"total": "x"}`,
	`[]`, `[1]`, `["a"]`, `["time"]`, `["time", "time"]`, `["mon", "mon"]`, `[null]`, `[""]`, `{}`, `{"a": 1}`, `{"z": 3, "tau": 0}`, `{"z": 3}`, `{"drop_pp": 95, "limit": 1}`,
}

func fromJSON(t *rapid.T, text string) any {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// beyondSchema are the rules about keys together, and about texts, that a
// schema cannot say.
var beyondSchema = []string{ruleStepOrder, ruleLastStep, ruleOffRing, ruleSolveFloor, ruleSpanOrder, ruleJudgeUnset, ruleCusumDrop, ruleRouteOverlap, ruleBadSelector, ruleSameArm, ruleOffUnit, ruleTargetLacks}

// TestSchemaAgreesWithParserOnMutations: what the schema refuses the parser
// refuses, and what the parser refuses by a rule of structure the schema
// refuses.
func TestSchemaAgreesWithParserOnMutations(t *testing.T) {
	schema := compiled(t)
	rapid.Check(t, func(t *rapid.T) {
		doc := mutated(t)
		src, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		var n yaml.Node
		if err := yaml.Unmarshal(src, &n); err != nil {
			t.Fatal(err)
		}
		invalid := schema.Validate(plain(&n))
		_, list := Parse("canary.yaml", src)
		structure := slices.DeleteFunc(slices.Clone(list), func(f diag.Finding) bool {
			return slices.Contains(beyondSchema, f.Rule) || f.Rule == ruleUnknownWord && strings.Contains(f.Message, "no time zone")
		})
		if invalid != nil && len(list) == 0 || invalid == nil && len(structure) > 0 {
			t.Fatalf("%s\nthe schema says %v\nthe parser says %v", src, invalid, list)
		}
	})
}

// mutated is the whole file with one or two places set, removed, renamed or
// added to.
func mutated(t *rapid.T) any {
	doc := fromJSON(t, rapid.SampledFrom(wholes).Draw(t, "whole"))
	for range rapid.IntRange(1, 2).Draw(t, "mutations") {
		at := rapid.SampledFrom(holders(doc)).Draw(t, "at")
		value := fromJSON(t, rapid.SampledFrom(someValues).Draw(t, "value"))
		name := rapid.SampledFrom(append(specNames(), "bogus", "")).Draw(t, "name")
		switch m := at.(type) {
		case map[string]any:
			names := slices.Sorted(maps.Keys(m))
			if len(names) == 0 {
				m[name] = value
				continue
			}
			old := rapid.SampledFrom(names).Draw(t, "key")
			switch rapid.SampledFrom([]string{"set", "set", "remove", "rename", "add"}).Draw(t, "what") {
			case "set":
				m[old] = value
			case "remove":
				delete(m, old)
			case "rename":
				m[name] = m[old]
				delete(m, old)
			case "add":
				m[name] = value
			}
		case []any:
			if len(m) > 0 {
				m[rapid.IntRange(0, len(m)-1).Draw(t, "item")] = value
			}
		}
	}
	return doc
}

// holders returns the mappings and lists of a document, in a fixed order.
func holders(v any) []any {
	var out []any
	switch v := v.(type) {
	case map[string]any:
		out = append(out, v)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out = append(out, holders(v[name])...)
		}
	case []any:
		out = append(out, v)
		for _, item := range v {
			out = append(out, holders(item)...)
		}
	}
	return out
}

// specNames returns the names of all keys.
func specNames() []string {
	var names []string
	for _, k := range keys() {
		if _, name := splitPath(k.path); name != "[]" && name != "*" {
			names = append(names, name)
		}
	}
	return names
}

// TestSchemaKnowsEveryKey: nothing of the table is left out.
func TestSchemaKnowsEveryKey(t *testing.T) {
	var doc any
	if err := json.Unmarshal(Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	for i := range keys() {
		at := doc.(map[string]any)
		for _, part := range strings.Split(strings.NewReplacer("[]", ".[]").Replace(keys()[i].path), ".") {
			switch part {
			case "[]":
				at = at["items"].(map[string]any)
			case "*":
				at = at["additionalProperties"].(map[string]any)
			default:
				next, ok := at["properties"].(map[string]any)[part].(map[string]any)
				if !ok {
					t.Fatalf("the schema lacks %s", keys()[i].path)
				}
				at = next
			}
		}
		if at["description"] == "" {
			t.Errorf("%s has no description", keys()[i].path)
		}
	}
}
