package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version is the released version, set by the linker; a build from a checkout
// says what the Go tool knows of it.
var Version = ""

func newVersionCmd(app *App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			format, err := app.wantOutput("text", "json")
			if err != nil {
				return err
			}
			if format == "json" {
				return json.NewEncoder(app.Stdout).Encode(map[string]any{"schema": 1, "version": version(), "go": runtime.Version()})
			}
			_, err = fmt.Fprintf(app.Stdout, "canaryctl %s (%s)\n", version(), runtime.Version())
			return err
		},
	}
}

func version() string {
	if Version != "" {
		return Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}
