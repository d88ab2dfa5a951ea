package driver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// TestAClockThatJumpsBackTakesNoStepTooEarly sets the clock back by an hour at
// several places, and right again half an hour later.
func TestAClockThatJumpsBackTakesNoStepTooEarly(t *testing.T) {
	for name, reach := range map[string]func(w *world){
		"just started": func(w *world) { w.promote() },
		"in a hold":    func(w *world) { w.promote(); w.pass(6) },
		"probing": func(w *world) {
			w.promote()
			w.source.violations = 4
			w.pass(2)
			w.source.violations = 0
			w.until("probing", func(r *driver.Result) bool { return r.Outcome.Move == release.Probe })
		},
		"paused": func(w *world) {
			w.promote()
			w.pass(2)
			w.command(ladder.Command{Verb: ladder.DoPause})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			reach(w)
			held := w.target.weight
			w.now = w.now.Add(-time.Hour)
			for range 30 {
				if res := w.pass(1); res.Outcome.LeftS != nil && *res.Outcome.LeftS < 0 || strings.Contains(res.Outcome.Reason, "held -") {
					t.Fatalf("it says %q, %v left", res.Outcome.Reason, res.Outcome.LeftS)
				}
			}
			w.wantWeight(held.Slots)
			w.now = w.now.Add(30 * time.Minute)
			if w.res.Outcome.Paused {
				w.command(ladder.Command{Verb: ladder.DoResume})
			}
			w.until("at 10 %", func(r *driver.Result) bool { return r.Outcome.Move == release.Advance })
			if l := &w.res.Release.Ladder; l.Step != 1 {
				t.Errorf("at step %d", l.Step+1)
			}
			w.verify()
		})
	}
}

// TestACooldownLastsAsLongAfterAClockWasSetBack by an hour, and no longer.
func TestACooldownLastsAsLongAfterAClockWasSetBack(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.pass(3)
	w.source.violations = 4
	w.pass(1)
	w.source.violations = 0
	w.now = w.now.Add(-time.Hour)
	for range 6 {
		w.pass(1)
		w.wantWeight(0)
	}
	w.pass(2)
	w.wantWeight(1)
	w.verify()
}

func TestAClockThatJumpsBackStopsNoRollback(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.pass(12)
	w.now = w.now.Add(-time.Hour)
	res, err := w.driver().RollBack(t.Context(), "customers")
	if err != nil || res.Status != driver.RolledBack {
		t.Fatalf("%v, %v", res, err)
	}
	w.res = res
	w.wantWeight(0)
	w.pass(3)
	w.wantStatus(driver.RolledBack)
	w.verify()
}

// TestARecordKeepsItsExposureWhenTheNextAttemptBeginsAtOnce: the record of a
// rollback becomes final a window later, when another attempt may serve.
func TestARecordKeepsItsExposureWhenTheNextAttemptBeginsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.pass(5)
	w.now = w.now.Add(20 * time.Second)
	w.rollBack("customers")
	want := int64(5 * 6)
	w.command(ladder.Command{Verb: ladder.DoClearLock, Reason: "mended"})
	w.now = w.now.Add(time.Second)
	w.promote()
	w.wantWeight(1)
	w.pass(3)
	rec := w.res.Release.Record
	if !rec.Final || rec.Exposure.Requests < want || rec.Exposure.Requests > want+6 {
		t.Errorf("final %v, exposure %d, want %d", rec.Final, rec.Exposure.Requests, want)
	}
	w.verify()
}
