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
	floor, p := new(big.Rat).Sub(p0.Rat(), drop.Rat()), p0.Float64()
	if floor.Sign() <= 0 {
		return 0, ErrNeverTrips
	}
	if drop.Compare(1, 100_000) > 0 {
		return 0, ErrTooSmall
	}
	if p >= 1 {
		return 1, nil // whoever never fails is never seen below 1
	}
	trip, err := release.RatioOf(floor)
	if err != nil {
		return 0, err
	}
	// Beyond Chernoff's bound every n is good; the largest bad one lies below it.
	bound := math.Ceil(math.Log(1/alpha) / divergence(trip.Float64(), p))
	if bound > exactLimit {
		return int64(bound), nil
	}
	for n := int64(bound); n > 1; n-- {
		if BinomialCDF(trip.FloorOf(n-1), n-1, p) > alpha {
			return n, nil
		}
	}
	return 1, nil
}

// divergence is the Kullback-Leibler divergence of a coin of a from one of p.
func divergence(a, p float64) float64 {
	return a*math.Log(a/p) + (1-a)*math.Log((1-a)/(1-p))
}
