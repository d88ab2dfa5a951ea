package watch

import (
	"fmt"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Lines says what has changed from one snapshot to the next, a line for each
// change in the form of `run`: the time, a word, and what is so now. prev is nil
// for the first one, of which a live release's past is not told again.
func Lines(prev, now *Snapshot) []string {
	if prev == nil {
		prev = &Snapshot{Replay: now.Replay}
		if now.Replay == "" {
			prev.Events = now.Events
		}
		prev.Decider.At = now.At
	}
	changed := moved(prev, now)
	var out []string
	for _, e := range fresh(prev.Events, now.Events) {
		if changed && says(&e, now) {
			if e.Kind == string(journal.Decide) && now.Pending.Move == release.Hold {
				continue // the line of where it stands says the same and more
			}
			changed = false // where it stands has not changed yet, or at a word that is told whole
		}
		out = append(out, line(e.At, e.Kind, e.Text))
	}
	if changed {
		out = append(out, standing(now))
	}
	return append(out, turns(prev, now)...)
}

// says reports whether an event is the decision or the word that a snapshot
// stands on.
func says(e *Event, s *Snapshot) bool {
	word := e.Kind == string(journal.Decide) || e.Kind == string(journal.Command)
	return word && s.Outcome.Reason != "" && strings.Contains(e.Text, s.Outcome.Reason)
}

// line puts a line together.
func line(at time.Time, word, text string) string {
	return fmt.Sprintf("%s  %-14s %s", at.UTC().Format(time.RFC3339), word, strings.Join(strings.Fields(text), " "))
}

// standing is the line that says where a release stands.
func standing(s *Snapshot) string {
	o := &s.Outcome
	word, why := o.Move.String(), o.Reason
	switch {
	case notStarted(s):
		k := SituationOf(s, s.At)
		word, why = "not_started", k.Next+"; "+k.Do
	case ahead(s):
		word = "would " + word
	}
	return fmt.Sprintf("%s  %-14s step %d of %d  %s  %-9s  %s",
		s.At.UTC().Format(time.RFC3339), word, s.Step, o.Steps, s.Weight, o.Phase, strings.Join(strings.Fields(why), " "))
}

// notStarted reports whether no release has put a weight anywhere yet.
func notStarted(s *Snapshot) bool {
	o := &s.Outcome
	return s.Replay == "" && s.Stage == ladder.NotStarted && s.Since.IsZero() && (o.Move == release.Start || o.Move == release.Hold && o.Why == ladder.WhyNone)
}

// ahead reports whether what was decided is what a `promote` would do now, and
// not what was asked for.
func ahead(s *Snapshot) bool {
	return s.Replay == "" && s.Outcome.Write && s.Pending.Move == release.Hold
}

// moved reports whether a release stands otherwise than it did. What the one who
// decides is about to do is said when it is done, unless nobody does it.
func moved(prev, now *Snapshot) bool {
	if key(prev) == key(now) {
		return false
	}
	return !ahead(now) || notStarted(now) || key(prev) == key(&Snapshot{}) || deserted(now)
}

// key is what of a snapshot makes a line of its own: nothing that grows by
// itself.
func key(s *Snapshot) any {
	o := &s.Outcome
	return struct {
		move            release.Move
		why             ladder.Why
		step, attempt   int
		phase           release.Phase
		stage           ladder.Stage
		paused, locked  bool
		weight, pending string
		releaseID       string
		ahead, deserted bool
	}{
		o.Move, o.Why, s.Step, o.Attempt, o.Phase, s.Stage, o.Paused, o.Locked,
		s.Weight.String(), s.Pending.Move.String(), s.Release, ahead(s), ahead(s) && deserted(s),
	}
}

// fresh is the events behind those that were there before.
func fresh(before, now []Event) []Event {
	if len(before) == 0 {
		return now
	}
	last := &before[len(before)-1]
	for i := len(now) - 1; i >= 0; i-- {
		if e := &now[i]; e.Line == last.Line && e.Frame == last.Frame && e.Kind == last.Kind && e.At.Equal(last.At) && e.Text == last.Text {
			return now[i+1:]
		}
	}
	return now // so many that those before have gone
}

// turns says what has begun or ceased to make the rest less than the whole
// truth.
func turns(prev, now *Snapshot) []string {
	var out []string
	turn := func(was, is bool, begun, over, text, calm string) {
		switch {
		case is && !was:
			out = append(out, line(now.At, begun, text))
		case was && !is:
			out = append(out, line(now.At, over, calm))
		}
	}
	age := newestAge(now)
	silent := func(s *Snapshot) bool {
		_, late := (&viewer{s: s, now: s.At}).sourceLate()
		return late && s.Replay == "" && s.Source.Err == ""
	}
	turn(prev.Source.Err != "", now.Source.Err != "", "source_lost", "source_back", now.Source.Name+": "+now.Source.Err+age, now.Source.Name+age)
	if prev.Source.Err == "" && now.Source.Err == "" {
		turn(silent(prev), silent(now), "no_window", "source_back", now.Source.Name+age, now.Source.Name+age)
	}
	turn(prev.Target.Err != "", now.Target.Err != "", "target_unread", "target_read", now.Target.Name+": "+now.Target.Err, now.Target.Name+" holds "+now.Target.Weight.String())
	if now.Outcome.Why != ladder.WhyMismatch { // which is a line already
		turn(prev.Outcome.Off, now.Outcome.Off, "share_mismatch", "share_matches", "the gateway does not follow the weight of "+now.Weight.String()+seenShare(&now.Outcome), "the gateway follows the weight again")
	}
	since := "nobody has decided anything since " + now.Decider.At.UTC().Format(time.RFC3339) + ", and " + now.Weight.String() + " is on the canary"
	turn(deserted(prev), deserted(now), "undecided", "decided", since, "decided again by "+now.Decider.Who)
	return out
}

// newestAge says how old the newest window is.
func newestAge(s *Snapshot) string {
	if s.Source.Newest.IsZero() {
		return ", no window yet"
	}
	return ", newest window " + release.Minutes(s.At.Sub(s.Source.Newest).Round(time.Second)) + " old"
}

// seenShare says what share was seen instead.
func seenShare(o *journal.Outcome) string {
	of := o.Share.Of()
	if of == 0 {
		return ""
	}
	what := "requests"
	if o.Share.Users {
		what = "users a window"
	}
	return fmt.Sprintf(": the canary serves %.3g %% of %d %s", 100*float64(o.Share.Canary)/float64(of), of, what)
}

// deserted reports whether a live release that somebody must watch is left
// alone.
func deserted(s *Snapshot) bool {
	if s.Replay != "" {
		return false
	}
	_, late := (&viewer{s: s, now: s.At}).undecided()
	return late && !s.Decider.Elsewhere // of which nothing is known here
}
