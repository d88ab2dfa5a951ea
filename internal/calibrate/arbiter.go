package calibrate

import (
	"fmt"
	"slices"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// Replayer returns the replay of this report's own limits over the baseline it
// was measured on, incidents left out: those the breaker shall find.
func (r *Report) Replayer(base *ladder.Plan) (*Replay, error) {
	plan, err := r.Plan(base)
	if err != nil {
		return nil, err
	}
	r.silence(plan)
	o := r.replay
	o.GridStep = r.gridStep()
	if r.Cost.CV != nil {
		o.CostCV = *r.Cost.CV
	}
	o.PerWeek = r.Meta.Budget.PerWeek * r.Meta.Budget.Shares[release.SolveRate.String()]
	x := &exact{}
	for _, drop := range []float64{r.Slow.TolerableDropPP, r.Slow.DetectDropPP} {
		if drop/100 < r.Slow.SolveBaseline {
			o.Drops = append(o.Drops, x.ratio(number(drop)))
		}
	}
	if p := &r.Slow.Plain; p.ThresholdPP != nil && p.MinSamples != nil {
		o.PlainDropPP, o.PlainMinSamples = x.ratio(number(*p.ThresholdPP)), *p.MinSamples
	}
	if x.err != nil {
		return nil, x.err
	}
	return NewReplay(r.clean, plan, o)
}

// silence switches off the signals that the baseline does not supply: a
// replayed gate would wait for them for ever.
func (r *Report) silence(plan *ladder.Plan) {
	for i := range plan.Steps {
		rules := &plan.Steps[i].Limits.Rules
		for s := range rules {
			if _, supplied := r.Meta.Budget.Shares[release.Signal(s).String()]; !supplied {
				rules[s].Mode = release.Off
			}
		}
	}
}

// gridStep is the first step whose window can judge, else the last one.
func (r *Report) gridStep() int {
	for i := range r.Steps {
		if r.Steps[i].CanJudge {
			return i
		}
	}
	return len(r.Steps) - 1
}

const (
	// raise is by how many sigmas the multiplier is raised at a time, and
	// maxRaise by how many in all: what 2 sigmas more do not mend is no noise.
	raise    = 0.25
	maxRaise = 2.0
)

// Raise holds the false trips of the solve rate, of each step in each replayed
// week, against the budget. Where a step has certainly more (its lower 95 %
// limit), the formulas are wrong about this service and the larger threshold is
// used: the multiplier is raised a little, and Raise reports that the weeks are
// to be replayed again. A cumulative sum has its limit from the weeks
// themselves.
func (r *Report) Raise(trips [][]int64) bool {
	s := &r.Slow
	if s.Z == nil || r.Meta.Judge == string(CusumJudge) || s.Raised >= maxRaise || len(trips) == 0 {
		return false
	}
	budget := r.Meta.Budget.PerWeek * r.Meta.Budget.Shares[release.SolveRate.String()]
	for i := range r.Steps {
		var n int64
		for _, week := range trips {
			n += week[i]
		}
		if lower, _ := stats.Garwood(n, float64(len(trips)), 0.95); lower > budget {
			r.again(s.Raised + raise)
			return true
		}
	}
	return false
}

// again derives multiplier, steps and verdict anew.
func (m *measurement) again(by float64) {
	r := m.r
	r.Slow.Raised = by
	r.Steps, r.limits = []Step{}, nil
	r.Warnings = slices.DeleteFunc(r.Warnings, func(w Warning) bool {
		return slices.Contains(r.Verdict.Reasons, w.Code) || w.Code == raisedCode
	})
	m.fitted()
	m.steps()
	m.judge()
	r.warn(raisedCode, fmt.Sprintf("by the formula %s sigma would do; replayed, they trip a healthy canary more often than allowed, and %s are used", number(round(*r.Slow.Z-by, 3)), number(*r.Slow.Z)),
		"the noise is not what the formula assumes: its tail is longer, or it hangs together for longer; see the incidents and the hours")
}

const raisedCode = "replay-raised"

// Take puts what the replay found into the report.
func (r *Report) Take(found *Replayed) {
	found.Seed = r.Meta.Seed
	r.Replay = found
	r.disagreement()
}

// disagreement says where the replay contradicts the formulas.
func (r *Report) disagreement() {
	joint, budget := r.Replay.JointPerWeek, r.Meta.Budget.PerWeek
	if joint.Lower > budget && r.Meta.Rule == "budget" {
		r.warn("over-budget", fmt.Sprintf("replayed, a healthy canary trips %s times a week (95 %%: %s to %s), more than the budget of %s", number(sig(joint.Rate, 2)), number(sig(joint.Lower, 2)), number(sig(joint.Upper, 2)), number(budget)),
			"the noise is not what the formulas assume; look at by_signal, the hours and the incidents")
	}
	grid := r.Replay.Grid
	if grid == nil || grid.RecommendedPP == nil || r.Meta.Rule != "budget" {
		return
	}
	for i := range r.Steps {
		st := &r.Steps[i]
		if st.Pct == grid.Pct && st.ThresholdPP != nil && *grid.RecommendedPP-*st.ThresholdPP > 1 {
			r.warn("replay-disagrees", fmt.Sprintf("at %s a fixed drop keeps the budget in the replay from %s pp on, the formula says %s pp", percent(grid.Pct), number(*grid.RecommendedPP), number(sig(*st.ThresholdPP, 3))), "believe the replay: a larger --tolerable-drop, or the fitted form, which asks for more when the window holds little")
		}
	}
}
