package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

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

// errNotFile says that a directory or a device stands where a file was to be
// written.
var errNotFile = errors.New("not a regular file")

// writeNewFile writes a file aside and moves it to its place whole. Without
// overwrite a file that is there stays, and the error is [fs.ErrExist], even
// when it appeared this very moment. With it a link is followed and the file
// keeps its permissions.
func writeNewFile(path string, data []byte, overwrite bool) error {
	if overwrite {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			path = target
		}
	}
	before, err := os.Stat(path)
	if err == nil && !before.Mode().IsRegular() {
		return errNotFile
	}
	aside, err := writeAside(path, data)
	if err != nil {
		return err
	}
	switch {
	case !overwrite:
		err = moveNew(aside, path)
	case before != nil:
		err = os.Chmod(aside, before.Mode().Perm())
		fallthrough
	default:
		err = errors.Join(err, os.Rename(aside, path))
	}
	if rmErr := os.Remove(aside); err == nil && rmErr != nil && !errors.Is(rmErr, fs.ErrNotExist) {
		err = rmErr
	}
	return err
}

// writeAside writes a file beside a path, with the permissions that the user
// gives to new files, and returns its name.
func writeAside(path string, data []byte) (name string, err error) {
	name = filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+strconv.FormatUint(rand.Uint64(), 36))
	aside, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return "", err
	}
	_, err = aside.Write(data)
	err = errors.Join(err, aside.Sync(), aside.Close())
	if err != nil {
		return "", errors.Join(err, os.Remove(name))
	}
	return name, nil
}

// moveNew gives a file its name if nothing has that name. A link fails on one
// that is taken; where the file system has no links a look must do.
func moveNew(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, statErr := os.Lstat(to); statErr == nil {
		return fmt.Errorf("%s: %w", to, fs.ErrExist)
	}
	return os.Rename(from, to)
}
