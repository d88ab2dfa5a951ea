package source

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/servertest"
)

// minuteOf is what one arm did in one minute of the history.
type minuteOf struct {
	total, judged, solved, violations int64
	costCents, slowest                int64 // of all requests; how many took 0.5 s to 1 s
}

// history makes a day of minutes for an arm, and its counters in the spelling
// of LiteLLM and vLLM, sampled every 15 seconds: of each minute a quarter of
// its requests in each.
func history(arm string, rate int, seed uint64) (minutes []minuteOf, text map[string]*strings.Builder) {
	rng := rand.New(rand.NewPCG(seed, 1))
	text = map[string]*strings.Builder{}
	var sum [8]int64
	sample := func(at time.Time) {
		for i, name := range historySeries {
			if text[name] == nil {
				text[name] = &strings.Builder{}
			}
			labels := fmt.Sprintf(`version="%s"`, arm)
			base, le, bucket := strings.Cut(name, "|")
			if bucket {
				labels += fmt.Sprintf(`,le="%s"`, le)
			}
			fmt.Fprintf(text[name], "%s{%s} %d %d\n", base, labels, sum[i], at.Unix())
		}
	}
	at := noon
	sample(at)
	for range 24 * 60 {
		m := minuteOf{total: int64(rng.IntN(rate) / 4 * 4)}
		m.judged = m.total / 2
		m.solved = m.judged - int64(rng.IntN(2))*min(m.judged, 1)
		m.violations = min(m.total, int64(rng.IntN(3)))
		m.costCents = m.total * int64(1+rng.IntN(5))
		m.slowest = m.total / 4
		minutes = append(minutes, m)
		for quarter := range 4 {
			if quarter == 3 {
				for i, n := range []int64{m.total, m.judged, m.solved, m.violations, m.costCents, m.total - m.slowest, m.total, m.total} {
					sum[i] += n
				}
			}
			at = at.Add(15 * time.Second)
			sample(at)
		}
	}
	return minutes, text
}

var historySeries = []string{
	"llm_requests_total", "llm_judged_total", "llm_solved_total", "llm_violations_total", "llm_cost_cents_total",
	"llm_latency_seconds_bucket|0.5", "llm_latency_seconds_bucket|1.0", "llm_latency_seconds_bucket|+Inf",
}

func TestADayFromARealServer(t *testing.T) {
	t.Parallel()
	canary, ctext := history("canary", 40, 1)
	stable, stext := history("stable", 400, 2)
	var om strings.Builder
	for i, name := range historySeries[:5] {
		fmt.Fprintf(&om, "# TYPE %s counter\n%s%s", strings.TrimSuffix(name, "_total"), ctext[historySeries[i]], stext[historySeries[i]])
	}
	for _, text := range []map[string]*strings.Builder{ctext, stext} {
		for _, name := range historySeries[5:] {
			om.WriteString(text[name].String())
		}
	}
	url := servertest.Prometheus(t, om.String()+presetHistory()+"# EOF\n")
	queries := func(arm string) config.FieldText {
		count := func(name string) string {
			return fmt.Sprintf(`sum(increase(llm_%s_total{version="%s"}[$span]))`, name, arm)
		}
		return config.FieldText{
			"total": count("requests"), "judged": count("judged"), "solved": count("solved"), "violations": count("violations"),
			"cost_mean": count("cost_cents") + " / 100 / " + count("requests"),
			"p99_ms":    fmt.Sprintf(`1000 * histogram_quantile(0.99, sum by (le) (increase(llm_latency_seconds_bucket{version="%s"}[$span])))`, arm),
		}
	}
	src := prom(url, map[release.Arm]config.FieldText{release.Canary: queries("canary"), release.Stable: queries("stable")})
	src.Settle = time.Minute
	s := newSource(t, src, Options{})
	b := read(t, s, noon, noon.Add(24*time.Hour+time.Minute))
	if len(b.Windows) != 2*24*60 {
		t.Fatalf("%d windows, notes %q", len(b.Windows), b.Notes)
	}
	means := map[time.Time]float64{}
	for i := range stable {
		if m := stable[i]; m.total > 0 {
			means[noon.Add(time.Duration(i)*time.Minute)] = float64(m.costCents) / 100 / float64(m.total)
		}
	}
	for _, w := range b.Windows {
		want := canary
		if w.Arm == release.Stable {
			want = stable
		}
		m := want[w.T.Sub(noon)/time.Minute]
		got := minuteOf{total: w.Total, judged: w.Judged, solved: w.Solved, violations: w.Violations}
		if diff := cmp.Diff(minuteOf{total: m.total, judged: m.judged, solved: m.solved, violations: m.violations}, got, cmp.AllowUnexported(minuteOf{})); diff != "" {
			t.Fatalf("%s of %s: %s", w.T, w.Arm, diff)
		}
		if w.Has(release.HasCostMean|release.HasP99) != (m.total > 0) {
			t.Fatalf("known: %s", say(w))
		}
		if m.total == 0 {
			continue
		}
		mean := float64(m.costCents) / 100 / float64(m.total)
		if math.Abs(w.CostMean-mean) > 1e-9 || w.P99MS < 500 || w.P99MS > 1000 {
			t.Fatalf("%s, mean %v", say(w), mean)
		}
		if base := means[w.T]; w.Arm == release.Canary && (w.Has(release.HasCost) != (base > 0) || base > 0 && math.Abs(w.Cost-mean/base) > 1e-9) {
			t.Fatalf("%s, cost %v", say(w), mean/base)
		}
	}
	if !b.Until.Equal(noon.Add(24*time.Hour)) || len(b.Notes) > 0 {
		t.Errorf("until %s, notes %q", b.Until, b.Notes)
	}
	after := read(t, s, noon.Add(24*time.Hour), noon.Add(30*time.Hour))
	if len(after.Windows) > 12 || !after.Newest.Equal(b.Newest) {
		t.Errorf("after the end of the history: %v, newest %s", sayAll(after.Windows), after.Newest)
	}
	for query, want := range map[string]string{
		"sum(":                          "bad_data",
		"llm_requests_total":            "2 series where one is expected",
		"nosuch_total":                  "",
		"llm_requests_total > bool foo": "",
	} {
		src.Queries = map[release.Arm]config.FieldText{release.Canary: {"total": query}}
		b, err := newSource(t, src, Options{}).Read(t.Context(), noon, noon.Add(time.Hour))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || len(b.Windows) > 0 {
			t.Errorf("%s: %v, %v", query, err, sayAll(b.Windows))
		}
	}
	t.Run("presets", func(t *testing.T) { readPresets(t, url) })
}

// presetHistory is an hour in which the canary served 8 requests every 15
// seconds, of 0.5 to 1 s and 2 cents each, under every name that a preset looks
// for, the ones that must not be added up among them.
func presetHistory() string {
	var om strings.Builder
	for _, series := range []struct {
		name string
		each float64
	}{
		{"gen_ai_client_operation_duration_seconds_count{V}", 8}, {"gen_ai_server_request_duration_seconds_count{V}", 8},
		{`gen_ai_client_operation_duration_seconds_bucket{V,le="0.5"}`, 0}, {`gen_ai_client_operation_duration_seconds_bucket{V,le="1.0"}`, 8},
		{`gen_ai_client_operation_duration_seconds_bucket{V,le="+Inf"}`, 8},
		{`vllm:request_success_total{V,finished_reason="stop"}`, 7}, {`vllm:request_success_total{V,finished_reason="abort"}`, 1},
		{"vllm:e2e_request_latency_seconds_count{V}", 8}, {`vllm:e2e_request_latency_seconds_bucket{V,le="0.5"}`, 0},
		{`vllm:e2e_request_latency_seconds_bucket{V,le="1.0"}`, 8}, {`vllm:e2e_request_latency_seconds_bucket{V,le="+Inf"}`, 8},
		{`litellm_proxy_total_requests_metric_total{V,status_code="200"}`, 6}, {`litellm_proxy_total_requests_metric_total{V,status_code="429"}`, 2},
		{"litellm_spend_metric_total{V}", 0.16}, {`litellm_request_total_latency_metric_bucket{V,le="0.5"}`, 0},
		{`litellm_request_total_latency_metric_bucket{V,le="1.0"}`, 8}, {`litellm_request_total_latency_metric_bucket{V,le="+Inf"}`, 8},
	} {
		for i := range 4*60 + 1 {
			fmt.Fprintf(&om, "%s %g %d\n", strings.Replace(series.name, "V", `version="canary"`, 1), float64(i)*series.each, noon.Unix()+int64(15*i))
		}
	}
	return om.String()
}

func readPresets(t *testing.T, url string) {
	t.Helper()
	for name, want := range map[string]string{
		"gen_ai": "total=32 p99=995", "vllm": "total=32 p99=995", "litellm": "total=32 mean=0.02 p99=995",
	} {
		src := prom(url, nil)
		src.Preset, src.Matchers = name, map[release.Arm]string{release.Canary: `version="canary"`, release.Stable: `version="nobody"`}
		b := read(t, newSource(t, src, Options{}), noon, noon.Add(time.Hour))
		if len(b.Windows) != 60 {
			t.Errorf("%s: %d windows", name, len(b.Windows))
		}
		for i, w := range b.Windows {
			w.CostMean = math.Round(w.CostMean*1e6) / 1e6 // sums of floats
			if got := say(w); got != fmt.Sprintf("12:%02d canary %s", i, want) {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}
