package ladder_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// TestABadCanaryIsRolledBackWhateverTheClockDid, within minutes.
func TestABadCanaryIsRolledBackWhateverTheClockDid(t *testing.T) {
	ahead := func(by time.Duration, while func(d *driver)) func(t *testing.T) *driver {
		return func(t *testing.T) *driver {
			d := start(t, plan())
			d.pass(5, 30)
			d.now = d.now.Add(by)
			while(d)
			d.now = d.now.Add(-by)
			return d
		}
	}
	for name, reach := range map[string]func(t *testing.T) *driver{
		"a day ahead, with windows":          ahead(24*time.Hour, func(d *driver) { d.pass(3, 30) }),
		"a day ahead, without":               ahead(24*time.Hour, func(d *driver) { d.pass(3, -1) }),
		"a day ahead, and an empty one":      ahead(24*time.Hour, func(d *driver) { d.pass(1, 0) }),
		"a day ahead, and a step taken":      ahead(24*time.Hour, func(d *driver) { d.pass(20, 30) }),
		"a few minutes ahead, with windows":  ahead(5*time.Minute, func(d *driver) { d.pass(3, 30) }),
		"a day ahead when the release began": func(t *testing.T) *driver { d := start(t, plan()); d.now = d.now.Add(-24 * time.Hour); return d },
		"set back by an hour":                ahead(-time.Hour, func(d *driver) { d.pass(10, 30) }),
	} {
		t.Run(name, func(t *testing.T) {
			d := reach(t)
			for n := range 13 {
				b, err := json.Marshal(&d.st)
				if err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(b, &d.st); err != nil {
					t.Fatal(err)
				}
				if d.trip(); d.weight.IsZero() {
					if n > 2 && name != "a few minutes ahead, with windows" && name != "a day ahead, and a step taken" {
						t.Errorf("only after %d minutes", n+1)
					}
					return
				}
			}
			t.Errorf("still at %s: %s", d.weight, d.decision.Reason())
		})
	}
}

// TestNothingLastsLongerForAClockThatWasAhead.
func TestNothingLastsLongerForAClockThatWasAhead(t *testing.T) {
	t.Run("a cooldown", func(t *testing.T) {
		d := start(t, plan())
		d.pass(1, 30)
		d.now = d.now.Add(24 * time.Hour)
		d.trip()
		d.wantWeight(0)
		d.now = d.now.Add(-24 * time.Hour)
		for range 6 {
			d.wantWeight(0)
			d.pass(1, -1)
		}
		d.pass(1, -1)
		d.wantPhase(release.HalfOpen)
	})
	t.Run("an approval", func(t *testing.T) {
		p := approvals()
		p.ApprovalTimeout = minutes(60)
		d := start(t, p)
		d.pass(10, 30)
		if err := ladder.Approve(&d.st, &d.decision, ladder.Approval{Attempt: 1, Digest: "d1", By: "ann", At: d.now.Add(24 * time.Hour)}); err != nil {
			t.Fatal(err)
		}
		before := d.st.Approval
		d.plan.Freezes = []ladder.Freeze{{Zone: time.UTC, Days: everyDay, To: 24 * time.Hour}}
		d.pass(59, 30)
		if d.st.Approval == nil || before.At.Before(t0.Add(24*time.Hour)) {
			t.Fatal("lapsed early, or changed in place")
		}
		d.pass(2, 30)
		if d.st.Approval != nil {
			t.Error("it still stands")
		}
	})
	t.Run("a pause", func(t *testing.T) {
		d := start(t, plan())
		must(t, ladder.Pause(&d.st, d.now.Add(24*time.Hour)))
		d.pass(5, 30)
		if d.st.Covered > time.Minute {
			t.Errorf("%s of a pause count", d.st.Covered)
		}
	})
}

// TestGateAndHoldBeginAnewWhereWindowsAreForgotten: no step on evidence of a
// time that has not come.
func TestGateAndHoldBeginAnewWhereWindowsAreForgotten(t *testing.T) {
	p := plan(hold(60), limits(func(l *breaker.Limits) { l.LabelLag = minutes(5) }))
	d := start(t, p)
	d.pass(5, 30)
	d.now = d.now.Add(24 * time.Hour)
	d.pass(30, 30)
	d.now = d.now.Add(-24 * time.Hour)
	d.pass(1, 30)
	if d.st.Covered != time.Minute || d.st.Gate.Requests != 0 || len(d.st.Unripe) != 1 || d.st.Seen.After(d.now) {
		t.Errorf("covered %s, %d requests at the gate, %d young, seen %s at %s", d.st.Covered, d.st.Gate.Requests, len(d.st.Unripe), d.st.Seen, d.now)
	}
	d.pass(58, 30)
	d.wantHold(ladder.WhyTime)
	d.pass(10, 30)
	d.wantWeight(5)
}
