package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// world is a mock that answers over HTTP.
func world(t *testing.T) (post func(path, body string) (int, http.Header, string), get func(path string) string) {
	t.Helper()
	m := &mock{name: "canary", how: behaviour{Bad: 0.02, BadAs: "transfer"}}
	server := httptest.NewServer(m.routes())
	t.Cleanup(server.Close)
	read := func(resp *http.Response, err error) (int, http.Header, string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header, string(text)
	}
	post = func(path, body string) (int, http.Header, string) {
		t.Helper()
		return read(http.Post(server.URL+path, "application/json", strings.NewReader(body)))
	}
	get = func(path string) string {
		t.Helper()
		_, _, text := read(http.Get(server.URL + path))
		return text
	}
	return post, get
}

const question = `{"model": "order-7b", "messages": [{"role": "user", "content": "Where is my order?"}]}`

func TestBadAnswersAreSpreadEvenlyAndCounted(t *testing.T) {
	post, get := world(t)
	for i := 1; i <= 100; i++ {
		status, h, body := post("/v1/chat/completions", question)
		bad := i == 50 || i == 100
		if status != 200 || (h.Get("X-Transfer") == "true") != bad || (h.Get("X-Solved") == "true") == bad || h.Get("X-Violation") != "false" || h.Get("X-Cost-USD") != "0.0021" {
			t.Fatalf("answer %d: %d %v", i, status, h)
		}
		if !strings.Contains(body, `"choices"`) || !strings.Contains(body, `"model":"order-7b"`) {
			t.Fatalf("answer %d: %s", i, body)
		}
	}
	for _, line := range []string{
		`mockllm_requests_total{version="canary"} 100`, `mockllm_solved_total{version="canary"} 98`,
		`mockllm_transfers_total{version="canary"} 2`, `mockllm_violations_total{version="canary"} 0`,
	} {
		if text := get("/metrics"); !strings.Contains(text, line+"\n") {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
}

func TestAMockTurnsBadWhileItRuns(t *testing.T) {
	post, _ := world(t)
	if status, _, body := post("/mock?bad=1&bad-as=violation&latency=1ms", ""); status != 200 || body != "canary: latency 1ms, bad 1 as violation\n" {
		t.Fatalf("%d %s", status, body)
	}
	for range 3 {
		if _, h, _ := post("/v1/chat/completions", question); h.Get("X-Violation") != "true" || h.Get("X-Solved") != "false" || h.Get("X-Transfer") != "false" {
			t.Errorf("%v", h)
		}
	}
	for _, query := range []string{"bad=2", "bad=NaN", "bad=much", "bad-as=rude", "latency=soon"} {
		if status, _, body := post("/mock?"+query, ""); status != 400 {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
	if status, _, _ := post("/v1/chat/completions", `{"model": "order-7b"}`); status != 400 {
		t.Errorf("no messages: %d", status)
	}
}
