package stats

import (
	"errors"
	"math"
	"math/big"

	"github.com/canaryctl/canaryctl/internal/release"
)

// ErrNeverTrips says that a drop reaches or passes the whole rate: no number
// of samples lets it be judged.
var ErrNeverTrips = errors.New("the drop is not below the rate it is taken from")

// ErrTooSmall says that a drop is below 0.001 percentage points: hundreds of
// millions of samples would not show it.
var ErrTooSmall = errors.New("the drop is below 0.001 percentage points")

// exactLimit is how far MinSamples counts exactly; one look costs about a
// microsecond.
const exactLimit = 1_000_000

// ErrNotBeyond says that a drop does not go beyond the threshold: no number of
// samples makes it likely to be seen.
var ErrNotBeyond = errors.New("the drop is not larger than the threshold")

// MinSamples returns the smallest N such that for every n >= N a service that
// truly solves p0 of its requests is seen at or below p0-drop with a chance of
// at most alpha: P(Bin(n, p0) <= (p0-drop) n) <= alpha. The chance is a
// sawtooth in n, so the first n that is good enough is not the answer.
// (p0-drop) n is compared in exact rationals: 160 of 200 is at 0.80.
//
// Above a million samples it returns Chernoff's bound ln(1/alpha)/KL, which is
// enough and at most half too large. The error is [ErrNeverTrips] for a drop
// of p0 or more, and [ErrTooSmall].
func MinSamples(p0, drop release.Ratio, alpha float64) (int64, error) {
	return minSamples(p0, drop, alpha, release.Ratio.FloorOf)
}

// MinSamplesBelow is [MinSamples] for a rule that trips only strictly below
// p0-drop, as that of the fitted threshold and most tables of sample sizes.
func MinSamplesBelow(p0, drop release.Ratio, alpha float64) (int64, error) {
	return minSamples(p0, drop, alpha, lastBelow)
}

// lastBelow returns the largest count that is strictly below r of n.
func lastBelow(r release.Ratio, n int64) int64 {
	k := r.FloorOf(n)
	if r.Compare(k, n) == 0 {
		k--
	}
	return k
}

// minSamples is MinSamples for a rule that trips at last(p0-drop, n) of n
// solved and fewer.
func minSamples(p0, drop release.Ratio, alpha float64, last func(release.Ratio, int64) int64) (int64, error) {
	trip, err := tripRate(p0, drop)
	if err != nil {
		return 0, err
	}
	p := p0.Float64()
	if p >= 1 {
		return 1, nil // whoever never fails is never seen below 1
	}
	return afterLastBad(alpha, divergence(trip.Float64(), p), func(n int64) bool {
		return BinomialCDF(last(trip, n), n, p) > alpha
	}), nil
}

// tripRate returns p0-drop.
func tripRate(p0, drop release.Ratio) (release.Ratio, error) {
	floor := new(big.Rat).Sub(p0.Rat(), drop.Rat())
	if floor.Sign() <= 0 {
		return release.Ratio{}, ErrNeverTrips
	}
	if drop.Compare(1, 100_000) > 0 {
		return release.Ratio{}, ErrTooSmall
	}
	return release.RatioOf(floor)
}

// afterLastBad returns the smallest N from which on no n is bad. Beyond
// Chernoff's bound ln(1/alpha)/kl every n is good; the largest bad one lies
// below it.
func afterLastBad(alpha, kl float64, bad func(n int64) bool) int64 {
	bound := math.Ceil(math.Log(1/alpha) / kl)
	if bound > exactLimit {
		return int64(bound)
	}
	for n := int64(bound); n > 1; n-- {
		if bad(n - 1) {
			return n
		}
	}
	return 1
}

// divergence is the Kullback-Leibler divergence of a coin of a from one of p.
func divergence(a, p float64) float64 {
	return a*math.Log(a/p) + (1-a)*math.Log((1-a)/(1-p))
}
