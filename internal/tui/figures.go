package tui

import (
	"math"
	"strconv"
	"strings"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/watch"
)

// missing stands where a figure is not there, which is never zero.
const missing = "-"

// known reports whether a figure can be shown: one that is not a number counts
// as missing.
func known(f watch.Figure) bool { return f.Known && !math.IsNaN(f.Value) }

// figureText writes a figure with its unit: "1,204", "2.1 %", "1.24×",
// "1,840 ms", "12.3 s", "3.21". A share short of 1 is never "100 %", and nothing
// above zero is ever "0".
func figureText(f watch.Figure, u watch.Unit, g *Glyphs) string {
	if !known(f) {
		return missing
	}
	switch u {
	case watch.Share:
		return percent(f.Value) + " %"
	case watch.Ratio:
		return number(f.Value) + g.Per
	case watch.Millis:
		if math.Abs(f.Value) >= 9999.5 {
			return number(f.Value/1000) + " s"
		}
		return number(f.Value) + " ms"
	default:
		return number(f.Value)
	}
}

// number writes v with three significant digits, at most four of them after the
// point, without zeros at the end; whole digits are always all there.
func number(v float64) string {
	size := math.Abs(v)
	decimals := 0
	switch {
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	case v == 0:
		return "0"
	case size < 0.00005:
		return "<0.0001"
	case size >= 1e15:
		return strconv.FormatFloat(v, 'e', 2, 64)
	case size < 0.1:
		decimals = 4
	case size < 1:
		decimals = 3
	case size < 10:
		decimals = 2
	case size < 100:
		decimals = 1
	}
	return trimmed(v, decimals)
}

func trimmed(v float64, decimals int) string {
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(v, 'f', decimals, 64), ".")
	whole = grouped(whole)
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		return whole + "." + fraction
	}
	return whole
}

// percent writes a share in percent. Where three digits would make 100 of what
// is less, there are as many as tell the difference, at most three after the
// point; what is above zero is at least "<0.001".
func percent(share float64) string {
	if share > 0 && share < 0.00001 {
		return "<0.001"
	}
	text := number(share * 100)
	if text != "100" || share >= 1 {
		return text
	}
	if text = trimmed(share*100, 2); text != "100" {
		return text
	}
	if text = trimmed(share*100, 3); text != "100" {
		return text
	}
	return "99.999"
}

// count writes n with commas between thousands.
func count(n int64) string { return grouped(strconv.FormatInt(n, 10)) }

// grouped puts commas into a whole number that is written out.
func grouped(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	b.WriteString(sign)
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(digits[i])
	}
	return b.String()
}

// signalName is a signal's name in the table. Where p99 is judged by how many
// requests were slower than the baseline, the figures are of those, and the name
// says so.
func signalName(s *watch.Signal) string {
	if s.Signal == release.P99 && s.Form == release.ByCount {
		return s.Signal.String() + " slow"
	}
	return s.Signal.String()
}
