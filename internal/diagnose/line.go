package diagnose

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/canaryctl/canaryctl/internal/jsonscan"
	"github.com/canaryctl/canaryctl/internal/release"
)

// line is a JSON object while it is read.
type line struct {
	names *Names
	raw   [numFields]json.RawMessage // nil: absent
	rank  [numFields]int
	has   fieldSet
	err   error // the first thing wrong with it
}

// Attempt reads one line of a log, a JSON object. The error says what is wrong
// with the line, without its place.
func (n *Names) Attempt(text []byte) (Attempt, error) {
	l := line{names: n}
	if text = bytes.TrimSpace(text); !json.Valid(text) {
		var any json.RawMessage
		return Attempt{}, fmt.Errorf("not valid JSON: %w", json.Unmarshal(text, &any))
	}
	if text[0] != '{' {
		return Attempt{}, errors.New("not a JSON object")
	}
	l.members(text)
	a := Attempt{
		Trace: l.text(fieldTrace), UpstreamID: l.text(fieldUpstream), Code: l.text(fieldCode), Breaker: l.text(fieldBreaker),
	}
	a.At = l.instant()
	a.Number, _ = l.count(fieldAttempt)
	a.InFlight, a.InFlightKnown = l.count(fieldInFlight)
	a.Tokens, a.TokensKnown = l.count(fieldTokens)
	a.RetryAfter, a.RetryAfterKnown = l.duration(fieldRetryAfter)
	a.Elapsed, a.ElapsedKnown = l.duration(fieldElapsed)
	l.value(fieldStream)
	l.status(&a)
	l.phase(&a)
	a.Waits = waitsOf(a.Code, a.Status)
	a.has = l.has
	return a, l.err
}

// members takes the values of the keys that are read.
func (l *line) members(object []byte) {
	keys := l.names.keys
	if keys == nil {
		keys = defaultKeys
	}
	jsonscan.EachMember(object, func(key, value []byte) {
		for _, p := range keys[string(key)] {
			switch {
			case l.raw[p.field] == nil || p.rank < l.rank[p.field]:
				l.raw[p.field], l.rank[p.field] = value, p.rank
			case p.rank == l.rank[p.field]:
				l.twice(p.field) // one reader takes the first, another the last
			}
		}
	})
	for _, f := range l.names.deep {
		if l.raw[f] == nil {
			found, times := lookUp(object, l.names.paths[f])
			if l.raw[f] = found; times > 1 {
				l.twice(f)
			}
		}
	}
}

func (l *line) twice(f field) { l.bad(f, "stands twice in the line") }

// value returns the text of a field's value, strings decoded; "" where it is
// absent, null or empty.
func (l *line) value(f field) string {
	raw := l.raw[f]
	if raw == nil || string(raw) == "null" {
		return ""
	}
	text := string(raw)
	switch raw[0] {
	case '"':
		text = string(jsonscan.Text(raw))
	case '{', '[':
		l.bad(f, "is an object or an array")
		return ""
	}
	if text = strings.TrimSpace(text); text != "" {
		l.has |= 1 << f
	}
	return text
}

// lookUp finds a path in an object, the longest key with dots in it first, and
// says how often a key on the way stands there.
func lookUp(object []byte, path []string) (found json.RawMessage, times int) {
	for n := len(path); n > 0 && times == 0; n-- {
		want := strings.Join(path[:n], ".")
		jsonscan.EachMember(object, func(key, value []byte) {
			switch {
			case string(key) != want:
			case n == len(path):
				found = value
				times++
			case value[0] == '{':
				if inner, there := lookUp(value, path[n:]); there > 0 {
					found = inner
					times += there
				}
			}
		})
	}
	return found, times
}

// bad notes what is wrong with a field; the first thing is kept.
func (l *line) bad(f field, format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf("%s %s", fields[f].name, fmt.Sprintf(format, args...))
	}
}

// shown is how much of a value a message shows.
const shown = 40

func quote(s string) string {
	if r := []rune(s); len(r) > shown {
		return strconv.Quote(string(r[:shown])) + "..."
	}
	return strconv.Quote(s)
}

// text returns a name. Only a bounded part of it is kept.
func (l *line) text(f field) string {
	const most = 256
	text := l.value(f)
	if len(text) > most {
		text = text[:most]
	}
	return text
}

// number reads a finite number of at least 0.
func (l *line) number(f field) (float64, bool) {
	text := l.value(f)
	if text == "" {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		l.bad(f, "%s is no number of at least 0", quote(text))
		return 0, false
	}
	return v, true
}

// maxCount bounds whole numbers, far from where sums overflow.
const maxCount = 1_000_000_000

// count reads a whole number.
func (l *line) count(f field) (int64, bool) {
	v, ok := l.number(f)
	if !ok {
		return 0, false
	}
	if v != math.Trunc(v) || v > maxCount {
		l.bad(f, "%s is no count", quote(l.value(f)))
		return 0, false
	}
	if f == fieldAttempt && v < 1 {
		l.bad(f, "%s: attempts count from 1", quote(l.value(f)))
	}
	return int64(v), true
}

// duration reads a length of time.
func (l *line) duration(f field) (time.Duration, bool) {
	v, ok := l.number(f)
	if !ok {
		return 0, false
	}
	unit := fields[f].unit
	if l.names.units[f] != 0 {
		unit = l.names.units[f]
	}
	if v *= float64(unit); v > float64(10000*time.Hour) {
		l.bad(f, "%s is out of range", quote(l.value(f)))
		return 0, false
	}
	return time.Duration(v), true
}

// instant reads the time: RFC 3339, or a number in the unit that was given, else
// in the unit whose magnitude it has.
func (l *line) instant() time.Time {
	text := l.value(fieldTS)
	if text == "" {
		return time.Time{}
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.UTC()
	}
	v, err := strconv.ParseFloat(text, 64)
	unit := l.names.units[fieldTS]
	if unit == 0 {
		unit = magnitude(v)
	}
	if err != nil || math.IsNaN(v) || v < 0 || v*float64(unit) > math.MaxInt64/2 {
		l.bad(fieldTS, "%s is neither a time of RFC 3339 nor one in numbers", quote(text))
		return time.Time{}
	}
	return time.Unix(0, int64(v*float64(unit))).UTC()
}

// magnitude guesses the unit of a time: seconds of this century have 10 digits.
func magnitude(v float64) time.Duration {
	switch {
	case v >= 1e17:
		return time.Nanosecond
	case v >= 1e14:
		return time.Microsecond
	case v >= 1e11:
		return time.Millisecond
	}
	return time.Second
}

// status reads an HTTP status, or a word that stands for one: ok, or an error
// code in its place.
func (l *line) status(a *Attempt) {
	text := l.value(fieldStatus)
	code, err := strconv.ParseFloat(text, 64)
	switch {
	case text == "":
	case err != nil && (strings.EqualFold(text, "ok") || strings.EqualFold(text, "success")):
		a.OK = true
	case err != nil && a.Code == "":
		a.Code = text
	case err != nil:
	case code != math.Trunc(code) || code < 0 || code > 599 || code > 0 && code < 100:
		l.bad(fieldStatus, "%s is no HTTP status", quote(text))
	default:
		a.Status = int(code)
	}
	if a.Status == 0 && !a.OK && slices.Contains(rateLimitCodes, a.Code) {
		a.Status = 429
	}
}

// phase reads the breaker's state.
func (l *line) phase(a *Attempt) {
	text := l.value(fieldBreakerState)
	if text == "" {
		return
	}
	word := strings.ReplaceAll(strings.ToUpper(text), "-", "_")
	if word == "HALFOPEN" {
		word = release.HalfOpen.String()
	}
	if err := a.Phase.UnmarshalText([]byte(word)); err != nil {
		l.bad(fieldBreakerState, "%s is neither CLOSED, OPEN nor HALF_OPEN", quote(text))
		return
	}
	a.PhaseKnown = true
}

// Keys lists the keys of a line, for messages; nil if it is no object.
func Keys(text []byte) (names []string) {
	text = bytes.TrimSpace(text)
	if !json.Valid(text) || text[0] != '{' {
		return nil
	}
	jsonscan.EachMember(text, func(key, _ []byte) { names = append(names, string(key)) })
	return names
}
