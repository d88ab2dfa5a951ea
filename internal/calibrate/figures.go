package calibrate

import (
	"fmt"
	"math"
	"strings"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// figures fills in what the fast layer compares with.
func (r *Report) figures(own []release.Window, o Options) {
	r.Violations = rateOf(own, release.HasViolations, func(w *release.Window) int64 { return w.Violations })
	r.Transfers = rateOf(own, release.HasTransfers, func(w *release.Window) int64 { return w.Transfers })
	r.P99 = p99Of(own, o)
	r.Cost = costOf(own)
	r.partly("violations", r.Violations.Requests)
	r.partly("transfers", r.Transfers.Requests)
	r.partly("cost", r.Cost.Requests)
}

// rateOf counts over the windows that carry the figure, and no others.
func rateOf(own []release.Window, has release.Figures, of func(*release.Window) int64) Rate {
	var rate Rate
	for i := range own {
		if w := &own[i]; w.Has(has) && w.Total > 0 {
			rate.Count = plus(rate.Count, of(w))
			rate.Requests += w.Total
		}
	}
	if rate.Count == nil {
		return rate
	}
	rate.Rate = new(sig(float64(*rate.Count)/float64(rate.Requests), 6))
	if *rate.Count == 0 {
		rate.Upper95 = new(sig(stats.RuleOfThree(rate.Requests), 3))
	}
	return rate
}

// enoughForP99 is how many requests a window's 99th percentile needs to be one
// (95 % sure that it is not above all of them: ln 0.05 / ln 0.99).
const enoughForP99 = 299

// p99Of prefers the percentile over all requests. Percentiles of windows
// cannot be averaged, but their request-weighted median is near the true one
// where windows have many requests. Where they have few, a window's p99 is its
// slowest request and the median of those far too low: the level that replaces
// the half is how often such a window's figure lies below the true percentile.
func p99Of(own []release.Window, o Options) P99 {
	if o.P99MS != nil {
		return P99{ValueMS: new(sig(*o.P99MS, 9)), Method: "nearest rank over all requests"}
	}
	var vs []stats.Weighted
	var requests, few int64
	level := 0.0
	for i := range own {
		w := &own[i]
		if !w.Has(release.HasP99) || w.Total == 0 {
			continue
		}
		vs = append(vs, stats.Weighted{Value: w.P99MS, Weight: w.Total})
		requests += w.Total
		if w.Total < enoughForP99 {
			few += w.Total
			level += float64(float64(w.Total) * stats.RankLevel(p99, w.Total))
		} else {
			level += float64(float64(w.Total) * 0.5)
		}
	}
	if requests == 0 {
		return P99{}
	}
	value := stats.WeightedQuantile(vs, level/float64(requests))
	method := fmt.Sprintf("request-weighted median of the %s windows' p99", spanName(own[0].Span))
	if few > 0 {
		method = fmt.Sprintf("request-weighted quantile %.3f of the %s windows' p99: a p99 of few requests is low", level/float64(requests), spanName(own[0].Span))
	}
	return P99{ValueMS: new(sig(value, 9)), Method: method}
}

var p99 = release.MustRatio("0.99")

func costOf(own []release.Window) Cost {
	var c Cost
	sum := 0.0
	for i := range own {
		if w := &own[i]; w.Has(release.HasCostMean) && w.Total > 0 {
			sum += float64(w.CostMean * float64(w.Total)) // rounded before it is added: the same on every machine
			c.Requests += w.Total
		}
	}
	if c.Requests > 0 {
		c.MeanUSD = new(sig(sum/float64(c.Requests), 6))
	}
	return c
}

// partly warns where a figure covers only some of the requests.
func (r *Report) partly(name string, requests int64) {
	if requests > 0 && requests < r.Totals.Total {
		r.warn("partial-figure", fmt.Sprintf("%s are known for %d of %d requests only", name, requests, r.Totals.Total), "")
	}
}

// remarks adds the warnings that rest on the finished report, the gravest
// first.
func (r *Report) remarks() {
	found := r.Warnings
	r.Warnings = []Warning{}
	if d := r.Span.To.Sub(r.Span.From); d >= MinSpan && d < GoodSpan {
		r.warn("short-baseline", roughly(d)+" are less than five days: weekdays, weekends and their nights may differ from what was seen", "calibrate again on a week")
	}
	r.Warnings = append(r.Warnings, found...)
	if c := r.Centre; c.P0 != nil && math.Abs(*c.P0-*c.Median) > 0.005 {
		r.warn("off-centre", fmt.Sprintf("the pooled solve rate %s is more than half a point from the median window's %s", percent(*c.P0), percent(*c.Median)), "a few bad or very large windows pull it; look for incidents")
	}
	if n := len(r.Windows.Gaps); n > 0 {
		lost := 0.0
		for _, g := range r.Windows.Gaps {
			lost += g.Minutes
		}
		r.warn("gaps", fmt.Sprintf("nothing is known of %s minutes in %s, the first at %s", number(round(lost, 1)), count(n, "gap"), stamp(r.Windows.Gaps[0].From)), "the windows they touch are left out of sigma")
	}
	r.noneSeen("violations", r.Violations)
	r.noneSeen("transfers", r.Transfers)
	r.missing()
}

func (r *Report) noneSeen(name string, rate Rate) {
	if rate.Upper95 != nil {
		r.warn("no-"+name, fmt.Sprintf("no %s in %d requests: by the rule of three up to %s may have one, and the baseline rate is set to that", name, rate.Requests, percent(*rate.Upper95)), "")
	}
}

// missing names the figures that no window carries, in one warning.
func (r *Report) missing() {
	var names []string
	for _, f := range []struct {
		name  string
		known bool
	}{{"violations", r.Violations.Rate != nil}, {"transfers", r.Transfers.Rate != nil}, {"p99", r.P99.ValueMS != nil}, {"cost", r.Cost.MeanUSD != nil}} {
		if !f.known {
			names = append(names, f.name)
		}
	}
	if len(names) > 0 {
		r.warn("missing-figures", "the input says nothing of "+strings.Join(names, ", "), "--write leaves their keys as they are; map them with --map to calibrate the fast layer too")
	}
}
