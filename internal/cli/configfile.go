package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/diag"
)

// loadConfig reads and parses the configuration file of -c. Where it has
// scenes it is the configuration of one of them; see [App.oneOf].
func (app *App) loadConfig() (*config.Config, error) {
	cfg, err := app.loadConfigFile(app.global.Config)
	if err != nil {
		return nil, err
	}
	if cfg, err = app.oneOf(cfg); err != nil {
		return nil, err
	}
	return cfg, nil
}

// loadConfigFile reads and parses a configuration file. Findings that make it
// unusable are printed to stderr, all of them, and end the command with exit
// code 2; warnings are lint's business and are not printed.
func (app *App) loadConfigFile(path string) (*config.Config, error) {
	src, err := readConfigFile(path)
	if err != nil {
		return nil, err
	}
	return app.parseConfig(path, src)
}

// parseConfig is loadConfigFile for bytes that have been read.
func (app *App) parseConfig(path string, src []byte) (*config.Config, error) {
	cfg, findings := config.Parse(path, src)
	if cfg != nil {
		return cfg, nil
	}
	return nil, app.findings(findings, src)
}

// findings prints what makes a file unusable, all of it, and ends the command
// with exit code 2.
func (app *App) findings(list diag.List, src []byte) error {
	masked := config.Mask(src) // no output shows a secret
	if err := list.Text(app.Stderr, func(string) []byte { return masked }); err != nil {
		return err
	}
	return silent(ExitUsage)
}

var errNoConfigName = errors.New("the name of the configuration file is empty")

// readConfigFile returns the bytes of a configuration file, of one that is too
// large as many as show it. A file that cannot be read is a usage error that
// says what to do.
func readConfigFile(path string) ([]byte, error) {
	if path == "" {
		return nil, usage(errNoConfigName, "name one with -c FILE")
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usage(fmt.Errorf("there is no configuration file %s", path), "write one with canaryctl init, or name yours with -c FILE")
	}
	if err != nil {
		return nil, usage(fmt.Errorf("read the configuration: %w", err), "")
	}
	defer f.Close() // nothing was written
	src, err := io.ReadAll(io.LimitReader(f, config.MaxSource+1))
	if err != nil {
		return nil, usage(fmt.Errorf("read the configuration: %w", err), "")
	}
	return src, nil
}
