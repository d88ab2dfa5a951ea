package trace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// windowSet gathers window rows, tells duplicates from contradictions, and
// joins the figures of Prometheus answers.
type windowSet struct {
	opt  *Options
	data *Data
	arms *armNames
	rows []windowRow
	at   map[windowKey]int // where the row of a time, arm and scene is
	// The scenes of the rows, where none is asked for: rows of two of them
	// are parts of a whole.
	scenes     sceneNames
	sceneIndex map[string]int // 0 is none
	sceneless  int64
	far        int64         // counts that Prometheus extrapolated
	step       time.Duration // the smallest step between two rows of an arm, 0 where there is none
}

// windowKey is what only one row is of.
type windowKey struct {
	t          int64
	arm, scene int
}

func (k windowKey) compare(o windowKey) int {
	return cmp.Or(cmp.Compare(k.t, o.t), cmp.Compare(k.arm, o.arm), cmp.Compare(k.scene, o.scene))
}

// windowRow is a window and the line it came from.
type windowRow struct {
	w     release.Window
	scene int
	given uint64 // bit f: the row had a figure for field f
	point bool
	bare  bool // the span is a number without a unit, read as seconds
	file  string
	line  int64
}

func newWindowSet(opt *Options, data *Data) *windowSet {
	return &windowSet{opt: opt, data: data, arms: newWindowArms(opt), at: make(map[windowKey]int),
		scenes: sceneNames{want: opt.Scene, data: data}, sceneIndex: make(map[string]int)}
}

// add reads a row as the window that starts at t.
func (s *windowSet) add(p *plan, r *row, t int64, file string) error {
	row := windowRow{file: file, line: r.line, point: r.point}
	row.w.T = instantOf(t)
	arm, err := s.arms.of(r)
	if err != nil {
		return err
	}
	if arm == leftOut {
		s.data.LeftOut++
		return nil
	}
	row.w.Arm = s.arms.arms[arm]
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
	if !row.point {
		if r.cells[FieldTotal].kind == absent {
			return &badRow{"no total"}
		}
		if err := row.settle(); err != nil {
			return err
		}
	}
	s.data.NonFinite += odd
	if row.given&(1<<FieldTotal) == 0 && !row.point {
		s.data.NoData++
		return nil
	}
	return s.keep(row, windowKey{t, arm, row.scene})
}

// keep adds a row to the set, unless it is there already.
func (s *windowSet) keep(row windowRow, key windowKey) error {
	i, ok := s.at[key]
	if !ok {
		s.at[key] = len(s.rows)
		s.rows = append(s.rows, row)
		return nil
	}
	old := &s.rows[i]
	switch {
	case old.same(&row):
		s.data.Duplicates++
	case old.point && row.point && old.given&row.given == 0:
		old.join(&row)
	case s.opt.SumDuplicates && !row.point:
		s.rows = append(s.rows, row)
	default:
		return &InputError{
			Msg: fmt.Sprintf("%s of %s is there already, with other figures: %s:%d", row.w.T.Format(time.RFC3339Nano), row.w.Arm, old.file, old.line),
			Advice: "two sources of the same window contradict each other; leave one out, name the arm, " +
				"or add them up with --sum-duplicates if they are parts of a whole",
		}
	}
	return nil
}

// expect makes room for so many rows, which are a guess.
func (s *windowSet) expect(rows int) {
	if len(s.rows) == 0 || rows <= cap(s.rows) {
		return
	}
	s.rows = slices.Grow(s.rows, rows-len(s.rows))
	at := make(map[windowKey]int, rows)
	maps.Copy(at, s.at)
	s.at = at
}

// sceneOf is the number of a row's scene, 0 where one is asked for or none
// named.
func (s *windowSet) sceneOf(r *row) (int, error) {
	name := r.cells[FieldScene]
	switch {
	case s.opt.Scene != "":
		return 0, nil
	case name.kind != scalar:
		s.sceneless++
		return 0, nil
	}
	i, ok := s.sceneIndex[string(name.text)]
	if !ok {
		if len(s.sceneIndex) == maxScenes {
			return 0, &InputError{Msg: fmt.Sprintf("more than %d different scenes, %s among them", maxScenes, quote(name.text)), Advice: "is scene the column that it should be?"}
		}
		i = len(s.sceneIndex) + 1
		s.sceneIndex[string(name.text)] = i
	}
	return i, nil
}

// countCell and measureCell are places of a window's figures.
type countCell struct {
	f   Field
	dst *int64
}

type measureCell struct {
	f   Field
	dst *float64
}

func (row *windowRow) counts() [14]countCell {
	w := &row.w
	return [...]countCell{
		{FieldTotal, &w.Total}, {FieldJudged, &w.Judged}, {FieldSolved, &w.Solved},
		{FieldViolations, &w.Violations}, {FieldTransfers, &w.Transfers}, {FieldSlow, &w.Slow},
		{FieldTTFTOf, &w.TTFTOf}, {FieldTTFTSlow, &w.TTFTSlow}, {FieldITLOf, &w.ITLOf},
		{FieldStreams, &w.Streams}, {FieldAborted, &w.Aborted},
		{FieldStatusOf, &w.StatusOf}, {FieldErrors, &w.Errors}, {FieldServerErrors, &w.ServerErrors},
	}
}

func (row *windowRow) measures() [6]measureCell {
	w := &row.w
	return [...]measureCell{
		{FieldCost, &w.Cost}, {FieldCostMean, &w.CostMean}, {FieldP99, &w.P99MS},
		{FieldTTFTP99, &w.TTFTP99MS}, {FieldITL, &w.ITLMS}, {FieldKVCache, &w.KVCache},
	}
}

// same reports whether o says nothing that row does not say: the same window
// again, or a point that was joined already.
func (row *windowRow) same(o *windowRow) bool {
	if !row.point || !o.point {
		return row.w == o.w && row.given == o.given
	}
	if o.given == 0 || row.given&o.given != o.given {
		return false
	}
	old, again := row.counts(), o.counts()
	for i, c := range again {
		if o.has(c.f) && *c.dst != *old[i].dst {
			return false
		}
	}
	measured, again2 := row.measures(), o.measures()
	for i, c := range again2 {
		if o.has(c.f) && *c.dst != *measured[i].dst {
			return false
		}
	}
	return true
}

// read takes the row's figures. odd counts those that are not finite.
func (row *windowRow) read(p *plan, r *row, s *windowSet) (odd int64, err error) {
	if c := r.cells[FieldSpan]; c.present() {
		if row.w.Span, row.bare, err = readSpan(c, p.unit[FieldSpan]); err != nil {
			return 0, err
		}
	}
	for _, c := range row.counts() {
		var fig figure
		if row.point {
			*c.dst, fig, err = s.pointCount(r, c.f)
		} else {
			*c.dst, fig, err = r.count(c.f)
		}
		if err != nil {
			return 0, err
		}
		row.took(c.f, fig, &odd)
	}
	for _, c := range row.measures() {
		pow := p.unit[c.f].exp()
		if c.f.value() == latencyValue {
			pow = millis(p.unit[c.f])
		}
		var fig figure
		if *c.dst, fig, err = r.measure(c.f, pow); err != nil {
			return 0, err
		}
		if c.f == FieldKVCache && *c.dst > 1 {
			return 0, badField(c.f, "%s is above 1: it is a fraction, and 0.9 is 90 %%", quote(r.cells[c.f].text))
		}
		row.took(c.f, fig, &odd)
	}
	row.known()
	return odd, nil
}

func (row *windowRow) took(f Field, fig figure, odd *int64) {
	switch fig {
	case finite:
		row.given |= 1 << f
	case nonFinite:
		*odd++
	}
}

func (row *windowRow) has(f Field) bool { return row.given&(1<<f) != 0 }

// known sets the figures that the window carries.
func (row *windowRow) known() {
	for _, c := range [...]struct {
		f Field
		k release.Figures
	}{
		{FieldSolved, release.HasSolved}, {FieldViolations, release.HasViolations}, {FieldTransfers, release.HasTransfers},
		{FieldCost, release.HasCost}, {FieldCostMean, release.HasCostMean}, {FieldP99, release.HasP99},
		{FieldSlow, release.HasSlow},
		{FieldTTFTP99, release.HasTTFT}, {FieldTTFTSlow, release.HasTTFTSlow}, {FieldITL, release.HasITL},
		{FieldAborted, release.HasAborts}, {FieldErrors, release.HasErrors}, {FieldServerErrors, release.HasServerErrors},
		{FieldKVCache, release.HasKVCache},
	} {
		if row.has(c.f) {
			row.w.Known |= c.k
		}
	}
}

// settle fills in the denominators that are absent, such as judged, which is
// then total, and refuses counts that cannot be.
func (row *windowRow) settle() error {
	w := &row.w
	if !row.has(FieldTotal) {
		return nil
	}
	if row.has(FieldSolved) && !row.has(FieldJudged) {
		w.Judged = w.Total
	}
	if !row.has(FieldSolved) {
		w.Judged = 0
	}
	row.settleStreams()
	worst := part{FieldServerErrors, FieldStatusOf, w.ServerErrors, w.StatusOf}
	if row.has(FieldErrors) {
		worst.whole, worst.of = FieldErrors, w.Errors
	}
	for _, c := range [...]part{
		{FieldJudged, FieldTotal, w.Judged, w.Total},
		{FieldSolved, FieldJudged, w.Solved, w.Judged},
		{FieldSlow, FieldTotal, w.Slow, w.Total},
		{FieldStreams, FieldTotal, w.Streams, w.Total},
		{FieldAborted, FieldStreams, w.Aborted, w.Streams},
		{FieldTTFTOf, FieldTotal, w.TTFTOf, w.Total},
		{FieldTTFTSlow, FieldTTFTOf, w.TTFTSlow, w.TTFTOf},
		{FieldITLOf, FieldTotal, w.ITLOf, w.Total},
		{FieldStatusOf, FieldTotal, w.StatusOf, w.Total},
		{FieldErrors, FieldStatusOf, w.Errors, w.StatusOf},
		worst,
	} {
		if c.n > c.of {
			return badField(c.part, "%d is more than %s %d", c.n, c.whole, c.of)
		}
	}
	row.dropWholes()
	return nil
}

// part is a count that cannot be more than another.
type part struct {
	part, whole Field
	n, of       int64
}

// settleStreams fills in the denominators of streams and statuses: all streams
// where they are counted, else all requests.
func (row *windowRow) settleStreams() {
	w := &row.w
	if !row.has(FieldStreams) {
		w.Streams = w.Total
	}
	if !row.has(FieldTTFTOf) {
		w.TTFTOf = w.Streams
	}
	if !row.has(FieldITLOf) {
		w.ITLOf = w.Streams
	}
	if !row.has(FieldStatusOf) {
		w.StatusOf = w.Total
	}
}

// dropWholes takes away the denominators of figures that the window does not
// carry.
func (row *windowRow) dropWholes() {
	w := &row.w
	for _, c := range [...]struct {
		of   *int64
		need release.Figures
	}{
		{&w.Streams, release.HasAborts}, {&w.TTFTOf, release.HasTTFT | release.HasTTFTSlow},
		{&w.ITLOf, release.HasITL}, {&w.StatusOf, release.HasErrors | release.HasServerErrors},
	} {
		if w.Known&c.need == 0 {
			*c.of = 0
		}
	}
}

// readSpan reads the span of a window: 10m, or a number with a mapped unit. A
// bare number is read as seconds, and giveSpans holds it against the step
// between the windows.
func readSpan(c cell, u Unit) (span time.Duration, bare bool, err error) {
	n, fig := parseNumber(c.text)
	if fig == missing {
		return 0, false, nil
	}
	if fig == finite {
		if bare = u == NoUnit; bare {
			u = Seconds
		}
		ns, ok := n.floor(9 + u.exp())
		if !ok || ns <= 0 || ns > int64(maxSpan) {
			return 0, bare, badField(FieldSpan, "%s is no length of time", quote(c.text))
		}
		return time.Duration(ns), bare, nil
	}
	d, err := ParseSpan(string(c.text))
	if err != nil {
		return 0, false, &badRow{"span " + err.Error()}
	}
	return d, false, nil
}

// pointCount reads a count from a Prometheus value.
func (s *windowSet) pointCount(r *row, f Field) (int64, figure, error) {
	v, fig, err := r.measure(f, 0)
	if fig != finite || err != nil {
		return 0, fig, err
	}
	n, far, ok := pointCount(v)
	if !ok {
		return 0, fig, badField(f, "%s is too large for a count", quote(r.cells[f].text))
	}
	if far {
		s.far++
	}
	if f == FieldTotal && v > 0 && v < 1 {
		return 0, missing, nil // a trace of a request is no data
	}
	return n, fig, nil
}

// join adds the figures of another answer's point to a window.
func (row *windowRow) join(o *windowRow) {
	row.given |= o.given
	row.w.Known |= o.w.Known
	counts, measures := row.counts(), row.measures()
	for i, c := range o.counts() {
		*counts[i].dst += *c.dst // one of the two is 0
	}
	for i, c := range o.measures() {
		*measures[i].dst += *c.dst
	}
}

// settlePoints checks the windows that were joined from Prometheus answers,
// now that all their figures are there.
func (s *windowSet) settlePoints(f *feed) error {
	s.at = nil // no more rows are kept; a year of minutes is half a million of them
	s.sort()
	s.step = s.smallestStep() // before points without a figure are dropped
	kept := s.rows[:0]
	points := false
	for _, row := range s.rows {
		if !row.point {
			kept = append(kept, row)
			continue
		}
		points = true
		if !row.has(FieldTotal) {
			s.data.NoData++
			continue
		}
		if err := row.settle(); err != nil {
			f.data.Bad++
			f.data.Good--
			if len(f.data.BadLines) < keptBadLines {
				f.data.BadLines = append(f.data.BadLines, BadLine{row.file, row.line, err.Error()})
			}
			continue
		}
		kept = append(kept, row)
	}
	s.rows = kept
	if points {
		f.note("a Prometheus value at an instant stands for the span before it: windows start one span earlier")
	}
	f.noteCount(s.far, "1 count was not whole: Prometheus extrapolates; it was rounded", "%d counts were not whole: Prometheus extrapolates; they were rounded")
	return nil
}

// finish gives every window its span, refuses overlaps, and merges where other
// windows were asked for.
func (s *windowSet) finish(f *feed) error {
	if err := s.giveSpans(f); err != nil {
		return err
	}
	if err := s.checkOverlap(); err != nil {
		return err
	}
	d := s.data
	for i, row := range s.rows {
		if i == 0 || row.w.T.Before(d.First) {
			d.First = row.w.T
		}
		if i == 0 || row.w.End().After(d.Last) {
			d.Last = row.w.End()
		}
	}
	s.tellScenes(f)
	if s.opt.Span > 0 || s.opt.MergeArms || s.opt.SumDuplicates || s.severalScenes() {
		return s.merge()
	}
	d.Windows = slices.Grow(d.Windows, len(s.rows))
	for _, row := range s.rows {
		d.Windows = append(d.Windows, row.w)
	}
	relateMeans(d.Windows)
	return nil
}

// severalScenes reports whether windows of different scenes, or with and
// without one, stand for the same traffic together.
func (s *windowSet) severalScenes() bool {
	return len(s.sceneIndex) > 1 || len(s.sceneIndex) == 1 && s.sceneless > 0
}

func (s *windowSet) tellScenes(f *feed) {
	s.scenes.tell(f)
	if !s.severalScenes() {
		return
	}
	f.note("the windows of all scenes are added up: %s", list(slices.Sorted(maps.Keys(s.sceneIndex))))
	f.noteCount(s.sceneless, "1 row without a scene is added to them", "%d rows without a scene are added to them; are they not the sum already?")
}

// giveSpans gives rows without a span the one of --input-span. Without it,
// windows a minute apart are a minute long, and the points of Prometheus are
// one step apart; everything else is for the user to say.
func (s *windowSet) giveSpans(f *feed) error {
	step, span := s.step, s.opt.InputSpan
	said, bare := false, false
	if span > 0 && step > span && slices.ContainsFunc(s.rows, func(row windowRow) bool { return row.w.Span == 0 }) {
		f.note("the windows are at least %s apart, and --input-span says %s: there is a gap after each; is it right?", FormatSpan(step), FormatSpan(span))
	}
	for i := range s.rows {
		row := &s.rows[i]
		if row.bare {
			if row.w.Span != step {
				return &InputError{File: row.file, Line: row.line,
					Msg:    fmt.Sprintf("span %g has no unit, and the windows are not so many seconds apart", row.w.Span.Seconds()),
					Advice: "write it as 60s or 1m, or map it: --map span=COLUMN:s"}
			}
			if !bare {
				bare = true
				f.note("%s: spans are numbers, taken as seconds, since the windows are %s apart; --map span=COLUMN:s would settle it", row.file, FormatSpan(step))
			}
		}
		if row.w.Span == 0 {
			switch {
			case span > 0:
			case step > 0 && (row.point && step <= maxSpan || step == defaultSpan):
				span = step
			default:
				return &NoSpanError{File: row.file, Step: step}
			}
			if s.opt.InputSpan == 0 && !said {
				said = true
				f.note("%s: windows carry no span, taken as %s, the step between them; --input-span %s would settle it", row.file, FormatSpan(span), FormatSpan(span))
			}
			row.w.Span = span
		}
		if row.point {
			row.w.T = row.w.T.Add(-row.w.Span)
		}
	}
	return nil
}

func (s *windowSet) sort() {
	slices.SortStableFunc(s.rows, func(a, b windowRow) int {
		return cmp.Or(cmp.Compare(a.w.Arm, b.w.Arm), cmp.Compare(a.scene, b.scene), a.w.T.Compare(b.w.T))
	})
}

func (s *windowSet) smallestStep() (step time.Duration) {
	for i := 1; i < len(s.rows); i++ {
		a, b := &s.rows[i-1], &s.rows[i]
		if d := b.w.T.Sub(a.w.T); a.w.Arm == b.w.Arm && a.scene == b.scene && d > 0 && (step == 0 || d < step) {
			step = d
		}
	}
	return step
}

func (s *windowSet) checkOverlap() error {
	for i := 1; i < len(s.rows); i++ {
		a, b := &s.rows[i-1], &s.rows[i]
		if a.w.Arm != b.w.Arm || a.scene != b.scene || !b.w.T.Before(a.w.End()) || s.opt.SumDuplicates && a.w.T.Equal(b.w.T) {
			continue
		}
		return &InputError{File: b.file, Line: b.line,
			Msg: fmt.Sprintf("the window of %s at %s starts before the one at %s (%s:%d), %s long, ends",
				b.w.Arm, b.w.T.Format(time.RFC3339Nano), a.w.T.Format(time.RFC3339Nano), a.file, a.line, FormatSpan(a.w.Span)),
			Advice: "windows of one arm must not overlap; is --input-span right?"}
	}
	return nil
}

// relateMeans gives canary windows that carry no cost ratio the one of the two
// arms' mean costs, where both are there.
func relateMeans(windows []release.Window) {
	stable := make(map[windowSpan]float64)
	for i := range windows {
		if w := &windows[i]; w.Arm == release.Stable && w.Has(release.HasCostMean) {
			stable[spanOf(w)] = w.CostMean
		}
	}
	for i := range windows {
		w := &windows[i]
		base := stable[spanOf(w)]
		if w.Arm == release.Canary && w.Has(release.HasCostMean) && !w.Has(release.HasCost) && base > 0 {
			w.Cost = w.CostMean / base
			w.Known |= release.HasCost
		}
	}
}

type windowSpan struct {
	t    int64
	span time.Duration
}

func spanOf(w *release.Window) windowSpan { return windowSpan{w.T.UnixNano(), w.Span} }

// sortWindows puts windows in the order of [Data].
func sortWindows(windows []release.Window) {
	slices.SortFunc(windows, func(a, b release.Window) int { return cmp.Or(a.T.Compare(b.T), cmp.Compare(a.Arm, b.Arm)) })
}
