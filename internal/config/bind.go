package config

import (
	"fmt"
	"math/big"
	"strings"
	"sync"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/pattern"
	"github.com/canaryctl/canaryctl/internal/release"
)

// bind fills a Config from the values that were found and the defaults of the
// rest.
func (d *document) bind() *Config {
	c := &Config{
		Name: d.name, doc: d, Scene: d.get(scenePath).text,
		TargetService:    d.get("canary.target_service").text,
		TrafficDimension: d.get("canary.traffic_dimension").text,
		HashRingSlots:    d.get("canary.hash_ring_slots").count,
		Exclude:          Exclude{Segments: d.texts("canary.exclude.segments"), UserIDs: d.texts("canary.exclude.user_ids")},
		Include:          d.texts("canary.include.user_ids"),
		RequestsPerMin:   d.get("canary.requests_per_min").number,
		Fast:             d.fastLayer(""),
		Slow:             d.slowLayer(""),
		ApprovalTimeout:  d.get("canary.approval_timeout_min").span,
		CostBaselineUSD:  d.get("canary.cost_baseline_usd").number,
		Signals:          d.signals(),
		Share: Share{
			Off: d.get("canary.share.check").text == "off", DesignEffect: d.get("canary.share.design_effect").number,
			Tolerance: d.get("canary.share.tolerance").number,
		},
		Freezes: d.freezes(),
	}
	d.bindOutside(c)
	c.Recovery = d.recovery()
	c.Versions = Versions{
		Stable: d.version("versions.stable"), Canary: d.version("versions.canary"),
		AllowMultipleChanges: d.get("versions.allow_multiple_changes").text,
	}
	if d.has("canary.max_pct") {
		c.MaxPct = &MaxPct{Pct: d.get("canary.max_pct.pct").number, Because: d.get("canary.max_pct.because").text}
	}
	if d.broken["canary.hash_ring_slots"] {
		c.HashRingSlots = 0 // no ring to hold shares against
	}
	c.Adaptive = d.bindAdaptive(c.HashRingSlots)
	for i := range d.items("canary.steps") {
		c.Steps = append(c.Steps, d.step(fmt.Sprintf("canary.steps[%d]", i), c.HashRingSlots))
	}
	d.bindStreaming(c)
	return c
}

func (d *document) has(path string) bool { return d.values[path] != nil }

// items returns the nodes of a list, nil when it is not there.
func (d *document) items(path string) []*yaml.Node {
	if v := d.values[path]; v != nil && v.node.Kind == yaml.SequenceNode {
		return v.node.Content
	}
	return nil
}

var index = pattern.New(`\[[0-9]+\]`)

// rowOf returns the row of the table for a concrete path.
func rowOf(path string) *spec {
	if strings.Contains(path, "[") {
		path = index.ReplaceAllString(path, "[]")
	}
	if s := specOf(path); s != nil {
		return s
	}
	for _, names := range nameRows {
		if rest, ok := strings.CutPrefix(path, names+"."); ok {
			_, key, below := strings.Cut(rest, ".")
			if !below {
				return specOf(names + ".*")
			}
			return specOf(names + ".*." + key)
		}
	}
	return nil
}

// nameRows are the paths of the mappings of names.
var nameRows = []string{"canary.signals", promPath + ".queries", scenesPath}

// get returns a scalar, or its default, or nothing.
func (d *document) get(path string) typed {
	if v := d.values[path]; v != nil {
		return v.typed
	}
	s := rowOf(path)
	if s == nil {
		panic("config: no key " + path)
	}
	return s.fallback()
}

// fallbacks holds the defaults that have been read, by row: a digest asks for
// each of them, and reading one is parsing a file of one value.
var fallbacks sync.Map // of *key to typed

// fallback reads the default of a row as if it had been written.
func (k *key) fallback() typed {
	if k.def == "" {
		return typed{}
	}
	if t, ok := fallbacks.Load(k); ok {
		return t.(typed)
	}
	t := k.readDefault()
	fallbacks.Store(k, t)
	return t
}

func (k *key) readDefault() typed {
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(k.def), &n); err != nil {
		panic("config: default of " + k.path)
	}
	t, m := k.scalar(n.Content[0])
	if m != nil {
		panic("config: default of " + k.path + ": " + m.message)
	}
	return t
}

// texts returns a list of strings, never nil.
func (d *document) texts(path string) []string {
	out := []string{}
	for i := range d.items(path) {
		if v := d.values[fmt.Sprintf("%s[%d]", path, i)]; v != nil {
			out = append(out, v.text)
		}
	}
	return out
}

// limit returns a limit: a step's own where it has one, else the plan's.
func (d *document) limit(step, path string) typed {
	if step != "" {
		if v := d.values[step+".limits."+limitName(path)]; v != nil {
			return v.typed
		}
	}
	return d.get(path)
}

// hasLimit reports whether a limit is written for a step, in its own limits or
// in the plan's.
func (d *document) hasLimit(step, path string) bool {
	return d.has(path) || step != "" && d.has(step+".limits."+limitName(path))
}

func (d *document) fastLayer(step string) FastLayer {
	at := func(name string) typed { return d.limit(step, fast+name) }
	return FastLayer{
		ViolationLimit:           at("violation_limit").count,
		BaselineViolationRate:    at("baseline_violation_rate").number,
		ViolationRatioMultiplier: at("violation_ratio_multiplier").number,
		ViolationWindow:          at("violation_window_min").span,
		CostRatioLimit:           at("cost_ratio_limit").number,
		CostMinSamples:           at("cost_min_samples").count,
		P99BaselineMS:            at("p99_baseline_ms").number,
		P99RatioLimit:            at("p99_ratio_limit").number,
		P99MinSamples:            at("p99_min_samples").count,
		BaselineTransferRate:     at("baseline_transfer_rate").number,
		TransferRateRatioLimit:   at("transfer_rate_ratio_limit").number,
		MinTransferCount:         at("min_transfer_count").count,
		P99ByCount:               at("p99_judge").text == "count",
		P99SlowRate:              at("p99_slow_rate").number,
		P99SlowRatioLimit:        at("p99_slow_ratio_limit").number,
		MinSlowCount:             at("min_slow_count").count,
	}
}

func (d *document) slowLayer(step string) SlowLayer {
	at := func(name string) typed { return d.limit(step, slow+name) }
	s := SlowLayer{
		SolveBaseline:   at("solve_baseline").number,
		SolveRateDropPP: at("solve_rate_drop_pp").number,
		MinSamplesSlow:  at("min_samples_slow").count,
		SlowWindow:      at("slow_window_min").span,
		SlowWindowMax:   at("slow_window_max_min").span,
		LabelLag:        at("label_lag_min").span,
		AgainstStable:   at("against").text == "stable",
	}
	if !d.hasLimit(step, slow+"slow_window_max_min") {
		s.SlowWindowMax = s.SlowWindow
	}
	if at("judge").text == "cusum" {
		s.Judge = breaker.CusumJudge
	}
	if d.hasLimit(step, slow+"noise") {
		s.Noise = Noise{Z: at("noise.z").number, Tau: at("noise.tau").number, SE: at("noise.se").number, TauControl: at("noise.tau_control").number}
		if at("noise.tail").text == "exact" {
			s.Noise.Tail = breaker.ExactTail
		}
	}
	if d.hasLimit(step, slow+"cusum") {
		s.Cusum = Cusum{DropPP: at("cusum.drop_pp").number, Limit: at("cusum.limit").number}
	}
	return s
}

func (d *document) recovery() Recovery {
	return Recovery{
		Cooldown:            d.get(recovery + "cooldown_min").span,
		HalfOpenTrials:      d.get(recovery + "half_open_trials").count,
		HalfOpenSuccessRate: d.get(recovery + "half_open_success_rate").number,
		LockOnEscalate:      d.get(recovery + "lock_on_escalate").flag,
		HalfOpenMinRequests: d.get(recovery + "half_open_min_requests").count,
		MaxAttempts:         d.get(recovery + "max_attempts").count,
	}
}

var gateOf = map[string]ladder.Gates{"time": ladder.TimeGate, "metric": ladder.MetricGate, "approval": ladder.ApprovalGate}

func (d *document) step(path string, ring int64) Step {
	s := Step{
		Pct:     d.get(path + ".pct").number,
		MinHold: d.get(path + ".min_hold_min").span,
		MaxWait: d.get(path + ".max_wait_min").span,
		Gates:   ladder.TimeGate | ladder.MetricGate,
		Fast:    d.fastLayer(path),
		Slow:    d.slowLayer(path),
	}
	if d.has(path + ".gate") {
		s.Gates = 0
		for _, word := range d.texts(path + ".gate") {
			s.Gates |= gateOf[word]
		}
	}
	if !s.Pct.IsZero() && ring > 0 {
		w, err := release.WeightOf(s.Pct, ring)
		if err != nil {
			v := d.values[path+".pct"]
			d.errorAt(v.node, ruleOffRing, ringHint(s.Pct, ring), "pct %s is not a whole number of %d slots", v.node.Value, ring)
		}
		s.Weight = w
	}
	return s
}

// ringHint names the nearest shares that are whole slots.
func ringHint(pct release.Ratio, ring int64) string {
	below := pct.FloorOf(ring)
	share := func(slots int64) string { return decimal(big.NewRat(slots, ring)) }
	if below == 0 {
		return fmt.Sprintf("the nearest share is %s; or raise hash_ring_slots", share(1))
	}
	return fmt.Sprintf("the nearest shares are %s and %s; or raise hash_ring_slots", share(below), share(below+1))
}

func (d *document) signals() [release.Judged]breaker.Rule {
	var rules [release.Judged]breaker.Rule
	for i := range rules {
		path := "canary.signals." + release.Signal(i).String()
		if d.has(path + ".mode") {
			rules[i].Mode = map[string]release.Mode{
				"off": release.Off, "observe": release.Observe, "enforce": release.Required,
			}[d.get(path+".mode").text]
		}
		rules[i].OnFail = d.onFail(release.Signal(i))
	}
	return rules
}

func (d *document) freezes() []ladder.Freeze {
	var out []ladder.Freeze
	for i := range d.items("canary.freeze") {
		path := fmt.Sprintf("canary.freeze[%d]", i)
		f := ladder.Freeze{Zone: d.get(path + ".zone").zone, From: d.get(path + ".from").span, To: d.get(path + ".to").span}
		days := dayWords
		if d.has(path + ".days") {
			days = d.texts(path + ".days")
		}
		for _, day := range days {
			f.Days[weekday(day)] = true
		}
		out = append(out, f)
	}
	return out
}

func weekday(word string) time.Weekday {
	for i, w := range dayWords {
		if w == word {
			return time.Weekday((i + 1) % 7)
		}
	}
	panic("config: day " + word)
}

func (d *document) version(path string) *Version {
	if !d.has(path) {
		return nil
	}
	v := &Version{
		BaseURL:       d.get(path + ".base_url").text,
		ModelID:       d.get(path + ".model_id").text,
		PromptVersion: d.get(path + ".prompt_version").text,
		ToolsVersion:  d.get(path + ".tools_version").text,
		Gateway:       d.get(path + ".gateway").text,
		Temperature:   d.get(path + ".temperature").number,
		APIKeyEnv:     d.get(path + ".api_key_env").text,
		APIKey:        Secret(d.get(path + ".api_key").text),
		Weight:        d.get(path + ".weight").number,
		Params:        d.mapping(path + ".params"),
	}
	return v
}

// mapping returns a free mapping, or nil.
func (d *document) mapping(path string) map[string]any {
	if v := d.values[path]; v != nil {
		m, _ := v.decoded.(map[string]any)
		return m
	}
	return nil
}

// onlyKey returns the key of a mapping that holds exactly one of several.
func (d *document) onlyKey(path string) string {
	v := d.values[path]
	if v == nil {
		return ""
	}
	for _, name := range v.spec.order {
		if d.has(path + "." + name) {
			return name
		}
	}
	return ""
}
