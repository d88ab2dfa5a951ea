package proxy

import (
	"net/http"
	"strings"
	"testing"
)

// secrets are headers by which gateways and sites know a user. None may reach a
// canary on another host; nor may one that nobody has thought of.
var secrets = []string{
	"Authorization", "Api-Key", "X-Api-Key", "X-Goog-Api-Key", "Cookie", "Openai-Organization", "Openai-Project", "X-Auth-Token", "X-Access-Token",
	"Ocp-Apim-Subscription-Key", "X-Litellm-Api-Key", "Private-Token", "X-Amz-Security-Token", "Cf-Access-Jwt-Assertion",
	"X-Forwarded-Access-Token", "Authentication", "X-Authorization", "X-Csrf-Token", "X-Of-Somebody", "Forwarded", "X-Forwarded-For", "Referer",
}

func TestAnotherHostSeesNoCredentialOfAUser(t *testing.T) {
	for _, c := range []struct {
		name      string
		onCanary  bool
		canaryKey string
	}{{"a copy", false, ""}, {"a copy with the canary's key", false, "sk-canary"}, {"the user's own answer", true, ""}, {"the user's own answer with the canary's key", true, "sk-canary"}} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, func(o *Options) {
				o.Canary.Key = c.canaryKey
				o.Canary.BaseURL.RawQuery = "of=canary"
				if c.onCanary {
					all(o)
				}
			})
			if c.onCanary {
				w.allOnCanary()
			}
			r, err := http.NewRequestWithContext(t.Context(), "POST", w.url+"/v1/chat/completions?api_key=secret-q&api-version=2024-10-21&key=secret-k&;api-version=secret-s", strings.NewReader(question))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range secrets {
				r.Header.Set(name, "secret-"+name)
			}
			plain := map[string]string{
				"Content-Type": "application/json", "Accept": "application/json", "Accept-Language": "de", "User-Agent": "client/1", "X-Request-Id": "r-1",
				"Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Tracestate": "a=b", "Openai-Beta": "assistants=v2",
			}
			for name, v := range plain {
				r.Header.Set(name, v)
			}
			resp, err := w.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			w.asked.Add(1)
			w.eventually("the canary was asked", func() bool { return len(w.canary.requests()) == 1 })
			got := w.canary.requests()[0]
			if c.canaryKey != "" {
				if got.Header.Get("Authorization") != "Bearer sk-canary" || got.Header.Get("Api-Key") != "sk-canary" {
					t.Errorf("the canary's key is not shown: %v", got.Header)
				}
			}
			for name, values := range got.Header {
				if strings.Contains(strings.Join(values, ","), "secret") {
					t.Errorf("%s: %q", name, values)
				}
			}
			for name, v := range plain {
				if got.Header.Get(name) != v {
					t.Errorf("%s: %q, want %q", name, got.Header.Get(name), v)
				}
			}
			if got.URL.RawQuery != "of=canary&api-version=2024-10-21" {
				t.Errorf("query %q", got.URL.RawQuery)
			}
			if !c.onCanary {
				stable := w.stable.requests()[0]
				if stable.Header.Get("X-Auth-Token") != "secret-X-Auth-Token" || !strings.Contains(stable.URL.RawQuery, "api_key=secret-q") {
					t.Errorf("stable did not get what the user sent: %s %v", stable.URL, stable.Header)
				}
			}
		})
	}
}

func TestTheSameHostSeesWhatStableSees(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Canary.BaseURL = parse(t, o.Stable.BaseURL.String()+"/canary") })
	resp, err := w.send("POST", "/v1/chat/completions?tenant=7", strings.NewReader(question), "X-App", "orders", "Authorization", "Bearer user-key")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	w.eventually("both were asked", func() bool { return len(w.stable.requests()) == 2 })
	copied := w.stable.requests()[1]
	if copied.Header.Get("X-App") != "orders" || copied.Header.Get("Authorization") != "Bearer user-key" || copied.URL.String() != "/v1/canary/chat/completions?tenant=7" {
		t.Errorf("%s %v", copied.URL, copied.Header)
	}
}
