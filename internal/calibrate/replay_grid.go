package calibrate

import (
	"slices"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// solveSums are the sums over the slow span that a breaker forms which has
// nothing but a fixed drop of the solve rate, at each window of a stretch: the
// same for all thresholds, so that to try one is to compare. After a trip the
// breaker begins anew, and its spans with it: where the span of one that has seen
// all reaches further back, that of the new one begins with its first window.
// Until then its sums are its own, after that they are those of all.
//
// A test holds the trips against those of the breaker itself.
type solveSums struct {
	tick       []int32    // of each window with requests, its place in the stretch
	start      []int64    // unix nanoseconds
	sums       []solveSum // of the windows before each, and at the end of all
	spans      []slowSpan // at each window
	minSamples int64      // of the limits that the spans were laid for
	floor      release.Ratio
	below      []int32 // the windows at which a breaker that has seen all is at the floor or below
}

// solveSum is a running total.
type solveSum struct{ requests, judged, solved int64 }

// slowSpan holds the windows from..to-1.
type slowSpan struct{ from, to int32 }

// read takes the windows of a stretch; those without a span are gaps.
func (s *solveSums) read(ws []release.Window) {
	tick, start := slices.Grow(s.tick[:0], len(ws)), slices.Grow(s.start[:0], len(ws))
	sums := slices.Grow(s.sums[:0], len(ws)+1)
	var sum solveSum
	sums = append(sums, sum)
	for i := range ws {
		w := &ws[i]
		if w.Span == 0 || w.Total <= 0 {
			continue
		}
		sum.requests += w.Total
		if w.Known&release.HasSolved != 0 {
			sum.judged, sum.solved = sum.judged+w.Judged, sum.solved+w.Solved
		}
		tick, start, sums = append(tick, int32(i)), append(start, w.T.UnixNano()), append(sums, sum)
	}
	s.tick, s.start, s.sums = tick, start, sums
}

// lay finds the slow span at each window. It reaches back as the breaker's does:
// past SlowSpan while it holds fewer than MinSamples, up to SlowSpanMax.
func (s *solveSums) lay(l *breaker.Limits) {
	s.minSamples, s.floor = l.MinSamples, l.SolveFloor
	start, sums := s.start, s.sums
	spans, below := slices.Grow(s.spans[:0], len(start)), slices.Grow(s.below[:0], len(start))
	from, to := 0, 0
	for i, now := range start {
		edge := now - int64(l.LabelLag)
		for to <= i && start[to] <= edge {
			to++
		}
		near, far := edge-int64(l.SlowSpan), edge-int64(max(l.SlowSpan, l.SlowSpanMax))
		for from < to && start[from] <= near && (start[from] <= far || sums[to].judged-sums[from+1].judged >= l.MinSamples) {
			from++
		}
		spans = append(spans, slowSpan{int32(from), int32(to)})
		if s.trips(from, to) {
			below = append(below, int32(i))
		}
	}
	s.spans, s.below = spans, below
}

// lower goes on to a lower floor: the windows at or below it are some of those
// that were at or below the last.
func (s *solveSums) lower(floor release.Ratio) {
	s.floor = floor
	s.below = slices.DeleteFunc(s.below, func(i int32) bool { return !s.trips(int(s.spans[i].from), int(s.spans[i].to)) })
}

// trips reports whether a span trips.
func (s *solveSums) trips(from, to int) bool {
	a, b := &s.sums[from], &s.sums[to]
	judged := b.judged - a.judged
	return judged >= s.minSamples && judged > 0 && s.floor.Compare(b.solved-a.solved, judged) <= 0
}

// trip returns the first window from one on at which a breaker that begins with
// that trips, or as many as there are.
func (s *solveSums) trip(begin int) int {
	i := begin
	for ; i < len(s.spans) && int(s.spans[i].from) < begin; i++ {
		if s.trips(begin, max(int(s.spans[i].to), begin)) {
			return i
		}
	}
	if at, _ := slices.BinarySearch(s.below, int32(i)); at < len(s.below) {
		return int(s.below[at])
	}
	return len(s.spans)
}

// falseTrips is [pass.falseTrips].
func (s *solveSums) falseTrips(rest int) (trips int64) {
	for i := s.trip(0); i < len(s.spans); i = s.trip(s.after(i, rest)) {
		trips++
	}
	return trips
}

// after returns the first window later than so many ticks after one.
func (s *solveSums) after(i, rest int) int {
	next, _ := slices.BinarySearch(s.tick[i+1:], s.tick[i]+int32(rest)+1)
	return i + 1 + next
}

// detect is [pass.detect].
func (s *solveSums) detect(from int) (run dropRun, before bool) {
	run.tried = true
	faulty, _ := slices.BinarySearch(s.tick, int32(from))
	i := s.trip(0)
	for ; i < faulty; i = s.trip(i + 1) {
		before = true
	}
	end := len(s.spans)
	if i < end {
		run.found, run.ticks, end = true, int(s.tick[i])-from+1, i+1
	}
	run.exposure = s.sums[end].requests - s.sums[min(faulty, end)].requests
	return run, before
}
