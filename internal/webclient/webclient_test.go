package webclient

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestRetryAfterIsReadAsSecondsAndAsADate(t *testing.T) {
	now := time.Date(2026, 5, 4, 8, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, " 7 ": 7 * time.Second, "-5": 0, "soon": 0, "99999999999999999999": 0,
		"Mon, 04 May 2026 08:01:30 GMT": 90 * time.Second, "Wed, 21 Oct 2015 07:28:00 GMT": 0,
	} {
		if got := RetryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestARedirectIsFollowedToTheSameHostByTheSameMethodOnly(t *testing.T) {
	var reached []string
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = append(reached, "other") }))
	defer other.Close()
	var to string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, ok := map[string]int{"/found": 302, "/kept": 307, "/round": 308}[r.URL.Path]; ok {
			http.Redirect(w, r, to, status)
			return
		}
		reached = append(reached, r.Method)
	}))
	defer s.Close()
	for _, c := range []struct {
		name, from, to string
		policy         func(*http.Request, []*http.Request) error
		status         int
		reached        string
	}{
		{"the same host, the method kept", "/kept", "/end", SameHost, 200, "POST"},
		{"the same host, a GET in its place", "/found", "/end", SameHost, 302, ""},
		{"another host", "/kept", other.URL, SameHost, 307, ""},
		{"round and round", "/round", "/round", SameHost, 308, ""},
		{"none is followed", "/kept", "/end", NoRedirect, 307, ""},
	} {
		reached, to = nil, c.to
		client := &http.Client{CheckRedirect: c.policy}
		resp, err := client.Post(s.URL+c.from, "text/plain", strings.NewReader("x"))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.status || strings.Join(reached, " ") != c.reached {
			t.Errorf("%s: answered %d, reached %v", c.name, resp.StatusCode, reached)
		}
	}
}
