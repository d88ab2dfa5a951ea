package shadow

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// Action is what the pairs of a fingerprint say should be done with the copies.
type Action uint8

// The actions, from the one that outranks all others to the weakest.
const (
	RollBack     Action = iota // send no more copies: the canary is not fit for traffic
	Throttle                   // send fewer copies: the canary is slow
	Observe                    // send on: too little is known
	PromoteReady               // ready for a small share of real traffic, never for all of it
)

var actionNames = [...]string{"roll_back", "throttle", "observe", "promote_ready"}

// String returns the action's name in files and output.
func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return fmt.Sprintf("action(%d)", uint8(a))
}

// MarshalText implements [encoding.TextMarshaler].
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Policy is when pairs lead to which action.
type Policy struct {
	Window       int           // pairs that are looked at, the last ones
	Least        int           // pairs from which on they are judged
	ParseGap     release.Ratio // roll back when stable parses more often by more than this
	ToolMismatch release.Ratio // roll back when more than this share calls other tools
	P95MS        float64       // throttle when the canary's p95 is above this, milliseconds
	TimeoutMS    float64       // a canary's answer that took longer failed, milliseconds; 0 for no limit
	ThrottleTo   release.Ratio // the share of requests that are copied, at most, while throttled
	Changes      Part          // in what the canary is meant to differ from stable
}

// DefaultPolicy returns the published policy for a change of model: last 50,
// from 20 on, 3 %, 8 %, 2 s, with a time-out of 2.5 s; throttled to 5 %. They
// are examples: set them from your failure budget.
func DefaultPolicy() Policy {
	return Policy{
		Window: 50, Least: 20,
		ParseGap: release.NewRatio(3, 100), ToolMismatch: release.NewRatio(8, 100),
		P95MS: 2000, TimeoutMS: 2500, ThrottleTo: release.NewRatio(5, 100), Changes: Model,
	}
}

// p95 is the percentile that is judged, by nearest rank.
var p95 = release.NewRatio(95, 100)

// Check is one figure of a standing against its limit.
type Check struct {
	Name    string          `json:"check"` // parse_gap, tool_mismatch or p95
	Verdict release.Verdict `json:"verdict"`
	Value   *float64        `json:"value"` // a fraction of 1, or milliseconds; nil if nothing was seen
	Limit   float64         `json:"limit"` // fails above it
	Samples int64           `json:"samples"`
	Needed  int64           `json:"needed"` // samples that are missing before it can pass
}

// The names of the checks.
const (
	checkParseGap     = "parse_gap"
	checkToolMismatch = "tool_mismatch"
	checkP95          = "p95"
)

// Standing is what the last pairs of one canary against one stable say.
type Standing struct {
	Fingerprint string `json:"fingerprint"` // the canary's
	Against     string `json:"stable_fingerprint"`
	Action      Action `json:"action"`
	Reason      string `json:"reason"`

	Seen         int64    `json:"seen"`          // pairs so far
	Pairs        int64    `json:"pairs"`         // of them in the window; all counts below are of these
	StableParsed int64    `json:"stable_parsed"` // stable's answers that parse
	CanaryParsed int64    `json:"canary_parsed"` // the canary's
	CanaryFailed int64    `json:"canary_failed"` // the canary's calls without an answer, time-outs among them
	TimedOut     int64    `json:"canary_timed_out"`
	BothParsed   int64    `json:"both_parsed"` // pairs in which both answers parse
	ToolsKnown   int64    `json:"tools_known"` // of BothParsed, those of which the tools of both answers are known
	Mismatched   int64    `json:"mismatched"`  // of ToolsKnown, those with different chains of tools
	Timed        int64    `json:"timed"`       // the canary's answers with a known latency
	P95MS        *float64 `json:"p95_ms"`      // their 95th percentile, nearest rank; nil if there are none
	Checks       []Check  `json:"checks"`
}

// tally is what is kept of a pair.
type tally struct {
	stableParsed, canaryParsed, failed, timedOut, toolsKnown, mismatched bool

	latencyMS float64
	timed     bool
}

func (p *Policy) tally(pair *Pair) tally {
	c := &pair.Canary
	late := p.TimeoutMS > 0 && c.Timed && c.LatencyMS > p.TimeoutMS
	t := tally{
		stableParsed: pair.Stable.Parsed && !pair.Stable.Failed,
		canaryParsed: c.Parsed && !c.Failed && !late,
		failed:       c.Failed || late,
		timedOut:     late || c.Failed && c.Timed && p.TimeoutMS > 0 && c.LatencyMS >= p.TimeoutMS,
		latencyMS:    c.LatencyMS,
	}
	t.timed = c.Timed && !t.failed
	t.toolsKnown = t.stableParsed && t.canaryParsed && !pair.Stable.ToolsUnknown && !c.ToolsUnknown
	t.mismatched = t.toolsKnown && !slices.Equal(pair.Stable.Tools, c.Tools)
	return t
}

// standing counts tallies, oldest first, and judges them.
func (p *Policy) standing(tallies []tally) Standing {
	s := Standing{Pairs: int64(len(tallies))}
	var latencies []float64
	for i := range tallies {
		t := &tallies[i]
		s.StableParsed += one(t.stableParsed)
		s.CanaryParsed += one(t.canaryParsed)
		s.CanaryFailed += one(t.failed)
		s.TimedOut += one(t.timedOut)
		s.BothParsed += one(t.stableParsed && t.canaryParsed)
		s.ToolsKnown += one(t.toolsKnown)
		s.Mismatched += one(t.mismatched)
		if t.timed {
			latencies = append(latencies, t.latencyMS)
		}
	}
	if s.Timed = int64(len(latencies)); s.Timed > 0 {
		slices.Sort(latencies)
		ms := stats.NearestRank(latencies, p95)
		s.P95MS = &ms
	}
	p.judge(&s)
	return s
}

// judge sets checks, action and reason. A failing check decides by its rank;
// ready is only what passed every one of them, each on enough of its own samples:
// a single latency does not show that a canary is fast.
func (p *Policy) judge(s *Standing) {
	s.Checks = []Check{
		p.check(s, checkParseGap, p.ParseGap, max(s.StableParsed-s.CanaryParsed, 0), s.Pairs),
		p.check(s, checkToolMismatch, p.ToolMismatch, s.Mismatched, s.ToolsKnown),
		{Name: checkP95, Verdict: p.verdict(s, s.Timed, s.P95MS != nil && *s.P95MS > p.P95MS), Value: s.P95MS, Limit: p.P95MS, Samples: s.Timed, Needed: p.needed(s.Timed)},
	}
	s.Action, s.Reason = PromoteReady, "every check passed"
	if p.needed(s.Pairs) > 0 {
		s.Action, s.Reason = Observe, fmt.Sprintf("%d of %d pairs", s.Pairs, p.Least)
		return
	}
	for i := len(s.Checks) - 1; i >= 0; i-- {
		switch c := &s.Checks[i]; c.Verdict {
		case release.NoData:
			s.Action, s.Reason = Observe, p.unseen(s, c.Name)
		case release.Insufficient:
			s.Action, s.Reason = Observe, p.thin(s, c)
		}
	}
	p.failures(s)
}

// unseen says what a check has not one sample of.
func (p *Policy) unseen(s *Standing, check string) string {
	switch {
	case check == checkP95:
		return "no latency of the canary is known"
	case s.BothParsed > 0:
		return "in no pair are the tools of both answers known"
	}
	return "in no pair do both answers parse"
}

// thin says of what a check has too few.
func (p *Policy) thin(s *Standing, c *Check) string {
	of := "the latency of the canary is known in %d of %d pairs"
	if c.Name == checkToolMismatch {
		of = "both answers parse, and their tools are known, in %d of %d pairs"
	}
	return fmt.Sprintf(of+": fewer than %d", c.Samples, s.Pairs, p.Least)
}

// failures lets the first failing check decide: parse gap, tools, latency.
func (p *Policy) failures(s *Standing) {
	switch {
	case s.Checks[0].Verdict == release.Fail:
		s.Action, s.Reason = RollBack, fmt.Sprintf("stable parses %d of %d, the canary %d: a gap above %s %%", s.StableParsed, s.Pairs, s.CanaryParsed, Percent(p.ParseGap))
	case s.Checks[1].Verdict == release.Fail:
		s.Action, s.Reason = RollBack, fmt.Sprintf("other tools in %d of %d: above %s %%", s.Mismatched, s.ToolsKnown, Percent(p.ToolMismatch))
	case s.Checks[2].Verdict == release.Fail:
		s.Action, s.Reason = Throttle, fmt.Sprintf("p95 %g ms: above %g ms", *s.P95MS, p.P95MS)
	}
}

// check compares a share of counts with its limit, exactly.
func (p *Policy) check(s *Standing, name string, limit release.Ratio, count, of int64) Check {
	c := Check{Name: name, Verdict: p.verdict(s, of, limit.Compare(count, of) > 0), Limit: limit.Float64(), Samples: of, Needed: p.needed(of)}
	if of > 0 {
		share := float64(count) / float64(of)
		c.Value = &share
	}
	return c
}

func (p *Policy) verdict(s *Standing, samples int64, above bool) release.Verdict {
	switch {
	case samples == 0:
		return release.NoData
	case p.needed(s.Pairs) > 0:
		return release.Insufficient
	case above:
		return release.Fail // few samples are no reason to go on
	case p.needed(samples) > 0:
		return release.Insufficient
	}
	return release.Pass
}

// needed is how many of the samples are missing that a check needs to pass.
func (p *Policy) needed(samples int64) int64 { return max(int64(p.Least)-samples, 0) }

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Percent writes a share in percent, without the sign and with every digit.
func Percent(r release.Ratio) string {
	whole, err := r.Mul(release.NewRatio(100, 1))
	if err != nil {
		return strconv.FormatFloat(100*r.Float64(), 'g', -1, 64)
	}
	return whole.String()
}
