package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMeterTextDropsWhatHasNoRoom(t *testing.T) {
	const read, whole, rate = 912_000_000, 1_471_881_728, 1.9e9
	for columns, want := range map[int]string{
		200: "  61 %  ######----  912 MB of 1.47 GB  1.90 GB/s  0.3 s left",
		61:  "  61 %  ######----  912 MB of 1.47 GB  1.90 GB/s  0.3 s left",
		60:  "  61 %  ######----  912 MB of 1.47 GB  1.90 GB/s  0.3 s left",
		59:  "  61 %  ######----  1.90 GB/s  0.3 s left",
		39:  "  61 %  ####----  1.90 GB/s  0.3 s left",
		36:  "  61 %  ###--  1.90 GB/s  0.3 s left",
		34:  "  61 %  1.90 GB/s  0.3 s left",
		20:  "  61 %  0.3 s left",
		10:  "  61 %",
		5:   "",
	} {
		if got := meterText(read, whole, rate, columns); got != want {
			t.Errorf("%d columns\n got %q\nwant %q", columns, got, want)
		}
	}
}

func TestMeterText(t *testing.T) {
	for _, tt := range []struct {
		name        string
		read, whole int64
		rate        float64
		want        string
	}{
		{"the beginning", 1000, 5_000_000_000, 1000, "   0 %  ----------  1.00 kB of 5.00 GB  1.00 kB/s  days left"},
		{"some hours", 1e9, 37e9, 5e6, "   2 %  ----------  1.00 GB of 37.0 GB  5.00 MB/s  2 h 0 min left"},
		{"some minutes", 500, 1000, 4, "  50 %  #####-----  500 B of 1.00 kB  4 B/s  2 min 5 s left"},
		{"almost", 999, 1000, 100, "  99 %  #########-  999 B of 1.00 kB  100 B/s  0.0 s left"},
		{"the end", 1000, 1000, 100, " 100 %  ##########  1.00 kB of 1.00 kB  100 B/s  0.0 s left"},
		{"a file that has grown", 3000, 1000, 100, " 100 %  ##########  3.00 kB of 1.00 kB  100 B/s  0.0 s left"},
		{"nothing comes any more", 500, 1000, 0, "  50 %  #####-----  500 B of 1.00 kB  0 B/s"},
		{"standard input", 123_456_789, 0, 45_600_000, " 123 MB  45.6 MB/s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := meterText(tt.read, tt.whole, tt.rate, 80); got != tt.want {
				t.Errorf("\n got %q\nwant %q", got, tt.want)
			}
		})
	}
	if got := meterText(123_456_789, 0, 45_600_000, 12); got != " 123 MB" {
		t.Errorf("in 12 columns: %q", got)
	}
}

func TestBytesHaveThreeDigits(t *testing.T) {
	for bytes, want := range map[float64]string{
		0: "0 B", 999: "999 B", 999.6: "1.00 kB", 9_994: "9.99 kB", 9_996: "10.0 kB", 99_960: "100 kB", 999_400: "999 kB", 999_600: "1.00 MB",
		1.4719e9: "1.47 GB", 3e12: "3.00 TB", 4e15: "4000 TB",
	} {
		if got := byteText(bytes); got != want {
			t.Errorf("%v: %q, want %q", bytes, got, want)
		}
	}
}

// fakeLine is the status line of a terminal of so many columns, that begins now.
func fakeLine(columns int) (*statusLine, *bytes.Buffer) {
	out := &bytes.Buffer{}
	return &statusLine{w: out, width: func() int { return columns }, start: time.Now()}, out
}

// drawn parts what was written to a terminal into the lines as drawn.
func drawn(out *bytes.Buffer) []string {
	return strings.Split(strings.TrimPrefix(out.String(), "\r\x1b[K"), "\r\x1b[K")
}

// TestMeterFollowsTheRateOfLate: a file of which the second half is read ten
// times as fast. Nothing is drawn in the first second, then ten lines a second,
// and in the end the line is taken away.
func TestMeterFollowsTheRateOfLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line, out := fakeLine(80)
		m := &byteMeter{line: line, whole: 220e6}
		m.pace.note(line.start, 0)
		for range 100 {
			time.Sleep(20 * time.Millisecond)
			m.add(1e5) // 5 MB a second
		}
		for range 100 {
			time.Sleep(20 * time.Millisecond)
			m.add(1e6) // 50 MB a second
		}
		line.done()
		lines := drawn(out)
		if n := len(lines); n != 32 || lines[n-1] != "" {
			t.Errorf("%d lines, the last %q: want 31 in 3 seconds and an empty one", n, lines[n-1])
		}
		var some []string
		for i := range 4 {
			some = append(some, lines[i*10])
		}
		if diff := cmp.Diff([]string{
			"   2 %  ----------  5.00 MB of 220 MB  5.00 MB/s  43 s left",
			"   4 %  ----------  10.0 MB of 220 MB  5.00 MB/s  42 s left",
			"  27 %  ##--------  60.0 MB of 220 MB  27.5 MB/s  5.8 s left",
			"  50 %  #####-----  110 MB of 220 MB  50.0 MB/s  2.2 s left",
		}, some); diff != "" {
			t.Error(diff)
		}
	})
}

// TestMeterCountsWhatGoroutinesReadAtOnce holds [byteMeter.add] to the race
// detector and to the sum.
func TestMeterCountsWhatGoroutinesReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line, out := fakeLine(80)
		m := &byteMeter{line: line, whole: 8 * 100 * 1000}
		m.pace.note(line.start, 0)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 100 {
					time.Sleep(15 * time.Millisecond)
					m.add(1000)
				}
			})
		}
		all.Wait()
		if got := m.read.Load(); got != m.whole {
			t.Errorf("%d bytes counted, want %d", got, m.whole)
		}
		line.done()
		line.done()
		if text := out.String(); strings.Count(text, "\r\x1b[K") != 6 || !strings.HasSuffix(text, " left\r\x1b[K") {
			t.Errorf("want 5 lines and one that is taken away:\n%q", text)
		}
	})
}

// TestPaceOfWhatComesSeldom: where a block comes every minute, the rate is that
// of the last minute.
func TestPaceOfWhatComesSeldom(t *testing.T) {
	var p pace
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if p.note(at, 0); p.rate() != 0 {
		t.Error("one note makes no rate")
	}
	for i := range int64(100) {
		at = at.Add(time.Minute)
		p.note(at, (i+1)*(i+1)*60)
		if want := float64(2*i + 1); p.rate() != want {
			t.Fatalf("minute %d: %v bytes a second, want %v", i, p.rate(), want)
		}
	}
}

// TestNoMeterWithoutATerminal: nothing is drawn into a pipe.
func TestNoMeterWithoutATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stderr bytes.Buffer
		app := &App{Stderr: &stderr, Getenv: func(string) string { return "" }}
		file := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(file, []byte("123"), 0o600); err != nil {
			t.Fatal(err)
		}
		m := app.meter([]string{file, file})
		if m.whole != 6 {
			t.Errorf("two files of 3 bytes have %d", m.whole)
		}
		time.Sleep(2 * time.Second)
		m.add(3)
		m.line.done()
		if stderr.Len() != 0 {
			t.Errorf("drawn: %q", stderr.String())
		}
		for _, files := range [][]string{{"-"}, {file, "-"}, {file, t.TempDir()}, {file + "none"}} {
			if m := app.meter(files); m.whole != 0 {
				t.Errorf("%q: %d bytes, want an unknown size", files, m.whole)
			}
		}
	})
}

// TestWorkThatDoesNotSeeItsEndIsLeftBehind: soon, and it draws nothing any more.
func TestWorkThatDoesNotSeeItsEndIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		line, out := fakeLine(80)
		m := &byteMeter{line: line}
		m.pace.note(line.start, 0)
		begin := time.Now()
		go func() {
			time.Sleep(2 * time.Second)
			cancel()
		}()
		value, err := promptly(ctx, func() (int, error) {
			for range 100 {
				time.Sleep(100 * time.Millisecond)
				m.add(1)
			}
			return 7, nil
		})
		line.done()
		if took := time.Since(begin); value != 0 || !errors.Is(err, context.Canceled) || took != 2*time.Second+patience {
			t.Errorf("%d, %v after %s", value, err, took)
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		if text := out.String(); !strings.HasSuffix(text, "B/s\r\x1b[K") {
			t.Errorf("drawn in the end: %q", text)
		}
		if value, err := promptly(ctx, func() (int, error) { return 8, ctx.Err() }); value != 8 || err == nil {
			t.Errorf("of work that sees its end: %d, %v", value, err)
		}
	})
}
