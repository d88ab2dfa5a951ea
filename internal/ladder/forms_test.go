package ladder_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// stableOf returns a window of stable that ends now and is as long as span.
func (d *driver) stableOf(span time.Duration, judged, solved int64) release.Window {
	return release.Window{
		T: d.now.Add(-span), Span: span, Arm: release.Stable, Total: judged, Judged: judged, Solved: solved, Known: release.HasSolved,
	}
}

// forms sets the limits of the forms that differ from the published ones.
func forms(set func(*breaker.Limits)) func(*ladder.Step) {
	return limits(func(l *breaker.Limits) {
		l.SolveBaseline = release.MustRatio("0.9")
		set(l)
	})
}

func againstStable(l *breaker.Limits) { l.AgainstStable = true }

// TestStablesWindowsInTheSameSpanAreTheControl: whole ones whose solve rate is
// known, and no others.
func TestStablesWindowsInTheSameSpanAreTheControl(t *testing.T) {
	for _, tc := range []struct {
		name   string
		stable func(d *driver) []release.Window
		judged int64 // of stable, by the gate, in 10 minutes
		solved int64
	}{
		{"one a minute", func(d *driver) []release.Window { return []release.Window{d.stableOf(time.Minute, 90, 72)} }, 900, 720},
		{"three of 20 seconds, one of unknown rate", func(d *driver) []release.Window {
			a, b, c := d.stableOf(time.Minute, 30, 24), d.stableOf(40*time.Second, 30, 20), d.stableOf(20*time.Second, 30, 25)
			a.Span, b.Span, b.Known = 20*time.Second, 20*time.Second, 0
			return []release.Window{a, b, c}
		}, 600, 490},
		{"the minutes around are none", func(d *driver) []release.Window {
			before, after := d.stableOf(time.Minute, 90, 72), d.stableOf(time.Minute, 90, 72)
			before.T, after.T = before.T.Add(-time.Minute), after.T.Add(time.Minute)
			return []release.Window{before, d.stableOf(time.Minute, 50, 40), after}
		}, 500, 400},
		{"longer than the canary's are none", func(d *driver) []release.Window { return []release.Window{d.stableOf(2*time.Minute, 90, 72)} }, 0, 0},
		{"reaching beyond its end are none", func(d *driver) []release.Window {
			w := d.stableOf(time.Minute, 90, 72)
			w.Span = 2 * time.Minute
			return []release.Window{w}
		}, 0, 0},
		{"not there", func(*driver) []release.Window { return nil }, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := start(t, plan(forms(againstStable), hold(60)))
			for range 10 {
				d.now = d.now.Add(time.Minute)
				d.stable = tc.stable(d)
				d.decide(d.window(30, 27))
			}
			f := d.decision.Verdicts[release.SolveRate].Finding
			if f.ControlJudged != tc.judged || f.ControlSolved != tc.solved || (f.Form == release.Concurrent) != (tc.judged > 0) {
				t.Errorf("%q with %d of %d of stable, want %d of %d", f.Form, f.ControlSolved, f.ControlJudged, tc.solved, tc.judged)
			}
		})
	}
}

// TestABadDayOfBothArmsIsNotTheCanarys: stable is as bad, so nothing trips and
// the gate passes; worse than stable by the drop trips at any level.
func TestABadDayOfBothArmsIsNotTheCanarys(t *testing.T) {
	run := func(canary, stable int64) *driver {
		d := start(t, plan(forms(againstStable)))
		for range 12 {
			d.now = d.now.Add(time.Minute)
			d.stable = []release.Window{d.stableOf(time.Minute, 100, stable)}
			d.decide(d.window(30, canary))
		}
		return d
	}
	run(21, 75).wantWeight(5) // 70 % against 75 %
	d := run(27, 100)         // 90 % against 100 %
	const want = "189 of 210 solved in 25 minutes (90 % against stable's 100 %), trips at 90 % or less"
	if len(d.events) == 0 || d.events[0].Finding.String() != want {
		t.Errorf("got %v, want %q", d.events, want)
	}
	d = start(t, plan(forms(againstStable))) // and without stable, the baseline
	d.pass(7, 30, func(w *release.Window) { w.Solved = 21 })
	d.wantPhase(release.Open)
	if f := d.events[0].Finding; f.Form != release.Published {
		t.Errorf("judged by %q without a control", f.Form)
	}
}

// TestLateLabelsOfBothArmsAreReadTogether: the control of a window that is shown
// again is what stable's windows say now.
func TestLateLabelsOfBothArmsAreReadTogether(t *testing.T) {
	lag := func(s *ladder.Step) { s.Limits.LabelLag, s.Limits.Keep = minutes(3), minutes(60) }
	d := start(t, plan(forms(againstStable), lag, hold(60)))
	var canary, stable []release.Window
	for range 20 {
		d.now = d.now.Add(time.Minute)
		for i := range canary { // the labels of the minutes before have come in
			canary[i].Solved, stable[i].Solved = 27, 90
		}
		canary, stable = append(canary, d.window(30, 3)), append(stable, d.stableOf(time.Minute, 100, 10))
		canary, stable = canary[max(0, len(canary)-4):], stable[max(0, len(stable)-4):]
		d.stable = append([]release.Window(nil), stable...)
		d.decide(append([]release.Window(nil), canary...)...)
	}
	f := d.decision.Verdicts[release.SolveRate].Finding
	if f.Form != release.Concurrent || f.Count*10 != f.Of*9 || f.ControlSolved*10 != f.ControlJudged*9 || f.Of == 0 {
		t.Errorf("judged %s", f)
	}
}

// TestTheGateJudgesByTheBreakersForm, with the same limit to the last count.
func TestTheGateJudgesByTheBreakersForm(t *testing.T) {
	noise := func(tail breaker.Tail) func(*ladder.Step) {
		return forms(func(l *breaker.Limits) {
			l.SlowSpan, l.Noise = minutes(5), breaker.Noise{Z: 4, Tau: 0.02, Tail: tail}
		})
	}
	for _, tc := range []struct {
		name string
		set  func(*ladder.Step)
		form release.Form
	}{
		{"fitted", noise(breaker.NormalTail), release.Fitted},
		{"fitted, exact tail", noise(breaker.ExactTail), release.FittedExact},
	} {
		t.Run(tc.name, func(t *testing.T) {
			step := ladder.Step{Limits: published()}
			tc.set(&step)
			passes := int64(160)
			for !step.Limits.SolveTrips(&breaker.SolveCounts{Judged: 200, Solved: passes - 1}) {
				passes--
			}
			if passes >= 160 {
				t.Fatalf("noise explains nothing: 1 below %d of 200 trips", passes)
			}
			for _, solved := range []int64{passes, passes - 1} {
				d := start(t, plan(tc.set))
				left := solved
				for range 10 {
					n := min(left, 20)
					left -= n
					d.pass(1, 20, func(w *release.Window) { w.Solved = n })
				}
				if solved == passes {
					d.wantWeight(5)
					continue
				}
				d.wantWeight(0)
				if d.st.Stage != ladder.Failed || len(d.events) != 0 || d.rolledBack.Form != tc.form {
					t.Errorf("stage %d, events %v, by %s", d.st.Stage, d.events, d.rolledBack)
				}
			}
		})
	}
}

// TestTheGateOfACumulativeSumIsTheWindowForm, and no span is called blind.
func TestTheGateOfACumulativeSumIsTheWindowForm(t *testing.T) {
	d := start(t, plan(hold(0), forms(func(l *breaker.Limits) {
		l.Judge, l.Cusum = breaker.CusumJudge, breaker.Cusum{Drop: release.MustRatio("0.1"), Limit: 11}
	})))
	d.pass(33, 6, func(w *release.Window) { w.Solved = 6 })
	d.wantHold(ladder.WhyInsufficient)
	if got := d.decision.Reason(); strings.Contains(got, "blind") {
		t.Error(got)
	}
	if f := d.decision.Verdicts[release.SolveRate].Finding; f.Form != release.Published || f.Of != 198 {
		t.Errorf("%+v", f)
	}
	d.pass(1, 6)
	d.wantWeight(5)
	d.pass(5, 6, func(w *release.Window) { w.Solved = 2 })
	d.wantPhase(release.Open)
	if f := d.events[0].Finding; f.Form != release.CumulativeSum {
		t.Errorf("tripped by %s", f)
	}
}

// TestALongerSpanIsBlindForLonger: the note counts with how far the span may
// reach back.
func TestALongerSpanIsBlindForLonger(t *testing.T) {
	d := start(t, plan(hold(0), limits(func(l *breaker.Limits) { l.SlowSpanMax = minutes(60) })))
	d.pass(33, 6, func(w *release.Window) { w.Solved = 6 })
	d.wantHold(ladder.WhyInsufficient)
	if got := d.decision.Reason(); strings.Contains(got, "blind") {
		t.Error(got)
	}
}

func TestSlowRequestsAreNeededOnceSupplied(t *testing.T) {
	byCount := limits(func(l *breaker.Limits) { l.P99ByCount, l.SlowRate, l.MinSlow = true, release.MustRatio("0.06"), 3 })
	slow := func(n int64) func(*release.Window) {
		return func(w *release.Window) { w.Slow, w.Known = n, w.Known|release.HasSlow }
	}
	d := start(t, plan(byCount))
	d.pass(10, 30, p99(9000)) // a p99 is not what is asked for
	d.wantWeight(5)
	d.pass(6, 30, slow(1))
	d.pass(4, 30)
	d.wantHold(ladder.WhyInsufficient)
	d.pass(1, 30, slow(0))
	d.wantWeight(10)
	d = start(t, plan(byCount, hold(60)))
	d.pass(20, 30, slow(1))
	v := d.decision.Verdicts[release.P99]
	want := release.Finding{Signal: release.P99, Form: release.ByCount, Value: 20.0 / 600, Limit: 0.06, Count: 20, Of: 600, Span: minutes(20)}
	if diff := cmp.Diff(want, v.Finding); diff != "" || v.Verdict != release.Pass {
		t.Errorf("%s\n%s", v.Verdict, diff)
	}
	d.pass(5, 30, slow(2))
	d.wantPhase(release.Open)
}

func p99(ms float64) func(*release.Window) {
	return func(w *release.Window) { w.P99MS, w.Known = ms, w.Known|release.HasP99 }
}
