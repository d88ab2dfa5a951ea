package splice

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"
)

func selector(t interface{ Fatalf(string, ...any) }, text string) Selector {
	s, err := ParseSelector(text)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return s
}

func document(t interface{ Fatalf(string, ...any) }, text string) Document {
	d, err := ParseDocument(text)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return d
}

const routes = `# traffic of the model
apiVersion: gateway.networking.k8s.io/v1
kind: Service
metadata: {name: llm}
---
kind: HTTPRoute            # v1
metadata:
    name: llm
    annotations: {"example.com/weight": '7', plain: &x 3}
spec:
    rules:
    - matches: [{path: {value: /v1}}]
      backendRefs:
      - {name: stable, port: 8080, weight: 95}   # stays
      - {name: canary, port: 8080, weight: 5}    # moves

    - backendRefs: [{name: canary, weight: 1}, {name: canary, weight: 2}]
...
---
kind: VirtualService
metadata: {name: llm}
spec:
  http:
  - route:
    - destination: {host: llm, subset: stable}
      weight: 95
    - destination:
        host: llm
        subset: canary
      weight: "5"
`

const flags = "\ufeff" + `{
  "emoji": "\ud83d\ude00 and a \/ slash",
  "flags": {"llm": {"state": "ENABLED", "targeting": {"fractional": [["stable", 95], ["canary", 5]]}}},
  "state": "",
  "none": null,
  "a.b": {"": 1e2}
}`

func TestGetFindsByName(t *testing.T) {
	for _, tt := range []struct{ src, doc, at, want string }{
		{routes, "kind=HTTPRoute", "spec.rules[0].backendRefs[name=canary].weight", "5"},
		{routes, "kind=HTTPRoute,metadata.name=llm", `spec.rules[0].backendRefs[name=stable,port=8080].weight`, "95"},
		{routes, "kind=HTTPRoute", `metadata.annotations."example.com/weight"`, "7"},
		{routes, "kind=HTTPRoute", `metadata.annotations.plain`, "3"},
		{routes, "kind=VirtualService", "spec.http[0].route[destination.subset=canary].weight", "5"},
		{flags, "", "flags.llm.targeting.fractional[1][1]", "5"},
		{flags, "", "emoji", "\U0001f600 and a / slash"},
		{flags, "", `"a.b".""`, "1e2"},
		{flags, "", "state", ""},
		{`[{"n": "a b", "w": 1}, {"n": "c", "w": 2}]`, "", `[n=a b].w`, "1"},
		{`[{"n": "a]b", "w": 1}, {"n": "c", "w": 2}]`, "", `[n="a]b"].w`, "1"},
		{"models:\n- {name: openai/gpt-4o, weight: 3}\n", "", "models[name=openai/gpt-4o].weight", "3"},
		{"---\n# only a comment\n---\na: 1\n", "", "a", "1"},
		{"a: 1\n...\n", "", "a", "1"},
		{"# values of a chart, used as {{ .Values.a }}\na: 1\n", "", "a", "1"},
		{"x: &b {name: c}\nl:\n- <<: *b\n  w: 1\n- {name: c, w: 2}\n", "", "l[name=c].w", "2"},
	} {
		got, err := Get([]byte(tt.src), document(t, tt.doc), selector(t, tt.at))
		if err != nil || got != tt.want {
			t.Errorf("%s: got %q, %v; want %q", tt.at, got, err, tt.want)
		}
	}
}

func TestSetAllChangesOnlyTheNamed(t *testing.T) {
	for _, tt := range []struct {
		name, src, doc string
		edits          [][2]string
		old, new       []string // of the text, in turn
	}{
		{"HTTPRoute in a file of three", routes, "kind=HTTPRoute",
			[][2]string{{"spec.rules[0].backendRefs[name=canary].weight", "10"}, {"spec.rules[0].backendRefs[name=stable].weight", "90"}},
			[]string{"weight: 5}    # moves", "weight: 95}   # stays"}, []string{"weight: 10}    # moves", "weight: 90}   # stays"}},
		{"VirtualService keeps quotes", routes, "kind=VirtualService",
			[][2]string{{"spec.http[0].route[destination.subset=canary].weight", "100"}}, []string{`weight: "5"`}, []string{`weight: "100"`}},
		{"single quotes and an anchor", routes, "kind=HTTPRoute",
			[][2]string{{`metadata.annotations."example.com/weight"`, "8.5"}, {`metadata.annotations.plain`, "0"}},
			[]string{"'7'", "&x 3"}, []string{"'8.5'", "&x 0"}},
		{"JSON with escapes that YAML refuses", flags, "",
			[][2]string{{"flags.llm.targeting.fractional[1][1]", "10"}, {"flags.llm.targeting.fractional[0][1]", "90"}},
			[]string{`"canary", 5`, `"stable", 95`}, []string{`"canary", 10`, `"stable", 90`}},
		{"a text in JSON", flags, "", [][2]string{{"state", `{"schema":1}`}}, []string{`"state": ""`}, []string{`"state": "{\"schema\":1}"`}},
		{"a text for null", flags, "", [][2]string{{"none", `{"schema":1}`}}, []string{`"none": null`}, []string{`"none": "{\"schema\":1}"`}},
		{"a number for null", flags, "", [][2]string{{"none", `1`}}, []string{`"none": null`}, []string{`"none": 1`}},
		{"the same value", flags, "", [][2]string{{`"a.b".""`, "1e2"}}, nil, nil},
		{"carriage returns", "a: 1\r\nb:\r\n- 2 # two\r\n", "", [][2]string{{"b[0]", "3"}}, []string{"- 2"}, []string{"- 3"}},
		{"byte order mark in YAML", "\ufeffa: 1\n", "", [][2]string{{"a", "3"}}, []string{"1"}, []string{"3"}},
		{"decimals in place of a whole number", "a: 1\n", "", [][2]string{{"a", "0.05"}}, []string{"1"}, []string{"0.05"}},
		{"octal and hexadecimal", "a: 0x10\nb: 010\n", "", [][2]string{{"a", "16"}, {"b", "8"}}, []string{"0x10", "010"}, []string{"16", "8"}},
		{"a plain text", "a: v1 # c\n", "", [][2]string{{"a", "v2"}}, []string{"v1"}, []string{"v2"}},
		{"a text that looks like a number", "a: v1 # c\n", "", [][2]string{{"a", "2"}}, []string{"v1"}, []string{`"2"`}},
		{"the root", "7\n", "", [][2]string{{"", "8"}}, []string{"7"}, []string{"8"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var edits []Edit
			for _, e := range tt.edits {
				at := Selector{}
				if e[0] != "" {
					at = selector(t, e[0])
				}
				edits = append(edits, Edit{at, e[1]})
			}
			want := tt.src
			for i := range tt.old {
				want = strings.Replace(want, tt.old[i], tt.new[i], 1)
			}
			got, err := SetAll([]byte(tt.src), document(t, tt.doc), edits)
			if err != nil || string(got) != want {
				t.Fatalf("%v\n%s", err, Diff("f", []byte(want), got))
			}
			for _, e := range edits {
				if v, err := Get(got, document(t, tt.doc), e.At); err != nil || v != e.Value {
					t.Errorf("%s: %q, %v", e.At, v, err)
				}
			}
		})
	}
}

func TestSetAllRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, src, doc, at, value string
		reason                    error
		says                      string
	}{
		{"several documents, none named", routes, "", "kind", "x", ErrAmbiguous, "the file has 3 documents, say which; there are kind=Service,metadata.name=llm and kind=HTTPRoute"},
		{"no such document", routes, "kind=GRPCRoute", "kind", "x", ErrNotFound, "no document has kind=GRPCRoute; there are kind=Service"},
		{"several fit", routes, "metadata.name=llm", "kind", "x", ErrAmbiguous, "3 documents have metadata.name=llm"},
		{"no such item", routes, "kind=HTTPRoute", "spec.rules[0].backendRefs[name=new].weight", "1", ErrNotFound, "no item has name=new; there are name=stable and name=canary"},
		{"two such items", routes, "kind=HTTPRoute", "spec.rules[1].backendRefs[name=canary].weight", "1", ErrAmbiguous, "in spec.rules[1].backendRefs 2 items have name=canary"},
		{"position past the end", routes, "kind=HTTPRoute", "spec.rules[2].x", "1", ErrNotFound, "the list has 2"},
		{"key of a list", routes, "kind=HTTPRoute", "spec.rules.0", "1", ErrNotFound, "write [0] or [name=...]"},
		{"condition on a mapping", routes, "kind=HTTPRoute", "spec[name=x]", "1", ErrNotFound, "a mapping stands there"},
		{"below a value", routes, "kind=HTTPRoute", "kind.x", "1", ErrNotFound, "nothing is below it"},
		{"key that is missing", "a: {b: 1}\n", "", "a.c", "1", ErrNotFound, `in a there is no key "c"; there are b`},
		{"key that is missing in JSON", `{"a": {"b": 1}}`, "", "a.c", "1", ErrNotFound, `there is no key "c"`},
		{"empty entry", "a:\nb: 1\n", "", "a", "1", ErrNotFound, "it has no value"},
		{"mapping", "a: {b: 1}\n", "", "a", "1", ErrNotScalar, ""},
		{"alias", "a: &x 1\nb: *x\n", "", "b", "2", ErrAlias, ""},
		{"what an alias stands for", "a: &x 1\nb: *x\n", "", "a", "2", ErrAlias, ""},
		{"merged key", "a: &x {w: 1}\nb: {<<: *x}\n", "", "b.w", "2", ErrAlias, "may come in by <<"},
		{"duplicate key", "a: 1\na: 2\n", "", "a", "3", ErrDuplicate, ""},
		{"duplicate key in JSON", `{"a": 1, "a": 2}`, "", "a", "3", ErrDuplicate, ""},
		{"duplicate key in a condition", `[{"n": 1, "n": 2, "w": 1}]`, "", "[n=1].w", "3", ErrDuplicate, ""},
		{"template", "a: {{ .Values.w }}\n", "", "a", "3", ErrTemplate, ""},
		{"template in quotes", "a: \"{{ .Values.w }}\"\n", "", "a", "3", ErrTemplate, ""},
		{"template in JSON", `{"a": "{{ w }}"}`, "", "a", "3", ErrTemplate, ""},
		{"template around it", "{{- if .x }}\na: 1\n{{- end }}\n", "", "a", "3", ErrSyntax, "it looks like a template"},
		{"text over two lines", "a: \"x\n  y\"\n", "", "a", "3", ErrMultiLine, ""},
		{"plain text over two lines", "a: x\n  y\n", "", "a", "3", ErrMultiLine, ""},
		{"block text", "a: |\n  x\n", "", "a", "3", ErrMultiLine, ""},
		{"text for a number", "a: 1\n", "", "a", "x", ErrUnsafe, `a number stands there, "x" is none`},
		{"text for a number in JSON", `{"a": 1}`, "", "a", "x", ErrUnsafe, `a number stands there`},
		{"truth value", "a: true\n", "", "a", "1", ErrUnsafe, "neither a number nor a text"},
		{"decimals for !!int", "a: !!int 1\n", "", "a", "0.5", ErrUnsafe, "!!int"},
		{"not UTF-8", "a: \xff\n", "", "a", "1", ErrSyntax, "UTF-8"},
		{"nothing", "", "", "a", "1", ErrSyntax, "empty"},
		{"only a comment", "# x\n---\n", "", "a", "1", ErrSyntax, "empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := SetAll([]byte(tt.src), document(t, tt.doc), []Edit{{selector(t, tt.at), tt.value}})
			var e *Error
			if out != nil || !errors.As(err, &e) || !errors.Is(err, tt.reason) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %q, %v; want %v with %q", out, err, tt.reason, tt.says)
			}
		})
	}
	twice := []Edit{{selector(t, "a[0]"), "1"}, {selector(t, "a[0]"), "2"}}
	if _, err := SetAll([]byte("a: [3]"), Document{}, twice); !errors.Is(err, ErrAmbiguous) {
		t.Errorf("the same value twice: %v", err)
	}
}

func TestParseSelectorRefuses(t *testing.T) {
	for text, says := range map[string]string{
		"":            "at character 1: a key is expected",
		".a":          "at character 1: a key is expected",
		"a.":          "at character 3: a key is expected",
		"a..b":        "at character 3: a key is expected",
		"a b":         "at character 2: a dot or a bracket is expected",
		"a[0]b":       "at character 5: a dot or a bracket is expected",
		"a[0":         "at character 3: the bracket is not closed",
		"a[]":         "at character 3: a position from 0 or a condition such as name=canary is expected",
		"a[-1]":       "at character 5: a position from 0 or a condition",
		"a[01]":       "at character 5: a position",
		"a[name]":     "at character 7: a position",
		"a[name=]":    "at character 8: a text is expected",
		"a[name=x":    "the bracket is not closed",
		"a[n=x,]":     "at character 7: a position",
		`a."b`:        "at character 3: the quotes are not closed",
		`a."b"c`:      "at character 6: a dot or a bracket is expected",
		"é[name= x ]": "at character 8: a text is expected",
	} {
		_, err := ParseSelector(text)
		if !errors.Is(err, ErrSelector) || !strings.Contains(fmt.Sprint(err), says) {
			t.Errorf("%q: %v; want %q", text, err, says)
		}
	}
	for _, text := range []string{"kind", "kind=", "kind=x,", "=x", "kind=x]"} {
		if _, err := ParseDocument(text); !errors.Is(err, ErrSelector) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzSelectorReadsBackAsItself(f *testing.F) {
	for _, s := range []string{"a.b[0].c", `spec.rules[0].backendRefs[name=canary].weight`, `m."a.b/c"[x.y="]",z=1]`, `"\ud83d\ude00"`, "[0][1]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSelector(text)
		if err != nil {
			return
		}
		again, err := ParseSelector(s.String())
		if err != nil || again.String() != s.String() || len(again.steps) != len(s.steps) {
			t.Fatalf("%q -> %q -> %q, %v", text, s, again, err)
		}
	})
}

// scalarsOf lists the selectors of all scalars of a tree.
func scalarsOf(n *yaml.Node, at []step, out *[]Selector) {
	switch n.Kind {
	case yaml.ScalarNode:
		*out = append(*out, Selector{steps: slices.Clone(at)})
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			scalarsOf(n.Content[i+1], append(at, step{key: n.Content[i].Value}), out)
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			scalarsOf(c, append(at, step{kind: byIndex, index: i}), out)
		}
	}
}

// values decodes all documents without this package's reader.
func values(src []byte) (docs []any, ok bool) {
	defer func() {
		if recover() != nil {
			docs, ok = nil, false
		}
	}()
	var v any
	if json.Unmarshal(bytes.TrimPrefix(src, byteOrderMark), &v) == nil {
		return []any{v}, true
	}
	dec := yaml.NewDecoder(bytes.NewReader(src))
	for {
		var v any
		if err := dec.Decode(&v); err != nil {
			return docs, err.Error() == "EOF"
		}
		docs = append(docs, v)
	}
}

// leaves returns the texts of a tree's leaves with their places.
func leaves(v any, at string, out map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for k, c := range v {
			leaves(c, at+"/"+k, out)
		}
	case []any:
		for i, c := range v {
			leaves(c, fmt.Sprintf("%s/%d", at, i), out)
		}
	default:
		out[at] = fmt.Sprint(v)
	}
}

// drawJSON returns a JSON text over several lines.
func drawJSON(t *rapid.T, depth int) string {
	blank := rapid.SampledFrom([]string{"", " ", "\n  ", "\t"})
	switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
	case depth > 0 && kind < 2:
		var parts []string
		for i := range rapid.IntRange(0, 3).Draw(t, "n") {
			parts = append(parts, blank.Draw(t, "b")+fmt.Sprintf(`"k\/%d"`, i)+blank.Draw(t, "b")+":"+drawJSON(t, depth-1))
		}
		return "{" + strings.Join(parts, ",") + blank.Draw(t, "b") + "}"
	case depth > 0 && kind == 2:
		var parts []string
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			parts = append(parts, blank.Draw(t, "b")+drawJSON(t, depth-1))
		}
		return "[" + strings.Join(parts, blank.Draw(t, "b")+",") + "]"
	}
	return rapid.SampledFrom([]string{"5", "0.05", `"5"`, `"\ud83d\ude00"`, "1e2", `"x{y"`}).Draw(t, "leaf")
}

func TestSetAllTouchesNothingElse(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var src, doc string
		if rapid.Bool().Draw(rt, "json") {
			src = drawJSON(rt, 4)
		} else {
			for i := range rapid.IntRange(1, 3).Draw(rt, "documents") {
				src += fmt.Sprintf("---\nname: d%d\nof:\n", i) + drawYAML(rt, "  ", 3)
			}
			doc = "name=d0"
		}
		if rapid.Bool().Draw(rt, "crlf") {
			src = strings.ReplaceAll(src, "\n", "\r\n")
		}
		f, err := readFile([]byte(src))
		if err != nil {
			return
		}
		var all []Selector
		scalarsOf(f.docs[0], nil, &all)
		var edits []Edit
		for i, at := range all {
			e := Edit{at, fmt.Sprintf("0.%d7", i)}
			if _, err := SetAll([]byte(src), document(rt, doc), []Edit{e}); err == nil && len(edits) < 3 && at.String() != "name" {
				edits = append(edits, e)
			}
		}
		out, err := SetAll([]byte(src), document(rt, doc), edits)
		if err != nil {
			rt.Fatalf("each alone can be set, together not: %v\n%s", err, src)
		}
		before, ok1 := values([]byte(src))
		after, ok2 := values(out)
		if !ok1 || !ok2 || len(before) != len(after) {
			rt.Fatalf("%t, %t, %d and %d documents\n%s\n%s", ok1, ok2, len(before), len(after), src, out)
		}
		was, is := map[string]string{}, map[string]string{}
		for i := range before {
			leaves(before[i], fmt.Sprint(i), was)
			leaves(after[i], fmt.Sprint(i), is)
		}
		different := 0
		for k := range was {
			if was[k] != is[k] {
				different++
			}
		}
		if len(was) != len(is) || different != len(edits) {
			rt.Fatalf("%d values differ, %d were edited\n%s\n%s", different, len(edits), src, out)
		}
	})
}

func FuzzSetAll(f *testing.F) {
	for _, src := range []string{routes, flags, "a: {{ x }}\n", "a: &x !!int 1\nb: *x\n", "- 'x' # c\r\n- [1, {y: \"2\"}]\n", "%YAML 1.1\n---\na: 1\n...\n---\nb: 2\n"} {
		f.Add([]byte(src), uint16(0))
		f.Add([]byte(src), uint16(7))
	}
	f.Fuzz(func(t *testing.T, src []byte, pick uint16) {
		file, err := readFile(src)
		if err != nil || len(file.docs) != 1 {
			return
		}
		var all []Selector
		scalarsOf(file.docs[0], nil, &all)
		if len(all) == 0 {
			return
		}
		at := all[int(pick)%len(all)]
		out, err := SetAll(src, Document{}, []Edit{{at, "0.25"}})
		if err != nil {
			return
		}
		if got, err := Get(out, Document{}, at); err != nil || got != "0.25" {
			t.Fatalf("%s: %q, %v\n%s", at, got, err, out)
		}
		checkSpan(t, string(src), string(out), "0.25")
	})
}
