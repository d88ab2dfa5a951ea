package simulate

import (
	"math"
	"slices"
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Result is what one seeded run of a batch came to.
type Result struct {
	Seed       uint64
	Length     time.Duration
	Trips      int            // breaker opened or gate failed
	FalseTrips int            // of them, before the declared fault; all of them where none is declared
	Delay      *time.Duration // from the fault to the end of the window that tripped; nil: not found, or no fault
	Exposure   int64          // canary requests from the fault to the read-back of 0, else of the rolled back attempts
	Completed  bool
	Locked     bool
	State      release.Phase
}

// ResultOf reads a run's result off its outcome. fault says whether the
// scenario declares one; only trips before it are false then.
func ResultOf(out *Outcome, seed uint64, fault bool) Result {
	r := Result{
		Seed: seed, Length: time.Duration(out.Ticks) * out.Span, Trips: len(out.Rollbacks), Delay: out.Delay,
		Exposure: out.Exposure.Requests, Completed: out.State.Stage == ladder.Completed,
		Locked: out.State.Locked(), State: out.State.Breaker.Phase,
	}
	for i := range out.Rollbacks {
		if !fault || out.Rollbacks[i].SinceBad == nil {
			r.FalseTrips++
		}
	}
	if out.SinceBad != nil {
		r.Exposure = out.SinceBad.Requests
	}
	return r
}

// Spread is a distribution by its nearest-rank quantiles: the value at the
// ceil(q n)-th place in order of size.
type Spread struct {
	N                  int
	Min, P50, P90, Max float64
}

// SpreadOf returns the spread of values, which it sorts in place. Without
// values N is 0 and the figures mean nothing.
func SpreadOf(values []float64) Spread {
	n := len(values)
	if n == 0 {
		return Spread{}
	}
	slices.Sort(values)
	rank := func(q float64) float64 { return values[int(math.Ceil(q*float64(n)))-1] }
	return Spread{N: n, Min: values[0], P50: rank(0.5), P90: rank(0.9), Max: values[n-1]}
}

// Batch sums up the runs of one scenario.
type Batch struct {
	Runs              int
	Weeks             float64 // simulated in all
	FalseTrips        int
	FalseTripsPerWeek float64
	// FalseTripsBelow is the upper 95 % bound where there was no false trip:
	// 3 / Weeks (the rule of three; Hanley and Lippman-Hand 1983). 0 otherwise.
	FalseTripsBelow float64
	RunsThatTripped int
	Detected        int    // runs that found the declared fault
	DelayMin        Spread // minutes, over the detected
	Exposure        Spread // requests, over the runs that tripped
	Completed       int
	Locked          int
}

// BatchOf sums up results, in whatever order.
func BatchOf(results []Result) Batch {
	b := Batch{Runs: len(results)}
	var delays, exposures []float64
	for i := range results {
		r := &results[i]
		b.Weeks += r.Length.Hours() / (7 * 24)
		b.FalseTrips += r.FalseTrips
		if r.Trips > 0 {
			b.RunsThatTripped++
			exposures = append(exposures, float64(r.Exposure))
		}
		if r.Delay != nil {
			b.Detected++
			delays = append(delays, r.Delay.Minutes())
		}
		if r.Completed {
			b.Completed++
		}
		if r.Locked {
			b.Locked++
		}
	}
	if b.Weeks > 0 {
		b.FalseTripsPerWeek = float64(b.FalseTrips) / b.Weeks
		if b.FalseTrips == 0 {
			b.FalseTripsBelow = 3 / b.Weeks
		}
	}
	b.DelayMin, b.Exposure = SpreadOf(delays), SpreadOf(exposures)
	return b
}
