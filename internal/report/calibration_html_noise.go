package report

import (
	"fmt"
	"math"

	"github.com/canaryctl/canaryctl/internal/calibrate"
)

// noiseCurve is the noise of the solve rate at any share of the traffic:
// sigma(n)^2 = p0 q0/n + tau^2 (1-1/n) + se^2, n being the judged requests of
// the live window at that share.
type noiseCurve struct {
	p0, tau, se float64
	full        float64 // judged requests of the live window on the whole traffic
	from        float64 // smallest share
	steps       []calibrate.Step
	tolerable   float64 // pp
}

// newNoiseCurve returns nil where a constant is missing.
func newNoiseCurve(r *calibrate.Report) *noiseCurve {
	n := &noiseCurve{p0: r.Slow.SolveBaseline, tolerable: r.Slow.TolerableDropPP, full: judgedOnFull(r), from: 1}
	if n.p0 == 0 && r.Centre.P0 != nil {
		n.p0 = *r.Centre.P0
	}
	if t := r.Slow.Tau; t == nil || !finite(*t) || *t < 0 {
		return nil
	}
	n.tau = *r.Slow.Tau
	if se := r.Slow.SE; se != nil && finite(*se) {
		n.se = *se
	}
	if !(n.p0 > 0 && n.p0 < 1 && n.full > 1) || n.full > 1e15 {
		return nil
	}
	for _, s := range r.Steps {
		if s.Pct > 0 && s.Pct <= 1 {
			n.steps = append(n.steps, s)
			n.from = min(n.from, s.Pct)
		}
	}
	n.from = min(max(n.from/2, 1/n.full), 0.5)
	return n
}

// judgedOnFull is how many judged requests a live window of the whole traffic
// has in a quiet time: the rate times the span or, where one is unknown, what
// the largest step says. 0: unknown.
func judgedOnFull(r *calibrate.Report) (full float64) {
	if q := r.Traffic.JudgedP10; q != nil && finite(*q) && r.Meta.LiveMin > 0 {
		return *q * r.Meta.LiveMin
	}
	largest := 0.0
	for _, s := range r.Steps {
		if s.NWindow != nil && *s.NWindow > 0 && s.Pct > largest && s.Pct <= 1 {
			largest, full = s.Pct, float64(*s.NWindow)/s.Pct
		}
	}
	return full
}

// at returns chance, noise between windows and their whole, in percentage
// points.
func (n *noiseCurve) at(share float64) (chance, between, sigma float64) {
	m := max(share*n.full, 1)
	c, b := n.p0*(1-n.p0)/m, n.tau*n.tau*(1-1/m)
	return 100 * math.Sqrt(c), 100 * math.Sqrt(b), 100 * math.Sqrt(c+b+float64(n.se*n.se))
}

// noiseChart draws the noise against the canary's share.
func noiseChart(r *calibrate.Report) *drawing {
	n := newNoiseCurve(r)
	if n == nil {
		return nil
	}
	_, _, small := n.at(n.from)
	_, _, whole := n.at(1)
	desc := fmt.Sprintf("Sigma falls from %s percentage points at %s of the traffic to %s at all of it. The figures of the steps stand in the step plan.",
		decimal(small, 3), share(n.from), decimal(whole, 3))
	d := draw("noise", "Noise of the solve rate against the canary's share", desc, 360, n.paint)
	d.Legend = []swatch{{Class: "sigma", Text: "sigma: chance and noise together"}, {Class: "chance", Text: "chance alone"}}
	if n.tau > 0 {
		d.Legend = append(d.Legend, swatch{Class: "between", Text: "noise between windows (tau)"})
	}
	if len(n.steps) > 0 {
		d.Legend = append(d.Legend, swatch{Class: "threshold", Text: "threshold of each step"}, swatch{Class: "step", Text: "step of the ladder"})
	}
	if n.tolerable > 0 {
		d.Legend = append(d.Legend, swatch{Class: "tolerable", Text: "tolerable drop"})
	}
	return &d
}

// thresholds are the steps that have one, as share and percentage points.
func (n *noiseCurve) thresholds() (out []xy) {
	for _, s := range n.steps {
		if t := s.ThresholdPP; t != nil && finite(*t) && *t > 0 {
			out = append(out, xy{s.Pct, *t})
		}
	}
	return out
}

// extent is the range of the vertical axis: all sigmas, thresholds and the
// tolerable drop, not the ends of the parts that no longer matter.
func (n *noiseCurve) extent() (lo, hi float64) {
	chance, _, hi := n.at(n.from)
	_, between, lo := n.at(1)
	lo = max(lo/4, min(between, chance, lo)*0.8)
	for _, t := range n.thresholds() {
		lo, hi = min(lo, t.y), max(hi, t.y)
	}
	if n.tolerable > 0 {
		lo, hi = min(lo, n.tolerable), max(hi, n.tolerable)
	}
	return max(lo*0.85, 1e-6), min(hi*1.25, 1e6)
}

func (n *noiseCurve) paint(c *canvas) {
	left, most := 46.0, 9
	if c.narrow {
		left, most = 40, 5
	}
	lo, hi := n.extent()
	p := plot{x: scale{lo: n.from, hi: 1, from: left, to: c.w - 14, log: true}, y: scale{lo: lo, hi: hi, from: c.h - 44, to: 42, log: true}, marked: true}
	plainNumber := func(v float64) string { return decimal(v, 2) }
	c.ground(p, "percentage points", decades(n.from, 1, most, share), decades(lo, hi, 12, plainNumber))
	c.middle("axis", (p.x.from+p.x.to)/2, c.h-6, "share of the traffic on the canary")
	n.stepLines(c, p)
	n.curves(c, p)
	if n.tolerable > 0 {
		y := p.y.at(n.tolerable)
		c.line("tolerable", p.x.from, y, p.x.to, y)
	}
	var line []xy
	for _, t := range n.thresholds() {
		line = append(line, p.at(t.x, t.y))
	}
	c.path("threshold", polyline(line))
	for _, at := range line {
		c.path("threshold-mark", diamond(at, 4))
	}
	for _, s := range n.steps {
		if s.Sigma != nil && finite(*s.Sigma) && *s.Sigma > 0 {
			c.dot("sigma-mark", p.at(s.Pct, 100**s.Sigma), 3.4)
		}
	}
}

// stepLines marks the steps; a label without room is left out.
func (n *noiseCurve) stepLines(c *canvas, p plot) {
	free := math.Inf(-1)
	for _, s := range n.steps {
		x := p.x.at(s.Pct)
		c.line("step", x, p.top(), x, p.bottom())
		label := share(s.Pct)
		half := c.half(label)
		if at := min(x, c.w-half); at-half >= free {
			c.middle("mark", at, p.top()-6, label)
			free = at + half
		}
	}
}

// curves draws the formula. A part that falls below the axis ends there.
func (n *noiseCurve) curves(c *canvas, p plot) {
	const pieces = 96
	var chance, between, sigma []xy
	for i := range pieces + 1 {
		s := n.from * math.Pow(1/n.from, float64(i)/pieces)
		a, b, all := n.at(s)
		sigma = append(sigma, p.at(s, all))
		if a >= p.y.lo {
			chance = append(chance, p.at(s, a))
		}
		if b >= p.y.lo {
			between = append(between, p.at(s, b))
		}
	}
	c.path("chance", polyline(chance))
	if n.tau > 0 && len(between) > 0 {
		c.path("between", polyline(between))
	}
	c.path("sigma", polyline(sigma))
}
