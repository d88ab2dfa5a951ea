package driver

import (
	"context"
	"errors"
	"time"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Loop promotes once a window until the release is finished or the context
// ends. What a tick cannot do, for want of a lock or because the disk is full,
// is said and tried again with the next: a canary is not left without its
// breaker for that. Only a first tick that fails, and a journal that cannot be
// trusted, end it. each, if not nil, is shown every result.
func (d *Driver) Loop(ctx context.Context, each func(*Result, error)) (*Result, error) {
	for first := true; ; first = false {
		begun := d.o.Now()
		res, err := d.Promote(ctx)
		if res != nil {
			res.Took = d.o.Now().Sub(begun)
		}
		if ctx.Err() != nil {
			return res, ctx.Err()
		}
		if each != nil {
			each(res, err)
		}
		switch {
		case isLost(err), err == nil && isLost(res.Err):
			continue
		case err == nil && finished(res) && !d.awaitsRecord(res):
			return res, nil
		case err != nil && (first || Damaged(err)):
			return res, err
		}
		if err := d.o.Wait(ctx, d.untilNext(res)); err != nil {
			return res, err
		}
	}
}

// awaitsRecord reports whether the windows up to the read-back of a rollback may
// still come: then one more look makes its record final.
func (d *Driver) awaitsRecord(res *Result) bool {
	rec := res.Release.Record
	if rec == nil || rec.Final || rec.ReadBack.IsZero() || d.o.Source == nil {
		return false
	}
	return d.now().Before(rec.ReadBack.Add(d.o.Source.Settle() + lookBack*d.o.Source.Span()))
}

// Damaged reports whether an error says that the journal or the state is not
// what was written.
func Damaged(err error) bool {
	_, corrupt := errors.AsType[*journal.CorruptError](err)
	_, mismatch := errors.AsType[*MismatchError](err)
	_, cut := errors.AsType[*CutError](err)
	return corrupt || mismatch || cut
}

// soon is when a write that was not read back is tried again, and a hook at the
// earliest.
const soon = 5 * time.Second

// untilNext is how long to wait for the next tick: until the next window is
// settled, or a write or a hook is to be tried again.
func (d *Driver) untilNext(res *Result) time.Duration {
	span, settle := time.Minute, time.Duration(0)
	if d.o.Source != nil {
		span, settle = d.o.Source.Span(), d.o.Source.Settle()
	}
	now := d.now()
	next := now.Add(-settle).Truncate(span).Add(span + settle)
	wait := next.Sub(now)
	if res != nil && (res.Status == Incomplete || res.Release.Last.Write && res.Release.Ladder.Pending.Move != release.Hold) {
		wait = min(wait, soon)
	}
	if again, due := d.hooksDue(now); due && res != nil && res.Err == nil {
		wait = min(wait, max(again, soon))
	}
	return wait
}

// finished reports whether `run` has nothing left to do: the release is
// complete, or only a person can let it go on.
func finished(res *Result) bool {
	r := res.Release
	if res.Status == Incomplete || r.Ladder.Pending.Move != release.Hold || r.Exchange.pending() {
		return false
	}
	return r.Ladder.Stage == ladder.Completed && r.Ladder.Breaker.Phase == release.Closed || r.Ladder.Locked()
}

// settleTime is how long [Driver.Settle] tries.
const settleTime = time.Minute

// Settle tries what is left to be told and to be run after a rollback, for up to
// a minute, for a command that ends after one tick. Whatever asks for more time
// is left to the next call.
func (d *Driver) Settle(ctx context.Context) error {
	end := d.now().Add(settleTime)
	for first := true; d.rel != nil; first = false {
		now := d.now()
		wait, due := d.unsettled(now)
		if !first {
			wait = max(wait, time.Second)
		}
		if !due || now.Add(wait).After(end) {
			return nil
		}
		if wait > 0 && d.o.Wait(ctx, wait) != nil {
			return ctx.Err()
		}
		if err := d.settle(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *Driver) settle(ctx context.Context) error {
	s, err := d.session(ctx)
	if err != nil {
		return err
	}
	s.sight = &sight{targetErr: ErrUnread}
	if d.o.Target != nil && d.o.Target.KeepsState() {
		s.read(ctx)
	}
	s.after(ctx)
	return errors.Join(s.err, s.save(), s.close())
}

// unsettled is how long it is until a message or a hook is due; false: nothing
// is left.
func (d *Driver) unsettled(now time.Time) (wait time.Duration, due bool) {
	wait, due = d.hooksDue(now)
	for i := range d.rel.Outbox {
		l := &d.rel.Outbox[i]
		for _, c := range d.o.Channels {
			if next := l.Next[c.String()].Sub(now); l.waitsFor(c) && !d.away[c.String()] && (!due || next < wait) {
				wait, due = next, true
			}
		}
	}
	return max(wait, 0), due
}

// hooksDue is how long it is until a hook is due; false: none is left.
func (d *Driver) hooksDue(now time.Time) (wait time.Duration, due bool) {
	if d.rel == nil {
		return 0, false
	}
	s := &session{d: d, rel: d.rel}
	for _, h := range s.pendingHooks() {
		run, _ := lastRun(s.rel.Record, h)
		if next := run.NotBefore.Sub(now); !d.away[h.String()] && (!due || next < wait) {
			wait, due = next, true
		}
	}
	return max(wait, 0), due
}
