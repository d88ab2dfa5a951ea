package stats

import "gonum.org/v1/gonum/mathext"

// PoissonCDF returns P(X <= k) for X ~ Poisson(lambda) as the regularised upper
// incomplete gamma function Q(k+1, lambda) (Abramowitz and Stegun 26.4.21).
func PoissonCDF(k int64, lambda float64) float64 {
	switch {
	case k < 0:
		return 0
	case lambda <= 0:
		return 1
	}
	return mathext.GammaIncRegComp(float64(k)+1, lambda)
}

// PoissonTail returns P(X >= k) as P(k, lambda): small tails keep their digits,
// which 1 less the CDF loses from 1e-16 on.
func PoissonTail(k int64, lambda float64) float64 {
	switch {
	case k <= 0:
		return 1
	case lambda <= 0:
		return 0
	}
	return mathext.GammaIncReg(float64(k), lambda)
}

// PoissonQuantile returns the smallest k with P(X <= k) >= q, for q below 1.
func PoissonQuantile(lambda, q float64) int64 {
	return smallest(func(k int64) bool { return PoissonCDF(k, lambda) >= q }, int64(2*lambda))
}

// PoissonCritical returns the smallest count c that a healthy service reaches
// with a chance of at most alpha: P(X >= c) <= alpha.
func PoissonCritical(lambda, alpha float64) int64 {
	return smallest(func(c int64) bool { return PoissonTail(c, lambda) <= alpha }, int64(2*lambda))
}

// nearlyPoisson is the excess of phi over 1 below which a negative binomial is
// taken for a Poisson: its tails differ by less than the incomplete beta
// function errs at a size of mean/(phi-1).
const nearlyPoisson = 1e-7

// NegBinomialCDF returns P(X <= k) for a negative binomial count with this mean
// and the variance phi times the mean: a Poisson count whose rate moves from
// window to window (Greenwood and Yule 1920). With size r = mean/(phi-1) it is
// I_{1/phi}(r, k+1) (Abramowitz and Stegun 26.5.26). phi of 1 and less is
// [PoissonCDF]: counts are never taken for steadier than chance.
func NegBinomialCDF(k int64, mean, phi float64) float64 {
	switch {
	case phi-1 < nearlyPoisson:
		return PoissonCDF(k, mean)
	case k < 0:
		return 0
	case mean <= 0:
		return 1
	}
	return mathext.RegIncBeta(mean/(phi-1), float64(k)+1, 1/phi)
}

// NegBinomialTail returns P(X >= k), without cancellation.
func NegBinomialTail(k int64, mean, phi float64) float64 {
	switch {
	case phi-1 < nearlyPoisson:
		return PoissonTail(k, mean)
	case k <= 0:
		return 1
	case mean <= 0:
		return 0
	}
	return mathext.RegIncBeta(float64(k), mean/(phi-1), (phi-1)/phi)
}

// NegBinomialQuantile returns the smallest k with P(X <= k) >= q, for q below 1.
func NegBinomialQuantile(mean, phi, q float64) int64 {
	return smallest(func(k int64) bool { return NegBinomialCDF(k, mean, phi) >= q }, int64(2*mean))
}

// NegBinomialCritical returns the smallest c with P(X >= c) <= alpha.
func NegBinomialCritical(mean, phi, alpha float64) int64 {
	return smallest(func(c int64) bool { return NegBinomialTail(c, mean, phi) <= alpha }, int64(2*mean))
}
