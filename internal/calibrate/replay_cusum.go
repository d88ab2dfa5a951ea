package calibrate

import (
	"math"
	"slices"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// CusumPeaks returns, for every step, the highest that its cumulative sum comes
// in one seeded week of a healthy service, if nothing stops it. The week is that
// of [Replay.Run].
func (r *Replay) CusumPeaks(seed uint64, in *Scratch) []float64 {
	p := in.pass(r, seed)
	p.draw()
	peaks := make([]float64, len(r.plan.Steps))
	for i := range r.plan.Steps {
		p.thin(i)
		peaks[i] = peak(p.canary, &r.plan.Steps[i].Limits)
	}
	return peaks
}

// peak is the highest value of the sum that [breaker.Cusum] describes.
func peak(canary []release.Window, l *breaker.Limits) float64 {
	p0 := l.SolveBaseline.Float64()
	solved, unsolved := stats.CusumWeights(p0, p0-l.Cusum.Drop.Float64())
	sum, highest := 0.0, 0.0
	for i := range canary {
		w := &canary[i]
		sum = math.Max(0, sum+float64(float64(w.Solved)*solved)+float64(float64(w.Judged-w.Solved)*unsolved))
		highest = math.Max(highest, sum)
	}
	return highest
}

// TakeCusum sets each step's limit of the cumulative sum to what a healthy week
// stays below with the chance that the budget asks for: of F false trips a week
// on average the share e^-F of the weeks has none. Peaks are those of
// [Replay.CusumPeaks], one list a week. At a large share the weeks are one
// baseline in another order, and few of them are no quantile: so the limit is no
// less than the median peak, exceeded in half of the weeks, carried on to F by
// the exponential tail that such a sum has, phi wide.
func (r *Report) TakeCusum(peaks [][]float64) {
	f := r.Meta.Budget.PerWeek * r.Meta.Budget.Shares[release.SolveRate.String()]
	for i := range r.limits {
		l := &r.limits[i]
		if l.cusum == 0 || len(peaks) == 0 || f <= 0 {
			continue
		}
		weeks := make([]float64, len(peaks))
		for j := range peaks {
			weeks[j] = peaks[j][i]
		}
		slices.Sort(weeks)
		rank := int(math.Ceil(math.Exp(-f) * float64(len(weeks))))
		beyond := weeks[len(weeks)/2] + float64(l.phi*math.Log(math.Ln2/f))
		l.cusum = sig(math.Max(weeks[max(rank, 1)-1], beyond), 4)
		r.Steps[i].CusumLimit = new(l.cusum)
	}
}
