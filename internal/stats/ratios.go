package stats

import "math"

// Average is the mean of N values and their coefficient of variation, standard
// deviation over mean.
type Average struct {
	Mean, CV float64
	N        int64
}

// LogRatio returns the logarithm of the ratio of two means and its standard
// error: Var(ln R) = cv_c^2/n_c + cv_b^2/n_b (the delta method; Fieller 1954
// for what it approximates). On the log scale the interval of a ratio of costs
// with a heavy tail is nearly right where that of the difference is not. NaN
// unless both means are above 0.
func LogRatio(canary, baseline Average) (ln, se float64) {
	if canary.Mean <= 0 || baseline.Mean <= 0 {
		return math.NaN(), math.NaN()
	}
	c := canary.CV * canary.CV / float64(canary.N)
	b := baseline.CV * baseline.CV / float64(baseline.N)
	return math.Log(canary.Mean / baseline.Mean), math.Sqrt(c + b)
}

// RatioSamples returns how many requests of a coefficient of variation cv it
// takes until z standard errors of their mean are within the excess ratio, 0.2
// for a limit of 1.2 times the baseline: ceil((z cv/excess)^2).
func RatioSamples(cv, excess, z float64) int64 {
	x := z * cv / excess
	return ceilSamples(x * x)
}
