package calibrate

import (
	"math"

	"gonum.org/v1/gonum/mathext"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// cost fills in the mean cost of a request and how much single ones vary.
func (m *measurement) cost() {
	c := &m.r.Cost
	sum := 0.0
	for i := range m.kept {
		if w := &m.kept[i]; w.Has(release.HasCostMean) && w.Total > 0 {
			sum += float64(w.CostMean * float64(w.Total)) // rounded before it is added: the same on every machine
			c.Requests += w.Total
		}
	}
	if c.Requests == 0 {
		return
	}
	mean := sum / float64(c.Requests)
	m.priced = 1
	if n := weightOf(m.requests.CostUSD); n > 0 { // a window's mean is of those of its requests that carry a cost
		mean = sumOf(m.requests.CostUSD) / float64(n)
		m.priced = math.Min(1, float64(n)/float64(c.Requests))
		c.Requests = n
	}
	c.MeanUSD = figureSig(mean, 6)
	if mean <= 0 {
		return
	}
	if len(m.requests.CostUSD) > 0 {
		c.CVFrom = "requests"
		c.CV, c.Top1Share = figureSig(variation(m.requests.CostUSD), 6), figureSig(topShare(m.requests.CostUSD), 6)
	} else {
		c.CVFrom = "windows"
		c.CV = figureSig(m.costVariation(mean), 6)
	}
	if limit := m.costRatio(); c.CV != nil && *c.CV > 1e-9 && limit > 1 && m.perTick[release.Cost] > 0 {
		c.NRequired = costSamples(m.costCV(), limit, m.perTick[release.Cost])
	}
}

// costCV is the variation of a request's cost as its window shows it: where
// only a part of the requests carry a cost, the mean is of as many fewer.
func (m *measurement) costCV() float64 { return *m.r.Cost.CV / math.Sqrt(m.priced) }

func (m *measurement) costRatio() float64 {
	if m.o.Plan == nil {
		return 0
	}
	return m.o.Plan.Steps[0].Limits.CostRatio
}

// variation is the coefficient of variation of single requests.
func variation(values []stats.Weighted) float64 {
	n, sum := weightOf(values), sumOf(values)
	if n < 2 || sum <= 0 {
		return math.NaN()
	}
	mean, squares := sum/float64(n), 0.0
	for _, v := range values {
		d := v.Value - mean
		squares += float64(d * d * float64(v.Weight))
	}
	return math.Sqrt(squares/float64(n-1)) / mean
}

func sumOf(values []stats.Weighted) (sum float64) {
	for _, v := range values {
		sum += float64(v.Value * float64(v.Weight))
	}
	return sum
}

// topShare is the share of the sum that the dearest 1 % of the requests have.
func topShare(ascending []stats.Weighted) float64 {
	n, sum := weightOf(ascending), sumOf(ascending)
	left, top := n/100, 0.0
	for i := len(ascending) - 1; i >= 0 && left > 0; i-- {
		take := min(left, ascending[i].Weight)
		top += float64(ascending[i].Value * float64(take))
		left -= take
	}
	if sum <= 0 || n < 100 {
		return math.NaN()
	}
	return top / sum
}

// costVariation estimates the coefficient of variation of single requests from
// how the windows' means vary, which includes what the mean itself moves.
func (m *measurement) costVariation(mean float64) float64 {
	squares, k := 0.0, 0
	for i := range m.kept {
		if w := &m.kept[i]; w.Has(release.HasCostMean) && w.Total > 0 {
			d := w.CostMean - mean
			squares += float64(d * d * float64(w.Total))
			k++
		}
	}
	if k < MinWindows {
		return math.NaN()
	}
	return math.Sqrt(squares/float64(k-1)) / mean
}

// costSamples is the smallest number of requests whose mean cost a healthy
// canary has at limit times the true mean with at most the chance alpha. The
// mean of n requests is taken for Gamma distributed, which has the skew that
// the normal one lacks: shape n/cv^2. It is nil where a billion would not do.
func costSamples(cv, limit, alpha float64) *int64 {
	enough := func(n float64) bool {
		shape := n / (cv * cv)
		return mathext.GammaIncRegComp(shape, shape*limit) <= alpha
	}
	hi := 1.0
	for ; !enough(hi); hi *= 2 {
		if hi > 1e9 {
			return nil
		}
	}
	lo := hi / 2
	for hi-lo > 0.5 {
		if mid := (lo + hi) / 2; enough(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return new(int64(math.Ceil(hi)))
}

// costStep says from how many requests on a step's live window may be judged
// by cost. Stable's own noise counts too, as far as it serves beside.
func (m *measurement) costStep(step *ladder.Step, out *Step, l *limitsOf) {
	c := &m.r.Cost
	if c.NRequired == nil || out.RateP10 == nil || m.o.K > 0 {
		return
	}
	n := *c.NRequired
	if out.Pct < 1 {
		n = int64(math.Ceil(float64(n) / (1 - out.Pct)))
	}
	n = int64(math.Ceil(float64(n) * math.Pow(1.5, float64(m.raised(release.Cost, len(m.r.Steps))))))
	out.CostSamples, l.costSamples = &n, n
	out.CostJudged = *out.RateP10*m.o.Tick.Minutes() >= float64(n)
}
