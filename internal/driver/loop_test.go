package driver_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/state"
	"github.com/canaryctl/canaryctl/internal/target"
)

func openDir(t *testing.T, path string) *state.Dir {
	t.Helper()
	d, err := state.Open(path, "order-service")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// loop is `canaryctl run` with hooks into its ticks and waits.
type loop struct {
	*world
	ticks []string    // of each tick: decision or error
	at    []time.Time // when each tick began
	waits []time.Duration
	// before is called before the wait behind tick n, from 0.
	before func(n int)
	most   int // ticks; then the context ends
}

func (w *world) loop(ctx context.Context) (*loop, func() (*driver.Result, error)) {
	l := &loop{world: w, most: 500}
	return l, func() (*driver.Result, error) {
		w.t.Helper()
		cfg, _ := config.Parse("canary.yaml", []byte(w.text))
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		o := w.options(cfg, w.target, openDir(w.t, w.dir))
		o.Wait = func(ctx context.Context, d time.Duration) error {
			if n := len(l.ticks); n > len(l.waits) { // the first behind a tick; others are within the next
				l.waits = append(l.waits, d)
				if l.before != nil {
					l.before(len(l.ticks) - 1)
				}
			}
			return w.wait(ctx, d)
		}
		return driver.New(o).Loop(ctx, func(res *driver.Result, err error) {
			l.at = append(l.at, w.now)
			text := ""
			if err != nil {
				text = err.Error()
			} else {
				text = res.Outcome.Move.String()
			}
			if l.ticks = append(l.ticks, text); len(l.ticks) >= l.most {
				cancel()
			}
		})
	}
}

func TestALoopEndsAtComplete(t *testing.T) {
	w := newWorld(t)
	w.quick()
	l, run := w.loop(t.Context())
	res, err := run()
	if err != nil || res.Outcome.Move != release.Complete || res.Status != driver.Done {
		t.Fatalf("%+v, %v", res, err)
	}
	w.wantWeight(100)
	if l.ticks[len(l.ticks)-1] != "complete" {
		t.Errorf("ticks %v", l.ticks)
	}
}

func TestALoopGoesOnThroughRecoveryAndEndsAtALock(t *testing.T) {
	w := newWorld(t)
	l, run := w.loop(t.Context())
	probed := false
	l.before = func(n int) {
		w.source.violations = 0
		switch l.ticks[n] {
		case "probe":
			probed = true
			w.source.violations = 4
		}
		if n == 3 || probed {
			w.source.violations = 4
		}
	}
	res, err := run()
	if err != nil || res.Status != driver.RolledBack || !res.Release.Ladder.Locked() || !probed {
		t.Fatalf("%+v, %v", res, err)
	}
	w.wantWeight(0)
	if got := l.ticks[len(l.ticks)-1]; got != "lock" {
		t.Errorf("ends with %s", got)
	}
	w.verify()
}

func TestALoopEndsWithItsContextBehindTheWriteUnderWay(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	l, run := w.loop(ctx)
	w.target.on = func(c target.Change) error {
		cancel() // a signal, in the middle of the write
		w.target.set(c)
		return nil
	}
	res, err := run()
	if !errors.Is(err, context.Canceled) || res == nil || !res.Release.Ladder.Weight.Same(weight(1)) || res.Release.Ladder.Pending.Move != release.Hold {
		t.Fatalf("%+v, %v", res, err)
	}
	if len(l.ticks) != 0 || len(w.target.writes) != 1 {
		t.Errorf("ticks %v, writes %v", l.ticks, w.target.writes)
	}
	w.wantWeight(1)
	w.verify()
}

func TestALoopWaitsUntilTheNextWindowHasSettled(t *testing.T) {
	for name, test := range map[string]struct {
		begins time.Duration // after the minute
		settle time.Duration
		want   []string // when the ticks begin
	}{
		"at once, in the middle":       {25 * time.Second, 0, []string{"10:00:25", "10:01:00", "10:02:00", "10:03:00"}},
		"with a settle":                {25 * time.Second, 10 * time.Second, []string{"10:00:25", "10:01:10", "10:02:10", "10:03:10"}},
		"begun before it has settled":  {5 * time.Second, 10 * time.Second, []string{"10:00:05", "10:00:10", "10:01:10", "10:02:10"}},
		"a settle of more than a span": {0, 90 * time.Second, []string{"10:00:00", "10:00:30", "10:01:30", "10:02:30"}},
		"exactly at the instant":       {0, 0, []string{"10:00:00", "10:01:00", "10:02:00", "10:03:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.now = w.now.Add(test.begins)
			w.source.settle = test.settle
			l, run := w.loop(t.Context())
			l.most = len(test.want)
			if _, err := run(); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			var got []string
			for _, at := range l.at {
				got = append(got, at.Format(time.TimeOnly))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("ticks at %v, want %v", got, test.want)
			}
		})
	}
}

func TestALoopTriesSoonerWhatIsNotDone(t *testing.T) {
	w := newWorld(t)
	l, run := w.loop(t.Context())
	l.most = 8
	l.before = func(n int) {
		if n == 2 {
			w.source.violations = 4
			w.target.on = func(target.Change) error { return unreachable(errors.New("down")) }
		}
		if n == 4 {
			w.target.on = nil
		}
	}
	if _, err := run(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if len(l.waits) < 6 || l.waits[3] != 5*time.Second || l.waits[2] != time.Minute || l.waits[5] < 10*time.Second {
		t.Errorf("waits %v behind ticks %v", l.waits, l.ticks)
	}
	w.wantWeight(0)
}

// TestALoopGoesOnOverWhatPasses: a busy lock, a source and a target that fail, a
// disk that takes nothing for a while.
func TestALoopGoesOnOverWhatPasses(t *testing.T) {
	for name, test := range map[string]struct {
		begin, end func(w *world)
		says       string
	}{
		"a source that fails": {func(w *world) { w.source.err = errSource }, func(w *world) { w.source.err = nil }, ""},
		"a target that cannot be read": {
			func(w *world) { w.target.readErr = unreachable(errors.New("down")) }, func(w *world) { w.target.readErr = nil }, "",
		},
		"a disk that gives no state": {
			func(w *world) { w.replaced("state.json", "aside", true) }, func(w *world) { w.replaced("aside", "state.json", false) }, "read the release's state",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.quick()
			l, run := w.loop(t.Context())
			l.before = func(n int) {
				switch n {
				case 1:
					test.begin(w)
				case 4:
					test.end(w)
				}
			}
			res, err := run()
			if err != nil || res.Outcome.Move != release.Complete {
				t.Fatalf("%+v, %v (ticks %v)", res, err, l.ticks)
			}
			if !strings.Contains(strings.Join(l.ticks, " | "), test.says) {
				t.Errorf("ticks %v", l.ticks)
			}
			w.verify()
		})
	}
}

// replaced puts a directory where a file is, or takes it away again.
func (w *world) replaced(from, to string, block bool) {
	w.t.Helper()
	at := w.dir + "/order-service/"
	if !block {
		if err := os.Remove(at + to); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := os.Rename(at+from, at+to); err != nil {
		w.t.Fatal(err)
	}
	if block {
		if err := os.Mkdir(at+from, 0o700); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestALoopThatCannotBeginOrTrustItsJournalEnds(t *testing.T) {
	w := newWorld(t)
	w.promote()
	path := w.dir + "/order-service/journal.jsonl"
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	w.replaced("journal.jsonl", "aside", true)
	l, run := w.loop(t.Context())
	if _, err := run(); err == nil || len(l.ticks) != 1 {
		t.Errorf("a first tick that fails: %v after %v", err, l.ticks)
	}
	w.replaced("aside", "journal.jsonl", false)
	l, run = w.loop(t.Context())
	l.before = func(n int) {
		if n == 3 {
			if err := os.WriteFile(path, whole[:len(whole)/2], 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := run(); err == nil || len(l.ticks) != 5 {
		t.Errorf("a journal that was cut: %v after %v", err, l.ticks)
	}
}

// TestALoopThatIsOvertakenLooksAgainAtOnce and ends as locked: a person has
// rolled back from another terminal, in the middle of its tick.
func TestALoopThatIsOvertakenLooksAgainAtOnce(t *testing.T) {
	w := newWorld(t)
	l, run := w.loop(t.Context())
	overtaken := false
	w.target.on = func(c target.Change) error {
		if c.Move != "advance" || overtaken {
			w.target.set(c)
			return nil
		}
		overtaken = true
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := openDir(t, w.dir).Preempt(ctx, state.Holder{PID: 99, Who: "person", Command: "rollback", Since: w.now}); err != nil {
			t.Fatal(err)
		}
		w.target.rev++
		return &target.ConflictError{Target: "fake"}
	}
	waits := 0
	l.before = func(int) {
		if overtaken && waits == 0 {
			waits = len(l.waits)
		}
	}
	l.most = 14
	if _, err := run(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if !overtaken {
		t.Fatal("nobody overtook it")
	}
	i := slices.IndexFunc(l.ticks, func(s string) bool { return strings.Contains(s, "taken over") })
	if i < 0 || i+1 >= len(l.at) || !l.at[i+1].Equal(l.at[i]) {
		t.Errorf("ticks %v at %v", l.ticks, l.at)
	}
}

func TestALoopEndsAsLockedBehindARollbackOfAnotherProcess(t *testing.T) {
	w := newWorld(t)
	l, run := w.loop(t.Context())
	l.before = func(n int) {
		if n == 4 {
			if _, err := w.driver().RollBack(t.Context(), "customers complain"); err != nil {
				t.Fatal(err)
			}
		}
	}
	res, err := run()
	if err != nil || res.Status != driver.RolledBack || res.Release.Ladder.Stage != ladder.RolledBack || len(l.ticks) != 6 {
		t.Fatalf("%+v, %v after %v", res, err, l.ticks)
	}
	w.wantWeight(0)
	w.verify()
}

func TestALoopGoesOnOverABusyLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.quick()
		l, run := w.loop(t.Context())
		var lease *state.Lease
		l.before = func(n int) {
			var err error
			switch n {
			case 1:
				lease, err = openDir(t, w.dir).Acquire(t.Context(), state.Holder{PID: 99, Who: "someone@else", Command: "promote", Since: w.now})
			case 2:
				err = lease.Release()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		l.most = 6
		if _, err := run(); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if !strings.Contains(l.ticks[2], "someone@else") || strings.Contains(l.ticks[3], "holds this release") {
			t.Errorf("ticks %v", l.ticks)
		}
		w.verify()
	})
}
