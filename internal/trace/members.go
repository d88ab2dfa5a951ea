package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
)

// members reads the members of a gzip file. Where one ends, [gzip.Reader] takes
// anything that follows for the header of another, and a few bytes that are none
// for one that is cut off.
type members struct {
	raw *bufio.Reader
	z   *gzip.Reader
	err error // after which nothing more is read: a bufio.Reader forgets it
}

func newMembers(raw *bufio.Reader) (*members, error) {
	z, err := gzip.NewReader(raw)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return &members{raw: raw, z: z}, nil
}

func (m *members) Read(p []byte) (n int, err error) {
	for n == 0 && m.err == nil {
		if n, m.err = m.z.Read(p); errors.Is(m.err, io.EOF) {
			m.err = m.more()
		}
	}
	if n > 0 {
		return n, nil
	}
	return 0, m.err
}

// more opens the next member. Its error is io.EOF where there is none.
func (m *members) more() error {
	head, err := m.raw.Peek(8)
	switch {
	case len(head) == 0:
		return err
	case head[0] != 0x1f || len(head) > 1 && head[1] != 0x8b:
		return &trailingError{"gzip", head}
	}
	if err := m.z.Reset(m.raw); err != nil {
		return err
	}
	m.z.Multistream(false)
	return nil
}

// trailingError says that something else follows compressed data.
type trailingError struct {
	kind string // of the compressed data
	head []byte // the first bytes of what follows, if known
}

// Error implements error.
func (e *trailingError) Error() string {
	s := "after the compressed data come bytes that are no " + e.kind
	if len(e.head) > 0 {
		s += fmt.Sprintf(" (% x)", e.head)
	}
	return s
}
