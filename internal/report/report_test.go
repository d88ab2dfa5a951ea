package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/report"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares text with testdata/name.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

const shop = `canary:
  target_service: shop
  steps:
    - { pct: 0.01, min_hold_min: 30, gate: [time, metric] }
    - { pct: 0.10, min_hold_min: 30, gate: [time, metric] }
    - { pct: 1.00, min_hold_min: 30, gate: [time, metric] }
`

func plan(t *testing.T, src string) *ladder.Plan {
	t.Helper()
	cfg, findings := config.Parse("canary.yaml", []byte(src))
	if cfg == nil {
		t.Fatalf("plan: %v", findings)
	}
	return cfg.Plan()
}

// feed has both arms for so many minutes: 20 requests of the canary, 18 of
// them solved, with three violations in each of the minutes given.
func feed(t *testing.T, minutes int, violations ...int) simulate.Feed {
	t.Helper()
	t0 := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	var canary, stable []release.Window
	for m := range minutes {
		w := release.Window{
			T: t0.Add(time.Duration(m) * time.Minute), Span: time.Minute, Arm: release.Canary, Total: 20, Judged: 20, Solved: 18,
			Known: release.HasSolved | release.HasViolations | release.HasTransfers,
		}
		s := w
		s.Arm, s.Total, s.Judged, s.Solved = release.Stable, 180, 180, 170
		for _, bad := range violations {
			if bad == m {
				w.Violations = 3
			}
		}
		canary, stable = append(canary, w), append(stable, s)
	}
	f, err := simulate.NewRecorded(canary, stable)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func run(t *testing.T, src string, f simulate.Feed, o simulate.Options) report.Simulation {
	t.Helper()
	p := plan(t, src)
	out, err := simulate.Run(p, f, o)
	if err != nil {
		t.Fatal(err)
	}
	return report.Simulation{Name: "a-replay", Plan: p, Outcome: out}
}

func text(t *testing.T, r interface {
	Text(w *bytes.Buffer) error
}) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// styled fixes a report's style.
type styled struct {
	write func(*bytes.Buffer) error
}

func (s styled) Text(w *bytes.Buffer) error { return s.write(w) }

func draw(s report.Simulation, style report.Style) styled {
	return styled{func(b *bytes.Buffer) error { return s.Text(b, style) }}
}

func TestTextOfASimulation(t *testing.T) {
	tripped := run(t, shop, feed(t, 80, 40), simulate.Options{BadFrom: new(40)})
	tripped.About = "Three violations in minute 40."
	tripped.Recorded = &report.RecordedShare{Share: 0.1, Known: true}
	tripped.Expectations = []report.Expectation{
		{Want: "40 CLOSED -> OPEN violations", Got: "40 CLOSED -> OPEN violations", OK: true},
		{Want: "never OPEN", Got: "OPEN at minute 40", OK: false},
	}
	healthy := run(t, shop, feed(t, 120), simulate.Options{})
	for _, tc := range []struct {
		name  string
		sim   report.Simulation
		style report.Style
	}{
		{"tripped", tripped, report.Style{}},
		{"tripped-color", tripped, report.Style{Color: true}},
		{"tripped-40-columns", tripped, report.Style{Width: 40}},
		{"tripped-120-columns", tripped, report.Style{Width: 120}},
		{"complete", healthy, report.Style{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			golden(t, tc.name+".txt", text(t, draw(tc.sim, tc.style)))
		})
	}
}

// TestTheTimelineFitsTheTerminal holds the two drawn rows to the width given.
func TestTheTimelineFitsTheTerminal(t *testing.T) {
	sim := run(t, shop, feed(t, 1000, 500), simulate.Options{})
	for _, width := range []int{40, 60, 80, 200} {
		for line := range strings.Lines(string(text(t, draw(sim, report.Style{Width: width})))) {
			if strings.HasPrefix(line, "  breaker") || strings.HasPrefix(line, "  share  ") && strings.Contains(line, "...") {
				if n := len(strings.TrimRight(line, "\n")); n > width {
					t.Errorf("width %d: a row of %d columns: %q", width, n, line)
				}
			}
			if strings.HasPrefix(line, "  breaker") && !strings.Contains(line, "x") {
				t.Errorf("width %d: a trip of six minutes is not to be seen in %q", width, line)
			}
		}
	}
}

// TestAnObservedSignalWouldFail: it is past its limit and decides nothing.
func TestAnObservedSignalWouldFail(t *testing.T) {
	observed := shop + "  signals: { solve_rate: { mode: observe } }\n  metrics:\n    slow_layer: { solve_baseline: 0.99, solve_rate_drop_pp: 5 }\n"
	sim := run(t, observed, feed(t, 20), simulate.Options{})
	if got := string(text(t, draw(sim, report.Style{}))); !strings.Contains(got, "! solve_rate   would_fail ") || len(sim.Outcome.Rollbacks) != 0 {
		t.Errorf("got %s", got)
	}
	for _, v := range sim.JSON().Final.Verdicts {
		if v.WouldFail != (v.Signal == "solve_rate") {
			t.Errorf("%s: would_fail %v", v.Signal, v.WouldFail)
		}
	}
}

func TestJSONOfASimulation(t *testing.T) {
	sim := run(t, shop, feed(t, 80, 40), simulate.Options{BadFrom: new(40)})
	b, err := json.MarshalIndent(sim.JSON(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "tripped.json", append(b, '\n'))
}

// TestTheRuleThatSpokeIsInTheDocument: for a rollback and for a verdict, with
// what stable did.
func TestTheRuleThatSpokeIsInTheDocument(t *testing.T) {
	sim := run(t, shop, feed(t, 20), simulate.Options{})
	sim.Plan.Steps[0].Limits.AgainstStable = true
	sim.Plan.Steps[0].Limits.SolveFloor = release.MustRatio("0.88") // 90 % trips against stable's 94.4 % by 2 pp
	out, err := simulate.Run(sim.Plan, feed(t, 20), simulate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sim.Outcome = out
	doc := sim.JSON()
	want := report.RuleJSON{Form: "control", ControlSolved: 1700, ControlJudged: 1800}
	if len(doc.Rollbacks) == 0 || doc.Rollbacks[0].RuleJSON != want {
		t.Errorf("rollbacks %+v, want %+v in the first", doc.Rollbacks, want)
	}
	if got := string(text(t, draw(sim, report.Style{}))); !strings.Contains(got, "(90 % against stable's 94.44 %), trips at 92.44 % or less") {
		t.Error(got)
	}
}

// TestListsAreNeverNull: a reader may range over every list of the document.
func TestListsAreNeverNull(t *testing.T) {
	sim := run(t, shop, feed(t, 3), simulate.Options{})
	b, err := json.Marshal(sim.JSON())
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"events", "rollbacks", "expectations", "decisions"} {
		if strings.Contains(string(b), `"`+key+`":null`) {
			t.Errorf("%s is null", key)
		}
	}
}

func TestAComparisonShowsWhatDiffers(t *testing.T) {
	lax := shop + "  metrics:\n    fast_layer: { violation_limit: 30 }\n"
	left := run(t, shop, feed(t, 80, 40), simulate.Options{})
	right := run(t, lax, feed(t, 80, 40), simulate.Options{})
	c := report.Comparison{Name: "a-replay", LeftConfig: "canary.yaml", RightConfig: "lax.yaml", Left: left.Outcome, Right: right.Outcome}
	golden(t, "against.txt", text(t, styled{func(b *bytes.Buffer) error { return c.Text(b, report.Style{}) }}))
	same := report.Comparison{Name: "a-replay", Left: left.Outcome, Right: left.Outcome}
	if got := same.Changes(); len(got) != 0 {
		t.Errorf("a replay differs from itself: %v", got)
	}
}

func TestDistributionsOfRuns(t *testing.T) {
	delay := 3 * time.Minute
	week := 7 * 24 * time.Hour
	results := []simulate.Result{
		{Length: week, Trips: 1, Healthy: week / 4, Delay: &delay, Exposure: 300, Locked: true},
		{Length: week, Trips: 2, FalseTrips: 1, Healthy: week / 4, Delay: new(5 * time.Minute), Exposure: 5000},
		{Length: week, Healthy: week / 4, Completed: true},
	}
	r := report.Runs{Name: "drawn", Seed: 1, Fault: true, Batch: simulate.BatchOf(results)}
	golden(t, "runs.txt", text(t, styled{func(b *bytes.Buffer) error { return r.Text(b, report.Style{}) }}))
	b, err := json.MarshalIndent(r.JSON(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "runs.json", append(b, '\n'))
}

// TestNoFalseTripIsABoundNotZero: nothing seen in M healthy weeks is "below
// 3/M", however long the canary was bad or away after them.
func TestNoFalseTripIsABoundNotZero(t *testing.T) {
	const week = 7 * 24 * time.Hour
	for _, tc := range []struct {
		healthy time.Duration
		want    string
	}{
		{30 * week, "false trips      0, below 0.1 a week over 30 weeks of a healthy canary\n"},
		{week / 100, "false trips      0, below 300 a week over 0.01 weeks of a healthy canary\n"},
		{0, "false trips      none can be: the canary never served while it was healthy\n"},
	} {
		r := report.Runs{Name: "quiet", Seed: 1, Batch: simulate.BatchOf([]simulate.Result{{Length: 30 * week, Healthy: tc.healthy}})}
		got := string(text(t, styled{func(b *bytes.Buffer) error { return r.Text(b, report.Style{}) }}))
		if !strings.Contains(got, tc.want) || !strings.HasPrefix(got, "quiet: 1 run, seed 1, 30 weeks in all\n") {
			t.Errorf("%s healthy: got %s", tc.healthy, got)
		}
	}
}

// TestNoRowIsWiderThanTheTerminal: a long line goes on below, with every word
// of it; a pipe gets it whole.
func TestNoRowIsWiderThanTheTerminal(t *testing.T) {
	sim := run(t, shop, feed(t, 80, 40), simulate.Options{BadFrom: new(40)})
	whole := strings.Fields(string(text(t, draw(sim, report.Style{}))))
	for _, style := range []report.Style{{Width: 40}, {Width: 60, Color: true}, {Width: 80}, {Width: 100}} {
		got := string(text(t, draw(sim, style)))
		for line := range strings.Lines(got) {
			if n := len(escapes.ReplaceAllString(strings.TrimRight(line, "\n"), "")); n > style.Width {
				t.Errorf("%d columns: a row of %d: %q", style.Width, n, line)
			}
		}
		if style.Width == 80 {
			if diff := cmp.Diff(whole, strings.Fields(got)); diff != "" {
				t.Errorf("folding changed the words:\n%s", diff)
			}
		}
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// TestNamesCannotSteerTheTerminal: a control character in a name is shown, not
// obeyed.
func TestNamesCannotSteerTheTerminal(t *testing.T) {
	sim := run(t, shop, feed(t, 3), simulate.Options{})
	sim.Name, sim.About, sim.Plan.Service = "a\x1b[31m", "b\x1b[2J", "c\u009b\x07"
	c := report.Comparison{Name: sim.Name, LeftConfig: sim.About, RightConfig: sim.About, Left: sim.Outcome, Right: sim.Outcome}
	runs := report.Runs{Name: sim.Name, Batch: simulate.BatchOf(nil)}
	for _, write := range []func(*bytes.Buffer) error{
		func(b *bytes.Buffer) error { return sim.Text(b, report.Style{}) },
		func(b *bytes.Buffer) error { return c.Text(b, report.Style{}) },
		func(b *bytes.Buffer) error { return runs.Text(b, report.Style{}) },
	} {
		if got := string(text(t, styled{write})); strings.ContainsAny(got, "\x1b\x07\u009b") {
			t.Errorf("got %q", got)
		}
	}
}

func TestJUnitHasACaseAnExpectation(t *testing.T) {
	var b bytes.Buffer
	err := report.JUnit(&b, []report.Suite{
		{Name: "one", Expectations: []report.Expectation{{Want: "a <b> & c", OK: true}, {Want: "d", Got: "e"}}},
		{Name: "bare"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Suites   []struct {
			Name  string `xml:"name,attr"`
			Cases []struct {
				Name    string  `xml:"name,attr"`
				Failure *string `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Tests != 3 || doc.Failures != 1 || len(doc.Suites) != 2 || doc.Suites[0].Cases[0].Name != "a <b> & c" || doc.Suites[0].Cases[1].Failure == nil {
		t.Errorf("read back as %+v", doc)
	}
}
