package proxy

import (
	"net/http"
	"time"
)

// userWriter writes to the user. A user who does not read what was written is
// not waited for without end: the place among the requests under way is
// somebody else's, too.
type userWriter struct {
	http.ResponseWriter
	to    *http.ResponseController
	stall time.Duration
	err   error // of the last write
}

func newUserWriter(w http.ResponseWriter, stall time.Duration) *userWriter {
	addNone(w.Header())
	return &userWriter{ResponseWriter: w, to: http.NewResponseController(w), stall: stall}
}

// addNone keeps net/http from adding headers that an answer has not: a nil value
// does.
func addNone(h http.Header) {
	for _, name := range []string{"Content-Type", "Date"} {
		if _, has := h[name]; !has {
			h[name] = nil
		}
	}
}

// Unwrap is for [http.ResponseController].
func (w *userWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements [http.ResponseWriter]. That the body may come is said by
// net/http, when the body is read; stable's word for it would be a second one.
func (w *userWriter) WriteHeader(status int) {
	if status == http.StatusContinue {
		return
	}
	addNone(w.Header()) // an interim answer took everything out
	w.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *userWriter) Write(p []byte) (int, error) {
	w.deadline()
	n, err := w.ResponseWriter.Write(p)
	if err != nil {
		w.err = err
	}
	return n, err
}

// FlushError is for [http.ResponseController].
func (w *userWriter) FlushError() error {
	w.deadline()
	err := w.to.Flush()
	if err != nil {
		w.err = err
	}
	return err
}

// deadline gives the next write its time; connections that know none, as in
// tests, go without.
func (w *userWriter) deadline() {
	_ = w.to.SetWriteDeadline(time.Now().Add(w.stall))
}

// readDeadline sets the time of the next read of the request; the zero time
// takes it away.
func (w *userWriter) readDeadline(t time.Time) { _ = w.to.SetReadDeadline(t) }

// bufferPool lends the buffers through which answers are passed on.
type bufferPool struct{ free chan []byte }

const bufferSize = 32 << 10

// Get implements [httputil.BufferPool].
func (b *bufferPool) Get() []byte {
	select {
	case buf := <-b.free:
		return buf
	default:
		return make([]byte, bufferSize)
	}
}

// Put implements [httputil.BufferPool].
func (b *bufferPool) Put(buf []byte) {
	select {
	case b.free <- buf:
	default:
	}
}
