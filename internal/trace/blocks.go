package trace

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
)

// blockSize is how much of a file is read at once: it stays in the second cache
// of a core until it is parsed. Tests lower it.
var blockSize = 512 << 10

const (
	// blockTail is read beyond a block, where its last line mostly ends.
	blockTail = 2 << 10
	// blockPad is how many bytes are kept free after the text of a block, for
	// loads of whole words.
	blockPad = 64
)

// block is some whole lines of a file, in buf[from:to]. After them stands a
// newline, part of the last line or not, and blockPad bytes.
//
// Of CSV in a regular file it is the rows that start in buf[from:to], of which
// the last goes on behind; where the first one starts is a guess until the block
// before has been read.
type block struct {
	seq      int64 // its place in the file, from 0
	buf      []byte
	from, to int
	cut      bool  // its last line ends the file without a newline
	long     bool  // its last line is longer than maxLine, and cut off here
	err      error // of the reading, after these lines

	origin  *origin     // nil where the rows cannot be read again
	file    *fileBlocks // of CSV, to read on; nil where the rows are whole
	at      int64       // of a file that can be read from any place: where in it the buffer starts
	n       int         // how much of the buffer is text
	eof     bool        // the file ends with it
	aligned bool        // where it begins is no guess
	skipped int64       // bytes of a line that is too long, which follow the buffer
}

func (b *block) text() []byte { return b.buf[b.from:b.to] }

// room makes the buffer hold n bytes and the pad, and keeps what is in it.
func (b *block) room(n int) {
	if len(b.buf) >= n+blockPad {
		return
	}
	grown := make([]byte, n+blockPad)
	copy(grown, b.buf)
	b.buf = grown
}

// close puts a newline behind the text of so many bytes, and a NUL, which ends
// what goes over newlines.
func (b *block) close(n int) {
	b.room(n)
	b.n = n
	if n == b.from || b.buf[n-1] != '\n' {
		b.buf[n] = '\n'
		n++
	}
	b.buf[n] = 0
}

// more reads on behind the text of a row that starts at buf[start] and does not
// end. It reports false where there is no more, or the row is too long.
func (b *block) more(start int) bool {
	switch {
	case b.file == nil || b.eof || b.err != nil:
		return false
	case b.n-start > 2*maxLine: // of a single line
		b.long = true
		b.file.skipLine(b)
		return false
	}
	b.file.read(b, 2*b.n)
	b.close(b.n)
	return b.err == nil
}

// blockSource cuts a file into blocks. Several goroutines may ask for the next
// one; each gets another, and the numbers have no gaps.
type blockSource interface {
	// next fills b with the next block. It returns false after the last one.
	next(b *block) bool
}

// fileBlocks reads the blocks of a regular file, each where it stands. A block
// is the lines that start in its part of the file.
type fileBlocks struct {
	ctx      context.Context
	file     io.ReaderAt
	start    int64 // where the text starts
	end      int64 // where it ended when the reading began: a file that grows is read so far
	size     int   // of a block
	progress func(int64)
	counted  int64 // bytes that progress was told of before
	taken    atomic.Int64
	rows     bool // of CSV, which may go over lines
	origin   *origin
}

func (s *fileBlocks) next(b *block) bool {
	seq := s.taken.Add(1) - 1
	at, before := s.start+seq*int64(s.size), 0
	if at >= s.end {
		return false
	}
	*b = block{seq: seq, buf: keptBuffer(b.buf, s.size), origin: s.origin}
	if seq > 0 { // the byte before says whether a line starts at the first one
		at, before = at-1, 1
	}
	b.at = at
	if s.read(b, before+s.size+blockTail); b.err != nil {
		return true
	}
	s.tell(seq, int64(min(b.n-before, s.size)))
	s.cut(b, before, min(before+s.size, b.n))
	return true
}

// read fills the buffer from b.n on, until it holds so many bytes or the file
// ends.
func (s *fileBlocks) read(b *block, want int) {
	if b.err = s.ctx.Err(); b.err != nil {
		return
	}
	want = int(min(int64(want), s.end-b.at))
	b.room(want)
	n, err := s.file.ReadAt(b.buf[b.n:want], b.at+int64(b.n))
	b.n += n
	b.eof = b.at+int64(b.n) == s.end
	switch {
	case b.n == want:
	case errors.Is(err, io.EOF):
		b.err = &InputError{Msg: "became shorter while it was read", Advice: "is it rotated by copying and truncating? read a copy"}
	default:
		b.err = err
	}
}

// keptBuffer is a block's buffer, or none where a long line made it too large to
// be kept.
func keptBuffer(buf []byte, size int) []byte {
	if len(buf) > 16*size+blockTail {
		return nil
	}
	return buf
}

// tell says how far reading is. The first bytes were counted when the format was
// looked for.
func (s *fileBlocks) tell(seq, n int64) {
	if seq == 0 {
		n -= s.counted
	}
	if s.progress != nil && n > 0 {
		s.progress(n)
	}
}

// skipLine finds where the line ends that goes on behind the buffer, without
// keeping what is in between.
func (s *fileBlocks) skipLine(b *block) {
	part := make([]byte, 64<<10)
	for b.err == nil {
		at := b.at + int64(b.n) + b.skipped
		n, err := s.file.ReadAt(part[:min(int64(len(part)), s.end-at)], at)
		if i := bytes.IndexByte(part[:n], '\n'); i >= 0 {
			b.skipped += int64(i + 1)
			return
		}
		if b.skipped += int64(n); at+int64(n) == s.end {
			return
		}
		if b.err = s.ctx.Err(); b.err == nil && err != nil {
			b.err = err
		}
	}
}

// cut finds the lines that start in the block's own part, which ends at nominal.
// before is how many bytes stand before it in the buffer.
func (s *fileBlocks) cut(b *block, before, nominal int) {
	last := nominal
	if !b.eof || last < b.n {
		last-- // the last line ends with the first newline from here on
	}
	if before > 0 {
		b.from = b.n
		if i := bytes.IndexByte(b.buf[:last], '\n'); i >= 0 {
			b.from = i + 1
		}
	}
	if s.rows {
		b.file, b.to = s, nominal
		b.close(b.n)
		return
	}
	b.to = b.from
	if b.from < b.n {
		s.cutLast(b, last)
	}
	b.close(b.to)
}

// cutLast finds the end of the last line.
func (s *fileBlocks) cutLast(b *block, last int) {
	for from := last; ; {
		if i := bytes.IndexByte(b.buf[from:b.n], '\n'); i >= 0 {
			b.to = from + i + 1
			return
		}
		b.to, from = b.n, b.n
		if b.eof {
			b.cut = b.to > b.from && b.buf[b.n-1] != '\n'
			return
		}
		if start := b.from + bytes.LastIndexByte(b.buf[b.from:b.n], '\n') + 1; b.n-start > maxLine {
			b.long = true
			return
		}
		if s.read(b, 2*b.n); b.err != nil {
			return
		}
	}
}

// streamBlocks reads the blocks of what can only be read on: compressed files
// and pipes. Reading, and unpacking, is done by a goroutine of its own.
type streamBlocks struct {
	ctx         context.Context
	r           io.Reader
	size        int
	ready, free chan *block
	done        chan struct{}         // closed when nothing is read any more
	carry       []byte                // the start of a line, of which the rest is to come
	skip        bool                  // a line that is too long goes on
	whole       func(text []byte) int // how much of a text is whole rows
}

// newStreamBlocks starts to read. It stops at the end of r or of ctx.
func newStreamBlocks(ctx context.Context, r io.Reader, size int, whole func([]byte) int) *streamBlocks {
	const ahead = 4
	s := &streamBlocks{ctx: ctx, r: r, size: size, whole: whole,
		ready: make(chan *block, ahead), free: make(chan *block, ahead), done: make(chan struct{})}
	for range ahead {
		s.free <- &block{}
	}
	go s.run()
	return s
}

func (s *streamBlocks) next(b *block) bool {
	full, ok := <-s.ready
	if !ok {
		return false
	}
	*b, *full = *full, *b
	s.free <- full // never waits: there are no more blocks than places
	return true
}

func (s *streamBlocks) run() {
	defer close(s.done)
	defer close(s.ready)
	for seq := int64(0); ; seq++ {
		var b *block
		select {
		case b = <-s.free:
		case <-s.ctx.Done():
			return // which whoever reads learns from the context
		}
		*b = block{seq: seq, buf: keptBuffer(b.buf, s.size)}
		more := s.fill(b)
		b.close(b.to)
		select {
		case s.ready <- b:
		case <-s.ctx.Done():
			return
		}
		if !more {
			return
		}
	}
}

// fill reads one block. It returns false after the last.
func (s *streamBlocks) fill(b *block) (more bool) {
	b.room(s.size + len(s.carry))
	n := copy(b.buf, s.carry)
	for {
		if b.err = s.ctx.Err(); b.err != nil {
			return false
		}
		m, err := readFull(s.r, b.buf[n:len(b.buf)-blockPad])
		n += m
		if s.skip {
			n = s.skipped(b.buf, n)
		}
		if err != nil {
			b.to, s.carry = n, nil
			if errors.Is(err, io.EOF) {
				b.cut = n > 0 && b.buf[n-1] != '\n'
			} else {
				b.err = err
			}
			return false
		}
		if end := s.whole(b.buf[:n]); end > 0 {
			b.to = end
			s.carry = append(s.carry[:0], b.buf[end:n]...)
			return true
		}
		if n > maxLine {
			b.to, b.long, s.skip, s.carry = n, true, true, s.carry[:0]
			return true
		}
		if n == len(b.buf)-blockPad {
			b.room(2 * n)
		}
	}
}

// skipped drops what is left of a line that was too long, and returns how many
// bytes are left.
func (s *streamBlocks) skipped(buf []byte, n int) int {
	i := bytes.IndexByte(buf[:n], '\n')
	if i < 0 {
		return 0
	}
	s.skip = false
	return copy(buf, buf[i+1:n])
}

// wholeLines is how much of a text is whole lines.
func wholeLines(text []byte) int { return bytes.LastIndexByte(text, '\n') + 1 }

// readFull fills p. Its error is that of the reader, io.EOF included.
func readFull(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = r.Read(p[n:])
		n += m
	}
	return n, err
}
