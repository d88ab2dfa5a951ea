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
	if b.file != nil && b.seq > 0 && !b.aligned {
		p.guess(b, quick)
	}
	p.begins()
	p.read(b, quick, out)
	if p.again(out) {
		out.reset()
		p.read(b, quick, out)
	}
}

// parseApart implements [blockParser].
func (p *csvParser) parseApart(b *block, out *batch) {
	p.giveUp()
	p.read(b, p.rc.quick, out)
}

func (p *csvParser) read(b *block, quick bool, out *batch) {
	line := 0
	for i := b.from; i < b.to && !p.failed; {
		if quick {
			if next, lines := p.row(b, i, line, out); next > 0 {
				i, line = next, line+lines
				continue
			}
		}
		end, whole := rowEnd(b.buf[:b.n], i)
		if !whole {
			if b.more(i) {
				continue
			}
			end = b.n
		}
		text := b.buf[i:end]
		if long := !whole && b.long || len(text) > maxLine; long || !blank(text) {
			out.leave(oddRow{text: text, line: int64(line), cut: !whole && !b.long, long: long})
		}
		i, line = end, line+linesIn(text)
		out.end = b.at + int64(end) + b.skipped
	}
	out.lines = int64(line)
}

// guess lets the block begin with the first of its lines that reads as a row, if
// one of the first sixteen does: those before it are the end of a quoted cell.
// Else it is not read before its turn comes.
func (p *csvParser) guess(b *block, quick bool) {
	for i, left := b.from, 16; quick && i < b.to && left > 0; left-- {
		p.begin()
		if end, _, ok := p.cells(b.buf, i); ok && end < b.n {
			b.from = i
			return
		}
		i, _ = lineEnd(b.buf[:b.n], i)
	}
	b.from = b.to
}

// row reads the row at b.buf[i] and returns where the next one starts and how
// many lines it has, or 0 where it must be read with care.
func (p *csvParser) row(b *block, i, line int, out *batch) (next, lines int) {
	p.begin()
	p.high = false
	end, lines, ok := p.cells(b.buf, i)
	if !ok || end-i >= maxLine || end >= b.n { // with the last newline, or without
		return 0, 0
	}
	p.q.raw = bytes.TrimSuffix(b.buf[i:end], []byte("\r"))
	if !p.take(out, line, p.high) {
		return 0, 0
	}
	out.end = b.at + int64(end) + 1
	return end + 1, lines
}

// csvScan is where a parser stands in a row.
type csvScan struct {
	wanted int // which of the recipe's cells comes next
	want   int // its column, -1 where there is none
	column int
	from   int // where the cell starts
}

// cells reads the cells of the row at b[i] into p.q, eight bytes at a time. It
// returns the index of the newline that ends the row, and how many lines it has.
func (p *csvParser) cells(b []byte, i int) (end, lines int, ok bool) {
	at := csvScan{want: p.rc.cells[0].index, from: i}
	high := uint64(0)
	for lines = 1; ; {
		x := load(b, i)
		comma, line, quote := x^ones*',', x^ones*'\n', x^ones*'"'
		high |= x
		// Of each byte that is looked for the lowest is found; those above it may
		// err, so the byte itself is looked at.
		m := ((comma-ones)&^comma | (line-ones)&^line | (quote-ones)&^quote | (x-ones)&^x) & highs
		next := i + 8
		for ; m != 0; m &= m - 1 {
			j := i + bits.TrailingZeros64(m)/8
			c := b[j]
			if c == ',' || c == '\n' {
				if at.column == at.want && !p.plain(&at, b, j, high) {
					return j, 0, false
				}
				at.column++
				if c == '\n' {
					p.high = p.high || high&highs != 0
					return j, lines, at.column == p.rc.width && (at.column > 1 || !blank(b[at.from:j]))
				}
				at.from = j + 1
				continue
			}
			if c == 0 || c == '"' && j != at.from {
				return j, 0, false
			}
			if c != '"' {
				continue
			}
			newlines := 0
			if next, newlines, ok = p.quoted(&at, b, j+1); !ok {
				return j, 0, false
			}
			if lines += newlines; b[next] == '\n' {
				p.high = p.high || high&highs != 0
				return next, lines, at.column == p.rc.width
			}
			next++
			at.from = next
			break
		}
		i = next
	}
}

// next returns the field of the cell that is wanted, and goes on to the next one.
func (p *csvParser) next(at *csvScan) Field {
	f := p.rc.cells[at.wanted].field
	at.wanted++
	at.want = p.rc.cells[at.wanted].index
	return f
}

// plain reads the cell that ends at b[j] into the fields that stand there.
func (p *csvParser) plain(at *csvScan, b []byte, j int, high uint64) bool {
	for at.column == at.want {
		f := p.next(at)
		switch classes[f] {
		case instantClass: // mostly of the same minute as the one before
			if t, ok := p.clock.of(b[at.from:j]); ok {
				p.q.meet(f)
				p.q.t, p.clock.zone = t, false
				continue
			}
		case numberClass:
			if n, end, ok := shortNumber(b, at.from); ok && end == j && n.mant < 1<<53 {
				p.q.meet(f)
				p.q.nums[f] = n
				continue
			}
		case flagClass:
			if end, ok := p.word(b, at.from, f); ok && end == j {
				continue
			}
		}
		text := b[at.from:j]
		if high&highs != 0 && !utf8.Valid(text) || !p.put(f, trim(text)) {
			return false
		}
	}
	return true
}

// word reads true or false.
func (p *csvParser) word(b []byte, i int, f Field) (end int, ok bool) {
	switch x := load(b, i); {
	case x&0xffffffff == wordTrue:
		end = i + 4
	case x&0xffffffffff == wordFalse:
		end = i + 5
	}
	if c := b[end]; end == 0 || c != ',' && c != '\n' {
		return end, false
	}
	if p.q.meet(f); end == i+4 {
		p.q.flags.add(f)
	}
	return end, true
}

// quoted reads the quoted cell whose first byte is b[i]. It returns the index of
// the comma or newline after it, and how many newlines are in it.
func (p *csvParser) quoted(at *csvScan, b []byte, i int) (end, newlines int, ok bool) {
	from, doubled := i, false
	for {
		x := load(b, i)
		line, quote := x^ones*'\n', x^ones*'"'
		p.high = p.high || x&highs != 0
		m := ((line-ones)&^line | (quote-ones)&^quote | (x-ones)&^x) & highs
		if m == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(m)/8 + 1
		switch b[i-1] {
		case '\n':
			newlines++
		case '"':
			if b[i] == '"' {
				doubled = true
				i++
				continue
			}
			end = i
			if b[end] == '\r' && b[end+1] == '\n' {
				end++
			}
			if b[end] != ',' && b[end] != '\n' || newlines > 0 && bytes.Contains(b[from:i], []byte("\r\n")) { // which count as one newline
				return i, 0, false
			}
			return end, newlines, p.cell(at, b[from:i-1], doubled)
		default: // a NUL, of which there must be one where the block ends
			return i, 0, false
		}
	}
}

// cell takes the text of a quoted cell where it is wanted.
func (p *csvParser) cell(at *csvScan, text []byte, doubled bool) bool {
	for at.column == at.want {
		if doubled || bytes.IndexByte(text, '\r') >= 0 { // it must be decoded
			return false
		}
		if f := p.next(at); p.high && !utf8.Valid(text) || !p.put(f, trim(text)) {
			return false
		}
	}
	at.column++
	return true
}

// plainCells are the columns in which fields stand, in their order, and after
// them one that is not there; or false where some cell holds JSON of its own.
func (c *csvReader) plainCells() ([]csvCell, bool) {
	cells := slices.Clone(c.cells)
	slices.SortStableFunc(cells, func(a, b csvCell) int { return a.index - b.index })
	return append(cells, csvCell{index: -1}), !slices.ContainsFunc(cells, func(c csvCell) bool { return c.inner != nil })
}
