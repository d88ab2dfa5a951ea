package trace

import (
	"bytes"
	"sync"
)

// rowChain cuts the blocks of a CSV file, in the order of the file: where a
// block's first row starts is known when the last row of the one before ends,
// since a quoted cell may hold newlines.
type rowChain struct {
	mu    sync.Mutex
	turn  *sync.Cond
	next  int64 // the block to be cut next
	start int64 // where in the file its first row starts
}

func newRowChain(start int64) *rowChain {
	c := &rowChain{start: start}
	c.turn = sync.NewCond(&c.mu)
	return c
}

// cut finds the rows of a block: those that start in its own part.
func (c *rowChain) cut(s *fileBlocks, b *block, r *reach) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.next != b.seq {
		c.turn.Wait()
	}
	b.from = int(min(c.start-r.at, int64(r.n)))
	b.to = b.from
	if b.from < r.nominal {
		b.to += wholeRows(b.buf[b.from:r.nominal])
		if b.to < r.nominal {
			c.last(s, b, r)
		}
		c.start = r.at + int64(b.to)
	}
	c.next++
	c.turn.Broadcast()
}

// last adds the row that goes beyond the block's own part, wherever it ends.
func (c *rowChain) last(s *fileBlocks, b *block, r *reach) {
	for {
		end, whole := rowEnd(b.buf[:r.n], b.to)
		switch {
		case whole:
			b.to = end
			return
		case r.eof:
			b.cut, b.to = b.buf[r.n-1] != '\n', r.n
			return
		case r.n-b.to > 2*maxLine: // of a single line
			b.long, b.to = true, r.n
			s.skipLine(r)
			return
		}
		if !s.extend(b, r) {
			b.to = r.n
			return
		}
	}
}

// skipLine moves the reach behind the line that goes on where the buffer ends,
// which is not worth reading.
func (s *fileBlocks) skipLine(r *reach) {
	part := make([]byte, 64<<10)
	for {
		n, err := s.file.ReadAt(part, r.at+int64(r.n))
		if i := bytes.IndexByte(part[:n], '\n'); i >= 0 {
			r.at += int64(i + 1)
			return
		}
		r.at += int64(n)
		if err != nil {
			return
		}
	}
}

// wholeRows is how much of a CSV text is whole rows.
func wholeRows(text []byte) int {
	for i := 0; ; {
		q := bytes.IndexByte(text[i:], '"')
		if q < 0 {
			return i + wholeLines(text[i:])
		}
		i += wholeLines(text[i : i+q])
		end, whole := rowEnd(text, i)
		if !whole {
			return i
		}
		i = end
	}
}

// rowEnd returns where the row that starts at text[i] ends, its newline
// included: by the rules of [csvReader.cellsOf], for which a row that is not
// well formed ends with the line in which that shows, and one longer than
// maxLine with the line in which it becomes so. whole is false where the text
// does not go so far.
func rowEnd(text []byte, i int) (end int, whole bool) {
	for start := i; ; i = end + 1 {
		stop, ended := lineEnd(text, i)
		q := bytes.IndexByte(text[i:stop], '"')
		if q < 0 {
			return stop, ended
		}
		if q += i; q > i && text[q-1] != ',' { // within a cell
			return stop, ended
		}
		if end = quotedEnd(text, q+1); end < 0 || end-start > maxLine {
			return overlongEnd(text, start, end)
		}
		if end == len(text) || text[end] != ',' {
			return lineEnd(text, end)
		}
	}
}

// quotedEnd returns the index after the quote that ends the cell in which text[i]
// is, -1 where there is none.
func quotedEnd(text []byte, i int) int {
	for {
		q := bytes.IndexByte(text[i:], '"')
		if q < 0 {
			return -1
		}
		if i += q + 1; i == len(text) || text[i] != '"' {
			return i
		}
		i++
	}
}

// lineEnd returns where the line ends that goes on at text[i].
func lineEnd(text []byte, i int) (end int, whole bool) {
	n := bytes.IndexByte(text[i:], '\n')
	if n < 0 {
		return len(text), false
	}
	return i + n + 1, true
}

// overlongEnd returns the end of the first line with which a row is longer than
// maxLine. Its quoted cell ends at end, if that is not -1.
func overlongEnd(text []byte, start, end int) (int, bool) {
	for i := start; ; {
		next, whole := lineEnd(text, i)
		if !whole || next-start > maxLine || end >= 0 && next > end {
			return next, whole
		}
		i = next
	}
}
