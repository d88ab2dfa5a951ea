package stats

import "math"

// NoiseSigma returns the standard deviation of the solve rate of n requests
// around its baseline p0: sqrt(p0 q0/n + tau^2 (1-1/n) + se^2). The first part
// is chance and shrinks with traffic; tau, the standard deviation of the true
// rate between windows, does not, so that noise measured on full traffic must
// not be copied to a small share nor scaled by one factor (the variance of a
// beta-binomial rate; DerSimonian and Laird 1986 for tau). se is how uncertain
// p0 itself is, 0 if it is known. NaN for n below 1.
func NoiseSigma(p0 float64, n int64, tau, se float64) float64 {
	if n < 1 {
		return math.NaN()
	}
	m := float64(n)
	return math.Sqrt(p0*(1-p0)/m + float64(tau*tau*(1-1/m)) + float64(se*se))
}

// SkewMultiplier corrects a multiplier b, meant for a normal distribution, for
// the skewness of a binomial rate against a threshold below p0: the first
// Cornish-Fisher term b + (b^2-1) gamma/6 with gamma = (2 p0-1) p0 q0/(n^2
// sigma^3), the skewness of n requests seen through the whole noise sigma of
// [NoiseSigma] (Cornish and Fisher 1938; Abramowitz and Stegun 26.2.49). Above
// p0 0.5 it is larger than b: a rate near 1 falls further than it rises. For a
// threshold above the rate, take the share of failures for p0.
func SkewMultiplier(b, p0 float64, n int64, sigma float64) float64 {
	m := float64(n)
	gamma := (2*p0 - 1) * p0 * (1 - p0) / (m * m * sigma * sigma * sigma)
	return b + float64((float64(b*b)-1)*gamma/6)
}
