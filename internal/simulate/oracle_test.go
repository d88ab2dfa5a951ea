package simulate_test

import (
	"math/big"

	"github.com/canaryctl/canaryctl/internal/release"
)

// This file is a second implementation of DESIGN section 6, written from its
// text alone and as naively as possible: slices, every span counted anew at
// every minute, decimals as big.Rat of what the user wrote. It shares no code
// with the breaker; TestBreakerAgreesWithTheOracle compares the two.
//
// Where the text leaves a choice, the reading taken here:
//
//	R1  A window that lacks a figure adds neither to the count nor to the
//	    requests of the check that needs it; the check is unjudged only if no
//	    window of its span has the figure. ("A figure that is missing leaves
//	    its check unjudged" could also mean: unjudged at every minute whose own
//	    window lacks it: readings.ownFigure.)
//	R2  The slow layer runs at every window with requests, also at one with
//	    none judged and, under label lag, over windows all older than this one.
//	    At a gap nothing is checked, even if a lagged window has just matured
//	    ("never on a gap"; readings.slowAtGap is the other).
//	R3  Cooldown counts from the t of the window that tripped. With cooldown 0
//	    the change comes one tick later, because a tick does the changes by
//	    time alone before its window.
//	R4  Under label lag a probe is read at the first tick at or past t+lag, gaps
//	    included, after that minute's window has faced the fast layer: only the
//	    cooldown is named as a change by time alone. (The text would also bear
//	    the reading that a probe's reading is one, and so comes before the
//	    window, which then meets the new state. readings.readFirst.)
//	R5  The first half_open_trials probes make the round. Windows that come
//	    between the last probe and its reading face the fast layer and enter the
//	    spans, but are no probes.
//	R6  Pooling sums windows with judged > 0 until their requests (total, not
//	    judged) reach half_open_min_requests. Gaps, empty and unjudged windows
//	    lie in between without breaking or feeding the pool. A pooled probe is
//	    read lag minutes after its last window.
//	R7  The round is decided after the last probe, never before, even where its
//	    outcome is settled (scenario-b: OPEN at 45, not at 42).
//	R8  After max_attempts recoveries (HALF_OPEN -> CLOSED), the next trip from
//	    CLOSED goes to OPEN locked, whatever lock_on_escalate says; it is not
//	    escalated, since no probe round failed.
//	R9  The window that trips has entered the spans; windows while OPEN have
//	    not. After a failed round the probe windows stay for the next one.
//	R10 "Everything from before HALF_OPEN" is before the latest HALF_OPEN; also
//	    for the lagged slow span.
//	R11 Nothing of an unfinished round survives it: a fast hit drops its probes.
//	R12 judged absent means judged = total; solved absent means the solve rate
//	    is missing, and the window is no probe.

// readings are the choices taken otherwise, to see how much hangs on them. The
// zero value is the reading that the breaker is held to.
type readings struct {
	readFirst  bool // R4
	ownFigure  bool // R1
	slowAtGap  bool // R2
	poolJudged bool // R6: half_open_min_requests counts judged requests
	poolAll    bool // R6: unjudged windows feed the pool's requests
}

// oWindow is a one-minute canary window as a user would write it; figures that
// are missing are empty strings or negative counts.
type oWindow struct {
	minute                int
	total, judged, solved int64 // judged, solved: -1 missing
	violations, transfers int64 // -1 missing
	cost, p99             string
}

// oRules are the keys of section 3, decimals as written.
type oRules struct {
	violationLimit                     int64
	violationRate, violationMultiplier string
	fastSpan                           int
	costLimit                          string
	p99Baseline, p99Ratio              string
	transferRate, transferRatio        string
	minTransfers                       int64
	costMinSamples, p99MinSamples      int64
	solveBaseline                      string
	dropPP                             string
	minSamples                         int64
	slowSpan, lag, cooldown, trials    int
	successRate                        string
	lock                               bool
	minRequests                        int64
	maxAttempts                        int
}

// oEvent is a transition of the breaker.
type oEvent struct {
	minute            int
	from, to          release.Phase
	signal            release.Signal
	escalated, locked bool
}

func rat(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic("oracle: bad decimal " + s)
	}
	return r
}

func frac(a, b int64) *big.Rat { return big.NewRat(a, b) }

// oProbe is one probe of a round: what it counted and when it may be read.
type oProbe struct {
	judged, solved int64
	readAt         int
}

// oracle is the whole state, in the plainest form.
type oracle struct {
	rules oRules

	phase      release.Phase
	locked     bool
	since      int       // minute of the last transition
	seen       []oWindow // every window that ever entered a span
	dropBefore int       // minute before which evidence was dropped
	recoveries int

	readings

	probes                                     []oProbe
	gatheredOf, gatheredJudged, gatheredSolved int64

	events []oEvent
}

// runOracle ticks every minute from 0 to last.
func runOracle(rules oRules, feed []oWindow, last int, other readings) []oEvent {
	o := &oracle{rules: rules, dropBefore: -1 << 30, readings: other}
	for now := 0; now <= last; now++ {
		o.byTime(now)
		for _, w := range feed {
			if w.minute == now && w.total > 0 {
				o.window(now, w)
			}
		}
		o.readRound(now)
		if o.slowAtGap && o.phase == release.Closed && o.slow(now) {
			o.to(now, release.Open, release.SolveRate, false, o.rules.maxAttempts > 0 && o.recoveries >= o.rules.maxAttempts)
		}
	}
	return o.events
}

func (o *oracle) byTime(now int) {
	switch {
	case o.phase == release.Open && !o.locked && now >= o.since+o.rules.cooldown:
		o.to(now, release.HalfOpen, release.Cooldown, false, false)
		o.probes, o.gatheredOf, o.gatheredJudged, o.gatheredSolved = nil, 0, 0, 0
	case o.readFirst:
		o.readRound(now)
	}
}

func (o *oracle) window(now int, w oWindow) {
	switch o.phase {
	case release.Open:
		return // evidence ignored; enters no span
	case release.Closed:
		o.seen = append(o.seen, w)
		sig, hit := o.fast(now, w)
		if !hit && (!o.ownFigure || w.solved >= 0) && o.slow(now) {
			sig, hit = release.SolveRate, true
		}
		if hit {
			end := o.rules.maxAttempts > 0 && o.recoveries >= o.rules.maxAttempts
			o.to(now, release.Open, sig, false, end)
		}
	case release.HalfOpen:
		o.seen = append(o.seen, w)
		if sig, hit := o.fast(now, w); hit {
			o.to(now, release.Open, sig, true, o.rules.lock)
			return
		}
		o.probe(now, w)
	}
}

// probe adds the window to the round, if it is a probe or part of one.
func (o *oracle) probe(now int, w oWindow) {
	judged, ok := w.judgedCount()
	if len(o.probes) >= o.rules.trials {
		return
	}
	if !ok || judged == 0 {
		if o.poolAll {
			o.gatheredOf += w.total
		}
		return
	}
	o.gatheredOf += w.total
	if o.readings.poolJudged {
		o.gatheredOf += judged - w.total
	}
	o.gatheredJudged += judged
	o.gatheredSolved += w.solved
	if o.gatheredOf >= o.rules.minRequests {
		o.probes = append(o.probes, oProbe{o.gatheredJudged, o.gatheredSolved, now + o.rules.lag})
		o.gatheredOf, o.gatheredJudged, o.gatheredSolved = 0, 0, 0
	}
}

// readRound ends the round once its last probe may be read.
func (o *oracle) readRound(now int) {
	if o.phase != release.HalfOpen || len(o.probes) < o.rules.trials {
		return
	}
	need, good := rat(o.rules.successRate), int64(0)
	for _, p := range o.probes {
		if p.readAt > now {
			return
		}
		if frac(p.solved, p.judged).Cmp(need) >= 0 {
			good++
		}
	}
	if frac(good, int64(o.rules.trials)).Cmp(need) < 0 {
		o.to(now, release.Open, release.Probes, true, o.rules.lock)
		return
	}
	o.dropBefore = o.since // the minute HALF_OPEN began
	o.recoveries++
	o.to(now, release.Closed, release.Probes, false, false)
}

func (o *oracle) to(now int, p release.Phase, sig release.Signal, escalated, locked bool) {
	o.events = append(o.events, oEvent{now, o.phase, p, sig, escalated, locked})
	o.phase, o.since, o.locked = p, now, locked
}

// fast is the fast layer at the window w of minute now.
func (o *oracle) fast(now int, w oWindow) (release.Signal, bool) {
	r := o.rules
	violations, requests, any := o.sum(now, r.fastSpan, func(w oWindow) int64 { return w.violations })
	if any && (!o.ownFigure || w.violations >= 0) {
		limit := new(big.Rat).Mul(frac(requests, 1), new(big.Rat).Mul(rat(r.violationRate), rat(r.violationMultiplier)))
		floor := new(big.Int).Quo(limit.Num(), limit.Denom())
		if v := big.NewInt(violations); v.Cmp(big.NewInt(r.violationLimit)) >= 0 && v.Cmp(floor) >= 0 {
			return release.Violations, true
		}
	}
	if w.cost != "" && w.total >= r.costMinSamples && rat(w.cost).Cmp(rat(r.costLimit)) >= 0 {
		return release.Cost, true
	}
	p99Limit := new(big.Rat).Mul(rat(r.p99Baseline), rat(r.p99Ratio))
	if w.p99 != "" && w.total >= r.p99MinSamples && rat(w.p99).Cmp(p99Limit) >= 0 {
		return release.P99, true
	}
	transfers, requests, any := o.sum(now, r.fastSpan, func(w oWindow) int64 { return w.transfers })
	limit := new(big.Rat).Mul(rat(r.transferRate), rat(r.transferRatio))
	if any && (!o.ownFigure || w.transfers >= 0) && transfers >= r.minTransfers && frac(transfers, requests).Cmp(limit) >= 0 {
		return release.Transfers, true
	}
	return 0, false
}

// sum counts a figure and the requests of the windows that have it over
// (now-span, now].
func (o *oracle) sum(now, span int, figure func(oWindow) int64) (count, requests int64, any bool) {
	for _, w := range o.seen {
		if w.minute > now-span && w.minute <= now && w.minute >= o.dropBefore && figure(w) >= 0 {
			count += figure(w)
			requests += w.total
			any = true
		}
	}
	return count, requests, any
}

// slow is the slow layer at minute now.
func (o *oracle) slow(now int) bool {
	r := o.rules
	end := now - r.lag
	var judged, solved int64
	for _, w := range o.seen {
		if n, ok := w.judgedCount(); ok && w.minute > end-r.slowSpan && w.minute <= end && w.minute >= o.dropBefore {
			judged += n
			solved += w.solved
		}
	}
	floor := new(big.Rat).Sub(rat(r.solveBaseline), new(big.Rat).Quo(rat(r.dropPP), frac(100, 1)))
	return judged > 0 && judged >= r.minSamples && frac(solved, judged).Cmp(floor) <= 0
}

// judgedCount is the solve rate's denominator, if the window has a solve rate.
func (w oWindow) judgedCount() (int64, bool) {
	switch {
	case w.solved < 0:
		return 0, false
	case w.judged < 0:
		return w.total, true
	}
	return w.judged, true
}
