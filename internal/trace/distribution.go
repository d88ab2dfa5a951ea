package trace

import (
	"math"
	"slices"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// Distribution is how one figure of an arm's records was distributed: latencies
// in milliseconds, or costs in USD. It does not depend on the order of the
// records.
type Distribution struct {
	N int64 // values, those that repeat included
	// Exact says that Values holds every value. Else values less than 0.1 %
	// apart were put together and stand at the largest of them.
	Exact bool

	values []stats.Weighted // ascending
	// pending are values that came since the last compact, in any order.
	pending []float64
}

// Values returns the values with how often each was seen, ascending. They were
// all seen; where Exact is false, a quantile read off them lies at most 0.1 %
// above the true one, and never below it. The slice is the Distribution's own:
// do not change it.
func (d *Distribution) Values() []stats.Weighted { return d.values }

const (
	// fullDistributions is how many times as many different values are kept for
	// all of them as for a figure of one arm: both figures of two arms. More
	// arms share it.
	fullDistributions = 4
	weightedSize      = 16 // bytes of a value that is kept
	// minPending keeps small distributions from being sorted over and over.
	minPending = 1 << 16
	// fineBits splits each doubling into 1024 buckets: none is wider than
	// 1/1024 of where it starts.
	fineBits = 10
)

// distributions are those of one figure or more, by arm, in bounded memory.
type distributions struct {
	most    int // different values that one may hold
	batch   int // values that wait at least before they are sorted in
	coarse  bool
	all     []*Distribution
	scratch []stats.Weighted
}

// of returns the distribution of an arm from byArm, and makes it where it is
// not there yet.
func (s *distributions) of(byArm *[]*Distribution, arm int) *Distribution {
	for len(*byArm) <= arm {
		*byArm = append(*byArm, nil)
	}
	d := (*byArm)[arm]
	if d == nil {
		d = &Distribution{Exact: !s.coarse}
		(*byArm)[arm] = d
		s.all = append(s.all, d)
	}
	return d
}

// add counts a value. The values waiting may grow to half of those kept, so
// that each is merged a few times only.
func (s *distributions) add(d *Distribution, v float64) {
	d.N++
	d.pending = append(d.pending, v)
	if len(d.pending) >= max(s.batch, len(d.values)/2) {
		s.compact(d)
	}
}

// compact sorts the waiting values in. A distribution with too many different
// ones becomes coarse, and all do when together they hold too many. Both counts
// only ever grow with the input, one that is coarse counting as full, so the
// order of the records decides nothing.
func (s *distributions) compact(d *Distribution) {
	slices.Sort(d.pending)
	s.scratch = s.scratch[:0]
	i := 0
	for _, v := range d.pending {
		for i < len(d.values) && d.values[i].Value <= v {
			s.put(d, d.values[i])
			i++
		}
		s.put(d, stats.Weighted{Value: v, Weight: 1})
	}
	for ; i < len(d.values); i++ {
		s.put(d, d.values[i])
	}
	d.values = append(d.values[:0], s.scratch...)
	d.pending = d.pending[:0]
	if d.Exact && len(d.values) > s.most {
		d.coarsen()
	}
	if !s.coarse && s.held() > fullDistributions*s.most {
		s.coarse = true
		for _, other := range s.all {
			other.coarsen()
		}
	}
}

// held is how many values all distributions hold, as far as they were
// compacted.
func (s *distributions) held() (n int) {
	for _, d := range s.all {
		if d.Exact {
			n += len(d.values)
		} else {
			n += s.most
		}
	}
	return n
}

// put appends a value to scratch, or adds it to the last one there where the
// two are kept as one. Values come ascending.
func (s *distributions) put(d *Distribution, v stats.Weighted) {
	if n := len(s.scratch); n > 0 && d.same(s.scratch[n-1].Value, v.Value) {
		s.scratch[n-1].Value = v.Value
		s.scratch[n-1].Weight += v.Weight
		return
	}
	s.scratch = append(s.scratch, v)
}

// same reports whether two values are kept as one.
func (d *Distribution) same(a, b float64) bool {
	return a == b || !d.Exact && bucketOf(a, fineBits) == bucketOf(b, fineBits)
}

// coarsen puts the values of each bucket together.
func (d *Distribution) coarsen() {
	if !d.Exact {
		return
	}
	d.Exact = false
	kept := d.values[:0]
	for _, v := range d.values {
		if n := len(kept); n > 0 && d.same(kept[n-1].Value, v.Value) {
			kept[n-1].Value = v.Value
			kept[n-1].Weight += v.Weight
			continue
		}
		kept = append(kept, v)
	}
	d.values = slices.Clone(kept) // the room of the millions is given back
}

// finish sorts in what still waits, in all distributions.
func (s *distributions) finish() {
	for _, d := range s.all {
		s.compact(d)
	}
	for _, d := range s.all {
		d.pending = nil
	}
	s.scratch = nil
}

// byName returns distributions under the names of their arms, their values
// divided by unit.
func byName(byArm []*Distribution, arms []release.Arm, unit float64) map[release.Arm]*Distribution {
	named := make(map[release.Arm]*Distribution)
	for arm, d := range byArm {
		if d == nil {
			continue
		}
		for i := range d.values {
			d.values[i].Value /= unit
		}
		named[arms[arm]] = d
	}
	return named
}

// bucketOf returns the bucket of a value of at least 0 among 2^bits to each
// doubling, equally wide within it. A bucket holds its upper edge and not its
// lower one. Buckets are counted off the bits of the float64, so that they are
// the same on every machine.
func bucketOf(v float64, bits int) uint64 {
	shift := 52 - bits
	return (math.Float64bits(v) + 1<<shift - 1) >> shift
}

// bucketEdge is the upper edge of a bucket.
func bucketEdge(bucket uint64, bits int) float64 {
	return math.Float64frombits(bucket << (52 - bits))
}
