package config_test

import (
	"fmt"

	"github.com/canaryctl/canaryctl/internal/config"
)

func ExampleParse() {
	src := []byte("canary:\n  target_service: chat\n  steps: [{pct: 0.5, min_hold_min: 2h}, {pct: 1, min_hold_min: 60}]\n")
	cfg, list := config.Parse("canary.yaml", src)
	fmt.Println(cfg == nil)
	for _, f := range list {
		fmt.Print(f.Render(config.Mask(src)))
	}
	// Output:
	// true
	// canary.yaml:3:36: min_hold_min: want a number of minutes, not the string "2h" [wrong-unit]
	//   3 |   steps: [{pct: 0.5, min_hold_min: 2h}, {pct: 1, min_hold_min: 60}]
	//     |                                    ^~
	//     hint: write 120: the unit is minutes, written as a plain number: 5, 0.5 (30 seconds), 1440 (a day)
}

func ExampleConfig_Plan() {
	cfg, _ := config.Parse("canary.yaml", []byte("canary: {target_service: chat, steps: [{pct: 0.5, min_hold_min: 90}, {pct: 1, min_hold_min: 60}]}"))
	for _, s := range cfg.Plan().Steps {
		fmt.Println(s.Weight, s.MinHold, s.Limits.SolveFloor)
	}
	// Output:
	// 50 % 1h30m0s 0.8
	// 100 % 1h0m0s 0.8
}
