package config

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/canaryctl/canaryctl/internal/jsonschema"
	broken "github.com/canaryctl/canaryctl/internal/jsonschema/kind"
	"github.com/canaryctl/canaryctl/internal/shadow"
)

// faults flattens what a schema found into one fault a place. The library's own
// messages quote the values, which may be personal data; these do not.
func faults(out []shadow.Fault, e *jsonschema.ValidationError) []shadow.Fault {
	switch k := e.ErrorKind.(type) {
	case *broken.Schema, *broken.Group, *broken.Reference, *broken.AllOf:
		for _, cause := range e.Causes {
			out = faults(out, cause)
		}
		return out
	case *broken.Required:
		return missing(out, e, k.Missing, "is missing")
	case *broken.DependentRequired:
		return missing(out, e, k.Missing, "is missing, which another field asks for")
	case *broken.Dependency:
		return missing(out, e, k.Missing, "is missing, which another field asks for")
	case *broken.AdditionalProperties:
		return missing(out, e, k.Properties, "is not allowed")
	}
	return append(out, shadow.Fault{Path: e.InstanceLocation, Text: faultText(e.ErrorKind)})
}

func missing(out []shadow.Fault, e *jsonschema.ValidationError, names []string, text string) []shadow.Fault {
	for _, name := range names {
		out = append(out, shadow.Fault{Path: append(slices.Clone(e.InstanceLocation), name), Text: text})
	}
	return out
}

// faultText says what is wrong with a value, in words of the schema and lengths
// only.
func faultText(of jsonschema.ErrorKind) string {
	switch k := of.(type) {
	case *broken.Type:
		return fmt.Sprintf("is of type %s, want %s", k.Got, strings.Join(k.Want, " or "))
	case *broken.Enum:
		return "is none of the values that are allowed"
	case *broken.Const:
		return "is not the value that it must be"
	case *broken.Format:
		return "is no " + k.Want
	case *broken.Pattern:
		return "does not match " + k.Want
	case *broken.MinLength:
		return fmt.Sprintf("is shorter than %d characters", k.Want)
	case *broken.MaxLength:
		return fmt.Sprintf("is longer than %d characters", k.Want)
	case *broken.MinItems:
		return fmt.Sprintf("has %d items, want at least %d", k.Got, k.Want)
	case *broken.MaxItems:
		return fmt.Sprintf("has %d items, want at most %d", k.Got, k.Want)
	case *broken.MinProperties:
		return fmt.Sprintf("has %d keys, want at least %d", k.Got, k.Want)
	case *broken.MaxProperties:
		return fmt.Sprintf("has %d keys, want at most %d", k.Got, k.Want)
	case *broken.UniqueItems:
		return fmt.Sprintf("has the same item twice, at %d and %d", k.Duplicates[0], k.Duplicates[1])
	case *broken.AdditionalItems:
		return fmt.Sprintf("has %d items too many", k.Count)
	case *broken.FalseSchema:
		return "is not allowed"
	case *broken.Not:
		return "is what it must not be"
	}
	return rangeFault(of)
}

func rangeFault(of jsonschema.ErrorKind) string {
	switch k := of.(type) {
	case *broken.Minimum:
		return "is below " + boundText(k.Want)
	case *broken.Maximum:
		return "is above " + boundText(k.Want)
	case *broken.ExclusiveMinimum:
		return "is not above " + boundText(k.Want)
	case *broken.ExclusiveMaximum:
		return "is not below " + boundText(k.Want)
	case *broken.MultipleOf:
		return "is no multiple of " + boundText(k.Want)
	}
	words := of.KeywordPath()
	if len(words) == 0 {
		return "does not hold"
	}
	return "does not hold " + words[0]
}

// boundText writes a bound of the schema.
func boundText(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	return decimal(r)
}
