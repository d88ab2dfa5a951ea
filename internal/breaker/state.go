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
	T                                            int64 // unix nanoseconds
	Total, Judged, Solved, Violations, Transfers int64
	hasViolations, hasTransfers                  bool
}

// counts are the running sums of a span.
type counts struct {
	first                    int64 // sequence number of the oldest sample in the span
	violationsOf, violations int64 // requests with a known count of violations, and the count
	transfersOf, transfers   int64
	judged, solved           int64
}

// spans is a ring of the windows that may still count, with the running sums
// of the fast and the slow span. Sequence numbers only grow; a sample stands at
// its number modulo the ring's length, which is a power of two.
type spans struct {
	ring     []sample
	lo, hi   int64 // samples lo..hi-1 are kept
	fast     counts
	slow     counts
	matured  int64         // the slow span holds slow.first..matured-1
	probed   int64         // HALF_OPEN: samples before it have been read as probes
	fastSpan time.Duration // the spans that the sums stand for
	slowSpan time.Duration
	lag      time.Duration
}

func (s *spans) at(seq int64) *sample { return &s.ring[seq&int64(len(s.ring)-1)] }

func (s *spans) push(w *release.Window) {
	if int(s.hi-s.lo) == len(s.ring) {
		s.grow()
	}
	x := s.at(s.hi)
	s.hi++
	x.T = w.T.UnixNano()
	x.Total, x.Judged, x.Solved = w.Total, 0, 0
	if w.Has(release.HasSolved) {
		x.Judged, x.Solved = w.Judged, w.Solved
	}
	x.Violations, x.Transfers = w.Violations, w.Transfers
	x.hasViolations, x.hasTransfers = w.Has(release.HasViolations), w.Has(release.HasTransfers)
	s.fast.add(x)
}

func (s *spans) grow() {
	bigger := make([]sample, max(64, 2*len(s.ring)))
	for seq := s.lo; seq < s.hi; seq++ {
		bigger[seq&int64(len(bigger)-1)] = *s.at(seq)
	}
	s.ring = bigger
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
}

// slide moves both spans up to now and forgets what is out of reach. A probe
// that is out of reach is old enough to be read in the same step, and its
// place in the ring is not taken before.
func (s *spans) slide(l *Limits, now int64) {
	if s.fastSpan != l.FastSpan || s.slowSpan != l.SlowSpan || s.lag != l.LabelLag {
		s.resum(l)
	}
	for s.fast.first < s.hi && s.at(s.fast.first).T <= now-int64(l.FastSpan) {
		s.fast.remove(s.at(s.fast.first))
		s.fast.first++
	}
	for s.matured < s.hi && s.at(s.matured).T <= now-int64(l.LabelLag) {
		s.slow.judged += s.at(s.matured).Judged
		s.slow.solved += s.at(s.matured).Solved
		s.matured++
	}
	for s.slow.first < s.matured && s.at(s.slow.first).T <= now-int64(l.LabelLag+l.SlowSpan) {
		s.slow.judged -= s.at(s.slow.first).Judged
		s.slow.solved -= s.at(s.slow.first).Solved
		s.slow.first++
	}
	keep := max(l.Keep, l.Reach())
	for s.lo < min(s.fast.first, s.slow.first) && s.at(s.lo).T <= now-int64(keep) {
		s.lo++
	}
}

// resum forms the sums anew from the kept samples: after a change of spans,
// a drop of old evidence, or a reading of the state.
func (s *spans) resum(l *Limits) {
	s.fastSpan, s.slowSpan, s.lag = l.FastSpan, l.SlowSpan, l.LabelLag
	s.fast, s.slow = counts{first: s.lo}, counts{first: s.lo}
	s.matured = s.lo
	for seq := s.lo; seq < s.hi; seq++ {
		s.fast.add(s.at(seq))
	}
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
	Phase      release.Phase `json:"phase"`
	Locked     bool          `json:"locked"`
	Since      time.Time     `json:"since,omitzero"`
	Recoveries int64         `json:"recoveries"`
	Round      Round         `json:"round"`
	Hits       uint16        `json:"hits,omitempty"`
	Probed     int           `json:"probed,omitempty"` // how many of Windows have been read as probes
	Windows    []sampleJSON  `json:"windows"`
}

type sampleJSON struct {
	T          int64  `json:"t"`
	Total      int64  `json:"total"`
	Judged     int64  `json:"judged"`
	Solved     int64  `json:"solved"`
	Violations *int64 `json:"violations"`
	Transfers  *int64 `json:"transfers"`
}

// MarshalJSON writes the state with the windows that may still count, oldest
// first. It is a method of the value, so that a copy is written whole too.
func (st State) MarshalJSON() ([]byte, error) {
	s := &st.spans
	out := stateJSON{
		Phase: st.Phase, Locked: st.Locked, Since: st.Since, Recoveries: st.Recoveries, Round: st.Round,
		Hits: uint16(st.Hits), Probed: int(max(s.probed-s.lo, 0)), Windows: []sampleJSON{},
	}
	for seq := s.lo; seq < s.hi; seq++ {
		x := *s.at(seq)
		j := sampleJSON{T: x.T, Total: x.Total, Judged: x.Judged, Solved: x.Solved}
		if x.hasViolations {
			j.Violations = &x.Violations
		}
		if x.hasTransfers {
			j.Transfers = &x.Transfers
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
		Hits: release.SignalSet(in.Hits),
	}
	s := &st.spans
	for _, j := range in.Windows {
		if int(s.hi) == len(s.ring) {
			s.grow()
		}
		x := s.at(s.hi)
		*x = sample{T: j.T, Total: j.Total, Judged: j.Judged, Solved: j.Solved}
		if j.Violations != nil {
			x.Violations, x.hasViolations = *j.Violations, true
		}
		if j.Transfers != nil {
			x.Transfers, x.hasTransfers = *j.Transfers, true
		}
		s.hi++
	}
	s.probed = int64(min(max(in.Probed, 0), len(in.Windows)))
	s.lag = -1 // no limits have a negative lag: the next slide forms the sums anew
	return nil
}
