package diag_test

import (
	"fmt"
	"os"

	"github.com/canaryctl/canaryctl/internal/diag"
)

func ExampleList_Text() {
	list := diag.List{{
		File: "canary.yaml", Line: 1, Col: 6, EndCol: 11, Rule: "off-ring",
		Message: "pct 0.015 is not a whole number of 100 slots", Hint: "the nearest shares are 0.01 and 0.02",
	}}
	list.Sort()
	source := func(string) []byte { return []byte("pct: 0.015\n") }
	if err := list.Text(os.Stdout, source); err != nil {
		fmt.Println(err)
	}
	// Output:
	// canary.yaml:1:6: pct 0.015 is not a whole number of 100 slots [off-ring]
	//   1 | pct: 0.015
	//     |      ^~~~~
	//     hint: the nearest shares are 0.01 and 0.02
}
