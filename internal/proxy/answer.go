package proxy

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/canaryctl/canaryctl/internal/trace"
)

// answer is what is seen of one answer while it is passed on. Its bytes are
// looked at as they come and never changed.
type answer struct {
	status   int
	header   http.Header
	encoding string // of its content; "" for none
	streamed bool   // server-sent events

	sse          *trace.SSE // of a stream that can be read as it comes
	first, last  time.Time  // first token, last event; zero: none was seen
	events, then int64      // events so far, and when the first token came

	keep  bool // its bytes are wanted afterwards
	limit int64
	kept  []byte
	cut   bool // there were more than are kept

	bytes  int64
	length int64 // that was given; -1 if none was
	whole  bool  // it came to its end
	err    error // what broke it off
}

// newAnswer starts to follow an answer. keep wants the bytes of a stream too;
// those of any other answer are kept in any case, up to a limit.
func newAnswer(resp *http.Response, keep bool, limit int64) *answer {
	a := &answer{status: resp.StatusCode, header: resp.Header, length: resp.ContentLength, limit: limit}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	a.streamed = kind == "text/event-stream"
	a.encoding = strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding")))
	if a.encoding == "identity" {
		a.encoding = ""
	}
	if a.streamed && a.encoding == "" {
		a.sse = trace.NewSSE()
	}
	a.keep = keep || a.sse == nil
	return a
}

// take looks at the next bytes.
func (a *answer) take(p []byte, now time.Time) {
	a.bytes += int64(len(p))
	if a.keep && !a.cut {
		if a.cut = int64(len(a.kept)+len(p)) > a.limit; a.cut {
			a.kept = nil
		} else {
			a.kept = append(a.kept, p...)
		}
	}
	if a.sse == nil {
		return
	}
	a.sse.Write(p) //nolint:errcheck // it never fails
	if n := a.sse.Events(); n > a.events {
		a.events, a.last = n, now
	}
	if a.first.IsZero() && a.sse.FirstToken() {
		a.first, a.then = now, a.events
	}
}

// complete reports whether all of it came: to the end of the connection's say, to
// a length that was given, or to what the answer itself calls its end. Users may
// leave then, before the connection says so.
func (a *answer) complete() bool {
	return a.whole || a.length > 0 && a.bytes >= a.length || a.sse != nil && a.sse.Done()
}

// text returns the bytes of the answer as they were before they were packed; ok
// is false where they were not kept or cannot be unpacked.
func (a *answer) text() (text []byte, ok bool) {
	if !a.keep || a.cut {
		return nil, false
	}
	return unpack(a.kept, a.encoding, 8*a.limit)
}

// read returns what the answer says of itself; nil where it cannot be read.
func (a *answer) read() *trace.SSE {
	if a.sse != nil {
		a.sse.Close() //nolint:errcheck // it never fails
		return a.sse
	}
	text, ok := a.text()
	if !ok {
		return nil
	}
	s := trace.NewSSE()
	if a.streamed {
		s.Write(text) //nolint:errcheck // it never fails
		s.Close()     //nolint:errcheck // it never fails
	} else {
		s.Event(text)
	}
	return s
}

// unpack undoes a content encoding, up to a number of bytes.
func unpack(b []byte, encoding string, limit int64) ([]byte, bool) {
	var in io.Reader
	var err error
	switch encoding {
	case "":
		return b, true
	case "gzip", "x-gzip":
		in, err = gzip.NewReader(bytes.NewReader(b))
	case "deflate":
		in, err = zlib.NewReader(bytes.NewReader(b))
	case "zstd":
		var z *zstd.Decoder
		if z, err = zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(limit))); err == nil {
			defer z.Close()
			in = z
		}
	default:
		return nil, false
	}
	if err != nil {
		return nil, false
	}
	out, err := io.ReadAll(io.LimitReader(in, limit+1))
	return out, err == nil && int64(len(out)) <= limit
}

// tap is the body of an answer on its way to the user.
type tap struct {
	io.ReadCloser
	x    *exchange
	done func(a *answer) // once, when it is closed
}

// Read implements [io.Reader].
func (t *tap) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	a := t.x.answer
	if n > 0 {
		a.take(p[:n], t.x.p.o.Now())
	}
	switch {
	case err == io.EOF: //nolint:errorlint // a Reader's end is io.EOF itself
		a.whole = true
	case err != nil:
		a.err = err
	}
	return n, err
}

// Close implements [io.Closer].
func (t *tap) Close() error {
	err := t.ReadCloser.Close()
	if t.done != nil {
		t.done(t.x.answer)
		t.done = nil
	}
	return err
}
