package config

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

const (
	// healthyWeeks is how long a healthy service is watched at each step: long
	// enough for a rate of one trip a week to be told from none. Where windows
	// hold few requests, which is where limits trip, drawing is cheap and the
	// watch is long.
	healthyWeeks, healthyWeeksOfFew = 4, 16
	fewRequests                     = 20
	// maxTripsAWeek is the rate of false trips from which on a step is warned of.
	maxTripsAWeek = 1.0
	// healthySeed makes the estimate the same at every run.
	healthySeed = 20170217
	// maxWindows bounds the work over all steps of a long ladder.
	maxWindows = 500_000
)

// lintHealthy warns of steps whose limits trip a service that behaves exactly
// as its baseline, with how often.
func (d *document) lintHealthy(c *Config) {
	plan := c.Plan()
	for i := range c.Steps {
		windows := c.healthyWindows(i)
		weeks := float64(windows) / perWeek(c.windowLength())
		trips := c.healthyTrips(i, &plan.Steps[i].Limits, windows)
		total, by := 0.0, []string{}
		for s := range trips {
			rate := float64(trips[s]) / weeks
			total += rate
			if trips[s] > 0 {
				by = append(by, fmt.Sprintf("%s by %s", roughly(rate), release.Signal(s)))
			}
		}
		if total < maxTripsAWeek {
			continue
		}
		d.warnAt(d.pctNode(i), ruleHealthyTrips, healthyHint(trips),
			"step %d: at %s requests a minute these limits trip a healthy service about %s times a week: %s",
			i+1, decimal(c.share(c.Steps[i].Weight)), roughly(total), strings.Join(by, ", "))
	}
}

func perWeek(window time.Duration) float64 { return float64(7*24*time.Hour) / float64(window) }

// healthyWindows is for how many windows a step is watched.
func (c *Config) healthyWindows(i int) int64 {
	weeks := float64(healthyWeeks)
	if c.perWindow(i) < fewRequests {
		weeks = healthyWeeksOfFew
	}
	return int64(math.Ceil(min(weeks*perWeek(c.windowLength()), float64(maxWindows/len(c.Steps)))))
}

// perWindow is the mean number of canary requests in a window at a step.
func (c *Config) perWindow(i int) float64 {
	f, _ := new(big.Rat).Mul(c.share(c.Steps[i].Weight), big.NewRat(int64(c.windowLength()), int64(time.Minute))).Float64()
	return f
}

// roughly prints a rate to two digits: it is an estimate.
func roughly(rate float64) string {
	if rate >= 10 {
		return fmt.Sprintf("%.0f", rate)
	}
	return fmt.Sprintf("%.2g", rate)
}

var healthyHints = [release.Judged]string{
	release.Violations: "measure baseline_violation_rate, or raise violation_limit",
	release.Transfers:  "measure baseline_transfer_rate, or raise min_transfer_count",
	release.SolveRate:  "raise min_samples_slow and slow_window_min, or solve_rate_drop_pp",
}

// healthyHint names the key that matters most.
func healthyHint(trips [release.Judged]int64) string {
	worst := release.Violations
	for s := range trips {
		if trips[s] > trips[worst] {
			worst = release.Signal(s)
		}
	}
	return healthyHints[worst] + " in this step's limits; `canaryctl calibrate` derives them"
}

// healthyTrips runs the real breaker over drawn windows of a healthy service
// at a step and counts what tripped it; after a trip it starts over when the
// cooldown is past. Traffic is Poisson, outcomes are binomial at the baseline's
// rates. Cost and p99 are not drawn: a baseline rate does not say how they
// scatter.
func (c *Config) healthyTrips(i int, l *breaker.Limits, windows int64) [release.Judged]int64 {
	var trips [release.Judged]int64
	draw := c.healthyFeed(i)
	span := c.windowLength()
	start := time.Unix(0, 0).UTC()
	skip := max(int64(l.Cooldown/span)-1, 0) // the loop steps on by one
	var st breaker.State
	for n := int64(0); n < windows; n++ {
		w := draw()
		w.T = start.Add(time.Duration(n) * span)
		ev, changed := breaker.Step(l, &st, &w)
		if changed && ev.To == release.Open {
			trips[ev.Finding.Signal]++
			st = breaker.State{}
			n += skip
		}
	}
	return trips
}

// manyRequests is from where on traffic is drawn at its mean: its scatter no
// longer matters, and drawing it exactly takes long.
const manyRequests = 1e6

// healthyFeed returns a source of windows at a step, the same at every call.
func (c *Config) healthyFeed(i int) func() release.Window {
	rng := rand.NewPCG(healthySeed, uint64(i))
	s := &c.Steps[i]
	mean := min(c.perWindow(i), manyRequests)
	outcomes := func(n int64, p float64) int64 { return drawBinomial(rng, n, p) }
	return func() release.Window {
		w := release.Window{Span: c.windowLength(), Arm: release.Canary, Known: release.HasSolved | release.HasViolations | release.HasTransfers}
		w.Total = int64(distuv.Poisson{Lambda: mean, Src: rng}.Rand())
		w.Judged = w.Total
		w.Solved = w.Total - outcomes(w.Total, 1-s.Slow.SolveBaseline.Float64())
		w.Violations = outcomes(w.Total, s.Fast.BaselineViolationRate.Float64())
		w.Transfers = outcomes(w.Total, s.Fast.BaselineTransferRate.Float64())
		return w
	}
}

func drawBinomial(src rand.Source, n int64, p float64) int64 {
	switch {
	case n <= 0 || p <= 0:
		return 0
	case p >= 1:
		return n
	}
	return int64(distuv.Binomial{N: float64(n), P: p, Src: src}.Rand())
}
