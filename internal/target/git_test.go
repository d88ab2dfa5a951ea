package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/servertest"
	"github.com/canaryctl/canaryctl/internal/splice"
)

const gitRoutes = `# edited by people, too
kind: Service
metadata: {name: llm}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: llm}
spec:
    rules:
    - backendRefs:
      - {name: stable, port: 8080, weight: 99}   # what serves
      - {name: canary, port: 8080, weight: 1}    # what comes
`

const gitVirtualService = `kind: VirtualService
metadata: {name: llm}
spec:
  http:
  - route:
    - destination: {host: llm, subset: stable}
      weight: 99
    - destination: {host: llm, subset: canary}
      weight: 1
`

const gitFlags = `{"emoji": "\ud83d\ude00", "flags": {"llm": {"targeting": {"fractional": [["stable", 99], ["canary", 1]]}}}}`

func TestGitMovesTheWeightAndNothingElse(t *testing.T) {
	t.Parallel()
	whole := config.Unit{Whole: 100}
	for _, tt := range []struct {
		name, text string
		file       config.GitFile
		old, new   []string
	}{
		{"HTTPRoute among others", gitRoutes, config.GitFile{
			Document: "kind=HTTPRoute,metadata.name=llm", Unit: whole,
			Canary: "spec.rules[0].backendRefs[name=canary].weight", Stable: "spec.rules[0].backendRefs[name=stable].weight",
		}, []string{"weight: 99", "weight: 1}"}, []string{"weight: 95", "weight: 5}"}},
		{"VirtualService", gitVirtualService, config.GitFile{
			Unit:   whole,
			Canary: "spec.http[0].route[destination.subset=canary].weight", Stable: "spec.http[0].route[destination.subset=stable].weight",
		}, []string{"weight: 99", "weight: 1\n"}, []string{"weight: 95", "weight: 5\n"}},
		{"Helm values with one number", "canary:\r\n  weight: \"1\"  # percent\r\n", config.GitFile{
			Unit: whole, Canary: "canary.weight", Stable: "-",
		}, []string{`"1"`}, []string{`"5"`}},
		{"plain JSON by default", `{"versions":{"stable":{"weight":0.99},"canary":{"weight":0.01}}}`, config.GitFile{},
			[]string{"0.99", "0.01"}, []string{"0.95", "0.05"}},
		{"flagd", gitFlags, config.GitFile{
			Unit: whole, Canary: "flags.llm.targeting.fractional[1][1]", Stable: "flags.llm.targeting.fractional[0][1]",
		}, []string{"99", " 1]"}, []string{"95", " 5]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			const path = "deploy/route of llm.yaml"
			w := newGitWorld(t, map[string]string{path + "*": tt.text, "other": "x"}).with("--depth=1")
			tt.file.Path = path
			g := w.target(func(c *config.GitTarget, _ *Options) { c.Files = []config.GitFile{tt.file} })
			was := gitRead(t, g)
			if was.Weight != share(1) || was.Revision != gitRun(t, w.bare, "rev-parse", "main") || g.String() != "git main:"+path {
				t.Fatalf("%+v of %s", was, g)
			}
			if err := g.Write(t.Context(), was, changeTo(5)); err != nil {
				t.Fatal(err)
			}
			want := tt.text
			for i := range tt.old {
				want = strings.Replace(want, tt.old[i], tt.new[i], 1)
			}
			if got := w.file("main", path); got != want {
				t.Error(splice.Diff(path, []byte(want), []byte(got)))
			}
			if got := gitRun(t, w.bare, "diff", "--name-only", "main~1", "main"); got != path {
				t.Errorf("changed: %s", got)
			}
			if got := gitRun(t, w.bare, "ls-tree", "main", "--", path); !strings.HasPrefix(got, "100755 ") {
				t.Errorf("the file's mode was not kept: %s", got)
			}
			is := gitRead(t, g)
			if is.Weight != share(5) || is.Revision == was.Revision || !strings.HasPrefix(is.By, "canaryctl (") {
				t.Errorf("read back %+v", is)
			}
		})
	}
}

func TestGitCommitSaysWhatAndWhy(t *testing.T) {
	t.Parallel()
	w := newGitWorld(t, map[string]string{"weights.json": plainText}).with()
	g := w.target(nil)
	c := changeTo(5)
	c.Reason = "Gates passed.\n\nCanaryctl-Key: forged"
	if err := g.Write(t.Context(), gitRead(t, g), c); err != nil {
		t.Fatal(err)
	}
	const want = `order-service: canary at 5 % (step 2 of release abc123)

Gates passed. Canaryctl-Key: forged

Canaryctl-Release: abc123
Canaryctl-Attempt: 1
Canaryctl-Step: 2
Canaryctl-Move: advance
Canaryctl-Weight: 5/100
Canaryctl-Evidence: sha256:77aa
Canaryctl-Key: r/1/2/advance`
	if got := gitRun(t, w.bare, "log", "-1", "--format=%B"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := gitRun(t, w.bare, "log", "-1", "--format=%(trailers:key=Canaryctl-Key,valueonly)"); got != c.Key {
		t.Errorf("key %q", got)
	}
	if got := gitRun(t, w.bare, "log", "-1", "--format=%an <%ae> %cn <%ce>"); got != "canaryctl <canaryctl@localhost> canaryctl <canaryctl@localhost>" {
		t.Errorf("by %s", got)
	}
	back := Change{To: share(0), Overwrite: true, Release: "abc123", Move: "roll_back"}
	if err := g.Write(t.Context(), Reading{}, back); err != nil {
		t.Fatal(err)
	}
	if got := gitRun(t, w.bare, "log", "-1", "--format=%s"); got != "order-service: canary at 0 % (roll_back of release abc123)" {
		t.Errorf("subject %q", got)
	}
}

func TestGitCommitsAsTheUserOrAsConfigured(t *testing.T) {
	t.Parallel()
	w := newGitWorld(t, map[string]string{"weights.json": plainText}).with()
	gitRun(t, w.clone, "config", "user.name", "Ben Ode")
	gitRun(t, w.clone, "config", "user.email", "ben@example.com")
	for i, tt := range []struct{ name, email, want string }{
		{"", "", "Ben Ode <ben@example.com>"},
		{"Release Bot", "bot@example.com", "Release Bot <bot@example.com>"},
	} {
		g := w.target(func(c *config.GitTarget, _ *Options) { c.AuthorName, c.AuthorEmail = tt.name, tt.email })
		if err := g.Write(t.Context(), gitRead(t, g), changeTo(int64(5+i))); err != nil {
			t.Fatal(err)
		}
		if got := gitRun(t, w.bare, "log", "-1", "--format=%an <%ae>"); got != tt.want {
			t.Errorf("by %s, want %s", got, tt.want)
		}
	}
}

func TestGitSignsWithAnSSHKey(t *testing.T) {
	t.Parallel()
	keygen := servertest.Program(t, "ssh-keygen", "openssh-client")
	w := newGitWorld(t, map[string]string{"weights.json": plainText}).with()
	dir := t.TempDir()
	key, allowed := filepath.Join(dir, "key"), filepath.Join(dir, "allowed")
	if out, err := exec.Command(keygen, "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(allowed, append([]byte("ann@example.com "), public...), 0o600); err != nil {
		t.Fatal(err)
	}
	gitRun(t, w.clone, "config", "gpg.format", "ssh")
	gitRun(t, w.clone, "config", "user.signingkey", key)
	verify := func() (string, error) {
		cmd := exec.Command("git", "-c", "gpg.ssh.allowedSignersFile="+allowed, "verify-commit", "main")
		cmd.Dir = w.bare
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for i, sign := range []func(c *config.GitTarget, _ *Options){
		func(c *config.GitTarget, _ *Options) { c.Sign = true },
		func(*config.GitTarget, *Options) { gitRun(t, w.clone, "config", "commit.gpgsign", "true") },
	} {
		g := w.target(sign)
		if err := g.Write(t.Context(), gitRead(t, g), changeTo(int64(5+i))); err != nil {
			t.Fatal(err)
		}
		if out, err := verify(); err != nil || !strings.Contains(out, `Good "git" signature for ann@example.com`) {
			t.Errorf("%v: %s", err, out)
		}
	}
	gitRun(t, w.clone, "config", "user.signingkey", filepath.Join(dir, "none"))
	g := w.target(nil)
	before := w.commits()
	err = g.Write(t.Context(), gitRead(t, g), changeTo(9))
	refused, ok := errors.AsType[*RefusedError](err)
	if !ok || !strings.Contains(refused.Hint, "user.signingkey") || w.commits() != before {
		t.Errorf("without the key: %v", err)
	}
}

// gitTraces is what a clone's user would see changed.
func gitTraces(t *testing.T, clone string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(gitRun(t, clone, "for-each-ref", "refs/heads", "refs/remotes", "refs/tags", "refs/stash"))
	b.WriteString(gitRun(t, clone, "config", "--local", "--list"))
	for _, f := range []string{"HEAD", "index", "FETCH_HEAD", "shallow", "packed-refs"} {
		path := filepath.Join(clone, gitRun(t, clone, "rev-parse", "--git-path", f))
		text, err := os.ReadFile(path)
		fmt.Fprintf(&b, "\n%s %x %v", f, text, errors.Is(err, os.ErrNotExist))
	}
	return b.String()
}

func TestGitLeavesADirtyCheckoutAsItWas(t *testing.T) {
	t.Parallel()
	w := newGitWorld(t, map[string]string{"weights.json": plainText, "code.go": "package x\n"}).with()
	write := func(path, text string) {
		if err := os.WriteFile(filepath.Join(w.clone, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("weights.json", "{}") // changed, not staged
	write("code.go", "package y\n")
	gitRun(t, w.clone, "add", "code.go")
	write("new.txt", "not tracked")
	w.rival("Ann Lee", "goes on", map[string]string{"code.go": "package z\n"})
	status, traces := gitRun(t, w.clone, "status", "--porcelain=v2", "--branch"), gitTraces(t, w.clone)

	g := w.target(nil)
	if err := g.Write(t.Context(), gitRead(t, g), changeTo(5)); err != nil {
		t.Fatal(err)
	}
	if is := gitRead(t, g); is.Weight != share(5) {
		t.Errorf("read back %s", is.Weight)
	}
	if got := gitTraces(t, w.clone); got != traces {
		t.Errorf("the clone has changed:\n%s", splice.Diff("clone", []byte(traces), []byte(got)))
	}
	if got := gitRun(t, w.clone, "status", "--porcelain=v2", "--branch"); got != status {
		t.Errorf("status was\n%s\nis\n%s", status, got)
	}
	if got := w.file("main", "code.go"); got != "package z\n" {
		t.Errorf("the rival's file is %q", got)
	}
}

func TestGitWorksInClonesOfAllKinds(t *testing.T) {
	for _, tt := range []struct {
		name  string
		clone []string
		after func(t *testing.T, w *gitWorld)
		env   map[string]string
	}{
		{name: "bare", clone: []string{"--bare"}},
		{name: "mirror", clone: []string{"--mirror"}},
		{name: "shallow", clone: []string{"--depth=1"}},
		{name: "without blobs", clone: []string{"--filter=blob:none", "--no-checkout"}},
		{name: "detached in GitHub Actions", env: map[string]string{"GITHUB_REF_NAME": "main", "GITHUB_REF_TYPE": "branch"}, after: detach},
		{name: "detached in a pull request", env: map[string]string{"GITHUB_REF_NAME": "7/merge", "GITHUB_HEAD_REF": "main"}, after: detach},
		{name: "detached in GitLab CI", env: map[string]string{"CI_COMMIT_BRANCH": "main"}, after: detach},
		{name: "inside a hook", env: map[string]string{"GIT_DIR": "/nowhere", "GIT_INDEX_FILE": "/nowhere/index"}},
		{name: "with a pre-push hook that refuses", after: func(t *testing.T, w *gitWorld) {
			hook(t, filepath.Join(w.clone, ".git", "hooks", "pre-push"), "exit 1")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.env == nil {
				t.Parallel()
			}
			w := newGitWorld(t, map[string]string{"weights.json": plainText})
			gitRun(t, w.bare, "config", "uploadpack.allowFilter", "true")
			w.with(tt.clone...)
			w.rival("Ann Lee", "goes on", map[string]string{"other": "x"})
			w.rival("Ann Lee", "and on", map[string]string{"other": "y"})
			if tt.after != nil {
				tt.after(t, w)
			}
			for k, v := range tt.env {
				t.Setenv(k, v)
			}
			g := w.target(nil)
			for k := range tt.env {
				os.Unsetenv(k) // of the test's own git; t.Setenv puts back what was
			}
			for _, to := range []int64{5, 10} {
				if err := g.Write(t.Context(), gitRead(t, g), changeTo(to)); err != nil {
					t.Fatal(err)
				}
			}
			if is := gitRead(t, g); is.Weight != share(10) || w.commits() != "5" || w.file("main", "other") != "y" {
				t.Errorf("%+v, %s commits", is, w.commits())
			}
		})
	}
}

func detach(t *testing.T, w *gitWorld) { gitRun(t, w.clone, "checkout", "--quiet", "--detach") }

func hook(t *testing.T, path, script string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestGitKeepsTheHistoryOfClonesAsDeepAsItWas(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--depth=2"}} {
		w := newGitWorld(t, map[string]string{"weights.json": plainText})
		for i := range 3 {
			w.rival("Ann Lee", "goes on", map[string]string{"other": fmt.Sprint(i)})
		}
		w.with(args...)
		depth := gitRun(t, w.clone, "rev-list", "--count", "HEAD")
		w.rival("Ann Lee", "goes on", map[string]string{"other": "z"})
		g := w.target(nil)
		if err := g.Write(t.Context(), gitRead(t, g), changeTo(5)); err != nil {
			t.Fatal(err)
		}
		if got := gitRun(t, w.clone, "rev-list", "--count", "HEAD"); got != depth {
			t.Errorf("%v: %s commits, before %s", args, got, depth)
		}
	}
}

// isReceive tells a push's second request, isAsk its first.
func isReceive(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/git-receive-pack") }
func isAsk(r *http.Request) bool     { return r.URL.Query().Get("service") == "git-receive-pack" }

func TestGitMakesItsChangeAgainWhenOthersPushFirst(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]func(*http.Request) bool{"before git asks": isAsk, "while git pushes": isReceive} {
		t.Run(name, func(t *testing.T) {
			w := newGitWorld(t, map[string]string{"weights.json": plainText}).with()
			g := w.target(nil)
			was := gitRead(t, g)
			wins := 0
			w.on(func(r *http.Request) {
				if when(r) && wins < 3 {
					wins++
					w.rival("Rival", "mine first", map[string]string{"other": fmt.Sprint(wins), "weights.json": plainText + strings.Repeat("\n", wins)})
				}
			})
			if err := g.Write(t.Context(), was, changeTo(5)); err != nil {
				t.Fatal(err)
			}
			want := strings.Replace(strings.Replace(plainText, "99", "95", 1), "1\n", "5\n", 1) + "\n\n\n"
			if got := w.file("main", "weights.json"); wins != 3 || got != want || w.file("main", "other") != "3" || w.commits() != "5" {
				t.Errorf("after %d wins: %q, %s commits", wins, got, w.commits())
			}
		})
	}
}

func TestGitYieldsWhenOurKeyWasChanged(t *testing.T) {
	t.Parallel()
	w := newGitWorld(t, map[string]string{"weights.json": plainText}).with()
	g := w.target(nil)
	was := gitRead(t, g)
	w.on(func(r *http.Request) {
		if isReceive(r) {
			w.on(nil)
			w.rival("Mallory Oz", "all of it", map[string]string{"weights.json": `{"stable": 70, "canary": 30}`})
		}
	})
	err := g.Write(t.Context(), was, changeTo(5))
	conflict, ok := errors.AsType[*ConflictError](err)
	if !ok || conflict.Held == nil || *conflict.Held != share(30) || !strings.HasPrefix(conflict.By, "Mallory Oz (") || !strings.HasSuffix(conflict.By, ": all of it)") {
		t.Fatalf("%v", err)
	}
	if err := g.Write(t.Context(), was, changeTo(5)); !errors.As(err, &conflict) {
		t.Errorf("again: %v", err)
	}
	c := changeTo(0)
	c.Overwrite = true
	if err := g.Write(t.Context(), was, c); err != nil || gitRead(t, g).Weight != share(0) {
		t.Errorf("a rollback: %v", err)
	}
}

func TestGitGivesUpWhenOthersAlwaysPushFirst(t *testing.T) {
	t.Parallel()
	w := newGitWorld(t, map[string]string{"weights.json": plainText}).with()
	g := w.target(func(c *config.GitTarget, _ *Options) { c.Deadline = 3 * time.Second })
	was := gitRead(t, g)
	n := 0
	w.on(func(r *http.Request) {
		if isAsk(r) {
			n++
			w.rival("Rival", "mine first", map[string]string{"other": fmt.Sprint(n)})
		}
	})
	err := g.Write(t.Context(), was, changeTo(5))
	if _, ok := errors.AsType[*UnreachableError](err); !ok || n < 1 {
		t.Errorf("after %d: %v", n, err)
	}
	noSecret(t, err)
}

func TestGitEightWritersOneWins(t *testing.T) {
	t.Parallel()
	w := newGitWorld(t, map[string]string{"weights.json": plainText}).with()
	was := gitRead(t, w.target(nil))
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		g := w.target(func(c *config.GitTarget, _ *Options) { c.Deadline = time.Minute })
		wg.Go(func() {
			c := changeTo(int64(10 + i))
			c.Key = fmt.Sprint(i)
			errs[i] = g.Write(t.Context(), was, c)
		})
	}
	wg.Wait()
	won, held := 0, gitRead(t, w.target(nil)).Weight
	for i, err := range errs {
		conflict, lost := errors.AsType[*ConflictError](err)
		switch {
		case err == nil && held == share(int64(10+i)):
			won++
		case !lost || !conflict.Held.Same(held):
			t.Errorf("%d: %v", i, err)
		}
	}
	if won != 1 || w.commits() != "2" {
		t.Errorf("%d won, %s commits", won, w.commits())
	}
}

func TestGitWeightAlreadyThereIsNoCommit(t *testing.T) {
	t.Parallel()
	w := newGitWorld(t, map[string]string{"weights.json": `{"stable": 190, "canary": 10}`}).with()
	g := w.target(nil)
	for _, was := range []Reading{gitRead(t, g), {Weight: share(1), Revision: "0"}} {
		if err := g.Write(t.Context(), was, changeTo(5)); err != nil || w.commits() != "1" {
			t.Errorf("%v, %s commits", err, w.commits())
		}
	}
}

func TestGitStateTravelsInTheSameCommit(t *testing.T) {
	t.Parallel()
	w := newGitWorld(t, map[string]string{"weights.json": plainText}).with()
	keep := func(_ *config.GitTarget, o *Options) { o.KeepState = true }
	g := w.target(keep)
	was := gitRead(t, g)
	if was.State != nil || !g.KeepsState() {
		t.Fatalf("%+v", was)
	}
	c := changeTo(5)
	c.State = []byte(`{"step": 2}`)
	if err := g.Write(t.Context(), was, c); err != nil {
		t.Fatal(err)
	}
	second := gitRead(t, g)
	if string(second.State) != `{"step": 2}` || w.commits() != "2" || w.file("main", ".canaryctl/order-service.json") != `{"step": 2}` {
		t.Fatalf("%+v", second)
	}
	if err := g.Write(t.Context(), was, c); err != nil || w.commits() != "2" {
		t.Errorf("again: %v", err)
	}
	c.State = []byte(`{"step": 2, "rewritten": true}`)
	if err := g.Write(t.Context(), was, c); err != nil || w.commits() != "2" {
		t.Errorf("again, by its key: %v", err)
	}
	c.Key, c.State = "r/1/2/hold", []byte(`{"step": 2, "seen": 9}`)
	if err := g.Write(t.Context(), second, c); err != nil || w.commits() != "3" {
		t.Fatalf("the state alone: %v", err)
	}
	if got := gitRun(t, w.bare, "log", "-1", "--format=%s"); got != "order-service: canary stays at 5 % (step 2 of release abc123)" {
		t.Errorf("subject %q", got)
	}
	c.Key, c.State = "another machine", []byte(`{"step": 1}`)
	if _, ok := errors.AsType[*ConflictError](g.Write(t.Context(), second, c)); !ok {
		t.Error("a state that was written since was overwritten")
	}
	other := w.target(keep) // another machine goes on from it
	if is := gitRead(t, other); string(is.State) != `{"step": 2, "seen": 9}` || is.Weight != share(5) {
		t.Errorf("%+v", is)
	}
	if is := gitRead(t, w.target(nil)); is.State != nil {
		t.Errorf("a target that keeps none reads %q", is.State)
	}
}

func TestGitPushWhoseAnswerIsLostCanBeReadBack(t *testing.T) {
	t.Parallel()
	w := newGitWorld(t, map[string]string{"weights.json": plainText}).with()
	g := w.target(nil)
	was := gitRead(t, g)
	w.serving(func(h http.Handler, rw http.ResponseWriter, r *http.Request) {
		if !isReceive(r) {
			h.ServeHTTP(rw, r)
			return
		}
		h.ServeHTTP(discard{http.Header{}}, r)
		if c, _, err := rw.(http.Hijacker).Hijack(); err == nil {
			c.Close() // the answer is lost
		}
	})
	err := g.Write(t.Context(), was, changeTo(5))
	if _, ok := errors.AsType[*UnreachableError](err); !ok {
		t.Fatalf("%v", err)
	}
	noSecret(t, err)
	w.serving(nil)
	if is := gitRead(t, g); is.Weight != share(5) {
		t.Errorf("read back %s", is.Weight)
	}
	if err := g.Write(t.Context(), was, changeTo(5)); err != nil || w.commits() != "2" {
		t.Errorf("again: %v, %s commits", err, w.commits())
	}
}

type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

func TestGitProtectedBranchIsRefusedAndABranchOfItsOwnIsNot(t *testing.T) {
	t.Parallel()
	w := newGitWorld(t, map[string]string{"weights.json": plainText}).with()
	hook(t, filepath.Join(w.bare, "hooks", "update"), `
if [ "$1" = refs/heads/main ]; then echo "GH006: Protected branch update failed for $1." >&2; exit 1; fi`)
	g := w.target(nil)
	err := g.Write(t.Context(), gitRead(t, g), changeTo(5))
	refused, ok := errors.AsType[*RefusedError](err)
	if !ok || !strings.Contains(refused.Hint, "mode: branch") || !strings.Contains(err.Error(), "GH006: Protected branch update failed") {
		t.Fatalf("%v", err)
	}

	out := filepath.Join(t.TempDir(), "opened")
	g = w.target(func(c *config.GitTarget, _ *Options) {
		c.Mode = "branch"
		c.OpenCommand = []string{"sh", "-c", `echo "$CANARYCTL_BASE $CANARYCTL_BRANCH $CANARYCTL_WEIGHT: $CANARYCTL_TITLE" >> ` + out}
	})
	was := gitRead(t, g)
	for range 2 { // again changes nothing
		if err := g.Write(t.Context(), was, changeTo(5)); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := os.ReadFile(out)
	if want := "main canaryctl/order-service 5 %: order-service: canary at 5 % (step 2 of release abc123)\n"; err != nil || string(opened) != want {
		t.Errorf("opened %q, %v", opened, err)
	}
	if is := gitRead(t, g); is.Weight != share(1) {
		t.Errorf("before the merge it reads %s", is.Weight)
	}
	// A rollback replaces what is proposed.
	back := changeTo(0)
	back.Key, back.Overwrite = "r/1/0/roll_back", true
	if err := g.Write(t.Context(), was, back); err != nil {
		t.Fatal(err)
	}
	if got := w.file("canaryctl/order-service", "weights.json"); !strings.Contains(got, `"canary": 0`) {
		t.Errorf("proposed: %s", got)
	}
	if got := gitRun(t, w.bare, "rev-list", "--count", "main..canaryctl/order-service"); got != "1" {
		t.Errorf("%s commits are proposed", got)
	}
	gitRun(t, w.bare, "update-ref", "refs/heads/main", "canaryctl/order-service") // the merge
	if is := gitRead(t, g); is.Weight != share(0) {
		t.Errorf("after the merge it reads %s", is.Weight)
	}
	w.rivalOn("canaryctl/order-service", "Ann Lee", "mine", map[string]string{"x": "y"})
	err = g.Write(t.Context(), gitRead(t, g), changeTo(5))
	if _, ok := errors.AsType[*RefusedError](err); !ok || !strings.Contains(err.Error(), "commits of somebody else") {
		t.Errorf("over a person's commit: %v", err)
	}
}

func TestGitOpenCommandThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newGitWorld(t, map[string]string{"weights.json": plainText}).with()
	marker := filepath.Join(t.TempDir(), "marker")
	g := w.target(func(c *config.GitTarget, _ *Options) {
		c.Mode = "branch"
		c.OpenCommand = []string{"sh", "-c", "test -e " + marker + " || { echo no forge at " + w.url + " >&2; exit 3; }"}
	})
	was := gitRead(t, g)
	err := g.Write(t.Context(), was, changeTo(5))
	if _, ok := errors.AsType[*UnreachableError](err); !ok || !strings.Contains(err.Error(), "exit status 3: no forge") {
		t.Fatalf("%v", err)
	}
	noSecret(t, err)
	if err := os.WriteFile(marker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := g.Write(t.Context(), was, changeTo(5)); err != nil {
		t.Fatal(err)
	}
	g = w.target(func(c *config.GitTarget, _ *Options) { c.Mode, c.OpenCommand = "branch", []string{"no-such-forge"} })
	if _, ok := errors.AsType[*RefusedError](g.Write(t.Context(), was, changeTo(7))); !ok {
		t.Error("a program that is not there")
	}
}

func TestGitSeveralFilesInOneCommit(t *testing.T) {
	t.Parallel()
	w := newGitWorld(t, map[string]string{"route.yaml": gitRoutes + "---\n" + gitVirtualService, "values.yaml": "canary: {weight: 0.01}\n"}).with()
	g := w.target(func(c *config.GitTarget, _ *Options) {
		c.Files = []config.GitFile{
			{Path: "route.yaml", Document: "kind=HTTPRoute", Unit: config.Unit{Whole: 100}, Canary: "spec.rules[0].backendRefs[name=canary].weight", Stable: "spec.rules[0].backendRefs[name=stable].weight"},
			{Path: "route.yaml", Document: "kind=VirtualService", Unit: config.Unit{Whole: 100}, Canary: "spec.http[0].route[destination.subset=canary].weight", Stable: "spec.http[0].route[destination.subset=stable].weight"},
			{Path: "values.yaml", Unit: config.Unit{Whole: 1, Places: 6}, Canary: "canary.weight", Stable: "-"},
		}
	})
	if err := g.Write(t.Context(), gitRead(t, g), changeTo(5)); err != nil {
		t.Fatal(err)
	}
	route := w.file("main", "route.yaml")
	if strings.Count(route, "weight: 95") != 2 || strings.Count(route, "weight: 5") != 2 || w.file("main", "values.yaml") != "canary: {weight: 0.05}\n" || w.commits() != "2" {
		t.Errorf("%s commits\n%s", w.commits(), route)
	}
	fine, ok := errors.AsType[*FineError](g.Check(changeToSlots(1, 1000)))
	if !ok || fine.Target != g.String() || fine.Finest != share(1) {
		t.Errorf("0.1 %%: %v", fine)
	}
	was := gitRead(t, g)
	w.rival("Ann Lee", "half of it", map[string]string{"values.yaml": "canary: {weight: 0.3}\n"})
	_, err := g.Read(t.Context())
	if _, ok := errors.AsType[*ShapeError](err); !ok || !strings.Contains(err.Error(), "route.yaml has 5 % and values.yaml has 30 %") {
		t.Errorf("files that disagree: %v", err)
	}
	if _, ok := errors.AsType[*RefusedError](g.Write(t.Context(), was, changeTo(10))); !ok {
		t.Error("files that disagree were written")
	}
	back := changeTo(0)
	back.Overwrite = true
	if err := g.Write(t.Context(), Reading{}, back); err != nil || gitRead(t, g).Weight != share(0) {
		t.Errorf("a rollback sets both: %v", err)
	}
}

func TestGitSaysWhatIsWrongWithTheRemote(t *testing.T) {
	t.Parallel()
	w := newGitWorld(t, map[string]string{"weights.json": plainText, "link": "-> weights.json", "dir/f": "x", "lfs": "version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "broken": "{"}).with()
	for path, says := range map[string]string{
		"nothing": "there is no file nothing on main at ", "link": "is a symbolic link", "dir": "is a directory",
		"lfs": "is kept in Git LFS", "broken": "not one YAML or JSON document", "dir/f": "not found",
	} {
		g := w.target(func(c *config.GitTarget, _ *Options) {
			c.Files = []config.GitFile{{Path: path, Canary: "canary", Stable: "stable", Unit: percentUnit}}
		})
		_, err := g.Read(t.Context())
		shape, ok := errors.AsType[*ShapeError](err)
		if !ok || shape.Hint == "" || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
		if _, ok := errors.AsType[*RefusedError](g.Write(t.Context(), Reading{}, changeTo(5))); !ok {
			t.Errorf("%s can be written", path)
		}
	}
	g := w.target(func(c *config.GitTarget, _ *Options) { c.Branch = "release" })
	if _, err := g.Read(t.Context()); !strings.Contains(fmt.Sprint(err), "origin has no branch release") {
		t.Errorf("no such branch: %v", err)
	}

	gitRun(t, w.clone, "remote", "set-url", "origin", strings.Replace(w.url, gitPassword, "wrong", 1))
	err := w.target(nil).Write(t.Context(), Reading{}, changeTo(5))
	if refused, ok := errors.AsType[*RefusedError](err); !ok || !strings.Contains(refused.Hint, "token") || strings.Contains(err.Error(), "wrong@") {
		t.Errorf("wrong password: %v", err)
	}
	gitRun(t, w.clone, "remote", "set-url", "origin", strings.Replace(w.url, "llm.git", "none.git", 1))
	_, err = w.target(nil).Read(t.Context())
	if _, ok := errors.AsType[*RefusedError](err); !ok {
		t.Errorf("no such repository: %v", err)
	}
	noSecret(t, err)
	gitRun(t, w.clone, "remote", "set-url", "origin", w.url)
	w.serving(func(_ http.Handler, rw http.ResponseWriter, _ *http.Request) {
		http.Error(rw, "", http.StatusBadGateway)
	})
	_, err = w.target(nil).Read(t.Context())
	if _, ok := errors.AsType[*UnreachableError](err); !ok {
		t.Errorf("502: %v", err)
	}
	noSecret(t, err)
	release := make(chan struct{})
	w.serving(func(http.Handler, http.ResponseWriter, *http.Request) { <-release })
	g = w.target(func(c *config.GitTarget, _ *Options) { c.Deadline = 300 * time.Millisecond })
	_, err = g.Read(t.Context())
	if _, ok := errors.AsType[*UnreachableError](err); !ok || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a server that hangs: %v", err)
	}
	close(release)
	w.srv.Close()
	_, err = w.target(nil).Read(t.Context())
	if _, ok := errors.AsType[*UnreachableError](err); !ok {
		t.Errorf("no server: %v", err)
	}
	noSecret(t, err)
}

func TestGitOfAnEmptyRepository(t *testing.T) {
	t.Parallel()
	w := newGitWorld(t, nil).with()
	g := w.target(nil)
	_, err := g.Read(t.Context())
	if shape, ok := errors.AsType[*ShapeError](err); !ok || !strings.Contains(err.Error(), "origin has no branch main") || !strings.Contains(shape.Hint, "first commit") {
		t.Errorf("%v", err)
	}
}

func TestNewGitSaysWhatIsWrongWithTheConfiguration(t *testing.T) {
	w := newGitWorld(t, map[string]string{"weights.json": plainText}).with()
	detached := filepath.Join(t.TempDir(), "detached")
	gitRun(t, ".", "clone", "--quiet", w.bare, detached)
	gitRun(t, detached, "checkout", "--quiet", "--detach")
	files := func(path, document, canary string) []config.GitFile {
		return []config.GitFile{{Path: path, Document: document, Canary: canary, Stable: "-"}}
	}
	for _, tt := range []struct {
		name string
		cfg  config.GitTarget
		says string
	}{
		{"no files", config.GitTarget{Files: []config.GitFile{}}, "target.git.files: missing"},
		{"no path", config.GitTarget{Files: files("", "", "")}, "target.git.files[0].path: missing"},
		{"above the root", config.GitTarget{Files: files("a/../../b", "", "")}, "leads out of the repository"},
		{"absolute", config.GitTarget{Files: files("/etc/passwd", "", "")}, "leads out of the repository"},
		{"in .git", config.GitTarget{Files: files("x/.GIT/config", "", "")}, "leads out of the repository"},
		{"the state above the root", config.GitTarget{StatePath: "../x"}, "target.git.state_path"},
		{"document", config.GitTarget{Files: files("a", "kind", "")}, "target.git.files[0].document: kind: not a selector"},
		{"selector", config.GitTarget{Files: files("a", "", "a[")}, "target.git.files[0].canary: a[: not a selector"},
		{"no directory", config.GitTarget{Repo: "none"}, "none is not a directory"},
		{"no clone", config.GitTarget{Repo: t.TempDir()}, "is not a clone"},
		{"no remote", config.GitTarget{Remote: "upstream"}, `has no remote "upstream"`},
		{"option for a remote", config.GitTarget{Remote: "--upload-pack=/x"}, "is no remote"},
		{"no branch", config.GitTarget{Repo: detached}, "target.git.branch: missing: no branch is checked out"},
		{"bad branch", config.GitTarget{Branch: "a..b"}, `"a..b" is no name of a branch`},
		{"option for a branch", config.GitTarget{Branch: "-d"}, `"-d" is no name of a branch`},
		{"mode", config.GitTarget{Mode: "pull"}, `"pull" is neither push nor branch`},
		{"work branch is the branch", config.GitTarget{Mode: "branch", WorkBranch: "main"}, "target.git.work_branch: main is the branch that is read"},
		{"bad work branch", config.GitTarget{Mode: "branch", WorkBranch: "a b"}, "target.git.work_branch"},
	} {
		if tt.cfg.Files == nil {
			tt.cfg.Files = plainFile
		}
		if tt.cfg.Repo == "" {
			tt.cfg.Repo = w.clone
		}
		_, err := newGit(&tt.cfg, Options{Service: "s", Ring: 100, KeepState: true})
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v; want %q", tt.name, err, tt.says)
		}
	}
	t.Run("owned by another", func(t *testing.T) {
		t.Setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
		_, err := newGit(&config.GitTarget{Repo: w.clone, Files: plainFile}, Options{})
		if err == nil || !strings.Contains(err.Error(), "git config --global --add safe.directory "+w.clone) {
			t.Errorf("%v", err)
		}
	})
	t.Run("no git", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		if _, err := newGit(&config.GitTarget{Repo: w.clone, Files: plainFile}, Options{}); err == nil || !strings.Contains(err.Error(), "install git") {
			t.Errorf("%v", err)
		}
	})
}

func TestGitStopsWhenItIsCancelled(t *testing.T) {
	t.Parallel()
	w := newGitWorld(t, map[string]string{"weights.json": plainText}).with()
	g := w.target(nil)
	was := gitRead(t, g)
	ctx, cancel := context.WithCancel(t.Context())
	w.on(func(r *http.Request) {
		if isReceive(r) {
			cancel()
		}
	})
	err := g.Write(ctx, was, changeTo(5))
	if lost, ok := errors.AsType[*UnreachableError](err); !ok || !errors.Is(lost, context.Canceled) {
		t.Errorf("%v", err)
	}
	locks, err := filepath.Glob(filepath.Join(w.clone, ".git", "*.lock"))
	if err != nil || len(locks) > 0 {
		t.Errorf("left behind: %v, %v", locks, err)
	}
	if bytes.Contains([]byte(gitRun(t, w.clone, "status", "--porcelain")), []byte("M")) {
		t.Error("the checkout has changed")
	}
}
