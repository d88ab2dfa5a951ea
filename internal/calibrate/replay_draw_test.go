package calibrate

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// farOff is a Kolmogorov-Smirnov distance that comes by chance once in 30,000
// (1.63 at 1 %, 2.33 at 1 in 26,000, over the root of the draws).
const farOff = 2.33

// TestBinomialDrawsFollowTheirDistribution on every way they are drawn.
func TestBinomialDrawsFollowTheirDistribution(t *testing.T) {
	const draws = 40_000
	for _, tc := range []struct {
		n int64
		p float64
	}{{1, 0.3}, {6, 0.01}, {100, 0.05}, {100, 0.95}, {24, 0.5}, {25, 0.5}, {100, 0.3}, {1000, 0.02}, {5000, 0.3}, {20_000, 0.7}, {3_000_000, 0.00001}} {
		t.Run(fmt.Sprintf("%d at %v", tc.n, tc.p), func(t *testing.T) {
			d := newDice(uint64(tc.n), drawThin, 0)
			seen := map[int64]int{}
			for range draws {
				k := d.binomial(tc.n, tc.p)
				if k < 0 || k > tc.n {
					t.Fatalf("drew %d of %d", k, tc.n)
				}
				seen[k]++
			}
			at := func(k int64) float64 { return stats.BinomialCDF(k, tc.n, tc.p) }
			if off := distance(seen, draws, tc.n, at); off > farOff {
				t.Errorf("distance %v root-draws from the distribution", off)
			}
		})
	}
}

// distance is the largest difference of the two distribution functions, times
// the root of the draws. Beyond what was seen there is none to look for.
func distance(seen map[int64]int, draws, n int64, cdf func(int64) float64) float64 {
	low, high := n, int64(0)
	for k := range seen {
		low, high = min(low, k), max(high, k)
	}
	sum, far := 0, cdf(low-1)
	for k := low; k <= high; k++ {
		sum += seen[k]
		far = max(far, math.Abs(float64(sum)/float64(draws)-cdf(k)))
	}
	return far * math.Sqrt(float64(draws))
}

// TestMarkedAmongKeptAreHypergeometric on both ways they are drawn.
func TestMarkedAmongKeptAreHypergeometric(t *testing.T) {
	const draws = 40_000
	for _, tc := range []struct{ marked, kept, all int64 }{
		{3, 6, 600}, {24, 300, 1000}, {25, 300, 1000}, {300, 25, 1000}, {700, 900, 1000}, {900, 50, 1000}, {500, 500, 1000}, {400, 6000, 20_000},
	} {
		t.Run(fmt.Sprintf("%d among %d of %d", tc.marked, tc.kept, tc.all), func(t *testing.T) {
			d := newDice(7, drawThin, int(tc.marked))
			seen := map[int64]int{}
			for range draws {
				k := d.among(tc.marked, tc.kept, tc.all)
				if k < 0 || k > min(tc.marked, tc.kept) || tc.marked-k > tc.all-tc.kept {
					t.Fatalf("drew %d", k)
				}
				seen[k]++
			}
			m, n, all := float64(tc.marked), float64(tc.kept), float64(tc.all)
			lg := func(n, k float64) float64 {
				a, _ := math.Lgamma(n + 1)
				b, _ := math.Lgamma(k + 1)
				c, _ := math.Lgamma(n - k + 1)
				return a - b - c
			}
			cdf := make([]float64, tc.kept+2)
			for k := int64(0); k <= tc.kept; k++ {
				x := float64(k)
				if x <= m && n-x <= all-m {
					cdf[k+1] = math.Exp(lg(m, x) + lg(all-m, n-x) - lg(all, n))
				}
				cdf[k+1] += cdf[k]
			}
			if math.Abs(cdf[tc.kept+1]-1) > 1e-9 {
				t.Fatalf("the test's own distribution adds up to %v", cdf[tc.kept+1])
			}
			if off := distance(seen, draws, tc.kept, func(k int64) float64 { return cdf[k+1] }); off > farOff {
				t.Errorf("distance %v root-draws from the distribution", off)
			}
		})
	}
}

// TestMeanCostsScatterAsMeansDo: mean 1 and variance 1/shape.
func TestMeanCostsScatterAsMeansDo(t *testing.T) {
	const draws = 100_000
	for _, shape := range []float64{0.3, 1, 4, 250} {
		d := newDice(3, drawCost, 0)
		var xs []float64
		for range draws {
			xs = append(xs, d.gamma(shape))
		}
		mean, sd := stats.MeanSD(xs)
		if want := 1 / math.Sqrt(shape); math.Abs(mean-1) > 5*want/math.Sqrt(draws) || math.Abs(sd/want-1) > 0.03 {
			t.Errorf("shape %v: mean %v sd %v, want 1 and %v", shape, mean, sd, want)
		}
	}
}

func anyLoad(t *rapid.T) load {
	n := func(name string, most int64) int64 { return rapid.Int64Range(0, most).Draw(t, name) }
	l := load{
		known:  replayable,
		solved: n("solved", 2000), unsolved: n("unsolved", 300), unjudged: n("unjudged", 100), costMean: 0.01,
	}
	all := l.total()
	l.violations, l.transfers, l.slow = n("violations", min(all, 5)), n("transfers", all), n("slow", all)
	return l
}

// TestCanaryAndStableAddUpToTheBaseline, and no arm has more marked requests
// than requests.
func TestCanaryAndStableAddUpToTheBaseline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := anyLoad(t)
		p := rapid.SampledFrom([]float64{0, 0.01, 0.1, 0.5, 0.9, 1}).Draw(t, "share")
		part := whole.part(newDice(rapid.Uint64().Draw(t, "seed"), drawThin, 0), p)
		rest := whole.less(&part)
		for name, l := range map[string]load{"part": part, "rest": rest} {
			if l.solved < 0 || l.unsolved < 0 || l.unjudged < 0 || l.violations < 0 || l.transfers < 0 || l.slow < 0 {
				t.Fatalf("%s has less than nothing: %+v", name, l)
			}
			if n := l.total(); l.violations > n || l.transfers > n || l.slow > n {
				t.Fatalf("%s has more marked requests than requests: %+v", name, l)
			}
		}
		for _, sum := range [][3]int64{
			{part.solved, rest.solved, whole.solved}, {part.unsolved, rest.unsolved, whole.unsolved}, {part.unjudged, rest.unjudged, whole.unjudged},
			{part.violations, rest.violations, whole.violations}, {part.transfers, rest.transfers, whole.transfers}, {part.slow, rest.slow, whole.slow},
		} {
			if sum[0]+sum[1] != sum[2] {
				t.Fatalf("%d and %d do not add up to %d", sum[0], sum[1], sum[2])
			}
		}
	})
}

// TestAShareOfEveryCount: on the mean of many draws each count is thinned to
// the share.
func TestAShareOfEveryCount(t *testing.T) {
	whole := load{known: replayable, solved: 900, unsolved: 60, unjudged: 40, violations: 2, transfers: 80, slow: 10}
	const draws, share = 20_000, 0.05
	d := newDice(1, drawThin, 0)
	var sum load
	for range draws {
		part := whole.part(d, share)
		sum.solved += part.solved
		sum.unsolved += part.unsolved
		sum.unjudged += part.unjudged
		sum.violations += part.violations
		sum.transfers += part.transfers
		sum.slow += part.slow
	}
	for name, c := range map[string][2]int64{
		"solved": {sum.solved, whole.solved}, "unsolved": {sum.unsolved, whole.unsolved}, "unjudged": {sum.unjudged, whole.unjudged},
		"violations": {sum.violations, whole.violations}, "transfers": {sum.transfers, whole.transfers}, "slow": {sum.slow, whole.slow},
	} {
		want := share * float64(c[1]) * draws
		if got := float64(c[0]); math.Abs(got-want) > 5*math.Sqrt(want) {
			t.Errorf("%s: %v kept, want about %v", name, got, want)
		}
	}
}

// TestJoinedWindowsKnowWhatBothKnow.
func TestJoinedWindowsKnowWhatBothKnow(t *testing.T) {
	a := load{known: release.HasSolved | release.HasTransfers, solved: 9, unsolved: 1, transfers: 2}
	b := load{known: release.HasTransfers, unjudged: 10, transfers: 1}
	a.join(&b)
	if a.known != release.HasTransfers || a.solved != 0 || a.total() != 20 || a.transfers != 3 {
		t.Errorf("joined: %+v", a)
	}
	empty := load{}
	a.join(&empty)
	if a.total() != 20 || a.known != release.HasTransfers {
		t.Errorf("a part without requests takes what is known of the rest away: %+v", a)
	}
}
