package calibrate

import (
	"math"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// suppliedBy are the figures that let a signal be judged.
var suppliedBy = [release.Judged]release.Figures{
	release.Violations: release.HasViolations, release.Cost: release.HasCost | release.HasCostMean, release.P99: release.HasP99 | release.HasSlow,
	release.Transfers: release.HasTransfers, release.SolveRate: release.HasSolved,
}

// budget parts the false trips among the signals that the baseline supplies.
func (m *measurement) budget() {
	var known release.Figures
	for i := range m.kept {
		known |= m.kept[i].Known
	}
	f, sum := &m.o.FalseTrips, 0.0
	for s := range suppliedBy {
		if known&suppliedBy[s] != 0 {
			sum += f.Shares[s]
		}
	}
	b := &m.r.Meta.Budget
	b.Shares = map[string]float64{}
	for s := range suppliedBy {
		if known&suppliedBy[s] == 0 || sum <= 0 {
			continue
		}
		m.perTick[s] = f.Shares[s] / sum * f.perTick(m.o.Tick)
		b.Shares[release.Signal(s).String()] = round(f.Shares[s]/sum, 6)
	}
	b.PerWeek = sig(f.perTick(m.o.Tick)*ticksAWeek(m.o.Tick), 6)
	if f.PerRelease > 0 {
		b.PerRelease, b.ReleaseHours = &f.PerRelease, &f.ReleaseHours
	}
}

// perTick is the budget as a rate of false trips a live window.
func (f *FalseTrips) perTick(tick time.Duration) float64 {
	if f.PerRelease > 0 {
		return -math.Log1p(-f.PerRelease) / (f.ReleaseHours * float64(time.Hour) / float64(tick))
	}
	return f.PerWeek / ticksAWeek(tick)
}

func ticksAWeek(tick time.Duration) float64 { return float64(week) / float64(tick) }
