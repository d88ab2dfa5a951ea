package trace

import (
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
)

// BenchmarkParquet reads what most writers write: row groups of 122,880 rows,
// half of the columns in dictionaries.
func BenchmarkParquet(b *testing.B) {
	const rows = 400_000
	file := writeTable(b, requests(rows), parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(122_880), parquet.PageBufferSize(1<<20))
	basic, err := ParseColumns("t,arm,total,solved,judged,violations,cost_mean,p99_ms")
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		opt  Options
	}{
		{"all columns", Options{Span: 10 * time.Minute}},
		{"columns without streams", Options{Span: 10 * time.Minute, Columns: basic}},
		{"one arm", Options{Span: 10 * time.Minute, Columns: basic, MergeArms: true}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				if d, err := readTable(b, c.opt, file); err != nil || d.Rows != rows {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// The allocations of a file do not grow with its rows: twice as many in each
// row group take not one more for a hundred of them.
func TestRowsOfParquetTakeNoAllocations(t *testing.T) {
	const rows = 20_000
	allocs := func(rows int, opt Options) float64 {
		file := writeTable(t, requests(rows), parquet.MaxRowsPerRowGroup(int64(rows)), parquet.PageBufferSize(1<<24))
		return testing.AllocsPerRun(3, func() {
			if d, err := readTable(t, opt, file); err != nil || d.Rows != int64(rows) {
				t.Fatal(err)
			}
		})
	}
	streams := Options{Span: 24 * time.Hour}
	basic := streams
	basic.Columns, _ = ParseColumns("t,arm,total,solved,judged,violations,cost_mean,p99_ms")
	for name, opt := range map[string]Options{"records": streams, "sums": basic} {
		if more := allocs(2*rows, opt) - allocs(rows, opt); more > rows/100 {
			t.Errorf("%s: %d more rows take %.0f more allocations", name, rows, more)
		}
	}
}
