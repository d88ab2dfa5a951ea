package calibrate_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/canaryctl/canaryctl/internal/calibrate"
	"github.com/canaryctl/canaryctl/internal/release"
)

func ExampleMeasure() {
	// Two days of 10-minute windows with 1000 requests, of which 880, 900 or 920 are solved.
	var windows []release.Window
	start := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	for i := range 288 {
		windows = append(windows, release.Window{
			T: start.Add(time.Duration(i) * 10 * time.Minute), Span: 10 * time.Minute, Arm: release.Stable,
			Total: 1000, Judged: 1000, Solved: 880 + int64(i%3)*20, Known: release.HasSolved,
		})
	}
	rep, err := calibrate.Measure(windows, calibrate.Options{TolerableDropPP: release.MustRatio("3"), K: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("three sigma %.2f pp, threshold %.2f pp from %d judged requests on\n", *rep.Slow.Plain.ThreeSigmaPP, rep.Slow.ThresholdPP, *rep.Slow.MinSamples)

	_, err = calibrate.Measure(windows[:6], calibrate.Options{})
	refusal, _ := errors.AsType[*calibrate.Refusal](err)
	for _, reason := range refusal.Reasons {
		fmt.Println(reason.Text)
	}
	// Output:
	// three sigma 4.91 pp, threshold 4.91 pp from 390 judged requests on
	// 60 minutes of data, at least 24 hours are needed
	// 6 whole windows of 10 minutes with a solve rate, at least 20 are needed
}
