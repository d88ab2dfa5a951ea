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
	from := r.Until
	if from.IsZero() {
		from = now.Add(-d.o.Source.Settle() - d.o.Source.Span()).Truncate(d.o.Source.Span())
	}
	return from.Add(-max(labelLag(d.plan), lookBack*d.o.Source.Span()))
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
	if newest.Before(r.Newest) {
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
		}{{release.HasCost, w.Cost}, {release.HasCostMean, w.CostMean}, {release.HasP99, w.P99MS}} {
			if math.IsNaN(f.value) || math.IsInf(f.value, 0) {
				w.Known &^= f.has
			}
		}
	}
	return out
}

// evidence is what of a sight the ladder has not folded: the canary's windows
// behind the last one it has seen, those whose labels may have come in since,
// and stable's of the same time.
func (s *sight) evidence(st *ladder.State, until time.Time, lag time.Duration) ladder.Evidence {
	ev := ladder.Evidence{
		SourceFailed: s.sourceErr != nil, Unasked: s.unasked,
		Observed: ladder.Observed{Weight: s.reading.Weight, At: s.readAt, Known: s.targetErr == nil},
	}
	for _, w := range s.batch.Windows {
		switch {
		case w.Arm == release.Canary && (st.Seen.IsZero() || w.T.After(st.Seen) || lag > 0 && w.T.After(st.Seen.Add(-lag))):
			ev.Windows = append(ev.Windows, w)
		case w.Arm == release.Stable && !w.T.Before(until.Add(-lookBack*w.Span)) && (st.Seen.IsZero() || w.T.After(st.Seen)):
			ev.Stable = append(ev.Stable, w)
		}
	}
	return ev
}
