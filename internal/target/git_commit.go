package target

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// gitAuthor is who commits; what is empty is the user's own.
type gitAuthor struct{ name, email string }

const (
	maxReason  = 2000 // bytes of a reason in a commit's message
	recentKeys = 30   // commits that are searched for a write's key
)

// commit makes a commit on top of a snapshot, from blobs and a private index,
// and returns it; the snapshot's own commit where nothing would change.
func (g *git) commit(ctx context.Context, s gitSnapshot, c Change) (string, error) {
	changed, err := g.changed(s, c)
	if err != nil {
		return "", err
	}
	tree, err := g.tree(ctx, s, changed)
	if err != nil {
		return "", g.local(err)
	}
	before, err := g.program.run(ctx, nil, "rev-parse", s.commit+"^{tree}")
	if err != nil {
		return "", g.local(err)
	}
	if tree == strings.TrimSpace(before) {
		return s.commit, nil
	}
	return g.commitTree(ctx, s.commit, tree, g.message(s, c))
}

// changed returns the new texts of the files by path.
func (g *git) changed(s gitSnapshot, c Change) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, f := range g.files {
		src, ok := out[f.path]
		if !ok {
			src = []byte(s.blobs[f.path].text)
		}
		text, err := f.write(src, c.To)
		if err != nil {
			return nil, &RefusedError{Target: g.name, Err: fmt.Errorf("%s at %s: %w", f.path, short(s.commit), err), Hint: "target.git.files says where the weights stand"}
		}
		out[f.path] = text
	}
	if g.state != "" && c.State != nil {
		out[g.state] = c.State
	}
	return out, nil
}

// tree writes the changed files into the clone's store of objects and returns
// the tree that has them beside everything else.
func (g *git) tree(ctx context.Context, s gitSnapshot, changed map[string][]byte) (string, error) {
	var entries bytes.Buffer
	for path, text := range changed {
		if b, ok := s.blobs[path]; ok && b.text == string(text) {
			continue
		}
		// Standard input goes through no filter: the bytes are the file's.
		oid, err := g.program.run(ctx, text, "hash-object", "-w", "--stdin")
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&entries, "%s %s\t%s\x00", cmp.Or(s.blobs[path].mode, "100644"), strings.TrimSpace(oid), path)
	}
	dir, err := os.MkdirTemp("", "canaryctl-git-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir) // only an index is in it
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index")}
	if _, err := g.program.runWith(ctx, index, nil, "read-tree", s.commit); err != nil {
		return "", err
	}
	if _, err := g.program.runWith(ctx, index, entries.Bytes(), "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	tree, err := g.program.runWith(ctx, index, nil, "write-tree", "--missing-ok")
	return strings.TrimSpace(tree), err
}

func (g *git) commitTree(ctx context.Context, parent, tree, message string) (string, error) {
	args := []string{"-c", "i18n.commitEncoding=utf-8", "commit-tree", "-p", parent, "-F", "-"}
	sign := g.sign
	if out, err := g.program.run(ctx, nil, "config", "--type=bool", "--get", "commit.gpgsign"); err == nil && strings.TrimSpace(out) == "true" {
		sign = true // commit-tree itself does not look
	}
	if sign {
		args = append(args, "-S")
	}
	out, err := g.program.runWith(ctx, g.identity(ctx), []byte(message), append(args, tree)...)
	if err != nil && sign && ctx.Err() == nil {
		return "", &RefusedError{Target: g.name, Err: fmt.Errorf("the commit cannot be signed: %w", err),
			Hint: "user.signingkey, gpg.format and commit.gpgsign of git's configuration say with what; the key must be usable without a question"}
	}
	if err != nil {
		return "", g.local(err)
	}
	return strings.TrimSpace(out), nil
}

// identity is who commits, as environment variables: the configured one, the
// user's own, or the default where git knows nobody.
func (g *git) identity(ctx context.Context) []string {
	name, email := g.author.name, g.author.email
	if name == "" && email == "" {
		if _, err := g.program.run(ctx, nil, "-c", "user.useConfigOnly=true", "var", "GIT_COMMITTER_IDENT"); err == nil {
			return nil
		}
	}
	name, email = cmp.Or(name, gitName), cmp.Or(email, gitEmail)
	return []string{"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email, "GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + email}
}

// subject is the first line of a commit's message.
func (g *git) subject(s gitSnapshot, c Change) string {
	verb := "canary at"
	if s.broken == nil && s.weight.Same(c.To) {
		verb = "canary stays at"
	}
	what := c.Move
	if c.Step > 0 {
		what = "step " + strconv.Itoa(c.Step)
	}
	if c.Release != "" {
		what = strings.TrimSpace(what + " of release " + shorten(c.Release, 12))
	}
	if what != "" {
		what = " (" + what + ")"
	}
	return oneLine(fmt.Sprintf("%s: %s %s%s", cmp.Or(c.Service, g.service), verb, c.To, what), maxReason)
}

// message is a commit's message: what, why, and trailers for programs.
func (g *git) message(s gitSnapshot, c Change) string {
	var b strings.Builder
	b.WriteString(g.subject(s, c) + "\n\n")
	if reason := oneLine(c.Reason, maxReason); reason != "" {
		b.WriteString(reason + "\n\n")
	}
	for _, t := range [][2]string{
		{"Release", c.Release},
		{"Attempt", positive(c.Attempt)},
		{"Step", positive(c.Step)},
		{"Move", c.Move},
		{"Weight", fmt.Sprintf("%d/%d", c.To.Slots, max(c.To.Ring, 1))},
		{"Evidence", c.Evidence},
		{"Key", c.Key},
	} {
		if value := oneLine(t[1], maxReason); value != "" {
			b.WriteString("Canaryctl-" + t[0] + ": " + value + "\n")
		}
	}
	return b.String()
}

func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// alreadyWritten reports whether a recent commit carries the key of a write.
func (g *git) alreadyWritten(ctx context.Context, commit, key string) bool {
	if key == "" {
		return false
	}
	out, err := g.program.run(ctx, nil, "log", fmt.Sprintf("-%d", recentKeys), "--no-show-signature",
		"--format=%(trailers:key=Canaryctl-Key,valueonly)", commit, "--")
	if err != nil {
		return false
	}
	for line := range strings.Lines(out) {
		if strings.TrimSpace(line) == oneLine(key, maxReason) {
			return true
		}
	}
	return false
}

// local is the error of something that git did in the clone alone.
func (g *git) local(err error) error {
	if isOver(err) {
		return &UnreachableError{Target: g.name, Err: err}
	}
	return &RefusedError{Target: g.name, Err: g.program.hinted(err), Hint: "canaryctl writes objects into the clone in " + g.program.dir + ": is there room, and may this user write there?"}
}
