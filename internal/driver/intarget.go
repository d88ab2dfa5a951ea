package driver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/notify"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/target"
)

// StateError says that what the target keeps as the release's state cannot be
// read as one.
type StateError struct {
	Target string
	Err    error
}

// Error implements error.
func (e *StateError) Error() string {
	return fmt.Sprintf("the state that %s keeps cannot be read: %v: put back the one before, or canaryctl rollback, which writes a new one", e.Target, e.Err)
}

// Unwrap returns the cause.
func (e *StateError) Unwrap() error { return e.Err }

// parseState reads a state that a target keeps.
func parseState(held []byte) (*Release, error) {
	var in Release
	if err := json.Unmarshal(held, &in); err != nil {
		return nil, err
	}
	if in.Schema != 1 {
		return nil, fmt.Errorf("schema %d, want 1", in.Schema)
	}
	return &in, nil
}

// self names the directory that the release's journal is in.
func (r *Release) self() string {
	if r.Journal == "" {
		return r.Head.Sum // of the first line, or there is none
	}
	return r.Journal
}

// marked takes the name of the journal from its second line.
func (r *Release) marked(e *journal.Entry) {
	if e.N == 2 {
		r.Journal = e.Prev
	}
}

// published is the release as the target keeps it with the next write: what
// another machine needs to go on.
func (r *Release) published() ([]byte, error) {
	out := *r
	out.Published, out.Tried, out.Writer = r.number(), 0, r.self()
	out.Head, out.Journal, out.Outbox, out.Offered = journal.Head{}, "", nil, ""
	b, err := json.Marshal(&out)
	if err != nil {
		return nil, fmt.Errorf("write the release's state for the target: %w", err)
	}
	return b, nil
}

// number is that of the next state that is given to the target.
func (r *Release) number() int64 { return max(r.Published, r.Tried) + 1 }

// kept reports whether a reading shows the state that was given to the target
// last, before the line that says so.
func (r *Release) kept(held []byte) bool {
	if held == nil {
		return false
	}
	in, err := parseState(held)
	return err == nil && in.Published == r.number() && in.Writer == r.self()
}

// ahead returns the state that the target keeps if it is newer than r, else
// nil. The target has the last word: of two states with the same number, both
// written on top of the one before, it took the one that it keeps. What this
// directory gave it and did not read back has nothing new for it.
func (d *Driver) ahead(r *Release, held []byte) (*Release, error) {
	if held == nil || d.o.Target == nil || !d.o.Target.KeepsState() {
		return nil, nil
	}
	in, err := parseState(held)
	if err == nil && in.Service != r.Service {
		err = fmt.Errorf("it is of the service %q", in.Service)
	}
	if err != nil {
		return nil, &StateError{Target: d.o.Target.String(), Err: err}
	}
	own := in.Writer == r.self() && in.Published <= r.Tried
	if own || in.Published < r.Published || in.Published == r.Published && in.Writer == r.Writer {
		return nil, nil
	}
	return in, nil
}

// Where is where the release stands: what this directory knows, or what the
// target keeps if that is newer. It writes nothing.
func (d *Driver) Where(ctx context.Context) (*Release, error) {
	r, err := d.load(ctx)
	if err != nil || d.o.Target == nil || !d.o.Target.KeepsState() {
		return r, err
	}
	reading, err := d.o.Target.Read(ctx)
	if err != nil {
		return nil, err
	}
	in, err := d.ahead(r, reading.State)
	if err != nil || in == nil {
		return r, err
	}
	return in, nil
}

// adopt takes over the state that another machine left in the target. What is
// of this directory stays; its journal may not hold the other's configuration.
func (r *Release) adopt(e *journal.Entry) error {
	in, err := parseState(e.Adopted)
	if err != nil {
		return fmt.Errorf("the state that was taken over from the target: %w", err)
	}
	in.Head, in.Journal, in.Config, in.Outbox = r.Head, r.Journal, r.Config, r.Outbox
	in.Tried = r.Tried
	in.Messages, in.Asked = max(in.Messages, r.Messages), max(in.Asked, r.Asked)
	if in.Digest, err = stateDigest(&in.Ladder); err != nil {
		return err
	}
	*r = *in
	return nil
}

// takeOver adopts the state that the target keeps if it is newer.
func (s *session) takeOver() error {
	if s.sight.targetErr != nil {
		return nil
	}
	in, err := s.d.ahead(s.rel, s.sight.reading.State)
	if err != nil || in == nil {
		return err
	}
	return s.append(&journal.Entry{Kind: journal.Adopt, Adopted: s.sight.reading.State})
}

// essence is what another machine cannot find out by itself: where the release
// stands, and what has been told and done about it. What follows from the
// windows since is not in it: they are read again.
func (r *Release) essence() string {
	l := &r.Ladder
	b, err := json.Marshal(struct {
		Candidate, Digest string
		Stage             ladder.Stage
		Attempt, Step     int
		Weight            release.Weight
		At                time.Time
		Pending           release.Move
		Phase             release.Phase
		Paused            bool
		Approval          *ladder.Approval
		Standing          []notify.Event
		Record            *journal.Rollback
		Exchange          *Exchange
	}{
		l.Candidate, l.Digest, l.Stage, l.Attempt, l.Step, l.Weight, l.At, l.Pending.Move, l.Breaker.Phase, l.Paused, l.Approval,
		r.Standing, r.settledRecord(), r.Exchange,
	})
	if err != nil {
		return "" // plain fields; the target is given the state once more than needed
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// settledRecord is the newest rollback without what still grows of it.
func (r *Release) settledRecord() *journal.Rollback {
	if r.Record == nil || r.Record.Final {
		return r.Record
	}
	rec := *r.Record
	rec.Exposure = release.Exposure{}
	return &rec
}

// share puts the state into the target where that keeps it and has another:
// after a read-back, a message or a hook, so that no other machine waits,
// tells or runs again what is over. What does not get through is tried with the
// next change.
func (s *session) share(ctx context.Context) {
	t := s.d.o.Target
	if t == nil || !t.KeepsState() || s.sight.targetErr != nil || s.err != nil {
		return
	}
	is := s.rel.essence()
	there := newRelease(s.rel.Service, s.d.o.Dir)
	if held := s.sight.reading.State; held != nil {
		in, err := parseState(held)
		if err != nil {
			return // said before; a rollback has been written over it
		}
		there = in
	}
	if there.essence() == is || s.rel.Offered == is {
		return
	}
	err := s.publish(ctx)
	_, lost := errors.AsType[*target.ConflictError](err)
	_, away := errors.AsType[*target.UnreachableError](err)
	if err == nil || lost || away {
		s.rel.Offered = ""
	} else {
		s.rel.Offered = is
	}
	if err != nil {
		s.d.o.Say("%v", err)
	}
}

// publish puts the state into the target and reads it back. The weight stays
// what it is.
func (s *session) publish(ctx context.Context) error {
	t := s.d.o.Target
	if t == nil || !t.KeepsState() {
		return nil
	}
	b, err := s.rel.published()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forwardTime)
	defer cancel()
	l := &s.rel.Ladder
	c := target.Change{
		To: s.sight.reading.Weight, State: b, Service: s.rel.Service, Release: s.rel.Candidate, Attempt: l.Attempt, Step: l.Step + 1,
		Move: "state", Reason: s.rel.Last.Reason, Token: s.lease.Token(), Evidence: s.rel.Head.Sum,
		Key: s.rel.name() + "/state/" + journal.Brief(s.rel.Head.Sum),
	}
	if err := s.lease.Check(); err != nil {
		return err
	}
	err = t.Write(ctx, s.sight.reading, c)
	done := s.keeps(ctx, b, err == nil)
	if done {
		err = nil
	} else if err == nil {
		err = fmt.Errorf("%s said that it took the release's state and does not show it", t)
	}
	w := &journal.Wrote{Move: release.Hold, To: c.To, Key: c.Key, ReadBack: done, Kept: done, Tries: 1, Held: s.held()}
	if done {
		w.At = s.sight.readAt
	} else {
		w.Error = err.Error()
		_, w.Conflict = errors.AsType[*target.ConflictError](err)
	}
	if appendErr := s.append(&journal.Entry{Kind: journal.Write, Wrote: w}); appendErr != nil {
		return errors.Join(err, appendErr)
	}
	if err != nil {
		return fmt.Errorf("the release's state is written here and not in %s: %w", t, err)
	}
	return nil
}

// keeps reads the target until it shows a state, for as long as it may show an
// old one; once where the write failed.
func (s *session) keeps(ctx context.Context, state []byte, patient bool) bool {
	patience := s.d.o.Target.ReadBack()
	if !patient {
		patience = 0
	}
	for until := s.d.now().Add(patience); ; {
		s.read(ctx)
		switch {
		case s.sight.targetErr != nil:
			return false
		case bytes.Equal(s.sight.reading.State, state):
			return true
		case !s.d.now().Before(until), s.d.o.Wait(ctx, firstPause) != nil:
			return false
		}
	}
}

// held is the newest reading as the journal keeps it.
func (s *session) held() journal.Observed {
	return journal.Observed{Weight: s.sight.reading.Weight, At: s.sight.readAt, Known: s.sight.targetErr == nil}
}
