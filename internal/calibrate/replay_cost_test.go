package calibrate

import (
	"math"
	"testing"

	"github.com/canaryctl/canaryctl/internal/stats"
)

// A window's recorded mean of 100 costs, cv 1.5, and what two arms of it have.
func TestPricesVaryAsAChoiceOfTheRecordedRequests(t *testing.T) {
	const cv, runs = 1.5, 20_000
	l := load{unjudged: 100, costMean: 2, costOf: 100}
	d := newDice(1, drawCost, 0)
	for _, kept := range []int64{1, 10, 30, 50, 90, 100} {
		var canary, ratios []float64
		for range runs {
			c, s := l.prices(d, cv, kept)
			canary = append(canary, c/2)
			if kept < 100 {
				if s <= 0 || math.Abs(c*float64(kept)+s*float64(100-kept)-200) > 1e-9 {
					t.Fatalf("%d kept: %v and %v are not the recorded sum", kept, c, s)
				}
				ratios = append(ratios, c/2-s/2)
			}
		}
		mean, sd := stats.MeanSD(canary)
		// A share of a sum of n gamma costs varies as beta: a hair less than cv^2 (1/k - 1/n).
		want := cv * math.Sqrt((1/float64(kept)-1.0/100)/(1+cv*cv/100))
		if math.Abs(mean-1) > 4*want/math.Sqrt(runs)+0.02 || math.Abs(sd-want) > 0.06*want {
			t.Errorf("%d kept: mean %v, sd %v, want 1 and %v", kept, mean, sd, want)
		}
		if kept == 100 {
			continue
		}
		n, m := float64(kept), float64(100-kept)
		if _, sd := stats.MeanSD(ratios); math.Abs(sd-cv*math.Sqrt((1/n+1/m)/(1+cv*cv/100))) > 0.06*sd {
			t.Errorf("%d kept: the arms differ by %v, want %v", kept, sd, cv*math.Sqrt(1/n+1/m))
		}
	}
}

// Half of a recorded window is not as noisy as half of that many fresh requests.
func TestPricesOfAPartOfAWindow(t *testing.T) {
	l := load{unjudged: 50, costMean: 1, costOf: 100}
	d := newDice(1, drawCost, 0)
	var means []float64
	for range 20_000 {
		c, _ := l.prices(d, 1, 50)
		means = append(means, c)
	}
	if _, sd := stats.MeanSD(means); math.Abs(sd-0.1) > 0.004 {
		t.Errorf("sd %v, want sqrt(1/50 - 1/100) = 0.1", sd)
	}
}

// Two arms of few log-normal requests: what stable is compared with is never
// next to nothing, as it would be if its cost were what a clamp leaves.
func TestFewRequestsArePricedOneByOne(t *testing.T) {
	l := load{unjudged: 2, costMean: 1, costOf: 2}
	d := newDice(1, drawCost, 0)
	sum, most := 0.0, 0.0
	const runs = 20_000
	for range runs {
		c, s := l.prices(d, 0.944, 1)
		sum += c / s
		most = math.Max(most, c/s)
	}
	// The ratio of two log-normal costs has the mean exp(sigma^2), sigma^2 = ln(1+cv^2).
	if want := 1 + 0.944*0.944; math.Abs(sum/runs-want) > 0.1*want || most > 200 {
		t.Errorf("mean ratio %v, want %v; the largest %v", sum/runs, want, most)
	}
}
