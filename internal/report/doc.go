// Package report turns the outcome of a replay into text for a person, JSON
// for a program and JUnit for a pipeline. It decides nothing and reads no
// clock: the same outcome gives the same bytes.
package report

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Expectation is what a scenario wanted, beside what it got.
type Expectation struct {
	Want string `json:"want"`
	Got  string `json:"got"`
	OK   bool   `json:"ok"`
}

// failed counts the expectations that were not met.
func failed(es []Expectation) (n int) {
	for _, e := range es {
		if !e.OK {
			n++
		}
	}
	return n
}

// stamp is a time as output shows it.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// pct is a share as a fraction, the way canary.yaml writes it.
func pct(w release.Weight) float64 { return w.Share() }

// plain makes a name from a file fit for a terminal: what would steer it is
// shown as U+FFFD.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return r
	}, name)
}

// counted is a count with its noun: 1 run, 2 runs.
func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return thousands(int64(n)) + " " + noun
}

// figure prints a value of at least 0 to four digits, and from a thousand on to the unit.
func figure(x float64) string {
	if x >= 1000 || x == math.Trunc(x) {
		return thousands(int64(math.Round(x)))
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// thousands prints a count with separators: 2,600.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, c := range s {
		if i > 0 && (len(s)-i)%3 == 0 && s[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}
