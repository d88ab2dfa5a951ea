package journal

import (
	"math"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Window is a window as the journal keeps it: every figure that was known, and
// none that was not. It gives back the very window that Decide was shown.
type Window struct {
	T             time.Time `json:"t"`
	SpanS         float64   `json:"span_s"`
	Total         int64     `json:"total"`
	Judged        *int64    `json:"judged,omitempty"`
	Solved        *int64    `json:"solved,omitempty"`
	Violations    *int64    `json:"violations,omitempty"`
	Transfers     *int64    `json:"transfers,omitempty"`
	Cost          *float64  `json:"cost,omitempty"`
	CostMean      *float64  `json:"cost_mean,omitempty"`
	P99MS         *float64  `json:"p99_ms,omitempty"`
	Slow          *int64    `json:"slow,omitempty"`
	Users         *int64    `json:"users,omitempty"`
	ControlJudged *int64    `json:"control_judged,omitempty"`
	ControlSolved *int64    `json:"control_solved,omitempty"`
	WindowStreaming
}

// WindowsOf writes windows down.
func WindowsOf(windows []release.Window) []Window {
	out := make([]Window, 0, len(windows))
	for i := range windows {
		out = append(out, windowOf(&windows[i]))
	}
	return out
}

func windowOf(w *release.Window) Window {
	out := Window{T: w.T, SpanS: w.Span.Seconds(), Total: w.Total}
	keep := func(f release.Figures, n int64) *int64 {
		if !w.Has(f) {
			return nil
		}
		return &n
	}
	keepFloat := func(f release.Figures, x float64) *float64 {
		if !w.Has(f) {
			return nil
		}
		return &x
	}
	out.Judged, out.Solved = keep(release.HasSolved, w.Judged), keep(release.HasSolved, w.Solved)
	out.Violations, out.Transfers = keep(release.HasViolations, w.Violations), keep(release.HasTransfers, w.Transfers)
	out.Slow, out.Users = keep(release.HasSlow, w.Slow), keep(release.HasUsers, w.Users)
	out.Cost, out.CostMean, out.P99MS = keepFloat(release.HasCost, w.Cost), keepFloat(release.HasCostMean, w.CostMean), keepFloat(release.HasP99, w.P99MS)
	out.ControlJudged, out.ControlSolved = keep(release.HasControl, w.ControlJudged), keep(release.HasControl, w.ControlSolved)
	out.WindowStreaming = streamingOf(w)
	return out
}

// Release returns the window that was written down.
func (w *Window) Release(arm release.Arm) release.Window {
	out := release.Window{T: w.T, Span: time.Duration(math.Round(w.SpanS * float64(time.Second))), Arm: arm, Total: w.Total}
	take := func(f release.Figures, into *int64, n *int64) {
		if n != nil {
			*into, out.Known = *n, out.Known|f
		}
	}
	takeFloat := func(f release.Figures, into *float64, x *float64) {
		if x != nil {
			*into, out.Known = *x, out.Known|f
		}
	}
	take(release.HasSolved, &out.Judged, w.Judged)
	take(release.HasSolved, &out.Solved, w.Solved)
	take(release.HasViolations, &out.Violations, w.Violations)
	take(release.HasTransfers, &out.Transfers, w.Transfers)
	take(release.HasSlow, &out.Slow, w.Slow)
	take(release.HasUsers, &out.Users, w.Users)
	takeFloat(release.HasCost, &out.Cost, w.Cost)
	takeFloat(release.HasCostMean, &out.CostMean, w.CostMean)
	takeFloat(release.HasP99, &out.P99MS, w.P99MS)
	take(release.HasControl, &out.ControlJudged, w.ControlJudged)
	take(release.HasControl, &out.ControlSolved, w.ControlSolved)
	w.WindowStreaming.into(&out)
	return out
}

func windowsOf(windows []Window, arm release.Arm) []release.Window {
	var out []release.Window
	for i := range windows {
		out = append(out, windows[i].Release(arm))
	}
	return out
}
