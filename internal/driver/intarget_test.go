package driver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/configapi"
	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/state"
	"github.com/canaryctl/canaryctl/internal/target"
)

// machine is a directory of its own at the world's target.
type machine struct {
	*world
	dir string
}

func (w *world) machine() *machine { return &machine{w, memory(w.t)} }

// keeping is a world whose target keeps the state.
func keeping(t *testing.T) *world {
	w := newWorld(t)
	w.target.keeps = true
	return w
}

// at is a driver of the machine; nil is the world's own target.
func (m *machine) at(t driver.Target) *driver.Driver {
	if t == nil {
		t = m.world.target
	}
	return m.world.with(t, m.dir)
}

func (m *machine) tick(t driver.Target) *driver.Result {
	m.t.Helper()
	m.now = m.now.Add(time.Minute).Truncate(time.Minute)
	res, err := m.at(t).Promote(m.t.Context())
	if err != nil {
		m.t.Fatalf("at %s: %v", m.now.Format("15:04:05"), err)
	}
	m.res = res
	return res
}

func (m *machine) until(t driver.Target, what string, is func(*driver.Result) bool) *driver.Result {
	m.t.Helper()
	for range 100 {
		if is(m.tick(t)) {
			return m.res
		}
	}
	m.t.Fatalf("never %s: %s", what, m.res.Outcome.Reason)
	return nil
}

func (m *machine) verify() {
	m.t.Helper()
	dir, err := state.Open(m.dir, "order-service")
	if err != nil {
		m.t.Fatal(err)
	}
	if _, err := driver.Verify(m.t.Context(), dir, "order-service"); err != nil {
		m.t.Fatalf("the journal does not verify: %v", err)
	}
}

func advanced(r *driver.Result) bool { return r.Outcome.Move == release.Advance }

// standing is what two machines must agree on.
func standing(l *ladder.State) string {
	return fmt.Sprintf("%s attempt %d step %d weight %s since %s, breaker %s, latched %v, gate %d of %d, seen %s",
		l.Stage, l.Attempt, l.Step, l.Weight, l.At.Format(time.TimeOnly), l.Breaker.Phase, l.Latched, l.Gate.Judged, l.Gate.Requests, l.Seen.Format(time.TimeOnly))
}

func TestAFreshMachineGoesOnWhereTheOtherStood(t *testing.T) {
	w := keeping(t)
	a, b := w.machine(), w.machine()
	a.tick(nil)
	a.until(nil, "at 10 %", advanced)
	for range 4 {
		a.tick(nil)
	}
	told := len(w.told)
	peek, err := b.at(nil).Peek(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := standing(&peek.Release.Ladder), "climbing attempt 1 step 1 weight 10 %"; !strings.HasPrefix(got, want) {
		t.Errorf("status says %s", got)
	}
	if peek.Outcome.HeldS != a.res.Outcome.HeldS {
		t.Errorf("status counts %d s at the step, the other machine %d s", peek.Outcome.HeldS, a.res.Outcome.HeldS)
	}
	w.now = w.now.Add(-time.Minute) // the same minute
	b.tick(nil)
	if got, want := standing(&b.res.Release.Ladder), standing(&a.res.Release.Ladder); got != want {
		t.Errorf("it stands at\n%s, the other at\n%s", got, want)
	}
	w.until2(b, a, "at 100 %", func(r *driver.Result) bool { return r.Outcome.Weight.Same(weight(100)) })
	w.until2(a, b, "complete", func(r *driver.Result) bool { return r.Release.Ladder.Stage == ladder.Completed })
	if got := strings.Join(w.events(), " "); got != "started advanced advanced completed" {
		t.Errorf("told %q (%d before)", got, told)
	}
	if n := len(w.target.writes); n > 3+5 {
		t.Errorf("%d writes", n)
	}
	a.verify()
	b.verify()
}

// until2 has two machines take turns, a minute each.
func (w *world) until2(a, b *machine, what string, is func(*driver.Result) bool) {
	w.t.Helper()
	for range 60 {
		if is(a.tick(nil)) {
			return
		}
		a, b = b, a
	}
	w.t.Fatalf("never %s: %s", what, w.res.Outcome.Reason)
}

// TestAPipelineWithoutADiskClimbsToItsEnd: every tick is a machine that has
// nothing but the target.
func TestAPipelineWithoutADiskClimbsToItsEnd(t *testing.T) {
	w := keeping(t)
	w.text = strings.Replace(w.text, "min_hold_min: 10 }", "min_hold_min: 10, gate: [time, metric, approval] }", 1)
	waited := 0
	for i := 0; ; i++ {
		m := w.machine()
		res := m.tick(nil)
		m.verify()
		if res.Release.Ladder.Stage == ladder.Completed {
			break
		}
		if res.Status == driver.Awaiting {
			if waited++; waited == 5 {
				if _, err := w.machine().at(nil).Approve(t.Context(), driver.Shown{Step: 1}, "read"); err != nil {
					t.Fatal(err)
				}
			}
		}
		if i > 60 {
			t.Fatalf("never complete: %s", res.Outcome.Reason)
		}
	}
	w.wantWeight(100)
	if got := strings.Join(w.events(), " "); got != "started awaiting_approval advanced advanced completed" {
		t.Errorf("told %q", got)
	}
}

func TestABreakerThatOpenedIsOpenOnEveryMachine(t *testing.T) {
	w := keeping(t)
	hook := &fakeHook{w: w, name: "purge", tries: 3}
	w.hooks = hooks(hook)
	a := w.machine()
	a.tick(nil)
	a.until(nil, "at 10 %", advanced)
	a.tick(nil)
	w.source.violations = 4
	a.tick(nil)
	w.wantWeight(0)
	w.source.violations = 0
	for range 40 {
		if m := w.machine(); m.tick(nil).Outcome.Why == ladder.WhyRecovered {
			break
		}
	}
	if l := w.res.Release.Ladder; l.Attempt != 2 || l.Step != 0 || l.Breaker.Phase != release.Closed {
		t.Errorf("%s: %s", standing(&l), w.res.Outcome.Reason)
	}
	w.wantWeight(1)
	if got := strings.Join(w.events(), " "); got != "started advanced rolled_back probing recovered" {
		t.Errorf("told %q", got)
	}
	if len(hook.keys) != 1 {
		t.Errorf("the hook ran %d times: %v", len(hook.keys), hook.keys)
	}
}

func TestCommandsOfOneMachineAreSeenByTheOther(t *testing.T) {
	w := keeping(t)
	a, b := w.machine(), w.machine()
	a.tick(nil)
	b.tick(nil)
	command := func(m *machine, v ladder.Verb) error {
		_, err := m.at(nil).Command(t.Context(), ladder.Command{Verb: v, Reason: "because"})
		return err
	}
	if err := command(a, ladder.DoPause); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if b.tick(nil); b.res.Outcome.Why != ladder.WhyPaused {
			t.Fatalf("%s: %s", b.res.Outcome.Why, b.res.Outcome.Reason)
		}
	}
	if err := command(b, ladder.DoPause); !errors.Is(err, ladder.ErrPaused) {
		t.Errorf("paused twice: %v", err)
	}
	if err := command(b, ladder.DoResume); err != nil {
		t.Fatal(err)
	}
	a.until(nil, "at 10 %", advanced)
	if _, err := b.at(nil).RollBack(t.Context(), "bad"); err != nil {
		t.Fatal(err)
	}
	w.wantWeight(0)
	if a.tick(nil); a.res.Status != driver.RolledBack || a.res.Release.Ladder.Stage != ladder.RolledBack {
		t.Fatalf("%d: %s", a.res.Status, a.res.Outcome.Reason)
	}
	if err := command(a, ladder.DoClearLock); err != nil {
		t.Fatal(err)
	}
	if b.tick(nil); b.res.Outcome.Move != release.Start || b.res.Outcome.Attempt != 2 {
		t.Fatalf("%s of attempt %d: %s", b.res.Outcome.Move, b.res.Outcome.Attempt, b.res.Outcome.Reason)
	}
	a.verify()
	b.verify()
}

// TestALostRaceIsLookedAtAgain: both decide on the same state; whoever comes
// second takes over what the first has written.
func TestALostRaceIsLookedAtAgain(t *testing.T) {
	w := keeping(t)
	a, b := w.machine(), w.machine()
	a.tick(nil)
	for range 8 {
		a.tick(nil)
	}
	raced := false
	w.target.on = func(c target.Change) error {
		if c.Move == "advance" && !raced {
			raced = true
			w.target.on = nil
			res, err := b.at(nil).Promote(t.Context())
			if err != nil || !advanced(res) {
				t.Errorf("the rival: %v, %v", res, err)
			}
			return &target.ConflictError{Target: "fake"}
		}
		w.target.set(c)
		return nil
	}
	for range 5 {
		if a.tick(nil); raced {
			break
		}
	}
	if !raced {
		t.Fatal("there was no race")
	}
	w.wantWeight(10)
	if a.res.Status != driver.Holding || a.res.Release.Ladder.Step != 1 || a.res.Release.Ladder.Attempt != 1 {
		t.Errorf("status %d: %s", a.res.Status, a.res.Outcome.Reason)
	}
	if got := strings.Join(w.events(), " "); got != "started advanced" {
		t.Errorf("told %q", got)
	}
	a.verify()
	b.verify()

	paused := false
	w.target.on = func(c target.Change) error {
		w.target.on = nil
		if !paused {
			paused = true
			if _, err := b.at(nil).Command(t.Context(), ladder.Command{Verb: ladder.DoPause}); err != nil {
				t.Error(err)
			}
		}
		return &target.ConflictError{Target: "fake"}
	}
	_, err := a.at(nil).Command(t.Context(), ladder.Command{Verb: ladder.DoPause})
	if !errors.Is(err, ladder.ErrPaused) {
		t.Errorf("the second to pause: %v", err)
	}
	if b.tick(nil); !b.res.Release.Ladder.Paused {
		t.Error("the pause is lost")
	}
	a.verify()
}

func TestAnOlderStateNeverReplacesANewer(t *testing.T) {
	w := keeping(t)
	a := w.machine()
	a.tick(nil)
	old := w.target.state
	a.until(nil, "at 10 %", advanced)
	w.target.state, w.target.rev = old, w.target.rev+1 // the weight stays
	a.tick(nil)
	if l := a.res.Release.Ladder; l.Step != 1 || l.Stage != ladder.Climbing {
		t.Errorf("%s", standing(&l))
	}
	w.wantStatus(driver.Holding)
	if string(w.target.state) == string(old) {
		t.Error("the target still keeps the old one")
	}
	b := w.machine()
	if b.tick(nil); b.res.Release.Ladder.Step != 1 {
		t.Errorf("another machine: %s", standing(&b.res.Release.Ladder))
	}
	a.verify()
}

func TestAStateThatIsNoneStopsAPromoteAndNoRollback(t *testing.T) {
	for name, garbage := range map[string]string{
		"no JSON": "<<<<<<< HEAD", "empty": "{}", "another service": `{"schema":1,"service":"billing","published":99}`, "another schema": `{"schema":7,"service":"order-service"}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := keeping(t)
			a := w.machine()
			a.tick(nil)
			w.target.state, w.target.rev = []byte(garbage), w.target.rev+1
			for _, m := range []*machine{a, w.machine()} {
				_, err := m.at(nil).Promote(t.Context())
				if _, ok := errors.AsType[*driver.StateError](err); !ok || !strings.Contains(err.Error(), "canaryctl rollback") {
					t.Fatalf("promote: %v", err)
				}
				if _, err := m.at(nil).Peek(t.Context()); err == nil {
					t.Error("status says nothing")
				}
			}
			m := w.machine()
			if name == "empty" {
				m = a
			}
			res, err := m.at(nil).RollBack(t.Context(), "bad")
			if err != nil || res.Err != nil {
				t.Fatalf("rollback: %v, %v", err, res)
			}
			w.res = res
			w.wantStatus(driver.RolledBack)
			w.wantWeight(0)
			m.tick(nil)
			w.wantStatus(driver.RolledBack)
			b := w.machine()
			if b.tick(nil); b.res.Status != driver.RolledBack {
				t.Errorf("another machine: status %d, %s", b.res.Status, b.res.Outcome.Reason)
			}
			m.verify()
		})
	}
}

// TestAKillBetweenTheWriteAndItsLineIsGoneOnWith on the same machine and on
// another one.
func TestAKillBetweenTheWriteAndItsLineIsGoneOnWith(t *testing.T) {
	for name, same := range map[string]bool{"same machine": true, "another machine": false} {
		t.Run(name, func(t *testing.T) {
			w := keeping(t)
			a := w.machine()
			killed := memory(t)
			w.target.on = func(c target.Change) error {
				w.target.set(c)
				if err := os.CopyFS(killed, os.DirFS(a.dir)); err != nil {
					t.Fatal(err)
				}
				w.target.on = func(target.Change) error { return unreachable(errors.New("killed")) }
				return nil
			}
			a.tick(nil)
			w.target.on, w.told = nil, nil
			m := w.machine()
			if same {
				m.dir = killed
			}
			m.tick(nil)
			if l := m.res.Release.Ladder; l.Stage != ladder.Climbing || l.Attempt != 1 || l.Step != 0 {
				t.Errorf("%s", standing(&l))
			}
			if got := strings.Join(w.events(), " "); got != "started" {
				t.Errorf("told %q", got)
			}
			m.until(nil, "at 10 %", advanced)
			m.verify()
		})
	}
}

// TestWhatDidNotReachTheTargetGivesWayToWhatDid: the word of a, which was told so,
// is in its own directory alone; then b's comes first.
func TestWhatDidNotReachTheTargetGivesWayToWhatDid(t *testing.T) {
	w := keeping(t)
	a, b := w.machine(), w.machine()
	a.tick(nil)
	w.target.on = func(target.Change) error { return unreachable(errors.New("down")) }
	pause := ladder.Command{Verb: ladder.DoPause}
	if _, err := a.at(nil).Command(t.Context(), pause); err == nil || !strings.Contains(err.Error(), "and not in fake") {
		t.Fatalf("error %v", err)
	}
	w.target.on = nil
	w.now = w.now.Add(7 * time.Second)
	if _, err := b.at(nil).Command(t.Context(), pause); err != nil {
		t.Fatal(err)
	}
	paused := w.now
	if a.tick(nil); !a.res.Release.Ladder.PausedAt.Equal(paused) {
		t.Errorf("paused at %s, want %s", a.res.Release.Ladder.PausedAt, paused)
	}
	a.verify()
}

// The same with real targets.

// remote is a bare repository that holds the weights.
func remote(t *testing.T) (clone func() driver.Target) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	git := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "protocol.file.allow=always"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	bare, seed := memory(t), memory(t)
	git(bare, "init", "--quiet", "--bare", "-b", "main")
	git(seed, "init", "--quiet", "-b", "main")
	if err := os.WriteFile(filepath.Join(seed, "weights.json"), []byte(`{"versions": {"stable": {"weight": 1}, "canary": {"weight": 0}}}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git(seed, "add", ".")
	git(seed, "commit", "--quiet", "-m", "weights")
	git(seed, "push", "--quiet", bare, "main")
	return func() driver.Target {
		dir := memory(t)
		git(dir, "clone", "--quiet", bare, "r")
		g, err := target.New(&config.Target{Kind: "git", Git: &config.GitTarget{Repo: filepath.Join(dir, "r"), Files: []config.GitFile{{Path: "weights.json"}}}},
			target.Options{Service: "order-service", Ring: 100, Getenv: func(string) string { return "" }, KeepState: true})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
}

// api is canaryctl serve.
func api(t *testing.T) (client func() driver.Target) {
	t.Helper()
	s, err := configapi.New(configapi.Options{Dir: memory(t), Token: "t-o-k-e-n"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(func() { server.Close(); _ = s.Close() })
	url := server.URL + "/v1/services/order-service"
	put(t, url, `{"versions":{"stable":{"weight":1,"model_id":"a"},"canary":{"weight":0,"model_id":"b"}}}`)
	return func() driver.Target {
		c, err := target.New(&config.Target{Kind: "config_api", ConfigAPI: &config.ConfigAPITarget{URL: url, TokenEnv: "TOKEN"}},
			target.Options{Service: "order-service", Ring: 100, Getenv: func(string) string { return "t-o-k-e-n" }, KeepState: true})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

func TestRealTargetsCarryTheReleaseToAnotherMachine(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) func() driver.Target{"git": remote, "config_api": api} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.quick()
			connect := open(t)
			dial := func() driver.Target { return &mirrored{connect().(target.Target), w} }
			at, bt := dial(), dial()
			a, b := w.machine(), w.machine()
			a.tick(at)
			a.until(at, "at 10 %", advanced)
			a.tick(at)

			peek, err := w.machine().at(dial()).Peek(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := standing(&peek.Release.Ladder); !strings.HasPrefix(got, "climbing attempt 1 step 1 weight 10 %") || peek.Outcome.HeldS != a.res.Outcome.HeldS {
				t.Errorf("a fresh machine's status: %s, held %d s, want %d s", got, peek.Outcome.HeldS, a.res.Outcome.HeldS)
			}
			if _, err := b.at(bt).Command(t.Context(), ladder.Command{Verb: ladder.DoPause, Reason: "lunch"}); err != nil {
				t.Fatal(err)
			}
			for range 4 {
				a.tick(at)
			}
			if a.res.Outcome.Why != ladder.WhyPaused {
				t.Errorf("%s: %s", a.res.Outcome.Why, a.res.Outcome.Reason)
			}
			if _, err := a.at(at).Command(t.Context(), ladder.Command{Verb: ladder.DoResume}); err != nil {
				t.Fatal(err)
			}
			b.until(bt, "at 100 %", advanced)
			w.wantWeight(100)
			w.source.violations = 600
			b.tick(bt)
			w.wantWeight(0)
			if a.tick(at); a.res.Status != driver.RolledBack || a.res.Release.Ladder.Breaker.Phase != release.Open {
				t.Errorf("status %d: %s", a.res.Status, a.res.Outcome.Reason)
			}
			res, err := w.machine().at(dial()).RollBack(t.Context(), "for good")
			if err != nil || res.Status != driver.RolledBack || res.Err != nil {
				t.Fatalf("%+v, %v", res, err)
			}
			if b.tick(bt); b.res.Release.Ladder.Stage != ladder.RolledBack {
				t.Errorf("%s", standing(&b.res.Release.Ladder))
			}
			if got := strings.Join(w.events(), " "); got != "started advanced paused resumed advanced rolled_back rolled_back" {
				t.Errorf("told %q", got)
			}
			a.verify()
			b.verify()
		})
	}
}

func TestAConfigAPISwapsTogetherWithTheState(t *testing.T) {
	w := newWorld(t)
	w.quick()
	w.text = strings.Replace(w.text, "target: { file: { path: weights.json } }", "target: { config_api: { url: \"http://127.0.0.1:1/\" } }\nstate: { in_target: true }\non_complete: swap", 1)
	connect := api(t)
	dial := func() driver.Target { return &mirrored{connect().(target.Target), w} }
	a, b := w.machine(), w.machine()
	a.tick(dial())
	a.until(dial(), "complete", func(r *driver.Result) bool { return r.Outcome.Move == release.Complete })
	if err := a.at(dial()).Swap(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.tick(dial()); b.res.Status != driver.Done || !b.res.Release.Exchange.Done {
		t.Fatalf("status %d: %s, %+v", b.res.Status, b.res.Outcome.Reason, b.res.Release.Exchange)
	}
	w.wantWeight(0)
	v, err := dial().(driver.Swapper).Versions(context.Background())
	if err != nil || v.Stable != b.res.Release.Exchange.To {
		t.Errorf("%+v, %v", v, err)
	}
	old, _ := digests(t, w.text)
	c := w.machine()
	if err := c.at(dial()).ReturnTo(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if res, err := c.at(dial()).RollBack(t.Context(), "bad"); err != nil || res.Status != driver.RolledBack {
		t.Fatalf("%+v, %v", res, err)
	}
	if v, err := dial().(driver.Swapper).Versions(context.Background()); err != nil || v.Stable != b.res.Release.Exchange.From {
		t.Errorf("%+v, %v", v, err)
	}
	a.tick(dial())
	w.wantStatus(driver.RolledBack)
	a.verify()
	b.verify()
	c.verify()
}

// put replaces the service's document.
func put(t *testing.T, url, document string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, strings.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer t-o-k-e-n")
	req.Header.Set("If-None-Match", "*")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("PUT was answered with %s", resp.Status)
	}
}
