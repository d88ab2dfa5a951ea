package calibrate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// published is the ladder of the published example with every default.
func publishedPlan() *ladder.Plan {
	var rules [release.Judged]breaker.Rule
	l := breaker.Limits{
		Rules: rules, FastSpan: 5 * time.Minute, ViolationLimit: 3, ViolationRate: release.MustRatio("0.005"),
		MinTransfers: 3, TransferRate: release.MustRatio("0.06"), CostRatio: 2, P99MS: 900,
		SlowSpan: 25 * time.Minute, SolveBaseline: release.MustRatio("0.9"), SolveFloor: release.MustRatio("0.8"), MinSamples: 200,
		Cooldown: 6 * time.Minute, Trials: 5, SuccessRate: release.MustRatio("0.8"), LockOnEscalate: true, MaxRecoveries: 3, Keep: time.Hour,
	}
	p := &ladder.Plan{Service: "service", Digest: "d", Candidate: "c"}
	for _, slots := range []int64{1, 5, 10, 30, 100} {
		p.Steps = append(p.Steps, ladder.Step{
			Weight: release.Weight{Slots: slots, Ring: 100}, MinHold: 2 * time.Hour, Gates: ladder.TimeGate | ladder.MetricGate, Limits: l,
		})
	}
	return p
}

// world draws a baseline: perMin requests a minute at p0, the true rate moved
// by a normal noise of tau that is the same for ten minutes.
func world(seed uint64, days int, perMin int64, p0, tau float64) []release.Window {
	rng := rand.New(rand.NewPCG(seed, 5))
	p := p0
	return feed(monday, time.Minute, days*1440, func(i int, w *release.Window) {
		if i%10 == 0 {
			p = math.Min(1, math.Max(0, p0+tau*rng.NormFloat64()))
		}
		w.Total, w.Judged = perMin, perMin
		w.Solved = int64(distuv.Binomial{N: float64(perMin), P: p, Src: rng}.Rand())
	})
}

// spoil lowers the rate of every so-many-th ten minutes by drop.
func spoil(ws []release.Window, every int, drop float64) []release.Window {
	bad := slices.Clone(ws)
	for i := range bad {
		if i/10%every == every/2 {
			bad[i].Solved -= int64(math.Round(drop * float64(bad[i].Judged)))
		}
	}
	return bad
}

func step(t *testing.T, r *Report, pct float64) *Step {
	t.Helper()
	for i := range r.Steps {
		if r.Steps[i].Pct == pct {
			return &r.Steps[i]
		}
	}
	t.Fatalf("no step at %v: %+v", pct, r.Steps)
	return nil
}

// A service of 100 requests a minute whose rate moves by 2 points every ten
// minutes: the noise of 25-minute windows is 1.18 to 1.20 points, and the
// thresholds follow from it.
func TestNoiseIsMatchedToTheLiveWindow(t *testing.T) {
	r := measure(t, world(1, 7, 100, 0.9, 0.02), Options{Plan: publishedPlan()})
	near(t, "tau of ten minutes", r.Dispersion["10m"].TauUsed, 0.02, 0.002)
	near(t, "tau of the live window", r.Slow.Tau, 0.0119, 0.001)
	near(t, "multiplier for 0.1 a week", r.Slow.Z, 4.024, 0.001)
	// 13.2, 9.7 and 6.9 by the binomial's skew alone, and what noise adds to it;
	// at 1 %, from min_samples on.
	for pct, want := range map[float64]float64{0.01: 11.4, 0.05: 14.0, 0.1: 10.4, 0.3: 7.2} {
		near(t, "threshold in points", step(t, r, pct).ThresholdPP, want, 0.05*want)
	}
	if s := step(t, r, 0.01); s.CanJudge || s.SpanMaxMin == nil || *s.SpanMaxMin < 100 {
		t.Errorf("1 %% sees one request a minute: %+v", s)
	}
	if s := step(t, r, 0.1); !s.CanJudge || *s.MDE80PP <= *s.ThresholdPP {
		t.Errorf("10 %%: %+v", s)
	}
	if !r.Verdict.OK || len(r.Incidents) != 0 {
		t.Errorf("verdict %+v, incidents %+v", r.Verdict, r.Incidents)
	}
}

func TestMultiplierFollowsTheBudget(t *testing.T) {
	ws := world(1, 2, 100, 0.9, 0.02)
	for _, c := range []struct {
		name   string
		budget FalseTrips
		z      float64
	}{
		{"five a week", FalseTrips{PerWeek: 5}, 2.839}, {"one a week", FalseTrips{PerWeek: 1}, 3.384}, {"one in ten weeks", FalseTrips{}, 4.024},
		{"1 % in a release of 6 hours", FalseTrips{PerRelease: 0.01, ReleaseHours: 6}, 3.75}, {"5 % in a release of a day", FalseTrips{PerRelease: 0.05, ReleaseHours: 24}, 3.69},
	} {
		t.Run(c.name, func(t *testing.T) {
			near(t, "z", measure(t, ws, Options{FalseTrips: c.budget}).Slow.Z, c.z, 0.006)
		})
	}
}

func TestSignalsThatAreNotSuppliedLeaveTheirShare(t *testing.T) {
	ws := world(1, 2, 100, 0.9, 0)
	for i := range ws {
		ws[i].Known |= release.HasTransfers
		ws[i].Transfers = int64(i % 3)
	}
	shares := measure(t, ws, Options{}).Meta.Budget.Shares
	if len(shares) != 2 || math.Abs(shares["solve_rate"]-5.0/6) > 1e-6 || math.Abs(shares["transfers"]-1.0/6) > 1e-6 {
		t.Errorf("shares %v", shares)
	}
}

// One window in twenty 25 points too low moves the threshold by less than 15 %.
func TestBadWindowsHardlyMoveTheThreshold(t *testing.T) {
	for _, tau := range []float64{0, 0.01, 0.02} {
		ws := world(3, 7, 100, 0.9, tau)
		clean := measure(t, ws, Options{Plan: publishedPlan()})
		bad := measure(t, spoil(ws, 20, 0.25), Options{Plan: publishedPlan()})
		for _, pct := range []float64{0.01, 0.05, 0.1, 0.3, 1} {
			c, b := *step(t, clean, pct).ThresholdPP, *step(t, bad, pct).ThresholdPP
			if math.Abs(b/c-1) >= 0.15 {
				t.Errorf("tau %v: at %v the threshold moves from %.2f to %.2f pp", tau, pct, c, b)
			}
		}
		if named := len(bad.Incidents); named < 45 || named > 51 {
			t.Errorf("tau %v: %d incidents are named, about 50 were planted", tau, named)
		}
		if !warned(bad, "contaminated") || !warned(bad, "incidents") || warned(clean, "contaminated") {
			t.Errorf("tau %v: %v", tau, bad.Warnings)
		}
		if math.Abs(bad.Slow.SolveBaseline-clean.Slow.SolveBaseline) > 0.004 {
			t.Errorf("tau %v: the baseline moves from %v to %v", tau, clean.Slow.SolveBaseline, bad.Slow.SolveBaseline)
		}
	}
}

func TestIncidentsAreLeftOutOnlyWhenAsked(t *testing.T) {
	ws := world(3, 7, 100, 0.9, 0.01)
	bad := slices.Clone(ws)
	for i := 3000; i < 3060; i++ {
		bad[i].Solved /= 2
	}
	listed := measure(t, bad, Options{})
	if len(listed.Incidents) != 1 || listed.Incidents[0].Windows != 6 || listed.Incidents[0].Excluded || listed.Dispersion["10m"].K != 1008 {
		t.Errorf("incidents %+v", listed.Incidents)
	}
	auto := measure(t, bad, Options{AutoExclude: true})
	if !auto.Incidents[0].Excluded || len(auto.Excluded) != 1 || auto.Dispersion["10m"].K != 1002 || auto.Totals != listed.Totals {
		t.Errorf("left out by itself: %+v, %+v", auto.Incidents, auto.Excluded)
	}
	byHand := measure(t, bad, Options{Exclude: []Gap{{From: bad[3000].T, To: bad[3060].T}}})
	if len(byHand.Incidents) != 0 || byHand.Dispersion["10m"].K != 1002 || len(byHand.Windows.Gaps) != 0 {
		t.Errorf("left out by hand: %+v, gaps %+v", byHand.Incidents, byHand.Windows.Gaps)
	}
	if got := codes(refused(t, bad, Options{Strict: true}).Reasons); !slices.Contains(got, "incidents") {
		t.Errorf("--strict: %v", got)
	}
	if _, err := Measure(ws, Options{Strict: true}); err != nil {
		t.Errorf("a clean baseline under --strict: %v", err)
	}
	if got := codes(refused(t, spoil(ws, 12, 0.25), Options{AutoExclude: true}).Reasons); !slices.Equal(got, []string{"contaminated"}) {
		t.Errorf("8 %% bad windows are no incidents: %v", got)
	}
}

func TestVerdict(t *testing.T) {
	noisy := world(7, 7, 100, 0.9, 0.06) // 3.6 points at 25 minutes
	mild := world(7, 7, 100, 0.9, 0.02)
	few := world(7, 7, 1, 0.9, 0)
	for _, c := range []struct {
		name    string
		windows []release.Window
		o       Options
		want    []string
	}{
		{"2 points of noise, 10 to be found", mild, Options{}, []string{}},
		{"the default tolerable drop was not asked for", noisy, Options{DetectDropPP: release.MustRatio("25")}, []string{}},
		{"10 points inside 4 sigma of 3.6", noisy, Options{}, []string{"in-noise"}},
		{"3 points asked for, 4.8 are noise", mild, Options{TolerableDropPP: release.MustRatio("3"), AskedFor: true}, []string{"in-noise"}},
		{"5 points asked for, 4.8 are noise", mild, Options{TolerableDropPP: release.MustRatio("5"), AskedFor: true}, []string{}},
		{"one request in 100 minutes", few, Options{}, []string{"never-judged"}},
		{"3 sigma above what was asked for", noisy, Options{K: 3, AskedFor: true}, []string{"noise"}},
		{"3 sigma that nobody forbade", noisy, Options{K: 3}, []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Plan = publishedPlan()
			r := measure(t, c.windows, c.o)
			if !slices.Equal(r.Verdict.Reasons, c.want) || r.Verdict.OK != (len(c.want) == 0) {
				t.Errorf("verdict %+v, want %v; %+v", r.Verdict, c.want, r.Slow)
			}
			for _, code := range c.want {
				if !warned(r, code) {
					t.Errorf("%s is not explained: %+v", code, r.Warnings)
				}
			}
		})
	}
}

// A rate that was 4 points lower in the second half, and one that swings by 4
// points over the day.
func TestTimeStructureIsSaid(t *testing.T) {
	flat := world(5, 7, 200, 0.9, 0.01)
	half, daily := slices.Clone(flat), slices.Clone(flat)
	for i := range flat {
		if i >= len(flat)/2 {
			half[i].Solved -= 8
		}
		daily[i].Solved -= int64(math.Round(8 * math.Sin(2*math.Pi*float64(i%1440)/1440)))
	}
	for _, c := range []struct {
		name    string
		windows []release.Window
		want    string
	}{{"deployed in between", half, "baseline-drifts"}, {"daily swing", daily, "hour-swing"}, {"daily swing drifts slowly", daily, "slow-drift"}} {
		t.Run(c.name, func(t *testing.T) {
			if r := measure(t, c.windows, Options{}); !warned(r, c.want) {
				t.Errorf("%s is not said: halves %+v, swing %v (p %v), drift %v", c.want, r.Time.Halves, deref(r.Time.Swing), deref(r.Time.SwingP), deref(r.Dispersion["10m"].Drift))
			}
		})
	}
	r := measure(t, flat, Options{})
	for _, code := range []string{"baseline-drifts", "hour-swing", "slow-drift", "contaminated", "few-independent"} {
		if warned(r, code) {
			t.Errorf("a flat baseline is warned of %s: halves %+v, swing %v", code, r.Time.Halves, deref(r.Time.Swing))
		}
	}
	if len(r.Time.Hours) != 24 || len(r.Time.Weekdays) != 7 || r.Time.Weekdays[0].Day != "mon" || len(r.Time.Weeks) != 1 {
		t.Errorf("%d hours, weekdays %+v, weeks %+v", len(r.Time.Hours), r.Time.Weekdays, r.Time.Weeks)
	}
}

// What is written is what is replayed, and what is written is exact.
func TestPlanHasTheSettingsInIt(t *testing.T) {
	ws := world(2, 7, 100, 0.9, 0.01)
	rng := rand.New(rand.NewPCG(4, 4))
	for i := range ws {
		ws[i].Known |= release.HasViolations | release.HasTransfers | release.HasSlow | release.HasP99 | release.HasCostMean
		ws[i].Violations = int64(distuv.Poisson{Lambda: 0.03, Src: rng}.Rand())
		ws[i].Transfers = int64(distuv.Poisson{Lambda: 2, Src: rng}.Rand())
		ws[i].P99MS = 800
		ws[i].Slow = int64(distuv.Poisson{Lambda: 1, Src: rng}.Rand())
		ws[i].CostMean = 0.01 * (1 + 0.15*rng.NormFloat64())
	}
	base := publishedPlan()
	r := measure(t, ws, Options{Plan: base})
	plan, err := r.Plan(base)
	if err != nil {
		t.Fatal(err)
	}
	before := publishedPlan()
	for i := range plan.Steps {
		l, st := &plan.Steps[i].Limits, &r.Steps[i]
		if l.MinTransfers != st.Transfers.Threshold || l.ViolationLimit != st.Violations.Threshold || l.MinSlow != st.Slow.Threshold || !l.P99ByCount {
			t.Errorf("step %d: limits %+v, step %+v", i+1, l, st)
		}
		if st.Transfers.PerWeek > 0.1*r.Meta.Budget.Shares["transfers"] {
			t.Errorf("step %d: transfers alone trip %v a week", i+1, st.Transfers.PerWeek)
		}
		if l.Noise.Z < *r.Slow.Z-0.3 || l.Noise.Z > *r.Slow.Z+0.5 || l.MinSamples != *r.Slow.MinSamples || l.SolveFloor.Float64() != r.Slow.SolveBaseline-0.05 {
			t.Errorf("step %d: %+v", i+1, l)
		}
		if base.Steps[i].Limits != before.Steps[i].Limits {
			t.Error("the plan that was given is changed")
		}
	}
	lambda := *r.Transfers.Rate * *r.Steps[0].RateP50 * 5
	if c := plan.Steps[0].Limits; c.TransferRate.Compare(c.MinTransfers, int64(math.Round(5**r.Steps[0].RateP50))) < 0 {
		t.Errorf("%d transfers of the expected %v requests are not at the rate %v (lambda %v)", c.MinTransfers, 5**r.Steps[0].RateP50, c.TransferRate, lambda)
	}
}

// Both arms swing together by 4 points and each by one of its own.
func TestControlKeepsOnlyWhatIsEachArmsOwn(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	arm := func(name release.Arm, n int64) []release.Window {
		own := rand.New(rand.NewPCG(uint64(n), 1))
		p := 0.0
		return feed(monday, 25*time.Minute, 300, func(i int, w *release.Window) {
			p = 0.85 + 0.04*math.Sin(float64(i)) + 0.01*own.NormFloat64()
			w.Total, w.Judged, w.Arm = n, n, name
			w.Solved = int64(distuv.Binomial{N: float64(n), P: p, Src: rng}.Rand())
		})
	}
	both := append(arm(release.Stable, 20000), arm(release.Canary, 5000)...)
	r := measure(t, both, Options{Span: 150 * time.Minute, AllowShort: true, Plan: publishedPlan()})
	near(t, "each arm's own", r.Slow.TauControl, 0.01, 0.001)
	if *r.Slow.Tau < 0.025 {
		t.Errorf("tau against the fixed baseline %v, the swing is in it", *r.Slow.Tau)
	}
	if one := measure(t, arm(release.Stable, 20000), Options{Span: 150 * time.Minute, AllowShort: true}); one.Slow.TauControl != nil {
		t.Errorf("one arm cannot say: %v", *one.Slow.TauControl)
	}
}

// A noise of 3.5 points that both arms share drowns a drop of 10 against a
// fixed baseline, and cancels against stable in the same minutes.
func TestAgainstStableIsAWayOutOfTheNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	arm := func(name release.Arm, n int64) []release.Window {
		return feed(monday, 25*time.Minute, 300, func(i int, w *release.Window) {
			w.Total, w.Judged, w.Arm = n, n, name
			w.Solved = int64(distuv.Binomial{N: float64(n), P: 0.85 + 0.05*math.Sin(float64(i)), Src: rng}.Rand())
		})
	}
	both := append(arm(release.Stable, 2000), arm(release.Canary, 500)...)
	o := Options{Span: 150 * time.Minute, AllowShort: true, Plan: publishedPlan()}
	fixed := measure(t, both, o)
	if fixed.Verdict.OK || !warned(fixed, "in-noise") {
		t.Errorf("against the fixed baseline: %+v", fixed.Verdict)
	}
	o.Plan = publishedPlan()
	for i := range o.Plan.Steps {
		o.Plan.Steps[i].Limits.AgainstStable = true
	}
	r := measure(t, both, o)
	if !r.Verdict.OK || !warned(r, "no-control") || r.Slow.MinSamples == nil {
		t.Errorf("against stable: %+v, %+v", r.Verdict, r.Warnings)
	}
	ten, whole := step(t, r, 0.1), step(t, r, 1)
	if ten.Against != "stable" || whole.Against != "baseline" || *ten.ThresholdPP >= *step(t, fixed, 0.1).ThresholdPP {
		t.Errorf("10 %%: %+v; 100 %%: %+v", ten, whole)
	}
	// sigma_d^2 = p q (1/n + s/(n (1-s))) + 2 tau_control^2
	p, n := r.Slow.SolveBaseline, float64(*ten.NWindow)
	want := math.Sqrt(p*(1-p)*(1/n+0.1/(n*0.9)) + 2**r.Slow.TauControl**r.Slow.TauControl)
	near(t, "sigma of the difference", ten.Sigma, want, 0.02*want)
}

// An incident of which a minute was not logged is the same incident: it is
// named, left out of the replay, and moves no limit.
func TestAnIncidentInAPartlyCoveredWindowIsNamed(t *testing.T) {
	ws := world(3, 7, 100, 0.9, 0.01)
	for i := 3000; i < 3036; i++ {
		ws[i].Solved = 25
	}
	whole := measure(t, ws, Options{Plan: publishedPlan()})
	holes := slices.Clone(ws)
	for _, i := range []int{3034, 3022, 3011, 3005} { // one in each of its windows
		holes = slices.Delete(holes, i, i+1)
	}
	torn := slices.Clone(ws[:3033]) // and a log that ends within it
	for _, c := range []struct {
		name    string
		windows []release.Window
	}{{"a minute missing in each window", holes}, {"the log ends in it", torn}} {
		r := measure(t, c.windows, Options{Plan: publishedPlan()})
		if len(r.Incidents) != 1 || !r.Incidents[0].From.Equal(ws[3000].T) || r.Incidents[0].To.Before(c.windows[len(c.windows)-1].T) && c.name == "the log ends in it" {
			t.Errorf("%s: incidents %+v", c.name, r.Incidents)
		}
		for _, w := range r.clean {
			if !w.T.Before(ws[3000].T) && w.T.Before(ws[3036].T) {
				t.Errorf("%s: %v is replayed as normal", c.name, w.T)
				break
			}
		}
		a, b := *step(t, whole, 0.1).ThresholdPP, *step(t, r, 0.1).ThresholdPP
		if math.Abs(b/a-1) > 0.15 {
			t.Errorf("%s: the threshold moves from %v to %v pp", c.name, a, b)
		}
	}
}

// Three unsolved requests of three are far out in sigmas, and nothing to speak of.
func TestFewRequestsAreNoIncident(t *testing.T) {
	ws := world(11, 14, 1, 0.9, 0)
	if r := measure(t, ws, Options{}); len(r.Incidents) > 0 {
		t.Errorf("%+v", r.Incidents)
	}
}

func TestDispersionHasItsKeysWhateverTheWindowsAreCalled(t *testing.T) {
	ws := world(1, 2, 100, 0.9, 0.01)
	plan := publishedPlan()
	for i := range plan.Steps {
		plan.Steps[i].Limits.SlowSpan = time.Hour
	}
	r := measure(t, ws, Options{Span: 10 * time.Minute, SpanName: "600s", Plan: plan, Live: time.Hour})
	for _, key := range []string{"600s", "10m", "25m", "60m"} {
		if d, ok := r.Dispersion[key]; !ok || d.Phi == nil {
			t.Errorf("%s is not there: %v", key, r.Dispersion)
		}
	}
	if *r.Dispersion["600s"].Phi != *r.Dispersion["10m"].Phi || r.Slow.TauSpan != "60m" {
		t.Errorf("tau is of %s", r.Slow.TauSpan)
	}
}

// One request in twenty carries a cost: what a window's mean is of is a
// twentieth of its requests.
func TestCostOfAPartOfTheRequests(t *testing.T) {
	ws := world(1, 2, 200, 0.9, 0)
	for i := range ws {
		ws[i].Known |= release.HasCostMean
		ws[i].CostMean = 0.01
	}
	costs := []stats.Weighted{{Value: 0.005, Weight: 14400}, {Value: 0.015, Weight: 14400}} // 10 a minute
	o := Options{Plan: publishedPlan(), Requests: map[release.Arm]Requests{release.All: {Exact: true, CostUSD: costs}}}
	some := measure(t, ws, o)
	costs[0].Weight, costs[1].Weight = 20*costs[0].Weight, 20*costs[1].Weight
	all := measure(t, ws, o)
	if ratio := float64(*some.Cost.NRequired) / float64(*all.Cost.NRequired); ratio < 18 || ratio > 21 {
		t.Errorf("%d requests are required where all have a cost, %d where one in twenty has", *all.Cost.NRequired, *some.Cost.NRequired)
	}
	if !warned(some, "partial-figure") || warned(all, "partial-figure") || some.Cost.Requests != 28800 {
		t.Errorf("%+v, %v", some.Cost, some.Warnings)
	}
}
