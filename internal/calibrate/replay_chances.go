package calibrate

import (
	"math"

	"github.com/canaryctl/canaryctl/internal/draw"
)

// memory is what draws of the same chances have in common, kept over the weeks
// that one worker replays: no draw depends on whether something was kept.
type memory struct {
	all  []*chances
	last chances // of those that there is no room for
}

// A memory keeps so many chances, and of each of up to noneOf requests, from the
// noneFrom-th time on that the same chance is asked for. Of a chance that there is
// no room for it keeps next to nothing: that would be made anew, many kilobytes,
// each time such chances are asked for in turn.
const (
	mostChances = 64
	noneOf      = 1024
	noneFrom    = 200
)

// chances are the binomial counts of one chance.
type chances struct {
	p, logQ float64 // logQ is ln(1-p)
	passing bool    // there is no room for it
	asked   int
	none    []draw.Terms // by how many there are to draw of; empty: not asked for
	hats    []hat        // likewise
	spare   hat          // of more than that, or of a passing chance
}

// chances returns what is kept of a chance.
func (m *memory) chances(p float64) *chances {
	for _, c := range m.all {
		if c.p == p {
			return c
		}
	}
	c, passing := &m.last, len(m.all) >= mostChances
	if !passing {
		c = new(chances)
		m.all = append(m.all, c)
	}
	*c = chances{p: p, logQ: math.Log1p(-p), passing: passing}
	return c
}

// inversion is a count of n for a number u of [0, 1), see [draw.FromNone].
func (c *chances) inversion(n int64, u float64) int64 {
	c.asked++
	if c.asked < noneFrom || n >= noneOf || c.passing {
		return draw.FromNone(u, n, c.p, math.Exp(float64(n)*c.logQ))
	}
	if c.none == nil {
		c.none = make([]draw.Terms, noneOf)
	}
	t := &c.none[n]
	if t.Empty() {
		*t = draw.NewTerms(n, c.p, math.Exp(float64(n)*c.logQ))
	}
	return t.Draw(u)
}

// hat is what a rejection from n trials holds its numbers against.
type hat struct {
	n, p                       float64 // n 0: not formed
	a, b, centre, quick, alpha float64
	mode, logOfMode, logOdds   float64 // for those that are not accepted at once; mode 0: not formed
}

// hat returns that of n.
func (c *chances) hat(n int64) *hat {
	h := &c.spare
	if n < noneOf && !c.passing {
		if c.hats == nil {
			c.hats = make([]hat, noneOf)
		}
		h = &c.hats[n]
	}
	if h.n != float64(n) {
		h.form(float64(n), c.p)
	}
	return h
}

func (h *hat) form(n, p float64) {
	sd := math.Sqrt(n * p * (1 - p))
	b := 1.15 + float64(2.53*sd)
	*h = hat{
		n: n, p: p, b: b, a: -0.0873 + float64(0.0248*b) + float64(0.01*p),
		centre: float64(n*p) + 0.5, quick: 0.92 - 4.2/b, alpha: (2.83 + 5.1/b) * sd,
	}
}

// logRatio returns ln of P(X=k)/P(X=mode) for X ~ Bin(n, p).
func (h *hat) logRatio(k float64) float64 {
	if h.mode == 0 {
		h.mode = math.Floor((h.n + 1) * h.p) // at least inversionMean
		h.logOfMode = logFactorial(h.mode) + logFactorial(h.n-h.mode)
		h.logOdds = math.Log(h.p / (1 - h.p))
	}
	return h.logOfMode - logFactorial(k) - logFactorial(h.n-k) + float64((k-h.mode)*h.logOdds)
}
