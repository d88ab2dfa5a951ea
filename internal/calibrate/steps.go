package calibrate

import (
	"math"
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// normalRare is how many of the rarer outcome a count window has at least: a
// skew-corrected normal tail needs as many.
const normalRare = 2.5

// waitConfidence is the certainty with which min_samples have come after the
// time that is named.
const waitConfidence = 0.95

// steps says what each step of the ladder can see, and which limits it needs.
func (m *measurement) steps() {
	if m.o.Plan == nil {
		return
	}
	for i := range m.o.Plan.Steps {
		step := &m.o.Plan.Steps[i]
		out := Step{Pct: step.Weight.Share(), HoldMin: map[string]*float64{}}
		out.RateP10, out.RateP50 = times(m.r.Traffic.P10, out.Pct), times(m.r.Traffic.P50, out.Pct)
		l := limitsOf{}
		m.slowStep(step, &out, &l)
		m.countStep(step, &out, &l)
		m.costStep(step, &out, &l)
		m.r.Steps = append(m.r.Steps, out)
		m.r.limits = append(m.r.limits, l)
	}
}

func times(x *float64, by float64) *float64 {
	if x == nil {
		return nil
	}
	return figureSig(*x*by, 6)
}

// slowStep is the slow layer at a step.
func (m *measurement) slowStep(step *ladder.Step, out *Step, l *limitsOf) {
	s := &m.r.Slow
	perMin := times(m.r.Traffic.JudgedP10, out.Pct)
	if perMin == nil || s.SolveBaseline == 0 {
		return
	}
	n := int64(math.Floor(*perMin*step.Limits.SlowSpan.Minutes() + 1e-9))
	out.NWindow, out.Against = &n, "baseline"
	if m.controlled(step) {
		out.Against = string(release.Stable)
	}
	switch {
	case s.Z != nil:
		m.threshold(step, out, n)
		m.holds(step, out, *perMin)
	case m.o.K > 0:
		out.ThresholdPP = figure(s.ThresholdPP, 4)
		out.MDE80PP = figure(100*stats.SmallestDrop(s.SolveBaseline, s.ThresholdPP/100, m.o.Power, n, m.spread[m.live.span].tau), 4)
	}
	if s.MinSamples == nil || *perMin <= 0 {
		return
	}
	out.CanJudge = n >= *s.MinSamples
	wait := stats.WaitForSamples(*s.MinSamples, *perMin, waitConfidence)
	out.WaitP95Min = figure(wait, 1)
	if s.Z != nil {
		m.reach(step, out, l, wait)
	}
}

// controlled reports whether a step is compared with stable in the same
// windows, and how far their own noise takes the two apart is known. At the
// whole traffic there is no stable.
func (m *measurement) controlled(step *ladder.Step) bool {
	return step.Limits.AgainstStable && m.r.Slow.TauControl != nil && step.Weight.Slots < step.Weight.Ring
}

// noise returns what a step's solve rate is held against: the noise that no
// traffic shrinks, and as how many judged requests n of them count. Against
// stable each arm brings its own noise, and stable's chance adds to the
// canary's: 1/n + 1/m = 1/(n (1-s)) for a share s.
func (m *measurement) noise(step *ladder.Step, n int64) (tau float64, effective int64) {
	if m.controlled(step) {
		return math.Sqrt2 * *m.r.Slow.TauControl, int64(float64(n) * (1 - step.Weight.Share()))
	}
	return *m.r.Slow.Tau, n
}

// threshold is what trips at a step whose window holds n judged requests.
func (m *measurement) threshold(step *ladder.Step, out *Step, n int64) {
	s := &m.r.Slow
	tau, effective := m.noise(step, n)
	if effective < 1 {
		return
	}
	p, q := s.SolveBaseline, 1-s.SolveBaseline
	sigma, z := stats.NoiseSigma(p, effective, tau, 0), *s.Z
	if !m.controlled(step) {
		sigma = stats.NoiseSigma(p, n, tau, *s.SE)
		z = stats.SkewMultiplier(*s.Z, p, n, sigma)
		out.Gamma = figure((p-q)*p*q/(float64(n)*float64(n)*sigma*sigma*sigma), 6)
		if s.Tail == "exact" {
			z = m.exactDrop(n) / sigma
		}
	}
	t := math.Max(s.TolerableDropPP/100, z*sigma)
	out.Sigma, out.ZCF, out.ThresholdPP = figure(sigma, 6), figure(z, 4), figure(100*t, 4)
	out.MDE80PP = figure(100*stats.SmallestDrop(p, t, m.o.Power, effective, tau), 4)
	m.samplesFor(out, t)
}

// samplesFor is how many requests a fixed drop of t would need: for chance to
// stay below it, and for the drop to be found to go past it.
func (m *measurement) samplesFor(out *Step, t float64) {
	s, x := &m.r.Slow, &exact{}
	p0, drop, detect := x.ratio(number(s.SolveBaseline)), x.ratio(number(round(t, 6))), x.ratio(number(s.DetectDropPP)+"e-2")
	if x.err != nil {
		return
	}
	if n, err := stats.MinSamples(p0, drop, s.Alpha); err == nil {
		out.NNoise = &n
	}
	if n, err := stats.ExactPowerSamples(p0, drop, detect, m.o.Power); err == nil {
		out.NPower = &n
	}
}

// exactDrop is the smallest drop over n judged requests that a beta-binomial
// of the baseline's rate and noise reaches with no more than the chance of a
// look.
func (m *measurement) exactDrop(n int64) float64 {
	s := &m.r.Slow
	p := s.SolveBaseline
	rho := (*s.Tau**s.Tau + *s.SE**s.SE) / (p * (1 - p))
	unsolved := stats.BetaBinomialCritical(n, 1-p, rho, stats.OneSided(*s.Z))
	return float64(unsolved)/float64(n) - (1 - p)
}

// holds is how long the step must last for its gate to tell each drop.
func (m *measurement) holds(step *ladder.Step, out *Step, perMin float64) {
	s := &m.r.Slow
	sp := m.spread[m.live.span]
	tau, _ := m.noise(step, 0)
	if m.controlled(step) {
		perMin *= 1 - step.Weight.Share()
	}
	for _, drop := range []float64{s.TolerableDropPP, s.DetectDropPP} {
		out.HoldMin[number(drop)] = nil
		if perMin <= 0 || drop/100 >= s.SolveBaseline {
			continue
		}
		minutes := stats.HoldTime(s.SolveBaseline, drop/100, perMin, tau, step.Limits.SlowSpan.Minutes(), sp.inflation, stats.Sigmas(gateAlpha), m.o.Power)
		out.HoldMin[number(drop)] = figure(math.Ceil(minutes), 0)
	}
}

// reach gives the slow layer of a step the span that it needs to see
// min_samples, and the multiplier that goes with it.
func (m *measurement) reach(step *ladder.Step, out *Step, l *limitsOf, waitMin float64) {
	s := &m.r.Slow
	l.minSamples, l.tau, l.se, l.z, l.tail = *s.MinSamples, *s.Tau, *s.SE, *s.Z, s.Tail
	switch m.o.Judge {
	case CountJudge:
		m.countWindow(out, l)
		return
	case CusumJudge:
		l.cusum = m.cusumLimit(out)
		out.CusumLimit = new(l.cusum)
		return
	}
	if need := minutes(math.Ceil(waitMin)); !out.CanJudge && need > step.Limits.SlowSpan {
		l.spanMax = min(need, week)
		out.SpanMaxMin = figure(l.spanMax.Minutes(), 0)
	}
}

// countWindow judges the last so many requests however long they took, though
// no fewer than a live window holds: enough for the rarer outcome to be
// expected normalRare times. The noise is that between windows of that length,
// and so is how often a look is a new one.
func (m *measurement) countWindow(out *Step, l *limitsOf) {
	s := &m.r.Slow
	rare := math.Min(s.SolveBaseline, 1-s.SolveBaseline)
	l.minSamples = max(l.minSamples, int64(math.Ceil(math.Min(normalRare/rare, 1e9))))
	perMin := *m.r.Traffic.JudgedP10 * out.Pct
	lasts := max(minutes(float64(l.minSamples)/perMin), m.o.Live)
	calib := m.spread[m.calib.span]
	l.tau = round(m.noiseOver(lasts)*calib.factor(), 6)
	l.z = round(stats.Multiplier(m.perTick[release.SolveRate], math.Max(1, float64(lasts)/float64(m.o.Tick)))+s.Raised, 3)
	waitMin := stats.WaitForSamples(l.minSamples, perMin, waitConfidence)
	out.WaitP95Min = figure(waitMin, 1)
	if need := minutes(math.Ceil(waitMin)); need > m.o.Live {
		l.spanMax = min(need, week)
		out.SpanMaxMin = figure(l.spanMax.Minutes(), 0)
	}
}

// cusumLimit is where the cumulative sum of a healthy service comes once in as
// many samples as the budget allows: h = phi ln(ARL0) (Lorden 1971 for
// independent samples; phi, the variance over chance's, for those that hang
// together). The replay raises it where that does not hold.
func (m *measurement) cusumLimit(out *Step) float64 {
	s := &m.r.Slow
	tau, perSpan := *s.Tau, *m.r.Traffic.JudgedP10*out.Pct*m.o.Live.Minutes()
	if sp, ok := m.spread[DefaultSpan]; ok {
		tau, perSpan = sp.tau*sp.factor(), *m.r.Traffic.JudgedP10*out.Pct*DefaultSpan.Minutes()
	}
	phi := 1 + perSpan*tau*tau/(s.SolveBaseline*(1-s.SolveBaseline))
	return sig(phi*math.Log(1/m.perTick[release.SolveRate]), 4)
}

// minutes is a span of so many minutes, bounded where it would not fit.
func minutes(n float64) time.Duration {
	return time.Duration(math.Min(n, 1e8) * float64(time.Minute))
}
