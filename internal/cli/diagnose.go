package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/canaryctl/canaryctl/internal/diagnose"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/report"
	"github.com/canaryctl/canaryctl/internal/trace"
)

// diagnoseOptions are the flags of diagnose.
type diagnoseOptions struct {
	app    *App
	Logs   []string
	Map    []string
	MaxBad shareFlag
}

func newDiagnoseCmd(app *App) *cobra.Command {
	o := &diagnoseOptions{app: app}
	cmd := &cobra.Command{
		Use:   "diagnose LOG...",
		Short: "Say from a client's log of throttled calls (429) which knob to turn",
		Long: `Read what a client logged of its calls to a throttled upstream, one JSON object a line and attempt, and say which
knob to turn, with the figures that say so. Plain, gzip or zstd; "-" is standard input; all files are one log.

A line has ts, trace_id, attempt, status, retry_after_ms, breaker_state, inflight, stream, elapsed_ms, error_code,
prompt_tokens and upstream_request_id, all optional; --map reads other names. A rule whose fields are missing says
no data. Printed are the share of 429, how much retries amplify them, who refused (the upstream or the client's own
breaker), 429 against calls in flight, and long against short prompts.

EXIT STATUS
  0   diagnosed, whatever the diagnosis
  2   the command line or the log cannot be used`,
		Example: `  canaryctl diagnose attempts.jsonl
  canaryctl diagnose -o json attempts-*.jsonl.gz
  canaryctl diagnose --map status=http.code,elapsed_ms=took:s attempts.jsonl
  kubectl logs deploy/worker | canaryctl diagnose --max-bad 50% -`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Logs = args
			return runDiagnose(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.Map, "map", nil, "read a field from another `FIELD=KEY[:UNIT]`, several separated by commas")
	f.Var(&o.MaxBad, "max-bad", "largest `share` of unreadable lines, as 0.001 or 0.1%")
	return cmd
}

func runDiagnose(ctx context.Context, o *diagnoseOptions) error {
	format, err := o.app.wantOutput("text", "json")
	if err != nil {
		return err
	}
	if len(o.Logs) == 0 {
		return usage(errors.New("no log"), "name files, or - for standard input")
	}
	if slices.Contains(o.Logs, "") {
		return usage(errNameless, "name files, or - for standard input")
	}
	if err := trace.SameFile(o.Logs); err != nil {
		return inputError("", err)
	}
	names, err := diagnose.ParseNames(o.Map)
	if e, ok := errors.AsType[*diagnose.NameError](err); ok {
		return usage(fmt.Errorf("--map %w", e), e.Hint())
	}
	log := attemptLog{names: names, tally: diagnose.NewTally()}
	meter := o.app.meter(o.Logs)
	for _, path := range o.Logs {
		log.file = path
		log.tally.NextFile()
		_, err = promptly(ctx, func() (struct{}, error) {
			return struct{}{}, trace.EachLine(ctx, path, o.app.Stdin, meter.add, log.line)
		})
		if err != nil {
			break
		}
	}
	meter.line.done()
	if err == nil {
		err = o.usable(&log)
	}
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		return inputError("", err)
	}
	r := report.Diagnosis{Files: o.Logs, Bad: log.bad, BadLines: log.badLines, Diagnosis: log.tally.Diagnosis()}
	if format == "json" {
		return encodeIndented(o.app.Stdout, r.JSON())
	}
	return r.Text(o.app.Stdout, o.app.style())
}

// attemptLog reads lines into a tally.
type attemptLog struct {
	names    diagnose.Names
	tally    *diagnose.Tally
	file     string
	rows     int64
	bad      int64
	badLines []trace.BadLine // the first ten
	keys     []string        // of the first line, for messages
}

// line takes one line.
func (l *attemptLog) line(line trace.Line) error {
	l.rows++
	attempt, err := diagnose.Attempt{}, line.Err
	if err == nil {
		attempt, err = l.names.Attempt(line.Text)
	}
	if err != nil {
		l.bad++
		if len(l.badLines) < shownBadLines {
			message := err.Error()
			if line.Cut {
				message += "; it is the last line and has no end"
			}
			l.badLines = append(l.badLines, trace.BadLine{File: l.file, Line: line.Number, Message: message})
		}
		return nil
	}
	if l.keys == nil {
		l.keys = diagnose.Keys(line.Text)
	}
	l.tally.Add(&attempt)
	return nil
}

// usable says on stderr what cannot be read, and refuses a log of which too
// much, or everything, says nothing.
func (o *diagnoseOptions) usable(l *attemptLog) error {
	o.app.sayBad(l.bad, l.rows, l.badLines)
	limit := release.Ratio(o.MaxBad)
	if limit.IsZero() {
		limit = defaultMaxBad
	}
	d := l.tally.Diagnosis()
	switch {
	case l.rows == 0:
		return &trace.NoRowsError{Files: o.Logs, Why: "not a single line"}
	case limit.Compare(l.bad, l.rows) > 0:
		return &trace.BadLinesError{Bad: l.bad, Rows: l.rows, Limit: sharePercent(limit), Lines: l.badLines}
	case d.Attempts == 0:
		keys := "no key at all"
		if len(l.keys) > 0 {
			keys = oneLine(strings.Join(l.keys[:min(len(l.keys), 12)], ", "))
		}
		return &trace.InputError{File: strings.Join(o.Logs, ", "), Msg: "no line says how an attempt ended: neither status, error_code nor an OPEN breaker_state; the first has " + keys,
			Advice: "say where they are: --map status=KEY,error_code=KEY"}
	}
	return nil
}
