package simulate

import (
	"math"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Synthetic is a [Feed] that is made up tick by tick from a [Spec]. A tick
// depends on the spec, the seed, its number and the weight, not on how many
// draws came before it: two plans over the same drawn feed meet the same luck
// in the same minute.
//
// In a closed loop at weight 0 the canary has no window, at 100 % stable has
// none and the cost is a mean without a ratio. An arm without requests has no
// window: a gap.
type Synthetic struct {
	spec  Spec
	span  time.Duration
	per   float64 // minutes a tick
	at    int     // number of the next tick
	end   time.Time
	dice  dice
	carry [carries]float64
	wave  struct { // the last swing asked for
		known        bool
		at           time.Time
		peak, height float64
	}
	canary [1]release.Window
	stable [1]release.Window
}

// NewSynthetic makes a feed, or returns a *[SpecError].
func NewSynthetic(spec Spec) (*Synthetic, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	s := &Synthetic{spec: spec, span: spec.Span}
	if s.span == 0 {
		s.span = time.Minute
	}
	s.per = s.span.Minutes()
	s.end = spec.Start.Add(time.Duration(spec.Minutes) * time.Minute)
	s.dice.init(spec.Seed)
	return s, nil
}

// Span implements Feed.
func (s *Synthetic) Span() time.Duration { return s.span }

// Start implements Feed.
func (s *Synthetic) Start() time.Time { return s.spec.Start }

// More implements Feed.
func (s *Synthetic) More() bool { return s.next().Before(s.end) }

// next is the time of the next tick.
func (s *Synthetic) next() time.Time { return s.spec.Start.Add(time.Duration(s.at) * s.span) }

// Next implements Feed.
func (s *Synthetic) Next(weight release.Weight) (Tick, error) {
	t := s.next()
	minute := int(t.Sub(s.spec.Start) / time.Minute)
	canary, shared := s.levelsAt(release.Canary, minute, t)
	stable, _ := s.levelsAt(release.Stable, minute, t)
	nc, ns := s.traffic(&canary, &stable, shared, weight)

	tick := Tick{T: t}
	if ns > 0 {
		s.fill(&s.stable[0], release.Stable, t, ns, &stable)
		tick.Stable = s.stable[:]
	}
	if nc > 0 {
		s.fill(&s.canary[0], release.Canary, t, nc, &canary)
		tick.Canary = s.canary[:]
	}
	s.price(tick, &canary, &stable)
	s.at++
	return tick, nil
}

// traffic returns the requests of both arms in a tick and notes how many were
// to be expected.
func (s *Synthetic) traffic(canary, stable *levels, shared float64, weight release.Weight) (nc, ns int64) {
	if !s.spec.Closed {
		canary.expected = s.spec.PerMin * s.per * shared * canary.traffic
		stable.expected = s.spec.StablePerMin * s.per * shared * stable.traffic
		return s.arrivals(carryCanary, canary.expected), s.arrivals(carryStable, stable.expected)
	}
	mean, share := s.spec.PerMin*s.per*shared, weight.Share()
	canary.expected, stable.expected = mean*share*canary.traffic, mean*(1-share)*stable.traffic
	total := s.arrivals(carryTotal, mean)
	nc = s.part(carrySplit, total, share, total)
	ns = total - nc
	return s.part(carryCanary, nc, canary.traffic, nc), s.part(carryStable, ns, stable.traffic, ns)
}

// fill makes an arm's window of n requests.
func (s *Synthetic) fill(w *release.Window, arm release.Arm, t time.Time, n int64, lv *levels) {
	*w = release.Window{T: t, Span: s.span, Arm: arm, Total: n}
	first := carryArm(arm)
	if lv.solved.Known {
		w.Judged = n
		expected := lv.expected
		if lv.judged.Known {
			w.Judged = s.some(first+carryJudged, n, lv.judged, expected)
			expected = s.of(lv.judged, expected)
		}
		w.Solved = s.some(first+carrySolved, w.Judged, lv.solved, expected)
		if lv.finished < 1 {
			w.Solved = s.part(first+carryLabels, w.Solved, lv.finished, w.Solved)
		}
		w.Known |= release.HasSolved
	}
	if lv.violations.Known {
		w.Violations = s.some(first+carryViolations, n, lv.violations, lv.expected)
		w.Known |= release.HasViolations
	}
	if lv.transfers.Known {
		w.Transfers = s.some(first+carryTransfers, n, lv.transfers, lv.expected)
		w.Known |= release.HasTransfers
	}
	if lv.p99 > 0 {
		w.P99MS = s.p99(first+carryP99, n, lv.p99)
		w.Known |= release.HasP99
	}
	if s.spec.Base.Streaming.known() {
		s.fillStreaming(w, n, lv)
	}
}

// of returns what is to be expected of a level.
func (s *Synthetic) of(l Level, expected float64) float64 {
	if l.PerMin {
		return min(l.Value*s.per, expected)
	}
	return l.Value * expected
}

// some returns how many of n requests a level makes.
func (s *Synthetic) some(stream int, n int64, l Level, expected float64) int64 {
	switch {
	case !l.PerMin:
		return s.part(stream, n, l.Value, n)
	case !s.spec.Drawn:
		return s.spread(stream, l.Value*s.per, n)
	case expected <= 0:
		return 0
	}
	return s.part(stream, n, min(1, l.Value*s.per/expected), n)
}

// price fills in the costs: each arm's mean, and the ratio where both arms have
// a mean in this tick. A feed without a stable arm may say the ratio outright.
func (s *Synthetic) price(t Tick, canary, stable *levels) {
	b := &s.spec.Base
	if b.CostUSD == 0 && b.CostRatio == 0 {
		return
	}
	unit := b.CostUSD
	if unit == 0 {
		unit = 1
	}
	ref := 0.0
	if len(t.Stable) > 0 {
		ref = s.mean(carryArm(release.Stable)+carryCost, t.Stable[0].Total, unit*stable.cost)
		s.tag(&t.Stable[0], ref)
	} else if !s.spec.Closed && s.spec.StablePerMin == 0 && b.CostRatio > 0 {
		ref = unit
	}
	if len(t.Canary) == 0 {
		return
	}
	w := &t.Canary[0]
	mean := s.mean(carryArm(release.Canary)+carryCost, w.Total, unit*canary.cost)
	s.tag(w, mean)
	if ref > 0 {
		w.Cost = mean / ref
		w.Known |= release.HasCost
	}
}

// tag notes a mean cost where it is in dollars.
func (s *Synthetic) tag(w *release.Window, mean float64) {
	if s.spec.Base.CostUSD > 0 {
		w.CostMean = mean
		w.Known |= release.HasCostMean
	}
}

// The streams of a feed: each figure of each arm has its own, so that a fault
// in one leaves the draws of the others as they were.
const (
	carryTotal = iota
	carrySplit
	carryCanary
	carryStable
	carryFigures // the canary's figures from here on, then stable's
)

const (
	carryJudged = iota
	carrySolved
	carryLabels
	carryViolations
	carryTransfers
	carryP99
	carryCost
	figures
)

const carries = carryFigures + 2*figures + 2*streamingFigures

func carryArm(arm release.Arm) int {
	if arm == release.Stable {
		return carryFigures + figures
	}
	return carryFigures
}

// arrivals returns how many requests come where mean are expected.
func (s *Synthetic) arrivals(stream int, mean float64) int64 {
	if !s.spec.Drawn {
		return s.spread(stream, mean, math.MaxInt64)
	}
	return s.dice.at(stream, s.at).poisson(mean)
}

// part returns how many of n requests a share of them is, at most most.
func (s *Synthetic) part(stream int, n int64, share float64, most int64) int64 {
	switch {
	case share >= 1:
		return min(n, most)
	case share <= 0 || n <= 0:
		return 0
	case !s.spec.Drawn:
		return s.spread(stream, float64(n)*share, most)
	}
	return s.dice.at(stream, s.at).binomial(n, share)
}

// spread rounds an expectation to a whole number and carries the rest on to
// the stream's next tick, so that sums are right to half a request. What the
// limit most cuts off beyond one request is lost: it never was.
func (s *Synthetic) spread(stream int, want float64, most int64) int64 {
	owed := s.carry[stream] + want
	n := min(max(int64(math.Floor(owed+0.5)), 0), most)
	s.carry[stream] = min(max(owed-float64(n), -1), 1)
	return n
}

// p99 returns the 99th percentile of n latencies.
func (s *Synthetic) p99(stream int, n int64, level float64) float64 {
	if !s.spec.Drawn || s.spec.Base.LatencySigma == 0 {
		return level
	}
	return s.dice.at(stream, s.at).p99(n, level, s.spec.Base.LatencySigma)
}

// mean returns the mean cost of n requests.
func (s *Synthetic) mean(stream int, n int64, level float64) float64 {
	if !s.spec.Drawn || s.spec.Base.CostSigma == 0 {
		return level
	}
	return s.dice.at(stream, s.at).mean(n, level, s.spec.Base.CostSigma)
}
