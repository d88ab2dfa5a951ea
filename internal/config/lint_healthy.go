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
	"github.com/canaryctl/canaryctl/internal/draw"
	"github.com/canaryctl/canaryctl/internal/release"
)

const (
	// maxWindows bounds the windows that are drawn, over all steps.
	maxWindows = 1_000_000
	// maxWatch bounds the time that is watched: it must fit a time.Duration.
	maxWatch = 200 * 365 * 24 * time.Hour
	// enoughTrips ends the watch of a step: its rate is known to about 3 %.
	enoughTrips = 1000
	// quietWeeks without a trip end it as well: of a rate of one a week that has a
	// chance of 2 %.
	quietWeeks = 4
	// fewTrips is below which a rate is known to one digit at best, and leastTrips
	// below which it is not known.
	fewTrips, leastTrips = 100, 4
	// maxTripsAWeek is the rate of false trips from which on a step is warned of.
	maxTripsAWeek = 1.0
	// healthySeed makes the estimate the same at every run.
	healthySeed = 1
)

// lintHealthy warns of steps whose limits trip a service that behaves exactly
// as its baseline, with how often.
func (d *document) lintHealthy(c *Config) {
	plan := c.Plan()
	most := min(int64(maxWindows/len(c.Steps)), int64(maxWatch/c.windowLength()))
	for i := range c.Steps {
		l := plan.Steps[i].Limits
		trips, windows := c.healthyTrips(i, &l, most)
		weeks := float64(windows) / perWeek(c.windowLength())
		total, by := int64(0), []string{}
		for s, n := range trips {
			total += n
			if n > 0 {
				by = append(by, fmt.Sprintf("%s by %s", roughly(n, weeks), release.Signal(s)))
			}
		}
		if total < leastTrips || float64(total)/weeks < maxTripsAWeek {
			continue
		}
		d.warnAt(d.pctNode(i), ruleHealthyTrips, c.healthyHint(i, trips),
			"step %d: at %s requests a minute these limits trip a healthy service about %s times a week: %s",
			i+1, inProse(c.share(c.Steps[i].Weight)), roughly(total, weeks), strings.Join(by, ", "))
	}
}

func perWeek(window time.Duration) float64 { return float64(7*24*time.Hour) / float64(window) }

// perWindow is the mean number of canary requests in a window at a step.
func (c *Config) perWindow(i int) float64 {
	f, _ := new(big.Rat).Mul(c.share(c.Steps[i].Weight), big.NewRat(int64(c.windowLength()), int64(time.Minute))).Float64()
	return f
}

// roughly prints trips a week to as many digits as their number bears.
func roughly(trips int64, weeks float64) string {
	digits := 2
	if trips < fewTrips {
		digits = 1
	}
	return rounded(float64(trips)/weeks, digits)
}

var healthyHints = [release.Judged]string{
	release.Violations: "raise violation_limit in this step's limits; `canaryctl calibrate` measures baseline_violation_rate",
	release.P99:        "raise min_slow_count in this step's limits; `canaryctl calibrate` measures p99_slow_rate",
	release.Transfers:  "raise min_transfer_count in this step's limits; `canaryctl calibrate` measures baseline_transfer_rate",
	release.SolveRate:  "raise min_samples_slow and slow_window_min, or solve_rate_drop_pp, in this step's limits; `canaryctl calibrate` measures the noise",
}

// healthyHint names the key that matters most at a step.
func (c *Config) healthyHint(i int, trips [release.Judged]int64) string {
	worst := release.Violations
	for s := range trips {
		if trips[s] > trips[worst] {
			worst = release.Signal(s)
		}
	}
	s := &c.Steps[i].Slow
	switch {
	case worst != release.SolveRate:
		return healthyHints[worst]
	case s.Judge == breaker.CusumJudge:
		return "raise cusum.limit in this step's limits; `canaryctl calibrate --judge cusum` measures it"
	case s.Noise.on():
		return "raise noise.z, or noise.tau if it was not measured, in this step's limits; `canaryctl calibrate` measures the noise"
	}
	return healthyHints[worst]
}

// healthyTrips runs the real breaker over drawn windows of a healthy service
// at a step and counts what tripped it; after a trip it starts over when the
// cooldown is past. It returns for how many windows it watched.
func (c *Config) healthyTrips(i int, l *breaker.Limits, windows int64) (trips [release.Judged]int64, watched int64) {
	total := 0
	draw := c.healthyFeed(i)
	span := c.windowLength()
	start := time.Unix(0, 0).UTC()
	skip := max(int64((l.Cooldown+span-1)/span)-1, 0) // the loop steps on by one
	var st breaker.State
	quiet := int64(quietWeeks * perWeek(span))
	for ; watched < windows && total < enoughTrips && (total > 0 || watched < quiet); watched++ {
		w := draw()
		w.T = start.Add(time.Duration(watched) * span)
		if ev := breaker.Step(l, &st, &w); ev != nil && ev.To == release.Open {
			trips[ev.Finding.Signal]++
			total++
			st.Reset()
			watched += skip
		}
	}
	return trips, watched
}

// healthyFeed returns a source of windows at a step, the same at every call:
// Poisson traffic, outcomes binomial at the baseline's rates. Where the noise
// is said, the true solve rate varies by it, and where stable is what the
// canary is held against, stable's windows are drawn with it. Cost and a
// window's p99 are not drawn: a baseline figure does not say how they scatter.
func (c *Config) healthyFeed(i int) func() release.Window {
	src := rand.NewPCG(healthySeed, uint64(i))
	s := &c.Steps[i]
	traffic := distuv.Poisson{Lambda: c.perWindow(i), Src: src}
	violation, transfer, slow := s.Fast.BaselineViolationRate.Float64(), s.Fast.BaselineTransferRate.Float64(), s.Fast.P99SlowRate.Float64()
	rates := c.solveRates(i, src)
	stable := distuv.Poisson{Lambda: c.perWindow(i) * s.control(), Src: src}
	return func() release.Window {
		w := release.Window{Span: c.windowLength(), Arm: release.Canary, Known: release.HasSolved | release.HasViolations | release.HasTransfers}
		unsolved, ofStable := rates()
		w.Total = int64(traffic.Rand())
		w.Judged = w.Total
		w.Solved = w.Total - drawBinomial(src, w.Total, unsolved)
		w.Violations = drawBinomial(src, w.Total, violation)
		w.Transfers = drawBinomial(src, w.Total, transfer)
		if s.Fast.P99ByCount {
			w.Slow, w.Known = drawBinomial(src, w.Total, slow), w.Known|release.HasSlow
		}
		if stable.Lambda > 0 {
			w.ControlJudged, w.Known = int64(stable.Rand()), w.Known|release.HasControl
			w.ControlSolved = w.ControlJudged - drawBinomial(src, w.ControlJudged, ofStable)
		}
		return w
	}
}

// solveRates returns a source of the true shares of unsolved requests of both
// versions, window by window: fixed, or drawn anew for every slow span around
// the baseline's, normal with tau for both and with tau_control for each.
func (c *Config) solveRates(i int, src rand.Source) func() (canary, stable float64) {
	s := &c.Steps[i].Slow
	base, noise := 1-s.SolveBaseline.Float64(), s.Noise.limits()
	if noise.Tau == 0 && noise.TauControl == 0 {
		return func() (float64, float64) { return base, base }
	}
	rng, control := rand.New(src), c.Steps[i].control()
	span := max(int64((s.SlowWindow+c.windowLength()-1)/c.windowLength()), 1)
	canary, stable, left := base, base, int64(0)
	return func() (float64, float64) {
		if left == 0 {
			common := base + float64(rng.NormFloat64()*noise.Tau)
			canary, stable, left = common, common, span
			if control > 0 {
				canary += float64(rng.NormFloat64() * noise.TauControl)
				stable += float64(rng.NormFloat64() * noise.TauControl)
			}
			canary, stable = min(max(canary, 0), 1), min(max(stable, 0), 1)
		}
		left--
		return canary, stable
	}
}

// fewExpected is below which a binomial count is drawn by running down its
// chances from 0 on, which is several times faster.
const fewExpected = 10

func drawBinomial(src rand.Source, n int64, p float64) int64 {
	switch {
	case n <= 0 || p <= 0:
		return 0
	case p >= 1:
		return n
	case float64(n)*p >= fewExpected:
		return int64(distuv.Binomial{N: float64(n), P: p, Src: src}.Rand())
	}
	return draw.Inversion(rand.New(src), n, p, math.Log1p(-p))
}
