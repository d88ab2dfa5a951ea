package calibrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

var firstMonday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

var usual = ReplayOptions{
	Drops: []release.Ratio{release.MustRatio("5"), release.MustRatio("10")}, GridStep: -1,
	PerWeek: 0.1, TolerableDropPP: release.MustRatio("5"),
}

// steadyWorld is a baseline that solves 0.9 of its requests, so exactly as they can
// be counted, but for noise.
type steadyWorld struct {
	perMin int64
	span   time.Duration
	days   int
	tau    float64 // of the rate, anew every 10 minutes
	every  bool    // with every figure, not only outcomes
}

func (w steadyWorld) windows() []release.Window {
	rng := rand.New(rand.NewPCG(1, 2))
	minutes := int64(w.span / time.Minute)
	var out []release.Window
	rate := 0.9
	for i := range int64(w.days) * 24 * 60 / minutes {
		if i*minutes%10 == 0 {
			rate = min(0.9+w.tau*rng.NormFloat64(), 1)
		}
		n := w.perMin * minutes
		x := release.Window{
			T: firstMonday.Add(time.Duration(i) * w.span), Span: w.span, Arm: release.Stable,
			Total: n, Judged: n, Solved: int64(rate*float64(n) + 0.5), Known: release.HasSolved,
		}
		if w.every {
			x.Judged -= n / 20
			x.Solved -= n / 20
			x.Transfers, x.Slow, x.CostMean = n/50, n/100, 0.004
			if rng.Float64() < 0.0001*float64(n) {
				x.Violations = 1
			}
			x.Known |= release.HasViolations | release.HasTransfers | release.HasSlow | release.HasCostMean
		}
		out = append(out, x)
	}
	return out
}

// publishedLadder is the published configuration, with the p99 judged by its
// count form.
func publishedLadder() *ladder.Plan {
	p := &ladder.Plan{Service: "s", Digest: "d", Candidate: "c"}
	for _, s := range []struct {
		slots int64
		hold  time.Duration
	}{{1, 2 * time.Hour}, {5, 4 * time.Hour}, {10, 4 * time.Hour}, {30, 12 * time.Hour}, {100, 24 * time.Hour}} {
		p.Steps = append(p.Steps, ladder.Step{
			Weight: release.Weight{Slots: s.slots, Ring: 100}, MinHold: s.hold,
			Gates: ladder.TimeGate | ladder.MetricGate,
			Limits: breaker.Limits{
				FastSpan: 5 * time.Minute, ViolationLimit: 3, ViolationRate: release.MustRatio("0.005"),
				MinTransfers: 3, TransferRate: release.MustRatio("0.06"), CostRatio: 2,
				P99ByCount: true, SlowRate: release.MustRatio("0.05"), MinSlow: 5,
				SlowSpan: 25 * time.Minute, SolveBaseline: release.MustRatio("0.9"),
				SolveFloor: release.MustRatio("0.8"), MinSamples: 200,
				Cooldown: 6 * time.Minute, Trials: 5, SuccessRate: release.MustRatio("0.8"), LockOnEscalate: true, MaxRecoveries: 3,
				Keep: 25 * time.Minute,
			},
		})
	}
	return p
}

// lone is a plan of one step that judges the solve rate alone.
func lone(slots int64, drop string, minSamples int64) *ladder.Plan {
	p := publishedLadder()
	p.Steps = p.Steps[:1]
	s := &p.Steps[0]
	s.Weight.Slots = slots
	s.Limits = solveOnly(&s.Limits)
	s.Limits.MinSamples = minSamples
	s.Limits.SolveFloor = release.MustRatio(drop)
	return p
}

func replayOf(tb testing.TB, baseline []release.Window, plan *ladder.Plan, o ReplayOptions) *Replay {
	tb.Helper()
	r, err := NewReplay(baseline, plan, o)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// runs replays so many seeds from 1 on.
func runs(tb testing.TB, r *Replay, n int) []*ReplayRun {
	tb.Helper()
	var all []*ReplayRun
	for seed := range n {
		run, err := r.Run(uint64(seed+1), nil)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, run)
	}
	return all
}

// tripsPerWeek is of the first step, without the rest of a run.
func tripsPerWeek(r *Replay, seeds int) float64 {
	n := int64(0)
	for seed := range seeds {
		p := &pass{r: r, seed: uint64(seed + 1)}
		p.draw()
		p.thin(0)
		for _, k := range p.falseTrips(&r.plan.Steps[0].Limits) {
			n += k
		}
	}
	return float64(n) / float64(seeds)
}

// drops are the injected ones of the first step, without the rest of a run.
func drops(r *Replay, seeds int) []Detection {
	all := make([]*ReplayRun, seeds)
	for seed := range seeds {
		p := &pass{r: r, seed: uint64(seed + 1)}
		p.draw()
		p.thin(0)
		all[seed] = &ReplayRun{steps: make([]stepRun, 1)}
		p.faults(0, &r.plan.Steps[0].Limits, all[seed])
	}
	return r.step(all, 0).Drops
}

// TestPublishedFalseTripRates are those of statistics that are known from
// elsewhere.
func TestPublishedFalseTripRates(t *testing.T) {
	t.Run("a fixed drop of 5 points at 10 requests a minute: some 11 a week", func(t *testing.T) {
		t.Parallel()
		// Simulated before, with exactly 10 requests in every minute: 11.5.
		r := replayOf(t, steadyWorld{perMin: 1000, span: time.Minute, days: 7}.windows(), lone(1, "0.85", 200), ReplayOptions{GridStep: -1})
		if got := tripsPerWeek(r, 100); got < 10.5 || got > 12.8 {
			t.Errorf("%v false trips a week", got)
		}
	})
	t.Run("three sigma on a window of 25 minutes looked at every minute: 3.2 a week", func(t *testing.T) {
		t.Parallel()
		// Siegmund's approximation (Siegmund 1985): 3.21; the share's own chance
		// is all the noise there is, and a rate of a half has no skew.
		baseline := steadyWorld{perMin: 100_000, span: time.Minute, days: 1}.windows()
		for i := range baseline {
			baseline[i].Solved = baseline[i].Judged / 2
		}
		r := replayOf(t, baseline, lone(1, "0.49051317", 24_000), ReplayOptions{GridStep: -1})
		if got := tripsPerWeek(r, 200); got < 2.9 || got > 3.5 {
			t.Errorf("%v false trips a week, want about 3.2", got)
		}
	})
}

// TestEveryJudgeIsReplayed: a fitted threshold of four sigma has the 0.11 false
// trips a week that it should, and a cumulative sum with the limit for 0.1 finds
// drops as fast as it was simulated to, before, on 8 requests in every minute.
func TestEveryJudgeIsReplayed(t *testing.T) {
	fitted := lone(1, "0.85", 200)
	fitted.Steps[0].Limits.Noise = breaker.Noise{Z: 4}
	r := replayOf(t, steadyWorld{perMin: 1000, span: time.Minute, days: 7}.windows(), fitted, usual)
	if got := tripsPerWeek(r, 100); got < 0.05 || got > 0.2 {
		t.Errorf("fitted: %v false trips a week, want about 0.11", got)
	}
	sum := lone(1, "0.85", 200)
	sum.Steps[0].Limits.Judge = breaker.CusumJudge
	sum.Steps[0].Limits.Cusum = breaker.Cusum{Drop: release.MustRatio("0.05"), Limit: 8.3}
	o := usual
	o.Drops = append(slices.Clone(o.Drops), release.MustRatio("20"))
	r = replayOf(t, steadyWorld{perMin: 800, span: time.Minute, days: 7}.windows(), sum, o)
	found := drops(r, 60)
	for i, want := range []float64{79, 28, 12} { // means; the median of a skew delay lies below
		d := found[i]
		if d.Found != 60 || *d.DelayP50 > want+2 || *d.DelayP50 < 0.7*want {
			t.Errorf("cumulative sum, drop of %v: %d found, median %v, want about %v", d.DropPP, d.Found, show(d.DelayP50), want)
		}
	}
}

// TestDropsAreFoundWhenTheSpanIsFullOfThem: a drop that begins in steady state
// is found when the part of the span that lies after it makes up the threshold,
// slow span x threshold / drop, whatever the traffic.
func TestDropsAreFoundWhenTheSpanIsFullOfThem(t *testing.T) {
	o := usual
	o.Drops = []release.Ratio{release.MustRatio("10"), release.MustRatio("12.5"), release.MustRatio("20"), release.MustRatio("40")}
	for _, perMin := range []int64{2600, 10_000} {
		r := replayOf(t, steadyWorld{perMin: perMin, span: time.Minute, days: 7}.windows(), lone(1, "0.80", 200), o)
		got := drops(r, 60)
		// Medians of a simulation with the same number of requests in every
		// minute: 26, 21, 13; 40 points: 25 x 10/40.
		for i, want := range []float64{26, 21, 13, 7} {
			d := got[i]
			if d.Runs != 60 || d.DelayP50 == nil || *d.DelayP50 < want-2.5 || *d.DelayP50 > want+2.5 {
				t.Errorf("%d a minute, drop %v: %d of %d found, median %v, want about %v", perMin/100, d.DropPP, d.Found, d.Runs, show(d.DelayP50), want)
			}
			if d.DelayP50 != nil && d.ExposureP50 != nil {
				if perTick := *d.ExposureP50 / *d.DelayP50; perTick < 0.85*float64(perMin)/100 || perTick > 1.15*float64(perMin)/100 {
					t.Errorf("%d a minute, drop %v: %v requests exposed in %v minutes", perMin/100, d.DropPP, *d.ExposureP50, *d.DelayP50)
				}
			}
		}
	}
}

func show(f *float64) any {
	if f == nil {
		return nil
	}
	return *f
}

// TestNoiseThatIsPlantedTrips: with a rate that moves, three sigma of chance
// alone trip more often than four, and those more often than without noise.
func TestNoiseThatIsPlantedTrips(t *testing.T) {
	rate := func(tau float64, floor string) float64 {
		r := replayOf(t, steadyWorld{perMin: 2600, span: time.Minute, days: 14, tau: tau}.windows(), lone(1, floor, 200), ReplayOptions{GridStep: -1})
		return tripsPerWeek(r, 20)
	}
	// 650 requests at 0.9: sigma 1.18 points.
	const three, four = "0.8647", "0.8529"
	noisy3, noisy4, quiet4 := rate(0.02, three), rate(0.02, four), rate(0, four)
	if !(noisy3 > 2*noisy4 && noisy4 > 2*quiet4) {
		t.Errorf("false trips a week: %v at 3 sigma, %v at 4, %v at 4 without noise", noisy3, noisy4, quiet4)
	}
}

// TestSameSeedSameBytes whatever runs before or beside it; another seed is
// another week.
func TestSameSeedSameBytes(t *testing.T) {
	o := usual
	o.GridStep, o.CostCV, o.PlainDropPP, o.PlainMinSamples = 2, 1.5, release.MustRatio("5"), 200
	r := replayOf(t, steadyWorld{perMin: 600, span: 10 * time.Minute, days: 8, tau: 0.02, every: true}.windows(), publishedLadder(), o)
	const n = 4
	forward := runs(t, r, n)
	backward := make([]*ReplayRun, n)
	done := make(chan struct{})
	for i := range n {
		go func() {
			backward[n-1-i], _ = r.Run(uint64(n-i), nil)
			done <- struct{}{}
		}()
	}
	for range n {
		<-done
	}
	a, b := document(t, r.Merge(forward)), document(t, r.Merge(backward))
	if !bytes.Equal(a, b) {
		t.Errorf("the same seeds came to\n%s\nand to\n%s", a, b)
	}
	other, err := r.Run(n+1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(document(t, r.Merge(forward[:1])), document(t, r.Merge([]*ReplayRun{other}))) {
		t.Error("two seeds came to the same")
	}
}

func document(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestWhatIsAskedForMoreDoesNotMoveTheRest: every purpose has its own numbers.
func TestWhatIsAskedForMoreDoesNotMoveTheRest(t *testing.T) {
	baseline := steadyWorld{perMin: 600, span: time.Minute, days: 7, every: true}.windows()
	plain := replayOf(t, baseline, publishedLadder(), ReplayOptions{GridStep: -1})
	more := usual
	more.GridStep, more.CostCV = 1, 0.1
	full := replayOf(t, baseline, publishedLadder(), more)
	a, b := plain.Merge(runs(t, plain, 2)), full.Merge(runs(t, full, 2))
	for i := range a.Steps {
		for _, signal := range []string{"transfers", "p99", "violations", "solve_rate"} {
			if a.Steps[i].BySignal[signal] != b.Steps[i].BySignal[signal] {
				t.Errorf("step %d %s: %v without cost, drops and grid, %v with them", i, signal, a.Steps[i].BySignal[signal], b.Steps[i].BySignal[signal])
			}
		}
	}
	if a.Release != b.Release {
		t.Errorf("releases: %+v and %+v", a.Release, b.Release)
	}
}

// TestAGapStaysAGapAndNothingIsNoRequest in the week and in the release.
func TestAGapStaysAGapAndNothingIsNoRequest(t *testing.T) {
	var baseline []release.Window
	for _, w := range (steadyWorld{perMin: 50, span: time.Minute, days: 9, every: true}).windows() {
		switch {
		case w.T.Hour() == 3:
			continue
		case w.T.Hour() == 4:
			w = release.Window{T: w.T, Span: w.Span, Arm: w.Arm, Known: w.Known}
		}
		baseline = append(baseline, w)
	}
	r := replayOf(t, baseline, publishedLadder(), usual)
	p := &pass{r: r, seed: 3}
	p.draw()
	p.thin(3)
	feed := &replayFeed{
		stream:  r.history.newStream(newDice(3, drawRelease, 0), newDice(3, drawReSplit, 0), 700),
		thinner: thinner{r: r, requests: newDice(3, drawReThin, 0), costs: newDice(3, drawReleaseC, 0)}, left: 5000, last: 5000,
	}
	for i := range p.week {
		w := &p.canary[i]
		tick, err := feed.Next(release.Weight{Slots: 50, Ring: 100})
		if err != nil {
			t.Fatal(err)
		}
		switch w.T.Hour() {
		case 3:
			if !p.week[i].gap || w.Span != 0 || w.Total != 0 {
				t.Fatalf("%s is a gap in every day, and here %+v", w.T, *w)
			}
		case 4:
			if p.week[i].gap || w.Span == 0 || w.Total != 0 || w.Judged != 0 {
				t.Fatalf("%s is seen to be empty every day, and here it is %+v", w.T, *w)
			}
		default:
			if p.week[i].gap || w.Span != time.Minute || w.T.Minute() != i%60 {
				t.Fatalf("tick %d: %+v", i, *w)
			}
		}
		if got, want := len(tick.Canary), tick.T.Hour() != 3; got == 1 != want {
			t.Fatalf("%s: %d windows of the canary in the release", tick.T, got)
		}
	}
}

// TestBlocksKeepTheirPlaceInTheDay and weekdays do not mix with weekends.
func TestBlocksKeepTheirPlaceInTheDay(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	var baseline []release.Window
	for i := range 14 * 24 * 60 { // 2026-03-29 has 23 hours in Berlin
		at := time.Date(2026, 3, 18, 5, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Minute)
		local := at.In(zone)
		w := release.Window{T: at, Span: time.Minute, Total: int64(1000 + 60*local.Hour() + local.Minute()), Known: release.HasTransfers}
		if d := local.Weekday(); d == time.Saturday || d == time.Sunday {
			w.Total += 10_000
		}
		w.Transfers = int64(local.YearDay())
		baseline = append(baseline, w)
	}
	r := replayOf(t, baseline, publishedLadder(), ReplayOptions{GridStep: -1, Zone: zone})
	days := map[int64]bool{}
	for seed := range uint64(20) {
		p := &pass{r: r, seed: seed}
		p.draw()
		for i := range p.week {
			l := p.week[i]
			want := int64(1000 + i%(24*60))
			if i >= 5*24*60 {
				want += 10_000
			}
			if l.gap {
				if hour := i / 60 % 24; hour != 2 || i < 5*24*60 {
					t.Fatalf("tick %d is a gap", i)
				}
				continue
			}
			if l.total() != want {
				t.Fatalf("tick %d has %d requests: another clock or kind of day", i, l.total())
			}
			days[l.transfers] = true
		}
	}
	if len(days) < 14 {
		t.Errorf("only %d days were drawn from", len(days))
	}
	if got := r.history.start.In(zone); got.Weekday() != time.Monday || got.Hour() != 0 {
		t.Errorf("weeks begin on %s", got)
	}
}

// TestWithoutTwoWeekendDaysAllDaysAreAlike.
func TestWithoutTwoWeekendDaysAllDaysAreAlike(t *testing.T) {
	for days, apart := range map[int]bool{1: false, 5: false, 6: false, 7: true} {
		r := replayOf(t, steadyWorld{perMin: 10, span: time.Minute, days: days}.windows(), publishedLadder(), ReplayOptions{GridStep: -1})
		if r.history.apart != apart {
			t.Errorf("%d days from Monday on: kept apart is %v", days, r.history.apart)
		}
		p := &pass{r: r, seed: 1}
		p.draw()
		if n := slices.IndexFunc(p.week, func(l *load) bool { return l.gap }); n >= 0 {
			t.Errorf("%d days: tick %d is a gap", days, n)
		}
	}
}

// TestLongWindowsAreSplitRequestByRequest: their ticks add up to them, and each
// tick has its share.
func TestLongWindowsAreSplitRequestByRequest(t *testing.T) {
	r := replayOf(t, steadyWorld{perMin: 100, span: 10 * time.Minute, days: 7, every: true}.windows(), publishedLadder(), ReplayOptions{GridStep: -1})
	p := &pass{r: r, seed: 1}
	p.draw()
	var minute [10]int64
	for i := 0; i < len(p.week); i += 10 {
		var sum load
		for k := range 10 {
			l := p.week[i+k]
			minute[k] += l.total()
			sum.solved += l.solved
			sum.unsolved += l.unsolved
			sum.unjudged += l.unjudged
			sum.transfers += l.transfers
			sum.slow += l.slow
		}
		if sum.solved != 850 || sum.unsolved != 100 || sum.unjudged != 50 || sum.transfers != 20 || sum.slow != 10 {
			t.Fatalf("ten minutes from %d on add up to %+v", i, sum)
		}
	}
	for k, n := range minute { // 100,800 in the mean, with a standard deviation of 301
		if n < 99_400 || n > 102_200 {
			t.Errorf("minute %d has %d requests in all", k, n)
		}
	}
}

// TestAWindowThatABlockCutsGivesItsPart.
func TestAWindowThatABlockCutsGivesItsPart(t *testing.T) {
	baseline := steadyWorld{perMin: 100, span: 10 * time.Minute, days: 3}.windows()
	for i := range baseline {
		baseline[i].T = baseline[i].T.Add(-4 * time.Minute)
	}
	h, err := newHistory(baseline, time.Minute, 6*time.Hour, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	sum, ticks := int64(0), 0
	for seed := range uint64(50) {
		s := h.newStream(newDice(seed, drawBlocks, 0), newDice(seed, drawSplit, 0), 0)
		for i := range 4 * 24 * 60 {
			if l := s.take(new(load)); i%360 < 6 && !l.gap { // the rest of a window of which 4 minutes lie in the block before
				sum += l.total()
				ticks++
			}
		}
	}
	if mean := float64(sum) / float64(ticks); ticks < 4500 || mean < 99 || mean > 101 {
		t.Errorf("%v requests in each of %d minutes after a cut, want 100", mean, ticks)
	}
}

// TestShortWindowsAreJoined to ticks.
func TestShortWindowsAreJoined(t *testing.T) {
	var baseline []release.Window
	for i := range 2 * 24 * 60 * 4 {
		baseline = append(baseline, release.Window{
			T: firstMonday.Add(time.Duration(i) * 15 * time.Second), Span: 15 * time.Second, Total: int64(i%4 + 1), Judged: 1, Solved: 1, Known: release.HasSolved,
		})
	}
	r := replayOf(t, baseline, publishedLadder(), ReplayOptions{GridStep: -1})
	p := &pass{r: r, seed: 1}
	p.draw()
	for i := range p.week {
		if l := p.week[i]; l.total() != 10 || l.solved != 4 || l.unjudged != 6 {
			t.Fatalf("tick %d: %+v", i, l)
		}
	}
}

// TestTheWholeTrafficHasNoControl, and less has it.
func TestTheWholeTrafficHasNoControl(t *testing.T) {
	o := ReplayOptions{GridStep: -1, CostCV: 1}
	r := replayOf(t, steadyWorld{perMin: 600, span: time.Minute, days: 7, every: true}.windows(), publishedLadder(), o)
	p := &pass{r: r, seed: 1}
	p.draw()
	for step, all := range map[int]bool{2: false, 4: true} {
		p.thin(step)
		ratio := 0.0
		for i := range p.canary {
			w, whole := &p.canary[i], p.week[i]
			switch {
			case !w.Has(release.HasSolved | release.HasViolations | release.HasTransfers | release.HasSlow | release.HasCost), w.Has(release.HasP99):
				t.Fatalf("step %d: figures %b", step, w.Known)
			case all && (w.Total != 600 || w.Has(release.HasControl)):
				t.Fatalf("all traffic is the canary's: %+v", *w)
			case !all && (!w.Has(release.HasControl) || w.ControlJudged+w.Judged != whole.solved+whole.unsolved || w.ControlSolved+w.Solved != whole.solved):
				t.Fatalf("control and canary are not the baseline: %+v of %+v", *w, *whole)
			}
			ratio += w.Cost / float64(len(p.canary))
		}
		if ratio < 0.97 || ratio > 1.03 {
			t.Errorf("step %d: mean cost ratio %v", step, ratio)
		}
	}
}

// TestAnArmThatWasNotAllIsThinnedLess.
func TestAnArmThatWasNotAllIsThinnedLess(t *testing.T) {
	r := replayOf(t, steadyWorld{perMin: 10, span: time.Minute, days: 7}.windows(), publishedLadder(), ReplayOptions{GridStep: -1, ArmShare: 0.5})
	for slots, want := range map[int64]float64{1: 0.02, 40: 0.8, 50: 1, 70: 1, 100: 1} {
		if got := r.keep(release.Weight{Slots: slots, Ring: 100}); got != want {
			t.Errorf("%d slots of a service of whose traffic half was recorded: %v", slots, got)
		}
	}
}

// TestTheGridIsWhatEachThresholdAloneWouldDo.
func TestTheGridIsWhatEachThresholdAloneWouldDo(t *testing.T) {
	o := usual
	o.GridStep = 2
	r := replayOf(t, steadyWorld{perMin: 300, span: time.Minute, days: 7, tau: 0.02}.windows(), publishedLadder(), o)
	if len(r.grid) != 49 || r.grid[0].pp.Float64() != 1 || r.grid[48].pp.Float64() != 25 || r.grid[8].limits.SolveFloor != release.NewRatio(85, 100) {
		t.Fatalf("grid of %d thresholds", len(r.grid))
	}
	p := &pass{r: r, seed: 5}
	p.draw()
	p.thin(2)
	run := &ReplayRun{steps: make([]stepRun, 5), grid: make([]gridRun, len(r.grid))}
	p.faults(2, &r.plan.Steps[2].Limits, run)
	p.thresholds(run)
	tripping, found := 0, 0
	for i := range r.grid {
		alone := gridRun{trips: p.falseTrips(&r.grid[i].limits)[release.SolveRate]}
		alone.drop, _ = p.detect(&r.grid[i].limits, p.warm(&r.grid[i].limits))
		got := run.grid[i]
		if got.trips != alone.trips || got.drop.found != alone.drop.found || got.drop.ticks != alone.drop.ticks || got.drop.found && got.drop.exposure != alone.drop.exposure {
			t.Errorf("%v points: %+v in the grid, %+v alone", r.grid[i].pp, got, alone)
		}
		if got.trips > 0 {
			tripping++
		}
		if got.drop.found {
			found++
		}
	}
	if tripping < 5 || tripping > 45 || found < 10 || found > 45 {
		t.Errorf("%d thresholds trip and %d find the drop: the test compares nothing", tripping, found)
	}
}

// TestTheRecommendedThresholdKeepsTheBudget and is the least that does.
func TestTheRecommendedThresholdKeepsTheBudget(t *testing.T) {
	o := usual
	o.GridStep, o.PerWeek, o.PlainDropPP, o.PlainMinSamples = 0, 0.2, release.MustRatio("5"), 200
	r := replayOf(t, steadyWorld{perMin: 1000, span: time.Minute, days: 7}.windows(), lone(1, "0.8", 200), o)
	weeks := runs(t, r, 20)
	if few := r.Merge(weeks[:14]).Grid; few.Enough || few.RecommendedPP != nil {
		t.Errorf("14 weeks are too few to see 0.2 a week: %v", few.RecommendedPP)
	}
	out := r.Merge(weeks)
	g := out.Grid
	if g == nil || g.RecommendedPP == nil || g.Pct != 0.01 {
		t.Fatalf("grid %+v", g)
	}
	for i := range g.Points {
		p := &g.Points[i]
		if keeps := p.PerWeek.Count <= 4; p.ThresholdPP >= 5 && keeps {
			if *g.RecommendedPP != p.ThresholdPP {
				t.Errorf("recommended %v, the least that keeps the budget is %v", *g.RecommendedPP, p.ThresholdPP)
			}
			break
		}
	}
	if *g.RecommendedPP < 6.5 || *g.RecommendedPP > 9.5 { // four sigma, with skew, of 250: 8.4
		t.Errorf("recommended %v points", *g.RecommendedPP)
	}
	if at5 := g.Points[8]; at5.ThresholdPP != 5 || at5.PerWeek != out.DocPerWeek || at5.PerWeek.Rate < 8 {
		t.Errorf("5 points in the grid %+v, by the plain rule %+v", at5.PerWeek, out.DocPerWeek)
	}
	last := g.Points[len(g.Points)-1]
	if last.DelayP50 != nil || last.Missed == 0 || last.PerWeek.Count != 0 || last.PerWeek.Upper != 0.149787 { // 3/20
		t.Errorf("25 points against a drop of 10: %+v", last)
	}
}

// TestReleases complete when nothing is wrong, and are rolled back by limits
// inside the noise.
func TestReleases(t *testing.T) {
	baseline := steadyWorld{perMin: 1000, span: time.Minute, days: 7}.windows()
	calm, tight := publishedLadder(), publishedLadder()
	for i := range tight.Steps {
		tight.Steps[i].Limits.SolveFloor = release.MustRatio("0.88")
	}
	calm.Steps[1].Gates |= ladder.ApprovalGate
	for i := range calm.Steps {
		calm.Steps[i].Limits = solveOnly(&calm.Steps[i].Limits)
	}
	r := replayOf(t, baseline, calm, ReplayOptions{GridStep: -1})
	got := r.Merge(runs(t, r, 10))
	if got.Release.Completed != 10 || got.Release.RolledBack.Count != 0 || got.Release.RolledBack.Upper != 0.258866 {
		t.Errorf("a healthy canary: %+v", got.Release)
	}
	r = replayOf(t, baseline, tight, ReplayOptions{GridStep: -1})
	got = r.Merge(runs(t, r, 10))
	if got.Release.RolledBack.Count < 9 || got.Release.RolledBack.Rate > 1 || got.Release.RolledBack.Upper > 1 {
		t.Errorf("limits inside the noise: %+v", got.Release)
	}
	most := slices.MaxFunc(got.Steps, func(a, b ReplayedStep) int { return int(a.PerWeek.Count - b.PerWeek.Count) }).PerWeek
	if got.JointPerWeek != most || most.Count == 0 {
		t.Errorf("joint %+v, the step with most has %+v", got.JointPerWeek, most)
	}
}

// TestASignalThatCannotBeReplayedIsNotSaidToBeQuiet.
func TestASignalThatCannotBeReplayedIsNotSaidToBeQuiet(t *testing.T) {
	plan := publishedLadder()
	plan.Steps[0].Limits.P99ByCount = false
	plan.Steps[1].Limits.Rules[release.Transfers].Mode = release.Observe
	o := ReplayOptions{GridStep: 0} // no cv of the cost
	r := replayOf(t, steadyWorld{perMin: 100, span: time.Minute, days: 7, every: true}.windows(), plan, o)
	steps := r.Merge(runs(t, r, 1)).Steps
	for step, want := range []string{"solve_rate transfers violations", "p99 solve_rate violations", "p99 solve_rate transfers violations"} {
		var names []string
		for name := range steps[step].BySignal {
			names = append(names, name)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != want {
			t.Errorf("step %d: %s, want %s", step, got, want)
		}
	}
	mute := steadyWorld{perMin: 100, span: time.Minute, days: 7}.windows()
	for i := range mute {
		mute[i].Known = 0
	}
	o.Drops = usual.Drops
	r = replayOf(t, mute, plan, o)
	got := r.Merge(runs(t, r, 1))
	if got.Grid != nil || len(got.Steps[0].BySignal) != 0 || got.Steps[0].Drops[0].Runs != 0 {
		t.Errorf("a baseline without outcomes: %s", document(t, got))
	}
}

// TestReplayRefuses what it cannot lay out.
func TestReplayRefuses(t *testing.T) {
	good := steadyWorld{perMin: 10, span: time.Minute, days: 2}.windows()
	change := func(f func(ws []release.Window)) []release.Window {
		ws := slices.Clone(good)
		f(ws)
		return ws
	}
	for _, tc := range []struct {
		name string
		ws   []release.Window
		o    ReplayOptions
		want string
	}{
		{"nothing", nil, usual, "less than a day"},
		{"23 hours", good[:23*60], usual, "less than a day"},
		{"a window of 90 seconds", change(func(ws []release.Window) { ws[5].Span = 90 * time.Second; ws[6].T = ws[6].T.Add(30 * time.Second) }), usual, "00:05:00Z is 90 seconds long"},
		{"a window without length", change(func(ws []release.Window) { ws[7].Span = 0 }), usual, "00:07:00Z is 0 seconds long"},
		{"an overlap", change(func(ws []release.Window) { ws[6].T = ws[5].T }), usual, "begins before the one before it ends"},
		{"blocks of 7 hours", good, ReplayOptions{Block: 7 * time.Hour, GridStep: -1}, "do not fill a day"},
		{"a step that is none", good, ReplayOptions{GridStep: 5}, "step 6"},
		{"a drop of all and more", good, ReplayOptions{GridStep: -1, Drops: []release.Ratio{release.MustRatio("101")}}, "101 percentage points"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := NewReplay(tc.ws, publishedLadder(), tc.o)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want one with %q", err, tc.want)
			}
			if short := errors.Is(err, ErrReplayShort); short != (tc.want == "less than a day") {
				t.Errorf("that it is too short is %v", short)
			}
		})
	}
	plan := publishedLadder()
	plan.Steps[0].Limits.SolveBaseline = release.Ratio{}
	if _, err := NewReplay(good, plan, ReplayOptions{}); err == nil || !strings.Contains(err.Error(), "solve baseline") {
		t.Errorf("thresholds below no baseline: %v", err)
	}
}

// TestAfterATripTheBreakerRests: a service that solves half trips with its
// 200th request, and again 200 requests after 25 minutes.
func TestAfterATripTheBreakerRests(t *testing.T) {
	baseline := steadyWorld{perMin: 100, span: time.Minute, days: 7}.windows()
	for i := range baseline {
		baseline[i].Solved = 50
	}
	r := replayOf(t, baseline, lone(100, "0.80", 200), ReplayOptions{GridStep: -1})
	if got := tripsPerWeek(r, 1); got != 374 { // one in 27 minutes, the first after 2
		t.Errorf("%v trips", got)
	}
}

// TestTheHourThatComesTwiceIsTakenOnce, the first time.
func TestTheHourThatComesTwiceIsTakenOnce(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	var baseline []release.Window
	for i := range 25 * 60 {
		at := time.Date(2026, 10, 24, 22, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Minute)
		baseline = append(baseline, release.Window{T: at, Span: time.Minute, Total: int64(i)})
	}
	h, err := newHistory(baseline, time.Minute, 6*time.Hour, zone)
	if err != nil {
		t.Fatal(err)
	}
	s := h.newStream(newDice(1, drawBlocks, 0), newDice(1, drawSplit, 0), 0)
	for i := range 24 * 60 {
		want := int64(i)
		if i >= 3*60 {
			want += 60
		}
		if l := s.take(new(load)); l.gap || l.total() != want {
			t.Fatalf("tick %d: %d requests, want those of tick %d", i, l.total(), want)
		}
	}
}

// TestAReleaseThatIsRolledBackIsOver: what comes after it is not looked at.
func TestAReleaseThatIsRolledBackIsOver(t *testing.T) {
	r := replayOf(t, steadyWorld{perMin: 100, span: time.Minute, days: 2}.windows(), publishedLadder(), ReplayOptions{GridStep: -1})
	f := &replayFeed{
		stream:  r.history.newStream(newDice(1, drawRelease, 0), newDice(1, drawReSplit, 0), 0),
		thinner: thinner{r: r, requests: newDice(1, drawReThin, 0), costs: newDice(1, drawReleaseC, 0)}, left: 100, last: 2,
	}
	for i, tc := range []struct {
		slots  int64
		stable int
		more   bool
	}{{0, 1, true}, {5, 1, true}, {100, 0, true}, {0, 1, false}} {
		tick, err := f.Next(release.Weight{Slots: tc.slots, Ring: 100})
		if err != nil || len(tick.Stable) != tc.stable || f.More() != tc.more {
			t.Errorf("tick %d at %d slots: %+v, more %v, error %v", i, tc.slots, tick, f.More(), err)
		}
	}
}

// TestFixedThresholdsLeaveTheRestOfTheLayerAsItIs; the plain rule has its own
// samples and its own span.
func TestFixedThresholdsLeaveTheRestOfTheLayerAsItIs(t *testing.T) {
	plan := publishedLadder()
	l := &plan.Steps[1].Limits
	l.SlowSpanMax, l.MinSamples, l.AgainstStable, l.Judge = 3*time.Hour, 321, true, breaker.CusumJudge
	l.Noise.Z, l.Rules[release.SolveRate].Mode = 4, release.Observe
	o := ReplayOptions{GridStep: 1, PlainDropPP: release.MustRatio("7.25"), PlainMinSamples: 123}
	r := replayOf(t, steadyWorld{perMin: 100, span: time.Minute, days: 2}.windows(), plan, o)
	for name, tc := range map[string]struct {
		got        *breaker.Limits
		floor      string
		minSamples int64
		longest    time.Duration
	}{"grid": {&r.grid[3].limits, "0.875", 321, 3 * time.Hour}, "plain": {r.plain, "0.8275", 123, 0}} {
		got := tc.got
		if got.SolveFloor != release.MustRatio(tc.floor) || got.MinSamples != tc.minSamples || got.SlowSpanMax != tc.longest || got.SlowSpan != l.SlowSpan {
			t.Errorf("%s: floor %v, %d samples, span %v to %v", name, got.SolveFloor, got.MinSamples, got.SlowSpan, got.SlowSpanMax)
		}
		if got.Noise.Z != 0 || got.AgainstStable || got.Judge != breaker.WindowJudge || got.Rules[release.SolveRate].Mode != release.Enforce || got.Rules[release.Cost].Mode != release.Off {
			t.Errorf("%s is not a fixed threshold alone: %+v", name, got)
		}
	}
}

// TestADropBeginsAfterASlowSpanOfWhichAllIsKnown, or is not tried.
func TestADropBeginsAfterASlowSpanOfWhichAllIsKnown(t *testing.T) {
	var half, mostly []release.Window
	for _, w := range (steadyWorld{perMin: 100, span: time.Minute, days: 7}).windows() {
		if w.T.Minute()%20 != 0 {
			half = append(half, w)
		}
		if w.T.Hour() != 3 {
			mostly = append(mostly, w)
		}
	}
	r := replayOf(t, half, publishedLadder(), usual)
	if got := r.Merge(runs(t, r, 2)).Steps[4].Drops[1]; got.Runs != 0 || got.DelayP50 != nil || got.ExposureP50 != nil {
		t.Errorf("never 25 minutes without a gap, and still: %+v", got)
	}
	r = replayOf(t, mostly, publishedLadder(), usual)
	for seed := range uint64(50) {
		p := &pass{r: r, seed: seed}
		p.draw()
		p.thin(4)
		from, ok := p.steady(newDice(seed, drawFault, 4), 50, 25)
		if hour := float64(from%(24*60)) / 60; !ok || from < 50 || from >= 6*24*60 || hour >= 3 && hour < 4+24.0/60 {
			t.Errorf("seed %d: begins at tick %d, %v, in hour %v", seed, from, ok, hour)
		}
	}
}
