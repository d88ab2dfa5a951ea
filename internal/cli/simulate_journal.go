package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/report"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

// isJournal reports whether an argument is the journal of a live release: a
// plain file that begins like one. A pipe is not looked into, its bytes would be
// gone.
func isJournal(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() // nothing was written
	head, err := io.ReadAll(io.LimitReader(f, 512))
	return err == nil && journal.IsJournal(head)
}

// openJournal makes a journal one run that is replayed call by call, or with -c
// or --against a run of recorded windows for each candidate in it.
func (o *simulateOptions) openJournal(ctx context.Context, path string) ([]feedRun, error) {
	for _, flag := range []string{"map", "arm", "input-span", "max-bad", "epoch", "sum-duplicates"} {
		if o.given(flag) {
			return nil, usage(fmt.Errorf("--%s is about recorded files, and %s is the journal of a release", flag, path), "leave it out")
		}
	}
	if o.given("config") || o.Against != "" {
		return o.openLived(ctx, path)
	}
	for _, flag := range []string{"thin", "approve", "runs", "seed"} {
		if o.given(flag) {
			return nil, usage(fmt.Errorf("--%s changes what happened, and %s is replayed as it was", flag, path), "leave it out, or have its windows judged by another configuration with -c")
		}
	}
	return []feedRun{{name: filepath.Base(path), journal: path}}, nil
}

// openLived takes the windows of a journal as recorded feeds. Without -c each is
// judged by the configuration that it was released under.
func (o *simulateOptions) openLived(ctx context.Context, path string) ([]feedRun, error) {
	past := driver.NewPast(path)
	all, err := past.Windows(ctx)
	if err != nil {
		return nil, journalError(ctx, past, err)
	}
	var runs []feedRun
	for _, l := range all {
		r := feedRun{name: filepath.Base(path) + " " + l.ID(), config: l.Config, canary: l.Canary, stable: l.Stable}
		if o.given("config") {
			if r.config, err = o.app.loadConfig(); err != nil {
				return nil, err
			}
		} else if r.config != nil {
			r.config.Name = "the release's own"
		}
		if len(r.canary) == 0 || r.config == nil {
			o.app.say("%s: no windows of the canary: left out", r.name)
			continue
		}
		o.coarse(r.config.Plan(), r.canary)
		runs = append(runs, r)
	}
	if len(runs) == 0 {
		return nil, usage(fmt.Errorf("%s: %w", path, simulate.ErrNoWindows), "")
	}
	o.app.say("%s: its windows are judged as they were served: behind a real rollback there is no traffic of the canary", path)
	return runs, nil
}

// journal replays a journal call by call and prints what it came to.
func (o *simulateOptions) journal(ctx context.Context, r *feedRun) error {
	past := driver.NewPast(r.journal)
	out, err := simulate.Replay(past.Calls(ctx), past.Check)
	if err != nil {
		return journalError(ctx, past, err)
	}
	for _, line := range past.Adopted {
		o.app.say("%s:%d: the state of another machine was taken over: what led there is in that machine's journal", r.journal, line)
	}
	s := report.Simulation{Name: r.name, Plan: past.Plan, Outcome: out}
	return o.print(&s, s.JSON())
}

// journalError is an error about a journal that cannot be replayed, with its
// line.
func journalError(ctx context.Context, past *driver.Past, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, simulate.ErrNoCalls):
		return usage(fmt.Errorf("%s: %w", past.Path, err), "")
	}
	if e, ok := errors.AsType[*driver.MismatchError](err); ok {
		err = fmt.Errorf("%s:%d: %s", past.Path, e.Line, e.What)
	}
	return usage(err, "canaryctl history verify checks a journal line by line")
}
