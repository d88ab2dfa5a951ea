package cli

import "github.com/spf13/cobra"

func newShadowCmd(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "shadow",
		Short: "Judge a canary on copies of real traffic, without touching users",
		Long: "shadow judges what a canary answers to copies of requests that stable answered. compare is for structured\n" +
			"answers: one verdict a pair. decide is for chat completions, with or without tool calls: what should be done,\n" +
			"by the last pairs of each version.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newShadowCompareCmd(app), newShadowDecideCmd(app), newShadowProxyCmd(app))
	return cmd
}
