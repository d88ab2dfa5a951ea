package breaker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// State is all that the breaker remembers. The zero value is a CLOSED breaker
// that has seen nothing. It is data: it can be written as JSON, read back, and
// goes on as if nothing had happened.
type State struct {
	Phase      release.Phase
	Locked     bool
	Since      time.Time // when the present phase began; zero before the first transition
	Recoveries int64     // HALF_OPEN -> CLOSED since the release began
	Round      Round     // the probe round, while HALF_OPEN
	Hits       release.SignalSet
	// Hits are the signals that the last window found past their limit without
	// tripping, because they only observe or hold.

	spans spans
}

// Round is the progress of a probe round.
type Round struct {
	Done int64 `json:"done"` // probes finished
	Good int64 `json:"good"` // of them, with a solve rate at or above half_open_success_rate
	Pool Pool  `json:"pool"` // the windows of the probe that is still gathering requests

	First time.Time `json:"first,omitzero"` // start of the round's first window
}

// Pool is a probe in the making.
type Pool struct {
	Requests int64 `json:"requests"`
	Judged   int64 `json:"judged"`
	Solved   int64 `json:"solved"`
}

// sample is what a window leaves behind in the spans.
type sample struct {
	T     int64 // unix nanoseconds
	Total int64
	SolveCounts
	Violations, Transfers, Slow          int64
	hasViolations, hasTransfers, hasSlow bool
}

// counts are the running sums of a span.
type counts struct {
	first                    int64 // sequence number of the oldest sample in the span
	violationsOf, violations int64 // requests with a known count of violations, and the count
	transfersOf, transfers   int64
	slowOf, slow             int64 // of latency: requests above the baseline's p99
	SolveCounts
}

// spans is a ring of the windows that may still count, with the running sums
// of the fast and the slow span. Sequence numbers only grow; a sample stands at
// its number modulo the ring's length, which is a power of two.
type spans struct {
	ring    []sample
	lo, hi  int64 // samples lo..hi-1 are kept
	fast    counts
	slow    counts
	matured int64 // the slow span holds slow.first..matured-1
	probed  int64 // HALF_OPEN: samples before it have been read as probes
	cusum   cusum
	sums    sums // what the running sums stand for
	flow    flow // streaming and infrastructure
}

// sums are the limits that decide which samples a running sum holds.
type sums struct {
	fast, slow, slowMax, lag time.Duration
	minSamples               int64
}

func sumsOf(l *Limits) sums {
	return sums{fast: l.FastSpan, slow: l.SlowSpan, slowMax: l.SlowSpanMax, lag: l.LabelLag, minSamples: l.MinSamples}
}

func (s *spans) at(seq int64) *sample { return &s.ring[seq&int64(len(s.ring)-1)] }

func (s *spans) push(w *release.Window) {
	if int(s.hi-s.lo) == len(s.ring) {
		s.grow()
	}
	x := s.at(s.hi)
	s.hi++
	x.T = w.T.UnixNano()
	x.Total, x.SolveCounts = w.Total, SolveCountsOf(w)
	x.Violations, x.Transfers, x.Slow = w.Violations, w.Transfers, w.Slow
	x.hasViolations, x.hasTransfers, x.hasSlow = w.Has(release.HasViolations), w.Has(release.HasTransfers), w.Has(release.HasSlow)
	s.fast.add(x)
	s.pushFlow(w)
}

func (s *spans) grow() {
	bigger := make([]sample, max(64, 2*len(s.ring)))
	for seq := s.lo; seq < s.hi; seq++ {
		bigger[seq&int64(len(bigger)-1)] = *s.at(seq)
	}
	s.ring = bigger
	if s.flow.ring == nil {
		return
	}
	flow := make([]StreamCounts, len(bigger))
	for seq := s.lo; seq < s.hi; seq++ {
		flow[seq&int64(len(flow)-1)] = *s.flowAt(seq)
	}
	s.flow.ring = flow
}

func (c *counts) add(x *sample) {
	if x.hasViolations {
		c.violationsOf += x.Total
		c.violations += x.Violations
	}
	if x.hasTransfers {
		c.transfersOf += x.Total
		c.transfers += x.Transfers
	}
	if x.hasSlow {
		c.slowOf += x.Total
		c.slow += x.Slow
	}
}

func (c *counts) remove(x *sample) {
	if x.hasViolations {
		c.violationsOf -= x.Total
		c.violations -= x.Violations
	}
	if x.hasTransfers {
		c.transfersOf -= x.Total
		c.transfers -= x.Transfers
	}
	if x.hasSlow {
		c.slowOf -= x.Total
		c.slow -= x.Slow
	}
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
	if s.sums != sumsOf(l) {
		s.resum(l)
	}
	for s.fast.first < s.hi && s.at(s.fast.first).T <= now-int64(l.FastSpan) {
		s.fast.remove(s.at(s.fast.first))
		s.fast.first++
	}
	s.slideFlow(l, now)
	matured := now - int64(l.LabelLag)
	for s.matured < s.hi && s.at(s.matured).T <= matured {
		s.slow.Add(&s.at(s.matured).SolveCounts)
		s.matured++
	}
	near, far := matured-int64(l.SlowSpan), matured-int64(max(l.SlowSpan, l.SlowSpanMax))
	for s.slow.first < s.matured {
		x := s.at(s.slow.first)
		if x.T > near || x.T > far && s.slow.Judged-x.Judged < l.MinSamples {
			break
		}
		s.slow.SolveCounts.remove(&x.SolveCounts)
		s.slow.first++
	}
	keep, needed := max(l.Keep, l.Reach()), s.neededFlow(min(s.fast.first, s.slow.first))
	if s.cusum.on {
		needed = min(needed, s.cusum.next)
	}
	for s.lo < needed && s.at(s.lo).T <= now-int64(keep) {
		s.lo++
	}
}

// slowReach is how long the slow span is at window w: SlowSpan, or as far as
// it reaches back for enough judged requests.
func (s *spans) slowReach(l *Limits, w *release.Window) time.Duration {
	back := time.Duration(w.T.UnixNano()-s.at(s.slow.first).T) - l.LabelLag
	if back < l.SlowSpan {
		return l.SlowSpan
	}
	return min(back+w.Span, l.SlowSpanMax)
}

// resum forms the sums anew from the kept samples: after a change of spans,
// a drop of old evidence, or a reading of the state.
func (s *spans) resum(l *Limits) {
	s.sums = sumsOf(l)
	s.fast, s.slow = counts{first: s.lo}, counts{first: s.lo}
	s.matured = s.lo
	for seq := s.lo; seq < s.hi; seq++ {
		s.fast.add(s.at(seq))
	}
	s.resumFlow()
}

// drop forgets all samples before t.
func (s *spans) drop(l *Limits, t int64) {
	for s.lo < s.hi && s.at(s.lo).T < t {
		s.lo++
	}
	s.probed = max(s.probed, s.lo)
	s.resum(l)
}

// stateJSON is the written form of a State.
type stateJSON struct {
	Phase      release.Phase     `json:"phase"`
	Locked     bool              `json:"locked"`
	Since      time.Time         `json:"since,omitzero"`
	Recoveries int64             `json:"recoveries"`
	Round      Round             `json:"round"`
	Hits       release.SignalSet `json:"hits,omitempty"`
	Probed     int               `json:"probed,omitempty"` // how many of Windows have been read as probes
	Cusum      *cusumJSON        `json:"cusum,omitempty"`
	Windows    []sampleJSON      `json:"windows"`
}

// cusumJSON is the written form of a cumulative sum that is on.
type cusumJSON struct {
	cusumSum
	Folded int `json:"folded"` // how many of Windows have been folded
}

type sampleJSON struct {
	T     int64 `json:"t"`
	Total int64 `json:"total"`
	SolveCounts
	Violations *int64       `json:"violations"`
	Transfers  *int64       `json:"transfers"`
	Slow       *int64       `json:"slow,omitempty"`
	Streaming  StreamCounts `json:"streaming,omitzero"`
}

// MarshalJSON writes the state with the windows that may still count, oldest
// first. It is a method of the value, so that a copy is written whole too.
func (st State) MarshalJSON() ([]byte, error) {
	s := &st.spans
	out := stateJSON{
		Phase: st.Phase, Locked: st.Locked, Since: st.Since, Recoveries: st.Recoveries, Round: st.Round,
		Hits: st.Hits, Probed: int(max(s.probed-s.lo, 0)), Windows: []sampleJSON{},
	}
	if s.cusum.on {
		out.Cusum = &cusumJSON{cusumSum: s.cusum.cusumSum, Folded: int(max(s.cusum.next-s.lo, 0))}
	}
	for seq := s.lo; seq < s.hi; seq++ {
		x := *s.at(seq)
		j := sampleJSON{T: x.T, Total: x.Total, SolveCounts: x.SolveCounts}
		if x.hasViolations {
			j.Violations = &x.Violations
		}
		if x.hasTransfers {
			j.Transfers = &x.Transfers
		}
		if x.hasSlow {
			j.Slow = &x.Slow
		}
		if s.flow.ring != nil {
			j.Streaming = *s.flowAt(seq)
		}
		out.Windows = append(out.Windows, j)
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (st *State) UnmarshalJSON(b []byte) error {
	var in stateJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("breaker state: %w", err)
	}
	if !slices.IsSortedFunc(in.Windows, func(a, b sampleJSON) int { return cmp.Compare(a.T, b.T) }) {
		return fmt.Errorf("breaker state: windows are not in order of time")
	}
	*st = State{
		Phase: in.Phase, Locked: in.Locked, Since: in.Since, Recoveries: in.Recoveries, Round: in.Round,
		Hits: in.Hits,
	}
	s := &st.spans
	for _, j := range in.Windows {
		if int(s.hi) == len(s.ring) {
			s.grow()
		}
		x := s.at(s.hi)
		*x = sample{T: j.T, Total: j.Total, SolveCounts: j.SolveCounts}
		if j.Violations != nil {
			x.Violations, x.hasViolations = *j.Violations, true
		}
		if j.Transfers != nil {
			x.Transfers, x.hasTransfers = *j.Transfers, true
		}
		if j.Slow != nil {
			x.Slow, x.hasSlow = *j.Slow, true
		}
		s.hi++
		s.readFlow(&j.Streaming)
	}
	s.probed = int64(min(max(in.Probed, 0), len(in.Windows)))
	if in.Cusum != nil {
		s.cusum = cusum{cusumSum: in.Cusum.cusumSum, on: true, next: int64(min(max(in.Cusum.Folded, 0), len(in.Windows)))}
	}
	s.sums.lag = -1 // no limits have a negative lag: the next slide forms the sums anew
	return nil
}
