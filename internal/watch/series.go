package watch

import (
	"math"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// reading is what a window tells of a signal: a sum and what it is counted
// over.
type reading struct {
	sum float64
	of  int64
}

// reader reads a signal off a window; false: the window does not have it.
type reader func(w *release.Window) (reading, bool)

// meter is how a signal is read, window by window.
type meter struct {
	read reader
	unit Unit
	over time.Duration // that the breaker counts it over; 0: one window
	sum  bool          // it is the sum itself, not the sum a request
	lag  time.Duration // windows younger than it have not all their labels
}

// meterOf is how the breaker would read a signal under these limits.
func meterOf(l *breaker.Limits, s release.Signal) meter {
	switch s {
	case release.Violations:
		return meter{read: counting(release.HasViolations, func(w *release.Window) int64 { return w.Violations }), unit: Count, over: l.FastSpan, sum: true}
	case release.Cost:
		return meter{read: weighed(release.HasCost, func(w *release.Window) float64 { return w.Cost }), unit: Ratio}
	case release.P99:
		if l.P99ByCount {
			return meter{read: counting(release.HasSlow, func(w *release.Window) int64 { return w.Slow }), unit: Share, over: l.FastSpan}
		}
		return meter{read: weighed(release.HasP99, func(w *release.Window) float64 { return w.P99MS }), unit: Millis}
	case release.Transfers:
		return meter{read: counting(release.HasTransfers, func(w *release.Window) int64 { return w.Transfers }), unit: Share, over: l.FastSpan}
	case release.TTFTP99, release.ITL:
		return meter{read: streaming(s), unit: Millis, over: l.StreamLimitOf(s).Span}
	case release.TTFTSlow, release.StreamAborts, release.ServerErrors, release.Errors, release.KVCache:
		return meter{read: streaming(s), unit: Share, over: l.StreamLimitOf(s).Span}
	}
	return meter{read: solved, unit: Share, over: l.SlowSpan, lag: l.LabelLag}
}

// counting reads a count of a window's requests.
func counting(has release.Figures, count func(*release.Window) int64) reader {
	return func(w *release.Window) (reading, bool) {
		return reading{float64(count(w)), w.Total}, w.Total > 0 && w.Has(has)
	}
}

// weighed reads a figure of a window that is a mean or a quantile: over several
// windows it is weighed by their requests. One that is no number is missing.
func weighed(has release.Figures, figure func(*release.Window) float64) reader {
	return func(w *release.Window) (reading, bool) {
		sum := figure(w) * float64(w.Total)
		return reading{sum, w.Total}, w.Total > 0 && w.Has(has) && !math.IsNaN(sum) && !math.IsInf(sum, 0)
	}
}

// streaming reads a signal of streaming or infrastructure as the breaker does.
func streaming(s release.Signal) reader {
	unit := breaker.PerUnit(s)
	return func(w *release.Window) (reading, bool) {
		counts := breaker.StreamCountsOf(w)
		c := counts.Of(s)
		return reading{float64(c.Sum) / unit, c.Of}, w.Total > 0 && c.Of > 0
	}
}

func solved(w *release.Window) (reading, bool) {
	return reading{float64(w.Solved), w.Judged}, w.Judged > 0 && w.Has(release.HasSolved)
}

// figure is what a reading comes to.
func (m *meter) figure(r reading) Figure {
	switch {
	case r.of <= 0:
		return Figure{}
	case m.sum:
		return Known(r.sum)
	}
	return Known(r.sum / float64(r.of))
}

// total sums the windows from a time on that have their labels.
func (m *meter) total(windows []release.Window, from, now time.Time) reading {
	var out reading
	for i := range windows {
		if w := &windows[i]; !w.T.Before(from) && !m.young(w, now) {
			if r, ok := m.read(w); ok {
				out.sum, out.of = out.sum+r.sum, out.of+r.of
			}
		}
	}
	return out
}

// young reports whether labels of a window may still come.
func (m *meter) young(w *release.Window, now time.Time) bool {
	return m.lag > 0 && w.End().After(now.Add(-m.lag))
}

// series is a point for each of a number of windows from a time on. A window
// that is not there, has no requests or does not have the figure is a point that
// is not known. now says which windows have their labels.
func (m *meter) series(windows []release.Window, times Times, n int, now time.Time) []Figure {
	points := make([]Figure, n)
	for i := range windows {
		w := &windows[i]
		at := int(w.T.Sub(times.From) / times.Span)
		if w.T.Before(times.From) || at >= n || m.young(w, now) {
			continue
		}
		if _, ok := m.read(w); ok {
			points[at] = m.figure(m.ending(windows, i))
		}
	}
	return points
}

// ending sums the windows of the span that ends with the i-th.
func (m *meter) ending(windows []release.Window, i int) reading {
	end := windows[i].T
	var out reading
	for k := i; k >= 0 && (k == i || windows[k].T.After(end.Add(-m.over))); k-- {
		if r, ok := m.read(&windows[k]); ok {
			out.sum, out.of = out.sum+r.sum, out.of+r.of
		}
	}
	return out
}

// scaled is stable's series of counts as they would be in as many requests as the
// canary had: a count says nothing beside one of ten times the traffic.
func (m *meter) scaled(canary, stable []release.Window, times Times, n int, now time.Time) []Figure {
	rate := *m
	rate.sum = false
	points := rate.series(stable, times, n, now)
	of := make([]int64, n)
	for i := range canary {
		if at := int(canary[i].T.Sub(times.From) / times.Span); !canary[i].T.Before(times.From) && at < n {
			of[at] = m.ending(canary, i).of
		}
	}
	for i := range points {
		points[i] = Figure{Value: points[i].Value * float64(of[i]), Known: points[i].Known && of[i] > 0}
	}
	return points
}

// newest is the last point of a series that is known, if it is among the last
// few: what was long ago is not how it stands now.
func newest(points []Figure) Figure {
	const few = 3
	for i := len(points) - 1; i >= max(0, len(points)-few); i-- {
		if points[i].Known {
			return points[i]
		}
	}
	return Figure{}
}

// timesOf is the grid of the newest windows of both arms.
func timesOf(canary, stable []release.Window, span time.Duration) Times {
	var last time.Time
	for _, arm := range [][]release.Window{canary, stable} {
		if n := len(arm); n > 0 && arm[n-1].T.After(last) {
			last = arm[n-1].T
		}
	}
	if span <= 0 {
		span = time.Minute
	}
	if last.IsZero() {
		return Times{Span: span}
	}
	return Times{From: last.Add(-(Points - 1) * span), Span: span}
}
