package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/journal"
)

func note(s string) *journal.Entry { return &journal.Entry{T: t0, Kind: journal.Note, Note: s} }

// TestADeviceThatIsFullTakesNothing, and the journal stands where it stood.
func TestADeviceThatIsFullTakesNothing(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no /dev/full")
	}
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	if err := os.Symlink("/dev/full", path); err != nil {
		t.Fatal(err)
	}
	j := open(t, path)
	for range 3 {
		err := j.Append(note("lost"))
		if err == nil || !strings.Contains(err.Error(), "write the journal") || j.Head() != (journal.Head{}) {
			t.Fatalf("%v, head %+v", err, j.Head())
		}
	}
}

// TestALongLineComesBack, and one that Read would not take is not written.
func TestALongLineComesBack(t *testing.T) {
	long := strings.Repeat("0123456789 <&>\n", 10<<20/15)
	path := written(t, note("before"), note(long), note("behind"))
	got, heads, err := readFrom(path, journal.Head{})
	if err != nil || len(got) != 3 || got[1].Note != long || got[2].Note != "behind" {
		t.Fatalf("%d lines, %v", len(got), err)
	}
	if heads[1].Size-heads[0].Size < 10<<20 {
		t.Errorf("the line has %d bytes", heads[1].Size-heads[0].Size)
	}
	j := open(t, path)
	if err := j.Append(note(strings.Repeat("x", journal.MaxLine))); err == nil || !strings.Contains(err.Error(), "64 MiB") {
		t.Errorf("a line that no reader takes: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != heads[2].Size || j.Head() != heads[2] {
		t.Errorf("the journal changed: %v, %v", info, err)
	}
	if err := j.Append(note("on")); err != nil {
		t.Fatal(err)
	}
	t.Run("a line that never ends is not read for ever", func(t *testing.T) {
		put(t, path, bytes.Repeat([]byte("x"), journal.MaxLine+1<<20))
		var corrupt *journal.CorruptError
		if _, _, err := readFrom(path, journal.Head{}); !errors.As(err, &corrupt) || corrupt.Line != 1 {
			t.Errorf("%v", err)
		}
	})
}

// TestAReaderSeesWholeLinesOnly while they are being written, each once and in
// order.
func TestAReaderSeesWholeLinesOnly(t *testing.T) {
	const lines = 150
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j := open(t, path)
	done := make(chan error, 1)
	go func() {
		for i := range lines {
			if err := j.Append(note(fmt.Sprint(i) + strings.Repeat(" and on", i*100))); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	seen, rounds := 0, 0
	for at, over := (journal.Head{}), false; !over || seen < lines; rounds++ {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			over = true
		default:
		}
		entries, heads, err := readFrom(path, at)
		if err != nil {
			t.Fatalf("behind line %d: %v", seen, err)
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Note, fmt.Sprint(seen)) || int(e.N) != seen+1 {
				t.Fatalf("line %d says %.20s", e.N, e.Note)
			}
			seen++
		}
		if len(heads) > 0 {
			at = heads[len(heads)-1]
		}
		if over && seen < lines && len(entries) == 0 {
			t.Fatalf("%d of %d lines", seen, lines)
		}
	}
	t.Logf("%d lines in %d readings", seen, rounds)
}

// longJournal writes a journal of about so many MiB.
func longJournal(t testing.TB, mib int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j := open(t, path)
	for range mib / 5 {
		if err := j.Append(note(strings.Repeat("x", 5<<20))); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range kinds() {
		if err := j.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// TestOpenReadsTheLastLineOnly: a journal of 50 MiB takes as much memory as one
// of a few lines.
func TestOpenReadsTheLastLineOnly(t *testing.T) {
	cost := func(path string) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		j, err := journal.Open(path)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	long := longJournal(t, 50)
	small, large := cost(written(t, kinds()...)), cost(long)
	t.Logf("%d bytes allocated for a small journal, %d for 50 MiB", small, large)
	if large > 2*small+64<<10 {
		t.Errorf("opening takes %d bytes for 50 MiB and %d for a few lines", large, small)
	}
}

func BenchmarkOpen(b *testing.B) {
	path := longJournal(b, 50)
	b.ReportAllocs()
	for b.Loop() {
		j, err := journal.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	j, e := open(b, filepath.Join(b.TempDir(), "journal.jsonl")), kinds()[1]
	b.ReportAllocs()
	for b.Loop() {
		if err := j.Append(e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	var entries []*journal.Entry
	for range 100 {
		entries = append(entries, kinds()[1])
	}
	path := written(b, entries...)
	b.SetBytes(int64(len(load(b, path))))
	for b.Loop() {
		if _, _, err := readFrom(path, journal.Head{}); err != nil {
			b.Fatal(err)
		}
	}
}
