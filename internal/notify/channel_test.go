package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/config"
)

var update = flag.Bool("update", false, "rewrite golden files")

// at is the time of every message and of every clock in these tests.
var at = time.Date(2026, 3, 1, 2, 21, 0, 0, time.UTC)

// rollback is a message with all that a dialect could stumble over.
func rollback() Message {
	return Message{
		Schema: 1, Key: "3f2a9c81d0e4/2/3/rolled_back/1", Event: RolledBack, Time: at,
		Service: "order-service", Release: "3f2a9c81d0e4", Attempt: 2, Step: 3, Steps: 5, Pct: 0, Phase: "OPEN",
		Reason: "48 of 240 handed to a *human*, <!channel> <@all> [x](http://evil.example) & `solve_rate` 转人工率 _过高_",
		Next:   `canaryctl resume --clear-lock --reason "cache purged <& checked>"`,
		RunURL: "https://ci.example/run_42?x=1&y=2",
		Rollback: json.RawMessage(`{"signal":"transfers","value":0.2,"limit":0.06,"samples":240,` +
			`"exposure":{"requests":2600,"users":840}}`),
	}
}

// taken is what a receiver got.
type taken struct {
	method, path, query string
	header              http.Header
	body                []byte
}

// receiver answers every request with one status and body, and keeps the
// requests.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	got []taken
}

func receive(t *testing.T, status int, body string, header ...string) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		b, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.got = append(r.got, taken{req.Method, req.URL.Path, req.URL.RawQuery, req.Header, b})
		r.mu.Unlock()
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(r.Close)
	return r
}

// only returns the one request that came.
func (r *receiver) only(t *testing.T) taken {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.got) != 1 {
		t.Fatalf("%d requests came, want 1", len(r.got))
	}
	return r.got[0]
}

// environ is an environment of the test.
func environ(vars map[string]string) Options {
	return Options{Getenv: func(k string) string { return vars[k] }, Now: func() time.Time { return at }}
}

func mustNew(t *testing.T, c config.Channel, o Options) Channel {
	t.Helper()
	ch, err := New(c, 0, o)
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, got, "", "  "); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	pretty.WriteByte('\n')
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, pretty.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), pretty.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// success is what each kind answers when it took a message.
var success = map[string]string{
	"webhook": "", "slack": "ok", "feishu": `{"StatusCode":0,"StatusMessage":"success","code":0,"data":{},"msg":"success"}`,
	"dingtalk": `{"errcode":0,"errmsg":"ok"}`, "wecom": `{"errcode":0,"errmsg":"ok"}`, "alertmanager": "",
}

func TestEveryChannelSendsItsOwnBody(t *testing.T) {
	for kind, answer := range success {
		t.Run(kind, func(t *testing.T) {
			r := receive(t, 200, answer)
			c := config.Channel{Kind: kind, URL: r.URL + "/in", Labels: map[string]string{"team": "llm"}}
			if kind == "feishu" || kind == "dingtalk" {
				c.SecretEnv, c.Keyword = "SECRET", "发布"
			}
			if err := mustNew(t, c, environ(map[string]string{"SECRET": "this is secret"})).Send(t.Context(), rollback()); err != nil {
				t.Fatal(err)
			}
			got := r.only(t)
			if got.method != "POST" || got.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s with %s", got.method, got.header.Get("Content-Type"))
			}
			golden(t, kind+".json", got.body)
		})
	}
}

func TestAnswers(t *testing.T) {
	type want struct {
		ok, retry bool
		after     time.Duration
		says      string
	}
	lost := func(says string) want { return want{says: says} }
	again := func(says string) want { return want{says: says, retry: true} }
	cases := []struct {
		kind   string
		name   string
		status int
		body   string
		header []string
		want   want
	}{
		{"webhook", "204 is success", 204, "", nil, want{ok: true}},
		{"webhook", "201 with any body is success", 201, "whatever", nil, want{ok: true}},
		{"webhook", "400 is for good, with what it says", 400, "bad\nfield", nil, lost("answered 400 Bad Request: bad field")},
		{"webhook", "404 is for good", 404, "", nil, lost("answered 404 Not Found")},
		{"webhook", "429 waits as asked", 429, "", []string{"Retry-After", "7"}, want{retry: true, after: 7 * time.Second, says: "429"}},
		{"webhook", "503 waits until a date", 503, "", []string{"Retry-After", "Sun, 01 Mar 2026 02:21:30 GMT"}, want{retry: true, after: 30 * time.Second, says: "503"}},
		{"webhook", "a date in the past is no wait", 503, "", []string{"Retry-After", "Sun, 01 Mar 2026 02:20:30 GMT"}, again("503")},
		{"webhook", "nonsense in Retry-After is no wait", 500, "", []string{"Retry-After", "soon"}, again("500")},

		{"slack", "ok", 200, "ok", nil, want{ok: true}},
		{"slack", "200 with another body is a failure", 200, "<html>login</html>", nil, lost("answered <html>login</html> instead of ok")},
		{"slack", "200 with nothing is a failure", 200, "", nil, lost("answered nothing instead of ok")},
		{"slack", "no_service is for good", 404, "no_service", nil, lost("no_service")},
		{"slack", "invalid_payload is for good", 400, "invalid_payload", nil, lost("invalid_payload")},
		{"slack", "429", 429, "", []string{"Retry-After", "30"}, want{retry: true, after: 30 * time.Second, says: "429"}},

		{"feishu", "code 0", 200, `{"code":0,"msg":"success"}`, nil, want{ok: true}},
		{"feishu", "wrong signature comes with 200", 200, `{"code":19021,"msg":"sign match fail or timestamp is not within one hour from current time"}`, nil, lost("code 19021: sign match fail")},
		{"feishu", "keyword missing comes with 200", 200, `{"code":19024,"msg":"Key Words Not Found"}`, nil, lost("code 19024: Key Words Not Found")},
		{"feishu", "too many messages may mend", 200, `{"code":11232,"msg":"frequency limited"}`, nil, again("code 11232")},
		{"feishu", "400 with code", 400, `{"code":9499,"msg":"Bad Request"}`, nil, lost("code 9499: Bad Request")},
		{"feishu", "400 for too many may mend", 400, `{"code":9499,"msg":"too many request"}`, nil, again("code 9499")},
		{"feishu", "200 without a code is a failure", 200, `{}`, nil, lost("without code in the body ({})")},
		{"feishu", "code 0 with a status of failure is a failure", 500, `{"code":0}`, nil, again("500")},
		{"feishu", "502 of a proxy may mend", 502, "<html>", nil, again("502")},

		{"dingtalk", "errcode 0", 200, `{"errcode":0,"errmsg":"ok"}`, nil, want{ok: true}},
		{"dingtalk", "security check comes with 200", 200, `{"errcode":310000,"errmsg":"sign not match"}`, nil, lost("errcode 310000: sign not match")},
		{"dingtalk", "too fast may mend", 200, `{"errcode":130101,"errmsg":"send too fast, exceed 20 times per minute"}`, nil, again("errcode 130101")},
		{"dingtalk", "no errcode is a failure", 200, `ok`, nil, lost("without errcode in the body (ok)")},
		{"dingtalk", "500", 500, ``, nil, again("500")},

		{"wecom", "errcode 0", 200, `{"errcode":0,"errmsg":"ok"}`, nil, want{ok: true}},
		{"wecom", "invalid key comes with 200", 200, `{"errcode":93000,"errmsg":"invalid webhook url"}`, nil, lost("errcode 93000: invalid webhook url")},
		{"wecom", "too many messages may mend", 200, `{"errcode":45009,"errmsg":"api freq out of limit"}`, nil, again("errcode 45009")},
		{"wecom", "null errcode is a failure", 200, `{"errcode":null}`, nil, lost("without errcode")},

		{"alertmanager", "200 with nothing", 200, "", nil, want{ok: true}},
		{"alertmanager", "error as an object", 400, `{"code":400,"message":"parsing alerts body failed"}`, nil, lost("answered 400 Bad Request: parsing alerts body failed")},
		{"alertmanager", "error as a bare string", 400, `"at least one label pair required"`, nil, lost("answered 400 Bad Request: at least one label pair required")},
		{"alertmanager", "error as neither", 502, `bad gateway`, nil, again("answered 502 Bad Gateway: bad gateway")},
	}
	for _, c := range cases {
		t.Run(c.kind+"/"+c.name, func(t *testing.T) {
			r := receive(t, c.status, c.body, c.header...)
			err := mustNew(t, config.Channel{Kind: c.kind, URL: r.URL}, environ(nil)).Send(t.Context(), rollback())
			if c.want.ok {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			failed, ok := errors.AsType[*DeliveryError](err)
			if !ok {
				t.Fatalf("got %v, want a DeliveryError", err)
			}
			if failed.Retry != c.want.retry || failed.After != c.want.after || !strings.Contains(failed.Error(), c.want.says) {
				t.Errorf("got %q retry %v after %v, want %+v", failed, failed.Retry, failed.After, c.want)
			}
			if !strings.HasPrefix(failed.Error(), c.kind+" (notify[0]): ") {
				t.Errorf("%q does not name the channel", failed)
			}
		})
	}
}

func TestWebhookCanBeVerifiedAndRecognised(t *testing.T) {
	r := receive(t, 200, "")
	c := config.Channel{Kind: "webhook", URL: r.URL, SecretEnv: "SECRET", TokenEnv: "TOKEN", Headers: map[string]string{"X-Tenant": "t-${TENANT}"}}
	ch := mustNew(t, c, environ(map[string]string{"SECRET": "this is secret", "TOKEN": "tok-123\n", "TENANT": "9"}))
	if err := ch.Send(t.Context(), rollback()); err != nil {
		t.Fatal(err)
	}
	got := r.only(t)
	want := map[string]string{
		"Idempotency-Key": "3f2a9c81d0e4/2/3/rolled_back/1", "X-Canaryctl-Event": "rolled_back", "X-Canaryctl-Timestamp": "1772331660",
		"X-Canaryctl-Signature": "sha256=" + webhookSign("this is secret", "1772331660", got.body),
		"Authorization":         "Bearer tok-123", "X-Tenant": "t-9", "User-Agent": "canaryctl",
	}
	for k, v := range want {
		if got.header.Get(k) != v {
			t.Errorf("%s: got %q, want %q", k, got.header.Get(k), v)
		}
	}
	var back Message
	if err := json.Unmarshal(got.body, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rollback(), back); diff != "" {
		t.Errorf("the message is not itself any more:\n%s", diff)
	}
}

func TestSignaturesAreThoseOfThePublishedRules(t *testing.T) {
	// RFC 4231, test case 7: its message happens to hold the full stop that
	// stands between timestamp and body.
	key := strings.Repeat("\xaa", 131)
	before := "This is a test using a larger than block-size key and a larger than block-size data"
	after := " The key needs to be hashed before being used by the HMAC algorithm."
	if got, want := webhookSign(key, before, []byte(after)), "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"; got != want {
		t.Errorf("webhook: got %s, want %s", got, want)
	}
	// printf '1599360473.{"a":1}' | openssl dgst -sha256 -mac HMAC -macopt key:"this is secret"
	if got, want := webhookSign("this is secret", "1599360473", []byte(`{"a":1}`)), "90d5e38ebfc52949619d95ece8c817f03e52ca6fdffa95edfb3a98748cd20216"; got != want {
		t.Errorf("webhook: got %s, want %s", got, want)
	}
	// printf '' | openssl dgst -sha256 -mac HMAC -macopt key:"$(printf '1599360473\nthis is secret')" -binary | base64
	if got, want := feishuSign("this is secret", "1599360473"), "/eYKrXQBzTjUZJ3s6NX16VxGbTwmK7AEs8/FnvC1CSw="; got != want {
		t.Errorf("feishu: got %s, want %s", got, want)
	}
	// printf '1577262236757\nthis is secret' | openssl dgst -sha256 -mac HMAC -macopt key:"this is secret" -binary | base64
	if got, want := dingtalkSign("this is secret", "1577262236757"), "hmPWwU+7lVdm3ZZz0r9tSfx0L4Q26jWOZr9+Gs6EZQM="; got != want {
		t.Errorf("dingtalk: got %s, want %s", got, want)
	}
}

func TestDingTalkSignsInTheQueryInMilliseconds(t *testing.T) {
	r := receive(t, 200, success["dingtalk"])
	ch := mustNew(t, config.Channel{Kind: "dingtalk", URL: r.URL + "/robot/send?access_token=abcdefgh1234", SecretEnv: "S"}, environ(map[string]string{"S": "this is secret"}))
	for range 2 { // the address does not grow from one message to the next
		if err := ch.Send(t.Context(), rollback()); err != nil {
			t.Fatal(err)
		}
	}
	// printf '1772331660000\nthis is secret' | openssl dgst -sha256 -mac HMAC -macopt key:"this is secret" -binary | base64
	want := "access_token=abcdefgh1234&sign=Rr0IjuYSD4UaJX1JEci5c01W1XjfF%2B6gmw9uw%2FWwsYU%3D&timestamp=1772331660000"
	if got := r.got[1]; got.path != "/robot/send" || got.query != want {
		t.Errorf("got %s?%s, want %s", got.path, got.query, want)
	}
}

func TestOnlyEventsAskedForAreWanted(t *testing.T) {
	ch := mustNew(t, config.Channel{Kind: "slack", URL: "https://h.example/x", Events: []string{"rolled_back", "locked"}}, environ(nil))
	for e := range words {
		if got, want := ch.Wants(e), e == RolledBack || e == Locked || e == Test; got != want {
			t.Errorf("Wants(%s) is %v", e, got)
		}
	}
	ch = mustNew(t, config.Channel{Kind: "slack", URL: "https://h.example/x"}, environ(nil))
	for e := range words {
		if !ch.Wants(e) {
			t.Errorf("without events, %s is not wanted", e)
		}
	}
}

func TestConfigurationsThatCannotWorkAreRefused(t *testing.T) {
	const u = "https://h.example/x"
	cases := []struct {
		name string
		c    config.Channel
		says string
	}{
		{"no such kind", config.Channel{Kind: "pager", URL: u}, "the kinds are webhook, slack"},
		{"no address", config.Channel{Kind: "slack"}, "slack (notify[0]): it needs url or url_env"},
		{"variable of the address is empty", config.Channel{Kind: "slack", URLEnv: "HOOK"}, "url_env: the environment variable HOOK is not set or empty"},
		{"variable of the secret is empty", config.Channel{Kind: "feishu", URL: u, SecretEnv: "S"}, "secret_env: the environment variable S is not set or empty"},
		{"variable of the token is empty", config.Channel{Kind: "webhook", URL: u, TokenEnv: "T"}, "token_env: the environment variable T is not set or empty"},
		{"variable of a header is empty", config.Channel{Kind: "webhook", URL: u, Headers: map[string]string{"X-A": "${V}"}}, "headers.X-A: the environment variable V is not set or empty"},
		{"header is none", config.Channel{Kind: "webhook", URL: u, Headers: map[string]string{"X A": "1"}}, `"X A" is no header's name`},
		{"header of two lines", config.Channel{Kind: "webhook", URL: u, Headers: map[string]string{"X-A": "1\nX-B: 2"}}, "not one line"},
		{"address is none", config.Channel{Kind: "slack", URL: "hooks.example/secret-part"}, "not an address of the form"},
		{"address is another scheme", config.Channel{Kind: "slack", URL: "ftp://h.example/secret-part"}, "not an address of the form"},
		{"address does not parse", config.Channel{Kind: "slack", URL: "https://h.example/%zz-secret-part"}, "not an address of the form"},
		{"no such event", config.Channel{Kind: "slack", URL: u, Events: []string{"rollback"}}, `"rollback" is no event; the events are [advanced`},
		{"no alert of an event", config.Channel{Kind: "alertmanager", URL: u, Events: []string{"advanced"}}, "no alert is made of advanced"},
		{"label is none", config.Channel{Kind: "alertmanager", URL: u, Labels: map[string]string{"a-b": "1"}}, `"a-b" cannot be set`},
		{"label is taken", config.Channel{Kind: "alertmanager", URL: u, Labels: map[string]string{"alertname": "X"}}, `"alertname" cannot be set`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := New(c.c, 0, environ(nil))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v, want %q", err, c.says)
			}
			if strings.Contains(err.Error(), "secret-part") {
				t.Errorf("%q shows the address", err)
			}
		})
	}
}

// TestSecretsAreNeverShown lets every kind fail in every way, by a server that
// says back all that it was sent.
func TestSecretsAreNeverShown(t *testing.T) {
	secrets := []string{"T00SECRETPATH", "querysecret99", "signingsecret", "bearersecret", "headersecret", "passwordsecret"}
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(400)
		said, _ := json.Marshal(map[string]any{"errcode": 1, "code": 1, "errmsg": r.RequestURI, "msg": r.RequestURI, "message": r.RequestURI})
		if r.Header.Get("X-H") != "" {
			said = []byte(r.RequestURI + r.Header.Get("Authorization") + r.Header.Get("X-H"))
		}
		_, _ = w.Write(said)
	}))
	t.Cleanup(echo.Close)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "ht\x7ftp://"+r.RequestURI)
		w.WriteHeader(307)
	}))
	t.Cleanup(elsewhere.Close)

	for kind := range success {
		for name, base := range map[string]string{"refused": echo.URL, "unreachable": nobody, "bad redirect": elsewhere.URL, "no host": "http://host.invalid"} {
			vars := map[string]string{
				"URL": strings.Replace(base, "http://", "http://user:passwordsecret@", 1) + "/services/T00SECRETPATH?key=querysecret99",
				"S":   "signingsecret", "T": "bearersecret", "H": "headersecret",
			}
			c := config.Channel{Kind: kind, URLEnv: "URL", SecretEnv: "S", TokenEnv: "T", Timeout: 5 * time.Second}
			if kind == "webhook" {
				c.Headers = map[string]string{"X-H": "${H}"}
			}
			ch := mustNew(t, c, environ(vars))
			err := ch.Send(t.Context(), rollback())
			if err == nil {
				t.Fatalf("%s, %s: no error", kind, name)
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				for _, s := range secrets {
					if strings.Contains(e.Error()+ch.String(), s) {
						t.Errorf("%s, %s: %q shows %s", kind, name, e, s)
					}
				}
			}
		}
	}
}

func TestRedirectsAreNotFollowedElsewhere(t *testing.T) {
	other := receive(t, 200, "ok")
	for _, status := range []int{301, 302, 303, 307, 308} {
		r := receive(t, status, "", "Location", other.URL+"/x")
		err := mustNew(t, config.Channel{Kind: "slack", URL: r.URL, TokenEnv: "T"}, environ(map[string]string{"T": "token"})).Send(t.Context(), rollback())
		failed, ok := errors.AsType[*DeliveryError](err)
		if !ok || failed.Retry || !strings.Contains(err.Error(), "a redirect that is not followed") {
			t.Errorf("%d: got %v", status, err)
		}
	}
	if len(other.got) != 0 {
		t.Errorf("%d requests reached the other host", len(other.got))
	}
}

func TestRedirectsOnTheSameHostKeepTheMessage(t *testing.T) {
	var bodies []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusPermanentRedirect)
			return
		}
		bodies = append(bodies, r.Method+" "+string(b))
		_, _ = io.WriteString(w, "ok")
	}))
	t.Cleanup(s.Close)
	if err := mustNew(t, config.Channel{Kind: "slack", URL: s.URL + "/old"}, environ(nil)).Send(t.Context(), rollback()); err != nil {
		t.Fatal(err)
	}
	if len(bodies) != 1 || !strings.HasPrefix(bodies[0], `POST {"text":`) {
		t.Errorf("got %q", bodies)
	}
}

// TestTimeLimitIsKept covers a server that does not answer, and one that
// begins to and stops.
func TestTimeLimitIsKept(t *testing.T) {
	for name, begin := range map[string]bool{"no answer": false, "answer breaks off": true} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if begin {
					_, _ = io.WriteString(w, "o")
					w.(http.Flusher).Flush()
				}
				<-r.Context().Done()
			}))
			t.Cleanup(s.Close)
			// A client's own limit does not stand in the way of the configured one.
			o := environ(nil)
			o.Client = &http.Client{Timeout: time.Millisecond}
			ch := mustNew(t, config.Channel{Kind: "slack", URL: s.URL, Timeout: 150 * time.Millisecond}, o)
			from := time.Now()
			err := ch.Send(t.Context(), rollback())
			if took := time.Since(from); took < 150*time.Millisecond || took > 1150*time.Millisecond {
				t.Errorf("took %s with a limit of 150ms", took)
			}
			failed, ok := errors.AsType[*DeliveryError](err)
			if !ok || !failed.Retry || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer within 150ms") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestCallerCanGiveUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	err := mustNew(t, config.Channel{Kind: "slack", URL: s.URL}, environ(nil)).Send(ctx, rollback())
	failed, ok := errors.AsType[*DeliveryError](err)
	if !ok || failed.Retry || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestEndlessAnswerIsReadInPart(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for r.Context().Err() == nil {
			if _, err := w.Write(bytes.Repeat([]byte("x"), 4096)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	err := mustNew(t, config.Channel{Kind: "slack", URL: s.URL}, environ(nil)).Send(t.Context(), rollback())
	if err == nil || len(err.Error()) > 2*excerptLimit {
		t.Errorf("got %d bytes: %.100v", len(err.Error()), err)
	}
}

func TestFigureThatIsNoNumberIsAPermanentFailure(t *testing.T) {
	r := receive(t, 200, "")
	m := rollback()
	m.Rollback = json.RawMessage(`{"signal":`)
	err := mustNew(t, config.Channel{Kind: "webhook", URL: r.URL}, environ(nil)).Send(t.Context(), m)
	if failed, ok := errors.AsType[*DeliveryError](err); !ok || failed.Retry {
		t.Errorf("got %v", err)
	}
	// The chats do without the figures: a rollback must be told.
	r = receive(t, 200, "ok")
	if err := mustNew(t, config.Channel{Kind: "slack", URL: r.URL}, environ(nil)).Send(t.Context(), m); err != nil {
		t.Error(err)
	}
}
