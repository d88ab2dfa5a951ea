package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/metrics"
	"github.com/canaryctl/canaryctl/internal/state"
)

// runOptions are the flags of run.
type runOptions struct {
	Metrics string
	Restart bool
	Reason  string
	TUI     bool
	Looks   looks
}

func newRunCmd(app *App) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Promote once a window until the release is complete or locked",
		Long: "run does what promote does, once a window, and goes on through rollback, cooldown, probes and recovery. It ends when the\n" +
			"release is complete (exit code 0), when only a person can let it go on (5), or by a signal: it finishes the write that is\n" +
			"under way, and the next run or promote takes the release up where it stands. Approvals, pauses and rollbacks are given\n" +
			"from other terminals. It prints a line for each change; -o json prints a JSON document a line.\n\n" +
			"With --tui it shows the release as watch does. q closes that view alone and run goes on in lines; Ctrl-C ends run, and is\n" +
			"asked for once.\n\n" +
			"With --metrics it answers /metrics in the text format of Prometheus, and /healthz.\n\n" +
			"Where the configuration has scenes it drives all of them in one process, each by itself, and ends when every one has\n" +
			"ended: the exit code is the most severe, in the order 6, 5, 7, 8, 9, 1, 2, 4, 3, 0. --scene drives one.",
		Example: "  canaryctl run\n" +
			"  canaryctl run --tui\n" +
			"  canaryctl run --metrics 127.0.0.1:9464 -o json >> release.jsonl",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runRun(cmd.Context(), app, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.Metrics, "metrics", "", "`address` to answer /metrics and /healthz at, such as 127.0.0.1:9464")
	f.BoolVar(&o.Restart, "restart", false, "give up the unfinished release of another candidate: weight to 0, then start this one")
	f.StringVar(&o.Reason, "reason", "", "why, for the journal; with --restart")
	f.BoolVar(&o.TUI, "tui", false, "show the release in a view, as watch does")
	app.registerScene(f)
	o.Looks.register(f)
	return cmd
}

func runRun(ctx context.Context, app *App, o runOptions) error {
	format, err := app.wantOutput("text", "json")
	if err != nil {
		return err
	}
	if err := wantRestart(o.Reason, o.Restart); err != nil {
		return err
	}
	if o.TUI && app.scene == "" {
		if _, err := app.loadConfig(); err != nil { // which refuses several scenes
			return err
		}
	}
	var v *runView
	if o.TUI {
		if v, err = app.runView(format, o.Looks); err != nil {
			return err
		}
		defer v.screen.Close()
		app = v.under
	}
	rs, release, err := app.runnings(format)
	defer release()
	if err != nil {
		return err
	}
	if o.Metrics != "" {
		stop, err := app.listen(o.Metrics, rs)
		if err != nil {
			return err
		}
		defer stop()
	}
	if len(rs) > 1 {
		return app.runScenes(ctx, rs, o)
	}
	if err := rs[0].restart(ctx, o); err != nil {
		return err
	}
	if v != nil {
		return v.over(ctx, rs[0])
	}
	return rs[0].closed(rs[0].drive(ctx))
}

// runnings wires a loop for each scene, or for the service, and makes sure that
// no other process runs one: nothing starts unless all can.
func (app *App) runnings(format string) (rs []*running, release func(), err error) {
	var held []func() error
	release = func() {
		for _, r := range held {
			_ = r() // the process's end releases it as well
		}
	}
	cfgs, err := app.liveConfigs("run")
	if err != nil {
		return nil, release, err
	}
	stdout, stderr, width := &oneWriter{to: app.Stdout}, &oneWriter{to: app.Stderr}, 0
	for _, cfg := range cfgs {
		width = max(width, len(cfg.Scene))
	}
	for _, cfg := range cfgs {
		its := app
		if len(cfgs) > 1 {
			its = app.in(cfg.Scene, stdout, stderr)
		}
		r, let, err := its.running(cfg, format, width)
		if err != nil && len(cfgs) > 1 {
			its.report(err) // which names the scene
			err = silent(codeOf(err))
		}
		if err != nil {
			return nil, release, err
		}
		held = append(held, let)
		rs = append(rs, r)
	}
	return rs, release, nil
}

// running wires the loop of one release, which nobody else runs until release.
func (app *App) running(cfg *config.Config, format string, width int) (r *running, release func() error, err error) {
	l, err := app.liveOf("run", cfg, needs{source: true, all: true})
	if err != nil {
		return nil, nil, err
	}
	if err := l.somethingNew(); err != nil {
		return nil, nil, err
	}
	if release, err = l.alone(); err != nil {
		return nil, nil, err
	}
	exporter := metrics.NewExporter(3*max(l.source.Span(), time.Minute), time.Now)
	return &running{l: l, format: format, width: width, exporter: exporter}, release, nil
}

// alone makes sure that no other process runs the release's loop.
func (l *live) alone() (release func() error, err error) {
	who := l.holder()
	who.Since = time.Now().UTC()
	release, alone, err := l.dir.Driving(who)
	if err != nil {
		return nil, failure(err)
	}
	if !alone {
		return nil, &Error{Code: ExitConflict, Err: anotherRuns(l.dir.Runner()), Hint: "look at it with canaryctl status"}
	}
	return release, nil
}

// restart gives up another candidate's release, if that was asked for.
func (r *running) restart(ctx context.Context, o runOptions) error {
	if !o.Restart {
		return nil
	}
	return r.l.restart(ctx, o.Reason)
}

// anotherRuns names the one that does.
func anotherRuns(by state.Holder) error {
	if by.PID == 0 {
		return errors.New("another canaryctl run drives this release")
	}
	return fmt.Errorf("another canaryctl run drives this release: %s, process %d, since %s", by.Who, by.PID, by.Since.UTC().Format(time.RFC3339))
}

// running is a loop under way, of one release.
type running struct {
	l        *live
	format   string
	exporter *metrics.Exporter
	last     string  // what was printed last, without figures
	said     remarks // notes of the last tick that had any
	ticks    metrics.Durations
	width    int    // of the longest scene's name
	ticked   func() // after each tick; nil: nobody wants to know
}

// drive promotes once a window until there is nothing left to do, and does what
// follows.
func (r *running) drive(ctx context.Context) (*driver.Result, error) {
	res, err := r.l.driver.Loop(ctx, r.tick)
	if err != nil {
		return nil, failure(err)
	}
	if err := r.l.driver.Settle(context.WithoutCancel(ctx)); err != nil {
		r.l.app.warn("%v", err)
	}
	res, err = r.l.swapped(ctx, res, nil)
	return res, failure(err)
}

// closed says where the release stands at the end.
func (r *running) closed(res *driver.Result, err error) error {
	if err != nil {
		return err
	}
	if r.format == "json" {
		if code := exitOf[res.Status]; code != ExitOK {
			return silent(code)
		}
		return nil
	}
	return r.l.stood(res, exitOf[res.Status])
}

// tick shows what a tick came to: a line for each change, and the metrics.
func (r *running) tick(res *driver.Result, err error) {
	if r.ticked != nil {
		defer r.ticked()
	}
	if err != nil {
		r.l.app.warn("%v", err)
		return
	}
	r.ticks.Observe(res.Took)
	r.exporter.Set(viewOf(r.l, res, r.ticks))
	r.notes(res.Notes)
	now := where(res)
	if now == r.last && !r.l.app.global.Verbose {
		return
	}
	r.last = now
	s := r.l.standing(res, exitOf[res.Status])
	if r.format == "json" {
		if err := encodeLine(r.l.app.Stdout, s); err != nil {
			r.l.app.warn("%v", err)
		}
		return
	}
	scene := ""
	if s.Scene != "" {
		scene = fmt.Sprintf("%-*s  ", r.width, s.Scene)
	}
	fmt.Fprintf(r.l.app.Stdout, "%s  %s%-14s step %d of %d  %s %%  %-9s  %s\n", //nolint:errcheck // a closed pipe must not end a release
		time.Now().UTC().Format(time.RFC3339), scene, s.Decision, s.Step, s.Steps, percentOf(s.Pct), s.Breaker, s.Reason)
	if s.Error != "" {
		r.l.app.warn("%s", s.Error)
	}
}

// where is what of a result makes a line of its own: nothing that grows by
// itself.
func where(res *driver.Result) string {
	o := &res.Outcome
	return fmt.Sprint(o.Move, o.Why, o.Step, o.Attempt, o.Phase, res.Status, o.Paused, o.Locked)
}

// notes says what the tick before has not said.
func (r *running) notes(notes []string) {
	if fresh := r.said.fresh(notes); !r.l.app.global.Verbose {
		notes = fresh
	}
	for _, n := range notes {
		r.l.app.say("%s", n)
	}
}

// listen answers /metrics and /healthz for all loops until stop.
func (app *App) listen(address string, rs []*running) (stop func(), err error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, usage(fmt.Errorf("--metrics: %w", err), "give a free address, such as 127.0.0.1:9464")
	}
	mux := http.NewServeMux()
	var all metrics.Joint
	for _, r := range rs {
		all = append(all, r.exporter)
	}
	mux.Handle("GET /metrics", all.Handler())
	mux.Handle("GET /healthz", all.Health())
	warn := app.warn
	server := newHTTPServer(mux, warn, serveLimits)
	go func() {
		if err := server.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			warn("metrics: %v", err)
		}
	}()
	app.say("metrics at http://%s/metrics", l.Addr())
	if at, ok := l.Addr().(*net.TCPAddr); ok && !at.IP.IsLoopback() {
		app.warn("--metrics %s answers everybody who can reach it, without a token: let a firewall or a proxy stand before it", address)
	}
	return func() { server.Close() }, nil //nolint:errcheck // nothing is lost with it
}
