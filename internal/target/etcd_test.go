package target

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/servertest"
)

const etcdDocument = "{\n  \"route\": {\"canary\": 0.01,  \"stable\": 0.99},\n  \"owner\": \"team llm\"\n}\n"

func newTestEtcd(t *testing.T, cfg config.EtcdTarget, env map[string]string) *etcd {
	t.Helper()
	if cfg.Key == "" {
		cfg.Key = "/routes/llm"
	}
	tgt, err := newEtcd(&cfg, Options{Ring: 100, Getenv: func(name string) string { return env[name] }})
	if err != nil {
		t.Fatal(err)
	}
	return tgt.(*etcd)
}

// etcdPost asks etcd's JSON gateway itself.
func etcdPost(t *testing.T, where string, request any) map[string]any {
	t.Helper()
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, where, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s", where, resp.Status, text)
	}
	return got
}

func etcdPutText(t *testing.T, url, key, value string) {
	t.Helper()
	etcdPost(t, url+"/v3/kv/put", etcdPut{Key: []byte(key), Value: []byte(value)})
}

// etcdText returns what a key of etcd holds.
func etcdText(t *testing.T, tgt *etcd) string {
	t.Helper()
	held, err := tgt.gateway.get(t.Context(), tgt.key)
	if err != nil {
		t.Fatal(err)
	}
	return string(held.value)
}

func TestEtcd(t *testing.T) {
	url := servertest.Etcd(t)
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, url string)
	}{
		{"a document keeps every other byte", etcdKeepsBytes},
		{"a plain number is the weight", etcdPlainNumber},
		{"of eight writers exactly one wins", etcdEightWriters},
		{"a stale write is a conflict, a rollback is not", etcdStale},
		{"a change beside the weight is no conflict", etcdChangeBeside},
		{"a missing key says how to make it", etcdMissing},
		{"a second endpoint stands in for the first", etcdSecondEndpoint},
		{"an endpoint that does not answer after it has written", etcdWrittenInSilence},
		{"authentication", etcdAuthentication}, // the last: it stays on
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, url) })
	}
}

func etcdKeepsBytes(t *testing.T, url string) {
	etcdPutText(t, url, "/bytes", etcdDocument)
	tgt := newTestEtcd(t, config.EtcdTarget{Endpoints: []string{url}, Key: "/bytes", Canary: "route.canary", Stable: "route.stable"}, nil)
	was := wantHeld(t, tgt, hundredths(1))
	moveTo(t, tgt, hundredths(5))
	want := strings.NewReplacer("0.01", "0.05", "0.99", "0.95").Replace(etcdDocument)
	if got := etcdText(t, tgt); got != want {
		t.Errorf("it holds\n%s\nwant\n%s", got, want)
	}
	if is := wantHeld(t, tgt, hundredths(5)); is.Revision == was.Revision || was.Revision == "" {
		t.Errorf("revisions %q and %q", was.Revision, is.Revision)
	}
}

func etcdPlainNumber(t *testing.T, url string) {
	etcdPutText(t, url, "/plain", "1\n")
	tgt := newTestEtcd(t, config.EtcdTarget{Endpoints: []string{url}, Key: "/plain", Unit: config.Unit{Whole: 100, Places: 2}}, nil)
	wantHeld(t, tgt, hundredths(1))
	moveTo(t, tgt, release.Weight{Slots: 1, Ring: 1000})
	if got := etcdText(t, tgt); got != "0.1\n" {
		t.Errorf("it holds %q", got)
	}
	fine := release.Weight{Slots: 1, Ring: 100_000}
	if err := tgt.Write(t.Context(), Reading{}, Change{To: fine}); err == nil {
		t.Error("0.001 % is written with two decimals")
	}
	etcdPutText(t, url, "/plain", "five")
	_, err := tgt.Read(t.Context())
	if _, ok := isShape(err); !ok {
		t.Errorf("%v, want a wrong shape", err)
	}
	if err := tgt.Write(t.Context(), Reading{}, Change{To: hundredths(0), Overwrite: true}); err != nil {
		t.Error(err)
	}
	wantHeld(t, tgt, hundredths(0))
}

func etcdEightWriters(t *testing.T, url string) {
	etcdPutText(t, url, "/race", "0.01")
	var won, lost atomic.Int64
	var group sync.WaitGroup
	reader := newTestEtcd(t, config.EtcdTarget{Endpoints: []string{url}, Key: "/race"}, nil)
	was := wantHeld(t, reader, hundredths(1))
	for i := range int64(8) {
		tgt := newTestEtcd(t, config.EtcdTarget{Endpoints: []string{url}, Key: "/race"}, nil)
		group.Go(func() {
			err := tgt.Write(t.Context(), was, Change{To: hundredths(2 + i)})
			conflict, ok := errors.AsType[*ConflictError](err)
			switch {
			case err == nil:
				won.Add(1)
			case ok && conflict.Held != nil && !conflict.Held.Same(hundredths(1)):
				lost.Add(1)
			default:
				t.Errorf("writer %d: %v", i, err)
			}
		})
	}
	group.Wait()
	if won.Load() != 1 || lost.Load() != 7 {
		t.Errorf("%d won and %d lost", won.Load(), lost.Load())
	}
	// Eight rollbacks at once all come through.
	for range 8 {
		tgt := newTestEtcd(t, config.EtcdTarget{Endpoints: []string{url}, Key: "/race"}, nil)
		group.Go(func() {
			if err := tgt.Write(t.Context(), Reading{}, Change{To: hundredths(0), Overwrite: true}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	wantHeld(t, reader, hundredths(0))
}

func etcdStale(t *testing.T, url string) {
	etcdPutText(t, url, "/stale", "0.01")
	tgt := newTestEtcd(t, config.EtcdTarget{Endpoints: []string{url}, Key: "/stale"}, nil)
	was := wantHeld(t, tgt, hundredths(1))
	etcdPutText(t, url, "/stale", "0.3")
	err := tgt.Write(t.Context(), was, Change{To: hundredths(5)})
	conflict, ok := errors.AsType[*ConflictError](err)
	if !ok || conflict.Held == nil || !conflict.Held.Same(hundredths(30)) {
		t.Fatalf("%v, want a conflict with 30 %%", err)
	}
	wantHeld(t, tgt, hundredths(30))
	if err := tgt.Write(t.Context(), was, Change{To: hundredths(0), Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, tgt, hundredths(0))
}

func etcdChangeBeside(t *testing.T, url string) {
	etcdPutText(t, url, "/beside", etcdDocument)
	tgt := newTestEtcd(t, config.EtcdTarget{Endpoints: []string{url}, Key: "/beside", Canary: "route.canary", Stable: "route.stable"}, nil)
	was := wantHeld(t, tgt, hundredths(1))
	held, err := tgt.gateway.get(t.Context(), tgt.key)
	if err != nil {
		t.Fatal(err)
	}
	etcdPutText(t, url, "/beside", strings.Replace(etcdDocument, "team llm", "team chat", 1))
	if now, done, err := tgt.gateway.swap(t.Context(), tgt.key, held, []byte("x")); done || err != nil || !bytes.Contains(now.value, []byte("team chat")) {
		t.Errorf("a transaction on an old revision: %v, %v, %q", done, err, now.value)
	}
	if err := tgt.Write(t.Context(), was, Change{To: hundredths(5)}); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, tgt, hundredths(5))
	if got := etcdText(t, tgt); !strings.Contains(got, "team chat") {
		t.Errorf("the other change is lost: %s", got)
	}
}

func etcdMissing(t *testing.T, url string) {
	cfg := config.EtcdTarget{Endpoints: []string{url}, Key: "/it's missing", Canary: "route.canary", Stable: "route.stable"}
	document := newTestEtcd(t, cfg, nil)
	_, err := document.Read(t.Context())
	if hint, ok := isShape(err); !ok || hint != `etcdctl put '/it'\''s missing' '{"route":{"canary":0,"stable":1}}'` {
		t.Errorf("%v (%s)", err, hint)
	}
	if _, ok := errors.AsType[*ConflictError](document.Write(t.Context(), Reading{Revision: "7"}, Change{To: hundredths(5)})); !ok {
		t.Error("a key that has gone is no conflict")
	}
	if hint, ok := isRefused(document.Write(t.Context(), Reading{}, Change{Overwrite: true})); !ok || hint == "" {
		t.Error("a document is made of nothing")
	}
	cfg.Canary, cfg.Stable = "", ""
	plain := newTestEtcd(t, cfg, nil)
	if err := plain.Write(t.Context(), Reading{}, Change{To: hundredths(0), Overwrite: true}); err != nil {
		t.Errorf("a rollback does not write a number where there is no key: %v", err)
	}
	wantHeld(t, plain, hundredths(0))
}

func etcdSecondEndpoint(t *testing.T, url string) {
	etcdPutText(t, url, "/second", "0.01")
	ill := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, `{"error":"etcdserver: request timed out","message":"etcdserver: request timed out","code":14}`)
	}))
	defer ill.Close()
	tgt := newTestEtcd(t, config.EtcdTarget{Endpoints: []string{"http://127.0.0.1:1", ill.URL, url}, Key: "/second"}, nil)
	wantHeld(t, tgt, hundredths(1))
	moveTo(t, tgt, hundredths(5))

	// A rival's write of the same weight is not one's own where the endpoint
	// before was never sent anything.
	dead := newTestEtcd(t, config.EtcdTarget{Endpoints: []string{"http://127.0.0.1:1", url}, Key: "/second"}, nil)
	held, err := dead.gateway.get(t.Context(), dead.key)
	if err != nil {
		t.Fatal(err)
	}
	etcdPutText(t, url, "/second", "0.1")
	if _, done, err := dead.gateway.swap(t.Context(), dead.key, held, []byte("0.1")); done || err != nil {
		t.Errorf("a rival's write counts as one's own: %v, %v", done, err)
	}

	none := newTestEtcd(t, config.EtcdTarget{Endpoints: []string{"http://name:hunter22@127.0.0.1:1", ill.URL}}, nil)
	_, err = none.Read(t.Context())
	e, ok := errors.AsType[*UnreachableError](err)
	if !ok || e.After != 7*time.Second || !strings.Contains(err.Error(), "none of 2") || strings.Contains(err.Error(), "hunter22") {
		t.Errorf("%v", err)
	}
}

// etcdWrittenInSilence has a first endpoint that passes a transaction on and
// then breaks off. The second says that it is lost, to our own write.
func etcdWrittenInSilence(t *testing.T, where string) {
	etcdPutText(t, where, "/silence", "0.01")
	to, err := url.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	mute := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/txn") {
			proxy.ServeHTTP(w, r)
			return
		}
		proxy.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}))
	defer mute.Close()
	alone := newTestEtcd(t, config.EtcdTarget{Endpoints: []string{mute.URL}, Key: "/silence"}, nil)
	err = alone.Write(t.Context(), wantHeld(t, alone, hundredths(1)), Change{To: hundredths(5)})
	if _, ok := isUnreachable(err); !ok {
		t.Errorf("%v, want that it did not answer", err)
	}
	both := newTestEtcd(t, config.EtcdTarget{Endpoints: []string{mute.URL, where}, Key: "/silence"}, nil)
	moveTo(t, both, hundredths(10))
}

func etcdAuthentication(t *testing.T, url string) {
	etcdPutText(t, url, "/auth", "0.01")
	env := map[string]string{"U": "root", "P": "pass-of-root", "WRONG": "pass-of-nobody", "READER": "reader"}
	cfg := config.EtcdTarget{Endpoints: []string{url}, Key: "/auth", UserEnv: "U", PasswordEnv: "P"}
	wantHeld(t, newTestEtcd(t, cfg, env), hundredths(1)) // it is off yet: etcd asks nobody

	for _, step := range []struct{ path, body string }{
		{"user/add", `{"name":"root","password":"pass-of-root"}`},
		{"role/add", `{"name":"root"}`},
		{"user/grant", `{"user":"root","role":"root"}`},
		{"user/add", `{"name":"reader","password":"pass-of-root"}`},
		{"role/add", `{"name":"read"}`},
		{"role/grant", `{"name":"read","perm":{"permType":"READ","key":"L2F1dGg="}}`}, // /auth
		{"user/grant", `{"user":"reader","role":"read"}`},
		{"enable", `{}`},
	} {
		etcdPost(t, url+"/v3/auth/"+step.path, json.RawMessage(step.body))
	}
	tgt := newTestEtcd(t, cfg, env)
	moveTo(t, tgt, hundredths(5))
	tgt.gateway.token = "gone.1" // as after an hour, or another etcd's
	moveTo(t, tgt, hundredths(10))

	nobody, wrong, reader := cfg, cfg, cfg
	nobody.UserEnv, nobody.PasswordEnv = "", ""
	wrong.PasswordEnv = "WRONG"
	reader.UserEnv = "READER"
	_, noUser := newTestEtcd(t, nobody, env).Read(t.Context())
	_, noPassword := newTestEtcd(t, wrong, env).Read(t.Context())
	noRight := newTestEtcd(t, reader, env).Write(t.Context(), wantHeld(t, newTestEtcd(t, reader, env), hundredths(10)), Change{To: hundredths(30)})
	for _, err := range []error{noUser, noPassword, noRight} {
		hint, ok := isRefused(err)
		if !ok || !strings.Contains(hint, "user_env") || strings.Contains(err.Error(), "pass-of") {
			t.Errorf("%v (%s)", err, hint)
		}
	}
	wantHeld(t, tgt, hundredths(10))
	cfg.PasswordEnv = "UNSET"
	if _, err := newEtcd(&cfg, Options{Getenv: func(name string) string { return env[name] }}); err == nil || !strings.Contains(err.Error(), "UNSET") {
		t.Errorf("%v, want that UNSET is not set", err)
	}
}

func TestEtcdTokensOfAnOldAuthStoreAreRenewedOnce(t *testing.T) {
	var issued, asked atomic.Int64
	var renewals int64 = 1 // how many times a token is taken only after another was fetched
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/authenticate") {
			issued.Add(1)
			io.WriteString(w, `{"header":{},"token":"token-of-the-user"}`)
			return
		}
		asked.Add(1)
		if r.Header.Get("Authorization") != "token-of-the-user" || issued.Load() <= renewals {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":"etcdserver: revision of auth store is old for token-of-the-user","code":3}`)
			return
		}
		io.WriteString(w, `{"header":{},"kvs":[{"value":"MC4wNQ==","mod_revision":"9007199254740993"}],"count":"1"}`)
	}))
	defer srv.Close()
	env := map[string]string{"U": "name-of-user", "P": "password"}
	cfg := config.EtcdTarget{Endpoints: []string{srv.URL}, UserEnv: "U", PasswordEnv: "P"}
	got := wantHeld(t, newTestEtcd(t, cfg, env), hundredths(5))
	if got.Revision != "9007199254740993" || issued.Load() != 2 || asked.Load() != 2 {
		t.Errorf("revision %s after %d tokens and %d requests", got.Revision, issued.Load(), asked.Load())
	}
	renewals = 100
	_, err := newTestEtcd(t, cfg, env).Read(t.Context())
	if _, ok := isRefused(err); !ok || strings.Contains(err.Error(), "token-of-the-user") || asked.Load() != 4 {
		t.Errorf("%v after %d requests", err, asked.Load())
	}
}

func TestEtcdAnswersThatAreNoneAreSaidToBe(t *testing.T) {
	for name, body := range map[string]string{
		"a page": "<html>", "nothing": "", "another document": `{"kvs":{}}`, "a number": `{"kvs":[{"mod_revision":2}]}`,
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, body) }))
		_, err := newTestEtcd(t, config.EtcdTarget{Endpoints: []string{srv.URL}}, nil).Read(t.Context())
		if _, ok := isShape(err); !ok {
			t.Errorf("%s: %v, want a wrong shape", name, err)
		}
		srv.Close()
	}
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	_, err := newTestEtcd(t, config.EtcdTarget{Endpoints: []string{srv.URL}}, nil).Read(t.Context())
	if hint, ok := isRefused(err); !ok || !strings.Contains(hint, "3.4") {
		t.Errorf("%v (%s)", err, hint)
	}
}

func TestEtcdThatIsAlwaysFasterIsLeftAlone(t *testing.T) {
	var txns atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const kvs = `"kvs":[{"value":"MC4wMQ==","mod_revision":"2"}]`
		if strings.HasSuffix(r.URL.Path, "/txn") {
			txns.Add(1)
			io.WriteString(w, `{"header":{},"responses":[{"response_range":{`+kvs+`}}]}`)
			return
		}
		io.WriteString(w, `{`+kvs+`}`)
	}))
	defer srv.Close()
	tgt := newTestEtcd(t, config.EtcdTarget{Endpoints: []string{srv.URL}}, nil)
	for _, overwrite := range []bool{false, true} {
		txns.Store(0)
		err := tgt.Write(t.Context(), Reading{Weight: hundredths(1)}, Change{To: hundredths(5), Overwrite: overwrite})
		if _, ok := isUnreachable(err); !ok || txns.Load() != etcdTries {
			t.Errorf("%v after %d transactions", err, txns.Load())
		}
	}
}
