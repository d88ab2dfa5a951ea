package cli

import (
	"github.com/spf13/cobra"

	"github.com/canaryctl/canaryctl/internal/config"
)

func newSchemaCmd(app *App) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of canary.yaml",
		Long: "schema prints the JSON Schema (draft 2020-12) of canary.yaml, for editors that complete and check as one\n" +
			"types. It knows the structure; what keys mean together only canaryctl lint can say.",
		Example: "  canaryctl schema > canary.schema.json\n" +
			"  # first line of canary.yaml, for the YAML language server:\n" +
			"  # yaml-language-server: $schema=./canary.schema.json",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if _, err := app.wantOutput("json"); err != nil {
				return err
			}
			_, err := app.Stdout.Write(config.Schema())
			return err
		},
	}
}
