package breaker_test

import (
	"math"
	"testing"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
)

// TestLimitsAreComparedAsIntegers: each limit at its very edge. The decimals
// are chosen so that a product of float64 would fall on the wrong side.
func TestLimitsAreComparedAsIntegers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		limits func(*breaker.Limits)
		window release.Window
		change func(*release.Window)
		want   string
	}{
		{name: "160 of 200 against 0.90 - 10 pp trips", window: window(0, 200, 160), want: "0 CLOSED->OPEN solve_rate"},
		{name: "161 of 200 does not", window: window(0, 200, 161)},
		{name: "0 of 199 is blind: one sample short", window: window(0, 199, 0)},
		{name: "0.9 - 0.2 = 0.7 exactly: 140 of 200 trips", window: window(0, 200, 140), want: "0 CLOSED->OPEN solve_rate",
			limits: func(l *breaker.Limits) { l.SolveFloor = release.MustRatio("0.7") }},
		{name: "a third is no decimal: 333 of 1000 against 0.333 trips", window: window(0, 1000, 333), want: "0 CLOSED->OPEN solve_rate",
			limits: func(l *breaker.Limits) { l.SolveFloor = release.MustRatio("0.333") }},
		{name: "334 of 1000 against 0.3333 does not", window: window(0, 1000, 334),
			limits: func(l *breaker.Limits) { l.SolveFloor = release.MustRatio("0.3333") }},
		{name: "min_samples 0 with nothing judged does not trip", window: window(0, 200, 0), change: func(w *release.Window) { w.Judged = 0 },
			limits: func(l *breaker.Limits) { l.MinSamples = 0 }},
		{name: "floor 0 trips when nothing is solved", window: window(0, 200, 0), want: "0 CLOSED->OPEN solve_rate",
			limits: func(l *breaker.Limits) { l.SolveFloor = release.MustRatio("0") }},

		{name: "floor(999 x 0.004) = 3 of .996: 3 violations trip", window: window(0, 999, 999), change: func(w *release.Window) { w.Violations = 3 },
			limits: func(l *breaker.Limits) { l.ViolationRate = release.MustRatio("0.004") }, want: "0 CLOSED->OPEN violations"},
		{name: "floor(1000 x 0.004) = 4: 3 violations do not trip", window: window(0, 1000, 1000), change: func(w *release.Window) { w.Violations = 3 },
			limits: func(l *breaker.Limits) { l.ViolationRate = release.MustRatio("0.004") }},
		{name: "1000 x 0.3999: 399 violations trip", window: window(0, 1000, 1000), change: func(w *release.Window) { w.Violations = 399 },
			limits: func(l *breaker.Limits) { l.ViolationRate = release.MustRatio("0.3999") }, want: "0 CLOSED->OPEN violations"},
		{name: "1000 x 0.4: 399 violations do not", window: window(0, 1000, 1000), change: func(w *release.Window) { w.Violations = 399 },
			limits: func(l *breaker.Limits) { l.ViolationRate = release.MustRatio("0.4") }},
		{name: "1000 x 0.4: 400 violations trip", window: window(0, 1000, 1000), change: func(w *release.Window) { w.Violations = 400 },
			limits: func(l *breaker.Limits) { l.ViolationRate = release.MustRatio("0.4") }, want: "0 CLOSED->OPEN violations"},
		{name: "the limit never falls below violation_limit", window: window(0, 1, 1), change: func(w *release.Window) { w.Violations = 1 }},

		{name: "violation_limit 0 does not trip on violations nobody counted", window: window(0, 20, 20), change: func(w *release.Window) { w.Known = release.HasSolved },
			limits: func(l *breaker.Limits) { l.ViolationLimit = 0 }},
		{name: "3 of 50 handed over is exactly 0.02 x 3.0", window: window(0, 50, 50), change: func(w *release.Window) { w.Transfers = 3 },
			want: "0 CLOSED->OPEN transfers"},
		{name: "3 of 51 is below", window: window(0, 51, 51), change: func(w *release.Window) { w.Transfers = 3 }},
		{name: "2 of 2 is below min_transfer_count", window: window(0, 2, 2), change: func(w *release.Window) { w.Transfers = 2 }},
		{name: "min_transfer_count 0 with none handed over does not trip", window: window(0, 50, 50),
			limits: func(l *breaker.Limits) { l.MinTransfers = 0 }},

		{name: "cost at its limit trips", window: window(0, 1, 1), change: cost(2), want: "0 CLOSED->OPEN cost"},
		{name: "cost a hair below does not", window: window(0, 1, 1), change: cost(math.Nextafter(2, 0))},
		{name: "cost with fewer than cost_min_samples requests is not judged", window: window(0, 29, 29), change: cost(9),
			limits: func(l *breaker.Limits) { l.CostMinSamples = 30 }},
		{name: "cost from cost_min_samples on is", window: window(0, 30, 30), change: cost(9), want: "0 CLOSED->OPEN cost",
			limits: func(l *breaker.Limits) { l.CostMinSamples = 30 }},
		{name: "p99 at 333.3 x 3.0 trips", window: window(0, 1, 1), change: p99(999.9), want: "0 CLOSED->OPEN p99",
			limits: func(l *breaker.Limits) { l.P99MS = product("333.3", "3.0") }},
		{name: "p99 at 0.1 x 3 trips at 0.3", window: window(0, 1, 1), change: p99(0.3), want: "0 CLOSED->OPEN p99",
			limits: func(l *breaker.Limits) { l.P99MS = product("0.1", "3") }},
		{name: "p99 with fewer than p99_min_samples requests is not judged", window: window(0, 29, 29), change: p99(9999),
			limits: func(l *breaker.Limits) { l.P99MinSamples = 30 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, st := published(), new(breaker.State)
			if tc.limits != nil {
				tc.limits(&l)
			}
			if tc.change != nil {
				tc.change(&tc.window)
			}
			if got := sayAll(drive(&l, st, []release.Window{tc.window})); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func cost(ratio float64) func(*release.Window) {
	return func(w *release.Window) { w.Cost, w.Known = ratio, w.Known|release.HasCost }
}

func p99(ms float64) func(*release.Window) {
	return func(w *release.Window) { w.P99MS, w.Known = ms, w.Known|release.HasP99 }
}

func product(a, b string) float64 {
	r, err := release.MustRatio(a).Mul(release.MustRatio(b))
	if err != nil {
		panic(err)
	}
	return r.Float64()
}

// TestComparisonsHoldForTheLargestCounts: products of two 63-bit numbers need
// 128 bits; in 64 they would wrap.
func TestComparisonsHoldForTheLargestCounts(t *testing.T) {
	const most = math.MaxInt64
	fine := release.Ratio{Num: most - 1, Den: most}
	for _, tc := range []struct {
		name          string
		solved, total int64
		want          string
	}{
		{"all but one of the most is exactly at (most-1)/most", most - 1, most, "0 CLOSED->OPEN solve_rate"},
		{"all of the most is above", most, most, ""},
		{"half of the most is below", most / 2, most, "0 CLOSED->OPEN solve_rate"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, st := published(), new(breaker.State)
			l.SolveFloor = fine
			w := window(0, tc.total, tc.solved)
			if got := sayAll(drive(&l, st, []release.Window{w})); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	l := published()
	l.ViolationRate = release.Ratio{Num: most, Den: 2}
	if got := l.ViolationsAllowed(most); got != most {
		t.Errorf("floor(most x most/2) = %d, want it held at the largest int64", got)
	}
	l.ViolationRate = release.Ratio{Num: most - 1, Den: most}
	if got := l.ViolationsAllowed(most); got != most-1 {
		t.Errorf("floor(most x (most-1)/most) = %d, want %d", got, int64(most-1))
	}
}

// TestMissingFiguresLeaveTheirCheckUnjudged: a figure that is not in the
// window's set of known ones neither trips nor counts as 0, whatever the field
// holds.
func TestMissingFiguresLeaveTheirCheckUnjudged(t *testing.T) {
	everything := release.HasSolved | release.HasViolations | release.HasTransfers | release.HasCost | release.HasP99
	for figure, name := range map[release.Figures]string{
		release.HasViolations: "violations", release.HasCost: "cost", release.HasP99: "p99",
		release.HasTransfers: "transfers", release.HasSolved: "solve_rate",
	} {
		w := window(0, 400, 400)
		w.Known = everything
		switch figure {
		case release.HasViolations:
			w.Violations = 400
		case release.HasCost:
			w.Cost = 9
		case release.HasP99:
			w.P99MS = 9000
		case release.HasTransfers:
			w.Transfers = 400
		case release.HasSolved:
			w.Solved = 0
		}
		l, st := published(), new(breaker.State)
		known := w
		if got := sayAll(drive(&l, st, []release.Window{known})); got != "0 CLOSED->OPEN "+name {
			t.Errorf("%s past its limit and known: got %q", name, got)
		}
		st = new(breaker.State)
		w.Known &^= figure
		if got := sayAll(drive(&l, st, []release.Window{w})); got != "" {
			t.Errorf("%s missing: got %q, want no event", name, got)
		}
	}
}

// TestWindowsWithoutTheFigureDiluteNothing: 3 of the 50 requests whose
// transfers are known are at the limit; 1,000 requests of which nobody knows do
// not hide them.
func TestWindowsWithoutTheFigureDiluteNothing(t *testing.T) {
	l, st := published(), new(breaker.State)
	blind := window(0, 1000, 1000)
	blind.Known = release.HasSolved
	w := window(1, 50, 50)
	w.Transfers = 3
	events := drive(&l, st, []release.Window{blind, w})
	if got := sayAll(events); got != "1 CLOSED->OPEN transfers" {
		t.Fatalf("got %q", got)
	}
	if f := events[0].Finding; f.Of != 50 || f.Count != 3 {
		t.Errorf("finding rests on %d of %d, want 3 of 50", f.Count, f.Of)
	}
}

// TestAProbeIsReadAfterAGapLongerThanEverySpan: the source may be silent for
// hours between a probe and the tick at which its labels are in.
func TestAProbeIsReadAfterAGapLongerThanEverySpan(t *testing.T) {
	l, st := published(), new(breaker.State)
	l.Trials, l.LabelLag = 2, minutes(10)
	breaker.Trip(st, at(0), false)
	for _, m := range []int{6, 7} {
		w := window(m, 20, 18)
		tick(&l, st, w.T, &w)
	}
	w := window(600, 20, 18)
	if got := sayAll(tick(&l, st, w.T, &w)); got != "600 HALF_OPEN->CLOSED probes" {
		t.Errorf("got %q", got)
	}
}

// TestSpansAreOpenOnTheLeft: (now - span, now].
func TestSpansAreOpenOnTheLeft(t *testing.T) {
	for _, tc := range []struct {
		minute int
		want   string
	}{
		{4, "4 CLOSED->OPEN violations"},
		{5, ""},
	} {
		l, st := published(), new(breaker.State)
		first, second := window(0, 20, 20), window(tc.minute, 20, 20)
		first.Violations, second.Violations = 2, 1
		if got := sayAll(drive(&l, st, []release.Window{first, second})); got != tc.want {
			t.Errorf("2 violations at 0 and 1 at %d: got %q, want %q", tc.minute, got, tc.want)
		}
	}
}

// TestWouldFailDecidesNothing: an observed signal, and one that holds, are
// reported and trip nothing; one that is off is not looked at.
func TestWouldFailDecidesNothing(t *testing.T) {
	for _, tc := range []struct {
		name string
		rule breaker.Rule
		want bool
	}{
		{"observe", breaker.Rule{Mode: release.Observe}, true},
		{"hold", breaker.Rule{OnFail: release.HoldStep}, true},
		{"throttle", breaker.Rule{OnFail: release.Throttle}, true},
		{"off", breaker.Rule{Mode: release.Off}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, st := published(), new(breaker.State)
			for s := range l.Rules {
				l.Rules[s] = tc.rule
			}
			w := window(0, 400, 0)
			w.Violations, w.Transfers = 400, 400
			w.Cost, w.P99MS, w.Known = 9, 9000, w.Known|release.HasCost|release.HasP99
			w = streamed(w, 400, 400)
			if ev := breaker.Step(&l, st, &w); ev != nil {
				t.Fatalf("tripped: %s", say(ev))
			}
			for s := release.Signal(0); int(s) < release.Judged; s++ {
				if st.Hits.Has(s) != tc.want {
					t.Errorf("%s: reported %v, want %v", s, st.Hits.Has(s), tc.want)
				}
			}
		})
	}
}
