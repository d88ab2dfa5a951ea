package trace

import "errors"

// batch is a run of rows of one file, in the order of the file, that were read
// and not counted yet. It is filled by one goroutine and counted by another.
type batch struct {
	records []record
	labels  []label  // what records say of their arm and scene, by record.label
	unknown [][]byte // statuses that are in no table, by record.unknown - 1
	odd     []oddRow // the records that are odd, in order
	lines   int64    // how many lines of the file it covers
	end     int64    // of CSV and sums: where in the file it ends

	// Rows in the order of time, each later than the one before, may be here as
	// sums in place of records.
	stretches []stretch
	latencies []float64 // of the stretches, one after the other
	digests   []uint64  // the same of the rows, unless they can be read again from origin
	origin    *origin
	rc        *recipe // by which they were read
	begin     int64   // where in the file they start, in which they end at end
	newest    int64   // time of the row that was added last
	foreign   int64   // rows with bytes that are not UTF-8
	twice     int64   // rows in which a field stood more than once

	seen fieldSet // fields of which some row had a value
	zone bool     // a time without a zone was met, and read as UTC
	err  error    // what ended the reading after these rows; nil if nothing
}

// reset empties the batch for another run of rows.
func (b *batch) reset() {
	*b = batch{records: b.records[:0], labels: b.labels[:0], unknown: b.unknown[:0], odd: b.odd[:0],
		stretches: b.stretches[:0], latencies: b.latencies[:0], digests: b.digests[:0]}
}

// fieldSet is a set of fields.
type fieldSet uint64

func (s *fieldSet) add(f Field)     { *s |= 1 << f }
func (s fieldSet) has(f Field) bool { return s&(1<<f) != 0 }

// labelFields are the fields that say which arm a row is of, in the order in
// which they count.
var labelFields = [...]Field{FieldArm, FieldVersion, FieldModel}

// label is what rows say of their arm and scene.
type label struct {
	names [len(labelFields)][]byte // empty where there is none
	scene []byte
	of    bool // scene was given

	// Set once the label is looked up:
	found    bool
	arm      int
	nameless bool   // the rows name no arm, and are of the arm all
	counter  *int64 // of the scene
}

// oddRow is a row that the fast readers leave to the careful one: a bad one, or
// one that changes what is known of the file.
type oddRow struct {
	text []byte // as it stands in the file
	line int64  // its first line, from 0, in the batch
	row  *row   // in place of text, in files that are none
	cut  bool   // it ends the file without a newline
	long bool   // it is longer than any line that is read, and text is a part of it
}

// commit counts a batch. Batches of a file must come in its order.
func (f *feed) commit(run *fileRun, b *batch) error {
	if err := f.commitSums(run, b); err != nil {
		return err
	}
	odd := 0
	for i := range b.records {
		rec := &b.records[i]
		if rec.odd {
			if err := f.settleOdd(run, &b.odd[odd]); err != nil {
				return err
			}
			odd++
			continue
		}
		if err := f.commitRecord(run, b, rec); err != nil {
			return fatal(run.src, run.line+int64(rec.line)+1, err)
		}
	}
	run.line += b.lines
	run.clock.zone = run.clock.zone || b.zone
	if run.plan != nil {
		run.plan.strike(b.seen)
	}
	return b.err
}

// commitRecord counts a record as [feed.take] does a row.
func (f *feed) commitRecord(run *fileRun, b *batch, rec *record) error {
	if err := f.countRecord(b, rec); err != nil {
		return err
	}
	run.rows++
	f.data.Rows++
	f.data.Good++
	f.taken(run, rec.t, rec.foreign, rec.twice)
	return nil
}

// countRecord counts a record as [counter.add] does a row.
func (f *feed) countRecord(b *batch, rec *record) error {
	c := f.records
	l := &b.labels[rec.label]
	if !l.found {
		if err := f.lookUp(l); err != nil {
			return err
		}
	}
	if l.nameless {
		c.arms.nameless++
	}
	switch {
	case l.arm == leftOut:
		f.data.LeftOut++
	case !l.of && !c.scenes.takesNameless(), l.of && !c.scenes.takesNamed(l.scene, l.counter):
	case rec.unknown > 0:
		c.count(rec, l.arm, b.unknown[rec.unknown-1])
	default:
		c.count(rec, l.arm, nil)
	}
	return nil
}

// lookUp finds what a label means.
func (f *feed) lookUp(l *label) (err error) {
	if err := f.settleKind(Records); err != nil {
		return err
	}
	c := f.records
	if c.arms.indifferent() {
		l.arm, err = c.arms.intern("")
	} else {
		l.arm, l.nameless, err = c.arms.find(l)
	}
	if err == nil && l.of && l.arm != leftOut {
		l.counter = c.scenes.counter(l.scene)
	}
	l.found = true
	return err
}

// settleOdd reads a row with care and counts it.
func (f *feed) settleOdd(run *fileRun, o *oddRow) error {
	r := o.row
	if r == nil {
		r = &run.row
	}
	r.line = run.line + o.line + 1
	var err error
	if o.row == nil {
		err = run.careful.nextIn(r, o)
	}
	if err == errHeader {
		return nil
	}
	if err := f.settle(run, r, err); err != nil {
		return fatal(run.src, r.line, err)
	}
	return nil
}

// errHeader says that a row was the file's header.
var errHeader = errors.New("a header")

// leave puts a row into the batch to be read with care.
func (b *batch) leave(o oddRow) {
	b.records = append(b.records, record{line: int32(o.line), said: said{odd: true}})
	b.odd = append(b.odd, o)
}

// carefulReader reads single rows that were cut out of their file.
type carefulReader interface {
	// nextIn fills r with the row in o. Errors are those of a [rowReader], and
	// errHeader.
	nextIn(r *row, o *oddRow) error
}
