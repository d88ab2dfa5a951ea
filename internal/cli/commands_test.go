package cli

import (
	"io"
	"slices"
	"testing"
	"testing/fstest"
)

// TestCommandsAreBuiltByName: a command that is asked for is built alone, under
// the name that it has in the list of all.
func TestCommandsAreBuiltByName(t *testing.T) {
	app := &App{Stdin: nil, Stdout: io.Discard, Stderr: io.Discard, Getenv: func(string) string { return "" }, Scenarios: fstest.MapFS{}}
	var names []string
	for _, c := range allCommands() {
		names = append(names, c.name)
		built := commands(app, []string{c.name, "--help"})
		if len(built) != 1 || built[0].Name() != c.name {
			t.Errorf("%s builds %d commands, the first %s", c.name, len(built), built[0].Name())
		}
		if len(built[0].Aliases) != 0 {
			t.Errorf("%s has aliases, by which it would not be found", c.name)
		}
	}
	for _, args := range [][]string{nil, {"--help"}, {"help", "lint"}, {"-c", "lint", "status"}, {"lnit"}, {"__complete", "l"}} {
		var all []string
		for _, cmd := range commands(app, args) {
			all = append(all, cmd.Name())
		}
		if !slices.Equal(all, names) {
			t.Errorf("%q builds %q, want all", args, all)
		}
	}
}
