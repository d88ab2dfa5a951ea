package probe_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/probe"
)

func TestAKeyThatTheServerSendsBackIsMasked(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString([]byte(key))
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(key)))
	for _, tc := range []struct{ name, body, hidden string }{
		{"as it is", `{"error":{"message":"Incorrect API key provided: ` + key + `. Try again"}}`, key},
		{"in a header line", "Authorization: Bearer " + key, key},
		{"in capitals", "bad key " + strings.ToUpper(key), key},
		{"escaped in JSON", `{"error":{"message":"bad \u0073` + key[1:] + `"}}`, key},
		{"with invisible blanks inside", `{"error":"` + key[:9] + "\u200b" + key[9:] + `"}`, key},
		{"in base 64", "Basic " + b64, b64},
		{"its digest", `{"error":{"message":"Key Hash (Token) =` + sum + `"}}`, sum},
		{"its beginning", `{"error":"key ` + key[:14] + `... is wrong"}`, key[:14]},
		{"its middle", `{"error":"key ` + key[8:20] + ` is wrong"}`, key[8:20]},
		{"starred", `{"error":"Incorrect API key provided: sk-proj-********************pYd5."}`, "pYd5"},
		{"its end", `{"error":"Your api key: ****pYd5 is invalid"}`, "pYd5"},
		{"in a page", "<html><title>401</title>" + key + "</html>", key},
		{"another's key", `{"error":"upstream says: Incorrect API key provided: sk-live-4242424242424242"}`, "4242424242424242"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := ask(t, version(server(t, 401, "", tc.body)))
			hides(t, r, tc.hidden)
			if !strings.Contains(r.Said, "***") {
				t.Errorf("nothing is masked in %q", r.Said)
			}
		})
	}
	r := ask(t, version(server(t, 200, "", strings.Replace(completion, "m-2-2026-01", key, 1))))
	if r.Model != "***" {
		t.Errorf("model %q", r.Model)
	}
}

func TestTheRestOfAMessageStays(t *testing.T) {
	r := ask(t, version(server(t, 401, "", `{"error":{"message":"Incorrect API key provided: `+key+`. You can find your API key at https://platform.example/account."}}`)))
	if want := "Incorrect API key provided: ***. You can find your API key at https://platform.example/account."; r.Said != want && r.Said != strings.Replace(want, "***.", "***", 1) {
		t.Errorf("said %q", r.Said)
	}
}

func TestAShortKeyLeavesNothingOfWhatIsSaid(t *testing.T) {
	r := probe.Ask(t.Context(), version(server(t, 401, "", "bad key q7z")), probe.Options{Getenv: env("LLM_API_KEY", "q7z")})
	if want(t, r, probe.Unauthorized); r.Said != "" {
		t.Errorf("said %q", r.Said)
	}
}

func TestUserAndQueryOfTheAddressAreNotShown(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		w.WriteHeader(500)
		fmt.Fprintf(w, "user %s password %s query %s", user, password, r.URL.RawQuery)
	}))
	defer s.Close()
	v := version(strings.Replace(s.URL, "http://", "http://someone:p4ssw0rd-long@", 1) + "/v1?key=AIzaSyD-0123456789abcdef")
	v.KeyEnv = ""
	r := ask(t, v)
	want(t, r, probe.ServerError, "user someone password ***")
	hides(t, r, "p4ssw0rd-long")
	hides(t, r, "AIzaSyD-0123456789abcdef")
	v.BaseURL = "http://someone:p4ssw0rd-long@" + dead(t)
	hides(t, ask(t, v), "p4ssw0rd-long")
}

func TestWhatIsSaidFitsALine(t *testing.T) {
	r := ask(t, version(server(t, 500, "", "\x1b[31mred\x1b[0m\r\n\u202eturned\u202c\tand\xff "+strings.Repeat("long ", 500))))
	if !strings.HasPrefix(r.Said, "[31mred [0m turned and? long") && !strings.HasPrefix(r.Said, "[31mred[0m turned and? long") || utf8.RuneCountInString(r.Said) > 310 || strings.ContainsAny(r.Said, "\n\r\t\x1b\u202e") {
		t.Errorf("said %q", r.Said)
	}
}

func FuzzNoResultShowsTheKey(f *testing.F) {
	f.Add("sk-proj-7Gq2mZ9tRw4LkXc8", `{"error":{"message":"bad key %s"}}`, 401)
	f.Add("abcd1234", `{"choices":[],"model":"%s"}`, 200)
	f.Add("k-9%zz/", "<html>%s</html>", 302)
	f.Add("k,y.z", "data: %s\n", 200)
	f.Fuzz(func(t *testing.T, secret, body string, status int) {
		if len(secret) < 6 || len(secret) > 100 || status < 200 || status > 599 || url.QueryEscape(secret) != secret {
			t.Skip()
		}
		for _, r := range secret { // a key of words that our own sentences use is not one
			if r > 0x7e || r < 0x21 {
				t.Skip()
			}
		}
		secret = "q7" + secret + "7q"
		body = strings.ReplaceAll(body, "%s", secret)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/"+secret)
			w.WriteHeader(status)
			w.Write([]byte(body))
		}))
		defer s.Close()
		v := version(s.URL)
		v.KeyEnv, v.Key = "", config.Secret(secret)
		hides(t, probe.Ask(t.Context(), v, probe.Options{Getenv: env()}), secret)
	})
}
