package trace

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/canaryctl/canaryctl/internal/pattern"
)

// snapshotName is what a file's name says of the snapshot in it.
type snapshotName struct {
	target string // whose /metrics it is, as far as the name says
	at     int64  // nanoseconds since the epoch, noTime where the name holds no time
	zone   bool   // the time names its zone
}

// The times that names of files hold: RFC 3339, with or without what a file
// system does not like, and seconds, milliseconds or more since the epoch, with
// the fraction that `date +%s.%N` writes.
var (
	calendarInName = pattern.New(`(\d{4})-?(\d{2})-?(\d{2})[Tt_ -](\d{2})[:.-]?(\d{2})[:.-]?(\d{2})([.,]\d+)?(Z|z|[+-]\d{2}:?\d{2})?`)
	epochInName    = pattern.New(`\d{10,19}(\.\d{1,9})?`)
	numberAtEnd    = pattern.New(`[-_.]?\d+$`)
)

// snapshotExtensions are endings of names that say nothing of the target.
var snapshotExtensions = []string{".gz", ".zst", ".zstd", ".prom", ".txt", ".metrics", ".om"}

// nameOf reads a file's name. Two times in it are none: which one is meant is
// not to be guessed.
func nameOf(path string) snapshotName {
	base, folder := filepath.Base(path), filepath.Dir(path)
	for slices.Contains(snapshotExtensions, filepath.Ext(base)) {
		base = strings.TrimSuffix(base, filepath.Ext(base))
	}
	n := snapshotName{at: noTime}
	rest := base
	if at, from, to, zone := timeIn(base); at != noTime {
		n.at, n.zone, rest = at, zone, base[:from]+base[to:]
	} else {
		rest = numberAtEnd.ReplaceAllString(base, "")
	}
	n.target = strings.Trim(rest, "-_. @")
	if n.target == "" && folder != "." {
		n.target = filepath.Base(folder)
	}
	return n
}

// timeIn finds the one time in a name.
func timeIn(name string) (at int64, from, to int, zone bool) {
	at = noTime
	found := calendarInName.Regexp().FindAllStringSubmatchIndex(name, -1)
	if len(found) == 1 {
		return calendarIn(name, found[0])
	}
	if len(found) > 1 {
		return noTime, 0, 0, false
	}
	for _, m := range epochInName.Regexp().FindAllStringIndex(name, -1) {
		n, _ := parseNumber([]byte(name[m[0]:m[1]]))
		unit, ok := guessEpoch(n)
		whole, _, _ := strings.Cut(name[m[0]:m[1]], ".")
		if !ok || !slices.Contains([]int{10, 13, 16, 19}, len(whole)) {
			continue
		}
		ns, fits := n.floor(9 + unit.exp())
		if !fits || at != noTime {
			return noTime, 0, 0, false
		}
		at, from, to = ns, m[0], m[1]
	}
	return at, from, to, true
}

// calendarIn reads a date and time by the places of its parts. A zone that no
// clock has is a number of its own and stays in the name.
func calendarIn(name string, m []int) (at int64, from, to int, zone bool) {
	part := func(i int) string {
		if m[2*i] < 0 {
			return ""
		}
		return name[m[2*i]:m[2*i+1]]
	}
	text := part(1) + "-" + part(2) + "-" + part(3) + "T" + part(4) + ":" + part(5) + ":" + part(6) + part(7)
	to = m[1]
	if z := part(8); len(z) < 2 || isZone(z) {
		text += z
	} else {
		to = m[2*8]
	}
	ns, zone, ok := parseCalendar([]byte(text))
	if !ok || !inRange(ns) {
		return noTime, 0, 0, false
	}
	return ns, m[0], to, zone
}

// isZone reports whether +hhmm or +hh:mm is the distance of a zone from UTC.
func isZone(s string) bool {
	hours, err := strconv.Atoi(s[1:3])
	minutes, err2 := strconv.Atoi(s[len(s)-2:])
	return err == nil && err2 == nil && hours <= 14 && minutes%15 == 0
}
