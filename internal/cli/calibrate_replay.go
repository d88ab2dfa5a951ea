package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/canaryctl/canaryctl/internal/batch"
	"github.com/canaryctl/canaryctl/internal/calibrate"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// replay runs the report's limits over weeks resampled from the baseline, over
// all cores, and puts what it found into the report.
func (o *calibrateOptions) replay(ctx context.Context, rep *calibrate.Report, plan *ladder.Plan) error {
	replayer, err := rep.Replayer(plan)
	if errors.Is(err, calibrate.ErrReplayShort) || errors.Is(err, calibrate.ErrReplaySpan) {
		o.app.warn("not replayed: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	if replayer, err = o.settle(ctx, rep, replayer, plan); err != nil {
		return err
	}
	runs, err := weeks(ctx, o, "replay", replayer.Run)
	if err != nil {
		return err
	}
	rep.Take(replayer.Merge(runs))
	return nil
}

// settle lets the replayed weeks have the last word: they set the limit of a
// cumulative sum, and raise the limits of whatever has too many false trips.
func (o *calibrateOptions) settle(ctx context.Context, rep *calibrate.Report, replayer *calibrate.Replay, plan *ladder.Plan) (*calibrate.Replay, error) {
	if calibrate.Judge(o.Judge) == calibrate.CusumJudge {
		peaks, err := weeks(ctx, o, "limits of the cumulative sum", func(seed uint64) ([]float64, error) { return replayer.CusumPeaks(seed), nil })
		if err != nil {
			return nil, err
		}
		rep.TakeCusum(peaks)
		if replayer, err = rep.Replayer(plan); err != nil {
			return nil, err
		}
	}
	for {
		trips, err := weeks(ctx, o, "limits", func(seed uint64) ([][release.Judged]int64, error) { return replayer.Trips(seed), nil })
		if err != nil || !rep.Raise(trips) {
			return replayer, err
		}
		if replayer, err = rep.Replayer(plan); err != nil {
			return nil, err
		}
	}
}

// weeks runs work for every seed, with progress on a terminal's stderr.
func weeks[T any](ctx context.Context, o *calibrateOptions, what string, run func(seed uint64) (T, error)) ([]T, error) {
	bar := o.app.statusLine()
	defer bar.done()
	return batch.Run(ctx, batch.Seeds(o.Seed, o.Replays), 0, func(_ context.Context, seed uint64) (T, error) {
		return run(seed)
	}, func(done, total int) {
		bar.show(func(spent time.Duration) string {
			return fmt.Sprintf("%s: %d of %d weeks, %s left", what, done, total, left(spent, int64(done), int64(total)))
		})
	})
}
