package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// HoldTime returns how many minutes a step must last until its gate, one look
// at everything since it began, can tell a fall of drop below p0 from noise:
// inflation L ((z_a sqrt(v0) + z_b sqrt(v1))/drop)^2, at least one window of L
// minutes, with v = p q/(rate L) + tauL^2 in each. Chance averages out with
// traffic, the noise tauL between L-windows only with time; inflation is
// (1+r1)/(1-r1) of those windows where they hang together (the one-sample size
// of Fleiss, Levin and Paik, Statistical Methods for Rates and Proportions,
// 2.4, with the variance of an autocorrelated mean). A healthy canary is passed
// with the chance of [Sigmas]' zAlpha, a bad one stopped with power.
func HoldTime(p0, drop, ratePerMin, tauL, l, inflation, zAlpha, power float64) float64 {
	p1, n := max(0, p0-drop), ratePerMin*l
	sd := func(p float64) float64 { return math.Sqrt(p*(1-p)/n + float64(tauL*tauL)) }
	looks := (float64(zAlpha*sd(p0)) + float64(Sigmas(1-power)*sd(p1))) / drop
	return max(l, inflation*l*looks*looks)
}

// WaitForSamples returns after how many minutes n requests have arrived with
// this confidence, at perMin a minute on average and independently: the waiting
// time is Gamma distributed, chi2_conf(2n)/(2 perMin).
func WaitForSamples(n int64, perMin, conf float64) float64 {
	if n <= 0 {
		return 0
	}
	return mathext.GammaIncRegInv(float64(n), conf) / perMin
}
