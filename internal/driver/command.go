package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/target"
)

// ErrNothing says that there is nothing to roll back: the weight is 0, and was
// read as 0 just now.
var ErrNothing = errors.New("nothing to roll back: the weight was read as 0, and no release is climbing")

// Command carries out a person's word: all but a rollback, which is
// [Driver.RollBack]. The target is written only where it keeps the release's
// state.
func (d *Driver) Command(ctx context.Context, c ladder.Command) (*Result, error) {
	s, err := d.session(ctx, false)
	if err != nil {
		return nil, err
	}
	res, err := s.command(ctx, c)
	return res, errors.Join(err, s.close())
}

func (s *session) command(ctx context.Context, c ladder.Command) (*Result, error) {
	s.sight = &sight{line: s.rel.Head.N, targetErr: ErrUnread}
	if s.d.o.Target != nil && s.d.o.Target.KeepsState() {
		s.read(ctx)
		if s.sight.targetErr != nil {
			return nil, s.sight.targetErr
		}
	}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	if _, err := s.commanded(c); err != nil {
		return nil, err
	}
	if err := s.publish(ctx); err != nil {
		return nil, err
	}
	s.after(ctx)
	s.told = &s.rel.Last
	return s.result(), errors.Join(s.err, s.save())
}

// ErrUnread stands for a target that a command did not ask.
var ErrUnread = errors.New("the target was not read")

func (s *session) read(ctx context.Context) {
	s.sight.reading, s.sight.targetErr = s.d.o.Target.Read(ctx)
	s.sight.readAt = s.d.now()
}

// commanded writes a person's word down and lets it take effect. A rollback
// takes effect even if it cannot be written down.
func (s *session) commanded(c ladder.Command) (ladder.Decision, error) {
	c.At = s.d.now()
	if c.By == "" {
		c.By = s.d.o.Who.Who
	}
	st, err := clone(&s.rel.Ladder)
	if err != nil {
		return ladder.Decision{}, err
	}
	was := beforeOf(&s.rel.Ladder)
	dec, out, err := apply(s.d.plan, st, &s.rel.Last, c)
	if err != nil {
		return dec, err
	}
	line := &journal.Entry{Kind: journal.Command, Command: &journal.Commanded{Command: c, Config: s.d.conf, Outcome: out}}
	if line.Command.State, err = stateDigest(st); err != nil {
		return dec, err
	}
	err = s.append(line)
	if err != nil && c.Verb == ladder.DoRollBack && !isLost(err) {
		s.rel.commanded(line, &dec, was, st)
		s.err, err = errors.Join(s.err, err), nil
	}
	return dec, err
}

// publish puts the state into the target where that keeps it, so that another
// machine sees a pause or an approval. The weight stays what it is.
func (s *session) publish(ctx context.Context) error {
	if s.d.o.Target == nil || !s.d.o.Target.KeepsState() {
		return nil
	}
	s.rel.Published++
	b, err := s.rel.published()
	if err != nil {
		return fmt.Errorf("write the release's state for the target: %w", err)
	}
	l := &s.rel.Ladder
	err = s.d.o.Target.Write(ctx, s.sight.reading, target.Change{
		To: s.sight.reading.Weight, State: b, Service: s.rel.Service, Release: s.rel.Candidate, Attempt: l.Attempt, Step: l.Step + 1,
		Move: "state", Reason: s.rel.Last.Reason, Token: s.lease.Token(), Evidence: s.rel.Head.Sum,
		Key: s.rel.ID() + "/state/" + fmt.Sprint(s.rel.Head.N),
	})
	if err != nil {
		return fmt.Errorf("the release's state is written here and not in %s: %w", s.d.o.Target, err)
	}
	return nil
}

// Approve looks once more, as [Driver.Promote] would without moving, and gives
// a person's word for the step that waits for it. A step of 0 and an empty
// release are whatever waits; others must be the ones that do.
func (d *Driver) Approve(ctx context.Context, id string, step int, reason string) (*Result, error) {
	res, err := d.Promote(ctx)
	if err != nil {
		return nil, err
	}
	r := res.Release
	if id != "" && !sameRelease(id, r.Candidate) {
		return res, fmt.Errorf("the release under way is %s, not %s: %w", r.ID(), id, ladder.ErrOtherStep)
	}
	if step != 0 && step != r.Ladder.Step+1 {
		return res, fmt.Errorf("the release is at step %d, not %d: %w", r.Ladder.Step+1, step, ladder.ErrOtherStep)
	}
	if res.Outcome.Move != release.AwaitApproval {
		return res, ladder.ErrNotAwaiting
	}
	return d.Command(ctx, ladder.Command{Verb: ladder.DoApprove, Reason: reason, Attempt: r.Ladder.Attempt, Step: r.Ladder.Step, Digest: r.Ladder.Digest})
}

// sameRelease compares an id that a person gave with a release's.
func sameRelease(id, candidate string) bool {
	return len(id) >= 6 && len(id) <= len(candidate) && candidate[:len(id)] == id || id == short(candidate)
}

// RollBack takes the weight to 0 for a person and reads it back. It takes the
// release over from whatever else is at it. A journal that is damaged, or a
// disk that takes no more, does not stop it.
func (d *Driver) RollBack(ctx context.Context, reason string) (*Result, error) {
	wait, cancel := context.WithTimeout(ctx, preemptWait)
	lease, err := d.o.Dir.Preempt(wait, d.holder())
	cancel()
	if err != nil {
		return nil, err
	}
	s := &session{d: d, lease: lease}
	res, err := s.rollBack(context.WithoutCancel(ctx), reason)
	return res, errors.Join(err, s.close())
}

// preemptWait is how long a rollback waits for the holder to let go: as long as
// one write of it may take.
const preemptWait = 15 * time.Second

func (s *session) rollBack(ctx context.Context, reason string) (*Result, error) {
	s.sight = &sight{unasked: true}
	s.openOrReplace(ctx)
	s.read(ctx)
	if err := s.prepare(ctx); err != nil {
		s.err = errors.Join(s.err, err)
	}
	if s.isRolledBack() {
		return s.nothing()
	}
	c := ladder.Command{Verb: ladder.DoRollBack, Reason: reason}
	if s.sight.targetErr == nil {
		c.Weight = &s.sight.reading.Weight
	}
	dec, err := s.commanded(c)
	if errors.Is(err, ladder.ErrNotStarted) {
		return s.nothing()
	}
	if err != nil {
		return nil, err
	}
	s.pick(&s.rel.Last)
	done, err := s.act(ctx, &dec)
	if err == nil && done {
		err = s.rounds(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.after(ctx)
	s.err = errors.Join(s.err, s.save())
	return s.result(), nil
}

// isRolledBack reports whether a person has rolled back before, and the weight
// was read as 0 just now.
func (s *session) isRolledBack() bool {
	l := &s.rel.Ladder
	return l.Stage == ladder.RolledBack && l.Pending.Move == release.Hold && s.sight.targetErr == nil && s.sight.reading.Weight.IsZero()
}

// nothing is the end of a rollback that has nothing to do, where that is known.
func (s *session) nothing() (*Result, error) {
	if s.sight.targetErr != nil {
		return nil, s.sight.targetErr
	}
	s.told = &s.rel.Last
	return s.result(), errors.Join(ErrNothing, s.save())
}

// openOrReplace opens the journal for a rollback. One that is damaged is put
// aside whole, and a new one begun: a person wants the weight at 0 now.
func (s *session) openOrReplace(ctx context.Context) {
	err := s.open(ctx)
	if err == nil {
		return
	}
	s.err = err
	if s.log != nil {
		s.err = errors.Join(s.err, s.log.Close())
		s.log = nil
	}
	s.rel = newRelease(s.d.o.Config.TargetService)
	names, asideErr := s.lease.SetAside(s.d.now())
	if asideErr != nil || len(names) == 0 {
		s.err = errors.Join(s.err, asideErr)
		return
	}
	if openErr := s.open(ctx); openErr != nil {
		s.err = errors.Join(s.err, openErr)
		return
	}
	s.note(&journal.Entry{Kind: journal.Note, Note: fmt.Sprintf("the journal before this one is damaged (%v) and was put aside: %s", err, strings.Join(names, ", "))})
}
