package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// CountLimits returns the limits of a u chart, z standard deviations from the
// rate of events per unit in a sample of so many units, cut at 0; for a sample
// of one unit they are those of a c chart (Montgomery, Introduction to
// Statistical Quality Control, 7.3).
func CountLimits(rate, units, z float64) (lower, upper float64) {
	d := z * math.Sqrt(rate/units)
	return max(0, rate-d), rate + d
}

// movingRange is d2 for ranges of two, as Laney and the handbooks print it.
const movingRange = 1.128

// Laney returns how much wider than chance the windows vary, by two measures of
// z_i = (p_i - p0)/sqrt(p0 q0/n_i): sigmaZ = mean |z_i - z_{i-1}|/1.128 sees
// what changes from one window to the next (the p' chart, Laney 2002), sdZ, the
// standard deviation of the z_i, also slow movement. adjacent[i] says that
// window i directly follows window i-1; no range is taken over a gap or over a
// window without samples. sigmaZ is NaN without a pair, both where the pooled
// rate is 0 or 1.
func Laney(ps []Proportion, adjacent []bool) (sigmaZ, sdZ float64) {
	zs, pairs := standardised(ps, adjacent)
	_, sdZ = MeanSD(zs)
	sum := 0.0
	for _, pair := range pairs {
		sum += math.Abs(pair[1] - pair[0])
	}
	return sum / float64(len(pairs)) / movingRange, sdZ
}

// Lag1 returns the lag-1 autocorrelation of the z_i of [Laney] about their mean,
// over adjacent windows only: the mean product of neighbours over the mean
// square (Box, Jenkins and Reinsel, Time Series Analysis, 2.1.5). Where windows
// are missing the sum of m products is divided by m+1, as R's acf does, which
// without gaps is the textbook's sum over sum. It is NaN where there is no pair
// or no spread.
func Lag1(ps []Proportion, adjacent []bool) float64 {
	zs, pairs := standardised(ps, adjacent)
	mean, _ := MeanSD(zs)
	var products, squares float64
	for _, pair := range pairs {
		products += float64((pair[0] - mean) * (pair[1] - mean))
	}
	for _, z := range zs {
		squares += float64((z - mean) * (z - mean))
	}
	if len(pairs) == 0 || squares == 0 {
		return math.NaN()
	}
	return products / float64(len(pairs)+1) / (squares / float64(len(zs)))
}

// standardised returns the z_i of the windows with samples, and those of each
// two neighbours.
func standardised(ps []Proportion, adjacent []bool) (zs []float64, pairs [][2]float64) {
	p0, before := Pool(ps).Rate(), math.NaN()
	for i, p := range ps {
		z := math.NaN()
		if p.N > 0 {
			z = (p.Rate() - p0) / BinomialSD(p0, p.N)
			zs = append(zs, z)
			if i > 0 && adjacent[i] && ps[i-1].N > 0 {
				pairs = append(pairs, [2]float64{before, z})
			}
		}
		before = z
	}
	return zs, pairs
}

// SDRelativeError returns the relative standard error of a standard deviation
// estimated from k independent values: 1/sqrt(2(k-1)) (Ahn and Fessler 2003).
func SDRelativeError(k int) float64 { return 1 / math.Sqrt(2*float64(k-1)) }

// SDUpperFactor returns by what to multiply the standard deviation of k values
// for an upper limit with this confidence: sqrt((k-1)/chi2_{1-conf,k-1}), for
// k of 2 and more (NIST/SEMATECH e-Handbook 7.2.3.1).
func SDUpperFactor(k int, conf float64) float64 {
	free := float64(k - 1)
	return math.Sqrt(free / (2 * mathext.GammaIncRegInv(free/2, 1-conf)))
}
