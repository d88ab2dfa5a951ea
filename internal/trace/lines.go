package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxLine is the longest line that is read; a longer one is a bad line, not a
// reason to run out of memory. Tests lower it.
var maxLine = 16 << 20

// errLineTooLong is returned for a line longer than maxLine, after skipping it.
func errLineTooLong() error {
	return &badRow{fmt.Sprintf("the line is too long: more than %d MiB", maxLine>>20)}
}

// lineReader cuts a stream into lines.
type lineReader struct {
	r       *bufio.Reader
	long    []byte // a line that did not fit the reader's buffer
	line    int64  // number of the line returned last, from 1
	cut     bool   // the line returned last had no newline: it ended the stream
	tooLong error
	quoted  bool // the line that was too long has a quote in it
}

func newLineReader(r *bufio.Reader) *lineReader {
	return &lineReader{r: r, tooLong: errLineTooLong()}
}

// next returns the next line without its end (\n or \r\n). The line is valid
// until the next call.
func (l *lineReader) next() ([]byte, error) {
	text, err := l.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		text, err = l.rest(text)
	}
	if err != nil && (!errors.Is(err, io.EOF) || len(text) == 0) {
		return nil, err
	}
	l.line++
	l.cut = err != nil
	if len(text) > maxLine {
		l.quoted = bytes.IndexByte(text, '"') >= 0
		return nil, l.tooLong
	}
	return trimEnd(text), nil
}

// rest reads on to the end of a line that is longer than the buffer. Past
// maxLine it keeps nothing more.
func (l *lineReader) rest(head []byte) ([]byte, error) {
	l.long = append(l.long[:0], head...)
	for {
		part, err := l.r.ReadSlice('\n')
		if len(l.long) <= maxLine {
			l.long = append(l.long, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l.long, err
		}
	}
}

func trimEnd(s []byte) []byte {
	s = bytes.TrimSuffix(s, []byte("\n"))
	return bytes.TrimSuffix(s, []byte("\r"))
}

func blank(s []byte) bool { return len(bytes.TrimSpace(s)) == 0 }
