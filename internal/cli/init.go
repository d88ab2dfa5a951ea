package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/canaryctl/canaryctl/internal/config"
)

// initOptions are the flags of init.
type initOptions struct {
	Force   bool
	Service string
}

func newInitCmd(app *App) *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a commented canary.yaml",
		Long: "init writes a canary.yaml in which every key is explained, to the path of -c. It does not touch a file that\n" +
			"is there, unless --force says so. The figures in it are shipped ones: canaryctl calibrate replaces them by\n" +
			"those of your own service.",
		Example: "  canaryctl init --service order-service\n" +
			"  canaryctl init -c services/chat/canary.yaml",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return runInit(app, o) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.Force, "force", false, "overwrite the file")
	f.StringVar(&o.Service, "service", "my-service", "`name` of the service whose traffic is split")
	return cmd
}

func runInit(app *App, o initOptions) error {
	if _, err := app.wantOutput("text"); err != nil {
		return err
	}
	src, err := config.Template(o.Service)
	if err != nil {
		return usage(fmt.Errorf("service name %q: %w", o.Service, err), "use a name of letters, digits and dashes")
	}
	if _, list := config.Parse(app.global.Config, src); list.HasErrors() {
		return usage(fmt.Errorf("service name %q: %s", o.Service, list[0].Message), "use a name of letters, digits and dashes")
	}
	path := app.global.Config
	if path == "" {
		return usage(errNoConfigName, "name one with -c FILE")
	}
	err = writeNewFile(path, src, o.Force)
	switch {
	case errors.Is(err, errNotFile):
		return usage(fmt.Errorf("%s is a directory or a device", path), "name a file with -c FILE")
	case errors.Is(err, fs.ErrExist):
		return usage(fmt.Errorf("%s is there already", path), "canaryctl init --force overwrites it, -c FILE names another")
	case errors.Is(err, fs.ErrNotExist):
		return usage(fmt.Errorf("there is no directory %s", filepath.Dir(path)), "make it first")
	case err != nil:
		return fmt.Errorf("write %s: %w", path, err)
	}
	app.say("wrote %s; next: canaryctl lint, then canaryctl calibrate --write on a week of your own data", path)
	return nil
}
