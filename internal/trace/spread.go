package trace

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/canaryctl/canaryctl/internal/release"
)

// spread is how the values of one figure are spread, latencies of a window or its
// times to first token: for each bucket with
// any in it, ascending, the distance from the bucket before and the count, as
// varints. A bucket takes two bytes mostly, and there are at most 5122 of them.
type spread []byte

const (
	// spreadBits splits each doubling into 64 buckets, each 0.8 to 1.6 % wide.
	spreadBits = 6
	// spreadError is how far the middle of a bucket lies from any value in it
	// at most, as a share of that.
	spreadError = 1.0 / (2 << spreadBits)
	// Latencies up to a picosecond are one bucket, and those above 35,000 years.
	spreadLow, spreadHigh = 1.0 / (1 << 30), 1 << 50
)

var (
	lowestBucket = bucketOf(spreadLow, spreadBits)
	beyondBucket = bucketOf(spreadHigh, spreadBits) + 1
)

// spreadBucket is the bucket of a latency in milliseconds.
func spreadBucket(ms float64) uint64 {
	return min(max(bucketOf(ms, spreadBits), lowestBucket), beyondBucket)
}

// spreadEdge is the upper edge of a bucket.
func spreadEdge(bucket uint64) float64 {
	if bucket == beyondBucket {
		return math.Inf(1)
	}
	return bucketEdge(bucket, spreadBits)
}

// each calls f with every bucket and its count, ascending.
func (s spread) each(f func(bucket uint64, n int64)) {
	bucket := uint64(0)
	for len(s) > 0 {
		step, size := binary.Uvarint(s)
		n, size2 := binary.Uvarint(s[size:])
		bucket += step
		f(bucket, int64(n))
		s = s[size+size2:]
	}
}

// above counts the latencies in buckets after bucket.
func (s spread) above(bucket uint64) (n int64) {
	s.each(func(b uint64, count int64) {
		if b > bucket {
			n += count
		}
	})
	return n
}

// bucketCounts are the counts of all buckets, for one spread after another.
type bucketCounts []int64

// cleared returns the counts, all 0.
func (c *bucketCounts) cleared() []int64 {
	if *c == nil {
		*c = make([]int64, beyondBucket-lowestBucket+1)
	} else {
		clear(*c)
	}
	return *c
}

// plus returns s with more values.
func (s spread) plus(values []float64, scratch *bucketCounts) spread {
	counts := scratch.cleared()
	s.each(func(b uint64, n int64) { counts[b-lowestBucket] = n })
	for _, v := range values {
		counts[spreadBucket(v)-lowestBucket]++
	}
	used := 0
	for _, n := range counts {
		if n > 0 {
			used++
		}
	}
	out := make(spread, 0, 2*used+binary.MaxVarintLen64) // mostly no larger than it must be: there may be many windows
	last := uint64(0)
	for i, n := range counts {
		if n > 0 {
			bucket := lowestBucket + uint64(i)
			out = binary.AppendUvarint(binary.AppendUvarint(out, bucket-last), uint64(n))
			last = bucket
		}
	}
	return out
}

// windowSpread is the spread of a window, every request of which carries a
// latency.
type windowSpread struct {
	t   int64
	arm release.Arm
	of  spread
}

func (a windowSpread) compare(b windowSpread) int {
	return cmp.Or(cmp.Compare(a.t, b.t), cmp.Compare(a.arm, b.arm))
}

// CountSlow sets Slow of every window to the number of its requests slower than
// edgeMS, which it returns: the smallest edge of the buckets that latencies were
// counted in at or above ms, at most 1.6 % above it. Past 35,000 years the edge is
// +Inf. Windows in which not every request carries a latency have none. It can be called again with
// another ms.
//
// It needs records read with [Options].Distributions. Without, and for feeds of
// windows, which bring their own counts, it changes nothing and returns NaN.
func (d *Data) CountSlow(ms float64) (edgeMS float64) {
	if d.Latency == nil || math.IsNaN(ms) {
		return math.NaN()
	}
	bucket := spreadBucket(max(ms, 0))
	for i := range d.Windows {
		w := &d.Windows[i]
		at, ok := slices.BinarySearchFunc(d.spreads, windowSpread{t: w.T.UnixNano(), arm: w.Arm}, windowSpread.compare)
		if ok {
			w.Slow = d.spreads[at].of.above(bucket)
			w.Known |= release.HasSlow
			d.Supplied |= release.HasSlow
		}
	}
	return spreadEdge(bucket)
}
