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
	// BadFrom is the minute of the feed in which the scenario says that the
	// canary turns bad; detection and exposure are told from it too. Nil: it
	// never does, or nobody knows.
	BadFrom *int
	// Approve gives every approval as soon as it is asked for.
	Approve bool
}

// Event is a transition of the breaker with its place in the replay.
type Event struct {
	Minute int // whole minutes from the feed's first window
	release.Event
	Before release.Weight // the share in force before it
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
	Gate      bool   // a step's gate failed, not the breaker
	By        string // the person who rolled back by hand; "": breaker or gate
	Words     string // and why, in their words
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
	BadFrom   *int              // as in the options
	Exposure  release.Exposure  // of every attempt that was rolled back, to its last rollback
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
	return newRun(p, feed, o).play(feed)
}

func newRun(p *ladder.Plan, feed Feed, o Options) *run {
	return &run{plan: p, approve: o.Approve, out: &Outcome{Start: feed.Start(), Span: feed.Span(), BadFrom: o.BadFrom}}
}

// play asks More before every decision, and Next after it where a tick follows.
func (r *run) play(feed Feed) (*Outcome, error) {
	now := feed.Start()
	for feed.More() {
		if err := r.decide(now, false); err != nil {
			return nil, err
		}
		tick, err := feed.Next(r.weight)
		if err != nil {
			return nil, err
		}
		r.serve(tick)
		now = tick.T.Add(feed.Span())
	}
	if err := r.decide(now, true); err != nil {
		return nil, err
	}
	r.out.State = r.st
	r.out.Exposure = release.Exposure{Requests: r.done + r.last}
	return r.out, nil
}

// run is a replay under way.
type run struct {
	plan    *ladder.Plan
	approve bool
	st      ladder.State
	out     *Outcome
	weight  release.Weight // in force
	tick    Tick           // the last one served, not yet judged
	exposed int64          // canary requests since the attempt's first weight
	bad     int64          // canary requests since the canary turned bad
	done    int64          // exposure of attempts before the present one
	last    int64          // exposure at the present attempt's last rollback
	told    *telling       // what a film keeps of every decision; nil: nobody films
}

func (r *run) minute(t time.Time) int { return int(t.Sub(r.out.Start) / time.Minute) }

// isBad reports whether the canary has turned bad by a time.
func (r *run) isBad(t time.Time) bool {
	return r.out.BadFrom != nil && r.minute(t) >= *r.out.BadFrom
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
		if r.isBad(t.T) {
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
// this instant, and carries out what it says. At the end of the feed the last
// window is judged, but no probe begins: its tick would be none of the feed's.
// A decision is large, and is made where the last one is kept.
func (r *run) decide(now time.Time, end bool) error {
	d := &r.out.Last
	var before *moment
	if end {
		before = &moment{last: *d}
	}
	for {
		ev := ladder.Evidence{
			Windows: r.tick.Canary, Stable: r.tick.Stable,
			Observed: ladder.Observed{Weight: r.weight, At: now, Known: true},
		}
		if end {
			before.st = r.st
		}
		*d = ladder.Decide(r.plan, &r.st, ev, now)
		if end && d.Happened && d.Event.To == release.HalfOpen {
			r.st, *d = before.st, before.last
			return nil
		}
		if end && d.Happened && d.Event.To == release.Open {
			before.last = *d
		}
		r.note(d)
		if r.told != nil {
			r.told.see(r.out, d)
		}
		if d.Write {
			r.weight = d.Weight
			continue
		}
		if d.Move == release.AwaitApproval && r.approve {
			a := ladder.Approval{Attempt: d.Attempt, Step: d.Step, Digest: r.plan.Digest, By: "simulate", At: now}
			if err := ladder.Approve(&r.st, d, a); err != nil {
				return err
			}
			continue
		}
		if !d.Happened && d.Move != release.Complete {
			return nil
		}
	}
}

// moment is what a replay goes back to where its feed ends.
type moment struct {
	st   ladder.State
	last ladder.Decision
}

// note writes down what a decision changed.
func (r *run) note(d *ladder.Decision) {
	if d.Happened {
		r.out.Events = append(r.out.Events, Event{Minute: r.minute(d.Event.T), Event: d.Event, Before: r.weight})
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
	if r.isBad(d.T) {
		rec.SinceBad = &release.Exposure{Requests: r.bad}
		if r.out.Delay == nil {
			delay := d.T.Add(r.out.Span).Sub(r.out.Start) - time.Duration(*r.out.BadFrom)*time.Minute
			r.out.Delay, r.out.SinceBad = &delay, rec.SinceBad
		}
	}
	r.last = r.exposed
	r.out.Rollbacks = append(r.out.Rollbacks, rec)
}
