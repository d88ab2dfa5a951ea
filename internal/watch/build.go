package watch

import (
	"errors"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Seen is what a look at a live release gave.
type Seen struct {
	At      time.Time
	Service string
	Config  *config.Config
	Plan    *ladder.Plan
	Result  *driver.Result

	TargetName, SourceName string
	Settle, Span           time.Duration

	Canary, Stable []release.Window // oldest first
	Events         []Event
	Decider        Decider
	Notes          []string
	LookErr        string
}

// Build forms the snapshot of a live release.
func Build(s *Seen) Snapshot {
	r, o := s.Result.Release, &s.Result.Outcome
	snap := Snapshot{
		At: s.At, Service: s.Service, Release: r.ID(), Candidate: r.Candidate, Outcome: *o, Next: r.Next(o), Rungs: rungs(s.Plan),
		Step: stepOf(&r.Ladder), Stage: r.Ladder.Stage, Weight: r.Ladder.Weight, Since: r.Ladder.At, Pending: r.Ladder.Pending,
		Target: target(s), Source: Source{Name: s.SourceName, Newest: s.newest(), Settle: s.Settle},
		Held: heldOf(&r.Ladder, s.At), Swapped: r.Swapped(), Digest: r.Ladder.Digest, LookErr: s.LookErr,
		Decider: s.Decider, Served: r.Exposure.Requests, Record: r.Record, Events: s.Events, Notes: s.Notes,
	}
	snap.Decider.Blind = r.SourceError != ""
	if err := s.Result.SourceErr; err != nil {
		snap.Source.Err = reason(err, s.SourceName)
	}
	snap.Times = timesOf(s.Canary, s.Stable, s.Span)
	k := look{
		at: s.At, plan: s.Plan, outcome: o, since: r.Ladder.At, record: r.Record, config: s.Config, canary: s.Canary, stable: s.Stable,
	}
	snap.Signals = k.signals(snap.Times)
	snap.Source.Canary = newestServed(s.Canary)
	snap.guard(&k)
	return snap
}

// newest is the end of the newest window with requests that was seen: by whoever
// decides, or, as where nobody does, by the view alone.
func (s *Seen) newest() time.Time {
	out := s.Result.Release.Newest
	for _, arm := range [][]release.Window{s.Canary, s.Stable} {
		for i := range arm {
			if end := arm[i].End(); arm[i].Total > 0 && end.After(out) {
				out = end
			}
		}
	}
	return out
}

// guard says what the breaker can do under the limits in force.
func (s *Snapshot) guard(k *look) {
	l := &k.plan.Steps[k.step()].Limits
	for _, r := range l.Rules {
		s.Trips = s.Trips || r.OnFail == release.RollBack && (r.Mode == release.Enforce || r.Mode == release.Required)
	}
	s.Locks = k.plan.Steps[0].Limits.LockOnEscalate
}

// target is what was seen of the target.
func target(s *Seen) Target {
	r := s.Result.Release
	t := Target{Name: s.TargetName, By: r.MovedBy}
	if r.Held.Known {
		t.Weight, t.At = r.Held.Weight, r.Held.At
	}
	if err := s.Result.TargetErr; err != nil && !errors.Is(err, driver.ErrUnread) {
		t.Err = reason(err, s.TargetName)
	}
	return t
}

// reason is an error in a line, without the name that stands beside it.
func reason(err error, name string) string {
	return strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), name+": ")), " ")
}

func rungs(p *ladder.Plan) []Rung {
	out := make([]Rung, len(p.Steps))
	for i := range p.Steps {
		out[i] = Rung{Weight: p.Steps[i].Weight, Hold: p.Steps[i].MinHold, Gates: p.Steps[i].Gates}
	}
	return out
}

// heldOf is how long a step has been held by a time, as the ladder counts it.
func heldOf(st *ladder.State, at time.Time) time.Duration {
	if st.At.IsZero() {
		return 0
	}
	return max(min(at.Sub(st.At), st.Covered), 0)
}

// newestServed is the end of the newest window with requests.
func newestServed(windows []release.Window) time.Time {
	for i := len(windows) - 1; i >= 0; i-- {
		if windows[i].Total > 0 {
			return windows[i].End()
		}
	}
	return time.Time{}
}

// stepOf is the step that a release stands at, from 1.
func stepOf(st *ladder.State) int {
	if st.Stage == ladder.NotStarted {
		return 0
	}
	return st.Step + 1
}
