package report

import (
	"io"
	"strings"
)

// write writes a text. On a terminal a line that is longer than a row goes on
// below, indented.
func (s Style) write(w io.Writer, text string) error {
	if s.Width > 0 {
		var b strings.Builder
		for line := range strings.Lines(text) {
			fold(&b, line, s.width())
		}
		text = b.String()
	}
	_, err := io.WriteString(w, text)
	return err
}

// fold writes a line in rows of at most width columns, broken at spaces; a
// word that is longer than a row stays whole.
func fold(b *strings.Builder, line string, width int) {
	hang(b, line, width, len(line)-len(strings.TrimLeft(line, " "))+2)
}

// hang is fold with the indentation of the rows below the first.
func hang(b *strings.Builder, line string, width, indent int) {
	col := 0
	for rest := line; rest != ""; {
		bare := strings.TrimLeft(rest, " ")
		end := strings.IndexByte(bare, ' ')
		if end < 0 {
			end = len(bare)
		}
		word := rest[:len(rest)-len(bare)+end] // with the spaces before it
		rest = bare[end:]
		if col > indent && col+columns(word) > width {
			b.WriteString("\n" + strings.Repeat(" ", indent))
			word, col = bare[:end], indent
		}
		b.WriteString(word)
		col += columns(word)
	}
}

// columns is the room that a text takes on a terminal: newlines and colours
// take none.
func columns(text string) (n int) {
	escape := false
	for _, r := range text {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		case r != '\n':
			n++
		}
	}
	return n
}
