package slot

import (
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/release"
)

// busy is a router with rules of every kind.
func busy() *Router {
	return &Router{Ring: 100, ExcludeUsers: SetOf("C-88001"), ExcludeSegments: SetOf("finance"), IncludeUsers: SetOf("C-1")}
}

// userIDs are ids of the usual lengths: a customer number, a UUID, an address.
var userIDs = map[string]string{
	"number":  "C-1000012345",
	"uuid":    "7f9c24e8-3b12-4fef-91e0-56a2d5a1c0de",
	"address": strings.Repeat("a-long-name.", 9) + "@example.org",
}

// TestNothingIsAllocatedForARoute, whatever the id's length.
func TestNothingIsAllocatedForARoute(t *testing.T) {
	r, weight := busy(), release.Weight{Slots: 5, Ring: 100}
	for name, id := range userIDs {
		if n := testing.AllocsPerRun(1000, func() { r.Route(id, "retail", weight) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// BenchmarkRoute is one user.
func BenchmarkRoute(b *testing.B) {
	for _, name := range []string{"number", "uuid", "address"} {
		b.Run(name, func(b *testing.B) {
			r, weight, id := busy(), release.Weight{Slots: 5, Ring: 100}, userIDs[name]
			b.ReportAllocs()
			for b.Loop() {
				r.Route(id, "retail", weight)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "users/s")
		})
	}
}
