package cli

import (
	"math"
	"strconv"
	"time"

	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/metrics"
	"github.com/canaryctl/canaryctl/internal/release"
)

// viewOf is what `run` exports after a tick. Counts are the release's own, kept
// in its state: a restart does not set them back.
func viewOf(l *live, res *driver.Result, ticks metrics.Durations) metrics.View {
	r, o := res.Release, &res.Outcome
	v := metrics.View{
		Version: version(), Service: l.cfg.ServiceName(), Release: r.ID(), Attempt: r.Ladder.Attempt, Step: o.Step, Steps: o.Steps,
		Phase: r.Ladder.Breaker.Phase, Stage: r.Ladder.Stage, Locked: r.Ladder.Locked(), Paused: r.Ladder.Paused,
		Trips: map[release.Signal]int64{}, Decisions: map[release.Move]int64{}, Rollbacks: r.Counts.Rollbacks,
		SourceErrors: r.Counts.SourceErr, TargetErrors: r.Counts.TargetErr, NotifyFailures: r.Counts.Undelivered,
		LastDecision: r.LastAt, LastWindow: r.Newest, Ticks: ticks,
	}
	if r.Held.Known && res.TargetErr == nil {
		v.Weight = &r.Held.Weight
	}
	if o.LeftS != nil {
		v.HoldRemaining = new(time.Duration(*o.LeftS) * time.Second)
	}
	for i := range o.Verdicts {
		x := &o.Verdicts[i]
		s := metrics.Signal{Signal: x.Signal, Verdict: x.Verdict, Value: x.Value, Limit: x.Limit, Samples: x.Of}
		if x.Of == 0 {
			s.Value = math.NaN()
		}
		v.Signals = append(v.Signals, s)
	}
	count(r.Counts.Trips, v.Trips)
	count(r.Counts.Decisions, v.Decisions)
	return v
}

// count turns counts by name into counts by what the names stand for.
func count[K comparable, P interface {
	*K
	UnmarshalText([]byte) error
}](from map[string]int64, into map[K]int64) {
	for name, n := range from {
		var k K
		if P(&k).UnmarshalText([]byte(name)) == nil {
			into[k] = n
		}
	}
}

// percentOf prints a share as a percentage.
func percentOf(share float64) string {
	return strconv.FormatFloat(math.Round(share*1e8)/1e6, 'g', -1, 64)
}
