package breaker_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// TestNoNoiseMeansNoFloat: with Z 0 the other figures of noise change nothing,
// whatever they are.
func TestNoNoiseMeansNoFloat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimits(t)
		noisy := l
		noisy.Noise = breaker.Noise{Tau: math.NaN(), SE: math.Inf(1), TauControl: math.NaN(), Tail: breaker.ExactTail}
		c := breaker.SolveCounts{Judged: rapid.Int64Min(1).Draw(t, "judged")}
		c.Solved = rapid.Int64Range(0, c.Judged).Draw(t, "solved")
		want := l.SolveFloor.Compare(c.Solved, c.Judged) <= 0
		if l.SolveTrips(&c) != want || noisy.SolveTrips(&c) != want || noisy.SolveFinding(&c, 0) != l.SolveFinding(&c, 0) {
			t.Fatalf("%d of %d: want %v", c.Solved, c.Judged, want)
		}
	})
}

// TestTheScreenHidesNoTail: where the tail is not computed, it is not as small
// as that of Z sigmas, for Z from 2 on, every baseline from 0.5 on and noise whose true rate
// has one peak (both shapes of the beta distribution at least 1).
func TestTheScreenHidesNoTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p0 := rapid.Float64Range(0.5, 0.999).Draw(t, "p0")
		n := rapid.Int64Range(1, 3000).Draw(t, "n")
		z := rapid.Float64Range(2, 6).Draw(t, "z")
		rho := rapid.Float64Range(1e-9, 1).Draw(t, "rho") * (1 - p0) / (2 - p0)
		tau := math.Sqrt(rho * p0 * (1 - p0))
		sigma := stats.NoiseSigma(p0, n, tau, 0)
		x := int64(math.Floor((p0-min(2, z/2)*sigma)*float64(n))) + 1 // the first that is screened out
		if x < 0 {
			return
		}
		if tail := stats.BetaBinomialCDF(x, n, p0, rho); tail <= stats.OneSided(z) {
			t.Fatalf("%d of %d at %v: %v is below the tail of %v sigma, %v", x, n, p0, tail, z, stats.OneSided(z))
		}
	})
}

// TestTheLimitShownIsTheLimitThatTrips: one solved more than the limit passes.
func TestTheLimitShownIsTheLimitThatTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawNewLimits(t)
		c := breaker.SolveCounts{Judged: rapid.Int64Range(1, 2000).Draw(t, "judged")}
		if rapid.Bool().Draw(t, "control") {
			c.Controlled, c.ControlJudged = c.Judged, rapid.Int64Range(1, 2000).Draw(t, "control_judged")
			c.ControlSolved = rapid.Int64Range(0, c.ControlJudged).Draw(t, "control_solved")
		}
		c.Solved = rapid.Int64Range(0, c.Judged).Draw(t, "solved")
		f := l.SolveFinding(&c, 0)
		if f.Form == release.FittedExact && f.Sigmas == 0 {
			if l.SolveTrips(&c) {
				t.Fatalf("%s, but it trips", f)
			}
			return
		}
		if gap := f.Value - f.Limit; math.Abs(gap) > 1e-9 && l.SolveTrips(&c) != (gap < 0) {
			t.Fatalf("%s: trips %v", f, l.SolveTrips(&c))
		}
	})
}

// TestADropAgainstStableIsExact where floats would miss it: 0.9 - 0.8 is more
// than 0.1 in floats, 0.8 - 0.7 less.
func TestADropAgainstStableIsExact(t *testing.T) {
	for _, tc := range []struct {
		name                               string
		solved, judged, control, controlOf int64
		trips                              bool
		baseline, floor                    string
	}{
		{"90 to 80 % is 10 pp", 160, 200, 180, 200, true, "0.9", "0.8"},
		{"80 to 70 % is 10 pp", 140, 200, 800, 1000, true, "0.9", "0.8"},
		{"80 to 70.5 % is not", 141, 200, 800, 1000, false, "0.9", "0.8"},
		{"a third less a third", 333, 999, 666, 999, true, "0.9", "0.6"},
		{"a drop of a hair less than a third, and counts of sixteen digits", 1e15, 3e15, 2e15 - 1, 3e15, false, "0.9", "0.566666666666666667"},
		{"all of stable, all of the canary", 200, 200, 200, 200, false, "0.9", "0.8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := published()
			l.AgainstStable, l.SolveBaseline, l.SolveFloor = true, release.MustRatio(tc.baseline), release.MustRatio(tc.floor)
			c := breaker.SolveCounts{Judged: tc.judged, Solved: tc.solved, Controlled: tc.judged, ControlJudged: tc.controlOf, ControlSolved: tc.control}
			if got := l.SolveTrips(&c); got != tc.trips {
				t.Errorf("trips %v: %s", got, l.SolveFinding(&c, 0))
			}
		})
	}
}

// TestNoiseAtTheEdges: figures at which the formulas have no value.
func TestNoiseAtTheEdges(t *testing.T) {
	for _, tc := range []struct {
		name   string
		noise  breaker.Noise
		p0     string
		solved int64
		want   bool
	}{
		{"a baseline of 1 without noise: the floor alone", breaker.Noise{Z: 4}, "1", 180, true},
		{"a baseline of 1 with noise", breaker.Noise{Z: 4, Tau: 0.05}, "1", 180, false},
		{"a baseline of 1 and an exact tail, which it has not", breaker.Noise{Z: 4, Tau: 0.05, Tail: breaker.ExactTail}, "1", 180, false},
		{"nothing solved is beyond any noise", breaker.Noise{Z: 4, Tau: 0.05, Tail: breaker.ExactTail}, "0.95", 0, true},
		{"noise so wide that nothing is", breaker.Noise{Z: 4, Tau: 0.3}, "0.95", 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := published()
			l.Noise, l.SolveBaseline, l.SolveFloor = tc.noise, release.MustRatio(tc.p0), release.MustRatio("0.92")
			c := breaker.SolveCounts{Judged: 200, Solved: tc.solved}
			if got := l.SolveTrips(&c); got != tc.want {
				t.Errorf("trips %v, want %v: %s", got, tc.want, l.SolveFinding(&c, 0))
			}
			if f := l.SolveFinding(&c, 0); math.IsNaN(f.Limit) || math.IsNaN(f.Sigmas) {
				t.Errorf("limit %v, %v sigma", f.Limit, f.Sigmas)
			}
		})
	}
}

// TestAnObservedSumGoesOn: past its limit it is reported at every window, and
// trips nothing.
func TestAnObservedSumGoesOn(t *testing.T) {
	l, st := published(), new(breaker.State)
	l.SolveBaseline, l.Judge, l.Cusum = release.MustRatio("0.9"), breaker.CusumJudge, breaker.Cusum{Drop: release.MustRatio("0.1"), Limit: 3}
	l.Rules[release.SolveRate].Mode = release.Observe
	for m, want := range []bool{false, false, true, true, true} {
		w := window(m, 8, 5)
		if m == 3 {
			w.Judged, w.Solved = 0, 0
		}
		if ev := breaker.Step(&l, st, &w); ev != nil {
			t.Fatal(say(ev))
		}
		if got := st.Hits.Has(release.SolveRate); got != want {
			t.Errorf("minute %d: reported %v, want %v", m, got, want)
		}
	}
	l.Rules[release.SolveRate].Mode = release.Off // and looked at no more, it is forgotten
	w := window(5, 8, 5)
	breaker.Step(&l, st, &w)
	l.Rules[release.SolveRate].Mode = release.Enforce
	w = window(6, 8, 6)
	if ev := breaker.Step(&l, st, &w); ev != nil {
		t.Errorf("%s: %s", say(ev), ev.Finding)
	}
}

// TestASumOfARateOfOneStaysFinite: the logarithm of 0 is none, and a state
// with an infinite sum could not be written.
func TestASumOfARateOfOneStaysFinite(t *testing.T) {
	l, st := published(), new(breaker.State)
	l.SolveBaseline, l.Judge, l.Cusum = release.MustRatio("1"), breaker.CusumJudge, breaker.Cusum{Drop: release.MustRatio("1"), Limit: 30}
	w := window(0, 8, 6) // the six solved outweigh the two unsolved
	if ev := breaker.Step(&l, st, &w); ev != nil {
		t.Fatal(say(ev), ev.Finding)
	}
	st = read(t, marshal(t, st))
	w = window(1, 2, 0)
	ev := breaker.Step(&l, st, &w)
	if want := -2 * math.Log(1e-9); ev == nil || math.Abs(ev.Finding.Value-want) > 1e-6 {
		t.Errorf("%s, want a sum of %v", say(ev), want)
	}
}

// TestLateLabelsComeWithTheirControl: an amended window is judged against what
// stable is known to have done by then; without that, by the baseline.
func TestLateLabelsComeWithTheirControl(t *testing.T) {
	for _, tc := range []struct {
		name    string
		control bool
		want    string
	}{
		{"against stable", true, "11 CLOSED->OPEN solve_rate: 170 of 200 solved in 25 minutes (85 % against stable's 96 %), trips at 86 % or less"},
		{"stable is not shown again", false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, st := published(), new(breaker.State)
			l.AgainstStable, l.SolveBaseline, l.LabelLag = true, release.MustRatio("0.9"), minutes(10)
			w := window(0, 200, 10)
			w.ControlJudged, w.ControlSolved, w.Known = 1000, 30, w.Known|release.HasControl
			breaker.Step(&l, st, &w)
			w.Solved, w.ControlSolved = 170, 960
			if !tc.control {
				w.Known &^= release.HasControl
			}
			if !breaker.Amend(&l, st, &w) {
				t.Fatal("not amended")
			}
			got := ""
			next := window(11, 1, 1)
			for _, ev := range tick(&l, st, next.T, &next) {
				got += say(&ev) + ": " + ev.Finding.String()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestAStepThatNeedsMoreSamplesReachesFurtherBack at once, not only from its
// own windows on.
func TestAStepThatNeedsMoreSamplesReachesFurtherBack(t *testing.T) {
	l, st := published(), new(breaker.State)
	l.SlowSpan, l.SlowSpanMax, l.MinSamples, l.Keep = minutes(5), minutes(60), 40, minutes(60)
	l.Rules[release.SolveRate].Mode = release.Observe
	for m := range 30 {
		w := window(m, 8, 4)
		breaker.Step(&l, st, &w)
	}
	l.MinSamples, l.Rules[release.SolveRate].Mode = 200, release.Enforce
	w := window(30, 8, 4)
	if ev := breaker.Step(&l, st, &w); ev == nil || ev.Finding.Of != 200 {
		t.Errorf("%s, want a trip on 200 judged: %+v", say(ev), ev)
	}
}
