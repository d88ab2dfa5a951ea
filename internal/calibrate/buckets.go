package calibrate

import (
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// bucket is one calibration window being filled.
type bucket struct {
	t       time.Time
	watched time.Duration // of which the requests are known
	covered time.Duration // and their outcomes
	total   int64
	outcome stats.Proportion
}

// grid gathers windows, oldest first, into buckets of span that begin on the
// clock (at whole multiples of span since midnight UTC), shifted by phase
// where the windows themselves do not begin on the minute.
type grid struct {
	span    time.Duration
	phase   time.Duration
	buckets []bucket
	gaps    []Gap
	covered time.Duration
	watched []Gap // spans of time of which all requests are known, judged or not
	left    []Gap // spans that were left out on purpose: neither quiet nor gaps
}

// start returns the beginning of the bucket that t lies in.
func (g *grid) start(t time.Time) time.Time {
	return t.Add(-g.phase).Truncate(g.span).Add(g.phase)
}

// at returns the bucket of t, which is the newest one or a later one.
func (g *grid) at(t time.Time) *bucket {
	start := g.start(t)
	if n := len(g.buckets); n == 0 || !g.buckets[n-1].t.Equal(start) {
		g.buckets = append(g.buckets, bucket{t: start})
	}
	return &g.buckets[len(g.buckets)-1]
}

// see marks [from, to), which does not begin before what was seen last, as time
// of which the requests are known; judged says that their outcomes are, too.
func (g *grid) see(from, to time.Time, judged bool) {
	if n := len(g.watched); n > 0 && g.watched[n-1].To.Equal(from) {
		g.watched[n-1].To = to
	} else {
		g.watched = append(g.watched, Gap{From: from, To: to})
	}
	for from.Before(to) {
		b := g.at(from)
		end := b.t.Add(g.span)
		if to.Before(end) {
			end = to
		}
		d := end.Sub(from)
		b.watched += d
		if judged {
			b.covered += d
			g.covered += d
		}
		from = end
	}
}

// traffic returns the requests of the arm and of the canary beside it in the
// time that was watched, and how long that is. Requests outside it, in a
// minute that the log does not hold whole, would count without their time.
func (g *grid) traffic(windows []release.Window, arm release.Arm) (requests int64, d time.Duration) {
	for _, s := range g.watched {
		d += s.To.Sub(s.From)
	}
	for i := range windows {
		w := &windows[i]
		if w.Arm != arm && w.Arm != release.Canary {
			continue
		}
		// The last span that begins at or before the window.
		n := sort.Search(len(g.watched), func(i int) bool { return g.watched[i].From.After(w.T) })
		if n > 0 && w.T.Before(g.watched[n-1].To) {
			requests += w.Total
		}
	}
	return requests, d
}

// gather fills the grid. It refuses windows that overlap, or that do not fit
// into the buckets whole. Buckets of a span that divides a day begin on the
// clock, others with the first window; offset shifts them.
func gather(windows []release.Window, span, offset time.Duration, left []Gap, o *Options, refusal *Refusal) *grid {
	g := &grid{span: span, gaps: []Gap{}, left: left}
	if len(windows) == 0 {
		return g
	}
	g.phase = phaseOf(windows[0]) + offset
	if day := 24 * time.Hour; day%span != 0 {
		g.phase = windows[0].T.Sub(windows[0].T.Truncate(span)) + offset
	}
	quiet := longestQuiet(windows)
	for i := range windows {
		w := &windows[i]
		if !fits(g, w, refusal) {
			return g
		}
		if i > 0 && !g.between(windows[i-1].End(), w.T, o.Records, quiet, refusal) {
			return g
		}
		b := g.at(w.T)
		b.total += w.Total
		if w.Has(release.HasSolved) {
			b.outcome.X += w.Solved
			b.outcome.N += w.Judged
		}
		if torn(windows, i, o) {
			continue
		}
		g.see(w.T, w.End(), w.Total == 0 || w.Has(release.HasSolved))
	}
	return g
}

// phaseOf returns by how much windows begin off the clock: a scrape at 23
// seconds past every minute gives windows that do, too.
func phaseOf(w release.Window) time.Duration {
	if w.Span <= 0 {
		return 0
	}
	return w.T.Sub(w.T.Truncate(w.Span))
}

func fits(g *grid, w *release.Window, refusal *Refusal) bool {
	switch {
	case w.Span <= 0:
		refusal.add("no-span", fmt.Sprintf("the window at %s has no length", stamp(w.T)), "say it: --input-span 5m")
	case g.span%w.Span != 0:
		refusal.add("span", fmt.Sprintf("windows of %s do not divide the calibration window of %s", release.Minutes(w.Span), release.Minutes(g.span)), "give finer windows, or a --calib-window that they divide")
	case w.End().After(g.start(w.T).Add(g.span)):
		refusal.add("off-grid", fmt.Sprintf("the window at %s reaches over the edge of a calibration window; the windows do not all begin in step", stamp(w.T)), "count the records again into windows that begin on the clock: canaryctl windows")
	default:
		return true
	}
	return false
}

// between accounts for the time from one window to the next: a run of minutes
// that the traffic explains is quiet, any other is a gap.
func (g *grid) between(from, to time.Time, records bool, quiet time.Duration, refusal *Refusal) bool {
	switch d := to.Sub(from); {
	case d < 0:
		refusal.add("overlap", fmt.Sprintf("the window at %s overlaps the one before it", stamp(to)), "give every span of time once; is a file named twice?")
		return false
	case d == 0 || overlaps(g.left, from, to):
	case records && d < quiet:
		g.see(from, to, true)
	default:
		g.gaps = append(g.gaps, Gap{From: from.UTC(), To: to.UTC(), Minutes: d.Minutes()})
	}
	return true
}

// torn reports whether records cover only part of the window's time: the log
// begins after the first minute's beginning, and nobody knows whether the last
// minute had ended when the log did.
func torn(windows []release.Window, i int, o *Options) bool {
	if !o.Records {
		return false
	}
	return i == 0 && o.First.After(windows[0].T) || i == len(windows)-1
}

// longestQuiet returns the length from which on a run without requests is a
// gap rather than quiet: what chance leaves empty once in a million at the
// mean traffic (ln(1e6) requests' worth of time), at least 10 minutes, at most
// a day.
func longestQuiet(windows []release.Window) time.Duration {
	var total int64
	for i := range windows {
		total += windows[i].Total
	}
	minutes := windows[len(windows)-1].End().Sub(windows[0].T).Minutes()
	if total == 0 {
		return 10 * time.Minute
	}
	run := math.Log(1e6) * minutes / float64(total)
	return time.Duration(min(max(run, 10), 24*60) * float64(time.Minute))
}

// whole returns the outcomes of the fully covered buckets with judged
// requests, and fills in which others there are.
func (g *grid) whole(into *Windows) *series {
	s := &series{span: g.span}
	for _, b := range g.buckets {
		switch {
		case b.covered < g.span:
			into.Partial = append(into.Partial, Partial{T: b.t.UTC(), CoveredMin: b.covered.Minutes(), Total: b.total})
		case b.outcome.N == 0:
			into.Empty++
		default:
			s.add(b.t, b.outcome)
		}
	}
	into.Whole, into.Gaps = len(s.ps), g.gaps
	return s
}

// seen returns the outcomes of every bucket with judged requests, those of
// which a part is not covered included: a bad minute is one in either.
func (g *grid) seen() *series {
	s := &series{span: g.span}
	for _, b := range g.buckets {
		if b.outcome.N > 0 {
			s.add(b.t, b.outcome)
		}
	}
	return s
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
