package watch

import (
	"slices"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// look is what the signals are formed of.
type look struct {
	at      time.Time
	plan    *ladder.Plan
	outcome *journal.Outcome
	since   time.Time // when the step's weight was read back
	record  *journal.Rollback
	config  *config.Config // of the plan, for baselines; nil: not known
	canary  []release.Window
	stable  []release.Window
}

// step is the index of the step whose limits hold: probes run under the first's.
func (k *look) step() int {
	if k.outcome.Phase != release.Closed {
		return 0
	}
	return min(max(k.outcome.Step-1, 0), len(k.plan.Steps)-1)
}

// signals is a row for each signal, in the breaker's order. Those of streaming
// and infrastructure that nobody supplies have none.
func (k *look) signals(times Times) []Signal {
	l := &k.plan.Steps[k.step()].Limits
	rows := make([]Signal, 0, release.Judged)
	for s := range release.Signal(release.Judged) {
		if row := k.signal(l, s, times); !s.Streaming() || row.seen() {
			rows = append(rows, row)
		}
	}
	return rows
}

// seen reports whether there is anything to show of a signal: a verdict, or a
// point of either version.
func (row *Signal) seen() bool {
	if row.State != Off && row.State != Absent && row.State != NotJudged {
		return true
	}
	known := func(f Figure) bool { return f.Known }
	return slices.ContainsFunc(row.Canary, known) || slices.ContainsFunc(row.Stable, known)
}

func (k *look) signal(l *breaker.Limits, s release.Signal, times Times) Signal {
	m := meterOf(l, s)
	low := s == release.SolveRate
	row := Signal{Signal: s, Unit: m.unit, Over: m.over, Low: low, PointUnit: m.unit, PointLow: low}
	if s == release.P99 && l.P99ByCount {
		row.Form = release.ByCount
	}
	if !times.From.IsZero() {
		row.Canary = m.series(k.canary, times, Points, k.at)
		if row.Stable = m.series(k.stable, times, Points, k.at); m.sum {
			row.Stable = m.scaled(k.canary, k.stable, times, Points, k.at)
		}
	}
	row.Line = k.line(l, s, &m)
	k.judged(&row, l)
	k.tripped(&row)
	if row.State == NotJudged {
		row.Value, row.Limit = newest(row.Canary), row.Line
	}
	k.beside(&row, &m)
	row.Room = room(&row, l)
	return row
}

// line is the breaker's limit of the newest point.
func (k *look) line(l *breaker.Limits, s release.Signal, m *meter) Figure {
	var r reading
	n := len(k.canary)
	for n > 0 && m.young(&k.canary[n-1], k.at) {
		n--
	}
	if n > 0 {
		r = m.ending(k.canary, n-1)
	}
	switch s {
	case release.Violations:
		return Known(float64(l.ViolationsAllowed(r.of)))
	case release.Cost:
		return Known(l.CostRatio)
	case release.P99:
		if !l.P99ByCount {
			return Known(l.P99MS)
		}
		return Known(l.SlowRate.Float64())
	case release.Transfers:
		return Known(l.TransferRate.Float64())
	}
	if s.Streaming() {
		return Known(l.StreamLimitOf(s).Limit.Float64() / breaker.PerUnit(s))
	}
	counts := breaker.SolveCounts{Judged: r.of, Solved: int64(r.sum)}
	return limitOf(l.SolveFinding(&counts, m.over))
}

// limitOf is a finding's limit. A solve rate that no count can be below has
// none.
func limitOf(f release.Finding) Figure {
	if f.Limit < 0 {
		return Figure{}
	}
	return Known(f.Limit)
}

// judged takes the verdict into a row.
func (k *look) judged(row *Signal, l *breaker.Limits) {
	if l.Rules[row.Signal].Mode == release.Off {
		row.State = Off
		return
	}
	for i := range k.outcome.Verdicts {
		v := &k.outcome.Verdicts[i]
		if v.Signal != row.Signal {
			continue
		}
		row.State, row.Samples, row.Needed = standingOf(v), v.Of, v.Needed
		row.Limit = limitOf(v.Finding)
		if v.Of > 0 {
			row.Value = Known(v.Value)
		}
		return
	}
	if len(k.outcome.Verdicts) > 0 {
		row.State = Absent
	}
}

func standingOf(v *journal.Verdict) Standing {
	switch v.Verdict {
	case release.Fail:
		if !v.Counts {
			return WouldFail
		}
		return Failing
	case release.Error:
		return Unknown
	case release.NoData:
		return NoData
	case release.Insufficient:
		return Few
	}
	return Passing
}

// tripped marks the signal that the rollback in force rests on.
func (k *look) tripped(row *Signal) {
	back := k.outcome.Phase != release.Closed || k.outcome.Stage == ladder.Failed || k.outcome.Stage == ladder.RolledBack
	if !back || k.record == nil || k.record.Attempt != k.outcome.Attempt || k.record.Finding == nil || k.record.Signal != row.Signal || row.State == Off {
		return
	}
	f := k.record.Finding
	row.State, row.Value, row.Samples, row.Limit = Tripped, Known(f.Value), f.Of, limitOf(*f)
	if row.Form = f.Form; f.Form == release.CumulativeSum {
		row.Unit, row.Low = Score, false
	}
}

// beside puts stable's figure over the same time into a row, or the baseline.
func (k *look) beside(row *Signal, m *meter) {
	if row.Unit == Score {
		return
	}
	if row.Signal == release.Cost { // a ratio to stable's already
		row.Beside = Known(1)
		return
	}
	switch {
	case row.State == Tripped && !k.record.From.IsZero() && !m.sum:
		row.Beside = m.figure(m.total(within(k.stable, k.record.From, k.record.To), time.Time{}, k.at))
	case row.State == Tripped:
		row.Beside = Figure{}
	case row.State == NotJudged || k.since.IsZero():
		row.Beside = newest(row.Stable)
	case m.sum:
		rate := m.total(k.stable, k.since, k.at)
		row.Beside = Figure{Value: rate.sum / float64(max(rate.of, 1)) * float64(row.Samples), Known: rate.of > 0 && row.Samples > 0}
	default:
		row.Beside = m.figure(m.total(k.stable, k.since, k.at))
	}
	if !row.Beside.Known {
		row.Beside = k.baseline(row)
		row.Baseline = row.Beside.Known
	}
}

// within is the windows that start from one time to another.
func within(windows []release.Window, from, to time.Time) []release.Window {
	var out []release.Window
	for i := range windows {
		if t := windows[i].T; !t.Before(from) && !t.After(to) {
			out = append(out, windows[i])
		}
	}
	return out
}

// baseline is the configured normal behaviour of a signal. Of counts there is
// none that would stand beside one.
func (k *look) baseline(row *Signal) Figure {
	if k.config == nil || k.step() >= len(k.config.Steps) {
		return Figure{}
	}
	fast := &k.config.Steps[k.step()].Fast
	ratio := release.Ratio{}
	switch {
	case row.Signal == release.Transfers:
		ratio = fast.BaselineTransferRate
	case row.Signal == release.P99 && row.Unit == Millis:
		ratio = fast.P99BaselineMS
	case row.Signal == release.P99:
		ratio = fast.P99SlowRate
	case row.Signal == release.TTFTP99:
		ratio = k.config.Steps[k.step()].Streaming.TTFTP99.BaselineMS
	case row.Signal == release.SolveRate:
		ratio = k.plan.Steps[k.step()].Limits.SolveBaseline
	}
	if ratio.IsZero() {
		return Figure{}
	}
	return Known(ratio.Float64())
}

// room is the share of the limit that is left.
func room(row *Signal, l *breaker.Limits) Figure {
	if !row.Value.Known || !row.Limit.Known {
		return Figure{}
	}
	good := 0.0
	switch {
	case row.Low && !l.SolveBaseline.IsZero():
		good = l.SolveBaseline.Float64()
		if row.Beside.Known { // stable may be the reference
			good = max(good, row.Beside.Value)
		}
	case row.Low, row.Unit == Ratio && row.Limit.Value > 1:
		good = 1
	}
	whole := row.Limit.Value - good
	if whole == 0 || row.Low != (whole < 0) {
		return Figure{} // the limit is not on the bad side of what is good
	}
	return Known(min(max((row.Limit.Value-row.Value.Value)/whole, 0), 1))
}
