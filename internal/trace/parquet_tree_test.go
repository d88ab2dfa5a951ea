package trace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	pqformat "github.com/parquet-go/parquet-go/format"
	"pgregory.net/rapid"
)

// libraryLeaves has the library make the tree of a file's columns, for which it
// wants a file: one with no rows will do. It panics over some of what it refuses.
func libraryLeaves(meta *pqformat.FileMetaData) (said []string, err error) {
	defer func() {
		if what := recover(); what != nil {
			err = fmt.Errorf("%v", what)
		}
	}()
	table, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
	if err != nil {
		return nil, err
	}
	empty := append([]byte(parquetMagic), table...)
	empty = binary.LittleEndian.AppendUint32(empty, uint32(len(table)))
	empty = append(empty, parquetMagic...)
	file, err := parquet.OpenFile(bytes.NewReader(empty), int64(len(empty)), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	var walk func(c *parquet.Column)
	walk = func(c *parquet.Column) {
		if c.Leaf() {
			t := c.Type()
			kind := fmt.Sprint(t.Kind())
			if t.Kind() < 0 || t.LogicalType() != nil && fmt.Sprint(t) == "NULL" {
				kind = "NULL"
			}
			said = append(said, fmt.Sprintf("%s: column %d, level %d, repeated %t, type %s, kind %s", c.Name(), c.Index(), c.MaxDefinitionLevel(), c.Repeated(), t, kind))
		}
		for _, child := range c.Columns() {
			walk(child)
		}
	}
	walk(file.Root())
	return said, nil
}

func ownLeaves(meta *pqformat.FileMetaData) (said []string, err error) {
	root, err := columnsOf(meta)
	if err != nil {
		return nil, err
	}
	var walk func(n *node) error
	walk = func(n *node) error {
		if n.leaf() {
			t, err := typeOf(n.element)
			if err != nil {
				return err
			}
			kind := parquet.Kind(t.kind).String()
			if _, ok := t.meaning.(*pqformat.NullType); ok {
				kind = "NULL"
			}
			if _, err := formOf(t); err != nil {
				kind = "of no matter" // it is refused by its type
			}
			said = append(said, fmt.Sprintf("%s: column %d, level %d, repeated %t, type %s, kind %s", n.element.Name, n.index, n.levels, n.repeated(), t, kind))
		}
		for _, child := range n.children {
			if err := walk(child); err != nil {
				return err
			}
		}
		return nil
	}
	return said, walk(root)
}

// drawElement draws an element of a schema, whose parts need not fit together. The
// first has mostly all others in it.
func drawElement(t *rapid.T, i, others int) pqformat.SchemaElement {
	e := pqformat.SchemaElement{Name: fmt.Sprintf("c%d", i)}
	some := func(what string) bool { return rapid.Bool().Draw(t, what) }
	if some("repetition") {
		e.RepetitionType = thrift.New(pqformat.FieldRepetitionType(rapid.IntRange(0, 2).Draw(t, "repetition of")))
	}
	if i == 0 && some("flat") {
		e.NumChildren = thrift.New(int32(others))
		return e
	}
	if i == 0 || rapid.IntRange(0, 7).Draw(t, "group") == 0 {
		e.NumChildren = thrift.New(rapid.Int32Range(0, 3).Draw(t, "children"))
		return e
	}
	e.Type = thrift.New(pqformat.Type(rapid.IntRange(0, 7).Draw(t, "type")))
	if some("length") {
		e.TypeLength = thrift.New(rapid.Int32Range(1, 16).Draw(t, "length of"))
	}
	if some("scale") {
		e.Scale, e.Precision = thrift.New(int32(2)), thrift.New(int32(9))
	}
	if some("converted") {
		e.ConvertedType = thrift.New(deprecated.ConvertedType(rapid.IntRange(0, 21).Draw(t, "converted to")))
	}
	if some("logical") {
		micros := pqformat.TimeUnit{Value: new(pqformat.MicroSeconds)}
		e.LogicalType.Value = rapid.SampledFrom([]pqformat.LogicalTypeValue{
			new(pqformat.StringType), new(pqformat.EnumType), new(pqformat.JsonType), new(pqformat.BsonType), new(pqformat.UUIDType), new(pqformat.DateType), new(pqformat.NullType), new(pqformat.Float16Type),
			&pqformat.DecimalType{Scale: 1, Precision: 5}, &pqformat.TimestampType{Unit: micros, IsAdjustedToUTC: true}, &pqformat.TimeType{Unit: micros},
			&pqformat.IntType{BitWidth: 16}, &pqformat.IntType{BitWidth: 64, IsSigned: true}, &pqformat.IntType{BitWidth: 32, IsSigned: true},
		}).Draw(t, "logical of")
	}
	return e
}

// TestTreeIsThatOfTheLibrary draws schemas, some of which are none: what the library
// reads is read alike, and what it cannot is refused or read.
func TestTreeIsThatOfTheLibrary(t *testing.T) {
	read := 0
	rapid.Check(t, func(t *rapid.T) {
		meta := &pqformat.FileMetaData{Version: 1}
		n := rapid.IntRange(2, 8).Draw(t, "elements")
		for i := range n {
			meta.Schema = append(meta.Schema, drawElement(t, i, n-1))
		}
		want, err := libraryLeaves(meta)
		if err != nil {
			_, _ = ownLeaves(meta) // does not panic
			return
		}
		got, err := ownLeaves(meta)
		if err != nil {
			t.Fatalf("%v: %v", err, want)
		}
		for i := range min(len(got), len(want)) {
			if text, ok := strings.CutSuffix(got[i], "of no matter"); ok && strings.HasPrefix(want[i], text) {
				want[i] = got[i]
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("\n%q\nby the library:\n%q", got, want)
		}
		read += len(got)
	})
	if read < 50 {
		t.Errorf("only %d columns were compared", read)
	}
}
