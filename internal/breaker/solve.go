package breaker

import (
	"math"
	"math/big"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// SolveCounts are the counts that a solve rate is judged by, of a window or
// summed over many.
type SolveCounts struct {
	Judged int64 `json:"judged"`
	Solved int64 `json:"solved"`

	// Controlled are the requests of Judged in whose windows it is known what
	// stable did at the same time; ControlJudged and ControlSolved are stable's.
	Controlled    int64 `json:"controlled,omitempty"`
	ControlJudged int64 `json:"control_judged,omitempty"`
	ControlSolved int64 `json:"control_solved,omitempty"`
}

// SolveCountsOf returns a window's counts: none where its solve rate is not
// known, and no control without it.
func SolveCountsOf(w *release.Window) SolveCounts {
	if !w.Has(release.HasSolved) {
		return SolveCounts{}
	}
	c := SolveCounts{Judged: w.Judged, Solved: w.Solved}
	if w.Has(release.HasControl) {
		c.Controlled, c.ControlJudged, c.ControlSolved = w.Judged, w.ControlJudged, w.ControlSolved
	}
	return c
}

// Add adds the counts of o.
func (c *SolveCounts) Add(o *SolveCounts) {
	c.Judged += o.Judged
	c.Solved += o.Solved
	c.Controlled += o.Controlled
	c.ControlJudged += o.ControlJudged
	c.ControlSolved += o.ControlSolved
}

func (c *SolveCounts) rate() float64 { return float64(c.Solved) / float64(c.Judged) }

func (c *SolveCounts) controlRate() float64 {
	return float64(c.ControlSolved) / float64(c.ControlJudged)
}

// SolveTrips reports whether a solve rate is at or past the limit of the window
// form; MinSamples is the caller's to see to. Breaker and gates use the same:
//
//   - Against stable, where every judged request has a control and stable has
//     MinSamples too: by the drop, and by Noise.Z sigmas of the difference where
//     noise is given, below stable's rate in the same windows.
//   - Else at the floor or below; and, where noise is given, as far below the
//     baseline as [Noise] says.
//
// The drop and the floor are compared exactly, only sigmas are floats.
func (l *Limits) SolveTrips(c *SolveCounts) bool {
	switch {
	case c.Judged <= 0:
		return false
	case l.controls(c):
		return l.dropBelowStable(c) && (l.Noise.Z <= 0 || c.controlRate()-c.rate() >= float64(l.Noise.Z*l.controlSigma(c)))
	}
	return l.SolveFloor.Compare(c.Solved, c.Judged) <= 0 && (l.Noise.Z <= 0 || l.pastNoise(c.Solved, c.Judged))
}

// SolveFinding holds the same counts against their limit in figures. A limit
// below 0 is one that so few requests cannot reach. An exact tail's own limit
// costs a search, so a rate above the floor is shown the floor, without sigmas:
// there it passes whatever the noise.
func (l *Limits) SolveFinding(c *SolveCounts, span time.Duration) release.Finding {
	f := release.Finding{Signal: release.SolveRate, Limit: l.SolveFloor.Float64(), Count: c.Solved, Of: c.Judged, Span: span}
	if c.Judged <= 0 {
		return f
	}
	f.Value = c.rate()
	switch {
	case l.controls(c):
		f.Form, f.ControlSolved, f.ControlJudged = release.Concurrent, c.ControlSolved, c.ControlJudged
		drop, noise := l.SolveBaseline.Float64()-l.SolveFloor.Float64(), float64(l.Noise.Z*l.controlSigma(c))
		if noise > drop {
			f.Sigmas = l.Noise.Z
		}
		f.Limit = c.controlRate() - max(drop, noise)
	case l.Noise.Z > 0 && l.Noise.exact(l.SolveBaseline.Float64(), c.Judged) && l.SolveFloor.Compare(c.Solved, c.Judged) > 0:
		f.Form = release.FittedExact
	case l.Noise.Z > 0:
		if limit, sigmas, form := l.noiseLimit(c.Judged); limit < f.Limit {
			f.Limit, f.Sigmas, f.Form = limit, sigmas, form
		}
	}
	return f
}

// controls reports whether stable in the same windows is the reference.
func (l *Limits) controls(c *SolveCounts) bool {
	return l.AgainstStable && c.Controlled == c.Judged && c.ControlJudged > 0 && c.ControlJudged >= l.MinSamples
}

// dropBelowStable reports whether the rate lies by SolveBaseline - SolveFloor
// or more below stable's. Floats decide it except where they are too near to
// tell: five roundings of figures up to 1 are off by less than 1e-15.
func (l *Limits) dropBelowStable(c *SolveCounts) bool {
	const unsure = 1e-12
	past := c.controlRate() - c.rate() - (l.SolveBaseline.Float64() - l.SolveFloor.Float64())
	if math.Abs(past) > unsure {
		return past > 0
	}
	below := new(big.Rat).Sub(big.NewRat(c.ControlSolved, c.ControlJudged), big.NewRat(c.Solved, c.Judged))
	drop := new(big.Rat).Sub(l.SolveBaseline.Rat(), l.SolveFloor.Rat())
	return below.Cmp(drop) >= 0
}

// controlSigma is the standard deviation of the difference of two rates: their
// pooled binomial variance, and what each arm's true rate does on its own. Half
// a failure and half a success more than were seen (Jeffreys) keep the variance
// above 0 where all or none are solved.
func (l *Limits) controlSigma(c *SolveCounts) float64 {
	n, m := float64(c.Judged), float64(c.ControlJudged)
	p := (float64(c.Solved) + float64(c.ControlSolved) + 0.5) / (n + m + 1)
	chance := p * (1 - p) * (1/n + 1/m)
	return math.Sqrt(float64(chance) + float64(2*l.Noise.TauControl*l.Noise.TauControl))
}

// pastNoise reports whether so many solved are too few to be the service's own
// noise.
func (l *Limits) pastNoise(solved, judged int64) bool {
	p0 := l.SolveBaseline.Float64()
	below := p0 - float64(solved)/float64(judged)
	sigma := stats.NoiseSigma(p0, judged, l.Noise.Tau, l.Noise.SE)
	if l.Noise.exact(p0, judged) {
		return below >= float64(l.Noise.screen()*sigma) && stats.BetaBinomialCDF(solved, judged, p0, l.Noise.rho(p0)) <= stats.OneSided(l.Noise.Z)
	}
	return below >= l.Noise.threshold(p0, judged, sigma)
}

// threshold is T(N) = z(N) sigma(N) of the normal form. A baseline of 1 without
// noise has none: every failure is one too many.
func (n *Noise) threshold(p0 float64, judged int64, sigma float64) float64 {
	if sigma == 0 {
		return 0
	}
	return float64(stats.SkewMultiplier(n.Z, p0, judged, sigma) * sigma)
}

// exactMost is the most judged requests of which the beta-binomial tail is
// summed. Of more the normal one is used, so that no look takes long.
const exactMost = 100_000

// exact reports whether the beta-binomial tail judges; at a rate of 0 or 1
// there is none.
func (n *Noise) exact(p0 float64, judged int64) bool {
	return n.Tail == ExactTail && p0 > 0 && p0 < 1 && judged <= exactMost
}

// rho is the intraclass correlation of a beta-binomial with the noise's
// variance of the true rate.
func (n *Noise) rho(p0 float64) float64 {
	return stats.ICCOf(float64(n.Tau*n.Tau)+float64(n.SE*n.SE), p0)
}

// screen is how many sigmas below the baseline a rate must lie before the tail
// is looked at. It saves the computation: for a baseline above 0.5 a tail
// nearer than that is as small as Z sigmas' only where noise has whole windows
// fail and the others hardly a request. There one failure is rare, and still no
// reason to trip.
func (n *Noise) screen() float64 { return min(2, n.Z/2) }

// noiseLimit returns the rate at which so many judged requests are as far
// below the baseline as noise asks for, and how many sigmas that is.
func (l *Limits) noiseLimit(judged int64) (limit, sigmas float64, form release.Form) {
	p0 := l.SolveBaseline.Float64()
	sigma := stats.NoiseSigma(p0, judged, l.Noise.Tau, l.Noise.SE)
	if l.Noise.exact(p0, judged) {
		return float64(l.exactLimit(p0, sigma, judged)) / float64(judged), l.Noise.Z, release.FittedExact
	}
	threshold := l.Noise.threshold(p0, judged, sigma)
	if sigma > 0 {
		sigmas = threshold / sigma
	}
	return p0 - threshold, sigmas, release.Fitted
}

// exactLimit returns the most solved of so many judged that are as unlikely as
// Z sigmas, or -1.
func (l *Limits) exactLimit(p0, sigma float64, judged int64) int64 {
	alpha, rho := stats.OneSided(l.Noise.Z), l.Noise.rho(p0)
	n := float64(judged)
	low, high := int64(-1), int64((p0-float64(l.Noise.screen()*sigma))*n)+1 // low trips, high does not
	for high-low > 1 {
		mid := low + (high-low)/2
		if stats.BetaBinomialCDF(mid, judged, p0, rho) <= alpha {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}
