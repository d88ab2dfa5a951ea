package target

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/pattern"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/splice"
)

const (
	gitDeadline = 30 * time.Second // for all tries of one write, and for a reading
	gitRemote   = "origin"
	gitName     = "canaryctl" // who commits where nobody is configured
	gitEmail    = "canaryctl@localhost"
)

// git is values in files of a git repository, read and written at the remote.
// The clone lends its objects, its credentials and its configuration; its
// files, index, HEAD and branches are neither read nor changed.
type git struct {
	program  gitProgram
	name     string
	service  string
	ring     int64
	remote   string
	branch   string // what is read, and in mode push written
	files    []gitFile
	state    string // path of the release's state; "": it is not kept
	author   gitAuthor
	sign     bool
	proposal *gitProposal // mode branch; nil: pushes go to branch
	deadline time.Duration

	mu   sync.Mutex
	last gitSnapshot // the newest that was read, with its By
}

// gitFile is where in a file the weights stand. Several may be one file.
type gitFile struct {
	document
	path string
}

// newGit returns the target of a clone. It looks at the clone but asks no
// server.
func newGit(cfg *config.GitTarget, o Options) (Target, error) {
	files, err := gitFiles(cfg.Files)
	if err != nil {
		return nil, err
	}
	g := &git{
		service:  o.Service,
		ring:     o.Ring,
		remote:   cmp.Or(cfg.Remote, gitRemote),
		files:    files,
		author:   gitAuthor{name: cfg.AuthorName, email: cfg.AuthorEmail},
		sign:     cfg.Sign,
		deadline: cmp.Or(cfg.Deadline, gitDeadline),
	}
	if o.KeepState {
		g.state, err = gitPath("target.git.state_path", cmp.Or(cfg.StatePath, ".canaryctl/"+fileName(o.Service)+".json"))
		if err != nil {
			return nil, err
		}
	}
	dir := filepath.FromSlash(cmp.Or(cfg.Repo, "."))
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(o.Dir, dir)
	}
	if g.program, err = newGitProgram(cmp.Or(dir, ".")); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), gitDeadline)
	defer cancel()
	if err := g.look(ctx, cfg.Branch, o.Getenv); err != nil {
		return nil, err
	}
	g.name = "git " + g.branch + ":" + files[0].path
	return g, g.propose(ctx, cfg)
}

func gitFiles(configured []config.GitFile) (files []gitFile, err error) {
	if len(configured) == 0 {
		return nil, errors.New("target.git.files: missing: say which files hold the weights, and where in them")
	}
	for i, c := range configured {
		key := fmt.Sprintf("target.git.files[%d]", i)
		var f gitFile
		if f.path, err = gitPath(key+".path", c.Path); err != nil {
			return nil, err
		}
		if f.document, err = newDocument(key, c.Canary, c.Stable, c.Unit); err != nil {
			return nil, err
		}
		if f.which, err = splice.ParseDocument(c.Document); err != nil {
			return nil, fmt.Errorf("%s.document: %w", key, err)
		}
		files = append(files, f)
	}
	return files, nil
}

// gitPath checks the path of a file in the repository.
func gitPath(key, configured string) (string, error) {
	clean := path.Clean(filepath.ToSlash(configured))
	parts := strings.Split(clean, "/")
	isGit := func(part string) bool { return strings.EqualFold(part, ".git") }
	switch {
	case configured == "":
		return "", fmt.Errorf("%s: missing: name a file by its path from the repository's root", key)
	case path.IsAbs(clean), clean == ".", parts[0] == "..", slices.ContainsFunc(parts, isGit):
		return "", fmt.Errorf("%s: %q leads out of the repository: name a file by its path from the repository's root, such as deploy/route.yaml", key, configured)
	case strings.ContainsAny(clean, "\x00\n"):
		return "", fmt.Errorf("%s: %q is no path", key, configured)
	}
	return clean, nil
}

var unusualInFiles = pattern.New(`[^A-Za-z0-9._-]`)

// fileName makes a service's name fit for a file.
func fileName(service string) string {
	return unusualInFiles.ReplaceAllString(cmp.Or(service, "service"), "_")
}

// look checks the clone and finds out the branch.
func (g *git) look(ctx context.Context, configured string, getenv func(string) string) error {
	if _, err := g.program.run(ctx, nil, "rev-parse", "--git-dir"); err != nil {
		return fmt.Errorf("target.git.repo: %w", g.program.hinted(err))
	}
	if g.named() {
		if _, err := g.program.run(ctx, nil, "config", "--get-all", "remote."+g.remote+".url"); err != nil {
			return fmt.Errorf("target.git.remote: the clone in %s has no remote %q; `git remote -v` lists them", g.program.dir, g.remote)
		}
	} else if strings.HasPrefix(g.remote, "-") {
		return fmt.Errorf("target.git.remote: %q is no remote", g.remote)
	}
	branch := strings.TrimPrefix(configured, "refs/heads/")
	if branch == "" {
		branch = g.currentBranch(ctx, getenv)
	}
	if branch == "" {
		return fmt.Errorf("target.git.branch: missing: no branch is checked out in %s (detached HEAD) and none of GITHUB_HEAD_REF, GITHUB_REF_NAME and CI_COMMIT_BRANCH is set", g.program.dir)
	}
	g.branch = branch
	return g.checkBranch(ctx, "target.git.branch", branch)
}

// named reports whether the remote is a name, not a URL or a path.
func (g *git) named() bool { return !strings.ContainsAny(g.remote, "/:\\") }

func (g *git) checkBranch(ctx context.Context, key, branch string) error {
	if _, err := g.program.run(ctx, nil, "check-ref-format", "refs/heads/"+branch); err != nil || strings.HasPrefix(branch, "-") {
		return fmt.Errorf("%s: %q is no name of a branch", key, branch)
	}
	return nil
}

// currentBranch is the branch that is checked out or that the CI names; "".
func (g *git) currentBranch(ctx context.Context, getenv func(string) string) string {
	if out, err := g.program.run(ctx, nil, "symbolic-ref", "--short", "--quiet", "HEAD"); err == nil {
		return strings.TrimSpace(out)
	}
	if getenv == nil {
		return ""
	}
	if b := getenv("GITHUB_HEAD_REF"); b != "" {
		return b
	}
	if b := getenv("GITHUB_REF_NAME"); b != "" && getenv("GITHUB_REF_TYPE") != "tag" {
		return b
	}
	return getenv("CI_COMMIT_BRANCH")
}

// Read implements [Target].
func (g *git) Read(ctx context.Context) (Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, g.deadline)
	defer cancel()
	s, err := g.snapshot(ctx)
	if err != nil {
		return Reading{}, err
	}
	if s.broken != nil {
		return Reading{}, s.broken
	}
	return Reading{Weight: s.weight, Revision: s.commit, State: bytes.Clone(s.state), By: s.by}, nil
}

// Write implements [Target].
func (g *git) Write(ctx context.Context, was Reading, c Change) error {
	if err := g.Check(c.To); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, g.deadline)
	defer cancel()
	for try := 1; ; try++ {
		err := g.try(ctx, was, c)
		moved, ok := errors.AsType[*gitMoved](err)
		if !ok {
			return err
		}
		if gitPause(ctx, try) != nil {
			return &UnreachableError{Target: g.name, Err: fmt.Errorf("other pushes came first, %d times in %s: %w", try, g.deadline, moved.err)}
		}
	}
}

// try is one reading, one commit and one push. A [*gitMoved] says that another
// push came first.
func (g *git) try(ctx context.Context, was Reading, c Change) error {
	s, err := g.snapshot(ctx)
	if shape, ok := errors.AsType[*ShapeError](err); ok {
		return &RefusedError{Target: g.name, Err: shape.Err, Hint: shape.Hint}
	}
	if err != nil {
		return err
	}
	if done, err := g.compare(ctx, s, was, c); done || err != nil {
		return err
	}
	if g.proposal != nil {
		return g.publishProposal(ctx, s, c)
	}
	commit, err := g.commit(ctx, s, c)
	if err != nil || commit == s.commit {
		return err
	}
	if err := g.push(ctx, commit, g.branch, nil); err != nil {
		return err
	}
	g.remember(ctx, g.branch, commit)
	return nil
}

// compare reports whether nothing is left to do, and returns a
// [*ConflictError] when the branch holds something else than what was read.
func (g *git) compare(ctx context.Context, s gitSnapshot, was Reading, c Change) (done bool, err error) {
	there := s.weight.Same(c.To) && s.broken == nil
	sameState := g.state == "" || c.State == nil || s.state != nil && bytes.Equal(s.state, c.State)
	if there && (sameState || g.alreadyWritten(ctx, s.commit, c.Key)) {
		return true, nil
	}
	if c.Overwrite {
		return false, nil
	}
	if s.broken != nil {
		return false, &RefusedError{Target: g.name, Err: s.broken.Err, Hint: s.broken.Hint}
	}
	// Two writers may change nothing but the state: it is compared as well,
	// where it was read at all.
	stateMoved := g.state != "" && c.State != nil && was.Revision != "" && was.Revision != s.commit && !bytes.Equal(s.state, was.State)
	if s.weight.Same(was.Weight) && !stateMoved {
		return false, nil
	}
	e := &ConflictError{Target: g.name, Held: &s.weight, By: s.by}
	if s.weight.Same(was.Weight) {
		e.Err = fmt.Errorf("the release's state in %s is another than the one that was read", g.state)
	}
	return false, e
}

// Check implements [Target].
func (g *git) Check(w release.Weight) error {
	for _, f := range g.files {
		if err := f.check(g.name, w); err != nil {
			return err
		}
	}
	return nil
}

// KeepsState implements [Target].
func (g *git) KeepsState() bool { return g.state != "" }

// ReadBack implements [Target]: a branch holds what was pushed at once.
func (g *git) ReadBack() time.Duration { return 0 }

// String implements [Target].
func (g *git) String() string { return g.name }
