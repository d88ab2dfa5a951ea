package release

import "time"

// Arm is one of the two versions of a release, or, in a baseline that was
// never split, the name under which its records were logged.
type Arm string

const (
	// Stable is what serves now.
	Stable Arm = "stable"
	// Canary is what is being released.
	Canary Arm = "canary"
	// All is traffic that nobody split into arms.
	All Arm = "all"
)

// Figures is the set of figures that a window carries. A figure that is not
// in the set is missing, which is never the same as zero.
type Figures uint16

// The figures that may be missing from a window. Total is never missing.
const (
	HasSolved     Figures = 1 << iota // Judged and Solved
	HasViolations                     // Violations
	HasTransfers                      // Transfers
	HasCost                           // Cost
	HasCostMean                       // CostMean
	HasP99                            // P99MS
	HasSlow                           // Slow
	HasControl                        // ControlJudged and ControlSolved
	HasUsers                          // Users
)

// Window is what one arm did in one span of time. The requests it counts have
// their start in [T, T+Span). A Window with Total 0 is no data, not rate 0.
type Window struct {
	T    time.Time     // start, UTC
	Span time.Duration // usually a minute
	Arm  Arm

	Total      int64 // requests
	Judged     int64 // requests whose outcome is known: the solve rate's denominator
	Solved     int64 // requests of Judged that were solved
	Violations int64 // answers that leaked past the guard rails
	Transfers  int64 // requests handed to a human

	Cost     float64 // mean cost a request, as a ratio to stable's in the same window
	CostMean float64 // mean cost a request, USD
	P99MS    float64 // 99th percentile latency, milliseconds, nearest rank
	Slow     int64   // requests slower than p99_baseline_ms
	Users    int64   // different users in the window

	// What stable did in the same span, for a concurrent control.
	ControlJudged int64
	ControlSolved int64

	Known Figures
}

// Has reports whether the window carries all figures of f.
func (w *Window) Has(f Figures) bool { return w.Known&f == f }

// End returns the first instant after the window.
func (w *Window) End() time.Time { return w.T.Add(w.Span) }
