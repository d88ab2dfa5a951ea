package trace

import "bytes"

// jsonParser reads blocks of JSON lines.
type jsonParser struct{ jsonScanner }

// parse implements [blockParser].
func (p *jsonParser) parse(rc *recipe, b *block, out *batch) {
	if rc != p.rc && rc != nil {
		p.use(rc)
		p.useKeys(rc.keys)
	}
	p.begins(b, out)
	p.read(b, out)
	if p.again(out) {
		out.reset()
		p.read(b, out)
	}
}

// parseApart implements [blockParser].
func (p *jsonParser) parseApart(b *block, out *batch) {
	p.giveUp()
	p.read(b, out)
}

func (p *jsonParser) read(b *block, out *batch) {
	quick := p.rc != nil && p.rc.quick
	line := 0
	for i := b.from; i < b.to && !p.failed; line++ {
		if quick {
			if next := p.line(b, i, line, out); next > 0 {
				i = next
				continue
			}
		}
		i = p.leave(b, i, line, out)
	}
	out.lines, out.end = int64(line), b.at+int64(b.to)
}

// line reads the line at b.buf[i] and returns where the next one starts, or 0
// where it must be read with care.
func (p *jsonParser) line(b *block, i, line int, out *batch) (next int) {
	start := i
	if i = skipBlanks(b.buf, i); b.buf[i] != '{' {
		return 0
	}
	p.begin()
	end, ok := p.object(b.buf, i)
	if !ok {
		return 0
	}
	next = skipBlanks(b.buf, end)
	if b.buf[next] != '\n' || next-start >= maxLine {
		return 0
	}
	p.q.raw = b.buf[i:end]
	if len(p.rc.keys.nested) > 0 && !p.nested() {
		return 0
	}
	if !p.take(out, line, p.high) {
		return 0
	}
	return next + 1
}

// nested reads the fields that are further in. It reports false where the line
// must be read with care.
func (p *jsonParser) nested() bool {
	for _, c := range p.rc.keys.nested {
		v, found := findPath(p.q.raw, c.path)
		if !found {
			continue
		}
		switch c := c.field; jsonCell(v).kind {
		case composite:
			return false
		case null:
			p.q.meet(c)
			p.q.null.add(c)
		default:
			if !p.put(c, jsonCell(v).text) {
				return false
			}
		}
	}
	return true
}

// leave puts the line at b.buf[i] into out to be read with care, and returns
// where the next one starts. Blank lines are nothing.
func (p *jsonParser) leave(b *block, i, line int, out *batch) (next int) {
	end := i + bytes.IndexByte(b.buf[i:b.to+1], '\n')
	text, last := b.buf[i:end], end+1 >= b.to
	size := len(text) + 1
	if last && b.cut {
		size-- // no newline
	}
	if long := last && b.long || size > maxLine; long || !blank(text) {
		out.leave(oddRow{text: text, line: int64(line), cut: last && b.cut, long: long})
	}
	return end + 1
}
