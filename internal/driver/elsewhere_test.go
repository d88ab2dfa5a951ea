package driver_test

import (
	"errors"
	"testing"

	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// TestATargetThatWasMovedInMidReleaseIsNotTakenForTheOldOne: what another place
// holds says nothing of where the canary is.
func TestATargetThatWasMovedInMidReleaseIsNotTakenForTheOldOne(t *testing.T) {
	w := newWorld(t)
	w.promote()
	old := w.target
	w.target = &fakeTarget{w: w, weight: weight(1), name: "elsewhere"}
	w.pass(30)
	w.wantStatus(driver.Failed)
	w.wantWeight(1)
	if _, ok := errors.AsType[*driver.MovedTargetError](w.res.TargetErr); !ok {
		t.Errorf("error %v", w.res.TargetErr)
	}
	res, err := w.driver().RollBack(t.Context(), "bad")
	if err != nil {
		t.Fatal(err)
	}
	if res.Status != driver.Incomplete || res.Release.Ladder.Weight.IsZero() {
		t.Errorf("status %d, weight %s: a rollback of another place was taken for this one's", res.Status, res.Release.Ladder.Weight)
	}
	w.target = old
	if res, err = w.driver().RollBack(t.Context(), "bad"); err != nil || res.Status != driver.RolledBack || !old.weight.IsZero() {
		t.Errorf("status %d, the old place holds %s: %v", res.Status, old.weight, err)
	}
	w.verify()
}

// TestAPersonMaySayThatTheTargetIsTheSamePlace under another name.
func TestAPersonMaySayThatTheTargetIsTheSamePlace(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.target.name = "fake by another address"
	w.pass(1)
	w.wantStatus(driver.Failed)
	if _, err := w.driver().Command(t.Context(), ladder.Command{Verb: ladder.DoAcceptConfig}); err != nil {
		t.Fatal(err)
	}
	w.until("at 10 %", func(r *driver.Result) bool { return r.Outcome.Move == release.Advance })
	w.wantWeight(10)
	w.verify()
}
