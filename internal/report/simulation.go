package report

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

// Simulation is one replay with what was expected of it.
type Simulation struct {
	Name         string
	Scene        string // "": the whole service
	About        string // one line; may be empty
	Plan         *ladder.Plan
	Outcome      *simulate.Outcome
	Recorded     *RecordedShare
	Expectations []Expectation
}

// RecordedShare tells the share that recorded windows really had, whatever
// the ladder's was.
type RecordedShare struct {
	Share   float64
	Known   bool // false: there were no windows of stable to compare with
	Thinned bool // the windows were thinned to the ladder's share
}

// schemaVersion is that of every JSON document of this package. It rises when
// a field changes its meaning or goes away, not when one is added.
const schemaVersion = 1

// SimulationJSON is the JSON form of a Simulation (DESIGN section 10).
type SimulationJSON struct {
	Schema       int            `json:"schema"`
	Scenario     string         `json:"scenario"`
	Scene        string         `json:"scene,omitempty"`
	Service      string         `json:"service"`
	Start        string         `json:"start"`
	Minutes      int            `json:"minutes"`
	Gaps         int            `json:"gaps"`
	Requests     requestsJSON   `json:"requests"`
	Recorded     *float64       `json:"recorded_pct,omitempty"`
	Events       []eventJSON    `json:"events"`
	Rollbacks    []rollbackJSON `json:"rollbacks"`
	Decisions    []decisionJSON `json:"decisions"`
	Exposure     exposureJSON   `json:"exposure"`
	Expectations []Expectation  `json:"expectations"`
	Final        finalJSON      `json:"final"`
}

type requestsJSON struct {
	Canary int64 `json:"canary"`
	Stable int64 `json:"stable"`
}

type eventJSON struct {
	Minute    int     `json:"minute"`
	T         string  `json:"t"`
	From      string  `json:"from"`
	To        string  `json:"to"`
	Signal    string  `json:"signal"`
	Reason    string  `json:"reason"`
	Pct       float64 `json:"pct"` // the share before
	Escalated bool    `json:"escalated"`
	Locked    bool    `json:"locked"`
}

type rollbackJSON struct {
	Minute  int      `json:"minute"`
	T       string   `json:"t"`
	Signal  string   `json:"signal"`
	Value   *float64 `json:"value"` // null: a person's rollback rests on no figure
	Limit   *float64 `json:"limit"`
	Samples int64    `json:"samples"`
	RuleJSON
	Reason       string            `json:"reason"`
	By           string            `json:"by"` // breaker or gate; person in the journal of a live release
	Pct          float64           `json:"pct"`
	Step         int               `json:"step"`
	Attempt      int               `json:"attempt"`
	Escalated    bool              `json:"escalated"`
	Locked       bool              `json:"locked"`
	Windows      *windowsJSON      `json:"windows"` // those it rests on; null for a gate, which rests on the whole step, and for a person
	Exposure     release.Exposure  `json:"exposure"`
	SinceFault   *release.Exposure `json:"exposure_since_fault"`
	ConfigDigest string            `json:"config_digest"`
}

// RuleJSON says which rule set a limit, where it is not the published one.
type RuleJSON struct {
	Form          string  `json:"form,omitempty"`
	Sigmas        float64 `json:"sigmas,omitempty"` // how far the limit lies from its reference, where noise set it
	ControlSolved int64   `json:"control_solved,omitempty"`
	ControlJudged int64   `json:"control_judged,omitempty"`
}

func ruleOf(f *release.Finding) RuleJSON {
	return RuleJSON{Form: f.Form.String(), Sigmas: f.Sigmas, ControlSolved: f.ControlSolved, ControlJudged: f.ControlJudged}
}

type windowsJSON struct {
	First string `json:"first"`
	Last  string `json:"last"`
}

type decisionJSON struct {
	Minute   int     `json:"minute"`
	T        string  `json:"t"`
	Decision string  `json:"decision"`
	Step     int     `json:"step"`
	Pct      float64 `json:"pct"` // the share after
	Attempt  int     `json:"attempt"`
	Reason   string  `json:"reason"`
}

type exposureJSON struct {
	release.Exposure
	SinceFault *release.Exposure `json:"since_fault"`
	// DelayMinutes is from the fault's start to the end of the window that tripped.
	DelayMinutes *float64 `json:"detection_delay_min"`
}

type finalJSON struct {
	State     string        `json:"state"`
	Pct       float64       `json:"pct"`
	Locked    bool          `json:"locked"`
	Decision  string        `json:"decision"`
	Step      int           `json:"step"`
	Attempt   int           `json:"attempt"`
	Reason    string        `json:"reason"`
	Remaining *int64        `json:"remaining_s"` // null: nobody can say
	Verdicts  []VerdictJSON `json:"verdicts"`
}

// VerdictJSON is one signal's verdict in JSON.
type VerdictJSON struct {
	Signal  string   `json:"signal"`
	Verdict string   `json:"verdict"`
	Value   *float64 `json:"value"` // null: no data
	Limit   float64  `json:"limit"`
	Samples int64    `json:"samples"`
	RuleJSON
	Needed    int64 `json:"needed"`
	WouldFail bool  `json:"would_fail,omitempty"` // observed: it decides nothing
}

// JSON returns the simulation's document.
func (s *Simulation) JSON() SimulationJSON {
	o := s.Outcome
	doc := SimulationJSON{
		Schema: schemaVersion, Scenario: s.Name, Scene: s.Scene, Service: s.Plan.Service, Start: stamp(o.Start),
		Minutes: int(time.Duration(o.Ticks) * o.Span / time.Minute), Gaps: o.Gaps,
		Requests: requestsJSON{Canary: o.Canary, Stable: o.Stable},
		Events:   []eventJSON{}, Rollbacks: []rollbackJSON{}, Decisions: []decisionJSON{},
		Exposure:     exposureJSON{Exposure: o.Exposure, SinceFault: o.SinceBad},
		Expectations: s.Expectations, Final: final(&o.Last, o),
	}
	if doc.Expectations == nil {
		doc.Expectations = []Expectation{}
	}
	if s.Recorded != nil && s.Recorded.Known {
		doc.Recorded = &s.Recorded.Share
	}
	if o.Delay != nil {
		doc.Exposure.DelayMinutes = new(o.Delay.Minutes())
	}
	for i := range o.Events {
		doc.Events = append(doc.Events, eventOf(&o.Events[i]))
	}
	for i := range o.Rollbacks {
		doc.Rollbacks = append(doc.Rollbacks, rollbackOf(&o.Rollbacks[i]))
	}
	for i := range o.Moves {
		doc.Decisions = append(doc.Decisions, decisionOf(&o.Moves[i]))
	}
	return doc
}

func eventOf(e *simulate.Event) eventJSON {
	return eventJSON{
		Minute: e.Minute, T: stamp(e.T), From: e.From.String(), To: e.To.String(), Signal: e.Finding.Signal.String(),
		Reason: e.Finding.String(), Pct: pct(e.Before), Escalated: e.Escalated, Locked: e.Locked,
	}
}

func rollbackOf(r *simulate.Rollback) rollbackJSON {
	out := rollbackJSON{
		Minute: r.Minute, T: stamp(r.T), Signal: r.Finding.Signal.String(), Value: &r.Finding.Value, Limit: &r.Finding.Limit,
		Samples: r.Finding.Of, RuleJSON: ruleOf(&r.Finding), Reason: r.Finding.String(), By: "breaker", Pct: pct(r.Share), Step: r.Step + 1, Attempt: r.Attempt,
		Escalated: r.Escalated, Locked: r.Locked, Exposure: r.Exposure, SinceFault: r.SinceBad, ConfigDigest: r.Digest,
	}
	switch {
	case r.By != "":
		out.By, out.Signal, out.Reason, out.Value, out.Limit = "person", "", byHand(r), nil, nil
	case r.Gate:
		out.By = "gate"
	default:
		out.Windows = &windowsJSON{First: stamp(r.First), Last: stamp(r.Last)}
	}
	return out
}

// byHand says who rolled back, and why if they said so.
func byHand(r *simulate.Rollback) string {
	text := "rolled back by " + r.By
	if r.Words != "" {
		text += ": " + r.Words
	}
	return text
}

func decisionOf(m *simulate.Move) decisionJSON {
	return decisionJSON{
		Minute: m.Minute, T: stamp(m.T), Decision: m.Move.String(), Step: m.Step + 1, Pct: pct(m.Weight), Attempt: m.Attempt,
		Reason: m.Reason(),
	}
}

func final(d *ladder.Decision, o *simulate.Outcome) finalJSON {
	f := finalJSON{
		State: d.Phase.String(), Pct: pct(d.Weight), Locked: o.State.Locked(),
		Decision: d.Move.String(), Step: d.Step + 1, Attempt: d.Attempt, Reason: d.Reason(), Verdicts: Verdicts(d),
	}
	if left, ok := d.Remaining(); ok {
		f.Remaining = new(int64(left / time.Second))
	}
	return f
}

// Verdicts lists the signals that the decision looked at.
func Verdicts(d *ladder.Decision) []VerdictJSON {
	out := []VerdictJSON{}
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if !v.Looked {
			continue
		}
		j := VerdictJSON{
			Signal: v.Finding.Signal.String(), Verdict: v.Verdict.String(), Limit: v.Finding.Limit,
			Samples: v.Finding.Of, RuleJSON: ruleOf(&v.Finding), Needed: v.MinOf, WouldFail: !v.Needed && v.Verdict == release.Fail,
		}
		if v.Finding.Of > 0 {
			j.Value = &v.Finding.Value
		}
		out = append(out, j)
	}
	return out
}
