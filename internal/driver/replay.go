package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

// Past is a journal as [simulate.Replay] takes it.
type Past struct {
	Path string
	// Plan is the rules of the newest line that was read.
	Plan *ladder.Plan
	// Adopted are the lines at which the state of another machine was taken over.
	Adopted []int64

	plans   map[string]*ladder.Plan
	configs map[string]*config.Config
	entry   *journal.Entry // the newest that was read
}

// NewPast names a journal to be replayed.
func NewPast(path string) *Past {
	return &Past{Path: path, plans: map[string]*ladder.Plan{}, configs: map[string]*config.Config{}}
}

// Calls yields the calls of the journal one after the other. An error ends it:
// a *journal.CorruptError or a *[MismatchError] that names the line, or the
// context's.
func (p *Past) Calls(ctx context.Context) iter.Seq2[*simulate.Call, error] {
	return func(yield func(*simulate.Call, error) bool) {
		enough := errors.New("enough")
		err := p.Read(ctx, func(e *journal.Entry) error {
			c, err := p.call(e)
			if err == nil && c != nil && !yield(c, nil) {
				return enough
			}
			return err
		})
		if err != nil && !errors.Is(err, enough) {
			yield(nil, err)
		}
	}
}

// Read calls each for every line, after it has learned the configurations that
// the lines before it hold.
func (p *Past) Read(ctx context.Context, each func(*journal.Entry) error) error {
	return journal.Read(ctx, p.Path, journal.Head{}, func(e *journal.Entry, _ journal.Head) error {
		p.entry = e
		if e.Kind == journal.Config {
			if err := p.learn(e.Configured); err != nil {
				return &MismatchError{Line: e.N, What: err.Error()}
			}
		}
		return each(e)
	})
}

func (p *Past) learn(c *journal.Configured) error {
	if p.plans[c.ID] != nil {
		return nil
	}
	plan, err := planFrom(c)
	if err != nil {
		return err
	}
	p.plans[c.ID] = plan
	p.configs[c.ID], _ = config.Parse("canary.yaml", []byte(c.Text)) // planFrom has read it
	return nil
}

// Config returns a configuration of the journal by its id, without its secrets;
// nil if no line that was read holds it.
func (p *Past) Config(id string) *config.Config { return p.configs[id] }

// ConfigOf returns the configuration that a plan of the journal's calls was made
// of, without its secrets; nil for other plans.
func (p *Past) ConfigOf(plan *ladder.Plan) *config.Config {
	for id, have := range p.plans {
		if have == plan {
			return p.configs[id]
		}
	}
	return nil
}

// call is the call that a line tells of, or nil.
func (p *Past) call(e *journal.Entry) (*simulate.Call, error) {
	switch e.Kind {
	case journal.Decide:
		plan, err := p.rules(e.N, e.Decided.Config)
		return &simulate.Call{Line: e.N, Plan: plan, Now: e.Decided.Now, Evidence: e.Decided.Evidence(), Until: e.Decided.Until}, err
	case journal.Command:
		plan, err := p.rules(e.N, e.Command.Config)
		return &simulate.Call{Line: e.N, Plan: plan, Now: e.Command.At, Command: &e.Command.Command}, err
	case journal.Write:
		if e.Wrote.Abandoned {
			return &simulate.Call{Line: e.N, Now: e.T, Abandoned: true}, nil
		}
	case journal.Adopt:
		var in Release
		if err := json.Unmarshal(e.Adopted, &in); err != nil {
			return nil, &MismatchError{Line: e.N, What: "the state that was taken over cannot be read: " + err.Error()}
		}
		p.Adopted = append(p.Adopted, e.N)
		return &simulate.Call{Line: e.N, Now: e.T, Adopted: &simulate.Adopted{
			State: in.Ladder, Move: in.Last.Move, Verdict: in.Last.Verdict,
			From: in.Exposure.From, To: in.Exposure.To, Served: in.Exposure.Requests,
		}}, nil
	}
	return nil, nil
}

func (p *Past) rules(line int64, id string) (*ladder.Plan, error) {
	if p.plans[id] == nil {
		return nil, &MismatchError{Line: line, What: errNoConfig.Error()}
	}
	p.Plan = p.plans[id]
	return p.Plan, nil
}

// Check holds what a call came to against what its line says: another program
// may have written it, which judged by other rules.
func (p *Past) Check(c *simulate.Call, d *ladder.Decision, st *ladder.State) error {
	var want *journal.Outcome
	got := journal.OutcomeOf(d, st)
	switch e := p.entry; {
	case e.Kind == journal.Decide:
		want = &e.Decided.Outcome
	case e.Kind == journal.Command && c.Command.Verb == ladder.DoRollBack:
		want = &e.Command.Outcome
	default:
		return nil // the others decide nothing
	}
	if got.Move == want.Move && got.Reason == want.Reason && sameEvent(got.Event, want.Event) {
		return nil
	}
	return &MismatchError{Line: c.Line, What: fmt.Sprintf("the evidence leads to %s (%s), the line says %s (%s)", got.Move, got.Reason, want.Move, want.Reason)}
}

func sameEvent(a, b *journal.Event) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := a.Finding, b.Finding
	x.Span, y.Span = 0, 0 // the journal does not keep it
	return a.T.Equal(b.T) && a.From == b.From && a.To == b.To && a.Escalated == b.Escalated && a.Locked == b.Locked && x == y
}

// Lived is what one candidate went through, as windows that can be judged once
// more by other rules.
type Lived struct {
	Candidate      string // digest; "": unnamed
	Config         *config.Config
	Canary, Stable []release.Window
}

// ID is the candidate's id as people see it.
func (l *Lived) ID() string { return journal.Brief(l.Candidate) }

// Windows returns the windows of each candidate, in the order in which they
// were released, with the labels that were known last.
func (p *Past) Windows(ctx context.Context) ([]*Lived, error) {
	var all []*Lived
	err := p.Read(ctx, func(e *journal.Entry) error {
		if e.Kind != journal.Decide {
			return nil
		}
		in := e.Decided
		plan, err := p.rules(e.N, in.Config)
		if err != nil {
			return err
		}
		if n := len(all); n == 0 || all[n-1].Candidate != plan.Candidate && in.Outcome.Why != ladder.WhyOtherCandidate {
			all = append(all, &Lived{Candidate: plan.Candidate})
		}
		l := all[len(all)-1]
		if in.Outcome.Why != ladder.WhyOtherCandidate {
			l.Config = p.Config(in.Config)
		}
		ev := in.Evidence()
		l.Canary, l.Stable = merge(l.Canary, ev.Windows), merge(l.Stable, ev.Stable)
		return nil
	})
	return all, err
}

// merge appends what is newer, and takes what has become known of the rest.
func merge(have, more []release.Window) []release.Window {
	for _, w := range more {
		i := len(have)
		for i > 0 && have[i-1].T.After(w.T) {
			i--
		}
		switch {
		case i == len(have) && (i == 0 || have[i-1].T.Before(w.T)):
			have = append(have, w)
		case i > 0 && have[i-1].T.Equal(w.T):
			have[i-1] = w
		}
	}
	return have
}
