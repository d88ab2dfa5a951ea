package stats

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
)

// near fails unless got is within tol of want.
func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) {
		t.Errorf("%s = %.12g, want %.12g", what, got, want)
	}
}

// digits fails unless got agrees with want to a relative 10^-n.
func digits(t *testing.T, what string, got, want float64, n int) {
	t.Helper()
	near(t, what, got, want, math.Abs(want)*math.Pow10(-n))
}

func samples(ns, xs []int64) []Proportion {
	ps := make([]Proportion, len(xs))
	for i := range xs {
		ps[i] = Proportion{X: xs[i], N: ns[i%len(ns)]}
	}
	return ps
}

// The p-chart everyone knows: frozen orange juice concentrate, Montgomery
// 7.1, also NIST/SEMATECH e-Handbook 6.3.3.2.
var orangeJuice = samples([]int64{50}, []int64{12, 15, 8, 10, 4, 7, 16, 9, 14, 10, 5, 6, 17, 12, 22, 8, 10, 5, 13, 11, 20, 18, 24, 15, 9, 12, 7, 13, 9, 6})

// Montgomery table 7.4: purchase orders, unequal samples.
var purchaseOrders = samples(
	[]int64{100, 80, 80, 100, 110, 110, 100, 100, 90, 90, 110, 120, 120, 120, 110, 80, 80, 80, 90, 100, 100, 100, 100, 90, 90},
	[]int64{12, 8, 6, 9, 10, 12, 11, 16, 10, 6, 20, 15, 9, 8, 6, 8, 10, 7, 5, 8, 5, 8, 10, 6, 9})

// outside returns the numbers, from 1, of the samples beyond 3 sigma.
func outside(ps []Proportion) []int {
	p0, out := Pool(ps).Rate(), []int{}
	for i, p := range ps {
		if lo, hi := ControlLimits(p0, p.N, 3); p.Rate() < lo || p.Rate() > hi {
			out = append(out, i+1)
		}
	}
	return out
}

func TestPChartOfEqualSamples(t *testing.T) {
	p0 := Pool(orangeJuice).Rate()
	near(t, "centre", p0, 0.231333, 5e-7)
	lo, hi := ControlLimits(p0, 50, 3)
	near(t, "lower limit", lo, 0.052428, 5e-7)
	near(t, "upper limit", hi, 0.410239, 5e-7)
	if got := outside(orangeJuice); !slices.Equal(got, []int{15, 23}) {
		t.Errorf("samples outside: %v, want 15 and 23", got)
	}
	d := Disperse(orangeJuice)
	near(t, "Q", d.Q, 85.4093, 5e-5)
	near(t, "phi", d.Phi, 2.94515, 5e-6)
	_, above := d.PValues()
	digits(t, "p", above, 1.82e-7, 2)
}

func TestPChartWithoutTheTwoOutside(t *testing.T) {
	rest := slices.Concat(orangeJuice[:14], orangeJuice[15:22], orangeJuice[23:])
	p0 := Pool(rest).Rate()
	near(t, "centre", p0, 0.215, 1e-12)
	lo, hi := ControlLimits(p0, 50, 3)
	near(t, "lower limit", lo, 0.040702839954, 5e-13)
	near(t, "upper limit", hi, 0.389297160046, 5e-13)
}

func TestPChartCutsTheLowerLimitAtZero(t *testing.T) {
	after := samples([]int64{50}, []int64{9, 6, 12, 5, 6, 4, 6, 3, 7, 6, 2, 4, 3, 6, 5, 4, 8, 5, 6, 7, 5, 6, 3, 5, 8, 7, 5, 6, 4, 5, 2, 3, 4, 7, 6, 5, 5, 3, 7, 9, 6, 10, 4, 3, 5, 8, 11, 9, 7, 3, 5, 2, 1, 4, 5, 3, 7, 6, 4, 4, 6, 8, 5, 6})
	p0 := Pool(after).Rate()
	near(t, "centre", p0, 0.1096875, 1e-12)
	lo, hi := ControlLimits(p0, 50, 3)
	near(t, "lower limit", lo, 0, 0)
	near(t, "upper limit", hi, 0.242269955181, 5e-13)
}

func TestPChartOfUnequalSamplesIsCentredOnThePooledRate(t *testing.T) {
	p0 := Pool(purchaseOrders).Rate()
	near(t, "centre", p0, 0.095510204082, 5e-13)
	var rates []float64
	for _, p := range purchaseOrders {
		rates = append(rates, p.Rate())
	}
	mean, _ := MeanSD(rates)
	near(t, "mean of the rates, which is not the centre", mean, 0.095221, 5e-7)
	for _, c := range []struct {
		n      int64
		lo, hi float64
	}{
		{80, 0, 0.194093420515},
		{90, 0.002565056280, 0.188455351883},
		{100, 0.007334694728, 0.183685713435},
		{110, 0.011438154625, 0.179582253538},
		{120, 0.015017344927, 0.176003063236},
	} {
		lo, hi := ControlLimits(p0, c.n, 3)
		near(t, "lower limit", lo, c.lo, 5e-13)
		near(t, "upper limit", hi, c.hi, 5e-13)
	}
	if got := outside(purchaseOrders); !slices.Equal(got, []int{11}) {
		t.Errorf("samples outside: %v, want 11 alone", got)
	}
	d := Disperse(purchaseOrders)
	near(t, "Q", d.Q, 28.55897, 5e-6)
	near(t, "phi", d.Phi, 1.189957, 5e-7)
	_, above := d.PValues()
	near(t, "p", above, 0.23717, 5e-6)
}

func TestDispersionBelowOne(t *testing.T) {
	// qcc's example of the test, Wetherill and Brown 1991.
	d := Disperse(samples([]int64{50}, []int64{12, 11, 18, 11, 10, 16, 9, 11, 14, 15, 11, 9, 10, 13, 12, 8, 12, 13, 10, 12, 13, 16, 12, 18, 16, 10, 16, 10, 12, 14}))
	near(t, "phi", d.Phi, 0.7644566, 5e-8)
	near(t, "Q", d.Q, 22.16924, 5e-6)
	below, above := d.PValues()
	near(t, "p above", above, 0.813115, 5e-7)
	near(t, "p below", below, 1-0.813115, 5e-7)
}

func TestDispersionOfTheGoldenSet(t *testing.T) {
	d := Disperse(goldenSet)
	near(t, "p0", Pool(goldenSet).Rate(), 0.888889, 5e-7)
	near(t, "Q", d.Q, 93.859571, 5e-7)
	near(t, "phi", d.Phi, 4.939977, 5e-7)
	clean := slices.Concat(goldenSet[:15], goldenSet[16:])
	d = Disperse(clean)
	near(t, "p0 without the incident", Pool(clean).Rate(), 0.902913, 5e-7)
	near(t, "Q without the incident", d.Q, 5.923610, 5e-7)
	near(t, "phi without the incident", d.Phi, 0.329089, 5e-7)
}

func TestDispersionWithoutSpreadDoesNotExist(t *testing.T) {
	for name, ps := range map[string][]Proportion{
		"all solved":  {{50, 50}, {50, 50}},
		"none solved": {{0, 50}, {0, 50}},
		"nothing":     nil,
		"empty":       {{0, 0}, {0, 0}},
		"one window":  {{40, 50}},
	} {
		if d := Disperse(ps); !math.IsNaN(d.Phi) {
			t.Errorf("%s: phi %v", name, d.Phi)
		}
	}
	if d := Disperse([]Proportion{{40, 50}, {0, 0}, {45, 50}}); d.K != 2 || math.IsNaN(d.Q) {
		t.Errorf("a window without samples counts: %+v", d)
	}
}

func TestMeanSD(t *testing.T) {
	// Chemistry data of Venables and Ripley: copper in wholemeal flour, 24 determinations.
	chem := []float64{2.2, 2.2, 2.4, 2.4, 2.5, 2.7, 2.8, 2.9, 3.03, 3.03, 3.1, 3.37, 3.4, 3.4, 3.4, 3.5, 3.6, 3.7, 3.7, 3.7, 3.7, 3.77, 5.28, 28.95}
	mean, sd := MeanSD(chem)
	near(t, "mean", mean, 4.2804, 5e-5)
	near(t, "sd", sd, 5.2974, 5e-5)
	near(t, "median", Median(chem), 3.385, 1e-12)

	// NIST StRD NumAcc4: mean 10000000.2, sd 0.1, which a one-pass sum of squares loses.
	numAcc := []float64{10000000.2}
	for range 500 {
		numAcc = append(numAcc, 10000000.1, 10000000.3)
	}
	mean, sd = MeanSD(numAcc)
	near(t, "mean", mean, 10000000.2, 1e-7)
	near(t, "sd", sd, 0.1, 1e-8)
}

func TestFiguresThatDoNotExistAreNaN(t *testing.T) {
	m0, sd0 := MeanSD(nil)
	m1, sd1 := MeanSD([]float64{3})
	if !math.IsNaN(m0) || !math.IsNaN(sd0) || m1 != 3 || !math.IsNaN(sd1) {
		t.Errorf("none: %v %v; one: %v %v", m0, sd0, m1, sd1)
	}
	half := release.MustRatio("0.5")
	if x, y, z := Median(nil), NearestRank(nil, half), WeightedQuantile([]Weighted{{3, 0}}, 0.5); !math.IsNaN(x) || !math.IsNaN(y) || !math.IsNaN(z) {
		t.Errorf("quantiles of nothing: %v %v %v", x, y, z)
	}
}

func TestNearestRankIsExact(t *testing.T) {
	xs := make([]float64, 100)
	for i := range xs {
		xs[i] = float64(i + 1)
	}
	for q, want := range map[string]float64{"0": 1, "0.001": 1, "0.01": 1, "0.011": 2, "0.07": 7, "0.29": 29, "0.5": 50, "0.57": 57, "0.99": 99, "0.991": 100, "1": 100} {
		if got := NearestRank(xs, release.MustRatio(q)); got != want {
			t.Errorf("%s of 1..100 = %v, want %v", q, got, want)
		}
	}
	if got := NearestRank(xs[:50], release.MustRatio("0.99")); got != 50 {
		t.Errorf("p99 of 50 values = %v, want the largest", got)
	}
}

func TestWeightedQuantile(t *testing.T) {
	for _, c := range []struct {
		name  string
		vs    []Weighted
		level float64
		want  float64
	}{
		{"one heavy window decides", []Weighted{{900, 1}, {100, 10}, {500, 2}}, 0.5, 100},
		{"half is enough", []Weighted{{3, 5}, {1, 5}}, 0.5, 1},
		{"a little more than half is not", []Weighted{{3, 5}, {1, 5}}, 0.51, 3},
		{"windows without requests do not count", []Weighted{{1, 0}, {2, 1}, {3, 0}}, 0.5, 2},
		{"all of it", []Weighted{{7, 1}, {9, 1}}, 1, 9},
	} {
		if got := WeightedQuantile(c.vs, c.level); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestRankLevel(t *testing.T) {
	p99 := release.MustRatio("0.99")
	// The slowest of 50 exceeds the true p99 in 39.5 % of windows; of n in 1 - 0.99^n.
	digits(t, "50 requests", RankLevel(p99, 50), math.Pow(0.99, 50), 12)
	near(t, "50 requests exceed", 1-RankLevel(p99, 50), 0.395, 5e-4)
	digits(t, "8 requests", RankLevel(p99, 8), math.Pow(0.99, 8), 12)
	near(t, "a million requests", RankLevel(p99, 1_000_000), 0.5, 0.01)
}

func TestBinomialTails(t *testing.T) {
	digits(t, "P(X<=159|200,.9)", BinomialCDF(159, 200, 0.9), 7.2217e-6, 4)
	digits(t, "P(X<=160|200,.9)", BinomialCDF(160, 200, 0.9), 1.70073e-5, 5)
	// R: binom.test(51, 235, 1/6)
	digits(t, "less", BinomialCDF(51, 235, 1.0/6), 0.982022657605858, 11)
	digits(t, "greater", BinomialTail(51, 235, 1.0/6), 0.0265442457116909, 11)
	for name, pair := range map[string][2]float64{
		"none below 0":      {BinomialCDF(-1, 10, 0.5), 0},
		"all up to n":       {BinomialCDF(10, 10, 0.5), 1},
		"never fails":       {BinomialCDF(9, 10, 1), 0},
		"always fails":      {BinomialCDF(0, 10, 0), 1},
		"at least 0":        {BinomialTail(0, 10, 0.5), 1},
		"more than n":       {BinomialTail(11, 10, 0.5), 0},
		"never succeeds":    {BinomialTail(1, 10, 0), 0},
		"always succeeds":   {BinomialTail(10, 10, 1), 1},
		"one toss of two":   {BinomialCDF(0, 2, 0.5), 0.25},
		"far tail, not 0":   {BinomialTail(1000, 1000, 0.5) / math.Pow(2, -1000), 1},
		"far tail, below 0": {BinomialCDF(0, 1000, 0.5) / math.Pow(2, -1000), 1},
	} {
		near(t, name, pair[0], pair[1], 1e-9)
	}
}

// exactCDF sums the binomial in rationals.
func exactCDF(k, n int64, p *big.Rat) float64 {
	q, sum := new(big.Rat).Sub(big.NewRat(1, 1), p), new(big.Rat)
	for i := int64(0); i <= k; i++ {
		term := new(big.Rat).SetInt(new(big.Int).Binomial(n, i))
		for range i {
			term.Mul(term, p)
		}
		for range n - i {
			term.Mul(term, q)
		}
		sum.Add(sum, term)
	}
	f, _ := sum.Float64()
	return f
}

func TestBinomialCDFIsTheExactSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 40).Draw(t, "n")
		k := rapid.Int64Range(0, n).Draw(t, "k")
		p := big.NewRat(rapid.Int64Range(1, 63).Draw(t, "64 p"), 64) // exact as a float64 too
		f, _ := p.Float64()
		want := exactCDF(k, n, p)
		if got := BinomialCDF(k, n, f); math.Abs(got-want) > 1e-11*want {
			t.Fatalf("P(X<=%d|%d,%v) = %v, want %v", k, n, f, got, want)
		}
		if got := BinomialTail(k+1, n, f); math.Abs(got-(1-want)) > 1e-11 {
			t.Fatalf("P(X>%d|%d,%v) = %v, want %v", k, n, f, got, 1-want)
		}
	})
}

func TestOneSidedAndRuleOfThree(t *testing.T) {
	digits(t, "z=3", OneSided(3), 0.00134990, 5)
	digits(t, "z=4", OneSided(4), 3.16712e-5, 5)
	digits(t, "z=10", OneSided(10), 7.61985e-24, 5)
	near(t, "0 of 20 (Newcombe 1998, one-sided exact)", RuleOfThree(20), 0.1391, 5e-5)
	digits(t, "0 of a million", RuleOfThree(1_000_000), 2.9957e-6, 4)
	near(t, "0 of 0", RuleOfThree(0), 1, 0)
}

// The definition, looked at every n: N-1 is bad and nothing from N on is.
func TestMinSamplesIsTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.Int64Range(50, 999).Draw(t, "1000 p0")
		d := rapid.Int64Range(30, p-1).Draw(t, "1000 drop")
		alpha := OneSided(rapid.Float64Range(1, 4).Draw(t, "z"))
		p0, floor := release.NewRatio(p, 1000), release.NewRatio(p-d, 1000)
		got, err := MinSamples(p0, release.NewRatio(d, 1000), alpha)
		if err != nil {
			t.Fatal(err)
		}
		trips := func(n int64) float64 { return BinomialCDF(floor.FloorOf(n), n, p0.Float64()) }
		if got > 1 && trips(got-1) <= alpha {
			t.Fatalf("%d is not the smallest: %d is good too", got, got-1)
		}
		for n := got; n < 2*got+200; n++ {
			if trips(n) > alpha {
				t.Fatalf("%d samples are not enough: at %d the chance is %v > %v", got, n, trips(n), alpha)
			}
		}
	})
}

func TestMinSamplesAtTheEdges(t *testing.T) {
	p9, alpha := release.MustRatio("0.9"), OneSided(3)
	if _, err := MinSamples(p9, p9, alpha); err != ErrNeverTrips {
		t.Errorf("a drop of the whole rate: %v", err)
	}
	if _, err := MinSamples(p9, release.MustRatio("0.95"), alpha); err != ErrNeverTrips {
		t.Errorf("a drop of more than the rate: %v", err)
	}
	for _, drop := range []string{"0", "0.0000001"} {
		if _, err := MinSamples(p9, release.MustRatio(drop), alpha); err != ErrTooSmall {
			t.Errorf("a drop of %s: %v", drop, err)
		}
	}
	// The smallest that is accepted is still Chernoff's bound and no artefact of rounding: 2 p q ln(1/alpha)/d^2.
	if n, err := MinSamples(p9, release.MustRatio("0.00001"), alpha); err != nil || math.Abs(float64(n)/(2*0.09*math.Log(1/alpha)/1e-10)-1) > 1e-3 {
		t.Errorf("a drop of 0.001 pp: %d, %v", n, err)
	}
	if n, err := MinSamples(release.MustRatio("1"), release.MustRatio("0.05"), alpha); n != 1 || err != nil {
		t.Errorf("a service that never fails: %d, %v", n, err)
	}
	// Past a million it is Chernoff's bound: enough by the normal theory z^2 p q / d^2 = 8.1 million, and no more than half above.
	n, err := MinSamples(p9, release.MustRatio("0.0001"), alpha)
	if normal := 9 * 0.09 / 1e-8; err != nil || float64(n) < normal || float64(n) > 1.5*normal {
		t.Errorf("a drop of 0.01 pp: %d, %v", n, err)
	}
}

func BenchmarkMinSamples(b *testing.B) {
	p0, drop := release.MustRatio("0.9991"), release.MustRatio("0.001")
	for b.Loop() {
		if _, err := MinSamples(p0, drop, OneSided(3)); err != nil {
			b.Fatal(err)
		}
	}
}

// MeanSD does not depend on the order of what it is given beyond the last digits.
func TestMeanSDOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	xs := make([]float64, 300)
	for i := range xs {
		xs[i] = 0.999 + rng.Float64()/1000
	}
	m1, s1 := MeanSD(xs)
	rng.Shuffle(len(xs), func(i, j int) { xs[i], xs[j] = xs[j], xs[i] })
	m2, s2 := MeanSD(xs)
	digits(t, "mean", m2, m1, 12)
	digits(t, "sd", s2, s1, 9)
}
