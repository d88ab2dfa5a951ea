package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/journal"
)

// rollbackConfigs lists the configurations that a rollback goes by: those of
// the file of -c, with what it has left behind, or, where it cannot be used,
// what the journals of the only service below the default state directory say
// that its releases run under. A mistake in an unrelated line must not keep a
// bad canary up, nor one scene whose journal says nothing the others.
func (app *App) rollbackConfigs() ([]*config.Config, unreadable, error) {
	cfg, err := app.loadConfigFile(app.global.Config)
	if err == nil {
		return app.withLeftovers(cfg)
	}
	if _, statErr := os.Stat(app.global.Config); statErr != nil {
		return nil, nil, err // a file that is not there may be another release's
	}
	bad := unreadable{}
	var all []*config.Config
	for _, path := range app.journals() {
		cfg := bad.journaled(path)
		if bad[cfg] == nil {
			app.warn("%s cannot be used; rolling back by the configuration that %s holds", app.global.Config, path)
		}
		all = append(all, cfg)
	}
	if len(all) == len(bad) {
		return nil, nil, err
	}
	return all, bad, nil
}

// unreadable are releases of which nobody knows where their weight is written,
// and why.
type unreadable map[*config.Config]error

// journaled is the newest configuration in a journal. Where there is none a
// stand-in that has the scene's name alone is unreadable.
func (u unreadable) journaled(path string) *config.Config {
	cfg, err := journaledConfig(path)
	if err != nil {
		cfg = &config.Config{Scene: filepath.Base(filepath.Dir(path))}
		u[cfg] = &Error{
			Code: ExitIncomplete, Err: fmt.Errorf("%s: %w", path, err),
			Hint: "set its weight to 0 where the gateway takes it from, or give canaryctl rollback a canary.yaml that has it",
		}
	}
	return cfg
}

// journals lists the journals below the default state directory, of one scene
// where that was named; none where they are of several services, or of a
// service and of its scenes.
func (app *App) journals() []string {
	services, err := filepath.Glob(filepath.Join(".canaryctl", "*", "journal.jsonl"))
	scenes, sceneErr := filepath.Glob(filepath.Join(".canaryctl", "*", "scenes", "*", "journal.jsonl"))
	if err != nil || sceneErr != nil || len(services) > 1 || len(services) == 1 && len(scenes) > 0 {
		return nil
	}
	if len(services) == 1 {
		return services
	}
	var found []string
	for _, path := range scenes {
		scene := filepath.Dir(path)
		if filepath.Dir(scene) != filepath.Dir(filepath.Dir(scenes[0])) {
			return nil // of another service
		}
		if app.scene == "" || app.scene == filepath.Base(scene) {
			found = append(found, path)
		}
	}
	return found
}

var errNoConfigLine = errors.New("the journal holds no configuration that can be used")

// journaledConfig is the newest configuration in a journal. Its secrets are
// blanked, but targets take theirs from the environment.
func journaledConfig(path string) (*config.Config, error) {
	var text string
	err := journal.Read(context.Background(), path, journal.Head{}, func(e *journal.Entry, _ journal.Head) error {
		if e.Kind == journal.Config {
			text = e.Configured.Text
		}
		return nil
	})
	if text == "" {
		return nil, errors.Join(errNoConfigLine, err)
	}
	cfg, _ := config.Parse(path, []byte(text))
	if cfg == nil {
		return nil, errNoConfigLine
	}
	return cfg, nil
}
