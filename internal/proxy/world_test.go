package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/shadow"
	"github.com/canaryctl/canaryctl/internal/slot"
	"github.com/canaryctl/canaryctl/internal/throttle"
)

// world is a proxy between a client and two upstreams, all over loopback.
type world struct {
	t              *testing.T
	o              Options
	stable, canary *fake
	p              *Proxy
	server         *httptest.Server
	url            string
	client         *http.Client

	records, attempts, pairs *sink
	said                     *sink
	asked                    atomic.Int64 // chat completions
	weight                   atomic.Pointer[release.Weight]
}

// fake is an upstream; what it does can be changed while it runs.
type fake struct {
	*httptest.Server
	do   atomic.Pointer[http.HandlerFunc]
	mu   sync.Mutex
	seen []*seen
}

type ctx = context.Context

// seen is a request that reached an upstream.
type seen struct {
	*http.Request
	body string
}

func (f *fake) answer(h http.HandlerFunc) { f.do.Store(&h) }

func (f *fake) requests() []*seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*seen(nil), f.seen...)
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{}
	f.answer(completion("{}"))
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body) // a body that breaks off is one that is seen so far
		f.mu.Lock()
		f.seen = append(f.seen, &seen{r, string(text)})
		f.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(text))
		(*f.do.Load())(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// sink takes lines.
type sink struct {
	mu   sync.Mutex
	text bytes.Buffer
	err  error
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	return s.text.Write(p)
}

func (s *sink) say(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func newWorld(t *testing.T, change func(*Options)) *world {
	t.Helper()
	w := &world{t: t, stable: newFake(t), canary: newFake(t), records: &sink{}, attempts: &sink{}, pairs: &sink{}, said: &sink{}}
	w.weight.Store(&release.Weight{Ring: 100})
	w.o = Options{
		Stable:   Version{BaseURL: parse(t, w.stable.URL+"/v1"), ModelID: "m-1"},
		Canary:   Version{BaseURL: parse(t, w.canary.URL+"/v1"), ModelID: "m-2"},
		Sample:   release.NewRatio(1, 1),
		Router:   slot.Router{Ring: 100},
		UserFrom: "X-User-Id", SegmentOf: "X-Segment",
		Gates: throttle.DefaultGates(), Limits: DefaultLimits(), Policy: shadow.DefaultPolicy(),
		Records: w.records, Attempts: w.attempts, Pairs: w.pairs, AdminPaths: true, PlainIDs: true,
		Say: w.said.say,
	}
	if change != nil {
		change(&w.o)
	}
	p, err := New(w.o)
	if err != nil {
		t.Fatal(err)
	}
	w.p = p
	server := httptest.NewServer(p)
	w.server, w.url = server, server.URL
	w.client = &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}}
	t.Cleanup(func() {
		w.client.CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
		w.close()
	})
	return w
}

// close ends the proxy; what it writes is written then.
func (w *world) close() {
	w.t.Helper()
	w.eventually("every request has ended", func() bool {
		r := w.p.Status().Requests
		return r.Stable+r.Canary+r.Unanswered+r.Cancelled >= w.asked.Load()
	})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := w.p.Close(ctx); err != nil {
		w.t.Errorf("close: %v", err)
	}
}

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

const question = `{"model": "m-1", "messages": [{"role": "user", "content": "Where is my order?"}]}`

// ask asks a question, with headers given as name, value.
func (w *world) ask(body string, headers ...string) (*http.Response, string) {
	w.t.Helper()
	resp, err := w.send(http.MethodPost, "/v1/chat/completions", strings.NewReader(body), headers...)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatalf("%v after %q", err, text)
	}
	return resp, string(text)
}

func (w *world) send(method, path string, body io.Reader, headers ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, body)
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := w.client.Do(r)
	if method == http.MethodPost && strings.HasPrefix(path, "/v1/chat/completions") {
		w.asked.Add(1)
	}
	return resp, err
}

// lines returns what a sink holds once the proxy has ended.
func (w *world) lines(s *sink) (out []map[string]any) {
	w.t.Helper()
	w.close()
	for line := range strings.Lines(s.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			w.t.Fatalf("%q: %v", line, err)
		}
		out = append(out, m)
	}
	return out
}

// eventually waits for something that other goroutines do.
func (w *world) eventually(what string, is func() bool) {
	w.t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			status, _ := json.MarshalIndent(w.p.Status(), "", "  ")
			w.t.Fatalf("never: %s; said:\n%s\n%s", what, w.said, status)
		}
	}
}

// completion answers with a message of this content.
func completion(content string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"c-1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":12,"completion_tokens":7,"total_tokens":19}}`, content)
	}
}

// chunks is a streamed answer, an event a piece.
func chunks(pieces ...string) (events []string) {
	events = append(events, `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`+"\n\n")
	for _, p := range pieces {
		events = append(events, fmt.Sprintf(`data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`+"\n\n", p))
	}
	return append(events, `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n", "data: [DONE]\n\n")
}

// stream writes events, each flushed, after a wait.
func stream(events []string, wait time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		to := http.NewResponseController(w)
		for _, e := range events {
			time.Sleep(wait)
			io.WriteString(w, e) //nolint:errcheck // the client may have gone
			to.Flush()           //nolint:errcheck // as above
		}
	}
}

// refuse answers with an error.
func refuse(status int, code string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"message":"no","type":"t","code":%q}}`, code)
	}
}

// reset breaks the connection off.
func reset(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
