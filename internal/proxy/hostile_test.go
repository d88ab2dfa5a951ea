package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/throttle"
)

// rawServer answers every request with these bytes, then closes the connection,
// by a reset if reset is true.
func rawServer(t *testing.T, answer string, reset bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				r, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				io.Copy(io.Discard, r.Body)
				io.WriteString(conn, answer)
				if strings.Contains(answer, " 101 ") {
					io.Copy(io.Discard, conn) // what changes its protocol stays open
				}
				if reset {
					time.Sleep(20 * time.Millisecond) // the bytes go out before
					conn.(*net.TCPConn).SetLinger(0)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String() + "/v1"
}

// noPlaceIsHeld waits until no call is under way to either version.
func (w *world) noPlaceIsHeld() {
	w.t.Helper()
	w.eventually("no place is held", func() bool {
		for _, lanes := range w.p.Status().Gates {
			for _, lane := range lanes {
				if lane.InFlight != 0 {
					return false
				}
			}
		}
		return len(w.p.copies.places) == 0
	})
}

func TestAnAnswerThatIsNoneOfHTTPGivesItsPlaceBack(t *testing.T) {
	const begun = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Le"
	for _, c := range []struct {
		name, answer string
		reset        bool
		code         string
	}{
		{"another protocol that nobody asked for", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", false, codeMalformed},
		{"status 099", "HTTP/1.1 099 Odd\r\nContent-Length: 2\r\n\r\n{}", false, codeMalformed},
		{"status 000", "HTTP/1.1 000 Odd\r\nContent-Length: 2\r\n\r\n{}", false, codeMalformed},
		{"no HTTP", "SSH-2.0-server\r\n\r\n", false, codeMalformed},
		{"a status that is no number", "HTTP/1.1 abc OK\r\n\r\n", false, codeMalformed},
		{"a header without a colon", "HTTP/1.1 200 OK\r\nno colon here\r\n\r\n", false, codeMalformed},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}", false, codeMalformed},
		{"a reset in the head", begun, true, codeReset},
		{"an end in the status", "HTTP/1.1 20", false, codeReset},
		{"an end in the first line", "HTTP/1", false, codeReset},
		{"an end behind a line", "HTTP/1.1 200 OK\r\nA: b\r\n", false, codeReset},
		{"an end in the head", begun, false, codeReset},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw := rawServer(t, c.answer, c.reset)
			w := newWorld(t, func(o *Options) {
				o.Sample = release.Ratio{}
				o.Stable.BaseURL, o.Retry.Attempts = parse(t, raw), 1
			})
			for range 3 {
				if resp, text := w.ask(question); resp.StatusCode != 502 || !strings.Contains(text, c.code) {
					t.Errorf("%d %s", resp.StatusCode, text)
				}
			}
			w.noPlaceIsHeld()
			if r := w.lines(w.records)[0]; r["status"] != "502" || r["error_code"] != c.code {
				t.Errorf("%v", r)
			}

			stood := newWorld(t, func(o *Options) { all(o); o.Canary.BaseURL = parse(t, raw) })
			stood.allOnCanary()
			if resp, _ := stood.ask(question); resp.StatusCode != 200 || resp.Header.Get(armHeader) != "stable; the canary failed: "+c.code {
				t.Errorf("%d %v", resp.StatusCode, resp.Header)
			}
			stood.noPlaceIsHeld()

			copied := newWorld(t, func(o *Options) { o.Canary.BaseURL = parse(t, raw); o.Limits.Copy = time.Minute })
			copied.ask(question)
			copied.eventually("the copy has failed", func() bool { return copied.p.Status().Copies.Failed == 1 })
			copied.noPlaceIsHeld()
		})
	}
}

func TestAPathThatIsPassedOnChangesItsProtocolOnlyWhereAsked(t *testing.T) {
	raw := rawServer(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", false)
	w := newWorld(t, func(o *Options) { o.Stable.BaseURL = parse(t, raw) })
	resp, err := w.send("GET", "/v1/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != 502 || !bytes.Contains(text, []byte(codeMalformed)) {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}

// panics is a transport that fails in a way of its own.
type panics struct{}

func (panics) RoundTrip(*http.Request) (*http.Response, error) { panic(http.ErrAbortHandler) }

func TestAPlaceIsGivenBackAfterAPanic(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.transport = func(string, time.Duration) http.RoundTripper { return panics{} }
	})
	for range 3 {
		if resp, err := w.send("POST", "/v1/chat/completions", strings.NewReader(question)); err == nil {
			resp.Body.Close()
			t.Errorf("%d", resp.StatusCode)
		}
	}
	w.noPlaceIsHeld()
}

func TestATrialOfABreakerCountsFromItsHead(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.Sample, o.Retry.Attempts = release.Ratio{}, 1
		o.Gates.Breaker = throttle.BreakerPolicy{Failures: 1, Within: time.Minute, OpenFor: 50 * time.Millisecond, Probes: 2, Successes: 2}
	})
	w.stable.answer(refuse(500, "boom"))
	w.ask(question)
	hold := make(chan struct{})
	w.stable.answer(func(rw http.ResponseWriter, r *http.Request) { // its head waits, too
		waitFor(hold, r)
		completion("{}")(rw, r)
	})
	begun := make(chan int, 2)
	w.eventually("the breaker lets trials out", func() bool {
		return w.p.Status().Gates[release.Stable]["short"].Breaker == release.HalfOpen
	})
	for range 2 {
		go func() { resp, _ := w.ask(question); begun <- resp.StatusCode }()
	}
	w.eventually("both trials are out", func() bool { return w.p.Status().Gates[release.Stable]["short"].InFlight == 2 })
	resp, text := w.ask(question)
	if resp.StatusCode != 503 || !strings.Contains(text, codeOpen) || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("while trials are out: %d %v %s", resp.StatusCode, resp.Header, text)
	}
	close(hold)
	if a, b := <-begun, <-begun; a != 200 || b != 200 {
		t.Errorf("%d %d", a, b)
	}

	w.stable.answer(refuse(500, "boom"))
	w.ask(question) // opens it again
	free := make(chan struct{})
	defer close(free)
	w.stable.answer(func(rw http.ResponseWriter, r *http.Request) {
		stream(chunks("a")[:2], 0)(rw, r)
		waitFor(free, r) // a stream that goes on
	})
	w.eventually("the breaker lets trials out", func() bool {
		return w.p.Status().Gates[release.Stable]["short"].Breaker == release.HalfOpen
	})
	for range 4 { // more than there are trials
		resp, err := w.send("POST", "/v1/chat/completions", strings.NewReader(question))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Errorf("%d beside streams that go on", resp.StatusCode)
		}
	}
	if g := w.p.Status().Gates[release.Stable]["short"]; g.Breaker != release.Closed || g.InFlight != 4 {
		t.Errorf("%+v", g)
	}
	w.asked.Store(0) // the streams end with the test
}

func TestNoTextOfARequestOrAnAnswerIsInALine(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Canary.ModelID = "" })
	long := strings.Repeat("secret ", 600_000/7)
	tool := fmt.Sprintf(`{"id":"c","choices":[{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":%q,"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, "tool "+long)
	answer := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("X-Request-Id", strings.Repeat("id", 5000))
		rw.Header().Set("Content-Type", "application/json")
		io.WriteString(rw, tool)
	})
	w.stable.answer(answer)
	w.canary.answer(answer)
	w.ask(fmt.Sprintf(`{"model": "m\u001b[31m\n%s", "temperature": %q, "user": %q, "messages": []}`, long, long, long), "X-Segment", strings.Repeat("s", 5000))
	w.eventually("a pair", func() bool { return w.p.Status().Pairs == 1 })
	w.stable.answer(refuse(400, "You wrote: my secret question"))
	w.ask(question)
	w.stable.answer(func(rw http.ResponseWriter, r *http.Request) {
		io.WriteString(rw, `{"error":{"message":"x","type":"You wrote: secret","code":"You wrote: secret"}}`)
	})
	w.ask(question)
	records, attempts, pairs := w.lines(w.records), w.lines(w.attempts), w.lines(w.pairs)
	if len(records) != 3 || len(attempts) != 3 || len(pairs) != 1 {
		t.Fatalf("%d %d %d", len(records), len(attempts), len(pairs))
	}
	for _, s := range []*sink{w.records, w.attempts, w.pairs} {
		for line := range strings.Lines(s.String()) {
			if len(line) > 4000 || strings.Count(line, "secret") > 60 || strings.Contains(line, `\u001b`) {
				t.Errorf("%d bytes: %.600s", len(line), line)
			}
		}
	}
	if all := w.records.String() + w.attempts.String() + w.said.String(); strings.Contains(all, "You wrote") {
		t.Errorf("%s", all)
	}
	if records[1]["error_code"] != "t" || records[2]["error_code"] != statusError || records[2]["status"] != statusError {
		t.Errorf("%v\n%v", records[1], records[2])
	}
}

func TestALineWithTextsIsShorterWhereNobodyCouldReadIt(t *testing.T) {
	side := sideLine{Fingerprint: "f", Body: raw([]byte(strings.Repeat("<", 2<<20)))}
	canary := side
	line := appendLine(nil, &pairLine{RequestID: "r", Request: raw([]byte("{}")), Stable: &side, Canary: &canary})
	if len(line) > 1000 || !bytes.Contains(line, []byte(`"request_id":"r"`)) || len(side.Body) < 2<<20 {
		t.Errorf("%d bytes: %.200s", len(line), line)
	}
}

func TestABodyThatNeverEndsIsNotWaitedFor(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Limits.Sending = 80 * time.Millisecond })
	for path, chat := range map[string]bool{"/v1/chat/completions": true, "/v1/embeddings": false} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(10 * time.Second))
		if !chat {
			w.p.o.Limits.Stall = 50 * time.Millisecond
		} else {
			w.asked.Add(1)
		}
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n", path)
		done := make(chan struct{})
		if chat { // a byte now and then: each in time, and all of them not
			go func() {
				for {
					select {
					case <-done:
						return
					case <-time.After(10 * time.Millisecond):
						if _, err := io.WriteString(conn, "x"); err != nil {
							return
						}
					}
				}
			}()
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		close(done)
		if err != nil {
			t.Fatal(path, err)
		}
		if text, _ := io.ReadAll(resp.Body); resp.StatusCode != 408 || !strings.Contains(string(text), codeStalled) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
		resp.Body.Close()
	}
	w.noPlaceIsHeld()
}

func TestWhatAnUpstreamSendsUnaskedIsNotLogged(t *testing.T) {
	var out sink
	was := log.Writer()
	log.SetOutput(&out)
	defer log.SetOutput(was)
	raw := rawServer(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nX: secret\r\n\r\n", false)
	heard := func() {
		w := newWorld(t, func(o *Options) { o.Sample = release.Ratio{}; o.Stable.BaseURL = parse(t, raw) })
		for range 5 {
			w.ask(question)
		}
		w.close()
	}
	heard()
	for end := time.Now().Add(5 * time.Second); !strings.Contains(out.String(), "secret"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("net/http does not write it any more, and Quiet has nothing to do")
		}
	}
	time.Sleep(50 * time.Millisecond)
	restore := Quiet()
	defer restore()
	before := out.String()
	heard()
	time.Sleep(50 * time.Millisecond)
	log.Print("something else")
	if got := strings.TrimPrefix(out.String(), before); strings.Contains(got, "secret") || !strings.Contains(got, "something else") {
		t.Errorf("%q", got)
	}
}

func TestARecordOfAFallbackIsWhatTheUserHad(t *testing.T) {
	w := newWorld(t, func(o *Options) { all(o); o.Retry = throttle.DefaultRetry(); o.Retry.Base = time.Millisecond })
	w.allOnCanary()
	w.canary.answer(refuse(500, "boom"))
	n := 0
	w.stable.answer(func(rw http.ResponseWriter, r *http.Request) {
		if n++; n == 1 {
			refuse(503, "overloaded")(rw, r)
			return
		}
		time.Sleep(100 * time.Millisecond)
		completion("{}")(rw, r)
	})
	w.ask(question)
	w.stable.answer(refuse(422, "bad"))
	w.ask(question)
	records := w.lines(w.records)
	if r := records[0]; r["status"] != "500" || r["error_code"] != "boom" || r["latency_ms"].(float64) < 100 || r["attempt"] != 3.0 || r["fallback_status"] != "200" {
		t.Errorf("%v", r)
	}
	if r := records[1]; r["status"] != "500" || r["fallback_status"] != "422" {
		t.Errorf("%v", r)
	}
}

func TestA200ThatIsNoCompletionIsAnError(t *testing.T) {
	for _, c := range []struct{ answer, path, status string }{
		{`{"choices":[{"index":0,"message":{"content":"half`, "/chat/completions", statusError},
		{`{"ok":true}`, "/chat/completions", statusError},
		{`<html>`, "/chat/completions", statusError},
		{``, "/chat/completions", statusError},
		{`{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"}}]}`, "/chat/completions", "200"},
		{`{"output":[]}`, "/responses", "200"},
		{`{"output":[`, "/responses", statusError},
	} {
		w := newWorld(t, func(o *Options) { o.Sample, o.Paths = release.Ratio{}, []string{c.path} })
		w.stable.answer(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			io.WriteString(rw, c.answer)
		})
		resp, err := w.send("POST", "/v1"+c.path, strings.NewReader(question))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		w.eventually("it has ended", func() bool { return w.p.Status().Requests.Stable == 1 })
		r := w.lines(w.records)[0]
		if code := r["error_code"]; r["status"] != c.status || (code == codeMalformed) != (c.status == statusError) {
			t.Errorf("%s %s: %v", c.path, c.answer, r)
		}
	}
}

// noFiles is a process that has none left, for connections to one version.
type noFiles struct {
	http.RoundTripper
	err error
}

func (n noFiles) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", n.err)}
}

func TestWhatThisMachineLacksIsNobodysFailure(t *testing.T) {
	for _, err := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL} {
		w := newWorld(t, func(o *Options) {
			o.Sample = release.Ratio{}
			o.transport = func(string, time.Duration) http.RoundTripper { return noFiles{err: err} }
		})
		for range 25 { // past the 20 failures that open the breaker
			if resp, text := w.ask(question); resp.StatusCode != 503 || !strings.Contains(text, codeNoSocket) || resp.Header.Get("Retry-After") == "" {
				t.Fatalf("%d %s", resp.StatusCode, text)
			}
		}
		if g := w.p.Status().Gates[release.Stable]["short"]; g.Breaker != release.Closed || g.InFlight != 0 {
			t.Errorf("%+v", g)
		}
		if n := strings.Count(w.said.String(), "ulimit"); n != 1 {
			t.Errorf("said %d times", n)
		}
		if r := w.lines(w.records)[0]; r["status"] != "503" || r["error_code"] != codeNoSocket {
			t.Errorf("%v", r)
		}
	}
	w := newWorld(t, func(o *Options) {
		all(o)
		o.transport = func(name string, header time.Duration) http.RoundTripper {
			if name == "canary" {
				return noFiles{err: syscall.EMFILE}
			}
			return newTransport(name, header)
		}
	})
	w.allOnCanary()
	if resp, _ := w.ask(question); resp.StatusCode != 200 {
		t.Errorf("%d", resp.StatusCode)
	}
	if r := w.lines(w.records)[0]; r["arm"] != "stable" || r["status"] != "200" || r["why"] != "no_socket" || r["fallback"] != nil {
		t.Errorf("the canary is blamed: %v", r)
	}
}

func TestAnswersThatTheProxyBreaksOffAreNotTheUsersDoing(t *testing.T) {
	w := newWorld(t, nil)
	w.stable.answer(func(rw http.ResponseWriter, r *http.Request) {
		stream(chunks("a")[:2], 0)(rw, r)
		<-r.Context().Done()
	})
	c, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(c, "POST", w.url+"/v1/chat/completions", strings.NewReader(question))
	if err != nil {
		t.Fatal(err)
	}
	w.asked.Add(1)
	resp, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	w.p.BreakOff()
	closed := make(chan error, 1)
	go func() { closed <- w.p.Close(t.Context()) }()
	time.Sleep(50 * time.Millisecond)
	w.server.CloseClientConnections() // as the command does after --drain
	if err := <-closed; err != nil {
		t.Error(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if r := w.lines(w.records)[0]; r["status"] != "499" || r["error_code"] != codeEnding || r["stream_aborted"] != false {
		t.Errorf("%v", r)
	}
}

func TestCallsThatShareARequestIDAreToldApart(t *testing.T) {
	w := newWorld(t, retries)
	w.stable.answer(refuse(503, "overloaded"))
	for range 2 {
		w.ask(question, "X-Request-Id", "always-the-same")
	}
	traces := map[any]int{}
	for _, a := range w.lines(w.attempts) {
		traces[a["trace_id"]]++
		if a["request_id"] != "always-the-same" || a["trace_id"] == a["request_id"] {
			t.Errorf("%v", a)
		}
	}
	if len(traces) != 2 {
		t.Errorf("%v", traces)
	}
	for _, n := range traces {
		if n != 4 {
			t.Errorf("%v", traces)
		}
	}
}

func TestNamesOfOthersAreBounded(t *testing.T) {
	long := strings.Repeat("ä", 3000)
	for _, c := range []struct{ in, want string }{
		{"gpt-x", "gpt-x"}, {"", ""}, {"modèle", "modèle"}, {"a\x00b\nc\u202e", "abc"}, {"a\xffb", "ab"},
	} {
		if got := bounded(c.in); got != c.want {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
	a, b := bounded(long+"a"), bounded(long+"b")
	if a == b || len(a) > maxLabel || strings.ToValidUTF8(a, "?") != a {
		t.Errorf("%q %q", a, b)
	}
	for code, want := range map[string]bool{"rate_limit-1.0": true, "A": true, "": false, "a b": false, "ä": false, "a\n": false, "[": false, "@": false, strings.Repeat("a", 65): false} {
		if isCode(code) != want {
			t.Errorf("%q", code)
		}
	}
	if got := errorCode(errors.Join(errMalformed)); got != codeMalformed {
		t.Error(got)
	}
}
