package servertest_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/servertest"
)

func TestHAProxyLogsARecordOfEachRequest(t *testing.T) {
	stable := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Solved", "true")
		w.Header().Set("X-Violation", "not a truth value")
		w.Header().Set("X-Cost-USD", "0.0125")
		w.WriteHeader(http.StatusAccepted)
	}))
	defer stable.Close()
	frontend, _, logs := servertest.HAProxy(t, strings.TrimPrefix(stable.URL, "http://"), "127.0.0.1:1")

	var from time.Time
	for _, user := range []string{`C-1 "quoted"`, ""} {
		if user == "" {
			time.Sleep(300 * time.Millisecond) // a later request of the same connection has a time of its own
		}
		from = time.Now()
		req, _ := http.NewRequest(http.MethodGet, frontend, nil)
		if user != "" {
			req.Header.Set("X-User-Id", user)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	for i, rec := range records(t, logs, 2) {
		at := time.UnixMilli(int64(rec["ts"].(float64)))
		if before := from.Sub(at); i == 0 && (before < 200*time.Millisecond || before > 10*time.Second) || i == 1 && (before > 100*time.Millisecond || before < -10*time.Second) {
			t.Errorf("record %d: ts is %s, the second was asked for at %s", i, at, from)
		}
		if user := rec["user_id"]; i == 0 && user != `C-1 "quoted"` {
			t.Errorf("user_id %q", user)
		}
		for name, want := range map[string]any{"arm": "stable", "status": 202.0, "solved": true, "violation": nil, "transfer": nil, "cost_usd": 0.0125} {
			if got := rec[name]; got != want {
				t.Errorf("record %d: %s is %v, not %v", i, name, got, want)
			}
		}
		if ms, ok := rec["latency_ms"].(float64); !ok || ms < 0 {
			t.Errorf("record %d: latency_ms is %v", i, rec["latency_ms"])
		}
	}
}

// records waits for n lines.
func records(t *testing.T, path string, n int) (out []map[string]any) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); len(out) < n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d records of %d", len(out), n)
		}
		out = nil
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(file); lines.Scan(); {
			var rec map[string]any
			if err := json.Unmarshal(lines.Bytes(), &rec); err != nil {
				t.Fatalf("%v: %s", err, lines.Text())
			}
			out = append(out, rec)
		}
		file.Close()
	}
	return out
}
