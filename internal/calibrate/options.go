package calibrate

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// What a baseline must have, and what it should have.
const (
	MinSpan     = 24 * time.Hour     // refused below, unless AllowShort
	MinWindows  = 20                 // whole windows; refused below, unless AllowShort
	GoodSpan    = 5 * 24 * time.Hour // a warning below
	GoodWindows = 100                // independent windows; a warning below
	DefaultSpan = 10 * time.Minute   // of a calibration window

	publishedLive = 25 * time.Minute // slow_window_min
)

// Options says how to measure. The zero value of a field is its default.
type Options struct {
	// TolerableDropPP is the drop of the solve rate, in percentage points, that
	// the business can live with: the threshold is never below it. Default 5.
	TolerableDropPP release.Ratio
	// AskedFor says that the tolerable drop was asked for, so that noise which
	// drowns it is a verdict and not a remark.
	AskedFor bool
	// DetectDropPP is the drop that must be found, above the tolerable one.
	// Default 10, or twice the tolerable drop where that is more.
	DetectDropPP release.Ratio
	// Span is the length of a calibration window; it divides a day. Default 10 minutes.
	Span time.Duration
	// SpanName is what the report calls that span, as the user wrote it. Default
	// its minutes: "10m".
	SpanName string
	// Plan is the ladder with the limits that the baseline's values go into.
	Plan *ladder.Plan
	// Top are the plan's limits without any step's own; nil if no step has any.
	Top *breaker.Limits
	// Live is the span over which the slow layer judges. Default 25 minutes.
	Live time.Duration
	// Tick is the length of the windows that come live. Default a minute.
	Tick time.Duration
	// FalseTrips is the budget.
	FalseTrips FalseTrips
	// K is the multiplier of the plain rule; 0 solves it from the budget.
	K float64
	// Judge is which judge of the solve rate to calibrate.
	Judge Judge
	// Power is the chance with which the drop must be found at a look. Default 0.8.
	Power float64
	// Exclude are spans of time that are left out of centre and noise.
	Exclude []Gap
	// AutoExclude leaves the flagged incidents out; more than a twentieth of the
	// windows is a refusal.
	AutoExclude bool
	// Strict refuses a baseline that looks contaminated or is not stationary.
	Strict bool
	// Zone labels hours and weekdays. Default UTC.
	Zone *time.Location
	// LabelLag: windows younger than this, against the newest, have unfinished
	// labels and are left out.
	LabelLag time.Duration
	// AllowShort turns the refusals for too little data into warnings.
	AllowShort bool
	// Records says that the windows were counted from single requests: a minute
	// without any may then be a quiet one. First and Last are the times of the
	// first and the last request; the zero times stand for the windows' ends.
	Records     bool
	First, Last time.Time
	// Requests are the single requests' figures by arm, where whoever read them
	// knows them; without them the windows' own must do.
	Requests map[release.Arm]Requests
	// CountSlow, if not nil, sets Slow in the windows that were handed over to
	// the requests slower than about ms, and returns the exact latency; NaN where
	// it cannot.
	CountSlow func(ms float64) float64
	// Seed and Version go into the report.
	Seed    uint64
	Version string
}

// Requests are figures of single requests, ascending.
type Requests struct {
	Latency []stats.Weighted // ms
	CostUSD []stats.Weighted
	Exact   bool // else latencies are known to 0.1 %
}

// FalseTrips is how many false trips are allowed: so many a week, or with at
// most a chance in a release of so many hours.
type FalseTrips struct {
	PerWeek      float64 // default 0.1
	PerRelease   float64 // 0: PerWeek counts
	ReleaseHours float64 // default 6
	// Shares is how the signals part the budget, by signal. Default
	// DefaultShares. Signals that the baseline does not supply leave theirs to
	// the others.
	Shares [release.Judged]float64
}

// DefaultShares is how the signals part the budget of false trips, in the
// order of the signals.
var DefaultShares = [release.Judged]float64{
	release.Violations: 0.20, release.Cost: 0.10, release.P99: 0.10, release.Transfers: 0.10, release.SolveRate: 0.50,
}

// Judge names a judge of the solve rate that can be calibrated.
type Judge string

// The judges.
const (
	WindowJudge Judge = "window" // normal tails, corrected for skew
	ExactJudge  Judge = "exact"  // beta-binomial tails everywhere
	CountJudge  Judge = "count"  // the last min_samples requests, however long they took
	CusumJudge  Judge = "cusum"
)

// Judges are the judges by name, the default first.
var Judges = []Judge{WindowJudge, ExactJudge, CountJudge, CusumJudge}

func (o Options) withDefaults() Options {
	if o.TolerableDropPP.IsZero() {
		o.TolerableDropPP = release.NewRatio(5, 1)
	}
	if o.DetectDropPP.IsZero() {
		o.DetectDropPP = release.NewRatio(10, 1)
		if twice, err := o.TolerableDropPP.Mul(release.NewRatio(2, 1)); err == nil && twice.Compare(10, 1) < 0 {
			o.DetectDropPP = twice
		}
		if o.DetectDropPP.Compare(100, 1) < 0 {
			o.DetectDropPP = release.NewRatio(100, 1)
		}
	}
	if o.Span == 0 {
		o.Span = DefaultSpan
	}
	if o.SpanName == "" {
		o.SpanName = spanName(o.Span)
	}
	if o.Live == 0 {
		o.Live = publishedLive
	}
	if o.Tick == 0 {
		o.Tick = time.Minute
	}
	if o.Judge == "" {
		o.Judge = WindowJudge
	}
	if o.Power == 0 {
		o.Power = 0.8
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	o.FalseTrips = o.FalseTrips.withDefaults()
	return o
}

func (f FalseTrips) withDefaults() FalseTrips {
	if f.PerWeek == 0 {
		f.PerWeek = 0.1
	}
	if f.ReleaseHours == 0 {
		f.ReleaseHours = 6
	}
	if f.Shares == [release.Judged]float64{} {
		f.Shares = DefaultShares
	}
	return f
}
