package config

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/diag"
	"github.com/canaryctl/canaryctl/internal/pattern"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/splice"
)

func (d *document) checkSource(c *Config) {
	if c.Source == nil {
		return
	}
	path := "source." + c.Source.Kind
	if written := path + ".stale_min"; d.has(written) && !d.broken[path+".span_min"] && !d.broken[path+".settle_min"] {
		if least := c.Source.Settle + c.Source.Span; c.Source.Stale > 0 && c.Source.Stale <= least {
			d.errorAt(d.node(written), ruleSpanOrder, "make it several windows longer, or 0 for never",
				"stale_min %s is not longer than settle_min and a window of %s together: the source would count as lost between any two windows",
				minutesText(c.Source.Stale), release.Minutes(c.Source.Span))
		}
	}
	if c.Source.Kind == "prometheus" {
		d.checkQueries(c.Source)
	}
}

// checkQueries finds what a Prometheus source lacks, and arms that are one: a
// canary held against itself always passes.
func (d *document) checkQueries(s *Source) {
	const queries = promPath + ".queries"
	switch {
	case d.noted(promPath, "preset"):
	case !d.noted(promPath, "queries"):
		d.errorAt(d.node(queries), ruleMissingKey, "PromQL by arm and figure; or a preset", "prometheus needs the key %q", "queries")
	case d.has(queries) && !d.noted(queries, "canary"):
		d.errorAt(d.node(queries+".canary"), ruleMissingKey, aside(specOf(queries).doc), "queries needs the key %q", "canary")
	}
	for _, arm := range armWords {
		at := queries + "." + arm
		if d.has(at) && !d.noted(at, "total") && !d.noted(promPath, "preset") {
			d.errorAt(d.node(at+".total"), ruleMissingKey, aside(specOf(queries+".*.total").doc), "%s needs the key %q", arm, "total")
		}
	}
	stable, canary := s.Matchers[release.Stable], s.Matchers[release.Canary]
	if canary != "" && matchersOf(canary) == matchersOf(stable) {
		d.errorAt(d.node(promPath+".matchers.canary"), ruleSameArm, `a label must tell the arms apart: version="canary" and version="stable"`,
			"the matchers of canary and stable are the same: the canary would be compared with itself")
	}
	for _, figure := range specOf(queries + ".*").order {
		text := s.Queries[release.Canary][figure]
		if text != "" && strings.TrimSpace(text) != nowhere && strings.Join(strings.Fields(text), " ") == strings.Join(strings.Fields(s.Queries[release.Stable][figure]), " ") {
			d.errorAt(d.node(queries+".canary."+figure), ruleSameArm, "a label must tell the arms apart, such as version=\"canary\"",
				"the queries of canary and stable for %s are the same: the canary would be compared with itself", figure)
		}
	}
}

var oneMatcher = pattern.New(labelMatch)

// matchersOf writes label matchers so that order and blanks do not matter.
func matchersOf(text string) string {
	list := oneMatcher.Regexp().FindAllString(text, -1)
	for i, m := range list {
		label, value, _ := strings.Cut(m, `"`)
		list[i] = strings.Join(strings.Fields(label), "") + `"` + strings.TrimSpace(value)
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ",")
}

// weights is a document that holds the canary's and stable's weight, or what
// stands for one.
type weights struct {
	path           string // of the mapping
	what           string // for people
	canary, stable string // selectors, names
	unit           Unit
	unitKey        string // which key says the unit, "" for none
}

// weightsOf lists where a target holds the weights.
func (t *Target) weightsOf() []weights {
	path := "target." + t.Kind
	switch t.Kind {
	case "file":
		return []weights{{path, t.Kind, t.File.Canary, t.File.Stable, t.File.Unit, "unit"}}
	case "config_api":
		return []weights{{path, t.Kind, t.ConfigAPI.Canary, t.ConfigAPI.Stable, t.ConfigAPI.Unit, "unit"}}
	case "etcd":
		return []weights{{path, t.Kind, t.Etcd.Canary, t.Etcd.Stable, t.Etcd.Unit, "unit"}}
	case "haproxy":
		return []weights{{path, t.Kind, t.HAProxy.Canary, t.HAProxy.Stable, Unit{Whole: t.HAProxy.Total}, "total"}}
	case "unleash":
		// Its API takes decimals, but its clients count in 100 slots and leave
		// off the rest; see internal/target.
		return []weights{{path, t.Kind, "", "", Unit{Whole: 100}, ""}}
	case "exec":
		return []weights{{path, t.Kind, "", "", t.Exec.Unit, "unit"}}
	}
	var out []weights
	for i, f := range t.Git.Files {
		out = append(out, weights{fmt.Sprintf("%s.files[%d]", path, i), "git, in " + Short(f.Path), f.Canary, f.Stable, f.Unit, "unit"})
	}
	return out
}

func (d *document) checkTarget(c *Config) {
	if c.Target == nil {
		return
	}
	for _, w := range c.Target.weightsOf() {
		d.checkSelectors(w)
		if w.canary != "" && w.canary == w.stable {
			d.errorAt(d.node(w.path+".canary"), ruleSameArm, "where is the other one's weight?",
				"the weights of canary and stable are both at %q", Short(w.canary))
		}
		d.checkUnit(c, w)
	}
	if api := c.Target.ConfigAPI; api != nil && api.Body != "" {
		d.checkBody(api.Body)
	}
}

// checkSelectors finds texts below a mapping that name no place of a document.
func (d *document) checkSelectors(w weights) {
	for _, name := range []string{"canary", "stable", "state_at", "document"} {
		text := d.own(w.path, name).text
		if text == "" || text == nowhere || w.unitKey == "total" {
			continue
		}
		_, err := splice.ParseSelector(text)
		hint := "such as versions.canary.weight or spec.rules[0].backendRefs[name=canary].weight"
		if name == "document" {
			_, err = splice.ParseDocument(text)
			hint = "such as kind=HTTPRoute,metadata.name=llm"
		}
		if e, ok := errors.AsType[*splice.Error](err); ok {
			d.errorAt(d.node(w.path+"."+name), ruleBadSelector, hint, "%s: %q is not a selector: %s", name, Short(text), e.Detail)
		}
	}
}

// checkUnit finds shares that a target cannot hold: they would be rounded, and
// what is read back would not be what was written.
func (d *document) checkUnit(c *Config, w weights) {
	if w.unit.Whole <= 0 || d.broken[w.path+".total"] {
		return
	}
	parts := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(w.unit.Places)), nil)
	parts.Mul(parts, big.NewInt(w.unit.Whole)) // of all traffic
	d.checkSlots(c, w, parts)
	told := map[string]bool{}
	for i := range c.Steps {
		pct := c.Steps[i].Pct
		if pct.IsZero() || new(big.Rat).Mul(pct.Rat(), new(big.Rat).SetInt(parts)).IsInt() || told[pct.String()] {
			continue
		}
		told[pct.String()] = true
		finest := decimal(new(big.Rat).SetFrac(big.NewInt(1), parts))
		d.errorAt(d.pctNode(i), ruleOffUnit, unitHint(pct, c.HashRingSlots, parts, w.unitKey),
			"pct %s of step %d cannot be held exactly by the target %s: its finest step is %s", pct, i+1, w.what, finest)
	}
}

// unitHint names the nearest shares that ring and target both hold.
func unitHint(pct release.Ratio, ring int64, parts *big.Int, key string) string {
	grid := new(big.Int).GCD(nil, nil, parts, big.NewInt(max(ring, 1)))
	at := new(big.Rat).Mul(pct.Rat(), new(big.Rat).SetInt(grid))
	below := new(big.Int).Quo(at.Num(), at.Denom())
	share := func(n *big.Int) string { return decimal(new(big.Rat).SetFrac(n, grid)) }
	hint := "the nearest share that it holds is " + share(big.NewInt(1))
	if below.Sign() > 0 {
		hint = fmt.Sprintf("the nearest shares that it holds are %s and %s", share(below), share(new(big.Int).Add(below, big.NewInt(1))))
	}
	switch key {
	case "unit":
		hint += "; or give it a finer unit"
	case "total":
		hint += "; or choose another total, at most 256"
	}
	return hint
}

var (
	filledIn   = pattern.New(`\{([A-Za-z_]+)\}`)
	bodyFields = []string{"canary", "stable", "release", "attempt", "step", "key"}
)

// checkBody finds what would be sent as it stands.
func (d *document) checkBody(body string) {
	for _, m := range filledIn.Regexp().FindAllStringSubmatch(body, -1) {
		if slices.Contains(bodyFields, m[1]) {
			continue
		}
		hint := "filled in are {" + strings.Join(bodyFields, "} {") + "}"
		if near := diag.Nearest(m[1], bodyFields); near != "" {
			hint = fmt.Sprintf("did you mean {%s}?", near)
		}
		d.errorAt(d.node("target.config_api.body"), ruleUnknownWord, hint, "body: nothing is filled in for the placeholder {%s}", Short(m[1]))
	}
}

// checkState finds what a target is asked for that it cannot do.
func (d *document) checkState(c *Config) {
	kind, template := "no target", false
	if c.Target != nil {
		kind = "the target " + c.Target.Kind
		template = c.Target.ConfigAPI != nil && c.Target.ConfigAPI.Mode == "template"
	}
	if d.broken["target"] || d.has("target") && c.Target == nil {
		return // refused already
	}
	git, api, file := kind == "the target git", kind == "the target config_api", kind == "the target file"
	if template {
		kind = "a template of the target config_api"
	}
	proposes := c.Target != nil && c.Target.Git != nil && c.Target.Git.Mode == "branch"
	if proposes {
		kind = "mode branch of the target git, whose commits count only once they are merged,"
	}
	if c.State.InTarget && (!git && !api || template || proposes) {
		d.errorAt(d.node("state.in_target"), ruleTargetLacks, "state.dir keeps the state; in_target is for git and config_api, which write it together with the weight",
			"in_target: %s keeps no state beside the weight", kind)
	}
	if c.OnComplete != SwapVersions {
		return
	}
	node := d.node("on_complete")
	switch {
	case !file && !api || template:
		d.errorAt(node, ruleTargetLacks, "swap is for file and config_api, whose document holds the versions; with another target change the versions where they stand",
			"on_complete: %s holds no versions document that could be swapped", kind)
	case c.Target.weightsOf()[0].stable == nowhere:
		d.errorAt(node, ruleTargetLacks, "say where stable's weight stands", "on_complete: the document has no stable version that the canary could become")
	}
}

// checkHeaders finds an Authorization header beside the token that would
// write another one.
func (d *document) checkHeaders() {
	for _, path := range d.paths() {
		at, ok := strings.CutSuffix(path, ".headers")
		if !ok || d.own(at, "token_env").text == "" {
			continue
		}
		if k := headerKey(d.values[path].node, "Authorization"); k != nil {
			d.errorAt(k, ruleOneOf, "keep one of them", "the header Authorization is written here and by token_env")
		}
	}
}

// headerKey returns the key of a header in a mapping, or nil.
func headerKey(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if strings.EqualFold(n.Content[i].Value, name) {
			return n.Content[i]
		}
	}
	return nil
}

// paths returns the paths of all values, sorted.
func (d *document) paths() []string {
	out := make([]string, 0, len(d.values))
	for path := range d.values {
		out = append(out, path)
	}
	slices.Sort(out)
	return out
}
