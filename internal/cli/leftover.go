package cli

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/state"
)

// leftover is a release of the service that its configuration names no more:
// that of a scene which was taken out or renamed, or of the service before it
// had scenes.
type leftover struct {
	scene string // "": the whole service
	dir   *state.Dir
	at    string // its share
}

// leftovers lists the releases below the service's directory that are under way,
// have users on the canary as far as is known, and are not the configuration's:
// nothing else would look at them again. A file that is about one scene knows
// nothing of the others.
func leftovers(cfg *config.Config) []leftover {
	if cfg.Scene != "" {
		return nil
	}
	var found []leftover
	add := func(l leftover) {
		if l.up(cfg.TargetService) {
			found = append(found, l)
		}
	}
	own := stateAt(cfg)
	if len(cfg.Scenes) > 0 {
		add(leftover{dir: own})
	}
	scenes := filepath.Join(own.Path(), "scenes")
	entries, _ := os.ReadDir(scenes) // there may be none
	for _, e := range entries {
		if cfg.OfScene(e.Name()) == nil {
			add(leftover{scene: e.Name(), dir: state.At(scenes, e.Name())})
		}
	}
	return found
}

// up reports whether the release has users on the canary, or nobody knows, and
// notes its share.
func (l *leftover) up(service string) bool {
	if _, err := os.Stat(l.dir.Journal()); err != nil {
		return false // none was ever begun here
	}
	name := service
	if l.scene != "" {
		name += "/" + l.scene
	}
	r, err := driver.Load(context.Background(), l.dir, name)
	if err != nil {
		l.at = "a share that nobody knows"
		return true
	}
	l.at = r.Ladder.Weight.String()
	asked := r.Ladder.Pending.Move != release.Hold // perhaps written, and not read back
	if asked && r.Ladder.Pending.Weight.Above(r.Ladder.Weight) {
		l.at = r.Ladder.Pending.Weight.String()
	}
	return asked || r.Ladder.Stage != ladder.Completed && !r.Ladder.Weight.IsZero()
}

// warnOfLeftovers says which releases nobody looks after any more.
func (app *App) warnOfLeftovers(cfg *config.Config) {
	for _, l := range leftovers(cfg) {
		if l.scene == "" {
			app.warn("the release of %s as a whole is at %s, and %s has scenes now: canaryctl rollback takes it back", cfg.TargetService, l.at, app.global.Config)
			continue
		}
		app.warn("%s has no scene %s any more, and its release is at %s: put it back, or canaryctl rollback --scene %s", app.global.Config, l.scene, l.at, l.scene)
	}
}

// withLeftovers lists what a rollback acts on: the configuration's releases, and
// those that it has left behind, by what their journals hold. Beside a
// configuration without scenes those are only meant by name: each of them may
// have a file of its own.
func (app *App) withLeftovers(cfg *config.Config) ([]*config.Config, unreadable, error) {
	bad := unreadable{}
	all, err := app.scenesOf(cfg)
	for _, l := range leftovers(cfg) {
		switch {
		case app.scene != "" && l.scene == app.scene:
			return []*config.Config{bad.journaled(l.dir.Journal())}, bad, nil
		case app.scene == "" && len(cfg.Scenes) > 0:
			app.warn("%s is not in %s any more, and at %s: rolling it back by what %s holds", cmp.Or(l.scene, "the whole service"), app.global.Config, l.at, l.dir.Journal())
			all = append(all, bad.journaled(l.dir.Journal()))
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return all, bad, nil
}
