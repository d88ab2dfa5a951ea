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
		x := s.at(seq)
		j := sampleJSON{T: x.T, Total: s.at(seq+1).before.requests - x.before.requests, SolveCounts: s.solved(seq, seq+1)}
		if x.known&release.HasViolations != 0 {
			n, _ := s.violated(seq, seq+1)
			j.Violations = &n
		}
		if x.known&release.HasTransfers != 0 {
			n, _ := s.transferred(seq, seq+1)
			j.Transfers = &n
		}
		if x.known&release.HasSlow != 0 {
			n, _ := s.slowed(seq, seq+1)
			j.Slow = &n
		}
		if s.flow.ring != nil {
			j.Streaming = s.flowBetween(seq, seq+1)
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
	for i := range in.Windows {
		s.read(&in.Windows[i])
	}
	s.probed = int64(min(max(in.Probed, 0), len(in.Windows)))
	if in.Cusum != nil {
		s.cusum = cusum{cusumSum: in.Cusum.cusumSum, on: true, next: int64(min(max(in.Cusum.Folded, 0), len(in.Windows)))}
	}
	s.sums.lag = -1 // no limits have a negative lag: the next slide forms the sums anew
	return nil
}

// read keeps a written window as the newest sample.
func (s *spans) read(j *sampleJSON) {
	w := release.Window{Total: j.Total, Judged: j.Judged, Solved: j.Solved, Known: release.HasSolved}
	if j.Violations != nil {
		w.Violations, w.Known = *j.Violations, w.Known|release.HasViolations
	}
	if j.Transfers != nil {
		w.Transfers, w.Known = *j.Transfers, w.Known|release.HasTransfers
	}
	if j.Slow != nil {
		w.Slow, w.Known = *j.Slow, w.Known|release.HasSlow
	}
	s.push(&w, j.T)
	if c := &j.SolveCounts; c.Controlled|c.ControlJudged|c.ControlSolved != 0 {
		s.relabel(s.hi-1, *c)
	}
	s.readFlow(&j.Streaming)
}
