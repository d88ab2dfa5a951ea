package trace

import (
	"bytes"
	"unicode/utf8"
)

// jsonParser reads blocks of JSON lines.
type jsonParser struct {
	rowTaker
	scan jsonScanner
}

// parse implements [blockParser].
func (p *jsonParser) parse(rc *recipe, b *block, out *batch) {
	if rc != p.rc && rc != nil {
		p.use(rc)
		p.scan.use(rc.keys)
	}
	quick := rc != nil && rc.quick
	line := 0
	for i := b.from; i < b.to; line++ {
		i = skipBlanks(b.buf, i)
		if quick {
			if end := p.line(b, i, line, out); end > 0 {
				i = end
				continue
			}
		}
		i = p.leave(b, i, line, out)
	}
	out.lines = int64(line)
}

// line reads the line at b.buf[i] and returns where the next one starts, or 0
// where it must be read with care.
func (p *jsonParser) line(b *block, i, line int, out *batch) (next int) {
	if b.buf[i] != '{' {
		return 0
	}
	p.begin()
	end, strange, ok := p.scan.object(b.buf, i, &p.row)
	if !ok || strange {
		return 0
	}
	next = skipBlanks(b.buf, end)
	if b.buf[next] != '\n' || next-i >= maxLine {
		return 0
	}
	p.row.raw = b.buf[i:end]
	for _, c := range p.rc.keys.nested {
		if v, found := findPath(p.row.raw, c.path); found {
			p.row.cells[c.field] = jsonCell(v)
		}
	}
	rec := p.take(out, line)
	if rec == nil {
		return 0
	}
	rec.foreign = p.scan.high && !utf8.Valid(p.row.raw)
	return next + 1
}

// leave puts the line at b.buf[i] into out to be read with care, and returns
// where the next one starts. Blank lines are nothing.
func (p *jsonParser) leave(b *block, i, line int, out *batch) (next int) {
	end := i + bytes.IndexByte(b.buf[i:b.to+1], '\n')
	text := b.buf[i:end]
	if blank(text) {
		return end + 1
	}
	last := end+1 >= b.to
	out.records = append(out.records, record{line: int32(line), said: said{odd: true}})
	out.odd = append(out.odd, oddRow{text: text, line: int64(line), cut: last && b.cut, long: last && b.long || len(text) >= maxLine})
	return end + 1
}
