package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Garwood returns the exact two-sided interval of a Poisson rate of which x
// events were seen in so much exposure: chi2_{a/2}(2x)/2 and chi2_{1-a/2}(2x+2)/2
// over the exposure, a = 1-confidence (Garwood 1936).
func Garwood(x int64, exposure, confidence float64) (lower, upper float64) {
	a := (1 - confidence) / 2
	if x > 0 {
		lower = mathext.GammaIncRegInv(float64(x), a) / exposure
	}
	return lower, mathext.GammaIncRegCompInv(float64(x)+1, a) / exposure
}

// PoissonUpper is the one-sided form of [Garwood]: what the rate is below with
// this confidence. With nothing seen it is the rule of three.
func PoissonUpper(x int64, exposure, confidence float64) float64 {
	return mathext.GammaIncRegCompInv(float64(x)+1, 1-confidence) / exposure
}

// ClopperPearson returns the exact two-sided interval of a proportion: the
// rates at which x of n or more, and x of n or fewer, have the chance
// (1-confidence)/2 (Clopper and Pearson 1934). For n 0 it is 0 to 1.
func ClopperPearson(x, n int64, confidence float64) (lower, upper float64) {
	a := (1 - confidence) / 2
	return lowerLimit(x, n, a), 1 - lowerLimit(n-x, n, a)
}

// lowerLimit solves P(Bin(n, p) >= x) = a for p.
func lowerLimit(x, n int64, a float64) float64 {
	if x <= 0 {
		return 0
	}
	return mathext.InvRegIncBeta(float64(x), float64(n-x)+1, a)
}

// Wilson returns the score interval of a proportion (Wilson 1927; Newcombe 1998,
// method 3): shorter than the exact one and right on average. For n 0 it is 0
// to 1.
func Wilson(x, n int64, confidence float64) (lower, upper float64) {
	if n <= 0 {
		return 0, 1
	}
	z, m := Sigmas((1-confidence)/2), float64(n)
	p, zz := float64(x)/m, float64(z*z)
	centre := p + zz/(2*m)
	half := z * math.Sqrt(p*(1-p)/m+zz/(4*m*m))
	if lower = (centre - half) / (1 + zz/m); x == 0 {
		lower = 0
	}
	if upper = (centre + half) / (1 + zz/m); x == n {
		upper = 1
	}
	return lower, upper
}

// QuantileRanks returns the ranks, from 1, of the two of n sorted values between
// which the true q-quantile lies with at least this confidence, whatever the
// distribution: equal tails of Bin(n, q), summed exactly (David and Nagaraja,
// Order Statistics, 7.1). lo 0 or hi n+1 says that n values do not bound the
// quantile on that side.
func QuantileRanks(n int64, q release.Ratio, confidence float64) (lo, hi int64) {
	p, a := q.Float64(), (1-confidence)/2
	// Value lo is above the quantile if fewer than lo values are below it.
	lo = smallest(func(k int64) bool { return BinomialCDF(k, n, p) > a }, n)
	return lo, BinomialCritical(n, p, a)
}

// QuantileBoundSamples returns how many values it takes for their largest to
// bound the q-quantile from above with this confidence, whatever the
// distribution: ln(1-confidence)/ln q (Wilks 1941). 299 for the p99 at 95 %.
func QuantileBoundSamples(q release.Ratio, confidence float64) int64 {
	return ceilSamples(math.Log1p(-confidence) / math.Log(q.Float64()))
}
