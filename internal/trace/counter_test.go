package trace

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
)

func TestThePercentileIsTheNearestRank(t *testing.T) {
	for _, n := range []int{1, 2, 99, 100, 101, 200, 1000} {
		var b strings.Builder
		b.WriteString("ts,latency_ms\n")
		order := rand.New(rand.NewPCG(1, uint64(n))).Perm(n)
		for _, i := range order {
			fmt.Fprintf(&b, "2026-05-04T00:00:00Z,%d.25\n", i+1)
		}
		want := float64((99*n+99)/100) + 0.25
		if w := mustRead(t, b.String(), Options{}).Windows[0]; w.P99MS != want || !w.Has(release.HasP99) {
			t.Errorf("n=%d: %v, want %v", n, w.P99MS, want)
		}
	}
}

// Means and the cost ratio are exact up to the last rounding, however many
// records there are and in whatever order.
func TestCostsAreExact(t *testing.T) {
	d := mustRead(t, "ts,arm,cost_usd\n"+strings.Repeat("2026-05-04T00:00:00Z,stable,0.1\n", 10)+strings.Repeat("2026-05-04T00:00:00Z,canary,0.3\n", 7), Options{})
	canary, stable := d.Windows[0], d.Windows[1]
	if stable.CostMean != 0.1 || canary.CostMean != 0.3 || canary.Cost != 3 {
		t.Errorf("%v %v %v", stable.CostMean, canary.CostMean, canary.Cost)
	}
	d = mustRead(t, "ts,arm,cost_usd\n2026-05-04T00:00:00Z,stable,0\n2026-05-04T00:00:00Z,canary,0.3\n", Options{})
	if d.Windows[0].Has(release.HasCost) {
		t.Error("a ratio to a stable that costs nothing")
	}
	d = mustRead(t, "ts,cost_usd\n"+strings.Repeat("2026-05-04T00:00:00Z,1000000\n", 30000), Options{}) // past 2^64 nano-USD
	if d.Windows[0].CostMean != 1e6 {
		t.Error(d.Windows[0].CostMean)
	}
}

// With little room the windows come out the same, as long as their records
// come together.
func TestLittleMemoryChangesNothingInOrderedInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := drawRecords(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)), 60)
		slices.Sort(lines) // by time
		text := strings.Join(lines, "")
		want, err := read(text, Options{SlowMS: 300, Distributions: true})
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(text, Options{SlowMS: 300, Distributions: true, maxLatencies: 6 * chunkLen, maxHashes: 12})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(Data{}, Distribution{}, windowSpread{})); diff != "" && got.Late == 0 {
			t.Fatal(diff)
		}
	})
}

func TestPercentilesThatDoNotFitAreApproximateAndThatIsSaid(t *testing.T) {
	var b strings.Builder
	b.WriteString("ts,user_id,latency_ms\n")
	for i := range 100 {
		fmt.Fprintf(&b, "2026-05-04T00:%02d:00Z,u%d,%d\n", i/2, i, i)
	}
	b.WriteString("2026-05-04T00:00:30Z,u,1000\n2026-05-04T00:00:00Z,u0,0\n")
	d := mustRead(t, b.String(), Options{maxLatencies: 5 * chunkLen, maxHashes: 10})
	if w := d.Windows[0]; math.Abs(w.P99MS-1000) > 8 || w.Total != 4 {
		t.Errorf("%+v", w)
	}
	if w := d.Windows[1]; w.P99MS != 3 {
		t.Errorf("%+v", w)
	}
	if d.Late != 2 || d.Approximate != 1 || !noted(d, "the p99_ms of 1 window is within 0.8 % of the exact one") || !noted(d, "2 records came too long after") {
		t.Errorf("%d late, %d approximate, %q", d.Late, d.Approximate, d.Notes)
	}
	one := mustRead(t, "ts,latency_ms\n"+strings.Repeat("2026-05-04T00:00:00Z,5\n", 40), Options{maxLatencies: chunkLen, MaxMemory: 1 << 24})
	if w := one.Windows[0]; math.Abs(w.P99MS-5) > 5*spreadError || w.Total != 40 || !noted(one, "did not fit into 16 MiB in this order; --max-memory gives them more") {
		t.Errorf("%+v %q", w, one.Notes)
	}
}

// Whatever the order and however little fits: exact where nothing came late,
// else within the error that is told.
func TestPercentilesInLittleMemoryAreNearTheExactOnes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var b strings.Builder
		b.WriteString("ts,latency_ms,ttft_ms\n")
		for range rapid.IntRange(1, 300).Draw(rt, "rows") {
			ms := math.Exp(rapid.Float64Range(-6, 15).Draw(rt, "log"))
			fmt.Fprintf(&b, "2026-05-04T00:%02d:00Z,%v,%v\n", rapid.IntRange(0, 3).Draw(rt, "minute"), ms, ms/2)
		}
		want := mustRead(t, b.String(), Options{})
		got := mustRead(t, b.String(), Options{maxLatencies: rapid.IntRange(1, 10*chunkLen).Draw(rt, "room")})
		for i, w := range want.Windows {
			g := got.Windows[i]
			for _, pair := range [][2]float64{{w.P99MS, g.P99MS}, {w.TTFTP99MS, g.TTFTP99MS}} {
				if off := math.Abs(pair[1] - pair[0]); off > max(pair[0]*spreadError, 0.001) || got.Approximate == 0 && off > 0 {
					t.Fatalf("%v for %v, %d approximate", pair[1], pair[0], got.Approximate)
				}
			}
		}
	})
}

// rowStream writes rows without end and without holding them.
type rowStream struct {
	rows, n int
	pending []byte
	buf     []byte
	peak    uint64
}

func (s *rowStream) Read(p []byte) (int, error) {
	for len(s.pending) < len(p) && s.n < s.rows {
		if s.n == 0 {
			s.pending = append(s.pending, "ts,user_id,latency_ms,solved\n"...)
		}
		if s.n%100_000 == 0 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			s.peak = max(s.peak, m.HeapAlloc)
		}
		// A day, whatever the number of rows.
		at := time.Unix(1777852800, int64(float64(s.n)/float64(s.rows)*86400e9)).UTC()
		s.pending = at.AppendFormat(s.pending, time.RFC3339Nano)
		s.pending = fmt.Appendf(s.pending, ",u%d,%d.5,true\n", s.n, s.n%9973)
		s.n++
	}
	if len(s.pending) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.pending)
	s.pending = append(s.buf[:0], s.pending[n:]...)
	s.buf = s.pending
	return n, nil
}

func TestMemoryDoesNotGrowWithTheInput(t *testing.T) {
	if testing.Short() {
		t.Skip("two million rows")
	}
	heap := func(rows int, distributions bool) uint64 {
		s := &rowStream{rows: rows}
		opt := Options{maxLatencies: 50_000, maxHashes: 50_000, Distributions: distributions, maxValues: 5000}
		d, err := ReadFiles(context.Background(), []string{"-"}, s, opt, nil)
		if err != nil {
			t.Fatal(err)
		}
		if totalOf(d.Windows) != int64(rows) || d.Late > 0 || !d.Windows[7].Has(release.HasP99) {
			t.Fatalf("%d of %d rows, %d late", totalOf(d.Windows), rows, d.Late)
		}
		return s.peak
	}
	for distributions, rows := range map[bool]int{false: 2_000_000, true: 800_000} {
		short, long := heap(200_000, distributions), heap(rows, distributions)
		t.Logf("heap %d KiB for 200,000 rows, %d KiB for %d, distributions %t", short>>10, long>>10, rows, distributions)
		if long > short+4<<20 {
			t.Errorf("heap %d KiB for 200,000 rows, %d KiB for %d, distributions %t", short>>10, long>>10, rows, distributions)
		}
	}
}

func benchJSONL(rows int) string {
	var b strings.Builder
	r := rand.New(rand.NewPCG(1, 2))
	for i := range rows {
		at := time.Unix(1777852800, int64(i)*1e9).UTC().Format(time.RFC3339Nano)
		fmt.Fprintf(&b, `{"ts":%q,"user_id":"u_%x","version":"v1.42.3","model":"m-large","latency_ms":%.3f,"ttft_ms":%.3f,"input_tokens":%d,"output_tokens":%d,"cost_usd":%.6f,"status":"ok","solved":true,"violation":false,"transfer":false}`+"\n",
			at, r.Uint64(), math.Exp(7+r.NormFloat64()), r.Float64()*300, r.IntN(4000), r.IntN(400), r.Float64()/50)
	}
	return b.String()
}
