package stats

import (
	"math"
	"testing"
)

// average returns the mean of n values from their sum and sum of squares.
func average(sum, squares float64, n int64) Average {
	mean := sum / float64(n)
	return Average{Mean: mean, CV: math.Sqrt((squares-sum*mean)/float64(n-1)) / mean, N: n}
}

// Two arms with a heavy tail, from the tests of GrowthBook's statistics: the
// interval of the difference is -.035 to 1.450, on the log scale it does not hold 0.
func TestLogRatioOfAHeavyTail(t *testing.T) {
	a, b := average(1396.87, 52377.9767, 3407), average(2422.7, 134698.29, 3461)
	near(t, "cv of a", a.CV, 9.5, .05)
	near(t, "cv of b", b.CV, 8.9, .05)
	ln, se := LogRatio(b, a)
	near(t, "lift", math.Exp(ln)-1, .70732, 5e-6)
	const z = 1.96 // which the figures rest on
	near(t, "lower", math.Exp(ln-z*se)-1, .10525, 1e-5)
	near(t, "upper", math.Exp(ln+z*se)-1, 1.63736, 5e-6)
	// The delta method's error of the lift itself, .37879.
	near(t, "se of the lift", se*math.Exp(ln), .37879, 5e-6)
}

func TestLogRatioNeedsTwoMeansAboveZero(t *testing.T) {
	ok := Average{Mean: 1, CV: 1, N: 10}
	for name, bad := range map[string]Average{"zero": {N: 10}, "negative": {Mean: -1, N: 10}} {
		l1, s1 := LogRatio(ok, bad)
		l2, s2 := LogRatio(bad, ok)
		if !math.IsNaN(l1) || !math.IsNaN(s1) || !math.IsNaN(l2) || !math.IsNaN(s2) {
			t.Errorf("%s: %v %v %v %v", name, l1, s1, l2, s2)
		}
	}
}

func TestRatioSamples(t *testing.T) {
	for z, want := range map[float64]int64{3: 507, 4: 900} {
		if got := RatioSamples(1.5, .2, z); got != want {
			t.Errorf("z %v: %d, want %d", z, got, want)
		}
	}
	if got := RatioSamples(0, .2, 3); got != 1 {
		t.Errorf("a cost that never varies: %d", got)
	}
}
