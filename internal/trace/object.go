package trace

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/canaryctl/canaryctl/internal/jsonscan"
)

// objectReader takes the cells of a plan out of JSON objects. The plan is made
// from the first object's keys.
type objectReader struct {
	bind   func(names []string) (*plan, error)
	plan   *plan
	flat   map[string][]Field // fields that are keys of the object itself
	others map[string]bool    // keys that no field is read from, as far as met
	told   int                // how many of those were said
	nested []column           // fields further in
	noTime *NoTimeError       // the first object's, until one with a time comes
}

// fill reads an object, which must be valid JSON, into r. It returns a *badRow
// where the row is no object or has no time.
func (o *objectReader) fill(r *row, obj []byte) error {
	if len(obj) == 0 || obj[0] != '{' {
		return &badRow{"not a JSON object"}
	}
	if o.plan == nil {
		if err := o.makePlan(obj); err != nil {
			return err
		}
	}
	twice, strange := false, false
	jsonscan.EachMember(obj, func(key, value []byte) {
		fields, ok := o.flat[string(key)]
		strange = strange || !ok && !o.others[string(key)]
		for _, f := range fields {
			twice = twice || r.cells[f].kind != absent
			r.cells[f] = jsonCell(value) // of two the last one, as everywhere in JSON
		}
	})
	r.twice = twice
	if strange && len(o.others) < maxOthers {
		o.meet(r.line, obj)
	}
	for _, c := range o.nested {
		if value, ok := findPath(obj, c.path); ok {
			r.cells[c.field] = jsonCell(value)
		}
	}
	return nil
}

// maxOthers bounds how many keys are remembered: past it keys are data.
const maxOthers = 1000

// meet remembers the keys of an object that no field is read from, and says so
// of one that is nearly a field's: a figure that a single row misspells would
// be missing in silence.
func (o *objectReader) meet(line int64, obj []byte) {
	names := namesIn(obj)
	for _, name := range names {
		if o.flat[name] != nil || o.others[name] || len(o.others) == maxOthers {
			continue
		}
		o.others[name] = true
		if _, known := fieldNamed(name); known || slices.Contains(o.plan.unused, name) || slices.ContainsFunc(o.nested, func(c column) bool { return c.path[0] == name || c.path.String() == name }) {
			continue
		}
		if near := o.plan.meant(name, names); near != "" && o.told < keptBadLines {
			o.told++
			o.plan.notes = append(o.plan.notes, fmt.Sprintf("key %s, first in row %d, is not used; did you mean %s?", printable(name), line, near))
		}
	}
}

// namesIn lists the keys of an object, each once.
func namesIn(obj []byte) (names []string) {
	seen := map[string]bool{}
	jsonscan.EachMember(obj, func(key, _ []byte) {
		if name := string(key); !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	})
	return names
}

func (o *objectReader) makePlan(obj []byte) error {
	names := namesIn(obj)
	p, err := o.bind(names)
	if e, ok := errors.AsType[*NoTimeError](err); ok {
		if o.noTime == nil {
			o.noTime = e
		}
		return &badRow{"no time in it: " + list(names)}
	}
	if err != nil {
		return err
	}
	o.plan, o.noTime = p, nil
	o.others = make(map[string]bool)
	o.flat = make(map[string][]Field)
	for _, c := range p.columns {
		if len(c.path) == 1 {
			o.flat[c.path[0]] = append(o.flat[c.path[0]], c.field)
		} else {
			o.nested = append(o.nested, c)
		}
	}
	return nil
}

// findPath looks a path up in an object: the longest literal key first, then
// the keys inside it.
func findPath(obj []byte, path Path) ([]byte, bool) {
	if len(obj) == 0 || obj[0] != '{' {
		return nil, false
	}
	for n := len(path); n > 0; n-- {
		value, ok := member(obj, strings.Join(path[:n], "."))
		if ok && n < len(path) {
			value, ok = findPath(value, path[n:])
		}
		if ok {
			return value, true
		}
	}
	return nil, false
}

// member returns the value of a key, the last one where it is there twice.
func member(obj []byte, name string) (value []byte, ok bool) {
	jsonscan.EachMember(obj, func(k, v []byte) {
		if string(k) == name {
			value, ok = v, true
		}
	})
	return value, ok
}

// jsonCell is a JSON value as a cell. Blanks around a text say nothing, as in CSV.
func jsonCell(v []byte) cell {
	switch v[0] {
	case '"':
		return scalarCell(bytes.TrimSpace(jsonscan.Text(v)))
	case 'n':
		return cell{kind: null}
	case '{', '[':
		return cell{kind: composite, text: v}
	}
	return cell{kind: scalar, text: v}
}
