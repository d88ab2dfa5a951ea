package trace

import (
	"fmt"
	"os"
	"sort"
)

// origin is a file whose rows can be read again.
type origin struct {
	path string
	info os.FileInfo
	csv  bool // else JSON lines
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
	first, last int64 // times of the first and the last of them
	rc          *recipe
	settled     bool // their digests are where they belong
}

// owe remembers that the digests of a batch's rows were left out.
func (c *counter) owe(b *batch) {
	s := b.stretches
	o := owedRows{from: b.origin, at: b.begin, size: int(b.end - b.begin), first: s[0].first, last: s[len(s)-1].last, rc: b.rc}
	for i := range s {
		o.n += int(s[i].n)
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
		if o.first-c.span >= tl.t {
			return
		}
		if o.settled {
			continue
		}
		b, err := o.read()
		if err == nil {
			err = f.settleDigests(b)
		}
		if err != nil {
			c.digests.remove(&tl.inSeen)
			tl.digests, tl.noDigest = digestLog{}, true
			return
		}
		o.settled = true
	}
}

// settleDigests puts the digests of a batch where they belong.
func (f *feed) settleDigests(b *batch) error {
	c := f.records
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
		if tl := c.tallies[tallyKey{floorTo(rec.t, c.span), l.arm}]; !tl.noDigest {
			tl.digests.repay(rec.digest)
		}
	}
	return nil
}

// read reads the rows again.
func (o *owedRows) read() (*batch, error) {
	file, err := os.Open(o.from.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	changed := fmt.Errorf("%s is not the file any more that was read", o.from.path)
	if !os.SameFile(info, o.from.info) {
		return nil, changed
	}
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
	if r := out.records; len(out.odd) > 0 || len(r) != o.n || r[0].t != o.first || r[len(r)-1].t != o.last {
		return nil, changed
	}
	return out, nil
}
