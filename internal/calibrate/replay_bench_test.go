package calibrate

import (
	"testing"
	"time"
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
			seed := uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				seed++
				if _, err := r.Run(seed); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(time.Millisecond), "ms/seed")
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
		run, err := r.climb(seed)
		if err != nil {
			b.Fatal(err)
		}
		if run.completed {
			done++
		}
	}
	b.ReportMetric(float64(done)/float64(b.N), "completed")
}
