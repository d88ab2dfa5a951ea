package calibrate

import (
	"errors"
	"fmt"
	"math"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

const (
	// plainK is the multiplier of the plain rule where none is asked for.
	plainK = 3
	// gateAlpha is the chance with which a gate, one look at everything since the
	// step began, may stop a healthy canary.
	gateAlpha = 0.01
)

// slow derives the slow layer's threshold: by the plain rule under --k, else
// from the budget and the noise at the live window.
func (m *measurement) slow() {
	s := &m.r.Slow
	s.TolerableDropPP, s.DetectDropPP = m.o.TolerableDropPP.Float64(), m.o.DetectDropPP.Float64()
	s.Tail = "normal"
	m.r.Meta.Rule = "budget"
	if m.o.K > 0 {
		m.r.Meta.Rule = "plain"
	}
	if m.r.Totals.Judged == 0 {
		return
	}
	s.SolveBaseline = m.solveBaseline()
	m.plain()
	if m.o.K > 0 {
		s.ThresholdPP, s.MinSamples, s.Alpha = *s.Plain.ThresholdPP, s.Plain.MinSamples, sig(stats.OneSided(m.o.K), 6)
		return
	}
	s.ThresholdPP = round(s.TolerableDropPP, 6)
	if m.outcomes() {
		m.fitted()
	}
}

// plain applies the plain rule: max(tolerable drop, k sigma).
func (m *measurement) plain() {
	s := &m.r.Slow
	p := &s.Plain
	p.K = plainK
	if m.o.K > 0 {
		p.K = m.o.K
	}
	threshold := round(s.TolerableDropPP, 6)
	if _, sd := stats.MeanSD(m.calib.rates()); !math.IsNaN(sd) {
		s.SigmaPP, p.SigmaPP, p.ThreeSigmaPP = figure(100*sd, 6), figure(100*sd, 6), figure(100*p.K*sd, 6)
		threshold = max(threshold, *p.ThreeSigmaPP)
		s.ChancePP = figure(100*stats.BinomialSD(s.SolveBaseline, m.calib.medianN()), 6)
	}
	p.ThresholdPP = &threshold
	p0 := stats.Pool(m.calib.ps).Rate()
	for _, w := range m.calib.ps {
		p.Of++
		if w.Rate() < p0-p.K*stats.BinomialSD(p0, w.N) {
			p.OneWindow++
		}
	}
	p.MinSamples = m.exactSamples(threshold, stats.OneSided(p.K))
	if m.o.K > 0 && p.ThreeSigmaPP != nil && *p.ThreeSigmaPP > s.TolerableDropPP {
		m.r.warn("noise", fmt.Sprintf("%s sigma (%.2f pp) is more than the tolerable drop (%s pp): the threshold is raised to it, and a smaller drop cannot be told from noise", number(p.K), *p.ThreeSigmaPP, number(s.TolerableDropPP)), "look for incidents in the baseline, or live with the larger threshold")
	}
}

// offCentre is how far incidents must pull the pooled rate for it to be no
// baseline any more.
const offCentre = 0.005

// solveBaseline is the pooled rate of the windows that are no incident, where
// the middle says which those are; that of all where windows have too few
// failures to say. A rate of exactly 0 or 1 leaves chance no room, which is
// never true: Jeffreys' estimate (x+1/2)/(n+1) stands in.
func (m *measurement) solveBaseline() float64 {
	clean, pool := m.unflagged(), stats.Pool(m.calib.ps)
	switch {
	case pool.N == 0: // only under AllowShort
		clean = stats.Proportion{X: m.r.Totals.Solved, N: m.r.Totals.Judged}
	case clean.N == 0 || m.spread[m.calib.span].method != "robust":
		clean = pool
	case math.Abs(clean.Rate()-pool.Rate()) > offCentre:
		m.r.warn("off-centre", fmt.Sprintf("incidents pull the pooled solve rate to %s: solve_baseline is %s, that of the other windows", percent(pool.Rate()), percent(clean.Rate())), "look at the incidents; leave out what was no normal service with --exclude FROM/TO")
	}
	switch {
	case clean.X == clean.N:
		m.r.warn("all-solved", fmt.Sprintf("all %d judged requests were solved: by the rule of three up to %s of them might not be, and solve_baseline is set a little below 1", clean.N, percent(stats.RuleOfThree(clean.N))), "is the outcome really measured?")
	case clean.X == 0:
		m.r.warn("none-solved", fmt.Sprintf("none of %d judged requests was solved: by the rule of three at most %s of them are", clean.N, percent(stats.RuleOfThree(clean.N))), "is the right column mapped to solved?")
	default:
		return round(clean.Rate(), 6)
	}
	p := (float64(clean.X) + 0.5) / float64(clean.N+1)
	return min(max(round(p, 6), 0.000001), 0.999999)
}

// unflagged adds up the windows that are no incident.
func (m *measurement) unflagged() stats.Proportion {
	var clean stats.Proportion
	for i, p := range m.calib.ps {
		if !m.flagged[i] {
			clean.X += p.X
			clean.N += p.N
		}
	}
	return clean
}

// exactSamples works on the decimals that are shown, so that a reader can check
// it, and canary.yaml says the same. It is nil where no number of samples will
// do; the plain rule, which stands on it, says why.
func (m *measurement) exactSamples(thresholdPP, alpha float64) *int64 {
	p0, errP := release.ParseRatio(number(m.r.Slow.SolveBaseline))
	drop, errD := release.ParseRatio(number(thresholdPP) + "e-2")
	if errP != nil || errD != nil {
		return nil
	}
	n, err := stats.MinSamples(p0, drop, alpha)
	switch {
	case errors.Is(err, stats.ErrTooSmall):
		m.r.warn("threshold-too-small", fmt.Sprintf("a drop of %s pp takes more requests to judge than a release has", number(sig(thresholdPP, 4))), "a larger --tolerable-drop")
		return nil
	case err != nil:
		m.r.warn("threshold-above-baseline", fmt.Sprintf("a drop of %s pp leaves nothing of a solve rate of %s: a fixed threshold can never trip", number(sig(thresholdPP, 4)), percent(m.r.Slow.SolveBaseline)), "a smaller --tolerable-drop, or another measure of success")
		return nil
	}
	return &n
}

// fitted derives multiplier, noise and min_samples from budget and baseline.
func (m *measurement) fitted() {
	s := &m.r.Slow
	if m.perTick[release.SolveRate] <= 0 {
		return
	}
	sp := m.spread[m.live.span]
	looks := float64(m.o.Live) / float64(m.o.Tick)
	z := stats.Multiplier(m.perTick[release.SolveRate], looks) + s.Raised
	calib := m.spread[m.calib.span]
	factor := calib.factor()
	tau := sp.tau * factor
	if tau == 0 && factor > 1 {
		tau = stats.TauUpper(m.live.ps, 0.90) // none seen is not none
	}
	if math.IsNaN(tau) { // all solved, or none: chance has no spread to compare with
		tau = 0
	}
	s.Z, s.Tau, s.TauFactor = figure(z, 3), figure(tau, 6), figure(factor, 4)
	s.TauMethod, s.TauSpan = sp.method, m.nameOf(m.live.span)
	s.SE = figure(sp.se(stats.Pool(m.live.ps).N), 6)
	s.Alpha = sig(stats.OneSided(z), 6)
	s.TauMax = figure(s.DetectDropPP/100/z, 6)
	m.control()
	n, ok := stats.DetectSamples(s.SolveBaseline, s.DetectDropPP/100, stats.Sigmas(gateAlpha), m.o.Power, m.floor())
	if !ok || s.DetectDropPP/100 >= s.SolveBaseline {
		return
	}
	s.MinSamples = &n
	if m.o.Judge == ExactJudge {
		s.Tail = "exact"
	}
	if r := m.r.Traffic.JudgedP10; r != nil && *r > 0 {
		s.SMinPct = figure(100*float64(n)/(*r*m.o.Live.Minutes()), 4)
	}
}

// floor is the noise that no traffic shrinks at the steps that are climbed:
// against stable, where all of them are compared with it, what each arm's own
// is; the last step, at the whole traffic, has no stable.
func (m *measurement) floor() float64 {
	tau := *m.r.Slow.Tau
	if m.o.Plan == nil {
		return tau
	}
	against := 0
	for i := range m.o.Plan.Steps {
		step := &m.o.Plan.Steps[i]
		if step.Weight.Slots == step.Weight.Ring {
			continue
		}
		if !m.controlled(step) {
			return tau
		}
		against++
	}
	if against > 0 {
		return math.Sqrt2 * *m.r.Slow.TauControl
	}
	return tau
}
