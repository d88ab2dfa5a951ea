package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/target"
)

// Swapper is a target that holds the versions document and can exchange its two
// versions in one write: stable gets all traffic, and is what canary was. See
// target.Versions.
type Swapper interface {
	Versions(ctx context.Context) (target.Versions, error)
	Swap(ctx context.Context, was target.Versions, c target.Change) error
}

// errNoSwap says that a target holds no versions to exchange.
var errNoSwap = errors.New("the versions cannot be exchanged: that needs a target which holds the versions document, file or config_api")

// Exchange is an exchange of the two versions in the target: the one that makes
// the canary of a completed release the stable, or the one that undoes it. It
// is begun by a line of the journal and done when it was read back; in between
// every call goes on with it before anything else.
type Exchange struct {
	journal.Exchanged
	Back     bool   `json:"back,omitempty"` // it returns to what was stable before
	Done     bool   `json:"done,omitempty"`
	Replaced string `json:"replaced"` // digest of the version that the first one made the canary
}

// pending reports whether an exchange was begun and not read back.
func (x *Exchange) pending() bool { return x != nil && !x.Done }

// stands reports whether the versions are exchanged, or are about to be.
func (x *Exchange) stands() bool { return x != nil && !x.Back }

// exchanging takes into the release what a command asks of the versions.
func (r *Release) exchanging(c *journal.Commanded) {
	switch back := c.Verb == ladder.DoRollBack; {
	case c.Exchange == nil:
	case back && r.Exchange != nil:
		r.Exchange = &Exchange{Exchanged: *c.Exchange, Back: true, Replaced: r.Exchange.Replaced}
	default:
		r.Exchange = &Exchange{Exchanged: *c.Exchange, Replaced: r.Stable}
	}
}

// reverse is the exchange that a rollback asks for; nil where weight 0 is all.
func (r *Release) reverse() *journal.Exchanged {
	if !r.Exchange.stands() {
		return nil
	}
	return &journal.Exchanged{From: r.Exchange.To, To: r.Exchange.From}
}

// returns is the digest of the version that a rollback returns to.
func (r *Release) returns() string {
	if r.Exchange.stands() {
		return r.Exchange.Replaced
	}
	return r.Stable
}

// standIn lets the release go on under its own name where the document whose
// versions were exchanged is the configuration itself: its canary is now what
// was stable, which nobody wants released.
func (d *Driver) standIn(r *Release) {
	if !r.Exchange.stands() || r.Candidate == "" || d.plan.Candidate != r.Exchange.Replaced {
		return
	}
	p := *d.plan
	p.Candidate = r.Candidate
	d.plan, d.plans[d.conf] = &p, &p
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
	s.sight = &sight{unasked: true}
	if s.read(ctx); s.sight.targetErr != nil {
		return s.sight.targetErr
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	if l := &s.rel.Ladder; !s.rel.Exchange.stands() && l.Stage == ladder.Completed && l.Breaker.Phase == release.Closed && l.Pending.Move == release.Hold {
		if err := s.beginSwap(ctx); err != nil {
			return errors.Join(err, s.save())
		}
	}
	_, err := s.goOn(ctx)
	s.after(ctx)
	return errors.Join(err, s.err, s.save())
}

// beginSwap writes down that the two versions are to be exchanged, once it is
// known that they can be.
func (s *session) beginSwap(ctx context.Context) error {
	t, ok := s.d.o.Target.(Swapper)
	if !ok {
		return errNoSwap
	}
	v, err := t.Versions(ctx)
	if err != nil {
		return err
	}
	if !v.Weight.Same(s.rel.Ladder.Weight) {
		return &target.ConflictError{Target: s.d.o.Target.String(), Held: &v.Weight, By: v.By}
	}
	_, err = s.commanded(ladder.Command{Verb: ladder.DoSwap}, &journal.Exchanged{From: v.Stable, To: v.Canary})
	return err
}

// goOn finishes an exchange that was begun, if there is one; ok says that
// nothing is left of it. What failed is in the session then.
func (s *session) goOn(ctx context.Context) (ok bool, err error) {
	if !s.rel.Exchange.pending() {
		return true, nil
	}
	tries, err := s.exchange(ctx)
	w := &journal.Wrote{
		Move: release.Hold, To: release.Weight{Ring: s.rel.Ladder.Weight.Ring}, Key: s.exchangeKey(), Exchange: true,
		ReadBack: err == nil, Tries: tries, Held: s.held(),
	}
	if err != nil {
		w.Error = err.Error()
	} else {
		w.At = s.sight.readAt
	}
	if appendErr := s.append(&journal.Entry{Kind: journal.Write, Wrote: w}); appendErr != nil {
		if isLost(appendErr) {
			return false, appendErr
		}
		err = errors.Join(err, appendErr)
	}
	if err == nil {
		return true, nil
	}
	s.err, s.code = errors.Join(s.err, err), Failed
	if _, conflict := errors.AsType[*target.ConflictError](err); conflict {
		s.code = Conflict
	}
	if s.rel.Exchange.Back {
		s.code = Incomplete
	}
	return false, nil
}

// ended is the end of a call that could not finish an exchange.
func (s *session) ended(ctx context.Context, err error) (*Result, error) {
	if err != nil {
		return nil, err
	}
	if s.told == nil {
		s.told = &s.rel.Last
	}
	s.after(ctx)
	s.err = errors.Join(s.err, s.save())
	return s.result(), nil
}

func (s *session) exchangeKey() string {
	move := "swap"
	if s.rel.Exchange.Back {
		move = "return"
	}
	return s.rel.ID() + "/" + fmt.Sprint(s.rel.Ladder.Attempt) + "/" + move + "/" + s.rel.intent()
}

// exchange exchanges the two versions in the target and reads them back, as
// often as that takes within its time. It is asked for only while what is to be
// replaced was read: asked for twice, it would be undone.
func (s *session) exchange(ctx context.Context) (tries int, err error) {
	t, ok := s.d.o.Target.(Swapper)
	if !ok {
		return 0, errNoSwap
	}
	limit := forwardTime
	if s.rel.Exchange.Back {
		limit = rollbackTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit+time.Minute) // the targets' own limits come first
	defer cancel()
	c, err := s.exchangeChange()
	if err != nil {
		return 0, err
	}
	for until, pause := s.d.now().Add(limit), firstPause; ; pause = min(2*pause, longestPause) {
		done, again, err := s.exchangeOnce(ctx, t, c, &tries)
		if done {
			return tries, nil
		}
		if !again || !s.d.now().Add(pause).Before(until) {
			return tries, err
		}
		if waitErr := s.d.o.Wait(ctx, pause); waitErr != nil {
			return tries, errors.Join(err, waitErr)
		}
	}
}

// exchangeOnce looks, asks once where that is needed, and looks again; again
// says that a later try may do better.
func (s *session) exchangeOnce(ctx context.Context, t Swapper, c target.Change, tries *int) (done, again bool, err error) {
	v, err := s.versions(ctx, t)
	if err == nil {
		done, err = s.exchangeable(v)
	}
	if done || err != nil {
		return done, isAway(err), err
	}
	if *tries++; *tries > 1 {
		c.Key += fmt.Sprintf("/%d", *tries) // the document is as it was: this is another request
	}
	asked := t.Swap(ctx, v, c)
	if v, err = s.versions(ctx, t); err == nil {
		done, err = s.exchangeable(v)
	}
	if done {
		return true, false, nil
	}
	_, refused := errors.AsType[*target.RefusedError](asked)
	switch {
	case asked != nil:
		err = asked
	case err == nil:
		err = fmt.Errorf("%s said that it exchanged the versions and does not show it", s.d.o.Target)
	}
	return false, !refused, err
}

func (s *session) versions(ctx context.Context, t Swapper) (target.Versions, error) {
	v, err := t.Versions(ctx)
	if err == nil {
		s.see(v.Reading)
	}
	return v, err
}

func isAway(err error) bool {
	_, away := errors.AsType[*target.UnreachableError](err)
	return away
}

func (s *session) exchangeChange() (target.Change, error) {
	x := s.rel.Exchange
	c := target.Change{
		To: release.Weight{Ring: s.rel.Ladder.Weight.Ring}, Service: s.rel.Service, Release: s.rel.Candidate, Attempt: s.rel.Ladder.Attempt,
		Move: "swap", Reason: "the canary is the stable version now", Evidence: s.rel.Head.Sum, Token: s.lease.Token(), Key: s.exchangeKey(),
	}
	if x.Back {
		c.Move, c.Reason = "return", "rolled back: the version that was stable before is it again"
	}
	if !s.d.o.Target.KeepsState() {
		return c, nil
	}
	var err error
	c.State, err = s.rel.published()
	return c, err
}

// exchangeable reports whether the exchange is done, or why it cannot be made.
func (s *session) exchangeable(v target.Versions) (done bool, err error) {
	x := s.rel.Exchange
	conflict := &target.ConflictError{Target: s.d.o.Target.String(), By: v.By}
	switch {
	case v.Stable == x.To && v.Canary == x.From:
		return true, nil
	case v.Stable != x.From || v.Canary != x.To:
		conflict.Err = errors.New("the versions there are others than the ones that were to be exchanged: put them right, or keep them and give the release up with canaryctl rollback")
		return false, conflict
	case !x.Back && v.Weight.IsZero():
		conflict.Held = &v.Weight
		conflict.Err = errors.New("nobody is on the canary that was to become stable: canaryctl rollback gives it up")
		return false, conflict
	}
	return false, nil
}

// UnknownVersionError says that a rollback to a version is not possible: it
// returns to another.
type UnknownVersionError struct {
	Asked   string
	Returns string // digest of the version that a rollback returns to
}

// Error implements error.
func (e *UnknownVersionError) Error() string {
	return fmt.Sprintf("a rollback returns to version %s, not to %s: nothing was done", short(e.Returns), e.Asked)
}

// ReturnTo checks that [Driver.RollBack] returns to the version with this
// digest or one that begins so, of six digits at least; else it returns an
// *UnknownVersionError. A journal that cannot be read is no reason to wait.
func (d *Driver) ReturnTo(ctx context.Context, digest string) error {
	r, err := d.Where(ctx)
	if damaged(err) {
		r, err = newRelease(d.o.Config.TargetService), nil
	}
	if err != nil {
		return err
	}
	returns := r.returns()
	if returns == "" {
		returns = d.o.Config.Versions.Stable.Digest()
	}
	if len(digest) < 6 || !strings.HasPrefix(returns, digest) {
		return &UnknownVersionError{Asked: digest, Returns: returns}
	}
	return nil
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
	s.sight = &sight{unasked: true}
	if s.d.o.Target.KeepsState() {
		s.read(ctx)
		if err := s.prepare(ctx); err != nil {
			return nil, err
		}
	}
	if s.rel.Ladder.Pending.Move == release.Hold && !s.rel.Exchange.pending() {
		return nil, s.save()
	}
	s.read(ctx)
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	if ok, err := s.goOn(ctx); err != nil || !ok {
		return s.ended(ctx, err)
	}
	if err := s.rounds(ctx); err != nil {
		return nil, err
	}
	if s.overtaken {
		s.err, s.code = errors.Join(s.err, errOvertaken), Conflict
	}
	s.after(ctx)
	return s.result(), errors.Join(s.err, s.save())
}
