package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/target"
)

// Swapper is a target that holds the versions document and can exchange its two
// versions in one write: stable gets all traffic, and is what canary was.
type Swapper interface {
	Swap(ctx context.Context, was target.Reading, c target.Change) error
}

// errNoSwap says that a target holds no versions to exchange.
var errNoSwap = errors.New("on_complete: swap needs a target that holds the versions document: file or config_api")

// swapped reports whether a release has completed and its canary is the stable
// of the versions document: nobody is on the canary, and nothing is to be.
func swapped(st *ladder.State) bool {
	return st.Stage == ladder.Completed && st.Weight.IsZero() && st.Breaker.Phase == release.Closed
}

// Swap makes the canary of a completed release the stable of the versions
// document, where the configuration says on_complete: swap. What was begun and
// broken off is gone on with; what is done is left alone.
func (d *Driver) Swap(ctx context.Context) error {
	if d.o.Config.OnComplete != config.SwapVersions {
		return nil
	}
	s, err := d.session(ctx, false)
	if err != nil {
		return err
	}
	return errors.Join(s.swap(context.WithoutCancel(ctx)), s.close())
}

func (s *session) swap(ctx context.Context) error {
	if s.rel.Ladder.Stage != ladder.Completed {
		return nil
	}
	s.sight = &sight{unasked: true}
	if s.read(ctx); s.sight.targetErr != nil {
		return s.sight.targetErr
	}
	if !swapped(&s.rel.Ladder) {
		if _, err := s.commanded(ladder.Command{Verb: ladder.DoSwap}); err != nil {
			return err
		}
	}
	if s.sight.reading.Weight.IsZero() {
		return s.save()
	}
	if err := s.exchange(ctx, "swap"); err != nil {
		return err
	}
	return s.save()
}

// exchange exchanges the two versions in the target and reads the weight back.
func (s *session) exchange(ctx context.Context, move string) error {
	t, ok := s.d.o.Target.(Swapper)
	if !ok {
		return errNoSwap
	}
	ctx, cancel := context.WithTimeout(ctx, forwardTime)
	defer cancel()
	err := t.Swap(ctx, s.sight.reading, target.Change{
		Service: s.rel.Service, Release: s.rel.Candidate, Attempt: s.rel.Ladder.Attempt, Move: move, Token: s.lease.Token(),
		Key: s.rel.ID() + "/" + move + "/" + fmt.Sprint(s.rel.Head.N), Reason: "the canary is the stable version now",
	})
	for until := s.d.now().Add(max(s.d.o.Target.ReadBack(), time.Second)); ; {
		s.read(ctx)
		if s.sight.targetErr == nil && s.sight.reading.Weight.IsZero() {
			return nil
		}
		if !s.d.now().Before(until) || s.d.o.Wait(ctx, firstPause) != nil {
			break
		}
	}
	return errors.Join(err, s.sight.targetErr, fmt.Errorf("%s: the versions were not read back as exchanged", s.d.o.Target))
}

// UnknownVersionError says that a rollback to a version is not possible: weight
// 0 returns to another.
type UnknownVersionError struct {
	Asked   string
	Returns string // digest of what weight 0 returns to
}

// Error implements error.
func (e *UnknownVersionError) Error() string {
	return fmt.Sprintf("a rollback returns to version %s, not to %s: nothing was done", short(e.Returns), e.Asked)
}

// ReturnTo checks that a rollback returns to the version with this digest. It
// returns nil where weight 0 does; where a swap has replaced that version it
// exchanges the two again and returns what that came to.
func (d *Driver) ReturnTo(ctx context.Context, r *Release, digest, reason string) (*Result, error) {
	stable := r.Stable
	if stable == "" {
		stable = d.o.Config.Versions.Stable.Digest()
	}
	if len(digest) < 6 || !strings.HasPrefix(stable, digest) {
		return nil, &UnknownVersionError{Asked: digest, Returns: stable}
	}
	if !swapped(&r.Ladder) {
		return nil, nil
	}
	s, err := d.session(ctx, true)
	if err != nil {
		return nil, err
	}
	res, err := s.returnTo(context.WithoutCancel(ctx), reason)
	return res, errors.Join(err, s.close())
}

func (s *session) returnTo(ctx context.Context, reason string) (*Result, error) {
	s.sight = &sight{unasked: true}
	if s.read(ctx); s.sight.targetErr != nil {
		return nil, s.sight.targetErr
	}
	dec, err := s.commanded(ladder.Command{Verb: ladder.DoRollBack, Reason: reason})
	if err != nil {
		return nil, err
	}
	s.pick(&s.rel.Last)
	if err := s.exchange(ctx, "return"); err != nil {
		return nil, err
	}
	done, err := s.act(ctx, &dec)
	if err == nil && done {
		err = s.rounds(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.after(ctx)
	return s.result(), errors.Join(s.err, s.save())
}

// Finish goes on with a write that was asked for and not read back, and does
// nothing else; nil says that there was none.
func (d *Driver) Finish(ctx context.Context) (*Result, error) {
	s, err := d.session(ctx, false)
	if err != nil {
		return nil, err
	}
	res, err := s.finish(context.WithoutCancel(ctx))
	return res, errors.Join(err, s.close())
}

func (s *session) finish(ctx context.Context) (*Result, error) {
	if s.rel.Ladder.Pending.Move == release.Hold {
		return nil, s.save()
	}
	s.sight = &sight{unasked: true}
	s.read(ctx)
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	if err := s.rounds(ctx); err != nil {
		return nil, err
	}
	s.after(ctx)
	return s.result(), errors.Join(s.err, s.save())
}
