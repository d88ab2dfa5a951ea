package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/diag"
)

// lintOptions are the flags of lint.
type lintOptions struct {
	Strict bool
}

func newLintCmd(app *App) *cobra.Command {
	var o lintOptions
	cmd := &cobra.Command{
		Use:   "lint [FILE...]",
		Short: "Say what is wrong or risky in a canary.yaml",
		Long: "lint reads configuration files, by default the one of -c, and says everything that it finds, each with its\n" +
			"place, its rule and a hint. Errors make a file unusable: exit code 2. Warnings are about files that can be\n" +
			"used and will not serve well: limits that trip a healthy service, steps that cannot be judged, secrets.\n" +
			"Each rule has a paragraph and an example in docs/reference/lint.md.",
		Example: "  canaryctl lint\n" +
			"  canaryctl lint --strict services/*/canary.yaml\n" +
			"  canaryctl lint -o json | jq '.findings[].rule'",
		RunE: func(_ *cobra.Command, files []string) error { return runLint(app, o, files) },
	}
	cmd.Flags().BoolVar(&o.Strict, "strict", false, "warnings are errors: exit code 2")
	return cmd
}

func runLint(app *App, o lintOptions, files []string) error {
	format, err := app.wantOutput("text", "json")
	if err != nil {
		return err
	}
	if len(files) == 0 {
		files = []string{app.global.Config}
	}
	sources := map[string][]byte{}
	list := diag.List{}
	var failed error
	for _, file := range files {
		if _, twice := sources[file]; twice {
			continue
		}
		src, err := readConfigFile(file)
		if err != nil { // the other files are worth a look all the same
			if failed != nil {
				app.report(failed)
			}
			failed = err
			continue
		}
		list = append(list, config.Check(file, src)...)
		sources[file] = config.Mask(src)
	}
	if len(sources) == 0 {
		return failed
	}
	list.Sort()
	if err := app.printFindings(format, list, sources); err != nil {
		return err
	}
	if failed == nil && (list.HasErrors() || o.Strict && len(list) > 0) {
		return silent(ExitUsage)
	}
	return failed
}

// lintReport is lint's JSON.
type lintReport struct {
	Schema   int       `json:"schema"`
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
	Findings diag.List `json:"findings"`
}

func (app *App) printFindings(format string, list diag.List, sources map[string][]byte) error {
	errs, warnings := list.Count(diag.Error), list.Count(diag.Warning)
	if format == "json" {
		return encodeIndented(app.Stdout, lintReport{Schema: 1, Errors: errs, Warnings: warnings, Findings: list})
	}
	if err := list.Text(app.Stdout, func(file string) []byte { return sources[file] }); err != nil {
		return err
	}
	app.say("%s, %s in %s", counted(errs, "error"), counted(warnings, "warning"), counted(len(sources), "file"))
	return nil
}

// counted says a number of things: "1 error", "2 errors".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
