package probe

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/canaryctl/canaryctl/internal/webclient"
)

const (
	defaultTimeout = 30 * time.Second
	maxBody        = 1 << 20 // bytes of an answer that are read; a completion of a few tokens has some hundred
	maxEvent       = 4 << 10 // bytes of an event stream that are read
	// tokens is the limit that is sent: models that think before they answer
	// refuse a smaller one.
	tokens = 16

	oldLimit = "max_tokens"
	newLimit = "max_completion_tokens" // instead of it for newer models
)

// question is a probe that can be sent.
type question struct {
	arm     string
	url     *url.URL
	shown   string // url, for people
	model   string
	key     string
	keyName string // where the key came from
	limit   string // name of the token limit
	timeout time.Duration

	mask     *mask
	proxy    *url.URL // nil: none
	proxyEnv string
}

// answer is what came back over HTTP.
type answer struct {
	status  int
	header  http.Header
	body    []byte
	long    bool // there is more of the body
	latency time.Duration
	message message
}

// stages of a request, for saying how far it came before it timed out
const (
	connecting = iota
	connected
	asked
)

// prepare checks all that can be checked without sending anything.
func prepare(v Version, o Options) (*question, *Result) {
	getenv := o.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	q := &question{arm: v.Arm, model: v.ModelID, timeout: o.Timeout, limit: oldLimit}
	if q.timeout <= 0 {
		q.timeout = defaultTimeout
	}
	q.key, q.keyName = v.secret(getenv)
	q.mask = newMask(q.key)
	if r := q.address(v.BaseURL); r != nil {
		return nil, r
	}
	if strings.TrimSpace(v.ModelID) == "" {
		return nil, q.result(NoModelID, fmt.Sprintf("versions.%s.model_id is not set, so there is nothing to ask for", v.Arm),
			"set it to the name under which the server knows the model; clients without base_url, model or key often ask for an OAuth login instead")
	}
	if r := q.checkKey(v); r != nil {
		return nil, r
	}
	if r := q.checkLimit(v.Params); r != nil {
		return nil, r
	}
	proxy, variable, err := proxyFor(q.url, getenv)
	if err != nil {
		return nil, q.result(Proxy, fmt.Sprintf("%s does not name a proxy that can be used: %s", variable, err),
			fmt.Sprintf("correct %s, unset it, or put %s into NO_PROXY", variable, q.url.Hostname()))
	}
	q.proxy, q.proxyEnv = proxy, variable
	return q, nil
}

// address reads the base URL.
func (q *question) address(base string) *Result {
	name := fmt.Sprintf("versions.%s.base_url", q.arm)
	if strings.TrimSpace(base) == "" {
		return q.result(NoURL, name+" is not set, so there is nobody to ask",
			"set it to the address under which chat completions are served, such as https://HOST/v1; clients without base_url, model or key often ask for an OAuth login instead")
	}
	u, err := url.Parse(strings.TrimSpace(base))
	switch {
	case err != nil:
		return q.result(BadURL, name+" is not an address", "write it as https://HOST/v1")
	case u.Scheme != "http" && u.Scheme != "https":
		return q.result(BadURL, name+" does not begin with http:// or https://", "write it as https://HOST/v1")
	case u.Hostname() == "":
		return q.result(BadURL, name+" names no host", "write it as https://HOST/v1")
	}
	if password, ok := u.User.Password(); ok {
		q.mask.also(password)
	}
	for _, values := range u.Query() {
		for _, value := range values {
			if len(value) >= leastQuerySecret {
				q.mask.also(value)
			}
		}
	}
	if path := strings.TrimRight(u.Path, "/"); strings.HasSuffix(path, "/chat/completions") {
		return q.result(BadURL, name+" ends with /chat/completions, which clients put behind it themselves",
			"leave that out of base_url: it ends before /chat/completions, mostly with /v1")
	}
	u.Fragment = ""
	q.url = u.JoinPath("chat", "completions")
	q.shown = q.mask.text(bare(q.url), maxShown)
	return nil
}

// bare prints an address without what may be secret in it.
func bare(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// checkLimit looks at the version's own token limit and takes its name over.
func (q *question) checkLimit(params map[string]any) *Result {
	for _, name := range []string{oldLimit, newLimit} {
		value, ok := params[name]
		if !ok || value == nil {
			continue
		}
		q.limit = name
		if !positive(value) {
			return q.result(MaxTokens, fmt.Sprintf("versions.%s.params.%s is %s, and servers refuse what is not a whole number above 0, or answer without choices", q.arm, name, q.mask.text(fmt.Sprint(value), maxShown)),
				"set it to 1 or more, or leave it out")
		}
	}
	return nil
}

// positive reports whether a value of the configuration is a whole number of
// at least 1.
func positive(value any) bool {
	switch n := value.(type) {
	case int:
		return n > 0
	case int64:
		return n > 0
	case uint64:
		return n > 0
	case float64:
		return n > 0 && n == float64(int64(n))
	case json.Number:
		i, err := n.Int64()
		return err == nil && i > 0
	}
	return false
}

// body is the smallest chat completion: no temperature, which some models
// refuse.
func (q *question) body() ([]byte, error) {
	return json.Marshal(map[string]any{
		"model":    q.model,
		"messages": []map[string]string{{"role": "user", "content": "ping"}},
		q.limit:    tokens,
		"stream":   false,
	})
}

// send asks once. What cannot be answered over HTTP is a result.
func (q *question) send(ctx context.Context) (*answer, *Result) {
	body, err := q.body()
	if err != nil {
		return nil, q.result(BadRequest, "the request cannot be encoded as JSON", "look at model_id")
	}
	var stage atomic.Int32
	trace := &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { stage.Store(connected) },
		WroteRequest: func(httptrace.WroteRequestInfo) { stage.Store(asked) },
	}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodPost, q.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, q.result(BadURL, fmt.Sprintf("versions.%s.base_url is not an address", q.arm), "write it as https://HOST/v1")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "canaryctl")
	if q.key != "" {
		req.Header.Set("Authorization", "Bearer "+q.key)
	}
	transport := q.transport()
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: webclient.NoRedirect}
	start := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return nil, q.unanswered(ctx, err, stage.Load())
	}
	defer resp.Body.Close()
	a := &answer{status: resp.StatusCode, header: resp.Header}
	a.body, a.long, err = readBody(resp)
	a.latency = time.Since(start)
	if err != nil {
		r := q.unanswered(ctx, err, asked)
		r.Status = a.status
		return nil, r
	}
	a.message = readMessage(a.body)
	return a, nil
}

func (q *question) transport() *http.Transport {
	return &http.Transport{
		Proxy: func(*http.Request) (*url.URL, error) { return q.proxy, nil },
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
			if resp.StatusCode != http.StatusOK {
				return &proxyStatusError{resp.StatusCode}
			}
			return nil
		},
		DialContext:       (&net.Dialer{}).DialContext,
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
		DisableKeepAlives: true,
	}
}

// readBody reads what is needed of an answer: an event stream, which may never
// end, up to its first event.
func readBody(resp *http.Response) (body []byte, long bool, err error) {
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
		return body[:min(len(body), maxBody)], len(body) > maxBody, err
	}
	lines := bufio.NewReader(io.LimitReader(resp.Body, maxEvent))
	for {
		line, err := lines.ReadBytes('\n')
		body = append(body, line...)
		if err != nil || bytes.HasPrefix(line, []byte("data:")) {
			return body, false, nil // the status and the type are answer enough
		}
	}
}

// result is a result that rests on no answer.
func (q *question) result(kind Kind, explain, fix string) *Result {
	r := &Result{Kind: kind, Explain: explain, Fix: fix, URL: q.shown, ProxyEnv: q.proxyEnv}
	if q.proxy != nil {
		r.Proxy = bareProxy(q.proxy)
	}
	return r
}

// via says which way a request took, for sentences in which that may matter.
func (q *question) via() string {
	if q.proxy == nil {
		return ""
	}
	return fmt.Sprintf(" (by way of the proxy %s from %s)", bareProxy(q.proxy), q.proxyEnv)
}
