//go:build unix

package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// awayConfig tells and purges by addresses that only the pipeline has.
var awayConfig = strings.NewReplacer("min_hold_min: 0.002", "min_hold_min: 100000").Replace(liveConfig) + `
notify: [ { webhook: { url_env: INBOX, events: [rolled_back] } } ]
hooks: { on_rollback: [ { http: { name: purge, url_env: PURGE, tries: 2 } } ] }
`

// TestARollbackWithoutTheVariablesLeavesMessageAndHookToWhoeverHasThem: on call
// with a laptop, the weight is what counts.
func TestARollbackWithoutTheVariablesLeavesMessageAndHookToWhoeverHasThem(t *testing.T) {
	var mu sync.Mutex
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.URL.Path)
	}))
	t.Cleanup(server.Close)
	sent := func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(got, " ")
	}

	s := newScene(t, awayConfig)
	pipeline := []string{"INBOX=" + server.URL + "/inbox", "PURGE=" + server.URL + "/purge"}
	s.env = pipeline
	s.want(0, "promote")

	s.env = nil
	begun := time.Now()
	a := s.want(0, "rollback", "--reason", "on call")
	s.wantWeight(0)
	for _, says := range []string{"warning: webhook (notify[0]): url_env: the environment variable INBOX is not set", "PURGE is not set", "left to a canaryctl that can"} {
		if !strings.Contains(a.err, says) {
			t.Errorf("it does not say %q: %s", says, a)
		}
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it waited %s for variables that do not come", took)
	}
	for range 3 { // more often than the hook would be tried
		s.want(0, "resume", "--clear-lock", "--reason", "looked at")
		s.want(0, "rollback")
	}
	if h := s.want(0, "history"); !strings.Contains(h.out, "told webhook (notify[0]): not tried: ") || !strings.Contains(h.out, "hook purge (hooks.on_rollback[0]): not tried: ") || strings.Contains(h.out, "given up") {
		t.Errorf("the journal does not say what was left: %s", h)
	}
	for _, command := range []string{"promote", "run"} {
		if a := s.want(2, command); !strings.Contains(a.err, "INBOX is not set") {
			t.Errorf("%s without the variable: %s", command, a)
		}
	}
	if got := sent(); got != "" {
		t.Fatalf("%s was sent by nobody", got)
	}

	s.env = pipeline
	s.want(5, "promote")
	if got := sent(); strings.Count(got, "/inbox") < 1 || strings.Count(got, "/purge") != 1 {
		t.Errorf("whoever has the variables sent %s", got)
	}
	s.want(0, "history", "verify")
}

// TestHistoryEndsWellWhenItsReaderHasSeenEnough: canaryctl history | head.
func TestHistoryEndsWellWhenItsReaderHasSeenEnough(t *testing.T) {
	s := newScene(t, awayConfig)
	s.env = []string{"INBOX=http://127.0.0.1:1/", "PURGE=http://127.0.0.1:1/"}
	s.want(0, "promote")
	for _, form := range []string{"text", "json"} {
		a := s.under([]string{"sh", "-c", `{ "$@"; echo "exit $?" >&2; } | true`, "sh"}, "history", "--all", "-o", form)
		if strings.TrimSpace(a.err) != "exit 0" {
			t.Errorf("%s: %s", form, a)
		}
	}
}
