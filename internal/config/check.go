package config

import (
	"errors"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// checkPlan finds what is wrong between keys that are each right by themselves.
func (d *document) checkPlan(c *Config) {
	d.checkLadder(c)
	d.checkMaxPct(c)
	d.checkFloors(c)
	d.checkRoutes(c)
	d.checkSource(c)
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
	d.checkLimits(c, "", c.Fast, c.Slow)
	for i := range c.Steps {
		path := fmt.Sprintf("canary.steps[%d]", i)
		if d.has(path + ".limits") {
			d.checkLimits(c, path, c.Steps[i].Fast, c.Steps[i].Slow)
		}
	}
}

func (d *document) checkLimits(c *Config, step string, f FastLayer, s SlowLayer) {
	if !d.limitsWhole() {
		return
	}
	_, err := c.limits(f, s)
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

// limitsWhole reports whether no limit was refused: a default in the place of
// what was refused would be judged otherwise.
func (d *document) limitsWhole() bool {
	for path := range d.broken {
		if strings.HasPrefix(path, fast) || strings.HasPrefix(path, slow) || strings.Contains(path, ".limits.") {
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
			_, name := splitPath(p)
			if v := d.values[step+".limits."+name]; v != nil {
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

func (d *document) checkSource(c *Config) {
	if c.Source == nil || c.Source.Kind != "prometheus" {
		return
	}
	const path = "source.prometheus"
	if d.noted(path, "url") == d.noted(path, "url_env") {
		v := d.values[path]
		d.errorAt(v.key, ruleOneOf, "keep one of url or url_env", "prometheus needs exactly one of the keys url and url_env")
	}
}
