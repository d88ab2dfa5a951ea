package journal_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/journal"
)

// newest reads the entries in the last bytes of a file.
func newest(path string, size int64) (entries []*journal.Entry, heads []journal.Head, at journal.Head, err error) {
	at, err = journal.Newest(context.Background(), path, size, func(e *journal.Entry, behind journal.Head) error {
		entries, heads = append(entries, e), append(heads, behind)
		return nil
	})
	return entries, heads, at, err
}

// TestNewestGivesTheLinesThatLieWholeInTheLastBytes, for every number of bytes
// about the start of a line, with the places that a reading of the whole journal
// gives.
func TestNewestGivesTheLinesThatLieWholeInTheLastBytes(t *testing.T) {
	s := soundOf(t, 12)
	whole := int64(len(s.bytes))
	sizes := []int64{-1, 0, 1, 40, whole + 1, 1 << 40}
	for _, start := range s.starts {
		sizes = append(sizes, whole-int64(start)-1, whole-int64(start), whole-int64(start)+1)
	}
	for _, size := range sizes {
		first := 1 // the line from which on all lie in the last bytes
		for first < s.lines() && int64(s.starts[first-1]) < whole-size {
			first++
		}
		entries, heads, at, err := newest(s.path, size)
		if err != nil || at != s.heads[s.lines()] {
			t.Fatalf("%d bytes: %+v, %v", size, at, err)
		}
		if !slices.Equal(heads, s.heads[first:]) {
			t.Fatalf("%d bytes: places %v, want those from line %d on", size, heads, first)
		}
		if entries[0].N != int64(first) || entries[0].Kind == "" {
			t.Fatalf("%d bytes: the first is %+v", size, entries[0])
		}
	}
}

// TestReadGoesOnWhereNewestEnded.
func TestReadGoesOnWhereNewestEnded(t *testing.T) {
	s := soundOf(t, 12)
	_, _, at, err := newest(s.path, 100)
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, s.path, note("on"), note("and on"))
	entries, _, err := readFrom(s.path, at)
	if err != nil || len(entries) != 2 || entries[0].Note != "on" || entries[1].N != 14 {
		t.Fatalf("%v, %v", entries, err)
	}
}

// TestNewestLeavesOutALineThatIsBeingWritten, however long it is already.
func TestNewestLeavesOutALineThatIsBeingWritten(t *testing.T) {
	s := soundOf(t, 6)
	for _, torn := range []string{"{", `{"n":7,"t":"`, strings.Repeat("x", 100<<10)} {
		put(t, s.path, append(slices.Clone(s.bytes), torn...))
		entries, _, at, err := newest(s.path, 1000)
		if err != nil || len(entries) == 0 || at != s.heads[6] {
			t.Fatalf("with %d bytes of it: %d entries, %+v, %v", len(torn), len(entries), at, err)
		}
	}
	put(t, s.path, s.bytes[:s.starts[1]-1])
	if entries, _, at, err := newest(s.path, 1000); err != nil || entries != nil || at != (journal.Head{}) {
		t.Errorf("no whole line yet: %d entries, %+v, %v", len(entries), at, err)
	}
}

// TestNewestGivesTheLastLineHoweverLong.
func TestNewestGivesTheLastLineHoweverLong(t *testing.T) {
	long := strings.Repeat("0123456789", 300<<10)
	path := written(t, note("before"), note(long))
	entries, _, at, err := newest(path, 1<<20)
	if err != nil || len(entries) != 1 || entries[0].Note != long || at.N != 2 {
		t.Fatalf("%d entries, %+v, %v", len(entries), at, err)
	}
}

// TestNewestOfNothing: no file, and a file without a line.
func TestNewestOfNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	if _, _, _, err := newest(path, 1000); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	put(t, path, nil)
	if entries, _, at, err := newest(path, 1000); err != nil || entries != nil || at != (journal.Head{}) {
		t.Errorf("an empty file: %v, %+v, %v", entries, at, err)
	}
}

// TestNewestNamesTheLineThatIsDamaged, and gives what stands before it.
func TestNewestNamesTheLineThatIsDamaged(t *testing.T) {
	s := soundOf(t, 12)
	size := int64(len(s.bytes) - s.starts[4]) // from the fifth line on
	for _, c := range []struct {
		what        string
		damage      func(b []byte) []byte
		line, given int64
	}{
		{"the first that is read", func(b []byte) []byte { b[s.starts[4]+5] ^= 1; return b }, 5, 0},
		{"one in the middle", func(b []byte) []byte { b[s.starts[7]+5] ^= 1; return b }, 8, 3},
		{"the last", func(b []byte) []byte { b[s.starts[11]+5] ^= 1; return b }, 12, 7},
		{"one that is not read", func(b []byte) []byte { b[s.starts[2]+5] ^= 1; return b }, 0, 8},
		{"one taken out", func(b []byte) []byte { return slices.Delete(b, s.starts[8], s.starts[9]) }, 9, -1},
	} {
		put(t, s.path, c.damage(slices.Clone(s.bytes)))
		entries, _, at, err := newest(s.path, size)
		var corrupt *journal.CorruptError
		if bad := errors.As(err, &corrupt); bad != (c.line > 0) || bad && corrupt.Line != c.line {
			t.Errorf("%s: %v, want line %d", c.what, err, c.line)
		}
		if c.given >= 0 && int64(len(entries)) != c.given {
			t.Errorf("%s: %d entries, want %d", c.what, len(entries), c.given)
		}
		if n := len(entries); n > 0 && at.N != entries[n-1].N {
			t.Errorf("%s: the place is %+v, the last entry %d", c.what, at, entries[n-1].N)
		}
	}
}

// TestNewestEndsWithItsReader: the context's end and an error of each.
func TestNewestEndsWithItsReader(t *testing.T) {
	s := soundOf(t, 6)
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	_, err := journal.Newest(ctx, s.path, 1<<20, func(*journal.Entry, journal.Head) error { n++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || n != 1 {
		t.Errorf("%v after %d entries", err, n)
	}
	if at, err := journal.Newest(t.Context(), s.path, 1<<20, func(*journal.Entry, journal.Head) error { return os.ErrClosed }); !errors.Is(err, os.ErrClosed) || at.N != 1 {
		t.Errorf("%+v, %v", at, err)
	}
}
