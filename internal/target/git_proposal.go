package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/program"
)

// What target.git.mode may be.
const (
	gitModePush   = "push"
	gitModeBranch = "branch"
)

// gitProposal is a branch of canaryctl's own, whose pull request moves the
// weight once somebody has merged it.
type gitProposal struct {
	branch string
	open   []string // program that opens the pull request; none: somebody does

	mu     sync.Mutex
	opened string // the commit that open ended well for
}

// propose reads the mode.
func (g *git) propose(ctx context.Context, cfg *config.GitTarget) error {
	switch cfg.Mode {
	case "", gitModePush:
		return nil
	case gitModeBranch:
	default:
		return fmt.Errorf("target.git.mode: %q is neither %s nor %s", cfg.Mode, gitModePush, gitModeBranch)
	}
	p := &gitProposal{branch: strings.TrimPrefix(cmp.Or(cfg.WorkBranch, "canaryctl/"+fileName(g.service)), "refs/heads/"), open: cfg.OpenCommand}
	if p.branch == g.branch {
		return fmt.Errorf("target.git.work_branch: %s is the branch that is read: name another one", p.branch)
	}
	g.proposal = p
	return g.checkBranch(ctx, "target.git.work_branch", p.branch)
}

// publishProposal makes the work branch the branch that is read with one
// commit on top, and has the pull request opened. It replaces only commits of
// canaryctl's own, unless the change overwrites.
func (g *git) publishProposal(ctx context.Context, s gitSnapshot, c Change) error {
	p := g.proposal
	there, err := g.fetch(ctx, p.branch)
	if err != nil {
		return err
	}
	commit := there
	if there == "" || !g.proposes(ctx, s, there, c) {
		if there != "" && !c.Overwrite && !g.ownOrMerged(ctx, there, s.commit) {
			return &RefusedError{Target: g.name, Err: fmt.Errorf("%s holds commits of somebody else, up to %s", p.branch, short(there)), Hint: "merge or delete that branch, or set target.git.work_branch to another one"}
		}
		if commit, err = g.commit(ctx, s, c); err != nil || commit == s.commit {
			return err
		}
		if err := g.push(ctx, commit, p.branch, &lease{there}); err != nil {
			return err
		}
	}
	return g.open(ctx, s, c, commit)
}

// proposes reports whether a commit is already what a change would push.
func (g *git) proposes(ctx context.Context, s gitSnapshot, commit string, c Change) bool {
	if c.Key == "" {
		return false
	}
	parents, err := g.program.run(ctx, nil, "log", "-1", "--no-show-signature", "--format=%P", commit, "--")
	return err == nil && strings.TrimSpace(parents) == s.commit && g.carries(ctx, commit, "Key", c.Key)
}

// carries reports whether a commit has a trailer with a value, or with any.
func (g *git) carries(ctx context.Context, commit, trailer, value string) bool {
	out, err := g.program.run(ctx, nil, "log", "-1", "--no-show-signature", "--format=%(trailers:key=Canaryctl-"+trailer+",valueonly)", commit, "--")
	out = strings.TrimSpace(out)
	return err == nil && out != "" && (value == "" || out == oneLine(value, maxReason))
}

// ownOrMerged reports whether a work branch may be replaced: its newest commit
// is canaryctl's, or is in the branch that is read.
func (g *git) ownOrMerged(ctx context.Context, commit, base string) bool {
	if g.carries(ctx, commit, "Weight", "") {
		return true
	}
	_, err := g.program.run(ctx, nil, "merge-base", "--is-ancestor", commit, base)
	return err == nil
}

// open runs the program that opens the pull request, once for a commit as far
// as this process knows.
func (g *git) open(ctx context.Context, s gitSnapshot, c Change, commit string) error {
	p := g.proposal
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.open) == 0 || p.opened == commit {
		return nil
	}
	cmd := exec.CommandContext(ctx, p.open[0], p.open[1:]...)
	cmd.Dir = g.program.dir
	cmd.Env = append(cmd.Environ(),
		"CANARYCTL_BRANCH="+p.branch,
		"CANARYCTL_BASE="+g.branch,
		"CANARYCTL_COMMIT="+commit,
		"CANARYCTL_TITLE="+g.subject(s, c),
		"CANARYCTL_BODY="+g.message(s, c),
		"CANARYCTL_SERVICE="+cmp.Or(c.Service, g.service),
		"CANARYCTL_RELEASE="+c.Release,
		"CANARYCTL_STEP="+strconv.Itoa(c.Step),
		"CANARYCTL_MOVE="+c.Move,
		"CANARYCTL_WEIGHT="+c.To.String(),
		"CANARYCTL_KEY="+c.Key,
	)
	said := &bounded{last: true}
	cmd.Stdout, cmd.Stderr = said, said
	cmd.WaitDelay = execGrace
	program.OwnGroup(cmd)
	err := cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if errors.Is(err, exec.ErrNotFound) {
		return &RefusedError{Target: g.name, Err: fmt.Errorf("target.git.open_command: %w", err), Hint: fmt.Sprintf("%s is pushed: open its pull request by hand, or install %s", p.branch, p.open[0])}
	}
	if err != nil {
		return &UnreachableError{Target: g.name, Err: fmt.Errorf("%s is pushed, but target.git.open_command ended with %w%s", p.branch, err, lastLines([]byte(withoutCredentials(string(said.buf)))))}
	}
	p.opened = commit
	return nil
}
