//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/state"
)

// oneThread keeps the command's own writes on one thread, so that strace, which
// counts by thread, finds each of them.
const oneThread = "CANARYCTL_TEST_ONE_THREAD"

func init() {
	if os.Getenv(oneThread) != "" {
		runtime.LockOSThread()
	}
}

// liveSpan is the length of a window: short, so that a hold is a blink.
const liveSpan = 60 * time.Millisecond // span_min 0.001

const liveConfig = `
canary:
  target_service: order-service
  steps:
    - { pct: 0.01, min_hold_min: 0.002 }
    - { pct: 0.10, min_hold_min: 0.002 }
    - { pct: 1.00, min_hold_min: 0.002 }
  metrics:
    fast_layer: { violation_window_min: 0.01 }
    slow_layer: { min_samples_slow: 50 }
    recovery: { cooldown_min: 0.001, half_open_trials: 3 }
versions:
  stable: { base_url: "https://models.internal/v1", model_id: order-7b, prompt_version: "41" }
  canary: { base_url: "https://models.internal/v1", model_id: order-7b, prompt_version: "42" }
source: { windows: { path: windows.jsonl, span_min: 0.001, stale_min: 0 } }
target: { file: { path: weights.json } }
`

const liveWeights = `{"versions":{"stable":{"weight":1},"canary":{"weight":0}}}` + "\n"

// scene is a release of the real command in a folder of its own.
type scene struct {
	t   *testing.T
	dir string
	env []string
}

// sceneDir is a folder in memory, where there is one: the commands sync what they
// write, and a disk that others use takes most of the tests' time for that.
func sceneDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "canaryctl-scene")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // memory, given back
	return dir
}

func newScene(t *testing.T, config string) *scene {
	t.Helper()
	s := &scene{t: t, dir: sceneDir(t)}
	s.put("canary.yaml", config)
	s.put("weights.json", liveWeights)
	s.put("windows.jsonl", "")
	return s
}

// fork copies a scene, as it is now.
func (s *scene) fork(t *testing.T) *scene {
	t.Helper()
	out := &scene{t: t, dir: filepath.Join(sceneDir(t), "fork"), env: s.env}
	if err := os.CopyFS(out.dir, os.DirFS(s.dir)); err != nil {
		t.Fatal(err)
	}
	return out
}

func (s *scene) path(name string) string { return filepath.Join(s.dir, name) }

func (s *scene) put(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) read(name string) string {
	s.t.Helper()
	b, err := os.ReadFile(s.path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// edit replaces text of the configuration.
func (s *scene) edit(old, new string) {
	s.t.Helper()
	was := s.read("canary.yaml")
	if !strings.Contains(was, old) {
		s.t.Fatalf("the configuration has no %q", old)
	}
	s.put("canary.yaml", strings.Replace(was, old, new, 1))
}

const stateFolder = ".canaryctl/order-service/"

// answer is what a command came to.
type answer struct {
	code   int
	killed bool
	out    string
	err    string
}

func (a answer) String() string {
	return fmt.Sprintf("exit %d\nstdout: %s\nstderr: %s", a.code, a.out, a.err)
}

// command is `canaryctl args` in the scene's folder; before it may stand a
// program that runs it.
func (s *scene) command(before []string, args ...string) *exec.Cmd {
	line := append(append(append([]string{}, before...), canaryctl(s.t)), args...)
	cmd := exec.CommandContext(s.t.Context(), line[0], line[1:]...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), s.env...)
	return cmd
}

func (s *scene) do(args ...string) answer { return s.under(nil, args...) }

func (s *scene) under(before []string, args ...string) answer {
	s.t.Helper()
	return ended(s.t, s.command(before, args...))
}

// ended runs a command to its end.
func ended(t *testing.T, cmd *exec.Cmd) answer {
	t.Helper()
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	a := answer{out: out.String(), err: said.String()}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		a.code, a.killed = exit.ExitCode(), exit.ExitCode() < 0
	} else if err != nil {
		t.Fatal(err)
	}
	return a
}

// want runs a command that must end with a code.
func (s *scene) want(code int, args ...string) answer {
	s.t.Helper()
	a := s.do(args...)
	if a.code != code {
		s.t.Fatalf("canaryctl %s: want exit %d: %s", strings.Join(args, " "), code, a)
	}
	return a
}

func (s *scene) place() *state.Dir { return state.At(s.path(".canaryctl"), "order-service") }

// release is where the journal leads to.
func (s *scene) release() *driver.Release {
	s.t.Helper()
	r, err := driver.Load(s.t.Context(), s.place(), "order-service")
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// verify derives the whole journal again.
func (s *scene) verify() *driver.Verified {
	s.t.Helper()
	v, err := driver.Verify(s.t.Context(), s.place(), "order-service")
	if err != nil {
		s.t.Fatalf("the journal does not verify: %v\n%s", err, s.do("history", "--all").out)
	}
	return v
}

// entries are the lines of the journal.
func (s *scene) entries() (out []*journal.Entry) {
	s.t.Helper()
	err := journal.Read(s.t.Context(), s.place().Journal(), journal.Head{}, func(e *journal.Entry, _ journal.Head) error {
		out = append(out, e)
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// intents are the writes that were decided on, repetitions left out: "advance
// to 10 %".
func (s *scene) intents() (out []string) {
	s.t.Helper()
	for _, e := range s.entries() {
		if d := e.Decided; d != nil && d.Outcome.Write && !d.Outcome.Again {
			out = append(out, fmt.Sprintf("%s to %s", d.Outcome.Move, d.Outcome.Weight))
		}
		if c := e.Command; c != nil && c.Verb == ladder.DoRollBack {
			out = append(out, "rollback by a person")
		}
	}
	return out
}

// weight is what the target's file holds.
func (s *scene) weight() float64 {
	s.t.Helper()
	var doc struct {
		Versions map[string]struct{ Weight float64 }
	}
	if err := json.Unmarshal([]byte(s.read("weights.json")), &doc); err != nil {
		s.t.Fatal(err)
	}
	if sum := doc.Versions["canary"].Weight + doc.Versions["stable"].Weight; sum != 1 {
		s.t.Fatalf("the weights add up to %g", sum)
	}
	return doc.Versions["canary"].Weight
}

// readBack reports whether a weight was read back, by the journal.
func (s *scene) readBack(weight float64) bool {
	s.t.Helper()
	l := s.release().Ladder
	return l.Weight.Share() == weight && l.Pending.Move == release.Hold && l.Stage != ladder.NotStarted
}

func (s *scene) wantWeight(want float64) {
	s.t.Helper()
	if got := s.weight(); got != want {
		s.t.Fatalf("the target holds %g, want %g\n%s", got, want, s.do("history", "--all").out)
	}
}

// traffic is what the windows of a time say.
type traffic struct {
	windows    int
	violations int
}

// serve waits until windows have passed since the weight was read back, and
// writes them into the source.
func (s *scene) serve(x traffic) {
	s.t.Helper()
	s.until(s.write(x, time.Time{}))
}

// append writes windows from now on beside a command that reads them.
func (s *scene) append(x traffic) { s.write(x, time.Now().Add(liveSpan)) }

// write writes windows from the last read-back, or the last of them, on, and
// not before a time; it returns when they end.
func (s *scene) write(x traffic, from time.Time) time.Time {
	s.t.Helper()
	r := s.release()
	for _, t := range []time.Time{r.Ladder.At, r.Until, r.Ladder.Seen.Add(time.Nanosecond), r.Ladder.Serving} {
		if t.After(from) {
			from = t
		}
	}
	t := from.Add(liveSpan - 1).Truncate(liveSpan)
	share := s.weight()
	var b strings.Builder
	for range x.windows {
		canary := int(6000 * share)
		fmt.Fprintf(&b, `{"t":%q,"arm":"canary","total":%d,"judged":%d,"solved":%d,"violations":%d,"transfers":0}`+"\n", t.Format(time.RFC3339Nano), canary, canary, canary, min(x.violations, canary))
		fmt.Fprintf(&b, `{"t":%q,"arm":"stable","total":%d,"judged":%d,"solved":%d,"violations":0,"transfers":0}`+"\n", t.Format(time.RFC3339Nano), 6000-canary, 6000-canary, 6000-canary)
		t = t.Add(liveSpan)
	}
	f, err := os.OpenFile(s.path("windows.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := f.WriteString(b.String()); err != nil {
		s.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		s.t.Fatal(err)
	}
	return t
}

func (s *scene) until(t time.Time) { <-time.After(time.Until(t) + 5*time.Millisecond) }

// climb takes a release that has started, or has not, to a step.
func (s *scene) climb(step int) {
	s.t.Helper()
	for at := 0; at < step; at++ {
		if r := s.release(); r.Ladder.Stage == ladder.Climbing {
			if r.Ladder.Step+1 >= step {
				return
			}
			s.serve(traffic{windows: 4})
		}
		s.want(0, "promote")
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never %s", what)
		}
	}
}

// started is a command under way.
type started struct {
	cmd  *exec.Cmd
	done chan struct{}

	mu       sync.Mutex
	out, err bytes.Buffer
}

func (s *scene) start(args ...string) *started { return s.startUnder(nil, args...) }

func (s *scene) startUnder(before []string, args ...string) *started {
	s.t.Helper()
	p := &started{cmd: s.command(before, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = tee{p, &p.out}, tee{p, &p.err}
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // its exit code is looked at
	}()
	s.t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it has ended, if all went well
		<-p.done
	})
	return p
}

// tee keeps an output that is read while it is written.
type tee struct {
	p   *started
	buf *bytes.Buffer
}

func (w tee) Write(b []byte) (int, error) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	return w.buf.Write(b)
}

func (p *started) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String() + p.err.String()
}

// wait waits for the end and returns what it came to.
func (p *started) wait(t *testing.T) answer {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(40 * time.Second):
		t.Fatalf("it does not end: %s", p.said())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return answer{code: p.cmd.ProcessState.ExitCode(), out: p.out.String(), err: p.err.String()}
}
