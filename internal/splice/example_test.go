package splice_test

import (
	"fmt"

	"github.com/canaryctl/canaryctl/internal/splice"
)

func ExampleSet() {
	before := []byte("limits:\n  p99_ms: 300   # of last year\n  cost: 2.0\n")
	after, err := splice.Set(before, []string{"limits", "p99_ms"}, "412")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(splice.Diff("canary.yaml", before, after))
	// Output:
	// --- a/canary.yaml
	// +++ b/canary.yaml
	// @@ -1,3 +1,3 @@
	//  limits:
	// -  p99_ms: 300   # of last year
	// +  p99_ms: 412   # of last year
	//    cost: 2.0
}
