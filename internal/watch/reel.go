package watch

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

// Reel shows a replay as if it were a release: a [Snapshot] for each frame.
type Reel struct {
	name   string
	film   *simulate.Film
	config func(*ladder.Plan) *config.Config
	events []Event
	marks  []int // of the event with the same index, the frame
	record []*journal.Rollback
}

// NewReel returns a replay under its name. The function gives the configuration
// that a plan was made of, for the baselines in it; nil where it is not known.
func NewReel(name string, film *simulate.Film, config func(*ladder.Plan) *config.Config) *Reel {
	r := &Reel{name: name, film: film, config: config}
	r.tell(film.Changes(), film.Span())
	return r
}

// Len returns the number of frames.
func (r *Reel) Len() int { return r.film.Len() }

// Time returns the time of a frame.
func (r *Reel) Time(i int) time.Time { return r.film.Time(i) }

// Marks returns the frames in which something happened.
func (r *Reel) Marks() []int { return r.film.Marks() }

// Span returns the replay's time from one frame to the next.
func (r *Reel) Span() time.Duration {
	if span := r.film.Span(); span > 0 {
		return span
	}
	return time.Minute
}

// At returns the snapshot of a frame.
func (r *Reel) At(i int) Snapshot {
	f := r.film.At(i)
	s := r.outline(i, &f)
	canary, stable := r.film.Windows(i, r.from(&f), mostWindows)
	s.Times = timesOf(canary, stable, r.Span())
	k := look{
		at: f.Now, plan: f.Plan, outcome: &s.Outcome, since: f.State.At, record: s.Record, config: r.config(f.Plan), canary: canary, stable: stable,
	}
	s.Signals = k.signals(s.Times)
	s.guard(&k)
	return s
}

// Outline returns the snapshot of a frame without its signals, which are most of
// the work.
func (r *Reel) Outline(i int) Snapshot {
	f := r.film.At(i)
	return r.outline(i, &f)
}

func (r *Reel) outline(i int, f *simulate.Frame) Snapshot {
	out := journal.OutcomeOf(&f.Decision, &f.State)
	if f.Command != nil {
		out.Reason = f.Command.Verb.String() + " by " + f.Command.By
	}
	told := r.until(i)
	s := Snapshot{
		At: f.Now, Replay: r.name, Service: f.Plan.Service, Release: journal.Brief(f.State.Candidate), Candidate: f.State.Candidate, Outcome: out,
		Rungs: rungs(f.Plan), Step: stepOf(&f.State), Stage: f.State.Stage, Weight: f.Weight, Since: f.State.At, Pending: f.State.Pending,
		Held: heldOf(&f.State, f.Now), Served: f.Served, Events: r.events[:told],
	}
	s.Next = driver.Next(&s.Outcome, s.Release)
	if told > 0 {
		s.Record = r.record[told-1]
	}
	return s
}

// mostWindows bounds what a figure beside the canary's is summed over.
const mostWindows = 1500

// from is since when windows are needed: for the step's figures, and for the
// series with the spans before them.
func (r *Reel) from(f *simulate.Frame) time.Time {
	back := f.Now.Add(-Points*r.Span() - reach(f.Plan))
	if f.State.At.Before(back) && !f.State.At.IsZero() {
		return f.State.At
	}
	return back
}

// reach is how far back the breaker counts.
func reach(p *ladder.Plan) time.Duration {
	var out time.Duration
	for i := range p.Steps {
		out = max(out, p.Steps[i].Limits.Reach())
	}
	return out
}

// until is how many events had happened by a frame.
func (r *Reel) until(frame int) int {
	n := len(r.marks)
	for n > 0 && r.marks[n-1] > frame {
		n--
	}
	return n
}

// tell forms the events of all changes.
func (r *Reel) tell(changes []simulate.Happening, span time.Duration) {
	var record *journal.Rollback
	for i := 0; i < len(changes); {
		k := i
		for k < len(changes) && changes[k].Frame == changes[i].Frame {
			if back := changes[k].Rollback; back != nil {
				record = recordOf(back, span)
			}
			k++
		}
		for _, e := range happened(changes[i:k], record) {
			e.Frame = changes[i].Frame
			r.events, r.marks, r.record = append(r.events, e), append(r.marks, e.Frame), append(r.record, record)
		}
		i = k
	}
}

// happened are the events of one frame. A move tells of the breaker's
// transition that caused it, and a rollback unfolds to its record.
func happened(changes []simulate.Happening, record *journal.Rollback) []Event {
	var out []Event
	moved := false
	for i := range changes {
		moved = moved || changes[i].Move != nil && changes[i].Move.Happened
	}
	for i := range changes {
		c := &changes[i]
		var entry journal.Entry
		switch {
		case c.Command != nil:
			entry = journal.Entry{T: c.T, Kind: journal.Command, Command: &journal.Commanded{Command: *c.Command}}
		case c.Move != nil:
			entry = decided(c.T, &c.Move.Decision)
		case c.Event != nil && !moved:
			entry = decided(c.T, &ladder.Decision{T: c.T, Why: ladder.WhyFailed, Event: c.Event.Event, Happened: true, Weight: c.Event.Before})
		default:
			continue
		}
		e, ok := EventOf(&entry)
		if !ok {
			continue
		}
		if c.Move != nil && back(c.Move.Move) && record != nil {
			e.Detail = RecordDetail(record)
		}
		out = append(out, e)
	}
	return out
}

// decided is a decision as the journal of a live release would tell it.
func decided(t time.Time, d *ladder.Decision) journal.Entry {
	return journal.Entry{T: t, Kind: journal.Decide, Decided: &journal.Decided{Now: t, Outcome: journal.OutcomeOf(d, &ladder.State{})}}
}

// recordOf is the record of a simulated rollback as a live release would write
// it: 0 is read back as soon as it is asked for.
func recordOf(b *simulate.Rollback, span time.Duration) *journal.Rollback {
	by := "breaker"
	switch {
	case b.By != "":
		by = "person"
	case b.Gate:
		by = "gate"
	}
	finding := b.Finding
	rec := &journal.Rollback{
		Final: true, T: b.T, Config: b.Digest, By: by, Who: b.By, Why: b.Words, Finding: &finding, Reason: finding.String(),
		From: b.First, To: b.Last, Share: b.Share, Step: b.Step + 1, Attempt: b.Attempt, Escalated: b.Escalated, Locked: b.Locked,
		Exposure: release.Exposure{Requests: b.Exposure.Requests}, AskedAt: b.T.Add(span), ReadBack: b.T.Add(span),
	}
	if b.By != "" {
		rec.Finding, rec.Reason = nil, "rolled back by "+b.By
		if b.Words != "" {
			rec.Reason += ": " + b.Words
		}
		rec.AskedAt, rec.ReadBack = b.T, b.T
	}
	return rec
}
