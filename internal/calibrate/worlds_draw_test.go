package calibrate

import (
	"math"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// A world is a service whose truth is known: truthRate requests in every
// minute, of which truthSolved are solved but for what the world adds. Its
// violations, transfers, slow requests and costs are drawn request by request
// and move with nothing.
const (
	truthRate       = 100
	truthSolved     = 0.90
	truthViolations = 0.0005
	truthTransfers  = 0.02
	truthSlow       = 0.01
	truthCost       = 0.004 // USD a request
	truthCostCV     = 1.5
	truthMinutes    = 7 * 24 * 60
)

// truth is one world.
type truth struct {
	name  string
	words string // for the page
	tau   float64
	memory,
	swing float64 // correlation of neighbouring blocks; amplitude of a day's sine
	incidents bool     // in the baseline week only
	detect    string   // the drop to find, in percentage points, where the default lies inside the noise
	holds     bool     // what the formulas assume is so: a normal noise, each live window's nearly its own
	says      []string // what every report of it warns of
}

// blockMin is for how many minutes the noise stands still.
const blockMin = 10

var truths = []truth{
	{name: "no noise", words: "the rate stands still", holds: true},
	{name: "2 pp", words: "the rate moves every ten minutes, by a normal noise of sd 2 pp, each time anew", tau: 0.02, holds: true},
	{name: "2 pp, slow", words: "the same noise, but each ten minutes hang on the ten before with a correlation of 0.9", tau: 0.02, memory: 0.9, says: []string{"slow-drift"}},
	{name: "day and night", words: "the rate swings over the day by 4 pp up and 4 pp down", swing: 0.04, detect: "25", says: []string{"hour-swing", "slow-drift"}},
	{name: "2 pp, incidents", words: "2 pp as above; the week that is learnt from has three hours that are 25 pp worse, the fresh weeks have none", tau: 0.02, incidents: true, holds: true, says: []string{"incidents"}},
}

// The purposes that worlds need random numbers for, apart from the replay's.
const (
	drawTruth purpose = 100 + iota
	drawWhole
	drawCanary
	drawBad
)

// rates draws the true solve rate of every minute of a week.
func (w *truth) rates(seed uint64) []float64 {
	d := newDice(seed, drawTruth, 0)
	rates := make([]float64, truthMinutes)
	x := d.rng.NormFloat64()
	for i := range rates {
		if i > 0 && i%blockMin == 0 {
			x = float64(w.memory*x) + float64(math.Sqrt(1-w.memory*w.memory)*d.rng.NormFloat64())
		}
		day := float64(i) / (24 * 60)
		rates[i] = min(max(truthSolved+float64(w.tau*x)+float64(w.swing*math.Sin(2*math.Pi*day)), 0), 1)
	}
	return rates
}

// baseline draws the week that is learnt from: the whole traffic.
func (w *truth) baseline(seed uint64) []release.Window {
	rates := w.rates(seed)
	if w.incidents {
		for _, hour := range []int{1*24 + 10, 3*24 + 15, 5*24 + 2} {
			for i := hour * 60; i < (hour+1)*60; i++ {
				rates[i] -= 0.25
			}
		}
	}
	d := newDice(seed, drawWhole, 0)
	ws := make([]release.Window, len(rates))
	for i := range ws {
		ws[i] = drawn(d, i, truthRate, rates[i])
		ws[i].Arm, ws[i].P99MS = release.All, 900
		ws[i].CostMean = truthCost * d.gamma(truthRate/(truthCostCV*truthCostCV))
		ws[i].Known |= release.HasCostMean | release.HasP99
	}
	return ws
}

// drawn is a minute's window of n requests.
func drawn(d *dice, minute int, n int64, rate float64) release.Window {
	return release.Window{
		T: monday.Add(time.Duration(minute) * time.Minute), Span: time.Minute, Arm: release.Canary, Total: n, Judged: n,
		Solved: d.binomial(n, rate), Violations: d.binomial(n, truthViolations), Transfers: d.binomial(n, truthTransfers), Slow: d.binomial(n, truthSlow),
		Known: release.HasSolved | release.HasViolations | release.HasTransfers | release.HasSlow,
	}
}

// canary draws what a healthy canary with so many of a hundred requests sees of
// a week: each request is its own with that chance. Its cost is held against
// that of the others in the same minute, at the whole traffic against the true
// mean.
func canary(seed uint64, slots int64, rates []float64) []release.Window {
	d := newDice(seed, drawCanary, int(slots))
	ws := make([]release.Window, len(rates))
	for i := range ws {
		n := d.binomial(truthRate, float64(slots)/100)
		ws[i] = drawn(d, i, n, rates[i])
		if n == 0 {
			continue
		}
		ws[i].Cost = d.gamma(float64(n) / (truthCostCV * truthCostCV))
		if n < truthRate {
			ws[i].Cost /= d.gamma(float64(truthRate-n) / (truthCostCV * truthCostCV))
		}
		ws[i].Known |= release.HasCost
	}
	return ws
}

// worldSlots are the steps of the ladder, of a ring of 100 at 100 requests a
// minute: as many canary requests a minute.
var worldSlots = []int64{2, 8, 10, 26, 100}

// worldPlan is the published configuration with the worlds' own rates in it.
func worldPlan() *ladder.Plan {
	p := publishedPlan()
	like := p.Steps[0]
	p.Steps = nil
	for _, slots := range worldSlots {
		s := like
		s.Weight = release.Weight{Slots: slots, Ring: 100}
		p.Steps = append(p.Steps, s)
	}
	return p
}

// healthyTrips counts the trips of a breaker over windows. After each it begins
// anew, with no evidence, 25 minutes later.
func healthyTrips(l *breaker.Limits, ws []release.Window) (trips [release.Judged]int64) {
	const pause = 25
	var st breaker.State
	for i := 0; i < len(ws); i++ {
		if ev := breaker.Step(l, &st, &ws[i]); ev != nil && ev.To == release.Open {
			trips[ev.Finding.Signal]++
			st = breaker.State{}
			i += pause
		}
	}
	return trips
}

// worldDay is how long a drop may take to be found.
const worldDay = 24 * 60

// findDrop injects a drop from a minute on and returns how many minutes the
// breaker takes to find it, +Inf if it does not within a day. It runs from
// warm minutes before, with no evidence, and begins anew where it trips too
// early.
func findDrop(l *breaker.Limits, d *dice, ws []release.Window, rates []float64, from, warm int, drop float64) float64 {
	var st breaker.State
	for i := from - warm; i < from+worldDay; i++ {
		w := ws[i]
		if i >= from {
			w.Solved -= d.binomial(w.Solved, min(drop/rates[i], 1))
		}
		if ev := breaker.Step(l, &st, &w); ev != nil && ev.To == release.Open {
			if i >= from {
				return float64(i - from + 1)
			}
			st = breaker.State{}
		}
	}
	return math.Inf(1)
}
