package driver

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/source"
	"github.com/canaryctl/canaryctl/internal/target"
)

// sight is what was seen at one moment, before anything is decided.
type sight struct {
	line int64 // of the journal, that the release stood at

	reading   target.Reading
	readAt    time.Time
	targetErr error

	batch     source.Batch
	sourceErr error
	unasked   bool // nobody read the source
}

// observe reads target and source. It takes no lock: a slow source keeps nobody
// from rolling back. What it cannot read it says.
func (d *Driver) observe(ctx context.Context, r *Release) *sight {
	s := &sight{line: r.Head.N}
	s.reading, s.targetErr = d.o.Target.Read(ctx)
	s.readAt = d.now()
	if d.o.Source == nil {
		return s
	}
	if in, err := d.ahead(r, s.reading.State); s.targetErr == nil && err == nil && in != nil {
		r = in // as it will be once that is taken over
	}
	now := d.now()
	s.batch, s.sourceErr = d.o.Source.Read(ctx, d.from(r, now), now)
	if s.sourceErr == nil {
		s.sourceErr = d.stale(r, s.batch.Newest, now)
	}
	s.batch.Windows = finite(s.batch.Windows)
	return s
}

// lookBack is how many windows before the newest final ones are asked for
// again: an exporter that is later than settle_min allows for loses nothing, as
// long as no later window has been judged.
const lookBack = 3

// from is the start of the first window to be asked for: what has not been
// shown yet, what may have come late, and what is young enough for its labels
// still to come. Before a release there is nothing to judge.
func (d *Driver) from(r *Release, now time.Time) time.Time {
	from := d.shownUntil(r, now)
	if from.IsZero() {
		from = now.Add(-d.o.Source.Settle() - d.o.Source.Span()).Truncate(d.o.Source.Span())
	}
	return from.Add(-max(labelLag(d.plan), lookBack*d.o.Source.Span()))
}

// shownUntil is where the windows end that the ladder has been shown. A clock
// that was ahead leaves that in the future: then it is where the ladder has come
// to, or no later than now.
func (d *Driver) shownUntil(r *Release, now time.Time) time.Time {
	if d.o.Source == nil || !r.Until.After(now) {
		return r.Until
	}
	latest := now.Add(-d.o.Source.Settle()).Truncate(d.o.Source.Span())
	if seen := r.Ladder.Seen; !seen.IsZero() && seen.Before(latest) {
		return seen
	}
	return latest
}

func labelLag(p *ladder.Plan) time.Duration {
	var lag time.Duration
	for i := range p.Steps {
		lag = max(lag, p.Steps[i].Limits.LabelLag)
	}
	return lag
}

// StaleError says that a source answers and has had no window with requests for
// longer than stale_min: it is lost, not empty.
type StaleError struct {
	Source string
	Newest time.Time
	Now    time.Time
}

// Error implements error.
func (e *StaleError) Error() string {
	return e.Source + ": the newest window with requests ended " + minutesAgo(e.Newest, e.Now) + " ago"
}

func (d *Driver) stale(r *Release, newest, now time.Time) error {
	limit := d.o.Config.Source.Stale
	if newest.Before(r.Newest) && !r.Newest.After(now) {
		newest = r.Newest
	}
	if limit == 0 || newest.IsZero() || now.Sub(newest) <= limit {
		return nil
	}
	return &StaleError{Source: d.o.Source.String(), Newest: newest, Now: now}
}

// finite leaves out figures that are no numbers: they are missing.
func finite(windows []release.Window) []release.Window {
	out := slices.Clone(windows)
	for i := range out {
		w := &out[i]
		for _, f := range []struct {
			has   release.Figures
			value float64
		}{{release.HasCost, w.Cost}, {release.HasCostMean, w.CostMean}, {release.HasP99, w.P99MS}, {release.HasTTFT, w.TTFTP99MS}, {release.HasITL, w.ITLMS}, {release.HasKVCache, w.KVCache}} {
			if math.IsNaN(f.value) || math.IsInf(f.value, 0) {
				w.Known &^= f.has
			}
		}
	}
	return out
}

// mostShown bounds the windows of each arm that one decision is shown, so that
// a line of the journal stays short after a long outage: the rest is shown to
// the next decision of the same call.
const mostShown = 2000

// evidence is what of a sight the ladder has not folded: the canary's windows
// behind the last one it has seen, those whose labels have come in since, and
// stable's of the same time. Windows that end after now have no business here:
// their clock is ahead.
func (s *sight) evidence(p *ladder.Plan, st *ladder.State, until, now time.Time, most int) ladder.Evidence {
	ev := ladder.Evidence{
		SourceFailed: s.sourceErr != nil, Unasked: s.unasked,
		Observed: ladder.Observed{Weight: s.reading.Weight, At: s.readAt, Known: s.targetErr == nil},
	}
	var canary, stable []release.Window
	for _, w := range s.batch.Windows {
		switch {
		case w.End().After(now):
		case w.Arm == release.Canary:
			canary = append(canary, w)
		case w.Arm == release.Stable:
			stable = append(stable, w)
		}
	}
	folded := func(w *release.Window) bool { return !st.Seen.IsZero() && !w.T.After(st.Seen) }
	late := func(w *release.Window) bool { return w.T.Before(until.Add(-lookBack * w.Span)) }
	for i := range canary {
		if w := &canary[i]; folded(w) && st.News(p, w, stable) || !folded(w) && !late(w) {
			ev.Windows = append(ev.Windows, *w)
		}
	}
	if ev.More = len(ev.Windows) > most; ev.More {
		ev.Windows = ev.Windows[:most]
	}
	for i := range stable {
		w := &stable[i]
		fresh := !folded(w) && !late(w) && !(ev.More && !w.T.Before(ev.Windows[most-1].End()))
		if fresh || besides(w, ev.Windows) {
			ev.Stable = append(ev.Stable, *w)
		}
	}
	shorten(&ev, most)
	return ev
}

// besides reports whether a window of stable ran beside one of the canary's.
func besides(w *release.Window, canary []release.Window) bool {
	i, found := slices.BinarySearchFunc(canary, w.T, func(c release.Window, t time.Time) int { return c.T.Compare(t) })
	return found || i > 0 && w.T.Before(canary[i-1].End())
}

// shorten cuts evidence off where stable has too many windows, or leaves the
// oldest of them out where the canary has none before that.
func shorten(ev *ladder.Evidence, most int) {
	if len(ev.Stable) <= most {
		return
	}
	end := ev.Stable[most-1].End()
	n := len(ev.Windows)
	for n > 0 && ev.Windows[n-1].End().After(end) {
		n--
	}
	if n == 0 {
		ev.Stable = ev.Stable[len(ev.Stable)-most:]
		return
	}
	ev.More = ev.More || n < len(ev.Windows)
	ev.Windows, ev.Stable = ev.Windows[:n], ev.Stable[:most]
}
