package tui

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/watch"
)

func TestFiguresReadAsPeopleWriteThem(t *testing.T) {
	for _, c := range []struct {
		name string
		v    float64
		unit watch.Unit
		want string
	}{
		{"a count is whole", 3, watch.Count, "3"},
		{"thousands have commas", 1204, watch.Count, "1,204"},
		{"millions too", 1234567, watch.Count, "1,234,567"},
		{"an expected count may have a fraction", 3.4, watch.Count, "3.4"},
		{"zero is zero", 0, watch.Count, "0"},
		{"minus zero too", math.Copysign(0, -1), watch.Count, "0"},
		{"a share in percent", 0.021, watch.Share, "2.1 %"},
		{"binary fractions do not show", 0.07, watch.Share, "7 %"},
		{"a small share keeps its digits", 0.0005, watch.Share, "0.05 %"},
		{"a tiny share is not zero", 1e-9, watch.Share, "<0.001 %"},
		{"no share is zero", 0, watch.Share, "0 %"},
		{"all is all", 1, watch.Share, "100 %"},
		{"short of all is not all", 0.9999, watch.Share, "99.99 %"},
		{"hardly short of all is not all", 1 - 1e-12, watch.Share, "99.999 %"},
		{"three digits otherwise", 0.91234, watch.Share, "91.2 %"},
		{"more than all", 2.5, watch.Share, "250 %"},
		{"a ratio", 1.2399, watch.Ratio, "1.24×"},
		{"a round ratio", 3, watch.Ratio, "3×"},
		{"milliseconds", 1840, watch.Millis, "1,840 ms"},
		{"the last of them", 9999, watch.Millis, "9,999 ms"},
		{"from ten seconds on in seconds", 10000, watch.Millis, "10 s"},
		{"with a digit after the point", 12345, watch.Millis, "12.3 s"},
		{"few milliseconds keep their digits", 3.456, watch.Millis, "3.46 ms"},
		{"a score has no unit", 3.2149, watch.Score, "3.21"},
		{"a rounded carry does not leave a fourth digit", 9.9999, watch.Score, "10"},
		{"a negative score", -1234.5, watch.Score, "-1,234"},
		{"past all bounds", math.Inf(1), watch.Ratio, "inf×"},
		{"huge", 1e21, watch.Count, "1.00e+21"},
		{"not a number is missing", math.NaN(), watch.Share, "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := figureText(watch.Known(c.v), c.unit, &Unicode); got != c.want {
				t.Errorf("%v is written %q, want %q", c.v, got, c.want)
			}
		})
	}
	if got := figureText(watch.Figure{Value: 3}, watch.Count, &Unicode); got != "-" {
		t.Errorf("a missing figure is written %q", got)
	}
	if got := figureText(watch.Known(1.5), watch.Ratio, &ASCII); got != "1.5x" {
		t.Errorf("a ratio without UTF-8 is written %q", got)
	}
}

func TestFiguresStayShortAndNeverRoundToAnEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64().Draw(t, "v")
		unit := watch.Unit(rapid.IntRange(0, int(watch.Score)+1).Draw(t, "unit"))
		if got := figureText(watch.Known(v), unit, &Unicode); len(got) > 26 {
			t.Errorf("%v has %d bytes: %q", v, len(got), got)
		}
		share := rapid.Float64Range(0, 1).Draw(t, "share")
		got := figureText(watch.Known(share), watch.Share, &Unicode)
		if (got == "0 %") != (share == 0) || (got == "100 %") != (share == 1) || len(got) > 8 {
			t.Errorf("%v is written %q", share, got)
		}
	})
}

func TestCountsHaveCommasBetweenThousands(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1,000", -100: "-100", -1000: "-1,000",
		math.MaxInt64: "9,223,372,036,854,775,807", math.MinInt64: "-9,223,372,036,854,775,808",
	} {
		if got := count(n); got != want {
			t.Errorf("%d is written %q, want %q", n, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "n")
		if got, plain := strings.ReplaceAll(count(n), ",", ""), strconv.FormatInt(n, 10); got != plain {
			t.Errorf("without commas %q, want %q", got, plain)
		}
	})
}

func TestSignalNamesSayWhatTheirFiguresCount(t *testing.T) {
	for _, c := range []struct {
		signal release.Signal
		form   release.Form
		want   string
	}{
		{release.Violations, release.Published, "violations"}, {release.Cost, release.Published, "cost"},
		{release.P99, release.Published, "p99"}, {release.P99, release.ByCount, "p99 slow"},
		{release.Transfers, release.Published, "transfers"}, {release.SolveRate, release.Concurrent, "solve_rate"},
	} {
		if got := signalName(&watch.Signal{Signal: c.signal, Form: c.form}); got != c.want {
			t.Errorf("%v %v is named %q, want %q", c.signal, c.form, got, c.want)
		}
	}
}
