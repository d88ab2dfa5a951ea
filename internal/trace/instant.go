package trace

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// clock reads the times of one file. Times are nanoseconds since the epoch in
// an int64, which reaches from 1678 to 2261.
type clock struct {
	unit    Unit // of times that are numbers, NoUnit until told or guessed
	guessed bool
	zone    bool // a time without a zone was met, and read as UTC
	minute
}

// minute is the minute of the time read last: the next one is mostly in the
// same.
type minute struct {
	text [2]uint64 // "2006-01-02T15:04", 0 where there is none; a colon follows
	at   int64
}

// read reads a time of this minute that starts at b[i], in UTC, with at most
// nanoseconds, and returns the index after it. Of everything else it says no. It
// needs blockPad bytes after the time.
func (m *minute) read(b []byte, i int) (t int64, end int, ok bool) {
	head := (*[20]byte)(b[i : i+20])
	if (binary.LittleEndian.Uint64(head[:8])^m.text[0])|(binary.LittleEndian.Uint64(head[8:16])^m.text[1]) != 0 || head[16] != ':' || m.text[0] == 0 {
		return 0, i, false
	}
	tens, units := head[17]-'0', head[18]-'0'
	if tens > 5 || units > 9 {
		return 0, i, false
	}
	t = m.at + (int64(tens)*10+int64(units))*int64(time.Second)
	if i += len("2006-01-02T15:04:05"); head[19] != '.' {
		return t, i + 1, head[19] == 'Z'
	}
	fraction, n := digits8(load(b, i+1))
	ns := int64(fraction) * int64(powersOf10[9-n])
	if i += 1 + n; n == 8 && b[i]-'0' <= 9 {
		ns += int64(b[i] - '0')
		i++
	}
	return t + ns, i + 1, n > 0 && b[i] == 'Z'
}

// of reads the same from a text of its own.
func (m *minute) of(s []byte) (t int64, ok bool) {
	var padded [len("2006-01-02T15:04:05.000000000Z") + blockPad]byte
	if len(s) > len(padded)-blockPad {
		return 0, false
	}
	copy(padded[:], s)
	t, end, ok := m.read(padded[:], 0)
	return t, ok && end == len(s)
}

// remember makes the minute that of a time in UTC, if it is written so.
func (m *minute) remember(s []byte, t int64) {
	if n := len("2006-01-02T15:04:"); len(s) > n && s[n-1] == ':' && s[n-7] == 'T' && s[len(s)-1] == 'Z' && s[n] < '6' {
		m.at = floorTo(t, int64(time.Minute))
		m.text = [2]uint64{load(s, 0), load(s, 8)}
	}
}

// Times start at -maxTime, the start of 1680, and end before maxTime, the start
// of 2260: window arithmetic stays clear of the ends of the int64, with windows
// of at most maxSpan.
const (
	maxTime = 9151488000 * int64(time.Second)
	maxSpan = 366 * 24 * time.Hour
)

// inRange reports whether a time is one of the years from 1680 to 2259.
func inRange(ns int64) bool { return -maxTime <= ns && ns < maxTime }

// instant reads a time. The error says what is wrong with it, for a bad line.
func (c *clock) instant(s []byte) (int64, error) {
	if t, ok := c.of(s); ok {
		return t, nil
	}
	n, kind := parseNumber(s)
	switch kind {
	case missing:
		return 0, &badRow{"no time"}
	case nonFinite:
		return 0, &badRow{"the time is not a finite number"}
	case finite:
		return c.epoch(s, n)
	}
	if c.unit != NoUnit && !c.guessed {
		return 0, &badRow{fmt.Sprintf("the time %s is not a number of %s, the unit given", quote(s), c.unit)}
	}
	t, zone, ok := parseCalendar(s)
	switch {
	case !ok:
		return 0, &badRow{fmt.Sprintf("%s is not a time", quote(s))}
	case !inRange(t):
		return 0, &badRow{fmt.Sprintf("the time %s is out of range: from 1680 to 2259", quote(s))}
	}
	if !zone {
		c.zone = true
	}
	c.remember(s, t)
	return t, nil
}

func (c *clock) epoch(s []byte, n number) (int64, error) {
	unit := c.unit
	if unit == NoUnit || c.guessed {
		guess, ok := guessEpoch(n)
		if _, fits := n.floor(0); !fits {
			return 0, &badRow{fmt.Sprintf("the time %s is out of range", quote(s))}
		}
		if !ok {
			return 0, &badRow{fmt.Sprintf("the time %s could be in any unit; say which, as in --map ts=COLUMN:s or --epoch s", quote(s))}
		}
		if c.guessed && guess != unit {
			return 0, &badRow{fmt.Sprintf("the time %s looks like %s, those before it like %s", quote(s), guess, unit)}
		}
		c.unit, c.guessed, unit = guess, true, guess
	}
	t, ok := n.floor(9 + unit.exp())
	if !ok || !inRange(t) {
		return 0, &badRow{fmt.Sprintf("the time %s is out of range: from 1680 to 2259", quote(s))}
	}
	return t, nil
}

// guessEpoch tells the unit of a time from its size: the four ranges start in
// 1973 and end in 5138 and do not meet for present times.
func guessEpoch(n number) (Unit, bool) {
	v, ok := n.floor(0)
	switch {
	case !ok || v < 1e8:
		return NoUnit, false
	case v < 1e11:
		return Seconds, true
	case v < 1e14:
		return Milliseconds, true
	case v < 1e17:
		return Microseconds, true
	}
	return Nanoseconds, true
}

// parseCalendar reads RFC 3339 and its relatives: T or a space between date
// and time, any number of digits after a point or comma, and a zone of Z, UTC,
// +hh, +hhmm or +hh:mm, or none, which is UTC. Digits past the ninth are cut.
// A leap second is the first of the next day, as the epoch counts it. A year
// whose nanoseconds do not fit becomes the end of them that is nearer.
func parseCalendar(s []byte) (ns int64, zone, ok bool) {
	if len(s) < len("2006-01-02T15:04:05") || s[4] != '-' || s[7] != '-' || s[13] != ':' || s[16] != ':' {
		return 0, false, false
	}
	if c := s[10]; c != 'T' && c != ' ' && c != 't' {
		return 0, false, false
	}
	var bad bool
	num := func(from, to int) int {
		v := 0
		for _, c := range s[from:to] {
			bad = bad || c < '0' || c > '9'
			v = v*10 + int(c-'0')
		}
		return v
	}
	year, month, day := num(0, 4), num(5, 7), num(8, 10)
	hour, minute, second := num(11, 13), num(14, 16), num(17, 19)
	if bad || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) || hour > 23 || minute > 59 || second > 60 {
		return 0, false, false
	}
	frac, rest, ok := fraction(s[19:])
	if !ok {
		return 0, false, false
	}
	offset, zone, ok := parseZone(rest)
	switch {
	case !ok:
		return 0, false, false
	case year < 1679: // 1679 and 2260 may be in range in another zone
		return math.MinInt64, zone, true
	case year > 2260:
		return math.MaxInt64, zone, true
	}
	at := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC).Add(-offset)
	if second == 60 && !at.Equal(at.Truncate(24*time.Hour)) {
		return 0, false, false
	}
	return at.UnixNano() + int64(frac), zone, true
}

func daysIn(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// fraction reads a fraction of a second, if there is one, as nanoseconds.
func fraction(s []byte) (ns int, rest []byte, ok bool) {
	if len(s) == 0 || s[0] != '.' && s[0] != ',' {
		return 0, s, true
	}
	i, unit := 1, int(time.Second/10)
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		ns += int(s[i]-'0') * unit
		unit /= 10
	}
	return ns, s[i:], i > 1
}

// parseZone reads what follows the seconds.
func parseZone(s []byte) (offset time.Duration, zone, ok bool) {
	switch string(s) {
	case "":
		return 0, false, true
	case "Z", "z", " UTC", "UTC":
		return 0, true, true
	}
	sign := time.Duration(1)
	switch s[0] {
	case '-':
		sign = -1
	case '+':
	default:
		return 0, false, false
	}
	d := make([]int, 0, 4)
	for i, c := range s[1:] {
		switch {
		case c == ':' && i == 2:
		case c >= '0' && c <= '9' && len(d) < 4:
			d = append(d, int(c-'0'))
		default:
			return 0, false, false
		}
	}
	if len(d) == 2 && len(s) == 3 {
		d = append(d, 0, 0)
	}
	if len(d) != 4 || d[0]*10+d[1] > 23 || d[2] > 5 {
		return 0, false, false
	}
	hours, minutes := time.Duration(d[0]*10+d[1]), time.Duration(d[2]*10+d[3])
	return sign * (hours*time.Hour + minutes*time.Minute), true, true
}

// ParseSpan reads the length of a window: 90s, 10m, 1h30m, 1d, 1w. A number
// without a unit is refused.
func ParseSpan(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		var p model.Duration
		if p, err = model.ParseDuration(s); err == nil {
			d = time.Duration(p)
		}
	}
	switch {
	case err != nil || d <= 0:
		return 0, fmt.Errorf("%q is not a span of time such as 1m, 10m or 1h", s)
	case d > maxSpan:
		return 0, fmt.Errorf("%q is longer than a year", s)
	}
	return d, nil
}

// FormatSpan prints a span so that [ParseSpan] reads it back: 10m, 1h30m.
func FormatSpan(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
