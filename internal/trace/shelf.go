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
func (s *shelf) put(p *place, of *tally) {
	s.held++
	p.n++
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

// digestSet is a set of 64-bit digests other than 0: open addressing, at most
// three quarters full.
type digestSet struct {
	slots []uint64
	n     int
}

// add puts a digest into the set, and reports false if it was there.
func (d *digestSet) add(v uint64) bool {
	if (d.n+1)*4 > len(d.slots)*3 {
		d.grow(max(4, 2*len(d.slots)))
	}
	i := d.find(v)
	if d.slots[i] == v {
		return false
	}
	d.slots[i] = v
	d.n++
	return true
}

// grow gives the set so many slots, a power of two.
func (d *digestSet) grow(slots int) {
	old := d.slots
	d.slots = make([]uint64, slots)
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
