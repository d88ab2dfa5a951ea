package calibrate

import (
	"flag"
	"os"
	"testing"
)

var worldStats = flag.Bool("stats", false, "simulate the worlds at length and compare docs/reference/calibrate-figures.md")

func TestWorldsTmp(t *testing.T) {
	a := amount{baselines: 16, weeks: 40, drops: 15, cusums: 8, replays: 200}
	by, err := simulateWorlds([]int{0, 1, 2, 3, 4}, a, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile("/tmp/figures.md", []byte(figuresBlock(by, a)), 0o644)
}
