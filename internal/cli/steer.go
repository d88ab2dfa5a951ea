package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/ladder"
)

func newPauseCmd(app *App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "pause",
		Short: "Stop the ladder's clock; breaker and rollback go on",
		Long: "pause keeps a release where it is: no step forward, and the time of the pause counts for no hold. The breaker goes on\n" +
			"watching, and rolls back as ever.",
		Example: "  canaryctl pause --reason \"waiting for the review of the transcripts\"",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return app.steer(cmd.Context(), "pause", ladder.Command{Verb: ladder.DoPause, Reason: reason})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the journal")
	app.registerScene(cmd.Flags())
	return cmd
}

// resumeOptions are the flags of resume.
type resumeOptions struct {
	ClearLock    bool
	AcceptConfig bool
	Reason       string
}

func newResumeCmd(app *App) *cobra.Command {
	var o resumeOptions
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "Let a paused, locked or held release go on",
		Long: "resume ends a pause. With --clear-lock it ends a lock, a failed gate or a rollback by hand, and the next promote starts\n" +
			"a new attempt at the first step with no evidence carried over. With --accept-config a release goes on under a\n" +
			"configuration that was changed since it started.",
		Example: "  canaryctl resume\n" +
			"  canaryctl resume --clear-lock --reason \"prompt 42 mended, see the review of 3 March\"\n" +
			"  canaryctl resume --accept-config --reason \"threshold of cost raised with finance\"",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.command()
			if err != nil {
				return err
			}
			return app.steer(cmd.Context(), "resume", c)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.ClearLock, "clear-lock", false, "end a lock; needs --reason")
	f.BoolVar(&o.AcceptConfig, "accept-config", false, "go on under the changed configuration")
	f.StringVar(&o.Reason, "reason", "", "why, for the journal")
	app.registerScene(f)
	return cmd
}

func (o *resumeOptions) command() (ladder.Command, error) {
	c := ladder.Command{Verb: ladder.DoResume, Reason: o.Reason}
	switch {
	case o.ClearLock && o.AcceptConfig:
		return c, usage(errors.New("--clear-lock and --accept-config are two decisions"), "give them one after the other")
	case o.ClearLock && o.Reason == "":
		return c, usage(errors.New("--clear-lock needs --reason"), "say what has changed since it locked: it stands in the journal")
	case o.ClearLock:
		c.Verb = ladder.DoClearLock
	case o.AcceptConfig:
		c.Verb = ladder.DoAcceptConfig
	}
	return c, nil
}

// steer gives a release a person's word and shows where that leaves it.
func (app *App) steer(ctx context.Context, name string, c ladder.Command) error {
	if _, err := app.wantOutput("text", "json"); err != nil {
		return err
	}
	l, err := app.live(name, needs{})
	if err != nil {
		return err
	}
	res, err := l.steered(ctx, c)
	if err != nil {
		return err
	}
	return l.stood(res, ExitOK)
}

// steered gives the word, and tells those who are to know of it.
func (l *live) steered(ctx context.Context, c ladder.Command) (*driver.Result, error) {
	if c.Verb == ladder.DoPause {
		if err := l.underWay(ctx); err != nil {
			return nil, err
		}
	}
	res, err := l.driver.Command(ctx, c)
	if err != nil {
		return nil, failure(err)
	}
	if err := l.driver.Settle(ctx); err != nil {
		l.app.warn("%v", err)
	}
	return res, nil
}

// underWay refuses what makes no sense before a release.
func (l *live) underWay(ctx context.Context) error {
	r, err := l.driver.Where(ctx)
	if err == nil && r.Ladder.Stage == ladder.NotStarted && r.Ladder.Attempt == 0 {
		err = ladder.ErrNotStarted
	}
	return failure(err)
}

// wantValues refuses flags that were given and say nothing: in a pipeline an
// unset variable would take the guard away without a word.
func wantValues(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f.Changed && (f.Value.String() == "" || f.Value.String() == "0") {
			return usage(fmt.Errorf("--%s is given and says nothing", name), "is the variable behind it set?")
		}
	}
	return nil
}

// approveOptions are the flags of approve.
type approveOptions struct {
	Release string
	Step    int
	Reason  string
}

func newApproveCmd(app *App) *cobra.Command {
	var o approveOptions
	cmd := &cobra.Command{
		Use:   "approve",
		Short: "Give a person's word for the step that waits for it",
		Long: "approve looks at the canary once more, and where everything but a person's word is there, gives it: for this release,\n" +
			"attempt, step and configuration. It lapses when a verdict turns worse than the one shown, and after\n" +
			"approval_timeout_min. The next promote, or the running run, takes the step.",
		Example: "  canaryctl approve --release 3f1c2ab90d11 --step 2 --reason \"transcripts read\"",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := wantValues(cmd, "release", "step"); err != nil {
				return err
			}
			return runApprove(cmd.Context(), app, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Release, "release", "", "the `id` of the release, as the notification names it")
	f.IntVar(&o.Step, "step", 0, "the `step` that waits")
	f.StringVar(&o.Reason, "reason", "", "why, for the journal")
	app.registerScene(f)
	return cmd
}

func runApprove(ctx context.Context, app *App, o approveOptions) error {
	if _, err := app.wantOutput("text", "json"); err != nil {
		return err
	}
	l, err := app.live("approve", needs{source: true})
	if err != nil {
		return err
	}
	res, err := l.approved(ctx, driver.Shown{Release: o.Release, Step: o.Step}, o.Reason)
	if err != nil {
		return err
	}
	return l.stood(res, ExitOK)
}

// approved looks once more and gives the word.
func (l *live) approved(ctx context.Context, shown driver.Shown, reason string) (*driver.Result, error) {
	res, err := l.driver.Approve(ctx, shown, reason)
	if errors.Is(err, ladder.ErrNotAwaiting) && res != nil {
		return nil, &Error{Code: ExitConflict, Err: err, Hint: "it says: " + res.Outcome.Reason}
	}
	return res, failure(err)
}

// rollbackOptions are the flags of rollback.
type rollbackOptions struct {
	Reason       string
	ToRelease    string
	IfIncomplete bool
}

func newRollbackCmd(app *App) *cobra.Command {
	var o rollbackOptions
	cmd := &cobra.Command{
		Use:   "rollback",
		Short: "Take the weight to 0 now, from any state, and read it back",
		Long: "rollback takes the canary's weight to 0 in one write and reads it back. It does not wait for a run or promote that is\n" +
			"under way but takes the release over; no freeze, pause, lock or damaged journal stops it. The release stays locked\n" +
			"until canaryctl resume --clear-lock.\n\n" +
			"A damaged journal is put aside whole, beside the new one, and a disk that takes no more does not stop the weight either:\n" +
			"what could not be written down is told, exit code 6, and the rollback may be given again to have it recorded. A write of\n" +
			"somebody else's that is under way is waited for 15 seconds.\n\n" +
			"Where a variable of notify or hooks is not set, as on a laptop, it goes on without: what was to be told or run waits for\n" +
			"the next canaryctl that has it.\n\n" +
			"After 100 % it needs no gates either. --to-release names the version that is to serve, by its digest as history shows\n" +
			"it, and refuses if that is not the one that weight 0 returns to, or that a swap of the versions has replaced.\n\n" +
			"--if-incomplete is for the last step of a pipeline that may have been broken off: it finishes a write or a rollback that\n" +
			"is under way, and does nothing otherwise." + scenesHelp,
		Example: "  canaryctl rollback --reason \"customers report wrong totals\"\n" +
			"  canaryctl rollback --if-incomplete        # if: always()",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := wantValues(cmd, "to-release"); err != nil {
				return err
			}
			return runRollback(cmd.Context(), app, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Reason, "reason", "", "why, for the journal and the record")
	f.StringVar(&o.ToRelease, "to-release", "", "the `digest` of the version that is to serve")
	f.BoolVar(&o.IfIncomplete, "if-incomplete", false, "only finish what a broken-off command has left undone")
	app.registerScene(f)
	return cmd
}

func runRollback(ctx context.Context, app *App, o rollbackOptions) error {
	if _, err := app.wantOutput("text", "json"); err != nil {
		return err
	}
	stayWithoutReader() // not to be ended between a write and its read-back
	cfgs, bad, err := app.rollbackConfigs()
	if err != nil {
		return err
	}
	return app.eachScene(cfgs, func(x inScene) error {
		if err := bad[x.cfg]; err != nil {
			return err
		}
		return rollbackIn(ctx, x, o)
	})
}

func rollbackIn(ctx context.Context, x inScene, o rollbackOptions) error {
	l, err := x.live(rollbackCommand, needs{})
	if err != nil {
		return err
	}
	if o.IfIncomplete {
		return l.finish(ctx)
	}
	if o.ToRelease != "" {
		if err := l.driver.ReturnTo(ctx, o.ToRelease); err != nil {
			return wrongVersion(err)
		}
	}
	res, code, err := l.rolledBack(ctx, o.Reason)
	if err != nil {
		return err
	}
	return l.stood(res, code)
}

// rolledBack takes the weight to 0, and tells those who are to know of it. The
// code is the command's.
func (l *live) rolledBack(ctx context.Context, reason string) (*driver.Result, ExitCode, error) {
	res, err := l.driver.RollBack(ctx, reason)
	nothing := errors.Is(err, driver.ErrNothing)
	if err != nil && !nothing {
		return nil, ExitFailed, failure(err)
	}
	if err := l.driver.Settle(ctx); err != nil {
		l.app.warn("%v", err)
	}
	switch {
	case nothing:
		l.app.say("%v", err)
		return res, ExitOK, nil
	case res.Status == driver.RolledBack:
		return res, ExitOK, nil // as asked
	}
	return res, exitOf[res.Status], nil
}

// wrongVersion is the error of a rollback to a version that it does not return
// to.
func wrongVersion(err error) error {
	if _, unknown := errors.AsType[*driver.UnknownVersionError](err); unknown {
		return &Error{Code: ExitConflict, Err: err, Hint: "canaryctl history lists the versions by digest"}
	}
	return failure(err)
}
