//go:build unix

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// watchedConfig asks for a person at the second step, and cools down for longer
// than it takes to look.
var watchedConfig = strings.NewReplacer(
	"{ pct: 0.10, min_hold_min: 0.002 }", "{ pct: 0.10, min_hold_min: 0.002, gate: [time, metric, approval] }",
	"cooldown_min: 0.001", "cooldown_min: 0.05",
).Replace(liveConfig)

// heldConfig keeps a release at its first step.
var heldConfig = strings.Replace(liveConfig, "{ pct: 0.01, min_hold_min: 0.002 }", "{ pct: 0.01, min_hold_min: 1000 }", 1)

// pane opens a terminal in the scene's folder.
func (s *scene) pane(cols, rows int, env ...string) *pane {
	s.t.Helper()
	return openPane(s.t, cols, rows, s.dir, env...)
}

// holds is everything in the scene's folder, with what is in it and when it was
// changed.
func (s *scene) holds() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == s.dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		out[path] = fmt.Sprint(info.Mode(), " ", info.ModTime().UnixNano())
		if d.Type().IsRegular() {
			b, err := os.ReadFile(path)
			out[path] += " " + string(b)
			return err
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// unchanged asserts that a folder holds what it held.
func (s *scene) unchanged(was map[string]string) {
	s.t.Helper()
	if diff := cmp.Diff(was, s.holds()); diff != "" {
		s.t.Errorf("watching has changed files (-before +after):\n%s", diff)
	}
}

var clock = regexp.MustCompile(`\d\d:\d\d:\d\d UTC\n`)

// ticks waits until the view's clock has moved on so many times.
func (p *pane) ticks(n int) {
	p.t.Helper()
	last := ""
	p.wait("moves its clock on", func(screen string) bool {
		if now := clock.FindString(screen); now != "" && now != last {
			last = now
			n--
		}
		return n < 0
	})
}

// TestWatchingOnly leaves no trace in the folder of a release, or of none.
func TestWatchingOnly(t *testing.T) {
	for _, tt := range []struct {
		name  string
		ready func(s *scene)
		shows string
	}{
		{"before a release", func(*scene) {}, "NOT STARTED"},
		{"during one", func(s *scene) { s.want(0, "promote") }, "order-service · "},
		{"after a rollback", func(s *scene) { s.want(0, "promote"); s.want(0, "rollback", "--reason", "totals") }, "SAFE, ROLLED BACK, LOCKED"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, heldConfig)
			tt.ready(s)
			was := s.holds()
			p := s.pane(100, 30)
			p.enter("canaryctl watch" + tellExit)
			p.shows(tt.shows)
			p.ticks(3)
			p.keys("j", "c", "Up", "Enter", "Escape", "?", "x")
			p.ticks(1)
			p.keys("q")
			p.shows("exit 0\n", tt.shows)
			s.unchanged(was)
			p.exits(0)
		})
	}
}

// TestAReleaseFromBeginningToLockAsItIsSeen: others drive the release, and the
// view shows each state soon after it has come about.
func TestAReleaseFromBeginningToLockAsItIsSeen(t *testing.T) {
	t.Parallel()
	s := newScene(t, watchedConfig)
	p := s.pane(120, 40)
	p.enter("canaryctl watch" + tellExit)
	p.shows("NOT STARTED", "step 1 of 3 at 1 %")

	s.want(0, "promote")
	p.shows("order-service · ", "step 1 of 3", "start to 1 %", "set 1 %", "r roll back", "p pause")

	p.keys("r")
	p.shows("Roll back: the weight goes from 1 % to 0 % now", "enter does it, esc leaves it")
	p.text("never mind")
	p.shows("why (or nothing): never mind_")
	was := s.read(stateFolder + "journal.jsonl")
	p.keys("Escape")
	p.shows("nothing was done")
	p.loses("esc leaves it")
	if now := s.read(stateFolder + "journal.jsonl"); now != was {
		t.Errorf("esc has written into the journal: %s", cmp.Diff(was, now))
	}
	s.wantWeight(0.01)

	p.keys("p")
	p.shows("Pause at step 1: the weight stays at 1 %")
	p.text("lunch, back at 2")
	p.shows("enter does it")
	p.keys("Enter")
	p.shows("PAUSED", "lunch, back at 2", "p resume")
	if h := s.want(0, "history"); !strings.Contains(h.out, "pause by ") || !strings.Contains(h.out, ": lunch, back at 2") {
		t.Errorf("history: %s", h)
	}
	p.keys("p")
	p.shows("Resume at step 1")
	p.shows("enter does it")
	p.keys("Enter")
	p.loses("PAUSED")
	if h := s.want(0, "history"); !regexp.MustCompile(`resume by [^\n]*: given in canaryctl watch\n`).MatchString(h.out) {
		t.Errorf("history: %s", h)
	}

	s.serve(traffic{windows: 8})
	s.want(0, "promote")
	s.serve(traffic{windows: 4})
	s.want(4, "promote")
	p.shows("WAITS FOR APPROVAL", "a approve 100 %")
	p.keys("a")
	p.shows("Approve step 2 of release ", "100 % follows at the next look")
	p.text("Ann has looked")
	p.shows("enter does it")
	p.keys("Enter")
	p.shows("approve: ", "Ann has looked")
	if h := s.want(0, "history"); !regexp.MustCompile(`approve [^\n]*: Ann has looked\n`).MatchString(h.out) {
		t.Errorf("history: %s", h)
	}
	s.want(0, "promote")
	s.wantWeight(1)
	p.shows("step 3 of 3", "advance to 100 %")

	s.serve(traffic{windows: 2, violations: 500})
	s.want(5, "promote")
	s.wantWeight(0)
	p.shows("SAFE, ROLLED BACK ", "breaker OPEN (tripped)", "TRIPPED", "roll_back to 0 %")
	p.keys("Enter")
	p.shows("enter fold", "violations in ")
	p.keys("Escape")
	p.loses("enter fold")

	s.until(s.release().Ladder.At.Add(3 * time.Second))
	s.want(3, "promote")
	p.shows("ON TRIAL", "breaker HALF_OPEN (on trial)")
	s.serve(traffic{windows: 4, violations: 5})
	s.want(5, "promote")
	p.shows("SAFE, ROLLED BACK, LOCKED", "ESCALATED")
	s.wantWeight(0)

	p.keys("q")
	p.shows("exit 0\n", "SAFE, ROLLED BACK, LOCKED")
	p.exits(0)
	s.verify()
}

// TestRollingBackInTheView is the command: weight 0, locked, with the reason in
// the journal.
func TestRollingBackInTheView(t *testing.T) {
	t.Parallel()
	s := newScene(t, liveConfig)
	s.climb(2)
	s.wantWeight(0.1)
	p := s.pane(80, 24)
	p.enter("canaryctl watch" + tellExit)
	p.shows("r roll back", "step 2 of 3")
	p.keys("r")
	p.shows("Roll back: the weight goes from 10 % to 0 % now")
	p.text("customers wait, 客戶 too")
	p.shows("customers wait, 客戶 too_")
	p.shows("enter does it")
	p.keys("Enter")
	p.shows("rollback: ", "SAFE, ROLLED BACK, LOCKED")
	s.wantWeight(0)
	if h := s.want(0, "history"); !strings.Contains(h.out, "rollback by ") || !strings.Contains(h.out, ": customers wait, 客戶 too") {
		t.Errorf("history: %s", h)
	}
	p.keys("C-c")
	p.exits(130)
	s.verify()
}

// TestWhatWasConfirmedIsFinishedAfterQ: q right behind enter does not lose it.
func TestWhatWasConfirmedIsFinishedAfterQ(t *testing.T) {
	t.Parallel()
	s := newScene(t, heldConfig)
	s.want(0, "promote")
	p := s.pane(80, 24)
	p.enter("canaryctl watch" + tellExit)
	p.shows("r roll back")
	p.keys("r")
	p.shows("enter does it")
	p.keys("Enter", "q")
	p.shows("rollback: ")
	p.exits(0)
	s.wantWeight(0)
	if r := s.release(); !r.Ladder.Weight.IsZero() {
		t.Errorf("the journal has %s", r.Ladder.Weight)
	}
}

// TestTheSourceIsLostAndComesBack, and so does the target.
func TestTheSourceIsLostAndComesBack(t *testing.T) {
	t.Parallel()
	s := newScene(t, heldConfig)
	s.want(0, "promote")
	s.serve(traffic{windows: 4}) // which nobody has decided on: the view alone has seen them
	p := s.pane(100, 30)
	p.enter("canaryctl watch" + tellExit)
	p.shows("240/50 ")
	rename := func(from, to string) {
		t.Helper()
		if err := os.Rename(s.path(from), s.path(to)); err != nil {
			t.Fatal(err)
		}
	}
	rename("windows.jsonl", "elsewhere.jsonl")
	begun := time.Now()
	p.shows("SOURCE NOT READ FROM HERE, whoever decides had it ", "NOT SEEN FROM HERE")
	if took := time.Since(begun); took > 5*time.Second && !raceDetector { // two looks, and as many seconds again
		t.Errorf("it took %s", took)
	}
	s.want(9, "promote")
	screen := p.shows("SOURCE LOST, newest figures ", " old: ", "BLIND")
	age := regexp.MustCompile(`newest figures (\d+)s old`)
	first := age.FindString(screen)
	p.wait("counts the age on", func(screen string) bool { return age.FindString(screen) != first })
	if styled := p.styled(); !regexp.MustCompile(`\{[^}]*faint[^}]*\}[^{\n]*violations`).MatchString(styled) {
		t.Errorf("the figures are not grey: %s", styled)
	}
	rename("elsewhere.jsonl", "windows.jsonl")
	p.loses("SOURCE LOST", "BLIND")

	rename("weights.json", "elsewhere.json")
	p.shows("TARGET NOT READ: ")
	rename("elsewhere.json", "weights.json")
	p.loses("TARGET NOT READ")
	p.keys("q")
	p.exits(0)
}

// TestNobodyDecidesAnyMoreIsSaid: whoever drove the release was killed.
func TestNobodyDecidesAnyMoreIsSaid(t *testing.T) {
	t.Parallel()
	s := newScene(t, heldConfig)
	run := s.start("run")
	eventually(t, "started", func() bool { return strings.Contains(run.said(), "step 1 of 3") })
	p := s.pane(120, 40)
	p.enter("canaryctl watch" + tellExit)
	p.shows("order-service · ", "set 1 %")
	if screen := p.screen(); strings.Contains(screen, "NOBODY") {
		t.Errorf("said while run decides: %s", screen)
	}
	if err := run.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-run.done
	begun := time.Now()
	p.shows("NOBODY HAS DECIDED FOR ", "(last: ", "is canaryctl run still running?")
	// three windows and 15 seconds
	if took := time.Since(begun); took < 10*time.Second {
		t.Errorf("said after %s already", took)
	}
	again := s.start("run")
	p.loses("NOBODY HAS DECIDED")
	if err := again.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if a := again.wait(t); a.code != 130 {
		t.Errorf("run: %s", a)
	}
	p.keys("q")
	p.exits(0)
}
