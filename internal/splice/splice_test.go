package splice

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"
)

func TestSet(t *testing.T) {
	tests := []struct {
		name, src, path, value, want string
	}{
		{"plain number in block", "a:\n  b: 1   # one\n  c: 2\n", "a.b", "0.5", "a:\n  b: 0.5   # one\n  c: 2\n"},
		{"double quotes stay", "a: \"x\" # c\n", "a", `y"z`, "a: \"y\\\"z\" # c\n"},
		{"single quotes stay", "a: 'it''s'\n", "a", "that's", "a: 'that''s'\n"},
		{"flow mapping", "s: [{pct: 0.01, hold: 5}, { pct: 0.05 }]\n", "s.1.pct", "0.1", "s: [{pct: 0.01, hold: 5}, { pct: 0.1 }]\n"},
		{"carriage returns stay", "a: 1\r\nb: 2\r\n", "a", "3", "a: 3\r\nb: 2\r\n"},
		{"byte order mark stays", "\ufeffa: 1\n", "a", "2", "\ufeffa: 2\n"},
		{"no newline at the end", "a: 1", "a", "2", "a: 2"},
		{"wide runes before it", "é: {日本: 1, 语: 2}\n", "é.语", "3", "é: {日本: 1, 语: 3}\n"},
		{"quoted key", "\"a b\": 1\n", "a b", "2", "\"a b\": 2\n"},
		{"tag and anchor that nobody uses", "a: &x !!str 1\n", "a", "2", "a: &x !!str 2\n"},
		{"plain text that needs quotes", "a: x\n", "a", "y: z # w", "a: \"y: z # w\"\n"},
		{"text stays text", "tag: v1\n", "tag", "1.10", "tag: \"1.10\"\n"},
		{"value that was not written", "a:\nb: 1\n", "a", "5", "a: 5\nb: 1\n"},
		{"value that was not written, with comment", "a:   # why\nb: 1\n", "a", "5", "a: 5   # why\nb: 1\n"},
		{"null", "a: ~\n", "a", "5", "a: 5\n"},
		{"item of a block list", "a:\n- 1\n- 2 # two\n", "a.1", "3", "a:\n- 1\n- 3 # two\n"},
		{"empty string", "a: 1\n", "a", "", "a: \"\"\n"},
		{"JSON number", `{"a": {"b": 1, "c": "x"}}`, "a.b", "0.25", `{"a": {"b": 0.25, "c": "x"}}`},
		{"JSON string stays string", `{"a": "x"}`, "a", "1", `{"a": "1"}`},
		{"JSON number becomes string when it must", `{"a": 1}`, "a", "x", `{"a": "x"}`},
		{"JSON of several lines", "{\n  \"a\": 1,\n  \"b\": 2\n}\n", "b", "3", "{\n  \"a\": 1,\n  \"b\": 3\n}\n"},

		{"insert in block behind the last line", "a:\n  b: 1 # one\n  c:\n    d: 2\ne: 3\n", "a.x", "9", "a:\n  b: 1 # one\n  x: 9\n  c:\n    d: 2\ne: 3\n"},
		{"insert in block where all entries are nested", "a:\n  # about c\n  c:\n    d: 2\n", "a.x", "9", "a:\n  # about c\n  x: 9\n  c:\n    d: 2\n"},
		{"insert at the end without newline", "a: 1", "b", "2", "a: 1\nb: 2"},
		{"insert with carriage returns", "a: 1\r\nb:\r\n  c: 1\r\n", "b.d", "2", "a: 1\r\nb:\r\n  c: 1\r\n  d: 2\r\n"},
		{"insert in a list's mapping", "s:\n  - a:\n      b: 1\n", "s.0.x", "9", "s:\n  - x: 9\n    a:\n      b: 1\n"},
		{"insert in flow", "m: {a: 1, b: [2, 3]} # c\n", "m.x", "9", "m: {a: 1, b: [2, 3], x: 9} # c\n"},
		{"insert behind entries that are aligned", "m: { a: 1,  b: 2 }\n", "m.x", "9", "m: { a: 1,  b: 2, x: 9 }\n"},
		{"insert in spaced flow", "m: { a: 1 }\n", "m.x", "9", "m: { a: 1, x: 9 }\n"},
		{"insert in empty flow", "m: {}\n", "m.x", "9", "m: { x: 9 }\n"},
		{"insert in empty flow of a file without blanks", "m: {}\nn: {a: 1}\n", "m.x", "9", "m: {x: 9}\nn: {a: 1}\n"},
		{"insert in empty flow over two lines", "m: {\n  }\n", "m.x", "9", "m: {x: 9\n  }\n"},
		{"insert behind a list over several lines", "{\n  \"a\": [\n    1\n  ]\n}\n", "x", "9", "{\n  \"a\": [\n    1\n  ],\n  \"x\": 9\n}\n"},
		{"insert behind a flow with a bracket in its comment", "m: { a: [ 1, # ]\n  2 ] }\n", "m.x", "9", "m: { a: [ 1, # ]\n  2 ], x: 9 }\n"},
		{"insert behind a flow with a comment after it", "a:\n  include: { user_ids: [] }   # own staff\n  m:\n    b: 1\n", "a.x", "9", "a:\n  include: { user_ids: [] }   # own staff\n  x: 9\n  m:\n    b: 1\n"},
		{"insert in compact JSON", `{"a":1,"b":{"c":2}}`, "b.x", "9", `{"a":1,"b":{"c":2, "x":9}}`},
		{"insert in JSON of several lines", "{\n  \"a\": 1,\n  \"b\": 2\n}\n", "x", "9", "{\n  \"a\": 1,\n  \"b\": 2,\n  \"x\": 9\n}\n"},
		{"insert in JSON of one entry", "{\n  \"a\": 1\n}\n", "x", "y", "{\n  \"a\": 1,\n  \"x\": \"y\"\n}\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Set([]byte(tt.src), strings.Split(tt.path, "."), tt.value)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestPutAddsWhatIsMissing(t *testing.T) {
	const steps = "steps:\n  - { pct: 0.01, gate: [time] }  # first\n  - { pct: 1 }\n"
	for _, tt := range []struct {
		name, src, path, value, want string
	}{
		{"nothing is missing", "a: { b: 1 } # c\n", "a.b", "2", "a: { b: 2 } # c\n"},
		{"one line stays one line", steps, "steps.0.limits.n", "4",
			"steps:\n  - { pct: 0.01, gate: [time], limits: { n: 4 } }  # first\n  - { pct: 1 }\n"},
		{"beside an entry", "s: [{ pct: 1, limits: { n: 4 } }]\n", "s.0.limits.m", "5", "s: [{ pct: 1, limits: { n: 4, m: 5 } }]\n"},
		{"two mappings in one line", "s: [{pct: 1}]\n", "s.0.limits.noise.z", "4", "s: [{pct: 1, limits: {noise: {z: 4}}}]\n"},
		{"a block in a block", "steps:\n  - pct: 0.01\n    gate: [time]  # why\n  - pct: 1\n", "steps.0.limits.noise.z", "4",
			"steps:\n  - pct: 0.01\n    gate: [time]  # why\n    limits:\n      noise:\n        z: 4\n  - pct: 1\n"},
		{"the file's indentation", "a:\n    b: 1\n", "a.c.d", "2", "a:\n    b: 1\n    c:\n        d: 2\n"},
		{"at the end, not in the middle", "a:\n  b: 1\nc:\n  d:\n  - 1 # one\n", "x.y", "2", "a:\n  b: 1\nc:\n  d:\n  - 1 # one\nx:\n  y: 2\n"},
		{"before the end mark", "a: 1\n...\n", "x.y", "2", "a: 1\nx:\n  y: 2\n...\n"},
		{"carriage returns", "a:\r\n  b: 1\r\n", "a.c.d", "2", "a:\r\n  b: 1\r\n  c:\r\n    d: 2\r\n"},
		{"no newline at the end", "a: 1", "b.c", "2", "a: 1\nb:\n  c: 2"},
		{"a block scalar at the end", "a: 1\nb: |\n  text\n", "x.y", "2", "a: 1\nx:\n  y: 2\nb: |\n  text\n"},
		{"a key without a value", "a:\n  b:   # why\n  c: 1\n", "a.b.d", "2", "a:\n  b:   # why\n    d: 2\n  c: 1\n"},
		{"a key without a value on one line", "a: {b: , c: 1}\n", "a.b.d", "2", "a: {b: {d: 2} , c: 1}\n"},
		{"null", "a: ~ # why\n", "a.b", "2", "a: { b: 2 } # why\n"},
		{"an empty mapping", "a: { } # why\n", "a.b.c", "2", "a: { b: { c: 2 } } # why\n"},
		{"compact JSON", `{"s":[{"pct":1}]}`, "s.0.limits.n", "4", `{"s":[{"pct":1, "limits":{"n": 4}}]}`},
		{"JSON of several lines", "{\n  \"s\": [\n    {\n      \"pct\": 1\n    }\n  ]\n}\n", "s.0.limits.n", "4",
			"{\n  \"s\": [\n    {\n      \"pct\": 1,\n      \"limits\": {\"n\": 4}\n    }\n  ]\n}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := strings.Split(tt.path, ".")
			got, err := Put([]byte(tt.src), path, tt.value)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if again, err := Put(got, path, tt.value); err != nil || string(again) != string(got) {
				t.Errorf("a second time: %v\n%s", err, again)
			}
		})
	}
}

func TestPutRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, src, path string
		want            error
	}{
		{"item past the end", "a: [{ b: 1 }]\n", "a.1.b", ErrNotFound},
		{"mapping in place of a list's item", "a: []\n", "a.0.b", ErrNotFound},
		{"key of a scalar", "a: 1\n", "a.b.c", ErrNotFound},
		{"alias", "a: &x { b: 1 }\nc: *x\n", "c.d.e", ErrAlias},
		{"mapping that is used elsewhere", "a: &x { b: 1 }\nc: *x\n", "a.d.e", ErrAlias},
		{"nothing that is used elsewhere", "a: &x\nc: *x\n", "a.d", ErrAlias},
		{"mapping where a value was meant", "a: { b: { c: 1 } }\n", "a.b", ErrNotScalar},
		{"an empty document", "~\n", "a.b", ErrNotFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Put([]byte(tt.src), strings.Split(tt.path, "."), "9")
			if !errors.Is(err, tt.want) {
				t.Errorf("got %q, %v; want %v", got, err, tt.want)
			}
		})
	}
}

func TestSetRefuses(t *testing.T) {
	tests := []struct {
		name, src, path string
		want            error
	}{
		{"missing mapping", "a: 1\n", "b.c", ErrNotFound},
		{"key of a scalar", "a: 1\n", "a.b", ErrNotFound},
		{"item past the end", "a: [1]\n", "a.1", ErrNotFound},
		{"item with an odd number", "a: [1]\n", "a.00", ErrNotFound},
		{"mapping", "a: {b: 1}\n", "a", ErrNotScalar},
		{"list", "a: [1]\n", "a", ErrNotScalar},
		{"alias", "a: &x 1\nb: *x\n", "b", ErrAlias},
		{"anchored value that is used elsewhere", "a: &x 1\nb: *x\n", "a", ErrAlias},
		{"inside a mapping that is used elsewhere", "a: &x {c: 1}\nb: *x\n", "a.c", ErrAlias},
		{"literal block", "a: |\n  x\n", "a", ErrMultiLine},
		{"folded block", "a: >\n  x\n", "a", ErrMultiLine},
		{"plain over two lines", "a: x\n  y\n", "a", ErrMultiLine},
		{"quoted over two lines", "a: \"x\n  y\"\n", "a", ErrMultiLine},
		{"duplicate key", "a: 1\na: 2\n", "a", ErrDuplicate},
		{"two documents", "a: 1\n---\na: 2\n", "a", ErrSyntax},
		{"broken", "a: [1\n", "a", ErrSyntax},
		{"not UTF-8", "a: \xff\n", "a", ErrSyntax},
		{"empty", "", "a", ErrSyntax},
		{"key without colon in flow", "{a, b: 1}\n", "a", ErrUnsafe},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Set([]byte(tt.src), strings.Split(tt.path, "."), "9")
			if !errors.Is(err, tt.want) {
				t.Errorf("got %q, %v; want %v", got, err, tt.want)
			}
			if e, ok := errors.AsType[*Error](err); !ok || strings.Join(e.Path, ".") != tt.path {
				t.Errorf("error %#v does not name the path", err)
			}
		})
	}
}

// scalarPaths lists the paths of a tree's scalars.
func scalarPaths(n *yaml.Node, at []string, out *[][]string) {
	switch n.Kind {
	case yaml.ScalarNode:
		*out = append(*out, append([]string(nil), at...))
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			scalarPaths(n.Content[i+1], append(at, n.Content[i].Value), out)
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			scalarPaths(c, append(at, strconv.Itoa(i)), out)
		}
	}
}

// drawYAML writes a random file in mixed styles with comments.
func drawYAML(t *rapid.T, indent string, depth int) string {
	var b strings.Builder
	for i := range rapid.IntRange(1, 4).Draw(t, "entries") {
		key := "k" + strconv.Itoa(i)
		comment := rapid.SampledFrom([]string{"", " # note", "   # a: b"}).Draw(t, "comment")
		switch kind := rapid.IntRange(0, 6).Draw(t, "kind"); {
		case kind == 0 && depth > 0:
			b.WriteString(indent + key + ":" + comment + "\n" + drawYAML(t, indent+"  ", depth-1))
		case kind == 1:
			b.WriteString(indent + key + ": { x: 1, \"y\": [a, 'b, c'] }" + comment + "\n")
		case kind == 2:
			b.WriteString(indent + key + ":\n" + indent + "- 1\n" + indent + "- two" + comment + "\n")
		default:
			v := rapid.SampledFrom([]string{"0.05", "text", "'it''s'", `"q\"x"`, "true", "", "http://x/y"}).Draw(t, "value")
			b.WriteString(indent + key + ": " + v + comment + "\n")
		}
	}
	return b.String()
}

// TestSetTouchesOnlyItsSpan: whatever is set, the result is the source with one
// span replaced, reads back, and setting the value again changes nothing.
func TestSetTouchesOnlyItsSpan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := drawYAML(t, "", 2)
		if rapid.Bool().Draw(t, "crlf") {
			src = strings.ReplaceAll(src, "\n", "\r\n")
		}
		doc, err := parse([]byte(src))
		if err != nil {
			t.Fatalf("%q: %v", src, err)
		}
		var paths [][]string
		scalarPaths(doc, nil, &paths)
		path := rapid.SampledFrom(paths).Draw(t, "path")
		value := rapid.OneOf(rapid.SampledFrom([]string{"1", "0.25", "a b", "x: y", "#", "null", "'", `"`, "日本", "-"}), rapid.String()).Draw(t, "set")
		out, err := Set([]byte(src), path, value)
		if err != nil {
			t.Fatalf("set %v to %q in %q: %v", path, value, src, err)
		}
		checkSpan(t, src, string(out), value)
		again, err := Set(out, path, value)
		if err != nil || string(again) != string(out) {
			t.Fatalf("set again: %q, %v; want %q", again, err, out)
		}
	})
}

// checkSpan fails unless the part of out that differs from src stands on one
// line and could hold the value.
func checkSpan(t interface{ Fatalf(string, ...any) }, src, out, value string) {
	head := 0
	for head < len(src) && head < len(out) && src[head] == out[head] {
		head++
	}
	tail := 0
	for tail < len(src)-head && tail < len(out)-head && src[len(src)-1-tail] == out[len(out)-1-tail] {
		tail++
	}
	gone, come := src[head:len(src)-tail], out[head:len(out)-tail]
	if strings.ContainsAny(gone, "\n") || strings.ContainsAny(come, "\n") || len(come) > 6*len(value)+4 {
		t.Fatalf("replaced %q by %q for %q", gone, come, value)
	}
}

func FuzzSet(f *testing.F) {
	f.Add("a:\n  b: 1 # c\n", "a.b", "2")
	f.Add(`{"a": {"b": [1, "x"]}}`, "a.b.1", "y")
	f.Add("a: {}\n", "a.x", "1")
	f.Add("0:", "#", "9")
	f.Add("? a\n: 1\n", "a", "1")
	f.Add("a: &x !t 'q' # d\n", "a", "\x00")
	f.Fuzz(func(t *testing.T, src, path, value string) {
		parts := strings.Split(path, ".")
		out, err := Set([]byte(src), parts, value)
		if err != nil {
			return
		}
		s, perr := newSource(out)
		if perr != nil {
			t.Fatalf("%q became %q: %v", src, out, perr)
		}
		at, _, reason := s.find(parts)
		if reason != nil || at.node == nil || len(at.rest) > 0 || at.node.Value != value {
			t.Fatalf("%q became %q, where %v is not %q", src, out, parts, value)
		}
	})
}

func FuzzPut(f *testing.F) {
	f.Add("a:\n  b: 1 # c\n", "a.c.d", "2")
	f.Add(`{"a": {"b": [{"x": 1}]}}`, "a.b.0.l.n", "4")
	f.Add("s:\n- { pct: 1 } # c\n- pct: 2\n", "s.1.l.n", "4")
	f.Add("a: {}\n", "a.b.c", "1")
	f.Add("a:\n- |\n  x\n", "b.c", "1")
	f.Add("? a\n:\n", "a.b", "1")
	f.Add("a: { b: [ 1, # ]\r\n 2 ] }", "a.c.d", "1")
	f.Fuzz(func(t *testing.T, src, path, value string) {
		parts := strings.Split(path, ".")
		out, err := Put([]byte(src), parts, value)
		if err != nil {
			return
		}
		s, perr := newSource(out)
		if perr != nil {
			t.Fatalf("%q became %q: %v", src, out, perr)
		}
		at, _, reason := s.find(parts)
		if reason != nil || at.node == nil || len(at.rest) > 0 || at.node.Value != value {
			t.Fatalf("%q became %q, where %v is not %q", src, out, parts, value)
		}
		if set, err := Set([]byte(src), parts, value); err == nil && string(set) != string(out) {
			t.Fatalf("in %q Set writes %q and Put %q", src, set, out)
		}
		if again, err := Put(out, parts, value); err != nil || string(again) != string(out) {
			t.Fatalf("%q became %q, and then %q, %v", src, out, again, err)
		}
	})
}

func TestDiff(t *testing.T) {
	before := "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n"
	after := "a\nb\nC\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\n"
	want := "--- a/x\n+++ b/x\n@@ -1,6 +1,6 @@\n a\n b\n-c\n+C\n d\n e\n f\n@@ -10,3 +10,4 @@\n j\n k\n l\n+m\n"
	if got := Diff("x", []byte(before), []byte(after)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := Diff("x", []byte("a\n"), []byte("a\n")); got != "" {
		t.Errorf("equal texts differ: %q", got)
	}
	if got, want := Diff("x", []byte("a"), []byte("a\n")), "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestDiffApplies: what Diff writes turns one text into the other, judged by git.
func TestDiffApplies(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git program")
	}
	letters := rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n"}), 1, 30)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		if n++; n > 25 {
			return // a process each
		}
		before := strings.Join(letters.Draw(rt, "before"), "")
		after := strings.Join(letters.Draw(rt, "after"), "")
		if rapid.Bool().Draw(rt, "cut") {
			after = strings.TrimSuffix(after, "\n")
		}
		diff := Diff("x", []byte(before), []byte(after))
		if diff == "" || after == "" {
			return
		}
		dir := t.TempDir()
		for name, text := range map[string]string{"x": before, "p": diff} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				rt.Fatal(err)
			}
		}
		cmd := exec.Command(git, "apply", "--whitespace=nowarn", "p")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			rt.Fatalf("%v: %s\n%s", err, out, diff)
		}
		got, err := os.ReadFile(filepath.Join(dir, "x"))
		if err != nil || string(got) != after {
			rt.Fatalf("got %q, %v; want %q", got, err, after)
		}
	})
}
