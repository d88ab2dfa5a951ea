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
	page  *journal.Decided // what the newest decision was shown
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
	s, err := d.session(ctx)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if s.rel.Head.N != seen.line {
		return nil, true, nil
	}
	s.sight = seen
	if err := d.expected(s.rel, seen); err != nil {
		return nil, false, err
	}
	if err := s.prepare(ctx); err != nil {
		return nil, false, err
	}
	if err := s.elsewhere(); err != nil {
		s.sight.targetErr = err
	}
	// What was begun is finished whatever the context says: a signal ends the
	// loop between two ticks, never between a write and its read-back.
	finish := context.WithoutCancel(ctx)
	if err := s.move(finish); err != nil {
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
func (d *Driver) session(ctx context.Context) (*session, error) {
	wait, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	lease, err := d.o.Dir.Acquire(wait, d.holder())
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
	if Damaged(err) {
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
	if s.rel.rebuilt {
		s.sayRebuilt()
	}
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
	e.T, e.By, e.Token, e.Run = s.d.now(), s.d.o.Who.Who, s.lease.Token(), s.d.o.RunURL
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
	for n := 0; n < mostRounds; {
		if ok, err := s.goBack(ctx); err != nil || !ok {
			return err
		}
		page := s.page
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
		switch {
		case !quiet(&dec):
			n++
		case !s.turned(page):
			return nil
		}
	}
	return fmt.Errorf("the release asks for change after change: %s", s.rel.Last.Reason)
}

// turned reports whether there are windows that the newest decision was not
// shown, and that its own were others than those of the one before: a release
// that folds none is shown no more.
func (s *session) turned(before *journal.Decided) bool {
	now := s.page
	return now.More && (before == nil || !before.More || !before.Canary[0].T.Equal(now.Canary[0].T))
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
	in := s.shown(mostShown)
	s.page = in
	dec := ladder.Decide(s.d.plan, st, in.Evidence(), in.Now)
	in.Outcome = journal.OutcomeOf(&dec, st)
	if in.State, err = stateDigest(st); err != nil {
		return dec, err
	}
	line := &journal.Entry{Kind: journal.Decide, Decided: in}
	if dec.Write && !dec.Again && isRollback(dec.Move) {
		s.closeRecord()
	}
	err = s.write(line)
	if err == nil || (isRollback(dec.Move) || s.err != nil) && !isLost(err) { // what is so is so, written down or not
		s.rel.decided(line, &dec, was, st)
	}
	return dec, err
}

// shown is what the ladder is shown: so many windows of each arm at most.
func (s *session) shown(most int) *journal.Decided {
	now := s.instant()
	ev := s.sight.evidence(s.d.plan, &s.rel.Ladder, s.d.shownUntil(s.rel, now), now, most)
	in := &journal.Decided{
		Now: now, Config: s.d.conf, SourceFailed: ev.SourceFailed, Unasked: s.sight.unasked, More: ev.More,
		Observed: journal.Observed{Weight: ev.Observed.Weight, At: ev.Observed.At, Known: ev.Observed.Known},
		Canary:   journal.WindowsOf(ev.Windows), Stable: journal.WindowsOf(ev.Stable),
		MovedBy: s.sight.reading.By,
	}
	if s.sight.sourceErr != nil {
		in.SourceError = s.sight.sourceErr.Error()
	} else {
		in.Until, in.Newest = s.sight.batch.Until, s.sight.batch.Newest
	}
	if in.More {
		in.Until = ev.Windows[len(ev.Windows)-1].End()
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

// pick keeps the decision of the call that tells most: the last that changed
// anything, or else the last hold.
func (s *session) pick(o *journal.Outcome) {
	if s.told == nil || changes(o) || !changes(s.told) {
		kept := *o
		s.told = &kept
	}
}

func changes(o *journal.Outcome) bool {
	return o.Move != release.Hold && o.Move != release.AwaitApproval || o.Event != nil
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
	if res.Status == Holding { // a hold that is blind is not one that waits
		switch {
		case res.TargetErr != nil && !errors.Is(res.TargetErr, ErrUnread):
			res.Status = Failed
		case res.SourceErr != nil:
			res.Status = SourceLost
		}
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
