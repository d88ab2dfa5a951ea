package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/canaryctl/canaryctl/internal/calibrate"
	"github.com/canaryctl/canaryctl/internal/release"
)

// delayCurve is what the replay found for a row of fixed thresholds: a lower
// one finds a drop sooner and trips a healthy canary more often.
type delayCurve struct {
	points      []calibrate.GridPoint
	budget      float64 // false trips a week of the slow layer; 0: unknown
	tolerable   float64 // pp
	recommended *float64
	pct         float64
}

// newDelayCurve returns nil where nothing was replayed.
func newDelayCurve(r *calibrate.Report) *delayCurve {
	if r.Replay == nil || r.Replay.Grid == nil {
		return nil
	}
	d := &delayCurve{budget: slowBudget(&r.Meta.Budget), tolerable: r.Slow.TolerableDropPP, pct: r.Replay.Grid.Pct}
	for _, p := range r.Replay.Grid.Points {
		if finite(p.ThresholdPP) && finite(p.PerWeek.Rate) {
			d.points = append(d.points, p)
		}
	}
	if len(d.points) == 0 {
		return nil
	}
	slices.SortStableFunc(d.points, func(a, b calibrate.GridPoint) int { return cmp.Compare(a.ThresholdPP, b.ThresholdPP) })
	if p := r.Replay.Grid.RecommendedPP; p != nil && finite(*p) {
		d.recommended = p
	}
	return d
}

// slowBudget is the solve rate's part of the allowed false trips a week.
func slowBudget(b *calibrate.Budget) float64 {
	if whole := b.PerWeek * b.Shares[release.SolveRate.String()]; finite(whole) && whole > 0 {
		return whole
	}
	return 0
}

// height is where a point stands: its rate, or the bound where no false trip
// was seen; false if there is neither.
func height(e calibrate.Estimate) (perWeek float64, seen, ok bool) {
	if e.Count > 0 {
		return e.Rate, true, e.Rate > 0 && finite(e.Rate)
	}
	return e.Upper, false, e.Upper > 0 && finite(e.Upper)
}

func delayChart(r *calibrate.Report) *drawing {
	d := newDelayCurve(r)
	if d == nil {
		return nil
	}
	desc := fmt.Sprintf("%s from %s to %s percentage points at %s of the traffic; the figures stand in the table below.",
		counted(len(d.points), "threshold"), decimal(d.points[0].ThresholdPP, 3), decimal(d.points[len(d.points)-1].ThresholdPP, 3), share(d.pct))
	drawn := draw("delay", "False trips a week and detection delay against the threshold", desc, 470, d.paint)
	drawn.Legend = []swatch{{Class: "series", Text: "above: false trips a week; below: median delay"}, {Class: "whisker", Text: "95 % interval"},
		{Class: "below", Text: "no false trip seen: it lies below this", Mark: arrow(xy{13, 6}, 4)}, {Class: "late", Text: "delay that nine of ten drops stay under"}}
	if d.budget > 0 {
		drawn.Legend = append(drawn.Legend, swatch{Class: "budget", Text: "budget of the solve rate, " + decimal(d.budget, 3) + " a week"})
	}
	if d.tolerable > 0 {
		drawn.Legend = append(drawn.Legend, swatch{Class: "tolerable", Text: "tolerable drop"})
	}
	if d.recommended != nil {
		drawn.Legend = append(drawn.Legend, swatch{Class: "recommended", Text: "recommended threshold"})
	}
	return &drawn
}

func (d *delayCurve) paint(c *canvas) {
	left, most := 58.0, 13
	if c.narrow {
		left, most = 50, 6
	}
	x := scale{lo: d.points[0].ThresholdPP, hi: d.points[len(d.points)-1].ThresholdPP, from: left, to: c.w - 12}
	if x.hi <= x.lo {
		x.lo, x.hi = x.lo-1, x.hi+1
	}
	lo, hi := d.trips()
	trips := plot{x: x, y: scale{lo: lo, hi: hi, from: 218, to: 44, log: true}, marked: true}
	soon, late := d.delays()
	delays := plot{x: x, y: scale{lo: soon, hi: late, from: c.h - 44, to: 266, log: true}}
	c.ground(trips, "false trips a week", nil, decades(lo, hi, 9, func(v float64) string { return decimal(v, 2) }))
	c.ground(delays, "minutes until it trips", linear(x.lo, x.hi, most), decades(soon, late, 7, func(v float64) string { return decimal(v, 3) }))
	c.middle("axis", (x.from+x.to)/2, c.h-6, "threshold, percentage points below p0")
	if d.budget > 0 {
		y := trips.y.at(d.budget)
		c.line("budget", x.from, y, x.to, y)
	}
	d.verticals(c, trips, delays)
	d.tripLine(c, trips)
	d.delayLine(c, delays, "late", func(p calibrate.GridPoint) *float64 { return p.DelayP90 })
	d.delayLine(c, delays, "series", func(p calibrate.GridPoint) *float64 { return p.DelayP50 })
}

// verticals marks the tolerable drop and the recommended threshold in both
// halves.
func (d *delayCurve) verticals(c *canvas, halves ...plot) {
	mark := func(class string, pp float64) {
		for _, p := range halves {
			if pp >= p.x.lo && pp <= p.x.hi {
				x := p.x.at(pp)
				c.line(class, x, p.top(), x, p.bottom())
			}
		}
	}
	if d.tolerable > 0 {
		mark("tolerable", d.tolerable)
	}
	if d.recommended != nil {
		mark("recommended", *d.recommended)
		label := "recommended " + decimal(*d.recommended, 3) + " pp"
		c.middle("mark", halves[0].x.at(*d.recommended), halves[0].top()-8, label)
	}
}

// trips is the range of the rates, intervals included.
func (d *delayCurve) trips() (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	include := func(v float64) {
		if finite(v) && v > 0 {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	include(d.budget)
	for _, p := range d.points {
		if v, seen, ok := height(p.PerWeek); ok {
			include(v)
			if seen {
				include(p.PerWeek.Upper)
			}
		}
	}
	if lo > hi {
		return 0.01, 1
	}
	return max(lo/1.6, 1e-9), max(hi*1.3, lo*2)
}

// delays is the range of the delays, from a minute on.
func (d *delayCurve) delays() (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, p := range d.points {
		for _, v := range []*float64{p.DelayP50, p.DelayP90} {
			if v != nil && finite(*v) && *v >= 0 {
				lo, hi = min(lo, max(*v, 1)), max(hi, max(*v, 1))
			}
		}
	}
	if lo > hi {
		return 1, 1440
	}
	return max(lo/1.3, 1), max(hi*1.2, lo*2)
}

func (d *delayCurve) tripLine(c *canvas, p plot) {
	var line []xy
	flush := func() {
		if len(line) > 0 {
			c.path("series", polyline(line))
		}
		line = nil
	}
	for _, g := range d.points {
		v, seen, ok := height(g.PerWeek)
		if !ok || !seen {
			flush()
		}
		if !ok {
			continue
		}
		at := p.at(g.ThresholdPP, v)
		if !seen {
			c.path("below", arrow(at, 3))
			continue
		}
		if finite(g.PerWeek.Lower) && finite(g.PerWeek.Upper) {
			c.line("whisker", at.x, p.y.at(g.PerWeek.Lower), at.x, p.y.at(g.PerWeek.Upper))
		}
		line = append(line, at)
	}
	flush()
}

// delayLine draws a delay; where a drop was not found the line is broken.
func (d *delayCurve) delayLine(c *canvas, p plot, class string, of func(calibrate.GridPoint) *float64) {
	var line []xy
	flush := func() {
		if len(line) > 0 {
			c.path(class, polyline(line))
		}
		line = nil
	}
	for _, g := range d.points {
		v := of(g)
		if v == nil || !finite(*v) || *v < 0 {
			flush()
			continue
		}
		line = append(line, p.at(g.ThresholdPP, *v))
	}
	flush()
}
