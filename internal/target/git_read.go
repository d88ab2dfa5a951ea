package target

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// gitSnapshot is what the files hold at one commit of the branch.
type gitSnapshot struct {
	commit string
	blobs  map[string]gitBlob // by path
	weight release.Weight
	broken *ShapeError // why there is no weight, though the files are there
	state  []byte      // nil: there is none
	by     string      // who changed the files last, where the history tells
}

type gitBlob struct {
	mode string // 100644, or 100755
	text string
}

// errMoved says that a branch was replaced while it was fetched.
var errMoved = errors.New("the branch was replaced while it was fetched")

// head returns the commit that a branch has at the remote, "" where there is
// no such branch.
func (g *git) head(ctx context.Context, branch string) (string, error) {
	ref := "refs/heads/" + branch
	out, err := g.program.run(ctx, nil, "ls-remote", "--", g.remote, ref)
	if err != nil {
		return "", g.failure(err)
	}
	for line := range strings.Lines(out) { // the pattern also meets x/refs/heads/BRANCH
		if commit, name, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && name == ref {
			return commit, nil
		}
	}
	return "", nil
}

// has reports whether the clone has a commit.
func (g *git) has(ctx context.Context, commit string) bool {
	_, err := g.program.run(ctx, nil, "cat-file", "-e", commit+"^{commit}")
	return err == nil
}

// fetch brings the newest commit of a branch into the clone, without a ref of
// the user's and without FETCH_HEAD: another fetch may run beside. It never
// passes --depth, which would cut the history of a full clone.
func (g *git) fetch(ctx context.Context, branch string) (commit string, err error) {
	for range 3 {
		if commit, err = g.head(ctx, branch); err != nil || commit == "" {
			return "", err
		}
		if g.has(ctx, commit) {
			return commit, nil
		}
		_, err := g.program.run(ctx, nil, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
			"--refmap=", "--", g.remote, "refs/heads/"+branch)
		if err != nil {
			return "", g.failure(err)
		}
		if g.has(ctx, commit) {
			g.remember(ctx, branch, commit)
			return commit, nil
		}
	}
	return "", &UnreachableError{Target: g.name, Err: errMoved}
}

// remember keeps a commit in the clone under refs/canaryctl, so that the next
// fetch asks only for what is newer.
func (g *git) remember(ctx context.Context, branch, commit string) {
	// Without it, or when somebody else does so just now, fetches ask for more.
	_, _ = g.program.run(ctx, nil, "update-ref", "refs/canaryctl/"+branch, commit)
}

// snapshot reads the files at the head of the branch.
func (g *git) snapshot(ctx context.Context) (gitSnapshot, error) {
	commit, err := g.fetch(ctx, g.branch)
	if err != nil {
		return gitSnapshot{}, err
	}
	if commit == "" {
		return gitSnapshot{}, g.shape(fmt.Errorf("%s has no branch %s", g.remote, g.branch), "push a first commit of that branch, with the files that hold the weights")
	}
	g.mu.Lock()
	last := g.last
	g.mu.Unlock()
	if last.commit == commit {
		return last, nil
	}
	s, err := g.load(ctx, commit)
	if err != nil {
		return s, err
	}
	s.by = g.lastChange(ctx, commit)
	g.mu.Lock()
	g.last = s
	g.mu.Unlock()
	return s, nil
}

func (g *git) shape(err error, hint string) *ShapeError {
	return &ShapeError{Target: g.name, Err: err, Hint: hint}
}

// load reads the files and the state at a commit.
func (g *git) load(ctx context.Context, commit string) (gitSnapshot, error) {
	s := gitSnapshot{commit: commit, blobs: map[string]gitBlob{}}
	paths := []string{}
	for _, f := range g.files {
		paths = append(paths, f.path)
	}
	if g.state != "" {
		paths = append(paths, g.state)
	}
	for _, p := range paths {
		if _, known := s.blobs[p]; known {
			continue
		}
		blob, err := g.blob(ctx, commit, p)
		if err != nil {
			return s, err
		}
		if blob != nil {
			s.blobs[p] = *blob
		}
	}
	for _, f := range g.files {
		if _, ok := s.blobs[f.path]; !ok {
			return s, g.shape(fmt.Errorf("there is no file %s on %s at %s", f.path, g.branch, short(commit)), "paths are relative to the repository's root; push the file first")
		}
	}
	if b, ok := s.blobs[g.state]; ok && g.state != "" {
		s.state = []byte(b.text)
	}
	s.weight, s.broken = g.weight(s)
	return s, nil
}

// blob reads a file at a commit, nil where there is none.
func (g *git) blob(ctx context.Context, commit, path string) (*gitBlob, error) {
	out, err := g.program.run(ctx, nil, "ls-tree", "-z", "--full-tree", commit, "--", path)
	if err != nil {
		return nil, g.failure(err)
	}
	if out == "" {
		return nil, nil
	}
	fields := strings.Fields(strings.SplitN(out, "\t", 2)[0])
	if len(fields) != 3 {
		return nil, g.shape(fmt.Errorf("git ls-tree answers %q", oneLine(out, shownAnswer)), "")
	}
	switch mode := fields[0]; mode {
	case "120000":
		return nil, g.shape(fmt.Errorf("%s is a symbolic link", path), "name the file that it points to")
	case "160000":
		return nil, g.shape(fmt.Errorf("%s is a submodule", path), "name a file of this repository, or make the submodule's own clone the target")
	case "040000":
		return nil, g.shape(fmt.Errorf("%s is a directory", path), "name a file in it")
	}
	text, err := g.program.run(ctx, nil, "cat-file", "blob", fields[2])
	if err != nil {
		return nil, g.failure(err)
	}
	if strings.HasPrefix(text, "version https://git-lfs.github.com/spec/") {
		return nil, g.shape(fmt.Errorf("%s is kept in Git LFS", path), "take the file out of LFS: `git lfs untrack` it and commit it as it is")
	}
	return &gitBlob{mode: fields[0], text: text}, nil
}

// weight returns the canary's share, which all files must agree on.
func (g *git) weight(s gitSnapshot) (release.Weight, *ShapeError) {
	var first release.Weight
	for i, f := range g.files {
		w, err := f.read([]byte(s.blobs[f.path].text), g.ring)
		if err != nil {
			return first, g.shape(fmt.Errorf("%s at %s: %w", f.path, short(s.commit), err), "target.git.files says where the weights stand, and in which unit")
		}
		if i > 0 && !w.Same(first) {
			return first, g.shape(fmt.Errorf("at %s %s has %s and %s has %s", short(s.commit), g.files[0].path, first, f.path, w), "set both to the same weight, or roll back, which sets both")
		}
		if i == 0 {
			first = w
		}
	}
	return first, nil
}

// gitHistory is how long looking for the last change may take: a long history
// is not worth holding up a release.
const gitHistory = 5 * time.Second

// lastChange names the author and commit that changed the files last; "" where
// the clone's history does not go back so far.
func (g *git) lastChange(ctx context.Context, commit string) string {
	ctx, cancel := context.WithTimeout(ctx, gitHistory)
	defer cancel()
	args := []string{"log", "-1", "--no-show-signature", "--format=%H%x00%P%x00%an%x00%s", commit, "--"}
	for _, f := range g.files {
		args = append(args, f.path)
	}
	out, err := g.program.run(ctx, nil, args...)
	fields := strings.Split(strings.TrimSuffix(out, "\n"), "\x00")
	if err != nil || len(fields) != 4 {
		return ""
	}
	if fields[1] == "" {
		// A first commit, or where a shallow clone ends: its parents are cut off,
		// and everything seems to come from it.
		raw, err := g.program.run(ctx, nil, "cat-file", "commit", fields[0])
		header, _, _ := strings.Cut(raw, "\n\n")
		if err != nil || strings.Contains(header, "\nparent ") {
			return ""
		}
	}
	return fmt.Sprintf("%s (%s: %s)", oneLine(fields[2], shownAnswer), short(fields[0]), oneLine(fields[3], shownAnswer))
}

// short is a commit as people write it.
func short(commit string) string { return commit[:min(len(commit), 8)] }
