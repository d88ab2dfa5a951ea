package trace

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

func TestParseNumberTellsWhatACellHolds(t *testing.T) {
	for text, want := range map[string]figure{
		"0": finite, "-0": finite, "4.0": finite, "+4": finite, ".5": finite, "5.": finite, "1e3": finite, "1E-3": finite,
		"18446744073709551616": finite, "0.1234567890123456789012": finite,
		"NaN": nonFinite, "nan": nonFinite, "+Inf": nonFinite, "-inf": nonFinite, "Infinity": nonFinite,
		"": missing, "null": missing, "NULL": missing, "None": missing, "NA": missing, "n/a": missing, `\N`: missing,
		"-": notNumber, ".": notNumber, "e5": notNumber, "1e": notNumber, "1e999": notNumber, "0x10": notNumber, "1_000": notNumber,
		"1,5": notNumber, "12 ": notNumber, "abc": notNumber, "--1": notNumber, "1.2.3": notNumber, "true": notNumber,
	} {
		if _, got := parseNumber([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestNumbersAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?[0-9]{1,22}(\.[0-9]{1,24})?(e-?[0-9]{1,2})?`).Draw(t, "text")
		pow := rapid.IntRange(-9, 9).Draw(t, "pow")
		n, fig := parseNumber([]byte(text))
		if fig != finite {
			t.Fatalf("%q is not finite", text)
		}
		exact, _ := new(big.Rat).SetString(text)
		scale := new(big.Rat).SetFrac(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(pow, 0))), nil), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(-pow, 0))), nil))
		scaled := new(big.Rat).Mul(exact, scale)

		if got, ok := n.whole(); ok != (exact.IsInt() && abs(exact.Num()).IsInt64()) || ok && got != exact.Num().Int64() {
			t.Fatalf("whole(%q) = %d, %t", text, got, ok)
		}
		floor := new(big.Int).Div(scaled.Num(), scaled.Denom()) // Euclidean: down for a positive divisor
		if got, ok := n.floor(pow); ok && big.NewInt(got).Cmp(floor) != 0 {
			t.Fatalf("floor(%q, %d) = %d, want %s", text, pow, got, floor)
		} else if !ok && abs(floor).IsInt64() && abs(floor).BitLen() < 63 {
			t.Fatalf("floor(%q, %d) does not fit, though it is %s", text, pow, floor)
		}
		if got, ok := n.round(pow); ok {
			twice := new(big.Rat).Sub(new(big.Rat).SetInt64(got), scaled)
			switch c := twice.Abs(twice).Cmp(big.NewRat(1, 2)); {
			case c > 0, c == 0 && got%2 != 0:
				t.Fatalf("round(%q, %d) = %d", text, pow, got)
			}
		}
		want, _ := scaled.Float64()
		if got, ok := n.float([]byte(text), pow); !ok || got != want && !(got == 0 && want == 0) {
			t.Fatalf("float(%q, %d) = %v, want %v", text, pow, got, want)
		}
	})
}

// TestRoundDoesNotGuessDigitsThatWereCut: 2000000000000000000.51 has its half
// among the digits that a number does not keep.
func TestRoundDoesNotGuessDigitsThatWereCut(t *testing.T) {
	n, _ := parseNumber([]byte("200000000000000000051"))
	if got, ok := n.round(-2); ok {
		t.Errorf("rounded to %d", got)
	}
	n, _ = parseNumber([]byte("1234567890.12345678901234567890"))
	if got, ok := n.round(3); !ok || got != 1234567890123 {
		t.Errorf("%d, %t", got, ok)
	}
}

func abs(i *big.Int) *big.Int { return new(big.Int).Abs(i) }

func TestMeasureRefusesWhatNoFloat64Holds(t *testing.T) {
	n, fig := parseNumber([]byte("1e400"))
	if fig != finite {
		t.Fatal("1e400 is a number")
	}
	if v, ok := n.float([]byte("1e400"), 0); ok {
		t.Errorf("1e400 = %v", v)
	}
}

func TestDigestSetHoldsWhatWasAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var set digestSet
		want := map[uint64]bool{}
		for _, v := range rapid.SliceOf(rapid.Uint64Range(1, 300)).Draw(t, "values") {
			v *= math.MaxUint64 / 300
			if added := set.add(v); added == want[v] {
				t.Fatalf("add(%d) = %t", v, added)
			}
			want[v] = true
		}
		if set.len() != int64(len(want)) {
			t.Fatalf("%d in it, want %d", set.len(), len(want))
		}
	})
}

func TestPercentile99IsTheNearestRank(t *testing.T) {
	for n := 1; n < 1000; n++ {
		var q ranks
		var s valueStore
		for v := n; v > 0; v-- {
			q.hold(&s, float64(v))
		}
		q.seal(&s, false)
		if want := math.Ceil(99 * float64(n) / 100); q.p99 != want || q.state != sealed {
			t.Errorf("n=%d: %v, want %v", n, q.p99, want)
		}
	}
}

// However values are spread over the chunks, that they lie near the top is found.
func TestPercentile99OfAListIsThatOfItsValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s valueStore
		var l, other valueList
		n := rapid.OneOf(rapid.IntRange(1, 100), rapid.IntRange(2000, 6000)).Draw(t, "n")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		rise, period := rapid.Float64Range(-1, 1).Draw(t, "rise"), rapid.SampledFrom([]int{1, 7, chunkLen, 1000}).Draw(t, "period")
		kinds := rapid.SampledFrom([]int{2, 1000}).Draw(t, "kinds")
		values := make([]float64, n)
		for i := range values {
			values[i] = float64(random.IntN(kinds)) + rise*float64(i)
			if i%period == 0 {
				values[i] += 1e6
			}
			s.push(&l, values[i])
			s.push(&other, 1e9)
		}
		got, _ := s.nearest99(&l, nil)
		if want := nearest99(values); got != want {
			t.Fatalf("of %d values: %v, want %v", n, got, want)
		}
	})
}

func TestSelectNthFindsWhatSortingFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 40), func(n int) float64 { return float64(n) }), 1, 200).Draw(t, "values")
		k := rapid.IntRange(0, len(v)-1).Draw(t, "k")
		want := slices.Sorted(slices.Values(v))[k]
		if selectNth(v, k); v[k] != want {
			t.Fatalf("%v, want %v", v[k], want)
		}
	})
}

// Lists share the store: what one lets go another takes, and nothing is lost.
func TestValueStoreKeepsListsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s valueStore
		lists, want := make([]valueList, 4), make([][]float64, 4)
		for i := range rapid.IntRange(0, 2000).Draw(t, "steps") {
			l := rapid.IntRange(0, 3).Draw(t, "list")
			if rapid.IntRange(0, 200).Draw(t, "take") == 0 && lists[l].n > 0 {
				got := slices.Sorted(slices.Values(s.take(&lists[l])))
				if !slices.Equal(got, want[l]) {
					t.Fatalf("%v, want %v", got, want[l])
				}
				want[l] = nil
				continue
			}
			s.push(&lists[l], float64(i))
			want[l] = append(want[l], float64(i))
		}
	})
}

func TestPointCountRoundsHalfToEven(t *testing.T) {
	for _, c := range []struct {
		v   float64
		n   int64
		far bool
	}{{4, 4, false}, {3.96, 4, false}, {4.04, 4, false}, {4.06, 4, true}, {4.5, 4, true}, {5.5, 6, true}, {0, 0, false}, {0.02, 0, false}} {
		if n, far, ok := pointCount(c.v); n != c.n || far != c.far || !ok {
			t.Errorf("%v: %d %t %t", c.v, n, far, ok)
		}
	}
	if _, _, ok := pointCount(1e300); ok {
		t.Error("1e300 is a count")
	}
}

func ExampleFormatSpan() {
	for _, s := range []string{"60s", "10m", "90m", "1d", "1500ms"} {
		d, err := ParseSpan(s)
		fmt.Println(FormatSpan(d), err)
	}
	_, err := ParseSpan("10")
	fmt.Println(err)
	// Output:
	// 1m <nil>
	// 10m <nil>
	// 1h30m <nil>
	// 24h <nil>
	// 1.5s <nil>
	// "10" is not a span of time such as 1m, 10m or 1h
}

func TestSpansReadBackToTheNanosecond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.Int64Range(1, int64(maxSpan)).Draw(t, "d")
		if got, err := ParseSpan(FormatSpan(spanOfInt(d))); err != nil || int64(got) != d {
			t.Fatalf("%s: %d, %v", FormatSpan(spanOfInt(d)), got, err)
		}
	})
	for _, s := range []string{"", "0", "0s", "-5m", "10", "m", "367d", strconv.Itoa(math.MaxInt) + "h"} {
		if d, err := ParseSpan(s); err == nil {
			t.Errorf("%q is %v", s, d)
		}
	}
}
