package target

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
)

const yamlVersions = `# who serves
versions:
    stable:              # what serves now
        model_id: "order-7b"   # quoted
        prompt_version: '41'
        params: {temperature: 0.20, stop: [a, b]}
        weight: 0    # all on the canary
    canary:
        weight: 1.0
        prompt_version: '42'
        model_id: order-8b
        params:
            stop: [a, b]
            temperature: 0.7
other: [1, 2]   # not ours
`

func TestSwapExchangesTheVersionsAndKeepsTheLayout(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg           config.FileTarget
		before, after string
	}{
		"json with the same keys": {
			config.FileTarget{},
			`{"versions": {
  "stable": {"weight": 0.00, "model_id": "m-1",  "params": {"t": 0.20}},
  "canary": {"model_id": "m\/2", "params": {"t": 1e0, "x": null}, "weight": 1}
}, "id": 12345678901234567890}` + "\n",
			`{"versions": {
  "stable": {"weight": 1, "model_id": "m\/2",  "params": {"t": 1e0, "x": null}},
  "canary": {"model_id": "m-1", "params": {"t": 0.20}, "weight": 0}
}, "id": 12345678901234567890}` + "\n",
		},
		"json with other keys exchanges the objects whole": {
			config.FileTarget{},
			"\xef\xbb\xbf" + `{"versions":{"canary":{"model":"new","extra":[1,{"a":2}],"weight":1},"stable":{"weight":0, "model":"old"}}}`,
			"\xef\xbb\xbf" + `{"versions":{"canary":{"weight":0, "model":"old"},"stable":{"model":"new","extra":[1,{"a":2}],"weight":1}}}`,
		},
		"weights by other names, in percent": {
			config.FileTarget{Canary: "b.share", Stable: "a.pct", Unit: config.Unit{Whole: 100}},
			`{"a":{"pct":"0","image":"v1"},"b":{"share":100,"image":"v2"}}`,
			`{"a":{"pct":"100","image":"v2"},"b":{"share":0,"image":"v1"}}`,
		},
		"yaml with comments, quotes and nested values": {
			config.FileTarget{Path: "v.yaml"}, yamlVersions,
			strings.NewReplacer(
				`"order-7b"`, `"order-8b"`, "model_id: order-8b", "model_id: order-7b", "'41'", "'42'", "'42'", "'41'",
				"0.20", "0.7", "temperature: 0.7", "temperature: 0.20", "weight: 0 ", "weight: 1 ", "weight: 1.0", "weight: 0",
			).Replace(yamlVersions),
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTestFile(t, tc.cfg, tc.before)
			was, err := f.Versions(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Swap(t.Context(), was, Change{Token: 7}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.after, content(t, f.path)); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
			is, err := f.Versions(t.Context())
			if err != nil || is.Stable != was.Canary || is.Canary != was.Stable || !is.Weight.IsZero() {
				t.Errorf("before %+v, after %+v: %v", was, is, err)
			}
			// Asked again for the same, it undoes nothing.
			if err := f.Swap(t.Context(), was, Change{Token: 7}); !isA[*ConflictError](err) || content(t, f.path) != tc.after {
				t.Errorf("asked again: %v", err)
			}
			if err := f.Swap(t.Context(), is, Change{Token: 6}); !isA[*ConflictError](err) {
				t.Errorf("an old holder: %v", err)
			}
			if err := f.Swap(t.Context(), is, Change{Token: 8}); err != nil {
				t.Fatal(err)
			}
			back, err := f.Versions(t.Context())
			if err != nil || back.Stable != was.Stable || back.Canary != was.Canary {
				t.Errorf("and back: %+v, %v", back, err)
			}
		})
	}
}

func TestSwapRefusesWhatItCannotExchange(t *testing.T) {
	const head = "versions:\n  stable: "
	for name, tc := range map[string]struct {
		cfg         config.FileTarget
		text, wants string
	}{
		"nothing but weights": {config.FileTarget{}, `{"versions":{"stable":{"weight":0},"canary":{"weight":1}}}`, "nothing but the weight"},
		"the same version":    {config.FileTarget{}, `{"versions":{"stable":{"weight":0,"m":1},"canary":{"m":1,"weight":1}}}`, "nothing but the weight"},
		"no stable": {
			config.FileTarget{Canary: "versions.canary.weight", Stable: "-"}, `{"versions":{"canary":{"weight":1,"m":1}}}`, "stands nowhere",
		},
		"two numbers in one mapping": {config.FileTarget{Canary: "canary", Stable: "stable"}, `{"canary":1,"stable":0}`, "two mappings"},
		"items of a list": {
			config.FileTarget{Canary: "refs[name=canary].weight", Stable: "refs[name=stable].weight"},
			`{"refs":[{"name":"stable","weight":0},{"name":"canary","weight":1}]}`, "by keys alone",
		},
		"yaml with other keys":         {config.FileTarget{}, head + "{weight: 0, m: a}\n  canary: {weight: 1, m: b, p: c}\n", "(p)"},
		"yaml with a text over lines":  {config.FileTarget{}, head + "\n    weight: 0\n    p: |\n      two\n      lines\n  canary: {weight: 1, p: one}\n", "more than one line"},
		"yaml with a number and text":  {config.FileTarget{}, head + "{weight: 0, p: 41}\n  canary: {weight: 1, p: forty-two}\n", "number"},
		"yaml with another list":       {config.FileTarget{}, head + "{weight: 0, p: [1]}\n  canary: {weight: 1, p: [2]}\n", "list"},
		"yaml with an anchor":          {config.FileTarget{}, head + "{weight: 0, p: &a x}\n  canary: {weight: 1, p: y}\nz: *a\n", "anchor"},
		"yaml with one that is merged": {config.FileTarget{}, "b: &b {p: 1}\n" + head + "{weight: 0, <<: *b}\n  canary: {weight: 1, p: y}\n", "anchor"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTestFile(t, tc.cfg, tc.text)
			_, err := f.Versions(t.Context())
			r, refused := errors.AsType[*RefusedError](err)
			if !refused || !strings.Contains(err.Error(), tc.wants) || r.Hint == "" {
				t.Fatalf("got %v, want a refusal with %q", err, tc.wants)
			}
			now := mustRead(t, f)
			if err := f.Swap(t.Context(), Versions{Reading: now}, Change{}); err == nil || content(t, f.path) != tc.text {
				t.Errorf("it was written: %v\n%s", err, content(t, f.path))
			}
		})
	}
}

func TestSwapIsLostToWhoeverWasFaster(t *testing.T) {
	f := newTestFile(t, config.FileTarget{}, `{"versions":{"stable":{"weight":0,"m":"a"},"canary":{"weight":1,"m":"b"}}}`)
	was, err := f.Versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, rival := range []string{
		`{"versions":{"stable":{"weight":1,"m":"a"},"canary":{"weight":0,"m":"b"}}}`, // rolled back
		`{"versions":{"stable":{"weight":0,"m":"c"},"canary":{"weight":1,"m":"b"}}}`, // another stable
	} {
		if err := os.WriteFile(f.path, []byte(rival), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := f.Swap(t.Context(), was, Change{}); !isA[*ConflictError](err) || content(t, f.path) != rival {
			t.Errorf("%s: %v", rival, err)
		}
	}
}

// patching is an API whose PATCH does what the RFCs say.
type patching struct {
	api
	bodies []string
}

func (p *patching) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPatch {
		p.api.ServeHTTP(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	p.bodies = append(p.bodies, string(body))
	var doc any
	if err := json.Unmarshal(p.doc, &doc); err != nil {
		panic(err)
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/merge-patch") {
		var patch any
		if err := json.Unmarshal(body, &patch); err != nil {
			panic(err)
		}
		doc = mergePatched(doc, patch)
	} else if !jsonPatched(doc, body) {
		w.WriteHeader(http.StatusConflict)
		return
	}
	out, _ := json.Marshal(doc)
	p.set(out)
}

// mergePatched is the pseudocode of RFC 7396, section 2.
func mergePatched(target, patch any) any {
	object, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out, ok := target.(map[string]any)
	if !ok {
		out = map[string]any{}
	}
	for k, v := range object {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = mergePatched(out[k], v)
		}
	}
	return out
}

// jsonPatched does test, add and replace of RFC 6902 within objects.
func jsonPatched(doc any, body []byte) bool {
	var ops []operation
	if err := json.Unmarshal(body, &ops); err != nil {
		panic(err)
	}
	for _, op := range ops {
		parts := strings.Split(op.Path, "/")[1:]
		at := doc.(map[string]any)
		for _, part := range parts[:len(parts)-1] {
			at = at[part].(map[string]any)
		}
		var value any
		if err := json.Unmarshal(op.Value, &value); err != nil {
			panic(err)
		}
		last := parts[len(parts)-1]
		if op.Op == "test" && !cmp.Equal(at[last], value) {
			return false
		}
		if op.Op != "test" {
			at[last] = value
		}
	}
	return true
}

func TestAPISwapsInOneWriteInEveryMode(t *testing.T) {
	const before = `{"a":1,"versions":{"stable":{"weight":0,"model":"old","gone":true,"params":{"t":1,"u":2}},"canary":{"weight":1,"model":"new","params":{"t":3}}},"state":"s0"}`
	const after = `{"a":1,"versions":{"stable":{"weight":1,"model":"new","params":{"t":3}},"canary":{"weight":0,"model":"old","gone":true,"params":{"t":1,"u":2}}},"state":"s1"}`
	for _, mode := range []string{"put", "merge_patch", "json_patch"} {
		t.Run(mode, func(t *testing.T) {
			p := &patching{api: api{doc: []byte(before)}}
			server := httptest.NewServer(p)
			t.Cleanup(server.Close)
			x := dialAPI(t, config.ConfigAPITarget{URL: server.URL, TokenEnv: "API_TOKEN", Mode: mode}, Options{KeepState: true})
			was, err := x.Versions(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := x.Swap(t.Context(), was, Change{Key: "k", State: []byte("s1")}); err != nil {
				t.Fatal(err)
			}
			if n := len(p.requests) + len(p.bodies); n != 1 {
				t.Errorf("%d writes", n)
			}
			var got, want any
			_ = json.Unmarshal(p.doc, &got)
			_ = json.Unmarshal([]byte(after), &want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
			if err := x.Swap(t.Context(), was, Change{Key: "k"}); !isA[*ConflictError](err) {
				t.Errorf("asked again: %v", err)
			}
			is, err := x.Versions(t.Context())
			if err != nil || is.Stable != was.Canary || is.Canary != was.Stable || string(is.State) != "s1" {
				t.Errorf("reads %+v: %v", is, err)
			}
		})
	}
}

func TestAPISwapIsFencedByTheETag(t *testing.T) {
	a := &api{doc: []byte(`{"versions":{"stable":{"weight":0,"m":"a"},"canary":{"weight":1,"m":"b"}}}`)}
	x := newTestAPI(t, a, config.ConfigAPITarget{})
	was, err := x.Versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a.onWrite = func(n int) {
		if n == 1 { // between our reading and our write
			a.mu.Lock()
			a.set([]byte(strings.Replace(string(a.doc), `"m":"a"`, `"m":"c"`, 1)))
			a.mu.Unlock()
		}
	}
	if err := x.Swap(t.Context(), was, Change{Token: 5, Overwrite: true}); !isA[*ConflictError](err) || strings.Contains(string(a.doc), `"canary":{"weight":0`) {
		t.Errorf("%v: %s", err, a.doc)
	}
	if got := a.requests[0].header.Get("Canaryctl-Token"); got != "5" {
		t.Errorf("token %q", got)
	}
}

func TestAPITemplateSwapsNothing(t *testing.T) {
	a := &api{}
	x := newTestAPI(t, a, config.ConfigAPITarget{Mode: "template", Body: `{"w":{canary}}`})
	if _, err := x.Versions(t.Context()); !isA[*RefusedError](err) {
		t.Error(err)
	}
	if err := x.Swap(t.Context(), Versions{}, Change{}); !isA[*RefusedError](err) || len(a.requests) != 0 {
		t.Error(err)
	}
}

// TestSwapOfAnyJSONIsAnExchange: whatever two versions hold, afterwards each
// holds what the other did, twice is the original but for the weights, and
// nothing beside them has changed.
func TestSwapOfAnyJSONIsAnExchange(t *testing.T) {
	value := rapid.SampledFrom([]string{`1`, `"x"`, `null`, `true`, `[1, {"weight": 3}]`, `{"a" : 1}`, `1e2`, `"A\/"`, `{}`})
	version := func(weight string) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			parts := []string{`"weight":` + weight}
			for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"m", "p", "q", `a.b`, `k\"`}), 0, 4, rapid.ID[string]).Draw(t, "keys") {
				parts = append(parts, fmt.Sprintf("\"%s\" :%s", key, value.Draw(t, key)))
			}
			return "{" + strings.Join(rapid.Permutation(parts).Draw(t, "order"), " , ") + "}"
		})
	}
	d, err := newDocument("x", "", "", config.Unit{})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		stable, canary := version("0").Draw(t, "stable"), version("1").Draw(t, "canary")
		src := []byte(fmt.Sprintf(`{"z":[ 1 ],"versions": {"stable":%s ,"canary": %s},"y":"\/"}`, stable, canary))
		s, c, err := d.versions(src)
		if err != nil {
			t.Fatal(err)
		}
		out, err := d.exchange(src, 100)
		if s == c {
			if err == nil {
				t.Fatal("the same twice was exchanged")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		s2, c2, _ := d.versions(out)
		if w, err := d.read(out, 100); err != nil || !w.IsZero() || s2 != c || c2 != s {
			t.Fatalf("%s -> %s: %v", src, out, err)
		}
		if !strings.HasPrefix(string(out), `{"z":[ 1 ],"versions": {"stable":{`) || !strings.HasSuffix(string(out), `},"y":"\/"}`) {
			t.Fatalf("%s -> %s", src, out)
		}
		back, err := d.exchange(out, 100)
		if err == nil {
			back, err = d.write(back, release.Weight{Slots: 100, Ring: 100})
		}
		if err != nil || string(back) != string(src) {
			t.Fatalf("%s -> %s: %v", src, back, err)
		}
	})
}
