package draw

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// The chance of every count against the distribution function: none further
// off than five sigma.
func TestInversionHasItsDistribution(t *testing.T) {
	const times = 40_000
	for _, law := range []distuv.Binomial{{N: 1, P: 0.3}, {N: 8, P: 0.875}, {N: 60, P: 0.02}, {N: 100, P: 0.19}, {N: 1000, P: 0.0005}, {N: 5e6, P: 2e-6}} {
		rng := rand.New(rand.NewPCG(Seed(1, uint64(law.N), 0)))
		counts := map[int64]int{}
		for range times {
			counts[Inversion(rng, int64(law.N), law.P, math.Log1p(-law.P))]++
		}
		for k := range int64(min(law.N, 60)) + 1 {
			p := law.Prob(float64(k))
			if off := math.Abs(float64(counts[k])-times*p) / math.Sqrt(times*p*(1-p)+1); off > 5 {
				t.Errorf("Bin(%g, %g): %d came %d times, want %.1f", law.N, law.P, k, counts[k], times*p)
			}
			delete(counts, k)
		}
		if len(counts) > 0 {
			t.Errorf("Bin(%g, %g) drew %v", law.N, law.P, counts)
		}
	}
}

// The first output of SplitMix64 for seed 0, as its authors' reference code
// gives it.
func TestMixIsSplitMix64(t *testing.T) {
	if got := Mix(0); got != 0xe220a8397b1dcdaf {
		t.Errorf("Mix(0) = %#x", got)
	}
}

// Every place of every stream of every run has a generator of its own.
func TestSeedsAreAllDifferent(t *testing.T) {
	type seed struct{ hi, lo uint64 }
	seen := map[seed]bool{}
	for run := range uint64(20) {
		for stream := range uint64(20) {
			for place := range uint64(20) {
				hi, lo := Seed(run, stream, place)
				seen[seed{hi, lo}] = true
			}
		}
	}
	if len(seen) != 8000 {
		t.Errorf("%d seeds for 8000 places", len(seen))
	}
}
