package journal

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// Read calls each for every entry behind a place, in order, and checks sums and
// chain on the way. A last line without a newline, which somebody is writing or
// a kill cut off, is left out. Errors are a *CorruptError that names the line,
// what each returned, or the context's. The entry is each's to keep.
func Read(ctx context.Context, path string, from Head, each func(*Entry, Head) error) error {
	return Lines(ctx, path, from, func(e *Entry, at Head, _ []byte) error { return each(e, at) })
}

// Lines is [Read] that hands on each line's own bytes as well, without the
// newline: what its sum is of.
func Lines(ctx context.Context, path string, from Head, each func(*Entry, Head, []byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() // nothing was written
	if _, err := f.Seek(from.Size, io.SeekStart); err != nil {
		return err
	}
	return read(ctx, path, bufio.NewReaderSize(f, 64<<10), from, each)
}

// Check checks that the line before a place is the one that it names, and reads
// no other.
func Check(path string, at Head) error {
	if at.N == 0 {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() // nothing was written
	line, end, err := lastLine(f, at.Size)
	if err != nil {
		return err
	}
	e, sum, err := parseLine(line)
	switch {
	case err != nil:
	case end != at.Size, e.N != at.N, sum != at.Sum:
		err = errors.New("the line is another than the one that the saved state stands at")
	default:
		return nil
	}
	return &CorruptError{Path: path, Line: at.N, Reason: err.Error()}
}

func read(ctx context.Context, path string, r *bufio.Reader, at Head, each func(*Entry, Head, []byte) error) error {
	for ctx.Err() == nil {
		line, err := readLine(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &CorruptError{Path: path, Line: at.N + 1, Reason: err.Error()}
		}
		e, sum, err := parseLine(line[:len(line)-1])
		if err == nil {
			err = follows(e, at)
		}
		if err != nil {
			return &CorruptError{Path: path, Line: at.N + 1, Reason: err.Error()}
		}
		at = Head{N: e.N, Sum: sum, Size: at.Size + int64(len(line))}
		if err := each(e, at, line[:len(line)-1]); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// follows checks that an entry is the next of the chain.
func follows(e *Entry, at Head) error {
	switch {
	case e.N != at.N+1:
		return fmt.Errorf("the line is number %d: lines were taken out or put in before it", e.N)
	case e.Prev != at.Sum:
		return errors.New("the line before it is another than when it was written")
	}
	return nil
}

var errLong = fmt.Errorf("the line has more than %d MiB", maxLine>>20)

// readLine reads a line with its newline. A last line without one is io.EOF.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case len(line) > maxLine:
			return nil, errLong
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// IsJournal reports whether a file begins like a journal, for commands that
// take other files too.
func IsJournal(head []byte) bool {
	return bytes.HasPrefix(head, []byte(`{"n":1,"t":"`)) && bytes.Contains(head[:min(len(head), 200)], []byte(`"kind":"`))
}
