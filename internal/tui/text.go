package tui

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// The functions of this file measure by the columns that a terminal shows. Text
// from outside goes through [safe] first; styled text may be cut and fitted.

// cut shortens a line to width columns, the last of which then says that there
// was more.
func cut(s string, width int, g *Glyphs) string {
	if width <= 0 {
		return ""
	}
	if ansi.StringWidth(s) <= width {
		return s
	}
	// Truncate measures some clusters, such as keycaps, narrower than they are
	// shown: what came out too wide is cut again.
	for room := width; room > 0; room-- {
		if out := ansi.Truncate(s, room, g.More); ansi.StringWidth(out) <= width {
			return out
		}
	}
	return ""
}

// fit cuts a line to width columns, or fills it with spaces: it is exactly as
// wide as that.
func fit(s string, width int, g *Glyphs) string {
	return padded(cut(s, width, g), width, false)
}

// padded fills a line with spaces, before it or behind it. It measures again
// afterwards, since there are letters that join with a space.
func padded(s string, width int, before bool) string {
	for free := width - ansi.StringWidth(s); free > 0; free = width - ansi.StringWidth(s) {
		if before {
			s = strings.Repeat(" ", free) + s
		} else {
			s += strings.Repeat(" ", free)
		}
	}
	return s
}

// wrap breaks plain text into at most so many lines of width columns, between
// words and inside those that are longer than a line. Where something is left
// over, the last line ends by saying so. Nothing has no lines.
func wrap(s string, width, most int, g *Glyphs) []string {
	if width <= 0 || most <= 0 {
		return nil
	}
	var lines []string
	line := ""
	for _, word := range strings.Fields(safe(s)) {
		switch {
		case line == "":
			line = word
		case ansi.StringWidth(line+" "+word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
		for ansi.StringWidth(line) > width && len(lines) <= most {
			head := headOf(line, width)
			line = line[len(head):]
			if ansi.StringWidth(head) > width { // a single wide letter
				head = g.More
			}
			lines = append(lines, head)
		}
		if len(lines) > most {
			break
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	if len(lines) > most {
		last := padded(lines[most-1], width, false) + " "
		lines = append(lines[:most-1], tight(cut(last, width, g), g))
	}
	return lines
}

// headOf is the longest beginning of a word that fits, and at least its first
// letter with all that combines with it.
func headOf(word string, width int) string {
	end := 0
	for end < len(word) {
		letter, _ := ansi.FirstGraphemeCluster(word[end:], ansi.GraphemeWidth)
		if end > 0 && ansi.StringWidth(word[:end+len(letter)]) > width {
			break
		}
		end += len(letter)
	}
	return word[:end]
}

// tight moves the mark at the end of a line to its last word.
func tight(s string, g *Glyphs) string {
	if text, ok := strings.CutSuffix(s, g.More); ok {
		return strings.TrimRight(text, " ") + g.More
	}
	return s
}

// safe makes one line of text from outside that cannot move the cursor, colour
// what follows, turn its direction, hide or combine with what stands before it.
// What controls or formats without being seen becomes U+FFFD (joiners inside words
// excepted), and so do bytes that are no UTF-8 and marks without a letter to stand
// on; tabs and line ends become spaces.
func safe(s string) string {
	before := ' '
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\r', r == '\u2028', r == '\u2029':
			r = ' '
		case combines(r):
			if before == ' ' {
				r = unicode.ReplacementChar
			}
		case unicode.In(r, unicode.Cc, unicode.Cf):
			r = unicode.ReplacementChar
		}
		before = r
		return r
	}, s)
}

// combines reports whether r is shown together with the letter before it: marks,
// which variation selectors are too, joiners, and skin colours.
func combines(r rune) bool {
	return unicode.Is(unicode.M, r) || r == '\u200c' || r == '\u200d' || r >= '\U0001f3fb' && r <= '\U0001f3ff'
}
