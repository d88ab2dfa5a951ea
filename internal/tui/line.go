package tui

import (
	"slices"
	"unicode"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"
)

// line is one line of text that is being written, with the keys of a shell's line.
// The widget of bubbles has the clipboard with it, whose programs are looked for as
// canaryctl starts; a terminal pastes by itself.
type line struct {
	text []rune
	at   int // where the cursor stands: before this letter
}

// press returns the line as a key leaves it. At most so many letters are kept.
func (l line) press(msg tea.KeyMsg, most int) line {
	if msg.Type == tea.KeyRunes && !msg.Alt {
		return l.with(msg.Runes, most) // also where what was typed is the name of a key
	}
	n := len(l.text)
	switch msg.String() {
	case "left", "ctrl+b":
		l.at = max(l.at-1, 0)
	case "right", "ctrl+f":
		l.at = min(l.at+1, n)
	case "home", "ctrl+a":
		l.at = 0
	case "end", "ctrl+e":
		l.at = n
	case "alt+left", "ctrl+left", "alt+b":
		l.at = l.wordBefore()
	case "alt+right", "ctrl+right", "alt+f":
		l.at = l.wordAfter()
	case "backspace", "ctrl+h":
		return l.without(max(l.at-1, 0), l.at)
	case "delete", "ctrl+d":
		return l.without(l.at, min(l.at+1, n))
	case "alt+backspace", "ctrl+w":
		return l.without(l.wordBefore(), l.at)
	case "alt+delete", "alt+d":
		return l.without(l.at, l.wordAfter())
	case "ctrl+u":
		return l.without(0, l.at)
	case "ctrl+k":
		return l.without(l.at, n)
	default:
		return l.with(msg.Runes, most)
	}
	return l
}

// with returns the line with letters at the cursor.
func (l line) with(letters []rune, most int) line {
	typed := printable(letters)
	typed = typed[:min(len(typed), most-len(l.text))]
	return line{text: slices.Insert(slices.Clone(l.text), l.at, typed...), at: l.at + len(typed)}
}

// without returns the line without the letters from one place to another. What
// shares the text with it keeps them.
func (l line) without(from, to int) line {
	return line{text: slices.Delete(slices.Clone(l.text), from, to), at: from}
}

// wordBefore returns where the word begins that the cursor stands in or behind.
func (l line) wordBefore() int {
	i := l.at
	for i > 0 && unicode.IsSpace(l.text[i-1]) {
		i--
	}
	for i > 0 && !unicode.IsSpace(l.text[i-1]) {
		i--
	}
	return i
}

// wordAfter returns where the word ends that the cursor stands in or before.
func (l line) wordAfter() int {
	i := l.at
	for i < len(l.text) && unicode.IsSpace(l.text[i]) {
		i++
	}
	for i < len(l.text) && !unicode.IsSpace(l.text[i]) {
		i++
	}
	return i
}

// printable returns what may stand in one line of a terminal: blanks for the ends
// of lines and tabs, as pasted text has them, and no control characters.
func printable(typed []rune) (kept []rune) {
	for _, r := range typed {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			kept = append(kept, ' ')
		case r != utf8.RuneError && !unicode.IsControl(r):
			kept = append(kept, r)
		}
	}
	return kept
}
