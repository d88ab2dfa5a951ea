package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/shadow"
)

func TestACopyIsStablesRequestForTheCanarysModel(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Stable.Key, o.Canary.Key = "stable-key", "canary-key" })
	body := strings.Replace(question, "]}", "], \"n\": 1.50}", 1)
	w.ask(body, "Authorization", "Bearer user-key", "Accept-Encoding", "gzip", "Openai-Beta", "orders", "Cookie", "c=1", "Idempotency-Key", "k", "X-Request-Id", "r-1")
	w.eventually("a pair", func() bool { return w.p.Status().Pairs == 1 })
	stable, canary := w.stable.requests()[0], w.canary.requests()[0]
	if stable.body != body || stable.Header.Get("Authorization") != "Bearer stable-key" || stable.Header.Get("Cookie") != "c=1" {
		t.Errorf("stable: %s %v", stable.body, stable.Header)
	}
	if canary.body != strings.Replace(body, `"m-1"`, `"m-2"`, 1) || canary.ContentLength != int64(len(body)) {
		t.Errorf("canary: %s", canary.body)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer canary-key", "Accept-Encoding": "", "Openai-Beta": "orders", "Cookie": "", "Idempotency-Key": "", copyHeader: "true",
	} {
		if got := canary.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	pairs := w.lines(w.pairs)
	if len(pairs) != 1 || pairs[0]["request_id"] != "r-1" || pairs[0]["request"] != nil {
		t.Fatalf("%v", pairs)
	}
	for side, model := range map[string]string{"stable": "m-1", "canary": "m-2"} {
		s := pairs[0][side].(map[string]any)
		if s["parsed"] != true || s["model"] != model || s["status"] != 200.0 || s["body"] != nil || len(s["fingerprint"].(string)) != 16 {
			t.Errorf("%s: %v", side, s)
		}
	}
}

func TestAUsersKeyDoesNotGoToAnotherHost(t *testing.T) {
	w := newWorld(t, nil)
	w.ask(question, "Authorization", "Bearer user-key", "Api-Key", "azure")
	w.eventually("a pair", func() bool { return w.p.Status().Pairs == 1 })
	if h := w.canary.requests()[0].Header; h.Get("Authorization") != "" || h.Get("Api-Key") != "" {
		t.Errorf("the canary got %v", h)
	}
	if h := w.stable.requests()[0].Header; h.Get("Authorization") != "Bearer user-key" || h.Get("Api-Key") != "azure" {
		t.Errorf("stable got %v", h)
	}
}

func TestBodiesAreInPairsOnlyWhereTheyAreWanted(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Bodies = true })
	w.stable.answer(stream(chunks("{", "}"), 0))
	w.ask(question)
	w.eventually("a pair", func() bool { return w.p.Status().Pairs == 1 })
	pair := w.lines(w.pairs)[0]
	if fmt.Sprint(pair["request"].(map[string]any)["model"]) != "m-1" {
		t.Errorf("%v", pair["request"])
	}
	if s := pair["stable"].(map[string]any); s["body"] != strings.Join(chunks("{", "}"), "") || s["parsed"] != true {
		t.Errorf("stable: %v", s)
	}
	if s := pair["canary"].(map[string]any); s["body"].(map[string]any)["id"] != "c-1" {
		t.Errorf("canary: %v", s)
	}
}

// TestNoFailureOfTheCanaryReachesTheUser has a canary fail in every way while
// copies are made of all requests.
func TestNoFailureOfTheCanaryReachesTheUser(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	for name, canary := range map[string]http.HandlerFunc{
		"resets":  reset,
		"refuses": refuse(503, "overloaded"),
		"hangs":   func(_ http.ResponseWriter, r *http.Request) { waitFor(hang, r) },
		"breaks off": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.Write([]byte("{"))
			panic(http.ErrAbortHandler)
		},
		"never ends": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte("data: {}\n\n")); err != nil {
					return
				}
			}
		},
		"answers nonsense": func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *Options) {
				o.Limits.Copy = 50 * time.Millisecond
				o.Limits.Copies = 4
				o.Policy.TimeoutMS = 50
				o.Policy.Least = o.Policy.Window // no roll back in between
			})
			w.canary.answer(canary)
			for range 30 {
				if resp, text := w.ask(question); resp.StatusCode != 200 || !strings.Contains(text, "c-1") || len(resp.Header[armHeader]) != 0 {
					t.Fatalf("%d %s %v", resp.StatusCode, text, resp.Header)
				}
			}
			w.eventually("the copies ended", func() bool {
				s := w.p.Status()
				return s.Copies.InFlight == 0 && s.Copies.Sent+s.Copies.Dropped == 30 && s.Pairs == s.Copies.Sent
			})
			s := w.p.Status()
			if s.Copies.Failed != s.Copies.Sent || s.Copies.Sent < 4 || s.Requests.Stable != 30 || s.Requests.Canary+s.Requests.Fallbacks != 0 {
				t.Errorf("%+v %+v", s.Copies, s.Requests)
			}
			if got := s.Standings[0]; got.CanaryFailed != got.Pairs || got.StableParsed != got.Pairs {
				t.Errorf("%+v", got)
			}
		})
	}
}

// panicking is a transport with a mistake in it.
type panicking struct{}

func (panicking) RoundTrip(*http.Request) (*http.Response, error) { panic("a mistake") }

func TestAMistakeInACopyEndsTheCopyAlone(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.transport = func(name string, header time.Duration) http.RoundTripper {
			if name == "copy" {
				return panicking{}
			}
			return newTransport(name, header)
		}
	})
	for i := range int64(20) { // more than there are places
		if resp, _ := w.ask(question); resp.StatusCode != 200 {
			t.Fatal(resp.StatusCode)
		}
		w.eventually("its mistake", func() bool { return w.p.Status().Copies.Panics == i+1 })
	}
	w.eventually("twenty mistakes", func() bool { c := w.p.Status().Copies; return c.Panics == 20 && c.InFlight == 0 })
	if !strings.Contains(w.said.String(), "internal error: a mistake") {
		t.Errorf("%s", w.said)
	}
}

func waitFor(c <-chan struct{}, r *http.Request) {
	select {
	case <-c:
	case <-r.Context().Done():
	}
}

func TestCopiesBeyondTheBoundAreDroppedAndCounted(t *testing.T) {
	release := make(chan struct{})
	w := newWorld(t, func(o *Options) { o.Limits.Copies = 3 })
	w.canary.answer(func(rw http.ResponseWriter, r *http.Request) { waitFor(release, r); completion("{}")(rw, r) })
	for range 10 {
		w.ask(question)
	}
	w.eventually("three are under way and seven were dropped", func() bool {
		c := w.p.Status().Copies
		return c.InFlight == 3 && c.Dropped == 7 && c.Sent == 3
	})
	close(release)
	w.eventually("three pairs", func() bool { return w.p.Status().Pairs == 3 })
}

func TestNothingIsCopiedThatCannotBeCompared(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		answer http.HandlerFunc
	}{
		"stable refused":          {question, refuse(429, "rate_limit_exceeded")},
		"the request is no JSON":  {`{"model": "m-1"`, completion("{}")},
		"the request is a list":   {`[1]`, completion("{}")},
		"two requests in one":     {question + question, completion("{}")},
		"the request is too long": {`{"model": "m-1", "x": "` + strings.Repeat("x", 10_000) + `"}`, completion("{}")},
		"the answer is too long":  {question, completion(strings.Repeat("x", 10_000))},
		"the answer cannot be unpack": {question, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			w.Write([]byte("x"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *Options) { o.Limits.Body, o.Limits.Answer, o.Retry.Attempts = 5000, 5000, 1 })
			w.stable.answer(c.answer)
			w.ask(c.body)
			if got := w.stable.requests(); len(got) != 1 || got[0].body != c.body {
				t.Fatalf("stable saw %d requests", len(got))
			}
			w.close()
			if n := len(w.canary.requests()); n != 0 {
				t.Errorf("the canary got %d", n)
			}
			if s := w.p.Status(); s.Pairs != 0 || (s.Copies.Unfit != 1) != (name == "stable refused") {
				t.Errorf("%+v", s.Copies)
			}
		})
	}
}

func TestTheShareOfCopiesIsByTheRequestsID(t *testing.T) {
	tenth := release.NewRatio(1, 10)
	n := 0
	for i := range 20_000 {
		h := http.Header{"X-Request-Id": {fmt.Sprintf("request-%d", i)}}
		x := (&Proxy{o: Options{Stable: Version{BaseURL: parse(t, "http://h/v1")}, Now: time.Now}, paths: map[string]bool{chatPath: true}}).newExchange(
			&http.Request{Method: "POST", URL: parse(t, "/v1/chat/completions"), Header: h})
		if within(x.number, tenth) {
			n++
			if !within(x.number, release.NewRatio(1, 5)) || !within(x.number, release.NewRatio(1, 1)) {
				t.Fatal("a larger share left it out")
			}
		}
	}
	if n < 1870 || n > 2130 { // 2000 +- 3 sigma
		t.Errorf("%d of 20000 at a tenth", n)
	}
	if within(0, release.Ratio{}) || within(0, release.NewRatio(0, 1)) || !within(1<<32-1, release.NewRatio(1, 1)) {
		t.Error("the ends of the range")
	}
}

// TestWhatThePairsSayIsDoneToTheCopies: the published limits, 20 pairs from
// which on they are judged, 5 % of the copies while throttled.
func TestWhatThePairsSayIsDoneToTheCopies(t *testing.T) {
	w := newWorld(t, nil)
	w.canary.answer(completion("no JSON"))
	for i := range 60 {
		w.ask(question)
		w.eventually("the copy ended", func() bool { s := w.p.Status(); return s.Pairs == min(int64(i+1), 20) && s.Copies.InFlight == 0 })
	}
	w.close()
	if n := len(w.canary.requests()); n != 20 {
		t.Errorf("the canary got %d copies, and is rolled back after 20", n)
	}
	s := w.p.Status().Standings
	if len(s) != 1 || s[0].Action != shadow.RollBack || !strings.Contains(w.said.String(), "roll_back: stable parses 20 of 20, the canary 0: a gap above 3 %; no more are sent") {
		t.Errorf("%+v\n%s", s, w.said)
	}
}

func TestAThrottledCanaryGetsFewerCopies(t *testing.T) {
	j := newJudge(&Options{Sample: release.NewRatio(1, 2), Policy: shadow.DefaultPolicy(), Say: func(string, ...any) {}})
	slow := shadow.Pair{Stable: shadow.Answer{Parsed: true}, Canary: shadow.Answer{Parsed: true, LatencyMS: 2001, Timed: true}}
	slow.Align(shadow.Version{Model: "a"}, shadow.Version{Model: "b"}, shadow.Model)
	of := versions{slow.StableFingerprint, slow.CanaryFingerprint}
	half, little := uint32(1<<31-1), uint32(1<<32/20)
	for range 19 {
		j.add(slow)
	}
	if !j.allows(half, of) {
		t.Error("19 pairs are judged")
	}
	j.add(slow)
	if j.allows(half, of) || j.allows(little+1, of) || !j.allows(little-1, of) {
		t.Errorf("throttled: %v %v %v", j.allows(half, of), j.allows(little+1, of), j.allows(little-1, of))
	}
	if !j.allows(half, versions{"other", "another"}) {
		t.Error("another version is held to it")
	}
	fast := slow
	fast.Canary.LatencyMS = 20
	for range 50 {
		j.add(fast)
	}
	if !j.allows(half, of) || j.allows(1<<31, of) {
		t.Error("ready: the share that was asked for")
	}
}

// TestPairsAreInTheFormOfDecide holds the names of the keys against what the
// reader of shadow decide takes for the envelope of an answer.
func TestPairsAreInTheFormOfDecide(t *testing.T) {
	src, err := os.ReadFile("../cli/shadow_pairs.go")
	if err != nil {
		t.Fatal(err)
	}
	_, keys, _ := strings.Cut(string(src), "var envelopeKeys = []string{")
	keys, _, _ = strings.Cut(keys, "}")
	full := sideOf(shadow.Version{Model: "m", PromptVersion: "p", ToolsVersion: "t", Temperature: "1"}, 500, "x", []byte("{}"))
	full.of(&shadow.Answer{Parsed: true, Tools: []string{"t"}, Failed: true}, "f")
	text, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	for key := range m {
		if !strings.Contains(keys, fmt.Sprintf("%q", key)) {
			t.Errorf("decide knows no %q", key)
		}
	}
}
