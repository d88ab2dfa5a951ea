package ladder_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

func TestPassNeedsPositiveEvidence(t *testing.T) {
	for name, tc := range map[string]struct {
		total  int64
		change func(*release.Window)
		why    ladder.Why
	}{
		"no windows at all":  {-1, nil, ladder.WhyTime},
		"empty windows":      {0, nil, ladder.WhyTime},
		"nothing judged":     {30, func(w *release.Window) { w.Judged, w.Solved = 0, 0 }, ladder.WhyNoData},
		"no solve rate":      {30, func(w *release.Window) { w.Known &^= release.HasSolved }, ladder.WhyNoData},
		"no violation count": {30, func(w *release.Window) { w.Known &^= release.HasViolations }, ladder.WhyNoData},
		"no transfer count":  {30, func(w *release.Window) { w.Known &^= release.HasTransfers }, ladder.WhyNoData},
		"too few":            {1, nil, ladder.WhyInsufficient},
	} {
		t.Run(name, func(t *testing.T) {
			d := start(t, plan())
			if tc.change == nil {
				tc.change = func(*release.Window) {}
			}
			d.pass(60, tc.total, tc.change)
			d.wantHold(tc.why)
			d.wantWeight(1)
			if d.decision.Verdict == release.Pass {
				t.Error("the gate passes")
			}
		})
	}
}

// TestAGateThatLooksAtNothingDoesNotPass: every signal is off or observed.
func TestAGateThatLooksAtNothingDoesNotPass(t *testing.T) {
	for name, mode := range map[string]release.Mode{"off": release.Off, "observe": release.Observe} {
		t.Run(name, func(t *testing.T) {
			d := start(t, plan(limits(func(l *breaker.Limits) {
				for i := range l.Rules {
					l.Rules[i].Mode = mode
				}
			})))
			d.pass(60, 30)
			d.wantHold(ladder.WhyNoData)
		})
	}
}

func TestInsufficientHoldsAndSaysHowLong(t *testing.T) {
	d := start(t, plan(hold(0)))
	for _, n := range []int64{3, 3, 2, 3, 3, 2, 3, 3, 2, 3} { // 27 in ten minutes
		d.pass(1, n)
	}
	for _, n := range []int64{3, 2, 3, 3, 2, 3, 3, 2, 3, 2} { // 26 more in each of four
		for range 4 {
			d.pass(1, n)
		}
	}
	for _, n := range []int64{3, 3, 3} { // 140 in 53
		d.pass(1, n)
	}
	d.wantHold(ladder.WhyInsufficient)
	const want = "140 of 200 judged; about 23 more minutes at the present 2.6 a minute"
	if got := d.decision.Reason(); !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if left, ok := d.decision.Remaining(); !ok || left != minutes(23) {
		t.Errorf("remaining %s, %v", left, ok)
	}
}

// TestTheRateLeavesLabelsInFlightOut: with a label lag the last minutes are not
// judged yet and must not make the rate look lower than it is.
func TestTheRateLeavesLabelsInFlightOut(t *testing.T) {
	d := start(t, plan(hold(0), limits(func(l *breaker.Limits) { l.LabelLag = minutes(20) })))
	all := func(w *release.Window) { w.Solved = w.Judged }
	d.pass(30, 5, all) // windows up to 20 minutes back: 10 of 30
	d.wantHold(ladder.WhyInsufficient)
	const want = "50 of 200 judged; about 30 more minutes at the present 5 a minute"
	if got := d.decision.Reason(); !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	d.pass(29, 5, all)
	d.wantWeight(1)
	d.pass(1, 5, all)
	d.wantWeight(5)
}

func TestNoDataSaysWhatIsMissing(t *testing.T) {
	d := start(t, plan(hold(0)))
	d.pass(10, -1)
	d.wantHold(ladder.WhyNoData)
	if got := d.decision.Reason(); got != "no canary traffic seen at this step" {
		t.Error(got)
	}
	d.pass(10, 30, func(w *release.Window) { w.Known &^= release.HasTransfers })
	if got := d.decision.Reason(); got != "no data for transfers at this step" {
		t.Error(got)
	}
	if _, ok := d.decision.Remaining(); ok {
		t.Error("says how long until figures come that never came")
	}
}

// TestRatesAreReadable at high traffic: no exponent.
func TestRatesAreReadable(t *testing.T) {
	d := start(t, plan(hold(0), limits(func(l *breaker.Limits) { l.MinSamples = 5000 })))
	d.pass(10, 150)
	if got := d.decision.Reason(); !strings.Contains(got, "about 24 more minutes at the present 150 a minute") {
		t.Error(got)
	}
}

func TestStepGateCanPassWhileTheBreakersSpanIsBlind(t *testing.T) {
	d := start(t, plan(hold(0)))
	d.pass(33, 6, func(w *release.Window) { w.Solved = 6 })
	d.wantHold(ladder.WhyInsufficient)
	reason := d.decision.Reason()
	for _, want := range []string{"198 of 200 judged", "25 minutes hold only about 150 of them", "slow layer stays blind"} {
		if !strings.Contains(reason, want) {
			t.Errorf("%q does not say %q", reason, want)
		}
	}
	d.pass(1, 6)
	d.wantWeight(5)
	if d.now != t0.Add(minutes(34)) {
		t.Errorf("passed at %s", d.now)
	}
}

// TestTheGateUsesThisStepsEvidenceOnly: nothing from the step before.
func TestTheGateUsesThisStepsEvidenceOnly(t *testing.T) {
	d := start(t, plan())
	d.pass(10, 100)
	d.wantWeight(5)
	if d.st.Gate != (ladder.Tally{}) {
		t.Fatalf("the next step starts with %+v", d.st.Gate)
	}
	d.pass(10, 10)
	d.wantHold(ladder.WhyInsufficient)
	if got := d.decision.Verdicts[release.SolveRate].Finding.Of; got != 100 {
		t.Errorf("judges %d requests, want the 100 of this step", got)
	}
}

// TestGatesUseTheSameLimitsToTheLastCount: 160 of 200 fails, 161 passes; 2 of
// 3 violations pass.
func TestGatesUseTheSameLimitsToTheLastCount(t *testing.T) {
	blind := limits(func(l *breaker.Limits) { l.SlowSpan = minutes(5) }) // the breaker itself stays silent
	for _, tc := range []struct {
		name       string
		solved     int64
		violations []int // minutes with one violation each
		want       release.Verdict
	}{
		{"161 of 200", 161, nil, release.Pass},
		{"160 of 200", 160, nil, release.Fail},
		{"2 violations", 200, []int{0, 7}, release.Pass},
		{"3 violations", 200, []int{0, 6, 9}, release.Fail},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := start(t, plan(blind, gates(ladder.TimeGate|ladder.MetricGate), hold(10)))
			left := tc.solved
			for m := range 10 {
				n := min(left, 20)
				left -= n
				d.pass(1, 20, func(w *release.Window) {
					w.Solved = n
					for _, v := range tc.violations {
						if v == m {
							w.Violations = 1
						}
					}
				})
			}
			if tc.want == release.Pass {
				d.wantWeight(5)
				return
			}
			d.wantWeight(0)
			if d.st.Stage != ladder.Failed || len(d.events) != 0 {
				t.Errorf("stage %d, breaker events %v; want a failed gate", d.st.Stage, d.events)
			}
			d.pass(300, 30)
			d.wantHold(ladder.WhyFailed)
			d.wantWeight(0)
		})
	}
}

func TestFailLatchesWithinTheAttempt(t *testing.T) {
	d := start(t, plan(limitsHold))
	d.pass(9, 30)
	d.pass(1, 30, func(w *release.Window) { w.Violations = 3 })
	d.wantHold(ladder.WhyFailing)
	d.pass(2000, 30) // 3 of 60,000 are far below the limit
	d.wantHold(ladder.WhyFailing)
	d.wantWeight(1)
	v := d.decision.Verdicts[release.Violations]
	if v.Verdict != release.Fail || !v.Latched || v.Finding.Value >= v.Finding.Limit {
		t.Errorf("violations: %+v", v)
	}
	if d.decision.Verdicts[release.SolveRate].Verdict != release.Pass {
		t.Error("another signal fails with it")
	}
	if _, err := ladder.RollBack(d.plan, &d.st, d.now); err != nil {
		t.Fatal(err)
	}
	d.decide()
	if err := ladder.ClearLock(&d.st, d.now); err != nil {
		t.Fatal(err)
	}
	d.decide()
	d.pass(10, 30)
	d.wantWeight(5) // the next attempt does not remember
}

// TestPrecedenceOfVerdicts: the weakest needed verdict decides, in the order
// fail, error, no_data, insufficient, pass.
func TestPrecedenceOfVerdicts(t *testing.T) {
	order := []release.Verdict{release.Fail, release.Error, release.NoData, release.Insufficient, release.Pass}
	for i, a := range order {
		for j, b := range order {
			if a.Outranks(b) != (i < j) {
				t.Errorf("%s outranks %s: %v", a, b, a.Outranks(b))
			}
		}
	}
	evidence := []release.Verdict{release.Fail, release.NoData, release.Insufficient, release.Pass}
	moves := map[release.Verdict]release.Move{
		release.Fail: release.Lock, release.Error: release.Hold, release.NoData: release.Hold,
		release.Insufficient: release.Hold, release.Pass: release.Advance,
	}
	for _, violations := range evidence {
		for _, solved := range evidence {
			for _, sourceFailed := range []bool{false, true} {
				t.Run(fmt.Sprintf("violations %s, solve_rate %s, source failed %v", violations, solved, sourceFailed), func(t *testing.T) {
					want := weakest(order, violations, solved, sourceFailed)
					got := judged(t, violations, solved, sourceFailed)
					if got.Verdict != want || got.Move != moves[want] {
						t.Errorf("%s and %s (%s), want %s and %s", got.Verdict, got.Move, got.Reason(), want, moves[want])
					}
				})
			}
		}
	}
}

func weakest(order []release.Verdict, a, b release.Verdict, sourceFailed bool) release.Verdict {
	for _, v := range order {
		if v == a || v == b || v == release.Error && sourceFailed {
			return v
		}
	}
	return release.Pass
}

// judged brings violations and solve rate to these verdicts in ten minutes of
// 30 requests, without the breaker, and returns the decision.
func judged(t *testing.T, violations, solved release.Verdict, sourceFailed bool) ladder.Decision {
	t.Helper()
	d := start(t, plan(limits(func(l *breaker.Limits) { l.SlowSpan = minutes(5) })))
	known := func(v release.Verdict, m int) bool {
		return v == release.Pass || v == release.Fail || v == release.Insufficient && m < 3
	}
	var ws []release.Window
	for m := range 10 {
		d.now = d.now.Add(minutes(1))
		w := d.window(30, 27)
		if !known(violations, m) {
			w.Known &^= release.HasViolations
		}
		if !known(solved, m) {
			w.Known &^= release.HasSolved
		}
		if violations == release.Fail && (m == 0 || m == 6 || m == 9) {
			w.Violations = 1
		}
		if solved == release.Fail {
			w.Solved = 20
		}
		ws = append(ws, w)
	}
	d.failed = sourceFailed
	return d.once(ws...)
}

func TestObserveDecidesNothing(t *testing.T) {
	d := start(t, plan(limits(func(l *breaker.Limits) {
		l.Rules[release.Violations].Mode = release.Observe
	})))
	d.pass(9, 30, func(w *release.Window) { w.Violations = 10 })
	d.wantPhase(release.Closed)
	v := d.decision.Verdicts[release.Violations]
	if !v.Looked || v.Needed || v.Verdict != release.Fail {
		t.Errorf("would_fail is not shown: %+v", v)
	}
	d.pass(1, 30, func(w *release.Window) { w.Violations = 10 })
	d.wantWeight(5)
	if d.st.Latched != 0 {
		t.Errorf("latched %b", d.st.Latched)
	}
}

func TestOptionalSignalsAreNeededOnceSupplied(t *testing.T) {
	withCost := func(w *release.Window) { w.Cost, w.Known = 1, w.Known|release.HasCost }
	t.Run("never supplied, not needed", func(t *testing.T) {
		d := start(t, plan())
		d.pass(10, 30)
		d.wantWeight(5)
	})
	t.Run("supplied once, needed from then on", func(t *testing.T) {
		d := start(t, plan())
		d.pass(10, 30, withCost)
		d.wantWeight(5)
		d.pass(30, 30)
		d.wantHold(ladder.WhyNoData)
		if got := d.decision.Reason(); got != "no data for cost at this step" {
			t.Error(got)
		}
		d.pass(6, 30, withCost)
		d.wantHold(ladder.WhyInsufficient)
		d.pass(1, 30, withCost)
		d.wantWeight(10)
	})
	t.Run("enforced by the configuration, needed though never supplied", func(t *testing.T) {
		d := start(t, plan(limits(func(l *breaker.Limits) { l.Rules[release.P99].Mode = release.Required })))
		d.pass(30, 30)
		d.wantHold(ladder.WhyNoData)
	})
}

func TestCostAt100ComparesWithStablesLastDay(t *testing.T) {
	run := func(t *testing.T, baseline, stable, canary float64) *driver {
		p := plan(hold(10))
		p.CostBaselineUSD = baseline
		d := start(t, p)
		for m := range 30 { // stable's windows stand beside the canary's on the way up
			if stable > 0 {
				d.stable = []release.Window{{T: t0.Add(minutes(m)), Span: minutes(1), Total: 100, CostMean: stable, Known: release.HasCostMean}}
			}
			d.pass(1, 30, func(w *release.Window) { w.Cost, w.Known = 1, w.Known|release.HasCost })
		}
		d.wantWeight(100)
		d.pass(9, 30, func(w *release.Window) { w.CostMean, w.Known = canary, w.Known|release.HasCostMean })
		return d
	}
	t.Run("against stable's mean before the step", func(t *testing.T) {
		d := run(t, 0.0001, 0.010, 0.015)
		if v := d.decision.Verdicts[release.Cost]; v.Verdict != release.Pass || v.Finding.Value < 1.4999 || v.Finding.Value > 1.5001 {
			t.Errorf("%+v", v)
		}
	})
	t.Run("twice stable's mean trips", func(t *testing.T) {
		d := run(t, 0.1, 0.010, 0.021)
		if len(d.events) == 0 || d.events[0].Finding.Signal != release.Cost {
			t.Errorf("events %v", d.events)
		}
	})
	t.Run("without stable, against cost_baseline_usd", func(t *testing.T) {
		d := run(t, 0.010, 0, 0.015)
		if v := d.decision.Verdicts[release.Cost]; v.Verdict != release.Pass || v.Finding.Value < 1.4999 || v.Finding.Value > 1.5001 {
			t.Errorf("%+v", v)
		}
	})
	t.Run("with neither there is no data, and the last step holds", func(t *testing.T) {
		d := run(t, 0, 0, 0.015)
		d.pass(30, 30, func(w *release.Window) { w.CostMean, w.Known = 0.015, w.Known|release.HasCostMean })
		d.wantHold(ladder.WhyNoData)
	})
	t.Run("a ladder of one step looks at the day before its start", func(t *testing.T) {
		p := plan()
		p.Steps = p.Steps[3:]
		d := &driver{t: t, plan: p, now: t0, weight: pct(0)}
		d.stable = []release.Window{{T: t0.Add(minutes(-60)), Span: minutes(1), Total: 100, CostMean: 0.01, Known: release.HasCostMean}}
		d.decide()
		d.pass(1, 30, func(w *release.Window) { w.CostMean, w.Known = 0.02, w.Known|release.HasCostMean })
		d.wantPhase(release.Open)
	})
	t.Run("what stable cost two days before is no reference", func(t *testing.T) {
		p := plan()
		p.Steps = p.Steps[3:]
		d := &driver{t: t, plan: p, now: t0, weight: pct(0)}
		d.stable = []release.Window{{T: t0.Add(minutes(-48 * 60)), Span: minutes(1), Total: 100, CostMean: 0.01, Known: release.HasCostMean}}
		d.decide()
		d.pass(30, 30, func(w *release.Window) { w.CostMean, w.Known = 0.02, w.Known|release.HasCostMean })
		d.wantPhase(release.Closed)
		if v := d.decision.Verdicts[release.Cost]; v.Looked {
			t.Errorf("judged against %+v", v)
		}
	})
}

// TestGatesJudgeUpToTheLabelLag: newer windows have unfinished labels.
func TestGatesJudgeUpToTheLabelLag(t *testing.T) {
	d := start(t, plan(limits(func(l *breaker.Limits) { l.LabelLag = minutes(15) })))
	d.pass(21, 30)
	d.wantHold(ladder.WhyInsufficient)
	if got := d.decision.Verdicts[release.SolveRate].Finding.Of; got != 180 {
		t.Errorf("judges %d requests, want the 180 of minutes 0 to 5", got)
	}
	d.pass(1, 30)
	d.wantWeight(5)
}

// TestLabelsThatComeInLateAreRead: with a label lag a window is judged by what
// is known of its labels when the lag is over, not when it was first seen.
func TestLabelsThatComeInLateAreRead(t *testing.T) {
	lag := func(s *ladder.Step) { s.Limits.LabelLag, s.Limits.Keep = minutes(10), minutes(60) }
	run := func(amended bool) *driver {
		d := start(t, plan(lag))
		var young []release.Window // the canary's windows of the last ten minutes
		for range 60 {
			d.now = d.now.Add(minutes(1))
			w := d.window(30, 0) // no label says solved yet
			w.Judged, w.Solved = 30, 12
			young = append(young, w)
			young = young[max(0, len(young)-10):]
			shown := append([]release.Window(nil), young...)
			if amended {
				for i := range shown[:len(shown)-1] {
					shown[i].Solved = 27 // and then they do
				}
			}
			d.decide(shown...)
		}
		return d
	}
	if d := run(true); len(d.events) != 0 {
		t.Errorf("a healthy canary with late labels tripped: %v", d.events[0].Finding)
	}
	if d := run(false); len(d.events) == 0 || d.events[0].Finding.Signal != release.SolveRate {
		t.Error("the control, whose labels never come in, did not trip")
	}
}

// TestAStepWhoseLabelsAreNotInSaysSo, and how long it takes.
func TestAStepWhoseLabelsAreNotInSaysSo(t *testing.T) {
	d := start(t, plan(hold(1), limits(func(l *breaker.Limits) { l.LabelLag = minutes(30) })))
	d.pass(10, 30)
	d.wantHold(ladder.WhyNoData)
	left, known := d.decision.Remaining()
	if !known || left <= 0 || left > minutes(31) || !strings.Contains(d.decision.Reason(), "label_lag_min") {
		t.Errorf("left %s (%v): %s", left, known, d.decision.Reason())
	}
}
