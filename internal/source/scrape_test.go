package source

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/servertest"
	"github.com/canaryctl/canaryctl/internal/trace"
)

// TestWhatAServerScrapesIsRead has a real server scrape metrics that another
// real server once showed (public data of prometheus/prometheus).
func TestWhatAServerScrapesIsRead(t *testing.T) {
	t.Parallel()
	exposition := sharedFile(t, "prometheus/metrics-test.prom")
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		w.Write(exposition) //nolint:errcheck // the test sees what is missing
	}))
	defer target.Close()
	src := prom(servertest.PrometheusScraping(t, strings.TrimPrefix(target.URL, "http://")), map[release.Arm]config.FieldText{
		release.Canary: {"total": "max(go_gc_duration_seconds_count)", "p99_ms": `1000 * max(go_gc_duration_seconds{quantile="1"})`},
	})
	src.Span, src.Settle = time.Second, time.Second
	s := newSource(t, src, Options{})
	for from, deadline := time.Now().Add(-5*time.Second), time.Now().Add(30*time.Second); time.Now().Before(deadline); <-time.After(100 * time.Millisecond) {
		b := read(t, s, from, time.Now())
		if len(b.Windows) == 0 {
			continue
		}
		if w := b.Windows[0]; w.Total != 232 || math.Abs(w.P99MS-5.201208) > 1e-9 {
			t.Error(say(w))
		}
		if age := time.Since(b.Newest); age < time.Second || age > 10*time.Second {
			t.Errorf("newest is %s old", age)
		}
		return
	}
	t.Error("no window within 30 s")
}

func TestAnExpositionIsNoAnswer(t *testing.T) {
	exposition := sharedFile(t, "prometheus/alltypes.237mfs.prom.txt")
	url := answers(t, func(w http.ResponseWriter, r *http.Request) { w.Write(exposition) }) //nolint:errcheck // as above
	_, err := newSource(t, prom(url, canaryQueries("total")), Options{}).Read(t.Context(), noon, noon.Add(time.Minute))
	if err == nil || !strings.Contains(err.Error(), "cut off or damaged") {
		t.Errorf("%v", err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(matrix([]string{`[1777896060,"3"]`, `[1777896120,"NaN"]`, `[1777896180,"1e300"]`}))
	f.Add(`{"status":"success","isPartial":true,"data":{"resultType":"matrix","result":[{"metric":{"a":"b"},"values":[[-9e15,"-1"]]}]}}`)
	f.Add(`{"status":"error","errorType":"bad_data","error":"x"}`)
	f.Fuzz(func(t *testing.T, body string) {
		ans, err := trace.ParseAnswer([]byte(body))
		if err != nil {
			return
		}
		set := newFigures(time.Minute, noon, noon.Add(10*time.Minute))
		queries := []query{{release.Canary, "total", ""}, {release.Canary, "solved", ""}, {release.Canary, "p99_ms", ""}}
		for _, q := range queries {
			if set.take(q, ans) != nil {
				return
			}
		}
		windows, _ := set.windows(queries)
		for _, w := range windows {
			if w.Total < 0 || w.Solved > w.Judged || w.Judged > w.Total || !(w.P99MS >= 0) || w.T.Before(noon) || w.End().After(noon.Add(10*time.Minute)) {
				t.Errorf("%s from %q", say(w), body)
			}
		}
	})
}
