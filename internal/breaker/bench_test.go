package breaker_test

import (
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// TestNothingIsAllocatedForAWindow once the ring has grown to the longest
// span, through trips and recoveries as well.
func TestNothingIsAllocatedForAWindow(t *testing.T) {
	for _, tc := range []struct {
		name  string
		every int // minutes between bursts of violations; 0: healthy
		lag   time.Duration
	}{
		{name: "healthy"},
		{name: "tripping every 40 minutes", every: 40},
		{name: "with label lag", every: 60, lag: minutes(10)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, st := published(), new(breaker.State)
			l.MaxRecoveries, l.LabelLag = 0, tc.lag
			minute, trips := 0, 0
			one := func() {
				w := window(minute, 26, 24)
				if tc.every > 0 && minute%tc.every == tc.every-1 {
					w.Violations = 3
				}
				if _, ok := breaker.Tick(&l, st, w.T); ok {
					trips++
				}
				breaker.Step(&l, st, &w)
				minute++
			}
			for range 200 {
				one()
			}
			if n := testing.AllocsPerRun(2000, one); n != 0 {
				t.Errorf("%v allocations a window", n)
			}
			if tc.every > 0 && trips < 20 {
				t.Errorf("only %d trips; the feed does not do what the test is about", trips)
			}
		})
	}
}

// BenchmarkStep is one window of a healthy canary through the breaker.
func BenchmarkStep(b *testing.B) {
	l, st := published(), new(breaker.State)
	w := window(0, 26, 24)
	b.ReportAllocs()
	for b.Loop() {
		w.T = w.T.Add(time.Minute)
		breaker.Tick(&l, st, w.T)
		if ev, ok := breaker.Step(&l, st, &w); ok || st.Phase != release.Closed {
			b.Fatal(say(ev))
		}
	}
}
