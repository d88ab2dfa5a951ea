package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// mocks are the two versions. What stable answers follows from the number of the
// question, so that whoever asks knows what must come.
type mocks struct {
	stable, canary *httptest.Server
	latency        time.Duration
	mode           atomic.Value // of the canary
	next           atomic.Int64 // number of the next question
	wrote          sync.Map     // question -> when its events were written, *times
	gap            atomic.Int64 // between events
}

// times are moments, in their order.
type times struct {
	mu sync.Mutex
	at []time.Time
}

func (t *times) add(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at = append(t.at, at)
}

// events are in a stream, between the first and [DONE].
const events = 8

func newMocks(latency time.Duration) (*mocks, error) {
	m := &mocks{latency: latency}
	m.gap.Store(int64(10 * time.Millisecond))
	m.stable = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.answer(w, r, m.latency, true) }))
	m.canary = httptest.NewServer(http.HandlerFunc(m.canaryAnswer))
	return m, nil
}

func (m *mocks) close() {
	m.canary.CloseClientConnections()
	m.stable.Close()
	m.canary.Close()
}

func (m *mocks) canaryIs(mode string) { m.mode.Store(mode) }

func (m *mocks) canaryAnswer(w http.ResponseWriter, r *http.Request) {
	switch m.mode.Load() {
	case "hanging":
		io.Copy(io.Discard, r.Body) //nolint:errcheck // whoever asks may go away
		<-r.Context().Done()
	case "resetting":
		panic(http.ErrAbortHandler)
	case "slow":
		m.answer(w, r, 10*m.latency, false)
	default:
		m.answer(w, r, m.latency, false)
	}
}

// question is what is asked.
type question struct {
	Model    string    `json:"model"`
	Messages []message `json:"messages"`
	Stream   bool      `json:"stream"`
	N        int64     `json:"n_asked"`
	Packed   bool      `json:"packed"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func (m *mocks) answer(w http.ResponseWriter, r *http.Request, latency time.Duration, noted bool) {
	var q question
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, `{"error":{"message":"no JSON"}}`, http.StatusBadRequest)
		return
	}
	if q.Stream {
		m.stream(w, r, &q, noted)
		return
	}
	select {
	case <-time.After(latency):
	case <-r.Context().Done():
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if q.Packed {
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.Write(body(&q)) //nolint:errcheck // whoever asked may have gone
}

// body is the answer to a question, as it goes over the wire.
func body(q *question) []byte {
	text := fmt.Sprintf(`{"id":"c-%d","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":12,"completion_tokens":7,"total_tokens":19}}`,
		q.N, fmt.Sprintf(`{"order":"%d","lines":"%s"}`, q.N, strings.Repeat(fmt.Sprint(q.N, " "), 200)))
	if !q.Packed {
		return []byte(text)
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write([]byte(text)) //nolint:errcheck // into memory
	z.Close()             //nolint:errcheck // into memory
	return out.Bytes()
}

// event is one event of a stream.
func event(q *question, i int) string {
	switch i {
	case 0:
		return `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	case events + 1:
		return `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	}
	return fmt.Sprintf(`data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"%d of %d, "},"finish_reason":null}]}`+"\n\n", i, q.N)
}

func (m *mocks) stream(w http.ResponseWriter, r *http.Request, q *question, noted bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	to := http.NewResponseController(w)
	var t *times
	if noted {
		v, _ := m.wrote.LoadOrStore(q.N, &times{})
		t = v.(*times)
	}
	gap := time.Duration(m.gap.Load())
	for i := range events + 2 {
		select {
		case <-time.After(gap):
		case <-r.Context().Done():
			return
		}
		if t != nil {
			t.add(time.Now())
		}
		io.WriteString(w, event(q, i)) //nolint:errcheck // whoever asked may have gone
		to.Flush()                     //nolint:errcheck // as above
	}
}

// expected is the digest of the answer to a question.
func expected(q *question) [sha256.Size]byte {
	if !q.Stream {
		return sha256.Sum256(body(q))
	}
	h := sha256.New()
	for i := range events + 2 {
		h.Write([]byte(event(q, i))) //nolint:errcheck // it never fails
	}
	return sum(h)
}

func sum(h hash.Hash) (out [sha256.Size]byte) {
	copy(out[:], h.Sum(nil))
	return out
}
