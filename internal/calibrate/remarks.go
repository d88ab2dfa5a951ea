package calibrate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/canaryctl/canaryctl/internal/release"
)

// partly warns where a figure covers only some of the requests.
func (m *measurement) partly(name string, requests int64) {
	var kept int64
	for i := range m.kept {
		kept += m.kept[i].Total
	}
	if requests > 0 && requests < kept {
		m.r.warn("partial-figure", fmt.Sprintf("%s are known for %d of %d requests only", name, requests, kept), "")
	}
}

// remarks adds the warnings that rest on the finished report, the gravest
// first.
func (m *measurement) remarks() {
	r := m.r
	found := r.Warnings
	r.Warnings = []Warning{}
	if d := min(r.Span.To.Sub(r.Span.From), minutes(r.Span.WatchedMin+1)); d >= MinSpan*9/10 && d < GoodSpan {
		r.warn("short-baseline", roughly(d)+" are less than five days: weekdays, weekends and their nights may differ from what was seen", "calibrate again on a week")
	}
	r.Warnings = append(r.Warnings, found...)
	m.incidentWarning()
	if c := r.Centre; c.P0 != nil && math.Abs(*c.P0-*c.Median) > offCentre && !r.warned("off-centre") {
		r.warn("off-centre", fmt.Sprintf("the pooled solve rate %s is more than half a point from the median window's %s", percent(*c.P0), percent(*c.Median)), "a few bad or very large windows pull it; look for incidents")
	}
	m.timeWarnings()
	if n := len(r.Windows.Gaps); n > 0 {
		lost := 0.0
		for _, g := range r.Windows.Gaps {
			lost += g.Minutes
		}
		r.warn("gaps", fmt.Sprintf("nothing is known of %s minutes in %s, the first at %s", number(round(lost, 1)), count(n, "gap"), stamp(r.Windows.Gaps[0].From)), "the windows they touch are left out of sigma")
	}
	for _, left := range m.o.Exclude {
		if !slices.ContainsFunc(m.own, func(w release.Window) bool { return overlaps([]Gap{left}, w.T, w.End()) }) {
			r.warn("excludes-nothing", fmt.Sprintf("--exclude %s/%s covers no window", stamp(left.From), stamp(left.To)), "is the date right?")
		}
	}
	r.noneSeen("violations", &r.Violations)
	r.noneSeen("transfers", &r.Transfers)
	r.missing()
}

func (r *Report) warned(code string) bool {
	return slices.ContainsFunc(r.Warnings, func(w Warning) bool { return w.Code == code })
}

func (r *Report) noneSeen(name string, rate *Rate) {
	if rate.Count != nil && *rate.Count == 0 {
		r.warn("no-"+name, fmt.Sprintf("no %s in %d requests: by the rule of three up to %s may have one, and the baseline rate is set to that", name, rate.Requests, percent(*rate.Upper95)), "")
	}
}

// missing names the figures that no window carries, in one warning.
func (r *Report) missing() {
	var names []string
	for _, f := range []struct {
		name  string
		known bool
	}{{"violations", r.Violations.Rate != nil}, {"transfers", r.Transfers.Rate != nil}, {"p99", r.P99.ValueMS != nil || r.P99.Slow.Rate != nil}, {"cost", r.Cost.MeanUSD != nil}} {
		if !f.known {
			names = append(names, f.name)
		}
	}
	if len(names) > 0 {
		r.warn("missing-figures", "the input says nothing of "+strings.Join(names, ", "), "--write leaves their keys as they are; map them with --map to calibrate the fast layer too")
	}
}

// noControl is the code of a last step that has no stable to compare with.
const noControl = "no-control"

// threeWaysOut is what can be done where noise is too large.
const threeWaysOut = "three ways out: ask for less (a larger drop), compare with stable in the same minutes (slow_layer.against: stable), or reduce the noise (see the incidents and the hours)"

// NoOutcome is the verdict's reason of a baseline that cannot be used for a
// solve rate at all.
const NoOutcome = "no-outcome"

// Refuses reports whether the verdict ends the command: a baseline that is too
// short was measured because somebody asked to see what little there is, and
// has no verdict.
func (v *Verdict) Refuses() bool { return !v.OK && !slices.Contains(v.Reasons, tooShortCode) }

// judge says whether the plan can be judged: the verdict behind exit 11.
func (m *measurement) judge() {
	m.r.Verdict = Verdict{OK: true, Reasons: []string{}}
	m.verdict()
	if m.r.warned(tooShortCode) || m.r.warned(fewWindowsCode) {
		m.r.Verdict = Verdict{Reasons: append([]string{tooShortCode}, m.r.Verdict.Reasons...)}
	}
}

// blindSteps says at which steps the fixed window of the plain rule never
// holds enough; their gates judge later.
func (m *measurement) blindSteps() {
	var blind []string
	for i := range m.r.Steps {
		if st := &m.r.Steps[i]; st.NWindow != nil && !st.CanJudge {
			blind = append(blind, percent(st.Pct))
		}
	}
	if n := m.r.Slow.MinSamples; n != nil && len(blind) > 0 {
		m.r.warn("blind-steps", fmt.Sprintf("at %s a fixed window does not hold the %d judged requests that the plain rule needs at quiet times: the breaker's slow layer is blind there, and the gate judges when they have come", strings.Join(blind, ", "), *n), "leave out --k: the fitted form's window reaches back; or begin with a larger step")
	}
}

// verdict judges the plan by the rule that was asked for.
func (m *measurement) verdict() {
	r, s := m.r, &m.r.Slow
	switch {
	case m.r.Totals.Judged == 0:
		m.fail(NoOutcome, fmt.Sprintf("none of %d requests says whether it was solved: the traffic is measured, and no threshold of the solve rate", r.Totals.Total), "map the outcome: --map solved=COLUMN (true or false in records, a count in windows)")
		return
	case m.o.K > 0:
		m.blindSteps()
		if m.o.AskedFor && s.Plain.ThreeSigmaPP != nil && *s.Plain.ThreeSigmaPP > s.TolerableDropPP {
			r.Verdict = Verdict{Reasons: []string{"noise"}}
		}
		return
	}
	switch {
	case s.Z == nil && m.perTick[release.SolveRate] <= 0:
		m.fail("no-budget", "solve_rate has no share of the budget: no threshold can be derived for it", "give it one: --budget solve_rate=50%,...")
		return
	case s.Z == nil: // no whole window has a rate: only under AllowShort
		return
	case s.DetectDropPP/100 >= s.SolveBaseline:
		m.fail("drop-above-baseline", fmt.Sprintf("a drop of %s pp leaves nothing of a solve rate of %s", number(s.DetectDropPP), percent(s.SolveBaseline)), "a smaller --detect-drop and --tolerable-drop")
		return
	}
	tau := m.floor()
	floor := 100 * *s.Z * tau // what no traffic gets below
	switch {
	case m.o.AskedFor && floor > s.TolerableDropPP:
		m.fail("in-noise", fmt.Sprintf("the asked-for drop of %s pp lies inside the noise: at any traffic %.2f pp are noise (%s sigma of %.2f pp)", number(s.TolerableDropPP), floor, number(*s.Z), 100*tau), threeWaysOut)
	case floor >= s.DetectDropPP:
		m.fail("in-noise", fmt.Sprintf("a drop of %s pp lies inside the noise: at any traffic %.2f pp are noise (%s sigma of %.2f pp); the noise may be %.2f pp at most", number(s.DetectDropPP), floor, number(*s.Z), 100*tau, 100**s.TauMax), threeWaysOut)
	}
	if r.Verdict.OK {
		m.unjudgeable()
	}
	asked := s.DetectDropPP
	if m.o.AskedFor {
		asked = s.TolerableDropPP
	}
	if whole := 100 * *s.Z * *s.Tau; r.Verdict.OK && floor < asked && whole >= asked {
		r.warn(noControl, fmt.Sprintf("at 100 %% there is no stable to compare with: %.2f pp are noise there, and a drop of %s pp lies inside", whole, number(asked)), "let the step before the last hold for longer; what it does not find, nothing will")
	}
}

// unjudgeable names the steps that can never be judged.
func (m *measurement) unjudgeable() {
	s := &m.r.Slow
	if s.MinSamples == nil {
		m.fail("never-judged", fmt.Sprintf("no number of samples tells a drop of %s pp from the noise: no step can be judged", number(s.DetectDropPP)), threeWaysOut)
		return
	}
	var never []string
	for i := range m.r.Steps {
		st := &m.r.Steps[i]
		switch {
		case st.WaitP95Min == nil || *st.WaitP95Min > week.Minutes():
			never = append(never, percent(st.Pct))
		case st.ThresholdPP != nil && *st.ThresholdPP/100 >= s.SolveBaseline:
			never = append(never, percent(st.Pct))
		}
	}
	if len(never) > 0 {
		m.fail("never-judged", fmt.Sprintf("at %s a judgement needs more than the traffic of a week brings, from %d judged requests on", strings.Join(never, ", "), *s.MinSamples), "begin with a larger step, or ask for less: a larger --detect-drop")
	}
}

// fail adds a reason why the plan cannot be judged, in front of all warnings.
func (m *measurement) fail(code, text, hint string) {
	r := m.r
	r.Verdict.OK = false
	r.Verdict.Reasons = append(r.Verdict.Reasons, code)
	r.Warnings = append([]Warning{{Code: code, Text: text, Hint: hint}}, r.Warnings...)
}
