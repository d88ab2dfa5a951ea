package release

import (
	"fmt"
	"strconv"
	"time"
)

// Finding is a signal held against its limit: the numbers behind an event, a
// rollback record or a verdict.
type Finding struct {
	Signal Signal        `json:"signal"`
	Value  float64       `json:"value"`           // the figure, in the signal's own unit
	Limit  float64       `json:"limit"`           // what it was held against
	Count  int64         `json:"count,omitempty"` // violations, transfers, solved, slow or aborted streams, errors, or good probes
	Of     int64         `json:"samples"`         // requests, judged requests, streams, windows or probes it was counted over
	Span   time.Duration `json:"-"`               // the span of time it was counted over

	Form          Form    `json:"form,omitempty"`           // the rule that set Limit
	Sigmas        float64 `json:"sigmas,omitempty"`         // how far Limit lies from what it is compared with, where noise set it
	ControlSolved int64   `json:"control_solved,omitempty"` // what stable did in the same windows, where Limit comes from it
	ControlJudged int64   `json:"control_judged,omitempty"`
}

// Form names the rule that set a finding's limit, where there are several for
// a signal.
type Form uint8

// The forms.
const (
	Published     Form = iota // the limit of the configuration as it stands
	ByCount                   // p99: how many requests were slower than the baseline's
	Fitted                    // solve_rate: the service's own noise, normal with the binomial's skew
	FittedExact               // solve_rate: the service's own noise, beta-binomial tail
	Concurrent                // solve_rate: stable in the same windows
	CumulativeSum             // solve_rate: Value and Limit are of the sum, not of the rate
)

var formNames = [...]string{"", "count", "fitted", "fitted_exact", "control", "cusum"}

// String returns the form's name in files and output; the published one has
// none.
func (f Form) String() string {
	if int(f) < len(formNames) {
		return formNames[f]
	}
	return fmt.Sprintf("form(%d)", uint8(f))
}

// MarshalText implements [encoding.TextMarshaler].
func (f Form) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (f *Form) UnmarshalText(b []byte) error { return parseName(f, formNames[:], b) }

// String says the finding in one sentence without a full stop.
func (f Finding) String() string {
	switch f.Signal {
	case Violations:
		return fmt.Sprintf("%d violations in %s, limit %s (%d requests)", f.Count, Minutes(f.Span), number(f.Limit), f.Of)
	case Cost:
		return fmt.Sprintf("cost %s times stable's, limit %s (%d requests)", number(f.Value), number(f.Limit), f.Of)
	case P99:
		if f.Form == ByCount {
			return fmt.Sprintf("%d of %d requests slower than the baseline's p99 in %s (%s), limit %s", f.Count, f.Of, Minutes(f.Span), percent(f.Value), percent(f.Limit))
		}
		return fmt.Sprintf("p99 latency %s ms, limit %s ms (%d requests)", number(f.Value), number(f.Limit), f.Of)
	case Transfers:
		return fmt.Sprintf("%d of %d requests handed to a human in %s (%s), limit %s", f.Count, f.Of, Minutes(f.Span), percent(f.Value), percent(f.Limit))
	case TTFTP99, TTFTSlow, ITL, StreamAborts, ServerErrors, Errors, KVCache:
		return f.streaming()
	case SolveRate:
		return f.solveRate()
	case Cooldown:
		return fmt.Sprintf("cooldown of %s over", Minutes(f.Span))
	case Probes:
		return fmt.Sprintf("%d of %d probes good, needs %s", f.Count, f.Of, percent(f.Limit))
	}
	return f.Signal.String()
}

// solveRate says a finding on the solve rate in the words of its form.
func (f Finding) solveRate() string {
	if f.Form == CumulativeSum {
		return fmt.Sprintf("cusum %s, limit %s (%d of %d solved in %s, %s)", number(f.Value), number(f.Limit), f.Count, f.Of, Minutes(f.Span), percent(share(f.Count, f.Of)))
	}
	rate := percent(f.Value)
	if f.Form == Concurrent {
		rate += " against stable's " + percent(share(f.ControlSolved, f.ControlJudged))
	}
	return fmt.Sprintf("%d of %d solved in %s (%s), %s", f.Count, f.Of, Minutes(f.Span), rate, f.solveLimit())
}

// solveLimit says at which rate it trips, and how many sigmas that is where
// noise set it. Few requests may leave no rate that is far enough from chance.
func (f Finding) solveLimit() string {
	samples := strconv.FormatInt(f.Of, 10)
	if f.Form == Concurrent {
		samples += " against " + strconv.FormatInt(f.ControlJudged, 10)
	}
	switch {
	case f.Limit < 0:
		return "no rate of " + samples + " can trip"
	case f.Form == FittedExact && f.Sigmas == 0:
		return fmt.Sprintf("trips at %s or less where that is beyond noise", percent(f.Limit))
	case f.Sigmas == 0:
		return fmt.Sprintf("trips at %s or less", percent(f.Limit))
	}
	return fmt.Sprintf("trips at %s or less: %s sigma of %s", percent(f.Limit), strconv.FormatFloat(f.Sigmas, 'f', 2, 64), samples)
}

// Event is one transition of the breaker.
type Event struct {
	T         time.Time
	From, To  Phase
	Escalated bool // a failed probe round: a person is called
	Locked    bool // only a person clears it
	Finding   Finding
	// First and Last are the starts of the oldest and newest window the
	// finding rests on; both zero for a change by time alone.
	First, Last time.Time
}

// Exposure is what a bad canary served.
type Exposure struct {
	Requests int64  `json:"requests"`
	Users    *int64 `json:"users"` // nil: the feed does not tell users apart
}

// Minutes prints a span of time the way a person says it: "5 minutes",
// "90 seconds", "2 hours 30 minutes".
func Minutes(d time.Duration) string {
	if d < 0 {
		return "-" + Minutes(-d)
	}
	if d == time.Second {
		return "1 second"
	}
	if d%time.Minute != 0 || d == 0 {
		if d < 2*time.Minute {
			return strconv.FormatFloat(d.Seconds(), 'g', -1, 64) + " seconds"
		}
		return strconv.FormatFloat(d.Minutes(), 'f', 1, 64) + " minutes"
	}
	m := int64(d / time.Minute)
	switch {
	case m >= 60 && m%60 == 0:
		return plural(m/60, "hour")
	case m > 120:
		return plural(m/60, "hour") + " " + plural(m%60, "minute")
	}
	return plural(m, "minute")
}

func plural(n int64, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return strconv.FormatInt(n, 10) + " " + unit + "s"
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

func share(n, of int64) float64 { return float64(n) / float64(of) }

func percent(f float64) string { return strconv.FormatFloat(f*100, 'g', 4, 64) + " %" }
