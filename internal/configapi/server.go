// Package configapi is the config API that `canaryctl serve` answers: one JSON
// document a service, read and replaced over HTTP with compare-and-swap, and
// kept on disk. It is the reference for the config_api target.
//
//	s, err := configapi.New(configapi.Options{Dir: ".canaryctl/serve", Token: token, Now: time.Now})
//	defer s.Close()
//	http.Serve(listener, s.Handler())
//
// What was put is kept byte for byte; the server reads it only to check it. A
// document on disk is always a whole one, old or new. It moves no weight by
// itself and knows nothing of releases.
package configapi

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"sync"
	"time"
)

// The limits of what clients may send.
const (
	// MaxBody is the largest document, in bytes.
	MaxBody = 1 << 20
	// MaxDepth is how deep objects and arrays of a document may be nested.
	MaxDepth = 32
	// MaxServices is how many services one server keeps.
	MaxServices = 1000
	// MaxAnswers is how many answers are kept for each service's idempotency
	// keys; the oldest go first.
	MaxAnswers = 128
	// KeepAnswers is how long they are kept.
	KeepAnswers = 24 * time.Hour
)

// Options are what a server needs of the world.
type Options struct {
	Dir string // where documents are kept; made if it is not there
	// Token is what clients must show as a bearer token; "": none, which only
	// a server on loopback may do.
	Token string
	// Loopback says that only this machine can connect. /metrics and
	// /openapi.json then need no token.
	Loopback bool
	Version  string           // of canaryctl, for the metrics
	Now      func() time.Time // nil: time.Now
	// Report is told what went wrong inside, such as a full disk; it may be
	// called from several goroutines. nil: nobody is.
	Report func(error)
}

// ErrNoToken says that a server that others than this machine can reach was
// given no token.
var ErrNoToken = errors.New("a server that is not on loopback needs a token")

// Server keeps documents and answers requests. It may be used from several
// goroutines.
type Server struct {
	store    *store
	token    *[sha256.Size]byte // nil: none is asked for
	loopback bool
	version  string
	now      func() time.Time
	report   func(error)
	handler  http.Handler

	requests requestCounts
	putting  sync.Mutex // held from the check of a precondition to the write it allows
}

// New opens the directory, locks it, and loads what is in it. Errors are
// [ErrNoToken], *InUseError, *CorruptError, or of the file system.
func New(o Options) (*Server, error) {
	if o.Token == "" && !o.Loopback {
		return nil, ErrNoToken
	}
	store, err := openStore(o.Dir)
	if err != nil {
		return nil, err
	}
	s := &Server{store: store, loopback: o.Loopback, version: o.Version, now: o.Now, report: o.Report}
	if o.Token != "" {
		s.token = new(sha256.Sum256([]byte(o.Token)))
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.report == nil {
		s.report = func(error) {}
	}
	s.handler = s.guarded(s.mux())
	return s, nil
}

// Handler returns what answers requests.
func (s *Server) Handler() http.Handler { return s.handler }

// Close waits for a write under way and gives the directory free. Requests
// that come later find it closed.
func (s *Server) Close() error {
	s.putting.Lock()
	defer s.putting.Unlock()
	return s.store.close()
}
