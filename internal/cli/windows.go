package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/trace"
)

// windowsOptions are the flags of windows.
type windowsOptions struct {
	app     *App
	Files   []string
	Span    spanFlag
	Columns string
	Slow    slowFlag
	TTFT    slowFlag
	Scene   string
	Read    readOptions

	ttftGiven bool // --ttft-limit-ms was given
}

func newWindowsCmd(app *App) *cobra.Command {
	o := &windowsOptions{app: app, TTFT: defaultTTFTLimitMS}
	cmd := &cobra.Command{
		Use:   "windows FILE...",
		Short: "Count records into windows, or merge and convert windows",
		Long: `Count records into windows per arm, or read windows and write them as canaryctl does. All files are one feed;
"-" is standard input. JSON lines, CSV, Parquet, a JSON array, Prometheus query_range answers and snapshots of /metrics are
read, plain, gzip or zstd; exports of OTLP, LiteLLM, Langfuse, Helicone, Envoy, nginx and OpenAI are known by the names
in them. Without --span records are counted by the minute and windows stay as they are. -o csv (the
default) and -o jsonl write the windows, -o json one document with an account of the input as well.

With --slow-ms each window of records says how many requests were slower, which needs the latency of every one. Times
to first token above --ttft-limit-ms are counted among the streams that have one.
Figures that the input does not have are left empty, never zero. What was guessed, dropped or out of order is said
on stderr, and so are lines that cannot be read; --max-bad says how many of them are too many.

EXIT STATUS
  0   written
  2   the command line or the input cannot be used`,
		Example: `  canaryctl windows requests.jsonl.zst
  canaryctl windows --span 10m -o jsonl monday.csv tuesday.csv
  canaryctl windows --arm stable=v1.42 --arm canary=v1.43 requests.jsonl
  canaryctl windows --map 't=unix_ts:s,total=requests,solved=successes' --input-span 5m shop.csv
  canaryctl windows --arm all --columns t,total,solved,p99_ms requests.jsonl
  canaryctl windows --slow-ms 1800 --ttft-limit-ms 2000 requests.jsonl
  canaryctl windows --scene summaries requests.jsonl
  zcat requests.jsonl.gz | canaryctl windows -`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Files, o.ttftGiven = args, cmd.Flags().Changed("ttft-limit-ms")
			return runWindows(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.Var(&o.Span, "span", "length of the windows: `10m`, 1h")
	f.Var(&o.Slow, "slow-ms", "count requests slower than so many `milliseconds`, in the column slow")
	f.Var(&o.TTFT, "ttft-limit-ms", "count streams whose first token took longer than so many `milliseconds`, in the column ttft_slow")
	f.StringVar(&o.Scene, "scene", "", "count only the rows of this `scene`")
	f.StringVar(&o.Columns, "columns", "", "write only these `columns`, in this order: t,total,p99_ms")
	o.Read.register(f)
	return cmd
}

func runWindows(ctx context.Context, o *windowsOptions) error {
	format, err := o.app.wantOutput("csv", "jsonl", "json")
	if err != nil {
		return err
	}
	if len(o.Files) == 0 {
		return usage(fmt.Errorf("no input"), "name files, or - for standard input")
	}
	var columns []trace.Column
	if o.Columns != "" {
		if columns, err = trace.ParseColumns(o.Columns); err != nil {
			return inputError("--columns ", err)
		}
	}
	opt, err := o.Read.options()
	if err != nil {
		return err
	}
	opt.Columns = columns
	opt.Span, opt.SlowMS, opt.TTFTLimitMS, opt.Scene = time.Duration(o.Span), float64(o.Slow), float64(o.TTFT), o.Scene
	data, err := o.app.readFeed(ctx, o.Files, opt)
	if err != nil {
		return err
	}
	switch {
	case !o.ttftGiven || data.Kind != trace.Windows:
	case !data.Snapshots:
		o.app.say("slow first tokens are not counted: these rows are windows, which carry their own count in ttft_slow or none")
	case data.Supplied&release.HasTTFTSlow == 0:
		o.app.say("slow first tokens are not counted: %g ms is no bound of a histogram of first tokens", opt.TTFTLimitMS)
	}
	if columns == nil {
		columns = trace.Columns(data.Supplied)
	}
	for _, p := range data.Partial {
		o.app.say("the window of %s at %s is covered in part: %s of %s", p.Arm, p.T.Format(time.RFC3339), trace.FormatSpan(p.Covered), trace.FormatSpan(data.Span))
	}
	switch format {
	case "json":
		return writeWindowsJSON(o.app.Stdout, data, columns)
	case "jsonl":
		return trace.WriteJSONL(o.app.Stdout, data.Windows, columns)
	}
	return trace.WriteCSV(o.app.Stdout, data.Windows, columns)
}

// defaultTTFTLimitMS is the limit of ttft_slow where no configuration says
// another.
const defaultTTFTLimitMS = 3000

// slowFlag is a latency in milliseconds, above 0.
type slowFlag float64

// String implements [pflag.Value].
func (s *slowFlag) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(*s), 'g', -1, 64)
}

// Set implements [pflag.Value].
func (s *slowFlag) Set(text string) error {
	ms, err := strconv.ParseFloat(text, 64)
	if err != nil || !(ms > 0) || math.IsInf(ms, 0) {
		return fmt.Errorf("%q is not a number of milliseconds such as 300", text)
	}
	*s = slowFlag(ms)
	return nil
}

// Type implements [pflag.Value].
func (s *slowFlag) Type() string { return "milliseconds" }

// windowsJSON is what windows -o json says of the input; the windows follow.
type windowsJSON struct {
	Schema     int             `json:"schema"`
	Kind       trace.Kind      `json:"kind"`
	First      time.Time       `json:"first"`
	Last       time.Time       `json:"last"`
	Rows       int64           `json:"rows"`
	Bad        int64           `json:"bad"`
	BadLines   []trace.BadLine `json:"bad_lines"`
	Duplicates int64           `json:"duplicates"`
	Identical  int64           `json:"identical"`
	OutOfOrder int64           `json:"out_of_order"`
	Late       int64           `json:"late"`
	Approx     int64           `json:"approximate"`
	NonFinite  int64           `json:"non_finite"`
	NoData     int64           `json:"no_data"`
	LeftOut    int64           `json:"left_out"`

	Scenes      map[string]int64 `json:"scenes"`
	OtherScenes int64            `json:"other_scenes"`
	Sceneless   int64            `json:"sceneless"`

	Partial []partialJSON `json:"partial"`
	Notes   []string      `json:"notes"`
}

type partialJSON struct {
	T       time.Time `json:"t"`
	Arm     string    `json:"arm"`
	Covered string    `json:"covered"`
}

// writeWindowsJSON writes one document: the account of the input, then the
// windows, one a line.
func writeWindowsJSON(w io.Writer, d *trace.Data, columns []trace.Column) error {
	doc := windowsJSON{
		Schema: 1, Kind: d.Kind, First: d.First, Last: d.Last, Rows: d.Rows, Bad: d.Bad, BadLines: append([]trace.BadLine{}, d.BadLines...),
		Duplicates: d.Duplicates, Identical: d.Identical, OutOfOrder: d.OutOfOrder, Late: d.Late, Approx: d.Approximate, NonFinite: d.NonFinite, NoData: d.NoData,
		LeftOut: d.LeftOut, Scenes: d.Scenes, OtherScenes: d.OtherScenes, Sceneless: d.Sceneless, Partial: []partialJSON{}, Notes: append([]string{}, d.Notes...),
	}
	if doc.Scenes == nil {
		doc.Scenes = map[string]int64{}
	}
	for _, p := range d.Partial {
		doc.Partial = append(doc.Partial, partialJSON{p.T, string(p.Arm), trace.FormatSpan(p.Covered)})
	}
	head, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	out.Write(head[:len(head)-1]) //nolint:errcheck // bufio keeps the error for Flush
	out.WriteString(`,"windows":[`)
	var line []byte
	for i := range d.Windows {
		line = append(line[:0], '\n')
		if i > 0 {
			line = append(line[:0], ",\n"...)
		}
		out.Write(trace.AppendJSON(line, &d.Windows[i], columns)) //nolint:errcheck // as above
	}
	out.WriteString("\n]}\n")
	return out.Flush()
}
