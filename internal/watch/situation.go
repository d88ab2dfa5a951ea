package watch

import (
	"fmt"
	"strings"
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
	// Guarded says that somebody decides, on figures of now, over a breaker that
	// can trip.
	Guarded bool
	// Would says that the decision is what the next look of run or promote will
	// come to: nobody has been asked for it.
	Would bool
}

// SituationOf says how a release stands at a time, which may be later than the
// snapshot's.
func SituationOf(s *Snapshot, now time.Time) Situation {
	v := viewer{s: s, now: now}
	v.look()
	out := v.state()
	if out.Why == "" {
		out.Why = s.Outcome.Reason
	}
	if out.What == "" {
		out.What = v.traffic()
	}
	v.doubt(&out)
	out.Alarms, out.Old, out.Would = v.alarms, v.old, v.ahead()
	out.Guarded = v.trips() && s.Target.Err == "" && s.Stage == ladder.Climbing && !v.blind && !v.stale && !v.silent && !v.unwatched && !s.Decider.Elsewhere && !s.Outcome.Locked &&
		s.Outcome.Why != ladder.WhyOtherCandidate
	if s.Replay != "" {
		out.Do = "a replay: nothing is moved by it"
	}
	return out
}

// viewer looks at a snapshot at a time.
type viewer struct {
	s   *Snapshot
	now time.Time

	alarms    []string
	old       bool // the figures are
	blind     bool // no figures come
	stale     bool // the snapshot itself is old
	silent    bool // the canary has no figures any more
	unwatched bool // nobody decides, and somebody must
}

// state tells the states apart, what is urgent first.
func (v *viewer) state() Situation {
	s, o := v.s, &v.s.Outcome
	switch {
	case back(s.Pending.Move):
		return v.goingBack()
	case o.Why == ladder.WhyOtherCandidate:
		return v.otherCandidate()
	case o.Why == ladder.WhyDrift:
		return v.drift()
	case s.Stage == ladder.Completed && o.Phase == release.Closed && !v.starts():
		return v.complete()
	case o.Locked && !v.ahead():
		return v.locked()
	case back(o.Move) && v.ahead():
		return Situation{
			Tone: Bad, Word: "LIMIT PASSED", Next: "0 % is written at the next look of run or promote",
			Do: "r rolls back now (asks first)",
		}
	case s.Stage == ladder.NotStarted && s.Pending.Move == release.Hold, v.starts():
		return v.notStarted()
	case o.Move == release.Probe && v.ahead():
		return Situation{
			Tone: Warning, Word: "READY TO PROBE", Next: "probes at " + o.Weight.String() + " of users at the next look of run or promote",
			Do: "decide now: r keeps it at 0 % (asks first), else " + o.Weight.String() + " of users get it again",
		}
	case o.Phase == release.Open:
		return v.cooling()
	case o.Phase == release.HalfOpen:
		return Situation{
			Tone: Warning, Word: "ON TRIAL", Next: "good probes start step 1 anew, bad ones " + v.badProbes(),
			Do: "nothing needed; r takes it to 0 % (asks first)",
		}
	}
	return v.climbing()
}

// back reports whether a move takes the canary out.
func back(m release.Move) bool { return m == release.RollBackMove || m == release.Lock }

// forward reports whether a move gives the canary traffic.
func forward(m release.Move) bool {
	return m == release.Start || m == release.Advance || m == release.Probe
}

// ahead reports whether the outcome is what a promote would do now, and nobody
// has been asked for it.
func (v *viewer) ahead() bool { return ahead(v.s) }

// starts reports whether a release would begin: the first one, or another
// candidate's after this one is over.
func (v *viewer) starts() bool {
	return v.ahead() && v.s.Outcome.Move == release.Start && v.s.Outcome.Why == ladder.WhyStart
}

// goingBack is a rollback that was not read back as 0 yet.
func (v *viewer) goingBack() Situation {
	out := Situation{
		Tone: Bad, Word: "ROLLBACK NOT CONFIRMED", What: v.s.Weight.String() + " may still be on the canary",
		Why: v.tripped(), Next: "0 % is written again at the next look of run or promote, until it is read back",
		Do: "act now: set the canary's weight to 0 in the gateway by hand, or r writes it once more",
	}
	if v.s.Weight.IsZero() {
		out.What = "the target was not read back as 0 %"
	}
	return out
}

// tripped is what the newest rollback rests on.
func (v *viewer) tripped() string {
	if v.s.InForce() {
		return v.s.Record.Reason
	}
	return ""
}

// InForce reports whether the newest rollback is the one that the release stands
// at: of this attempt, and not of one that a person has cleared.
func (s *Snapshot) InForce() bool {
	o := &s.Outcome
	back := o.Phase != release.Closed || s.Stage == ladder.Failed || s.Stage == ladder.RolledBack || back(s.Pending.Move)
	return s.Record != nil && s.Record.Attempt == o.Attempt && back && !ahead(s)
}

// otherCandidate is a release that canary.yaml does not name any more: nothing
// is folded, so nothing guards it.
func (v *viewer) otherCandidate() Situation {
	out := Situation{Tone: Warning, Word: "ANOTHER CANDIDATE IS CONFIGURED", Next: "nothing until this release is over", Do: v.s.Next}
	if !v.s.Weight.IsZero() {
		out.Tone, out.Word = Bad, "NOT GUARDED"
		out.Next = "nothing: canary.yaml names another candidate, so the breaker does not look at this one"
	}
	return out
}

// drift is a weight that somebody else has moved.
func (v *viewer) drift() Situation {
	s := v.s
	out := Situation{Tone: Bad, Word: "MOVED BY SOMEBODY ELSE", What: "the target holds " + s.Target.Weight.String()}
	if s.Stage == ladder.NotStarted || s.Target.Weight.Same(s.Weight) {
		out.Word, out.Why = "CANNOT START", "no release has put it there; one starts from at most "+s.Rungs[0].Weight.String()
		out.Next, out.Do = "nothing until that is put right", s.Next
		return out
	}
	out.What += ", set was " + s.Weight.String()
	out.Next = "no step until the target holds " + s.Weight.String() + " again"
	out.Do = "put the weight back to " + s.Weight.String() + " there; r takes it to 0 % (asks first)"
	return out
}

func (v *viewer) complete() Situation {
	out := Situation{Tone: Good, Word: "COMPLETE", Next: "nothing: the release is complete", Do: "nothing needed; r takes the weight back to 0 % (asks first)"}
	if v.s.Swapped {
		out.What, out.Do = "the candidate is the stable version now", "nothing needed; r puts the version before back for all (asks first)"
	}
	return out
}

// locked is a release that only a person lets go on.
func (v *viewer) locked() Situation {
	out := Situation{
		Tone: Warning, Word: "SAFE, ROLLED BACK, LOCKED", Why: v.tripped(), Next: "nothing until a person clears the lock",
		Do: `can wait; once the cause is mended, canaryctl resume --clear-lock --reason "..." starts it anew at ` + v.s.Rungs[0].Weight.String() + "; enter unfolds why",
	}
	if v.s.Stage == ladder.Failed {
		out.Word = "SAFE, GATE FAILED, LOCKED"
	}
	if !v.s.Weight.IsZero() {
		out.Tone, out.Word, out.Do = Bad, "LOCKED, AND NOT AT 0 %", "r takes it to 0 % (asks first)"
	}
	return out
}

// cooling is a release that was rolled back and will be tried again.
func (v *viewer) cooling() Situation {
	s := v.s
	out := Situation{
		Tone: Warning, Word: "SAFE, ROLLED BACK", Why: v.tripped(),
		Next: "tries again by itself: probes at " + s.Rungs[0].Weight.String() + v.in(" in ") + "; good ones start step 1 anew, bad ones " + v.badProbes(),
	}
	switch {
	case !s.Weight.IsZero():
		out.Tone, out.Word = Bad, "ROLLED BACK, AND NOT AT 0 %"
		out.Do = "r takes it to 0 % (asks first)"
		return out
	case s.Target.Err != "":
		out.Next = "probes when the target can be read again"
	}
	by := "now"
	if left, ok := s.Left(v.now); ok {
		by = "by " + v.now.Add(left).UTC().Format("15:04")
	}
	out.Do = "decide " + by + ": r keeps it at 0 % (asks first), else " + s.Rungs[0].Weight.String() + " of users get it again; enter unfolds why"
	return out
}

// badProbes is what becomes of a release whose probes are not good enough.
func (v *viewer) badProbes() string {
	if v.s.Locks {
		return "lock it at 0 % and call a person"
	}
	return "take it to 0 % again and call a person"
}

func (v *viewer) notStarted() Situation {
	s, o := v.s, &v.s.Outcome
	out := Situation{Word: "NOT STARTED", Why: o.Reason, Next: s.Next, Do: s.Next}
	if w := s.Exposed(); !w.IsZero() && s.Stage == ladder.NotStarted {
		out.Tone, out.What = Warning, w.String()+" are on the canary, and no release has put them there"
	}
	switch {
	case v.starts(), o.Move == release.Hold && o.Why == ladder.WhyNone:
		out.Why = "no release has been started, or it is to be started anew"
		if s.Stage == ladder.RolledBack || s.Stage == ladder.Completed {
			out.Why = "the release before is over, and canary.yaml names another candidate"
		}
		out.Next = fmt.Sprintf("step 1 of %d at %s, as soon as somebody starts it", len(s.Rungs), s.Rungs[0].Weight)
		out.Do = "canaryctl run (or promote) starts it"
	case o.Paused:
		out.Word, out.Next, out.Do = "PAUSED, NOT STARTED", "nothing until it is resumed", "p resumes (asks first)"
	}
	return out
}

// climbing is a release on its way up.
func (v *viewer) climbing() Situation {
	s, o := v.s, &v.s.Outcome
	out := Situation{Why: v.evidence(), Next: v.step(), Do: v.or("nothing needed")}
	out.Tone, out.Word = v.verdict()
	switch {
	case o.Paused:
		out.Tone, out.Word, out.Next = Warning, "PAUSED", "no step until it is resumed"+v.guards("the breaker still rolls back")
		out.Do = "p resumes, r rolls back (both ask first)"
		return out
	case o.Why == ladder.WhyConfigChanged:
		out.Tone, out.Word, out.Next = Warning, "CONFIGURATION CHANGED", "no step until a person accepts it"+v.guards("the breaker still rolls back")
		out.Do = v.or(`canaryctl resume --accept-config --reason "..."`)
		return out
	case o.Why == ladder.WhyFrozen:
		out.Next = v.leads() + " when the freeze ends" + v.in(", in ")
		return out
	case forward(s.Pending.Move) || forward(o.Move) || o.Move == release.Complete:
		return v.moving()
	case s.Pending.Move == release.Adjust || o.Move == release.Adjust:
		v.adjusting(&out)
		return out
	}
	v.holding(&out)
	return out
}

// holding words the holds that say more than how far the gate is.
func (v *viewer) holding(out *Situation) {
	s, o := v.s, &v.s.Outcome
	switch o.Why {
	case ladder.WhyApproval:
		out.Tone, out.Word = Warning, "WAITS FOR APPROVAL"
		out.Next = s.Goal() + " at the next look after approval; until then " + s.Weight.String() + " stays" + v.guards("the breaker guards it")
		out.Do = "can wait; a approves, r rolls back (both ask first)"
	case ladder.WhyMismatch:
		out.Tone, out.Word, out.Next = Bad, "GATEWAY DOES NOT FOLLOW", "no step until the canary serves what was set"
		out.Do = v.or("look at the gateway")
	case ladder.WhyUnread:
		out.Tone, out.Word, out.Next = Warning, "CANNOT READ THE TARGET", s.Goal()+" when the target can be read"
		out.Do = v.or("mend the target")
	case ladder.WhySourceFailed:
		if !v.blind {
			out.Tone, out.Word, out.Next = Warning, "NOT SEEN FROM HERE", "as whoever decides sees it: canaryctl history"
			return
		}
		v.blinded(out)
	case ladder.WhyThrottled:
		out.Tone, out.Word = Warning, "THROTTLED"
		out.Next = "the share rises by itself while no signal is past its limit; no step before it is back"
		out.Do = v.or("can wait; look into what throttles")
	case ladder.WhyFailing:
		out.Next, out.Do = "no step while it fails; the weight stays", v.or("look into what fails")
		if v.latched() {
			out.Next = "no step in this attempt any more; the weight stays"
			out.Do = "r gives this attempt up (asks first); enter unfolds an event"
		}
	}
}

// blinded is a release without figures.
func (v *viewer) blinded(out *Situation) {
	out.Tone, out.Word, out.Next = Bad, "BLIND", "no step until figures come again; the hold stands still, the weight stays"
	out.What = v.traffic() + ", and the breaker cannot trip"
	out.Do = "within minutes: mend " + v.s.Source.Name + ", or r rolls back, it needs no figures (asks first)"
}

// latched reports whether a signal has failed that holds the whole attempt.
func (v *viewer) latched() bool {
	for i := range v.s.Outcome.Verdicts {
		if x := &v.s.Outcome.Verdicts[i]; x.Latched && x.Counts {
			return true
		}
	}
	return false
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
	counts := false
	for i := range v.s.Outcome.Verdicts {
		counts = counts || v.s.Outcome.Verdicts[i].Counts
	}
	switch {
	case len(v.s.Outcome.Verdicts) == 0:
		return Warning, "NOT JUDGED"
	case !counts:
		return Warning, "ONLY OBSERVED"
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

// moving is a step forward: asked for and not read back, about to be asked for,
// or just made.
func (v *viewer) moving() Situation {
	s, o := v.s, &v.s.Outcome
	out := Situation{Do: v.or("nothing needed")}
	switch {
	case forward(s.Pending.Move):
		out.Word, out.What = "MOVING TO "+s.Pending.Weight.String(), s.Weight.String()+" was read back last"
		out.Next = "the hold of " + s.Pending.Weight.String() + " begins when it is read back"
	case o.Move == release.Complete:
		out.Tone, out.Word, out.Next = Good, "READY TO COMPLETE", "complete at the next look of run or promote"
	case v.ahead():
		out.Tone, out.Word = Good, "READY FOR "+o.Weight.String()
		out.Next = o.Weight.String() + " at the next look of run or promote"
	default:
		out.Word, out.What, out.Next = "MOVED TO "+s.Weight.String(), "not judged at "+s.Weight.String()+" yet", v.step()
	}
	return out
}

// adjusting is a share on its way up or down within the step.
func (v *viewer) adjusting(out *Situation) {
	to := v.s.Outcome.Weight
	if v.s.Pending.Move == release.Adjust {
		to = v.s.Pending.Weight
	}
	out.Word, out.Next = "SHARE GOES TO "+to.String(), to.String()+" at the next look of run or promote, within the same step"
	if v.s.Weight.Above(to) {
		out.Tone = Warning
	}
}

// Goal is where the next step leads: a weight, or that the release is complete.
func (s *Snapshot) Goal() string {
	if i := s.Step; i < len(s.Rungs) {
		return s.Rungs[i].Weight.String()
	}
	return "complete"
}

// gates are those of the present step.
func (v *viewer) gates() ladder.Gates {
	if i := v.s.Step - 1; i >= 0 && i < len(v.s.Rungs) {
		return v.s.Rungs[i].Gates
	}
	return 0
}

// leads is what follows when the other gates have passed.
func (v *viewer) leads() string {
	if v.gates().Has(ladder.ApprovalGate) {
		return "asks for approval of " + v.s.Goal()
	}
	return v.s.Goal()
}

// step is the next step, and when.
func (v *viewer) step() string {
	s, o := v.s, &v.s.Outcome
	when, metric := v.in(" in "), v.gates().Has(ladder.MetricGate)
	all := ""
	if metric {
		all = " if all pass, else it holds or rolls back"
	}
	all += v.guards("0 % at once if the breaker trips")
	switch {
	case when != "" && o.Why == ladder.WhyInsufficient:
		return "waits for samples: " + v.leads() + when + " at this rate" + all
	case when != "":
		return v.leads() + when + all
	case forward(o.Move) && s.Step > 0:
		_, hold := s.Hold()
		return v.leads() + " in " + Clock(hold) + " at the earliest" + all
	case o.Why == ladder.WhyInsufficient || o.Why == ladder.WhyNoData:
		return v.leads() + " when there is enough to judge; nobody can say when" + v.guards("0 % at once if the breaker trips")
	}
	return v.leads() + " when all gates of this step have passed"
}

// trips reports whether a signal can open the breaker at this step.
func (v *viewer) trips() bool { return v.s.Trips }

// guards adds what the breaker does, where it can do it.
func (v *viewer) guards(text string) string {
	switch {
	case v.s.Decider.Elsewhere:
		return "" // whether anybody does it cannot be seen from here
	case v.s.Target.Err != "":
		return "; a rollback may not get through: the target was not read"
	case !v.trips():
		return "; no signal can trip the breaker"
	}
	return "; " + text
}

// Hold is how long the present step has been held, of how long at least.
func (s *Snapshot) Hold() (held, hold time.Duration) {
	if s.Step == 0 || s.Step > len(s.Rungs) {
		return 0, 0
	}
	hold = s.Rungs[s.Step-1].Hold
	if s.Outcome.Phase == release.Closed && !s.justMoved() {
		held = s.Held
	}
	return held, hold
}

// justMoved reports whether a step forward was made with this very decision.
func (s *Snapshot) justMoved() bool {
	return forward(s.Outcome.Move) && s.Pending.Move == release.Hold && !ahead(s)
}

// Share is what both arms were seen to serve under the weight in force; of
// nothing, if there is none or it was just set.
func (s *Snapshot) Share() ladder.Share {
	if s.Weight.IsZero() || s.justMoved() {
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
	form := "15:04"
	if left >= 24*time.Hour {
		form = "01-02 15:04"
	}
	return before + Clock(left) + " (" + v.now.Add(left).UTC().Format(form) + ")"
}

// or adds what can be done in any case.
func (v *viewer) or(do string) string {
	can := []string(nil)
	if v.s.Can(Pause) {
		can = append(can, "p pauses")
	}
	if v.s.Can(RollBack) {
		can = append(can, "r rolls back")
	}
	switch len(can) {
	case 0:
		return do
	case 1:
		return do + "; " + can[0] + " (asks first)"
	}
	return do + "; " + strings.Join(can, ", ") + " (both ask first)"
}

// traffic says who is served by what.
func (v *viewer) traffic() string {
	switch w := v.s.Exposed(); {
	case w.IsZero():
		return "0 %: nobody is on the canary"
	case w.Slots == w.Ring:
		return "100 %: all are on the canary"
	default:
		return w.String() + " are on the canary"
	}
}
