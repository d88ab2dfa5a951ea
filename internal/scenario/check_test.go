package scenario_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/scenario"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

func weightOf(pct int64) release.Weight { return release.Weight{Slots: pct, Ring: 100} }

// outcome is a replay of 100 minutes that tripped, failed its probes, and was
// locked.
func outcome() *simulate.Outcome {
	event := func(minute int, from, to release.Phase, s release.Signal) simulate.Event {
		return simulate.Event{Minute: minute, Event: release.Event{From: from, To: to, Finding: release.Finding{Signal: s}}}
	}
	move := func(minute int, m release.Move, step int) simulate.Move {
		return simulate.Move{Minute: minute, Decision: ladder.Decision{Move: m, Step: step}}
	}
	out := &simulate.Outcome{
		Events: []simulate.Event{
			event(22, release.Closed, release.Open, release.Violations),
			event(28, release.Open, release.HalfOpen, release.Cooldown),
			event(32, release.HalfOpen, release.Open, release.Probes),
		},
		Moves:     []simulate.Move{move(0, release.Start, 0), move(10, release.Advance, 1), move(22, release.RollBackMove, 1), move(32, release.Lock, 0)},
		Rollbacks: []simulate.Rollback{{Minute: 22}, {Minute: 32}},
		BadFrom:   new(21),
		SinceBad:  &release.Exposure{Requests: 52},
		Delay:     new(2 * time.Minute),
		Steps: []simulate.StepTime{
			{Length: 23 * time.Minute, Weight: weightOf(1)}, {From: 23 * time.Minute, Length: 5 * time.Minute},
			{From: 28 * time.Minute, Length: 5 * time.Minute, Weight: weightOf(1)}, {From: 33 * time.Minute, Length: 67 * time.Minute},
		},
	}
	out.Events[2].Escalated, out.Events[2].Locked = true, true
	out.State.Breaker.Phase, out.State.Breaker.Locked = release.Open, true
	out.State.Weight, out.State.Attempt = release.Weight{Ring: 100}, 1
	out.Last = ladder.Decision{Move: release.Hold, Why: ladder.WhyLocked}
	return out
}

// with parses a scenario with one expectation and the fault in minute 21.
func with(t *testing.T, expectation string) *scenario.Scenario {
	t.Helper()
	return parse(t, "scenario: a\nabout: b\nfeed: {canary_per_min: 26, mode: drawn, minutes: 100, base: {}}\nfault_from: 21\nexpect:\n  - "+expectation+"\n")
}

func TestCheckSaysWantAndGotSideBySide(t *testing.T) {
	const all = "22 CLOSED -> OPEN violations; 28 OPEN -> HALF_OPEN cooldown; 32 HALF_OPEN -> OPEN probes escalated locked"
	const moves = "0 start at step 1; 10 advance at step 2; 22 roll_back at step 2; 32 lock at step 1"
	for _, tc := range []struct {
		expectation, want, got string
		ok                     bool
	}{
		{"transition: { minute: 22, from: CLOSED, to: OPEN, signal: violations }", "22 CLOSED -> OPEN violations", "22 CLOSED -> OPEN violations", true},
		{"transition: { to: OPEN }", "-> OPEN", "22 CLOSED -> OPEN violations", true},
		{"transition: { minute: 21, to: OPEN }", "21 -> OPEN", all, false},
		{"transition: { minute: 21, within: 1, to: OPEN }", "21 to 22 -> OPEN", "22 CLOSED -> OPEN violations", true},
		{"transition: { minute: 20, within: 1, to: OPEN }", "20 to 21 -> OPEN", all, false},
		{"transition: { minute: 23, within: 8, to: OPEN }", "23 to 31 -> OPEN", all, false},
		{"transition: { between: [23, 32], to: OPEN }", "23 to 32 -> OPEN", "32 HALF_OPEN -> OPEN probes escalated locked", true},
		{"transition: { to: OPEN, signal: p99 }", "-> OPEN p99", all, false},
		{"transition: { to: OPEN, from: HALF_OPEN, escalated: true, locked: false }", "HALF_OPEN -> OPEN escalated not locked", all, false},
		{"transition: { to: CLOSED }", "-> CLOSED", all, false},
		{"transitions: [{ minute: 22, to: OPEN }, { to: HALF_OPEN }, { to: OPEN, signal: probes }]", "22 -> OPEN; -> HALF_OPEN; -> OPEN probes", all, true},
		{"transitions: [{ minute: 22, to: OPEN }, { to: HALF_OPEN }]", "22 -> OPEN; -> HALF_OPEN", all, false},
		{"transitions: [{ to: OPEN }, { to: OPEN }, { to: HALF_OPEN }]", "-> OPEN; -> OPEN; -> HALF_OPEN", all, false},
		{"transitions: []", "no transition", all, false},
		{"{ decision: advance }", "advance", "10 advance at step 2", true},
		{"{ decision: advance, step: 2, minute: 10 }", "10 advance at step 2", "10 advance at step 2", true},
		{"{ decision: advance, step: 3 }", "advance at step 3", moves, false},
		{"{ decision: advance, minute: 11 }", "11 advance", moves, false},
		{"{ decision: complete, between: [5, 9] }", "5 to 9 complete", moves, false},
		{"exposure_below: 53", "fewer than 53 canary requests since the fault", "52 canary requests since the fault", true},
		{"exposure_below: 52", "fewer than 52 canary requests since the fault", "52 canary requests since the fault", false},
		{"never: CLOSED_", "", "", false},
		{"never: complete", "never complete", "never", true},
		{"never: [advance, OPEN]", "never advance, OPEN", "10 advance at step 2", false},
		{"never: HALF_OPEN", "never HALF_OPEN", "28 OPEN -> HALF_OPEN cooldown", false},
		{"trips_at_least: 2", "at least 2 trips", "2 trips", true},
		{"trips_at_least: 3", "at least 3 trips", "2 trips", false},
		{"trips_below: 3", "fewer than 3 trips", "2 trips", true},
		{"trips_below: 2", "fewer than 2 trips", "2 trips", false},
		{"final: { state: OPEN, locked: true, pct: 0, decision: hold, why: locked, step: 1, attempt: 1 }",
			"ends OPEN, locked, at 0 %, step 1, attempt 1, hold, because of locked", "ends OPEN, locked, at 0 %, step 1, attempt 1, hold, because of locked", true},
		{"final: { state: CLOSED }", "ends CLOSED", "ends OPEN", false},
		{"final: { locked: false }", "ends not locked", "ends locked", false},
		{"final: { pct: 0.05 }", "ends at 5 %", "ends at 0 %", false},
		{"final: { why: completed }", "ends because of completed", "ends because of locked", false},
	} {
		if tc.want == "" {
			continue
		}
		t.Run(tc.expectation, func(t *testing.T) {
			sc := with(t, tc.expectation)
			rs := sc.Check(outcome())
			if len(rs) != 1 || len(sc.CheckRuns(nil)) != 0 {
				t.Fatalf("got %v", rs)
			}
			if want := (scenario.Result{Want: tc.want, Got: tc.got, OK: tc.ok}); rs[0] != want {
				t.Errorf("\ngot  %+v\nwant %+v", rs[0], want)
			}
		})
	}
}

func TestCheckOfAQuietReplay(t *testing.T) {
	for expectation, want := range map[string]scenario.Result{
		"transitions: []":        {Want: "no transition", Got: "no transition", OK: true},
		"transition: {to: OPEN}": {Want: "-> OPEN", Got: "no transition"},
		"exposure_below: 53":     {Want: "fewer than 53 canary requests since the fault", Got: "not rolled back after the fault"},
		"{ decision: start }":    {Want: "start", Got: "no decision"},
		"trips_below: 1":         {Want: "fewer than 1 trip", Got: "0 trips", OK: true},
	} {
		if rs := with(t, expectation).Check(&simulate.Outcome{}); len(rs) != 1 || rs[0] != want {
			t.Errorf("%s: got %+v, want %+v", expectation, rs, want)
		}
	}
}

func TestAFailedGateIsALock(t *testing.T) {
	out := &simulate.Outcome{}
	out.State.Stage = ladder.Failed
	want := scenario.Result{Want: "ends CLOSED, locked", Got: "ends CLOSED, locked", OK: true}
	if rs := with(t, "final: { state: CLOSED, locked: true }").Check(out); rs[0] != want {
		t.Errorf("got %+v", rs)
	}
}

func TestCheckRuns(t *testing.T) {
	quiet := &simulate.Outcome{BadFrom: new(21), Steps: []simulate.StepTime{{Length: 100 * time.Minute, Weight: weightOf(1)}}}
	early := outcome()
	early.Rollbacks[0].Minute = 20 // before the fault
	for _, tc := range []struct {
		expectation string
		outs        []*simulate.Outcome
		want        scenario.Result
	}{
		{"runs: { of: 2, trips_at_least: 2 }", []*simulate.Outcome{outcome(), outcome()},
			scenario.Result{Want: "at least 2 trips in every run", Got: "2 trips in the worst of 2 runs", OK: true}},
		{"runs: { of: 2, trips_at_least: 2 }", []*simulate.Outcome{outcome(), quiet},
			scenario.Result{Want: "at least 2 trips in every run", Got: "0 trips in the worst of 2 runs, 1 of them past it"}},
		{"runs: { of: 1, exposure_below: 53 }", []*simulate.Outcome{outcome()},
			scenario.Result{Want: "fewer than 53 canary requests since the fault in every run", Got: "52 canary requests since the fault in the worst of 1 runs", OK: true}},
		{"runs: { of: 1, exposure_below: 52 }", []*simulate.Outcome{outcome()},
			scenario.Result{Want: "fewer than 52 canary requests since the fault in every run", Got: "52 canary requests since the fault in the worst of 1 runs, 1 of them past it"}},
		{"runs: { of: 2, exposure_below: 53 }", []*simulate.Outcome{outcome(), quiet},
			scenario.Result{Want: "fewer than 53 canary requests since the fault in every run", Got: "not rolled back after the fault in the worst of 2 runs, 1 of them past it"}},
		{"runs: { of: 1, detected_within: 2 }", []*simulate.Outcome{outcome()},
			scenario.Result{Want: "rolled back within 2 minutes of the fault in every run", Got: "rolled back after 2 minutes in the worst of 1 runs", OK: true}},
		{"runs: { of: 2, detected_within: 1 }", []*simulate.Outcome{outcome(), quiet},
			scenario.Result{Want: "rolled back within 1 minute of the fault in every run", Got: "not rolled back after the fault in the worst of 2 runs, 2 of them past it"}},
		{"runs: { of: 2, false_trips_per_week_below: 0.1 }", []*simulate.Outcome{outcome(), quiet}, // 21 healthy minutes each
			scenario.Result{Want: "fewer than 0.1 false trips a week over 2 runs", Got: "0 false trips a week (0 trips in 0.004167 weeks) over 2 runs", OK: true}},
		{"runs: { of: 1, false_trips_per_week_below: 480 }", []*simulate.Outcome{early},
			scenario.Result{Want: "fewer than 480 false trips a week over 1 runs", Got: "480 false trips a week (1 trip in 0.002083 weeks) over 1 runs"}},
		{"runs: { of: 1, false_trips_per_week_below: 481 }", []*simulate.Outcome{early},
			scenario.Result{Want: "fewer than 481 false trips a week over 1 runs", Got: "480 false trips a week (1 trip in 0.002083 weeks) over 1 runs", OK: true}},
		{"runs: { of: 1, false_trips_per_week_below: 0.1 }", []*simulate.Outcome{{}},
			scenario.Result{Want: "fewer than 0.1 false trips a week over 1 runs", Got: "no canary served while healthy"}},
	} {
		sc := with(t, tc.expectation)
		rs := sc.CheckRuns(tc.outs)
		if len(rs) != 1 || rs[0] != tc.want || len(sc.Check(outcome())) != 0 {
			t.Errorf("%s\ngot  %+v\nwant %+v", tc.expectation, rs, tc.want)
		}
	}
}

func TestFewerRunsThanAskedForAreNoPass(t *testing.T) {
	sc := with(t, "runs: { of: 2, trips_at_least: 2 }")
	if rs := sc.CheckRuns([]*simulate.Outcome{outcome()}); len(rs) != 0 {
		t.Errorf("one run of two: got %+v", rs)
	}
	if rs := sc.CheckRuns([]*simulate.Outcome{outcome(), outcome(), outcome()}); len(rs) != 1 || !rs[0].OK {
		t.Errorf("three runs of two: got %+v", rs)
	}
}

func TestLongListsAreCut(t *testing.T) {
	out := outcome()
	for range 40 {
		out.Events = append(out.Events, out.Events[0])
		out.Moves = append(out.Moves, out.Moves[0])
	}
	for _, expectation := range []string{"transition: { to: CLOSED }", "{ decision: complete }"} {
		r := with(t, expectation).Check(out)[0]
		if n := strings.Count(r.Got, ";"); n != 12 || !strings.Contains(r.Got, "; and 3") {
			t.Errorf("%s: got %s", expectation, r.Got)
		}
	}
}

func ExampleScenario_Check() {
	sc, list := scenario.Parse("burst.yaml", []byte(`scenario: burst
about: Four violations within two minutes trip the breaker.
plan:
  canary:
    target_service: order-service
    steps: [{ pct: 1.00, min_hold_min: 60 }]
feed:
  canary_per_min: 26
  minutes: 30
  base: { solve_rate: 0.9, violations: 0 }
  faults: [{ fault: violation_burst, from: 21, minutes: 2, count: 2 }]
expect:
  - transition: { minute: 22, to: OPEN, signal: violations }
  - exposure_below: 50
`))
	if list.HasErrors() {
		return
	}
	plan := sc.Config.Plan()
	out, err := simulate.Run(plan, sc.Feed(plan, sc.Seed), sc.Options())
	if err != nil {
		return
	}
	for _, r := range sc.Check(out) {
		fmt.Printf("%t: want %s, got %s\n", r.OK, r.Want, r.Got)
	}
	// Output:
	// true: want 22 -> OPEN violations, got 22 CLOSED -> OPEN violations
	// false: want fewer than 50 canary requests since the fault, got 52 canary requests since the fault
}
