package source

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
)

// fileSource is a source of files in a folder of its own.
func fileSource(t testing.TB, kind, dir string, paths ...string) Source {
	t.Helper()
	s, err := New(&config.Source{Kind: kind, Paths: paths, Span: time.Minute}, Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func appendTo(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func rename(t testing.TB, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func compress(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// record is a line of a log: the n-th request, a minute has ten.
func record(n int) string {
	arm := "stable"
	if n%5 == 0 {
		arm = "canary"
	}
	return fmt.Sprintf(`{"ts":"%s","version":"%s","user_id":"u%d","latency_ms":%d,"cost_usd":0.0%d,"solved":%t,"violation":false,"transfer":%t}`+"\n",
		noon.Add(time.Duration(n)*6*time.Second).Format(time.RFC3339Nano), arm, n%7, 100+n*37%400, 1+n%3, n%4 > 0, n%10 == 0)
}

func records(from, to int) string {
	var b strings.Builder
	for n := from; n < to; n++ {
		b.WriteString(record(n))
	}
	return b.String()
}

// minutes is the requests of the windows in which the records lie.
func requests(b Batch) (total int64) {
	for _, w := range b.Windows {
		total += w.Total
	}
	return total
}

func TestRecordsAreCountedIntoWindows(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "app.log"), records(0, 25))
	s := fileSource(t, "records", dir, "app.log")
	b := read(t, s, noon, noon.Add(2*time.Minute+30*time.Second))
	want := []string{
		"12:00 canary total=2 solved=1/2 violations=0 transfers=1 cost=1.0666666666666667 mean=0.02 p99=285",
		"12:00 stable total=8 solved=6/8 violations=0 transfers=0 mean=0.01875 p99=433",
		"12:01 canary total=2 solved=2/2 violations=0 transfers=1 cost=0.7058823529411765 mean=0.015 p99=470",
		"12:01 stable total=8 solved=6/8 violations=0 transfers=0 mean=0.02125 p99=403",
	}
	got := sayAll(b.Windows)
	if diff := cmp.Diff(want, got); diff != "" || len(b.Notes) > 0 {
		t.Fatalf("%q, notes %q", got, b.Notes)
	}
	if b.Windows[0].Users != 2 || b.Windows[1].Users != 6 || !b.Windows[1].Has(release.HasUsers) {
		t.Errorf("users %d and %d", b.Windows[0].Users, b.Windows[1].Users)
	}
	if !b.Until.Equal(noon.Add(2*time.Minute)) || !b.Newest.Equal(noon.Add(2*time.Minute)) {
		t.Errorf("until %s, newest %s", b.Until, b.Newest)
	}
	if diff := cmp.Diff(map[release.Arm]int64{release.Canary: 4, release.Stable: 7}, b.Users); diff != "" {
		t.Error(diff)
	}
	whole := read(t, fileSource(t, "records", dir, "*.log"), noon, noon.Add(3*time.Minute))
	if requests(whole) != 25 || len(whole.Windows) != 6 {
		t.Errorf("%q", sayAll(whole.Windows))
	}
	if diff := cmp.Diff(got, sayAll(whole.Windows[:4])); diff != "" {
		t.Error(diff)
	}
}

// TestAnyCutReadsTheSame appends a log in pieces that end anywhere, with a
// reading after each, and expects what one reading of the whole gives.
func TestAnyCutReadsTheSame(t *testing.T) {
	csv := strings.NewReplacer("\n", "\r\n").Replace("ts,version,user_id,latency_ms,scene\n" +
		"2026-05-04T12:00:01Z,canary,u1,100,\"a, \"\"quoted\"\"\nscene\"\n2026-05-04T12:00:02Z,stable,u2,200,\n2026-05-04T12:01:02Z,canary,\"u3\",300,\"x\ny\nz\"\n")
	windows := `{"t":"2026-05-04T12:00:00Z","arm":"canary","total":10,"solved":9}` + "\n\n" + `{"t":"2026-05-04T12:00:00Z","arm":"stable","total":90,"solved":80}` + "\n"
	for _, c := range []struct{ name, kind, text string }{
		{"JSON lines", "records", records(8, 14)}, {"CSV with quotes", "records", csv}, {"windows", "windows", windows}, {"a byte order mark", "records", "\ufeff" + records(8, 12)},
		{"a byte order mark before CSV", "records", "\ufeff" + csv},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			whole := filepath.Join(dir, "whole")
			write(t, whole, c.text)
			now := noon.Add(time.Hour)
			want := read(t, fileSource(t, c.kind, dir, "whole"), noon, now)
			if len(want.Windows) == 0 || len(want.Notes) > 0 {
				t.Fatalf("%q %q", sayAll(want.Windows), want.Notes)
			}
			for cut := range len(c.text) {
				path := filepath.Join(dir, fmt.Sprintf("cut%d", cut))
				write(t, path, c.text[:cut])
				s := fileSource(t, c.kind, dir, filepath.Base(path))
				read(t, s, noon, noon) // nothing is final at noon
				appendTo(t, path, c.text[cut:])
				if b := read(t, s, noon, now); !cmp.Equal(want.Windows, b.Windows) || len(b.Notes) > 0 {
					t.Fatalf("cut at %d of %q:\n%s\nnotes %q", cut, c.text[:cut], cmp.Diff(sayAll(want.Windows), sayAll(b.Windows)), b.Notes)
				}
			}
			rapid.Check(t, func(rt *rapid.T) {
				path := filepath.Join(dir, "many")
				os.Remove(path) //nolint:errcheck // of the run before
				s := fileSource(t, c.kind, dir, "many")
				for rest := c.text; rest != ""; {
					n := rapid.IntRange(1, len(rest)).Draw(rt, "bytes")
					appendTo(t, path, rest[:n])
					rest = rest[n:]
					read(t, s, noon, noon)
				}
				if b := read(t, s, noon, now); !cmp.Equal(want.Windows, b.Windows) {
					rt.Fatal(cmp.Diff(sayAll(want.Windows), sayAll(b.Windows)))
				}
			})
		})
	}
}

// nameless is records without users: nothing but how files are followed keeps
// them from being counted twice.
func nameless(from, to int) string {
	return regexp.MustCompile(`"user_id":"[^"]*",`).ReplaceAllString(records(from, to), "")
}

// TestRotationLosesAndDoublesNothing writes a log of 600 requests, rotated in
// each way that there is, with readings in between, and counts the requests.
func TestRotationLosesAndDoublesNothing(t *testing.T) {
	const part = 200
	for _, c := range []struct {
		name, pattern string
		rotate        func(t *testing.T, dir, log string, n int, read func())
	}{
		{"renamed, inside the pattern", "app.log*", func(t *testing.T, dir, log string, n int, read func()) {
			rename(t, log, fmt.Sprintf("%s.%d", log, n))
		}},
		{"renamed, outside the pattern", "app.log", func(t *testing.T, dir, log string, n int, read func()) {
			rename(t, log, fmt.Sprintf("%s.%d", log, n))
		}},
		{"renamed and written on under the old name", "app.log", func(t *testing.T, dir, log string, n int, read func()) {
			old := fmt.Sprintf("%s.%d", log, n)
			rename(t, log, old)
			write(t, log, "")
			read()
			appendTo(t, old, nameless(10_000*n, 10_000*n+5)) // of a writer who has not noticed
		}},
		{"deleted once it was renamed", "app.log", func(t *testing.T, dir, log string, n int, read func()) {
			if err := os.Remove(log); err != nil {
				t.Fatal(err)
			}
		}},
		{"copied and cut short, with the copy read", "app.log*", func(t *testing.T, dir, log string, n int, read func()) {
			text, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []int{len(text) / 3, len(text) / 2} { // under way
				write(t, fmt.Sprintf("%s.%d", log, n), string(text[:part]))
				read()
			}
			write(t, fmt.Sprintf("%s.%d", log, n), string(text))
			if n == 2 {
				read() // both are there
			}
			if err := os.Truncate(log, 0); err != nil {
				t.Fatal(err)
			}
		}},
		{"compressed, inside the pattern", "app.log*", func(t *testing.T, dir, log string, n int, read func()) {
			text, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			if n == 2 {
				read()
			}
			packed := compress(t, string(text))
			write(t, fmt.Sprintf("%s.%d.gz", log, n), packed[:len(packed)/2])
			read()
			write(t, fmt.Sprintf("%s.%d.gz", log, n), packed)
			if err := os.Remove(log); err != nil {
				t.Fatal(err)
			}
		}},
		{"renamed, then compressed while both are there", "app.log*", func(t *testing.T, dir, log string, n int, read func()) {
			old := fmt.Sprintf("%s.%d", log, n)
			rename(t, log, old)
			write(t, log, "")
			read()
			text, err := os.ReadFile(old)
			if err != nil {
				t.Fatal(err)
			}
			write(t, old+".gz", compress(t, string(text)))
			if n == 1 {
				read()
			}
			if err := os.Remove(old); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			log := filepath.Join(dir, "app.log")
			s := fileSource(t, "records", dir, c.pattern)
			quiet := func() {
				if _, err := s.Read(t.Context(), noon, noon); err != nil && !strings.Contains(err.Error(), "no file matches") {
					t.Fatal(err)
				}
			}
			extra := int64(0)
			for n := range 3 {
				if n > 0 {
					c.rotate(t, dir, log, n, quiet)
				}
				appendTo(t, log, nameless(n*part, n*part+100)+nameless(n*part+100, n*part+101)[:40])
				quiet()
				appendTo(t, log, nameless(n*part+100, n*part+101)[40:]+nameless(n*part+101, (n+1)*part))
				if strings.Contains(c.name, "deleted") {
					quiet() // what was never read before it was deleted is lost
				}
				if strings.Contains(c.name, "written on") && n > 0 {
					extra += 5
				}
			}
			b := read(t, s, noon, noon.Add(1000*time.Hour))
			if got := requests(b); got != 3*part+extra {
				t.Errorf("%d requests, want %d; notes %q", got, 3*part+extra, b.Notes)
			}
			again := read(t, s, noon, noon.Add(1001*time.Hour))
			if !cmp.Equal(b.Windows, again.Windows) {
				t.Error("the same time asked for again gives something else")
			}
		})
	}
}

func TestFilesThatOnlyBeginAlikeAreBothRead(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.log"), nameless(0, 20))
	s := fileSource(t, "records", dir, "*.log*")
	read(t, s, noon, noon)
	write(t, filepath.Join(dir, "b.log"), nameless(0, 10)+nameless(100, 130))
	read(t, s, noon, noon)
	write(t, filepath.Join(dir, "c.log.gz"), compress(t, nameless(0, 10)+nameless(200, 230)))
	if b := read(t, s, noon, noon.Add(time.Hour)); requests(b) != 20+40+40 {
		t.Errorf("%d requests", requests(b))
	}
}

func TestAnOldCompressedFileIsNotUnpacked(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.log.9.gz")
	write(t, path, compress(t, records(0, 20)))
	write(t, filepath.Join(dir, "app.log"), records(20, 21))
	from := noon.AddDate(0, 0, 2)
	for _, c := range []struct {
		name string
		mod  time.Time
		rows int64
	}{
		{"written before", noon.Add(time.Hour), 1},
		{"written since", from, 21},
		{"with a time that its rows belie", noon.AddDate(0, -1, 0), 21},
	} {
		if err := os.Chtimes(path, c.mod, c.mod); err != nil {
			t.Fatal(err)
		}
		s := fileSource(t, "records", dir, "app.log*")
		read(t, s, from, from)
		if got := s.(*files).lately.rows; got != c.rows {
			t.Errorf("%s: %d rows read", c.name, got)
		}
	}
}

func TestACSVCutShortStartsWithItsHeaderAgain(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "app.csv")
	const header = "ts,version,latency_ms\n"
	s := fileSource(t, "records", dir, "app.csv")
	want := int64(0)
	for n := range 5 {
		write(t, log, header) // truncates in place
		if n%2 == 0 {
			read(t, s, noon, noon)
		}
		for i := range 3 + n%3 {
			appendTo(t, log, fmt.Sprintf("%s,canary,%d\n", noon.Add(time.Duration(n*10+i)*time.Second).Format(time.RFC3339), i))
			want++
		}
		read(t, s, noon, noon)
	}
	if b := read(t, s, noon, noon.Add(time.Hour)); requests(b) != want {
		t.Errorf("%d of %d", requests(b), want)
	}
}

func TestAFileReplacedByALongerOneIsReadFromItsStart(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "app.log")
	write(t, log, nameless(0, 50))
	s := fileSource(t, "records", dir, "app.log")
	read(t, s, noon, noon)
	write(t, log, nameless(50, 300)) // in place: the same file to the system, longer than before
	if b := read(t, s, noon, noon.Add(time.Hour)); requests(b) != 300 {
		t.Errorf("%d requests", requests(b))
	}
}

func TestStragglersAreSaidAndNotCounted(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "app.log")
	write(t, log, records(0, 20))
	c := &config.Source{Kind: "records", Paths: []string{"app.log"}, Span: time.Minute, Settle: 30 * time.Second}
	s := newSource(t, c, Options{Dir: dir})
	if b := read(t, s, noon, noon.Add(89*time.Second)); len(b.Windows) != 0 || !b.Until.Equal(noon) {
		t.Errorf("%q until %s", sayAll(b.Windows), b.Until)
	}
	appendTo(t, log, strings.Replace(record(3), `"u3"`, `"late but not too late"`, 1))
	first := read(t, s, noon, noon.Add(90*time.Second))
	if requests(first) != 11 {
		t.Errorf("%q", sayAll(first.Windows))
	}
	appendTo(t, log, strings.Replace(record(4), `"u4"`, `"too late"`, 1))
	again := read(t, s, noon, noon.Add(100*time.Second))
	if !cmp.Equal(first.Windows, again.Windows) || len(again.Notes) != 1 || !strings.Contains(again.Notes[0], "1 record came after its window was settled") {
		t.Errorf("%q, notes %q", sayAll(again.Windows), again.Notes)
	}
	next := read(t, s, first.Until, noon.Add(150*time.Second))
	if requests(next) != 10 || len(next.Notes) > 0 {
		t.Errorf("%q, notes %q", sayAll(next.Windows), next.Notes)
	}
}

func TestAnEarlierTimeIsReadAgainFromTheFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "app.log"), records(0, 100))
	s := fileSource(t, "records", dir, "app.log")
	want := read(t, s, noon, noon.Add(10*time.Minute))
	part := read(t, s, noon.Add(5*time.Minute), noon.Add(10*time.Minute))
	if !cmp.Equal(want.Windows[10:], part.Windows) {
		t.Errorf("%q", sayAll(part.Windows))
	}
	if b := read(t, s, noon, noon.Add(10*time.Minute)); !cmp.Equal(want.Windows, b.Windows) {
		t.Errorf("%q", sayAll(b.Windows))
	}
}

func TestUsersAreKnownOnlyWhereEveryRecordNamesOne(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "app.log")
	write(t, log, records(0, 20)+`{"ts":"2026-05-04T12:02:00Z","version":"canary","solved":true}`+"\n")
	b := read(t, fileSource(t, "records", dir, "app.log"), noon, noon.Add(time.Hour))
	if diff := cmp.Diff(map[release.Arm]int64{release.Stable: 7}, b.Users); diff != "" {
		t.Error(diff)
	}
}

func TestWindowsFiles(t *testing.T) {
	dir := t.TempDir()
	sub := filepath.Join(dir, "windows")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	row := func(minute int, arm string, rest string) string {
		return fmt.Sprintf(`{"t":"%s","arm":"%s",%s}`+"\n", noon.Add(time.Duration(minute)*time.Minute).Format(time.RFC3339), arm, rest)
	}
	s := fileSource(t, "windows", dir, "windows")
	if _, err := s.Read(t.Context(), noon, noon); err == nil || !strings.Contains(err.Error(), "no file matches windows yet") {
		t.Errorf("%v", err)
	}
	a := filepath.Join(sub, "a.jsonl")
	write(t, a, row(0, "canary", `"total":10,"judged":2,"solved":2,"cost_mean":0.06`)+row(0, "stable", `"total":90,"cost_mean":0.02`)+row(1, "canary", `"total":0`)+row(2, "canary", `"solved":1`))
	write(t, filepath.Join(sub, ".hidden"), "{")
	b := read(t, s, noon, noon.Add(3*time.Minute))
	want := []string{"12:00 canary total=10 solved=2/2 cost=3 mean=0.06", "12:00 stable total=90 mean=0.02", "12:01 canary total=0"}
	if diff := cmp.Diff(want, sayAll(b.Windows)); diff != "" {
		t.Error(diff)
	}
	if !b.Newest.Equal(noon.Add(time.Minute)) || b.Users != nil {
		t.Errorf("newest %s, users %v", b.Newest, b.Users)
	}
	// More labels replace a window, other figures do not, fewer labels are an
	// older edition.
	appendTo(t, a, row(0, "canary", `"total":10,"judged":8,"solved":7,"cost_mean":0.06`)+row(0, "stable", `"total":91,"cost_mean":0.02`)+row(0, "canary", `"total":10,"judged":2,"solved":2,"cost_mean":0.06`))
	b = read(t, s, noon, noon.Add(3*time.Minute))
	want[0] = "12:00 canary total=10 solved=7/8 cost=3 mean=0.06"
	if diff := cmp.Diff(want, sayAll(b.Windows)); diff != "" {
		t.Error(diff)
	}
	if len(b.Notes) != 1 || !strings.HasPrefix(b.Notes[0], "1 window is there twice with other figures") {
		t.Errorf("%q", b.Notes)
	}
	// Other files in other formats.
	write(t, filepath.Join(sub, "b.csv.gz"), compress(t, "t,arm,total\n"+noon.Add(3*time.Minute).Format(time.RFC3339)+",canary,4\n"))
	write(t, filepath.Join(sub, "c.json"), "["+strings.TrimSpace(row(4, "canary", `"total":5`))+"]")
	write(t, filepath.Join(sub, "d.jsonl"), strings.TrimSpace(row(5, "canary", `"total":6`))) // no newline
	b = read(t, s, noon.Add(3*time.Minute), noon.Add(10*time.Minute))
	if diff := cmp.Diff([]string{"12:03 canary total=4", "12:04 canary total=5", "12:05 canary total=6"}, sayAll(b.Windows)); diff != "" {
		t.Error(diff)
	}
	write(t, filepath.Join(sub, "c.json"), "["+strings.TrimSpace(row(4, "canary", `"total":5`))+","+strings.TrimSpace(row(6, "canary", `"total":7`))+"]")
	b = read(t, s, noon.Add(3*time.Minute), noon.Add(10*time.Minute))
	if len(b.Windows) != 4 || len(b.Notes) > 0 {
		t.Errorf("%q, notes %q", sayAll(b.Windows), b.Notes)
	}
}

func TestFilesThatCannotBeUsed(t *testing.T) {
	for _, c := range []struct{ name, kind, text, want, hint string }{
		{"windows of another length", "windows", `{"t":"2026-05-04T12:00:00Z","span":"5m","arm":"canary","total":1}` + "\n", "windows of 5m, and the source's are 1m long", "span_min: 5"},
		{"records where windows are wanted", "windows", record(1), "holds records, not windows", "source.records"},
		{"windows where records are wanted", "records", `{"t":"2026-05-04T12:00:00Z","arm":"canary","total":1}` + "\n", "holds windows, not records", "source.windows"},
		{"no time", "records", `{"when":1}` + "\n" + `{"when":2}` + "\n", "no time in it", "map: ts=COLUMN"},
		{"a time and nothing to count", "records", "timestamp,value\n2026-05-04T12:00:00Z,3\n", "no counts in it", "map: "},
		{"an array of records", "records", "[" + strings.TrimSpace(record(1)) + "]", "does not grow", "one object a line"},
		{"a web page", "records", "<html>\n", "HTML", "login"},
		{"many bad lines", "records", record(1) + "x\ny\nz\n", "3 of the last 4 lines cannot be read", "max_bad"},
		{"a Prometheus answer", "windows", `{"status":"success","data":{"resultType":"matrix","result":[]}}` + "\n", "no file that grows", "source.prometheus"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "in"), c.text)
			s := fileSource(t, c.kind, dir, "in")
			for range 2 { // it stays so
				_, err := s.Read(t.Context(), noon, noon.Add(time.Hour))
				e, ok := errors.AsType[*Error](err)
				if !ok || !strings.Contains(err.Error(), c.want) || !strings.Contains(e.Hint, c.hint) {
					t.Fatalf("%v\nhint %v", err, e)
				}
			}
		})
	}
}

// A breaker is not left blind for what was mended, nor for days by a few lines
// of a source that has few.
func TestBadLinesAreForgivenWhenTheyAreMendedOrLongAgo(t *testing.T) {
	bad := "x\ny\nz\nw\n"
	for name, then := range map[string]struct {
		now  time.Time
		text string
	}{
		"mended in place":       {noon.Add(3 * time.Minute), records(0, 10) + records(10, 20)},
		"mended and grown past": {noon.Add(3 * time.Minute), records(0, 10) + records(10, 40)},
		"an hour ago":           {noon.Add(63 * time.Minute), records(0, 10) + bad + records(10, 20)},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.log")
			write(t, path, records(0, 10)+bad)
			s := fileSource(t, "records", filepath.Dir(path), "app.log")
			if _, err := s.Read(t.Context(), noon, noon.Add(2*time.Minute)); err == nil {
				t.Fatal("4 bad lines of 14 are let pass")
			}
			write(t, path, then.text)
			if _, err := s.Read(t.Context(), noon, then.now); name == "an hour ago" && err != nil {
				_, err = s.Read(t.Context(), noon, then.now.Add(31*time.Minute))
				if err != nil {
					t.Errorf("still: %v", err)
				}
			} else if err != nil {
				t.Errorf("still: %v", err)
			}
		})
	}
}

func TestASingleBadLineIsSaidAndPassedOver(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "app.log"), records(0, 10)+"{\"ts\":\"2026-05\n"+records(10, 20))
	b := read(t, fileSource(t, "records", dir, "app.log"), noon, noon.Add(2*time.Minute))
	if requests(b) != 20 || len(b.Notes) != 2 || !strings.Contains(b.Notes[1], "app.log: byte ") {
		t.Errorf("%d requests, notes %q", requests(b), b.Notes)
	}
}

func TestMapAndArms(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "gw.log"), `{"start_time":"2026-05-04T12:00:01Z","model":"gpt-b","duration":1.5,"a,b":true}`+"\n"+
		`{"start_time":"2026-05-04T12:00:02Z","model":"gpt-a","duration":0.5,"a,b":false}`+"\n"+`{"start_time":"2026-05-04T12:00:02Z","model":"gpt-c","duration":0.5}`+"\n")
	for _, arms := range []map[string]any{
		{"stable": "gpt-a", "canary": []any{"gpt-b", "gpt-b2"}},
		{"gpt-a": "stable", "gpt-b": "canary"},
	} {
		c := &config.Source{Kind: "records", Paths: []string{filepath.Join(dir, "gw.log")}, Span: time.Minute, Arms: arms,
			Map: map[string]any{"ts": "start_time", "latency_ms": "duration:s", "solved": "a,b"}}
		b := read(t, newSource(t, c, Options{SlowMS: 1000}), noon, noon.Add(time.Minute))
		want := []string{"12:00 canary total=1 solved=1/1 slow=1 p99=1500", "12:00 stable total=1 solved=0/1 slow=0 p99=500"}
		if diff := cmp.Diff(want, sayAll(b.Windows)); diff != "" {
			t.Error(diff)
		}
		if len(b.Notes) != 1 || !strings.Contains(b.Notes[0], "left out") {
			t.Errorf("%q", b.Notes)
		}
	}
	for _, c := range []struct {
		maps, arms map[string]any
		want       string
	}{
		{map[string]any{"latency": "d"}, nil, `no field "latency"`},
		{map[string]any{"latency_ms": 3}, nil, "not the name of a column"},
		{map[string]any{"latency_ms": "d:usd"}, nil, "not a unit"},
		{nil, map[string]any{"canary": 1.1}, "not a version"},
		{nil, map[string]any{"canary": "v1", "stable": "v1"}, "already"},
		{nil, map[string]any{"v1": "v2"}, "is an arm"},
	} {
		_, err := New(&config.Source{Kind: "records", Paths: []string{"x"}, Span: time.Minute, Map: c.maps, Arms: c.arms}, Options{})
		if _, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %v: %v", c.maps, c.arms, err)
		}
	}
}

// What was appended to a compressed file does not go away by waiting: it is no
// file that is still being written.
func TestBytesAfterACompressedFileAreSaidAndNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.log.gz"), compress(t, records(0, 20))+"junk")
	s := fileSource(t, "records", dir, "*.log.gz")
	b, err := s.Read(t.Context(), noon, noon.Add(2*time.Minute))
	if err == nil || !strings.Contains(err.Error(), "a.log.gz: after the compressed data come bytes that are no gzip (6a 75 6e 6b)") {
		t.Errorf("%v, notes %q", err, b.Notes)
	}
	cut := compress(t, records(0, 20))
	write(t, filepath.Join(dir, "a.log.gz"), cut[:len(cut)-3])
	if b, err = s.Read(t.Context(), noon, noon.Add(2*time.Minute)); err != nil || !strings.Contains(strings.Join(b.Notes, " "), "read on when it has changed") {
		t.Errorf("%v, notes %q", err, b.Notes)
	}
}
