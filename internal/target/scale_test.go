package target

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/release"
)

var (
	fraction    = scale{1, 6}
	percent     = scale{100, 2}
	basisPoints = scale{10000, 0}
)

func TestRenderWritesExactDecimals(t *testing.T) {
	for name, tc := range map[string]struct {
		s              scale
		w              release.Weight
		canary, stable string
	}{
		"five percent as a fraction":    {fraction, release.Weight{Slots: 5, Ring: 100}, "0.05", "0.95"},
		"five percent as percent":       {percent, release.Weight{Slots: 5, Ring: 100}, "5", "95"},
		"half a percent":                {percent, release.Weight{Slots: 5, Ring: 1000}, "0.5", "99.5"},
		"a slot of a thousand":          {fraction, release.Weight{Slots: 1, Ring: 1000}, "0.001", "0.999"},
		"basis points":                  {basisPoints, release.Weight{Slots: 1, Ring: 100}, "100", "9900"},
		"a balancer's slots":            {scale{256, 0}, release.Weight{Slots: 1, Ring: 4}, "64", "192"},
		"nobody":                        {fraction, release.Weight{Slots: 0, Ring: 100}, "0", "1"},
		"everybody":                     {percent, release.Weight{Slots: 100, Ring: 100}, "100", "0"},
		"the zero weight":               {fraction, release.Weight{}, "0", "1"},
		"everybody of an odd whole":     {scale{7, 0}, release.Weight{Slots: 3, Ring: 3}, "7", "0"},
		"a whole of the largest number": {scale{math.MaxInt64, 0}, release.Weight{Slots: 1, Ring: 7}, "1317624576693539401", "7905747460161236406"},
		"a ring of a hundred million":   {scale{100_000_000, 0}, release.Weight{Slots: 1, Ring: 100_000_000}, "1", "99999999"},
		"thousandths of a percent":      {scale{100_000, 0}, release.Weight{Slots: 5, Ring: 100}, "5000", "95000"},
	} {
		t.Run(name, func(t *testing.T) {
			canary, stable, err := tc.s.render(tc.w)
			if err != nil || canary != tc.canary || stable != tc.stable {
				t.Errorf("%+v of %+v = %q, %q, %v; want %q, %q", tc.w, tc.s, canary, stable, err, tc.canary, tc.stable)
			}
		})
	}
}

func TestAWeightThatIsTooFineIsRefusedWithTheFinestStep(t *testing.T) {
	for name, tc := range map[string]struct {
		s      scale
		w      release.Weight
		finest string
	}{
		"half a percent in whole percent": {scale{100, 0}, release.Weight{Slots: 5, Ring: 1000}, "1 %"},
		"a third":                         {fraction, release.Weight{Slots: 1, Ring: 3}, "0.0001 %"},
		"one percent of 64 slots":         {scale{64, 0}, release.Weight{Slots: 1, Ring: 100}, "1.5625 %"},
		"beyond what 63 bits can count":   {scale{math.MaxInt64, 2}, release.Weight{Slots: 1, Ring: 1000}, "1.0842e-17 %"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.s.check("file weights.json", tc.w)
			fine, ok := errors.AsType[*FineError](err)
			if !ok || fine.Finest.String() != tc.finest || fine.Target != "file weights.json" || fine.Weight != tc.w {
				t.Errorf("%+v of %+v: %v, want a *FineError with %s", tc.w, tc.s, err, tc.finest)
			}
		})
	}
	if _, _, err := fraction.render(release.Weight{Slots: 101, Ring: 100}); err == nil {
		t.Error("101 of 100 slots were written")
	}
}

func TestParseReadsShares(t *testing.T) {
	for name, tc := range map[string]struct {
		s              scale
		canary, stable string
		want           release.Weight
	}{
		"a fraction":                        {fraction, "0.05", "0.95", release.Weight{Slots: 5, Ring: 100}},
		"with zeros and an exponent":        {fraction, "5.0e-2", "9.50e-1", release.Weight{Slots: 5, Ring: 100}},
		"percent alone":                     {percent, "7.00", "", release.Weight{Slots: 7, Ring: 100}},
		"relative weights":                  {percent, "1", "3", release.Weight{Slots: 25, Ring: 100}},
		"relative weights above the whole":  {scale{200, 0}, "0", "256", release.Weight{Slots: 0, Ring: 100}},
		"off the ring":                      {scale{256, 0}, "1", "255", release.Weight{Slots: 1, Ring: 256}},
		"off the ring in lowest terms":      {percent, "0.50", "", release.Weight{Slots: 1, Ring: 200}},
		"the largest weights there are":     {scale{math.MaxInt64, 0}, "9223372036854775807", "9223372036854775807", release.Weight{Slots: 50, Ring: 100}},
		"a hundred million to one":          {scale{1, 0}, "1", "99999999", release.Weight{Slots: 1, Ring: 100_000_000}},
		"everybody":                         {fraction, "1.000", "0.000", release.Weight{Slots: 100, Ring: 100}},
		"a point in front":                  {fraction, ".25", "", release.Weight{Slots: 25, Ring: 100}},
		"what a float makes of 0.1 and 0.2": {fraction, "0.30000000000000004", "", release.Weight{Slots: 7500000000000001, Ring: 25000000000000000}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := tc.s.parse(tc.canary, tc.stable, 100); err != nil || got != tc.want {
				t.Errorf("%q of %q: %+v, %v; want %+v", tc.canary, tc.stable, got, err, tc.want)
			}
		})
	}
}

func TestParseRefusesWhatIsNoShare(t *testing.T) {
	for name, tc := range map[string]struct{ canary, stable string }{
		"nothing":                     {"", ""},
		"negative":                    {"-0.1", "1.1"},
		"not a number":                {"NaN", "1"},
		"infinite":                    {"Inf", "1"},
		"infinite stable":             {"0.1", "inf"},
		"above the whole":             {"5", ""},
		"both 0":                      {"0", "0.0"},
		"a percent sign":              {"5 %", ""},
		"a fraction":                  {"1/20", "19/20"},
		"hexadecimal":                 {"0x1", "1"},
		"underscores":                 {"1_0", "90"},
		"an exponent without end":     {"1e999999999", ""},
		"more digits than 63 bits":    {"0.0000000000000000000000000001", ""},
		"a text":                      {"five", "95"},
		"a boolean":                   {"true", "false"},
		"a plus sign":                 {"+0.5", "0.5"},
		"an octal number":             {"010", ""},
		"a comma for a decimal point": {"0,05", "0,95"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := fraction.parse(tc.canary, tc.stable, 100); err == nil {
				t.Errorf("%q of %q was read as %+v", tc.canary, tc.stable, got)
			}
		})
	}
}

// TestWhatIsRenderedReadsBackAsItself is what a compare-and-swap rests on.
func TestWhatIsRenderedReadsBackAsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scale{
			whole:  rapid.OneOf(rapid.SampledFrom([]int64{1, 100, 256, 10000, 1e8, math.MaxInt64}), rapid.Int64Range(1, math.MaxInt64)).Draw(t, "whole"),
			places: rapid.IntRange(0, 12).Draw(t, "places"),
		}
		ring := rapid.OneOf(rapid.SampledFrom([]int64{1, 100, 1000, 1e8}), rapid.Int64Range(1, math.MaxInt64)).Draw(t, "ring")
		w := release.Weight{Slots: rapid.Int64Range(0, ring).Draw(t, "slots"), Ring: ring}
		checkRoundTrip(t, s, w)
	})
}

func FuzzScale(f *testing.F) {
	f.Add(int64(100), 2, int64(5), int64(100))
	f.Add(int64(math.MaxInt64), 0, int64(1), int64(7))
	f.Fuzz(func(t *testing.T, whole int64, places int, slots, ring int64) {
		if whole < 1 || places < 0 || places > 18 || ring < 1 || slots < 0 || slots > ring {
			return
		}
		checkRoundTrip(t, scale{whole, places}, release.Weight{Slots: slots, Ring: ring})
	})
}

func checkRoundTrip(t rapid.TB, s scale, w release.Weight) {
	canary, stable, err := s.render(w)
	if fine, ok := errors.AsType[*FineError](err); ok {
		if w.Slots == 0 || w.Slots == w.Ring {
			t.Fatalf("%+v is refused: %v", w, fine)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	c, _ := new(big.Rat).SetString(canary)
	rest, _ := new(big.Rat).SetString(stable)
	if sum := new(big.Rat).Add(c, rest); sum.Cmp(new(big.Rat).SetInt64(s.whole)) != 0 {
		t.Fatalf("%s and %s add up to %s, not %d", canary, stable, sum, s.whole)
	}
	for _, other := range []string{stable, ""} {
		if got, err := s.parse(canary, other, w.Ring); err != nil || got != w {
			t.Fatalf("%+v became %q, %q and was read as %+v, %v", w, canary, other, got, err)
		}
	}
}

func FuzzParseWeight(f *testing.F) {
	for _, s := range []string{"0.05", "5", "1e-3", "-1", "NaN", ".5", "5.", "1e99", "0,5"} {
		f.Add(s, "0.95")
	}
	f.Fuzz(func(t *testing.T, canary, stable string) {
		w, err := percent.parse(canary, stable, 100)
		if err == nil && (w.Slots < 0 || w.Slots > w.Ring || w.Ring <= 0) {
			t.Errorf("%q of %q was read as %+v", canary, stable, w)
		}
	})
}

func TestScaleOf(t *testing.T) {
	if got := scaleOf(config.Unit{Whole: 100, Places: 2}); got != percent {
		t.Errorf("got %+v", got)
	}
}
