package proxy

import (
	"errors"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// errOver is what a reader of a body gets that was put aside: a newer attempt
// reads it, or the request is over.
var errOver = errors.New("this request's body is read by somebody else by now")

// body is a request's body that is passed on while it comes, and kept up to a
// bound, so that a second attempt and a copy can send it again. What is beyond
// the bound is passed on all the same, once.
type body struct {
	mu    sync.Mutex
	from  io.Reader
	kept  []byte
	limit int64
	left  int64 // bytes that are to come; below 0: nobody said
	long  bool  // more than the bound has come: kept is gone
	end   error // what ended it, [io.EOF] at the end; nil: more may come
	turn  *reading

	ended    atomic.Bool     // end is set: nobody waits under mu any more
	deadline func(time.Time) // of the next read
	stall    time.Duration   // of one piece
	sending  time.Duration   // that is left for all of them; what nobody waits for does not count
	released atomic.Bool     // nobody wants it again
	closed   atomic.Bool     // the handler has returned: from must not be read
}

// newBody returns the body that from holds. length is what the request says of
// it, -1 if nothing.
func newBody(from io.Reader, length, limit int64) *body {
	b := &body{from: from, limit: limit, left: length, deadline: func(time.Time) {}, sending: math.MaxInt64}
	if length > 0 && length <= limit {
		b.kept = make([]byte, 0, length)
	}
	return b
}

// open returns a reader from the start of the body, and puts the one before
// aside. It is nil where the start is not there any more.
func (b *body) open() io.ReadCloser {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.turn != nil && (b.long || b.released.Load()) {
		return nil
	}
	b.turn = &reading{body: b}
	return b.turn
}

// again reports whether the body can be sent once more.
func (b *body) again() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.long && !b.released.Load() && (b.end == nil || errors.Is(b.end, io.EOF))
}

// whole reads the body to its end or its bound, and returns it; ok is false
// where there is more, or where it broke off.
func (b *body) whole() (all []byte, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.end == nil && int64(len(b.kept)) <= b.limit && !b.long {
		if len(b.kept) == cap(b.kept) {
			b.kept = append(b.kept, 0)[:len(b.kept)] // grows
		}
		room := b.kept[len(b.kept):cap(b.kept)]
		n := b.read(room[:min(int64(len(room)), b.limit-int64(len(b.kept))+1)])
		b.kept = b.kept[:len(b.kept)+n]
	}
	return b.kept, errors.Is(b.end, io.EOF) && int64(len(b.kept)) <= b.limit && !b.long
}

// all returns the body if all of it came and was kept. It does not wait for a
// request that is still being sent.
func (b *body) all() ([]byte, bool) {
	if !b.ended.Load() {
		return nil, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept, errors.Is(b.end, io.EOF) && !b.long && !b.released.Load() && int64(len(b.kept)) <= b.limit
}

// brokeOff reports whether the user did not send all of it.
func (b *body) brokeOff() bool {
	if b == nil || !b.ended.Load() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return !errors.Is(b.end, io.EOF)
}

// release says that nobody will want the body again: what is read is forgotten.
func (b *body) release() {
	b.released.Store(true)
	if !b.mu.TryLock() {
		return // whoever reads it forgets it
	}
	defer b.mu.Unlock()
	if b.turn == nil || b.turn.at >= len(b.kept) {
		b.long, b.kept = true, nil
	}
}

// close ends all reading of the request.
func (b *body) close() { b.closed.Store(true) }

// read reads the next bytes from the user. The end of a length that was given is
// the end, before anybody says so.
func (b *body) read(p []byte) (n int) {
	if b.closed.Load() {
		b.end = errOver
	} else {
		began := time.Now()
		b.deadline(began.Add(min(b.stall, b.sending)))
		n, b.end = b.from.Read(p)
		b.sending -= time.Since(began)
	}
	if b.left >= 0 {
		if b.left -= int64(n); b.left <= 0 && b.end == nil {
			b.end = io.EOF
		}
	}
	if errors.Is(b.end, io.EOF) {
		b.deadline(time.Time{}) // else it would end the watch for a user who goes away
	}
	if b.end != nil {
		b.ended.Store(true)
	}
	return n
}

// reading is one reader of a body.
type reading struct {
	body *body
	at   int
	over atomic.Bool
}

// Read implements [io.Reader]. It waits for the user where the user is slow.
func (r *reading) Read(p []byte) (int, error) {
	b := r.body
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.turn != r || r.over.Load() {
		return 0, errOver
	}
	if r.at < len(b.kept) && !b.long {
		n := copy(p, b.kept[r.at:])
		r.at += n
		if r.at == len(b.kept) && b.end != nil {
			return n, b.end
		}
		r.forget()
		return n, nil
	}
	if b.end != nil {
		return 0, b.end
	}
	n := b.read(p)
	r.at += n
	if !b.long {
		b.kept = append(b.kept, p[:n]...)
	}
	r.forget()
	return n, b.end
}

// forget lets go of what nobody reads again.
func (r *reading) forget() {
	b := r.body
	if r.at >= len(b.kept) && (b.released.Load() || int64(len(b.kept)) > b.limit) {
		b.long, b.kept = true, nil
	}
}

// Close implements [io.Closer]: the reader reads no more, the body stays.
func (r *reading) Close() error {
	r.over.Store(true)
	return nil
}
