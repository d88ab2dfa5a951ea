package watch

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// nine is the time at which the windows of these tests begin.
var nine = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// every is all that a window can tell.
const every = release.HasViolations | release.HasCost | release.HasP99 | release.HasTransfers | release.HasSlow | release.HasSolved

// window is the n-th window of an arm, of this many requests.
func window(arm release.Arm, n int, span time.Duration, total int64, also func(w *release.Window)) release.Window {
	w := release.Window{T: nine.Add(time.Duration(n) * span), Span: span, Arm: arm, Total: total, Known: every}
	if also != nil {
		also(&w)
	}
	return w
}

// knownAt are the points that are known, by place.
func knownAt(points []Figure) map[int]float64 {
	out := map[int]float64{}
	for i, p := range points {
		if p.Known {
			out[i] = p.Value
		}
	}
	return out
}

func samePoints(t *testing.T, what string, got []Figure, want map[int]float64) {
	t.Helper()
	points := knownAt(got)
	if len(points) != len(want) {
		t.Errorf("%s: %v, want %v", what, points, want)
		return
	}
	for at, v := range want {
		if p, ok := points[at]; !ok || p != v {
			t.Errorf("%s: %v, want %v", what, points, want)
			return
		}
	}
}

func TestASeriesStandsWhereItsWindowsAre(t *testing.T) {
	for _, span := range []time.Duration{time.Minute, 5 * time.Minute, 10 * time.Second} {
		l := &breaker.Limits{FastSpan: 2 * span}
		slow := func(ms float64) func(*release.Window) { return func(w *release.Window) { w.P99MS = ms } }
		canary := []release.Window{
			window(release.Canary, 0, span, 10, slow(100)), window(release.Canary, 1, span, 10, slow(110)),
			// the third is missing
			window(release.Canary, 3, span, 0, slow(7)), // without requests
			window(release.Canary, 4, span, 10, func(w *release.Window) { w.Known &^= release.HasP99 }),
			window(release.Canary, 5, span, 10, slow(150)),
		}
		stable := []release.Window{window(release.Stable, 6, span, 10, slow(90))}
		times := timesOf(canary, stable, span)
		if want := nine.Add(6 * span).Add(-(Points - 1) * span); times.Span != span || !times.From.Equal(want) {
			t.Fatalf("spans of %v: the grid is %+v, want one from %v", span, times, want)
		}
		m := meterOf(l, release.P99)
		now := nine.Add(7 * span)
		samePoints(t, "canary", m.series(canary, times, Points, now), map[int]float64{53: 100, 54: 110, 58: 150})
		samePoints(t, "stable", m.series(stable, times, Points, now), map[int]float64{59: 90})
	}
}

func TestWindowsBeforeASeriesCountInItsFirstPoints(t *testing.T) {
	l := &breaker.Limits{FastSpan: 3 * time.Minute}
	var canary []release.Window
	for i := range Points + 5 {
		canary = append(canary, window(release.Canary, i, time.Minute, 100, func(w *release.Window) { w.Violations = 1 }))
	}
	m := meterOf(l, release.Violations)
	points := m.series(canary, timesOf(canary, nil, time.Minute), Points, nine.Add(time.Hour*2))
	for i, p := range points {
		if p != Known(3) {
			t.Fatalf("point %d is %+v: three minutes have three violations", i, p)
		}
	}
}

func TestAPointIsCountedAsTheBreakerCounts(t *testing.T) {
	l := &breaker.Limits{FastSpan: 3 * time.Minute, SlowSpan: 2 * time.Minute, LabelLag: 2 * time.Minute, P99ByCount: true}
	moved := func(n int64) func(*release.Window) {
		return func(w *release.Window) {
			w.Transfers, w.Violations, w.Slow, w.Judged, w.Solved, w.Cost = n, n, 2*n, 10, 10-n, 1+float64(n)/10
		}
	}
	canary := []release.Window{
		window(release.Canary, 0, time.Minute, 10, moved(1)), window(release.Canary, 1, time.Minute, 20, moved(2)),
		window(release.Canary, 2, time.Minute, 30, moved(3)), window(release.Canary, 4, time.Minute, 40, moved(4)), // a gap before it
		window(release.Canary, 5, time.Minute, 50, moved(5)),
	}
	times := timesOf(canary, nil, time.Minute)
	now := nine.Add(6 * time.Minute)
	for _, c := range []struct {
		signal release.Signal
		want   map[int]float64
	}{
		{release.Violations, map[int]float64{54: 1, 55: 3, 56: 6, 58: 7, 59: 9}}, // 3+4: the missing minute counts in the span
		{release.Transfers, map[int]float64{54: 0.1, 55: 0.1, 56: 0.1, 58: 0.1, 59: 0.1}},
		{release.P99, map[int]float64{54: 0.2, 55: 0.2, 56: 0.2, 58: 0.2, 59: 0.2}},
		{release.Cost, map[int]float64{54: 1.1, 55: 1.2, 56: 1.3, 58: 1.4, 59: 1.5}},
		{release.SolveRate, map[int]float64{54: 0.9, 55: 0.85, 56: 0.75}}, // 10:04 and 10:05 have not all their labels
	} {
		m := meterOf(l, c.signal)
		got := knownAt(m.series(canary, times, Points, now))
		if len(got) != len(c.want) {
			t.Errorf("%v: %v, want %v", c.signal, got, c.want)
			continue
		}
		for at, v := range c.want {
			if diff := got[at] - v; diff > 1e-12 || diff < -1e-12 {
				t.Errorf("%v: %v, want %v", c.signal, got, c.want)
			}
		}
	}
}

func TestAWindowsLabelsAreThereWhenTheLagHasPassed(t *testing.T) {
	m := meterOf(&breaker.Limits{SlowSpan: time.Minute, LabelLag: 10 * time.Minute}, release.SolveRate)
	canary := []release.Window{window(release.Canary, 0, time.Minute, 10, func(w *release.Window) { w.Judged, w.Solved = 10, 9 })}
	times := timesOf(canary, nil, time.Minute)
	end := nine.Add(time.Minute)
	for late, want := range map[time.Duration]int{10*time.Minute - time.Second: 0, 10 * time.Minute: 1, time.Hour: 1} {
		if got := len(knownAt(m.series(canary, times, Points, end.Add(late)))); got != want {
			t.Errorf("%v after its end: %d points, want %d", late, got, want)
		}
	}
}

func TestNoWindowsMakeNoSeries(t *testing.T) {
	if times := timesOf(nil, nil, 0); !times.From.IsZero() || times.Span != time.Minute {
		t.Errorf("the grid of nothing: %+v", times)
	}
	m := meterOf(&breaker.Limits{FastSpan: time.Minute}, release.Transfers)
	if got := knownAt(m.series(nil, Times{From: nine, Span: time.Minute}, Points, nine)); len(got) > 0 {
		t.Errorf("points of nothing: %v", got)
	}
	if f := m.figure(m.total(nil, nine, nine)); f != (Figure{}) {
		t.Errorf("a sum of nothing: %+v", f)
	}
}

func TestTheNewestFigureIsNotOfLongAgo(t *testing.T) {
	points := make([]Figure, 10)
	points[5] = Known(3)
	if f := newest(points); f.Known {
		t.Errorf("a figure of five windows ago: %+v", f)
	}
	points[7] = Known(0)
	if f := newest(points); f != Known(0) {
		t.Errorf("newest: %+v", f)
	}
}

// Whatever is missing, a point is what is summed by hand over its span.
func TestPointsAreSumsOverTheirSpans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := rapid.SampledFrom([]time.Duration{time.Minute, 5 * time.Minute}).Draw(t, "span")
		wide := rapid.IntRange(1, 8).Draw(t, "windows of a span")
		l := &breaker.Limits{FastSpan: time.Duration(wide) * span}
		var canary []release.Window
		for n := range rapid.IntRange(1, 90).Draw(t, "windows") {
			if rapid.IntRange(0, 3).Draw(t, "there") > 0 {
				total := rapid.Int64Range(0, 5).Draw(t, "total")
				canary = append(canary, window(release.Canary, n, span, total, func(w *release.Window) { w.Transfers = min(total, int64(n%3)) }))
			}
		}
		if len(canary) == 0 {
			return
		}
		m, times := meterOf(l, release.Transfers), timesOf(canary, nil, span)
		points := m.series(canary, times, Points, nine.Add(1000*time.Hour))
		for i := range points {
			at := times.From.Add(time.Duration(i) * span)
			var sum, of int64
			for _, w := range canary {
				if w.T.After(at.Add(-l.FastSpan)) && !w.T.After(at) {
					sum, of = sum+w.Transfers, of+w.Total
				}
			}
			own := slices.IndexFunc(canary, func(w release.Window) bool { return w.T.Equal(at) && w.Total > 0 })
			want := Figure{}
			if own >= 0 {
				want = Known(float64(sum) / float64(of))
			}
			if points[i] != want {
				t.Fatalf("point %d is %+v, want %+v", i, points[i], want)
			}
		}
	})
}
