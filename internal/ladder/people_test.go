package ladder_test

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

func approvals() *ladder.Plan {
	return plan(gates(ladder.TimeGate | ladder.MetricGate | ladder.ApprovalGate))
}

// approve gives a person's word for what Decide has just shown.
func (d *driver) approve() error {
	return ladder.Approve(&d.st, &d.decision, ladder.Approval{Attempt: d.decision.Attempt, Step: d.decision.Step, Digest: d.plan.Digest, By: "ann", At: d.now})
}

func TestApprovalComesLastAndLapses(t *testing.T) {
	t.Run("it is not asked for before the other gates have passed", func(t *testing.T) {
		d := start(t, approvals())
		d.pass(9, 30)
		d.wantHold(ladder.WhyTime)
		if err := d.approve(); err != ladder.ErrNotAwaiting {
			t.Errorf("approved early: %v", err)
		}
		d.pass(1, 30)
		d.wantHold(ladder.WhyApproval)
		if d.decision.Verdict != release.Pass {
			t.Errorf("asked on %s", d.decision.Verdict)
		}
	})
	t.Run("nothing moves without it, for any length of time", func(t *testing.T) {
		d := start(t, approvals())
		d.pass(3000, 30)
		d.wantHold(ladder.WhyApproval)
		d.wantWeight(1)
	})
	t.Run("it is one step's", func(t *testing.T) {
		d := start(t, approvals())
		d.pass(10, 30)
		if err := d.approve(); err != nil {
			t.Fatal(err)
		}
		d.decide()
		d.wantWeight(5)
		d.pass(60, 30)
		d.wantHold(ladder.WhyApproval)
		d.wantWeight(5)
	})
	t.Run("it names attempt, step and configuration", func(t *testing.T) {
		d := start(t, approvals())
		d.pass(10, 30)
		for _, a := range []ladder.Approval{
			{Attempt: 2, Step: 0, Digest: "d1"}, {Attempt: 1, Step: 1, Digest: "d1"}, {Attempt: 1, Step: 0, Digest: "d0"},
		} {
			if err := ladder.Approve(&d.st, &d.decision, a); err != ladder.ErrOtherStep {
				t.Errorf("%+v: %v", a, err)
			}
		}
	})
	t.Run("it lapses after approval_timeout_min", func(t *testing.T) {
		p := approvals()
		p.ApprovalTimeout = minutes(60)
		p.Freezes = []ladder.Freeze{{Zone: time.UTC, Days: everyDay, From: minutes(11), To: minutes(120)}}
		d := start(t, p)
		d.pass(10, 30)
		if err := d.approve(); err != nil { // at 10, and from 11 on the release is frozen
			t.Fatal(err)
		}
		d.pass(109, 30)
		d.wantHold(ladder.WhyFrozen)
		d.pass(1, 30)
		d.wantHold(ladder.WhyApproval)
	})
	t.Run("it lapses once the verdict is worse than shown", func(t *testing.T) {
		d := start(t, approvals())
		d.pass(10, 30)
		if err := d.approve(); err != nil {
			t.Fatal(err)
		}
		d.pass(1, 30, func(w *release.Window) { w.Cost, w.Known = 1, w.Known|release.HasCost }) // a new signal, with 30 of 200 samples
		d.wantHold(ladder.WhyInsufficient)
		d.pass(60, 30, func(w *release.Window) { w.Cost, w.Known = 1, w.Known|release.HasCost })
		d.wantHold(ladder.WhyApproval)
		d.wantWeight(1)
	})
	t.Run("it lapses with a changed configuration", func(t *testing.T) {
		d := start(t, approvals())
		d.pass(10, 30)
		if err := d.approve(); err != nil {
			t.Fatal(err)
		}
		q := *d.plan
		q.Digest = "d2"
		d.plan = &q
		if err := ladder.AcceptConfig(d.plan, &d.st); err != nil {
			t.Fatal(err)
		}
		d.pass(1, 30)
		d.wantHold(ladder.WhyApproval)
	})
	t.Run("there is nothing to approve after a rollback", func(t *testing.T) {
		d := start(t, approvals())
		d.pass(10, 30)
		shown := d.decision
		d.trip()
		if err := d.approve(); err != ladder.ErrNotAwaiting {
			t.Errorf("approved what is rolled back: %v", err)
		}
		if err := ladder.Approve(&d.st, &shown, ladder.Approval{Attempt: 1, Digest: "d1", At: d.now}); err == nil {
			d.pass(60, -1)
			if d.weight.Above(pct(1)) {
				t.Error("a word given for what was shown before the rollback moved it forward")
			}
		}
	})
}

var everyDay = [7]bool{true, true, true, true, true, true, true}

func TestFreezeBlocksAdvanceNeverRollback(t *testing.T) {
	p := plan()
	p.Freezes = []ladder.Freeze{{Zone: time.UTC, Days: everyDay, From: minutes(5), To: minutes(60)}}
	d := start(t, p)
	d.pass(40, 30)
	d.wantHold(ladder.WhyFrozen)
	d.wantWeight(1)
	if left, ok := d.decision.Remaining(); !ok || left != minutes(20) {
		t.Errorf("remaining %s, %v", left, ok)
	}
	d.trip()
	d.wantWeight(0)
	d.pass(5, -1)
	d.wantPhase(release.HalfOpen) // a probe is no advance
	d.pass(5, 30)
	d.wantPhase(release.Closed)
	d.pass(9, 30) // frozen until 60
	d.wantWeight(1)
	d.pass(1, 30)
	d.wantWeight(5)
	if _, err := ladder.RollBack(d.plan, &d.st, d.now); err != nil {
		t.Fatal(err)
	}
}

func TestFreezeBlocksTheStart(t *testing.T) {
	p := plan()
	p.Freezes = []ladder.Freeze{{Zone: time.UTC, Days: everyDay, From: 0, To: minutes(60)}}
	d := &driver{t: t, plan: p, now: t0, weight: pct(0)}
	d.decide()
	d.wantHold(ladder.WhyFrozen)
	d.now = t0.Add(minutes(60))
	d.decide()
	d.wantWeight(1)
}

// TestFreezeKeepsToTheWallClock, over both changes of the clock in Berlin:
// 2026-03-29 02:00 becomes 03:00 (01:00 UTC), 2026-10-25 03:00 becomes 02:00
// (01:00 UTC).
func TestFreezeKeepsToTheWallClock(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	days := func(ds ...time.Weekday) (out [7]bool) {
		for _, d := range ds {
			out[d] = true
		}
		return out
	}
	clock := func(h, m int) time.Duration { return time.Duration(h)*time.Hour + minutes(m) }
	for _, tc := range []struct {
		name     string
		days     [7]bool
		from, to time.Duration
		at       string // UTC
		frozen   bool
		until    string
	}{
		{"winter, first minute", everyDay, clock(22, 0), clock(6, 0), "2026-01-10T21:00:00Z", true, "2026-01-11T05:00:00Z"},
		{"winter, a second before", everyDay, clock(22, 0), clock(6, 0), "2026-01-10T20:59:59Z", false, ""},
		{"winter, at its end", everyDay, clock(22, 0), clock(6, 0), "2026-01-11T05:00:00Z", false, ""},
		{"summer, first minute", everyDay, clock(22, 0), clock(6, 0), "2026-07-10T20:00:00Z", true, "2026-07-11T04:00:00Z"},
		{"the night of the gap is an hour shorter", everyDay, clock(22, 0), clock(6, 0), "2026-03-28T21:00:00Z", true, "2026-03-29T04:00:00Z"},
		{"and over at 06:00 summer time", everyDay, clock(22, 0), clock(6, 0), "2026-03-29T04:00:00Z", false, ""},
		{"the night of the overlap is an hour longer", everyDay, clock(22, 0), clock(6, 0), "2026-10-24T20:00:00Z", true, "2026-10-25T05:00:00Z"},
		{"and still on at 04:59 UTC", everyDay, clock(22, 0), clock(6, 0), "2026-10-25T04:59:00Z", true, "2026-10-25T05:00:00Z"},
		{"a span reaching into Monday is Sunday's", days(time.Sunday), clock(22, 0), clock(6, 0), "2026-03-30T03:59:00Z", true, "2026-03-30T04:00:00Z"},
		{"Monday evening is not frozen", days(time.Sunday), clock(22, 0), clock(6, 0), "2026-03-30T20:00:00Z", false, ""},
		{"Sunday before dawn is Saturday's", days(time.Sunday), clock(22, 0), clock(6, 0), "2026-03-29T02:00:00Z", false, ""},
		{"02:20 comes twice, the first time", everyDay, clock(2, 15), clock(2, 45), "2026-10-25T00:20:00Z", true, ""},
		{"02:20 comes twice, the second time", everyDay, clock(2, 15), clock(2, 45), "2026-10-25T01:20:00Z", true, "2026-10-25T01:45:00Z"},
		{"01:30 to 03:30 over the gap", everyDay, clock(1, 30), clock(3, 30), "2026-03-29T01:10:00Z", true, "2026-03-29T01:30:00Z"},
		{"the whole day", [7]bool{time.Sunday: true}, 0, 0, "2026-03-29T12:00:00Z", true, "2026-03-29T22:00:00Z"},
		{"a whole Saturday ends with it", days(time.Saturday), 0, 24 * time.Hour, "2026-03-28T22:59:00Z", true, "2026-03-28T23:00:00Z"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := plan()
			p.Freezes = []ladder.Freeze{{Zone: berlin, Days: tc.days, From: tc.from, To: tc.to}}
			now, err := time.Parse(time.RFC3339, tc.at)
			if err != nil {
				t.Fatal(err)
			}
			until, frozen := p.Frozen(now)
			if frozen != tc.frozen {
				t.Fatalf("frozen %v at %s, want %v", frozen, now.In(berlin), tc.frozen)
			}
			if frozen && !until.After(now) {
				t.Errorf("frozen until %s, which is past", until)
			}
			if tc.until != "" && until.Format(time.RFC3339) != tc.until {
				t.Errorf("until %s, want %s", until.Format(time.RFC3339), tc.until)
			}
		})
	}
}

// TestRollBackFromEveryState: one write to 0, whatever runs.
func TestRollBackFromEveryState(t *testing.T) {
	for name, reach := range map[string]func(t *testing.T) *driver{
		"the start is being written": func(t *testing.T) *driver {
			d := &driver{t: t, plan: plan(), now: t0, weight: pct(0), deaf: true}
			d.decide()
			d.deaf, d.weight = false, pct(1) // it has arrived, and nobody has read it back
			return d
		},
		"a weight before the release": func(t *testing.T) *driver {
			p := plan()
			p.Freezes = []ladder.Freeze{{Zone: time.UTC, Days: everyDay, To: 24 * time.Hour}}
			d := &driver{t: t, plan: p, now: t0, weight: pct(1)}
			d.decide()
			return d
		},
		"first step": func(t *testing.T) *driver { d := start(t, plan()); d.pass(5, 30); return d },
		"an advance is being written": func(t *testing.T) *driver {
			d := start(t, plan())
			d.pass(9, 30)
			d.deaf = true
			d.pass(1, 30)
			d.deaf = false
			return d
		},
		"paused": func(t *testing.T) *driver {
			d := start(t, plan())
			if err := ladder.Pause(&d.st, d.now); err != nil {
				t.Fatal(err)
			}
			return d
		},
		"awaiting approval": func(t *testing.T) *driver { d := start(t, approvals()); d.pass(10, 30); return d },
		"another config": func(t *testing.T) *driver {
			d := start(t, plan())
			q := *d.plan
			q.Digest = "d2"
			d.plan = &q
			return d
		},
		"cooling down": func(t *testing.T) *driver { d := start(t, plan()); d.trip(); return d },
		"probing": func(t *testing.T) *driver {
			d := start(t, plan())
			d.trip()
			d.pass(5, -1)
			d.wantPhase(release.HalfOpen)
			return d
		},
		"locked": func(t *testing.T) *driver {
			d := start(t, plan())
			d.trip()
			d.pass(5, -1)
			d.trip()
			d.wantHold(ladder.WhyLocked)
			return d
		},
		"100 %":    func(t *testing.T) *driver { d := start(t, plan()); d.pass(35, 30); d.wantWeight(100); return d },
		"complete": func(t *testing.T) *driver { d := start(t, plan()); d.pass(50, 30); return d },
	} {
		t.Run(name, func(t *testing.T) {
			d := reach(t)
			before := len(d.writes)
			dec, err := ladder.RollBack(d.plan, &d.st, d.now)
			if err != nil {
				t.Fatal(err)
			}
			if dec.Move != release.RollBackMove || !dec.Write || !dec.Weight.IsZero() || dec.Reason() == "" {
				t.Fatalf("%s, write %v of %s", dec.Move, dec.Write, dec.Weight)
			}
			d.decide()
			d.wantWeight(0)
			if n := len(d.writes) - before; n > 1 {
				t.Errorf("%d writes", n)
			}
			d.pass(300, -1)
			d.wantWeight(0)
			if d.decision.Move != release.Hold {
				t.Errorf("goes on by itself: %s", d.decision.Move)
			}
			if err := ladder.ClearLock(&d.st, d.now); err != nil {
				t.Errorf("a person cannot start again: %v", err)
			}
		})
	}
}

func TestRollBackOfNothingSaysSo(t *testing.T) {
	var st ladder.State
	if _, err := ladder.RollBack(plan(), &st, t0); err != ladder.ErrNotStarted {
		t.Errorf("got %v", err)
	}
}

func TestClearLockStartsANewAttempt(t *testing.T) {
	d := start(t, plan())
	if err := ladder.ClearLock(&d.st, d.now); err != ladder.ErrNotLocked {
		t.Errorf("clearing what is not locked: %v", err)
	}
	d.trip()
	d.pass(5, -1)
	d.trip()
	d.wantHold(ladder.WhyLocked)
	d.pass(1000, -1)
	d.wantHold(ladder.WhyLocked)
	if err := ladder.ClearLock(&d.st, d.now); err != nil {
		t.Fatal(err)
	}
	d.decide()
	d.wantWeight(1)
	d.wantPhase(release.Closed)
	if d.st.Attempt != 2 || d.st.Gate.Requests != 0 {
		t.Errorf("attempt %d with %d requests", d.st.Attempt, d.st.Gate.Requests)
	}
	d.pass(10, 30)
	d.wantWeight(5)
}

// TestAFreezeThatAdjoinsAnotherEndsWithIt: three days in two entries are one.
func TestAFreezeThatAdjoinsAnotherEndsWithIt(t *testing.T) {
	p := plan()
	p.Freezes = []ladder.Freeze{
		{Zone: time.UTC, Days: [7]bool{time.Monday: true}, To: 24 * time.Hour},
		{Zone: time.UTC, Days: [7]bool{time.Tuesday: true, time.Wednesday: true}, To: 24 * time.Hour},
	}
	until, frozen := p.Frozen(t0.Add(5 * time.Hour)) // t0 is a Monday
	if want := t0.AddDate(0, 0, 3); !frozen || !until.Equal(want) {
		t.Errorf("frozen %v until %s, want until %s", frozen, until, want)
	}
	p.Freezes = []ladder.Freeze{{Zone: time.UTC, Days: everyDay, To: 24 * time.Hour}}
	if until, frozen := p.Frozen(t0); !frozen || until.Sub(t0) < 30*24*time.Hour {
		t.Errorf("a freeze without end: frozen %v until %s", frozen, until)
	}
}
