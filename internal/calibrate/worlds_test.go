package calibrate

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/batch"
	"github.com/canaryctl/canaryctl/internal/release"
)

var (
	worldStats  = flag.Bool("stats", false, "simulate the worlds at length and compare docs/reference/calibrate-figures.md; takes minutes")
	updatePages = flag.Bool("update", false, "with -stats, rewrite the figures of docs/reference/calibrate-figures.md")
)

const (
	figuresPage  = "../../docs/reference/calibrate-figures.md"
	figuresBegin = "<!-- figures: made by make stats, do not edit -->\n"
	figuresEnd   = "<!-- end of figures -->\n"
)

// TestWorlds calibrates on one simulated week and runs the breaker over fresh
// ones. With -stats it does so at length and compares the page of figures.
func TestWorlds(t *testing.T) {
	if *worldStats {
		worldsAtLength(t)
		return
	}
	a := amount{baselines: 1, weeks: 6, drops: 6}
	by, err := simulateWorlds([]int{0, 1}, a, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	alone, set := 0.0, 0.0
	for world, outs := range by {
		mustSay(t, world, outs)
		for i := range worldSlots {
			r := rowOf(outs, i, a)
			alone, set = alone+r.alone.rate, set+r.set.rate
			if r.slots == 10 && (r.plainTrips.rate < 3 || r.plainTrips.rate > 20) {
				t.Errorf("%s: the plain rule trips %v a week at 10 a minute", truths[world].name, r.plainTrips)
			}
		}
		if at := weeklyOf(outs, a.weeks, func(o *outcome) (int64, bool) { return o.transfersAtSix, true }); at.rate < 60 || at.rate > 90 {
			t.Errorf("%s: the published limit of transfers trips %v a week at 6 a minute, some 70 to 80 are known", truths[world].name, at)
		}
	}
	// Ten cells of 6 weeks each: 6 trips are expected of a budget of 0.1.
	if alone > 10*0.3 || set > 10*0.3 {
		t.Errorf("false trips a week, mean over ten steps: %v for the solve rate alone, %v for the set; the budget is 0.1", alone/10, set/10)
	}
}

// worldsAtLength holds every cell against what was promised, and the page
// against what came out.
func worldsAtLength(t *testing.T) {
	a := amount{baselines: 16, weeks: 40, drops: 15, cusums: 8, replays: 200}
	by, err := simulateWorlds([]int{0, 1, 2, 3, 4}, a, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for world := range truths {
		mustSay(t, world, by[world])
		for i := range worldSlots {
			mustKeep(t, &truths[world], rowOf(by[world], i, a))
		}
	}
	mustBePlain(t, by, a)
	sameOnAnyCores(t)
	comparePage(t, figuresBlock(by, a))
}

// mustKeep holds one step of a world against the budget of 0.1, of which the
// cumulative sum has the solve rate's half. Where the tolerable drop of 5 pp
// decides and not the noise, fewer trips are right. What two standard errors
// explain is no fault.
func mustKeep(t *testing.T, w *truth, r row) {
	t.Helper()
	const budget, share = 0.1, 0.05
	above := func(x weekly, limit float64) bool { return x.rate-2*x.se > limit }
	if w.holds && r.threshold > 5.5 && r.alone.rate+2*r.alone.se < 0.3*budget {
		t.Errorf("%s, %d a minute: the solve rate trips %v a week, far below the budget", w.name, r.slots, r.alone)
	}
	if above(r.alone, 3*budget) {
		t.Errorf("%s, %d a minute: the solve rate trips %v a week", w.name, r.slots, r.alone)
	}
	if above(r.set, budget) {
		t.Errorf("%s, %d a minute: the whole set trips %v a week", w.name, r.slots, r.set)
	}
	if w.holds && above(r.cusum, 3*share) {
		t.Errorf("%s, %d a minute: the cumulative sum trips %v a week", w.name, r.slots, r.cusum)
	}
}

// mustSay holds what the reports said before anything went live.
func mustSay(t *testing.T, world int, outs []*outcome) {
	t.Helper()
	w := &truths[world]
	for i, o := range outs {
		r := o.lesson.defaults
		for _, code := range w.says {
			if !warned(r, code) {
				t.Errorf("%s, baseline %d: %s is not said: %v", w.name, i, code, warningCodes(r))
			}
		}
		if len(w.says) == 0 && len(r.Warnings) > 0 {
			t.Errorf("%s, baseline %d: warned of %v", w.name, i, warningCodes(r))
		}
		if inside := warned(r, "in-noise") && r.Verdict.Refuses(); inside != (w.detect != "") {
			t.Errorf("%s, baseline %d: verdict %+v", w.name, i, r.Verdict)
		}
		if o.lesson.moved >= 0.15 {
			t.Errorf("%s, baseline %d: 5 %% bad windows move a threshold by %.1f %%", w.name, i, 100*o.lesson.moved)
		}
		if o.lesson.named < o.lesson.planted*9/10 {
			t.Errorf("%s, baseline %d: %d of %d bad windows are in an incident", w.name, i, o.lesson.named, o.lesson.planted)
		}
	}
}

// mustBePlain holds the plain rule at 10 requests a minute against what it is
// known to do there with exactly 10 in every minute.
func mustBePlain(t *testing.T, by map[int][]*outcome, a amount) {
	t.Helper()
	known := map[int][2]float64{0: {9, 14}, 1: {4, 8}, 2: {9, 16}, 4: {0, 0.05}}
	for world, bounds := range known {
		r := rowOf(by[world], slices.Index(worldSlots, 10), a)
		if r.plainTrips.rate < bounds[0] || r.plainTrips.rate > bounds[1] {
			t.Errorf("%s: the plain rule trips %v a week at 10 a minute, known are %v", truths[world].name, r.plainTrips, bounds)
		}
	}
}

// sameOnAnyCores compares the whole report, replay included, over 1, 2 and 8
// workers.
func sameOnAnyCores(t *testing.T) {
	t.Helper()
	var first []byte
	for _, workers := range []int{1, 2, 8} {
		r := measure(t, truths[1].baseline(1), Options{Plan: worldPlan(), Seed: 1})
		replay, err := r.Replayer(worldPlan())
		if err != nil {
			t.Fatal(err)
		}
		found, err := batch.Run(context.Background(), batch.Seeds(1, 16), workers, func(_ context.Context, seed uint64) (*ReplayRun, error) { return replay.Run(seed, nil) }, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Take(replay.Merge(found))
		document, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = document
		}
		if !bytes.Equal(first, document) {
			t.Errorf("the report differs between 1 and %d workers", workers)
		}
	}
}

// comparePage holds the generated part of the page against the figures.
func comparePage(t *testing.T, figures string) {
	t.Helper()
	page, err := os.ReadFile(figuresPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), figuresBegin)
	old, after, closed := strings.Cut(rest, figuresEnd)
	switch {
	case !ok || !closed:
		t.Fatalf("%s has no place for figures", figuresPage)
	case old == figures:
	case *updatePages:
		next := figuresPage + ".new"
		if err := os.WriteFile(next, []byte(before+figuresBegin+figures+figuresEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, figuresPage); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is out of date: make stats UPDATE=-update\n%s", figuresPage, firstDifference(old, figures))
	}
}

// firstDifference shows the first line that is not the same.
func firstDifference(old, now string) string {
	a, b := strings.Split(old, "\n"), strings.Split(now, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "page: " + a[i] + "\n now: " + b[i]
		}
	}
	return "one is longer than the other"
}

// The worlds are what they are said to be: their rates' mean, spread and
// correlation, and what a canary of so many in a hundred sees of them.
func TestWorldsAreAsTheySay(t *testing.T) {
	for i := range truths {
		w := &truths[i]
		var squares, products, mean float64
		const weeks = 10
		n := 0
		for seed := range uint64(weeks) {
			rates := w.rates(seed)
			for m := 0; m+blockMin < len(rates); m += blockMin {
				x, y := rates[m]-truthSolved, rates[m+blockMin]-truthSolved
				mean, squares, products, n = mean+x, squares+x*x, products+x*y, n+1
			}
		}
		want := w.tau*w.tau + w.swing*w.swing/2
		near(t, w.name+": mean", new(mean/float64(n)), 0, 0.001)
		near(t, w.name+": variance", new(squares/float64(n)), want, 0.05*want)
		if w.tau > 0 {
			near(t, w.name+": correlation", new(products/squares), w.memory, 0.03)
		}
	}
	rates := truths[0].rates(1)
	var sum release.Window
	for _, w := range canary(1, 8, rates) {
		sum.Total, sum.Solved, sum.Transfers, sum.Slow, sum.Violations = sum.Total+w.Total, sum.Solved+w.Solved, sum.Transfers+w.Transfers, sum.Slow+w.Slow, sum.Violations+w.Violations
	}
	requests := float64(sum.Total)
	near(t, "requests a minute", new(requests/truthMinutes), 8, 0.15)
	near(t, "solved", new(float64(sum.Solved)/requests), truthSolved, 0.005)
	near(t, "transfers", new(float64(sum.Transfers)/requests), truthTransfers, 0.002)
	near(t, "slow", new(float64(sum.Slow)/requests), truthSlow, 0.0015)
	near(t, "violations", new(float64(sum.Violations)/requests), truthViolations, 0.0003)
}
