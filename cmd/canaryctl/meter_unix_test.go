//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// endless is a named pipe into which records are written until the test ends, a
// few each hundredth of a second; seconds, if above 0, is when it ends.
func endless(t *testing.T, name string, seconds float64) {
	t.Helper()
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	t.Cleanup(func() {
		if r, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil { // nobody may have opened it
			defer r.Close() //nolint:errcheck // it is read only
		}
		<-over
	})
	go func() {
		defer close(over)
		w, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return
		}
		defer w.Close() //nolint:errcheck // the reader may have gone
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for i := 0; seconds <= 0 || i < int(seconds*100); i++ {
			select {
			case <-tick.C:
			case <-t.Context().Done():
				return
			}
			line := fmt.Sprintf(`{"ts":"2026-01-05T00:%02d:%02dZ","arm":"canary","solved":true}`+"\n", i/60%60, i%60)
			if _, err := w.WriteString(strings.Repeat(line, 50)); err != nil {
				return
			}
		}
	}()
}

// TestLongReadsShowTheirPace: on a terminal, until Ctrl-C, which takes the line
// away.
func TestLongReadsShowTheirPace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	endless(t, filepath.Join(dir, "pipe"), 0)
	p := openPane(t, 40, 10, dir)
	p.enter("canaryctl windows pipe" + tellExit)
	p.shows(" kB/s")
	p.keys("C-c")
	if screen := p.exits(130); strings.Contains(screen, "kB") {
		t.Errorf("the line was not taken away:\n%s", screen)
	}
}

// TestWhereNobodyLooksThereIsNoPace: with -q, on a terminal that can do nothing,
// and into a file.
func TestWhereNobodyLooksThereIsNoPace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := openPane(t, 80, 20, dir)
	for _, name := range []string{"a", "b", "c"} {
		endless(t, filepath.Join(dir, name), 1.3)
	}
	p.enter(`canaryctl windows a -q >out.a & TERM=dumb canaryctl windows b >out.b & canaryctl windows c >out.c 2>said & wait; echo "all" ended`)
	p.wait("ends", func(screen string) bool {
		if strings.Contains(screen, "kB") {
			t.Fatalf("it shows\n%s", screen)
		}
		return strings.Contains(screen, "all ended\n")
	})
	if said := p.file("said"); strings.ContainsAny(said, "\r\x1b") {
		t.Errorf("said into a file: %q", said)
	}
}

// TestCtrlCEndsALongReadAtOnce: wherever it waits; the quickest of a few tries
// takes less than a tenth of a second.
func TestCtrlCEndsALongReadAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, command := range []string{"windows", "diagnose", "calibrate"} {
		t.Run(command, func(t *testing.T) {
			quickest := time.Hour
			for try := 0; try < 5 && quickest >= 100*time.Millisecond; try++ {
				pipe := filepath.Join(dir, fmt.Sprintf("%s-%d", command, try))
				endless(t, pipe, 0)
				quickest = min(quickest, interrupted(t, command, pipe))
			}
			if quickest >= 100*time.Millisecond {
				t.Errorf("it takes %s at least", quickest)
			}
		})
	}
}

// interrupted runs a command with an argument, interrupts it and returns how long
// it goes on.
func interrupted(t *testing.T, command, arg string) time.Duration {
	t.Helper()
	cmd := exec.Command(canaryctl(t), command, arg)
	cmd.Dir = t.TempDir()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-time.After(200 * time.Millisecond)
	began := time.Now()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 130 {
		t.Fatalf("ends with %v, want exit code 130", err)
	}
	return time.Since(began)
}
