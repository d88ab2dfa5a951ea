package simulate

import (
	"encoding/json"
	"iter"
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
)

// FilmOf makes a film of the calls of a live release's journal, which it replays
// as [Replay] does, with the same check and the same errors. What changes the
// release beside decisions and commands is part of the frame after it, or of the
// last one. The weight in force is the one that was last read back.
func FilmOf(calls iter.Seq2[*Call, error], check func(*Call, *ladder.Decision, *ladder.State) error) (*Film, error) {
	p := &projector{roll: newRoll(), replay: &replay{out: &Outcome{}, check: check}, taken: &takes{}}
	out, err := p.replay.play(p.filmed(calls))
	if err != nil {
		return nil, err
	}
	p.film.served[p.n-1] = p.replay.requests
	return p.develop(out, p.taken), nil
}

// projector films calls while they are replayed.
type projector struct {
	roll
	replay *replay
	taken  *takes
	told   ladder.Decision
	begun  bool // the frame has had a call
}

// filmed yields the calls and keeps each of them as it is before it is replayed.
func (p *projector) filmed(calls iter.Seq2[*Call, error]) iter.Seq2[*Call, error] {
	return func(yield func(*Call, error) bool) {
		for c, err := range calls {
			if err == nil {
				err = p.before(c)
			}
			moves := len(p.replay.out.Moves)
			if !yield(c, err) || err != nil {
				return
			}
			p.after(c, moves)
		}
	}
}

// before keeps a call.
func (p *projector) before(c *Call) error {
	if !p.begun && p.due() {
		s := scene{course: p.replay.course, weight: p.replay.st.Weight, told: p.told}
		if err := p.keep(&s); err != nil {
			return err
		}
	}
	p.begun = true
	k := take{Call: *c}
	k.Evidence.Windows = p.film.canary.add(c.Evidence.Windows)
	k.Evidence.Stable = p.film.stable.add(c.Evidence.Stable)
	if c.Adopted != nil {
		state, err := json.Marshal(&c.Adopted.State)
		if err != nil {
			return err
		}
		k.Adopted, k.state = &Adopted{Move: c.Adopted.Move, Verdict: c.Adopted.Verdict}, state
	}
	p.taken.all = append(p.taken.all, k)
	return nil
}

// after takes down what a call came to, and ends the frame with a decision or a
// command. A step forward that turns out not to have been made is taken from the
// outcome; it was asked for all the same.
func (p *projector) after(c *Call, moves int) {
	out := p.replay.out
	switch {
	case c.Adopted != nil:
		p.told = p.replay.shown
		return
	case c.Abandoned:
		if len(out.Moves) < moves {
			p.lose(out.Moves[:moves])
		}
		return
	case c.Command != nil:
		p.notes = append(p.notes, change{frame: p.n, kind: aCommand, said: c.Command})
	}
	if c.decides() {
		p.told = out.Last
	}
	p.note(out)
	p.taken.frames = append(p.taken.frames, int32(len(p.taken.all)-1))
	p.wrap(p.replay.requests)
	p.begun = false
}

// lose keeps the last move, which the outcome has forgotten.
func (p *projector) lose(moves []Move) {
	last := len(moves) - 1
	for i := len(p.notes) - 1; i >= 0; i-- {
		if n := &p.notes[i]; n.kind == aMove && n.lost == nil && n.at == last {
			kept := moves[last]
			n.lost, p.seen.moves = &kept, last
			return
		}
	}
}

// decides reports whether the call came to a decision.
func (c *Call) decides() bool { return c.Command == nil || c.Command.Verb == ladder.DoRollBack }

// takes are the frames of calls.
type takes struct {
	all    []take
	frames []int32 // the decision or command of each, an index into all
}

// take is a call that is kept to be made again. What was adopted is kept apart:
// a state that is gone on from changes.
type take struct {
	Call
	state []byte // JSON, of Adopted
}

func (k *takes) len() int                      { return len(k.frames) }
func (k *takes) call(i int) *take              { return &k.all[k.frames[i]] }
func (k *takes) time(i int) time.Time          { return k.call(i).Now }
func (k *takes) plan(i int) *ladder.Plan       { return k.call(i).Plan }
func (k *takes) command(i int) *ladder.Command { return k.call(i).Command }

// decide makes the calls of frame i once more.
func (k *takes) decide(i int, s *scene) error {
	from, to := 0, int(k.frames[i])+1
	if i > 0 {
		from = int(k.frames[i-1]) + 1
	}
	if i == k.len()-1 {
		to = len(k.all)
	}
	for n := from; n < to; n++ {
		if err := k.all[n].again(s); err != nil {
			return err
		}
	}
	s.weight = s.st.Weight
	return nil
}

// again makes the call once more.
func (k *take) again(s *scene) error {
	switch {
	case k.Adopted != nil:
		s.adopt(k.Adopted)
		s.told = s.shown
		return json.Unmarshal(k.state, &s.st)
	case k.Abandoned:
		ladder.Abandon(&s.st)
		return nil
	case k.Command == nil:
		s.told = s.course.decide(&k.Call)
		return nil
	}
	d, err := s.course.command(&k.Call)
	if k.decides() {
		s.told = d
	}
	return err
}
