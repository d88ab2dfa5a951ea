package ladder_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// TestEveryReasonHasWords, also of a decision that carries no figures.
func TestEveryReasonHasWords(t *testing.T) {
	seen := map[string]ladder.Why{}
	for why := ladder.WhyStart; why <= ladder.WhyManual; why++ {
		d := ladder.Decision{Why: why}
		if d.Reason() == "" {
			t.Errorf("%s has no reason", why)
		}
		if other, ok := seen[why.String()]; ok || why.String() == "" {
			t.Errorf("%d and %d have the same name %q", why, other, why)
		}
		seen[why.String()] = why
	}
}

// minuteOf is one minute of a random release.
type minuteOf struct {
	gap, failed, unread, deaf bool
	foreign                   int64 // a weight that somebody else sets; 0: nobody
	window                    release.Window
	stable                    int64 // judged requests of stable; 0: no window
	person                    int   // what a person does; 0: nothing
}

func drawMinute(t *rapid.T) minuteOf {
	rare := func(name string, one int) bool { return rapid.IntRange(0, one).Draw(t, name) == one }
	m := minuteOf{gap: rare("gap", 8), failed: rare("failed", 15), unread: rare("unread", 15), deaf: rare("deaf", 8)}
	if rare("foreign", 25) {
		m.foreign = rapid.SampledFrom([]int64{1, 5, 7, 50}).Draw(t, "share")
	}
	if rare("person", 12) {
		m.person = rapid.IntRange(1, 5).Draw(t, "what")
	}
	w := release.Window{Span: time.Minute, Arm: release.Canary, Total: rapid.Int64Range(0, 80).Draw(t, "total")}
	w.Judged = w.Total - rapid.Int64Range(0, w.Total/4).Draw(t, "unjudged")
	w.Solved = w.Judged - rapid.Int64Range(0, w.Judged/7).Draw(t, "unsolved")
	w.Known = release.HasSolved | release.HasViolations | release.HasTransfers
	if rapid.Bool().Draw(t, "status") {
		w.StatusOf, w.Known = w.Total, w.Known|release.HasErrors
		w.Errors = rapid.Int64Range(0, w.Total/8).Draw(t, "errors")
	}
	if rare("full", 6) {
		w.KVCache, w.Known = 0.95, w.Known|release.HasKVCache
	}
	if rare("fault", 20) {
		w.Violations = rapid.Int64Range(0, 4).Draw(t, "violations")
	}
	if rapid.Bool().Draw(t, "cost") {
		w.CostMean, w.Known = 0.01, w.Known|release.HasCostMean
	}
	if rapid.Bool().Draw(t, "latency") {
		w.Slow, w.Known = w.Total/30, w.Known|release.HasSlow
	}
	m.stable = rapid.SampledFrom([]int64{0, 10, 200}).Draw(t, "stable")
	m.window = w
	return m
}

func drawPlan(t *rapid.T) *ladder.Plan {
	p := plan(hold(rapid.IntRange(0, 8).Draw(t, "hold")), limits(func(l *breaker.Limits) {
		l.MinSamples = rapid.Int64Range(1, 200).Draw(t, "min_samples")
		l.LabelLag = minutes(rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "lag"))
		l.Cooldown = minutes(rapid.IntRange(0, 6).Draw(t, "cooldown"))
		l.Trials = rapid.Int64Range(1, 3).Draw(t, "trials")
		l.LockOnEscalate = false
		l.SolveBaseline, l.SlowRate, l.MinSlow = release.MustRatio("0.9"), release.MustRatio("0.05"), 3
		l.Cusum = breaker.Cusum{Drop: release.MustRatio("0.1"), Limit: 8}
		l.P99ByCount, l.AgainstStable = rapid.Bool().Draw(t, "by_count"), rapid.Bool().Draw(t, "against_stable")
		l.Judge = breaker.Judge(rapid.IntRange(0, 1).Draw(t, "judge"))
		l.Noise.Z = rapid.SampledFrom([]float64{0, 3}).Draw(t, "z")
	}))
	if rapid.Bool().Draw(t, "adaptive") {
		a := ladder.DefaultAdaptive()
		a.On, a.Limit, a.Span, a.Least = true, release.MustRatio("0.05"), minutes(5), 20
		a.Interval = minutes(rapid.IntRange(1, 5).Draw(t, "interval"))
		a.Min = rapid.SampledFrom([]release.Weight{{}, pct(3)}).Draw(t, "min")
		a.Max = rapid.SampledFrom([]release.Weight{{}, pct(50)}).Draw(t, "max")
		p.Adaptive = a
	}
	p.CostBaselineUSD = rapid.SampledFrom([]float64{0, 0.01}).Draw(t, "baseline")
	if rapid.Bool().Draw(t, "approval") {
		for i := range p.Steps {
			p.Steps[i].Gates |= ladder.ApprovalGate
		}
	}
	return p
}

// world is a random release under way, without any test helper's state.
type world struct {
	plan   *ladder.Plan
	st     *ladder.State
	now    time.Time
	weight release.Weight
	last   ladder.Decision
}

func (w *world) evidence(m *minuteOf) ladder.Evidence {
	ev := ladder.Evidence{SourceFailed: m.failed, Observed: ladder.Observed{Weight: w.weight, At: w.now, Known: !m.unread}}
	if !m.gap && !m.failed {
		win := m.window
		win.T = w.now.Add(-time.Minute)
		ev.Windows = []release.Window{win}
		if m.stable > 0 {
			ev.Stable = []release.Window{{T: win.T, Span: time.Minute, Arm: release.Stable, Total: m.stable, Judged: m.stable, Solved: m.stable * 9 / 10, Known: release.HasSolved}}
		}
	}
	return ev
}

// act does a person's part of a minute; refusals are as good as anything.
func (w *world) act(m *minuteOf) {
	switch m.person {
	case 1:
		_ = ladder.Approve(w.st, &w.last, ladder.Approval{Attempt: w.last.Attempt, Step: w.last.Step, Digest: w.plan.Digest, At: w.now})
	case 2:
		_ = ladder.Pause(w.st, w.now)
	case 3:
		_ = ladder.Resume(w.st, w.now)
	case 4:
		_ = ladder.ClearLock(w.st, w.now)
	case 5:
		if m.window.Total%4 == 0 {
			_, _ = ladder.RollBack(w.plan, w.st, w.now)
		}
	}
}

// minute plays one minute and hands each decision to see.
func (w *world) minute(t *rapid.T, m *minuteOf, see func(ladder.Decision)) {
	w.now = w.now.Add(time.Minute)
	if m.foreign > 0 {
		w.weight = pct(m.foreign)
	}
	w.act(m)
	for range 12 {
		d := ladder.Decide(w.plan, w.st, w.evidence(m), w.now)
		w.last = d
		see(d)
		switch {
		case d.Write && (m.deaf || m.unread):
			return
		case d.Write:
			w.weight = d.Weight
		case !d.Happened && d.Move != release.Complete:
			return
		}
	}
	t.Fatalf("Decide asks for ever: %s, %s", w.last.Move, w.last.Reason())
}

func newWorld(p *ladder.Plan) *world {
	return &world{plan: p, st: new(ladder.State), now: t0, weight: pct(0)}
}

// TestRandomReleasesKeepTheRules: whatever comes, no weight is asked for but
// the first step's, the next step's, one below that and 0; a step forward is one step; every
// decision has a reason.
func TestRandomReleasesKeepTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(drawPlan(t))
		for range rapid.IntRange(1, 150).Draw(t, "minutes") {
			m := drawMinute(t)
			before, weight := w.st.Step, w.st.Weight
			w.minute(t, &m, func(d ladder.Decision) {
				if d.Reason() == "" {
					t.Fatalf("%s for %s has no reason", d.Move, d.Why)
				}
				checkMove(t, w, d, weight)
				if d.Verdict == release.Pass && d.Move == release.Advance && w.st.Gate.Judged < w.plan.Steps[before].Limits.MinSamples {
					t.Fatalf("passed on %d judged", w.st.Gate.Judged)
				}
			})
			if w.st.Step > before+1 {
				t.Fatalf("from step %d to %d in one minute", before, w.st.Step)
			}
		}
	})
}

func checkMove(t *rapid.T, w *world, d ladder.Decision, before release.Weight) {
	if !d.Write {
		return
	}
	steps, ok := w.plan.Steps, false
	switch d.Move {
	case release.Start, release.Probe:
		ok = d.Weight.Same(steps[0].Weight)
	case release.Advance:
		ok = d.Step > 0 && d.Weight.Same(steps[d.Step].Weight) && d.Step <= w.st.Step+1
	case release.RollBackMove, release.Lock:
		ok = d.Weight.IsZero()
	case release.Adjust:
		ok = !d.Weight.IsZero() && (d.Step == len(steps)-1 || steps[d.Step+1].Weight.Above(d.Weight))
	}
	if !ok {
		t.Fatalf("%s asks for %s at step %d, weight before %s", d.Move, d.Weight, d.Step, before)
	}
}

// TestDecideIsIdempotent: shown nothing new, it says the same again and leaves
// the state as it was.
func TestDecideIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(drawPlan(t))
		for range rapid.IntRange(1, 100).Draw(t, "minutes") {
			m := drawMinute(t)
			w.minute(t, &m, func(ladder.Decision) {})
			first := ladder.Decide(w.plan, w.st, w.evidence(&m), w.now)
			state := written(t, w.st)
			second := ladder.Decide(w.plan, w.st, w.evidence(&m), w.now)
			if first.Happened || first.Move == release.Complete {
				continue
			}
			first.Again, second.Again = false, false
			if diff := cmp.Diff(first, second); diff != "" && !first.Write {
				t.Fatalf("the second decision differs:\n%s", diff)
			}
			if first.Move != second.Move || first.Why != second.Why || !first.Weight.Same(second.Weight) || first.Step != second.Step {
				t.Fatalf("%s %s, then %s %s", first.Move, first.Weight, second.Move, second.Weight)
			}
			if diff := cmp.Diff(state, written(t, w.st)); diff != "" {
				t.Fatalf("the state changed:\n%s", diff)
			}
			if first.Write && !m.deaf && !m.unread {
				w.weight = first.Weight
			}
		}
	})
}

func written(t *rapid.T, st *ladder.State) string {
	b, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestAStateReadBackDecidesTheSame: written as JSON and read back before every
// minute of a random release, the decisions are those of a release that was
// never interrupted.
func TestAStateReadBackDecidesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		a, b := newWorld(p), newWorld(p)
		for range rapid.IntRange(1, 120).Draw(t, "minutes") {
			m := drawMinute(t)
			var want, got []ladder.Decision
			a.minute(t, &m, func(d ladder.Decision) { want = append(want, d) })
			again := new(ladder.State)
			if err := json.Unmarshal([]byte(written(t, b.st)), again); err != nil {
				t.Fatal(err)
			}
			b.st = again
			b.minute(t, &m, func(d ladder.Decision) { got = append(got, d) })
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("at %s:\n%s", a.now, diff)
			}
			if diff := cmp.Diff(written(t, a.st), written(t, b.st)); diff != "" {
				t.Fatalf("at %s the states differ:\n%s", a.now, diff)
			}
		}
	})
}

// TestACopyOfAStateIsWrittenWhole: the breaker's windows are not lost when the
// state is marshalled by value.
func TestACopyOfAStateIsWrittenWhole(t *testing.T) {
	d := start(t, plan())
	d.pass(5, 30)
	byValue, err := json.Marshal(d.st)
	if err != nil {
		t.Fatal(err)
	}
	byPointer, err := json.Marshal(&d.st)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(byPointer), string(byValue)); diff != "" {
		t.Error(diff)
	}
}

// TestMoreSamplesNeverTurnPassIntoInsufficient: a gate that passes still has
// samples enough however many come after.
func TestMoreSamplesNeverTurnPassIntoInsufficient(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := plan(hold(1000), gates(ladder.TimeGate|ladder.MetricGate), limits(func(l *breaker.Limits) {
			l.MinSamples = rapid.Int64Range(1, 200).Draw(rt, "min_samples")
		}))
		w := newWorld(p)
		enough := map[int]bool{}
		for range 60 {
			m := minuteOf{window: drawMinute(rt).window}
			w.minute(rt, &m, func(d ladder.Decision) {
				for s, v := range d.Verdicts {
					if enough[s] && v.Looked && (v.Verdict == release.Insufficient || v.Verdict == release.NoData) && w.st.Attempt == 1 && d.Phase == release.Closed {
						rt.Fatalf("%s had samples enough and is %s now: %+v", release.Signal(s), v.Verdict, v.Finding)
					}
					if v.Verdict == release.Pass && v.Looked && v.Finding.Of > 0 {
						enough[s] = true
					}
				}
			})
		}
	})
}
