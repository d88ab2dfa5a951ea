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

// alarms says what makes the rest less than the whole truth.
func (v *viewer) alarms(out *Situation) {
	s := v.s
	if s.Replay != "" {
		return
	}
	add := func(format string, args ...any) { out.Alarms = append(out.Alarms, fmt.Sprintf(format, args...)) }
	if age := v.now.Sub(s.At); age > viewAge {
		out.Old = true
		add("THIS VIEW IS %s OLD: it has not been able to look again", Clock(age))
	}
	if s.Source.Err != "" {
		out.Old = true
		add("SOURCE LOST, %s: %s", v.newest(), s.Source.Err)
	} else if age, late := v.sourceLate(); late {
		out.Old = true
		add("NO NEW WINDOW: the newest ended %s ago", Clock(age))
	}
	if s.Target.Err != "" {
		add("TARGET NOT READ: %s", s.Target.Err)
	}
	if age, late := v.undecided(); late {
		add("NOBODY HAS DECIDED FOR %s%s: is canaryctl run still running?", Clock(age), last(s.Decider.Who))
	}
	if s.Target.By != "" && s.Outcome.Why == ladder.WhyDrift {
		add("the target holds %s, last changed by %s", s.Target.Weight, s.Target.By)
	}
	if s.Outcome.Overdue {
		add("OVERDUE: this step takes longer than max_wait_min")
	}
	if r := s.Record; r != nil && r.Escalated && s.Outcome.Locked {
		add("ESCALATED: the probes failed as well; it stays at 0 %% until a person decides")
	}
}

// newest says how old the newest figures are.
func (v *viewer) newest() string {
	if v.s.Source.Newest.IsZero() {
		return "no window has been seen"
	}
	return "newest figures " + Clock(v.now.Sub(v.s.Source.Newest)) + " old"
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

// undecided reports whether a release that somebody must watch is left alone.
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

func last(who string) string {
	if who == "" {
		return ""
	}
	return " (last: " + who + ")"
}
