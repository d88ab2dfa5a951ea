package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/diag"
	"github.com/canaryctl/canaryctl/internal/envsecret"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/trace"
	"github.com/canaryctl/canaryctl/internal/webclient"
)

const (
	// maxPoints is how many windows one query asks for: the server refuses
	// more than 11,000.
	maxPoints = 10_000
	// atOnce bounds how many queries run at the same time.
	atOnce = 4
	// maxAnswer bounds an answer: 10,000 points take some 400 kB.
	maxAnswer = 64 << 20
	// readTimeout is how long one reading may take where nothing else is said.
	readTimeout = 30 * time.Second
)

// prometheus reads windows by query_range: a query for each arm and field, of
// which the value at the end of a window is the window's figure.
type prometheus struct {
	name         string // host and path, without what could be secret
	url          string
	client       *http.Client
	header       http.Header
	secrets      envsecret.Secrets
	queries      []query
	span, settle time.Duration
	timeout      time.Duration

	mu     sync.Mutex
	newest time.Time
}

// query is the PromQL of one figure of one arm.
type query struct {
	arm   release.Arm
	field string
	text  string
}

func (q query) String() string { return string(q.arm) + "." + q.field }

func newPrometheus(c *config.Source, o Options) (*prometheus, error) {
	p := &prometheus{name: "source.prometheus", span: c.Span, settle: c.Settle, timeout: c.Timeout}
	if p.timeout <= 0 {
		p.timeout = readTimeout
	}
	fail := func(err error, hint string) (*prometheus, error) {
		return nil, &Error{Source: "source.prometheus", Err: err, Hint: hint}
	}
	env := envsecret.New(o.Getenv)
	if err := p.setURL(env, c); err != nil {
		return fail(err, "url is the server's address, as in http://prometheus:9090; url_env names the variable that holds it")
	}
	if err := p.setHeader(env, c); err != nil {
		return fail(err, "set it, or take it out of source.prometheus")
	}
	p.secrets = env.Secrets()
	if err := p.setQueries(c, o); err != nil {
		return fail(err, "see source.prometheus.queries")
	}
	p.setClient(o.Client)
	return p, nil
}

// setURL takes the server's address, and the name that may be printed: without
// user, password and parameters, and without the path of an address that was
// kept out of canary.yaml.
func (p *prometheus) setURL(env *envsecret.Environment, c *config.Source) error {
	u, err := env.Address("url", c.URL, c.URLEnv)
	if err != nil {
		return err
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.Path, u.RawPath = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/query_range"), "/api/v1"), ""
	p.name = "prometheus " + envsecret.Named(u, c.URL)
	u.Path += "/api/v1/query_range"
	p.url = u.String()
	return nil
}

// setHeader fills in headers and the token from the environment.
func (p *prometheus) setHeader(env *envsecret.Environment, c *config.Source) (err error) {
	if p.header, err = env.Headers("headers", c.Headers); err != nil || c.TokenEnv == "" {
		return err
	}
	value, err := env.Authorization("token_env", c.TokenEnv, "")
	p.header.Set("Authorization", value)
	return err
}

// noQuery takes a preset's query away.
const noQuery = "-"

// setQueries puts the user's queries over the preset's.
func (p *prometheus) setQueries(c *config.Source, o Options) error {
	set, known := presets()[c.Preset]
	if c.Preset != "" && !known {
		return fmt.Errorf("there is no preset %q; there are %s", c.Preset, presetNames())
	}
	put := strings.NewReplacer("$span", model.Duration(p.span).String(), "$ttft_le", bucketLabel(o.TTFTLimitMS))
	for _, arm := range []release.Arm{release.Canary, release.Stable} {
		texts := map[string]string{}
		if matchers, ok := c.Matchers[arm]; ok && known {
			texts = set.with(matchers)
		}
		maps.Copy(texts, c.Queries[arm])
		maps.DeleteFunc(texts, func(_, text string) bool { return strings.TrimSpace(text) == noQuery })
		for _, field := range slices.Sorted(maps.Keys(texts)) {
			if !isQueryField(field) {
				return unknownQuery(arm, field)
			}
		}
		for _, field := range queryFields {
			text := strings.TrimSpace(texts[field])
			if text == "" || field == "slow" && o.SlowMS <= 0 || field == "ttft_slow" && o.TTFTLimitMS <= 0 {
				continue
			}
			p.queries = append(p.queries, query{arm, field, put.Replace(text)})
		}
		if (arm == release.Canary || len(texts) > 0) && strings.TrimSpace(texts["total"]) == "" {
			return fmt.Errorf("%s has no query for total, the number of its requests", arm)
		}
	}
	return nil
}

func unknownQuery(arm release.Arm, field string) error {
	if near := diag.Nearest(field, queryFields); near != "" {
		return fmt.Errorf("%s.%s: a window has no such figure; did you mean %s?", arm, field, near)
	}
	return fmt.Errorf("%s.%s: a window has no such figure; it has %s", arm, field, strings.Join(queryFields, ", "))
}

// setClient takes a client that follows no redirect: it would carry the token,
// and a header with a key in it, to another host.
func (p *prometheus) setClient(c *http.Client) {
	if c == nil {
		c = http.DefaultClient
	}
	own := *c
	own.CheckRedirect = webclient.NoRedirect
	p.client = &own
}

func (p *prometheus) Span() time.Duration   { return p.span }
func (p *prometheus) Settle() time.Duration { return p.settle }
func (p *prometheus) String() string        { return p.name }

// Read asks every query for every window. If one fails the reading fails: no
// verdict rests on half of the figures.
func (p *prometheus) Read(ctx context.Context, from, now time.Time) (Batch, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first, until := ceilTo(from, p.span), floorTo(now.Add(-p.settle), p.span)
	b := Batch{Until: until, Newest: p.newest}
	if !first.Before(until) {
		return b, nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	set := newFigures(p.span, first, until)
	if err := p.ask(ctx, set, chunks(first, until, p.span)); err != nil {
		return Batch{}, err
	}
	b.Windows, b.Notes = set.windows(p.queries)
	for _, w := range b.Windows {
		if w.Total > 0 && w.End().After(p.newest) {
			p.newest = w.End()
		}
	}
	b.Newest = p.newest
	return b, nil
}

// stretch is a run of windows that one query asks for, by the ends of the
// first and the last.
type stretch struct{ start, end time.Time }

func chunks(first, until time.Time, span time.Duration) (out []stretch) {
	for t := first; t.Before(until); t = t.Add(maxPoints * span) {
		end := t.Add(maxPoints * span)
		if end.After(until) {
			end = until
		}
		out = append(out, stretch{t.Add(span), end})
	}
	return out
}

// ask runs all queries, a few at once. Of several errors it returns that of the
// first query, whichever came first.
func (p *prometheus) ask(ctx context.Context, set *figures, stretches []stretch) error {
	errs := make([]error, len(p.queries))
	free := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, q := range p.queries {
		wg.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			for _, s := range stretches {
				ans, err := p.query(ctx, q, s)
				if err == nil {
					err = set.take(q, ans)
				}
				if err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	wg.Wait()
	failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(failed) == 0 {
		return nil
	}
	if err := context.Cause(ctx); errors.Is(err, context.Canceled) {
		return &Error{Source: p.name, Err: err}
	}
	return p.explain(failed)
}

// queryError says which query failed.
type queryError struct {
	query query
	err   error
	hint  string
}

func (e *queryError) Error() string { return e.query.String() + ": " + e.err.Error() }
func (e *queryError) Unwrap() error { return e.err }

func (p *prometheus) explain(failed []error) error {
	e := &Error{Source: p.name, Err: failed[0]}
	if q, ok := errors.AsType[*queryError](failed[0]); ok {
		e.Hint = q.hint
	}
	if more := len(failed) - 1; more > 0 {
		e.Err = fmt.Errorf("%w (and %d more queries failed)", failed[0], more)
	}
	return e
}

// query asks for one stretch of windows.
func (p *prometheus) query(ctx context.Context, q query, s stretch) (trace.Answer, error) {
	fail := func(err error, hint string) (trace.Answer, error) {
		return trace.Answer{}, &queryError{q, p.secrets.Clean(err), hint} // the server may repeat what it was sent
	}
	form := url.Values{
		"query": {q.text}, "start": {seconds(s.start)}, "end": {seconds(s.end)},
		"step": {strconv.FormatFloat(p.span.Seconds(), 'f', -1, 64)},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, strings.NewReader(form.Encode()))
	if err != nil {
		return fail(errors.New("the request cannot be made"), "is the address right?")
	}
	req.Header = p.header.Clone()
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	resp, err := p.client.Do(req)
	if err != nil {
		return fail(p.unreached(err), "is the address right, and does the server answer in time?")
	}
	defer resp.Body.Close() // read to its end, or given up
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fail(fmt.Errorf("the answer broke off: %w", p.unreached(err)), "")
	case len(body) > maxAnswer:
		return fail(fmt.Errorf("the answer is larger than %d MiB", maxAnswer>>20), "aggregate in the query, as in sum(...)")
	}
	ans, err := trace.ParseAnswer(body)
	if said, ok := errors.AsType[*trace.AnswerError](err); ok && resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return fail(fmt.Errorf("HTTP %d, %s: %s", resp.StatusCode, said.Type, printable(p.secrets.Hide(said.Message))), "the query is "+printable(q.text))
	}
	if resp.StatusCode != http.StatusOK {
		hint, err := p.status(resp, body)
		return fail(err, hint)
	}
	if err != nil {
		hint, err := shape(body, err)
		return fail(err, hint)
	}
	if ans.Partial {
		return fail(errors.New("partial answer: the server says that some of the data is missing"), "a verdict on half of the data would be none; look at the server's storage nodes")
	}
	return ans, nil
}

// seconds is a time as the API takes it.
func seconds(t time.Time) string {
	ms := t.UnixMilli()
	return strconv.FormatInt(ms/1000, 10) + fmt.Sprintf(".%03d", ms%1000)
}

// unreached takes the address, which may hold a password, and all that is secret
// out of an error.
func (p *prometheus) unreached(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", p.timeout)
	}
	return p.secrets.Clean(err)
}

// status says what an answer that is no success means, and what to do.
func (p *prometheus) status(resp *http.Response, body []byte) (hint string, err error) {
	err = fmt.Errorf("HTTP %d%s", resp.StatusCode, p.excerpt(body))
	switch s := resp.StatusCode; {
	case s >= 300 && s < 400:
		return "write the address that it leads to; a login page means that token_env or headers are missing", fmt.Errorf("HTTP %d, a redirect, which is not followed", s)
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		return "the server wants to know who asks: see token_env and headers", err
	case s == http.StatusNotFound:
		return "there is no /api/v1/query_range under this address; is a part of the path missing?", err
	case s == http.StatusMethodNotAllowed:
		return "queries are sent by POST; something before the server does not let that through", err
	case s == http.StatusTooManyRequests:
		return "the server is asked too often", err
	}
	return "", err
}

// shape says what a body that is no answer is instead.
func shape(body []byte, err error) (hint string, _ error) {
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) {
		return "a login page, or not the address of the API; see url and token_env", errors.New("the answer is a web page (HTML), not JSON")
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return "is it the address of a Prometheus API?", errors.New("the answer is empty")
	}
	return "", err
}

// excerpt is the start of a body that explains an error. Secrets go first: one
// that is cut would not be found.
func (p *prometheus) excerpt(body []byte) string {
	text := strings.TrimSpace(p.secrets.Hide(string(body[:min(len(body), 64<<10)])))
	switch {
	case text == "":
		return ""
	case strings.HasPrefix(text, "<"):
		return ", a web page"
	}
	return ": " + printable(text[:min(len(text), 200)])
}

// printable keeps a text from elsewhere on one line, without control
// characters, and to a length for messages.
func printable(s string) string {
	const most = 300
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most]) + "..."
	}
	return s
}

// floorTo and ceilTo round to multiples of span since 1970.
func floorTo(t time.Time, span time.Duration) time.Time {
	m := t.UnixNano() % int64(span)
	if m < 0 {
		m += int64(span)
	}
	return t.Add(-time.Duration(m)).UTC()
}

func ceilTo(t time.Time, span time.Duration) time.Time {
	if f := floorTo(t, span); f.Before(t) {
		return f.Add(span)
	}
	return t.UTC()
}
