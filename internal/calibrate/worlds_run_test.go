package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/canaryctl/canaryctl/internal/batch"
	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/draw"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// amount is how much is simulated.
type amount struct {
	baselines int // weeks learnt from
	weeks     int // fresh weeks to each of them
	drops     int // of those, weeks into which drops are injected
	cusums    int // baselines for which the cumulative sum is calibrated too
	replays   int // replayed weeks that set its limit
}

// worldDrops are what is injected, in percentage points.
var worldDrops = []int{5, 10, 20}

// lesson is what one baseline teaches, and the limits of every step that come
// of it.
type lesson struct {
	defaults  *Report          // what calibrate says without a word from anybody
	report    *Report          // and with the drop to find that the world needs
	set       *ladder.Plan     // as calibrate writes it
	alone     *ladder.Plan     // the solve rate with the whole budget
	cusum     *ladder.Plan     // the set of --judge cusum; nil where it is not asked for
	plain     []breaker.Limits // max(tolerable drop, 3 sigma)
	moved     float64          // the most that bad windows move a step's threshold, a share of it
	named     int              // of the bad windows, those in an incident
	planted   int
	plainDrop float64 // pp
}

// learn calibrates from one baseline.
func (w *truth) learn(seed uint64, a amount, cusum bool) (*lesson, error) {
	ws, base := w.baseline(seed), worldPlan()
	l := &lesson{}
	var err error
	o := Options{Plan: base}
	if l.report, l.set, err = calibrated(ws, o); err != nil {
		return nil, err
	}
	l.defaults = l.report
	if w.detect != "" {
		o.DetectDropPP = release.MustRatio(w.detect)
		if l.report, l.set, err = calibrated(ws, o); err != nil {
			return nil, err
		}
	}
	var shares [release.Judged]float64
	shares[release.SolveRate] = 1
	alone := o
	alone.FalseTrips.Shares = shares
	if _, l.alone, err = calibrated(ws, alone); err != nil {
		return nil, err
	}
	for i := range l.alone.Steps {
		l.alone.Steps[i].Limits = solveOnly(&l.alone.Steps[i].Limits)
	}
	if err := l.plainRule(base); err != nil {
		return nil, err
	}
	if err := l.spoilt(ws, o); err != nil {
		return nil, err
	}
	if cusum {
		l.cusum, err = cusumSet(ws, o, a.replays)
	}
	return l, err
}

func calibrated(ws []release.Window, o Options) (*Report, *ladder.Plan, error) {
	base := o.Plan
	r, err := Measure(ws, o)
	if err != nil {
		return nil, nil, err
	}
	plan, err := r.Plan(base)
	return r, plan, err
}

// cusumSet is what --judge cusum comes to, as the command does it.
func cusumSet(ws []release.Window, o Options, replays int) (*ladder.Plan, error) {
	o.Judge = CusumJudge
	r, _, err := calibrated(ws, o)
	if err != nil {
		return nil, err
	}
	replay, err := r.Replayer(o.Plan)
	if err != nil {
		return nil, err
	}
	peaks := make([][]float64, replays)
	for i := range peaks {
		peaks[i] = replay.CusumPeaks(uint64(i+1), nil)
	}
	r.TakeCusum(peaks)
	return r.Plan(o.Plan)
}

// plainRule is the published recipe: three sigma of the whole traffic in ten
// minutes, whatever the step, and 200 samples in 25 minutes.
func (l *lesson) plainRule(base *ladder.Plan) error {
	x := &exact{}
	l.plainDrop = *l.report.Slow.Plain.ThresholdPP
	pp, p0 := x.ratio(number(l.plainDrop)), x.ratio(number(l.report.Slow.SolveBaseline))
	if x.err != nil {
		return x.err
	}
	for i := range base.Steps {
		limits := base.Steps[i].Limits
		limits.SolveBaseline = p0
		limits, ok, err := fixed(&limits, pp, 200)
		if err != nil || !ok {
			return fmt.Errorf("no plain rule of %s pp: %w", pp, err)
		}
		l.plain = append(l.plain, limits)
	}
	return nil
}

// spoilt learns from the same week with one window in twenty 25 points worse.
func (l *lesson) spoilt(ws []release.Window, o Options) error {
	const every, drop = 20, 0.25
	bad, err := Measure(spoil(ws, every, drop), o)
	if err != nil {
		return err
	}
	for i := range bad.Steps {
		l.moved = max(l.moved, math.Abs(*bad.Steps[i].ThresholdPP / *l.report.Steps[i].ThresholdPP - 1))
	}
	for i := range bad.Chart {
		if i%every != every/2 {
			continue
		}
		l.planted++
		at := bad.Chart[i].T
		if slices.ContainsFunc(bad.Incidents, func(n Incident) bool { return !n.From.After(at) && n.To.After(at) }) {
			l.named++
		}
	}
	return nil
}

// outcome is what one baseline's limits did over its fresh weeks.
type outcome struct {
	lesson *lesson
	steps  []stepOutcome
	// transfersAtSix are the trips of the published limit of transfers at 6
	// requests a minute.
	transfersAtSix int64
}

// stepOutcome is one step of it: trips over all weeks, and the delays of drops.
type stepOutcome struct {
	set, published                 [release.Judged]int64
	alone, cusum, transfers        int64
	plain                          int64
	mid, cold, cusumMid, cusumCold [][]float64 // by drop
}

// live runs one baseline's limits over fresh weeks.
func (w *truth) live(world int, baseline uint64, a amount) (*outcome, error) {
	seed := draw.Mix(uint64(world)<<32 + baseline)
	l, err := w.learn(seed, a, int(baseline) < a.cusums)
	if err != nil {
		return nil, fmt.Errorf("%s, baseline %d: %w", w.name, baseline, err)
	}
	out := &outcome{lesson: l, steps: make([]stepOutcome, len(worldSlots))}
	for i := range out.steps {
		s := &out.steps[i]
		n := len(worldDrops)
		s.mid, s.cold, s.cusumMid, s.cusumCold = make([][]float64, n), make([][]float64, n), make([][]float64, n), make([][]float64, n)
	}
	for week := range a.weeks {
		fresh := draw.Mix(seed ^ draw.Mix(uint64(week)+1))
		rates := w.rates(fresh)
		for i, slots := range worldSlots {
			ws := canary(fresh, slots, rates)
			out.steps[i].healthy(l, i, ws)
			if week < a.drops {
				out.steps[i].bad(l, i, newDice(fresh, drawBad, i), ws, rates)
			}
		}
		out.transfersAtSix += healthyTrips(onlySignal(&worldPlan().Steps[0].Limits, release.Transfers), canary(fresh, 6, rates))[release.Transfers]
	}
	return out, nil
}

// healthy counts false trips over a week.
func (s *stepOutcome) healthy(l *lesson, i int, ws []release.Window) {
	for signal, n := range healthyTrips(&l.set.Steps[i].Limits, ws) {
		s.set[signal] += n
	}
	s.alone += healthyTrips(&l.alone.Steps[i].Limits, ws)[release.SolveRate]
	s.plain += healthyTrips(&l.plain[i], ws)[release.SolveRate]
	published := worldPlan().Steps[i].Limits
	published.Rules[release.SolveRate].Mode, published.Rules[release.P99].Mode = release.Off, release.Off
	for signal, n := range healthyTrips(&published, ws) {
		s.published[signal] += n
	}
	s.transfers += healthyTrips(onlySignal(&published, release.Transfers), ws)[release.Transfers]
	if l.cusum != nil {
		only := solveOnly(&l.cusum.Steps[i].Limits)
		s.cusum += healthyTrips(&only, ws)[release.SolveRate]
	}
}

// onlySignal returns limits with every other signal off.
func onlySignal(l *breaker.Limits, s release.Signal) *breaker.Limits {
	out := *l
	for i := range out.Rules {
		if release.Signal(i) != s {
			out.Rules[i].Mode = release.Off
		}
	}
	return &out
}

// bad injects every drop into a week, once in steady state and once from the
// first minute of the step on.
func (s *stepOutcome) bad(l *lesson, i int, d *dice, ws []release.Window, rates []float64) {
	const settled = 24 * 60 // a cumulative sum takes long to come to its usual height
	from := settled + d.rng.IntN(len(ws)-settled-worldDay)
	window := solveOnly(&l.set.Steps[i].Limits)
	warm := int(2 * window.Reach().Minutes())
	for k, pp := range worldDrops {
		drop := float64(pp) / 100
		s.mid[k] = append(s.mid[k], findDrop(&window, d, ws, rates, from, min(warm, settled), drop))
		s.cold[k] = append(s.cold[k], findDrop(&window, d, ws, rates, from, 0, drop))
		if l.cusum != nil {
			sum := solveOnly(&l.cusum.Steps[i].Limits)
			s.cusumMid[k] = append(s.cusumMid[k], findDrop(&sum, d, ws, rates, from, settled, drop))
			s.cusumCold[k] = append(s.cusumCold[k], findDrop(&sum, d, ws, rates, from, 0, drop))
		}
	}
}

// simulateWorlds runs every baseline of some worlds over the cores: the outcomes by
// world, in the order of the baselines.
func simulateWorlds(worlds []int, a amount, workers int, progress func(done, total int)) (map[int][]*outcome, error) {
	all, err := batch.Run(context.Background(), batch.Seeds(0, len(worlds)*a.baselines), workers, func(_ context.Context, seed uint64) (*outcome, error) {
		world := worlds[int(seed)/a.baselines]
		return truths[world].live(world, seed%uint64(a.baselines), a)
	}, progress)
	if err != nil {
		return nil, err
	}
	by := map[int][]*outcome{}
	for i, out := range all {
		by[worlds[i/a.baselines]] = append(by[worlds[i/a.baselines]], out)
	}
	return by, nil
}
