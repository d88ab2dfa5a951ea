package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/shadow"
	"github.com/canaryctl/canaryctl/internal/trace"
)

// decideOptions are the flags of shadow decide.
type decideOptions struct {
	app       *App
	Files     []string
	MaxBad    shareFlag
	AllowHold bool
	policyFlags
}

// policyFlags are the flags that make a [shadow.Policy].
type policyFlags struct {
	Window, Least          int
	ParseGap, ToolMismatch shareFlag
	P95MS, TimeoutMS       float64
	ThrottleTo             shareFlag
	Changes                []string
}

func newShadowDecideCmd(app *App) *cobra.Command {
	o := &decideOptions{app: app}
	cmd := &cobra.Command{
		Use:   "decide FILE...",
		Short: "Say by pairs of chat completions whether a canary is fit for traffic",
		Long: `Read pairs of chat completions, one JSON object a line with stable and canary, and say for each canary against each
stable what its last pairs ask for; "-" is standard input.

  observe        fewer pairs than --least, or fewer of a kind than that: latencies, pairs whose tools are known
  roll_back      stable parses more often than the canary by more than --parse-gap,
                 or the chains of tools differ in more than --tool-mismatch of the pairs in which both parse
  throttle       the canary's p95 latency is above --p95-ms: copy at most --throttle-to of the requests
  promote_ready  ready for a small share of real traffic, never for all of it

An answer parses if every tool call has a name and an arguments string or, without tool calls, if its content is
JSON. A canary's answer that took longer than --timeout-ms failed: it counts as one that does not parse, not as slow.
Pairs whose versions differ in anything but --changes are counted apart and not compared.

EXIT STATUS
  0   promote_ready
  2   the command line or the input cannot be used
  3   observe or throttle (--allow-hold makes it 0)
  5   roll_back`,
		Example: `  canaryctl shadow decide pairs.jsonl
  canaryctl shadow decide --changes prompt_version -o json pairs.jsonl.gz
  canaryctl shadow decide --p95-ms 1500 --tool-mismatch 5% pairs.jsonl`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Files = args
			return runShadowDecide(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.Var(&o.MaxBad, "max-bad", "largest `share` of unreadable lines, as 0.001 or 0.1%")
	f.BoolVar(&o.AllowHold, "allow-hold", false, "exit code 0 instead of 3")
	o.register(cmd)
	return cmd
}

// register adds the flags to a command, with the published policy as defaults.
func (p *policyFlags) register(cmd *cobra.Command) {
	d := shadow.DefaultPolicy()
	p.ParseGap, p.ToolMismatch, p.ThrottleTo = shareFlag(d.ParseGap), shareFlag(d.ToolMismatch), shareFlag(d.ThrottleTo)
	f := cmd.Flags()
	f.IntVar(&p.Window, "window", d.Window, "`pairs` that are looked at, the last ones")
	f.IntVar(&p.Least, "least", d.Least, "`pairs` from which on they are judged")
	f.Var(&p.ParseGap, "parse-gap", "roll back above this `share`")
	f.Var(&p.ToolMismatch, "tool-mismatch", "roll back above this `share`")
	f.Float64Var(&p.P95MS, "p95-ms", d.P95MS, "throttle above so many `milliseconds`")
	f.Float64Var(&p.TimeoutMS, "timeout-ms", d.TimeoutMS, "a canary's answer failed after so many `milliseconds`; 0 for no limit")
	f.Var(&p.ThrottleTo, "throttle-to", "`share` of the requests that are copied at most while throttled")
	f.StringSliceVar(&p.Changes, "changes", []string{"model"}, "the `parts` in which the canary is meant to differ: model, prompt_version, tools_version, temperature")
}

// policy makes the policy, or says which flag is of no use.
func (p *policyFlags) policy() (shadow.Policy, error) {
	out := shadow.Policy{
		Window: p.Window, Least: p.Least, ParseGap: release.Ratio(p.ParseGap), ToolMismatch: release.Ratio(p.ToolMismatch),
		P95MS: p.P95MS, TimeoutMS: p.TimeoutMS, ThrottleTo: release.Ratio(p.ThrottleTo),
	}
	switch {
	case p.Least < 1 || p.Window < p.Least || p.Window > 100_000:
		return out, usage(fmt.Errorf("--least %d and --window %d: want 1 <= least <= window <= 100000", p.Least, p.Window), "")
	case !(p.P95MS > 0) || p.P95MS > 1e12:
		return out, usage(errors.New("--p95-ms is no number of milliseconds above 0"), "")
	case !(p.TimeoutMS >= 0) || p.TimeoutMS > 1e12:
		return out, usage(errors.New("--timeout-ms is no number of milliseconds"), "")
	}
	parts := map[string]shadow.Part{"model": shadow.Model, "prompt_version": shadow.PromptVersion, "tools_version": shadow.ToolsVersion, "temperature": shadow.Temperature}
	for _, name := range p.Changes {
		part, ok := parts[name]
		if !ok {
			return out, usage(fmt.Errorf("--changes: %q is no part of a version", name), "they are model, prompt_version, tools_version and temperature")
		}
		out.Changes |= part
	}
	return out, nil
}

func runShadowDecide(ctx context.Context, o *decideOptions) error {
	format, err := o.app.wantOutput("text", "json")
	if err != nil {
		return err
	}
	if len(o.Files) == 0 {
		return usage(errors.New("no input"), "name files of pairs, or - for standard input")
	}
	policy, err := o.policy()
	if err != nil {
		return err
	}
	o.warn(o.app)
	run := &decideRun{policy: policy, windows: shadow.NewWindows(policy), differ: map[shadow.Part]int64{}}
	in := &pairReader{app: o.app, maxBad: release.Ratio(o.MaxBad)}
	if err := in.read(ctx, o.Files, run.pair); err != nil {
		return err
	}
	if err := in.finish(); err != nil {
		return err
	}
	d := newDecision(run.windows, in, policy)
	run.warn(o.app, d)
	return o.write(format, d)
}

// warn says which flags cannot have the effect that they are for.
func (p *policyFlags) warn(app *App) {
	if p.TimeoutMS > 0 && p.TimeoutMS <= p.P95MS {
		app.warn("--timeout-ms %g is not above --p95-ms %g: what is slow has failed already, and throttle can never be said", p.TimeoutMS, p.P95MS)
	}
}

// decideRun is one run over pairs.
type decideRun struct {
	policy   shadow.Policy
	windows  *shadow.Windows
	nameless int64                 // pairs that say nothing of their version
	differ   map[shadow.Part]int64 // pairs that are not aligned, by what differs; 0: fingerprints alone
}

func (r *decideRun) pair(p *pair) error {
	stable, canary := p.versions()
	if stable.IsZero() && p.stable.fingerprint == "" && p.fingerprint == "" {
		r.nameless++
	}
	sp := shadow.Pair{Stable: p.stable.answer(), Canary: p.canary.answer()}
	sp.Align(stable, canary, r.policy.Changes)
	p.fingerprints(&sp)
	if sp.Unaligned {
		r.differ[stable.Differs(canary)&^r.policy.Changes]++
	}
	r.windows.Add(sp)
	return nil
}

// warn says what the decision rests on that the user may not expect.
func (r *decideRun) warn(app *App, d *decision) {
	if r.nameless > 0 {
		app.warn("%d of %d pairs say nothing of their version: they count as one", r.nameless, d.Pairs)
	}
	for _, parts := range slices.Sorted(maps.Keys(r.differ)) {
		if parts == 0 {
			app.warn("%d of %d pairs are not aligned: their fingerprints differ, and the parts that would say in what are not there", r.differ[parts], d.Pairs)
			continue
		}
		app.warn("%d of %d pairs are not aligned: they differ in %s; if that is the change, say --changes %s", r.differ[parts], d.Pairs,
			strings.Join(parts.Names(), " and "), strings.Join((parts|r.policy.Changes).Names(), ","))
	}
	if r.nameless < d.Pairs {
		for i := range d.Fingerprints {
			if s := &d.Fingerprints[i]; s.Fingerprint == s.Against {
				app.warn("%s stands on both sides: the canary is held against itself, or against a stable that nothing tells from it", oneLine(s.Fingerprint))
				break
			}
		}
	}
	if d.Dropped > 0 {
		app.warn("%d fingerprints were given up for want of room: of those a roll-back is kept, and nothing else", d.Dropped)
	}
}

// versions returns what is known of both sides: their own parts over those of
// the pair, and the model that a body names where nothing else says it.
func (p *pair) versions() (stable, canary shadow.Version) {
	return p.stable.over(p.version), p.canary.over(p.version)
}

func (s *side) over(both shadow.Version) shadow.Version {
	v := s.version
	for _, part := range []struct{ own, both *string }{
		{&v.Model, &both.Model}, {&v.PromptVersion, &both.PromptVersion}, {&v.ToolsVersion, &both.ToolsVersion}, {&v.Temperature, &both.Temperature},
	} {
		if *part.own == "" {
			*part.own = *part.both
		}
	}
	if v.Model == "" {
		v.Model = s.model()
	}
	return v
}

// fingerprints puts fingerprints that were logged in the place of computed
// ones. They do not say in what two versions differ: those that differ are not
// compared, unless the parts are there and say that they may.
func (p *pair) fingerprints(sp *shadow.Pair) {
	stable, canary := p.stable.fingerprint, p.canary.fingerprint
	if stable == "" {
		stable = p.fingerprint
	}
	if canary == "" {
		canary = p.fingerprint
	}
	if stable == "" && canary == "" {
		return
	}
	vs, vc := p.versions()
	if vs.IsZero() || vc.IsZero() {
		sp.Unaligned = sp.Unaligned || stable != canary
	}
	if stable != "" {
		sp.StableFingerprint = stable
	}
	if canary != "" {
		sp.CanaryFingerprint = canary
	}
}

// decision is the JSON of shadow decide.
type decision struct {
	Schema       int               `json:"schema"`
	Action       shadow.Action     `json:"action"` // the worst of the fingerprints'
	Policy       policyJSON        `json:"policy"`
	Pairs        int64             `json:"pairs"`
	Unaligned    int64             `json:"unaligned"` // of them, not compared
	Fingerprints []shadow.Standing `json:"fingerprints"`
	Dropped      int64             `json:"dropped_fingerprints"`
	Bad          int64             `json:"bad"`
	BadLines     []trace.BadLine   `json:"bad_lines"`
}

type policyJSON struct {
	Window       int     `json:"window"`
	Least        int     `json:"least"`
	ParseGap     float64 `json:"parse_gap"`
	ToolMismatch float64 `json:"tool_mismatch"`
	P95MS        float64 `json:"p95_ms"`
	TimeoutMS    float64 `json:"timeout_ms"`
	ThrottleTo   float64 `json:"throttle_to"`
}

func newDecision(w *shadow.Windows, in *pairReader, p shadow.Policy) *decision {
	d := &decision{
		Schema: 1, Action: shadow.Observe, Pairs: in.pairs(), Unaligned: w.Unaligned(), Fingerprints: w.Standings(), Dropped: w.Dropped(),
		Bad: in.bad, BadLines: append([]trace.BadLine{}, in.badLines...),
		Policy: policyJSON{p.Window, p.Least, p.ParseGap.Float64(), p.ToolMismatch.Float64(), p.P95MS, p.TimeoutMS, p.ThrottleTo.Float64()},
	}
	for i := range d.Fingerprints {
		if i == 0 || d.Fingerprints[i].Action < d.Action {
			d.Action = d.Fingerprints[i].Action
		}
	}
	return d
}

func (o *decideOptions) write(format string, d *decision) error {
	var err error
	if format == "json" {
		err = encodeIndented(o.app.Stdout, d)
	} else {
		err = o.text(d)
	}
	switch {
	case err != nil:
		return err
	case d.Action == shadow.RollBack:
		return silent(ExitRolledBack)
	case d.Action != shadow.PromoteReady && !o.AllowHold:
		return silent(ExitHeld)
	}
	return nil
}

func (o *decideOptions) text(d *decision) error {
	out := bufio.NewWriter(o.app.Stdout)
	for i := range d.Fingerprints {
		s := &d.Fingerprints[i]
		fmt.Fprintf(out, "%s  %s against %s: %s\n", s.Action, oneLine(s.Fingerprint), oneLine(s.Against), s.Reason)
		if s.Action == shadow.Throttle {
			fmt.Fprintf(out, "  copy at most %s of the requests\n", sharePercent(release.Ratio(o.ThrottleTo)))
		}
		fmt.Fprintf(out, "  %d of %d pairs; stable parses %d, the canary %d; %d calls of the canary failed, %d by time-out\n", s.Pairs, s.Seen, s.StableParsed, s.CanaryParsed, s.CanaryFailed, s.TimedOut)
		for _, c := range s.Checks {
			fmt.Fprintf(out, "  %-14s %-13s %s, limit %s, of %d\n", c.Name, c.Verdict, checkFigure(&c, c.Value), checkFigure(&c, &c.Limit), c.Samples)
		}
	}
	if len(d.Fingerprints) == 0 {
		fmt.Fprintf(out, "%s  no pair could be compared\n", d.Action)
	}
	fmt.Fprintf(out, "%s, %d not aligned, %s\n", counted(int(d.Pairs), "pair"), d.Unaligned, counted(len(d.Fingerprints), "fingerprint"))
	return out.Flush()
}

// checkFigure writes a value of a check in its unit.
func checkFigure(c *shadow.Check, v *float64) string {
	if v == nil {
		return "-"
	}
	if strings.HasPrefix(c.Name, "p95") {
		return fixed(*v, -1) + " ms"
	}
	places := 2
	for c.Value != nil && *c.Value != c.Limit && places < 12 && fixed(100**c.Value, places) == fixed(100*c.Limit, places) {
		places++
	}
	return fixed(100**v, places) + " %"
}
