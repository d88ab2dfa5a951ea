package batch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/canaryctl/canaryctl/internal/batch"
)

func square(_ context.Context, seed uint64) (uint64, error) { return seed * seed, nil }

func TestResultsComeInSeedOrderForAnyNumberOfWorkers(t *testing.T) {
	want := []uint64{9, 16, 25, 36, 49, 64, 81}
	for _, workers := range []int{-1, 0, 1, 2, 3, 100} {
		synctest.Test(t, func(t *testing.T) {
			got, err := batch.Run(t.Context(), batch.Seeds(3, 7), workers, func(ctx context.Context, seed uint64) (uint64, error) {
				time.Sleep(time.Duration(20-seed) * time.Second) // later seeds are faster
				return square(ctx, seed)
			}, nil)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%d workers: got %v, %v; want %v", workers, got, err, want)
			}
		})
	}
}

func TestNoSeedsIsNoWork(t *testing.T) {
	got, err := batch.Run(t.Context(), nil, 4, square, func(int, int) { t.Error("progress of nothing") })
	if err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
	if s := batch.Seeds(1, -1); len(s) != 0 {
		t.Errorf("Seeds(1, -1) = %v", s)
	}
}

func TestWorkersRunAtTheSameTimeAndNoMoreThanAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int64
		begin := time.Now()
		_, err := batch.Run(t.Context(), batch.Seeds(0, 12), 4, func(context.Context, uint64) (int, error) {
			n := running.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(time.Second)
			running.Add(-1)
			return 0, nil
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != 3*time.Second || most.Load() != 4 {
			t.Errorf("12 runs of a second on 4 workers took %s with %d at once, want 3s with 4", took, most.Load())
		}
	})
}

func TestProgressRisesByOneWithoutOverlap(t *testing.T) {
	var inside atomic.Int64
	var told []int
	_, err := batch.Run(t.Context(), batch.Seeds(0, 50), 8, square, func(done, total int) {
		if inside.Add(1) != 1 || total != 50 {
			t.Errorf("progress(%d, %d) overlaps another", done, total)
		}
		told = append(told, done)
		inside.Add(-1)
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, done := range told {
		if done != i+1 {
			t.Fatalf("told %v", told)
		}
	}
	if len(told) != 50 {
		t.Errorf("told %d times, want 50", len(told))
	}
}

// The earliest failing seed wins although a later one fails first.
func TestErrorOfTheEarliestSeedWinsForAnyNumberOfWorkers(t *testing.T) {
	for workers := 1; workers <= 12; workers++ {
		synctest.Test(t, func(t *testing.T) {
			var began atomic.Int64
			got, err := batch.Run(t.Context(), batch.Seeds(0, 1000), workers, func(ctx context.Context, seed uint64) (int, error) {
				began.Add(1)
				switch seed {
				case 5:
					time.Sleep(time.Minute)
					return 0, fmt.Errorf("seed %d", seed)
				case 7:
					return 0, fmt.Errorf("seed %d", seed)
				}
				select {
				case <-time.After(10 * time.Second):
					return 1, nil
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			}, nil)
			if got != nil || err == nil || err.Error() != "seed 5" {
				t.Errorf("%d workers: got %v, %v; want the error of seed 5", workers, got, err)
			}
			if began.Load() > int64(8+workers) {
				t.Errorf("%d workers: %d seeds begun after the failure", workers, began.Load())
			}
		})
	}
}

func TestFailureCancelsLaterRunsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var first atomic.Bool
		_, err := batch.Run(t.Context(), batch.Seeds(0, 3), 3, func(ctx context.Context, seed uint64) (int, error) {
			switch seed {
			case 0:
				time.Sleep(2 * time.Second)
				first.Store(ctx.Err() == nil)
				return 0, nil
			case 1:
				time.Sleep(time.Second)
				return 0, errors.New("seed 1")
			}
			<-ctx.Done()
			return 0, ctx.Err()
		}, nil)
		if err == nil || err.Error() != "seed 1" || !first.Load() || time.Since(begin) != 2*time.Second {
			t.Errorf("got %v after %s, seed 0 undisturbed: %t", err, time.Since(begin), first.Load())
		}
	})
}

func TestCancelStopsAndGivesTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			time.Sleep(90 * time.Second)
			cancel(cause)
		}()
		var began atomic.Int64
		got, err := batch.Run(ctx, batch.Seeds(0, 100), 2, func(ctx context.Context, _ uint64) (int, error) {
			began.Add(1)
			select {
			case <-time.After(time.Minute):
				return 1, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}, nil)
		if got != nil || !errors.Is(err, cause) || began.Load() != 4 {
			t.Errorf("got %v, %v after %d runs; want the cause after 4", got, err, began.Load())
		}
	})
}

func TestContextThatHasEndedRunsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := batch.Run(ctx, batch.Seeds(0, 3), 2, func(context.Context, uint64) (int, error) {
		t.Error("a run was begun")
		return 0, nil
	}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A cancellation that comes when all runs are done loses nothing.
func TestLateCancelKeepsTheResults(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	got, err := batch.Run(ctx, batch.Seeds(0, 3), 1, square, func(done, total int) {
		if done == total {
			cancel()
		}
	})
	if err != nil || !slices.Equal(got, []uint64{0, 1, 4}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func ExampleRun() {
	sums, err := batch.Run(context.Background(), batch.Seeds(1, 4), 2, func(_ context.Context, seed uint64) (uint64, error) {
		return seed * 10, nil
	}, nil)
	fmt.Println(sums, err)
	// Output: [10 20 30 40] <nil>
}
