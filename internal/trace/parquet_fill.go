package trace

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
)

// batchRows is how many rows are read into one batch: what is known of them fits
// the cache of a core. Tests lower it.
var batchRows = 8192

// carefulRows is the same where most rows are odd, which take a kilobyte each.
const carefulRows = 512

// parquetBatch is a batch with the odd rows that it points to, or with sums of
// its rows in place of their records.
type parquetBatch struct {
	batch
	rows []row
	text []byte // of their cells

	times     []int64
	ascending bool
	stretches []stretch // none where there are records
	latencies []float64 // of the stretches, one after the other
}

// parquetFill fills batches with the rows of a slice.
type parquetFill struct {
	*parquetRead
	lanes  []lane
	row    int64 // of the file, the first of the next batch
	time   timeReader
	places []int32
	steps  []int32 // 0, 1, 2 and so on
	odd    int     // rows of the batch before that were odd

	// What each row of the batch says:
	marks     []mark
	latencies []float64
	costs     []int64
	tokens    []int64
	nonFinite []uint8
	keys      []uint64 // of its arm and scene, as numbers of words
	said      bool     // some column says of these

	labels map[uint64]uint8
}

// mark is what a row says by yes or no, in bits.
type mark uint16

// Each flag has a bit for yes and one behind it for being said.
const (
	markSolved mark = 1 << iota
	markJudged
	markViolation
	_
	markTransfer
	_
	markAbort
	_
	markPriced
	markTimed
	markHungUp
	markOdd
)

// lane is a column, and what is made of its values.
type lane struct {
	cursor
	measured converted[measured]
	counted  converted[counted]
	words    wordsOf
}

// converted are values turned into figures: those of a dictionary once.
type converted[T any] struct {
	dictionary       parquet.Dictionary
	entries, scratch []T
}

// of returns the figures of a piece, of which value from is the first.
func (c *converted[T]) of(p *piece, values int, convert func(dst []T, from, n int) []T) []T {
	if p.index == nil {
		c.scratch = convert(c.scratch[:0], p.value, values)
		return c.scratch
	}
	if p.dictionary != c.dictionary {
		c.dictionary, c.entries = p.dictionary, convert(c.entries[:0], 0, p.cells.n)
	}
	return c.entries
}

func newParquetFill(p *parquetRead) parquetFill {
	f := parquetFill{parquetRead: p, lanes: make([]lane, len(p.columns)), time: timeReader{clock: p.run.clock}, labels: make(map[uint64]uint8)}
	for i := range p.columns {
		f.lanes[i].column = &p.columns[i]
		f.lanes[i].words.table = newWordTable()
	}
	return f
}

// open starts a slice.
func (f *parquetFill) open(s *parquetSlice) error {
	f.row = s.first
	for i := range f.lanes {
		if err := f.lanes[i].open(f.r, s, i); err != nil {
			return err
		}
	}
	return nil
}

func (f *parquetFill) close() {
	for i := range f.lanes {
		f.lanes[i].close()
	}
}

// next fills a batch with the next rows, of which so many are left.
func (f *parquetFill) next(b *parquetBatch, left int64) error {
	if err := f.ctx.Err(); err != nil {
		return err
	}
	n := batchRows
	if f.careful || f.odd > carefulRows {
		n = min(n, carefulRows)
	}
	n = int(min(left, int64(n)))
	f.start(b, n)
	for i := range f.lanes {
		l := &f.lanes[i]
		pieces, err := l.take(n)
		if err != nil {
			return err
		}
		if f.careful {
			continue
		}
		for j := range pieces {
			f.read(l, &pieces[j], b)
		}
	}
	b.zone = f.time.clock.zone
	f.finish(b)
	f.row += int64(n)
	return nil
}

// start empties a batch for so many rows.
func (f *parquetFill) start(b *parquetBatch, n int) {
	b.reset()
	b.rows, b.text, b.stretches = b.rows[:0], b.text[:0], b.stretches[:0]
	b.lines, b.seen = int64(n), f.fields
	f.time.clock.zone, f.said = false, false
	f.marks, f.nonFinite = zeros(f.marks, n), zeros(f.nonFinite, n)
	f.latencies, f.costs, f.tokens, f.keys = zeros(f.latencies, n), zeros(f.costs, n), zeros(f.tokens, n), zeros(f.keys, n)
	b.times = slices.Grow(b.times[:0], n)[:n]
	if f.run.plan.timeless {
		for i := range b.times {
			b.times[i] = noTime
		}
	}
	if !f.summed {
		b.records = zeros(b.records, n)
	}
}

func zeros[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// each calls f with the rows of a piece that are not null, from the first of
// those asked for, and where their values are.
func (p *piece) each(f func(row, value int)) {
	value := p.value
	for i := range p.n {
		if p.defs != nil && p.defs[p.row+i] != p.level {
			continue
		}
		if p.index == nil {
			f(p.first+i, value)
		} else {
			f(p.first+i, int(p.index[value]))
		}
		value++
	}
}

// placesOf returns for each row of a piece where its value is among those that
// were made of the piece, below 0 for a null, and how many values there are.
func (f *parquetFill) placesOf(p *piece) (places []int32, values int) {
	switch {
	case p.defs == nil && p.index != nil:
		return p.index[p.value : p.value+p.n], p.n
	case p.defs == nil:
		for len(f.steps) < p.n {
			f.steps = append(f.steps, int32(len(f.steps)))
		}
		return f.steps[:p.n], p.n
	}
	f.places = slices.Grow(f.places[:0], p.n)[:p.n]
	at := int32(0)
	for i, level := range p.defs[p.row : p.row+p.n] {
		f.places[i] = at
		if level == p.level {
			at++
		} else {
			f.places[i] = -1
		}
	}
	if p.index != nil {
		index := p.index[p.value : p.value+int(at)]
		for i, place := range f.places {
			if place >= 0 {
				f.places[i] = index[place]
			}
		}
	}
	return f.places, int(at)
}

// read takes what a piece of a column says of its rows.
func (f *parquetFill) read(l *lane, p *piece, b *parquetBatch) {
	places, values := f.placesOf(p)
	field := l.column.field
	if field == f.run.plan.time {
		f.readTimes(l, b, p, places, values)
		return
	}
	switch field {
	case FieldCostUSD:
		f.readCosts(l, p, places, values)
	case FieldLatency:
		f.readLatencies(p, places, l.measures(p, values, millis(f.run.plan.unit[field])))
	case FieldTTFT, FieldITL:
		f.readStreamed(field, b, p, places, l.measures(p, values, millis(f.run.plan.unit[field])))
	case FieldOutputTokens:
		f.readTokens(p, places, l.counts(p, values))
	case FieldSolved:
		f.readFlags(l, 0, p, places, values)
	case FieldViolation:
		f.readFlags(l, 2, p, places, values)
	case FieldTransfer:
		f.readFlags(l, 4, p, places, values)
	case FieldStreamAborted:
		f.readFlags(l, 6, p, places, values)
	case FieldStatus:
		f.readStatuses(l, b, p, places, values)
	default:
		f.readNames(l, p, places, values)
	}
}

func (l *lane) counts(p *piece, values int) []counted {
	return l.counted.of(p, values, func(dst []counted, from, n int) []counted { return p.cells.counts(dst, from, n) })
}

func (l *lane) measures(p *piece, values, pow int) []measured {
	return l.measured.of(p, values, func(dst []measured, from, n int) []measured { return p.cells.measures(dst, from, n, pow) })
}

func (f *parquetFill) readTimes(l *lane, b *parquetBatch, p *piece, places []int32, values int) {
	times := l.counted.of(p, values, func(dst []counted, from, n int) []counted { return f.time.times(dst, &p.cells, from, n) })
	marks, ts := f.marks[p.first:p.first+p.n], b.times[p.first:p.first+p.n]
	for i, place := range places {
		switch {
		case place >= 0 && times[place].is == isFigure:
			ts[i] = times[place].v
		case place < 0 && f.feed.opt.whole:
			ts[i] = noTime
		default:
			marks[i] |= markOdd
		}
	}
}

func (f *parquetFill) readCosts(l *lane, p *piece, places []int32, values int) {
	unit := f.run.plan.unit[FieldCostUSD]
	costs := l.counted.of(p, values, func(dst []counted, from, n int) []counted { return p.cells.costs(dst, from, n, unit) })
	marks, out := f.marks[p.first:p.first+p.n], f.costs[p.first:p.first+p.n]
	for i, place := range places {
		if place < 0 {
			continue
		}
		switch c := &costs[place]; c.is {
		case isFigure:
			out[i] = c.v
			marks[i] |= markPriced
		case isNoNumber:
			f.nonFinite[p.first+i]++
		case isOdd:
			marks[i] |= markOdd
		}
	}
}

func (f *parquetFill) readLatencies(p *piece, places []int32, measures []measured) {
	marks, out := f.marks[p.first:p.first+p.n], f.latencies[p.first:p.first+p.n]
	for i, place := range places {
		if place < 0 {
			continue
		}
		switch m := &measures[place]; m.is {
		case isFigure:
			out[i] = m.v
			marks[i] |= markTimed
		case isNoNumber:
			f.nonFinite[p.first+i]++
		case isOdd:
			marks[i] |= markOdd
		}
	}
}

// readStreamed reads times of streams, of which 0 is none.
func (f *parquetFill) readStreamed(field Field, b *parquetBatch, p *piece, places []int32, measures []measured) {
	for i, place := range places {
		if place < 0 {
			continue
		}
		rec := &b.records[p.first+i]
		m := &measures[place]
		switch {
		case m.is == isOdd || field == FieldITL && m.v > maxITL:
			f.marks[p.first+i] |= markOdd
		case m.is == isNoNumber:
			f.nonFinite[p.first+i]++
		case m.is == isNothing:
		case m.v == 0:
			rec.zeros++
		case field == FieldTTFT:
			rec.ttft, rec.ttftKnown = m.v, true
		default:
			rec.itl, rec.itlKnown = nanoseconds(m.v), true
		}
	}
}

func (f *parquetFill) readTokens(p *piece, places []int32, counts []counted) {
	for i, place := range places {
		if place < 0 {
			continue
		}
		switch c := &counts[place]; c.is {
		case isFigure:
			f.tokens[p.first+i] = c.v
		case isNoNumber:
			f.nonFinite[p.first+i]++
		case isOdd:
			f.marks[p.first+i] |= markOdd
		}
	}
}

// readFlags reads what is true or false, or a word or number for that, into the
// marks from a bit on.
func (f *parquetFill) readFlags(l *lane, bit int, p *piece, places []int32, values int) {
	marks := f.marks[p.first : p.first+p.n]
	if l.column.form.kind == formBool && p.index == nil {
		bits, first := p.cells.bits, p.value
		for i, place := range places {
			if place >= 0 {
				at := first + int(place)
				marks[i] |= mark(2|bits[at>>3]>>(at&7)&1) << bit
			}
		}
		return
	}
	ids, from := l.words.of(p, values)
	for i, place := range places {
		if place < 0 {
			continue
		}
		id := l.words.at(ids, place, from, p)
		if id == oddWord {
			marks[i] |= markOdd
			continue
		}
		code := l.words.table.means[id].flag
		switch {
		case code&flagHungUp != 0 && 1<<bit == markAbort:
			marks[i] |= 3<<bit | markHungUp
		case code&flagOdd != 0:
			marks[i] |= markOdd
		default:
			marks[i] |= mark(code&(flagTrue|flagKnown)) << bit
		}
	}
}

func (f *parquetFill) readStatuses(l *lane, b *parquetBatch, p *piece, places []int32, values int) {
	ids, from := l.words.of(p, values)
	for i, place := range places {
		rec := &b.records[p.first+i]
		id := noWord
		if place >= 0 {
			id = l.words.at(ids, place, from, p)
		}
		switch id {
		case noWord:
			if f.feed.opt.NullStatusOK {
				rec.status = statusOK
			}
			continue
		case oddWord:
			f.marks[p.first+i] |= markOdd
			continue
		}
		m := &l.words.table.means[id]
		rec.status = m.outcome
		rec.hungUp = rec.hungUp || m.outcome == statusGone
		if m.strange {
			rec.strange = true
			if rec.unknown = b.unknownNumber(l.words.table.words[id]); rec.unknown == 0 {
				f.marks[p.first+i] |= markOdd
			}
		}
	}
}

// unknownNumber is the number of a status in the batch, 0 for one too many.
func (b *batch) unknownNumber(word []byte) uint8 {
	at := slices.IndexFunc(b.unknown, func(w []byte) bool { return bytes.Equal(w, word) })
	if at < 0 && len(b.unknown) < math.MaxUint8 {
		at = len(b.unknown)
		b.unknown = append(b.unknown, word)
	}
	return uint8(at + 1)
}

// readNames reads what rows say of their arm and scene.
func (f *parquetFill) readNames(l *lane, p *piece, places []int32, values int) {
	f.said = true
	shift := nameShift(l.column.field)
	keys := f.keys[p.first : p.first+p.n]
	ids, from := l.words.of(p, values)
	for i, place := range places {
		if place < 0 {
			continue
		}
		id := l.words.at(ids, place, from, p)
		if id == oddWord {
			f.marks[p.first+i] |= markOdd
			continue
		}
		keys[i] |= uint64(id) << shift
	}
}

// nameShift is where in a key the number of a field's word is.
func nameShift(field Field) int {
	if i := slices.Index(labelFields[:], field); i >= 0 {
		return 16 * i
	}
	return 16 * len(labelFields)
}

// finish turns what was read into sums of rows that go together, or into their
// records.
func (f *parquetFill) finish(b *parquetBatch) {
	if f.careful {
		for i := range f.marks {
			f.marks[i] = markOdd
		}
	}
	all := mark(0)
	for _, m := range f.marks {
		all |= m
	}
	clear(f.labels)
	if f.summed && all&markOdd == 0 && f.sum(b) {
		f.odd = 0
		return
	}
	f.record(b)
	f.takeOdd(b)
}

// record makes the records.
func (f *parquetFill) record(b *parquetBatch) {
	b.labels = b.labels[:0]
	clear(f.labels)
	if f.summed {
		b.records = zeros(b.records, len(f.marks))
	}
	solved := f.fields.has(FieldSolved)
	f.odd = 0
	for i, m := range f.marks {
		rec := &b.records[i]
		rec.line = int32(i)
		var ok bool
		if rec.label, ok = f.label(b, f.keys[i]); !ok || m&markOdd != 0 {
			rec.odd = true
			f.odd++
			continue
		}
		rec.t, rec.cost, rec.latency, rec.nonFinite = b.times[i], f.costs[i], f.latencies[i], f.nonFinite[i]
		rec.priced, rec.timed = m&markPriced != 0, m&markTimed != 0
		rec.solved, rec.judged, rec.solvedSeen = m&markSolved != 0, m&markJudged != 0, solved
		for k := range flagFields {
			two := m >> (2 * (k + 1))
			rec.flags[k], rec.flagged[k] = two&1 != 0, two&2 != 0
		}
		rec.hungUp = rec.hungUp || m&markHungUp != 0
		rec.streamed = rec.ttftKnown || rec.itlKnown || rec.flagged[abortFlag]
		rec.deriveITL(f.tokens[i])
	}
}

// label returns the number of a row's label, or false for one too many.
func (f *parquetFill) label(b *parquetBatch, key uint64) (uint8, bool) {
	n, ok := f.labels[key]
	switch {
	case ok:
	case len(b.labels) > math.MaxUint8:
		return 0, false
	default:
		n = uint8(len(b.labels))
		f.labels[key] = n
		b.labels = append(b.labels, f.labelOf(key))
	}
	return n, true
}

func (f *parquetFill) labelOf(key uint64) (l label) {
	for i := range f.lanes {
		lane := &f.lanes[i]
		field := lane.column.field
		at := slices.Index(labelFields[:], field)
		if at < 0 && field != FieldScene {
			continue
		}
		word := lane.words.table.words[uint16(key>>nameShift(field))]
		if at >= 0 {
			l.names[at] = word
		} else if word != nil {
			l.scene, l.of = word, true
		}
	}
	return l
}

// takeOdd makes rows of the records that are odd, for the careful reader.
func (f *parquetFill) takeOdd(b *parquetBatch) {
	if f.odd == 0 {
		return
	}
	b.rows = slices.Grow(b.rows, f.odd)[:f.odd]
	n := 0
	for i := range b.records {
		if !b.records[i].odd {
			continue
		}
		r := &b.rows[n]
		r.reset()
		r.raw = b.keep(func(dst []byte) []byte { return f.nameRow(dst, i) })
		b.odd = append(b.odd, oddRow{line: int64(i), row: r})
		n++
	}
	for i := range f.lanes {
		b.takeCells(&f.lanes[i])
	}
}

// nameRow writes something that only one row has, which stands for it where
// rows are compared.
func (f *parquetFill) nameRow(dst []byte, i int) []byte {
	dst = append(append(dst, f.run.name...), ':')
	return strconv.AppendInt(dst, f.row+int64(i)+1, 10)
}

// keep appends to the batch's texts and returns what was appended.
func (b *parquetBatch) keep(write func(dst []byte) []byte) []byte {
	before := len(b.text)
	b.text = write(b.text)
	return b.text[before:len(b.text):len(b.text)]
}

// takeCells fills in the cells of a column in the batch's odd rows.
func (b *parquetBatch) takeCells(l *lane) {
	field, k := l.column.field, 0
	for i := range l.pieces {
		p := &l.pieces[i]
		p.each(func(row, value int) {
			for ; k < len(b.odd) && b.odd[k].line < int64(row); k++ {
				b.odd[k].row.cells[field] = cell{kind: null}
			}
			if k < len(b.odd) && b.odd[k].line == int64(row) {
				b.odd[k].row.take(field, b.keep(func(dst []byte) []byte { return p.cells.append(dst, value) }))
				k++
			}
		})
	}
	for ; k < len(b.odd); k++ {
		b.odd[k].row.cells[field] = cell{kind: null}
	}
}

// take fills in a cell. Bytes that are not UTF-8 make the row a foreign one.
func (r *row) take(f Field, text []byte) {
	if !utf8.Valid(text) {
		r.raw = append(r.raw[:len(r.raw):len(r.raw)], 0xff)
	}
	r.cells[f] = scalarCell(validText(bytes.TrimSpace(text)))
}
