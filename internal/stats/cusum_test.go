package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func TestCusumWeights(t *testing.T) {
	solved, unsolved := CusumWeights(.9, .8)
	near(t, "solved", solved, math.Log(8.0/9), 1e-15)
	near(t, "unsolved", unsolved, math.Log(2), 1e-15)
	rapid.Check(t, func(t *rapid.T) {
		p0 := rapid.Float64Range(.02, .999).Draw(t, "p0")
		p1 := rapid.Float64Range(.01, p0).Draw(t, "p1")
		s, u := CusumWeights(p0, p1)
		// A likelihood ratio is 1 on average while p0 holds, and its logarithm rises once p1 does.
		if mean := p0*math.Exp(s) + (1-p0)*math.Exp(u); math.Abs(mean-1) > 1e-12 {
			t.Fatalf("mean likelihood ratio %v", mean)
		}
		if p0*s+(1-p0)*u > 1e-15 || p1*s+(1-p1)*u < -1e-15 {
			t.Fatalf("drift %v before and %v after the fall", p0*s+(1-p0)*u, p1*s+(1-p1)*u)
		}
	})
}

// runLength returns the mean number of steps until alarm, over runs that each
// begin with start.
func runLength(runs int, start func(), alarm func() bool) float64 {
	total := 0
	for range runs {
		start()
		for total++; !alarm(); total++ {
		}
	}
	return float64(total) / float64(runs)
}

// within fails unless got is within 4 standard errors of a run length, which is
// about as long as it varies, plus a hundredth.
func within(t *testing.T, what string, got, want float64, runs int) {
	t.Helper()
	near(t, what, got, want, want*(4/math.Sqrt(float64(runs))+0.01))
}

// Champ and Woodall 1987: run lengths of 3 sigma on both sides. These are exact.
func TestShewhartRunLengths(t *testing.T) {
	for shift, want := range map[float64]float64{0: 370.40, .2: 308.43, .4: 200.08, .6: 119.67, .8: 71.55, 1: 43.89, 1.4: 18.25, 2: 6.30, 3: 2.00} {
		near(t, "run length", 1/(OneSided(3-shift)+OneSided(3+shift)), want, 5e-3)
	}
}

// The same chart on AR(1) values at 3.09023 sigma: R's spc.
func TestShewhartRunLengthsOfAutocorrelatedValues(t *testing.T) {
	runs := 3000
	if testing.Short() {
		runs = 500
	}
	rng, limit := rand.New(rand.NewPCG(16, 1)), Sigmas(.001) // 3.09023
	for _, c := range []struct{ rho, shift, want float64 }{{.4, 0, 515.44}, {.4, 1, 61.85}, {.4, 2, 9.19}, {.2, 1, 56.72}, {-.2, 1, 54.05}, {-.2, 2, 6.89}} {
		x, fresh := 0.0, math.Sqrt(1-c.rho*c.rho)
		got := runLength(runs, func() { x = rng.NormFloat64() }, func() bool {
			out := math.Abs(x+c.shift) > limit
			x = c.rho*x + fresh*rng.NormFloat64()
			return out
		})
		within(t, "run length", got, c.want, runs)
	}
}

// Run lengths of the CUSUM of normal values, k 0.5: Brook and Evans 1972 and
// Montgomery.
func TestNormalCusumRunLengths(t *testing.T) {
	runs := 5000
	if testing.Short() {
		runs = 1000
	}
	rng := rand.New(rand.NewPCG(16, 2))
	for _, c := range []struct {
		h, shift float64
		both     bool
		want     float64
	}{{3, 0, false, 117.59}, {3, 1.5, false, 3.75}, {4, 0, true, 168}, {4, .25, true, 74.2}, {4, .5, true, 26.6}, {4, 1, true, 8.38}, {4, 2, true, 3.34}} {
		up, down := 0.0, 0.0
		got := runLength(runs, func() { up, down = 0, 0 }, func() bool {
			x := rng.NormFloat64() + c.shift
			up, down = max(0, up+x-.5), max(0, down-x-.5)
			return up > c.h || c.both && down > c.h
		})
		within(t, "run length", got, c.want, runs)
	}
}

// Lucas 1985: Poisson counts of mean 0.25, k 0.25, alarm at 10 and more.
func TestPoissonCusumRunLength(t *testing.T) {
	runs := 2000
	if testing.Short() {
		runs = 400
	}
	rng := rand.New(rand.NewPCG(16, 3))
	cdf := []float64{PoissonCDF(0, .25), PoissonCDF(1, .25), PoissonCDF(2, .25), PoissonCDF(3, .25), PoissonCDF(4, .25), PoissonCDF(5, .25), 1}
	count := func() (k float64) {
		u := rng.Float64()
		for i := 0; u >= cdf[i]; i++ {
			k++
		}
		return k
	}
	s := 0.0
	got := runLength(runs, func() { s = 0 }, func() bool { s = max(0, s+count()-.25); return s >= 10 })
	within(t, "run length", got, 438, runs)
}

// The judge itself at 8 requests a minute, p0 0.90 and p1 0.80, limit 9.4: tuned
// to 0.1 false trips a week, it sees 5, 10, 12.5 and 20 pp after 124, 26, 19 and
// 10 minutes. Lorden 1971: it is never alarmed more often than every e^h steps.
func TestCusumOfProportions(t *testing.T) {
	runs := 2000
	if testing.Short() {
		runs = 300
	}
	const n, h = 8, 9.4
	solved, unsolved := CusumWeights(.9, .8)
	rng := rand.New(rand.NewPCG(16, 4))
	for drop, want := range map[float64]float64{.05: 124, .1: 26, .125: 19, .2: 10} {
		before, after := binomialSampler(rng, n, .9), binomialSampler(rng, n, .9-drop)
		s := 0.0
		step := func(x float64) { s = max(0, s+x*solved+(n-x)*unsolved) }
		steady := func() {
			for s = 0; ; {
				for range 50 {
					step(before())
				}
				if s <= h {
					return
				}
				s = 0
			}
		}
		got := runLength(runs, steady, func() bool { step(after()); return s > h })
		near(t, "delay", got, want, 0.15*want+1)
	}
	weeks := 40
	before, trips, s := binomialSampler(rng, n, .9), 0, 0.0
	for range weeks * minutesPerWeek {
		x := before()
		if s = max(0, s+x*solved+(n-x)*unsolved); s > h {
			trips, s = trips+1, 0
		}
	}
	if perWeek := float64(trips) / float64(weeks); perWeek > minutesPerWeek*math.Exp(-h)+0.2 {
		t.Errorf("%v false trips a week, by Lorden at most %v", perWeek, minutesPerWeek*math.Exp(-h))
	}
}
