package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestPackagesDoNothingBeforeTheyAreUsed holds the project's packages to what they
// allocate as they are initialised, which every command waits for: patterns,
// tables and templates are made when they are first used. The runtime's own
// account is asked (GODEBUG=inittrace=1; Go package runtime), not a clock.
func TestPackagesDoNothingBeforeTheyAreUsed(t *testing.T) {
	type cost struct{ bytes, allocs int }
	most := cost{12 << 10, 256}
	cmd := exec.Command(canaryctl(t), "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	line := regexp.MustCompile(`(?m)^init ` + regexp.QuoteMeta(module) + `internal/(\S+) @.*, (\d+) bytes, (\d+) allocs$`)
	found := line.FindAllStringSubmatch(said.String(), -1)
	if len(found) < 5 {
		t.Fatalf("the runtime names %d packages of the project:\n%s", len(found), said.String())
	}
	for _, m := range found {
		bytes, errBytes := strconv.Atoi(m[2])
		allocs, errAllocs := strconv.Atoi(m[3])
		if errBytes != nil || errAllocs != nil || bytes > most.bytes || allocs > most.allocs {
			t.Errorf("internal/%s allocates %s bytes in %s pieces before it is used, at most %d in %d: make it when it is asked for (internal/pattern, sync.OnceValue)",
				m[1], m[2], m[3], most.bytes, most.allocs)
		}
	}
}
