package tui

import (
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"pgregory.net/rapid"
)

func TestLineIsWrittenWithTheKeysOfAShell(t *testing.T) {
	typed := func(s string) tea.KeyMsg { return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(s)} }
	alt := func(r rune) tea.KeyMsg { return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}, Alt: true} }
	key := func(k tea.KeyType) tea.KeyMsg { return tea.KeyMsg{Type: k} }
	for _, tt := range []struct {
		name string
		keys []tea.KeyMsg
		want string // with | for the cursor
	}{
		{"typed at the cursor", []tea.KeyMsg{typed("bd"), key(tea.KeyLeft), typed("a"), key(tea.KeyHome), typed("(")}, "(|bad"},
		{"not past the ends", []tea.KeyMsg{key(tea.KeyLeft), key(tea.KeyBackspace), key(tea.KeyDelete), typed("a"), key(tea.KeyRight), key(tea.KeyDelete)}, "a|"},
		{"a blank", []tea.KeyMsg{typed("a"), {Type: tea.KeySpace, Runes: []rune{' '}}, typed("b")}, "a b|"},
		{"what was pasted is one line", []tea.KeyMsg{{Type: tea.KeyRunes, Runes: []rune("a\tb\r\nc\x1b[2Jd\u0085\uFFFD"), Paste: true}}, "a b  c[2Jd|"},
		{"the name of a key, typed at once", []tea.KeyMsg{typed("left"), typed("ctrl+u")}, "leftctrl+u|"},
		{"words to the left", []tea.KeyMsg{typed("one two  "), alt('b'), typed("|"), key(tea.KeyCtrlLeft), key(tea.KeyCtrlLeft)}, "|one |two  "},
		{"words to the right", []tea.KeyMsg{typed("one  two"), key(tea.KeyCtrlA), alt('f'), key(tea.KeyCtrlRight)}, "one  two|"},
		{"a word before it goes, the blank stays", []tea.KeyMsg{typed("one two  "), key(tea.KeyCtrlW)}, "one |"},
		{"a word behind it goes", []tea.KeyMsg{typed("one two  "), key(tea.KeyHome), alt('d'), alt('d'), alt('d')}, "|"},
		{"all before it", []tea.KeyMsg{typed("one two"), key(tea.KeyCtrlB), key(tea.KeyCtrlU)}, "|o"},
		{"all behind it", []tea.KeyMsg{typed("one two"), key(tea.KeyCtrlA), key(tea.KeyCtrlF), key(tea.KeyCtrlK)}, "o|"},
		{"no more than fits", []tea.KeyMsg{typed("0123456789"), key(tea.KeyHome), typed("abcdef")}, "ab|0123456789"},
		{"keys without a letter", []tea.KeyMsg{typed("a"), key(tea.KeyTab), key(tea.KeyUp), key(tea.KeyCtrlV), key(tea.KeyF1)}, "a|"},
	} {
		var l line
		for _, k := range tt.keys {
			l = l.press(k, 12)
		}
		if got := string(l.text[:l.at]) + "|" + string(l.text[l.at:]); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestLineKeepsWhatWasBefore presses any keys: the cursor stays in the line, the
// line in its bound, and the lines before are as they were.
func TestLineKeepsWhatWasBefore(t *testing.T) {
	kinds := []tea.KeyType{tea.KeyLeft, tea.KeyRight, tea.KeyHome, tea.KeyEnd, tea.KeyBackspace, tea.KeyDelete, tea.KeyCtrlW, tea.KeyCtrlU, tea.KeyCtrlK, tea.KeyCtrlLeft, tea.KeyCtrlRight}
	rapid.Check(t, func(t *rapid.T) {
		lines, said := []line{{}}, []string{""}
		for range rapid.IntRange(1, 30).Draw(t, "keys") {
			k := tea.KeyMsg{Type: rapid.SampledFrom(kinds).Draw(t, "kind")}
			if rapid.Bool().Draw(t, "typed") {
				k = tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(rapid.String().Draw(t, "text")), Alt: rapid.Bool().Draw(t, "alt")}
			}
			next := lines[len(lines)-1].press(k, 20)
			if next.at < 0 || next.at > len(next.text) || len(next.text) > 20 || strings.ContainsAny(string(next.text), "\n\r\t\x1b") {
				t.Fatalf("%q with the cursor at %d", string(next.text), next.at)
			}
			lines, said = append(lines, next), append(said, string(next.text))
		}
		for i, l := range lines {
			if string(l.text) != said[i] {
				t.Fatalf("line %d was %q and has become %q", i, said[i], string(l.text))
			}
		}
	})
}
