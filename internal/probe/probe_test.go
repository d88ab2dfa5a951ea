package probe_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/probe"
)

const (
	key        = "sk-proj-7Gq2mZ9tRw4LkXc8VbN1pYd5"
	completion = `{"id":"c-1","object":"chat.completion","created":1,"model":"m-2-2026-01","choices":[{"index":0,"message":{"role":"assistant","content":"pong"},"finish_reason":"stop"}],"usage":{"prompt_tokens":8,"completion_tokens":2,"total_tokens":10}}`
)

// env is an environment of its own.
func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func version(base string) probe.Version {
	return probe.Version{Arm: "canary", BaseURL: base, ModelID: "m-2", KeyEnv: "LLM_API_KEY"}
}

func ask(t *testing.T, v probe.Version, pairs ...string) probe.Result {
	t.Helper()
	r := probe.Ask(t.Context(), v, probe.Options{Getenv: env(append([]string{"LLM_API_KEY", key}, pairs...)...), Timeout: 5 * time.Second})
	if r.Arm != v.Arm || r.OK != (r.Kind == probe.OK) || r.Explain == "" || !r.OK && r.Kind != probe.Interrupted && r.Fix == "" {
		t.Errorf("result is not complete: %+v", r)
	}
	hides(t, r, key)
	return r
}

// hides fails where a result shows a secret, in any of its fields.
func hides(t *testing.T, r probe.Result, secret string) {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if all := string(b) + fmt.Sprintf("%+v %#v", r, r); strings.Contains(strings.ToLower(all), strings.ToLower(secret)) {
		t.Errorf("the result shows the secret: %s", all)
	}
}

func want(t *testing.T, r probe.Result, kind probe.Kind, words ...string) {
	t.Helper()
	if r.Kind != kind {
		t.Fatalf("kind %s, want %s: %+v", r.Kind, kind, r)
	}
	for _, w := range words {
		if text := r.Explain + " | " + r.Fix + " | " + r.Said; !strings.Contains(text, w) {
			t.Errorf("%q does not say %q", text, w)
		}
	}
}

// server answers every request with a status, a type and a body.
func server(t *testing.T, status int, header, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for line := range strings.SplitSeq(header, "\n") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				w.Header().Set(name, value)
			}
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

func TestTheRequestIsTheSmallestChatCompletion(t *testing.T) {
	var got *http.Request
	var body map[string]any
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		io.WriteString(w, completion)
	}))
	defer s.Close()
	v := version(s.URL + "/openai/v1/?api-version=2026-01")
	v.Params = map[string]any{"max_tokens": 4096, "temperature": 0.2, "note": "ours alone"}
	r := ask(t, v)
	want(t, r, probe.OK)
	if r.Model != "m-2-2026-01" || r.Status != 200 || r.LatencyMS == nil || *r.LatencyMS <= 0 {
		t.Errorf("%+v", r)
	}
	if got.Method != http.MethodPost || got.URL.String() != "/openai/v1/chat/completions?api-version=2026-01" || got.Header.Get("Authorization") != "Bearer "+key {
		t.Errorf("%s %s %v", got.Method, got.URL, got.Header)
	}
	if len(body) != 4 || body["model"] != "m-2" || body["stream"] != false || body["max_tokens"].(float64) < 1 || len(body["messages"].([]any)) != 1 {
		t.Errorf("body %v", body)
	}
	if strings.Contains(r.URL, "api-version") {
		t.Errorf("the query is shown: %s", r.URL)
	}
}

func TestWithoutAKeyNoneIsSent(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := r.Header["Authorization"]; ok {
			t.Error("Authorization was sent")
		}
		io.WriteString(w, completion)
	}))
	defer s.Close()
	v := version(s.URL)
	v.KeyEnv = ""
	want(t, ask(t, v), probe.OK)
}

// Newer models refuse max_tokens by name:
// "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
func TestAServerThatWantsTheOtherTokenLimitIsAskedAgain(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), `"max_tokens"`) {
			w.WriteHeader(400)
			io.WriteString(w, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`)
			return
		}
		io.WriteString(w, completion)
	}))
	defer s.Close()
	want(t, ask(t, version(s.URL)), probe.OK, "max_completion_tokens")
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	asked = 0
	v := version(s.URL)
	v.Params = map[string]any{"max_completion_tokens": 100}
	want(t, ask(t, v), probe.OK)
	if asked != 1 {
		t.Errorf("with the name in params asked %d times", asked)
	}
}

func TestNothingIsSentInVain(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("something was sent") }))
	defer s.Close()
	with := func(change func(*probe.Version)) probe.Version {
		v := version(s.URL)
		change(&v)
		return v
	}
	keyed := func(k string) probe.Version {
		return with(func(v *probe.Version) { v.KeyEnv, v.Key = "", config.Secret(k) })
	}
	params := func(p map[string]any) probe.Version { return with(func(v *probe.Version) { v.Params = p }) }
	for _, tc := range []struct {
		name  string
		v     probe.Version
		kind  probe.Kind
		words string
	}{
		{"no base_url", version(""), probe.NoURL, "versions.canary.base_url is not set"},
		{"no scheme", version("api.example.test/v1"), probe.BadURL, "does not begin with http:// or https://"},
		{"another scheme", version("ftp://example.test/v1"), probe.BadURL, "does not begin"},
		{"no host", version("https:///v1"), probe.BadURL, "names no host"},
		{"no address", version("http://[::1/v1"), probe.BadURL, "not an address"},
		{"the whole endpoint", version(s.URL + "/v1/chat/completions"), probe.BadURL, "ends with /chat/completions"},
		{"no model", with(func(v *probe.Version) { v.ModelID = " " }), probe.NoModelID, "OAuth"},
		{"variable unset", with(func(v *probe.Version) { v.KeyEnv = "OTHER" }), probe.NoKey, "OTHER is not set or empty"},
		{"only blanks", keyed(" \n"), probe.NoKey, "not set or empty"},
		{"line break at the end", keyed(key + "\n"), probe.BadKey, "ends with a line break"},
		{"carriage return at the end", keyed(key + "\r\n"), probe.BadKey, "ends with a line break"},
		{"blank before", keyed(" " + key), probe.BadKey, "begins or ends with a blank"},
		{"quotes", keyed(`"` + key + `"`), probe.BadKey, "stands in quotes"},
		{"one quote", keyed("'" + key), probe.BadKey, "stands in quotes"},
		{"typographic quote", keyed("\u201c" + key), probe.BadKey, "not ASCII, the 1."},
		{"invisible blank inside", keyed(key[:10] + "\u200b" + key[10:]), probe.BadKey, "not ASCII, the 11."},
		{"Bearer before it", keyed("Bearer " + key), probe.BadKey, "the word Bearer"},
		{"two keys", keyed(key + "\n" + key), probe.BadKey, "line break inside"},
		{"a file", keyed(strings.Repeat("k", 20000)), probe.BadKey, "bytes"},
		{"three dots in one sign", keyed("sk-\u2026"), probe.KeyPlaceholder, "placeholder"},
		{"max_tokens 0", params(map[string]any{"max_tokens": 0}), probe.MaxTokens, "max_tokens is 0"},
		{"max_tokens negative", params(map[string]any{"max_tokens": int64(-1)}), probe.MaxTokens, "-1"},
		{"max_tokens a text", params(map[string]any{"max_tokens": "many"}), probe.MaxTokens, "many"},
		{"max_tokens broken", params(map[string]any{"max_completion_tokens": 0.5}), probe.MaxTokens, "max_completion_tokens is 0.5"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := ask(t, tc.v)
			want(t, r, tc.kind, tc.words)
			if r.LatencyMS != nil || r.Status != 0 {
				t.Errorf("there was no answer: %+v", r)
			}
		})
	}
	empty := probe.Ask(t.Context(), version(s.URL), probe.Options{Getenv: env("LLM_API_KEY", "")})
	want(t, empty, probe.NoKey, "LLM_API_KEY is not set or empty")
}

func TestAVariableThatCarriesItsOwnName(t *testing.T) {
	r := probe.Ask(t.Context(), version("http://127.0.0.1:1"), probe.Options{Getenv: env("LLM_API_KEY", "LLM_API_KEY="+key)})
	want(t, r, probe.BadKey, "begins with the variable's own name")
	hides(t, r, key)
}

func TestPlaceholdersAreSaidWhereTheServerDoesNotAcceptThem(t *testing.T) {
	refuses := server(t, 401, "", `{"error":{"message":"Incorrect API key provided.","code":"invalid_api_key"}}`)
	accepts := server(t, 200, "", completion)
	for _, k := range []string{"sk-xxx", "sk-xxxxxxxxxxxx", "your-key", "YOUR_API_KEY", "<key>", "<your key here>", "changeme", "...", "sk-...", "sk-", "${LLM_API_KEY}", "$LLM_API_KEY", "{{ key }}", "EMPTY", "none", "sk-1234567890", "sk-your-key-here", "****", "replace-me", "TODO", "sk-proj-XXXX", "dummy"} {
		if strings.ContainsAny(k, " ") {
			r := probe.Ask(t.Context(), version(refuses), probe.Options{Getenv: env("LLM_API_KEY", k)})
			want(t, r, probe.KeyPlaceholder, "placeholder", "nothing was sent")
			continue
		}
		want(t, probe.Ask(t.Context(), version(refuses), probe.Options{Getenv: env("LLM_API_KEY", k)}), probe.KeyPlaceholder, "LLM_API_KEY holds a placeholder")
		want(t, probe.Ask(t.Context(), version(accepts), probe.Options{Getenv: env("LLM_API_KEY", k)}), probe.OK, "placeholder")
	}
	for _, k := range []string{key, "gsk_Ab3dEf9hIj2kLm5n", "a8f5f167f44f4964e6c998dee827110c", "internal-gateway-2026", "hunter2"} {
		want(t, probe.Ask(t.Context(), version(refuses), probe.Options{Getenv: env("LLM_API_KEY", k)}), probe.Unauthorized, "LLM_API_KEY")
	}
}
