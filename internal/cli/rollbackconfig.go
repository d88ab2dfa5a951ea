package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/journal"
)

// rollbackConfig is the configuration that a rollback goes by: the file of -c,
// or, where that cannot be used, what the journal of the only release below the
// default state directory says that the release runs under. A mistake in an
// unrelated line must not keep a bad canary up.
func (app *App) rollbackConfig() (*config.Config, error) {
	cfg, err := app.loadConfig()
	if _, statErr := os.Stat(app.global.Config); err == nil || statErr != nil {
		return cfg, err // a file that is not there may be another release's
	}
	paths, globErr := filepath.Glob(filepath.Join(".canaryctl", "*", "journal.jsonl"))
	if globErr != nil || len(paths) != 1 {
		return nil, err
	}
	cfg, journalErr := journaledConfig(paths[0])
	if journalErr != nil {
		return nil, err
	}
	app.warn("%s cannot be used; rolling back by the configuration that %s holds", app.global.Config, paths[0])
	return cfg, nil
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
