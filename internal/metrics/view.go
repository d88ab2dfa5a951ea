// Package metrics is what `canaryctl run` and `canaryctl serve` export in the
// text format of Prometheus, and what `run` answers at /healthz.
//
//	e := metrics.NewExporter(3*time.Minute, time.Now)
//	mux.Handle("GET /metrics", e.Handler())
//	mux.Handle("GET /healthz", e.Health())
//	e.Set(metrics.View{Service: "order-service", ...}) // after each tick
//
// What is not known has no series: it is never 0. It measures nothing itself;
// the caller hands over what it has counted.
package metrics

import (
	"io"
	"math"
	"time"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// View is what `run` knows at one moment. The caller does not change what it
// points at after it was handed over.
type View struct {
	Version string // of canaryctl
	Service string
	Release string // id; "": none has started
	Attempt int    // from 1; 0: none
	Step    int    // from 1; 0: none
	Steps   int

	Weight *release.Weight // as last read back; nil: not known
	Phase  release.Phase
	Stage  ladder.Stage
	Locked bool
	Paused bool

	Signals []Signal

	// Counts of the service, kept over restarts and releases.
	Trips          map[release.Signal]int64
	Decisions      map[release.Move]int64
	Rollbacks      int64
	SourceErrors   int64
	TargetErrors   int64
	NotifyFailures int64

	LastDecision  time.Time      // zero: none yet
	LastWindow    time.Time      // end of the newest window of the source; zero: none yet
	HoldRemaining *time.Duration // until the decision could change at the present rate; nil: nobody can say
	Ticks         Durations
}

// Signal is how a signal stands at the present step's gate.
type Signal struct {
	Signal  release.Signal
	Verdict release.Verdict
	Value   float64 // in the signal's own unit; NaN: no data
	Limit   float64 // NaN: there is none to compare with
	Samples int64   // requests that it was counted over; not known with verdict error
}

var (
	phases   = []string{release.Closed.String(), release.Open.String(), release.HalfOpen.String()}
	verdicts = []string{
		release.Pass.String(), release.Fail.String(), release.Insufficient.String(), release.NoData.String(), release.Error.String(),
	}
	moves = []release.Move{
		release.Start, release.Advance, release.Hold, release.RollBackMove, release.Probe, release.Complete, release.AwaitApproval, release.Lock, release.Adjust,
	}
	tripping = []release.Signal{
		release.Violations, release.Cost, release.P99, release.Transfers,
		release.TTFTP99, release.TTFTSlow, release.ITL, release.StreamAborts, release.ServerErrors, release.Errors, release.KVCache,
		release.SolveRate, release.Probes,
	}
	// stages stand in the order of ladder's constants.
	stages = []string{
		ladder.NotStarted: "not_started", ladder.Climbing: "climbing", ladder.Completed: "completed",
		ladder.Failed: "failed", ladder.RolledBack: "rolled_back",
	}
)

// Write writes the view in the text format of Prometheus, the same bytes for
// the same view and time.
func Write(w io.Writer, v View, now time.Time) error {
	return WriteAll(w, []View{v}, now)
}

// add adds a view's series.
func (v *View) add(f *Families, now time.Time) {
	v.release(f)
	v.signals(f)
	v.counts(f)
	v.times(f, now)
}

// release adds where the release stands.
func (v *View) release(f *Families) {
	if v.Release != "" {
		f.Gauge("canaryctl_release_info", "The release under way; always 1.", 1, "service", v.Service, "release", v.Release)
	}
	if v.Attempt > 0 {
		f.Gauge("canaryctl_attempt", "Attempt of the release, from 1.", float64(v.Attempt), "service", v.Service)
	}
	if v.Step > 0 {
		f.Gauge("canaryctl_step", "Step of the ladder, from 1.", float64(v.Step), "service", v.Service)
	}
	if v.Steps > 0 {
		f.Gauge("canaryctl_steps", "Steps that the ladder has.", float64(v.Steps), "service", v.Service)
	}
	if v.Weight != nil {
		f.Gauge("canaryctl_weight_ratio", "The canary's share of traffic as last read back from the target, 0 to 1.", v.Weight.Share(), "service", v.Service)
	}
	f.states("canaryctl_breaker", "State of the breaker: 1 for the present one.", "state", phases, v.Phase.String(), "service", v.Service)
	if int(v.Stage) < len(stages) {
		f.states("canaryctl_stage", "Stage of the release as a whole: 1 for the present one.", "state", stages, stages[v.Stage], "service", v.Service)
	}
	f.Flag("canaryctl_locked", "1 while only a person can let the release go on.", v.Locked, "service", v.Service)
	f.Flag("canaryctl_paused", "1 while a person has paused the release.", v.Paused, "service", v.Service)
}

// signals adds what the evidence says.
func (v *View) signals(f *Families) {
	for _, s := range v.Signals {
		at := []string{"service", v.Service, "signal", s.Signal.String()}
		f.states("canaryctl_signal_verdict", "Verdict on a signal at the present step: 1 for the present one.", "verdict", verdicts, s.Verdict.String(), at...)
		f.Gauge("canaryctl_signal_value", "Figure of a signal at the present step, in the signal's own unit.", s.Value, at...)
		f.Gauge("canaryctl_signal_limit", "Limit that the figure is held against, in the signal's own unit.", s.Limit, at...)
		if s.Verdict != release.Error {
			f.Gauge("canaryctl_signal_samples", "Requests, judged requests, streams or windows that the figure was counted over.", float64(s.Samples), at...)
		}
	}
}

// counts adds what has happened. A count of 0 is known to be 0 and shown, so
// that a rate over its first event is not lost.
func (v *View) counts(f *Families) {
	for _, s := range tripping {
		f.Counter("canaryctl_trips_total", "Times that the breaker opened, by the signal that opened it.", v.Trips[s], "service", v.Service, "signal", s.String())
	}
	f.Counter("canaryctl_rollbacks_total", "Times that weight 0 was read back after a rollback.", v.Rollbacks, "service", v.Service)
	for _, m := range moves {
		f.Counter("canaryctl_decisions_total", "Decisions, by what was decided.", v.Decisions[m], "service", v.Service, "decision", m.String())
	}
	f.Counter("canaryctl_source_errors_total", "Readings of the source that failed.", v.SourceErrors, "service", v.Service)
	f.Counter("canaryctl_target_errors_total", "Readings and writes of the target that failed.", v.TargetErrors, "service", v.Service)
	f.Counter("canaryctl_notification_failures_total", "Messages and hooks that did not get through.", v.NotifyFailures, "service", v.Service)
}

// times adds when it happened and how long it took.
func (v *View) times(f *Families, now time.Time) {
	f.Time("canaryctl_last_decision_timestamp_seconds", "When the last decision was made, in seconds since 1970.", v.LastDecision, "service", v.Service)
	f.Gauge("canaryctl_decision_age_seconds", "How long ago the last decision was made.", age(v.LastDecision, now), "service", v.Service)
	f.Time("canaryctl_last_window_timestamp_seconds", "End of the newest window of the source, in seconds since 1970.", v.LastWindow, "service", v.Service)
	if v.HoldRemaining != nil {
		f.Gauge("canaryctl_hold_remaining_seconds", "How long until the decision could change at the present rate.", v.HoldRemaining.Seconds(), "service", v.Service)
	}
	f.histogram("canaryctl_tick_duration_seconds", "How long a tick took: observe, decide, act.", &v.Ticks, "service", v.Service)
}

// age is the seconds from t to now, NaN for a zero t. A clock that was set
// back makes no negative age.
func age(t, now time.Time) float64 {
	if t.IsZero() {
		return math.NaN()
	}
	return max(now.Sub(t), 0).Seconds()
}
