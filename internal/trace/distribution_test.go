package trace

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// rankOf is the nearest rank of q among values that stand for many.
func rankOf(values []stats.Weighted, q release.Ratio) float64 {
	n := int64(0)
	for _, v := range values {
		n += v.Weight
	}
	rank := q.FloorOf(n)
	if q.Compare(rank, n) < 0 {
		rank++
	}
	for _, v := range values {
		if rank -= v.Weight; rank <= 0 {
			return v.Value
		}
	}
	return math.NaN()
}

func TestDistributionsHoldEveryValueWithItsCount(t *testing.T) {
	d := mustRead(t, `ts,arm,latency_ms,cost_usd
2026-05-04T00:00:00Z,stable,300,0.02
2026-05-04T00:01:00Z,stable,100.5,0
2026-05-04T00:02:00Z,stable,300,0.000000001
2026-05-04T00:03:00Z,stable,,
2026-05-04T00:03:01Z,stable,NaN,0.02
2026-05-04T00:03:02Z,stable,0,0.1
2026-05-04T00:03:00Z,canary,7,
`, Options{Distributions: true})
	want := map[release.Arm][]stats.Weighted{
		"stable": {{Value: 0, Weight: 1}, {Value: 100.5, Weight: 1}, {Value: 300, Weight: 2}},
		"canary": {{Value: 7, Weight: 1}},
	}
	costs := map[release.Arm][]stats.Weighted{
		"stable": {{Value: 0, Weight: 1}, {Value: 1e-9, Weight: 1}, {Value: 0.02, Weight: 2}, {Value: 0.1, Weight: 1}},
	}
	values := func(m map[release.Arm]*Distribution) map[release.Arm][]stats.Weighted {
		out := make(map[release.Arm][]stats.Weighted)
		for arm, d := range m {
			out[arm] = d.Values()
			if !d.Exact {
				t.Errorf("%s is not exact", arm)
			}
		}
		return out
	}
	if diff := cmp.Diff(want, values(d.Latency)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(costs, values(d.Cost)); diff != "" {
		t.Error(diff)
	}
	if d.Latency["stable"].N != 4 || d.Cost["stable"].N != 5 {
		t.Errorf("%d latencies, %d costs", d.Latency["stable"].N, d.Cost["stable"].N)
	}
}

func TestNoDistributionsUnlessAskedForOrOfWindows(t *testing.T) {
	for text, opt := range map[string]Options{recordLines: {}, fiveMinutes: {Distributions: true}} {
		if d := mustRead(t, text, opt); d.Latency != nil || d.Cost != nil || !math.IsNaN(d.CountSlow(5)) {
			t.Errorf("%+v", d)
		}
	}
	d := mustRead(t, "ts\n2026-05-04T00:00:00Z\n", Options{Distributions: true})
	if len(d.Latency) > 0 || d.CountSlow(5) != 5 || d.Supplied != 0 {
		t.Errorf("%+v", d)
	}
}

// A negative cost or latency is a bad line and part of no distribution.
func TestABadLineIsPartOfNoDistribution(t *testing.T) {
	d := mustRead(t, "ts,latency_ms,cost_usd\n2026-05-04T00:00:00Z,5,-0.1\n2026-05-04T00:00:00Z,-5,0.1\n2026-05-04T00:00:00Z,5,0.1\n", Options{Distributions: true, MaxBad: anyBad})
	if d.Bad != 2 || d.Latency["all"].N != 1 || d.Cost["all"].N != 1 {
		t.Errorf("%+v", d)
	}
}

// recordsOf makes CSV lines of latencies and costs in the two arms.
func recordsOf(r *rand.Rand, n int, ms func() float64) []string {
	lines := make([]string, n)
	for i := range lines {
		at := time.Unix(1777852800+r.Int64N(3600), 0).UTC().Format(time.RFC3339)
		lines[i] = fmt.Sprintf("%s,%s,u%d,%g,%.9f\n", at, []string{"stable", "canary"}[r.IntN(2)], i, ms(), r.Float64())
	}
	return lines
}

const recordHead = "ts,arm,user_id,latency_ms,cost_usd\n"

// Up to the limit a quantile is the exact nearest rank. Past it, it is a value
// that was seen, at most 0.1 % above. Nothing depends on the order.
func TestQuantilesOfDistributionsAreExactOrNearlySo(t *testing.T) {
	p99, p50 := release.NewRatio(99, 100), release.NewRatio(1, 2)
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		most := rapid.SampledFrom([]int{3, 40, 100_000}).Draw(t, "most")
		lines := recordsOf(r, rapid.IntRange(1, 300).Draw(t, "n"), func() float64 { return math.Exp(5 + 2*r.NormFloat64()) })
		all := make(map[string][]float64)
		for _, l := range lines {
			cells := strings.Split(strings.TrimSpace(l), ",")
			var ms float64
			fmt.Sscan(cells[3], &ms)
			all[cells[1]] = append(all[cells[1]], ms)
		}
		opt := Options{Distributions: true, maxValues: most}
		d, err := read(recordHead+strings.Join(lines, ""), opt)
		if err != nil {
			t.Fatal(err)
		}
		for arm, values := range all {
			slices.Sort(values)
			got := d.Latency[release.Arm(arm)]
			if got.N != int64(len(values)) || got.Exact && most < len(slices.Compact(slices.Clone(values))) {
				t.Fatalf("%s: %d of %d values, exact %t, at most %d", arm, got.N, len(values), got.Exact, most)
			}
			for _, q := range []release.Ratio{p99, p50, release.NewRatio(1, 1)} {
				v, want := rankOf(got.Values(), q), stats.NearestRank(values, q)
				if got.Exact && v != want || v < want || v > want*1.001 || !slices.Contains(values, v) {
					t.Fatalf("%s: q %s is %v, want %v, exact %t", arm, q, v, want, got.Exact)
				}
			}
		}
		r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		again, err := read(recordHead+strings.Join(lines, ""), opt)
		if err != nil {
			t.Fatal(err)
		}
		for arm := range all {
			for _, pair := range [][2]*Distribution{{d.Latency[release.Arm(arm)], again.Latency[release.Arm(arm)]}, {d.Cost[release.Arm(arm)], again.Cost[release.Arm(arm)]}} {
				if a, b := pair[0], pair[1]; a.Exact != b.Exact || a.N != b.N || !slices.Equal(a.Values(), b.Values()) {
					t.Fatalf("%s: the order of the records matters: %t %v, %t %v", arm, a.Exact, a.Values(), b.Exact, b.Values())
				}
			}
		}
	})
}

// Distributions are what a plain count of all values gives, put together by
// bucket where there are too many, whatever the order and the batches.
func TestDistributionsEqualAPlainCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		arms, most := rapid.IntRange(1, 9).Draw(t, "arms"), rapid.IntRange(1, 15).Draw(t, "most")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 4))
		type value struct {
			arm int
			ms  float64
		}
		var values []value
		counts := make([]map[float64]int64, arms)
		held := 0
		for arm := range arms {
			counts[arm] = make(map[float64]int64)
			for range rapid.IntRange(1, 2*most).Draw(t, "n") {
				v := value{arm, 1000 + float64(r.IntN(3*most))/10} // within a few buckets
				values = append(values, v)
				counts[arm][v.ms]++
			}
			held += min(len(counts[arm]), most)
		}
		r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		s := distributions{most: most, batch: rapid.IntRange(1, 20).Draw(t, "batch")}
		var byArm []*Distribution
		for _, v := range values {
			s.add(s.of(&byArm, v.arm), v.ms)
		}
		s.finish()
		for arm, c := range counts {
			d, exact := byArm[arm], len(c) <= most && held <= fullDistributions*most
			var want []stats.Weighted
			for _, v := range slices.Sorted(maps.Keys(c)) {
				if n := len(want); n > 0 && !exact && bucketOf(want[n-1].Value, fineBits) == bucketOf(v, fineBits) {
					want[n-1] = stats.Weighted{Value: v, Weight: want[n-1].Weight + c[v]}
					continue
				}
				want = append(want, stats.Weighted{Value: v, Weight: c[v]})
			}
			if diff := cmp.Diff(want, d.Values()); diff != "" || d.Exact != exact {
				t.Fatalf("arm %d of %d, exact %t, want %t: %s", arm, arms, d.Exact, exact, diff)
			}
		}
	})
}

// Many arms share the room of four full distributions.
func TestManyArmsShareTheRoomForValues(t *testing.T) {
	var b strings.Builder
	b.WriteString("ts,version,latency_ms\n")
	for i := range 60 {
		fmt.Fprintf(&b, "2026-05-04T00:00:00Z,v%d,%d\n", i%6, 1000+i)
	}
	for most, exact := range map[int]bool{15: true, 14: false, 10: false} { // 6 arms, 10 values each
		d := mustRead(t, b.String(), Options{Distributions: true, maxValues: most})
		for arm, got := range d.Latency {
			if got.Exact != exact || got.N != 10 {
				t.Errorf("room for 4 x %d: %s exact %t, %d values", most, arm, got.Exact, got.N)
			}
		}
	}
}

// Past the limit the room of the exact values is given back.
func TestALargeDistributionTakesLittleRoom(t *testing.T) {
	s := distributions{most: 200_000, batch: minPending}
	var byArm []*Distribution
	d := s.of(&byArm, 0)
	r := rand.New(rand.NewPCG(1, 1))
	exact := make([]float64, 0, 300_000)
	for i := range cap(exact) {
		if i == 200_000 && !d.Exact {
			t.Error("not exact with 200,000 values")
		}
		exact = append(exact, math.Exp(7+r.NormFloat64()))
		s.add(d, exact[i])
	}
	s.finish()
	slices.Sort(exact)
	want, got := stats.NearestRank(exact, percent99), rankOf(d.Values(), percent99)
	if d.Exact || d.N != 300_000 || got < want || got > want*1.001 {
		t.Errorf("p99 %v, want %v, exact %t", got, want, d.Exact)
	}
	if n := len(d.Values()); n > 20_000 || cap(d.values) > 30_000 {
		t.Errorf("%d values in room for %d", n, cap(d.values))
	}
}

func TestABucketHoldsItsUpperEdgeAndNotItsLower(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64Range(1e-300, 1e300).Draw(t, "v")
		for _, bits := range []int{spreadBits, fineBits} {
			b := bucketOf(v, bits)
			low, high := bucketEdge(b-1, bits), bucketEdge(b, bits)
			if !(low < v && v <= high) || high > low*(1+math.Ldexp(1, -bits)) {
				t.Fatalf("%v lies in (%v, %v]", v, low, high)
			}
			if bucketOf(high, bits) != b || bucketOf(low, bits) != b-1 {
				t.Fatalf("the edges of (%v, %v] are in %d and %d", low, high, bucketOf(low, bits), bucketOf(high, bits))
			}
		}
	})
	if bucketOf(0, spreadBits) != 0 || bucketOf(math.Inf(1), fineBits) != bucketOf(math.MaxFloat64, fineBits) {
		t.Error("the ends are elsewhere")
	}
}
