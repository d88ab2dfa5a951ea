package scenario

import (
	"errors"
	"path"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

// maxMinutes bounds a feed: ten years.
const maxMinutes = 10 * 366 * 24 * 60

// maxAmount bounds requests a minute, milliseconds and dollars.
const maxAmount = 1e9

var (
	feedKeys = []string{"canary_per_min", "stable_per_min", "total_per_min", "mode", "seed", "minutes", "base", "faults", "files"}
	baseKeys = []string{
		"solve_rate", "solved", "judged_share", "judged", "violation_rate", "violations", "transfer_rate", "transfers",
		"p99_ms", "latency_sigma", "cost_usd", "cost_ratio", "cost_sigma",
		"streams_share", "ttft_p99_ms", "ttft_slow_rate", "ttft_slow", "itl_ms", "abort_rate", "aborts",
		"server_error_rate", "server_errors", "refusal_rate", "refusals", "kv_cache",
	}
)

// Spreads of the logarithms of latency and cost in drawn feeds that do not say.
const (
	defaultLatencySigma = 0.5
	defaultCostSigma    = 0.8
)

// feed reads the feed section and returns the nodes of its faults, one for
// each of sc.spec.Faults.
func (r *reader) feed(sc *Scenario, top *section) []*yaml.Node {
	s := r.section(top.vals["feed"], top.keys["feed"], "feed", feedKeys...)
	if s.has("files") {
		r.files(sc, s, top)
		return nil
	}
	sc.spec = simulate.Spec{Start: sc.Start}
	traffic := s.one("canary_per_min gives the canary's traffic whatever the weight, total_per_min the service's, of which the canary gets the weight's share",
		"canary_per_min", "total_per_min")
	if traffic != "" {
		sc.Closed = traffic == "total_per_min"
		sc.spec.PerMin, _ = s.number(traffic, 0, maxAmount)
		sc.spec.Closed = sc.Closed
	}
	if sc.Closed && s.has("stable_per_min") {
		s.refuse("stable_per_min", "one-of", "remove it", "stable_per_min: with total_per_min stable gets what the canary does not")
	}
	sc.spec.StablePerMin, _ = s.number("stable_per_min", 0, maxAmount)
	if mode, _ := s.word("mode", "exact", "drawn"); mode == "drawn" {
		sc.Drawn, sc.spec.Drawn = true, true
	}
	seed, given := s.count("seed", 0, 1<<53)
	if given && !sc.Drawn {
		s.refuse("seed", "one-of", "mode: drawn, or no seed", "seed: a feed in mode exact draws nothing")
	}
	sc.Seed = 1
	if given {
		sc.Seed = uint64(seed)
	}
	if s.need("minutes", "the length of the feed") {
		minutes, _ := s.count("minutes", 1, maxMinutes)
		sc.Minutes, sc.spec.Minutes = int(minutes), int(minutes)
	}
	if s.need("base", "what both arms do where no fault changes it") {
		r.base(sc, s)
	}
	return r.faults(sc, s)
}

// files reads the names of recorded files.
func (r *reader) files(sc *Scenario, s, top *section) {
	for _, k := range feedKeys {
		if k != "files" && s.has(k) {
			s.refuse(k, "one-of", "a feed is made of files or made up", "%s: recorded files are taken as they are", k)
		}
	}
	if top.has("start") {
		top.refuse("start", "one-of", "remove it", "start: recorded files have their own times")
	}
	items := s.items("files")
	if len(items) == 0 && !s.bad {
		s.refuse("files", "out-of-range", "", "files is empty")
	}
	for _, n := range items {
		if !r.plain(n) {
			continue
		}
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || n.Value == "" {
			r.at(n, "wrong-type", "", "files: want a path, not %s", said(n))
			continue
		}
		sc.Files = append(sc.Files, path.Clean(n.Value))
	}
}

// base reads what both arms do.
func (r *reader) base(sc *Scenario, feed *section) {
	s := r.section(feed.vals["base"], feed.keys["base"], "base", baseKeys...)
	b := &sc.spec.Base
	b.Solved = s.level("solve_rate", "solved")
	b.Judged = s.level("judged_share", "judged")
	b.Violations = s.level("violation_rate", "violations")
	b.Transfers = s.level("transfer_rate", "transfers")
	b.P99MS, b.CostUSD, b.CostRatio = s.some("p99_ms"), s.some("cost_usd"), s.some("cost_ratio")
	b.LatencySigma, b.CostSigma = defaultLatencySigma, defaultCostSigma
	if sigma, ok := s.number("latency_sigma", 0, 5); ok {
		b.LatencySigma = sigma
	}
	if sigma, ok := s.number("cost_sigma", 0, 5); ok {
		b.CostSigma = sigma
	}
	for _, dependent := range []struct{ key, on string }{
		{"judged", "solve_rate"}, {"judged_share", "solve_rate"}, {"latency_sigma", "p99_ms"},
	} {
		known := s.has(dependent.on) || dependent.on == "solve_rate" && s.has("solved")
		if s.has(dependent.key) && !known {
			s.refuse(dependent.key, "missing-key", "", "%s says nothing without %s", dependent.key, dependent.on)
		}
	}
	if s.has("cost_sigma") && !s.has("cost_usd") && !s.has("cost_ratio") {
		s.refuse("cost_sigma", "missing-key", "", "cost_sigma says nothing without cost_usd or cost_ratio")
	}
	s.streaming(&b.Streaming)
}

// some reads a figure that is missing where it is left out, and so cannot be
// written as nothing.
func (s *section) some(key string) float64 {
	x, ok := s.number(key, 0, maxAmount)
	if ok && x == 0 {
		s.refuse(key, "out-of-range", "leave it out, and its check is not judged", "%s: 0 is no figure", key)
	}
	return x
}

// level reads a figure that is given as a share of requests or as a count a
// minute; neither leaves it missing.
func (s *section) level(rate, count string) simulate.Level {
	if s.has(rate) && s.has(count) {
		s.refuse(count, "one-of", "keep one of them", "%s stands beside %s", count, rate)
		return simulate.Level{}
	}
	if x, ok := s.number(rate, 0, 1); ok {
		return simulate.Rate(x)
	}
	if n, ok := s.number(count, 0, maxAmount); ok {
		return simulate.CountPerMin(n)
	}
	return simulate.Level{}
}

// tryFeed builds the feed once and says what is wrong with it where that was
// declared.
func (r *reader) tryFeed(sc *Scenario, top *section, faultNodes []*yaml.Node) {
	_, err := simulate.NewSynthetic(sc.spec)
	if err == nil {
		return
	}
	at, reason := top.keys["feed"], err.Error()
	if bad, ok := errors.AsType[*simulate.SpecError](err); ok {
		reason = bad.Reason
		if bad.Fault >= 0 {
			at = faultNodes[bad.Fault]
		}
	}
	r.at(at, "bad-feed", "", "%s", reason)
}

// armOf returns the arm that a fault acts on.
func armOf(s *section, def release.Arm) release.Arm {
	word, ok := s.word("arm", "canary", "stable", "both")
	switch {
	case !ok:
		return def
	case word == "both":
		return release.All
	}
	return release.Arm(word)
}
