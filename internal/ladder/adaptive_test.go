package ladder_test

import (
	"testing"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// adaptive returns a plan of 10, 30 and 100 % with holds of an hour whose
// weight follows an error rate of 5 % over 5 minutes.
func adaptive(change ...func(*ladder.Plan)) *ladder.Plan {
	p := plan(hold(60), limits(func(l *breaker.Limits) {
		l.Rules[release.Errors].Mode = release.Off // the breaker's own limit is another matter
	}))
	p.Steps = p.Steps[1:]
	for i, share := range []int64{10, 30, 100} {
		p.Steps[i].Weight = pct(share)
	}
	p.Adaptive = ladder.Adaptive{
		On: true, Limit: release.MustRatio("0.05"), Span: minutes(5), Interval: minutes(5), Least: 20,
		Down: release.MustRatio("0.8"), Up: release.MustRatio("1.05"),
	}
	for _, f := range change {
		f(p)
	}
	return p
}

// failing makes so many of a window's requests errors.
func failing(n int64) func(*release.Window) {
	return func(w *release.Window) {
		w.StatusOf, w.Errors, w.Known = w.Total, n, w.Known|release.HasErrors
	}
}

// TestTheShareFollowsTheErrorRate: x 0.8 and x 1.05 an interval, exactly kept
// and rounded down to slots, within the bounds.
func TestTheShareFollowsTheErrorRate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*ladder.Plan)
		total  int64
		errors int64
		want   []int64 // percent after 1, 2, ... intervals
	}{
		{"falls to half of the step's share", nil, 40, 4, []int64{8, 6, 5, 5}},
		{"rises in less than a slot too", nil, 40, 0, []int64{10, 11, 11, 12, 12, 13, 14, 14, 15, 16}},
		{"at the limit it rises", nil, 40, 2, []int64{10, 11}},
		{"one above the limit it falls", nil, 39, 2, []int64{8}},
		{"too few requests change nothing", nil, 3, 3, []int64{10, 10, 10}},
		{"min_pct is the floor", func(p *ladder.Plan) { p.Adaptive.Min = pct(8) }, 40, 4, []int64{8, 8, 8}},
		{"a min_pct above the step's share is its share", func(p *ladder.Plan) { p.Adaptive.Min = pct(20) }, 40, 4, []int64{10, 10}},
		{"max_pct is the ceiling", func(p *ladder.Plan) { p.Adaptive.Max = pct(11) }, 40, 0, []int64{10, 11, 11, 11}},
		{"a max_pct below the step's share is its share", func(p *ladder.Plan) { p.Adaptive.Max = pct(5) }, 40, 0, []int64{10, 10, 10}},
		{"the next step's share is not reached", func(p *ladder.Plan) { p.Steps[1].Weight = pct(12) }, 40, 0, []int64{10, 11, 11, 11, 11}},
		{"the last step goes up to max_pct", func(p *ladder.Plan) { p.Steps, p.Adaptive.Max = p.Steps[:1], pct(11) }, 40, 0, []int64{10, 11, 11}},
		{"the last step stays without one", func(p *ladder.Plan) { p.Steps = p.Steps[:1] }, 40, 0, []int64{10, 10, 10}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := adaptive()
			if tt.change != nil {
				tt.change(p)
			}
			d := start(t, p)
			// The first change comes as soon as the errors are known when they are
			// too many, and after a whole interval when they are few.
			first := 5
			if tt.errors*20 > tt.total {
				first = 1
			}
			for i, want := range tt.want {
				d.pass(max(first, 5*min(i, 1)), tt.total, failing(tt.errors))
				if !d.weight.Same(pct(want)) {
					t.Fatalf("after %d changes %s, want %d %%: %s", i+1, d.weight, want, d.decision.Reason())
				}
			}
		})
	}
}

// TestAnUnknownStatusMovesNothing: not known is neither an error nor none.
func TestAnUnknownStatusMovesNothing(t *testing.T) {
	d := start(t, adaptive())
	d.pass(30, 40)
	d.wantWeight(10)
}

// TestErrorsAreCountedOverTime and not over a number of requests: what is older
// than the span is forgotten, whatever the traffic.
func TestErrorsAreCountedOverTime(t *testing.T) {
	d := start(t, adaptive(func(p *ladder.Plan) { p.Adaptive.Interval = minutes(1) }))
	d.pass(1, 400, failing(40))
	d.wantWeight(8)
	d.pass(4, 400, failing(0)) // 40 of 2,000 are 2 %
	d.wantWeight(9)
	d.pass(1, -1)
	d.pass(5, 1, failing(1)) // the good ones are out of the span: too few to tell
	before := d.weight
	d.pass(3, 1, failing(1))
	if !d.weight.Same(before) {
		t.Errorf("moved to %s on 5 requests", d.weight)
	}
}

// TestNothingGoesForwardFromBelowTheStepsShare though all gates have passed.
func TestNothingGoesForwardFromBelowTheStepsShare(t *testing.T) {
	d := start(t, adaptive())
	for range 15 {
		d.pass(1, 40, failing(4))
		d.pass(4, 40, failing(4))
	}
	d.wantHold(ladder.WhyThrottled)
	d.wantWeight(5)
	for range 40 {
		d.pass(5, 40, failing(0))
		if d.st.Step > 0 {
			break
		}
	}
	d.wantWeight(30)
}

// TestAdvanceFromAboveTheStepsShare goes to the next step as from anywhere.
func TestAdvanceFromAboveTheStepsShare(t *testing.T) {
	d := start(t, adaptive())
	d.pass(59, 40, failing(0))
	if !d.weight.Above(pct(10)) {
		t.Fatalf("weight %s", d.weight)
	}
	d.pass(1, 40, failing(0))
	d.wantWeight(30)
	if d.st.Step != 1 {
		t.Errorf("step %d", d.st.Step)
	}
}

// TestATripEndsTheAdaptedShare: 0, and then the first step's share again.
func TestATripEndsTheAdaptedShare(t *testing.T) {
	d := start(t, adaptive())
	d.pass(1, 40, failing(4))
	d.wantWeight(8)
	d.trip()
	d.wantWeight(0)
	d.pass(6, -1)
	d.wantWeight(10)
	d.wantPhase(release.HalfOpen)
}

// TestDownIsNeverWithheld and up is, like a step forward.
func TestDownIsNeverWithheld(t *testing.T) {
	for _, tt := range []struct {
		name string
		stop func(d *driver)
	}{
		{"paused", func(d *driver) { must(d.t, ladder.Pause(&d.st, d.now)) }},
		{"another configuration", func(d *driver) { p := *d.plan; p.Digest = "d2"; d.plan = &p }},
		{"frozen", func(d *driver) {
			p := *d.plan
			p.Freezes = []ladder.Freeze{{Zone: t0.Location(), Days: [7]bool{true, true, true, true, true, true, true}, To: minutes(24 * 60)}}
			d.plan = &p
		}},
		{"source unread", func(d *driver) { d.failed = true }},
		{"target unread", func(d *driver) { d.unread = true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := start(t, adaptive())
			d.pass(4, 40, failing(0))
			tt.stop(d)
			d.pass(20, 40, failing(0))
			d.wantWeight(10)
			d.deaf = true
			d.pass(12, 40, failing(8))
			if d.decision.Move != release.Adjust || !d.decision.Weight.Same(pct(8)) {
				t.Errorf("%s to %s: %s", d.decision.Move, d.decision.Weight, d.decision.Reason())
			}
		})
	}
}

// TestAChangeThatDidNotArrive is asked for again, and judged anew once it was
// surely not made: a target may have no such share.
func TestAChangeThatDidNotArrive(t *testing.T) {
	t.Run("down", func(t *testing.T) {
		d := start(t, adaptive())
		d.deaf = true
		d.pass(3, 40, failing(8))
		if !d.decision.Again || !d.decision.Weight.Same(pct(8)) {
			t.Errorf("%s to %s, again %t", d.decision.Move, d.decision.Weight, d.decision.Again)
		}
		ladder.Abandon(&d.st)
		if d.st.Pending.Move != release.Hold {
			t.Error("a fall that was not made was kept")
		}
		d.deaf = false
		d.pass(1, 40, failing(8))
		d.wantWeight(8)
	})
	t.Run("up", func(t *testing.T) {
		d := start(t, adaptive())
		d.pass(5, 40, failing(0))
		d.deaf = true
		d.pass(5, 40, failing(0))
		if d.st.Pending.Move != release.Adjust {
			t.Fatalf("pending %s", d.st.Pending.Move)
		}
		ladder.Abandon(&d.st)
		if d.st.Pending.Move != release.Hold {
			t.Error("a raise that was not made was kept")
		}
		d.deaf = false
		d.pass(5, 40, failing(0))
		d.wantWeight(10)
		d.pass(5, 40, failing(0))
		d.wantWeight(11)
	})
}

// TestAShareComesBackWithoutFigures: where nobody counts errors, or too few
// requests are left to tell, a share that has fallen does not stay down.
func TestAShareComesBackWithoutFigures(t *testing.T) {
	t.Run("no status is known", func(t *testing.T) {
		p := adaptive()
		for i := range p.Steps {
			p.Steps[i].Limits.Rules[release.Transfers].OnFail = release.Throttle
			p.Steps[i].MinHold = minutes(600)
		}
		d := start(t, p)
		d.pass(1, 40, func(w *release.Window) { w.Transfers = 6 })
		d.wantWeight(8)
		d.pass(70, 40) // the span of 5 minutes trips a second time before that
		d.wantWeight(10)
		d.pass(50, 40)
		d.wantWeight(10)
	})
	t.Run("too few requests", func(t *testing.T) {
		d := start(t, adaptive())
		d.pass(1, 40, failing(8))
		d.wantWeight(8)
		d.pass(50, 3, failing(0))
		d.wantWeight(10)
	})
	t.Run("too few requests, and they fail", func(t *testing.T) {
		d := start(t, adaptive())
		d.pass(1, 40, failing(8))
		d.pass(50, 3, failing(1))
		d.wantWeight(8)
	})
}

// TestAShareDoesNotPassAnApproval: beyond the step's share is what nobody has
// approved yet.
func TestAShareDoesNotPassAnApproval(t *testing.T) {
	p := adaptive()
	p.Steps[0].Gates |= ladder.ApprovalGate
	p.Steps[0].MinHold = minutes(10)
	d := start(t, p)
	d.pass(60, 40, failing(0))
	d.wantWeight(10)
	d.wantHold(ladder.WhyApproval)
}

// TestAcceptedUnderAnotherConfiguration: an adapted weight is its step's still.
func TestAcceptedUnderAnotherConfiguration(t *testing.T) {
	d := start(t, adaptive())
	d.pass(1, 40, failing(4))
	d.wantWeight(8)
	p := *d.plan
	p.Digest = "d2"
	d.plan = &p
	must(t, ladder.AcceptConfig(d.plan, &d.st))
	if d.st.Step != 0 {
		t.Errorf("step %d", d.st.Step)
	}
}

// TestASignalThatThrottles lowers the weight at once, holds the step, and lets
// it come back; no limit is latched.
func TestASignalThatThrottles(t *testing.T) {
	throttling := func(l *breaker.Limits) { l.Rules[release.Transfers].OnFail = release.Throttle }
	handing := func(w *release.Window) { w.Transfers = 6 }
	p := plan(hold(0), limits(throttling))
	for i, share := range []int64{20, 40, 60, 100} {
		p.Steps[i].Weight = pct(share)
	}
	d := start(t, p)
	d.pass(1, 40, handing)
	d.wantWeight(16)
	d.pass(1, 40)
	d.wantHold(ladder.WhyThrottled)
	d.pass(9, 40)
	if !d.weight.Above(pct(10)) || d.st.Latched != 0 || d.st.Breaker.Phase != release.Closed {
		t.Fatalf("weight %s, latched %d, breaker %s", d.weight, d.st.Latched, d.st.Breaker.Phase)
	}
	for range 60 {
		d.pass(5, 40)
	}
	if d.st.Step == 0 {
		t.Errorf("never went on: %s", d.decision.Reason())
	}
}

// TestNothingMovesOnEvidenceOfBefore: without a window that is newer than the
// last change the share stays, however often it is looked at.
func TestNothingMovesOnEvidenceOfBefore(t *testing.T) {
	for name, tt := range map[string]struct{ errors, want int64 }{
		"few errors":  {0, 11}, // 10.5 % after 5 minutes, once more with the window of minute 6
		"many errors": {4, 6},  // 8 % after 1 minute, 6.4 % after 6
	} {
		t.Run(name, func(t *testing.T) {
			d := start(t, adaptive())
			d.pass(6, 40, failing(tt.errors))
			d.pass(50, -1)
			d.wantWeight(tt.want)
			d.pass(50, 0)
			d.pass(5, 40) // nobody knows their status
			d.wantWeight(tt.want)
		})
	}
}

// TestWhatHoldsTheStepHoldsTheShare: a share does not creep up past the step's
// while a signal fails that holds, nor while the gateway does not follow; it
// may come back to the step's.
func TestWhatHoldsTheStepHoldsTheShare(t *testing.T) {
	holding := func(p *ladder.Plan) {
		for i := range p.Steps {
			p.Steps[i].Limits.Rules[release.Transfers].OnFail = release.HoldStep
		}
	}
	handing := func(w *release.Window) { w.Transfers = 10 }
	t.Run("a signal that holds", func(t *testing.T) {
		d := start(t, adaptive(holding))
		d.pass(60, 40, failing(0), handing)
		d.wantWeight(10)
		d.wantHold(ladder.WhyFailing)
	})
	t.Run("and back to the step's share", func(t *testing.T) {
		d := start(t, adaptive(holding))
		d.pass(10, 40, failing(8), handing)
		if !pct(10).Above(d.weight) {
			t.Fatalf("weight %s", d.weight)
		}
		d.pass(120, 40, failing(0), handing)
		d.wantWeight(10)
	})
	t.Run("a gateway that does not follow", func(t *testing.T) {
		d := start(t, adaptive(func(p *ladder.Plan) { p.Share = ladder.ShareCheck{On: true, DesignEffect: 1, Tolerance: 0.5} }))
		for range 60 {
			w := d.window(400, 360)
			w.T = d.now
			w.Arm = release.Stable
			d.stable = []release.Window{w}
			d.pass(1, 400, failing(0))
		}
		d.wantHold(ladder.WhyMismatch)
		d.wantWeight(10)
	})
}

// TestAFallNeverRaises the weight, though another configuration has put the
// bounds above it: accepted or not.
func TestAFallNeverRaises(t *testing.T) {
	t.Run("not accepted", func(t *testing.T) {
		d := start(t, adaptive())
		d.pass(4, 40, failing(0))
		d.plan = adaptive(func(p *ladder.Plan) {
			p.Digest, p.Steps[0].Weight, p.Steps[1].Weight = "d2", pct(50), pct(60)
		})
		d.pass(30, 40, failing(8))
		d.wantWeight(10)
	})
	t.Run("accepted", func(t *testing.T) {
		d := start(t, adaptive(func(p *ladder.Plan) { p.Adaptive.Min = pct(2) }))
		d.pass(60, 100, failing(10))
		d.wantWeight(2)
		d.plan = adaptive(func(p *ladder.Plan) { p.Digest, p.Adaptive.Min = "d2", pct(8) })
		must(t, ladder.AcceptConfig(d.plan, &d.st))
		d.pass(30, 100, failing(10))
		d.wantWeight(2)
		d.pass(5, 100, failing(0))
		d.wantWeight(2)
		d.pass(1, 100, failing(0))
		d.wantWeight(8)
	})
}

// TestAnAdaptedShareOutlivesAClockThatWasAhead: it is known to be below the
// step's, and a fall does not wait for the clock to come that far again.
func TestAnAdaptedShareOutlivesAClockThatWasAhead(t *testing.T) {
	d := start(t, adaptive())
	d.pass(3, 40, failing(0))
	d.now = d.now.Add(minutes(24 * 60))
	d.pass(1, 40, failing(8))
	d.wantWeight(8)
	d.now = d.now.Add(-minutes(24 * 60))
	d.pass(1, 40, failing(0))
	d.wantHold(ladder.WhyThrottled)
	d.plan = adaptive(func(p *ladder.Plan) { p.Digest = "d2" })
	must(t, ladder.AcceptConfig(d.plan, &d.st))
	d.pass(6, 40, failing(8))
	d.wantWeight(6)
}

// TestNothingGoesForwardWhileASignalThrottles, though a step of one slot of the
// ring cannot be lowered.
func TestNothingGoesForwardWhileASignalThrottles(t *testing.T) {
	full := func(w *release.Window) { w.KVCache = 0.97 }
	d := start(t, plan(streaming()))
	d.pass(9, 30, smooth)
	d.pass(1, 30, smooth, full)
	d.wantHold(ladder.WhyThrottled)
	d.wantWeight(1)
	d.pass(3, -1) // nobody has seen it go down
	d.wantWeight(1)
	d.pass(1, 30, smooth)
	d.wantWeight(5)
}
