package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/scenario"
	"github.com/canaryctl/canaryctl/internal/trace"
)

// open turns the arguments into runs, in their order; all recorded files
// together stand where the first of them stood.
func (o *simulateOptions) open(ctx context.Context) ([]feedRun, error) {
	var runs []feedRun
	var files []string
	at := -1
	for _, arg := range o.Args {
		sc, err := o.scenarioOf(arg)
		if err != nil {
			return nil, err
		}
		if sc != nil {
			run, err := o.openScenario(ctx, arg, sc)
			if err != nil {
				return nil, err
			}
			runs = append(runs, run)
			continue
		}
		if isJournal(arg) {
			lived, err := o.openJournal(ctx, arg)
			if err != nil {
				return nil, err
			}
			runs = append(runs, lived...)
			continue
		}
		if files = append(files, arg); at < 0 {
			at = len(runs)
		}
	}
	if len(files) == 0 {
		if err := o.unread(runs); err != nil {
			return nil, err
		}
		return runs, o.sceneless(runs)
	}
	recorded, err := o.openFiles(ctx, nameOfFiles(files), files)
	if err != nil {
		return nil, err
	}
	runs = slices.Insert(runs, at, recorded)
	return runs, o.sceneless(runs)
}

// unread refuses flags about recorded files where nothing is one.
func (o *simulateOptions) unread(runs []feedRun) error {
	if slices.ContainsFunc(runs, feedRun.recorded) {
		return nil
	}
	for _, flag := range []string{"map", "arm", "input-span", "max-bad", "epoch", "sum-duplicates", "null-status-ok"} {
		if o.given(flag) {
			return usage(fmt.Errorf("--%s is about recorded files, and %s is none", flag, runs[0].name), "leave it out")
		}
	}
	return nil
}

// shownNames is how many files are named in the name of one feed.
const shownNames = 4

// nameOfFiles names a feed after its files: after the first where they are many,
// as snapshots are.
func nameOfFiles(files []string) string {
	if n := len(files); n > shownNames {
		return fmt.Sprintf("%s and %d more", filepath.Base(files[0]), n-1)
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = filepath.Base(f)
	}
	return strings.Join(names, " ")
}

// scenarioOf returns the scenario that an argument names, or nil if it is a
// recorded file.
func (o *simulateOptions) scenarioOf(arg string) (*scenario.Scenario, error) {
	src, err := fs.ReadFile(o.app.Scenarios, arg+".yaml")
	name := arg + ".yaml"
	if err != nil {
		if ext := filepath.Ext(arg); ext != ".yaml" && ext != ".yml" {
			return nil, o.exists(arg)
		}
		name = arg
		if src, err = os.ReadFile(arg); err != nil {
			return nil, usage(fmt.Errorf("read the scenario: %w", err), "canaryctl simulate --list has the built-in ones")
		}
	}
	sc, findings := scenario.Parse(name, src)
	if sc == nil {
		return nil, o.app.findings(findings, src)
	}
	return sc, nil
}

// exists turns a name that is neither a scenario nor a file into an error.
func (o *simulateOptions) exists(arg string) error {
	if arg == "-" {
		return nil
	}
	_, err := os.Stat(arg)
	if errors.Is(err, fs.ErrNotExist) {
		return usage(fmt.Errorf("%s is neither a built-in scenario nor a file", arg), "canaryctl simulate --list has the built-in ones")
	}
	if err != nil {
		return usage(err, "")
	}
	return nil
}

func (o *simulateOptions) openScenario(ctx context.Context, arg string, sc *scenario.Scenario) (feedRun, error) {
	if sc.Storm != nil {
		return feedRun{name: sc.Name, scenario: sc}, o.stormFlags(sc)
	}
	if sc.Scenes != nil {
		return o.openScenes(ctx, arg, sc)
	}
	cfg := sc.Config
	if cfg == nil || o.given("config") {
		var err error
		if cfg, err = o.app.loadConfig(); err != nil {
			return feedRun{}, err
		}
	}
	if len(sc.Files) == 0 {
		if o.Thin {
			return feedRun{}, usage(fmt.Errorf("%s is a synthetic feed", arg), "--thin is for recorded windows; give total_per_min in the scenario instead")
		}
		return feedRun{name: sc.Name, scenario: sc, config: cfg}, nil
	}
	run, err := o.openRecorded(ctx, sc.Name, filesBeside(sc, arg), cfg, "")
	run.scenario = sc
	return run, err
}

// filesBeside are a scenario's recorded files, by names that are relative to it.
func filesBeside(sc *scenario.Scenario, arg string) []string {
	files := make([]string, len(sc.Files))
	for i, f := range sc.Files {
		if files[i] = f; !filepath.IsAbs(f) {
			files[i] = filepath.Join(filepath.Dir(arg), f)
		}
	}
	return files
}

// openRecorded reads files as one feed, of one scene where that is named.
func (o *simulateOptions) openRecorded(ctx context.Context, name string, files []string, cfg *config.Config, scene string) (feedRun, error) {
	opt, err := o.Read.options()
	if err != nil {
		return feedRun{}, err
	}
	opt.Scene = scene
	opt.SlowMS, opt.TTFTLimitMS = slowAbove(cfg), cfg.Streaming.TTFTSlow.LimitMS.Float64()
	data, err := o.app.readScene(ctx, files, opt)
	if err != nil {
		return feedRun{}, err
	}
	canary, stable, err := o.split(data)
	if err != nil {
		return feedRun{}, err
	}
	o.coarse(cfg.Plan(), canary)
	if scene == "" {
		o.app.mixed(data)
	}
	return feedRun{name: name, scene: scene, config: cfg, canary: canary, stable: stable}, nil
}

// slowAbove returns the latency above which the configuration counts requests
// as slow, 0 where no step does.
func slowAbove(cfg *config.Config) float64 {
	for i := range cfg.Steps {
		if f := &cfg.Steps[i].Fast; f.P99ByCount {
			return f.P99BaselineMS.Float64()
		}
	}
	return 0
}

var errNoCanary = errors.New("the input has no windows of the canary")

// split sorts windows by arm. Rows that name no arm are the canary's, if there
// is nothing else: a feed to replay is the canary's.
func (o *simulateOptions) split(data *trace.Data) (canary, stable []release.Window, err error) {
	canaryArm := release.Canary
	if len(data.Arms) == 1 && data.Arms[0] == release.All {
		o.app.say("the rows name no arm: they are replayed as the canary's")
		canaryArm = release.All
	}
	for i := range data.Windows {
		switch w := &data.Windows[i]; w.Arm {
		case canaryArm:
			canary = append(canary, *w)
		case release.Stable:
			stable = append(stable, *w)
		default:
			return nil, nil, usage(fmt.Errorf("version %q is neither stable nor canary", w.Arm), "say which is which: --arm stable=VERSION --arm canary=VERSION")
		}
	}
	if len(canary) == 0 {
		return nil, nil, usage(errNoCanary, "say which version it is: --arm canary=VERSION")
	}
	return canary, stable, nil
}

// coarse warns of windows longer than a span over which the breaker counts:
// then it counts over one window at a time, and that over a longer time than
// its limits are meant for.
func (o *simulateOptions) coarse(plan *ladder.Plan, windows []release.Window) {
	longest := slices.MaxFunc(windows, func(a, b release.Window) int { return cmp.Compare(a.Span, b.Span) }).Span
	for _, s := range []struct {
		key  string
		span func(*ladder.Step) time.Duration
	}{
		{"violation_window_min", func(s *ladder.Step) time.Duration { return s.Limits.FastSpan }},
		{"slow_window_min", func(s *ladder.Step) time.Duration { return s.Limits.SlowSpan }},
	} {
		shortest := s.span(&plan.Steps[0])
		for i := range plan.Steps {
			shortest = min(shortest, s.span(&plan.Steps[i]))
		}
		if longest > shortest {
			o.app.warn("windows of %s are longer than %s, %s: its limits are held against the counts of a whole window", trace.FormatSpan(longest), s.key, release.Minutes(shortest))
		}
	}
}
