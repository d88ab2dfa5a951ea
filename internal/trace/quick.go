package trace

import (
	"bytes"
	"math"
	"math/bits"
	"unicode/utf8"
)

// quickRow is what a row says as far as it says it in a usual way: numbers,
// flags and times are read where they stand, and what cannot be read at once
// makes the whole row odd.
type quickRow struct {
	has       fieldSet // fields that stand in the row
	null      fieldSet // of those, the ones without a value
	flags     fieldSet // flags that are true
	nonFinite fieldSet // numbers that are NaN or infinite
	twice     bool     // a field stood in the row more than once
	t         int64
	nums      [numRead]number
	names     [numRead][]byte
	raw       []byte // the row as it stands in the file
}

// reset empties the row. What stands in nums and names means nothing without a
// bit in has.
func (q *quickRow) reset() {
	q.has, q.null, q.flags, q.nonFinite, q.twice = 0, 0, 0, 0, false
}

// present reports whether a field has a value.
func (q *quickRow) present(f Field) bool { return (q.has &^ q.null).has(f) }

// meet notes that a field stands in the row: the last one counts.
func (q *quickRow) meet(f Field) {
	if bit := fieldSet(1) << f; q.has&bit == 0 {
		q.has |= bit
	} else {
		q.twice = true
		q.null, q.flags, q.nonFinite = q.null&^bit, q.flags&^bit, q.nonFinite&^bit
	}
}

// class is how the cells of a field are read.
type class uint8

const (
	instantClass class = iota
	numberClass
	flagClass
	nameClass
)

// classes are those of all fields.
var classes = func() (out [numRead]class) {
	for f := range numRead {
		switch fieldTable[f].value {
		case instantValue:
			out[f] = instantClass
		case textValue:
			out[f] = nameClass
		case flagValue:
			out[f] = flagClass
		default:
			out[f] = numberClass
		}
	}
	return out
}()

// put takes a cell's text, which is not decoded any more and has no blanks
// around it. It reports false for one that must be read with care.
func (w *rowTaker) put(f Field, text []byte) bool {
	q := &w.q
	q.meet(f)
	if len(text) == 0 {
		q.null.add(f)
		return true
	}
	switch classes[f] {
	case numberClass:
		return q.putNumber(f, text)
	case flagClass:
		return q.putFlag(f, text)
	case nameClass:
		q.names[f] = text
	case instantClass:
		return w.putInstant(text)
	}
	return true
}

func (q *quickRow) putNumber(f Field, text []byte) bool {
	n, fig := parseNumber(text)
	switch fig {
	case finite:
		q.nums[f], q.names[f] = n, text
		return true
	case missing:
		q.null.add(f)
		return true
	case nonFinite:
		q.nonFinite.add(f)
		return true
	}
	return false
}

func (q *quickRow) putFlag(f Field, text []byte) bool {
	value, known, ok := flagOf(text)
	switch {
	case value:
		q.flags.add(f)
	case ok && !known:
		q.null.add(f)
	}
	return ok
}

func (w *rowTaker) putInstant(text []byte) bool {
	w.clock.zone = false // of a time that stands twice the last one counts
	t, err := w.clock.instant(text)
	if err != nil || w.clock.unit != w.rc.clock.unit || w.clock.guessed != w.rc.clock.guessed {
		w.clock = w.rc.clock
		return false
	}
	w.q.t = t
	return true
}

// rowTaker makes records of rows that were read quickly.
type rowTaker struct {
	rc     *recipe
	clock  clock
	q      quickRow
	apart  int  // blocks that are read without summing up, since it led nowhere before
	sums   bool // of this block
	failed bool // it cannot be summed up
}

// use makes the taker go by another recipe.
func (w *rowTaker) use(rc *recipe) { w.rc, w.clock = rc, rc.clock }

// begin makes the taker ready for the next row.
func (w *rowTaker) begin() {
	w.q.reset()
	w.clock.zone = false
}

// take puts the row into out. It reports false where it must be read with care.
// foreign says that it may have bytes that are not UTF-8.
func (w *rowTaker) take(out *batch, line int, foreign bool) bool {
	if w.sums {
		w.failed = !w.sum(out, line, foreign)
		return !w.failed
	}
	n := len(out.records)
	out.records = append(out.records, record{line: int32(line)})
	rec := &out.records[n]
	if !w.fill(rec, out) {
		out.records = out.records[:n]
		return false
	}
	rec.foreign = foreign && w.q.foreign()
	return true
}

// maxApart is for how many blocks summing up is given up where it led nowhere.
const maxApart = 64

// begins decides how a block is read into out.
func (w *rowTaker) begins(b *block, out *batch) {
	w.failed = false
	w.sums = w.rc != nil && w.rc.summed && w.apart == 0
	w.apart = max(w.apart-1, 0)
	if w.sums && w.rc.owing && b.origin != nil {
		out.origin, out.rc, out.begin = b.origin, w.rc, b.at+int64(b.from)
	}
}

// again reports whether a block must be read again, without summing up: a row
// was odd, or not later than the one before.
func (w *rowTaker) again(out *batch) bool {
	if !w.sums || !w.failed && len(out.odd) == 0 {
		return false
	}
	w.giveUp()
	return true
}

// giveUp makes this block and the next ones be read without summing up.
func (w *rowTaker) giveUp() { w.apart, w.sums, w.failed = maxApart, false, false }

// fill is [record.read] for a quick row, with all else that belongs to a
// record. It reports false where the row must be read with care.
func (w *rowTaker) fill(rec *record, out *batch) (ok bool) {
	q, rc := &w.q, w.rc
	switch p := rc.plan; {
	case !p.timeless && q.present(p.time):
		rec.t = q.t
	case rc.opt.whole:
		rec.t = noTime
	default:
		return false
	}
	rec.solvedSeen = q.has.has(FieldSolved)
	rec.judged, rec.solved = q.present(FieldSolved), q.flags.has(FieldSolved)
	// One by one, since a loop over flagFields takes as long as all the rest.
	there := q.has &^ q.null
	rec.flagged = [...]bool{there.has(FieldViolation), there.has(FieldTransfer), there.has(FieldStreamAborted)}
	rec.flags = [...]bool{q.flags.has(FieldViolation), q.flags.has(FieldTransfer), q.flags.has(FieldStreamAborted)}
	if !rec.fillCost(q, rc) || !rec.fillLatency(q, rc) || q.has&streamFields != 0 && !w.fillStream(rec, out) {
		return false
	}
	if rec.label, ok = w.label(out); !ok {
		return false
	}
	rec.twice = q.twice
	if rc.digested {
		rec.digest = digestOf(rc.seed, q.raw)
		rec.named = q.present(FieldUserID) || q.present(FieldConversationID)
	}
	out.zone = out.zone || w.clock.zone
	if rc.missing {
		out.seen |= q.has
	}
	return true
}

// finite reports whether a field holds a number, and counts one that is none.
func (rec *record) finite(q *quickRow, f Field) bool {
	if q.nonFinite.has(f) {
		rec.nonFinite++
		return false
	}
	return q.present(f)
}

func (rec *record) fillCost(q *quickRow, rc *recipe) bool {
	if !rec.finite(q, FieldCostUSD) {
		return true
	}
	cost, ok := q.cost(rc)
	rec.cost, rec.priced = cost, true
	return ok
}

// cost is what the request cost, in nano-USD. It reports false for a figure that
// must be read with care.
func (q *quickRow) cost(rc *recipe) (int64, bool) {
	n := &q.nums[FieldCostUSD]
	if e := n.exp + rc.cost; e >= 0 && e < len(powersOf10) && !n.neg && !n.cut {
		if hi, v := bits.Mul64(n.mant, powersOf10[e]); hi == 0 && v <= maxCost {
			return int64(v), true
		}
	}
	v, err := nanoDollars(*n, rc.plan.unit[FieldCostUSD], nil)
	return v, err == nil
}

func (rec *record) fillLatency(q *quickRow, rc *recipe) (ok bool) {
	if !rec.finite(q, FieldLatency) {
		return true
	}
	rec.latency, ok = q.measure(FieldLatency, rc.latency)
	rec.timed = true
	return ok
}

// measure is a number times 10^pow. It reports false for one that must be read
// with care. A number whose mantissa does not fit a float64 came through
// putNumber, and has its text.
func (q *quickRow) measure(f Field, pow int) (float64, bool) {
	n := &q.nums[f]
	if n.negative() {
		return 0, false
	}
	if v, ok := n.exact(pow); ok {
		return v, true
	}
	return n.float(q.names[f], pow)
}

// streamFields are the fields of streams, and the status.
const streamFields fieldSet = 1<<FieldStatus | 1<<FieldTTFT | 1<<FieldITL | 1<<FieldStreamAborted | 1<<FieldOutputTokens

// fillStream is [record.readStream] for a quick row.
func (w *rowTaker) fillStream(rec *record, out *batch) (ok bool) {
	q, rc := &w.q, w.rc
	switch {
	case q.present(FieldStatus):
		var known bool
		if rec.status, known = statusOutcome(q.names[FieldStatus]); !known {
			if rec.unknown, ok = out.unknownOf(q.names[FieldStatus]); !ok {
				return false
			}
		}
	case q.has.has(FieldStatus) && rc.opt.NullStatusOK:
		rec.status = statusOK
	}
	rec.hungUp = rec.status == statusGone
	if rec.ttft, rec.ttftKnown, ok = rec.elapsedIn(q, FieldTTFT, rc.ttft); !ok {
		return false
	}
	itl, known, ok := rec.elapsedIn(q, FieldITL, rc.itl)
	if !ok || itl > maxITL {
		return false
	}
	if known {
		rec.itl, rec.itlKnown = nanoseconds(itl), true
	}
	output := int64(0)
	if rec.finite(q, FieldOutputTokens) {
		if output, ok = q.nums[FieldOutputTokens].whole(); !ok || output < 0 || output > maxCount {
			return false
		}
	}
	rec.streamed = rec.ttftKnown || rec.itlKnown || rec.flagged[abortFlag]
	rec.deriveITL(output)
	return true
}

// elapsedIn is [record.elapsed] for a quick row.
func (rec *record) elapsedIn(q *quickRow, f Field, pow int) (v float64, known, ok bool) {
	if !rec.finite(q, f) {
		return 0, false, true
	}
	if v, ok = q.measure(f, pow); ok && v == 0 {
		rec.zeros++
	}
	return v, v > 0, ok
}

// label returns which of out's labels the row has, and puts it there if it is a
// new one.
func (w *rowTaker) label(out *batch) (uint8, bool) {
	q := &w.q
	if len(w.rc.labelled) == 0 && !q.present(FieldScene) && len(out.labels) == 1 && !out.labels[0].of {
		return 0, true // all rows are of one arm
	}
	var l label
	for i, f := range w.rc.labelled {
		if q.present(f) {
			l.names[i] = q.names[f]
		}
	}
	if l.of = q.present(FieldScene); l.of {
		l.scene = q.names[FieldScene]
	}
	for i := len(out.labels) - 1; i >= 0; i-- {
		if out.labels[i].same(&l) {
			return uint8(i), true
		}
	}
	if len(out.labels) > math.MaxUint8 {
		return 0, false
	}
	out.labels = append(out.labels, l)
	return uint8(len(out.labels) - 1), true
}

// same reports whether two labels say the same.
func (l *label) same(o *label) bool {
	for i := range l.names {
		if !bytes.Equal(l.names[i], o.names[i]) {
			return false
		}
	}
	return l.of == o.of && bytes.Equal(l.scene, o.scene)
}

// unknownOf returns which of the batch's unknown statuses one is, from 1, and
// puts it there if it is a new one.
func (b *batch) unknownOf(status []byte) (uint8, bool) {
	for i, s := range b.unknown {
		if bytes.Equal(s, status) {
			return uint8(i + 1), true
		}
	}
	if len(b.unknown) == math.MaxUint8 {
		return 0, false
	}
	b.unknown = append(b.unknown, status)
	return uint8(len(b.unknown)), true
}

// foreign reports whether the row has bytes that are not UTF-8.
func (q *quickRow) foreign() bool { return !utf8.Valid(q.raw) }
