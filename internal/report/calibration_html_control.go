package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/canaryctl/canaryctl/internal/calibrate"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// controlChart draws the solve rate of each calibration window over time.
func controlChart(r *calibrate.Report) *drawing {
	s := newSeries(r)
	if s == nil {
		return nil
	}
	desc := fmt.Sprintf("%s from %s to %s UTC, solve rates from %s to %s, pooled rate %s. %s; %s. The incidents stand in the table below.",
		counted(s.windows, "calibration window"), instant(s.from), instant(s.to), rate(&s.low), rate(&s.high), rate(r.Centre.P0),
		counted(len(r.Incidents), "incident"), counted(len(s.runs)-1, "gap"))
	d := draw("control", "Control chart: solve rate over time", desc, 330, func(c *canvas) { s.paint(c, r) })
	d.Legend = []swatch{
		{Class: "series", Text: "solve rate of a window; broken where nothing is known"},
		{Class: "centre", Text: "p0, the pooled rate"},
		{Class: "band", Text: "three sigma around p0, chance and noise", Area: true},
	}
	if s.windows > dense*narrowWidth {
		d.Legend = append(d.Legend, swatch{Class: "range", Text: "where windows lie too close to draw each: lowest to highest; the line is then their mean", Area: true})
	}
	if len(r.Incidents) > 0 {
		d.Legend = append(d.Legend, swatch{Class: "incident", Text: "incident, numbered as in the table", Area: true},
			swatch{Class: "flagged", Text: "window of an incident", Mark: diamond(xy{13, 6}, 4)})
	}
	if len(r.Excluded) > 0 {
		d.Legend = append(d.Legend, swatch{Class: "hatched", Text: "excluded: not in centre and noise", Area: true})
	}
	return &d
}

// series is what the control chart shows, cut into runs of adjacent windows.
type series struct {
	runs     [][]calibrate.Point
	windows  int
	span     time.Duration
	from, to time.Time
	low      float64 // of the rates
	high     float64
	bottom   float64 // of the axis
	top      float64
}

// newSeries returns nil if no window has a rate.
func newSeries(r *calibrate.Report) *series {
	var ps []calibrate.Point
	for _, p := range r.Chart {
		if p.Judged > 0 {
			ps = append(ps, p)
		}
	}
	if len(ps) == 0 {
		return nil
	}
	slices.SortStableFunc(ps, func(a, b calibrate.Point) int { return a.T.Compare(b.T) })
	s := &series{windows: len(ps), span: windowSpan(r.Windows.Span, ps), from: ps[0].T, low: math.Inf(1), high: math.Inf(-1)}
	s.to = ps[len(ps)-1].T.Add(s.span)
	start := 0
	for i := 1; i <= len(ps); i++ {
		if i == len(ps) || ps[i].T.Sub(ps[i-1].T) > s.span {
			s.runs = append(s.runs, ps[start:i])
			start = i
		}
	}
	s.extent(ps, r.Centre.P0)
	return s
}

// windowSpan reads the span's name, or takes the shortest distance of two
// windows where that says nothing.
func windowSpan(name string, ps []calibrate.Point) time.Duration {
	if d, err := time.ParseDuration(name); err == nil && d > 0 {
		return d
	}
	shortest := 10 * time.Minute
	for i := 1; i < len(ps); i++ {
		if d := ps[i].T.Sub(ps[i-1].T); d > 0 && (i == 1 || d < shortest) {
			shortest = d
		}
	}
	return shortest
}

// extent sets the axis so that it shows every rate, p0 and the usual band. A
// window of few requests has a wide band of its own, which may be cut.
func (s *series) extent(ps []calibrate.Point, p0 *float64) {
	var lower, upper []float64
	for _, p := range ps {
		x := rateIn(p)
		s.low, s.high = min(s.low, x), max(s.high, x)
		if finite(p.Lower) && finite(p.Upper) {
			lower, upper = append(lower, p.Lower), append(upper, p.Upper)
		}
	}
	s.bottom, s.top = s.low, s.high
	if len(lower) > 0 {
		s.bottom, s.top = min(s.bottom, stats.Median(lower)), max(s.top, stats.Median(upper))
	}
	if p0 != nil && finite(*p0) {
		s.bottom, s.top = min(s.bottom, *p0), max(s.top, *p0)
	}
	room := max(0.06*(s.top-s.bottom), 0.002)
	s.bottom, s.top = max(0, s.bottom-room), min(1, s.top+room)
	if s.top <= s.bottom {
		s.bottom, s.top = 0, 1
	}
}

func rateIn(p calibrate.Point) float64 {
	return min(max(float64(p.Solved)/float64(p.Judged), 0), 1)
}

func (s *series) paint(c *canvas, r *calibrate.Report) {
	left, most := 46.0, 10
	if c.narrow {
		left, most = 40, 4
	}
	p := plot{x: scale{lo: unix(s.from), hi: unix(s.to), from: left, to: c.w - 8}, y: scale{lo: s.bottom, hi: s.top, from: c.h - 26, to: 42}, marked: true}
	ys := linear(100*s.bottom, 100*s.top, 6)
	for i := range ys {
		ys[i].at /= 100
	}
	name := "solve rate, %"
	if p0 := r.Centre.P0; p0 != nil {
		name += "; p0 " + rate(p0)
	}
	s.hatch(c, r.Excluded)
	c.ground(p, name, instants(s.from, s.to, most), ys)
	s.shade(c, p, r.Incidents)
	s.bands(c, p)
	for _, g := range r.Excluded {
		if x, w := stretch(p, g.From, g.To); w > 0 {
			c.hatched(x, p.top(), w, p.bottom()-p.top())
		}
	}
	if p0 := r.Centre.P0; p0 != nil && finite(*p0) {
		y := p.y.at(*p0)
		c.line("centre", p.x.from, y, p.x.to, y)
	}
	s.lines(c, p)
	s.flags(c, p)
	s.numbers(c, p, r.Incidents)
}

// hatch defines the pattern of excluded spans.
func (s *series) hatch(c *canvas, excluded []calibrate.Gap) {
	if len(excluded) == 0 {
		return
	}
	c.b.WriteString(`<defs><pattern id="` + c.id + `-hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
		`<line class="hatching" x1="0" y1="0" x2="0" y2="6"/></pattern></defs>`)
}

// hatched fills an area with the pattern.
func (c *canvas) hatched(x, y, w, h float64) {
	c.b.WriteString(`<rect class="excluded" fill="url(#` + c.id + `-hatch)" x="` + px(x) + `" y="` + px(y) + `" width="` + px(w) + `" height="` + px(h) + `"/>`)
}

// stretch is where a span of time lies on the axis, at least two units wide so
// that it is seen; 0 if it lies outside.
func stretch(p plot, from, to time.Time) (x, w float64) {
	if unix(to) < p.x.lo || unix(from) > p.x.hi || to.Before(from) {
		return 0, 0
	}
	a, b := p.x.at(unix(from)), p.x.at(unix(to))
	w = max(b-a, 2)
	return min(a, p.x.to-w), w
}

func (s *series) shade(c *canvas, p plot, incidents []calibrate.Incident) {
	for i, in := range incidents {
		if x, w := stretch(p, in.From, in.To); w > 0 {
			c.rect("incident", x, p.top(), w, p.bottom()-p.top(), fmt.Sprintf("incident %d, %s to %s UTC", i+1, instant(in.From), instant(in.To)))
		}
	}
}

// numbers names the incidents above the plot; one without room goes without.
func (s *series) numbers(c *canvas, p plot, incidents []calibrate.Incident) {
	free := math.Inf(-1)
	for i, in := range incidents {
		x, w := stretch(p, in.From, in.To)
		label := strconv.Itoa(i + 1)
		if at, half := x+w/2, c.half(label); w > 0 && at-half >= free {
			c.middle("number", at, p.top()-6, label)
			free = at + half
		}
	}
}

// bands draws the three-sigma limits of each run of windows.
func (s *series) bands(c *canvas, p plot) {
	for _, run := range s.runs {
		var lower, upper []xy
		for _, w := range run {
			if !finite(w.Lower) || !finite(w.Upper) {
				continue
			}
			for _, t := range s.edges(w, len(run)) {
				lower, upper = append(lower, p.at(t, w.Lower)), append(upper, p.at(t, w.Upper))
			}
		}
		_, _, top := summed(upper)
		_, _, bottom := summed(lower)
		c.path("band", area(top, bottom))
	}
}

// edges are the times at which a window's band is drawn: its middle, and for
// one that stands alone both ends, so that there is an area.
func (s *series) edges(w calibrate.Point, run int) []float64 {
	if run == 1 {
		return []float64{unix(w.T), unix(w.T.Add(s.span))}
	}
	return []float64{s.middle(w)}
}

func (s *series) middle(w calibrate.Point) float64 { return unix(w.T.Add(s.span / 2)) }

// dense is how many windows in a column of pixels make a line a blot.
const dense = 4

// lines never crosses a gap: there is one line for each run of windows.
func (s *series) lines(c *canvas, p plot) {
	blot := float64(s.windows) > dense*(p.x.to-p.x.from)
	for _, run := range s.runs {
		line := make([]xy, len(run))
		for i, w := range run {
			line[i] = p.at(s.middle(w), rateIn(w))
		}
		if !blot {
			c.path("series", polyline(thin(line)))
			continue
		}
		high, low, mean := summed(line)
		c.path("range", area(high, low))
		c.path("series", polyline(mean))
	}
}

// flags marks the windows of incidents, the extremes of each column of pixels.
func (s *series) flags(c *canvas, p plot) {
	var marks []xy
	for _, run := range s.runs {
		for _, w := range run {
			if w.Flagged {
				marks = append(marks, p.at(s.middle(w), rateIn(w)))
			}
		}
	}
	for _, m := range thin(marks) {
		c.path("flagged", diamond(m, 3.2))
	}
}

func unix(t time.Time) float64 { return float64(t.Unix()) }
