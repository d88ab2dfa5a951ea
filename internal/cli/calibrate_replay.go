package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
	if calibrate.Judge(o.Judge) == calibrate.CusumJudge {
		if replayer, err = o.settleCusum(ctx, rep, replayer, plan); err != nil {
			return err
		}
	}
	for {
		runs, err := weeks(ctx, o, "replay", replayer.Run)
		if err != nil {
			return err
		}
		if !rep.Raise(calibrate.TripsOf(runs)) {
			rep.Take(replayer.Merge(runs))
			return nil
		}
		if replayer, err = o.raise(ctx, rep, plan); err != nil {
			return err
		}
	}
}

// settleCusum lets the replayed weeks set the limit of a cumulative sum.
func (o *calibrateOptions) settleCusum(ctx context.Context, rep *calibrate.Report, replayer *calibrate.Replay, plan *ladder.Plan) (*calibrate.Replay, error) {
	peaks, err := weeks(ctx, o, "limits of the cumulative sum", func(seed uint64, in *calibrate.Scratch) ([]float64, error) { return replayer.CusumPeaks(seed, in), nil })
	if err != nil {
		return nil, err
	}
	rep.TakeCusum(peaks)
	return rep.Replayer(plan)
}

// raise lets the replayed weeks have the last word: limits that have been raised
// are held against the weeks until none has too many false trips. Most services
// need none of it, so the false trips are first read off a whole replay.
func (o *calibrateOptions) raise(ctx context.Context, rep *calibrate.Report, plan *ladder.Plan) (*calibrate.Replay, error) {
	for {
		replayer, err := rep.Replayer(plan)
		if err != nil {
			return nil, err
		}
		trips, err := weeks(ctx, o, "limits", func(seed uint64, in *calibrate.Scratch) ([][release.Judged]int64, error) {
			return replayer.Trips(seed, in), nil
		})
		if err != nil || !rep.Raise(trips) {
			return replayer, err
		}
	}
}

// weeks runs work for every seed, with progress on a terminal's stderr.
func weeks[T any](ctx context.Context, o *calibrateOptions, what string, run func(seed uint64, in *calibrate.Scratch) (T, error)) ([]T, error) {
	memory := sync.Pool{New: func() any { return new(calibrate.Scratch) }}
	bar := o.app.statusLine()
	defer bar.done()
	return batch.Run(ctx, batch.Seeds(o.Seed, o.Replays), 0, func(_ context.Context, seed uint64) (T, error) {
		in := memory.Get().(*calibrate.Scratch)
		defer memory.Put(in)
		return run(seed, in)
	}, func(done, total int) {
		bar.show(func(spent time.Duration) string {
			return fmt.Sprintf("%s: %d of %d weeks, %s left", what, done, total, left(spent, int64(done), int64(total)))
		})
	})
}
