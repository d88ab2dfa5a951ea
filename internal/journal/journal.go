// Package journal is the record of a release: what was seen, what was decided
// on it, what was done and what came of it, one JSON object a line, each with
// the hash of the one before.
//
//	j, err := journal.Open("journal.jsonl")
//	err = j.Append(&journal.Entry{T: now, Kind: journal.Decide, Decided: &d}) // on disk when it returns
//
// Lines are appended and synced, never changed. A line's sum is the SHA-256 of
// its bytes up to the sum itself; prev is the sum of the line before. So one
// changed byte is found in its own line, and a line that was exchanged, taken
// out or put in at the line behind it. What cuts lines off the end is found by
// the head that the state keeps.
//
// A line that a kill cut off in the middle was never reported as written: the
// next Open takes it away and says so.
package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// maxLine bounds a line: a day of windows caught up at once has its place.
const maxLine = 64 << 20

// Head is a place in a journal: behind the line with this number and sum, at
// this offset. The zero Head is the beginning.
type Head struct {
	N    int64  `json:"n"`
	Sum  string `json:"sum"`
	Size int64  `json:"size"`
}

// CorruptError says that a line is not what was written.
type CorruptError struct {
	Path   string
	Line   int64 // from 1
	Reason string
}

// Error implements error.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Reason)
}

// Journal is a journal open for appending. It is not safe for concurrent use:
// whoever appends holds the release's lock.
type Journal struct {
	path string
	file *os.File
	head Head
	// Torn is how many bytes of a cut-off last line Open took away.
	Torn int64
}

// Open opens a journal for appending, and makes it if it is not there. It reads
// the last line only. A *CorruptError says that this line is damaged.
func Open(path string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	j := &Journal{path: path, file: f}
	if err := j.findEnd(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, SyncDir(filepath.Dir(path))
}

// findEnd settles the head behind the last whole line.
func (j *Journal) findEnd() error {
	info, err := j.file.Stat()
	if err != nil {
		return err
	}
	line, end, err := lastLine(j.file, info.Size())
	if err != nil {
		return err
	}
	if end < info.Size() {
		j.Torn = info.Size() - end
		if err := errors.Join(j.file.Truncate(end), j.file.Sync()); err != nil {
			return fmt.Errorf("take away the last line of %s, which was cut off: %w", j.path, err)
		}
	}
	if end == 0 {
		return nil // no whole line yet
	}
	e, sum, err := parseLine(line)
	if err != nil {
		return &CorruptError{Path: j.path, Line: lineNumber(j.file, end), Reason: err.Error()}
	}
	j.head = Head{N: e.N, Sum: sum, Size: end}
	return nil
}

// lastLine returns the last line that ends in a newline, and where it ends.
func lastLine(r io.ReaderAt, size int64) (line []byte, end int64, err error) {
	end, err = lastNewline(r, size)
	if err != nil || end == 0 {
		return nil, 0, err
	}
	start, err := lastNewline(r, end-1)
	if err != nil {
		return nil, 0, err
	}
	line = make([]byte, end-1-start)
	_, err = r.ReadAt(line, start)
	return line, end, err
}

// lastNewline returns the offset behind the last newline before size, or 0.
func lastNewline(r io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, 16<<10)
	for at := size; at > 0; {
		from := max(at-int64(len(buf)), 0)
		part := buf[:at-from]
		if _, err := r.ReadAt(part, from); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		at = from
	}
	return 0, nil
}

// lineNumber counts the lines up to an offset, for a message.
func lineNumber(r io.ReaderAt, end int64) int64 {
	n, buf := int64(0), make([]byte, 64<<10)
	for s := io.NewSectionReader(r, 0, end); ; {
		k, err := s.Read(buf)
		n += int64(bytes.Count(buf[:k], []byte{'\n'}))
		if err != nil {
			return n
		}
	}
}

// Head returns the place behind the last line.
func (j *Journal) Head() Head { return j.head }

// Path returns the file's name.
func (j *Journal) Path() string { return j.path }

// Append writes an entry behind the last one and syncs it; it sets the entry's
// N and Prev. After an error nothing is there of it, as far as the disk still
// does what it is told.
func (j *Journal) Append(e *Entry) error {
	e.N, e.Prev = j.head.N+1, j.head.Sum
	line, sum, err := formLine(e)
	if err != nil {
		return err
	}
	_, err = j.file.WriteAt(line, j.head.Size)
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write the journal: %w", err), j.file.Truncate(j.head.Size))
	}
	j.head = Head{N: e.N, Sum: sum, Size: j.head.Size + int64(len(line))}
	return nil
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// formLine writes an entry as a line with its sum.
func formLine(e *Entry) (line []byte, sum string, err error) {
	body, err := marshal(e)
	if err != nil {
		return nil, "", err
	}
	if len(body)+sumLen > maxLine {
		return nil, "", errLong // Read would not take it back
	}
	body = body[:len(body)-1] // without the brace
	sum = sumOf(body)
	return append(body, `,"sum":"`+sum+"\"}\n"...), sum, nil
}

// marshal encodes without escaping < > &, which sentences have.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func sumOf(body []byte) string {
	s := sha256.Sum256(body)
	return hex.EncodeToString(s[:])
}

const sumLen = len(`,"sum":"`) + 2*sha256.Size + len(`"}`)

// parseLine reads a line (without its newline) and checks its sum.
func parseLine(line []byte) (*Entry, string, error) {
	if len(line) <= sumLen {
		return nil, "", errors.New("not a line of a journal")
	}
	body, tail := line[:len(line)-sumLen], line[len(line)-sumLen:]
	sum := sumOf(body)
	if string(tail) != `,"sum":"`+sum+`"}` {
		return nil, "", errors.New("the line has been changed: its sum does not match")
	}
	var e Entry
	if err := json.Unmarshal(append(bytes.Clone(body), '}'), &e); err != nil {
		return nil, "", fmt.Errorf("the line cannot be read: %w", err)
	}
	return &e, sum, nil
}

// SyncDir makes the names of new files in a directory last. Windows has no such
// call: there the name lasts with the file; and file systems that cannot do it, as
// some of networks and of user space, are left in peace.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close() // nothing was written
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
