package source

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/servertest"
	"github.com/canaryctl/canaryctl/internal/trace"
)

// metricsOf is a server that shows metrics: lines of which a value that starts
// with a plus sign grows by so much every quarter of a minute.
type metricsOf []string

// at is the text after so many quarters, with a label that every line gets.
func (m metricsOf) at(quarters int, label string, stamp string) string {
	var b strings.Builder
	for _, line := range m {
		name, value, _ := strings.Cut(line, " ")
		if step, grows := strings.CutPrefix(value, "+"); grows {
			var v float64
			fmt.Sscan(step, &v) //nolint:errcheck // the test sees what is missing
			value = fmt.Sprintf("%g", 100+v*float64(quarters))
		}
		if label != "" {
			if head, labels, ok := strings.Cut(name, "{"); ok {
				name = head + "{" + label + "," + labels
			} else {
				name += "{" + label + "}"
			}
		}
		fmt.Fprintf(&b, "%s %s%s\n", name, value, stamp)
	}
	return b.String()
}

// histogramLines are a histogram that grows by n observations every quarter,
// of a mean: all of them between the last two bounds.
func histogramLines(name string, n int, mean float64, labels string, bounds ...string) (lines []string) {
	for i, le := range append(bounds, "+Inf") {
		grown := 0
		if i >= len(bounds)-1 {
			grown = n
		}
		lines = append(lines, fmt.Sprintf("%s_bucket{%sle=%q} +%d", name, labels, le, grown))
	}
	labels = strings.TrimSuffix(labels, ",")
	if labels != "" {
		labels = "{" + labels + "}"
	}
	return append(lines, fmt.Sprintf("%s_sum%s +%g", name, labels, float64(n)*mean), fmt.Sprintf("%s_count%s +%d", name, labels, n))
}

func vllmMetrics(names ...string) metricsOf {
	m := metricsOf{`vllm:request_success_total{finished_reason="stop"} +9`, `vllm:request_success_total{finished_reason="abort"} +1`}
	m = append(m, histogramLines("vllm:time_to_first_token_seconds", 10, 0.4, "", "0.25", "0.5", "2.5")...)
	m = append(m, histogramLines("vllm:e2e_request_latency_seconds", 10, 0.8, "", "0.5", "1.0")...)
	for _, name := range names {
		if strings.HasSuffix(name, "_perc") {
			m = append(m, name+" 0.4")
		} else {
			m = append(m, histogramLines(name, 100, 0.02, "", "0.01", "0.025")...)
		}
	}
	return m
}

const (
	newITL, oldITL = "vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"
	newKV, oldKV   = "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"
)

// shown are servers by name: their preset, what they show, and the figures of a
// minute.
var shown = []struct {
	name, preset string
	metrics      metricsOf
	want         string
}{
	{"vllm with both names", "vllm", vllmMetrics(newITL, oldITL, newKV, oldKV), "total=40 p99=995 ttft=2480/40 slow=40/40 itl=20/40 kv=0.4"},
	{"vllm with the old names", "vllm", vllmMetrics(oldITL, oldKV), "total=40 p99=995 ttft=2480/40 slow=40/40 itl=20/40 kv=0.4"},
	{"vllm with the new names", "vllm", vllmMetrics(newITL, newKV), "total=40 p99=995 ttft=2480/40 slow=40/40 itl=20/40 kv=0.4"},
	{"vllm with none of them", "vllm", vllmMetrics(), "total=40 p99=995 ttft=2480/40 slow=40/40"},
	{"sglang", "sglang", slices.Concat(
		histogramLines("sglang:e2e_request_latency_seconds", 5, 0.8, "", "0.5", "1.0"),
		histogramLines("sglang:time_to_first_token_seconds", 5, 0.3, "", "0.2", "0.4"),
		histogramLines("sglang:inter_token_latency_seconds", 50, 0.03, "", "0.02", "0.04"), []string{"sglang:token_usage 0.28"}),
		"total=20 p99=995 ttft=398/20 itl=30/20 kv=0.28"},
	{"litellm with both names", "litellm", slices.Concat([]string{
		"litellm_proxy_total_requests_metric_total +10", "litellm_proxy_total_requests_metric +10",
		`litellm_proxy_failed_requests_metric_total{exception_status="429"} +2`, `litellm_proxy_failed_requests_metric_total{exception_status="503"} +1`,
		`litellm_proxy_failed_requests_metric{exception_status="503"} +1`, "litellm_spend_metric_total +0.5", "litellm_spend_metric +0.5"},
		histogramLines("litellm_request_total_latency_metric", 10, 1, "", "0.5", "2.0"), histogramLines("litellm_llm_api_time_to_first_token_metric", 4, 0.3, "", "0.5", "1.0")),
		"total=40 mean=0.05 p99=1985 ttft=995/16 slow=16/16 errors=12/40 5xx=4/40"},
	{"litellm without a failure", "litellm", metricsOf{"litellm_proxy_total_requests_metric_total +10"}, "total=40 errors=0/40 5xx=0/40"},
	{"gen_ai of a client and a server", "gen_ai", slices.Concat(
		histogramLines("gen_ai_client_operation_duration_seconds", 9, 1, "", "0.64", "1.28"),
		histogramLines("gen_ai_client_operation_duration_seconds", 1, 1, `error_type="RateLimitError",`, "0.64", "1.28"),
		histogramLines("gen_ai_server_request_duration_seconds", 10, 1, "", "0.64", "1.28"),
		histogramLines("gen_ai_client_operation_time_to_first_chunk_seconds", 5, 1, "", "0.32", "0.64"),
		histogramLines("gen_ai_server_time_to_first_token_seconds", 7, 1, "", "0.32", "0.64"),
		[]string{`gen_ai_client_token_usage_sum{gen_ai_token_type="total"} +100`}),
		"total=40 p99=1273.6 ttft=636.8/20 errors=4/40"},
	{"envoy_ai_gateway", "envoy_ai_gateway", slices.Concat(
		histogramLines("gen_ai_server_request_duration_seconds", 10, 1, `gen_ai_operation_name="chat",`, "0.64", "1.28"),
		histogramLines("gen_ai_server_time_per_output_token_seconds", 70, 0.04, "", "0.01", "0.05")),
		"total=40 p99=1273.6 itl=40/40 errors=0/40"},
	{"envoy", "envoy", slices.Concat([]string{"envoy_cluster_upstream_rq_completed +10", `envoy_cluster_upstream_rq_xx{envoy_response_code_class="2"} +7`,
		`envoy_cluster_upstream_rq_xx{envoy_response_code_class="4"} +2`, `envoy_cluster_upstream_rq_xx{envoy_response_code_class="5"} +1`},
		histogramLines("envoy_cluster_upstream_rq_time", 10, 700, "", "500", "1000")), "total=40 p99=995 errors=12/40 5xx=4/40"},
	{"envoy that does not count by status", "envoy", metricsOf{"envoy_cluster_upstream_rq_completed +10"}, "total=40"},
	{"nginx_ingress", "nginx_ingress", slices.Concat([]string{`nginx_ingress_controller_requests{status="200"} +5`, `nginx_ingress_controller_requests{status="499"} +2`,
		`nginx_ingress_controller_requests{status="404"} +1`, `nginx_ingress_controller_requests{status="502"} +2`},
		histogramLines("nginx_ingress_controller_request_duration_seconds", 10, 0.7, "", "0.5", "1")), "total=40 p99=995 errors=12/40 5xx=8/40"},
	{"none of its metrics", "vllm", metricsOf{"up 1"}, ""},
}

// slowAt is the limit of slow first tokens in these tests: a bound of vLLM's
// histogram and of no other here.
const slowAt = 500

// say2 is the figures of a window that say does not write, rounded where a
// server reckons in floating point.
func say2(w release.Window) string {
	r := func(v float64) float64 { return math.Round(v*1e6) / 1e6 }
	s := fmt.Sprintf("total=%d", w.Total)
	add := func(has release.Figures, format string, args ...any) {
		if w.Has(has) {
			s += " " + fmt.Sprintf(format, args...)
		}
	}
	add(release.HasCostMean, "mean=%g", r(w.CostMean))
	add(release.HasP99, "p99=%g", r(w.P99MS))
	add(release.HasTTFT, "ttft=%g/%d", r(w.TTFTP99MS), w.TTFTOf)
	add(release.HasTTFTSlow, "slow=%d/%d", w.TTFTSlow, w.TTFTOf)
	add(release.HasITL, "itl=%g/%d", r(w.ITLMS), w.ITLOf)
	add(release.HasAborts, "aborted=%d/%d", w.Aborted, w.Streams)
	add(release.HasErrors, "errors=%d/%d", w.Errors, w.StatusOf)
	add(release.HasServerErrors, "5xx=%d/%d", w.ServerErrors, w.StatusOf)
	add(release.HasKVCache, "kv=%g", w.KVCache)
	return s
}

// TestPresetsAgainstAServer asks a real server that has scraped each kind of
// metrics for ten minutes, and reads the same metrics from snapshots: both say
// the same. Where a metric is there by two names nothing is summed twice.
func TestPresetsAgainstAServer(t *testing.T) {
	t.Parallel()
	const quarters = 40
	start := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	var history strings.Builder
	for i, s := range shown {
		for q := range quarters + 1 {
			history.WriteString(s.metrics.at(q, fmt.Sprintf(`server="%d"`, i), fmt.Sprintf(" %d", start.Unix()+int64(15*q))))
		}
	}
	url := servertest.Prometheus(t, bySeries(history.String())+"# EOF\n")
	for i, s := range shown {
		c := prom(url, nil)
		c.Preset = s.preset
		c.Matchers = map[release.Arm]string{release.Canary: fmt.Sprintf(`server="%d"`, i), release.Stable: `server="none"`}
		b := read(t, newSource(t, c, Options{TTFTLimitMS: slowAt}), start.Add(2*time.Minute), start.Add(5*time.Minute))
		var got []string
		for _, w := range b.Windows {
			got = append(got, say2(w))
		}
		var want []string
		if s.want != "" {
			want = []string{s.want, s.want, s.want}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s%q", s.name, diff, b.Notes)
		}
		if s.want != "" {
			snapshotsSay(t, s.name, s.metrics, start, s.want)
		}
	}
}

// snapshotsSay reads the same metrics from files.
func snapshotsSay(t *testing.T, name string, m metricsOf, start time.Time, want string) {
	t.Helper()
	dir := t.TempDir()
	var files []string
	for q := 0; q <= 12; q += 4 {
		files = append(files, filepath.Join(dir, fmt.Sprintf("m-%d.prom", start.Unix()+int64(15*q))))
		if err := os.WriteFile(files[len(files)-1], []byte(m.at(q, "", "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := trace.ReadFiles(context.Background(), files, nil, trace.Options{TTFTLimitMS: slowAt}, nil)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	for _, w := range d.Windows {
		if got := say2(w); got != want {
			t.Errorf("%s, snapshots: %s, want %s", name, got, want)
		}
	}
	if len(d.Windows) != 3 {
		t.Errorf("%s: %d windows of snapshots", name, len(d.Windows))
	}
}

// bySeries sorts lines so that those of a metric stand together, in the order of
// time, as OpenMetrics wants it.
func bySeries(text string) string {
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	lines[len(lines)-1] += "\n"
	slices.SortStableFunc(lines, func(a, b string) int {
		return strings.Compare(a[:strings.LastIndex(strings.TrimSuffix(a[:strings.LastIndex(a, " ")], " "), " ")], b[:strings.LastIndex(strings.TrimSuffix(b[:strings.LastIndex(b, " ")], " "), " ")])
	})
	return strings.Join(lines, "")
}

// TestAServerThatScrapesBothNamesSumsNeither has a real server scrape a vLLM
// that shows every metric by its old and its new name.
func TestAServerThatScrapesBothNamesSumsNeither(t *testing.T) {
	t.Parallel()
	metrics := vllmMetrics(newITL, oldITL, newKV, oldKV)
	var scrapes atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "# TYPE vllm:request_success_total counter\n"+metrics.at(int(scrapes.Add(1)), `version="v2"`, "")) //nolint:errcheck // the test sees what is missing
	}))
	defer target.Close()
	c := prom(servertest.PrometheusScraping(t, strings.TrimPrefix(target.URL, "http://")), nil)
	c.Preset, c.Span, c.Settle = "vllm", 4*time.Second, 0
	c.Matchers = map[release.Arm]string{release.Canary: `version="v2"`, release.Stable: `version="v1"`}
	s := newSource(t, c, Options{})
	for from, deadline := time.Now(), time.Now().Add(40*time.Second); time.Now().Before(deadline); <-time.After(100 * time.Millisecond) {
		windows := read(t, s, from, time.Now()).Windows
		if len(windows) < 2 {
			continue
		}
		// A scrape a second, each with 10 requests more: 40 in four seconds.
		w := windows[1]
		if w.Total < 25 || w.Total > 55 || math.Abs(w.ITLMS-20) > 1e-6 || w.KVCache != 0.4 || w.TTFTOf < 25 || w.TTFTOf > 55 {
			t.Error(say2(w))
		}
		return
	}
	t.Error("no two windows within 40 s")
}

func TestTheLabelOfABucketIsThatOfBothSpellings(t *testing.T) {
	for ms, want := range map[float64]string{3000: `3|3\\.0`, 2500: `2\\.5`, 50: `0\\.05`, 160_000: `160|160\\.0`} {
		if got := bucketLabel(ms); got != want {
			t.Errorf("%v: %s", ms, got)
		}
	}
}

func TestStreamingFiguresAndWhatTheyAreAPartOf(t *testing.T) {
	for _, c := range []struct {
		name string
		vals map[string][]string
		want string
		note string
	}{
		{"first tokens of all requests", map[string][]string{"c_total": {"10"}, "c_ttft_p99_ms": {"900"}, "c_ttft_slow": {"2"}}, "total=10 ttft=900/10 slow=2/10", ""},
		{"of streams", map[string][]string{"c_total": {"10"}, "c_ttft_p99_ms": {"900"}, "c_itl_ms": {"20"}, "c_streams": {"7"}, "c_aborted": {"1"}}, "total=10 ttft=900/7 itl=20/7 aborted=1/7", ""},
		{"of their own number", map[string][]string{"c_total": {"10"}, "c_ttft_p99_ms": {"900"}, "c_ttft_of": {"6"}, "c_itl_ms": {"20"}, "c_itl_of": {"5"}, "c_streams": {"7"}}, "total=10 ttft=900/6 itl=20/5", ""},
		{"a number that is asked for and missing leaves them missing", map[string][]string{"c_total": {"10"}, "c_ttft_p99_ms": {"900"}, "c_ttft_slow": {"1"}, "c_ttft_of": {"NaN"}, "c_itl_ms": {"20"}, "c_streams": {""}, "c_aborted": {"1"}},
			"total=10", ""},
		{"statuses of all requests", map[string][]string{"c_total": {"10"}, "c_errors": {"3"}, "c_server_errors": {"1"}}, "total=10 errors=3/10 5xx=1/10", ""},
		{"of those that are known", map[string][]string{"c_total": {"10"}, "c_status_of": {"8"}, "c_server_errors": {"1"}}, "total=10 5xx=1/8", ""},
		{"missing is not 0", map[string][]string{"c_total": {"10"}, "c_errors": {"NaN"}, "c_itl_ms": {"+Inf"}, "c_kv_cache": {""}, "c_aborted": {"0"}}, "total=10 aborted=0/10", ""},
		{"more slow ones than there are", map[string][]string{"c_total": {"10"}, "c_ttft_of": {"4"}, "c_ttft_slow": {"5"}, "c_ttft_p99_ms": {"9"}}, "total=10 ttft=9/4", "canary.ttft_slow: 1 count was larger"},
		{"more errors than answers", map[string][]string{"c_total": {"10"}, "c_errors": {"11"}, "c_server_errors": {"0"}}, "total=10 5xx=0/10", "canary.errors: 1 count was larger"},
		{"more server errors than errors", map[string][]string{"c_total": {"10"}, "c_errors": {"1"}, "c_server_errors": {"2"}}, "total=10 errors=1/10", "canary.server_errors: 1 count was larger"},
		{"first tokens of requests that have not ended", map[string][]string{"c_total": {"10"}, "c_ttft_of": {"14"}, "c_ttft_slow": {"12"}, "c_ttft_p99_ms": {"9"}, "c_streams": {"11"}, "c_aborted": {"2"}},
			"total=10 ttft=9/10 slow=10/10 aborted=2/10", ""},
		{"more aborted than streams", map[string][]string{"c_total": {"10"}, "c_streams": {"11"}, "c_aborted": {"12"}}, "total=10", "canary.aborted: 1 count was larger"},
		{"a cache in percent", map[string][]string{"c_total": {"10"}, "c_kv_cache": {"45"}}, "total=10", "canary.kv_cache: 1 value is above 1 and no fraction"},
		{"a full cache", map[string][]string{"c_total": {"10"}, "c_kv_cache": {"1"}}, "total=10 kv=1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			fields := []string{"total"}
			for query := range c.vals {
				fields = append(fields, strings.TrimPrefix(query, "c_"))
			}
			b := read(t, newSource(t, prom(points(t, c.vals), canaryQueries(fields...)), Options{TTFTLimitMS: 3000}), noon, noon.Add(time.Minute))
			if got := say2(b.Windows[0]); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if c.note != "" && !slices.ContainsFunc(b.Notes, func(n string) bool { return strings.HasPrefix(n, c.note) }) {
				t.Errorf("notes %q", b.Notes)
			}
		})
	}
}

func TestSlowFirstTokensAreAskedForOnlyWithALimit(t *testing.T) {
	c := prom("http://127.0.0.1:1", map[release.Arm]config.FieldText{release.Canary: {}})
	c.Preset, c.Matchers = "vllm", map[release.Arm]string{release.Canary: `v="2"`, release.Stable: `v="1"`}
	for limit, want := range map[float64]string{0: "", 2500: `{le=~"2\\.5",v="2"}`} {
		got := ""
		for _, q := range newSource(t, c, Options{TTFTLimitMS: limit}).(*prometheus).queries {
			if q.String() == "canary.ttft_slow" {
				got = q.text
			}
		}
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%v: %s", limit, got)
		}
	}
}

func TestAQueryOfAPresetCanBeTakenAway(t *testing.T) {
	const text = "canary:\n  target_service: chat\n  steps: [ { pct: 1.00, min_hold_min: 60 } ]\n" +
		"source: { prometheus: { url: 'http://127.0.0.1:1', preset: litellm, matchers: { canary: 'v=\"2\"', stable: 'v=\"1\"' },\n" +
		"  queries: { canary: { errors: '-', %s }, stable: { errors: '-' } } } }\n"
	cfg, err := config.Parse("canary.yaml", fmt.Appendf(nil, text, "server_errors: '-'"))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range newSource(t, cfg.Source, Options{}).(*prometheus).queries {
		if q.field == "errors" || q.arm == release.Canary && q.field == "server_errors" {
			t.Errorf("%s is asked for", q)
		}
	}
	if cfg, err = config.Parse("canary.yaml", fmt.Appendf(nil, text, "total: '-'")); err != nil {
		t.Fatal(err)
	}
	if _, err := New(cfg.Source, Options{}); err == nil || !strings.Contains(err.Error(), "canary has no query for total") {
		t.Errorf("%v", err)
	}
}
