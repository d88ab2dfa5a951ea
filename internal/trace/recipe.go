package trace

import (
	"hash/maphash"
	"maps"
	"slices"
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
	keys     *keyBook  // of JSON lines
	uses     []cellUse // of the columns of CSV
	steps    []csvStep // of those, the ones that are read
	sumSteps []csvStep // of those, the ones on which sums rest
	idle     fieldSet  // fields on which no sum rests
	quick    bool      // rows are records, and nothing else has to be done with them
	summed   bool      // rows may be summed up: their times, arms, latencies, costs and flags are all there is to them
	owing    bool      // the digests of sums may be left out where the file can be read again
	span     int64     // of windows
	missing  bool      // no row had some mapped column yet
	// Powers of ten that turn the figures into milliseconds, and costs into nano-USD.
	latency, ttft, itl, cost int
}

// recipeOf makes the recipe of a file with a plan.
func (f *feed) recipeOf(run *fileRun) *recipe {
	p, c := run.plan, f.records
	rc := &recipe{plan: p, opt: &f.opt, seed: c.seed, digested: c.digested(false), clock: run.clock}
	rc.latency, rc.ttft, rc.itl = millis(p.unit[FieldLatency]), millis(p.unit[FieldTTFT]), millis(p.unit[FieldITL])
	rc.cost = 9 + p.unit[FieldCostUSD].exp()
	rc.missing = len(p.missed) > 0
	rc.quick = p.kind == Records && p.adjust == nil
	if !c.arms.indifferent() {
		rc.labelled = labelFields[:]
		if len(c.arms.mapped) == 0 {
			rc.labelled = labelFields[:2] // a model is an arm only where --arm says so
		}
	}
	rc.span = c.span
	rc.summed = rc.quick && rc.digested && !p.timeless && !f.opt.Distributions && !p.streams()
	rc.owing = c.scenes.want == ""
	rc.idle = rc.idleFields()
	switch reader := run.reader.(type) {
	case *jsonlReader:
		rc.keys = reader.book()
	case *csvReader:
		plain := false
		rc.uses, plain = reader.cellUses()
		rc.steps, rc.sumSteps = stepsOf(rc.uses, 0), stepsOf(rc.uses, rc.idle)
		rc.quick = rc.quick && plain
	}
	return rc
}

// idleFields are the texts that sums need not know: ids, which only repeated
// rows are known by, and names of arms where all are one.
func (rc *recipe) idleFields() (idle fieldSet) {
	if rc.missing {
		return 0 // it must be seen which fields there are
	}
	idle = 1<<FieldUserID | 1<<FieldConversationID
	for _, f := range labelFields {
		if !slices.Contains(rc.labelled, f) {
			idle.add(f)
		}
	}
	return idle
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
