package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/state"
)

// historyOptions are the flags of history.
type historyOptions struct {
	All  bool
	Last int
}

func newHistoryCmd(app *App) *cobra.Command {
	var o historyOptions
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Show what was decided and done, or prove it",
		Long: "history prints the journal of a release, a line for each change, command, write, record, message and hook; with --all the\n" +
			"holds as well. -o json prints the journal's own lines, byte for byte; --all -o json is the whole journal, of which each line's sum\n" +
			"is the SHA-256 of what stands before ,\"sum\": and prev the sum of the line before.",
		Example: "  canaryctl history\n" +
			"  canaryctl history --last 20 -o json\n" +
			"  canaryctl history verify",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runHistory(cmd.Context(), app, o) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.All, "all", false, "every decision, holds too")
	f.IntVar(&o.Last, "last", 0, "only the newest `n` lines; 0 is all")
	cmd.AddCommand(newVerifyCmd(app))
	return cmd
}

func newVerifyCmd(app *App) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check every line, and derive every decision again from its evidence",
		Long: "verify reads the whole journal: each line's own hash, the hash of the line before, and every decision and command once\n" +
			"more from the evidence that is stored with it. The first line that is wrong is named, exit code 1. Keep the head that it\n" +
			"prints elsewhere to prove later that nothing was cut off.",
		Example: "  canaryctl history verify\n" +
			"  canaryctl history verify -o json | jq -r .head",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runVerify(cmd.Context(), app) },
	}
}

// stateDir finds the release's directory, for commands that only read it.
func (app *App) stateDir() (*state.Dir, string, error) {
	cfg, err := app.loadConfig()
	if err != nil {
		return nil, "", err
	}
	return state.At(cfg.State.Dir, cfg.TargetService), cfg.TargetService, nil
}

func runHistory(ctx context.Context, app *App, o historyOptions) error {
	format, err := app.wantOutput("text", "json")
	if err != nil {
		return err
	}
	if o.Last < 0 {
		return usage(errors.New("--last is not negative"), "")
	}
	dir, _, err := app.stateDir()
	if err != nil {
		return err
	}
	p := historyPrinter{out: app.Stdout, json: format == "json", all: o.All, last: o.Last}
	stayWithoutReader()
	err = journal.Lines(ctx, dir.Journal(), journal.Head{}, func(e *journal.Entry, _ journal.Head, line []byte) error { return p.take(e, line) })
	if errors.Is(err, fs.ErrNotExist) {
		if saved, loadErr := dir.Load(); loadErr == nil && saved != nil {
			return &Error{Code: ExitFailed, Err: fmt.Errorf("the journal %s is gone, and the state beside it is of a release", dir.Journal()), Hint: "restore it; canaryctl rollback works without it"}
		}
		app.say("there is no release yet here: %s does not exist", dir.Journal())
		return nil
	}
	return errors.Join(p.flush(), failure(err))
}

// historyPrinter prints entries as they come, or the newest of them at the end.
type historyPrinter struct {
	out  io.Writer
	json bool
	all  bool
	last int
	kept []string
}

// take prints an entry; raw is its line of the journal, which JSON shows as it
// stands, with its sum.
func (p *historyPrinter) take(e *journal.Entry, raw []byte) error {
	line := historyLine(e, p.all)
	if p.json && line != "" {
		line = string(raw)
	}
	if line == "" {
		return nil
	}
	if p.last == 0 {
		_, err := fmt.Fprintln(p.out, line)
		return err
	}
	p.kept = append(p.kept, line)
	if len(p.kept) > p.last {
		p.kept = p.kept[1:]
	}
	return nil
}

func (p *historyPrinter) flush() error {
	for _, line := range p.kept {
		if _, err := fmt.Fprintln(p.out, line); err != nil {
			return err
		}
	}
	return nil
}

// historyLine says an entry in a line, or "" where it tells nothing new.
func historyLine(e *journal.Entry, all bool) string {
	text := ""
	switch e.Kind {
	case journal.Config:
		text = fmt.Sprintf("configuration %s, stable %s, canary %s", e.Configured.ID, brief(e.Configured.Stable), brief(e.Configured.Candidate))
	case journal.Decide:
		text = decideLine(e.Decided, all)
	case journal.Command:
		text = fmt.Sprintf("%s by %s", e.Command.Verb, e.Command.By)
		if e.Command.Reason != "" {
			text += ": " + e.Command.Reason
		}
	case journal.Write:
		text = writeLine(e.Wrote)
	case journal.Record:
		if e.Record.Final || len(e.Record.Hooks) == 0 || all {
			text = recordLine(e.Record) // between the first and the final one hooks come in, which have lines of their own
		}
	case journal.Tell:
		text = delivery("told "+e.Told.Channel, e.Told.OK, e.Told.GivenUp, e.Told.Tries, e.Told.Error) + " (" + e.Told.Key + ")"
	case journal.Hook:
		text = delivery("hook "+e.Hooked.Hook, e.Hooked.OK, e.Hooked.GivenUp, e.Hooked.Try, e.Hooked.Error)
	case journal.Adopt:
		text = "took over the state that the target keeps"
	case journal.Moved:
		text = "the target is " + e.Target + " now"
	case journal.Note:
		text = e.Note
	}
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%6d  %s  %-8s %s", e.N, e.T.UTC().Format(time.RFC3339), e.Kind, strings.ReplaceAll(harmless(text), "\n", " "))
}

func decideLine(d *journal.Decided, all bool) string {
	o := &d.Outcome
	if (o.Move == release.Hold || o.Move == release.AwaitApproval) && o.Event == nil && !all {
		return ""
	}
	text := fmt.Sprintf("%s to %s, step %d of %d, attempt %d: %s", o.Move, o.Weight, o.Step, o.Steps, o.Attempt, o.Reason)
	if o.Move == release.Hold || o.Move == release.AwaitApproval {
		text = fmt.Sprintf("%s at %s, step %d of %d, attempt %d: %s", o.Move, o.Weight, o.Step, o.Steps, o.Attempt, o.Reason)
	}
	if o.Event != nil {
		text += fmt.Sprintf(" [%s -> %s]", o.Event.From, o.Event.To)
	}
	return text
}

func writeLine(w *journal.Wrote) string {
	what := w.To.String()
	switch {
	case w.Begun != nil:
		return "the exchange of the two versions is asked for"
	case w.Exchange:
		what = "the exchange of the two versions"
	case w.Move == release.Hold:
		what = "the release's state in the target"
	}
	if w.ReadBack {
		text := fmt.Sprintf("%s read back at %s", what, stampOf(w.At))
		if w.Tries > 1 {
			text += fmt.Sprintf(" after %d tries", w.Tries)
		}
		return text
	}
	text := fmt.Sprintf("%s NOT read back after %d tries: %s", what, w.Tries, w.Error)
	if w.GivenUp {
		text += "; given up"
	}
	return text
}

func recordLine(r *journal.Rollback) string {
	by := map[string]string{"breaker": "the breaker", "gate": "a gate", "person": "a person"}
	text := fmt.Sprintf("rollback by %s at %s of traffic, step %d, attempt %d: %s; weight 0 read back %s, exposure %d requests",
		by[r.By], r.Share, r.Step, r.Attempt, r.Reason, stampOf(r.ReadBack), r.Exposure.Requests)
	if !r.Final {
		text += " so far"
	}
	return text
}

func delivery(what string, ok, givenUp bool, tries int, err string) string {
	switch {
	case ok:
		return what
	case givenUp:
		return fmt.Sprintf("%s: given up after %d tries: %s", what, tries, err)
	case tries == 0:
		return what + ": not tried: " + err
	}
	return fmt.Sprintf("%s: try %d failed: %s", what, tries, err)
}

func brief(digest string) string {
	if digest == "" {
		return "unnamed"
	}
	return digest[:min(len(digest), 12)]
}

// verifyReport is the JSON of history verify.
type verifyReport struct {
	Schema int    `json:"schema"`
	OK     bool   `json:"ok"`
	Line   int64  `json:"line,omitempty"` // the first that is wrong
	Error  string `json:"error,omitempty"`
	*driver.Verified
}

func runVerify(ctx context.Context, app *App) error {
	format, err := app.wantOutput("text", "json")
	if err != nil {
		return err
	}
	dir, service, err := app.stateDir()
	if err != nil {
		return err
	}
	v, bad := driver.Verify(ctx, dir, service)
	if bad != nil && !driver.Damaged(bad) {
		return failure(bad)
	}
	if format == "json" {
		r := verifyReport{Schema: 1, OK: bad == nil, Verified: v}
		if bad != nil {
			r.Error, r.Line = bad.Error(), badLine(bad)
		}
		if err := encodeIndented(app.Stdout, r); err != nil {
			return err
		}
	} else if bad == nil {
		fmt.Fprintf(app.Stdout, "%d lines are as they were written; %d decisions and %d commands follow from their evidence; head %s\n", //nolint:errcheck // told by the exit code
			v.Lines, v.Decisions, v.Commands, brief(v.Head))
	}
	if bad != nil {
		return &Error{Code: ExitFailed, Err: bad, Hint: fmt.Sprintf("the %d lines before it are as they were written", v.Lines)}
	}
	return nil
}

// badLine is the line that an error names, 0 if none.
func badLine(err error) int64 {
	if e, ok := errors.AsType[*journal.CorruptError](err); ok {
		return e.Line
	}
	if e, ok := errors.AsType[*driver.MismatchError](err); ok {
		return e.Line
	}
	if e, ok := errors.AsType[*driver.CutError](err); ok {
		return e.Want
	}
	return 0
}
