package target

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/envsecret"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/splice"
)

const (
	defaultTimeout  = 10 * time.Second
	defaultReadBack = 10 * time.Second
	defaultStateAt  = "state"

	// overwriteTries bounds how often a rollback is written against a document
	// that others keep changing, overwritePause how long it waits at first.
	overwriteTries = 8
	overwritePause = 50 * time.Millisecond
)

// The header that carries the fencing token, for servers that know it.
const tokenHeader = "Canaryctl-Token"

// configAPI is a document behind an HTTP API. A write reads it, compares, and
// sends the whole document, a patch or a body of the user's; If-Match makes
// the server compare once more where its ETag allows that.
type configAPI struct {
	web       *web
	readURL   string
	writeURL  string
	method    string
	mode      string
	body      string // of mode template
	mediaType string
	doc       document
	ifMatch   string
	stateAt   splice.Selector // empty: no state is kept
	readBack  time.Duration
	ring      int64
	pause     time.Duration // before the second try of an overwriting write
}

// mediaTypes are what each mode sends.
var mediaTypes = map[string]string{
	"put":         "application/json",
	"merge_patch": "application/merge-patch+json", // RFC 7396
	"json_patch":  "application/json-patch+json",  // RFC 6902
	"template":    "application/json",
}

func newConfigAPI(cfg *config.ConfigAPITarget, o Options) (Target, error) {
	const key = "target.config_api"
	t := &configAPI{
		mode:      cmp.Or(cfg.Mode, "put"),
		body:      cfg.Body,
		ifMatch:   cmp.Or(cfg.IfMatch, "auto"),
		readBack:  cmp.Or(cfg.ReadBack, defaultReadBack),
		ring:      o.Ring,
		pause:     overwritePause,
		mediaType: cfg.ContentType,
		method:    cfg.WriteMethod,
	}
	if err := t.checkModes(key, o.KeepState); err != nil {
		return nil, err
	}
	var err error
	if t.doc, err = newDocument(key, cfg.Canary, cfg.Stable, cfg.Unit); err != nil {
		return nil, err
	}
	if o.KeepState {
		if t.stateAt, err = splice.ParseSelector(cmp.Or(cfg.StateAt, defaultStateAt)); err != nil {
			return nil, fmt.Errorf("%s.state_at: %w", key, err)
		}
	}
	if t.mode == "template" {
		if _, err := t.fill(Change{}); err != nil {
			return nil, fmt.Errorf("%s.body: %w", key, err)
		}
	}
	if err := t.connect(key, cfg, o); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *configAPI) checkModes(key string, keepState bool) error {
	media, ok := mediaTypes[t.mode]
	switch {
	case !ok:
		return fmt.Errorf("%s.mode: %q is none of put, merge_patch, json_patch, template", key, t.mode)
	case !slices.Contains([]string{"auto", "weak", "off"}, t.ifMatch):
		return fmt.Errorf("%s.if_match: %q is none of auto, weak, off", key, t.ifMatch)
	case t.mode == "template" && !strings.Contains(t.body, "{canary}"):
		return fmt.Errorf("%s.body: {canary} does not stand in it: every write would send the same weight", key)
	case t.mode != "template" && t.body != "":
		return fmt.Errorf("%s.body: only mode template sends one", key)
	case keepState && t.mode == "template":
		return fmt.Errorf("%s.mode: a template cannot keep the state beside the weight: write state: {in_target: false}, or mode put", key)
	}
	t.mediaType = cmp.Or(t.mediaType, media)
	if strings.HasSuffix(t.mode, "_patch") {
		t.method = cmp.Or(t.method, http.MethodPatch)
	}
	t.method = cmp.Or(t.method, http.MethodPut)
	return nil
}

// connect resolves what comes from the environment.
func (t *configAPI) connect(key string, cfg *config.ConfigAPITarget, o Options) error {
	env := envsecret.New(o.Getenv)
	base, err := env.Address(key+".url", cfg.URL, cfg.URLEnv)
	if err != nil {
		return err
	}
	read, write := base, base
	if cfg.ReadURL != "" {
		if read, err = env.Address(key+".read_url", cfg.ReadURL, ""); err != nil {
			return err
		}
	}
	if cfg.WriteURL != "" {
		if write, err = env.Address(key+".write_url", cfg.WriteURL, ""); err != nil {
			return err
		}
	}
	if t.ifMatch == "auto" && !sameResource(read, write) {
		t.ifMatch = "off" // the ETag of one resource never matches another
	}
	t.readURL, t.writeURL = read.String(), write.String()
	t.web = newWeb("config api "+envsecret.Named(write, cmp.Or(cfg.WriteURL, cfg.URL)), o.Client, cmp.Or(cfg.Timeout, defaultTimeout))
	if t.web.header, err = env.Headers(key+".headers", cfg.Headers); err != nil {
		return err
	}
	t.web.keyHint = "no token is sent: name the variable that holds it in token_env"
	if cfg.TokenEnv != "" {
		value, err := env.Authorization(key+".token_env", cfg.TokenEnv, cfg.TokenScheme)
		if err != nil {
			return err
		}
		t.web.header.Set("Authorization", value)
		t.web.keyHint = cfg.TokenEnv + " is set, but its token was rejected or has no rights here: a placeholder, a revoked key, or another token_scheme"
	}
	t.web.secrets = env.Secrets()
	return nil
}

func sameResource(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && a.Host == b.Host && a.Path == b.Path
}

// held is a document as it was read.
type held struct {
	src  []byte
	etag string
}

func (t *configAPI) fetch(ctx context.Context) (held, error) {
	a, err := t.web.do(ctx, http.MethodGet, t.readURL, http.Header{"Accept": {"application/json"}}, nil)
	if err != nil {
		return held{}, err
	}
	if err := t.web.verdict(a); err != nil {
		if conflict, ok := errors.AsType[*ConflictError](err); ok { // nothing was asked that could be one
			err = &RefusedError{Target: t.String(), Err: conflict.Err}
		}
		return held{}, err
	}
	if err := checkJSON(a.body); err != nil {
		return held{}, t.shape(fmt.Errorf("GET was answered with %d and %w", a.status, err), "")
	}
	return held{a.body, a.etag}, nil
}

func (t *configAPI) shape(err error, hint string) error {
	return &ShapeError{Target: t.String(), Err: errors.New(t.web.secrets.Hide(err.Error())), Hint: hint}
}

// Read implements [Target].
func (t *configAPI) Read(ctx context.Context) (Reading, error) {
	h, err := t.fetch(ctx)
	if err != nil {
		return Reading{}, err
	}
	return t.reading(h)
}

func (t *configAPI) reading(h held) (Reading, error) {
	w, err := t.doc.read(h.src, t.ring)
	if err != nil {
		return Reading{}, t.shape(err, "canary and stable say where the weights stand, unit what they are multiples of")
	}
	state, err := t.state(h.src)
	return Reading{Weight: w, Revision: h.etag, State: state}, err
}

// state returns what is kept beside the weight; nil where nothing is.
func (t *configAPI) state(src []byte) ([]byte, error) {
	if t.stateAt.IsZero() {
		return nil, nil
	}
	text, err := splice.Get(src, splice.Document{}, t.stateAt)
	switch {
	case errors.Is(err, splice.ErrNotFound), err == nil && text == "":
		return nil, nil
	case err != nil:
		return nil, t.shape(err, "state_at is where the release's state is kept as a text: give it a key of its own")
	}
	return []byte(text), nil
}

// Write implements [Target].
func (t *configAPI) Write(ctx context.Context, was Reading, c Change) error {
	if err := t.Check(c.To); err != nil {
		return err
	}
	err := t.send(ctx, was, c, t.compose)
	pause := t.pause
	for try := 2; c.Overwrite && try <= overwriteTries; try++ {
		if _, lost := errors.AsType[*ConflictError](err); !lost {
			return err
		}
		select {
		case <-ctx.Done():
			return &UnreachableError{Target: t.String(), Err: ctx.Err()}
		case <-time.After(pause):
		}
		pause *= 2
		// A server that remembers its answers by key would say again what it
		// said to the document that lost.
		next := c
		if c.Key != "" {
			next.Key = c.Key + "." + strconv.Itoa(try)
		}
		err = t.send(ctx, was, next, t.compose)
	}
	return err
}

// send reads, compares, and writes once what compose makes of the document.
func (t *configAPI) send(ctx context.Context, was Reading, c Change, compose func(src []byte, c Change) ([]byte, error)) error {
	h, err := t.fetch(ctx)
	if err == nil && !c.Overwrite {
		err = t.compare(was, h)
	}
	var body []byte
	if err == nil {
		body, err = compose(h.src, c)
	}
	if shape, ok := errors.AsType[*ShapeError](err); ok {
		return &RefusedError{Target: t.String(), Err: shape.Err, Hint: shape.Hint}
	}
	if err != nil {
		return err
	}
	etag := h.etag
	if etag == "" && !c.Overwrite {
		etag = was.Revision
	}
	a, err := t.web.do(ctx, t.method, t.writeURL, t.headers(etag, c), body)
	if shape, ok := errors.AsType[*ShapeError](err); ok { // it was answered, in a way that nobody can read
		return &UnreachableError{Target: t.String(), Err: shape.Err}
	}
	if err != nil {
		return err
	}
	err = t.web.verdict(a)
	if _, refused := errors.AsType[*RefusedError](err); refused && t.mode == "json_patch" {
		return t.tested(ctx, h, err)
	}
	return err
}

// compare returns a [*ConflictError] when a document is not the one that was
// read before.
func (t *configAPI) compare(was Reading, h held) error {
	is, err := t.reading(h)
	if err != nil {
		return err
	}
	switch {
	case !is.Weight.Same(was.Weight):
		return &ConflictError{Target: t.String(), Held: &is.Weight}
	case isStrong(is.Revision) && isStrong(was.Revision) && is.Revision != was.Revision,
		!t.stateAt.IsZero() && !bytes.Equal(is.State, was.State):
		return &ConflictError{Target: t.String(), Held: &is.Weight, Err: errors.New("the document has been edited since it was read")}
	}
	return nil
}

// tested tells a failed test of a JSON Patch from a patch that is refused:
// servers answer both with 400, 409 or 422. After a conflict the document
// holds something else.
func (t *configAPI) tested(ctx context.Context, h held, refused error) error {
	again, err := t.fetch(ctx)
	if err != nil {
		return refused
	}
	before, err := t.doc.read(h.src, t.ring)
	if err != nil {
		return refused
	}
	if now, err := t.doc.read(again.src, t.ring); err == nil && !now.Same(before) {
		return &ConflictError{Target: t.String(), Held: &now, Err: refused}
	}
	return refused
}

// headers are those of a write.
func (t *configAPI) headers(etag string, c Change) http.Header {
	h := http.Header{"Content-Type": {t.mediaType}}
	if etag != "" && (t.ifMatch == "weak" || t.ifMatch == "auto" && isStrong(etag)) {
		h.Set("If-Match", etag)
	}
	if c.Key != "" {
		h.Set("Idempotency-Key", c.Key)
	}
	if c.Token != 0 && !c.Overwrite { // a rollback is never refused for a clock that is behind
		h.Set(tokenHeader, strconv.FormatUint(c.Token, 10))
	}
	return h
}

// Check implements [Target].
func (t *configAPI) Check(w release.Weight) error { return t.doc.check(t.String(), w) }

// KeepsState implements [Target].
func (t *configAPI) KeepsState() bool { return !t.stateAt.IsZero() }

// ReadBack implements [Target].
func (t *configAPI) ReadBack() time.Duration { return t.readBack }

// String implements [Target].
func (t *configAPI) String() string { return t.web.name }
