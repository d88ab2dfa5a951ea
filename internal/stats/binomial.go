package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// BinomialCDF returns P(X <= k) for X ~ Bin(n, p) as the regularised
// incomplete beta function I_{1-p}(n-k, k+1) (Abramowitz and Stegun 26.5.24):
// small tails come out to full relative precision, not as 1 less something.
func BinomialCDF(k, n int64, p float64) float64 {
	switch {
	case k < 0:
		return 0
	case k >= n:
		return 1
	case p <= 0:
		return 1
	case p >= 1:
		return 0
	}
	return mathext.RegIncBeta(float64(n-k), float64(k+1), 1-p)
}

// BinomialTail returns P(X >= k) for X ~ Bin(n, p), likewise without
// cancellation: I_p(k, n-k+1).
func BinomialTail(k, n int64, p float64) float64 {
	switch {
	case k <= 0:
		return 1
	case k > n:
		return 0
	case p <= 0:
		return 0
	case p >= 1:
		return 1
	}
	return mathext.RegIncBeta(float64(k), float64(n-k+1), p)
}

// OneSided returns the chance that a normal variable lies more than z standard
// deviations above its mean: 0.00134990 for 3, to full relative precision.
func OneSided(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }

// RuleOfThree returns the upper 95 % limit of a rate of which nothing was seen
// in n independent tries: 1 - 0.05^(1/n), about 3/n (Hanley and Lippman-Hand
// 1983). It is 1 for n 0.
func RuleOfThree(n int64) float64 {
	if n <= 0 {
		return 1
	}
	return -math.Expm1(math.Log(0.05) / float64(n))
}
