package notify

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/canaryctl/canaryctl/internal/pattern"
)

const (
	alertsPath = "/api/v2/alerts"
	// alertLife is how long an alert stands that nothing ends. Alertmanager
	// itself ends one without an end after five minutes, and a transition is
	// told once.
	alertLife = 7 * 24 * time.Hour
	testLife  = 5 * time.Minute
)

// alert is a condition that an event begins and others end.
type alert struct {
	event    Event
	name     string
	severity string
	ends     []Event
}

// moving are the events of a release that moves on: nothing holds it.
var moving = []Event{Started, Advanced, Completed}

// alerts maps events to alerts. An end that nothing began is harmless:
// Alertmanager tells nobody of it.
var alerts = []alert{
	{RolledBack, "CanaryRolledBack", "critical", with(moving, Recovered, LockCleared)},
	{Locked, "CanaryLocked", "critical", with(moving, Recovered, LockCleared)},
	{Incomplete, "CanaryRollbackIncomplete", "critical", with(moving, RolledBack, Locked, Recovered)},
	{Drift, "CanaryDrift", "critical", with(moving, RolledBack, Locked, DriftOver)},
	{Mismatch, "CanaryShareMismatch", "warning", with(moving, RolledBack, Locked, ShareOK)},
	{SourceLost, "CanarySourceLost", "warning", with(moving, RolledBack, Locked, SourceBack)},
	{TargetLost, "CanaryTargetLost", "critical", with(moving, RolledBack, Locked, Probing, TargetBack)},
	{WriteRefused, "CanaryWriteRefused", "warning", with(moving, RolledBack, Locked)},
	{Overdue, "CanaryOverdue", "warning", with(moving, RolledBack, Locked)},
	{Approval, "CanaryAwaitingApproval", "info", with(moving, RolledBack, Locked)},
	{Paused, "CanaryPaused", "info", with(moving, Resumed)},
	{HookFailed, "CanaryHookFailed", "critical", []Event{Completed}},
	{Test, "CanaryTest", "info", nil},
}

func with(events []Event, more ...Event) []Event { return append(slices.Clone(events), more...) }

// alertmanager posts alerts to its API v2. Success is 2xx.
type alertmanager struct {
	labels map[string]string
	events eventSet
}

var labelName = pattern.New(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

func newAlertmanager(labels map[string]string, events eventSet) (*alertmanager, error) {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if !labelName.MatchString(name) || name == "alertname" || name == "service" {
			return nil, fmt.Errorf("labels: %q cannot be set: a label is letters, digits and _, and alertname and service are set already", name)
		}
	}
	for _, e := range slices.Sorted(maps.Keys(events)) {
		if !slices.ContainsFunc(alerts, func(al alert) bool { return al.event == e }) {
			return nil, fmt.Errorf("events: no alert is made of %s: name the events whose alerts are wanted; what ends them is sent with them", e)
		}
	}
	return &alertmanager{labels: labels, events: events}, nil
}

// wants is true for what begins an alert that is asked for, and what ends one.
func (am *alertmanager) wants(e Event) bool {
	return slices.ContainsFunc(alerts, func(al alert) bool {
		return am.events.has(al.event) && (al.event == e || slices.Contains(al.ends, e))
	})
}

type postedAlert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    string            `json:"startsAt,omitempty"` // left out of an end: it then joins the alert it ends
	EndsAt      string            `json:"endsAt"`
	URL         string            `json:"generatorURL,omitempty"`
}

func (am *alertmanager) request(m Message, _ time.Time) (outgoing, error) {
	posted := []postedAlert{}
	for _, al := range alerts {
		switch {
		case al.event == m.Event && (am.events.has(al.event) || m.Event == Test):
			life := alertLife
			if m.Event == Test {
				life = testLife
			}
			posted = append(posted, am.post(al, m, rfc3339(m.Time), rfc3339(m.Time.Add(life))))
		case slices.Contains(al.ends, m.Event) && am.events.has(al.event):
			posted = append(posted, am.post(al, m, "", rfc3339(m.Time)))
		}
	}
	if len(posted) == 0 {
		return outgoing{}, fmt.Errorf("no alert is made of %s", m.Event)
	}
	body, err := encode(posted)
	return outgoing{body: body}, err
}

// post fills an alert. Labels are its identity, so they hold nothing that
// changes between its beginning and its end, such as a figure, a step or a
// release: the next release ends what the last one left.
func (am *alertmanager) post(al alert, m Message, starts, ends string) postedAlert {
	labels := map[string]string{"severity": al.severity}
	maps.Copy(labels, am.labels)
	labels["alertname"] = al.name
	if m.Service != "" {
		labels["service"] = m.Service
	}
	t := readable(m)
	notes := map[string]string{"summary": t.headline, "attempt": strconv.Itoa(m.Attempt)}
	for name, value := range map[string]string{"release": m.Release, "key": m.Key} {
		if value != "" {
			notes[name] = value
		}
	}
	for _, r := range t.rows {
		if name, ok := annotations[r.label]; ok {
			notes[name] = r.value
		}
	}
	return postedAlert{Labels: labels, Annotations: notes, StartsAt: starts, EndsAt: ends, URL: m.RunURL}
}

// annotations are the names of the rows that become annotations.
var annotations = map[string]string{"Reason": "description", "Signal": "signal", "Exposure": "exposure", "Next": "next"}

func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// judge reads Alertmanager's two shapes of error: an object with a message,
// and a bare string.
func (am *alertmanager) judge(a answer) error {
	if err := a.accepted(); err == nil {
		return nil
	}
	var object struct {
		Message string `json:"message"`
	}
	var text string
	if json.Unmarshal(a.body, &text) != nil && json.Unmarshal(a.body, &object) == nil {
		text = object.Message
	}
	return a.refused(a.excerpt(text))
}
