package calibrate

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// Report is what a baseline says. Rates and noise are fractions of 1, fields
// that end in _pp percentage points, in _min minutes. A nil figure does not
// exist in the input, or in the world.
type Report struct {
	Schema         int                   `json:"schema"`
	Scene          string                `json:"scene,omitempty"` // whose traffic it is of; "": all
	Meta           Meta                  `json:"meta"`
	Arm            string                `json:"arm"`
	Totals         Totals                `json:"totals"`
	Span           Span                  `json:"span"`
	Windows        Windows               `json:"windows"`
	Centre         Centre                `json:"centre"`
	Dispersion     map[string]Dispersion `json:"dispersion"` // by the window's span: "10m", "25m"
	Chart          []Point               `json:"chart"`      // the calibration windows, oldest first
	Incidents      []Incident            `json:"incidents"`
	Excluded       []Gap                 `json:"excluded"` // by --exclude and --auto-exclude
	Time           TimeStructure         `json:"time"`
	Traffic        Traffic               `json:"traffic"`
	Slow           Slow                  `json:"slow"`
	Violations     Rate                  `json:"violations"`
	Transfers      Rate                  `json:"transfers"`
	P99            P99                   `json:"p99"`
	TTFT           *TTFT                 `json:"ttft,omitempty"` // nil: the baseline does not know it
	Cost           Cost                  `json:"cost"`
	Steps          []Step                `json:"steps"`
	Replay         *Replayed             `json:"replay"`           // nil: not replayed
	RequestsPerMin *float64              `json:"requests_per_min"` // both arms, mean over the covered minutes
	Verdict        Verdict               `json:"verdict"`
	Warnings       []Warning             `json:"warnings"`

	limits []limitsOf       // of each step, as canary.yaml would have them
	clean  []release.Window // what the noise was measured on, incidents left out
	replay ReplayOptions    // as far as they are known
	cusum  bool             // the configuration judges by cusum so far
	base   *ladder.Plan     // what the values go into
	top    *breaker.Limits  // of no step in particular, there
	raise  func(over [][release.Judged]bool)
}

// Meta says what was measured, and how.
type Meta struct {
	Version     string  `json:"version"`
	InputSHA256 string  `json:"input_sha256"` // of the windows as they were read, not of the files' bytes
	Seed        uint64  `json:"seed"`
	Zone        string  `json:"tz"`       // labels of hours only
	Coverage    float64 `json:"coverage"` // share of the span's time of which something is known
	Rule        string  `json:"rule"`     // "budget", or "plain" for --k
	Judge       string  `json:"judge"`
	LiveMin     float64 `json:"live_min"` // the slow layer's span
	TickMin     float64 `json:"tick_min"` // of a live window
	Budget      Budget  `json:"budget"`
}

// Budget is how many false trips are allowed, and how the signals share them.
// The shares are of the signals that the baseline supplies and add up to 1.
type Budget struct {
	PerWeek      float64            `json:"false_trips_per_week"`
	PerRelease   *float64           `json:"chance_per_release"` // where it was asked for so
	ReleaseHours *float64           `json:"release_hours"`
	Shares       map[string]float64 `json:"shares"` // by signal
}

// Verdict says whether the plan can be judged at all.
type Verdict struct {
	OK      bool     `json:"ok"`
	Reasons []string `json:"reasons"` // codes of the warnings that make it false
}

// Point is one calibration window on the control chart.
type Point struct {
	T       time.Time `json:"t"`
	Judged  int64     `json:"judged"`
	Solved  int64     `json:"solved"`
	Lower   float64   `json:"lower"` // three-sigma limits at this window's judged requests, noise included
	Upper   float64   `json:"upper"`
	Flagged bool      `json:"flagged"` // part of an incident
}

// Incident is a run of calibration windows far from the rest.
type Incident struct {
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Windows  int       `json:"windows"`
	Judged   int64     `json:"judged"`
	Solved   int64     `json:"solved"`
	WorstZ   float64   `json:"worst_z"` // in sigmas of chance and noise
	Above    bool      `json:"above"`   // better than the rest: a fault of the log, more often than luck
	Excluded bool      `json:"excluded"`
}

// TimeStructure is what the solve rate does over the hours, days and weeks.
type TimeStructure struct {
	Hours    []Hour    `json:"hours"`    // 24, by the hour of Meta.Zone
	Weekdays []Day     `json:"weekdays"` // those seen, Monday first
	Swing    *float64  `json:"swing"`    // highest hour's rate less the lowest's
	SwingP   *float64  `json:"swing_p"`  // chance of hours as different as these, from the window noise alone
	Halves   *Contrast `json:"halves"`   // second half against first
	Weeks    []Week    `json:"weeks"`    // whole weeks from the first day on
}

// Hour is one hour of the day.
type Hour struct {
	Hour           int      `json:"hour"`
	Judged         int64    `json:"judged"`
	Rate           *float64 `json:"rate"`
	SE             *float64 `json:"se"` // of chance and noise
	RequestsPerMin *float64 `json:"requests_per_min"`
}

// Day is one day of the week.
type Day struct {
	Day            string   `json:"day"` // "mon"
	Judged         int64    `json:"judged"`
	Rate           *float64 `json:"rate"`
	RequestsPerMin *float64 `json:"requests_per_min"`
}

// Week is seven days of the baseline.
type Week struct {
	From     time.Time `json:"from"`
	Requests int64     `json:"requests"`
	Judged   int64     `json:"judged"`
	Rate     *float64  `json:"rate"`
	Ratio    *float64  `json:"ratio"` // of its requests to those of the week before
}

// Contrast compares two parts of the baseline.
type Contrast struct {
	First  float64 `json:"first"`
	Second float64 `json:"second"`
	Z      float64 `json:"z"` // difference over its standard error, noise included
}

// Traffic is how many requests come, both arms together.
type Traffic struct {
	P10          *float64 `json:"p10_per_min"` // tenth percentile over the live windows
	P50          *float64 `json:"p50_per_min"`
	P99          *float64 `json:"p99_per_min"`
	JudgedP10    *float64 `json:"judged_p10_per_min"` // of the arm's judged requests, scaled to the whole traffic
	PeakToTrough *float64 `json:"peak_to_trough"`     // by hour of the day
	PeakHour     *int     `json:"peak_hour"`
	TroughHour   *int     `json:"trough_hour"`
}

// Totals counts everything that was read of the arm, windows that are left out
// of sigma included.
type Totals struct {
	Total      int64  `json:"total"`
	Judged     int64  `json:"judged"`
	Solved     int64  `json:"solved"`
	Violations *int64 `json:"violations"`
	Transfers  *int64 `json:"transfers"`
}

// Span is the time from the first request or window to the last.
type Span struct {
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	Hours      float64   `json:"hours"`
	CoveredMin float64   `json:"covered_min"` // minutes in which requests would have been seen, and their outcomes
	WatchedMin float64   `json:"watched_min"` // minutes of which the requests are known
}

// Windows says which calibration windows sigma rests on.
type Windows struct {
	Span    string    `json:"span"`
	Whole   int       `json:"whole"`   // fully covered and with judged requests
	Empty   int       `json:"empty"`   // fully covered, nothing judged: no rate
	Partial []Partial `json:"partial"` // not fully covered: left out of sigma, kept in the totals
	Gaps    []Gap     `json:"gaps"`
}

// Partial is a window of which a part was not covered.
type Partial struct {
	T          time.Time `json:"t"`
	CoveredMin float64   `json:"covered_min"`
	Total      int64     `json:"total"`
}

// Gap is a span of time of which nothing is known.
type Gap struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Minutes float64   `json:"minutes"`
}

// Centre is the middle of the whole windows' solve rates.
type Centre struct {
	Mean   *float64 `json:"mean"`      // of the rates, every window counting the same
	P0     *float64 `json:"p0"`        // pooled: solved over judged
	P0SE   *float64 `json:"p0_se"`     // its standard error, noise included
	Median *float64 `json:"p0_median"` // of the rates
}

// Dispersion is how much the whole windows' solve rates vary.
type Dispersion struct {
	K         int      `json:"k"`
	KEff      *float64 `json:"k_eff"` // as many independent windows would tell as much
	Mean      *float64 `json:"mean"`
	SD        *float64 `json:"sd"`         // sample standard deviation of the rates
	Q         *float64 `json:"q"`          // against the binomial; chance alone: about k-1
	DF        int      `json:"df"`         // k-1
	P         *float64 `json:"p"`          // chance of so large a Q without noise
	Phi       *float64 `json:"phi"`        // q/(k-1); 1: chance alone
	ICC       *float64 `json:"icc"`        // intra-window correlation
	TauDL     *float64 `json:"tau_dl"`     // sd of the true rate between windows, DerSimonian and Laird
	TauRobust *float64 `json:"tau_robust"` // the same, by the median
	TauUsed   *float64 `json:"tau_used"`   // the one that thresholds rest on
	SigmaZ    *float64 `json:"sigma_z"`    // Laney, adjacent windows
	SDZ       *float64 `json:"sd_z"`       // over all windows
	R1        *float64 `json:"r1"`         // lag-1 autocorrelation
	Drift     *float64 `json:"drift_ratio"`
}

// Slow is the slow layer's threshold.
type Slow struct {
	SolveBaseline   float64  `json:"solve_baseline"`
	TolerableDropPP float64  `json:"tolerable_drop_pp"`
	DetectDropPP    float64  `json:"detect_drop_pp"`
	Z               *float64 `json:"k_sigma"`     // multiplier, before the correction for skew
	Raised          float64  `json:"k_raised"`    // of it, because the replay had too many trips
	Tau             *float64 `json:"tau"`         // at the live window
	TauSpan         string   `json:"tau_span"`    // the windows it was measured on
	TauMethod       string   `json:"tau_method"`  // robust, dl, merged
	TauFactor       *float64 `json:"tau_factor"`  // of it, for a baseline with few windows
	TauMax          *float64 `json:"tau_max"`     // the most noise under which detect_drop could be caught
	SE              *float64 `json:"se"`          // of solve_baseline
	TauControl      *float64 `json:"tau_control"` // between the arms in the same minutes; nil: one arm only
	Tail            string   `json:"tail"`        // normal or exact
	SigmaPP         *float64 `json:"sigma_pp"`    // of the calibration windows, the whole traffic
	ChancePP        *float64 `json:"chance_pp"`   // the binomial's part of it, at the median window's judged requests
	Plain           Plain    `json:"doc_rule"`
	// ThresholdPP is the drop that trips whatever the traffic: the plain
	// threshold under --k, else the tolerable drop.
	ThresholdPP float64  `json:"threshold_pp"`
	MinSamples  *int64   `json:"min_samples"` // nil if no number will do
	SMinPct     *float64 `json:"s_min_pct"`   // smallest share whose fixed window holds min_samples
	Alpha       float64  `json:"alpha"`       // chance of one look, one-sided
}

// Plain is the plain rule: max(tolerable drop, k sigma of the calibration
// windows), and what it does.
type Plain struct {
	K            float64  `json:"k"`
	SigmaPP      *float64 `json:"sigma10_pp"`
	ThreeSigmaPP *float64 `json:"k_sigma_pp"`
	ThresholdPP  *float64 `json:"threshold_pp"`
	MinSamples   *int64   `json:"min_samples"`
	// OneWindow is how many calibration windows of the baseline itself lie
	// below the one-window binomial limit p0 - k sqrt(p0 q0/n).
	OneWindow int `json:"one_window_trips"`
	Of        int `json:"one_window_of"`
}

// Step is what the ladder's step can see.
type Step struct {
	Pct         float64             `json:"pct"`
	RateP10     *float64            `json:"rate_p10"` // canary requests a minute
	RateP50     *float64            `json:"rate_p50"`
	RateP99     *float64            `json:"rate_p99"`
	NWindow     *int64              `json:"n_window"` // judged requests in the live window at rate_p10
	NJudged     *int64              `json:"n_judged"` // over which the rest is told: those, or min_samples where the window reaches back for them
	Against     string              `json:"against"`  // baseline, or stable in the same windows; "" where nothing is judged
	Sigma       *float64            `json:"sigma"`    // of a rate over so many
	Gamma       *float64            `json:"gamma"`    // its skew
	ZCF         *float64            `json:"z_cf"`     // multiplier with skew
	ThresholdPP *float64            `json:"threshold_pp"`
	MDE80PP     *float64            `json:"mde80_pp"` // smallest drop caught with the power asked for, a look
	NNoise      *int64              `json:"n_noise_exact"`
	NPower      *int64              `json:"n_power"`
	CanJudge    bool                `json:"can_judge"` // the fixed window holds min_samples
	SpanMaxMin  *float64            `json:"slow_window_max_min"`
	WaitP95Min  *float64            `json:"minutes_to_min_samples_p95"`
	CusumLimit  *float64            `json:"cusum_limit"` // under --judge cusum
	HoldMin     map[string]*float64 `json:"hold_min"`    // by the drop in points: "5", "10"
	Violations  *Count              `json:"violations"`
	Transfers   *Count              `json:"transfers"`
	Slow        *Count              `json:"slow_requests"`
	CostSamples *int64              `json:"cost_min_samples"`
	CostJudged  bool                `json:"cost_judged"` // a live window holds so many
}

// Count is the limit of a counted signal at a step, at its busiest (rate_p99).
type Count struct {
	Lambda       float64  `json:"lambda"` // expected in violation_window_min
	Phi          float64  `json:"phi"`    // variance over mean
	Threshold    int64    `json:"threshold"`
	Ratio        float64  `json:"ratio_limit"` // over the baseline's rate: what gates and busier minutes are held against
	PFalse       float64  `json:"p_false"`     // a look
	PerWeek      float64  `json:"false_per_week"`
	DocThreshold *int64   `json:"doc_threshold"` // by the published rule
	DocPFalse    *float64 `json:"doc_p_false"`
}

// Rate is a share of requests.
type Rate struct {
	Rate     *float64 `json:"rate"`
	Count    *int64   `json:"count"`
	Requests int64    `json:"requests"` // of windows that carry the figure
	Upper95  *float64 `json:"upper95"`  // Garwood, one-sided
	Tau      *float64 `json:"tau"`      // sd of the true rate between spans of violation_window_min
	Phi      *float64 `json:"phi"`      // of the counts, whole traffic
}

// P99 is the baseline's 99th percentile latency.
type P99 struct {
	ValueMS *float64  `json:"value_ms"`
	CI      []float64 `json:"ci_ms"` // 95 %, by order statistics; nil without single latencies
	Method  string    `json:"method,omitempty"`
	Judge   string    `json:"judge,omitempty"` // count or window
	Slow    Rate      `json:"slow"`            // requests slower than SlowMS
	SlowMS  *float64  `json:"slow_ms"`
	// Exceed are counts of slow requests that are too many, by sample size.
	Exceed []Exceed `json:"exceed_threshold"`
}

// TTFT is the baseline's 99th percentile of the time to first token.
type TTFT struct {
	ValueMS float64 `json:"value_ms"`
	Method  string  `json:"method"`
}

// Exceed is the count of slow requests among N that is too many.
type Exceed struct {
	N     int64 `json:"n"`
	Count int64 `json:"count"`
}

// Cost is the baseline's cost of a request.
type Cost struct {
	MeanUSD   *float64 `json:"mean_usd"`
	Requests  int64    `json:"requests"`
	CV        *float64 `json:"cv"`                // of single requests
	CVFrom    string   `json:"cv_from,omitempty"` // requests or windows
	Top1Share *float64 `json:"top1_share"`        // of the sum, by the dearest 1 %
	NRequired *int64   `json:"n_required"`        // requests at which cost_ratio_limit is beyond the noise
}

// Replayed is what the breaker did over the baseline, thinned to each step and
// resampled.
type Replayed struct {
	Weeks    int            `json:"weeks"`
	BlockMin float64        `json:"block_min"`
	Seed     uint64         `json:"seed"`
	Steps    []ReplayedStep `json:"steps"`
	// Release is the whole ladder, started at so many minutes of the baseline.
	Release ReplayedRelease `json:"release"`
	Grid    *Grid           `json:"grid"` // threshold against delay, at one step
	// JointPerWeek is the most false trips a week of any step, all layers.
	JointPerWeek Estimate `json:"joint_false_per_week"`
	DocPerWeek   Estimate `json:"doc_false_per_week"` // of the plain rule's threshold, at the same step
}

// Estimate is a rate with its 95 % interval (Garwood).
type Estimate struct {
	Count int64   `json:"count"`
	Rate  float64 `json:"rate"` // 0 with Count 0: see Upper
	Lower float64 `json:"lower"`
	Upper float64 `json:"upper"`
}

// ReplayedStep is the breaker at one share of the traffic.
type ReplayedStep struct {
	Pct      float64             `json:"pct"`
	PerWeek  Estimate            `json:"false_per_week"` // all layers
	BySignal map[string]Estimate `json:"by_signal"`
	Drops    []Detection         `json:"drops"`
}

// Detection is how fast a drop of the solve rate is found that begins in
// steady state.
type Detection struct {
	DropPP      float64  `json:"drop_pp"`
	Runs        int      `json:"runs"`
	Found       int      `json:"found"` // within a day
	DelayP50    *float64 `json:"delay_median_min"`
	DelayP90    *float64 `json:"delay_p90_min"`
	ExposureP50 *float64 `json:"exposure_median"` // requests
}

// ReplayedRelease is the false rollbacks of whole releases.
type ReplayedRelease struct {
	Runs       int      `json:"runs"`
	RolledBack Estimate `json:"false_rollback"` // rate: a release's chance
	Completed  int      `json:"completed"`
}

// Grid is the curve of thresholds against delay.
type Grid struct {
	Pct    float64     `json:"pct"`
	Points []GridPoint `json:"points"`
	// Enough says that there are weeks enough to see whether the budget is kept.
	Enough bool `json:"enough_weeks"`
	// RecommendedPP is the smallest threshold at or above the tolerable drop that
	// keeps the budget; nil if none does, or too few weeks were replayed.
	RecommendedPP *float64 `json:"recommended_pp"`
}

// GridPoint is one fixed threshold.
type GridPoint struct {
	ThresholdPP float64  `json:"threshold_pp"`
	PerWeek     Estimate `json:"false_per_week"`
	DropPP      float64  `json:"drop_pp"`
	DelayP50    *float64 `json:"delay_median_min"`
	DelayP90    *float64 `json:"delay_p90_min"`
	Missed      int      `json:"missed"`
}

// Warning is something the user should know before trusting the figures, and
// what to do about it.
type Warning struct {
	Code string `json:"code"`
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
}

func (r *Report) warn(code, text, hint string) {
	r.Warnings = append(r.Warnings, Warning{Code: code, Text: text, Hint: hint})
}
