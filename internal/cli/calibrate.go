package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/canaryctl/canaryctl/internal/calibrate"
	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/splice"
	"github.com/canaryctl/canaryctl/internal/trace"
)

// calibrateOptions are the flags of calibrate.
type calibrateOptions struct {
	app           *App
	Files         []string
	TolerableDrop pointsFlag
	Span          namedSpan
	AllowShort    bool
	Write         bool
	Read          readOptions
}

func newCalibrateCmd(app *App) *cobra.Command {
	o := &calibrateOptions{app: app, TolerableDrop: pointsFlag(release.NewRatio(5, 1)), Span: namedSpan{spanFlag: spanFlag(calibrate.DefaultSpan)}}
	cmd := &cobra.Command{
		Use:   "calibrate FILE...",
		Short: "Learn thresholds from a baseline: a week of stable's own records or windows",
		Long: `Learn from a baseline how much the service varies by itself, and which thresholds do not trip on that. The files
are records or windows of stable, a week or more; all of them are one feed, "-" is standard input.

Requests are gathered into 10-minute windows on the clock. The threshold is the tolerable drop or three sigma of the
windows' solve rates, whichever is more. A baseline of less than 24 hours or 20 whole windows is refused.

--write puts the values into the configuration, keeping every comment and every other byte, and prints the diff.

EXIT STATUS
  0   measured, and written with --write
  2   the command line, the configuration or the baseline cannot be used
  8   somebody else edited the configuration meanwhile; it was not touched`,
		Example: `  canaryctl calibrate requests-week-*.jsonl.zst
  canaryctl calibrate --map 't=unix_ts:s,total=requests,solved=successes' --input-span 5m shop.csv -o json
  canaryctl calibrate --arm stable=v1.42 --tolerable-drop 3 requests.jsonl
  canaryctl calibrate --write -c canary.yaml week.jsonl.gz`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Files = args
			return runCalibrate(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.Var(&o.TolerableDrop, "tolerable-drop", "drop of the solve rate, in percentage `points`, that the business can live with")
	f.Var(&o.Span, "calib-window", "`span` of the windows whose solve rates are compared")
	f.BoolVar(&o.AllowShort, "allow-short", false, "measure a baseline that is too short, and say so")
	f.BoolVar(&o.Write, "write", false, "put the values into the configuration file of -c and print the diff")
	o.Read.register(f)
	return cmd
}

func runCalibrate(ctx context.Context, o *calibrateOptions) error {
	app := o.app
	format, err := app.wantOutput("text", "json")
	if err != nil {
		return err
	}
	if len(o.Files) == 0 {
		return usage(errors.New("no baseline given"), "name files of records or windows, or - for standard input")
	}
	if span := o.Span.length(); span <= 0 || 24*time.Hour%span != 0 {
		return usage(fmt.Errorf("--calib-window %s does not divide a day", trace.FormatSpan(span)), "10m is the usual one")
	}
	var src []byte
	if o.Write { // before hours of reading, not after
		if src, err = readConfigFile(app.global.Config); err != nil {
			return err
		}
		if info, err := os.Stat(app.global.Config); err == nil && !info.Mode().IsRegular() {
			return usage(fmt.Errorf("%s is not a regular file: --write cannot change it", app.global.Config), "name the configuration file itself with -c FILE")
		}
		if _, err = app.parseConfig(app.global.Config, src); err != nil {
			return err
		}
	}
	rep, err := o.measure(ctx)
	if err != nil {
		return err
	}
	diff := ""
	if o.Write {
		if diff, err = o.write(ctx, src, rep); err != nil {
			return err
		}
	}
	if format == "json" {
		err = encodeIndented(app.Stdout, rep)
	} else {
		err = printCalibration(app.Stdout, rep)
	}
	if err != nil || !o.Write {
		return err
	}
	return o.showDiff(format, diff)
}

// measure reads the baseline and learns from it. Whatever makes it unusable is
// said on stderr, all of it.
func (o *calibrateOptions) measure(ctx context.Context) (*calibrate.Report, error) {
	data, err := o.app.readTrace(ctx, o.Files, &o.Read)
	if e, ok := errors.AsType[*trace.NoCountsError](err); ok {
		return nil, o.app.refuse(calibrate.RefuseCountless(e.Error(), e.Hint(), e.Span()))
	}
	if err != nil {
		return nil, err
	}
	rep, err := calibrate.Measure(data.Windows, calibrate.Options{
		TolerableDropPP: release.Ratio(o.TolerableDrop),
		Span:            o.Span.length(),
		SpanName:        o.Span.text,
		AllowShort:      o.AllowShort,
		Records:         data.Kind == trace.Records,
		First:           data.First,
		Last:            data.Last,
	})
	if refusal, ok := errors.AsType[*calibrate.Refusal](err); ok {
		return nil, o.app.refuse(refusal)
	}
	return rep, err
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
	out, err := putSettings(name, src, rep.Settings())
	if err != nil || string(out) == string(src) {
		return "", err
	}
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
	if _, err := fmt.Fprint(to, diff); err != nil {
		return err
	}
	o.app.say("wrote %s; next: review the diff, then canaryctl lint", name)
	return nil
}

// namedSpan is a span that remembers how it was written.
type namedSpan struct {
	spanFlag
	text string
}

// Set implements [pflag.Value].
func (s *namedSpan) Set(text string) error {
	s.text = text
	return s.spanFlag.Set(text)
}

func (s *namedSpan) length() time.Duration { return time.Duration(s.spanFlag) }

// pointsFlag is a number of percentage points from 0.01 to 100, exact as written.
type pointsFlag release.Ratio

// String implements [pflag.Value].
func (p *pointsFlag) String() string { return release.Ratio(*p).String() }

// Set implements [pflag.Value].
func (p *pointsFlag) Set(text string) error {
	r, err := release.ParseRatio(text)
	if err != nil || r.Compare(1, 100) > 0 || r.Compare(100, 1) < 0 {
		return fmt.Errorf("%q is not a number of percentage points from 0.01 to 100, such as 5", text)
	}
	*p = pointsFlag(r)
	return nil
}

// Type implements [pflag.Value].
func (p *pointsFlag) Type() string { return "points" }
