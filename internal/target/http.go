package target

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/envsecret"
	"github.com/canaryctl/canaryctl/internal/webclient"
)

const (
	// maxRetryAfter bounds how long a server may ask to be left alone.
	maxRetryAfter = 5 * time.Minute
	// shownAnswer is how much of an error's answer is repeated, in bytes.
	shownAnswer = 200
)

// web asks one HTTP API. Neither its secrets nor its URLs appear in errors.
type web struct {
	name    string // of the target, for errors
	client  *http.Client
	timeout time.Duration // of one request, with its answer's body
	header  http.Header   // of every request
	secrets envsecret.Secrets
	keyHint string // what to do about a 401 or a 403
}

// answer is a response, read to its end.
type answer struct {
	method string
	status int
	header http.Header
	etag   string // from the header or the trailer
	body   []byte
}

func newWeb(name string, client *http.Client, timeout time.Duration) *web {
	if client == nil {
		client = &http.Client{Transport: http.DefaultTransport}
	}
	own := *client
	own.CheckRedirect = webclient.SameHost
	own.Jar = nil
	return &web{name: name, client: &own, timeout: timeout, header: http.Header{}}
}

// do sends a request and reads the answer, whatever its status. An error is an
// [*UnreachableError], after which the request may have been done, or a
// [*ShapeError] of a body that cannot be read.
func (w *web) do(ctx context.Context, method, where string, header http.Header, body []byte) (*answer, error) {
	asked, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(asked, method, where, bytes.NewReader(body))
	if err != nil {
		return nil, &RefusedError{Target: w.name, Err: fmt.Errorf("not a URL or not a method: %w", w.secrets.Clean(err))}
	}
	for _, from := range []http.Header{w.header, header} {
		for k, v := range from {
			req.Header[k] = v
		}
	}
	// A server that compresses makes another ETag for it, a weak one or one
	// that its own If-Match does not know.
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, w.failed(ctx, err)
	}
	defer resp.Body.Close() // read to its end or given up
	return w.read(ctx, method, resp)
}

func (w *web) read(ctx context.Context, method string, resp *http.Response) (*answer, error) {
	a := &answer{method: method, status: resp.StatusCode, header: resp.Header}
	var err error
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	failed := a.status >= 300 // its body is for people: whatever came of it will do
	if err != nil && !failed {
		return nil, w.failed(ctx, fmt.Errorf("status %d, then the answer broke off: %w", a.status, err))
	}
	// A trailer has its values once the body is read.
	if a.etag = resp.Header.Get("Etag"); a.etag == "" {
		a.etag = resp.Trailer.Get("Etag")
	}
	if err := a.unpack(); err != nil && !failed {
		return nil, w.shape(err)
	}
	return a, nil
}

// unpack undoes a compression that was not asked for, and refuses what is too
// large.
func (a *answer) unpack() (err error) {
	switch encoding := strings.ToLower(a.header.Get("Content-Encoding")); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		if a.body, err = gunzip(a.body); err != nil {
			return fmt.Errorf("the answer says that it is gzip: %w", err)
		}
	default:
		return fmt.Errorf("the answer comes compressed as %q, which was not asked for", oneLine(encoding, 20))
	}
	if len(a.body) > maxDocument {
		return fmt.Errorf("the answer is larger than %d MiB", maxDocument>>20)
	}
	return nil
}

func gunzip(body []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, maxDocument+1))
}

func (w *web) shape(err error) error {
	return &ShapeError{Target: w.name, Err: errors.New(w.secrets.Hide(err.Error()))}
}

// failed is the error of a request without an answer. ctx is the caller's,
// without the limit of time of the request.
func (w *web) failed(ctx context.Context, err error) error {
	var cause error
	switch {
	case ctx.Err() != nil:
		cause = ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		cause = fmt.Errorf("no answer within %s: %w", w.timeout, context.DeadlineExceeded)
	default:
		cause = w.secrets.Clean(err)
	}
	return &UnreachableError{Target: w.name, Err: cause}
}

// verdict is the error of an answer's status; nil for 2xx.
func (w *web) verdict(a *answer) error {
	err := fmt.Errorf("%s was answered with %s", a.method, w.said(a))
	switch {
	case a.status >= 200 && a.status < 300:
		return nil
	case a.status < 400:
		return &RefusedError{Target: w.name, Err: w.redirected(a), Hint: "put the address it ends at into the configuration: a token is not sent to another host, nor a write turned into a read"}
	case a.status == http.StatusConflict, a.status == http.StatusPreconditionFailed:
		return &ConflictError{Target: w.name, Err: err}
	case passing(a.status):
		return &UnreachableError{Target: w.name, Err: err, After: min(webclient.RetryAfter(a.header, time.Now()), maxRetryAfter)}
	}
	return &RefusedError{Target: w.name, Err: err, Hint: w.hint(a.status)}
}

// passing reports whether a status says not now rather than no.
func passing(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusLocked, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return status >= 500
}

func (w *web) redirected(a *answer) error {
	to, err := url.Parse(a.header.Get("Location"))
	if err != nil || to.Host == "" {
		return fmt.Errorf("%s was answered with %d, a redirect that is not followed", a.method, a.status)
	}
	return fmt.Errorf("%s was answered with %d, a redirect to %s that is not followed", a.method, a.status, w.secrets.Hide(oneLine(to.Scheme+"://"+to.Host, shownAnswer)))
}

func (w *web) hint(status int) string {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return w.keyHint
	case http.StatusNotFound, http.StatusGone:
		return "nothing is there: check the address; some APIs answer so to a key without rights"
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return "the address takes another method: see write_method and write_url"
	case http.StatusUnsupportedMediaType:
		return "the address takes another kind of body: see mode and content_type"
	case http.StatusPreconditionRequired:
		return "the API demands If-Match, and its ETag is weak or missing: see if_match"
	}
	return ""
}

// said is a status with what the server wrote about it.
func (w *web) said(a *answer) string {
	status := strings.TrimSpace(fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)))
	if text := w.secrets.Hide(explanation(a)); text != "" {
		return status + ": " + oneLine(text, shownAnswer)
	}
	return status
}

// explanation is what the answer's body says to people: the detail of a JSON
// problem (RFC 9457) or of what is like one, else a short text.
func explanation(a *answer) string {
	media, _, _ := mime.ParseMediaType(a.header.Get("Content-Type")) // none is no HTML
	body := bytes.TrimSpace(a.body)
	var problem map[string]any
	if json.Unmarshal(body, &problem) == nil {
		for _, key := range []string{"detail", "message", "error", "title"} {
			if text, ok := problem[key].(string); ok && text != "" {
				return text
			}
		}
	}
	if media == "text/html" || bytes.HasPrefix(body, []byte("<")) {
		return "an HTML page"
	}
	return string(body[:min(len(body), 4*shownAnswer)])
}

// isStrong reports whether an ETag may stand in If-Match: RFC 9110, 8.8.3.2
// compares strongly there, so that a weak one never matches.
func isStrong(etag string) bool {
	return len(etag) >= 2 && strings.HasPrefix(etag, `"`) && strings.HasSuffix(etag, `"`)
}
