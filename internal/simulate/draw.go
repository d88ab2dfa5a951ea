package simulate

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/canaryctl/canaryctl/internal/draw"
)

// dice are the random numbers of a feed: one generator that is set anew for
// every stream and tick, so that a draw depends on those and on the seed alone.
type dice struct {
	seed uint64
	pcg  *rand.PCG
	rng  *rand.Rand
}

func (d *dice) init(seed uint64) {
	d.seed = seed
	d.pcg = rand.NewPCG(0, 0)
	d.rng = rand.New(d.pcg)
}

// at sets the generator to the beginning of a stream's tick.
func (d *dice) at(stream, tick int) *dice {
	d.pcg.Seed(draw.Seed(d.seed, uint64(stream+1), uint64(tick)))
	return d
}

// poisson draws a count of the given mean.
func (d *dice) poisson(mean float64) int64 {
	if mean <= 0 {
		return 0
	}
	return int64(distuv.Poisson{Lambda: mean, Src: d.pcg}.Rand())
}

// inversionMean is the mean up to which a binomial count is drawn by going up
// the distribution function; it takes about as many steps.
const inversionMean = 20

// binomial draws how many of n happen with chance p each.
func (d *dice) binomial(n int64, p float64) int64 {
	switch {
	case n <= 0 || p <= 0:
		return 0
	case p >= 1:
		return n
	case p > 0.5:
		return n - d.binomial(n, 1-p)
	case float64(n)*p > inversionMean:
		return int64(distuv.Binomial{N: float64(n), P: p, Src: d.pcg}.Rand())
	}
	return draw.Inversion(d.rng, n, p, math.Log1p(-p))
}

// manySteps is how many requests above the percentile are still drawn one by
// one.
const manySteps = 500

// rankOf99 returns the nearest rank of the 99th percentile of n values.
func rankOf99(n int64) int64 { return (n*99 + 99) / 100 }

// p99 draws the 99th percentile, by nearest rank, of n log-normal latencies
// whose distribution has its own at level.
//
// It needs no n draws: the k-th smallest of n uniform numbers is reached from
// the largest downwards, and the gaps between their logarithms are independent
// and exponential with means 1/n, 1/(n-1), ... (Renyi 1953). One of a hundred
// values lies above the percentile, so one draw for every hundred is enough.
// Beyond manySteps of them the k-th smallest is drawn as the beta variable that
// it is.
func (d *dice) p99(n int64, level, sigma float64) float64 {
	k := rankOf99(n)
	if n-k >= manySteps {
		above := distuv.Beta{Alpha: float64(n - k + 1), Beta: float64(k), Src: d.pcg}.Rand()
		return level * math.Exp(sigma*(normalQuantileLog(math.Log1p(-above))-z99))
	}
	logU := 0.0
	for i := n; i >= k; i-- {
		logU -= d.rng.ExpFloat64() / float64(i)
	}
	return level * math.Exp(sigma*(normalQuantileLog(logU)-z99))
}

// z99 is the 99th percentile of the standard normal distribution.
var z99 = math.Sqrt2 * math.Erfinv(0.98)

// normalQuantileLog returns the standard normal quantile of exp(logU), exact in
// the upper tail, where exp(logU) is too near to 1 for a float.
func normalQuantileLog(logU float64) float64 {
	return math.Sqrt2 * math.Erfcinv(-2*math.Expm1(logU))
}

// mean draws the mean of n log-normal costs of mean level. A sum of log-normal
// values is drawn as log-normal of the same mean and variance (Fenton 1960),
// which is exact for n 1 and for large n the normal limit.
func (d *dice) mean(n int64, level, sigma float64) float64 {
	variance := math.Log1p(math.Expm1(sigma*sigma) / float64(n))
	return level * math.Exp(math.Sqrt(variance)*d.rng.NormFloat64()-variance/2)
}
