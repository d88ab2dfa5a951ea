package report_test

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/canaryctl/canaryctl/internal/calibrate"
)

// week is a made-up baseline as a report would tell it: 100 requests a minute,
// nine of ten solved, noise of 2 pp between windows of ten minutes, a slow
// night, three incidents, an outage of the log and an excluded load test. days
// and window make it longer or coarser.
func week(days int, window time.Duration) *calibrate.Report {
	rng := rand.New(rand.NewPCG(7, 11))
	from := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	to := from.AddDate(0, 0, days)
	r := &calibrate.Report{
		Schema: 1, Arm: "stable", Dispersion: map[string]calibrate.Dispersion{},
		Meta: calibrate.Meta{
			Version: "0.3.0", InputSHA256: "9f2b6c0f8f7d3f64c1a0e6a2f5b8d4c7e1a3b5d7f9081726354453627180a9bc", Seed: 1, Zone: "Europe/Berlin", Coverage: 0.976,
			Rule: "budget", Judge: "window", LiveMin: 25, TickMin: 1,
			Budget: calibrate.Budget{PerWeek: 0.1, Shares: map[string]float64{"solve_rate": 0.5, "violations": 0.2, "cost": 0.1, "p99": 0.1, "transfers": 0.1}},
		},
		Span:           calibrate.Span{From: from, To: to, Hours: to.Sub(from).Hours(), CoveredMin: 9840},
		RequestsPerMin: new(101.3),
		Verdict:        calibrate.Verdict{Reasons: []string{"step-blind"}},
		Warnings: []calibrate.Warning{
			{Code: "step-blind", Text: "the steps 1 % and 5 % never hold the 236 judged requests that the slow layer needs in 25 minutes", Hint: "--judge count looks back as far as it must; or a first step of 10 %"},
			{Code: "incidents", Text: "3 incidents lie in the baseline; with them sigma is 2.9 pp, without 2.2 pp", Hint: "look at them below; leave out with --exclude what will not happen again"},
			{Code: "hour-swing", Text: "the solve rate of the hours differs by 1.9 pp", Hint: "compare with stable in the same minutes: slow_layer.against: stable"},
		},
	}
	r.Windows = calibrate.Windows{Span: "10m", Empty: 1, Partial: []calibrate.Partial{{T: from.Add(50 * time.Hour), CoveredMin: 7, Total: 640}}}
	if window != 10*time.Minute {
		r.Windows.Span = window.String()
	}
	hour := func(h float64) time.Time { return from.Add(time.Duration(h * float64(time.Hour))) }
	r.Windows.Gaps = []calibrate.Gap{{From: hour(74), To: hour(78), Minutes: 240}}
	r.Excluded = []calibrate.Gap{{From: hour(122), To: hour(125), Minutes: 180}}
	r.Incidents = []calibrate.Incident{
		{From: hour(33), To: hour(34.5), Windows: 9, Judged: 9120, Solved: 7231, WorstZ: -7.3},
		{From: hour(98), To: hour(98.5), Windows: 3, Judged: 2980, Solved: 2968, WorstZ: 4.9, Above: true},
		{From: hour(122), To: hour(125), Windows: 18, Judged: 31020, Solved: 26100, WorstZ: -5.8, Excluded: true},
	}
	for t := from; t.Before(to); t = t.Add(window) {
		if t.Before(hour(78)) && !t.Before(hour(74)) {
			continue
		}
		r.Chart = append(r.Chart, chartPoint(rng, r, t, window))
	}
	r.Windows.Whole = len(r.Chart)
	for _, p := range r.Chart {
		r.Totals.Total += p.Judged + p.Judged/50
		r.Totals.Judged += p.Judged
		r.Totals.Solved += p.Solved
	}
	fillFigures(r, from, days)
	fillSteps(r)
	r.Replay = replayed(r)
	return r
}

func perMinute(t time.Time) float64 {
	h := float64(t.Hour()) + float64(t.Minute())/60
	return 100 + 60*math.Sin((h-9)/24*2*math.Pi)
}

func chartPoint(rng *rand.Rand, r *calibrate.Report, t time.Time, window time.Duration) calibrate.Point {
	n := perMinute(t) * window.Minutes() * (0.95 + 0.1*rng.Float64())
	p := 0.9 + 0.008*math.Sin(float64(t.Hour())/24*2*math.Pi) + 0.017*rng.NormFloat64()
	flagged := false
	for i, in := range r.Incidents {
		if !t.Before(in.From) && t.Before(in.To) {
			flagged = true
			p += []float64{-0.12, 0.088, -0.07}[i]
		}
	}
	p = min(p+math.Sqrt(0.09/n)*rng.NormFloat64(), 1)
	s := 3 * math.Sqrt(0.09/n+0.0004)
	return calibrate.Point{T: t, Judged: int64(n), Solved: int64(math.Round(p * math.Floor(n))), Lower: 0.9 - s, Upper: min(0.9+s, 1), Flagged: flagged}
}

func fillFigures(r *calibrate.Report, from time.Time, days int) {
	r.Centre = calibrate.Centre{Mean: new(0.8987), P0: new(0.9), P0SE: new(0.00071), Median: new(0.9006)}
	r.Dispersion["25m"] = calibrate.Dispersion{K: 393, KEff: new(384.6), Mean: new(0.8989), SD: new(0.0141), Q: new(1920.4), DF: 392, P: new(0.0), Phi: new(4.9), ICC: new(0.0016),
		TauDL: new(0.0153), TauRobust: new(0.012), TauUsed: new(0.012), SigmaZ: new(2.05), SDZ: new(2.2), R1: new(0.01), Drift: new(1.07)}
	r.Dispersion["10m"] = calibrate.Dispersion{K: len(r.Chart), KEff: new(941.2), Mean: new(0.8987), SD: new(0.0222), Q: new(5301.0), DF: len(r.Chart) - 1, P: new(0.0), Phi: new(5.4), ICC: new(0.0044),
		TauDL: new(0.0226), TauRobust: new(0.02), TauUsed: new(0.02), SigmaZ: new(2.31), SDZ: new(2.32), R1: new(0.03), Drift: new(1.0)}
	for h := range 24 {
		at := from.Add(time.Duration(h) * time.Hour)
		r.Time.Hours = append(r.Time.Hours, calibrate.Hour{Hour: h, Judged: int64(perMinute(at) * 60 * 7), Rate: new(0.9 + 0.008*math.Sin(float64(h)/24*2*math.Pi) + 0.002*math.Cos(float64(h*h))), SE: new(0.0025 + 0.001*math.Cos(float64(h))), RequestsPerMin: new(perMinute(at))})
	}
	for i, d := range []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"} {
		r.Time.Weekdays = append(r.Time.Weekdays, calibrate.Day{Day: d, Judged: int64(144000 - 9000*i), Rate: new(0.902 - 0.001*float64(i)), RequestsPerMin: new(104 - 2.5*float64(i))})
	}
	r.Time.Weeks = []calibrate.Week{{From: from, Requests: r.Totals.Total, Judged: r.Totals.Judged, Rate: new(0.9)}}
	if days > 7 {
		r.Time.Weeks = append(r.Time.Weeks, calibrate.Week{From: from.AddDate(0, 0, 7), Requests: r.Totals.Total, Judged: r.Totals.Judged, Rate: new(0.897), Ratio: new(1.31)})
	}
	r.Time.Swing, r.Time.SwingP = new(0.019), new(0.00021)
	r.Time.Halves = &calibrate.Contrast{First: 0.9004, Second: 0.8992, Z: -0.83}
	r.Traffic = calibrate.Traffic{P10: new(48.0), P50: new(103.0), JudgedP10: new(47.0), PeakToTrough: new(4.0), PeakHour: new(15), TroughHour: new(3)}
	r.Slow = calibrate.Slow{
		SolveBaseline: 0.9, TolerableDropPP: 5, DetectDropPP: 10, Z: new(4.19), Tau: new(0.012), TauSpan: "25m", TauMethod: "robust", TauMax: new(0.0239), SE: new(0.00071),
		Tail: "normal", SigmaPP: new(2.2), ChancePP: new(0.95), ThresholdPP: 5, MinSamples: new(int64(236)), SMinPct: new(20.09), Alpha: 0.000014,
		Plain: calibrate.Plain{K: 3, SigmaPP: new(2.2), ThreeSigmaPP: new(6.6), ThresholdPP: new(6.6), MinSamples: new(int64(212)), OneWindow: 97, Of: len(r.Chart)},
	}
	r.Violations = calibrate.Rate{Rate: new(0.0006), Count: new(int64(604)), Requests: r.Totals.Total, Upper95: new(0.00064), Phi: new(1.02)}
	r.Transfers = calibrate.Rate{Rate: new(0.061), Count: new(int64(61420)), Requests: r.Totals.Total, Tau: new(0.006), Phi: new(1.9)}
	r.P99 = calibrate.P99{ValueMS: new(2140.0), CI: []float64{2090, 2195}, Method: "order statistics of single latencies", Judge: "count", Slow: calibrate.Rate{Rate: new(0.01), Requests: r.Totals.Total}, SlowMS: new(2140.0),
		Exceed: []calibrate.Exceed{{N: 50, Count: 5}, {N: 100, Count: 7}, {N: 200, Count: 9}, {N: 1000, Count: 24}}}
	r.Cost = calibrate.Cost{MeanUSD: new(0.00412), Requests: r.Totals.Total, CV: new(1.4), CVFrom: "requests", Top1Share: new(0.083), NRequired: new(int64(126))}
}

// fillSteps works the steps out by the formula that the page draws.
func fillSteps(r *calibrate.Report) {
	for _, pct := range []float64{0.01, 0.05, 0.10, 0.30, 1} {
		n := 47 * 25 * pct
		sigma := math.Sqrt(0.09/n + 0.012*0.012*(1-1/n) + 0.00071*0.00071)
		gamma := 0.8 * 0.09 / (n * n * sigma * sigma * sigma)
		z := 4.19 + (4.19*4.19-1)*gamma/6
		threshold := max(5, 100*z*sigma)
		r.Steps = append(r.Steps, calibrate.Step{
			Pct: pct, RateP10: new(48 * pct), RateP50: new(103 * pct), NWindow: new(int64(math.Round(n))), Sigma: new(sigma), Gamma: new(gamma), ZCF: new(z),
			ThresholdPP: new(math.Round(100*threshold) / 100), MDE80PP: new(math.Round(100*(threshold+84*sigma)) / 100), NNoise: new(int64(180)), NPower: new(int64(236)),
			CanJudge: n >= 236, WaitP95Min: new(260 / (47 * pct)), HoldMin: map[string]*float64{"5": new(max(25, 8.1/pct)), "10": new(max(25, 2.2/pct))},
			Violations:  &calibrate.Count{Lambda: 0.32 * pct, Phi: 1.02, Threshold: 3, Ratio: 9.4, PFalse: 5.4e-6, PerWeek: 0.011, DocThreshold: new(int64(3)), DocPFalse: new(5.4e-6)},
			Transfers:   &calibrate.Count{Lambda: 30.5 * pct, Phi: 1.9, Threshold: int64(6 + 60*pct), Ratio: 3.1, PFalse: 2.1e-5, PerWeek: 0.009, DocThreshold: new(int64(3)), DocPFalse: new(0.0037)},
			Slow:        &calibrate.Count{Lambda: 5 * pct, Phi: 1.2, Threshold: int64(4 + 14*pct), Ratio: 3.6, PFalse: 2.4e-5, PerWeek: 0.01},
			CostSamples: new(int64(126)), CostJudged: 48*pct*5 >= 126,
		})
	}
}

func replayed(r *calibrate.Report) *calibrate.Replayed {
	estimate := func(count int64) calibrate.Estimate {
		k := float64(count)
		e := calibrate.Estimate{Count: count, Rate: k / 200, Upper: (k + 2.99573 + 2*math.Sqrt(k)) / 200}
		if count > 0 {
			e.Lower = max(0.1, k-2*math.Sqrt(k)) / 200
		}
		return e
	}
	out := &calibrate.Replayed{Weeks: 200, BlockMin: 360, Seed: 1, JointPerWeek: estimate(26), DocPerWeek: estimate(1080),
		Release: calibrate.ReplayedRelease{Runs: 400, RolledBack: calibrate.Estimate{Count: 6, Rate: 0.015, Lower: 0.0055, Upper: 0.0324}, Completed: 391}}
	for i, s := range r.Steps {
		step := calibrate.ReplayedStep{Pct: s.Pct, PerWeek: estimate([]int64{9, 14, 26, 18, 0}[i]), BySignal: map[string]calibrate.Estimate{"violations": estimate(2), "solve_rate": estimate([]int64{0, 3, 9, 7, 0}[i]), "transfers": estimate(4)}}
		for _, drop := range []float64{5, 10} {
			step.Drops = append(step.Drops, calibrate.Detection{DropPP: drop, Runs: 400, Found: 400 - 60/(i+1), DelayP50: new(430 / drop / float64(i+1)), DelayP90: new(1100 / drop / float64(i+1)), ExposureP50: new(430 / drop * s.Pct * 100)})
		}
		if i == 0 {
			step.Drops[0].DelayP50, step.Drops[0].DelayP90, step.Drops[0].ExposureP50 = nil, nil, nil
		}
		out.Steps = append(out.Steps, step)
	}
	out.Grid = &calibrate.Grid{Pct: 0.1, Enough: true, RecommendedPP: new(9.5)}
	for t := 1.0; t <= 25; t += 0.5 {
		p := calibrate.GridPoint{ThresholdPP: t, PerWeek: estimate(int64(200 * 90 * math.Exp(-t*t/12))), DropPP: 10}
		if t <= 16 {
			p.DelayP50 = new(4 * math.Exp(t/4.2))
		}
		if t <= 13 {
			p.DelayP90 = new(9 * math.Exp(t/3.4))
		}
		p.Missed = int(max(0, 40*(t-12)))
		out.Grid.Points = append(out.Grid.Points, p)
	}
	return out
}
