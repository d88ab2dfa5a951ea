package cli

import "github.com/spf13/cobra"

// command is a command of canaryctl before it is built with its flags.
type command struct {
	name  string
	build func(*App) *cobra.Command
}

// allCommands lists canaryctl's commands in the order of the help.
func allCommands() []command {
	return []command{
		{"init", newInitCmd},
		{"lint", newLintCmd},
		{"calibrate", newCalibrateCmd},
		{"simulate", newSimulateCmd},
		{"preflight", newPreflightCmd},
		{"promote", newPromoteCmd},
		{"run", newRunCmd},
		{"approve", newApproveCmd},
		{"pause", newPauseCmd},
		{"resume", newResumeCmd},
		{"rollback", newRollbackCmd},
		{"status", newStatusCmd},
		{"watch", newWatchCmd},
		{"history", newHistoryCmd},
		{"route", newRouteCmd},
		{"shadow", newShadowCmd},
		{"diagnose", newDiagnoseCmd},
		{"serve", newServeCmd},
		{"schema", newSchemaCmd},
		{"windows", newWindowsCmd},
		{"version", newVersionCmd},
	}
}

// commands builds the command that the arguments begin with, or all of them
// where they begin with anything else, as for the help: flags are most of what
// there is to build at start-up.
func commands(app *App, args []string) (built []*cobra.Command) {
	for _, c := range allCommands() {
		if len(args) > 0 && args[0] == c.name {
			return []*cobra.Command{c.build(app)}
		}
	}
	for _, c := range allCommands() {
		built = append(built, c.build(app))
	}
	return built
}
