package shadow

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// at returns the value under a path of keys. A key with points in it is looked
// for as it stands, the longest first: "a.b" before a with b in it.
func at(v any, path []string) (any, bool) {
	if len(path) == 0 {
		return v, true
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, false
	}
	for n := len(path); n > 0; n-- {
		below, ok := m[strings.Join(path[:n], ".")]
		if !ok {
			continue
		}
		if found, ok := at(below, path[n:]); ok {
			return found, true
		}
	}
	return nil, false
}

// in reports whether an answer has the field.
func (f *Field) in(answer any) bool {
	_, there := at(answer, f.Path)
	return there
}

// same compares the field in two answers, of which one has it; null is not the
// same as missing.
func (f *Field) same(stable, canary any) bool {
	a, hasA := at(stable, f.Path)
	b, hasB := at(canary, f.Path)
	if !hasA || !hasB {
		return hasA == hasB
	}
	return f.equal(a, b)
}

func (f *Field) equal(a, b any) bool {
	switch f.As {
	case Set:
		x, okA := a.([]any)
		y, okB := b.([]any)
		if okA && okB {
			return sameItems(x, y)
		}
	case Number:
		x, okA := a.(json.Number)
		y, okB := b.(json.Number)
		if okA && okB {
			return f.near(x, y)
		}
	}
	return equal(a, b)
}

// near reports whether two numbers are at most the tolerance apart, exactly.
func (f *Field) near(a, b json.Number) bool {
	x, okX := rational(a)
	y, okY := rational(b)
	if !okX || !okY {
		return false
	}
	distance := x.Sub(x, y)
	return !f.Tolerance.IsZero() && distance.Abs(distance).Cmp(f.Tolerance.Rat()) <= 0 || distance.Sign() == 0
}

// equal compares two JSON values: numbers by value, objects whatever the order
// of their keys, lists in order.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, value := range a {
			other, there := b[key]
			if !there || !equal(value, other) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case []any, map[string]any:
		return false // not comparable with ==
	}
	return a == b
}

func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, okX := rational(a)
	y, okY := rational(b)
	return okX && okY && x.Cmp(y) == 0
}

// sameItems compares two lists as multisets.
func sameItems(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	x, y := canonical(a), canonical(b)
	return slices.Equal(x, y)
}

// canonical writes the items of a list in one way each, sorted, so that lists
// with the same items are equal.
func canonical(list []any) []string {
	out := make([]string, 0, len(list))
	for _, item := range list {
		out = append(out, string(appendCanonical(nil, item)))
	}
	slices.Sort(out)
	return out
}

// appendCanonical writes equal values in equal bytes: keys sorted, numbers as
// fractions in lowest terms.
func appendCanonical(b []byte, v any) []byte {
	switch v := v.(type) {
	case json.Number:
		if r, ok := rational(v); ok {
			return append(b, r.RatString()...)
		}
		return append(b, v...)
	case []any:
		b = append(b, '[')
		for _, item := range v {
			b = append(appendCanonical(b, item), ',')
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for _, key := range slices.Sorted(maps.Keys(v)) {
			b = append(appendCanonical(append(appendCanonical(b, key), ':'), v[key]), ',')
		}
		return append(b, '}')
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic("shadow: a value that is no JSON") // Decode makes strings, booleans and nil only
	}
	return append(b, text...)
}
