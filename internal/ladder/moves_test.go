package ladder_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

func TestTheWholeLadder(t *testing.T) {
	d := start(t, plan())
	d.pass(40, 30)
	if d.st.Stage != ladder.Completed {
		t.Fatalf("not complete: %s", d.decision.Reason())
	}
	want := []release.Move{release.Start, release.Advance, release.Advance, release.Advance, release.Complete}
	if !slices.Equal(d.moves, want) {
		t.Errorf("moves %v, want %v", d.moves, want)
	}
	if !slices.EqualFunc(d.writes, []release.Weight{pct(1), pct(5), pct(10), pct(100)}, release.Weight.Same) {
		t.Errorf("writes %v", d.writes)
	}
	d.pass(100, 30)
	d.wantHold(ladder.WhyCompleted)
	d.wantWeight(100) // the weight stays at 1
}

// TestCompleteIsSaidAfterTheLastGatesOnly: at 100 % and not a minute earlier.
func TestCompleteIsSaidAfterTheLastGatesOnly(t *testing.T) {
	d := start(t, plan())
	d.pass(39, 30)
	d.wantWeight(100)
	if slices.Contains(d.moves, release.Complete) {
		t.Fatal("complete before the last step was held")
	}
}

func TestAtMostOneStepForward(t *testing.T) {
	d := start(t, plan(hold(0), gates(ladder.TimeGate)))
	d.pass(1, 30)
	d.wantWeight(5) // every gate is open, and one Decide a minute takes one step
	d.decide()
	d.wantWeight(5)
	d.pass(1, 30)
	d.wantWeight(10)
}

// TestManyWindowsAtOnceAreOneStep: after a long silence a single Decide sees
// evidence enough for every step, all of it from the first one.
func TestManyWindowsAtOnceAreOneStep(t *testing.T) {
	d := start(t, plan())
	var ws []release.Window
	for range 500 {
		d.now = d.now.Add(minutes(1))
		ws = append(ws, d.window(30, 27))
	}
	d.decide(ws...)
	d.wantWeight(5)
	d.wantHold(ladder.WhyTime)
	if d.st.Gate.Requests != 0 {
		t.Errorf("the next step starts with %d requests of the step before", d.st.Gate.Requests)
	}
}

// TestAnAdvanceThatDidNotArriveIsAskedForAgain, and the step does not change
// before the read-back.
func TestAnAdvanceThatDidNotArriveIsAskedForAgain(t *testing.T) {
	d := start(t, plan())
	d.deaf = true
	d.pass(15, 30)
	if d.st.Step != 0 || d.decision.Move != release.Advance || !d.decision.Write || !d.decision.Weight.Same(pct(5)) {
		t.Fatalf("step %d, %s %s", d.st.Step, d.decision.Move, d.decision.Weight)
	}
	d.deaf = false
	d.decide()
	if d.st.Step != 1 || !d.st.At.Equal(d.now) {
		t.Fatalf("step %d entered at %s", d.st.Step, d.st.At)
	}
}

func TestUnfinishedRollbackFirst(t *testing.T) {
	for name, next := range map[string]func(d *driver){
		"the next minute":        func(d *driver) { d.pass(1, 30) },
		"after a long silence":   func(d *driver) { d.now = d.now.Add(minutes(600)); d.decide() },
		"another candidate":      func(d *driver) { q := *d.plan; q.Candidate = "c2"; d.plan = &q; d.decide() },
		"another configuration":  func(d *driver) { q := *d.plan; q.Digest = "d2"; d.plan = &q; d.decide() },
		"somebody else's weight": func(d *driver) { d.weight = pct(30); d.decide() },
		"a pause":                func(d *driver) { _ = ladder.Pause(&d.st, d.now); d.decide() },
		"source failed":          func(d *driver) { d.failed = true; d.decide() },
		"target unreadable":      func(d *driver) { d.unread = true; d.decide() },
	} {
		t.Run(name, func(t *testing.T) {
			d := start(t, plan())
			d.pass(5, 30)
			d.deaf = true
			d.trip()
			if len(d.writes) < 2 || !d.writes[len(d.writes)-1].IsZero() {
				t.Fatalf("no rollback was asked for: %v", d.writes)
			}
			next(d)
			if d.decision.Move != release.RollBackMove || !d.decision.Write || !d.decision.Weight.IsZero() {
				t.Fatalf("%s, write %v of %s (%s)", d.decision.Move, d.decision.Write, d.decision.Weight, d.decision.Reason())
			}
			d.deaf, d.unread = false, false
			d.decide()
			d.wantWeight(0)
		})
	}
}

// TestUnfinishedRollbackOutlivesItsRelease: a lock over it is not cleared, and no
// restart forgets that the weight has not been read back as 0.
func TestUnfinishedRollbackOutlivesItsRelease(t *testing.T) {
	for name, next := range map[string]func(d *driver){
		"clear lock": func(d *driver) {
			if err := ladder.ClearLock(&d.st, d.now); !errors.Is(err, ladder.ErrUnfinished) {
				d.t.Fatalf("a lock over an unfinished rollback was cleared: %v", err)
			}
		},
		"restart":           func(d *driver) { ladder.Restart(&d.st) },
		"another candidate": func(d *driver) { q := *d.plan; q.Candidate = "c2"; d.plan = &q },
	} {
		t.Run(name, func(t *testing.T) {
			d := start(t, plan())
			d.pass(10, 30) // at 5 %
			d.wantWeight(5)
			d.deaf = true
			if _, err := ladder.RollBack(d.plan, &d.st, d.now); err != nil {
				t.Fatal(err)
			}
			next(d)
			d.once()
			if d.decision.Move != release.RollBackMove || !d.decision.Weight.IsZero() {
				t.Fatalf("%s of %s (%s)", d.decision.Move, d.decision.Weight, d.decision.Reason())
			}
			d.deaf = false
			d.once() // written
			d.decide()
			if name == "clear lock" {
				d.wantWeight(0)
				return
			}
			d.wantWeight(1)
			if d.writes[len(d.writes)-2].Slots != 0 {
				t.Errorf("writes %v: the start came before the rollback", d.writes)
			}
		})
	}
}

func TestHalfOpenIsNeverEnteredForAPastTime(t *testing.T) {
	d := start(t, plan())
	d.pass(5, 30)
	d.trip()
	var ws []release.Window
	for range 54 { // nobody looks for most of an hour
		d.now = d.now.Add(minutes(1))
		ws = append(ws, d.window(30, 27))
	}
	d.once(ws...)
	if d.decision.Move != release.Probe || !d.decision.Event.T.Equal(d.now) {
		t.Fatalf("%s at %s, want a probe now, %s", d.decision.Move, d.decision.Event.T, d.now)
	}
	d.decide(ws...)
	d.wantPhase(release.HalfOpen)
	if d.st.Breaker.Round.Done != 0 {
		t.Errorf("%d windows from before the probe's weight are probes", d.st.Breaker.Round.Done)
	}
	d.pass(5, 30)
	d.wantPhase(release.Closed)
}

// TestProbesCountFromTheReadBack: windows that started before the probes'
// weight was read back are neither probe nor evidence.
func TestProbesCountFromTheReadBack(t *testing.T) {
	d := start(t, plan())
	d.pass(5, 30)
	d.trip()
	d.pass(4, -1)
	d.deaf = true
	d.pass(4, 30, func(w *release.Window) { w.Violations = 9 }) // somebody else's traffic, while the write is under way
	if d.decision.Move != release.Probe {
		t.Fatalf("%s: %s", d.decision.Move, d.decision.Reason())
	}
	d.deaf = false
	d.decide()
	d.wantWeight(1)
	d.wantHold(ladder.WhyProbing)
	d.pass(5, 30)
	d.wantPhase(release.Closed)
}

// TestAWindowShownLateIsNoProbe: it began before the probes' weight was read
// back and comes in after it.
func TestAWindowShownLateIsNoProbe(t *testing.T) {
	d := start(t, plan())
	d.pass(5, 30)
	d.trip()
	d.pass(4, -1)
	d.now = d.now.Add(minutes(1))
	late := d.window(30, 0)
	late.Violations = 9
	d.decide()
	d.wantHold(ladder.WhyProbing)
	d.decide(late)
	d.wantPhase(release.HalfOpen)
	d.pass(5, 30)
	d.wantPhase(release.Closed)
}

// TestOpenNeverLeavesToAHigherWeight: peers item 61. A trip at 10 % probes at
// the first step's share.
func TestOpenNeverLeavesToAHigherWeight(t *testing.T) {
	d := start(t, plan())
	d.pass(25, 30)
	d.wantWeight(10)
	d.trip()
	d.wantWeight(0)
	d.pass(4, -1)
	d.wantWeight(0)
	d.wantHold(ladder.WhyCooldown)
	d.pass(1, -1)
	d.wantWeight(1)
	d.wantHold(ladder.WhyProbing)
}

func TestRecoveryRestartsAtTheFirstStep(t *testing.T) {
	d := start(t, plan())
	d.pass(25, 30)
	d.wantWeight(10)
	d.trip()
	d.pass(5, -1)
	d.pass(4, 30)
	d.wantPhase(release.HalfOpen)
	d.pass(1, 30)
	d.wantPhase(release.Closed)
	d.wantWeight(1)
	if d.st.Attempt != 2 || d.st.Step != 0 {
		t.Errorf("attempt %d at step %d", d.st.Attempt, d.st.Step+1)
	}
	if d.st.Gate.Requests != 0 || d.st.Covered != 0 || !d.st.At.Equal(d.now) {
		t.Errorf("gate and hold start with %+v, %s, since %s", d.st.Gate, d.st.Covered, d.st.At)
	}
	d.pass(9, 30)
	d.wantWeight(1)
	d.pass(1, 30)
	d.wantWeight(5)
}

// TestRecoveryForgetsWhatLatched: a failure latches within its attempt only.
func TestRecoveryForgetsWhatLatched(t *testing.T) {
	d := start(t, plan(limits(func(l *breaker.Limits) { l.Rules[release.Transfers].OnFail = release.HoldStep })))
	d.pass(10, 30, func(w *release.Window) { w.Transfers = 9 })
	d.wantHold(ladder.WhyFailing)
	d.trip()
	d.pass(5, -1)
	d.pass(5, 30)
	d.wantPhase(release.Closed)
	d.pass(10, 30)
	d.wantWeight(5)
}

// TestWindowsFromBeforeTheFirstWeightAreNoEvidence: what the canary did before
// the release is shown, and is none of its doing.
func TestWindowsFromBeforeTheFirstWeightAreNoEvidence(t *testing.T) {
	d := &driver{t: t, plan: plan(), now: t0.Add(minutes(10)), weight: pct(1)}
	var old []release.Window
	for m := range 10 {
		w := d.window(30, 0)
		w.T, w.Violations = t0.Add(minutes(m)), 9
		old = append(old, w)
	}
	d.decide(old...)
	d.pass(1, 30)
	d.wantWeight(1)
	d.wantPhase(release.Closed)
	if d.st.Gate.Requests != 30 {
		t.Errorf("the gate holds %d requests", d.st.Gate.Requests)
	}
}

// TestTheWindowOfAnAdvanceIsTheBreakersAlone: it began under the step before,
// so the new step's gate does not count it; the breaker, of which an advance
// drops nothing, does.
func TestTheWindowOfAnAdvanceIsTheBreakersAlone(t *testing.T) {
	for _, violations := range []int64{0, 3} {
		d := start(t, plan())
		d.pass(9, 30)
		d.deaf = true
		d.pass(1, 30)
		d.deaf, d.weight = false, pct(5)
		d.now = d.now.Add(30 * time.Second)
		d.decide() // read back half a minute into the window
		d.now = d.now.Add(30 * time.Second)
		w := d.window(30, 27)
		w.Violations = violations
		d.decide(w)
		if violations > 0 {
			d.wantWeight(0)
			continue
		}
		if d.st.Step != 1 || d.st.Gate.Requests != 0 || d.st.Covered != 0 {
			t.Errorf("step %d holds %d requests over %s", d.st.Step+1, d.st.Gate.Requests, d.st.Covered)
		}
	}
}

// TestSoakIsCountedAtThisEntry: peers item 14.
func TestSoakIsCountedAtThisEntry(t *testing.T) {
	d := start(t, plan())
	d.pass(9, 30) // nine of ten minutes at 1 %
	d.trip()
	d.pass(5, -1)
	d.pass(5, 30)
	d.wantPhase(release.Closed)
	d.pass(9, 30)
	d.wantWeight(1)
	d.pass(1, 30)
	d.wantWeight(5)
}

func TestAdoptsAWeightUpToTheFirstStep(t *testing.T) {
	for _, share := range []int64{0, 1} {
		d := &driver{t: t, plan: plan(), now: t0, weight: pct(share)}
		d.decide()
		d.wantWeight(1)
		if d.st.Stage != ladder.Climbing {
			t.Errorf("from %d %%: %s", share, d.decision.Reason())
		}
	}
	finer := &driver{t: t, plan: plan(), now: t0, weight: release.Weight{Slots: 5, Ring: 1000}}
	finer.decide()
	finer.wantWeight(1)
}

func TestAboveFirstStepIsDrift(t *testing.T) {
	for _, share := range []int64{2, 5, 7, 100} {
		d := &driver{t: t, plan: plan(), now: t0, weight: pct(share)}
		d.decide()
		d.pass(100, 30)
		d.wantHold(ladder.WhyDrift)
		if len(d.writes) != 0 {
			t.Errorf("from %d %%: wrote %v", share, d.writes)
		}
		if _, err := ladder.RollBack(d.plan, &d.st, d.now); err != nil { // drift stops everything but rollback
			t.Fatalf("rollback from %d %%: %v", share, err)
		}
		d.decide()
		d.wantWeight(0)
	}
}

func TestDriftStopsEverythingButRollback(t *testing.T) {
	t.Run("advance", func(t *testing.T) {
		d := start(t, plan())
		d.pass(5, 30)
		d.weight = pct(7) // off the ladder: the machine stops
		d.pass(60, 30)
		d.wantHold(ladder.WhyDrift)
		d.wantWeight(7)
		d.weight = pct(1)
		d.pass(1, 30)
		d.wantWeight(5)
	})
	t.Run("complete", func(t *testing.T) {
		d := start(t, plan())
		d.pass(35, 30)
		d.wantWeight(100)
		d.weight = pct(99)
		d.pass(60, 30)
		d.wantHold(ladder.WhyDrift)
	})
	t.Run("probe", func(t *testing.T) {
		d := start(t, plan())
		d.pass(5, 30)
		d.trip()
		d.weight = pct(5) // while OPEN
		d.pass(60, -1)
		d.wantHold(ladder.WhyDrift)
		d.wantPhase(release.Open)
		d.wantWeight(5)
		d.weight = pct(0)
		d.pass(1, -1)
		d.wantPhase(release.HalfOpen)
	})
	t.Run("not the breaker's rollback", func(t *testing.T) {
		d := start(t, plan())
		d.pass(5, 30)
		d.weight = pct(50)
		d.trip()
		d.wantWeight(0)
	})
	t.Run("not a person's rollback", func(t *testing.T) {
		d := start(t, plan())
		d.weight = pct(50)
		d.decide()
		if _, err := ladder.RollBack(d.plan, &d.st, d.now); err != nil {
			t.Fatal(err)
		}
		d.decide()
		d.wantWeight(0)
	})
}

func TestOtherCandidateConflicts(t *testing.T) {
	other := func(p *ladder.Plan) *ladder.Plan { q := *p; q.Candidate, q.Digest = "c2", "d2"; return &q }
	t.Run("while climbing", func(t *testing.T) {
		d := start(t, plan())
		d.pass(15, 30)
		d.plan = other(d.plan)
		d.pass(60, 30)
		d.wantHold(ladder.WhyOtherCandidate)
		d.wantWeight(5)
		if d.st.Candidate != "c1" {
			t.Errorf("the state has become %s's", d.st.Candidate)
		}
	})
	t.Run("while cooling down", func(t *testing.T) {
		d := start(t, plan())
		d.trip()
		d.plan = other(d.plan)
		d.pass(60, -1)
		d.wantHold(ladder.WhyOtherCandidate)
		d.wantWeight(0)
	})
	t.Run("restart gives it up", func(t *testing.T) {
		d := start(t, plan())
		d.pass(5, 30)
		d.plan = other(d.plan)
		ladder.Restart(&d.st)
		d.decide()
		d.wantWeight(1)
		if d.st.Candidate != "c2" || d.st.Attempt != 1 || d.st.Gate.Requests != 0 {
			t.Errorf("candidate %s, attempt %d, %d requests", d.st.Candidate, d.st.Attempt, d.st.Gate.Requests)
		}
	})
	t.Run("after a failed gate, at which nobody has looked", func(t *testing.T) {
		d := start(t, plan())
		d.st.Stage = ladder.Failed
		d.plan = other(d.plan)
		d.decide()
		d.wantHold(ladder.WhyOtherCandidate)
	})
	t.Run("but not after a person's rollback", func(t *testing.T) {
		d := start(t, plan())
		if _, err := ladder.RollBack(d.plan, &d.st, d.now); err != nil {
			t.Fatal(err)
		}
		d.decide()
		d.plan = other(d.plan)
		d.decide()
		d.wantWeight(1)
		d.wantPhase(release.Closed)
		if d.st.Candidate != "c2" || d.st.Attempt != 1 {
			t.Errorf("candidate %s, attempt %d", d.st.Candidate, d.st.Attempt)
		}
	})
}

func TestChangedThresholdHoldsUntilAccepted(t *testing.T) {
	d := start(t, plan())
	d.pass(9, 30)
	changed := *d.plan
	changed.Digest = "d2"
	old := d.plan
	d.plan = &changed
	d.pass(60, 30)
	d.wantHold(ladder.WhyConfigChanged)
	d.wantWeight(1)
	if err := ladder.AcceptConfig(old, &d.st); err != ladder.ErrConfigIsSame {
		t.Errorf("accepting what has not changed: %v", err)
	}
	if err := ladder.AcceptConfig(d.plan, &d.st); err != nil {
		t.Fatal(err)
	}
	d.pass(1, 30)
	d.wantWeight(5)
}

// TestAChangedLadderIsAcceptedOnlyWhereItHasTheWeight: with fewer steps than
// the release has climbed nothing breaks, and a weight off the new ladder is
// refused.
func TestAChangedLadderIsAcceptedOnlyWhereItHasTheWeight(t *testing.T) {
	d := start(t, plan())
	d.pass(25, 30)
	d.wantWeight(10)
	shorter := *d.plan
	shorter.Digest, shorter.Steps = "d2", []ladder.Step{d.plan.Steps[0], d.plan.Steps[3]}
	d.plan = &shorter
	d.pass(5, 30)
	d.wantHold(ladder.WhyConfigChanged)
	if err := ladder.AcceptConfig(d.plan, &d.st); err != ladder.ErrOffLadder {
		t.Errorf("10 %% on a ladder of 1 and 100 %%: %v", err)
	}
	kept := *d.plan
	kept.Digest, kept.Steps = "d3", append([]ladder.Step{shorter.Steps[0]}, plan().Steps[2:]...)
	d.plan = &kept
	if err := ladder.AcceptConfig(d.plan, &d.st); err != nil {
		t.Fatal(err)
	}
	d.pass(30, 30)
	d.wantWeight(100)
}

// TestACandidateThatAPersonRolledBackDoesNotComeBackByItself, whatever was
// released in between.
func TestACandidateThatAPersonRolledBackDoesNotComeBackByItself(t *testing.T) {
	d := start(t, plan())
	first := d.plan
	if _, err := ladder.RollBack(d.plan, &d.st, d.now); err != nil {
		t.Fatal(err)
	}
	d.weight = pct(0)
	d.decide()
	other := *first
	other.Candidate = "c2"
	d.plan = &other
	d.now = d.now.Add(minutes(1))
	d.decide()
	d.wantWeight(1)
	if _, err := ladder.RollBack(d.plan, &d.st, d.now); err != nil {
		t.Fatal(err)
	}
	d.weight, d.plan = pct(0), first
	d.decide()
	d.pass(10, 30)
	d.wantWeight(0)
	d.wantHold(ladder.WhyFailed)
	if err := ladder.ClearLock(&d.st, d.now); err != nil {
		t.Fatal(err)
	}
	d.pass(1, 30)
	d.wantWeight(1)
}

// TestNoCandidateIsNotAnotherOne: a configuration that names none does not
// replace a release, nor does a source that cannot be read begin one.
func TestNoCandidateIsNotAnotherOne(t *testing.T) {
	d := start(t, plan())
	if _, err := ladder.RollBack(d.plan, &d.st, d.now); err != nil {
		t.Fatal(err)
	}
	d.weight = pct(0)
	d.decide()
	none := *d.plan
	none.Candidate = ""
	d.plan = &none
	d.decide()
	d.wantHold(ladder.WhyOtherCandidate)
	fresh := &driver{t: t, plan: plan(), now: t0, weight: pct(0), failed: true}
	fresh.decide()
	fresh.wantWeight(0)
	fresh.wantHold(ladder.WhySourceFailed)
}
