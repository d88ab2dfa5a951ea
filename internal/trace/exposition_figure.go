package trace

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// expr is a figure of a window in terms of metrics. It can be written as
// PromQL, for a server that has the series, and reckoned from the difference of
// two snapshots of /metrics, by the same rules: of several names the first that
// is there counts, and an old name is never added to a new one.
type expr interface {
	// promQL writes {} where the matchers of an arm go, or the end of the
	// braces after a comma, $span for the window's length and $ttft_le for the
	// limit of slow first tokens, in seconds.
	promQL() string
	// value is what the differences say. there says that the metric is there;
	// its value may still be NaN, which is not known.
	value(d differences) (v float64, there bool)
	// leaves calls see for every metric that the figure rests on.
	leaves(see func(leaf))
}

// leaf is a metric that is read off a snapshot. Equal leaves are the same.
type leaf interface {
	metric() string
	takes(labels map[string]string) bool
}

// differences is what the metrics have done in a window.
type differences map[leaf]*difference

// difference is what one metric has done, over all its series.
type difference struct {
	sum    float64             // by how much counters grew
	most   float64             // the largest value of gauges
	within map[float64]float64 // by how much the buckets of a histogram grew, by upper bound
	limit  float64             // the upper bound that slow first tokens lie above
	capped *int                // counts quantiles above the last bound
}

// condition narrows a metric down to some of its series.
type condition struct{ label, op, value string }

func (c condition) String() string {
	if c.label == "" {
		return "{}"
	}
	return "{" + c.label + c.op + strconv.Quote(c.value) + ",}"
}

func (c condition) holds(labels map[string]string) bool {
	got := labels[c.label]
	switch c.op {
	case "!=":
		return got != c.value
	case "=~":
		return regexp.MustCompile("^(?:" + c.value + ")$").MatchString(got)
	}
	return got == c.value
}

// increase is by how much a counter grew, over all its series.
type increase struct {
	name  string
	where condition
}

func (e increase) metric() string                 { return e.name }
func (e increase) takes(l map[string]string) bool { return e.where.label == "" || e.where.holds(l) }
func (e increase) leaves(see func(leaf))          { see(e) }
func (e increase) promQL() string                 { return "sum(increase(" + e.name + e.where.String() + "[$span]))" }

func (e increase) value(d differences) (float64, bool) {
	if got := d[e]; got != nil {
		return got.sum, true
	}
	return 0, false
}

// gauge is the largest value that a gauge had.
type gauge struct{ name string }

func (e gauge) metric() string               { return e.name }
func (e gauge) takes(map[string]string) bool { return true }
func (e gauge) leaves(see func(leaf))        { see(e) }
func (e gauge) promQL() string               { return "max(max_over_time(" + e.name + "{}[$span]))" }

func (e gauge) value(d differences) (float64, bool) {
	if got := d[e]; got != nil {
		return got.most, true
	}
	return 0, false
}

// quantile is the 99th percentile of a histogram.
type quantile struct{ histogram string }

func (e quantile) metric() string               { return e.histogram + "_bucket" }
func (e quantile) takes(map[string]string) bool { return true }
func (e quantile) leaves(see func(leaf))        { see(e) }
func (e quantile) promQL() string {
	return "histogram_quantile(0.99, sum by (le) (increase(" + e.metric() + "{}[$span])))"
}

func (e quantile) value(d differences) (float64, bool) {
	got := d[e]
	if got == nil {
		return 0, false
	}
	v, capped := bucketQuantile(0.99, got.within)
	if capped {
		*got.capped++
	}
	return v, true
}

// above is how many observations of a histogram lie above the limit of slow
// first tokens. A histogram tells it at its bounds only: without the limit among
// them the figure is not there.
type above struct{ histogram string }

func (e above) metric() string               { return e.histogram + "_bucket" }
func (e above) takes(map[string]string) bool { return true }
func (e above) leaves(see func(leaf))        { see(e) }
func (e above) promQL() string {
	return increase{name: e.histogram + "_count"}.promQL() + " - sum(increase(" + e.metric() + `{le=~"$ttft_le",}[$span]))`
}

func (e above) value(d differences) (float64, bool) {
	got := d[e]
	if got == nil || got.limit <= 0 {
		return 0, false
	}
	within, ok := got.within[got.limit]
	all, whole := got.within[math.Inf(1)]
	return all - within, ok && whole
}

// over is a ratio; without a denominator it is NaN, as in PromQL.
type over struct{ a, b expr }

func (e over) promQL() string        { return e.a.promQL() + " / " + e.b.promQL() }
func (e over) leaves(see func(leaf)) { e.a.leaves(see); e.b.leaves(see) }
func (e over) value(d differences) (float64, bool) {
	a, ok := e.a.value(d)
	b, also := e.b.value(d)
	return a / b, ok && also
}

// times is a multiple.
type times struct {
	k float64
	e expr
}

func (e times) promQL() string        { return strconv.FormatFloat(e.k, 'f', -1, 64) + " * " + e.e.promQL() }
func (e times) leaves(see func(leaf)) { e.e.leaves(see) }
func (e times) value(d differences) (float64, bool) {
	v, ok := e.e.value(d)
	return e.k * v, ok
}

// firstOf is the first of several that is there.
type firstOf []expr

func (e firstOf) promQL() string {
	parts := make([]string, len(e))
	for i, x := range e {
		parts[i] = x.promQL()
	}
	return "(" + strings.Join(parts, " or ") + ")"
}

func (e firstOf) leaves(see func(leaf)) {
	for _, x := range e {
		x.leaves(see)
	}
}

func (e firstOf) value(d differences) (float64, bool) {
	for _, x := range e {
		if v, ok := x.value(d); ok {
			return v, true
		}
	}
	return 0, false
}

// bucketQuantile is the quantile of a histogram, linear within the bucket that
// holds it and starting at 0, as histogram_quantile of Prometheus reckons it.
// Above the last finite bound it is that bound, which is too low: capped. NaN
// without observations, and where the bucket +Inf is missing.
func bucketQuantile(q float64, within map[float64]float64) (v float64, capped bool) {
	bounds := make([]float64, 0, len(within))
	for le := range within {
		bounds = append(bounds, le)
	}
	slices.Sort(bounds)
	last := len(bounds) - 1
	if last < 1 || !math.IsInf(bounds[last], 1) {
		return math.NaN(), false
	}
	counts := make([]float64, len(bounds)) // never falling, though a bucket may have been read a moment before the next
	for i, le := range bounds {
		counts[i] = within[le]
		if i > 0 {
			counts[i] = max(counts[i], counts[i-1])
		}
	}
	if !(counts[last] > 0) {
		return math.NaN(), false
	}
	rank := q * counts[last]
	i := slices.IndexFunc(counts, func(n float64) bool { return n >= rank })
	switch {
	case i == last:
		return bounds[last-1], true
	case i == 0 && bounds[0] <= 0:
		return bounds[0], false
	case i == 0:
		return bounds[0] * (rank / counts[0]), false
	}
	share := (rank - counts[i-1]) / (counts[i] - counts[i-1])
	return bounds[i-1] + float64((bounds[i]-bounds[i-1])*share), false
}
