package calibrate

import (
	"github.com/canaryctl/canaryctl/internal/release"
)

// TripsOf returns what [Replay.Trips] would of the runs' seeds, which have
// counted it on their way.
func TripsOf(runs []*ReplayRun) [][][release.Judged]int64 {
	all := make([][][release.Judged]int64, len(runs))
	for i, run := range runs {
		all[i] = make([][release.Judged]int64, len(run.steps))
		for step := range run.steps {
			all[i][step] = run.steps[step].trips
		}
	}
	return all
}

// Trips returns how often each signal trips a healthy canary at each step in
// one seeded week: that of [Replay.Run], without all the rest.
func (r *Replay) Trips(seed uint64, in *Scratch) [][release.Judged]int64 {
	p := in.pass(r, seed)
	p.draw()
	trips := make([][release.Judged]int64, len(r.plan.Steps))
	for i := range r.plan.Steps {
		p.thin(i)
		trips[i] = p.falseTrips(&r.plan.Steps[i].Limits)
	}
	return trips
}
