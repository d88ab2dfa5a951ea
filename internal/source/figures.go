package source

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/trace"
)

// figures gathers the values of all queries for a stretch of windows. A value
// that is absent, NaN or infinite is NaN here, which is missing and never 0.
type figures struct {
	span  time.Duration
	first time.Time
	n     int

	mu     sync.Mutex
	values map[string][]float64 // by arm and field
	said   []string
}

func newFigures(span time.Duration, first, until time.Time) *figures {
	return &figures{span: span, first: first, n: int(until.Sub(first) / span), values: make(map[string][]float64)}
}

// take puts an answer into its place. A value at an instant is that of the
// window that ends there.
func (f *figures) take(q query, ans trace.Answer) error {
	if len(ans.Series) > 1 {
		return &queryError{q, severalSeries(ans.Series), "aggregate in the query, as in sum(...)"}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range ans.Said {
		f.said = append(f.said, q.String()+": Prometheus says: "+printable(s))
	}
	values := f.values[q.String()]
	if values == nil {
		values = make([]float64, f.n)
		for i := range values {
			values[i] = math.NaN()
		}
		f.values[q.String()] = values
	}
	for _, s := range ans.Series {
		for _, point := range s.Values {
			at := point.Timestamp.Time().Sub(f.first) - f.span
			if at%f.span != 0 || at < 0 || int(at/f.span) >= f.n {
				return &queryError{q, fmt.Errorf("the answer has a value at %s, which was not asked for", point.Timestamp.Time().UTC().Format(time.RFC3339Nano)),
					"something between changes the query's start or step; windows start at multiples of span_min"}
			}
			if v := float64(point.Value); !math.IsInf(v, 0) {
				values[at/f.span] = v
			}
		}
	}
	return nil
}

func severalSeries(m model.Matrix) error {
	const most = 10
	var labels []string
	for _, s := range m {
		labels = append(labels, printable(s.Metric.String()))
	}
	slices.Sort(labels)
	if more := len(labels) - most; more > 0 {
		labels = append(labels[:most], fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%d series where one is expected: %s", len(m), strings.Join(labels, ", "))
}

// counted is what became of the values of one figure.
type counted struct {
	far, beyond, negative, above, absent int
}

// windows makes the windows, by time, then arm, and says what was odd, once a
// figure.
func (f *figures) windows(queries []query) (out []release.Window, notes []string) {
	odd := make(map[string]*counted, len(queries))
	byArm := map[release.Arm][]query{}
	for _, q := range queries {
		odd[q.String()] = &counted{}
		byArm[q.arm] = append(byArm[q.arm], q)
	}
	for i := range f.n {
		var pair [2]*release.Window
		for j, arm := range []release.Arm{release.Canary, release.Stable} {
			pair[j] = f.window(i, byArm[arm], odd)
		}
		canary, stable := pair[0], pair[1]
		if canary != nil && stable != nil && canary.Total > 0 && stable.Total > 0 && !canary.Has(release.HasCost) &&
			canary.Has(release.HasCostMean) && stable.Has(release.HasCostMean) && stable.CostMean > 0 {
			canary.Cost, canary.Known = canary.CostMean/stable.CostMean, canary.Known|release.HasCost
		}
		for _, w := range pair {
			if w != nil {
				out = append(out, *w)
			}
		}
	}
	slices.Sort(f.said)
	notes = slices.Compact(f.said)
	far := 0
	for _, q := range queries {
		notes = append(notes, odd[q.String()].notes(q)...)
		far += odd[q.String()].far
	}
	if far > 0 { // in nearly every reading, so in one line for all figures
		notes = append(notes, fmt.Sprintf("counts that were not whole, as Prometheus extrapolates, were rounded: %d", far))
	}
	return out, notes
}

// window makes the i-th window of an arm, nil where there is none.
func (f *figures) window(i int, queries []query, odd map[string]*counted) *release.Window {
	if len(queries) == 0 {
		return nil
	}
	w := &release.Window{T: f.first.Add(time.Duration(i) * f.span), Span: f.span, Arm: queries[0].arm}
	counts := trace.Counts{}
	for _, q := range queries {
		v, c := f.values[q.String()][i], odd[q.String()]
		if slices.Contains(measures, q.field) {
			c.measure(w, q.field, v)
			continue
		}
		n, ok := c.count(v, q.field == "total")
		switch {
		case ok:
			counts[q.field] = n
		case q.field == "total":
			return nil
		case counts["total"] > 0 && math.IsNaN(v):
			c.absent++
		}
	}
	asked := func(field string) bool {
		return slices.ContainsFunc(queries, func(q query) bool { return q.field == field })
	}
	for _, field := range counts.Fill(w, asked) {
		odd[query{arm: w.Arm, field: field}.String()].beyond++
	}
	return w
}

// count turns a value into a count: the nearest whole number, half to even.
// One that is not nearly whole is noted, as Prometheus extrapolates to the ends
// of the span; a total between 0 and 1 is a trace of a request and no data.
func (c *counted) count(v float64, total bool) (int64, bool) {
	const most = 1e12
	switch {
	case math.IsNaN(v) || v > most:
		return 0, false
	case v < -0.05:
		c.negative++
		return 0, false
	}
	n := math.RoundToEven(v)
	if math.Abs(v-n) > 0.05 {
		c.far++
		if total && v < 1 {
			return 0, false
		}
	}
	return int64(n), true
}

// measures are the fields that are no counts.
var measures = []string{"cost", "cost_mean", "p99_ms", "ttft_p99_ms", "itl_ms", "kv_cache"}

// measure fills in a figure that is not a count.
func (c *counted) measure(w *release.Window, field string, v float64) {
	switch {
	case math.IsNaN(v):
	case trace.SetMeasure(w, field, v):
	case v < 0:
		c.negative++
	default:
		c.above++
	}
}

func (c *counted) notes(q query) (out []string) {
	say := func(n int, one, many string) {
		switch {
		case n == 1:
			out = append(out, q.String()+": 1 "+one)
		case n > 1:
			out = append(out, fmt.Sprintf("%s: %d %s", q, n, many))
		}
	}
	say(c.beyond, "count was larger than what it is a part of: no data there", "counts were larger than what they are a part of: no data there")
	say(c.negative, "value was negative: no data there", "values were negative: no data there")
	say(c.above, "value is above 1 and no fraction: no data there; divide a percentage by 100", "values are above 1 and no fractions: no data there; divide percentages by 100")
	say(c.absent, "window with requests has no value: no data there, not 0", "windows with requests have no value: no data there, not 0; if the counter only appears with its first event write `... or vector(0)`")
	return out
}
