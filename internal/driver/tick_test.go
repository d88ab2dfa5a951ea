package driver_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/state"
)

// longHold is a ladder that stays at its first step for longer than any history
// here.
var longHold = strings.Replace(ladder3, "{ pct: 0.01, min_hold_min: 10 }", "{ pct: 0.01, min_hold_min: 100000 }", 1)

// memory is a folder in memory, where there is one: every line of a journal is
// synced, and a disk that others use takes most of the tests' time for that.
func memory(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "canaryctl-driver")
	if err != nil {
		return tb.TempDir()
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) }) // memory, given back
	return dir
}

// history lives through a release that has been ticked for so many minutes. A
// benchmark has no testing.T to give: what goes wrong is told by tb.
func history(tb testing.TB, minutes int) *world {
	tb.Helper()
	w := &world{t: new(testing.T), text: longHold, dir: memory(tb), now: t0}
	w.target = &fakeTarget{w: w, weight: weight(0)}
	w.source = &fakeSource{w: w, perMin: 600, solved: 0.9}
	d := w.driver()
	for range minutes {
		if _, err := d.Promote(tb.Context()); err != nil {
			tb.Fatal(err)
		}
		w.now = w.now.Add(time.Minute)
	}
	return w
}

// BenchmarkTick is one promote after a history of so many days.
func BenchmarkTick(b *testing.B) {
	for _, days := range []int{1, 3} {
		b.Run(strconv.Itoa(days)+"d", func(b *testing.B) {
			w := history(b, days*1440)
			b.ReportAllocs()
			for b.Loop() {
				w.now = w.now.Add(time.Minute)
				if _, err := w.driver().Promote(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestATickReadsNothingOfThePast compares what a tick of a new process reads
// and allocates after an hour and after a day: the same.
func TestATickReadsNothingOfThePast(t *testing.T) {
	hourRead, hourAlloc := tickCost(t, history(t, 60))
	dayRead, dayAlloc := tickCost(t, history(t, 1440))
	if dayRead > hourRead+hourRead/4+4096 {
		t.Errorf("a tick reads %d bytes after a day, %d after an hour", dayRead, hourRead)
	}
	if dayAlloc > hourAlloc+hourAlloc/4 {
		t.Errorf("a tick allocates %d bytes after a day, %d after an hour", dayAlloc, hourAlloc)
	}
	t.Logf("a tick reads %d bytes and allocates %d", dayRead, dayAlloc)
}

func tickCost(t *testing.T, w *world) (read, alloc int64) {
	t.Helper()
	const ticks = 10
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	from := bytesRead(t)
	for range ticks {
		w.now = w.now.Add(time.Minute)
		if _, err := w.driver().Promote(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	read = bytesRead(t) - from
	runtime.ReadMemStats(&after)
	return read / ticks, int64(after.TotalAlloc-before.TotalAlloc) / ticks
}

// bytesRead is what this process has read so far, from files and memory disks
// alike.
func bytesRead(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skipf("SKIPPED: nobody counts what is read here: %v", err)
	}
	_, text, _ := bytes.Cut(b, []byte("rchar: "))
	line, _, _ := bytes.Cut(text, []byte("\n"))
	n, err := strconv.ParseInt(string(line), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestAMonthOfHistory measures ticks and verify after 30 days; it runs where
// CANARYCTL_HISTORY names a folder, which keeps the history for the real
// command: see the Makefile.
func TestAMonthOfHistory(t *testing.T) {
	keep := os.Getenv("CANARYCTL_HISTORY")
	if keep == "" {
		t.Skip("a minute of work: set CANARYCTL_HISTORY to a folder that is to keep the history")
	}
	begin := time.Now()
	w := history(t, 43_200)
	t.Logf("lived through in %s", time.Since(begin).Round(time.Second))
	dir := state.At(w.dir, "order-service")
	info, err := os.Stat(dir.Journal())
	if err != nil {
		t.Fatal(err)
	}
	begin = time.Now()
	v, err := driver.Verify(t.Context(), dir, "order-service")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d lines, %d decisions, %d MiB, verified in %s", v.Lines, v.Decisions, info.Size()>>20, time.Since(begin).Round(time.Millisecond))
	begin = time.Now()
	read, alloc := tickCost(t, w)
	t.Logf("a tick takes %s, reads %d bytes and allocates %d", time.Since(begin)/10, read, alloc)
	if err := os.CopyFS(filepath.Join(keep, ".canaryctl"), os.DirFS(w.dir)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"canary.yaml": w.text, "windows.jsonl": "", "weights.json": `{"versions":{"stable":{"weight":0.99},"canary":{"weight":0.01}}}`} {
		if err := os.WriteFile(filepath.Join(keep, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
