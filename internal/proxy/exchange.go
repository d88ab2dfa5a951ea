package proxy

import (
	"context"
	"encoding/hex"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// exchange is one request and what became of it. It belongs to the handler's
// goroutine until that has ended, then to the one that finishes it.
type exchange struct {
	p       *Proxy
	in      *http.Request
	start   time.Time
	rest    string // of the path, behind the base URL
	known   bool   // the path is the API's
	chat    bool   // it is one that is routed, copied and recorded
	id      string
	number  uint32   // what it is sampled by
	body    *body    // nil: the request has none
	passing *passing // the body where the request is not chat; nil: it has none
	text    []byte   // the whole request, once it is known
	shape   shape
	read    bool // shape is known, or shapeErr why it is not
	shapeEr error

	user, segment string
	anonymous     bool        // user is a digest of the request
	arm           release.Arm // that it is sent to
	why           string      // it is sent there; "" while nobody is on the canary
	passed        release.Arm // whose answer the user gets
	fell          string      // why the canary's answer was not taken; "" where it was, or was not asked

	tries  []attempt
	call   *call    // the last one, which may hold a place
	canary *failing // how the canary failed before stable answered
	answer *answer  // nil: there was none
	end    time.Time
	cancel bool   // the user went away
	broken string // code of what broke it off, where that was not the user
}

// failing is a canary's call that gave no answer for the user.
type failing struct {
	status     int
	code       string
	retryAfter time.Duration
	asked      bool // how long to wait is known
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// newExchange looks at a request without reading its body.
func (p *Proxy) newExchange(r *http.Request) *exchange {
	x := &exchange{p: p, in: r, start: p.o.Now(), arm: release.Stable, passed: release.Stable}
	x.rest, x.known = p.behind(r.URL)
	x.chat = x.known && p.isReleased(r, x.rest)
	if !x.chat {
		return x
	}
	x.id = requestID(r.Header)
	h := fnv.New64a()
	h.Write([]byte(x.id)) //nolint:errcheck // it never fails
	x.number = mixed(h.Sum64())
	if r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0 {
		x.body = newBody(r.Body, r.ContentLength, p.o.Limits.Body)
	}
	return x
}

// mixed spreads a hash over 32 bits: FNV alone leaves the high bits of short
// texts alike. The constants are those of MurmurHash3's finalizer.
func mixed(h uint64) uint32 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return uint32(h >> 32)
}

// maxID bounds an id that a client gives.
const maxID = 128

// requestID is what the client calls the request: X-Request-Id, else the trace
// of a traceparent (W3C Trace Context); else it gets a name here.
func requestID(h http.Header) string {
	if id := strings.TrimSpace(h.Get("X-Request-Id")); id != "" && len(id) <= maxID {
		return id
	}
	if parts := strings.Split(h.Get("Traceparent"), "-"); len(parts) >= 4 && len(parts[1]) == 32 {
		return parts[1]
	}
	return newID()
}

// newID is a name that nothing else has.
func newID() string {
	var b [8]byte
	for i, n := 0, rand.Uint64(); i < len(b); i, n = i+1, n>>8 {
		b[i] = byte(n)
	}
	return hex.EncodeToString(b[:])
}

// readShape reads the request's text once.
func (x *exchange) readShape(text []byte) {
	if !x.read {
		x.read = true
		x.shape, x.shapeEr = readShape(text)
	}
}

// tokens is a guess of the prompt's length, for the lane it belongs to: four
// bytes a token.
func (x *exchange) tokens() int64 {
	n := x.in.ContentLength
	if n < 0 && x.body != nil {
		if text, ok := x.body.all(); ok {
			n = int64(len(text))
		}
	}
	return max(n, 0) / bytesPerToken
}

const bytesPerToken = 4
