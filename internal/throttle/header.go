package throttle

import (
	"math"
	"strings"
	"time"
)

// httpDates are the three forms of a date in HTTP (RFC 9110, section 5.6.7).
var httpDates = []string{"Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT", "Mon Jan _2 15:04:05 2006"}

// RetryAfter reads the value of a Retry-After header: seconds, fractions too,
// or an HTTP date, of which one in the past means at once. Anything else is
// unknown.
func RetryAfter(header string, now time.Time) (time.Duration, bool) {
	header = strings.TrimSpace(header)
	if d, ok := decimal(header, time.Second); ok {
		return d, true
	}
	for _, form := range httpDates {
		if t, err := time.Parse(form, header); err == nil {
			return max(t.Sub(now), 0), true
		}
	}
	return 0, false
}

// RetryAfterMS reads the value of a retry-after-ms header.
func RetryAfterMS(header string) (time.Duration, bool) {
	return decimal(strings.TrimSpace(header), time.Millisecond)
}

// ResetAfter reads the value of an x-ratelimit-reset-* header, a duration such
// as 120ms or 6m0s. The -1 and 0 that some gateways send there say nothing and
// are unknown, as are bare numbers, of which nobody knows the unit.
func ResetAfter(header string) (time.Duration, bool) {
	d, err := time.ParseDuration(strings.TrimSpace(header))
	return d, err == nil && d > 0
}

// HeaderWait reads how long an answer asks to be left alone. get returns a
// header's value, "" if it is absent, as the method Get of net/http's Header
// does. retry-after-ms goes before Retry-After, being finer; without either it
// is the longest x-ratelimit-reset-* of a limit of which nothing remains.
func HeaderWait(get func(name string) string, now time.Time) (time.Duration, bool) {
	if d, ok := RetryAfterMS(get("Retry-After-Ms")); ok {
		return d, true
	}
	if d, ok := RetryAfter(get("Retry-After"), now); ok {
		return d, true
	}
	longest, known := time.Duration(0), false
	for _, what := range []string{"Requests", "Tokens", "Project-Tokens"} {
		if strings.TrimSpace(get("X-Ratelimit-Remaining-"+what)) != "0" {
			continue
		}
		if d, ok := ResetAfter(get("X-Ratelimit-Reset-" + what)); ok {
			longest, known = max(longest, d), true
		}
	}
	return longest, known
}

// decimal reads digits with an optional fraction, in units, exactly to the
// nanosecond and saturated at the longest duration.
func decimal(s string, unit time.Duration) (time.Duration, bool) {
	whole, fraction, point := strings.Cut(s, ".")
	if whole == "" || point && fraction == "" {
		return 0, false
	}
	total := int64(0)
	for _, c := range []byte(whole) {
		if c < '0' || c > '9' {
			return 0, false
		}
		if total > (math.MaxInt64-9)/10 {
			total = (math.MaxInt64 - 9) / 10 // far past every unit's range: saturates below
		}
		total = total*10 + int64(c-'0')
	}
	part, scale := int64(0), int64(unit)
	for _, c := range []byte(fraction) {
		if c < '0' || c > '9' {
			return 0, false
		}
		scale /= 10 // digits past the nanosecond are cut
		part += int64(c-'0') * scale
	}
	if total > (math.MaxInt64-part)/int64(unit) {
		return math.MaxInt64, true
	}
	return time.Duration(total*int64(unit) + part), true
}
