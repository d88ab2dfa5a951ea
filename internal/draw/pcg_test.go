package draw

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestThePCGIsThatOfPackageRand, number for number, and its floats.
func TestThePCGIsThatOfPackageRand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hi, lo := rapid.Uint64().Draw(t, "hi"), rapid.Uint64().Draw(t, "lo")
		want, got := rand.NewPCG(hi, lo), NewPCG(hi, lo)
		floats := rand.New(want)
		for i := range 50 {
			if i%2 == 0 {
				if a, b := got.Uint64(), want.Uint64(); a != b {
					t.Fatalf("number %d: %d, want %d", i, a, b)
				}
				continue
			}
			if a, b := got.Float64(), floats.Float64(); a != b {
				t.Fatalf("number %d: %v, want %v", i, a, b)
			}
		}
	})
}

// TestAmongAsksOneAfterTheOther as the plain loop does.
func TestAmongAsksOneAfterTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hi, lo := rapid.Uint64().Draw(t, "hi"), rapid.Uint64().Draw(t, "lo")
		all := rapid.Int64Range(1, 1_000_000).Draw(t, "all")
		kept, marked := rapid.Int64Range(0, all).Draw(t, "kept"), rapid.Int64Range(0, min(all, 60)).Draw(t, "marked")
		rng, g := rand.New(rand.NewPCG(hi, lo)), NewPCG(hi, lo)
		want := int64(0)
		for i := range marked {
			if rng.Float64()*float64(all-i) < float64(kept-want) {
				want++
			}
		}
		if got := g.Among(marked, kept, all); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
		if a, b := g.Uint64(), rng.Uint64(); a != b {
			t.Fatal("the next number is not the next")
		}
	})
}

// TestKeptTermsDrawTheSame, however often they are asked.
func TestKeptTermsDrawTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, p := rapid.Int64Range(1, 400).Draw(t, "n"), rapid.Float64Range(1e-6, 0.5).Draw(t, "p")
		none := math.Exp(float64(n) * math.Log1p(-p))
		kept := NewTerms(n, p, none)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for i := range 40 {
			u := rng.Float64()
			if i%8 == 7 {
				u = 1 - u/(1<<40) // far out
			}
			if got, want := kept.Draw(u), FromNone(u, n, p, none); got != want {
				t.Fatalf("draw %d of %v: %d, want %d", i, u, got, want)
			}
		}
	})
}
