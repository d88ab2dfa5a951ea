package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/envsecret"
	"github.com/canaryctl/canaryctl/internal/webclient"
)

// answerLimit bounds what is read of an answer; success rules need a few
// hundred bytes.
const answerLimit = 64 << 10

// link is the way to an address: client, limit of time and what goes with
// every request. It shows no secret.
type link struct {
	url     *url.URL
	client  *http.Client
	timeout time.Duration
	headers http.Header
	secrets envsecret.Secrets
}

// outgoing is one request.
type outgoing struct {
	method string     // "": POST
	body   []byte     // nil: none
	query  url.Values // added to the address's own
	header http.Header
}

// answer is what came back.
type answer struct {
	status  int
	header  http.Header
	body    []byte
	secrets envsecret.Secrets // what it may repeat
}

func newLink(o Options, timeout, usual time.Duration) *link {
	if timeout <= 0 {
		timeout = usual
	}
	client := http.Client{}
	if o.Client != nil {
		client = *o.Client
	}
	client.CheckRedirect = webclient.SameHost
	client.Timeout = 0 // ours is by request
	return &link{client: &client, timeout: timeout, headers: http.Header{}}
}

// authorize sets the headers that are configured.
func (l *link) authorize(env *envsecret.Environment, tokenEnv string, headers map[string]string) (err error) {
	if l.headers, err = env.Headers("headers", headers); err != nil || tokenEnv == "" {
		return err
	}
	value, err := env.Authorization("token_env", tokenEnv, "")
	if err == nil && l.headers.Get("Authorization") == "" {
		l.headers.Set("Authorization", value)
	}
	return err
}

// address resolves where a channel or a hook sends to. All of it but the host is
// secret, also where it stands in the configuration.
func address(env *envsecret.Environment, inline, variable string) (*url.URL, error) {
	if inline == "" && variable == "" {
		return nil, errors.New("it needs url or url_env")
	}
	u, err := env.Address("url", inline, variable)
	if err == nil {
		env.Conceal(u)
	}
	return u, err
}

// do sends a request and reads the answer, within the limit of time.
func (l *link) do(ctx context.Context, out outgoing) (answer, error) {
	bounded, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	a, err := l.exchange(bounded, out)
	switch {
	case err == nil:
		return a, nil
	case ctx.Err() != nil: // the caller gave up, not the other side
		return answer{}, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return answer{}, &retryable{err: fmt.Errorf("no answer within %s: %w", l.timeout, context.DeadlineExceeded)}
	}
	return answer{}, &retryable{err: err}
}

func (l *link) exchange(ctx context.Context, out outgoing) (answer, error) {
	req, err := l.newRequest(ctx, out)
	if err != nil {
		return answer{}, err
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close() // read as far as it is wanted
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	return answer{status: resp.StatusCode, header: resp.Header, body: body, secrets: l.secrets}, err
}

func (l *link) newRequest(ctx context.Context, out outgoing) (*http.Request, error) {
	u := *l.url
	if len(out.query) > 0 {
		q := u.Query()
		for k, v := range out.query {
			q[k] = v
		}
		u.RawQuery = q.Encode()
	}
	method := out.method
	if method == "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(out.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "canaryctl")
	if out.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, header := range []http.Header{out.header, l.headers} {
		for k, v := range header {
			req.Header[k] = v
		}
	}
	req.Host = req.Header.Get("Host") // "": the address's
	return req, nil
}

// failure turns what went wrong into a *DeliveryError; nil stays nil.
func (l *link) failure(to string, err error, now func() time.Time) error {
	if err == nil {
		return nil
	}
	out := &DeliveryError{To: to, Err: l.secrets.Clean(err)}
	if again, ok := errors.AsType[*retryable](err); ok {
		out.Retry = true
		out.After = webclient.RetryAfter(again.header, now())
	}
	return out
}

// retryable is an error that a later try could mend.
type retryable struct {
	err    error
	header http.Header // of the answer, which may ask to wait; nil: there was none
}

func (e *retryable) Error() string { return e.err.Error() }

func (e *retryable) Unwrap() error { return e.err }

// accepted is the rule that any 2xx is success; 429 and 5xx may mend.
func (a answer) accepted() error {
	if a.status >= 200 && a.status < 300 {
		return nil
	}
	return a.refused("")
}

// refused is the error of an answer; said is what it says, "" for its body.
func (a answer) refused(said string) error {
	if said == "" {
		said = a.excerpt(string(a.body))
	}
	text := fmt.Sprintf("answered %d %s", a.status, http.StatusText(a.status))
	if a.status >= 300 && a.status < 400 {
		text += ", a redirect that is not followed: configure the address that it leads to"
	}
	if said != "" {
		text += ": " + said
	}
	return a.mendable(errors.New(text), a.status == http.StatusTooManyRequests || a.status == http.StatusRequestTimeout || a.status >= 500)
}

// mendable marks an error as one that a later try could mend, if it is.
func (a answer) mendable(err error, again bool) error {
	if again {
		return &retryable{err: err, header: a.header}
	}
	return err
}

// excerptLimit is how much of an answer an error shows, in bytes.
const excerptLimit = 300

// excerpt returns the beginning of what an answer says in one line. Secrets go
// first: one that is cut would not be found.
func (a answer) excerpt(said string) string {
	return cut(oneLine(a.secrets.Hide(said)), excerptLimit)
}

// withPath appends a path to an address that does not end with it.
func withPath(u *url.URL, path string) *url.URL {
	if strings.HasSuffix(u.Path, path) {
		return u
	}
	return u.JoinPath(path)
}
