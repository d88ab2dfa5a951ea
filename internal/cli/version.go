package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version is the released version, set by the linker; a build from a checkout
// says what the Go tool knows of it.
var Version = ""

// versionReport is the JSON form of version.
type versionReport struct {
	Schema  int    `json:"schema"`
	Version string `json:"version"`
	Go      string `json:"go"`
}

func newVersionCmd(app *App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,

		PersistentPreRun: func(*cobra.Command, []string) {}, // it ends before a signal could be waited for: see Main
		RunE: func(*cobra.Command, []string) error {
			format, err := app.wantOutput("text", "json")
			if err != nil {
				return err
			}
			if format == "json" {
				return encodeLine(app.Stdout, versionReport{Schema: 1, Version: version(), Go: runtime.Version()})
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
