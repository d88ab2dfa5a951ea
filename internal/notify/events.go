package notify

import (
	"fmt"
	"slices"
)

// words say what an event means, to people. Every event has them.
var words = map[Event]string{
	Started:      "started",
	Advanced:     "advanced",
	Completed:    "completed",
	RolledBack:   "rolled back",
	Locked:       "locked until a person clears it",
	LockCleared:  "lock cleared",
	Incomplete:   "rollback not complete",
	Probing:      "probing",
	Recovered:    "recovered",
	Approval:     "waiting for approval",
	Overdue:      "held longer than allowed",
	Drift:        "weight moved by somebody else",
	DriftOver:    "weight is as it was left",
	Mismatch:     "observed share is not the weight",
	ShareOK:      "observed share is the weight again",
	SourceLost:   "source of evidence lost",
	SourceBack:   "source of evidence back",
	TargetLost:   "target lost",
	TargetBack:   "target back",
	WriteRefused: "target does not take the step",
	Paused:       "paused",
	Resumed:      "resumed",
	HookFailed:   "hook failed",
	Test:         "test message",
}

// eventSet is a set of events; nil is the set of all.
type eventSet map[Event]bool

// parseEvents reads the names of a configuration; none are all.
func parseEvents(names []string) (eventSet, error) {
	if len(names) == 0 {
		return nil, nil
	}
	set := eventSet{}
	for _, name := range names {
		e := Event(name)
		if _, ok := words[e]; !ok {
			return nil, fmt.Errorf("events: %q is no event; the events are %s", name, eventNames())
		}
		set[e] = true
	}
	return set, nil
}

func (s eventSet) has(e Event) bool { return s == nil || s[e] }

// eventNames lists the names, in order.
func eventNames() []Event {
	names := make([]Event, 0, len(words))
	for e := range words {
		names = append(names, e)
	}
	slices.Sort(names)
	return names
}
