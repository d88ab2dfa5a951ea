package trace

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	pqformat "github.com/parquet-go/parquet-go/format"
)

// requests are columns of n rows, a second apart, all that is usual in them.
func requests(n int) []columnSpec {
	columns := []columnSpec{
		{name: "ts", node: parquet.Timestamp(parquet.Microsecond)},
		{name: "version", node: parquet.Optional(parquet.Encoded(parquet.String(), &parquet.RLEDictionary))},
		{name: "latency_ms", node: parquet.Leaf(parquet.DoubleType)},
		{name: "cost_usd", node: parquet.Optional(parquet.Encoded(parquet.Leaf(parquet.DoubleType), &parquet.RLEDictionary))},
		{name: "solved", node: parquet.Optional(parquet.Leaf(parquet.BooleanType))},
		{name: "violation", node: parquet.Leaf(parquet.BooleanType)},
		{name: "status", node: parquet.String()},
		{name: "ttft_ms", node: parquet.Optional(parquet.Leaf(parquet.FloatType))},
	}
	for i := range n {
		var solved any
		if i%7 > 0 {
			solved = i%5 > 0
		}
		values := []any{someStart.Add(time.Duration(i) * time.Second).UnixMicro(), []byte([]string{"stable", "stable", "canary"}[i%3]),
			float64(i%100) + 0.5, float64(i%4) / 1000, solved, i%50 == 0, []byte("ok"), float32(i%10) + 0.25}
		for j := range columns {
			columns[j].values = append(columns[j].values, values[j])
		}
	}
	return columns
}

func TestParquetCutOffIsTold(t *testing.T) {
	whole := writeTable(t, requests(40), parquet.MaxRowsPerRowGroup(15))
	if _, err := readTable(t, Options{}, whole); err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		_, err := readTable(t, Options{}, whole[:n])
		if e, ok := errors.AsType[*InputError](err); !ok || !strings.HasPrefix(e.Msg, "cut off") {
			t.Fatalf("the first %d of %d bytes: %v", n, len(whole), err)
		}
	}
}

// Every ninth byte damaged in some way: there is an error or there are windows,
// and nothing else.
func TestDamagedParquetIsAnErrorOrRead(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, options := range [][]parquet.WriterOption{
		{parquet.Compression(&parquet.Zstd), parquet.DataPageVersion(1)},
		{parquet.Compression(&parquet.Snappy), parquet.DataPageVersion(2), parquet.PageBufferSize(50)},
		{parquet.Compression(&parquet.Uncompressed), parquet.DataPageVersion(1), parquet.PageBufferSize(50)},
	} {
		whole := writeTable(t, requests(20), append(options, parquet.MaxRowsPerRowGroup(12))...)
		refused, tried := 0, 0
		for i := 0; i < len(whole); i += 9 {
			tried++
			damaged := slices.Clone(whole)
			damaged[i] ^= []byte{0xff, 1 << random.IntN(8), 0x80, byte(random.IntN(256)) | 1}[random.IntN(4)]
			d, err := readTable(t, Options{}, damaged)
			switch _, hints := errors.AsType[Hinter](err); {
			case err != nil && !hints && !strings.Contains(err.Error(), "two columns are named"):
				t.Fatalf("byte %d: %T %v", i, err, err)
			case err != nil:
				refused++
			case d.Rows == 0:
				t.Fatalf("byte %d: no error, and no rows", i)
			}
		}
		if refused < tried/4 {
			t.Errorf("of %d damaged files %d were refused", tried, refused)
		}
	}
}

func TestParquetThatCannotBeReadIsTold(t *testing.T) {
	rows := requests(3)
	with := func(c columnSpec) []byte {
		for range 3 {
			c.values = append(c.values, nil)
		}
		return writeTable(t, append(slices.DeleteFunc(slices.Clone(rows), func(o columnSpec) bool { return o.name == c.name }), c))
	}
	good := writeTable(t, rows)
	for _, c := range []struct {
		name string
		file []byte
		opt  Options
		want string
		hint string
	}{
		{"nothing", nil, Options{}, "cut off", ""},
		{"only the magic bytes", []byte("PAR1PAR1"), Options{}, "cut off", ""},
		{"another end", append(bytes.Clone(good), "PARX"...), Options{}, "cut off", ""},
		{"encrypted", append(bytes.Clone(good[:len(good)-4]), "PARE"...), Options{}, "is encrypted", "without encryption"},
		{"a footer longer than the file", append([]byte("PAR1"), 0xff, 0xff, 0xff, 0x7f, 'P', 'A', 'R', '1'), Options{}, "damaged: its table of contents", ""},
		{"no such column", good, Options{Map: []Mapping{{FieldLatency, Path{"latency"}, NoUnit}}}, `"latency_ms=latency": there is no column "latency"`, "the columns are cost_usd, latency_ms"},
		{"a list", with(columnSpec{name: "solved", node: parquet.Repeated(parquet.Leaf(parquet.BooleanType))}), Options{}, "column solved is a list or a map", "--map solved=COLUMN"},
		{"a mapped list", with(columnSpec{name: "tags", node: parquet.Repeated(parquet.String())}), Options{Map: []Mapping{{FieldVersion, Path{"tags"}, NoUnit}}}, "tags is a list or a map", "one value for each row"},
		{"an id", with(columnSpec{name: "version", node: parquet.Optional(parquet.UUID())}), Options{}, "column version is of the type UUID, which is not read", "--map version=COLUMN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := readTable(t, c.opt, c.file)
			e, ok := errors.AsType[Hinter](err)
			if !ok || !strings.Contains(e.Error(), c.want) || !strings.Contains(e.Hint(), c.hint) {
				t.Errorf("error %v, want one with %q and the advice %q", err, c.want, c.hint)
			}
		})
	}
}

func TestParquetWithoutRowsHasNoData(t *testing.T) {
	columns := requests(0)
	none := writeTable(t, columns)
	_, err := readTable(t, Options{}, none)
	if _, ok := errors.AsType[*NoRowsError](err); !ok {
		t.Errorf("error %v", err)
	}
	d, err := readTable(t, Options{}, none, writeTable(t, requests(30)))
	if err != nil || d.Rows != 30 || !slices.Contains(d.Notes, "t0.parquet: no rows in it") {
		t.Errorf("with another file: %v, %d rows, notes %q", err, d.Rows, d.Notes)
	}
}

func TestSeveralParquetFilesAreOneFeed(t *testing.T) {
	whole := requests(100)
	first, second := slices.Clone(whole), slices.Clone(whole)
	for i := range whole {
		first[i].values, second[i].values = whole[i].values[:37], whole[i].values[37:]
	}
	want, err := readTable(t, Options{}, writeTable(t, whole))
	if err != nil {
		t.Fatal(err)
	}
	got, err := readTable(t, Options{}, writeTable(t, second), writeTable(t, first, parquet.MaxRowsPerRowGroup(10)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Windows, got.Windows); diff != "" {
		t.Error(diff)
	}
}

// Only the columns of the plan are read, so thousands of others cost nothing.
func TestManyColumnsOfParquetAreNotRead(t *testing.T) {
	columns := requests(10)
	for i := range 1000 {
		c := columnSpec{name: fmt.Sprintf("more.c%04d", i), node: parquet.Int(32)}
		for range 10 {
			c.values = append(c.values, int32(i))
		}
		columns = append(columns, c)
	}
	d, err := readTable(t, Options{}, writeTable(t, columns))
	if err != nil || d.Rows != 10 || len(d.Unused) != 1000 {
		t.Errorf("%v, %d rows, %d unused columns", err, d.Rows, len(d.Unused))
	}
}

func TestColumnsInGroupsOfParquetHaveDottedNames(t *testing.T) {
	columns := requests(10)
	for i := range columns {
		if columns[i].name == "latency_ms" {
			columns[i].name = "metrics.latency"
		}
	}
	file := writeTable(t, columns)
	d, err := readTable(t, Options{Map: []Mapping{{FieldLatency, Path{"metrics", "latency"}, Seconds}}}, file)
	if err != nil || d.Windows[0].P99MS != 9500 && d.Windows[1].P99MS != 9500 {
		t.Errorf("%v, %+v", err, d.Windows)
	}
	_, err = readTable(t, Options{Map: []Mapping{{FieldLatency, Path{"metrics"}, NoUnit}}}, file)
	e, ok := errors.AsType[*MappingError](err)
	if !ok || e.Error() != `"latency_ms=metrics": "metrics" is a group of columns` || e.Hint() != "name the one that is meant: metrics.latency" {
		t.Errorf("a group: %v", err)
	}
}

// Windows are tables as well.
func TestWindowsAreReadFromParquet(t *testing.T) {
	lowerRows(t, 7, 11)
	columns := []columnSpec{
		{name: "t", node: parquet.Timestamp(parquet.Millisecond)}, {name: "arm", node: parquet.String()}, {name: "total", node: parquet.Int(64)},
		{name: "solved", node: parquet.Optional(parquet.Int(32))}, {name: "cost_mean", node: parquet.Decimal(4, 9, parquet.Int32Type)}, {name: "span", node: parquet.String()},
	}
	lines := []string{"t,arm,total,solved,cost_mean,span"}
	for i := range 50 {
		at := someStart.Add(time.Duration(i) * time.Minute)
		var solved any = int32(i)
		text := fmt.Sprint(i)
		if i%9 == 0 {
			solved, text = nil, ""
		}
		values := []any{at.UnixMilli(), []byte("canary"), int64(100 + i), solved, int32(i), []byte("1m")}
		for j := range columns {
			columns[j].values = append(columns[j].values, values[j])
		}
		lines = append(lines, fmt.Sprintf("%s,canary,%d,%s,0.%04d,1m", at.Format(time.RFC3339), 100+i, text, i))
	}
	var texts [][]string
	for i := range columns {
		texts = append(texts, nil)
		for _, l := range lines {
			texts[i] = append(texts[i], strings.Split(l, ",")[i])
		}
	}
	want, err := readText(Options{}, texts)
	if err != nil {
		t.Fatal(err)
	}
	got, err := readTable(t, Options{}, writeTable(t, columns, parquet.MaxRowsPerRowGroup(20)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Windows, got.Windows); diff != "" || got.Kind != Windows {
		t.Errorf("%s: %s", got.Kind, diff)
	}
}

// Row groups need not be alike.
func TestProgressOfParquetIsThatOfTheWholeFile(t *testing.T) {
	lowerRows(t, 8, 16)
	file := writeTable(t, requests(100), parquet.MaxRowsPerRowGroup(30))
	f := newFeed(Options{})
	run := &fileRun{name: "t", src: &source{name: "t"}, latest: -maxTime}
	sum, calls := int64(0), 0
	err := f.readParquet(t.Context(), run.src, bytes.NewReader(file), int64(len(file)), run, func(n int64) { sum += n; calls++ })
	if err != nil || sum != int64(len(file)) || calls < 5 {
		t.Errorf("%v, %d of %d bytes in %d steps", err, sum, len(file), calls)
	}
}

// givesUp is a file whose reader gives up after some reads.
type givesUp struct {
	io.ReaderAt
	giveUp context.CancelFunc
	left   atomic.Int32
}

func (g *givesUp) ReadAt(p []byte, at int64) (int, error) {
	if g.left.Add(-1) == 0 {
		g.giveUp()
	}
	return g.ReaderAt.ReadAt(p, at)
}

func TestReadingParquetEndsWithItsContext(t *testing.T) {
	lowerRows(t, 8, 16)
	file := writeTable(t, requests(2000), parquet.MaxRowsPerRowGroup(50))
	for _, reads := range []int32{10, 400, 700} {
		ctx, cancel := context.WithCancel(t.Context())
		r := &givesUp{ReaderAt: bytes.NewReader(file), giveUp: cancel}
		r.left.Store(reads)
		f := newFeed(Options{})
		run := &fileRun{name: "t", src: &source{name: "t"}, latest: -maxTime}
		err := f.readParquet(ctx, run.src, r, int64(len(file)), run, nil)
		if !errors.Is(err, context.Canceled) || r.left.Load() > 0 {
			t.Errorf("after %d reads: error %v", reads, err)
		}
		if f.data.Rows == 2000 {
			t.Errorf("after %d reads: all was read", reads)
		}
	}
}

// Pages of many sizes, and pages that do not get smaller: the library loses those
// of lz4 where it unpacks them itself.
func TestPagesOfAnySizeAreUnpacked(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	columns := []columnSpec{{name: "ts", node: parquet.Int(64)}, {name: "latency_ms", node: parquet.Leaf(parquet.DoubleType)}, {name: "cost_usd", node: parquet.Leaf(parquet.DoubleType)}}
	for i := range 4096 {
		for j, v := range []any{someStart.UnixMilli() + int64(i), random.Float64() * 1000, float64(random.IntN(50))} {
			columns[j].values = append(columns[j].values, v)
		}
	}
	want, err := readTable(t, Options{}, writeTable(t, columns, parquet.Compression(&parquet.Uncompressed)))
	if err != nil {
		t.Fatal(err)
	}
	for _, codec := range []compress.Codec{&parquet.Snappy, &parquet.Gzip, &parquet.Zstd, &parquet.Brotli, &parquet.Lz4Raw} {
		for _, page := range []int{4 << 10, 8 << 10, 32 << 10, 1 << 20} {
			for _, version := range []int{1, 2} {
				got, err := readTable(t, Options{}, writeTable(t, columns, parquet.Compression(codec), parquet.PageBufferSize(page), parquet.DataPageVersion(version)))
				if err != nil {
					t.Fatalf("%s, pages of %d bytes: %v", codec, page, err)
				}
				if diff := cmp.Diff(want.Windows, got.Windows); diff != "" {
					t.Errorf("%s, pages of %d bytes: %s", codec, page, diff)
				}
			}
		}
	}
}

func TestParquetInAnUnknownCompressionIsTold(t *testing.T) {
	file := writeTable(t, requests(3))
	meta, err := decodeFooter(file[len(file)-8-int(binary.LittleEndian.Uint32(file[len(file)-8:])):])
	if err != nil {
		t.Fatal(err)
	}
	meta.RowGroups[0].Columns[1].MetaData.Codec = pqformat.LZO
	table, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
	if err != nil {
		t.Fatal(err)
	}
	file = binary.LittleEndian.AppendUint32(append(bytes.Clone(file[:len(file)-8]), table...), uint32(len(table)))
	file = append(file, parquetMagic...)
	_, err = readTable(t, Options{}, file)
	e, ok := errors.AsType[*InputError](err)
	if !ok || e.Msg != "column latency_ms is compressed with lzo, which is not read" {
		t.Errorf("error %v", err)
	}
}
