package stats_test

import (
	"fmt"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// How many requests must be judged before a drop of 10 points from 0.90 is no
// longer chance?
func ExampleMinSamples() {
	n, err := stats.MinSamples(release.MustRatio("0.90"), release.MustRatio("0.10"), stats.OneSided(3))
	fmt.Println(n, err)
	fmt.Printf("%.6f\n", stats.BinomialCDF(160, 200, 0.9)) // and at 200, how often is 160 or fewer chance?
	// Output:
	// 106 <nil>
	// 0.000017
}
