package simulate_test

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// published returns the limits of DESIGN section 3.
func published() breaker.Limits {
	return breaker.Limits{
		FastSpan: 5 * time.Minute, ViolationLimit: 3, ViolationRate: release.MustRatio("0.005"),
		MinTransfers: 3, TransferRate: release.MustRatio("0.06"), CostRatio: 2, P99MS: 900,
		SlowSpan: 25 * time.Minute, SolveFloor: release.MustRatio("0.8"), MinSamples: 200,
		Cooldown: 6 * time.Minute, Trials: 5, SuccessRate: release.MustRatio("0.8"), LockOnEscalate: true, MaxRecoveries: 3,
		Keep: 25 * time.Minute,
	}
}

// plan returns the published ladder under these limits.
func plan(l breaker.Limits) *ladder.Plan {
	p := &ladder.Plan{Service: "order-service", Digest: "d", Candidate: "c", ApprovalTimeout: 24 * time.Hour}
	for _, s := range []struct{ pct, hold int }{{1, 120}, {5, 240}, {10, 240}, {30, 720}, {100, 1440}} {
		p.Steps = append(p.Steps, ladder.Step{
			Weight:  release.Weight{Slots: int64(s.pct), Ring: 100},
			MinHold: time.Duration(s.hold) * time.Minute, Gates: ladder.TimeGate | ladder.MetricGate, Limits: l,
		})
	}
	return p
}

var t0 = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// minute returns a window of the canary with every count known.
func minute(m int, total, solved, violations, transfers int64) release.Window {
	return release.Window{
		T: t0.Add(time.Duration(m) * time.Minute), Span: time.Minute, Arm: release.Canary,
		Total: total, Judged: total, Solved: solved, Violations: violations, Transfers: transfers,
		Known: release.HasSolved | release.HasViolations | release.HasTransfers,
	}
}
