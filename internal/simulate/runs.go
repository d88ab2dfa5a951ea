package simulate

import (
	"math"
	"slices"
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// Result is what one seeded run of a batch came to.
type Result struct {
	Length     time.Duration
	Trips      int            // breaker opened or gate failed
	FalseTrips int            // see [Outcome.FalseTrips]
	Healthy    time.Duration  // in which they could come
	Delay      *time.Duration // from the fault to the end of the window that tripped; nil: not found, or no fault
	Exposure   int64          // canary requests from the fault to the read-back of 0, else of the rolled back attempts
	Completed  bool
	Locked     bool
}

// ResultOf reads a run's result off its outcome.
func ResultOf(out *Outcome) Result {
	r := Result{
		Length: time.Duration(out.Ticks) * out.Span, Trips: len(out.Rollbacks), Delay: out.Delay,
		Exposure: out.Exposure.Requests, Completed: out.State.Stage == ladder.Completed, Locked: out.State.Locked(),
	}
	r.FalseTrips, r.Healthy = out.FalseTrips()
	if out.SinceBad != nil {
		r.Exposure = out.SinceBad.Requests
	}
	return r
}

// FalseTrips returns how often a canary that was not bad yet was rolled back,
// and for how long it had a weight while it was not: until the declared fault,
// or throughout where none is declared.
func (o *Outcome) FalseTrips() (count int, healthy time.Duration) {
	until := time.Duration(math.MaxInt64)
	if o.BadFrom != nil {
		until = time.Duration(*o.BadFrom) * time.Minute
	}
	for i := range o.Rollbacks {
		if o.BadFrom == nil || o.Rollbacks[i].Minute < *o.BadFrom {
			count++
		}
	}
	for _, s := range o.Steps {
		if !s.Weight.IsZero() && s.From < until {
			healthy += min(s.Length, until-s.From)
		}
	}
	return count, healthy
}

// Spread is a distribution by its nearest-rank quantiles: the value at the
// ceil(q n)-th place in order of size.
type Spread struct {
	N                  int
	Min, P50, P90, Max float64
}

var (
	p50 = release.NewRatio(1, 2)
	p90 = release.NewRatio(9, 10)
)

// SpreadOf returns the spread of values, which it sorts in place. Without
// values N is 0 and the figures mean nothing.
func SpreadOf(values []float64) Spread {
	n := len(values)
	if n == 0 {
		return Spread{}
	}
	slices.Sort(values)
	return Spread{N: n, Min: values[0], P50: stats.NearestRank(values, p50), P90: stats.NearestRank(values, p90), Max: values[n-1]}
}

// Batch sums up the runs of one scenario.
type Batch struct {
	Runs              int
	Weeks             float64 // simulated in all
	HealthyWeeks      float64 // of them, those in which a trip is a false one
	FalseTrips        int
	FalseTripsPerWeek float64 // healthy week; 0 where there was none
	// FalseTripsBelow is the upper 95 % bound where there was no false trip: 3 /
	// HealthyWeeks (the rule of three; Hanley and Lippman-Hand 1983). 0
	// otherwise.
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
		b.Weeks += weeks(r.Length)
		b.HealthyWeeks += weeks(r.Healthy)
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
	if b.HealthyWeeks > 0 {
		b.FalseTripsPerWeek = float64(b.FalseTrips) / b.HealthyWeeks
		if b.FalseTrips == 0 {
			b.FalseTripsBelow = 3 / b.HealthyWeeks
		}
	}
	b.DelayMin, b.Exposure = SpreadOf(delays), SpreadOf(exposures)
	return b
}

func weeks(d time.Duration) float64 { return d.Hours() / (7 * 24) }
