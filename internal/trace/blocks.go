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
var blockSize = 256 << 10

const (
	// blockTail is read beyond a block, where its last line mostly ends.
	blockTail = 2 << 10
	// blockPad is how many bytes are kept free after the text of a block, for
	// loads of whole words.
	blockPad = 64
)

// block is some whole lines of a file, in buf[from:to]. After them stands a
// newline, part of the last line or not, and blockPad bytes.
type block struct {
	seq      int64 // its place in the file, from 0
	buf      []byte
	from, to int
	cut      bool  // its last line ends the file without a newline
	long     bool  // its last line is longer than maxLine, and cut off here
	err      error // of the reading, after these lines
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

// close puts a newline behind the text.
func (b *block) close() {
	b.room(b.to)
	if b.to == b.from || b.buf[b.to-1] != '\n' {
		b.buf[b.to] = '\n'
	}
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
	size     int   // of a block
	progress func(int64)
	counted  int64 // bytes that progress was told of before
	taken    atomic.Int64
	rows     *rowChain // where rows may go over lines; else nil
}

func (s *fileBlocks) next(b *block) bool {
	seq := s.taken.Add(1) - 1
	*b = block{seq: seq, buf: b.buf}
	if b.err = s.ctx.Err(); b.err != nil {
		return true
	}
	at, before := s.start+seq*int64(s.size), 0
	if seq > 0 { // the byte before says whether a line starts at the first one
		at, before = at-1, 1
	}
	b.room(before + s.size + blockTail)
	n, err := s.file.ReadAt(b.buf[:before+s.size+blockTail], at)
	s.tell(seq, int64(min(n-before, s.size)))
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
		return true
	}
	if n <= before {
		return false
	}
	r := reach{at: at, n: n, nominal: min(before+s.size, n), eof: err != nil}
	if s.rows != nil {
		s.rows.cut(s, b, &r)
	} else {
		s.cut(b, &r, before > 0)
	}
	b.close()
	return true
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

// reach is how much of a file a block's buffer holds.
type reach struct {
	at      int64 // where in the file the buffer starts
	n       int   // bytes in it
	nominal int   // where in it the block's own part ends
	eof     bool  // the file ends with them
}

// extend reads on behind what is there, as much again.
func (s *fileBlocks) extend(b *block, r *reach) bool {
	b.room(2 * r.n)
	more, err := s.file.ReadAt(b.buf[r.n:2*r.n], r.at+int64(r.n))
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
		return false
	}
	r.n, r.eof = r.n+more, err != nil
	return true
}

// cut finds the lines that start in the block's own part. before says that the
// buffer starts with the byte before it.
func (s *fileBlocks) cut(b *block, r *reach, before bool) {
	last := r.nominal
	if !r.eof || last < r.n {
		last-- // the last line ends with the first newline from here on
	}
	if before {
		i := bytes.IndexByte(b.buf[:last], '\n')
		if i < 0 {
			return // a long line goes on
		}
		b.from = i + 1
	}
	for from := last; ; {
		if i := bytes.IndexByte(b.buf[from:r.n], '\n'); i >= 0 {
			b.to = from + i + 1
			return
		}
		b.to, from = r.n, r.n
		if r.eof {
			b.cut = b.to > b.from && b.buf[r.n-1] != '\n'
			return
		}
		if start := b.from + bytes.LastIndexByte(b.buf[b.from:r.n], '\n') + 1; r.n-start > maxLine {
			b.long = true
			return
		}
		if !s.extend(b, r) {
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
			b = &block{}
		}
		*b = block{seq: seq, buf: b.buf}
		more := s.fill(b)
		b.close()
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
