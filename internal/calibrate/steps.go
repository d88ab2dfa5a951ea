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
		t := &m.r.Traffic
		out.RateP10, out.RateP50, out.RateP99 = times(t.P10, out.Pct), times(t.P50, out.Pct), times(t.P99, out.Pct)
		l := limitsOf{}
		m.slowStep(step, &out, &l)
		m.countStep(step, &out, &l)
		m.costStep(step, &out, &l)
		for s := range l.raised {
			l.raised[s] = m.raised(release.Signal(s), i)
		}
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
	if s.MinSamples != nil && *perMin > 0 {
		out.CanJudge = n >= *s.MinSamples
		out.WaitP95Min = figure(stats.WaitForSamples(*s.MinSamples, *perMin, waitConfidence), 1)
	}
	switch {
	case s.Z != nil:
		m.fittedStep(step, out, l, *perMin)
	case m.o.K > 0:
		out.NJudged, out.ThresholdPP = &n, figure(s.ThresholdPP, 4)
		out.MDE80PP = figure(100*stats.SmallestDrop(s.SolveBaseline, s.ThresholdPP/100, m.o.Power, n, m.spread[m.live.span].tau), 4)
	}
}

// fittedStep derives the fitted form at a step, and says what it can see: over
// as many requests as are judged at quiet times, which is what the live window
// holds or, where it reaches back, min_samples.
func (m *measurement) fittedStep(step *ladder.Step, out *Step, l *limitsOf, perMin float64) {
	s := &m.r.Slow
	n := *out.NWindow
	l.z, l.tau, l.se, l.tail = *s.Z, *s.Tau, *s.SE, s.Tail
	if s.MinSamples != nil && perMin > 0 {
		l.minSamples = *s.MinSamples
		m.reach(step, out, l)
		if l.spanMax > 0 {
			n = max(n, l.minSamples)
		}
	}
	m.holds(step, out, perMin)
	if m.o.Judge == CusumJudge {
		out.CanJudge = out.CanJudge || l.cusum > 0
		return
	}
	out.NJudged = &n
	m.threshold(step, out, l, n)
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
func (m *measurement) noise(step *ladder.Step, l *limitsOf, n int64) (tau float64, effective int64) {
	if m.controlled(step) {
		return math.Sqrt2 * *m.r.Slow.TauControl, int64(float64(n) * (1 - step.Weight.Share()))
	}
	return l.tau, n
}

// threshold is what trips at a step that judges n requests.
func (m *measurement) threshold(step *ladder.Step, out *Step, l *limitsOf, n int64) {
	s := &m.r.Slow
	tau, effective := m.noise(step, l, n)
	if effective < 1 {
		return
	}
	p, q := s.SolveBaseline, 1-s.SolveBaseline
	sigma, z := stats.NoiseSigma(p, effective, tau, 0), l.z
	if !m.controlled(step) {
		sigma = stats.NoiseSigma(p, n, tau, l.se)
		if l.tail == "normal" {
			if m.spread[m.live.span].method == "robust" {
				l.z = round(l.z+crossSkew(l.z, p, n, tau, l.se, sigma), 3)
			}
			z = stats.SkewMultiplier(l.z, p, n, sigma)
		} else {
			z = m.exactDrop(n, tau, l.se) / sigma
		}
		out.Gamma = figure((p-q)*p*q/(float64(n)*float64(n)*sigma*sigma*sigma), 6)
	}
	t := math.Max(s.TolerableDropPP/100, z*sigma)
	out.Sigma, out.ZCF, out.ThresholdPP = figure(sigma, 6), figure(z, 4), figure(100*t, 4)
	out.MDE80PP = figure(100*stats.SmallestDrop(p, t, m.o.Power, effective, tau), 4)
	m.samplesFor(out, t)
}

// crossSkew is by how many sigmas the multiplier rises for the skew that noise
// adds to chance: where the rate is low its chance is larger, so the third
// cumulant has 3 Cov(p, p(1-p)/n) = -3 (2p-1) tau^2/n beside the binomial's own
// (law of total cumulance, Brillinger 1969), in the form of Cornish and Fisher.
// It takes noise that is as likely up as down, which a rate so near 1 that few
// failures are expected has no room for.
func crossSkew(z, p float64, n int64, tau, se, sigma float64) float64 {
	if sigma <= 0 {
		return 0
	}
	noise := float64(tau*tau) + float64(se*se)
	gamma := 3 * (2*p - 1) * noise / (float64(n) * sigma * sigma * sigma)
	return (float64(z*z) - 1) * gamma / 6
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
func (m *measurement) exactDrop(n int64, tau, se float64) float64 {
	s := &m.r.Slow
	p := s.SolveBaseline
	rho := stats.ICCOf(float64(tau*tau)+float64(se*se), p)
	unsolved := stats.BetaBinomialCritical(n, 1-p, rho, stats.OneSided(*s.Z))
	return float64(unsolved)/float64(n) - (1 - p)
}

// holds is how long the step must last for its gate to tell each drop: time
// for the noise to average out, for min_samples to come, and for their labels.
func (m *measurement) holds(step *ladder.Step, out *Step, perMin float64) {
	s := &m.r.Slow
	sp := m.spread[m.live.span]
	tau, wait := *s.Tau, 0.0
	if out.WaitP95Min != nil {
		wait = *out.WaitP95Min
	}
	if m.controlled(step) {
		tau, perMin = math.Sqrt2**s.TauControl, perMin*(1-step.Weight.Share())
	}
	for _, drop := range []float64{s.TolerableDropPP, s.DetectDropPP} {
		out.HoldMin[number(drop)] = nil
		if perMin <= 0 || drop/100 >= s.SolveBaseline {
			continue
		}
		hold := stats.HoldTime(s.SolveBaseline, drop/100, perMin, tau, step.Limits.SlowSpan.Minutes(), sp.inflation, stats.Sigmas(gateAlpha), m.o.Power)
		out.HoldMin[number(drop)] = figure(math.Ceil(math.Max(hold, wait)+step.Limits.LabelLag.Minutes()), 0)
	}
}

// reach gives the slow layer of a step the span that it needs to see
// min_samples. A span that reaches back has the noise of windows of that
// length, and its looks are new ones less often.
func (m *measurement) reach(step *ladder.Step, out *Step, l *limitsOf) {
	s := &m.r.Slow
	switch m.o.Judge {
	case CusumJudge:
		l.cusum, l.phi = m.cusumLimit(out)
		out.CusumLimit = new(l.cusum)
		return
	case CountJudge:
		rare := math.Min(s.SolveBaseline, 1-s.SolveBaseline)
		l.minSamples = max(l.minSamples, int64(math.Ceil(math.Min(normalRare/rare, 1e9))))
		out.CanJudge = *out.NWindow >= l.minSamples
		out.WaitP95Min = figure(stats.WaitForSamples(l.minSamples, *m.r.Traffic.JudgedP10*out.Pct, waitConfidence), 1)
	}
	need := minutes(math.Ceil(*out.WaitP95Min))
	if out.CanJudge || need <= step.Limits.SlowSpan || need > week {
		return
	}
	l.spanMax = need
	out.SpanMaxMin = figure(l.spanMax.Minutes(), 0)
	lasts := max(minutes(float64(l.minSamples)/(m.usualJudged()*out.Pct)), step.Limits.SlowSpan)
	calib := m.spread[m.calib.span]
	l.tau = round(m.noiseOver(lasts)*calib.factor(), 6)
	l.z = round(stats.Multiplier(m.perTick[release.SolveRate], float64(lasts)/float64(m.o.Tick))+s.Raised, 3)
}

// usualJudged is how many requests are judged in a usual minute, both arms
// together.
func (m *measurement) usualJudged() float64 {
	t := &m.r.Traffic
	if t.P10 == nil || t.P50 == nil || *t.P10 <= 0 {
		return *t.JudgedP10
	}
	return *t.JudgedP10 * *t.P50 / *t.P10
}

// cusumLimit is where the cumulative sum of a healthy service comes once in as
// many samples as the budget allows: h = phi ln(ARL0) (Lorden 1971 for
// independent samples; phi, the variance over chance's, for those that hang
// together). The replay sets it anew, see [Report.TakeCusum].
func (m *measurement) cusumLimit(out *Step) (limit, phi float64) {
	s := &m.r.Slow
	tau, perSpan := *s.Tau, *m.r.Traffic.JudgedP10*out.Pct*m.o.Live.Minutes()
	if sp, ok := m.spread[DefaultSpan]; ok {
		tau, perSpan = sp.tau*sp.factor(), *m.r.Traffic.JudgedP10*out.Pct*DefaultSpan.Minutes()
	}
	phi = 1 + perSpan*tau*tau/(s.SolveBaseline*(1-s.SolveBaseline))
	return sig(phi*math.Log(1/m.perTick[release.SolveRate]), 4), phi
}

// minutes is a span of so many minutes, bounded where it would not fit.
func minutes(n float64) time.Duration {
	return time.Duration(math.Min(n, 1e8) * float64(time.Minute))
}
