package calibrate

import (
	"math"
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

const (
	// leastCount is the published floor of a count that trips.
	leastCount = 3
	// docMultiplier is the published ratio of violations, docRatio that of
	// transfers and of slow requests.
	docMultiplier = 10
	docRatio      = 3
	// overdispersed is the chance of so much dispersion below which it is
	// believed.
	overdispersed = 0.01
)

// figures fills in what the fast layer compares with.
func (m *measurement) figures() {
	r := m.r
	r.Violations = m.rate(release.HasViolations, func(w *release.Window) int64 { return w.Violations })
	r.Transfers = m.rate(release.HasTransfers, func(w *release.Window) int64 { return w.Transfers })
	m.latency()
	m.cost()
	m.partly("violations", r.Violations.Requests)
	m.partly("transfers", r.Transfers.Requests)
	m.partly("costs", r.Cost.Requests)
}

// fastSpan is the span over which counts are held, by the first step's limits.
func (m *measurement) fastSpan() time.Duration {
	if m.o.Plan == nil {
		return 5 * time.Minute
	}
	return m.o.Plan.Steps[0].Limits.FastSpan
}

// rate counts over the windows that carry the figure, and no others, and says
// how much the true rate moves between the spans in which it is counted live.
func (m *measurement) rate(has release.Figures, of func(*release.Window) int64) Rate {
	var rate Rate
	for i := range m.kept {
		if w := &m.kept[i]; w.Has(has) && w.Total > 0 {
			rate.Count = plus(rate.Count, of(w))
			rate.Requests += w.Total
		}
	}
	if rate.Count == nil {
		return rate
	}
	rate.Rate = figureSig(float64(*rate.Count)/float64(rate.Requests), 6)
	rate.Upper95 = figureSig(stats.PoissonUpper(*rate.Count, float64(rate.Requests), 0.95), 6)
	s := counted(m.kept, m.fastSpan(), m.o.Records, has, of)
	if len(s.ps) == 0 {
		s = counted(m.kept, m.kept[0].Span, m.o.Records, has, of)
	}
	d := stats.Disperse(s.ps)
	rate.Phi = figure(d.Phi, 6)
	if _, above := d.PValues(); above < overdispersed {
		rate.Tau = figureSig(stats.TauDL(s.ps), 6)
	} else if !math.IsNaN(d.Phi) {
		rate.Tau = new(0.0)
	}
	return rate
}

// baseline is the rate to compare with: where none was seen, the most that
// may have been missed.
func (rate Rate) baseline() *float64 {
	if rate.Count != nil && *rate.Count == 0 {
		return rate.Upper95
	}
	return rate.Rate
}

// countStep derives the counts that trip at a step.
func (m *measurement) countStep(step *ladder.Step, out *Step, l *limitsOf) {
	span := step.Limits.FastSpan
	out.Violations = m.countLimit(release.Violations, &m.r.Violations, out, span, docMultiplier, func(lambda float64) int64 {
		return max(leastCount, int64(docMultiplier*lambda))
	})
	out.Transfers = m.countLimit(release.Transfers, &m.r.Transfers, out, span, docRatio, func(lambda float64) int64 {
		return max(leastCount, int64(math.Ceil(docRatio*lambda)))
	})
	if m.r.P99.Judge == "count" {
		out.Slow = m.countLimit(release.P99, &m.r.P99.Slow, out, span, docRatio, nil)
	}
	l.violations, l.transfers, l.slow = out.Violations, out.Transfers, out.Slow
}

// down rounds to four digits and never up: a ratio must not make the count that
// it goes with unreachable.
func down(x float64) float64 {
	if r := sig(x, 4); r <= x {
		return r
	}
	return sig(x*(1-1e-4), 4)
}

// countLimit is the smallest count that a healthy step reaches no more often
// than the signal's share of the budget allows, every look counted as if it
// were a new one: Poisson at the upper limit of the rate, or negative binomial
// where the rate moves, at the step's busiest. Quieter minutes are held against
// the same count. Gates, which see far more requests, and minutes busier than
// any are held against the ratio: the published one, or less where the count is
// less than that.
func (m *measurement) countLimit(signal release.Signal, rate *Rate, out *Step, span time.Duration, ratio float64, published func(lambda float64) int64) *Count {
	alpha, base := m.perTick[signal], rate.baseline()
	if rate.Upper95 == nil || out.RateP99 == nil || base == nil || *base <= 0 || alpha <= 0 || m.o.K > 0 {
		return nil
	}
	n := *out.RateP99 * span.Minutes()
	lambda := *rate.Upper95 * n
	phi := 1.0
	if rate.Tau != nil && *rate.Tau > 0 {
		spread := n * *rate.Tau
		phi += spread * spread / lambda
	}
	c := max(leastCount, stats.NegBinomialCritical(lambda, phi, alpha))
	c += int64(m.raised(signal, len(m.r.Steps))) * max(1, c/10)
	p := stats.NegBinomialTail(c, lambda, phi)
	count := &Count{
		Lambda: sig(lambda, 6), Phi: sig(phi, 6), Threshold: c, Ratio: down(math.Min(math.Min(float64(c)/(*base*n), ratio), 1 / *base)),
		PFalse: sig(p, 4), PerWeek: sig(p*ticksAWeek(m.o.Tick), 4),
	}
	if published != nil {
		doc := published(*base * n)
		count.DocThreshold, count.DocPFalse = &doc, figureSig(stats.NegBinomialTail(doc, lambda, phi), 4)
	}
	return count
}
