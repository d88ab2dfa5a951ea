//go:build unix

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// running opens run --tui in a terminal, and waits until it drives.
func (s *scene) running(cols, rows int) *pane {
	s.t.Helper()
	p := s.pane(cols, rows)
	p.enter("canaryctl run --tui" + tellExit)
	p.shows("order-service · ", "step 1 of 3", "set 1 %")
	return p
}

// goesOn waits until the release has moved on: the journal has new lines.
func (s *scene) goesOn() {
	s.t.Helper()
	size := func() int64 {
		info, err := os.Stat(s.place().Journal())
		if err != nil {
			s.t.Fatal(err)
		}
		return info.Size()
	}
	was := size()
	eventually(s.t, "goes on", func() bool { return size() > was })
}

// TestClosingTheViewOfRunLeavesTheLoop: q says so, and run prints lines from
// there; Ctrl-C ends it without a question then.
func TestClosingTheViewOfRunLeavesTheLoop(t *testing.T) {
	t.Parallel()
	s := newScene(t, heldConfig)
	p := s.running(100, 30)
	p.keys("C-z")
	p.shows("ctrl+z would stop the release's loop: q closes the view alone")
	s.goesOn()
	p.keys("q")
	p.shows("the view is closed; run goes on, Ctrl-C ends it")
	if on := strings.TrimSpace(p.run("display", "-p", "#{alternate_on} #{cursor_flag}")); on != "0 1" {
		t.Errorf("alternate screen and cursor: %s", on)
	}
	s.goesOn()
	s.want(0, "pause", "--reason", "lunch")
	p.shows("Z  hold ", "paused by a person")
	p.keys("C-c")
	p.exits(130)
	s.wantWeight(0.01)
	s.verify()
}

// TestInterruptingTheViewOfRunAsksOnce, since it ends the loop.
func TestInterruptingTheViewOfRunAsksOnce(t *testing.T) {
	for _, yes := range []string{"Enter", "C-c"} {
		t.Run(yes, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, heldConfig)
			p := s.running(80, 24)
			p.keys("C-c")
			p.shows("End canaryctl run: ", "enter does it, esc leaves it")
			s.goesOn()
			p.keys("Escape")
			p.shows("nothing was done")
			s.goesOn()
			p.keys("C-c")
			p.shows("End canaryctl run: ", "enter does it")
			p.keys(yes)
			p.exits(130)
			s.wantWeight(0.01)
			s.verify()
		})
	}
}

// TestTerminatingRunUnderItsView, and watch, gives the terminal back.
func TestTerminatingRunUnderItsView(t *testing.T) {
	for _, command := range []string{"run --tui", "watch"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, heldConfig)
			s.want(0, "promote")
			p := s.pane(80, 24)
			if err := syscall.Kill(s.view(p, command), syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			p.shows("set 1 %")
			p.exits(143)
			s.wantWeight(0.01)
			s.verify()
		})
	}
}

// TestARunUnderItsViewEndsWithTheRelease: the screen closes, and what run says
// at its end stands below it.
func TestARunUnderItsViewEndsWithTheRelease(t *testing.T) {
	t.Run("complete", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, liveConfig)
		p := s.running(100, 30)
		p.wait("completes", func(screen string) bool {
			if strings.Contains(screen, "exit ") {
				return true
			}
			s.append(traffic{windows: 4})
			return false
		})
		p.shows("complete, step 3 of 3 at 100 %", "nothing: the release is complete")
		p.exits(0)
		s.wantWeight(1)
		s.verify()
	})
	t.Run("locked", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, liveConfig)
		p := s.running(100, 30)
		p.wait("locks", func(screen string) bool {
			if strings.Contains(screen, "exit ") {
				return true
			}
			s.append(traffic{windows: 4, violations: 5})
			return false
		})
		p.shows("breaker OPEN, locked", "canaryctl resume --clear-lock")
		p.exits(5)
		s.wantWeight(0)
		s.verify()
	})
}
