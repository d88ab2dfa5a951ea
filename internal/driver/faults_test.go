package driver_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/target"
)

var errSource = errors.New("connection refused")

func unreachable(err error) error { return &target.UnreachableError{Target: "fake", Err: err} }

// TestATargetThatGoesWrong: never a wrong state, never a success that was not
// read back.
func TestATargetThatGoesWrong(t *testing.T) {
	for _, test := range []struct {
		name   string
		fault  func(f *fakeTarget)
		status driver.Status // of the tick in which it goes wrong
		held   int64         // by the target, after that tick
		after  int64         // and a minute after the fault is over
	}{
		{"500 after committing", func(f *fakeTarget) {
			f.on = func(c target.Change) error { f.set(c); return unreachable(errors.New("500")) }
		}, driver.Done, 10, 10},
		{"500 without committing", func(f *fakeTarget) {
			f.on = func(target.Change) error { return unreachable(errors.New("500")) }
		}, driver.Failed, 1, 10},
		{"429 twice, then it takes it", func(f *fakeTarget) {
			n := 0
			f.on = func(c target.Change) error {
				if n++; n < 3 {
					return &target.UnreachableError{Target: "fake", Err: errors.New("429"), After: 2 * time.Second}
				}
				f.set(c)
				return nil
			}
		}, driver.Done, 10, 10},
		{"200 but unchanged", func(f *fakeTarget) {
			f.on = func(target.Change) error { return nil }
		}, driver.Failed, 1, 10},
		{"takes another weight than asked", func(f *fakeTarget) {
			f.on = func(c target.Change) error { c.To = weight(50); f.set(c); return nil }
		}, driver.Conflict, 50, 50},
		{"refused", func(f *fakeTarget) {
			f.on = func(target.Change) error { return &target.RefusedError{Target: "fake", Err: errors.New("403")} }
		}, driver.Failed, 1, 10},
		{"too fine", func(f *fakeTarget) {
			f.on = func(c target.Change) error {
				return &target.FineError{Target: "fake", Weight: c.To, Finest: weight(20)}
			}
		}, driver.Failed, 1, 10},
		{"a lost race that changed nothing of ours", func(f *fakeTarget) {
			n := 0
			f.on = func(c target.Change) error {
				if n++; n == 1 {
					f.rev++
					return &target.ConflictError{Target: "fake"}
				}
				f.set(c)
				return nil
			}
		}, driver.Done, 10, 10},
		{"a lost race against another weight", func(f *fakeTarget) {
			f.on = func(target.Change) error {
				f.weight, f.rev = weight(7), f.rev+1
				return &target.ConflictError{Target: "fake"}
			}
		}, driver.Conflict, 7, 7},
		{"stale readings for a while", func(f *fakeTarget) {
			f.readBack = 10 * time.Second
			n := 0
			f.on = func(c target.Change) error { f.set(c); return nil }
			f.shown = func() (release.Weight, bool) { n++; return weight(1), f.weight.Slots == 10 && n < 8 }
		}, driver.Done, 10, 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.promote()
			w.pass(9)
			w.wantWeight(1)
			test.fault(w.target)
			w.pass(1)
			w.wantStatus(test.status)
			w.wantWeight(test.held)
			if w.res.Status != driver.Done && w.res.Err == nil {
				t.Error("nothing says what went wrong")
			}
			if w.res.Status == driver.Done && !w.res.Release.Ladder.Weight.Same(weight(10)) {
				t.Errorf("done, and %s was read back", w.res.Release.Ladder.Weight)
			}
			w.target.on, w.target.shown = nil, nil
			w.pass(2)
			w.wantWeight(test.after)
			if test.held == test.after && test.status == driver.Conflict {
				w.wantStatus(driver.Drifted)
			}
			w.verify()
		})
	}
}

func TestARollbackIsTriedUntilItIsReadBack(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.pass(3)
	w.source.violations = 4
	w.target.on = func(target.Change) error { return unreachable(errors.New("connection refused")) }
	w.pass(1)
	w.wantStatus(driver.Incomplete)
	w.wantWeight(1)
	if got := strings.Join(w.events(), " "); got != "started rollback_incomplete" {
		t.Errorf("told %q", got)
	}
	if len(w.target.writes) < 10 {
		t.Errorf("%d writes in %s: it gave up early", len(w.target.writes), 90*time.Second)
	}
	w.pass(1)
	w.wantStatus(driver.Incomplete)
	w.target.on = nil
	w.pass(1)
	w.wantWeight(0)
	w.wantStatus(driver.RolledBack)
	if got := strings.Join(w.events(), " "); got != "started rollback_incomplete rolled_back" {
		t.Errorf("told %q", got)
	}
	w.verify()
}

func TestARollbackNeedsNoReading(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.pass(3)
	w.source.violations = 4
	w.target.readErr = unreachable(errors.New("read time-out"))
	w.pass(1)
	w.wantStatus(driver.Incomplete) // written, and not read back: not a success
	w.wantWeight(0)
	w.target.readErr = nil
	w.pass(1)
	w.wantStatus(driver.RolledBack)
	w.verify()
}

func TestASourceThatCannotBeReadHoldsAndCountsAgainstNobody(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.pass(3)
	w.source.err = errSource
	w.pass(20)
	w.wantStatus(driver.SourceLost)
	w.wantWeight(1)
	w.source.err = nil
	w.pass(1)
	if got := strings.Join(w.events(), " "); got != "started source_lost source_back advanced" { // the windows of the blind time have come after all
		t.Errorf("told %q", got)
	}
	w.verify()
}

func TestDriftStopsEverythingButRollback(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.target.weight = weight(7) // no step of the ladder
	w.pass(30)
	w.wantStatus(driver.Drifted)
	w.wantWeight(7)
	if got := strings.Join(w.events(), " "); got != "started drift" {
		t.Errorf("told %q", got)
	}
	if r := w.told[1].Reason; !strings.Contains(r, "7 %") || !strings.Contains(r, "someone") {
		t.Errorf("reason %q names neither weight nor who", r)
	}
	w.verify()
}

func TestMessagesThatDoNotGetThroughStopNothingAndComeLater(t *testing.T) {
	w := newWorld(t)
	w.deaf = true
	w.promote()
	w.pass(3)
	w.source.violations = 4
	w.pass(1)
	w.wantWeight(0)
	w.deaf = false
	w.pass(1)
	if got := strings.Join(w.events(), " "); got != "started rolled_back" {
		t.Errorf("told %q", got)
	}
	w.verify()
}

// TestAServerThatRemembersItsAnswersDoesNotStopARollback: the first write is
// taken and undone by somebody else at once; a second one under the same key
// would only be answered again.
func TestAServerThatRemembersItsAnswersDoesNotStopARollback(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.pass(3)
	w.source.violations = 4
	answered := map[string]bool{}
	w.target.on = func(c target.Change) error {
		if answered[c.Key] {
			return nil
		}
		if answered[c.Key] = true; len(answered) > 1 {
			w.target.set(c)
		}
		return nil
	}
	w.pass(1)
	w.wantWeight(0)
	w.wantStatus(driver.RolledBack)
}
