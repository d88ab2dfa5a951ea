package watch

import (
	"fmt"
	"strconv"
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Situation answers what somebody asks who has just been woken: is it safe, why,
// what happens next and when, and what can I do.
type Situation struct {
	Tone Tone
	Word string // is it safe: a word or two in capitals
	What string // who is served by what
	Why  string
	Next string
	Do   string
	// Alarms are what makes the rest less than the whole truth, the worst first.
	Alarms []string
	// Old says that the figures are not of now: the source is lost, or the view
	// is.
	Old bool
}

// SituationOf says how a release stands at a time, which may be later than the
// snapshot's.
func SituationOf(s *Snapshot, now time.Time) Situation {
	v := viewer{s: s, now: now}
	out := v.state()
	if out.Why == "" {
		out.Why = s.Outcome.Reason
	}
	if out.What == "" {
		out.What = v.traffic()
	}
	if s.Replay != "" {
		out.Do = "a replay: nothing is moved by it"
	}
	v.alarms(&out)
	return out
}

// viewer looks at a snapshot at a time.
type viewer struct {
	s   *Snapshot
	now time.Time
}

// state tells the states apart, what is urgent first.
func (v *viewer) state() Situation {
	s, o := v.s, &v.s.Outcome
	switch {
	case back(s.Pending.Move) || back(o.Move) && o.Write && !s.Weight.IsZero():
		return v.goingBack()
	case o.Why == ladder.WhyDrift:
		return Situation{
			Tone: Bad, Word: "MOVED BY SOMEBODY ELSE", What: "the target holds " + s.Target.Weight.String() + ", set was " + s.Weight.String(),
			Next: "no step until the target holds " + s.Weight.String() + " again",
			Do:   v.or("put the weight back to " + s.Weight.String() + " there"),
		}
	case s.Stage == ladder.Completed && o.Phase == release.Closed:
		return Situation{
			Tone: Good, Word: "COMPLETE", Next: "nothing: the release is complete", Do: "nothing needed; r takes the weight back to 0 % (asks first)",
		}
	case o.Locked:
		return v.locked()
	case o.Phase == release.Open:
		return Situation{
			Tone: Warning, Word: "SAFE, ROLLED BACK", Why: v.tripped(),
			Next: "tries again by itself: probes at " + s.Rungs[0].Weight.String() + v.in(" in ") + "; good ones start step 1 anew, bad ones end at 0 %" + v.locks(),
			Do:   v.beforeProbes(),
		}
	case o.Phase == release.HalfOpen:
		return Situation{
			Tone: Warning, Word: "ON TRIAL", Next: "good probes start step 1 anew, bad ones take it to 0 % again" + v.locks(),
			Do: "nothing needed; r takes it to 0 % (asks first)",
		}
	case s.Stage == ladder.NotStarted:
		return v.notStarted()
	}
	return v.climbing()
}

// back reports whether a move takes the canary out.
func back(m release.Move) bool { return m == release.RollBackMove || m == release.Lock }

// goingBack is a rollback that was not read back as 0 yet.
func (v *viewer) goingBack() Situation {
	return Situation{
		Tone: Bad, Word: "ROLLBACK NOT CONFIRMED", What: v.s.Weight.String() + " may still be on the canary",
		Why: v.tripped(), Next: "0 % is written again until it is read back",
		Do: "act now: set the canary's weight to 0 in the gateway by hand, or r writes it once more",
	}
}

// tripped is what the newest rollback rests on.
func (v *viewer) tripped() string {
	if r := v.s.Record; r != nil {
		return r.Reason
	}
	return ""
}

// locked is a release that only a person lets go on.
func (v *viewer) locked() Situation {
	out := Situation{
		Tone: Warning, Word: "SAFE, ROLLED BACK, LOCKED", Why: v.tripped(), Next: "nothing until a person clears the lock",
		Do: `can wait; canaryctl resume --clear-lock --reason "..." starts it anew when the cause is mended; enter unfolds why`,
	}
	if v.s.Stage == ladder.Failed {
		out.Word = "SAFE, GATE FAILED, LOCKED"
	}
	return out
}

func (v *viewer) notStarted() Situation {
	s, o := v.s, &v.s.Outcome
	out := Situation{Tone: Plain, Word: "NOT STARTED", Why: o.Reason, Do: "canaryctl run (or promote) starts it"}
	switch {
	case o.Move == release.Start:
		out.Why = "no release has been started, or it is to be started anew"
		out.Next = fmt.Sprintf("step 1 of %d at %s, as soon as somebody starts it", len(s.Rungs), s.Rungs[0].Weight)
	case o.Why == ladder.WhyOtherCandidate:
		out.Do, out.Next = s.Next, "nothing until that release is over"
	default:
		out.Next = s.Next
	}
	return out
}

// climbing is a release on its way up.
func (v *viewer) climbing() Situation {
	s, o := v.s, &v.s.Outcome
	if forward(o.Move) || forward(s.Pending.Move) {
		return v.moving()
	}
	out := Situation{Why: v.evidence(), Next: v.step(), Do: v.or("nothing needed")}
	out.Tone, out.Word = v.verdict()
	switch {
	case o.Paused:
		out.Tone, out.Word, out.Next = Warning, "PAUSED", "no step until it is resumed; the breaker still rolls back"
		out.Do = "p resumes, r rolls back (both ask first)"
	case o.Why == ladder.WhyApproval || o.Move == release.AwaitApproval:
		out.Tone, out.Word = Warning, "WAITS FOR APPROVAL"
		out.Next = v.s.Goal() + " at once when a person approves step " + strconv.Itoa(s.Step) + "; until then " + s.Weight.String() + " stays, guarded by the breaker"
		out.Do = "can wait; a approves, r rolls back (both ask first)"
	case o.Why == ladder.WhyConfigChanged:
		out.Tone, out.Word, out.Next = Warning, "CONFIGURATION CHANGED", "no step until a person accepts it; the breaker still rolls back"
		out.Do = v.or(`canaryctl resume --accept-config --reason "..."`)
	case o.Why == ladder.WhyOtherCandidate:
		out.Tone, out.Word, out.Next = Warning, "ANOTHER RELEASE IS OPEN", "no step until that release is over"
		out.Do = v.or(s.Next)
	case o.Why == ladder.WhyMismatch:
		out.Tone, out.Word, out.Next = Bad, "GATEWAY DOES NOT FOLLOW", "no step until the canary serves what was set"
		out.Do = v.or("look at the gateway")
	case o.Why == ladder.WhyUnread:
		out.Tone, out.Word, out.Next = Warning, "CANNOT READ THE TARGET", v.s.Goal()+" when the target can be read"
		out.Do = v.or("mend the target")
	case o.Why == ladder.WhySourceFailed:
		out.Tone, out.Word, out.Next = Bad, "BLIND", "no step until the source can be read; the hold stands still, the weight stays"
		out.What = v.traffic() + ", and the breaker cannot trip"
		out.Do = "r rolls back without it (asks first), unless it is soon mended: " + s.Source.Name
	case o.Why == ladder.WhyFailing:
		out.Next, out.Do = "no step while it fails; the weight stays", v.or("look into what fails")
	case o.Why == ladder.WhyFrozen:
		out.Next = v.s.Goal() + " when the freeze ends" + v.in(", in ")
	}
	return out
}

// evidence is the reason with how the signals stand.
func (v *viewer) evidence() string {
	s, o := v.s, &v.s.Outcome
	if o.Why != ladder.WhyTime && o.Move != release.AwaitApproval {
		return o.Reason
	}
	looked, passing, rest := 0, 0, ""
	for i := range s.Signals {
		switch row := &s.Signals[i]; row.State {
		case Off, Absent, NotJudged:
		case Passing:
			looked, passing = looked+1, passing+1
		case Few:
			looked, rest = looked+1, fmt.Sprintf(", %s has %d of %d samples", row.Signal, row.Samples, row.Needed)
		case NoData:
			looked, rest = looked+1, fmt.Sprintf(", %s has no data", row.Signal)
		case Failing:
			looked, rest = looked+1, fmt.Sprintf(", %s fails", row.Signal)
		default:
			looked++
		}
	}
	if looked == 0 {
		return o.Reason
	}
	return fmt.Sprintf("%s; %d of %d signals pass%s", o.Reason, passing, looked, rest)
}

// verdict is what the evidence says in the view's words. Too few and none are
// not the same, and neither is safe.
func (v *viewer) verdict() (Tone, string) {
	if len(v.s.Outcome.Verdicts) == 0 {
		return Warning, "NOT JUDGED"
	}
	switch v.s.Outcome.Verdict {
	case release.Pass:
		return Good, "SAFE SO FAR"
	case release.Fail:
		return Bad, "FAILING"
	case release.Error:
		return Bad, "BLIND"
	case release.NoData:
		return Warning, "NO DATA YET"
	}
	return Warning, "TOO EARLY TO TELL"
}

// moving is a step forward that is under way, or has just been made.
func (v *viewer) moving() Situation {
	s, o := v.s, &v.s.Outcome
	to := o.Weight
	if forward(s.Pending.Move) {
		to = s.Pending.Weight
	}
	out := Situation{Word: "MOVED TO " + to.String(), What: "not judged at " + to.String() + " yet", Next: v.step(), Do: v.or("nothing needed")}
	if !s.Weight.Same(to) {
		out.Word, out.What, out.Next = "MOVING TO "+to.String(), v.traffic(), "the hold of "+to.String()+" begins when it is read back"
	}
	return out
}

func forward(m release.Move) bool {
	return m == release.Start || m == release.Advance || m == release.Probe
}

// Goal is where the next step leads: a weight, or that the release is complete.
func (s *Snapshot) Goal() string {
	if i := s.Step; i < len(s.Rungs) {
		return s.Rungs[i].Weight.String()
	}
	return "complete"
}

// step is the next step, and when.
func (v *viewer) step() string {
	s, o := v.s, &v.s.Outcome
	when := v.in(" in ")
	switch {
	case when != "" && o.Why == ladder.WhyInsufficient:
		return "waits for samples: " + v.s.Goal() + when + " at this rate if all pass; the breaker watches"
	case when != "":
	case forward(o.Move) && s.Step > 0:
		when = " in " + Clock(s.Rungs[s.Step-1].Hold) + " at the earliest"
	case o.Why == ladder.WhyInsufficient || o.Why == ladder.WhyNoData:
		return v.s.Goal() + " when there is enough to judge; nobody can say when"
	default:
		return v.s.Goal() + " when all gates of this step have passed"
	}
	return v.s.Goal() + when + " if all pass; 0 % at once if the breaker trips"
}

// Hold is how long the present step has been held, of how long at least.
func (s *Snapshot) Hold() (held, hold time.Duration) {
	if s.Step == 0 {
		return 0, 0
	}
	hold = s.Rungs[s.Step-1].Hold
	if o := &s.Outcome; !forward(o.Move) && o.Phase == release.Closed {
		held = time.Duration(o.HeldS) * time.Second
	}
	return held, hold
}

// Share is what both arms were seen to serve under the weight in force; of
// nothing, if there is none or it was just set.
func (s *Snapshot) Share() ladder.Share {
	if s.Weight.IsZero() || forward(s.Outcome.Move) {
		return ladder.Share{}
	}
	return s.Outcome.Share
}

// Left is how long a time that the ladder named is still away; false: it named
// none.
func (s *Snapshot) Left(now time.Time) (time.Duration, bool) {
	if s.Outcome.LeftS == nil {
		return 0, false
	}
	ends := s.At.Add(time.Duration(*s.Outcome.LeftS) * time.Second)
	return max(ends.Sub(now), 0), true
}

// in says how long it takes, behind a preposition, or nothing if nobody can say.
func (v *viewer) in(before string) string {
	left, ok := v.s.Left(v.now)
	switch {
	case !ok:
		return ""
	case left < time.Second:
		return " at the next look"
	}
	return before + Clock(left) + " (" + v.now.Add(left).UTC().Format("15:04") + ")"
}

// beforeProbes is what a person can do while a canary that was rolled back waits
// to be tried again.
func (v *viewer) beforeProbes() string {
	by := "now"
	if left, ok := v.s.Left(v.now); ok {
		by = "by " + v.now.Add(left).UTC().Format("15:04")
	}
	return "decide " + by + ": r keeps it at 0 % (asks first), else " + v.s.Rungs[0].Weight.String() + " of users get it again; enter unfolds why"
}

// locks says what a bad round of probes does beside, if the record is of one
// already.
func (v *viewer) locks() string {
	if r := v.s.Record; r != nil && r.Escalated {
		return ""
	}
	return " and call a person"
}

// or adds what can be done in any case.
func (v *viewer) or(do string) string {
	if v.s.Weight.IsZero() {
		return do
	}
	return do + "; p pauses, r rolls back (both ask first)"
}

// traffic says who is served by what.
func (v *viewer) traffic() string {
	switch w := v.s.Weight; {
	case w.IsZero():
		return "0 %: nobody is on the canary"
	case w.Slots == w.Ring:
		return "100 %: all are on the canary"
	default:
		return w.String() + " are on the canary"
	}
}

// Clock prints a span of time compactly: 45s, 6m 40s, 2h 05m, 3d 4h.
func Clock(d time.Duration) string {
	d = d.Round(time.Second)
	h, m, s := int64(d/time.Hour), int64(d/time.Minute)%60, int64(d/time.Second)%60
	switch {
	case d < 0:
		return "0s"
	case h >= 24:
		return fmt.Sprintf("%dd %dh", h/24, h%24)
	case h > 0:
		return fmt.Sprintf("%dh %02dm", h, m)
	case m > 0:
		return fmt.Sprintf("%dm %02ds", m, s)
	}
	return fmt.Sprintf("%ds", s)
}
