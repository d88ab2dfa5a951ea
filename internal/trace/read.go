package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/canaryctl/canaryctl/internal/release"
)

// keptBadLines is how many bad lines are kept for the user to see.
const keptBadLines = 10

// ReadFiles reads the files as one feed, whatever the order of their rows, and
// returns its windows. "-" among the paths is stdin. progress, if not nil, is
// called with the number of bytes of every read, before decompression, by several
// goroutines at once.
//
// With an error it also returns what was gathered so far, for messages. Errors
// are a [*NoTimeError], [*NoCountsError], [*NoSpanError], [*NoRowsError],
// [*BadLinesError], [*MappingError], [*InputError], or the context's.
func ReadFiles(ctx context.Context, paths []string, stdin io.Reader, opt Options, progress func(bytes int64)) (*Data, error) {
	f := newFeed(opt)
	defer f.close()
	if err := sameFile(paths, stdin); err != nil {
		return f.data, err
	}
	rest, err := f.takeScores(ctx, paths, progress)
	if err != nil {
		return f.data, err
	}
	for _, path := range rest {
		if err := f.readFile(ctx, path, stdin, progress); err != nil {
			return f.data, err
		}
	}
	f.scores.note(f)
	return f.data, f.finish(paths)
}

// sameFile refuses a file named twice: its rows would count twice.
func sameFile(paths []string, stdin io.Reader) error {
	var infos []os.FileInfo
	for i, path := range paths {
		var info os.FileInfo
		var err error
		if path == stdinName {
			if slices.Contains(paths[:i], path) {
				return &InputError{File: path, Msg: "standard input is named twice"}
			}
			f, ok := stdin.(*os.File)
			if !ok {
				continue
			}
			info, err = f.Stat()
		} else {
			info, err = os.Stat(path)
		}
		if err != nil {
			return &InputError{File: path, Err: bare(err)}
		}
		for _, before := range infos {
			if os.SameFile(before, info) {
				return &InputError{File: path, Msg: "is named twice"}
			}
		}
		infos = append(infos, info)
	}
	return nil
}

// feed is all that is being read.
type feed struct {
	opt     Options
	data    *Data
	records *counter
	windows *windowSet

	pointless *NoCountsError  // rows with times and nothing else
	empty     []string        // files without anything in them
	foreign   int64           // rows with bytes that are not UTF-8
	twice     int64           // rows in which a field stood more than once
	snapshots *snapshots      // of /metrics; nil without any
	kept      []*os.File      // files that may have to be read again
	ctx       context.Context // of the file that is being read
	scores    *scoreBook      // of Langfuse; nil without any
	others    []string        // what was in files of some shape in which no request was
}

func newFeed(opt Options) *feed {
	opt = opt.withDefaults()
	f := &feed{opt: opt, data: &Data{}}
	f.records = newCounter(&f.opt, f.data)
	f.records.repay = f.repay
	f.windows = newWindowSet(&f.opt, f.data)
	return f
}

// fileRun is one file being read.
type fileRun struct {
	name    string
	src     *source
	reader  rowReader
	careful carefulReader // of rows that were cut out of the file; nil where it is read row by row
	plan    *plan
	clock   clock
	latest  int64
	rows    int64
	line    int64 // lines of the batches counted so far
	row     row
}

func (f *feed) readFile(ctx context.Context, path string, stdin io.Reader, progress func(int64)) error {
	f.ctx = ctx
	src, err := open(ctx, path, stdin, progress)
	if err != nil {
		return err
	}
	defer func() { f.leave(src) }()
	run := &fileRun{name: path, src: src, latest: -maxTime}
	format, err := src.detect(&f.opt)
	if errors.Is(err, io.EOF) {
		f.empty = append(f.empty, path)
		return nil
	}
	if err != nil {
		return err
	}
	switch format {
	case formatExposition:
		return f.takeSnapshot(src, path)
	case formatParquet:
		return f.drainParquet(ctx, src, run, progress)
	}
	run.reader = f.readerOf(format, src, run)
	if err = f.drainAny(run, progress); err == nil {
		err = ctx.Err() // a reading that was stopped is not one that came to its end
	}
	if err != nil {
		return err
	}
	f.noteFile(run)
	return nil
}

// drainAny reads a file to its end in the fastest way that its format has.
func (f *feed) drainAny(run *fileRun, progress func(int64)) error {
	if f.opt.byRow {
		return f.drain(run.src, run)
	}
	switch reader := run.reader.(type) {
	case *jsonlReader:
		return f.drainLines(run, reader, progress)
	case *csvReader:
		reader.lines, run.careful = nil, reader
		return f.drainBlocks(run, run.src.blocks(true, progress), func() blockParser { return &csvParser{} })
	}
	return f.drain(run.src, run)
}

// drainParquet reads a Parquet file, which is read from its end and so must be
// one.
func (f *feed) drainParquet(ctx context.Context, src *source, run *fileRun, progress func(int64)) error {
	if src.file == nil || src.text != src.raw || src.start != 0 {
		return &InputError{File: src.name, Msg: "Parquet from a pipe or compressed as a whole, which cannot be read from its end", Advice: "name the file itself; its columns are compressed already"}
	}
	info, err := src.file.Stat()
	if err != nil {
		return src.fail(err)
	}
	if err := f.readParquet(ctx, src, src.file, info.Size(), run, progress); err != nil {
		return fatal(src, 0, err)
	}
	f.noteFile(run)
	return nil
}

// drainLines reads a file of JSON lines.
func (f *feed) drainLines(run *fileRun, j *jsonlReader, progress func(int64)) error {
	j.lines, run.careful = nil, j
	err := f.drainBlocks(run, run.src.blocks(false, progress), func() blockParser { return &jsonParser{} })
	if err == nil && j.noTime != nil {
		return j.noTime
	}
	return err
}

// readerOf makes the reader of a format. Each asks for its plan once it has
// seen the file's names.
func (f *feed) readerOf(format format, src *source, run *fileRun) rowReader {
	use := func(p *plan) *plan {
		f.usePlan(run, p)
		return p
	}
	bind := func(names []string) (*plan, error) {
		p, err := f.opt.bind(run.name, names)
		if err != nil {
			return nil, err
		}
		return use(p), nil
	}
	bindPoints := func(names []string) (*plan, error) {
		p, err := f.opt.bindPoints(names)
		if err != nil {
			return nil, err
		}
		return use(p), nil
	}
	switch format {
	case formatShaped:
		return f.newShaped(src, use)
	case formatJSONL:
		return &jsonlReader{lines: newLineReader(src.text), objectReader: objectReader{bind: bind}}
	case formatArray:
		return newArrayReader(src.text, bind)
	case formatAnswer:
		note := func(format string, args ...any) { f.note(run.name+": "+format, args...) }
		return &answerReader{r: src.text, stem: stem(src.name), bind: bindPoints, note: note}
	}
	return &csvReader{lines: newLineReader(src.text), bind: bind}
}

// drain reads a file to its end, a row at a time.
func (f *feed) drain(src *source, run *fileRun) error {
	var r row
	for {
		err := run.reader.next(&r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err := f.settle(run, &r, err); err != nil {
			return fatal(src, r.line, err)
		}
	}
}

// settle counts a row that was read with err. It returns an error that ends the
// reading.
func (f *feed) settle(run *fileRun, r *row, err error) error {
	if err == nil {
		err = f.take(run, r)
	}
	if err == nil {
		run.rows++
		f.data.Rows++
		f.data.Good++
		return nil
	}
	bad, ok := errors.AsType[*badRow](err)
	if !ok {
		return err
	}
	run.rows++
	f.bad(run, r, bad)
	return nil
}

// fatal names the file and line of an error that ends the reading.
func fatal(src *source, line int64, err error) error {
	if e, ok := errors.AsType[*InputError](err); ok && e.File == "" {
		e.File, e.Line = src.name, line
	}
	if _, ok := errors.AsType[Hinter](err); ok {
		return err
	}
	return src.fail(err)
}

// bad counts a row that cannot be read.
func (f *feed) bad(run *fileRun, r *row, why *badRow) {
	n := max(r.lines, 1)
	f.data.Rows += n
	f.data.Bad += n
	reason := why.reason
	if n > 1 {
		reason = fmt.Sprintf("%s (%d lines in one cell)", reason, n)
	}
	line := BadLine{File: run.name, Line: r.line, Message: reason}
	if len(f.data.BadLines) < keptBadLines || cutOff(run.reader) {
		f.data.BadLines = append(f.data.BadLines, line)
	}
}

// take reads a row by its file's plan and counts it.
func (f *feed) take(run *fileRun, r *row) error {
	p := run.plan
	p.see(r)
	if p.adjust != nil {
		p.adjust(r)
	}
	t, err := f.opt.timeOf(p, &run.clock, r)
	if err != nil {
		return err
	}
	switch {
	case f.opt.whole && p.kind == Windows:
		return &InputError{Msg: notWhole, Advice: "map the time as that of requests (--map ts=COLUMN) if that is what the rows are"}
	case p.kind == Unknown:
		f.countless(run, t)
		return nil
	}
	if err := f.settleKind(p.kind); err != nil {
		return err
	}
	if p.kind == Records {
		err = f.records.add(p, r, t)
	} else {
		err = f.windows.add(p, r, t, run.name)
	}
	if err != nil {
		return err
	}
	f.taken(run, t, !utf8.Valid(r.raw), r.twice)
	return nil
}

// settleKind refuses rows of another kind than those before them.
func (f *feed) settleKind(k Kind) error {
	if f.data.Kind == Unknown {
		f.data.Kind = k
	}
	if f.data.Kind != k {
		return &InputError{Msg: fmt.Sprintf("holds %s, the files before it %s: one feed is one or the other", k, f.data.Kind)}
	}
	return nil
}

// taken counts what is odd about a row that was taken.
func (f *feed) taken(run *fileRun, t int64, foreign, twice bool) {
	if t < run.latest && !f.opt.whole {
		f.data.OutOfOrder++
	}
	if foreign {
		f.foreign++
	}
	if twice {
		f.twice++
	}
	run.latest = max(run.latest, t)
}

// countless remembers a row that has nothing but a time.
func (f *feed) countless(run *fileRun, t int64) {
	at := instantOf(t)
	if f.pointless == nil {
		f.pointless = &NoCountsError{File: run.name, First: at, Last: at, Columns: run.plan.unused, Time: run.plan.timeColumn()}
	}
	e := f.pointless
	e.Rows++
	if at.Before(e.First) {
		e.First = at
	}
	if at.After(e.Last) {
		e.Last = at
	}
	f.data.First, f.data.Last = e.First, e.Last
}

func instantOf(ns int64) time.Time { return time.Unix(0, ns).UTC() }

func (f *feed) note(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if !slices.Contains(f.data.Notes, s) {
		f.data.Notes = append(f.data.Notes, s)
	}
}

// noteCount says how many of something there were, if any.
func (f *feed) noteCount(n int64, one, many string) {
	switch {
	case n == 1:
		f.note("%s", one)
	case n > 1:
		f.note(many, n)
	}
}

// noteFile says what was guessed about a file that has been read.
func (f *feed) noteFile(run *fileRun) {
	if run.rows == 0 && !f.takeOthers(run) {
		f.empty = append(f.empty, run.name)
	}
	if run.plan == nil {
		return
	}
	for _, n := range run.plan.notes {
		f.note("%s", n)
	}
	for _, c := range run.plan.missed {
		f.note("%s: no row has %s, to which %s is mapped", run.name, c.path, c.field)
	}
	if c := run.clock; c.guessed {
		f.note("%s: times are numbers, taken as %s, a guess from their size; --epoch %s would settle it", run.name, c.unit, c.unit)
	}
	if run.clock.zone {
		f.note("%s: times without a zone are read as UTC", run.name)
	}
	if s, ok := run.reader.(*shapedReader); ok {
		f.note("%s", s.note(run.name))
	}
	if c, ok := csvUnder(run.reader); ok && c.open {
		f.note("%s: the last line has no newline; if the file was cut off, its last figure may be too short", run.name)
	}
}

// finish checks the budget and turns what was gathered into windows.
func (f *feed) finish(paths []string) error {
	d := f.data
	if f.snapshots != nil {
		return f.finishSnapshots(paths)
	}
	if f.pointless != nil {
		return f.pointless
	}
	if err := f.windows.settlePoints(f); err != nil {
		return err
	}
	if f.opt.MaxBad.Compare(d.Bad, d.Rows) > 0 {
		return &BadLinesError{Bad: d.Bad, Rows: d.Rows, Limit: percent(f.opt.MaxBad), Lines: d.BadLines}
	}
	if d.Rows == 0 {
		return &NoRowsError{Files: paths, Why: f.whyNoRows()}
	}
	var err error
	if d.Kind == Records {
		f.records.finish(f)
	} else {
		err = f.windows.finish(f)
	}
	if err != nil {
		return err
	}
	f.summarise()
	if len(d.Windows) == 0 {
		return &NoRowsError{Files: paths, Why: fmt.Sprintf("none of its %d rows makes a window", d.Rows)}
	}
	return nil
}

func percent(r release.Ratio) string { return fmt.Sprintf("%.4g %%", r.Float64()*100) }

// summarise fills in what can be read off the windows, and says what became of
// odd rows.
func (f *feed) summarise() {
	d := f.data
	sortWindows(d.Windows)
	for i := range d.Windows {
		w := &d.Windows[i]
		d.Supplied |= w.Known
		if !slices.Contains(d.Arms, w.Arm) {
			d.Arms = append(d.Arms, w.Arm)
		}
		if i == 0 {
			d.Span = w.Span
		} else if d.Span != w.Span {
			d.Span = 0
		}
	}
	slices.Sort(d.Arms)
	for _, name := range f.empty {
		f.note("%s: no rows in it", name)
	}
	for _, c := range []struct {
		n         int64
		one, many string
	}{
		{d.Duplicates, "1 duplicate row dropped", "%d duplicate rows dropped"},
		{d.Identical, "1 row is identical to another and was counted", "%d rows are identical to others and were counted"},
		{d.OutOfOrder, "1 row out of order, put where it belongs", "%d rows out of order, put where they belong"},
		{d.NonFinite, "1 figure is NaN or infinite: missing, not zero", "%d figures are NaN or infinite: missing, not zero"},
		{d.NoData, "1 window row has no total: no data there, not zero", "%d window rows have no total: no data there, not zero"},
	} {
		f.noteCount(c.n, c.one, c.many)
	}
	if d.Identical > 0 {
		f.note("identical rows without user_id or conversation_id may be different requests")
	}
	if d.Kind == Records {
		f.records.arms.notes(f)
	} else {
		f.windows.arms.notes(f)
	}
	f.noteCount(f.twice, "1 row has a key twice: the last one counts", "%d rows have a key twice: the last one counts")
	f.noteCount(f.foreign, "1 row has bytes that are not UTF-8: read as U+FFFD", "%d rows have bytes that are not UTF-8: read as U+FFFD")
	if d.Kind == Records && f.opt.InputSpan > 0 {
		f.note("--input-span is not used: it is the length of windows, and these rows are requests")
	}
	if d.Kind == Windows && f.opt.SlowMS > 0 {
		f.note("slow requests are not counted: these rows are windows, which carry their own count in slow or none")
	}
	if d.LeftOut > 0 {
		others := list(slices.Concat(f.records.arms.others, f.windows.arms.others))
		f.noteCount(d.LeftOut, "1 row of a version that no --arm names was left out ("+others+")", "%d rows of versions that no --arm names were left out ("+strings.ReplaceAll(others, "%", "%%")+")")
	}
}
