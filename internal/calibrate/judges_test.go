package calibrate

import (
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/breaker"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/stats"
)

// fault is a recorded fault: its windows from before and after it began.
type fault struct {
	name    string
	began   time.Time
	windows []release.Window
}

// petshopFaults reads the shop's faults that cost availability.
func petshopFaults(t *testing.T) []fault {
	t.Helper()
	f, err := os.Open(shared(t, "petshop", "derived_petsite_issues_high_traffic.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	col := func(row []string, name string) string { return row[slices.Index(rows[0], name)] }
	num := func(row []string, name string) int64 {
		n, err := strconv.ParseInt(col(row, name), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var faults []fault
	for _, row := range rows[1:] {
		if col(row, "target_metric") != "availability" {
			continue
		}
		if name := col(row, "issue"); len(faults) == 0 || faults[len(faults)-1].name != name {
			faults = append(faults, fault{name: name, began: time.Unix(num(row, "target_ts"), 0).UTC()})
		}
		n := num(row, "requests")
		last := &faults[len(faults)-1]
		last.windows = append(last.windows, release.Window{
			T: time.Unix(num(row, "unix_ts"), 0).UTC(), Span: 5 * time.Minute, Arm: release.Canary,
			Total: n, Judged: n, Solved: num(row, "successes"), Known: release.HasSolved,
		})
	}
	return faults
}

// wholeTraffic is a ladder of one step that sees everything.
func wholeTraffic() *ladder.Plan {
	p := publishedPlan()
	p.Steps = p.Steps[len(p.Steps)-1:]
	return p
}

// episodes counts the runs of windows that trip: a judge is asked again after
// each window, with the spans as they are, and an episode ends with the first
// window that does not trip. It returns the times of those that begin at or
// after from.
func episodes(l *breaker.Limits, ws []release.Window, from time.Time) (began []time.Time) {
	l.Cooldown = 0
	on := false
	var st breaker.State
	for i := range ws {
		before := st
		tripped := breaker.Step(l, &st, &ws[i]) != nil
		if tripped {
			if !on && !ws[i].T.Before(from) {
				began = append(began, ws[i].T)
			}
			st = unlocked(before, l, &ws[i])
		}
		on = tripped
	}
	return began
}

// unlocked is the state in which the window has been seen and nothing has
// tripped.
func unlocked(before breaker.State, l *breaker.Limits, w *release.Window) breaker.State {
	quiet := *l
	quiet.Rules[release.SolveRate] = breaker.Rule{Mode: release.Observe}
	breaker.Step(&quiet, &before, w)
	return before
}

// verdictOf runs one judge over the clean hours and over every fault, primed
// with 25 clean minutes.
func verdictOf(l breaker.Limits, clean []release.Window, faults []fault) (alarms, caught int, delays []string) {
	alarms = len(episodes(&l, clean, time.Time{}))
	for _, f := range faults {
		var ws []release.Window
		for i := range 5 {
			w := clean[i]
			w.T = f.windows[0].T.Add(time.Duration(i-5) * 5 * time.Minute)
			ws = append(ws, w)
		}
		ws = append(ws, f.windows...)
		if hits := episodes(&l, ws, f.began); len(hits) > 0 {
			caught++
			delays = append(delays, fmt.Sprintf("%.0f", hits[0].Add(5*time.Minute).Sub(f.began).Minutes()))
		}
	}
	return alarms, caught, delays
}

// setCusum sets the limits as the command does, over 200 weeks.
func setCusum(t *testing.T, r *Report, plan *ladder.Plan) {
	t.Helper()
	replay, err := r.Replayer(plan)
	if err != nil {
		t.Fatal(err)
	}
	var peaks [][]float64
	for seed := range uint64(200) {
		peaks = append(peaks, replay.CusumPeaks(seed+1, nil))
	}
	r.TakeCusum(peaks)
}

// Every judge with what calibrate writes from the clean hours alone, against
// the plain formula: 4.02 sigma of chance and noise over 25 minutes, which has
// one false episode and catches nine. The tolerable drop is as small as it may
// be, so that noise decides and not the business; the drop to find is the
// published five points. The exact tails allow for bursts: they have no false
// episode and catch fewer.
func TestJudgesOfThePetshop(t *testing.T) {
	clean, faults := petshop(t), petshopFaults(t)
	if len(faults) != 12 {
		t.Fatalf("%d faults", len(faults))
	}
	alarms, caught, delays := verdictOf(plainFormula(t, clean), clean, faults)
	t.Logf("%-7s %d false episodes in 49 clean hours, %2d of 12 faults caught, minutes after they began: %s", "plain", alarms, caught, strings.Join(delays, " "))
	if alarms != 1 || caught != 9 {
		t.Errorf("plain formula: %d false, %d caught, published 1 and 9", alarms, caught)
	}
	want := map[Judge][2]int{WindowJudge: {1, 9}, ExactJudge: {0, 6}, CountJudge: {1, 9}, CusumJudge: {1, 9}}
	for _, judge := range Judges {
		alarms, caught, delays := verdictOf(judgeLimits(t, judge, clean), clean, faults)
		t.Logf("%-7s %d false episodes in 49 clean hours, %2d of 12 faults caught, minutes after they began: %s", judge, alarms, caught, strings.Join(delays, " "))
		if got := [2]int{alarms, caught}; got != want[judge] {
			t.Errorf("%s: %d false, %d caught, want %v", judge, alarms, caught, want[judge])
		}
	}
}

// judgeLimits is what calibrate makes of the clean hours for a judge.
func judgeLimits(t *testing.T, judge Judge, clean []release.Window) breaker.Limits {
	t.Helper()
	plan := wholeTraffic()
	r := measure(t, clean, Options{Plan: plan, Judge: judge, TolerableDropPP: release.MustRatio("0.01"), DetectDropPP: release.MustRatio("5")})
	if judge == CusumJudge {
		setCusum(t, r, plan)
	}
	tuned, err := r.Plan(plan)
	if err != nil {
		t.Fatal(err)
	}
	return solveOnly(&tuned.Steps[0].Limits)
}

// plainFormula is z sigma with the plain estimate of the noise: DerSimonian and
// Laird over 25-minute windows on the clock, no correction.
func plainFormula(t *testing.T, clean []release.Window) breaker.Limits {
	t.Helper()
	const z, tau = 4.024, 0.00103787
	l := judgeLimits(t, WindowJudge, clean)
	p0 := l.SolveBaseline.Float64()
	sigma := stats.NoiseSigma(p0, 3450, tau, 0)
	l.Noise = breaker.Noise{}
	l.SolveFloor = release.MustRatio(strconv.FormatFloat(p0-z*sigma, 'f', 6, 64))
	return l
}
