package trace

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/compress/brotli"
	"github.com/parquet-go/parquet-go/compress/gzip"
	"github.com/parquet-go/parquet-go/compress/lz4"
	"github.com/parquet-go/parquet-go/deprecated"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
)

// readTable reads Parquet files given as bytes, as ReadFiles does files.
func readTable(t testing.TB, opt Options, files ...[]byte) (*Data, error) {
	t.Helper()
	f := newFeed(opt)
	var names []string
	for i, b := range files {
		name := fmt.Sprintf("t%d.parquet", i)
		names = append(names, name)
		run := &fileRun{name: name, src: &source{name: name}, latest: -maxTime}
		if err := f.readParquet(context.Background(), run.src, bytes.NewReader(b), int64(len(b)), run, nil); err != nil {
			return f.data, err
		}
		f.noteFile(run)
	}
	return f.data, f.finish(names)
}

// columnSpec is a column of a file to be written.
type columnSpec struct {
	name   string
	node   parquet.Node
	values []any // nil is null; what valueOf takes
}

// writeTable writes a Parquet file. All columns have as many values.
func writeTable(t testing.TB, columns []columnSpec, options ...parquet.WriterOption) []byte {
	t.Helper()
	group := parquet.Group{}
	for _, c := range columns {
		at := group
		path := strings.Split(c.name, ".")
		for _, name := range path[:len(path)-1] {
			if at[name] == nil {
				at[name] = parquet.Group{}
			}
			at = at[name].(parquet.Group)
		}
		at[path[len(path)-1]] = c.node
	}
	schema := parquet.NewSchema("rows", group)
	var buf bytes.Buffer
	w := parquet.NewWriter(&buf, append([]parquet.WriterOption{schema}, options...)...)
	columns = slices.Clone(columns)
	slices.SortFunc(columns, func(a, b columnSpec) int { return strings.Compare(a.name, b.name) })
	for i := range len(columns[0].values) {
		var row parquet.Row
		for at, c := range columns {
			level := 0
			if c.node.Optional() && c.values[i] != nil {
				level = 1
			}
			row = append(row, valueOf(c.values[i]).Level(0, level, at))
		}
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func valueOf(v any) parquet.Value {
	switch v := v.(type) {
	case nil:
		return parquet.NullValue()
	case deprecated.Int96:
		return parquet.Int96Value(v)
	case fixedBytes:
		return parquet.FixedLenByteArrayValue(v)
	case []byte:
		return parquet.ByteArrayValue(v)
	case uint32:
		return parquet.Int32Value(int32(v))
	case uint64:
		return parquet.Int64Value(int64(v))
	}
	return parquet.ValueOf(v)
}

type fixedBytes []byte

// kindOfColumn writes one field in one way, with the same values as texts for CSV.
type kindOfColumn struct {
	node  parquet.Node
	value func(t *rapid.T) (v any, text string)
}

func double(v float64) (any, string)  { return v, strconv.FormatFloat(v, 'g', -1, 64) }
func single(v float32) (any, string)  { return v, strconv.FormatFloat(float64(v), 'g', -1, 32) }
func integer(v int64) (any, string)   { return v, strconv.FormatInt(v, 10) }
func integer32(v int32) (any, string) { return v, strconv.FormatInt(int64(v), 10) }

// decimalText is an integer with a decimal point before its last two digits.
func decimalText(v *big.Int, scale int) string {
	return new(big.Rat).SetFrac(v, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)).FloatString(scale)
}

// twosComplement writes an integer as so many bytes.
func twosComplement(v *big.Int, n int) []byte {
	if v.Sign() < 0 {
		v = new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	}
	return v.FillBytes(make([]byte, n))
}

// numberKinds are ways to write numbers up to most, some of them bad.
func numberKinds(most float64) map[string]kindOfColumn {
	decimal := func(t *rapid.T) *big.Int {
		return big.NewInt(int64(rapid.Float64Range(-0.01*most, most).Draw(t, "decimal") * 100))
	}
	doubles := rapid.OneOf(rapid.Float64Range(0, most), rapid.Float64Range(0, most), rapid.Map(rapid.IntRange(0, 1000), func(n int) float64 { return float64(n) / 1000 * most }),
		rapid.SampledFrom([]float64{0, math.Copysign(0, -1), -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e-12, 5e-324, 1e300, 2.5e-9, 0.5e-9, 1e6, 1000000.0001}))
	return map[string]kindOfColumn{
		"double": {parquet.Leaf(parquet.DoubleType), func(t *rapid.T) (any, string) { return double(doubles.Draw(t, "double")) }},
		"float":  {parquet.Leaf(parquet.FloatType), func(t *rapid.T) (any, string) { return single(float32(doubles.Draw(t, "float"))) }},
		"int32":  {parquet.Int(32), func(t *rapid.T) (any, string) { return integer32(rapid.Int32Range(-3, int32(most)).Draw(t, "int")) }},
		"int64": {parquet.Int(64), func(t *rapid.T) (any, string) {
			return integer(rapid.OneOf(rapid.Int64Range(0, int64(most)), rapid.Int64()).Draw(t, "int"))
		}},
		"uint32": {parquet.Uint(32), func(t *rapid.T) (any, string) {
			v := rapid.OneOf(rapid.Uint32Range(0, uint32(most)), rapid.Uint32()).Draw(t, "uint")
			return v, strconv.FormatUint(uint64(v), 10)
		}},
		"uint64": {parquet.Uint(64), func(t *rapid.T) (any, string) {
			v := rapid.OneOf(rapid.Uint64Range(0, uint64(most)), rapid.Uint64()).Draw(t, "uint")
			return v, strconv.FormatUint(v, 10)
		}},
		"decimal32": {parquet.Decimal(2, 9, parquet.Int32Type), func(t *rapid.T) (any, string) {
			v := decimal(t)
			return int32(v.Int64()), decimalText(big.NewInt(int64(int32(v.Int64()))), 2)
		}},
		"decimal64": {parquet.Decimal(2, 18, parquet.Int64Type), func(t *rapid.T) (any, string) {
			v := decimal(t)
			return v.Int64(), decimalText(v, 2)
		}},
		"decimal fixed": {parquet.Decimal(2, 20, parquet.FixedLenByteArrayType(12)), func(t *rapid.T) (any, string) {
			v := decimal(t)
			return fixedBytes(twosComplement(v, 12)), decimalText(v, 2)
		}},
		"decimal bytes": {parquet.Decimal(20, 38, parquet.ByteArrayType), func(t *rapid.T) (any, string) {
			v := new(big.Int).Mul(decimal(t), big.NewInt(1e18))
			return twosComplement(v, 16), decimalText(v, 20)
		}},
		"text": {parquet.String(), func(t *rapid.T) (any, string) {
			_, s := double(doubles.Draw(t, "double"))
			s = rapid.SampledFrom([]string{s, s, s, " " + s + " ", "null", "NaN", "", "abc", "1e3", "-", "0x10", "+2"}).Draw(t, "text")
			return []byte(s), s
		}},
	}
}

func flagKinds() map[string]kindOfColumn {
	return map[string]kindOfColumn{
		"bool": {parquet.Leaf(parquet.BooleanType), func(t *rapid.T) (any, string) {
			v := rapid.Bool().Draw(t, "bool")
			return v, strconv.FormatBool(v)
		}},
		"int": {parquet.Int(32), func(t *rapid.T) (any, string) {
			return integer32(rapid.SampledFrom([]int32{0, 1, 0, 1, 0, 1, 2}).Draw(t, "int"))
		}},
		"double": {parquet.Leaf(parquet.DoubleType), func(t *rapid.T) (any, string) {
			return double(rapid.SampledFrom([]float64{0, 1, 0, 1, 0.5}).Draw(t, "double"))
		}},
		"text": {parquet.String(), func(t *rapid.T) (any, string) {
			s := rapid.SampledFrom([]string{"true", "false", "True", "0", "1", "T", "1.0", " f ", "null", "", "maybe", "client_cancel", "ok", "\xff"}).Draw(t, "text")
			return []byte(s), s
		}},
	}
}

func nameKinds(words ...string) map[string]kindOfColumn {
	return map[string]kindOfColumn{
		"text": {parquet.String(), func(t *rapid.T) (any, string) {
			s := rapid.SampledFrom(words).Draw(t, "word")
			return []byte(s), s
		}},
		"int": {parquet.Int(32), func(t *rapid.T) (any, string) { return integer32(rapid.Int32Range(0, 3).Draw(t, "int")) }},
	}
}

var someStart = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

func timeKinds() map[string]kindOfColumn {
	at := func(t *rapid.T) time.Time {
		s := someStart.Add(time.Duration(rapid.Int64Range(0, int64(3*time.Hour)).Draw(t, "time")))
		return rapid.SampledFrom([]time.Time{s, s, s, s, s, s, time.UnixMicro(rapid.Int64Range(-30e15, 30e15).Draw(t, "far")).UTC()}).Draw(t, "which")
	}
	stamp := func(unit parquet.TimeUnit, utc bool, d time.Duration) kindOfColumn {
		layout := "2006-01-02T15:04:05.999999999"
		if utc {
			layout += "Z"
		}
		return kindOfColumn{parquet.TimestampAdjusted(unit, utc), func(t *rapid.T) (any, string) {
			v := at(t).Truncate(d)
			switch d {
			case time.Millisecond:
				return v.UnixMilli(), v.Format(layout)
			case time.Microsecond:
				return v.UnixMicro(), v.Format(layout)
			}
			v = time.Unix(0, v.UnixNano()).UTC() // what there is room for
			return v.UnixNano(), v.Format(layout)
		}}
	}
	return map[string]kindOfColumn{
		"millis": stamp(parquet.Millisecond, true, time.Millisecond), "micros": stamp(parquet.Microsecond, true, time.Microsecond),
		"nanos": stamp(parquet.Nanosecond, true, time.Nanosecond), "micros without a zone": stamp(parquet.Microsecond, false, time.Microsecond),
		"int96": {parquet.Leaf(parquet.Int96Type), func(t *rapid.T) (any, string) {
			v := at(t)
			day := v.Unix() / 86400
			if v.Unix() < day*86400 {
				day--
			}
			ns := uint64(v.Sub(time.Unix(day*86400, 0)))
			return deprecated.Int96{uint32(ns), uint32(ns >> 32), uint32(day + 2440588)}, v.Format(stampLayout)
		}},
		"date": {parquet.Date(), func(t *rapid.T) (any, string) {
			v := at(t).Truncate(24 * time.Hour)
			return int32(v.Unix() / 86400), v.Format(time.DateOnly)
		}},
		"seconds": {parquet.Int(64), func(t *rapid.T) (any, string) { return integer(at(t).Unix()) }},
		"mixed units": {parquet.Int(64), func(t *rapid.T) (any, string) {
			v := at(t)
			return integer(rapid.SampledFrom([]int64{v.UnixMilli(), v.UnixMilli(), v.UnixMilli(), v.Unix(), 7, -1}).Draw(t, "unit"))
		}},
		"seconds in a double": {parquet.Leaf(parquet.DoubleType), func(t *rapid.T) (any, string) { return double(float64(at(t).UnixMilli()) / 1000) }},
		"seconds in a decimal": {parquet.Decimal(3, 18, parquet.Int64Type), func(t *rapid.T) (any, string) {
			v := big.NewInt(at(t).UnixMilli())
			return v.Int64(), decimalText(v, 3)
		}},
		"text": {parquet.String(), func(t *rapid.T) (any, string) {
			v := at(t)
			layout := rapid.SampledFrom([]string{time.RFC3339Nano, time.RFC3339, "2006-01-02 15:04:05.999999", "2006-01-02T15:04:05.000+02:00", "2006-01-02", " 2006-01-02T15:04:05Z ", "15:04"}).Draw(t, "layout")
			s := rapid.SampledFrom([]string{v.Format(layout), v.Format(layout), strconv.FormatInt(v.UnixMilli(), 10), ""}).Draw(t, "text")
			return []byte(s), s
		}},
	}
}

// fieldKinds are the columns that a test writes, by field.
func fieldKinds() map[string]map[string]kindOfColumn {
	return map[string]map[string]kindOfColumn{
		"ts": timeKinds(), "latency_ms": numberKinds(1e5), "cost_usd": numberKinds(3), "ttft_ms": numberKinds(1e4), "itl_ms": numberKinds(100),
		"output_tokens": numberKinds(1e4), "solved": flagKinds(), "violation": flagKinds(), "transfer": flagKinds(), "stream_aborted": flagKinds(),
		"status":  nameKinds("ok", "ok", "200", "503", "weird", "odd one", "499", "", "null", "\xffbad"),
		"version": nameKinds("stable", "canary", "v1", " v2", "", "sta\xffble"), "arm": nameKinds("stable", "canary", "", "other"),
		"model": nameKinds("m1", "m2"), "scene": nameKinds("answers", "summaries", ""),
	}
}

var someOptions = rapid.Custom(func(t *rapid.T) Options {
	opt := Options{
		Span: rapid.SampledFrom([]time.Duration{0, 10 * time.Minute, time.Hour}).Draw(t, "span"), MergeArms: rapid.Bool().Draw(t, "merge"),
		NullStatusOK: rapid.Bool().Draw(t, "null status"), Distributions: rapid.Bool().Draw(t, "distributions"),
		Scene:  rapid.SampledFrom([]string{"", "", "answers"}).Draw(t, "scene"),
		Epoch:  rapid.SampledFrom([]Unit{NoUnit, NoUnit, NoUnit, Seconds, Milliseconds}).Draw(t, "epoch"),
		SlowMS: rapid.SampledFrom([]float64{0, 5000}).Draw(t, "slow"), MaxBad: release.NewRatio(1, 1),
	}
	if rapid.Bool().Draw(t, "arms") {
		opt.Arms = map[string]release.Arm{"v1": release.Stable, "v2": release.Canary}
	}
	if rapid.Bool().Draw(t, "units") {
		opt.Map = []Mapping{{FieldLatency, Path{"latency_ms"}, Seconds}, {FieldCostUSD, Path{"cost_usd"}, MilliDollars}}
	}
	opt.whole = rapid.IntRange(0, 9).Draw(t, "whole") == 0
	if opt.whole {
		opt.MergeArms = true
	}
	return opt
})

// Physical types, logical types, encodings, compressions, sizes of pages and of row
// groups in all combinations.
func TestParquetGivesWhatTheSameRowsGiveAsCSV(t *testing.T) {
	lowerRows(t, 7, 11)
	kinds := fieldKinds()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "rows")
		columns := []columnSpec{{name: "n", node: parquet.Int(64)}}
		texts := [][]string{{"n"}}
		for i := range n {
			columns[0].values = append(columns[0].values, int64(i))
			texts[0] = append(texts[0], strconv.Itoa(i))
		}
		for _, field := range slices.Sorted(maps.Keys(kinds)) {
			needed := field == "ts" || field == "latency_ms" || field == "cost_usd"
			if !needed && rapid.IntRange(0, 2).Draw(t, field+" is there") == 0 {
				continue
			}
			kind := kinds[field][rapid.SampledFrom(slices.Sorted(maps.Keys(kinds[field]))).Draw(t, field)]
			c, text := drawColumn(t, field, kind, n)
			columns, texts = append(columns, c), append(texts, text)
		}
		opt := someOptions.Draw(t, "options")
		tb := &quietTB{T: t}
		table := writeTable(tb, columns, drawWriter(t)...)
		got, gotErr := readTable(tb, opt, table)
		want, wantErr := readText(opt, texts)
		if fmt.Sprint(gotErr) != strings.ReplaceAll(fmt.Sprint(wantErr), "t.csv", "t0.parquet") {
			t.Fatalf("error %v, of CSV %v", gotErr, wantErr)
		}
		if opt.MergeArms && len(opt.Arms) == 0 { // then nobody reads the columns of arms
			utf8 := func(note string) bool { return strings.Contains(note, "UTF-8") }
			want.Notes, got.Notes = slices.DeleteFunc(want.Notes, utf8), slices.DeleteFunc(got.Notes, utf8)
		}
		if diff := cmp.Diff(comparable(want, "t.csv", 1), comparable(got, "t0.parquet", 0), cmp.AllowUnexported(Data{}, Distribution{}, windowSpread{}), cmp.Comparer(func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) })); diff != "" {
			t.Fatalf("CSV gives -, Parquet +:\n%s", diff)
		}
	})
}

// drawColumn draws the values of a column, with nulls or without.
func drawColumn(t *rapid.T, field string, kind kindOfColumn, n int) (columnSpec, []string) {
	c, text := columnSpec{name: field, node: kind.node}, []string{field}
	optional := rapid.Bool().Draw(t, field+" optional")
	pool := rapid.IntRange(0, 8).Draw(t, field+" different values") // 0: all different
	var values []any
	var texts []string
	for i := range n {
		if optional && rapid.IntRange(0, 5).Draw(t, "null") == 0 {
			c.values, text = append(c.values, nil), append(text, "")
			continue
		}
		if pool == 0 || len(values) < pool {
			v, s := kind.value(t)
			values, texts = append(values, v), append(texts, s)
			c.values, text = append(c.values, v), append(text, s)
			continue
		}
		k := (i * 7) % pool
		c.values, text = append(c.values, values[k]), append(text, texts[k])
	}
	if rapid.Bool().Draw(t, field+" dictionary") {
		c.node = parquet.Encoded(c.node, &parquet.RLEDictionary)
	} else {
		switch c.node.Type().Kind() {
		case parquet.Int32, parquet.Int64:
			if rapid.Bool().Draw(t, "delta") {
				c.node = parquet.Encoded(c.node, &parquet.DeltaBinaryPacked)
			}
		case parquet.ByteArray:
			if rapid.Bool().Draw(t, "delta") {
				c.node = parquet.Encoded(c.node, &parquet.DeltaByteArray)
			} else {
				c.node = parquet.Encoded(c.node, &parquet.DeltaLengthByteArray)
			}
		case parquet.Double, parquet.Float:
			if rapid.Bool().Draw(t, "split") {
				c.node = parquet.Encoded(c.node, &parquet.ByteStreamSplit)
			}
		}
	}
	if optional {
		c.node = parquet.Optional(c.node)
	}
	return c, text
}

func drawWriter(t *rapid.T) []parquet.WriterOption {
	codecs := []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &gzip.Codec{Level: gzip.BestSpeed}, &parquet.Zstd, &brotli.Codec{}, &lz4.Codec{Level: lz4.Fastest}}
	return []parquet.WriterOption{
		parquet.Compression(codecs[rapid.IntRange(0, len(codecs)-1).Draw(t, "codec")]),
		parquet.DataPageVersion(rapid.IntRange(1, 2).Draw(t, "page version")),
		parquet.PageBufferSize(rapid.SampledFrom([]int{8, 40, 100, 1 << 20}).Draw(t, "page size")),
		parquet.MaxRowsPerRowGroup(rapid.SampledFrom([]int64{5, 25, 1000}).Draw(t, "row group")),
		parquet.DictionaryMaxBytes(rapid.SampledFrom([]int64{0, 0, 20}).Draw(t, "dictionary")),
	}
}

// readText reads columns of texts as CSV.
func readText(opt Options, columns [][]string) (*Data, error) {
	var buf bytes.Buffer
	w := csv.NewWriter(&buf)
	for i := range len(columns[0]) {
		var cells []string
		for _, c := range columns {
			cells = append(cells, c[i])
		}
		if err := w.Write(cells); err != nil {
			return nil, err
		}
	}
	w.Flush()
	f := newFeed(opt)
	src, err := open(context.Background(), "-", &buf, nil)
	if err != nil {
		return nil, err
	}
	src.name = "t.csv"
	run := &fileRun{name: "t.csv", src: src, latest: -maxTime}
	run.reader = f.readerOf(formatCSV, src, run)
	if err := f.drain(src, run); err != nil {
		return f.data, err
	}
	f.noteFile(run)
	return f.data, f.finish([]string{"t.csv"})
}

// comparable takes out what differs between formats: the file's name, and its header.
func comparable(d *Data, name string, header int64) *Data {
	if d == nil {
		return nil
	}
	c := *d
	c.BadLines = slices.Clone(d.BadLines)
	for i := range c.BadLines {
		c.BadLines[i].File = "FILE"
		c.BadLines[i].Line -= header
	}
	c.Notes = append([]string{}, d.Notes...)
	for i := range c.Notes {
		c.Notes[i] = strings.ReplaceAll(c.Notes[i], name, "FILE")
	}
	return &c
}

// quietTB lets helpers of tests fail a property.
type quietTB struct {
	testing.TB
	T *rapid.T
}

func (q *quietTB) Helper()           {}
func (q *quietTB) Fatal(args ...any) { q.T.Fatal(args...) }

// lowerRows makes batches and slices small, so that few rows cross their borders.
func lowerRows(t testing.TB, batch, slice int) {
	oldBatch, oldSlice := batchRows, sliceRows
	batchRows, sliceRows = batch, slice
	t.Cleanup(func() { batchRows, sliceRows = oldBatch, oldSlice })
}
