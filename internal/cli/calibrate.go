package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/calibrate"
	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/report"
	"github.com/canaryctl/canaryctl/internal/splice"
	"github.com/canaryctl/canaryctl/internal/trace"
)

// calibrateOptions are the flags of calibrate.
type calibrateOptions struct {
	app           *App
	Files         []string
	TolerableDrop pointsFlag
	DetectDrop    pointsFlag
	Span          namedSpan
	Steps         stepsFlag
	FalseTrips    falseTripsFlag
	ReleaseHours  float64
	Budget        sharesFlag
	K             float64
	Judge         judgeFlag
	Power         float64
	Exclude       spansFlag
	AutoExclude   bool
	Strict        bool
	Zone          zoneFlag
	Replays       int
	Seed          uint64
	AllowShort    bool
	Write         bool
	Read          readOptions

	scene     string          // whose rows count; "": all
	together  bool            // those of all scenes, beside each
	live      time.Duration   // the configuration's slow window
	tick      time.Duration   // and the length of its live windows
	ttft      float64         // its limit of ttft_slow, milliseconds
	top       *breaker.Limits // its limits without any step's own
	budgeted  bool            // --max-false-trips or --budget was given
	asked     bool            // --tolerable-drop was given
	confGiven bool            // -c was given
}

func newCalibrateCmd(app *App) *cobra.Command {
	o := &calibrateOptions{
		app: app, TolerableDrop: pointsFlag(release.NewRatio(5, 1)), ttft: defaultTTFTLimitMS,
		Span: namedSpan{spanFlag: spanFlag(calibrate.DefaultSpan)}, FalseTrips: falseTripsFlag{perWeek: 0.1}, Judge: judgeFlag(calibrate.WindowJudge),
	}
	cmd := &cobra.Command{
		Use:   "calibrate FILE...",
		Short: "Learn thresholds from a baseline: a week of stable's own records or windows",
		Long: `Learn from a baseline how much the service varies by itself, and which thresholds do not trip on that. The files
are records or windows of stable, a week or more; all of them are one feed, "-" is standard input.

The noise between windows is measured at 10 minutes and at the live window, the multiplier of sigma follows from how
many false trips a week are allowed, and each step of the ladder gets the limits that its own traffic can bear. Then
the baseline itself, thinned to each step and resampled, is replayed through the breaker: the figures of the replay
are the ones to believe.

Steps and spans come from the configuration of -c, from canary.yaml where there is one, else from the published ladder.
A baseline of less than 24 hours or 20 whole windows is refused.

--write puts the values into the configuration, keeping every comment and every other byte, and prints the diff.

Where the configuration has scenes, each is measured by its own rows, then all together, and --write puts each one's
values into scenes. --scene takes one, also of rows whose scenes are not configured.

EXIT STATUS
  0   measured, and written with --write
  2   the command line, the configuration or the baseline cannot be used
  8   somebody else edited the configuration meanwhile; it was not touched
  11  the asked-for threshold lies inside the noise, or a step can never be judged; nothing was written`,
		Example: `  canaryctl calibrate requests-week-*.jsonl.zst
  canaryctl calibrate --map 't=unix_ts:s,total=requests,solved=successes' --input-span 5m shop.csv -o json
  canaryctl calibrate --arm stable=v1.42 --tolerable-drop 3 requests.jsonl
  canaryctl calibrate --max-false-trips 1%/release --release-hours 24 week.jsonl.gz
  canaryctl calibrate --write -c canary.yaml week.jsonl.gz
  canaryctl calibrate -o html week.jsonl.gz > calibration.html`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Files = args
			o.asked = cmd.Flags().Changed("tolerable-drop")
			o.budgeted = cmd.Flags().Changed("max-false-trips") || cmd.Flags().Changed("budget")
			o.confGiven = cmd.Flags().Changed("config")
			return runCalibrate(cmd.Context(), o)
		},
	}
	o.register(cmd.Flags())
	return cmd
}

func (o *calibrateOptions) register(f *pflag.FlagSet) {
	f.Var(&o.TolerableDrop, "tolerable-drop", "drop of the solve rate, in percentage `points`, that the business can live with")
	f.Var(&o.DetectDrop, "detect-drop", "drop, in percentage `points`, that must be found (default 10, or twice the tolerable drop)")
	f.Var(&o.Span, "calib-window", "`span` of the windows whose solve rates are compared")
	f.Var(&o.Steps, "steps", "the ladder's shares in `percent`, such as 1,5,25,50,100, in place of the configuration's")
	f.Var(&o.FalseTrips, "max-false-trips", "false trips that are allowed: `budget` such as 0.1/week, or 1%/release")
	f.Float64Var(&o.ReleaseHours, "release-hours", 6, "`hours` of a release, for a budget per release")
	f.Var(&o.Budget, "budget", "`shares` of the budget by signal, such as solve_rate=50%,violations=20%,transfers=10%,p99=10%,cost=10%")
	f.Float64Var(&o.K, "k", 0, "`sigmas` of the plain rule, max(tolerable drop, k sigma), in place of the budget; 3 is the published one")
	f.Var(&o.Judge, "judge", "`judge` of the solve rate: window, exact, count or cusum")
	f.Float64Var(&o.Power, "power", 0.8, "`chance` with which --detect-drop must be found at a look")
	f.Var(&o.Exclude, "exclude", "leave out the `span` FROM/TO, such as 2026-01-03T10:00Z/11:30Z; may be given again")
	f.BoolVar(&o.AutoExclude, "auto-exclude", false, "leave out the incidents that are listed, if they are no more than 5 % of the windows")
	f.BoolVar(&o.Strict, "strict", false, "refuse a baseline with incidents or drift")
	f.Var(&o.Zone, "tz", "time `zone` that labels hours and weekdays")
	f.IntVar(&o.Replays, "replays", 200, "`weeks` to replay; 0 does not replay")
	f.Uint64Var(&o.Seed, "seed", 1, "`seed` of the replay")
	f.BoolVar(&o.AllowShort, "allow-short", false, "measure a baseline that is too short, and say so")
	f.BoolVar(&o.Write, "write", false, "put the values into the configuration file of -c and print the diff")
	o.Read.register(f)
	o.app.registerScene(f)
}

func runCalibrate(ctx context.Context, o *calibrateOptions) error {
	app := o.app
	format, err := app.wantOutput("text", "json", "yaml", "html")
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	src, cfgs, err := o.configuration()
	if err != nil { // before hours of reading, not after
		return err
	}
	if len(cfgs) > 1 {
		return o.everyScene(ctx, format, src, cfgs)
	}
	plan, err := o.of(cfgs[0])
	if err == nil && o.Write {
		_, err = o.written(src)
	}
	if err != nil {
		return err
	}
	rep, err := o.measure(ctx, plan)
	if err != nil {
		return err
	}
	if err := o.print(format, rep); err != nil { // first, so that nothing is written that nobody saw
		return err
	}
	if rep.Verdict.Refuses() {
		return o.unjudged(rep)
	}
	if o.Write && !rep.Verdict.OK {
		o.app.warn("%s was not touched: a baseline that is too short has no verdict", o.app.global.Config)
	}
	if !o.Write || !rep.Verdict.OK {
		return nil
	}
	diff, err := o.write(ctx, src, rep)
	if err != nil {
		return err
	}
	return o.showDiff(format, diff)
}

// check refuses flags that make no sense.
func (o *calibrateOptions) check() error {
	span := o.Span.length()
	switch {
	case len(o.Files) == 0:
		return usage(errors.New("no baseline given"), "name files of records or windows, or - for standard input")
	case span <= 0 || span > 24*time.Hour:
		return usage(fmt.Errorf("--calib-window %s is not a span of up to a day", trace.FormatSpan(span)), "10m is the usual one")
	case o.DetectDrop != (pointsFlag{}) && release.Ratio(o.DetectDrop).Rat().Cmp(release.Ratio(o.TolerableDrop).Rat()) <= 0:
		return usage(fmt.Errorf("--detect-drop %s is not above --tolerable-drop %s", &o.DetectDrop, &o.TolerableDrop), "a drop that is tolerated is not to be found")
	case o.K != 0 && !(o.K >= 1 && o.K <= 20):
		return usage(fmt.Errorf("--k %v is not a number of sigmas from 1 to 20", o.K), "3 is the published one")
	case !(o.Power > 0.5 && o.Power < 1):
		return usage(fmt.Errorf("--power %v is not a chance above 0.5 and below 1", o.Power), "0.8 is the usual one")
	case o.K != 0 && (calibrate.Judge(o.Judge) != calibrate.WindowJudge || o.budgeted):
		return usage(errors.New("--k is the plain rule: it has no other judge and no budget"), "leave out --k, or --judge, --max-false-trips and --budget")
	case !(o.ReleaseHours >= 0.1 && o.ReleaseHours <= 10_000):
		return usage(fmt.Errorf("--release-hours %v is not a number of hours from 0.1 to 10000", o.ReleaseHours), "how long does a release take, from the first step to the last?")
	case o.Replays < 0 || o.Replays > 100_000:
		return usage(fmt.Errorf("--replays %d is not a number of weeks from 0 to 100000", o.Replays), "200 is the default, 0 does not replay")
	}
	return nil
}

// print writes the report in the asked-for format.
func (o *calibrateOptions) print(format string, rep *calibrate.Report) error {
	out := o.app.Stdout
	switch format {
	case "json":
		return encodeIndented(out, rep)
	case "yaml":
		return report.CalibrationYAML(out, rep)
	case "html":
		return report.CalibrationHTML(out, rep)
	}
	if rep.Scene != "" {
		fmt.Fprintf(out, "scene %s\n\n", rep.Scene) //nolint:errcheck // the next line finds out
	}
	return report.Calibration(out, rep, o.app.style())
}

// unjudged ends the command where the verdict is no, after the report has been
// printed.
func (o *calibrateOptions) unjudged(rep *calibrate.Report) error {
	for _, w := range rep.Warnings {
		if slices.Contains(rep.Verdict.Reasons, w.Code) {
			fmt.Fprintf(o.app.Stderr, "canaryctl: error: no threshold can be learnt: %s [%s]\n", w.Text, w.Code)
			fmt.Fprintf(o.app.Stderr, "canaryctl: hint: %s\n", w.Hint)
		}
	}
	if o.Write {
		o.app.say("%s was not touched", o.app.global.Config)
	}
	if slices.Contains(rep.Verdict.Reasons, calibrate.NoOutcome) {
		return silent(ExitUsage)
	}
	return silent(ExitNoise)
}

// configuration returns what to calibrate for, one of each scene, and the
// configuration's bytes where it is to be written.
func (o *calibrateOptions) configuration() (src []byte, cfgs []*config.Config, err error) {
	name := o.app.global.Config
	if !o.Write && !o.confGiven {
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			return nil, []*config.Config{nil}, nil
		}
	}
	if src, err = readConfigFile(name); err != nil {
		return nil, nil, err
	}
	if info, err := os.Stat(name); o.Write && err == nil && !info.Mode().IsRegular() {
		return nil, nil, usage(fmt.Errorf("%s is not a regular file: --write cannot change it", name), "name the configuration file itself with -c FILE")
	}
	if o.Write && len(o.Steps) > 0 {
		return nil, nil, usage(errors.New("--steps and --write do not go together"), "put the steps into the configuration, then calibrate for them")
	}
	cfg, err := o.app.parseConfig(name, src)
	if err != nil {
		return nil, nil, err
	}
	if !o.Write && !o.confGiven {
		o.app.say("steps and spans are those of %s", name)
	}
	if len(cfg.Scenes) == 0 && cfg.Scene == "" && !o.Write {
		return src, []*config.Config{cfg}, nil // a scene that is named is a part of the rows
	}
	if cfgs, err = o.app.scenesOf(cfg); err != nil {
		return nil, nil, err
	}
	return src, cfgs, nil
}

// of takes over what the measurement needs of a configuration, and returns its
// plan; nil is the published ladder.
func (o *calibrateOptions) of(cfg *config.Config) (*ladder.Plan, error) {
	o.scene = o.app.scene
	if cfg == nil {
		return o.Steps.plan(publishedPlan())
	}
	if cfg.Scene != "" {
		o.scene = cfg.Scene
	}
	o.live, o.top, o.ttft = cfg.Slow.SlowWindow, new(cfg.Limits()), cfg.Streaming.TTFTSlow.LimitMS.Float64()
	if cfg.Source != nil {
		o.tick = cfg.Source.Span
	}
	return o.Steps.plan(cfg.Plan())
}

// publishedPlan is the ladder with every default.
func publishedPlan() *ladder.Plan {
	cfg, _ := config.Parse("published", []byte(`canary:
  target_service: service
  steps:
    - { pct: 0.01, min_hold_min: 120 }
    - { pct: 0.05, min_hold_min: 240 }
    - { pct: 0.10, min_hold_min: 240 }
    - { pct: 0.30, min_hold_min: 720 }
    - { pct: 1.00, min_hold_min: 1440 }
`))
	return cfg.Plan()
}

// measure reads the baseline, learns from it and replays it. Whatever makes it
// unusable is said on stderr, all of it.
func (o *calibrateOptions) measure(ctx context.Context, plan *ladder.Plan) (*calibrate.Report, error) {
	opt, err := o.Read.options()
	if err != nil {
		return nil, err
	}
	opt.Distributions, opt.TTFTLimitMS = true, o.ttft
	opt.Scene = o.scene
	data, err := o.app.readScene(ctx, o.Files, opt)
	if e, ok := errors.AsType[*trace.NoCountsError](err); ok {
		return nil, o.app.refuse(calibrate.RefuseCountless(e.Error(), e.Hint(), e.Span()))
	}
	if err != nil {
		return nil, err
	}
	if o.scene == "" && !o.together {
		o.app.mixed(data)
	}
	rep, err := calibrate.Measure(data.Windows, o.options(data, plan))
	if rep != nil {
		rep.Scene = o.scene
	}
	if refusal, ok := errors.AsType[*calibrate.Refusal](err); ok {
		return nil, o.app.refuse(refusal)
	}
	if err != nil || o.Replays == 0 || !rep.Replayable() {
		return rep, err
	}
	return rep, o.replay(ctx, rep, plan)
}

func (o *calibrateOptions) options(data *trace.Data, plan *ladder.Plan) calibrate.Options {
	opt := calibrate.Options{
		TolerableDropPP: release.Ratio(o.TolerableDrop), AskedFor: o.asked, DetectDropPP: release.Ratio(o.DetectDrop),
		Span: o.Span.length(), SpanName: o.Span.text, Plan: plan, Top: o.top, Live: o.live, Tick: o.tick, LabelLag: plan.Steps[0].Limits.LabelLag,
		FalseTrips: calibrate.FalseTrips{PerWeek: o.FalseTrips.perWeek, PerRelease: o.FalseTrips.perRelease, ReleaseHours: o.ReleaseHours, Shares: o.Budget.shares},
		K:          o.K, Judge: calibrate.Judge(o.Judge), Power: o.Power,
		Exclude: o.Exclude.spans, AutoExclude: o.AutoExclude, Strict: o.Strict, Zone: o.Zone.location(),
		AllowShort: o.AllowShort, Records: data.Kind == trace.Records, First: data.First, Last: data.Last,
		Seed: o.Seed, Version: version(), Requests: map[release.Arm]calibrate.Requests{},
	}
	for _, arm := range data.Arms {
		r := calibrate.Requests{Exact: true}
		if d := data.Latency[arm]; d != nil {
			r.Latency, r.Exact = d.Values(), d.Exact
		}
		if d := data.Cost[arm]; d != nil {
			r.CostUSD = d.Values()
		}
		opt.Requests[arm] = r
	}
	opt.CountSlow = data.CountSlow
	return opt
}

// refuse prints every reason with its hint and ends the command.
func (app *App) refuse(r *calibrate.Refusal) error {
	for _, reason := range r.Reasons {
		fmt.Fprintf(app.Stderr, "canaryctl: error: not a usable baseline: %s [%s]\n", reason.Text, reason.Code)
		if reason.Hint != "" {
			fmt.Fprintf(app.Stderr, "canaryctl: hint: %s\n", reason.Hint)
		}
	}
	return silent(ExitUsage)
}

// write puts the values into the configuration, whose bytes were src, and
// returns what changed as a unified diff, "" for nothing.
func (o *calibrateOptions) write(ctx context.Context, src []byte, rep *calibrate.Report) (string, error) {
	name := o.app.global.Config
	scene, err := o.written(src)
	if err != nil {
		return "", err
	}
	out, err := putSceneSettings(name, src, scene, rep.Settings())
	if err != nil || string(out) == string(src) {
		return "", err
	}
	return o.replaced(ctx, src, out)
}

// replaced writes the configuration and returns what changed.
func (o *calibrateOptions) replaced(ctx context.Context, src, out []byte) (string, error) {
	name := o.app.global.Config
	if err := ctx.Err(); err != nil {
		return "", err
	}
	label := strings.TrimPrefix(filepath.ToSlash(filepath.Clean(name)), "/")
	return splice.Diff(label, config.Mask(src), config.Mask(out)), replaceFile(name, src, out)
}

// showDiff prints the diff on stdout below a text report, and on stderr beside
// a JSON document.
func (o *calibrateOptions) showDiff(format, diff string) error {
	name := o.app.global.Config
	if diff == "" {
		o.app.say("%s has these values already", name)
		return nil
	}
	to := o.app.Stderr
	if format == "text" {
		to, diff = o.app.Stdout, "\n"+diff
	}
	o.app.say("wrote %s; next: review the diff, then canaryctl lint", name)
	_, err := fmt.Fprint(to, diff)
	return err
}
