package trace

import (
	"bytes"
	"hash/maphash"
	"maps"
	"math"
)

// recipe is what the goroutines of a pipeline know of the file. It does not
// change once it is made.
type recipe struct {
	plan     *plan // of which only what is settled is read
	opt      *Options
	seed     maphash.Seed
	digested bool    // rows are told apart by their digests
	labelled []Field // the fields that say of which arm a row is
	clock    clock
	fields   []Field // those of plan.columns
	keys     *keyBook
	quick    bool // rows are records, and nothing else has to be done with them
	missing  bool // no row had some mapped column yet
}

// recipeOf makes the recipe of a file with a plan.
func (f *feed) recipeOf(run *fileRun) *recipe {
	p, c := run.plan, f.records
	rc := &recipe{plan: p, opt: &f.opt, seed: c.seed, digested: c.digested(false), clock: run.clock}
	rc.missing = len(p.missed) > 0
	rc.quick = p.kind == Records && p.adjust == nil
	for _, col := range p.columns {
		rc.fields = append(rc.fields, col.field)
	}
	if !c.arms.indifferent() {
		rc.labelled = labelFields[:]
		if len(c.arms.mapped) == 0 {
			rc.labelled = labelFields[:2] // a model is an arm only where --arm says so
		}
	}
	if o, ok := run.reader.(*jsonlReader); ok {
		rc.keys = o.book()
	}
	return rc
}

// outdated reports whether more is known of the file than when the recipe was
// made.
func (rc *recipe) outdated(run *fileRun) bool {
	o, ok := run.reader.(*jsonlReader)
	return rc.clock.unit != run.clock.unit || ok && len(o.others) != len(rc.keys.others)
}

// keyBook is what is known of the keys of a file of JSON lines.
type keyBook struct {
	flat   map[string][]Field
	others map[string]bool
	full   bool // keys that are in neither are data, not worth a word
	nested []column
}

func (o *objectReader) book() *keyBook {
	return &keyBook{flat: o.flat, others: maps.Clone(o.others), full: len(o.others) >= maxOthers, nested: o.nested}
}

// rowTaker makes records of rows.
type rowTaker struct {
	rc    *recipe
	clock clock
	row   row
}

// use makes the taker go by another recipe.
func (w *rowTaker) use(rc *recipe) {
	w.rc, w.clock = rc, rc.clock
	w.row = row{}
}

// begin makes the row ready for the next one.
func (w *rowTaker) begin() {
	for _, f := range w.rc.fields {
		w.row.cells[f] = cell{}
	}
	w.row.twice = false
}

// take puts the row into out as a record. It returns nil where the row must be
// read with care.
func (w *rowTaker) take(out *batch, line int) *record {
	n := len(out.records)
	out.records = append(out.records, record{line: int32(line)})
	if rec := &out.records[n]; w.read(rec, out) {
		return rec
	}
	out.records = out.records[:n]
	return nil
}

func (w *rowTaker) read(rec *record, out *batch) (ok bool) {
	r, rc := &w.row, w.rc
	if err := rec.read(rc.plan, r, rc.opt); err != nil {
		return false
	}
	var err error
	if rec.t, err = rc.opt.timeOf(rc.plan, &w.clock, r); err != nil || w.clock.unit != rc.clock.unit || w.clock.guessed != rc.clock.guessed {
		w.clock = rc.clock
		return false
	}
	if rec.label, ok = w.label(out); !ok {
		return false
	}
	if rec.strange {
		if rec.unknown, ok = out.unknownOf(r.cells[FieldStatus].text); !ok {
			return false
		}
	}
	rec.twice = r.twice
	if rc.digested {
		rec.digest = digestOf(rc.seed, r.raw)
		rec.named = r.cells[FieldUserID].present() || r.cells[FieldConversationID].present()
	}
	out.zone = out.zone || w.clock.zone
	if rc.missing {
		w.see(out)
	}
	return true
}

// see notes which fields the row has.
func (w *rowTaker) see(out *batch) {
	for _, f := range w.rc.fields {
		if w.row.cells[f].kind != absent {
			out.seen.add(f)
		}
	}
}

// label returns which of out's labels the row has, and puts it there if it is a
// new one.
func (w *rowTaker) label(out *batch) (uint8, bool) {
	var names [len(labelFields)][]byte
	for i, f := range w.rc.labelled {
		c := &w.row.cells[f]
		if c.kind == composite {
			return 0, false
		}
		names[i] = c.text
	}
	scene := &w.row.cells[FieldScene]
	for i := len(out.labels) - 1; i >= 0; i-- {
		l := &out.labels[i]
		if l.of == (scene.kind == scalar) && bytes.Equal(l.names[1], names[1]) && bytes.Equal(l.names[0], names[0]) && bytes.Equal(l.names[2], names[2]) &&
			(!l.of || bytes.Equal(l.scene, scene.text)) {
			return uint8(i), true
		}
	}
	if len(out.labels) > math.MaxUint8 {
		return 0, false
	}
	out.labels = append(out.labels, label{names: names, scene: scene.text, of: scene.kind == scalar})
	return uint8(len(out.labels) - 1), true
}

// unknownOf returns which of the batch's unknown statuses one is, and puts it
// there if it is a new one.
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
