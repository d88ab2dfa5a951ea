package stats

import "math"

// MeanSD returns the arithmetic mean and the sample standard deviation
// (divisor n-1) in two passes, so that rates near 1 lose no digits (Chan, Golub
// and LeVeque 1983, corrected two-pass). The mean of nothing and the deviation
// of fewer than two values are NaN.
func MeanSD(xs []float64) (mean, sd float64) {
	n := float64(len(xs))
	if n == 0 {
		return math.NaN(), math.NaN()
	}
	for _, x := range xs {
		mean += x
	}
	mean /= n
	if n < 2 {
		return mean, math.NaN()
	}
	var squares, rest float64 // rest would be 0 but for rounding: it corrects both
	for _, x := range xs {
		d := x - mean
		squares += d * d
		rest += d
	}
	return mean + rest/n, math.Sqrt((squares - rest*rest/n) / (n - 1))
}
