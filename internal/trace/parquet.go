package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	pqformat "github.com/parquet-go/parquet-go/format"
)

// maxParquetWorkers bounds the memory. Rows are counted in the order of the file,
// one batch at a time, so that more workers would wait for that.
const maxParquetWorkers = 4

// readParquet reads a Parquet file of so many bytes: row groups, or slices of
// large ones, by as many goroutines as there are cores, counted in the order
// of the file. It reads the columns of the plan and no others.
func (f *feed) readParquet(ctx context.Context, src *source, r io.ReaderAt, size int64, run *fileRun, progress func(int64)) error {
	meta, root, err := openParquet(src.name, r, size)
	if err != nil {
		return err
	}
	leaves := leavesOf(root)
	p, err := f.opt.bind(run.name, columnNames(leaves))
	if err != nil {
		return err
	}
	f.usePlan(run, p)
	read := &parquetRead{feed: f, run: run, meta: meta, r: r, ctx: ctx, progress: progress, size: size}
	if err := read.place(leaves); err != nil {
		return err
	}
	if err := caught(src.name, read.prepare); err != nil {
		return err
	}
	return read.all()
}

// usePlan makes a plan that of the file being read.
func (f *feed) usePlan(run *fileRun, p *plan) {
	run.plan = p
	run.clock = clock{unit: p.unit[p.time]}
	if run.clock.unit == NoUnit {
		run.clock.unit = f.opt.Epoch
	}
	if f.data.Unused == nil {
		f.data.Unused = p.unused
	}
}

// openParquet reads a file's table of contents, and the tree of its columns.
func openParquet(name string, r io.ReaderAt, size int64) (meta *pqformat.FileMetaData, root *node, err error) {
	table, err := readFooter(name, r, size)
	if err != nil {
		return nil, nil, err
	}
	err = caught(name, func() (err error) {
		if meta, err = decodeFooter(table); err != nil {
			return err
		}
		root, err = columnsOf(meta)
		return err
	})
	return meta, root, err
}

func encrypted(name string) error {
	return &InputError{File: name, Msg: "is encrypted, which is not read", Advice: "write the columns that canaryctl needs without encryption"}
}

// caught runs f, which decodes what may be damaged, and says which file it is
// that cannot be read. The library panics over some of what it does not expect.
func caught(name string, f func() error) (err error) {
	defer func() {
		if what := recover(); what != nil {
			err = &InputError{File: name, Msg: fmt.Sprintf("damaged: %v", what)}
		}
	}()
	err = f()
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[Hinter](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &InputError{File: name, Msg: "damaged: a column ends too early"}
	}
	return &InputError{File: name, Msg: "damaged", Err: bare(err)}
}

// parquetRead is a Parquet file being read.
type parquetRead struct {
	feed     *feed
	run      *fileRun
	meta     *pqformat.FileMetaData
	r        io.ReaderAt
	ctx      context.Context
	progress func(int64)
	size     int64
	told     int64 // bytes that progress was told of
	counted  int64 // rows

	columns     []parquetColumn
	fields      fieldSet // that the file has columns for
	indifferent bool     // all rows are of one arm, whatever they say
	// careful says that all rows are read with care: what they say of their
	// request is not all there is to know.
	careful bool
	// summed says that rows are counted by sums, for which their time, arm,
	// latency, cost and flags are enough.
	summed bool
	slices []parquetSlice
	next   atomic.Int64 // the slice that nobody has taken yet

	// The turn to count rows goes round in the order of the slices.
	mu   sync.Mutex
	cond *sync.Cond
	turn int
	err  error // ends the reading
}

// all reads all slices.
func (p *parquetRead) all() error {
	p.cond = sync.NewCond(&p.mu)
	stop := context.AfterFunc(p.ctx, func() { p.fail(p.ctx.Err()) })
	defer stop()
	workers := make([]*parquetWorker, min(runtime.GOMAXPROCS(0), maxParquetWorkers, len(p.slices)))
	for i := range workers {
		workers[i] = newParquetWorker(p) // they look at what is known before any counts
	}
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(w.run)
	}
	wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.tell(p.size)
	}
	return p.err
}

// fail ends the reading.
func (p *parquetRead) fail(err error) {
	p.mu.Lock()
	if p.err == nil {
		p.err = err
	}
	p.mu.Unlock()
	p.cond.Broadcast()
}

// await waits for the turn of a slice, if wait is set, and reports whether it
// is. go on is false once the reading has ended.
func (p *parquetRead) await(slice int, wait bool) (mine, goOn bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for wait && p.turn != slice && p.err == nil {
		p.cond.Wait()
	}
	return p.turn == slice, p.err == nil
}

// done gives the turn to the next slice.
func (p *parquetRead) done() {
	p.mu.Lock()
	p.turn++
	p.mu.Unlock()
	p.cond.Broadcast()
}

// commit counts a batch. The caller has the turn.
func (p *parquetRead) commit(b *parquetBatch) error {
	rows := b.lines
	var err error
	if len(b.stretches) > 0 {
		err = p.feed.commitStretches(p.run, b)
	} else {
		err = p.feed.commit(p.run, &b.batch)
	}
	if err != nil {
		return err
	}
	p.counted += rows
	if total := p.meta.NumRows; total > 0 {
		p.tell(int64(float64(p.size) * min(float64(p.counted)/float64(total), 1)))
	}
	return nil
}

// tell says how many bytes of the file are behind: as many as the share of its
// rows, since most of them need no reading.
func (p *parquetRead) tell(bytes int64) {
	if p.progress != nil && bytes > p.told {
		p.progress(bytes - p.told)
		p.told = bytes
	}
}

// parquetWorker reads slices.
type parquetWorker struct {
	*parquetRead
	fill  parquetFill
	queue []*parquetBatch // filled, and waiting for their turn
	free  []*parquetBatch
}

// maxQueue is how many batches a worker fills before it waits for its turn: a
// row group of the usual 122,880 rows.
const maxQueue = 16

func newParquetWorker(p *parquetRead) *parquetWorker {
	return &parquetWorker{parquetRead: p, fill: newParquetFill(p)}
}

func (w *parquetWorker) run() {
	defer w.fill.close()
	for {
		at := int(w.next.Add(1)) - 1
		if at >= len(w.slices) || !w.slice(at) {
			return
		}
	}
}

// slice reads a slice and counts its rows. It returns false when the reading
// has ended.
func (w *parquetWorker) slice(at int) bool {
	s := &w.slices[at]
	err := caught(w.parquetRead.run.src.name, func() error { return w.fill.open(s) })
	for left := s.rows; left > 0 && err == nil; {
		b := w.batch()
		err = caught(w.parquetRead.run.src.name, func() error { return w.fill.next(b, left) })
		if err != nil {
			break
		}
		left -= b.lines
		w.queue = append(w.queue, b)
		mine, goOn := w.await(at, len(w.queue) == maxQueue)
		if !goOn {
			return false
		}
		if mine && !w.flush() {
			return false
		}
	}
	if _, goOn := w.await(at, true); !goOn || !w.flush() {
		return false
	}
	if err != nil {
		w.fail(err)
		return false
	}
	w.done()
	return true
}

// batch is one to be filled.
func (w *parquetWorker) batch() *parquetBatch {
	n := len(w.free)
	if n == 0 {
		return &parquetBatch{}
	}
	b := w.free[n-1]
	w.free = w.free[:n-1]
	return b
}

// flush counts the batches that waited.
func (w *parquetWorker) flush() bool {
	for _, b := range w.queue {
		if err := w.commit(b); err != nil {
			w.fail(err)
			return false
		}
		w.free = append(w.free, b)
	}
	w.queue = w.queue[:0]
	return true
}
