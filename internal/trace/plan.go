package trace

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/canaryctl/canaryctl/internal/diag"
)

// plan says which columns of a file hold which fields. It is made once the
// file's first names are known.
type plan struct {
	kind Kind // Unknown: times without counts
	time Field
	only fieldSet // fields of records that are wanted
	// timeless says that no column holds a time, which records judged whole
	// need not have.
	timeless bool
	// adjust, if not nil, mends the cells of every row: what a known shape
	// means by them, where that is not what they say.
	adjust  func(r *row)
	columns []column
	missed  []column // mapped columns of which no row had a value yet
	unit    [numFields]Unit
	unused  []string
	notes   []string
}

// column is a field that is looked for, and where.
type column struct {
	field  Field
	path   Path
	mapped bool // by the user: it should be there
}

func (p *plan) timeColumn() string {
	for _, c := range p.columns {
		if c.field == p.time {
			return c.path.String()
		}
	}
	return p.time.String()
}

// streams reports whether the plan has a field of streams or the status: what such
// rows say is not summed up.
func (p *plan) streams() bool {
	return slices.ContainsFunc(p.columns, func(c column) bool { return streamFields.has(c.field) })
}

// bind makes the plan for a file in which names are the columns or top-level
// keys.
func (o *Options) bind(file string, names []string) (*plan, error) {
	p := &plan{}
	mapped := o.mapped()
	if o.whole && isLLMPerf(names) {
		p.asLLMPerf(file, mapped, names)
	}
	err := p.findTime(file, mapped, names)
	if _, none := errors.AsType[*NoTimeError](err); none && o.whole {
		p.kind, p.timeless, err = Records, true, nil
	}
	if err != nil {
		return nil, err
	}
	if err := p.checkKind(o.Map); err != nil {
		return nil, err
	}
	p.only = o.restsOn()
	p.findRest(mapped, names)
	return p, nil
}

// bindPoints makes the plan for a Prometheus answer, whose time needs no
// finding.
func (o *Options) bindPoints(names []string) (*plan, error) {
	p := &plan{}
	p.set(FieldT, Path{"t"}, false, Milliseconds, true) // model.Time counts milliseconds
	if err := p.checkKind(o.Map); err != nil {
		return nil, err
	}
	p.findRest(o.mapped(), names)
	return p, nil
}

// checkKind refuses a mapped field that rows of the plan's kind do not have:
// it would be left out in silence.
func (p *plan) checkKind(maps []Mapping) error {
	for _, m := range maps {
		of := fieldTable[m.Field].of
		if p.kind == Unknown || m.Field >= numRead || of == Unknown || of == p.kind || m.Field == FieldTS || m.Field == FieldT {
			continue
		}
		e := &MappingError{Text: m.String()}
		e.Msg = fmt.Sprintf("%s is a figure of %s, and the rows are %s, by their time (%s)", m.Field, of, p.kind, p.time)
		e.Advice = "a request has ts, a window has t and total: map the time as the one or the other"
		return e
	}
	return nil
}

func (o *Options) mapped() map[Field]Mapping {
	mapped := make(map[Field]Mapping, len(o.Map))
	for _, m := range o.Map {
		mapped[m.Field] = m
	}
	return mapped
}

// findRest looks for all other fields of the plan's kind, under canaryctl's
// own names where they are not mapped.
func (p *plan) findRest(mapped map[Field]Mapping, names []string) {
	for f := range numRead {
		of := fieldTable[f].of
		if p.kind == Unknown || f == FieldTS || f == FieldT || of != Unknown && of != p.kind {
			continue
		}
		if m, ok := mapped[f]; ok {
			p.add(column{f, m.Path, true}, m.Unit)
		} else if p.kind == Windows || p.only.has(f) {
			p.add(column{field: f, path: Path{f.String()}}, NoUnit)
		}
	}
	p.noteUnits()
	p.findUnused(names)
}

func (p *plan) add(c column, u Unit) {
	p.columns = append(p.columns, c)
	p.unit[c.field] = u
	if c.mapped {
		p.missed = append(p.missed, c)
	}
}

// see strikes the mapped columns off that a row has.
func (p *plan) see(r *row) {
	if len(p.missed) > 0 {
		p.missed = slices.DeleteFunc(p.missed, func(c column) bool { return r.cells[c.field].kind != absent })
	}
}

// strike strikes off the mapped columns of fields that rows were seen to have.
func (p *plan) strike(seen fieldSet) {
	if len(p.missed) > 0 && seen != 0 {
		p.missed = slices.DeleteFunc(p.missed, func(c column) bool { return seen.has(c.field) })
	}
}

// findTime settles where the time is and what the rows are: by --map, by
// canaryctl's own names, or by a guess that is said.
func (p *plan) findTime(file string, mapped map[Field]Mapping, names []string) error {
	t, mappedT := mapped[FieldT]
	ts, mappedTS := mapped[FieldTS]
	_, counted := mapped[FieldTotal]
	counted = counted || slices.Contains(names, FieldTotal.String())
	switch {
	case mappedT && mappedTS:
		return &MappingError{Text: ts.String(), Msg: "ts and t are both mapped", Advice: "ts is the start of a request, t the start of a window; map one of them"}
	case mappedT:
		p.set(FieldT, t.Path, true, t.Unit, counted)
	case mappedTS:
		p.set(FieldTS, ts.Path, true, ts.Unit, true)
	case slices.Contains(names, "t") && (counted || !slices.Contains(names, "ts")):
		p.set(FieldT, Path{"t"}, false, NoUnit, counted)
	case slices.Contains(names, "ts") && (!counted || ofRequest(names)):
		p.set(FieldTS, Path{"ts"}, false, NoUnit, true)
		if counted {
			p.notes = append(p.notes, file+": rows with ts are requests, and their total is not used; --map t=ts would read them as windows, --map ts=ts settle it")
		}
	default:
		return p.guessTime(file, names, counted, mapped)
	}
	return nil
}

// set fixes the time's field and place. Without counts the rows have no kind.
func (p *plan) set(f Field, path Path, mapped bool, u Unit, counts bool) {
	p.time = f
	p.add(column{f, path, mapped}, u)
	if counts {
		p.kind = fieldTable[f].of
	}
}

// guessTime takes the first column with a usual name for the time. Rows are
// windows if they have a total, and records if they have anything else that a
// record has: a time and some value alone are neither.
func (p *plan) guessTime(file string, names []string, counted bool, mapped map[Field]Mapping) error {
	name, ok := timeName(names)
	if !ok {
		return &NoTimeError{File: file, Columns: names}
	}
	switch {
	case counted:
		p.set(FieldT, Path{name}, false, NoUnit, true)
	default:
		p.set(FieldTS, Path{name}, false, NoUnit, len(mapped) > 0 || knowsRecordField(names))
	}
	p.notes = append(p.notes, fmt.Sprintf("%s: the time is taken from %s, a guess from its name; --map %s=%s would settle it", file, printable(name), p.time, name))
	return nil
}

func timeName(names []string) (string, bool) {
	for _, want := range timeNames {
		for _, n := range names {
			if strings.ToLower(n) == want {
				return n, true
			}
		}
	}
	return "", false
}

// otherUnits are endings of names that say a unit other than milliseconds.
var otherUnits = []string{"_s", "_sec", "_secs", "_seconds", "_us", "_ns", "_micros", "_nanos", "_usec", "_nsec"}

// noteUnits says in which unit a mapped latency is taken when its name says
// another.
func (p *plan) noteUnits() {
	for _, c := range p.columns {
		if !c.mapped || c.field.value() != latencyValue || p.unit[c.field] != NoUnit {
			continue
		}
		name := strings.ToLower(c.path[len(c.path)-1])
		if slices.ContainsFunc(otherUnits, func(e string) bool { return strings.HasSuffix(name, e) }) {
			p.notes = append(p.notes, fmt.Sprintf("%s is taken as milliseconds though its name says otherwise; --map %s=%s:s would read seconds", c.path, c.field, c.path))
		}
	}
}

// findUnused lists the names that no field is read from, and says so of one
// that is nearly a field's.
func (p *plan) findUnused(names []string) {
	var looked []string
	for _, c := range p.columns {
		looked = append(looked, c.path.String(), c.path[0])
	}
	for _, n := range names {
		if slices.Contains(looked, n) {
			continue
		}
		if f, ok := fieldNamed(n); ok && (f >= numRead || p.kind == Records && fieldTable[f].of != Windows && !p.only.has(f)) {
			continue
		}
		p.unused = append(p.unused, n)
		if near := p.meant(n, names); near != "" {
			p.notes = append(p.notes, fmt.Sprintf("column %s is not used; did you mean %s?", printable(n), near))
		}
	}
}

// meant returns the field of the rows' kind that a name which none has was meant
// to be, "" where none is near or the field is among the names as well. A byte
// that was damaged into invalid UTF-8 counts as one.
func (p *plan) meant(name string, names []string) string {
	near := diag.Nearest(strings.ReplaceAll(name, "\uFFFD", "?"), fieldsOf(p.kind))
	if len(name) <= 3 || slices.Contains(names, near) {
		return ""
	}
	return near
}
