package breaker

import "github.com/canaryctl/canaryctl/internal/release"

// Below and Above are the comparisons that every window goes through.
var (
	Below = below
	Above = above
)

// GoesShort reports whether [Step] would fold the window itself, as the next of
// plain spans, and not leave it to stepAny.
func (st *State) GoesShort(l *Limits, w *release.Window) bool {
	s := &st.spans
	return s.plain && s.plainly(l) && st.Phase == release.Closed && w.Total > 0 &&
		w.Known&(usual|release.StreamingFigures) == usual && s.hi-s.lo < int64(len(s.ring)-1)
}
