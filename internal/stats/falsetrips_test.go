package stats

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"pgregory.net/rapid"
)

const minutesPerWeek = 10080

func TestFalseTripsOfAMovingWindow(t *testing.T) {
	for b, want := range map[float64]float64{2.5: 11.5, 3: 3.21, 3.5: .68, 4: .110} {
		near(t, "a week", minutesPerWeek*FalseTripRate(b, 25), want, 0.005*want)
	}
	// It lies between one look per window and one look per minute, either of which people use.
	perWeek := minutesPerWeek * FalseTripRate(3, 25)
	near(t, "disjoint windows", minutesPerWeek/25*OneSided(3), 0.54, 0.005)
	near(t, "every minute", minutesPerWeek*OneSided(3), 13.6, 0.05)
	if perWeek < 0.54 || perWeek > 13.6 {
		t.Errorf("%v a week", perWeek)
	}
}

func TestMultiplierOfABudget(t *testing.T) {
	for perWeek, want := range map[float64]float64{5: 2.839, 1: 3.384, .5: 3.590, .1: 4.024, .05: 4.196, .01: 4.569} {
		near(t, "budget a week", Multiplier(perWeek/minutesPerWeek, 25), want, 6e-4)
	}
	for hours, want := range map[float64][2]float64{1: {2.63, 3.22}, 6: {3.28, 3.75}, 24: {3.69, 4.11}, 72: {3.98, 4.38}} {
		near(t, "5 % of releases", Multiplier(.05/60/hours, 25), want[0], 6e-3)
		near(t, "1 % of releases", Multiplier(.01/60/hours, 25), want[1], 6e-3)
	}
	if b := Multiplier(0, 25); !math.IsInf(b, 1) {
		t.Errorf("no false trip ever: %v", b)
	}
	if b := Multiplier(math.NaN(), 25); !math.IsNaN(b) {
		t.Errorf("no budget: %v", b)
	}
	if b := Multiplier(1, 25); math.Abs(b-1) > 1e-12 {
		t.Errorf("a trip a minute: %v", b)
	}
	// The threshold of 10 pp that gives 5 false trips a week belongs to a noise of 3.52 pp.
	near(t, "sigma", 10/Multiplier(5.0/minutesPerWeek, 25), 3.52, 5e-3)
}

func TestMultiplierIsTheInverseOfFalseTripRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.Float64Range(1.01, 8).Draw(t, "b")
		w := rapid.Float64Range(1, 500).Draw(t, "w")
		if got := Multiplier(FalseTripRate(b, w), w); math.Abs(got-b) > 1e-9 {
			t.Fatalf("b %v, w %v: back to %v", b, w, got)
		}
		if FalseTripRate(b+0.01, w) >= FalseTripRate(b, w) || FalseTripRate(b, w*1.01) >= FalseTripRate(b, w) {
			t.Fatalf("b %v, w %v: a higher limit or a longer window trips as often", b, w)
		}
	})
}

func TestDiscreteLooksIsNearlyExponential(t *testing.T) {
	for x := 0.05; x < 2; x += 0.05 {
		near(t, "nu", discreteLooks(x), math.Exp(-0.583*x), 0.012)
	}
	near(t, "nu(0)", discreteLooks(0), 1, 0)
}

// The formula against what it describes: means of 25 normal values, emptied
// after a trip.
func TestFalseTripRateIsWhatHappens(t *testing.T) {
	weeks := 600
	if testing.Short() {
		weeks = 150
	}
	rng := rand.New(rand.NewPCG(8, 25))
	for b, want := range map[float64]float64{2.5: 11.95, 3: 3.19} {
		trips := movingWindowTrips(weeks*minutesPerWeek, func() float64 { return rng.NormFloat64() }, b*5)
		got := float64(trips) / float64(weeks)
		if se := math.Sqrt(want / float64(weeks)); math.Abs(got-want) > 0.05*want+3*se {
			t.Errorf("b %v: %v a week, simulated before %v, formula %v", b, got, want, minutesPerWeek*FalseTripRate(b, 25))
		}
	}
}

// movingWindowTrips counts how often the sum of the last 25 draws passes limit.
func movingWindowTrips(minutes int, draw func() float64, limit float64) (trips int) {
	var ring [25]float64
	sum, seen := 0.0, 0
	for i := range minutes {
		x := draw()
		sum += x - ring[i%25]
		ring[i%25] = x
		if seen++; seen >= 25 && sum > limit {
			trips, seen, sum = trips+1, 0, 0
			clear(ring[:])
		}
	}
	return trips
}

func TestSkewMultiplierAndItsThresholds(t *testing.T) {
	for _, c := range []struct {
		n                int64
		tau              float64
		sigma, z, points float64
	}{
		{250, 0, 1.8974, 4.4216, 8.39}, {200, 0, 0, 4.4714, 9.49}, {650, 0, 0, 4.2615, 5.01}, {250, .019, 2.685, 4.149, 11.14},
		{125, .019, 0, 0, 14.22}, {25, .019, 0, 0, 32.4}, {2500, .019, 0, 0, 7.98},
	} {
		sigma := NoiseSigma(.9, c.n, c.tau, 0)
		z := SkewMultiplier(4, .9, c.n, sigma)
		if c.sigma != 0 {
			near(t, "sigma", 100*sigma, c.sigma, 3e-3)
		}
		if c.z != 0 {
			near(t, "multiplier", z, c.z, 5e-4)
		}
		near(t, "threshold", 100*z*sigma, c.points, 0.03) // published without 1-1/n beside tau
	}
	sigma := NoiseSigma(.9, 250, 0, 0)
	near(t, "sigma", 100*sigma, 1.8974, 5e-5)
	near(t, "multiplier", SkewMultiplier(4, .9, 250, sigma), 4.4216, 5e-5)
	near(t, "symmetric at one half", SkewMultiplier(4, .5, 250, NoiseSigma(.5, 250, 0, 0)), 4, 0)
	near(t, "one request varies as a coin, whatever tau", NoiseSigma(.9, 1, .2, 0), .3, 1e-15)
	near(t, "an uncertain baseline adds", NoiseSigma(.9, 100, 0, .04), .05, 1e-15)
	if s := NoiseSigma(.9, 0, .02, 0); !math.IsNaN(s) {
		t.Errorf("noise of no requests: %v", s)
	}
}

// 10 requests a minute at 0.90: the fitted threshold at 4 sigma trips 0.13 times a
// week with the skew term, as simulated before, and 0.48 times without.
func TestSkewTermKeepsTheBudget(t *testing.T) {
	weeks := 600
	if testing.Short() {
		weeks = 200
	}
	const p, perMinute, n = 0.9, 10, 250
	rng := rand.New(rand.NewPCG(4, 9))
	draw := binomialSampler(rng, perMinute, p)
	fallShort := func() float64 { return perMinute*p - draw() }
	sigma := NoiseSigma(p, n, 0, 0)
	for z, want := range map[float64]float64{SkewMultiplier(4, p, n, sigma): 0.10, 4: 0.48} {
		got := float64(movingWindowTrips(weeks*minutesPerWeek, fallShort, n*z*sigma)) / float64(weeks)
		if math.Abs(got-want) > 0.07+3*math.Sqrt(want/float64(weeks)) {
			t.Errorf("multiplier %v: %v a week, want about %v", z, got, want)
		}
	}
}

// binomialSampler draws from Bin(n, p) by its table.
func binomialSampler(rng *rand.Rand, n int64, p float64) func() float64 {
	cdf := make([]float64, n+1)
	for k := range cdf {
		cdf[k] = BinomialCDF(int64(k), n, p)
	}
	return func() float64 { return float64(sort.SearchFloat64s(cdf, rng.Float64())) }
}
