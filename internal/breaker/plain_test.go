package breaker_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// TestTheWayOfMostWindowsIsTheWayOfAny: a state that has just been read takes
// no short way, so one that is written and read before every window says after
// each what one must that is stepped in place. The spans are plain but for a
// few, the limits change in place, and people and clocks meddle.
func TestTheWayOfMostWindowsIsTheWayOfAny(t *testing.T) {
	all, short := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		steps := drawPlainSteps(t)
		l, fast, slow := steps[0], new(breaker.State), new(breaker.State)
		for i, w := range drawPlainFeed(t) {
			switch rapid.IntRange(0, 30).Draw(t, "meddling") {
			case 0:
				l = steps[rapid.IntRange(0, 1).Draw(t, "step")]
			case 1:
				breaker.Clear(fast, w.T)
				breaker.Clear(slow, w.T)
			case 2, 3, 4:
				back := w.T.Add(-time.Duration(rapid.IntRange(1, 8).Draw(t, "back")) * time.Minute)
				breaker.Unsee(fast, back)
				breaker.Unsee(slow, back)
			case 5:
				w.ControlJudged, w.ControlSolved, w.Known = 100, 90, w.Known|release.HasControl
			case 6:
				w.Slow, w.Known = 1, w.Known|release.HasSlow
			case 7:
				w.Cost, w.Known = rapid.SampledFrom([]float64{1, l.CostRatio}).Draw(t, "cost"), w.Known|release.HasCost
			case 8:
				w.P99MS, w.Known = rapid.SampledFrom([]float64{1, l.P99MS}).Draw(t, "p99"), w.Known|release.HasP99
			}
			if slow = roundTrip(t, slow); slow.GoesShort(&l, &w) {
				t.Fatalf("window %d: a state that has just been read takes the short way", i)
			}
			if all++; fast.GoesShort(&l, &w) {
				short++
			}
			got, want := tick(&l, fast, w.T, &w), tick(&l, slow, w.T, &w)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("window %d, the events differ:\n%s", i, diff)
			}
			if a, b := written(t, fast), written(t, slow); !bytes.Equal(a, b) {
				t.Fatalf("after window %d\n%s\nwant\n%s", i, a, b)
			}
		}
	})
	if short < all/20 { // some 300 of 6,000; it is about every fifth
		t.Errorf("only %d of %d windows went the short way; the feeds do not do what the test is about", short, all)
	}
}

// TestTheFirstWindowAfterAPassedRoundGoesTheLongWay: the spans have been laid
// anew and are to be moved. Those before the trip, and all later ones, do not.
func TestTheFirstWindowAfterAPassedRoundGoesTheLongWay(t *testing.T) {
	l, st, closed := published(), new(breaker.State), 0
	l.Keep = l.Reach() // as the configuration does
	for minute := 1; minute < 60; minute++ {
		w := window(minute, 26, 24)
		if minute == 20 {
			w.Violations = 3
		}
		phase := st.Phase
		short, first := st.GoesShort(&l, &w), closed > 0 && minute == closed+1
		if want := phase == release.Closed && minute > 1 && !first; short != want {
			t.Errorf("minute %d, %v: goes the short way: %v", minute, phase, short)
		}
		if tick(&l, st, w.T, &w); phase != st.Phase && st.Phase == release.Closed {
			closed = minute
		}
	}
	if closed == 0 {
		t.Error("no round passed")
	}
}

// drawPlainSteps draws the limits of two steps, of which the first and often
// both have a slow span as long as any, without lag.
func drawPlainSteps(t *rapid.T) []breaker.Limits {
	steps := []breaker.Limits{drawLimits(t), drawLimits(t)}
	steps[0].LabelLag, steps[0].SlowSpanMax = 0, 0
	keep := max(steps[0].Reach(), steps[1].Reach())
	steps[0].Keep, steps[1].Keep, steps[0].SlowSpan = keep, keep, keep
	if rapid.Bool().Draw(t, "both") {
		steps[1].LabelLag, steps[1].SlowSpanMax, steps[1].SlowSpan = 0, 0, keep
	}
	return steps
}

// drawPlainFeed draws windows of which most know the usual figures and are past
// nothing; in some feeds any may be as windows can be.
func drawPlainFeed(t *rapid.T) (ws []release.Window) {
	anyhow := rapid.IntRange(0, 3).Draw(t, "anyhow") == 0
	minute := 0
	for range rapid.IntRange(40, 80).Draw(t, "windows") {
		w := drawWindow(t, minute)
		if !anyhow {
			w.Known = release.HasSolved | release.HasViolations | release.HasTransfers
		}
		if !anyhow && rapid.IntRange(0, 9).Draw(t, "ill") > 0 {
			w.Violations, w.Transfers, w.Solved = 0, 0, w.Judged
		}
		ws = append(ws, w)
		minute += rapid.SampledFrom([]int{1, 1, 1, 1, 1, 1, 2, 5, 90}).Draw(t, "next")
	}
	return ws
}
