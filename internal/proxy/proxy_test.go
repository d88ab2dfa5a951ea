package proxy

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/slot"
)

func TestAnAnswerIsPassedOnByteForByte(t *testing.T) {
	noise := make([]byte, 200_000)
	rand.Read(noise)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte(strings.Repeat(`{"a": "b"}`, 5000)))
	z.Close()
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   string
		header http.Header
		length int64
	}{
		{"a length that was given", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "200000")
			w.Header().Set("X-Odd", "a,b")
			w.Write(noise)
		}, string(noise), http.Header{"X-Odd": {"a,b"}}, 200_000},
		{"no length", func(w http.ResponseWriter, r *http.Request) {
			w.Write(noise[:100_000])
			w.(http.Flusher).Flush()
			w.Write(noise[100_000:])
		}, string(noise), nil, -1},
		{"packed", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "application/json")
			w.Write(packed.Bytes())
		}, packed.String(), http.Header{"Content-Encoding": {"gzip"}}, int64(packed.Len())},
		{"a stream", stream(chunks("Hel", "lo"), 0), strings.Join(chunks("Hel", "lo"), ""), http.Header{"Content-Type": {"text/event-stream"}}, -1},
		{"an odd status, no type", func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Type"], w.Header()["Date"] = nil, nil
			w.WriteHeader(299)
			io.WriteString(w, "<html>")
		}, "<html>", http.Header{"Content-Type": nil, "Date": nil}, 6},
		{"a refusal", refuse(422, "bad_things"), `{"error":{"message":"no","type":"t","code":"bad_things"}}`, nil, 57},
		{"several of one header", func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Set-Cookie"] = []string{"a=1", "b=2"}
		}, "", http.Header{"Set-Cookie": {"a=1", "b=2"}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.stable.answer(c.answer)
			resp, text := w.ask(question)
			if text != c.want {
				t.Errorf("%d bytes of %d, or others", len(text), len(c.want))
			}
			if resp.ContentLength != c.length {
				t.Errorf("length %d, want %d", resp.ContentLength, c.length)
			}
			for name, want := range c.header {
				if got := resp.Header[name]; fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if c.name == "an odd status, no type" && resp.StatusCode != 299 {
				t.Errorf("status %d", resp.StatusCode)
			}
		})
	}
}

func TestTrailersArePassedOn(t *testing.T) {
	w := newWorld(t, nil)
	w.stable.answer(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Checksum")
		io.WriteString(w, "body")
		w.(http.Flusher).Flush()
		w.Header().Set("X-Checksum", "abc")
		w.Header().Set(http.TrailerPrefix+"X-Late", "yes")
	})
	resp, _ := w.ask(question)
	if resp.Trailer.Get("X-Checksum") != "abc" || resp.Trailer.Get("X-Late") != "yes" {
		t.Errorf("%v", resp.Trailer)
	}
}

func TestARequestReachesStableAsItWas(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Sample = release.Ratio{} })
	odd := "{ \"model\":\"m-1\" ,\n\t\"messages\":[], \"x\":1.50, \"model\": \"twice\" }\n"
	resp, err := w.send(http.MethodPost, "/v1/chat/completions?a=b;c&d=%zz", strings.NewReader(odd),
		"Authorization", "Bearer user-key", "X-Forwarded-For", "1.2.3.4", "Accept-Encoding", "gzip, br", "User-Agent", "", "Connection", "X-Hop", "X-Hop", "1", "Idempotency-Key", "k")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	got := w.stable.requests()[0]
	if got.body != odd || got.ContentLength != int64(len(odd)) {
		t.Errorf("body %q, length %d", got.body, got.ContentLength)
	}
	if got.URL.Path != "/v1/chat/completions" || got.URL.RawQuery != "a=b;c&d=%zz" || got.Host != parse(t, w.stable.URL).Host {
		t.Errorf("%s %s", got.Host, got.URL)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer user-key", "X-Forwarded-For": "1.2.3.4", "Accept-Encoding": "gzip, br", "User-Agent": "", "X-Hop": "", "Idempotency-Key": "k",
	} {
		if got.Header.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, got.Header.Get(name), want)
		}
	}
	if len(w.canary.requests()) != 0 {
		t.Error("the canary got a copy that nobody wanted")
	}
}

func TestPathsAreMappedBehindTheBaseURL(t *testing.T) {
	for _, c := range []struct{ base, sent, want string }{
		{"/v1", "/v1/chat/completions", "/v1/chat/completions"},
		{"/v1/", "/chat/completions", "/v1/chat/completions"},
		{"/openai/deployments/d%2F1", "/v1/chat/completions", "/openai/deployments/d%2F1/chat/completions"},
		{"/openai/deployments/d%2F1", "/openai/deployments/d%2F1/chat/completions", "/openai/deployments/d%2F1/chat/completions"},
		{"", "/v1/chat/completions", "/v1/chat/completions"},
		{"", "/chat/completions", "/chat/completions"},
		{"/v1", "/v1/models/a%2Fb", "/v1/models/a%2Fb"},
		{"/v1", "/health", "/health"},
		{"/v1", "/v1beta/x", "/v1beta/x"},
		{"/v1", "/v1", "/v1"},
		{"/v1", "//v1/../x", "//v1/../x"},
	} {
		stable, err := url.Parse("http://h" + c.base)
		if err != nil {
			t.Fatal(err)
		}
		p := &Proxy{o: Options{Stable: Version{BaseURL: stable}}, paths: map[string]bool{chatPath: true}}
		in := &url.URL{}
		in.Path, in.RawPath = mustUnescape(c.sent), c.sent
		rest, known := p.behind(in)
		got := onHost(stable, in.EscapedPath(), "")
		if known {
			got = address(stable, rest, in.EscapedPath(), "")
		}
		if got.EscapedPath() != c.want {
			t.Errorf("%s + %s: %s, want %s", c.base, c.sent, got.EscapedPath(), c.want)
		}
	}
}

func mustUnescape(s string) string {
	plain, err := url.PathUnescape(s)
	if err != nil {
		panic(err)
	}
	return plain
}

func TestOtherPathsArePassedToStableAlone(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.Weight = func(_ ctx) (release.Weight, error) { return release.Weight{Slots: 100, Ring: 100}, nil }
	})
	w.eventually("weight 1", func() bool { return !w.p.weights.get().IsZero() })
	for _, c := range []struct{ method, path string }{{"GET", "/v1/models"}, {"HEAD", "/v1/models"}, {"POST", "/v1/embeddings"}, {"GET", "/v1/chat/completions"}, {"DELETE", "/x"}} {
		resp, err := w.send(c.method, c.path, nil)
		if err != nil {
			t.Fatalf("%s %s: %v", c.method, c.path, err)
		}
		resp.Body.Close()
	}
	if n := len(w.stable.requests()); n != 5 {
		t.Errorf("stable saw %d of 5", n)
	}
	w.close()
	if n := len(w.canary.requests()); n != 0 {
		t.Errorf("the canary saw %d", n)
	}
	if w.records.String() != "" || w.p.Status().Requests.PassedOn != 5 {
		t.Errorf("recorded: %s", w.records)
	}
}

func TestAWeightSendsUsersToTheCanary(t *testing.T) {
	half := release.Weight{Slots: 50, Ring: 100}
	router := slot.Router{Ring: 100, ExcludeUsers: slot.SetOf("C-88001"), ExcludeSegments: slot.SetOf("finance"), IncludeUsers: slot.SetOf("staff-1")}
	w := newWorld(t, func(o *Options) {
		o.Router = router
		o.Weight = func(_ ctx) (release.Weight, error) { return half, nil }
		o.Sample = release.Ratio{}
		o.Canary.Key = "canary-key"
	})
	w.eventually("a weight", func() bool { return !w.p.weights.get().IsZero() })
	users := []string{"C-88001", "staff-1"}
	for i := range 40 {
		users = append(users, fmt.Sprintf("user-%d", i))
	}
	want := map[string]release.Arm{}
	for i, u := range users {
		want[u] = router.Route(u, "", half).Arm
		body, headers := question, []string{"X-User-Id", u, "Idempotency-Key", "k", "Authorization", "Bearer user-key"}
		if i%2 == 0 { // named in the body
			body, headers = strings.Replace(question, "{", `{"user": "`+u+`", `, 1), headers[2:]
		}
		resp, _ := w.ask(body, headers...)
		if arm := resp.Header.Get(armHeader); (arm == "canary") != (want[u] == release.Canary) {
			t.Errorf("%s: %q, want %s", u, arm, want[u])
		}
	}
	w.ask(question, "X-User-Id", "staff-1", "X-Segment", "finance")
	for _, r := range w.canary.requests() {
		if !strings.Contains(r.body, `"model": "m-2", "messages": [{"role": "user", "content": "Where is my order?"}]}`) {
			t.Errorf("the canary was asked %s", r.body)
		}
		if r.Header.Get("Authorization") != "Bearer canary-key" || r.Header.Get("Idempotency-Key") != "" {
			t.Errorf("headers of the canary: %v", r.Header)
		}
	}
	n := map[release.Arm]int{}
	for _, r := range w.lines(w.records) {
		n[release.Arm(r["arm"].(string))]++
		if r["segment"] == nil && want[r["user_id"].(string)] != release.Arm(r["arm"].(string)) {
			t.Errorf("record %v", r)
		}
		if r["arm"] == "canary" && (r["model"] != "m-2" || r["status"] != "200" || r["input_tokens"] != 12.0 || r["output_tokens"] != 7.0) {
			t.Errorf("record %v", r)
		}
	}
	if n[release.Canary] != len(w.canary.requests()) || n[release.Canary] < 10 || n[release.Stable]+n[release.Canary] != len(users)+1 {
		t.Errorf("%v, the canary saw %d", n, len(w.canary.requests()))
	}
}
