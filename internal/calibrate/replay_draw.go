package calibrate

import (
	"math"
	"math/rand/v2"

	"github.com/canaryctl/canaryctl/internal/draw"
)

// purpose is what random numbers are for. Every purpose of a seed has a stream
// of its own, so that a change in one leaves the draws of the others alone.
type purpose uint64

const (
	drawBlocks   purpose = iota + 1 // days of the resampled weeks
	drawSplit                       // minutes of windows that are longer than a tick
	drawThin                        // the canary's share, by step
	drawCost                        // mean costs of both arms, by step
	drawFault                       // when a drop begins and whom it strikes, by step
	drawStart                       // when the release begins
	drawRelease                     // its blocks ...
	drawReSplit                     // ... its minutes ...
	drawReThin                      // ... and its shares
	drawReleaseC                    // and its costs
)

// dice is one stream of random numbers.
type dice struct {
	source *rand.PCG
	rng    *rand.Rand // over source

	// Of the chance last asked for, since a step asks for the same one all week:
	// ln(1-p), how often it was asked for, and, once that is often enough, that none
	// of n happen.
	p, logQ float64
	asked   int
	none    []float64
}

// The chance of none is kept of up to noneOf requests, from the noneFrom-th time
// on that the same chance is asked for.
const (
	noneOf   = 1024
	noneFrom = 200
)

func newDice(seed uint64, what purpose, step int) *dice {
	source := rand.NewPCG(draw.Seed(seed, uint64(what), uint64(step)))
	return &dice{source: source, rng: rand.New(source)}
}

// float64 is [rand.Rand.Float64] of the same stream, without the call through
// an interface.
func (d *dice) float64() float64 { return float64(d.source.Uint64()<<11>>11) / (1 << 53) }

// inversionMean is the mean up to which a binomial count is drawn by going up
// the distribution function; it takes about as many steps.
const inversionMean = 12

// binomial draws how many of n happen with chance p each.
func (d *dice) binomial(n int64, p float64) int64 {
	switch {
	case n <= 0 || p <= 0:
		return 0
	case p >= 1:
		return n
	case p > 0.5:
		return n - d.binomial(n, 1-p)
	case float64(n)*p < inversionMean:
		return draw.FromNone(d.float64(), n, p, d.chanceOfNone(n, p))
	}
	return d.rejection(n, p)
}

// chanceOfNone is (1-p)^n.
func (d *dice) chanceOfNone(n int64, p float64) float64 {
	if d.p != p {
		d.p, d.logQ, d.asked = p, math.Log1p(-p), 0
	}
	if d.asked++; d.asked < noneFrom || n >= noneOf {
		return math.Exp(float64(n) * d.logQ)
	}
	if d.asked == noneFrom {
		d.none = make([]float64, noneOf)
	}
	if d.none[n] == 0 {
		d.none[n] = math.Exp(float64(n) * d.logQ)
	}
	return d.none[n]
}

// rejection is algorithm BTRS of Hoermann (1993), "The generation of binomial
// random variates", exact for p up to a half and n p of 10 and more.
func (d *dice) rejection(n int64, p float64) int64 {
	m := float64(n)
	sd := math.Sqrt(m * p * (1 - p))
	b := 1.15 + float64(2.53*sd)
	a := -0.0873 + float64(0.0248*b) + float64(0.01*p)
	centre := float64(m*p) + 0.5
	quick := 0.92 - 4.2/b
	alpha := (2.83 + 5.1/b) * sd
	for {
		u, v := d.float64()-0.5, d.float64()
		us := 0.5 - math.Abs(u)
		k := math.Floor(float64((2*a/us+b)*u) + centre)
		if us >= 0.07 && v <= quick {
			return int64(k)
		}
		if k < 0 || k > m {
			continue
		}
		if math.Log(v*alpha/(float64(a/(us*us))+b)) <= binomialLogRatio(m, p, k) {
			return int64(k)
		}
	}
}

// binomialLogRatio returns ln of P(X=k)/P(X=mode) for X ~ Bin(n, p).
func binomialLogRatio(n, p, k float64) float64 {
	mode := math.Floor((n + 1) * p)
	return logFactorial(mode) + logFactorial(n-mode) - logFactorial(k) - logFactorial(n-k) + float64((k-mode)*math.Log(p/(1-p)))
}

// logFactorials are ln x! of small x, which are asked for all the time.
var logFactorials = func() (table [2048]float64) {
	for x := range table {
		table[x], _ = math.Lgamma(float64(x) + 1)
	}
	return table
}()

// logFactorial returns ln x!.
func logFactorial(x float64) float64 {
	if x < float64(len(logFactorials)) {
		return logFactorials[int(x)]
	}
	lgamma, _ := math.Lgamma(x + 1)
	return lgamma
}

// oneByOne is up to how many marked requests are looked for one by one.
const oneByOne = 24

// among draws how many of marked requests are among kept ones chosen at random
// out of all: hypergeometric, and over a binomial number kept it is binomial.
func (d *dice) among(marked, kept, all int64) int64 {
	marked = min(marked, all)
	switch {
	case marked <= 0 || kept <= 0:
		return 0
	case kept >= all:
		return marked
	case kept > all-kept: // those that are not kept are fewer
		return marked - d.among(marked, all-kept, all)
	case marked > all-marked:
		return kept - d.among(all-marked, kept, all)
	case kept < marked: // how many of the kept are marked is the same question
		marked, kept = kept, marked
	}
	if marked > oneByOne {
		return d.fromMode(marked, kept, all)
	}
	got := int64(0)
	for i := range marked {
		if d.float64()*float64(all-i) < float64(kept-got) {
			got++
		}
	}
	return got
}

// fromMode draws a hypergeometric count by inversion, from its mode outwards on
// both sides in turn (Kachitvichyanukul and Schmeiser 1985, HIN, begun at the
// mode): it takes about as many steps as the standard deviation is wide.
// marked and kept are at most half of all.
func (d *dice) fromMode(marked, kept, all int64) int64 {
	m, k, n := float64(marked), float64(kept), float64(all)
	mode := math.Floor((m + 1) * (k + 1) / (n + 2))
	choose := func(n, k float64) float64 { return logFactorial(n) - logFactorial(k) - logFactorial(n-k) }
	up := math.Exp(choose(m, mode) + choose(n-m, k-mode) - choose(n, k))
	down, high, low := up, mode, mode
	u := d.float64() - up
	for u > 0 && (up > 0 || down > 0) {
		up = float64(up * ((m - high) * (k - high) / ((high + 1) * (n - m - k + high + 1))))
		if high++; u <= up {
			return int64(high)
		}
		u -= up
		down = float64(down * (low * (n - m - k + low) / ((m - low + 1) * (k - low + 1))))
		if low--; u <= down {
			return int64(low)
		}
		u -= down
	}
	return int64(mode)
}

// gamma draws from a gamma distribution of mean 1 (Marsaglia and Tsang 2000).
func (d *dice) gamma(shape float64) float64 {
	boost, a := 1.0, shape
	if a < 1 {
		boost, a = math.Pow(d.float64(), 1/shape), shape+1
	}
	third := a - 1.0/3
	c := 1 / math.Sqrt(9*third)
	for {
		x := d.rng.NormFloat64()
		v := 1 + float64(c*x)
		if v <= 0 {
			continue
		}
		v *= v * v
		u := d.float64()
		if u < 1-float64(0.0331*(x*x)*(x*x)) || math.Log(u) < float64(x*x)/2+third-float64(third*v)+float64(third*math.Log(v)) {
			return boost * third * v / shape
		}
	}
}
