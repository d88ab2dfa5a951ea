package simulate

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Film is a replay that can be looked at at each of its frames, forwards and
// backwards. It keeps what the frames were decided from and, every so often, the
// state that was reached, and decides the frames in between again when they are
// looked at: the next frame costs one tick or call, any other up to a few hundred
// of them, and thousands where states are so large that few can be kept.
//
// A film of a feed has a frame for the decision before the first tick, and one
// for each tick when it has been judged. A film of calls has a frame for each
// decision and each command. It must not be used by two goroutines at once.
type Film struct {
	out            *Outcome
	frames         frames
	canary, stable shots
	served         []int64 // by frame
	changes        []Happening
	marks          []int

	every  int // frames between two checkpoints
	checks []checkpoint

	at  int // the frame that now stands after; -1: before the first
	now scene
}

// Frame is a release at one moment of a film.
type Frame struct {
	Now  time.Time
	Plan *ladder.Plan // in force
	// Decision tells most about this frame: the last that changed anything in it,
	// or else the last hold. Where nothing was decided, at a person's word and at
	// the end of a feed where a probe would begin, it is that of the frame before.
	Decision ladder.Decision
	// State is the release's after the frame. It must not be changed, and is valid
	// until another frame is looked at: film and state share their memory.
	State   ladder.State
	Weight  release.Weight  // in force after the frame
	Served  int64           // canary requests since the attempt's first weight
	Command *ladder.Command // a person's word, in place of a decision; nil otherwise
}

// Happening is something that happened in a frame: exactly one of the pointers is
// set. They point into the film's [Outcome], which must not be changed, but for
// a step forward that was asked for and never made: it is none of the outcome's.
type Happening struct {
	Frame    int
	T        time.Time
	Event    *Event
	Move     *Move
	Rollback *Rollback
	Command  *ladder.Command
}

// frames are what a film decides anew.
type frames interface {
	len() int
	time(i int) time.Time
	plan(i int) *ladder.Plan
	command(i int) *ladder.Command
	// decide goes from the scene after the frame before to the one after frame i.
	decide(i int, s *scene) error
}

// scene is where a film stands after a frame.
type scene struct {
	course
	weight release.Weight
	told   ladder.Decision
}

// checkpoint is a scene that is kept, with its state apart: nothing that is
// decided later can reach it.
type checkpoint struct {
	state       []byte // JSON
	weight      release.Weight
	shown, told ladder.Decision
}

// load goes to where the checkpoint was taken.
func (s *scene) load(c *checkpoint) error {
	*s = scene{course: course{shown: c.shown}, weight: c.weight, told: c.told}
	return json.Unmarshal(c.state, &s.st)
}

// checkEvery is how many frames lie between two checkpoints, as long as all of
// their states are not larger than mostChecked, in bytes. Beyond that every
// second one is dropped.
const (
	checkEvery  = 256
	mostChecked = 48 << 20
)

// NewFilm replays the feed to its end, as [Run] does, and keeps what it takes to
// look at each frame: about 200 bytes for each window. An error is one of
// Run's, or says that a state cannot be kept.
func NewFilm(p *ladder.Plan, feed Feed, o Options) (*Film, error) {
	r := newRun(p, feed, o)
	k := &ticks{rules: p, approve: o.Approve, start: feed.Start(), span: feed.Span()}
	c := &camera{Feed: feed, roll: newRoll(), run: r, ticks: k}
	k.film = c.film
	r.told = &telling{roll: &c.roll}
	out, err := r.play(c)
	if err == nil {
		err = c.err
	}
	if err != nil {
		return nil, err
	}
	c.wrap(r.exposed)
	return c.develop(out, k), nil
}

// roll is a film that is being made.
type roll struct {
	film  *Film
	n     int      // the frame that is being made
	size  int      // bytes of all checkpoints' states
	notes []change // in order
	seen  struct{ events, moves, rollbacks int }
}

func newRoll() roll { return roll{film: &Film{every: checkEvery, at: -1}} }

// change is a [Happening] whose place in the outcome is known.
type change struct {
	frame int
	kind  kind
	at    int             // index among the outcome's
	said  *ladder.Command // of a command
	lost  *Move           // a move that is none of the outcome's any more
}

type kind uint8

const (
	anEvent kind = iota
	aMove
	aRollback
	aCommand
)

// due reports whether a checkpoint is to be made of where the frame begins.
func (r *roll) due() bool { return r.n%r.film.every == 0 }

// keep makes a checkpoint.
func (r *roll) keep(s *scene) error {
	f := r.film
	state, err := json.Marshal(&s.st)
	if err != nil {
		return err
	}
	f.checks = append(f.checks, checkpoint{state: state, weight: s.weight, shown: s.shown, told: s.told})
	r.size += len(state)
	for r.size > mostChecked && len(f.checks) > 1 {
		r.thin()
	}
	return nil
}

// thin drops every second checkpoint.
func (r *roll) thin() {
	f := r.film
	kept := f.checks[:0]
	r.size = 0
	for i := 0; i < len(f.checks); i += 2 {
		kept = append(kept, f.checks[i])
		r.size += len(f.checks[i].state)
	}
	clear(f.checks[len(kept):])
	f.checks = kept
	f.every *= 2
}

// note takes down what the outcome has more than before.
func (r *roll) note(out *Outcome) {
	for ; r.seen.events < len(out.Events); r.seen.events++ {
		r.notes = append(r.notes, change{frame: r.n, kind: anEvent, at: r.seen.events})
	}
	for ; r.seen.moves < len(out.Moves); r.seen.moves++ {
		r.notes = append(r.notes, change{frame: r.n, kind: aMove, at: r.seen.moves})
	}
	for ; r.seen.rollbacks < len(out.Rollbacks); r.seen.rollbacks++ {
		r.notes = append(r.notes, change{frame: r.n, kind: aRollback, at: r.seen.rollbacks})
	}
}

// wrap ends the frame.
func (r *roll) wrap(served int64) {
	r.film.canary.cut()
	r.film.stable.cut()
	r.film.served = append(r.film.served, served)
	r.n++
}

// develop makes the film, of an outcome that does not change any more.
func (r *roll) develop(out *Outcome, frames frames) *Film {
	f := r.film
	f.out, f.frames = out, frames
	f.changes = make([]Happening, len(r.notes))
	for i := range r.notes {
		f.changes[i] = r.notes[i].of(out)
		if n := len(f.marks); n == 0 || f.marks[n-1] != r.notes[i].frame {
			f.marks = append(f.marks, r.notes[i].frame)
		}
	}
	return f
}

func (n *change) of(out *Outcome) Happening {
	c := Happening{Frame: n.frame}
	switch n.kind {
	case anEvent:
		c.Event = &out.Events[n.at]
		c.T = c.Event.T
	case aMove:
		if c.Move = n.lost; c.Move == nil {
			c.Move = &out.Moves[n.at]
		} else {
			c.Move.Minute = int(c.Move.T.Sub(out.Start) / time.Minute)
		}
		c.T = c.Move.T
	case aRollback:
		c.Rollback = &out.Rollbacks[n.at]
		c.T = c.Rollback.T
	case aCommand:
		c.Command, c.T = n.said, n.said.At
	}
	return c
}

// telling picks the decision that tells most about a frame.
type telling struct {
	decision ladder.Decision
	picked   bool  // it is of the present frame
	roll     *roll // nil: only the decision is asked for
}

func (t *telling) see(out *Outcome, d *ladder.Decision) {
	if !t.picked || tells(d) || !tells(&t.decision) {
		t.decision, t.picked = *d, true
	}
	if t.roll != nil {
		t.roll.note(out)
	}
}

// tells reports whether a decision changes anything.
func tells(d *ladder.Decision) bool {
	return d.Move != release.Hold && d.Move != release.AwaitApproval || d.Happened
}

// camera is a feed that is filmed while it is played.
type camera struct {
	Feed
	roll
	run   *run
	ticks *ticks
	err   error // why a state could not be kept
}

// More is asked before every frame.
func (c *camera) More() bool {
	if c.due() {
		s := scene{course: course{st: c.run.st}, weight: c.run.weight, told: c.run.told.decision}
		c.err = errors.Join(c.err, c.keep(&s))
	}
	c.run.told.picked = false
	return c.Feed.More()
}

// Next ends a frame and keeps the tick of the next one.
func (c *camera) Next(w release.Weight) (Tick, error) {
	c.wrap(c.run.exposed)
	tick, err := c.Feed.Next(w)
	if err != nil {
		return tick, err
	}
	if c.n == 1 {
		c.ticks.first = tick.T
	}
	c.film.canary.add(tick.Canary)
	c.film.stable.add(tick.Stable)
	return tick, nil
}

// ticks are the frames of a feed.
type ticks struct {
	film    *Film
	rules   *ladder.Plan
	approve bool
	start   time.Time
	first   time.Time // start of the first tick, which may be after the feed's
	span    time.Duration
	scratch Outcome
}

func (k *ticks) len() int                    { return len(k.film.served) }
func (k *ticks) plan(int) *ladder.Plan       { return k.rules }
func (k *ticks) command(int) *ladder.Command { return nil }

func (k *ticks) time(i int) time.Time {
	if i == 0 {
		return k.start
	}
	return k.first.Add(time.Duration(i) * k.span)
}

// decide does what [Run] did at the end of tick i.
func (k *ticks) decide(i int, s *scene) error {
	k.scratch = Outcome{
		Start: k.start, Span: k.span,
		Events: k.scratch.Events[:0], Moves: k.scratch.Moves[:0], Rollbacks: k.scratch.Rollbacks[:0],
	}
	told := telling{decision: s.told}
	r := run{
		plan: k.rules, approve: k.approve, st: s.st, out: &k.scratch, weight: s.weight, told: &told,
		tick: Tick{Canary: k.film.canary.of(i), Stable: k.film.stable.of(i)},
	}
	if err := r.decide(k.time(i), i == k.len()-1); err != nil {
		return err
	}
	s.st, s.weight, s.told = r.st, r.weight, told.decision
	return nil
}

// Len returns how many frames there are, at least 1.
func (f *Film) Len() int { return f.frames.len() }

// Time returns the time of a frame: a tick's end, or when a call was made.
func (f *Film) Time(i int) time.Time { return f.frames.time(i) }

// Span returns the length of a window, as [Outcome.Span].
func (f *Film) Span() time.Duration { return f.out.Span }

// Changes returns everything that happened, in order. It must not be changed.
func (f *Film) Changes() []Happening { return f.changes }

// Marks returns the frames in which anything happened, rising, each once. It
// must not be changed.
func (f *Film) Marks() []int { return f.marks }

// At returns a frame, from 0 to Len()-1.
func (f *Film) At(i int) Frame {
	served := f.served[i]
	if err := f.turn(i); err != nil {
		panic("simulate: a frame that has been decided before: " + err.Error())
	}
	return Frame{
		Now: f.Time(i), Plan: f.frames.plan(i), Decision: f.now.told, State: f.now.st,
		Weight: f.now.weight, Served: served, Command: f.frames.command(i),
	}
}

// turn goes to a frame, from where it stands or from the last checkpoint.
func (f *Film) turn(i int) error {
	if i == f.at {
		return nil
	}
	next := f.at + 1
	if check := i / f.every; i < next || check*f.every > next {
		if err := f.now.load(&f.checks[check]); err != nil {
			return err
		}
		next = check * f.every
	}
	for ; next <= i; next++ {
		if err := f.frames.decide(next, &f.now); err != nil {
			return err
		}
	}
	f.at = i
	return nil
}
