// Command mockllm plays a server for language models: POST /v1/chat/completions
// answers as OpenAI-compatible servers do, with no model behind it.
//
//	go run ./examples/mockllm -listen 127.0.0.1:8081 -name stable -latency 20ms -bad 0.02
//	curl -X POST 'http://127.0.0.1:8081/mock?bad=0.5'                      # from now on half of the answers are bad
//	curl -X POST 'http://127.0.0.1:8081/mock?latency=2s&bad-as=violation'  # slow, and bad in another way
//
// What an application knows about its answer is said in headers, for a gateway
// to log: X-Solved, X-Transfer and X-Violation (true or false) and X-Cost-USD.
// The same is counted at /metrics, in Prometheus' text format.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// costUSD is what an answer costs.
const costUSD = 0.0021

// behaviour is how a mock answers; it can be changed while it runs.
type behaviour struct {
	Latency time.Duration
	Bad     float64 // share of bad answers
	BadAs   string  // transfer: handed to a human; violation: says what it must not
}

// mock is the server. Bad answers are spread evenly, not drawn: of 100 answers
// at 0.02 the 50th and the 100th are bad, so that what a reader sees is what
// the guide shows.
type mock struct {
	name string
	text string // of a good answer

	mu        sync.Mutex
	how       behaviour
	due       float64 // of the next bad answer; it is given at 1
	requests  int64
	solved    int64
	transfers int64
	violated  int64
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8081", "`address` to answer at")
	m := &mock{}
	flag.StringVar(&m.name, "name", "stable", "the `version` that this server is, for its answers and /metrics")
	flag.StringVar(&m.text, "text", "Your order is on its way.", "what a good `answer` says")
	flag.DurationVar(&m.how.Latency, "latency", 20*time.Millisecond, "how `long` an answer takes")
	flag.Float64Var(&m.how.Bad, "bad", 0, "`share` of bad answers, from 0 to 1")
	flag.StringVar(&m.how.BadAs, "bad-as", "transfer", "what is bad about them: `transfer` or violation")
	flag.Parse()
	log.SetFlags(log.LstdFlags | log.Lmicroseconds | log.LUTC)
	if err := m.how.check(); err != nil {
		log.Fatal(err)
	}
	log.Printf("%s: http://%s/v1", m.name, *listen)
	server := &http.Server{Addr: *listen, Handler: m.routes(), ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

func (m *mock) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", m.complete)
	mux.HandleFunc("POST /mock", m.change)
	mux.HandleFunc("GET /metrics", m.metrics)
	return mux
}

// complete answers a chat completion.
func (m *mock) complete(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Model    string            `json:"model"`
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&asked); err != nil || len(asked.Messages) == 0 {
		http.Error(w, `{"error":{"message":"messages is missing","type":"invalid_request_error"}}`, http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	latency := m.how.Latency
	m.mu.Unlock()
	select {
	case <-time.After(latency):
	case <-r.Context().Done():
		return
	}
	transfer, violation, id := m.answer()
	text := m.text
	if transfer {
		text = "I will hand you to a colleague."
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Solved", strconv.FormatBool(!transfer && !violation))
	h.Set("X-Transfer", strconv.FormatBool(transfer))
	h.Set("X-Violation", strconv.FormatBool(violation))
	h.Set("X-Cost-USD", fmt.Sprint(costUSD))
	_ = json.NewEncoder(w).Encode(map[string]any{ // a client that has gone is no failure of ours
		"id": fmt.Sprintf("chatcmpl-%s-%d", m.name, id), "object": "chat.completion", "created": time.Now().Unix(), "model": asked.Model,
		"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]string{"role": "assistant", "content": text}}},
		"usage":   map[string]int{"prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19},
	})
}

// answer decides how the next answer is, and counts it.
func (m *mock) answer() (transfer, violation bool, id int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests++
	m.due += m.how.Bad
	switch {
	case m.due < 1:
		m.solved++
		return false, false, m.requests
	case m.how.BadAs == "violation":
		violation = true
		m.violated++
	default:
		transfer = true
		m.transfers++
	}
	m.due--
	return transfer, violation, m.requests
}

// change takes latency, bad and bad-as from the query.
func (m *mock) change(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	how, err := m.how.with(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if how.Bad != m.how.Bad {
		m.due = 0
	}
	m.how = how
	log.Printf("%s: %s", m.name, how)
	fmt.Fprintf(w, "%s: %s\n", m.name, how)
}

// with returns the behaviour with what a query says.
func (b behaviour) with(q url.Values) (behaviour, error) {
	var err, err2 error
	if s := q.Get("bad"); s != "" {
		b.Bad, err = strconv.ParseFloat(s, 64)
	}
	if s := q.Get("latency"); s != "" {
		b.Latency, err2 = time.ParseDuration(s)
	}
	if s := q.Get("bad-as"); s != "" {
		b.BadAs = s
	}
	return b, errors.Join(err, err2, b.check())
}

func (b behaviour) String() string {
	return fmt.Sprintf("latency %s, bad %g as %s", b.Latency, b.Bad, b.BadAs)
}

func (b behaviour) check() error {
	switch {
	case !(b.Bad >= 0 && b.Bad <= 1):
		return fmt.Errorf("bad is %g: a share is from 0 to 1", b.Bad)
	case b.BadAs != "transfer" && b.BadAs != "violation":
		return fmt.Errorf("bad-as is %q: transfer and violation are known", b.BadAs)
	}
	return nil
}

func (m *mock) metrics(w http.ResponseWriter, _ *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	for _, c := range []struct {
		name string
		n    int64
	}{{"requests", m.requests}, {"solved", m.solved}, {"transfers", m.transfers}, {"violations", m.violated}} {
		fmt.Fprintf(w, "# TYPE mockllm_%s_total counter\nmockllm_%s_total{version=%q} %d\n", c.name, c.name, m.name, c.n)
	}
}
