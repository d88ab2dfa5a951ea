package driver_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/target"
)

// vanish lets the next write fail without an answer, and all readings after it;
// the write arrives or not.
func (w *world) vanish(arrives bool) {
	w.target.on = func(c target.Change) error {
		if arrives {
			w.target.set(c)
		}
		w.target.readErr = &target.UnreachableError{Target: "fake", Err: errors.New("connection refused")}
		return w.target.readErr
	}
}

func (w *world) answers() { w.target.on, w.target.readErr = nil, nil }

// asked is a world in which the step to 10 % was asked for, and nobody knows
// what came of it.
func asked(t *testing.T, arrives bool) *world {
	w := newWorld(t)
	w.promote()
	w.vanish(arrives)
	w.until("asked for 10 %", func(r *driver.Result) bool { return r.Outcome.Move == release.Advance })
	return w
}

func TestAStepThatWasAskedForIsNotTakenWhileItIsForbidden(t *testing.T) {
	for name, tc := range map[string]struct {
		forbid func(w *world)
		why    ladder.Why
		allow  func(w *world)
	}{
		"paused": {
			func(w *world) { w.command(ladder.Command{Verb: ladder.DoPause}) }, ladder.WhyPaused,
			func(w *world) { w.command(ladder.Command{Verb: ladder.DoResume}) },
		},
		"another configuration": {
			func(w *world) { w.text = strings.ReplaceAll(w.text, "min_hold_min: 10", "min_hold_min: 11") }, ladder.WhyConfigChanged,
			func(w *world) { w.command(ladder.Command{Verb: ladder.DoAcceptConfig}) },
		},
	} {
		t.Run(name+", not arrived", func(t *testing.T) {
			w := asked(t, false)
			tc.forbid(w)
			w.answers()
			for range 30 {
				w.pass(1)
				w.wantWeight(1)
			}
			if w.res.Outcome.Why != tc.why {
				t.Errorf("held for %s", w.res.Outcome.Why)
			}
			tc.allow(w)
			w.pass(1)
			w.wantWeight(10)
			w.verify()
		})
		t.Run(name+", arrived", func(t *testing.T) {
			w := asked(t, true)
			tc.forbid(w)
			w.answers()
			w.pass(30)
			if l := &w.res.Release.Ladder; l.Step != 1 || l.Pending.Move != release.Hold || w.res.Outcome.Why != tc.why {
				t.Errorf("step %d, %s pending, held for %s", l.Step+1, l.Pending.Move, w.res.Outcome.Why)
			}
			w.wantWeight(10)
			w.verify()
		})
	}
}

// TestAnAcceptedConfigurationForgetsAStepThatItHasNot: 10 % is enough now, and
// the step to 100 % was asked for before.
func TestAnAcceptedConfigurationForgetsAStepThatItHasNot(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.until("at 10 %", advanced)
	w.vanish(false)
	w.until("asked for 100 %", func(r *driver.Result) bool { return r.Wrote != nil && r.Wrote.To.Same(weight(100)) })
	w.answers()
	w.text = strings.Replace(w.text, "    - { pct: 1.00, min_hold_min: 10 }\n", "", 1)
	w.text = strings.Replace(w.text, "  steps:\n", "  max_pct: { pct: 0.10, because: \"enough\" }\n  steps:\n", 1)
	w.command(ladder.Command{Verb: ladder.DoAcceptConfig})
	if _, err := w.driver().Peek(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 30 {
		w.pass(1)
		w.wantWeight(10)
	}
	if w.res.Release.Ladder.Stage != ladder.Completed {
		t.Errorf("%s: %s", w.res.Release.Ladder.Stage, w.res.Outcome.Reason)
	}
	w.verify()
}

// TestAClockThatWasAheadForATickBlindsNothing: a day ahead and right again; a
// bad canary is rolled back within minutes.
func TestAClockThatWasAheadForATickBlindsNothing(t *testing.T) {
	for name, ahead := range map[string]func(w *world){
		"no windows of tomorrow": func(w *world) { w.source.silent = true; w.promote(); w.source.silent = false },
		"windows of a whole day": func(w *world) { w.promote() },
		"the release began then": func(w *world) {
			w.rollBack("again")
			w.command(ladder.Command{Verb: ladder.DoClearLock, Reason: "mended"})
			w.promote()
			w.wantWeight(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.promote()
			w.pass(3)
			w.now = w.now.Add(24 * time.Hour)
			ahead(w)
			w.now = w.now.Add(-24 * time.Hour)
			w.pass(2)
			w.source.violations = 4
			for range 4 {
				w.pass(1)
			}
			w.wantWeight(0)
			w.source.violations = 0
			w.pass(8)
			if p := w.res.Outcome.Phase; p == release.Open {
				t.Errorf("the cooldown of 6 minutes is not over: %s", w.res.Outcome.Reason)
			}
			w.verify()
		})
	}
}

func TestACooldownThatBeganTomorrowEndsInTime(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.pass(3)
	w.now = w.now.Add(24 * time.Hour)
	w.source.violations = 4
	w.pass(2)
	w.wantWeight(0)
	w.source.violations = 0
	w.now = w.now.Add(-24 * time.Hour)
	w.pass(1)
	if left := w.res.Outcome.LeftS; left == nil || *left > 360 {
		t.Errorf("%s", w.res.Outcome.Reason)
	}
	w.until("probing", func(r *driver.Result) bool { return r.Outcome.Phase == release.HalfOpen })
	if w.now.After(t0.Add(15 * time.Minute)) {
		t.Errorf("probing only at %s", w.now)
	}
	w.verify()
}

// TestACommandOfAnotherMachineIsNeverLost, however often this one has tried to
// put its own state there.
func TestACommandOfAnotherMachineIsNeverLost(t *testing.T) {
	for name, tc := range map[string]struct {
		text    string
		command func(t *testing.T, b *machine)
		holds   func(l *ladder.State) bool
	}{
		"pause": {"", func(t *testing.T, b *machine) {
			if _, err := b.at(nil).Command(t.Context(), ladder.Command{Verb: ladder.DoPause, Reason: "b says so"}); err != nil {
				t.Fatal(err)
			}
		}, func(l *ladder.State) bool { return l.Paused && l.Step == 0 }},
		"rollback": {"", func(t *testing.T, b *machine) {
			if _, err := b.at(nil).RollBack(t.Context(), "b says so"); err != nil {
				t.Fatal(err)
			}
		}, func(l *ladder.State) bool { return l.Stage == ladder.RolledBack && l.Weight.IsZero() }},
		"approve": {"min_hold_min: 10, gate: [time, metric, approval] }", func(t *testing.T, b *machine) {
			if _, err := b.at(nil).Approve(t.Context(), driver.Shown{}, "b says so"); err != nil {
				t.Fatal(err)
			}
		}, func(l *ladder.State) bool { return l.Step > 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			w := keeping(t)
			if tc.text != "" {
				w.text = strings.Replace(w.text, "min_hold_min: 10 }", tc.text, 1)
			}
			a, b := w.machine(), w.machine()
			a.tick(nil)
			b.tick(nil)
			n := len(w.target.writes)
			for range 60 {
				w.vanish(false)
				w.target.readErr = nil
				a.tick(nil)
				if len(w.target.writes) > n+4 {
					break
				}
			}
			if a.res.Release.Tried <= a.res.Release.Published {
				t.Fatalf("nothing was tried in vain: %d, %d", a.res.Release.Tried, a.res.Release.Published)
			}
			w.answers()
			tc.command(t, b)
			for range 12 {
				a.tick(nil)
			}
			if l := &a.res.Release.Ladder; !tc.holds(l) {
				t.Errorf("lost: %s, paused %v (%s)", standing(l), l.Paused, a.res.Outcome.Reason)
			}
			b.tick(nil)
			if got, want := standing(&b.res.Release.Ladder), standing(&a.res.Release.Ladder); got[:20] != want[:20] {
				t.Errorf("one stands at\n%s, the other at\n%s", got, want)
			}
			a.verify()
			b.verify()
		})
	}
}

// TestAStateThatArrivedUnseenIsNotTakenOverFromOneself: what this directory has
// decided since stands.
func TestAStateThatArrivedUnseenIsNotTakenOverFromOneself(t *testing.T) {
	w := keeping(t)
	a := w.machine()
	a.tick(nil)
	w.vanish(true)
	a.until(nil, "asked for 10 %", func(r *driver.Result) bool { return len(w.target.writes) > 2 })
	w.source.violations = 4
	for range 3 { // a trip while the target cannot be read
		a.tick(nil)
	}
	if !a.res.Release.Ladder.Breaker.Since.After(t0) {
		t.Fatal("not tripped")
	}
	w.answers()
	a.tick(nil)
	w.wantWeight(0)
	a.verify()
}

func TestAMendedGatewayClearsWithinAnHour(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.source.ignores = true
	w.pass(120)
	if w.res.Outcome.Why != ladder.WhyMismatch {
		t.Fatal(w.res.Outcome.Reason)
	}
	w.source.ignores = false
	begun := w.now
	w.until("on", func(r *driver.Result) bool { return r.Outcome.Why != ladder.WhyMismatch })
	if took := w.now.Sub(begun); took < 30*time.Minute || took > time.Hour {
		t.Errorf("cleared after %s", took)
	}
	w.verify()
}

func TestProbesWithoutTrafficAreOverdue(t *testing.T) {
	w := tripped(t)
	w.pass(1)
	w.source.violations = 0
	w.until("probing", func(r *driver.Result) bool { return r.Outcome.Phase == release.HalfOpen })
	w.source.silent = true
	for range 49 {
		if w.pass(1); w.res.Outcome.Overdue {
			t.Fatalf("overdue at once: %s", w.res.Outcome.Reason)
		}
	}
	w.pass(20)
	if !w.res.Outcome.Overdue || w.res.Status != driver.Holding || !strings.Contains(w.res.Outcome.Reason, "waiting for traffic") {
		t.Errorf("status %d: %s", w.res.Status, w.res.Outcome.Reason)
	}
	if n := strings.Count(strings.Join(w.events(), " "), "overdue"); n != 1 {
		t.Errorf("told %v", w.events())
	}
	w.wantWeight(1)
	w.source.silent = false
	w.until("closed", func(r *driver.Result) bool { return r.Outcome.Phase == release.Closed })
	w.verify()
}

// size is that of the journal.
func (w *world) size() int64 {
	w.t.Helper()
	info, err := os.Stat(filepath.Join(w.dir, "order-service", "journal.jsonl"))
	if err != nil {
		w.t.Fatal(err)
	}
	return info.Size()
}

func TestALabelLagDoesNotRepeatTheWindowsInTheJournal(t *testing.T) {
	for name, frozen := range map[string]bool{"climbing": false, "rolled back and cleared, and paused": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.text = strings.Replace(w.text, "slow_layer: {", "slow_layer: { label_lag_min: 1440,", 1)
			w.promote()
			w.pass(30)
			if frozen {
				w.command(ladder.Command{Verb: ladder.DoPause})
				w.rollBack("bad")
				w.command(ladder.Command{Verb: ladder.DoClearLock, Reason: "mended"})
			}
			w.now = w.now.Add(1500 * time.Minute)
			w.pass(2)
			before := w.size()
			w.pass(5)
			if a := (w.size() - before) / 5; a > 5000 {
				t.Errorf("%d bytes a tick", a)
			}
			w.verify()
		})
	}
}

// TestLabelsThatComeInLateAreShownOnce with a label lag, and count.
func TestLabelsThatComeInLateAreShownOnce(t *testing.T) {
	w := newWorld(t)
	w.text = strings.Replace(w.text, "slow_layer: {", "slow_layer: { label_lag_min: 120,", 1)
	w.promote()
	w.pass(20)
	w.source.solved = 0.5 // of all windows that are still read
	w.pass(1)
	lines := w.written()
	if n := len(decidedBy(lines).Canary); n < 19 {
		t.Errorf("%d windows shown", n)
	}
	w.pass(1)
	if n := len(decidedBy(w.written()).Canary); n > 1 {
		t.Errorf("%d windows shown again", n)
	}
	w.verify()
}

// decidedBy is the newest decision.
func decidedBy(lines []journal.Entry) *journal.Decided {
	for i := len(lines) - 1; ; i-- {
		if lines[i].Decided != nil {
			return lines[i].Decided
		}
	}
}

// TestALongOutageIsShownInParts: no line has more than 2,000 windows of an arm,
// all of them count, and what is at the end of them keeps the step from being
// taken.
func TestALongOutageIsShownInParts(t *testing.T) {
	for name, bad := range map[string]bool{"healthy": false, "bad at its end": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.promote()
			w.pass(2)
			w.now = w.now.Add(7000 * time.Minute)
			if bad {
				end := w.now.Add(-10 * time.Minute)
				w.source.change = func(x *release.Window) {
					if x.T.After(end) {
						x.Violations = min(x.Total, 4)
					}
				}
			}
			n, writes := len(w.written()), len(w.target.writes)
			w.pass(1)
			shown, parts := 0, 0
			for _, e := range w.written()[n:] {
				if e.Decided == nil {
					continue
				}
				if len(e.Decided.Canary) > 2000 || len(e.Decided.Stable) > 2010 {
					t.Errorf("a line with %d and %d windows", len(e.Decided.Canary), len(e.Decided.Stable))
				}
				if shown += len(e.Decided.Canary); e.Decided.More {
					parts++
				}
			}
			if shown < 7000 || parts != 3 {
				t.Errorf("%d windows shown, %d parts before the last", shown, parts)
			}
			for _, x := range w.target.writes[writes:] {
				if bad && !x.IsZero() {
					t.Errorf("%s was written before the rollback", x)
				}
			}
			if bad {
				w.wantWeight(0)
			} else {
				w.wantWeight(10)
			}
			w.verify()
		})
	}
}

// TestAStateThatIsKeptTellsItsNumber: two writes of one directory never carry
// the same.
func TestAStateThatIsKeptTellsItsNumber(t *testing.T) {
	w := keeping(t)
	a := w.machine()
	seen := map[string]string{}
	w.target.on = func(c target.Change) error {
		var in driver.Release
		if err := json.Unmarshal(c.State, &in); err != nil {
			t.Fatal(err)
		}
		key := fmt.Sprint(in.Published)
		if was, ok := seen[key]; ok && was != string(c.State) {
			t.Errorf("two states with the number %s", key)
		}
		seen[key] = string(c.State)
		if len(seen)%2 == 0 {
			w.target.set(c)
		}
		return &target.UnreachableError{Target: "fake", Err: errors.New("timeout")}
	}
	for range 40 {
		a.tick(nil)
	}
	if len(seen) < 4 {
		t.Errorf("%d states", len(seen))
	}
}
