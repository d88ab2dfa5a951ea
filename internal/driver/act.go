package driver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/target"
)

const (
	// forwardTime is how long a step forward is tried: the next tick asks again.
	forwardTime = 30 * time.Second
	// rollbackTime is how long a rollback is tried before the call says that it
	// is incomplete; the next one goes on.
	rollbackTime = 90 * time.Second
	// firstPause and longestPause lie between two tries, doubling.
	firstPause   = 200 * time.Millisecond
	longestPause = 5 * time.Second
	// mostWrites bounds the writes of a step forward: a target that takes them
	// and does not change will not the next time.
	mostWrites = 4
)

// attempt is a write under way: tries, readings, and how it ends.
type attempt struct {
	s        *session
	dec      *ladder.Decision
	change   target.Change
	overdue  time.Time
	was      target.Reading
	known    bool
	tries    int
	answered int // tries whose answer is known: the next is another request
	pause    time.Duration
	lastErr  error
	conflict bool
	surely   bool // surely not written, and not to be tried again
	overtook bool // another machine has moved the release, which the target keeps
}

// act makes a decision true: it writes the weight and reads it back, as often
// as that takes within its time. Only the read-back counts. done says that the
// weight was read back.
func (s *session) act(ctx context.Context, dec *ladder.Decision) (done bool, err error) {
	a, err := s.attempt(dec)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithDeadline(ctx, time.Now().Add(a.limit()+time.Minute)) // the targets' own limits come first
	defer cancel()
	done, err = a.run(ctx)
	if err != nil {
		return false, err
	}
	if moved := s.elsewhere(); moved != nil { // weight 0 there is not weight 0 where the canary is
		done, a.lastErr = false, moved
	}
	w := a.wrote(done)
	s.wrote = w
	if appendErr := s.append(&journal.Entry{Kind: journal.Write, Wrote: w}); appendErr != nil {
		if s.err == nil && (!isRollback(dec.Move) || isLost(appendErr)) {
			return false, appendErr
		}
		s.err = errors.Join(s.err, appendErr)
		s.rel.wrote(&journal.Entry{Kind: journal.Write, T: s.d.now(), Wrote: w})
	}
	if s.overtaken = a.overtook; s.overtaken {
		return false, nil
	}
	if !done {
		s.fail(dec, a)
	}
	return done, nil
}

func (s *session) attempt(dec *ladder.Decision) (*attempt, error) {
	a := &attempt{s: s, dec: dec, was: s.sight.reading, known: s.sight.targetErr == nil, pause: firstPause}
	a.overdue = s.d.now().Add(a.limit())
	a.change = target.Change{
		To: dec.Weight, Overwrite: isRollback(dec.Move), Service: s.rel.Service, Release: s.rel.Candidate,
		Attempt: dec.Attempt, Step: dec.Step + 1, Move: dec.Move.String(), Reason: dec.Reason(),
		Evidence: s.rel.Head.Sum, Token: s.lease.Token(), Key: s.key(dec),
	}
	if s.d.o.Target.KeepsState() {
		b, err := s.rel.published()
		if err != nil {
			return nil, err
		}
		a.change.State = b
	}
	return a, nil
}

// key is the idempotency key: the same over retries and restarts, another for
// every intent.
func (s *session) key(dec *ladder.Decision) string {
	step := strconv.Itoa(dec.Step + 1)
	return s.rel.name() + "/" + strconv.Itoa(dec.Attempt) + "/" + step + "/" + dec.Move.String() + "/" + s.rel.intent()
}

func (a *attempt) limit() time.Duration {
	if isRollback(a.dec.Move) {
		return rollbackTime
	}
	return forwardTime
}

// run writes and reads back until it is so, or will not be.
func (a *attempt) run(ctx context.Context) (bool, error) {
	for {
		if err := a.s.lease.Check(); err != nil {
			return false, err
		}
		if !a.known && !a.change.Overwrite {
			a.read(ctx)
		}
		if a.overtaken() {
			return false, nil
		}
		if a.is() {
			return true, nil // it was done before, by us or for us
		}
		if a.moved() {
			return false, nil
		}
		if a.known || a.change.Overwrite {
			a.write(ctx)
			done := a.readBack(ctx)
			if a.overtaken() {
				return false, nil
			}
			if done {
				return true, nil
			}
		}
		if a.over(ctx) {
			return false, nil
		}
	}
}

// is reports whether the target was read to hold what is to be. A rollback is
// written at least once: the reading may be from before somebody's last word.
func (a *attempt) is() bool {
	if a.change.Overwrite && a.tries == 0 {
		return false
	}
	return a.known && a.was.Weight.Same(a.change.To) && !a.stateOnly()
}

// stateOnly reports whether the write is about the state beside the weight,
// which no reading of the weight confirms.
func (a *attempt) stateOnly() bool {
	return a.change.State != nil && string(a.was.State) != string(a.change.State)
}

// overtaken reports whether another machine has moved the release meanwhile: the
// state that the target keeps is newer than this one's, and not what was written
// here. It is taken over, and looked at again. A rollback does not mind.
func (a *attempt) overtaken() bool {
	if a.change.Overwrite || a.change.State == nil || !a.known || bytes.Equal(a.was.State, a.change.State) {
		return false
	}
	in, err := a.s.d.ahead(a.s.rel, a.was.State)
	if err != nil || in == nil || in.Writer == a.s.rel.self() {
		return false
	}
	a.conflict, a.surely, a.overtook = true, true, true
	a.lastErr = &target.ConflictError{Target: a.s.d.o.Target.String(), Held: &a.was.Weight, By: a.was.By, Err: errOvertaken}
	return true
}

var errOvertaken = errors.New("another canaryctl has moved the release, whose state is kept here")

// moved reports whether somebody else has put another weight there than the
// release left. A rollback does not mind.
func (a *attempt) moved() bool {
	if a.change.Overwrite || !a.known || a.was.Weight.Same(a.s.rel.Ladder.Weight) || a.was.Weight.Same(a.change.To) {
		return false
	}
	a.conflict, a.surely = true, true
	a.lastErr = &target.ConflictError{Target: a.s.d.o.Target.String(), Held: &a.was.Weight, By: a.was.By}
	return true
}

func (a *attempt) read(ctx context.Context) {
	r, err := a.s.d.o.Target.Read(ctx)
	if err != nil {
		a.known, a.lastErr = false, err
		return
	}
	a.was, a.known = r, true
	a.s.see(r)
}

// write asks the target once.
func (a *attempt) write(ctx context.Context) {
	a.tries++
	c := a.change
	if a.answered > 0 {
		// The key is the same while nobody knows whether the request was done. A
		// server that remembers its answers by key would say again what it said
		// before somebody else moved the weight.
		c.Key += "/" + strconv.Itoa(a.answered+1)
	}
	a.lastErr = a.s.d.o.Target.Write(ctx, a.was, c)
	a.conflict, a.surely = false, false
	if _, unknown := errors.AsType[*target.UnreachableError](a.lastErr); !unknown {
		a.answered++
	}
	if _, conflict := errors.AsType[*target.ConflictError](a.lastErr); conflict {
		a.conflict = true
	}
	if u, busy := errors.AsType[*target.UnreachableError](a.lastErr); busy && u.After > 0 {
		a.pause = min(u.After, longestPause)
	}
}

// readBack reads until the weight is there, for as long as the target may show
// an old one. After a write that surely was not made one look is enough.
func (a *attempt) readBack(ctx context.Context) bool {
	patience := a.s.d.o.Target.ReadBack()
	if a.lastErr != nil {
		patience = 0
	}
	for until := a.s.d.now().Add(patience); ; {
		a.read(ctx)
		if a.known && a.was.Weight.Same(a.change.To) {
			return true
		}
		if !a.known || !a.s.d.now().Before(until) || ctx.Err() != nil {
			break
		}
		if a.s.d.o.Wait(ctx, firstPause) != nil {
			break
		}
	}
	if a.lastErr == nil {
		a.lastErr = fmt.Errorf("%s said that it took %s and holds %s", a.s.d.o.Target, a.change.To, a.was.Weight)
	}
	return false
}

// over decides whether to try again, and waits before it does.
func (a *attempt) over(ctx context.Context) bool {
	_, refused := errors.AsType[*target.RefusedError](a.lastErr)
	_, fine := errors.AsType[*target.FineError](a.lastErr)
	_, shape := errors.AsType[*target.ShapeError](a.lastErr)
	if refused || fine || shape {
		a.surely = a.known && !a.was.Weight.Same(a.change.To)
		return true
	}
	if a.tries >= mostWrites && !a.change.Overwrite {
		a.surely = a.known
		return true
	}
	if !a.s.d.now().Add(a.pause).Before(a.overdue) {
		return true
	}
	a.s.d.o.Say("%s: try %d: %v", a.dec.Move, a.tries, a.lastErr)
	if a.s.d.o.Wait(ctx, a.pause) != nil {
		return true
	}
	a.pause = min(2*a.pause, longestPause)
	return false
}

func (a *attempt) wrote(done bool) *journal.Wrote {
	w := &journal.Wrote{
		Move: a.dec.Move, To: a.change.To, Key: a.change.Key, Target: a.s.d.o.Target.String(), ReadBack: done, Tries: a.tries, Conflict: a.conflict && !done,
		Held: journal.Observed{Weight: a.was.Weight, At: a.s.sight.readAt, Known: a.known}, Kept: a.known && a.s.rel.kept(a.was.State),
	}
	if done {
		w.At = a.s.sight.readAt
	} else if a.lastErr != nil {
		w.Error = a.lastErr.Error()
		w.Abandoned = a.surely && (a.dec.Move == release.Start || a.dec.Move == release.Advance || a.dec.Move == release.Adjust)
	}
	return w
}

// fail says what a write that was not read back means for the call.
func (s *session) fail(dec *ladder.Decision, a *attempt) {
	s.code = Failed
	switch {
	case isRollback(dec.Move):
		s.code = Incomplete
	case a.conflict:
		s.code = Conflict
	}
	s.err = errors.Join(s.err, a.lastErr)
}
