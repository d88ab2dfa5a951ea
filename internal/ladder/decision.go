package ladder

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Why is the reason of a decision.
type Why uint8

// The reasons.
const (
	WhyNone Why = iota
	WhyStart
	WhyPassed
	WhyComplete
	WhyRecovered
	WhyTrip
	WhyProbe
	WhyGateFailed
	WhyLocked
	WhyFailed
	WhyCooldown
	WhyProbing
	WhyTime
	WhyInsufficient
	WhyNoData
	WhyFailing
	WhySourceFailed
	WhyFrozen
	WhyPaused
	WhyApproval
	WhyDrift
	WhyOtherCandidate
	WhyConfigChanged
	WhyCompleted
	WhyManual
	// WhyUnread: the target could not be read, so no step is taken forward.
	WhyUnread
	// WhyMismatch: the canary is not seen to serve the share that was set.
	WhyMismatch
	// WhyMore: more of the evidence follows with the next call.
	WhyMore
	// WhyAdapted: the weight follows the error rate within the step's bounds.
	WhyAdapted
	// WhyThrottled: a signal lowers the weight, or it is on its way back to the
	// step's share.
	WhyThrottled
)

var whyNames = [...]string{
	"", "start", "passed", "complete", "recovered", "trip", "probe", "gate_failed", "locked", "failed", "cooldown",
	"probing", "time", "insufficient", "no_data", "failing", "source_failed", "frozen", "paused", "approval", "drift",
	"other_candidate", "config_changed", "completed", "manual", "unread", "share_mismatch", "more",
	"adapted", "throttled",
}

// String returns the reason's name in files and output.
func (w Why) String() string { return nameOf(w, whyNames[:], "why") }

// MarshalText implements [encoding.TextMarshaler].
func (w Why) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (w *Why) UnmarshalText(b []byte) error { return parseName(w, whyNames[:], b) }

// Decision is what Decide says: what to do, and the figures it rests on. It
// holds no text; Reason forms it on demand.
type Decision struct {
	T       time.Time // of the window that caused it, or now
	Move    release.Move
	Why     Why
	Write   bool           // Weight must be written and read back
	Weight  release.Weight // to write, or the present one
	Step    int            // the step the decision leaves the release at, an index
	Steps   int
	Attempt int
	Phase   release.Phase

	Verdict  release.Verdict // of the gate
	Verdicts [release.Judged]SignalVerdict
	Held     time.Duration // at this step, blind minutes and pauses left out
	MinHold  time.Duration
	Covered  time.Duration
	RipeAt   time.Time // when the first of the windows whose labels are not in yet is judged; zero: none waits
	Overdue  bool      // max_wait_min is over: notify, exit 3
	Share    Share     // what both arms were seen to serve under the weight in force
	Off      bool      // Share is not the weight's: a mismatch
	Again    bool      // the write was asked for before and has not been read back
	Until    time.Time // end of a freeze, or of a cooldown

	Finding   release.Finding   // what a failed gate or an adapted weight rests on
	Throttled release.SignalSet // the signals that lower the weight
	Event     release.Event
	Happened  bool // Event is one
	Round     breaker.Round
	Trials    int64
	SlowSpan  time.Duration // how far back the breaker's slow layer looks at most
	Needed    int64         // judged requests that it needs there; 0 for a cumulative sum
}

// fill copies what every decision tells of the state.
func (d *Decision) fill(p *Plan, st *State) {
	step := p.step(st.Step)
	d.Step, d.Steps, d.Attempt, d.Phase = st.Step, len(p.Steps), st.Attempt, st.Breaker.Phase
	d.MinHold, d.Covered = step.MinHold, st.Covered
	d.SlowSpan, d.Needed = max(step.Limits.SlowSpan, step.Limits.SlowSpanMax), step.Limits.MinSamples
	if step.Limits.Judge == breaker.CusumJudge {
		d.Needed = 0
	}
	d.Share, d.Off = st.Share.sum(), st.mismatch(&p.Share)
	if d.RipeAt = (time.Time{}); len(st.Unripe) > 0 {
		d.RipeAt = time.Unix(0, st.Unripe[0].T).UTC().Add(step.Limits.LabelLag + st.Unripe[0].Span)
	}
	d.Round, d.Trials = st.Breaker.Round, p.limits(0).Trials
	if d.Phase == release.Open && !st.Breaker.Locked {
		d.Until = st.Breaker.Since.Add(p.limits(0).Cooldown)
		if st.CoolFor.After(d.Until) {
			d.Until = st.CoolFor
		}
	}
	if !d.Write {
		d.Weight = st.Weight
	}
}

func (d *Decision) hold(p *Plan, st *State, why Why) {
	d.Move, d.Why = release.Hold, why
	if why == WhyApproval {
		d.Move = release.AwaitApproval
	}
	d.fill(p, st)
}

// write asks for a weight and remembers that it did.
func (d *Decision) write(p *Plan, st *State, move release.Move, w release.Weight, why Why) {
	d.Move, d.Why, d.Write, d.Weight = move, why, true, w
	st.Pending = Pending{Move: move, Weight: w, Why: why}
	d.fill(p, st)
	switch move {
	case release.Advance:
		d.Step++
	case release.Probe:
		d.Step = 0
	}
}

// again repeats the decision whose write has not been read back.
func (d *Decision) again(p *Plan, st *State) {
	d.Again = true
	d.write(p, st, st.Pending.Move, st.Pending.Weight, st.Pending.Why)
}

// Remaining returns how long until the decision could change for the better
// at the present rate, and false if nobody can say.
func (d *Decision) Remaining() (time.Duration, bool) {
	switch d.Why {
	case WhyCooldown, WhyFrozen:
		return max(d.Until.Sub(d.T), 0), true
	case WhyNoData:
		return max(d.RipeAt.Sub(d.T), 0), !d.RipeAt.IsZero()
	case WhyTime, WhyInsufficient:
		left := max(d.MinHold-d.Held, 0)
		for i := range d.Verdicts {
			v := &d.Verdicts[i]
			if !v.Needed || v.Verdict != release.Insufficient {
				continue
			}
			more, ok := d.untilEnough(v)
			if !ok {
				return 0, false
			}
			left = max(left, more)
		}
		return left, true
	}
	return 0, false
}

// untilEnough extrapolates the rate at which samples came in at this step.
func (d *Decision) untilEnough(v *SignalVerdict) (time.Duration, bool) {
	if v.Finding.Of <= 0 || v.Finding.Span <= 0 {
		return 0, false
	}
	return time.Duration(math.Ceil(float64(v.MinOf-v.Finding.Of)/v.perMinute())) * time.Minute, true
}

// perMinute is the rate at which the signal's samples came in.
func (v *SignalVerdict) perMinute() float64 { return float64(v.Finding.Of) / v.Finding.Span.Minutes() }

// Reason says in one sentence why, with the numbers.
func (d *Decision) Reason() string {
	switch {
	case d.Again:
		return fmt.Sprintf("asked for %s before (%s), not read back yet", d.Weight, d.Why)
	case d.Overdue && d.Why == WhyProbing:
		return "waiting for traffic and labels for longer than probes take: " + d.reason()
	case d.Overdue && (d.Move == release.Hold || d.Move == release.AwaitApproval):
		return "max_wait_min is over: " + d.reason()
	}
	return d.reason()
}

func (d *Decision) reason() string {
	switch d.Why {
	case WhyStart:
		return fmt.Sprintf("release starts at step 1 of %d", d.Steps)
	case WhyPassed:
		return fmt.Sprintf("all gates of step %d passed after %s", d.Step, release.Minutes(d.Held))
	case WhyComplete:
		return fmt.Sprintf("all gates of the last step passed after %s", release.Minutes(d.Held))
	case WhyRecovered:
		return fmt.Sprintf("%s: attempt %d starts at step 1", d.Event.Finding, d.Attempt)
	case WhyTrip, WhyProbe:
		return d.Event.Finding.String()
	case WhyGateFailed:
		return fmt.Sprintf("the gate of step %d failed: %s", d.Step+1, d.Finding)
	case WhyLocked:
		if d.Happened {
			return d.Event.Finding.String() + "; locked until a person clears it"
		}
		return "locked until a person clears it"
	case WhyFailed:
		return "rolled back in this attempt; a person starts the next"
	case WhyCooldown:
		return fmt.Sprintf("cooling down until %s", d.Until.UTC().Format(time.RFC3339))
	case WhyProbing:
		return fmt.Sprintf("probing: %d of %d probes done, %d good", d.Round.Done, d.Trials, d.Round.Good)
	case WhyTime:
		return fmt.Sprintf("held %s of %s", release.Minutes(d.Held), release.Minutes(d.MinHold))
	case WhyInsufficient:
		return d.insufficient()
	case WhyNoData:
		return d.noData()
	case WhyFailing:
		return d.failing()
	}
	return d.standing()
}

// standing words the reasons that carry no figures of the evidence.
func (d *Decision) standing() string {
	switch d.Why {
	case WhySourceFailed:
		return "the source could not be read"
	case WhyFrozen:
		return fmt.Sprintf("frozen until %s", d.Until.UTC().Format(time.RFC3339))
	case WhyPaused:
		return "paused by a person"
	case WhyApproval:
		return fmt.Sprintf("step %d waits for a person's approval", d.Step+1)
	case WhyDrift:
		return "the weight is not what was last read back: somebody else has moved it"
	case WhyOtherCandidate:
		return "another candidate's release is not finished"
	case WhyConfigChanged:
		return "the configuration has changed since the release started"
	case WhyCompleted:
		return "the release is complete"
	case WhyManual:
		return "rolled back by a person"
	case WhyUnread:
		return "everything has passed, but the target could not be read"
	case WhyAdapted:
		return fmt.Sprintf("%s: the share goes to %s", d.Finding, d.Weight)
	case WhyThrottled:
		return d.throttling()
	case WhyMore:
		return "more windows are to be looked at first"
	case WhyMismatch:
		return fmt.Sprintf("the weight is %s, and the canary is seen to serve %s: the gateway does not follow it", d.Weight, d.Share)
	}
	return d.Why.String()
}

// insufficient names the signal that is furthest from enough samples, the
// solve rate among equals.
func (d *Decision) insufficient() string {
	worst := -1
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if v.Needed && v.Verdict == release.Insufficient && (worst < 0 || v.Finding.Of <= d.Verdicts[worst].Finding.Of) {
			worst = i
		}
	}
	if worst < 0 {
		return "too few samples"
	}
	v := &d.Verdicts[worst]
	s := fmt.Sprintf("%d of %d %s", v.Finding.Of, v.MinOf, unitOf(v.Finding.Signal))
	if more, ok := d.untilEnough(v); ok {
		perMinute := v.perMinute()
		s += fmt.Sprintf("; about %d more minutes at the present %s a minute", int64(more/time.Minute), rate(perMinute))
		if blind := perMinute * d.SlowSpan.Minutes(); v.Finding.Signal == release.SolveRate && blind < float64(d.Needed) {
			s += fmt.Sprintf("; the breaker's %s hold only about %d of them, so its slow layer stays blind here", release.Minutes(d.SlowSpan), int64(blind))
		}
	}
	return s
}

// throttling says which signals lower the weight, or that it comes back.
func (d *Decision) throttling() string {
	var names []string
	for s := range d.Throttled.All() {
		names = append(names, s.String())
	}
	switch {
	case d.Move == release.Hold && len(names) > 0:
		return fmt.Sprintf("%s past its limit: nothing goes forward while it lasts", strings.Join(names, " and "))
	case d.Move == release.Hold:
		return fmt.Sprintf("the share is down to %s, below this step's: nothing goes forward until it is back", d.Weight)
	case len(names) > 0:
		return fmt.Sprintf("%s past its limit: the share goes down to %s", strings.Join(names, " and "), d.Weight)
	}
	return fmt.Sprintf("no signal that throttles is past its limit: the share goes back to %s", d.Weight)
}

// rate prints a rate with the digits that a person needs: 0.26, 2.6, 26, 260.
func rate(perMinute float64) string {
	if perMinute >= 10 {
		return strconv.FormatFloat(perMinute, 'f', 0, 64)
	}
	return strconv.FormatFloat(perMinute, 'g', 2, 64)
}

func unitOf(s release.Signal) string {
	switch s {
	case release.SolveRate:
		return "judged"
	case release.TTFTP99, release.TTFTSlow, release.ITL, release.StreamAborts:
		return "streams with " + s.String()
	case release.KVCache:
		return "windows with " + s.String()
	}
	return "requests with " + s.String()
}

func (d *Decision) noData() string {
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if v.Needed && v.Verdict == release.NoData {
			switch {
			case d.Covered == 0:
				return "no canary traffic seen at this step"
			case !d.RipeAt.IsZero():
				return fmt.Sprintf("no window of this step has all its labels yet: label_lag_min is over for the first at %s", d.RipeAt.Format(time.RFC3339))
			}
			return fmt.Sprintf("no data for %s at this step", v.Finding.Signal)
		}
	}
	return "no signal is enforced, so nothing can pass this gate"
}

func (d *Decision) failing() string {
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if v.Needed && v.Verdict == release.Fail {
			if v.Latched {
				return fmt.Sprintf("%s failed in this attempt and holds it: now %s", v.Finding.Signal, v.Finding)
			}
			return v.Finding.String()
		}
	}
	return "a gate fails"
}
