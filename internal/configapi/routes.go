package configapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
)

// route is one operation of the API.
type route struct {
	method, path string
	handle       func(*Server, http.ResponseWriter, *http.Request) error
	access       access
}

// access says who may use a route.
type access uint8

const (
	withToken access = iota
	// localOrToken: without a token on loopback only.
	localOrToken
	anybody
)

// routes are all there are; the OpenAPI document describes each.
var routes = []route{
	{http.MethodGet, "/v1/services", (*Server).list, withToken},
	{http.MethodGet, "/v1/services/{name}", (*Server).get, withToken},
	{http.MethodPut, "/v1/services/{name}", (*Server).put, withToken},
	{http.MethodGet, "/healthz", (*Server).health, anybody},
	{http.MethodGet, "/metrics", (*Server).metrics, localOrToken},
	{http.MethodGet, "/openapi.json", (*Server).openAPI, localOrToken},
}

// mux sends requests to their routes and answers those that have none with a
// problem: an unknown path, or a method that a known path does not have.
func (s *Server) mux() http.Handler {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, r := range routes {
		mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, req *http.Request) {
			s.answer(w, r.handle(s, w, req))
		})
		methods[r.path] = append(methods[r.path], r.method)
		if r.method == http.MethodGet {
			methods[r.path] = append(methods[r.path], http.MethodHead)
		}
	}
	for path, allowed := range methods {
		slices.Sort(allowed)
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			s.answer(w, methodNotAllowed.because("only "+strings.Join(allowed, ", ")+" here"))
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.answer(w, notFound.because("there is nothing here; /openapi.json says what there is"))
	})
	return mux
}

// answer sends what a handler returned, if it is an error: a problem as it is,
// anything else as one that tells the client nothing of the inside.
func (s *Server) answer(w http.ResponseWriter, err error) {
	if err == nil {
		return
	}
	p, ok := errors.AsType[*problem](err)
	if !ok {
		s.report(err)
		p = internal.because("the request could not be carried out; the server's own output says why")
	}
	p.write(w)
}

// guarded is what stands before every request: counting, panics, the name it
// was sent to, the token.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &statusWriter{ResponseWriter: w}
		defer func() { s.requests.add(r.Method, seen.status()) }()
		defer s.recoverPanic(seen, r)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if err := s.admit(w, r); err != nil {
			s.answer(seen, err)
			return
		}
		next.ServeHTTP(seen, r)
	})
}

// recoverPanic answers a request whose handler panicked.
func (s *Server) recoverPanic(w *statusWriter, r *http.Request) {
	why := recover()
	if why == nil {
		return
	}
	s.report(fmt.Errorf("panic at %s %s: %v\n%s", r.Method, r.URL.Path, why, debug.Stack()))
	if w.code == 0 {
		internal.because("the request could not be carried out; the server's own output says why").write(w)
		return
	}
	panic(http.ErrAbortHandler) // the answer has begun: it is broken off, so that nobody takes it for whole
}

// admit checks that a request may be carried out.
//
// Without a token a server on loopback answers to names of this machine only:
// a page in a browser can have any other name lead here (DNS rebinding), and
// would then count as the same site.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) error {
	if s.token == nil {
		if !localName(r.Host) {
			return misdirected.because("without a token this server answers to localhost, 127.0.0.1 and [::1] only")
		}
		return nil
	}
	switch accessOf(r.URL.Path) {
	case anybody:
		return nil
	case localOrToken:
		if s.loopback {
			return nil
		}
	case withToken:
	}
	return s.checkToken(w, r)
}

// accessOf returns who may use a path; whoever asks for one that is not there
// must show the token before being told.
func accessOf(path string) access {
	for _, r := range routes {
		if r.path == path {
			return r.access
		}
	}
	return withToken
}

func localName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// checkToken compares the bearer token in a time that tells nothing of it, its
// length included: what is compared are digests.
func (s *Server) checkToken(w http.ResponseWriter, r *http.Request) error {
	scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		w.Header().Set("WWW-Authenticate", `Bearer realm="canaryctl"`)
		return unauthorized.because("send Authorization: Bearer TOKEN")
	}
	got := sha256.Sum256([]byte(strings.TrimSpace(shown)))
	if subtle.ConstantTimeCompare(got[:], s.token[:]) != 1 {
		w.Header().Set("WWW-Authenticate", `Bearer realm="canaryctl", error="invalid_token"`)
		return unauthorized.because("the token is not this server's")
	}
	return nil
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	code int // 0: not begun
}

// WriteHeader implements [http.ResponseWriter].
func (w *statusWriter) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write implements [http.ResponseWriter].
func (w *statusWriter) Write(p []byte) (int, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

func (w *statusWriter) status() int {
	if w.code == 0 {
		return http.StatusOK // what net/http sends for a handler that wrote nothing
	}
	return w.code
}
