package stats

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
)

// The two conventions, at 3 and 4 sigma of p0 0.90, and the normal approximation.
func TestSampleSizesOfBothConventions(t *testing.T) {
	for _, c := range []struct {
		drop              string
		z                 float64
		below, at, normal int64
	}{
		{"0.05", 3, 374, 381, 324}, {"0.05", 4, 660, 661, 576},
		{"0.1", 3, 105, 106, 81}, {"0.1", 4, 180, 186, 144},
		{"0.125", 3, 72, 72, 52}, {"0.125", 4, 120, 121, 93},
		{"0.2", 3, 30, 31, 21}, {"0.2", 4, 54, 54, 36},
	} {
		p0, drop := release.MustRatio("0.9"), release.MustRatio(c.drop)
		below, err1 := MinSamplesBelow(p0, drop, OneSided(c.z))
		at, err2 := MinSamples(p0, drop, OneSided(c.z))
		normal, ok := NoiseSamples(.9, drop.Float64(), c.z, 0)
		if err1 != nil || err2 != nil || !ok || below != c.below || at != c.at || normal != c.normal {
			t.Errorf("drop %s, z %v: below %d, at %d, normal %d; want %d, %d, %d", c.drop, c.z, below, at, normal, c.below, c.at, c.normal)
		}
	}
}

func TestMinSamplesBelowIsTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.Int64Range(50, 999).Draw(t, "1000 p0")
		d := rapid.Int64Range(30, p-1).Draw(t, "1000 drop")
		alpha := OneSided(rapid.Float64Range(1, 4).Draw(t, "z"))
		got, err := MinSamplesBelow(release.NewRatio(p, 1000), release.NewRatio(d, 1000), alpha)
		if err != nil {
			t.Fatal(err)
		}
		trips := func(n int64) float64 {
			k := (p-d)*n/1000 - 1 // 1000 k < (p-d) n
			if (p-d)*n%1000 != 0 {
				k++
			}
			return BinomialCDF(k, n, float64(p)/1000)
		}
		if got > 1 && trips(got-1) <= alpha {
			t.Fatalf("%d is not the smallest", got)
		}
		for n := got; n < 2*got+200; n++ {
			if trips(n) > alpha {
				t.Fatalf("%d samples are not enough: at %d the chance is %v > %v", got, n, trips(n), alpha)
			}
		}
	})
}

func TestTrafficDoesNotHelpAgainstTau(t *testing.T) {
	for _, c := range []struct {
		tau         float64
		three, four int64
	}{{.01, 90, 172}, {.02, 127, 400}, {.03, 427, 0}} {
		three, ok := NoiseSamples(.9, .1, 3, c.tau)
		if three != c.three || !ok {
			t.Errorf("tau %v, z 3: %d, %v; want %d", c.tau, three, ok, c.three)
		}
		four, ok := NoiseSamples(.9, .1, 4, c.tau)
		if four != c.four || ok != (c.four > 0) {
			t.Errorf("tau %v, z 4: %d, %v; want %d", c.tau, four, ok, c.four)
		}
	}
}

// Table of one look's power of 80 % at a threshold of 10 pp: exact for a rule
// that trips strictly below, and the normal approximation.
func TestPowerSamples(t *testing.T) {
	p0, threshold := release.MustRatio("0.9"), release.MustRatio("0.1")
	for drop, want := range map[string][2]int64{"0.125": {236, 198}, "0.15": {71, 54}, "0.2": {21, 15}} {
		d := release.MustRatio(drop)
		exact, err := exactPowerSamples(p0, threshold, d, .8, lastBelow)
		normal, ok := PowerSamples(.9, .1, d.Float64(), .8, 0)
		if err != nil || !ok || exact != want[0] || normal != want[1] {
			t.Errorf("drop %s: %d, %d; want %v", drop, exact, normal, want)
		}
		ours, err := ExactPowerSamples(p0, threshold, d, .8)
		if err != nil || ours > exact {
			t.Errorf("drop %s: %d, %v; the rule that trips at the threshold too needs no more than %d", drop, ours, err, exact)
		}
	}
	for name, c := range map[string]struct{ drop, tau float64 }{"at the threshold": {.1, 0}, "below it": {.05, 0}, "noise of a sixth": {.15, .06}} {
		if n, ok := PowerSamples(.9, .1, c.drop, .8, c.tau); ok {
			t.Errorf("%s: %d samples", name, n)
		}
	}
}

func TestExactPowerSamplesIsTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.Int64Range(100, 999).Draw(t, "1000 p0")
		th := rapid.Int64Range(10, p-50).Draw(t, "1000 threshold")
		d := rapid.Int64Range(th+40, p).Draw(t, "1000 drop")
		power := rapid.Float64Range(0.5, 0.99).Draw(t, "power")
		got, err := ExactPowerSamples(release.NewRatio(p, 1000), release.NewRatio(th, 1000), release.NewRatio(d, 1000), power)
		if err != nil {
			t.Fatal(err)
		}
		seen := func(n int64) float64 { return BinomialCDF((p-th)*n/1000, n, float64(p-d)/1000) }
		if got > 1 && seen(got-1) >= power+1e-9 {
			t.Fatalf("%d is not the smallest", got)
		}
		for n := got; n < 2*got+100; n++ {
			if seen(n) < power-1e-9 {
				t.Fatalf("%d samples are not enough: at %d the power is %v < %v", got, n, seen(n), power)
			}
		}
	})
}

func TestExactPowerSamplesAtTheEdges(t *testing.T) {
	r := release.MustRatio
	for _, c := range []struct {
		threshold, drop string
		err             error
	}{
		{"0.1", "0.1", ErrNotBeyond}, {"0.1", "0.05", ErrNotBeyond}, {"0.9", "0.95", ErrNeverTrips}, {"0.1", "0.100001", ErrTooSmall}, {"0", "0.1", ErrTooSmall},
	} {
		if n, err := ExactPowerSamples(r("0.9"), r(c.threshold), r(c.drop), .8); !errors.Is(err, c.err) {
			t.Errorf("threshold %s, drop %s: %d, %v; want %v", c.threshold, c.drop, n, err, c.err)
		}
	}
	for _, drop := range []string{"0.9", "1"} {
		if n, err := ExactPowerSamples(r("0.9"), r("0.1"), r(drop), .8); n != 1 || err != nil {
			t.Errorf("nothing solved any more: %d, %v", n, err)
		}
	}
}

func TestOneSampleSizes(t *testing.T) {
	// NIST/SEMATECH e-Handbook 7.2.4.2: p0 0.10, delta 0.10, alpha 0.05, beta 0.10.
	near(t, "NIST", oneSample(.1, .2, Sigmas(.05), Sigmas(.10)), 101.22, 5e-3)
	// The same seen from the other side, as a fall.
	if n, ok := DetectSamples(.9, .1, Sigmas(.05), .9, 0); n != 102 || !ok {
		t.Errorf("NIST: %d, %v; want 102", n, ok)
	}
	// Montgomery and Runger, example 9-11, which rounds down to 832.
	near(t, "Montgomery and Runger", oneSample(.05, .03, Sigmas(.05), Sigmas(.10)), 832.62, 5e-3)
	if n, ok := DetectSamples(.05, .02, Sigmas(.05), .9, 0); n != 833 || !ok {
		t.Errorf("Montgomery and Runger: %d, %v; want 833", n, ok)
	}
	near(t, "its beta at 200", 1-Power(.05, Sigmas(.05)*BinomialSD(.05, 200), .02, 200, 0), .67, 5e-3)
}

func TestDetectSamplesIsTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p0 := rapid.Float64Range(0.2, 0.999).Draw(t, "p0")
		drop := rapid.Float64Range(0.01, p0-0.1).Draw(t, "drop")
		z := rapid.Float64Range(1, 5).Draw(t, "z")
		tau := rapid.Float64Range(0, min(0.03, math.Sqrt(p0*(1-p0)))).Draw(t, "tau")
		n, ok := DetectSamples(p0, drop, z, .8, tau)
		needs := func(n int64) float64 { return z*NoiseSigma(p0, n, tau, 0) + Sigmas(.2)*NoiseSigma(p0-drop, n, tau, 0) }
		switch possible := (z+Sigmas(.2))*tau < drop; {
		case ok != possible:
			t.Fatalf("%d, %v: the noise alone needs %v", n, ok, (z+Sigmas(.2))*tau)
		case ok && (needs(n) > drop*(1+1e-9) || n > 1 && needs(n-1) < drop*(1-1e-9)):
			t.Fatalf("%d needs %v, one less %v, drop %v", n, needs(n), needs(n-1), drop)
		}
	})
}

func TestTwoSampleSizes(t *testing.T) {
	// R: power.prop.test(p1=.5, p2=.75, power=.9), two-sided and one-sided.
	near(t, "two-sided", twoSamples(.75, .5, Sigmas(.025), Sigmas(.1), 1), 76.70692, 2e-5)
	near(t, "one-sided", twoSamples(.75, .5, Sigmas(.05), Sigmas(.1), 1), 62.33551, 5e-6)
	// Stata: power twoproportions .8 .65
	near(t, "Stata", twoSamples(.8, .65, Sigmas(.025), Sigmas(.2), 1), 137.91, 5e-3)
	if n := TwoSampleSamples(.8, .15, Sigmas(.025), .8, 1); n != 138 {
		t.Errorf("Stata: %d, want 138", n)
	}
	// R: power.prop.test(n=550, p1=.015, p2=.001)
	near(t, "power", TwoSamplePower(.015, .014, Sigmas(.025), 550, 1), .74156, 5e-6)
	// A stable nine times as large is nearly as good as a known baseline.
	if n, one := TwoSampleSamples(.9, .1, 3, .8, 9), ceilSamples(oneSample(.9, .8, 3, Sigmas(.2))); n <= one || float64(n) > 1.25*float64(one) {
		t.Errorf("against 9 times as many: %d, against a known rate %d", n, one)
	}
}

// The column "catches 80 % a look" of the step plan for p0 .9, tau 2 pp, 4 sigma.
func TestSmallestDropOfTheStepPlan(t *testing.T) {
	for n, want := range map[int64][3]float64{5: {13.6, 54.3, 69.5}, 50: {4.7, 18.8, 24.7}, 250: {2.8, 11.0, 13.9}, 25: {6.3, 25.3, 33.8}, 125: {3.3, 13.4, 17.1}, 625: {2.3, 9.3, 11.5}, 500: {2.4, 9.6, 11.9}, 5000: {2.0, 8.2, 9.9}} {
		sigma := NoiseSigma(.9, n, .02, 0)
		drop := SmallestDrop(.9, 4*sigma, .8, n, .02)
		near(t, "sigma", 100*sigma, want[0], 0.1) // published without 1-1/n beside tau
		near(t, "threshold", 400*sigma, want[1], 0.2)
		near(t, "smallest drop", 100*drop, want[2], 0.12)
		near(t, "its power", Power(.9, 4*sigma, drop, n, .02), .8, 1e-9)
		near(t, "power at the threshold itself", Power(.9, 4*sigma, 4*sigma, n, .02), .5, 1e-12)
	}
	if d := SmallestDrop(.9, .895, .999, 20, .02); !math.IsNaN(d) {
		t.Errorf("a threshold next to p0 catches %v", d)
	}
	if d := SmallestDrop(.9, .95, .8, 20, .02); !math.IsNaN(d) {
		t.Errorf("a threshold beyond p0 catches %v", d)
	}
}

func TestHoldTimeOfTheStepPlan(t *testing.T) {
	for _, c := range []struct {
		perMin    float64
		ten, five float64
		wait      float64
	}{
		{20 * .01, 546, 2035, 1120}, {20 * .1, 64, 240, 112}, {20 * .5, 25, 81, 23}, {100 * .01, 118, 440, 224}, {100 * .05, 32, 121, 45},
		{100 * .25, 25, 57, 9}, {500 * .01, 32, 121, 45}, {500 * .05, 25, 57, 9}, {2000 * .01, 25, 61, 12}, {2000 * .1, 25, 43, 2},
	} {
		hold := func(drop float64) float64 {
			return math.Ceil(HoldTime(.9, drop, c.perMin, .02, 25, 1, Sigmas(.01), .8))
		}
		near(t, "hold for 10 pp", hold(.1), c.ten, 0)
		near(t, "hold for 5 pp", hold(.05), c.five, 0)
		near(t, "wait for 200", WaitForSamples(200, c.perMin, .95), c.wait, 1)
	}
	near(t, "windows that hang together", HoldTime(.9, .05, 1, .02, 25, 3, 2, .8), 3*HoldTime(.9, .05, 1, .02, 25, 1, 2, .8), 1e-9)
	if h := HoldTime(.9, .05, 0, .02, 25, 1, 2, .8); !math.IsInf(h, 1) {
		t.Errorf("without traffic: %v", h)
	}
}

func TestWaitForSamples(t *testing.T) {
	for perMin, want := range map[float64]float64{1: 224, 5: 45, 20: 12} {
		if got := WaitForSamples(200, perMin, .95); math.Abs(got-want) > 0.9 {
			t.Errorf("200 requests at %v a minute: %v minutes, want %v", perMin, got, want)
		}
	}
	digits(t, "the first one", WaitForSamples(1, 2, .95), -math.Log(.05)/2, 12)
	near(t, "none", WaitForSamples(0, 2, .95), 0, 0)
	if w := WaitForSamples(1, 0, .95); !math.IsInf(w, 1) {
		t.Errorf("without traffic: %v", w)
	}
	// By then that many have arrived with just this chance.
	digits(t, "arrived", PoissonTail(200, 5*WaitForSamples(200, 5, .95)), .95, 9)
}

func TestSigmasIsTheInverseOfOneSided(t *testing.T) {
	near(t, "5 %", Sigmas(.05), 1.6448536269514722, 1e-14)
	near(t, "20 %", Sigmas(.2), 0.8416212335729143, 1e-14)
	near(t, "a half", Sigmas(.5), 0, 1e-15)
	near(t, "most", Sigmas(.95), -1.6448536269514722, 1e-14)
	if z := Sigmas(0); !math.IsInf(z, 1) {
		t.Errorf("never: %v", z)
	}
	rapid.Check(t, func(t *rapid.T) {
		z := rapid.Float64Range(0, 30).Draw(t, "z")
		if got := Sigmas(OneSided(z)); math.Abs(got-z) > 1e-9 {
			t.Fatalf("%v: back to %v", z, got)
		}
	})
}
