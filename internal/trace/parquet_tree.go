package trace

import (
	"errors"
	"fmt"
	"math"

	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/compress/brotli"
	"github.com/parquet-go/parquet-go/compress/gzip"
	"github.com/parquet-go/parquet-go/compress/snappy"
	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/encoding/bitpacked"
	"github.com/parquet-go/parquet-go/encoding/bytestreamsplit"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/plain"
	"github.com/parquet-go/parquet-go/encoding/rle"
	pqformat "github.com/parquet-go/parquet-go/format"
)

// Of parquet-go only the parts are used that know the format, encodings and codecs.
// Its main package writes as well, Protocol Buffers and geometries among others, and
// what it makes ready for that at start-up every command would wait for.

// node is a group of columns of a Parquet file, or a column.
type node struct {
	element  *pqformat.SchemaElement
	children []*node
	index    int // of a column: its place among them
	levels   int // definition levels down to here: how many of its parents and itself may be missing
}

func (n *node) leaf() bool { return n.element.Type.Valid }

func (n *node) repeated() bool { return n.repetition() == pqformat.Repeated }

func (n *node) repetition() pqformat.FieldRepetitionType {
	if n.element.RepetitionType.Valid {
		return n.element.RepetitionType.V
	}
	return pqformat.Required
}

// treeReader puts the elements of a schema, which stand one after the other, depth
// first, into a tree.
type treeReader struct {
	elements []pqformat.SchemaElement
	next     int // the element that follows
	columns  int // columns so far
	children int // children that groups have claimed so far
}

// columnsOf returns the tree of a file's columns.
func columnsOf(meta *pqformat.FileMetaData) (*node, error) {
	return (&treeReader{elements: meta.Schema}).node(0, 0)
}

// node reads the next node with all that is in it. The bounds are those of the
// library.
func (t *treeReader) node(depth, levels int) (*node, error) {
	if t.next >= len(t.elements) {
		return nil, errors.New("a group has more columns than there are")
	}
	n := &node{element: &t.elements[t.next]}
	t.next++
	if depth > 0 && n.repetition() != pqformat.Required {
		levels++
	}
	if depth > math.MaxUint8 || levels > math.MaxUint8 || t.columns >= math.MaxUint16 {
		return nil, errors.New("columns are nested too deep, or too many")
	}
	n.levels = levels
	if n.leaf() {
		n.index = t.columns
		t.columns++
		return n, nil
	}
	most := int32(0)
	if n.element.NumChildren.Valid {
		most = n.element.NumChildren.V
	}
	if most < 0 || int(most) > len(t.elements)-1-t.children {
		return nil, errors.New("a group has more columns than there are")
	}
	t.children += int(most)
	for range most {
		child, err := t.node(depth+1, levels)
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, child)
	}
	return n, nil
}

// parquetType is what the values of a column mean and how they are kept.
type parquetType struct {
	meaning fmt.Stringer // a logical type of the format; nil: nothing beyond the kind
	kind    pqformat.Type
	length  int // of values that all have as many bytes
}

// String names the type.
func (t parquetType) String() string {
	switch {
	case t.meaning != nil:
		return t.meaning.String()
	case t.kind == pqformat.FixedLenByteArray:
		return fmt.Sprintf("FIXED_LEN_BYTE_ARRAY(%d)", t.length)
	}
	return t.kind.String()
}

// interval is what has no logical type.
type interval struct{}

// String implements [fmt.Stringer].
func (interval) String() string { return "INTERVAL" }

// typeOf returns the type of a column: its logical type, the one that its converted
// type has become, or none.
func typeOf(e *pqformat.SchemaElement) (parquetType, error) {
	t := parquetType{kind: e.Type.V, length: int(e.TypeLength.V)}
	switch l := e.LogicalType.Value.(type) {
	case nil, *pqformat.Float16Type, *pqformat.VariantType: // kept as bytes
		t.meaning = olderType(e)
	case fmt.Stringer:
		t.meaning = l
	}
	switch m := t.meaning.(type) {
	case *pqformat.StringType, *pqformat.EnumType, *pqformat.JsonType:
		t.kind = pqformat.ByteArray
	case *pqformat.DateType:
		t.kind = pqformat.Int32
	case *pqformat.TimestampType:
		t.kind = pqformat.Int64
	case *pqformat.IntType:
		if t.kind = pqformat.Int32; m.BitWidth == 64 {
			t.kind = pqformat.Int64
		}
	case *pqformat.DecimalType:
		switch {
		case t.kind == pqformat.FixedLenByteArray && e.TypeLength.Valid:
		case t.kind != pqformat.Int32 && t.kind != pqformat.Int64 && t.kind != pqformat.ByteArray:
			return t, fmt.Errorf("a decimal number is kept as %s", t.kind)
		}
	case nil:
		if t.kind == pqformat.FixedLenByteArray && !e.TypeLength.Valid {
			t.meaning = new(pqformat.NullType)
		}
	}
	return t, nil
}

// olderType returns the logical type that the converted type of older writers
// stands for, or nil.
func olderType(e *pqformat.SchemaElement) fmt.Stringer {
	if !e.ConvertedType.Valid {
		return nil
	}
	unit := func(v pqformat.TimeUnitValue) pqformat.TimeUnit { return pqformat.TimeUnit{Value: v} }
	millis, micros := unit(new(pqformat.MilliSeconds)), unit(new(pqformat.MicroSeconds))
	switch c := e.ConvertedType.V; c {
	case deprecated.UTF8:
		return new(pqformat.StringType)
	case deprecated.Map, deprecated.MapKeyValue:
		return new(pqformat.MapType)
	case deprecated.List:
		return new(pqformat.ListType)
	case deprecated.Enum:
		return new(pqformat.EnumType)
	case deprecated.Decimal:
		if e.Scale.Valid && e.Precision.Valid {
			return &pqformat.DecimalType{Scale: e.Scale.V, Precision: e.Precision.V}
		}
	case deprecated.Date:
		return new(pqformat.DateType)
	case deprecated.TimeMillis:
		return &pqformat.TimeType{IsAdjustedToUTC: true, Unit: millis}
	case deprecated.TimeMicros:
		return &pqformat.TimeType{IsAdjustedToUTC: true, Unit: micros}
	case deprecated.TimestampMillis:
		return &pqformat.TimestampType{IsAdjustedToUTC: true, Unit: millis}
	case deprecated.TimestampMicros:
		return &pqformat.TimestampType{IsAdjustedToUTC: true, Unit: micros}
	case deprecated.Uint8, deprecated.Uint16, deprecated.Uint32, deprecated.Uint64:
		return &pqformat.IntType{BitWidth: 8 << (c - deprecated.Uint8)}
	case deprecated.Int8, deprecated.Int16, deprecated.Int32, deprecated.Int64:
		return &pqformat.IntType{BitWidth: 8 << (c - deprecated.Int8), IsSigned: true}
	case deprecated.Json:
		return new(pqformat.JsonType)
	case deprecated.Bson:
		return new(pqformat.BsonType)
	case deprecated.Interval:
		return interval{}
	}
	return nil
}

var (
	plainEncoding      plain.Encoding
	olderDictionary    plain.DictionaryEncoding
	dictionaryEncoding rle.DictionaryEncoding
	packedEncoding     bitpacked.Encoding
	runEncoding        rle.Encoding
	deltaNumbers       delta.BinaryPackedEncoding
	deltaLengths       delta.LengthByteArrayEncoding
	deltaTexts         delta.ByteArrayEncoding
	splitEncoding      bytestreamsplit.Encoding
)

// encodingOf returns what decodes an encoding. What nothing decodes gets one that
// refuses everything.
func encodingOf(e pqformat.Encoding) encoding.Encoding {
	switch e {
	case pqformat.Plain:
		return &plainEncoding
	case olderDictionary.Encoding():
		return &olderDictionary
	case pqformat.RLEDictionary:
		return &dictionaryEncoding
	case pqformat.RLE:
		return &runEncoding
	case pqformat.BitPacked:
		return &packedEncoding
	case pqformat.DeltaBinaryPacked:
		return &deltaNumbers
	case pqformat.DeltaLengthByteArray:
		return &deltaLengths
	case pqformat.DeltaByteArray:
		return &deltaTexts
	case pqformat.ByteStreamSplit:
		return &splitEncoding
	}
	return encoding.NotSupported{}
}

var (
	snappyCodec snappy.Codec
	gzipCodec   gzip.Codec
	brotliCodec brotli.Codec
	zstdCodec   zstd.Codec
)

// codecOf returns what unpacks a codec's bytes, or nil.
func codecOf(c pqformat.CompressionCodec) compress.Codec {
	switch c {
	case pqformat.Snappy:
		return &snappyCodec
	case pqformat.Gzip:
		return &gzipCodec
	case pqformat.Brotli:
		return &brotliCodec
	case pqformat.Zstd:
		return &zstdCodec
	}
	return nil
}
