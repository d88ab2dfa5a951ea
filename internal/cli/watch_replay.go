package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/simulate"
	"github.com/canaryctl/canaryctl/internal/tui"
	"github.com/canaryctl/canaryctl/internal/watch"
)

// replay shows what simulate would replay.
func (o *watchOptions) replay(ctx context.Context, app *App) error {
	reel, err := o.reel(ctx)
	if err != nil {
		return err
	}
	if o.Plain || !app.drawable() {
		return o.replayLines(ctx, app, reel)
	}
	screen, err := app.screen(o.Looks)
	if err != nil {
		app.say("%v: a line for each change instead", err)
		return o.replayLines(ctx, app, reel)
	}
	defer screen.Close()
	how, err := app.show(ctx, screen, tui.Options{Film: reel, Speed: float64(o.Speed)})
	return endedAs(ctx, how, err)
}

// reel replays what is named, once.
func (o *watchOptions) reel(ctx context.Context) (*watch.Reel, error) {
	o.Input.Args = append([]string{o.Replay}, o.Files...)
	runs, err := o.Input.open(ctx)
	if err != nil {
		return nil, err
	}
	r := &runs[len(runs)-1]
	if len(runs) > 1 && len(o.Input.Args) > 1 {
		return nil, usage(fmt.Errorf("a view shows one replay, and these are %d", len(runs)), "name one scenario or journal; several recorded files are one")
	}
	if len(runs) > 1 {
		o.Input.app.say("%s: the newest of %d candidates is shown", r.name, len(runs))
	}
	if r.parts != nil {
		return nil, usage(fmt.Errorf("%s has several scenes: %s", r.name, strings.Join(r.sceneNames(), ", ")), "say which one is shown: --scene "+r.parts[0].scene)
	}
	if r.journal != "" {
		return o.journalReel(ctx, r)
	}
	if r.scenario != nil && r.scenario.Storm != nil {
		return nil, usage(fmt.Errorf("%s is a storm, about clients and not about a release", r.name), "replay it with canaryctl simulate")
	}
	o.Input.seedless(r)
	plan := r.config.Plan()
	feed, err := o.Input.feed(r, plan, o.Input.seed(r))
	if err != nil {
		return nil, err
	}
	film, err := simulate.NewFilm(plan, &interruptible{Feed: feed, ctx: ctx}, o.Input.rules(r))
	if err != nil {
		return nil, replayError(err)
	}
	return watch.NewReel(r.name, film, func(*ladder.Plan) *config.Config { return r.config }), nil
}

// journalReel is a live release, call by call.
func (o *watchOptions) journalReel(ctx context.Context, r *feedRun) (*watch.Reel, error) {
	past := driver.NewPast(r.journal)
	film, err := simulate.FilmOf(past.Calls(ctx), past.Check)
	if err != nil {
		return nil, journalError(ctx, past, err)
	}
	return watch.NewReel(r.name, film, past.ConfigOf), nil
}

// replayLines prints a line for each change of a replay: all at once, or at the
// speed that was asked for.
func (o *watchOptions) replayLines(ctx context.Context, app *App, film *watch.Reel) error {
	var prev *watch.Snapshot
	for i := range film.Len() {
		if i > 0 && o.given("speed") {
			wait := float64(film.Time(i).Sub(film.Time(i-1))) / float64(o.Speed)
			if err := driver.Sleep(ctx, time.Duration(wait)); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		now := film.Outline(i)
		if err := app.printLines(watch.Lines(prev, &now)); err != nil {
			return err
		}
		prev = &now
	}
	return nil
}
