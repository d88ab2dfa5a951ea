package target

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/servertest"
)

const apiToken = "tok-3f9a-very-secret"

// api is a configuration API that holds one document. It is honest unless one
// of its fields says otherwise.
type api struct {
	mu       sync.Mutex
	doc      []byte
	revision int
	requests []request // writes only

	noETag        bool
	weak          bool // ETags are weak
	trailer       bool // the ETag comes behind the body
	ignoresMatch  bool
	gzips         bool
	stale         int            // so many reads show the document before the last write
	before        []byte         // what they show
	onWrite       func(n int)    // called before the nth write is looked at, from 1
	answers       map[int]answer // what the nth write is answered with, instead of
	afterCommit   bool           // those answers come after the write was done
	neverCommits  bool           // writes are answered with 200 and dropped
	answersToRead *answer
}

type request struct {
	method string
	header http.Header
	body   string
}

func (a *api) etag() string {
	tag := fmt.Sprintf(`"r%d"`, a.revision)
	if a.weak {
		tag = "W/" + tag
	}
	return tag
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+apiToken {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, "bad credentials %s", r.Header.Get("Authorization"))
		return
	}
	if r.Method == http.MethodGet {
		a.get(w)
		return
	}
	a.put(w, r)
}

func (a *api) get(w http.ResponseWriter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answersToRead != nil {
		a.answersToRead.writeTo(w)
		return
	}
	doc, tag := a.doc, a.etag()
	if a.stale > 0 && a.before != nil {
		a.stale--
		doc, tag = a.before, fmt.Sprintf(`"r%d"`, a.revision-1)
	}
	switch {
	case a.noETag:
	case a.trailer:
		w.Header().Set("Trailer", "Etag")
		defer w.Header().Set("Etag", tag)
	default:
		w.Header().Set("Etag", tag)
	}
	w.Header().Set("Content-Type", "application/json")
	if a.gzips {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		_, _ = z.Write(doc)
		return
	}
	_, _ = w.Write(doc)
}

func (a *answer) writeTo(w http.ResponseWriter) {
	for k, v := range a.header {
		w.Header()[k] = v
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

func (a *api) put(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	a.requests = append(a.requests, request{r.Method, r.Header.Clone(), string(body)})
	n := len(a.requests)
	a.mu.Unlock()
	if a.onWrite != nil {
		a.onWrite(n)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	lie, lies := a.answers[n]
	if lies && !a.afterCommit {
		lie.writeTo(w)
		return
	}
	if match := r.Header.Get("If-Match"); match != "" && !a.ignoresMatch && match != a.etag() {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusPreconditionFailed)
		fmt.Fprintf(w, `{"title":"Precondition Failed","detail":"the document is at %s"}`, strings.ReplaceAll(a.etag(), `"`, ""))
		return
	}
	if !a.neverCommits {
		a.set(body)
	}
	if lies {
		lie.writeTo(w)
	}
}

// set is a write by whomever.
func (a *api) set(doc []byte) {
	a.before, a.doc = a.doc, doc
	a.revision++
}

func (a *api) weights(canary, stable string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.set([]byte(strings.NewReplacer("0.99", stable, "0.01", canary).Replace(plainWeights)))
}

// newTestAPI starts a server and makes its target.
func newTestAPI(t *testing.T, a http.Handler, cfg config.ConfigAPITarget) *configAPI {
	t.Helper()
	if server, ok := a.(*api); ok && server.doc == nil {
		server.doc = []byte(plainWeights)
	}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	cfg.URL, cfg.TokenEnv = cmpOr(cfg.URL, "/v1/services/chat"), "API_TOKEN"
	for _, u := range []*string{&cfg.URL, &cfg.ReadURL, &cfg.WriteURL} {
		if strings.HasPrefix(*u, "/") {
			*u = server.URL + *u
		}
	}
	return dialAPI(t, cfg, Options{})
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func dialAPI(t *testing.T, cfg config.ConfigAPITarget, o Options) *configAPI {
	t.Helper()
	o.Ring = 100
	o.Getenv = func(name string) string { return map[string]string{"API_TOKEN": apiToken + "\n"}[name] }
	made, err := New(&config.Target{Kind: "config_api", ConfigAPI: &cfg}, o)
	if err != nil {
		t.Fatal(err)
	}
	made.(*configAPI).pause = time.Millisecond
	return made.(*configAPI)
}

func TestAPIWritesTheWholeDocumentWithIfMatch(t *testing.T) {
	a := &api{doc: []byte(`{"id": 12345678901234567890.10, "html": "<\/a&b>", "versions":{"canary":{"weight":1e-2},"stable":{"weight":0.99}}, "list":[ 1,2 ]}`)}
	x := newTestAPI(t, a, config.ConfigAPITarget{})
	was := mustRead(t, x)
	if want := (Reading{Weight: weightOf(1), Revision: `"r0"`}); !cmp.Equal(was, want) {
		t.Errorf("read %+v, want %+v", was, want)
	}
	if err := x.Write(t.Context(), was, Change{To: weightOf(5), Key: "rel/1/1/start", Token: 9}); err != nil {
		t.Fatal(err)
	}
	r := a.requests[0]
	if want := `{"id": 12345678901234567890.10, "html": "<\/a&b>", "versions":{"canary":{"weight":0.05},"stable":{"weight":0.95}}, "list":[ 1,2 ]}`; r.body != want {
		t.Errorf("sent\n%s\nwant\n%s", r.body, want)
	}
	for name, want := range map[string]string{
		"If-Match": `"r0"`, "Idempotency-Key": "rel/1/1/start", "Canaryctl-Token": "9",
		"Content-Type": "application/json", "Authorization": "Bearer " + apiToken,
	} {
		if got := r.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if is := mustRead(t, x); is.Weight != weightOf(5) || is.Revision != `"r1"` {
		t.Errorf("read back %+v", is)
	}
}

func TestAPIModesSendWhatTheySay(t *testing.T) {
	const doc = `{"a/b":{"refs":[{"name":"stable","weight":"99"},{"name":"canary","weight":"1"}],"x":12345678901234567890},"keep":"<&>"}`
	byName := config.ConfigAPITarget{
		Canary: `"a/b".refs[name=canary].weight`, Stable: `"a/b".refs[name=stable].weight`, Unit: config.Unit{Whole: 100, Places: 2},
	}
	for name, tc := range map[string]struct {
		doc               string
		cfg               config.ConfigAPITarget
		method, body, typ string
	}{
		"merge patch": {
			plainWeights, config.ConfigAPITarget{Mode: "merge_patch"},
			"PATCH", `{"versions":{"canary":{"weight":0.05},"stable":{"weight":0.95}}}`, "application/merge-patch+json",
		},
		"merge patch sends a list whole": {
			doc, with(byName, func(c *config.ConfigAPITarget) { c.Mode = "merge_patch" }),
			"PATCH", `{"a/b":{"refs":[{"name":"stable","weight":"95"},{"name":"canary","weight":"5"}]}}`, "application/merge-patch+json",
		},
		"json patch tests the old weights": {
			plainWeights, config.ConfigAPITarget{Mode: "json_patch", Stable: "-", Canary: "versions.canary.weight"},
			"PATCH", `[{"op":"test","path":"/versions/canary/weight","value":0.01},{"op":"replace","path":"/versions/canary/weight","value":0.05}]`, "application/json-patch+json",
		},
		"json patch finds positions by name": {
			doc, with(byName, func(c *config.ConfigAPITarget) { c.Mode, c.WriteMethod = "json_patch", "POST" }),
			"POST", `[{"op":"test","path":"/a~1b/refs/1/weight","value":"1"},{"op":"test","path":"/a~1b/refs/0/weight","value":"99"},` +
				`{"op":"replace","path":"/a~1b/refs/1/weight","value":"5"},{"op":"replace","path":"/a~1b/refs/0/weight","value":"95"}]`, "application/json-patch+json",
		},
		"template": {
			plainWeights, config.ConfigAPITarget{
				Mode: "template", WriteMethod: "POST", ContentType: "application/json; v=2",
				Body: `{"w":[{canary},{stable}],"why":"{release} {attempt}.{step}","id":"{key}","other":"{x}"}`,
			},
			"POST", `{"w":[0.05,0.95],"why":"rel\"1\n 2.3","id":"k&1","other":"{x}"}`, "application/json; v=2",
		},
		"template of a form": {
			plainWeights, config.ConfigAPITarget{Mode: "template", ContentType: "application/x-www-form-urlencoded", Body: `w={canary}&k={key}`},
			"PUT", `w=0.05&k=k%261`, "application/x-www-form-urlencoded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &api{doc: []byte(tc.doc)}
			x := newTestAPI(t, a, tc.cfg)
			err := x.Write(t.Context(), mustRead(t, x), Change{To: weightOf(5), Release: "rel\"1\n", Attempt: 2, Step: 3, Key: "k&1"})
			if err != nil {
				t.Fatal(err)
			}
			r := a.requests[0]
			if r.method != tc.method || r.body != tc.body || r.header.Get("Content-Type") != tc.typ {
				t.Errorf("sent %s %s\n%s\nwant %s %s\n%s", r.method, r.header.Get("Content-Type"), r.body, tc.method, tc.typ, tc.body)
			}
			if got := r.header.Get("If-Match"); got != `"r0"` {
				t.Errorf("If-Match %q", got)
			}
		})
	}
}

func with(c config.ConfigAPITarget, change func(*config.ConfigAPITarget)) config.ConfigAPITarget {
	change(&c)
	return c
}

func TestAPIETagsComeInEveryForm(t *testing.T) {
	for name, tc := range map[string]struct {
		server    *api
		cfg       config.ConfigAPITarget
		revision  string
		sentMatch string
	}{
		"strong":                         {&api{}, config.ConfigAPITarget{}, `"r0"`, `"r0"`},
		"in a trailer":                   {&api{trailer: true}, config.ConfigAPITarget{}, `"r0"`, `"r0"`},
		"gzip that nobody asked for":     {&api{gzips: true}, config.ConfigAPITarget{}, `"r0"`, `"r0"`},
		"none":                           {&api{noETag: true}, config.ConfigAPITarget{}, "", ""},
		"weak ones are not sent":         {&api{weak: true}, config.ConfigAPITarget{}, `W/"r0"`, ""},
		"weak ones when told so":         {&api{weak: true}, config.ConfigAPITarget{IfMatch: "weak"}, `W/"r0"`, `W/"r0"`},
		"off":                            {&api{}, config.ConfigAPITarget{IfMatch: "off"}, `"r0"`, ""},
		"of another address":             {&api{}, config.ConfigAPITarget{ReadURL: "/v1/read"}, `"r0"`, ""},
		"of the address with parameters": {&api{}, config.ConfigAPITarget{WriteURL: "/v1/services/chat?force=1"}, `"r0"`, `"r0"`},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTestAPI(t, tc.server, tc.cfg)
			was := mustRead(t, x)
			if was.Revision != tc.revision {
				t.Errorf("revision %q, want %q", was.Revision, tc.revision)
			}
			if err := x.Write(t.Context(), was, Change{To: weightOf(5)}); err != nil {
				t.Fatal(err)
			}
			if got := tc.server.requests[0].header.Get("If-Match"); got != tc.sentMatch {
				t.Errorf("If-Match %q, want %q", got, tc.sentMatch)
			}
			if got := mustRead(t, x).Weight; got != weightOf(5) {
				t.Errorf("holds %v", got)
			}
		})
	}
}

func TestAPIRefusesToWriteOverSomebodyElse(t *testing.T) {
	for name, server := range map[string]*api{
		"with ETags": {}, "without": {noETag: true}, "weak": {weak: true}, "a server that ignores If-Match": {ignoresMatch: true},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTestAPI(t, server, config.ConfigAPITarget{})
			was := mustRead(t, x)
			server.weights("0.3", "0.7")
			err := x.Write(t.Context(), was, Change{To: weightOf(5)})
			if c, ok := errors.AsType[*ConflictError](err); !ok || c.Held == nil || *c.Held != weightOf(30) {
				t.Errorf("got %v", err)
			}
			if len(server.requests) != 0 {
				t.Errorf("it was sent: %v", server.requests)
			}
		})
	}
	t.Run("between the comparison and the write", func(t *testing.T) {
		server := &api{}
		x := newTestAPI(t, server, config.ConfigAPITarget{})
		server.onWrite = func(int) { server.weights("0.3", "0.7") }
		err := x.Write(t.Context(), mustRead(t, x), Change{To: weightOf(5)})
		if !isA[*ConflictError](err) || !strings.Contains(err.Error(), "the document is at r1") {
			t.Errorf("got %v", err)
		}
		if got := mustRead(t, x).Weight; got != weightOf(30) {
			t.Errorf("holds %v", got)
		}
	})
	t.Run("the weight moved and came back", func(t *testing.T) {
		server := &api{}
		x := newTestAPI(t, server, config.ConfigAPITarget{})
		was := mustRead(t, x)
		server.weights("0.01", "0.99")
		if err := x.Write(t.Context(), was, Change{To: weightOf(5)}); !isA[*ConflictError](err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAPIRollbackWritesOverWhateverIsThere(t *testing.T) {
	server := &api{}
	x := newTestAPI(t, server, config.ConfigAPITarget{})
	was := mustRead(t, x)
	server.onWrite = func(n int) { // a rival who is always faster, three times
		if n <= 3 {
			server.weights("0.3"+strconv.Itoa(n), "0.7")
		}
	}
	if err := x.Write(t.Context(), was, Change{To: weightOf(0), Overwrite: true, Key: "k"}); err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, x).Weight; !got.IsZero() {
		t.Errorf("holds %v", got)
	}
	keys := map[string]bool{}
	for _, r := range server.requests {
		keys[r.header.Get("Idempotency-Key")] = true
	}
	if len(server.requests) != 4 || len(keys) != 4 || !keys["k"] {
		t.Errorf("%d writes with the keys %v", len(server.requests), keys)
	}

	server.onWrite = func(int) { server.weights("0.3", "0.7") }
	server.requests = nil
	if err := x.Write(t.Context(), was, Change{To: weightOf(0), Overwrite: true}); !isA[*ConflictError](err) || len(server.requests) != overwriteTries {
		t.Errorf("a rival without end: %v after %d writes", err, len(server.requests))
	}
	ctx, cancel := context.WithCancel(t.Context())
	server.onWrite = func(int) { server.weights("0.3", "0.7"); cancel() }
	if err := x.Write(ctx, was, Change{To: weightOf(0), Overwrite: true}); !isA[*UnreachableError](err) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestAPIRollbackWritesOverAWeightThatIsNoShare(t *testing.T) {
	for _, mode := range []string{"put", "merge_patch", "json_patch"} {
		server := &api{doc: []byte(strings.Replace(plainWeights, "0.01", "-7", 1))}
		x := newTestAPI(t, server, config.ConfigAPITarget{Mode: mode})
		if err := x.Write(t.Context(), Reading{}, Change{To: weightOf(0), Overwrite: true}); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

func header(kv ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(kv); i += 2 {
		h.Set(kv[i], kv[i+1])
	}
	return h
}

// TestAPIAnswersAreErrorsOfTheirOwn has each answer to a write, and what it
// means.
func TestAPIAnswersAreErrorsOfTheirOwn(t *testing.T) {
	refused, conflict, unreachable := isA[*RefusedError], isA[*ConflictError], isA[*UnreachableError]
	for name, tc := range map[string]struct {
		answer answer
		is     func(error) bool
		says   string
		after  time.Duration
	}{
		"400":                           {answer{status: 400, body: []byte(`{"error":"must be string"}`)}, refused, "400 Bad Request: must be string", 0},
		"401":                           {answer{status: 401}, refused, "401", 0},
		"403":                           {answer{status: 403, body: []byte("<html><h1>Forbidden</h1>")}, refused, "403 Forbidden: an HTML page", 0},
		"404":                           {answer{status: 404}, refused, "404", 0},
		"405":                           {answer{status: 405}, refused, "405", 0},
		"409":                           {answer{status: 409}, conflict, "409", 0},
		"412":                           {answer{status: 412}, conflict, "412", 0},
		"415":                           {answer{status: 415}, refused, "415", 0},
		"422":                           {answer{status: 422, body: []byte(`{"detail":"sum is not 1"}`)}, refused, "sum is not 1", 0},
		"428":                           {answer{status: 428}, refused, "428", 0},
		"429 in seconds":                {answer{status: 429, header: header("Retry-After", "7")}, unreachable, "429", 7 * time.Second},
		"429 without":                   {answer{status: 429}, unreachable, "429", 0},
		"503 for a year":                {answer{status: 503, header: header("Retry-After", "31536000")}, unreachable, "503", maxRetryAfter},
		"503 in the past":               {answer{status: 503, header: header("Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT")}, unreachable, "503", 0},
		"503 with nonsense":             {answer{status: 503, header: header("Retry-After", "soon")}, unreachable, "503", 0},
		"500":                           {answer{status: 500}, unreachable, "500", 0},
		"501":                           {answer{status: 501}, refused, "501", 0},
		"502 of a proxy":                {answer{status: 502, body: []byte("<html>")}, unreachable, "502", 0},
		"504":                           {answer{status: 504}, unreachable, "504", 0},
		"299":                           {answer{status: 299}, func(err error) bool { return err == nil }, "", 0},
		"204":                           {answer{status: 204}, func(err error) bool { return err == nil }, "", 0},
		"202":                           {answer{status: 202}, func(err error) bool { return err == nil }, "", 0},
		"200 with another weight in it": {answer{status: 200, body: []byte(strings.Replace(plainWeights, "0.01", "0.9", 1))}, func(err error) bool { return err == nil }, "", 0},
		"300":                           {answer{status: 300}, refused, "redirect", 0},
		"a redirect of a write":         {answer{status: 303, header: header("Location", "/elsewhere")}, refused, "redirect", 0},
		"control characters":            {answer{status: 400, body: []byte("a\x1b[31m\r\nb")}, refused, "400 Bad Request: a[31m b", 0},
		"a long text":                   {answer{status: 400, body: bytes.Repeat([]byte("ab "), 1000)}, refused, "ab...", 0},
		"gzip that is none":             {answer{status: 200, header: header("Content-Encoding", "gzip"), body: []byte("x")}, unreachable, "gzip", 0},
		"the token said back":           {answer{status: 400, body: []byte("you sent Bearer " + apiToken)}, refused, "you sent Bearer ***", 0},
	} {
		t.Run(name, func(t *testing.T) {
			server := &api{answers: map[int]answer{1: tc.answer}}
			x := newTestAPI(t, server, config.ConfigAPITarget{})
			err := x.Write(t.Context(), mustRead(t, x), Change{To: weightOf(5)})
			if !tc.is(err) {
				t.Fatalf("got %T %v", err, err)
			}
			if err == nil {
				return
			}
			if !strings.Contains(err.Error(), tc.says) || len(err.Error()) > 500 || strings.Contains(err.Error(), apiToken) {
				t.Errorf("says %q, want %q in it", err, tc.says)
			}
			if u, ok := errors.AsType[*UnreachableError](err); ok && u.After != tc.after {
				t.Errorf("after %s, want %s", u.After, tc.after)
			}
			if len(server.requests) != 1 {
				t.Errorf("%d writes: the driver tries again, not the target", len(server.requests))
			}
		})
	}
}

func TestAPIReadsOfEveryLiarAreTypedErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		answer answer
		is     func(error) bool
		says   string
	}{
		"a login page":         {answer{status: 200, header: header("Content-Type", "text/html"), body: []byte("\n<!doctype html>")}, isA[*ShapeError], "HTML"},
		"nothing":              {answer{status: 200}, isA[*ShapeError], "empty"},
		"204":                  {answer{status: 204}, isA[*ShapeError], "empty"},
		"broken JSON":          {answer{status: 200, body: []byte(`{"versions":`)}, isA[*ShapeError], "not valid JSON"},
		"YAML":                 {answer{status: 200, body: []byte("versions: {}")}, isA[*ShapeError], "not valid JSON"},
		"no such key":          {answer{status: 200, body: []byte(`{"error":"none"}`)}, isA[*ShapeError], "versions"},
		"another type":         {answer{status: 200, body: []byte(`{"versions":{"canary":{"weight":{}},"stable":{"weight":1}}}`)}, isA[*ShapeError], "single value"},
		"a truth":              {answer{status: 200, body: []byte(`{"versions":{"canary":{"weight":true},"stable":{"weight":1}}}`)}, isA[*ShapeError], "not a weight"},
		"a huge body":          {answer{status: 200, body: bytes.Repeat([]byte(" "), maxDocument+1)}, isA[*ShapeError], "8 MiB"},
		"a bomb":               {answer{status: 200, header: header("Content-Encoding", "gzip"), body: bomb()}, isA[*ShapeError], "8 MiB"},
		"another compression":  {answer{status: 200, header: header("Content-Encoding", "br"), body: []byte("x")}, isA[*ShapeError], `"br"`},
		"cut off":              {answer{status: 200, header: header("Content-Length", "5000"), body: []byte(plainWeights)}, isA[*UnreachableError], "broke off"},
		"409 of a read":        {answer{status: 409}, isA[*RefusedError], "409"},
		"401 with half a body": {answer{status: 401, header: header("Content-Length", "50"), body: []byte("no")}, isA[*RefusedError], "401"},
		"500":                  {answer{status: 500}, isA[*UnreachableError], "500"},
		"404":                  {answer{status: 404}, isA[*RefusedError], "404"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTestAPI(t, &api{answersToRead: &tc.answer}, config.ConfigAPITarget{})
			r, err := x.Read(t.Context())
			if !tc.is(err) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("read %+v, %T %v", r, err, err)
			}
			if err := x.Write(t.Context(), Reading{}, Change{To: weightOf(5)}); !isA[*RefusedError](err) && !isA[*UnreachableError](err) {
				t.Errorf("a write: %T %v", err, err)
			}
		})
	}
}

func bomb() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(bytes.Repeat([]byte(" "), 2*maxDocument))
	_ = z.Close()
	return b.Bytes()
}

func TestAPIThatCommitsAndSays500IsReadBack(t *testing.T) {
	for name, lie := range map[string]answer{
		"500": {status: 500}, "cut off": {status: 200, header: header("Content-Length", "5000"), body: []byte("{")},
	} {
		server := &api{answers: map[int]answer{1: lie}, afterCommit: true}
		x := newTestAPI(t, server, config.ConfigAPITarget{})
		if err := x.Write(t.Context(), mustRead(t, x), Change{To: weightOf(5)}); !isA[*UnreachableError](err) {
			t.Errorf("%s: %v", name, err)
		}
		if got := mustRead(t, x).Weight; got != weightOf(5) {
			t.Errorf("%s: holds %v", name, got)
		}
	}
}

func TestAPIThatDropsAWriteShowsInTheReadBackOnly(t *testing.T) {
	server := &api{neverCommits: true}
	x := newTestAPI(t, server, config.ConfigAPITarget{})
	if err := x.Write(t.Context(), mustRead(t, x), Change{To: weightOf(5)}); err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, x).Weight; got != weightOf(1) {
		t.Errorf("holds %v", got)
	}
}

func TestAPIStaleReadsEndAndAStaleWriteIsRefused(t *testing.T) {
	server := &api{}
	x := newTestAPI(t, server, config.ConfigAPITarget{})
	if err := x.Write(t.Context(), mustRead(t, x), Change{To: weightOf(5)}); err != nil {
		t.Fatal(err)
	}
	server.stale = 3
	var seen []int64
	for range 4 {
		seen = append(seen, mustRead(t, x).Weight.Slots)
	}
	if !cmp.Equal(seen, []int64{1, 1, 1, 5}) {
		t.Errorf("seen %v", seen)
	}
	server.stale = 1
	was := mustRead(t, x) // stale
	if err := x.Write(t.Context(), was, Change{To: weightOf(9)}); !isA[*ConflictError](err) {
		t.Errorf("from a stale reading: %v", err)
	}
	server.stale = 2 // a rollback reads anew until its ETag is the newest
	if err := x.Write(t.Context(), was, Change{To: weightOf(0), Overwrite: true}); err != nil {
		t.Error(err)
	}
	if got := mustRead(t, x).Weight; !got.IsZero() {
		t.Errorf("holds %v", got)
	}
}

func TestAPIThatIsSlowOrGoneIsUnreachable(t *testing.T) {
	release := make(chan struct{})
	x := newTestAPI(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_, _ = w.Write([]byte(`{"versions":`))
			w.(http.Flusher).Flush()
		}
		<-release
	}), config.ConfigAPITarget{Timeout: 50 * time.Millisecond})
	t.Cleanup(func() { close(release) }) // before the server is closed
	for _, path := range []string{"/head", "/body"} {
		x.readURL = strings.Replace(x.readURL, "/v1/services/chat", path, 1)
		if _, err := x.Read(t.Context()); !isA[*UnreachableError](err) || !strings.Contains(err.Error(), "no answer within 50ms") {
			t.Errorf("%s: %v", path, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Read(ctx); !isA[*UnreachableError](err) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	nobody := dialAPI(t, config.ConfigAPITarget{URL: fmt.Sprintf("http://user:pass-word-1@127.0.0.1:%d/secret-path?key=abcdefgh", servertest.Port(t))}, Options{})
	_, err := nobody.Read(t.Context())
	if !isA[*UnreachableError](err) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody listens: %v", err)
	}
	for _, secret := range []string{"pass-word-1", "abcdefgh"} {
		if strings.Contains(err.Error(), secret) || strings.Contains(nobody.String(), secret) {
			t.Errorf("%s shows in %q or %q", secret, err, nobody)
		}
	}
}

func TestAPITokenStaysWithItsHost(t *testing.T) {
	reached := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached = true
		fmt.Fprint(w, plainWeights)
	}))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		x := newTestAPI(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/x?token="+apiToken, status)
		}), config.ConfigAPITarget{Headers: map[string]string{"X-Api-Key": "${API_TOKEN}"}})
		_, err := x.Read(t.Context())
		if !isA[*RefusedError](err) || !strings.Contains(err.Error(), elsewhere.URL) || strings.Contains(err.Error(), apiToken) {
			t.Errorf("%d: %v", status, err)
		}
	}
	if reached {
		t.Error("another host was asked")
	}
	server := &api{doc: []byte(plainWeights)}
	x := newTestAPI(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/new" {
			http.Redirect(w, r, "/new", http.StatusPermanentRedirect)
			return
		}
		server.ServeHTTP(w, r)
	}), config.ConfigAPITarget{})
	if err := x.Write(t.Context(), mustRead(t, x), Change{To: weightOf(5)}); err != nil || len(server.requests) != 1 || server.requests[0].method != "PUT" {
		t.Errorf("the same host, the same method: %v, %v", err, server.requests)
	}
}

func TestAPIOneOfEightWritersWins(t *testing.T) {
	for _, mode := range []string{"put", "template"} {
		server := &api{}
		body := ""
		if mode == "template" {
			body = strings.NewReplacer("0.99", "{stable}", "0.01", "{canary}").Replace(plainWeights)
		}
		oneOfEightWins(t, newTestAPI(t, server, config.ConfigAPITarget{Mode: mode, Body: body}))
	}
}

func TestAPIFailedTestOfAJSONPatchIsAConflict(t *testing.T) {
	server := &api{noETag: true, answers: map[int]answer{1: {status: 422, body: []byte("test failed")}}}
	x := newTestAPI(t, server, config.ConfigAPITarget{Mode: "json_patch"})
	server.onWrite = func(int) { server.weights("0.3", "0.7") }
	err := x.Write(t.Context(), mustRead(t, x), Change{To: weightOf(5)})
	if c, ok := errors.AsType[*ConflictError](err); !ok || c.Held == nil || *c.Held != weightOf(30) {
		t.Errorf("somebody moved: %v", err)
	}
	server.onWrite, server.requests = nil, nil
	if err := x.Write(t.Context(), mustRead(t, x), Change{To: weightOf(5)}); !isA[*RefusedError](err) {
		t.Errorf("nobody moved: %v", err)
	}
}

func TestAPIKeepsTheStateInTheSameWrite(t *testing.T) {
	for name, tc := range map[string]struct{ doc, at, after string }{
		"where there is none": {
			`{"id":7, "versions":{"canary":{"weight":0.01},"stable":{"weight":0.99}}}`, "",
			`{"id":7, "versions":{"canary":{"weight":0.05},"stable":{"weight":0.95}}, "state": %s}`,
		},
		"where there is one": {
			`{"state":"{}","versions":{"canary":{"weight":0.01},"stable":{"weight":0.99}}}`, "",
			`{"state":%s,"versions":{"canary":{"weight":0.05},"stable":{"weight":0.95}}}`,
		},
		"null": {
			`{"state":null,"versions":{"canary":{"weight":0.01},"stable":{"weight":0.99}}}`, "state",
			`{"state":%s,"versions":{"canary":{"weight":0.05},"stable":{"weight":0.95}}}`,
		},
		"in an object that is not there": {
			`{"versions":{"canary":{"weight":0.01},"stable":{"weight":0.99}}}`, "metadata.canaryctl",
			`{"versions":{"canary":{"weight":0.05},"stable":{"weight":0.95}}, "metadata": {"canaryctl": %s}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := &api{doc: []byte(tc.doc)}
			h := httptest.NewServer(server)
			t.Cleanup(h.Close)
			x := dialAPI(t, config.ConfigAPITarget{URL: h.URL, TokenEnv: "API_TOKEN", StateAt: tc.at}, Options{KeepState: true})
			if !x.KeepsState() {
				t.Fatal("it keeps no state")
			}
			state := "{\"schema\":1,\"why\":\"a \\\"b\\\" <&> é\\n\"}\n"
			was := mustRead(t, x)
			if err := x.Write(t.Context(), was, Change{To: weightOf(5), State: []byte(state)}); err != nil {
				t.Fatal(err)
			}
			var doc map[string]any
			if err := json.Unmarshal(server.doc, &doc); err != nil {
				t.Fatalf("%v in %s", err, server.doc)
			}
			var want map[string]any
			quoted, _ := json.Marshal(state)
			if err := json.Unmarshal(fmt.Appendf(nil, tc.after, quoted), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, doc); diff != "" {
				t.Errorf("the document (-want +got):\n%s", diff)
			}
			is := mustRead(t, x)
			if string(is.State) != state || is.Weight != weightOf(5) {
				t.Errorf("read back %+v", is)
			}
			if err := x.Write(t.Context(), is, Change{To: weightOf(10)}); err != nil {
				t.Fatal(err)
			}
			if got := mustRead(t, x); string(got.State) != state {
				t.Errorf("a write without state changed it to %q", got.State)
			}
		})
	}
}

func TestAPIStateOfAnotherIsAConflict(t *testing.T) {
	server := &api{noETag: true}
	h := httptest.NewServer(server)
	t.Cleanup(h.Close)
	server.doc = []byte(`{"state":"a","versions":{"canary":{"weight":0.01},"stable":{"weight":0.99}}}`)
	x := dialAPI(t, config.ConfigAPITarget{URL: h.URL, TokenEnv: "API_TOKEN"}, Options{KeepState: true})
	was := mustRead(t, x)
	server.set(bytes.Replace(server.doc, []byte(`"a"`), []byte(`"b"`), 1))
	if err := x.Write(t.Context(), was, Change{To: weightOf(5)}); !isA[*ConflictError](err) {
		t.Errorf("got %v", err)
	}
	server.set([]byte(`{"state":{"a":1},"versions":{"canary":{"weight":0.01},"stable":{"weight":0.99}}}`))
	if _, err := x.Read(t.Context()); !isA[*ShapeError](err) {
		t.Errorf("an object where the state should stand: %v", err)
	}
}

func TestAPIPatchesCarryTheState(t *testing.T) {
	const doc = `{"versions":{"canary":{"weight":0.01},"stable":{"weight":0.99}},"meta":{"a":1},"notes":[{"name":"x","text":""},{"name":"canaryctl","text":"old"}]}`
	for name, tc := range map[string]struct{ mode, at, want string }{
		"merge":                     {"merge_patch", "", `{"state":"{\"s\":1}","versions":{"canary":{"weight":0.05},"stable":{"weight":0.95}}}`},
		"merge in an object":        {"merge_patch", "meta.b.state", `{"meta":{"b":{"state":"{\"s\":1}"}},"versions":{"canary":{"weight":0.05},"stable":{"weight":0.95}}}`},
		"merge in a list":           {"merge_patch", "notes[name=canaryctl].text", `{"notes":[{"name":"x","text":""},{"name":"canaryctl","text":"{\"s\":1}"}],"versions":{"canary":{"weight":0.05},"stable":{"weight":0.95}}}`},
		"add":                       {"json_patch", "", `{"op":"add","path":"/state","value":"{\"s\":1}"}`},
		"add in an object":          {"json_patch", "meta.state", `{"op":"add","path":"/meta/state","value":"{\"s\":1}"}`},
		"add objects that are none": {"json_patch", "meta.b.c", `{"op":"add","path":"/meta/b","value":{"c":"{\"s\":1}"}}`},
		"add below nothing":         {"json_patch", "x.b.c", `{"op":"add","path":"/x","value":{"b":{"c":"{\"s\":1}"}}}`},
		"replace in a list":         {"json_patch", "notes[name=canaryctl].text", `{"op":"add","path":"/notes/1/text","value":"{\"s\":1}"}`},
	} {
		t.Run(name, func(t *testing.T) {
			server := &api{doc: []byte(doc)}
			h := httptest.NewServer(server)
			t.Cleanup(h.Close)
			x := dialAPI(t, config.ConfigAPITarget{URL: h.URL, TokenEnv: "API_TOKEN", Mode: tc.mode, StateAt: tc.at}, Options{KeepState: true})
			if err := x.Write(t.Context(), mustRead(t, x), Change{To: weightOf(5), State: []byte(`{"s":1}`)}); err != nil {
				t.Fatal(err)
			}
			if got := server.requests[0].body; got != tc.want && !strings.HasSuffix(got, ","+tc.want+"]") {
				t.Errorf("sent\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
	_, err := newConfigAPI(&config.ConfigAPITarget{URL: "http://h", Mode: "template", Body: "{canary}"}, Options{KeepState: true})
	if err == nil || !strings.Contains(err.Error(), "in_target") {
		t.Errorf("a template: %v", err)
	}
}

func TestAPIVariablesComeFromTheEnvironment(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg   config.ConfigAPITarget
		names string // that the error must name
	}{
		"token":         {config.ConfigAPITarget{URL: "http://h", TokenEnv: "NO_TOKEN"}, "NO_TOKEN"},
		"url":           {config.ConfigAPITarget{URLEnv: "NO_URL"}, "NO_URL"},
		"part of a url": {config.ConfigAPITarget{URL: "http://h/${NO_PART}/x"}, "NO_PART"},
		"header":        {config.ConfigAPITarget{URL: "http://h", Headers: map[string]string{"X-A": "${NO_HEADER}"}}, "NO_HEADER"},
		"read url":      {config.ConfigAPITarget{URL: "http://h", ReadURL: "${NO_READ}"}, "NO_READ"},
		"write url":     {config.ConfigAPITarget{URL: "http://h", WriteURL: "ftp://h"}, "write_url"},
		"a line end":    {config.ConfigAPITarget{URL: "http://h", TokenEnv: "TWO_LINES"}, "TWO_LINES"},
		"no URL in it":  {config.ConfigAPITarget{URLEnv: "TWO_WORDS"}, "url_env"},
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"TWO_LINES": "secret-a\nsecret-b", "TWO_WORDS": "secret-a:secret-b"}
			_, err := newConfigAPI(&tc.cfg, Options{Getenv: func(n string) string { return env[n] }})
			if err == nil || !strings.Contains(err.Error(), tc.names) || strings.Contains(err.Error(), "secret-") {
				t.Errorf("got %v", err)
			}
		})
	}
	server := &api{}
	x := newTestAPI(t, server, config.ConfigAPITarget{Headers: map[string]string{"x-tenant": "t-${API_TOKEN}", "Content-Type": "application/x"}})
	if err := x.Write(t.Context(), mustRead(t, x), Change{To: weightOf(5)}); err != nil {
		t.Fatal(err)
	}
	if got := server.requests[0].header.Get("X-Tenant"); got != "t-"+apiToken {
		t.Errorf("X-Tenant: %q", got)
	}
}

// TestAPINoErrorShowsASecret has a server that says everything back.
func TestAPINoErrorShowsASecret(t *testing.T) {
	for _, status := range []int{200, 302, 400, 401, 403, 404, 409, 412, 422, 429, 500, 503} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://"+apiToken+".example/"+apiToken)
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"detail": %q, "versions": {"canary": {"weight": %q}, "stable": {"weight": 1}}}`, fmt.Sprint(r.Header, r.URL), apiToken)
		}))
		x := dialAPI(t, config.ConfigAPITarget{
			URL: server.URL + "/${API_TOKEN}?key=${API_TOKEN}", TokenEnv: "API_TOKEN", Headers: map[string]string{"X-Api-Key": "${API_TOKEN}"},
		}, Options{})
		_, readErr := x.Read(t.Context())
		writeErr := x.Write(t.Context(), Reading{}, Change{To: weightOf(5)})
		overErr := x.Write(t.Context(), Reading{}, Change{To: weightOf(5), Overwrite: true})
		for _, err := range []error{readErr, writeErr, overErr} {
			if text := fmt.Sprintf("%v %+v %#v", err, err, x.String()); strings.Contains(text, apiToken) {
				t.Errorf("%d: the token shows: %s", status, text)
			}
		}
		if readErr == nil || writeErr == nil {
			t.Errorf("%d: %v, %v", status, readErr, writeErr)
		}
		server.Close()
	}
}

func TestAPIHintOf401SaysWhichVariable(t *testing.T) {
	server := &api{}
	x := newTestAPI(t, server, config.ConfigAPITarget{TokenScheme: "Token"})
	_, err := x.Read(t.Context())
	if r, ok := errors.AsType[*RefusedError](err); !ok || !strings.Contains(r.Hint, "API_TOKEN is set") {
		t.Errorf("got %v, %+v", err, r)
	}
	h := httptest.NewServer(server)
	t.Cleanup(h.Close)
	_, err = dialAPI(t, config.ConfigAPITarget{URL: h.URL}, Options{}).Read(t.Context())
	if r, ok := errors.AsType[*RefusedError](err); !ok || !strings.Contains(r.Hint, "token_env") {
		t.Errorf("got %v, %+v", err, r)
	}
	alone := dialAPI(t, config.ConfigAPITarget{URL: h.URL, TokenEnv: "API_TOKEN", TokenScheme: "-"}, Options{})
	if got := alone.web.header.Get("Authorization"); got != apiToken {
		t.Errorf("the token alone: %q", got)
	}
}

func TestAPITooFineIsRefusedBeforeAnybodyIsAsked(t *testing.T) {
	x := dialAPI(t, config.ConfigAPITarget{URL: "http://127.0.0.1:1", Unit: config.Unit{Whole: 100}}, Options{})
	w := release.Weight{Slots: 5, Ring: 1000}
	if err := x.Write(t.Context(), Reading{}, Change{To: w}); !isA[*FineError](err) || !strings.Contains(err.Error(), "its finest step is 1 %") {
		t.Errorf("got %v", err)
	}
	if err := x.Check(w); !isA[*FineError](err) {
		t.Errorf("check: %v", err)
	}
}

// TestAPIAgainstCaddy uses the admin API of a real server, which has ETags (in
// Debian's 2.6 as a trailer) and If-Match.
func TestAPIAgainstCaddy(t *testing.T) {
	caddy := servertest.Program(t, "caddy", "caddy")
	dir := t.TempDir()
	admin := fmt.Sprintf("127.0.0.1:%d", servertest.Port(t))
	cfg := fmt.Sprintf(`{
  "admin": {"listen": %q, "config": {"persist": false}},
  "apps": {"http": {"servers": {"llm": {
    "listen": ["127.0.0.1:%d"], "automatic_https": {"disable": true},
    "routes": [{"@id": "llm_split", "handle": [{"handler": "vars", "weights": {"canary": 1, "stable": 99}, "note": "<&>"}]}]
  }}}}
}`, admin, servertest.Port(t))
	path := filepath.Join(dir, "caddy.json")
	if err := os.WriteFile(path, []byte(cfg), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", dir)
	servertest.Start(t, caddy, []string{"run", "--config", path}, servertest.HTTP("http://"+admin+"/config/"))
	x := dialAPI(t, config.ConfigAPITarget{
		URL: "http://" + admin + "/id/llm_split", WriteMethod: "PATCH", Unit: config.Unit{Whole: 100, Places: 2},
		Canary: "handle[handler=vars].weights.canary", Stable: "handle[handler=vars].weights.stable",
	}, Options{})
	was := mustRead(t, x)
	if was.Weight != weightOf(1) || !isStrong(was.Revision) {
		t.Fatalf("read %+v", was)
	}
	if err := x.Write(t.Context(), was, Change{To: weightOf(5)}); err != nil {
		t.Fatal(err)
	}
	is := mustRead(t, x)
	if is.Weight != weightOf(5) || is.Revision == was.Revision {
		t.Errorf("read back %+v", is)
	}
	if err := x.Write(t.Context(), was, Change{To: weightOf(10)}); !isA[*ConflictError](err) {
		t.Errorf("from an old reading: %v", err)
	}
	// The same document with an old ETag: Caddy itself must say 412.
	a, err := x.web.do(t.Context(), "PATCH", x.writeURL, x.headers(was.Revision, Change{}), []byte(`{}`))
	if err != nil || a.status != http.StatusPreconditionFailed || !isA[*ConflictError](x.web.verdict(a)) {
		t.Errorf("an old ETag: %+v, %v", a, err)
	}
	oneOfEightWins(t, x)
	if err := x.Write(t.Context(), was, Change{To: weightOf(0), Overwrite: true}); err != nil {
		t.Error(err)
	}
	if got := mustRead(t, x).Weight; !got.IsZero() {
		t.Errorf("a rollback left %v", got)
	}
}
