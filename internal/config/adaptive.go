package config

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

const adaptive = "canary.adaptive."

func adaptiveKeys() []key {
	return []key{
		{path: "canary.adaptive", kind: kindMap, anywhere: true, doc: "How the weight follows the error rate within a step. Left out: it stays at the step's share, and only a signal that throttles lowers it. Try it with `simulate` first."},
		{path: adaptive + "error_limit", kind: kindDecimal, required: true, min: ">0", max: "<1", doc: "Share of requests with a known status that are errors; above it the weight falls, else it rises."},
		{path: adaptive + "window_min", kind: kindMinutes, def: "5", min: ">0", max: "1440", doc: "The span of time over which errors are counted."},
		{path: adaptive + "interval_min", kind: kindMinutes, def: "5", min: ">0", max: "1440", doc: "The time between two falls, and from any change to a rise."},
		{path: adaptive + "min_requests", kind: kindCount, def: "20", min: "1", max: "1e12", doc: "With fewer requests of known status in window_min the weight does not fall, and rises to the step's share at most."},
		{path: adaptive + "down", kind: kindDecimal, def: "0.8", min: ">0", max: "<1", doc: "What the weight is multiplied by when it falls."},
		{path: adaptive + "up", kind: kindDecimal, def: "1.05", min: ">1", max: "10", doc: "What the weight is multiplied by when it rises."},
		{path: adaptive + "min_pct", kind: kindDecimal, min: ">0", max: "1", doc: "The weight does not fall below it, nor below the step's share where that is smaller. Left out: half of the step's share."},
		{path: adaptive + "max_pct", kind: kindDecimal, min: ">0", max: "1", doc: "The weight does not rise above it, nor above the step's share where that is larger, and always stays below the next step's. Left out: up to the next step's share, and at the last step its own."},
	}
}

// Adaptive is canary.adaptive as written; nil where it is left out.
type Adaptive struct {
	ErrorLimit       release.Ratio
	Window, Interval time.Duration
	MinRequests      int64
	Down, Up         release.Ratio
	MinPct, MaxPct   release.Ratio // IsZero when left out
	min, max         release.Weight
}

// bindAdaptive reads canary.adaptive. Its bounds must be whole slots.
func (d *document) bindAdaptive(ring int64) *Adaptive {
	if !d.has("canary.adaptive") {
		return nil
	}
	at := func(name string) typed { return d.get(adaptive + name) }
	a := &Adaptive{
		ErrorLimit: at("error_limit").number, Window: at("window_min").span, Interval: at("interval_min").span,
		MinRequests: at("min_requests").count, Down: at("down").number, Up: at("up").number,
		MinPct: at("min_pct").number, MaxPct: at("max_pct").number,
	}
	a.min, a.max = d.onRing(adaptive+"min_pct", a.MinPct, ring), d.onRing(adaptive+"max_pct", a.MaxPct, ring)
	if a.max.Ring > 0 && a.min.Above(a.max) {
		d.errorAt(d.values[adaptive+"min_pct"].node, ruleStepOrder, "lower it, or raise max_pct", "min_pct %s is above max_pct %s", a.MinPct, a.MaxPct)
	}
	return a
}

// onRing returns a share that was written as whole slots, or finds that it is
// none. The zero Weight stands for one that was left out.
func (d *document) onRing(path string, share release.Ratio, ring int64) release.Weight {
	if share.IsZero() || ring == 0 {
		return release.Weight{}
	}
	w, err := release.WeightOf(share, ring)
	if err != nil {
		v := d.values[path]
		_, name := splitPath(path)
		d.errorAt(v.node, ruleOffRing, ringHint(share, ring), "%s %s is not a whole number of %d slots", name, v.node.Value, ring)
	}
	return w
}

// checkSlots refuses to move the share by slots of the ring that the target
// cannot hold: the first change would be asked for again and again.
func (d *document) checkSlots(c *Config, w weights, parts *big.Int) {
	if c.Adaptive == nil || c.HashRingSlots <= 0 || new(big.Int).Rem(parts, big.NewInt(c.HashRingSlots)).Sign() == 0 {
		return
	}
	slot, finest := big.NewRat(1, c.HashRingSlots), new(big.Rat).SetFrac(big.NewInt(1), parts)
	hint := "a ring that divides " + parts.String() + " has slots that it holds"
	if w.unitKey != "" {
		hint += "; or give it a finer " + w.unitKey
	}
	d.errorAt(d.node(strings.TrimSuffix(adaptive, ".")), ruleOffUnit, hint,
		"adaptive moves the share by slots of %s, which cannot be held exactly by the target %s: its finest step is %s", decimal(slot), w.what, decimal(finest))
}

// lintAdaptive warns of an error_limit that the breaker's own limit of errors
// comes before: the share would never fall.
func (d *document) lintAdaptive(c *Config) {
	if rule := c.Signals[release.Errors]; c.Adaptive == nil || rule.OnFail != release.RollBack || rule.Mode == release.Observe || rule.Mode == release.Off {
		return
	}
	for i := range c.Steps {
		own := c.Steps[i].Streaming.Errors.ShareLimit
		if own.Rat().Cmp(c.Adaptive.ErrorLimit.Rat()) > 0 {
			continue
		}
		d.warnAt(d.node(adaptive+"error_limit"), ruleUnreachableLimit, "set metrics.streaming.errors.share_limit well above it, or its action to hold",
			"error_limit %s is not below the share_limit %s of errors at step %d: the breaker rolls back before the share falls", c.Adaptive.ErrorLimit, own, i+1)
		return
	}
}

// plan returns the ladder's form; without a configuration the default for
// signals that throttle.
func (a *Adaptive) plan() ladder.Adaptive {
	if a == nil {
		return ladder.DefaultAdaptive()
	}
	return ladder.Adaptive{
		On: true, Limit: a.ErrorLimit, Span: a.Window, Interval: a.Interval, Least: a.MinRequests,
		Down: a.Down, Up: a.Up, Min: a.min, Max: a.max,
	}
}

// canonical writes the rules for the digest.
func (a *Adaptive) canonical() string {
	return fmt.Sprintf("%s %v %v %d %s %s %d/%d %d/%d", fraction(a.ErrorLimit), a.Window, a.Interval, a.MinRequests,
		fraction(a.Down), fraction(a.Up), a.min.Slots, a.min.Ring, a.max.Slots, a.max.Ring)
}
