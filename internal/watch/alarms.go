package watch

import (
	"fmt"
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

const (
	// viewAge is how old a snapshot may be before the view says so: a live feed
	// gives one every few seconds.
	viewAge = 15 * time.Second
	// lateWindows is how many windows may be missing behind the newest before it
	// is said.
	lateWindows = 3
)

// look finds what makes a snapshot less than the whole truth, the worst first.
func (v *viewer) look() {
	s := v.s
	if s.Replay != "" {
		return
	}
	v.lookAtView()
	v.lookAtSource()
	v.lookAtCanary()
	if s.Target.Err != "" {
		v.alarm("TARGET NOT READ: %s", s.Target.Err)
	}
	v.lookAtDecider()
	if s.Target.By != "" && s.Outcome.Why == ladder.WhyDrift {
		v.alarm("the target holds %s, last changed by %s", s.Target.Weight, s.Target.By)
	}
	if s.Outcome.Overdue {
		v.alarm("OVERDUE: this step takes longer than max_wait_min")
	}
	if r := s.Record; r != nil && r.Escalated && s.Outcome.Locked {
		v.alarm("ESCALATED: the probes failed as well; it stays at 0 %% until a person decides")
	}
}

func (v *viewer) alarm(format string, args ...any) {
	v.alarms = append(v.alarms, fmt.Sprintf(format, args...))
}

// lookAtView says how old the view itself is.
func (v *viewer) lookAtView() {
	age := v.now.Sub(v.s.At)
	switch v.stale = true; {
	case v.s.LookErr != "":
		v.alarm("CANNOT LOOK, this is %s old: %s", Clock(age), v.s.LookErr)
	case age > viewAge:
		v.alarm("THIS VIEW IS %s OLD: it has not been able to look again", Clock(age))
	default:
		v.stale = false
		return
	}
	v.old = true
}

// lookAtSource says whether figures come.
func (v *viewer) lookAtSource() {
	s := v.s
	age, late := v.sourceLate()
	if _, gone := v.undecided(); s.Source.Err != "" && !s.Decider.Blind && !s.Decider.Elsewhere && !gone && !s.Decider.At.IsZero() {
		v.old = true
		v.alarm("SOURCE NOT READ FROM HERE, whoever decides had it %s ago: %s", Clock(v.now.Sub(s.Decider.At)), s.Source.Err)
		return
	}
	switch {
	case s.Source.Err != "" && s.Source.Newest.IsZero():
		v.alarm("SOURCE LOST, no window has been seen: %s", s.Source.Err)
	case s.Source.Err != "":
		v.alarm("SOURCE LOST, newest figures %s old: %s", Clock(v.now.Sub(s.Source.Newest)), s.Source.Err)
	case late:
		v.alarm("NO NEW WINDOW: the newest ended %s ago", Clock(age))
	default:
		return
	}
	v.old, v.blind = true, true
}

// lookAtCanary says that the canary's figures have ceased while others come.
func (v *viewer) lookAtCanary() {
	s := v.s
	if v.blind || s.Source.Canary.IsZero() || s.Weight.IsZero() || !s.Since.Before(s.Source.Canary) {
		return
	}
	if age := v.now.Sub(s.Source.Canary); age > v.patience()+v.gaps() {
		v.old, v.silent = true, true
		v.alarm("NO FIGURES OF THE CANARY: its newest window with requests ended %s ago", Clock(age))
	}
}

// gaps is how long the canary may be without a window of its own: a small share
// of little traffic has requests in few of them. It is three times the mean
// distance between those that had any.
func (v *viewer) gaps() time.Duration {
	served := 0
	for i := range v.s.Signals {
		n := 0
		for _, p := range v.s.Signals[i].Canary {
			if p.Known {
				n++
			}
		}
		served = max(served, n)
	}
	since := min(max(v.s.Source.Canary.Sub(v.s.Since), 0), Points*v.s.Times.Span)
	return lateWindows * since / time.Duration(max(served, 1))
}

// sourceLate reports whether windows have stopped coming although the source
// answers. A canary without traffic is no reason: stable's windows come.
func (v *viewer) sourceLate() (time.Duration, bool) {
	s := v.s
	if s.Source.Newest.IsZero() || s.Source.Name == "" {
		return 0, false
	}
	age := v.now.Sub(s.Source.Newest)
	return age, age > v.patience()
}

// patience is how long windows and decisions may take.
func (v *viewer) patience() time.Duration {
	return lateWindows*v.s.Times.Span + v.s.Source.Settle + viewAge
}

// lookAtDecider says whether a release that somebody must watch is left alone.
func (v *viewer) lookAtDecider() {
	s := v.s
	age, late := v.undecided()
	by := ""
	if s.Decider.Who != "" {
		by = " (last: " + s.Decider.Who + ")"
	}
	switch {
	case !late:
	case s.Decider.Elsewhere:
		v.alarm("DRIVEN ELSEWHERE: the newest decision known here is %s old; whether anybody watches cannot be seen from here", Clock(age))
	default:
		v.unwatched = true
		v.alarm("NOBODY HAS DECIDED FOR %s%s: is canaryctl run still running?", Clock(age), by)
	}
}

// undecided reports for how long nobody has decided about a release that
// somebody must watch, and whether that is too long.
func (v *viewer) undecided() (time.Duration, bool) {
	s := v.s
	needs := !s.Weight.IsZero() && !(s.Stage == ladder.Completed && s.Outcome.Phase == release.Closed) ||
		s.Stage == ladder.Climbing && !s.Outcome.Locked || s.Pending.Move != release.Hold
	if !needs || s.Decider.At.IsZero() {
		return 0, false
	}
	age := v.now.Sub(s.Decider.At)
	return age, age > v.patience()
}

// doubt takes back what a situation promises where nobody is there to keep it,
// or nothing is there to go by.
func (v *viewer) doubt(out *Situation) {
	serves := !v.s.Exposed().IsZero()
	switch {
	case v.stale:
		out.Tone = max(out.Tone, Warning)
		out.Word, out.What = "NOT KNOWN NOW", "at "+v.s.At.UTC().Format("15:04")+": "+out.Word
		out.Next, out.Do = "not known: this view cannot look", "look from elsewhere: canaryctl status; r rolls back (asks first)"
	case v.unwatched && back(v.s.Pending.Move):
		out.Next = "nothing: nobody writes it again"
		out.Do = "act now: set the canary's weight to 0 in the gateway by hand, or r writes it (asks first)"
	case v.unwatched:
		if out.Word, out.Tone = "NOT WATCHED", Warning; serves {
			out.Tone = Bad
		}
		out.What = v.traffic()
		out.Why = "nobody decides any more; before that: " + out.Why
		out.Next = "no step and no rollback by itself until canaryctl run goes on"
		out.Do = "r rolls back now, from here (asks first); or start canaryctl run again where it ran"
	case v.silent && out.Tone == Good:
		out.Tone, out.Word = Warning, "NO FIGURES OF THE CANARY"
		out.Next = "no step without them; the hold stands still"
		out.Do = "look whether the canary serves; r rolls back (asks first)"
	case v.s.Target.Err != "" && out.Tone == Good:
		out.Tone, out.Word = Warning, out.Word+", TARGET LOST"
	case v.blind && serves && v.s.Stage == ladder.Climbing && !back(v.s.Pending.Move):
		if v.blinded(out); v.s.Outcome.Why != ladder.WhySourceFailed {
			out.Why = "no new figures; before that: " + out.Why
		}
	}
}
