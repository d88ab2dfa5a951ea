package shadow

import (
	"math"
	"math/big"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// RecordSet is a set of records that is judged as a whole: what they add up to, and
// how what they took is spread.
type RecordSet struct {
	Window             release.Window
	Latency, TTFT, ITL []stats.Weighted // milliseconds, ascending; empty where no record has any
}

// SetLimits is what a canary's set is held against, with stable's set for the
// baselines. Where stable has no case of a kind at all, the baseline rate that
// is configured stands: a set without a case does not show that there are none.
type SetLimits struct {
	ViolationLimit      int64         // violation_limit
	ViolationBaseline   release.Ratio // baseline_violation_rate
	ViolationMultiplier release.Ratio // violation_ratio_multiplier
	CostRatio           release.Ratio // cost_ratio_limit
	MinTransfers        int64         // min_transfer_count
	TransferBaseline    release.Ratio // baseline_transfer_rate
	TransferRatio       release.Ratio // transfer_rate_ratio_limit
	P99Ratio            release.Ratio // p99_ratio_limit
	TTFTMS              release.Ratio // ttft_p99.limit_ms
	TTFTRatio           release.Ratio // ttft_p99.ratio_limit
	ITLMS               release.Ratio // itl.limit_ms
	ITLLeast            int64         // itl.min_count
	SolveDrop           release.Ratio // solve_rate_drop_pp as a fraction of 1
	MinJudged           int64         // min_samples_slow

	Rules [release.Judged]breaker.Rule // off is left out, observe decides nothing

	// Shares are the limits of ttft_slow, stream_aborts, server_errors and
	// errors, by signal.
	Shares map[release.Signal]breaker.StreamLimit

	// Slower is the ratio of medians from which on the canary is slower, however
	// far it is from the other limits. It fails only if the ratio is at least
	// that with Confidence: not by chance.
	Slower     release.Ratio
	Confidence float64
	Least      int64 // values from which on a distribution is judged
}

// DefaultSlower is by how much a median must have grown, the confidence in it,
// and the number of values that it takes. A whole set is no window: it has
// neither the noise of a minute nor the hurry, so that a canary that is half as
// slow again is found long before it is three times as slow.
func DefaultSlower() (ratio release.Ratio, confidence float64, least int64) {
	return release.NewRatio(3, 2), 0.99, 100
}

// SetCheck is one figure of the canary's set against its limit.
type SetCheck struct {
	Signal   release.Signal  `json:"signal"`
	Figure   string          `json:"figure"` // count, share, mean_usd, mean_ms, median_ms or p99_ms
	Verdict  release.Verdict `json:"verdict"`
	Value    *float64        `json:"value"`    // the canary's; nil if it has none
	Baseline *float64        `json:"baseline"` // stable's; nil if it has none or none is used
	Limit    *float64        `json:"limit"`    // nil where there is no baseline to form it of
	// AtLeast is the ratio of the medians that is certain with the confidence
	// asked for.
	AtLeast *float64 `json:"ratio_at_least,omitempty"`
	Samples int64    `json:"samples"` // of the canary
	Of      int64    `json:"baseline_samples"`
	Needed  int64    `json:"needed"`  // samples that are missing before it is judged
	Observe bool     `json:"observe"` // it decides nothing
	// OutOfReach says that no canary of this size could fail the check, as
	// where the limit of a share is above 1: one that is worse than stable is
	// no_data then, for nothing was tried.
	OutOfReach bool `json:"limit_out_of_reach,omitempty"`
}

// CompareSets holds a canary's set against stable's, signal by signal in the
// breaker's order. Figures that neither set has are left out. What only stable
// has is no_data, and so is what only the canary has, unless the limit needs
// nothing of stable's.
func CompareSets(stable, canary *RecordSet, l *SetLimits) []SetCheck {
	c := &setComparison{stable: stable, canary: canary, limits: l}
	c.violations()
	c.cost()
	c.p99(release.P99, release.HasP99, "p99_ms", func(w *release.Window) float64 { return w.P99MS }, l.P99Ratio, release.Ratio{}, stable.Latency, canary.Latency)
	c.transfers()
	c.p99(release.TTFTP99, release.HasTTFT, "p99_ms", func(w *release.Window) float64 { return w.TTFTP99MS }, l.TTFTRatio, l.TTFTMS, stable.TTFT, canary.TTFT)
	c.share(release.TTFTSlow)
	c.itl()
	for _, s := range [...]release.Signal{release.StreamAborts, release.ServerErrors, release.Errors} {
		c.share(s)
	}
	c.solveRate()
	kept := c.checks[:0]
	for _, k := range c.checks {
		mode := l.Rules[k.Signal].Mode
		if k.Observe = mode == release.Observe; mode != release.Off {
			kept = append(kept, k)
		}
	}
	return kept
}

// Outcome is what all checks together say: fail if any does, pass only if each
// passes and there is one. Those that are only observed have no say.
func Outcome(checks []SetCheck) release.Verdict {
	out, some := release.Pass, false
	for i := range checks {
		if checks[i].Observe {
			continue
		}
		some = true
		if v := checks[i].Verdict; v.Outranks(out) {
			out = v
		}
	}
	if !some {
		return release.NoData
	}
	return out
}

type setComparison struct {
	stable, canary *RecordSet
	limits         *SetLimits
	checks         []SetCheck
}

// begin starts the check of a figure; false if neither set has it, or if one
// has none and that has been said.
func (c *setComparison) begin(s release.Signal, figure string, has release.Figures) (*SetCheck, bool) {
	inStable, inCanary := c.stable.Window.Has(has), c.canary.Window.Has(has)
	if !inStable && !inCanary {
		return nil, false
	}
	c.checks = append(c.checks, SetCheck{Signal: s, Figure: figure, Verdict: release.NoData})
	return &c.checks[len(c.checks)-1], inCanary
}

func (k *SetCheck) value(v float64)    { k.Value = &v }
func (k *SetCheck) baseline(v float64) { k.Baseline = &v }

// limit sets the limit. One that is beyond all numbers is none.
func (k *SetCheck) limit(v float64) {
	if !math.IsInf(v, 0) {
		k.Limit = &v
	}
}

// unreachable takes back a pass that could be nothing else, unless the canary is
// no worse than stable.
func (k *SetCheck) unreachable(worse bool) {
	if k.OutOfReach = true; k.Verdict == release.Pass && worse {
		k.Verdict = release.NoData
	}
}

// more reports whether count of of is a larger share than before of beforeOf,
// exactly; of nothing any count is.
func more(count, of, before, beforeOf int64) bool {
	if beforeOf == 0 || of == 0 {
		return count > 0
	}
	return big.NewRat(count, of).Cmp(big.NewRat(before, beforeOf)) > 0
}

// decide sets the verdict once there are enough samples.
func (k *SetCheck) decide(least int64, fails bool) {
	k.Needed = max(least-k.Samples, 0)
	switch {
	case k.Samples == 0:
		k.Verdict = release.NoData
	case k.Needed > 0:
		k.Verdict = release.Insufficient
	case fails:
		k.Verdict = release.Fail
	default:
		k.Verdict = release.Pass
	}
}

// violations counts against max(limit, floor(requests x stable's rate x
// multiplier)), as the breaker does.
func (c *setComparison) violations() {
	k, ok := c.begin(release.Violations, "count", release.HasViolations)
	if !ok {
		return
	}
	s, w, l := &c.stable.Window, &c.canary.Window, c.limits
	rate := l.ViolationBaseline
	if s.Has(release.HasViolations) && s.Total > 0 {
		k.baseline(float64(s.Violations))
		k.Of = s.Total
		if s.Violations > 0 {
			rate = release.NewRatio(s.Violations, s.Total)
		}
	}
	allowed := l.ViolationLimit
	if per, err := rate.Mul(l.ViolationMultiplier); err == nil {
		allowed = max(allowed, per.FloorOf(w.Total))
	}
	k.value(float64(w.Violations))
	k.limit(float64(allowed))
	k.Samples = w.Total
	k.decide(0, w.Violations >= allowed)
	if allowed > w.Total {
		k.unreachable(more(w.Violations, w.Total, s.Violations, k.Of))
	}
}

func (c *setComparison) cost() {
	k, ok := c.begin(release.Cost, "mean_usd", release.HasCostMean)
	if !ok {
		return
	}
	k.value(c.canary.Window.CostMean)
	if k.Samples = c.canary.Window.Total; !c.stable.Window.Has(release.HasCostMean) {
		return
	}
	k.baseline(c.stable.Window.CostMean)
	k.Of = c.stable.Window.Total
	k.limit(c.stable.Window.CostMean * c.limits.CostRatio.Float64())
	if k.Limit != nil {
		k.decide(0, *k.Value >= *k.Limit && *k.Value > 0)
	}
}

// p99 holds the percentile against stable's times the limit of live windows,
// and against a limit in milliseconds where there is one; then the medians.
func (c *setComparison) p99(s release.Signal, has release.Figures, figure string, of func(*release.Window) float64, ratio, ms release.Ratio, stable, canary []stats.Weighted) {
	k, ok := c.begin(s, figure, has)
	if k == nil {
		return
	}
	k.Samples, k.Of = weightOf(canary), weightOf(stable)
	inStable := c.stable.Window.Has(has)
	if inStable {
		k.baseline(of(&c.stable.Window))
	}
	if !ms.IsZero() {
		k.limit(ms.Float64())
	}
	if inStable && *k.Baseline > 0 { // nothing is a multiple of 0 ms
		k.limit(*k.Baseline * ratio.Float64())
		if !ms.IsZero() {
			k.limit(min(*k.Limit, ms.Float64()))
		}
	}
	if ok {
		k.value(of(&c.canary.Window))
		if k.Limit != nil {
			// Streaming signals trip above their limit, the others at it.
			k.decide(c.limits.Least, *k.Value > *k.Limit || !s.Streaming() && *k.Value == *k.Limit)
		}
	}
	c.median(s, stable, canary)
}

func (c *setComparison) transfers() {
	k, ok := c.begin(release.Transfers, "share", release.HasTransfers)
	if !ok {
		return
	}
	s, w, l := &c.stable.Window, &c.canary.Window, c.limits
	rate := l.TransferBaseline
	if s.Has(release.HasTransfers) && s.Total > 0 {
		k.baseline(float64(s.Transfers) / float64(s.Total))
		k.Of = s.Total
		if s.Transfers > 0 {
			rate = release.NewRatio(s.Transfers, s.Total)
		}
	}
	if k.Samples = w.Total; w.Total == 0 {
		return
	}
	k.value(float64(w.Transfers) / float64(w.Total))
	limit, err := rate.Mul(l.TransferRatio)
	if err != nil {
		limit = rate
	}
	k.limit(limit.Float64())
	trips := func(n int64) bool { return n >= l.MinTransfers && limit.Compare(n, w.Total) >= 0 }
	k.decide(0, trips(w.Transfers))
	if !trips(w.Total) {
		k.unreachable(more(w.Transfers, w.Total, s.Transfers, k.Of))
	}
}

// share holds a counted share of streaming or infrastructure against its limit.
func (c *setComparison) share(s release.Signal) {
	k, ok := c.begin(s, "share", s.Figures())
	if k == nil {
		return
	}
	counts := breaker.StreamCountsOf(&c.stable.Window)
	before := counts.Of(s)
	if before.Of > 0 {
		k.baseline(float64(before.Sum) / float64(before.Of))
		k.Of = before.Of
	}
	limit := c.limits.Shares[s]
	k.limit(limit.Limit.Float64())
	if !ok {
		return
	}
	counts = breaker.StreamCountsOf(&c.canary.Window)
	n := counts.Of(s)
	if k.Samples = n.Of; n.Of > 0 {
		k.value(float64(n.Sum) / float64(n.Of))
	}
	k.decide(limit.MinOf, limit.Trips(n))
	if all := (breaker.Counted{Sum: n.Of, Of: n.Of}); !limit.Trips(all) {
		k.unreachable(more(n.Sum, n.Of, before.Sum, before.Of))
	}
}

func (c *setComparison) itl() {
	k, ok := c.begin(release.ITL, "mean_ms", release.HasITL)
	if k == nil {
		return
	}
	if c.stable.Window.Has(release.HasITL) {
		k.baseline(c.stable.Window.ITLMS)
		k.Of = c.stable.Window.ITLOf
	}
	k.limit(c.limits.ITLMS.Float64())
	if ok {
		k.value(c.canary.Window.ITLMS)
		k.Samples = c.canary.Window.ITLOf
		k.decide(c.limits.ITLLeast, *k.Value > *k.Limit)
	}
	c.median(release.ITL, c.stable.ITL, c.canary.ITL)
}

var half = release.NewRatio(1, 2)

// median asks whether the canary's median is at least Slower times stable's,
// whatever the two distributions are: the lower bound of one against the upper
// bound of the other, each from order statistics ([stats.QuantileRanks]).
func (c *setComparison) median(s release.Signal, stable, canary []stats.Weighted) {
	k := SetCheck{Signal: s, Figure: "median_ms", Verdict: release.NoData, Samples: weightOf(canary), Of: weightOf(stable)}
	if k.Samples > 0 {
		k.value(atRank(canary, (k.Samples+1)/2))
	}
	if k.Of > 0 {
		k.baseline(atRank(stable, (k.Of+1)/2))
		if *k.Baseline > 0 { // as above
			k.limit(*k.Baseline * c.limits.Slower.Float64())
		}
	}
	k.Needed = max(c.limits.Least-min(k.Samples, k.Of), 0)
	switch {
	case k.Samples == 0 || k.Limit == nil:
	case k.Needed > 0:
		k.Verdict = release.Insufficient
	default:
		low, _ := stats.QuantileRanks(k.Samples, half, c.limits.Confidence)
		_, high := stats.QuantileRanks(k.Of, half, c.limits.Confidence)
		certain := atRank(canary, low) / atRank(stable, high)
		if !math.IsInf(certain, 0) { // times of next to nothing
			k.AtLeast = &certain
		}
		k.Verdict = release.Pass
		if certain >= c.limits.Slower.Float64() {
			k.Verdict = release.Fail
		}
	}
	c.checks = append(c.checks, k)
}

// solveRate compares with stable's own rate less the drop.
func (c *setComparison) solveRate() {
	k, ok := c.begin(release.SolveRate, "share", release.HasSolved)
	if k == nil {
		return
	}
	s, w, l := &c.stable.Window, &c.canary.Window, c.limits
	if s.Has(release.HasSolved) && s.Judged > 0 {
		k.baseline(float64(s.Solved) / float64(s.Judged))
		k.Of = s.Judged
	}
	if !ok || w.Judged == 0 {
		return
	}
	k.value(float64(w.Solved) / float64(w.Judged))
	k.Samples = w.Judged
	if k.Of == 0 {
		return
	}
	floor := new(big.Rat).Sub(big.NewRat(s.Solved, s.Judged), l.SolveDrop.Rat())
	at, _ := floor.Float64()
	k.limit(at)
	k.decide(l.MinJudged, big.NewRat(w.Solved, w.Judged).Cmp(floor) <= 0)
	if floor.Sign() < 0 {
		k.unreachable(more(s.Solved, s.Judged, w.Solved, w.Judged))
	}
}

// weightOf is how many values a distribution has.
func weightOf(values []stats.Weighted) (n int64) {
	for _, v := range values {
		n += v.Weight
	}
	return n
}

// atRank returns the value of a rank, from 1.
func atRank(values []stats.Weighted, rank int64) float64 {
	for _, v := range values {
		if rank -= v.Weight; rank <= 0 {
			return v.Value
		}
	}
	return values[len(values)-1].Value
}
