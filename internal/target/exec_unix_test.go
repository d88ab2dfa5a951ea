//go:build unix

package target

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
)

// newTestExec makes a target of two lines of shell, in a folder with a file
// called weight.
func newTestExec(t *testing.T, read, write string, cfg config.ExecTarget) *command {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "weight"), []byte("0.01\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.Read, cfg.Write = []string{"sh", "-c", read}, []string{"sh", "-c", write}
	made, err := New(&config.Target{Kind: "exec", Exec: &cfg}, Options{Service: "order-service", Ring: 100, Dir: dir, Getenv: os.Getenv})
	if err != nil {
		t.Skip(err)
	}
	return made.(*command)
}

func TestExecReadsANumberOrJSON(t *testing.T) {
	for name, tc := range map[string]struct {
		printed string
		unit    config.Unit
		want    Reading
	}{
		"a fraction":           {`0.05`, config.Unit{}, Reading{Weight: weightOf(5)}},
		"percent":              {` 5.0 `, config.Unit{Whole: 100, Places: 1}, Reading{Weight: weightOf(5)}},
		"a text in JSON":       {`{"weight": "0.05", "revision": "r7"}`, config.Unit{}, Reading{Weight: weightOf(5), Revision: "r7"}},
		"a number in JSON":     {`{"weight": 5e-2}`, config.Unit{}, Reading{Weight: weightOf(5)}},
		"off the ring, exact":  {`0.005`, config.Unit{}, Reading{Weight: release.Weight{Slots: 1, Ring: 200}}},
		"more in JSON than is": {`{"weight": 0.05, "by": "me"}`, config.Unit{}, Reading{Weight: weightOf(5)}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTestExec(t, "echo '"+tc.printed+"'", "true", config.ExecTarget{Unit: tc.unit})
			if got := mustRead(t, x); !cmp.Equal(got, tc.want) {
				t.Errorf("read %+v, want %+v", got, tc.want)
			}
		})
	}
	for name, printed := range map[string]string{
		"nothing": "", "words": "five", "NaN": "NaN", "above the whole": "5", "no weight": `{"revision": "r7"}`,
		"null": `{"weight": null}`, "cut off": `{"weight": 0.05`, "two numbers": "0.05 0.95", "a truth": `{"weight": true}`,
	} {
		t.Run(name, func(t *testing.T) {
			x := newTestExec(t, "echo '"+printed+"'", "true", config.ExecTarget{})
			if r, err := x.Read(t.Context()); !isA[*ShapeError](err) {
				t.Errorf("read %+v, %v", r, err)
			}
		})
	}
	x := newTestExec(t, "yes 0.05 | head -c 100000", "true", config.ExecTarget{})
	if _, err := x.Read(t.Context()); !isA[*ShapeError](err) || !strings.Contains(err.Error(), "64 KiB") {
		t.Errorf("an endless output: %v", err)
	}
}

func TestExecWriteGetsTheFiguresInTheEnvironmentAndOnStandardInput(t *testing.T) {
	x := newTestExec(t,
		`printf '{"weight": "%s", "revision": "r7"}' "$(cat weight)"`,
		`echo "$CANARYCTL_WEIGHT" >weight; env | grep ^CANARYCTL_ | sort >env; cat >stdin`, config.ExecTarget{})
	c := Change{
		To: weightOf(5), Key: "rel-1/1/2/advance", Release: "rel-1", Attempt: 1, Step: 2, Move: "advance",
		Reason: "held 2 h; $(rm -rf /) `x`\n\"quoted\"", Token: 1<<63 + 1,
	}
	if err := x.Write(t.Context(), mustRead(t, x), c); err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, x).Weight; got != weightOf(5) {
		t.Errorf("holds %v", got)
	}
	var in map[string]any
	if err := json.Unmarshal([]byte(content(t, filepath.Join(x.dir, "stdin"))), &in); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"schema": 1.0, "weight": "0.05", "stable_weight": "0.95", "from": "0.01", "percent": "5", "revision": "r7",
		"service": "order-service", "release": "rel-1", "attempt": 1.0, "step": 2.0, "move": "advance",
		"key": "rel-1/1/2/advance", "reason": c.Reason, "token": "9223372036854775809",
	}
	if diff := cmp.Diff(want, in); diff != "" {
		t.Errorf("standard input (-want +got):\n%s", diff)
	}
	env := content(t, filepath.Join(x.dir, "env"))
	for name, value := range want {
		if text, ok := value.(string); ok && name != "reason" && !strings.Contains(env, "CANARYCTL_"+strings.ToUpper(name)+"="+text+"\n") {
			t.Errorf("%s is not in the environment:\n%s", name, env)
		}
	}
}

func TestExecExitCodesAreErrorsOfTheirOwn(t *testing.T) {
	for name, tc := range map[string]struct {
		write string
		is    func(error) bool
		says  string
	}{
		"1 is refused":                       {"echo first >&2; echo no such route >&2; exit 1", isA[*RefusedError], "exit status 1: first / no such route"},
		"75 may work later":                  {"echo busy >&2; exit 75", isA[*UnreachableError], "busy"},
		"8 is a conflict":                    {"echo moved to 30 >&2; exit 8", isA[*ConflictError], "moved to 30"},
		"127 is refused":                     {"no-such-program-here", isA[*RefusedError], "127"},
		"a signal is unreachable":            {"kill -9 $$", isA[*UnreachableError], "killed"},
		"a shell's child that is killed too": {"sh -c 'kill -9 $$'; exit $?", isA[*UnreachableError], "137"},
		"only the last lines are shown":      {"seq 1 100000 >&2; exit 2", isA[*RefusedError], ": 99998 / 99999 / 100000"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTestExec(t, "cat weight", tc.write, config.ExecTarget{})
			err := x.Write(t.Context(), mustRead(t, x), Change{To: weightOf(5)})
			if !tc.is(err) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %T %v", err, err)
			}
			if x.read[2] = tc.write; name == "8 is a conflict" {
				if _, err := x.Read(t.Context()); !isA[*RefusedError](err) {
					t.Errorf("a read cannot be a conflict: %v", err)
				}
			}
		})
	}
	x := newTestExec(t, "cat weight", "true", config.ExecTarget{})
	x.write = []string{"no-such-program-here"}
	if err := x.Write(t.Context(), mustRead(t, x), Change{To: weightOf(5)}); !isA[*RefusedError](err) {
		t.Errorf("a program that is not there: %v", err)
	}
}

func TestExecComparesBeforeItWrites(t *testing.T) {
	x := newTestExec(t, "cat weight", `echo "$CANARYCTL_WEIGHT from $CANARYCTL_FROM" >>log; echo "$CANARYCTL_WEIGHT" >weight`, config.ExecTarget{})
	was := mustRead(t, x)
	if err := os.WriteFile(filepath.Join(x.dir, "weight"), []byte("0.3"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := x.Write(t.Context(), was, Change{To: weightOf(5)})
	if c, ok := errors.AsType[*ConflictError](err); !ok || c.Held == nil || *c.Held != weightOf(30) {
		t.Fatalf("got %v", err)
	}
	if err := x.Write(t.Context(), was, Change{To: weightOf(0), Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	if got := content(t, filepath.Join(x.dir, "log")); got != "0 from 0.3\n" {
		t.Errorf("the write program ran so: %q", got)
	}
	x.read[2] = "echo broken; exit 1"
	if err := x.Write(t.Context(), was, Change{To: weightOf(0), Overwrite: true}); err != nil {
		t.Errorf("a rollback that cannot read: %v", err)
	}
}

func TestExecThatDoesNotEndIsKilledWithItsChildren(t *testing.T) {
	x := newTestExec(t, "cat weight", "sleep 300 & echo $! >child; wait", config.ExecTarget{Timeout: 300 * time.Millisecond})
	was := mustRead(t, x)
	start := time.Now()
	err := x.Write(t.Context(), was, Change{To: weightOf(5)})
	if !isA[*UnreachableError](err) || !strings.Contains(err.Error(), "300ms") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	child, err := strconv.Atoi(strings.TrimSpace(content(t, filepath.Join(x.dir, "child"))))
	if err != nil {
		t.Fatal(err)
	}
	if !gone(child) {
		t.Errorf("process %d, a child, is still there", child)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := x.Write(ctx, was, Change{To: weightOf(5)}); !isA[*UnreachableError](err) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// gone waits until a process has ended: a zombie that nobody has collected
// counts as ended.
func gone(pid int) bool {
	for range 100 {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil && syscall.Kill(pid, 0) != nil || strings.Contains(string(stat), ") Z ") {
			return true
		}
		<-time.After(10 * time.Millisecond)
	}
	return false
}

func TestExecHidesSecretsOfTheEnvironment(t *testing.T) {
	t.Setenv("ROUTER_API_KEY", "sk-very-secret-1234")
	x := newTestExec(t, "cat weight", `echo "rejected: $ROUTER_API_KEY" >&2; exit 1`, config.ExecTarget{})
	err := x.Write(t.Context(), mustRead(t, x), Change{To: weightOf(5)})
	if err == nil || strings.Contains(err.Error(), "sk-very") || !strings.Contains(err.Error(), "rejected: ***") {
		t.Errorf("got %v", err)
	}
}
