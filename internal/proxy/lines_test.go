package proxy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fullDisk is a file on a disk that has room for so many bytes.
type fullDisk struct {
	*os.File
	room int
}

func (f *fullDisk) Write(p []byte) (int, error) {
	n, err := f.File.Write(p[:min(len(p), f.room)])
	if f.room -= n; err == nil && n < len(p) {
		err = errors.New("no space left on device")
	}
	return n, err
}

func TestAHalfLineOnAFullDiskIsTakenBack(t *testing.T) {
	for _, c := range []struct {
		name            string
		room            int
		want            string
		written, failed int64
	}{
		{"in the first line", 3, "\"before\"\n\"third\"\n", 1, 2},
		{"between two", 8, "\"before\"\n\"first\"\n\"third\"\n", 2, 1},
		{"before the end of the first line", 7, "\"before\"\n\"first\"\n\"third\"\n", 2, 1},
		{"in the second line", 10, "\"before\"\n\"first\"\n\"third\"\n", 2, 1},
		{"nothing at all", 0, "\"before\"\n\"third\"\n", 1, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "records.jsonl")
			if err := os.WriteFile(path, []byte("\"before\"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			disk := &fullDisk{file, c.room}
			synctest.Test(t, func(t *testing.T) {
				l := newLines(disk, "records", &Options{Say: (&sink{}).say, Warn: (&sink{}).say})
				l.put("first")
				l.put("second")
				time.Sleep(time.Second)
				synctest.Wait()
				if got, err := os.ReadFile(path); err != nil || !strings.HasSuffix(string(got), "\"before\"\n") && !strings.HasSuffix(strings.TrimSpace(string(got)), "\"first\"") {
					t.Errorf("while it is full: %q %v", got, err)
				}
				disk.room = 1000
				l.put("third")
				l.close()
				if s := l.state(); s.Written != c.written || s.Failed != c.failed {
					t.Errorf("%+v", s)
				}
			})
			if got, err := os.ReadFile(path); err != nil || string(got) != c.want {
				t.Errorf("%q %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestWhatAnotherHasWrittenIsNotTakenBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "records.jsonl")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	ours, theirs := open(), open()
	ours.WriteString("half")
	theirs.WriteString("\"whole\"\n")
	if takeBack(ours, 4) {
		t.Error("taken back")
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "half\"whole\"\n" {
		t.Errorf("%q %v", got, err)
	}
}
