package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/diag"
	"github.com/canaryctl/canaryctl/internal/state"
	"github.com/canaryctl/canaryctl/internal/target"
)

// scenesHelp is what the commands that act on every scene say of it.
const scenesHelp = "\n\nWhere the configuration has scenes it acts on all of them, each by itself: what one comes to stops no other. --scene names\n" +
	"one. The exit code of several is the most severe, in the order 6, 5, 7, 8, 9, 1, 2, 4, 3, 0."

// registerScene adds --scene.
func (app *App) registerScene(f *pflag.FlagSet) {
	f.StringVar(&app.scene, "scene", "", "the `scene`, where the configuration has several")
}

// oneOf is the configuration of the scene that was named, or the only one that
// there is. Several and none named is a slip of the command line.
func (app *App) oneOf(cfg *config.Config) (*config.Config, error) {
	all, err := app.scenesOf(cfg)
	if err != nil || len(all) == 1 {
		return all[0], err
	}
	names := cfg.SceneNames()
	return all[0], usage(fmt.Errorf("%s has several scenes: %s", app.global.Config, strings.Join(names, ", ")), "say which one is meant: --scene "+names[0])
}

// scenesOf lists the configurations that a command acts on: those of all
// scenes, of the one that was named, or of the whole service. It is never empty.
func (app *App) scenesOf(cfg *config.Config) ([]*config.Config, error) {
	if app.scene == "" {
		if len(cfg.Scenes) == 0 {
			return []*config.Config{cfg}, nil
		}
		var all []*config.Config
		for _, s := range cfg.Scenes {
			all = append(all, s.Config)
		}
		return all, nil
	}
	if one := cfg.OfScene(app.scene); one != nil {
		return []*config.Config{one}, nil
	}
	names := cfg.SceneNames()
	if cfg.Scene != "" {
		names = []string{cfg.Scene}
	}
	return []*config.Config{cfg}, noScene(app.global.Config, app.scene, names)
}

// noScene is the error of a name that is none of the scenes of a file.
func noScene(file, scene string, names []string) error {
	hint := "it has no scenes: leave --scene out"
	if len(names) > 0 {
		hint = "it has " + strings.Join(names, ", ")
	}
	if near := diag.Nearest(scene, names); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return usage(fmt.Errorf("%s has no scene %q", file, scene), hint)
}

// loadScenes reads the configuration file and lists what the command acts on.
// It says what releases the file has left behind.
func (app *App) loadScenes() ([]*config.Config, error) {
	cfg, err := app.loadConfigFile(app.global.Config)
	if err != nil {
		return nil, err
	}
	all, err := app.scenesOf(cfg)
	if err != nil {
		return nil, err
	}
	if app.scene == "" {
		app.warnOfLeftovers(cfg)
	}
	return all, nil
}

// stateAt is the directory of a configuration's release, for reading: scenes
// have theirs below their service's.
func stateAt(cfg *config.Config) *state.Dir { return state.At(stateIn(cfg, cfg.State.Dir)) }

// stateIn is the place of a release below a state directory.
func stateIn(cfg *config.Config, dir string) (parent, name string) {
	if cfg.Scene == "" {
		return dir, cfg.TargetService
	}
	return filepath.Join(state.At(dir, cfg.TargetService).Path(), "scenes"), cfg.Scene
}

// severity is the order of exit codes over several scenes, the worst first.
var severity = []ExitCode{
	ExitIncomplete, ExitRolledBack, ExitDrift, ExitConflict, ExitSource, ExitFailed, ExitUsage, ExitApproval, ExitHeld, ExitOK,
}

// rank is a code's place in the order: what is in none is as bad as can be.
func rank(code ExitCode) int { return slices.Index(severity, code) }

// inScene is a command at work in one scene.
type inScene struct {
	app *App // its output is kept, its conversation names the scene
	cfg *config.Config
	// later is told what must be done in the order of severity, the worst last;
	// nil: there is no other scene.
	later func(code ExitCode, do func())
}

// sceneEnd is what a command came to in a scene.
type sceneEnd struct {
	name  string
	out   bytes.Buffer
	err   error
	later []func()
	code  ExitCode // of later
}

// eachScene does a command in each scene, all at once, and says what each came
// to and which is the worst. Alone it is the command itself.
func (app *App) eachScene(cfgs []*config.Config, do func(x inScene) error) error {
	if len(cfgs) == 1 {
		return do(inScene{app: app, cfg: cfgs[0]})
	}
	ends := make([]sceneEnd, len(cfgs))
	stderr := &oneWriter{to: app.Stderr}
	var all sync.WaitGroup
	for i, cfg := range cfgs {
		end := &ends[i]
		end.name = cmp.Or(cfg.Scene, cfg.TargetService) // the whole service's may be left over
		x := inScene{app: app.in(end.name, &end.out, stderr), cfg: cfg}
		x.later = func(code ExitCode, do func()) { end.later, end.code = append(end.later, do), code }
		all.Go(func() { end.err = do(x) })
	}
	all.Wait()
	return app.concluded(ends)
}

// in is the app for the work in a scene.
func (app *App) in(scene string, out, stderr io.Writer) *App {
	x := *app
	x.scene, x.about, x.Stdout, x.Stderr = scene, scene+": ", out, stderr
	return &x
}

// oneWriter lets several goroutines write, a line at a time.
type oneWriter struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements [io.Writer].
func (w *oneWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

// overallJSON is what several scenes come to together.
type overallJSON struct {
	ExitCode int    `json:"exit_code"`
	Scene    string `json:"scene"` // the worst
	Decision string `json:"decision,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// scenesJSON is the document over several scenes; each is as for one alone.
type scenesJSON struct {
	Schema  int               `json:"schema"`
	Scenes  []json.RawMessage `json:"scenes"`
	Overall overallJSON       `json:"overall"`
}

// noDocument stands for a scene of which there is nothing to show.
type noDocument struct {
	Scene    string `json:"scene"`
	Error    string `json:"error,omitempty"`
	ExitCode int    `json:"exit_code"`
}

// concluded prints what the scenes came to and ends with the worst code.
func (app *App) concluded(ends []sceneEnd) error {
	tellInOrder(ends)
	worst := worstOf(ends)
	if err := app.printScenes(ends, worst); err != nil && !isBrokenPipe(err) {
		return err
	}
	if err := interrupted(ends); err != nil {
		return err
	}
	if code := codeOf(worst.err); code != ExitOK {
		return silent(code)
	}
	return nil
}

// tellInOrder does what was kept, the worst last: of outputs with one name a CI
// keeps the last. Of several that are as bad that is the first, as in
// [worstOf].
func tellInOrder(ends []sceneEnd) {
	var order []*sceneEnd
	for i := range slices.Backward(ends) {
		order = append(order, &ends[i])
	}
	slices.SortStableFunc(order, func(a, b *sceneEnd) int { return rank(b.code) - rank(a.code) })
	for _, e := range order {
		for _, do := range e.later {
			do()
		}
	}
}

// worstOf is the scene with the most severe code, the first of several.
func worstOf(ends []sceneEnd) *sceneEnd {
	worst := &ends[0]
	for i := range ends {
		if rank(codeOf(ends[i].err)) < rank(codeOf(worst.err)) {
			worst = &ends[i]
		}
	}
	return worst
}

// interrupted is the error of a scene that a signal ended, which has a code of
// its own.
func interrupted(ends []sceneEnd) error {
	for i := range ends {
		if err := ends[i].err; errors.Is(err, context.Canceled) {
			return err
		}
	}
	return nil
}

// printScenes prints the output of the scenes, and a line or member over all.
func (app *App) printScenes(ends []sceneEnd, worst *sceneEnd) error {
	doc := scenesJSON{Schema: 1, Overall: overallJSON{ExitCode: int(codeOf(worst.err)), Scene: worst.name}}
	for i := range ends {
		e := &ends[i]
		if e.err != nil && !errors.Is(e.err, context.Canceled) {
			app.in(e.name, app.Stdout, app.Stderr).report(e.err)
		}
		if app.global.Output == "json" {
			doc.Scenes = append(doc.Scenes, e.document())
			continue
		}
		if e.out.Len() > 0 {
			fmt.Fprintf(&e.out, "\n")
		}
		if _, err := e.out.WriteTo(app.Stdout); err != nil {
			return err
		}
	}
	if app.global.Output != "json" {
		_, err := fmt.Fprintln(app.Stdout, overallText(ends, worst))
		return err
	}
	_ = json.Unmarshal(worst.document(), &struct { // what it has of them
		Decision *string `json:"decision"`
		Reason   *string `json:"reason"`
	}{&doc.Overall.Decision, &doc.Overall.Reason})
	return encodeIndented(app.Stdout, doc)
}

// overallText is the line over all scenes.
func overallText(ends []sceneEnd, worst *sceneEnd) string {
	text := "nothing is wrong"
	if code := codeOf(worst.err); code != ExitOK {
		text = fmt.Sprintf("%s in %s, exit code %d", meaning[code], worst.name, code)
	}
	return fmt.Sprintf("%d scenes: %s", len(ends), text)
}

// meaning says an exit code in words.
var meaning = map[ExitCode]string{
	ExitFailed: "failed", ExitUsage: "cannot be used as it is", ExitHeld: "held or probing", ExitApproval: "awaiting approval",
	ExitRolledBack: "rolled back or locked", ExitIncomplete: "rollback incomplete", ExitDrift: "drift", ExitConflict: "conflict",
	ExitSource: "the source could not be read",
}

// document is the scene's own document, or one that says why there is none.
func (e *sceneEnd) document() json.RawMessage {
	if raw := bytes.TrimSpace(e.out.Bytes()); json.Valid(raw) {
		return raw
	}
	none := noDocument{Scene: e.name, ExitCode: int(codeOf(e.err))}
	if e.err != nil {
		none.Error = e.err.Error()
	}
	raw, err := json.Marshal(none)
	if err != nil {
		panic("cli: a document of plain fields: " + err.Error())
	}
	return raw
}

// inTurn is a target of which one thing can be done at a time: a clone whose
// branches several scenes fetch and push.
type inTurn struct {
	target.Target
	mu *sync.Mutex
}

// clones are the turns at the clones of this process, by directory.
var clones struct {
	mu    sync.Mutex
	turns map[string]*sync.Mutex
}

// turns lets the scenes of one process take turns where the target needs it.
func turns(cfg *config.Config, t target.Target) target.Target {
	if cfg.Scene == "" || cfg.Target.Git == nil {
		return t
	}
	clones.mu.Lock()
	defer clones.mu.Unlock()
	if clones.turns == nil {
		clones.turns = map[string]*sync.Mutex{}
	}
	mu := clones.turns[cfg.Target.Git.Repo]
	if mu == nil {
		mu = &sync.Mutex{}
		clones.turns[cfg.Target.Git.Repo] = mu
	}
	return &inTurn{t, mu}
}

// Read implements [target.Target].
func (t *inTurn) Read(ctx context.Context) (target.Reading, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Target.Read(ctx)
}

// Write implements [target.Target].
func (t *inTurn) Write(ctx context.Context, was target.Reading, c target.Change) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Target.Write(ctx, was, c)
}

// live wires a command that moves the scene's release.
func (x inScene) live(command string, n needs) (*live, error) {
	l, err := x.app.liveOf(command, x.cfg, n)
	if err != nil {
		return nil, err
	}
	l.later = x.later
	return l, nil
}
