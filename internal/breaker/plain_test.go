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
	rapid.Check(t, func(t *rapid.T) {
		steps := drawPlainSteps(t)
		l, fast, slow := steps[0], new(breaker.State), new(breaker.State)
		for i, w := range drawFeed(t) {
			switch rapid.IntRange(0, 20).Draw(t, "meddling") {
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
			}
			slow = roundTrip(t, slow)
			got, want := tick(&l, fast, w.T, &w), tick(&l, slow, w.T, &w)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("window %d, the events differ:\n%s", i, diff)
			}
			if a, b := written(t, fast), written(t, slow); !bytes.Equal(a, b) {
				t.Fatalf("after window %d\n%s\nwant\n%s", i, a, b)
			}
		}
	})
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
