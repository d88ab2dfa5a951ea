package source

import (
	"bytes"
	"io"
)

// A file is known again by what it holds: its first bytes and those before
// where reading stopped. Logs carry times, so that two different ones do not
// agree in both.
const (
	headSize = 1024
	tailSize = 256
)

// mark is how far a file was read, and what it held there. It finds the place
// again in a copy, a compressed one too, and tells when a file was replaced.
type mark struct {
	at   int64
	head []byte // the first bytes before at, up to headSize
	tail []byte // the last bytes before at, up to tailSize
}

// newMark takes the mark of a file read up to at.
func newMark(r io.ReaderAt, at int64) (mark, error) {
	m := mark{at: at, head: make([]byte, min(at, headSize)), tail: make([]byte, min(at, tailSize))}
	if _, err := r.ReadAt(m.head, 0); err != nil && at > 0 {
		return m, err
	}
	_, err := r.ReadAt(m.tail, at-int64(len(m.tail)))
	if at == 0 {
		err = nil
	}
	return m, err
}

// holds reports whether a file holds what it held, as far as it goes: a copy
// under way may end before the mark.
func (m *mark) holds(r io.ReaderAt, size int64) bool {
	if !m.startsLike(r, size) {
		return false
	}
	if size < m.at {
		return true
	}
	tail := make([]byte, len(m.tail))
	_, err := r.ReadAt(tail, m.at-int64(len(tail)))
	return (err == nil || err == io.EOF) && bytes.Equal(tail, m.tail)
}

func (m *mark) startsLike(r io.ReaderAt, size int64) bool {
	n := min(size, int64(len(m.head)))
	head := make([]byte, n)
	if _, err := r.ReadAt(head, 0); err != nil && err != io.EOF {
		return false
	}
	return n > 0 && bytes.Equal(head, m.head[:n])
}

// extend moves the mark on over bytes that were read.
func (m *mark) extend(read []byte) {
	m.at += int64(len(read))
	if room := headSize - len(m.head); room > 0 && m.at-int64(len(read)) == int64(len(m.head)) {
		m.head = append(m.head, read[:min(room, len(read))]...)
	}
	m.tail = append(m.tail, read[max(0, len(read)-tailSize):]...)
	if over := len(m.tail) - tailSize; over > 0 {
		m.tail = append([]byte(nil), m.tail[over:]...)
	}
}

func (m *mark) same(o *mark) bool {
	return m.at == o.at && bytes.Equal(m.head, o.head) && bytes.Equal(m.tail, o.tail)
}
