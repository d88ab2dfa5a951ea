package ladder_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

var verbs = []ladder.Verb{
	ladder.DoPause, ladder.DoResume, ladder.DoApprove, ladder.DoRollBack, ladder.DoClearLock, ladder.DoAcceptConfig, ladder.DoRestart, ladder.DoSwap,
}

// standings are releases in every place where one can stand, by name.
var standings = map[string]func(*testing.T) *driver{
	"not started": func(t *testing.T) *driver { return &driver{t: t, plan: approvals(), now: t0, weight: pct(0)} },
	"start asked for": func(t *testing.T) *driver {
		d := &driver{t: t, plan: approvals(), now: t0, weight: pct(0), deaf: true}
		d.decide()
		return d
	},
	"climbing": func(t *testing.T) *driver {
		d := start(t, approvals())
		d.pass(3, 30)
		return d
	},
	"paused": func(t *testing.T) *driver {
		d := start(t, approvals())
		d.pass(3, 30)
		must(t, ladder.Pause(&d.st, d.now))
		return d
	},
	"awaiting approval": func(t *testing.T) *driver {
		d := start(t, approvals())
		d.pass(10, 30)
		return d
	},
	"advance asked for": func(t *testing.T) *driver {
		d := start(t, approvals())
		d.pass(10, 30)
		must(t, d.approve())
		d.deaf = true
		d.pass(1, 30)
		return d
	},
	"rollback asked for": func(t *testing.T) *driver {
		d := start(t, approvals())
		d.pass(3, 30)
		d.deaf = true
		d.trip()
		return d
	},
	"cooling down": func(t *testing.T) *driver {
		d := start(t, approvals())
		d.pass(3, 30)
		d.trip()
		return d
	},
	"probe asked for": func(t *testing.T) *driver {
		d := start(t, approvals())
		d.pass(3, 30)
		d.trip()
		d.deaf = true
		d.pass(8, -1)
		return d
	},
	"probing": func(t *testing.T) *driver {
		d := start(t, approvals())
		d.pass(3, 30)
		d.trip()
		d.pass(7, -1)
		return d
	},
	"locked": func(t *testing.T) *driver {
		d := start(t, approvals())
		d.pass(3, 30)
		d.trip()
		d.pass(7, -1)
		d.pass(5, 30, func(w *release.Window) { w.Solved = 0 })
		return d
	},
	"gate failed": func(t *testing.T) *driver {
		d := start(t, plan(hold(60))) // 4 a minute: the slow layer's 25 minutes never hold 200
		d.pass(61, 4, func(w *release.Window) { w.Solved = 3 })
		return d
	},
	"rolled back by a person": func(t *testing.T) *driver {
		d := start(t, approvals())
		d.pass(3, 30)
		if _, err := ladder.RollBack(d.plan, &d.st, d.now); err != nil {
			t.Fatal(err)
		}
		d.decide()
		return d
	},
	"complete": func(t *testing.T) *driver {
		d := start(t, plan())
		d.pass(60, 30)
		return d
	},
	"configuration changed": func(t *testing.T) *driver {
		d := start(t, approvals())
		q := *d.plan
		q.Digest = "d2"
		d.plan = &q
		d.pass(3, 30)
		return d
	},
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// errorNames are the words for errors in the table.
var errorNames = map[string]error{
	"-": nil, "not started": ladder.ErrNotStarted, "not locked": ladder.ErrNotLocked, "not awaiting": ladder.ErrNotAwaiting,
	"paused": ladder.ErrPaused, "not paused": ladder.ErrNotPaused, "same": ladder.ErrConfigIsSame, "incomplete": ladder.ErrNotComplete,
}

// TestEveryVerbFromEveryStanding: what is refused, and by which error; a
// refusal leaves no trace.
func TestEveryVerbFromEveryStanding(t *testing.T) {
	const table = `
		standing                | stage       | pending   | pause  | resume     | approve      | rollback    | clear_lock | accept_config | restart | swap
		not started             | not_started | hold      | -      | not paused | not awaiting | not started | not locked | not started   | -       | incomplete
		start asked for         | not_started | start     | -      | not paused | not awaiting | -           | not locked | same          | -       | incomplete
		climbing                | climbing    | hold      | -      | not paused | not awaiting | -           | not locked | same          | -       | incomplete
		paused                  | climbing    | hold      | paused | -          | not awaiting | -           | not locked | same          | -       | incomplete
		awaiting approval       | climbing    | hold      | -      | not paused | -            | -           | not locked | same          | -       | incomplete
		advance asked for       | climbing    | advance   | -      | not paused | not awaiting | -           | not locked | same          | -       | incomplete
		rollback asked for      | climbing    | roll_back | -      | not paused | not awaiting | -           | not locked | same          | -       | incomplete
		cooling down            | climbing    | hold      | -      | not paused | not awaiting | -           | not locked | same          | -       | incomplete
		probe asked for         | climbing    | probe     | -      | not paused | not awaiting | -           | not locked | same          | -       | incomplete
		probing                 | climbing    | hold      | -      | not paused | not awaiting | -           | not locked | same          | -       | incomplete
		locked                  | climbing    | hold      | -      | not paused | not awaiting | -           | -          | same          | -       | incomplete
		gate failed             | failed      | hold      | -      | not paused | not awaiting | -           | -          | same          | -       | incomplete
		rolled back by a person | rolled_back | hold      | -      | not paused | not awaiting | -           | -          | same          | -       | incomplete
		complete                | completed   | hold      | -      | not paused | not awaiting | -           | not locked | same          | -       | -
		configuration changed   | climbing    | hold      | -      | not paused | not awaiting | -           | not locked | -             | -       | incomplete`
	rows := strings.Split(strings.TrimSpace(table), "\n")
	if len(rows) != len(standings)+1 {
		t.Fatalf("%d rows for %d standings", len(rows)-1, len(standings))
	}
	for _, row := range rows[1:] {
		cells := strings.Split(row, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		for i, verb := range verbs {
			t.Run(cells[0]+"/"+verb.String(), func(t *testing.T) {
				d := standings[cells[0]](t)
				if d.st.Stage.String() != cells[1] || d.st.Pending.Move.String() != cells[2] {
					t.Fatalf("stands at %s with %s pending: %s", d.st.Stage, d.st.Pending.Move, d.decision.Reason())
				}
				checkVerb(t, d, verb, errorNames[cells[3+i]])
			})
		}
	}
}

// checkVerb applies a verb and checks error, trace and what comes next.
func checkVerb(t *testing.T, d *driver, verb ladder.Verb, want error) {
	t.Helper()
	before := stateText(t, &d.st)
	was, weight := d.st, d.st.Weight
	dec, err := ladder.Apply(d.plan, &d.st, &d.decision, ladder.Command{
		Verb: verb, At: d.now, By: "ann", Attempt: d.st.Attempt, Step: d.st.Step, Digest: d.plan.Digest, Weight: &weight,
	})
	if !errors.Is(err, want) || err == nil != (want == nil) {
		t.Fatalf("%v, want %v", err, want)
	}
	if err != nil {
		if diff := cmp.Diff(before, stateText(t, &d.st)); diff != "" {
			t.Errorf("a refusal left a trace:\n%s", diff)
		}
		return
	}
	if verb == ladder.DoRollBack {
		if dec.Move != release.RollBackMove || !dec.Write || !dec.Weight.IsZero() || dec.Why != ladder.WhyManual || d.st.Stage != ladder.RolledBack || !d.st.Locked() {
			t.Errorf("%s of %s for %s, stage %s", dec.Move, dec.Weight, dec.Why, d.st.Stage)
		}
	} else if dec != (ladder.Decision{}) {
		t.Errorf("%s decides %s", verb, dec.Move)
	}
	if pendingRollback(&was) && !pendingRollback(&d.st) {
		t.Error("an unfinished rollback was forgotten")
	}
	d.deaf = false
	top := d.weight
	d.now = d.now.Add(time.Second)
	d.once()
	if d.weight.Above(top) && d.weight.Above(d.plan.Steps[0].Weight) && d.decision.Move != release.Advance {
		t.Errorf("from %s to %s by %s", top, d.weight, d.decision.Move)
	}
	if pendingRollback(&was) && !d.decision.Weight.IsZero() {
		t.Errorf("an unfinished rollback is followed by %s to %s", d.decision.Move, d.decision.Weight)
	}
}

func pendingRollback(st *ladder.State) bool {
	return st.Pending.Move == release.RollBackMove || st.Pending.Move == release.Lock
}

func stateText(t interface{ Fatal(...any) }, st *ladder.State) string {
	b, err := json.MarshalIndent(st, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestAnUnknownVerbIsRefused, in memory and in a file.
func TestAnUnknownVerbIsRefused(t *testing.T) {
	d := start(t, plan())
	if _, err := ladder.Apply(d.plan, &d.st, &d.decision, ladder.Command{Verb: 99}); err == nil || !strings.Contains(err.Error(), "verb(99)") {
		t.Errorf("%v", err)
	}
	var c ladder.Command
	if err := json.Unmarshal([]byte(`{"verb":"promote"}`), &c); err == nil {
		t.Error("an unknown verb was read")
	}
	for _, v := range verbs {
		b, err := json.Marshal(ladder.Command{Verb: v})
		if err != nil || json.Unmarshal(b, &c) != nil || c.Verb != v {
			t.Errorf("%s comes back as %s", b, c.Verb)
		}
	}
}

// TestARollbackOfAWeightThatNoReleaseSet: the weight that was read just before
// counts, whatever an older reading said.
func TestARollbackOfAWeightThatNoReleaseSet(t *testing.T) {
	for name, tc := range map[string]struct {
		known, read *release.Weight
		refused     bool
	}{
		"read as 7 %":                    {nil, new(pct(7)), false},
		"read as 0":                      {nil, new(pct(0)), true},
		"read as 0, and before as 7 %":   {new(pct(7)), new(pct(0)), true},
		"not read, and before as 7 %":    {new(pct(7)), nil, false},
		"never read: it may be anything": {nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			var st ladder.State
			if tc.known != nil {
				st.Weight = *tc.known
			}
			before := stateText(t, &st)
			dec, err := ladder.Apply(plan(), &st, &ladder.Decision{}, ladder.Command{Verb: ladder.DoRollBack, At: t0, Weight: tc.read})
			if tc.refused {
				if !errors.Is(err, ladder.ErrNotStarted) || stateText(t, &st) != before {
					t.Errorf("%v; weight %s", err, st.Weight)
				}
				return
			}
			if err != nil || !dec.Weight.IsZero() || !dec.Write || st.Stage != ladder.RolledBack || st.Attempt != 1 {
				t.Errorf("%v: %s to %s", err, dec.Move, dec.Weight)
			}
		})
	}
}

// TestSwapIsForACompleteReleaseAndLeavesNoDrift: with the canary as the stable
// its weight is 0, and nothing is asked for from there on.
func TestSwapIsForACompleteReleaseAndLeavesNoDrift(t *testing.T) {
	d := standings["complete"](t)
	must(t, ladder.Swap(&d.st, d.now))
	d.weight = pct(0)
	for range 3 * 24 * 60 {
		d.pass(1, -1)
		if d.decision.Why != ladder.WhyCompleted || d.decision.Write {
			t.Fatalf("%s for %s: %s", d.decision.Move, d.decision.Why, d.decision.Reason())
		}
	}
	must(t, ladder.Swap(&d.st, d.now)) // once more is the same
	d.decide()
	d.wantHold(ladder.WhyCompleted)
	d.weight = pct(100) // and somebody else's hand is seen
	d.decide()
	d.wantHold(ladder.WhyDrift)
	d.weight = pct(0)
	q := *d.plan
	q.Candidate = "c2"
	d.plan = &q
	d.decide()
	d.wantWeight(1)
}

// TestAbandonForgetsStepsForwardAlone.
func TestAbandonForgetsStepsForwardAlone(t *testing.T) {
	for name, kept := range map[string]bool{
		"start asked for": false, "advance asked for": false, "rollback asked for": true, "probe asked for": true, "climbing": true, "complete": true,
	} {
		t.Run(name, func(t *testing.T) {
			d := standings[name](t)
			was := d.st
			ladder.Abandon(&d.st)
			want := ladder.Pending{}
			if kept {
				want = was.Pending
			}
			if d.st.Pending != want {
				t.Errorf("pending %+v, want %+v", d.st.Pending, want)
			}
			d.st.Pending = was.Pending
			if diff := cmp.Diff(stateText(t, &was), stateText(t, &d.st)); diff != "" {
				t.Errorf("more than the pending write changed:\n%s", diff)
			}
			ladder.Abandon(&d.st)
			d.deaf = false
			d.pass(2, 30)
			if was.Pending.Move != release.Hold && !d.weight.Same(was.Pending.Weight) && d.st.Breaker.Phase != release.HalfOpen {
				t.Errorf("the weight is %s, not %s: %s", d.weight, was.Pending.Weight, d.decision.Reason())
			}
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(drawPlan(t))
		for range rapid.IntRange(1, 80).Draw(t, "minutes") {
			m := drawMinute(t)
			w.minute(t, &m, func(ladder.Decision) {
				before := w.st.Pending
				ladder.Abandon(w.st)
				adapt := w.st.Adapt
				forward := before.Move == release.Start || before.Move == release.Advance || before.Move == release.Adjust
				if forward != (w.st.Pending != before) {
					t.Fatalf("%s pending became %s", before.Move, w.st.Pending.Move)
				}
				w.st.Pending, w.st.Adapt = before, adapt
			})
		}
	})
}

// TestAnUnreadTargetTakesNoStepForward and begins no probe; a rollback is asked
// for all the same.
func TestAnUnreadTargetTakesNoStepForward(t *testing.T) {
	t.Run("no start", func(t *testing.T) {
		d := &driver{t: t, plan: plan(), now: t0, weight: pct(0), unread: true}
		d.pass(60, -1)
		d.wantHold(ladder.WhyUnread)
		d.unread = false
		d.decide()
		d.wantWeight(1)
	})
	t.Run("no step", func(t *testing.T) {
		d := start(t, plan())
		d.unread = true
		d.pass(9, 30)
		d.wantHold(ladder.WhyTime) // what has to be waited for anyway comes first
		d.pass(60, 30)
		d.wantHold(ladder.WhyUnread)
		d.unread = false
		d.decide()
		d.wantWeight(5)
	})
	t.Run("no end", func(t *testing.T) {
		d := start(t, plan())
		for !d.weight.Same(pct(100)) {
			d.pass(1, 30)
		}
		d.unread = true
		d.pass(60, 30)
		d.wantHold(ladder.WhyUnread)
		if d.st.Stage != ladder.Climbing {
			t.Error(d.st.Stage)
		}
		d.unread = false
		d.decide()
		d.wantHold(ladder.WhyCompleted)
	})
	t.Run("a rollback", func(t *testing.T) {
		d := start(t, plan())
		d.pass(5, 30)
		d.unread, d.deaf = true, true
		d.trip()
		if d.decision.Move != release.RollBackMove || !d.decision.Write {
			t.Fatalf("%s: %s", d.decision.Move, d.decision.Reason())
		}
		d.pass(60, -1)
		if d.decision.Move != release.RollBackMove || !d.decision.Again {
			t.Fatalf("no longer asked for: %s", d.decision.Reason())
		}
	})
	t.Run("no probe", func(t *testing.T) {
		d := start(t, plan())
		d.pass(5, 30)
		d.trip()
		d.unread = true
		d.pass(600, -1)
		d.wantPhase(release.Open)
		d.wantWeight(0)
		d.unread = false
		d.decide()
		d.wantPhase(release.HalfOpen)
	})
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(drawPlan(t))
		for range rapid.IntRange(1, 150).Draw(t, "minutes") {
			m := drawMinute(t)
			asked := w.st.Pending
			w.minute(t, &m, func(d ladder.Decision) {
				forward := d.Move == release.Start && d.Why == ladder.WhyStart || d.Move == release.Advance || d.Move == release.Probe || d.Move == release.Complete
				if m.unread && forward && !d.Again {
					t.Fatalf("%s for %s with a target that was not read (asked for before: %s)", d.Move, d.Why, asked.Move)
				}
			})
		}
	})
}

// TestAStateWithUnknownNamesIsRefused: it is from another program, or damaged.
func TestAStateWithUnknownNamesIsRefused(t *testing.T) {
	d := standings["awaiting approval"](t)
	good := stateText(t, &d.st)
	for name, change := range map[string][2]string{
		"stage": {`"climbing"`, `"sliding"`}, "stage as a number": {`"climbing"`, `1`}, "phase": {`"CLOSED"`, `"AJAR"`},
		"pending move": {`"move": "hold"`, `"move": "wait"`}, "reason": {`"why": ""`, `"why": "mood"`},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if text == good {
			t.Fatalf("%s: %s is not in %s", name, change[0], good)
		}
		var st ladder.State
		if err := json.Unmarshal([]byte(text), &st); err == nil {
			t.Errorf("an unknown %s was read", name)
		}
	}
}

// TestEveryFieldOfAStateComesBack from its file.
func TestEveryFieldOfAStateComesBack(t *testing.T) {
	d := standings["advance asked for"](t)
	st := d.st
	at := func(n int) time.Time { return t0.Add(minutes(n)).Add(123456789) }
	st.Stage, st.Attempt, st.Step, st.Latched, st.Supplied = ladder.Completed, 3, 2, 5, 6
	st.At, st.Serving, st.CoolFor, st.Seen, st.PausedAt = at(1), at(2), at(3), at(4), at(5)
	if err := json.Unmarshal([]byte(`{"users":true,"slots":[{"from":1,"canary":2,"stable":3},{"from":4,"canary":5,"stable":6}]}`), &st.Share); err != nil {
		t.Fatal(err)
	}
	st.Gate.T, st.Gate.Span, st.Gate.Cost, st.Gate.P99MS, st.Gate.Slow, st.Gate.SlowOf = 7, 8, 0.1+0.2, 1.0/3, 9, 10
	st.Unripe, st.Covered, st.CostRef = []ladder.Tally{st.Gate}, minutes(11), 0.1+0.2
	st.Barred = []string{"c0"}
	if err := json.Unmarshal([]byte(`{"base":{"slots":5,"ring":100},"parts":42500,"at":"2026-03-02T00:11:00Z","set":"2026-03-02T00:12:00Z","fell":true,"hits":8192,"seen":3,"told":2,"recent":[{"t":1,"of":2,"errors":1}]}`), &st.Adapt); err != nil {
		t.Fatal(err)
	}
	st.Paused, st.PausedFor, st.Pauses = true, minutes(6), []ladder.Pausing{{From: at(7), To: at(8)}}
	st.Approval = &ladder.Approval{Attempt: 1, Step: 2, Digest: "d", By: "ann", At: at(9), Shown: release.Pass}
	st.Stable.Hours[3].NanoUSD, st.Stable.Seen = 1<<62+1, at(10)
	var back ladder.State
	if err := json.Unmarshal([]byte(stateText(t, &st)), &back); err != nil {
		t.Fatal(err)
	}
	want, got := reflect.ValueOf(st), reflect.ValueOf(back)
	for i := range want.NumField() {
		name := want.Type().Field(i).Name
		if want.Field(i).IsZero() {
			t.Errorf("%s is zero: the test says nothing about it", name)
		}
		if name != "Breaker" && !reflect.DeepEqual(want.Field(i).Interface(), got.Field(i).Interface()) {
			t.Errorf("%s: %+v comes back as %+v", name, want.Field(i), got.Field(i))
		}
	}
	if diff := cmp.Diff(stateText(t, &st), stateText(t, &back)); diff != "" {
		t.Error(diff) // the breaker's windows, too
	}
}
