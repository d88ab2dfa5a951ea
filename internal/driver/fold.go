package driver

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// MismatchError says that a line of the journal is not what its own evidence
// leads to.
type MismatchError struct {
	Line int64
	What string
}

// Error implements error.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("line %d: %s", e.Line, e.What)
}

// errNoConfig says that a line names a configuration that no line before it
// has.
var errNoConfig = errors.New("the line names a configuration that is not in the journal")

// plans looks up the rules of a configuration by its id.
type plans func(id string) (*ladder.Plan, error)

// fold takes the next line of the journal into the release. Decisions and
// commands are made again from the evidence in the line, and what does not come
// out the same is a *MismatchError.
func (r *Release) fold(e *journal.Entry, rules plans) error {
	r.marked(e)
	var err error
	switch e.Kind {
	case journal.Config:
		r.configured(e.Configured)
	case journal.Decide:
		err = r.decideAgain(e, rules)
	case journal.Command:
		err = r.commandAgain(e, rules)
	case journal.Write:
		r.wrote(e)
	case journal.Record:
		r.Record, r.Written = e.Record, true
	case journal.Tell:
		r.told(e.Told)
	case journal.Hook:
		r.hooked(e)
	case journal.Adopt:
		err = r.adopt(e)
	case journal.Moved:
		r.Target = e.Target
	case journal.Note:
	default:
		err = &MismatchError{Line: e.N, What: fmt.Sprintf("unknown kind %q: written by a newer canaryctl?", e.Kind)}
	}
	return err
}

// decideAgain makes a decision of the journal again, on the release's own
// state: after an error the release is of no use.
func (r *Release) decideAgain(e *journal.Entry, rules plans) error {
	p, err := rules(e.Decided.Config)
	if err != nil {
		return err
	}
	st, was := &r.Ladder, beforeOf(&r.Ladder)
	d := ladder.Decide(p, st, e.Decided.Evidence(), e.Decided.Now)
	if err := same(e.N, journal.OutcomeOf(&d, st), e.Decided.Outcome, st, e.Decided.State); err != nil {
		return err
	}
	r.decided(e, &d, was, st)
	return nil
}

// commandAgain carries out a command of the journal again.
func (r *Release) commandAgain(e *journal.Entry, rules plans) error {
	p, err := rules(e.Command.Config)
	if err != nil {
		return err
	}
	st, err := clone(&r.Ladder)
	if err != nil {
		return err
	}
	was := beforeOf(&r.Ladder)
	d, out, err := apply(p, st, &r.Last, e.Command.Command)
	if err != nil {
		return &MismatchError{Line: e.N, What: fmt.Sprintf("the command %s was not possible here: %v", e.Command.Verb, err)}
	}
	if err := same(e.N, out, e.Command.Outcome, st, e.Command.State); err != nil {
		return err
	}
	r.commanded(e, &d, was, st)
	return nil
}

// apply carries out a command on a state; last is the newest decision.
func apply(p *ladder.Plan, st *ladder.State, last *journal.Outcome, c ladder.Command) (ladder.Decision, journal.Outcome, error) {
	shown := ladder.Decision{Move: last.Move, Verdict: last.Verdict}
	d, err := ladder.Apply(p, st, &shown, c)
	if err != nil {
		return d, journal.Outcome{}, err
	}
	out := journal.OutcomeOf(&d, st)
	if c.Verb != ladder.DoRollBack { // the others decide nothing: where the release stands is what the last decision said
		out = *last
		out.T, out.Write, out.Event = c.At, false, nil
		out.Stage, out.Locked, out.Paused, out.Attempt, out.Weight = st.Stage, st.Locked(), st.Paused, st.Attempt, st.Weight
		out.Step, out.Phase = st.Step+1, st.Breaker.Phase
		out.Reason = done[c.Verb] + " by " + c.By
		if c.Reason != "" {
			out.Reason += ": " + c.Reason
		}
		if c.Verb != ladder.DoPause && c.Verb != ladder.DoSwap {
			out.Why, out.Move = ladder.WhyNone, release.Hold // what held it was the person's to clear
		}
		if st.Paused || c.Verb == ladder.DoClearLock {
			out.LeftS = nil
		}
	}
	return d, out, nil
}

// done says in a word what a command did.
var done = map[ladder.Verb]string{
	ladder.DoPause: "paused", ladder.DoResume: "resumed", ladder.DoApprove: "approved", ladder.DoClearLock: "lock cleared",
	ladder.DoAcceptConfig: "configuration accepted", ladder.DoRestart: "given up for another candidate", ladder.DoSwap: "versions exchanged",
}

// same compares what was derived again with what the line says.
func same(line int64, got, want journal.Outcome, st *ladder.State, digest string) error {
	a, err := json.Marshal(got)
	if err != nil {
		return err
	}
	b, err := json.Marshal(want)
	if err != nil {
		return err
	}
	if string(a) != string(b) {
		return &MismatchError{Line: line, What: fmt.Sprintf("the evidence leads to %s (%s), the line says %s (%s)", got.Move, got.Reason, want.Move, want.Reason)}
	}
	now, err := stateDigest(st)
	if err != nil {
		return err
	}
	if now != digest {
		return &MismatchError{Line: line, What: "the evidence leads to another state than the line says"}
	}
	return nil
}

// minutesAgo is how long before now a time was, for messages.
func minutesAgo(t, now time.Time) string { return release.Minutes(now.Sub(t).Truncate(time.Minute)) }
