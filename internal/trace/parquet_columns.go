package trace

import (
	"fmt"
	"strings"

	pqformat "github.com/parquet-go/parquet-go/format"

	"github.com/canaryctl/canaryctl/internal/diag"
)

// tableColumn is a column of a Parquet file, or a list of which there are columns.
type tableColumn struct {
	name   string // with dots, where it is in a group
	depth  int
	column *node
	list   bool // it holds several values for a row, or none
}

// leavesOf lists the columns of a file in their order. All that is in a list
// or a map goes by the name of that.
func leavesOf(root *node) (leaves []tableColumn) {
	var walk func(c *node, path []string)
	walk = func(c *node, path []string) {
		for _, child := range c.children {
			name := append(path[:len(path):len(path)], child.element.Name)
			switch {
			case child.repeated():
				leaves = append(leaves, tableColumn{name: strings.Join(name, "."), depth: len(name), list: true})
			case len(child.children) == 1 && child.children[0].repeated():
				leaves = append(leaves, tableColumn{name: strings.Join(name, "."), depth: len(name), list: true})
			case child.leaf():
				leaves = append(leaves, tableColumn{name: strings.Join(name, "."), depth: len(name), column: child})
			default:
				walk(child, name)
			}
		}
	}
	walk(root, nil)
	return leaves
}

func columnNames(leaves []tableColumn) []string {
	names := make([]string, len(leaves))
	for i := range leaves {
		names[i] = leaves[i].name
	}
	return names
}

// parquetColumn is a column that a field is read from.
type parquetColumn struct {
	field Field
	name  string
	at    int // its place among the file's columns
	kind  pqformat.Type
	form  form // of values of this kind
	nulls byte // definition levels below this one are nulls; 0: it has none
}

// place finds the columns of the plan's fields.
func (p *parquetRead) place(leaves []tableColumn) error {
	plan := p.run.plan
	p.indifferent = p.feed.records.arms.indifferent()
	p.careful = plan.kind != Records || plan.adjust != nil
	for _, col := range plan.columns {
		if err := p.placeOne(leaves, col); err != nil {
			return err
		}
	}
	opt := &p.feed.opt
	p.summed = !p.careful && !opt.whole && !opt.Distributions && !plan.streams()
	return nil
}

// placeOne finds the column of a field by its name, of two the one that is less
// deep.
func (p *parquetRead) placeOne(leaves []tableColumn, col column) error {
	found, err := findLeaf(leaves, col.path.String())
	switch {
	case err != nil:
		return err
	case found == nil && col.mapped:
		return missingColumn(leaves, col)
	case found == nil:
		return nil
	}
	p.fields.add(col.field)
	if p.useless(col.field) {
		return nil
	}
	if found.list {
		return p.refuse(col, "is a list or a map, not one value for each row")
	}
	typ, err := typeOf(found.column.element)
	if err != nil {
		return p.refuse(col, err.Error())
	}
	c := parquetColumn{field: col.field, name: found.name, at: found.column.index, kind: typ.kind, nulls: byte(found.column.levels)}
	if c.form, err = formOf(typ); err != nil {
		return p.refuse(col, err.Error())
	}
	p.columns = append(p.columns, c)
	return nil
}

// useless reports whether nothing depends on a field. Rows of a table are not
// compared with each other, as lines of a log are, which may be written twice.
func (p *parquetRead) useless(f Field) bool {
	switch f {
	case FieldUserID, FieldConversationID:
		return true
	case FieldArm, FieldVersion, FieldModel:
		return p.indifferent && p.run.plan.kind == Records
	}
	return false
}

func findLeaf(leaves []tableColumn, name string) (found *tableColumn, err error) {
	twice := false
	for i := range leaves {
		l := &leaves[i]
		switch {
		case l.name != name:
		case found == nil || l.depth < found.depth:
			found, twice = l, false
		case l.depth == found.depth:
			twice = true
		}
	}
	if twice {
		return nil, fmt.Errorf("two columns are named %s", printable(name))
	}
	return found, nil
}

// refuse says that the column of a field cannot be read.
func (p *parquetRead) refuse(col column, why string) error {
	name := printable(col.path.String())
	if col.mapped {
		return &MappingError{Text: col.field.String() + "=" + col.path.String(), Msg: name + " " + why, Advice: "map a column that holds one value for each row"}
	}
	return &InputError{File: p.run.name, Msg: "column " + name + " " + why, Advice: fmt.Sprintf("map another one, --map %s=COLUMN", col.field)}
}

// missingColumn says that a mapped column is not there.
func missingColumn(leaves []tableColumn, col column) error {
	name := col.path.String()
	e := &MappingError{Text: col.field.String() + "=" + name, Msg: fmt.Sprintf("there is no column %q", name)}
	var within []string
	for _, l := range leaves {
		if strings.HasPrefix(l.name, name+".") {
			within = append(within, l.name)
		}
	}
	names := columnNames(leaves)
	switch near := diag.Nearest(name, names); {
	case len(within) > 0:
		e.Msg, e.Advice = fmt.Sprintf("%q is a group of columns", name), "name the one that is meant: "+list(within)
	case near != "":
		e.Advice = fmt.Sprintf("did you mean %s?", near)
	default:
		e.Advice = "the columns are " + list(names)
	}
	return e
}

// form is how the values of a column are written.
type form struct {
	kind  formKind
	scale int  // of decimals: digits behind the point
	width int  // of decimals that all have as many bytes: how many
	unit  Unit // of timestamps
	utc   bool // timestamps are instants, not what a clock on a wall showed
}

type formKind uint8

const (
	formText formKind = iota
	formBool
	formInt32
	formInt64
	formUint32
	formUint64
	formFloat
	formDouble
	formDecimal32
	formDecimal64
	formDecimalBytes
	formDecimalFixed
	formStamp
	formInt96
	formDate
	formNull // nothing but nulls
)

// formOf tells how a column's values are written, or that nothing of the kind
// is read.
func formOf(typ parquetType) (form, error) {
	foreign := fmt.Errorf("is of the type %s, which is not read", typ)
	switch v := typ.meaning.(type) {
	case *pqformat.DecimalType:
		return form{kind: decimalForm(typ.kind), scale: int(v.Scale), width: typ.length}, nil
	case *pqformat.TimestampType:
		unit := stampUnit(v)
		if unit == NoUnit {
			return form{}, foreign
		}
		return form{kind: formStamp, unit: unit, utc: v.IsAdjustedToUTC}, nil
	case *pqformat.DateType:
		return form{kind: formDate}, nil
	case *pqformat.IntType:
		if !v.IsSigned && typ.kind == pqformat.Int32 {
			return form{kind: formUint32}, nil
		}
		if !v.IsSigned {
			return form{kind: formUint64}, nil
		}
	case *pqformat.NullType:
		return form{kind: formNull}, nil
	case nil, *pqformat.StringType, *pqformat.EnumType, *pqformat.JsonType:
	default:
		return form{}, foreign
	}
	kind, ok := plainForm(typ.kind)
	if !ok {
		return form{}, foreign
	}
	return form{kind: kind}, nil
}

func decimalForm(k pqformat.Type) formKind {
	switch k {
	case pqformat.Int32:
		return formDecimal32
	case pqformat.Int64:
		return formDecimal64
	case pqformat.ByteArray:
		return formDecimalBytes
	}
	return formDecimalFixed
}

// plainForm is the form of values without a meaning beyond their kind.
func plainForm(k pqformat.Type) (kind formKind, ok bool) {
	switch k {
	case pqformat.Boolean:
		return formBool, true
	case pqformat.Int32:
		return formInt32, true
	case pqformat.Int64:
		return formInt64, true
	case pqformat.Int96:
		return formInt96, true
	case pqformat.Float:
		return formFloat, true
	case pqformat.Double:
		return formDouble, true
	case pqformat.ByteArray:
		return formText, true
	}
	return 0, false
}

func stampUnit(t *pqformat.TimestampType) Unit {
	switch t.Unit.Value.(type) {
	case *pqformat.MilliSeconds:
		return Milliseconds
	case *pqformat.MicroSeconds:
		return Microseconds
	case *pqformat.NanoSeconds:
		return Nanoseconds
	}
	return NoUnit
}
