package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// promoteOptions are the flags of promote.
type promoteOptions struct {
	ExpectStep int
	Wait       bool
	Timeout    time.Duration
	DryRun     bool
	AllowHold  bool
	Restart    bool
	Reason     string

	expects bool // --expect-step was given
}

// promoteExitStatus is what a pipeline goes by.
const promoteExitStatus = `EXIT STATUS
  0   done: started, advanced, completed
  1   failed: the target could not be read or written, or canaryctl itself failed
  2   the command line or the configuration cannot be used
  3   held or probing; 0 with --allow-hold
  4   awaiting approval
  5   rolled back or locked
  6   rollback incomplete: the weight was not read back as 0
  7   drift: the weight is not what was last read back
  8   conflict: someone else moved, or the release is not at the step that was expected
  9   the source could not be read; the weight is untouched`

func newPromoteCmd(app *App) *cobra.Command {
	var o promoteOptions
	cmd := &cobra.Command{
		Use:   "promote",
		Short: "Look at the canary once and take it one step further, or back",
		Long: "promote reads the target's weight and the windows since the last look, decides, and does what it decided: at most one\n" +
			"step forward, or all the way back to 0. The first one starts the release. It may be run as often as you like, by\n" +
			"several at once, and from a plain CI: what has been done is not done again. A write counts only when it was read back.\n\n" +
			"In GitHub Actions and GitLab CI it writes a summary, outputs and an annotation. docs/guides/ci.md has both pipelines.\n\n" +
			promoteExitStatus + scenesHelp,
		Example: "  canaryctl promote\n" +
			"  canaryctl promote --wait --timeout 3h --expect-step 2\n" +
			"  canaryctl promote --dry-run -o json | jq .decision",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.expects = cmd.Flags().Changed("expect-step")
			return runPromote(cmd.Context(), app, o)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.ExpectStep, "expect-step", 0, "the `step` that the release must be at, 0 for not started: at another nothing is done, exit code 8")
	f.BoolVar(&o.Wait, "wait", false, "look again every window until something other than a hold is decided")
	f.DurationVar(&o.Timeout, "timeout", 0, "with --wait: give up after so long, exit code 3; 0 is never")
	f.BoolVar(&o.DryRun, "dry-run", false, "say what would be done and do nothing")
	f.BoolVar(&o.AllowHold, "allow-hold", false, "a hold is exit code 0, not 3")
	f.BoolVar(&o.Restart, "restart", false, "give up the unfinished release of another candidate: weight to 0, then start this one")
	f.StringVar(&o.Reason, "reason", "", "why, for the journal; with --restart")
	app.registerScene(f)
	return cmd
}

func runPromote(ctx context.Context, app *App, o promoteOptions) error {
	if _, err := app.wantOutput("text", "json"); err != nil {
		return err
	}
	if o.Timeout < 0 || o.Timeout > 0 && !o.Wait {
		return usage(errors.New("--timeout goes with --wait and is not negative"), "")
	}
	if err := wantRestart(o.Reason, o.Restart); err != nil {
		return err
	}
	cfgs, err := app.liveConfigs("promote")
	if err != nil {
		return err
	}
	return app.eachScene(cfgs, func(x inScene) error { return promoteIn(ctx, x, o) })
}

func promoteIn(ctx context.Context, x inScene, o promoteOptions) error {
	l, err := x.live("promote", needs{source: true, all: true, reads: o.DryRun})
	if err != nil {
		return err
	}
	if err := l.somethingNew(); err != nil {
		return err
	}
	if n := len(l.cfg.Steps); o.expects && (o.ExpectStep < 0 || o.ExpectStep > n) {
		return usage(fmt.Errorf("--expect-step %d: the ladder has steps 1 to %d, and 0 is not started", o.ExpectStep, n), "")
	}
	if o.expects {
		l.driver.Expect(o.ExpectStep)
	}
	if o.Restart && !o.DryRun {
		if err := l.driver.Expected(ctx); err != nil {
			return stepFailure(err)
		}
		if err := l.restart(ctx, o.Reason); err != nil {
			return err
		}
	}
	res, err := l.promote(ctx, o)
	if err != nil {
		return stepFailure(err)
	}
	code := exitOf[res.Status]
	if code == ExitHeld && o.AllowHold {
		code = ExitOK
	}
	return l.stood(res, code)
}

// promote is one look, or with --wait as many as it takes.
func (l *live) promote(ctx context.Context, o promoteOptions) (*driver.Result, error) {
	if o.DryRun {
		return l.driver.Peek(ctx)
	}
	if o.Wait {
		return l.promoteUntil(ctx, o.Timeout)
	}
	res, err := l.driver.Promote(ctx)
	if err != nil {
		return nil, err
	}
	return l.swapped(ctx, res, l.driver.Settle(ctx))
}

// promoteUntil looks until something other than a hold is decided.
func (l *live) promoteUntil(ctx context.Context, timeout time.Duration) (*driver.Result, error) {
	waiting := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	res, err := l.driver.Until(waiting, func(r *driver.Result) bool {
		if l.app.global.Verbose {
			l.app.say("%s: %s", r.Outcome.Move, r.Outcome.Reason)
		}
		return r.Status != driver.Holding && r.Status != driver.SourceLost || r.Outcome.Overdue
	})
	late := err != nil && waiting.Err() != nil && ctx.Err() == nil
	if late && res == nil {
		return nil, &Error{Code: ExitHeld, Err: fmt.Errorf("nothing was decided within %s: target and source had not answered by then", timeout), Hint: "give --timeout more time"}
	}
	if err != nil && !late {
		return nil, err
	}
	return l.swapped(ctx, res, l.driver.Settle(ctx))
}

// swapped makes the canary the stable of the versions document when the release
// has completed, if the configuration says so. warn is what could not be told.
func (l *live) swapped(ctx context.Context, res *driver.Result, warn error) (*driver.Result, error) {
	if warn != nil {
		l.app.warn("%v", warn)
	}
	r := res.Release
	begun := r.Exchange != nil && !r.Exchange.Done // and gone on with by every look
	if r.Ladder.Stage != ladder.Completed || r.Ladder.Weight.IsZero() || begun {
		return res, nil
	}
	return res, l.driver.Swap(ctx)
}

// stepFailure is failure for a release that may be at another step.
func stepFailure(err error) error {
	if e, other := errors.AsType[*driver.StepError](err); other {
		return &Error{Code: ExitConflict, Err: e, Hint: "canaryctl status says where it stands"}
	}
	return failure(err)
}

// wantRestart refuses a reason that would go nowhere.
func wantRestart(reason string, restart bool) error {
	if reason != "" && !restart {
		return usage(errors.New("--reason goes with --restart: nothing else that promote and run do is a person's decision"), "")
	}
	return nil
}

// restart gives up the unfinished release of another candidate, if there is
// one: its weight goes to 0 first. A complete one is not unfinished: all
// traffic is on it, and nothing but a rollback takes it away.
func (l *live) restart(ctx context.Context, reason string) error {
	r, err := l.driver.Where(ctx)
	if err != nil {
		return failure(err)
	}
	ours := r.Candidate != "" && r.Candidate == l.driver.Plan().Candidate
	complete := r.Ladder.Stage == ladder.Completed && r.Ladder.Breaker.Phase == release.Closed
	if r.Ladder.Stage == ladder.NotStarted || ours || complete {
		return nil // a pipeline that always says --restart goes on with its own
	}
	if !r.Ladder.Weight.IsZero() || r.Ladder.Pending.Move != release.Hold {
		res, err := l.driver.RollBack(ctx, "restart: "+reason)
		if err != nil {
			return failure(err)
		}
		if res.Status != driver.RolledBack {
			return l.stood(res, exitOf[res.Status])
		}
	}
	_, err = l.driver.Command(ctx, ladder.Command{Verb: ladder.DoRestart, Reason: reason})
	return failure(err)
}
