package stats

import "math"

// CusumWeights returns what one solved and one unsolved request add to the
// CUSUM of a fall from p0 to p1: ln(p1/p0) and ln(q1/q0), the log likelihood
// ratio of Page's test (Page 1954; Reynolds and Stoumbos 1999 for proportions).
// After a window of n with x solved S becomes max(0, S + x solved + (n-x)
// unsolved); a fall is signalled above a limit. With p1 < p0 solved is negative
// and unsolved positive. Both p lie strictly between 0 and 1.
func CusumWeights(p0, p1 float64) (solved, unsolved float64) {
	return math.Log(p1 / p0), math.Log((1 - p1) / (1 - p0))
}
