package breaker_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// TestBelowAndAboveAreCompare for all counts, and for all ratios that limits may
// have: in lowest terms, and the zero value of limits that are not set. Shares
// near the ratio itself, and figures near 2^63, are drawn often.
func TestBelowAndAboveAreCompare(t *testing.T) {
	const most = math.MaxInt64
	from := func(least int64) *rapid.Generator[int64] {
		return rapid.OneOf(rapid.Int64Range(least, least+8), rapid.Int64Range(least, most), rapid.Int64Range(most-8, most))
	}
	less := func(t *rapid.T, x int64) int64 { return max(x-rapid.Int64Range(0, 2).Draw(t, "less"), 0) }
	rapid.Check(t, func(t *rapid.T) {
		var r release.Ratio
		switch rapid.IntRange(0, 8).Draw(t, "kind") {
		case 0: // not set
		case 1, 2, 3:
			r = release.MustRatio(rapid.SampledFrom([]string{"0", "0.06", "0.8", "0.333333333333333333", "1", "3", "1e18", "1e-18"}).Draw(t, "decimal"))
		default:
			r = release.NewRatio(from(0).Draw(t, "num"), from(1).Draw(t, "den"))
		}
		count, of := from(0).Draw(t, "count"), from(0).Draw(t, "of")
		if rapid.Bool().Draw(t, "near") {
			k := rapid.OneOf(rapid.Just[int64](1), rapid.Int64Range(1, most/max(r.Num, r.Den, 1))).Draw(t, "times")
			count, of = less(t, k*r.Num), less(t, k*r.Den)
		}
		order := r.Compare(count, of)
		if got := breaker.Below(count, of, r); got != (order < 0) {
			t.Fatalf("%d/%d below %d/%d: %v", count, of, r.Num, r.Den, got)
		}
		if got := breaker.Above(count, of, r); got != (order > 0) {
			t.Fatalf("%d/%d above %d/%d: %v", count, of, r.Num, r.Den, got)
		}
	})
}
