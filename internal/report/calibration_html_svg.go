package report

import (
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// drawing is one chart at two widths: style sheets show the one that fits, so
// that its letters stay legible on a telephone.
type drawing struct {
	Wide, Narrow markup
	Legend       []swatch
}

// swatch explains one mark of a chart. Class draws it as the chart does.
type swatch struct {
	Class string
	Text  string
	Area  bool   // a filled area, not a line
	Mark  string // the path of a single mark in a box of 26 by 12
}

// The widths of the two forms, in the units of their view boxes.
const (
	wideWidth   = 920
	narrowWidth = 360
)

// draw paints a chart at both widths. The description stands for the picture
// where it cannot be seen.
func draw(id, title, desc string, height float64, paint func(*canvas)) drawing {
	one := func(suffix string, width float64) markup {
		c := &canvas{w: width, h: height, narrow: width == narrowWidth, id: id + "-" + suffix}
		paint(c)
		return c.svg(title, desc)
	}
	return drawing{Wide: one("wide", wideWidth), Narrow: one("narrow", narrowWidth)}
}

// canvas is a drawing under construction. Positions are written with one
// decimal, so that the same report gives the same bytes.
type canvas struct {
	b      strings.Builder
	id     string
	w, h   float64
	narrow bool
}

type xy struct{ x, y float64 }

func (c *canvas) svg(title, desc string) markup {
	var s strings.Builder
	s.WriteString(`<svg id="` + c.id + `" viewBox="0 0 ` + px(c.w) + ` ` + px(c.h) + `" role="img" aria-labelledby="` + c.id + `-title ` + c.id + `-desc">`)
	s.WriteString(`<title id="` + c.id + `-title">` + escaped(title) + `</title><desc id="` + c.id + `-desc">` + escaped(desc) + `</desc>`)
	s.WriteString(c.b.String())
	s.WriteString(`</svg>`)
	return markup(s.String())
}

// escaped is a text of a drawing. Unlike [escapeHTML] it leaves a plus sign alone:
// no attribute of a drawing is without quotes.
func escaped(s string) string { return html.EscapeString(plain(s)) }

// px writes a position.
func px(v float64) string {
	if math.Abs(v) < 0.05 {
		return "0.0"
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	c.b.WriteString(`<line class="` + class + `" x1="` + px(x1) + `" y1="` + px(y1) + `" x2="` + px(x2) + `" y2="` + px(y2) + `"/>`)
}

// rect draws an area; a name shows when a pointer rests on it.
func (c *canvas) rect(class string, x, y, w, h float64, name string) {
	c.b.WriteString(`<rect class="` + class + `" x="` + px(x) + `" y="` + px(y) + `" width="` + px(w) + `" height="` + px(h) + `"`)
	if name == "" {
		c.b.WriteString(`/>`)
		return
	}
	c.b.WriteString(`><title>` + escaped(name) + `</title></rect>`)
}

// text writes at a position; the anchor is start, middle or end.
func (c *canvas) text(class, anchor string, x, y float64, s string) {
	c.b.WriteString(`<text class="` + class + `" text-anchor="` + anchor + `" x="` + px(x) + `" y="` + px(y) + `">` + escaped(s) + `</text>`)
}

// middle writes around a position, moved inwards where it would leave the
// canvas.
func (c *canvas) middle(class string, x, y float64, s string) {
	half := c.half(s)
	c.text(class, "middle", min(max(x, half), c.w-half), y, s)
}

// half is about half the width of a label; the narrow form has larger letters.
func (c *canvas) half(s string) float64 {
	width := 3.7
	if c.narrow {
		width = 4.2
	}
	return float64(width*float64(utf8.RuneCountInString(s))) + 1
}

func (c *canvas) path(class, d string) {
	if d != "" {
		c.b.WriteString(`<path class="` + class + `" d="` + d + `"/>`)
	}
}

func (c *canvas) dot(class string, p xy, r float64) {
	c.b.WriteString(`<circle class="` + class + `" cx="` + px(p.x) + `" cy="` + px(p.y) + `" r="` + px(r) + `"/>`)
}

// polyline is the path through the points; a single one becomes a dot.
func polyline(ps []xy) string {
	var b strings.Builder
	for i, p := range ps {
		command := "L"
		if i == 0 {
			command = "M"
		}
		b.WriteString(command + px(p.x) + " " + px(p.y))
	}
	if len(ps) == 1 {
		b.WriteString("h0.1")
	}
	return b.String()
}

// area is the closed path between an upper and a lower edge.
func area(upper, lower []xy) string {
	if len(upper) == 0 {
		return ""
	}
	back := slices.Clone(lower)
	slices.Reverse(back)
	return polyline(append(slices.Clone(upper), back...)) + "Z"
}

// diamond is a marker that differs from a dot in its form.
func diamond(p xy, r float64) string {
	return "M" + px(p.x) + " " + px(p.y-r) + "L" + px(p.x+r) + " " + px(p.y) + "L" + px(p.x) + " " + px(p.y+r) + "L" + px(p.x-r) + " " + px(p.y) + "Z"
}

// arrow points down: the value is somewhere below.
func arrow(p xy, r float64) string {
	return "M" + px(p.x-r) + " " + px(p.y-r) + "L" + px(p.x+r) + " " + px(p.y-r) + "L" + px(p.x) + " " + px(p.y+r) + "Z"
}

// thin keeps of the points in one column of pixels the first, the lowest, the
// highest and the last: the line that is seen stays the same however many
// points there were (Jugel and others, M4, 2014).
func thin(ps []xy) []xy {
	var out []xy
	for from := 0; from < len(ps); {
		column, to := math.Floor(ps[from].x), from+1
		for to < len(ps) && math.Floor(ps[to].x) == column {
			to++
		}
		low, high := from, from
		for i := from; i < to; i++ {
			if ps[i].y < ps[low].y {
				low = i
			}
			if ps[i].y > ps[high].y {
				high = i
			}
		}
		keep := []int{from, low, high, to - 1}
		slices.Sort(keep)
		for _, i := range slices.Compact(keep) {
			out = append(out, ps[i])
		}
		from = to
	}
	return out
}

// summed reduces the points to one for each column of pixels: the highest
// and the lowest there (that is, the least and the largest y), and the mean.
func summed(ps []xy) (high, low, mean []xy) {
	for from := 0; from < len(ps); {
		column, to, sum := math.Floor(ps[from].x), from, 0.0
		top, bottom := ps[from].y, ps[from].y
		for to < len(ps) && math.Floor(ps[to].x) == column {
			sum += ps[to].y
			top, bottom = min(top, ps[to].y), max(bottom, ps[to].y)
			to++
		}
		x := ps[from].x
		high, low, mean = append(high, xy{x, top}), append(low, xy{x, bottom}), append(mean, xy{x, sum / float64(to-from)})
		from = to
	}
	return high, low, mean
}

// scale maps values to positions. What lies outside is drawn at the edge.
type scale struct {
	lo, hi   float64 // values
	from, to float64 // positions
	log      bool    // by orders of magnitude; lo is above 0
}

func (s scale) at(v float64) float64 {
	lo, hi := s.lo, s.hi
	v = min(max(v, lo), hi)
	if s.log {
		v, lo, hi = math.Log(v), math.Log(lo), math.Log(hi)
	}
	if !(hi > lo) {
		return (s.from + s.to) / 2
	}
	return s.from + float64((s.to-s.from)*((v-lo)/(hi-lo)))
}

// plot is a coordinate system and where it stands. Its name stands above it,
// over a row for marks where it has one.
type plot struct {
	x, y   scale
	marked bool
}

func (p plot) at(x, y float64) xy { return xy{p.x.at(x), p.y.at(y)} }
func (p plot) top() float64       { return min(p.y.from, p.y.to) }
func (p plot) bottom() float64    { return max(p.y.from, p.y.to) }

// tick is a marked value of an axis.
type tick struct {
	at    float64
	label string
}

// ground draws the plot's area, the grid and the labels of the axes.
func (c *canvas) ground(p plot, name string, xs, ys []tick) {
	c.rect("plot", p.x.from, p.top(), p.x.to-p.x.from, p.bottom()-p.top(), "")
	for _, t := range ys {
		y := p.y.at(t.at)
		c.line("grid", p.x.from, y, p.x.to, y)
		c.text("tick", "end", p.x.from-6, y+4, t.label)
	}
	for _, t := range xs {
		x := p.x.at(t.at)
		c.line("grid", x, p.bottom(), x, p.bottom()+4)
		if t.label != "" {
			c.middle("tick", x, p.bottom()+17, t.label)
		}
	}
	above := 8.0
	if p.marked {
		above = 24
	}
	c.text("axis", "start", p.x.from, p.top()-above, name)
}

// linear returns round values between lo and hi, about as many as asked for,
// with as many decimals as they need.
func linear(lo, hi float64, about int) []tick {
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/float64(about))))
	for _, m := range []float64{2, 2.5, 2} { // 1, 2, 5, 10
		if (hi-lo)/step <= float64(about) {
			break
		}
		step *= m
	}
	decimals := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	var out []tick
	for i := math.Ceil(lo/step - 1e-9); float64(i*step) <= hi+float64(step*1e-9) && len(out) < 4*about; i++ {
		out = append(out, tick{i * step, strconv.FormatFloat(i*step+0, 'f', decimals, 64)}) // +0: no minus before a zero
	}
	return out
}

// decades returns 1, 2 and 5 of each order of magnitude between lo and hi, or
// the powers of ten alone where those would be too many.
func decades(lo, hi float64, most int, label func(float64) string) []tick {
	for _, steps := range [][]float64{{1, 2, 5}, {1}} {
		var out []tick
		for e := math.Floor(math.Log10(lo)); e <= math.Ceil(math.Log10(hi)); e++ {
			for _, m := range steps {
				if v := m * math.Pow(10, e); v >= lo*(1-1e-9) && v <= hi*(1+1e-9) {
					out = append(out, tick{v, label(v)})
				}
			}
		}
		if len(out) <= most || len(steps) == 1 {
			return out
		}
	}
	return nil
}

const day = 24 * time.Hour

// instants returns round times between two, at most so many. Weeks begin on
// Monday. Within a day it is the hour that is named, at midnight the date.
func instants(from, to time.Time, most int) []tick {
	step := time.Hour
	for _, longer := range []time.Duration{2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 7 * day} {
		if to.Sub(from) > time.Duration(most)*step {
			step = longer
		}
	}
	for to.Sub(from)/time.Duration(most) >= step && step < 1<<14*day {
		step *= 2
	}
	var out []tick
	for t := from.UTC().Truncate(step); !t.After(to) && len(out) < 2*most+2; t = t.Add(step) {
		if t.Before(from) {
			continue
		}
		layout := "2 Jan"
		if t.Truncate(day) != t {
			layout = "15:04"
		}
		out = append(out, tick{float64(t.Unix()), t.Format(layout)})
	}
	return out
}
