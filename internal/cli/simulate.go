package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/canaryctl/canaryctl/internal/batch"
	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/report"
	"github.com/canaryctl/canaryctl/internal/scenario"
	"github.com/canaryctl/canaryctl/internal/simulate"
	"github.com/canaryctl/canaryctl/internal/trace"
)

// simulateOptions are the flags of simulate.
type simulateOptions struct {
	app       *App
	Args      []string
	List      bool
	Runs      int
	Seed      uint64
	seedSet   bool
	Against   string
	Thin      bool
	Approve   bool
	configSet bool
	Read      readOptions
	format    string
}

func newSimulateCmd(app *App) *cobra.Command {
	o := &simulateOptions{app: app}
	cmd := &cobra.Command{
		Use:   "simulate NAME|FILE...",
		Short: "Replay a scenario or recorded traffic through the breaker that guards production",
		Long: `Replay built-in scenarios, scenario files (.yaml), or recorded records and windows through breaker and ladder,
and say what would have happened.

Several names are separate runs; several recorded files are one feed. A scenario brings its own plan; with -c it
is replayed under yours. Recorded windows are taken as they are, whatever share the ladder would have set, and
both shares are printed; --thin draws them down to the ladder's share instead.

EXIT STATUS
  0   replayed, and every expectation was met
  2   the command line, the configuration or the input cannot be used
  10  an expectation was not met`,
		Example: `  canaryctl simulate scenario-a
  canaryctl simulate --list
  canaryctl simulate incident-0217 -o json
  canaryctl simulate healthy-week --runs 200
  canaryctl simulate -c canary.yaml stable.jsonl.gz canary.jsonl.gz
  canaryctl simulate -c canary.yaml --against stricter.yaml last-week.csv`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Args = args
			o.configSet = cmd.Flags().Changed("config")
			o.seedSet = cmd.Flags().Changed("seed")
			return runSimulate(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.List, "list", false, "list the built-in scenarios (-o names: the names alone)")
	f.IntVar(&o.Runs, "runs", 0, "draw the scenario `N` times and print distributions")
	f.Uint64Var(&o.Seed, "seed", 1, "`seed` of the first run; the others count up from it")
	f.StringVar(&o.Against, "against", "", "replay the same feed under another canary.yaml `file` and show which decisions differ")
	f.BoolVar(&o.Thin, "thin", false, "thin recorded windows to the ladder's share")
	f.BoolVar(&o.Approve, "approve", false, "give every approval as soon as it is asked for")
	o.Read.register(f)
	return cmd
}

// feedRun is one thing to replay: a scenario, or recorded windows.
type feedRun struct {
	name     string
	scenario *scenario.Scenario // nil: recorded
	config   *config.Config
	canary   []release.Window // recorded
	stable   []release.Window
}

func runSimulate(ctx context.Context, o *simulateOptions) error {
	var err error
	formats := []string{"text", "json", "junit"}
	if o.List {
		formats = []string{"text", "json", "names"}
	}
	if o.format, err = o.app.wantOutput(formats...); err != nil {
		return err
	}
	switch {
	case o.List:
		return o.list()
	case len(o.Args) == 0:
		return usage(errors.New("nothing to replay"), "name a scenario or a file; canaryctl simulate --list has the built-in ones")
	case o.Runs < 0:
		return usage(fmt.Errorf("--runs %d", o.Runs), "give a number of runs above 0")
	case o.Runs > 0 && o.Against != "":
		return usage(errors.New("--runs and --against do not go together"), "compare one replay, or sum up many")
	case o.Against != "" && o.format == "junit":
		return usage(errors.New("a comparison has no junit form"), "use -o text or -o json")
	}
	runs, err := o.open(ctx)
	if err != nil {
		return err
	}
	return o.replay(ctx, runs)
}

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
		if files = append(files, arg); at < 0 {
			at = len(runs)
		}
	}
	if len(files) == 0 {
		return runs, nil
	}
	recorded, err := o.openRecorded(ctx, strings.Join(baseNames(files), " "), files, nil)
	if err != nil {
		return nil, err
	}
	return slices.Insert(runs, at, recorded), nil
}

func baseNames(files []string) []string {
	out := make([]string, len(files))
	for i, f := range files {
		out[i] = filepath.Base(f)
	}
	return out
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
	cfg := sc.Config
	if cfg == nil || o.configSet {
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
	files := make([]string, len(sc.Files))
	for i, f := range sc.Files {
		if files[i] = f; !filepath.IsAbs(f) {
			files[i] = filepath.Join(filepath.Dir(arg), f)
		}
	}
	run, err := o.openRecorded(ctx, sc.Name, files, cfg)
	run.scenario = sc
	return run, err
}

// openRecorded reads files as one feed.
func (o *simulateOptions) openRecorded(ctx context.Context, name string, files []string, cfg *config.Config) (feedRun, error) {
	if cfg == nil {
		var err error
		if cfg, err = o.app.loadConfig(); err != nil {
			return feedRun{}, err
		}
	}
	data, err := o.app.readTrace(ctx, files, &o.Read)
	if err != nil {
		return feedRun{}, err
	}
	canary, stable, err := o.split(data)
	if err != nil {
		return feedRun{}, err
	}
	return feedRun{name: name, config: cfg, canary: canary, stable: stable}, nil
}

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
		return nil, nil, usage(errors.New("the input has no windows of the canary"), "say which version it is: --arm canary=VERSION")
	}
	return canary, stable, nil
}

// replay carries out the runs one after the other and prints each as it ends.
func (o *simulateOptions) replay(ctx context.Context, runs []feedRun) error {
	var suites []report.Suite
	unmet := false
	for i := range runs {
		if i > 0 && o.format == "text" {
			fmt.Fprintln(o.app.Stdout)
		}
		expectations, err := o.one(ctx, &runs[i])
		if err != nil {
			return err
		}
		suites = append(suites, report.Suite{Name: runs[i].name, Expectations: expectations})
		for _, e := range expectations {
			unmet = unmet || !e.OK
		}
	}
	if o.format == "junit" {
		if err := report.JUnit(o.app.Stdout, suites); err != nil {
			return err
		}
	}
	if unmet {
		return silent(ExitExpectation)
	}
	return nil
}

// one replays one run and prints it.
func (o *simulateOptions) one(ctx context.Context, r *feedRun) ([]report.Expectation, error) {
	switch {
	case o.Against != "":
		return nil, o.compare(r)
	case o.Runs > 0:
		return o.batch(ctx, r)
	}
	plan := r.config.Plan()
	out, err := o.run(r, plan, o.seed(r))
	if err != nil {
		return nil, err
	}
	s := report.Simulation{Name: r.name, Plan: plan, Outcome: out, BadFrom: -1}
	if r.scenario != nil {
		s.About = firstSentence(r.scenario.About)
		s.Expectations = expectationsOf(r.scenario.Check(out))
		if r.scenario.FaultFrom != nil {
			s.BadFrom = *r.scenario.FaultFrom
		}
		if _, over := r.scenario.Expectations(); over > 0 {
			o.app.say("%s: %d expectation(s) are over runs: add --runs %d", r.name, over, r.scenario.Runs())
		}
	}
	if r.canary != nil {
		share, known := simulate.Share(r.canary, r.stable)
		s.Recorded = &report.RecordedShare{Share: share, Known: known, Thinned: o.Thin}
	}
	return s.Expectations, o.print(&s, s.JSON())
}

func expectationsOf(results []scenario.Result) []report.Expectation {
	out := make([]report.Expectation, len(results))
	for i, r := range results {
		out[i] = report.Expectation(r)
	}
	return out
}

// firstSentence cuts the about text to what fits a head line.
func firstSentence(about string) string {
	text := strings.Join(strings.Fields(about), " ")
	if end := strings.Index(text, ". "); end >= 0 {
		return text[:end+1]
	}
	return text
}

// seed is the seed of a run: the flag's where it was given.
func (o *simulateOptions) seed(r *feedRun) uint64 {
	if r.scenario != nil && !o.seedSet {
		return r.scenario.Seed
	}
	return o.Seed
}

// run replays once.
func (o *simulateOptions) run(r *feedRun, plan *ladder.Plan, seed uint64) (*simulate.Outcome, error) {
	opt := simulate.Options{}
	if r.scenario != nil {
		opt = r.scenario.Options()
	}
	opt.Approve = opt.Approve || o.Approve
	feed, err := o.feed(r, plan, seed)
	if err != nil {
		return nil, err
	}
	out, err := simulate.Run(plan, feed, opt)
	if share, ok := errors.AsType[*simulate.ShareError](err); ok {
		return nil, usage(share, "leave out --thin to replay the windows as they were recorded")
	}
	return out, err
}

func (o *simulateOptions) feed(r *feedRun, plan *ladder.Plan, seed uint64) (simulate.Feed, error) {
	if r.canary == nil {
		return r.scenario.Feed(plan, seed), nil
	}
	recorded, err := simulate.NewRecorded(r.canary, r.stable)
	if err != nil {
		return nil, usage(fmt.Errorf("%s: %w", r.name, err), "")
	}
	if !o.Thin {
		return recorded, nil
	}
	thinned, err := simulate.Thin(recorded, seed)
	if err != nil {
		return nil, usage(fmt.Errorf("%s: %w", r.name, err), "leave out --thin, or give the records of both arms")
	}
	return thinned, nil
}

// batch replays many seeds over the cores.
func (o *simulateOptions) batch(ctx context.Context, r *feedRun) ([]report.Expectation, error) {
	drawn := o.Thin || r.scenario != nil && r.canary == nil && r.scenario.Drawn
	if !drawn {
		o.app.say("%s does not depend on the seed: every run is the same", r.name)
	}
	plan, first := r.config.Plan(), o.seed(r)
	bar := o.app.statusLine()
	progress := func(done, total int) {
		bar.show(func(spent time.Duration) string {
			return fmt.Sprintf("%s: %d of %d runs, %s left", r.name, done, total, left(spent, int64(done), int64(total)))
		})
	}
	outs, err := batch.Run(ctx, batch.Seeds(first, o.Runs), runtime.GOMAXPROCS(0), func(_ context.Context, seed uint64) (*simulate.Outcome, error) {
		return o.run(r, plan, seed)
	}, progress)
	bar.done()
	if err != nil {
		return nil, err
	}
	fault := r.scenario != nil && r.scenario.FaultFrom != nil
	results := make([]simulate.Result, len(outs))
	for i, out := range outs {
		results[i] = simulate.ResultOf(out, first+uint64(i), fault)
	}
	rep := report.Runs{Name: r.name, Seed: first, Fault: fault, Batch: simulate.BatchOf(results)}
	if r.scenario != nil {
		rep.Expectations = expectationsOf(r.scenario.CheckRuns(outs))
	}
	return rep.Expectations, o.print(&rep, rep.JSON())
}

// compare replays the same feed under two configurations.
func (o *simulateOptions) compare(r *feedRun) error {
	other, err := o.app.loadConfigFile(o.Against)
	if err != nil {
		return err
	}
	c := report.Comparison{Name: r.name, LeftConfig: r.config.Name, RightConfig: o.Against}
	if c.Left, err = o.run(r, r.config.Plan(), o.seed(r)); err != nil {
		return err
	}
	if c.Right, err = o.run(r, other.Plan(), o.seed(r)); err != nil {
		return err
	}
	return o.print(&c, c.JSON())
}

// print writes a report in the chosen format; junit is written once, at the
// end.
func (o *simulateOptions) print(r textReport, doc any) error {
	switch o.format {
	case "json":
		return encodeLine(o.app.Stdout, doc)
	case "text":
		return r.Text(o.app.Stdout, o.app.style())
	}
	return nil
}

// scenarioList is the JSON form of simulate --list.
type scenarioList struct {
	Schema    int             `json:"schema"`
	Scenarios []scenarioEntry `json:"scenarios"`
}

type scenarioEntry struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

// list prints the built-in scenarios.
func (o *simulateOptions) list() error {
	names, err := fs.Glob(o.app.Scenarios, "*.yaml")
	if err != nil {
		return err
	}
	entries := []scenarioEntry{}
	for _, file := range names {
		src, err := fs.ReadFile(o.app.Scenarios, file)
		if err != nil {
			return err
		}
		sc, findings := scenario.Parse(file, src)
		if sc == nil {
			return o.app.findings(findings, src)
		}
		entries = append(entries, scenarioEntry{Name: strings.TrimSuffix(file, ".yaml"), About: strings.Join(strings.Fields(sc.About), " ")})
	}
	if o.format == "json" {
		return encodeLine(o.app.Stdout, scenarioList{Schema: 1, Scenarios: entries})
	}
	for _, e := range entries {
		line := e.Name
		if o.format == "text" {
			line = fmt.Sprintf("%-20s %s", e.Name, firstSentence(e.About))
		}
		if _, err := fmt.Fprintln(o.app.Stdout, line); err != nil {
			return err
		}
	}
	return nil
}
