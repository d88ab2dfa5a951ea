package shadow

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Grade is the verdict on a pair.
type Grade uint8

// The grades.
const (
	Benign   Grade = iota // users would not notice
	Risk                  // a person must look: blocks
	Fatal                 // counts as a violation
	Unjudged              // the canary's answer breaks nothing, and there is nothing to compare it with
)

var gradeNames = [...]string{"benign", "risk", "fatal", "no_data"}

// String returns the grade's name in files and output.
func (g Grade) String() string {
	if int(g) < len(gradeNames) {
		return gradeNames[g]
	}
	return fmt.Sprintf("grade(%d)", uint8(g))
}

// MarshalText implements [encoding.TextMarshaler].
func (g Grade) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// Level is what is judged, in this order; the first fatal level ends it.
type Level uint8

// The levels.
const (
	Structure Level = iota
	Compliance
	Semantics
)

var levelNames = [...]string{"structure", "compliance", "semantics"}

// String returns the level's name in files and output.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("level(%d)", uint8(l))
}

// MarshalText implements [encoding.TextMarshaler].
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Case is what was logged of one request: JSON values, strings that hold them,
// or chat completions, see [Extract].
type Case struct {
	Stable, Canary json.RawMessage
	Gold           json.RawMessage // the fields that are known to be right; empty for none
}

// Reason is why a verdict is no better, without any value of the answers.
type Reason struct {
	Field string `json:"field"`          // "" for the answer as a whole
	Kind  string `json:"kind,omitempty"` // of personal data
	Text  string `json:"text"`
}

// String returns the reason as a sentence says it.
func (r Reason) String() string {
	if r.Field == "" {
		return r.Text
	}
	return r.Field + " " + r.Text
}

// Verdict is what a pair is worth.
type Verdict struct {
	Grade   Grade
	Level   Level    // the one that decided
	Reasons []Reason // none if benign throughout
	More    int      // reasons beyond those kept

	// Equal is the weight of the fields that are equal, Of that of all that
	// either answer, or gold, has. Of [release.Ratio.IsZero] if no fields were
	// compared.
	Equal, Of release.Ratio
	// Seen says of each of the contract's fields whether either answer, or gold,
	// has it; nil if that was not looked at.
	Seen []bool
}

// Compared reports whether the fields of the pair were compared.
func (v *Verdict) Compared() bool { return !v.Of.IsZero() }

// Similarity returns Equal / Of, a fraction of 1, if the fields were compared.
func (v *Verdict) Similarity() float64 {
	f, _ := new(big.Rat).Quo(v.Equal.Rat(), v.Of.Rat()).Float64()
	return f
}

// maxReasons bounds the reasons of one verdict.
const maxReasons = 20

// errGold says that gold is of no use: it is no object, or no JSON.
var errGold = errors.New("gold is no JSON object")

// Judge gives a pair its verdict: structure, then compliance, then semantics.
// The error is about gold, which is the user's and not the canary's.
func (c *Contract) Judge(pair Case) (Verdict, error) {
	gold, err := goldOf(pair.Gold)
	if err != nil {
		return Verdict{}, err
	}
	got, err := read(pair.Canary)
	if err != nil {
		return fatal(Structure, []Reason{{Text: err.Error()}}), nil
	}
	canary := got.value
	if faults := c.Structure(canary); len(faults) > 0 {
		return fatal(Structure, c.faultReasons(canary, faults)), nil
	}
	if leaks := append(c.leaks(canary), c.leaksBeside(got.beside)...); len(leaks) > 0 {
		reasons := make([]Reason, 0, len(leaks))
		for _, l := range leaks {
			reasons = append(reasons, Reason{Field: l.Field, Kind: l.Kind, Text: "holds personal data (" + l.Kind + ")"})
		}
		return fatal(Compliance, reasons), nil
	}
	return c.semantics(pair.Stable, canary, gold), nil
}

func fatal(level Level, reasons []Reason) Verdict {
	kept := min(len(reasons), maxReasons)
	return Verdict{Grade: Fatal, Level: level, Reasons: reasons[:kept], More: len(reasons) - kept}
}

func (c *Contract) faultReasons(answer any, faults []Fault) []Reason {
	reasons := make([]Reason, 0, len(faults))
	for _, f := range faults {
		reasons = append(reasons, Reason{Field: c.fieldOf(answer, f.Path), Text: f.Text})
	}
	slices.SortFunc(reasons, func(a, b Reason) int {
		switch {
		case a.Field < b.Field || a.Field == b.Field && a.Text < b.Text:
			return -1
		case a == b:
			return 0
		}
		return 1
	})
	return slices.Compact(reasons)
}

// fieldOf writes a path of keys and indexes as items[0].name. Which a part is
// only the answer knows.
func (c *Contract) fieldOf(v any, path []string) (field string) {
	for _, part := range path {
		switch in := v.(type) {
		case []any:
			field += "[" + part + "]"
			v = nil
			if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(in) {
				v = in[i]
			}
		case map[string]any:
			field = join(field, c.shown(part))
			v = in[part]
		default:
			field = join(field, c.shown(part))
			v = nil
		}
	}
	return field
}

func goldOf(raw json.RawMessage) (map[string]any, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	v, err := Extract(raw)
	gold, ok := v.(map[string]any)
	if err != nil || !ok {
		return nil, errGold
	}
	return gold, nil
}

// semantics compares the fields. Where gold gives a field it is the reference in
// stable's place: a conflict is fatal, and a canary that is right where stable is
// wrong is not blamed for the difference.
func (c *Contract) semantics(stable json.RawMessage, canary any, gold map[string]any) Verdict {
	if reasons := c.conflicts(canary, gold); len(reasons) > 0 {
		return fatal(Semantics, reasons)
	}
	reference, err := Extract(stable)
	if err != nil {
		return Verdict{Grade: Unjudged, Level: Semantics, Reasons: []Reason{{Text: "stable's answer cannot be compared: " + err.Error()}}}
	}
	seen := make([]bool, len(c.Fields))
	for i := range c.Fields {
		seen[i] = c.Fields[i].in(gold) || c.Fields[i].in(reference) || c.Fields[i].in(canary)
	}
	whole := sum(c.Fields, func(i int) bool { return seen[i] })
	if whole.Sign() == 0 {
		return Verdict{Grade: Unjudged, Level: Semantics, Seen: seen, Reasons: []Reason{{Text: "neither answer has a field of the contract: there is nothing to compare"}}}
	}
	var reasons []Reason
	equal := sum(c.Fields, func(i int) bool {
		f := &c.Fields[i]
		if !seen[i] {
			return false // that neither has it is no likeness
		}
		if right, given := at(gold, f.Path); given {
			if have, there := at(canary, f.Path); there && f.equal(right, have) {
				return true
			}
		}
		if f.same(reference, canary) {
			return true
		}
		reasons = append(reasons, Reason{Field: c.fieldOf(nil, f.Path), Text: fmt.Sprintf("differs (weight %s)", f.Weight)})
		return false
	})
	v := c.grade(equal, whole, reasons)
	v.Seen = seen
	return v
}

// grade holds the similarity against the thresholds, exactly.
func (c *Contract) grade(equal, whole *big.Rat, reasons []Reason) Verdict {
	v := Verdict{Level: Semantics, Reasons: reasons}
	v.Equal, _ = release.RatioOf(equal) // Check has seen that every sum can be held
	v.Of, _ = release.RatioOf(whole)
	similarity := new(big.Rat).Quo(equal, whole)
	switch {
	case similarity.Cmp(c.Benign.Rat()) >= 0:
		v.Grade = Benign
	case similarity.Cmp(c.Risk.Rat()) >= 0:
		v.Grade = Risk
	default:
		v.Grade = Fatal
	}
	return v
}

// sum adds up the weights of the fields for which is holds, by their place.
func sum(fields []Field, is func(int) bool) *big.Rat {
	total := new(big.Rat)
	for i := range fields {
		if is(i) {
			total.Add(total, fields[i].Weight.Rat())
		}
	}
	return total
}

// conflicts compares every field that gold gives, those without a weight too.
// Objects are compared by the keys that gold has.
func (c *Contract) conflicts(canary any, gold map[string]any) (reasons []Reason) {
	var compare func(path []string, want, have any, there bool)
	compare = func(path []string, want, have any, there bool) {
		object, nested := have.(map[string]any)
		if within, ok := want.(map[string]any); ok && (nested || len(within) > 0) {
			for _, key := range slices.Sorted(maps.Keys(within)) {
				value, ok := object[key]
				compare(append(slices.Clone(path), key), within[key], value, ok)
			}
			return
		}
		of := c.fieldAt(path)
		if !there || !of.equal(want, have) {
			reasons = append(reasons, Reason{Field: c.fieldOf(nil, path), Text: "is in conflict with gold"})
		}
	}
	if gold != nil {
		compare(nil, gold, canary, true)
	}
	return reasons
}

// fieldAt returns the field of a path; where there is none, one that is
// compared exactly.
func (c *Contract) fieldAt(path []string) *Field {
	for i := range c.Fields {
		if strings.Join(c.Fields[i].Path, ".") == strings.Join(path, ".") {
			return &c.Fields[i]
		}
	}
	return &Field{}
}
