package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// passing is the body of a request on a path that is passed on: nothing of it is
// kept, and its user is not waited for without end.
type passing struct {
	io.ReadCloser
	deadline func(time.Time) // of the next read
	stall    time.Duration
	broke    atomic.Bool
}

// newPassing returns nil for a request without a body.
func newPassing(r *http.Request, deadline func(time.Time), stall time.Duration) *passing {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil
	}
	return &passing{ReadCloser: r.Body, deadline: deadline, stall: stall}
}

// Read implements [io.Reader].
func (b *passing) Read(p []byte) (int, error) {
	b.deadline(time.Now().Add(b.stall))
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		b.deadline(time.Time{}) // else it would end the watch for a user who goes away
	case err != nil && !errors.Is(err, http.ErrBodyReadAfterClose):
		b.broke.Store(true)
	}
	return n, err
}

// brokeOff reports whether the user did not send all of the request.
func (x *exchange) brokeOff() bool {
	return x.body.brokeOff() || x.passing != nil && x.passing.broke.Load()
}
