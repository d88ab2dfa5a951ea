package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// TestEachPieceIsPassedOnBeforeTheNextIsThere has stable write a piece only
// when the user has read the one before: a proxy that holds anything back never
// comes to an end.
func TestEachPieceIsPassedOnBeforeTheNextIsThere(t *testing.T) {
	for _, kind := range []string{"text/event-stream", "application/json", ""} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, nil)
			read := make(chan bool)
			w.stable.answer(func(rw http.ResponseWriter, r *http.Request) {
				rw.Header()["Content-Type"] = []string{kind}
				to := http.NewResponseController(rw)
				to.Flush() // the head goes out by itself
				for i := range 20 {
					select {
					case <-read:
					case <-r.Context().Done():
						return
					}
					fmt.Fprintf(rw, "data: %d\n\n", i)
					to.Flush()
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, "POST", w.url+"/v1/chat/completions", strings.NewReader(question))
			if err != nil {
				t.Fatal(err)
			}
			w.asked.Add(1)
			resp, err := w.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			in := bufio.NewReader(resp.Body)
			for i := range 20 {
				select {
				case read <- true:
				case <-ctx.Done():
					t.Fatal("stable does not write any more")
				}
				if line, err := in.ReadString('\n'); err != nil || line != fmt.Sprintf("data: %d\n", i) {
					t.Fatalf("%q %v", line, err)
				}
				in.ReadString('\n')
			}
		})
	}
}

// TestARequestIsPassedOnWhileItComes does the same the other way round.
func TestARequestIsPassedOnWhileItComes(t *testing.T) {
	w := newWorld(t, nil)
	got := make(chan byte)
	w.stable.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		b := make([]byte, 1)
		for {
			if _, err := io.ReadFull(r.Body, b); err != nil {
				break
			}
			got <- b[0]
		}
		completion("{}")(rw, r)
	})
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		resp, err := w.send("POST", "/v1/chat/completions", out)
		if err == nil {
			resp.Body.Close()
		}
		done <- err
	}()
	for i := range len(question) {
		io.WriteString(in, question[i:i+1])
		select {
		case b := <-got:
			if b != question[i] {
				t.Fatalf("%q, want %q", b, question[i])
			}
		case <-time.After(10 * time.Second):
			t.Fatal("it is held back")
		}
	}
	in.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.eventually("it was copied all the same", func() bool { return w.p.Status().Pairs == 1 })
}

// numbered answers with what follows from the number in the question.
func numbered(latency time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		_, n, _ := strings.Cut(string(text), `"n":`)
		n, _, _ = strings.Cut(n, "}")
		select {
		case <-time.After(latency):
		case <-r.Context().Done():
			return
		}
		if len(n)%2 == 0 {
			stream(chunks(n, n, n), 0)(w, r)
			return
		}
		completion(strings.Repeat(n, 100))(w, r)
	}
}

func answerTo(n int) string {
	text := fmt.Sprint(n)
	if len(text)%2 == 0 {
		return strings.Join(chunks(text, text, text), "")
	}
	rec := &recorder{header: http.Header{}}
	completion(strings.Repeat(text, 100))(rec, nil)
	return rec.String()
}

type recorder struct {
	strings.Builder
	header http.Header
}

func (r *recorder) Header() http.Header { return r.header }
func (*recorder) WriteHeader(int)       {}

// TestUnderLoadNoByteIsChangedWhateverTheCanaryDoes is the short form of
// `make proxy-load`: strict on bytes, drops and errors, and on latency no
// stricter than a machine that does other things allows; `make proxy-load` is.
func TestUnderLoadNoByteIsChangedWhateverTheCanaryDoes(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	const latency = 10 * time.Millisecond
	for name, canary := range map[string]http.HandlerFunc{
		"healthy": numbered(latency), "hanging": func(_ http.ResponseWriter, r *http.Request) { waitFor(hang, r) }, "resetting": reset, "slow": numbered(10 * latency),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := newWorld(t, func(o *Options) {
				o.Policy.ParseGap, o.Policy.ToolMismatch, o.Policy.ThrottleTo = release.NewRatio(1, 1), release.NewRatio(1, 1), release.NewRatio(1, 1)
				for into, file := range map[*io.Writer]string{&o.Records: "r", &o.Pairs: "p", &o.Attempts: "a"} {
					f, err := os.Create(filepath.Join(dir, file))
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { f.Close() })
					*into = f
				}
			})
			w.stable.answer(numbered(latency))
			w.canary.answer(canary)
			direct, through := w.load(t, w.stable.URL, 60), w.load(t, w.url, 120)
			t.Logf("median %s directly, %s through the proxy", direct, through)
			if through > direct+time.Second { // a busy machine under the race detector; a user who waits for the canary waits 2.5 s
				t.Errorf("median %s, and directly %s", through, direct)
			}
			s := w.p.Status()
			if s.Requests.Stable != 120 || s.Copies.Sent+s.Copies.Dropped != 120 || s.Copies.InFlight > s.Copies.Places || s.Requests.Unrecorded != 0 {
				t.Errorf("%+v %+v", s.Requests, s.Copies)
			}
			if name == "hanging" && s.Copies.Dropped != 120-16 {
				t.Errorf("%d dropped of 120, with 16 places that hang", s.Copies.Dropped)
			}
		})
	}
}

// load asks n questions, 200 a second on 32 connections, and returns the median
// latency.
func (w *world) load(t *testing.T, url string, n int) time.Duration {
	t.Helper()
	questions := make(chan int)
	took := make(chan time.Duration, n)
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for i := range questions {
				began := time.Now()
				resp, err := w.client.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(fmt.Sprintf(`{"model":"m-1","messages":[],"n":%d}`, i)))
				if err != nil {
					t.Error(err)
					continue
				}
				text, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || string(text) != answerTo(i) {
					t.Errorf("question %d: %v, %q", i, err, text)
				}
				took <- time.Since(began)
			}
		})
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for i := range n {
		<-tick.C
		questions <- i
	}
	close(questions)
	wg.Wait()
	close(took)
	var all []time.Duration
	for d := range took {
		all = append(all, d)
	}
	slices.Sort(all)
	if url == w.url {
		w.eventually("all are recorded and copied", func() bool {
			s := w.p.Status()
			return s.Requests.Stable == int64(n) && s.Copies.Sent+s.Copies.Dropped == int64(n)
		})
	}
	return all[len(all)/2]
}

func TestStreamsLeaveNothingBehind(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Gates.Short = 0 })
	w.stable.answer(stream(chunks("a", "b"), 100*time.Microsecond))
	var n atomic.Int64
	streams := func(most int64) {
		n.Store(0)
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				for i := n.Add(1); i <= most; i = n.Add(1) {
					ctx, cancel := context.WithCancel(context.Background())
					r, err := http.NewRequestWithContext(ctx, "POST", w.url+"/v1/chat/completions", strings.NewReader(question))
					if err != nil {
						t.Error(err)
					}
					resp, err := w.client.Do(r)
					if err != nil {
						t.Error(err)
						cancel()
						continue
					}
					if i%10 == 0 { // its user leaves
						resp.Body.Read(make([]byte, 10))
					} else if text, err := io.ReadAll(resp.Body); err != nil || string(text) != strings.Join(chunks("a", "b"), "") {
						t.Errorf("%q %v", text, err)
					}
					cancel()
					resp.Body.Close()
				}
			})
		}
		wg.Wait()
	}
	streams(100)
	rest := func() int { // without connections that wait for another request
		w.client.CloseIdleConnections()
		for _, u := range []*upstream{w.p.stable, w.p.shadowed} {
			u.transport.(*http.Transport).CloseIdleConnections()
		}
		return runtime.NumGoroutine()
	}
	quiet := func() bool {
		s := w.p.Status()
		return s.Copies.InFlight == 0 && s.Gates[release.Stable]["short"].InFlight == 0
	}
	w.eventually("nothing is under way", quiet)
	before := rest()
	streams(1000)
	w.eventually("nothing is under way", quiet)
	w.eventually(fmt.Sprintf("no more than the %d goroutines of before", before), func() bool { return rest() <= before+10 })
	if s := w.p.Status(); s.Requests.Stable+s.Requests.Cancelled < 1090 || s.Requests.Panics+s.Copies.Panics != 0 {
		t.Errorf("%+v", s.Requests)
	}
}
