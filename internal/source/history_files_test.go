package source

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// month writes a log of 30 days at a rate, and returns its path, its end and
// its size.
func month(t testing.TB, perMinute int) (path string, end time.Time, size int64) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "app.log")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	end = noon.AddDate(0, 0, 30)
	n := 0
	for at := noon; at.Before(end); at = at.Add(time.Minute) {
		for i := range perMinute {
			w.WriteString(line(at.Add(time.Duration(i)*time.Minute/time.Duration(perMinute)), n)) //nolint:errcheck // Flush says it
			n++
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path, end, info.Size()
}

// line is a record of some 180 bytes.
func line(at time.Time, n int) string {
	return fmt.Sprintf(`{"ts":"%s","version":"%s","user_id":"user-%d","latency_ms":%d,"cost_usd":0.0%d,"solved":%t,"violation":false,"transfer":false,"status":"ok","scene":"chat"}`+"\n",
		at.Format(time.RFC3339Nano), [2]release.Arm{release.Stable, release.Canary}[n%10/9], n%5000, 100+n%700, 1+n%7, n%8 > 0)
}

func TestAMonthOfHistoryIsNotReadForTheLastHour(t *testing.T) {
	path, end, size := month(t, 20)
	s := fileSource(t, "records", filepath.Dir(path), "app.log")
	began := time.Now()
	b := read(t, s, end.Add(-time.Hour), end)
	if requests(b) != 60*20 || len(b.Notes) > 0 || !b.Windows[0].T.Equal(end.Add(-time.Hour)) {
		t.Errorf("%d requests, notes %q", requests(b), b.Notes)
	}
	k := s.(*files).follow.files[0]
	if k.mark.at != size {
		t.Errorf("read to %d of %d", k.mark.at, size)
	}
	rows := s.(*files).lately.rows
	t.Logf("first reading of %d MB: %s, %d rows", size>>20, time.Since(began), rows)
	if rows > 5000 { // an hour, the quarter of an hour before it, and at most 256 KiB more
		t.Errorf("%d rows were read", rows)
	}
}

// BenchmarkTail appends 10,000 records (a busy minute) to a log with 30 days of
// history in it, and reads on.
func BenchmarkTail(b *testing.B) {
	path, end, size := month(b, 20)
	s := fileSource(b, "records", filepath.Dir(path), "app.log")
	batch, err := s.Read(b.Context(), end.Add(-time.Hour), end)
	if err != nil {
		b.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close() // the file goes with the test
	now, n := end, 0
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		w := bufio.NewWriter(f)
		for i := range 10_000 {
			w.WriteString(line(now.Add(time.Duration(i)*6*time.Millisecond), n)) //nolint:errcheck // Flush says it
			n++
		}
		if err := w.Flush(); err != nil {
			b.Fatal(err)
		}
		now = now.Add(time.Minute)
		b.StartTimer()
		if batch, err = s.Read(b.Context(), batch.Until, now); err != nil || requests(batch) != 10_000 {
			b.Fatalf("%v, %d requests", err, requests(batch))
		}
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MiB-live")
	b.ReportMetric(float64(size)/(1<<20), "MB-history")
}

// BenchmarkQuiet reads a log to which nothing was added.
func BenchmarkQuiet(b *testing.B) {
	path, end, _ := month(b, 20)
	s := fileSource(b, "records", filepath.Dir(path), "app.log")
	for b.Loop() {
		if _, err := s.Read(b.Context(), end.Add(-time.Minute), end); err != nil {
			b.Fatal(err)
		}
	}
}
