package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/throttle"
)

// upstream is one version on one path: users' requests to stable, users'
// requests to the canary, and copies share neither connections nor gates.
type upstream struct {
	arm       release.Arm
	version   Version
	foreign   bool // another host than stable's: the user's credentials are not for it
	transport http.RoundTripper
	guard     *guard // nil for copies, which have bounds of their own
}

const (
	dialLimit = 5 * time.Second  // to connect
	idleLimit = 90 * time.Second // of a connection without a request
	idleMost  = 256              // connections without a request
)

// newTransport returns connections of HTTP/1.1 that leave answers packed as they
// are.
func newTransport(_ string, header time.Duration) http.RoundTripper {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialLimit, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   dialLimit,
		ResponseHeaderTimeout: header,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true,
		MaxIdleConns:          idleMost,
		MaxIdleConnsPerHost:   idleMost,
		IdleConnTimeout:       idleLimit,
		WriteBufferSize:       16 << 10,
		ReadBufferSize:        16 << 10,
		TLSNextProto:          map[string]func(string, *tls.Conn) http.RoundTripper{}, // no HTTP/2
	}
}

// prepare turns a request into one for this upstream. The one that it is made
// from stays as it is.
func (u *upstream) prepare(out *http.Request, x *exchange) *http.Request {
	r := out.WithContext(out.Context())
	key, login := u.version.Key, u.version.BaseURL.User
	query := x.in.URL.RawQuery
	if u.foreign {
		query = plainQuery(query)
	}
	if x.known {
		r.URL = address(u.version.BaseURL, x.rest, x.in.URL.EscapedPath(), query)
	} else { // not the API: nothing of the version's own is for it
		key, login = "", nil
		r.URL = onHost(&url.URL{Scheme: u.version.BaseURL.Scheme, Host: u.version.BaseURL.Host}, x.in.URL.EscapedPath(), query)
	}
	r.Host = ""
	if key == "" && login == nil && !u.foreign && x.p.o.ClientKey == "" && u.arm == release.Stable {
		return r
	}
	r.Header = out.Header.Clone()
	if u.foreign {
		r.Header = plainHeader(out.Header)
	}
	if x.p.o.ClientKey != "" {
		r.Header.Del("Authorization") // it was for this proxy
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
		if out.Header.Get("Api-Key") != "" {
			r.Header.Set("Api-Key", key)
		}
	}
	if login != nil && key == "" {
		password, _ := login.Password()
		r.SetBasicAuth(login.Username(), password)
	}
	if u.arm == release.Canary { // stable may have the same one for another answer
		r.Header.Del("Idempotency-Key")
		r.Header.Del("X-Idempotency-Key")
	}
	return r
}

// roundTrip asks, and takes no head for an answer that cannot be passed on: a
// change of the protocol that the client did not ask for (upgrade is what it
// asked for, "" for none), and a status that is none of HTTP's.
func (u *upstream) roundTrip(r *http.Request, upgrade string) (*http.Response, error) {
	resp, err := u.transport.RoundTrip(r)
	if err != nil || resp.StatusCode >= http.StatusOK {
		return resp, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols && upgrade != "" && strings.EqualFold(resp.Header.Get("Upgrade"), upgrade) {
		return resp, nil
	}
	resp.Body.Close() //nolint:errcheck // nothing was expected of it
	return nil, errMalformed
}

// RoundTrip implements [http.RoundTripper] for [httputil.ReverseProxy]: it finds
// somebody to answer.
func (p *Proxy) RoundTrip(out *http.Request) (*http.Response, error) {
	x := exchangeOf(out.Context())
	if !x.chat {
		return p.stable.roundTrip(p.stable.prepare(out, x), out.Header.Get("Upgrade"))
	}
	if x.arm == release.Canary {
		if resp := p.askCanary(out, x); resp != nil {
			return resp, nil
		}
		if err := out.Context().Err(); err != nil {
			return nil, err
		}
	}
	return p.askStable(out, x)
}

// askStable calls stable, again where the policy of retries says so: only
// before anything was passed on, and only what may succeed the next time.
func (p *Proxy) askStable(out *http.Request, x *exchange) (*http.Response, error) {
	ctx := out.Context()
	for n := 1; ; n++ {
		c := p.begin(ctx, x, p.stable)
		if c.resp != nil || c.err != nil {
			return c.resp, c.err // not let through
		}
		c.send(p.stable.prepare(out, x), x.requestBody)
		wait, again := p.o.Retry.Next(n, c.outcome, p.o.Rand())
		if !again || x.body != nil && !x.body.again() || ctx.Err() != nil {
			return c.pass(x.sampled(release.Stable))
		}
		p.count.retries.Add(1)
		c.giveUp()
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// sampled reports whether the bytes of an answer are wanted for a copy.
func (x *exchange) sampled(by release.Arm) bool {
	return x.arm == release.Stable && by == release.Stable && x.p.judge.wants(x.number)
}

// requestBody is the request as the user sent it, for one more attempt.
func (x *exchange) requestBody(r *http.Request) error {
	if x.body == nil {
		return nil
	}
	if r.Body = x.body.open(); r.Body == nil {
		return errOver
	}
	r.GetBody = func() (io.ReadCloser, error) { // for connections that had been closed before anything was sent
		if b := x.body.open(); b != nil {
			return b, nil
		}
		return nil, errOver
	}
	return nil
}

// askCanary calls the canary once. Where it gives no answer that a user should
// get it returns nil: stable is asked.
func (p *Proxy) askCanary(out *http.Request, x *exchange) *http.Response {
	c := p.begin(out.Context(), x, p.canary)
	if c.err != nil {
		return nil
	}
	if c.resp == nil {
		text := x.shape.withModel(x.text, p.canary.version.ModelID)
		c.send(p.canary.prepare(out, x), func(r *http.Request) error {
			r.ContentLength, r.TransferEncoding = int64(len(text)), nil
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
			r.Body, _ = r.GetBody()
			return nil
		})
	}
	if c.outcome.Cancelled {
		if c.giveUp(); c.log().code == codeNoSocket { // the canary was not asked, and has failed in nothing
			x.arm, x.why = release.Stable, "no_socket"
		}
		return nil
	}
	if c.err == nil && !fallsBack(c.outcome.Status) {
		x.passed = release.Canary
		resp, _ := c.pass(false) // it has no error
		return resp
	}
	a := x.tries[len(x.tries)-1]
	x.canary = &failing{status: statusOf(a), code: a.code, retryAfter: a.retryAfter, asked: a.asked}
	if x.fell = "status " + strconv.Itoa(a.status); c.err != nil || a.refused {
		x.fell = a.code
	}
	p.count.fallbacks.Add(1)
	c.giveUp()
	return nil
}

// statusOf is the status of an attempt; of one without an answer, that which
// gateways give for it.
func statusOf(a attempt) int {
	switch {
	case a.status != 0:
		return a.status
	case a.code == codeNoSocket:
		return http.StatusServiceUnavailable
	case a.code == codeTimeout || a.code == codeConnect:
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// fallsBack reports whether an answer of the canary is a failure of its own, of
// its key or of its model id. What is wrong with the request (400, 422) stable
// would refuse as well.
func fallsBack(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// call is one attempt under way.
type call struct {
	p       *Proxy
	x       *exchange
	ctx     context.Context
	at      admission
	began   time.Time
	outcome throttle.Outcome
	resp    *http.Response
	err     error
}

// begin asks for a place. Where there is none the call has an answer that says
// so, made here, or an error if the user went away.
func (p *Proxy) begin(ctx context.Context, x *exchange, u *upstream) *call {
	c := &call{p: p, x: x, ctx: ctx, began: p.o.Now()}
	x.call = c
	c.at = u.guard.enter(ctx, x.tokens())
	x.tries = append(x.tries, attempt{
		at: c.began, number: len(x.tries) + 1, arm: u.arm, phase: c.at.state.Phase, inFlight: c.at.state.InFlight, tokens: x.tokens(),
	})
	if c.err = c.at.err; c.err != nil {
		c.outcome.Cancelled = true
		c.log().code = p.cancelCode()
		return c
	}
	switch c.at.refusal {
	case throttle.Full:
		c.refuse(u.arm, codeFull, "too many requests are under way", c.p.o.Limits.Place)
	case throttle.Broken:
		c.refuse(u.arm, codeOpen, "it has failed too often, and is left alone for a while", max(c.at.state.Wait, time.Second)) // half open it waits for its trials
	case throttle.Admitted:
	}
	return c
}

func (c *call) log() *attempt { return &c.x.tries[len(c.x.tries)-1] }

// refuse makes the answer of a call that is not made.
func (c *call) refuse(arm release.Arm, code, why string, wait time.Duration) {
	a := c.log()
	a.status, a.code, a.refused, a.retryAfter, a.asked = http.StatusServiceUnavailable, code, true, wait, true
	a.elapsed = c.p.o.Now().Sub(c.began)
	c.outcome = throttle.Outcome{Status: a.status}
	c.resp = refusal(a.status, code, "canaryctl did not ask "+string(arm)+": "+why, wait)
	c.resp.Request = c.x.in.WithContext(c.ctx)
	c.p.count.refused.Add(1)
	c.x.answer = newAnswer(c.resp, false, c.p.o.Limits.Answer)
	c.resp.Body = &tap{ReadCloser: c.resp.Body, x: c.x}
}

// send makes the attempt, up to the head of the answer.
func (c *call) send(r *http.Request, withBody func(*http.Request) error) {
	u, a := c.p.upstream(c.log().arm), c.log()
	if c.err = withBody(r); c.err == nil {
		c.resp, c.err = u.roundTrip(r, "")
	}
	now := c.p.o.Now()
	c.outcome = outcomeOf(c.ctx, c.resp, c.err, now)
	if c.err != nil && c.x.body.brokeOff() {
		c.outcome = throttle.Outcome{Cancelled: true} // it was the user, not the upstream
	}
	a.elapsed = now.Sub(c.began)
	a.status, a.retryAfter, a.asked = c.outcome.Status, c.outcome.RetryAfter, c.outcome.RetryAfterKnown
	switch {
	case c.err != nil && noSocket(c.err):
		a.code = codeNoSocket
		c.p.noSocket.Do(func() {
			c.p.o.Warn("this machine or this process has no more files, ports or addresses to connect from (see ulimit -n); requests are refused for it, and neither version is blamed")
		})
	case c.outcome.Cancelled:
		a.code = c.p.cancelCode()
	case c.err != nil:
		a.code = errorCode(c.err)
	default:
		a.upstreamID = bounded(c.resp.Header.Get("X-Request-Id"))
		if c.outcome.Status >= 400 {
			c.outcome.Code = u.keyless(c.peek(), r)
			a.code = c.outcome.Code
		}
	}
}

// keyless is the code of an error, unless the upstream has put a key into it.
func (u *upstream) keyless(code string, r *http.Request) string {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	for _, key := range []string{u.version.Key, token, r.Header.Get("Api-Key")} {
		if len(key) >= shortestKey && strings.Contains(code, key) {
			return ""
		}
	}
	return code
}

// shortestKey is the length from which on a key is looked for.
const shortestKey = 4

// errorHead is how much of a refusal is read to find its code.
const errorHead = 16 << 10

// peek reads the code of an error, and leaves the answer as it was.
func (c *call) peek() string {
	head := make([]byte, errorHead)
	n, err := io.ReadFull(c.resp.Body, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		head = head[:n] // what broke it off comes again with the next read
	}
	head = head[:n]
	c.resp.Body = &rejoined{Reader: io.MultiReader(bytes.NewReader(head), c.resp.Body), Closer: c.resp.Body}
	if text, ok := unpack(head, strings.ToLower(c.resp.Header.Get("Content-Encoding")), 8*errorHead); ok {
		return codeIn(text)
	}
	return ""
}

// rejoined is a body of which the head has been read.
type rejoined struct {
	io.Reader
	io.Closer
}

// codeIn finds error.code, or else error.type, in the body of an error.
func codeIn(text []byte) string {
	var said struct {
		Error struct {
			Code any    `json:"code"`
			Type string `json:"type"`
		} `json:"error"`
	}
	if json.Unmarshal(text, &said) != nil {
		return ""
	}
	if code, ok := said.Error.Code.(string); ok && isCode(code) {
		return code
	}
	if isCode(said.Error.Type) {
		return said.Error.Type
	}
	return ""
}

// pass hands the answer to the user: from its first byte on nothing is tried
// again. The place among the calls under way is given back at its end.
func (c *call) pass(keep bool) (*http.Response, error) {
	if c.err != nil {
		c.at.leave(c.outcome)
		return nil, c.err
	}
	x, o := c.x, c.outcome
	if !o.Failed() {
		c.at.begun()
	}
	if !keep && x.body != nil && c.p.records == nil && c.p.attempts == nil {
		x.body.release()
	}
	x.answer = newAnswer(c.resp, keep, c.p.o.Limits.Answer)
	c.resp.Body = &tap{ReadCloser: c.resp.Body, x: x, done: func(a *answer) {
		if !a.complete() {
			o = throttle.Outcome{Cancelled: c.ctx.Err() != nil || a.err == nil, TimedOut: timedOut(a.err)}
		}
		c.at.leave(o)
	}}
	return c.resp, nil
}

// end gives back what a call still holds when the handler returns, however it
// does: a place that is lost is lost for as long as the proxy runs.
func (c *call) end() {
	if c == nil {
		return
	}
	if c.resp != nil {
		c.resp.Body.Close() //nolint:errcheck // it has been read, or nobody will read it
	}
	c.at.leave(throttle.Outcome{Cancelled: true}) // if nobody has said how it went
}

// giveUp ends an attempt that no answer is passed on of.
func (c *call) giveUp() {
	c.at.leave(c.outcome)
	if c.resp != nil {
		c.resp.Body.Close() //nolint:errcheck // nothing was expected of it any more
		c.x.answer = nil
	}
}

// sleep waits, unless the user goes away.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
