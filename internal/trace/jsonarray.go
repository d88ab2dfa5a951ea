package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// arrayReader reads a file that is one JSON array of objects. Its rows are
// numbered by element.
type arrayReader struct {
	dec    *json.Decoder
	limit  *stepLimit
	inside bool
	n      int64
	objectReader
}

func newArrayReader(r *bufio.Reader, bind func([]string) (*plan, error)) *arrayReader {
	limit := &stepLimit{r: r, left: 2 * maxLine}
	return &arrayReader{dec: json.NewDecoder(limit), limit: limit, objectReader: objectReader{bind: bind}}
}

func (a *arrayReader) next(r *row) error {
	r.reset()
	if !a.inside {
		if _, err := a.dec.Token(); err != nil {
			return a.broken(err)
		}
		a.inside = true
	}
	if !a.dec.More() {
		return a.end()
	}
	a.n++
	r.line = a.n
	a.limit.left = 2 * maxLine
	var obj json.RawMessage
	if err := a.dec.Decode(&obj); err != nil {
		return a.broken(err)
	}
	r.raw = bytes.TrimSpace(obj)
	return a.fill(r, r.raw)
}

// end reads the closing bracket, after which nothing may follow.
func (a *arrayReader) end() error {
	if _, err := a.dec.Token(); err != nil {
		return a.broken(err)
	}
	a.limit.left = 2 * maxLine
	if _, err := a.dec.Token(); !errors.Is(err, io.EOF) {
		if err == nil || isSyntax(err) {
			return fmt.Errorf("something follows the JSON array, after element %d", a.n)
		}
		return a.broken(err)
	}
	if a.noTime != nil {
		return a.noTime
	}
	return io.EOF
}

func (a *arrayReader) broken(err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("cut off: the JSON array does not end, after element %d", a.n)
	case isSyntax(err):
		return fmt.Errorf("not valid JSON near element %d: %w", a.n, err)
	}
	return err
}

func isSyntax(err error) bool {
	_, ok := errors.AsType[*json.SyntaxError](err)
	return ok
}

// stepLimit refuses to read on and on within one element.
type stepLimit struct {
	r    io.Reader
	left int
}

func (s *stepLimit) Read(p []byte) (int, error) {
	if s.left <= 0 {
		return 0, fmt.Errorf("an element of the JSON array is longer than %d MiB", maxLine>>20)
	}
	n, err := s.r.Read(p)
	s.left -= n
	return n, err
}
