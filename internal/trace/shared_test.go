package trace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// shared finds a file of the public data kept beside the checkout, and skips
// where it is absent.
func shared(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("CANARYCTL_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	path := filepath.Join(dir, "data", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no public data: %v (set CANARYCTL_SHARED)", err)
	}
	return path
}

func readShared(t *testing.T, name, maps string, opt Options) (*Data, error) {
	t.Helper()
	opt.Map = options(t, maps).Map
	return ReadFiles(t.Context(), []string{shared(t, name)}, nil, opt, nil)
}

func TestPetshop(t *testing.T) {
	const file, maps = "petshop/derived_petsite_noissue_high_traffic.csv", "t=unix_ts:s,total=requests,solved=successes,p99_ms=lat_p99_s:s"
	d, err := readShared(t, file, maps, Options{InputSpan: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	solved := int64(0)
	for _, w := range d.Windows {
		solved += w.Solved
	}
	if len(d.Windows) != 589 || totalOf(d.Windows) != 406226 || solved != 405862 || len(d.Notes) > 0 {
		t.Errorf("%d windows, %d of %d, %q", len(d.Windows), solved, totalOf(d.Windows), d.Notes)
	}
	if d.First.Format(time.RFC3339) != "2023-09-05T14:00:00Z" || d.Last.Format(time.RFC3339) != "2023-09-07T15:05:00Z" || d.Span != 5*time.Minute {
		t.Errorf("%s to %s, %s", d.First, d.Last, d.Span)
	}
	if p99 := d.Windows[0].P99MS; p99 != 448.8430256092731 {
		t.Errorf("p99 %v ms", p99)
	}
	d, err = readShared(t, file, maps, Options{InputSpan: 5 * time.Minute, Span: 10 * time.Minute})
	if err != nil || len(d.Windows) != 295 || len(d.Partial) != 1 || d.Partial[0].Covered != 5*time.Minute {
		t.Errorf("%v, %d windows, %v", err, len(d.Windows), d.Partial)
	}
	if d.Windows[0].Has(release.HasP99) || !d.Windows[294].Has(release.HasP99) {
		t.Error("percentiles were merged")
	}
	_, err = readShared(t, file, maps, Options{})
	if e, ok := errors.AsType[*NoSpanError](err); !ok || e.Step != 5*time.Minute {
		t.Errorf("%v", err)
	}
}

func TestAzureIsFiftySevenMinutesOfArrivals(t *testing.T) {
	const file = "azure-llm-2023/AzureLLMInferenceTrace_code.csv"
	d, err := readShared(t, file, "ts=TIMESTAMP", Options{Span: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	var totals []int64
	for _, w := range d.Windows {
		totals = append(totals, w.Total)
	}
	want := []int64{63, 1903, 2130, 2022, 1599, 692, 410}
	if d.Rows != 8819 || len(totals) != len(want) || totalOf(d.Windows) != 8819 {
		t.Fatalf("%d rows, %v", d.Rows, totals)
	}
	for i := range want {
		if totals[i] != want[i] {
			t.Errorf("%v, want %v", totals, want)
		}
	}
	if span := d.Last.Sub(d.First); span != 3435948056600*time.Nanosecond && span.Round(time.Millisecond) != 3435948*time.Millisecond {
		t.Errorf("%s", span)
	}
	if d.Windows[0].T.Format(time.RFC3339) != "2023-11-16T18:10:00Z" || !noted(d, "read as UTC") {
		t.Errorf("%s, %q", d.Windows[0].T, d.Notes)
	}
	for _, maps := range []string{"", "t=TIMESTAMP"} {
		_, err := readShared(t, file, maps, Options{})
		if e, ok := errors.AsType[*NoCountsError](err); !ok || e.Rows != 8819 || !strings.Contains(e.Error(), "57 minutes") {
			t.Errorf("%q: %v", maps, err)
		}
	}
}

func TestSeriesWithoutCountsAreRefused(t *testing.T) {
	for file, maps := range map[string]string{
		"nab/art_flatline.csv": "t=timestamp", "nab/art_noisy.csv": "", "ms-cloud-monitoring/unavail-01.csv": "", "ms-cloud-monitoring/outbound-01.csv": "t=TimeStamp",
	} {
		_, err := readShared(t, file, maps, Options{})
		if _, ok := errors.AsType[*NoCountsError](err); !ok || !strings.Contains(err.Error(), "no counts in it") {
			t.Errorf("%s: %v", file, err)
		}
	}
	d, err := readShared(t, "nab/elb_request_count_8c0756.csv", "t=timestamp,total=value", Options{InputSpan: 5 * time.Minute})
	if err != nil || d.Rows != 4032 {
		t.Errorf("%v, %d rows", err, d.Rows)
	}
}

func TestTauBenchHasNoTimes(t *testing.T) {
	_, err := readShared(t, "tau-bench/derived_runs.csv", "solved=reward,transfer=handoff", Options{})
	if _, ok := errors.AsType[*NoTimeError](err); !ok {
		t.Errorf("%v", err)
	}
}

func TestServeGenCounts(t *testing.T) {
	d, err := readShared(t, "servegen/derived_m-large_total_10min.csv", "t=window_start_s:s,total=requests", Options{InputSpan: 10 * time.Minute})
	if err != nil || totalOf(d.Windows) != 236892826 || len(d.Windows) != 2016 || d.Last.Sub(d.First) != 14*24*time.Hour {
		t.Errorf("%v %d", err, totalOf(d.Windows))
	}
	if _, err = readShared(t, "servegen/chunk-112-trace.csv", "", Options{}); err == nil || !strings.Contains(err.Error(), "needs a header") {
		t.Errorf("%v", err)
	}
}

func TestKayentaAnswers(t *testing.T) {
	_, err := readShared(t, "kayenta-prometheus/rangeQueryEmpty.json", "total=value", Options{})
	if _, ok := errors.AsType[*NoRowsError](err); !ok {
		t.Errorf("%v", err)
	}
	for file, c := range map[string]struct {
		n     int
		first int64
		value float64
	}{
		"rangeQueryWithTags.json":    {57, 1599658195474 - 1000, 4},
		"rangeQueryWithoutTags.json": {58, 1599657179540 - 1000, 43},
	} {
		d, err := readShared(t, "kayenta-prometheus/"+file, "total=value", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if w := d.Windows[0]; len(d.Windows) != c.n || w.T.UnixMilli() != c.first || w.Total != int64(c.value) || w.Span != time.Second {
			t.Errorf("%s: %d windows, %+v", file, len(d.Windows), w)
		}
		d, err = readShared(t, "kayenta-prometheus/"+file, "total=value", Options{InputSpan: time.Second, Span: time.Minute})
		if err == nil || !strings.Contains(err.Error(), "does not fit") {
			t.Errorf("windows at .474 of a second fit into minutes: %v %+v", err, d.Windows)
		}
	}
}

func TestForeignPublicFilesAreNamed(t *testing.T) {
	for file, want := range map[string]string{
		"otlp/trace.json": "otlp: 0 spans of gen_ai read, 1 other left out", "otlp/metrics.json": "OTLP JSON of metrics", "otlp-genai/otel-js-genai.metrics.jsonl": "OTLP JSON of metrics",
		"prometheus/alltypes.237mfs.prom.txt":            "snapshot of /metrics",
		"llmperf-leaderboard/summary/lepton_70b.json":    "JSON document over several lines",
		"llmperf-leaderboard/individual/lepton_70b.json": "no time in it",
	} {
		if _, err := readShared(t, file, "", Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
}
