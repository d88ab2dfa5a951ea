package calibrate

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/batch"
	"github.com/canaryctl/canaryctl/internal/release"
)

// BenchmarkReplayRun is one seed of everything: a week at five steps with every
// figure, two drops at each, 49 thresholds at one of them, and a release.
func BenchmarkReplayRun(b *testing.B) {
	for _, tc := range []struct {
		name   string
		perMin int64
		span   time.Duration
	}{{"600 a minute", 600, time.Minute}, {"600 a minute, in windows of 10", 600, 10 * time.Minute}, {"20000 a minute", 20000, time.Minute}} {
		b.Run(tc.name, func(b *testing.B) {
			o := usual
			o.CostCV, o.GridStep = 1.2, 2
			r := replayOf(b, steadyWorld{perMin: tc.perMin, span: tc.span, days: 7, tau: 0.01, every: true}.windows(), publishedLadder(), o)
			seed, in := uint64(0), new(Scratch)
			b.ReportAllocs()
			for b.Loop() {
				seed++
				if _, err := r.Run(seed, in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(time.Millisecond), "ms/seed")
		})
	}
}

// BenchmarkReplay200Weeks is what calibrate does for a ladder of one step: 200
// seeded weeks over all cores, each with every figure, a drop, the thresholds and
// a release.
func BenchmarkReplay200Weeks(b *testing.B) {
	const weeks = 200
	for _, share := range []int64{10, 100} {
		b.Run(fmt.Sprintf("a step of %d %%", share), func(b *testing.B) {
			plan, o := publishedLadder(), usual
			plan.Steps = plan.Steps[len(plan.Steps)-1:]
			plan.Steps[0].Weight = release.Weight{Slots: share, Ring: 100}
			o.CostCV, o.GridStep = 1.2, 0
			r := replayOf(b, steadyWorld{perMin: 600, span: time.Minute, days: 7, tau: 0.01, every: true}.windows(), plan, o)
			memory := sync.Pool{New: func() any { return new(Scratch) }}
			b.ReportAllocs()
			for b.Loop() {
				_, err := batch.Run(context.Background(), batch.Seeds(1, weeks), 0, func(_ context.Context, seed uint64) (*ReplayRun, error) {
					in := memory.Get().(*Scratch)
					defer memory.Put(in)
					return r.Run(seed, in)
				}, nil)
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(weeks*float64(b.N)/b.Elapsed().Seconds(), "weeks/s")
		})
	}
}

// BenchmarkReplayRelease is one release over the published ladder that nothing
// rolls back.
func BenchmarkReplayRelease(b *testing.B) {
	plan := publishedLadder()
	for i := range plan.Steps {
		plan.Steps[i].Limits.MinTransfers = 1000
		plan.Steps[i].Limits.MinSlow = 1000
		plan.Steps[i].Limits.CostRatio = 20
	}
	r := replayOf(b, steadyWorld{perMin: 600, span: time.Minute, days: 7, tau: 0.01, every: true}.windows(), plan, usual)
	seed, done := uint64(0), 0
	for b.Loop() {
		seed++
		run, err := r.climb(seed, new(memory))
		if err != nil {
			b.Fatal(err)
		}
		if run.completed {
			done++
		}
	}
	b.ReportMetric(float64(done)/float64(b.N), "completed")
}
