package config

import (
	"fmt"
	"strings"
	"sync"

	"github.com/canaryctl/canaryctl/internal/release"
)

// kind is the type of a key's value.
type kind uint8

const (
	kindMap     kind = iota // a mapping with the keys of the table
	kindNames               // a mapping whose keys are names, each with the same form
	kindList                // a list
	kindText                // a string as written; numbers count as text
	kindSecret              // a string that no output shows
	kindEnum                // one of a few words
	kindBool                // true or false
	kindCount               // a whole number
	kindDecimal             // a decimal number, exact
	kindMinutes             // a span of time, a decimal number of minutes
	kindPaths               // a path or a list of paths
	kindFree                // a mapping of any form
	kindClock               // a time of day, HH:MM
	kindZone                // an IANA time zone
	kindSeconds             // a span of time, a decimal number of seconds
	kindPairs               // a mapping of names to strings
	kindUnit                // a word, or a mapping with the keys of the table
)

var kindLabels = [...]string{
	"mapping", "mapping of names", "list", "string", "string", "word", "true or false", "whole number",
	"number", "minutes", "path or list of paths", "free mapping", "time of day", "time zone",
	"seconds", "mapping of strings", "word or mapping",
}

func (k kind) String() string { return kindLabels[k] }

// want names the kind in the sentence "want ..., not ...".
func (k kind) want() string {
	switch k {
	case kindBool:
		return k.String()
	case kindMinutes:
		return "a number of minutes"
	case kindSeconds:
		return "a number of seconds"
	case kindUnit:
		return "a word or a mapping"
	}
	return "a " + k.String()
}

// key is a row of the table of keys.
type key struct {
	path     string // from the root; [] is an item of a list, * a name
	kind     kind
	def      string // the default as it would be written; "" for none
	required bool
	when     *condition // where it has an effect, and is required if it is; nil: everywhere
	min, max string     // bounds, "" for none; a min that starts with >, a max that starts with < is exclusive
	words    []string
	form     *textForm // nil: any text that is not blank
	names    *textForm // of the names of a mapping of strings
	minItems int
	unique   bool
	oneOf    bool // a mapping with exactly one of its keys
	anywhere bool // a key of canary that may also stand at the top level, beside it
	blank    bool // a mapping that may be left blank: { ... }
	doc      string
}

// condition says beside what a key has an effect: another key of its mapping,
// with one of its words or with any value.
type condition struct {
	key  string
	word string // "": any
}

func (c *condition) String() string {
	if c.word == "" {
		return c.key
	}
	return c.key + ": " + c.word
}

// either reports whether exactly one of url and url_env stands in the mapping.
func (s *spec) either() bool { return s.children["url"] != nil && s.children["url_env"] != nil }

var (
	gateWords   = []string{"time", "metric", "approval"}
	p99Words    = []string{"window", "count"}
	judgeWords  = []string{"window", "cusum"}
	refWords    = []string{"baseline", "stable"}
	tailWords   = []string{"normal", "exact"}
	dayWords    = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}
	modeWords   = []string{"off", "observe", "enforce"}
	onFailWords = []string{"roll_back", "hold", "throttle"}
	shareWords  = []string{"hold", "off"}
)

// keys is the table: every key of canary.yaml, parents before children, in the
// order of the reference. It is made when a file is read, not at start-up.
var keys = sync.OnceValue(buildKeys)

func buildKeys() []key {
	limits := limitKeys()
	var all []key
	all = append(all, canaryKeys()...)
	all = append(all, stepKeys()...)
	for _, k := range limits {
		all = append(all, stepLimit(k))
	}
	for _, k := range streamingKeys() {
		if k.stepOwn() {
			all = append(all, stepLimit(k))
		}
	}
	all = append(all, routeKeys()...)
	all = append(all, metricKeys()...)
	all = append(all, limits...)
	all = append(all, streamingKeys()...)
	all = append(all, recoveryKeys()...)
	all = append(all, moreKeys()...)
	all = append(all, adaptiveKeys()...)
	all = append(all, versionKeys("stable")...)
	all = append(all, versionKeys("canary")...)
	all = append(all, outsideKeys()...)
	return append(all, sceneKeys(all)...)
}

func canaryKeys() []key {
	return []key{
		{path: "canary", kind: kindMap, required: true, doc: "The release: what is released, how it climbs, what stops it."},
		{path: "canary.target_service", kind: kindText, form: oneLine, required: true, doc: "The service whose traffic is split."},
		{path: "canary.traffic_dimension", kind: kindText, form: oneLine, def: "user_id", doc: "The field of a record that is hashed to a slot."},
		{path: "canary.hash_ring_slots", kind: kindCount, def: "100", min: "1", max: "1000000", doc: "Slots of the hash ring. A share of traffic is a whole number of them."},
		{path: "canary.steps", kind: kindList, required: true, minItems: 1, doc: "The ladder, from the smallest share to the largest."},
	}
}

func stepKeys() []key {
	return []key{
		{path: "canary.steps[]", kind: kindMap, doc: "One step."},
		{path: "canary.steps[].pct", kind: kindDecimal, required: true, min: ">0", max: "1", doc: "The canary's share of traffic, as a fraction of 1. Rises from step to step and ends at 1.00 or at max_pct."},
		{path: "canary.steps[].min_hold_min", kind: kindMinutes, min: "0", doc: "How long the step is held at least. Required where the gate has time."},
		{path: "canary.steps[].gate", kind: kindList, def: "[time, metric]", minItems: 1, unique: true, doc: "What the step must pass before the next."},
		{path: "canary.steps[].gate[]", kind: kindEnum, words: gateWords, doc: "A gate."},
		{path: "canary.steps[].max_wait_min", kind: kindMinutes, def: "0", min: "0", doc: "After so long at this step a hold becomes a notification; 0 = never."},
		{path: "canary.steps[].limits", kind: kindMap, doc: "Limits of this step, over those of metrics: any key of fast_layer and slow_layer, and most of streaming."},
	}
}

// stepLimit is the row of a limit where a step has its own.
func stepLimit(k key) key {
	name := limitName(k.path)
	k.path, k.def, k.required = "canary.steps[].limits."+name, "", false
	k.doc = "This step's `" + name + "`."
	return k
}

// limitName is what a limit is called in a step's limits, such as
// min_samples_slow, noise.tau or streaming.itl.limit_ms.
func limitName(path string) string {
	name, ok := strings.CutPrefix(path, fast)
	if !ok {
		name = strings.TrimPrefix(path, slow)
	}
	return strings.TrimPrefix(name, "canary.metrics.")
}

func routeKeys() []key {
	return []key{
		{path: "canary.exclude", kind: kindMap, doc: "Who is never on the canary."},
		{path: "canary.exclude.segments", kind: kindList, def: "[]", doc: "Segments of users."},
		{path: "canary.exclude.segments[]", kind: kindText, doc: "A segment."},
		{path: "canary.exclude.user_ids", kind: kindList, def: "[]", doc: "Users."},
		{path: "canary.exclude.user_ids[]", kind: kindText, doc: "A user id, as written: 007 is not 7."},
		{path: "canary.requests_per_min", kind: kindDecimal, min: ">0", max: "1e9", doc: "The service's whole traffic, for `lint` and for times to decide. `calibrate` fills it in."},
		{path: "canary.include", kind: kindMap, doc: "Who is always on the canary while a release is under way."},
		{path: "canary.include.user_ids", kind: kindList, def: "[]", doc: "Users, own staff first."},
		{path: "canary.include.user_ids[]", kind: kindText, doc: "A user id, as written."},
	}
}

func metricKeys() []key {
	return []key{
		{path: "canary.metrics", kind: kindMap, anywhere: true, doc: "The breaker's limits."},
		{path: "canary.metrics.fast_layer", kind: kindMap, doc: "Hard limits that may trip at once."},
		{path: "canary.metrics.slow_layer", kind: kindMap, doc: "The judgement of the solve rate."},
		{path: "canary.metrics.recovery", kind: kindMap, doc: "What happens after a trip."},
	}
}

const fast, slow, recovery = "canary.metrics.fast_layer.", "canary.metrics.slow_layer.", "canary.metrics.recovery."

func limitKeys() []key {
	return []key{
		{path: fast + "violation_limit", kind: kindCount, def: "3", min: "1", doc: "Violations within violation_window_min that trip, at least."},
		{path: fast + "baseline_violation_rate", kind: kindDecimal, def: "0.0005", min: "0", max: "1", doc: "Violations per request in the baseline."},
		{path: fast + "violation_ratio_multiplier", kind: kindDecimal, def: "10.0", min: ">0", max: "1e6", doc: "How many times the baseline's violations trip, where that is more than violation_limit."},
		{path: fast + "violation_window_min", kind: kindMinutes, def: "5", min: ">0", doc: "The span over which violations and transfers are counted."},
		{path: fast + "cost_ratio_limit", kind: kindDecimal, def: "2.0", min: ">0", max: "1e6", doc: "Mean cost of a canary request, as a multiple of stable's, that trips."},
		{path: fast + "cost_min_samples", kind: kindCount, def: "0", min: "0", doc: "A window with fewer requests is not judged by cost."},
		{path: fast + "p99_baseline_ms", kind: kindDecimal, def: "300", min: ">0", max: "1e9", doc: "99th percentile latency in the baseline, milliseconds."},
		{path: fast + "p99_ratio_limit", kind: kindDecimal, def: "3.0", min: ">0", max: "1e6", doc: "The multiple of p99_baseline_ms that trips."},
		{path: fast + "p99_min_samples", kind: kindCount, def: "0", min: "0", doc: "A window with fewer requests is not judged by p99."},
		{path: fast + "p99_judge", kind: kindEnum, def: "window", words: p99Words, doc: "`window` holds each window's p99 against p99_baseline_ms x p99_ratio_limit; `count` counts the requests slower than p99_baseline_ms within violation_window_min, which few requests bear as well."},
		{path: fast + "p99_slow_rate", kind: kindDecimal, def: "0.01", min: "0", max: "1", doc: "Share of requests slower than p99_baseline_ms in the baseline. For `p99_judge: count`."},
		{path: fast + "p99_slow_ratio_limit", kind: kindDecimal, def: "3.0", min: ">0", max: "1e6", doc: "The multiple of p99_slow_rate that trips. For `p99_judge: count`."},
		{path: fast + "min_slow_count", kind: kindCount, def: "3", min: "1", doc: "Fewer slow requests within violation_window_min never trip. For `p99_judge: count`."},
		{path: fast + "baseline_transfer_rate", kind: kindDecimal, def: "0.02", min: "0", max: "1", doc: "Share of requests handed to a human in the baseline."},
		{path: fast + "transfer_rate_ratio_limit", kind: kindDecimal, def: "3.0", min: ">0", max: "1e6", doc: "The multiple of baseline_transfer_rate that trips."},
		{path: fast + "min_transfer_count", kind: kindCount, def: "3", min: "1", doc: "Fewer transfers within violation_window_min never trip."},
		{path: slow + "solve_baseline", kind: kindDecimal, def: "0.90", min: ">0", max: "1", doc: "Share of judged requests that are solved in the baseline."},
		{path: slow + "solve_rate_drop_pp", kind: kindDecimal, def: "10", min: ">0", max: "100", doc: "The drop below solve_baseline that trips, percentage points."},
		{path: slow + "min_samples_slow", kind: kindCount, def: "200", min: "1", doc: "Judged requests below which the solve rate is not judged."},
		{path: slow + "slow_window_min", kind: kindMinutes, def: "25", min: ">0", doc: "The span over which the solve rate is judged."},
		{path: slow + "slow_window_max_min", kind: kindMinutes, min: ">0", doc: "How far back a span may reach that holds fewer than min_samples_slow; at least slow_window_min. Left out: slow_window_min, a fixed span."},
		{path: slow + "label_lag_min", kind: kindMinutes, def: "0", min: "0", doc: "Windows younger than this have unfinished labels and are not judged by solve rate."},
		{path: slow + "judge", kind: kindEnum, def: "window", words: judgeWords, doc: "`window` judges the rate over the span, `cusum` a cumulative sum over all windows, which needs the key `cusum`."},
		{path: slow + "against", kind: kindEnum, def: "baseline", words: refWords, doc: "What the solve rate is held against: solve_baseline, or what stable did in the same minutes, where that is known."},
		{path: slow + "noise", kind: kindMap, doc: "The service's own noise. With it a solve rate trips only if it is also z sigmas below the reference. `calibrate` measures it."},
		{path: slow + "noise.z", kind: kindDecimal, required: true, min: "0", max: "100", doc: "How many sigmas; 0 is no fitted form."},
		{path: slow + "noise.tau", kind: kindDecimal, required: true, min: "0", max: "<0.5", doc: "Standard deviation of the true solve rate from one slow window to the next, as a fraction of 1: 0.02 is 2 percentage points."},
		{path: slow + "noise.se", kind: kindDecimal, def: "0", min: "0", max: "<0.5", doc: "Standard error of solve_baseline, as a fraction of 1."},
		{path: slow + "noise.tau_control", kind: kindDecimal, def: "0", min: "0", max: "<0.5", doc: "As tau, of what one version does not share with the other in the same minutes; 0 where both move together. For `against: stable`."},
		{path: slow + "noise.tail", kind: kindEnum, def: "normal", words: tailWords, doc: "How sigmas become a chance: `normal`, corrected for skew, or `exact`, beta-binomial, for rates so near 1 that few failures are expected."},
		{path: slow + "cusum", kind: kindMap, doc: "What `judge: cusum` looks for. `calibrate --judge cusum` derives it."},
		{path: slow + "cusum.drop_pp", kind: kindDecimal, required: true, min: ">0", max: "100", doc: "The drop below solve_baseline to find soonest, percentage points."},
		{path: slow + "cusum.limit", kind: kindDecimal, required: true, min: ">0", max: "1e6", doc: "The cumulative sum of log likelihood ratios that trips."},
	}
}

func recoveryKeys() []key {
	return []key{
		{path: recovery + "cooldown_min", kind: kindMinutes, def: "6", min: "0", doc: "How long the weight stays at 0 after a trip."},
		{path: recovery + "half_open_trials", kind: kindCount, def: "5", min: "1", max: "10000", doc: "Probes in a round."},
		{path: recovery + "half_open_success_rate", kind: kindDecimal, def: "0.8", min: ">0", max: "1", doc: "Solve rate of a good probe, and share of good probes of a passed round."},
		{path: recovery + "lock_on_escalate", kind: kindBool, def: "true", doc: "Whether a failed round locks the release until a person clears it."},
		{path: recovery + "half_open_min_requests", kind: kindCount, def: "0", min: "0", max: "1e12", doc: "Consecutive windows are pooled into one probe until it has so many requests."},
		{path: recovery + "max_attempts", kind: kindCount, def: "3", min: "0", max: "1e12", doc: "Recoveries after which the release locks; 0 = no end."},
	}
}

func moreKeys() []key {
	return []key{
		{path: "canary.signals", kind: kindNames, anywhere: true, words: signalWords(), doc: "How single signals take part."},
		{path: "canary.signals.*", kind: kindMap, doc: "A signal by its name."},
		{path: "canary.signals.*.mode", kind: kindEnum, words: modeWords, doc: "`off` does not look, `observe` shows would_fail and decides nothing, `enforce` demands a pass at the gate even where the source supplies nothing. Left out: it trips, and must pass where the source supplies it."},
		{path: "canary.signals.*.on_fail", kind: kindEnum, words: onFailWords, doc: "`roll_back` trips the breaker, `hold` stops the ladder where it is for this attempt, `throttle` lowers the weight while it lasts. Left out: roll_back, and for signals of streaming their action."},
		{path: "canary.freeze", kind: kindList, def: "[]", anywhere: true, doc: "Spans of wall-clock time without a step forward. Rollback is never frozen."},
		{path: "canary.freeze[]", kind: kindMap, doc: "One freeze."},
		{path: "canary.freeze[].zone", kind: kindZone, def: "UTC", doc: "Time zone of the wall clock, such as Europe/Berlin."},
		{path: "canary.freeze[].days", kind: kindList, def: "[mon, tue, wed, thu, fri, sat, sun]", minItems: 1, unique: true, doc: "Days on which the span begins."},
		{path: "canary.freeze[].days[]", kind: kindEnum, words: dayWords, doc: "A day."},
		{path: "canary.freeze[].from", kind: kindClock, def: `"00:00"`, doc: "Beginning of the span."},
		{path: "canary.freeze[].to", kind: kindClock, def: `"24:00"`, doc: "End of the span; at or before `from` it reaches into the next day."},
		{path: "canary.share", kind: kindMap, anywhere: true, doc: "How the share that the canary is seen to serve is held against the weight that was set."},
		{path: "canary.share.check", kind: kindEnum, def: "hold", words: shareWords, doc: "`hold` takes no step forward while the share seen is not the weight's: the gateway does not follow it. `off` does not look."},
		{path: "canary.share.design_effect", kind: kindDecimal, def: "10", min: "1", max: "1e6", doc: "How many times the variance of the canary's count of requests is that of independent ones: users send several and are hashed as a whole."},
		{path: "canary.share.tolerance", kind: kindDecimal, def: "0.5", min: "0", max: "100", doc: "How far off the share may be whatever the count, relative to the smaller arm: 0.5 lets 1 % be 0.5 % to 1.5 %. A step is taken for 2,000 independent users at most, so that 1 % must be below 0.13 % or above 2.3 % to be a mismatch; raise it where a few hundred users are all there are."},
		{path: "canary.approval_timeout_min", kind: kindMinutes, def: "1440", min: ">0", anywhere: true, doc: "After so long an approval lapses."},
		{path: "canary.max_pct", kind: kindMap, anywhere: true, doc: "Where a ladder that does not reach 1.00 ends, and why."},
		{path: "canary.max_pct.pct", kind: kindDecimal, required: true, min: ">0", max: "1", doc: "The last step's share."},
		{path: "canary.max_pct.because", kind: kindText, required: true, doc: "Why not 1.00, for whoever asks later."},
		{path: "canary.cost_baseline_usd", kind: kindDecimal, min: ">0", max: "1e9", anywhere: true, doc: "Mean cost of a request, US dollars; stands in where there is no stable traffic to compare with."},
		{path: "versions", kind: kindMap, doc: "The two versions. A release is named by the canary's keys, weight and api_key apart."},
		{path: "versions.allow_multiple_changes", kind: kindText, doc: "Why canary differs from stable in more than one thing; silences that warning."},
	}
}

func versionKeys(arm release.Arm) []key {
	p := "versions." + string(arm)
	return []key{
		{path: p, kind: kindMap, doc: fmt.Sprintf("The %s version.", arm)},
		{path: p + ".base_url", kind: kindText, form: oneLine, doc: "Where it is served."},
		{path: p + ".model_id", kind: kindText, form: oneLine, doc: "The model."},
		{path: p + ".prompt_version", kind: kindText, form: oneLine, doc: "The prompt."},
		{path: p + ".tools_version", kind: kindText, form: oneLine, doc: "The set of tools."},
		{path: p + ".gateway", kind: kindText, form: oneLine, doc: "The gateway or its configuration."},
		{path: p + ".temperature", kind: kindDecimal, min: "0", max: "100", doc: "Sampling temperature."},
		{path: p + ".params", kind: kindFree, doc: "Anything else that tells this version from another."},
		{path: p + ".api_key_env", kind: kindText, form: envName, doc: "The environment variable that holds the key."},
		{path: p + ".api_key", kind: kindSecret, doc: "The key itself. Works, and lint warns: secrets belong in the environment."},
		{path: p + ".weight", kind: kindDecimal, min: "0", max: "1", doc: "Its share of traffic, as the target `file` writes it."},
	}
}

func signalWords() []string {
	words := make([]string, release.Judged)
	for i := range words {
		words[i] = release.Signal(i).String()
	}
	return words
}

// spec is a row with its place in the tree of keys.
type spec struct {
	*key
	parent   *spec
	name     string           // last part of the path
	children map[string]*spec // by name; an item of a list under "[]", a name under "*"
	order    []string         // the children's names in the order of the table
}

// tree is the tree of keys, with its rows by path.
var tree = sync.OnceValues(buildTree)

// root is the file as a whole.
func root() *spec {
	top, _ := tree()
	return top
}

// specOf returns the row of a path of the table, or nil.
func specOf(path string) *spec {
	_, byPath := tree()
	return byPath[path]
}

func buildTree() (*spec, map[string]*spec) {
	top := &spec{key: &key{kind: kindMap}, children: map[string]*spec{}}
	byPath := map[string]*spec{"": top}
	all := keys()
	for i := range all {
		k := &all[i]
		parent, name := splitPath(k.path)
		up := byPath[parent]
		s := &spec{key: k, parent: up, name: name, children: map[string]*spec{}}
		byPath[k.path] = s
		up.children[name] = s
		up.order = append(up.order, name)
		if k.anywhere {
			top.children[name] = s
			top.order = append(top.order, name)
		}
	}
	return top, byPath
}

// splitPath parts a path of the table into its parent and its last part.
func splitPath(path string) (parent, name string) {
	if rest, ok := strings.CutSuffix(path, "[]"); ok {
		return rest, "[]"
	}
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}
