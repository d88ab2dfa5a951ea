package journal

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
)

// Newest calls each for the entries whose lines lie whole in the last bytes of
// a journal, so many of them, oldest first, and for the last line in any case.
// What stands before them is not read. Each line's sum is checked, and the chain
// from the second of them on. A last line without a newline is left out. It
// returns the place behind the last entry, from which [Read] goes on; after an
// error, the place behind the last that was good, or where the first would have
// begun, without a number. Errors are those of [Read].
func Newest(ctx context.Context, path string, size int64, each func(*Entry, Head) error) (Head, error) {
	f, err := os.Open(path)
	if err != nil {
		return Head{}, err
	}
	defer f.Close() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return Head{}, err
	}
	start, end, err := tail(f, info.Size(), size)
	if err != nil || end == 0 {
		return Head{}, err
	}
	at, err := headBefore(f, path, start, end)
	if err != nil {
		return at, err
	}
	r := bufio.NewReaderSize(io.NewSectionReader(f, start, end-start), 64<<10)
	err = read(ctx, path, r, at, func(e *Entry, behind Head, _ []byte) error {
		at = behind
		return each(e, behind)
	})
	return at, err
}

// tail finds the lines that lie whole in the last bytes of a file, or the last
// one: where they start and end. Both are 0 where there is none.
func tail(r io.ReaderAt, length, size int64) (start, end int64, err error) {
	end, err = lastNewline(r, length)
	from := length - max(size, 0)
	if err != nil || end == 0 || from <= 0 {
		return 0, end, err
	}
	start, err = nextLine(r, from, end)
	if err == nil && start == end {
		start, err = lastNewline(r, end-1)
	}
	return start, end, err
}

// nextLine returns where the first line at or behind an offset begins, or end.
func nextLine(r io.ReaderAt, from, end int64) (int64, error) {
	buf := make([]byte, 16<<10)
	for at := from - 1; at < end; at += int64(len(buf)) {
		part := buf[:min(int64(len(buf)), end-at)]
		if _, err := r.ReadAt(part, at); err != nil {
			return 0, err
		}
		if i := bytes.IndexByte(part, '\n'); i >= 0 {
			return at + int64(i) + 1, nil
		}
	}
	return end, nil
}

// headBefore is the place before the line that begins at an offset, as that line
// itself tells it.
func headBefore(r io.ReaderAt, path string, start, end int64) (Head, error) {
	if start == 0 {
		return Head{}, nil
	}
	line, err := readLine(bufio.NewReaderSize(io.NewSectionReader(r, start, end-start), 64<<10))
	var e *Entry
	if err == nil {
		e, _, err = parseLine(line[:len(line)-1])
	}
	if err != nil {
		return Head{Size: start}, &CorruptError{Path: path, Line: lineNumber(r, start) + 1, Reason: err.Error()}
	}
	return Head{N: e.N - 1, Sum: e.Prev, Size: start}, nil
}
