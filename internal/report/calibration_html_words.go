package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/canaryctl/canaryctl/internal/calibrate"
)

// unknown stands for a figure that does not exist, none for one that no number
// can be. Neither is ever shown as 0.
const (
	unknown = "unknown"
	none    = "none"
)

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// decimal prints so many significant digits, without an exponent where that
// can be read, and with a true minus sign.
func decimal(x float64, digits int) string {
	if !finite(x) {
		return unknown
	}
	if a := math.Abs(x); a >= 1e15 || (a < 1e-9 && a > 0) {
		return strings.Replace(strconv.FormatFloat(x, 'g', digits, 64), "-", "−", 1)
	}
	short, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(math.Abs(short), 'f', -1, 64), ".")
	n, _ := strconv.ParseInt(whole, 10, 64)
	out := thousands(n)
	if fraction != "" {
		out += "." + fraction
	}
	if short < 0 {
		out = "−" + out
	}
	return out
}

// fixed prints so many decimals, for columns of like figures.
func fixed(x float64, decimals int) string {
	if !finite(x) || math.Abs(x) >= 1e15 {
		return decimal(x, 4)
	}
	return strings.Replace(strconv.FormatFloat(x, 'f', decimals, 64), "-", "−", 1)
}

// known prints a figure times a factor, or that it is unknown.
func known(p *float64, factor float64, digits int, unit string) string {
	if p == nil || !finite(*p*factor) {
		return unknown
	}
	return decimal(*p*factor, digits) + unit
}

// positive prints a value in percentage points or the like of which 0 is none.
func positive(x float64, digits int, unit string) string {
	if !(x > 0) {
		return unknown
	}
	return known(&x, 1, digits, unit)
}

// points prints a fraction in percentage points with two decimals.
func points(p *float64) string {
	if p == nil || !finite(*p) {
		return unknown
	}
	return fixed(100**p, 2)
}

// rate prints a fraction in percent with two decimals.
func rate(p *float64) string {
	if p == nil || !finite(*p) {
		return unknown
	}
	return fixed(100**p, 2) + " %"
}

// rateOf is the share of x in n.
func rateOf(x, n int64) *float64 {
	if n <= 0 {
		return nil
	}
	return new(float64(x) / float64(n))
}

// share prints a share of the traffic: 1 %.
func share(x float64) string {
	if !finite(x) {
		return unknown
	}
	return decimal(100*x, 4) + " %"
}

func integer(p *int64, missing string) string {
	if p == nil {
		return missing
	}
	return strings.Replace(thousands(*p), "-", "−", 1)
}

// chance prints a probability, or a rate that may be as small.
func chance(p *float64) string {
	switch {
	case p == nil || !finite(*p):
		return unknown
	case *p < 1e-9:
		return "below 1e-9"
	case *p < 0.0001:
		return strings.Replace(strconv.FormatFloat(*p, 'e', 1, 64), "e-0", "e-", 1)
	}
	return decimal(*p, 2)
}

// minutes prints a length of time given in minutes.
func minutes(p *float64) string {
	if p == nil || !finite(*p) || *p < 0 || *p > 1e9 {
		return unknown
	}
	if *p < 10 {
		return decimal(*p, 2) + " min"
	}
	n := int64(math.Round(*p))
	switch days, hours, rest := n/1440, n/60%24, n%60; {
	case n < 120:
		return strconv.FormatInt(n, 10) + " min"
	case days == 0 && rest == 0:
		return strconv.FormatInt(hours, 10) + " h"
	case days == 0:
		return strconv.FormatInt(hours, 10) + " h " + strconv.FormatInt(rest, 10) + " min"
	case hours == 0:
		return strconv.FormatInt(days, 10) + " d"
	default:
		return strconv.FormatInt(days, 10) + " d " + strconv.FormatInt(hours, 10) + " h"
	}
}

// length is minutes for a span that is never 0.
func length(minute float64) string {
	if minute <= 0 {
		return unknown
	}
	return minutes(&minute)
}

// instant prints a time to the minute. Columns and sentences say that it is UTC.
func instant(t time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return t.UTC().Format("2006-01-02 15:04")
}

// weekly prints a rate of false trips with its interval; without any, the
// upper bound of what may have been missed.
func weekly(e calibrate.Estimate) string {
	switch {
	case e.Count > 0:
		return decimal(e.Rate, 2) + " a week (" + decimal(e.Lower, 2) + " to " + decimal(e.Upper, 2) + ")"
	case e.Upper > 0:
		return "fewer than " + decimal(e.Upper, 2) + " a week (95 %)"
	}
	return unknown
}

// falsely prints the share of false rollbacks with its interval, as weekly
// does.
func falsely(e calibrate.Estimate) string {
	switch {
	case e.Count > 0:
		return share(e.Rate) + " (" + share(e.Lower) + " to " + share(e.Upper) + ")"
	case e.Upper > 0:
		return "fewer than " + share(e.Upper) + " (95 %)"
	}
	return unknown
}

// clock is an hour of the day.
func clock(hour int) string { return fmt.Sprintf("%02d:00", hour) }

// period prints a span of time, the day but once.
func period(from, to time.Time) string {
	if f, t := from.UTC(), to.UTC(); !from.IsZero() && f.Truncate(24*time.Hour).Equal(t.Truncate(24*time.Hour)) {
		return instant(from) + " to " + t.Format("15:04")
	}
	return instant(from) + " to " + instant(to)
}

// tied keeps a unit on the line of its number.
func tied(s string) string { return unitSpace.ReplaceAllString(s, "$1\u00a0$2") }

// sentence begins with a capital letter; a flag or a number stays as it is.
func sentence(s string) string {
	s = plain(s)
	first, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return s
	}
	return string(unicode.ToUpper(first)) + s[size:]
}

// spoken is a signal's name in a sentence.
func spoken(signal string) string { return plain(strings.ReplaceAll(signal, "_", " ")) }

// shares lists how the signals part the budget, the largest first.
func shares(m map[string]float64) string {
	names := slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
	for i, name := range names {
		names[i] = spoken(name) + " " + share(m[name])
	}
	return strings.Join(names, ", ")
}

// weekday is the full name of a day that the report abbreviates.
func weekday(short string) string {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if strings.EqualFold(d.String()[:3], short) {
			return d.String()
		}
	}
	return plain(short)
}
