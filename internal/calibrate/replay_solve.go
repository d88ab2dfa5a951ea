package calibrate

import (
	"github.com/canaryctl/canaryctl/internal/release"
)

// SolveTrips returns how often the solve rate alone trips a healthy canary at
// each step in one seeded week: that of [Replay.Run], without all the rest.
func (r *Replay) SolveTrips(seed uint64) []int64 {
	p := &pass{r: r, seed: seed}
	p.draw()
	trips := make([]int64, len(r.plan.Steps))
	for i := range r.plan.Steps {
		p.thin(i)
		only := solveOnly(&r.plan.Steps[i].Limits)
		trips[i] = p.falseTrips(&only)[release.SolveRate]
	}
	return trips
}
