package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Plan returns the rules of the release for the ladder and the breaker, built
// anew at each call. Products of decimals are formed exactly; a limit that is
// compared with a float is the float64 nearest to the exact product.
func (c *Config) Plan() *ladder.Plan {
	p := &ladder.Plan{
		Service:         c.ServiceName(),
		Freezes:         slices.Clone(c.Freezes),
		ApprovalTimeout: c.ApprovalTimeout,
		CostBaselineUSD: c.CostBaselineUSD.Float64(),
		Digest:          c.digest(),
		Candidate:       c.Versions.Canary.digest(),
		Adaptive:        c.Adaptive.plan(),
	}
	keep := c.Slow.LabelLag // at least; the loop finds the longest reach
	for i := range c.Steps {
		l, err := c.limits(c.Steps[i].Fast, c.Steps[i].Slow, &c.Steps[i].Streaming)
		if err != nil {
			panic("config: plan of a Config that Parse did not make: " + err.Error())
		}
		p.Steps = append(p.Steps, ladder.Step{
			Weight: c.Steps[i].Weight, MinHold: c.Steps[i].MinHold, MaxWait: c.Steps[i].MaxWait,
			Gates: c.Steps[i].Gates, Limits: l,
		})
		keep = max(keep, l.Reach())
	}
	for i := range p.Steps {
		p.Steps[i].Limits.Keep = keep
	}
	return p
}

// Limits returns the limits that hold where a step has none of its own; the
// first step's where those make no sense by themselves and no step has them.
func (c *Config) Limits() breaker.Limits {
	l, err := c.limits(c.Fast, c.Slow, &c.Streaming)
	if err != nil {
		return c.Plan().Steps[0].Limits
	}
	l.Keep = l.Reach()
	return l
}

// errNoFloor says that a solve rate can never be low enough to trip.
var errNoFloor = errors.New("solve_baseline - solve_rate_drop_pp is not above 0")

// digitsError says that two limits are each held exactly and what they make
// together is not.
type digitsError struct {
	keys [2]string // their paths, or a number
	op   string
	err  error // release.ErrRatioRange
}

func (e *digitsError) Error() string {
	_, a := splitPath(e.keys[0])
	_, b := splitPath(e.keys[1])
	return fmt.Sprintf("%s %s %s has too many digits to be held exactly", a, e.op, b)
}

func (e *digitsError) Unwrap() error { return e.err }

// limits forms the breaker's limits. The errors are errNoFloor and
// [*digitsError].
func (c *Config) limits(f FastLayer, s SlowLayer, m *Streaming) (breaker.Limits, error) {
	violations, err := f.BaselineViolationRate.Mul(f.ViolationRatioMultiplier)
	if err != nil {
		return breaker.Limits{}, &digitsError{[2]string{fast + "baseline_violation_rate", fast + "violation_ratio_multiplier"}, "x", err}
	}
	transfers, err := f.BaselineTransferRate.Mul(f.TransferRateRatioLimit)
	if err != nil {
		return breaker.Limits{}, &digitsError{[2]string{fast + "baseline_transfer_rate", fast + "transfer_rate_ratio_limit"}, "x", err}
	}
	slowRate, err := f.P99SlowRate.Mul(f.P99SlowRatioLimit)
	if err != nil {
		return breaker.Limits{}, &digitsError{[2]string{fast + "p99_slow_rate", fast + "p99_slow_ratio_limit"}, "x", err}
	}
	floor, err := s.floor()
	if err != nil {
		return breaker.Limits{}, err
	}
	cusum, err := s.Cusum.limits()
	if err != nil {
		return breaker.Limits{}, err
	}
	streams, err := m.limits()
	if err != nil {
		return breaker.Limits{}, err
	}
	p99, _ := new(big.Rat).Mul(f.P99BaselineMS.Rat(), f.P99RatioLimit.Rat()).Float64()
	return breaker.Limits{
		Rules:    c.Signals,
		FastSpan: f.ViolationWindow, ViolationLimit: f.ViolationLimit, ViolationRate: violations,
		MinTransfers: f.MinTransferCount, TransferRate: transfers,
		CostRatio: f.CostRatioLimit.Float64(), CostMinSamples: f.CostMinSamples,
		P99MS: p99, P99MinSamples: f.P99MinSamples,
		P99ByCount: f.P99ByCount, SlowRate: slowRate, MinSlow: f.MinSlowCount, Streaming: streams,
		SlowSpan: s.SlowWindow, SlowSpanMax: s.SlowWindowMax, LabelLag: s.LabelLag,
		SolveBaseline: s.SolveBaseline, SolveFloor: floor, MinSamples: s.MinSamplesSlow,
		Noise: s.Noise.limits(), AgainstStable: s.AgainstStable, Judge: s.Judge, Cusum: cusum,
		Cooldown: c.Recovery.Cooldown, Trials: c.Recovery.HalfOpenTrials, SuccessRate: c.Recovery.HalfOpenSuccessRate,
		ProbeMinRequests: c.Recovery.HalfOpenMinRequests, LockOnEscalate: c.Recovery.LockOnEscalate,
		MaxRecoveries: c.Recovery.MaxAttempts,
	}, nil
}

// floor returns solve_baseline - solve_rate_drop_pp / 100, exactly.
func (s *SlowLayer) floor() (release.Ratio, error) {
	drop := new(big.Rat).Quo(s.SolveRateDropPP.Rat(), big.NewRat(100, 1))
	rat := drop.Sub(s.SolveBaseline.Rat(), drop)
	if rat.Sign() <= 0 {
		return release.Ratio{}, errNoFloor
	}
	r, err := release.RatioOf(rat)
	if err != nil {
		return release.Ratio{}, &digitsError{[2]string{slow + "solve_baseline", slow + "solve_rate_drop_pp"}, "-", err}
	}
	return r, nil
}

// limits returns the noise in the floats that the breaker reckons with; the
// zero value for none.
func (n *Noise) limits() breaker.Noise {
	return breaker.Noise{
		Z: n.Z.Float64(), Tau: n.Tau.Float64(), SE: n.SE.Float64(), TauControl: n.TauControl.Float64(), Tail: n.Tail,
	}
}

// limits returns the cumulative sum's drop as an exact fraction; the zero value
// for none. The error is a [*digitsError].
func (q *Cusum) limits() (breaker.Cusum, error) {
	if q.DropPP.IsZero() {
		return breaker.Cusum{}, nil
	}
	drop, err := q.DropPP.Mul(percent)
	if err != nil {
		return breaker.Cusum{}, &digitsError{[2]string{slow + "cusum.drop_pp", "100"}, "/", err}
	}
	return breaker.Cusum{Drop: drop, Limit: q.Limit.Float64()}, nil
}

// percent turns percentage points into a fraction of 1.
var percent = release.NewRatio(1, 100)

// digest names everything that a decision depends on: the same rules give the
// same digest however they are written, and a changed threshold another one.
// Where weights are written, who is told and how much traffic there is are no
// rules.
func (c *Config) digest() string {
	var b strings.Builder
	line := func(name string, v any) { fmt.Fprintf(&b, "%s=%v\n", name, v) }
	line("service", strconv.Quote(c.TargetService))
	if c.Scene != "" {
		line("scene", c.Scene)
	}
	line("dimension", strconv.Quote(c.TrafficDimension))
	line("ring", c.HashRingSlots)
	for i := range c.Steps {
		s := &c.Steps[i]
		line("step", fmt.Sprintf("%d %v %v %v %v %v", s.Weight.Slots, s.MinHold, s.MaxWait, s.Gates, s.Fast.canonical(), s.Slow.canonical()+s.Streaming.canonical(c.windowLength())))
	}
	line("exclude", quoted(c.Exclude.Segments)+quoted(c.Exclude.UserIDs))
	line("include", quoted(c.Include))
	line("recovery", c.Recovery.canonical())
	line("signals", c.canonicalSignals())
	for i := range c.Freezes {
		f := &c.Freezes[i]
		line("freeze", fmt.Sprintf("%s %v %v %v", f.Zone, f.Days, f.From, f.To))
	}
	line("approval", c.ApprovalTimeout)
	line("cost_baseline", fraction(c.CostBaselineUSD))
	if s := c.Share; s.Off || s.DesignEffect != specOf("canary.share.design_effect").fallback().number || s.Tolerance != specOf("canary.share.tolerance").fallback().number {
		line("share", fmt.Sprintf("%t %s %s", s.Off, fraction(s.DesignEffect), fraction(s.Tolerance)))
	}
	if c.Adaptive != nil {
		line("adaptive", c.Adaptive.canonical())
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:])
}

// quoted writes a list so that its order does not matter and its items cannot
// run into each other.
func quoted(words []string) string {
	sorted := slices.Clone(words)
	slices.Sort(sorted)
	return fmt.Sprintf("%q", slices.Compact(sorted))
}

// fraction writes an exact value in lowest terms.
func fraction(r release.Ratio) string { return fmt.Sprintf("%d/%d", r.Num, r.Den) }

// canonical writes the rules of the fast layer.
func (f *FastLayer) canonical() string {
	return fmt.Sprintf("%d %s %s %v %s %d %s %s %d %s %s %d",
		f.ViolationLimit, fraction(f.BaselineViolationRate), fraction(f.ViolationRatioMultiplier), f.ViolationWindow,
		fraction(f.CostRatioLimit), f.CostMinSamples, fraction(f.P99BaselineMS), fraction(f.P99RatioLimit), f.P99MinSamples,
		fraction(f.BaselineTransferRate), fraction(f.TransferRateRatioLimit), f.MinTransferCount) + f.countForm()
}

// countForm writes the rules of p99's count form where they are not the
// defaults: a configuration without them keeps the digest that it had before
// there were any.
func (f *FastLayer) countForm() string {
	out := ""
	if f.P99ByCount {
		out += " p99_judge=count"
	}
	for _, r := range []struct {
		path  string
		value release.Ratio
	}{{fast + "p99_slow_rate", f.P99SlowRate}, {fast + "p99_slow_ratio_limit", f.P99SlowRatioLimit}} {
		if row := specOf(r.path); r.value != row.fallback().number {
			out += fmt.Sprintf(" %s=%s", row.name, fraction(r.value))
		}
	}
	if row := specOf(fast + "min_slow_count"); f.MinSlowCount != row.fallback().count {
		out += fmt.Sprintf(" %s=%d", row.name, f.MinSlowCount)
	}
	return out
}

// canonical writes the rules of the slow layer.
func (s *SlowLayer) canonical() string {
	return fmt.Sprintf("%s %s %d %v %v", fraction(s.SolveBaseline), fraction(s.SolveRateDropPP), s.MinSamplesSlow, s.SlowWindow, s.LabelLag) + s.fittedForm()
}

// fittedForm writes what the slow layer has beside the fixed drop, where it has
// it: see [FastLayer.countForm].
func (s *SlowLayer) fittedForm() string {
	out := ""
	if s.SlowWindowMax != s.SlowWindow {
		out += fmt.Sprintf(" slow_window_max=%v", s.SlowWindowMax)
	}
	if s.Judge != breaker.WindowJudge {
		out += fmt.Sprintf(" judge=%d", s.Judge)
	}
	if s.AgainstStable {
		out += " against=stable"
	}
	if n := &s.Noise; *n != (Noise{}) {
		out += fmt.Sprintf(" noise=%s,%s,%s,%s,%d", fraction(n.Z), fraction(n.Tau), fraction(n.SE), fraction(n.TauControl), n.Tail)
	}
	if q := &s.Cusum; *q != (Cusum{}) {
		out += fmt.Sprintf(" cusum=%s,%s", fraction(q.DropPP), fraction(q.Limit))
	}
	return out
}

// canonical writes the rules of recovery.
func (r *Recovery) canonical() string {
	return fmt.Sprintf("%v %d %s %t %d %d", r.Cooldown, r.HalfOpenTrials, fraction(r.HalfOpenSuccessRate), r.LockOnEscalate, r.HalfOpenMinRequests, r.MaxAttempts)
}

// digest names the candidate: the release's id. Weight and api_key are not part
// of what is released. A version that was left out has the id "".
func (v *Version) digest() string {
	if v == nil {
		return ""
	}
	var b strings.Builder
	for _, kv := range v.identity() {
		fmt.Fprintf(&b, "%s=%s\n", kv[0], kv[1])
	}
	fmt.Fprintf(&b, "api_key_env=%q\n", v.APIKeyEnv)
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:])
}

// identity lists what tells a version from another, by name.
func (v *Version) identity() [][2]string {
	return [][2]string{
		{"base_url", strconv.Quote(v.BaseURL)},
		{"model_id", strconv.Quote(v.ModelID)},
		{"prompt_version", strconv.Quote(v.PromptVersion)},
		{"tools_version", strconv.Quote(v.ToolsVersion)},
		{"gateway", strconv.Quote(v.Gateway)},
		{"temperature", fraction(v.Temperature)},
		{"params", canonical(v.Params)},
	}
}

// canonical writes a free value so that equal values are equal texts.
func canonical(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var b strings.Builder
		for _, k := range slices.Sorted(maps.Keys(v)) {
			fmt.Fprintf(&b, "%q:%s,", k, canonical(v[k]))
		}
		return "{" + b.String() + "}"
	case []any:
		var b strings.Builder
		for _, item := range v {
			b.WriteString(canonical(item) + ",")
		}
		return "[" + b.String() + "]"
	case string:
		return strconv.Quote(v)
	case Number:
		if rat, ok := new(big.Rat).SetString(string(v)); ok && len(v) < 32 && plainDecimal.MatchString(string(v)) {
			return rat.RatString()
		}
		return string(v)
	}
	return fmt.Sprint(v)
}
