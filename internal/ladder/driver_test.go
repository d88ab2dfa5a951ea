package ladder_test

import (
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

var t0 = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

func minutes(n int) time.Duration { return time.Duration(n) * time.Minute }

func pct(n int64) release.Weight { return release.Weight{Slots: n, Ring: 100} }

// published returns the limits of DESIGN section 3.
func published() breaker.Limits {
	return breaker.Limits{
		FastSpan: minutes(5), ViolationLimit: 3, ViolationRate: release.MustRatio("0.005"),
		MinTransfers: 3, TransferRate: release.MustRatio("0.06"), CostRatio: 2, P99MS: 900,
		SlowSpan: minutes(25), SolveFloor: release.MustRatio("0.8"), MinSamples: 200,
		Cooldown: minutes(6), Trials: 5, SuccessRate: release.MustRatio("0.8"), LockOnEscalate: true, MaxRecoveries: 3,
	}
}

// plan returns a ladder of 1, 5, 10 and 100 % with holds of ten minutes; set
// changes every step.
func plan(set ...func(*ladder.Step)) *ladder.Plan {
	p := &ladder.Plan{Service: "order-service", Digest: "d1", Candidate: "c1", ApprovalTimeout: 24 * time.Hour}
	for _, share := range []int64{1, 5, 10, 100} {
		s := ladder.Step{Weight: pct(share), MinHold: minutes(10), Gates: ladder.TimeGate | ladder.MetricGate, Limits: published()}
		for _, f := range set {
			f(&s)
		}
		p.Steps = append(p.Steps, s)
	}
	return p
}

func gates(g ladder.Gates) func(*ladder.Step) { return func(s *ladder.Step) { s.Gates = g } }

func hold(n int) func(*ladder.Step) { return func(s *ladder.Step) { s.MinHold = minutes(n) } }

func limits(set func(*breaker.Limits)) func(*ladder.Step) {
	return func(s *ladder.Step) { set(&s.Limits) }
}

// driver does what a live driver does: every minute it shows Decide the window
// that has ended and the weight, and writes what Decide asks for.
type driver struct {
	t    *testing.T
	plan *ladder.Plan
	st   ladder.State
	now  time.Time

	weight   release.Weight
	deaf     bool // writes do not arrive
	unread   bool // the target cannot be read
	failed   bool // the source cannot be read
	stable   []release.Window
	moves    []release.Move // all but holds, in order
	events   []release.Event
	writes   []release.Weight
	decision ladder.Decision // the last one

	rolledBack release.Finding // what the last gate failed by
}

// start begins a release at t0 with its first weight read back.
func start(t *testing.T, p *ladder.Plan) *driver {
	t.Helper()
	d := &driver{t: t, plan: p, now: t0, weight: pct(0)}
	d.decide()
	if !d.weight.Same(p.Steps[0].Weight) || d.st.Stage != ladder.Climbing {
		t.Fatalf("not started: %s", d.decision.Reason())
	}
	return d
}

// window returns a canary window that ends now, with every count known.
func (d *driver) window(total, solved int64) release.Window {
	return release.Window{
		T: d.now.Add(-time.Minute), Span: time.Minute, Arm: release.Canary, Total: total, Judged: total, Solved: solved,
		Known: release.HasSolved | release.HasViolations | release.HasTransfers,
	}
}

// pass lets minutes go by, each with a window of so many requests, nine of ten
// solved, changed by change; total 0 is an empty window, below 0 none at all.
func (d *driver) pass(n int, total int64, change ...func(*release.Window)) ladder.Decision {
	d.t.Helper()
	for range n {
		d.now = d.now.Add(time.Minute)
		var ws []release.Window
		if total >= 0 {
			w := d.window(total, total*9/10)
			for _, f := range change {
				f(&w)
			}
			ws = append(ws, w)
		}
		d.decide(ws...)
	}
	return d.decision
}

// decide calls Decide until it has nothing more to change at this instant.
func (d *driver) decide(ws ...release.Window) ladder.Decision {
	d.t.Helper()
	for range 10 {
		d.once(ws...)
		switch {
		case d.decision.Write && d.deaf:
			return d.decision
		case !d.decision.Write && !d.decision.Happened && d.decision.Move != release.Complete:
			return d.decision
		}
	}
	d.t.Fatalf("Decide asks for ever: %s, %s", d.decision.Move, d.decision.Reason())
	return d.decision
}

// once is one Decide and its write.
func (d *driver) once(ws ...release.Window) ladder.Decision {
	d.t.Helper()
	ev := ladder.Evidence{Windows: ws, Stable: d.stable, SourceFailed: d.failed,
		Observed: ladder.Observed{Weight: d.weight, At: d.now, Known: !d.unread}}
	d.decision = ladder.Decide(d.plan, &d.st, ev, d.now)
	d.stable = nil
	if d.decision.Reason() == "" {
		d.t.Fatalf("%s for %s has no reason in words", d.decision.Move, d.decision.Why)
	}
	if d.decision.Happened {
		d.events = append(d.events, d.decision.Event)
	}
	if d.decision.Why == ladder.WhyGateFailed {
		d.rolledBack = d.decision.Finding
	}
	if d.decision.Move != release.Hold {
		d.moves = append(d.moves, d.decision.Move)
	}
	if d.decision.Write {
		d.writes = append(d.writes, d.decision.Weight)
		if !d.deaf {
			d.weight = d.decision.Weight
		}
	}
	return d.decision
}

// trip makes the next minute one with violations past their limit.
func (d *driver) trip() ladder.Decision {
	d.t.Helper()
	return d.pass(1, 26, func(w *release.Window) { w.Violations = 3 })
}

// wantHold fails unless the last decision is a hold for this reason.
func (d *driver) wantHold(why ladder.Why) {
	d.t.Helper()
	move := release.Hold
	if why == ladder.WhyApproval {
		move = release.AwaitApproval
	}
	if d.decision.Move != move || d.decision.Why != why || d.decision.Write {
		d.t.Fatalf("%s for %q (%s), want %s for %q", d.decision.Move, d.decision.Why, d.decision.Reason(), move, why)
	}
}

func (d *driver) wantWeight(share int64) {
	d.t.Helper()
	if !d.weight.Same(pct(share)) {
		d.t.Fatalf("weight %s, want %d %% (%s)", d.weight, share, d.decision.Reason())
	}
}

func (d *driver) wantPhase(p release.Phase) {
	d.t.Helper()
	if d.st.Breaker.Phase != p {
		d.t.Fatalf("breaker %s, want %s (%s)", d.st.Breaker.Phase, p, d.decision.Reason())
	}
}
