package configapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	one   = `{"versions":{"stable":{"weight":0.99},"canary":{"weight":0.01}}}`
	five  = `{"versions":{"stable":{"weight":0.95},"canary":{"weight":0.05}}}`
	token = "a-token-of-the-tests"
)

// client talks to a server over HTTP and holds every request and answer
// against the OpenAPI document.
type client struct {
	t      testing.TB
	server *Server
	url    string
	spec   *spec

	mu       sync.Mutex
	at       time.Time
	reported []error
}

// serve starts a server on a directory. Options are as given, but for the
// clock, which stands until [client.pass].
func serve(t testing.TB, o Options) *client {
	t.Helper()
	c := &client{t: t, spec: loadSpec(t), at: time.Date(2026, 3, 2, 14, 0, 0, 0, time.UTC)}
	if o.Now == nil {
		o.Now = c.now
	}
	o.Report = func(err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reported = append(c.reported, err)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	c.server = s
	h := httptest.NewServer(s.Handler())
	c.url = h.URL
	t.Cleanup(func() {
		h.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// local is a server without a token on loopback.
func local(t testing.TB) *client { return serve(t, Options{Dir: t.TempDir(), Loopback: true}) }

func (c *client) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *client) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func (c *client) reports() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reported
}

// reply is an answer with its body read.
type reply struct {
	*http.Response
	body    []byte
	problem problem // zero for a success
}

func (r *reply) etag() string { return r.Header.Get("ETag") }

// kind is the problem's, without the address of the page.
func (r *reply) kind() string { return strings.TrimPrefix(r.problem.Type, typeBase) }

// do sends a request; headers are "Name: value".
func (c *client) do(method, path, body string, headers ...string) *reply {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ":")
		value = strings.TrimSpace(value)
		if name == "Host" {
			req.Host = value
		} else {
			req.Header.Add(name, value)
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		c.t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		c.t.Fatal(err)
	}
	r := &reply{Response: resp, body: got}
	if resp.StatusCode >= 400 && method != http.MethodHead {
		if err := json.Unmarshal(got, &r.problem); err != nil {
			c.t.Errorf("%s %s: %d is no problem document: %v: %s", method, path, resp.StatusCode, err, got)
		}
		if r.problem.Status != resp.StatusCode || r.problem.Detail == "" {
			c.t.Errorf("%s %s: %d with %+v", method, path, resp.StatusCode, r.problem)
		}
	}
	if err := c.spec.check(req, body, r); err != nil {
		c.t.Errorf("%s %s: %d is not as the OpenAPI document says: %v\n%s", method, path, resp.StatusCode, err, got)
	}
	return r
}

func (c *client) create(name, body string) *reply {
	c.t.Helper()
	r := c.do(http.MethodPut, "/v1/services/"+name, body, "If-None-Match: *")
	if r.StatusCode != http.StatusCreated {
		c.t.Fatalf("create %s: %d %s", name, r.StatusCode, r.body)
	}
	return r
}

// stored is a service's document as it is read.
func (c *client) stored(name string) string {
	c.t.Helper()
	r := c.do(http.MethodGet, "/v1/services/"+name, "")
	if r.StatusCode != http.StatusOK {
		c.t.Fatalf("read %s: %d %s", name, r.StatusCode, r.body)
	}
	return string(r.body)
}

// spec is the OpenAPI document, to hold traffic against.
type spec struct {
	doc      map[string]any
	compiler *jsonschema.Compiler
	mu       sync.Mutex
	schemas  map[string]*jsonschema.Schema
}

func loadSpec(t testing.TB) *spec {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(OpenAPI()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	return &spec{doc: doc.(map[string]any), compiler: c, schemas: map[string]*jsonschema.Schema{}}
}

// at follows a path of keys and the references on it; it returns the pointer
// to where it ended.
func (s *spec) at(pointer string, keys ...string) (any, string, error) {
	var node any = s.doc
	where := ""
	for _, key := range append(strings.Split(strings.Trim(pointer, "/"), "/"), keys...) {
		if key == "" {
			continue
		}
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		object, _ := node.(map[string]any)
		next, ok := object[key]
		if !ok {
			return nil, "", fmt.Errorf("%s has no %q", where, key)
		}
		node, where = next, where+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
		if object, ok := node.(map[string]any); ok && object["$ref"] != nil {
			var err error
			if node, where, err = s.at(strings.TrimPrefix(object["$ref"].(string), "#")); err != nil {
				return nil, "", err
			}
		}
	}
	return node, where, nil
}

func (s *spec) compile(pointer string) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.schemas[pointer] == nil {
		schema, err := s.compiler.Compile("openapi.json#" + strings.NewReplacer("{", "%7B", "}", "%7D").Replace(pointer))
		if err != nil {
			return nil, err
		}
		s.schemas[pointer] = schema
	}
	return s.schemas[pointer], nil
}

func (s *spec) validate(pointer string, value any) error {
	schema, err := s.compile(pointer)
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// check holds a request and its answer against the document. Requests that the
// server refused may break it, answers never.
func (s *spec) check(req *http.Request, body string, r *reply) error {
	path := pathOf(req.URL.EscapedPath())
	if _, _, err := s.at("/paths", path); err != nil {
		if r.StatusCode == http.StatusNotFound || r.StatusCode == http.StatusUnauthorized || r.StatusCode == http.StatusMisdirectedRequest {
			return nil // there is no such path, and that is what was said
		}
		return err
	}
	method := strings.ToLower(req.Method)
	if req.Method == http.MethodHead {
		method = "get"
	}
	_, operation, err := s.at("/paths", path, method)
	if err != nil {
		if r.StatusCode != http.StatusMethodNotAllowed && r.StatusCode != http.StatusUnauthorized {
			return err
		}
		operation = "/paths/" + strings.ReplaceAll(path, "/", "~1") + "/get"
	}
	if method == "put" && r.StatusCode < 300 {
		if err := s.checkBody(operation+"/requestBody", "application/json", []byte(body)); err != nil {
			return fmt.Errorf("request: %w", err)
		}
	}
	_, answer, err := s.at(operation+"/responses", fmt.Sprint(r.StatusCode))
	if err != nil {
		return err
	}
	if err := s.checkHeaders(answer, r.Header); err != nil {
		return err
	}
	if req.Method == http.MethodHead || r.StatusCode == http.StatusNotModified {
		return nil
	}
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return s.checkBody(answer, media, r.body)
}

func pathOf(path string) string {
	if name, ok := strings.CutPrefix(path, "/v1/services/"); ok && !strings.Contains(name, "/") {
		return "/v1/services/{name}"
	}
	return path
}

func (s *spec) checkBody(at, media string, body []byte) error {
	_, schema, err := s.at(at, "content", media, "schema")
	if err != nil {
		return err
	}
	if media == "text/plain" {
		return s.validate(schema, string(body))
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return s.validate(schema, value)
}

// checkHeaders checks that headers of the document are as it says, and that
// the API's own headers are in it.
func (s *spec) checkHeaders(answer string, h http.Header) error {
	declared, where, err := s.at(answer, "headers")
	if err != nil {
		declared, where = map[string]any{}, ""
	}
	for name := range declared.(map[string]any) {
		header, at, err := s.at(where, name)
		if err != nil {
			return err
		}
		value := h.Get(name)
		if value == "" {
			if header.(map[string]any)["required"] == true {
				return fmt.Errorf("header %s is missing", name)
			}
			continue
		}
		_, schema, err := s.at(at, "schema")
		if err != nil {
			return err
		}
		if err := s.validate(schema, value); err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
	}
	for _, name := range []string{"ETag", "Canaryctl-Token", "Idempotency-Replayed", "Location", "WWW-Authenticate", "Allow"} {
		if h.Get(name) != "" && declared.(map[string]any)[name] == nil {
			return fmt.Errorf("header %s is not in the document", name)
		}
	}
	return nil
}
