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
