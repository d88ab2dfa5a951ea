package report

import (
	"fmt"
	"math"
	"strconv"

	"github.com/canaryctl/canaryctl/internal/calibrate"
)

// hoursChart draws solve rate and traffic by the hour of the day.
func hoursChart(r *calibrate.Report) *drawing {
	h := &hours{all: r.Time.Hours, p0: r.Centre.P0, bottom: math.Inf(1), top: math.Inf(-1)}
	h.extent()
	if h.empty() {
		return nil
	}
	d := draw("hours", "Solve rate and traffic by hour of the day", h.describe(plain(r.Meta.Zone)), 330, h.paint)
	d.Legend = []swatch{
		{Class: "whisker", Text: "solve rate of the hour, one standard error up and down"},
		{Class: "centre", Text: "p0, the pooled rate"},
		{Class: "bar", Text: "requests a minute", Area: true},
	}
	return &d
}

type hours struct {
	all         []calibrate.Hour
	p0          *float64
	bottom, top float64 // of the rates with their errors
	busiest     float64
}

// empty reports whether no hour has a rate.
func (h *hours) empty() bool { return h.top < h.bottom }

func (h *hours) extent() {
	for _, x := range h.all {
		if q := x.RequestsPerMin; q != nil && finite(*q) {
			h.busiest = max(h.busiest, *q)
		}
		if x.Rate == nil || !finite(*x.Rate) {
			continue
		}
		e := spread1(x)
		h.bottom, h.top = min(h.bottom, *x.Rate-e), max(h.top, *x.Rate+e)
	}
	if h.empty() {
		return
	}
	if h.p0 != nil && finite(*h.p0) {
		h.bottom, h.top = min(h.bottom, *h.p0), max(h.top, *h.p0)
	}
	room := max(0.08*(h.top-h.bottom), 0.001)
	h.bottom, h.top = max(0, h.bottom-room), min(1, h.top+room)
	if h.top <= h.bottom {
		h.bottom, h.top = 0, 1
	}
}

// spread1 is the standard error of an hour, 0 where it is unknown: the point
// then stands without bars.
func spread1(x calibrate.Hour) float64 {
	if x.SE == nil || !finite(*x.SE) || *x.SE < 0 {
		return 0
	}
	return *x.SE
}

// describe names the extremes.
func (h *hours) describe(zone string) string {
	low, high := extremes(h.all)
	return fmt.Sprintf("The lowest rate is %s at %02d:00, the highest %s at %02d:00 (%s). The figures stand in the table below.", rate(low.Rate), low.Hour, rate(high.Rate), high.Hour, zone)
}

func (h *hours) paint(c *canvas) {
	left, every := 46.0, 2
	if c.narrow {
		left, every = 40, 4
	}
	x := scale{lo: 0, hi: 24, from: left, to: c.w - 8}
	rates := plot{x: x, y: scale{lo: h.bottom, hi: h.top, from: 190, to: 26}}
	ys := linear(100*h.bottom, 100*h.top, 5)
	for i := range ys {
		ys[i].at /= 100
	}
	var xs []tick
	for hour := 0; hour < 24; hour += every {
		xs = append(xs, tick{float64(hour) + 0.5, fmt.Sprintf("%02d", hour)})
	}
	c.ground(rates, "solve rate, %", nil, ys)
	if h.p0 != nil && finite(*h.p0) {
		y := rates.y.at(*h.p0)
		c.line("centre", x.from, y, x.to, y)
	}
	traffic := plot{x: x, y: scale{lo: 0, hi: max(h.busiest, 1e-9), from: c.h - 26, to: 236}}
	var zs []tick
	if h.busiest > 0 {
		zs = linear(0, h.busiest, 3)
	}
	c.ground(traffic, "requests a minute", xs, zs)
	for _, one := range h.all {
		h.hour(c, one, rates, traffic)
	}
}

func (h *hours) hour(c *canvas, one calibrate.Hour, rates, traffic plot) {
	if one.Hour < 0 || one.Hour > 23 {
		return
	}
	middle := float64(one.Hour) + 0.5
	if one.Rate != nil && finite(*one.Rate) {
		p, e := rates.at(middle, *one.Rate), spread1(one)
		if e > 0 {
			c.line("whisker", p.x, rates.y.at(*one.Rate-e), p.x, rates.y.at(*one.Rate+e))
		}
		c.dot("point", p, 3.4)
	}
	if q := one.RequestsPerMin; q != nil && finite(*q) && *q > 0 {
		p, half := traffic.at(middle, *q), (traffic.x.at(1)-traffic.x.at(0))*0.36
		c.rect("bar", p.x-half, p.y, 2*half, traffic.bottom()-p.y, strconv.Itoa(one.Hour)+" h: "+decimal(*q, 3)+" requests a minute")
	}
}
