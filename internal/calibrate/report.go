package calibrate

import "time"

// Report is what a baseline says. Rates are fractions of 1, fields that end in
// _pp percentage points. A nil figure does not exist in the input.
type Report struct {
	Schema         int                   `json:"schema"`
	Arm            string                `json:"arm"`
	Totals         Totals                `json:"totals"`
	Span           Span                  `json:"span"`
	Windows        Windows               `json:"windows"`
	Centre         Centre                `json:"centre"`
	Dispersion     map[string]Dispersion `json:"dispersion"` // by the window's span: "10m"
	Slow           Slow                  `json:"slow"`
	Violations     Rate                  `json:"violations"`
	Transfers      Rate                  `json:"transfers"`
	P99            P99                   `json:"p99"`
	Cost           Cost                  `json:"cost"`
	RequestsPerMin *float64              `json:"requests_per_min"` // both arms, mean over the covered minutes
	Warnings       []Warning             `json:"warnings"`
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
	CoveredMin float64   `json:"covered_min"` // minutes in which requests would have been seen
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
	Mean   *float64 `json:"mean"`   // of the rates, every window counting the same
	P0     *float64 `json:"p0"`     // pooled: solved over judged
	Median *float64 `json:"median"` // of the rates
}

// Dispersion is how much the whole windows' solve rates vary.
type Dispersion struct {
	K    int      `json:"k"`
	Mean *float64 `json:"mean"`
	SD   *float64 `json:"sd"`  // sample standard deviation of the rates
	Q    *float64 `json:"q"`   // against the binomial; chance alone: about k-1
	Phi  *float64 `json:"phi"` // q/(k-1); 1: chance alone
}

// Slow is the slow layer's threshold by the plain rule.
type Slow struct {
	SolveBaseline   float64  `json:"solve_baseline"`
	SigmaPP         *float64 `json:"sigma_pp"`
	ChancePP        *float64 `json:"chance_pp"` // the binomial's part of it, at the median window's judged requests
	ThreeSigmaPP    *float64 `json:"three_sigma_pp"`
	TolerableDropPP float64  `json:"tolerable_drop_pp"`
	ThresholdPP     float64  `json:"threshold_pp"` // the larger of the two
	// MinSamples is the smallest number of judged requests from which on chance
	// alone reaches the threshold with at most Alpha; nil if no number does.
	MinSamples *int64  `json:"min_samples"`
	Alpha      float64 `json:"alpha"` // one-sided 3 sigma
}

// Rate is a share of requests.
type Rate struct {
	Rate     *float64 `json:"rate"`
	Count    *int64   `json:"count"`
	Requests int64    `json:"requests"` // of windows that carry the figure
	Upper95  *float64 `json:"upper95"`  // the rule of three, where none was seen
}

// P99 is the baseline's 99th percentile latency.
type P99 struct {
	ValueMS *float64 `json:"value_ms"`
	Method  string   `json:"method,omitempty"`
}

// Cost is the baseline's mean cost of a request.
type Cost struct {
	MeanUSD  *float64 `json:"mean_usd"`
	Requests int64    `json:"requests"`
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
