package target

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// etcdGateway is etcd's JSON gateway, from etcd 3.4 on: gRPC's messages as JSON,
// keys and values in base64, 64-bit numbers as texts, and what is false or 0
// left out.
type etcdGateway struct {
	web       *web
	endpoints []*url.URL
	user      string // "": no authentication
	password  string

	mu    sync.Mutex
	token string // of the user; "" before the first request
}

// etcdHeld is what a key held at a revision. No revision: there is no key.
type etcdHeld struct {
	value    []byte
	revision string // mod_revision
}

type etcdRange struct {
	Kvs []struct {
		Value       []byte `json:"value"`
		ModRevision string `json:"mod_revision"`
	} `json:"kvs"`
}

func (r etcdRange) held() etcdHeld {
	if len(r.Kvs) == 0 {
		return etcdHeld{}
	}
	return etcdHeld{value: r.Kvs[0].Value, revision: r.Kvs[0].ModRevision}
}

type (
	etcdKey struct {
		Key []byte `json:"key"`
	}
	etcdCompare struct {
		Key         []byte `json:"key"`
		Target      string `json:"target"`
		Result      string `json:"result"`
		ModRevision string `json:"mod_revision,omitempty"`
		Version     string `json:"version,omitempty"`
	}
	etcdPut struct {
		Key   []byte `json:"key"`
		Value []byte `json:"value"`
	}
	etcdThen struct {
		Put etcdPut `json:"requestPut"`
	}
	etcdElse struct {
		Range etcdKey `json:"requestRange"`
	}
	etcdTxn struct {
		Compare []etcdCompare `json:"compare"`
		Success []etcdThen    `json:"success"`
		Failure []etcdElse    `json:"failure"`
	}
)

// get reads a key.
func (g *etcdGateway) get(ctx context.Context, key string) (etcdHeld, error) {
	var got etcdRange
	_, err := g.ask(ctx, "v3/kv/range", etcdKey{[]byte(key)}, &got)
	return got.held(), err
}

// swap puts a value if the key is still as it was held. Else it returns what
// the key holds instead.
func (g *etcdGateway) swap(ctx context.Context, key string, held etcdHeld, next []byte) (now etcdHeld, done bool, err error) {
	k := []byte(key)
	same := etcdCompare{Key: k, Target: "MOD", Result: "EQUAL", ModRevision: held.revision}
	if held.revision == "" {
		same = etcdCompare{Key: k, Target: "VERSION", Result: "EQUAL", Version: "0"} // there is none
	}
	txn := etcdTxn{
		Compare: []etcdCompare{same},
		Success: []etcdThen{{etcdPut{Key: k, Value: next}}},
		Failure: []etcdElse{{etcdKey{k}}},
	}
	var got struct {
		Succeeded bool `json:"succeeded"` // left out if it is not
		Responses []struct {
			Range etcdRange `json:"response_range"`
		} `json:"responses"`
	}
	unsure, err := g.ask(ctx, "v3/kv/txn", txn, &got)
	switch {
	case err != nil:
		return etcdHeld{}, false, err
	case got.Succeeded:
		return etcdHeld{}, true, nil
	case len(got.Responses) != 1:
		return etcdHeld{}, false, &ShapeError{Target: g.web.name, Err: errors.New("etcd answered a transaction without what the key holds")}
	}
	now = got.Responses[0].Range.held()
	// An endpoint that did not answer may have done it before the next one
	// was asked.
	return now, unsure && bytes.Equal(now.value, next), nil
}

// ask sends a request to the first endpoint that answers. unsure reports that
// one before it did not, and was sent enough to have done what it was asked.
func (g *etcdGateway) ask(ctx context.Context, path string, request, into any) (unsure bool, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return false, err
	}
	var sent atomic.Bool // the transport writes in a goroutine of its own
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	for _, endpoint := range g.endpoints {
		var a *answer
		if a, err = g.askOne(traced, endpoint, path, body); err == nil {
			return unsure, g.decode(a, into)
		}
		if _, ok := errors.AsType[*UnreachableError](err); !ok || ctx.Err() != nil {
			return unsure, err
		}
		unsure = sent.Load()
	}
	if e, ok := errors.AsType[*UnreachableError](err); ok && len(g.endpoints) > 1 {
		e.Err = fmt.Errorf("none of %d endpoints has answered; the last: %w", len(g.endpoints), e.Err)
	}
	return unsure, err
}

func (g *etcdGateway) decode(a *answer, into any) error {
	err := checkJSON(a.body)
	if err == nil {
		err = json.Unmarshal(a.body, into)
	}
	if err != nil {
		return &ShapeError{Target: g.web.name, Err: fmt.Errorf("not an answer of etcd's JSON gateway: %w", err)}
	}
	return nil
}

// askOne sends a request to one endpoint, with a new token if the one at hand
// has run out.
func (g *etcdGateway) askOne(ctx context.Context, endpoint *url.URL, path string, body []byte) (*answer, error) {
	where := endpoint.JoinPath(path).String()
	if g.user == "" {
		a, err := g.web.do(ctx, http.MethodPost, where, nil, body)
		if err != nil {
			return nil, err
		}
		return a, g.verdict(g.web, a)
	}
	token := g.kept()
	for renewed := false; ; renewed = true {
		if token == "" || renewed {
			var err error
			if token, err = g.authenticate(ctx, endpoint); err != nil {
				return nil, err
			}
		}
		w := g.withToken(token)
		a, err := w.do(ctx, http.MethodPost, where, nil, body)
		if err != nil {
			return nil, err
		}
		if renewed || !tokenRanOut(a) {
			return a, g.verdict(w, a)
		}
	}
}

// tokenRanOut reports whether etcd no longer takes a token: it is too old, or
// users and roles have changed since.
func tokenRanOut(a *answer) bool {
	return a.status == http.StatusUnauthorized ||
		a.status == http.StatusBadRequest && strings.Contains(string(a.body), "auth store is old")
}

// authNotEnabled reports that etcd asks nobody who he is.
func authNotEnabled(a *answer) bool {
	return a.status >= 400 && strings.Contains(string(a.body), "authentication is not enabled")
}

// authenticate fetches a token. "" is the one of an etcd without
// authentication, which etcd's own clients put up with as well.
func (g *etcdGateway) authenticate(ctx context.Context, endpoint *url.URL) (string, error) {
	body, err := json.Marshal(map[string]string{"name": g.user, "password": g.password})
	if err != nil {
		return "", err
	}
	a, err := g.web.do(ctx, http.MethodPost, endpoint.JoinPath("v3/auth/authenticate").String(), nil, body)
	if err != nil {
		return "", err
	}
	if authNotEnabled(a) {
		return "", nil
	}
	if err := g.verdict(g.web, a); err != nil {
		return "", err
	}
	var got struct {
		Token string `json:"token"`
	}
	if err := g.decode(a, &got); err != nil {
		return "", err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.token = got.Token
	return got.Token, nil
}

func (g *etcdGateway) kept() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.token
}

// withToken returns a client that sends a token and shows it to nobody.
func (g *etcdGateway) withToken(token string) *web {
	w := *g.web
	if token != "" {
		w.header = w.header.Clone()
		w.header.Set("Authorization", token)
		w.secrets = slices.Clone(w.secrets)
		w.secrets.Add(token)
	}
	return &w
}

// verdict is the error of an answer. etcd says 400 to who is nobody, or whose
// password is wrong, and older ones 412 where nothing was compared.
func (g *etcdGateway) verdict(w *web, a *answer) error {
	err := w.verdict(a)
	if e, ok := errors.AsType[*ConflictError](err); ok {
		return &RefusedError{Target: w.name, Err: e.Err}
	}
	e, ok := errors.AsType[*RefusedError](err)
	switch {
	case !ok:
	case a.status == http.StatusBadRequest && strings.Contains(string(a.body), "user"):
		e.Hint = w.keyHint
	case a.status == http.StatusNotFound:
		e.Hint = "etcd's JSON gateway answers below /v3 from etcd 3.4 on, unless it runs with --enable-grpc-gateway=false"
	}
	return err
}
