package stats

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestPoissonTailsKeepTheirDigits(t *testing.T) {
	digits(t, "P(X>=3|.3)", PoissonTail(3, 0.3), 0.00359949, 6)
	digits(t, "P(X>=3|.399)", PoissonTail(3, 0.399), 0.0078728, 5)
	digits(t, "P(X>=30|2), of which 1 - CDF leaves 0", PoissonTail(30, 2), 5.86e-25, 3)
	digits(t, "P(X<=0|700)", PoissonCDF(0, 700), math.Exp(-700), 9)
	for name, pair := range map[string][2]float64{
		"at least 0":        {PoissonTail(0, 2), 1},
		"below 0":           {PoissonCDF(-1, 2), 0},
		"nothing ever":      {PoissonTail(1, 0), 0},
		"nothing ever, CDF": {PoissonCDF(0, 0), 1},
	} {
		near(t, name, pair[0], pair[1], 0)
	}
}

// The rule max(3, int(10 lambda)) is worst just before its step.
func TestThreeViolationsAreMostOftenChanceJustBelowFourTenths(t *testing.T) {
	worst, at := 0.0, 0.0
	for i := range 400 {
		if p := PoissonTail(3, float64(i)/1000); p > worst {
			worst, at = p, float64(i)/1000
		}
	}
	near(t, "worst chance", worst, 0.0078728, 5e-8)
	near(t, "at", at, 0.399, 0)
}

// One false trip in ten weeks of 5-minute windows.
func TestPoissonCriticalCounts(t *testing.T) {
	for lambda, want := range map[float64]int64{.05: 3, .1: 4, .2: 5, .3: 5, .4: 6, .5: 6, .8: 7, 1: 8, 1.5: 9, 2: 10, 3: 13, 5: 17} {
		if got := PoissonCritical(lambda, 5e-5); got != want {
			t.Errorf("lambda %v: %d, want %d", lambda, got, want)
		}
	}
}

// The power of that rule and of the published one at 3 and 10 times lambda.
func TestPoissonPowerOfTheRules(t *testing.T) {
	for _, c := range []struct {
		lambda      float64
		c           int64
		three, ten  float64
		threeD, tnD float64
	}{
		{.3, 3, .06, .58, .005, .005},
		{.4, 4, .03, .57, .005, .005},
		{1, 8, .012, .78, .0005, .005},
		{2, 10, .08, .995, .005, .0005},
		{5, 17, .34, 1, .03, .0005},
	} {
		near(t, "at 3 times", PoissonTail(c.c, 3*c.lambda), c.three, c.threeD)
		near(t, "at 10 times", PoissonTail(c.c, 10*c.lambda), c.ten, c.tnD)
	}
}

func TestExceedanceCountsInPlaceOfASmallP99(t *testing.T) {
	for n, want := range map[int64]int64{50: 5, 100: 7, 200: 9, 500: 15, 1000: 24} {
		if got := BinomialCritical(n, 0.01, 2.5e-4); got != want {
			t.Errorf("%d requests: %d slow ones, want %d", n, got, want)
		}
	}
	if got := BinomialCritical(2, 0.5, 0.1); got != 3 {
		t.Errorf("both of two are no rarer than 0.25: %d, want 3, which does not happen", got)
	}
}

// With size 1 it is the geometric: P(X >= k) = (m/(1+m))^k.
func TestNegBinomialOfSizeOneIsGeometric(t *testing.T) {
	for _, mean := range []float64{0.1, 1, 7} {
		for _, k := range []int64{1, 5, 40} {
			digits(t, "tail", NegBinomialTail(k, mean, 1+mean), math.Pow(mean/(1+mean), float64(k)), 10)
		}
	}
}

func TestNegBinomialHasTheVarianceAskedFor(t *testing.T) {
	const mean, phi = 3.0, 2.5
	var m1, m2 float64
	for k := int64(1); k < 400; k++ {
		tail := NegBinomialTail(k, mean, phi)
		m1 += tail
		m2 += float64(2*k-1) * tail
	}
	near(t, "mean", m1, mean, 1e-10)
	near(t, "variance", m2-m1*m1, phi*mean, 1e-9)
}

func TestNegBinomialWithoutOverdispersionIsPoisson(t *testing.T) {
	for _, phi := range []float64{0.3, 1, 1 + 1e-9, 1 + 2e-7} {
		digits(t, "tail", NegBinomialTail(10, 2, phi), PoissonTail(10, 2), 5)
		digits(t, "CDF", NegBinomialCDF(1, 5, phi), PoissonCDF(1, 5), 5)
	}
	if got := NegBinomialCDF(0, 0, 2); got != 1 {
		t.Errorf("a count of mean 0 is 0: %v", got)
	}
	if a, b := NegBinomialCritical(2, 3, 5e-5), PoissonCritical(2, 5e-5); a <= b {
		t.Errorf("an overdispersed count needs no more than a Poisson: %d, %d", a, b)
	}
}

// counts is a distribution of counts.
type counts struct {
	name               string
	cdf, tail          func(k int64) float64
	critical, quantile func(level float64) int64
	mean               float64
	most               int64
}

func drawCounts(t *rapid.T) counts {
	n := rapid.Int64Range(1, 3000).Draw(t, "n")
	p := rapid.Float64Range(0.001, 0.999).Draw(t, "p")
	rho := rapid.SampledFrom([]float64{0, 1e-9, 1e-6, 1e-4, 0.002, 0.05, 0.3, 0.9}).Draw(t, "rho")
	mean := rapid.Float64Range(0.001, 500).Draw(t, "mean")
	phi := rapid.SampledFrom([]float64{0.5, 1, 1.001, 1.5, 4, 30}).Draw(t, "phi")
	return rapid.SampledFrom([]counts{
		{"binomial", func(k int64) float64 { return BinomialCDF(k, n, p) }, func(k int64) float64 { return BinomialTail(k, n, p) },
			func(a float64) int64 { return BinomialCritical(n, p, a) }, func(q float64) int64 { return BinomialQuantile(n, p, q) }, p * float64(n), n},
		{"beta-binomial", func(k int64) float64 { return BetaBinomialCDF(k, n, p, rho) }, func(k int64) float64 { return BetaBinomialTail(k, n, p, rho) },
			func(a float64) int64 { return BetaBinomialCritical(n, p, rho, a) }, nil, p * float64(n), n},
		{"Poisson", func(k int64) float64 { return PoissonCDF(k, mean) }, func(k int64) float64 { return PoissonTail(k, mean) },
			func(a float64) int64 { return PoissonCritical(mean, a) }, func(q float64) int64 { return PoissonQuantile(mean, q) }, mean, 10000},
		{"negative binomial", func(k int64) float64 { return NegBinomialCDF(k, mean, phi) }, func(k int64) float64 { return NegBinomialTail(k, mean, phi) },
			func(a float64) int64 { return NegBinomialCritical(mean, phi, a) }, func(q float64) int64 { return NegBinomialQuantile(mean, phi, q) }, mean, 10000},
	}).Draw(t, "distribution")
}

func TestBothTailsMakeOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawCounts(t)
		k := rapid.Int64Range(-1, min(d.most, int64(3*d.mean)+10)).Draw(t, "k")
		if sum := d.cdf(k) + d.tail(k+1); math.Abs(sum-1) > 1e-9 {
			t.Fatalf("%s: P(X<=%d) + P(X>%d) = %.12g", d.name, k, k, sum)
		}
		if d.cdf(k+1) < d.cdf(k)-1e-12 {
			t.Fatalf("%s: the CDF falls at %d", d.name, k)
		}
	})
}

func TestCriticalCountsAndQuantilesAreTheSmallest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawCounts(t)
		alpha := math.Pow(10, rapid.Float64Range(-9, -0.1).Draw(t, "log alpha"))
		if c := d.critical(alpha); d.tail(c) > alpha || c > 0 && d.tail(c-1) <= alpha {
			t.Fatalf("%s: critical count %d: %v, one less %v, alpha %v", d.name, c, d.tail(c), d.tail(c-1), alpha)
		}
		if d.quantile == nil {
			return
		}
		if k := d.quantile(alpha); d.cdf(k) < alpha || k > 0 && d.cdf(k-1) >= alpha {
			t.Fatalf("%s: quantile %d: %v, one less %v, level %v", d.name, k, d.cdf(k), d.cdf(k-1), alpha)
		}
	})
}
