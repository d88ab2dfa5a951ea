package trace

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// pipeline reads a file's blocks with several goroutines and counts their rows
// in the order of the file, one block at a time: what comes out depends neither
// on where the blocks are cut nor on how many goroutines there are.
type pipeline struct {
	feed   *feed
	run    *fileRun
	in     blockSource
	parser func() blockParser
	recipe atomic.Pointer[recipe]

	mu   sync.Mutex
	turn *sync.Cond
	next int64 // the block to be counted next
	row  int64 // of CSV: where in the file the next row starts
	err  error // why the reading ended
}

// blockParser reads the rows of blocks. Each goroutine has its own.
type blockParser interface {
	// parse reads the rows of b into out. Without a recipe all are odd.
	parse(rc *recipe, b *block, out *batch)
	// parseApart reads them again, each as a record: they cannot be summed up.
	parseApart(b *block, out *batch)
}

// drainBlocks reads a file to its end. The first block is read before the
// others, since it says what the rows are.
func (f *feed) drainBlocks(run *fileRun, in blockSource, parser func() blockParser) error {
	p := &pipeline{feed: f, run: run, in: in, parser: parser}
	p.turn = sync.NewCond(&p.mu)
	first := &worker{parser: parser()}
	if !p.one(first) {
		return p.err
	}
	p.expect(first)
	// One goroutine more than there are cores, for when one waits for its turn.
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) + 1 {
		w := &worker{parser: parser()}
		wg.Go(func() {
			for p.one(w) {
			}
		})
	}
	wg.Wait()
	return p.err
}

// maxExpected bounds the room that is made for rows that may not come.
const maxExpected = 1 << 20

// expect makes room for the windows that the file will hold if it goes on as it
// starts: a year of them is copied over and over otherwise.
func (p *pipeline) expect(first *worker) {
	if p.run.src.file == nil || len(first.block.text()) == 0 {
		return
	}
	if info, err := p.run.src.file.Stat(); err == nil {
		rows := float64(len(p.feed.windows.rows)) * 1.05 * float64(info.Size()) / float64(len(first.block.text()))
		p.feed.windows.expect(int(min(rows, maxExpected)))
	}
}

// worker is what a goroutine of a pipeline keeps for itself.
type worker struct {
	parser blockParser
	block  block
	batch  batch
}

// one reads a block and counts it. It returns false when there is no more.
func (p *pipeline) one(w *worker) bool {
	if !p.in.next(&w.block) {
		return false
	}
	w.batch.reset()
	w.parser.parse(p.recipe.Load(), &w.block, &w.batch)
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.next != w.block.seq && p.err == nil {
		p.turn.Wait()
	}
	if p.err != nil {
		return false
	}
	if w.block.file != nil {
		p.align(w)
	}
	if sums := w.batch.stretches; len(sums) > 0 && !p.feed.takesSums(p.run, &w.batch) {
		w.batch.reset()
		w.parser.parseApart(&w.block, &w.batch)
	}
	w.batch.err = w.block.err
	if err := p.feed.commit(p.run, &w.batch); err != nil {
		p.err = fatal(p.run.src, 0, err)
	}
	p.next++
	p.learn()
	p.turn.Broadcast()
	return p.err == nil
}

// align makes sure that the rows of a block of CSV begin where those of the one
// before ended: its first line may be one within a quoted cell.
func (p *pipeline) align(w *worker) {
	b := &w.block
	if b.seq == 0 {
		p.row = b.at
	}
	switch from := p.row - b.at; {
	case from >= int64(b.to): // a row goes over all of it
		w.batch.reset()
		b.err = nil
	case from != int64(b.from):
		b.from, b.aligned = int(from), true
		b.long, b.skipped, b.err = false, 0, nil // what a wrong guess met is not there
		w.batch.reset()
		w.parser.parse(p.recipe.Load(), b, &w.batch)
		p.row = w.batch.end
	default:
		p.row = w.batch.end
	}
}

// learn makes a new recipe where more is known of the file than in the last one.
func (p *pipeline) learn() {
	if old := p.recipe.Load(); p.run.plan != nil && (old == nil || old.outdated(p.run)) {
		p.recipe.Store(p.feed.recipeOf(p.run))
	}
}
