package breaker

import (
	"math/bits"
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

	// The count form of p99, over FastSpan, in place of P99MS and P99MinSamples:
	// requests slower than p99_baseline_ms are counted as transfers are.
	P99ByCount bool          // p99_judge: count
	SlowRate   release.Ratio // p99_slow_rate x p99_slow_ratio_limit
	MinSlow    int64         // min_slow_count

	// Streaming and infrastructure, from release.FirstStreaming on: metrics.streaming.
	Streaming [release.Streaming]StreamLimit

	// Slow layer, over (now - LabelLag - SlowSpan, now - LabelLag].
	SlowSpan      time.Duration // slow_window_min
	SlowSpanMax   time.Duration // slow_window_max_min: how far back a span reaches that holds fewer than MinSamples; up to SlowSpan it is fixed
	LabelLag      time.Duration // label_lag_min
	SolveBaseline release.Ratio // solve_baseline; Noise, AgainstStable and CusumJudge need it
	SolveFloor    release.Ratio // solve_baseline - solve_rate_drop_pp: at this rate or below it trips
	MinSamples    int64         // min_samples_slow
	Noise         Noise         // noise: the fitted form beside the fixed drop
	AgainstStable bool          // against: stable: the same minutes of stable are the reference where they are there
	Judge         Judge         // judge
	Cusum         Cusum         // cusum

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
	reach := max(l.FastSpan, l.LabelLag+max(l.SlowSpan, l.SlowSpanMax))
	for i := range l.Streaming {
		reach = max(reach, l.Streaming[i].Span)
	}
	return reach
}

// ViolationsAllowed returns the count of violations that trips over so many
// requests: max(violation_limit, floor(requests x rate x multiplier)).
func (l *Limits) ViolationsAllowed(requests int64) int64 {
	return max(l.ViolationLimit, l.ViolationRate.FloorOf(requests))
}

// below reports whether the share count/of is below r: r.Compare(count, of) < 0,
// for the ways that every window goes, without a branch.
func below(count, of int64, r release.Ratio) bool { return lessProduct(count, r.Den, of, r.Num) }

// above reports whether the share count/of is above r: r.Compare(count, of) > 0.
func above(count, of int64, r release.Ratio) bool { return lessProduct(of, r.Num, count, r.Den) }

// lessProduct reports whether a*b is less than c*d. None is negative.
func lessProduct(a, b, c, d int64) bool {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	otherHi, otherLo := bits.Mul64(uint64(c), uint64(d))
	_, borrow := bits.Sub64(lo, otherLo, 0)
	_, borrow = bits.Sub64(hi, otherHi, borrow)
	return borrow != 0
}

// countLimit returns from which count and which share of requests on a signal
// trips that is counted over the fast span.
func (l *Limits) countLimit(s release.Signal) (least int64, share release.Ratio) {
	if s == release.P99 {
		return l.MinSlow, l.SlowRate
	}
	return l.MinTransfers, l.TransferRate
}

// CountTrips reports whether so many of the requests are past the limit of
// transfers, or of p99 in its count form.
func (l *Limits) CountTrips(s release.Signal, count, of int64) bool {
	least, share := l.countLimit(s)
	return of > 0 && count >= least && share.Compare(count, of) >= 0
}

// CountFinding holds the same counts against their limit in figures.
func (l *Limits) CountFinding(s release.Signal, count, of int64, span time.Duration) release.Finding {
	_, share := l.countLimit(s)
	f := release.Finding{Signal: s, Limit: share.Float64(), Count: count, Of: of, Span: span}
	if of > 0 {
		f.Value = float64(count) / float64(of)
	}
	if s == release.P99 {
		f.Form = release.ByCount
	}
	return f
}

// Judge says how the slow layer looks at the solve rate.
type Judge uint8

// The judges of the slow layer.
const (
	WindowJudge Judge = iota // the rate over the slow span
	CusumJudge               // a cumulative sum over everything since the last reset
)

// Tail says how a fitted threshold turns sigmas into a chance.
type Tail uint8

// The tails of the fitted form.
const (
	NormalTail Tail = iota // normal, corrected for the binomial's skew
	ExactTail              // beta-binomial: for rates so near 1 that few failures are expected
)

// Noise is the service's own noise as calibrate measured it. With a Z above 0
// a solve rate trips only if it lies below the floor and, over N judged
// requests, by T(N) = z(N) sigma(N) or more below the baseline, where
// sigma(N)^2 = p0 q0/N + Tau^2 (1 - 1/N) + SE^2.
type Noise struct {
	Z          float64 // multiplier, in sigmas; 0: the fixed drop alone
	Tau        float64 // standard deviation of the true rate from window to window, a fraction
	SE         float64 // standard error of solve_baseline, a fraction
	TauControl float64 // as Tau, of what an arm does not share with the other in the same minutes; 0 if both move together
	Tail       Tail
}

// Cusum is the cumulative sum of log likelihood ratios of a solve rate that
// has dropped by Drop against the baseline's (Page 1954). It trips above
// Limit.
type Cusum struct {
	Drop  release.Ratio // drop to detect, a fraction
	Limit float64       // h
}
