package diag

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRender(t *testing.T) {
	tests := []struct {
		name string
		src  string
		f    Finding
		want string
	}{
		{
			"caret under the marked text", "a: 1\nlong_key: value\n",
			Finding{File: "f.yaml", Line: 2, Col: 11, EndCol: 16, Rule: "r", Message: "m", Hint: "h"},
			"f.yaml:2:11: m [r]\n  2 | long_key: value\n    |           ^~~~~\n    hint: h\n",
		},
		{
			"a warning says so", "a: 1\n",
			Finding{File: "f", Line: 1, Col: 1, EndCol: 2, Severity: Warning, Rule: "r", Message: "m"},
			"f:1:1: warning: m [r]\n  1 | a: 1\n    | ^\n",
		},
		{
			"wide runes take two columns", "日本: 語\n",
			Finding{File: "f", Line: 1, Col: 5, EndCol: 6, Rule: "r", Message: "m"},
			"f:1:5: m [r]\n  1 | 日本: 語\n    |       ^~\n",
		},
		{
			"combining marks take none", "e\u0301: x\n",
			Finding{File: "f", Line: 1, Col: 5, EndCol: 6, Rule: "r", Message: "m"},
			"f:1:5: m [r]\n  1 | e\u0301: x\n    |    ^\n",
		},
		{
			"a vowel of Hangul joins the letter before it", "\u1112\u1161: x\n",
			Finding{File: "f", Line: 1, Col: 5, EndCol: 6, Rule: "r", Message: "m"},
			"f:1:5: m [r]\n  1 | \u1112\u1161: x\n    |     ^\n",
		},
		{
			"symbols and emoji of any block take two", "⌚✅❤🟢🩷: x\n",
			Finding{File: "f", Line: 1, Col: 8, EndCol: 9, Rule: "r", Message: "m"},
			"f:1:8: m [r]\n  1 | ⌚✅❤🟢🩷: x\n    |            ^\n",
		},
		{
			"tabs take one", "a:\tb\n",
			Finding{File: "f", Line: 1, Col: 4, EndCol: 5, Rule: "r", Message: "m"},
			"f:1:4: m [r]\n  1 | a: b\n    |    ^\n",
		},
		{
			"behind the end of the line", "a:\n",
			Finding{File: "f", Line: 1, Col: 3, EndCol: 4, Rule: "r", Message: "m"},
			"f:1:3: m [r]\n  1 | a:\n    |   ^\n",
		},
		{
			"the mark ends with the line", "abc\n",
			Finding{File: "f", Line: 1, Col: 2, EndCol: 99, Rule: "r", Message: "m"},
			"f:1:2: m [r]\n  1 | abc\n    |  ^~\n",
		},
		{
			"control characters cannot move the cursor", "a: \x1b[2J\n",
			Finding{File: "f\x1b", Line: 1, Col: 1, Rule: "r", Message: "x\x1b[2J"},
			"f\ufffd:1:1: x\ufffd[2J [r]\n  1 | a: \ufffd[2J\n    | ^\n",
		},
		{
			"carriage return and byte order mark are no text", "\ufeffa: 1\r\n",
			Finding{File: "f", Line: 1, Col: 4, EndCol: 5, Rule: "r", Message: "m"},
			"f:1:4: m [r]\n  1 | a: 1\n    |    ^\n",
		},
		{
			"line numbers of four digits move the gutter", strings.Repeat("\n", 999) + "x\n",
			Finding{File: "f", Line: 1000, Col: 1, EndCol: 2, Rule: "r", Message: "m"},
			"f:1000:1: m [r]\n1000 | x\n     | ^\n",
		},
		{
			"no source line", "a\n",
			Finding{File: "f", Line: 9, Col: 1, Rule: "r", Message: "m"},
			"f:9:1: m [r]\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.f.Render([]byte(tt.src)); got != tt.want {
				t.Errorf("got\n%swant\n%s", got, tt.want)
			}
		})
	}
}

func TestLongLinesAreCropped(t *testing.T) {
	tests := []struct{ name, before, bad, after string }{
		{"narrow", strings.Repeat("a", 500), "BAD", strings.Repeat("c", 500)},
		{"wide", strings.Repeat("世界", 250), "悪い", strings.Repeat("語", 500)},
		{"at the beginning", "", "BAD", strings.Repeat("c", 500)},
		{"at the end", strings.Repeat("世", 500), "BAD", ""},
		{"combining", strings.Repeat("e\u0301", 500), "BAD", strings.Repeat("e\u0301", 500)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			col := utf8.RuneCountInString(tt.before) + 1
			f := Finding{File: "f", Line: 1, Col: col, EndCol: col + utf8.RuneCountInString(tt.bad), Rule: "r", Message: "m"}
			text := f.Render([]byte(tt.before + tt.bad + tt.after))
			lines := strings.Split(text, "\n")
			shown := strings.TrimPrefix(lines[1], "  1 | ")
			if w := width(strings.Trim(shown, ".")); w > maxSourceWidth || w < maxSourceWidth-1 {
				t.Errorf("shown %d wide", w)
			}
			at := strings.IndexByte(lines[2], '^')
			if pad, ok := strings.CutSuffix(lines[2], "^"+strings.Repeat("~", width(tt.bad)-1)); !ok || !strings.Contains(lines[1], tt.bad) ||
				width(lines[1][:strings.Index(lines[1], tt.bad)]) != at || len(pad) != at {
				t.Errorf("the caret is not under %q:\n%s", tt.bad, text)
			}
		})
	}
}

// TestWideRangesAreInOrder: they are searched by halving.
func TestWideRangesAreInOrder(t *testing.T) {
	last := rune(0)
	for _, r := range wide {
		if r[0] <= last || r[1] < r[0] {
			t.Errorf("%#x to %#x after %#x", r[0], r[1], last)
		}
		last = r[1]
	}
}

func TestListSortsAndDropsRepetitions(t *testing.T) {
	l := List{
		{File: "b", Line: 1, Col: 1, Rule: "r"},
		{File: "a", Line: 10, Col: 1, Rule: "r"},
		{File: "a", Line: 9, Col: 2, Rule: "r"},
		{File: "a", Line: 9, Col: 2, Rule: "q", Message: "z"},
		{File: "a", Line: 9, Col: 2, Rule: "q", Message: "y", Severity: Warning},
		{File: "a", Line: 9, Col: 2, Rule: "r"},
	}
	l.Sort()
	var got []string
	for _, f := range l {
		got = append(got, f.String())
	}
	want := "a:9:2: warning: y [q] a:9:2: z [q] a:9:2:  [r] a:10:1:  [r] b:1:1:  [r]"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
	if !l.HasErrors() || l.Count(Error) != 4 || l.Count(Warning) != 1 {
		t.Errorf("%d errors, %d warnings", l.Count(Error), l.Count(Warning))
	}
	if (List{{Severity: Warning}}).HasErrors() {
		t.Error("a warning is no error")
	}
}

func TestJSON(t *testing.T) {
	in := Finding{File: "f", Line: 1, Col: 2, EndCol: 3, Severity: Warning, Rule: "r", Message: "m"}
	raw, err := json.Marshal(in)
	if want := `{"file":"f","line":1,"col":2,"end_col":3,"severity":"warning","rule":"r","message":"m"}`; err != nil || string(raw) != want {
		t.Errorf("got %s, %v", raw, err)
	}
	var out Finding
	if err := json.Unmarshal(raw, &out); err != nil || out != in {
		t.Errorf("read back %+v, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`{"severity":"fatal"}`), &out); err == nil {
		t.Error("an unknown severity was read")
	}
}

func FuzzRender(f *testing.F) {
	f.Add("a: 1\nb: 2\n", 2, 3, 4)
	f.Add("\xff\ufeff\t日", 1, 2, 9)
	f.Fuzz(func(t *testing.T, src string, line, col, end int) {
		text := Finding{File: "f", Line: line, Col: col, EndCol: end, Rule: "r", Message: src}.Render([]byte(src))
		if !utf8.ValidString(text) || !strings.HasSuffix(text, "\n") || strings.Contains(text, "\x1b") {
			t.Fatalf("%q", text)
		}
	})
}
