package breaker_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// TestNothingIsAllocatedForAWindow once the ring has grown to the longest
// span. A transition's event is one allocation, so the feeds that trip average
// below one in many windows.
func TestNothingIsAllocatedForAWindow(t *testing.T) {
	for _, tc := range []struct {
		name  string
		every int // minutes between bursts of violations; 0: healthy
		lag   time.Duration
		set   func(*breaker.Limits)
	}{
		{name: "healthy"},
		{name: "tripping every 40 minutes", every: 40},
		{name: "with label lag", every: 60, lag: minutes(10)},
		{name: "fitted", set: func(l *breaker.Limits) { l.Noise = breaker.Noise{Z: 4.02, Tau: 0.02} }},
		{name: "fitted, exact tail, count window", set: func(l *breaker.Limits) {
			l.Noise, l.SlowSpanMax = breaker.Noise{Z: 4.02, Tau: 0.02, Tail: breaker.ExactTail}, minutes(60)
		}},
		{name: "against stable", set: func(l *breaker.Limits) { l.Noise, l.AgainstStable = breaker.Noise{Z: 4.02}, true }},
		{name: "cusum, tripping every 40 minutes", every: 40, set: func(l *breaker.Limits) { l.Judge = breaker.CusumJudge }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, st := published(), new(breaker.State)
			l.MaxRecoveries, l.LabelLag = 0, tc.lag
			l.SolveBaseline, l.Cusum = release.MustRatio("0.92"), breaker.Cusum{Drop: release.MustRatio("0.1"), Limit: 11.2}
			if tc.set != nil {
				tc.set(&l)
			}
			minute, trips := 0, 0
			one := func() {
				w := window(minute, 26, 24)
				w.ControlJudged, w.ControlSolved, w.Known = 260, 239, w.Known|release.HasControl
				if tc.every > 0 && minute%tc.every == tc.every-1 {
					w.Violations = 3
				}
				if breaker.Tick(&l, st, w.T) != nil {
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

// BenchmarkStep is one window through the breaker: of a healthy canary, and of
// one below the floor that noise may still explain, where the tail is computed.
func BenchmarkStep(b *testing.B) {
	noise := breaker.Noise{Z: 4.02, Tau: 0.03, SE: 0.001}
	exact := noise
	exact.Tail = breaker.ExactTail
	for _, bc := range []struct {
		name   string
		solved int64
		set    func(*breaker.Limits)
	}{
		{"fixed", 24, func(*breaker.Limits) {}},
		{"fitted", 24, func(l *breaker.Limits) { l.Noise = noise }},
		{"fitted/below the floor", 22, func(l *breaker.Limits) { l.Noise = noise }},
		{"fitted exact", 24, func(l *breaker.Limits) { l.Noise = exact }},
		{"fitted exact/below the floor", 22, func(l *breaker.Limits) { l.Noise = exact }},
		{"fitted exact/past the screen", 21, func(l *breaker.Limits) { l.Noise = exact }},
		{"count window", 24, func(l *breaker.Limits) { l.SlowSpanMax, l.MinSamples = minutes(60), 1000 }},
		{"against stable", 24, func(l *breaker.Limits) { l.AgainstStable, l.Noise = true, noise }},
		{"cusum", 24, func(l *breaker.Limits) { l.Judge = breaker.CusumJudge }},
	} {
		b.Run(bc.name, func(b *testing.B) {
			l, st := published(), new(breaker.State)
			l.SolveBaseline, l.SolveFloor = release.MustRatio("0.91"), release.MustRatio("0.87")
			l.Cusum = breaker.Cusum{Drop: release.MustRatio("0.1"), Limit: 11.2}
			bc.set(&l)
			l.Keep = l.Reach() // as the configuration does
			ws := make([]release.Window, 7*24*60)
			for i := range ws {
				ws[i] = window(i, 26, bc.solved)
				if l.AgainstStable {
					ws[i].ControlJudged, ws[i].ControlSolved, ws[i].Known = 260, 239, ws[i].Known|release.HasControl
				}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if i == len(ws) {
					st.Reset()
					i = 0
				}
				w := &ws[i]
				breaker.Tick(&l, st, w.T)
				if ev := breaker.Step(&l, st, w); ev != nil || st.Phase != release.Closed {
					b.Fatal(say(ev))
				}
				i++
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "windows/s")
		})
	}
}

// BenchmarkWeek is Step alone over a week of windows, in the plainest loop:
// published limits, a healthy canary whose traffic and luck change from minute to
// minute.
func BenchmarkWeek(b *testing.B) {
	l, st := published(), new(breaker.State)
	l.Keep = l.Reach() // as the configuration does
	rng, ws := rand.New(rand.NewPCG(1, 2)), make([]release.Window, 7*24*60)
	for i := range ws {
		total := 20 + rng.Int64N(13)
		ws[i] = window(i, total, total-rng.Int64N(5))
		ws[i].Transfers = rng.Int64N(200) / 198
	}
	b.ReportAllocs()
	events := 0
	for b.Loop() {
		st.Reset()
		for i := range ws {
			if breaker.Step(&l, st, &ws[i]) != nil {
				events++
			}
		}
	}
	if events != 0 {
		b.Fatal("a healthy canary trips")
	}
	b.ReportMetric(float64(len(ws))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mwindows/s")
}
