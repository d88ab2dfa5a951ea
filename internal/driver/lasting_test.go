package driver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/notify"
	"github.com/canaryctl/canaryctl/internal/state"
	"github.com/canaryctl/canaryctl/internal/target"
)

func away() error { return unreachable(errors.New("connection refused")) }

// records are those of the journal, in order.
func (w *world) records() (out []*journal.Rollback) {
	w.t.Helper()
	for _, e := range w.written() {
		if e.Kind == journal.Record {
			out = append(out, e.Record)
		}
	}
	return out
}

// times is how often an event was told.
func (w *world) times(event string) int {
	n := 0
	for _, e := range w.events() {
		if e == event {
			n++
		}
	}
	return n
}

func (w *world) stateFile() string { return filepath.Join(w.dir, "order-service", "state.json") }

func (w *world) verifyError() error {
	w.t.Helper()
	_, err := driver.Verify(w.t.Context(), openDir(w.t, w.dir), "order-service")
	return err
}

// TestAPersonWhoFinishesATripKeepsItsRecord: what made it necessary, and who
// wanted it finished.
func TestAPersonWhoFinishesATripKeepsItsRecord(t *testing.T) {
	w := tripped(t)
	w.target.on = func(target.Change) error { return away() }
	w.pass(1)
	w.wantStatus(driver.Incomplete)
	w.target.on = nil
	w.rollBack("as the message says")
	w.pass(3)
	all := w.records()
	if len(all) == 0 {
		t.Fatal("no record")
	}
	for _, r := range all {
		if r.By != "breaker" || r.Finding == nil || r.Share.IsZero() || r.Who == "" || r.Why != "as the message says" || !r.Locked || r.Key != all[0].Key {
			t.Errorf("record %+v", r)
		}
	}
	if !all[len(all)-1].Final {
		t.Error("never final")
	}
	w.verify()
}

// TestARecordIsWrittenDownBeforeAnotherTakesItsPlace, although its windows and
// its hook were still to come.
func TestARecordIsWrittenDownBeforeAnotherTakesItsPlace(t *testing.T) {
	purge := &fakeHook{name: "purge", tries: 5}
	w := tripped(t, purge)
	w.source.settle = 2 * time.Minute
	w.pass(4)
	w.wantWeight(0)
	trip := w.records()
	if len(trip) == 0 || trip[len(trip)-1].Final {
		t.Fatalf("%d records: the windows up to the read-back were there at once", len(trip))
	}
	w.rollBack("for good")
	byKey := map[string]*journal.Rollback{}
	for _, r := range w.records() {
		byKey[r.Key] = r
	}
	old := byKey[trip[0].Key]
	if len(byKey) != 2 || !old.Final || old.By != "breaker" || old.Finding == nil || old.Exposure.Requests == 0 {
		t.Errorf("%d rollbacks; the trip's record %+v", len(byKey), old)
	}
	w.verify()
}

func TestKeysOfFreshMachinesAreNeverTheSameTwice(t *testing.T) {
	w := keeping(t)
	purge := &fakeHook{w: w, name: "purge", tries: 3}
	w.hooks = hooks(purge)
	tick := func() *driver.Result { m := w.machine(); return m.tick(nil) }
	for range 5 {
		tick()
	}
	for range 3 {
		w.source.err = errSource
		tick()
		w.source.err = nil
		tick()
	}
	w.source.violations = 4
	for range 60 {
		if tick().Release.Ladder.Locked() {
			break
		}
	}
	tick()
	if len(purge.keys) != 2 || purge.keys[0] == purge.keys[1] {
		t.Errorf("hooks ran with %v", purge.keys)
	}
	seen := map[string]bool{}
	for _, m := range w.told {
		if seen[m.Key] {
			t.Errorf("two messages have the key %s", m.Key)
		}
		seen[m.Key] = true
	}
	if w.times("source_lost") != 3 || w.times("source_back") != 3 || w.times("rolled_back") != 1 || w.times("locked") != 1 {
		t.Errorf("told %v", w.events())
	}
}

// TestARotatedKeyInsideParamsIsAnotherConfiguration, and the journal stays true.
func TestARotatedKeyInsideParamsIsAnotherConfiguration(t *testing.T) {
	for name, version := range map[string]string{"canary": "42", "stable": "41"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.text = strings.Replace(w.text, `prompt_version: "`+version+`"`, `prompt_version: "`+version+`", params: { auth: { password: "sk-aaaaaaaaaaaaaaaaaaaaaaaa" } }`, 1)
			w.promote()
			w.pass(2)
			w.text = strings.Replace(w.text, "sk-aaaaaaaaaaaaaaaaaaaaaaaa", "sk-bbbbbbbbbbbbbbbbbbbbbbbb", 1)
			w.pass(2)
			w.verify()
			ids := map[string]bool{}
			for _, e := range w.written() {
				if e.Kind == journal.Config {
					ids[e.Configured.ID] = true
				}
			}
			if len(ids) != 2 {
				t.Errorf("%d configurations, want 2", len(ids))
			}
			if err := os.Remove(w.stateFile()); err != nil {
				t.Fatal(err)
			}
			w.promote()
		})
	}
}

// edit changes the saved state as a hand or a bad disk would.
func (w *world) edit(change func(state, ladder map[string]any)) {
	w.t.Helper()
	b, err := os.ReadFile(w.stateFile())
	var saved map[string]any
	if err = errors.Join(err, json.Unmarshal(b, &saved)); err != nil {
		w.t.Fatal(err)
	}
	change(saved, saved["ladder"].(map[string]any))
	if b, err = json.Marshal(saved); err == nil {
		err = os.WriteFile(w.stateFile(), b, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestAStateThatWasEditedIsFoundAndFormedAnew(t *testing.T) {
	w := tripped(t)
	w.pass(1)
	w.rollBack("bad")
	w.verify()
	w.edit(func(_, l map[string]any) { l["stage"], l["breaker"] = "not_started", map[string]any{} })
	mismatch, ok := errors.AsType[*driver.MismatchError](w.verifyError())
	if !ok || !strings.Contains(mismatch.What, "ladder") {
		t.Fatalf("verify says %v", w.verifyError())
	}
	w.source.violations = 0
	w.pass(1)
	w.wantWeight(0)
	if w.res.Release.Ladder.Stage != ladder.RolledBack {
		t.Errorf("it stands at %s", w.res.Release.Ladder.Stage)
	}
	noted := slices.ContainsFunc(w.written(), func(e journal.Entry) bool { return e.Kind == journal.Note && strings.Contains(e.Note, "formed anew") })
	if !noted || !strings.Contains(strings.Join(w.said, "\n"), "formed anew") {
		t.Errorf("noted %v, said %v", noted, w.said)
	}
	w.verify()
	n := len(w.said)
	w.pass(2)
	if len(w.said) != n {
		t.Errorf("said again: %v", w.said[n:])
	}
}

func TestVerifyHoldsEveryPartOfTheStateAgainstTheLines(t *testing.T) {
	for part, change := range map[string]func(s, l map[string]any){
		"record":   func(s, _ map[string]any) { delete(s, "record") },
		"exposure": func(s, _ map[string]any) { s["exposure"].(map[string]any)["requests"] = 1 },
		"standing": func(s, _ map[string]any) { s["standing"] = []string{"drift"} },
		"release":  func(s, _ map[string]any) { s["release"] = "abc" },
		"line with this number": func(s, _ map[string]any) {
			s["journal"].(map[string]any)["sum"] = strings.Repeat("0", 64)
		},
	} {
		t.Run(part, func(t *testing.T) {
			w := tripped(t)
			w.pass(3)
			w.verify()
			w.edit(change)
			if err := w.verifyError(); err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("verify says %v", err)
			}
		})
	}
}

// TestAnEditedStateBehindACutJournalIsACut: forming it anew would hide that
// lines were taken away.
func TestAnEditedStateBehindACutJournalIsACut(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.pass(3)
	w.edit(func(_, l map[string]any) { l["stage"] = "not_started" })
	if err := os.Remove(w.journal()); err != nil {
		t.Fatal(err)
	}
	_, err := w.driver().Promote(t.Context())
	if _, cut := errors.AsType[*driver.CutError](err); !cut {
		t.Errorf("%v", err)
	}
}

func (w *world) asides() []string {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(w.dir, "order-service", "*.damaged*"))
	if err != nil {
		w.t.Fatal(err)
	}
	return names
}

// TestARollbackLeavesAWholeJournalWhereItIs: a state that cannot be read for a
// moment is no damage to the journal.
func TestARollbackLeavesAWholeJournalWhereItIs(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.pass(3)
	if err := errors.Join(os.Remove(w.stateFile()), os.Mkdir(w.stateFile(), 0o700)); err != nil { // stands for a bad disk
		t.Fatal(err)
	}
	res, err := w.driver().RollBack(t.Context(), "now")
	if err != nil || res.Err == nil {
		t.Errorf("%v, %v", res, err)
	}
	if !w.target.weight.IsZero() || len(w.asides()) > 0 {
		t.Errorf("weight %s, put aside %v", w.target.weight, w.asides())
	}
	if err := os.Remove(w.stateFile()); err != nil {
		t.Fatal(err)
	}
	w.pass(1)
	if w.res.Release.Ladder.Stage != ladder.RolledBack || w.res.Release.Record.Why != "now" {
		t.Errorf("the journal says %s, %+v", w.res.Release.Ladder.Stage, w.res.Release.Record)
	}
	w.verify()
}

// TestARollbackThatLostTheReleaseTouchesNoFile: they are the other's.
func TestARollbackThatLostTheReleaseTouchesNoFile(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.pass(3)
	if err := os.WriteFile(w.journal(), []byte("no journal\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _ := config.Parse("canary.yaml", []byte(w.text))
	dir := openDir(t, w.dir)
	o := w.options(cfg, w.target, dir)
	looks := 0
	o.Now = func() time.Time {
		if looks++; looks == 2 { // behind its lock, before it puts anything aside
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 50*time.Millisecond)
			defer cancel()
			if _, err := dir.Preempt(ctx, state.Holder{PID: 8, Who: "other@host", Command: "rollback", Since: w.now.Add(time.Hour)}); err != nil {
				t.Error(err)
			}
		}
		return w.now
	}
	_, err := driver.New(o).RollBack(t.Context(), "")
	if _, lost := errors.AsType[*state.LostError](err); !lost || len(w.asides()) > 0 || len(w.target.writes) > 1 {
		t.Errorf("%v; put aside %v; %d writes", err, w.asides(), len(w.target.writes))
	}
}

func TestTwoDamagedJournalsInOneSecondAreBothKept(t *testing.T) {
	w := newWorld(t)
	w.promote()
	for i := range 2 {
		if err := os.WriteFile(w.journal(), fmt.Appendf(nil, "damaged %d\n", i), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := w.driver().RollBack(t.Context(), ""); err != nil && !errors.Is(err, driver.ErrNothing) {
			t.Fatal(err)
		}
	}
	var kept []string
	for _, name := range w.asides() {
		if b, err := os.ReadFile(name); err == nil && strings.HasPrefix(string(b), "damaged ") {
			kept = append(kept, strings.TrimSpace(string(b)))
		}
	}
	if got := strings.Join(kept, ", "); got != "damaged 0, damaged 1" {
		t.Errorf("kept %s: %v", got, w.asides())
	}
}

func TestNobodyIsToldThatTheSourceIsBackWhileItIsLost(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.pass(3)
	w.source.err = errSource
	w.pass(2)
	w.rollBack("")
	w.pass(2)
	if got := strings.Join(w.events(), " "); got != "started source_lost rolled_back" {
		t.Errorf("told %q", got)
	}
	if slices.Contains(w.res.Release.Standing, notify.SourceLost) {
		t.Error("it stands for ever")
	}
	w.verify()
}

// TestALaterLookEndsAnIncompleteRollback: the write was done, its answer and
// all readings were lost.
func TestALaterLookEndsAnIncompleteRollback(t *testing.T) {
	w := tripped(t)
	w.target.on = func(c target.Change) error { w.target.set(c); w.target.readErr = away(); return away() }
	w.pass(1)
	w.wantStatus(driver.Incomplete)
	w.target.on, w.target.readErr = nil, nil
	w.pass(2)
	if got := strings.Join(w.events(), " "); got != "started rollback_incomplete rolled_back" {
		t.Errorf("told %q", got)
	}
	if len(w.res.Release.Standing) > 0 {
		t.Errorf("still stands: %v", w.res.Release.Standing)
	}
	w.verify()
}

func TestWhatStoodIsToldWhenItEnds(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.pass(2)
	w.target.readErr = away()
	w.pass(2)
	w.target.readErr = nil
	w.pass(1)
	w.target.weight = weight(3)
	w.pass(1)
	w.target.readErr = away()
	w.pass(1) // nobody knows whether the drift is over
	w.target.readErr = nil
	w.pass(1)
	w.target.weight = weight(1)
	w.pass(1)
	want := "started target_lost target_back drift target_lost target_back drift_over"
	if got := strings.Join(w.events(), " "); got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	if len(w.res.Release.Standing) > 0 {
		t.Errorf("still stands: %v", w.res.Release.Standing)
	}
	w.verify()
}

func TestAClearedLockIsTold(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.pass(3)
	w.rollBack("bad")
	w.command(ladder.Command{Verb: ladder.DoClearLock, Reason: "mended"})
	if got := strings.Join(w.events(), " "); got != "started rolled_back lock_cleared" {
		t.Errorf("told %q", got)
	}
	if m := w.told[len(w.told)-1]; !strings.Contains(m.Reason, "mended") {
		t.Errorf("reason %q", m.Reason)
	}
	w.verify()
}

// TestAStepThatIsRefusedAgainAndAgainIsToldOnceAndCountedOnce.
func TestAStepThatIsRefusedAgainAndAgainIsToldOnceAndCountedOnce(t *testing.T) {
	w := newWorld(t)
	w.promote()
	keys := map[string]bool{}
	w.target.on = func(c target.Change) error {
		keys[c.Key] = true
		return &target.RefusedError{Target: "fake", Err: errors.New("protected branch")}
	}
	w.pass(60)
	if got := strings.Join(w.events(), " "); got != "started write_refused" {
		t.Errorf("told %q", got)
	}
	if m := w.told[1]; !strings.Contains(m.Reason, "protected branch") || !strings.Contains(m.Reason, "10 %") {
		t.Errorf("reason %q", m.Reason)
	}
	if n := w.res.Release.Counts.Decisions["advance"]; n != 1 {
		t.Errorf("%d decisions to advance", n)
	}
	if n := len(w.target.writes) - 1; n < 40 || len(keys) != n {
		t.Errorf("%d writes under %d keys: a server that remembers its answers would say no for ever", n, len(keys))
	}
	w.target.on = nil
	w.pass(1)
	if got := strings.Join(w.events(), " "); got != "started write_refused advanced" || len(w.res.Release.Standing) > 0 {
		t.Errorf("told %q, stands %v", got, w.res.Release.Standing)
	}
	w.verify()
}

// TestACacheThatIsAwayForHalfAMinuteIsPurged by the command that rolled back.
func TestACacheThatIsAwayForHalfAMinuteIsPurged(t *testing.T) {
	for name, after := range map[string]time.Duration{"silent": 0, "asks for 15 s": 15 * time.Second, "asks for an hour": time.Hour} {
		t.Run(name, func(t *testing.T) {
			purge := &fakeHook{name: "purge", tries: 5}
			w := tripped(t, purge)
			w.now = w.now.Add(time.Minute).Truncate(time.Minute)
			back, purged := w.now.Add(30*time.Second), time.Time{}
			purge.run = func(context.Context, int) error {
				if w.now.Before(back) {
					return &notify.DeliveryError{To: "hook", Err: errors.New("503"), Retry: true, After: after}
				}
				purged = w.now
				return nil
			}
			d := w.driver()
			if _, err := d.Promote(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := d.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			if purged.IsZero() || purged.After(back.Add(31*time.Second)) {
				t.Errorf("purged at %s after %d tries, the cache was back at %s", purged, len(purge.keys), back)
			}
			if slices.Contains(w.events(), "hook_failed") {
				t.Errorf("told %v", w.events())
			}
			w.verify()
		})
	}
}

// TestALoopTriesAHookAgainBeforeTheNextWindow.
func TestALoopTriesAHookAgainBeforeTheNextWindow(t *testing.T) {
	purge := &fakeHook{name: "purge", tries: 5}
	w := tripped(t, purge)
	var at []time.Time
	purge.run = func(_ context.Context, n int) error {
		if at = append(at, w.now); n < 3 {
			return again("503")
		}
		return nil
	}
	l, run := w.loop(t.Context())
	l.most = 6
	if _, err := run(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if len(at) != 3 || at[2].Sub(at[0]) > 12*time.Second {
		t.Errorf("tried at %v", at)
	}
}

// TestSettleLeavesWhatAsksForMoreTimeToTheNextCall.
func TestSettleLeavesWhatAsksForMoreTimeToTheNextCall(t *testing.T) {
	w := newWorld(t)
	w.deaf = true
	d := w.driver()
	begun := w.now
	if _, err := d.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := w.now.Sub(begun); took < 30*time.Second || took > time.Minute {
		t.Errorf("it took %s", took)
	}
	w.deaf = false
	w.pass(2)
	if got := strings.Join(w.events(), " "); got != "started" {
		t.Errorf("told %q", got)
	}
	w.verify()
}

func TestAMessageThatNeverGetsThroughIsGivenUpAfterTenMinutes(t *testing.T) {
	w := newWorld(t)
	w.deaf = true
	w.promote()
	w.pass(20)
	given := 0
	for _, e := range w.written() {
		if e.Kind == journal.Tell && e.Told.GivenUp && strings.Contains(e.Told.Key, "/started/") {
			given++
			if after := e.T.Sub(t0); after < 10*time.Minute || after > 12*time.Minute || e.Told.Tries < 10 {
				t.Errorf("given up after %s and %d tries", after, e.Told.Tries)
			}
		}
	}
	if given != 1 || w.res.Release.Counts.Undelivered == 0 {
		t.Errorf("given up %d times, %d counted", given, w.res.Release.Counts.Undelivered)
	}
	w.verify()
}

// TestAMessageIsTriedForTenMinutesAtLeast: a chat that is down for nine loses
// nothing.
func TestAMessageIsTriedForTenMinutesAtLeast(t *testing.T) {
	w := newWorld(t)
	w.quick()
	w.deaf = true
	d, tries := w.driver(), 0
	for w.now.Before(t0.Add(9 * time.Minute)) {
		res, err := d.Promote(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tries = res.Release.Outbox[0].Tries["fake (notify[0])"]
		if err := d.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(time.Second)
	}
	if tries < 10 {
		t.Fatalf("only %d tries", tries)
	}
	w.deaf = false
	w.pass(2)
	if w.times("started") != 1 {
		t.Errorf("told %v", w.events())
	}
	w.verify()
}

// TestAMessageKeepsTheRunThatItIsFrom.
func TestAMessageKeepsTheRunThatItIsFrom(t *testing.T) {
	w := newWorld(t)
	w.deaf = true
	cfg, _ := config.Parse("canary.yaml", []byte(w.text))
	promote := func(run string) {
		t.Helper()
		o := w.options(cfg, w.target, openDir(t, w.dir))
		o.RunURL = run
		w.now = w.now.Add(time.Minute).Truncate(time.Minute)
		if _, err := driver.New(o).Promote(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	promote("https://ci.example/run/1")
	if err := os.Remove(w.stateFile()); err != nil { // the journal has it too
		t.Fatal(err)
	}
	w.deaf = false
	w.source.err = errSource
	promote("https://ci.example/run/2")
	if len(w.told) != 2 || w.told[0].RunURL != "https://ci.example/run/1" || w.told[1].RunURL != "https://ci.example/run/2" {
		t.Errorf("told %+v", w.told)
	}
}

// TestMessagesThatAreTooManyAreGivenUpAloud: the oldest, with a line for each.
func TestMessagesThatAreTooManyAreGivenUpAloud(t *testing.T) {
	w := newWorld(t)
	w.deaf = true
	w.promote()
	for range 105 { // two messages each
		w.source.err = errSource
		w.now = w.now.Add(time.Second)
		w.promote()
		w.source.err = nil
		w.now = w.now.Add(time.Second)
		w.promote()
	}
	lost := 0
	for _, e := range w.written() {
		if e.Kind == journal.Tell && e.Told.GivenUp && strings.Contains(e.Told.Error, "too many") {
			lost++
		}
	}
	r := w.res.Release
	if lost == 0 || int64(lost) != r.Counts.Undelivered || len(r.Outbox)+lost != int(r.Messages) || len(r.Outbox) > 201 {
		t.Errorf("%d lines, %d counted; %d wait of %d", lost, r.Counts.Undelivered, len(r.Outbox), r.Messages)
	}
	w.verify()
}
