package metrics

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/servertest"
)

var update = flag.Bool("update", false, "rewrite golden files")

var now = time.Date(2026, 3, 2, 14, 17, 30, 0, time.UTC)

// full is a view in which everything is known.
func full() View {
	var ticks Durations
	for _, d := range []time.Duration{3 * time.Millisecond, 5 * time.Millisecond, 40 * time.Millisecond, 2 * time.Minute} {
		ticks.Observe(d)
	}
	return View{
		Version: "1.2.3", Service: "order-service", Release: "0a1b2c3d4e5f", Attempt: 2, Step: 3, Steps: 5,
		Weight: &release.Weight{Slots: 10, Ring: 100}, Phase: release.HalfOpen, Stage: ladder.Climbing, Locked: true, Paused: true,
		Signals: []Signal{
			{Signal: release.Violations, Verdict: release.Pass, Value: 1, Limit: 3, Samples: 312},
			{Signal: release.Cost, Verdict: release.NoData, Value: math.NaN(), Limit: 2, Samples: 0},
			{Signal: release.SolveRate, Verdict: release.Fail, Value: 0.8, Limit: 0.8, Samples: 200},
		},
		Trips:     map[release.Signal]int64{release.SolveRate: 1, release.Probes: 2},
		Decisions: map[release.Move]int64{release.Hold: 61, release.Advance: 2, release.RollBackMove: 1},
		Rollbacks: 3, SourceErrors: 4, TargetErrors: 5, NotifyFailures: 6,
		LastDecision: now.Add(-90 * time.Second), LastWindow: now.Add(-150 * time.Second),
		HoldRemaining: new(34 * time.Minute), Ticks: ticks,
	}
}

func written(t testing.TB, v View) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, v, now); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func parsed(t testing.TB, text []byte) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("Prometheus' own parser refuses it: %v\n%s", err, text)
	}
	return families
}

func TestAFullViewIsWrittenAsTheGoldenFile(t *testing.T) {
	got := written(t, full())
	// The Go version is the only part that is not the same everywhere.
	lines := strings.Split(string(got), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "canaryctl_build_info{") {
			lines[i] = `canaryctl_build_info{version="1.2.3",go="GO"} 1`
		}
	}
	text := strings.Join(lines, "\n")
	path := filepath.Join("testdata", "full.prom")
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("-golden +got; -update rewrites it:\n%s", diff)
	}
}

func TestTheRealParserReadsBackWhatWasMeant(t *testing.T) {
	families := parsed(t, written(t, full()))
	for _, tt := range []struct {
		name   string
		labels string
		want   float64
	}{
		{"canaryctl_weight_ratio", "service=order-service", 0.1},
		{"canaryctl_breaker", "service=order-service,state=HALF_OPEN", 1},
		{"canaryctl_breaker", "service=order-service,state=CLOSED", 0},
		{"canaryctl_breaker", "service=order-service,state=OPEN", 0},
		{"canaryctl_stage", "service=order-service,state=climbing", 1},
		{"canaryctl_signal_verdict", "service=order-service,signal=cost,verdict=no_data", 1},
		{"canaryctl_signal_verdict", "service=order-service,signal=cost,verdict=pass", 0},
		{"canaryctl_signal_value", "service=order-service,signal=solve_rate", 0.8},
		{"canaryctl_trips_total", "service=order-service,signal=solve_rate", 1},
		{"canaryctl_trips_total", "service=order-service,signal=cost", 0},
		{"canaryctl_decisions_total", "decision=hold,service=order-service", 61},
		{"canaryctl_decision_age_seconds", "service=order-service", 90},
		{"canaryctl_hold_remaining_seconds", "service=order-service", 2040},
	} {
		got, ok := valueOf(families[tt.name], tt.labels)
		if !ok || got != tt.want {
			t.Errorf("%s{%s} = %v (there: %t), want %v", tt.name, tt.labels, got, ok, tt.want)
		}
	}
	h := families["canaryctl_tick_duration_seconds"].GetMetric()[0].GetHistogram()
	if h.GetSampleCount() != 4 || h.GetSampleSum() != 120.048 {
		t.Errorf("ticks: %d in %v s, want 4 in 120.048 s", h.GetSampleCount(), h.GetSampleSum())
	}
	for _, b := range h.GetBucket() {
		want := uint64(3)
		switch bound := b.GetUpperBound(); {
		case bound < 0.05:
			want = 2
		case bound > 60:
			want = 4
		}
		if b.GetCumulativeCount() != want {
			t.Errorf("ticks of at most %v s: %d, want %d", b.GetUpperBound(), b.GetCumulativeCount(), want)
		}
	}
}

// valueOf returns the value of the series whose labels, sorted by name, are
// these.
func valueOf(f *dto.MetricFamily, labels string) (float64, bool) {
	for _, m := range f.GetMetric() {
		set := model.LabelSet{}
		for _, l := range m.GetLabel() {
			set[model.LabelName(l.GetName())] = model.LabelValue(l.GetValue())
		}
		text := strings.NewReplacer(`"`, "", "{", "", "}", "", ", ", ",").Replace(set.String())
		if text == labels {
			return m.GetGauge().GetValue() + m.GetCounter().GetValue(), true
		}
	}
	return 0, false
}

func TestWhatIsNotKnownHasNoSeries(t *testing.T) {
	text := written(t, View{Version: "1", Service: "s", Signals: []Signal{
		{Signal: release.P99, Verdict: release.NoData, Value: math.NaN(), Limit: math.NaN()},
		{Signal: release.Cost, Verdict: release.Error, Value: math.NaN(), Limit: math.NaN()},
	}})
	families := parsed(t, text)
	for _, name := range []string{
		"canaryctl_release_info", "canaryctl_attempt", "canaryctl_step", "canaryctl_steps", "canaryctl_weight_ratio",
		"canaryctl_signal_value", "canaryctl_signal_limit", "canaryctl_last_decision_timestamp_seconds",
		"canaryctl_decision_age_seconds", "canaryctl_last_window_timestamp_seconds", "canaryctl_hold_remaining_seconds",
	} {
		if families[name] != nil {
			t.Errorf("%s is there though nothing is known of it:\n%s", name, text)
		}
	}
	if got := len(families["canaryctl_signal_samples"].GetMetric()); got != 1 {
		t.Errorf("samples of %d signals: those of one that could not be read are not known", got)
	}
	if _, ok := valueOf(families["canaryctl_signal_verdict"], "service=s,signal=p99,verdict=no_data"); !ok {
		t.Errorf("the verdict no_data is missing:\n%s", text)
	}
}

func TestEveryMetricHasHelpTypeAndItsUnit(t *testing.T) {
	for name, f := range parsed(t, written(t, full())) {
		if f.GetHelp() == "" || f.GetType() == dto.MetricType_UNTYPED {
			t.Errorf("%s: help %q, type %s", name, f.GetHelp(), f.GetType())
		}
		if !strings.HasPrefix(name, "canaryctl_") {
			t.Errorf("%s does not begin with canaryctl_", name)
		}
		if (f.GetType() == dto.MetricType_COUNTER) != strings.HasSuffix(name, "_total") {
			t.Errorf("%s is a %s", name, f.GetType())
		}
	}
}

// TestPromtoolFindsNothing has the linter of Prometheus look at it.
func TestPromtoolFindsNothing(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), servertest.Program(t, "promtool", "prometheus"), "check", "metrics")
	cmd.Stdin = bytes.NewReader(written(t, full()))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// alertRules writes the rules of docs/reference/metrics.md into a folder.
func alertRules(t *testing.T, dir string) (path string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rules, _ := strings.Cut(string(page), "\n    groups:\n")
	path = filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(path, []byte("groups:"+strings.ReplaceAll("\n"+rules, "\n    ", "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTheAlertsOfTheReferenceAreRules has Prometheus read them.
func TestTheAlertsOfTheReferenceAreRules(t *testing.T) {
	promtool := servertest.Program(t, "promtool", "prometheus")
	out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", alertRules(t, t.TempDir())).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("6 rules found")) {
		t.Errorf("promtool check rules: %v\n%s", err, out)
	}
}

// TestTheAlertsFireWhenTheyShould has Prometheus put the series of
// testdata/alerts.yaml through them: releases that complete, end early, are
// rolled back and hang.
func TestTheAlertsFireWhenTheyShould(t *testing.T) {
	promtool := servertest.Program(t, "promtool", "prometheus")
	dir := t.TempDir()
	alertRules(t, dir)
	cases, err := os.ReadFile(filepath.Join("testdata", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "alerts.yaml")
	if err := os.WriteFile(path, cases, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", path).CombinedOutput(); err != nil {
		t.Errorf("promtool test rules: %v\n%s", err, out)
	}
}

// TestEveryMetricIsInTheReference holds docs/reference/metrics.md against what
// is written.
func TestEveryMetricIsInTheReference(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range parsed(t, written(t, full())) {
		if !bytes.Contains(page, []byte("`"+name)) {
			t.Errorf("docs/reference/metrics.md does not name %s", name)
		}
	}
}

func TestAnyTextAsLabelStaysOneLabel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOf(rapid.Byte()).Draw(t, "service")
		v := full()
		v.Service = string(raw)
		var out bytes.Buffer
		if err := Write(&out, v, now); err != nil {
			t.Fatal(err)
		}
		p := expfmt.NewTextParser(model.UTF8Validation)
		families, err := p.TextToMetricFamilies(&out)
		if err != nil {
			t.Fatalf("service %q: %v", raw, err)
		}
		got := families["canaryctl_locked"].GetMetric()[0].GetLabel()[0].GetValue()
		if want := strings.ToValidUTF8(string(raw), "\uFFFD"); got != want {
			t.Fatalf("service %q is read back as %q", want, got)
		}
	})
}

func TestHealthEndsWithOldDecisions(t *testing.T) {
	for _, tt := range []struct {
		name    string
		decided time.Duration // after the start; 0: never
		asked   time.Duration
		code    int
		status  string
		age     float64 // NaN: null
	}{
		{name: "just started", asked: time.Second, code: 200, status: "starting", age: math.NaN()},
		{name: "never decided", asked: 181 * time.Second, code: 503, status: "stale", age: math.NaN()},
		{name: "decided a minute ago", decided: time.Minute, asked: 2 * time.Minute, code: 200, status: "ok", age: 60},
		{name: "decided exactly the limit ago", decided: time.Minute, asked: 4 * time.Minute, code: 200, status: "ok", age: 180},
		{name: "decided longer ago than the limit", decided: time.Minute, asked: 4*time.Minute + time.Millisecond, code: 503, status: "stale", age: 180.001},
		{name: "the clock was set back", decided: time.Hour, asked: time.Minute, code: 200, status: "ok", age: 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := now
			e := NewExporter(3*time.Minute, func() time.Time { return at })
			if tt.decided > 0 {
				e.Set(View{LastDecision: now.Add(tt.decided)})
			}
			at = now.Add(tt.asked)
			rec := httptest.NewRecorder()
			e.Health().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/healthz", nil))
			var got struct {
				Schema int
				Status string
				Age    *float64 `json:"decision_age_s"`
			}
			if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if rec.Code != tt.code || got.Status != tt.status || got.Schema != 1 {
				t.Errorf("%d %+v, want %d %s", rec.Code, got, tt.code, tt.status)
			}
			if (got.Age == nil) != math.IsNaN(tt.age) || got.Age != nil && *got.Age != tt.age {
				t.Errorf("age %v in %s, want %v", got.Age, rec.Body, tt.age)
			}
		})
	}
}

func TestTheExporterServesTheNewestViewToManyAtOnce(t *testing.T) {
	e := NewExporter(time.Minute, func() time.Time { return now })
	get := func() *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		e.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return rec
	}
	if rec := get(); rec.Code != http.StatusOK || rec.Body.Len() != 0 {
		t.Errorf("before the first view: %d %q, want an empty 200", rec.Code, rec.Body)
	}
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			for range 50 {
				v := full()
				v.Attempt = n + 1
				e.Set(v)
				parsed(t, get().Body.Bytes())
			}
		})
	}
	wg.Wait()
	e.Set(full())
	rec := get()
	if got := rec.Header().Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("content type %q", got)
	}
	if !bytes.Equal(rec.Body.Bytes(), written(t, full())) {
		t.Errorf("not the newest view:\n%s", rec.Body)
	}
}
