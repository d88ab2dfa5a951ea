package calibrate

import (
	"errors"
	"fmt"
	"math"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// slow applies the plain rule: threshold = max(tolerable drop, 3 sigma).
func (r *Report) slow(whole *sample, o Options) {
	pool := whole.pool
	if pool.N == 0 { // only under AllowShort
		pool = stats.Proportion{X: r.Totals.Solved, N: r.Totals.Judged}
	}
	s := &r.Slow
	s.Alpha = sig(stats.OneSided(3), 6)
	s.SolveBaseline = r.solveBaseline(pool)
	s.TolerableDropPP = o.TolerableDropPP.Float64()
	s.ThresholdPP = round(s.TolerableDropPP, 6)
	if !math.IsNaN(whole.sd) {
		s.SigmaPP, s.ThreeSigmaPP = new(round(100*whole.sd, 6)), new(round(300*whole.sd, 6))
		s.ThresholdPP = max(s.ThresholdPP, *s.ThreeSigmaPP)
		s.ChancePP = figure(100*stats.BinomialSD(s.SolveBaseline, whole.medianJudged()), 6)
	}
	r.minSamples()
	if s.ThreeSigmaPP != nil && *s.ThreeSigmaPP > s.TolerableDropPP {
		r.warn("noise", fmt.Sprintf("three sigma (%.2f pp) is more than the tolerable drop (%s pp): the threshold is raised to it, and a smaller drop cannot be told from noise", *s.ThreeSigmaPP, number(s.TolerableDropPP)), "look for incidents in the baseline, or live with the larger threshold")
	}
}

// solveBaseline is the pooled rate. A rate of exactly 0 or 1 leaves chance no
// room, which is never true: Jeffreys' estimate (x+1/2)/(n+1) stands in.
func (r *Report) solveBaseline(pool stats.Proportion) float64 {
	switch {
	case pool.X == pool.N:
		r.warn("all-solved", fmt.Sprintf("all %d judged requests were solved: by the rule of three up to %s of them might not be, and solve_baseline is set a little below 1", pool.N, percent(stats.RuleOfThree(pool.N))), "is the outcome really measured?")
	case pool.X == 0:
		r.warn("none-solved", fmt.Sprintf("none of %d judged requests was solved: by the rule of three at most %s of them are", pool.N, percent(stats.RuleOfThree(pool.N))), "is the right column mapped to solved?")
	default:
		return round(pool.Rate(), 6)
	}
	p := (float64(pool.X) + 0.5) / float64(pool.N+1)
	return min(max(round(p, 6), 0.000001), 0.999999)
}

// minSamples works on the decimals that are shown, so that a reader can check
// it, and canary.yaml says the same.
func (r *Report) minSamples() {
	p0, errP := release.ParseRatio(number(r.Slow.SolveBaseline))
	drop, errD := release.ParseRatio(number(r.Slow.ThresholdPP) + "e-2")
	if errP != nil || errD != nil {
		return
	}
	n, err := stats.MinSamples(p0, drop, stats.OneSided(3))
	switch {
	case errors.Is(err, stats.ErrTooSmall):
		r.warn("threshold-too-small", fmt.Sprintf("a drop of %s pp takes more requests to judge than a release has", number(r.Slow.ThresholdPP)), "a larger --tolerable-drop")
		return
	case err != nil:
		r.warn("threshold-above-baseline", fmt.Sprintf("a drop of %s pp leaves nothing of a solve rate of %s: the slow layer can never trip", number(r.Slow.ThresholdPP), percent(r.Slow.SolveBaseline)), "a smaller --tolerable-drop, or another measure of success")
		return
	}
	r.Slow.MinSamples = &n
}
