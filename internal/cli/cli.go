// Package cli is canaryctl's command line: one file a command, with its
// options, its flags and its wiring. It is the only package besides cmd that
// touches arguments, exit codes and the standard streams.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// App is what a command may use of the world outside: streams, environment
// and the built-in scenarios. Tests replace any of it.
type App struct {
	Stdin  io.Reader
	Stdout io.Writer // the product
	Stderr io.Writer // the conversation

	Getenv    func(string) string
	Scenarios fs.FS // built-in scenarios, *.yaml at the root

	global globalFlags
	hangup *hangup
	scene  string // --scene of the command; "": all there are
	about  string // what its conversation begins with: the scene, where there are several
}

// globalFlags are the flags of every command.
type globalFlags struct {
	Config  string
	Output  string
	NoColor bool
	Quiet   bool
	Verbose bool
}

// Main runs the command line args (without the program's name) and returns
// the exit code. Ctrl-C, SIGTERM and SIGHUP cancel the command's context; a
// second signal kills. So does the first where there is nothing to finish: before
// the command runs, and while it does one thing only, as help and version do.
func Main(args []string, app *App) ExitCode {
	app.hangup = &hangup{}
	ctx, stop := context.Background(), func() {}
	defer func() { stop() }()

	root := newRootCmd(app, args)
	root.SetArgs(args)
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		ctx, stop = app.hangup.untilSignal()
		cmd.SetContext(ctx)
	}
	err := root.ExecuteContext(ctx)
	if code, interrupted := interruption(ctx); interrupted {
		return code // also where what was under way has been finished
	}
	return app.report(err)
}

// interruption returns the exit code of the signal that cancelled ctx.
func interruption(ctx context.Context) (ExitCode, bool) {
	if ctx.Err() == nil {
		return 0, false
	}
	if s, ok := context.Cause(ctx).(signalled); ok {
		switch s.Signal {
		case syscall.SIGTERM:
			return ExitTerminated, true
		case syscall.SIGHUP:
			return ExitHungUp, true
		}
	}
	return ExitInterrupted, true
}

// report says an error to the user and returns its code.
func (app *App) report(err error) ExitCode {
	if err == nil {
		return ExitOK
	}
	if isBrokenPipe(err) {
		return ExitOK // the reader has seen enough
	}
	e, typed := errors.AsType[*Error](err)
	if !typed || e.Err != nil {
		app.tell("error: " + err.Error())
	}
	if typed && e.Hint != "" {
		app.tell("hint: " + e.Hint)
	}
	return codeOf(err)
}

func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// say prints a line of the conversation, unless --quiet.
func (app *App) say(format string, args ...any) {
	if !app.global.Quiet {
		app.tell(fmt.Sprintf(format, args...))
	}
}

// warn prints a warning; --quiet does not silence it.
func (app *App) warn(format string, args ...any) {
	app.tell("warning: " + fmt.Sprintf(format, args...))
}

// tell writes a line of the conversation. What would steer the terminal, as
// file names may, is shown as U+FFFD.
func (app *App) tell(text string) {
	fmt.Fprintf(app.Stderr, "canaryctl: %s%s\n", app.about, harmless(text))
}

// harmless shows what would steer the terminal, or turn the order of what stands
// beside it, as U+FFFD.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// wantOutput checks -o against the formats that a command has; the first is
// the default.
func (app *App) wantOutput(formats ...string) (string, error) {
	if app.global.Output == "" {
		return formats[0], nil
	}
	for _, f := range formats {
		if app.global.Output == f {
			return f, nil
		}
	}
	return "", usage(fmt.Errorf("this command has no output %q", app.global.Output), "it has -o "+strings.Join(formats, "|"))
}

// newRootCmd puts together the commands that these arguments may want.
func newRootCmd(app *App, args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "canaryctl",
		Short: "Decide, on evidence, how far a new version of an LLM application may go",
		Long: "canaryctl learns a service's own noise from a baseline, replays incidents and synthetic feeds through the\n" +
			"very breaker that guards a release, and says what would have happened.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE:          withoutCommand,

		SuggestionsMinimumDistance: 2,
	}
	root.SetIn(app.Stdin)
	root.SetOut(app.Stdout)
	root.SetErr(app.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			if n, ok := errors.AsType[*strconv.NumError](err); ok {
				err = fmt.Errorf("--%s %q: %w", bad.GetFlag().Name, bad.GetValue(), n.Err)
			}
		}
		return usage(err, fmt.Sprintf("see %s --help", cmd.CommandPath()))
	})
	f := root.PersistentFlags()
	f.StringVarP(&app.global.Config, "config", "c", "canary.yaml", "configuration `file`")
	f.StringVarP(&app.global.Output, "output", "o", "", "output `format`: text, json and what the command's help names")
	f.BoolVar(&app.global.NoColor, "no-color", false, "no colour (NO_COLOR and TERM=dumb do the same)")
	f.BoolVarP(&app.global.Quiet, "quiet", "q", false, "no notes on stderr, only warnings and errors")
	f.BoolVarP(&app.global.Verbose, "verbose", "v", false, "more notes on stderr")
	list := commands(app, args)
	root.AddCommand(list...)
	root.CompletionOptions.DisableDefaultCmd = len(list) == 1 // one that is asked for is not completion
	wrapArgs(root.Commands())
	return root
}

// withoutCommand is canaryctl alone, which shows the help, or with a command
// that there is not.
func withoutCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	hint := "canaryctl --help lists the commands"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return usage(fmt.Errorf("there is no command %q", args[0]), hint)
}

// wrapArgs makes arguments that a command does not take a slip of the command
// line, exit code 2, as flags are.
func wrapArgs(list []*cobra.Command) {
	for _, cmd := range list {
		wrapArgs(cmd.Commands())
		if check := cmd.Args; check != nil {
			cmd.Args = func(cmd *cobra.Command, args []string) error {
				if err := check(cmd, args); err != nil {
					return usage(err, fmt.Sprintf("see %s --help", cmd.CommandPath()))
				}
				return nil
			}
		}
	}
}
