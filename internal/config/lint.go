package config

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/diag"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Lint returns warnings about a configuration that can be used, sorted: what
// will trip a healthy service, what can never be judged, what was never set.
func (c *Config) Lint() diag.List {
	if len(c.Scenes) > 0 {
		return c.lintScenes()
	}
	d := *c.doc // the findings are this call's own
	d.list = nil
	d.lintCooldown(c)
	d.lintSpans(c)
	d.lintUnset(c)
	d.lintReach(c)
	d.lintNoise(c)
	d.lintTraffic(c)
	d.lintStreaming(c)
	d.lintAdaptive(c)
	d.lintVersions(c)
	d.lintOutside()
	d.lintSecrets()
	d.list.Sort()
	return d.list
}

// lintCooldown warns of a probe that still sees the violations that tripped.
// Probes run under the first step's limits.
func (d *document) lintCooldown(c *Config) {
	span := c.Steps[0].Fast.ViolationWindow
	if c.Recovery.Cooldown >= span {
		return
	}
	d.warnAt(d.node(recovery+"cooldown_min"), ruleShortCooldown,
		fmt.Sprintf("make it at least %s minutes", minutesText(span)),
		"cooldown_min %s is shorter than violation_window_min %s: the first probe would be struck down by violations from before the trip",
		minutesText(c.Recovery.Cooldown), minutesText(span))
}

// minutesText prints a span as the file writes it.
func minutesText(span time.Duration) string { return decimal(minutesRat(span)) }

func minutesRat(span time.Duration) *big.Rat { return big.NewRat(int64(span), int64(time.Minute)) }

// windowLength is the length of the windows that live evidence comes in.
func (c *Config) windowLength() time.Duration {
	if c.Source != nil {
		return c.Source.Span
	}
	return time.Minute
}

// lintSpans warns of spans that hold less than one window.
func (d *document) lintSpans(c *Config) {
	for i := -1; i < len(c.Steps); i++ {
		step, f, s := "", &c.Fast, &c.Slow
		if i >= 0 {
			step, f, s = stepPath(i), &c.Steps[i].Fast, &c.Steps[i].Slow
		}
		d.lintSpan(c, step, fast+"violation_window_min", f.ViolationWindow)
		d.lintSpan(c, step, slow+"slow_window_min", s.SlowWindow)
	}
}

func (d *document) lintSpan(c *Config, step, path string, span time.Duration) {
	window := c.windowLength()
	_, name := splitPath(path)
	if span >= window || step != "" && !d.has(step+".limits."+name) {
		return
	}
	d.warnAt(d.limitNode(step, path), ruleShortSpan, fmt.Sprintf("make it at least %s, better several windows", minutesText(window)),
		"%s %s is shorter than a window of %s: only ever the newest window counts", name, minutesText(span), release.Minutes(window))
}

func stepPath(i int) string { return fmt.Sprintf("canary.steps[%d]", i) }

// baselineKeys are the defaults that describe some service, hardly this one.
var baselineKeys = []string{
	fast + "baseline_violation_rate", fast + "p99_baseline_ms", fast + "baseline_transfer_rate", slow + "solve_baseline",
}

// lintUnset warns of what only the service's own data can say.
func (d *document) lintUnset(c *Config) {
	if !d.has(slow + "min_samples_slow") {
		d.warnAt(d.node(slow+"min_samples_slow"), ruleMinSamplesUnset, "set it; `canaryctl calibrate` derives it from the baseline",
			"min_samples_slow is not set: the solve rate is judged from the default of %d on", c.Slow.MinSamplesSlow)
	}
	for _, path := range baselineKeys {
		row := specOf(path)
		if v := d.values[path]; v != nil && v.number.Rat().Cmp(row.fallback().number.Rat()) != 0 {
			continue
		}
		d.warnAt(d.node(path), ruleDefaultBaseline, "measure it: `canaryctl calibrate --write` puts the baseline's value here",
			"%s is the shipped default %s, not a figure of this service", row.name, row.def)
	}
	if c.RequestsPerMin.IsZero() {
		d.warnAt(d.node("canary.requests_per_min"), ruleNoTraffic, "set requests_per_min to the service's whole traffic, or let `canaryctl calibrate --write` do it",
			"requests_per_min is not set: whether a step can be judged, and what trips a healthy service, cannot be checked")
	}
}

// lintReach warns of limits that no rate can reach.
func (d *document) lintReach(c *Config) {
	for i := -1; i < len(c.Steps); i++ {
		step, f := "", &c.Fast
		if i >= 0 {
			step, f = stepPath(i), &c.Steps[i].Fast
		}
		if f.P99ByCount {
			d.lintProduct(step, "slow requests", "p99_slow_ratio_limit", "p99_slow_rate", f.P99SlowRatioLimit, f.P99SlowRate)
		}
		d.lintProduct(step, "violations", "violation_ratio_multiplier", "baseline_violation_rate", f.ViolationRatioMultiplier, f.BaselineViolationRate)
		d.lintProduct(step, "transfers", "transfer_rate_ratio_limit", "baseline_transfer_rate", f.TransferRateRatioLimit, f.BaselineTransferRate)
	}
}

// lintProduct looks at a baseline times its ratio; a step's only if the step
// has one of them for its own.
func (d *document) lintProduct(step, what, ratioKey, rateKey string, ratio, rate release.Ratio) {
	if step != "" && !d.has(step+".limits."+ratioKey) && !d.has(step+".limits."+rateKey) {
		return
	}
	limit := new(big.Rat).Mul(rate.Rat(), ratio.Rat())
	if limit.Cmp(big.NewRat(1, 1)) <= 0 {
		return
	}
	d.warnAt(d.limitNode(step, fast+ratioKey, fast+rateKey), ruleUnreachableLimit,
		"the product of baseline and ratio is a share of requests: keep it below 1",
		"%s trip at a share of %s x %s = %s of the requests, which is more than all", what, rate, ratio, decimal(limit))
}

// lintSecrets warns of secrets in the file, once a place.
func (d *document) lintSecrets() {
	for i, line := range d.lines {
		end := 0
		for _, s := range d.secret.spans[i] {
			if s.from < end {
				continue
			}
			end = s.to
			d.add(diag.Finding{
				Line: i + 1, Col: runes(line[:s.from]) + 1, EndCol: runes(line[:s.to]) + 1, Severity: diag.Warning, Rule: ruleInlineKey,
				Message: "a secret stands in the file, and so in its history",
				Hint:    "take it from the environment (api_key_env, url_env, token_env) and replace the secret, which others may have read",
			})
		}
	}
}

func runes(s string) int { return len([]rune(s)) }

// lintVersions compares the two versions.
func (d *document) lintVersions(c *Config) {
	stable, canary := c.Versions.Stable, c.Versions.Canary
	if stable == nil || canary == nil {
		return
	}
	changed := changes(stable, canary)
	at := d.values["versions.canary"].key
	switch {
	case len(changed) == 0:
		d.warnAt(at, ruleSameVersion, "change what is to be released: model_id, prompt_version, base_url, ...",
			"canary is equal to stable: nothing is being released")
	case len(changed) > 1 && c.Versions.AllowMultipleChanges == "":
		d.warnAt(at, ruleMultipleChanges, `release one after the other, or say why not: versions.allow_multiple_changes: "..."`,
			"canary differs from stable in %s: a rollback would not tell which of them was bad", and(changed))
	}
	if stable.Weight.IsZero() || canary.Weight.IsZero() {
		return
	}
	if sum := new(big.Rat).Add(stable.Weight.Rat(), canary.Weight.Rat()); sum.Cmp(big.NewRat(1, 1)) != 0 {
		d.warnAt(d.values["versions.canary.weight"].node, ruleWeightSum, "the two weights are shares of the same traffic",
			"the weights of stable and canary add up to %s, not to 1", decimal(sum))
	}
}

// changes names the parts of a version that differ: a model, a prompt, the
// tools, the gateway in front, the parameters of sampling.
func changes(a, b *Version) []string {
	var out []string
	add := func(what string, differ bool) {
		if differ {
			out = append(out, what)
		}
	}
	add("model", a.ModelID != b.ModelID)
	add("prompt", a.PromptVersion != b.PromptVersion)
	add("tools", a.ToolsVersion != b.ToolsVersion)
	add("gateway", a.BaseURL != b.BaseURL || a.Gateway != b.Gateway)
	add("parameters", a.Temperature != b.Temperature || canonical(a.Params) != canonical(b.Params))
	return out
}

// and joins words for a sentence.
func and(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// share returns the canary's requests a minute at a step, exactly.
func (c *Config) share(w release.Weight) *big.Rat {
	return new(big.Rat).Mul(c.RequestsPerMin.Rat(), big.NewRat(w.Slots, w.Ring))
}
