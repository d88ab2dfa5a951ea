package breaker

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// sample is what a window leaves behind in the spans. What it counted is the
// difference between what stands before it and before the next: so the sum over
// any span is one subtraction, and nothing is done for a window that leaves one.
type sample struct {
	T      int64 // unix nanoseconds
	Total  int64
	known  release.Figures // of violations, transfers and slow requests
	before totals
	_      [16]byte // to a power of two: an index into the ring is a shift
}

// totals are running totals since the ring began. They may wrap around; the
// differences between two of them do not mind.
type totals struct {
	violationsOf, violations int64 // requests with a known count of violations, and the count
	transfersOf, transfers   int64
	slowOf, slow             int64 // of latency: requests above the baseline's p99
	SolveCounts
}

// rare are the figures that most sources do not have. Until the first window
// that has one their totals are all 0, and left alone.
const rare = release.HasSlow | release.HasControl | release.StreamingFigures

// spans is a ring of the windows that may still count, and where the spans
// begin in it. Sequence numbers only grow; a sample stands at its number modulo
// the ring's length, which is a power of two. The place after the newest sample
// holds the totals of all.
type spans struct {
	ring    []sample
	lo, hi  int64           // samples lo..hi-1 are kept
	seen    release.Figures // all that any sample knew
	fast    int64           // the fast span holds fast..hi-1
	slow    int64           // the slow span holds slow..matured-1
	matured int64
	probed  int64 // HALF_OPEN: samples before it have been read as probes
	cusum   cusum
	sums    sums // the limits that the spans were laid for
	flow    flow // streaming and infrastructure
}

// sums are the limits that decide which samples a span holds.
type sums struct {
	fast, slow, slowMax, lag time.Duration
	minSamples               int64
}

// are reports whether the spans are those of the limits.
func (k *sums) are(l *Limits) bool {
	return k.fast == l.FastSpan && k.slow == l.SlowSpan && k.slowMax == l.SlowSpanMax && k.lag == l.LabelLag && k.minSamples == l.MinSamples
}

func sumsOf(l *Limits) sums {
	return sums{fast: l.FastSpan, slow: l.SlowSpan, slowMax: l.SlowSpanMax, lag: l.LabelLag, minSamples: l.MinSamples}
}

func (s *spans) at(seq int64) *sample { return &s.ring[seq&int64(len(s.ring)-1)] }

// between returns what the samples from..to-1 counted.
func (s *spans) between(from, to int64) totals {
	a, b := &s.at(from).before, &s.at(to).before
	return totals{
		violationsOf: b.violationsOf - a.violationsOf, violations: b.violations - a.violations,
		transfersOf: b.transfersOf - a.transfersOf, transfers: b.transfers - a.transfers,
		slowOf: b.slowOf - a.slowOf, slow: b.slow - a.slow,
		SolveCounts: s.solved(from, to),
	}
}

// solved returns what the samples from..to-1 solved.
func (s *spans) solved(from, to int64) SolveCounts {
	a, b := &s.at(from).before, &s.at(to).before
	return SolveCounts{
		Judged: b.Judged - a.Judged, Solved: b.Solved - a.Solved,
		Controlled: b.Controlled - a.Controlled, ControlJudged: b.ControlJudged - a.ControlJudged, ControlSolved: b.ControlSolved - a.ControlSolved,
	}
}

// push keeps a window, whose start is now, as the newest sample.
func (s *spans) push(w *release.Window, now int64) {
	if s.hi-s.lo >= int64(len(s.ring)-1) {
		s.grow()
	}
	ring, mask, hi := s.ring, int64(len(s.ring)-1), s.hi
	x, next := &ring[hi&mask], &ring[(hi+1)&mask]
	s.hi = hi + 1
	total, known := w.Total, w.Known
	x.T, x.Total, x.known = now, total, known
	a, b := &x.before, &next.before
	of, n := a.violationsOf, a.violations
	if known&release.HasViolations != 0 {
		of, n = of+total, n+w.Violations
	}
	b.violationsOf, b.violations = of, n
	of, n = a.transfersOf, a.transfers
	if known&release.HasTransfers != 0 {
		of, n = of+total, n+w.Transfers
	}
	b.transfersOf, b.transfers = of, n
	of, n = a.Judged, a.Solved
	if known&release.HasSolved != 0 {
		of, n = of+w.Judged, n+w.Solved
	}
	b.Judged, b.Solved = of, n
	if s.seen |= known; s.seen&rare != 0 {
		s.pushRare(a, b, w)
	}
}

// pushRare forms the totals c of the rare figures after the newest sample from
// those before it.
func (s *spans) pushRare(before, c *totals, w *release.Window) {
	const control = release.HasSolved | release.HasControl
	c.slowOf, c.slow = before.slowOf, before.slow
	if w.Has(release.HasSlow) {
		c.slowOf, c.slow = c.slowOf+w.Total, c.slow+w.Slow
	}
	c.Controlled, c.ControlJudged, c.ControlSolved = before.Controlled, before.ControlJudged, before.ControlSolved
	if w.Has(control) {
		c.Controlled, c.ControlJudged, c.ControlSolved = c.Controlled+w.Judged, c.ControlJudged+w.ControlJudged, c.ControlSolved+w.ControlSolved
	}
	if s.seen&release.StreamingFigures != 0 {
		s.pushFlow(w)
	}
}

// keep takes a sample with its counts as the newest.
func (s *spans) keep(x sample, counts *totals) {
	if s.hi-s.lo >= int64(len(s.ring)-1) {
		s.grow()
	}
	s.seen |= x.known
	x.before = s.at(s.hi).before
	*s.at(s.hi) = x
	s.hi++
	after := &s.at(s.hi).before
	*after = x.before
	after.violationsOf, after.violations = after.violationsOf+counts.violationsOf, after.violations+counts.violations
	after.transfersOf, after.transfers = after.transfersOf+counts.transfersOf, after.transfers+counts.transfers
	after.slowOf, after.slow = after.slowOf+counts.slowOf, after.slow+counts.slow
	after.SolveCounts.Add(&counts.SolveCounts)
}

// relabel changes what a sample solved, and with it all totals after it.
func (s *spans) relabel(seq int64, to SolveCounts) {
	was := s.solved(seq, seq+1)
	s.seen |= release.HasControl
	for seq++; seq <= s.hi; seq++ {
		c := &s.at(seq).before.SolveCounts
		c.remove(&was)
		c.Add(&to)
	}
}

func (s *spans) grow() {
	bigger := make([]sample, max(64, 2*len(s.ring)))
	if s.ring == nil {
		s.ring = bigger
		return
	}
	for seq := s.lo; seq <= s.hi; seq++ {
		bigger[seq&int64(len(bigger)-1)] = *s.at(seq)
	}
	s.ring = bigger
	s.growFlow()
}

// slide moves both spans up to now and forgets what is out of reach and, where
// there is a cumulative sum, folded: it takes the windows of a whole probe round
// once that has passed. A probe that is out of reach is old enough to be read in
// the same step, and its place in the ring is not taken before.
//
// The slow span begins after the last window that is old enough and not needed:
// older than SlowSpan with MinSamples judged after it, or older than SlowSpanMax.
// Both edges only move forward, for a window's judged requests are final once
// it is in the span.
func (s *spans) slide(l *Limits, now int64) {
	if !s.sums.are(l) {
		s.lay(l)
	}
	ring, mask, hi := s.ring, int64(len(s.ring)-1), s.hi
	edge, fast := now-int64(l.FastSpan), s.fast
	for fast < hi && ring[fast&mask].T <= edge {
		fast++
	}
	s.fast = fast
	edge = now - int64(l.LabelLag)
	if l.LabelLag == 0 {
		s.matured = hi
	} else {
		s.mature(edge)
	}
	near, slow := edge-int64(l.SlowSpan), s.slow
	for slow < s.matured && ring[slow&mask].T <= near {
		if l.SlowSpanMax > l.SlowSpan && ring[slow&mask].T > edge-int64(l.SlowSpanMax) && s.judged(slow+1) < l.MinSamples {
			break
		}
		slow++
	}
	s.slow = slow
	needed, keep := min(fast, slow), l.Keep
	if s.flow.ring != nil || s.cusum.on {
		needed = s.neededBeside(l, now, needed)
	}
	if keep == 0 {
		keep = l.Reach()
	}
	if needed == slow && keep <= l.LabelLag+l.SlowSpan { // what the slow span has left is not kept longer
		s.lo = needed
		return
	}
	edge, lo := now-int64(keep), s.lo
	for lo < needed && ring[lo&mask].T <= edge {
		lo++
	}
	s.lo = lo
}

// mature takes the windows up to an instant into the slow span.
func (s *spans) mature(until int64) {
	for s.matured < s.hi && s.at(s.matured).T <= until {
		s.matured++
	}
}

// neededBeside moves the flow's spans up to now and returns the oldest sample
// that they, a cumulative sum or the other spans need.
func (s *spans) neededBeside(l *Limits, now, needed int64) int64 {
	if s.flow.ring != nil {
		needed = s.slideFlow(l, now, needed)
	}
	if s.cusum.on {
		needed = min(needed, s.cusum.next)
	}
	return needed
}

// judged is how many judged requests the slow span would hold from a sample on.
func (s *spans) judged(from int64) int64 {
	return s.at(s.matured).before.Judged - s.at(from).before.Judged
}

// slowReach is how long the slow span is at window w: SlowSpan, or as far as
// it reaches back for enough judged requests.
func (s *spans) slowReach(l *Limits, w *release.Window) time.Duration {
	back := time.Duration(w.T.UnixNano()-s.at(s.slow).T) - l.LabelLag
	if back < l.SlowSpan {
		return l.SlowSpan
	}
	return min(back+w.Span, l.SlowSpanMax)
}

// lay lets all spans begin with the oldest sample: after a change of limits, a
// drop of old evidence, or a reading of the state. The next slide moves them.
func (s *spans) lay(l *Limits) {
	s.sums = sumsOf(l)
	s.fast, s.slow, s.matured = s.lo, s.lo, s.lo
	s.flow.lay(s.lo)
}

// drop forgets all samples before t.
func (s *spans) drop(l *Limits, t int64) {
	for s.lo < s.hi && s.at(s.lo).T < t {
		s.lo++
	}
	s.probed = max(s.probed, s.lo)
	s.lay(l)
}
