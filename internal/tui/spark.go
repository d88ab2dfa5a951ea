package tui

import (
	"math"
	"strings"

	"github.com/canaryctl/canaryctl/internal/watch"
)

// spread lays points out over columns, the newest at the right: each point has
// so many columns, of which it stands in the last; where there are more points
// than columns, each column has an equal share of them.
type spread struct{ points, columns, each int }

// share returns the points of a column, from the first to before the last.
func (s spread) share(column int) (from, to int) {
	if s.points > s.columns {
		return column * s.points / s.columns, (column + 1) * s.points / s.columns
	}
	back := s.columns - 1 - column
	if back%s.each != 0 || back/s.each >= s.points {
		return 0, 0
	}
	from = s.points - 1 - back/s.each
	return from, from + 1
}

// over returns what a series says in each column, in the words of one: a worst
// point, or a mean.
func (s spread) over(series []watch.Figure, one func([]watch.Figure) watch.Figure) []watch.Figure {
	out := make([]watch.Figure, s.columns)
	for column := range out {
		from, to := s.share(column)
		from, to = min(from, len(series)), min(to, len(series))
		out[column] = one(series[from:to])
	}
	return out
}

// worstOf returns which point is the closest to failing: the highest, or where
// low the lowest. None is known where none of them is.
func worstOf(low bool) func([]watch.Figure) watch.Figure {
	return func(points []watch.Figure) (worst watch.Figure) {
		for _, p := range points {
			switch {
			case !known(p):
			case !worst.Known, low && p.Value < worst.Value, !low && p.Value > worst.Value:
				worst = p
			}
		}
		return worst
	}
}

// extremes returns the least and the greatest of the points that are known and
// finite; ok is false where there is none.
func extremes(series ...[]watch.Figure) (least, greatest float64, ok bool) {
	least, greatest = math.Inf(1), math.Inf(-1)
	for _, points := range series {
		for _, p := range points {
			if known(p) && !math.IsInf(p.Value, 0) {
				least, greatest = min(least, p.Value), max(greatest, p.Value)
				ok = true
			}
		}
	}
	return least, greatest, ok
}

// past reports whether a point alone is at its limit or beyond.
func past(sig *watch.Signal, p watch.Figure) bool {
	if !known(p) || !known(sig.Line) {
		return false
	}
	if sig.PointLow {
		return p.Value <= sig.Line.Value
	}
	return p.Value >= sig.Line.Value
}

// portion is how far v is on the way from one value to another, from 0 to 1; 0
// where there is no way.
func portion(v, from, to float64) float64 {
	way := to/2 - from/2 // halves: the difference of two numbers may be none
	if way == 0 || math.IsNaN(way) {
		return 0
	}
	part := (v/2 - from/2) / way
	if math.IsNaN(part) {
		return 0
	}
	return min(max(part, 0), 1)
}

// spark draws the canary's points in exactly width columns, the newest at the
// right, several points in a column as the worst of them. A missing window is a
// blank column, never the lowest mark.
//
// The marks run from the reference (what stands beside the value, else zero) to
// the limit, so that a flat line far from its limit looks flat and far. The mark
// at the end is kept for points at the limit or past it: the highest, or the
// lowest of a signal that fails when it is low, whose marks run from the limit to
// the reference. Without a limit they run from the least to the greatest point,
// and that mark is not used.
func spark(th *Theme, sig *watch.Signal, width int) string {
	if width <= 0 {
		return ""
	}
	points := spread{points: len(sig.Canary), columns: width, each: 1}.over(sig.Canary, worstOf(sig.PointLow))
	safeEnd, failing := sparkScale(sig)
	var b strings.Builder
	for start := 0; start < width; {
		bad := past(sig, points[start])
		var run strings.Builder
		end := start
		for ; end < width && past(sig, points[end]) == bad; end++ {
			run.WriteString(sparkMark(th, sig, points[end], safeEnd, failing))
		}
		if style := th.Canary; bad {
			b.WriteString(th.Bad.Render(run.String()))
		} else {
			b.WriteString(style.Render(run.String()))
		}
		start = end
	}
	return b.String()
}

// sparkMark is the mark of a column. Level 0 is the safe end, the last level is
// past the limit.
func sparkMark(th *Theme, sig *watch.Signal, p watch.Figure, safeEnd, failing float64) string {
	if !known(p) {
		return " "
	}
	last := len(th.Glyphs.Spark) - 1
	level := last
	if !past(sig, p) {
		level = min(int(portion(p.Value, safeEnd, failing)*float64(last)), last-1)
	}
	if sig.PointLow {
		level = last - level
	}
	return string(th.Glyphs.Spark[level])
}

// sparkScale returns the two ends of the marks.
func sparkScale(sig *watch.Signal) (safeEnd, failing float64) {
	least, greatest, _ := extremes(sig.Canary)
	if sig.PointLow {
		least, greatest = greatest, least
	}
	if !known(sig.Line) {
		return least, greatest
	}
	limit := sig.Line.Value
	safer := func(v float64) bool { return sig.PointLow && v > limit || !sig.PointLow && v < limit }
	switch {
	case known(sig.Beside) && sig.Unit == sig.PointUnit && sig.Unit != watch.Count && safer(sig.Beside.Value):
		return sig.Beside.Value, limit
	case !sig.PointLow && limit > 0:
		return 0, limit
	default:
		return least, limit
	}
}
