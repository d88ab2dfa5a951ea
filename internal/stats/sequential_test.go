package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func TestHarmEvidence(t *testing.T) {
	near(t, "nothing seen", HarmEvidence(0, 0, .85), 0, 1e-12)
	// One request: the mean of p over [0, m] over m, and of 1-p over 1-m.
	near(t, "one solved", HarmEvidence(1, 0, .85), math.Log(.5), 1e-12)
	near(t, "one unsolved", HarmEvidence(0, 1, .85), math.Log((1-.425)/.15), 1e-12)
	// All solved: m^(n+1)/(n+1) over m^(n+1).
	near(t, "a million solved", HarmEvidence(1_000_000, 0, .85), -math.Log(1_000_001), 1e-6)
	// None solved: (1 - (1-m)^(n+1))/((n+1) m (1-m)^n).
	near(t, "a million unsolved", HarmEvidence(0, 1_000_000, .85)/(-1e6*math.Log(.15)-math.Log(1_000_001*.85)), 1, 1e-12)
}

// Against the integral itself, by Simpson's rule.
func TestHarmEvidenceIsTheMixture(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.Int64Range(0, 200).Draw(t, "solved")
		f := rapid.Int64Range(0, 200).Draw(t, "unsolved")
		m := rapid.Float64Range(.05, .95).Draw(t, "margin")
		ratio := func(p float64) float64 {
			return math.Exp(float64(s)*math.Log(p/m) + float64(f)*math.Log((1-p)/(1-m)))
		}
		const steps = 500
		sum := 0.0
		for i := range steps {
			l, h := m*float64(i)/steps, m*float64(i+1)/steps
			sum += (ratio(l) + 4*ratio((l+h)/2) + ratio(h)) / 6 / steps
		}
		if got := HarmEvidence(s, f, m); math.Abs(got-math.Log(sum)) > 1e-3 {
			t.Fatalf("%v, want %v", got, math.Log(sum))
		}
	})
}

// Where the incomplete beta function underflows, the series takes over without a step.
func TestHarmEvidenceFarAboveTheMargin(t *testing.T) {
	for _, n := range []int64{1000, 10_000, 100_000} {
		s := n * 19 / 20
		direct, f := HarmEvidence(s, n-s, .8), float64(n)
		near(t, "series", math.Log(mixtureSeries(float64(s), f, .8)), direct, 1e-8*math.Abs(direct))
		if math.IsInf(direct, 0) || direct > -3 {
			t.Errorf("%d of %d solved is evidence %v of less than 0.8", s, n, direct)
		}
	}
}

// On average M stays as it is at the margin and falls above it.
func TestHarmEvidenceIsASupermartingale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.Int64Range(0, 2000).Draw(t, "solved")
		f := rapid.Int64Range(0, 2000).Draw(t, "unsolved")
		m := rapid.Float64Range(.05, .97).Draw(t, "margin")
		p := rapid.Float64Range(m, 1).Draw(t, "true rate")
		now := HarmEvidence(s, f, m)
		up, down := math.Exp(HarmEvidence(s+1, f, m)-now), math.Exp(HarmEvidence(s, f+1, m)-now)
		if at := m*up + (1-m)*down; math.Abs(at-1) > 1e-7 {
			t.Fatalf("at the margin M becomes %v of itself", at)
		}
		if above := p*up + (1-p)*down; above > 1+1e-7 {
			t.Fatalf("at %v M becomes %v of itself", p, above)
		}
	})
}

// Looked at after every 5 requests, a service just at the margin is accused
// with a chance of at most alpha, and one at p0 never.
func TestHarmEvidenceMayBeLookedAtAlways(t *testing.T) {
	runs := 400
	if testing.Short() {
		runs = 100
	}
	const alpha, looks = .05, 400
	rng := rand.New(rand.NewPCG(5, 5))
	for p, most := range map[float64]float64{.85: alpha, .9: 0.005} {
		accused := 0
		draw := binomialSampler(rng, 5, p)
		for range runs {
			if after := harmAfter(draw, 5, looks, alpha); after <= looks {
				accused++
			}
		}
		if share := float64(accused) / float64(runs); share > most+3*math.Sqrt(most/float64(runs)) {
			t.Errorf("at %v accused in %v of runs, at most %v", p, share, most)
		}
	}
}

// harmAfter returns after how many looks at n requests each M reaches 1/alpha
// against a margin of .85, or one more than looks.
func harmAfter(draw func() float64, n int64, looks int, alpha float64) int {
	var solved, unsolved int64
	for i := range looks {
		x := int64(draw())
		solved, unsolved = solved+x, unsolved+n-x
		if HarmEvidence(solved, unsolved, .85) >= -math.Log(alpha) {
			return i + 1
		}
	}
	return looks + 1
}

// Mean minutes until harm is seen at alpha 1 %, p0 .90, margin 5 pp: 95, 33 and
// 9 for a fall of 10 pp at 8, 26 and 100 requests a minute, 12, 4 and 1.5 for 20 pp.
func TestHarmEvidenceDelays(t *testing.T) {
	runs := 300
	if testing.Short() {
		runs = 80
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		n          int64
		drop, want float64
	}{{8, .1, 95}, {26, .1, 33}, {100, .1, 9}, {8, .2, 12}, {26, .2, 4}, {100, .2, 1.5}} {
		total, draw := 0, binomialSampler(rng, c.n, .9-c.drop)
		for range runs {
			total += harmAfter(draw, c.n, 2000, .01)
		}
		near(t, "minutes", float64(total)/float64(runs), c.want, 0.2*c.want+0.3)
	}
}
