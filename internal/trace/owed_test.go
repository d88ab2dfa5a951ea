package trace

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/release"
)

// summable are columns for which rows are summed up.
func summable(t *testing.T) []Column {
	columns, err := ParseColumns("t,arm,total,solved,judged,violations,transfers,cost_mean,p99_ms")
	must(t, err)
	return columns
}

// ascending draws rows in the order of time, some of which repeat one before.
func ascending(r *rand.Rand, rows int, csv bool) string {
	var b strings.Builder
	if csv {
		b.WriteString("ts,user_id,latency_ms,cost_usd,solved,violation\n")
	}
	var lines []string
	for i := range rows {
		id := fmt.Sprint("u", r.IntN(9))
		if r.IntN(4) == 0 {
			id = "" // a row that repeats is counted without one
		}
		format := `{"ts":"2026-05-04T00:%02d:%02d.%03dZ","user_id":"%s","latency_ms":%d,"cost_usd":0.0%d,"solved":%t,"violation":%t}` + "\n"
		if csv {
			format = "2026-05-04T00:%02d:%02d.%03dZ,%s,%d,0.0%d,%t,%t\n"
		}
		line := fmt.Sprintf(format, i/5000, i/83%60, i%83*12, id, r.IntN(3000), r.IntN(100), r.IntN(9) > 0, r.IntN(99) == 0)
		lines = append(lines, line)
		b.WriteString(line)
		if r.IntN(rows/4) == 0 {
			b.WriteString(lines[r.IntN(len(lines))])
		}
	}
	return b.String()
}

// Rows that repeat others are found also where those were summed up in the order
// of time, in the same file and in another one.
func TestARepeatedRowIsFoundAmongSums(t *testing.T) {
	defer func(n int) { blockSize = n }(blockSize)
	blockSize = 500
	found := 0
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 7))
		first := ascending(r, 3000, seed%2 == 1)
		lines := strings.SplitAfter(first, "\n")
		dir := t.TempDir()
		paths := []string{writeTo(t, dir, "a", first), writeTo(t, dir, "b", lines[0]+lines[1+r.IntN(1000)])}
		opt := Options{Span: [...]time.Duration{10 * time.Second, time.Minute, time.Hour}[seed%3], MaxBad: anyBad, Columns: summable(t)}
		if seed%4 > 1 {
			opt.maxHashes = 700
		}
		slow := opt
		slow.byRow = true
		want := readingOf(ReadFiles(context.Background(), paths, nil, slow, nil))
		got := readingOf(ReadFiles(context.Background(), paths, nil, opt, nil))
		if diff := cmp.Diff(want, got, sameData); diff != "" {
			t.Fatalf("seed %d: -by row +in blocks\n%s", seed, diff)
		}
		found += int(got.Data.Duplicates)
	}
	if found < 10 {
		t.Errorf("%d duplicates among all files: the test shows nothing", found)
	}
}

// seconds is a log of a row a second, in the order of time.
func seconds(rows int) (lines []string) {
	for i := range rows {
		lines = append(lines, fmt.Sprintf(`{"ts":"2026-05-04T%02d:%02d:%02dZ","user_id":"u","latency_ms":%d}`+"\n", i/3600, i/60%60, i%60, i))
	}
	return lines
}

// fed reads files one after the other, and calls between before each but the
// first.
func fed(t *testing.T, paths []string, between func()) *feed {
	t.Helper()
	f := newFeed(Options{Columns: summable(t)})
	t.Cleanup(f.close)
	for i, path := range paths {
		if i > 0 {
			between()
		}
		if err := f.readFile(context.Background(), path, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// Rows whose digests were left out are read again for the windows in which a row
// is not later than all before, and for no others.
func TestOnlyTheWindowOfALateRowIsReadAgain(t *testing.T) {
	defer func(n int) { blockSize = n }(blockSize)
	blockSize = 500
	lines := seconds(7200)
	dir := t.TempDir()
	log, late := writeTo(t, dir, "log", strings.Join(lines, "")), writeTo(t, dir, "late", lines[3000])
	f := fed(t, []string{log, late}, func() {})
	settled := 0
	for i := range f.records.owed {
		if f.records.owed[i].settled {
			settled++
		}
	}
	if n := len(f.records.owed); n < 500 || settled < 6 || settled > 12 {
		t.Errorf("%d blocks of %d were read again", settled, n)
	}
	if f.data.Duplicates != 1 || f.records.unsure != 0 {
		t.Errorf("%d duplicates, %d unsure", f.data.Duplicates, f.records.unsure)
	}
}

// Rows that are left out say nothing of what is later than what.
func TestARepeatedRowIsFoundBehindRowsThatAreLeftOut(t *testing.T) {
	defer func(n int) { blockSize = n }(blockSize)
	blockSize = 500
	dir, lines := t.TempDir(), seconds(7200)
	named := func(version string, lines []string) string {
		return strings.ReplaceAll(strings.Join(lines, ""), `"user_id"`, `"version":"`+version+`","user_id"`)
	}
	paths := []string{writeTo(t, dir, "other", named("old", lines[5000:])), writeTo(t, dir, "log", named("new", lines[:4000])), writeTo(t, dir, "late", named("new", lines[3000:3001]))}
	d, err := ReadFiles(context.Background(), paths, nil, Options{Columns: summable(t), Arms: map[string]release.Arm{"new": release.Stable}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d.Duplicates != 1 || d.LeftOut != 2200 {
		t.Errorf("%d duplicates, %d left out", d.Duplicates, d.LeftOut)
	}
}

// A file that is gone by the time its rows are asked for again is still the file
// that was read, as long as it could be kept open. One that is not any more what
// was read is not compared with: what would be read again may be anything.
func TestAFileIsComparedWithAsLongAsItIsWhatWasRead(t *testing.T) {
	lines := seconds(7200)
	gone := func(t *testing.T, path string) { must(t, os.Remove(path)) }
	replaced := func(t *testing.T, path string) {
		must(t, os.Rename(writeTo(t, filepath.Dir(path), "new", strings.Join(lines, "")), path))
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, path string)
		open   int
		found  bool
	}{
		"untouched":                        {func(*testing.T, string) {}, 1, true},
		"untouched, but closed":            {func(*testing.T, string) {}, 0, true},
		"gone":                             {gone, 1, true},
		"another in its place":             {replaced, 1, true},
		"gone, and closed":                 {gone, 0, false},
		"another in its place, and closed": {replaced, 0, false},
		"shorter":                          {func(t *testing.T, path string) { must(t, os.Truncate(path, 9)) }, 1, false},
		"other rows": {func(t *testing.T, path string) {
			must(t, os.WriteFile(path, []byte(strings.Repeat(lines[0], 7200)), 0o600))
		}, 1, false},
		"not even JSON": {func(t *testing.T, path string) {
			must(t, os.WriteFile(path, []byte(strings.Repeat("x", 900_000)), 0o600))
		}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			defer func(size, open int) { blockSize, mostOpen = size, open }(blockSize, mostOpen)
			blockSize, mostOpen = 500, c.open
			dir := t.TempDir()
			log, late := writeTo(t, dir, "log", strings.Join(lines, "")), writeTo(t, dir, "late", lines[3000])
			f := fed(t, []string{log, late}, func() { c.change(t, log) })
			want := [...]int64{0, 1}
			if c.found {
				want = [...]int64{1, 0}
			}
			if got := [...]int64{f.data.Duplicates, f.records.lost}; got != want || f.data.Good != 7201 {
				t.Errorf("%v duplicates and lost, want %v; %d rows", got, want, f.data.Good)
			}
			must(t, f.finish([]string{log, late}))
			if told := noted(f.data, "1 record could not be compared with others of its window: their file is not any more what was read"); told == c.found {
				t.Errorf("%q", f.data.Notes)
			}
		})
	}
}

func writeTo(t *testing.T, dir, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
