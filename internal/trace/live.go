package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Live takes the rows of files that grow, a piece at a time, and holds the
// windows that they make: those that start at or after a time that moves on.
// It reads rows by the same rules as [ReadFiles]. What it holds grows with the
// windows it was not told to forget, never with what went before.
//
//	live := trace.NewLive(trace.Records, opt)
//	file, at, err := live.Open("requests.jsonl", head)
//	n, err := file.Feed(rest, false)
//	windows := live.Windows(until)
//
// Records of windows that were handed out are too late; rows of windows are
// not, they may bring more labels.
type Live struct {
	feed  *feed
	kind  Kind
	piece bytes.Reader
	text  *bufio.Reader

	born, since, until int64 // windows before born were never wanted, those before since are forgotten, before until handed out
	users              map[tallyKey]*served
	rows               map[windowKey]*windowRow

	tally LiveCounts
	said  map[string]bool // notes given before
}

// LiveCounts says what became of rows since it was last asked.
type LiveCounts struct {
	Rows, Bad  int64
	Late       int64 // records of windows handed out before
	Contrary   int64 // windows that were there already with other figures
	Duplicates int64
	NonFinite  int64
	BadLines   []string // the first three
	LeftOut    int64    // rows of other versions
	OtherArms  []string // some of those versions
	// OtherScenes are rows of other scenes than the one asked for, Sceneless
	// those that name none.
	OtherScenes, Sceneless int64
	// Strange are statuses that count as errors because nothing says what they
	// are: all that were met so far, the first dozen of them.
	Strange []string
	// Approximate are the percentiles of the windows handed out last that are
	// within 0.8 % of the exact one, because --max-memory was too little.
	Approximate int64
}

// served are the users of one arm in one window.
type served struct {
	users     digestSet
	anonymous bool // some record names none
}

// LiveFile is one file that grows.
type LiveFile struct {
	live  *Live
	run   *fileRun
	lines liveLines
}

// NewLive returns a Live for records or windows. Rows of arms other than those
// that opt names, else stable and canary, are left out.
func NewLive(kind Kind, opt Options) *Live {
	if len(opt.Arms) == 0 {
		opt.Arms = map[string]release.Arm{string(release.Stable): release.Stable, string(release.Canary): release.Canary}
	}
	return &Live{
		feed: newFeed(opt), kind: kind, text: bufio.NewReaderSize(nil, bufferSize),
		born: -maxTime, since: -maxTime, until: -maxTime,
		users: make(map[tallyKey]*served), rows: make(map[windowKey]*windowRow), said: make(map[string]bool),
	}
}

// Open starts a file by its head: its first lines, of which at least the first
// must be complete. at is where its rows start. io.EOF says that the head holds
// nothing but blank space.
func (l *Live) Open(name string, head []byte) (file *LiveFile, at int, err error) {
	src, run := l.over(name, head)
	format, err := src.detect(&l.feed.opt)
	switch {
	case err != nil:
		return nil, 0, err
	case format == formatAnswer:
		return nil, 0, &InputError{File: name, Msg: "an answer of Prometheus is no file that grows", Advice: "name the server under source.prometheus, or write windows"}
	case format == formatExposition:
		return nil, 0, &InputError{File: name, Msg: "a snapshot of /metrics is no file that grows", Advice: "let a Prometheus server scrape it and name that under source.prometheus"}
	case format == formatParquet:
		return nil, 0, &InputError{File: name, Msg: "Parquet is no file that grows", Advice: "write JSON lines or CSV, or windows"}
	case format == formatArray, format == formatShaped && !src.shape.growing():
		return nil, 0, ErrWhole
	}
	run.reader = l.feed.readerOf(format, src, run)
	if c, ok := csvUnder(run.reader); ok {
		if err := c.readHeader(); err != nil {
			return nil, 0, fatal(src, 0, err)
		}
	}
	return &LiveFile{live: l, run: run}, l.consumed(head), nil
}

// ErrWhole is returned for a file that can only be read as a whole: a JSON
// array. See [Live.Whole].
var ErrWhole = errors.New("a JSON array is read as a whole")

// Whole reads a file that is one JSON array, from its start to its end. It may
// be read again when it has changed.
func (l *Live) Whole(name string, r io.Reader) error {
	run := &fileRun{name: name, latest: -maxTime}
	src := &source{name: name, text: bufio.NewReaderSize(r, bufferSize)}
	format, err := src.detect(&l.feed.opt)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	run.reader = l.feed.readerOf(format, src, run)
	file := &LiveFile{live: l, run: run}
	var r1 row
	for {
		switch done, err := file.step(&r1, 0); {
		case err != nil:
			return err
		case done:
			return nil
		}
	}
}

// over makes a source of text that lies in memory.
func (l *Live) over(name string, text []byte) (*source, *fileRun) {
	l.piece.Reset(text)
	l.text.Reset(&l.piece)
	if bom, _ := l.text.Peek(3); bytes.Equal(bom, []byte("\xef\xbb\xbf")) {
		l.text.Discard(3) //nolint:errcheck // just peeked
	}
	return &source{name: name, text: l.text}, &fileRun{name: name, latest: -maxTime}
}

// consumed is how much of a piece has been read.
func (l *Live) consumed(piece []byte) int { return len(piece) - l.piece.Len() - l.text.Buffered() }

// Feed reads the rows in a piece of the file that consists of whole lines and
// starts at offset at, which is for messages. It returns how much of it was
// read: the rest is the start of a row that goes on, which happens in CSV alone
// and not where the piece is the file's last. After an error the row that
// caused it is not read.
func (f *LiveFile) Feed(piece []byte, at int64, last bool) (n int, err error) {
	if j, ok := f.run.reader.(*jsonlReader); ok {
		return f.feedLines(j, piece, at)
	}
	f.live.piece.Reset(piece)
	f.live.text.Reset(&f.live.piece)
	restart(f.run.reader)
	var r row
	for {
		n = f.live.consumed(piece)
		if !last && f.goesOn(piece[n:]) {
			return n, nil
		}
		switch done, err := f.step(&r, at+int64(n)); {
		case isNoTime(err):
			return 0, err // said at the end of rows that were all without a time
		case err != nil:
			return n, err
		case done:
			return f.live.consumed(piece), nil
		}
	}
}

func isNoTime(err error) bool {
	_, ok := errors.AsType[*NoTimeError](err)
	return ok
}

// goesOn reports whether a CSV record starts in text and does not end there: a
// quote in it is open, which takes an odd number of quotes in its first line.
func (f *LiveFile) goesOn(text []byte) bool {
	c, ok := csvUnder(f.run.reader)
	if !ok {
		return false
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	if bytes.Count(first, []byte{'"'})%2 == 0 {
		return false
	}
	probe := csvReader{lines: newLineReader(bufio.NewReader(bytes.NewReader(text))), header: c.header}
	return probe.record(&row{}) == error(errOpenQuote)
}

// step reads one row.
func (f *LiveFile) step(r *row, at int64) (done bool, err error) {
	err = f.run.reader.next(r)
	if err == nil {
		err = f.live.take(f.run, r)
	}
	return f.settle(r, at, err)
}

// settle counts a row that was read with err.
func (f *LiveFile) settle(r *row, at int64, err error) (done bool, _ error) {
	l := f.live
	switch bad, isBad := errors.AsType[*badRow](err); {
	case err == nil:
		l.tally.Rows++
		f.run.rows++
		return false, nil
	case errors.Is(err, io.EOF):
		return true, nil
	case isBad:
		n := max(r.lines, 1)
		l.tally.Rows += n
		l.tally.Bad += n
		if len(l.tally.BadLines) < 3 {
			l.tally.BadLines = append(l.tally.BadLines, fmt.Sprintf("%s: byte %d: %s", f.run.name, at, bad.reason))
		}
		return false, nil
	}
	if e, ok := errors.AsType[*NoTimeError](err); ok {
		e.File = f.run.name
		return true, e
	}
	return true, fatal(&source{name: f.run.name}, r.line, err)
}

// take counts a row.
func (l *Live) take(run *fileRun, r *row) error {
	p := run.plan
	p.see(r)
	c := r.cells[p.time]
	if !c.present() {
		return &badRow{"no " + p.timeColumn()}
	}
	t, err := run.clock.instant(c.text)
	switch {
	case err != nil:
		return err
	case p.kind == Unknown:
		return &NoCountsError{File: run.name, Rows: 1, First: instantOf(t), Last: instantOf(t), Columns: p.unused, Time: p.timeColumn()}
	case p.kind != l.kind:
		return &InputError{Msg: fmt.Sprintf("holds %s, not %s", p.kind, l.kind), Advice: "read it as source." + p.kind.String() + ", or say where the time is: map ts for records, t and total for windows"}
	case l.kind == Records:
		return l.takeRecord(p, r, t)
	}
	return l.takeWindow(p, r, t, run.name)
}

func (l *Live) takeRecord(p *plan, r *row, t int64) error {
	if !l.wants(t) {
		return nil
	}
	before := l.feed.data.leftOut()
	if err := l.feed.records.add(p, r, t); err != nil || l.feed.data.leftOut() != before {
		return err
	}
	user, err := r.text(FieldUserID)
	if err != nil {
		user = nil
	}
	l.serve(user)
	return nil
}

// wants reports whether a record that starts at t is counted.
func (l *Live) wants(t int64) bool {
	switch start := floorTo(t, l.feed.records.span); {
	case start < l.born:
		return false
	case start < max(l.since, l.until):
		l.tally.Late++
		return false
	}
	return true
}

// serve counts the user of the record that was counted last; without a name it
// may be anybody.
func (l *Live) serve(user []byte) {
	c := l.feed.records
	s := l.users[c.lastKey]
	if s == nil {
		s = &served{}
		l.users[c.lastKey] = s
	}
	if len(user) == 0 {
		s.anonymous = true
		return
	}
	s.users.add(digestOf(c.seed, user))
}

func (l *Live) takeWindow(p *plan, r *row, t int64, file string) error {
	s := l.feed.windows
	row := &windowRow{file: file, line: r.line}
	arm, err := s.arms.of(r)
	if err != nil {
		return err
	}
	if arm == leftOut {
		l.feed.data.LeftOut++
		return nil
	}
	row.w.T, row.w.Arm = instantOf(t), s.arms.arms[arm]
	if !s.scenes.takes(r) {
		return nil
	}
	if row.scene, err = s.sceneOf(r); err != nil {
		return err
	}
	odd, err := row.read(p, r, s)
	if err != nil {
		return err
	}
	if r.cells[FieldTotal].kind == absent {
		return &badRow{"no total"}
	}
	if err := row.settle(); err != nil {
		return err
	}
	if err := l.giveSpan(row); err != nil {
		return err
	}
	if t < l.since {
		return nil
	}
	l.tally.NonFinite += odd
	if !row.has(FieldTotal) {
		return nil // no data, which is no window
	}
	l.keep(windowKey{t, arm, row.scene}, row)
	return nil
}

// giveSpan gives a window the span asked for, and refuses another.
func (l *Live) giveSpan(row *windowRow) error {
	want := l.feed.opt.InputSpan
	switch {
	case row.w.Span == 0:
		row.w.Span = want
	case row.w.Span != want && row.bare:
		return &badRow{fmt.Sprintf("span %g has no unit; map it, as in span: \"span:s\"", row.w.Span.Seconds())}
	case row.w.Span != want:
		return &InputError{Msg: fmt.Sprintf("windows of %s, and the source's are %s long", FormatSpan(row.w.Span), FormatSpan(want)),
			Advice: fmt.Sprintf("set span_min: %g", row.w.Span.Minutes())}
	}
	return nil
}

// keep holds a window. Of the same window twice the first counts, unless the
// second has more labels.
func (l *Live) keep(key windowKey, row *windowRow) {
	old := l.rows[key]
	switch {
	case old == nil, row.w.Has(release.HasSolved) && (!old.w.Has(release.HasSolved) || row.w.Judged > old.w.Judged ||
		row.w.Judged == old.w.Judged && row.w.Solved > old.w.Solved):
		l.rows[key] = row
	case old.w == row.w && old.given == row.given:
		l.tally.Duplicates++
	case row.w.Judged >= old.w.Judged: // one with fewer labels is an older edition
		l.tally.Contrary++
	}
}

// Forget lets go of all windows that start before a time, and of rows for them
// that come later.
func (l *Live) Forget(before time.Time) {
	l.since = max(l.since, before.UnixNano())
	if l.born == -maxTime {
		l.born = l.since
	}
	c := l.feed.records
	for key, tl := range c.tallies {
		if key.t < l.since {
			c.latencies.remove(&tl.inSpeed)
			c.digests.remove(&tl.inSeen)
			c.values.drop(&tl.latency.values)
			if tl.streaming != nil {
				c.values.drop(&tl.streaming.ttft.values)
			}
			delete(c.tallies, key)
			delete(l.users, key)
		}
	}
	c.last = nil
	maps.DeleteFunc(l.rows, func(key windowKey, _ *windowRow) bool { return key.t < l.since })
}

// Windows hands out what it holds that starts before a time, by time, then arm.
// Users are known in those of records that all name one.
// Records that come for them afterwards are too late.
func (l *Live) Windows(until time.Time) []release.Window {
	l.until = max(l.until, until.UnixNano())
	if l.kind == Windows {
		return l.wholeWindows(until.UnixNano())
	}
	c, d := l.feed.records, l.feed.data
	d.Windows, c.rough, c.roughFirst = nil, 0, 0
	for key, tl := range c.tallies {
		if key.t >= until.UnixNano() || tl.total == 0 {
			continue
		}
		c.latencies.remove(&tl.inSpeed)
		c.digests.remove(&tl.inSeen)
		c.seal(tl, false)
		tl.digests = digestLog{}
		w := c.window(tl)
		if s := l.users[key]; !s.anonymous {
			w.Users, w.Known = s.users.len(), w.Known|release.HasUsers
		}
		d.Windows = append(d.Windows, w)
	}
	sortWindows(d.Windows)
	c.relateCosts()
	return d.Windows
}

// wholeWindows are the windows before a time, those of several scenes added up.
func (l *Live) wholeWindows(until int64) (out []release.Window) {
	keys := slices.DeleteFunc(slices.Collect(maps.Keys(l.rows)), func(key windowKey) bool { return key.t >= until })
	slices.SortFunc(keys, windowKey.compare)
	for len(keys) > 0 {
		n := 1
		for n < len(keys) && keys[n].t == keys[0].t && keys[n].arm == keys[0].arm {
			n++
		}
		parts := make([]*windowRow, n)
		for i, key := range keys[:n] {
			parts[i] = l.rows[key]
		}
		w := mergeRows(parts)
		w.T, w.Span, w.Arm = parts[0].w.T, parts[0].w.Span, parts[0].w.Arm
		out = append(out, w)
		keys = keys[n:]
	}
	sortWindows(out)
	relateMeans(out)
	return out
}

// Newest is the end of the newest window with requests that had ended by a
// time, whether it was handed out or not; zero: it holds none.
func (l *Live) Newest(now time.Time) time.Time {
	newest := time.Time{}
	see := func(end time.Time, total int64) {
		if total > 0 && !end.After(now) && end.After(newest) {
			newest = end
		}
	}
	for key, tl := range l.feed.records.tallies {
		see(instantOf(key.t+l.feed.records.span), tl.total)
	}
	for _, row := range l.rows {
		see(row.w.End(), row.w.Total)
	}
	return newest
}

// Users counts the different users of each arm in the windows before a time.
// An arm of which some record names no user is not among them.
func (l *Live) Users(until time.Time) map[release.Arm]int64 {
	sets := make(map[int]*served)
	for _, key := range slices.SortedFunc(maps.Keys(l.users), func(a, b tallyKey) int { return cmp.Compare(a.t, b.t) }) {
		if key.t >= until.UnixNano() {
			continue
		}
		all := sets[key.arm]
		if all == nil {
			all = &served{}
			sets[key.arm] = all
		}
		all.join(l.users[key])
	}
	var out map[release.Arm]int64
	for arm, s := range sets {
		if s.anonymous {
			continue
		}
		if out == nil {
			out = make(map[release.Arm]int64)
		}
		out[l.feed.records.arms.arms[arm]] = s.users.len()
	}
	return out
}

func (s *served) join(o *served) {
	s.anonymous = s.anonymous || o.anonymous
	for _, v := range o.users.slots {
		if v != 0 {
			s.users.add(v)
		}
	}
}

// Counts returns what was met since it was last asked.
func (l *Live) Counts() LiveCounts {
	out, d := l.tally, l.feed.data
	l.tally = LiveCounts{}
	out.Duplicates += d.Duplicates
	out.NonFinite += d.NonFinite
	out.LeftOut = d.LeftOut
	out.Approximate = l.feed.records.rough + l.feed.records.roughFirst
	out.OtherArms = slices.Concat(l.feed.records.arms.others, l.feed.windows.arms.others)
	out.OtherScenes, out.Sceneless, out.Strange = d.OtherScenes, d.Sceneless, slices.Clone(d.Strange)
	d.Duplicates, d.NonFinite, d.LeftOut, d.Identical, d.OtherScenes, d.Sceneless = 0, 0, 0, 0, 0, 0
	return out
}

// Notes says what was guessed about the file, each thing once for all files.
func (f *LiveFile) Notes() (notes []string) {
	const most = 1000 // files come and go for months; what they have in common is said once
	if f.run.plan == nil {
		return nil
	}
	all := slices.Clone(f.run.plan.notes)
	if s, ok := f.run.reader.(*shapedReader); ok {
		all = append(all, fmt.Sprintf("%s: read as %s", f.run.name, s.shape.name))
	}
	if f.run.clock.guessed {
		all = append(all, fmt.Sprintf("%s: times are numbers, taken as %s, a guess from their size", f.run.name, f.run.clock.unit))
	}
	if f.run.clock.zone {
		all = append(all, f.run.name+": times without a zone are read as UTC")
	}
	if f.run.rows >= 100 {
		for _, c := range f.run.plan.missed {
			all = append(all, fmt.Sprintf("%s: none of the first %d rows has %s, to which %s is mapped", f.run.name, f.run.rows, c.path, c.field))
		}
		f.run.plan.missed = nil
	}
	said := f.live.said
	for _, n := range all {
		_, what, _ := strings.Cut(n, ": ")
		if !said[what] && len(said) < most {
			said[what] = true
			notes = append(notes, n)
		}
	}
	return notes
}

// Time finds the time of the first row in text that has one, without counting
// it.
func (f *LiveFile) Time(text []byte) (time.Time, bool) {
	l := f.live
	l.piece.Reset(text)
	l.text.Reset(&l.piece)
	restart(f.run.reader)
	for r := (row{}); ; {
		err := f.run.reader.next(&r)
		if _, bad := errors.AsType[*badRow](err); bad {
			continue
		}
		if err != nil || f.run.plan == nil {
			return time.Time{}, false
		}
		if t, err := f.run.clock.instant(r.cells[f.run.plan.time].text); err == nil {
			return instantOf(t), true
		}
	}
}

// Packed reports whether a file that starts with head is compressed.
func Packed(head []byte) bool {
	return bytes.HasPrefix(head, []byte{0x1f, 0x8b}) || len(head) >= 4 && isZstd(head[:4])
}

// OpenText opens a file and undoes gzip and zstd. The errors of reading it are
// [*InputError]s.
func OpenText(ctx context.Context, path string) (io.ReadCloser, error) {
	src, err := open(ctx, path, nil, nil)
	if err != nil {
		return nil, err
	}
	return &textFile{src}, nil
}

type textFile struct{ src *source }

func (f *textFile) Read(p []byte) (int, error) {
	n, err := f.src.text.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = f.src.fail(err)
	}
	return n, err
}

func (f *textFile) Close() error {
	f.src.Close()
	return nil
}
