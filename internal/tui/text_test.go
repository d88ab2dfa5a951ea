package tui

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"github.com/muesli/termenv"
	"pgregory.net/rapid"
)

func TestLinesAreCutWhereTheyEnd(t *testing.T) {
	for _, c := range []struct {
		name  string
		s     string
		width int
		want  string
	}{
		{"what fits stays", "weight", 6, "weight"},
		{"a line is filled", "ok", 4, "ok  "},
		{"what does not fit says so", "rolled back", 7, "rolled…"},
		{"one column is only the mark", "rolled", 1, "…"},
		{"no column is nothing", "rolled", 0, ""},
		{"below none too", "rolled", -3, ""},
		{"wide letters take two columns", "日本語", 4, "日… "},
		{"letters that combine take none", "e\u0301e\u0301", 3, "e\u0301e\u0301 "},
		{"an emoji of several is one", "👩‍🚀👩‍🚀", 4, "👩‍🚀👩‍🚀"},
		{"keycaps are wider than their digit", "1️⃣2️⃣3️⃣", 4, "1️⃣… "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := fit(c.s, c.width, &Unicode); got != c.want {
				t.Errorf("%q in %d is %q, want %q", c.s, c.width, got, c.want)
			}
		})
	}
	if got, want := cut("rolled back", 7, &ASCII), "rolled~"; got != want {
		t.Errorf("without UTF-8 %q, want %q", got, want)
	}
}

func TestStyledLinesKeepTheirStyleWhenCut(t *testing.T) {
	styled := themeOf(Unicode, termenv.TrueColor).Bad.Render("rolled back")
	got := fit(styled, 7, &Unicode)
	if ansi.Strip(got) != "rolled…" || !strings.HasSuffix(got, "\x1b[0m") {
		t.Errorf("cut to %q", got)
	}
}

func TestWordsWrap(t *testing.T) {
	for _, c := range []struct {
		name        string
		s           string
		width, most int
		want        []string
	}{
		{"between words", "the canary is at 5 %", 10, 9, []string{"the canary", "is at 5 %"}},
		{"inside a word longer than a line", "x canaryctl-state y", 6, 9, []string{"x", "canary", "ctl-st", "ate y"}},
		{"what is left over is told", "the canary is at 5 %", 10, 1, []string{"the canar…"}},
		{"after the last word that fits", "at 5 % canary", 9, 1, []string{"at 5 %…"}},
		{"a wide letter that fits nowhere", "日", 1, 2, []string{"…"}},
		{"a wide letter is not split", "日本語", 5, 2, []string{"日本", "語"}},
		{"several spaces are one", " a \t b\n", 10, 2, []string{"a b"}},
		{"nothing", "", 10, 2, nil},
		{"no columns", "a", 0, 2, nil},
		{"no lines", "a", 10, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, wrap(c.s, c.width, c.most, &Unicode)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTextFromOutsideCannotSteerTheTerminal(t *testing.T) {
	for in, want := range map[string]string{
		"plain – 日本 👩‍🚀":              "plain – 日本 👩‍🚀",
		"\x1b[31mred\x1b]0;t\a":       "\uFFFD[31mred\uFFFD]0;t\uFFFD",
		"a\tb\r\nc\u2028d":            "a b  c d",
		"\u00adin\u200bvisible\ufeff": "\uFFFDin\uFFFDvisible\uFFFD", "می\u200cخواهم": "می\u200cخواهم",
		"\u202edlrow\u2066x": "\uFFFDdlrow\uFFFDx",
		"\u009b31m\x7f\x00":  "\uFFFD31m\uFFFD\uFFFD",
		"\u0301a \ufe0f":     "\uFFFDa \uFFFD", "e\u0301 1\ufe0f\u20e3": "e\u0301 1\ufe0f\u20e3",
		"bad \xff\xc3 utf-8":                         "bad \uFFFD\uFFFD utf-8",
		"\u202a\u202b\u202c\u202d\u2067\u2068\u2069": strings.Repeat("\uFFFD", 7),
	} {
		if got := safe(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// anyText is text as people, attackers and emoji keyboards write it.
func anyText() *rapid.Generator[string] {
	odd := rapid.SampledFrom([]string{
		"\x1b[31m", "\x1b]0;", "\x1b", "\t", "\n", "\u009b", "日", "👩‍🚀", "1️⃣", "🇩🇪", "🇩", "\u0301", "\u200d", "\u0600", "\ufe0f", "ﷺ", " ", "\xff", "ก็", "각", "\u1112\u1161\u11ab",
	})
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.OneOf(odd, rapid.String(), rapid.StringMatching(`[a-z]{1,12} `)), 0, 12).Draw(t, "parts")
		return strings.Join(parts, "")
	})
}

func TestTextKeepsToItsColumnsAndLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := rapid.SampledFrom([]*Glyphs{&Unicode, &ASCII}).Draw(t, "glyphs")
		raw := anyText().Draw(t, "s")
		s := safe(raw)
		width, most := rapid.IntRange(-1, 200).Draw(t, "width"), rapid.IntRange(-1, 9).Draw(t, "most")
		if safe(s) != s {
			t.Errorf("%q is made safe twice", raw)
		}
		if got := ansi.StringWidth(cut(raw, width, g)); got > max(width, 0) {
			t.Errorf("%q cut to %d has %d", raw, width, got)
		}
		if got := fit(s, width, g); ansi.StringWidth(got) != max(width, 0) {
			t.Errorf("%q fitted to %d is %q", s, width, got)
		}
		styled := themeOf(Unicode, termenv.ANSI256).Bad.Render(s) + s
		if got := fit(styled, width, g); ansi.StringWidth(got) != max(width, 0) {
			t.Errorf("%q fitted to %d is %q", styled, width, got)
		}
		lines := wrap(raw, width, most, g)
		if len(lines) > max(most, 0) {
			t.Errorf("%d lines, at most %d", len(lines), most)
		}
		for _, line := range lines {
			if ansi.StringWidth(line) > width || strings.ContainsAny(line, "\n\x1b") {
				t.Errorf("line %q in %d", line, width)
			}
		}
	})
}

func TestWrappingLosesNoWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`([a-z]{1,20} ){0,12}`).Draw(t, "s")
		width := rapid.IntRange(1, 40).Draw(t, "width")
		lines := wrap(s, width, 1000, &Unicode)
		if got, want := strings.ReplaceAll(strings.Join(lines, ""), " ", ""), strings.ReplaceAll(s, " ", ""); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if most := len(lines) - 1; most > 0 {
			short := wrap(s, width, most, &Unicode)
			if len(short) != most || !strings.HasSuffix(short[most-1], "…") {
				t.Errorf("%q in %d lines of %d is %q", s, most, width, short)
			}
		}
	})
}
