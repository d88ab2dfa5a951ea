package calibrate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// Replayable reports whether there are limits to replay: a rule that could not
// be derived would leave the file's own, which nobody asked about.
func (r *Report) Replayable() bool {
	return r.Slow.SolveBaseline > 0 && r.Slow.MinSamples != nil && len(r.Steps) > 0 && (r.Slow.Z != nil || r.Meta.Rule == "plain")
}

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

// gridStep is the first step whose fixed window holds min_samples, else the
// last one.
func (r *Report) gridStep() int {
	for i := range r.Steps {
		if st := &r.Steps[i]; st.NWindow != nil && r.Slow.MinSamples != nil && *st.NWindow >= *r.Slow.MinSamples {
			return i
		}
	}
	return len(r.Steps) - 1
}

const (
	// raise is by how many sigmas the multiplier is raised at a time; counts are
	// raised by a tenth and at least one, cost_min_samples by half.
	raise = 0.25
	// maxRaises is how often: what that does not mend is no noise.
	maxRaises = 8
)

// Raise holds the false trips of each step, signal and replayed week against
// the budget. Where a signal has certainly more than its share at some step
// (the lower 95 % limit), the formulas are wrong about this service and the
// larger limit is used: it is raised a little, and Raise reports that the weeks
// are to be replayed again. A cumulative sum has its limit from the weeks
// themselves. It never lowers a limit: what one baseline did not show is not
// known to be absent.
func (r *Report) Raise(trips [][][release.Judged]int64) bool {
	if r.raise == nil || r.Meta.Rule != "budget" || len(trips) == 0 {
		return false
	}
	over, any := make([][release.Judged]bool, len(r.Steps)), false
	for i := range r.Steps {
		for s := range over[i] {
			signal := release.Signal(s)
			var n int64
			for _, week := range trips {
				n += week[i][s]
			}
			lower, _ := stats.Garwood(n, float64(len(trips)), 0.95)
			over[i][s] = lower > r.Meta.Budget.PerWeek*r.Meta.Budget.Shares[signal.String()] && r.raisable(i, signal)
			any = any || over[i][s]
		}
	}
	if any {
		r.raise(over)
	}
	return any
}

// raisable reports whether a signal has a limit at a step that was derived
// here and has not been raised too often.
func (r *Report) raisable(step int, signal release.Signal) bool {
	l := &r.limits[step]
	switch signal {
	case release.Violations:
		return l.violations != nil && l.raised[signal] < maxRaises
	case release.Transfers:
		return l.transfers != nil && l.raised[signal] < maxRaises
	case release.P99:
		return l.slow != nil && l.raised[signal] < maxRaises
	case release.Cost:
		return l.costSamples > 0 && l.raised[signal] < maxRaises
	case release.SolveRate:
		return r.slowRaisable()
	}
	return false
}

func (r *Report) slowRaisable() bool {
	return r.Slow.Z != nil && r.Slow.MinSamples != nil && r.Meta.Judge != string(CusumJudge) && r.Slow.Raised < raise*maxRaises
}

// raised is how often the replay has raised a signal's limit at a step.
func (m *measurement) raised(signal release.Signal, step int) int {
	if step >= len(m.more[signal]) {
		return 0
	}
	return m.more[signal][step]
}

// raise derives multiplier, steps and verdict anew with larger limits where
// they were passed too often.
func (m *measurement) raise(over [][release.Judged]bool) {
	r, slow := m.r, false
	for i := range over {
		for s := range over[i] {
			if len(m.more[s]) == 0 {
				m.more[s] = make([]int, len(over))
			}
			if over[i][s] && release.Signal(s) != release.SolveRate {
				m.more[s][i]++
			}
		}
		slow = slow || over[i][release.SolveRate]
	}
	if slow {
		r.Slow.Raised += raise
	}
	r.Warnings = slices.DeleteFunc(r.Warnings, func(w Warning) bool {
		return slices.Contains(r.Verdict.Reasons, w.Code) || w.Code == raisedCode || w.Code == noControl
	})
	r.Steps, r.limits = []Step{}, nil
	m.fitted()
	m.steps()
	m.judge()
	r.warn(raisedCode, "replayed, the limits of the formulas trip a healthy canary more often than allowed; larger ones are used: "+m.whatWasRaised(),
		"the noise is not what the formulas assume: its tail is longer, or it hangs together for longer; see the incidents and the hours")
}

// whatWasRaised lists the signals, and the multiplier by how much.
func (m *measurement) whatWasRaised() string {
	var parts []string
	if by := m.r.Slow.Raised; by > 0 {
		parts = append(parts, fmt.Sprintf("%s sigma in place of %s", number(*m.r.Slow.Z), number(round(*m.r.Slow.Z-by, 3))))
	}
	for s := range m.more {
		var steps []string
		for i, n := range m.more[s] {
			if n > 0 {
				steps = append(steps, percent(m.r.Steps[i].Pct))
			}
		}
		if len(steps) > 0 {
			parts = append(parts, fmt.Sprintf("%s at %s", release.Signal(s), strings.Join(steps, ", ")))
		}
	}
	return strings.Join(parts, "; ")
}

const raisedCode = "replay-raised"

// Take puts what the replay found into the report.
func (r *Report) Take(found *Replayed) {
	found.Seed = r.Meta.Seed
	r.Replay = found
	r.disagreement()
}

// releases warns of whole ladders that are rolled back falsely more often than
// their time and the budget explain: gates are no part of the budget.
func (r *Report) releases() {
	hours := 0.0
	for i := range r.base.Steps {
		hours += r.base.Steps[i].MinHold.Hours()
	}
	expected := -math.Expm1(-r.Meta.Budget.PerWeek * hours / (7 * 24))
	if b := r.Replay.Release.RolledBack; b.Lower > math.Max(2*expected, 0.02) {
		r.warn("releases-fail", fmt.Sprintf("replayed, %s of healthy releases are rolled back (95 %%: %s to %s)", percent(b.Rate), percent(b.Lower), percent(b.Upper)),
			"where no signal trips so often it is a gate that fails: see what the whole step's figures are held against, and simulate the baseline with this configuration")
	}
}

// disagreement says where the replay contradicts the formulas.
func (r *Report) disagreement() {
	joint, budget := r.Replay.JointPerWeek, r.Meta.Budget.PerWeek
	r.releases()
	if joint.Lower > budget {
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
