package breaker_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// drawLimits draws limits small enough for short feeds to reach them.
func drawLimits(t *rapid.T) breaker.Limits {
	l := breaker.Limits{
		FastSpan:       minutes(rapid.IntRange(1, 8).Draw(t, "fast")),
		ViolationLimit: rapid.Int64Range(1, 5).Draw(t, "violation_limit"),
		ViolationRate:  release.MustRatio(rapid.SampledFrom([]string{"0", "0.005", "0.0999", "0.3333"}).Draw(t, "violation_rate")),
		MinTransfers:   rapid.Int64Range(0, 4).Draw(t, "min_transfers"),
		TransferRate:   release.MustRatio(rapid.SampledFrom([]string{"0.06", "0.2", "0.333"}).Draw(t, "transfer_rate")),
		CostRatio:      2, P99MS: 900,
		SlowSpan:         minutes(rapid.IntRange(1, 30).Draw(t, "slow")),
		LabelLag:         minutes(rapid.SampledFrom([]int{0, 0, 1, 5, 40}).Draw(t, "lag")),
		SolveFloor:       release.MustRatio(rapid.SampledFrom([]string{"0.8", "0.667", "0.5"}).Draw(t, "floor")),
		MinSamples:       rapid.Int64Range(0, 60).Draw(t, "min_samples"),
		Cooldown:         minutes(rapid.IntRange(0, 8).Draw(t, "cooldown")),
		Trials:           rapid.Int64Range(1, 5).Draw(t, "trials"),
		SuccessRate:      release.MustRatio(rapid.SampledFrom([]string{"0.8", "0.5", "1"}).Draw(t, "success")),
		ProbeMinRequests: rapid.SampledFrom([]int64{0, 0, 15, 50}).Draw(t, "pool"),
		LockOnEscalate:   rapid.Bool().Draw(t, "lock"),
		MaxRecoveries:    rapid.Int64Range(0, 3).Draw(t, "max"),
		Streaming:        drawStreaming(t),
	}
	return l
}

func drawWindow(t *rapid.T, minute int) release.Window {
	w := window(minute, rapid.Int64Range(0, 20).Draw(t, "total"), 0)
	w.Judged = rapid.Int64Range(0, w.Total).Draw(t, "judged")
	w.Solved = rapid.Int64Range(w.Judged*2/3, w.Judged).Draw(t, "solved")
	if rapid.IntRange(0, 3).Draw(t, "fault") == 0 {
		w.Violations = rapid.Int64Range(0, min(w.Total, 3)).Draw(t, "violations")
		w.Transfers = rapid.Int64Range(0, min(w.Total, 3)).Draw(t, "transfers")
	}
	for _, f := range []release.Figures{release.HasSolved, release.HasViolations, release.HasTransfers} {
		if rapid.IntRange(0, 9).Draw(t, "missing") == 0 {
			w.Known &^= f
		}
	}
	drawStreams(t, &w)
	return w
}

// drawFeed draws windows with gaps, some of them longer than every span.
func drawFeed(t *rapid.T) (ws []release.Window) {
	minute := 0
	for range rapid.IntRange(1, 80).Draw(t, "windows") {
		ws = append(ws, drawWindow(t, minute))
		minute += rapid.SampledFrom([]int{1, 1, 1, 1, 1, 1, 2, 5, 90}).Draw(t, "next")
	}
	return ws
}

// firstTrip returns the number of windows up to the first trip, or one more
// than there are.
func firstTrip(l breaker.Limits, ws []release.Window) int {
	st := new(breaker.State)
	for i := range ws {
		if breaker.Step(&l, st, &ws[i]) != nil {
			return i
		}
	}
	return len(ws)
}

func TestAddingAViolationNeverTurnsATripIntoNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, ws := drawLimits(t), drawFeed(t)
		before := firstTrip(l, ws)
		i := rapid.IntRange(0, len(ws)-1).Draw(t, "where")
		if !ws[i].Has(release.HasViolations) {
			return
		}
		more := slices.Clone(ws)
		more[i].Violations++
		if after := firstTrip(l, more); after > before {
			t.Fatalf("one more violation in window %d: first trip at %d, before at %d", i, after, before)
		}
	})
}

func TestASolvedRequestNeverBringsATrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, ws := drawLimits(t), drawFeed(t)
		before := firstTrip(l, ws)
		i := rapid.IntRange(0, len(ws)-1).Draw(t, "where")
		better := slices.Clone(ws)
		switch w := &better[i]; {
		case !w.Has(release.HasSolved) || w.Total == 0:
			return
		case w.Solved < w.Judged: // the same request, solved
			w.Solved++
		case l.MinSamples <= w.Judged && w.Judged > 0: // one request more; below min_samples it could be the one that lets the layer see
			w.Total, w.Judged, w.Solved = w.Total+1, w.Judged+1, w.Solved+1
		default:
			return
		}
		if after := firstTrip(l, better); after < before {
			t.Fatalf("one more solved in window %d: first trip at %d, before at %d", i, after, before)
		}
	})
}

func TestAReplayOfAReplayIsIdentical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, ws := drawLimits(t), drawFeed(t)
		var a, b breaker.State
		first, second := drive(&l, &a, ws), drive(&l, &b, ws)
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("events differ:\n%s", diff)
		}
	})
}

// roundTrip writes a state and reads it back.
func roundTrip(t *rapid.T, st *breaker.State) *breaker.State {
	b, err := st.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	again := new(breaker.State)
	if err := again.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	return again
}

// TestAStateReadBackGoesOnAsIfNothingHappened: written and read at every
// point, at one point, and never, with and without idle ticks in the gaps, and
// while the limits change as steps do. Reading a state forms all sums anew, so
// this also holds the running sums against sums recomputed from scratch: every
// finding's figures are compared.
func TestAStateReadBackGoesOnAsIfNothingHappened(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := []breaker.Limits{drawLimits(t), drawLimits(t)}
		keep := max(steps[0].Reach(), steps[1].Reach())
		steps[0].Keep, steps[1].Keep = keep, keep
		ws := drawFeed(t)
		split := rapid.IntRange(0, len(ws)).Draw(t, "split")
		change := rapid.IntRange(0, len(ws)).Draw(t, "change")
		idle := rapid.Bool().Draw(t, "idle")

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
				if idle && i > 0 {
					for now := ws[i-1].T.Add(time.Minute); now.Before(ws[i].T); now = now.Add(time.Minute) {
						events = append(events, tick(l, st, now, nil)...)
					}
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

func TestShiftingTimeShiftsTheEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, ws := drawLimits(t), drawFeed(t)
		by := time.Duration(rapid.Int64Range(-1e17, 1e18).Draw(t, "by"))
		later := slices.Clone(ws)
		for i := range later {
			later[i].T = later[i].T.Add(by)
		}
		var a, b breaker.State
		want, got := drive(&l, &a, ws), drive(&l, &b, later)
		for i := range want {
			want[i].T = want[i].T.Add(by)
			if !want[i].First.IsZero() {
				want[i].First, want[i].Last = want[i].First.Add(by), want[i].Last.Add(by)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("events differ beyond the shift of %s:\n%s", by, diff)
		}
	})
}

// TestInvariantsOfTheState hold after every window, whatever came.
func TestInvariantsOfTheState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, ws := drawLimits(t), drawFeed(t)
		st := new(breaker.State)
		phase := release.Closed
		for i := range ws {
			for _, ev := range tick(&l, st, ws[i].T, &ws[i]) {
				if ev.From != phase {
					t.Fatalf("%s, but the breaker was %s", say(&ev), phase)
				}
				phase = ev.To
			}
			if broken := invariant(&l, st); broken != "" {
				t.Fatalf("after window %d: %s", i, broken)
			}
		}
	})
}

// invariant names what is wrong with a state, or nothing.
func invariant(l *breaker.Limits, st *breaker.State) string {
	switch {
	case st.Locked && st.Phase != release.Open:
		return "locked and not OPEN"
	case st.Phase != release.HalfOpen && st.Round != breaker.Round{}:
		return "a probe round outside HALF_OPEN"
	case st.Round.Done >= l.Trials:
		return "a round that should have ended"
	case st.Round.Good > st.Round.Done:
		return "more good probes than probes"
	case st.Round.Pool.Requests > 0 && st.Round.Pool.Requests >= l.ProbeMinRequests:
		return "a pool that should be a probe"
	case st.Round.Pool.Solved > st.Round.Pool.Judged:
		return "a pool with more solved than judged"
	case st.Phase != release.Closed && st.Since.IsZero():
		return "a phase without a beginning"
	}
	return ""
}
