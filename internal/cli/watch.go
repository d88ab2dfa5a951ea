package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/tui"
	"github.com/canaryctl/canaryctl/internal/watch"
)

// watchOptions are the flags of watch.
type watchOptions struct {
	Replay string
	Files  []string // further inputs of a replay
	Speed  speedFlag
	Plain  bool
	Looks  looks
	Input  simulateOptions // how a replay is read
	given  func(flag string) bool
}

func newWatchCmd(app *App) *cobra.Command {
	o := &watchOptions{Speed: 60, Input: simulateOptions{app: app}}
	cmd := &cobra.Command{
		Use:   "watch [--replay NAME|FILE [FILE...]]",
		Short: "See a release at a glance, or travel through a replay",
		Long: "watch shows whether a release is safe, why, what comes next and when, and what you can do. It only reads, beside whatever\n" +
			"drives the release; closing it stops nothing. Keys: p pauses, a approves, r rolls back, each after asking once and through\n" +
			"the code of the command of that name; ? shows all keys, q leaves.\n\n" +
			"With --replay it shows a built-in scenario, a scenario file, recorded files or the journal of a release, as simulate\n" +
			"replays them: space plays and stops, left and right step a window, [ and ] go to what happened.\n\n" +
			"Where stdout is no terminal, or with --plain, it prints a line for each change; -o json prints JSON documents, as run does.\n\n" +
			`EXIT STATUS
  0    left with q, the end of a replay in lines, or nobody reads the output any more
  1    nothing can be seen of the release, as with a damaged journal
  2    the command line, the configuration or the input cannot be used
  130  Ctrl-C; 129 SIGHUP, 143 SIGTERM`,
		Example: "  canaryctl watch\n" +
			"  canaryctl watch --plain | tee release.log\n" +
			"  canaryctl watch --replay scenario-a --speed 600x\n" +
			"  canaryctl watch --replay .canaryctl/order-service/journal.jsonl\n" +
			"  canaryctl watch -c canary.yaml --replay stable.jsonl.gz canary.jsonl.gz",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Files, o.given, o.Input.given = args, cmd.Flags().Changed, cmd.Flags().Changed
			return runWatch(cmd.Context(), app, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Replay, "replay", "", "show a replay of this scenario or `file`")
	f.Var(&o.Speed, "speed", "how many seconds of a replay pass in one, such as `60x`")
	f.BoolVar(&o.Plain, "plain", false, "a line for each change, on a terminal too")
	app.registerScene(f)
	o.Looks.register(f)
	o.registerInput(f)
	return cmd
}

// replayFlags are those that say how a replay is read.
var replayFlags = []string{"speed", "seed", "thin", "approve", "map", "arm", "input-span", "max-bad", "epoch", "sum-duplicates"}

func (o *watchOptions) registerInput(f *pflag.FlagSet) {
	f.Uint64Var(&o.Input.Seed, "seed", 1, "`seed` of a scenario")
	f.BoolVar(&o.Input.Thin, "thin", false, "thin recorded windows to the ladder's share")
	f.BoolVar(&o.Input.Approve, "approve", false, "give every approval as soon as it is asked for")
	o.Input.Read.register(f)
}

func runWatch(ctx context.Context, app *App, o *watchOptions) error {
	format, err := app.wantOutput("text", "json")
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	stayWithoutReader()
	if o.Replay != "" {
		if format == "json" {
			return usage(errors.New("a replay in the view has no JSON"), "canaryctl simulate "+o.Replay+" -o json has all that comes of it")
		}
		return o.replay(ctx, app)
	}
	if format == "json" {
		return app.watchJSON(ctx)
	}
	if o.Plain || !app.drawable() {
		return app.watchLines(ctx)
	}
	screen, err := app.screen(o.Looks)
	if err != nil {
		app.say("%v: a line for each change instead", err)
		return app.watchLines(ctx)
	}
	defer screen.Close()
	return app.watchScreen(ctx, screen)
}

// check refuses what goes only with a replay.
func (o *watchOptions) check() error {
	if err := o.Looks.check(); err != nil {
		return err
	}
	if o.Replay != "" {
		return nil
	}
	switch at := slices.IndexFunc(replayFlags, o.given); {
	case o.given("replay"):
		return usage(errors.New("--replay is given and says nothing"), "name a scenario or a file; canaryctl simulate --list has the built-in ones")
	case len(o.Files) > 0:
		return usage(fmt.Errorf("watch shows the release of canary.yaml, not %s", o.Files[0]), "canaryctl watch --replay "+o.Files[0]+" shows a replay")
	case at >= 0:
		return usage(fmt.Errorf("--%s is about replays", replayFlags[at]), "say what is replayed with --replay NAME|FILE")
	}
	return nil
}

// feed is the live release as a view sees it, which only reads. That nothing can
// be seen of it, as where the journal cannot be trusted, is an error at once.
func (app *App) feed(ctx context.Context, command string) (*watch.Live, error) {
	l, err := app.live(command, needs{source: true, wide: true, reads: true})
	if err != nil {
		return nil, err
	}
	if !l.target.KeepsState() { // a target that is away would keep the view from opening
		if _, err := l.driver.Where(ctx); err != nil {
			return nil, failure(err)
		}
	}
	return watch.NewLive(watch.LiveOptions{
		Driver: l.driver, Source: l.wide, Target: l.target.String(), Dir: l.dir, Config: l.cfg, Now: time.Now, Wait: driver.Sleep,
	}), nil
}

// watchScreen shows the live release in the view until it is left.
func (app *App) watchScreen(ctx context.Context, s *screen) error {
	quiet, under := app.under()
	feed, err := under.feed(ctx, "watch")
	if err != nil {
		return err
	}
	quiet.hold()
	how, err := app.show(ctx, s, tui.Options{Feed: feed, Actions: &hands{app, ctx, "watch"}, Notes: quiet.lines})
	quiet.release()
	return endedAs(ctx, how, err)
}

// show runs the view on a screen. Whatever breaks in it is an error.
func (app *App) show(ctx context.Context, s *screen, o tui.Options) (how tui.Ending, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("the view broke off: %v", broken)
		}
	}()
	o.In, o.Out, o.Now, o.Colors, o.Dark, o.ASCII = s.in, app.Stdout, time.Now, s.colors, s.dark, s.ascii
	return tui.Run(ctx, o)
}

// endedAs is the end of a command whose view has ended.
func endedAs(ctx context.Context, how tui.Ending, err error) error {
	switch {
	case err != nil:
		return err
	case how == tui.Interrupted:
		return silent(ExitInterrupted)
	case how == tui.Cancelled:
		return context.Cause(ctx)
	}
	return nil
}

// speedFlag is how many seconds pass in one: 60x, 60 or 0.5x.
type speedFlag float64

// String implements [pflag.Value].
func (s *speedFlag) String() string {
	return strconv.FormatFloat(float64(*s), 'f', -1, 64) + "x"
}

// Set implements [pflag.Value].
func (s *speedFlag) Set(text string) error {
	v, err := strconv.ParseFloat(strings.TrimSuffix(text, "x"), 64)
	if err != nil || !(v >= tui.Slowest && v <= tui.Fastest) {
		return fmt.Errorf("%q is no speed from 0.1x to 100000x, such as 60x: a minute of the replay in a second", text)
	}
	*s = speedFlag(v)
	return nil
}

// Type implements [pflag.Value].
func (s *speedFlag) Type() string { return "speed" }
