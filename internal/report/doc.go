// Package report turns the outcome of a replay into text for a person, JSON
// for a program and JUnit for a pipeline. It decides nothing and reads no
// clock: the same outcome gives the same bytes.
package report

import (
	"strconv"
	"strings"
	"time"

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
