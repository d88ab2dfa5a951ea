package journal

import (
	"bufio"
	"bytes"
	"context"
)

// ReadBytes is [Read] of a file with these bytes, without the file.
func ReadBytes(b []byte, path string, from Head, each func(*Entry, Head) error) error {
	r := bufio.NewReaderSize(bytes.NewReader(b[min(from.Size, int64(len(b))):]), 4<<10)
	return read(context.Background(), path, r, from, func(e *Entry, at Head, _ []byte) error { return each(e, at) })
}

// MaxLine is the length of the longest line.
const MaxLine = maxLine
