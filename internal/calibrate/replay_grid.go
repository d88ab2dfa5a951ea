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
	tick           []int32 // of each window with requests, its place in the stretch
	start          []int64 // unix nanoseconds
	requests       []int64 // of the windows before each, and at the end of all
	judged, solved []int64 // likewise
	from, to       []int32 // the slow span at each window holds the windows from..to-1
	minSamples     int64   // of the limits that the span was laid for
	floor          release.Ratio
	below          []int32 // the windows at which a breaker that has seen all is at the floor or below
}

// read takes the windows of a stretch; those without a span are gaps.
func (s *solveSums) read(ws []release.Window) {
	s.tick, s.start = s.tick[:0], s.start[:0]
	s.requests, s.judged, s.solved = append(s.requests[:0], 0), append(s.judged[:0], 0), append(s.solved[:0], 0)
	var requests, judged, solved int64
	for i := range ws {
		w := &ws[i]
		if w.Span == 0 || w.Total <= 0 {
			continue
		}
		requests += w.Total
		if w.Has(release.HasSolved) {
			judged, solved = judged+w.Judged, solved+w.Solved
		}
		s.tick, s.start = append(s.tick, int32(i)), append(s.start, w.T.UnixNano())
		s.requests, s.judged, s.solved = append(s.requests, requests), append(s.judged, judged), append(s.solved, solved)
	}
}

// lay finds the slow span at each window. It reaches back as the breaker's does:
// past SlowSpan while it holds fewer than MinSamples, up to SlowSpanMax.
func (s *solveSums) lay(l *breaker.Limits) {
	s.minSamples, s.floor = l.MinSamples, l.SolveFloor
	s.from, s.to, s.below = s.from[:0], s.to[:0], s.below[:0]
	from, to := 0, 0
	for i, now := range s.start {
		edge := now - int64(l.LabelLag)
		for to <= i && s.start[to] <= edge {
			to++
		}
		near, far := edge-int64(l.SlowSpan), edge-int64(max(l.SlowSpan, l.SlowSpanMax))
		for from < to && s.start[from] <= near && (s.start[from] <= far || s.judged[to]-s.judged[from+1] >= l.MinSamples) {
			from++
		}
		s.from, s.to = append(s.from, int32(from)), append(s.to, int32(to))
		if s.trips(from, to) {
			s.below = append(s.below, int32(i))
		}
	}
}

// lower goes on to a lower floor: the windows at or below it are some of those
// that were at or below the last.
func (s *solveSums) lower(floor release.Ratio) {
	s.floor = floor
	s.below = slices.DeleteFunc(s.below, func(i int32) bool { return !s.trips(int(s.from[i]), int(s.to[i])) })
}

// trips reports whether a span trips.
func (s *solveSums) trips(from, to int) bool {
	judged := s.judged[to] - s.judged[from]
	return judged >= s.minSamples && judged > 0 && s.floor.Compare(s.solved[to]-s.solved[from], judged) <= 0
}

// trip returns the first window from one on at which a breaker that begins with
// that trips, or as many as there are.
func (s *solveSums) trip(begin int) int {
	i := begin
	for ; i < len(s.from) && int(s.from[i]) < begin; i++ {
		if s.trips(begin, max(int(s.to[i]), begin)) {
			return i
		}
	}
	if at, _ := slices.BinarySearch(s.below, int32(i)); at < len(s.below) {
		return int(s.below[at])
	}
	return len(s.from)
}

// falseTrips is [pass.falseTrips].
func (s *solveSums) falseTrips(rest int) (trips int64) {
	for i := s.trip(0); i < len(s.from); i = s.trip(s.after(i, rest)) {
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
	end := len(s.from)
	if i < end {
		run.found, run.ticks, end = true, int(s.tick[i])-from+1, i+1
	}
	run.exposure = s.requests[end] - s.requests[min(faulty, end)]
	return run, before
}
