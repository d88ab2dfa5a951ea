package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Heterogeneity says how far results differ between studies, or windows, beyond
// their own variances.
type Heterogeneity struct {
	Tau2 float64 // variance of the true values between the studies
	Q    float64 // Cochran's Q: about K-1 if there is none
	I2   float64 // share of the variation that is not chance, 0 to 1
	H2   float64 // Q/(K-1), at least 1
}

// DerSimonianLaird estimates the variance between studies with results y and
// known variances v by the method of moments (DerSimonian and Laird 1986),
// truncated at 0; I2 and H2 as by Higgins and Thompson 2002. y and v have the
// same length; all is NaN below two studies.
func DerSimonianLaird(y, v []float64) Heterogeneity {
	if len(y) < 2 {
		return Heterogeneity{Tau2: math.NaN(), Q: math.NaN(), I2: math.NaN(), H2: math.NaN()}
	}
	var w, ww, wy float64
	for i := range y {
		w += 1 / v[i]
		ww += 1 / float64(v[i]*v[i])
		wy += y[i] / v[i]
	}
	h, mean, free := Heterogeneity{}, wy/w, float64(len(y)-1)
	for i := range y {
		d := y[i] - mean
		h.Q += d * d / v[i]
	}
	h.Tau2 = max(0, (h.Q-free)/(w-ww/w))
	h.H2 = max(1, h.Q/free)
	h.I2 = 1 - 1/h.H2
	return h
}

// TauDL returns the standard deviation of the true rate between windows by the
// DerSimonian-Laird moments with the pooled variance p0 q0/n_i in each window:
// tau^2 = p0 q0 (Q-(k-1))/(N - sum n_i^2/N), at least 0. Windows without
// samples are left out; NaN where [Disperse] has no Phi.
func TauDL(ps []Proportion) float64 {
	d, p0 := Disperse(ps), Pool(ps).Rate()
	if math.IsNaN(d.Phi) {
		return math.NaN()
	}
	return math.Sqrt(max(0, p0*(1-p0)*(d.Q-float64(d.K-1))/spreadOfSizes(ps)))
}

// ICC returns the intraclass correlation of requests of one window, by moments:
// (Q-(k-1))/(C-(k-1)), C = N - sum n_i^2/N, between 0 and 1 (Kleinman 1973;
// Williams 1982). It is NaN where [Disperse] has no Phi, and for windows of one
// request each.
func ICC(ps []Proportion) float64 {
	d := Disperse(ps)
	free := float64(d.K - 1)
	c := spreadOfSizes(ps) - free
	if math.IsNaN(d.Phi) || c <= 0 {
		return math.NaN()
	}
	return min(1, max(0, (d.Q-free)/c))
}

// TauOfICC returns the standard deviation between windows that an intraclass
// correlation stands for: sqrt(rho p0 q0).
func TauOfICC(rho, p0 float64) float64 { return math.Sqrt(rho * p0 * (1 - p0)) }

// ICCOf is the inverse of [TauOfICC], for a variance between windows of tau^2
// or of more than one part; 0 for a p0 of 0 or 1, and at most 1. It is what
// [BetaBinomialCDF] takes.
func ICCOf(variance, p0 float64) float64 {
	if pq := p0 * (1 - p0); pq > 0 {
		return min(1, variance/pq)
	}
	return 0
}

// spreadOfSizes returns N - sum n_i^2/N.
func spreadOfSizes(ps []Proportion) float64 {
	var n, nn float64
	for _, p := range ps {
		n += float64(p.N)
		nn += float64(float64(p.N) * float64(p.N))
	}
	return n - nn/n
}

// quartile is the deviation that half of a normal population stays below.
const quartile = 0.6744897501960817

// TauRobust returns the standard deviation of the true rate between windows as
// incidents do not move it: the tau >= 0 at which the median of |p_i -
// m|/sqrt(m(1-m)/n_i + tau^2), m the median rate, is that of a normal variable,
// 0.67449. It is the estimating equation of Paule and Mandel 1982 with a median
// in place of the mean, so that up to half of the windows may be bad. Below
// about 50 requests a window the steps of 1/n make it unreliable. Windows
// without samples are left out; NaN below two windows.
func TauRobust(ps []Proportion) float64 {
	var rates, sizes []float64
	for _, p := range ps {
		if p.N > 0 {
			rates, sizes = append(rates, p.Rate()), append(sizes, float64(p.N))
		}
	}
	if len(rates) < 2 {
		return math.NaN()
	}
	m, zs := Median(rates), make([]float64, len(rates))
	wide := func(tau2 float64) bool {
		for i, rate := range rates {
			zs[i] = 0
			if d := math.Abs(rate - m); d > 0 {
				zs[i] = d / math.Sqrt(m*(1-m)/sizes[i]+tau2)
			}
		}
		return Median(zs) > quartile
	}
	if !wide(0) {
		return 0
	}
	return math.Sqrt(bisect(wide, 0, 0.25)) // a rate varies by at most 1/2
}

// TauUpper returns the upper limit of the standard deviation of the true rate
// between windows at a one-sided confidence: the tau at which Q, each window
// weighed by chance and tau, falls to that quantile of chi-squared (Q-profile,
// Viechtbauer 2007). It is 0 where even no noise would explain less.
func TauUpper(ps []Proportion, confidence float64) float64 {
	p0 := Pool(ps).Rate()
	k := 0
	for _, p := range ps {
		if p.N > 0 {
			k++
		}
	}
	if k < 2 || !(p0 > 0 && p0 < 1) {
		return math.NaN()
	}
	target := distuv.ChiSquared{K: float64(k - 1)}.Quantile(1 - confidence)
	above := func(tau float64) bool { return profileQ(ps, p0, tau) > target }
	if !above(0) {
		return 0
	}
	return bisect(above, 0, 1)
}

// profileQ is the weighted sum of squares about the weighted mean, with weights
// 1/(p0 q0/n + tau^2).
func profileQ(ps []Proportion, p0, tau float64) float64 {
	var weights, sum float64
	weight := func(p Proportion) float64 { return 1 / (p0*(1-p0)/float64(p.N) + float64(tau*tau)) }
	for _, p := range ps {
		if p.N > 0 {
			weights += weight(p)
			sum += float64(weight(p) * p.Rate())
		}
	}
	q := 0.0
	for _, p := range ps {
		if d := p.Rate() - sum/weights; p.N > 0 {
			q += float64(weight(p) * d * d)
		}
	}
	return q
}
