package target

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/servertest"
)

const gitPassword = "s3cr3t-token"

// gitWorld is a bare repository behind git's own HTTP server, with a password,
// and a clone of it.
type gitWorld struct {
	t     *testing.T
	bare  string
	clone string
	url   string // with the password
	srv   *httptest.Server

	mu     sync.Mutex
	before func(r *http.Request)                                        // called before a request is served
	serve  func(h http.Handler, w http.ResponseWriter, r *http.Request) // instead of h
}

// gitEnvironment keeps the configuration of whoever runs the tests out of them.
var gitEnvironment = sync.OnceFunc(func() {
	nowhere := filepath.Join(os.TempDir(), "canaryctl-no-such-home")
	for k, v := range map[string]string{
		"HOME": nowhere, "XDG_CONFIG_HOME": nowhere, "GIT_CONFIG_GLOBAL": filepath.Join(nowhere, ".gitconfig"),
		"GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", "EMAIL": "",
	} {
		os.Setenv(k, v) // fails for bad names only
	}
	for _, k := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"} {
		os.Unsetenv(k)
	}
})

// newGitWorld makes a repository with files, by path; a path that ends with
// "*" is executable, a text that begins with "-> " is a symbolic link.
func newGitWorld(t *testing.T, files map[string]string) *gitWorld {
	t.Helper()
	git := servertest.Program(t, "git", "git")
	gitEnvironment()
	root := t.TempDir()
	w := &gitWorld{t: t, bare: filepath.Join(root, "llm.git"), clone: filepath.Join(t.TempDir(), "clone")}
	gitRun(t, root, "init", "--quiet", "--bare", "--initial-branch=main", w.bare)
	gitRun(t, w.bare, "config", "http.receivepack", "true")
	if files != nil {
		w.rival("Ann Lee", "first", files)
	}
	execPath, err := exec.Command(git, "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(execPath)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=ci"},
		// It says on standard error what a client asked for that is not there.
		Stderr: io.Discard,
	}
	w.srv = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != gitPassword {
			rw.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(rw, "who are you?", http.StatusUnauthorized)
			return
		}
		w.mu.Lock()
		before, serve := w.before, w.serve
		w.mu.Unlock()
		if before != nil {
			before(r)
		}
		if serve != nil {
			serve(backend, rw, r)
			return
		}
		backend.ServeHTTP(rw, r)
	}))
	t.Cleanup(w.srv.Close)
	w.url = strings.Replace(w.srv.URL, "http://", "http://ci:"+gitPassword+"@", 1) + "/llm.git"
	return w
}

// with clones the repository.
func (w *gitWorld) with(args ...string) *gitWorld {
	w.t.Helper()
	gitRun(w.t, ".", append(append([]string{"clone", "--quiet"}, args...), w.url, w.clone)...)
	return w
}

func (w *gitWorld) on(before func(r *http.Request)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = before
}

func (w *gitWorld) serving(serve func(h http.Handler, rw http.ResponseWriter, r *http.Request)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serve = serve
}

// gitRun runs git and returns what it printed.
func gitRun(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// rival commits files to main of the bare repository, past the server.
func (w *gitWorld) rival(author, subject string, files map[string]string) {
	w.t.Helper()
	w.rivalOn("main", author, subject, files)
}

func (w *gitWorld) rivalOn(branch, author, subject string, files map[string]string) {
	w.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "commit refs/heads/%s\ncommitter %s <rival@example.com> %d +0000\ndata %d\n%s\n", branch, author, time.Now().Unix(), len(subject), subject)
	show := exec.Command("git", "rev-parse", "--verify", "--quiet", "refs/heads/"+branch)
	show.Dir = w.bare
	if parent, err := show.Output(); err == nil {
		fmt.Fprintf(&b, "from %s\n", strings.TrimSpace(string(parent)))
	}
	for path, text := range files {
		mode := "100644"
		if p, ok := strings.CutSuffix(path, "*"); ok {
			path, mode = p, "100755"
		}
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			text, mode = target, "120000"
		}
		fmt.Fprintf(&b, "M %s inline \"%s\"\ndata %d\n%s\n", mode, path, len(text), text)
	}
	cmd := exec.Command("git", "fast-import", "--quiet", "--force")
	cmd.Dir, cmd.Stdin = w.bare, strings.NewReader(b.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Errorf("%v: %s", err, out)
	}
}

// file returns a file at the head of a branch of the bare repository.
func (w *gitWorld) file(branch, path string) string {
	w.t.Helper()
	cmd := exec.Command("git", "cat-file", "blob", branch+":"+path)
	cmd.Dir = w.bare
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("%s: %v", path, err)
	}
	return string(out)
}

// commits returns how many commits main has.
func (w *gitWorld) commits() string { return gitRun(w.t, w.bare, "rev-list", "--count", "main") }

var plainFile = []config.GitFile{{Path: "weights.json", Canary: "canary", Stable: "stable", Unit: percentUnit}}

var percentUnit = config.Unit{Whole: 100, Places: 2}

const plainText = "{\n  \"stable\": 99,\n  \"canary\": 1\n}\n"

// target returns the target of the clone.
func (w *gitWorld) target(change func(*config.GitTarget, *Options)) Target {
	w.t.Helper()
	cfg := &config.GitTarget{Repo: w.clone, Files: plainFile}
	o := Options{Service: "order-service", Ring: 100, Getenv: os.Getenv}
	if change != nil {
		change(cfg, &o)
	}
	g, err := newGit(cfg, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return g
}

func share(percent int64) release.Weight { return release.Weight{Slots: percent, Ring: 100} }

func changeTo(percent int64) Change {
	return Change{
		To: share(percent), Key: "r/1/2/advance", Service: "order-service", Release: "abc123", Attempt: 1, Step: 2,
		Move: "advance", Reason: "All gates of step 1 passed.", Evidence: "sha256:77aa",
	}
}

func gitRead(t *testing.T, g Target) Reading {
	t.Helper()
	r, err := g.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// noSecret fails when a text holds the password.
func noSecret(t *testing.T, err error) {
	t.Helper()
	if err != nil && strings.Contains(err.Error(), gitPassword) {
		t.Errorf("the error shows the password: %v", err)
	}
}
