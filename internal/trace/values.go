package trace

import (
	"slices"

	"github.com/canaryctl/canaryctl/internal/stats"
)

const (
	chunkLen  = 16  // values of one list that lie together
	slabChunk = 512 // chunks that are allocated at once
)

// valueStore holds lists of values. What one list lets go another takes: the
// store never holds more memory than it needed at some time, and nothing of it is
// copied when a list grows.
type valueStore struct {
	slabs   [][]float64
	before  []int32 // by chunk: the chunk before it in its list, or in the list of free ones; 0: none
	free    int32   // the first free chunk
	scratch []float64
	counts  bucketCounts
}

// valueList is a list of values in a valueStore.
type valueList struct {
	last int32     // its last chunk, from 1
	tail []float64 // what of that is in use
	n    int
}

// pushAll appends values to a list, and returns how many more chunks that took.
func (s *valueStore) pushAll(l *valueList, values []float64) (chunks int) {
	for len(values) > 0 {
		if s.push(l, values[0]) {
			chunks++
		}
		n := min(cap(l.tail)-len(l.tail), len(values)-1)
		l.tail = append(l.tail, values[1:1+n]...)
		l.n += n
		values = values[1+n:]
	}
	return chunks
}

// push appends a value to a list. It reports whether that took another chunk.
func (s *valueStore) push(l *valueList, v float64) (chunk bool) {
	if len(l.tail) == cap(l.tail) {
		chunk = true
		c := s.chunk()
		s.before[c-1] = l.last
		l.last, l.tail = c, s.values(c)[:0]
	}
	l.tail = append(l.tail, v)
	l.n++
	return chunk
}

func (s *valueStore) values(chunk int32) []float64 {
	i := int(chunk - 1)
	from := i % slabChunk * chunkLen
	return s.slabs[i/slabChunk][from : from+chunkLen : from+chunkLen]
}

// chunk finds a free chunk.
func (s *valueStore) chunk() int32 {
	if c := s.free; c != 0 {
		s.free = s.before[c-1]
		return c
	}
	if len(s.before)%slabChunk == 0 {
		s.slabs = append(s.slabs, make([]float64, slabChunk*chunkLen))
	}
	s.before = append(s.before, 0)
	return int32(len(s.before))
}

// gather appends the values of a list to out, in any order.
func (s *valueStore) gather(l *valueList, out []float64) []float64 {
	out = slices.Grow(out, l.n)
	n := (l.n-1)%chunkLen + 1
	for c := l.last; c != 0; c, n = s.before[c-1], chunkLen {
		out = append(out, s.values(c)[:n]...)
	}
	return out
}

// take returns the values of a list, in any order and until the next call, and
// empties it.
func (s *valueStore) take(l *valueList) []float64 {
	s.scratch = s.gather(l, s.scratch[:0])
	s.drop(l)
	return s.scratch
}

// drop empties a list.
func (s *valueStore) drop(l *valueList) {
	for c := l.last; c != 0; {
		c, s.before[c-1], s.free = s.before[c-1], s.free, c
	}
	*l = valueList{}
}

// nearest99 is the 99th percentile of a list by nearest rank. Most values are
// only looked at once: of one in each chunk, those near the top say from where on
// the values matter. scratch is used and returned.
func (s *valueStore) nearest99(l *valueList, scratch []float64) (p99 float64, used []float64) {
	above := l.n - int(stats.Rank(percent99, int64(l.n))) + 1 // the percentile is the smallest of so many
	sample := scratch[:0]
	for c := l.last; c != 0; c = s.before[c-1] {
		sample = append(sample, s.values(c)[0])
	}
	scratch = sample
	// A fortieth, and four for luck: mostly more values are above that than the
	// hundredth that is needed, and few more.
	if rank := len(sample) - len(sample)/40 - 4; rank >= 0 {
		selectNth(sample, rank)
		if scratch = s.atLeast(l, sample[rank], sample[:0]); len(scratch) >= above {
			selectNth(scratch, len(scratch)-above)
			return scratch[len(scratch)-above], scratch
		}
	}
	scratch = s.gather(l, scratch[:0])
	return nearest99(scratch), scratch
}

// atLeast appends the values of a list that are not below a bound to out.
func (s *valueStore) atLeast(l *valueList, bound float64, out []float64) []float64 {
	n := (l.n-1)%chunkLen + 1
	for c := l.last; c != 0; c, n = s.before[c-1], chunkLen {
		for _, v := range s.values(c)[:n] {
			if v >= bound {
				out = append(out, v)
			}
		}
	}
	return out
}
