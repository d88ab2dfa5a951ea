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
	"github.com/canaryctl/canaryctl/internal/notify"
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
// is begun by a line of the journal and done when it was read back. In between
// every call goes on with it: with one that undoes before it decides anything,
// with the other after that, so that the breaker has the last word.
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

// Swapped reports whether the candidate stands as stable in the target, or is
// about to: then a rollback puts the version before back.
func (r *Release) Swapped() bool { return r.Exchange.stands() }

// returning reports whether the exchange is to be undone and is not yet.
func (x *Exchange) returning() bool { return x.pending() && x.Back }

// swapping reports whether the canary of a complete release is to become the
// stable and has not been seen to be it.
func (r *Release) swapping() bool {
	return r.Exchange.pending() && !r.Exchange.Back && r.Ladder.Stage == ladder.Completed
}

// turnBack lets a rollback, whoever asks for it, undo the exchange: one that was
// made, and one that was only begun, of which nobody may know whether it was
// made.
func (r *Release) turnBack() {
	if x := r.Exchange; x.stands() {
		r.Exchange = &Exchange{Exchanged: journal.Exchanged{From: x.To, To: x.From}, Back: true, Replaced: x.Replaced}
	}
}

// returns is the digest of the version that a rollback returns to.
func (r *Release) returns() string {
	if r.Exchange.stands() || r.Exchange.pending() {
		return r.Exchange.Replaced
	}
	return r.Stable
}

// exchanged takes into the release what came of an exchange. One that makes the
// canary stable is done only with the command that takes note of it.
func (r *Release) exchanged(e *journal.Entry) {
	switch w := e.Wrote; {
	case w.Begun != nil:
		r.Exchange = &Exchange{Exchanged: *w.Begun, Replaced: r.Stable}
	case r.Exchange == nil:
	case w.ReadBack && r.Exchange.Back:
		r.Exchange.Done = true
		r.fall(notify.Incomplete)
	case w.GivenUp && r.Exchange.Back:
		r.Exchange = nil
		if r.Record != nil {
			r.Record.Stable = "" // a person knows
		}
		r.fall(notify.Incomplete)
		r.tell(e, notify.Incomplete)
	case w.GivenUp:
		r.Exchange = nil
	case !w.ReadBack && r.Exchange.Back:
		r.rise(e, notify.Incomplete)
	}
}

// standIn lets the release go on under its own name where the document whose
// versions were exchanged is the configuration itself: its canary is now what
// was stable, which nobody wants released.
func (d *Driver) standIn(r *Release) {
	if !r.Exchange.stands() && !r.Exchange.pending() || r.Candidate == "" || d.plan.Candidate != r.Exchange.Replaced {
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
	s, err := d.session(ctx)
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
	var err error
	if s.rel.swapping() {
		_, err = s.goOn(ctx)
	}
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
	return s.append(&journal.Entry{Kind: journal.Write, Wrote: &journal.Wrote{
		Move: release.Hold, To: release.Weight{Ring: v.Weight.Ring}, Held: s.held(), Exchange: true,
		Begun: &journal.Exchanged{From: v.Stable, To: v.Canary},
	}})
}

// move decides and acts, and goes on with an exchange that was begun. Where it
// makes the canary stable, it comes last: evidence, breaker and rollback do not
// wait for a target that refuses it.
func (s *session) move(ctx context.Context) error {
	if err := s.noticeSwap(ctx); err != nil {
		return err
	}
	if s.rel.swapping() && s.followed() {
		// Another candidate is to be released: nothing judges this one any more,
		// and a decision would forget it.
		if ok, err := s.goOn(ctx); err != nil || !ok {
			return err
		}
	}
	if err := s.rounds(ctx); err != nil {
		return err
	}
	if s.overtaken || s.err != nil || !s.rel.swapping() {
		return nil
	}
	ok, err := s.goOn(ctx)
	if ok {
		s.pick(&s.rel.Last)
	}
	return err
}

// noticeSwap takes note of an exchange that was made and not noted: whoever made
// it was broken off, or had no answer. The weight is 0 then, which is no drift.
func (s *session) noticeSwap(ctx context.Context) error {
	t, ok := s.d.o.Target.(Swapper)
	if !ok || !s.rel.swapping() {
		return nil
	}
	v, err := t.Versions(ctx)
	if err != nil || !s.rel.Exchange.made(v) {
		return nil // it is said when it is gone on with
	}
	s.see(v.Reading)
	_, err = s.exchanged(0, nil)
	return err
}

// made reports whether the versions are as the exchange is to leave them. For
// one that returns it is enough that what was stable is stable again, whatever
// somebody made of the canary, which has weight 0.
func (x *Exchange) made(v target.Versions) bool {
	return v.Stable == x.To && (v.Canary == x.From || x.Back)
}

// goBack makes the exchange that a rollback asks for, before anything else is
// decided but after the weight was read as 0: that comes first. ok says that
// nothing is left of it.
func (s *session) goBack(ctx context.Context) (ok bool, err error) {
	isZero := s.sight.targetErr == nil && s.sight.reading.Weight.IsZero()
	if !s.rel.Exchange.returning() || isRollback(s.rel.Ladder.Pending.Move) && !isZero {
		return true, nil
	}
	return s.goOn(ctx)
}

// goOn tries to finish an exchange that was begun; ok says that nothing is left
// of it. What failed is in the session then.
func (s *session) goOn(ctx context.Context) (ok bool, err error) {
	tries, failed := s.exchange(ctx)
	return s.exchanged(tries, failed)
}

// exchanged writes down what came of an exchange, and says what failed.
func (s *session) exchanged(tries int, failed error) (ok bool, err error) {
	if isLost(failed) {
		return false, failed
	}
	back := s.rel.Exchange.Back
	w := &journal.Wrote{
		Move: release.Hold, To: release.Weight{Ring: s.rel.Ladder.Weight.Ring}, Key: s.exchangeKey(), Exchange: true,
		ReadBack: failed == nil, Tries: tries, Held: s.held(), GivenUp: s.givesUp(failed), Kept: s.sight.targetErr == nil && s.rel.kept(s.sight.reading.State),
	}
	if failed != nil {
		w.Error = failed.Error()
		_, w.Conflict = errors.AsType[*target.ConflictError](failed)
	} else {
		w.At = s.sight.readAt
	}
	err = s.append(&journal.Entry{Kind: journal.Write, Wrote: w})
	if err == nil && failed == nil && !back {
		_, err = s.commanded(ladder.Command{Verb: ladder.DoSwap})
	}
	if isLost(err) {
		return false, err
	}
	if failed == nil && err == nil {
		return true, nil
	}
	if s.told == nil {
		s.pick(&s.rel.Last)
	}
	if w.GivenUp && !back {
		s.d.o.Say("the exchange of the two versions is given up: %v", failed)
		return err == nil, err
	}
	s.failExchange(w, errors.Join(failed, err))
	return w.GivenUp && err == nil, nil
}

// failExchange says what an exchange that was not made means for the call.
func (s *session) failExchange(w *journal.Wrote, err error) {
	switch {
	case s.rel.Exchange.returning() || w.GivenUp:
		s.code = Incomplete
	case w.Conflict:
		s.code = Conflict
	default:
		s.code = Failed
	}
	if s.code != Incomplete {
		err = fmt.Errorf("the release is complete and watched, and the two versions are not exchanged yet: %w", err)
	}
	s.err = errors.Join(s.err, err)
}

// givesUp reports whether an exchange that failed is not to be tried again: a
// return that a person asked for and that the document makes impossible, since
// the release is locked anyhow, and the exchange of a release that has been
// followed by another. One that the breaker asked for waits for a person: its
// probes would go to nobody knows which version.
func (s *session) givesUp(failed error) bool {
	_, refused := errors.AsType[*unreadableError](failed)
	impossible := refused || errors.Is(failed, errOtherVersions) || errors.Is(failed, errOtherWeight)
	if s.rel.Exchange.Back {
		return impossible && s.rel.Ladder.Stage == ladder.RolledBack
	}
	return impossible && s.followed()
}

// followed reports whether the configuration has another candidate to release.
func (s *session) followed() bool {
	return s.d.plan.Candidate != "" && s.d.plan.Candidate != s.rel.Ladder.Candidate
}

func (s *session) exchangeKey() string {
	move := "swap"
	if s.rel.Exchange.Back {
		move = "return"
	}
	return s.rel.name() + "/" + fmt.Sprint(s.rel.Ladder.Attempt) + "/" + move + "/" + s.rel.intent()
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
	v, done, err := s.exchangeable(ctx, t)
	if done || err != nil {
		return done, isAway(err), err
	}
	if err := s.lease.Check(); err != nil {
		return false, false, err
	}
	if *tries++; *tries > 1 {
		c.Key += fmt.Sprintf("/%d", *tries) // the document is as it was: this is another request
	}
	asked := t.Swap(ctx, v, c)
	if _, done, err = s.exchangeable(ctx, t); done {
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

var (
	errOtherVersions = errors.New("the versions there are others than the ones that were to be exchanged")
	errOtherWeight   = errors.New("the weight there is not the one of the complete release")
)

// unreadableError says that a document holds no two versions that could be
// exchanged.
type unreadableError struct{ err error }

func (e *unreadableError) Error() string { return e.err.Error() }
func (e *unreadableError) Unwrap() error { return e.err }

// exchangeable reads the versions and reports whether the exchange is done, or
// why it cannot be made.
func (s *session) exchangeable(ctx context.Context, t Swapper) (v target.Versions, done bool, err error) {
	x := s.rel.Exchange
	v, err = t.Versions(ctx)
	_, refused := errors.AsType[*target.RefusedError](err)
	if err == nil || refused && v.Stable != "" {
		s.see(v.Reading)
	}
	switch {
	case (err == nil || refused) && x.made(v):
		return v, true, nil
	case refused:
		return v, false, fmt.Errorf("%w: %s", &unreadableError{err}, s.byHand())
	case err != nil:
		return v, false, err
	case v.Stable != x.From || v.Canary != x.To:
		return v, false, s.versionsMoved(v, errOtherVersions)
	case !x.Back && !v.Weight.Same(s.rel.Ladder.Weight):
		return v, false, s.versionsMoved(v, errOtherWeight)
	}
	return v, false, nil
}

func (s *session) versionsMoved(v target.Versions, why error) error {
	c := &target.ConflictError{Target: s.d.o.Target.String(), By: v.By, Err: fmt.Errorf("%w: %s", why, s.byHand())}
	if errors.Is(why, errOtherWeight) {
		c.Held = &v.Weight
	}
	return c
}

// byHand says what a person is to do where the versions cannot be exchanged.
func (s *session) byHand() string {
	if !s.rel.Exchange.Back {
		return "put versions and weight back as they were, or give the release up with canaryctl rollback"
	}
	text := "the weight is 0, and stable is not what it was before the swap: write version " + journal.Brief(s.rel.Exchange.Replaced) + " into the document as stable by hand"
	if s.rel.Ladder.Stage != ladder.RolledBack {
		text += ", or give its return up with canaryctl rollback"
	}
	return text
}

// UnknownVersionError says that a rollback to a version is not possible: it
// returns to another.
type UnknownVersionError struct {
	Asked   string
	Returns string // digest of the version that a rollback returns to
}

// Error implements error.
func (e *UnknownVersionError) Error() string {
	return fmt.Sprintf("a rollback returns to version %s, not to %s: nothing was done", journal.Brief(e.Returns), e.Asked)
}

// ReturnTo checks that [Driver.RollBack] returns to the version with this
// digest or one that begins so, of six digits at least; else it returns an
// *UnknownVersionError. A journal that cannot be read is no reason to wait.
func (d *Driver) ReturnTo(ctx context.Context, digest string) error {
	r, err := d.Where(ctx)
	if Damaged(err) {
		r, err = d.newRelease(), nil
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
	s, err := d.session(ctx)
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
	if err := s.move(ctx); err != nil {
		return nil, err
	}
	if s.overtaken {
		s.err, s.code = errors.Join(s.err, errOvertaken), Conflict
	}
	s.after(ctx)
	if err := s.save(); err != nil {
		s.err = errors.Join(s.err, err)
	}
	return s.result(), nil // what failed is in it, with its status
}
