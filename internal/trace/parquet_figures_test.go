package trace

import (
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// oddDoubles are doubles at which rounding decides, among others.
var oddDoubles = rapid.OneOf(
	rapid.Float64Range(0, 1e7),
	rapid.Float64Range(0, 1e-6),
	rapid.Map(rapid.Int64Range(0, 1e13), func(n int64) float64 { return float64(n) / 1e9 }),
	rapid.Map(rapid.Int64Range(0, 1e13), func(n int64) float64 { return (float64(n) + 0.5) / 1e9 }),
	rapid.Custom(func(t *rapid.T) float64 {
		v := (float64(rapid.Int64Range(0, 1e9).Draw(t, "n")) + 0.5) / 1e9
		for range rapid.IntRange(0, 3).Draw(t, "up") {
			v = math.Nextafter(v, 1e9)
		}
		for range rapid.IntRange(0, 3).Draw(t, "down") {
			v = math.Nextafter(v, 0)
		}
		return v
	}),
	rapid.Float64(),
)

func TestCostOfADoubleIsThatOfItsShortestDecimal(t *testing.T) {
	fast := 0
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]Unit{NoUnit, Dollars, MilliDollars, MicroDollars}).Draw(t, "unit")
		c := cells{form: form{kind: formDouble}, n: 1, doubles: []float64{oddDoubles.Draw(t, "v")}}
		v := c.doubles[0]
		text := []byte(strconv.FormatFloat(v, 'g', -1, 64))
		got := c.cost(0, unit)
		n, fig := parseNumber(text)
		want := counted{}
		switch fig {
		case nonFinite:
			want.is = isNoNumber
		case finite:
			nano, err := nanoDollars(n, unit, text)
			if want.v = nano; err != nil {
				want = counted{is: isOdd}
			}
		}
		if got != want {
			t.Fatalf("%s %s: %+v, want %+v", text, unit, got, want)
		}
		if _, ok := nanoOf(v, 9); ok {
			fast++
		}
	})
	if fast == 0 {
		t.Error("no cost went the fast way")
	}
}

func TestMeasureOfADoubleIsThatOfItsShortestDecimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pow := rapid.SampledFrom([]int{-6, -3, 0, 3}).Draw(t, "pow")
		c := cells{form: form{kind: formDouble}, n: 1, doubles: []float64{oddDoubles.Draw(t, "v")}}
		if rapid.Bool().Draw(t, "float") {
			c.form.kind, c.floats = formFloat, []float32{float32(c.doubles[0])}
		}
		checkMeasure(t, &c, pow)
	})
}

// Decimals of up to six digits, of which the fast way believes that the one
// it finds is the shortest.
func TestFloatsOfSixDigitsAreReadAsWritten(t *testing.T) {
	c := cells{form: form{kind: formFloat}, n: 1, floats: make([]float32, 1)}
	for n := 0; n < 1_000_000; n += 7 {
		c.floats[0] = float32(float64(n) / 1e6)
		checkMeasure(t, &c, 3)
	}
}

func checkMeasure(t interface{ Fatalf(string, ...any) }, c *cells, pow int) {
	text := c.append(nil, 0)
	n, fig := parseNumber(text)
	want := measured{is: isOdd}
	switch {
	case fig == nonFinite:
		want.is = isNoNumber
	case fig == finite && !n.negative():
		if v, ok := n.float(text, pow); ok {
			want = measured{v: v}
		}
	}
	for _, got := range []measured{c.measure(0, pow), c.measures(nil, 0, 1, pow)[0]} {
		if got != want {
			t.Fatalf("%s, shifted by %d: %+v, want %+v", text, pow, got, want)
		}
	}
}

func TestDecimalsAreWrittenWithTheirPoint(t *testing.T) {
	for _, c := range []struct {
		v     int64
		scale int
		want  string
	}{{12345, 2, "123.45"}, {-5, 2, "-0.05"}, {0, 3, "0.000"}, {7, 0, "7"}, {-120, 1, "-12.0"}} {
		got := (&cells{form: form{kind: formDecimal64, scale: c.scale}, int64s: []int64{c.v}}).append([]byte("x"), 0)
		if string(got) != "x"+c.want {
			t.Errorf("%d e-%d: %s, want x%s", c.v, c.scale, got, c.want)
		}
	}
}
