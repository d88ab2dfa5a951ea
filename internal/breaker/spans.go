package breaker

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// sample is what a window leaves behind in the spans. What it counted is the
// difference between what stands before it and before the next: so the sum over
// any span is one subtraction, and nothing is done for a window that leaves one.
// It is one line of a processor's cache, and a power of two: an index into the
// ring is a shift.
type sample struct {
	T      int64 // unix nanoseconds
	before totals
	known  release.Figures // which figures of the window are known
	_      [8]byte
}

// totals are running totals since the ring began. They may wrap around; the
// differences between two of them do not mind.
type totals struct {
	requests, violations, transfers, judged, solved int64
}

// rareTotals are those of what most windows do not have, or do not lack.
type rareTotals struct {
	unviolated, untransferred                int64 // requests of windows whose violations, or transfers, are not known
	slowOf, slow                             int64 // of latency: requests, and those above the baseline's p99
	controlled, controlJudged, controlSolved int64 // as in [SolveCounts]
	_                                        [8]byte
}

// usual are the figures that nearly all sources have, and rare those that most
// do not; of streaming a flow takes care.
const (
	usual = release.HasSolved | release.HasViolations | release.HasTransfers
	rare  = release.HasSlow | release.HasControl
)

// spans is a ring of the windows that may still count, and where the spans
// begin in it. Sequence numbers only grow; a sample stands at its number modulo
// the ring's length, which is a power of two. The place after the newest sample
// holds the totals of all.
type spans struct {
	ring    []sample
	rare    []rareTotals // before each sample, parallel to ring; nil: all 0, for there was no window with a rare figure or without a usual one
	lo, hi  int64        // samples lo..hi-1 are kept
	fast    int64        // the fast span holds fast..hi-1
	slow    int64        // the slow span holds slow..matured-1
	matured int64
	probed  int64 // HALF_OPEN: samples before it have been read as probes
	cusum   cusum
	sums    sums // the limits that the spans were laid for
	flow    flow // streaming and infrastructure

	plain bool          // isPlain of the limits that they were moved under last
	kept  time.Duration // the Keep of those
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

// rareAt returns the rare totals before a sample.
func (s *spans) rareAt(seq int64) *rareTotals {
	if s.rare == nil {
		return &noneRare
	}
	return &s.rare[seq&int64(len(s.rare)-1)]
}

var noneRare rareTotals

// solved returns what the samples from..to-1 solved.
func (s *spans) solved(from, to int64) SolveCounts {
	a, b := &s.at(from).before, &s.at(to).before
	ra, rb := s.rareAt(from), s.rareAt(to)
	return SolveCounts{
		Judged: b.judged - a.judged, Solved: b.solved - a.solved,
		Controlled: rb.controlled - ra.controlled, ControlJudged: rb.controlJudged - ra.controlJudged, ControlSolved: rb.controlSolved - ra.controlSolved,
	}
}

// violated returns how many violations the samples from..to-1 had, of how many
// requests.
func (s *spans) violated(from, to int64) (n, of int64) {
	a, b := &s.at(from).before, &s.at(to).before
	return b.violations - a.violations, b.requests - a.requests - (s.rareAt(to).unviolated - s.rareAt(from).unviolated)
}

// transferred returns how many transfers they had.
func (s *spans) transferred(from, to int64) (n, of int64) {
	a, b := &s.at(from).before, &s.at(to).before
	return b.transfers - a.transfers, b.requests - a.requests - (s.rareAt(to).untransferred - s.rareAt(from).untransferred)
}

// slowed returns how many slow requests they had.
func (s *spans) slowed(from, to int64) (n, of int64) {
	a, b := s.rareAt(from), s.rareAt(to)
	return b.slow - a.slow, b.slowOf - a.slowOf
}

// push keeps a window, whose start is now, as the newest sample.
func (s *spans) push(w *release.Window, now int64) {
	if s.hi-s.lo >= int64(len(s.ring)-1) {
		s.grow()
	}
	ring, mask, hi := s.ring, int64(len(s.ring)-1), s.hi
	x, b, known := &ring[hi&mask], &ring[(hi+1)&mask].before, w.Known
	a := &x.before
	s.hi = hi + 1
	x.T, x.known = now, known
	b.requests = a.requests + w.Total
	violations, transfers, judged, solved := a.violations, a.transfers, a.judged, a.solved
	if known&release.HasViolations != 0 {
		violations += w.Violations
	}
	if known&release.HasTransfers != 0 {
		transfers += w.Transfers
	}
	if known&release.HasSolved != 0 {
		judged, solved = judged+w.Judged, solved+w.Solved
	}
	b.violations, b.transfers, b.judged, b.solved = violations, transfers, judged, solved
	if known&(usual|rare) != usual || s.rare != nil {
		s.pushRare(w)
	}
	if known&release.StreamingFigures != 0 || s.flow.ring != nil {
		s.pushFlow(w)
	}
}

// needRare lets there be rare totals.
func (s *spans) needRare() {
	if s.rare == nil {
		s.rare = make([]rareTotals, len(s.ring))
	}
}

// pushRare keeps what the newest sample has of the rare. The totals are copied
// one by one: a processor that reads several at once waits until all are written.
func (s *spans) pushRare(w *release.Window) {
	const control = release.HasSolved | release.HasControl
	s.needRare()
	a, b := s.rareAt(s.hi-1), s.rareAt(s.hi)
	unviolated, untransferred, slowOf, slow := a.unviolated, a.untransferred, a.slowOf, a.slow
	if w.Known&release.HasViolations == 0 {
		unviolated += w.Total
	}
	if w.Known&release.HasTransfers == 0 {
		untransferred += w.Total
	}
	if w.Known&release.HasSlow != 0 {
		slowOf, slow = slowOf+w.Total, slow+w.Slow
	}
	b.unviolated, b.untransferred, b.slowOf, b.slow = unviolated, untransferred, slowOf, slow
	controlled, judged, solved := a.controlled, a.controlJudged, a.controlSolved
	if w.Known&control == control {
		controlled, judged, solved = controlled+w.Judged, judged+w.ControlJudged, solved+w.ControlSolved
	}
	b.controlled, b.controlJudged, b.controlSolved = controlled, judged, solved
}

// relabel changes what a sample solved, and with it all totals after it.
func (s *spans) relabel(seq int64, to SolveCounts) {
	was := s.solved(seq, seq+1)
	if to.Controlled|to.ControlJudged|to.ControlSolved != 0 {
		s.needRare()
	}
	for seq++; seq <= s.hi; seq++ {
		c := &s.at(seq).before
		c.judged, c.solved = c.judged+to.Judged-was.Judged, c.solved+to.Solved-was.Solved
		if s.rare != nil {
			c := s.rareAt(seq)
			c.controlled += to.Controlled - was.Controlled
			c.controlJudged += to.ControlJudged - was.ControlJudged
			c.controlSolved += to.ControlSolved - was.ControlSolved
		}
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
	s.growRare()
	s.growFlow()
}

func (s *spans) growRare() {
	if s.rare == nil {
		return
	}
	bigger := make([]rareTotals, len(s.ring))
	for seq := s.lo; seq <= s.hi; seq++ {
		bigger[seq&int64(len(bigger)-1)] = *s.rareAt(seq)
	}
	s.rare = bigger
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
	s.plain, s.kept = s.isPlain(l), l.Keep
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

// isPlain reports whether the spans are what they usually are: the slow span
// reaches to the newest sample and as far back as anything is kept, so that lo is
// slow; the fast one is no longer, and there are no others.
func (s *spans) isPlain(l *Limits) bool {
	return l.SlowSpanMax <= l.SlowSpan && l.LabelLag == 0 && l.Keep <= l.SlowSpan && l.Keep > 0 &&
		l.FastSpan <= l.SlowSpan && l.FastSpan > 0 && s.flow.ring == nil && !s.cusum.on
}

// plainly reports whether plain spans are so under these limits, too, and begin
// where they say.
func (s *spans) plainly(l *Limits) bool {
	return s.sums.fast == l.FastSpan && s.sums.slow == l.SlowSpan && l.SlowSpanMax <= l.SlowSpan && l.LabelLag == 0 && s.kept == l.Keep && l.Judge == WindowJudge
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
	return s.at(s.matured).before.judged - s.at(from).before.judged
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
// drop of old evidence, or a reading of the state. The next slide moves them, and
// until then they are not plain.
func (s *spans) lay(l *Limits) {
	s.plain, s.sums = false, sumsOf(l)
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
