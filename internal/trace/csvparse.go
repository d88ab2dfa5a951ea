package trace

import (
	"bytes"
	"math/bits"
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
	p.begins(b, out)
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
	end, lines, ok := p.cells(b.buf, i)
	if !ok || end-i >= maxLine || end >= b.n { // with the last newline, or without
		return 0, 0
	}
	p.q.raw = b.buf[i:end]
	if last := end - 1; last >= i && b.buf[last] == '\r' {
		p.q.raw = b.buf[i:last]
	}
	if !p.take(out, line, p.high) {
		return 0, 0
	}
	out.end = b.at + int64(end) + 1
	return end + 1, lines
}

// cells reads the cells of the row at b[i] into p.q. It returns the index of the
// newline that ends the row, and how many lines it has.
//
// Cells that nothing is read from are skipped several at a time. From the first
// one on that is not as most are the cells are read one by one.
func (p *csvParser) cells(b []byte, i int) (end, lines int, ok bool) {
	p.high = false
	column, last := 0, len(p.rc.uses)-1
	steps := p.rc.steps
	if p.sums {
		steps = p.rc.sumSteps
	}
	for k := range steps {
		step := &steps[k]
		if step.skip > 0 {
			next := skipCells(b, i, step.skip)
			if next == 0 {
				return p.oddCells(b, i, column)
			}
			i, column = next, column+step.skip
		}
		if step.use == toText {
			next := skipCells(b, i, 1)
			if end = next - 1; next == 0 || !p.rowTaker.put(step.field, trim(b[i:end])) {
				return p.oddCells(b, i, column)
			}
		} else if end, ok = p.short(step.cellUse, b, i); !ok {
			return p.oddCells(b, i, column)
		}
		if column == last {
			return end, 1, b[end] == '\n' && (column > 0 || end > i) // an empty line is no row
		}
		if b[end] != ',' {
			return end, 0, false
		}
		i, column = end+1, column+1
	}
	if column == last && b[i] == '\n' && column > 0 { // an empty cell
		return i, 1, true
	}
	return p.oddCells(b, i, column)
}

// skipCells returns the index after so many cells, each of which a comma ends, or
// 0 where one is quoted, not ASCII, or the last of its row.
func skipCells(b []byte, i, n int) int {
	for ; ; i += 8 {
		x := load(b, i)
		m := same(x, ',')
		low := ^(((x | highs) - ones*',') &^ x) & highs // below a comma, or not ASCII
		found := bits.OnesCount64(m)
		if found < n {
			if low != 0 && !unmarked(x) {
				return 0
			}
			n -= found
			continue
		}
		for ; n > 1; n-- {
			m &= m - 1
		}
		m &= -m
		if low&(m-1) != 0 && !unmarked(x) {
			return 0
		}
		return i + bits.TrailingZeros64(m)/8 + 1
	}
}

// unmarked reports whether none of eight bytes is a newline, a quote, a NUL or not
// ASCII.
func unmarked(x uint64) bool {
	line, quote := x^ones*'\n', x^ones*'"'
	return ((line-ones)&^line|(quote-ones)&^quote|(x-ones)&^x|x)&highs == 0
}

// oddCells reads the cells of a row from one on.
func (p *csvParser) oddCells(b []byte, i, column int) (end, lines int, ok bool) {
	lines = 1
	start := i
	for ; column < len(p.rc.uses); column++ {
		use := &p.rc.uses[column]
		if end, ok = p.short(use, b, i); !ok {
			var newlines int
			if end, newlines, ok = p.cell(use, b, i); !ok {
				return end, 0, false
			}
			lines += newlines
		}
		if b[end] != ',' {
			return end, lines, column == len(p.rc.uses)-1 && (column > 0 || !blank(b[start:end]))
		}
		i = end + 1
	}
	return end, 0, false // there are more cells than columns
}

// short reads a cell that looks as those of its field mostly do. Of everything
// else it says no.
func (p *csvParser) short(use *cellUse, b []byte, i int) (end int, ok bool) {
	f := use.field
	switch use.use {
	case toInstant: // mostly of the same minute as the one before
		t, end, ok := p.clock.read(b, i)
		if !ok || !ends(b[end]) {
			return i, false
		}
		p.q.meet(f)
		p.q.t, p.clock.zone = t, false
		return end, true
	case toNumber:
		n, end, ok := shortNumber(b, i)
		if !ok || !ends(b[end]) || n.mant >= 1<<53 {
			return i, false
		}
		p.q.meet(f)
		p.q.nums[f] = n
		return end, true
	case toFlag:
		switch x := load(b, i); {
		case x&0xffffffff == wordTrue && ends(b[i+4]):
			p.q.meet(f)
			p.q.flags.add(f)
			return i + 4, true
		case x&0xffffffffff == wordFalse && ends(b[i+5]):
			p.q.meet(f)
			return i + 5, true
		case ends(byte(x)):
			p.q.meet(f)
			p.q.null.add(f)
			return i, true
		}
	}
	return i, false
}

// ends reports whether a byte ends a cell.
func ends(c byte) bool { return c == ',' || c == '\n' }

// cell reads a cell of any kind. It returns where it ends and how many newlines
// are in it.
func (p *csvParser) cell(use *cellUse, b []byte, i int) (end, newlines int, ok bool) {
	if b[i] == '"' {
		return p.quoted(use, b, i+1)
	}
	for end = i; ; end += 8 {
		x := load(b, end)
		comma, line, quote := x^ones*',', x^ones*'\n', x^ones*'"'
		// Of each byte that is looked for the lowest is right, so the lowest of all.
		m := ((comma-ones)&^comma | (line-ones)&^line | (quote-ones)&^quote | (x-ones)&^x) & highs
		if p.high = p.high || x&highs != 0; m != 0 {
			end += bits.TrailingZeros64(m) / 8
			break
		}
	}
	return end, 0, ends(b[end]) && p.put(use, b[i:end])
}

// put reads the text of a cell into the fields that stand there.
func (p *csvParser) put(use *cellUse, text []byte) bool {
	switch use.use {
	case skipped:
		return true
	case toMany:
		for _, f := range use.fields {
			if !p.text(f, text) {
				return false
			}
		}
		return true
	}
	return p.text(use.field, text)
}

func (p *csvParser) text(f Field, text []byte) bool {
	return (!p.high || utf8.Valid(text)) && p.rowTaker.put(f, trim(text))
}

// quoted reads the quoted cell whose first byte is b[i]. It returns the index of
// the comma or newline after it, and how many newlines are in it.
//
// After an even number of quotes the text is in the cell, doubled ones included,
// so that the cell ends before the first other byte after an odd number.
func (p *csvParser) quoted(use *cellUse, b []byte, i int) (end, newlines int, ok bool) {
	from, inside, lines := i, uint64(highs), uint64(0)
	for ; ; i += 8 {
		x := load(b, i)
		quotes, line := same(x, '"'), x^ones*'\n'
		lines |= (line - ones) &^ line & highs
		p.high = p.high || x&highs != 0
		odd := quotes ^ quotes<<8 // by byte: how many quotes up to there
		odd ^= odd << 16
		odd ^= odd << 32
		inside ^= odd
		outside, nul := ^(inside|quotes)&highs, (x-ones)&^x&highs
		if outside|nul == 0 {
			inside = uint64(int64(inside)>>63) & highs
			continue
		}
		// A NUL there must be where the block ends.
		if outside == 0 || nul != 0 && nul&-nul <= outside&-outside {
			return i, 0, false
		}
		end = i + bits.TrailingZeros64(outside)/8
		break
	}
	text := b[from : end-1]
	if b[end] == '\r' && b[end+1] == '\n' {
		end++
	}
	if lines != 0 {
		newlines = bytes.Count(text, []byte("\n"))
	}
	if !ends(b[end]) || newlines > 0 && bytes.Contains(text, []byte("\r\n")) { // which count as one newline
		return end, 0, false
	}
	if use.use != skipped && bytes.ContainsAny(text, "\"\r") { // it must be decoded
		return end, 0, false
	}
	return end, newlines, p.put(use, text)
}

// cellUse says what is done with the cells of a column.
type cellUse struct {
	use    keyUse
	field  Field
	fields []Field // in place of it, where there are several
}

// csvStep is a cell that is read after some that are not.
type csvStep struct {
	skip int
	*cellUse
}

// cellUses says what is done with the cells of all columns, or false where some
// cell holds JSON of its own.
func (c *csvReader) cellUses() (uses []cellUse, plain bool) {
	uses = make([]cellUse, len(c.header))
	for _, cell := range c.cells {
		if cell.inner != nil {
			return nil, false
		}
		use := &uses[cell.index]
		use.fields = append(use.fields, cell.field)
		use.use, use.field = useOf(use.fields), cell.field
	}
	return uses, true
}

// stepsOf are the cells that are read, in their order, without those of idle
// fields.
func stepsOf(uses []cellUse, idle fieldSet) (steps []csvStep) {
	skip := 0
	for i := range uses {
		if uses[i].use == skipped || uses[i].use == toText && idle.has(uses[i].field) {
			skip++
			continue
		}
		steps, skip = append(steps, csvStep{skip, &uses[i]}), 0
	}
	return steps
}
