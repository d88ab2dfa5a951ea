package metrics

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// joint is two scenes, decided at such times; a zero time is never.
func joint(now time.Time, decided ...time.Time) Joint {
	var j Joint
	for i, at := range decided {
		e := NewExporter(3*time.Minute, func() time.Time { return now })
		if !at.IsZero() {
			e.Set(View{Version: "v1", Service: "monolith/" + []string{"summaries", "answers"}[i], Attempt: i + 1, LastDecision: at,
				Trips: map[release.Signal]int64{release.P99: int64(i)}})
		}
		j = append(j, e)
	}
	return j
}

// TestJointMetricsHaveEachNameOnce: Prometheus refuses a second HELP line.
func TestJointMetricsHaveEachNameOnce(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	rec := httptest.NewRecorder()
	joint(now, now, now).Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	text := rec.Body.String()
	for _, want := range []string{`canaryctl_attempt{service="monolith/summaries"} 1`, `canaryctl_attempt{service="monolith/answers"} 2`} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "# HELP ") {
			if seen[line] {
				t.Errorf("twice: %s", line)
			}
			seen[line] = true
		}
	}
	if strings.Count(text, "canaryctl_build_info{") != 1 {
		t.Errorf("one program is built once:\n%s", text)
	}
}

func TestJointMetricsBeforeTheFirstTickAreNothing(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	rec := httptest.NewRecorder()
	joint(now, time.Time{}, time.Time{}).Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if rec.Code != http.StatusOK || rec.Body.Len() != 0 {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

func TestJointHealthIsThatOfTheWorst(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name    string
		decided [2]time.Time
		status  string
		code    int
		age     float64
	}{
		{"both in time", [2]time.Time{now.Add(-time.Minute), now.Add(-2 * time.Minute)}, "ok", http.StatusOK, 120},
		{"one is stale", [2]time.Time{now, now.Add(-4 * time.Minute)}, "stale", http.StatusServiceUnavailable, 240},
		{"one is starting", [2]time.Time{now.Add(-time.Minute), {}}, "starting", http.StatusOK, 60},
		{"stale outranks starting", [2]time.Time{now.Add(-4 * time.Minute), {}}, "stale", http.StatusServiceUnavailable, 240},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rec := httptest.NewRecorder()
			joint(now, tc.decided[0], tc.decided[1]).Health().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/healthz", nil))
			var h health
			if err := json.Unmarshal(rec.Body.Bytes(), &h); err != nil {
				t.Fatal(err)
			}
			if rec.Code != tc.code || h.Status != tc.status || h.Age == nil || *h.Age != tc.age {
				t.Errorf("%d %s, want %d %s with an age of %g", rec.Code, rec.Body, tc.code, tc.status, tc.age)
			}
		})
	}
}

// TestJointHealthIsNotOfThoseThatHaveEnded: a scene that has locked or is
// complete is decided for no more, while others go on.
func TestJointHealthIsNotOfThoseThatHaveEnded(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	all := joint(now, now.Add(-time.Hour), now.Add(-time.Minute))
	for _, code := range []int{http.StatusServiceUnavailable, http.StatusOK} {
		rec := httptest.NewRecorder()
		all.Health().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/healthz", nil))
		if rec.Code != code {
			t.Errorf("%d %s, want %d", rec.Code, rec.Body, code)
		}
		all[0].End()
	}
	rec := httptest.NewRecorder()
	all.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if n := strings.Count(rec.Body.String(), "canaryctl_locked{"); n != 2 {
		t.Errorf("the last view of what has ended is served on, and there are %d", n)
	}
}
