package trace

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// ranking says where a 99th percentile stands.
type ranking uint8

const (
	never99 ranking = iota // no value at all
	open99                 // the values are held
	sealed                 // it is exact, the values are gone
	rough99                // values came after others were let go: it is that of the spread
)

// ranks are the values of one figure of a tally, held in a valueStore, and once
// they have been let go, their 99th percentile by nearest rank.
type ranks struct {
	values valueList
	p99    float64
	most   float64 // the largest value
	state  ranking
	spread spread // of the values let go, where more may come or it is wanted
}

// hold keeps a value. It reports whether it came after others were let go, with
// which the percentile is one of the spread, and whether it took another chunk.
func (q *ranks) hold(s *valueStore, v float64) (late, chunk bool) {
	switch q.state {
	case never99:
		q.state = open99
	case sealed:
		q.state = rough99
	}
	q.most = max(q.most, v)
	chunk = s.push(&q.values, v)
	return q.state == rough99, chunk
}

// seal ranks the values and lets them go. spread says that how they are spread
// is kept: more values may come, or it is wanted.
func (q *ranks) seal(s *valueStore, spread bool) {
	if q.values.n > 0 {
		q.rank(s.take(&q.values), spread, &s.counts)
	}
	q.settle()
}

// rank ranks values, whose order it changes.
func (q *ranks) rank(values []float64, spread bool, scratch *bucketCounts) {
	if q.state == open99 {
		q.p99 = nearest99(values)
	}
	if spread || q.state == rough99 {
		q.spread = q.spread.plus(values, scratch)
	}
}

func (q *ranks) settle() {
	switch q.state {
	case open99:
		q.state = sealed
	case rough99:
		q.p99 = min(q.spread.percentile(percent99), q.most)
	}
}

// ranker ranks what many tallies hold, at the end of a reading, on all cores.
// The values stay where they are.
type ranker struct {
	store   *valueStore
	spread  bool
	scratch []float64
	counts  bucketCounts
}

func (r *ranker) seal(q *ranks, spread bool) {
	switch {
	case q.values.n == 0:
	case q.state == open99 && !spread:
		q.p99, r.scratch = r.store.nearest99(&q.values, r.scratch)
	default:
		r.scratch = r.store.gather(&q.values, r.scratch[:0])
		q.rank(r.scratch, spread, &r.counts)
	}
	q.values = valueList{}
	q.settle()
}

// rankAll ranks what the tallies hold, after which nothing more may come.
func (c *counter) rankAll(tallies []*tally) {
	const each = 64
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (len(tallies)+each-1)/each) {
		wg.Go(func() {
			r := &ranker{store: &c.values, spread: c.opt.Distributions}
			for {
				from := int(next.Add(each)) - each
				if from >= len(tallies) {
					return
				}
				for _, tl := range tallies[from:min(from+each, len(tallies))] {
					r.seal(&tl.latency, r.spread)
					if tl.streaming != nil {
						r.seal(&tl.streaming.ttft, false)
					}
				}
			}
		})
	}
	wg.Wait()
}

// percent99 is the quantile that a p99 is.
var percent99 = release.NewRatio(99, 100)

// nearest99 is the 99th percentile of values by nearest rank: a value that was
// really seen. It changes their order.
func nearest99(values []float64) float64 {
	k := int(stats.Rank(percent99, int64(len(values)))) - 1
	selectNth(values, k)
	return values[k]
}

// selectNth puts the value that would be at index k of the sorted values there:
// quickselect with the median of three as pivot (Hoare, Algorithm 65: FIND,
// Communications of the ACM 4, 1961). Where the pivots are bad it sorts what is
// left.
func selectNth(v []float64, k int) {
	for rounds := 0; len(v) > 12; rounds++ {
		if rounds == 40 {
			break
		}
		i := partition(v)
		switch {
		case k < i:
			v = v[:i]
		default:
			v, k = v[i:], k-i
		}
	}
	slices.Sort(v)
}

// partition puts values up to some pivot before i, 0 < i < len(v), and those
// from it on behind.
func partition(v []float64) (i int) {
	last := len(v) - 1
	pivot := medianOf(v[0], v[last/2], v[last])
	i, j := 0, last
	for {
		for v[i] < pivot {
			i++
		}
		for v[j] > pivot {
			j--
		}
		if i >= j {
			return max(i, 1)
		}
		v[i], v[j] = v[j], v[i]
		i++
		j--
	}
}

func medianOf(a, b, c float64) float64 {
	return max(min(a, b), min(max(a, b), c))
}

// percentile is the middle of the bucket in which the quantile lies, so at most
// spreadError from it: 0.8 %, or a microsecond.
func (s spread) percentile(q release.Ratio) float64 {
	total := s.above(0)
	if total == 0 {
		return math.NaN()
	}
	left, at := stats.Rank(q, total), lowestBucket
	s.each(func(bucket uint64, n int64) {
		if left > 0 {
			at = bucket
		}
		left -= n
	})
	if at == beyondBucket {
		return math.Inf(1)
	}
	return (spreadEdge(at-1) + spreadEdge(at)) / 2
}
