package calibrate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// TestTheBaselineOfTTFTIsMeasured, and only where the windows know it: the
// stream-weighted median of windows with many streams.
func TestTheBaselineOfTTFTIsMeasured(t *testing.T) {
	ttft := func(s Setting) bool { return strings.Join(s.Key, ".") == "streaming.ttft_p99.baseline_ms" }
	r := measure(t, feed(monday, time.Minute, 26*60, func(i int, w *release.Window) {
		solved(i, w)
		w.TTFTOf, w.TTFTP99MS = 400, 700+float64(i%3)
		w.Known |= release.HasTTFT
	}), plain(Options{}))
	at := slices.IndexFunc(r.Settings(), ttft)
	if r.TTFT == nil || at < 0 || r.Settings()[at].Value != "701" || !r.Settings()[at].InMetrics {
		t.Errorf("measured %+v, settings %+v", r.TTFT, r.Settings())
	}
	r = measure(t, feed(monday, time.Minute, 26*60, solved), plain(Options{}))
	if r.TTFT != nil || slices.ContainsFunc(r.Settings(), ttft) {
		t.Errorf("measured %+v of nothing", r.TTFT)
	}
}

// TestFiguresOfStreamingAreNoPartOfWhatWasMeasured, but for the one that is.
func TestFiguresOfStreamingAreNoPartOfWhatWasMeasured(t *testing.T) {
	sum := func(change func(w *release.Window)) string {
		w := release.Window{T: monday, Span: time.Minute, Arm: release.Stable, Total: 9, Known: release.HasViolations}
		change(&w)
		return digest([]release.Window{w})
	}
	bare := sum(func(*release.Window) {})
	if sum(func(w *release.Window) { w.StatusOf, w.Errors, w.Known = 9, 1, w.Known|release.HasErrors }) != bare {
		t.Error("a status is part of it")
	}
	if sum(func(w *release.Window) { w.TTFTOf, w.TTFTP99MS, w.Known = 9, 700, w.Known|release.HasTTFT }) == bare {
		t.Error("the time to first token is no part of it")
	}
}
