package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/servertest"
)

func hundredths(n int64) release.Weight { return release.Weight{Slots: n, Ring: 100} }

func newTestHAProxy(t *testing.T, cfg config.HAProxyTarget) Target {
	t.Helper()
	if cfg.Backend == "" {
		cfg.Backend = "llm"
	}
	cfg.Stable, cfg.Canary = "stable", "canary"
	tgt, err := newHAProxy(&cfg, Options{Ring: 100})
	if err != nil {
		t.Fatal(err)
	}
	return tgt
}

// countingServer is a server that counts its requests.
func countingServer(t *testing.T) (address string, n *atomic.Int64) {
	n = new(atomic.Int64)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { n.Add(1) }))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://"), n
}

func getMany(t *testing.T, url string, n int) {
	t.Helper()
	for range n {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("HAProxy answers %s", resp.Status)
		}
	}
}

func wantHeld(t *testing.T, tgt Target, want release.Weight) Reading {
	t.Helper()
	got, err := tgt.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !got.Weight.Same(want) {
		t.Fatalf("%s holds %s, want %s", tgt, got.Weight, want)
	}
	return got
}

func moveTo(t *testing.T, tgt Target, to release.Weight) {
	t.Helper()
	was, err := tgt.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := tgt.Write(t.Context(), was, Change{To: to}); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, tgt, to)
}

func TestHAProxySplitsRealTrafficAsItIsTold(t *testing.T) {
	stable, toStable := countingServer(t)
	canary, toCanary := countingServer(t)
	frontend, socket, _ := servertest.HAProxy(t, stable, canary)
	tgt := newTestHAProxy(t, config.HAProxyTarget{Address: socket})
	wantHeld(t, tgt, hundredths(1)) // 2 of 200, as the configuration has it

	for _, step := range []struct {
		to       release.Weight
		min, max int64 // on the canary, of 400
	}{
		{hundredths(5), 16, 24},
		{hundredths(30), 114, 126},
		{hundredths(100), 400, 400},
		{hundredths(0), 0, 0},
		{hundredths(100), 400, 400}, // from nobody to everybody: never both weights 0
		{hundredths(0), 0, 0},
		{release.Weight{Slots: 1, Ring: 200}, 1, 3},
	} {
		moveTo(t, tgt, step.to)
		s, c := toStable.Load(), toCanary.Load()
		getMany(t, frontend, 400)
		s, c = toStable.Load()-s, toCanary.Load()-c
		t.Logf("at %s: %d of %d on the canary", step.to, c, s+c)
		if c < step.min || c > step.max || s+c != 400 {
			t.Errorf("at %s: %d on the canary and %d on stable, want %d to %d of 400", step.to, c, s, step.min, step.max)
		}
	}
}

// startBackends starts HAProxy with backends of the test's own and returns the
// path of a socket of each level.
func startBackends(t *testing.T, backends string) (admin, user string) {
	t.Helper()
	program := servertest.Program(t, "haproxy", "haproxy")
	dir, err := os.MkdirTemp("", "haproxy") // short: a socket's path has 108 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	admin, user = filepath.Join(dir, "admin.sock"), filepath.Join(dir, "user.sock")
	cfg := fmt.Sprintf(`global
  stats socket %s mode 600 level admin
  stats socket %s mode 600 level user
defaults
  mode http
  timeout connect 1s
  timeout client 5s
  timeout server 5s
%s`, admin, user, backends)
	path := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(path, []byte(cfg), 0o600); err != nil {
		t.Fatal(err)
	}
	servertest.Start(t, program, []string{"-f", path, "-db"}, servertest.Dial("unix", user))
	return admin, user
}

func haproxyCommand(t *testing.T, socket string, commands ...string) {
	t.Helper()
	answers, err := haproxySocket{network: "unix", address: socket, timeout: 5 * time.Second}.ask(t.Context(), commands...)
	if err != nil || strings.Join(answers, "") != "" {
		t.Fatalf("%q: %q, %v", commands, answers, err)
	}
}

const twoServers = `
backend llm
  balance random
  server stable 127.0.0.1:18081 weight 198
  server canary 127.0.0.1:18082 weight 2
`

func TestHAProxyWriteIsRefusedWhenSomebodyElseHasMoved(t *testing.T) {
	admin, _ := startBackends(t, twoServers)
	tgt := newTestHAProxy(t, config.HAProxyTarget{Address: admin})
	was := wantHeld(t, tgt, hundredths(1))
	haproxyCommand(t, admin, "set server llm/canary weight 22", "set server llm/stable weight 178")

	err := tgt.Write(t.Context(), was, Change{To: hundredths(5)})
	conflict, ok := errors.AsType[*ConflictError](err)
	if !ok || conflict.Held == nil || !conflict.Held.Same(hundredths(11)) {
		t.Fatalf("%v, want a conflict with 11 %%", err)
	}
	wantHeld(t, tgt, hundredths(11))
	if err := tgt.Write(t.Context(), was, Change{To: hundredths(0), Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, tgt, hundredths(0))
}

func TestHAProxySharesAreRelativeAndFineOnesAreRefused(t *testing.T) {
	admin, _ := startBackends(t, twoServers)
	tgt := newTestHAProxy(t, config.HAProxyTarget{Address: admin})
	haproxyCommand(t, admin, "set server llm/canary weight 10", "set server llm/stable weight 30")
	wantHeld(t, tgt, hundredths(25)) // whatever they add up to

	thousandth := release.Weight{Slots: 1, Ring: 1000}
	for _, err := range []error{tgt.Check(thousandth), tgt.Write(t.Context(), Reading{Weight: hundredths(25)}, Change{To: thousandth})} {
		if fine, ok := errors.AsType[*FineError](err); !ok || fine.Finest != (release.Weight{Slots: 1, Ring: 200}) || fine.Target == "" {
			t.Errorf("%v, want a finest step of 0.5 %%", err)
		}
	}
	wantHeld(t, tgt, hundredths(25))
	tens := newTestHAProxy(t, config.HAProxyTarget{Address: admin, Total: 10})
	moveTo(t, tens, hundredths(20))
	if err := tens.Check(hundredths(5)); err == nil {
		t.Error("5 % of 10 is held")
	}
}

func TestHAProxyRefusalsSayWhatToDo(t *testing.T) {
	admin, user := startBackends(t, twoServers+`
backend static
  balance static-rr
  server stable 127.0.0.1:18081 weight 198
  server canary 127.0.0.1:18082 weight 2
backend lonely
  server stable 127.0.0.1:18081
backend crowded
  server stable 127.0.0.1:18081 weight 100
  server canary 127.0.0.1:18082 weight 5
  server other 127.0.0.1:18083 weight 100
backend guarded
  server stable 127.0.0.1:18081 weight 95
  server canary 127.0.0.1:18082 weight 5
  server spare 127.0.0.1:18083 weight 100 backup
  server parked 127.0.0.1:18084 weight 0
  server off 127.0.0.1:18085 weight 9 disabled
backend zero
  server stable 127.0.0.1:18081 weight 0
  server canary 127.0.0.1:18082 weight 0
`)
	write := func(cfg config.HAProxyTarget) error {
		return newTestHAProxy(t, cfg).Write(t.Context(), Reading{Weight: hundredths(1)}, Change{To: hundredths(5)})
	}
	read := func(backend string) error {
		_, err := newTestHAProxy(t, config.HAProxyTarget{Address: admin, Backend: backend}).Read(t.Context())
		return err
	}
	for _, tt := range []struct {
		name string
		err  error
		want string // in the text or the hint
		kind func(error) (hint string, ok bool)
	}{
		{"a socket below admin", write(config.HAProxyTarget{Address: user}), "level admin", isRefused},
		{"a static balancer", write(config.HAProxyTarget{Address: admin, Backend: "static"}), "balance roundrobin", isRefused},
		{"no such backend", read("nope"), "Can't find backend", isShape},
		{"no such server", read("lonely"), "no server canary", isShape},
		{"a third server that takes requests", read("crowded"), "crowded/other has weight 100", isShape},
		{"no weight at all", read("zero"), "set server zero/stable weight 200", isShape},
		{"backup, parked and disabled servers", read("guarded"), "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.kind == nil {
				if tt.err != nil {
					t.Fatal(tt.err)
				}
				return
			}
			if hint, ok := tt.kind(tt.err); !ok || !strings.Contains(tt.err.Error()+hint, tt.want) {
				t.Errorf("%T: %v (%s), want %q", tt.err, tt.err, hint, tt.want)
			}
		})
	}
	for _, backend := range []string{"llm", "static"} { // refused means that nothing was written
		wantHeld(t, newTestHAProxy(t, config.HAProxyTarget{Address: admin, Backend: backend}), hundredths(1))
	}
	for _, backend := range []string{"zero", "crowded"} { // a rollback asks less
		tgt := newTestHAProxy(t, config.HAProxyTarget{Address: admin, Backend: backend})
		if err := tgt.Write(t.Context(), Reading{}, Change{To: hundredths(0), Overwrite: true}); err != nil {
			t.Error(backend, err)
		}
	}
	wantHeld(t, newTestHAProxy(t, config.HAProxyTarget{Address: admin, Backend: "zero"}), hundredths(0))
}

func isRefused(err error) (string, bool) {
	e, ok := errors.AsType[*RefusedError](err)
	if !ok {
		return "", false
	}
	return e.Hint, true
}

func isShape(err error) (string, bool) {
	e, ok := errors.AsType[*ShapeError](err)
	if !ok {
		return "", false
	}
	return e.Hint, true
}

func isUnreachable(err error) (string, bool) {
	_, ok := errors.AsType[*UnreachableError](err)
	return "", ok
}

func TestHAProxyRaisesNoShareOfAServerThatIsOut(t *testing.T) {
	alive, _ := countingServer(t)
	admin, _ := startBackends(t, fmt.Sprintf(`
backend llm
  server stable %s weight 198
  server canary %s weight 2
backend down
  server stable %s weight 198
  server canary 127.0.0.1:1 weight 2 check inter 50 fall 1
`, alive, alive, alive))
	tgt := newTestHAProxy(t, config.HAProxyTarget{Address: admin})
	one := Reading{Weight: hundredths(1)}
	for _, tt := range []struct{ server, effect string }{{"canary", "nobody"}, {"stable", "everybody"}} {
		for _, state := range []string{"maint", "drain"} {
			haproxyCommand(t, admin, fmt.Sprintf("set server llm/%s state %s", tt.server, state))
			wantHeld(t, tgt, hundredths(1)) // it keeps its weight
			err := tgt.Write(t.Context(), one, Change{To: hundredths(5)})
			if hint, ok := isRefused(err); !ok || !strings.Contains(err.Error(), tt.effect) || hint != "set server llm/"+tt.server+" state ready" {
				t.Errorf("%s in %s: %v (%s)", tt.server, state, err, hint)
			}
			haproxyCommand(t, admin, fmt.Sprintf("set server llm/%s state ready", tt.server))
		}
	}
	haproxyCommand(t, admin, "set server llm/canary state maint")
	if err := tgt.Write(t.Context(), one, Change{To: hundredths(0)}); err != nil {
		t.Errorf("down to 0 with the canary in maintenance: %v", err)
	}
	wantHeld(t, tgt, hundredths(0))

	down := newTestHAProxy(t, config.HAProxyTarget{Address: admin, Backend: "down"})
	var err error
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = down.Write(t.Context(), one, Change{To: hundredths(1)}); err != nil {
			t.Fatalf("the same share is no more traffic: %v", err)
		}
		if err = down.Write(t.Context(), one, Change{To: hundredths(5)}); err != nil {
			break
		}
		if err = down.Write(t.Context(), Reading{}, Change{To: hundredths(1), Overwrite: true}); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := isUnreachable(err); !ok || !strings.Contains(err.Error(), "down/canary is down") {
		t.Errorf("%v, want that the canary is down", err)
	}
}

// fakeHAProxy answers each connection with what answer makes of its line.
func fakeHAProxy(t *testing.T, answer func(conn net.Conn, line string)) Target {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			line := make([]byte, 4096)
			n, _ := conn.Read(line)
			answer(conn, string(line[:n]))
			conn.Close()
		}
	}()
	return newTestHAProxy(t, config.HAProxyTarget{Address: l.Addr().String(), Timeout: 200 * time.Millisecond})
}

const twoServersState = "1\n# be_name srv_name srv_op_state srv_admin_state srv_uweight\nllm stable 2 0 %s\nllm canary 2 0 %s\n\n" +
	"# pxname,svname,bck,\nllm,stable,0,\nllm,canary,0,\n\n"

func TestHAProxyThatDoesNotAnswerIsUnreachable(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	for _, tt := range []struct {
		name   string
		answer func(net.Conn, string)
	}{
		{"hangs up", func(net.Conn, string) {}},
		{"breaks off", func(c net.Conn, _ string) { io.WriteString(c, twoServersState[:60]) }},
		{"answers one of two", func(c net.Conn, _ string) { io.WriteString(c, "1\n# be_name\n\n") }},
		{"is silent", func(net.Conn, string) { <-over }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := fakeHAProxy(t, tt.answer).Read(t.Context())
			if _, ok := isUnreachable(err); !ok {
				t.Errorf("%v, want unreachable", err)
			}
		})
	}
	gone := newTestHAProxy(t, config.HAProxyTarget{Address: filepath.Join(t.TempDir(), "no.sock")})
	if _, err := gone.Read(t.Context()); err == nil {
		t.Error("a socket that is not there answers")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := gone.Read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want canceled", err)
	}
}

func TestHAProxyGetsBothWeightsInOneLineTheSaferFirst(t *testing.T) {
	for _, tt := range []struct {
		name           string
		stable, canary string // held
		to             release.Weight
		want           string
	}{
		{"upwards the canary comes last", "198", "2", hundredths(5), "set server llm/stable weight 190; set server llm/canary weight 10"},
		{"downwards it comes first", "140", "60", hundredths(5), "set server llm/canary weight 10; set server llm/stable weight 190"},
		{"to nobody", "190", "10", hundredths(0), "set server llm/canary weight 0; set server llm/stable weight 200"},
		{"from everybody: stable must be there before the canary goes", "0", "200", hundredths(0), "set server llm/stable weight 200; set server llm/canary weight 0"},
		{"from nobody to everybody: the canary must be there before stable goes", "200", "0", hundredths(100), "set server llm/canary weight 200; set server llm/stable weight 0"},
		{"neither takes any", "0", "0", hundredths(0), "set server llm/stable weight 200; set server llm/canary weight 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines := make(chan string, 2)
			tgt := fakeHAProxy(t, func(c net.Conn, line string) {
				lines <- line
				if strings.HasPrefix(line, "show") {
					fmt.Fprintf(c, twoServersState, tt.stable, tt.canary)
					return
				}
				io.WriteString(c, "\n\n")
			})
			if err := tgt.Write(t.Context(), Reading{}, Change{To: tt.to, Overwrite: true}); err != nil {
				t.Fatal(err)
			}
			<-lines
			if got := <-lines; got != tt.want+"\n" {
				t.Errorf("sent %q, want %q", got, tt.want)
			}
		})
	}
}

func TestHAProxyConfigurationsThatCannotWorkAreRefused(t *testing.T) {
	good := config.HAProxyTarget{Address: "a.sock", Backend: "llm", Stable: "stable", Canary: "canary"}
	for name, change := range map[string]func(*config.HAProxyTarget){
		"a name that ends the command": func(c *config.HAProxyTarget) { c.Canary = "canary weight 0; shutdown" },
		"no backend":                   func(c *config.HAProxyTarget) { c.Backend = "" },
		"one server twice":             func(c *config.HAProxyTarget) { c.Canary = "stable" },
		"a total that no server takes": func(c *config.HAProxyTarget) { c.Total = 257 },
	} {
		cfg := good
		change(&cfg)
		if _, err := newHAProxy(&cfg, Options{}); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	for address, want := range map[string]string{
		"127.0.0.1:9999": "tcp 127.0.0.1:9999", "[::1]:9999": "tcp [::1]:9999", "a.sock": "unix /srv/a.sock",
		"/run/h.sock": "unix /run/h.sock", "unix@/run/h:1.sock": "unix /run/h:1.sock",
	} {
		if network, where := haproxyAddress(address, "/srv"); network+" "+where != want {
			t.Errorf("%s is %s %s, want %s", address, network, where, want)
		}
	}
}

func FuzzHAProxyAnswersNeverPanic(f *testing.F) {
	state, stat, _ := strings.Cut(fmt.Sprintf(twoServersState, "198", "2"), "\n\n")
	f.Add(state, stat)
	f.Add("1\n# srv_name", "# ")
	f.Fuzz(func(t *testing.T, state, stat string) {
		if servers, err := parseServers(state, stat); err != nil && servers != nil {
			t.Error("servers and an error")
		}
	})
}

// TestHAProxyConsistentHashOnlyAddsUsers holds what the reference says of
// `hash-type consistent`.
func TestHAProxyConsistentHashOnlyAddsUsers(t *testing.T) {
	arm := func(name string) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, name) }))
		t.Cleanup(srv.Close)
		return strings.TrimPrefix(srv.URL, "http://")
	}
	front := fmt.Sprintf("127.0.0.1:%d", servertest.Port(t))
	admin, _ := startBackends(t, fmt.Sprintf(`
frontend in
  bind %s
  default_backend llm
backend llm
  balance hdr(X-User-Id)
  hash-type consistent
  server stable %s weight 200
  server canary %s weight 0
`, front, arm("stable"), arm("canary")))
	tgt := newTestHAProxy(t, config.HAProxyTarget{Address: admin})
	const users = 500
	on := map[string]bool{}
	for _, step := range []int64{1, 5, 30, 60, 100} {
		moveTo(t, tgt, hundredths(step))
		n := 0
		for i := range users {
			user := fmt.Sprintf("user-%d", i)
			req, _ := http.NewRequest(http.MethodGet, "http://"+front, nil)
			req.Header.Set("X-User-Id", user)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			canary := string(text) == "canary"
			if on[user] && !canary {
				t.Errorf("at %d %%, %s has left the canary", step, user)
			}
			if on[user] = canary; canary {
				n++
			}
		}
		t.Logf("at %d %%: %d of %d users", step, n, users)
		if want := int(step) * users / 100; n < want-40 || n > want+40 {
			t.Errorf("at %d %%: %d of %d users", step, n, users)
		}
	}
}
