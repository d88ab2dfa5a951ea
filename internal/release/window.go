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
type Figures uint32

// The figures that may be missing from a window. Total is never missing.
const (
	HasSolved       Figures = 1 << iota // Judged and Solved
	HasViolations                       // Violations
	HasTransfers                        // Transfers
	HasCost                             // Cost
	HasCostMean                         // CostMean
	HasP99                              // P99MS
	HasSlow                             // Slow
	HasControl                          // ControlJudged and ControlSolved
	HasUsers                            // Users
	HasTTFT                             // TTFTP99MS and TTFTOf
	HasTTFTSlow                         // TTFTSlow and TTFTOf
	HasITL                              // ITLMS and ITLOf
	HasAborts                           // Aborted and Streams
	HasErrors                           // Errors and StatusOf
	HasServerErrors                     // ServerErrors and StatusOf
	HasKVCache                          // KVCache
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

	// Streaming and infrastructure. Each share has its own denominator: a
	// request that was not streamed, or whose status nobody logged, is not one
	// that went well.
	TTFTOf       int64   // streams whose time to first token is known
	TTFTP99MS    float64 // its 99th percentile, milliseconds, nearest rank
	TTFTSlow     int64   // of TTFTOf, those above the limit of ttft_slow
	ITLOf        int64   // streams whose inter-token latency is known
	ITLMS        float64 // its mean over streams, milliseconds
	Streams      int64   // streams of which it is known how they ended
	Aborted      int64   // of Streams, those that broke off; a client that hangs up is none
	StatusOf     int64   // requests with a known status
	Errors       int64   // of StatusOf, not ok: refusals (429) and broken contracts too
	ServerErrors int64   // of StatusOf, 5xx
	KVCache      float64 // KV-cache blocks in use, the most in the window, a fraction of 1

	// What stable did in the same span, for a concurrent control.
	ControlJudged int64
	ControlSolved int64

	Known Figures
}

// Has reports whether the window carries all figures of f.
func (w *Window) Has(f Figures) bool { return w.Known&f == f }

// End returns the first instant after the window.
func (w *Window) End() time.Time { return w.T.Add(w.Span) }
