package servertest

import (
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Git serves a new, empty repository by git's own HTTP backend, to those who
// know the password. It returns the repository's URL, with user and password
// in it, and its folder. Its branch is main.
func Git(t testing.TB, user, password string) (url, dir string) {
	t.Helper()
	git, root := Program(t, "git", "git"), t.TempDir()
	run := func(args ...string) string {
		out, err := exec.Command(git, args...).Output()
		if err != nil {
			t.Fatalf("git %s: %v", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(out))
	}
	dir = filepath.Join(root, "llm.git")
	run("init", "--quiet", "--bare", "--initial-branch=main", dir)
	run("-C", dir, "config", "http.receivepack", "true")
	backend := &cgi.Handler{
		Path:   filepath.Join(run("--exec-path"), "git-http-backend"),
		Env:    []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=" + user},
		Stderr: io.Discard, // it says there what clients ask for that is not there
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, word, _ := r.BasicAuth(); name != user || word != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.Replace(server.URL, "http://", "http://"+user+":"+password+"@", 1) + "/llm.git", dir
}
