package simulate

import (
	"errors"
	"iter"
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Call is one call of a live release as its journal keeps it: evidence that
// was shown to [ladder.Decide], a person's word for [ladder.Apply], or one of
// the two things that change a release beside them.
type Call struct {
	Line int64        // of the journal, for messages
	Plan *ladder.Plan // the rules it was made under; nil with Abandoned and Adopted

	Now      time.Time
	Evidence ladder.Evidence
	Until    time.Time // up to where the source's windows were final; zero: it was not read

	Command   *ladder.Command // in place of evidence
	Abandoned bool            // a step forward that was asked for was surely not made
	Adopted   *Adopted        // the state that another machine has left
}

// Adopted is a release as another machine has left it. What led there is in
// that machine's journal.
type Adopted struct {
	State   ladder.State
	Move    release.Move // of its newest decision, which an approval may be for
	Verdict release.Verdict
	From    time.Time // read-back of its attempt's first weight
	To      time.Time // and of 0; zero: it serves
	Served  int64     // requests of the canary from one to the other
}

// ErrNoCalls says that there is nothing to replay.
var ErrNoCalls = errors.New("nobody has decided anything yet: there is nothing to replay")

// Replay makes every call of a live release once more, in order, and says what
// that came to as [Run] does. It calls [ladder.Decide] and [ladder.Apply] with
// what they were called with then, so the events are those of the release.
// Rollback.Exposure is told to the read-back of 0, which a live release has to
// wait for. check, if not nil, is shown what each decision and command came to;
// its error ends the replay.
func Replay(calls iter.Seq2[*Call, error], check func(*Call, *ladder.Decision, *ladder.State) error) (*Outcome, error) {
	r := &replay{out: &Outcome{}, check: check}
	return r.play(calls)
}

// play makes the calls one after the other.
func (r *replay) play(calls iter.Seq2[*Call, error]) (*Outcome, error) {
	for c, err := range calls {
		if err == nil {
			err = r.call(c)
		}
		if err != nil {
			return nil, err
		}
	}
	if r.last.IsZero() {
		return nil, ErrNoCalls
	}
	return r.end(), nil
}

// course is a release as its calls have left it.
type course struct {
	st    ladder.State
	shown ladder.Decision // what a person was shown last
}

// decide shows Decide what it was shown.
func (k *course) decide(c *Call) ladder.Decision {
	k.shown = ladder.Decide(c.Plan, &k.st, c.Evidence, c.Now)
	return k.shown
}

// command gives a person's word once more.
func (k *course) command(c *Call) (ladder.Decision, error) {
	d, err := ladder.Apply(c.Plan, &k.st, &k.shown, *c.Command)
	if err != nil {
		return d, err
	}
	switch c.Command.Verb {
	case ladder.DoRollBack:
		k.shown = d
	case ladder.DoApprove, ladder.DoClearLock:
		k.shown.Move = release.Hold
	}
	return d, nil
}

// adopt takes over what another machine has left.
func (k *course) adopt(a *Adopted) {
	k.st, k.shown = a.State, ladder.Decision{Move: a.Move, Verdict: a.Verdict}
}

// replay is a replay of calls under way.
type replay struct {
	out   *Outcome
	check func(*Call, *ladder.Decision, *ladder.State) error
	course

	first, last time.Time // calls
	window      time.Time // start of the first window of any arm
	stable      time.Time // start of stable's newest
	until       time.Time // windows before it were final

	steps   []standing
	serving []stretch
	served  int // windows with requests in them

	x        stretch // the present attempt, from its first weight to the read-back of 0
	requests int64   // that the canary served in it
	done     int64   // exposure of attempts before it
	rolled   int64   // exposure at its last rollback
	open     bool    // windows from before the read-back may still come
}

// standing is what holds from a time on.
type standing struct {
	from   time.Time
	weight release.Weight
	phase  release.Phase
}

// stretch is a time in which the canary has a weight; zero to: it lasts.
type stretch struct{ from, to time.Time }

// has reports whether a window lies in it whole.
func (s *stretch) has(w *release.Window) bool {
	return !w.T.Before(s.from) && (s.to.IsZero() || !w.End().After(s.to))
}

// touches reports whether the canary served in a part of the window.
func (s *stretch) touches(w *release.Window) bool {
	return !s.from.IsZero() && w.End().After(s.from) && (s.to.IsZero() || w.T.Before(s.to))
}

func (r *replay) call(c *Call) error {
	switch {
	case c.Adopted != nil:
		a := c.Adopted
		r.adopt(a)
		r.x, r.requests, r.rolled, r.open = stretch{a.From, a.To}, a.Served, 0, false
		if !r.st.Weight.IsZero() {
			r.serving = append(r.serving, stretch{from: c.Now})
		}
		return nil
	case c.Abandoned:
		asked := r.st.Pending.Move
		ladder.Abandon(&r.st)
		if r.st.Pending.Move == release.Hold {
			r.forget(asked)
		}
		return nil
	case c.Command != nil:
		return r.command(c)
	}
	return r.decide(c)
}

// forget takes back a step forward, or a higher share within the step, that was
// asked for and never made.
func (r *replay) forget(asked release.Move) {
	n := len(r.out.Moves) - 1
	if n >= 0 && asked != release.Hold && r.out.Moves[n].Move == asked {
		r.out.Moves = r.out.Moves[:n]
	}
}

// tick takes note of a call's time.
func (r *replay) tick(now time.Time) {
	if r.first.IsZero() {
		r.first = now
	}
	r.last = now
}

// before is what of the state is needed to tell what a call changed.
type before struct {
	pending ladder.Pending
	seen    time.Time
	weight  release.Weight
}

func (r *replay) before() before { return before{r.st.Pending, r.st.Seen, r.st.Weight} }

// decide makes a decision once more and takes note of what it changed.
func (r *replay) decide(c *Call) error {
	r.tick(c.Now)
	if c.Until.After(r.until) {
		r.until = c.Until
	}
	was, o := r.before(), c.Evidence.Observed
	d := r.course.decide(c)
	if r.check != nil {
		if err := r.check(c, &d, &r.st); err != nil {
			return err
		}
	}
	r.out.Last = d
	r.count(&c.Evidence, was.seen)
	at := c.Now
	if was.pending.Move != release.Hold && o.Known && o.Weight.Same(was.pending.Weight) {
		r.confirm(was.pending.Move, o.At)
		at, was.weight = o.At, o.Weight
	}
	r.stand(at)
	r.note(c, &d, was.weight)
	return nil
}

// command takes note of what a person's word changed.
func (r *replay) command(c *Call) error {
	r.tick(c.Now)
	was := r.before()
	d, err := r.course.command(c)
	if err == nil && r.check != nil {
		err = r.check(c, &d, &r.st)
	}
	if err != nil {
		return err
	}
	switch c.Command.Verb {
	case ladder.DoRollBack:
		r.out.Last = d
		r.note(c, &d, was.weight)
	case ladder.DoRestart:
		r.x, r.requests, r.open = stretch{}, 0, false
	}
	r.stand(c.Now)
	return nil
}

// count takes the windows that were new.
func (r *replay) count(ev *ladder.Evidence, seen time.Time) {
	for i := range ev.Stable {
		w := &ev.Stable[i]
		r.saw(w)
		if w.T.After(r.stable) {
			r.stable = w.T
			r.out.Stable += w.Total
		}
	}
	for i := range ev.Windows {
		w := &ev.Windows[i]
		r.saw(w)
		if !w.T.After(seen) || w.T.After(r.st.Seen) {
			continue
		}
		r.out.Canary += w.Total
		if r.x.touches(w) {
			r.requests += w.Total
		}
		for j := len(r.serving) - 1; j >= 0 && w.Total > 0; j-- {
			if r.serving[j].has(w) {
				r.served++
				break
			}
		}
	}
	if r.open {
		r.expose()
	}
}

// saw notes the first window of all, from which minutes are counted.
func (r *replay) saw(w *release.Window) {
	if r.window.IsZero() {
		r.window, r.out.Span = w.T, w.Span
	}
	if w.T.Before(r.window) {
		r.window = w.T
	}
}

// expose writes what the present attempt has served into its newest record.
func (r *replay) expose() {
	r.rolled = r.requests
	r.out.Rollbacks[len(r.out.Rollbacks)-1].Exposure.Requests = r.requests
}

// confirm takes note that a write was read back.
func (r *replay) confirm(move release.Move, at time.Time) {
	switch move {
	case release.Start:
		r.x, r.requests = stretch{from: at}, 0
		r.serve(at)
	case release.Probe:
		r.x.to = time.Time{}
		r.serve(at)
	case release.RollBackMove, release.Lock:
		r.x.to, r.open = at, len(r.out.Rollbacks) > 0
		if n := len(r.serving); n > 0 && r.serving[n-1].to.IsZero() {
			r.serving[n-1].to = at
		}
		if r.open {
			r.expose()
		}
	}
}

// serve begins a stretch in which the canary has a weight.
func (r *replay) serve(at time.Time) {
	r.open = false
	if n := len(r.serving); n == 0 || !r.serving[n-1].to.IsZero() {
		r.serving = append(r.serving, stretch{from: at})
	}
}

// stand notes weight and phase from a time on.
func (r *replay) stand(at time.Time) {
	s := standing{at, r.st.Weight, r.st.Breaker.Phase}
	if n := len(r.steps); n > 0 {
		last := &r.steps[n-1]
		if last.weight.Same(s.weight) && last.phase == s.phase {
			return
		}
		if !s.from.After(last.from) {
			s.from = last.from
			*last = s
			return
		}
	}
	r.steps = append(r.steps, s)
}

// note writes down what a call changed; a write that is asked for once more is
// no change.
func (r *replay) note(c *Call, d *ladder.Decision, share release.Weight) {
	if d.Happened {
		r.out.Events = append(r.out.Events, Event{Event: d.Event, Before: share})
	}
	switch d.Move {
	case release.Hold:
		return
	case release.AwaitApproval:
		if n := len(r.out.Moves); n > 0 && r.out.Moves[n-1].Move == release.AwaitApproval {
			return
		}
	case release.RollBackMove, release.Lock:
		if d.Again {
			return
		}
		r.rollback(c, d, share)
	case release.Start:
		if d.Again {
			return
		}
		r.done += r.rolled
		r.rolled = 0
		if d.Why == ladder.WhyRecovered {
			r.x, r.requests, r.open = stretch{from: r.st.At}, 0, false
		}
	default:
		if d.Again {
			return
		}
	}
	r.out.Moves = append(r.out.Moves, Move{Decision: *d})
}

// rollback begins the record of a rollback that was asked for.
func (r *replay) rollback(c *Call, d *ladder.Decision, share release.Weight) {
	rec := Rollback{
		T: d.T, Share: share, Step: d.Step, Attempt: d.Attempt, Digest: r.st.Digest, Finding: d.Finding,
		Exposure: release.Exposure{Requests: r.requests}, Gate: !d.Happened, Locked: d.Move == release.Lock,
	}
	if d.Happened {
		rec.Finding, rec.Escalated = d.Event.Finding, d.Event.Escalated
		rec.First, rec.Last = d.Event.First, d.Event.Last
	}
	if c.Command != nil {
		rec.Gate, rec.Locked, rec.By, rec.Words = false, true, c.Command.By, c.Command.Reason
	}
	r.open, r.rolled = false, r.requests
	r.out.Rollbacks = append(r.out.Rollbacks, rec)
}

// end counts minutes from the first window and sums up.
func (r *replay) end() *Outcome {
	o := r.out
	if o.Span <= 0 {
		o.Span = time.Minute
	}
	o.Start = r.first.Truncate(o.Span)
	if !r.window.IsZero() && r.window.Before(o.Start) {
		o.Start = r.window
	}
	minute := func(t time.Time) int { return int(t.Sub(o.Start) / time.Minute) }
	for i := range o.Events {
		o.Events[i].Minute = minute(o.Events[i].T)
	}
	for i := range o.Moves {
		o.Moves[i].Minute = minute(o.Moves[i].T)
	}
	for i := range o.Rollbacks {
		o.Rollbacks[i].Minute = minute(o.Rollbacks[i].T)
	}
	for i, s := range r.steps {
		until := r.last
		if i+1 < len(r.steps) {
			until = r.steps[i+1].from
		}
		if until.After(s.from) {
			o.Steps = append(o.Steps, StepTime{From: s.from.Sub(o.Start), Length: until.Sub(s.from), Weight: s.weight, Phase: s.phase})
		}
	}
	o.Ticks = int((r.last.Sub(o.Start) + o.Span - 1) / o.Span)
	o.Gaps = max(r.expected()-r.served, 0)
	o.Exposure, o.State = release.Exposure{Requests: r.done + r.rolled}, r.st
	return o
}

// expected is how many whole windows there could be while the canary had a
// weight, as far as the source has come.
func (r *replay) expected() (n int) {
	for _, s := range r.serving {
		to := r.until
		if !s.to.IsZero() && s.to.Before(to) {
			to = s.to
		}
		from := s.from.Truncate(r.out.Span)
		if from.Before(s.from) {
			from = from.Add(r.out.Span)
		}
		n += int(max(to.Sub(from), 0) / r.out.Span)
	}
	return n
}
