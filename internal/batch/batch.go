// Package batch runs seeded work over the cores and merges the results in the
// order of the seeds, so that they do not depend on how many cores there were.
//
//	outs, err := batch.Run(ctx, batch.Seeds(1, 200), 0, func(ctx context.Context, seed uint64) (*simulate.Outcome, error) {
//		return simulate.Run(plan, sc.Feed(plan, seed), sc.Options())
//	}, progress)
//
// It knows nothing of what it runs, holds no clock and leaves no goroutine
// behind.
package batch

import (
	"context"
	"runtime"
	"sync"
)

// Seeds returns n seeds from first on.
func Seeds(first uint64, n int) []uint64 {
	seeds := make([]uint64, max(n, 0))
	for i := range seeds {
		seeds[i] = first + uint64(i)
	}
	return seeds
}

// Run calls run once for every seed, on up to workers goroutines, and returns
// the results in the order of seeds; workers of 0 or less means one for every
// core. It returns when every call has returned.
//
// After an error no further seed is begun beyond those that stand before it,
// and the error returned is that of the earliest seed in the order of seeds
// that fails: the same one for any number of workers, provided that a run
// depends on its seed alone. The calls under way are cancelled through their
// context only if they stand after it. Results are nil then.
//
// When ctx ends, Run stops and returns ctx's cause, unless a run had failed
// with an error of its own before.
//
// progress, unless nil, is told after every run how many of all are done. Its
// calls do not overlap and done rises by one each time.
func Run[T any](ctx context.Context, seeds []uint64, workers int, run func(ctx context.Context, seed uint64) (T, error), progress func(done, total int)) ([]T, error) {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	b := &work[T]{seeds: seeds, run: run, progress: progress, results: make([]T, len(seeds)), failed: len(seeds)}
	b.cancels = make(map[int]context.CancelFunc, workers)
	var wg sync.WaitGroup
	for range min(workers, len(seeds)) {
		wg.Go(func() { b.loop(ctx) })
	}
	wg.Wait()
	if b.err != nil {
		return nil, b.err
	}
	if b.done < len(seeds) {
		return nil, context.Cause(ctx)
	}
	return b.results, nil
}

// work is a batch under way.
type work[T any] struct {
	seeds    []uint64
	run      func(ctx context.Context, seed uint64) (T, error)
	progress func(done, total int)
	results  []T

	mu      sync.Mutex
	next    int                        // index of the next seed to begin
	done    int                        // runs that came to a result
	failed  int                        // index of the earliest seed that failed, or len(seeds)
	err     error                      // its error
	cancels map[int]context.CancelFunc // of the runs under way
}

// loop takes one seed after the other until none is left to be begun.
func (b *work[T]) loop(ctx context.Context) {
	for {
		i, one, ok := b.begin(ctx)
		if !ok {
			return
		}
		result, err := b.run(one, b.seeds[i])
		b.end(ctx, i, result, err)
	}
}

// begin takes the next seed, unless all are taken, ctx has ended or an earlier
// one has failed. Seeds are begun in order, so every seed before a failed one
// has been begun.
func (b *work[T]) begin(ctx context.Context) (i int, one context.Context, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Err() != nil || b.next >= b.failed {
		return 0, nil, false
	}
	i = b.next
	b.next++
	one, b.cancels[i] = context.WithCancel(ctx)
	return i, one, true
}

// end notes what a run came to and tells the progress.
func (b *work[T]) end(ctx context.Context, i int, result T, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cancels[i]()
	delete(b.cancels, i)
	switch {
	case err == nil:
		b.results[i] = result
		b.done++
		if b.progress != nil && b.err == nil {
			b.progress(b.done, len(b.seeds))
		}
	case ctx.Err() != nil:
		// The batch was cancelled: what the run says of it is not its own.
	case i < b.failed:
		b.failed, b.err = i, err
		for later, cancel := range b.cancels {
			if later > i {
				cancel()
			}
		}
	}
}
