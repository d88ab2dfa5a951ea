package main

import (
	"fmt"
	"html"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Metrics of the picture, in pixels.
const (
	cellWidth  = 8.4
	cellHeight = 18
	margin     = 12
	fontSize   = 14
)

// The colours of a terminal with a dark background.
const (
	background = "#101418"
	foreground = "#d7dce2"
)

// The first 16 colours, as most terminals have them.
var palette = [16]string{
	"#1c2128", "#ff6b6b", "#5fd787", "#ffd75f", "#6cb6ff", "#dcbdfb", "#5fd7d7", "#d7dce2",
	"#768390", "#ff8f8f", "#8ddb8c", "#ffe58f", "#96d0ff", "#eedcff", "#8be9e9", "#ffffff",
}

// line is a row of the screen from one moment to another.
type line struct {
	row      int
	text     string
	from, to int // screens
}

// draw writes the screens as one picture. A row that stays the same from screen
// to screen is drawn once.
func draw(screens []screen, cols, rows int, title string) string {
	total := 0.0
	starts := make([]float64, len(screens)+1)
	for i, s := range screens {
		total += s.seconds
		starts[i+1] = total
	}
	width, height := 2*margin+cellWidth*float64(cols), 2*margin+cellHeight*rows
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" role="img">`+"\n", width, height)
	if title != "" {
		fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(title))
	}
	spans := lines(screens, rows)
	style(&b, spans, starts, total)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", background)
	for _, l := range spans {
		class := ""
		if l.from > 0 || l.to < len(screens) {
			class = fmt.Sprintf(` class="s%d-%d"`, l.from, l.to)
		}
		fmt.Fprintf(&b, "<g%s>%s</g>\n", class, cells(l.text, l.row))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// lines finds each row's spans of screens.
func lines(screens []screen, rows int) (out []line) {
	at := func(screen, row int) string {
		if s := screens[screen].lines; row < len(s) {
			return s[row]
		}
		return ""
	}
	for row := range rows {
		for from := 0; from < len(screens); {
			to := from + 1
			for to < len(screens) && at(to, row) == at(from, row) {
				to++
			}
			if text := at(from, row); text != "" {
				out = append(out, line{row: row, text: text, from: from, to: to})
			}
			from = to
		}
	}
	return out
}

// style writes the animation: a rule for each span of screens.
func style(b *strings.Builder, spans []line, starts []float64, total float64) {
	fmt.Fprintf(b, "<style>\ntext{font:%dpx ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;fill:%s;white-space:pre}\n", fontSize, foreground)
	last := len(starts) - 1
	seen := map[string]bool{}
	for _, l := range spans {
		name := fmt.Sprintf("s%d-%d", l.from, l.to)
		if l.from == 0 && l.to == last || seen[name] {
			continue
		}
		seen[name] = true
		fmt.Fprintf(b, ".%s{visibility:hidden;animation:%s %.2fs step-end infinite}\n@keyframes %s{", name, name, total, name)
		if l.from > 0 {
			b.WriteString("0%{visibility:hidden}")
		}
		fmt.Fprintf(b, "%.3f%%{visibility:visible}", 100*starts[l.from]/total)
		if l.to < last {
			fmt.Fprintf(b, "%.3f%%{visibility:hidden}", 100*starts[l.to]/total)
		}
		b.WriteString("}\n")
	}
	b.WriteString("</style>\n")
}

// pen is how text is drawn.
type pen struct {
	fill, back           string
	bold, faint, reverse bool
}

// cells draws a row, a piece for each change of the pen.
func cells(text string, row int) string {
	var b strings.Builder
	var p pen
	column := 0
	for len(text) > 0 {
		if rest, ok := strings.CutPrefix(text, "\x1b["); ok {
			end := strings.IndexFunc(rest, func(r rune) bool { return r >= '@' && r <= '~' })
			if end < 0 {
				break
			}
			if rest[end] == 'm' {
				p.set(rest[:end])
			}
			text = rest[end+1:]
			continue
		}
		end := strings.IndexByte(text, '\x1b')
		if end < 0 {
			end = len(text)
		}
		b.WriteString(p.piece(text[:end], column, row))
		column += utf8.RuneCountInString(text[:end])
		text = text[end:]
	}
	return b.String()
}

// piece draws a run of text. Blanks are drawn only where they have a background.
func (p *pen) piece(text string, column, row int) string {
	fill, back := p.fill, p.back
	if fill == "" {
		fill = foreground
	}
	if p.reverse {
		if back == "" {
			back = background
		}
		fill, back = back, fill
	}
	x, width := margin+cellWidth*float64(column), cellWidth*float64(utf8.RuneCountInString(text))
	out := ""
	if back != "" {
		out = fmt.Sprintf(`<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`, x, margin+cellHeight*row, width, cellHeight, back)
	}
	if strings.TrimSpace(text) == "" {
		return out
	}
	attrs := ""
	if fill != foreground {
		attrs += ` fill="` + fill + `" style="fill:` + fill + `"`
	}
	if p.bold {
		attrs += ` font-weight="bold"`
	}
	if p.faint {
		attrs += ` opacity="0.6"`
	}
	return out + fmt.Sprintf(`<text x="%.1f" y="%d" textLength="%.1f" xml:space="preserve"%s>%s</text>`,
		x, margin+cellHeight*row+fontSize, width, attrs, html.EscapeString(text))
}

// set takes the parameters of an SGR sequence (ECMA-48, 8.3.117).
func (p *pen) set(params string) {
	fields := strings.FieldsFunc(params, func(r rune) bool { return r == ';' || r == ':' })
	if len(fields) == 0 {
		*p = pen{}
	}
	for i := 0; i < len(fields); i++ {
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			continue
		}
		switch {
		case n == 0:
			*p = pen{}
		case n == 1:
			p.bold = true
		case n == 2:
			p.faint = true
		case n == 7:
			p.reverse = true
		case n == 22:
			p.bold, p.faint = false, false
		case n == 27:
			p.reverse = false
		case n >= 30 && n <= 37:
			p.fill = palette[n-30]
		case n >= 90 && n <= 97:
			p.fill = palette[n-90+8]
		case n == 39:
			p.fill = ""
		case n >= 40 && n <= 47:
			p.back = palette[n-40]
		case n == 49:
			p.back = ""
		case n == 38 || n == 48:
			color, used := colorOf(fields[i+1:])
			if i += used; n == 38 {
				p.fill = color
			} else {
				p.back = color
			}
		}
	}
}

// colorOf reads a colour of 256 or of all, and how many parameters it took.
func colorOf(fields []string) (color string, used int) {
	number := func(i int) int {
		if i >= len(fields) {
			return 0
		}
		n, _ := strconv.Atoi(fields[i])
		return n
	}
	switch number(0) {
	case 2:
		return fmt.Sprintf("#%02x%02x%02x", number(1), number(2), number(3)), 4
	case 5:
		return indexed(number(1)), 2
	}
	return "", 1
}

// indexed is a colour of the 256: the 16, a cube of 6, and greys.
func indexed(n int) string {
	switch {
	case n < 16:
		return palette[max(n, 0)]
	case n < 232:
		level := func(v int) int {
			if v == 0 {
				return 0
			}
			return 55 + 40*v
		}
		n -= 16
		return fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6%6), level(n%6))
	}
	grey := 8 + 10*(min(n, 255)-232)
	return fmt.Sprintf("#%02x%02x%02x", grey, grey, grey)
}
