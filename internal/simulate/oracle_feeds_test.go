package simulate_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

// TestBreakerAgreesWithTheOracle replays random feeds under random rules and
// random ladders, and holds the events against the naive reading of DESIGN
// section 6 in oracle_test.go. The ladder must not show in them.
func TestBreakerAgreesWithTheOracle(t *testing.T) {
	feeds := 3000
	if testing.Short() {
		feeds = 300
	}
	seen := map[string]int{}
	bad := 0
	for seed := range feeds {
		c := randomCase(uint64(seed))
		want := runOracle(c.rules, c.feed, c.last, readings{})
		got := replayEvents(t, c)
		for _, e := range want {
			seen[fmt.Sprintf("%s->%s %s", e.from, e.to, e.signal)]++
		}
		if !sameEvents(got, want) {
			bad++
			if bad <= 5 {
				t.Errorf("seed %d: rules %+v, ladder %s\ngot\n%swant\n%s%s", seed, c.rules, c.ladder, printEvents(got), printEvents(want), around(c, got, want))
			}
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d feeds disagree", bad, feeds)
	}
	// The comparison is worth nothing where the feeds bring no transitions.
	for _, kind := range []string{
		"CLOSED->OPEN violations", "CLOSED->OPEN cost", "CLOSED->OPEN p99", "CLOSED->OPEN transfers", "CLOSED->OPEN solve_rate",
		"OPEN->HALF_OPEN cooldown", "HALF_OPEN->CLOSED probes", "HALF_OPEN->OPEN probes",
		"HALF_OPEN->OPEN violations", "HALF_OPEN->OPEN cost", "HALF_OPEN->OPEN p99", "HALF_OPEN->OPEN transfers",
	} {
		if want := feeds / 60; seen[kind] < want {
			t.Errorf("only %d times %s in %d feeds, want %d at least", seen[kind], kind, feeds, want)
		}
	}
	t.Logf("%d feeds: %v", feeds, seen)
}

// TestReadingsOfTheOracleMatter keeps the list of readings in oracle_test.go
// honest: each of them decides some feeds, so the comparison above does hold
// the breaker to the reading taken.
func TestReadingsOfTheOracleMatter(t *testing.T) {
	for name, other := range map[string]readings{
		"a probe is read before the window":        {readFirst: true},
		"unjudged where the window lacks a figure": {ownFigure: true},
		"the slow layer runs at gaps":              {slowAtGap: true},
		"a pool counts judged requests":            {poolJudged: true},
		"a pool counts unjudged windows":           {poolAll: true},
	} {
		t.Run(name, func(t *testing.T) {
			const feeds = 150
			changed := 0
			for seed := range uint64(feeds) {
				c := randomCase(seed)
				if !sameEvents(runOracle(c.rules, c.feed, c.last, readings{}), runOracle(c.rules, c.feed, c.last, other)) {
					changed++
				}
			}
			if changed == 0 {
				t.Errorf("none of %d feeds depends on it", feeds)
			}
			t.Logf("%d of %d feeds depend on it", changed, feeds)
		})
	}
}

// TestATickPastTheEndIsNoneOfTheFeeds: scenario-a ends at 27; at 28 it would
// have become HALF_OPEN.
func TestATickPastTheEndIsNoneOfTheFeeds(t *testing.T) {
	for last, want := range map[int]string{
		27: "22 CLOSED->OPEN violations\n",
		28: "22 CLOSED->OPEN violations\n28 OPEN->HALF_OPEN cooldown\n",
	} {
		feed, err := simulate.NewRecorded(scenarioA(last+1), nil)
		if err != nil {
			t.Fatal(err)
		}
		out, err := simulate.Run(plan(published()), feed, simulate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := transitions(out); got != want {
			t.Errorf("up to %d: got\n%swant\n%s", last, got, want)
		}
		if last == 27 && (out.State.Breaker.Phase != release.Open || out.Last.Phase != release.Open || !out.Last.Weight.IsZero()) {
			t.Errorf("up to 27: ends %s, says %s at %s", out.State.Breaker.Phase, out.Last.Phase, out.Last.Weight)
		}
	}
}

// oCase is a random feed with its rules and a ladder.
type oCase struct {
	rules  oRules
	feed   []oWindow
	last   int
	ladder string
	steps  []ladder.Step
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func randomCase(seed uint64) oCase {
	r := rand.New(rand.NewPCG(seed, 6))
	c := oCase{rules: randomRules(r), last: 40 + r.IntN(160)}
	c.feed = randomFeed(r, c.rules, c.last)
	c.ladder, c.steps = randomLadder(r, c.rules.limits())
	return c
}

func randomRules(r *rand.Rand) oRules {
	return oRules{
		violationLimit:      1 + r.Int64N(6),
		violationRate:       pick(r, "0.0005", "0.001", "0.0333", "0.02", "0.1", "0"),
		violationMultiplier: pick(r, "10.0", "3.5", "1", "7.3"),
		fastSpan:            1 + r.IntN(9),
		costLimit:           pick(r, "2.0", "1.15", "1.333"),
		p99Baseline:         pick(r, "300", "333.3", "0.7"),
		p99Ratio:            pick(r, "3.0", "1.1", "2.75"),
		transferRate:        pick(r, "0.02", "0.013", "0.05"),
		transferRatio:       pick(r, "3.0", "2.5", "4"),
		minTransfers:        r.Int64N(6),
		costMinSamples:      pick[int64](r, 0, 0, 5, 30),
		p99MinSamples:       pick[int64](r, 0, 0, 5, 30),
		solveBaseline:       pick(r, "0.90", "0.85", "0.999", "0.667"),
		dropPP:              pick(r, "10", "5", "2.5", "0.9"),
		minSamples:          pick[int64](r, 0, 1, 20, 50, 200, 200),
		slowSpan:            pick(r, 1, 5, 10, 25, 25, 40),
		lag:                 pick(r, 0, 0, 0, 1, 2, 7, 30),
		cooldown:            r.IntN(16),
		trials:              1 + r.IntN(6),
		successRate:         pick(r, "0.8", "0.8", "0.75", "0.5", "1", "0.667"),
		lock:                r.IntN(3) == 0,
		minRequests:         pick[int64](r, 0, 0, 10, 60, 300),
		maxAttempts:         r.IntN(4),
	}
}

// habits say how a stretch of a feed behaves.
type habits struct {
	until                                int
	traffic                              int64
	gap, empty, unjudged, partly, missed float64
	violation, transfer, costly, slow    float64 // chances: a request's, a request's, a window's, a window's
	solve                                float64
}

func randomHabits(r *rand.Rand, from int, floor float64) habits {
	h := habits{
		until:    from + 3 + r.IntN(40),
		traffic:  pick[int64](r, 1, 4, 8, 26, 100, 2000),
		gap:      pick(r, 0, 0, 0.1, 0.5),
		empty:    pick(r, 0, 0, 0.1, 0.4),
		unjudged: pick(r, 0, 0, 0.1, 0.5),
		partly:   pick(r, 0, 0, 0.5, 1),
		missed:   pick(r, 0, 0, 0, 0.2, 1),
		solve:    min(1, floor+pick(r, -0.1, -0.01, 0, 0, 0.01, 0.1, 0.1, 0.2)),
	}
	if r.IntN(2) == 0 { // a fault
		h.violation = pick(r, 0, 0, 0.001, 0.02, 0.1)
		h.transfer = pick(r, 0, 0, 0.03, 0.06, 0.2)
		h.costly = pick(r, 0, 0, 0, 0.1)
		h.slow = pick(r, 0, 0, 0, 0.1)
	}
	return h
}

func randomFeed(r *rand.Rand, rules oRules, last int) (ws []oWindow) {
	floor := toFloat(rules.floor())
	h := randomHabits(r, 0, floor)
	for m := 0; m <= last; m++ {
		if m >= h.until {
			h = randomHabits(r, m, floor)
		}
		if r.Float64() < h.gap {
			continue
		}
		ws = append(ws, randomWindow(r, rules, h, m))
	}
	return ws
}

func randomWindow(r *rand.Rand, rules oRules, h habits, m int) oWindow {
	w := oWindow{minute: m, judged: -1}
	if r.Float64() < h.empty {
		if r.IntN(2) == 0 {
			w.solved, w.violations, w.transfers = -1, -1, -1
		}
		return w
	}
	w.total = 1 + h.traffic/2 + r.Int64N(h.traffic)
	n := w.total
	switch {
	case r.Float64() < h.unjudged:
		w.judged, n = 0, 0
	case r.Float64() < h.partly:
		w.judged = r.Int64N(w.total + 1)
		n = w.judged
	}
	w.solved = min(n, max(0, int64(h.solve*float64(n)+r.Float64())))
	w.violations, w.transfers = draw(r, w.total, h.violation), draw(r, w.total, h.transfer)
	w.cost, w.p99 = below(r, rat(rules.costLimit)), below(r, rules.p99Limit())
	if r.Float64() < h.costly {
		w.cost = past(r, rat(rules.costLimit))
	}
	if r.Float64() < h.slow {
		w.p99 = past(r, rules.p99Limit())
	}
	for _, lose := range []func(){
		func() { w.solved, w.judged = -1, -1 }, func() { w.violations = -1 }, func() { w.transfers = -1 },
		func() { w.cost = "" }, func() { w.p99 = "" },
	} {
		if r.Float64() < h.missed {
			lose()
		}
	}
	return w
}

func draw(r *rand.Rand, n int64, p float64) (k int64) {
	if p == 0 {
		return 0
	}
	for range n {
		if r.Float64() < p {
			k++
		}
	}
	return k
}

// below and past return decimals on either side of a limit, often at it or
// next to it.
func below(r *rand.Rand, limit *big.Rat) string {
	return shift(limit, -pick(r, 0.001, 0.01, 0.3, 0.5))
}

func past(r *rand.Rand, limit *big.Rat) string {
	return shift(limit, pick(r, 0, 0, 0.001, 0.5))
}

func shift(limit *big.Rat, by float64) string {
	x := new(big.Rat).Add(limit, rat(strconv.FormatFloat(by, 'f', 6, 64)))
	return x.FloatString(6)
}

func (o oRules) floor() *big.Rat {
	return new(big.Rat).Sub(rat(o.solveBaseline), new(big.Rat).Quo(rat(o.dropPP), frac(100, 1)))
}

func (o oRules) p99Limit() *big.Rat { return new(big.Rat).Mul(rat(o.p99Baseline), rat(o.p99Ratio)) }

func toFloat(r *big.Rat) float64 {
	f, _ := r.Float64()
	return f
}

// limits forms the breaker's limits from the rules, as the configuration does.
func (o oRules) limits() breaker.Limits {
	product := func(a, b string) release.Ratio { return exact(new(big.Rat).Mul(rat(a), rat(b))) }
	minutes := func(n int) time.Duration { return time.Duration(n) * time.Minute }
	return breaker.Limits{
		FastSpan: minutes(o.fastSpan), ViolationLimit: o.violationLimit, ViolationRate: product(o.violationRate, o.violationMultiplier),
		MinTransfers: o.minTransfers, TransferRate: product(o.transferRate, o.transferRatio),
		CostRatio: toFloat(rat(o.costLimit)), CostMinSamples: o.costMinSamples, P99MS: toFloat(o.p99Limit()), P99MinSamples: o.p99MinSamples,
		SlowSpan: minutes(o.slowSpan), LabelLag: minutes(o.lag), SolveFloor: exact(o.floor()), MinSamples: o.minSamples,
		Cooldown: minutes(o.cooldown), Trials: int64(o.trials), SuccessRate: exact(rat(o.successRate)), ProbeMinRequests: o.minRequests,
		LockOnEscalate: o.lock, MaxRecoveries: int64(o.maxAttempts), Keep: minutes(max(o.fastSpan, o.lag+o.slowSpan)),
	}
}

func exact(r *big.Rat) release.Ratio {
	x, err := release.RatioOf(r)
	if err != nil {
		panic(err)
	}
	return x
}

func randomLadder(r *rand.Rand, l breaker.Limits) (string, []ladder.Step) {
	switch r.IntN(4) {
	case 0:
		return "published", plan(l).Steps
	case 1:
		return "one step, time only", []ladder.Step{{Weight: release.Weight{Slots: 100, Ring: 100}, Gates: ladder.TimeGate, MinHold: minutes(r.IntN(30)), Limits: l}}
	}
	name, steps := "short", []ladder.Step(nil)
	for _, pct := range []int64{1, 5, 10, 30, 100} {
		s := ladder.Step{Weight: release.Weight{Slots: pct, Ring: 100}, MinHold: minutes(r.IntN(12)), Limits: l}
		s.Gates = pick(r, ladder.TimeGate, ladder.TimeGate, ladder.TimeGate|ladder.MetricGate, ladder.MetricGate)
		name += fmt.Sprintf(" %d:%s/%d", pct, s.MinHold, s.Gates)
		steps = append(steps, s)
	}
	return name, steps
}

func minutes(n int) time.Duration { return time.Duration(n) * time.Minute }

// window is the figure-carrying form that the breaker reads.
func (w oWindow) window() release.Window {
	out := release.Window{T: t0.Add(minutes(w.minute)), Span: time.Minute, Arm: release.Canary, Total: w.total}
	if n, ok := w.judgedCount(); ok {
		out.Judged, out.Solved, out.Known = n, w.solved, out.Known|release.HasSolved
	}
	if w.violations >= 0 {
		out.Violations, out.Known = w.violations, out.Known|release.HasViolations
	}
	if w.transfers >= 0 {
		out.Transfers, out.Known = w.transfers, out.Known|release.HasTransfers
	}
	if w.cost != "" {
		out.Cost, out.Known = toFloat(rat(w.cost)), out.Known|release.HasCost
	}
	if w.p99 != "" {
		out.P99MS, out.Known = toFloat(rat(w.p99)), out.Known|release.HasP99
	}
	return out
}

// replayEvents runs the feed through simulate.Run. Stable's windows at the
// first and last minute give the feed its length, gaps at its ends included.
func replayEvents(t *testing.T, c oCase) (events []oEvent) {
	t.Helper()
	var canary []release.Window
	for _, w := range c.feed {
		canary = append(canary, w.window())
	}
	stable := []release.Window{minute(0, 10, 9, 0, 0), minute(c.last, 10, 9, 0, 0)}
	feed, err := simulate.NewRecorded(canary, stable)
	if err != nil {
		t.Fatal(err)
	}
	p := &ladder.Plan{Service: "s", Digest: "d", Candidate: "c", Steps: c.steps}
	out, err := simulate.Run(p, feed, simulate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range out.Events {
		events = append(events, oEvent{e.Minute, e.From, e.To, e.Finding.Signal, e.Escalated, e.Locked})
	}
	return events
}

func sameEvents(a, b []oEvent) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func printEvents(es []oEvent) string {
	var b strings.Builder
	for _, e := range es {
		fmt.Fprintf(&b, "  %d %s->%s %s escalated=%v locked=%v\n", e.minute, e.from, e.to, e.signal, e.escalated, e.locked)
	}
	return b.String()
}

// around prints the windows near the first disagreement.
func around(c oCase, got, want []oEvent) string {
	at := c.last
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			for _, es := range [][]oEvent{got, want} {
				if i < len(es) {
					at = min(at, es[i].minute)
				}
			}
			break
		}
	}
	var b strings.Builder
	for _, w := range c.feed {
		if w.minute > at-12 && w.minute < at+4 {
			fmt.Fprintf(&b, "  %+v\n", w)
		}
	}
	return b.String()
}
