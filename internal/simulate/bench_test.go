package simulate_test

import (
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

// week is a drawn week of both arms with every figure.
func week(seed uint64) simulate.Spec {
	return simulate.Spec{
		Start: t0, Minutes: 7 * 24 * 60, Drawn: true, Seed: seed, PerMin: 100, StablePerMin: 900,
		Base: simulate.Base{
			Solved: simulate.Rate(0.9), Violations: simulate.Rate(0.00005), Transfers: simulate.Rate(0.02),
			P99MS: 300, LatencySigma: 0.5, CostUSD: 0.004, CostSigma: 0.8,
		},
		Faults: []simulate.Fault{{Target: simulate.Traffic, Change: simulate.SwingShare, Value: 0.2, Arm: release.All, PeakHour: 14}},
	}
}

// healthy are so many recorded minutes of both arms in which nothing happens.
func healthy(minutes int) (canary, stable []release.Window) {
	for m := range minutes {
		w := minute(m, 26, 24, 0, 0)
		w.CostMean, w.P99MS, w.Known = 0.004, 300, w.Known|release.HasCostMean|release.HasP99
		canary = append(canary, w)
		w.Arm, w.Total, w.Judged, w.Solved = release.Stable, 2600, 2600, 2400
		stable = append(stable, w)
	}
	return canary, stable
}

// replay runs a recorded feed.
func replay(tb testing.TB, canary, stable []release.Window) *simulate.Outcome {
	feed, err := simulate.NewRecorded(canary, stable)
	if err != nil {
		tb.Fatal(err)
	}
	out, err := simulate.Run(plan(published()), feed, simulate.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// TestAReplayAllocatesNothingForAMinute: a fortnight takes less than one
// allocation more for a thousand minutes than a week does, with a release that
// climbs to its end in both. The count is the whole process's, and the runtime
// may add a few of its own between the two, so it is not asked to be the same.
func TestAReplayAllocatesNothingForAMinute(t *testing.T) {
	const week = 7 * 24 * 60
	canary, stable := healthy(2 * week)
	one := testing.AllocsPerRun(1, func() { replay(t, canary[:week], stable[:week]) })
	two := testing.AllocsPerRun(1, func() { replay(t, canary, stable) })
	if two > one+week/1000 {
		t.Errorf("%v allocations for %d minutes, %v for twice as many", one, week, two)
	}
}

// BenchmarkSyntheticWeek draws 10,080 minutes of both arms.
func BenchmarkSyntheticWeek(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		feed, err := simulate.NewSynthetic(week(1))
		if err != nil {
			b.Fatal(err)
		}
		for feed.More() {
			_, err := feed.Next(release.Weight{Slots: 10, Ring: 100})
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(time.Millisecond), "ms/week")
}

// BenchmarkReplaySyntheticWeek draws a week and replays it through ladder and
// breaker: one run of a batch.
func BenchmarkReplaySyntheticWeek(b *testing.B) {
	p := plan(published())
	b.ReportAllocs()
	ticks := 0
	for b.Loop() {
		feed, err := simulate.NewSynthetic(week(1))
		if err != nil {
			b.Fatal(err)
		}
		out, err := simulate.Run(p, feed, simulate.Options{})
		if err != nil {
			b.Fatal(err)
		}
		ticks += out.Ticks
	}
	b.ReportMetric(float64(ticks)/b.Elapsed().Seconds(), "windows/s")
}

// BenchmarkReplayYear replays a recorded year of one-minute windows of both
// arms.
func BenchmarkReplayYear(b *testing.B) {
	canary, stable := healthy(365 * 24 * 60)
	b.ReportAllocs()
	ticks := 0
	for b.Loop() {
		ticks += replay(b, canary, stable).Ticks
	}
	b.ReportMetric(float64(ticks)/b.Elapsed().Seconds(), "windows/s")
}
