package stats

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
)

func TestGarwood(t *testing.T) {
	// Garwood 1936, 95 % limits of the mean of a Poisson count.
	for _, c := range []struct {
		x      int64
		lo, hi float64
	}{{0, 0, 3.6889}, {1, 0.0253, 5.5716}, {3, 0.6187, 8.7673}, {10, 4.7954, 18.3904}} {
		lo, hi := Garwood(c.x, 1, 0.95)
		near(t, "lower", lo, c.lo, 5e-5)
		near(t, "upper", hi, c.hi, 5e-5)
		_, more := Garwood(c.x, 100, 0.95)
		digits(t, "per exposure", more, hi/100, 12)
	}
}

func TestOneSidedLimitOfARareRate(t *testing.T) {
	digits(t, "0 of 100,000", PoissonUpper(0, 1e5, 0.95), 2.99573e-5, 5)
	digits(t, "3 of 100,000", PoissonUpper(3, 1e5, 0.95), 7.75366e-5, 5)
	digits(t, "10 of 100,000", PoissonUpper(10, 1e5, 0.95), 1.69622e-4, 5)
}

func TestClopperPearson(t *testing.T) {
	// R: binom.test(51, 235, 1/6)
	lo, hi := ClopperPearson(51, 235, 0.95)
	digits(t, "lower", lo, 0.1660633298083073, 12)
	digits(t, "upper", hi, 0.2752683640289254, 12)
	// Newcombe 1998, table I, method 5.
	lo, hi = ClopperPearson(0, 20, 0.95)
	near(t, "0 of 20, lower", lo, 0, 0)
	near(t, "0 of 20, upper", hi, 0.1684, 5e-5)
	if lo, hi = ClopperPearson(0, 0, 0.95); lo != 0 || hi != 1 {
		t.Errorf("nothing seen: %v to %v", lo, hi)
	}
	if lo, hi = ClopperPearson(7, 7, 0.95); lo < 0.5 || hi != 1 {
		t.Errorf("all of 7: %v to %v", lo, hi)
	}
}

// The limits are the rates at which what was seen is just so rare.
func TestIntervalsAreTheRatesOfTheirTails(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 100_000).Draw(t, "n")
		x := rapid.Int64Range(0, n).Draw(t, "x")
		conf := rapid.SampledFrom([]float64{0.8, 0.95, 0.999}).Draw(t, "confidence")
		a := (1 - conf) / 2
		lo, hi := ClopperPearson(x, n, conf)
		wl, wh := Wilson(x, n, conf)
		gl, gh := Garwood(x, float64(n), conf)
		if x > 0 && (math.Abs(BinomialTail(x, n, lo)-a) > 1e-6*a || math.Abs(PoissonTail(x, gl*float64(n))-a) > 1e-6*a) {
			t.Fatalf("lower limits of %d of %d: %v and %v", x, n, lo, gl)
		}
		if x < n && math.Abs(BinomialCDF(x, n, hi)-a) > 1e-6*a || math.Abs(PoissonCDF(x, gh*float64(n))-a) > 1e-6*a {
			t.Fatalf("upper limits of %d of %d: %v and %v", x, n, hi, gh)
		}
		if rate := float64(x) / float64(n); lo > rate || hi < rate || wl > rate+1e-12 || wh < rate-1e-12 || wl < 0 || wh > 1 {
			t.Fatalf("%d of %d is outside its interval: %v to %v, %v to %v", x, n, lo, hi, wl, wh)
		}
	})
}

func TestWilson(t *testing.T) {
	// Newcombe 1998, table I, method 3; 19 of 38 from scipy's tests.
	for _, c := range []struct {
		x, n   int64
		lo, hi float64
		tol    float64
	}{
		{81, 263, .2553, .3662, 5e-5}, {15, 148, .0624, .1605, 5e-5}, {0, 20, 0, .1611, 5e-5}, {1, 29, .0061, .1718, 5e-5},
		{19, 38, .348499283644, .651500716356, 5e-13}, {0, 0, 0, 1, 0},
	} {
		lo, hi := Wilson(c.x, c.n, 0.95)
		near(t, "lower", lo, c.lo, c.tol)
		near(t, "upper", hi, c.hi, c.tol)
	}
	if _, hi := Wilson(20, 20, 0.95); hi != 1 {
		t.Errorf("all of 20: up to %v", hi)
	}
}

// Ranks for the p99 from the exact binomial; the normal approximation is off by
// one at 300 and 500.
func TestRanksThatBoundTheP99(t *testing.T) {
	p99 := release.MustRatio("0.99")
	for n, want := range map[int64][2]int64{300: {293, 301}, 500: {490, 500}, 1000: {983, 997}, 10000: {9880, 9920}, 3: {2, 4}, 0: {0, 1}} {
		if lo, hi := QuantileRanks(n, p99, 0.95); lo != want[0] || hi != want[1] {
			t.Errorf("%d values: ranks %d to %d, want %d to %d", n, lo, hi, want[0], want[1])
		}
	}
	for confidence, want := range map[float64]int64{0.95: 299, 0.99: 459} {
		n := QuantileBoundSamples(p99, confidence)
		if n != want {
			t.Errorf("at %v: %d values, want %d", confidence, n, want)
		}
		if exceeds := 1 - math.Pow(0.99, float64(n)); exceeds < confidence {
			t.Errorf("the largest of %d bounds the p99 with %v only", n, exceeds)
		}
	}
}

// The ranks cover with at least the confidence, and narrower ones would not.
func TestRanksHaveTheConfidenceAskedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 5000).Draw(t, "n")
		q := release.NewRatio(rapid.Int64Range(1, 999).Draw(t, "1000 q"), 1000)
		a := rapid.Float64Range(0.001, 0.2).Draw(t, "alpha") / 2
		lo, hi := QuantileRanks(n, q, 1-2*a)
		p := q.Float64()
		if below, above := BinomialCDF(lo-1, n, p), BinomialTail(hi, n, p); below > a*(1+1e-9) || above > a*(1+1e-9) {
			t.Fatalf("ranks %d to %d miss with %v and %v, at most %v", lo, hi, below, above, a)
		}
		if BinomialCDF(lo, n, p) < a*(1-1e-9) || BinomialTail(hi-1, n, p) < a*(1-1e-9) {
			t.Fatalf("ranks %d to %d are wider than they need to be", lo, hi)
		}
	})
}

// The chip data of the NIST/SEMATECH e-Handbook 7.2.6.2, 90th percentile:
// 95.19807 by its method, 95.19568 by that of spreadsheets. Ours is a value that
// was seen.
func TestPercentileIsAValueThatWasSeen(t *testing.T) {
	xs := []float64{95.0610, 95.0925, 95.1195, 95.1442, 95.1567, 95.1591, 95.1682, 95.1772, 95.1772, 95.1937, 95.1959, 95.1990}
	near(t, "90th percentile", NearestRank(xs, release.MustRatio("0.9")), 95.1959, 0)
}
