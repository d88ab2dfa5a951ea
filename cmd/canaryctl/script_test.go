package main

import (
	"flag"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the expected output in the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"canaryctl": main})
}

// TestScripts runs the real command over testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "../../testdata/script",
		RequireExplicitExec: true,
		UpdateScripts:       *update,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"traffic": scriptTraffic, "masked": scriptMasked, "exits": scriptExits},
		Setup: func(env *testscript.Env) error {
			if shared, ok := os.LookupEnv("CANARYCTL_SHARED"); ok {
				env.Setenv("SHARED", shared)
			}
			return nil
		},
	})
}
