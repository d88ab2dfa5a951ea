package watch

import (
	"math"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
)

// normal is a configuration with a baseline for each signal that can have one.
const normal = `
canary:
  target_service: order-service
  steps:
    - { pct: 0.05, min_hold_min: 10 }
    - { pct: 1.00, min_hold_min: 10 }
  metrics:
    fast_layer: { baseline_transfer_rate: 0.02, p99_baseline_ms: 1800 }
    slow_layer: { min_samples_slow: 50, solve_baseline: 0.94 }
versions:
  stable: { base_url: "https://models.internal/v1", model_id: order-7b, prompt_version: "41" }
  canary: { base_url: "https://models.internal/v1", model_id: order-7b, prompt_version: "42" }
`

// judging is a look at a release under limits whose figures are easy to do by
// hand: five minutes of windows of each arm, since the step began two minutes
// before.
func judging(t *testing.T) (*look, *breaker.Limits) {
	t.Helper()
	cfg, findings := config.Parse("canary.yaml", []byte(normal))
	if cfg == nil {
		t.Fatalf("configuration: %v", findings)
	}
	plan := cfg.Plan()
	l := &plan.Steps[0].Limits
	*l = breaker.Limits{
		FastSpan: 3 * time.Minute, ViolationLimit: 4, ViolationRate: release.MustRatio("0.01"), CostRatio: 2, P99MS: 5400, TransferRate: release.MustRatio("0.06"),
		SlowRate: release.MustRatio("0.03"), SlowSpan: 3 * time.Minute, SolveBaseline: release.MustRatio("0.94"), SolveFloor: release.MustRatio("0.89"),
	}
	k := &look{
		at: nine.Add(5 * time.Minute), plan: plan, config: cfg, since: nine.Add(2 * time.Minute),
		outcome: &journal.Outcome{Step: 1, Steps: 2, Stage: ladder.Climbing},
	}
	for n := range 5 {
		k.canary = append(k.canary, window(release.Canary, n, time.Minute, 100, func(w *release.Window) {
			w.Violations, w.Transfers, w.Slow, w.P99MS, w.Cost, w.Judged, w.Solved = 1, int64(n), 2, 1800+10*float64(n), 1.1, 50, 46
		}))
		k.stable = append(k.stable, window(release.Stable, n, time.Minute, int64(1000*(n+1)), func(w *release.Window) {
			w.Violations, w.Transfers, w.Slow, w.P99MS, w.Cost, w.Judged, w.Solved = 10, int64(20*(n+1)), 10, 1700+100*float64(n), 1, 500, 470
		}))
	}
	return k, l
}

// rows are the rows by signal.
func (k *look) rows() []Signal {
	out := make([]Signal, release.Judged)
	for _, row := range k.signals(timesOf(k.canary, k.stable, time.Minute)) {
		out[row.Signal] = row
	}
	return out
}

// verdict is the gate's on a signal.
func verdict(s release.Signal, v release.Verdict, value, limit float64, of, needed int64) journal.Verdict {
	return journal.Verdict{Finding: release.Finding{Signal: s, Value: value, Limit: limit, Of: of}, Verdict: v, Needed: needed, Counts: true}
}

func near(a, b Figure) bool { return a.Known == b.Known && math.Abs(a.Value-b.Value) < 1e-9 }

func checkFigures(t *testing.T, row *Signal, want map[string]Figure) {
	t.Helper()
	for name, got := range map[string]Figure{"value": row.Value, "beside": row.Beside, "limit": row.Limit, "line": row.Line, "room": row.Room} {
		if w, asked := want[name]; asked && !near(got, w) {
			t.Errorf("%v: %s %+v, want %+v", row.Signal, name, got, w)
		}
	}
}

func TestWhatIsNotJudgedShowsTheNewestPoint(t *testing.T) {
	k, _ := judging(t)
	rows := k.rows()
	for s, want := range map[release.Signal]map[string]Figure{
		// stable: 30 of 12,000 in its three minutes, as they would be in 300
		release.Violations: {"value": Known(3), "limit": Known(4), "room": Known(0.25), "line": Known(4), "beside": Known(0.75)},
		release.Cost:       {"value": Known(1.1), "limit": Known(2), "beside": Known(1), "room": Known(0.9)},
		release.P99:        {"value": Known(1840), "limit": Known(5400), "beside": Known(2100), "room": Known(1 - 1840.0/5400)},
		release.Transfers:  {"value": Known(9.0 / 300), "limit": Known(0.06), "beside": Known(240.0 / 12000), "room": Known(0.5)},
		release.SolveRate:  {"value": Known(0.92), "limit": Known(0.89), "beside": Known(0.94), "room": Known(0.6)},
	} {
		if rows[s].State != NotJudged || rows[s].Signal != s || rows[s].Low != (s == release.SolveRate) {
			t.Errorf("row %v: %+v", s, rows[s])
		}
		checkFigures(t, &rows[s], want)
	}
}

func TestWhatIsJudgedShowsTheGatesFigures(t *testing.T) {
	k, _ := judging(t)
	k.outcome.Verdicts = []journal.Verdict{
		verdict(release.Violations, release.Pass, 3, 4, 300, 100), verdict(release.Cost, release.Fail, 2.4, 2, 300, 100),
		verdict(release.P99, release.Insufficient, 1830, 5400, 30, 100), verdict(release.Transfers, release.Pass, 0.03, 0.06, 300, 100),
		verdict(release.SolveRate, release.Pass, 0.92, 0.88, 150, 100),
	}
	rows := k.rows()
	// since 9:02 stable has had 30 violations, 240 transfers and 1410 of 1500
	// solved in 12,000 requests
	for s, want := range map[release.Signal]map[string]Figure{
		release.Violations: {"value": Known(3), "limit": Known(4), "beside": Known(30.0 / 12000 * 300), "room": Known(0.25)},
		release.Cost:       {"value": Known(2.4), "limit": Known(2), "beside": Known(1), "room": Known(0)},
		release.P99:        {"value": Known(1830), "limit": Known(5400), "beside": Known((1900*3000 + 2000*4000 + 2100*5000) / 12000.0)},
		release.Transfers:  {"value": Known(0.03), "limit": Known(0.06), "beside": Known(0.02)},
		release.SolveRate:  {"value": Known(0.92), "limit": Known(0.88), "beside": Known(0.94), "room": Known((0.92 - 0.88) / (0.94 - 0.88)), "line": Known(0.89)},
	} {
		checkFigures(t, &rows[s], want)
	}
	for s, want := range map[release.Signal]Standing{release.Violations: Passing, release.Cost: Failing, release.P99: Few} {
		if rows[s].State != want {
			t.Errorf("%v stands at %d, want %d", s, rows[s].State, want)
		}
	}
	if r := &rows[release.P99]; r.Samples != 30 || r.Needed != 100 {
		t.Errorf("p99: %d of %d", r.Samples, r.Needed)
	}
}

func TestAStandingForEachVerdict(t *testing.T) {
	for v, want := range map[release.Verdict]Standing{
		release.Pass: Passing, release.Fail: Failing, release.Insufficient: Few, release.NoData: NoData, release.Error: Unknown,
	} {
		k, l := judging(t)
		k.outcome.Verdicts = []journal.Verdict{verdict(release.Cost, v, 1, 2, 10, 5)}
		rows := k.rows()
		if rows[release.Cost].State != want {
			t.Errorf("%v stands at %d, want %d", v, rows[release.Cost].State, want)
		}
		if rows[release.Transfers].State != Absent {
			t.Errorf("a signal without a verdict among others stands at %d", rows[release.Transfers].State)
		}
		k.outcome.Verdicts[0].Counts = false
		if row := k.rows()[release.Cost]; v == release.Fail && row.State != WouldFail {
			t.Errorf("a failure that does not count stands at %d", row.State)
		}
		l.Rules[release.Cost].Mode = release.Off
		if row := k.rows()[release.Cost]; row.State != Off {
			t.Errorf("what nobody looks at stands at %d", row.State)
		}
	}
}

func TestP99ByCount(t *testing.T) {
	k, l := judging(t)
	l.P99ByCount = true
	row := k.rows()[release.P99]
	if row.Form != release.ByCount || row.Unit != Share || row.Over != l.FastSpan {
		t.Errorf("row: form %v, unit %d, over %v", row.Form, row.Unit, row.Over)
	}
	checkFigures(t, &row, map[string]Figure{"value": Known(0.02), "limit": Known(0.03), "line": Known(0.03), "beside": Known(30.0 / 12000), "room": Known(1.0 / 3)})
}

func TestASolveRatesLimitIsItsVerdicts(t *testing.T) {
	k, l := judging(t)
	// against stable: 1410 of 1500, less the drop of 5 points
	l.AgainstStable, l.MinSamples = true, 100
	counts := breaker.SolveCounts{Judged: 150, Solved: 138, Controlled: 150, ControlJudged: 1500, ControlSolved: 1410}
	f := l.SolveFinding(&counts, l.SlowSpan)
	k.outcome.Verdicts = []journal.Verdict{{Finding: f, Verdict: release.Pass}}
	row := k.rows()[release.SolveRate]
	checkFigures(t, &row, map[string]Figure{"value": Known(0.92), "limit": Known(0.89), "beside": Known(0.94), "room": Known(0.6)})
	if f.Form != release.Concurrent {
		t.Errorf("form %v", f.Form)
	}

	// fitted: by three sigmas of so few requests below the baseline
	k, l = judging(t)
	l.Noise = breaker.Noise{Z: 3, Tau: 0.02}
	f = l.SolveFinding(&breaker.SolveCounts{Judged: 150, Solved: 138}, l.SlowSpan)
	k.outcome.Verdicts = []journal.Verdict{{Finding: f, Verdict: release.Pass}}
	row = k.rows()[release.SolveRate]
	if f.Form != release.Fitted || !(f.Limit < 0.89) || !near(row.Limit, Known(f.Limit)) || !near(row.Line, Known(f.Limit)) {
		t.Errorf("fitted limit %v (%v), row %+v, line %+v", f.Limit, f.Form, row.Limit, row.Line)
	}

	// so few that none could be too few solved
	k, l = judging(t)
	l.Noise = breaker.Noise{Z: 50, Tau: 0.02}
	if row := k.rows()[release.SolveRate]; row.Line.Known || row.Limit.Known || row.Room.Known {
		t.Errorf("a limit that cannot be reached is shown: %+v", row)
	}
}

func TestTheRecordsFiguresStandWhereItTripped(t *testing.T) {
	k, _ := judging(t)
	k.outcome.Phase = release.Open
	k.record = &journal.Rollback{
		Finding: &release.Finding{Signal: release.Transfers, Value: 0.125, Limit: 0.06, Count: 15, Of: 120},
		From:    nine.Add(time.Minute), To: nine.Add(3 * time.Minute),
	}
	rows := k.rows()
	row := &rows[release.Transfers]
	checkFigures(t, row, map[string]Figure{"value": Known(0.125), "limit": Known(0.06), "room": Known(0), "beside": Known((40.0 + 60 + 80) / 9000)})
	if row.State != Tripped || row.Samples != 120 {
		t.Errorf("row: %d, %d samples", row.State, row.Samples)
	}
	if rows[release.Cost].State != NotJudged {
		t.Errorf("another row stands at %d", rows[release.Cost].State)
	}
	k.outcome.Phase = release.Closed // on its way again: the record is of the past
	if row := k.rows()[release.Transfers]; row.State != NotJudged {
		t.Errorf("after the recovery it stands at %d", row.State)
	}
	k.outcome.Stage = ladder.Failed
	if row := k.rows()[release.Transfers]; row.State != Tripped {
		t.Errorf("after a failed gate it stands at %d", row.State)
	}
	k.record.Finding = nil // by a person
	if row := k.rows()[release.Transfers]; row.State != NotJudged {
		t.Errorf("after a person's rollback it stands at %d", row.State)
	}
}

func TestACusumsRecord(t *testing.T) {
	k, _ := judging(t)
	k.outcome.Phase = release.Open
	k.record = &journal.Rollback{Finding: &release.Finding{Signal: release.SolveRate, Value: 6.25, Limit: 5, Of: 900, Form: release.CumulativeSum}}
	row := k.rows()[release.SolveRate]
	checkFigures(t, &row, map[string]Figure{"value": Known(6.25), "limit": Known(5), "room": Known(0), "beside": {}})
	if row.Unit != Score || row.Low || row.Form != release.CumulativeSum || row.Baseline {
		t.Errorf("row: %+v", row)
	}
	// the series are of the rate: no score stands in them
	if row.Canary[Points-1] != Known(0.92) {
		t.Errorf("newest point %+v", row.Canary[Points-1])
	}
}

func TestWhatIsMissingIsNeverZero(t *testing.T) {
	k, _ := judging(t)
	k.canary, k.config = nil, nil
	for i := range k.stable {
		k.stable[i].Known = 0
	}
	check := func(what string) {
		t.Helper()
		for _, row := range k.rows() {
			if row.Value.Known || row.Room.Known || row.Beside.Known && row.Signal != release.Cost || len(knownAt(row.Canary))+len(knownAt(row.Stable)) > 0 {
				t.Errorf("%s: %v: value %+v, beside %+v, room %+v", what, row.Signal, row.Value, row.Beside, row.Room)
			}
		}
	}
	check("not judged")
	for s := range release.Signal(release.Judged) {
		k.outcome.Verdicts = append(k.outcome.Verdicts, verdict(s, release.NoData, 0, 2, 0, 100))
	}
	check("judged on nothing")
	k.stable = nil
	check("no window at all")
}

func TestNoNumberIsMissing(t *testing.T) {
	k, _ := judging(t)
	for i := range k.canary {
		k.canary[i].P99MS, k.canary[i].Cost = math.NaN(), math.Inf(1)
		k.stable[i].P99MS = math.NaN()
	}
	k.config = nil
	for _, row := range k.rows() {
		if s := row.Signal; (s == release.P99 || s == release.Cost) && (row.Value.Known || row.Room.Known || len(knownAt(row.Canary)) > 0) {
			t.Errorf("%v: %+v, points %v", s, row.Value, knownAt(row.Canary))
		}
	}
}

func TestTheBaselineStandsInWhereStableHasNoFigure(t *testing.T) {
	k, l := judging(t)
	for _, row := range k.rows() {
		if row.Baseline {
			t.Errorf("%v: the baseline stands where stable has a figure", row.Signal)
		}
	}
	k.stable = nil
	want := map[release.Signal]Figure{release.Transfers: Known(0.02), release.P99: Known(1800), release.SolveRate: Known(0.94), release.Cost: Known(1)}
	for _, row := range k.rows() {
		if row.Beside != want[row.Signal] || row.Baseline != (row.Beside.Known && row.Signal != release.Cost) {
			t.Errorf("%v: beside %+v, the baseline: %v", row.Signal, row.Beside, row.Baseline)
		}
	}
	l.P99ByCount = true // milliseconds do not stand beside a share
	if row := k.rows()[release.P99]; row.Beside.Known && row.Beside.Value > 1 {
		t.Errorf("p99 by count: beside %+v", row.Beside)
	}
	k.config = nil
	for _, row := range k.rows() {
		if row.Baseline {
			t.Errorf("%v: a baseline of no configuration: %+v", row.Signal, row.Beside)
		}
	}
}

// Under a label lag the canary's figure is of windows that have their labels;
// what stands beside it is of the same ones.
func TestStableStandsOverTheSameLabelsAsTheCanary(t *testing.T) {
	k, l := judging(t)
	l.LabelLag = 2 * time.Minute
	for i := range k.stable[3:] { // labels of failures come first
		k.stable[3+i].Judged, k.stable[3+i].Solved = 100, 20
	}
	k.outcome.Verdicts = []journal.Verdict{verdict(release.SolveRate, release.Pass, 0.92, 0.89, 50, 100)}
	row := k.rows()[release.SolveRate]
	if want := Known(0.94); !near(row.Beside, want) { // of 9:02 alone
		t.Errorf("stable's rate is %+v, want %+v: windows without all their labels are in it", row.Beside, want)
	}
	if got := knownAt(row.Stable); len(got) != 3 || len(knownAt(row.Canary)) != 3 {
		t.Errorf("stable's points: %v", got)
	}
}

func TestTheRoomThatIsLeft(t *testing.T) {
	l := &breaker.Limits{SolveBaseline: release.MustRatio("0.9")}
	for _, c := range []struct {
		name         string
		unit         Unit
		low          bool
		value, limit Figure
		want         Figure
	}{
		{"none used", Share, false, Known(0), Known(0.06), Known(1)},
		{"half used", Share, false, Known(0.03), Known(0.06), Known(0.5)},
		{"at the limit", Share, false, Known(0.06), Known(0.06), Known(0)},
		{"past it", Share, false, Known(0.6), Known(0.06), Known(0)},
		{"a ratio begins at stable's", Ratio, false, Known(1.5), Known(2), Known(0.5)},
		{"below stable's", Ratio, false, Known(0.5), Known(2), Known(1)},
		{"a rate at its baseline", Share, true, Known(0.9), Known(0.8), Known(1)},
		{"above it", Share, true, Known(0.99), Known(0.8), Known(1)},
		{"half way down", Share, true, Known(0.85), Known(0.8), Known(0.5)},
		{"at its limit", Share, true, Known(0.8), Known(0.8), Known(0)},
		{"below it", Share, true, Known(0.1), Known(0.8), Known(0)},
		{"no value", Share, false, Figure{}, Known(0.06), Figure{}},
		{"no limit", Share, false, Known(0), Figure{}, Figure{}},
		{"no way between", Share, false, Known(0), Known(0), Figure{}},
	} {
		row := Signal{Unit: c.unit, Low: c.low, Value: c.value, Limit: c.limit}
		if got := room(&row, l); !near(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestProbesAreUnderTheFirstStepsLimits(t *testing.T) {
	k, _ := judging(t)
	k.plan.Steps[1].Limits = k.plan.Steps[0].Limits
	k.plan.Steps[1].Limits.CostRatio = 3
	k.outcome.Step = 2
	if row := k.rows()[release.Cost]; row.Limit != Known(3) {
		t.Errorf("step 2: limit %+v", row.Limit)
	}
	k.outcome.Phase = release.HalfOpen
	if row := k.rows()[release.Cost]; row.Limit != Known(2) {
		t.Errorf("on trial: limit %+v", row.Limit)
	}
	k.outcome.Phase, k.outcome.Step = release.Closed, 9 // a ladder that has become shorter
	if row := k.rows()[release.Cost]; row.Limit != Known(3) {
		t.Errorf("beyond the ladder: limit %+v", row.Limit)
	}
}
