package calibrate

import (
	"github.com/canaryctl/canaryctl/internal/release"
)

// Trips returns how often each signal trips a healthy canary at each step in
// one seeded week: that of [Replay.Run], without all the rest.
func (r *Replay) Trips(seed uint64) [][release.Judged]int64 {
	p := &pass{r: r, seed: seed}
	p.draw()
	trips := make([][release.Judged]int64, len(r.plan.Steps))
	for i := range r.plan.Steps {
		p.thin(i)
		trips[i] = p.falseTrips(&r.plan.Steps[i].Limits)
	}
	return trips
}
