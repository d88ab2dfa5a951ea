package config

import (
	"fmt"
	"math"
	"math/big"
	"strconv"

	"github.com/canaryctl/canaryctl/internal/breaker"
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
	d.lintHolds(c)
	d.lintProbes(c)
	d.lintHealthy(c)
}

// lintBlind warns of steps at which the breaker's slow layer never has enough
// judged requests in its span, with the time that the gate needs instead. A
// cumulative sum needs no number of them.
func (d *document) lintBlind(c *Config) {
	if c.Signals[release.SolveRate].Mode == release.Off {
		return
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		perMin := c.share(s.Weight)
		inSpan := new(big.Rat).Mul(perMin, minutesRat(s.Slow.reach()))
		need := new(big.Rat).SetInt64(s.Slow.MinSamplesSlow)
		if s.Slow.Judge == breaker.CusumJudge || inSpan.Cmp(need) >= 0 {
			continue
		}
		enough := ceil(new(big.Rat).Quo(need, perMin)) // minutes
		d.warnAt(d.pctNode(i), ruleBlindSlowLayer, blindHint(enough),
			"step %d: the slow layer is blind: %s requests a minute are %s in %s, fewer than the %d of min_samples_slow; %s",
			i+1, inProse(perMin), inProse(inSpan), release.Minutes(s.Slow.reach()), s.Slow.MinSamplesSlow, gateWait(s, enough))
	}
}

// gateWait says how long the gate of a blind step needs.
func gateWait(s *Step, minutes int64) string {
	switch {
	case !s.Gates.Has(ladder.MetricGate):
		return "and it has no metric gate"
	case minutes > maxMinutes:
		return "its gate needs more than ten years"
	}
	wait := fmt.Sprintf("its gate needs %d %s", minutes, plural(minutes, "minute"))
	if lag := s.Slow.LabelLag; lag > 0 {
		wait += fmt.Sprintf(" and %s of label lag", release.Minutes(lag))
	}
	return wait
}

// blindHint names the span that would see enough.
func blindHint(minutes int64) string {
	if minutes > maxMinutes {
		return "begin with a larger pct; no slow_window_max_min would see enough"
	}
	return fmt.Sprintf("a slow_window_max_min of %d under this step's limits would see, later; or begin with a larger pct", minutes)
}

// holdCertainty is how sure a hold is to be long enough.
const holdCertainty = 0.95

// lintHolds warns of holds that end before the gate can have what it needs. No
// harm is done, as the gate waits; but the hold says less than it takes.
func (d *document) lintHolds(c *Config) {
	for i := range c.Steps {
		s := &c.Steps[i]
		if !s.Gates.Has(ladder.TimeGate) || !s.Gates.Has(ladder.MetricGate) {
			continue
		}
		perMin, _ := c.share(s.Weight).Float64()
		minutes := math.Ceil(stats.WaitForSamples(s.Slow.MinSamplesSlow, perMin, holdCertainty))
		total, lag := minutes, ""
		if s.Slow.LabelLag > 0 && c.Signals[release.SolveRate].Mode != release.Off {
			total = math.Ceil(minutes + s.Slow.LabelLag.Minutes())
			lag = fmt.Sprintf(", then %s of label lag", release.Minutes(s.Slow.LabelLag))
		}
		if max(s.MinHold, c.windowLength()).Minutes() >= total { // the first window is there in any case
			continue
		}
		takes, hint := rounded(minutes, 6)+" "+plural(int64(minutes), "minute"), "min_hold_min: "+rounded(total, 6)
		if total > maxMinutes {
			takes, hint = "more than ten years", "begin with a larger pct, or ask for fewer min_samples_slow"
		}
		d.warnAt(d.node(stepPath(i)+".min_hold_min"), ruleShortHold, hint,
			"step %d: min_hold_min %s is shorter than the time to decide: at %s requests a minute it takes %s until the %d of min_samples_slow are there with %s certainty%s; the gate waits",
			i+1, minutesText(s.MinHold), inProse(c.share(s.Weight)), takes, s.Slow.MinSamplesSlow, percentText(holdCertainty), lag)
	}
}

// inProse prints a figure to six digits, which is more than anyone reads.
func inProse(r *big.Rat) string {
	f, _ := r.Float64()
	return rounded(f, 6)
}

// rounded prints a figure to so many significant digits, without an exponent
// unless it is tiny.
func rounded(f float64, digits int) string {
	near, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', digits, 64), 64)
	if err != nil || near < 1e-6 {
		return strconv.FormatFloat(f, 'g', digits, 64)
	}
	return strconv.FormatFloat(near, 'f', -1, 64)
}

func plural(n int64, thing string) string {
	if n == 1 {
		return thing
	}
	return thing + "s"
}

// floor rounds down to a whole number; what is too large for one is its
// largest.
func floor(r *big.Rat) int64 {
	q := new(big.Int).Quo(r.Num(), r.Denom())
	if !q.IsInt64() {
		return math.MaxInt64
	}
	return q.Int64()
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
