package trace

import (
	"fmt"
	"slices"
	"strings"

	"github.com/canaryctl/canaryctl/internal/diag"
)

// Mapping says where a field is found and in which unit.
type Mapping struct {
	Field Field
	Path  Path
	Unit  Unit
}

// String returns the mapping as --map takes it.
func (m Mapping) String() string {
	s := m.Field.String() + "=" + m.Path.String()
	if m.Unit != NoUnit {
		s += ":" + m.Unit.String()
	}
	return s
}

// Path leads to a value: the keys from the outermost object inwards. A key
// that is there literally, dots and all, wins over the nested reading.
type Path []string

// String returns the path with dots, as it would be named in a flat file.
func (p Path) String() string { return strings.Join(p, ".") }

// ParseMapping reads one --map: FIELD=PATH[:UNIT], several of them separated
// by commas. A backslash takes the meaning from a dot, comma, colon or
// backslash in a key. The error is a [*MappingError].
func ParseMapping(s string) ([]Mapping, error) {
	var out []Mapping
	for _, part := range splitUnescaped(s, ',') {
		m, err := parseOne(part)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(o Mapping) bool { return o.Field == m.Field }) {
			return nil, &MappingError{Text: part, Msg: fmt.Sprintf("%s is mapped twice", m.Field)}
		}
		out = append(out, m)
	}
	return out, nil
}

func parseOne(part string) (Mapping, error) {
	name, rest, ok := strings.Cut(strings.TrimSpace(part), "=")
	if !ok || name == "" || rest == "" {
		return Mapping{}, &MappingError{Text: part, Msg: "want FIELD=COLUMN or FIELD=COLUMN:UNIT"}
	}
	f, ok := fieldNamed(name)
	if !ok {
		return Mapping{}, unknownField(part, name)
	}
	m := Mapping{Field: f}
	pieces := splitUnescaped(rest, ':')
	if n := len(pieces); n > 1 {
		unit, err := fieldUnit(f, pieces[n-1])
		if err != nil {
			return Mapping{}, &MappingError{Text: part, Msg: err.Error(), Advice: `write \: for a colon in a name`}
		}
		m.Unit = unit
		rest = strings.Join(pieces[:n-1], ":")
	}
	for _, key := range splitUnescaped(rest, '.') {
		m.Path = append(m.Path, unescape(key))
	}
	return m, nil
}

func unknownField(part, name string) error {
	e := &MappingError{Text: part, Msg: fmt.Sprintf("there is no field %q", name)}
	if near := diag.Nearest(name, fieldNames()); near != "" {
		e.Advice = fmt.Sprintf("did you mean %s?", near)
		return e
	}
	e.Advice = "a record has ts and " + namesOf(Records) + "; a window has t, the count total and " + namesOf(Windows)
	return e
}

func namesOf(k Kind) string {
	var names []string
	for f := range numRead {
		if of := fieldTable[f].of; (of == k || of == Unknown) && f != FieldTS && f != FieldT && f != FieldTotal {
			names = append(names, f.String())
		}
	}
	return strings.Join(names, ", ")
}

// fieldUnit reads the unit of a field and refuses one of another kind.
func fieldUnit(f Field, name string) (Unit, error) {
	u, ok := unitOf(name)
	want := f.value().units()
	switch {
	case want == noUnits:
		return NoUnit, fmt.Errorf("%s has no unit, %q is none", f, name)
	case ok && u.kind() == want:
		return u, nil
	case want == moneyUnits:
		return NoUnit, fmt.Errorf("%q is not a unit of %s: usd, musd (a thousandth) and uusd (a millionth) are", name, f)
	}
	return NoUnit, fmt.Errorf("%q is not a unit of %s: s, ms, us and ns are", name, f)
}

// splitUnescaped splits at every sep that no backslash precedes, and leaves
// the backslashes in.
func splitUnescaped(s string, sep byte) []string {
	var out []string
	start := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case sep:
			out = append(out, s[start:i])
			start = i + 1
		}
	}
	return append(out, s[start:])
}

func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
