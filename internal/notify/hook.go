package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/envsecret"
)

const (
	hookTimeout = 30 * time.Second
	hookTries   = 5
)

// NewHook returns the hook that h configures; index is its place in the list.
// Addresses and secrets are read from the environment here, once.
func NewHook(h config.Hook, index int, o Options) (Hook, error) {
	name := hookName(h, index)
	base := hookBase{name: name, tries: triesOf(h)}
	var hook Hook
	var err error
	switch h.Kind {
	case "http":
		hook, err = newHTTPHook(h, base, o)
	case "exec":
		hook, err = newExecHook(h, base, o)
	default:
		err = errors.New("no such kind of hook; the kinds are http and exec")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return hook, nil
}

func hookName(h config.Hook, index int) string {
	return fmt.Sprintf("%s (hooks.on_rollback[%d])", cmp.Or(h.Name, h.Kind), index)
}

func triesOf(h config.Hook) int {
	if h.Tries < 1 {
		return hookTries
	}
	return h.Tries
}

type hookBase struct {
	name  string
	tries int
}

// Tries implements [Hook].
func (h *hookBase) Tries() int { return h.tries }

// String implements [Hook].
func (h *hookBase) String() string { return h.name }

// errNoRecord is permanent: a hook is for a rollback, and nothing else.
var errNoRecord = errors.New("the message has no rollback record")

// httpHook makes one request. Any 2xx is success.
type httpHook struct {
	hookBase
	link   *link
	method string
	body   string
	now    func() time.Time
}

func newHTTPHook(h config.Hook, base hookBase, o Options) (*httpHook, error) {
	env := envsecret.New(o.Getenv)
	out := &httpHook{hookBase: base, link: newLink(o, h.Timeout, hookTimeout), method: h.Method, body: h.Body, now: o.now()}
	if out.method != "" && !envsecret.IsToken(out.method) {
		return nil, fmt.Errorf("method: %q is no method of HTTP", out.method)
	}
	var err error
	if out.link.url, err = address(env, h.URL, h.URLEnv); err != nil {
		return nil, err
	}
	if err := out.link.authorize(env, h.TokenEnv, h.Headers); err != nil {
		return nil, err
	}
	out.link.secrets = env.Secrets()
	return out, nil
}

// Run implements [Hook].
func (h *httpHook) Run(ctx context.Context, m Message) error {
	if len(m.Rollback) == 0 {
		return h.link.failure(h.name, errNoRecord, h.now)
	}
	out := outgoing{method: h.method, header: http.Header{}}
	out.header.Set("Idempotency-Key", m.Key)
	switch {
	case h.body != "":
		out.body = []byte(h.body)
	case h.method != http.MethodGet && h.method != http.MethodHead:
		out.body = m.Rollback
	}
	a, err := h.link.do(ctx, out)
	if err == nil {
		err = a.accepted()
	}
	return h.link.failure(h.name, err, h.now)
}
