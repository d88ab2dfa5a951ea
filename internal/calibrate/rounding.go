package calibrate

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// figure returns x rounded, or nil for one that does not exist.
func figure(x float64, decimals int) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return new(round(x, decimals))
}

// round rounds to so many decimals, as the decimal notation of x does.
func round(x float64, decimals int) float64 {
	f, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'f', decimals, 64), 64)
	return f
}

// sig rounds to so many significant digits.
func sig(x float64, digits int) float64 {
	f, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	return f
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func percent(f float64) string { return strconv.FormatFloat(100*f, 'g', 3, 64) + " %" }

func count(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %s", n, plural(unit))
}

// plural puts the s where the noun is: "whole windows of 10 minutes".
func plural(unit string) string {
	const noun = "window"
	if before, after, ok := strings.Cut(unit, noun); ok {
		return before + noun + "s" + after
	}
	return unit + "s"
}

// roughly says a length of time in its largest sensible unit, rounded down:
// "57 minutes", "49 hours", "7 days".
func roughly(d time.Duration) string {
	switch {
	case d < 2*time.Hour:
		return count(int(d/time.Minute), "minute")
	case d < GoodSpan:
		return count(int(d/time.Hour), "hour")
	}
	return count(int(d/(24*time.Hour)), "day")
}

// spanName is the short form of a span: "10m", "90s".
func spanName(d time.Duration) string {
	if d%time.Minute == 0 {
		return strconv.FormatInt(int64(d/time.Minute), 10) + "m"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
}

// figureSig returns x rounded to significant digits, or nil for one that does
// not exist.
func figureSig(x float64, digits int) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return new(sig(x, digits))
}

// rankOf returns the quantile by nearest rank, which is a value that was seen,
// or nil without values.
func rankOf(xs []float64, q release.Ratio) *float64 {
	if len(xs) == 0 {
		return nil
	}
	sorted := slices.Clone(xs)
	slices.Sort(sorted)
	return figureSig(stats.NearestRank(sorted, q), 6)
}
