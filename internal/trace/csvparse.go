package trace

import (
	"bytes"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// csvParser reads blocks of CSV.
type csvParser struct {
	rowTaker
	high bool // a byte that is not ASCII was met in the row
}

// parse implements [blockParser].
func (p *csvParser) parse(rc *recipe, b *block, out *batch) {
	if rc != p.rc && rc != nil {
		p.use(rc)
	}
	quick := rc != nil && rc.quick
	line := 0
	for i := b.from; i < b.to; {
		if quick {
			if next, lines := p.row(b, i, line, out); next > 0 {
				i, line = next, line+lines
				continue
			}
		}
		end, _ := rowEnd(b.buf[:b.to], i)
		lines := max(bytes.Count(b.buf[i:end], []byte("\n")), 1)
		if !blank(b.buf[i:end]) {
			p.leave(b, i, end, line, out)
		}
		i, line = end, line+lines
	}
	out.lines = int64(line)
}

// leave puts a row into out to be read with care.
func (p *csvParser) leave(b *block, i, end, line int, out *batch) {
	last := end >= b.to
	out.records = append(out.records, record{line: int32(line), said: said{odd: true}})
	out.odd = append(out.odd, oddRow{text: b.buf[i:end], line: int64(line), cut: last && b.cut, long: last && b.long || end-i > maxLine})
}

// row reads the row at b.buf[i] and returns where the next one starts and how
// many lines it has, or 0 where it must be read with care.
func (p *csvParser) row(b *block, i, line int, out *batch) (next, lines int) {
	p.q.reset()
	p.high = false
	end, lines, ok := p.cells(b.buf, i)
	if !ok || end-i >= maxLine || end >= b.to && b.cut {
		return 0, 0
	}
	p.q.raw = bytes.TrimSuffix(b.buf[i:end], []byte("\r"))
	rec := p.take(out, line)
	if rec == nil {
		return 0, 0
	}
	rec.foreign = p.high && p.q.foreign()
	return end + 1, lines
}

// cells reads the cells of the row at b[i] into p.q. It returns the index of the
// newline that ends the row, and how many there are.
func (p *csvParser) cells(b []byte, i int) (end, lines int, ok bool) {
	wanted, n, lines := p.rc.cells, 0, 1
	for start := i; ; n++ {
		var text []byte
		if b[i] == '"' {
			if text, i, ok = p.quoted(b, i+1); !ok {
				return i, 0, false
			}
			if lines += bytes.Count(text, []byte("\n")); b[i] == '\r' && b[i+1] == '\n' {
				i++
			}
			if b[i] != ',' && b[i] != '\n' {
				return i, 0, false
			}
		} else {
			from := i
			if i, ok = p.plainEnd(b, i); !ok {
				return i, 0, false
			}
			text = b[from:i]
		}
		for len(wanted) > 0 && wanted[0].index == n {
			if !p.put(wanted[0].field, trim(text)) || p.high && !utf8.Valid(text) {
				return i, 0, false
			}
			wanted = wanted[1:]
		}
		if b[i] == '\n' {
			return i, lines, n+1 == p.rc.width && (n > 0 || !blank(b[start:i]))
		}
		i++
	}
}

// quoted returns the text of the quoted cell whose first byte is b[i], and the
// index after its closing quote. It reports false for one with quotes in it.
func (p *csvParser) quoted(b []byte, i int) (text []byte, end int, ok bool) {
	n := bytes.IndexByte(b[i:], '"')
	if n < 0 || b[i+n+1] == '"' {
		return nil, i, false
	}
	text = b[i : i+n]
	for _, c := range text {
		if c == 0 || c == '\r' { // a NUL, or a newline of two bytes, which counts as one
			return nil, i, false
		}
		p.high = p.high || c >= utf8.RuneSelf
	}
	return text, i + n + 1, true
}

// plainEnd returns the index of the comma or the newline after the cell at b[i],
// eight bytes at a time. It reports false for a cell with quotes or NULs in it.
func (p *csvParser) plainEnd(b []byte, i int) (end int, ok bool) {
	for {
		x := load(b, i)
		comma, line, quote := x^ones*',', x^ones*'\n', x^ones*'"'
		// As in stringEnd, the lowest of the bits is right.
		m := ((comma-ones)&^comma | (line-ones)&^line | (quote-ones)&^quote | (x-ones)&^x | x) & highs
		if m == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(m) / 8
		switch c := b[i]; {
		case c == ',' || c == '\n':
			return i, true
		case c < utf8.RuneSelf:
			return i, false
		}
		p.high = true
		i++
	}
}

// plainCells are the columns in which fields stand, in their order, or false
// where some cell holds JSON of its own.
func (c *csvReader) plainCells() ([]csvCell, bool) {
	cells := slices.Clone(c.cells)
	slices.SortStableFunc(cells, func(a, b csvCell) int { return a.index - b.index })
	return cells, !slices.ContainsFunc(cells, func(c csvCell) bool { return c.inner != nil })
}
