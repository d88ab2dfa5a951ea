package notify

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
)

// nobody listens on the port of tcpmux.
const nobody = "http://127.0.0.1:1"

func mustHook(t *testing.T, h config.Hook, o Options) Hook {
	t.Helper()
	hook, err := NewHook(h, 1, o)
	if err != nil {
		t.Fatal(err)
	}
	return hook
}

func TestHTTPHookSendsTheRecordOnceRecognisably(t *testing.T) {
	r := receive(t, 204, "")
	h := mustHook(t, config.Hook{Kind: "http", Name: "reset affinity", URL: r.URL + "/flush", TokenEnv: "T"}, environ(map[string]string{"T": "token"}))
	if err := h.Run(t.Context(), rollback()); err != nil {
		t.Fatal(err)
	}
	got := r.only(t)
	if got.method != "POST" || got.path != "/flush" || string(got.body) != string(rollback().Rollback) || got.header.Get("Idempotency-Key") != rollback().Key ||
		got.header.Get("Authorization") != "Bearer token" || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("got %+v", got)
	}
	if h.String() != "reset affinity (hooks.on_rollback[1])" || h.Tries() != 5 {
		t.Errorf("%s, %d tries", h, h.Tries())
	}
}

func TestHTTPHookTakesMethodBodyAndHeaders(t *testing.T) {
	cases := []struct {
		h    config.Hook
		want string
	}{
		{config.Hook{Method: "PUT", Body: "flush=1", Headers: map[string]string{"content-type": "application/x-www-form-urlencoded"}}, "PUT application/x-www-form-urlencoded flush=1"},
		{config.Hook{Method: "GET"}, "GET  "},
		{config.Hook{Method: "DELETE", Body: `{"all":true}`, Tries: 2}, `DELETE application/json {"all":true}`},
	}
	for _, c := range cases {
		r := receive(t, 200, "")
		c.h.Kind, c.h.URLEnv = "http", "U"
		h := mustHook(t, c.h, environ(map[string]string{"U": r.URL}))
		if err := h.Run(t.Context(), rollback()); err != nil {
			t.Fatal(err)
		}
		got := r.only(t)
		if s := got.method + " " + got.header.Get("Content-Type") + " " + string(got.body); s != c.want {
			t.Errorf("got %q, want %q", s, c.want)
		}
		if c.h.Tries > 0 && h.Tries() != c.h.Tries {
			t.Errorf("%d tries", h.Tries())
		}
	}
}

func TestHTTPHookFailures(t *testing.T) {
	cases := []struct {
		name, url string
		retry     bool
		after     time.Duration
		says      string
	}{
		{"404 is for good", receive(t, 404, "").URL, false, 0, "answered 404"},
		{"429 waits as asked", receive(t, 429, "", "Retry-After", "3").URL, true, 3 * time.Second, "answered 429"},
		{"500 may mend", receive(t, 500, "oops").URL, true, 0, "Internal Server Error: oops"},
		{"nobody listening may mend", nobody + "/secretpath", true, 0, "refused"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := mustHook(t, config.Hook{Kind: "http", URL: c.url}, environ(nil)).Run(t.Context(), rollback())
			failed, ok := errors.AsType[*DeliveryError](err)
			if !ok || failed.Retry != c.retry || failed.After != c.after || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secretpath") {
				t.Errorf("got %v (%+v)", err, failed)
			}
		})
	}
}

func TestHooksThatCannotWorkAreRefused(t *testing.T) {
	cases := []struct {
		h    config.Hook
		says string
	}{
		{config.Hook{Kind: "smtp"}, "the kinds are http and exec"},
		{config.Hook{Kind: "http", Name: "purge"}, "purge (hooks.on_rollback[1]): it needs url or url_env"},
		{config.Hook{Kind: "http", URL: "http://h.example", Method: "A B"}, "no method of HTTP"},
		{config.Hook{Kind: "http", URL: "http://h.example", TokenEnv: "T"}, "variable T is not set or empty"},
		{config.Hook{Kind: "exec"}, "exec (hooks.on_rollback[1]): it needs command"},
	}
	for _, c := range cases {
		if _, err := NewHook(c.h, 1, environ(nil)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("got %v, want %q", err, c.says)
		}
	}
}

// shell returns a hook that runs a script.
func shell(t *testing.T, script string, timeout time.Duration) Hook {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: no sh on this system")
	}
	return mustHook(t, config.Hook{Kind: "exec", Command: []string{"sh", "-c", script}, Timeout: timeout}, Options{Dir: t.TempDir()})
}

func TestExecHookGetsRecordAndVariables(t *testing.T) {
	dir := t.TempDir()
	h := mustHook(t, config.Hook{Kind: "exec", Command: []string{"sh", "-c",
		`cat > record; printf '%s|' "$CANARYCTL_SERVICE" "$CANARYCTL_RELEASE" "$CANARYCTL_ATTEMPT" "$CANARYCTL_EVENT" "$CANARYCTL_KEY" "$CANARYCTL_REASON" > vars`}}, Options{Dir: dir})
	m := rollback()
	m.Reason = "two\nlines \x00 $(not run)"
	if err := h.Run(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"record": string(m.Rollback),
		"vars":   "order-service|3f2a9c81d0e4|2|rolled_back|3f2a9c81d0e4/2/3/rolled_back/1|two lines $(not run)|",
	} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestExecHookOutcomes(t *testing.T) {
	cases := []struct {
		name, script string
		retry        bool
		says         string
	}{
		{"a failure may mend and shows its last words", "echo first; echo 'NOAUTH required' >&2; exit 3", true, "ended with exit status 3: first NOAUTH required"},
		{"127 does not mend", "no-such-program-at-all", false, "exit status 127"},
		{"126 does not mend", "echo > f; ./f", false, "exit status 126"},
		{"killed by a signal may mend", "kill -9 $$", true, "signal: killed"},
		{"long output is cut at its beginning", "i=0; while [ $i -lt 500 ]; do echo 转人工率; i=$((i+1)); done; echo END; exit 1", true, "END"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := shell(t, c.script, time.Minute).Run(t.Context(), rollback())
			failed, ok := errors.AsType[*DeliveryError](err)
			if !ok || failed.Retry != c.retry || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v (%+v)", err, failed)
			}
			if len(err.Error()) > tailLimit+200 {
				t.Errorf("%d bytes: %s", len(err.Error()), err)
			}
		})
	}
	if err := shell(t, "exit 0", time.Minute).Run(t.Context(), rollback()); err != nil { // reads nothing of its input
		t.Error(err)
	}
	err := mustHook(t, config.Hook{Kind: "exec", Command: []string{"no-such-program-at-all"}}, Options{}).Run(t.Context(), rollback())
	if failed, ok := errors.AsType[*DeliveryError](err); !ok || failed.Retry {
		t.Errorf("got %v", err)
	}
}

// TestExecHookIsKilledWithItsChildren starts a child that would go on for a
// minute.
func TestExecHookIsKilledWithItsChildren(t *testing.T) {
	dir := t.TempDir()
	pids := filepath.Join(dir, "pid")
	h := shell(t, "sleep 60 & echo $! > "+pids+"; wait", 200*time.Millisecond)
	from := time.Now()
	err := h.Run(t.Context(), rollback())
	if took := time.Since(from); took > 1200*time.Millisecond {
		t.Errorf("took %s with a limit of 200ms", took)
	}
	failed, ok := errors.AsType[*DeliveryError](err)
	if !ok || !failed.Retry || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "did not end within 200ms") {
		t.Errorf("got %v", err)
	}
	text, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); lives(pid); {
		if time.Now().After(deadline) {
			t.Fatalf("the child %d lives on", pid)
		}
		runtime.Gosched()
	}
}

// lives reports whether a process runs; one that nobody has waited for yet is
// dead.
func lives(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

func TestExecHookDoesNotWaitForWhatItLeftBehind(t *testing.T) {
	from := time.Now()
	err := shell(t, "sleep 3 & exit 0", time.Minute).Run(t.Context(), rollback())
	if took := time.Since(from); err != nil || took > 2*time.Second {
		t.Errorf("got %v after %s", err, took)
	}
}

func TestExecHookEndsWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := shell(t, "sleep 60", time.Minute).Run(ctx, rollback())
	if failed, ok := errors.AsType[*DeliveryError](err); !ok || failed.Retry || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestHooksAreForRollbacksOnly(t *testing.T) {
	m := rollback()
	m.Rollback = nil
	for _, h := range []config.Hook{{Kind: "http", URL: "http://h.invalid"}, {Kind: "exec", Command: []string{"true"}}} {
		err := mustHook(t, h, environ(nil)).Run(t.Context(), m)
		if failed, ok := errors.AsType[*DeliveryError](err); !ok || failed.Retry || !errors.Is(err, errNoRecord) && !strings.Contains(err.Error(), errNoRecord.Error()) {
			t.Errorf("%s: got %v", h.Kind, err)
		}
	}
}

func TestWhatAnExecHookPrintsIsShownWithoutSecrets(t *testing.T) {
	t.Setenv("PURGE_TOKEN", "tok-1234567890abcdef")
	for name, script := range map[string]string{
		"a variable":       `echo "sent $PURGE_TOKEN"; exit 1`,
		"a shell's trace":  `set -x; : "Authorization: Bearer $PURGE_TOKEN"; exit 1`,
		"far back":         `echo "$PURGE_TOKEN"; head -c 470 /dev/zero | tr '\0' x; exit 1`,
		"a header":         `echo "> Authorization: Basic dG9rLTEyMzQ1Njc4OTBhYmNkZWY="; exit 1`,
		"an issuer's form": `echo "key sk-proj-tok-1234567890 revoked"; exit 1`,
		"an address":       `echo "https://bot:tok-1234567@h.example/ not found"; exit 1`,
	} {
		err := shell(t, script, time.Minute).Run(t.Context(), rollback())
		if err == nil || strings.Contains(err.Error(), "tok-1") || strings.Contains(err.Error(), "90abcdef") || strings.Contains(err.Error(), "dG9rLTEy") || !strings.Contains(err.Error(), "***") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatCannotBeOpenedStandsInUntried(t *testing.T) {
	none := environ(nil)
	ch, err := NewOrAbsent(config.Channel{Kind: "slack", URLEnv: "INBOX", Events: []string{"rolled_back"}}, 2, none)
	if err == nil || ch.String() != "slack (notify[2])" || !ch.Wants(RolledBack) || !ch.Wants(Test) || ch.Wants(Advanced) {
		t.Fatalf("%v, %v", ch, err)
	}
	am, err := NewOrAbsent(config.Channel{Kind: "alertmanager", URLEnv: "INBOX", Events: []string{"paused"}}, 0, none)
	if err == nil || !am.Wants(Paused) || !am.Wants(Resumed) || am.Wants(Drift) {
		t.Fatalf("%v, %v", am, err)
	}
	odd, err := NewOrAbsent(config.Channel{Kind: "slack", URL: nobody, Events: []string{"no-event"}}, 0, none)
	if err == nil || !odd.Wants(Advanced) {
		t.Fatalf("%v, %v", odd, err)
	}
	h, err := NewHookOrAbsent(config.Hook{Kind: "http", Name: "purge", URL: nobody, TokenEnv: "PURGE", Tries: 3}, 1, none)
	if err == nil || h.String() != "purge (hooks.on_rollback[1])" || h.Tries() != 3 {
		t.Fatalf("%v, %v", h, err)
	}
	for want, err := range map[string]error{
		"slack (notify[2]): url_env: the environment variable INBOX is not set or empty":              ch.Send(t.Context(), rollback()),
		"purge (hooks.on_rollback[1]): token_env: the environment variable PURGE is not set or empty": h.Run(t.Context(), rollback()),
	} {
		failed, ok := errors.AsType[*DeliveryError](err)
		if !ok || !failed.Retry || !failed.Untried || err.Error() != want {
			t.Errorf("%+v, want %q", err, want)
		}
	}
	if ch, err := NewOrAbsent(config.Channel{Kind: "slack", URL: "https://h.example/x"}, 0, none); err != nil || ch == nil {
		t.Error(err)
	}
	if h, err := NewHookOrAbsent(config.Hook{Kind: "http", URL: "https://h.example/x"}, 0, none); err != nil || h == nil {
		t.Error(err)
	}
}
