package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Proportion is X of N: solved of judged, defects of a sample.
type Proportion struct {
	X, N int64
}

// Rate returns X/N, or NaN for N 0.
func (p Proportion) Rate() float64 { return float64(p.X) / float64(p.N) }

// Pool adds proportions up: the centre of a p-chart with unequal samples is
// the pooled rate, not the mean of the rates (Montgomery, Introduction to
// Statistical Quality Control, 7.3).
func Pool(ps []Proportion) Proportion {
	var sum Proportion
	for _, p := range ps {
		sum.X += p.X
		sum.N += p.N
	}
	return sum
}

// BinomialSD returns the standard deviation of the rate of n independent
// requests at rate p0.
func BinomialSD(p0 float64, n int64) float64 {
	return math.Sqrt(p0 * (1 - p0) / float64(n))
}

// ControlLimits returns the limits of a p-chart for a sample of n, z standard
// deviations from the centre, cut at 0 and 1.
func ControlLimits(p0 float64, n int64, z float64) (lower, upper float64) {
	d := z * BinomialSD(p0, n)
	return max(0, p0-d), min(1, p0+d)
}

// Dispersion says how much the rates of K windows vary, against what chance
// alone would do.
type Dispersion struct {
	K   int
	Q   float64 // sum of z_i^2 against the pooled rate; chance alone: about K-1
	Phi float64 // Q/(K-1): 1 is chance alone, above it the rate itself moves
}

// Disperse compares windows with the binomial (the overdispersion test of
// Wetherill and Brown 1991, also in R's qcc). Windows without samples are left
// out. Q and Phi are NaN if the pooled rate is 0 or 1, where chance has no
// spread to compare with; Phi also for fewer than two windows.
func Disperse(ps []Proportion) Dispersion {
	p0 := Pool(ps).Rate()
	d := Dispersion{Q: math.NaN(), Phi: math.NaN()}
	q := 0.0
	for _, p := range ps {
		if p.N > 0 {
			d.K++
			z := (p.Rate() - p0) / BinomialSD(p0, p.N)
			q += z * z
		}
	}
	if p0 > 0 && p0 < 1 {
		d.Q = q
		if d.K > 1 {
			d.Phi = q / float64(d.K-1)
		}
	}
	return d
}

// DisperseCounts compares counts X of rare events in N requests with the Poisson:
// Q is the sum of (X_i - u N_i)^2/(u N_i), u the pooled rate, and Phi for equal
// N their variance over their mean (Fisher's index of dispersion; Wetherill and
// Brown 1991). Windows without requests are left out. Q and Phi are NaN if
// nothing happened; Phi also for fewer than two windows.
func DisperseCounts(ps []Proportion) Dispersion {
	u := Pool(ps).Rate()
	d := Dispersion{Q: math.NaN(), Phi: math.NaN()}
	q := 0.0
	for _, p := range ps {
		if p.N > 0 {
			d.K++
			expected := u * float64(p.N)
			off := float64(p.X) - expected
			q += off * off / expected
		}
	}
	if u > 0 {
		d.Q = q
		if d.K > 1 {
			d.Phi = q / float64(d.K-1)
		}
	}
	return d
}

// PValues returns the chance of a Q at most and at least as large if only
// chance were at work (chi-squared, K-1 degrees of freedom); NaN without Q.
func (d Dispersion) PValues() (below, above float64) {
	if math.IsNaN(d.Phi) {
		return math.NaN(), math.NaN()
	}
	chi2 := distuv.ChiSquared{K: float64(d.K - 1)}
	return chi2.CDF(d.Q), chi2.Survival(d.Q)
}
