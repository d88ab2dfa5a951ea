package calibrate

import (
	"math"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// load is what a service was asked and did in some span: all of a window, a
// tick of it, or the part that one arm served.
type load struct {
	known                       release.Figures
	gap                         bool // nothing is known, not even that nothing came
	solved, unsolved, unjudged  int64
	violations, transfers, slow int64
	costMean                    float64 // USD a request
	costOf                      int64   // requests that the mean is of: those of the recorded window
}

func (l *load) total() int64 { return l.solved + l.unsolved + l.unjudged }

// replayable are the figures that can be thinned. A window's p99 cannot: the
// tail of a few requests is not that of many.
const replayable = release.HasSolved | release.HasViolations | release.HasTransfers | release.HasSlow | release.HasCostMean

// loadOf reads a window. Where its outcomes are not known all requests count
// as unjudged.
func loadOf(w *release.Window) load {
	l := load{known: w.Known & replayable}
	if l.known&release.HasSolved != 0 {
		l.solved, l.unsolved = w.Solved, max(w.Judged-w.Solved, 0)
	}
	l.unjudged = max(w.Total-l.solved-l.unsolved, 0)
	if l.known&release.HasViolations != 0 {
		l.violations = w.Violations
	}
	if l.known&release.HasTransfers != 0 {
		l.transfers = w.Transfers
	}
	if l.known&release.HasSlow != 0 {
		l.slow = w.Slow
	}
	if l.known&release.HasCostMean != 0 {
		l.costMean, l.costOf = w.CostMean, w.Total
	}
	return l
}

// join adds another window of the same tick. A figure that one of them lacks
// is not known of both.
func (l *load) join(o *load) {
	n, m := l.total(), o.total()
	switch {
	case m == 0 && n > 0:
		return
	case n == 0 && m > 0:
		*l = *o
		return
	}
	l.known &= o.known
	l.solved, l.unsolved, l.unjudged = l.solved+o.solved, l.unsolved+o.unsolved, l.unjudged+o.unjudged
	if l.known&release.HasSolved == 0 {
		l.solved, l.unsolved, l.unjudged = 0, 0, l.total()
	}
	l.violations, l.transfers, l.slow = l.violations+o.violations, l.transfers+o.transfers, l.slow+o.slow
	if n+m > 0 {
		l.costOf += o.costOf
		l.costMean = (float64(l.costMean*float64(n)) + float64(o.costMean*float64(m))) / float64(n+m)
	}
}

// part draws what is left of a load when each of its requests is kept with
// chance p: solved, unsolved and unjudged ones are binomial; violations,
// transfers and slow requests, whose place among them a window does not tell,
// go with a random choice of as many requests as were kept.
func (l *load) part(d *dice, p float64) load {
	if p >= 1 || l.gap {
		return *l
	}
	kept := *l
	kept.solved = d.binomial(l.solved, p)
	kept.unsolved = d.binomial(l.unsolved, p)
	kept.unjudged = d.binomial(l.unjudged, p)
	n, all := kept.total(), l.total()
	kept.violations = d.among(l.violations, n, all)
	kept.transfers = d.among(l.transfers, n, all)
	kept.slow = d.among(l.slow, n, all)
	return kept
}

// less is the rest of a load without a part of it.
func (l *load) less(part *load) load {
	rest := *l
	rest.solved -= part.solved
	rest.unsolved -= part.unsolved
	rest.unjudged -= part.unjudged
	rest.violations -= part.violations
	rest.transfers -= part.transfers
	rest.slow -= part.slow
	return rest
}

// count is what an arm shows of a load, in its window of so long.
func (l *load) count(w *release.Window, span time.Duration) {
	w.Span, w.Total, w.Judged, w.Solved = span, l.total(), l.solved+l.unsolved, l.solved
	w.Violations, w.Transfers, w.Slow = l.violations, l.transfers, l.slow
	w.Cost, w.CostMean, w.ControlJudged, w.ControlSolved = 0, 0, 0, 0
	w.Known = l.known &^ release.HasCostMean
}

// singly is up to how many requests of a tick are priced one by one.
const singly = 64

// prices are the mean costs of the two arms of a tick. A recorded mean of N
// costs is no true mean: n of them, chosen at random, have a mean that varies
// around it by cv^2 (1/n - 1/N), not by cv^2/n, and the others have what is left
// of the sum (sampling without replacement; Cochran, Sampling Techniques, 2.6).
// Few requests are priced one by one, log-normal, and scaled to the recorded
// sum; of many the canary's share of the sum is beta, which it is exactly where
// single costs are gamma.
func (l *load) prices(d *dice, cv float64, kept int64) (canary, stable float64) {
	n := l.total()
	mean := l.costMean
	if n < l.costOf {
		mean *= d.gamma(1 / (cv * cv * (1/float64(n) - 1/float64(l.costOf))))
	}
	if kept >= n {
		return mean, 0
	}
	share := d.shareOfSum(cv, kept, n)
	whole := mean * float64(n)
	return whole * share / float64(kept), whole * (1 - share) / float64(n-kept)
}

// shareOfSum draws which share of the sum of n costs some of them have.
func (d *dice) shareOfSum(cv float64, some, n int64) float64 {
	if n > singly {
		shape := 1 / (cv * cv)
		a, b := d.gamma(float64(some)*shape)*float64(some), d.gamma(float64(n-some)*shape)*float64(n-some)
		return a / (a + b)
	}
	sigma := math.Sqrt(math.Log1p(cv * cv))
	part, sum := 0.0, 0.0
	for i := range n {
		sum += math.Exp(float64(sigma * d.rng.NormFloat64()))
		if i == some-1 {
			part = sum
		}
	}
	return part / sum
}
