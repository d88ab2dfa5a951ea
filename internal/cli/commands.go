package cli

import "github.com/spf13/cobra"

// commands lists canaryctl's commands in the order of the help.
func commands(app *App) []*cobra.Command {
	return []*cobra.Command{
		newInitCmd(app),
		newLintCmd(app),
		newCalibrateCmd(app),
		newSimulateCmd(app),
		newPreflightCmd(app),
		newPromoteCmd(app),
		newRunCmd(app),
		newApproveCmd(app),
		newPauseCmd(app),
		newResumeCmd(app),
		newRollbackCmd(app),
		newStatusCmd(app),
		newWatchCmd(app),
		newHistoryCmd(app),
		newRouteCmd(app),
		newShadowCmd(app),
		newDiagnoseCmd(app),
		newServeCmd(app),
		newSchemaCmd(app),
		newWindowsCmd(app),
		newVersionCmd(app),
	}
}
