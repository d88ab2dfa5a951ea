package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// initCost is what a package allocates as it is initialised.
type initCost struct {
	pkg           string
	bytes, allocs int
}

// initCosts asks the runtime's own account, not a clock (GODEBUG=inittrace=1; Go
// package runtime). The command is this test binary: packages are left out which
// only tests have, and this one, which has nothing but tests to initialise.
func initCosts(t *testing.T) (costs []initCost) {
	t.Helper()
	list, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(list))
	cmd := exec.Command(canaryctl(t), "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	line := regexp.MustCompile(`(?m)^init (\S+) @.*, (\d+) bytes, (\d+) allocs$`)
	for _, m := range line.FindAllStringSubmatch(said.String(), -1) {
		bytes, errBytes := strconv.Atoi(m[2])
		allocs, errAllocs := strconv.Atoi(m[3])
		if errBytes != nil || errAllocs != nil {
			t.Fatalf("not understood: %s", m[0])
		}
		pkg := strings.ReplaceAll(m[1], "%2e", ".")
		if slices.Contains(deps, pkg) && pkg != module+"cmd/canaryctl" {
			costs = append(costs, initCost{pkg, bytes, allocs})
		}
	}
	if len(costs) < 50 {
		t.Fatalf("the runtime names %d packages:\n%s", len(costs), said.String())
	}
	return costs
}

// TestPackagesDoNothingBeforeTheyAreUsed holds the project's packages to what they
// allocate as they are initialised, which every command waits for: patterns,
// tables and templates are made when they are first used.
func TestPackagesDoNothingBeforeTheyAreUsed(t *testing.T) {
	most, own := initCost{"", 12 << 10, 256}, 0
	for _, c := range initCosts(t) {
		if !strings.HasPrefix(c.pkg, module+"internal/") {
			continue
		}
		if own++; c.bytes > most.bytes || c.allocs > most.allocs {
			t.Errorf("%s allocates %d bytes in %d pieces before it is used, at most %d in %d: make it when it is asked for (internal/pattern, sync.OnceValue)",
				c.pkg, c.bytes, c.allocs, most.bytes, most.allocs)
		}
	}
	if own < 5 {
		t.Fatalf("the runtime names %d packages of the project", own)
	}
}

// TestLibrariesDoLittleBeforeTheyAreUsed bounds what all packages allocate together
// before a command begins, libraries and the standard library included. It was 410 kB
// in 2,400 pieces in November 2026; one library that compiled its schemas at start-up
// took 1.7 MB in 21,000 more, and longer than all others.
func TestLibrariesDoLittleBeforeTheyAreUsed(t *testing.T) {
	most, all := initCost{"", 600 << 10, 3500}, initCost{}
	costs := initCosts(t)
	for _, c := range costs {
		all.bytes += c.bytes
		all.allocs += c.allocs
	}
	if all.bytes > most.bytes || all.allocs > most.allocs {
		slices.SortFunc(costs, func(a, b initCost) int { return cmp.Compare(b.bytes, a.bytes) })
		largest := ""
		for _, c := range costs[:8] {
			largest += fmt.Sprintf("\n%8d bytes %6d pieces  %s", c.bytes, c.allocs, c.pkg)
		}
		t.Errorf("%d bytes in %d pieces are allocated before any command begins, at most %d in %d; the most by%s",
			all.bytes, all.allocs, most.bytes, most.allocs, largest)
	}
	t.Logf("%d bytes in %d pieces by %d packages", all.bytes, all.allocs, len(costs))
}
