package target

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Pauses between the tries of one write: the first and the longest.
const (
	gitFirstPause   = 100 * time.Millisecond
	gitLongestPause = time.Second
)

// gitMoved says that another push came first: the change is made again on what
// the branch holds now.
type gitMoved struct{ err error }

// Error implements error.
func (e *gitMoved) Error() string { return e.err.Error() }

// Unwrap returns what git said.
func (e *gitMoved) Unwrap() error { return e.err }

// gitVerdict is what a server's answer means.
type gitVerdict int

const (
	gitUnknown   gitVerdict = iota
	gitCameFirst            // another push did: fetch, and make the change again
	gitClash                // the branch's name cannot be
	gitProtected            // this branch takes no pushes from this account
	gitDenied               // this account may not write, or is not known
	gitGone                 // there is no such repository
	gitFailing              // the network or the server, now
)

// gitPhrases tell servers' answers apart, in lower case; the first that is met
// decides. docs/reference/target-git.md says which server says what.
var gitPhrases = []struct {
	phrase  string
	verdict gitVerdict
}{
	{"exists; cannot create", gitClash},
	{"fetch first", gitCameFirst},
	{"non-fast-forward", gitCameFirst},
	{"non-fast forward", gitCameFirst},
	{"stale info", gitCameFirst},
	{"remote ref updated since checkout", gitCameFirst},
	{"incorrect old value provided", gitCameFirst},
	{"cannot lock ref", gitCameFirst},
	{"failed to update ref", gitCameFirst},
	{"failed to lock", gitCameFirst},
	{"lock_failure", gitCameFirst},
	{"lock failure", gitCameFirst},
	{"reference already exists", gitCameFirst},
	{"already been updated by another client", gitCameFirst},

	{"gh006", gitProtected},
	{"gh013", gitProtected},
	{"protected branch", gitProtected},
	{"repository rule violations", gitProtected},
	{"tf402455", gitProtected},
	{"only be modified through pull requests", gitProtected},
	{"permission denied to update branch", gitProtected},
	{"prohibited by gerrit", gitProtected},
	{"hook declined", gitProtected}, // pre-receive, update and protected branch hooks
	{"currently checked out", gitProtected},

	{"permission denied", gitDenied},
	{"permission to", gitDenied},
	{"returned error: 401", gitDenied},
	{"returned error: 403", gitDenied},
	{"authentication failed", gitDenied},
	{"access denied", gitDenied},
	{"could not read username", gitDenied},
	{"could not read password", gitDenied},
	{"terminal prompts disabled", gitDenied},
	{"invalid username or password", gitDenied},
	{"invalid credentials", gitDenied},
	{"host key verification failed", gitDenied},
	{"marked as read only", gitDenied},
	{"read-only", gitDenied},
	{"not allowed to push", gitDenied},
	{"not authorized", gitDenied},
	{"unauthorized", gitDenied},
	{"write access to repository not granted", gitDenied},
	{"tf401027", gitDenied},

	{"could not resolve host", gitFailing},
	{"repository not found", gitGone},
	{"project you were looking for could not be found", gitGone},
	{"does not appear to be a git repository", gitGone},
	{"returned error: 404", gitGone},
	{"couldn't find remote ref", gitGone},
	{"not found", gitGone},

	{"connection refused", gitFailing},
	{"connection reset", gitFailing},
	{"timed out", gitFailing},
	{"remote end hung up", gitFailing},
	{"rpc failed", gitFailing},
	{"returned error: 429", gitFailing},
	{"returned error: 5", gitFailing},
	{"internal server error", gitFailing},
	{"service unavailable", gitFailing},
	{"failed to report status", gitFailing},
	{"internal api unreachable", gitFailing},
	{"unpacker error", gitFailing},
	{"failed to connect", gitFailing},
	{"couldn't connect", gitFailing},
}

// gitVerdictOf reads a server's answer.
func gitVerdictOf(text string) gitVerdict {
	text = strings.ToLower(text)
	for _, p := range gitPhrases {
		if strings.Contains(text, p.phrase) {
			return p.verdict
		}
	}
	return gitUnknown
}

// lease is the commit that a branch of canaryctl's own is expected to have;
// "" where it is expected not to be there.
type lease struct{ commit string }

// push sends a commit to a branch. Only with a lease, which is for branches
// of canaryctl's own, may it replace what is there. A [*gitMoved] says that
// another push came first.
func (g *git) push(ctx context.Context, commit, branch string, l *lease) error {
	// Hooks and submodules belong to the files that are checked out, and these
	// are not pushed.
	args := []string{"push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no"}
	ref := "refs/heads/" + branch
	if l != nil {
		args = append(args, "--force-with-lease="+ref+":"+l.commit)
	}
	where, err := g.pushURL(ctx)
	if err != nil {
		return g.local(err)
	}
	_, err = g.program.run(ctx, nil, append(args, "--", where, commit+":"+ref)...)
	if err == nil {
		return nil
	}
	ge, ok := errors.AsType[*gitError](err)
	if !ok {
		return &UnreachableError{Target: g.name, Err: err}
	}
	return g.pushFailure(ge)
}

// pushURL is where the remote takes pushes. A push to a remote by its name
// would change what the user's clone knows of it (refs/remotes), and one to a
// mirror would push everything.
func (g *git) pushURL(ctx context.Context) (string, error) {
	if !g.named() {
		return g.remote, nil
	}
	url, err := g.program.run(ctx, nil, "remote", "get-url", "--push", "--", g.remote)
	return strings.TrimSpace(url), err
}

// pushFailure is the error of a push, by what the server answered.
func (g *git) pushFailure(e *gitError) error {
	answer, rejected := rejection(e.answer)
	if rejected {
		e.said = remoteLines(e.said) + answer
	}
	switch {
	case isOver(e.err):
		return &UnreachableError{Target: g.name, Err: e}
	case gitVerdictOf(answer) == gitCameFirst, rejected && gitVerdictOf(e.said) == gitCameFirst:
		return &gitMoved{e}
	}
	err := g.failure(e)
	if lost, ok := errors.AsType[*UnreachableError](err); ok && rejected && gitVerdictOf(e.said) == gitUnknown {
		return &RefusedError{Target: g.name, Err: lost.Err, Hint: "the server's answer says why"}
	}
	return err
}

// rejection returns why a push was rejected, from its porcelain output:
// "!\tSHA:refs/heads/main\t[remote rejected] (hook declined)".
func rejection(porcelain string) (why string, ok bool) {
	for line := range strings.Lines(porcelain) {
		if fields := strings.Split(strings.TrimSpace(line), "\t"); fields[0] == "!" {
			return fields[len(fields)-1], true
		}
	}
	return "", false
}

// remoteLines keeps what the server itself said.
func remoteLines(said string) string {
	var b strings.Builder
	for line := range strings.Lines(said) {
		if rest, ok := strings.CutPrefix(line, "remote:"); ok && strings.TrimSpace(rest) != "" {
			b.WriteString(strings.TrimSpace(rest) + "\n")
		}
	}
	return b.String()
}

func isOver(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// failure is the error of asking the remote.
func (g *git) failure(err error) error {
	e, ok := errors.AsType[*gitError](err)
	if !ok || isOver(e.err) {
		return &UnreachableError{Target: g.name, Err: err}
	}
	hint := ""
	switch gitVerdictOf(e.said) {
	case gitProtected:
		hint = g.protectedHint(e.said)
	case gitDenied:
		hint = "give git a token or a key that may write to this repository; canaryctl uses the ones that `git push` uses in " + g.program.dir
	case gitGone:
		hint = "check the URL with `git remote -v`; servers also say this to accounts that may not read the repository"
	case gitClash:
		hint = "another branch has a part of this name: set target.git.work_branch to another one"
	default:
		if hinted := g.program.hinted(err); hinted != err {
			return &RefusedError{Target: g.name, Err: hinted}
		}
		if strings.Contains(e.said, "unknown option") {
			return &RefusedError{Target: g.name, Err: err, Hint: "install git 2.30 or newer"}
		}
		return &UnreachableError{Target: g.name, Err: err}
	}
	return &RefusedError{Target: g.name, Err: err, Hint: hint}
}

func (g *git) protectedHint(said string) string {
	switch {
	case strings.Contains(said, "currently checked out"):
		return "the remote is a clone with files checked out: push to a bare one"
	case g.proposal != nil:
		return fmt.Sprintf("let this account push to %s; the server's own lines say what it wants", g.proposal.branch)
	}
	return fmt.Sprintf("if %s is protected, set target.git.mode: branch, which pushes a branch of its own for a pull request, or let this account push; else the server's own lines say what it wants", g.branch)
}

// gitPause waits before the next try, longer each time and never as long as
// somebody else that began at the same time.
func gitPause(ctx context.Context, try int) error {
	longest := min(gitFirstPause<<min(try, 10), gitLongestPause)
	pause := gitFirstPause + rand.N(longest-gitFirstPause)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
		return nil
	}
}
