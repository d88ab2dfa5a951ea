package trace

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// Line is a line of a text file. Text is valid until the next one.
type Line struct {
	Text   []byte // without its end
	Number int64  // from 1
	Cut    bool   // it has no newline: it ended the file
	Err    error  // why it has no text: it is too long to be read
}

// EachLine calls each for the lines of a file that are not blank, plain, gzip
// or zstd, until it returns an error. "-" is stdin. progress, if not nil, is
// called with the number of bytes of every read. Errors are *[InputError]s, those
// of each, or the context's.
func EachLine(ctx context.Context, path string, stdin io.Reader, progress func(int64), each func(Line) error) error {
	src, err := open(ctx, path, stdin, progress)
	if err != nil {
		return err
	}
	defer src.Close()
	lines := newLineReader(src.text)
	for {
		text, err := lines.next()
		_, unread := errors.AsType[*badRow](err)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !unread:
			return src.fail(err)
		case !unread && len(bytes.TrimSpace(text)) == 0:
			continue
		}
		if err := each(Line{Text: text, Number: lines.line, Cut: lines.cut, Err: err}); err != nil {
			return err
		}
	}
}
