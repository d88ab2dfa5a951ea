package simulate

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// draws returns n values of f, each from a tick of its own.
func draws(seed uint64, n int, f func(*dice) float64) []float64 {
	var d dice
	d.init(seed)
	out := make([]float64, n)
	for i := range out {
		out[i] = f(d.at(3, i))
	}
	return out
}

func moments(xs []float64) (mean, variance float64) {
	for _, x := range xs {
		mean += x / float64(len(xs))
	}
	for _, x := range xs {
		variance += (x - mean) * (x - mean) / float64(len(xs)-1)
	}
	return mean, variance
}

// The chance of every count, on both sides of the change of method, against
// the distribution function: no bin further off than five sigma.
func TestBinomialDrawsHaveTheirDistribution(t *testing.T) {
	const times = 40_000
	for _, tc := range []struct {
		n int64
		p float64
	}{{1, 0.3}, {8, 0.875}, {60, 0.02}, {100, 0.9}, {100, 0.19}, {100, 0.21}, {100, 0.5}, {1000, 0.0005}, {5000, 0.00005}, {900, 0.9}} {
		counts := map[int64]int{}
		var d dice
		d.init(1)
		for i := range times {
			k := d.at(0, i).binomial(tc.n, tc.p)
			if k < 0 || k > tc.n {
				t.Fatalf("Bin(%d, %g) drew %d", tc.n, tc.p, k)
			}
			counts[k]++
		}
		want := distuv.Binomial{N: float64(tc.n), P: tc.p}
		for k := range tc.n + 1 {
			p := want.Prob(float64(k))
			if off := math.Abs(float64(counts[k])-times*p) / math.Sqrt(times*p*(1-p)+1); off > 5 {
				t.Errorf("Bin(%d, %g): %d came %d times, want %.1f", tc.n, tc.p, k, counts[k], times*p)
			}
		}
	}
}

func TestBinomialDrawsAtTheEdges(t *testing.T) {
	var d dice
	d.init(1)
	for _, tc := range []struct {
		n    int64
		p    float64
		want int64
	}{{0, 0.5, 0}, {-3, 0.5, 0}, {10, 0, 0}, {10, 1, 10}, {10, 1.5, 10}, {10, -1, 0}} {
		if got := d.at(0, 0).binomial(tc.n, tc.p); got != tc.want {
			t.Errorf("Bin(%d, %g) drew %d, want %d", tc.n, tc.p, got, tc.want)
		}
	}
	if got := d.at(0, 0).poisson(0); got != 0 {
		t.Errorf("Poisson(0) drew %d", got)
	}
}

func TestPoissonDrawsHaveMeanAndVariance(t *testing.T) {
	const times = 40_000
	for _, lambda := range []float64{0.02, 1.5, 9.9, 10.1, 100, 5000} {
		mean, variance := moments(draws(2, times, func(d *dice) float64 { return float64(d.poisson(lambda)) }))
		if math.Abs(mean-lambda) > 5*math.Sqrt(lambda/times) {
			t.Errorf("Poisson(%g) has mean %g", lambda, mean)
		}
		if sd := math.Sqrt((2*lambda*lambda + lambda) / times); math.Abs(variance-lambda) > 5*sd {
			t.Errorf("Poisson(%g) has variance %g", lambda, variance)
		}
	}
}

// The percentile drawn from the top downwards is distributed as the one of n
// single draws: the two samples of it agree by Kolmogorov and Smirnov.
func TestP99IsDistributedLikeThatOfSingleDraws(t *testing.T) {
	const times = 2000
	for _, n := range []int64{1, 20, 99, 101, 400} {
		quick := draws(3, times, func(d *dice) float64 { return d.p99(n, 300, 0.5) })
		slow := draws(4, times, func(d *dice) float64 {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = 300 * math.Exp(0.5*(d.rng.NormFloat64()-z99))
			}
			slices.Sort(xs)
			return xs[rankOf99(n)-1]
		})
		slices.Sort(quick)
		slices.Sort(slow)
		gap := 0.0
		for i, j := 0, 0; i < times && j < times; {
			if quick[i] < slow[j] {
				i++
			} else {
				j++
			}
			gap = max(gap, math.Abs(float64(i-j))/times)
		}
		if limit := 2.0 * math.Sqrt(2.0/times); gap > limit { // chance below 0.001
			t.Errorf("n %d: the distributions differ by %g, limit %g", n, gap, limit)
		}
	}
}

// Both ways of drawing agree where one gives way to the other.
func TestP99OfManyRequestsGoesOnAsBefore(t *testing.T) {
	const times = 2000
	few, fewVar := moments(draws(6, times, func(d *dice) float64 { return d.p99(100*manySteps-1, 300, 0.5) }))
	many, manyVar := moments(draws(7, times, func(d *dice) float64 { return d.p99(100*manySteps+100, 300, 0.5) }))
	if math.Abs(few-many) > 5*math.Sqrt((fewVar+manyVar)/times) || math.Abs(fewVar/manyVar-1) > 0.25 {
		t.Errorf("mean %g and %g, variance %g and %g", few, many, fewVar, manyVar)
	}
	if math.Abs(few-300) > 1 {
		t.Errorf("mean of large windows is %g, want about the distribution's own 300", few)
	}
}

func TestRankOf99IsNearestRank(t *testing.T) {
	for n, want := range map[int64]int64{1: 1, 2: 2, 99: 99, 100: 99, 101: 100, 199: 198, 200: 198, 201: 199, 1000: 990} {
		if got := rankOf99(n); got != want {
			t.Errorf("rank of %d values is %d, want %d", n, got, want)
		}
	}
}

func TestMeanCostHasMeanAndVarianceOfTheMeanOfSingleDraws(t *testing.T) {
	const times, level, sigma = 40_000, 0.004, 0.8
	for _, n := range []int64{1, 10, 1000} {
		mean, variance := moments(draws(5, times, func(d *dice) float64 { return d.mean(n, level, sigma) }))
		want := level * level * math.Expm1(sigma*sigma) / float64(n)
		if math.Abs(mean-level) > 5*math.Sqrt(want/times) {
			t.Errorf("n %d: mean %g, want %g", n, mean, level)
		}
		if math.Abs(variance/want-1) > 0.15 {
			t.Errorf("n %d: variance %g, want %g", n, variance, want)
		}
	}
}

// Neighbouring seeds, streams and ticks must not be alike.
func TestStreamsAreUnrelated(t *testing.T) {
	const times = 20_000
	uniform := func(seed uint64, stream int) []float64 {
		var d dice
		d.init(seed)
		out := make([]float64, times)
		for i := range out {
			out[i] = d.at(stream, i).rng.Float64() - 0.5
		}
		return out
	}
	base := uniform(1, 0)
	lagged := append(slices.Clone(base[1:]), base[0])
	for name, other := range map[string][]float64{"seed": uniform(2, 0), "stream": uniform(1, 1), "tick": lagged} {
		sum := 0.0
		for i := range base {
			sum += base[i] * other[i]
		}
		if r := sum / times * 12; math.Abs(r) > 5/math.Sqrt(times) {
			t.Errorf("the next %s is correlated by %g", name, r)
		}
	}
	mean, variance := moments(base)
	if math.Abs(mean) > 0.01 || math.Abs(variance-1.0/12) > 0.003 {
		t.Errorf("first draws have mean %g and variance %g, want 0 and 1/12", mean, variance)
	}
}
