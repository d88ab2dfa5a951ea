package calibrate

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// ReplayRun is what one seed came to: a week at every step, drops injected
// into it, and one release.
type ReplayRun struct {
	seed    uint64
	steps   []stepRun
	plain   int64
	grid    []gridRun
	release releaseRun
}

// stepRun is one step over a week.
type stepRun struct {
	trips [release.Judged]int64
	drops []dropRun
}

// dropRun is one injected drop.
type dropRun struct {
	tried    bool // a minute in steady state was found
	found    bool
	ticks    int // from its start to the end of the window that tripped
	exposure int64
}

// gridRun is one fixed threshold over a week, and over the drop.
type gridRun struct {
	trips int64
	drop  dropRun
}

// week is how long the resampled spans are that false trips are counted in.
const week = 7 * 24 * time.Hour

// Run replays one week of everything. It depends on the seed alone. in is the
// memory that it works in; nil: its own.
func (r *Replay) Run(seed uint64, in *Scratch) (*ReplayRun, error) {
	run := &ReplayRun{seed: seed, steps: make([]stepRun, len(r.plan.Steps)), grid: make([]gridRun, len(r.grid))}
	p := in.pass(r, seed)
	p.draw()
	for i := range r.plan.Steps {
		p.thin(i)
		l := &r.plan.Steps[i].Limits
		run.steps[i].trips = p.falseTrips(l)
		p.faults(i, l, run)
		if i == r.o.GridStep {
			p.thresholds(run)
		}
	}
	var err error
	run.release, err = r.climb(seed, &p.kept)
	return run, err
}

// Scratch is the memory that a replay of a week works in, some megabytes. It may
// be used for one seed after another, of any [Replay], but not for two at a time.
type Scratch struct{ p pass }

// pass begins a seed.
func (in *Scratch) pass(r *Replay, seed uint64) *pass {
	if in == nil {
		in = new(Scratch)
	}
	in.p.r, in.p.seed = r, seed
	return &in.p
}

// pass is one seed's week under way.
type pass struct {
	r       *Replay
	seed    uint64
	week    []*load
	parts   []load           // of windows that are longer than a tick, by the tick
	canary  []release.Window // of the step in turn; a window without a span is a gap
	timed   *history         // whose time the canary's windows have
	bad     []release.Window // a stretch of it with a drop injected
	sums    solveSums        // of the canary's windows, or of the bad ones
	breaker breaker.State
	kept    memory
}

// draw resamples the week, which all steps share.
func (p *pass) draw() {
	h := p.r.history
	s := h.newStream(newDice(p.seed, drawBlocks, 0), newDice(p.seed, drawSplit, 0).with(&p.kept), 0)
	n := int(week / h.tick)
	if len(p.week) != n {
		p.week, p.parts, p.canary, p.timed = make([]*load, n), make([]load, n), make([]release.Window, n), nil
	}
	for i := range p.week {
		p.week[i] = s.take(&p.parts[i])
	}
}

// thin draws what the canary sees of the week at a step. All weeks have the same
// time, so only the counts of the windows are written anew.
func (p *pass) thin(step int) {
	r := p.r
	if p.timed != r.history {
		p.timed = r.history
		for i := range p.canary {
			p.canary[i] = release.Window{T: r.history.start.Add(time.Duration(i) * r.history.tick), Arm: release.Canary}
		}
	}
	weight := r.plan.Steps[step].Weight
	t := thinner{r: r, requests: newDice(p.seed, drawThin, step).with(&p.kept), costs: newDice(p.seed, drawCost, step)}
	for i, l := range p.week {
		if l.gap {
			nothing.count(&p.canary[i], 0)
			continue
		}
		t.split(l, weight, &p.canary[i])
	}
}

// thinner divides ticks between the arms.
type thinner struct {
	r               *Replay
	requests, costs *dice
}

// split draws the counts of the canary's window and returns what is left to
// stable, with whom it is compared, and the mean cost of that, 0 where it is not
// known. At the whole traffic there is no stable, and the cost is compared with
// the baseline's, in place of stable's on the day before.
func (t *thinner) split(tick *load, weight release.Weight, canary *release.Window) (rest load, stableMean float64) {
	r := t.r
	kept := tick.part(t.requests, r.keep(weight))
	kept.count(canary, r.history.tick)
	if r.known&tick.known&release.HasCostMean != 0 && tick.costMean > 0 && canary.Total > 0 {
		canary.CostMean, stableMean = tick.prices(t.costs, r.o.CostCV, canary.Total)
		canary.Known |= release.HasCostMean
	}
	if weight.Slots >= weight.Ring {
		if canary.Has(release.HasCostMean) {
			canary.Cost = canary.CostMean / r.costMean
			canary.Known |= release.HasCost
		}
		return load{}, 0
	}
	rest = tick.less(&kept)
	if canary.Has(release.HasSolved) {
		canary.ControlJudged, canary.ControlSolved = rest.solved+rest.unsolved, rest.solved
		canary.Known |= release.HasControl
	}
	if canary.Has(release.HasCostMean) && stableMean > 0 {
		canary.Cost = canary.CostMean / stableMean
		canary.Known |= release.HasCost
	}
	return rest, stableMean
}

// restart is the least time after a trip before the breaker is looked at again.
const restart = 25 * time.Minute

// rest is how many ticks the breaker is not looked at after a trip.
func (p *pass) rest(l *breaker.Limits) int {
	return int(max(l.SlowSpan, restart) / p.r.history.tick)
}

// falseTrips counts the trips of a breaker over the week. After each it begins
// anew with no evidence when a slow span has gone by.
func (p *pass) falseTrips(l *breaker.Limits) (trips [release.Judged]int64) {
	st := &p.breaker
	st.Reset()
	rest := p.rest(l)
	for i := 0; i < len(p.canary); i++ {
		w := &p.canary[i]
		if w.Span == 0 {
			continue
		}
		if ev := breaker.Step(l, st, w); ev != nil && ev.To == release.Open {
			trips[ev.Finding.Signal]++
			st.Reset()
			i += rest
		}
	}
	return trips
}

// faultCap is how long a drop may take to be found.
const faultCap = 24 * time.Hour

// faults injects each drop into the week of a step and looks how long the solve
// rate's check takes to find it. The stretch with the last one stays in p.bad.
func (p *pass) faults(step int, l *breaker.Limits, run *ReplayRun) {
	r := p.r
	d := newDice(p.seed, drawFault, step).with(&p.kept)
	run.steps[step].drops = make([]dropRun, len(r.o.Drops))
	p.bad = p.bad[:0]
	if r.p0 == 0 {
		return
	}
	only := solveOnly(l)
	warm := p.warm(l)
	from, ok := p.steady(d, warm, int(l.SlowSpan/r.history.tick))
	if !ok {
		return
	}
	for i, pp := range r.o.Drops {
		p.inject(d, from-warm, from, pp.Float64()/100/r.p0)
		run.steps[step].drops[i], _ = p.detect(&only, warm)
	}
}

// warm is how many ticks a breaker runs before a drop: enough to have its spans
// full and to have come over an early trip; a cumulative sum takes longer to
// come to its usual height.
func (p *pass) warm(l *breaker.Limits) int {
	tick := p.r.history.tick
	long := 2 * l.Reach()
	if l.Judge == breaker.CusumJudge {
		long = max(long, 24*time.Hour)
	}
	return int(min(long, week-2*faultCap) / tick)
}

// steady draws the tick at which a drop begins: one with a slow span before it
// of which all is known, and with a day after it.
func (p *pass) steady(d *dice, warm, slow int) (int, bool) {
	const tries = 50
	room := len(p.canary) - int(faultCap/p.r.history.tick) - warm
	for range tries {
		from := warm + d.rng.IntN(room)
		known := true
		for i := max(from-slow, 0); i <= from && known; i++ {
			known = p.canary[i].Span != 0
		}
		if known {
			return from, true
		}
	}
	return 0, false
}

// inject copies a stretch of the week into p.bad, in which from a tick on each
// solved request is turned unsolved with a chance.
func (p *pass) inject(d *dice, begin, from int, chance float64) {
	end := from + int(faultCap/p.r.history.tick)
	p.bad = append(p.bad[:0], p.canary[begin:end]...)
	for i := from - begin; i < len(p.bad); i++ {
		p.bad[i].Solved -= d.binomial(p.bad[i].Solved, min(chance, 1))
	}
}

// detect runs a breaker over p.bad, in which a drop begins at a tick, and
// reports whether it also tripped before, after which it begins anew at once.
func (p *pass) detect(l *breaker.Limits, from int) (run dropRun, before bool) {
	st := &p.breaker
	st.Reset()
	run.tried = true
	for i := range p.bad {
		w := &p.bad[i]
		if i >= from {
			run.exposure += w.Total
		}
		if w.Span == 0 {
			continue
		}
		ev := breaker.Step(l, st, w)
		switch {
		case ev == nil || ev.To != release.Open:
		case i < from:
			before = true
			st.Reset()
		default:
			run.found, run.ticks = true, i-from+1
			return run, before
		}
	}
	return run, before
}

// thresholds tries every fixed threshold on the week and on the last drop. One
// that never trips saw the same sums as every higher one, which cannot trip
// either.
func (p *pass) thresholds(run *ReplayRun) {
	r, s := p.r, &p.sums
	s.read(p.canary)
	if l := r.plain; l != nil {
		s.lay(l)
		run.plain = s.falseTrips(p.rest(l))
	}
	if len(r.grid) == 0 {
		return
	}
	l := &r.grid[0].limits // the others differ by nothing but a lower floor
	s.lay(l)
	for i := range r.grid {
		s.lower(r.grid[i].limits.SolveFloor)
		run.grid[i].trips = s.falseTrips(p.rest(l))
		if run.grid[i].trips == 0 {
			break
		}
	}
	if len(p.bad) == 0 {
		return
	}
	s.read(p.bad)
	s.lay(l)
	warm, missed := p.warm(&r.plan.Steps[r.o.GridStep].Limits), false
	for i := range r.grid {
		if missed {
			run.grid[i].drop = dropRun{tried: true}
			continue
		}
		var before bool
		s.lower(r.grid[i].limits.SolveFloor)
		run.grid[i].drop, before = s.detect(warm)
		missed = !run.grid[i].drop.found && !before
	}
}
