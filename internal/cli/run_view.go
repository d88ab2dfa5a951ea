package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/tui"
)

// runView is a view over the loop of this very process.
type runView struct {
	app      *App // with the terminal
	under    *App // what the loop works with: its streams are held while there is a view
	out, err *aside
	screen   *screen
}

// runView makes what run needs to work under a view.
func (app *App) runView(format string, k looks) (*runView, error) {
	switch {
	case format == "json":
		return nil, usage(errors.New("--tui and -o json do not go together"), "leave out one of them; canaryctl watch shows a release that another run drives")
	case !app.drawable():
		return nil, usage(fmt.Errorf("--tui: %w", errNoTerminal), "leave out --tui: run prints a line for each change")
	}
	if err := k.check(); err != nil {
		return nil, err
	}
	s, err := app.screen(k)
	if err != nil {
		return nil, usage(fmt.Errorf("--tui: %w", err), "leave out --tui: run prints a line for each change")
	}
	v := &runView{app: app, screen: s}
	v.err, v.under = app.under()
	v.out = &aside{to: app.Stdout, lines: make(chan string, 1)} // where it stands is the last line
	v.under.Stdout = v.out
	return v, nil
}

// driven is what a loop came to.
type driven struct {
	res    *driver.Result
	err    error
	broken string // by this panic
}

// over runs the loop with the view over it. The view's end does not end the loop
// unless the person asked for that; the loop's end ends the view.
func (v *runView) over(ctx context.Context, r *running) error {
	feed, err := v.under.feed(ctx, "run")
	if err != nil {
		return err
	}
	loop, stop := context.WithCancel(ctx)
	defer stop()
	view, leave := context.WithCancel(ctx)
	defer leave()
	r.ticked = feed.Poke
	if v.app.hangup != nil {
		v.app.hangup.outlive(leave) // the release is not left alone because a terminal was
	}
	v.hold()
	end := make(chan driven, 1)
	go func() {
		defer leave()
		end <- r.driven(loop)
	}()
	how, err := v.app.show(view, v.screen, tui.Options{
		Feed: feed, Actions: &hands{v.app, ctx, "run --tui"}, Driving: true, Notes: v.err.lines,
	})
	v.release()
	switch {
	case err != nil:
		v.app.warn("%v; run goes on, Ctrl-C ends it", err)
	case how == tui.Interrupted:
		stop()
	case how == tui.Left && view.Err() == nil:
		v.app.say("the view is closed; run goes on, Ctrl-C ends it")
	}
	d := <-end
	if d.broken != "" {
		panic(d.broken)
	}
	if r.l.app = v.app; errors.Is(d.err, context.Canceled) && ctx.Err() == nil {
		return silent(ExitInterrupted)
	}
	return r.closed(d.res, d.err)
}

// driven is [running.drive] whose panic waits until the terminal is as it was.
func (r *running) driven(ctx context.Context) (d driven) {
	defer func() {
		if broken := recover(); broken != nil {
			d.broken = fmt.Sprintf("%v\n%s", broken, debug.Stack())
		}
	}()
	d.res, d.err = r.drive(ctx)
	return d
}

func (v *runView) hold() {
	v.out.hold()
	v.err.hold()
}

func (v *runView) release() {
	v.out.release()
	v.err.release()
}
