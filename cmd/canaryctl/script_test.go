package main

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the expected output in the scripts")

// raceOptions is the variable of the environment with the options of the race
// detector. A program that has it waits a second before it ends with exit code 0
// (atexit_sleep_ms; The Go Project: Data Race Detector), for races of goroutines
// that outlive main; the tests run the command some thousand times, and it ends
// by os.Exit as soon as its work is done.
const raceOptions = "GORACE"

func TestMain(m *testing.M) {
	if err := os.Setenv(raceOptions, strings.TrimSpace(os.Getenv(raceOptions)+" atexit_sleep_ms=0")); err != nil {
		panic(err)
	}
	// Most tests wait, for windows of time and for processes: more of them at once
	// than there are processors. -parallel says otherwise.
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
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
			env.Setenv(raceOptions, os.Getenv(raceOptions))
			if shared, ok := os.LookupEnv("CANARYCTL_SHARED"); ok {
				env.Setenv("SHARED", shared)
			}
			return nil
		},
	})
}
