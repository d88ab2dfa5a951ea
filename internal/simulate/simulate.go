// Package simulate replays a feed of windows through the breaker and the
// ladder that guard production, in virtual time, and says what would have
// happened. It holds no decision logic: every tick it shows [ladder.Decide]
// the window that has just ended and does what Decide says.
//
//	out, err := simulate.Run(plan, feed, simulate.Options{})
//
// A weight acts in its own minute: what Decide says at the beginning of a tick
// is read back at once and is the share under which the tick's window is
// served. A window is seen when it has ended, and an event carries the time of
// the window that caused it.
package simulate

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Options are what a replay needs besides plan and feed.
type Options struct {
	// Faults are when the scenario says that the canary turns bad, counted
	// from the start of the feed; detection and exposure are told from the
	// first one too. Empty: unknown.
	Faults []time.Duration
	// Approve gives every approval as soon as it is asked for.
	Approve bool
	// Initial is the weight before the release; the zero value is 0.
	Initial release.Weight
	// Watch, if set, is shown every tick after it was folded.
	Watch func(Frame)
}

// Frame is one tick as it went.
type Frame struct {
	Minute   int
	Tick     Tick
	Weight   release.Weight // in force during the tick
	Phase    release.Phase  // after it
	Decision *ladder.Decision
}

// Event is a transition of the breaker with its place in the replay.
type Event struct {
	Minute int // whole minutes from the feed's first window
	release.Event
	Before release.Weight // the share in force before it
	Step   int            // the step in force before it, an index
}

// Move is a change of the ladder with its place in the replay.
type Move struct {
	Minute int
	ladder.Decision
}

// Rollback is the record that every trip writes.
type Rollback struct {
	Minute    int
	T         time.Time
	Gate      bool // a step's gate failed, not the breaker
	Escalated bool
	Locked    bool
	Finding   release.Finding
	First     time.Time // start of the oldest window it rests on
	Last      time.Time // and of the newest
	Share     release.Weight
	Step      int
	Attempt   int
	Exposure  release.Exposure  // since the attempt's first weight
	SinceBad  *release.Exposure // since the fault began, where a scenario declares one
	Digest    string
}

// Outcome is what a replay came to.
type Outcome struct {
	Start     time.Time
	Span      time.Duration
	Ticks     int
	Gaps      int // ticks in which the canary had a weight and no window with requests came
	Canary    int64
	Stable    int64
	Events    []Event
	Moves     []Move
	Rollbacks []Rollback
	Exposure  release.Exposure  // of all attempts that were rolled back
	SinceBad  *release.Exposure // canary requests served from the fault's start to the first read-back of 0 after it
	Delay     *time.Duration    // from the fault's start to the end of the window that tripped
	Steps     []StepTime        // how long the canary stood at which share, in order
	Last      ladder.Decision   // of the last tick
	State     ladder.State
}

// StepTime is a span of the replay under one weight.
type StepTime struct {
	From, Length time.Duration // since the feed's first window
	Weight       release.Weight
	Phase        release.Phase
}

// Run replays the feed from its first tick to its last.
func Run(p *ladder.Plan, feed Feed, o Options) (*Outcome, error) {
	r := &run{plan: p, opt: o, out: &Outcome{Start: feed.Start(), Span: feed.Span()}, weight: o.Initial}
	r.badFrom = -1
	for _, f := range o.Faults {
		if m := int(f / time.Minute); r.badFrom < 0 || m < r.badFrom {
			r.badFrom = m
		}
	}
	now := feed.Start()
	for {
		if err := r.decide(now); err != nil {
			return nil, err
		}
		tick, more, err := feed.Next(r.weight)
		if err != nil {
			return nil, err
		}
		if !more {
			r.undoProbe(now)
			break
		}
		r.serve(tick)
		now = tick.T.Add(feed.Span())
	}
	r.finish()
	return r.out, nil
}

// run is a replay under way.
type run struct {
	plan    *ladder.Plan
	opt     Options
	st      ladder.State
	out     *Outcome
	weight  release.Weight // in force
	tick    Tick           // the last one served, not yet judged
	exposed int64          // canary requests since the attempt's first weight
	badFrom int            // minute of the first fault, or -1
	bad     int64          // canary requests since then
	done    int64          // exposure of attempts before the present one
	last    int64          // exposure at the present attempt's last rollback
	cooling eve
}

// eve is a replay as it stood before a Decide that met an OPEN breaker.
type eve struct {
	st            ladder.State
	weight        release.Weight
	last          ladder.Decision
	events, moves int
}

func (r *run) minute(t time.Time) int { return int(t.Sub(r.out.Start) / time.Minute) }

// undoProbe takes back a HALF_OPEN that began at the end of the feed: the last
// window is judged when it has ended, but the tick that begins there is none of
// the feed's.
func (r *run) undoProbe(end time.Time) {
	b := &r.st.Breaker
	if r.out.Ticks == 0 || b.Phase != release.HalfOpen || !b.Since.Equal(end) {
		return
	}
	was := &r.cooling
	r.st, r.weight, r.out.Last = was.st, was.weight, was.last
	r.out.Events, r.out.Moves = r.out.Events[:was.events], r.out.Moves[:was.moves]
}

// serve takes a tick under the weight in force.
func (r *run) serve(t Tick) {
	r.out.Ticks++
	r.tick = t
	r.out.Canary += requests(t.Canary)
	r.out.Stable += requests(t.Stable)
	if !r.weight.IsZero() {
		n := requests(t.Canary)
		if n == 0 {
			r.out.Gaps++
		}
		r.exposed += n
		if r.badFrom >= 0 && r.minute(t.T) >= r.badFrom {
			r.bad += n
		}
	}
	r.stand(t.T.Sub(r.out.Start))
}

// stand notes the weight and the phase under which a tick is served.
func (r *run) stand(from time.Duration) {
	steps := r.out.Steps
	phase := r.st.Breaker.Phase
	if n := len(steps); n > 0 && steps[n-1].Weight.Same(r.weight) && steps[n-1].Phase == phase {
		steps[n-1].Length += r.out.Span
		return
	}
	r.out.Steps = append(steps, StepTime{From: from, Length: r.out.Span, Weight: r.weight, Phase: phase})
}

// decide shows Decide the last tick until it has nothing more to change at
// this instant, and carries out what it says.
func (r *run) decide(now time.Time) error {
	for {
		ev := ladder.Evidence{
			Windows: r.tick.Canary, Stable: r.tick.Stable,
			Observed: ladder.Observed{Weight: r.weight, At: now, Known: true},
		}
		if r.st.Breaker.Phase == release.Open {
			r.cooling = eve{r.st, r.weight, r.out.Last, len(r.out.Events), len(r.out.Moves)}
		}
		d := ladder.Decide(r.plan, &r.st, ev, now)
		if d.Happened && d.Event.To == release.Open {
			r.out.Last = d
		}
		r.note(&d, now)
		if d.Write {
			r.weight = d.Weight
			continue
		}
		if d.Move == release.AwaitApproval && r.opt.Approve {
			a := ladder.Approval{Attempt: d.Attempt, Step: d.Step, Digest: r.plan.Digest, By: "simulate", At: now}
			if err := ladder.Approve(&r.st, &d, a); err != nil {
				return err
			}
			continue
		}
		if d.Happened || d.Move == release.Complete {
			continue
		}
		r.out.Last = d
		if r.opt.Watch != nil && r.out.Ticks > 0 {
			shown := d // a copy, so that d itself can stay on the stack when nobody watches
			r.opt.Watch(Frame{Minute: r.minute(r.tick.T), Tick: r.tick, Weight: r.weight, Phase: d.Phase, Decision: &shown})
		}
		return nil
	}
}

// note writes down what a decision changed.
func (r *run) note(d *ladder.Decision, now time.Time) {
	if d.Happened {
		r.out.Events = append(r.out.Events, Event{Minute: r.minute(d.Event.T), Event: d.Event, Before: r.weight, Step: r.stepBefore(d)})
	}
	switch d.Move {
	case release.Hold:
		return
	case release.AwaitApproval:
		if n := len(r.out.Moves); n > 0 && r.out.Moves[n-1].Move == release.AwaitApproval {
			return
		}
	case release.RollBackMove, release.Lock:
		r.rollback(d)
	case release.Start:
		r.exposed = 0
		r.done += r.last
		r.last = 0
	}
	r.out.Moves = append(r.out.Moves, Move{Minute: r.minute(d.T), Decision: *d})
}

func (r *run) stepBefore(d *ladder.Decision) int {
	if d.Move == release.Probe {
		return 0
	}
	return d.Step
}

// rollback writes the record. The weight reads back as 0 at the end of the
// window that tripped, so that window is exposure too.
func (r *run) rollback(d *ladder.Decision) {
	rec := Rollback{
		Minute: r.minute(d.T), T: d.T, Share: r.weight, Step: d.Step, Attempt: d.Attempt, Digest: r.plan.Digest,
		Exposure: release.Exposure{Requests: r.exposed}, Finding: d.Finding, Gate: !d.Happened, Locked: d.Move == release.Lock,
	}
	if d.Happened {
		rec.Finding, rec.Escalated = d.Event.Finding, d.Event.Escalated
		rec.First, rec.Last = d.Event.First, d.Event.Last
	}
	if end := d.T.Add(r.out.Span); r.badFrom >= 0 && r.minute(d.T) >= r.badFrom {
		rec.SinceBad = &release.Exposure{Requests: r.bad}
		if r.out.Delay == nil {
			delay := end.Sub(r.out.Start) - time.Duration(r.badFrom)*time.Minute
			r.out.Delay, r.out.SinceBad = &delay, rec.SinceBad
		}
	}
	r.last = r.exposed
	r.out.Rollbacks = append(r.out.Rollbacks, rec)
}

func (r *run) finish() {
	r.out.State = r.st
	r.out.Exposure = release.Exposure{Requests: r.done + r.last}
}
