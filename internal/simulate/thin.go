package simulate

import (
	"errors"
	"fmt"
	"math/big"
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
	Canary   int64          // recorded requests of the canary in the tick
	Requests int64          // and of both arms
}

// Error implements error.
func (e *ShareError) Error() string {
	return fmt.Sprintf("at %s the ladder stands at %s, but only %d of %d requests (%.3g %%) were recorded on the canary",
		e.T.UTC().Format(time.RFC3339), e.Want, e.Canary, e.Requests, 100*float64(e.Canary)/float64(e.Requests))
}

// Thin makes a feed that shows the ladder only its share of a recorded canary.
//
// In each tick every recorded request of the canary is kept with the same
// chance, the ladder's share over the recorded one, which is canary's requests
// over both arms'. Solved, unsolved and unjudged requests are drawn from
// binomials; violations and transfers, whose place among them the windows do
// not tell, go with a random choice of as many requests as were kept. The p99
// is dropped, since it cannot be thinned from a window; costs are means and
// stay. Stable's windows stay as they were recorded.
//
// A tick in which stable has no window has no known share and is a gap for the
// canary. Where the ladder's share is above the recorded one, Next returns a
// *[ShareError]. The draws depend on seed, tick and arm's window alone.
//
// Thin reads the feed on from where it stands; the feed must not be used
// beside it. It returns [ErrShareUnknown] for a feed without windows of stable.
func Thin(feed *Recorded, seed uint64) (*Thinned, error) {
	if len(feed.stable) == 0 {
		return nil, ErrShareUnknown
	}
	t := &Thinned{feed: feed}
	t.dice.init(seed)
	return t, nil
}

// Thinned is a [Feed] of recorded windows under the ladder's share. See [Thin].
type Thinned struct {
	feed   *Recorded
	dice   dice
	at     int
	canary []release.Window
}

// Span implements Feed.
func (t *Thinned) Span() time.Duration { return t.feed.Span() }

// Start implements Feed.
func (t *Thinned) Start() time.Time { return t.feed.Start() }

// Next implements Feed.
func (t *Thinned) Next(weight release.Weight) (Tick, bool, error) {
	tick, more, err := t.feed.Next(weight)
	if err != nil || !more {
		return tick, more, err
	}
	at := t.at
	t.at++
	recorded := tick.Canary
	tick.Canary = nil
	n := requests(recorded)
	if weight.IsZero() || n == 0 || len(tick.Stable) == 0 {
		return tick, true, nil
	}
	all := n + requests(tick.Stable)
	if (release.Ratio{Num: weight.Slots, Den: weight.Ring}).Compare(n, all) < 0 {
		return Tick{}, false, &ShareError{T: tick.T, Want: weight, Canary: n, Requests: all}
	}
	keep, _ := new(big.Rat).Mul(big.NewRat(weight.Slots, weight.Ring), big.NewRat(all, n)).Float64()
	t.canary = t.canary[:0]
	for i := range recorded {
		t.canary = append(t.canary, t.thin(&recorded[i], keep, at, i))
	}
	tick.Canary = t.canary
	return tick, true, nil
}

// thin keeps every request of a window with the chance keep.
func (t *Thinned) thin(w *release.Window, keep float64, tick, i int) release.Window {
	d := t.dice.at(i, tick)
	out := *w
	out.P99MS, out.Known = 0, w.Known&^release.HasP99
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
	return out
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
