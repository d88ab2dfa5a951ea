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

// BinomialQuantile returns the smallest k with P(X <= k) >= q, for q up to 1.
func BinomialQuantile(n int64, p, q float64) int64 {
	return smallest(func(k int64) bool { return BinomialCDF(k, n, p) >= q }, n)
}

// BinomialCritical returns the smallest count c that is reached with a chance
// of at most alpha: P(X >= c) <= alpha. Judging how many of n requests are
// slower than the baseline's p99 this way (p 0.01) needs no p99 of a small
// window, which for fewer than some 300 requests is only their slowest. It is
// n+1 if not even all n are that rare.
func BinomialCritical(n int64, p, alpha float64) int64 {
	return smallest(func(c int64) bool { return c > n || BinomialTail(c, n, p) <= alpha }, n)
}

// OneSided returns the chance that a normal variable lies more than z standard
// deviations above its mean: 0.00134990 for 3, to full relative precision.
func OneSided(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }

// Sigmas is the inverse of [OneSided]: the z that a normal variable exceeds with
// the chance alpha, 3 for 0.00134990. +Inf for alpha 0.
func Sigmas(alpha float64) float64 {
	switch {
	case alpha <= 0:
		return math.Inf(1)
	case alpha > 0.5:
		return -Sigmas(1 - alpha)
	}
	return bisect(func(z float64) bool { return OneSided(z) > alpha }, 0, 40)
}

// RuleOfThree returns the upper 95 % limit of a rate of which nothing was seen
// in n independent tries: 1 - 0.05^(1/n), about 3/n (Hanley and Lippman-Hand
// 1983). It is 1 for n 0.
func RuleOfThree(n int64) float64 {
	if n <= 0 {
		return 1
	}
	return -math.Expm1(math.Log(0.05) / float64(n))
}
