// Package draw holds what every source of random numbers of the project
// shares: how a stream gets its seed, and small binomial counts. It keeps
// nothing; the same arguments and generator give the same numbers.
package draw

import (
	"math"
	"math/rand/v2"
)

// Seed returns the two halves of a PCG's seed for one place of one stream of a
// run. Streams and places that are neighbours come out unrelated.
func Seed(run, stream, place uint64) (hi, lo uint64) {
	hi = Mix(run + stream*0x9e3779b97f4a7c15)
	return hi, Mix(hi ^ Mix(place))
}

// Mix is the finaliser of SplitMix64 (Steele, Lea and Flood 2014): neighbours
// come out unrelated.
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Inversion draws how many of n requests happen with chance p each, for p
// above 0 and below 1, by going up the distribution function: it takes about
// n p steps, so it is for small n p. logQ is ln(1-p), which callers that ask
// for the same p again keep. It is algorithm BINV of Kachitvichyanukul and
// Schmeiser (1988), exact up to the rounding of floats while (1-p)^n is no
// smaller than a float can be.
func Inversion(rng *rand.Rand, n int64, p, logQ float64) int64 {
	return FromNone(rng.Float64(), n, p, math.Exp(float64(n)*logQ))
}

// FromNone is [Inversion] of a number u drawn uniformly from [0, 1), for callers
// that keep (1-p)^n, the chance of none.
func FromNone(u float64, n int64, p, none float64) int64 {
	odds, term := p/(1-p), none
	k := int64(0)
	for u > term && k < n {
		u -= term
		k++
		term = nextTerm(term, odds, n, k)
	}
	return k
}
