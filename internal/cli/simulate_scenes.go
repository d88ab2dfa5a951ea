package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/report"
	"github.com/canaryctl/canaryctl/internal/scenario"
	"github.com/canaryctl/canaryctl/internal/simulate"
	"github.com/canaryctl/canaryctl/internal/trace"
)

// openScenes makes a scenario with scenes one run of as many parts, or of the
// scene that was named.
func (o *simulateOptions) openScenes(ctx context.Context, arg string, sc *scenario.Scenario) (feedRun, error) {
	base := sc.Config
	if base == nil || o.given("config") {
		var err error
		if base, err = o.app.loadConfigFile(o.app.global.Config); err != nil {
			return feedRun{}, err
		}
	}
	run := feedRun{name: sc.Name}
	for _, s := range sc.Scenes {
		if o.app.scene != "" && s.Scene != o.app.scene {
			continue
		}
		cfg := base.OfScene(s.Scene)
		if cfg == nil {
			return run, usage(fmt.Errorf("%s has no scene %q, which %s is about", o.app.global.Config, s.Scene, arg), "add it to scenes, or leave out -c to replay the scenario under its own plan")
		}
		part, err := o.openPart(ctx, arg, s, cfg)
		if err != nil {
			return run, err
		}
		run.parts = append(run.parts, part)
	}
	if len(run.parts) == 0 {
		var names []string
		for _, s := range sc.Scenes {
			names = append(names, s.Scene)
		}
		return run, noScene(arg, o.app.scene, names)
	}
	return run.alone(), nil
}

// openPart opens a scene of a scenario.
func (o *simulateOptions) openPart(ctx context.Context, arg string, s *scenario.Scenario, cfg *config.Config) (feedRun, error) {
	if len(s.Files) > 0 {
		part, err := o.openRecorded(ctx, s.Name, filesBeside(s, arg), cfg, s.Scene)
		part.scenario = s
		return part, err
	}
	if o.Thin {
		return feedRun{}, usage(fmt.Errorf("%s is a synthetic feed", arg), "--thin is for recorded windows; give total_per_min in the scenario instead")
	}
	return feedRun{name: s.Name, scene: s.Scene, scenario: s, config: cfg}, nil
}

// sceneless refuses --scene for what is of no scene: it would be replayed as a
// whole.
func (o *simulateOptions) sceneless(runs []feedRun) error {
	for i := range runs {
		if r := &runs[i]; o.app.scene != "" && r.scene == "" && (r.config == nil || r.config.Scene == "") {
			return usage(fmt.Errorf("--scene %s: %s has no scenes", o.app.scene, r.name), "leave it out")
		}
	}
	return nil
}

// alone is the only part of a run that has one.
func (r feedRun) alone() feedRun {
	if len(r.parts) == 1 {
		return r.parts[0]
	}
	return r
}

func (r feedRun) sceneNames() (names []string) {
	for i := range r.parts {
		names = append(names, r.parts[i].scene)
	}
	return names
}

var errOneStdin = errors.New("standard input can be read once, and each scene reads its own rows")

// openFiles reads recorded files as one feed, or under a configuration with
// scenes as one of each. A scene that is named and not configured is a part of
// the rows.
func (o *simulateOptions) openFiles(ctx context.Context, name string, files []string) (feedRun, error) {
	base, err := o.app.loadConfigFile(o.app.global.Config)
	if err != nil {
		return feedRun{}, err
	}
	if len(base.Scenes) == 0 && base.Scene == "" {
		return o.openRecorded(ctx, name, files, base, o.app.scene)
	}
	all, err := o.app.scenesOf(base)
	if err != nil {
		return feedRun{}, err
	}
	if len(all) > 1 && slices.Contains(files, "-") {
		return feedRun{}, usage(errOneStdin, "name a file, or one scene with --scene")
	}
	run := feedRun{name: name}
	for _, cfg := range all {
		part, err := o.openRecorded(ctx, name, files, cfg, cfg.Scene)
		if errors.Is(err, errNoCanary) && len(all) > 1 {
			o.app.say("%s: no windows of the canary: left out", cfg.Scene)
			continue
		}
		if err != nil {
			return run, err
		}
		run.parts = append(run.parts, part)
	}
	if len(run.parts) == 0 {
		return run, usage(errNoCanary, "say which version it is: --arm canary=VERSION; and is it the rows' `scene` that the scenes are called by?")
	}
	return run.alone(), nil
}

// mixed says that rows of several scenes are taken as one: what one of them
// does is lost in the mean.
func (app *App) mixed(data *trace.Data) {
	if len(data.Scenes) < 2 {
		return
	}
	var counts []string
	for _, name := range slices.Sorted(maps.Keys(data.Scenes)) {
		counts = append(counts, name+" "+strconv.FormatInt(data.Scenes[name], 10))
	}
	app.say("the rows are of %d scenes and are taken together: %s; --scene takes one, and scenes in the configuration judge each by itself",
		len(counts), strings.Join(counts, ", "))
}

// sceneReports gathers what the scenes of a run come to.
type sceneReports struct {
	docs []any
	all  report.Scenes
}

// add notes a scene; out is nil where there is more than one replay of it.
func (s *sceneReports) add(r *feedRun, out *simulate.Outcome) {
	if s != nil {
		s.all.Parts = append(s.all.Parts, report.ScenePart{Scene: r.scene, Outcome: out})
	}
}

// everyScene replays each scene by itself and prints what they come to.
func (o *simulateOptions) everyScene(ctx context.Context, r *feedRun) ([]report.Expectation, error) {
	o.scenes = &sceneReports{all: report.Scenes{Name: r.name}}
	defer func() { o.scenes = nil }()
	var all []report.Expectation
	for i := range r.parts {
		part := &r.parts[i]
		list, err := o.one(ctx, part)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			if !e.OK {
				o.scenes.all.Unmet++
			}
			e.Want = part.scene + ": " + e.Want
			all = append(all, e)
		}
		if o.format == "text" {
			fmt.Fprintln(o.app.Stdout) //nolint:errcheck // the next line finds out
		}
	}
	rep := o.scenes.all
	doc := rep.JSON(o.scenes.docs)
	o.scenes = nil
	return all, o.print(&rep, doc)
}

// readScene is [App.readFeed] of one scene's rows. Rows of which none names a
// scene are that scene's, where one was named: it has a log of its own.
func (app *App) readScene(ctx context.Context, files []string, opt trace.Options) (*trace.Data, error) {
	data, err := app.readFeed(ctx, files, opt)
	none := data != nil && len(data.Scenes) == 0 && data.Sceneless > 0
	if !none || app.scene == "" || ctx.Err() != nil || slices.Contains(files, "-") {
		return data, err
	}
	app.say("all are taken for those of %s", opt.Scene)
	opt.Scene = ""
	return app.readFeed(ctx, files, opt)
}
