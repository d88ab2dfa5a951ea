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
	s, err := d.session(ctx)
	if err != nil {
		return nil, err
	}
	res, err := s.command(ctx, c)
	return res, errors.Join(err, s.close())
}

// mostCommands bounds how often a command is given anew because another machine
// has moved the release meanwhile.
const mostCommands = 5

// command gives a person's word. Where the target keeps the state it counts
// only once it is there: what another machine put there first is taken over,
// and the word is given to that.
func (s *session) command(ctx context.Context, c ladder.Command) (*Result, error) {
	var err error
	for range mostCommands {
		if err = s.commandOnce(ctx, c); err == nil {
			break
		}
		if _, lost := errors.AsType[*target.ConflictError](err); !lost {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	s.after(ctx)
	s.told = &s.rel.Last
	return s.result(), errors.Join(s.err, s.save())
}

func (s *session) commandOnce(ctx context.Context, c ladder.Command) error {
	s.sight = &sight{line: s.rel.Head.N, targetErr: ErrUnread}
	if s.d.o.Target != nil && s.d.o.Target.KeepsState() {
		s.read(ctx)
		if s.sight.targetErr != nil {
			return s.sight.targetErr
		}
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	moved := false
	if c.Verb == ladder.DoAcceptConfig {
		var err error
		if moved, err = s.acceptTarget(); err != nil {
			return err
		}
	}
	if _, err := s.commanded(c); err != nil && !(moved && errors.Is(err, ladder.ErrConfigIsSame)) {
		return err
	}
	return s.publish(ctx)
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
	if c.Verb == ladder.DoRollBack && !s.rel.unfinished(was) {
		s.closeRecord()
	}
	err = s.append(line)
	if err != nil && c.Verb == ladder.DoRollBack && !isLost(err) {
		s.rel.commanded(line, &dec, was, st)
		s.err, err = errors.Join(s.err, err), nil
	}
	return dec, err
}

// Shown is what somebody was shown who approves. What is zero is whatever waits;
// the rest must be what does.
type Shown struct {
	Release string // its id
	Step    int    // from 1
	Attempt int
	Digest  string           // of the configuration that it runs under
	Verdict *release.Verdict // that no verdict since is worse than
}

// Approve looks once more and gives a person's word for the step that waits for
// it. Where nothing waits it does nothing: it takes no step itself.
func (d *Driver) Approve(ctx context.Context, shown Shown, reason string) (*Result, error) {
	res, err := d.Peek(ctx)
	if err != nil {
		return nil, err
	}
	if err := shown.awaits(res); err != nil {
		return res, err
	}
	if res, err = d.Promote(ctx); err != nil { // what the person was shown stands in the journal
		return nil, err
	}
	if err := shown.awaits(res); err != nil {
		return res, err
	}
	l := &res.Release.Ladder
	return d.Command(ctx, ladder.Command{Verb: ladder.DoApprove, Reason: reason, Attempt: l.Attempt, Step: l.Step, Digest: l.Digest})
}

// awaits checks that what an approval is for waits for it.
func (x *Shown) awaits(res *Result) error {
	r := res.Release
	if x.Release != "" && !sameRelease(x.Release, r.Candidate) {
		return fmt.Errorf("the release under way is %s, not %s: %w", r.ID(), x.Release, ladder.ErrOtherStep)
	}
	if x.Attempt != 0 && x.Attempt != r.Ladder.Attempt {
		return fmt.Errorf("the release is in attempt %d, not %d: %w", r.Ladder.Attempt, x.Attempt, ladder.ErrOtherStep)
	}
	if x.Step != 0 && x.Step != r.Ladder.Step+1 {
		return fmt.Errorf("the release is at step %d, not %d: %w", r.Ladder.Step+1, x.Step, ladder.ErrOtherStep)
	}
	if x.Digest != "" && x.Digest != r.Ladder.Digest {
		return fmt.Errorf("the release runs under another configuration than the one that was shown: %w", ladder.ErrOtherStep)
	}
	if res.Outcome.Move != release.AwaitApproval {
		return ladder.ErrNotAwaiting
	}
	if v := res.Outcome.Verdict; x.Verdict != nil && v.Outranks(*x.Verdict) {
		return fmt.Errorf("the verdict is %s now, and was %s when it was shown: %w", v, *x.Verdict, ladder.ErrNotAwaiting)
	}
	return nil
}

// sameRelease compares an id that a person gave with a release's.
func sameRelease(id, candidate string) bool {
	return len(id) >= 6 && len(id) <= len(candidate) && candidate[:len(id)] == id || id == journal.Brief(candidate)
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
	if err := s.takeOver(); err != nil { // the rollback writes a state over it that can be read
		s.d.o.Say("%v", err)
		s.note(&journal.Entry{Kind: journal.Note, Note: err.Error()})
	}
	if err := s.configure(); err != nil {
		s.err = errors.Join(s.err, err)
	}
	if s.isRolledBack() {
		return s.nothing(ctx)
	}
	c := ladder.Command{Verb: ladder.DoRollBack, Reason: reason}
	if s.sight.targetErr == nil {
		c.Weight = &s.sight.reading.Weight
	}
	dec, err := s.commanded(c)
	if errors.Is(err, ladder.ErrNotStarted) {
		return s.nothing(ctx)
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
	return l.Stage == ladder.RolledBack && !s.rel.Exchange.pending() && l.Pending.Move == release.Hold && s.sight.targetErr == nil && s.sight.reading.Weight.IsZero()
}

// nothing is the end of a rollback that has nothing to do, where that is known:
// nothing but what an earlier one, that was broken off, has left to be recorded,
// told and run.
func (s *session) nothing(ctx context.Context) (*Result, error) {
	if s.sight.targetErr != nil {
		return nil, s.sight.targetErr
	}
	s.after(ctx)
	told := s.rel.Last
	told.Move, told.Why, told.Reason, told.LeftS = release.Hold, ladder.WhyNone, ErrNothing.Error(), nil
	s.told = &told
	return s.result(), errors.Join(ErrNothing, s.save())
}

// openOrReplace opens the journal for a rollback. One that is damaged is put
// aside whole, and a new one begun: a person wants the weight at 0 now. What
// cannot be read or locked for another reason stays where it is, and the
// rollback goes on with what can be read.
func (s *session) openOrReplace(ctx context.Context) {
	err := s.open(ctx)
	if err == nil {
		return
	}
	s.err = err
	if Damaged(err) {
		names, asideErr := s.replaceJournal(ctx)
		s.err = errors.Join(s.err, asideErr)
		if len(names) > 0 && asideErr == nil {
			s.note(&journal.Entry{Kind: journal.Note, Note: fmt.Sprintf("the journal before this one is damaged (%v) and was put aside: %s", err, strings.Join(names, ", "))})
			return
		}
	}
	s.rel = s.d.salvage(ctx)
	s.d.rel = s.rel
	switch {
	case s.log == nil:
	case s.rel.Head == s.log.Head(): // it is whole, and has it all
		s.d.o.Say("%v", err)
		s.err = nil
	default:
		s.dropLog(err)
	}
}

// replaceJournal puts the journal aside, if the release is still this call's,
// and begins another.
func (s *session) replaceJournal(ctx context.Context) (names []string, err error) {
	s.dropLog(nil)
	names, err = s.lease.SetAside(s.d.now())
	if err != nil || len(names) == 0 {
		return names, err
	}
	return names, s.open(ctx)
}

// dropLog goes on without a journal.
func (s *session) dropLog(why error) {
	if s.log != nil {
		s.err = errors.Join(s.err, s.log.Close())
	}
	s.log, s.noLog = nil, why
}
