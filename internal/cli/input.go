package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/trace"
)

// readOptions are the flags of every command that reads records or windows.
type readOptions struct {
	Map       []string
	Arms      []string
	InputSpan spanFlag
	MaxBad    shareFlag
	Epoch     string
	Sum       bool
	NullOK    bool
	MaxMemory sizeFlag
}

// register adds the flags to a command.
func (o *readOptions) register(f *pflag.FlagSet) {
	f.StringArrayVar(&o.Map, "map", nil, "read a field from another `FIELD=COLUMN[:UNIT]`, several separated by commas")
	f.StringArrayVar(&o.Arms, "arm", nil, "which version is which arm, `ARM=VERSION`, or all to count every row as one arm")
	f.Var(&o.InputSpan, "input-span", "`span` of each window where the file has none")
	f.Var(&o.MaxBad, "max-bad", "largest `share` of unreadable lines, as 0.001 or 0.1%")
	f.StringVar(&o.Epoch, "epoch", "", "`unit` of times that are numbers: s, ms, us, ns")
	f.BoolVar(&o.NullOK, "null-status-ok", false, "take a status that is there and null for ok, as where it is an error code")
	o.MaxMemory = 256 << 20
	f.Var(&o.MaxMemory, "max-memory", "`size` of what is held at once so that percentiles are exact, as 64MiB or 1GiB; past it they come from histograms")
	f.BoolVar(&o.Sum, "sum-duplicates", false, "add up windows of the same time and arm, parts of a whole")
}

// options turns the flags into how to read.
func (o *readOptions) options() (trace.Options, error) {
	opt := trace.Options{
		InputSpan: time.Duration(o.InputSpan), MaxBad: release.Ratio(o.MaxBad), SumDuplicates: o.Sum, NullStatusOK: o.NullOK,
		MaxMemory: int64(o.MaxMemory),
	}
	for _, s := range o.Map {
		m, err := trace.ParseMapping(s)
		if err != nil {
			return opt, inputError("--map ", err)
		}
		for _, more := range m {
			for _, before := range opt.Map {
				if before.Field == more.Field {
					return opt, usage(fmt.Errorf("--map: %s is mapped twice", more.Field), "")
				}
			}
			opt.Map = append(opt.Map, more)
		}
	}
	for _, s := range o.Arms {
		if err := opt.ParseArm(s); err != nil {
			return opt, inputError("--arm ", err)
		}
	}
	if o.Epoch != "" {
		unit, err := trace.ParseEpoch(o.Epoch)
		if err != nil {
			return opt, inputError("--epoch ", err)
		}
		opt.Epoch = unit
	}
	return opt, nil
}

// readFeed reads files as one feed and says on stderr what was met. Errors are
// ready to be returned: exit 2 for input that cannot be used.
func (app *App) readFeed(ctx context.Context, files []string, opt trace.Options) (*trace.Data, error) {
	meter := app.meter(files)
	data, err := promptly(ctx, func() (*trace.Data, error) { return trace.ReadFiles(ctx, files, app.Stdin, opt, meter.add) })
	meter.line.done()
	if err != nil && ctx.Err() != nil {
		return data, err
	}
	for _, n := range data.Notes {
		app.say("%s", n)
	}
	if _, timeless := errors.AsType[*trace.NoTimeError](err); !timeless {
		app.sayBad(data.Bad, data.Rows, data.BadLines)
	}
	if err != nil {
		return data, inputError("", err)
	}
	return data, nil
}

// sayBad says on stderr which lines could not be read, the first of them.
func (app *App) sayBad(bad, rows int64, lines []trace.BadLine) {
	if len(lines) == 0 {
		return
	}
	app.warn("%d of %d lines cannot be read:", bad, rows)
	for _, b := range lines {
		fmt.Fprintf(app.Stderr, "  %s\n", harmless(b.String()))
	}
	if more := bad - int64(len(lines)); more > 0 {
		fmt.Fprintf(app.Stderr, "  and %d more\n", more)
	}
}

// inputError is an error about the user's input, with its hint.
func inputError(flag string, err error) error {
	hint := ""
	if h, ok := errors.AsType[trace.Hinter](err); ok {
		hint = h.Hint()
	}
	if flag != "" {
		err = fmt.Errorf("%s%w", flag, err)
	}
	return usage(err, hint)
}

// spanFlag is a length of time such as 90s, 10m, 1h30m or 1d.
type spanFlag time.Duration

// String implements [pflag.Value].
func (s *spanFlag) String() string {
	if *s == 0 {
		return ""
	}
	return trace.FormatSpan(time.Duration(*s))
}

// Set implements [pflag.Value].
func (s *spanFlag) Set(text string) error {
	d, err := trace.ParseSpan(text)
	*s = spanFlag(d)
	return err
}

// Type implements [pflag.Value].
func (s *spanFlag) Type() string { return "span" }

// shareFlag is a share between 0 and 1, exact as written: 0.001 or 0.1%.
type shareFlag release.Ratio

// String implements [pflag.Value].
func (s *shareFlag) String() string {
	if release.Ratio(*s).IsZero() {
		return ""
	}
	return release.Ratio(*s).String()
}

// Set implements [pflag.Value].
func (s *shareFlag) Set(text string) error {
	number, percent := strings.CutSuffix(text, "%")
	r, err := release.ParseRatio(strings.TrimSpace(number))
	if err == nil && percent {
		r, err = r.Mul(release.NewRatio(1, 100))
	}
	if err != nil || r.Compare(1, 1) < 0 {
		return fmt.Errorf("%q is not a share between 0 and 1, such as 0.001 or 0.1%%", text)
	}
	*s = shareFlag(r)
	return nil
}

// Type implements [pflag.Value].
func (s *shareFlag) Type() string { return "share" }

// sizeFlag is a number of bytes with its unit, exact as written: 64MiB, 1GiB,
// 500MB. It is at least [leastMemory].
type sizeFlag int64

// leastMemory is the smallest bound of memory that can be kept.
const leastMemory sizeFlag = 16 << 20

// sizeUnits are the units of sizes, the largest first: those of IEC 80000-13, which
// are powers of 1024, and those of the SI.
var sizeUnits = [...]struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"kB", 1e3}, {"B", 1}}

// String implements [pflag.Value]: in the largest unit that needs no fraction.
func (s *sizeFlag) String() string {
	for _, u := range sizeUnits {
		if n := int64(*s); n != 0 && n%u.bytes == 0 {
			return fmt.Sprintf("%d%s", n/u.bytes, u.name)
		}
	}
	return ""
}

// Set implements [pflag.Value].
func (s *sizeFlag) Set(text string) error {
	for _, u := range sizeUnits {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		r, err := release.ParseRatio(number)
		if err == nil {
			r, err = r.Mul(release.NewRatio(u.bytes, 1))
		}
		switch {
		case err != nil || r.Den != 1:
			return fmt.Errorf("%q is not a whole number of bytes", text)
		case sizeFlag(r.Num) < leastMemory:
			return fmt.Errorf("%q is too little: at least %s", text, new(leastMemory))
		}
		*s = sizeFlag(r.Num)
		return nil
	}
	return fmt.Errorf("%q is not a size such as 64MiB, 1GiB or 500MB", text)
}

// Type implements [pflag.Value].
func (s *sizeFlag) Type() string { return "size" }
