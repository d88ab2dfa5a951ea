package calibrate

import (
	"math"
	"slices"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// Merge sums up runs, in the order of their seeds.
func (r *Replay) Merge(runs []*ReplayRun) *Replayed {
	out := &Replayed{Weeks: len(runs), BlockMin: r.o.Block.Minutes(), Steps: []ReplayedStep{}}
	if len(runs) == 0 {
		return out
	}
	out.Seed = runs[0].seed
	for i := range r.plan.Steps {
		out.Steps = append(out.Steps, r.step(runs, i))
		if out.Steps[i].PerWeek.Count >= out.JointPerWeek.Count {
			out.JointPerWeek = out.Steps[i].PerWeek
		}
	}
	plain := int64(0)
	var rolledBack int64
	for _, run := range runs {
		plain += run.plain
		if run.release.rolledBack {
			rolledBack++
		}
		if run.release.completed {
			out.Release.Completed++
		}
	}
	if r.plain != nil {
		out.DocPerWeek = estimate(plain, len(runs))
	}
	out.Release.Runs, out.Release.RolledBack = len(runs), chance(rolledBack, len(runs))
	if len(r.grid) > 0 {
		out.Grid = r.curve(runs)
	}
	return out
}

// estimate is a rate a week with its exact 95 % interval (Garwood 1936). With
// nothing counted the upper limit is the one-sided one, the rule of three.
func estimate(n int64, weeks int) Estimate {
	e := Estimate{Count: n, Rate: sig(float64(n)/float64(weeks), 6)}
	if n == 0 {
		e.Upper = sig(stats.PoissonUpper(0, float64(weeks), 0.95), 6)
		return e
	}
	lower, upper := stats.Garwood(n, float64(weeks), 0.95)
	e.Lower, e.Upper = sig(lower, 6), sig(upper, 6)
	return e
}

// chance is the share of runs with its exact 95 % interval (Clopper and Pearson
// 1934), one-sided where there was none, the rule of three again.
func chance(n int64, runs int) Estimate {
	e := Estimate{Count: n, Rate: sig(float64(n)/float64(runs), 6)}
	if n == 0 {
		e.Upper = sig(stats.RuleOfThree(int64(runs)), 6)
		return e
	}
	lower, upper := stats.ClopperPearson(n, int64(runs), 0.95)
	e.Lower, e.Upper = sig(lower, 6), sig(upper, 6)
	return e
}

// step sums up what the breaker did at a step.
func (r *Replay) step(runs []*ReplayRun, i int) ReplayedStep {
	step := &r.plan.Steps[i]
	out := ReplayedStep{Pct: step.Weight.Share(), BySignal: map[string]Estimate{}, Drops: []Detection{}}
	all := int64(0)
	for s := release.Signal(0); int(s) < release.Judged; s++ {
		n := int64(0)
		for _, run := range runs {
			n += run.steps[i].trips[s]
		}
		if all += n; r.judged(&step.Limits, s) {
			out.BySignal[s.String()] = estimate(n, len(runs))
		}
	}
	out.PerWeek = estimate(all, len(runs))
	for k, pp := range r.o.Drops {
		d := r.detection(len(runs), func(run int) *dropRun { return &runs[run].steps[i].drops[k] })
		d.DropPP = pp.Float64()
		out.Drops = append(out.Drops, d)
	}
	return out
}

// detection sums up the runs of one drop. Drops that were not found count as
// later than all others: a quantile that falls among them does not exist.
func (r *Replay) detection(runs int, of func(run int) *dropRun) (d Detection) {
	var delays, exposures []float64
	for i := range runs {
		drop := of(i)
		delay, exposure := math.Inf(1), math.Inf(1)
		if !drop.tried {
			continue
		}
		d.Runs++
		if drop.found {
			d.Found++
			delay, exposure = (time.Duration(drop.ticks) * r.history.tick).Minutes(), float64(drop.exposure)
		}
		delays, exposures = append(delays, delay), append(exposures, exposure)
	}
	slices.Sort(delays)
	slices.Sort(exposures)
	d.DelayP50 = figure(stats.NearestRank(delays, half), 6)
	d.DelayP90 = figure(stats.NearestRank(delays, nineTenths), 6)
	d.ExposureP50 = figure(stats.NearestRank(exposures, half), 6)
	return d
}

var (
	half       = release.NewRatio(1, 2)
	nineTenths = release.NewRatio(9, 10)
)

// curve sums up the grid.
func (r *Replay) curve(runs []*ReplayRun) *Grid {
	// Of fewer weeks than three false trips are allowed in, none seen is no proof.
	enough := float64(len(runs))*r.o.PerWeek >= 3
	g := &Grid{Pct: r.plan.Steps[r.o.GridStep].Weight.Share(), Points: []GridPoint{}, Enough: enough}
	for i := range r.grid {
		n := int64(0)
		for _, run := range runs {
			n += run.grid[i].trips
		}
		point := GridPoint{ThresholdPP: r.grid[i].pp.Float64(), PerWeek: estimate(n, len(runs))}
		if last := len(r.o.Drops) - 1; last >= 0 {
			d := r.detection(len(runs), func(run int) *dropRun { return &runs[run].grid[i].drop })
			point.DropPP = r.o.Drops[last].Float64()
			point.DelayP50, point.DelayP90, point.Missed = d.DelayP50, d.DelayP90, d.Runs-d.Found
		}
		tolerable := r.o.TolerableDropPP.IsZero() || r.o.TolerableDropPP.Compare(r.grid[i].pp.Num, r.grid[i].pp.Den) >= 0
		if g.RecommendedPP == nil && enough && tolerable && float64(n) <= r.o.PerWeek*float64(len(runs)) {
			g.RecommendedPP = new(point.ThresholdPP)
		}
		g.Points = append(g.Points, point)
	}
	return g
}
