package calibrate

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Setting is one value for canary.yaml.
type Setting struct {
	// Key is the path below metrics (InMetrics), below canary, or below a step's
	// limits.
	Key       []string
	InMetrics bool
	Step      int    // 1 is the first step; 0: not a step's
	Value     string // as written in YAML
	Why       string // where it comes from, in a few words
}

// limitsOf are a step's own limits; what is zero or nil is not the step's.
type limitsOf struct {
	minSamples int64
	z, tau, se float64
	tail       string
	spanMax    time.Duration
	cusum, phi float64 // limit of the sum, and the width of its tail
	violations *Count
	transfers  *Count
	slow       *Count

	costSamples int64
	raised      [release.Judged]int
}

// Settings returns the values that the baseline supplies, in the order of
// canary.yaml: what holds for all steps, then each step's own. A figure that is
// missing or is no use as a limit has none: the file keeps its own. There are
// none where the verdict refuses: half of a rule is no rule.
func (r *Report) Settings() []Setting {
	b := &settings{}
	if !r.Verdict.OK {
		return nil
	}
	if r.RequestsPerMin != nil && *r.RequestsPerMin > 0 {
		b.canary("requests_per_min", *r.RequestsPerMin, "mean of both arms")
	}
	if r.Cost.MeanUSD != nil && *r.Cost.MeanUSD > 0 {
		b.canary("cost_baseline_usd", *r.Cost.MeanUSD, "mean of a request")
	}
	r.fastSettings(b)
	r.slowSettings(b)
	r.streamSettings(b)
	for i := range r.limits {
		r.stepSettings(b, i)
		r.stepSlowSettings(b, i)
	}
	return b.all
}

// settings is a list in the making.
type settings struct{ all []Setting }

func (b *settings) canary(key string, value float64, why string) {
	b.all = append(b.all, Setting{Key: []string{key}, Value: number(value), Why: why})
}

func (b *settings) metric(why, value string, key ...string) {
	b.all = append(b.all, Setting{Key: key, InMetrics: true, Value: value, Why: why})
}

func (b *settings) step(i int, why, value string, key ...string) {
	b.all = append(b.all, Setting{Key: key, Step: i + 1, Value: value, Why: why})
}

func (r *Report) fastSettings(b *settings) {
	if v := r.Violations.baseline(); v != nil {
		b.metric("violations a request", number(*v), "fast_layer", "baseline_violation_rate")
	}
	if v := r.p99Baseline(); v != nil && *v > 0 {
		b.metric(r.P99.Method, number(*v), "fast_layer", "p99_baseline_ms")
	}
	if r.P99.Judge == "count" && r.Meta.Rule == "budget" {
		b.metric("a p99 of few requests is no p99: slower ones are counted", "count", "fast_layer", "p99_judge")
		b.metric("share slower than p99_baseline_ms", number(*r.P99.Slow.Rate), "fast_layer", "p99_slow_rate")
	} else if r.P99.Judge == "window" && r.Meta.Rule == "budget" {
		if r.base != nil && r.base.Steps[0].Limits.P99ByCount {
			b.metric("the baseline counts no slow requests", "window", "fast_layer", "p99_judge")
		}
		b.metric("fewer requests have no 99th percentile", strconv.Itoa(enoughForP99), "fast_layer", "p99_min_samples")
	}
	if v := r.Transfers.baseline(); v != nil {
		b.metric("transfers a request", number(*v), "fast_layer", "baseline_transfer_rate")
	}
}

// streamSettings is the one figure of streaming that a baseline supplies: its
// limits are those of the configuration, since a baseline that is thinned to a
// share does not show what an engine does under that share.
func (r *Report) streamSettings(b *settings) {
	if r.TTFT != nil && r.TTFT.ValueMS > 0 {
		b.metric(r.TTFT.Method, number(r.TTFT.ValueMS), "streaming", "ttft_p99", "baseline_ms")
	}
}

// p99Baseline is the latency that slow requests are counted above. Whoever
// counted them in windows knows it, and has it in the file: nil then.
func (r *Report) p99Baseline() *float64 {
	if r.P99.Judge == "count" && r.Meta.Rule == "budget" {
		return r.P99.SlowMS
	}
	return r.P99.ValueMS
}

func (r *Report) slowSettings(b *settings) {
	s := &r.Slow
	if s.SolveBaseline == 0 {
		return
	}
	b.metric("solved of judged", number(s.SolveBaseline), "slow_layer", "solve_baseline")
	why := "the tolerable drop; noise decides where it is more"
	if r.Meta.Rule == "plain" {
		why = fmt.Sprintf("max(tolerable drop, %s sigma)", number(s.Plain.K))
	}
	b.metric(why, number(math.Min(s.ThresholdPP, 100)), "slow_layer", "solve_rate_drop_pp")
	if s.MinSamples != nil {
		b.metric("from here on a drop can be told from chance", strconv.FormatInt(*s.MinSamples, 10), "slow_layer", "min_samples_slow")
	}
	if r.cusum && r.Meta.Judge != string(CusumJudge) {
		b.metric("--judge "+r.Meta.Judge, "window", "slow_layer", "judge")
	}
	if s.Z == nil || s.MinSamples == nil {
		if r.base != nil && r.base.Steps[0].Limits.Noise.Z > 0 {
			b.metric("the plain rule has no fitted form", "0", "slow_layer", "noise", "z")
		}
		return
	}
	if r.Meta.Judge == string(CusumJudge) && len(r.limits) > 0 {
		b.metric("--judge cusum", "cusum", "slow_layer", "judge")
		b.metric("the drop to find", number(s.DetectDropPP), "slow_layer", "cusum", "drop_pp")
		b.metric("the first step's limit", number(r.limits[0].cusum), "slow_layer", "cusum", "limit")
	}
	b.metric(fmt.Sprintf("sigmas, for %s false trips a week", number(r.Meta.Budget.PerWeek)), number(*s.Z), "slow_layer", "noise", "z")
	b.metric("sd of the true rate between windows of "+s.TauSpan, number(*s.Tau), "slow_layer", "noise", "tau")
	b.metric("standard error of solve_baseline", number(*s.SE), "slow_layer", "noise", "se")
	if s.TauControl != nil {
		b.metric("sd of what is each arm's own, in the same windows", number(*s.TauControl), "slow_layer", "noise", "tau_control")
	}
	b.metric("of the noise's distribution", s.Tail, "slow_layer", "noise", "tail")
}

func (r *Report) stepSettings(b *settings, i int) {
	l := &r.limits[i]
	if c := l.violations; c != nil {
		b.step(i, "", strconv.FormatInt(c.Threshold, 10), "violation_limit")
		b.step(i, "", number(c.Ratio), "violation_ratio_multiplier")
	}
	if l.costSamples > 0 {
		b.step(i, "", strconv.FormatInt(l.costSamples, 10), "cost_min_samples")
	}
	if c := l.slow; c != nil {
		b.step(i, "", number(c.Ratio), "p99_slow_ratio_limit")
		b.step(i, "", strconv.FormatInt(c.Threshold, 10), "min_slow_count")
	}
	if c := l.transfers; c != nil {
		b.step(i, "", number(c.Ratio), "transfer_rate_ratio_limit")
		b.step(i, "", strconv.FormatInt(c.Threshold, 10), "min_transfer_count")
	}
}

// slowKeys are the keys of the slow layer that a step may have for its own, and
// what they are in limits. A span that does not reach back is written as one
// that reaches to its own length.
var slowKeys = []struct {
	key []string
	of  func(*breaker.Limits) string
}{
	{[]string{"min_samples_slow"}, func(l *breaker.Limits) string { return strconv.FormatInt(l.MinSamples, 10) }},
	{[]string{"slow_window_max_min"}, func(l *breaker.Limits) string { return number(max(l.SlowSpan, l.SlowSpanMax).Minutes()) }},
	{[]string{"noise", "z"}, func(l *breaker.Limits) string { return number(l.Noise.Z) }},
	{[]string{"noise", "tau"}, func(l *breaker.Limits) string { return number(l.Noise.Tau) }},
	{[]string{"noise", "se"}, func(l *breaker.Limits) string { return number(l.Noise.SE) }},
	{[]string{"noise", "tail"}, func(l *breaker.Limits) string { return tailName(l.Noise.Tail) }},
	{[]string{"cusum", "limit"}, func(l *breaker.Limits) string { return number(l.Cusum.Limit) }},
}

func tailName(t breaker.Tail) string {
	if t == breaker.ExactTail {
		return "exact"
	}
	return "normal"
}

// stepSlowSettings writes the slow layer's keys that a step needs for its own,
// and those that it has for its own in the file, from whoever wrote them: what
// --write leaves behind does not depend on what was there.
func (r *Report) stepSlowSettings(b *settings, i int) {
	if r.base == nil || r.Slow.SolveBaseline == 0 {
		return
	}
	target, all := r.base.Steps[i].Limits, r.base.Steps[i].Limits
	if r.top != nil {
		all = *r.top
	}
	before, beforeAll := target, all
	if r.apply(&target, i) != nil || r.apply(&all, -1) != nil {
		return
	}
	for _, k := range slowKeys {
		now, own := k.of(&target), k.of(&target) != k.of(&all) || k.of(&before) != k.of(&beforeAll)
		switch {
		case !own:
		case k.key[0] == "cusum" && target.Judge != breaker.CusumJudge:
		case k.key[0] == "noise" && target.Noise.Z == 0 && before.Noise.Z == 0:
		default:
			b.step(i, "", now, k.key...)
		}
	}
}

// Plan returns the ladder with the values in its limits, as canary.yaml would
// have them: what the replay runs is what --write writes.
func (r *Report) Plan(base *ladder.Plan) (*ladder.Plan, error) {
	plan := *base
	plan.Steps = append([]ladder.Step(nil), base.Steps...)
	keep := time.Duration(0)
	for i := range plan.Steps {
		l := &plan.Steps[i].Limits
		if err := r.apply(l, i); err != nil {
			return nil, err
		}
		keep = max(keep, l.Reach())
	}
	for i := range plan.Steps {
		plan.Steps[i].Limits.Keep = keep
	}
	return &plan, nil
}

// apply puts the values into a step's limits.
func (r *Report) apply(l *breaker.Limits, i int) error {
	var own limitsOf
	if i >= 0 && i < len(r.limits) {
		own = r.limits[i]
	}
	x := &exact{}
	r.applyFast(l, &own, x)
	if r.Slow.SolveBaseline > 0 {
		r.applySlow(l, &own, i, x)
	}
	return x.err
}

func (r *Report) applyFast(l *breaker.Limits, own *limitsOf, x *exact) {
	if rate, c := r.Violations.baseline(), own.violations; rate != nil && c != nil {
		l.ViolationLimit, l.ViolationRate = c.Threshold, x.product(*rate, c.Ratio)
	}
	if rate, c := r.Transfers.baseline(), own.transfers; rate != nil && c != nil {
		l.MinTransfers, l.TransferRate = c.Threshold, x.product(*rate, c.Ratio)
	}
	if c := own.slow; c != nil {
		l.P99ByCount, l.MinSlow, l.SlowRate = true, c.Threshold, x.product(*r.P99.Slow.Rate, c.Ratio)
	} else if r.P99.Judge == "window" && r.Meta.Rule == "budget" {
		l.P99ByCount, l.P99MinSamples = false, enoughForP99
	}
	if own.costSamples > 0 {
		l.CostMinSamples = own.costSamples
	}
}

func (r *Report) applySlow(l *breaker.Limits, own *limitsOf, i int, x *exact) {
	s := &r.Slow
	l.SolveBaseline = x.ratio(number(s.SolveBaseline))
	l.SolveFloor = x.less(s.SolveBaseline, math.Min(s.ThresholdPP, 100))
	if s.MinSamples != nil {
		l.MinSamples = *s.MinSamples
	}
	l.Judge = breaker.WindowJudge
	if s.Z == nil || s.MinSamples == nil {
		l.Noise, l.SlowSpanMax = breaker.Noise{}, 0
		return
	}
	l.Noise = breaker.Noise{Z: *s.Z, Tau: *s.Tau, SE: *s.SE}
	if s.TauControl != nil {
		l.Noise.TauControl = *s.TauControl
	}
	if s.Tail == "exact" {
		l.Noise.Tail = breaker.ExactTail
	}
	l.SlowSpanMax = own.spanMax
	if own.z > 0 {
		l.Noise.Z, l.Noise.Tau, l.MinSamples = own.z, own.tau, own.minSamples
	}
	limit := own.cusum
	if i < 0 && len(r.limits) > 0 {
		limit = r.limits[0].cusum
	}
	if limit > 0 {
		l.Judge, l.Cusum = breaker.CusumJudge, breaker.Cusum{Drop: x.ratio(number(s.DetectDropPP) + "e-2"), Limit: limit}
	}
}

// exact forms exact values of decimals and keeps the first error.
type exact struct{ err error }

func (x *exact) ratio(decimal string) release.Ratio {
	r, err := release.ParseRatio(decimal)
	if err != nil && x.err == nil {
		x.err = err
	}
	return r
}

func (x *exact) product(a, b float64) release.Ratio {
	p, q := x.ratio(number(a)), x.ratio(number(b))
	if x.err != nil {
		return release.Ratio{}
	}
	r, err := p.Mul(q)
	if err != nil {
		x.err = err
	}
	return r
}

// less returns p less so many percentage points.
func (x *exact) less(p, points float64) release.Ratio {
	a, b := x.ratio(number(p)), x.ratio(number(points)+"e-2")
	if x.err != nil {
		return release.Ratio{}
	}
	d := new(big.Rat).Sub(a.Rat(), b.Rat())
	if d.Sign() <= 0 {
		return release.NewRatio(0, 1) // nothing is low enough, but for nothing at all
	}
	r, err := release.RatioOf(d)
	if err != nil {
		x.err = err
	}
	return r
}
