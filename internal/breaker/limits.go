package breaker

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Rule is how one signal takes part.
type Rule struct {
	Mode   release.Mode
	OnFail release.OnFail
}

// trips reports whether a hit on the signal opens the breaker.
func (r Rule) trips() bool {
	return r.OnFail == release.RollBack && (r.Mode == release.Enforce || r.Mode == release.Required)
}

// Limits is everything that the breaker holds windows against. The fields are
// the keys of canary.yaml's metrics, with products already formed exactly:
// limits are rationals, or the float64 nearest to an exact decimal product.
type Limits struct {
	Rules [release.Judged]Rule

	// Fast layer, over FastSpan.
	FastSpan       time.Duration // violation_window_min
	ViolationLimit int64         // violation_limit
	ViolationRate  release.Ratio // baseline_violation_rate x violation_ratio_multiplier
	MinTransfers   int64         // min_transfer_count
	TransferRate   release.Ratio // baseline_transfer_rate x transfer_rate_ratio_limit

	// Fast layer, over one window.
	CostRatio      float64 // cost_ratio_limit
	CostMinSamples int64   // cost_min_samples: windows with fewer requests are not judged
	P99MS          float64 // p99_baseline_ms x p99_ratio_limit
	P99MinSamples  int64   // p99_min_samples

	// Slow layer, over (now - LabelLag - SlowSpan, now - LabelLag].
	SlowSpan   time.Duration // slow_window_min
	LabelLag   time.Duration // label_lag_min
	SolveFloor release.Ratio // solve_baseline - solve_rate_drop_pp: at this rate or below it trips
	MinSamples int64         // min_samples_slow

	// Recovery.
	Cooldown         time.Duration // cooldown_min
	Trials           int64         // half_open_trials
	SuccessRate      release.Ratio // half_open_success_rate, of a probe and of the round
	ProbeMinRequests int64         // half_open_min_requests
	LockOnEscalate   bool          // lock_on_escalate
	MaxRecoveries    int64         // max_attempts: recoveries after which a trip locks; 0 = no end

	// Keep is how far back windows are kept; at least the longest span of any
	// step's limits. Build fills it for a lone Limits.
	Keep time.Duration
}

// Reach returns how far back these limits look.
func (l *Limits) Reach() time.Duration {
	return max(l.FastSpan, l.LabelLag+l.SlowSpan)
}

// ViolationsAllowed returns the count of violations that trips over so many
// requests: max(violation_limit, floor(requests x rate x multiplier)).
func (l *Limits) ViolationsAllowed(requests int64) int64 {
	return max(l.ViolationLimit, l.ViolationRate.FloorOf(requests))
}
