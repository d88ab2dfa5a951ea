package config

import (
	"fmt"
	"math"
	"math/big"
	"sort"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// farAbove is how many times solve_rate_drop_pp a fitted threshold may be before
// lint speaks of it: at small steps noise always decides, and calibrate means it
// to.
const farAbove = 3

// fitted is the fitted threshold of a step: how far below the reference a
// solve rate must lie to be more than noise, by the number of judged requests.
type fitted struct {
	limits  breaker.Limits // of the step, without the fixed drop
	drop    float64        // solve_rate_drop_pp as a fraction
	control float64        // stable's requests to one of the canary; 0: against the baseline
}

// on reports whether there is a fitted form: one of no sigmas is none.
func (n *Noise) on() bool { return n.Z.Num > 0 }

func fittedOf(s *Step, limits breaker.Limits) fitted {
	drop := limits.SolveBaseline.Float64() - limits.SolveFloor.Float64()
	limits.SolveFloor = limits.SolveBaseline
	return fitted{limits: limits, drop: drop, control: s.control()}
}

// control returns stable's requests to one of the canary where the canary is
// held against stable, 0 where it is not or none are left.
func (s *Step) control() float64 {
	if !s.Slow.AgainstStable {
		return 0
	}
	return float64(s.Weight.Ring-s.Weight.Slots) / float64(s.Weight.Slots)
}

// stays is z times the noise that is left at any traffic. Against stable each
// version brings its own.
func (t *fitted) stays() float64 {
	n := &t.limits.Noise
	if t.control > 0 {
		return n.Z * math.Hypot(n.TauControl, n.TauControl)
	}
	return n.Z * math.Hypot(n.Tau, n.SE)
}

// at returns the threshold over n judged requests, as a fraction, as the
// breaker has it for a service at its baseline. One above solve_baseline cannot
// be reached.
func (t *fitted) at(n int64) float64 {
	l, p0 := &t.limits, t.limits.SolveBaseline.Float64()
	c := breaker.SolveCounts{Judged: n, Solved: int64(p0 * float64(n))}
	if stable := t.control * float64(n); stable >= 1 {
		c.Controlled, c.ControlJudged, c.ControlSolved = n, int64(stable), int64(p0*math.Floor(stable))
	}
	f := l.SolveFinding(&c, l.SlowSpan)
	if f.ControlJudged > 0 {
		p0 = float64(f.ControlSolved) / float64(f.ControlJudged)
	}
	return p0 - f.Limit
}

// enough returns the fewest judged requests from which on the drop decides, and
// whether there are so many.
func (t *fitted) enough() (int64, bool) {
	const most = 1 << 40
	if t.stays() >= t.drop || t.at(most) > t.drop {
		return 0, false
	}
	return 1 + int64(sort.Search(most, func(i int) bool { return t.at(int64(i)+1) <= t.drop })), true
}

// lintNoise warns of a drop that the service's own noise reaches as well, and
// of steps at which the fitted threshold lies far above it.
func (d *document) lintNoise(c *Config) {
	if c.Signals[release.SolveRate].Mode == release.Off {
		return
	}
	told, plan := map[*yaml.Node]bool{}, c.Plan()
	for i := range c.Steps {
		s, step := &c.Steps[i], stepPath(i)
		if s.Slow.Judge != breaker.WindowJudge || !s.Slow.Noise.on() {
			continue
		}
		t := fittedOf(s, plan.Steps[i].Limits)
		inside := t.stays() >= t.drop
		if at := d.limitNode(step, t.tauKey(), slow+"noise"); inside && !told[at] {
			told[at] = true
			d.warnAt(at, ruleThresholdInNoise, t.waysOut(s),
				"step %d: threshold inside the noise: %s sigmas of the noise that no traffic shrinks are %s percentage points, which a solve_rate_drop_pp of %s does not exceed",
				i+1, s.Slow.Noise.Z, rounded(t.stays()*100, 3), s.Slow.SolveRateDropPP)
		}
		d.lintFitted(c, i, &t, inside)
	}
}

// waysOut says what helps against noise that no traffic shrinks.
func (t *fitted) waysOut(s *Step) string {
	if t.control == 0 && s.Weight.Slots < s.Weight.Ring {
		return "three ways out: a larger solve_rate_drop_pp; against: stable, where both versions' windows are there; a steadier service, or a longer slow_window_min measured anew"
	}
	return "two ways out: a larger solve_rate_drop_pp; a steadier service, or a longer slow_window_min measured anew"
}

// tauKey is the key that says the noise which stays.
func (t *fitted) tauKey() string {
	if t.control > 0 {
		return slow + "noise.tau_control"
	}
	return slow + "noise.tau"
}

// lintFitted looks at the threshold at a step's traffic; a step at which the
// slow layer is blind is told of elsewhere.
func (d *document) lintFitted(c *Config, i int, t *fitted, inside bool) {
	s := &c.Steps[i]
	if c.RequestsPerMin.IsZero() {
		return
	}
	perMin := c.share(s.Weight)
	n := floor(new(big.Rat).Mul(perMin, minutesRat(s.Slow.SlowWindow)))
	if n < s.Slow.MinSamplesSlow {
		n = s.Slow.MinSamplesSlow // what the span reaches back for
		if floor(new(big.Rat).Mul(perMin, minutesRat(s.Slow.reach()))) < n {
			return
		}
	}
	threshold := t.at(n)
	switch {
	case threshold > s.Slow.SolveBaseline.Float64():
		d.warnAt(d.pctNode(i), ruleThresholdInNoise, t.hint(perMin),
			"step %d: can never trip by solve_rate: over %d requests a solve rate of 0 is not %s sigmas below the baseline of %s",
			i+1, n, s.Slow.Noise.Z, s.Slow.SolveBaseline)
	case threshold > farAbove*t.drop && !inside:
		d.warnAt(d.pctNode(i), ruleThresholdInNoise, t.hint(perMin),
			"step %d: the noise is far above the drop: over %d requests a solve rate trips from %s percentage points below the baseline on, more than three times the solve_rate_drop_pp of %s",
			i+1, n, rounded(threshold*100, 3), s.Slow.SolveRateDropPP)
	}
}

// hint says how many requests would let the drop decide.
func (t *fitted) hint(perMin *big.Rat) string {
	n, ok := t.enough()
	if !ok {
		return "no number of requests would let solve_rate_drop_pp decide: raise it"
	}
	minutes := ceil(new(big.Rat).Quo(new(big.Rat).SetInt64(n), perMin))
	if minutes > maxMinutes {
		return "raise solve_rate_drop_pp, or begin with a larger pct: at this traffic the drop could not decide in ten years"
	}
	return fmt.Sprintf("min_samples_slow: %d with slow_window_max_min: %d under this step's limits would let solve_rate_drop_pp decide, later; or raise the drop, or begin with a larger pct", n, minutes)
}

// reach is how far back the slow span goes at most.
func (s *SlowLayer) reach() time.Duration { return max(s.SlowWindow, s.SlowWindowMax) }
