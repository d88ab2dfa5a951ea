package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
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
	mask    func(string) string
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
	status int
	header http.Header
	body   []byte
}

func newLink(o Options, timeout, usual time.Duration) *link {
	if timeout <= 0 {
		timeout = usual
	}
	client := http.Client{}
	if o.Client != nil {
		client = *o.Client
	}
	client.CheckRedirect = sameHost
	client.Timeout = 0 // ours is by request
	return &link{client: &client, timeout: timeout, headers: http.Header{}, mask: func(s string) string { return s }}
}

// sameHost follows a redirect only to the same scheme and host and only with
// the method and body kept (307, 308): the token must not travel to another
// host, and a message that turned into a GET of a landing page would count as
// delivered.
func sameHost(next *http.Request, via []*http.Request) error {
	first := via[0]
	if next.URL.Host != first.URL.Host || next.URL.Scheme != first.URL.Scheme || next.Method != first.Method || len(via) > 5 {
		return http.ErrUseLastResponse
	}
	return nil
}

// authorize sets the headers that are configured.
func (l *link) authorize(env *environment, tokenEnv string, headers map[string]string) error {
	token, err := env.secret("token_env", tokenEnv)
	if err != nil {
		return err
	}
	if token != "" {
		l.headers.Set("Authorization", "Bearer "+token)
	}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value, err := env.expand("headers."+name, headers[name])
		if err != nil {
			return err
		}
		if !headerName.MatchString(name) || strings.ContainsFunc(value, unicode.IsControl) {
			return fmt.Errorf("headers: %q is no header's name, or its value is not one line", name)
		}
		l.headers.Set(name, value)
	}
	return nil
}

// headerName is a token of RFC 9110, 5.6.2.
var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

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
	return answer{status: resp.StatusCode, header: resp.Header, body: body}, err
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

// clean takes the secrets out of an error.
func (l *link) clean(err error) error { return cleaned(err, l.mask) }

// failure turns what went wrong into a *DeliveryError; nil stays nil.
func (l *link) failure(to string, err error, now func() time.Time) error {
	if err == nil {
		return nil
	}
	out := &DeliveryError{To: to, Err: l.clean(err)}
	if again, ok := errors.AsType[*retryable](err); ok {
		out.Retry = true
		out.After = again.after(now())
	}
	return out
}

// retryable is an error that a later try could mend.
type retryable struct {
	err  error
	wait string // Retry-After, as it came; ""
}

func (e *retryable) Error() string { return e.err.Error() }

func (e *retryable) Unwrap() error { return e.err }

// after reads Retry-After: seconds, or a date of HTTP (RFC 9110, 10.2.3).
func (e *retryable) after(now time.Time) time.Duration {
	if s, err := strconv.ParseInt(e.wait, 10, 32); err == nil {
		return max(0, time.Duration(s)*time.Second)
	}
	if t, err := http.ParseTime(e.wait); err == nil {
		return max(0, t.Sub(now))
	}
	return 0
}

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
		said = excerpt(a.body)
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
		return &retryable{err: err, wait: a.header.Get("Retry-After")}
	}
	return err
}

// excerptLimit is how much of an answer an error shows, in bytes.
const excerptLimit = 300

// excerpt returns the beginning of an answer in one line.
func excerpt(body []byte) string { return cut(oneLine(string(body)), excerptLimit) }

// withPath appends a path to an address that does not end with it.
func withPath(u *url.URL, path string) *url.URL {
	if strings.HasSuffix(u.Path, path) {
		return u
	}
	return u.JoinPath(path)
}
