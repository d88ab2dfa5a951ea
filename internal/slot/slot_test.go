package slot

import (
	"crypto/sha256"
	"encoding/json"
	"math"
	"math/big"
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
)

func weight(slots, ring int64) release.Weight { return release.Weight{Slots: slots, Ring: ring} }

// slotByBigInt is the rule written a second time, without machine integers.
func slotByBigInt(user string, ring int64) int64 {
	sum := sha256.Sum256([]byte(user))
	n := new(big.Int).SetBytes(sum[:8])
	return n.Mod(n, big.NewInt(ring)).Int64()
}

func TestOf(t *testing.T) {
	// SHA-256 of nothing is e3b0c442 98fc1c14 ... (FIPS 180-4); of "abc" ba7816bf 8f01cfea ...
	for _, c := range []struct {
		user string
		ring int64
		want int64
	}{
		{"", 10000, 0xe3b0c44298fc1c14 % 10000},
		{"abc", 10000, 0xba7816bf8f01cfea % 10000},
		{"abc", 1, 0},
		{"abc", math.MaxInt64, 0xba7816bf8f01cfea % math.MaxInt64},
	} {
		if got := Of(c.user, c.ring); got != c.want {
			t.Errorf("Of(%q, %d) = %d, want %d", c.user, c.ring, got, c.want)
		}
	}
}

func TestOfIsTheRuleForAnyID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		user := string(rapid.SliceOf(rapid.Byte()).Draw(t, "user"))
		ring := rapid.Int64Min(1).Draw(t, "ring")
		got := Of(user, ring)
		if want := slotByBigInt(user, ring); got != want || Of(user, ring) != got {
			t.Fatalf("Of(%q, %d) = %d, want %d", user, ring, got, want)
		}
	})
}

func TestBelowRoundsHalfToEven(t *testing.T) {
	for _, c := range []struct {
		pct  string
		ring int64
		want int64
	}{
		{"0", 100, 0}, {"0.005", 100, 0}, {"0.015", 100, 2}, {"0.025", 100, 2}, {"0.0250001", 100, 3}, {"0.0249999", 100, 2},
		{"0.1", 100, 10}, {"0.29", 100, 29}, {"0.995", 100, 100}, {"1", 100, 100}, {"0.3333", 3, 1}, {"0.5", 1, 0}, {"0.5", 3, 2},
	} {
		if got := Below(release.MustRatio(c.pct), c.ring); got != c.want {
			t.Errorf("Below(%s, %d) = %d, want %d", c.pct, c.ring, got, c.want)
		}
	}
}

func TestRoutePrecedence(t *testing.T) {
	r := Router{Ring: 100, ExcludeUsers: SetOf("ex", "both"), ExcludeSegments: SetOf("finance", ""), IncludeUsers: SetOf("in", "both")}
	all, one, none := weight(100, 100), weight(1, 100), weight(0, 100)
	for _, c := range []struct {
		name, user, segment string
		weight              release.Weight
		want                release.Arm
		why                 Why
	}{
		{"an excluded user stays on stable at 100 %", "ex", "", all, release.Stable, ExcludedUser},
		{"an excluded segment stays on stable at 100 %", "u", "finance", all, release.Stable, ExcludedSegment},
		{"excluded beats included", "both", "", all, release.Stable, ExcludedUser},
		{"an excluded segment beats an included user", "in", "finance", all, release.Stable, ExcludedSegment},
		{"included beats the slot", "in", "", one, release.Canary, IncludedUser},
		{"at weight 0 the include list counts for nothing", "in", "", none, release.Stable, Off},
		{"the zero weight is weight 0", "in", "", release.Weight{}, release.Stable, Off},
		{"at weight 0 nobody is on the canary", "u", "", none, release.Stable, Off},
		{"no segment is not a segment", "u", "", all, release.Canary, BySlot},
		{"everybody else at 100 %", "u", "retail", all, release.Canary, BySlot},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := r.Route(c.user, c.segment, c.weight)
			if want := (Answer{Arm: c.want, Slot: slotByBigInt(c.user, 100), Why: c.why}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestRouteAtTheEdgeOfTheShare(t *testing.T) {
	r := Router{Ring: 1000}
	s := Of("edge", 1000)
	if a := r.Route("edge", "", weight(s, 1000)); a.Arm != release.Stable {
		t.Errorf("slot %d is on the canary at %d slots: %+v", s, s, a)
	}
	if a := r.Route("edge", "", weight(s+1, 1000)); a.Arm != release.Canary {
		t.Errorf("slot %d is not on the canary at %d slots: %+v", s, s+1, a)
	}
}

func TestGrowthNeverEvictsAUser(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ring := rapid.Int64Range(1, 100000).Draw(t, "ring")
		names := rapid.SliceOfN(rapid.StringMatching(`u[0-9]`), 0, 3)
		r := Router{Ring: ring, ExcludeUsers: SetOf(names.Draw(t, "exclude")...), IncludeUsers: SetOf(names.Draw(t, "include")...)}
		user := rapid.OneOf(rapid.String(), rapid.StringMatching(`u[0-9]`)).Draw(t, "user")
		other := rapid.SampledFrom([]int64{ring, 100, 10000}).Draw(t, "weight's ring")
		a := rapid.Int64Range(0, other).Draw(t, "a")
		b := rapid.Int64Range(a, other).Draw(t, "b")
		low, high := r.Route(user, "", weight(a, other)), r.Route(user, "", weight(b, other))
		if low.Arm == release.Canary && high.Arm != release.Canary {
			t.Fatalf("on the canary at %d of %d, off it at %d: %+v %+v", a, other, b, low, high)
		}
		if low.Slot != high.Slot {
			t.Fatalf("slot moved from %d to %d", low.Slot, high.Slot)
		}
	})
}

// A million users split as a fair draw would: within 5 standard deviations at
// every share, and the slots of a ring of 100 are evenly filled (chi-squared).
func TestShareIsExactOverAMillionUsers(t *testing.T) {
	const n = 1_000_000
	counts := make([]int64, 10000)
	for i := range n {
		counts[Of("user-"+strconv.Itoa(i), 10000)]++
	}
	var on, at int64
	for _, slots := range []int64{1, 10, 100, 500, 1000, 3000, 5000, 9900, 9999, 10000} {
		for ; at < slots; at++ {
			on += counts[at]
		}
		p := float64(slots) / 10000
		if sd := math.Sqrt(n * p * (1 - p)); math.Abs(float64(on)-n*p) > 5*sd {
			t.Errorf("%d of 10000 slots: %d users, want %.0f within 5 x %.1f", slots, on, n*p, sd)
		}
	}
	chi2 := 0.0
	for _, c := range counts {
		d := float64(c) - n/10000
		chi2 += d * d / (n / 10000)
	}
	// 9999 degrees of freedom: mean 9999, sd sqrt(2 x 9999) = 141.4
	if math.Abs(chi2-9999) > 5*141.4 {
		t.Errorf("chi-squared %.0f over 10000 slots, want 9999 within 707", chi2)
	}
}

func TestVectorsAreThoseOnDisk(t *testing.T) {
	src, err := os.ReadFile("../../testdata/routing-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var disk VectorFile
	if err := json.Unmarshal(src, &disk); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(disk, Vectors()); d != "" {
		t.Errorf("testdata/routing-vectors.json differs (write it with: canaryctl route --vectors); -disk +code\n%s", d)
	}
	for _, v := range disk.Vectors {
		for _, on := range v.Rings {
			if want := slotByBigInt(v.User, on.Ring); on.Slot != want {
				t.Errorf("%q on a ring of %d: slot %d, want %d", v.User, on.Ring, on.Slot, want)
			}
			if len(on.Canary)+len(on.Stable) != len(vectorShares) {
				t.Errorf("%q on a ring of %d: %d answers for %d shares", v.User, on.Ring, len(on.Canary)+len(on.Stable), len(vectorShares))
			}
		}
	}
}

func TestVectorsSurviveJSON(t *testing.T) {
	b, err := json.Marshal(Vectors())
	if err != nil {
		t.Fatal(err)
	}
	var back VectorFile
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Vectors(), back); d != "" {
		t.Errorf("vectors change on their way through JSON:\n%s", d)
	}
}
