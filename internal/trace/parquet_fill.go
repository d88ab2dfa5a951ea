package trace

import (
	"bytes"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf8"
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
	sorted    bool // times are known not to fall
	ascending bool // they do not, as the sums found
}

// parquetFill fills batches with the rows of a slice.
type parquetFill struct {
	*parquetRead
	lanes  []lane
	room   pageRoom
	row    int64 // of the file, the first of the next batch
	time   timeReader
	places []int32
	steps  []int32 // 0, 1, 2 and so on
	odd    int     // rows of the batch before that were odd

	// What the rows of the batch say:
	yes, told [4]rowBits // flags that are true, and that are known
	priced    rowBits    // rows with a cost, and which it is; 0 for the others
	costs     []int64
	timed     rowBits // rows with a latency, and which it is
	latencies []float64
	hungUp    rowBits
	odds      rowBits
	tokens    []int64
	nonFinite []uint8 // figures that are none, and whether there are any
	none      bool
	keys      []uint64 // of arm and scene, as numbers of words, and whether any row says
	said      bool

	labels map[uint64]uint8
}

// flagPlace is the place of a field among the flags.
func flagPlace(f Field) int {
	switch f {
	case FieldViolation:
		return 1
	case FieldTransfer:
		return 2
	case FieldStreamAborted:
		return 3
	}
	return 0
}

// lane is a column, and what is made of its values.
type lane struct {
	cursor
	measured converted[measured]
	counted  converted[counted]
	prices   converted[price]
	words    wordsOf
}

// converted are values turned into figures: those of a dictionary once.
type converted[T any] struct {
	dictionary       int // its number in the column
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
		if err := f.lanes[i].open(f.r, &f.room, &s.starts[i]); err != nil {
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
	b.lines, b.seen, b.sorted = int64(n), f.fields, false
	f.time.clock.zone = false
	for i := range f.yes {
		f.yes[i], f.told[i] = f.yes[i].room(n), f.told[i].room(n)
	}
	f.priced, f.timed, f.hungUp, f.odds = f.priced.room(n), f.timed.room(n), f.hungUp.room(n), f.odds.room(n)
	f.latencies, f.costs = room(f.latencies, n), room(f.costs, n)
	if f.none || len(f.nonFinite) < n {
		f.nonFinite, f.none = zeros(f.nonFinite, n), false
	}
	if f.said || len(f.keys) < n {
		f.keys, f.said = zeros(f.keys, n), false
	}
	b.times = room(b.times, n)
	if f.run.plan.timeless {
		for i := range b.times {
			b.times[i] = noTime
		}
	}
	if !f.summed {
		b.records, f.tokens = zeros(b.records, n), zeros(f.tokens, n)
	}
}

// room is a slice of so many things that are to be set.
func room[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

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
	field := l.column.field
	if p.index == nil && l.column.form.kind == formBool && field.value() == flagValue {
		f.readBits(flagPlace(field), p)
		return
	}
	places, values := f.placesOf(p)
	if field == f.run.plan.time {
		f.readTimes(l, b, p, places, values)
		return
	}
	switch field {
	case FieldCostUSD:
		f.readCosts(l, p, places, values)
	case FieldLatency:
		f.readLatencies(l, p, places, values)
	case FieldTTFT, FieldITL:
		f.readStreamed(field, b, p, places, l.measures(p, values, millis(f.run.plan.unit[field])))
	case FieldOutputTokens:
		f.readTokens(p, places, l.counts(p, values))
	case FieldSolved, FieldViolation, FieldTransfer, FieldStreamAborted:
		f.readFlags(l, p, places, values)
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
	out := b.times[p.first : p.first+p.n]
	if p.dense() {
		if ascending, ok := f.time.stampsOf(out, &p.cells, p.value); ok {
			b.sorted = ascending && p.n == len(b.times)
			return
		}
	}
	times := l.counted.of(p, values, func(dst []counted, from, n int) []counted { return f.time.times(dst, &p.cells, from, n) })
	for i, place := range places {
		switch {
		case place >= 0 && times[place].is == isFigure:
			out[i] = times[place].v
		case place < 0 && f.feed.opt.whole:
			out[i] = noTime
		default:
			out[i] = 0
			f.odds.set(p.first + i)
		}
	}
}

// dense reports whether the values of a piece are those of its rows, one by one.
func (p *piece) dense() bool { return p.defs == nil && p.index == nil }

// miss notes a value that is no figure.
func (f *parquetFill) miss(row int, is verdict) {
	switch is {
	case isNoNumber:
		f.nonFinite[row]++
		f.none = true
	case isOdd:
		f.odds.set(row)
	}
}

func (f *parquetFill) readCosts(l *lane, p *piece, places []int32, values int) {
	unit := f.run.plan.unit[FieldCostUSD]
	costs := l.prices.of(p, values, func(dst []price, from, n int) []price { return p.cells.costs(dst, from, n, unit) })
	out := f.costs[p.first : p.first+p.n]
	f.priced.fill(p.first, p.first+p.n)
	for i, place := range places {
		if uint(place) < uint(len(costs)) && costs[place] >= 0 { // a null is below 0
			out[i] = int64(costs[place])
			continue
		}
		out[i] = 0
		f.priced.drop(p.first + i)
		if place >= 0 {
			f.miss(p.first+i, costs[place].verdict())
		}
	}
}

func (f *parquetFill) readLatencies(l *lane, p *piece, places []int32, values int) {
	pow := millis(f.run.plan.unit[FieldLatency])
	out := f.latencies[p.first : p.first+p.n]
	f.timed.fill(p.first, p.first+p.n)
	if p.dense() && pow == 0 && p.cells.form.kind == formDouble && copyPositive(out, p.cells.doubles[p.value:p.value+p.n]) {
		return
	}
	measures := l.measures(p, values, pow)
	for i, place := range places {
		if place >= 0 && measures[place].is == isFigure {
			out[i] = measures[place].v
			continue
		}
		out[i] = 0
		f.timed.drop(p.first + i)
		if place >= 0 {
			f.miss(p.first+i, measures[place].is)
		}
	}
}

// copyPositive copies values, or returns false where one is no figure above 0.
func copyPositive(dst, values []float64) bool {
	for i, v := range values[:len(dst)] {
		if !(v > 0 && v <= math.MaxFloat64) {
			return false
		}
		dst[i] = v
	}
	return true
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
		case m.is != isFigure:
			f.miss(p.first+i, m.is)
		case field == FieldITL && m.v > maxITL:
			f.odds.set(p.first + i)
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
		if c := &counts[place]; c.is == isFigure {
			f.tokens[p.first+i] = c.v
		} else {
			f.miss(p.first+i, c.is)
		}
	}
}

// readFlags reads what is true or false, or a word or number for that.
func (f *parquetFill) readFlags(l *lane, p *piece, places []int32, values int) {
	at := flagPlace(l.column.field)
	yes, told := f.yes[at], f.told[at]
	ids, from := l.words.of(p, values)
	for i, place := range places {
		if place < 0 {
			continue
		}
		row := p.first + i
		id := l.words.at(ids, place, from, p)
		if id == oddWord {
			f.odds.set(row)
			continue
		}
		switch code := l.words.table.means[id].flag; {
		case code&flagHungUp != 0 && l.column.field == FieldStreamAborted:
			yes.set(row)
			told.set(row)
			f.hungUp.set(row)
		case code&flagOdd != 0:
			f.odds.set(row)
		case code&flagKnown != 0:
			told.set(row)
			if code&flagTrue != 0 {
				yes.set(row)
			}
		}
	}
}

// readBits reads flags that are bits, without those of nulls between them.
func (f *parquetFill) readBits(at int, p *piece) {
	yes, told := f.yes[at], f.told[at]
	value := p.value
	for i := 0; i < p.n; {
		row := p.first + i
		n := min(p.n-i, 64-row&63) // rows in the same word
		known := ^uint64(0) >> (64 - n)
		if p.defs != nil {
			known = equalBytes(p.defs[p.row+i:p.row+i+n], p.level)
		}
		told[row>>6] |= known << (row & 63)
		yes[row>>6] |= deposit(wordAt(p.cells.bits, value), known) & known << (row & 63)
		value += bits.OnesCount64(known)
		i += n
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
			f.odds.set(p.first + i)
			continue
		}
		m := &l.words.table.means[id]
		rec.status = m.outcome
		rec.hungUp = rec.hungUp || m.outcome == statusGone
		if m.strange {
			rec.strange = true
			if rec.unknown = b.unknownNumber(l.words.table.words[id]); rec.unknown == 0 {
				f.odds.set(p.first + i)
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
			f.odds.set(p.first + i)
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
		f.odds.fill(0, len(b.times))
	}
	clear(f.labels)
	if f.summed && !f.odds.some() && f.sum(b) {
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
	if f.summed || f.careful {
		b.records, f.tokens = zeros(b.records, len(b.times)), zeros(f.tokens, len(b.times))
	}
	f.odd = 0
	for i := range b.records {
		rec := &b.records[i]
		rec.line = int32(i)
		var ok bool
		if rec.label, ok = f.label(b, f.keys[i]); !ok || f.odds.has(i) {
			rec.odd = true
			f.odd++
			continue
		}
		f.recordOne(rec, b.times[i], i)
	}
}

func (f *parquetFill) recordOne(rec *record, t int64, i int) {
	rec.t = t
	if rec.priced = f.priced.has(i); rec.priced {
		rec.cost = f.costs[i]
	}
	if rec.timed = f.timed.has(i); rec.timed {
		rec.latency = f.latencies[i]
	}
	rec.nonFinite = f.nonFinite[i]
	rec.solved, rec.judged, rec.solvedSeen = f.yes[0].has(i), f.told[0].has(i), f.fields.has(FieldSolved)
	for k := range flagFields {
		rec.flags[k], rec.flagged[k] = f.yes[k+1].has(i), f.told[k+1].has(i)
	}
	rec.hungUp = rec.hungUp || f.hungUp.has(i)
	rec.streamed = rec.ttftKnown || rec.itlKnown || rec.flagged[abortFlag]
	rec.deriveITL(f.tokens[i])
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
