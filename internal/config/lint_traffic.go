package config

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
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
		enough := ceil(new(big.Rat).Quo(need, perMin)) // minutes
		d.warnAt(d.pctNode(i), ruleBlindSlowLayer, blindHint(enough),
			"step %d: the slow layer is blind: %s requests a minute are %s in %s, fewer than the %d of min_samples_slow; %s",
			i+1, inProse(perMin), inProse(inSpan), release.Minutes(s.Slow.SlowWindow), s.Slow.MinSamplesSlow, gateWait(s, enough))
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
		return "begin with a larger pct; no slow_window_min would see enough"
	}
	return fmt.Sprintf("a slow_window_min of %d under this step's limits would see, later; or begin with a larger pct", minutes)
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
