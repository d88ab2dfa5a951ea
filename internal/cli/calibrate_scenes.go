package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/canaryctl/canaryctl/internal/calibrate"
	"github.com/canaryctl/canaryctl/internal/config"
)

// sceneCalibrations is calibrate's JSON over several scenes.
type sceneCalibrations struct {
	Schema  int                 `json:"schema"`
	Scenes  []*calibrate.Report `json:"scenes"`
	Overall *calibrate.Report   `json:"overall"` // all rows together, not replayed; null: they cannot be measured so
}

// everyScene measures each scene by its own rows, and all of them together: the
// noise of a mixture is no scene's, and shows how far apart they are.
func (o *calibrateOptions) everyScene(ctx context.Context, format string, src []byte, cfgs []*config.Config) error {
	switch {
	case format == "yaml" || format == "html":
		return usage(fmt.Errorf("-o %s is of one scene, and %s has several", format, o.app.global.Config), "say which: --scene "+cfgs[0].Scene)
	case slices.Contains(o.Files, "-"):
		return usage(errOneStdin, "name a file, or one scene with --scene")
	}
	for _, cfg := range cfgs {
		if err := o.ownSteps(src, cfg.Scene); o.Write && err != nil {
			return err
		}
	}
	doc := sceneCalibrations{Schema: 1}
	for _, cfg := range cfgs {
		rep, err := o.inScene(ctx, cfg)
		if err != nil {
			return err
		}
		doc.Scenes = append(doc.Scenes, rep)
		if format == "text" {
			if err := o.print(format, rep); err != nil {
				return err
			}
			fmt.Fprintln(o.app.Stdout) //nolint:errcheck // the next line finds out
		}
	}
	var err error
	if doc.Overall, err = o.altogether(ctx, cfgs[0]); err != nil {
		return err
	}
	if format == "json" {
		err = encodeIndented(o.app.Stdout, doc)
	} else {
		_, err = fmt.Fprint(o.app.Stdout, noiseTable(&doc))
	}
	if err != nil {
		return err
	}
	return o.concludeScenes(ctx, format, src, &doc)
}

// inScene measures one scene.
func (o *calibrateOptions) inScene(ctx context.Context, cfg *config.Config) (*calibrate.Report, error) {
	whole := o.app
	o.app = whole.in(cfg.Scene, whole.Stdout, whole.Stderr)
	o.app.scene = "" // rows that name no scene are not this one's
	defer func() { o.app = whole }()
	plan, err := o.of(cfg)
	if err != nil {
		return nil, err
	}
	return o.measure(ctx, plan)
}

// altogether measures the rows of all scenes as one. What is no usable baseline
// so is none: the scenes are.
func (o *calibrateOptions) altogether(ctx context.Context, cfg *config.Config) (*calibrate.Report, error) {
	plan, err := o.of(cfg)
	if err != nil {
		return nil, err
	}
	replays := o.Replays
	o.scene, o.together, o.Replays = "", true, 0
	defer func() { o.together, o.Replays = false, replays }()
	quiet := *o.app
	quiet.global.Quiet = true
	whole := o.app
	o.app = &quiet
	defer func() { o.app = whole }()
	rep, err := o.measure(ctx, plan)
	if e, refused := errors.AsType[*Error](err); refused && e.Err == nil {
		return nil, nil
	}
	return rep, err
}

// noiseTable shows the noise of each scene beside that of all together.
func noiseTable(doc *sceneCalibrations) string {
	var b strings.Builder
	width := 14
	for _, r := range doc.Scenes {
		width = max(width, len(r.Scene))
	}
	fmt.Fprintf(&b, "%-*s %12s %10s %10s %10s %10s\n", width, "scene", "requests/min", "solve rate", "sigma pp", "tau pp", "p99 ms")
	row := func(name string, r *calibrate.Report) {
		fmt.Fprintf(&b, "%-*s %12s %10s %10s %10s %10s\n", width, name, figureOf(r.RequestsPerMin, 1, 4), figureOf(&r.Slow.SolveBaseline, 1, 4),
			figureOf(r.Slow.SigmaPP, 1, 3), figureOf(r.Slow.Tau, 100, 3), figureOf(r.P99.ValueMS, 1, 4))
	}
	for _, r := range doc.Scenes {
		row(r.Scene, r)
	}
	if doc.Overall != nil {
		row("all together", doc.Overall)
	}
	return b.String()
}

// figureOf prints a figure to some digits, or says that nobody knows it.
func figureOf(x *float64, factor float64, digits int) string {
	if x == nil || math.IsNaN(*x) {
		return "unknown"
	}
	return strconv.FormatFloat(*x*factor, 'g', digits, 64)
}

// concludeScenes ends with the verdict, and writes every scene's values or none.
func (o *calibrateOptions) concludeScenes(ctx context.Context, format string, src []byte, doc *sceneCalibrations) error {
	var refused error
	short := false
	for _, rep := range doc.Scenes {
		if rep.Verdict.Refuses() {
			whole := o.app
			o.app = whole.in(rep.Scene, whole.Stdout, whole.Stderr)
			if err := o.unjudged(rep); refused == nil || codeOf(err) == ExitUsage {
				refused = err
			}
			o.app = whole
		}
		short = short || !rep.Verdict.OK
	}
	if refused != nil || !o.Write {
		return refused
	}
	if short {
		o.app.warn("%s was not touched: a baseline that is too short has no verdict", o.app.global.Config)
		return nil
	}
	out := src
	for _, rep := range doc.Scenes {
		var err error
		if out, err = putSceneSettings(o.app.global.Config, out, rep.Scene, rep.Settings()); err != nil {
			return err
		}
	}
	diff := ""
	if string(out) != string(src) {
		var err error
		if diff, err = o.replaced(ctx, src, out); err != nil {
			return err
		}
	}
	return o.showDiff(format, diff)
}

// written is the scene whose keys take the values of the only measurement, ""
// for canary's own.
func (o *calibrateOptions) written(src []byte) (string, error) {
	if o.scene == "" {
		return "", nil
	}
	cfg, _ := config.Parse(o.app.global.Config, src)
	if cfg == nil || len(cfg.Scenes) == 0 {
		return "", nil // a file of one scene
	}
	return o.scene, o.ownSteps(src, o.scene)
}

// ownSteps refuses to write where a scene climbs canary's steps: limits by step
// would be every scene's.
func (o *calibrateOptions) ownSteps(src []byte, scene string) error {
	if config.OwnSteps(src, scene) {
		return nil
	}
	return usage(fmt.Errorf("the scene %s has no steps of its own: its limits by step have no place; nothing was changed", scene),
		"copy canary.steps into scenes."+scene)
}
