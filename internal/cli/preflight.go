package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/diag"
	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/notify"
	"github.com/canaryctl/canaryctl/internal/probe"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/source"
	"github.com/canaryctl/canaryctl/internal/state"
	"github.com/canaryctl/canaryctl/internal/target"
)

// preflightOptions are the flags of preflight.
type preflightOptions struct {
	Probe   bool
	Quiet   bool
	Timeout time.Duration
}

func newPreflightCmd(app *App) *cobra.Command {
	var o preflightOptions
	cmd := &cobra.Command{
		Use:   "preflight",
		Short: "Try everything that a release needs once, before it starts",
		Long: "preflight reads the target and checks that it can hold every step's weight exactly, reads the source once for each arm,\n" +
			"writes and locks the state's directory, and sends a test message on every channel. With on_complete: swap it reads the\n" +
			"two versions and says whether they can be exchanged. It moves no weight and runs no hook.\n" +
			"With --probe it sends one minimal chat completion to each version and explains what the usual failures mean.\n" +
			"Exit code 0 if all of it answered, 9 if only the source did not, else 1." + scenesHelp,
		Example: "  canaryctl preflight\n" +
			"  canaryctl preflight --probe --no-messages",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runPreflight(cmd.Context(), app, o) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.Probe, "probe", false, "ask each version for one minimal chat completion")
	f.BoolVar(&o.Quiet, "no-messages", false, "send no test messages")
	f.DurationVar(&o.Timeout, "timeout", 30*time.Second, "of each check")
	app.registerScene(f)
	return cmd
}

// check is one thing that was tried.
type check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Warn bool   `json:"warn,omitempty"` // it is no failure, and should be looked at
	Said string `json:"said"`
	Fix  string `json:"fix,omitempty"`
}

// preflightReport is preflight's JSON.
type preflightReport struct {
	Schema int            `json:"schema"`
	Scene  string         `json:"scene,omitempty"`
	OK     bool           `json:"ok"`
	Checks []check        `json:"checks"`
	Probes []probe.Result `json:"probes,omitempty"`
}

// preflight is a run of checks.
type preflight struct {
	app *App
	cfg *config.Config
	o   preflightOptions
	r   preflightReport
	// sourceOnly: nothing but the source has failed.
	sourceOnly bool
}

func runPreflight(ctx context.Context, app *App, o preflightOptions) error {
	format, err := app.wantOutput("text", "json")
	if err != nil {
		return err
	}
	if o.Timeout <= 0 {
		return usage(errors.New("--timeout is above 0"), "")
	}
	cfgs, err := app.loadScenes()
	if err != nil {
		return err
	}
	return app.eachScene(cfgs, func(x inScene) error { return preflightIn(ctx, x, o, format) })
}

func preflightIn(ctx context.Context, x inScene, o preflightOptions, format string) error {
	app, cfg := x.app, x.cfg
	p := &preflight{app: app, cfg: cfg, o: o, r: preflightReport{Schema: 1, Scene: cfg.Scene, OK: true}, sourceOnly: true}
	p.configuration()
	p.target(ctx)
	p.source(ctx)
	p.state(ctx)
	p.channels(ctx)
	if o.Probe {
		p.probe(ctx)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := p.print(app.Stdout, format); err != nil {
		return err
	}
	switch {
	case p.r.OK:
		return nil
	case p.sourceOnly:
		return silent(ExitSource)
	}
	return silent(ExitFailed)
}

// add notes what came of a check.
func (p *preflight) add(name, said string, err error) {
	c := check{Name: name, OK: err == nil, Said: said}
	if err != nil {
		c.Said, c.Fix = err.Error(), hintOf(err)
		if e, ok := errors.AsType[*Error](err); ok {
			c.Fix = e.Hint
		}
		p.r.OK = false
		p.sourceOnly = p.sourceOnly && strings.HasPrefix(name, "source")
	}
	p.r.Checks = append(p.r.Checks, c)
}

func (p *preflight) configuration() {
	list := p.cfg.Lint()
	said := "no warnings"
	if n := list.Count(diag.Warning); n > 0 {
		said = counted(n, "warning") + ": canaryctl lint shows them"
	}
	p.add("configuration", said, nil)
}

// target reads the weight and checks that every step can be held.
func (p *preflight) target(ctx context.Context) {
	t, err := p.app.target(p.cfg)
	if err != nil {
		p.add("target", "", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, p.o.Timeout)
	defer cancel()
	r, err := t.Read(ctx)
	p.add("target", fmt.Sprintf("%s holds %s", t, r.Weight), err)
	for i := range p.cfg.Steps {
		if err := t.Check(p.cfg.Steps[i].Weight); err != nil {
			p.add(fmt.Sprintf("target, step %d", i+1), "", err)
		}
	}
	if err == nil {
		p.adopted(r)
	}
	if p.cfg.OnComplete == config.SwapVersions {
		p.swap(ctx, t)
	}
}

// swap reads the two versions that on_complete: swap is to exchange: a document
// that holds none would be found out only when the release is complete.
func (p *preflight) swap(ctx context.Context, t target.Target) {
	const name = "on_complete: swap"
	s, ok := t.(driver.Swapper)
	if !ok {
		p.add(name, "", usage(fmt.Errorf("%s holds no versions that could be exchanged", t), "write on_complete: keep"))
		return
	}
	v, err := s.Versions(ctx)
	p.add(name, fmt.Sprintf("the document's versions can be exchanged: stable %.12s, canary %.12s", v.Stable, v.Canary), err)
}

// adopted says what a first promote would make of the weight that is there.
func (p *preflight) adopted(r target.Reading) {
	if first := p.cfg.Steps[0].Weight; r.Weight.Above(first) {
		p.app.say("the target holds %s, more than the first step's %s: a new release does not start from there", r.Weight, first)
	}
}

// source reads the newest windows of both arms.
func (p *preflight) source(ctx context.Context) {
	s, err := p.app.source(p.cfg)
	if err != nil {
		p.add("source", "", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, p.o.Timeout)
	defer cancel()
	now := time.Now().UTC()
	from := now.Add(-s.Settle() - preflightWindows*s.Span()).Truncate(s.Span())
	b, err := s.Read(ctx, from, now)
	p.add("source", "", err)
	if err != nil {
		return
	}
	said, seen := armsSeen(s, b)
	last := &p.r.Checks[len(p.r.Checks)-1]
	last.Said = said
	if !seen {
		last.Warn, last.Fix = true, "as it should be while there is no traffic; else look at the source's path or address, at map, arms or queries, and at its clock"
	}
	for _, n := range b.Notes {
		p.app.say("%s", n)
	}
}

// preflightWindows is how far back preflight looks.
const preflightWindows = 15

// armsSeen says what a batch holds of each arm, and whether that is any request.
func armsSeen(s source.Source, b source.Batch) (said string, seen bool) {
	requests, windows := map[release.Arm]int64{}, map[release.Arm]int{}
	for i := range b.Windows {
		w := &b.Windows[i]
		requests[w.Arm] += w.Total
		windows[w.Arm]++
	}
	if len(b.Windows) == 0 {
		return fmt.Sprintf("%s: no windows yet, of neither arm in the last %d: is the path or the mapping right?", s, preflightWindows), false
	}
	text := fmt.Sprintf("%s, last %d windows:", s, preflightWindows)
	for i, arm := range []release.Arm{release.Stable, release.Canary} {
		if i > 0 {
			text += ","
		}
		if windows[arm] == 0 {
			text += fmt.Sprintf(" no windows of %s", arm)
			continue
		}
		text += fmt.Sprintf(" %s %d requests", arm, requests[arm])
	}
	return text, requests[release.Stable]+requests[release.Canary] > 0
}

// state writes and locks the state's directory, and checks the journal's end.
func (p *preflight) state(ctx context.Context) {
	dir, err := state.Open(stateIn(p.cfg, p.cfg.State.Dir))
	if err != nil {
		p.add("state", "", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, p.o.Timeout)
	defer cancel()
	lease, err := dir.Acquire(ctx, state.Holder{Command: "preflight", Since: time.Now().UTC()})
	if err == nil {
		err = lease.Release()
	}
	said := dir.Path() + " can be written and locked"
	if err == nil {
		var r *driver.Release
		if r, err = driver.Load(ctx, dir, p.cfg.ServiceName()); err == nil && r.Head.N > 0 {
			said += fmt.Sprintf("; a release is at %s, %s", r.Ladder.Weight, r.Ladder.Stage)
		}
	}
	p.add("state", said, err)
}

// channels sends a test message on every channel.
func (p *preflight) channels(ctx context.Context) {
	channels, hooks, err := p.app.channels(p.cfg, true)
	if err != nil {
		p.add("notify", "", err)
		return
	}
	for _, h := range hooks {
		p.add("hook "+h.String(), "configured; it runs after a rollback only", nil)
	}
	if p.o.Quiet {
		return
	}
	now := time.Now().UTC()
	m := notify.Message{
		Schema: 1, Key: "preflight/" + now.Format(time.RFC3339Nano), Event: notify.Test, Time: now, Service: p.cfg.ServiceName(),
		Reason: "canaryctl preflight: this channel works", Next: "nothing",
	}
	for _, c := range channels {
		ctx, cancel := context.WithTimeout(ctx, p.o.Timeout)
		p.add(c.String(), "took a test message", c.Send(ctx, m))
		cancel()
	}
}

// probe asks both versions.
func (p *preflight) probe(ctx context.Context) {
	for _, x := range []struct {
		arm release.Arm
		v   *config.Version
	}{{release.Stable, p.cfg.Versions.Stable}, {release.Canary, p.cfg.Versions.Canary}} {
		name := "version " + string(x.arm)
		if x.v == nil {
			p.add(name, "", usage(fmt.Errorf("versions.%s is not configured", x.arm), "add it with base_url, model_id and api_key_env"))
			continue
		}
		r := probe.Ask(ctx, probe.Version{
			Arm: string(x.arm), BaseURL: x.v.BaseURL, ModelID: x.v.ModelID, KeyEnv: x.v.APIKeyEnv, Key: x.v.APIKey, Params: x.v.Params,
		}, probe.Options{Getenv: p.app.Getenv, Timeout: p.o.Timeout})
		p.r.Probes = append(p.r.Probes, r)
		var err error
		if !r.OK {
			err = &Error{Code: ExitFailed, Err: errors.New(r.Explain), Hint: r.Fix}
		}
		p.add(name, r.Explain, err)
	}
}

func (p *preflight) print(out io.Writer, format string) error {
	if format == "json" {
		return encodeIndented(out, p.r)
	}
	var b strings.Builder
	if p.r.Scene != "" {
		fmt.Fprintf(&b, "scene %s\n", p.r.Scene)
	}
	for _, c := range p.r.Checks {
		mark := "ok    "
		switch {
		case !c.OK:
			mark = "FAILED"
		case c.Warn:
			mark = "warn  "
		}
		fmt.Fprintf(&b, "%s  %s: %s\n", mark, c.Name, c.Said)
		if c.Fix != "" {
			fmt.Fprintf(&b, "        %s\n", c.Fix)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
