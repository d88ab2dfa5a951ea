package stats

import (
	"math"
	"slices"
	"testing"
)

func TestUChart(t *testing.T) {
	// qicharts2's Montgomery example 7.4: non-conformities per 50 units.
	counts := []int64{2, 3, 8, 1, 1, 4, 1, 4, 5, 1, 8, 2, 4, 3, 4, 1, 8, 3, 7, 4}
	rate := Pool(samples([]int64{50}, counts)).Rate()
	near(t, "centre", rate, .074, 1e-15)
	lo, hi := CountLimits(rate, 50, 3)
	near(t, "lower limit", lo, 0, 0)
	near(t, "upper limit", hi, .18941230437, 5e-12)
}

func TestCChart(t *testing.T) {
	// Montgomery example 7.3, printed circuit boards, without samples 6 and 20.
	lo, hi := CountLimits(472.0/24, 1, 3)
	near(t, "lower limit", lo, 6.362532, 5e-7)
	near(t, "upper limit", hi, 32.970801, 5e-7)
}

func TestDispersionOfCounts(t *testing.T) {
	// qcc's example of the test for Poisson counts, Wetherill and Brown 1991.
	counts := samples([]int64{1}, []int64{11, 8, 13, 11, 13, 17, 25, 23, 11, 16, 9, 15, 10, 16, 12, 8, 9, 15, 4, 12, 12, 12, 15, 17, 14, 17, 12, 12, 7, 16})
	d := DisperseCounts(counts)
	near(t, "phi", d.Phi, 1.472203, 5e-7)
	near(t, "Q", d.Q, 42.69388, 5e-6)
	_, above := d.PValues()
	near(t, "p", above, .048579, 5e-7)
	rates := make([]float64, len(counts))
	for i, c := range counts {
		rates[i] = float64(c.X)
	}
	mean, sd := MeanSD(rates)
	near(t, "variance over mean", sd*sd/mean, d.Phi, 1e-12)

	with := DisperseCounts(append(slices.Clone(counts), Proportion{}))
	if with != d {
		t.Errorf("a window without requests counts: %+v, %+v", with, d)
	}
	for name, ps := range map[string][]Proportion{"nothing": nil, "no events": {{0, 10}, {0, 10}}, "one window": {{3, 10}}} {
		if d := DisperseCounts(ps); !math.IsNaN(d.Phi) {
			t.Errorf("%s: phi %v", name, d.Phi)
		}
	}
}

func TestHowWellAStandardDeviationIsKnown(t *testing.T) {
	for _, c := range []struct {
		k                int
		factor, relative float64
	}{{20, 1.277, .16}, {50, 1.154, .10}, {100, 1.102, .07}, {200, 1.070, .05}, {403, 1.048, .035}} {
		near(t, "upper 90 % factor", SDUpperFactor(c.k, 0.9), c.factor, 5e-4)
		near(t, "relative error", SDRelativeError(c.k), c.relative, 5e-3)
	}
	// The chi-squared quantile behind it, NIST/SEMATECH e-Handbook 1.3.6.7.4: 11.651 for 19, 10 %.
	near(t, "chi-squared", 19/math.Pow(SDUpperFactor(20, 0.9), 2), 11.651, 5e-4)
}
