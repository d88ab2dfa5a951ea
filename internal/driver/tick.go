package driver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/state"
	"github.com/canaryctl/canaryctl/internal/target"
)

// Status is what a call came to, as pipelines need it.
type Status uint8

// The statuses.
const (
	Done       Status = iota // started, advanced, completed, or as asked
	Holding                  // held or probing
	Awaiting                 // a person's approval
	RolledBack               // rolled back, cooling down or locked
	Incomplete               // a rollback that was not read back
	Drifted                  // the weight is not what was last read back
	Conflict                 // somebody else moved
	SourceLost               // the source could not be read
	Failed                   // the target, or the disk
)

// Result is what a call came to.
type Result struct {
	Status  Status
	Outcome journal.Outcome // the decision that tells most of the call
	Wrote   *journal.Wrote  // the last write; nil: nothing was written
	Release *Release        // where it left the release
	DryRun  bool
	Took    time.Duration // from the first reading on, without the wait for the next tick; of a loop's results

	SourceErr error
	TargetErr error
	Err       error // what made it fail, for the statuses from Incomplete on
	Notes     []string
}

const (
	// lockWait is how long a lock is waited for: its holder may be writing.
	lockWait = 45 * time.Second
	// mostRounds bounds the decisions of one call; a release that wants more
	// changes at one instant than there are states is broken.
	mostRounds = 16
	// mostSights bounds how often a call looks again because somebody else has
	// moved the release meanwhile.
	mostSights = 5
)

// session is one call that holds the lock.
type session struct {
	d     *Driver
	lease *state.Lease
	log   *journal.Journal
	noLog error // why there is none
	rel   *Release
	sight *sight
	told  *journal.Outcome
	wrote *journal.Wrote
	err   error
	code  Status

	overtaken bool // another machine has moved the release: look again
}

// Promote observes, decides and acts once: at most one step forward. It is safe
// beside any number of others.
func (d *Driver) Promote(ctx context.Context) (*Result, error) {
	for range mostSights {
		rel, err := d.load(ctx)
		if err != nil {
			return nil, err
		}
		d.rel = rel
		seen := d.observe(ctx, rel)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		res, moved, err := d.tick(ctx, seen)
		if err != nil || !moved {
			return res, err
		}
	}
	return nil, fmt.Errorf("the release moved each of the %d times that it was looked at: %w", mostSights, errMoving)
}

var errMoving = errors.New("others are at it all the time")

// tick decides on a sight and acts, under the lock; moved says that somebody
// else was faster and the sight is too old.
func (d *Driver) tick(ctx context.Context, seen *sight) (res *Result, moved bool, err error) {
	s, err := d.session(ctx, false)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if s.rel.Head.N != seen.line {
		return nil, true, nil
	}
	s.sight = seen
	if err := s.prepare(ctx); err != nil {
		return nil, false, err
	}
	// What was begun is finished whatever the context says: a signal ends the
	// loop between two ticks, never between a write and its read-back.
	finish := context.WithoutCancel(ctx)
	if ok, err := s.goOn(finish); err != nil || !ok {
		res, err := s.ended(finish, err)
		return res, false, err
	}
	if err := s.rounds(finish); err != nil {
		return nil, false, err
	}
	if s.overtaken {
		return nil, true, s.save()
	}
	s.after(ctx)
	err = s.save()
	if s.err == nil && !isLost(err) {
		return s.result(), false, err
	}
	s.err = errors.Join(s.err, err)
	if isLost(s.err) && s.wrote == nil {
		return nil, false, s.err // taken over with nothing done: as if it had not looked
	}
	return s.result(), false, nil
}

// session takes the lock and brings the release up to date.
func (d *Driver) session(ctx context.Context, preempt bool) (*session, error) {
	wait, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	take := d.o.Dir.Acquire
	if preempt {
		take = d.o.Dir.Preempt
	}
	lease, err := take(wait, d.holder())
	if err != nil {
		return nil, err
	}
	s := &session{d: d, lease: lease}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// open opens the journal and folds what the release has not seen of it. Where
// it can be read and not written, as on a disk that was remounted, the session
// goes on without: for a rollback, and for nothing else.
func (s *session) open(ctx context.Context) error {
	log, err := journal.Open(s.d.o.Dir.Journal())
	if damaged(err) {
		return err
	}
	if s.log, s.noLog = log, err; err != nil {
		s.rel, err = s.d.load(ctx)
		s.d.rel = s.rel
		return err
	}
	if s.rel, err = s.d.load(ctx); err != nil {
		return err
	}
	if s.rel.Head != log.Head() {
		return &CutError{Path: log.Path(), Want: s.rel.Head.N}
	}
	s.d.rel = s.rel
	if log.Torn > 0 {
		return s.append(&journal.Entry{Kind: journal.Note, Note: fmt.Sprintf("the last line was cut off by a crash: %d bytes were taken away", log.Torn)})
	}
	return nil
}

func (s *session) close() error {
	var err error
	if s.log != nil {
		err = s.log.Close()
	}
	return errors.Join(err, s.lease.Release())
}

// append writes a line and folds it.
func (s *session) append(e *journal.Entry) error {
	if err := s.write(e); err != nil {
		return err
	}
	return s.rel.fold(e, func(id string) (*ladder.Plan, error) { return s.d.planOf(context.Background(), id) })
}

// errNoJournal stands for a journal that could not be opened.
var errNoJournal = errors.New("there is no journal to write to")

// write writes a line, if the lock is still held.
func (s *session) write(e *journal.Entry) error {
	if s.log == nil {
		return cmp.Or(s.noLog, errNoJournal)
	}
	if err := errors.Join(s.lease.Check(), s.lease.Unwritten()); err != nil {
		return err
	}
	e.T, e.By, e.Token = s.d.now(), s.d.o.Who.Who, s.lease.Token()
	if err := s.log.Append(e); err != nil {
		return err
	}
	s.rel.Head = s.log.Head()
	s.rel.marked(e)
	return nil
}

// save keeps the state that the journal's lines have come to.
func (s *session) save() error {
	b, err := json.Marshal(s.rel)
	if err != nil {
		return fmt.Errorf("write the release's state: %w", err)
	}
	return s.lease.Save(b)
}

// prepare takes over what another machine left in the target, and tells the
// journal of a configuration that it does not know.
func (s *session) prepare(ctx context.Context) error {
	if err := s.takeOver(); err != nil {
		return err
	}
	return s.configure()
}

// configure tells the journal of a configuration that it does not know.
func (s *session) configure() error {
	s.d.standIn(s.rel)
	if s.rel.Config == s.d.conf {
		return nil
	}
	line, err := s.d.configuredLine()
	if err != nil {
		return err
	}
	return s.append(&journal.Entry{Kind: journal.Config, Configured: line})
}

// rounds decides and acts until there is nothing more to do at this instant. A
// disk that takes no more lines stops every step forward, and no rollback.
func (s *session) rounds(ctx context.Context) error {
	for range mostRounds {
		dec, err := s.decide()
		switch {
		case err == nil:
		case isLost(err):
			return err
		case s.err != nil:
			return nil // the rollback is made; that nothing could be written down has been said
		case !isRollback(dec.Move):
			return err
		default:
			s.err = err
		}
		s.pick(&s.rel.Last)
		if dec.Write {
			if done, err := s.act(ctx, &dec); err != nil || !done {
				return err
			}
		}
		if quiet(&dec) {
			return nil
		}
	}
	return fmt.Errorf("the release asks for change after change: %s", s.rel.Last.Reason)
}

func isLost(err error) bool {
	_, lost := errors.AsType[*state.LostError](err)
	return lost
}

// decide shows the ladder what was seen and writes the decision down. What it
// is shown is what the journal keeps, so that a replay is shown the same.
func (s *session) decide() (ladder.Decision, error) {
	st, err := clone(&s.rel.Ladder)
	if err != nil {
		return ladder.Decision{}, err
	}
	was := beforeOf(&s.rel.Ladder)
	in := s.shown()
	dec := ladder.Decide(s.d.plan, st, in.Evidence(), in.Now)
	in.Outcome = journal.OutcomeOf(&dec, st)
	if in.State, err = stateDigest(st); err != nil {
		return dec, err
	}
	line := &journal.Entry{Kind: journal.Decide, Decided: in}
	err = s.write(line)
	if err == nil || isRollback(dec.Move) && !isLost(err) {
		s.rel.decided(line, &dec, was, st)
	}
	return dec, err
}

// shown is what the ladder is shown.
func (s *session) shown() *journal.Decided {
	ev := s.sight.evidence(&s.rel.Ladder, s.rel.Until, labelLag(s.d.plan))
	in := &journal.Decided{
		Now: s.instant(), Config: s.d.conf, SourceFailed: ev.SourceFailed, Unasked: s.sight.unasked,
		Observed: journal.Observed{Weight: ev.Observed.Weight, At: ev.Observed.At, Known: ev.Observed.Known},
		Canary:   journal.WindowsOf(ev.Windows), Stable: journal.WindowsOf(ev.Stable),
		MovedBy: s.sight.reading.By,
	}
	if s.sight.sourceErr != nil {
		in.SourceError = s.sight.sourceErr.Error()
	} else {
		in.Until, in.Newest = s.sight.batch.Until, s.sight.batch.Newest
	}
	if s.sight.targetErr != nil {
		in.TargetError = s.sight.targetErr.Error()
	}
	return in
}

// instant is when a call decides: now, and after a write the moment of its
// read-back, so that one call takes one step forward whatever the clock does.
func (s *session) instant() time.Time {
	if s.wrote != nil && s.wrote.ReadBack {
		return s.wrote.At
	}
	return s.d.now()
}

// pick keeps the decision of the call that tells most: a rollback over
// everything, a change over a hold, the first among equals.
func (s *session) pick(o *journal.Outcome) {
	rank := func(o *journal.Outcome) int {
		switch {
		case o == nil:
			return -1
		case isRollback(o.Move):
			return 3
		case o.Move == release.Hold || o.Move == release.AwaitApproval:
			return 0
		case o.Move == release.Complete:
			return 2
		}
		return 1
	}
	if r := rank(o); r > rank(s.told) || r == 0 && rank(s.told) == 0 {
		kept := *o
		s.told = &kept
	}
}

// result sums a call up.
func (s *session) result() *Result {
	res := &Result{
		Outcome: *s.told, Wrote: s.wrote, Release: s.rel, SourceErr: s.sight.sourceErr, TargetErr: s.sight.targetErr,
		Err: s.err, Notes: s.sight.batch.Notes, Status: s.code,
	}
	if s.code == Done {
		res.Status = statusOf(&res.Outcome)
	}
	switch {
	case isLost(s.err):
		res.Status = Conflict
	case s.err != nil && res.Status == RolledBack:
		res.Status = Incomplete // the weight is 0 and nothing says so
	}
	return res
}

// statusOf is what a decision means for a pipeline.
func statusOf(o *journal.Outcome) Status {
	switch o.Move {
	case release.Start, release.Advance, release.Complete:
		return Done
	case release.RollBackMove, release.Lock:
		return RolledBack
	case release.AwaitApproval:
		return Awaiting
	}
	switch o.Why {
	case ladder.WhyCompleted:
		return Done
	case ladder.WhyLocked, ladder.WhyFailed, ladder.WhyCooldown, ladder.WhyManual:
		return RolledBack
	case ladder.WhyDrift:
		return Drifted
	case ladder.WhyOtherCandidate:
		return Conflict
	case ladder.WhySourceFailed:
		return SourceLost
	case ladder.WhyUnread:
		return Failed
	}
	return Holding
}

// see takes a new reading into the sight.
func (s *session) see(r target.Reading) {
	s.sight.reading, s.sight.readAt, s.sight.targetErr = r, s.d.now(), nil
}
