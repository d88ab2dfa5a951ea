package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/slot"
	"github.com/canaryctl/canaryctl/internal/throttle"
)

// all sends everybody to the canary.
func all(o *Options) {
	o.Weight = func(context.Context) (release.Weight, error) { return release.Weight{Slots: 100, Ring: 100}, nil }
	o.Sample = release.Ratio{}
}

func (w *world) allOnCanary() {
	w.t.Helper()
	w.eventually("a weight", func() bool { return !w.p.weights.get().IsZero() })
}

func TestACanaryThatFailsBeforeItsFirstByteIsStoodInFor(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	for _, c := range []struct {
		name   string
		canary http.HandlerFunc
		said   string // in the header, "" if the canary's answer is passed on
		status string // in the record
		code   any
	}{
		{"a reset", reset, "stable; the canary failed: connection_reset", "502", "connection_reset"},
		{"500", refuse(500, "boom"), "stable; the canary failed: status 500", "500", "boom"},
		{"429", refuse(429, "rate_limit_exceeded", "Retry-After", "3"), "stable; the canary failed: status 429", "429", "rate_limit_exceeded"},
		{"a key that is not accepted", refuse(401, "invalid_api_key"), "stable; the canary failed: status 401", "401", "invalid_api_key"},
		{"a model that is not there", refuse(404, "model_not_found"), "stable; the canary failed: status 404", "404", "model_not_found"},
		{"no head in time", func(_ http.ResponseWriter, r *http.Request) { waitFor(hang, r) }, "stable; the canary failed: read_timeout", "504", "read_timeout"},
		{"a bad request is the user's", refuse(400, "bad"), "", "400", "bad"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, func(o *Options) { all(o); o.Limits.CanaryHeader = 50 * time.Millisecond })
			w.allOnCanary()
			w.canary.answer(c.canary)
			resp, text := w.ask(question, "X-User-Id", "u")
			if c.said != "" && (resp.StatusCode != 200 || !strings.Contains(text, "c-1") || resp.Header.Get(armHeader) != c.said) {
				t.Errorf("%d %s %q", resp.StatusCode, text, resp.Header.Get(armHeader))
			}
			if c.said == "" && (resp.StatusCode != 400 || resp.Header.Get(armHeader) != "canary") {
				t.Errorf("%d %s %q", resp.StatusCode, text, resp.Header.Get(armHeader))
			}
			records := w.lines(w.records)
			if len(records) != 1 {
				t.Fatalf("%v", records)
			}
			r := records[0]
			if r["arm"] != "canary" || r["status"] != c.status || r["error_code"] != c.code || (r["fallback"] == true) != (c.said != "") || r["user_id"] != "u" {
				t.Errorf("%v", r)
			}
			if c.name == "429" && r["retry_after_ms"] != 3000.0 {
				t.Errorf("retry after: %v", r)
			}
			if got := w.stable.requests(); c.said != "" && (len(got) != 1 || got[0].body != question) {
				t.Errorf("stable saw %v", got)
			}
		})
	}
}

func TestWithACanaryThatIsNotThereEverybodyIsAnswered(t *testing.T) {
	w := newWorld(t, all)
	w.allOnCanary()
	w.canary.Close()
	for i := range 30 { // past the 20 failures that open the breaker
		if resp, _ := w.ask(question, "X-User-Id", fmt.Sprint(i)); resp.StatusCode != 200 {
			t.Fatal(resp.StatusCode)
		}
	}
	w.eventually("the requests are counted", func() bool { return w.p.Status().Requests.Stable == 30 })
	s := w.p.Status()
	if s.Requests.Fallbacks != 30 || s.Requests.Stable != 30 || s.Gates[release.Canary]["short"].Breaker != release.Open || s.Gates[release.Stable]["short"].Breaker != release.Closed {
		t.Errorf("%+v %+v", s.Requests, s.Gates)
	}
	codes := map[any]int{}
	for _, a := range w.lines(w.attempts) {
		if a["arm"] == "canary" {
			codes[a["error_code"]]++
		}
		if a["error_code"] == codeOpen && (a["breaker_state"] != "OPEN" || a["status"] != nil) {
			t.Errorf("%v", a)
		}
	}
	if codes[codeRefused] != 20 || codes[codeOpen] != 10 {
		t.Errorf("%v", codes)
	}
}

// retries is the published policy with short waits.
func retries(o *Options) {
	o.Retry = throttle.DefaultRetry()
	o.Retry.Base = time.Millisecond
	o.Sample = release.Ratio{}
}

func TestACallIsTriedAgainBeforeItsFirstByteOnly(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(n int64) http.HandlerFunc
		status int
		calls  int64
		broken bool
	}{
		{"429 twice, then well", func(n int64) http.HandlerFunc {
			if n < 3 {
				return refuse(429, "rate_limit_exceeded", "Retry-After-Ms", "5")
			}
			return completion("{}")
		}, 200, 3, false},
		{"always 503", func(int64) http.HandlerFunc { return refuse(503, "overloaded") }, 503, 4, false},
		{"reset, then well", func(n int64) http.HandlerFunc {
			if n == 1 {
				return reset
			}
			return completion("{}")
		}, 200, 2, false},
		{"no credit", func(int64) http.HandlerFunc { return refuse(429, throttle.InsufficientQuota) }, 429, 1, false},
		{"asked to stay away for longer than anybody waits", func(int64) http.HandlerFunc { return refuse(429, "x", "Retry-After", "60") }, 429, 1, false},
		{"400", func(int64) http.HandlerFunc { return refuse(400, "x") }, 400, 1, false},
		{"broken off after its first byte", func(int64) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, "data: {}\n\n")
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
		}, 200, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, retries)
			var n atomic.Int64
			w.stable.answer(func(rw http.ResponseWriter, r *http.Request) { c.answer(n.Add(1))(rw, r) })
			resp, err := w.send("POST", "/v1/chat/completions", strings.NewReader(question))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if resp.StatusCode != c.status || n.Load() != c.calls || (err != nil) != c.broken {
				t.Errorf("%d after %d calls, %v, %s", resp.StatusCode, n.Load(), err, text)
			}
			if c.status >= 400 && !strings.Contains(string(text), `"message":"no"`) {
				t.Errorf("the refusal was changed: %s", text)
			}
			for _, r := range w.stable.requests() {
				if r.body != question {
					t.Errorf("sent %q", r.body)
				}
			}
			attempts := w.lines(w.attempts)
			if int64(len(attempts)) != c.calls {
				t.Fatalf("%d lines for %d attempts", len(attempts), c.calls)
			}
			for i, a := range attempts {
				if a["attempt"] != float64(i+1) || a["endpoint"] != "chat.completions" || a["model"] != "m-1" || a["breaker_state"] != "CLOSED" || a["inflight"] != 1.0 {
					t.Errorf("%v", a)
				}
			}
			if c.calls == 3 && (attempts[0]["status"] != 429.0 || attempts[0]["retry_after_ms"] != 5.0 || attempts[0]["error_code"] != "rate_limit_exceeded" || attempts[2]["error_code"] != nil) {
				t.Errorf("%v", attempts)
			}
		})
	}
}

func TestARequestThatIsStillBeingSentIsTriedAgainWhole(t *testing.T) {
	w := newWorld(t, retries)
	var n atomic.Int64
	early := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 1 { // refused before it was read
			refuse(503, "overloaded", "Connection", "close")(rw, r)
			return
		}
		text, _ := io.ReadAll(r.Body)
		fmt.Fprintf(rw, "%d", len(text))
	})
	w.stable.Config.Handler = early
	long := `{"model": "m-1", "x": "` + strings.Repeat("x", 300_000) + `"}`
	out, in := io.Pipe()
	go func() {
		for i := 0; i < len(long); i += 10_000 {
			io.WriteString(in, long[i:min(i+10_000, len(long))])
			time.Sleep(time.Millisecond)
		}
		in.Close()
	}()
	resp, err := w.send("POST", "/v1/chat/completions", out)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || string(text) != fmt.Sprint(len(long)) {
		t.Errorf("%d, %s bytes of %d arrived, %v", resp.StatusCode, text, len(long), err)
	}
}

func TestABreakerOfTheProxyAnswersInItsOwnName(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Retry.Attempts = 1; o.Gates.Breaker.OpenFor = 2500 * time.Millisecond })
	w.stable.answer(refuse(500, "boom"))
	for range 20 {
		w.ask(question)
	}
	resp, text := w.ask(question)
	if resp.StatusCode != 503 || !strings.Contains(text, codeOpen) || resp.Header.Get("Retry-After") != "3" || len(w.stable.requests()) != 20 {
		t.Errorf("%d %s %v; stable saw %d", resp.StatusCode, text, resp.Header, len(w.stable.requests()))
	}
	if s := w.p.Status(); s.Requests.Refused != 1 || s.Gates[release.Stable]["short"].Breaker != release.Open || s.Gates[release.Stable]["long"].Breaker != release.Closed {
		t.Errorf("%+v", s)
	}
	long := `{"model": "m-1", "x": "` + strings.Repeat("x", 4*throttle.SplitTokens) + `"}`
	if resp, _ := w.ask(long); resp.StatusCode != 500 {
		t.Errorf("a long prompt has a breaker of its own, and got %d", resp.StatusCode)
	}
	records := w.lines(w.records)
	if last := records[20]; last["status"] != "503" || last["error_code"] != codeOpen {
		t.Errorf("%v", last)
	}
}

func TestWithoutABreakerEveryCallIsMade(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Retry.Attempts = 1; o.NoBreaker = true; o.Gates.Short, o.Gates.Long = 0, 0 })
	w.stable.answer(refuse(500, "boom"))
	for range 40 {
		w.ask(question)
	}
	if n := len(w.stable.requests()); n != 40 {
		t.Errorf("%d of 40", n)
	}
}

func TestPlacesAreWaitedForInTurnAndNotForEver(t *testing.T) {
	free := make(chan struct{})
	w := newWorld(t, func(o *Options) { o.Gates.Short, o.Limits.Place, o.Sample = 1, 100*time.Millisecond, release.Ratio{} })
	w.stable.answer(func(rw http.ResponseWriter, r *http.Request) { waitFor(free, r); completion("{}")(rw, r) })
	first := make(chan int)
	go func() {
		resp, _ := w.ask(question)
		first <- resp.StatusCode
	}()
	w.eventually("the place is taken", func() bool { return w.p.Status().Gates[release.Stable]["short"].InFlight == 1 })
	if resp, text := w.ask(question); resp.StatusCode != 503 || !strings.Contains(text, codeFull) || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	second := make(chan int)
	go func() {
		resp, _ := w.ask(question)
		second <- resp.StatusCode
	}()
	w.eventually("the next one waits", func() bool {
		g := w.p.stable.guard
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.line[throttle.Short]) == 1
	})
	close(free)
	if a, b := <-first, <-second; a != 200 || b != 200 {
		t.Errorf("%d, %d", a, b)
	}
	w.eventually("both places are free", func() bool { return w.p.Status().Gates[release.Stable]["short"].InFlight == 0 })
}

func TestAStreamIsRecordedAsItWent(t *testing.T) {
	gone := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, strings.Join(chunks("a", "b")[:2], ""))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	failing := append(chunks("a")[:2], `data: {"error": {"message": "secret", "type": "server_error", "code": "overloaded"}}`+"\n\n")
	usage := append(chunks("a", "b", "c")[:5], `data: {"object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":12,"completion_tokens":5,"total_tokens":17}}`+"\n\n", "data: [DONE]\n\n")
	tools := `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"get_order","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}` + "\n\n"
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"to its end", stream(usage, 0), "status=200 ttft=yes aborted=false tools=<nil> in=12 out=5 code=<nil>"},
		{"an error inside", stream(failing, 0), "status=error ttft=yes aborted=false tools=<nil> in=<nil> out=<nil> code=overloaded"},
		{"broken off", gone, "status=200 ttft=yes aborted=true tools=<nil> in=<nil> out=<nil> code=<nil>"},
		{"ended without an end", stream(chunks("a")[:2], 0), "status=200 ttft=yes aborted=true tools=<nil> in=<nil> out=<nil> code=<nil>"},
		{"a tool", stream([]string{tools, "data: [DONE]\n\n"}, 0), "status=200 ttft=yes aborted=false tools=get_order in=<nil> out=<nil> code=<nil>"},
		{"not a stream", completion("x"), "status=200 ttft=no aborted=<nil> tools=<nil> in=12 out=7 code=<nil>"},
		{"refused", refuse(422, "bad"), "status=422 ttft=no aborted=<nil> tools=<nil> in=<nil> out=<nil> code=bad"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, func(o *Options) { o.Sample = release.Ratio{} })
			w.stable.answer(c.answer)
			resp, err := w.send("POST", "/v1/chat/completions", strings.NewReader(question))
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
			if (err != nil) != (c.name == "broken off") {
				t.Errorf("the user sees %v", err)
			}
			r := w.lines(w.records)[0]
			known := func(name string) string {
				if r[name] == nil {
					return "no"
				}
				return "yes"
			}
			got := fmt.Sprintf("status=%v ttft=%s aborted=%v tools=%v in=%v out=%v code=%v", r["status"], known("ttft_ms"), r["stream_aborted"], r["tool_calls"], r["input_tokens"], r["output_tokens"], r["error_code"])
			if got != c.want {
				t.Errorf("\n%s\nwant\n%s", got, c.want)
			}
			if strings.Contains(w.records.String()+w.attempts.String()+w.said.String(), "secret") {
				t.Error("a text of the answer was written")
			}
		})
	}
}

func TestAUserWhoGoesAwayEndsTheCallAndGetsNoCopy(t *testing.T) {
	w := newWorld(t, nil)
	ended := make(chan struct{})
	w.stable.answer(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(rw, strings.Join(chunks("a")[:2], ""))
		rw.(http.Flusher).Flush()
		<-r.Context().Done()
		close(ended)
	})
	c, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(c, "POST", w.url+"/v1/chat/completions", strings.NewReader(question))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	cancel()
	resp.Body.Close()
	<-ended
	w.eventually("it was seen", func() bool { return w.p.Status().Requests.Cancelled == 1 })
	got := w.lines(w.records)[0]
	if got["status"] != "499" || got["stream_aborted"] != false || got["ttft_ms"] == nil {
		t.Errorf("%v", got)
	}
	if len(w.canary.requests()) != 0 {
		t.Error("a copy was sent")
	}
	if g := w.p.Status().Gates[release.Stable]["short"]; g.InFlight != 0 || g.Breaker != release.Closed {
		t.Errorf("%+v", g)
	}
}

func TestAUserWhoReadsNothingIsNotWaitedForWithoutEnd(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Limits.Stall = 50 * time.Millisecond; o.Sample = release.Ratio{} })
	w.stable.answer(func(rw http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := rw.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	})
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(question), question)
	w.eventually("it was given up", func() bool { return w.p.Status().Requests.Cancelled == 1 })
	w.eventually("its place is free", func() bool { return w.p.Status().Gates[release.Stable]["short"].InFlight == 0 })
}

func TestAKeyThatAServerQuotesIsNotWritten(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Canary.Key = "sk-of-the-canary" })
	w.stable.answer(refuse(401, "bad_key_sk-of-the-user"))
	w.ask(question, "Authorization", "Bearer sk-of-the-user")
	w.stable.answer(completion("{}"))
	w.canary.answer(refuse(401, "bad_key_sk-of-the-canary"))
	w.ask(question)
	w.eventually("a pair", func() bool { return w.p.Status().Pairs == 1 })
	w.close()
	if all := w.records.String() + w.attempts.String() + w.pairs.String() + w.said.String(); strings.Contains(all, "sk-of-the") {
		t.Errorf("%s", all)
	}
}

func TestWhyARequestIsOnItsArmIsRecorded(t *testing.T) {
	w := newWorld(t, func(o *Options) { all(o); o.Limits.Body = 500; o.Router.ExcludeUsers = slot.SetOf("never") })
	w.allOnCanary()
	w.ask(question, "X-User-Id", "u", "X-Request-Id", "1")
	w.ask(question, "X-User-Id", "never", "X-Request-Id", "2")
	w.ask(question, "X-Request-Id", "3")
	w.ask(question[1:], "X-User-Id", "u", "X-Request-Id", "4")
	w.ask(strings.Replace(question, "Where", strings.Repeat("x", 600), 1), "X-User-Id", "u", "X-Request-Id", "5")
	w.ask("", "X-User-Id", "u", "X-Request-Id", "6")
	w.ask("", "X-Request-Id", "7")
	got := map[any]string{}
	for _, r := range w.lines(w.records) {
		got[r["request_id"]] = fmt.Sprint(r["arm"], " ", r["why"], " ", r["user_id"])
	}
	for id, want := range map[string]string{
		"1": "canary slot u", "2": "stable excluded_user never", "3": "canary slot, by a digest of the request: no user is named <nil>",
		"4": "stable not_json u", "5": "stable too_long u", "6": "stable not_json u", "7": "stable not_json <nil>",
	} {
		if got[id] != want {
			t.Errorf("%s: %s, want %s", id, got[id], want)
		}
	}
	if s := w.p.Status().Requests; s.Unroutable != 1 || s.Malformed != 3 {
		t.Errorf("%+v", s)
	}
}

func TestStableThatIsNotThereIsSaidWithoutItsAddress(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Stable.BaseURL.User = nil })
	w.stable.Close()
	resp, text := w.ask(question)
	if resp.StatusCode != 502 || !strings.Contains(text, codeRefused) || strings.Contains(text, "127.0.0.1") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if r := w.lines(w.records)[0]; r["status"] != "502" || r["error_code"] != codeRefused {
		t.Errorf("%v", r)
	}
}

// TestRequestsThatMeanTwoThingsAreRefused: what one server takes for a body and
// the next one for a request behind it.
func TestRequestsThatMeanTwoThingsAreRefused(t *testing.T) {
	for name, head := range map[string]string{
		"two lengths":            "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
		"a length and chunks":    "Content-Length: 4\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
		"a blank before a colon": "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
		"no path":                "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			line := "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
			if name == "no path" {
				line = "OPTIONS * HTTP/1.1\r\nHost: x\r\n"
			}
			io.WriteString(conn, line+head)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if name != "no path" && resp.StatusCode/100 == 2 {
				t.Errorf("%d", resp.StatusCode)
			}
			if n := len(w.stable.requests()); n != 0 {
				t.Errorf("stable saw %d", n)
			}
		})
	}
}

func TestARequestAsksBeforeItSendsItsBody(t *testing.T) {
	w := newWorld(t, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w.asked.Add(1)
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(question))
	in := bufio.NewReader(conn)
	if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != 100 {
		t.Fatalf("%v %v", resp, err)
	}
	io.WriteString(conn, question)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); resp.StatusCode != 200 || err != nil || !bytes.Contains(text, []byte("c-1")) {
		t.Errorf("%d %s %v", resp.StatusCode, text, err)
	}
	w.eventually("a pair", func() bool { return w.p.Status().Pairs == 1 })
}

func TestClientsShowTheKeyOfTheProxy(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.ClientKey = "proxy-key"; o.Stable.Key = "stable-key" })
	if resp, text := w.ask(question, "Authorization", "Bearer other"); resp.StatusCode != 401 || strings.Contains(text, "proxy-key") || len(w.stable.requests()) != 0 {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	w.asked.Store(0)
	if resp, _ := w.ask(question, "Authorization", "bearer proxy-key"); resp.StatusCode != 200 || w.stable.requests()[0].Header.Get("Authorization") != "Bearer stable-key" {
		t.Errorf("%d %v", resp.StatusCode, w.stable.requests()[0].Header)
	}
}

func TestNothingIsAddedToAnAnswerAfterAnInterimOne(t *testing.T) {
	w := newWorld(t, nil)
	w.stable.answer(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Link", "</style.css>; rel=preload")
		rw.WriteHeader(http.StatusEarlyHints)
		rw.Header()["Date"], rw.Header()["Content-Type"] = nil, nil
		rw.WriteHeader(200)
		io.WriteString(rw, "{}")
	})
	resp, text := w.ask(question)
	for _, name := range []string{"Date", "Content-Type"} {
		if v, there := resp.Header[name]; there {
			t.Errorf("%s: %q was added", name, v)
		}
	}
	if resp.StatusCode != 200 || text != "{}" {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}

// TestWhatIsNotCarriedOver holds the exceptions that docs/reference/proxy.md
// names to "byte for byte": net/http decides on them.
func TestWhatIsNotCarriedOver(t *testing.T) {
	w := newWorld(t, nil)
	for status, lost := range map[int]string{204: "Content-Length", 304: "Content-Length Content-Type"} {
		w.stable.answer(func(rw http.ResponseWriter, r *http.Request) {
			conn, _, err := rw.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			fmt.Fprintf(conn, "HTTP/1.1 %d Fine\r\nContent-Length: 0\r\nContent-Type: text/x\r\nEtag: e\r\nConnection: close\r\n\r\n", status)
			conn.Close()
		})
		resp, err := w.send("GET", "/v1/files", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		for name, v := range map[string]string{"Content-Length": "0", "Content-Type": "text/x", "Etag": "e"} {
			if got := resp.Header.Get(name); (got == v) == strings.Contains(lost, name) {
				t.Errorf("%d: %s is %q", status, name, got)
			}
		}
		if want := fmt.Sprint(status, " ", http.StatusText(status)); resp.Status != want {
			t.Errorf("%q, want %q", resp.Status, want)
		}
	}
}

func TestAMethodThatShowsAKeyIsNotPassedOn(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Stable.Key = "stable-key" })
	for _, method := range []string{"TRACE", "CONNECT"} {
		for _, path := range []string{"/v1/models", "/v1/chat/completions", "/elsewhere"} {
			resp, err := w.send(method, path, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode/100 != 4 {
				t.Errorf("%s %s: %d", method, path, resp.StatusCode)
			}
		}
	}
	if n := len(w.stable.requests()); n != 0 {
		t.Errorf("stable saw %d", n)
	}
}

func TestAKeyIsForTheAPIAlone(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.Stable.Key = "stable-key"
		o.Stable.BaseURL.RawQuery = "token=stable-token"
	})
	for path, want := range map[string]string{
		"/v1/models": "Bearer stable-key token=stable-token", "/v1": "Bearer stable-key token=stable-token",
		"/admin/keys": "Bearer user-key ", "/v10/models": "Bearer user-key ", "/": "Bearer user-key ",
		"/v1/../admin": "400", "/v1/%2e%2e/admin": "400", "/v1/..%2fadmin": "400", "/v1/..;/admin": "400", "/v1/..%5cadmin": "400", "/v1/a/..": "400",
		"/v1/..a/b.": "Bearer stable-key token=stable-token",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		before := len(w.stable.requests())
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer user-key\r\nConnection: close\r\n\r\n", path)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		conn.Close()
		got := fmt.Sprint(resp.StatusCode)
		if seen := w.stable.requests(); len(seen) > before {
			r := seen[len(seen)-1]
			got = r.Header.Get("Authorization") + " " + r.URL.RawQuery
		}
		if got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestALinkOfAnotherSiteSpendsNoKey(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Loopback = true })
	for _, c := range []struct {
		site, origin string
		want         int
	}{
		{"cross-site", "", 403}, {"Cross-Site", "", 403}, {"cross-site", "http://localhost:3000", 200}, {"same-origin", "", 200}, {"none", "", 200}, {"", "", 200},
	} {
		resp, err := w.send("GET", "/v1/models", nil, "Sec-Fetch-Site", c.site, "Origin", c.origin)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s from %q: %d, want %d", c.site, c.origin, resp.StatusCode, c.want)
		}
	}
}

func TestTheAdminAddressLetsInWhomItShould(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.ClientKey = "proxy-key" })
	for _, c := range []struct {
		loopback        bool
		path, host, key string
		want            int
	}{
		{true, "/-/status", "127.0.0.1:1", "", 200}, {true, "/-/status", "evil.example", "", 403}, {true, "/-/healthy", "evil.example", "", 403},
		{false, "/-/status", "proxy.example", "", 401}, {false, "/-/metrics", "proxy.example", "other", 401},
		{false, "/-/metrics", "proxy.example", "proxy-key", 200}, {false, "/-/healthy", "proxy.example", "", 200},
	} {
		r := httptest.NewRequest("GET", "http://"+c.host+c.path, nil)
		if c.key != "" {
			r.Header.Set("Authorization", "Bearer "+c.key)
		}
		got := httptest.NewRecorder()
		w.p.AdminAside(c.loopback).ServeHTTP(got, r)
		if got.Code != c.want {
			t.Errorf("%+v: %d", c, got.Code)
		}
	}
}

func TestAPageOfAnotherSiteSpendsNoKey(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Loopback = true })
	for _, c := range []struct {
		host, origin string
		want         int
	}{
		{"localhost:1", "", 200}, {"127.0.0.1", "", 200}, {"[::1]:80", "http://localhost:3000", 200},
		{"evil.example", "", 403}, {"localhost", "https://evil.example", 403}, {"localhost", "null", 403}, {"127.0.0.1.evil.example", "", 403},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", w.url+"/v1/chat/completions", strings.NewReader(question))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		resp, err := w.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s, %s: %d, want %d", c.host, c.origin, resp.StatusCode, c.want)
		}
	}
}

func TestAWeightThatCannotBeReadStaysWhereItWas(t *testing.T) {
	var err atomic.Pointer[error]
	failed := errors.New("file is gone")
	err.Store(&failed)
	w := newWorld(t, func(o *Options) {
		o.Every = time.Millisecond
		o.Weight = func(context.Context) (release.Weight, error) {
			if e := err.Load(); e != nil {
				return release.Weight{}, *e
			}
			return release.Weight{Slots: 5, Ring: 100}, nil
		}
	})
	w.eventually("it is said", func() bool { return strings.Contains(w.said.String(), "until it can everybody is on stable") })
	if s := w.p.Status().Weight; s.Known || s.Pct != 0 || s.Error != "file is gone" || s.Age != nil {
		t.Errorf("%+v", s)
	}
	err.Store(nil)
	w.eventually("it is read", func() bool { return w.p.weights.get().Slots == 5 })
	err.Store(&failed)
	w.eventually("it is said once", func() bool { return strings.Contains(w.said.String(), "it stays at 5 %, as last read") })
	if s := w.p.Status().Weight; !s.Known || s.Pct != 0.05 || s.Age == nil {
		t.Errorf("%+v", s)
	}
	if n := strings.Count(w.said.String(), "cannot be read"); n != 2 {
		t.Errorf("said %d times:\n%s", n, w.said)
	}
}

func TestAFullDiskHoldsNobodyUp(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Sample = release.Ratio{} })
	w.records.err = errors.New("no space left on device")
	for range 5 {
		w.ask(question)
	}
	w.eventually("they were lost", func() bool { return w.p.Status().Records.Failed == 5 })
	w.records.mu.Lock()
	w.records.err = nil
	w.records.mu.Unlock()
	w.ask(question)
	w.eventually("written again", func() bool { return w.p.Status().Records.Written == 1 })
	if said := w.said.String(); strings.Count(said, "records are not written: no space left on device") != 1 || !strings.Contains(said, "records are written again; 5 were lost") {
		t.Errorf("%s", said)
	}
}
