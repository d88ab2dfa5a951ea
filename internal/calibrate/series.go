package calibrate

import (
	"math"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// series is the outcomes of whole windows of one span, oldest first.
type series struct {
	span     time.Duration
	t        []time.Time
	ps       []stats.Proportion
	adjacent []bool // window i begins where window i-1 ends
}

func (s *series) add(t time.Time, p stats.Proportion) {
	n := len(s.t)
	s.adjacent = append(s.adjacent, n > 0 && s.t[n-1].Add(s.span).Equal(t))
	s.t, s.ps = append(s.t, t), append(s.ps, p)
}

func (s *series) rates() []float64 {
	rates := make([]float64, len(s.ps))
	for i, p := range s.ps {
		rates[i] = p.Rate()
	}
	return rates
}

// medianN returns how many requests were judged in the middle window.
func (s *series) medianN() int64 {
	ns := make([]float64, len(s.ps))
	for i, p := range s.ps {
		ns[i] = float64(p.N)
	}
	if len(ns) == 0 {
		return 0
	}
	return int64(stats.Median(ns))
}

// expected returns how many of the rarer outcome the middle window is expected
// to have.
func (s *series) expected() float64 {
	p := stats.Pool(s.ps).Rate()
	return float64(s.medianN()) * math.Min(p, 1-p)
}

// without returns the windows that touch none of the spans.
func (s *series) without(spans []Gap) *series {
	if len(spans) == 0 {
		return s
	}
	out := &series{span: s.span}
	for i, t := range s.t {
		if !overlaps(spans, t, t.Add(s.span)) {
			out.add(t, s.ps[i])
		}
	}
	return out
}

// counted returns the series of a count in the whole buckets of a span: X of
// the count among N requests. Of records a bucket is whole whatever it holds: a
// minute without any is a quiet one.
func counted(windows []release.Window, span time.Duration, records bool, has release.Figures, of func(*release.Window) int64) *series {
	s := &series{span: span}
	var sum stats.Proportion
	var from time.Time
	var covered time.Duration
	flush := func() {
		if sum.N > 0 && (records || covered == span) {
			s.add(from, sum)
		}
		sum, covered = stats.Proportion{}, 0
	}
	for i := range windows {
		w := &windows[i]
		if !w.Has(has) {
			continue
		}
		if start := w.T.Truncate(span); covered == 0 || !start.Equal(from) {
			flush()
			from = start
		}
		sum.X += of(w)
		sum.N += w.Total
		covered += w.Span
	}
	flush()
	return s
}

// without returns the windows that touch none of the spans.
func without(windows []release.Window, spans []Gap) []release.Window {
	if len(spans) == 0 {
		return windows
	}
	var kept []release.Window
	for i := range windows {
		if w := &windows[i]; !overlaps(spans, w.T, w.End()) {
			kept = append(kept, *w)
		}
	}
	return kept
}

// overlaps reports whether [from, to) has a moment in one of the spans.
func overlaps(spans []Gap, from, to time.Time) bool {
	for _, s := range spans {
		if s.From.Before(to) && from.Before(s.To) {
			return true
		}
	}
	return false
}
