package breaker

import "time"

// SetBack lets a phase that begins in the future, by the clock of now, begin
// now: a cooldown ends at most its length after now.
func SetBack(st *State, now time.Time) {
	if st.Since.After(now) {
		st.Since = now
	}
}

// Unsee forgets the windows that begin after now, which came from a clock that
// was ahead, and returns the start of the newest that it keeps: the next ones
// may then come in order again. A cumulative sum that the forgotten ones are
// part of begins anew.
func Unsee(st *State, now time.Time) (newest time.Time, ok bool) {
	s, t := &st.spans, now.UnixNano()
	for s.hi > s.lo && s.at(s.hi-1).T > t {
		s.hi--
	}
	s.probed = min(s.probed, s.hi)
	if s.cusum.next > s.hi {
		s.cusum.restart(s.hi)
	}
	s.plain, s.sums.lag = false, -1 // no limits have a negative lag: the next slide forms the sums anew
	if s.hi == s.lo {
		return time.Time{}, false
	}
	return unixNano(s.at(s.hi - 1).T), true
}
