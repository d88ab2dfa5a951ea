package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/canaryctl/canaryctl/internal/trace"
)

const (
	pieceSize = 1 << 20
	// longestRow is the longest row that is read; what is longer is cut up
	// into bad lines.
	longestRow = 16 << 20
	// goneGrace is for how long a file that is no longer found is read on: its
	// writer may not have noticed yet that it was renamed.
	goneGrace = 10 * time.Minute
	// keptOpen and keptMarks bound what is held of files: handles of those
	// that grew last, and the marks of those that have gone.
	keptOpen  = 16
	keptMarks = 256
)

// follower reads what is appended to files, each line once, through rotation:
// a file is known again when it is renamed (it is the same file), copied and
// cut short, or compressed (it holds the same).
type follower struct {
	live  *trace.Live
	kind  trace.Kind
	from  time.Time // rows before it are not wanted
	files []*followed
	past  []mark // files that have gone or were replaced
	buf   []byte
	notes []string
	anew  bool // a file was replaced by another, or by itself mended
}

// followed is one file.
type followed struct {
	path string
	info fs.FileInfo
	file *os.File // nil: not open
	rows *trace.LiveFile
	mark mark

	size   int64 // when it was read last
	mod    time.Time
	packed bool
	whole  bool      // a JSON array: read again whenever it changes
	gone   time.Time // since when it is not found any more; zero: it is
}

func newFollower(live *trace.Live, kind trace.Kind, from time.Time) *follower {
	return &follower{live: live, kind: kind, from: from}
}

func (f *follower) takeNotes() []string {
	out := f.notes
	f.notes = nil
	return out
}

func (f *follower) note(n string) {
	if !slices.Contains(f.notes, n) {
		f.notes = append(f.notes, n)
	}
}

// read reads on in all files. Those known come first: of two files with the
// same lines in them the new one is the copy.
func (f *follower) read(ctx context.Context, paths []string, now time.Time) error {
	fresh, err := f.match(paths, now)
	if err != nil {
		return err
	}
	known := len(f.files)
	f.files = append(f.files, fresh...)
	for i, k := range f.files {
		if i >= known && packedFile(k) {
			continue // after all that it may be a copy of
		}
		if err := f.advance(ctx, k); err != nil {
			return err
		}
	}
	for _, k := range f.files[known:] {
		if k.packed {
			if err := f.advance(ctx, k); err != nil {
				return err
			}
		}
	}
	f.prune(now)
	return nil
}

// match finds out which known file each path is now, and returns the new ones.
func (f *follower) match(paths []string, now time.Time) (fresh []*followed, err error) {
	here := make(map[*followed]bool)
	byPath := make(map[string]*followed, len(f.files))
	for _, k := range f.files {
		byPath[k.path] = k
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // went away just now
		}
		if err != nil {
			return nil, err
		}
		same := func(k *followed) bool { return k != nil && os.SameFile(k.info, info) }
		k := byPath[path]
		if !same(k) {
			k = nil
			if i := slices.IndexFunc(f.files, same); i >= 0 {
				k = f.files[i]
			} else if slices.ContainsFunc(fresh, same) {
				continue // two names of one file
			}
		}
		switch {
		case k == nil:
			fresh = append(fresh, &followed{path: path, info: info})
		case !here[k]:
			here[k], k.path, k.info, k.gone = true, path, info, time.Time{}
		}
	}
	for _, k := range f.files {
		if !here[k] && k.gone.IsZero() {
			k.gone = now
		}
	}
	return fresh, nil
}

// packedFile looks whether a new file is compressed.
func packedFile(k *followed) bool {
	file, err := os.Open(k.path)
	if err != nil {
		return false // advance will say why
	}
	defer file.Close() // only read
	head := make([]byte, 4)
	n, _ := io.ReadFull(file, head)
	k.packed = trace.Packed(head[:n])
	return k.packed
}

// advance reads on in one file.
func (f *follower) advance(ctx context.Context, k *followed) error {
	if !k.gone.IsZero() {
		if k.file == nil {
			return nil
		}
		info, err := k.file.Stat()
		if err != nil {
			return err
		}
		k.info = info
	}
	size, mod := k.info.Size(), k.info.ModTime()
	if size == k.size && mod.Equal(k.mod) {
		return nil
	}
	if k.rows == nil && !k.packed && k.gone.IsZero() {
		packedFile(k) // it may have been empty when it was met
	}
	var err error
	switch {
	case k.packed:
		err = f.unpack(ctx, k, true)
	case k.whole:
		err = f.readWhole(ctx, k)
	default:
		err = f.grow(ctx, k, size)
	}
	if err == nil {
		k.size, k.mod = size, mod
	}
	return err
}

// grow reads what was appended to a plain file.
func (f *follower) grow(ctx context.Context, k *followed, size int64) error {
	if ok, err := k.open(); !ok {
		return err
	}
	if k.mark.at > 0 && (size < k.mark.at || !k.mark.holds(k.file, size)) {
		f.replaced(k)
	}
	if k.rows == nil {
		if ok, err := f.begin(ctx, k, size); !ok {
			return err
		}
	}
	return f.drain(ctx, k)
}

// open opens a file, unless it is no longer the one that was found.
func (k *followed) open() (bool, error) {
	if k.file != nil {
		return true, nil
	}
	file, err := os.Open(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // the next reading sees what became of it
	}
	if err != nil {
		return false, err
	}
	if info, err := file.Stat(); err != nil || !os.SameFile(info, k.info) {
		file.Close() // only opened
		return false, err
	}
	k.file = file
	return true, nil
}

// replaced starts a file anew that no longer holds what was read from it: it
// was cut short, it is another file in the same place on disk, or a copy that
// is still being made.
func (f *follower) replaced(k *followed) {
	if !slices.ContainsFunc(f.past, func(m mark) bool { return m.same(&k.mark) }) {
		f.past = append(f.past, k.mark)
	}
	k.rows, k.mark, f.anew = nil, mark{}, true
}

// takeReplaced reports whether a file was replaced since it was asked last.
func (f *follower) takeReplaced() bool {
	out := f.anew
	f.anew = false
	return out
}

// adopt finds the file that this one is a copy of, as far as it goes, and takes
// over how far that was read. A file that only begins alike so far is found out
// when it grows.
func (f *follower) adopt(k *followed, size int64) {
	for m := range f.marks(k) {
		if m.at > k.mark.at && m.holds(k.file, size) {
			k.mark = m
		}
	}
}

// marks goes over the marks of all files but one.
func (f *follower) marks(but *followed) func(yield func(mark) bool) {
	return func(yield func(mark) bool) {
		for _, k := range f.files {
			if k != but && k.mark.at > 0 && !yield(k.mark) {
				return
			}
		}
		for _, m := range f.past {
			if !yield(m) {
				return
			}
		}
	}
}

// begin finds out how a file is written and where in it to start. ok is false
// while its first line is not there yet, or where it is read in another way.
func (f *follower) begin(ctx context.Context, k *followed, size int64) (ok bool, err error) {
	if k.mark.at == 0 {
		f.adopt(k, size)
	}
	head, err := firstLines(k.file)
	if err != nil || len(head) == 0 {
		return false, err
	}
	rows, at, err := f.live.Open(k.path, head)
	switch {
	case errors.Is(err, io.EOF):
		return false, nil
	case errors.Is(err, trace.ErrWhole):
		k.whole = true
		return false, f.readWhole(ctx, k)
	case err != nil:
		return false, err
	}
	k.rows = rows
	if k.mark.at > 0 {
		return size >= k.mark.at, nil
	}
	start, err := k.seek(int64(at), size, f.from)
	if err != nil {
		return false, err
	}
	k.mark, err = newMark(k.file, start)
	return true, err
}

// firstLines returns the start of a file up to the end of a line, nothing if
// its first line is not there yet.
func firstLines(r io.ReaderAt) ([]byte, error) {
	for size := 64 << 10; ; size *= 16 {
		head := make([]byte, size)
		n, err := r.ReadAt(head, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if cut := bytes.LastIndexByte(head[:n], '\n'); cut >= 0 {
			return head[:cut+1], nil
		}
		if text := bytes.TrimSpace(head[:n]); len(text) > 0 && (text[0] == '[' || wholeObject(text)) {
			return head[:n], nil
		}
		if n < size || size > longestRow {
			return nil, nil
		}
	}
}

// wholeObject reports whether a line without an end is whole all the same.
func wholeObject(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) > 0 && text[0] == '{' && json.Valid(text)
}

// readWhole reads a JSON array from its start. What was in it before is there
// again, and does not count twice: only windows are read like this.
func (f *follower) readWhole(ctx context.Context, k *followed) error {
	if f.kind == trace.Records {
		return &trace.InputError{File: k.path, Msg: "a JSON array, a document or a stream does not grow by lines", Advice: "write one object a line"}
	}
	r, err := trace.OpenText(ctx, k.path)
	if err != nil {
		return err
	}
	defer r.Close() // only read
	return f.live.Whole(k.path, r)
}

// drain reads a plain file from its mark to the end of its last whole line.
func (f *follower) drain(ctx context.Context, k *followed) error {
	size := pieceSize
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(f.buf) < size {
			f.buf = make([]byte, size)
		}
		buf := f.buf[:size]
		n, err := k.file.ReadAt(buf, k.mark.at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		piece := buf[:n]
		cut := bytes.LastIndexByte(piece, '\n') + 1
		if n < size && wholeObject(piece[cut:]) {
			cut = n
		}
		used, err := f.feed(k, piece[:cut], size >= longestRow && n == size)
		switch {
		case err != nil:
			return err
		case n < size:
			return nil
		case used > 0:
			size = pieceSize
		case size < longestRow:
			size *= 4
		default: // one row that is longer than any may be
			if _, err := f.feed(k, piece, true); err != nil {
				return err
			}
		}
	}
}

// feed reads rows and moves the mark over them.
func (f *follower) feed(k *followed, piece []byte, last bool) (int, error) {
	if len(piece) == 0 {
		return 0, nil
	}
	n, err := k.rows.Feed(piece, k.mark.at, last)
	k.mark.extend(piece[:n])
	for _, note := range k.rows.Notes() {
		f.note(inConfig(note))
	}
	return n, err
}

// prune forgets files that have gone, but for their marks, and closes all but
// those that grew last.
func (f *follower) prune(now time.Time) {
	f.files = slices.DeleteFunc(f.files, func(k *followed) bool {
		if k.gone.IsZero() || k.file != nil && now.Before(k.gone.Add(goneGrace)) {
			return false
		}
		if k.file != nil {
			k.file.Close() // only read
		}
		if k.mark.at > 0 {
			f.past = append(f.past, k.mark)
		}
		return true
	})
	if over := len(f.past) - keptMarks; over > 0 {
		f.past = slices.Delete(f.past, 0, over)
	}
	var open []*followed
	for _, k := range f.files {
		if k.file != nil {
			open = append(open, k)
		}
	}
	keep := keptOpen
	if runtime.GOOS == "windows" {
		keep = 0 // an open file cannot be renamed there
	}
	slices.SortFunc(open, func(a, b *followed) int { return b.mod.Compare(a.mod) })
	for _, k := range open[min(keep, len(open)):] {
		k.file.Close() // only read
		k.file = nil
	}
}

// seekSlack is by how much rows may be out of the order of their times: a
// record is written when its request ends and carries the time of its start.
const seekSlack = 15 * time.Minute

// seek finds by halving where in a long file the rows from a time on start, so
// that a month of history is not read to learn of the last hour.
func (k *followed) seek(at, size int64, from time.Time) (int64, error) {
	const near, look = 256 << 10, 64 << 10
	low, high := at, size
	buf := make([]byte, look)
	for high-low > near {
		middle := low + (high-low)/2
		n, err := k.file.ReadAt(buf, middle)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		_, lines, _ := bytes.Cut(buf[:n], []byte("\n"))
		t, ok := k.rows.Time(lines[:bytes.LastIndexByte(lines, '\n')+1])
		if ok && t.Before(from.Add(-seekSlack)) {
			low = middle
		} else {
			high = middle
		}
	}
	if low == at {
		return at, nil
	}
	n, err := k.file.ReadAt(buf, low)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if end := bytes.IndexByte(buf[:n], '\n'); end >= 0 {
		return low + int64(end) + 1, nil
	}
	return low, fmt.Errorf("%s: a line of more than %d bytes at %d", k.path, look, low)
}
