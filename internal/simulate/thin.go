package simulate

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// ErrShareUnknown says that recorded windows have none of stable, so that the
// share under which the canary's were recorded is not known.
var ErrShareUnknown = errors.New("no windows of stable: the share under which the canary was recorded is unknown, so it cannot be thinned to another")

// ShareError says that the ladder asks for more of the canary than was
// recorded: requests that never were cannot be made up.
type ShareError struct {
	T        time.Time      // of the tick
	Want     release.Weight // the ladder's share
	Canary   int64          // recorded requests of the canary in the hour around the tick
	Requests int64          // and of both arms
}

// Error implements error.
func (e *ShareError) Error() string {
	return fmt.Sprintf("at %s the ladder stands at %s, but only %d of the %d requests around it (%.3g %%) were recorded on the canary",
		e.T.UTC().Format(time.RFC3339), e.Want, e.Canary, e.Requests, 100*float64(e.Canary)/float64(e.Requests))
}

// Thin makes a feed that shows the ladder only its share of a recorded canary.
//
// In each tick every recorded request of the canary is kept with the same
// chance, the ladder's share over the recorded one, which is canary's requests
// over both arms' in the hour around the tick: a single tick's share scatters.
// Solved, unsolved and unjudged requests are drawn from
// binomials; violations, transfers, slow requests, streams and requests with a
// status, whose place among them the windows do not tell, go with a random
// choice of as many requests as were kept, and slow or broken streams and errors
// with as many of those. Percentiles are dropped, since they cannot be thinned
// from a window; costs and inter-token latencies are means and stay, and KV-cache
// use is the machine's and stays too. Stable's windows stay as they were recorded, and so does what
// a window of the canary says of stable.
//
// A tick in which stable has no window has no known share and is a gap for the
// canary. Where the ladder's share is above the recorded one by more than three
// standard errors of a proportion, Next returns a *[ShareError]; where it is
// above it by less, every request is kept. The draws depend on seed, tick and
// arm's window alone.
//
// Thin reads the feed on from where it stands, in ticks as long as the longest
// window of either arm, so that each has its share; the feed must not be used
// beside it. It returns [ErrShareUnknown] for a feed without windows of stable.
func Thin(feed *Recorded, seed uint64) (*Thinned, error) {
	if len(feed.stable) == 0 {
		return nil, ErrShareUnknown
	}
	feed.span = max(feed.span, longest(feed.stable))
	t := &Thinned{feed: feed, around: shareAround(feed)}
	t.dice.init(seed)
	return t, nil
}

// arms are the requests of canary and of both arms.
type arms struct{ canary, all int64 }

// shareAround counts, for every tick that is left of a feed, the requests of
// the hour around it.
func shareAround(feed *Recorded) []arms {
	n := int(feed.end.Sub(feed.at)/feed.span) + 1
	sums := make([]arms, n+1) // of all ticks before
	for i := range feed.canary {
		at := &sums[feed.tickOf(&feed.canary[i])+1]
		at.canary += feed.canary[i].Total
		at.all += feed.canary[i].Total
	}
	for i := range feed.stable {
		sums[feed.tickOf(&feed.stable[i])+1].all += feed.stable[i].Total
	}
	for i := range n {
		sums[i+1].canary += sums[i].canary
		sums[i+1].all += sums[i].all
	}
	half := int(30 * time.Minute / feed.span)
	around := make([]arms, n)
	for i := range around {
		from, to := max(i-half, 0), min(i+half+1, n)
		around[i] = arms{canary: sums[to].canary - sums[from].canary, all: sums[to].all - sums[from].all}
	}
	return around
}

// keep is the chance with which a request of the canary is kept under a
// weight, and false where the weight is more than was recorded.
func (a arms) keep(w release.Weight) (float64, bool) {
	share, recorded := w.Share(), float64(a.canary)/float64(a.all)
	if share <= recorded {
		return share / recorded, true
	}
	const errors = 3
	return 1, share <= recorded+errors*math.Sqrt(recorded*(1-recorded)/float64(a.all))
}

// Thinned is a [Feed] of recorded windows under the ladder's share. See [Thin].
type Thinned struct {
	feed   *Recorded
	dice   dice
	around []arms // of each tick
	at     int
	canary []release.Window
}

// Span implements Feed.
func (t *Thinned) Span() time.Duration { return t.feed.Span() }

// Start implements Feed.
func (t *Thinned) Start() time.Time { return t.feed.Start() }

// More implements Feed.
func (t *Thinned) More() bool { return t.feed.More() }

// Next implements Feed.
func (t *Thinned) Next(weight release.Weight) (Tick, error) {
	tick, err := t.feed.Next(weight)
	if err != nil {
		return Tick{}, err
	}
	at := t.at
	t.at++
	recorded := tick.Canary
	tick.Canary = nil
	n := requests(recorded)
	if weight.IsZero() || n == 0 || len(tick.Stable) == 0 {
		return tick, nil
	}
	around := t.around[at]
	keep, ok := around.keep(weight)
	if !ok {
		return Tick{}, &ShareError{T: tick.T, Want: weight, Canary: around.canary, Requests: around.all}
	}
	t.canary = t.canary[:0]
	for i := range recorded {
		t.canary = append(t.canary, t.thin(&recorded[i], keep, at, i))
	}
	tick.Canary = t.canary
	return tick, nil
}

// thin keeps every request of a window with the chance keep.
func (t *Thinned) thin(w *release.Window, keep float64, tick, i int) release.Window {
	d := t.dice.at(i, tick)
	out := *w
	out.P99MS, out.TTFTP99MS, out.Known = 0, 0, w.Known&^(release.HasP99|release.HasTTFT)
	judged := int64(0)
	if w.Has(release.HasSolved) {
		judged = w.Judged
		out.Solved = d.binomial(w.Solved, keep)
		out.Judged = out.Solved + d.binomial(w.Judged-w.Solved, keep)
	}
	out.Total = d.binomial(w.Total-judged, keep)
	if w.Has(release.HasSolved) {
		out.Total += out.Judged
	}
	out.Violations = d.among(w.Violations, out.Total, w.Total)
	out.Transfers = d.among(w.Transfers, out.Total, w.Total)
	out.Slow = d.among(w.Slow, out.Total, w.Total)
	if w.Known&release.StreamingFigures != 0 {
		d.thinStreams(&out, w)
	}
	return out
}

// thinStreams draws how much of what a window counts of streams and statuses
// goes with the requests that were kept.
func (d *dice) thinStreams(out, w *release.Window) {
	if out.TTFTOf = 0; w.Has(release.HasTTFTSlow) {
		out.TTFTOf = d.some(w.TTFTOf, out.Total, w.Total)
		out.TTFTSlow = d.among(w.TTFTSlow, out.TTFTOf, w.TTFTOf)
	}
	out.ITLOf = d.some(w.ITLOf, out.Total, w.Total)
	if out.ITLOf == 0 && w.ITLOf > 0 {
		out.ITLMS, out.Known = 0, out.Known&^release.HasITL
	}
	out.Streams = d.some(w.Streams, out.Total, w.Total)
	out.Aborted = d.among(w.Aborted, out.Streams, w.Streams)
	out.StatusOf = d.some(w.StatusOf, out.Total, w.Total)
	if !w.Has(release.HasErrors) {
		out.ServerErrors = d.among(w.ServerErrors, out.StatusOf, w.StatusOf)
		return
	}
	out.Errors = d.among(w.Errors, out.StatusOf, w.StatusOf)
	out.ServerErrors = d.among(w.ServerErrors, out.Errors, w.Errors)
}

// some is among for requests that may be most or all of them: then it draws the
// others, of which there are fewer.
func (d *dice) some(marked, kept, all int64) int64 {
	if others := all - marked; others < marked {
		return kept - d.among(others, kept, all)
	}
	return d.among(marked, kept, all)
}

// among draws how many of marked requests are among kept ones chosen at random
// out of all: hypergeometric, and over a binomial number kept it is binomial.
func (d *dice) among(marked, kept, all int64) int64 {
	got := int64(0)
	for i := range min(marked, all) {
		if d.rng.Float64()*float64(all-i) < float64(kept-got) {
			got++
		}
	}
	return got
}
