package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/canaryctl/canaryctl/internal/simulate"
)

// Runs is a scenario drawn many times.
type Runs struct {
	Name         string
	Scene        string // "": the whole service
	Seed         uint64 // of the first run; the others count up from it
	Fault        bool   // the scenario declares one
	Batch        simulate.Batch
	Expectations []Expectation
}

// RunsJSON is the JSON form of Runs.
type RunsJSON struct {
	Schema       int           `json:"schema"`
	Scenario     string        `json:"scenario"`
	Scene        string        `json:"scene,omitempty"`
	Runs         int           `json:"runs"`
	Seed         uint64        `json:"seed"`
	Weeks        float64       `json:"weeks"`
	FalseTrips   falseJSON     `json:"false_trips"`
	Tripped      int           `json:"runs_that_tripped"`
	Detected     *int          `json:"detected"` // null: the scenario declares no fault
	Delay        *spreadJSON   `json:"detection_delay_min"`
	Exposure     *spreadJSON   `json:"exposure_requests"`
	Completed    int           `json:"completed"`
	Locked       int           `json:"locked"`
	Expectations []Expectation `json:"expectations"`
}

type falseJSON struct {
	Count   int      `json:"count"`
	Weeks   float64  `json:"weeks"`    // in which the canary served and was not bad
	PerWeek *float64 `json:"per_week"` // of those; null: there were none
	Below   *float64 `json:"below_95"` // upper bound where there was no false trip
}

type spreadJSON struct {
	N   int     `json:"n"`
	Min float64 `json:"min"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	Max float64 `json:"max"`
}

// JSON returns the document.
func (r *Runs) JSON() RunsJSON {
	b := &r.Batch
	doc := RunsJSON{
		Schema: schemaVersion, Scenario: r.Name, Scene: r.Scene, Runs: b.Runs, Seed: r.Seed, Weeks: b.Weeks,
		FalseTrips: falseJSON{Count: b.FalseTrips, Weeks: b.HealthyWeeks},
		Tripped:    b.RunsThatTripped, Delay: spreadOf(b.DelayMin), Exposure: spreadOf(b.Exposure),
		Completed: b.Completed, Locked: b.Locked, Expectations: r.Expectations,
	}
	if b.HealthyWeeks > 0 {
		doc.FalseTrips.PerWeek = &b.FalseTripsPerWeek
	}
	if b.FalseTripsBelow > 0 {
		doc.FalseTrips.Below = &b.FalseTripsBelow
	}
	if r.Fault {
		doc.Detected = &b.Detected
	}
	if doc.Expectations == nil {
		doc.Expectations = []Expectation{}
	}
	return doc
}

func spreadOf(s simulate.Spread) *spreadJSON {
	if s.N == 0 {
		return nil
	}
	return &spreadJSON{N: s.N, Min: s.Min, P50: s.P50, P90: s.P90, Max: s.Max}
}

// Text writes the distributions for a person.
func (r *Runs) Text(w io.Writer, style Style) error {
	var t strings.Builder
	b := &r.Batch
	fmt.Fprintf(&t, "%s: %s, %s, %s weeks in all\n", style.paint(bold, plain(inScene(r.Name, r.Scene))), counted(b.Runs, "run"), r.seeds(), figure(b.Weeks))
	fmt.Fprintf(&t, "  false trips      %s\n", r.falseTrips())
	fmt.Fprintf(&t, "  tripped          %d of %s\n", b.RunsThatTripped, counted(b.Runs, "run"))
	if r.Fault {
		fmt.Fprintf(&t, "  fault found      in %d of %s\n", b.Detected, counted(b.Runs, "run"))
	}
	spread(&t, "detection delay", b.DelayMin, "minutes from the fault")
	spread(&t, "exposure", b.Exposure, "canary requests where it tripped")
	fmt.Fprintf(&t, "  ended            %d complete, %d locked\n", b.Completed, b.Locked)
	(&Simulation{Expectations: r.Expectations}).expected(&t, style)
	return style.write(w, t.String())
}

func (r *Runs) seeds() string {
	if r.Batch.Runs == 1 {
		return fmt.Sprintf("seed %d", r.Seed)
	}
	return fmt.Sprintf("seeds %d to %d", r.Seed, r.Seed+uint64(max(r.Batch.Runs-1, 0)))
}

// falseTrips says how often a canary that was not bad tripped: "8, 0.04 a week
// over 199.8 weeks of a healthy canary".
func (r *Runs) falseTrips() string {
	b := &r.Batch
	if b.HealthyWeeks == 0 {
		return "none can be: the canary never served while it was healthy"
	}
	rate := figure(b.FalseTripsPerWeek)
	if b.FalseTripsBelow > 0 {
		rate = "below " + figure(b.FalseTripsBelow)
	}
	return fmt.Sprintf("%d, %s a week over %s weeks of a healthy canary", b.FalseTrips, rate, figure(b.HealthyWeeks))
}

func spread(t *strings.Builder, name string, s simulate.Spread, unit string) {
	if s.N == 0 {
		return
	}
	fmt.Fprintf(t, "  %-16s median %s, 90 %% within %s, least %s, most %s %s\n", name, figure(s.P50), figure(s.P90), figure(s.Min), figure(s.Max), unit)
}
