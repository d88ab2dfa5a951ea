package trace

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
)

func TestRequestsSlowerThanALimitAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		rows string
		slow string // "" where it is not known
		note bool
	}{
		"above counts, at and below do not": {"300\n300.001\n299\n301\n", "2", false},
		"none is slow is zero":              {"1\n2\n", "0", false},
		"all are slow":                      {"400\n400\n", "2", false},
		"no latency at all is unknown":      {"\"\"\n", "", false},
		"one without a latency is unknown":  {"400\nnull\n100\n", "", true},
		"NaN is no latency":                 {"400\nNaN\n", "", true},
	} {
		var b strings.Builder
		b.WriteString("ts,latency_ms\n")
		for row := range strings.Lines(c.rows) {
			b.WriteString("2026-05-04T00:00:00Z," + row)
		}
		byLimit := mustRead(t, b.String(), Options{SlowMS: 300})
		later := mustRead(t, b.String(), Options{Distributions: true})
		if edge := later.CountSlow(300); edge != 300 {
			t.Errorf("%s: edge %v", name, edge)
		}
		for how, d := range map[string]*Data{"while reading": byLimit, "later": later} {
			if got := slowOf(d.Windows); got != c.slow || noted(d, "1 window has no count of slow requests") != c.note || (d.Supplied&release.HasSlow != 0) != (c.slow != "") {
				t.Errorf("%s, %s: %q, want %q; notes %q", name, how, got, c.slow, d.Notes)
			}
		}
	}
	if d := mustRead(t, recordLines, Options{}); slowOf(d.Windows) != ",," || d.Supplied&release.HasSlow != 0 {
		t.Error("counted without a limit")
	}
}

func slowText(n int64, known bool) string {
	if !known {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// slowOf is the count of each window, separated by commas.
func slowOf(windows []release.Window) string {
	var out []string
	for i := range windows {
		out = append(out, slowText(windows[i].Slow, windows[i].Has(release.HasSlow)))
	}
	return strings.Join(out, ",")
}

func TestTheSlowCountIsReadMergedAndChecked(t *testing.T) {
	const head = "t,span,arm,total,slow\n"
	d := mustRead(t, head+"2026-05-04T00:00:00Z,1m,canary,5,2\n2026-05-04T00:01:00Z,1m,canary,5,\n2026-05-04T00:02:00Z,1m,canary,5,0\n", Options{})
	if got := slowOf(d.Windows); got != "2,,0" || d.Supplied != release.HasSlow {
		t.Errorf("%q, %b", got, d.Supplied)
	}
	for name, c := range map[string]struct {
		rows, want string
		opt        Options
	}{
		"minutes add up":                {"2026-05-04T00:00:00Z,1m,a,5,2\n2026-05-04T00:01:00Z,1m,a,7,3\n", "5", Options{Span: 2 * time.Minute}},
		"an unknown part is unknown":    {"2026-05-04T00:00:00Z,1m,a,5,2\n2026-05-04T00:01:00Z,1m,a,7,\n", "", Options{Span: 2 * time.Minute}},
		"a part without requests is no": {"2026-05-04T00:00:00Z,1m,a,5,2\n2026-05-04T00:01:00Z,1m,a,0,\n", "2", Options{Span: 2 * time.Minute}},
		"machines add up":               {"2026-05-04T00:00:00Z,1m,a,5,2\n2026-05-04T00:00:00Z,1m,a,7,1\n", "3", Options{SumDuplicates: true}},
		"arms add up":                   {"2026-05-04T00:00:00Z,1m,a,5,2\n2026-05-04T00:00:00Z,1m,b,7,1\n", "3", Options{MergeArms: true}},
	} {
		d := mustRead(t, head+c.rows, c.opt)
		if got := slowOf(d.Windows); got != c.want || !d.Windows[0].Has(release.HasSlow) && d.Windows[0].Slow != 0 {
			t.Errorf("%s: %q, want %q: %+v", name, got, c.want, d.Windows[0])
		}
	}
	for row, why := range map[string]string{
		"5,6": "slow 6 is more than total 5", "5,-1": `slow "-1" is negative`, "5,1.5": `slow "1.5" is not a whole number`, "5,x": `slow "x" is not a number`,
	} {
		d, err := read(head+"2026-05-04T00:00:00Z,1m,canary,5,2\n2026-05-04T00:01:00Z,1m,canary,"+row+"\n", Options{MaxBad: anyBad})
		if err != nil || d.Bad != 1 || !strings.Contains(d.BadLines[0].Message, why) {
			t.Errorf("%s: %v, %+v", row, err, d)
		}
	}
	d = mustRead(t, `{"t":"2026-05-04T00:00:00Z","span":"1m","n":5,"p99_over":4}`, options(t, "total=n,slow=p99_over"))
	if got := slowOf(d.Windows); got != "4" {
		t.Errorf("mapped: %q", got)
	}
	if _, err := read(head+"2026-05-04T00:00:00Z,1m,canary,5,2\n2026-05-04T00:00:00Z,1m,canary,5,3\n", Options{}); err == nil || !strings.Contains(err.Error(), "with other figures") {
		t.Errorf("two counts of one window: %v", err)
	}
	d = mustRead(t, head+"2026-05-04T00:00:00Z,1m,canary,5,2\n", Options{SlowMS: 300})
	if slowOf(d.Windows) != "2" || !noted(d, "slow requests are not counted: these rows are windows") {
		t.Errorf("%q", d.Notes)
	}
}

func TestTheSlowColumnIsWrittenWhereThereIsOne(t *testing.T) {
	names := func(columns []Column) string {
		var out []string
		for _, c := range columns {
			out = append(out, c.String())
		}
		return strings.Join(out, ",")
	}
	const usual = "t,span,arm,total,judged,solved,violations,transfers,cost,cost_mean,p99_ms"
	if got := names(Columns(release.HasSolved | release.HasCost)); got != usual {
		t.Error(got)
	}
	if got := names(Columns(release.HasSlow)); got != usual+",slow" {
		t.Error(got)
	}
	d := mustRead(t, recordLines, Options{SlowMS: 200})
	var csv strings.Builder
	if err := WriteCSV(&csv, d.Windows, Columns(d.Supplied)); err != nil {
		t.Fatal(err)
	}
	if got := csv.String(); !strings.Contains(got, ",200.5,1\n") || !strings.HasSuffix(got, ",400,1\n") {
		t.Error(got)
	}
	if diff := cmp.Diff(d.Windows, mustRead(t, asCSV(d.Windows), Options{}).Windows); diff != "" {
		t.Error(diff)
	}
	if got := string(AppendJSON(nil, &d.Windows[1], Columns(d.Supplied))); !strings.HasSuffix(got, `"p99_ms":200.5,"slow":1}`) {
		t.Error(got)
	}
}

func TestEdgesAreAtOrJustAboveWhatIsAskedFor(t *testing.T) {
	d := mustRead(t, "ts,latency_ms\n2026-05-04T00:00:00Z,305\n", Options{Distributions: true})
	for ms, want := range map[float64]float64{
		300: 300, 300.1: 304, 304: 304, 2336: 2336, 2337: 2368, 0: spreadLow, -5: spreadLow, 1 << 24: 1 << 24, 1 << 25: 1 << 25, 1 << 51: math.Inf(1), math.Inf(1): math.Inf(1),
	} {
		edge := d.CountSlow(ms)
		if edge != want {
			t.Errorf("%v: edge %v, want %v", ms, edge, want)
		}
		if slow := d.Windows[0].Slow; (slow == 1) != (305 > want) || !d.Windows[0].Has(release.HasSlow) {
			t.Errorf("%v: %d slow", ms, slow)
		}
	}
	if edge := d.CountSlow(math.NaN()); !math.IsNaN(edge) {
		t.Errorf("NaN: edge %v", edge)
	}
}

// CountSlow is the naive count of latencies above the edge that it returns,
// with however little memory, in whatever order, for windows of any length and
// arms that were merged; so is SlowMS. Windows with a request of unknown latency
// have none.
func TestCountSlowEqualsANaiveCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
		round := rapid.Bool().Draw(t, "round")
		lines := recordsOf(r, rapid.IntRange(1, 200).Draw(t, "n"), func() float64 {
			ms := math.Exp(6 + 2*r.NormFloat64())
			if round {
				ms = math.Round(ms) // often on an edge
			}
			return ms
		})
		for i := range lines {
			if r.IntN(100) == 0 {
				cells := strings.Split(lines[i], ",")
				cells[3] = ""
				lines[i] = strings.Join(cells, ",")
			}
		}
		if rapid.Bool().Draw(t, "sorted") {
			slices.Sort(lines)
		}
		opt := Options{
			Distributions: true, maxLatencies: rapid.SampledFrom([]int{0, 1, 5, 50}).Draw(t, "latencies"), maxValues: 10,
			Span: rapid.SampledFrom([]time.Duration{time.Minute, 10 * time.Minute, 7 * time.Second}).Draw(t, "span"), MergeArms: rapid.Bool().Draw(t, "merge"),
		}
		text := recordHead + strings.Join(lines, "")
		d, err := read(text, opt)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			ms := math.Exp(6 + 2*r.NormFloat64())
			edge := d.CountSlow(ms)
			if edge < ms || edge > ms*(1+1.0/64) {
				t.Fatalf("%v: edge %v", ms, edge)
			}
			if diff := cmp.Diff(naiveSlow(lines, opt, edge), slowOf(d.Windows)); diff != "" {
				t.Fatalf("above %v: %s", edge, diff)
			}
		}
		opt.Distributions, opt.SlowMS = false, math.Exp(6+2*r.NormFloat64())
		byLimit, err := read(text, opt)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(naiveSlow(lines, opt, opt.SlowMS), slowOf(byLimit.Windows)); diff != "" {
			t.Fatalf("above %v: %s", opt.SlowMS, diff)
		}
	})
}

// naiveSlow counts the latencies above ms line by line and prints the counts as
// slowOf does.
func naiveSlow(lines []string, opt Options, ms float64) string {
	slow := make(map[string]int64)
	for _, line := range lines {
		cells := strings.Split(line, ",")
		at, err := time.Parse(time.RFC3339, cells[0])
		if err != nil {
			panic(err)
		}
		if opt.MergeArms {
			cells[1] = "all"
		}
		window := fmt.Sprint(at.Unix()/int64(opt.Span/time.Second)) + cells[1] // as many digits each
		switch v, err := strconv.ParseFloat(cells[3], 64); {
		case err != nil:
			slow[window] = math.MinInt64
		case v > ms:
			slow[window]++
		default:
			slow[window] += 0
		}
	}
	var out []string
	for _, window := range slices.Sorted(maps.Keys(slow)) {
		out = append(out, slowText(slow[window], slow[window] >= 0))
	}
	return strings.Join(out, ",")
}
