package ladder_test

import (
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// timeOnly is a ladder that only the clock gates, so that its advances show
// what the clock says.
func timeOnly() *ladder.Plan { return plan(gates(ladder.TimeGate)) }

func TestHoldTimeCountsFromReadBack(t *testing.T) {
	d := &driver{t: t, plan: timeOnly(), now: t0, weight: pct(0), deaf: true}
	d.decide()
	d.pass(7, 30) // the write does not arrive; traffic there is
	if d.st.Stage != ladder.NotStarted || d.decision.Move != release.Start {
		t.Fatalf("before the read-back: stage %d, %s", d.st.Stage, d.decision.Move)
	}
	d.deaf = false
	d.decide() // read back at 7
	d.pass(9, 30)
	d.wantHold(ladder.WhyTime)
	if d.decision.Held != minutes(9) {
		t.Errorf("held %s nine minutes after the read-back", d.decision.Held)
	}
	d.pass(1, 30)
	d.wantWeight(5)
}

func TestHoldOfTheNextStepCountsFromItsOwnReadBack(t *testing.T) {
	d := start(t, timeOnly())
	d.pass(9, 30)
	d.deaf = true
	d.pass(4, 30) // the advance is asked for at 10 and not read back before 13
	d.deaf = false
	d.decide()
	d.wantWeight(5)
	d.pass(9, 30)
	d.wantWeight(5)
	d.pass(1, 30)
	d.wantWeight(10)
}

// TestAReadBackWithinAMinuteCountsWholeWindowsOnly: the window under way at the
// read-back is no time held, and no evidence.
func TestAReadBackWithinAMinuteCountsWholeWindowsOnly(t *testing.T) {
	d := &driver{t: t, plan: timeOnly(), now: t0.Add(20 * time.Second), weight: pct(0)}
	d.decide()
	d.now = t0
	d.pass(10, 30)
	d.wantHold(ladder.WhyTime)
	if d.decision.Covered != minutes(9) || d.st.Gate.Requests != 270 {
		t.Errorf("covered %s with %d requests, want 9 minutes with 270", d.decision.Covered, d.st.Gate.Requests)
	}
	d.pass(1, 30)
	d.wantWeight(5)
}

func TestBlindMinuteDoesNotCount(t *testing.T) {
	for name, blind := range map[string]func(d *driver){
		"source error":     func(d *driver) { d.failed = true; d.pass(30, -1); d.failed = false },
		"no canary window": func(d *driver) { d.pass(30, -1) },
		"no requests":      func(d *driver) { d.pass(30, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			d := start(t, timeOnly())
			d.pass(5, 30)
			blind(d)
			d.wantWeight(1)
			if d.decision.Held != minutes(5) {
				t.Errorf("held %s, want the 5 minutes with traffic", d.decision.Held)
			}
			d.pass(4, 30)
			d.wantWeight(1)
			d.pass(1, 30)
			d.wantWeight(5)
		})
	}
}

func TestPauseStopsTheClockButNotTheBreaker(t *testing.T) {
	d := start(t, timeOnly())
	d.pass(5, 30)
	if err := ladder.Pause(&d.st, d.now); err != nil {
		t.Fatal(err)
	}
	d.pass(60, 30)
	d.wantHold(ladder.WhyPaused)
	d.wantWeight(1)
	if err := ladder.Resume(&d.st, d.now); err != nil {
		t.Fatal(err)
	}
	d.pass(4, 30)
	d.wantHold(ladder.WhyTime)
	if d.decision.Held != minutes(9) {
		t.Errorf("held %s, want 9 minutes: the pause is left out", d.decision.Held)
	}
	d.pass(1, 30)
	d.wantWeight(5)

	if err := ladder.Pause(&d.st, d.now); err != nil {
		t.Fatal(err)
	}
	d.trip()
	d.wantWeight(0)
	d.wantPhase(release.Open)
}

// TestAPauseShownLateStopsTheClockToo: in CI promote may come once an hour, and
// see the windows of a pause only when it is over.
func TestAPauseShownLateStopsTheClockToo(t *testing.T) {
	d := start(t, timeOnly())
	d.pass(2, 30)
	if err := ladder.Pause(&d.st, d.now); err != nil {
		t.Fatal(err)
	}
	d.now = d.now.Add(minutes(50))
	if err := ladder.Resume(&d.st, d.now); err != nil {
		t.Fatal(err)
	}
	d.now = d.now.Add(minutes(3))
	var ws []release.Window
	for m := range 55 {
		w := d.window(30, 27)
		w.T = t0.Add(minutes(m))
		ws = append(ws, w)
	}
	d.decide(ws...)
	d.wantHold(ladder.WhyTime)
	if d.decision.Held != minutes(5) {
		t.Errorf("held %s, want 2 minutes before the pause and 3 after it", d.decision.Held)
	}
	if len(d.st.Pauses) != 0 {
		t.Errorf("a pause that no later window can lie in is still remembered: %v", d.st.Pauses)
	}
}

func TestPauseAndResumeAreNeverSilent(t *testing.T) {
	d := start(t, timeOnly())
	if err := ladder.Resume(&d.st, d.now); err != ladder.ErrNotPaused {
		t.Errorf("resume of what is not paused: %v", err)
	}
	if err := ladder.Pause(&d.st, d.now); err != nil {
		t.Fatal(err)
	}
	if err := ladder.Pause(&d.st, d.now); err != ladder.ErrPaused {
		t.Errorf("second pause: %v", err)
	}
}

func TestErrorHoldsAndNeverCountsAgainstTheCanary(t *testing.T) {
	d := start(t, plan())
	d.pass(9, 30)
	d.failed = true
	d.pass(200, -1)
	d.wantHold(ladder.WhySourceFailed)
	d.wantWeight(1)
	d.wantPhase(release.Closed)
	if d.decision.Verdict != release.Error {
		t.Errorf("verdict %s, want error", d.decision.Verdict)
	}
	for i, v := range d.decision.Verdicts {
		if v.Looked && v.Verdict != release.Error {
			t.Errorf("%s: %s while the source cannot be read", release.Signal(i), v.Verdict)
		}
	}
	if d.st.Latched != 0 {
		t.Errorf("errors latched %b", d.st.Latched)
	}
	d.failed = false
	d.pass(1, 30)
	d.wantWeight(5)
}

// TestErrorAndFailInTurnNeverPass: peers item 3.
func TestErrorAndFailInTurnNeverPass(t *testing.T) {
	d := start(t, plan(limitsHold))
	d.pass(9, 30)
	d.pass(1, 30, func(w *release.Window) { w.Violations = 3 }) // past the limit, and the signal holds
	for range 5 {
		d.failed = true
		d.pass(1, -1)
		d.failed = false
		d.pass(1, 30)
		d.wantHold(ladder.WhyFailing)
	}
	d.wantWeight(1)
}

func limitsHold(s *ladder.Step) {
	for i := range s.Limits.Rules {
		s.Limits.Rules[i].OnFail = release.HoldStep
	}
}

func TestMaxWaitIsAReasonNeverAPass(t *testing.T) {
	p := plan(func(s *ladder.Step) { s.MaxWait = minutes(30) })
	d := start(t, p)
	d.pass(29, 1)
	d.wantHold(ladder.WhyInsufficient)
	if d.decision.Overdue || strings.Contains(d.decision.Reason(), "max_wait") {
		t.Errorf("overdue after 29 of 30 minutes: %s", d.decision.Reason())
	}
	d.pass(1, 1)
	d.wantHold(ladder.WhyInsufficient)
	if !d.decision.Overdue || !strings.HasPrefix(d.decision.Reason(), "max_wait_min is over: 30 of 200 judged") {
		t.Errorf("overdue %v: %s", d.decision.Overdue, d.decision.Reason())
	}
	d.pass(100, 1)
	d.wantWeight(1)
	d.wantHold(ladder.WhyInsufficient)
}

// TestMaxWaitStandsDuringAPause: peers item 34.
func TestMaxWaitStandsDuringAPause(t *testing.T) {
	d := start(t, plan(func(s *ladder.Step) { s.MaxWait = minutes(30) }))
	d.pass(5, 1)
	if err := ladder.Pause(&d.st, d.now); err != nil {
		t.Fatal(err)
	}
	d.pass(120, 1)
	if err := ladder.Resume(&d.st, d.now); err != nil {
		t.Fatal(err)
	}
	d.pass(24, 1)
	if d.decision.Overdue {
		t.Error("overdue after 29 minutes besides the pause")
	}
	d.pass(1, 1)
	if !d.decision.Overdue {
		t.Error("not overdue after 30 minutes besides the pause")
	}
}
