package trace

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
)

// streamFigures are the columns of streams and statuses that a window carries,
// as "name value" separated by spaces.
func streamFigures(t testing.TB, w release.Window) string {
	t.Helper()
	var cells map[string]json.RawMessage
	if err := json.Unmarshal(AppendJSON(nil, &w, allColumns), &cells); err != nil {
		t.Fatal(err)
	}
	usual := Columns(0)
	maps.DeleteFunc(cells, func(name string, _ json.RawMessage) bool {
		return name == "slow" || slices.ContainsFunc(usual, func(c Column) bool { return c.String() == name })
	})
	var out []string
	for _, c := range allColumns {
		if v, ok := cells[c.String()]; ok {
			out = append(out, c.String()+" "+string(v))
		}
	}
	return strings.Join(out, " ")
}

// wantStreams reads records, without their ts, as one window.
func wantStreams(t *testing.T, name string, opt Options, want string, records ...string) *Data {
	t.Helper()
	var text strings.Builder
	for _, r := range records {
		fmt.Fprintf(&text, `{"ts":"2026-05-04T00:00:00Z",%s}`+"\n", r)
	}
	d, err := read(text.String(), opt)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if got := streamFigures(t, d.Windows[0]); got != want || len(d.Windows) != 1 {
		t.Errorf("%s:\n got %s\nwant %s", name, got, want)
	}
	return d
}

var limit3000 = Options{TTFTLimitMS: 3000}

func TestEachFigureOfAStreamHasItsOwnDenominator(t *testing.T) {
	wantStreams(t, "one record of five carries each, two say how their stream ended", limit3000,
		"ttft_of 1 ttft_p99_ms 3100 ttft_slow 1 itl_of 1 itl_ms 40 streams 2 aborted 1 status_of 1 errors 1 server_errors 1",
		`"ttft_ms":3100`, `"itl_ms":40`, `"stream_aborted":true`, `"status":503`, `"user_id":"u","stream_aborted":false`)
}

func TestFiguresOfStreams(t *testing.T) {
	for name, c := range map[string]struct {
		records []string
		opt     Options
		want    string
	}{
		"records without any carry none": {records: []string{`"latency_ms":5,"output_tokens":7,"solved":true`}, opt: limit3000},
		"the limit itself is not slow": {records: []string{`"ttft_ms":3000`, `"ttft_ms":3000.001`}, opt: limit3000,
			want: "ttft_of 2 ttft_p99_ms 3000.001 ttft_slow 1"},
		"without a limit nothing is slow": {records: []string{`"ttft_ms":3100`}, want: "ttft_of 1 ttft_p99_ms 3100"},
		"the mean of itl_ms is over streams, not tokens": {records: []string{`"itl_ms":10,"output_tokens":1000`, `"itl_ms":20,"output_tokens":2`},
			want: "itl_of 2 itl_ms 15"},
		"itl is derived where it is missing": {records: []string{`"ttft_ms":200,"latency_ms":2200,"output_tokens":101`},
			want: "ttft_of 1 ttft_p99_ms 200 itl_of 1 itl_ms 20"},
		"and not where it is given": {records: []string{`"ttft_ms":200,"latency_ms":2200,"output_tokens":101,"itl_ms":7`},
			want: "ttft_of 1 ttft_p99_ms 200 itl_of 1 itl_ms 7"},
		"one token has no second":                {records: []string{`"ttft_ms":200,"latency_ms":2200,"output_tokens":1`}, want: "ttft_of 1 ttft_p99_ms 200"},
		"a first token after the last says none": {records: []string{`"ttft_ms":2300,"latency_ms":2200,"output_tokens":9`}, want: "ttft_of 1 ttft_p99_ms 2300"},
		"null, empty and NaN are missing": {records: []string{`"ttft_ms":null,"status":null,"stream_aborted":null`, `"ttft_ms":"NaN","status":"","itl_ms":"n/a"`, `"ttft_ms":5,"status":"ok"`},
			want: "ttft_of 1 ttft_p99_ms 5 status_of 1 errors 0 server_errors 0"},
		"null is ok where it is said to be": {records: []string{`"status":null`, `"status":429`, `"user_id":"no status"`}, opt: Options{NullStatusOK: true},
			want: "status_of 2 errors 1 server_errors 0"},
	} {
		d := wantStreams(t, name, c.opt, c.want, c.records...)
		if again := mustRead(t, asCSV(d.Windows), Options{}); !cmp.Equal(d.Windows, again.Windows) {
			t.Errorf("%s: does not read back: %s", name, cmp.Diff(d.Windows, again.Windows))
		}
		if got := mustRead(t, asCSV(d.Windows), Options{}).Supplied; got != d.Supplied {
			t.Errorf("%s: supplies %b, and %b when read back", name, d.Supplied, got)
		}
	}
}

// A logger that has nothing to write writes 0. Taken for a time it would make
// every other stream look slow beside it.
func TestAStreamTimeOfZeroIsMissingAndSaid(t *testing.T) {
	d := wantStreams(t, "zeros", limit3000, "ttft_of 1 ttft_p99_ms 100 ttft_slow 0", `"ttft_ms":0,"itl_ms":0.0`, `"ttft_ms":100`)
	if !noted(d, "2 times of streams are 0: missing") {
		t.Errorf("%q", d.Notes)
	}
}

func TestAClientThatHangsUpIsNeitherAnErrorNorAnAbort(t *testing.T) {
	for _, record := range []string{
		`"status":499,"stream_aborted":true`, `"status":"client_cancel","stream_aborted":true`, `"status":"CANCELLED","stream_aborted":true`,
		`"status":"client_closed","stream_aborted":"client_closed"`, `"status":"Client-Closed-Request","stream_aborted":1`,
	} {
		wantStreams(t, record, Options{}, "streams 2 aborted 0 status_of 1 errors 0 server_errors 0", record, `"stream_aborted":false`)
	}
	wantStreams(t, "the word alone says so too", Options{}, "streams 2 aborted 1", `"stream_aborted":"client_cancel"`, `"stream_aborted":true`)
}

// An arm whose log has only the true ones counts all its streams as asked, or
// all its records where nothing tells which are streams.
func TestAbortsThatAreOnlyLoggedWhenTrue(t *testing.T) {
	const records = `{"ts":"2026-05-04T00:00:00Z","arm":%q,"user_id":"a","stream_aborted":true}
{"ts":"2026-05-04T00:00:00Z","arm":%[1]q,"user_id":"b"%s}
{"ts":"2026-05-04T00:00:00Z","arm":%[1]q,"user_id":"c"}
{"ts":"2026-05-04T00:01:00Z","arm":%[1]q,"user_id":"d"%[2]s}
`
	for more, want := range map[string][2]string{
		"":                        {"streams 3 aborted 1", "streams 1 aborted 0"},
		`,"ttft_ms":50`:           {"ttft_of 1 ttft_p99_ms 50 streams 2 aborted 1", "ttft_of 1 ttft_p99_ms 50 streams 1 aborted 0"},
		`,"itl_ms":5`:             {"itl_of 1 itl_ms 5 streams 2 aborted 1", "itl_of 1 itl_ms 5 streams 1 aborted 0"},
		`,"stream_aborted":false`: {"streams 2 aborted 1", "streams 1 aborted 0"},
	} {
		d := mustRead(t, fmt.Sprintf(records, "canary", more), Options{})
		for i, w := range want {
			if got := streamFigures(t, d.Windows[i]); got != w {
				t.Errorf("%s, window %d: %s, want %s", more, i, got, w)
			}
		}
		if sparse := !strings.Contains(more, "false"); noted(d, "stream_aborted is only ever logged as true") != sparse {
			t.Errorf("%s: %q", more, d.Notes)
		}
	}
	d := mustRead(t, fmt.Sprintf(records, "canary", "")+strings.ReplaceAll(fmt.Sprintf(records, "stable", ""), `,"stream_aborted":true`, ""), Options{})
	if got := streamFigures(t, d.Windows[1]); got != "" {
		t.Errorf("stable, which never logs any, has %s", got)
	}
}

func TestStreamFieldsThatCannotBeAreBadLines(t *testing.T) {
	for record, why := range map[string]string{
		`"ttft_ms":-1`: `ttft_ms "-1" is negative`, `"itl_ms":"fast"`: `itl_ms "fast" is not a number`, `"output_tokens":1.5`: "is not a whole number",
		`"itl_ms":1e12`: "longer than eleven days", `"stream_aborted":"maybe"`: "is neither true nor false", `"ttft_ms":[1]`: "not a number",
	} {
		d, err := read(`{"ts":"2026-05-04T00:00:00Z",`+record+"}\n", Options{MaxBad: anyBad})
		if d.Bad != 1 || len(d.BadLines) != 1 || !strings.Contains(d.BadLines[0].Message, why) {
			t.Errorf("%s: %v, %+v", record, err, d.BadLines)
		}
	}
}

// A status that is an object was never read, and is no reason to refuse a log.
func TestAStatusThatIsAnObjectIsMissingAndSaid(t *testing.T) {
	d := wantStreams(t, "object", Options{}, "status_of 1 errors 1 server_errors 0", `"status":{"code":"OK"}`, `"status":400`)
	if !noted(d, "1 status is an object or an array: missing; --map status=status.code") {
		t.Errorf("%q", d.Notes)
	}
	wantStreams(t, "mapped", options(t, "status=status.code"), "status_of 1 errors 0 server_errors 0", `"status":{"code":"OK"}`)
}

// The order of records does not matter, and neither does the memory, as long as
// it holds what it must.
func TestFiguresOfStreamsDoNotDependOnTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		lines := make([]string, 200)
		for i := range lines {
			lines[i] = fmt.Sprintf(`{"ts":"2026-05-04T00:0%d:00Z","arm":%q,"conversation_id":"%d","ttft_ms":%d,"latency_ms":%d.25,"output_tokens":%d,"status":%d,"stream_aborted":%t}`,
				r.IntN(4), []string{"canary", "stable"}[r.IntN(2)], i, r.IntN(5000), 100+r.IntN(9000), r.IntN(300), 200+100*r.IntN(4), r.IntN(20) == 0)
		}
		opt := Options{TTFTLimitMS: 3000}
		want, err := read(strings.Join(lines, "\n"), opt)
		if err != nil {
			t.Fatal(err)
		}
		r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		if got, err := read(strings.Join(lines, "\n"), opt); err != nil || !cmp.Equal(want.Windows, got.Windows) {
			t.Fatal(err, cmp.Diff(want.Windows, got.Windows))
		}
		slices.Sort(lines)
		opt.maxLatencies = 180
		if got, err := read(strings.Join(lines, "\n"), opt); err != nil || got.Late == 0 && !cmp.Equal(want.Windows, got.Windows) {
			t.Fatal(err, cmp.Diff(want.Windows, got.Windows))
		}
	})
}

func TestTheTTFTPercentileIsTheNearestRank(t *testing.T) {
	for _, n := range []int{1, 99, 100, 101, 1000} {
		var b strings.Builder
		b.WriteString("ts,ttft_ms\n")
		for _, i := range rand.New(rand.NewPCG(1, uint64(n))).Perm(n) {
			fmt.Fprintf(&b, "2026-05-04T00:00:00Z,%d.5\n", i+1)
		}
		if w, want := mustRead(t, b.String(), Options{}).Windows[0], float64((99*n+99)/100)+0.5; w.TTFTP99MS != want || w.TTFTOf != int64(n) {
			t.Errorf("n=%d: %v of %d, want %v", n, w.TTFTP99MS, w.TTFTOf, want)
		}
	}
}

// With no room for all of them the percentile is approximate, and that is said;
// how many were slow is counted all the same.
func TestATTFTThatComesTooLateLeavesAnApproximatePercentile(t *testing.T) {
	var b strings.Builder
	b.WriteString("ts,user_id,ttft_ms\n")
	for i := range 100 {
		fmt.Fprintf(&b, "2026-05-04T00:%02d:00Z,u%d,%d\n", i/2, i, i+1)
	}
	b.WriteString("2026-05-04T00:00:30Z,u,5000\n")
	d := mustRead(t, b.String(), Options{maxLatencies: 5 * chunkLen, TTFTLimitMS: 3000})
	if w := d.Windows[0]; w.TTFTOf != 3 || w.TTFTSlow != 1 || math.Abs(w.TTFTP99MS-5000) > 40 {
		t.Errorf("%+v", w)
	}
	if w := d.Windows[1]; w.TTFTP99MS != 4 || w.TTFTOf != 2 {
		t.Errorf("%+v", w)
	}
	if !noted(d, "the ttft_p99_ms of 1 window is within 0.8 %") || d.Late != 1 || noted(d, "the p99_ms") {
		t.Errorf("%d late, %q", d.Late, d.Notes)
	}
}

func TestNoAllocationARecordMoreForStreams(t *testing.T) {
	text := func(rows int) string {
		return "ts,ttft_ms,latency_ms,output_tokens,status,stream_aborted,scene\n" + strings.Repeat("2026-05-04T00:00:00Z,200,900,50,ok,false,chat\n2026-05-04T00:00:00Z,210,900,50,Rate_Limited,false,chat\n", rows/2)
	}
	of := func(rows int) float64 {
		s := text(rows)
		return testing.AllocsPerRun(5, func() { mustRead(t, s, Options{maxLatencies: 4 * rows}) })
	}
	if few, many := of(2000), of(20000); many > few+180 { // a hundredth of an allocation a row: slices that grow
		t.Errorf("%g allocations for 2,000 rows, %g for 20,000", few, many)
	}
}
