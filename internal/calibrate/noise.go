package calibrate

import (
	"fmt"
	"math"

	"github.com/canaryctl/canaryctl/internal/stats"
)

const (
	// enoughRare is how many of the rarer outcome a window needs for the normal
	// approximation, and for a median that is not a step function.
	enoughRare = 5
	// contaminated is the ratio of the two taus from which on a few windows make
	// most of the noise.
	contaminated = 1.3
	// drifting is the ratio of long-run to short-run spread from which on the
	// rate moves slowly.
	drifting = 1.3
	// fewWindows is below which the upper bound of the noise is used for it.
	fewWindows = 200
)

// spread is the noise between the windows of one span.
type spread struct {
	p0, tau   float64
	kEff      float64
	method    string  // robust, or dl where too few failures are expected for a median
	inflation float64 // variance of a mean of so many dependent windows, over that of independent ones
}

// disperse fills in how much the windows of a span vary, and keeps the noise
// that thresholds rest on.
func (m *measurement) disperse(name string, s *series) {
	mean, sd := stats.MeanSD(s.rates())
	d := stats.Disperse(s.ps)
	out := Dispersion{K: d.K, DF: max(d.K-1, 0), Mean: figure(mean, 6), SD: figure(sd, 6), Q: figure(d.Q, 6), Phi: figure(d.Phi, 6)}
	_, above := d.PValues()
	sigmaZ, sdZ := stats.Laney(s.ps, s.adjacent)
	r1 := stats.Lag1(s.ps, s.adjacent)
	quiet := s.without(m.flaggedSpans()) // an incident breaks up what hangs together
	sp := spreadOf(s, stats.Lag1(quiet.ps, quiet.adjacent))
	out.P, out.ICC = figureSig(above, 6), figure(stats.ICC(s.ps), 8)
	out.TauDL, out.TauRobust, out.TauUsed = figure(stats.TauDL(s.ps), 8), figure(stats.TauRobust(s.ps), 8), figure(sp.tau, 8)
	out.SigmaZ, out.SDZ, out.R1 = figure(sigmaZ, 6), figure(sdZ, 6), figure(r1, 6)
	out.KEff, out.Drift = figure(sp.kEff, 1), figure(sdZ/sigmaZ, 4)
	m.r.Dispersion[name] = out
	m.spread[s.span] = sp
}

// spreadOf chooses how the noise of a span is measured: by the median, which
// half of the windows may spoil; by DerSimonian and Laird where windows have
// too few failures for a median of their rates to mean anything.
func spreadOf(s *series, r1 float64) spread {
	sp := spread{p0: stats.Pool(s.ps).Rate(), method: "robust", inflation: 1}
	if s.expected() < enoughRare {
		sp.method = "dl"
	}
	sp.tau = tauOf(s, sp.method)
	if r1 > 0 {
		sp.inflation = (1 + r1) / (1 - math.Min(r1, 0.99))
	}
	sp.kEff = float64(len(s.ps)) / sp.inflation
	return sp
}

// cutoff is how many sigmas from the middle a window has no weight in the
// noise, and keptVariance how much of a normal variance is left without those:
// 1 - 2 c phi(c)/(2 Phi(c) - 1).
const (
	cutoff       = 3
	keptVariance = 0.973337
)

// tauOf is the noise of a series by a method; 0 where the windows vary no more
// than chance would have them. "robust" is a one-step reweighted estimate
// (Rousseeuw and Leroy 1987, 1.2): the median tells which windows are far out,
// DerSimonian and Laird measure the others. The median alone is thrown by a
// rate that swings, which has flat shoulders, and scatters more.
func tauOf(s *series, method string) float64 {
	if d := stats.Disperse(s.ps); d.Q <= float64(d.K-1) {
		return 0
	}
	tau := stats.TauDL(s.ps)
	if method == "robust" {
		tau = reweighted(s)
	}
	if math.IsNaN(tau) {
		return 0
	}
	return tau
}

func reweighted(s *series) float64 {
	middle, first := stats.Median(s.rates()), stats.TauRobust(s.ps)
	if math.IsNaN(first) || middle <= 0 || middle >= 1 {
		return stats.TauDL(s.ps)
	}
	var kept []stats.Proportion
	for _, p := range s.ps {
		if math.Abs(p.Rate()-middle) <= cutoff*stats.NoiseSigma(middle, p.N, first, 0) {
			kept = append(kept, p)
		}
	}
	tau := stats.TauDL(kept)
	chance := middle * (1 - middle) / float64(s.medianN())
	whole := (float64(tau*tau) + chance) / keptVariance
	return math.Sqrt(math.Max(0, whole-chance))
}

// factor returns by how much the noise may be larger than it was measured, for
// a baseline of few windows: the upper 90 % limit.
func (sp *spread) factor() float64 {
	if sp.kEff >= fewWindows || sp.kEff < 2 {
		return 1
	}
	return stats.SDUpperFactor(int(sp.kEff), 0.90)
}

// se returns the standard error of the pooled rate of n requests in k_eff
// windows.
func (sp *spread) se(n int64) float64 {
	tau := sp.tau
	return math.Sqrt(sp.p0*(1-sp.p0)/float64(n) + float64(tau*tau)/math.Max(sp.kEff, 1))
}

// enough warns where there is too little to learn from.
func (m *measurement) enough() {
	if !m.outcomes() {
		return
	}
	sp := m.spread[m.calib.span]
	live := m.spread[m.live.span]
	m.r.Centre.P0SE = figureSig(live.se(stats.Pool(m.calib.ps).N), 6)
	if m.live.span != m.o.Live {
		m.r.warn("coarse-windows", fmt.Sprintf("the input's windows do not divide the slow window of %s: its noise is taken from windows of %s, which understates it where the rate moves faster than that",
			spanName(m.o.Live), spanName(m.live.span)), "give windows of a minute or of five, or the records themselves")
	}
	if sp.kEff < GoodWindows {
		m.r.warn("few-independent", fmt.Sprintf("the %d windows tell as much as %.0f independent ones: the noise is known to %.0f %%, and its upper limit is used", len(m.calib.ps), sp.kEff, 100*stats.SDRelativeError(max(int(sp.kEff), 2))), "a longer baseline")
	}
	m.contamination()
	m.slowMovement()
}

// contamination says that a few windows make most of the noise.
func (m *measurement) contamination() {
	d := m.r.Dispersion[m.o.SpanName]
	if d.TauDL == nil || d.TauRobust == nil || m.calib.expected() < enoughRare {
		return
	}
	worst := 0
	for _, flagged := range m.flagged {
		if flagged {
			worst++
		}
	}
	if *d.TauDL <= contaminated**d.TauRobust || *d.P >= 0.001 {
		return
	}
	m.r.warn("contaminated", fmt.Sprintf("a few windows make most of the noise: %.2f pp between windows over all, %.2f pp by the median (%d of %d windows are flagged)", 100**d.TauDL, 100**d.TauRobust, worst, len(m.calib.ps)),
		"look at the incidents; leave out what was no normal service with --exclude FROM/TO")
}

// slowMovement says that the rate drifts more than neighbouring windows show.
func (m *measurement) slowMovement() {
	d := m.r.Dispersion[m.o.SpanName]
	if d.Drift == nil || *d.Drift <= drifting {
		return
	}
	m.r.warn("slow-drift", fmt.Sprintf("the rate moves slowly: windows vary %.2f times as much over the baseline as neighbours do", *d.Drift), "the threshold holds against one fixed baseline and includes it; against: stable would not have to")
}
