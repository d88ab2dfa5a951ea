//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// view runs a command in a pane and returns its process id.
func (s *scene) view(p *pane, command string) int {
	s.t.Helper()
	p.enter("sh -c 'echo $$ > pid; exec canaryctl " + command + "'" + tellExit)
	p.shows("set 1 %")
	pid, err := strconv.Atoi(strings.TrimSpace(s.read("pid")))
	if err != nil {
		s.t.Fatal(err)
	}
	return pid
}

// alive reports whether a process is there and no zombie.
func alive(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(b), ") Z ")
}

// TestRunOutlivesItsTerminal: a lost connection leaves no canary unguarded.
func TestRunOutlivesItsTerminal(t *testing.T) {
	t.Parallel()
	s := newScene(t, heldConfig)
	s.want(0, "promote")
	p := s.pane(80, 24)
	pid := s.view(p, "run --tui")
	t.Cleanup(func() {
		if alive(pid) {
			syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended just now
		}
	})
	p.run("kill-server")
	s.goesOn()
	if !alive(pid) {
		t.Fatal("run has ended with its terminal")
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "SIGTERM ends it", func() bool { return !alive(pid) })
	s.wantWeight(0.01)
	s.verify()
}

// slowHook is a hook that waits for a file before it does its work.
const slowHook = `
hooks:
  on_rollback:
    - exec:
        name: purge
        command: [sh, -c, "touch begun; until [ -e go ]; do sleep 0.02; done; touch purged"]
`

// TestWhatWasConfirmedIsFinishedWithoutATerminal: the weight, and what follows.
func TestWhatWasConfirmedIsFinishedWithoutATerminal(t *testing.T) {
	t.Parallel()
	s := newScene(t, heldConfig+slowHook)
	s.want(0, "promote")
	p := s.pane(80, 24)
	pid := s.view(p, "watch")
	p.keys("r")
	p.shows("enter does it")
	p.keys("Enter")
	there := func(name string) func() bool {
		return func() bool {
			_, err := os.Stat(filepath.Join(s.dir, name))
			return err == nil
		}
	}
	eventually(t, "the hook begins", there("begun"))
	p.run("kill-server")
	s.put("go", "")
	eventually(t, "the hook ends", there("purged"))
	eventually(t, "watch ends", func() bool { return !alive(pid) })
	s.wantWeight(0)
	if h := s.want(0, "history"); !strings.Contains(h.out, "hook purge") || strings.Contains(h.out, "failed") {
		t.Errorf("history: %s", h)
	}
	s.verify()
}

// TestHangingUpIsAnEndLikeOthers for commands that are not a view over a loop.
func TestHangingUpIsAnEndLikeOthers(t *testing.T) {
	t.Parallel()
	s := newScene(t, heldConfig)
	s.want(0, "promote")
	p := s.pane(80, 24)
	if err := syscall.Kill(s.view(p, "watch"), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.shows("set 1 %")
	p.exits(129)
}
