package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// client asks at one address.
type client struct {
	url  string
	http *http.Client
}

func newClient(url string, conns int) *client {
	return &client{url, &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		MaxIdleConnsPerHost: conns, MaxConnsPerHost: conns, DisableCompression: true,
	}}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// ask asks the next question: of ten, seven are answered whole, one packed and
// two in a stream.
func (c *client) ask(ctx context.Context, m *mocks, due time.Time) (f figures) {
	n := m.next.Add(1)
	q := &question{Model: "m-1", Messages: []message{{"user", "Where is my order?"}}, N: n, Stream: n%10 < 2, Packed: n%10 == 2}
	defer m.wrote.Delete(n)
	if q.Stream {
		f.streams++
	}
	got, arrived, err := c.send(ctx, q, 0)
	switch {
	case err != nil:
		f.failed++
		return f
	case got != expected(q):
		f.wrong++
	}
	if !q.Stream {
		f.latencies = append(f.latencies, time.Since(due))
		return f
	}
	if v, ok := m.wrote.Load(n); ok {
		written := v.(*times)
		written.mu.Lock()
		defer written.mu.Unlock()
		for i := range min(len(written.at), len(arrived)) {
			f.delays = append(f.delays, arrived[i].Sub(written.at[i]))
		}
	}
	return f
}

// send asks and reads the answer, or so many bytes of it. arrived is when each
// event began to come.
func (c *client) send(ctx context.Context, q *question, most int) (digest [sha256.Size]byte, arrived []time.Time, err error) {
	text, err := json.Marshal(q)
	if err != nil {
		return digest, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/v1/chat/completions", bytes.NewReader(text))
	if err != nil {
		return digest, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(r)
	if err != nil {
		return digest, nil, err
	}
	defer resp.Body.Close()
	h := sha256.New()
	buf, read := make([]byte, 16<<10), 0
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			now := time.Now()
			for range bytes.Count(buf[:n], []byte("data: {")) {
				arrived = append(arrived, now)
			}
			h.Write(buf[:n]) //nolint:errcheck // it never fails
		}
		if read += n; most > 0 && read > most {
			return digest, arrived, nil // and the connection is closed
		}
		if err == io.EOF { //nolint:errorlint // a Reader's end is io.EOF itself
			return sum(h), arrived, nil
		}
		if err != nil {
			return digest, arrived, err
		}
	}
}
