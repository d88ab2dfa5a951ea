package diag

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxSourceWidth is the widest source line that is shown whole; of a longer one
// the part around the caret is shown.
const maxSourceWidth = 120

// Text writes every finding with its source line, a caret under the marked text
// and its hint. source returns the bytes of a file by its name in the findings;
// it may be nil, or return nil for a file that cannot be shown.
func (l List) Text(w io.Writer, source func(file string) []byte) error {
	var out bytes.Buffer
	lines := map[string][]string{} // by file: finding each anew would take a square of the time
	for _, f := range l {
		of, split := lines[f.File]
		if !split && source != nil {
			of = sourceLines(source(f.File))
			lines[f.File] = of
		}
		out.WriteString(f.render(of))
	}
	_, err := w.Write(out.Bytes())
	return err
}

// Render returns the finding as text that ends in a newline:
//
//	canary.yaml:3:12: pct is 0.015, which is not a whole number of slots [off-ring]
//	  3 |     - {pct: 0.015, min_hold_min: 5}
//	    |             ^~~~~
//	    hint: of 100 slots the nearest shares are 0.01 and 0.02
//
// The source line is left out when src has no such line.
func (f Finding) Render(src []byte) string { return f.render(sourceLines(src)) }

func (f Finding) render(lines []string) string {
	var b strings.Builder
	b.WriteString(f.String())
	b.WriteByte('\n')
	if f.Line >= 1 && f.Line <= len(lines) && strings.TrimSpace(lines[f.Line-1]) != "" {
		f.snippet(&b, lines[f.Line-1])
	}
	if f.Hint != "" {
		b.WriteString("    hint: " + printable(f.Hint) + "\n")
	}
	return b.String()
}

func (f Finding) snippet(b *strings.Builder, line string) {
	runes := []rune(line)
	from := min(max(f.Col-1, 0), len(runes))
	to := min(max(f.EndCol-1, from+1), max(len(runes), from+1))
	first, last := crop(runes, from)
	to = min(to, last)
	before := show(runes[first:from])
	mark := 1
	if to > from {
		mark = max(width(show(runes[from:to])), 1)
	}
	shown := show(runes[first:last])
	pad := width(before)
	if first > 0 {
		shown = "..." + shown
		pad += 3
	}
	if last < len(runes) {
		shown += "..."
	}
	number := strconv.Itoa(f.Line)
	gutter := strings.Repeat(" ", max(len(number), 3))
	fmt.Fprintf(b, "%*s | %s\n", len(gutter), number, strings.TrimRight(shown, " "))
	fmt.Fprintf(b, "%s | %s^%s\n", gutter, strings.Repeat(" ", pad), strings.Repeat("~", mark-1))
}

// crop returns the part of a line to show, of at most maxSourceWidth columns,
// with the rune at from in it: a third of the room before, the rest behind.
func crop(line []rune, from int) (first, last int) {
	if width(string(line)) <= maxSourceWidth {
		return 0, len(line)
	}
	before := func(first, room int) (int, int) {
		for first > 0 && runeWidth(line[first-1]) <= room {
			first--
			room -= runeWidth(line[first])
		}
		return first, room
	}
	first, left := before(from, maxSourceWidth/3)
	room := maxSourceWidth*2/3 + left
	for last = from; last < len(line) && runeWidth(line[last]) <= room; last++ {
		room -= runeWidth(line[last])
	}
	first, _ = before(first, room)
	return first, last
}

// sourceLines parts a file into its lines, without their ends and without a
// byte order mark. Lines end in LF or CRLF.
func sourceLines(src []byte) []string {
	if src == nil {
		return nil
	}
	lines := strings.Split(strings.TrimPrefix(string(src), "\ufeff"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	return lines
}

// show turns runes into what a terminal may print: one column for a tab, the
// replacement character for what would move the cursor.
func show(runes []rune) string {
	var b strings.Builder
	for _, r := range runes {
		switch {
		case r == '\t':
			b.WriteByte(' ')
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError || isDirection(r):
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func printable(s string) string { return show([]rune(s)) }

// isDirection reports whether r changes the direction of text, which could make
// a line read as what it is not.
func isDirection(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x2028 || r == 0x2029
}
