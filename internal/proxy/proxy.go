package proxy

import (
	"context"
	"crypto/subtle"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/shadow"
)

// Proxy is the handler. It is safe for use by many goroutines.
type Proxy struct {
	o       Options
	paths   map[string]bool
	reverse *httputil.ReverseProxy

	stable, canary, shadowed *upstream
	weights                  weights
	judge                    *judge
	copies                   copies

	finished  chan *exchange
	finishing sync.WaitGroup

	toldUnfinished bool            // by the goroutine that finishes
	background     sync.WaitGroup  // copies and the reading of the weight
	running        context.Context // ends with the proxy
	stop           context.CancelFunc
	closing        sync.Once
	ending         atomic.Bool // answers under way are broken off
	active         atomic.Int64
	noSocket       sync.Once // it is said
	closed         chan struct{}

	records, attempts, pairs *lines
	count                    counters
	began                    time.Time
}

// counters count since the start.
type counters struct {
	stable     atomic.Int64 // answered by it
	canary     atomic.Int64
	passed     atomic.Int64 // on other paths
	retries    atomic.Int64
	fallbacks  atomic.Int64 // the canary failed and stable stood in
	refused    atomic.Int64 // by our own gates and breakers
	unanswered atomic.Int64
	cancelled  atomic.Int64
	unroutable atomic.Int64 // too long to change the model in: stable
	malformed  atomic.Int64 // no JSON: stable
	unfinished atomic.Int64 // came faster than they could be recorded
	panics     atomic.Int64
}

// endLimit is how long answers that are broken off may take to notice.
const endLimit = time.Second

// finishQueue bounds the exchanges that wait to be recorded.
const finishQueue = 256

// New starts a proxy. Close ends it.
func New(o Options) (*Proxy, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.fill()
	p := &Proxy{o: o, paths: map[string]bool{}, judge: newJudge(&o), finished: make(chan *exchange, finishQueue), closed: make(chan struct{}), began: o.Now()}
	for _, path := range o.Paths {
		p.paths["/"+strings.Trim(path, "/")] = true
	}
	p.running, p.stop = context.WithCancel(context.Background())
	p.copies.places = make(chan struct{}, o.Limits.Copies)
	p.stable = p.newUpstream(release.Stable, o.Stable, o.Limits.StableHeader, newGuard(&o))
	p.canary = p.newUpstream(release.Canary, o.Canary, o.Limits.CanaryHeader, newGuard(&o))
	p.canary.guard.place = 0 // nobody waits for the canary: stable is there
	p.shadowed = p.newUpstream(release.Canary, o.Canary, o.Limits.Copy, nil)
	p.records = newLines(o.Records, "records", &o)
	p.attempts = newLines(o.Attempts, "attempts", &o)
	p.pairs = newLines(o.Pairs, "pairs", &o)
	p.reverse = &httputil.ReverseProxy{
		Rewrite: p.rewrite, Transport: p, FlushInterval: -1, BufferPool: &bufferPool{make(chan []byte, idleMost)},
		ModifyResponse: p.announce, ErrorHandler: p.unanswered, ErrorLog: log.New(io.Discard, "", 0), // answers that break off are recorded, not told one by one
	}
	p.finishing.Go(p.finish)
	p.weights = weights{read: o.Weight, say: o.Say, warn: o.Warn, now: o.Now}
	if o.Weight != nil {
		p.background.Go(func() { p.weights.follow(p.running, o.Every) })
	}
	return p, nil
}

// fill puts in what was left out.
func (o *Options) fill() {
	if o.Paths == nil {
		o.Paths = []string{chatPath}
	}
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	if o.Policy.Window == 0 {
		o.Policy = shadow.DefaultPolicy()
	}
	if o.Every <= 0 {
		o.Every = 2 * time.Second
	}
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	if o.Warn == nil {
		o.Warn = o.Say
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	if o.transport == nil {
		o.transport = newTransport
	}
}

func (p *Proxy) newUpstream(arm release.Arm, v Version, header time.Duration, g *guard) *upstream {
	foreign := v.BaseURL.Scheme != p.o.Stable.BaseURL.Scheme || !strings.EqualFold(v.BaseURL.Host, p.o.Stable.BaseURL.Host)
	name := string(arm)
	if g == nil {
		name = "copy"
	}
	return &upstream{arm: arm, version: v, foreign: foreign, transport: p.o.transport(name, header), guard: g}
}

func (p *Proxy) upstream(arm release.Arm) *upstream {
	if arm == release.Canary {
		return p.canary
	}
	return p.stable
}

// ServeHTTP implements [http.Handler].
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.o.Loopback && !fromThisMachine(r) {
		refuseForeign(w)
		return
	}
	if p.o.AdminPaths && strings.HasPrefix(r.URL.Path, adminPrefix) {
		p.Admin().ServeHTTP(w, r)
		return
	}
	to := newUserWriter(w, p.o.Limits.Stall)
	switch {
	case r.Method == http.MethodTrace || r.Method == http.MethodConnect:
		writeError(to, http.StatusMethodNotAllowed, codeMethod, "canaryctl does not pass on "+r.Method+": its answer could show a key")
		return
	case !strings.HasPrefix(r.URL.Path, "/") || climbs(r.URL.Path):
		writeError(to, http.StatusBadRequest, codePath, "canaryctl passes on requests to paths, such as /v1/chat/completions, without . and .. in them")
		return
	case !p.knowsClient(r):
		wantKey(to)
		return
	}
	x := p.newExchange(r)
	if !x.chat {
		p.count.passed.Add(1)
		x.passing = newPassing(r, to.readDeadline, p.o.Limits.Stall)
	} else {
		if x.body != nil {
			x.body.deadline, x.body.stall, x.body.sending = to.readDeadline, p.o.Limits.Stall, p.o.Limits.Sending
		}
		p.active.Add(1)
		defer p.ended(x, to)
		p.whereTo(x)
	}
	r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	if x.passing != nil {
		r.Body = x.passing
	}
	p.reverse.ServeHTTP(to, r)
}

// refuseForeign answers what [fromThisMachine] refuses.
func refuseForeign(w http.ResponseWriter) {
	writeError(w, http.StatusForbidden, codeForeign, "this canaryctl answers programs of this machine, at localhost, and no page of another site")
}

// wantKey answers who did not show the key of the proxy.
func wantKey(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	writeError(w, http.StatusUnauthorized, codeClientKey, "this canaryctl wants its own key from its clients, as a bearer token")
}

// fromThisMachine reports whether a request names this machine, and comes from a
// program or a page of it. Where a page's request names no origin, as a plain link
// or an image does, the browser says whether it is another site's.
func fromThisMachine(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return isLocal(r.Host) && fromLocalPage(origin) && !(origin == "" && strings.EqualFold(r.Header.Get("Sec-Fetch-Site"), "cross-site"))
}

// isLocal reports whether a host, with or without a port, is this machine: a page
// in a browser must not reach the proxy, and spend its keys, under a name of its
// own.
func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// fromLocalPage is true for programs, which name no origin, and for pages that
// come from this machine.
func fromLocalPage(origin string) bool {
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && isLocal(u.Host)
}

// knowsClient checks the key of this proxy, if it has one.
func (p *Proxy) knowsClient(r *http.Request) bool {
	if p.o.ClientKey == "" {
		return true
	}
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare([]byte(strings.TrimSpace(key)), []byte(p.o.ClientKey)) == 1
}

// forwarded are headers that other proxies have written, and that httputil
// takes out. They are passed on as they came, and none is added: nobody behind
// this proxy learns more of the user than without it.
var forwarded = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	for _, name := range forwarded {
		if v, ok := r.In.Header[name]; ok {
			r.Out.Header[name] = v
		}
	}
	r.Out.URL.RawQuery = r.In.URL.RawQuery
}

// armHeader says whose answer it is, where the canary was asked.
const armHeader = "X-Canaryctl-Arm"

func (p *Proxy) announce(resp *http.Response) error {
	x := exchangeOf(resp.Request.Context())
	switch {
	case x == nil || x.arm == release.Stable:
	case x.passed == release.Canary:
		resp.Header.Set(armHeader, "canary")
	default:
		resp.Header.Set(armHeader, "stable; the canary failed: "+x.fell)
	}
	return nil
}

// ended hands a request that is over to whoever records it. The handler must
// return at once: the end of the answer goes out then.
func (p *Proxy) ended(x *exchange, to *userWriter) {
	x.call.end()
	x.end = p.o.Now()
	left := x.in.Context().Err() != nil || to.err != nil || x.body.brokeOff()
	if x.cancel = left && (x.answer == nil || !x.answer.complete()); x.cancel && p.ending.Load() {
		x.broken = codeEnding
	}
	if x.body != nil {
		x.body.close()
	}
	switch { // before anybody hears of it: whoever sees the record or the copy finds it counted
	case x.cancel:
		p.count.cancelled.Add(1)
	case x.answer == nil:
		p.count.unanswered.Add(1)
	case x.passed == release.Canary:
		p.count.canary.Add(1)
	default:
		p.count.stable.Add(1)
	}
	select {
	case p.finished <- x:
	default:
		p.count.unfinished.Add(1)
	}
	p.active.Add(-1)
}

// finish records requests that are over, and sends their copies.
func (p *Proxy) finish() {
	for {
		select {
		case x := <-p.finished:
			p.finishOne(x)
		case <-p.running.Done():
			for len(p.finished) > 0 {
				p.finishOne(<-p.finished)
			}
			return
		}
	}
}

func (p *Proxy) finishOne(x *exchange) {
	defer func() {
		if r := recover(); r != nil {
			p.count.panics.Add(1)
			p.o.Warn("a request was not recorded: internal error: %v", r)
		}
	}()
	if p.count.unfinished.Load() > 0 && !p.toldUnfinished {
		p.toldUnfinished = true
		p.o.Warn("more requests end than can be recorded; those that are left out are counted in %sstatus", adminPrefix)
	}
	if x.body != nil && x.text == nil {
		if text, ok := x.body.all(); ok {
			x.text = text
		}
	}
	if x.text != nil {
		x.readShape(x.text)
	}
	if x.user == "" {
		x.user = x.shape.user
	}
	p.offer(x)
	if p.records != nil {
		p.records.put(x.record(x.said()))
	}
	if p.attempts != nil {
		trace := newID()
		for i := range x.tries {
			p.attempts.put(x.attemptLine(&x.tries[i], trace))
		}
	}
}

// BreakOff says that the answers under way are about to be broken off: that they
// end is not their users' doing.
func (p *Proxy) BreakOff() { p.ending.Store(true) }

// cancelCode is why an exchange ended before its answer did.
func (p *Proxy) cancelCode() string {
	if p.ending.Load() {
		return codeEnding
	}
	return codeCancelled
}

// Close ends the proxy: copies under way are given up, what is to be written is
// written. Requests that are still being answered are not recorded any more. The
// error is the context's, if that ends before.
func (p *Proxy) Close(ctx context.Context) error {
	p.closing.Do(func() { go p.end() })
	select {
	case <-p.closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("records and pairs are still being written: %w", ctx.Err())
	}
}

func (p *Proxy) end() {
	defer close(p.closed)
	if p.ending.Load() { // those that were broken off are about to end
		for end := time.Now().Add(endLimit); p.active.Load() > 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
	p.stop()
	p.finishing.Wait()
	p.background.Wait()
	for _, l := range []*lines{p.records, p.attempts, p.pairs} {
		l.close()
	}
	for _, u := range []*upstream{p.stable, p.canary, p.shadowed} {
		if t, ok := u.transport.(interface{ CloseIdleConnections() }); ok {
			t.CloseIdleConnections()
		}
	}
}
