package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// answers is a server that answers each query with what f says.
func answers(t *testing.T, f func(w http.ResponseWriter, r *http.Request)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(f))
	t.Cleanup(s.Close)
	return s.URL
}

// points is a server that holds the values of each query: the text of a value
// by minutes after noon of the end of its window; "" is no point.
func points(t *testing.T, values map[string][]string) string {
	t.Helper()
	return answers(t, func(w http.ResponseWriter, r *http.Request) {
		start, end := formTime(t, r, "start"), formTime(t, r, "end")
		var list []string
		for i, v := range values[r.FormValue("query")] {
			at := noon.Add(time.Duration(i+1) * time.Minute)
			if v != "" && !at.Before(start) && !at.After(end) {
				list = append(list, fmt.Sprintf("[%d,%q]", at.Unix(), v))
			}
		}
		io.WriteString(w, matrix(list))
	})
}

func matrix(points []string) string {
	if len(points) == 0 {
		return `{"status":"success","data":{"resultType":"matrix","result":[]}}`
	}
	return `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[` + strings.Join(points, ",") + `]}]}}`
}

func formTime(t *testing.T, r *http.Request, key string) time.Time {
	t.Helper()
	v, err := strconv.ParseFloat(r.FormValue(key), 64)
	if err != nil || r.Method != http.MethodPost {
		t.Errorf("%s %s=%q", r.Method, key, r.FormValue(key))
	}
	return time.UnixMilli(int64(v * 1000)).UTC()
}

func prom(url string, queries map[release.Arm]config.FieldText) *config.Source {
	return &config.Source{Kind: "prometheus", Span: time.Minute, URL: url, Queries: queries}
}

func canaryQueries(fields ...string) map[release.Arm]config.FieldText {
	q := config.FieldText{}
	for _, f := range fields {
		q[f] = "c_" + f
	}
	return map[release.Arm]config.FieldText{release.Canary: q}
}

func newSource(t *testing.T, c *config.Source, o Options) Source {
	t.Helper()
	s, err := New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(t *testing.T, s Source, from, now time.Time) Batch {
	t.Helper()
	b, err := s.Read(t.Context(), from, now)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// say writes a window shortly; what it does not know is left out.
func say(w release.Window) string {
	s := fmt.Sprintf("%s %s total=%d", w.T.UTC().Format("15:04"), w.Arm, w.Total)
	add := func(has release.Figures, format string, args ...any) {
		if w.Has(has) {
			s += " " + fmt.Sprintf(format, args...)
		}
	}
	add(release.HasSolved, "solved=%d/%d", w.Solved, w.Judged)
	add(release.HasViolations, "violations=%d", w.Violations)
	add(release.HasTransfers, "transfers=%d", w.Transfers)
	add(release.HasSlow, "slow=%d", w.Slow)
	add(release.HasCost, "cost=%g", w.Cost)
	add(release.HasCostMean, "mean=%g", w.CostMean)
	add(release.HasP99, "p99=%g", w.P99MS)
	return s
}

func sayAll(windows []release.Window) (out []string) {
	for _, w := range windows {
		out = append(out, say(w))
	}
	return out
}

func TestValuesBecomeFigures(t *testing.T) {
	for _, c := range []struct {
		name  string
		vals  map[string][]string
		want  []string
		notes []string // parts
	}{
		{"a window is the value at its end", map[string][]string{"c_total": {"3", "5"}}, []string{"12:00 canary total=3", "12:01 canary total=5"}, nil},
		{"no total is no window", map[string][]string{"c_total": {"3", "", "NaN", "+Inf", "-Inf", "5"}, "c_violations": {"0", "1", "1", "1", "1", "0"}},
			[]string{"12:00 canary total=3 violations=0", "12:05 canary total=5 violations=0"}, nil},
		{"an empty answer is no window", map[string][]string{}, nil, nil},
		{"a total of 0 is a window without requests", map[string][]string{"c_total": {"0"}}, []string{"12:00 canary total=0"}, nil},
		{"a figure that is absent or no number is missing, not 0", map[string][]string{"c_total": {"3", "3", "3", "3"}, "c_violations": {"", "NaN", "+Inf", "2"}, "c_p99_ms": {"NaN", "+Inf", "250.5"}},
			[]string{"12:00 canary total=3", "12:01 canary total=3", "12:02 canary total=3 p99=250.5", "12:03 canary total=3 violations=2"},
			[]string{"canary.violations: 3 windows with requests have no value"}},
		{"counts are rounded half to even and said once", map[string][]string{"c_total": {"2.5", "3.5", "60.99"}, "c_transfers": {"0.0000004", "1.0000000000000049", "0.7"}},
			[]string{"12:00 canary total=2 transfers=0", "12:01 canary total=4 transfers=1", "12:02 canary total=61 transfers=1"},
			[]string{"counts that were not whole, as Prometheus extrapolates, were rounded: 3"}},
		{"a trace of a request is no data", map[string][]string{"c_total": {"0.4", "0.94", "0.96", "0.01"}}, []string{"12:02 canary total=1", "12:03 canary total=0"},
			[]string{"counts that were not whole, as Prometheus extrapolates, were rounded: 2"}},
		{"judged is total where nobody asks for it", map[string][]string{"c_total": {"10"}, "c_solved": {"9"}}, []string{"12:00 canary total=10 solved=9/10"}, nil},
		{"more solved than there are is no data", map[string][]string{"c_total": {"10", "10"}, "c_solved": {"11", "8"}}, []string{"12:00 canary total=10", "12:01 canary total=10 solved=8/10"},
			[]string{"canary.solved: 1 count was larger than what it is a part of"}},
		{"negative figures are no data", map[string][]string{"c_total": {"-1", "2"}, "c_p99_ms": {"1", "-3"}}, []string{"12:01 canary total=2"},
			[]string{"canary.total: 1 value was negative", "canary.p99_ms: 1 value was negative"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fields := []string{"total"}
			for query := range c.vals {
				fields = append(fields, strings.TrimPrefix(query, "c_"))
			}
			s := newSource(t, prom(points(t, c.vals), canaryQueries(fields...)), Options{})
			b := read(t, s, noon, noon.Add(10*time.Minute))
			if diff := cmp.Diff(c.want, sayAll(b.Windows)); diff != "" {
				t.Error(diff)
			}
			for _, part := range c.notes {
				if !slices.ContainsFunc(b.Notes, func(n string) bool { return strings.HasPrefix(n, part) }) {
					t.Errorf("no note %q", part)
				}
			}
			if len(b.Notes) != len(c.notes) {
				t.Errorf("notes: %q", b.Notes)
			}
			if !b.Until.Equal(noon.Add(10 * time.Minute)) {
				t.Errorf("until %s", b.Until)
			}
		})
	}
}

func TestJudgedThatIsAskedForAndMissingLeavesSolvedMissing(t *testing.T) {
	url := points(t, map[string][]string{"c_total": {"10", "10", "10"}, "c_judged": {"", "8", "11"}, "c_solved": {"5", "5", "5"}})
	b := read(t, newSource(t, prom(url, canaryQueries("total", "judged", "solved")), Options{}), noon, noon.Add(3*time.Minute))
	want := []string{"12:00 canary total=10", "12:01 canary total=10 solved=5/8", "12:02 canary total=10"}
	if diff := cmp.Diff(want, sayAll(b.Windows)); diff != "" {
		t.Error(diff)
	}
}

func TestCostIsTheRatioOfTheMeansOfTheSameWindow(t *testing.T) {
	url := points(t, map[string][]string{
		"c_total": {"1", "1", "1", "1", "1"}, "c_cost_mean": {"0.06", "0.06", "NaN", "0.06", "0.06"},
		"s_total": {"9", "0", "9", "9", ""}, "s_cost_mean": {"0.02", "0.02", "0.02", "0", "0.02"},
	})
	q := canaryQueries("total", "cost_mean")
	q[release.Stable] = config.FieldText{"total": "s_total", "cost_mean": "s_cost_mean"}
	b := read(t, newSource(t, prom(url, q), Options{}), noon, noon.Add(5*time.Minute))
	var got []string
	for _, w := range b.Windows {
		if w.Arm == release.Canary {
			got = append(got, strings.TrimPrefix(say(w), w.T.Format("15:04")+" canary total=1"))
		}
	}
	if diff := cmp.Diff([]string{" cost=3 mean=0.06", " mean=0.06", "", " mean=0.06", " mean=0.06"}, got); diff != "" {
		t.Error(diff)
	}
	if b.Windows[0].Arm != release.Canary || b.Windows[1].Arm != release.Stable {
		t.Errorf("order: %v", sayAll(b.Windows))
	}
}

func TestSlowIsAskedForOnlyWhereItIsWanted(t *testing.T) {
	url := points(t, map[string][]string{"c_total": {"10"}, "c_slow": {"2"}})
	for slowMS, want := range map[float64]string{0: "12:00 canary total=10", 300: "12:00 canary total=10 slow=2"} {
		b := read(t, newSource(t, prom(url, canaryQueries("total", "slow")), Options{SlowMS: slowMS}), noon, noon.Add(time.Minute))
		if got := say(b.Windows[0]); got != want {
			t.Errorf("%v: %s", slowMS, got)
		}
	}
}

func TestOnlyWindowsThatHaveSettledAreAskedFor(t *testing.T) {
	var asked []string
	url := answers(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, formTime(t, r, "start").Format("15:04:05 ")+formTime(t, r, "end").Format("15:04:05 ")+r.FormValue("step")+" "+r.FormValue("query"))
		io.WriteString(w, matrix(nil))
	})
	c := prom(url, map[release.Arm]config.FieldText{release.Canary: {"total": "sum(increase(n[$span]))"}})
	c.Span, c.Settle = 5*time.Minute, 90*time.Second
	s := newSource(t, c, Options{})
	b := read(t, s, noon.Add(2*time.Minute), noon.Add(21*time.Minute))
	if diff := cmp.Diff([]string{"12:10:00 12:15:00 300 sum(increase(n[5m]))"}, asked); diff != "" || !b.Until.Equal(noon.Add(15*time.Minute)) {
		t.Error(diff, b.Until)
	}
	b = read(t, s, b.Until, noon.Add(21*time.Minute+29*time.Second))
	if len(asked) != 1 || len(b.Windows) != 0 || !b.Until.Equal(noon.Add(15*time.Minute)) {
		t.Errorf("asked again: %v, until %s", asked, b.Until)
	}
}

func TestLongStretchesAreAskedForInParts(t *testing.T) {
	var mu sync.Mutex
	asked := 0
	url := answers(t, func(w http.ResponseWriter, r *http.Request) {
		start, end := formTime(t, r, "start"), formTime(t, r, "end")
		if n := end.Sub(start)/time.Minute + 1; n > 11_000 {
			t.Errorf("%d points", n)
		}
		var list []string
		for at := start; !at.After(end); at = at.Add(time.Minute) {
			list = append(list, fmt.Sprintf("[%d,\"1\"]", at.Unix()))
		}
		mu.Lock()
		asked++
		mu.Unlock()
		io.WriteString(w, matrix(list))
	})
	b := read(t, newSource(t, prom(url, canaryQueries("total", "violations")), Options{}), noon, noon.AddDate(0, 0, 30))
	if len(b.Windows) != 30*24*60 || asked != 10 {
		t.Errorf("%d windows of %d queries", len(b.Windows), asked)
	}
	for i, w := range b.Windows {
		if !w.T.Equal(noon.Add(time.Duration(i)*time.Minute)) || w.Total != 1 || !w.Has(release.HasViolations) {
			t.Fatalf("window %d: %s", i, say(w))
		}
	}
}

func TestFailedQueriesFailTheReading(t *testing.T) {
	series := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"metric":{"pod":"p%02d"},"values":[[%d,"1"]]}`, i, noon.Add(time.Minute).Unix()))
		}
		return `{"status":"success","data":{"resultType":"matrix","result":[` + strings.Join(list, ",") + `]}}`
	}
	for _, c := range []struct {
		name         string
		status       int
		body         string
		want, hint   string
		not          string
		header, with string
	}{
		{name: "a query that does not parse", status: 400, body: `{"status":"error","errorType":"bad_data","error":"1:5: parse error: unclosed left parenthesis"}`,
			want: "canary.total: HTTP 400, bad_data: 1:5: parse error: unclosed left parenthesis", hint: "the query is c_total"},
		{name: "several series", status: 200, body: series(2), want: `2 series where one is expected: {pod="p00"}, {pod="p01"}`, hint: "aggregate"},
		{name: "ten labels at most", status: 200, body: series(12), want: `{pod="p09"}, and 2 more`, not: "p10"},
		{name: "a token that is refused", status: 401, body: "Unauthorized\n", want: "HTTP 401: Unauthorized", hint: "token_env"},
		{name: "a token that is refused in JSON", status: 403, body: `{"status":"error","errorType":"auth","error":"no"}`, want: "HTTP 403", hint: "token_env"},
		{name: "a wrong path", status: 404, body: "404 page not found", want: "HTTP 404: 404 page not found", hint: "path"},
		{name: "a broken server", status: 502, body: "<html>Bad Gateway</html>", want: "HTTP 502, a web page", not: "Bad"},
		{name: "a login page", status: 200, body: "<!DOCTYPE html><title>Sign in</title>", want: "web page (HTML), not JSON", hint: "login"},
		{name: "a redirect", status: 302, want: "a redirect, which is not followed", header: "Location", with: "http://elsewhere.example/login"},
		{name: "cut off", status: 200, body: series(1)[:60], want: "cut off or damaged"},
		{name: "nothing", status: 200, want: "the answer is empty"},
		{name: "another JSON", status: 200, body: `{"hello":1}`, want: "status"},
		{name: "a vector", status: 200, body: `{"status":"success","data":{"resultType":"vector","result":[]}}`, want: "is a vector"},
		{name: "half of the data", status: 200, body: `{"status":"success","isPartial":true,"data":{"resultType":"matrix","result":[]}}`, want: "partial answer"},
		{name: "other times", status: 200, body: matrix([]string{fmt.Sprintf(`[%d.5,"1"]`, noon.Add(time.Minute).Unix())}), want: "not asked for"},
		{name: "native histograms", status: 200, body: `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"histograms":[[1777896060,{"count":"1","sum":"1","buckets":[]}]]}]}}`, want: "native histograms"},
		{name: "too slow a query", status: 503, body: `{"status":"error","errorType":"timeout","error":"query timed out in expression evaluation"}`, want: "HTTP 503, timeout: query timed out"},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := answers(t, func(w http.ResponseWriter, r *http.Request) {
				if r.FormValue("query") != "c_total" {
					io.WriteString(w, matrix(nil)) // the others succeed: half is not enough
					return
				}
				if c.header != "" {
					w.Header().Set(c.header, c.with)
				}
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})
			s := newSource(t, prom(strings.Replace(url, "http://", "http://bob:hunter2@", 1), canaryQueries("total", "violations")), Options{})
			_, err := s.Read(t.Context(), noon, noon.Add(time.Minute))
			e, ok := errors.AsType[*Error](err)
			if !ok || !strings.Contains(err.Error(), c.want) || !strings.Contains(e.Hint, c.hint) {
				t.Fatalf("error %v\nhint %q", err, e.Hint)
			}
			if c.not != "" && strings.Contains(err.Error(), c.not) || strings.Contains(err.Error()+e.Hint+s.String(), "hunter2") {
				t.Errorf("says too much: %v", err)
			}
		})
	}
}

func TestNoAnswerInTimeIsAnError(t *testing.T) {
	release := make(chan struct{})
	url := answers(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-release:
		}
	})
	defer close(release)
	c := prom(url, canaryQueries("total"))
	c.Timeout = 20 * time.Millisecond
	if _, err := newSource(t, c, Options{}).Read(t.Context(), noon, noon.Add(time.Minute)); err == nil || !strings.Contains(err.Error(), "no answer within 20ms") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newSource(t, prom(url, canaryQueries("total")), Options{}).Read(ctx, noon, noon.Add(time.Minute)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	_, err := newSource(t, prom(strings.Replace(gone.URL, "//", "//bob:hunter2@", 1)+"/?key=hunter2", canaryQueries("total")), Options{}).Read(t.Context(), noon, noon.Add(time.Minute))
	if err == nil || !strings.Contains(err.Error(), "refused") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

func TestWarningsAreNotes(t *testing.T) {
	url := answers(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"status":"success","warnings":["slow\nstore"],"infos":["not a counter"],"data":{"resultType":"matrix","result":[]}}`)
	})
	b := read(t, newSource(t, prom(url, canaryQueries("total")), Options{}), noon, noon.Add(time.Minute))
	if diff := cmp.Diff([]string{"canary.total: Prometheus says: not a counter", "canary.total: Prometheus says: slow store"}, b.Notes); diff != "" {
		t.Error(diff)
	}
}

func TestHeadersAndTokenComeFromTheEnvironment(t *testing.T) {
	var got http.Header
	url := answers(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		if r.URL.Path != "/prom/api/v1/query_range" {
			t.Errorf("path %s", r.URL.Path)
		}
		io.WriteString(w, matrix(nil))
	})
	env := map[string]string{"PROM": url + "/prom/", "TOKEN": "s3cret\n", "TENANT": "42"}
	c := prom("", canaryQueries("total"))
	c.URLEnv, c.TokenEnv, c.Headers = "PROM", "TOKEN", map[string]string{"X-Scope-OrgID": "t-${TENANT}"}
	o := Options{Getenv: func(k string) string { return env[k] }}
	s := newSource(t, c, o)
	read(t, s, noon, noon.Add(time.Minute))
	if got.Get("Authorization") != "Bearer s3cret" || got.Get("X-Scope-OrgID") != "t-42" {
		t.Errorf("%v", got)
	}
	if s.String() != "prometheus "+url {
		t.Errorf("%s tells the path of an address from the environment", s)
	}
	for _, name := range []string{"PROM", "TOKEN", "TENANT"} {
		was := env[name]
		env[name] = ""
		if _, err := New(c, o); err == nil || !strings.Contains(err.Error(), name+" is not set") {
			t.Errorf("without %s: %v", name, err)
		}
		env[name] = was
	}
}

func TestATokenWithALineEndInsideIsRefusedBeforeItIsSent(t *testing.T) {
	c := prom("http://127.0.0.1:1", canaryQueries("total"))
	c.TokenEnv = "TOKEN"
	_, err := New(c, Options{Getenv: func(string) string { return "s3cret-one\ns3cret-two" }})
	if err == nil || !strings.Contains(err.Error(), "control character") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v", err)
	}
}

func TestAServerThatRepeatsTheTokenDoesNotPutItIntoTheError(t *testing.T) {
	for name, body := range map[string]string{
		"text":        "you sent %s",
		"at the edge": strings.Repeat("x", 190) + "%s",
		"an answer":   `{"status":"error","errorType":"%s","error":"bad token %s"}`,
		"not JSON":    `{"%s`,
	} {
		for _, status := range []int{200, 400, 401, 503} {
			url := answers(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(status)
				io.WriteString(w, strings.ReplaceAll(body, "%s", r.Header.Get("Authorization")))
			})
			c := prom(url, canaryQueries("total"))
			c.TokenEnv = "TOKEN"
			s := newSource(t, c, Options{Getenv: func(string) string { return "tok-1234567890abcdef" }})
			_, err := s.Read(t.Context(), noon, noon.Add(time.Minute))
			if err == nil || strings.Contains(err.Error(), "tok-1") {
				t.Errorf("%s, %d: %v", name, status, err)
			}
		}
	}
}

func TestNewRefusesWhatCannotBeRead(t *testing.T) {
	ok := canaryQueries("total")
	for _, c := range []struct {
		name   string
		change func(c *config.Source)
		want   string
	}{
		{"no total", func(c *config.Source) { c.Queries = canaryQueries("violations") }, "canary has no query for total"},
		{"no total of stable", func(c *config.Source) { c.Queries[release.Stable] = config.FieldText{"cost_mean": "x"} }, "stable has no query for total"},
		{"a figure that windows do not have", func(c *config.Source) { c.Queries = canaryQueries("total", "violation") }, "did you mean violations?"},
		{"an unknown preset", func(c *config.Source) { c.Preset = "vvlm" }, "no preset"},
		{"no address", func(c *config.Source) { c.URL = "prometheus:9090" }, "not an address"},
		{"a bad address with a password", func(c *config.Source) { c.URL = "http://bob:hunter2@%zz" }, "not an address"},
		{"a variable without a name", func(c *config.Source) { c.Headers = map[string]string{"X-A": "${}"} }, "names no environment variable"},
		{"no span", func(c *config.Source) { c.Span = 0 }, "no length"},
		{"an unknown kind", func(c *config.Source) { c.Kind = "graphite" }, "no such kind"},
	} {
		src := prom("http://127.0.0.1:1", map[release.Arm]config.FieldText{release.Canary: ok[release.Canary]})
		c.change(src)
		_, err := New(src, Options{})
		if _, is := errors.AsType[*Error](err); !is || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestPresetsAskForEachArmAndGiveWayToQueries(t *testing.T) {
	c := prom("http://127.0.0.1:1", map[release.Arm]config.FieldText{release.Canary: {"p99_ms": "mine", "solved": "good"}, release.Stable: {"p99_ms": " - "}})
	c.Preset = "litellm"
	c.Matchers = map[release.Arm]string{release.Canary: `{metadata_version="v2"}`, release.Stable: `metadata_version="v1"`}
	s := newSource(t, c, Options{}).(*prometheus)
	var got []string
	for _, q := range s.queries {
		got = append(got, q.String())
		if strings.Contains(q.text, "{}") || strings.Contains(q.text, ",}") || strings.Contains(q.text, "$span") || strings.Contains(q.text, "{{") {
			t.Errorf("%s: %s", q, q.text)
		}
	}
	want := []string{
		"canary.total", "canary.solved", "canary.cost_mean", "canary.p99_ms", "canary.ttft_of", "canary.ttft_p99_ms", "canary.errors", "canary.server_errors",
		"stable.total", "stable.cost_mean", "stable.ttft_of", "stable.ttft_p99_ms", "stable.errors", "stable.server_errors",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestRealAnswers serves answers that a real server gave (public data of
// spinnaker/kayenta), moved to the times that are asked for.
func TestRealAnswers(t *testing.T) {
	for _, c := range []struct {
		file   string
		points int
	}{{"rangeQueryEmpty.json", 0}, {"rangeQueryWithTags.json", 57}, {"rangeQueryWithoutTags.json", 58}} {
		t.Run(c.file, func(t *testing.T) {
			var ans struct {
				Data struct {
					Result []struct{ Values [][2]any } `json:"result"`
				} `json:"data"`
			}
			raw := sharedFile(t, "kayenta-prometheus/"+c.file)
			if err := json.Unmarshal(raw, &ans); err != nil {
				t.Fatal(err)
			}
			want, moved := int64(0), string(raw)
			for _, s := range ans.Data.Result {
				for _, p := range s.Values {
					n, err := strconv.ParseFloat(p[1].(string), 64)
					if err != nil {
						t.Fatal(err)
					}
					want += int64(n)
				}
			}
			moved = strings.NewReplacer("195.474", "195", ".474", "", ".540", "").Replace(moved)
			url := answers(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, moved) })
			src := prom(url, canaryQueries("total"))
			src.Span = time.Second
			b := read(t, newSource(t, src, Options{}), time.Unix(1599657000, 0), time.Unix(1599659000, 0))
			total := int64(0)
			for _, w := range b.Windows {
				total += w.Total
			}
			if len(b.Windows) != c.points || total != want {
				t.Errorf("%d windows, %d requests, want %d and %d", len(b.Windows), total, c.points, want)
			}
			url = answers(t, func(w http.ResponseWriter, r *http.Request) { w.Write(raw) })
			src.URL = url
			if _, err := newSource(t, src, Options{}).Read(t.Context(), time.Unix(1599657000, 0), time.Unix(1599659000, 0)); (err == nil) != (c.points == 0) {
				t.Errorf("as it stands, between two windows: %v", err)
			}
		})
	}
}
