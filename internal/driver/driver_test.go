package driver_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/state"
)

// verify derives everything in the journal again.
func (w *world) verify() *driver.Verified {
	w.t.Helper()
	dir, err := state.Open(w.dir, "order-service")
	if err != nil {
		w.t.Fatal(err)
	}
	v, err := driver.Verify(w.t.Context(), dir, "order-service")
	if err != nil {
		w.t.Fatalf("the journal does not verify: %v", err)
	}
	return v
}

func TestAReleaseClimbsToItsEnd(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.wantWeight(1)
	w.wantStatus(driver.Done)
	w.until("complete", func(r *driver.Result) bool { return r.Outcome.Move == release.Complete })
	w.wantWeight(100)
	if want := []release.Weight{weight(1), weight(10), weight(100)}; !slices.Equal(w.target.writes, want) {
		t.Errorf("writes %v, want %v and nothing else", w.target.writes, want)
	}
	if got, want := strings.Join(w.events(), " "), "started advanced advanced completed"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	if w.pass(5); w.res.Status != driver.Done || len(w.target.writes) != 3 {
		t.Errorf("after the end: status %d, writes %v", w.res.Status, w.target.writes)
	}
	if v := w.verify(); v.Writes != 3 || v.Decisions < 30 {
		t.Errorf("verified %+v", v)
	}
}

func TestACallTakesOneStepThoughTheClockGoesOn(t *testing.T) {
	w := newWorld(t)
	w.text = strings.ReplaceAll(w.text, "min_hold_min: 10", "min_hold_min: 0, gate: [time]")
	w.goes = time.Millisecond
	for _, want := range []int64{1, 10, 100} {
		w.promote()
		w.wantWeight(want)
		w.wantStatus(driver.Done)
	}
	w.verify()
}

func TestAViolationBurstTakesTheWeightToZeroAndItRecovers(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.until("at 10 %", func(r *driver.Result) bool { return r.Outcome.Move == release.Advance })
	w.pass(3)
	w.source.violations = 4
	w.pass(1)
	w.wantWeight(0)
	w.wantStatus(driver.RolledBack)
	w.source.violations = 0
	w.until("a new attempt", func(r *driver.Result) bool { return r.Outcome.Why == ladder.WhyRecovered })
	w.wantWeight(1)
	if w.res.Release.Ladder.Attempt != 2 || w.res.Release.Ladder.Step != 0 {
		t.Errorf("attempt %d at step %d, want 2 at the first", w.res.Release.Ladder.Attempt, w.res.Release.Ladder.Step+1)
	}
	rec := w.res.Release.Record
	if rec == nil || !rec.Final || rec.Finding.Signal != release.Violations || rec.Step != 2 || rec.Exposure.Requests < 4*60 {
		t.Errorf("record %+v", rec)
	}
	if got, want := strings.Join(w.events(), " "), "started advanced rolled_back probing recovered"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	w.verify()
}

func TestAManHundredTicksOfWaitingAreOneMessage(t *testing.T) {
	w := newWorld(t)
	w.text = strings.Replace(w.text, "{ pct: 0.01, min_hold_min: 10 }", "{ pct: 0.01, min_hold_min: 10, gate: [time, metric, approval] }", 1)
	w.promote()
	w.until("waiting", func(r *driver.Result) bool { return r.Status == driver.Awaiting })
	w.pass(100)
	w.wantWeight(1)
	if got := strings.Join(w.events(), " "); got != "started awaiting_approval" {
		t.Errorf("told %q", got)
	}
	if last := w.told[1]; !strings.HasPrefix(last.Next, "canaryctl approve --release ") || !strings.HasSuffix(last.Next, " --step 1") {
		t.Errorf("next: %q", last.Next)
	}
	if _, err := w.driver().Approve(t.Context(), driver.Shown{Step: 2}, ""); err == nil {
		t.Error("an approval for another step was taken")
	}
	if _, err := w.driver().Approve(t.Context(), driver.Shown{Release: w.told[1].Release, Step: 1}, "looks good"); err != nil {
		t.Fatal(err)
	}
	w.pass(1)
	w.wantWeight(10)
	w.verify()
}

func TestAPersonRollsBackFromEveryStage(t *testing.T) {
	for name, reach := range map[string]func(w *world){
		"just started": func(w *world) { w.promote() },
		"climbing":     func(w *world) { w.promote(); w.pass(15) },
		"paused": func(w *world) {
			w.promote()
			if _, err := w.driver().Command(w.t.Context(), ladder.Command{Verb: ladder.DoPause}); err != nil {
				w.t.Fatal(err)
			}
		},
		"probing": func(w *world) {
			w.promote()
			w.source.violations = 4
			w.pass(2)
			w.source.violations = 0
			w.until("probing", func(r *driver.Result) bool { return r.Outcome.Move == release.Probe })
		},
		"complete": func(w *world) {
			w.promote()
			w.until("complete", func(r *driver.Result) bool { return r.Outcome.Move == release.Complete })
		},
		"drifted":                     func(w *world) { w.promote(); w.target.weight = weight(30); w.pass(1) },
		"source failed":               func(w *world) { w.promote(); w.source.err = errSource; w.pass(1) },
		"no state, somebody's weight": func(w *world) { w.target.weight = weight(30) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			reach(w)
			res, err := w.driver().RollBack(t.Context(), "customers complain")
			if err != nil {
				t.Fatal(err)
			}
			w.res = res
			w.wantWeight(0)
			w.wantStatus(driver.RolledBack)
			if got := w.told[len(w.told)-1]; got.Event != "rolled_back" {
				t.Errorf("told %v", w.events())
			}
			if rec := res.Release.Record; rec.By != "person" || rec.Why != "customers complain" || rec.ReadBack.IsZero() {
				t.Errorf("record %+v", rec)
			}
			w.source.err = nil
			w.pass(30)
			w.wantWeight(0)
			w.wantStatus(driver.RolledBack)
			w.verify()
		})
	}
}

func TestNothingToRollBackIsSaidAndWritesNothing(t *testing.T) {
	w := newWorld(t)
	_, err := w.driver().RollBack(t.Context(), "")
	if err == nil || !strings.Contains(err.Error(), "nothing to roll back") {
		t.Errorf("error %v", err)
	}
	if len(w.target.writes) != 0 {
		t.Errorf("writes %v", w.target.writes)
	}
}

func TestLateWindowsLoseNoEvidence(t *testing.T) {
	w := newWorld(t)
	w.source.settle = 2 * time.Minute
	w.promote()
	w.until("at 10 %", func(r *driver.Result) bool { return r.Outcome.Move == release.Advance })
	w.source.violations = 4
	w.until("rolled back", func(r *driver.Result) bool { return r.Status == driver.RolledBack })
	w.wantWeight(0)
	w.verify()
}

func TestAGatewayThatIgnoresTheWeightHolds(t *testing.T) {
	w := newWorld(t)
	w.source.ignores = true
	w.promote()
	w.pass(30)
	w.wantWeight(1)
	w.wantStatus(driver.Holding)
	if w.res.Outcome.Why != ladder.WhyMismatch || !slices.Contains(w.events(), "share_mismatch") {
		t.Errorf("%s: %s, told %v", w.res.Outcome.Why, w.res.Outcome.Reason, w.events())
	}
	w.verify()
}
