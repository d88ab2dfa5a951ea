package calibrate

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// TestTheGridsSumsAreThoseOfTheBreaker: trips and findings of lower and lower
// floors, whatever the span, with gaps, empty minutes and minutes of which the
// outcomes are not known.
func TestTheGridsSumsAreThoseOfTheBreaker(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		minutes := func(name string, of ...int) time.Duration {
			return time.Duration(rapid.SampledFrom(of).Draw(t, name)) * time.Minute
		}
		l := breaker.Limits{
			SlowSpan: minutes("slow", 0, 1, 5, 10, 25), SlowSpanMax: minutes("max", 0, 0, 20, 60), LabelLag: minutes("lag", 0, 0, 0, 3),
			FastSpan: 5 * time.Minute, MinSamples: rapid.SampledFrom([]int64{0, 1, 30, 100}).Draw(t, "min_samples"),
		}
		l.Rules[release.SolveRate] = breaker.Rule{Mode: release.Enforce, OnFail: release.RollBack}
		for s := range l.Rules[:release.SolveRate] {
			l.Rules[s].Mode = release.Off
		}
		l.Keep = l.Reach()
		p := &pass{r: &Replay{history: &history{tick: time.Minute}}, canary: drawWeek(t)}
		p.bad = p.canary
		from := rapid.IntRange(0, len(p.bad)-1).Draw(t, "drop")
		l.SolveFloor = release.NewRatio(95, 100)
		s := &p.sums
		s.read(p.canary)
		s.lay(&l)
		for _, percent := range []int64{95, 90, 85, 80, 70, 50} {
			l.SolveFloor = release.NewRatio(percent, 100)
			s.lower(l.SolveFloor)
			if got, want := s.falseTrips(p.rest(&l)), p.falseTrips(&l)[release.SolveRate]; got != want {
				t.Fatalf("floor %d %%: %d trips, the breaker's %d", percent, got, want)
			}
			got, before := s.detect(from)
			if want, wantBefore := p.detect(&l, from); got != want || before != wantBefore {
				t.Fatalf("floor %d %%: found %+v, %v before; the breaker %+v, %v", percent, got, before, want, wantBefore)
			}
		}
	})
}

// drawWeek draws minutes that are mostly at 90 % or worse.
func drawWeek(t *rapid.T) []release.Window {
	ws := make([]release.Window, rapid.IntRange(1, 250).Draw(t, "minutes"))
	rate := int64(90)
	for i := range ws {
		w := &ws[i]
		w.T = time.Date(2026, 5, 4, 0, i, 0, 0, time.UTC)
		kind := rapid.IntRange(0, 40).Draw(t, "kind")
		if kind == 0 {
			continue // a gap
		}
		w.Span, w.Known = time.Minute, release.HasSolved
		if kind == 1 {
			rate = rapid.Int64Range(40, 100).Draw(t, "rate")
		}
		w.Total = rapid.Int64Range(0, 20).Draw(t, "total")
		w.Judged = w.Total
		w.Solved = w.Judged * rate / 100
		if kind == 2 {
			w.Known, w.Judged, w.Solved = 0, 0, 0
		}
	}
	return ws
}
