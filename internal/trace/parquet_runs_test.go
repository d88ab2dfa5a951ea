package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go/compress/snappy"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	pqformat "github.com/parquet-go/parquet-go/format"
	"pgregory.net/rapid"
)

// pageSpec is a column of one page, made by hand.
type pageSpec struct {
	name     string
	kind     pqformat.Type
	optional bool
	version  int // of the page
	encoding pqformat.Encoding
	levels   []byte
	values   []byte
	entries  []byte // of a dictionary, and how many they are
	count    int32
}

// writePages writes a Parquet file with pages of n rows, packed with snappy.
func writePages(t testing.TB, n int32, pages ...pageSpec) []byte {
	t.Helper()
	marshal := func(v any) []byte {
		b, err := thrift.Marshal(new(thrift.CompactProtocol), v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	pack := func(b []byte) []byte {
		packed, err := new(snappy.Codec).Encode(nil, b)
		if err != nil {
			t.Fatal(err)
		}
		return packed
	}
	f := bytes.NewBufferString(parquetMagic)
	group := pqformat.RowGroup{NumRows: int64(n)}
	schema := []pqformat.SchemaElement{{Name: "rows", NumChildren: thrift.New(int32(len(pages)))}}
	for _, p := range pages {
		chunk := pqformat.ColumnMetaData{Type: p.kind, Codec: pqformat.Snappy, PathInSchema: []string{p.name}, NumValues: int64(n), DataPageOffset: int64(f.Len())}
		put := func(h pqformat.PageHeader, plain int, packed []byte) {
			h.UncompressedPageSize, h.CompressedPageSize = int32(plain), int32(len(packed))
			f.Write(marshal(&h))
			f.Write(packed)
		}
		if p.entries != nil {
			put(pqformat.PageHeader{Type: pqformat.DictionaryPage, DictionaryPageHeader: thrift.New(pqformat.DictionaryPageHeader{NumValues: p.count, Encoding: pqformat.Plain})}, len(p.entries), pack(p.entries))
		}
		if p.version == 2 {
			var values []byte
			if len(p.values) > 0 {
				values = pack(p.values)
			}
			put(pqformat.PageHeader{Type: pqformat.DataPageV2, DataPageHeaderV2: thrift.New(pqformat.DataPageHeaderV2{NumValues: n, NumRows: n, Encoding: p.encoding, DefinitionLevelsByteLength: int32(len(p.levels)), IsCompressed: thrift.New(true)})},
				len(p.levels)+len(p.values), slices.Concat(p.levels, values))
		} else {
			plain := p.values
			if p.optional {
				plain = slices.Concat(sized(p.levels), p.values)
			}
			put(pqformat.PageHeader{Type: pqformat.DataPage, DataPageHeader: thrift.New(pqformat.DataPageHeader{NumValues: n, Encoding: p.encoding, DefinitionLevelEncoding: pqformat.RLE, RepetitionLevelEncoding: pqformat.RLE})}, len(plain), pack(plain))
		}
		chunk.TotalCompressedSize = int64(f.Len()) - chunk.DataPageOffset
		group.Columns = append(group.Columns, pqformat.ColumnChunk{MetaData: chunk})
		repetition := pqformat.Required
		if p.optional {
			repetition = pqformat.Optional
		}
		schema = append(schema, pqformat.SchemaElement{Name: p.name, Type: thrift.New(p.kind), RepetitionType: thrift.New(repetition)})
	}
	table := marshal(&pqformat.FileMetaData{Version: 2, NumRows: int64(n), Schema: schema, RowGroups: []pqformat.RowGroup{group}})
	f.Write(binary.LittleEndian.AppendUint32(table, uint32(len(table))))
	f.WriteString(parquetMagic)
	return f.Bytes()
}

// sized puts the length of some bytes before them.
func sized(b []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// timesPage is a column of times, a second apart.
func timesPage(n int) pageSpec {
	var values []byte
	for i := range n {
		values = binary.LittleEndian.AppendUint64(values, uint64(someStart.UnixMilli()+int64(i)*1000))
	}
	return pageSpec{name: "ts", kind: pqformat.Int64, version: 1, encoding: pqformat.Plain, values: values}
}

// solvedOf reads a file and counts what is judged and what is solved in it.
func solvedOf(t *testing.T, file []byte) (judged, solved int64, err error) {
	t.Helper()
	d, err := readTable(t, Options{}, file)
	if err != nil {
		return 0, 0, err
	}
	for _, w := range d.Windows {
		judged += w.Judged
		solved += w.Solved
	}
	return judged, solved, nil
}

// drawRuns draws runs of values of so many bits, some of them packed, and the
// values in them, the last of which are padding.
func drawRuns(t *rapid.T, width int, most uint32) (src []byte, values []uint32, padding int) {
	one := rapid.Uint32Range(0, most)
	for range rapid.IntRange(1, 6).Draw(t, "runs") {
		if rapid.Bool().Draw(t, "equal") {
			n, v := rapid.IntRange(1, 300).Draw(t, "length"), one.Draw(t, "value")
			src = binary.AppendUvarint(src, uint64(n)<<1)
			src = append(src, binary.LittleEndian.AppendUint32(nil, v)[:(width+7)/8]...)
			values, padding = append(values, slices.Repeat([]uint32{v}, n)...), 0
			continue
		}
		groups := rapid.IntRange(1, 9).Draw(t, "groups")
		src = binary.AppendUvarint(src, uint64(groups)<<1|1)
		word, have := uint64(0), 0
		for range 8 * groups {
			v := one.Draw(t, "packed")
			values = append(values, v)
			word |= uint64(v) << have
			for have += width; have >= 8; have -= 8 {
				src, word = append(src, byte(word)), word>>8
			}
		}
		padding = rapid.IntRange(0, 8*groups-1).Draw(t, "padding")
	}
	return src, values, padding
}

func TestRunsAreReadAsTheFormatHasThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 12).Draw(t, "width")
		src, want, padding := drawRuns(t, width, 1<<width-1)
		n := len(want) - padding
		runs, err := neededRuns(append(src, 0xff, 0xff, 0xff), width, n)
		if err != nil || !bytes.Equal(runs, src) {
			t.Fatalf("the runs of % x are % x: %v", src, runs, err)
		}
		got, err := decodeIndex(nil, append([]byte{byte(width)}, src...), n)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d values of %d: %v", len(got), len(want), err)
		}
		for i, v := range got {
			if uint32(v) != want[i] {
				t.Fatalf("value %d is %d and not %d", i, v, want[i])
			}
		}
		if width > 1 {
			return
		}
		var c cells
		c.form.kind = formBool
		if err := c.decode(pqformat.RLE, sized(src), n); err != nil || c.n != n {
			t.Fatalf("%d booleans of %d: %v", c.n, n, err)
		}
		for i := range n {
			if c.bit(i) != (want[i] == 1) {
				t.Fatalf("boolean %d is %t", i, c.bit(i))
			}
		}
	})
}

func TestBooleansInRunsAreCounted(t *testing.T) {
	library, err := (&rle.Encoding{BitWidth: 1}).EncodeBoolean(nil, []byte{0xff, 0xff})
	if err != nil {
		t.Fatal(err)
	}
	mixed, err := (&rle.Encoding{BitWidth: 1}).EncodeBoolean(nil, []byte{0x5a, 0x03})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		n      int
		values []byte
		want   int64
	}{
		{"one run of true", 16, sized([]byte{16 << 1, 1}), 16},
		{"one run of false", 16, sized([]byte{16 << 1, 0}), 0},
		{"runs that are no eights", 8, sized([]byte{3 << 1, 0, 5 << 1, 1}), 5},
		{"a single row", 1, sized([]byte{1 << 1, 1}), 1},
		{"packed", 16, sized([]byte{2<<1 | 1, 0x0f, 0x81}), 6},
		{"packed and padded", 11, sized([]byte{2<<1 | 1, 0x0f, 0x83}), 6},
		{"packed after a run", 9, sized([]byte{3 << 1, 1, 1<<1 | 1, 0x21}), 5},
		{"packed and padded to 32", 11, sized([]byte{4<<1 | 1, 0x0f, 0x03, 0, 0}), 6},
		{"more bytes behind them", 16, append(sized([]byte{16 << 1, 1}), 0xff, 0xff), 16},
		{"written by the library", 16, library, 16},
		{"written by the library for 13", 13, library, 13},
		{"mixed, written by the library", 16, mixed, 6},
	} {
		for version := 1; version <= 2; version++ {
			file := writePages(t, int32(c.n), timesPage(c.n), pageSpec{name: "solved", kind: pqformat.Boolean, version: version, encoding: pqformat.RLE, values: c.values})
			judged, solved, err := solvedOf(t, file)
			if err != nil || judged != int64(c.n) || solved != c.want {
				t.Errorf("%s, version %d: %d of %d solved, want %d of %d: %v", c.name, version, solved, judged, c.want, c.n, err)
			}
		}
	}
}

// Eleven rows of which every third is null.
func TestBooleansInRunsSkipNulls(t *testing.T) {
	for version := 1; version <= 2; version++ {
		file := writePages(t, 11, timesPage(11), pageSpec{
			name: "solved", kind: pqformat.Boolean, optional: true, version: version, encoding: pqformat.RLE,
			levels: []byte{2<<1 | 1, 0b10110110, 0b101}, values: sized([]byte{2 << 1, 0, 5 << 1, 1}),
		})
		if judged, solved, err := solvedOf(t, file); err != nil || judged != 7 || solved != 5 {
			t.Errorf("version %d: %d of %d solved: %v", version, solved, judged, err)
		}
	}
}

func TestPageOfNullsHasNoBytes(t *testing.T) {
	for _, c := range []struct {
		kind     pqformat.Type
		name     string
		encoding pqformat.Encoding
	}{
		{pqformat.Double, "latency_ms", pqformat.Plain},
		{pqformat.Double, "latency_ms", pqformat.ByteStreamSplit},
		{pqformat.Double, "latency_ms", pqformat.RLEDictionary},
		{pqformat.Int64, "latency_ms", pqformat.DeltaBinaryPacked},
		{pqformat.Int32, "latency_ms", pqformat.DeltaBinaryPacked},
		{pqformat.ByteArray, "version", pqformat.Plain},
		{pqformat.ByteArray, "version", pqformat.DeltaLengthByteArray},
		{pqformat.ByteArray, "version", pqformat.DeltaByteArray},
		{pqformat.Boolean, "solved", pqformat.Plain},
		{pqformat.Boolean, "solved", pqformat.RLE},
	} {
		nulls := pageSpec{name: c.name, kind: c.kind, optional: true, version: 2, encoding: c.encoding, levels: []byte{16 << 1, 0}}
		if c.encoding == pqformat.RLEDictionary {
			nulls.entries, nulls.count = make([]byte, 8), 1
		}
		d, err := readTable(t, Options{}, writePages(t, 16, timesPage(16), nulls))
		if err != nil || d.Rows != 16 {
			t.Errorf("%s in %s: %v, %d rows", c.name, c.encoding, err, d.Rows)
		}
	}
}

// A few bytes that say they are two thousand million values cost nothing.
func TestRunsLongerThanTheirPageAreDamage(t *testing.T) {
	long := func(v byte) []byte { return append(binary.AppendUvarint(nil, math.MaxInt32<<1), v) }
	packed := binary.AppendUvarint(nil, math.MaxInt32<<1|1)
	latency := pageSpec{name: "latency_ms", kind: pqformat.Double, encoding: pqformat.RLEDictionary, entries: make([]byte, 8), count: 1}
	places := func(b ...byte) pageSpec { p := latency; p.values = b; return p }
	levels := func(b ...byte) pageSpec {
		p := latency
		p.optional, p.levels, p.values = true, b, []byte{1, 16 << 1, 0}
		return p
	}
	bools := func(b []byte) pageSpec {
		return pageSpec{name: "solved", kind: pqformat.Boolean, encoding: pqformat.RLE, values: b}
	}
	for _, c := range []struct {
		name string
		page pageSpec
		want string
	}{
		{"places", places(append([]byte{1}, long(0)...)...), "a run of 2147483647 values where 16 are left"},
		{"places of no bits", places(append([]byte{0}, long(0)...)...), "a run of 2147483647 values where 16 are left"},
		{"packed places of no bits", places(append([]byte{0}, packed...)...), "values where 16 are left"},
		{"packed places that are not there", places(append([]byte{1}, packed...)...), "ends too early"},
		{"packed places of which few are there", places(append(append([]byte{1}, packed...), 0, 0)...), "values where 16 are left"},
		{"a second run", places(append([]byte{1, 9 << 1, 0}, long(0)...)...), "a run of 2147483647 values where 7 are left"},
		{"a length without an end", places(1, 0xff, 0xff), "the length of a run cannot be read"},
		{"levels", levels(long(0)...), "a run of 2147483647 values where 16 are left"},
		{"booleans", bools(sized(long(1))), "a run of 2147483647 values where 16 are left"},
		{"booleans longer than their page", bools([]byte{3, 0, 0, 0, 16 << 1, 1}), "ends too early"},
		{"booleans without a length", bools([]byte{16 << 1, 1}), "ends too early"},
		{"too few booleans", bools(sized([]byte{15 << 1, 1})), "15 values for 16 rows"},
	} {
		for version := 1; version <= 2; version++ {
			c.page.version = version
			file := writePages(t, 16, timesPage(16), c.page)
			start := time.Now()
			_, err := readTable(t, Options{}, file)
			e, ok := errors.AsType[*InputError](err)
			if !ok || !strings.HasPrefix(e.Msg, "damaged") || !strings.Contains(e.Error(), c.want) {
				t.Errorf("%s, version %d: error %v, want %q", c.name, version, err, c.want)
			}
			if took := time.Since(start); took > time.Second {
				t.Errorf("%s, version %d: it took %s", c.name, version, took)
			}
		}
	}
	if _, err := neededRuns([]byte{1<<1 | 1}, 8, 8); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a packed run without bytes: %v", err)
	}
}

func TestNegativeNumberOfValuesIsTold(t *testing.T) {
	for version := 1; version <= 2; version++ {
		page := timesPage(16)
		page.version = version
		file := writePages(t, 16, page)
		h, size, err := pageHeader(bytes.NewReader(file), 4)
		if err != nil {
			t.Fatal(err)
		}
		h.DataPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumValues = -16, -16
		head, err := thrift.Marshal(new(thrift.CompactProtocol), &h)
		if err != nil || int64(len(head)) != size {
			t.Fatalf("%d bytes for %d: %v", len(head), size, err)
		}
		copy(file[4:], head)
		_, err = readTable(t, Options{}, file)
		if e, ok := errors.AsType[*InputError](err); !ok || !strings.Contains(e.Error(), "a page is said to have -16 values") {
			t.Errorf("version %d: error %v", version, err)
		}
	}
}
