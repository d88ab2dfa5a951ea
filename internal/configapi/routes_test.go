package configapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestEveryRouteIsInTheOpenAPIDocumentAndNothingElse(t *testing.T) {
	s := loadSpec(t)
	var want, got []string
	for _, r := range routes {
		want = append(want, r.method+" "+r.path)
	}
	for path, item := range s.doc["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			if method != "parameters" {
				got = append(got, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("routes %q\ndocument %q", want, got)
	}
	if served := local(t).do(http.MethodGet, "/openapi.json", "").body; !bytes.Equal(served, OpenAPI()) {
		t.Error("what is served is not what is printed")
	}
}

// TestTheOpenAPIDocumentIsWhole follows every reference and compiles every
// schema in it.
func TestTheOpenAPIDocumentIsWhole(t *testing.T) {
	s := loadSpec(t)
	if s.doc["openapi"] != "3.1.0" {
		t.Errorf("openapi %v", s.doc["openapi"])
	}
	used := map[string]bool{}
	var walk func(at string, node any)
	walk = func(at string, node any) {
		switch node := node.(type) {
		case map[string]any:
			if ref, ok := node["$ref"].(string); ok {
				used[ref] = true
				if _, _, err := s.at(strings.TrimPrefix(ref, "#")); err != nil {
					t.Errorf("%s: %v", at, err)
				}
			}
			if _, ok := node["schema"].(map[string]any); ok {
				if _, err := s.compile(at + "/schema"); err != nil {
					t.Errorf("%s: %v", at, err)
				}
			}
			for _, key := range slices.Sorted(maps.Keys(node)) {
				walk(at+"/"+strings.ReplaceAll(key, "/", "~1"), node[key])
			}
		case []any:
			for i, each := range node {
				walk(fmt.Sprintf("%s/%d", at, i), each)
			}
		}
	}
	walk("", s.doc)
	for section, items := range s.doc["components"].(map[string]any) {
		for name := range items.(map[string]any) {
			if ref := "#/components/" + section + "/" + name; section != "securitySchemes" && !used[ref] {
				t.Errorf("%s is used nowhere", ref)
			}
		}
	}
}

// TestEveryProblemIsExplained looks for the heading that a problem's type
// leads to.
func TestEveryProblemIsExplained(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "serve.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := []kind{
		invalidName, invalidHeader, invalidJSON, unauthorized, notFound, methodNotAllowed, staleToken, preconditionFail,
		tooLarge, unsupportedMedia, misdirected, invalidDocument, keyReused, preconditionNone, internal, full,
	}
	for _, k := range all {
		if !bytes.Contains(page, []byte("\n### "+k.id+"\n")) {
			t.Errorf("docs/reference/serve.md has no heading %s", k.id)
		}
		if http.StatusText(k.status) == "" {
			t.Errorf("%s has status %d", k.id, k.status)
		}
	}
}

func TestTheTokenOpensWhatItShould(t *testing.T) {
	paths := []string{"/v1/services", "/v1/services/s", "/nothing", "/metrics", "/openapi.json", "/healthz"}
	for _, tt := range []struct {
		name     string
		loopback bool
		header   string
		want     []int // by path
	}{
		{"the token on loopback", true, "Authorization: Bearer " + token, []int{200, 404, 404, 200, 200, 200}},
		{"the token elsewhere", false, "Authorization: Bearer " + token, []int{200, 404, 404, 200, 200, 200}},
		{"a scheme in small letters", false, "Authorization: bearer  " + token, []int{200, 404, 404, 200, 200, 200}},
		{"none on loopback", true, "", []int{401, 401, 401, 200, 200, 200}},
		{"none elsewhere", false, "", []int{401, 401, 401, 401, 401, 200}},
		{"another", false, "Authorization: Bearer " + token + "x", []int{401, 401, 401, 401, 401, 200}},
		{"a part of it", false, "Authorization: Bearer " + token[:len(token)-1], []int{401, 401, 401, 401, 401, 200}},
		{"an empty one", false, "Authorization: Bearer ", []int{401, 401, 401, 401, 401, 200}},
		{"another scheme", false, "Authorization: Basic " + token, []int{401, 401, 401, 401, 401, 200}},
		{"the token alone", false, "Authorization: " + token, []int{401, 401, 401, 401, 401, 200}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := serve(t, Options{Dir: t.TempDir(), Token: token, Loopback: tt.loopback})
			for i, path := range paths {
				var headers []string
				if tt.header != "" {
					headers = []string{tt.header}
				}
				r := c.do(http.MethodGet, path, "", headers...)
				if r.StatusCode != tt.want[i] {
					t.Errorf("%s: %d, want %d", path, r.StatusCode, tt.want[i])
				}
				if bytes.Contains(r.body, []byte(token[:8])) {
					t.Errorf("%s: the token is in the answer: %s", path, r.body)
				}
			}
		})
	}
}

func TestNothingIsWrittenWithoutTheToken(t *testing.T) {
	dir := t.TempDir()
	c := serve(t, Options{Dir: dir, Token: token, Loopback: true})
	if r := c.do(http.MethodPut, "/v1/services/s", one, "If-None-Match: *"); r.StatusCode != 401 {
		t.Errorf("%d, want 401", r.StatusCode)
	}
	if _, err := onDisk(dir, "s"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("on disk: %v", err)
	}
}

func TestAServerForOthersNeedsAToken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	if _, err := New(Options{Dir: dir}); !errors.Is(err, ErrNoToken) {
		t.Errorf("%v, want ErrNoToken", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory was made all the same")
	}
}

// TestAPageOfAnotherNameReachesNothing is about DNS rebinding: without a token
// the name that a browser believes to talk to is all that tells its pages
// apart.
func TestAPageOfAnotherNameReachesNothing(t *testing.T) {
	for _, tt := range []struct {
		host   string
		token  string
		status int
	}{
		{"localhost", "", 200}, {"LocalHost:8417", "", 200}, {"127.0.0.1:1", "", 200}, {"127.1.2.3", "", 200}, {"[::1]:8417", "", 200}, {"[::1]", "", 200},
		{"evil.example", "", 421}, {"localhost.evil.example", "", 421}, {"evil.example:8417", "", 421}, {"10.0.0.1", "", 421}, {"127.0.0.1.evil.example", "", 421},
		{"config.internal", token, 200},
	} {
		c := serve(t, Options{Dir: t.TempDir(), Loopback: true, Token: tt.token})
		r := c.do(http.MethodGet, "/v1/services", "", "Host: "+tt.host, "Authorization: Bearer "+token)
		if r.StatusCode != tt.status {
			t.Errorf("%s: %d, want %d", tt.host, r.StatusCode, tt.status)
		}
	}
}

func TestAPanicIsAProblemAndTheServerGoesOn(t *testing.T) {
	calls := 0
	now := func() time.Time {
		if calls++; calls == 2 {
			panic("the clock fell off the wall")
		}
		return time.Unix(0, 0)
	}
	c := serve(t, Options{Dir: t.TempDir(), Loopback: true, Now: now})
	etag := c.create("s", one).etag()
	r := c.do(http.MethodPut, "/v1/services/s", five, "If-Match: "+etag)
	if r.StatusCode != 500 || r.kind() != "internal" || strings.Contains(string(r.body), "clock") {
		t.Errorf("%d %s, want a 500 that tells nothing", r.StatusCode, r.body)
	}
	if got := c.reports(); len(got) != 1 || !strings.Contains(got[0].Error(), "panic at PUT /v1/services/s: the clock fell off the wall") {
		t.Errorf("reported: %v", got)
	}
	if r = c.do(http.MethodPut, "/v1/services/s", five, "If-Match: "+etag); r.StatusCode != 200 {
		t.Errorf("the next request: %d %s", r.StatusCode, r.body)
	}
	if text := c.do(http.MethodGet, "/metrics", "").body; !bytes.Contains(text, []byte(`{method="PUT",code="500"} 1`)) {
		t.Errorf("not counted:\n%s", text)
	}
}

func TestHealthIsAnsweredAndAnswersAreNotGuessedAt(t *testing.T) {
	r := serve(t, Options{Dir: t.TempDir(), Token: token}).do(http.MethodGet, "/healthz", "")
	var got struct {
		Schema int
		Status string
	}
	if err := json.Unmarshal(r.body, &got); err != nil || got.Schema != 1 || got.Status != "ok" {
		t.Errorf("%s: %v", r.body, err)
	}
	if r.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%v", r.Header)
	}
}
