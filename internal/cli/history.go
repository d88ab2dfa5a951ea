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
	app.registerScene(f)
	cmd.AddCommand(newVerifyCmd(app))
	return cmd
}

func newVerifyCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check every line, and derive every decision again from its evidence",
		Long: "verify reads the whole journal: each line's own hash, the hash of the line before, and every decision and command once\n" +
			"more from the evidence that is stored with it. The first line that is wrong is named, exit code 1. Keep the head that it\n" +
			"prints elsewhere to prove later that nothing was cut off." + scenesHelp,
		Example: "  canaryctl history verify\n" +
			"  canaryctl history verify -o json | jq -r .head",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runVerify(cmd.Context(), app) },
	}
	app.registerScene(cmd.Flags())
	return cmd
}

// stateDir finds the release's directory, for commands that only read it.
func (app *App) stateDir() (*state.Dir, error) {
	cfg, err := app.loadConfig()
	if err != nil {
		return nil, err
	}
	return stateAt(cfg), nil
}

func runHistory(ctx context.Context, app *App, o historyOptions) error {
	format, err := app.wantOutput("text", "json")
	if err != nil {
		return err
	}
	if o.Last < 0 {
		return usage(errors.New("--last is not negative"), "")
	}
	dir, err := app.stateDir()
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
	text := e.Text(all)
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%6d  %s  %-8s %s", e.N, e.T.UTC().Format(time.RFC3339), e.Kind, strings.ReplaceAll(harmless(text), "\n", " "))
}

// verifyReport is the JSON of history verify.
type verifyReport struct {
	Schema int    `json:"schema"`
	Scene  string `json:"scene,omitempty"`
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
	cfgs, err := app.loadScenes()
	if err != nil {
		return err
	}
	return app.eachScene(cfgs, func(x inScene) error { return x.verify(ctx, format) })
}

// verify proves one journal.
func (x inScene) verify(ctx context.Context, format string) error {
	app := x.app
	v, bad := driver.Verify(ctx, stateAt(x.cfg), x.cfg.ServiceName())
	if bad != nil && !driver.Damaged(bad) {
		return failure(bad)
	}
	if format == "json" {
		r := verifyReport{Schema: 1, Scene: x.cfg.Scene, OK: bad == nil, Verified: v}
		if bad != nil {
			r.Error, r.Line = bad.Error(), badLine(bad)
		}
		if err := encodeIndented(app.Stdout, r); err != nil {
			return err
		}
	} else if bad == nil {
		scene := ""
		if x.later != nil { // there are others
			scene = "scene " + x.cfg.Scene + ": "
		}
		fmt.Fprintf(app.Stdout, "%s%d lines are as they were written; %d decisions and %d commands follow from their evidence; head %s\n", //nolint:errcheck // told by the exit code
			scene, v.Lines, v.Decisions, v.Commands, journal.Brief(v.Head))
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
