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
	p.begin()
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

// csvScan is where a parser stands in a row.
type csvScan struct {
	wanted []csvCell // that are still to come
	column int
	from   int // where the cell starts
}

// cells reads the cells of the row at b[i] into p.q, eight bytes at a time. It
// returns the index of the newline that ends the row, and how many lines it has.
func (p *csvParser) cells(b []byte, i int) (end, lines int, ok bool) {
	at := csvScan{wanted: p.rc.cells, from: i}
	lines = 1
	for {
		x := load(b, i)
		comma, line, quote := x^ones*',', x^ones*'\n', x^ones*'"'
		p.high = p.high || x&highs != 0
		// Of each byte that is looked for the lowest is found; those above it may
		// err, so the byte itself is looked at.
		m := ((comma-ones)&^comma | (line-ones)&^line | (quote-ones)&^quote | (x-ones)&^x) & highs
		next := i + 8
		for ; m != 0; m &= m - 1 {
			j := i + bits.TrailingZeros64(m)/8
			switch b[j] {
			case ',':
				if !p.cell(&at, b[at.from:j]) {
					return j, 0, false
				}
				at.from = j + 1
				continue
			case '\n':
				if !p.cell(&at, b[at.from:j]) {
					return j, 0, false
				}
				return j, lines, at.column == p.rc.width && (at.column > 1 || !blank(b[at.from:j]))
			case '"':
				if j != at.from {
					return j, 0, false
				}
				newlines := 0
				if next, newlines, ok = p.quoted(&at, b, j+1); !ok {
					return j, 0, false
				}
				if lines += newlines; b[next] == '\n' {
					return next, lines, at.column == p.rc.width
				}
				next++
				at.from = next
			case 0:
				return j, 0, false
			default:
				continue
			}
			break
		}
		i = next
	}
}

// cell takes the text of a cell where it is wanted.
func (p *csvParser) cell(at *csvScan, text []byte) bool {
	n := at.column
	at.column++
	for len(at.wanted) > 0 && at.wanted[0].index == n {
		if p.high && !utf8.Valid(text) || !p.put(at.wanted[0].field, trim(text)) {
			return false
		}
		at.wanted = at.wanted[1:]
	}
	return true
}

// quoted reads the quoted cell whose first byte is b[i]. It returns the index of
// the comma or newline after it, and how many newlines are in it.
func (p *csvParser) quoted(at *csvScan, b []byte, i int) (end, newlines int, ok bool) {
	end = quotedEnd(b, i)
	if end < 0 {
		return i, 0, false
	}
	text := b[i : end-1]
	if bytes.IndexByte(text, 0) >= 0 {
		return i, 0, false
	}
	newlines = bytes.Count(text, []byte("\n"))
	p.high = p.high || !p.high && !ascii(text)
	if len(at.wanted) > 0 && at.wanted[0].index == at.column && bytes.ContainsAny(text, "\"\r") {
		return i, 0, false // it must be decoded
	}
	if b[end] == '\r' && b[end+1] == '\n' {
		end++
	}
	return end, newlines, (b[end] == ',' || b[end] == '\n') && p.cell(at, text)
}

func ascii(text []byte) bool {
	for _, c := range text {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// plainCells are the columns in which fields stand, in their order, or false
// where some cell holds JSON of its own.
func (c *csvReader) plainCells() ([]csvCell, bool) {
	cells := slices.Clone(c.cells)
	slices.SortStableFunc(cells, func(a, b csvCell) int { return a.index - b.index })
	return cells, !slices.ContainsFunc(cells, func(c csvCell) bool { return c.inner != nil })
}
