package ladder_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// withSteps is a plan with another ladder and another digest.
func withSteps(digest string, shares ...int64) *ladder.Plan {
	p := plan()
	p.Digest = digest
	step := p.Steps[0]
	p.Steps = nil
	for _, x := range shares {
		step.Weight = pct(x)
		p.Steps = append(p.Steps, step)
	}
	return p
}

// pending are releases with a write that was asked for and did not arrive.
var pending = map[string]func(t *testing.T) *driver{
	"the first step": func(t *testing.T) *driver {
		d := &driver{t: t, plan: plan(), now: t0, weight: pct(0), deaf: true}
		d.decide()
		return d
	},
	"the second step": func(t *testing.T) *driver {
		d := start(t, plan())
		d.deaf = true
		d.pass(10, 30)
		return d
	},
}

func TestAStepThatWasAskedForWaitsForWhatForbidsIt(t *testing.T) {
	for name, reach := range pending {
		for what, tc := range map[string]struct {
			forbid, allow func(d *driver)
			why           ladder.Why
		}{
			"a pause": {
				func(d *driver) { must(d.t, ladder.Pause(&d.st, d.now)) },
				func(d *driver) { must(d.t, ladder.Resume(&d.st, d.now)) }, ladder.WhyPaused,
			},
			"a freeze": {
				func(d *driver) {
					d.plan.Freezes = []ladder.Freeze{{Zone: time.UTC, Days: everyDay, To: 24 * time.Hour}}
				},
				func(d *driver) { d.plan.Freezes = nil }, ladder.WhyFrozen,
			},
			"a changed configuration": {
				func(d *driver) { d.plan = withSteps("d2", 1, 5, 100) },
				func(d *driver) { must(d.t, ladder.AcceptConfig(d.plan, &d.st)) }, ladder.WhyConfigChanged,
			},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				d := reach(t)
				asked, written := d.st.Pending.Weight, len(d.writes)
				tc.forbid(d)
				for range 30 {
					d.pass(1, 0)
					d.wantHold(tc.why)
				}
				d.unread = true // as little while nobody can look
				d.pass(1, 0)
				d.wantHold(tc.why)
				d.unread = false
				if len(d.writes) != written {
					t.Fatal("written")
				}
				tc.allow(d)
				d.deaf = false
				d.pass(1, 0)
				if !d.weight.Same(asked) {
					t.Errorf("the target holds %s", d.weight)
				}
			})
			t.Run(name+" that arrived, "+what, func(t *testing.T) {
				d := reach(t)
				asked := d.st.Pending.Weight
				tc.forbid(d)
				d.weight = asked
				d.pass(1, 0)
				if d.st.Pending.Move != release.Hold || !d.st.Weight.Same(asked) {
					t.Errorf("not taken note of: %s, %s pending", d.st.Weight, d.st.Pending.Move)
				}
				d.pass(30, 30)
				if d.weight.Above(asked) {
					t.Errorf("went on to %s", d.weight)
				}
			})
		}
	}
}

func TestAcceptingAConfigurationReconsidersWhatWasAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		from   string
		ladder []int64
		want   int64 // still asked for; 0: forgotten
	}{
		"the first step is the same":     {"the first step", []int64{1, 100}, 1},
		"the first step is another":      {"the first step", []int64{2, 100}, 0},
		"the second step is the same":    {"the second step", []int64{1, 5, 7, 100}, 5},
		"there is a step before it":      {"the second step", []int64{1, 2, 5, 100}, 0},
		"there is no second step":        {"the second step", []int64{1}, 0},
		"the second step is another one": {"the second step", []int64{1, 100}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := pending[tc.from](t)
			d.plan = withSteps("d2", tc.ladder...)
			must(t, ladder.AcceptConfig(d.plan, &d.st))
			want := ladder.Pending{}
			if tc.want > 0 {
				want = d.st.Pending
				want.Weight = pct(tc.want)
			}
			if d.st.Pending != want {
				t.Errorf("%s to %s is pending", d.st.Pending.Move, d.st.Pending.Weight)
			}
			d.deaf = false
			for range 200 {
				if d.pass(1, 600); d.weight.Above(pct(tc.ladder[len(tc.ladder)-1])) {
					t.Fatalf("%s, above the ladder's last step", d.weight)
				}
			}
			if d.st.Stage != ladder.Completed {
				t.Errorf("%s: %s", d.st.Stage, d.decision.Reason())
			}
		})
	}
	t.Run("probes go on at the new first step", func(t *testing.T) {
		d := start(t, plan())
		d.trip()
		d.deaf = true
		d.pass(8, -1)
		d.plan = withSteps("d2", 2, 100)
		must(t, ladder.AcceptConfig(d.plan, &d.st))
		d.deaf = false
		d.pass(1, -1)
		d.wantWeight(2)
	})
}

// TestAnyChangeOfTheConfigurationIsSurvived: whatever the ladder becomes, with
// whatever pending, nothing runs off its end, and no step forward is asked for
// that is not the next of a configuration that was accepted.
func TestAnyChangeOfTheConfigurationIsSurvived(t *testing.T) {
	shares := []int64{1, 2, 5, 10, 50, 100}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(drawPlan(t))
		for n := range rapid.IntRange(1, 120).Draw(t, "minutes") {
			m := drawMinute(t)
			if rapid.IntRange(0, 5).Draw(t, "edit") == 0 {
				p := *w.plan
				p.Digest = fmt.Sprint("edit ", n)
				p.Steps = nil
				for _, x := range shares {
					if rapid.Bool().Draw(t, "step") || x == 100 && len(p.Steps) == 0 {
						s := w.plan.Steps[0]
						s.Weight = pct(x)
						p.Steps = append(p.Steps, s)
					}
				}
				w.plan = &p
			}
			if rapid.IntRange(0, 4).Draw(t, "accept") == 0 {
				_ = ladder.AcceptConfig(w.plan, w.st)
			}
			w.minute(t, &m, func(d ladder.Decision) {
				d.Remaining()
				if d.Reason() == "" {
					t.Fatalf("%s has no reason", d.Move)
				}
				if !d.Write || d.Move != release.Start && d.Move != release.Advance {
					return
				}
				if w.st.Paused || w.st.Digest != w.plan.Digest || !d.Weight.Same(w.plan.Steps[d.Step].Weight) {
					t.Fatalf("%s to %s, paused %v, configuration %s of %s", d.Move, d.Weight, w.st.Paused, w.st.Digest, w.plan.Digest)
				}
			})
		}
	})
}

func TestProbesThatWaitForTrafficAreOverdue(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(s *ladder.Step)
		want int // minutes of HALF_OPEN
	}{
		"ten times as long as probes take":     {func(*ladder.Step) {}, 50},
		"max_wait_min of the first step":       {func(s *ladder.Step) { s.MaxWait = minutes(20) }, 20},
		"labels come in late: so much more":    {func(s *ladder.Step) { s.Limits.LabelLag = minutes(30) }, 80},
		"more probes take longer, in any case": {func(s *ladder.Step) { s.Limits.Trials = 10 }, 100},
	} {
		t.Run(name, func(t *testing.T) {
			d := start(t, plan(tc.set))
			d.pass(1, 30)
			d.trip()
			for d.st.Breaker.Phase != release.HalfOpen {
				d.pass(1, -1)
			}
			begun := d.st.Breaker.Since
			for !d.decision.Overdue && d.now.Sub(begun) < 5*time.Hour {
				d.pass(1, -1)
			}
			if got := int(d.now.Sub(begun) / time.Minute); got != tc.want {
				t.Errorf("overdue after %d minutes, want %d", got, tc.want)
			}
			d.wantHold(ladder.WhyProbing)
			d.wantWeight(1)
		})
	}
}

// TestAPartOfTheEvidenceTakesNoStep, and rolls back all the same.
func TestAPartOfTheEvidenceTakesNoStep(t *testing.T) {
	d := start(t, plan())
	d.pass(9, 30)
	d.now = d.now.Add(minutes(5))
	w := d.window(30, 27)
	ev := ladder.Evidence{Windows: []release.Window{w}, More: true, Observed: ladder.Observed{Weight: d.weight, At: d.now, Known: true}}
	if got := ladder.Decide(d.plan, &d.st, ev, d.now); got.Move != release.Hold || got.Why != ladder.WhyMore || !d.st.Seen.Equal(w.T) {
		t.Errorf("%s for %s, seen %s", got.Move, got.Why, d.st.Seen)
	}
	bad := w
	bad.T, bad.Violations = w.T.Add(time.Minute), 3
	d.now = d.now.Add(time.Minute)
	ev.Windows = []release.Window{bad}
	if got := ladder.Decide(d.plan, &d.st, ev, d.now); got.Move != release.RollBackMove {
		t.Errorf("%s for %s", got.Move, got.Why)
	}
}

// TestOnlyLabelsThatHaveChangedAreNews.
func TestOnlyLabelsThatHaveChangedAreNews(t *testing.T) {
	p := plan(limits(func(l *breaker.Limits) { l.LabelLag, l.AgainstStable = minutes(10), true }))
	d := start(t, p)
	stable := func(w *release.Window) []release.Window {
		return []release.Window{{T: w.T, Span: w.Span, Arm: release.Stable, Total: 100, Judged: 100, Solved: 90, Known: release.HasSolved}}
	}
	var shown []release.Window
	for range 15 {
		d.now = d.now.Add(time.Minute)
		w := d.window(30, 27)
		d.stable = stable(&w)
		d.decide(w)
		shown = append(shown, w)
	}
	for i := range shown {
		w := shown[i]
		if d.st.News(p, &w, stable(&w)) {
			t.Errorf("window %d is news", i)
		}
		other := stable(&w)
		other[0].Solved--
		more := w
		more.Solved++
		young := i >= 5
		if d.st.News(p, &more, stable(&w)) != young || d.st.News(p, &w, other) != young {
			t.Errorf("window %d with other labels: want news %v", i, young)
		}
		more.Known = 0
		if d.st.News(p, &more, stable(&w)) {
			t.Errorf("window %d without labels is news", i)
		}
	}
}
