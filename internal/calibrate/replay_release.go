package calibrate

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

// releaseRun is how one release of a healthy canary ended.
type releaseRun struct{ rolledBack, completed bool }

// climb runs the whole ladder from a random minute of a fortnight on.
func (r *Replay) climb(seed uint64, kept *memory) (releaseRun, error) {
	h := r.history
	from := newDice(seed, drawStart, 0).rng.IntN(14 * h.perDay)
	feed := &replayFeed{
		stream:  h.newStream(newDice(seed, drawRelease, 0), newDice(seed, drawReSplit, 0).with(kept), from),
		thinner: thinner{r: r, requests: newDice(seed, drawReThin, 0).with(kept), costs: newDice(seed, drawReleaseC, 0)},
	}
	feed.start = feed.stream.now()
	feed.canary[0].Arm = release.Canary
	feed.left, feed.last = r.longest()
	out, err := simulate.Run(r.plan, feed, simulate.Options{Approve: true})
	if err != nil {
		return releaseRun{}, err
	}
	for i := range out.Moves {
		switch out.Moves[i].Move {
		case release.Complete:
			return releaseRun{completed: true}, nil
		case release.RollBackMove, release.Lock:
			return releaseRun{rolledBack: true}, nil
		}
	}
	return releaseRun{}, nil
}

// longest is how many ticks a release is followed: in all, twice its holds and
// a week, for freezes and for minutes in which no hold runs; and with requests
// at the last step, its hold and 6 hours. One that has not ended by then is
// neither rolled back nor completed.
func (r *Replay) longest() (all, last int) {
	var holds time.Duration
	for i := range r.plan.Steps {
		holds += r.plan.Steps[i].MinHold
	}
	end := r.plan.Steps[len(r.plan.Steps)-1].MinHold + 6*time.Hour
	return int((2*holds + week) / r.o.Tick), int(end / r.o.Tick)
}

// replayFeed shows the ladder its share of resampled time. It ends with the
// first rollback.
type replayFeed struct {
	stream  *stream
	thinner thinner
	start   time.Time
	left    int // ticks
	last    int // ticks with requests at the last step
	served  bool
	over    bool
	part    load
	canary  [1]release.Window
	stable  [1]release.Window
}

// Span implements simulate.Feed.
func (f *replayFeed) Span() time.Duration { return f.stream.h.tick }

// Start implements simulate.Feed.
func (f *replayFeed) Start() time.Time { return f.start }

// More implements simulate.Feed.
func (f *replayFeed) More() bool { return !f.over && f.left > 0 && f.last > 0 }

// Next implements simulate.Feed.
func (f *replayFeed) Next(weight release.Weight) (simulate.Tick, error) {
	f.left--
	f.over = f.served && weight.IsZero()
	f.served = f.served || !weight.IsZero()
	tick := simulate.Tick{T: f.stream.now()}
	l := f.stream.take(&f.part)
	if l.gap {
		return tick, nil
	}
	steps := f.thinner.r.plan.Steps
	f.canary[0].T = tick.T
	rest, mean := f.thinner.split(l, weight, &f.canary[0])
	if !weight.IsZero() {
		tick.Canary = f.canary[:]
		if f.canary[0].Total > 0 && weight.Same(steps[len(steps)-1].Weight) {
			f.last--
		}
	}
	if weight.Slots < weight.Ring || weight.IsZero() {
		f.serve(tick.T, weight, &rest, mean)
		tick.Stable = f.stable[:]
	}
	return tick, nil
}

// serve writes down what is left to stable, of the whole traffic nothing.
func (f *replayFeed) serve(at time.Time, weight release.Weight, rest *load, mean float64) {
	w := &f.stable[0]
	if weight.Slots >= weight.Ring {
		*w = release.Window{}
		return
	}
	w.T, w.Arm = at, release.Stable
	rest.count(w, f.stream.h.tick)
	if mean > 0 {
		w.CostMean = mean
		w.Known |= release.HasCostMean
	}
}
