package trace

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
)

// snapshotFiles writes snapshots into a folder and returns their paths, by name.
func snapshotFiles(t testing.TB, texts map[string]string) []string {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(texts[name]), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

func readSnapshots(t testing.TB, opt Options, texts map[string]string) (*Data, error) {
	t.Helper()
	return ReadFiles(t.Context(), snapshotFiles(t, texts), nil, opt, nil)
}

// minutes are snapshots one minute apart, from noon on.
func minutes(texts ...string) map[string]string {
	out := make(map[string]string)
	for i, text := range texts {
		out[fmt.Sprintf("metrics-2026-05-04T12-%02d-00Z.prom", i)] = text
	}
	return out
}

// figuresOf writes a window shortly; what it does not know is left out.
func figuresOf(w release.Window) string {
	s := fmt.Sprintf("%s %s %s total=%d", w.T.Format("15:04:05"), FormatSpan(w.Span), w.Arm, w.Total)
	add := func(has release.Figures, format string, args ...any) {
		if w.Has(has) {
			s += " " + fmt.Sprintf(format, args...)
		}
	}
	add(release.HasSolved, "solved=%d/%d", w.Solved, w.Judged)
	add(release.HasViolations, "violations=%d", w.Violations)
	add(release.HasCost, "cost=%.4g", w.Cost)
	add(release.HasCostMean, "mean=%.4g", w.CostMean)
	add(release.HasP99, "p99=%.6g", w.P99MS)
	add(release.HasTTFT, "ttft=%.6g/%d", w.TTFTP99MS, w.TTFTOf)
	add(release.HasTTFTSlow, "slow=%d/%d", w.TTFTSlow, w.TTFTOf)
	add(release.HasITL, "itl=%.6g/%d", w.ITLMS, w.ITLOf)
	add(release.HasAborts, "aborted=%d/%d", w.Aborted, w.Streams)
	add(release.HasErrors, "errors=%d/%d", w.Errors, w.StatusOf)
	add(release.HasServerErrors, "5xx=%d/%d", w.ServerErrors, w.StatusOf)
	add(release.HasKVCache, "kv=%g", w.KVCache)
	return s
}

func allFigures(d *Data) (out []string) {
	for _, w := range d.Windows {
		out = append(out, figuresOf(w))
	}
	return out
}

// vllmText is what a vLLM server shows after n requests: each had its first
// token within 0.5 s but slow ones, within 5, and 10 tokens of 0.02 s.
func vllmText(n, slow int, names ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# HELP vllm:request_success_total Count of successfully processed requests.\n# TYPE vllm:request_success_total counter\n"+
		"vllm:request_success_total{engine=\"0\",finished_reason=\"stop\",model_name=\"m\"} %d.0\n"+
		"vllm:request_success_total{engine=\"0\",finished_reason=\"abort\",model_name=\"m\"} 0.0\n", n)
	fmt.Fprintf(&b, "# TYPE vllm:time_to_first_token_seconds histogram\n")
	for _, le := range []struct {
		le string
		n  int
	}{{"0.25", 0}, {"0.5", n - slow}, {"2.5", n - slow}, {"5.0", n}, {"+Inf", n}} {
		fmt.Fprintf(&b, "vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=%q,model_name=\"m\"} %d.0\n", le.le, le.n)
	}
	fmt.Fprintf(&b, "vllm:time_to_first_token_seconds_sum{engine=\"0\",model_name=\"m\"} %d\nvllm:time_to_first_token_seconds_count{engine=\"0\",model_name=\"m\"} %d\n", n, n)
	for _, name := range names {
		if strings.HasSuffix(name, "_perc") {
			fmt.Fprintf(&b, "# TYPE %s gauge\n%s{engine=\"0\",model_name=\"m\"} 0.%02d\n", name, name, n%100)
			continue
		}
		fmt.Fprintf(&b, "# TYPE %s histogram\n%s_bucket{engine=\"0\",le=\"0.025\",model_name=\"m\"} %d\n%s_bucket{engine=\"0\",le=\"+Inf\",model_name=\"m\"} %d\n%s_sum{engine=\"0\",model_name=\"m\"} %g\n%s_count{engine=\"0\",model_name=\"m\"} %d\n",
			name, name, 10*n, name, 10*n, name, 0.2*float64(n), name, 10*n)
	}
	return b.String()
}

const (
	newITL, oldITL = "vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"
	newKV, oldKV   = "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"
)

func TestWindowsAreTheDifferencesOfSnapshots(t *testing.T) {
	d, err := readSnapshots(t, Options{}, minutes(vllmText(1000, 10, newITL, newKV), vllmText(1060, 10, newITL, newKV), vllmText(1090, 13, newITL, newKV)))
	if err != nil {
		t.Fatal(err)
	}
	// 12:01: 60 fast ones, rank 59.4 of the bucket 0.25 to 0.5; 12:02: rank 29.7
	// of 30, 2.7 of 3 in the bucket 2.5 to 5.
	want := []string{
		"12:00:00 1m all total=60 ttft=497.5/60 itl=20/60 kv=0.6",
		"12:01:00 1m all total=30 ttft=4750/30 itl=20/30 kv=0.9",
	}
	if diff := cmp.Diff(want, allFigures(d)); diff != "" {
		t.Error(diff)
	}
	if d.Kind != Windows || d.Rows != 3 || d.Good != 3 || d.Span != time.Minute || !d.Last.Equal(time.Date(2026, 5, 4, 12, 2, 0, 0, time.UTC)) {
		t.Errorf("%+v", d)
	}
}

// TestOldAndNewNamesAreNeverAdded: vLLM showed both names for some versions.
func TestOldAndNewNamesAreNeverAdded(t *testing.T) {
	for name, tt := range map[string]struct {
		names []string
		want  string
	}{
		"both": {[]string{newITL, oldITL, newKV, oldKV}, "12:00:00 1m all total=60 ttft=497.5/60 itl=20/60 kv=0.6"},
		"old":  {[]string{oldITL, oldKV}, "12:00:00 1m all total=60 ttft=497.5/60 itl=20/60 kv=0.6"},
		"new":  {[]string{newITL, newKV}, "12:00:00 1m all total=60 ttft=497.5/60 itl=20/60 kv=0.6"},
		"none": {nil, "12:00:00 1m all total=60 ttft=497.5/60"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := readSnapshots(t, Options{}, minutes(vllmText(0, 0, tt.names...), vllmText(60, 0, tt.names...)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tt.want}, allFigures(d)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSlowFirstTokensAreKnownAtABoundOfTheHistogramOnly(t *testing.T) {
	for limit, want := range map[float64]string{
		0: "", 2500: " slow=3/60", 500: " slow=3/60", 250: " slow=60/60", 5000: " slow=0/60", 3000: "", 2000: "",
	} {
		d, err := readSnapshots(t, Options{TTFTLimitMS: limit}, minutes(vllmText(0, 0), vllmText(60, 3)))
		if err != nil {
			t.Fatal(err)
		}
		// rank 59.4: 2.4 of 3 in the bucket 2.5 to 5
		if got := figuresOf(d.Windows[0]); got != "12:00:00 1m all total=60 ttft=4500/60"+want {
			t.Errorf("%v ms: %s", limit, got)
		}
	}
}

func TestACounterThatStartedAnewCountsFromZero(t *testing.T) {
	started := func(at float64, text string) string {
		return fmt.Sprintf("process_start_time_seconds %.2f\n%s", at, text)
	}
	noon := float64(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC).Unix())
	for name, tt := range map[string]struct {
		texts map[string]string
		want  []int64
		note  string
	}{
		"it fell":                          {minutes(vllmText(1000, 0), vllmText(40, 0), vllmText(70, 0)), []int64{40, 30}, "counters started anew once"},
		"it fell to 0":                     {minutes(vllmText(1000, 0), vllmText(0, 0), vllmText(70, 0)), []int64{0, 70}, "counters started anew once"},
		"the process did, and it rose":     {minutes(started(noon-900, vllmText(50, 0)), started(noon+20, vllmText(80, 0))), []int64{80}, "counters started anew once"},
		"the process's clock was adjusted": {minutes(started(noon-900, vllmText(50, 0)), started(noon-899.5, vllmText(80, 0))), []int64{30}, ""},
		"another metric fell":              {minutes("up 5\n"+vllmText(50, 0), "up 1\n"+vllmText(80, 0)), []int64{30}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := readSnapshots(t, Options{}, tt.texts)
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, w := range d.Windows {
				got = append(got, w.Total)
				if w.Total > 0 && w.TTFTOf != w.Total {
					t.Errorf("the histogram did not start anew with the counter: %s", figuresOf(w))
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if said := slices.ContainsFunc(d.Notes, func(n string) bool { return strings.HasPrefix(n, "counters started anew") }); said != (tt.note != "") {
				t.Errorf("%q", d.Notes)
			}
		})
	}
}

// TestAProcessStartsAnewAsAWhole: 12 requests since the restart, 10 before. One
// bucket fell, and nothing else.
func TestAProcessStartsAnewAsAWhole(t *testing.T) {
	d, err := readSnapshots(t, Options{TTFTLimitMS: 500}, minutes(vllmText(10, 0), vllmText(12, 8)))
	if err != nil {
		t.Fatal(err)
	}
	if w := d.Windows[0]; w.Total != 12 || w.TTFTSlow != 8 || w.TTFTOf != 12 {
		t.Errorf("%s", figuresOf(w))
	}
}

func TestAnEngineThatStartsAnewLeavesTheOthersAlone(t *testing.T) {
	text := func(a, b int) string {
		return fmt.Sprintf("vllm:request_success_total{engine=\"0\"} %d\nvllm:request_success_total{engine=\"1\"} %d\n", a, b)
	}
	d, err := readSnapshots(t, Options{}, minutes(text(1000, 2000), text(5, 2030)))
	if err != nil || d.Windows[0].Total != 35 {
		t.Errorf("%v, %v", err, allFigures(d))
	}
}

func TestASeriesThatIsNewStartedAtZero(t *testing.T) {
	ok := `litellm_proxy_total_requests_metric_total{status_code="200"} %d` + "\n"
	failed := `litellm_proxy_total_requests_metric_total{status_code="500"} 3` + "\n" + `litellm_proxy_failed_requests_metric_total{exception_status="500"} 3` + "\n"
	d, err := readSnapshots(t, Options{}, minutes(fmt.Sprintf(ok, 100), fmt.Sprintf(ok, 150)+failed, fmt.Sprintf(ok, 160), fmt.Sprintf(ok, 170)+failed))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"12:00:00 1m all total=53 errors=3/53 5xx=3/53",
		"12:01:00 1m all total=10 errors=0/10 5xx=0/10",
		"12:02:00 1m all total=10 errors=0/10 5xx=0/10", // it was away for a snapshot and did not start anew
	}
	if diff := cmp.Diff(want, allFigures(d)); diff != "" {
		t.Error(diff)
	}
}

func TestPresetsReadTheirMetrics(t *testing.T) {
	for name, tt := range map[string]struct{ before, after, want string }{
		"litellm": {"litellm_proxy_total_requests_metric_total 10\nlitellm_proxy_failed_requests_metric_total{exception_status=\"429\"} 1\nlitellm_spend_metric_total 2\n",
			"litellm_proxy_total_requests_metric_total 30\nlitellm_proxy_failed_requests_metric_total{exception_status=\"429\"} 3\n" +
				"litellm_proxy_failed_requests_metric_total{exception_status=\"503\"} 1\nlitellm_spend_metric_total 3\n",
			"total=20 mean=0.05 errors=3/20 5xx=1/20"},
		"litellm, old names": {"litellm_proxy_total_requests_metric 10\n", "litellm_proxy_total_requests_metric 30\nlitellm_spend_metric 4\n", "total=20 mean=0.2 errors=0/20 5xx=0/20"},
		"litellm, both names": {"litellm_proxy_total_requests_metric 10\nlitellm_proxy_total_requests_metric_total 10\n",
			"litellm_proxy_total_requests_metric 30\nlitellm_proxy_total_requests_metric_total 30\n", "total=20 errors=0/20 5xx=0/20"},
		"vllm, both names with different values": {"vllm:request_success_total 0\nvllm:inter_token_latency_seconds_sum 0\nvllm:inter_token_latency_seconds_count 0\n",
			"vllm:request_success_total 10\nvllm:inter_token_latency_seconds_sum 2\nvllm:inter_token_latency_seconds_count 100\n" +
				"vllm:time_per_output_token_seconds_sum 4\nvllm:time_per_output_token_seconds_count 100\nvllm:kv_cache_usage_perc 0.5\nvllm:gpu_cache_usage_perc 0.9\n", "total=10 itl=20/10 kv=0.5"},
		"vllm, a cache in percent is no fraction": {"vllm:request_success_total 0\n", "vllm:request_success_total 10\nvllm:kv_cache_usage_perc 45\n", "total=10"},
		"sglang": {"sglang:e2e_request_latency_seconds_count 5\nsglang:token_usage 0.2\n", "sglang:e2e_request_latency_seconds_count 9\nsglang:token_usage{a=\"b\"} 0.28\nsglang:token_usage 0.25\n" +
			"sglang:inter_token_latency_seconds_sum 1.5\nsglang:inter_token_latency_seconds_count 100\n", "total=4 itl=15/4 kv=0.28"},
		"gen_ai client, with errors by their type": {"gen_ai_client_operation_duration_seconds_count 5\n", "gen_ai_client_operation_duration_seconds_count 8\n" +
			"gen_ai_client_operation_duration_seconds_count{error_type=\"RateLimitError\"} 2\ngen_ai_client_token_usage_sum{gen_ai_token_type=\"total\"} 99\n" +
			"gen_ai_client_operation_time_to_first_chunk_seconds_count 3\ngen_ai_client_operation_time_to_first_chunk_seconds_bucket{le=\"1\"} 3\ngen_ai_client_operation_time_to_first_chunk_seconds_bucket{le=\"+Inf\"} 3\n",
			"total=5 ttft=990/3 errors=2/5"},
		"gen_ai client before server": {"gen_ai_client_operation_duration_seconds_count 5\ngen_ai_server_request_duration_seconds_count 5\n",
			"gen_ai_client_operation_duration_seconds_count 8\ngen_ai_server_request_duration_seconds_count 9\n", "total=3 errors=0/3"},
		"envoy, times in milliseconds": {"envoy_cluster_upstream_rq_completed 0\n", "envoy_cluster_upstream_rq_completed 100\nenvoy_cluster_upstream_rq_xx{envoy_response_code_class=\"2\"} 90\n" +
			"envoy_cluster_upstream_rq_xx{envoy_response_code_class=\"4\"} 8\nenvoy_cluster_upstream_rq_xx{envoy_response_code_class=\"5\"} 2\n" +
			"envoy_cluster_upstream_rq_time_bucket{le=\"500\"} 100\nenvoy_cluster_upstream_rq_time_bucket{le=\"+Inf\"} 100\n", "total=100 p99=495 errors=10/100 5xx=2/100"},
		"nginx, a client that hung up is no error": {"nginx_ingress_controller_requests{status=\"200\"} 1\n", "nginx_ingress_controller_requests{status=\"200\"} 91\n" +
			"nginx_ingress_controller_requests{status=\"499\"} 5\nnginx_ingress_controller_requests{status=\"429\"} 3\nnginx_ingress_controller_requests{status=\"502\"} 2\n",
			"total=100 errors=5/100 5xx=2/100"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := readSnapshots(t, Options{}, minutes(tt.before, tt.after))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"12:00:00 1m all " + tt.want}, allFigures(d)); diff != "" {
				t.Error(diff)
			}
			if slices.ContainsFunc(d.Notes, func(n string) bool { return strings.Contains(n, "the metrics are those of") }) {
				t.Errorf("%q", d.Notes)
			}
		})
	}
}

func TestArmsOfSnapshots(t *testing.T) {
	const count = "vllm:request_success_total"
	twoModels := func(a, b int) string {
		return fmt.Sprintf("%s{model_name=\"old\",tier=\"x\"} %d\n%s{model_name=\"new\",tier=\"y\"} %d\n", count, a, count, b)
	}
	byFile := map[string]string{
		"stable-1777896000.prom": count + " 10\n", "stable-1777896060.prom": count + " 30\n",
		"canary-1777896000.prom": count + " 1\n", "canary-1777896060.prom": count + " 3\n",
	}
	pods := map[string]string{
		"pod-a/1777896000.prom": count + " 10\n", "pod-a/1777896060.prom": count + " 30\n",
		"pod-b/1777896005.prom": count + " 1\n", "pod-b/1777896064.prom": count + " 3\n",
	}
	for name, tt := range map[string]struct {
		texts map[string]string
		maps  string
		arms  []string
		want  []string
	}{
		"a gauge of a model that is left out may fall": {minutes(twoModels(5, 5)+"vllm:kv_cache_usage_perc{model_name=\"old\"} 0.5\n", twoModels(9, 12)+"vllm:kv_cache_usage_perc{model_name=\"old\"} 0.2\nsglang:token_usage 0.1\n"), "",
			[]string{"canary=new"}, []string{"canary 7"}},
		"models are not told apart unless asked": {minutes(twoModels(0, 0), twoModels(5, 7)), "", nil, []string{"all 12"}},
		"by the model":                           {minutes(twoModels(0, 0), twoModels(5, 7)), "", []string{"stable=old", "canary=new"}, []string{"canary 7", "stable 5"}},
		"of one model":                           {minutes(twoModels(0, 0), twoModels(5, 7)), "", []string{"canary=new"}, []string{"canary 7"}},
		"by a label":                             {minutes(twoModels(0, 0), twoModels(5, 7)), "version=tier", []string{"stable=x", "canary=y"}, []string{"canary 7", "stable 5"}},
		"each version is an arm":                 {minutes(twoModels(0, 0), twoModels(5, 7)), "version=tier", nil, []string{"x 5", "y 7"}},
		"merged":                                 {minutes(twoModels(0, 0), twoModels(5, 7)), "version=tier", []string{"all"}, []string{"all 12"}},
		"by the name of the file":                {byFile, "", nil, []string{"canary 2", "stable 20"}},
		"pods of one arm are added":              {pods, "", nil, []string{"all 22"}},
		"pods by the name of the folder":         {pods, "", []string{"canary=pod-b", "stable=pod-a"}, []string{"canary 2", "stable 20"}},
	} {
		t.Run(name, func(t *testing.T) {
			opt := options(t, tt.maps)
			for _, a := range tt.arms {
				if err := opt.ParseArm(a); err != nil {
					t.Fatal(err)
				}
			}
			d, err := readSnapshots(t, opt, tt.texts)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range d.Windows {
				got = append(got, fmt.Sprintf("%s %d", w.Arm, w.Total))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s\n%q", diff, d.Notes)
			}
		})
	}
}

func TestAMetricWithoutTheLabelOfArmsIsNoArm(t *testing.T) {
	text := func(n int) string {
		return fmt.Sprintf("vllm:request_success_total{version=\"canary\"} %d\nvllm:kv_cache_usage_perc 0.5\n", n)
	}
	d, err := readSnapshots(t, Options{}, minutes(text(0), text(5), text(9)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"12:00:00 1m canary total=5", "12:01:00 1m canary total=4"}, allFigures(d)); diff != "" || d.NoData != 0 {
		t.Error(diff, d.NoData)
	}
	if !slices.Contains(d.Notes, "series of the arm all count no requests, and make no window") {
		t.Errorf("%q", d.Notes)
	}
}

// TestWindowsOfSnapshotsReadBack: more first tokens than ends in a window, as
// traffic grows, and fewer in the next.
func TestWindowsOfSnapshotsReadBack(t *testing.T) {
	text := func(n, first int) string {
		return fmt.Sprintf("vllm:request_success_total %d\nvllm:time_to_first_token_seconds_count %d\n"+
			"vllm:time_to_first_token_seconds_bucket{le=\"1.0\"} %d\nvllm:time_to_first_token_seconds_bucket{le=\"+Inf\"} %d\n"+
			"vllm:inter_token_latency_seconds_sum %d\nvllm:inter_token_latency_seconds_count %d\n", n, first, first-first/3, first, n, 30*n)
	}
	d, err := readSnapshots(t, Options{TTFTLimitMS: 1000}, minutes(text(0, 0), text(10, 30), text(40, 40), text(40, 40)))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"12:00:00 1m all total=10 ttft=1000/10 slow=10/10 itl=33.3333/10",
		"12:01:00 1m all total=30 ttft=1000/10 slow=3/10 itl=33.3333/30",
		"12:02:00 1m all total=0 slow=0/0",
	}
	if diff := cmp.Diff(want, allFigures(d)); diff != "" {
		t.Error(diff)
	}
	var csv strings.Builder
	if err := WriteCSV(&csv, d.Windows, Columns(d.Supplied)); err != nil {
		t.Fatal(err)
	}
	again, err := ReadFiles(t.Context(), snapshotFiles(t, map[string]string{"w.csv": csv.String()}), nil, Options{}, nil)
	if err != nil || cmp.Diff(allFigures(d), allFigures(again)) != "" {
		t.Errorf("%v\n%s\n%s", err, csv.String(), cmp.Diff(allFigures(d), allFigures(again)))
	}
}

func TestSnapshotsAreNoFileThatGrows(t *testing.T) {
	_, _, err := NewLive(Windows, Options{}).Open("m.prom", []byte(vllmText(1, 0)))
	if e, ok := errors.AsType[*InputError](err); !ok || !strings.Contains(e.Hint(), "source.prometheus") {
		t.Errorf("%v", err)
	}
}

func TestWhenASnapshotWasTaken(t *testing.T) {
	want := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	for name, target := range map[string]string{
		"metrics-2026-05-04T12:00:00Z.prom":          "metrics",
		"metrics-2026-05-04T12-00-00Z.prom.gz":       "metrics",
		"metrics_2026-05-04_12-00-00.txt":            "metrics",
		"20260504T120000Z-vllm.prom":                 "vllm",
		"20260504-120000.prom":                       "run",
		"vllm-8000.20260504-140000+0200":             "vllm-8000",
		"vllm@2026-05-04T07:00:00-05:00.om":          "vllm",
		"vllm-1777896000.prom.zst":                   "vllm",
		"vllm-1777896000000.prom":                    "vllm",
		"1777896000.000000000":                       "run",
		"vllm-1777896000000000000.metrics":           "vllm",
		"vllm-2026-05-04T12-00-00-0012.prom":         "vllm--0012",
		"metrics-2026-05-04T12:00:00.000+00:00.prom": "metrics",
	} {
		n := nameOf(filepath.Join("run", name))
		if n.at != want.UnixNano() || n.target != target {
			t.Errorf("%s: %s of %q", name, instantOf(n.at), n.target)
		}
	}
	for _, name := range []string{"metrics.prom", "metrics-17.prom", "2026-05-04.prom", "a-1777896000-1777896060.prom", "2026-13-04T12:00:00Z.prom", "20260504120000.prom", "17778960000.prom"} {
		if n := nameOf(name); n.at != noTime {
			t.Errorf("%s: %s", name, instantOf(n.at))
		}
	}
	for _, same := range [][2]string{{"pod-a-1.prom", "pod-a-22.prom"}, {"metrics.1.gz", "metrics.2"}} {
		if a, b := nameOf(same[0]), nameOf(same[1]); a.target != b.target {
			t.Errorf("%v are of two targets", same)
		}
	}
}

func TestTimesOfSamplesCount(t *testing.T) {
	at := func(n int, ms int64) string {
		return fmt.Sprintf("vllm:request_success_total{a=\"b } # {\"} %d %d\n", n, ms)
	}
	const noon = 1777896000000
	for name, texts := range map[string]map[string]string{
		"in milliseconds":           {"b.prom": at(5, noon+60_000), "b2.prom": at(1, noon)},
		"in seconds, OpenMetrics":   {"b1.prom": at(1, noon/1000) + "# EOF\n", "b2.prom": at(5, noon/1000+60) + "# EOF"},
		"and not those of the name": {"b-1500000000.prom": at(1, noon), "b-1500000001.prom": at(5, noon+60_000)},
	} {
		d, err := readSnapshots(t, Options{}, texts)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff([]string{"12:00:00 1m all total=4"}, allFigures(d)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAWindowIsWhereTheMiddleOfTheDifferenceLies(t *testing.T) {
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC).Unix()
	for name, tt := range map[string]struct {
		at      []int64 // seconds past noon
		span    time.Duration
		want    []string // start and total; each second brings one request
		partial int
		note    string
	}{
		"on the minute":                          {[]int64{0, 60, 120, 180}, 0, []string{"12:00 60", "12:01 60", "12:02 60"}, 0, ""},
		"half a minute off, a second late":       {[]int64{30, 91, 149, 211, 270}, 0, []string{"12:01 61", "12:02 58", "12:03 62", "12:04 59"}, 0, ""},
		"every quarter of a minute":              {[]int64{0, 15, 30, 45, 60, 75, 90}, 0, []string{"12:00 60", "12:01 30"}, 1, ""},
		"every five minutes":                     {[]int64{0, 300, 601}, 0, []string{"12:00 300", "12:05 301"}, 0, ""},
		"every minute, asked for ten":            {[]int64{0, 60, 120, 180}, 10 * time.Minute, []string{"12:00 180"}, 1, ""},
		"a snapshot is missing":                  {[]int64{0, 60, 180, 240}, 0, []string{"12:00 60", "12:03 60"}, 0, "2 snapshots are further apart"},
		"a snapshot is a third of a minute late": {[]int64{0, 60, 140, 180}, 0, []string{"12:00 60", "12:01 80", "12:02 40"}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			texts := make(map[string]string)
			for _, s := range tt.at {
				texts[fmt.Sprintf("m-%d.prom", noon+s)] = fmt.Sprintf("vllm:request_success_total %d\n", 1000+s)
			}
			d, err := readSnapshots(t, Options{Span: tt.span}, texts)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range d.Windows {
				got = append(got, fmt.Sprintf("%s %d", w.T.Format("15:04"), w.Total))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || len(d.Partial) != tt.partial {
				t.Errorf("%s%v", diff, d.Partial)
			}
			if tt.note != "" && !slices.ContainsFunc(d.Notes, func(n string) bool { return strings.HasPrefix(n, tt.note) }) {
				t.Errorf("%q", d.Notes)
			}
		})
	}
}

func TestAPartOfTheTrafficDoesNotStandForAllOfIt(t *testing.T) {
	const count = "vllm:request_success_total %d\n"
	texts := make(map[string]string)
	for i := range 5 {
		texts[fmt.Sprintf("a-%d.prom", 1777896000+60*i)] = fmt.Sprintf(count, 10*i)
		if i != 2 {
			texts[fmt.Sprintf("b-%d.prom", 1777896000+60*i)] = fmt.Sprintf(count, 100*i)
		}
	}
	d, err := readSnapshots(t, Options{}, texts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"12:00:00 1m all total=110", "12:03:00 1m all total=110"}, allFigures(d)); diff != "" {
		t.Error(diff)
	}
}

func TestSnapshotsThatAreRefused(t *testing.T) {
	count := func(n int) string { return fmt.Sprintf("vllm:request_success_total %d\n", n) }
	for name, tt := range map[string]struct {
		texts      map[string]string
		maps       string
		want, hint string
	}{
		"one alone":                     {map[string]string{"m-1777896000.prom": count(1)}, "", "one snapshot of /metrics, which is no window", "take one a minute"},
		"each of a target of its own":   {map[string]string{"a-1777896000.prom": count(1), "b-1777896060.prom": count(2)}, "", "one snapshot of /metrics", ""},
		"without a time":                {map[string]string{"metrics.prom": count(1), "metrics-b.prom": count(2)}, "", "without a time: neither its samples nor its name", "is not believed"},
		"of a server that is not known": {minutes("node_load1 3\n", "node_load1 4\n"), "", "without a metric that counts requests of a known server (vllm, sglang, litellm", "--map total=NAME"},
		"same time, other values":       {map[string]string{"m-1777896000.prom": count(1), "m-1777896000000.prom": count(2), "m-1777896060.prom": count(2)}, "", "is of the same time as", "a folder of its own"},
		"among records":                 {map[string]string{"a.jsonl": `{"ts":"2026-05-04T12:00:00Z"}`, "b-1777896000.prom": count(1)}, "", "among files of other kinds", ""},
		"a figure of records":           {minutes(count(1), count(2)), "latency_ms=x", "latency_ms is not taken from a snapshot", "name a label"},
		"a line that is damaged":        {minutes(count(1), count(2)+"vllm:request_success_total{a=\"b} 3\n"), "", "1 of 2 lines cannot be read", ""},
		"steps of no whole minutes":     {map[string]string{"m-1777896000.prom": count(1), "m-1777896090.prom": count(2)}, "", "1m30s apart", "--input-span"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readSnapshots(t, options(t, tt.maps), tt.texts)
			h, ok := errors.AsType[Hinter](err)
			if !ok || !strings.Contains(err.Error(), tt.want) || !strings.Contains(h.Hint(), tt.hint) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestAFileGivenTwiceInTwoNamesCountsOnce(t *testing.T) {
	d, err := readSnapshots(t, Options{}, map[string]string{
		"m-1777896000.prom": "vllm:request_success_total 1\n", "m-1777896060.prom": "vllm:request_success_total 5\n", "m-1777896060000.prom": "vllm:request_success_total 5\n",
	})
	if err != nil || d.Duplicates != 1 || totalOf(d.Windows) != 4 {
		t.Errorf("%v, %+v", err, d)
	}
}

func TestCountersOfOnesOwn(t *testing.T) {
	opt := options(t, `total=llm_requests_total,solved=llm_solved_total,violations=llm\:leaks_total,version=release`)
	text := func(n, solved, leaks int) string {
		return fmt.Sprintf("llm_requests_total{release=\"canary\"} %d\nllm_solved_total{release=\"canary\"} %d\nllm:leaks_total{release=\"canary\"} %d\n", n, solved, leaks)
	}
	d, err := readSnapshots(t, opt, minutes(text(0, 0, 0), text(20, 18, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"12:00:00 1m canary total=20 solved=18/20 violations=1"}, allFigures(d)); diff != "" {
		t.Error(diff)
	}
}

func TestTextsThatParsersStumbleOver(t *testing.T) {
	const line = `vllm:request_success_total{model_name="a } # { b\"\\"} 7`
	for name, text := range map[string]string{
		"CRLF":                       "# TYPE vllm:request_success_total counter\r\n" + line + "\r\n",
		"no newline at the end":      line,
		"# EOF":                      line + "\n# EOF\n",
		"# EOF without its newline":  line + "\n# EOF",
		"an exemplar":                line + ` # {trace_id="a # b"} 0.67 1777896000.123` + "\n",
		"an exemplar after a time":   line + ` 1777896000123 # {trace_id="a"} 1` + "\n",
		"a time in seconds":          line + " 1777896000.123\n",
		"OpenMetrics types":          "# TYPE vllm:request_success counter\n# UNIT x seconds\n# TYPE y info\n# TYPE z unknown\n" + line + "\n",
		"blank lines and remarks":    "\n\n# hello\n" + line + "\n\n",
		"a metric without labels":    "vllm:request_success_total 7 # {} 1\n",
		"a name with spaces after":   "vllm:request_success_total  7\n",
		"a metric with NaN beside":   "x NaN\ny +Inf\n" + line + "\n",
		"a comma after the last one": `vllm:request_success_total{model_name="a",} 7` + "\n",
	} {
		for _, keep := range []func(string) bool{nil, func(n string) bool { return n == "vllm:request_success_total" }} {
			got, at, err := readExposition(strings.NewReader(text), keep)
			if err != nil {
				t.Errorf("%s: line %d: %v", name, at, err)
				continue
			}
			i := slices.IndexFunc(got, func(l metricLine) bool { return l.name == "vllm:request_success_total" })
			if i < 0 || got[i].value != 7 || got[i].at != 0 && got[i].at != 1777896000123 {
				t.Errorf("%s: %+v", name, got)
			}
			if !looksLikeExposition([]byte(text)) {
				t.Errorf("%s: not seen as an exposition", name)
			}
		}
	}
	for _, text := range []string{"ts,solved\n1777896000,1\n", "a b c\n", "level=info msg=\"x\" 3\n", "", "total\n3\n"} {
		if looksLikeExposition([]byte(text)) {
			t.Errorf("%q is seen as an exposition", text)
		}
	}
}

// TestPublicExpositions reads texts that real servers showed: 237 families of
// 1,857 samples, and two smaller ones.
func TestPublicExpositions(t *testing.T) {
	for name, want := range map[string]int{"alltypes.237mfs.prom.txt": 1857, "metrics-test.prom": 27, "1histogram.om.txt": 42} {
		for _, crlf := range []bool{false, true} {
			text, err := os.ReadFile(shared(t, "prometheus/"+name))
			if err != nil {
				t.Fatal(err)
			}
			lines := 0
			for _, l := range strings.Split(string(text), "\n") {
				if l != "" && l[0] != '#' {
					lines++
				}
			}
			if crlf {
				text = []byte(strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\r\n"))
			}
			got, at, err := readExposition(strings.NewReader(string(text)), nil)
			if err != nil || len(got) != want || lines != want || !looksLikeExposition(text) {
				t.Errorf("%s: %d samples of %d lines, line %d: %v", name, len(got), lines, at, err)
			}
		}
	}
	families := make(map[string]bool)
	text, _ := os.ReadFile(shared(t, "prometheus/alltypes.237mfs.prom.txt")) // read above
	for _, l := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(l, "# TYPE ") {
			families[strings.Fields(l)[2]] = true
		}
	}
	if len(families) != 237 {
		t.Errorf("%d families", len(families))
	}
}

// TestBucketQuantile holds quantiles against those of histogram_quantile, with
// the examples of its documentation and tests in prometheus/prometheus
// (promql/promqltest/testdata/histograms.test).
func TestBucketQuantile(t *testing.T) {
	inf := math.Inf(1)
	for name, tt := range map[string]struct {
		q      float64
		within map[float64]float64
		want   float64
		capped bool
	}{
		"testhistogram positive, 0.8":     {0.8, map[float64]float64{.1: 5, .2: 7, 1e0: 11, inf: 12}, 0.72, false},
		"testhistogram positive, 0.2":     {0.2, map[float64]float64{.1: 5, .2: 7, 1e0: 11, inf: 12}, 0.048, false},
		"above the last bound":            {0.99, map[float64]float64{.1: 5, .2: 7, 1e0: 11, inf: 12}, 1, true},
		"testhistogram negative, 0.2":     {0.2, map[float64]float64{-.2: 1, -.1: 2, .3: 2, inf: 3}, -0.2, false},
		"no observation":                  {0.5, map[float64]float64{1: 0, inf: 0}, math.NaN(), false},
		"no bucket at all":                {0.5, nil, math.NaN(), false},
		"no bucket +Inf":                  {0.5, map[float64]float64{1: 3, 2: 4}, math.NaN(), false},
		"+Inf alone":                      {0.5, map[float64]float64{inf: 3}, math.NaN(), false},
		"a bucket read before the others": {0.5, map[float64]float64{1: 10, 2: 9, inf: 10}, 0.5, false},
	} {
		got, capped := bucketQuantile(tt.q, tt.within)
		if math.Abs(got-tt.want) > 1e-12 || math.IsNaN(got) != math.IsNaN(tt.want) || capped != tt.capped {
			t.Errorf("%s: %v %v", name, got, capped)
		}
	}
}

// TestSnapshotsAddUp: whatever happened between snapshots is in the windows
// once, in whichever order the files come.
func TestSnapshotsAddUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n, at, want := 0, int64(1777896000), int64(0)
		texts := make(map[string]string)
		first := true
		for range rapid.IntRange(2, 12).Draw(rt, "snapshots") {
			grown := rapid.IntRange(0, 50).Draw(rt, "grown")
			if rapid.IntRange(0, 9).Draw(rt, "restart") == 0 && grown < n {
				n = 0
			}
			n += grown
			if !first {
				want += int64(grown)
			}
			first = false
			texts[fmt.Sprintf("m-%d.prom", at)] = vllmText(n, 0)
			at += 60 + int64(rapid.IntRange(-3, 3).Draw(rt, "late"))
		}
		d, err := readSnapshots(t, Options{}, texts)
		if err != nil {
			rt.Fatal(err)
		}
		for _, w := range d.Windows {
			if w.Total != w.TTFTOf && w.Total > 0 {
				rt.Errorf("%s", figuresOf(w))
			}
		}
		if got := totalOf(d.Windows); got != want {
			rt.Errorf("%d requests, want %d\n%v", got, want, allFigures(d))
		}
	})
}

// What is held is bounded, and said, whatever the files are.
func TestMoreSnapshotsThanAreHeldAreRefused(t *testing.T) {
	s, err := newSnapshots(&Options{})
	if err != nil {
		t.Fatal(err)
	}
	lines, _, err := readExposition(strings.NewReader(vllmText(5, 0)), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.most = 3 * len(lines)
	for i := range 4 {
		err = s.add(fmt.Sprintf("m-%d.prom", 1777896000+60*i), lines, &Data{})
		if i < 3 && err != nil {
			t.Fatal(err)
		}
	}
	if e, ok := errors.AsType[*InputError](err); !ok || e.File != "m-1777896180.prom" || e.Hint() == "" {
		t.Errorf("%v", err)
	}
}

// A snapshot that shows the series of the one before holds eight bytes a value.
func TestSnapshotsOfTheSameSeriesShareTheirList(t *testing.T) {
	s, err := newSnapshots(&Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{vllmText(5, 0), vllmText(6, 0), vllmText(7, 0)} {
		lines, _, err := readExposition(strings.NewReader(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.add(fmt.Sprintf("m-%d.prom", 1777896000+60*i), lines, &Data{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, target := range s.targets {
		first := &target.shots[0]
		for _, shot := range target.shots[1:] {
			if len(shot.series) == 0 || &shot.series[0] != &first.series[0] || len(shot.values) != cap(shot.values) {
				t.Errorf("%d series in a list of its own, %d values in room for %d", len(shot.series), len(shot.values), cap(shot.values))
			}
		}
	}
}

// The list of presets is the caller's own.
func TestPresetsCannotBeChangedFromOutside(t *testing.T) {
	list := Presets()
	list[0].Name = "spoilt"
	clear(list[0].Queries())
	if got := Presets()[0]; got.Name != "vllm" || len(got.Queries()) == 0 {
		t.Errorf("%+v", got)
	}
}

func FuzzExposition(f *testing.F) {
	f.Add("# TYPE a histogram\na_bucket{le=\"1\"} 3\na_bucket{le=\"+Inf\"} 4\na_sum 2\na_count 4 1777896000\n# EOF")
	f.Add("vllm:request_success_total{a=\"\\\"}#\"} NaN # {b=\"c\"} 1 2\r\n")
	f.Add("# TYPE s summary\ns{quantile=\"0.5\"} 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		looksLikeExposition([]byte(text))
		all, _, err := readExposition(strings.NewReader(text), nil)
		if _, bad := errors.AsType[*badRow](err); err != nil && !bad {
			t.Fatal(err)
		}
		for _, l := range all {
			if l.name == "" && len(l.labels) == 0 {
				t.Errorf("%+v", l)
			}
		}
	})
}

// TestExpositionPageIsTrue reads the files on the page about snapshots.
func TestExpositionPageIsTrue(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "exposition.md"))
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string)
	for _, m := range regexp.MustCompile("(?s)```text (\\S+)\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		texts[m[1]] = m[2]
	}
	m := regexp.MustCompile("(?s)\\$ canaryctl windows .*?--columns (\\S+) [^\n]*\n(.*?)```").FindStringSubmatch(string(page))
	if len(texts) != 2 || m == nil {
		t.Fatalf("%d files on the page", len(texts))
	}
	var opt Options
	for _, a := range []string{"stable=chat-v1", "canary=chat-v2"} {
		if err := opt.ParseArm(a); err != nil {
			t.Fatal(err)
		}
	}
	d, err := readSnapshots(t, opt, texts)
	if err != nil {
		t.Fatal(err)
	}
	columns, err := ParseColumns(m[1])
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	if err := WriteCSV(&got, d.Windows, columns); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m[2], got.String()); diff != "" {
		t.Error(diff)
	}
}
