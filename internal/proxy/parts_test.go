package proxy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/throttle"
)

func TestABodyIsReadAgainFromItsStart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "text")
		limit := rapid.Int64Range(1, 300).Draw(t, "limit")
		length := rapid.SampledFrom([]int64{-1, int64(len(text))}).Draw(t, "length")
		b := newBody(iotest.OneByteReader(bytes.NewReader(text)), length, limit)
		for range rapid.IntRange(0, 3).Draw(t, "attempts") {
			r := b.open()
			if r == nil {
				break
			}
			part := make([]byte, rapid.IntRange(0, 250).Draw(t, "read"))
			n, err := io.ReadFull(r, part)
			if !bytes.Equal(part[:n], text[:n]) {
				t.Fatalf("read %q of %q", part[:n], text)
			}
			if n < len(part) && n < len(text) {
				t.Fatalf("%d of %d, %v", n, len(text), err)
			}
		}
		last := b.open()
		if last == nil {
			if int64(len(text)) <= limit {
				t.Fatal("a body within its bound cannot be read again")
			}
			return
		}
		if got, err := io.ReadAll(last); err != nil || !bytes.Equal(got, text) {
			t.Fatalf("%q of %q: %v", got, text, err)
		}
		kept, ok := b.all()
		if ok != (int64(len(text)) <= limit) || ok && !bytes.Equal(kept, text) {
			t.Fatalf("kept %q of %q with %d at most: %v", kept, text, limit, ok)
		}
	})
}

func TestTheWholeOfABodyIsKnownOrSaidNotToBe(t *testing.T) {
	broken := errors.New("broken off")
	for _, c := range []struct {
		name string
		from io.Reader
		ok   bool
	}{
		{"within the bound", strings.NewReader("0123456789"), true},
		{"one byte over it", strings.NewReader("0123456789x"), false},
		{"broken off", io.MultiReader(strings.NewReader("0123"), iotest.ErrReader(broken)), false},
	} {
		b := newBody(iotest.HalfReader(c.from), -1, 10)
		if _, ok := b.whole(); ok != c.ok {
			t.Errorf("%s: %v", c.name, ok)
		}
		if got, err := io.ReadAll(b.open()); !strings.HasPrefix("0123456789x", string(got)) || (err != nil) != (c.name == "broken off") || b.brokeOff() != (err != nil) {
			t.Errorf("%s: then %q, %v", c.name, got, err)
		}
	}
}

func TestAnOlderReaderOfABodyReadsNoMore(t *testing.T) {
	b := newBody(strings.NewReader("text"), 4, 10)
	first, second := b.open(), b.open()
	if n, err := first.Read(make([]byte, 4)); n != 0 || !errors.Is(err, errOver) {
		t.Errorf("%d, %v", n, err)
	}
	second.Close()
	if _, err := second.Read(make([]byte, 4)); !errors.Is(err, errOver) {
		t.Error(err)
	}
	b.close()
	if _, err := b.open().Read(make([]byte, 4)); !errors.Is(err, errOver) {
		t.Error(err)
	}
}

func TestOnlyTheModelOfARequestIsReplaced(t *testing.T) {
	for _, c := range []struct{ text, model, want string }{
		{`{"model":"a","x":1}`, "b", `{"model":"b","x":1}`},
		{"{ \"x\" : {\"model\": \"a\"},\n\t\"model\"\t:  \"a\" } ", "b\"", "{ \"x\" : {\"model\": \"a\"},\n\t\"model\"\t:  \"b\\\"\" } "},
		{`{"model":"a","model":"\u0061"}`, "b", `{"model":"b","model":"b"}`},
		{`{"model":"a"}`, "a", `{"model":"a"}`},
		{`{"model":"a"}`, "", `{"model":"a"}`},
		{`{"x":"model"}`, "b", `{"x":"model"}`},
		{`{"model":null}`, "b", `{"model":"b"}`},
		{`{"Model":"a"}`, "b", `{"Model":"a"}`},
		{`{"x":1e999,"y":"\ud800","model":7}`, "b", `{"x":1e999,"y":"\ud800","model":"b"}`},
	} {
		s, err := readShape([]byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := string(s.withModel([]byte(c.text), c.model)); got != c.want {
			t.Errorf("%s for %q: %s, want %s", c.text, c.model, got, c.want)
		}
	}
}

func TestAShapeIsWhatTheRequestSays(t *testing.T) {
	s, err := readShape([]byte(`{"model":"m","user":"u","stream":true,"temperature":0.70,"tools":[ {"a": 1} ],"n":2}`))
	if err != nil || s.model != "m" || s.user != "u" || !s.stream || s.temperature != "0.70" || len(s.tools) != 16 {
		t.Errorf("%+v %v", s, err)
	}
	laid, err := readShape([]byte(`{"tools":[{"a":1}],"user":7,"stream":"yes","temperature":null}`))
	if err != nil || laid.tools != s.tools || laid.user != "" || laid.stream || laid.temperature != "" {
		t.Errorf("%+v %v", laid, err)
	}
	for _, bad := range []string{"", "null", "[]", `"x"`, `{"model":"m"`, `{"model":"m"}{}`, `{"model":"m"} x`, `{"model" "m"}`, `{"a":1,}`, "{\"a\":\"\x01\"}"} {
		if _, err := readShape([]byte(bad)); err == nil {
			t.Errorf("%q is a request", bad)
		}
	}
}

// FuzzShape: what is read as a request is valid JSON, and with another model it
// still is, is that model's, and has all other members as they were.
func FuzzShape(f *testing.F) {
	for _, seed := range []string{question, `{"model":"a","model":"b"}`, `{"x":{"model":"y"},"model":"z","user":"u"}`, `{`, `[]`, `{}}`, `{"model":"\u0000"}`, "\xef\xbb\xbf{}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := readShape(text)
		if err != nil {
			return
		}
		if !json.Valid(text) {
			t.Fatalf("%q is no JSON", text)
		}
		changed := s.withModel(text, "another")
		var before, after map[string]json.RawMessage
		if json.Unmarshal(text, &before) != nil || json.Unmarshal(changed, &after) != nil || len(before) != len(after) {
			t.Fatalf("%q became %q", text, changed)
		}
		for name, v := range before {
			want := string(v)
			if name == "model" && len(s.models) > 0 {
				want = `"another"`
			}
			if string(after[name]) != want {
				t.Fatalf("%s: %s, want %s", name, after[name], want)
			}
		}
	})
}

// TestALineIsNeverWaitedFor has a writer that hangs.
func TestALineIsNeverWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, in := io.Pipe()
		said := &sink{}
		l := newLines(in, "records", &Options{Say: said.say, Warn: said.say})
		l.put("first")
		time.Sleep(time.Second) // it is being written
		for i := range queued + 100 {
			l.put(i) // in a bubble: had it blocked, the test would end as a deadlock
		}
		if s := l.state(); s.Dropped != 100 || s.Written != 0 || !strings.Contains(said.String(), "records come faster") {
			t.Errorf("%+v %s", s, said)
		}
		go io.Copy(io.Discard, out)
		l.close()
		in.Close()
		if s := l.state(); s.Written != queued+1 || s.Failed != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// halfWriter takes half of what is written and then fails, once.
type halfWriter struct {
	bytes.Buffer
	failed bool
}

func (h *halfWriter) Write(p []byte) (int, error) {
	if h.failed {
		return h.Buffer.Write(p)
	}
	h.failed = true
	n, _ := h.Buffer.Write(p[:len(p)/2])
	return n, errors.New("no space left on device")
}

func TestALineThatWasCutOffSpoilsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &halfWriter{}
		l := newLines(out, "records", &Options{Say: (&sink{}).say, Warn: (&sink{}).say})
		l.put("first")
		time.Sleep(time.Second)
		l.put("second")
		l.close()
		if got := out.String(); got != "\"fir\n\"second\"\n" {
			t.Errorf("%q", got)
		}
	})
}

// TestPlacesGoInTurn: places are given to those that wait, in the order in which
// they came, and none is lost when one that waits gives up.
func TestPlacesGoInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Gates: throttle.GatesPolicy{Short: 1, Long: 1, SplitTokens: 100, Breaker: throttle.DefaultBreaker()}, Now: time.Now}
		o.Limits.Place = time.Second
		g := newGuard(&o)
		held := g.enter(t.Context(), 0)
		if long := g.enter(t.Context(), 200); long.refusal != throttle.Admitted {
			t.Error("the other lane is full as well")
		}
		order := make(chan string, 10)
		wait := func(ctx context.Context, name string) {
			go func() {
				a := g.enter(ctx, 0)
				order <- fmt.Sprint(name, " ", a.refusal, " ", a.err)
				if a.refusal == throttle.Admitted {
					time.Sleep(10 * time.Millisecond)
					a.leave(throttle.Outcome{Status: 200})
				}
			}()
			synctest.Wait()
		}
		gone, leave := context.WithCancel(t.Context())
		wait(t.Context(), "first")
		wait(gone, "gone")
		wait(t.Context(), "second")
		leave()
		synctest.Wait()
		held.leave(throttle.Outcome{Status: 200})
		held.leave(throttle.Outcome{Status: 200}) // a second time is none
		time.Sleep(100 * time.Millisecond)
		hung := g.enter(t.Context(), 0)
		wait(t.Context(), "late")
		time.Sleep(2 * time.Second)
		hung.leave(throttle.Outcome{Status: 200})
		synctest.Wait()
		var got []string
		for len(order) > 0 {
			got = append(got, <-order)
		}
		if want := "gone full context canceled, first admitted <nil>, second admitted <nil>, late full <nil>"; strings.Join(got, ", ") != want {
			t.Errorf("%s\nwant %s", strings.Join(got, ", "), want)
		}
		if s := g.states()["short"]; s.InFlight != 0 || g.refused[throttle.Full] != 1 || len(g.line[throttle.Short]) != 0 {
			t.Errorf("%+v %v", s, g.refused)
		}
	})
}

func TestAUserWhoDoesNotSendIsNotWaitedFor(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Limits.Stall = 50 * time.Millisecond; o.Retry.Attempts = 4 })
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w.asked.Add(1)
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != 408 || !strings.Contains(string(text), codeStalled) {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if r := w.lines(w.records)[0]; r["status"] != "499" {
		t.Errorf("%v", r)
	}
	if g := w.p.Status().Gates[release.Stable]["short"]; g.InFlight != 0 {
		t.Errorf("%+v", g)
	}
}

func TestAUserWhoLeavesAtTheAnswersOwnEndHasHadAllOfIt(t *testing.T) {
	w := newWorld(t, nil)
	hold := make(chan struct{})
	defer close(hold)
	w.stable.answer(func(rw http.ResponseWriter, r *http.Request) {
		stream(chunks("{}"), 0)(rw, r)
		waitFor(hold, r) // the connection stays open behind [DONE]
	})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", w.url+"/v1/chat/completions", strings.NewReader(question))
	if err != nil {
		t.Fatal(err)
	}
	w.asked.Add(1)
	resp, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	for in := bufio.NewReader(resp.Body); ; {
		if line, err := in.ReadString('\n'); err != nil || strings.Contains(line, "[DONE]") {
			break
		}
	}
	cancel()
	resp.Body.Close()
	w.eventually("a pair", func() bool { return w.p.Status().Pairs == 1 })
	if r := w.lines(w.records)[0]; r["status"] != "200" || r["stream_aborted"] != false {
		t.Errorf("%v", r)
	}
}

func TestAConnectionThatChangesItsProtocolIsPassedOn(t *testing.T) {
	w := newWorld(t, nil)
	w.stable.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		conn, buf, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		io.Copy(conn, buf)
	})
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "GET /v1/realtime HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	in := bufio.NewReader(conn)
	if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != 101 {
		t.Fatalf("%v %v", resp, err)
	}
	io.WriteString(conn, "hello\n")
	if line, err := in.ReadString('\n'); err != nil || line != "hello\n" {
		t.Errorf("%q %v", line, err)
	}
}

func TestTheStatusSaysHowItStands(t *testing.T) {
	w := newWorld(t, nil)
	w.ask(question)
	w.eventually("a pair", func() bool { return w.p.Status().Pairs == 1 })
	get := func(path string) (int, string) {
		resp, err := w.send("GET", path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	if status, text := get("/-/healthy"); status != 200 || text != "ok\n" {
		t.Errorf("%d %q", status, text)
	}
	status, text := get("/-/status")
	var s struct {
		Schema    int
		Requests  struct{ Stable int64 }
		Copies    struct{ Sent int64 }
		Standings []struct{ Action string }
		Weight    any
		Records   any `json:"records_file"`
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil || status != 200 || s.Schema != 1 || s.Requests.Stable != 1 || s.Copies.Sent != 1 || len(s.Standings) != 1 || s.Standings[0].Action != "observe" || s.Weight != nil || s.Records == nil {
		t.Errorf("%d %v %s", status, err, text)
	}
	if _, text := get("/-/metrics"); !strings.Contains(text, "canaryctl_proxy_requests_total{result=\"stable\"} 1\n") || !strings.Contains(text, "canaryctl_proxy_copies_total{result=\"sent\"} 1\n") || !strings.Contains(text, "canaryctl_proxy_goroutines ") {
		t.Errorf("%s", text)
	}
	if status, _ := get("/-/nothing"); status != 404 || len(w.stable.requests()) != 1 {
		t.Errorf("%d, stable saw %d", status, len(w.stable.requests()))
	}
	aside := newWorld(t, func(o *Options) { o.AdminPaths = false })
	if resp, err := aside.send("GET", "/-/status", nil); err != nil || len(aside.stable.requests()) != 1 {
		t.Errorf("with an address of its own for that the path is the API's: %v %v", resp, err)
	} else {
		resp.Body.Close()
	}
}

// TestTheTimesOfAStream: to the first token that says something, and from there
// to the last, by tokens where the answer counts them.
func TestTheTimesOfAStream(t *testing.T) {
	start := time.Date(2026, 5, 4, 8, 0, 0, 0, time.UTC)
	usage := func(n int) string {
		return fmt.Sprintf(`data: {"object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":%d,"total_tokens":9}}`+"\n\n", n)
	}
	for _, c := range []struct {
		name      string
		events    []string // 100 ms apart
		ttft, itl float64  // -1: missing
	}{
		{"role, a, b, finish, [DONE]: two gaps", chunks("a", "b"), 200, 100},
		{"a last event that counts five tokens: four gaps in 300 ms", append(chunks("a", "b")[:4], usage(5), "data: [DONE]\n\n"), 200, 75},
		{"tokens that were thought and not sent are no gaps", append(chunks("a", "b")[:4], usage(500), "data: [DONE]\n\n"), 200, 100},
		{"one token and no more", chunks("a")[:2], 200, -1},
		{"nothing but the role", chunks()[:1], -1, -1},
	} {
		now := start
		x := &exchange{start: start, p: &Proxy{}}
		x.answer = newAnswer(&http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}}, false, 100)
		for _, e := range c.events {
			now = now.Add(100 * time.Millisecond)
			x.answer.take([]byte(e[:3]), now)
			x.answer.take([]byte(e[3:]), now)
		}
		var r record
		r.stream(x, x.answer)
		value := func(v *float64) float64 {
			if v == nil {
				return -1
			}
			return *v
		}
		if value(r.TTFTMS) != c.ttft || value(r.ITLMS) != c.itl {
			t.Errorf("%s: ttft %v, itl %v", c.name, value(r.TTFTMS), value(r.ITLMS))
		}
	}
}

func TestALoginInTheAddressIsSentAndNotShown(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		u := *o.Stable.BaseURL
		u.User = parse(t, "http://me:hidden-password@h").User
		o.Stable.BaseURL = &u
	})
	w.ask(question)
	if user, password, ok := w.stable.requests()[0].BasicAuth(); !ok || user != "me" || password != "hidden-password" {
		t.Errorf("%v", w.stable.requests()[0].Header)
	}
	w.stable.Close()
	_, text := w.ask(question)
	w.close()
	if all := text + w.records.String() + w.attempts.String() + w.said.String(); strings.Contains(all, "hidden-password") {
		t.Errorf("%s", all)
	}
}

func TestOptionsThatNameNobodyAreRefused(t *testing.T) {
	good := Version{BaseURL: parse(t, "http://h/v1")}
	for _, bad := range []string{"", "h/v1", "ftp://h"} {
		if _, err := New(Options{Stable: good, Canary: Version{BaseURL: parse(t, bad)}}); err == nil || !strings.Contains(err.Error(), "versions.canary.base_url") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := New(Options{Stable: good}); err == nil {
		t.Error("no canary")
	}
}
