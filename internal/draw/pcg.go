package draw

import "math/bits"

// PCG is the generator of [math/rand/v2.PCG], number for number (PCG-DXSM,
// O'Neill 2014), for loops that draw millions: what a number takes is formed in
// place.
type PCG struct{ hi, lo uint64 }

// NewPCG returns a generator with the two halves of its seed.
func NewPCG(hi, lo uint64) PCG { return PCG{hi, lo} }

// Uint64 returns the next number; with it a PCG is a source of package rand.
func (g *PCG) Uint64() uint64 {
	g.hi, g.lo = step(g.hi, g.lo)
	return output(g.hi, g.lo)
}

// Float64 returns what [math/rand/v2.Rand.Float64] makes of the next number:
// one of [0, 1).
func (g *PCG) Float64() float64 {
	g.hi, g.lo = step(g.hi, g.lo)
	return unit(g.hi, g.lo)
}

// Among draws how many of marked requests are among kept ones chosen at random
// out of all, asking each of the marked in turn (selection sampling; Fan, Muller
// and Rezucha 1962).
func (g *PCG) Among(marked, kept, all int64) (got int64) {
	hi, lo := g.hi, g.lo
	free, left := float64(kept), float64(all)
	for range marked {
		hi, lo = step(hi, lo)
		if unit(hi, lo)*left < free {
			free--
			got++
		}
		left--
	}
	g.hi, g.lo = hi, lo
	return got
}

// step is the next state: the last times a number plus another, modulo 2^128.
func step(hi, lo uint64) (nextHi, nextLo uint64) {
	const (
		mulHi, mulLo = 2549297995355413924, 4865540595714422341
		incHi, incLo = 6364136223846793005, 1442695040888963407
	)
	nextHi, nextLo = bits.Mul64(lo, mulLo)
	nextHi += hi*mulLo + lo*mulHi
	nextLo, carry := bits.Add64(nextLo, incLo, 0)
	return nextHi + incHi + carry, nextLo
}

// output is the number of a state.
func output(hi, lo uint64) uint64 {
	const cheapMul = 0xda942042e4dd58b5
	hi ^= hi >> 32
	hi *= cheapMul
	hi ^= hi >> 48
	return hi * (lo | 1)
}

// unit is that number as one of [0, 1).
func unit(hi, lo uint64) float64 { return float64(int64(output(hi, lo)<<11>>11)) / (1 << 53) }
