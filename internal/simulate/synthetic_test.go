package simulate_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

var tenth = release.Weight{Slots: 10, Ring: 100}

// ticks runs a feed to its end under one weight.
func ticks(t testing.TB, spec simulate.Spec, weight release.Weight) (canary, stable []*release.Window) {
	t.Helper()
	feed, err := simulate.NewSynthetic(spec)
	if err != nil {
		t.Fatal(err)
	}
	one := func(ws []release.Window) *release.Window {
		if len(ws) == 0 {
			return nil
		}
		w := ws[0]
		return &w
	}
	for feed.More() {
		tick, err := feed.Next(weight)
		if err != nil {
			t.Fatal(err)
		}
		canary, stable = append(canary, one(tick.Canary)), append(stable, one(tick.Stable))
	}
	return canary, stable
}

// full is a base in which every figure is known.
func full() simulate.Base {
	return simulate.Base{
		Solved: simulate.Rate(0.9), Judged: simulate.Rate(0.5), Violations: simulate.Rate(0.01), Transfers: simulate.Rate(0.02),
		P99MS: 300, LatencySigma: 0.5, CostUSD: 0.004, CostSigma: 0.8,
	}
}

func TestExactCountsAreUsedAsTheyAre(t *testing.T) {
	canary, stable := ticks(t, simulate.Spec{
		Start: t0, Minutes: 100, PerMin: 8, StablePerMin: 16,
		Base: simulate.Base{Solved: simulate.CountPerMin(7), Violations: simulate.CountPerMin(0), Transfers: simulate.CountPerMin(1)},
	}, tenth)
	for m, w := range canary {
		want := release.Window{
			T: t0.Add(time.Duration(m) * time.Minute), Span: time.Minute, Arm: release.Canary,
			Total: 8, Judged: 8, Solved: 7, Transfers: 1, Known: release.HasSolved | release.HasViolations | release.HasTransfers,
		}
		if diff := cmp.Diff(want, *w); diff != "" {
			t.Fatalf("minute %d (-want +got):\n%s", m, diff)
		}
		if s := stable[m]; s.Total != 16 || s.Solved != 14 || s.Transfers != 2 || s.Arm != release.Stable {
			t.Fatalf("minute %d: stable has %+v, want twice the canary's", m, *s)
		}
	}
	if len(canary) != 100 {
		t.Errorf("%d ticks, want 100", len(canary))
	}
}

// Whatever the fractions, sums are right to half a request and no window is
// further than one request from its expectation.
func TestExactFractionsAreCarriedOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perMin := rapid.Float64Range(0.1, 200).Draw(t, "per_min")
		rate := rapid.Float64Range(0, 1).Draw(t, "rate")
		minutes := rapid.IntRange(1, 300).Draw(t, "minutes")
		feed, err := simulate.NewSynthetic(simulate.Spec{Minutes: minutes, PerMin: perMin, Base: simulate.Base{Solved: simulate.Rate(rate)}})
		if err != nil {
			t.Fatal(err)
		}
		total, solved := int64(0), int64(0)
		for range minutes {
			tick, _ := feed.Next(tenth)
			for _, w := range tick.Canary {
				if math.Abs(float64(w.Total)-perMin) > 1 || math.Abs(float64(w.Solved)-rate*float64(w.Total)) > 1 {
					t.Fatalf("window of %d, %d solved", w.Total, w.Solved)
				}
				total, solved = total+w.Total, solved+w.Solved
			}
		}
		if math.Abs(float64(total)-perMin*float64(minutes)) > 0.5001 || math.Abs(float64(solved)-rate*float64(total)) > 1.0001 {
			t.Fatalf("%d requests and %d solved in %d minutes", total, solved, minutes)
		}
	})
}

func TestMissingFiguresStayMissing(t *testing.T) {
	for _, drawn := range []bool{false, true} {
		canary, stable := ticks(t, simulate.Spec{Start: t0, Minutes: 5, Drawn: drawn, PerMin: 50, StablePerMin: 50}, tenth)
		for m := range canary {
			if canary[m].Known != 0 || stable[m].Known != 0 || canary[m].Judged != 0 {
				t.Fatalf("drawn %t: window %+v has figures that nobody gave", drawn, *canary[m])
			}
		}
	}
}

func TestClosedLoopSplitsByTheWeight(t *testing.T) {
	spec := simulate.Spec{Start: t0, Minutes: 60, Closed: true, PerMin: 250, Base: full()}
	for _, tc := range []struct {
		slots          int64
		canary, stable int64 // over 60 minutes; 0: no window at all
	}{{0, 0, 15000}, {1, 150, 14850}, {10, 1500, 13500}, {33, 4950, 10050}, {100, 15000, 0}} {
		canary, stable := ticks(t, spec, release.Weight{Slots: tc.slots, Ring: 100})
		sum := func(ws []*release.Window) (n int64) {
			for _, w := range ws {
				if w != nil {
					n += w.Total
				}
			}
			return n
		}
		if c, s := sum(canary), sum(stable); c != tc.canary || s != tc.stable {
			t.Errorf("at %d %%: %d and %d requests, want %d and %d", tc.slots, c, s, tc.canary, tc.stable)
		}
		for m := range canary {
			if (tc.canary == 0) != (canary[m] == nil) || (tc.stable == 0) != (stable[m] == nil) {
				t.Fatalf("at %d %%, minute %d: windows %v and %v", tc.slots, m, canary[m], stable[m])
			}
		}
	}
}

func TestExogenousTrafficIgnoresTheWeight(t *testing.T) {
	spec := simulate.Spec{Start: t0, Minutes: 10, PerMin: 60, Base: full()}
	for _, w := range []release.Weight{{}, tenth, {Slots: 1, Ring: 1}} {
		canary, stable := ticks(t, spec, w)
		for m := range canary {
			if canary[m].Total != 60 || stable[m] != nil {
				t.Fatalf("at %s: %+v, %v", w, *canary[m], stable[m])
			}
		}
	}
}

func TestCostIsARatioOnlyBesideStable(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spec  simulate.Spec
		w     release.Weight
		ratio float64 // 0: missing
		mean  float64 // 0: missing
	}{
		{"with stable traffic both", simulate.Spec{Closed: true, PerMin: 100, Base: simulate.Base{CostUSD: 0.004, CostRatio: 1.5}}, tenth, 1.5, 0.006},
		{"at 100 % the mean alone", simulate.Spec{Closed: true, PerMin: 100, Base: simulate.Base{CostUSD: 0.004, CostRatio: 1.5}}, release.Weight{Slots: 1, Ring: 1}, 0, 0.006},
		{"without dollars the ratio alone", simulate.Spec{Closed: true, PerMin: 100, Base: simulate.Base{CostRatio: 1.5}}, tenth, 1.5, 0},
		{"at 100 % without dollars nothing", simulate.Spec{Closed: true, PerMin: 100, Base: simulate.Base{CostRatio: 1.5}}, release.Weight{Slots: 1, Ring: 1}, 0, 0},
		{"a canary alone with a ratio as recorded", simulate.Spec{PerMin: 100, Base: simulate.Base{CostRatio: 1.5}}, tenth, 1.5, 0},
		{"a canary alone with dollars only", simulate.Spec{PerMin: 100, Base: simulate.Base{CostUSD: 0.004}}, tenth, 0, 0.004},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.spec.Start, tc.spec.Minutes = t0, 3
			canary, stable := ticks(t, tc.spec, tc.w)
			for m, w := range canary {
				if w.Has(release.HasCost) != (tc.ratio > 0) || math.Abs(w.Cost-tc.ratio) > 1e-12 {
					t.Errorf("ratio %g, known %t; want %g", w.Cost, w.Has(release.HasCost), tc.ratio)
				}
				if w.Has(release.HasCostMean) != (tc.mean > 0) || math.Abs(w.CostMean-tc.mean) > 1e-12 {
					t.Errorf("mean %g, known %t; want %g", w.CostMean, w.Has(release.HasCostMean), tc.mean)
				}
				if s := stable[m]; s != nil && s.Has(release.HasCost) {
					t.Error("stable has a ratio to itself")
				}
			}
		})
	}
}

// A tick depends on spec, seed, number and weight, not on the ticks before.
func TestDrawsDoNotDependOnThePast(t *testing.T) {
	spec := simulate.Spec{Start: t0, Minutes: 50, Drawn: true, Seed: 9, Closed: true, PerMin: 300, Base: full()}
	last := func(before release.Weight) simulate.Tick {
		feed, err := simulate.NewSynthetic(spec)
		if err != nil {
			t.Fatal(err)
		}
		for range 40 {
			_, _ = feed.Next(before)
		}
		tick, _ := feed.Next(tenth)
		return tick
	}
	if diff := cmp.Diff(last(release.Weight{}), last(release.Weight{Slots: 1, Ring: 2})); diff != "" {
		t.Errorf("minute 40 differs after another past:\n%s", diff)
	}
	a, _ := ticks(t, spec, tenth)
	spec.Seed = 10
	b, _ := ticks(t, spec, tenth)
	if cmp.Equal(a, b) {
		t.Error("seeds 9 and 10 are alike")
	}
}

// A fault in one figure leaves the draws of the others as they were.
func TestAFaultLeavesOtherFiguresAlone(t *testing.T) {
	spec := simulate.Spec{Start: t0, Minutes: 30, Drawn: true, Seed: 1, PerMin: 100, StablePerMin: 900, Base: full()}
	a, _ := ticks(t, spec, tenth)
	spec.Faults = []simulate.Fault{{Target: simulate.TransferLevel, Change: simulate.ToRate, Value: 0.3, Arm: release.Canary}}
	b, _ := ticks(t, spec, tenth)
	for m := range a {
		if a[m].Transfers >= b[m].Transfers {
			t.Errorf("minute %d: %d hand-offs become %d", m, a[m].Transfers, b[m].Transfers)
		}
		b[m].Transfers = a[m].Transfers
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("more than hand-offs changed:\n%s", diff)
	}
}

func TestDrawnFiguresHaveTheirMeans(t *testing.T) {
	spec := week(3)
	spec.Faults = nil
	spec.Base.Judged = simulate.Rate(0.5)
	canary, stable := ticks(t, spec, tenth)
	for arm, ws := range map[string][]*release.Window{"canary": canary, "stable": stable} {
		var total, judged, solved, transfers int64
		var cost float64
		for _, w := range ws {
			total, judged, solved, transfers = total+w.Total, judged+w.Judged, solved+w.Solved, transfers+w.Transfers
			cost += w.CostMean * float64(w.Total)
		}
		near := func(what string, k, n int64, p float64) {
			if sd := math.Sqrt(p * (1 - p) * float64(n)); math.Abs(float64(k)-p*float64(n)) > 5*sd {
				t.Errorf("%s: %d of %d %s, want %g of them", arm, k, n, what, p)
			}
		}
		near("judged", judged, total, 0.5)
		near("solved", solved, judged, 0.9)
		near("handed off", transfers, total, 0.02)
		if mean := cost / float64(total); math.Abs(mean/0.004-1) > 0.01 {
			t.Errorf("%s: mean cost %g", arm, mean)
		}
	}
}

// canaryAt returns the canary's window of a minute under one fault.
func canaryAt(t *testing.T, minute int, f simulate.Fault) (canary, stable *release.Window) {
	t.Helper()
	base := full()
	base.Judged = simulate.Level{}
	c, s := ticks(t, simulate.Spec{
		Start: t0, Minutes: 24 * 60, PerMin: 1000, StablePerMin: 1000, Base: base, Faults: []simulate.Fault{f},
	}, tenth)
	return c[minute], s[minute]
}

func TestFaultsChangeWhatTheySay(t *testing.T) {
	solved := func(w *release.Window) float64 { return float64(w.Solved) }
	violations := func(w *release.Window) float64 { return float64(w.Violations) }
	transfers := func(w *release.Window) float64 { return float64(w.Transfers) }
	total := func(w *release.Window) float64 { return float64(w.Total) }
	p99 := func(w *release.Window) float64 { return w.P99MS }
	cost := func(w *release.Window) float64 { return w.Cost }
	for _, tc := range []struct {
		name   string
		fault  simulate.Fault
		minute int
		figure func(*release.Window) float64
		want   float64
	}{
		{"nothing before it", simulate.Fault{Target: simulate.Solve, Change: simulate.ToRate, Value: 0.5, From: 10}, 9, solved, 900},
		{"solve rate to a rate", simulate.Fault{Target: simulate.Solve, Change: simulate.ToRate, Value: 0.5, From: 10}, 10, solved, 500},
		{"until its end", simulate.Fault{Target: simulate.Solve, Change: simulate.ToRate, Value: 0.5, From: 10, Until: 12}, 11, solved, 500},
		{"nothing after it", simulate.Fault{Target: simulate.Solve, Change: simulate.ToRate, Value: 0.5, From: 10, Until: 12}, 12, solved, 900},
		{"solve rate to a count", simulate.Fault{Target: simulate.Solve, Change: simulate.ToCount, Value: 123}, 5, solved, 123},
		{"solve rate by points", simulate.Fault{Target: simulate.Solve, Change: simulate.DropPP, Value: 15}, 5, solved, 750},
		{"solve rate no lower than 0", simulate.Fault{Target: simulate.Solve, Change: simulate.DropPP, Value: 95}, 5, solved, 0},
		{"solve rate by points an hour", simulate.Fault{Target: simulate.Solve, Change: simulate.DecayPP, Value: 4, From: 60}, 210, solved, 800},
		{"solve rate at its daily peak", simulate.Fault{Target: simulate.Solve, Change: simulate.SwingPP, Value: 2, PeakHour: 14}, 14 * 60, solved, 920},
		{"solve rate at its daily low", simulate.Fault{Target: simulate.Solve, Change: simulate.SwingPP, Value: 2, PeakHour: 14}, 2 * 60, solved, 880},
		{"violations to a count", simulate.Fault{Target: simulate.ViolationLevel, Change: simulate.ToCount, Value: 2}, 5, violations, 2},
		{"violations to a rate", simulate.Fault{Target: simulate.ViolationLevel, Change: simulate.ToRate, Value: 0.2}, 5, violations, 200},
		{"violations times", simulate.Fault{Target: simulate.ViolationLevel, Change: simulate.Times, Value: 3}, 5, violations, 30},
		{"hand-offs times", simulate.Fault{Target: simulate.TransferLevel, Change: simulate.Times, Value: 4}, 5, transfers, 80},
		{"hand-offs times no more than all", simulate.Fault{Target: simulate.TransferLevel, Change: simulate.Times, Value: 400}, 5, transfers, 1000},
		{"latency times", simulate.Fault{Target: simulate.Latency, Change: simulate.Times, Value: 4}, 5, p99, 1200},
		{"latency to", simulate.Fault{Target: simulate.Latency, Change: simulate.ToMS, Value: 250}, 5, p99, 250},
		{"cost doubles", simulate.Fault{Target: simulate.CostLevel, Change: simulate.Times, Value: 2}, 5, cost, 2},
		{"cost of stable doubles", simulate.Fault{Target: simulate.CostLevel, Change: simulate.Times, Value: 2, Arm: release.Stable}, 5, cost, 0.5},
		{"traffic halves", simulate.Fault{Target: simulate.Traffic, Change: simulate.Times, Value: 0.5}, 5, total, 500},
		{"traffic swings up", simulate.Fault{Target: simulate.Traffic, Change: simulate.SwingShare, Value: 0.3, PeakHour: 1, Arm: release.All}, 60, total, 1300},
		{"traffic swings down", simulate.Fault{Target: simulate.Traffic, Change: simulate.SwingShare, Value: 0.3, PeakHour: 1, Arm: release.All}, 13 * 60, total, 700},
		{"flapping is on", simulate.Fault{Target: simulate.ViolationLevel, Change: simulate.ToCount, Value: 50, From: 7, Every: 10, For: 2}, 28, violations, 50},
		{"flapping is off", simulate.Fault{Target: simulate.ViolationLevel, Change: simulate.ToCount, Value: 50, From: 7, Every: 10, For: 2}, 29, violations, 10},
		{"a fault of stable leaves the canary alone", simulate.Fault{Target: simulate.Solve, Change: simulate.ToRate, Value: 0.1, Arm: release.Stable}, 5, solved, 900},
		{"labels that are late count as unsolved", simulate.Fault{Target: simulate.Labels, Change: simulate.LateMinutes, Value: 30}, 5, solved, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.fault.Arm == "" {
				tc.fault.Arm = release.Canary
			}
			w, _ := canaryAt(t, tc.minute, tc.fault)
			if got := tc.figure(w); math.Abs(got-tc.want) > 1e-9*tc.want {
				t.Errorf("got %g, want %g", got, tc.want)
			}
		})
	}
}

func TestTrafficDropToZeroIsAGap(t *testing.T) {
	c, s := canaryAt(t, 5, simulate.Fault{Target: simulate.Traffic, Change: simulate.Times, Value: 0, Arm: release.Canary})
	if c != nil || s == nil || s.Total != 1000 {
		t.Errorf("canary %v, stable %v", c, s)
	}
}

// The older a window is when it is read, the more of its labels are there.
func TestLabelsComeInWithAge(t *testing.T) {
	for _, tc := range []struct {
		age  time.Duration
		want int64
	}{{0, 0}, {15 * time.Minute, 450}, {30 * time.Minute, 900}, {time.Hour, 900}} {
		canary, _ := ticks(t, simulate.Spec{
			Start: t0, Minutes: 3, PerMin: 1000, Base: simulate.Base{Solved: simulate.Rate(0.9)}, LabelAge: tc.age,
			Faults: []simulate.Fault{{Target: simulate.Labels, Change: simulate.LateMinutes, Value: 30, Arm: release.All}},
		}, tenth)
		if w := canary[2]; w.Solved != tc.want || w.Judged != 1000 {
			t.Errorf("at an age of %s: %d of %d solved, want %d", tc.age, w.Solved, w.Judged, tc.want)
		}
	}
}

func TestSpansOtherThanAMinuteScaleCounts(t *testing.T) {
	canary, _ := ticks(t, simulate.Spec{
		Start: t0, Minutes: 30, Span: 5 * time.Minute, PerMin: 8,
		Base: simulate.Base{Solved: simulate.CountPerMin(7), Violations: simulate.CountPerMin(0.4)},
	}, tenth)
	if len(canary) != 6 || canary[1].Total != 40 || canary[1].Solved != 35 || canary[1].Violations != 2 || !canary[1].T.Equal(t0.Add(5*time.Minute)) {
		t.Errorf("%d ticks, the second %+v", len(canary), *canary[1])
	}
}

func TestSpecsThatCannotBeAreRefused(t *testing.T) {
	fault := func(f simulate.Fault) simulate.Spec {
		return simulate.Spec{Minutes: 10, PerMin: 5, Base: full(), Faults: []simulate.Fault{{Target: simulate.Latency, Change: simulate.Times, Value: 1, Arm: release.All}, f}}
	}
	closed := func(f simulate.Fault) simulate.Spec {
		s := fault(f)
		s.Closed = true
		return s
	}
	for _, tc := range []struct {
		name string
		spec simulate.Spec
		want string
	}{
		{"negative length", simulate.Spec{Minutes: -1}, "feed: -1 minutes"},
		{"a span of half a second", simulate.Spec{Span: time.Second / 2}, "not a whole number of seconds"},
		{"NaN traffic", simulate.Spec{PerMin: math.NaN()}, "traffic of NaN"},
		{"infinite traffic", simulate.Spec{StablePerMin: math.Inf(1)}, "traffic of 0 and +Inf"},
		{"stable traffic in a closed loop", simulate.Spec{Closed: true, StablePerMin: 5}, "in a closed loop stable gets"},
		{"a count solved in a closed loop", simulate.Spec{Closed: true, Base: simulate.Base{Solved: simulate.CountPerMin(7)}}, "give solved and judged as rates"},
		{"a rate above 1", simulate.Spec{Base: simulate.Base{Solved: simulate.Rate(1.1)}}, "between 0 and 1, not 1.1"},
		{"NaN latency", simulate.Spec{Base: simulate.Base{P99MS: math.NaN()}}, "NaN is no latency"},
		{"a change of another target", fault(simulate.Fault{Target: simulate.Latency, Change: simulate.DropPP}), "fault 2: latency cannot change like that"},
		{"a negative value", fault(simulate.Fault{Target: simulate.Traffic, Change: simulate.Times, Value: -1}), "its value cannot be -1"},
		{"a rate above 1 in a fault", fault(simulate.Fault{Target: simulate.Solve, Change: simulate.ToRate, Value: 2}), "its value cannot be 2"},
		{"an end before its start", fault(simulate.Fault{Target: simulate.Traffic, Change: simulate.Times, From: 5, Until: 5}), "from minute 5 to 5"},
		{"on for longer than its period", fault(simulate.Fault{Target: simulate.Traffic, Change: simulate.Times, Every: 5, For: 6}), "on for 6 of 5 minutes"},
		{"a figure the base does not have", simulate.Spec{Faults: []simulate.Fault{{Target: simulate.CostLevel, Change: simulate.Times}}}, "the base has no cost for it to change"},
		{"more violations than requests", simulate.Spec{PerMin: 5, Base: simulate.Base{Violations: simulate.CountPerMin(6)}}, "6 violations a minute of 5"},
		{"more transfers than requests", simulate.Spec{PerMin: 5, Base: simulate.Base{Transfers: simulate.CountPerMin(6)}}, "6 transfers a minute of 5"},
		{"more judged than requests", simulate.Spec{PerMin: 5, Base: simulate.Base{Solved: simulate.Rate(1), Judged: simulate.CountPerMin(6)}}, "6 judged a minute of 5"},
		{"more solved than requests", simulate.Spec{PerMin: 5, Base: simulate.Base{Solved: simulate.CountPerMin(6)}}, "6 solved a minute of 5"},
		{"more solved than judged", simulate.Spec{PerMin: 5, Base: simulate.Base{Solved: simulate.CountPerMin(4), Judged: simulate.CountPerMin(3)}}, "4 solved a minute of 3"},
		{"more solved than a share judged", simulate.Spec{PerMin: 5, Base: simulate.Base{Solved: simulate.CountPerMin(4), Judged: simulate.Rate(0.5)}}, "4 solved a minute of 2.5"},
		{"a burst of more than the requests", fault(simulate.Fault{Target: simulate.ViolationLevel, Change: simulate.ToCount, Value: 6}), "more requests than the base has"},
		{"a drop to more solved than requests", fault(simulate.Fault{Target: simulate.Solve, Change: simulate.ToCount, Value: 6}), "more requests than the base has"},
		{"requests that take no time", fault(simulate.Fault{Target: simulate.Latency, Change: simulate.ToMS}), "take no time"},
		{"requests that cost nothing", fault(simulate.Fault{Target: simulate.CostLevel, Change: simulate.Times}), "cost nothing"},
		{"a fault of stable without stable", fault(simulate.Fault{Target: simulate.Traffic, Change: simulate.Times, Arm: release.Stable}), "no requests of stable"},
		{"a count in a closed loop", closed(simulate.Fault{Target: simulate.Solve, Change: simulate.ToCount, Value: 5}), "give a rate instead of a count"},
		{"one arm's traffic growing in a closed loop", closed(simulate.Fault{Target: simulate.Traffic, Change: simulate.Times, Value: 2, Arm: release.Canary}), "can only shrink"},
		{"a swing by more than all", fault(simulate.Fault{Target: simulate.Traffic, Change: simulate.SwingShare, Value: 1.2, Arm: release.All}), "cannot swing by more"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := simulate.NewSynthetic(tc.spec)
			if _, typed := errors.AsType[*simulate.SpecError](err); !typed || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want a SpecError with %q", err, tc.want)
			}
		})
	}
}

// FuzzSynthetic: a feed that is accepted yields no window that cannot be.
func FuzzSynthetic(f *testing.F) {
	f.Add(uint64(1), true, true, 250.0, 0.9, 0.02, uint8(0), uint8(3), 2.0, int64(10))
	f.Add(uint64(2), false, false, 8.0, 0.875, 0.0, uint8(1), uint8(4), 15.0, int64(0))
	f.Add(uint64(3), true, false, 0.3, 1.0, 1.0, uint8(6), uint8(8), 30.0, int64(100))
	f.Fuzz(func(t *testing.T, seed uint64, drawn, closed bool, perMin, solve, rare float64, target, change uint8, value float64, slots int64) {
		if !(perMin < 1e5) || target > uint8(simulate.Labels) {
			return
		}
		feed, err := simulate.NewSynthetic(simulate.Spec{
			Start: t0, Minutes: 20, Drawn: drawn, Seed: seed, Closed: closed, PerMin: perMin, LabelAge: 5 * time.Minute,
			Base: simulate.Base{
				Solved: simulate.Rate(solve), Judged: simulate.Rate(solve), Violations: simulate.Rate(rare), Transfers: simulate.CountPerMin(3),
				P99MS: 300, LatencySigma: 1, CostRatio: 1.2, CostSigma: 1,
			},
			Faults: []simulate.Fault{{Target: simulate.Target(target), Change: simulate.Change(change), Value: value, Arm: release.All, From: 3, PeakHour: 5}},
		})
		if err != nil {
			return
		}
		weight := release.Weight{Slots: min(max(slots, 0), 100), Ring: 100}
		for range 20 {
			if !feed.More() {
				t.Fatal("ends early")
			}
			tick, err := feed.Next(weight)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range append(append([]release.Window{}, tick.Canary...), tick.Stable...) {
				if w.Total <= 0 || w.Judged < 0 || w.Judged > w.Total || w.Solved < 0 || w.Solved > w.Judged ||
					w.Violations < 0 || w.Violations > w.Total || w.Transfers < 0 || w.Transfers > w.Total ||
					math.IsNaN(w.P99MS) || math.IsNaN(w.Cost) || w.P99MS < 0 || w.Cost < 0 {
					t.Fatalf("impossible window %+v", w)
				}
			}
		}
		if feed.More() {
			t.Fatal("goes on past its end")
		}
	})
}
