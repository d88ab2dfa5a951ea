package config

import (
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// maxProbeFailure is the chance of failing a healthy version from which on a
// probe round is warned of.
const maxProbeFailure = 0.05

// lintProbes warns of probe rounds that a healthy version fails by chance.
func (d *document) lintProbes(c *Config) {
	sizes := c.probeSizes(c.Recovery.HalfOpenMinRequests)
	chance := c.probeFailure(sizes)
	if chance <= maxProbeFailure {
		return
	}
	mean := int64(math.Round(sizes.mean()))
	d.warnAt(d.node(recovery+"half_open_min_requests", recovery+"half_open_trials"), ruleProbeRound, c.probeHint(),
		"a healthy version fails a probe round with a chance of %s: %d %s of about %d %s at the first step, each to solve %s of them at a baseline of %s",
		percentText(chance), c.Recovery.HalfOpenTrials, plural(c.Recovery.HalfOpenTrials, "probe"), mean, plural(mean, "request"),
		c.Recovery.HalfOpenSuccessRate, c.Steps[0].Slow.SolveBaseline)
}

// probeSizes is how many requests a probe may hold: chance[i] is that of
// least + i.
type probeSizes struct {
	least  int64
	chance []float64
}

func (p probeSizes) mean() float64 {
	sum := 0.0
	for i, chance := range p.chance {
		sum += float64(p.least+int64(i)) * chance
	}
	return sum
}

// maxPool is the largest half_open_min_requests that is looked at window by
// window; a larger pool is taken for full to the letter.
const maxPool = 1 << 16

// probeSizes returns the sizes of probes at the first step: a window that has
// requests, or consecutive ones until they have at least so many. Traffic is
// Poisson.
func (c *Config) probeSizes(least int64) probeSizes {
	least = max(least, 1)
	if least > maxPool {
		return probeSizes{least, []float64{1}}
	}
	low, window := windowSizes(c.perWindow(0))
	if least <= low {
		return probeSizes{low, window}
	}
	// at[n] is the chance that n requests are gathered after some window
	at := make([]float64, least)
	at[0] = 1
	sizes := probeSizes{least, make([]float64, int(low)+len(window))}
	for n, chance := range at {
		if chance == 0 {
			continue
		}
		for i, p := range window {
			if sum := int64(n) + low + int64(i); sum < least {
				at[sum] += chance * p
			} else {
				sizes.chance[sum-least] += chance * p
			}
		}
	}
	return sizes
}

// manyRequests is from where on the scatter of a window's traffic is left out.
const manyRequests = 1e6

// windowSizes returns the chances of the numbers of requests in a window that
// has any, from low on; what hardly ever happens is left out.
func windowSizes(mean float64) (low int64, chance []float64) {
	if mean > manyRequests {
		return int64(mean), []float64{1}
	}
	const deviations = 8
	spread := deviations * math.Sqrt(mean)
	low = max(int64(mean-spread), 1)
	law := distuv.Poisson{Lambda: mean}
	sum := 0.0
	for n := low; n <= int64(mean+spread)+deviations; n++ {
		p := law.Prob(float64(n))
		chance, sum = append(chance, p), sum+p
	}
	for i := range chance {
		chance[i] /= sum
	}
	return low, chance
}

// probeFailure is the chance that a version at the baseline's solve rate fails
// a round of probes of such sizes.
func (c *Config) probeFailure(sizes probeSizes) float64 {
	rate, solves := c.Recovery.HalfOpenSuccessRate, c.Steps[0].Slow.SolveBaseline.Float64()
	good := 0.0
	for i, chance := range sizes.chance {
		if chance > 0 {
			n := sizes.least + int64(i)
			good += chance * stats.BinomialTail(leastCount(rate, n), n, solves)
		}
	}
	trials := c.Recovery.HalfOpenTrials
	return stats.BinomialCDF(leastCount(rate, trials)-1, trials, min(good, 1))
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
func (c *Config) probeHint() string {
	failure := func(least int64) float64 { return c.probeFailure(c.probeSizes(least)) }
	for n := max(c.Recovery.HalfOpenMinRequests, 1) * 2; n <= maxPool; n *= 2 {
		if failure(n) > maxProbeFailure {
			continue
		}
		low, high := n/2, n // narrow down: the chance falls with n but for steps of rounding
		for high-low > 1 {
			if mid := (low + high) / 2; failure(mid) > maxProbeFailure {
				low = mid
			} else {
				high = mid
			}
		}
		return fmt.Sprintf("half_open_min_requests: %d would bring it to %s", high, percentText(failure(high)))
	}
	return fmt.Sprintf("no half_open_min_requests up to %d brings it down: lower half_open_success_rate further below the baseline's solve rate", maxPool)
}

func percentText(p float64) string { return strconv.FormatFloat(p*100, 'g', 3, 64) + " %" }
