package config

import (
	"errors"
	"fmt"
	"math/big"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// checkPlan finds what is wrong between keys that are each right by themselves.
func (d *document) checkPlan(c *Config) {
	d.checkLadder(c)
	d.checkMaxPct(c)
	d.checkFloors(c)
	d.checkJudges(c)
	d.checkStreaming(c)
	d.checkRoutes(c)
	d.checkSource(c)
	d.checkTarget(c)
	d.checkState(c)
	d.checkHeaders()
}

// pctNode is where to point for a step's share.
func (d *document) pctNode(i int) *yaml.Node {
	if v := d.values[fmt.Sprintf("canary.steps[%d].pct", i)]; v != nil {
		return v.node
	}
	return d.items("canary.steps")[i]
}

func (d *document) checkLadder(c *Config) {
	last := -1 // index of the last step with a share
	for i := range c.Steps {
		s := &c.Steps[i]
		path := fmt.Sprintf("canary.steps[%d]", i)
		if s.Gates.Has(ladder.TimeGate) && d.values[path] != nil && !d.has(path+".min_hold_min") && !d.noted(path, "min_hold_min") {
			d.errorAt(d.values[path].node, ruleMissingKey, "how many minutes is it held at least? 0 is an answer", "step %d has a time gate and needs the key %q", i+1, "min_hold_min")
		}
		if s.Pct.IsZero() {
			continue
		}
		if last >= 0 && s.Pct.Rat().Cmp(c.Steps[last].Pct.Rat()) <= 0 {
			d.errorAt(d.pctNode(i), ruleStepOrder, "raise it, or remove the step",
				"pct %s of step %d is not above the %s of the step before", s.Pct, i+1, c.Steps[last].Pct)
		}
		last = i
	}
	if last < 0 || last != len(c.Steps)-1 {
		return
	}
	end, top := release.NewRatio(1, 1), "1.00"
	if c.MaxPct != nil && !c.MaxPct.Pct.IsZero() {
		end, top = c.MaxPct.Pct, "the max_pct of "+c.MaxPct.Pct.String()
	}
	if d.has("canary.max_pct") && c.MaxPct.Pct.IsZero() {
		return
	}
	if at := c.Steps[last].Pct; at.Rat().Cmp(end.Rat()) != 0 {
		hint := fmt.Sprintf(`add a step up to it, or say why not: max_pct: {pct: %s, because: "..."}`, at)
		d.errorAt(d.pctNode(last), ruleLastStep, hint, "the last step's pct is %s, want %s", at, top)
	}
}

// noted reports whether a key of a mapping was written, right or wrong.
func (d *document) noted(path, name string) bool {
	n := d.values[path].node
	if merged(n) {
		return true
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return true
		}
	}
	return false
}

func (d *document) checkMaxPct(c *Config) {
	if c.MaxPct == nil || c.MaxPct.Pct.IsZero() || c.HashRingSlots == 0 {
		return
	}
	if _, err := release.WeightOf(c.MaxPct.Pct, c.HashRingSlots); err != nil {
		n := d.values["canary.max_pct.pct"].node
		d.errorAt(n, ruleOffRing, ringHint(c.MaxPct.Pct, c.HashRingSlots), "pct %s is not a whole number of %d slots", n.Value, c.HashRingSlots)
	}
}

// checkFloors forms every step's limits once, so that Plan cannot fail.
func (d *document) checkFloors(c *Config) {
	d.checkLimits(c, "", c.Fast, c.Slow, &c.Streaming)
	for i := range c.Steps {
		path := fmt.Sprintf("canary.steps[%d]", i)
		if d.has(path + ".limits") {
			d.checkLimits(c, path, c.Steps[i].Fast, c.Steps[i].Slow, &c.Steps[i].Streaming)
		}
	}
}

func (d *document) checkLimits(c *Config, step string, f FastLayer, s SlowLayer, m *Streaming) {
	if !d.limitsWhole() {
		return
	}
	if s.SlowWindowMax < s.SlowWindow {
		d.errorAt(d.limitNode(step, slow+"slow_window_max_min"), ruleSpanOrder,
			"a span may reach back further than slow_window_min, not less far: raise slow_window_max_min, or leave it out for a fixed span",
			"slow_window_max_min %s is shorter than slow_window_min %s", minutesText(s.SlowWindowMax), minutesText(s.SlowWindow))
	}
	d.checkDrop(step, &s)
	_, err := c.limits(f, s, m)
	if digits, ok := errors.AsType[*digitsError](err); ok {
		d.errorAt(d.limitNode(step, digits.keys[:]...), ruleOutOfRange, "round the numbers: 18 significant digits together are plenty", "%v", err)
		return
	}
	if errors.Is(err, errNoFloor) {
		d.errorAt(d.limitNode(step, slow+"solve_rate_drop_pp", slow+"solve_baseline"), ruleSolveFloor,
			"solve_rate_drop_pp is in percentage points: 10 turns a baseline of 0.90 into a floor of 0.80",
			"a solve rate of %s less %s percentage points is not above 0: the slow layer could never trip", s.SolveBaseline, s.SolveRateDropPP)
	}
}

// checkDrop holds the drop that a cumulative sum looks for against the
// baseline: the chances of both outcomes must be above 0 on both sides.
func (d *document) checkDrop(step string, s *SlowLayer) {
	drop, baseline := slow+"cusum.drop_pp", slow+"solve_baseline"
	if !s.Cusum.DropPP.IsZero() && new(big.Rat).Mul(s.Cusum.DropPP.Rat(), percent.Rat()).Cmp(s.SolveBaseline.Rat()) >= 0 {
		d.errorAt(d.limitNode(step, drop, baseline), ruleCusumDrop, "drop_pp is in percentage points: 5 looks for a drop from 0.90 to 0.85",
			"a solve rate of %s less a drop_pp of %s is not above 0: there is no such rate to look for", s.SolveBaseline, s.Cusum.DropPP)
	}
	if s.Judge == breaker.CusumJudge && s.SolveBaseline.Rat().Cmp(big.NewRat(1, 1)) == 0 {
		d.errorAt(d.limitNode(step, baseline, slow+"judge"), ruleCusumDrop, "write the rate that a long baseline supports, such as 0.9995; or judge: window",
			"at a solve_baseline of 1 a single failure could not be: a cumulative sum cannot weigh it")
	}
}

// checkJudges finds steps whose judge lacks what it needs. The plan itself may
// lack it as long as every step has its own.
func (d *document) checkJudges(c *Config) {
	if !d.limitsWhole() {
		return
	}
	told := map[*yaml.Node]bool{}
	for i := range c.Steps {
		s, step := &c.Steps[i].Slow, stepPath(i)
		at := d.limitNode(step, slow+"judge")
		if s.Judge == breaker.CusumJudge && !d.hasLimit(step, slow+"cusum") && !told[at] {
			told[at] = true
			d.errorAt(at, ruleJudgeUnset, "`canaryctl calibrate --judge cusum --write` derives it; by hand: cusum: {drop_pp: 5, limit: 12}",
				"step %d: judge is cusum, and there is no cusum that says what drop to look for and what sum trips", i+1)
		}
		d.checkPart(step, "noise", "z", s.Noise.Z)
		d.checkPart(step, "noise", "tau", s.Noise.Tau)
		d.checkPart(step, "cusum", "drop_pp", s.Cusum.DropPP)
		d.checkPart(step, "cusum", "limit", s.Cusum.Limit)
	}
}

// checkPart finds a key that a step's own mapping leaves to a plan which has no
// such mapping. Where the plan has one, the table demands the key there.
func (d *document) checkPart(step, mapping, name string, value release.Ratio) {
	own := step + ".limits." + mapping
	if d.has(own) && !d.has(slow+mapping) && value.IsZero() && !d.noted(own, name) {
		d.errorAt(d.values[own].key, ruleJudgeUnset, aside(specOf(slow+mapping+"."+name).doc),
			"%s needs the key %q, here or in slow_layer's %s", mapping, name, mapping)
	}
}

// limitsWhole reports whether no limit was refused: a default in the place of
// what was refused would be judged otherwise.
func (d *document) limitsWhole() bool {
	for path := range d.broken {
		if strings.HasPrefix(path, fast) || strings.HasPrefix(path, slow) || strings.HasPrefix(path, streaming) || strings.Contains(path, ".limits.") {
			return false
		}
	}
	return true
}

// limitNode is where to point for a limit: the step's own key, the plan's, the
// mapping they would stand in.
func (d *document) limitNode(step string, paths ...string) *yaml.Node {
	if step != "" {
		for _, p := range paths {
			if v := d.values[step+".limits."+limitName(p)]; v != nil {
				return v.node
			}
		}
	}
	return d.node(paths...)
}

// node is where to point for a key: the value of the first that is written,
// else the key of the nearest mapping around the first.
func (d *document) node(paths ...string) *yaml.Node {
	for _, p := range paths {
		if v := d.values[p]; v != nil {
			return v.node
		}
	}
	for p := paths[0]; p != ""; p, _ = splitPath(p) {
		if v := d.values[p]; v != nil {
			return anchor(v.key, v.node)
		}
	}
	return &yaml.Node{Kind: yaml.MappingNode, Line: 1, Column: 1}
}

func (d *document) checkRoutes(c *Config) {
	excluded := map[string]bool{}
	for _, id := range c.Exclude.UserIDs {
		excluded[id] = true
	}
	for i, id := range c.Include {
		if excluded[id] {
			d.errorAt(d.node(fmt.Sprintf("canary.include.user_ids[%d]", i)), ruleRouteOverlap, "keep one of them",
				"user %q is both excluded and included", Short(id))
		}
	}
}
