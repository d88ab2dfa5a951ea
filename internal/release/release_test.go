package release_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
)

func TestDecimalsAreReadAsWritten(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want release.Ratio
	}{
		{"0.0005", release.Ratio{Num: 1, Den: 2000}},
		{"10.0", release.Ratio{Num: 10, Den: 1}},
		{"1e-3", release.Ratio{Num: 1, Den: 1000}},
		{"0", release.Ratio{Num: 0, Den: 1}},
		{".5", release.Ratio{Num: 1, Den: 2}},
	} {
		got, err := release.ParseRatio(tc.in)
		if err != nil || got != tc.want {
			t.Errorf("ParseRatio(%q) = %v, %v, want %v", tc.in, got, err, tc.want)
		}
	}
}

func TestWhatIsNoExactNumberIsRefused(t *testing.T) {
	for _, in := range []string{"", "NaN", ".nan", "Inf", "-1", "1/3", "1e300", "1e-30", "0.00000000000000000001", "abc", "1,5"} {
		if got, err := release.ParseRatio(in); !errors.Is(err, release.ErrRatioRange) {
			t.Errorf("ParseRatio(%q) = %v, %v, want ErrRatioRange", in, got, err)
		}
	}
}

// TestCompareIsExact holds Compare and FloorOf against math/big over the
// whole range, where float64 and 64-bit products go wrong.
func TestCompareIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := release.NewRatio(rapid.Int64Min(0).Draw(t, "num"), rapid.Int64Min(1).Draw(t, "den"))
		count, total := rapid.Int64Min(0).Draw(t, "count"), rapid.Int64Min(1).Draw(t, "total")
		if got, want := r.Compare(count, total), big.NewRat(count, total).Cmp(r.Rat()); got != want {
			t.Fatalf("(%d/%d).Compare(%d, %d) = %d, want %d", r.Num, r.Den, count, total, got, want)
		}
		product := new(big.Rat).Mul(r.Rat(), new(big.Rat).SetInt64(total))
		floor := new(big.Int).Quo(product.Num(), product.Denom())
		want := int64(math.MaxInt64)
		if floor.IsInt64() {
			want = floor.Int64()
		}
		if got := r.FloorOf(total); got != want {
			t.Fatalf("(%d/%d).FloorOf(%d) = %d, want %d", r.Num, r.Den, total, got, want)
		}
		exact, _ := r.Rat().Float64()
		if got := r.Float64(); got != exact {
			t.Fatalf("Float64 = %v, want %v", got, exact)
		}
	})
}

// TestBoundariesThatFloatsMiss are the cases that decided for rationals.
func TestBoundariesThatFloatsMiss(t *testing.T) {
	floor := release.MustRatio("0.8") // 0.90 - 10 pp
	if floor.Compare(160, 200) != 0 {
		t.Error("160 of 200 is not exactly 0.8")
	}
	if floor.Compare(161, 200) != 1 || floor.Compare(159, 200) != -1 {
		t.Error("161 and 159 of 200 are not on their sides of 0.8")
	}
	limit, err := release.MustRatio("300").Mul(release.MustRatio("1.1"))
	if err != nil || limit.Float64() != 330 {
		t.Errorf("300 x 1.1 = %v, %v, want 330", limit.Float64(), err)
	}
	rate := release.MustRatio("0.005")
	if rate.FloorOf(799) != 3 || rate.FloorOf(800) != 4 {
		t.Errorf("floor at 799 and 800 requests: %d and %d, want 3 and 4", rate.FloorOf(799), rate.FloorOf(800))
	}
}

func TestWeightsAreWholeSlots(t *testing.T) {
	w, err := release.WeightOf(release.MustRatio("0.05"), 100)
	if err != nil || w != (release.Weight{Slots: 5, Ring: 100}) {
		t.Errorf("5 %% of 100 slots = %v, %v", w, err)
	}
	if _, err := release.WeightOf(release.MustRatio("0.005"), 100); !errors.Is(err, release.ErrOffRing) {
		t.Errorf("half a slot: %v, want ErrOffRing", err)
	}
	if !w.Same(release.Weight{Slots: 50, Ring: 1000}) || w.Above(release.Weight{Slots: 50, Ring: 1000}) {
		t.Error("5/100 and 50/1000 are not the same share")
	}
	if !w.Above(release.Weight{}) || (release.Weight{}).Above(w) || !(release.Weight{}).IsZero() {
		t.Error("the zero weight is not below 5 %")
	}
	if w.String() != "5 %" {
		t.Errorf("String = %q", w.String())
	}
}

func TestFailOutranksEveryVerdict(t *testing.T) {
	order := []release.Verdict{release.Fail, release.Error, release.NoData, release.Insufficient, release.Pass}
	for i, a := range order {
		for j, b := range order {
			if got := a.Outranks(b); got != (i < j) {
				t.Errorf("%s outranks %s: %v", a, b, got)
			}
		}
	}
}

func TestNamesSurviveJSON(t *testing.T) {
	type names struct {
		S release.Signal
		V release.Verdict
		P release.Phase
		M release.Move
	}
	for s := range release.Probes + 1 {
		in := names{S: s, V: release.Verdict(s % 5), P: release.Phase(s % 3), M: release.Move(s % 9)}
		b, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var out names
		if err := json.Unmarshal(b, &out); err != nil || out != in {
			t.Errorf("%s read back as %+v, %v", b, out, err)
		}
	}
	var v release.Verdict
	if err := json.Unmarshal([]byte(`"maybe"`), &v); err == nil {
		t.Error("an unknown verdict was accepted")
	}
}

func TestSpansAreSaidAsPeopleDo(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Minute: "1 minute", 5 * time.Minute: "5 minutes", 90 * time.Second: "90 seconds", time.Hour: "1 hour",
		4 * time.Hour: "4 hours", 150 * time.Minute: "2 hours 30 minutes", 95 * time.Minute: "95 minutes",
		150 * time.Second: "2.5 minutes", time.Second: "1 second", 0: "0 seconds", -time.Minute: "-1 minute",
	} {
		if got := release.Minutes(d); got != want {
			t.Errorf("Minutes(%v) = %q, want %q", d, got, want)
		}
	}
}
