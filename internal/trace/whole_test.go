package trace

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/release"
)

func readWhole(t testing.TB, text string, opt Options) (release.Window, *Data, error) {
	t.Helper()
	return ReadWhole(t.Context(), stdinName, strings.NewReader(text), opt)
}

func TestRecordsWithoutTimesAreJudgedWhole(t *testing.T) {
	w, d, err := readWhole(t, `[{"latency_ms":100,"solved":true,"status":200},{"latency_ms":300,"ttft_ms":50,"status":503}]`, Options{SlowMS: 200, TTFTLimitMS: 40})
	if err != nil {
		t.Fatal(err)
	}
	if !w.T.IsZero() || w.Span != 0 || w.Arm != release.All || w.Total != 2 || w.Solved != 1 || w.Judged != 1 || w.P99MS != 300 || w.Slow != 1 ||
		w.TTFTSlow != 1 || w.Errors != 1 || w.ServerErrors != 1 || w.StatusOf != 2 {
		t.Errorf("%+v", w)
	}
	if d.Kind != Records || !d.First.IsZero() || !d.Last.IsZero() || d.Span != 0 || d.Supplied != w.Known || len(d.Windows) != 1 || d.OutOfOrder != 0 {
		t.Errorf("%+v", d)
	}
	if len(d.Notes) > 0 {
		t.Errorf("%q", d.Notes)
	}
}

// Without a time a load test's answers are all the same, and every one failed.
func TestARecordWithoutATimeIsNoDuplicate(t *testing.T) {
	for name, line := range map[string]string{
		"a user":         `{"user_id":"load","status":429}`,
		"a conversation": `{"conversation_id":"load","status":429}`,
		"nobody":         `{"status":429}`,
		"an answer":      `{"object":"chat.completion","id":"chatcmpl-mock","error":{"code":429},"choices":[]}`,
	} {
		w, d, err := readWhole(t, strings.Repeat(line+"\n", 130), Options{})
		if err != nil || w.Total != 130 || w.Errors != 130 || d.Duplicates != 0 || d.Identical != 0 {
			t.Errorf("%s: %v, %d requests, %d errors, %d duplicates, %d identical", name, err, w.Total, w.Errors, d.Duplicates, d.Identical)
		}
		if noted(d, "duplicate") || noted(d, "identical") {
			t.Errorf("%s: %q", name, d.Notes)
		}
	}
	span := strings.Replace(spanLine(attribute("gen_ai.operation.name", `{"stringValue":"chat"}`)), `"startTime`, `"traceId":"t","spanId":"s","startTime`, 1)
	w, d, err := readWhole(t, strings.Repeat(span+"\n", 3), Options{})
	if err != nil || w.Total != 1 || d.Duplicates != 2 {
		t.Errorf("a span has an id of its own: %v, %d requests, %d duplicates", err, w.Total, d.Duplicates)
	}
}

// Who reads two sets must see which of them a note is about, and none about
// what nobody asked for.
func TestNotesOfAWholeSetNameItsFileAndNoWindow(t *testing.T) {
	const text = `{"latency_ms":100,"ttft_ms":0,"violation":true}
{"status":"odd"}
{"latency_ms":200,"ttft_ms":50}
{"latency_ms":300,"ttft_ms":60}
`
	_, d, err := readWhole(t, text, Options{Distributions: true, maxLatencies: 2})
	if err != nil || len(d.Notes) == 0 {
		t.Fatalf("%v %q", err, d.Notes)
	}
	for _, n := range d.Notes {
		if !strings.HasPrefix(n, "-: ") || strings.HasPrefix(n, "-: -: ") || strings.Contains(n, "window") {
			t.Errorf("%q", n)
		}
	}
	if !noted(d, "-: the p99_ms is within 0.8 % of the exact one: the values did not fit into 256 MiB in this order") || !noted(d, "1 time of a stream is 0") {
		t.Errorf("%q", d.Notes)
	}
}

// Times do not matter, but are told; some records may have none.
func TestRecordsWithTimesAreJudgedWhole(t *testing.T) {
	const text = `ts,user_id,version,latency_ms
2026-05-05T00:00:00Z,a,v1,1
2026-05-04T00:00:00Z,b,v2,2
,c,v2,3
2026-05-04T00:00:00Z,b,v2,2
`
	w, d, err := readWhole(t, text, Options{})
	if err != nil || w.Total != 4 || w.P99MS != 3 || !w.T.IsZero() {
		t.Fatalf("%v %+v", err, w)
	}
	if d.First.Format("02") != "04" || d.Last.Format("02") != "05" || d.Duplicates != 0 || d.OutOfOrder != 0 {
		t.Errorf("%+v", d)
	}
	w, d, err = readWhole(t, text, options(t, "latency_ms=latency_ms", "stable=v2"))
	if err != nil || w.Total != 3 || w.Arm != release.All || d.LeftOut != 1 {
		t.Errorf("%v %+v, %d left out", err, w, d.LeftOut)
	}
	w, _, err = readWhole(t, text, Options{maxLatencies: 1})
	if err != nil || math.Abs(w.P99MS-3) > 3*spreadError || w.Total != 4 {
		t.Errorf("a percentile of what did not fit: %v %+v", err, w)
	}
}

func TestWhatIsNoSetOfRecordsIsNotJudgedWhole(t *testing.T) {
	for text, want := range map[string]string{
		"t,total\n2026-05-04T00:00:00Z,5\n": "holds windows; only records are judged whole",
		"ts\n":                              "there are no rows",
		"":                                  "there are no rows",
		"solved\nmaybe\n":                   "1 of 1 lines cannot be read",
		"t\n2026-05-04T00:00:00Z\n":         "no counts in it",
	} {
		if _, d, err := readWhole(t, text, Options{}); err == nil || !strings.Contains(err.Error(), want) || d == nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The spread of a set without times can be counted from, as a feed's can.
func TestSlowRequestsOfAWholeSetCanBeCountedLater(t *testing.T) {
	_, d, err := readWhole(t, "latency_ms\n100\n200\n300\n", Options{Distributions: true})
	if err != nil {
		t.Fatal(err)
	}
	if d.CountSlow(250); d.Windows[0].Slow != 1 || !d.Windows[0].Has(release.HasSlow) {
		t.Errorf("%+v", d.Windows[0])
	}
}

// meanAndQuantiles are what LLMPerf prints of a figure: the quantiles linear
// between ranks, as numpy's are.
func meanAndQuantiles(d *Distribution) (mean, p50, p95 float64) {
	var all []float64
	for _, v := range d.Values() {
		all = append(all, slices.Repeat([]float64{v.Value}, int(v.Weight))...)
	}
	for _, v := range all {
		mean += v / float64(len(all))
	}
	at := func(q float64) float64 {
		whole, part := math.Modf(q * float64(len(all)-1))
		i := int(whole)
		return all[i] + part*(all[min(i+1, len(all)-1)]-all[i])
	}
	return mean, at(0.5), at(0.95)
}

// The individual responses of LLMPerf's leaderboard (ray-project/
// llmperf-leaderboard, raw_data), and what its summaries say of them.
func TestLLMPerfIsJudgedWhole(t *testing.T) {
	type figures struct{ mean, p50, p95 float64 }
	for name, want := range map[string]struct {
		ok, errors, violations int64
		ttft, latency          figures // seconds
	}{
		"anyscale":   {ok: 150, ttft: figures{.248903, .212830, .362008}, latency: figures{2.354667, 2.259533, 3.125571}},
		"perplexity": {ok: 148, errors: 2},
		"bedrock":    {ok: 101, errors: 49, violations: 49},
		"lepton":     {ok: 20, errors: 130},
	} {
		path := shared(t, "llmperf-leaderboard/individual/"+name+"_70b.json")
		w, d, err := ReadWhole(t.Context(), path, nil, Options{TTFTLimitMS: 3000, Distributions: true})
		if err != nil {
			t.Fatal(err)
		}
		if w.Total != 150 || w.StatusOf != 150 || w.Errors != want.errors || w.ServerErrors != 0 || w.Violations != want.violations || !w.Has(release.HasViolations) {
			t.Errorf("%s: %+v", name, w)
		}
		if w.TTFTOf != want.ok || w.ITLOf != want.ok || d.TTFT[release.All].N != want.ok || d.Latency[release.All].N != want.ok || w.TTFTSlow != 0 {
			t.Errorf("%s: figures of calls that failed: %+v", name, w)
		}
		if !noted(d, "the rows are LLMPerf's: error_code null is ok") {
			t.Errorf("%s: %q", name, d.Notes)
		}
		if want.ttft == (figures{}) {
			continue
		}
		for what, c := range map[string]struct {
			d    *Distribution
			want figures
		}{"ttft": {d.TTFT[release.All], want.ttft}, "latency": {d.Latency[release.All], want.latency}} {
			mean, p50, p95 := meanAndQuantiles(c.d)
			for i, v := range []float64{mean - 1000*c.want.mean, p50 - 1000*c.want.p50, p95 - 1000*c.want.p95} {
				if math.Abs(v) > 0.0005 {
					t.Errorf("%s %s, figure %d: %g ms off", name, what, i, v)
				}
			}
		}
	}
}

// The mapping that says the same by hand, without knowing the shape.
func TestLLMPerfCanBeMapped(t *testing.T) {
	const rows = `[{"error_code":null,"ttft":0.3,"e2e":2.3,"number_output_tokens":101},{"error_code":429,"ttft":null,"e2e":null,"number_output_tokens":1}]`
	opt := options(t, "status=error_code,ttft_ms=ttft:s,latency_ms=e2e:s,output_tokens=number_output_tokens")
	opt.NullStatusOK = true
	w, _, err := readWhole(t, rows, opt)
	if err != nil || streamFigures(t, w) != "ttft_of 1 ttft_p99_ms 300 itl_of 1 itl_ms 20 status_of 2 errors 1 server_errors 0" {
		t.Errorf("%v %s", err, streamFigures(t, w))
	}
}

func TestAMappingHasTheLastWordOverLLMPerf(t *testing.T) {
	const row = `[{"error_code":-100,"ttft_s":0.3,"http":200,"violation":false,"mine":0.5}]`
	w, _, err := readWhole(t, row, options(t, "status=http,ttft_ms=mine:s"))
	if err != nil || streamFigures(t, w) != "ttft_of 1 ttft_p99_ms 500 status_of 1 errors 0 server_errors 0" || w.Violations != 0 {
		t.Errorf("%v %+v", err, w)
	}
	w, _, err = readWhole(t, row, Options{})
	if err != nil || streamFigures(t, w) != "status_of 1 errors 1 server_errors 0" || w.Violations != 0 {
		t.Errorf("its own violation field is overruled: %v %+v", err, w)
	}
}

// An empty line of a file with one column is no row with an empty cell, in the
// first block as in later ones.
func TestEmptyLinesOfOneColumnAreNoRows(t *testing.T) {
	defer func(n int) { blockSize = n }(blockSize)
	blockSize = 20
	w, d, err := readWhole(t, "solved\n"+strings.Repeat("true\n\nfalse\n  \n", 30), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if w.Total != 60 || w.Solved != 30 || w.Judged != 60 || d.Bad != 0 {
		t.Errorf("%+v, %d bad", w, d.Bad)
	}
}
