package calibrate

import (
	"math"
	"math/rand/v2"
	"sync/atomic"

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
	source draw.PCG
	rng    *rand.Rand // over source
	kept   *memory    // nil: its own, from the first draw that would use it
	of     *chances   // of the chance last asked for, since a step asks for the same one all week
}

func newDice(seed uint64, what purpose, step int) *dice {
	d := &dice{source: draw.NewPCG(draw.Seed(seed, uint64(what), uint64(step)))}
	d.rng = rand.New(&d.source)
	return d
}

// with lets the dice use what others have kept.
func (d *dice) with(m *memory) *dice {
	d.kept = m
	return d
}

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
	}
	if d.of == nil || d.of.p != p {
		if d.kept == nil {
			d.kept = new(memory)
		}
		d.of = d.kept.chances(p)
	}
	if float64(n)*p < inversionMean {
		return d.of.inversion(n, d.source.Float64())
	}
	return d.rejection(d.of.hat(n))
}

// rejection is algorithm BTRS of Hoermann (1993), "The generation of binomial
// random variates", exact for p up to a half and n p of 10 and more.
func (d *dice) rejection(h *hat) int64 {
	for {
		u, v := d.source.Float64()-0.5, d.source.Float64()
		us := 0.5 - math.Abs(u)
		k := math.Floor(float64((2*h.a/us+h.b)*u) + h.centre)
		if us >= 0.07 && v <= h.quick {
			return int64(k)
		}
		if k < 0 || k > h.n {
			continue
		}
		if math.Log(v*h.alpha/(float64(h.a/(us*us))+h.b)) <= h.logRatio(k) {
			return int64(k)
		}
	}
}

// logFactorials are ln x! of small x, which are asked for all the time. They are
// made when they are first asked for: start-up does not wait for them. Goroutines
// that ask at once make the same ones.
var logFactorials atomic.Pointer[[2048]float64]

func makeLogFactorials() *[2048]float64 {
	table := new([2048]float64)
	for x := range table {
		table[x], _ = math.Lgamma(float64(x) + 1)
	}
	logFactorials.Store(table)
	return table
}

// logFactorial returns ln x!.
func logFactorial(x float64) float64 {
	table := logFactorials.Load()
	if table == nil {
		table = makeLogFactorials()
	}
	if x < float64(len(table)) {
		return table[int(x)]
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
	return d.source.Among(marked, kept, all)
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
	u := d.source.Float64() - up
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
		boost, a = math.Pow(d.source.Float64(), 1/shape), shape+1
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
		u := d.source.Float64()
		if u < 1-float64(0.0331*(x*x)*(x*x)) || math.Log(u) < float64(x*x)/2+third-float64(third*v)+float64(third*math.Log(v)) {
			return boost * third * v / shape
		}
	}
}
