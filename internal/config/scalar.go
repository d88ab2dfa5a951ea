package config

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // freezes name time zones; not every machine has them
	"unicode"

	"gopkg.in/yaml.v3"

	"github.com/canaryctl/canaryctl/internal/diag"
	"github.com/canaryctl/canaryctl/internal/pattern"
	"github.com/canaryctl/canaryctl/internal/release"
)

// typed is a scalar in the type of its key; the field that the kind names is set.
type typed struct {
	text    string
	number  release.Ratio
	count   int64
	span    time.Duration
	flag    bool
	zone    *time.Location
	decoded any               // of a free mapping
	pairs   map[string]string // of a mapping of strings
}

// mistake is a scalar that is not of its key's type: a rule, what is wrong and
// what to do.
type mistake struct{ rule, message, hint string }

// plainDecimal is the form in which numbers are written: no octal, hexadecimal,
// underscores, signs or sexagesimals, which YAML 1.1 and 1.2 read differently.
var plainDecimal = pattern.New(`^(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,24})?(?:[eE][+-]?[0-9]{1,2})?$`)

// longDecimal is a plain decimal that may have more digits than can be held.
var longDecimal = pattern.New(`^(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$`)

func tooManyDigits(written string) *mistake {
	return &mistake{ruleOutOfRange, fmt.Sprintf("%s has too many digits to be held exactly", Short(written)), "18 significant digits are plenty"}
}

// timeUnit is the unit of a kind of spans.
type timeUnit struct {
	name string
	of   time.Duration
	hint string
}

var (
	inMinutes = &timeUnit{"minutes", time.Minute, "the unit is minutes, written as a plain number: 5, 0.5 (30 seconds), 1440 (a day)"}
	inSeconds = &timeUnit{"seconds", time.Second, "the unit is seconds, written as a plain number: 10, 0.5, 120 (two minutes)"}
)

// timeUnit returns the unit of a key that holds a span, else nil.
func (k *key) timeUnit() *timeUnit {
	switch k.kind {
	case kindMinutes:
		return inMinutes
	case kindSeconds:
		return inSeconds
	}
	return nil
}

// scalar reads a scalar node as the type of a key.
func (k *key) scalar(n *yaml.Node) (typed, *mistake) {
	switch k.kind {
	case kindText, kindSecret, kindPaths, kindPairs:
		t, m := textOf(n)
		if m == nil && k.form != nil && !k.form.re.MatchString(n.Value) {
			m = &mistake{ruleWrongType, "want " + k.form.want, k.form.hint}
		}
		return t, m
	case kindEnum, kindUnit:
		return k.wordOf(n)
	case kindBool:
		if n.Tag != "!!bool" || n.Value != "true" && n.Value != "false" {
			return typed{}, &mistake{ruleWrongType, fmt.Sprintf("want %s, not %s", k.kind.want(), said(n)), "write true or false, without quotes"}
		}
		return typed{flag: n.Value == "true"}, nil
	case kindCount, kindDecimal, kindMinutes, kindSeconds:
		return k.numberOf(n)
	case kindClock:
		return clockOf(n)
	case kindZone:
		return zoneOf(n)
	}
	return typed{}, &mistake{ruleWrongType, fmt.Sprintf("want %s, not %s", k.kind.want(), said(n)), ""}
}

// said describes a node's value as the user would.
func said(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case "!!null":
		return "nothing"
	case "!!str":
		if _, err := strconv.ParseFloat(n.Value, 64); n.Style == 0 && errors.Is(err, strconv.ErrRange) { // YAML takes it for a string
			return fmt.Sprintf("%s, which is too large for a number", Short(n.Value))
		}
		return fmt.Sprintf("the string %q", Short(n.Value))
	}
	return Short(n.Value)
}

// Short returns the beginning of a value for a message, without the secrets
// that a cut would make unrecognisable.
func Short(s string) string {
	s = maskSpans(s, "*", secretSpans(s))
	if r := []rune(s); len(r) > 40 {
		return string(r[:37]) + "..."
	}
	return s
}

func textOf(n *yaml.Node) (typed, *mistake) {
	switch {
	case n.Tag == "!!null":
		return typed{}, &mistake{ruleWrongType, "want a string, not nothing", "remove the key or give it a value"}
	case n.Tag == "!!bool":
		return typed{}, &mistake{ruleWrongType, fmt.Sprintf("want a string, not %s", n.Value), fmt.Sprintf("write it in quotes: %q", n.Value)}
	case strings.TrimSpace(n.Value) == "":
		return typed{}, &mistake{ruleWrongType, "want a string that is not empty", "remove the key or give it a value"}
	}
	return typed{text: n.Value}, nil
}

func (k *key) wordOf(n *yaml.Node) (typed, *mistake) {
	for _, w := range k.words {
		if n.Value == w && n.Tag != "!!null" {
			return typed{text: w}, nil
		}
	}
	m := &mistake{ruleUnknownWord, fmt.Sprintf("%s is none of %s", said(n), listing(k.words)), ""}
	if k.kind == kindUnit {
		m.hint = "or say what all of the traffic is written as: {whole: 100, places: 0}"
	}
	if w := diag.Nearest(n.Value, k.words); w != "" {
		m.hint = fmt.Sprintf("did you mean %q?", w)
	}
	return typed{}, m
}

// listing joins words for a sentence.
func listing(words []string) string {
	switch len(words) {
	case 0:
		return "nothing"
	case 1:
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

func (k *key) numberOf(n *yaml.Node) (typed, *mistake) {
	if m := k.noNumber(n); m != nil {
		return typed{}, m
	}
	rat, ok := new(big.Rat).SetString(n.Value)
	if !ok {
		return typed{}, &mistake{ruleWrongType, fmt.Sprintf("%s is no number", n.Value), ""}
	}
	if m := k.outOfRange(rat, n.Value); m != nil {
		return typed{}, m
	}
	switch k.kind {
	case kindCount:
		if !rat.IsInt() || !rat.Num().IsInt64() {
			return typed{}, &mistake{ruleWrongType, fmt.Sprintf("want a whole number, not %s", n.Value), ""}
		}
		return typed{count: rat.Num().Int64()}, nil
	case kindMinutes, kindSeconds:
		return k.timeUnit().spanOf(rat, n.Value)
	}
	r, err := release.RatioOf(rat)
	if err != nil {
		return typed{}, tooManyDigits(n.Value)
	}
	return typed{number: r}, nil
}

// noNumber says why a node is no number in plain form.
func (k *key) noNumber(n *yaml.Node) *mistake {
	want, hint, unit := "want "+k.kind.want(), "", k.timeUnit()
	if unit != nil {
		hint = unit.hint
	}
	numeric := n.Tag == "!!int" || n.Tag == "!!float"
	switch {
	case numeric && isSpecial(n.Value):
		return &mistake{ruleNotFinite, fmt.Sprintf("%s is not a finite number", n.Value), k.finiteHint()}
	case numeric && strings.HasPrefix(n.Value, "-"):
		return &mistake{ruleOutOfRange, fmt.Sprintf("%s is negative", n.Value), hint}
	case numeric && plainDecimal.MatchString(n.Value):
		return nil
	case numeric && longDecimal.MatchString(n.Value):
		return tooManyDigits(n.Value)
	case numeric:
		return &mistake{ruleWrongType, fmt.Sprintf("%s is not in plain decimal form", Short(n.Value)), "write digits, at most one point and no signs, underscores or leading zeros: 0.05, 1440"}
	case n.Tag == "!!str" && plainDecimal.MatchString(n.Value):
		return &mistake{ruleWrongType, fmt.Sprintf("%s, not %s", want, said(n)), "remove the quotes"}
	case n.Tag == "!!str" && strings.HasSuffix(n.Value, "%") && k.kind == kindDecimal:
		return &mistake{ruleWrongUnit, fmt.Sprintf("%s, not %s", want, said(n)), percentHint(n.Value)}
	}
	rule := ruleWrongType
	if unit != nil && n.Tag == "!!str" && strings.IndexFunc(strings.TrimPrefix(n.Value, "-"), unicode.IsDigit) == 0 {
		rule = ruleWrongUnit
		if number := unit.number(n.Value); number != "" {
			hint = fmt.Sprintf("write %s: %s", number, unit.hint)
		}
	}
	return &mistake{rule, fmt.Sprintf("%s, not %s", want, said(n)), hint}
}

func (k *key) finiteHint() string {
	if k.def != "" {
		return "leave the key out for its default of " + k.def
	}
	return "write a plain number, " + k.rangeText()
}

func isSpecial(s string) bool {
	switch strings.ToLower(strings.TrimLeft(s, "+-")) {
	case ".nan", ".inf":
		return true
	}
	return false
}

func percentHint(s string) string {
	rat, ok := new(big.Rat).SetString(strings.TrimSpace(strings.TrimSuffix(s, "%")))
	if !ok || len(s) > 12 {
		return "write a fraction of 1"
	}
	return "write a fraction of 1: " + decimal(rat.Quo(rat, big.NewRat(100, 1)))
}

// decimal prints an exact value the shortest way that reads back the same.
func decimal(rat *big.Rat) string {
	f, _ := rat.Float64()
	if f >= 1e-6 && f < 1e15 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

var withUnit = pattern.New(`^([0-9]{1,6})\s*([a-z]+)$`)

// number turns 90s, 5m, 2h and 1d into a number of the unit for a hint, or "".
func (u *timeUnit) number(s string) string {
	m := withUnit.FindStringSubmatch(strings.ToLower(strings.TrimSpace(s)))
	if m == nil {
		return ""
	}
	per := map[string]time.Duration{
		"ms": time.Millisecond, "s": time.Second, "sec": time.Second, "m": time.Minute, "min": time.Minute,
		"h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour,
	}[m[2]]
	n, ok := new(big.Rat).SetString(m[1])
	if per == 0 || !ok {
		return ""
	}
	return decimal(n.Mul(n, big.NewRat(int64(per), int64(u.of))))
}

// outOfRange holds a number against the bounds of its key.
func (k *key) outOfRange(rat *big.Rat, written string) *mistake {
	low, exclusive := strings.CutPrefix(k.min, ">")
	if low != "" {
		if c := rat.Cmp(bound(low)); c < 0 || exclusive && c == 0 {
			return &mistake{ruleOutOfRange, fmt.Sprintf("%s is out of range", written), k.rangeText()}
		}
	}
	high, exclusive := strings.CutPrefix(k.max, "<")
	if high == "" {
		return nil
	}
	if c := rat.Cmp(bound(high)); c > 0 || exclusive && c == 0 {
		hint := k.rangeText()
		if c > 0 && bound(high).Cmp(bound("1")) <= 0 && rat.Cmp(bound("100")) <= 0 {
			hint += "; in percent? then " + decimal(new(big.Rat).Quo(rat, bound("100")))
		}
		return &mistake{ruleOutOfRange, fmt.Sprintf("%s is out of range", written), hint}
	}
	return nil
}

func bound(s string) *big.Rat {
	rat, ok := new(big.Rat).SetString(s)
	if !ok {
		panic("config: bound " + s)
	}
	return rat
}

// rangeText says the bounds of a key in words.
func (k *key) rangeText() string {
	var parts []string
	if low, exclusive := strings.CutPrefix(k.min, ">"); exclusive {
		parts = append(parts, "above "+low)
	} else if low != "" {
		parts = append(parts, "at least "+low)
	}
	if high, exclusive := strings.CutPrefix(k.max, "<"); exclusive {
		parts = append(parts, "below "+high)
	} else if high != "" {
		parts = append(parts, "at most "+decimal(bound(high)))
	}
	return strings.Join(parts, " and ")
}

// maxMinutes is ten years: longer is a mistake, and fits a time.Duration.
const maxMinutes = 10 * 366 * 1440

// spanOf turns a number of the unit into a span of time, exactly.
func (u *timeUnit) spanOf(rat *big.Rat, written string) (typed, *mistake) {
	ns := new(big.Rat).Mul(rat, new(big.Rat).SetInt64(int64(u.of)))
	if ns.Cmp(new(big.Rat).SetInt64(int64(maxMinutes*time.Minute))) > 0 {
		return typed{}, &mistake{ruleOutOfRange, fmt.Sprintf("%s %s are more than ten years", written, u.name), u.hint}
	}
	if !ns.IsInt() {
		return typed{}, &mistake{ruleOutOfRange, fmt.Sprintf("%s %s are not a whole number of nanoseconds", written, u.name), u.hint}
	}
	return typed{span: time.Duration(ns.Num().Int64())}, nil
}

var clock = pattern.New(`^([01][0-9]|2[0-4]):([0-5][0-9])$`)

func clockOf(n *yaml.Node) (typed, *mistake) {
	bad := &mistake{ruleWrongUnit, fmt.Sprintf("want a time of day, not %s", said(n)), `write it as "HH:MM", from "00:00" to "24:00"`}
	m := clock.FindStringSubmatch(n.Value)
	if m == nil || n.Tag == "!!null" {
		return typed{}, bad
	}
	h, _ := strconv.Atoi(m[1])
	minute, _ := strconv.Atoi(m[2])
	since := time.Duration(h)*time.Hour + time.Duration(minute)*time.Minute
	if since > 24*time.Hour {
		return typed{}, bad
	}
	return typed{span: since, text: n.Value}, nil
}

func zoneOf(n *yaml.Node) (typed, *mistake) {
	// "Local" would make the plan depend on the machine that reads it.
	if n.Tag == "!!str" && n.Value != "" && n.Value != "Local" {
		if loc, err := time.LoadLocation(n.Value); err == nil {
			return typed{zone: loc, text: n.Value}, nil
		}
	}
	return typed{}, &mistake{ruleUnknownWord, fmt.Sprintf("%s is no time zone", said(n)), "write an IANA name such as UTC, Europe/Berlin or America/New_York"}
}
