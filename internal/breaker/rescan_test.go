package breaker_test

import (
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// rescan judges a CLOSED breaker's window the long way round: every span is
// counted anew from all windows, every sum added up from its beginning, every
// decimal compared as a fraction, every tail computed. It shares only the
// distributions with the breaker.
type rescan struct {
	l     *breaker.Limits
	kept  []release.Window // with requests, that came in CLOSED or HALF_OPEN, since the last passed round
	from  int              // the first of them that the cumulative sum takes
	since time.Time        // begin of the present phase
}

// within returns the windows of a span.
func (r *rescan) within(now time.Time, span time.Duration) (ws []release.Window) {
	for _, w := range r.kept {
		if w.T.After(now.Add(-span)) && !w.T.After(now) {
			ws = append(ws, w)
		}
	}
	return ws
}

// counted returns the finding of a signal that is a count over the fast span.
func (r *rescan) counted(now time.Time, s release.Signal) (release.Finding, bool) {
	var n, of int64
	for _, w := range r.within(now, r.l.FastSpan) {
		switch {
		case s == release.Violations && w.Has(release.HasViolations):
			n, of = n+w.Violations, of+w.Total
		case s == release.Transfers && w.Has(release.HasTransfers):
			n, of = n+w.Transfers, of+w.Total
		case s == release.P99 && w.Has(release.HasSlow):
			n, of = n+w.Slow, of+w.Total
		}
	}
	f := release.Finding{Signal: s, Count: n, Of: of, Span: r.l.FastSpan}
	least, share := r.l.MinTransfers, r.l.TransferRate
	switch s {
	case release.Violations:
		allowed := new(big.Int).Quo(new(big.Int).Mul(big.NewInt(r.l.ViolationRate.Num), big.NewInt(of)), big.NewInt(r.l.ViolationRate.Den)).Int64()
		allowed = max(allowed, r.l.ViolationLimit)
		f.Value, f.Limit = float64(n), float64(allowed)
		return f, of > 0 && n >= allowed
	case release.P99:
		least, share, f.Form = r.l.MinSlow, r.l.SlowRate, release.ByCount
	}
	if of == 0 {
		return f, false
	}
	f.Value, f.Limit = float64(n)/float64(of), share.Float64()
	return f, n >= least && big.NewRat(n, of).Cmp(share.Rat()) >= 0
}

// slowSpan returns the windows of the slow span, and its length: the shortest
// run that is long enough and holds enough, found by trying every beginning.
func (r *rescan) slowSpan(w release.Window) ([]release.Window, time.Duration) {
	end := w.T.Add(-r.l.LabelLag)
	fixed := r.within(end, r.l.SlowSpan)
	if r.l.SlowSpanMax <= r.l.SlowSpan {
		return fixed, r.l.SlowSpan
	}
	far := r.within(end, r.l.SlowSpanMax)
	for n := len(fixed); n <= len(far); n++ {
		run := far[len(far)-n:]
		if n == len(far) || judgedOf(run) >= r.l.MinSamples {
			if n == len(fixed) {
				return run, r.l.SlowSpan
			}
			return run, min(end.Sub(run[0].T)+w.Span, r.l.SlowSpanMax)
		}
	}
	panic("unreachable")
}

func judgedOf(ws []release.Window) (n int64) {
	for _, w := range ws {
		if w.Has(release.HasSolved) {
			n += w.Judged
		}
	}
	return n
}

func (r *rescan) window(w release.Window) (ev release.Event, hit bool) {
	run, span := r.slowSpan(w)
	var n, x, cn, cx int64
	controlled := true
	for _, w := range run {
		if !w.Has(release.HasSolved) {
			continue
		}
		n, x = n+w.Judged, x+w.Solved
		if w.Has(release.HasControl) {
			cn, cx = cn+w.ControlJudged, cx+w.ControlSolved
		} else if w.Judged > 0 {
			controlled = false
		}
	}
	if n == 0 || n < r.l.MinSamples {
		return ev, false
	}
	f := release.Finding{Signal: release.SolveRate, Value: float64(x) / float64(n), Count: x, Of: n, Span: span}
	if r.l.AgainstStable && controlled && cn > 0 && cn >= r.l.MinSamples {
		f.ControlSolved, f.ControlJudged = cx, cn
		hit = r.againstStable(&f)
	} else {
		hit = r.againstBaseline(&f)
	}
	return release.Event{Finding: f, First: run[0].T, Last: run[len(run)-1].T}, hit
}

func (r *rescan) againstStable(f *release.Finding) bool {
	pc, p := float64(f.ControlSolved)/float64(f.ControlJudged), float64(f.Count)/float64(f.Of)
	drop := new(big.Rat).Sub(r.l.SolveBaseline.Rat(), r.l.SolveFloor.Rat())
	gap := new(big.Rat).Sub(big.NewRat(f.ControlSolved, f.ControlJudged), big.NewRat(f.Count, f.Of))
	pooled := (float64(f.Count+f.ControlSolved) + 0.5) / (float64(f.Of+f.ControlJudged) + 1)
	sigma := math.Sqrt(pooled*(1-pooled)*(1/float64(f.Of)+1/float64(f.ControlJudged)) + 2*r.l.Noise.TauControl*r.l.Noise.TauControl)
	limit, _ := drop.Float64()
	f.Form = release.Concurrent
	if noise := r.l.Noise.Z * sigma; noise > limit {
		limit, f.Sigmas = noise, r.l.Noise.Z
	}
	f.Limit = pc - limit
	return gap.Cmp(drop) >= 0 && pc-p >= r.l.Noise.Z*sigma
}

func (r *rescan) againstBaseline(f *release.Finding) bool {
	f.Limit = r.l.SolveFloor.Float64()
	below := big.NewRat(f.Count, f.Of).Cmp(r.l.SolveFloor.Rat()) <= 0
	z, tau, se, p0, n := r.l.Noise.Z, r.l.Noise.Tau, r.l.Noise.SE, r.l.SolveBaseline.Float64(), float64(f.Of)
	if z == 0 {
		return below
	}
	if r.l.Noise.Tail == breaker.ExactTail {
		rho := (tau*tau + se*se) / (p0 * (1 - p0))
		most := int64(-1)
		far := math.Sqrt(p0*(1-p0)/n+tau*tau*(1-1/n)+se*se) * min(2, z/2)
		for stats.BetaBinomialCDF(most+1, f.Of, p0, rho) <= stats.OneSided(z) && p0-float64(most+1)/n >= far {
			most++
		}
		if limit := float64(most) / n; limit < f.Limit {
			f.Limit, f.Sigmas, f.Form = limit, z, release.FittedExact
		}
		return below && f.Count <= most
	}
	sigma := math.Sqrt(p0*(1-p0)/n + tau*tau*(1-1/n) + se*se)
	z += (z*z - 1) / 6 * (2*p0 - 1) * p0 * (1 - p0) / (n * n * sigma * sigma * sigma)
	if limit := p0 - z*sigma; limit < f.Limit {
		f.Limit, f.Sigmas, f.Form = limit, z, release.Fitted
	}
	return below && p0-f.Value >= z*sigma
}

// cusum adds up from the first window to the last that has ripened, or to the
// one that brings the sum above the limit.
func (r *rescan) cusum(w release.Window) (ev release.Event, hit bool) {
	p0, p1 := r.l.SolveBaseline.Float64(), r.l.SolveBaseline.Float64()-r.l.Cusum.Drop.Float64()
	f := release.Finding{Signal: release.SolveRate, Form: release.CumulativeSum, Limit: r.l.Cusum.Limit}
	for _, k := range r.kept[r.from:] {
		if k.T.After(w.T.Add(-r.l.LabelLag)) {
			break
		}
		x, n := k.Solved, k.Judged
		if !k.Has(release.HasSolved) {
			x, n = 0, 0
		}
		f.Value = max(0, f.Value+float64(x)*math.Log(p1/p0)+float64(n-x)*math.Log((1-p1)/(1-p0)))
		if f.Value == 0 {
			f.Count, f.Of = 0, 0
			continue
		}
		if f.Of == 0 {
			ev.First = k.T
		}
		f.Count, f.Of, ev.Last = f.Count+x, f.Of+n, k.T
		if f.Value > f.Limit {
			f.Span = ev.Last.Sub(ev.First) + w.Span
			ev.Finding = f
			return ev, true
		}
	}
	return ev, false
}

// closed returns what the window must bring in CLOSED.
func (r *rescan) closed(w release.Window) (release.Event, bool) {
	for _, s := range []release.Signal{release.Violations, release.P99, release.Transfers} {
		if f, hit := r.counted(w.T, s); hit {
			return release.Event{Finding: f, First: r.within(w.T, r.l.FastSpan)[0].T, Last: w.T}, true
		}
	}
	for s := release.FirstStreaming; s <= release.LastStreaming; s++ {
		if f, hit := r.streaming(w, s); hit {
			return release.Event{Finding: f, First: r.within(w.T, max(r.l.Streaming[s-release.FirstStreaming].Span, 1))[0].T, Last: w.T}, true
		}
	}
	if r.l.Judge == breaker.CusumJudge {
		return r.cusum(w)
	}
	return r.window(w)
}

// drawNewLimits draws limits of every form.
func drawNewLimits(t *rapid.T) breaker.Limits {
	l := drawLimits(t)
	l.MaxRecoveries, l.LockOnEscalate, l.P99ByCount = 0, false, true
	l.Cooldown, l.Trials = minutes(rapid.IntRange(0, 3).Draw(t, "short_cooldown")), rapid.Int64Range(1, 3).Draw(t, "few_trials")
	l.SuccessRate = release.MustRatio("0.5")
	l.SlowRate = release.MustRatio(rapid.SampledFrom([]string{"0.06", "0.2", "0.333"}).Draw(t, "slow_rate"))
	l.MinSlow = rapid.Int64Range(0, 4).Draw(t, "min_slow")
	l.SlowSpanMax = minutes(rapid.SampledFrom([]int{0, 10, 40, 120}).Draw(t, "slow_max"))
	l.MinSamples = rapid.Int64Range(0, 200).Draw(t, "more_samples")
	l.SolveBaseline = release.MustRatio(rapid.SampledFrom([]string{"0.9", "0.85", "0.99"}).Draw(t, "baseline"))
	l.AgainstStable = rapid.IntRange(0, 2).Draw(t, "against_stable") == 0
	l.Noise = breaker.Noise{
		Z:   rapid.SampledFrom([]float64{0, 0.5, 1, 2, 4.02}).Draw(t, "z"),
		Tau: rapid.SampledFrom([]float64{0, 0.019, 0.1}).Draw(t, "tau"), SE: rapid.SampledFrom([]float64{0, 0.003}).Draw(t, "se"),
		TauControl: rapid.SampledFrom([]float64{0, 0.01}).Draw(t, "tau_control"),
		Tail:       breaker.Tail(rapid.IntRange(0, 1).Draw(t, "tail")),
	}
	l.Judge = breaker.Judge(rapid.IntRange(0, 2).Draw(t, "judge") / 2)
	l.Cusum = breaker.Cusum{Drop: release.MustRatio(rapid.SampledFrom([]string{"0.05", "0.1", "0.3"}).Draw(t, "cusum_drop")), Limit: rapid.Float64Range(0.5, 15).Draw(t, "cusum_limit")}
	return l
}

func drawNewFeed(t *rapid.T) []release.Window {
	ws := drawFeed(t)
	quiet := rapid.Bool().Draw(t, "quiet") // no fast signal gets in the slow layer's way
	for i := range ws {
		w := &ws[i]
		if quiet {
			w.Violations, w.Transfers = 0, 0
			w.Known &^= release.StreamingFigures
		} else if rapid.IntRange(0, 3).Draw(t, "known_slow") > 0 {
			w.Known |= release.HasSlow
			w.Slow = rapid.Int64Range(0, min(w.Total, 2)).Draw(t, "slow")
		}
		if rapid.IntRange(0, 19).Draw(t, "known_control") > 0 {
			w.Known |= release.HasControl
			w.ControlJudged = rapid.Int64Range(0, 40).Draw(t, "control_judged")
			w.ControlSolved = rapid.Int64Range(w.ControlJudged*3/4, w.ControlJudged).Draw(t, "control_solved")
		}
	}
	return ws
}

// TestTheBreakerAgreesWithARescan in every event of CLOSED, with all its
// figures, under random limits and feeds.
func TestTheBreakerAgreesWithARescan(t *testing.T) {
	forms := map[release.Form]int{}
	for range 10 { // so that each form has its turn
		rapid.Check(t, func(t *rapid.T) { agree(t, forms) })
	}
	for form := release.Published; form <= release.CumulativeSum; form++ {
		if forms[form] == 0 {
			t.Errorf("no feed tripped by the form %q: the test does not reach it", form)
		}
	}
}

// agree plays one random feed to both and counts the forms that tripped.
func agree(t *rapid.T, forms map[release.Form]int) {
	l, ws := drawNewLimits(t), drawNewFeed(t)
	st, r := new(breaker.State), &rescan{l: &l}
	for i := range ws {
		w := ws[i]
		if ev := breaker.Tick(&l, st, w.T); ev != nil {
			r.since = ev.T
		}
		phase := st.Phase
		var want release.Event
		hit := false
		if w.Total > 0 && phase != release.Open {
			r.kept = append(r.kept, w)
			if phase == release.Closed {
				want, hit = r.closed(w)
			}
		}
		got := breaker.Step(&l, st, &w)
		happened := got != nil
		if phase == release.Closed && happened != hit {
			t.Fatalf("window %d: trips %v, want %v\ngot  %+v\nwant %+v", i, happened, hit, got, want)
		}
		if phase == release.Closed && hit {
			want.T, want.To = w.T, release.Open
			forms[want.Finding.Form]++
			if diff := cmp.Diff(&want, got, cmp.Comparer(near)); diff != "" {
				t.Fatalf("window %d (-want +got):\n%s", i, diff)
			}
		}
		switch {
		case happened && got.To == release.Open:
			r.from = len(r.kept)
		case happened && got.To == release.Closed:
			r.kept = slices.DeleteFunc(r.kept, func(w release.Window) bool { return w.T.Before(r.since) })
			r.from = 0
		}
	}
}

// near is equality up to the roundings of another order of the same sums.
func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b))
}

// TestAllFormsGoOnAfterBeingReadBack: the limits of every form, written and
// read back at every point, at one, and never, while they change under way.
func TestAllFormsGoOnAfterBeingReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := []breaker.Limits{drawNewLimits(t), drawNewLimits(t)}
		keep := max(steps[0].Reach(), steps[1].Reach())
		steps[0].Keep, steps[1].Keep = keep, keep
		ws := drawNewFeed(t)
		split, change := rapid.IntRange(0, len(ws)).Draw(t, "split"), rapid.IntRange(0, len(ws)).Draw(t, "change")
		run := func(reads func(i int) bool) (events []release.Event, final []byte) {
			st := new(breaker.State)
			for i := range ws {
				l := &steps[0]
				if i >= change {
					l = &steps[1]
				}
				if reads(i) {
					st = roundTrip(t, st)
				}
				if i > 0 {
					late := ws[i-1] // its labels, as far as they are still open
					late.Solved = late.Judged
					breaker.Amend(l, st, &late)
				}
				events = append(events, tick(l, st, ws[i].T, &ws[i])...)
			}
			b, err := st.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			return events, b
		}
		want, wantFinal := run(func(int) bool { return false })
		for name, reads := range map[string]func(int) bool{
			"at one point":   func(i int) bool { return i == split },
			"at every point": func(int) bool { return true },
		} {
			got, final := run(reads)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("read back %s, the events differ:\n%s", name, diff)
			}
			if diff := cmp.Diff(string(wantFinal), string(final)); diff != "" {
				t.Fatalf("read back %s, the last state differs:\n%s", name, diff)
			}
		}
	})
}
