package calibrate

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

var monday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// feed returns n windows of span from start on, each filled by fill.
func feed(start time.Time, span time.Duration, n int, fill func(i int, w *release.Window)) []release.Window {
	ws := make([]release.Window, n)
	for i := range ws {
		ws[i] = release.Window{T: start.Add(time.Duration(i) * span), Span: span, Arm: release.All, Known: release.HasSolved}
		fill(i, &ws[i])
	}
	return ws
}

// solved fills a window with 100 requests of which 88 to 92 are solved.
func solved(i int, w *release.Window) {
	w.Total, w.Judged, w.Solved = 100, 100, 88+int64(i*7%5)
}

// plain are the options of the plain rule.
func plain(o Options) Options {
	o.K = 3
	return o
}

func measure(t *testing.T, ws []release.Window, o Options) *Report {
	t.Helper()
	r, err := Measure(ws, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func refused(t *testing.T, ws []release.Window, o Options) *Refusal {
	t.Helper()
	r, err := Measure(ws, o)
	refusal, ok := errors.AsType[*Refusal](err)
	if !ok {
		t.Fatalf("not refused: %v, %+v", err, r)
	}
	return refusal
}

func codes(reasons []Reason) []string {
	var cs []string
	for _, r := range reasons {
		cs = append(cs, r.Code)
	}
	return cs
}

func warned(r *Report, code string) bool {
	return slices.ContainsFunc(r.Warnings, func(w Warning) bool { return w.Code == code })
}

func near(t *testing.T, what string, got *float64, want, tol float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > tol {
		t.Errorf("%s = %v, want %v", what, deref(got), want)
	}
}

func deref(p *float64) any {
	if p == nil {
		return nil
	}
	return *p
}

func shared(t *testing.T, parts ...string) string {
	t.Helper()
	root := os.Getenv("CANARYCTL_SHARED")
	if root == "" {
		root = "../../../shared"
	}
	path := filepath.Join(append([]string{root, "data"}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("real data is not here: %v", err)
	}
	return path
}

// petshop reads the shop's 49 hours without incident.
func petshop(t *testing.T) []release.Window {
	t.Helper()
	f, err := os.Open(shared(t, "petshop", "derived_petsite_noissue_high_traffic.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	col := func(row []string, name string) int64 {
		n, err := strconv.ParseInt(row[slices.Index(rows[0], name)], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var ws []release.Window
	for _, row := range rows[1:] {
		n := col(row, "requests")
		ws = append(ws, release.Window{T: time.Unix(col(row, "unix_ts"), 0).UTC(), Span: 5 * time.Minute, Arm: release.All, Total: n, Judged: n, Solved: col(row, "successes"), Known: release.HasSolved})
	}
	return ws
}

// The published figures of the shop (data/README.md).
func TestPetshop(t *testing.T) {
	r := measure(t, petshop(t), Options{})
	if r.Totals.Total != 406226 || r.Totals.Solved != 405862 || r.Totals.Judged != 406226 {
		t.Errorf("totals %+v", r.Totals)
	}
	if r.Windows.Whole != 294 {
		t.Errorf("whole windows %d, want 294", r.Windows.Whole)
	}
	want := []Partial{{T: time.Date(2023, 9, 7, 15, 0, 0, 0, time.UTC), CoveredMin: 5, Total: 687}}
	if d := cmp.Diff(want, r.Windows.Partial); d != "" {
		t.Errorf("partial windows:\n%s", d)
	}
	near(t, "mean", r.Centre.Mean, 0.999106, 0)
	near(t, "p0", r.Centre.P0, 0.999105, 5e-7)
	near(t, "sd", r.Dispersion["10m"].SD, 0.001566, 0)
	near(t, "phi", r.Dispersion["10m"].Phi, 3.797489, 1e-9)
	if r.Totals.Violations != nil || r.Violations.Rate != nil || r.P99.ValueMS != nil || r.Cost.MeanUSD != nil {
		t.Errorf("figures out of nothing: %+v %+v %+v", r.Violations, r.P99, r.Cost)
	}
	if len(r.Warnings) == 0 || !strings.HasPrefix(r.Warnings[0].Text, "49 hours are less than five days") {
		t.Errorf("warnings %+v", r.Warnings)
	}
	if r.Slow.ThresholdPP != 5 || *r.Slow.Plain.ThreeSigmaPP != 0.469943 {
		t.Errorf("threshold %v, three sigma %v", r.Slow.ThresholdPP, *r.Slow.Plain.ThreeSigmaPP)
	}
}

func TestThreshold(t *testing.T) {
	// Rates alternate 0.86 and 0.94: over 288 windows the sample sd is 0.04 x sqrt(288/287).
	day := feed(monday, 10*time.Minute, 288, func(i int, w *release.Window) {
		w.Total, w.Judged, w.Solved = 1000, 1000, 860+int64(i%2)*80
	})
	sd := 0.04 * math.Sqrt(288.0/287)
	r := measure(t, day, plain(Options{}))
	near(t, "sigma", r.Slow.SigmaPP, 100*sd, 5e-7)
	near(t, "three sigma decides", &r.Slow.ThresholdPP, 300*sd, 5e-7)
	if !warned(r, "noise") {
		t.Errorf("no warning of the noise: %+v", r.Warnings)
	}
	r = measure(t, day, plain(Options{TolerableDropPP: release.MustRatio("12.5")}))
	if r.Slow.ThresholdPP != 12.5 || *r.Slow.MinSamples != 72 || warned(r, "noise") {
		t.Errorf("the tolerable drop decides: threshold %v, min samples %v (published 72), %+v", r.Slow.ThresholdPP, *r.Slow.MinSamples, r.Warnings)
	}
	near(t, "chance", r.Slow.ChancePP, 100*math.Sqrt(0.9*0.1/1000), 5e-7)
	if r.Slow.SolveBaseline != 0.9 {
		t.Errorf("solve baseline %v", r.Slow.SolveBaseline)
	}
}

func TestTheMeanOfRatesIsNotThePooledRate(t *testing.T) {
	r := measure(t, feed(monday, 10*time.Minute, 288, func(i int, w *release.Window) {
		w.Total, w.Judged, w.Solved = 100, 100, 90
		if i%2 == 0 {
			w.Total, w.Judged, w.Solved = 900, 300, 300
		}
	}), Options{})
	near(t, "mean", r.Centre.Mean, 0.95, 1e-9)
	near(t, "p0", r.Centre.P0, 0.975, 1e-9)
	if r.Totals.Total != 144*1000 || r.Totals.Judged != 144*400 {
		t.Errorf("judged is the denominator, total is the traffic: %+v", r.Totals)
	}
	near(t, "traffic", r.RequestsPerMin, 50, 1e-9)
}

func TestWindowsOfAnySpanThatDivides(t *testing.T) {
	var reports []*Report
	for _, span := range []time.Duration{10 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute} {
		n := int64(span / (10 * time.Second))
		ws := feed(monday, span, int(36*time.Hour/span), func(i int, w *release.Window) {
			bucket := int64(time.Duration(i) * span / (10 * time.Minute))
			w.Total, w.Judged, w.Solved = 10*n, 10*n, (8+bucket%3)*n
		})
		reports = append(reports, measure(t, ws, Options{}))
	}
	seen := func(r *Report) []any { // the live window's noise is only known where it divides
		d := r.Dispersion["10m"]
		d.TauUsed = nil
		return []any{r.Totals, r.Span, r.Windows, r.Centre.P0, r.Centre.Mean, d, r.Slow.Plain, r.RequestsPerMin, r.Traffic, r.Chart}
	}
	for i, r := range reports[1:] {
		if d := cmp.Diff(seen(reports[0]), seen(r)); d != "" {
			t.Errorf("report %d differs by span alone:\n%s", i+1, d)
		}
	}
	if reports[0].Windows.Whole != 216 {
		t.Errorf("whole windows %d", reports[0].Windows.Whole)
	}
}

func TestWindowsBeginOnTheClock(t *testing.T) {
	ws := feed(monday.Add(3*time.Minute), time.Minute, 25*60, solved)
	r := measure(t, ws, Options{})
	want := []Partial{{T: monday, CoveredMin: 7, Total: 700}, {T: monday.Add(25 * time.Hour), CoveredMin: 3, Total: 300}}
	if d := cmp.Diff(want, r.Windows.Partial); d != "" || r.Windows.Whole != 149 {
		t.Errorf("%d whole, partial:\n%s", r.Windows.Whole, d)
	}
	if r.Totals.Total != 25*60*100 {
		t.Errorf("partial windows are missing from the totals: %+v", r.Totals)
	}
}

func TestWindowsThatBeginOffTheMinuteStayWhole(t *testing.T) {
	r := measure(t, feed(monday.Add(23*time.Second), time.Minute, 25*60, solved), Options{})
	if r.Windows.Whole != 150 || len(r.Windows.Partial) != 0 {
		t.Errorf("%d whole, %d partial, want 150 and none", r.Windows.Whole, len(r.Windows.Partial))
	}
}

func TestAGapInWindowsIsAGap(t *testing.T) {
	ws := feed(monday, time.Minute, 26*60, solved)
	ws = slices.Delete(ws, 605, 606)
	r := measure(t, ws, Options{})
	at := monday.Add(605 * time.Minute)
	if d := cmp.Diff([]Gap{{From: at, To: at.Add(time.Minute), Minutes: 1}}, r.Windows.Gaps); d != "" {
		t.Errorf("gaps:\n%s", d)
	}
	if d := cmp.Diff([]Partial{{T: monday.Add(600 * time.Minute), CoveredMin: 9, Total: 900}}, r.Windows.Partial); d != "" {
		t.Errorf("partial:\n%s", d)
	}
	if !warned(r, "gaps") || r.Span.CoveredMin != 26*60-1 {
		t.Errorf("covered %v, warnings %+v", r.Span.CoveredMin, r.Warnings)
	}
}

func TestAMinuteOfZeroRequestsIsSeenButHasNoRate(t *testing.T) {
	ws := feed(monday, time.Minute, 26*60, func(i int, w *release.Window) {
		if i >= 600 && i < 610 || i == 5 {
			w.Known = 0
			return
		}
		solved(i, w)
	})
	r := measure(t, ws, Options{})
	if r.Windows.Whole != 155 || r.Windows.Empty != 1 || len(r.Windows.Partial) != 0 {
		t.Errorf("%+v, want 155 whole and 1 empty", r.Windows)
	}
}

func TestAWindowWithUnknownOutcomesDoesNotCoverItsTime(t *testing.T) {
	ws := feed(monday, time.Minute, 26*60, solved)
	ws[605].Known, ws[605].Judged, ws[605].Solved = 0, 0, 0
	r := measure(t, ws, Options{})
	if d := cmp.Diff([]Partial{{T: monday.Add(600 * time.Minute), CoveredMin: 9, Total: 1000}}, r.Windows.Partial); d != "" {
		t.Errorf("partial:\n%s", d)
	}
}

// asRecords drops the windows for which keep is false, as a reader of single
// requests does with minutes that have none.
func asRecords(ws []release.Window, keep func(i int) bool) ([]release.Window, Options) {
	var kept []release.Window
	for i, w := range ws {
		if keep(i) {
			kept = append(kept, w)
		}
	}
	last := kept[len(kept)-1].T
	return kept, Options{Records: true, First: kept[0].T, Last: last.Add(59 * time.Second)}
}

func TestQuietMinutesOfRecordsAreCovered(t *testing.T) {
	ws, o := asRecords(feed(monday, time.Minute, 26*60, solved), func(i int) bool { return i < 601 || i >= 610 })
	r := measure(t, ws, o)
	if len(r.Windows.Gaps) != 0 || r.Windows.Whole != 155 {
		t.Errorf("9 quiet minutes are no gap: %+v", r.Windows)
	}
	ws, o = asRecords(feed(monday, time.Minute, 26*60, solved), func(i int) bool { return i < 601 || i >= 611 })
	r = measure(t, ws, o)
	if len(r.Windows.Gaps) != 1 || r.Windows.Gaps[0].Minutes != 10 || r.Windows.Whole != 153 {
		t.Errorf("10 minutes at 100 requests a minute are a gap: %+v", r.Windows)
	}
}

func TestSparseTrafficExplainsLongerQuiet(t *testing.T) {
	// One request every 5 minutes: ln(1e6)/0.2 = 69 minutes of quiet are chance.
	every := func(i int, w *release.Window) { w.Total, w.Judged, w.Solved = 1, 1, int64(i/5%2) }
	ws, o := asRecords(feed(monday, time.Minute, 48*60, every), func(i int) bool { return i%5 == 0 && (i < 600 || i > 660) })
	if r := measure(t, ws, o); len(r.Windows.Gaps) != 0 {
		t.Errorf("64 minutes of quiet: %+v", r.Windows.Gaps)
	}
	ws, o = asRecords(feed(monday, time.Minute, 48*60, every), func(i int) bool { return i%5 == 0 && (i < 600 || i > 690) })
	if r := measure(t, ws, o); len(r.Windows.Gaps) != 1 {
		t.Errorf("94 minutes of quiet: %+v", r.Windows.Gaps)
	}
}

func TestTheLogsFirstAndLastMinuteAreTorn(t *testing.T) {
	ws := feed(monday, time.Minute, 26*60, solved)
	for _, c := range []struct {
		name  string
		first time.Time
		want  []Partial
	}{
		{"a log that begins on the minute has a whole first window", monday,
			[]Partial{{T: monday.Add(26*time.Hour - 10*time.Minute), CoveredMin: 9, Total: 1000}}},
		{"a log that begins later does not", monday.Add(time.Second),
			[]Partial{{T: monday, CoveredMin: 9, Total: 1000}, {T: monday.Add(26*time.Hour - 10*time.Minute), CoveredMin: 9, Total: 1000}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := measure(t, ws, Options{Records: true, First: c.first, Last: monday.Add(26*time.Hour - time.Second)})
			if d := cmp.Diff(c.want, r.Windows.Partial); d != "" {
				t.Errorf("partial:\n%s", d)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	day := func() []release.Window { return feed(monday, time.Minute, 26*60, solved) }
	for _, c := range []struct {
		name string
		ws   []release.Window
		o    Options
		want []string
		text string
	}{
		{"nothing", nil, Options{}, []string{"empty"}, "no windows"},
		{"57 minutes without outcomes: both are said", feed(monday, time.Minute, 58, func(_ int, w *release.Window) { w.Total, w.Known = 9, 0 }),
			Options{Records: true, First: monday.Add(40 * time.Second), Last: monday.Add(57*time.Minute + 55*time.Second)}, []string{"no-outcome", "too-short"}, "57 minutes of data"},
		{"an hour", day()[:60], Options{}, []string{"too-short", "few-windows"}, "6 whole windows of 10 minutes"},
		{"30 hours of which most is missing", slices.Concat(day()[:100], feed(monday.Add(30*time.Hour), time.Minute, 60, solved)), Options{}, []string{"too-short", "few-windows"}, "16 whole windows"},
		{"no requests", feed(monday, time.Minute, 26*60, func(int, *release.Window) {}), Options{}, []string{"no-counts"}, "no window has a request"},
		{"nothing judged", feed(monday, time.Minute, 26*60, func(_ int, w *release.Window) { w.Total = 10 }), Options{}, []string{"no-outcome"}, "none of 15600 requests"},
		{"nothing judged is not mended by --allow-short", feed(monday, time.Minute, 10, func(_ int, w *release.Window) { w.Total = 10 }), Options{AllowShort: true}, []string{"no-outcome"}, "solved"},
		{"windows of 3 minutes", feed(monday, 3*time.Minute, 500, solved), Options{}, []string{"span"}, "3 minutes do not divide"},
		{"windows of an hour", feed(monday, time.Hour, 50, solved), Options{}, []string{"span"}, "1 hour do not divide"},
		{"windows without a length", feed(monday, 0, 50, solved), Options{}, []string{"no-span", "too-short"}, "has no length"},
		{"the same window twice", append(day(), day()[7]), Options{}, []string{"overlap"}, "2026-03-02T00:07:00Z overlaps"},
		{"windows out of step", append(day(), feed(monday.Add(26*time.Hour+9*time.Minute+30*time.Second), time.Minute, 1, solved)...), Options{}, []string{"off-grid"}, "reaches over the edge"},
		{"several versions", append(feed(monday, time.Minute, 26*60, func(i int, w *release.Window) { solved(i, w); w.Arm = "v2" }), feed(monday, time.Minute, 26*60, func(i int, w *release.Window) { solved(i, w); w.Arm = "v1" })...), Options{}, []string{"several-versions"}, "v1 (156000 requests), v2 (156000 requests)"},
		{"only the canary", feed(monday, time.Minute, 26*60, func(i int, w *release.Window) { solved(i, w); w.Arm = release.Canary }), Options{}, []string{"only-canary"}, "canary"},
	} {
		t.Run(c.name, func(t *testing.T) {
			refusal := refused(t, c.ws, c.o)
			if got := codes(refusal.Reasons); !slices.Equal(got, c.want) {
				t.Errorf("reasons %v, want %v", got, c.want)
			}
			if !strings.Contains(refusal.Error(), c.text) {
				t.Errorf("%q does not say %q", refusal.Error(), c.text)
			}
		})
	}
}

func TestAllowShortSaysSo(t *testing.T) {
	r := measure(t, feed(monday, time.Minute, 60, solved), Options{AllowShort: true})
	if !warned(r, "too-short") || !warned(r, "few-windows") || r.Windows.Whole != 6 {
		t.Errorf("%d whole, warnings %+v", r.Windows.Whole, r.Warnings)
	}
	r = measure(t, feed(monday, time.Minute, 5, solved), Options{AllowShort: true})
	if r.Centre.Mean != nil || r.Slow.SigmaPP != nil || r.Dispersion["10m"].SD != nil {
		t.Errorf("figures of no window: %+v %+v", r.Centre, r.Slow)
	}
	if r.Slow.SolveBaseline != 0.9 || r.Slow.ThresholdPP != 5 {
		t.Errorf("the totals still have a rate, and the tolerable drop is the threshold: %+v", r.Slow)
	}
	r = measure(t, feed(monday, time.Minute, 10, solved), Options{AllowShort: true})
	if r.Dispersion["10m"].SD != nil || r.Centre.Mean == nil {
		t.Errorf("one window has a mean and no sd: %+v", r.Dispersion)
	}
}

func TestAllSolved(t *testing.T) {
	r := measure(t, feed(monday, 10*time.Minute, 150, func(_ int, w *release.Window) { w.Total, w.Judged, w.Solved = 10, 10, 10 }), Options{})
	near(t, "p0", r.Centre.P0, 1, 0)
	near(t, "sd", r.Dispersion["10m"].SD, 0, 0)
	if r.Dispersion["10m"].Phi != nil {
		t.Errorf("phi %v of no spread", *r.Dispersion["10m"].Phi)
	}
	if r.Slow.SolveBaseline != 0.999667 { // 1500.5/1501
		t.Errorf("solve baseline %v", r.Slow.SolveBaseline)
	}
	if !warned(r, "all-solved") || !warned(r, "zero-variance") || r.Slow.MinSamples == nil {
		t.Errorf("min samples %v, warnings %+v", r.Slow.MinSamples, r.Warnings)
	}
}

func TestNoneSolved(t *testing.T) {
	r := measure(t, feed(monday, 10*time.Minute, 150, func(_ int, w *release.Window) { w.Total, w.Judged = 10, 10 }), Options{})
	near(t, "p0", r.Centre.P0, 0, 0)
	if !warned(r, "none-solved") || !warned(r, "threshold-above-baseline") || r.Slow.MinSamples != nil {
		t.Errorf("min samples %v, warnings %+v", r.Slow.MinSamples, r.Warnings)
	}
	for _, s := range r.Settings() {
		if s.Key[len(s.Key)-1] == "min_samples_slow" {
			t.Errorf("a number of samples for what can never trip: %v", s)
		}
	}
}

func TestSameRateInEveryWindow(t *testing.T) {
	r := measure(t, feed(monday, 10*time.Minute, 150, func(_ int, w *release.Window) { w.Total, w.Judged, w.Solved = 10, 10, 9 }), Options{})
	if !warned(r, "zero-variance") || r.Slow.ThresholdPP != 5 || *r.Slow.Plain.ThreeSigmaPP != 0 {
		t.Errorf("%+v %+v", r.Slow, r.Warnings)
	}
}

func TestAThresholdTooSmallToJudgeIsSaid(t *testing.T) {
	ws := feed(monday, 10*time.Minute, 150, func(_ int, w *release.Window) { w.Total, w.Judged, w.Solved = 10, 10, 9 })
	r := measure(t, ws, plain(Options{TolerableDropPP: release.MustRatio("0.0000001")}))
	if !warned(r, "threshold-too-small") || r.Slow.MinSamples != nil {
		t.Errorf("min samples %v, warnings %+v", r.Slow.MinSamples, r.Warnings)
	}
}

func TestUnderdispersion(t *testing.T) {
	r := measure(t, feed(monday, 10*time.Minute, 150, func(i int, w *release.Window) { w.Total, w.Judged, w.Solved = 1000, 1000, 900+int64(i%2) }), Options{})
	if !warned(r, "underdispersed") {
		t.Errorf("warnings %+v", r.Warnings)
	}
	rng := rand.New(rand.NewPCG(3, 9))
	r = measure(t, feed(monday, 10*time.Minute, 600, func(_ int, w *release.Window) {
		w.Total, w.Judged = 200, 200
		for range 200 {
			if rng.Float64() < 0.9 {
				w.Solved++
			}
		}
	}), Options{})
	if warned(r, "underdispersed") || math.Abs(*r.Dispersion["10m"].Phi-1) > 0.2 {
		t.Errorf("chance alone: phi %v, warnings %+v", *r.Dispersion["10m"].Phi, r.Warnings)
	}
}

func TestStableIsTheBaselineAndBothArmsAreTheTraffic(t *testing.T) {
	stable := feed(monday, time.Minute, 26*60, func(i int, w *release.Window) { solved(i, w); w.Arm = release.Stable })
	canary := feed(monday, time.Minute, 26*60, func(_ int, w *release.Window) {
		w.Total, w.Judged, w.Arm = 20, 20, release.Canary
	})
	r := measure(t, append(canary, stable...), Options{})
	if r.Arm != "stable" || r.Totals.Total != 156000 || *r.RequestsPerMin != 120 || !warned(r, "other-arms") {
		t.Errorf("arm %s, totals %+v, %v a minute, %+v", r.Arm, r.Totals, *r.RequestsPerMin, r.Warnings)
	}
	if _, err := Measure(feed(monday, time.Minute, 26*60, func(i int, w *release.Window) { solved(i, w); w.Arm = "v7" }), Options{}); err != nil {
		t.Errorf("the only version there is: %v", err)
	}
}

// The traffic of an hour without outcomes is known, and so is its time: one
// without the other would double the requests a minute.
func TestTrafficIsCountedOverItsOwnTime(t *testing.T) {
	r := measure(t, feed(monday, time.Minute, 72*60, func(i int, w *release.Window) {
		solved(i, w)
		if i/60%2 == 1 {
			w.Judged, w.Solved, w.Known = 0, 0, w.Known&^release.HasSolved
		}
	}), Options{})
	if r.Span.CoveredMin != 36*60 {
		t.Errorf("covered %v", r.Span.CoveredMin)
	}
	near(t, "half of it judged", r.RequestsPerMin, 100, 1e-9)

	// A log that begins and ends within a minute: neither that minute's time
	// nor its requests count. The canary's begin earlier and end later.
	both := feed(monday, time.Minute, 30*60, func(i int, w *release.Window) { solved(i, w); w.Arm = release.Stable })
	both[0].Total, both[len(both)-1].Total = 1e6, 1e6
	both[0].Judged, both[0].Solved = 1e6, 9e5
	both = append(both, feed(monday.Add(-time.Hour), time.Minute, 32*60, func(_ int, w *release.Window) { w.Total, w.Arm = 20, release.Canary })...)
	r = measure(t, both, Options{Records: true, First: monday.Add(time.Second), Last: monday.Add(30*time.Hour - time.Second)})
	near(t, "records", r.RequestsPerMin, 120, 1e-9)
}

func TestFiguresOfTheFastLayer(t *testing.T) {
	r := measure(t, feed(monday, time.Minute, 26*60, func(i int, w *release.Window) {
		solved(i, w)
		w.Known |= release.HasViolations | release.HasTransfers | release.HasP99 | release.HasCostMean
		w.Transfers, w.P99MS, w.CostMean = 2, 300+float64(i%3), 0.01
		if i == 0 {
			w.CostMean, w.P99MS = 15.61, 9000
		}
	}), Options{})
	near(t, "transfer rate", r.Transfers.Rate, 0.02, 1e-12)
	near(t, "violation rate", r.Violations.Rate, 0, 0)
	near(t, "rule of three", r.Violations.Upper95, 3.0/156000, 1e-7)
	near(t, "p99, at the level 0.736 of 300, 301 and 302", r.P99.ValueMS, 302, 0)
	near(t, "cost weighs by requests", r.Cost.MeanUSD, 0.02, 1e-9)
	exact := 295.5
	o := Options{Requests: map[release.Arm]Requests{release.All: {Exact: true, Latency: []stats.Weighted{{Value: 100, Weight: 980}, {Value: exact, Weight: 15}, {Value: 900, Weight: 5}}}}}
	if r := measure(t, feed(monday, time.Minute, 26*60, solved), o); *r.P99.ValueMS != exact || r.P99.Method != "nearest rank over all requests" {
		t.Errorf("%+v", r.P99)
	}
}

// Log-normal latencies, median 148 ms, true p99 exp(5 + 2.3263) = 1520 ms.
func TestP99FromWindows(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 7))
	windows := func(minutes, requests int) []release.Window {
		return feed(monday, time.Minute, minutes, func(_ int, w *release.Window) {
			ms := make([]float64, requests)
			for i := range ms {
				ms[i] = math.Exp(5 + rng.NormFloat64())
			}
			slices.Sort(ms)
			w.Total, w.Judged, w.Solved = int64(requests), int64(requests), int64(requests)-1
			w.Known |= release.HasP99
			w.P99MS = stats.NearestRank(ms, release.MustRatio("0.99"))
		})
	}
	for _, requests := range []int{8, 50, 150, 1000} {
		r := measure(t, windows(26*60, requests), Options{})
		near(t, "p99 of "+strconv.Itoa(requests)+" requests a window", r.P99.ValueMS, 1520, 120)
		if few := strings.Contains(r.P99.Method, "few requests"); few != (requests < 299) {
			t.Errorf("%d requests a window: method %q", requests, r.P99.Method)
		}
	}
	many := windows(26*60, 400)
	var values []float64
	for _, w := range many {
		values = append(values, w.P99MS)
	}
	slices.Sort(values)
	near(t, "of full windows it is their median", measure(t, many, Options{}).P99.ValueMS, values[(len(values)-1)/2], 1e-4)
}

func TestAFigureKnownForSomeRequestsIsARateOfThose(t *testing.T) {
	r := measure(t, feed(monday, time.Minute, 26*60, func(i int, w *release.Window) {
		solved(i, w)
		if i%4 == 0 {
			w.Known |= release.HasViolations
			w.Violations = 1
		}
	}), Options{})
	near(t, "rate", r.Violations.Rate, 0.01, 1e-12)
	if r.Violations.Requests != 39000 || !warned(r, "partial-figure") {
		t.Errorf("%+v %+v", r.Violations, r.Warnings)
	}
}

func TestSettings(t *testing.T) {
	r := measure(t, feed(monday, time.Minute, 26*60, func(i int, w *release.Window) {
		solved(i, w)
		w.Known |= release.HasViolations | release.HasP99
		w.P99MS = 412.5
	}), plain(Options{}))
	want := []Setting{
		{Key: []string{"requests_per_min"}, Value: "100"},
		{Key: []string{"fast_layer", "baseline_violation_rate"}, InMetrics: true, Value: "0.0000192034"},
		{Key: []string{"fast_layer", "p99_baseline_ms"}, InMetrics: true, Value: "412.5"},
		{Key: []string{"slow_layer", "solve_baseline"}, InMetrics: true, Value: "0.9"},
		{Key: []string{"slow_layer", "solve_rate_drop_pp"}, InMetrics: true, Value: "5"},
		{Key: []string{"slow_layer", "min_samples_slow"}, InMetrics: true, Value: "381"},
	}
	if d := cmp.Diff(want, r.Settings(), cmpopts.IgnoreFields(Setting{}, "Why")); d != "" {
		t.Errorf("settings:\n%s", d)
	}
}

func TestWhatIsMissingIsNullInJSON(t *testing.T) {
	b, err := json.Marshal(measure(t, feed(monday, time.Minute, 26*60, solved), Options{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"violations":null`, `"transfers":{"rate":null`, `"value_ms":null`, `"mean_usd":null`, `"partial":[]`, `"gaps":[]`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s is not in %s", want, b)
		}
	}
	if !strings.HasPrefix(string(b), `{"schema":1,`) {
		t.Errorf("schema is not first: %.40s", b)
	}
}

// Whatever the windows: no panic, no NaN on its way to JSON, the totals are
// what was given, the order does not matter, and no window is counted twice.
func TestMeasureHoldsForAnyWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := rapid.SampledFrom([]time.Duration{time.Minute, 5 * time.Minute, 10 * time.Minute, 7 * time.Minute}).Draw(t, "span")
		n := rapid.IntRange(1, 60).Draw(t, "windows")
		at, total, judged, solvedN := monday, int64(0), int64(0), int64(0)
		var ws []release.Window
		for range n {
			w := release.Window{T: at, Span: span, Arm: release.All, Total: rapid.Int64Range(0, 40).Draw(t, "total")}
			if rapid.Bool().Draw(t, "judged at all") {
				w.Known = release.HasSolved
				w.Judged = rapid.Int64Range(0, w.Total).Draw(t, "judged")
				w.Solved = rapid.Int64Range(0, w.Judged).Draw(t, "solved")
			}
			total, judged, solvedN = total+w.Total, judged+w.Judged, solvedN+w.Solved
			ws = append(ws, w)
			at = at.Add(span * time.Duration(rapid.SampledFrom([]int{1, 1, 1, 2, 30}).Draw(t, "step")))
		}
		o := Options{AllowShort: true, Records: rapid.Bool().Draw(t, "records"), First: monday, Last: ws[n-1].End()}
		r, err := Measure(ws, o)
		if err != nil {
			if _, ok := errors.AsType[*Refusal](err); !ok {
				t.Fatalf("an error that is no refusal: %v", err)
			}
			return
		}
		if r.Totals.Total != total || r.Totals.Judged != judged || r.Totals.Solved != solvedN {
			t.Fatalf("totals %+v, want %d %d %d", r.Totals, total, judged, solvedN)
		}
		first, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("not JSON: %v", err)
		}
		slices.Reverse(ws)
		again, err := Measure(ws, o)
		if err != nil {
			t.Fatal(err)
		}
		if second, _ := json.Marshal(again); string(first) != string(second) {
			t.Fatalf("the order of the windows matters:\n%s\n%s", first, second)
		}
		for _, p := range r.Windows.Partial {
			if p.CoveredMin < 0 || p.CoveredMin >= 10 {
				t.Fatalf("a partial window covers %v minutes", p.CoveredMin)
			}
		}
	})
}
