package ladder_test

import (
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// quiet is a release at its first step, and the minutes that follow: a window
// of each arm, nothing past a limit, a hold that does not end. Each call of the
// function shows Decide the next one.
func quiet(tb testing.TB, known release.Figures) func() ladder.Decision {
	p, st, now := plan(hold(1<<30)), new(ladder.State), t0
	ladder.Decide(p, st, ladder.Evidence{Observed: ladder.Observed{Weight: pct(0), At: now, Known: true}}, now)
	counts := release.Window{Span: time.Minute, Arm: release.Canary, Total: 26, Judged: 26, Solved: 24, Known: release.HasSolved | release.HasViolations | release.HasTransfers}
	canary, stable := [1]release.Window{counts}, [1]release.Window{counts}
	canary[0].Known |= known
	canary[0].CostMean, canary[0].Cost, canary[0].P99MS, canary[0].TTFTOf, canary[0].StatusOf = 0.01, 1, 300, 26, 26
	stable[0].Arm = release.Stable
	ev := ladder.Evidence{Windows: canary[:], Stable: stable[:], Observed: ladder.Observed{Weight: pct(1), Known: true}}
	return func() ladder.Decision {
		canary[0].T, stable[0].T = now, now
		now = now.Add(time.Minute)
		ev.Observed.At = now
		d := ladder.Decide(p, st, ev, now)
		if d.Happened || d.Write || d.Why != ladder.WhyTime {
			tb.Fatal(d.Reason())
		}
		return d
	}
}

var quietFigures = map[string]release.Figures{
	"counts":           0,
	"every figure":     release.HasCost | release.HasP99 | release.StreamingFigures,
	"a cost to relate": release.HasCostMean,
}

// TestNothingIsAllocatedForAQuietMinute: neither for its windows nor for the
// decision to hold.
func TestNothingIsAllocatedForAQuietMinute(t *testing.T) {
	for name, known := range quietFigures {
		t.Run(name, func(t *testing.T) {
			one := quiet(t, known)
			for range 200 {
				one()
			}
			if n := testing.AllocsPerRun(2000, func() { one() }); n != 0 {
				t.Errorf("%v allocations a minute", n)
			}
		})
	}
}

// BenchmarkDecide is one minute of a release at a step: a window of each arm.
func BenchmarkDecide(b *testing.B) {
	for _, name := range []string{"counts", "every figure"} {
		b.Run(name, func(b *testing.B) {
			one := quiet(b, quietFigures[name])
			b.ReportAllocs()
			for b.Loop() {
				one()
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "windows/s")
		})
	}
}
