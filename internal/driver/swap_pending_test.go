package driver_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/source"
	"github.com/canaryctl/canaryctl/internal/state"
	"github.com/canaryctl/canaryctl/internal/target"
)

// pendingSwap is a swap that was begun and that the target does not make.
func pendingSwap(t *testing.T, answer error) (*world, *versioned) {
	t.Helper()
	w, v := swapWorld(t)
	v.onSwap = func(target.Versions) error { return answer }
	if err := w.swap(v); err == nil {
		t.Fatal("the swap was made")
	}
	return w, v
}

func refusal() error { return &target.RefusedError{Target: "fake", Err: errors.New("403")} }

// next makes another candidate of canary.yaml.
func (w *world) next(from, to string) {
	w.t.Helper()
	if !strings.Contains(w.text, from) {
		w.t.Fatalf("no %s", from)
	}
	w.text = strings.Replace(w.text, from, to, 1)
}

func TestTheBreakerRollsBackWhileASwapIsPending(t *testing.T) {
	for name, answer := range map[string]error{"unreachable": unreachable(errors.New("refused")), "refused": refusal(), "200 but unchanged": nil} {
		t.Run(name, func(t *testing.T) {
			w, v := pendingSwap(t, answer)
			w.tickWith(v)
			w.wantStatus(driver.Failed)
			w.wantWeight(100)
			if l := &w.res.Release.Ladder; !l.Weight.Same(weight(100)) || l.Stage != ladder.Completed || !strings.Contains(w.res.Err.Error(), "not exchanged yet") {
				t.Errorf("stands at %s, %s: %v", l.Stage, l.Weight, w.res.Err)
			}
			if peek, err := w.with(v, w.dir).Peek(t.Context()); err != nil || peek.Status != driver.Failed || !strings.Contains(peek.Outcome.Reason, "exchange") {
				t.Errorf("status says %+v, %v", peek, err)
			}
			ctx, stop := context.WithCancel(t.Context())
			looks := 0
			_, err := w.with(v, w.dir).Loop(ctx, func(*driver.Result, error) {
				if looks++; looks == 3 {
					stop()
				}
			})
			if looks != 3 || !errors.Is(err, context.Canceled) {
				t.Errorf("run left it alone after %d looks: %v", looks, err)
			}
			w.source.violations = 30000
			w.tickWith(v)
			w.wantWeight(0)
			w.wantStatus(driver.RolledBack)
			if rec := w.res.Release.Record; rec == nil || rec.By != "breaker" {
				t.Errorf("record %+v", rec)
			}
			swaps := v.swaps
			for range 3 {
				w.tickWith(v)
				w.wantStatus(driver.RolledBack)
			}
			if v.stable != "old" || v.swaps != swaps {
				t.Errorf("stable is %s, %d exchanges asked for", v.stable, v.swaps-swaps)
			}
			w.verify()
		})
	}
}

// TestATripUndoesASwapThatWasMade: windows of the canary's last minutes may
// come in only when it has become the stable.
func TestATripUndoesASwapThatWasMade(t *testing.T) {
	w, v := swapWorld(t)
	if err := w.swap(v); err != nil {
		t.Fatal(err)
	}
	w.source.ignores, w.source.violations = true, 30000
	old, _ := digests(t, w.text)
	w.tickWith(v)
	w.wantStatus(driver.RolledBack)
	w.wantWeight(0)
	if v.stable != "old" || v.canary != "new" {
		t.Errorf("stable %s, canary %s", v.stable, v.canary)
	}
	if rec := w.res.Release.Record; rec.By != "breaker" || rec.Stable != old || rec.ReadBack.IsZero() {
		t.Errorf("record %+v", rec)
	}
	w.verify()
}

func TestARollbackDuringAPendingSwapWritesZeroWhateverTheVersionsAre(t *testing.T) {
	for name, edit := range map[string]func(v *versioned){
		"untouched":                func(*versioned) {},
		"the canary was edited":    func(v *versioned) { v.canary = "new, edited" },
		"both are the stable":      func(v *versioned) { v.canary = v.stable },
		"the swap was made unseen": func(v *versioned) { v.stable, v.canary = v.canary, v.stable },
	} {
		t.Run(name, func(t *testing.T) {
			w, v := pendingSwap(t, unreachable(errors.New("refused")))
			v.onSwap = nil
			edit(v)
			res, err := w.with(v, w.dir).RollBack(t.Context(), "it is bad")
			if err != nil {
				t.Fatal(err)
			}
			w.res = res
			w.wantWeight(0)
			w.wantStatus(driver.RolledBack)
			if v.stable != "old" {
				t.Errorf("stable is %s", v.stable)
			}
			w.verify()
		})
	}
}

func TestAReturnThatIsImpossibleIsSaidAndGivenUp(t *testing.T) {
	for name, edit := range map[string]func(v *versioned){
		"the canary was edited":     func(v *versioned) { v.canary = "next" },
		"both are the same":         func(v *versioned) { v.canary = v.stable },
		"somebody moved the weight": func(v *versioned) { v.canary, v.weight = "next", weight(7) },
	} {
		t.Run(name, func(t *testing.T) {
			w, v := swapWorld(t)
			if err := w.swap(v); err != nil {
				t.Fatal(err)
			}
			edit(v)
			old, _ := digests(t, w.text)
			swaps := v.swaps
			var err error
			if w.res, err = w.with(v, w.dir).RollBack(t.Context(), "it is bad"); err != nil {
				t.Fatal(err)
			}
			w.wantStatus(driver.Incomplete)
			w.wantWeight(0)
			if last := v.writes[len(v.writes)-1]; !last.Same(weight(0)) || v.swaps != swaps {
				t.Errorf("the last write is %s, %d exchanges asked for", last, v.swaps-swaps)
			}
			if text := w.res.Err.Error(); !strings.Contains(text, "write version "+old[:12]+" into the document as stable by hand") {
				t.Errorf("said: %s", text)
			}
			if !slices.Contains(w.events(), "rollback_incomplete") || w.res.Release.Record.Stable != "" {
				t.Errorf("told %v; returns to %q", w.events(), w.res.Release.Record.Stable)
			}
			w.tickWith(v)
			w.wantStatus(driver.RolledBack) // locked, and nothing is tried again
			if _, err := w.with(v, w.dir).RollBack(t.Context(), "again"); !errors.Is(err, driver.ErrNothing) {
				t.Errorf("again: %v", err)
			}
			w.next(`prompt_version: "42"`, `prompt_version: "43"`)
			v.stable, v.canary = "old", "next"
			w.tickWith(v)
			w.wantStatus(driver.Done)
			w.wantWeight(1)
			w.verify()
		})
	}
}

// TestABreakersReturnThatIsImpossibleWaitsForAPerson: a probe would go to
// nobody knows which version.
func TestABreakersReturnThatIsImpossibleWaitsForAPerson(t *testing.T) {
	for name, say := range map[string]func(d *driver.Driver) error{
		"rollback": func(d *driver.Driver) error {
			res, err := d.RollBack(t.Context(), "give it up")
			if err == nil && res.Status != driver.Incomplete {
				err = errors.New("it was said to be complete")
			}
			return err
		},
		"restart": func(d *driver.Driver) error {
			_, err := d.Command(t.Context(), ladder.Command{Verb: ladder.DoRestart})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, v := swapWorld(t)
			if err := w.swap(v); err != nil {
				t.Fatal(err)
			}
			v.canary = "next"
			w.source.ignores, w.source.violations = true, 30000
			for range 30 { // far behind the cooldown
				w.tickWith(v)
				w.wantStatus(driver.Incomplete)
				w.wantWeight(0)
			}
			w.source.ignores, w.source.violations = false, 0
			w.next(`prompt_version: "42"`, `prompt_version: "43"`)
			w.tickWith(v)
			w.wantStatus(driver.Incomplete)
			if err := say(w.with(v, w.dir)); err != nil {
				t.Fatal(err)
			}
			w.tickWith(v)
			if w.wantWeight(1); w.res.Err != nil || w.res.Release.Exchange != nil {
				t.Errorf("%v, %+v", w.res.Err, w.res.Release.Exchange)
			}
			w.verify()
		})
	}
}

func TestARestartDropsAPendingSwap(t *testing.T) {
	w, v := pendingSwap(t, refusal())
	v.onSwap = nil
	if _, err := w.with(v, w.dir).Command(t.Context(), ladder.Command{Verb: ladder.DoRestart}); err != nil {
		t.Fatal(err)
	}
	w.tickWith(v)
	w.wantStatus(driver.Drifted) // 100 %, and no release has begun
	if next := driver.Next(&w.res.Outcome, "x"); !strings.Contains(next, "canaryctl rollback, or on_complete: swap") {
		t.Errorf("next: %s", next)
	}
	if v.stable != "old" || w.res.Release.Exchange != nil {
		t.Errorf("stable %s, %+v", v.stable, w.res.Release.Exchange)
	}
	for _, m := range w.told {
		if m.Event == "drift" && strings.Contains(m.Reason, "last read back") {
			t.Errorf("told: %s", m.Reason)
		}
	}
	v.weight = weight(0)
	w.tickWith(v)
	w.wantWeight(1)
	w.verify()
}

func TestTheNextCandidateFindsAPendingSwap(t *testing.T) {
	for _, test := range []struct {
		name  string
		then  func(v *versioned)
		want  driver.Status
		holds int64
	}{
		{"which is made now", func(v *versioned) { v.onSwap = nil }, driver.Done, 1},
		{"which is still refused", func(*versioned) {}, driver.Failed, 100},
		{"in a document that was edited for it", func(v *versioned) { v.canary = "next" }, driver.Drifted, 100},
		{"and the weight at 0", func(v *versioned) { v.canary, v.weight = "next", weight(0) }, driver.Done, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, v := pendingSwap(t, refusal())
			w.next(`prompt_version: "42"`, `prompt_version: "43"`)
			test.then(v)
			w.tickWith(v)
			w.wantStatus(test.want)
			w.wantWeight(test.holds)
			w.verify()
		})
	}
}

func TestAHolderThatWasOvertakenExchangesNothingMore(t *testing.T) {
	w, v := swapWorld(t)
	v.onSwap = func(target.Versions) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := openDir(t, w.dir).Preempt(ctx, state.Holder{PID: 99, Who: "person", Command: "rollback", Since: w.now}); err != nil {
			t.Error(err)
		}
		return unreachable(errors.New("timeout"))
	}
	err := w.swap(v)
	if _, lost := errors.AsType[*state.LostError](err); !lost || v.swaps != 1 {
		t.Errorf("%d exchanges asked for: %v", v.swaps, err)
	}
	w.wantWeight(100)
}

// TestTheJournalTellsOfASwapBeforeAndBehindIt: the ladder's weight is 0 only
// when the exchange was read back.
func TestTheJournalTellsOfASwapBeforeAndBehindIt(t *testing.T) {
	w, v := pendingSwap(t, refusal())
	v.onSwap = nil
	w.tickWith(v)
	w.wantStatus(driver.Done)
	var got []string
	for _, e := range w.written() {
		switch {
		case e.Kind == journal.Write && e.Wrote.Begun != nil:
			got = append(got, "begun")
		case e.Kind == journal.Write && e.Wrote.Exchange && !e.Wrote.ReadBack:
			got = append(got, "failed")
		case e.Kind == journal.Write && e.Wrote.Exchange:
			got = append(got, "made")
		case e.Kind == journal.Command && e.Command.Verb == ladder.DoSwap:
			got = append(got, "noted")
		}
	}
	if want := "begun failed made noted"; strings.Join(got, " ") != want {
		t.Errorf("%s, want %s", strings.Join(got, " "), want)
	}
	if l := &w.res.Release.Ladder; !l.Weight.IsZero() || l.Stage != ladder.Completed {
		t.Errorf("%s at %s", l.Stage, l.Weight)
	}
	w.verify()
}

// between is a source in front of which something happens once.
type between struct {
	driver.Source
	happens func()
}

func (b *between) Read(ctx context.Context, from, now time.Time) (batch source.Batch, err error) {
	if f := b.happens; f != nil {
		b.happens = nil
		f()
	}
	return b.Source.Read(ctx, from, now)
}

func TestOfTwoThatExpectTheSameStepOneTakesTheNext(t *testing.T) {
	w := newWorld(t)
	w.text = strings.ReplaceAll(w.text, "min_hold_min: 10", "min_hold_min: 0")
	w.source.perMin = 60000
	w.promote()
	w.now = w.now.Add(5 * time.Minute)
	expects := func(s driver.Source) *driver.Driver {
		cfg, _ := config.Parse("canary.yaml", []byte(w.text))
		o := w.options(cfg, w.target, openDir(t, w.dir))
		o.Source = s
		d := driver.New(o)
		d.Expect(1)
		return d
	}
	first := expects(w.source)
	second := expects(&between{Source: w.source, happens: func() {
		if res, err := first.Promote(t.Context()); err != nil || res.Outcome.Move != release.Advance {
			t.Errorf("%+v, %v", res, err)
		}
		w.now = w.now.Add(5 * time.Minute)
	}})
	_, err := second.Promote(t.Context())
	if at, other := errors.AsType[*driver.StepError](err); !other || at.At != 2 || at.Want != 1 {
		t.Errorf("the second: %v", err)
	}
	w.wantWeight(10)
	lines := len(w.written())
	if _, err := expects(w.source).Peek(t.Context()); err == nil {
		t.Error("a dry run does not mind")
	}
	if _, err := expects(w.source).Promote(t.Context()); err == nil || len(w.written()) != lines {
		t.Errorf("%v; %d lines more", err, len(w.written())-lines)
	}
}

func TestTheExpectedStepIsTheOneThatAnotherMachineLeftInTheTarget(t *testing.T) {
	w := keeping(t)
	w.machine().tick(nil)
	b := w.machine()
	writes := len(w.target.writes)
	d := b.at(nil)
	d.Expect(0)
	for _, look := range []func() error{
		func() error { _, err := d.Promote(t.Context()); return err },
		func() error { return d.Expected(t.Context()) },
	} {
		if at, other := errors.AsType[*driver.StepError](look()); !other || at.At != 1 {
			t.Errorf("%+v", at)
		}
	}
	if v, err := driver.Verify(t.Context(), openDir(t, b.dir), "order-service"); err != nil || v.Lines != 0 || len(w.target.writes) != writes {
		t.Errorf("%+v, %v, %d writes more", v, err, len(w.target.writes)-writes)
	}
	d.Expect(1)
	if _, err := d.Promote(t.Context()); err != nil {
		t.Error(err)
	}
}
