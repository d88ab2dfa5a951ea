package stats

import (
	"cmp"
	"math"
	"slices"

	"github.com/canaryctl/canaryctl/internal/release"
)

// NearestRank returns the ceil(q n)-th smallest of the sorted values: a value
// that was really seen, never one between two. q is exact, so that 0.07 of 100
// is rank 7 and not 8. It is NaN for no values; q 0 is the smallest.
func NearestRank(sorted []float64, q release.Ratio) float64 {
	n := int64(len(sorted))
	if n == 0 {
		return math.NaN()
	}
	rank := q.FloorOf(n)
	if q.Compare(rank, n) < 0 { // floor(q n) < q n
		rank++
	}
	return sorted[min(max(rank, 1), n)-1]
}

// Median returns the middle value, or the mean of the two in the middle; NaN
// for no values. It leaves xs as it is.
func Median(xs []float64) float64 {
	n := len(xs)
	if n == 0 {
		return math.NaN()
	}
	s := slices.Clone(xs)
	slices.Sort(s)
	return s[(n-1)/2] + (s[n/2]-s[(n-1)/2])/2
}

// Weighted is a value that stands for so many requests.
type Weighted struct {
	Value  float64
	Weight int64
}

// WeightedMedian returns the smallest value at which at least half of the
// weight has been passed; NaN if there is no weight. It sorts vs.
func WeightedMedian(vs []Weighted) float64 {
	var total, passed int64
	for _, v := range vs {
		total += v.Weight
	}
	if total <= 0 {
		return math.NaN()
	}
	slices.SortFunc(vs, func(a, b Weighted) int { return cmp.Compare(a.Value, b.Value) })
	for _, v := range vs {
		if passed += v.Weight; passed >= total-passed {
			return v.Value
		}
	}
	return vs[len(vs)-1].Value
}
