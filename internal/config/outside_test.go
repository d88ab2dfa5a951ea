package config

import (
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/diag"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/trace"
)

// climbing is a file with steps of 1, 12.5 and 100 percent of a thousand slots.
const climbing = "canary:\n  target_service: chat\n  hash_ring_slots: 1000\n  steps: [{pct: 0.01, min_hold_min: 0}, {pct: 0.125, min_hold_min: 0}, {pct: 1, min_hold_min: 0}]\n"

func TestTargetsAreBound(t *testing.T) {
	fraction := Unit{1, 6}
	tests := []struct {
		name, target string
		want         Target
	}{
		{"file by default", "file: {path: weights.json}", Target{Kind: "file", File: &FileTarget{"weights.json", "versions.canary.weight", "versions.stable.weight", fraction}}},
		{"file", "file: {path: w, canary: a.b, stable: '-', unit: permille}", Target{Kind: "file", File: &FileTarget{"w", "a.b", "-", Unit{1000, 1}}}},
		{"config API by default", "config_api: {url: 'https://h/x'}", Target{Kind: "config_api", ConfigAPI: &ConfigAPITarget{
			URL: "https://h/x", TokenScheme: "Bearer", WriteMethod: "PUT", Mode: "put", ContentType: "application/json",
			Canary: "versions.canary.weight", Stable: "versions.stable.weight", Unit: fraction, IfMatch: "auto", StateAt: "state", Timeout: 10 * time.Second, ReadBack: 10 * time.Second,
		}}},
		{"config API by patch", "config_api: {url_env: U, token_env: T, token_scheme: '-', headers: {X-Tenant: '${TENANT}', N: 7}, read_url: 'http://r', write_url: 'http://w', mode: merge_patch, canary: c, stable: s, unit: {whole: 200}, if_match: weak, state_at: st, timeout_s: 0.5, read_back_s: 0}", Target{Kind: "config_api", ConfigAPI: &ConfigAPITarget{
			URLEnv: "U", TokenEnv: "T", TokenScheme: "-", Headers: map[string]string{"X-Tenant": "${TENANT}", "N": "7"}, ReadURL: "http://r", WriteURL: "http://w",
			WriteMethod: "PATCH", Mode: "merge_patch", ContentType: "application/merge-patch+json", Canary: "c", Stable: "s", Unit: Unit{200, 0},
			IfMatch: "weak", StateAt: "st", Timeout: 500 * time.Millisecond,
		}}},
		{"config API by template", "config_api: {url_env: U, mode: template, write_method: POST, content_type: text/plain, body: \"{canary}\\n{stable}\"}", Target{Kind: "config_api", ConfigAPI: &ConfigAPITarget{
			URLEnv: "U", TokenScheme: "Bearer", WriteMethod: "POST", Mode: "template", ContentType: "text/plain", Body: "{canary}\n{stable}",
			Canary: "versions.canary.weight", Stable: "versions.stable.weight", Unit: fraction, IfMatch: "auto", StateAt: "state", Timeout: 10 * time.Second, ReadBack: 10 * time.Second,
		}}},
		{"git by default", "git: {files: [{path: route.yaml}]}", Target{Kind: "git", Git: &GitTarget{
			Repo: ".", Remote: "origin", Files: []GitFile{{"route.yaml", "", "versions.canary.weight", "versions.stable.weight", fraction}}, Mode: "push",
			OpenCommand: []string{}, Deadline: 30 * time.Second,
		}}},
		{"git", "git: {repo: /r, remote: up, branch: main, files: [{path: a/b.yaml, document: kind=HTTPRoute, canary: c, stable: s, unit: {whole: 1000000}}, {path: v.json, unit: basis_points}], mode: branch, work_branch: w, open_command: [gh, pr, 1], author_name: A, author_email: a@b, sign: true, state_path: s.json, deadline_s: 60}", Target{Kind: "git", Git: &GitTarget{
			Repo: "/r", Remote: "up", Branch: "main", Files: []GitFile{{"a/b.yaml", "kind=HTTPRoute", "c", "s", Unit{1000000, 0}}, {"v.json", "", "versions.canary.weight", "versions.stable.weight", Unit{10000, 0}}},
			Mode: "branch", WorkBranch: "w", OpenCommand: []string{"gh", "pr", "1"}, AuthorName: "A", AuthorEmail: "a@b", Sign: true, StatePath: "s.json", Deadline: time.Minute,
		}}},
		{"etcd with the weight itself", "etcd: {endpoints: ['http://e:2379'], key: chat/weight}", Target{Kind: "etcd", Etcd: &EtcdTarget{Endpoints: []string{"http://e:2379"}, Key: "chat/weight", Unit: fraction, Timeout: 10 * time.Second}}},
		{"etcd with a document without stable", "etcd: {endpoints: ['http://e:2379', 'https://f'], key: k, canary: c, unit: {whole: 100, places: 3}, user_env: U, password_env: P}", Target{Kind: "etcd", Etcd: &EtcdTarget{
			Endpoints: []string{"http://e:2379", "https://f"}, Key: "k", Canary: "c", Stable: "-", Unit: Unit{100, 3}, UserEnv: "U", PasswordEnv: "P", Timeout: 10 * time.Second,
		}}},
		{"haproxy", "haproxy: {address: /run/h.sock, backend: llm}", Target{Kind: "haproxy", HAProxy: &HAProxyTarget{"/run/h.sock", "llm", "stable", "canary", 200, 10 * time.Second}}},
		{"unleash", "unleash: {url: 'https://u', token_env: T, feature: f, environment: e}", Target{Kind: "unleash", Unleash: &UnleashTarget{URL: "https://u", TokenEnv: "T", Project: "default", Feature: "f", Environment: "e", Timeout: 10 * time.Second}}},
		{"programs", "exec: {read: [./weight, get], write: [./weight, set], unit: percent, timeout_s: 5}", Target{Kind: "exec", Exec: &ExecTarget{[]string{"./weight", "get"}, []string{"./weight", "set"}, Unit{100, 2}, 5 * time.Second}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Line, tt.want.Col = 5, 10
			// whole percents, which every target holds
			got := parseOK(t, strings.Replace(climbing, "0.125", "0.12", 1)+"target: {"+tt.target+"}\n").Target
			if !reflect.DeepEqual(*got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
				for _, v := range []any{got.ConfigAPI, got.Git, got.Etcd} {
					t.Logf("%+v", v)
				}
			}
		})
	}
}

func TestSourcesAreBound(t *testing.T) {
	const matched = `preset: vllm, matchers: {canary: 'v="c"', stable: 'v="s"'}`
	tests := []struct {
		name, source string
		want         Source
	}{
		{"windows by default", "windows: {path: w}", Source{Kind: "windows", Paths: []string{"w"}, Span: time.Minute, Settle: 15 * time.Second, MaxBad: release.MustRatio("0.001"), Timeout: 30 * time.Second}},
		{"records of a second", "records: {path: r, span_min: 0.05}", Source{Kind: "records", Paths: []string{"r"}, Span: 3 * time.Second, Settle: 3 * time.Second, MaxBad: release.MustRatio("0.001"), Timeout: 30 * time.Second}},
		{"records", "records: {path: [a, b], span_min: 5, settle_min: 2, stale_min: 30, max_bad: 0.02, timeout_s: 5, map: {ts: time}, arms: {canary: v2}}", Source{
			Kind: "records", Paths: []string{"a", "b"}, Map: map[string]any{"ts": "time"}, Arms: map[string]any{"canary": "v2"},
			Span: 5 * time.Minute, Settle: 2 * time.Minute, Stale: 30 * time.Minute, MaxBad: release.MustRatio("0.02"), Timeout: 5 * time.Second,
		}},
		{"prometheus", "prometheus: {url_env: P, token_env: T, headers: {X-Scope-OrgID: a}, queries: {canary: {total: a, p99_ms: b}, stable: {total: c}}}", Source{
			Kind: "prometheus", Span: time.Minute, Settle: time.Minute, Stale: 10 * time.Minute, Timeout: 10 * time.Second, URLEnv: "P", TokenEnv: "T",
			Headers: map[string]string{"X-Scope-OrgID": "a"}, Matchers: map[release.Arm]string{},
			Queries: map[release.Arm]FieldText{release.Canary: {"total": "a", "p99_ms": "b"}, release.Stable: {"total": "c"}},
		}},
		{"prometheus of long windows is not lost between two of them", "prometheus: {url_env: P, " + matched + ", span_min: 15, settle_min: 2}", Source{
			Kind: "prometheus", Span: 15 * time.Minute, Settle: 2 * time.Minute, Stale: 47 * time.Minute, Timeout: 10 * time.Second, URLEnv: "P", Preset: "vllm",
			Matchers: map[release.Arm]string{release.Canary: `v="c"`, release.Stable: `v="s"`}, Queries: map[release.Arm]FieldText{},
		}},
		{"prometheus that is never lost", "prometheus: {url_env: P, " + matched + ", stale_min: 0}", Source{
			Kind: "prometheus", Span: time.Minute, Settle: time.Minute, Timeout: 10 * time.Second, URLEnv: "P", Preset: "vllm",
			Matchers: map[release.Arm]string{release.Canary: `v="c"`, release.Stable: `v="s"`}, Queries: map[release.Arm]FieldText{},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := parseOK(t, minimal+"source: {"+tt.source+"}\n").Source; !reflect.DeepEqual(*got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", *got, tt.want)
			}
		})
	}
}

func TestChannelsAndHooksAreBound(t *testing.T) {
	c := parseOK(t, minimal+`notify:
  - webhook: {url_env: W, secret_env: S, token_env: T, headers: {X-A: b}, events: [rolled_back, locked], timeout_s: 3}
  - dingtalk: {url_env: D, keyword: canary}
  - alertmanager: {url: "http://a:9093", labels: {team: llm}}
hooks:
  on_rollback:
    - http: { ... }
    - http: {name: purge, url: "https://cache/purge", method: DELETE, headers: {X-A: b}, token_env: T, body: "{}", tries: 2, timeout_s: 7}
    - exec: {command: [make, purge]}
`)
	notify := []Channel{
		{Kind: "webhook", Line: 5, Col: 5, URLEnv: "W", SecretEnv: "S", TokenEnv: "T", Headers: map[string]string{"X-A": "b"}, Events: []string{"rolled_back", "locked"}, Timeout: 3 * time.Second},
		{Kind: "dingtalk", Line: 6, Col: 5, URLEnv: "D", Keyword: "canary", Timeout: 10 * time.Second},
		{Kind: "alertmanager", Line: 7, Col: 5, URL: "http://a:9093", Labels: map[string]string{"team": "llm"}, Timeout: 10 * time.Second},
	}
	hooks := []Hook{
		{Kind: "http", Name: "purge", Line: 11, Col: 7, URL: "https://cache/purge", Method: "DELETE", Headers: map[string]string{"X-A": "b"}, TokenEnv: "T", Body: "{}", Tries: 2, Timeout: 7 * time.Second},
		{Kind: "exec", Line: 12, Col: 7, Command: []string{"make", "purge"}, Tries: 5, Timeout: 30 * time.Second},
	}
	if !reflect.DeepEqual(c.Notify, notify) {
		t.Errorf("notify %+v\nwant   %+v", c.Notify, notify)
	}
	if !reflect.DeepEqual(c.Hooks, hooks) {
		t.Errorf("hooks %+v\nwant  %+v", c.Hooks, hooks)
	}
}

func TestPublishedFileIsBound(t *testing.T) {
	c := parseOK(t, string(published(t)))
	if c.Target.File.Path != "weights.json" || c.Source.Paths[0] != "windows/*.jsonl" || c.State != (StateStore{Dir: ".canaryctl"}) ||
		len(c.Notify) != 1 || c.Notify[0].URLEnv != "CANARY_WEBHOOK" || len(c.Hooks) != 0 {
		t.Errorf("%+v", c)
	}
}

func TestOutsideFinds(t *testing.T) {
	prom := func(rest string) string { return "source: {prometheus: {url_env: P, " + rest + "}}\n" }
	api := func(rest string) string { return "target: {config_api: {url_env: U, " + rest + "}}\n" }
	tests := []struct{ name, src, want, says string }{
		{"mistyped key of a target", "target: {file: {pth: w}}\n", "5:10 missing-key, 5:17 unknown-key", `did you mean "path"?`},
		{"key of another target", "target: {file: {path: w, backend: llm}}\n", "5:26 unknown-key", "it belongs under target.haproxy"},
		{"mistyped unit", "target: {file: {path: w, unit: percnt}}\n", "5:32 unknown-word", `did you mean "percent"?`},
		{"unit as a number", "target: {file: {path: w, unit: 100}}\n", "5:32 unknown-word", "{whole: 100, places: 0}"},
		{"unit as a list", "target: {file: {path: w, unit: [100]}}\n", "5:32 wrong-type", "want a word or a mapping, not a list"},
		{"unit of nothing", "target: {file: {path: w, unit: {whole: 0}}}\n", "5:40 out-of-range", "at least 1"},
		{"unit with a mistyped key", "target: {file: {path: w, unit: {hole: 100}}}\n", "5:26 missing-key, 5:33 unknown-key", `did you mean "whole"?`},
		{"seconds with a unit", "target: {exec: {read: [a], write: [b], timeout_s: 2m}}\n", "5:51 wrong-unit", "write 120: the unit is seconds"},
		{"milliseconds", "target: {exec: {read: [a], write: [b], timeout_s: 500ms}}\n", "5:51 wrong-unit", "write 0.5"},
		{"seconds beyond an hour", "target: {exec: {read: [a], write: [b], timeout_s: 3601}}\n", "5:51 out-of-range", "at most 3600"},
		{"both addresses", "target: {config_api: {url: 'http://h', url_env: U}}\n", "5:10 one-of", "exactly one of the keys url and url_env"},
		{"no address", "notify: [{slack: {events: [started]}}]\n", "5:11 one-of", "slack needs exactly one"},
		{"mistyped event", "notify: [{slack: {url_env: S, events: [rolledback]}}]\n", "5:40 unknown-word", `did you mean "rolled_back"?`},
		{"both weights at one place", "target: {file: {path: w, canary: a, stable: a}}\n", "5:34 same-arm", "both at"},
		{"selector that is none", "target: {file: {path: w, canary: a..b, stable: 'a['}}\n", "5:34 bad-selector, 5:48 bad-selector", "not a selector"},
		{"selectors of a git file that are none", "target: {git: {files: [{path: w, document: kind, canary: 'a[x]'}]}}\n", "5:44 bad-selector, 5:58 bad-selector", ""},
		{"selectors of etcd and of the state that are none", "target: {config_api: {url_env: U, state_at: 'a b'}}\n", "5:45 bad-selector", ""},
		{"both servers one", "target: {haproxy: {address: 'h:1', backend: b, canary: stable}}\n", "5:56 same-arm", ""},
		{"share that a balancer rounds", "target: {haproxy: {address: 'h:1', backend: b, total: 100}}\n", "4:47 off-unit", "pct 0.125 of step 2 cannot be held exactly by the target haproxy: its finest step is 0.01"},
		{"share that a balancer cannot hold has neighbours that the ring holds", "target: {haproxy: {address: 'h:1', backend: b, total: 250}}\n", "4:17 off-unit, 4:47 off-unit", "the nearest shares that it holds are 0.124 and 0.128"},
		{"share that whole percents cannot hold", "target: {file: {path: w, unit: {whole: 100}}}\n", "4:47 off-unit", "or give it a finer unit"},
		{"share that Unleash's clients would round", "target: {unleash: {url: 'https://u', token_env: T, feature: f, environment: e}}\n", "4:47 off-unit", "pct 0.125 of step 2 cannot be held exactly by the target unleash: its finest step is 0.01"},
		{"share that one of two files cannot hold", "target: {git: {files: [{path: a}, {path: b.yaml, unit: {whole: 10}}]}}\n", "4:17 off-unit, 4:47 off-unit", "git, in b.yaml"},
		{"share below the finest step", "target: {etcd: {endpoints: ['http://e'], key: k, unit: {whole: 8}}}\n", "4:17 off-unit", "the nearest share that it holds is 0.125"},
		{"a broken unit is blamed once", "target: {file: {path: w, unit: {whole: 10, places: 99}}}\n", "5:52 out-of-range", ""},
		{"a broken total is blamed once", "target: {haproxy: {address: 'h:1', backend: b, total: 1000}}\n", "5:55 out-of-range", ""},
		{"mistyped placeholder", api("mode: template, body: '{\"c\": {canary}, \"s\": {stabel}}'"), "5:57 unknown-word", "did you mean {stable}?"},
		{"unknown placeholder", api("mode: template, body: '{canary} {user}'"), "5:57 unknown-word", "filled in are {canary} {stable}"},
		{"header with half a variable", api("headers: {A: '${B'}"), "5:48 wrong-type", "${NAME}"},
		{"header twice", api("headers: {x-a: b, X-A: c}"), "5:53 duplicate-key", "no case"},
		{"header that is nothing", api("headers: {A: }"), "5:45 wrong-type", "headers: want a string"},
		{"token twice", api("token_env: T, headers: {authorization: 'Bearer ${T}'}"), "5:59 one-of", "token_env"},
		{"token twice in a hook", "hooks: {on_rollback: [{http: {url_env: U, token_env: T, headers: {Authorization: '${T}'}}}]}\n", "5:67 one-of", "token_env"},
		{"state in a file", "target: {file: {path: w}}\nstate: {in_target: true}\n", "6:20 target-lacks", "the target file keeps no state"},
		{"state in no target", "state: {in_target: true}\n", "5:20 target-lacks", "no target keeps no state"},
		{"state in a template", api("mode: template, body: '{canary}'") + "state: {in_target: true}\n", "6:20 target-lacks", "template"},
		{"swap in git", "target: {git: {files: [{path: a}]}}\non_complete: swap\n", "6:14 target-lacks", "the target git holds no versions document"},
		{"swap without stable", "target: {file: {path: a, stable: '-'}}\non_complete: swap\n", "6:14 target-lacks", "no stable version"},
		{"a broken target is blamed once", "target: []\non_complete: swap\nstate: {in_target: true}\n", "5:9 wrong-type", ""},
		{"path out of the repository", "target: {git: {files: [{path: a/../../b}]}}\n", "5:31 wrong-type", "inside the repository"},
		{"path from the root", "target: {git: {files: [{path: /etc/x}]}}\n", "5:31 wrong-type", ""},
		{"two lines for a balancer", "target: {haproxy: {address: 'h:1', backend: \"a\\nb\"}}\n", "5:45 wrong-type", "without blanks"},
		{"query of no figure", prom("queries: {canary: {totl: x}}"), "5:45 missing-key, 5:54 unknown-key", `did you mean "total"?`},
		{"query of no arm", prom("queries: {canry: {total: x}}"), "5:35 missing-key, 5:45 unknown-key", `did you mean "canary"?`},
		{"neither queries nor preset", prom("span_min: 1"), "5:10 missing-key", "or a preset"},
		{"unknown preset", prom("preset: vlm, matchers: {canary: 'a=\"b\"', stable: 'a=\"c\"'}"), "5:43 unknown-word", `did you mean "vllm"?`},
		{"the canary's query for both", prom("queries: {canary: {total: 'sum(x)', solved: y}, stable: {total: ' sum(x) ', solved: z}}"), "5:61 same-arm", "for total are the same"},
		{"the canary's matchers for both", prom(`preset: vllm, matchers: {canary: 'a = "b" , c=~"d",', stable: 'c=~"d",a="b"'}`), "5:68 same-arm", ""},
		{"lost between any two windows", prom("queries: {canary: {total: x}}, span_min: 5, stale_min: 6"), "5:90 span-order", "stale_min 6 is not longer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, list := Parse("canary.yaml", []byte(climbing+tt.src))
			if got := found(list); cfg != nil || got != tt.want {
				t.Errorf("found %s\nwant  %s", got, tt.want)
			}
			text := ""
			for _, f := range list {
				text += f.Render([]byte(climbing + tt.src))
			}
			if !strings.Contains(text, tt.says) {
				t.Errorf("nothing says %q:\n%s", tt.says, text)
			}
		})
	}
}

func TestOutsideAccepts(t *testing.T) {
	for _, src := range []string{
		"source: {prometheus: {url_env: P, preset: litellm, matchers: {canary: 'v=\"a,b\",\"k8s.x\"!=\"\\\"\"', stable: 'v!~\"a,b\"'}}}\n",
		"target: {config_api: {url_env: U, headers: {Authorization: 'Token ${T}', X: '$5 $'}}}\non_complete: swap\nstate: {in_target: true}\n",
		"target: {git: {files: [{path: a/.b/..c/d.yaml}, {path: ./x}]}}\nstate: {in_target: true}\n",
		"target: {haproxy: {address: 'ipv4@127.0.0.1:9999', backend: llm}}\n",
		"target: {haproxy: {address: './h.sock', backend: llm}}\n",
	} {
		parseOK(t, climbing+src)
	}
}

// TestUnitsAreExact: a share is refused if and only if it is not a whole number
// of the target's smallest parts, reckoned in integers, and the shares that the
// hint names are accepted.
func TestUnitsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ring := rapid.SampledFrom([]int64{100, 128, 200, 1000, 10_000}).Draw(t, "ring")
		slots := rapid.Int64Range(1, ring-1).Draw(t, "slots")
		unit := Unit{rapid.Int64Range(1, 300).Draw(t, "whole"), rapid.IntRange(0, 3).Draw(t, "places")}
		file := func(pct string) string {
			return fmt.Sprintf("canary: {target_service: s, hash_ring_slots: %d, steps: [{pct: %s, min_hold_min: 0}, {pct: 1, min_hold_min: 0}]}\ntarget: {file: {path: w, unit: {whole: %d, places: %d}}}\n",
				ring, pct, unit.Whole, unit.Places)
		}
		parts := unit.Whole
		for range unit.Places {
			parts *= 10
		}
		_, list := Parse("f", []byte(file(decimal(big.NewRat(slots, ring)))))
		if exact := slots*parts%ring == 0; exact != (len(list) == 0) {
			t.Fatalf("%d of %d slots in %+v: %v", slots, ring, unit, list)
		}
		for _, f := range list {
			if f.Rule != ruleOffUnit {
				t.Fatal(f)
			}
			named, _, _ := strings.Cut(strings.TrimLeft(f.Hint, "abcdefghijklmnopqrstuvwxyz "), ";")
			for _, pct := range strings.Split(named, " and ") {
				if pct == "1" {
					continue // the second step
				}
				if _, again := Parse("f", []byte(file(pct))); len(again) > 0 {
					t.Fatalf("the hint %q names %s: %v", f.Hint, pct, again)
				}
			}
		}
	})
}

// TestQueriesAreTheFiguresOfAWindow holds the names of queries against those
// that window files have.
func TestQueriesAreTheFiguresOfAWindow(t *testing.T) {
	var want []string
	for _, f := range []trace.Field{
		trace.FieldTotal, trace.FieldJudged, trace.FieldSolved, trace.FieldViolations, trace.FieldTransfers,
		trace.FieldCost, trace.FieldCostMean, trace.FieldP99, trace.FieldSlow,
		trace.FieldTTFTOf, trace.FieldTTFTP99, trace.FieldTTFTSlow, trace.FieldITLOf, trace.FieldITL, trace.FieldStreams, trace.FieldAborted,
		trace.FieldStatusOf, trace.FieldErrors, trace.FieldServerErrors, trace.FieldKVCache,
	} {
		want = append(want, f.String())
	}
	if got := specOf(promPath + ".queries.*").order; !slices.Equal(got, want) {
		t.Errorf("queries %v, figures %v", got, want)
	}
}

// TestPresetWordsArePresets holds the words of preset against those that have
// queries.
func TestPresetWordsArePresets(t *testing.T) {
	var want []string
	for _, p := range trace.Presets() {
		want = append(want, p.Name)
		for field := range p.Queries() {
			if !slices.Contains(specOf(promPath+".queries.*").order, field) {
				t.Errorf("%s asks for %s, which is no figure", p.Name, field)
			}
		}
	}
	if !slices.Equal(presetWords, want) {
		t.Errorf("words %v, presets %v", presetWords, want)
	}
}

func TestLintOfTokensOverPlainHTTP(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{"webhook", "notify: [{webhook: {url: 'http://h/x', token_env: T}}]\n", "4:26 plain-http"},
		{"webhook without a token", "notify: [{webhook: {url: 'http://h/x', secret_env: T}}]\n", ""},
		{"https", "notify: [{webhook: {url: 'https://h/x', token_env: T}}]\n", ""},
		{"this machine", "notify: [{alertmanager: {url: 'http://[::1]:9093', token_env: T}}, {alertmanager: {url: 'http://localhost', token_env: T}}, {alertmanager: {url: 'http://127.1.2.3', token_env: T}}]\n", ""},
		{"not this machine", "notify: [{alertmanager: {url: 'http://localhost.example', token_env: T}}]\n", "4:31 plain-http"},
		{"hook with a key in a header", "hooks: {on_rollback: [{http: {url: 'http://h', headers: {X-Api-Key: '${K}'}}}]}\n", "4:36 plain-http"},
		{"hook with another header", "hooks: {on_rollback: [{http: {url: 'http://h', headers: {X-Tenant: '${K}'}}}]}\n", ""},
		{"both addresses of a config API", "target: {config_api: {url: 'https://h', read_url: 'http://r', write_url: 'http://w', token_env: T}}\n", "4:51 plain-http, 4:74 plain-http"},
		{"etcd", "target: {etcd: {endpoints: ['http://e:1', 'http://127.0.0.1:1'], key: k, user_env: U, password_env: P}}\n", "4:29 plain-http"},
		{"etcd without a user", "target: {etcd: {endpoints: ['http://e:1'], key: k}}\n", ""},
		{"headers from the environment are no secrets in the file", "target: {config_api: {url: 'https://h', headers: {Authorization: 'Bearer ${TOKEN_OF_API}'}}}\n", ""},
		{"a header's secret in the file is one", "target: {config_api: {url: 'https://h', headers: {Authorization: 'Bearer abcdefgh1'}}}\n", "4:67 inline-key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := found(secretsOnly(parseOK(t, minimal+tt.src).Lint())); got != tt.want {
				t.Errorf("found %s, want %s", got, tt.want)
			}
		})
	}
}

// secretsOnly returns the findings about secrets.
func secretsOnly(list diag.List) diag.List {
	return append(only(list, rulePlainHTTP), only(list, ruleInlineKey)...)
}

// TestTableIsSound: what walk, schema and reference take for granted.
func TestTableIsSound(t *testing.T) {
	for i := range keys() {
		k := &keys()[i]
		switch {
		case k.kind == kindSeconds && k.max == "":
			t.Errorf("%s has no end", k.path)
		case (k.kind == kindEnum || k.kind == kindUnit) && len(k.words) == 0:
			t.Errorf("%s has no words", k.path)
		case k.kind == kindPairs && (k.names == nil || k.form == nil):
			t.Errorf("%s has no forms", k.path)
		case k.kind == kindNames && !slices.Contains(nameRows, k.path) && !ofScenes(k.path):
			t.Errorf("%s is not in nameRows", k.path)
		case k.when != nil && specOf(k.path).parent.children[k.when.key] == nil:
			t.Errorf("%s: there is no %s beside it", k.path, k.when)
		case k.doc == "" || !strings.HasSuffix(k.doc, "."):
			t.Errorf("%s: doc %q", k.path, k.doc)
		}
		if k.def != "" && k.kind != kindList {
			k.fallback() // panics where the default is not of its key
		}
	}
}

func TestAStateInProposalsIsRefused(t *testing.T) {
	_, list := Parse("canary.yaml", []byte(climbing+"target: {git: {mode: branch, files: [{path: route.yaml}]}}\nstate: {in_target: true}\n"))
	if !list.HasErrors() || !strings.Contains(list[0].Message, "count only once they are merged") {
		t.Errorf("findings %v", list)
	}
}
