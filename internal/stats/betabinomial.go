package stats

import "math"

// BetaBinomialCDF returns P(X <= k) for X ~ beta-binomial with n requests,
// mean rate p and intraclass correlation rho = 1/(a+b+1) (Skellam 1948;
// Johnson, Kemp and Kotz, Univariate Discrete Distributions, 6.2.2): a binomial
// whose rate moves from window to window with variance rho p q. The terms are
// summed from k outward on the side where they fall off, so that small tails
// keep their digits and the sum ends as soon as the rest is negligible. rho 0
// is [BinomialCDF]; rho 1 has all requests of a window alike.
func BetaBinomialCDF(k, n int64, p, rho float64) float64 {
	if rho <= 0 || p <= 0 || p >= 1 {
		return BinomialCDF(k, n, p)
	}
	return betaBinomialBelow(k, n, p, 1-p, rho)
}

// BetaBinomialTail returns P(X >= k), see [BetaBinomialCDF].
func BetaBinomialTail(k, n int64, p, rho float64) float64 {
	if rho <= 0 || p <= 0 || p >= 1 {
		return BinomialTail(k, n, p)
	}
	return betaBinomialBelow(n-k, n, 1-p, p, rho)
}

// BetaBinomialCritical returns the smallest c with P(X >= c) <= alpha; n+1 if
// not even all n are that rare.
func BetaBinomialCritical(n int64, p, rho, alpha float64) int64 {
	return smallest(func(c int64) bool { return c > n || BetaBinomialTail(c, n, p, rho) <= alpha }, n)
}

// betaBinomialBelow returns P(X <= k) at rate p = 1-q. Both are given, for a
// small p is lost in 1-p.
func betaBinomialBelow(k, n int64, p, q, rho float64) float64 {
	switch {
	case k < 0:
		return 0
	case k >= n:
		return 1
	case rho >= 1:
		return q
	case float64(k) < p*float64(n):
		return betaBinomialSum(k, n, p, q, rho)
	}
	return 1 - betaBinomialSum(n-k-1, n, q, p, rho)
}

// betaBinomialSum adds P(X=k) + P(X=k-1) + ... until what is left cannot
// change the sum.
func betaBinomialSum(k, n int64, p, q, rho float64) float64 {
	s := (1 - rho) / rho // a+b
	a, b, m := p*s, q*s, float64(n)
	sum, term := 0.0, 1.0
	for x := float64(k); ; x-- {
		sum += term
		if x == 0 {
			break
		}
		// P(X=x-1)/P(X=x), and a bound of that ratio for all smaller x.
		term *= x * (m - x + b) / ((m - x + 1) * (a + x - 1))
		ratio := max(x/(a+x-1), 1/a) * max((m-x+b)/(m-x+1), (m-1+b)/m)
		if ratio < 1 && term <= 1e-17*sum*(1-ratio) {
			break
		}
	}
	return min(1, sum*math.Exp(betaBinomialLog(float64(k), m, a, b)))
}

// betaBinomialLog returns ln P(X=x) = ln C(n,x) + ln B(a+x, b+n-x) - ln B(a,b),
// as C(n,x) a^(x) b^(n-x) / (a+b)^(n) in rising powers: their logarithms are of
// the size of n, whereas the log betas of a small rho are not.
func betaBinomialLog(x, n, a, b float64) float64 {
	s := a + b
	return logChoose(n, x) + logRising(a, x, s) + logRising(b, n-x, s) - logRising(s, n, s)
}

// logRising returns ln of a(a+1)...(a+m-1)/s^m.
func logRising(a, m, s float64) float64 {
	if m == 0 {
		return 0
	}
	if a < 10 {
		big, _ := math.Lgamma(a + m)
		small, _ := math.Lgamma(a)
		return big - small - float64(m*math.Log(s))
	}
	// Stirling's series at both ends, with the large parts taken off by hand.
	return float64((a-0.5)*math.Log1p(m/a)) + float64(m*math.Log((a+m)/s)) - m + stirling(a+m) - stirling(a)
}

// stirling is what ln Gamma(x) has above (x-1/2) ln x - x + ln(2 pi)/2 for x of
// 10 and more (Abramowitz and Stegun 6.1.41).
func stirling(x float64) float64 {
	y := 1 / (x * x)
	return (1.0/12 - y*(1.0/360-y*(1.0/1260-y*(1.0/1680-y/1188)))) / x
}

// logChoose returns ln C(n, x).
func logChoose(n, x float64) float64 {
	if x > n-x {
		x = n - x
	}
	lgamma, _ := math.Lgamma(x + 1)
	return logRising(n-x+1, x, 1) - lgamma
}
