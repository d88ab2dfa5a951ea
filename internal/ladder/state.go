package ladder

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Stage is where a release stands as a whole.
type Stage uint8

// The stages. A breaker that is OPEN or HALF_OPEN interrupts Climbing and
// Completed without ending them.
const (
	NotStarted Stage = iota // or to be started anew: the next Decide writes the first step
	Climbing
	Completed
	// Failed: a gate failed. The weight is 0 and only a person starts another
	// attempt.
	Failed
	// RolledBack: a person rolled back. The weight is 0 until a person clears
	// it or another candidate starts.
	RolledBack
)

var stageNames = [...]string{"not_started", "climbing", "completed", "failed", "rolled_back"}

// String returns the stage's name in files and output.
func (s Stage) String() string { return nameOf(s, stageNames[:], "stage") }

// MarshalText implements [encoding.TextMarshaler].
func (s Stage) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *Stage) UnmarshalText(b []byte) error { return parseName(s, stageNames[:], b) }

// State is all that is remembered of a release between two calls of Decide:
// breaker, ladder and the last folded window are one state. The zero value is
// a release that has not started. It is data and can be written as JSON.
type State struct {
	Breaker breaker.State `json:"breaker"`

	Candidate string `json:"candidate"` // of the plan it was started with
	Digest    string `json:"digest"`    // of the configuration it runs under

	Stage   Stage `json:"stage"`
	Attempt int   `json:"attempt"` // 1 from the first start
	Step    int   `json:"step"`    // index into Plan.Steps

	Weight  release.Weight `json:"weight"`   // as last read back
	At      time.Time      `json:"at"`       // when the present step's weight was read back
	Serving time.Time      `json:"serving"`  // since when the canary has had a weight above 0; windows from before are no evidence
	CoolFor time.Time      `json:"cool_for"` // no probe before this
	Pending Pending        `json:"pending"`

	Seen time.Time     `json:"seen"` // start of the last folded window
	Span time.Duration `json:"span"` // its span

	Share    recentShare       `json:"share"` // what both arms served lately under the weight in force
	Gate     Tally             `json:"gate"`
	Unripe   []Tally           `json:"unripe,omitempty"` // windows of this step younger than the label lag, oldest first
	Covered  time.Duration     `json:"covered"`          // time at this step, in this attempt, with requests seen and not paused
	Latched  release.SignalSet `json:"latched"`          // signals that failed in this attempt
	Supplied release.SignalSet `json:"supplied"`         // optional signals that the source has supplied in this release

	Barred []string `json:"barred,omitempty"` // candidates that a person rolled back, before this one

	Paused    bool          `json:"paused"`
	PausedAt  time.Time     `json:"paused_at,omitzero"` // since when, while Paused
	PausedFor time.Duration `json:"paused_for"`         // time of this step spent paused
	Pauses    []Pausing     `json:"pauses,omitempty"`   // ended pauses whose windows may still come

	Approval *Approval `json:"approval,omitempty"`

	Adapt adaption `json:"adapt,omitzero"` // the weight's course within the step

	Stable  stableCost `json:"stable_cost"`
	CostRef float64    `json:"cost_ref"` // USD a request of stable before the last step; 0: unknown
}

// Locked reports whether only a person can let the release go on: after an
// escalated trip, a failed gate or a rollback by hand.
func (st *State) Locked() bool {
	return st.Breaker.Locked || st.Stage == Failed || st.Stage == RolledBack
}

// Pending is a write that Decide has asked for and that has not been read
// back.
type Pending struct {
	Move   release.Move   `json:"move"` // Hold: nothing is pending
	Weight release.Weight `json:"weight"`
	Why    Why            `json:"why"`
}

// rollback reports whether the pending write takes the weight to 0.
func (p *Pending) rollback() bool {
	return p.Move == release.RollBackMove || p.Move == release.Lock
}

// Pausing is a span of time in which the ladder's clock stood.
type Pausing struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Approval is a person's word for one step of one attempt under one
// configuration.
type Approval struct {
	Attempt int             `json:"attempt"`
	Step    int             `json:"step"`
	Digest  string          `json:"digest"`
	By      string          `json:"by"`
	At      time.Time       `json:"at"`
	Shown   release.Verdict `json:"shown"` // the overall verdict that the person saw
}

// Observed is a reading of the target's weight.
type Observed struct {
	Weight release.Weight
	At     time.Time // when the answer came
	Known  bool      // false: the target was not read
}

// Evidence is what a caller has gathered for one Decide.
type Evidence struct {
	Windows []release.Window // the canary's, oldest first; those already folded are skipped
	// Stable are stable's, oldest first: their cost is the reference at 100 %,
	// and with AgainstStable those in the span of a canary window are its control.
	Stable   []release.Window
	Observed Observed
	// SourceFailed: the source could not be read. It holds and never counts
	// against the canary.
	SourceFailed bool
	// Unasked: nobody looked at the traffic, as for a rollback by hand. A write
	// that was asked for is completed, and no release begins.
	Unasked bool
	// More: there are more windows than one call is shown, and the next is shown
	// the rest. These alone take no step forward.
	More bool
}

// Tally sums the windows that a gate judges.
type Tally struct {
	T        int64         `json:"t,omitempty"` // unix nanoseconds, of a single window
	Span     time.Duration `json:"span"`        // time with requests seen
	Requests int64         `json:"requests"`
	breaker.SolveCounts
	ViolationsOf int64   `json:"violations_of"` // requests with a known count of violations
	Violations   int64   `json:"violations"`
	TransfersOf  int64   `json:"transfers_of"`
	Transfers    int64   `json:"transfers"`
	CostOf       int64   `json:"cost_of"`
	Cost         float64 `json:"cost"` // sum of ratio x requests
	P99Of        int64   `json:"p99_of"`
	P99MS        float64 `json:"p99_ms"`            // sum of p99 x requests
	SlowOf       int64   `json:"slow_of,omitempty"` // requests with a known count of slow ones
	Slow         int64   `json:"slow,omitempty"`

	Streaming breaker.StreamCounts `json:"streaming,omitzero"` // of streaming and infrastructure, by signal
}

// tallyOf returns one window as a tally. cost_min_samples and p99_min_samples
// are about a window that may trip alone; the gate pools windows until there
// are min_samples_slow requests, so the small ones count here.
func tallyOf(w *release.Window) Tally {
	t := Tally{T: w.T.UnixNano(), Span: w.Span, Requests: w.Total, SolveCounts: breaker.SolveCountsOf(w), Streaming: breaker.StreamCountsOf(w)}
	if w.Has(release.HasViolations) {
		t.ViolationsOf, t.Violations = w.Total, w.Violations
	}
	if w.Has(release.HasTransfers) {
		t.TransfersOf, t.Transfers = w.Total, w.Transfers
	}
	if w.Has(release.HasCost) {
		t.CostOf, t.Cost = w.Total, w.Cost*float64(w.Total)
	}
	if w.Has(release.HasP99) {
		t.P99Of, t.P99MS = w.Total, w.P99MS*float64(w.Total)
	}
	if w.Has(release.HasSlow) {
		t.SlowOf, t.Slow = w.Total, w.Slow
	}
	return t
}

func (t *Tally) add(o *Tally) {
	t.Span += o.Span
	t.Requests += o.Requests
	t.SolveCounts.Add(&o.SolveCounts)
	t.ViolationsOf += o.ViolationsOf
	t.Violations += o.Violations
	t.TransfersOf += o.TransfersOf
	t.Transfers += o.Transfers
	t.CostOf += o.CostOf
	t.Cost += o.Cost
	t.P99Of += o.P99Of
	t.P99MS += o.P99MS
	t.SlowOf += o.SlowOf
	t.Slow += o.Slow
	t.Streaming.Add(&o.Streaming)
}

// control adds to a window of the canary what stable did in its span, as far as
// stable's solve rate is known: the sum over the windows that lie in it whole.
func control(w *release.Window, stable []release.Window) {
	for i := firstAt(stable, w.T); i < len(stable) && stable[i].T.Before(w.End()); i++ {
		s := &stable[i]
		if s.Total <= 0 || s.End().After(w.End()) || !s.Has(release.HasSolved) {
			continue
		}
		w.ControlJudged += s.Judged
		w.ControlSolved += s.Solved
		w.Known |= release.HasControl
	}
}

// firstAt returns the index of the first window that begins at t or later.
func firstAt(ws []release.Window, t time.Time) int {
	low, high := 0, len(ws)
	for low < high {
		mid := (low + high) / 2
		if ws[mid].T.Before(t) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// amend takes what has become known of the labels of a folded window, as long
// as it is younger than the label lag and has not been judged. Everything else
// of a window is final when it is first seen.
func (st *State) amend(l *breaker.Limits, w *release.Window) {
	if !amendable(l, w) || !breaker.Amend(l, &st.Breaker, w) {
		return
	}
	for i := range st.Unripe {
		if st.Unripe[i].T == w.T.UnixNano() {
			st.Unripe[i].SolveCounts = breaker.SolveCountsOf(w)
		}
	}
}

func amendable(l *breaker.Limits, w *release.Window) bool {
	return l.LabelLag > 0 && w.Has(release.HasSolved)
}

// News reports whether Decide would make anything of a window of the canary that
// it has folded, with stable's of that time: what is known of its labels has
// changed and has not been judged.
func (st *State) News(p *Plan, w *release.Window, stable []release.Window) bool {
	l := p.limits(st.limitsStep())
	if !amendable(l, w) {
		return false
	}
	if l.AgainstStable && !w.Has(release.HasControl) {
		with := *w
		control(&with, stable)
		w = &with
	}
	return breaker.Amends(l, &st.Breaker, w)
}

// gather takes a window of this step into the gate, at once or when its
// labels are in.
func (st *State) gather(w *release.Window, lag time.Duration) {
	t := tallyOf(w)
	if lag == 0 {
		st.Gate.add(&t)
		return
	}
	st.Unripe = append(st.Unripe, t)
}

// ripen moves the windows that are old enough by now into the gate.
func (st *State) ripen(now time.Time, lag time.Duration) {
	n := 0
	for n < len(st.Unripe) && st.Unripe[n].T <= now.Add(-lag).UnixNano() {
		st.Gate.add(&st.Unripe[n])
		n++
	}
	if n > 0 {
		st.Unripe = st.Unripe[:copy(st.Unripe, st.Unripe[n:])]
	}
}

// enterStep starts a step's gate and hold empty.
func (st *State) enterStep(step int, at time.Time) {
	st.Step, st.At, st.Covered, st.PausedFor = step, at, 0, 0
	st.Share, st.Gate, st.Unripe = recentShare{}, Tally{}, st.Unripe[:0]
	st.Approval, st.Adapt = nil, adaption{}
}

// stableCost is stable's spending by hour, for the last day.
type stableCost struct {
	Hours [25]hourCost `json:"hours"`
	Seen  time.Time    `json:"seen"`
}

type hourCost struct {
	Hour     int64 `json:"hour"` // hours since 1970
	Requests int64 `json:"requests"`
	NanoUSD  int64 `json:"nano_usd"`
}

func (c *stableCost) add(w *release.Window) {
	if !w.T.After(c.Seen) || w.Total <= 0 || !w.Has(release.HasCostMean) {
		return
	}
	c.Seen = w.T
	hour := w.T.Unix() / 3600
	slot := &c.Hours[hour%int64(len(c.Hours))]
	if slot.Hour != hour {
		*slot = hourCost{Hour: hour}
	}
	slot.Requests += w.Total
	slot.NanoUSD += int64(w.CostMean*1e9*float64(w.Total) + 0.5)
}

// mean returns stable's mean cost a request, in USD, over the hours that
// began in the last 24 before t.
func (c *stableCost) mean(t time.Time) (float64, bool) {
	var requests, nano int64
	for _, h := range c.Hours {
		if age := t.Unix()/3600 - h.Hour; age >= 0 && age <= 24 {
			requests += h.Requests
			nano += h.NanoUSD
		}
	}
	if requests == 0 || nano == 0 {
		return 0, false
	}
	return float64(nano) / 1e9 / float64(requests), true
}

// reference is what the canary's mean cost is compared with where only that is
// known: at 100 % stable's mean of the day before, else cost_baseline_usd. 0:
// the window has a ratio already, or nothing to form one from.
func (st *State) reference(p *Plan, w *release.Window) float64 {
	if w.Has(release.HasCost) || !w.Has(release.HasCostMean) {
		return 0
	}
	if st.Step == len(p.Steps)-1 && st.CostRef > 0 {
		return st.CostRef
	}
	return p.CostBaselineUSD
}
