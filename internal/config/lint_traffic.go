package config

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// lintTraffic warns of what follows from how much traffic there is.
func (d *document) lintTraffic(c *Config) {
	if c.RequestsPerMin.IsZero() {
		return
	}
	d.lintBlind(c)
	d.lintProbes(c)
	d.lintHealthy(c)
}

// lintBlind warns of steps at which the breaker's slow layer never has enough
// judged requests in its span, with the time that the gate needs instead.
func (d *document) lintBlind(c *Config) {
	if c.Signals[release.SolveRate].Mode == release.Off {
		return
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		perMin := c.share(s.Weight)
		span := big.NewRat(int64(s.Slow.SlowWindow), int64(time.Minute))
		inSpan := new(big.Rat).Mul(perMin, span)
		need := new(big.Rat).SetInt64(s.Slow.MinSamplesSlow)
		if inSpan.Cmp(need) >= 0 {
			continue
		}
		minutes := ceil(new(big.Rat).Quo(need, perMin))
		wait := fmt.Sprintf("its gate needs %d minutes", minutes)
		if lag := s.Slow.LabelLag; lag > 0 {
			wait += fmt.Sprintf(" and %s of label lag", release.Minutes(lag))
		}
		if !s.Gates.Has(ladder.MetricGate) {
			wait = "and it has no metric gate"
		}
		d.warnAt(d.pctNode(i), ruleBlindSlowLayer, blindHint(s, perMin, need),
			"step %d: the slow layer is blind: %s requests a minute are %s in %s, fewer than the %d of min_samples_slow; %s",
			i+1, decimal(perMin), decimal(inSpan), release.Minutes(s.Slow.SlowWindow), s.Slow.MinSamplesSlow, wait)
	}
}

// blindHint names the span that would see enough.
func blindHint(s *Step, perMin, need *big.Rat) string {
	enough := ceil(new(big.Rat).Quo(need, perMin))
	return fmt.Sprintf("a slow_window_min of %d under this step's limits would see, later; or begin with a larger pct", enough)
}

// ceil rounds up to a whole number; what is too large for one is its largest.
func ceil(r *big.Rat) int64 {
	q, m := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	if m.Sign() != 0 {
		q.Add(q, big.NewInt(1))
	}
	if !q.IsInt64() {
		return math.MaxInt64
	}
	return q.Int64()
}

// maxProbeFailure is the chance of failing a healthy version from which on a
// probe round is warned of.
const maxProbeFailure = 0.05

// lintProbes warns of probe rounds that a healthy version fails by chance.
func (d *document) lintProbes(c *Config) {
	n := c.probeRequests()
	chance := c.probeFailure(n)
	if chance <= maxProbeFailure {
		return
	}
	d.warnAt(d.node(recovery+"half_open_min_requests", recovery+"half_open_trials"), ruleProbeRound, c.probeHint(n),
		"a healthy version fails a probe round with a chance of %s: %d probes of about %d requests at the first step, each to solve %s of them at a baseline of %s",
		percentText(chance), c.Recovery.HalfOpenTrials, n, c.Recovery.HalfOpenSuccessRate, c.Steps[0].Slow.SolveBaseline)
}

// probeRequests is about how many requests a probe holds at the first step:
// those of a window, or of as many windows as half_open_min_requests takes.
func (c *Config) probeRequests() int64 {
	n := int64(max(math.RoundToEven(min(c.perWindow(0), 1e9)), 1))
	if least := c.Recovery.HalfOpenMinRequests; least > n {
		n *= (least + n - 1) / n
	}
	return n
}

// probeFailure is the chance that a version at the baseline's solve rate fails
// a round of probes of n requests each.
func (c *Config) probeFailure(n int64) float64 {
	rate := c.Recovery.HalfOpenSuccessRate
	good := stats.BinomialTail(leastCount(rate, n), n, c.Steps[0].Slow.SolveBaseline.Float64())
	trials := c.Recovery.HalfOpenTrials
	return stats.BinomialCDF(leastCount(rate, trials)-1, trials, good)
}

// leastCount is the smallest count of n that is at or above a rate, exactly.
func leastCount(rate release.Ratio, n int64) int64 {
	k := rate.FloorOf(n)
	if rate.Compare(k, n) < 0 {
		k++
	}
	return k
}

// probeHint names the smallest pool of requests that keeps the chance down.
func (c *Config) probeHint(now int64) string {
	for n := now * 2; n <= 1<<20; n *= 2 {
		if c.probeFailure(n) > maxProbeFailure {
			continue
		}
		low, high := n/2, n // narrow down: the chance falls with n but for steps of rounding
		for high-low > 1 {
			if mid := (low + high) / 2; c.probeFailure(mid) > maxProbeFailure {
				low = mid
			} else {
				high = mid
			}
		}
		return fmt.Sprintf("half_open_min_requests: %d would bring it to %s", high, percentText(c.probeFailure(high)))
	}
	return "no number of requests brings it down: lower half_open_success_rate below the baseline's solve rate"
}

func percentText(p float64) string { return strconv.FormatFloat(p*100, 'g', 3, 64) + " %" }
