package config

import "github.com/canaryctl/canaryctl/internal/diag"

// Rule is one kind of finding. Each has a paragraph and an example in
// docs/reference/lint.md.
type Rule struct {
	ID       string
	Severity diag.Severity
	Short    string // what the rule finds, in a line
}

// The ids of the rules.
const (
	ruleYAMLSyntax       = "yaml-syntax"
	ruleYAMLEncoding     = "yaml-encoding"
	ruleYAMLDocument     = "yaml-document"
	ruleYAMLAlias        = "yaml-alias"
	ruleYAMLTag          = "yaml-tag"
	ruleUnknownKey       = "unknown-key"
	ruleDuplicateKey     = "duplicate-key"
	ruleDuplicateItem    = "duplicate-item"
	ruleMissingKey       = "missing-key"
	ruleTwoPlaces        = "two-places"
	ruleOneOf            = "one-of"
	ruleWrongType        = "wrong-type"
	ruleWrongUnit        = "wrong-unit"
	ruleNotFinite        = "not-finite"
	ruleOutOfRange       = "out-of-range"
	ruleUnknownWord      = "unknown-word"
	ruleStepOrder        = "step-order"
	ruleLastStep         = "last-step"
	ruleOffRing          = "off-ring"
	ruleSolveFloor       = "solve-floor"
	ruleSpanOrder        = "span-order"
	ruleJudgeUnset       = "judge-unset"
	ruleCusumDrop        = "cusum-drop"
	ruleRouteOverlap     = "route-overlap"
	ruleUnusedKey        = "unused-key"
	ruleBadSelector      = "bad-selector"
	ruleSameArm          = "same-arm"
	ruleOffUnit          = "off-unit"
	ruleTargetLacks      = "target-lacks"
	ruleSceneTarget      = "scene-target"
	ruleSceneSource      = "scene-source"
	ruleShortCooldown    = "short-cooldown"
	ruleShortSpan        = "short-span"
	ruleUnreachableLimit = "unreachable-limit"
	ruleBlindSlowLayer   = "blind-slow-layer"
	ruleBlindSignal      = "blind-signal"
	ruleShortHold        = "short-hold"
	ruleThresholdInNoise = "threshold-in-noise"
	ruleProbeRound       = "probe-round"
	ruleHealthyTrips     = "healthy-trips"
	ruleNoTraffic        = "no-traffic"
	ruleMinSamplesUnset  = "min-samples-unset"
	ruleDefaultBaseline  = "default-baseline"
	ruleSameVersion      = "same-version"
	ruleMultipleChanges  = "multiple-changes"
	ruleWeightSum        = "weight-sum"
	rulePlaceholder      = "placeholder"
	ruleSceneUnset       = "scene-unset"
	rulePlainHTTP        = "plain-http"
	ruleInlineKey        = "inline-key"
)

var rules = []Rule{
	{ruleYAMLSyntax, diag.Error, "the file is not YAML"},
	{ruleYAMLEncoding, diag.Error, "the file is not UTF-8 text"},
	{ruleYAMLDocument, diag.Error, "the file is empty, too large, or holds a second document"},
	{ruleYAMLAlias, diag.Error, "an alias or a merge key"},
	{ruleYAMLTag, diag.Error, "an explicit tag"},
	{ruleUnknownKey, diag.Error, "a key that is not in the table"},
	{ruleDuplicateKey, diag.Error, "a key twice in a mapping"},
	{ruleDuplicateItem, diag.Error, "an item twice in a list without repetitions"},
	{ruleMissingKey, diag.Error, "a required key is not there"},
	{ruleTwoPlaces, diag.Error, "a key both inside canary and beside it"},
	{ruleOneOf, diag.Error, "not exactly one of several keys"},
	{ruleWrongType, diag.Error, "a value of another type than its key's"},
	{ruleWrongUnit, diag.Error, "a value with a unit, or in another unit"},
	{ruleNotFinite, diag.Error, "NaN or infinity"},
	{ruleOutOfRange, diag.Error, "a value outside its key's bounds"},
	{ruleUnknownWord, diag.Error, "a word that is none of its key's"},
	{ruleStepOrder, diag.Error, "pct does not rise"},
	{ruleLastStep, diag.Error, "the last pct is neither 1.00 nor max_pct"},
	{ruleOffRing, diag.Error, "pct is not a whole number of slots"},
	{ruleSolveFloor, diag.Error, "no solve rate could trip"},
	{ruleSpanOrder, diag.Error, "a span is shorter than what it must hold"},
	{ruleJudgeUnset, diag.Error, "a judge without what it needs"},
	{ruleCusumDrop, diag.Error, "a drop that a cumulative sum cannot look for"},
	{ruleRouteOverlap, diag.Error, "a user is both excluded and included"},
	{ruleUnusedKey, diag.Error, "a key without what it belongs to"},
	{ruleBadSelector, diag.Error, "a text that names no place of a document"},
	{ruleSameArm, diag.Error, "canary and stable are read from, or written to, the same place"},
	{ruleOffUnit, diag.Error, "a step's share that the target cannot hold exactly"},
	{ruleTargetLacks, diag.Error, "the target cannot do what is asked"},
	{ruleSceneTarget, diag.Error, "two scenes would be written to the same place"},
	{ruleSceneSource, diag.Error, "every scene would be judged by the same traffic"},
	{ruleShortCooldown, diag.Warning, "the first probe sees the violations that tripped"},
	{ruleShortSpan, diag.Warning, "a span shorter than a window"},
	{ruleUnreachableLimit, diag.Warning, "a limit that no rate can reach"},
	{ruleBlindSlowLayer, diag.Warning, "a step at which the slow layer never has enough samples"},
	{ruleBlindSignal, diag.Warning, "a signal of streaming whose min_count a step never reaches"},
	{ruleShortHold, diag.Warning, "a hold shorter than the time to decide"},
	{ruleThresholdInNoise, diag.Warning, "a drop that lies within the service's own noise"},
	{ruleProbeRound, diag.Warning, "a probe round that a healthy version fails too often"},
	{ruleHealthyTrips, diag.Warning, "limits that trip a healthy service"},
	{ruleNoTraffic, diag.Warning, "requests_per_min is not set"},
	{ruleMinSamplesUnset, diag.Warning, "min_samples_slow is not set"},
	{ruleDefaultBaseline, diag.Warning, "a baseline figure is the shipped default"},
	{ruleSameVersion, diag.Warning, "canary is equal to stable"},
	{ruleMultipleChanges, diag.Warning, "canary differs from stable in several things"},
	{ruleWeightSum, diag.Warning, "the weights do not add up to 1"},
	{rulePlaceholder, diag.Warning, "a hook that is still to be written"},
	{ruleSceneUnset, diag.Warning, "{scene} in a file without scenes"},
	{rulePlainHTTP, diag.Warning, "a token is sent without encryption"},
	{ruleInlineKey, diag.Warning, "a secret stands in the file"},
}

// Rules returns all rules: the errors of [Parse], then the warnings of
// [Config.Lint].
func Rules() []Rule { return append([]Rule(nil), rules...) }
