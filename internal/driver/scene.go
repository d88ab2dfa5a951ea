package driver

import (
	"path/filepath"
	"strings"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/pattern"
	"github.com/canaryctl/canaryctl/internal/state"
)

// sceneOf is the scene of the release SERVICE/SCENE in a directory scenes/SCENE,
// "" of a whole service's, whose name may have a slash in it as well.
func sceneOf(service string, dir *state.Dir) string {
	if dir == nil {
		return ""
	}
	scenes, scene := filepath.Split(dir.Path())
	if filepath.Base(scenes) != "scenes" || !strings.HasSuffix(service, "/"+scene) {
		return ""
	}
	return scene
}

// newRelease is the driver's release before its first line.
func (d *Driver) newRelease() *Release { return newRelease(d.o.Config.ServiceName(), d.o.Dir) }

// name begins the keys of what is written, told and run: scenes are releases of
// one candidate, and no receiver may take the one's for a repetition of the
// other's.
func (r *Release) name() string {
	if r.Scene == "" {
		return r.ID()
	}
	return r.ID() + "/" + r.Scene
}

// aCommand is a command that is given to one release.
var aCommand = pattern.New(`canaryctl (?:promote|approve|resume|rollback)`)

// Command is a text with the commands in it given to this release: `canaryctl
// rollback` is `canaryctl rollback --scene answers` where it is of a scene.
func (r *Release) Command(text string) string {
	if r.Scene == "" {
		return text
	}
	return aCommand.ReplaceAllString(text, "$0 --scene "+r.Scene)
}

// Next is what happens next, or the command to give to this release.
func (r *Release) Next(o *journal.Outcome) string { return r.Command(Next(o, r.ID())) }
