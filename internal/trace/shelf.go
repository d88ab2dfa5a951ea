package trace

// shelf keeps tallies that hold something in memory in the order in which they
// were last touched, and counts what they hold.
type shelf struct {
	most       int // things held at once
	held       int
	head, tail *place // head was touched last
}

// place is a tally's place on a shelf. It is on the shelf while of is set.
type place struct {
	of         *tally
	n          int
	prev, next *place
}

// put adds one thing to a tally's place, and the place to the shelf.
func (s *shelf) put(p *place, of *tally) { s.putMany(p, of, 1) }

func (s *shelf) putMany(p *place, of *tally, n int) {
	s.held += n
	p.n += n
	if p.of == nil {
		p.of = of
		s.pushFront(p)
	}
}

// touch makes a place the last to be dropped.
func (s *shelf) touch(p *place) {
	if p.of == nil || s.head == p {
		return
	}
	s.unlink(p)
	s.pushFront(p)
}

func (s *shelf) full() bool { return s.held > s.most }

// drop takes the tally that was not touched for longest off the shelf, and all
// that it holds off the count.
func (s *shelf) drop() *tally {
	p := s.tail
	s.unlink(p)
	s.held -= p.n
	of := p.of
	*p = place{}
	return of
}

// remove takes a place off the shelf, and what it holds off the count.
func (s *shelf) remove(p *place) {
	if p.of == nil {
		return
	}
	s.unlink(p)
	s.held -= p.n
	*p = place{}
}

func (s *shelf) pushFront(p *place) {
	p.prev, p.next = nil, s.head
	if s.head != nil {
		s.head.prev = p
	} else {
		s.tail = p
	}
	s.head = p
}

func (s *shelf) unlink(p *place) {
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		s.head = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		s.tail = p.prev
	}
	p.prev, p.next = nil, nil
}

// digestLog are the digests of the rows of one tally. Rows that come in the
// order of time can equal only those of the same instant, so that as long as
// they do nothing has to be looked up: the digests are put one after the other,
// and into a set when a row comes that is older than one before it. Digests that
// can be had from the file are owed until then.
type digestLog struct {
	list   digestList
	latest int64 // time of the row put last
	run    int   // rows put last that have this time
	set    *digestSet
	n      int // how many there are
	owed   int // of them, those that are not here: of rows of which none is later than latest
}

// maxRun is how many digests of the same instant are compared one by one.
const maxRun = 16

// add takes the digest of a row that starts at t, and reports false if it was
// there. anyTime says that a row of another time may have the same.
func (d *digestLog) add(t int64, digest uint64, anyTime bool) (added bool) {
	if anyTime && d.set == nil {
		d.look()
	}
	switch {
	case d.set != nil:
		added = d.set.add(digest)
	case d.n == 0 || t > d.latest:
		d.latest, d.run, added = t, 0, true
	case t == d.latest && d.run <= maxRun:
		added = !d.list.endsWith(digest, d.run)
	default:
		d.look()
		added = d.set.add(digest)
	}
	if !added {
		return false
	}
	d.n++
	if d.set == nil {
		d.list.push(digest)
		d.run++
	}
	return true
}

// keep takes the digests of n rows that are later than all before them and one
// another, the last of which starts at t. Without digests they are owed.
func (d *digestLog) keep(t int64, n int, digests []uint64) {
	d.n += n
	d.latest, d.run = t, 1
	switch {
	case digests == nil:
		d.owed += n
	case d.set != nil:
		for _, v := range digests {
			d.set.add(v)
		}
	default:
		for _, v := range digests {
			d.list.push(v)
		}
	}
}

// repay takes a digest that was owed.
func (d *digestLog) repay(digest uint64) {
	if d.set == nil {
		d.look()
	}
	d.set.add(digest)
	d.owed--
}

// look puts the digests into a set, in which they are looked up from now on.
func (d *digestLog) look() {
	d.set = d.list.toSet()
	d.list = digestList{}
}

// digestList are digests in the order in which they came, in pieces that are
// never copied.
type digestList struct {
	full [][]uint64
	last []uint64
}

// pieces grow up to so many digests.
const maxPiece = 1024

func (l *digestList) push(v uint64) {
	if len(l.last) == cap(l.last) {
		if l.last != nil {
			l.full = append(l.full, l.last)
		}
		l.last = make([]uint64, 0, min(max(8, 2*len(l.last)), maxPiece))
	}
	l.last = append(l.last, v)
}

// endsWith reports whether one of the last n digests is v.
func (l *digestList) endsWith(v uint64, n int) bool {
	piece, left := l.last, len(l.full)
	for ; n > 0; n-- {
		if len(piece) == 0 {
			left--
			piece = l.full[left]
		}
		if piece[len(piece)-1] == v {
			return true
		}
		piece = piece[:len(piece)-1]
	}
	return false
}

func (l *digestList) toSet() *digestSet {
	n := len(l.last)
	for _, piece := range l.full {
		n += len(piece)
	}
	slots := 4
	for 3*slots < 4*(n+1) {
		slots *= 2
	}
	set := &digestSet{slots: make([]uint64, slots)}
	for _, piece := range append(l.full, l.last) {
		for _, v := range piece {
			set.add(v)
		}
	}
	return set
}

// digestSet is a set of 64-bit digests other than 0: open addressing, at most
// three quarters full.
type digestSet struct {
	slots []uint64
	n     int
}

// add puts a digest into the set, and reports false if it was there.
func (d *digestSet) add(v uint64) bool {
	if (d.n+1)*4 > len(d.slots)*3 {
		d.grow()
	}
	i := d.find(v)
	if d.slots[i] == v {
		return false
	}
	d.slots[i] = v
	d.n++
	return true
}

func (d *digestSet) grow() {
	old := d.slots
	d.slots = make([]uint64, max(4, 2*len(old)))
	for _, v := range old {
		if v != 0 {
			d.slots[d.find(v)] = v
		}
	}
}

func (d *digestSet) len() int64 { return int64(d.n) }

// find returns the slot of v, or the free one where it belongs.
func (d *digestSet) find(v uint64) int {
	mask := len(d.slots) - 1
	i := int(v) & mask
	for d.slots[i] != 0 && d.slots[i] != v {
		i = (i + 1) & mask
	}
	return i
}
