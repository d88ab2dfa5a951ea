package cli

import (
	"context"
	"errors"
	"fmt"
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
)

// simulateOptions are the flags of simulate.
type simulateOptions struct {
	app     *App
	Args    []string
	List    bool
	Runs    int
	Seed    uint64
	Against string
	Thin    bool
	Approve bool
	Read    readOptions
	given   func(flag string) bool // whether the command line has it
	format  string
	scenes  *sceneReports // where the scenes of a run are gathered; nil: it has none
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

The journal of a live release is replayed call by call: the events are those of the release. With -c or --against
its windows are a recorded feed instead, and each candidate in it is a run.

A storm is a scenario about clients of an upstream that answers 429, with and without the policies that guard
against it; it has no release and needs no canary.yaml.

EXIT STATUS
  0   replayed, and every expectation was met
  2   the command line, the configuration or the input cannot be used
  10  an expectation was not met`,
		Example: `  canaryctl simulate scenario-a
  canaryctl simulate --list
  canaryctl simulate incident-0217 -o json
  canaryctl simulate healthy-week --runs 200
  canaryctl simulate storm-429
  canaryctl simulate -c canary.yaml stable.jsonl.gz canary.jsonl.gz
  canaryctl simulate -c canary.yaml --against stricter.yaml last-week.csv
  canaryctl simulate .canaryctl/order-service/journal.jsonl
  canaryctl simulate --against stricter.yaml .canaryctl/order-service/journal.jsonl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Args, o.given = args, cmd.Flags().Changed
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
	o.app.registerScene(f)
	return cmd
}

// feedRun is one thing to replay: a scenario, recorded windows, or the journal
// of a live release.
type feedRun struct {
	name     string
	journal  string             // its path; "": none
	scenario *scenario.Scenario // nil: recorded
	config   *config.Config
	canary   []release.Window // recorded
	stable   []release.Window
	scene    string    // "": the whole service
	parts    []feedRun // the scenes of a service; what is above them is their name alone
}

// recorded reports whether a run is of recorded files.
func (r feedRun) recorded() bool {
	return r.canary != nil || slices.ContainsFunc(r.parts, feedRun.recorded)
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
	case o.List && len(o.Args) > 0:
		return usage(fmt.Errorf("--list beside %s", o.Args[0]), "--list takes no names; leave it out to replay them")
	case o.List:
		return o.list()
	case len(o.Args) == 0:
		return usage(errors.New("nothing to replay"), "name a scenario or a file; canaryctl simulate --list has the built-in ones")
	case o.Runs < 1 && o.given("runs"):
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
	if r.parts != nil {
		return o.everyScene(ctx, r)
	}
	o.seedless(r)
	switch {
	case r.scenario != nil && r.scenario.Storm != nil:
		return o.storm(ctx, r)
	case r.journal != "":
		return nil, o.journal(ctx, r)
	case o.Against != "":
		return nil, o.compare(ctx, r)
	case o.Runs > 0:
		return o.batch(ctx, r)
	}
	plan := r.config.Plan()
	out, err := o.run(ctx, r, plan, o.seed(r))
	if err != nil {
		return nil, err
	}
	o.scenes.add(r, out)
	s := report.Simulation{Name: r.name, Scene: r.scene, Plan: plan, Outcome: out}
	if r.scenario != nil {
		s.About = firstSentence(r.scenario.About)
		s.Expectations = expectationsOf(r.scenario.Check(out))
		o.unchecked(r.scenario, 0)
	}
	if r.canary != nil {
		share, known := simulate.Share(r.canary, r.stable)
		s.Recorded = &report.RecordedShare{Share: share, Known: known, Thinned: o.Thin}
	}
	return s.Expectations, o.print(&s, s.JSON())
}

// seedless says that a seed that was given changes nothing.
func (o *simulateOptions) seedless(r *feedRun) {
	if (o.Runs > 0 || o.given("seed")) && r.journal == "" && !o.drawn(r) {
		o.app.say("%s does not depend on the seed: every run is the same", r.name)
	}
}

// unchecked says which expectations so many runs are too few for.
func (o *simulateOptions) unchecked(sc *scenario.Scenario, checked int) {
	say := o.app.say
	if o.Runs > 0 {
		say = o.app.warn // runs were asked for
	}
	if _, over := sc.Expectations(); over > checked {
		say("%s: not checked, being over runs: %d of its expectations; add --runs %d", sc.Name, over-checked, sc.Runs())
	}
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

// drawn reports whether a run depends on the seed.
func (o *simulateOptions) drawn(r *feedRun) bool {
	return o.Thin || r.canary == nil && r.scenario.Drawn
}

// seed is the seed of a run: the flag's where it was given.
func (o *simulateOptions) seed(r *feedRun) uint64 {
	if r.scenario != nil && !o.given("seed") {
		return r.scenario.Seed
	}
	return o.Seed
}

// run replays once.
func (o *simulateOptions) run(ctx context.Context, r *feedRun, plan *ladder.Plan, seed uint64) (*simulate.Outcome, error) {
	feed, err := o.feed(r, plan, seed)
	if err != nil {
		return nil, err
	}
	out, err := simulate.Run(plan, &interruptible{Feed: feed, ctx: ctx}, o.rules(r))
	return out, replayError(err)
}

// rules are what a replay needs besides plan and feed.
func (o *simulateOptions) rules(r *feedRun) simulate.Options {
	opt := simulate.Options{}
	if r.scenario != nil {
		opt = r.scenario.Options()
	}
	opt.Approve = opt.Approve || o.Approve
	return opt
}

// replayError is an error of a replay, with a hint where the user can mend it.
func replayError(err error) error {
	if share, ok := errors.AsType[*simulate.ShareError](err); ok {
		return usage(share, "leave out --thin to replay the windows as they were recorded")
	}
	return err
}

// interruptible is a feed that ends with an error when ctx does.
type interruptible struct {
	simulate.Feed
	ctx   context.Context
	ticks int
}

// Next implements [simulate.Feed].
func (f *interruptible) Next(weight release.Weight) (simulate.Tick, error) {
	if f.ticks++; f.ticks%1024 == 0 && f.ctx.Err() != nil {
		return simulate.Tick{}, context.Cause(f.ctx)
	}
	return f.Feed.Next(weight)
}

func (o *simulateOptions) feed(r *feedRun, plan *ladder.Plan, seed uint64) (simulate.Feed, error) {
	if r.canary == nil {
		return r.scenario.Feed(plan, seed), nil
	}
	recorded, err := simulate.NewRecorded(r.canary, r.stable)
	if err != nil {
		return nil, usage(fmt.Errorf("%s: %w", r.name, err), "are its times and spans right?")
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
	plan, first := r.config.Plan(), o.seed(r)
	bar := o.app.statusLine()
	progress := func(done, total int) {
		bar.show(func(spent time.Duration) string {
			return fmt.Sprintf("%s: %d of %d runs, %s left", r.name, done, total, left(spent, int64(done), int64(total)))
		})
	}
	outs, err := batch.Run(ctx, batch.Seeds(first, o.Runs), 0, func(ctx context.Context, seed uint64) (*simulate.Outcome, error) {
		return o.run(ctx, r, plan, seed)
	}, progress)
	bar.done()
	if err != nil {
		return nil, err
	}
	fault := r.scenario != nil && r.scenario.FaultFrom != nil
	results := make([]simulate.Result, len(outs))
	for i, out := range outs {
		results[i] = simulate.ResultOf(out)
	}
	o.scenes.add(r, nil)
	rep := report.Runs{Name: r.name, Scene: r.scene, Seed: first, Fault: fault, Batch: simulate.BatchOf(results)}
	if r.scenario != nil {
		rep.Expectations = expectationsOf(r.scenario.CheckRuns(outs))
		o.unchecked(r.scenario, len(rep.Expectations))
	}
	return rep.Expectations, o.print(&rep, rep.JSON())
}

// compare replays the same feed under two configurations.
func (o *simulateOptions) compare(ctx context.Context, r *feedRun) error {
	other, err := o.app.loadConfigFile(o.Against)
	if e, ok := errors.AsType[*Error](err); ok && e.Err != nil {
		e.Hint = "--against names another canary.yaml"
	}
	if err != nil {
		return err
	}
	if r.scene != "" && len(other.Scenes) > 0 {
		names := other.SceneNames()
		if other = other.OfScene(r.scene); other == nil {
			return noScene(o.Against, r.scene, names)
		}
	} else if len(other.Scenes) > 0 {
		return usage(fmt.Errorf("%s has several scenes: %s", o.Against, strings.Join(other.SceneNames(), ", ")), "say which one is meant: --scene "+other.SceneNames()[0])
	}
	o.scenes.add(r, nil)
	c := report.Comparison{Name: r.name, Scene: r.scene, LeftConfig: r.config.Name, RightConfig: o.Against}
	if c.Left, err = o.run(ctx, r, r.config.Plan(), o.seed(r)); err != nil {
		return err
	}
	if c.Right, err = o.run(ctx, r, other.Plan(), o.seed(r)); err != nil {
		return err
	}
	return o.print(&c, c.JSON())
}

// print writes a report in the chosen format; junit is written once, at the
// end.
func (o *simulateOptions) print(r textReport, doc any) error {
	switch o.format {
	case "json":
		if o.scenes != nil {
			o.scenes.docs = append(o.scenes.docs, doc)
			return nil
		}
		return encodeLine(o.app.Stdout, doc)
	case "text":
		return r.Text(o.app.Stdout, o.app.style())
	}
	return nil
}
