// Package stats is the arithmetic of calibration: moments, p-charts,
// dispersion, exact binomial tails, quantiles by rank and the smallest sample
// a threshold can be judged on. Every function names the source of its formula
// and is tested against a published case.
//
// It is pure. Rates are fractions of 1, never percentage points; counts are
// int64. A figure that does not exist (the standard deviation of one value) is
// NaN, never 0.
package stats
