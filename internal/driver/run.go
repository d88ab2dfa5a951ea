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
		case err == nil && Finished(res) && !d.awaitsRecord(res):
			return res, nil
		case err != nil && (first || damaged(err)):
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

// damaged reports whether an error says that the journal or the state is not
// what was written.
func damaged(err error) bool {
	_, corrupt := errors.AsType[*journal.CorruptError](err)
	_, mismatch := errors.AsType[*MismatchError](err)
	_, cut := errors.AsType[*CutError](err)
	return corrupt || mismatch || cut
}

// soon is when a write that was not read back, or what is to be told, is tried
// again.
const soon = 5 * time.Second

// untilNext is how long to wait for the next tick: until the next window is
// settled.
func (d *Driver) untilNext(res *Result) time.Duration {
	span, settle := time.Minute, time.Duration(0)
	if d.o.Source != nil {
		span, settle = d.o.Source.Span(), d.o.Source.Settle()
	}
	now := d.now()
	next := now.Add(-settle).Truncate(span).Add(span + settle)
	wait := next.Sub(now)
	if res != nil && (res.Status == Incomplete || res.Release.Ladder.Pending.Move != release.Hold) {
		wait = min(wait, soon)
	}
	return wait
}

// Finished reports whether `run` has nothing left to do: the release is
// complete, or only a person can let it go on.
func Finished(res *Result) bool {
	r := res.Release
	if res.Status == Incomplete || r.Ladder.Pending.Move != release.Hold {
		return false
	}
	return r.Ladder.Stage == ladder.Completed && r.Ladder.Breaker.Phase == release.Closed || r.Ladder.Locked()
}

// Settle tries what is left to be told and to be run after a rollback, a few
// times, for a command that ends after one tick.
func (d *Driver) Settle(ctx context.Context) error {
	for try := range settleTries {
		if d.rel == nil || !d.unsettled() {
			return nil
		}
		if try > 0 && d.o.Wait(ctx, firstPause<<try) != nil {
			return ctx.Err()
		}
		s, err := d.session(ctx, false)
		if err != nil {
			return err
		}
		s.sight = &sight{targetErr: ErrUnread}
		if d.o.Target != nil && d.o.Target.KeepsState() {
			s.read(ctx)
		}
		s.after(ctx)
		if err := errors.Join(s.err, s.save(), s.close()); err != nil {
			return err
		}
	}
	return nil
}

const settleTries = 4

// unsettled reports whether a message or a hook is due.
func (d *Driver) unsettled() bool {
	s := &session{d: d, rel: d.rel}
	for _, l := range d.rel.Outbox {
		if !s.delivered(l) {
			return true
		}
	}
	return len(s.pendingHooks()) > 0
}
