package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/shadow"
	"github.com/canaryctl/canaryctl/internal/trace"
)

// compareOptions are the flags of shadow compare.
type compareOptions struct {
	app        *App
	Files      []string
	Contracts  []string
	Print      string
	RecordsOut string
	AllowHold  bool
	Records    []string
	Slower     ratioFlag
	Read       readOptions
	wantConfig bool
	// wantRecords says that --records-out was given, if only as "".
	wantRecords bool
}

func newShadowCompareCmd(app *App) *cobra.Command {
	o := &compareOptions{app: app}
	cmd := &cobra.Command{
		Use:   "compare FILE... | compare --records stable=FILE canary=FILE",
		Short: "Give pairs of structured answers their verdicts, or hold two sets of records against each other",
		Long: `Judge pairs of answers, one JSON object a line with request_id, stable, canary and, where they are known, gold,
contract and ts; "-" is standard input. Each pair is judged by its structure (the contract's JSON Schema), then by
compliance (no personal data), then by semantics (no conflict with gold, weighted similarity to stable), and has one
verdict: benign, risk or fatal. What is fatal ends the judgement. Values of answers are never printed: reasons name
kind and field.

--contract names a contract that ships (order) or a YAML file; a pair may name its own. --records-out writes a record
for each pair that carries ts, with the fatal ones as violations: windows, calibrate, simulate and run read them.

With --records two sets of records are judged as they are, each as a whole, with or without times: violations, errors,
latency, time to first token and the others that both carry, against the limits of -c or the defaults, with stable's
own figures for the baselines.

EXIT STATUS
  0   every pair is benign; with --records no signal failed
  1   a pair is fatal; with --records a signal failed
  2   the command line, the contract or the input cannot be used
  3   a pair is a risk, or could not be compared; with --records nothing could be judged (--allow-hold makes it 0)`,
		Example: `  canaryctl shadow compare --contract order pairs.jsonl
  canaryctl shadow compare --contract invoice.yaml -o json pairs.jsonl.zst
  canaryctl shadow compare --print-contract order > order.yaml
  canaryctl shadow compare --contract order --records-out canary.jsonl pairs.jsonl
  canaryctl shadow compare --records stable=anyscale.json canary=perplexity.json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Files = args
			o.wantConfig, o.wantRecords = cmd.Flags().Changed("config"), cmd.Flags().Changed("records-out")
			if err := o.useless(cmd.Flags().Changed); err != nil {
				return err
			}
			return runShadowCompare(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.Contracts, "contract", nil, "`NAME` of a contract that ships, or a file; the first is that of pairs that name none")
	f.StringVar(&o.Print, "print-contract", "", "print a contract that ships, by its `name`, and end")
	f.StringVar(&o.RecordsOut, "records-out", "", "write the pairs as records of the canary to this `file`")
	f.BoolVar(&o.AllowHold, "allow-hold", false, "exit code 0 instead of 3")
	f.StringArrayVar(&o.Records, "records", nil, "hold two sets of records against each other: `ARM=FILE` for stable and for canary")
	f.Var(&o.Slower, "slower", "with --records: the `ratio` of medians from which on the canary is slower (1.5)")
	o.app.registerScene(f) // of the configuration of -c
	o.Read.register(f)
	return cmd
}

// useless refuses flags and arguments that would have no effect.
func (o *compareOptions) useless(given func(flag string) bool) error {
	if o.Print != "" {
		for _, name := range [...]string{"contract", "records", "records-out", "output"} {
			if given(name) {
				return usage(fmt.Errorf("--print-contract prints a contract and ends: --%s has no effect", name), "leave it out")
			}
		}
		if len(o.Files) > 0 {
			return usage(fmt.Errorf("--print-contract prints a contract and ends: %s is not read", o.Files[0]), "leave it out")
		}
		return nil
	}
	if len(o.Records) > 0 {
		for flag, hint := range map[string]string{
			"arm": "each set is judged as a whole: give each version a file of its own", "input-span": "records have no windows", "sum-duplicates": "records have no windows",
		} {
			if given(flag) {
				return usage(fmt.Errorf("--%s has no effect with --records", flag), hint)
			}
		}
		return nil
	}
	for _, name := range [...]string{"map", "arm", "input-span", "epoch", "null-status-ok", "sum-duplicates", "scene", "slower"} {
		if given(name) {
			return usage(fmt.Errorf("--%s is about records, and these are pairs", name), "--records stable=FILE canary=FILE takes records")
		}
	}
	return nil
}

// ratioFlag is a ratio above 1, exact as written.
type ratioFlag release.Ratio

// String implements [pflag.Value].
func (r *ratioFlag) String() string {
	if release.Ratio(*r).IsZero() {
		return ""
	}
	return release.Ratio(*r).String()
}

// Set implements [pflag.Value].
func (r *ratioFlag) Set(text string) error {
	ratio, err := release.ParseRatio(text)
	if err != nil || ratio.Compare(1, 1) >= 0 {
		return fmt.Errorf("%q is not a ratio above 1, such as 1.5", text)
	}
	*r = ratioFlag(ratio)
	return nil
}

// Type implements [pflag.Value].
func (r *ratioFlag) Type() string { return "ratio" }

func runShadowCompare(ctx context.Context, o *compareOptions) error {
	if o.Print != "" {
		return o.printContract()
	}
	if len(o.Records) > 0 {
		return runCompareRecords(ctx, o)
	}
	format, err := o.app.wantOutput("text", "json", "jsonl")
	if err != nil {
		return err
	}
	if len(o.Files) == 0 {
		return usage(errors.New("no input"), "name files of pairs, or - for standard input")
	}
	run := &compareRun{app: o.app, contracts: map[string]*shadow.Contract{}, fields: map[string][]int64{}}
	if err := run.load(o.Contracts); err != nil {
		return err
	}
	if run.out, err = newPairOutput(o.app, format); err != nil {
		return err
	}
	defer run.out.drop()
	if o.wantRecords {
		path, err := o.recordsPlace()
		if err != nil {
			return err
		}
		if run.records, err = newAsideFile(path); err != nil {
			return err
		}
		defer run.records.drop()
	}
	if err := run.judge(ctx, o); err != nil {
		return err
	}
	return run.exit(o.AllowHold)
}

func (o *compareOptions) printContract() error {
	src, ok := config.BuiltInContract(o.Print)
	if !ok {
		return usage(fmt.Errorf("there is no contract %q", o.Print), fmt.Sprintf("these ship: %v", config.ContractNames()))
	}
	_, err := o.app.Stdout.Write(src)
	return err
}

// compareRun is one run over pairs.
type compareRun struct {
	app       *App
	contracts map[string]*shadow.Contract
	usual     *shadow.Contract // of pairs that name none
	out       pairOutput
	records   *asideFile // nil: none are written
	sum       compareSummary
	timeless  int64 // pairs without ts, which are in no record

	times   trace.Moments // of the file timesOf
	timesOf string
	fields  map[string][]int64 // by contract, the pairs in which each field stands
}

// load reads the contracts that the command line names.
func (r *compareRun) load(names []string) error {
	for _, name := range names {
		src, ok := config.BuiltInContract(name)
		file := name
		if ok {
			file = name + ".yaml"
		} else {
			var err error
			if src, err = readContractFile(name); err != nil {
				return err
			}
		}
		c, err := r.app.contract(file, src)
		if err != nil {
			return err
		}
		if _, twice := r.contracts[c.Name]; twice {
			return usage(fmt.Errorf("two contracts are called %q", c.Name), "")
		}
		r.contracts[c.Name] = c
		if r.usual == nil {
			r.usual = c
		}
	}
	return nil
}

// contract parses a contract and prints what there is to say about it.
func (app *App) contract(file string, src []byte) (*shadow.Contract, error) {
	c, list := config.ParseContract(file, src)
	if c == nil {
		return nil, app.findings(list, src)
	}
	masked := config.Mask(src)
	return c, list.Text(app.Stderr, func(string) []byte { return masked })
}

// of returns the contract of a pair.
func (r *compareRun) of(p *pair) (*shadow.Contract, error) {
	switch {
	case p.contract == "" && r.usual == nil:
		return nil, &stopError{usage(errors.New("no contract: neither --contract nor the pair names one"), "say --contract order, or --contract FILE")}
	case p.contract == "":
		return r.usual, nil
	}
	if c := r.contracts[p.contract]; c != nil {
		return c, nil
	}
	src, ok := config.BuiltInContract(p.contract)
	if !ok {
		return nil, &stopError{usage(fmt.Errorf("%s:%d: the pair names a contract that was not given", p.file, p.line), "give its file with --contract")}
	}
	c, err := r.app.contract(p.contract+".yaml", src)
	if err != nil {
		return nil, &stopError{err}
	}
	r.contracts[c.Name] = c
	return c, nil
}

func (r *compareRun) judge(ctx context.Context, o *compareOptions) error {
	in := &pairReader{app: r.app, maxBad: release.Ratio(o.Read.MaxBad)}
	if err := in.read(ctx, o.Files, r.pair); err != nil {
		return err
	}
	if err := in.finish(); err != nil {
		return err
	}
	r.sum.finish(in, r.names())
	r.unseen()
	if r.records != nil {
		if r.timeless > 0 {
			r.app.warn("%d of %d pairs carry no ts and are in no record", r.timeless, r.sum.Pairs)
		}
		if r.timeless == r.sum.Pairs {
			return usage(errors.New("no pair carries ts: there are no records to write"), "log the time of each request as ts")
		}
		if err := r.records.commit(); err != nil {
			return err
		}
	}
	return r.out.finish(&r.sum)
}

func (r *compareRun) names() (names []string) {
	for name := range r.contracts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// pair judges a pair and passes it on.
func (r *compareRun) pair(p *pair) error {
	c, err := r.of(p)
	if err != nil {
		return err
	}
	stable, err := p.stable.structured()
	if err != nil {
		return err
	}
	canary, err := p.canary.structured()
	if err != nil {
		return err
	}
	v, err := c.Judge(shadow.Case{Stable: stable, Canary: canary, Gold: p.gold})
	if err != nil {
		return err
	}
	var at time.Time
	if r.records != nil {
		if at, err = r.time(p); err != nil {
			return err
		}
	}
	r.sum.add(&v)
	r.see(c, &v)
	if r.records != nil {
		if err := r.record(p, at, &v); err != nil {
			return &stopError{err}
		}
	}
	if err := r.out.add(newPairVerdict(p, c, &v)); err != nil {
		return &stopError{err}
	}
	return nil
}

// compareRecord is a record of the canary (DESIGN section 5).
type compareRecord struct {
	TS           string          `json:"ts"`
	Arm          release.Arm     `json:"arm"`
	Scene        json.RawMessage `json:"scene,omitempty"`
	User         json.RawMessage `json:"user_id,omitempty"`
	Conversation json.RawMessage `json:"conversation_id,omitempty"`
	LatencyMS    *float64        `json:"latency_ms,omitempty"`
	Violation    bool            `json:"violation"`
}

// time reads when the request of a pair came, zero if the pair does not say. The
// error makes the line a bad one: records must be readable by what reads them.
func (r *compareRun) time(p *pair) (time.Time, error) {
	text, err := scalarText(map[string]json.RawMessage{"ts": p.record.ts}, "ts")
	if err != nil || text == "" {
		return time.Time{}, err
	}
	if r.timesOf != p.file {
		r.timesOf, r.times = p.file, trace.Moments{}
	}
	at, err := r.times.Read(text)
	if err != nil {
		return at, errors.New("ts is no time that records can carry: RFC 3339 or a number of one unit throughout, from 1680 to 2259")
	}
	return at, nil
}

// record writes a pair as a record: fatal is a violation.
func (r *compareRun) record(p *pair, at time.Time, v *shadow.Verdict) error {
	if at.IsZero() {
		r.timeless++
		return nil
	}
	out := compareRecord{
		TS: at.Format(time.RFC3339Nano), Arm: release.Canary, Scene: p.record.scene, User: p.record.user, Conversation: p.record.conversation,
		Violation: v.Grade == shadow.Fatal,
	}
	if p.canary.timed && !p.canary.failed {
		out.LatencyMS = &p.canary.latencyMS
	}
	return encodeLine(r.records, out)
}

// see counts which fields of a contract the answers have.
func (r *compareRun) see(c *shadow.Contract, v *shadow.Verdict) {
	if v.Seen == nil {
		return
	}
	of := r.fields[c.Name]
	if of == nil {
		of = make([]int64, len(c.Fields))
		r.fields[c.Name] = of
	}
	for i, there := range v.Seen {
		if there {
			of[i]++
		}
	}
}

// unseen warns of fields that no answer has: a slip in a name checks nothing.
func (r *compareRun) unseen() {
	for _, name := range r.names() {
		for i, n := range r.fields[name] {
			if n == 0 {
				r.app.warn("contract %s: no answer of any pair has the field %s: it checks nothing", name, strings.Join(r.contracts[name].Fields[i].Path, "."))
			}
		}
	}
}

// exit turns the verdicts into the exit code.
func (r *compareRun) exit(allowHold bool) error {
	switch {
	case r.sum.Fatal > 0:
		return silent(ExitFailed)
	case r.sum.Risk+r.sum.NoData > 0 && !allowHold:
		return silent(ExitHeld)
	}
	return nil
}
