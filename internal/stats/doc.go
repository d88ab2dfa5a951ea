// Package stats is the arithmetic of calibration: moments, control charts,
// dispersion and the noise between windows, exact tails and critical counts
// (binomial, beta-binomial, Poisson, negative binomial), exact intervals,
// quantiles by rank, false-trip rates of moving windows, sample sizes, power and
// hold times, CUSUM and always-valid evidence. Every function names the source
// of its formula and is tested against a published case.
//
// It is pure. Rates are fractions of 1, never percentage points; counts are
// int64. A figure that does not exist (the standard deviation of one value) is
// NaN, never 0.
package stats
