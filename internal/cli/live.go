package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"os/user"
	"syscall"
	"time"

	"github.com/canaryctl/canaryctl/internal/ci"
	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/notify"
	"github.com/canaryctl/canaryctl/internal/source"
	"github.com/canaryctl/canaryctl/internal/state"
	"github.com/canaryctl/canaryctl/internal/target"
	"github.com/canaryctl/canaryctl/internal/watch"
)

// live is a release as the commands that move it need it.
type live struct {
	app     *App
	command string
	cfg     *config.Config
	dir     *state.Dir
	target  target.Target
	source  source.Source // nil: the command does not look at traffic
	wide    *watch.Wide   // what the driver reads source through; nil: source itself
	ci      *ci.CI        // nil: not in a CI
	driver  *driver.Driver
	// later keeps what is told to the CI until all scenes are done; nil: there is
	// no other.
	later func(code ExitCode, tell func())
}

// needs says what a command cannot do without.
type needs struct {
	source bool // it looks at traffic
	wide   bool // and at more of it than the driver asks for
	reads  bool // it changes nothing, on disk neither, and tells nobody
	// all: it starts nothing that it could not tell of. Other commands must not be
	// kept from a rollback by a variable that only the pipeline has: what cannot
	// be opened is left to a canaryctl that has it.
	all bool
}

// live wires a command that moves one release.
func (app *App) live(command string, n needs) (*live, error) {
	cfgs, err := app.liveConfigs(command)
	if err != nil {
		return nil, err
	}
	cfg := cfgs[0]
	if len(cfgs) > 1 {
		if cfg, err = app.loadConfig(); err != nil { // which says that there are several
			return nil, err
		}
	}
	return app.liveOf(command, cfg, n)
}

// liveConfigs lists what a command that moves releases acts on.
func (app *App) liveConfigs(command string) ([]*config.Config, error) {
	stayWithoutReader() // not to be ended between a write and its read-back
	if command == rollbackCommand {
		all, _, err := app.rollbackConfigs()
		return all, err
	}
	return app.loadScenes()
}

// liveOf is live for a configuration.
func (app *App) liveOf(command string, cfg *config.Config, n needs) (*live, error) {
	var err error
	l := &live{app: app, command: command, cfg: cfg, ci: ci.Detect(app.Getenv)}
	if l.target, err = app.target(cfg); err != nil {
		return nil, err
	}
	if n.source {
		if l.source, err = app.source(cfg); err != nil {
			return nil, err
		}
	}
	o := driver.Options{
		Config: cfg, Target: l.target, Now: time.Now, Wait: driver.Sleep, Who: l.holder(), Program: version(), Say: app.say,
	}
	if l.dir = stateAt(cfg); !n.reads {
		if l.dir, err = app.openState(cfg, command); err != nil {
			return nil, err
		}
	}
	if o.Dir = l.dir; !n.reads || n.all {
		if o.Channels, o.Hooks, err = app.channels(cfg, n.all); err != nil {
			return nil, err
		}
	}
	if l.source != nil {
		o.Source = l.source
	}
	if n.wide {
		l.wide = watch.NewWide(l.source, cfg.LivePlan())
		o.Source = l.wide
	}
	if l.ci != nil {
		o.RunURL = l.ci.RunURL
	}
	l.driver = driver.New(o)
	return l, nil
}

// rollbackCommand is the command that nothing may keep from its work.
const rollbackCommand = "rollback"

// openState opens the release's directory. A rollback that cannot have it goes
// on in an empty one: it takes the weight to 0, and nobody will find its record
// where it belongs.
func (app *App) openState(cfg *config.Config, command string) (*state.Dir, error) {
	dir, err := state.Open(stateIn(cfg, cfg.State.Dir))
	if err == nil || command != rollbackCommand {
		return dir, usageIf(err, "state.dir must be a directory that can be written")
	}
	aside, tempErr := os.MkdirTemp("", "canaryctl-rollback-")
	if tempErr != nil {
		return nil, usage(err, "state.dir must be a directory that can be written")
	}
	app.warn("%v; the record of this rollback is in %s: give rollback again when state.dir can be written", err, aside)
	return state.Open(stateIn(cfg, aside))
}

// usageIf is [usage] of an error that may be none.
func usageIf(err error, hint string) error {
	if err == nil {
		return nil
	}
	return usage(err, hint)
}

// stayWithoutReader makes the going away of whoever reads the output an error
// of the next line instead of the end of the process. The signal is caught and
// not ignored: hooks and programs would inherit that.
func stayWithoutReader() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// target opens where weights are written.
func (app *App) target(cfg *config.Config) (target.Target, error) {
	if cfg.Target == nil {
		return nil, usage(fmt.Errorf("%s has no target: there is nowhere to write the weight", app.global.Config), "add target: {file: {path: weights.json}} or another of docs/reference/target.md")
	}
	t, err := target.New(cfg.Target, target.Options{
		Service: cfg.ServiceName(), Scene: cfg.Scene, Ring: cfg.HashRingSlots, Getenv: app.Getenv, KeepState: cfg.State.InTarget,
	})
	if err != nil {
		return nil, usage(err, hintOf(err))
	}
	return turns(cfg, t), nil
}

// source opens where windows come from.
func (app *App) source(cfg *config.Config) (source.Source, error) {
	if cfg.Source == nil {
		return nil, usage(fmt.Errorf("%s has no source: nothing says how the canary does", app.global.Config), "add source: {prometheus: ...}, {records: ...} or {windows: ...}; see docs/reference/source.md")
	}
	s, err := source.New(cfg.Source, source.Options{Getenv: app.Getenv, SlowMS: slowMS(cfg), TTFTLimitMS: cfg.Streaming.TTFTSlow.LimitMS.Float64()})
	if err != nil {
		return nil, usage(err, hintOf(err))
	}
	return s, nil
}

// slowMS is from which latency on a request counts as slow, 0 where no step
// asks.
func slowMS(cfg *config.Config) float64 {
	for i := range cfg.Steps {
		if cfg.Steps[i].Fast.P99ByCount {
			return cfg.Steps[i].Fast.P99BaselineMS.Float64()
		}
	}
	return 0
}

// channels opens what is told and what is done after a rollback, before any
// weight is moved. With all, a variable that is unset is an error; else it is
// said, and something stands in for what cannot be opened.
func (app *App) channels(cfg *config.Config, all bool) (channels []notify.Channel, hooks []notify.Hook, err error) {
	o := notify.Options{Getenv: app.Getenv, Now: time.Now}
	failed := func(err error) error {
		if err == nil || all {
			return err
		}
		app.warn("%v; it is left to a canaryctl that can", err)
		return nil
	}
	for i, c := range cfg.Notify {
		channel, err := notify.NewOrAbsent(c, i, o)
		if err := failed(err); err != nil {
			return nil, nil, usage(fmt.Errorf("notify[%d]: %w", i, err), hintOf(err))
		}
		channels = append(channels, channel)
	}
	for i, h := range cfg.Hooks {
		hook, err := notify.NewHookOrAbsent(h, i, o)
		if err := failed(err); err != nil {
			return nil, nil, usage(fmt.Errorf("hooks.on_rollback[%d]: %w", i, err), hintOf(err))
		}
		hooks = append(hooks, hook)
	}
	return channels, hooks, nil
}

// holder is this process, as whoever looks at the release's locks is told of it.
func (l *live) holder() state.Holder {
	return state.Holder{PID: os.Getpid(), Who: l.who(), Command: l.command}
}

// who is the person, or the CI's actor, that gives a command.
func (l *live) who() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if l.ci != nil && l.ci.Actor != "" {
		name = l.ci.Actor
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return name + "@" + host
}

// somethingNew refuses a canary that is the stable version: there is nothing to
// release.
func (l *live) somethingNew() error {
	v := l.cfg.Versions
	if v.Canary != nil && v.Stable != nil && v.Canary.Digest() == v.Stable.Digest() {
		return usage(errors.New("versions.canary is versions.stable: there is nothing to release"), "change model, prompt or gateway of versions.canary")
	}
	return nil
}

// hinted is an error that knows what the user can do.
func hintOf(err error) string {
	if e, ok := errors.AsType[*target.RefusedError](err); ok {
		return e.Hint
	}
	if e, ok := errors.AsType[*target.ShapeError](err); ok {
		return e.Hint
	}
	if e, ok := errors.AsType[*source.Error](err); ok {
		return e.Hint
	}
	return ""
}

// failure turns an error of the driver into one that knows its exit code.
func failure(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	_, busy := errors.AsType[*state.BusyError](err)
	_, lost := errors.AsType[*state.LostError](err)
	_, conflict := errors.AsType[*target.ConflictError](err)
	if busy || lost || conflict {
		return &Error{Code: ExitConflict, Err: err, Hint: "look with canaryctl status, and run the command again"}
	}
	if driver.Damaged(err) {
		return &Error{Code: ExitFailed, Err: err, Hint: "canaryctl history verify names the line; canaryctl rollback works all the same and keeps the damaged files aside"}
	}
	for _, refusal := range []error{
		ladder.ErrNotStarted, ladder.ErrNotLocked, ladder.ErrPaused, ladder.ErrNotPaused, ladder.ErrConfigIsSame,
		ladder.ErrOffLadder, ladder.ErrOtherStep, ladder.ErrNotAwaiting, ladder.ErrNotComplete,
	} {
		if errors.Is(err, refusal) {
			return &Error{Code: ExitConflict, Err: err, Hint: "canaryctl status says where the release stands"}
		}
	}
	return &Error{Code: ExitFailed, Err: err, Hint: hintOf(err)}
}
