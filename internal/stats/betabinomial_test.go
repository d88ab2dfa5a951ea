package stats

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestBetaBinomialWithoutCorrelationIsBinomial(t *testing.T) {
	if got, want := BetaBinomialCDF(159, 200, 0.9, 0), BinomialCDF(159, 200, 0.9); got != want {
		t.Errorf("rho 0: %v, want %v", got, want)
	}
	digits(t, "rho 0, published", BetaBinomialCDF(159, 200, 0.9, 0), 7.2217e-6, 4)
	digits(t, "rho nearly 0", BetaBinomialCDF(159, 200, 0.9, 1e-13), BinomialCDF(159, 200, 0.9), 8)
	digits(t, "rho nearly 0, rare failures", BetaBinomialTail(5, 200, 0.001, 1e-13), BinomialTail(5, 200, 0.001), 7)
}

// Polya's urn with one ball of each colour: all counts are equally likely.
func TestBetaBinomialOfOneAndOneIsUniform(t *testing.T) {
	for k := range int64(100) {
		digits(t, "P(X<=k)", BetaBinomialCDF(k, 99, 0.5, 1.0/3), float64(k+1)/100, 12)
	}
}

func TestBetaBinomialAtTheEdges(t *testing.T) {
	for name, pair := range map[string][2]float64{
		"below 0":               {BetaBinomialCDF(-1, 10, 0.9, 0.1), 0},
		"all":                   {BetaBinomialCDF(10, 10, 0.9, 0.1), 1},
		"at least 0":            {BetaBinomialTail(0, 10, 0.9, 0.1), 1},
		"more than all":         {BetaBinomialTail(11, 10, 0.9, 0.1), 0},
		"all alike, unsolved":   {BetaBinomialCDF(9, 10, 0.75, 1), 0.25},
		"all alike, solved":     {BetaBinomialTail(1, 10, 0.75, 1), 0.75},
		"never fails":           {BetaBinomialCDF(9, 10, 1, 0.1), 0},
		"always fails":          {BetaBinomialTail(1, 10, 0, 0.1), 0},
		"none of them measured": {BetaBinomialCDF(0, 0, 0.9, 0.1), 1},
	} {
		near(t, name, pair[0], pair[1], 0)
	}
	// a is 1e-20, b is 1: a (1/2 + 1/3 + ... + 1/10).
	digits(t, "a rate that 1-p would lose", BetaBinomialTail(2, 10, 1e-20, 0.5), 1.9289682539683e-20, 12)
}

// exactBetaBinomial sums Polya's urn in rationals: C(n,x) a(a+1).. b(b+1)../s(s+1)..
func exactBetaBinomial(k, n int64, a, b *big.Rat) float64 {
	rising := func(x *big.Rat, m int64) *big.Rat {
		out := big.NewRat(1, 1)
		for i := range m {
			out.Mul(out, new(big.Rat).Add(x, big.NewRat(i, 1)))
		}
		return out
	}
	sum := new(big.Rat)
	for x := range k + 1 {
		term := new(big.Rat).SetInt(new(big.Int).Binomial(n, x))
		term.Mul(term, rising(a, x))
		sum.Add(sum, term.Mul(term, rising(b, n-x)))
	}
	f, _ := sum.Quo(sum, rising(new(big.Rat).Add(a, b), n)).Float64()
	return f
}

func TestBetaBinomialIsTheExactSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 40).Draw(t, "n")
		k := rapid.Int64Range(0, n-1).Draw(t, "k")
		a := big.NewRat(rapid.Int64Range(1, 4000).Draw(t, "16 a"), 16)
		b := big.NewRat(rapid.Int64Range(1, 4000).Draw(t, "16 b"), 16)
		fa, _ := a.Float64()
		fb, _ := b.Float64()
		p, rho, want := fa/(fa+fb), 1/(fa+fb+1), exactBetaBinomial(k, n, a, b)
		if got := BetaBinomialCDF(k, n, p, rho); math.Abs(got-want) > 1e-11*want {
			t.Fatalf("P(X<=%d|%d,%v,%v) = %v, want %v", k, n, p, rho, got, want)
		}
		if got := BetaBinomialTail(k+1, n, p, rho); math.Abs(got-(1-want)) > 1e-11 {
			t.Fatalf("P(X>%d|%d,%v,%v) = %v, want %v", k, n, p, rho, got, 1-want)
		}
	})
}

// A window of a million requests with the petshop's correlation, far below its
// rate, against the Beta distribution of the rate itself.
func TestBetaBinomialOfAMillionRequests(t *testing.T) {
	const p, rho = 0.9, 0.002
	for _, k := range []int64{850_000, 880_000, 900_000, 920_000} {
		// The binomial noise of a million adds 1/(s+n) to the variance: continue the rate to half a request.
		got, want := BetaBinomialCDF(k, 1_000_000, p, rho), betaCDF(float64(k)/1e6, p, rho)
		near(t, "ratio", got/want, 1, 0.02)
	}
}

// betaCDF integrates the density of the rate by Simpson's rule.
func betaCDF(x, p, rho float64) float64 {
	s := (1 - rho) / rho
	a, b := p*s, (1-p)*s
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	ls, _ := math.Lgamma(s)
	density := func(x float64) float64 {
		return math.Exp(ls - la - lb + (a-1)*math.Log(x) + (b-1)*math.Log1p(-x))
	}
	const steps = 20000
	sum, h := 0.0, (x-0.5)/steps
	for i := range steps {
		l := 0.5 + h*float64(i)
		sum += (density(l) + 4*density(l+h/2) + density(l+h)) * h / 6
	}
	return sum
}

func BenchmarkBetaBinomialCDF(b *testing.B) {
	for b.Loop() {
		BetaBinomialCDF(890_000, 1_000_000, 0.9, 0.002)
	}
}
