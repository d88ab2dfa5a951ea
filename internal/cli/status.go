package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/canaryctl/canaryctl/internal/driver"
)

// statusOptions are the flags of status.
type statusOptions struct {
	Check bool
}

func newStatusCmd(app *App) *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say where the release stands, why, and what comes next",
		Long: "status reads target and source and says what promote would decide now. It moves nothing and writes nothing. Its exit\n" +
			"code is 0 unless it cannot tell; with --check it is the one that promote would have." + scenesHelp,
		Example: "  canaryctl status\n" +
			"  canaryctl status -o json | jq '.remaining_s'\n" +
			"  canaryctl status --check -q || page-somebody",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runStatus(cmd.Context(), app, o) },
	}
	cmd.Flags().BoolVar(&o.Check, "check", false, "exit as promote would")
	app.registerScene(cmd.Flags())
	return cmd
}

func runStatus(ctx context.Context, app *App, o statusOptions) error {
	if _, err := app.wantOutput("text", "json"); err != nil {
		return err
	}
	cfgs, err := app.liveConfigs("status")
	if err != nil {
		return err
	}
	return app.eachScene(cfgs, func(x inScene) error { return statusIn(ctx, x, o) })
}

func statusIn(ctx context.Context, x inScene, o statusOptions) error {
	l, err := x.live("status", needs{source: true, reads: true})
	if err != nil {
		return err
	}
	res, err := l.driver.Peek(ctx)
	if err != nil {
		return failure(err)
	}
	s := l.standing(res, exitOf[res.Status])
	if err := l.print(s); err != nil {
		return err
	}
	if o.Check && res.Status != driver.Done {
		return silent(exitOf[res.Status])
	}
	return nil
}
