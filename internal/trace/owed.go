package trace

import (
	"fmt"
	"os"
	"sort"
)

// origin is a file whose rows can be read again, also where it has been renamed.
type origin struct {
	file *os.File // nil where it had to be closed
	path string
	info os.FileInfo
	csv  bool // else JSON lines
}

// mostOpen is how many files are kept open to be read again. Those past it are
// opened by their path where they must be. Tests lower it.
var mostOpen = 100

// leave closes a source that has been read, unless its rows may have to be read
// again.
func (f *feed) leave(src *source) {
	owed := f.records.owed
	switch o := src.origin; {
	case o == nil || src.opened == nil: // it is not ours
	case len(owed) == 0 || owed[len(owed)-1].from != o || len(f.kept) >= mostOpen:
		o.file = nil
	default:
		f.kept = append(f.kept, src.opened)
		src.opened = nil
	}
	src.Close()
}

// close closes the files that were kept open.
func (f *feed) close() {
	for _, file := range f.kept {
		file.Close()
	}
	f.kept = nil
}

// open returns the file, and what to call when it has been read.
func (o *origin) open() (*os.File, func(), error) {
	if o.file != nil {
		return o.file, func() {}, nil
	}
	file, err := os.Open(o.path)
	if err != nil {
		return nil, nil, err
	}
	if info, err := file.Stat(); err != nil || !os.SameFile(info, o.info) {
		file.Close()
		return nil, nil, o.changed()
	}
	return file, func() { file.Close() }, nil
}

func (o *origin) changed() error {
	return fmt.Errorf("%s is not the file any more that was read", o.path)
}

func (o *origin) parser() blockParser {
	if o.csv {
		return &csvParser{}
	}
	return &jsonParser{}
}

// owedRows are rows of a file that were counted without their digests: each is
// later than all before it, so none can be a duplicate of those. Only where a row
// comes that is not later than they are, they are read again.
type owedRows struct {
	from        *origin
	at          int64 // where in the file they stand
	size        int
	n           int   // how many they are
	first, last int64 // times of the first and the last that was counted
	rc          *recipe
	settled     bool // their digests are where they belong
}

// owe remembers that the digests of a batch's rows were left out, of which those
// between two times were counted.
func (c *counter) owe(b *batch, first, last int64) {
	o := owedRows{from: b.origin, at: b.begin, size: int(b.end - b.begin), first: first, last: last, rc: b.rc}
	for i := range b.stretches {
		o.n += int(b.stretches[i].n)
	}
	c.owed = append(c.owed, o)
}

// repay puts the digests of a tally's rows that were left out where they belong,
// with those of the rows around them. Where the file is not any more what it was,
// the tally's rows cannot be compared with others.
func (f *feed) repay(tl *tally) {
	c := f.records
	from := sort.Search(len(c.owed), func(i int) bool { return c.owed[i].last >= tl.t })
	for i := range c.owed[from:] {
		o := &c.owed[from+i]
		if o.first-c.span >= tl.t || f.ctx.Err() != nil { // of a reading that was stopped nothing is used
			return
		}
		if o.settled {
			continue
		}
		b, err := o.read()
		if err == nil {
			err = f.settleDigests(o, b)
		}
		if err != nil {
			c.digests.remove(&tl.inSeen)
			tl.digests, tl.noDigest, tl.lost = digestLog{}, true, true
			return
		}
		o.settled = true
	}
}

// settleDigests puts the digests of rows that were read again where they belong,
// all or, where they are not those that were counted, none.
func (f *feed) settleDigests(o *owedRows, b *batch) error {
	if len(b.odd) > 0 || len(b.records) != o.n {
		return o.from.changed()
	}
	c := f.records
	tallies := make([]*tally, len(b.records)) // nil where the row was left out
	first, last := maxTime, -maxTime
	for i := range b.records {
		rec := &b.records[i]
		l := &b.labels[rec.label]
		if !l.found {
			if err := f.lookUp(l); err != nil {
				return err
			}
		}
		if l.arm == leftOut {
			continue
		}
		if tallies[i] = c.tallies[tallyKey{floorTo(rec.t, c.span), l.arm}]; tallies[i] == nil {
			return o.from.changed()
		}
		first, last = min(first, rec.t), max(last, rec.t)
	}
	if first != o.first || last != o.last {
		return o.from.changed()
	}
	for i, tl := range tallies {
		if tl != nil && !tl.noDigest {
			tl.digests.repay(b.records[i].digest)
		}
	}
	return nil
}

// read reads the rows again.
func (o *owedRows) read() (*batch, error) {
	file, closed, err := o.from.open()
	if err != nil {
		return nil, err
	}
	defer closed()
	b := &block{}
	b.room(o.size)
	if _, err := file.ReadAt(b.buf[:o.size], o.at); err != nil {
		return nil, err
	}
	b.to = o.size
	b.close(o.size)
	rc := *o.rc
	rc.summed = false
	out := &batch{}
	o.from.parser().parse(&rc, b, out)
	return out, nil
}
