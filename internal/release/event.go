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
	Count  int64         `json:"count,omitempty"` // violations, transfers, solved, or good probes
	Of     int64         `json:"samples"`         // requests, judged requests or probes it was counted over
	Span   time.Duration `json:"-"`               // the span of time it was counted over
}

// String says the finding in one sentence without a full stop.
func (f Finding) String() string {
	switch f.Signal {
	case Violations:
		return fmt.Sprintf("%d violations in %s, limit %s (%d requests)", f.Count, Minutes(f.Span), number(f.Limit), f.Of)
	case Cost:
		return fmt.Sprintf("cost %s times stable's, limit %s (%d requests)", number(f.Value), number(f.Limit), f.Of)
	case P99:
		return fmt.Sprintf("p99 latency %s ms, limit %s ms (%d requests)", number(f.Value), number(f.Limit), f.Of)
	case Transfers:
		return fmt.Sprintf("%d of %d requests handed to a human in %s (%s), limit %s", f.Count, f.Of, Minutes(f.Span), percent(f.Value), percent(f.Limit))
	case SolveRate:
		return fmt.Sprintf("%d of %d solved in %s (%s), trips at %s or less", f.Count, f.Of, Minutes(f.Span), percent(f.Value), percent(f.Limit))
	case Cooldown:
		return fmt.Sprintf("cooldown of %s over", Minutes(f.Span))
	case Probes:
		return fmt.Sprintf("%d of %d probes good, needs %s", f.Count, f.Of, percent(f.Limit))
	}
	return f.Signal.String()
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
	if d%time.Minute != 0 {
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

func percent(f float64) string { return strconv.FormatFloat(f*100, 'g', 4, 64) + " %" }
