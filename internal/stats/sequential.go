package stats

import "math"

// HarmEvidence returns ln M, the evidence after so many requests that the solve
// rate is below margin, which is p0 less the drop that is tolerated:
//
//	M = B(S+1, F+1) I_m(S+1, F+1) / (m m^S (1-m)^F)
//
// with S solved, F unsolved and m the margin: the likelihood under a rate drawn
// evenly from [0, m] over that at m (the mixture of Robbins 1970; Howard et al.
// 2021). While the true rate is m or more, M is a supermartingale that starts at
// 1, so that it ever reaches 1/alpha with a chance of at most alpha however
// often one looks (Ville 1939). margin lies strictly between 0 and 1; with p0
// itself in its place the noise between windows alone would be evidence.
func HarmEvidence(solved, unsolved int64, margin float64) float64 {
	s, n := float64(solved), float64(solved+unsolved)
	below := BinomialTail(solved+1, solved+unsolved+1, margin) // I_m(S+1, F+1)
	if below < 1e-250 {
		return math.Log(mixtureSeries(s, n, margin))
	}
	logBeta := -math.Log(n+1) - logChoose(n, s)
	return logBeta + math.Log(below) - float64((s+1)*math.Log(margin)) - float64((n-s)*math.Log1p(-margin))
}

// mixtureSeries returns M, for a rate above m, as the hypergeometric series
// (1-m)/(S+1) times the sum over j of (n+2)_j/(S+2)_j m^j (DLMF 8.17.8): its
// terms are positive and fall from the first, where the incomplete beta function
// has long been 0.
func mixtureSeries(s, n, m float64) float64 {
	sum, term := 0.0, 1.0
	for j := 0.0; term > 1e-17*sum; j++ {
		sum += term
		term *= (n + 2 + j) / (s + 2 + j) * m
	}
	return (1 - m) / (s + 1) * sum
}
