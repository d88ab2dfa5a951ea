package simulate

import (
	"fmt"
	"math"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// Spec describes a synthetic feed: a base of traffic and rates, and faults
// over it. It is resolved: there are no defaults but those named here.
type Spec struct {
	Start   time.Time
	Minutes int           // length of the feed
	Span    time.Duration // of a tick; 0: a minute

	// Drawn feeds draw traffic from Poisson, splits and outcomes from binomial
	// and latency and cost from log-normal distributions, by Seed alone. Else
	// every window has its expectation, and what is left of a fraction is
	// carried on to the next, so that sums are right.
	Drawn bool
	Seed  uint64

	// Closed feeds send PerMin requests a minute to the service, the weight's
	// share of them to the canary and the rest to stable. Else PerMin is what
	// the canary gets whatever the weight, and StablePerMin what stable gets;
	// with 0 stable has no windows.
	Closed       bool
	PerMin       float64
	StablePerMin float64

	Base   Base
	Faults []Fault

	// LabelAge is how old a window is when its solve rate is read, the plan's
	// label_lag_min; it only matters to a fault on Labels.
	LabelAge time.Duration
}

// Base is what both arms do where no fault changes it. A figure that is not
// known is missing from all windows. Counts a minute are the canary's; stable
// has them in proportion to its traffic.
type Base struct {
	Solved     Level // of judged requests
	Judged     Level // of all requests; not known: all are judged
	Violations Level // of all requests
	Transfers  Level // of all requests

	P99MS        float64 // of the latency distribution; 0: not known
	LatencySigma float64 // of its logarithm, for drawn feeds

	CostUSD   float64 // mean of a request of stable; 0: not known
	CostRatio float64 // canary's mean over stable's; 0: not known, and 1 where CostUSD is
	CostSigma float64 // of the logarithm of a request's cost, for drawn feeds

	Streaming Streaming
}

// Level is how much of a figure there is: a share of the requests it is
// counted over, or a count a minute.
type Level struct {
	Value  float64
	PerMin bool
	Known  bool
}

// Rate is a level as a share of requests.
func Rate(share float64) Level { return Level{Value: share, Known: true} }

// CountPerMin is a level as a count a minute, however many requests there are.
func CountPerMin(n float64) Level { return Level{Value: n, PerMin: true, Known: true} }

// Target is the figure that a fault changes.
type Target uint8

// The targets of faults.
const (
	Traffic Target = iota
	Solve
	ViolationLevel
	TransferLevel
	Latency
	CostLevel
	Labels // how much of the outcome is known when a window is read
	TTFT   // time to first token
	SlowStreams
	InterToken
	BrokenStreams
	ServerErrorLevel
	RefusalLevel
	KVCacheLevel
)

var targetNames = [...]string{"traffic", "solve rate", "violations", "transfers", "latency", "cost", "labels",
	"time to first token", "slow streams", "inter-token latency", "broken streams", "server errors", "refusals", "KV cache"}

// String returns the target's name in messages.
func (t Target) String() string { return targetNames[t] }

// Change is what a fault does to its target.
type Change uint8

// The changes.
const (
	ToRate      Change = iota // a share of requests
	ToCount                   // a count a minute
	ToMS                      // latency: milliseconds
	Times                     // multiply
	DropPP                    // solve rate: percentage points down
	DecayPP                   // solve rate: percentage points down for every hour since From
	SwingShare                // traffic: up and down by this share within 24 hours
	SwingPP                   // solve rate: up and down by percentage points within 24 hours
	LateMinutes               // labels: minutes until the last outcome of a window is known, evenly
	FillPP                    // KV cache: percentage points up for every hour since From
)

// changesOf says which changes a target can undergo.
var changesOf = [...][]Change{
	Traffic:        {Times, SwingShare},
	Solve:          {ToRate, ToCount, DropPP, DecayPP, SwingPP},
	ViolationLevel: {ToRate, ToCount, Times},
	TransferLevel:  {ToRate, ToCount, Times},
	Latency:        {ToMS, Times},
	CostLevel:      {Times},
	Labels:         {LateMinutes},

	TTFT:             {ToMS, Times},
	SlowStreams:      {ToRate, ToCount, Times},
	InterToken:       {ToMS, Times},
	BrokenStreams:    {ToRate, ToCount, Times},
	ServerErrorLevel: {ToRate, ToCount, Times},
	RefusalLevel:     {ToRate, ToCount, Times},
	KVCacheLevel:     {ToRate, FillPP},
}

// Fault is a change of one figure for some time. Faults apply in their order.
type Fault struct {
	Target Target
	Change Change
	Value  float64
	Arm    release.Arm // Canary, Stable or All
	From   int         // first minute
	Until  int         // first minute after it; 0: until the end
	// Every and For make it come and go: on for the first For minutes of every
	// Every minutes since From. Every 0: on throughout.
	Every, For int
	PeakHour   float64 // of a swing, UTC
}

// on reports whether the fault acts in a minute.
func (f *Fault) on(minute int) bool {
	if minute < f.From || f.Until > 0 && minute >= f.Until {
		return false
	}
	return f.Every <= 0 || (minute-f.From)%f.Every < f.For
}

// SpecError says what of a Spec cannot be.
type SpecError struct {
	Fault  int // index of the fault, or -1
	Reason string
}

// Error implements error.
func (e *SpecError) Error() string {
	if e.Fault < 0 {
		return "feed: " + e.Reason
	}
	return fmt.Sprintf("fault %d: %s", e.Fault+1, e.Reason)
}

// check returns a *SpecError for a feed that cannot be.
func (s *Spec) check() error {
	bad := func(format string, args ...any) error {
		return &SpecError{Fault: -1, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case s.Minutes < 0:
		return bad("%d minutes", s.Minutes)
	case s.Span < 0 || s.Span%time.Second != 0:
		return bad("a span of %s is not a whole number of seconds", s.Span)
	case !amount(s.PerMin) || !amount(s.StablePerMin):
		return bad("traffic of %g and %g requests a minute", s.PerMin, s.StablePerMin)
	case s.Closed && s.StablePerMin != 0:
		return bad("in a closed loop stable gets what the canary does not")
	case s.Closed && (s.Base.Solved.PerMin || s.Base.Judged.PerMin):
		return bad("in a closed loop the canary's traffic follows the weight: give solved and judged as rates")
	}
	b := &s.Base
	for _, l := range []Level{b.Solved, b.Judged, b.Violations, b.Transfers} {
		if !amount(l.Value) || !l.PerMin && l.Value > 1 {
			return bad("a share of requests is between 0 and 1, not %g", l.Value)
		}
	}
	if reason := s.tooMany(); reason != "" {
		return bad("%s", reason)
	}
	if reason := b.Streaming.refuse(s.PerMin); reason != "" {
		return bad("%s", reason)
	}
	for _, x := range []float64{b.P99MS, b.LatencySigma, b.CostUSD, b.CostRatio, b.CostSigma} {
		if !amount(x) {
			return bad("%g is no latency, cost or sigma", x)
		}
	}
	for i := range s.Faults {
		if reason := s.refuse(&s.Faults[i]); reason != "" {
			return &SpecError{Fault: i, Reason: reason}
		}
	}
	return nil
}

// tooMany says which count of the base is of more requests than there are, or
// "". Where a fault takes traffic away, a count is at most what is left.
func (s *Spec) tooMany() string {
	b := &s.Base
	judged := s.judged()
	for _, c := range []struct {
		what string
		of   Level
		most float64
	}{
		{"judged", b.Judged, s.PerMin}, {"solved", b.Solved, judged}, {"violations", b.Violations, s.PerMin}, {"transfers", b.Transfers, s.PerMin},
	} {
		if c.of.PerMin && c.of.Value > c.most {
			return fmt.Sprintf("%g %s a minute of %g", c.of.Value, c.what, c.most)
		}
	}
	return ""
}

// judged is how many requests a minute are judged in the base.
func (s *Spec) judged() float64 {
	switch j := s.Base.Judged; {
	case !j.Known:
		return s.PerMin
	case j.PerMin:
		return j.Value
	default:
		return j.Value * s.PerMin
	}
}

// amount reports whether x can be an amount of anything.
func amount(x float64) bool { return x >= 0 && x <= 1e12 }

// refuse says why a fault cannot be, or "".
func (s *Spec) refuse(f *Fault) string {
	ok := false
	for _, c := range changesOf[f.Target] {
		ok = ok || c == f.Change
	}
	switch {
	case !ok:
		return f.Target.String() + " cannot change like that"
	case !amount(f.Value) || f.Change == ToRate && f.Value > 1:
		return fmt.Sprintf("its value cannot be %g", f.Value)
	case f.From < 0 || f.Until != 0 && f.Until <= f.From:
		return fmt.Sprintf("it acts from minute %d to %d", f.From, f.Until)
	case f.Every < 0 || f.Every > 0 && (f.For < 1 || f.For > f.Every):
		return fmt.Sprintf("it is on for %d of %d minutes", f.For, f.Every)
	case !s.knows(f.Target):
		return fmt.Sprintf("the base has no %s for it to change", f.Target)
	case f.Arm == release.Stable && !s.Closed && s.StablePerMin == 0:
		return "the feed has no requests of stable for it to change"
	case f.Value == 0 && (f.Target == Latency || f.Target == CostLevel || f.Target == TTFT || f.Target == InterToken):
		return "requests that take no time or cost nothing are no requests"
	case s.Closed && f.Target == Solve && f.Change == ToCount:
		return "in a closed loop the canary's traffic follows the weight: give a rate instead of a count"
	case f.Change == ToCount && f.Value > s.PerMin, f.Change == ToCount && f.Target == Solve && f.Value > s.judged():
		return fmt.Sprintf("a count of %g is of more requests than the base has in a minute", f.Value)
	case s.Closed && f.Target == Traffic && f.Arm != release.All && (f.Change == SwingShare || f.Value > 1):
		return "in a closed loop one arm's traffic can only shrink"
	case f.Change == SwingShare && f.Value > 1:
		return "traffic cannot swing by more than all of it"
	}
	return ""
}

func (s *Spec) knows(t Target) bool {
	switch t {
	case Solve, Labels:
		return s.Base.Solved.Known
	case ViolationLevel:
		return s.Base.Violations.Known
	case TransferLevel:
		return s.Base.Transfers.Known
	case Latency:
		return s.Base.P99MS > 0
	case CostLevel:
		return s.Base.CostUSD > 0 || s.Base.CostRatio > 0
	case Traffic:
		return true
	}
	return s.Base.Streaming.knows(t)
}

// levels is what an arm does in one tick.
type levels struct {
	traffic                               float64 // factor
	solved, judged, violations, transfers Level
	p99, cost                             float64
	streaming                             Streaming
	finished                              float64 // share of outcomes known when the window is read
	expected                              float64 // requests
}

// levelsAt applies the faults of a minute to the base. shared is the factor on
// the traffic of both arms, which in a closed loop acts before the split.
func (s *Synthetic) levelsAt(arm release.Arm, minute int, t time.Time) (lv levels, shared float64) {
	b := &s.spec.Base
	lv = levels{
		traffic: 1, solved: b.Solved, judged: b.Judged, violations: b.Violations, transfers: b.Transfers,
		p99: b.P99MS, cost: 1, streaming: b.Streaming, finished: 1,
	}
	shared = 1
	if arm == release.Stable {
		for _, l := range []*Level{&lv.solved, &lv.judged, &lv.violations, &lv.transfers} {
			*l = s.asShare(*l)
		}
		lv.streaming.shared(s.spec.PerMin)
	} else if b.CostRatio > 0 {
		lv.cost = b.CostRatio
	}
	for i := range s.spec.Faults {
		f := &s.spec.Faults[i]
		if f.Arm != arm && f.Arm != release.All || !f.on(minute) {
			continue
		}
		switch f.Target {
		case Traffic:
			if f.Arm == release.All {
				shared *= s.factor(f, t)
			} else {
				lv.traffic *= s.factor(f, t)
			}
		case Solve:
			lv.solved = s.solveUnder(f, lv.solved, minute, t)
		case ViolationLevel:
			lv.violations = f.level(lv.violations)
		case TransferLevel:
			lv.transfers = f.level(lv.transfers)
		case Latency:
			if f.Change == ToMS {
				lv.p99 = f.Value
			} else {
				lv.p99 *= f.Value
			}
		case CostLevel:
			lv.cost *= f.Value
		case Labels:
			if late := f.Value * float64(time.Minute); late > 0 {
				lv.finished *= min(1, float64(s.spec.LabelAge)/late)
			}
		default:
			lv.streaming.under(f, minute)
		}
	}
	return lv, shared
}

// factor is what a fault on traffic multiplies it with.
func (s *Synthetic) factor(f *Fault, t time.Time) float64 {
	if f.Change == SwingShare {
		return 1 + f.Value*s.swing(t, f.PeakHour)
	}
	return f.Value
}

// level is what a fault makes of a level of rare events.
func (f *Fault) level(l Level) Level {
	switch f.Change {
	case ToRate:
		return Rate(f.Value)
	case ToCount:
		return CountPerMin(f.Value)
	}
	l.Value *= f.Value
	if !l.PerMin {
		l.Value = min(l.Value, 1)
	}
	return l
}

// solveUnder is what a fault makes of the solve rate. A base given as a count
// is taken as a share of the base's traffic where points are taken off it.
func (s *Synthetic) solveUnder(f *Fault, l Level, minute int, t time.Time) Level {
	switch f.Change {
	case ToRate:
		return Rate(f.Value)
	case ToCount:
		return CountPerMin(f.Value)
	}
	rate := s.asShare(l).Value
	switch f.Change {
	case DecayPP:
		rate -= f.Value / 100 * float64(minute-f.From) / 60
	case SwingPP:
		rate += f.Value / 100 * s.swing(t, f.PeakHour)
	default:
		rate -= f.Value / 100
	}
	return Rate(min(max(rate, 0), 1))
}

// asShare turns a count a minute, which is meant of PerMin requests, into a
// share of requests.
func (s *Synthetic) asShare(l Level) Level {
	if !l.PerMin {
		return l
	}
	return shareOf(l, s.spec.PerMin)
}

// shareOf is a count a minute as a share of so many.
func shareOf(l Level, perMin float64) Level {
	if perMin == 0 {
		return Level{Known: l.Known}
	}
	return Level{Value: min(l.Value/perMin, 1), Known: l.Known}
}

// swing is a cosine of 24 hours that is 1 at the peak hour, UTC. Both arms and
// several faults ask for the same one in a tick.
func (s *Synthetic) swing(t time.Time, peak float64) float64 {
	if w := &s.wave; !w.known || !w.at.Equal(t) || w.peak != peak {
		h, m, sec := t.UTC().Clock()
		hour := float64(h) + float64(m)/60 + float64(sec)/3600
		w.known, w.at, w.peak, w.height = true, t, peak, math.Cos(2*math.Pi*(hour-peak)/24)
	}
	return s.wave.height
}
