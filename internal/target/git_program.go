package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/pattern"
	"github.com/canaryctl/canaryctl/internal/program"
)

// gitGrace is how long git may take to remove its locks when its time is over.
const gitGrace = 3 * time.Second

// gitProgram runs the git program in one clone.
type gitProgram struct {
	path string
	dir  string
	env  []string
}

// gitOfCaller are the variables by which a hook tells git where it is: a
// program that runs in one must not take them for its own.
var gitOfCaller = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
	"GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_QUARANTINE_PATH",
	"GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS", "LC_ALL", "LANGUAGE",
	"GIT_TRACE", "GIT_TRACE_CURL", "GIT_CURL_VERBOSE", // what they print has credentials in it
}

func newGitProgram(dir string) (gitProgram, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return gitProgram{}, errors.New("target.git: the git program is not in PATH: install git 2.30 or newer")
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return gitProgram{}, fmt.Errorf("target.git.repo: %s is not a directory: clone the repository there", dir)
	}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(gitOfCaller, name)
	})
	// English is what answers are told apart by; nobody is there to be asked.
	env = append(env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GCM_INTERACTIVE=never", "GIT_LITERAL_PATHSPECS=1", "GIT_OPTIONAL_LOCKS=0")
	return gitProgram{path: git, dir: dir, env: env}, nil
}

// gitError is how a run of git failed.
type gitError struct {
	verb   string
	answer string // standard output
	said   string // standard error, without hints
	err    error
}

// Error implements error. Credentials in URLs are left out.
func (e *gitError) Error() string {
	said := lastLines([]byte(withoutCredentials(e.said)))
	if said == "" {
		said = ": " + e.err.Error()
	}
	return "git " + e.verb + said
}

// Unwrap returns how the program ended.
func (e *gitError) Unwrap() error { return e.err }

var credentials = pattern.New(`(?i)([a-z][a-z0-9+.-]*://)[^/@\s'"]+@`)

func withoutCredentials(text string) string { return credentials.ReplaceAllString(text, "$1") }

// run runs git and returns its output.
func (p gitProgram) run(ctx context.Context, stdin []byte, args ...string) (string, error) {
	return p.runWith(ctx, nil, stdin, args...)
}

// runWith is run with more environment variables.
func (p gitProgram) runWith(ctx context.Context, env []string, stdin []byte, args ...string) (string, error) {
	// The user's clone is not packed, watched or split by the way.
	all := append([]string{"-C", p.dir, "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.fsmonitor=false", "-c", "core.splitIndex=false"}, args...)
	cmd := exec.CommandContext(ctx, p.path, all...)
	cmd.Env = append(slices.Clone(p.env), env...)
	cmd.Stdin = bytes.NewReader(stdin)
	out, said := &gitOutput{limit: maxDocument}, &gitOutput{limit: maxOutput}
	cmd.Stdout, cmd.Stderr = out, said
	program.OwnGroup(cmd)
	// git removes its lock files when it is asked to end, not when it is killed.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = gitGrace
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case err == nil && out.over:
		err = fmt.Errorf("more than %d MiB", maxDocument>>20)
	}
	if err != nil {
		return "", &gitError{verb: gitVerb(args), answer: out.String(), said: withoutHints(said.String()), err: err}
	}
	return out.String(), nil
}

// gitVerb returns the command behind its settings, which -c gives.
func gitVerb(args []string) string {
	for len(args) > 2 && args[0] == "-c" {
		args = args[2:]
	}
	return args[0]
}

// withoutHints drops git's advice to people at a prompt.
func withoutHints(said string) string {
	lines := strings.Split(said, "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "hint:") })
	return strings.Join(lines, "\n")
}

// hinted adds what to do about the failures of a clone itself.
func (p gitProgram) hinted(err error) error {
	dir, absErr := filepath.Abs(p.dir)
	if absErr != nil {
		dir = p.dir
	}
	switch text := err.Error(); {
	case strings.Contains(text, "dubious ownership"), strings.Contains(text, "unsafe repository"):
		return fmt.Errorf("%w: git does not trust %s, which another user owns: git config --global --add safe.directory %s", err, dir, dir)
	case strings.Contains(text, "not a git repository"):
		return fmt.Errorf("%w: %s is not a clone: clone the repository there, or name the clone in target.git.repo", err, dir)
	}
	return err
}

// gitOutput keeps an output up to a limit.
type gitOutput struct {
	bytes.Buffer
	limit int
	over  bool
}

// Write implements [io.Writer].
func (o *gitOutput) Write(p []byte) (int, error) {
	if room := o.limit - o.Len(); len(p) > room {
		o.over = true
		o.Buffer.Write(p[:room])
		return len(p), nil
	}
	return o.Buffer.Write(p)
}
