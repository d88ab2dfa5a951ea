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
	Seed         uint64 // of the first run; the others count up from it
	Fault        bool   // the scenario declares one
	Batch        simulate.Batch
	Expectations []Expectation
}

// RunsJSON is the JSON form of Runs.
type RunsJSON struct {
	Schema       int           `json:"schema"`
	Scenario     string        `json:"scenario"`
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
	PerWeek float64  `json:"per_week"`
	Below   *float64 `json:"below_95"` // upper bound where there was none
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
		Schema: schemaVersion, Scenario: r.Name, Runs: b.Runs, Seed: r.Seed, Weeks: b.Weeks,
		FalseTrips: falseJSON{Count: b.FalseTrips, PerWeek: b.FalseTripsPerWeek},
		Tripped:    b.RunsThatTripped, Delay: spreadOf(b.DelayMin), Exposure: spreadOf(b.Exposure),
		Completed: b.Completed, Locked: b.Locked, Expectations: r.Expectations,
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
	fmt.Fprintf(&t, "%s: %d runs, seeds %d to %d, %.4g weeks in all\n", style.paint(bold, r.Name), b.Runs, r.Seed, r.Seed+uint64(max(b.Runs-1, 0)), b.Weeks)
	fmt.Fprintf(&t, "  false trips      %d, %s a week\n", b.FalseTrips, r.perWeek())
	fmt.Fprintf(&t, "  tripped          %d of %d runs\n", b.RunsThatTripped, b.Runs)
	if r.Fault {
		fmt.Fprintf(&t, "  fault found      in %d of %d runs\n", b.Detected, b.Runs)
	}
	spread(&t, "detection delay", b.DelayMin, "minutes from the fault")
	spread(&t, "exposure", b.Exposure, "canary requests")
	fmt.Fprintf(&t, "  ended            %d complete, %d locked\n", b.Completed, b.Locked)
	(&Simulation{Expectations: r.Expectations}).expected(&t, style)
	_, err := io.WriteString(w, t.String())
	return err
}

func (r *Runs) perWeek() string {
	if r.Batch.FalseTripsBelow > 0 {
		return fmt.Sprintf("below %.2g", r.Batch.FalseTripsBelow)
	}
	return fmt.Sprintf("%.3g", r.Batch.FalseTripsPerWeek)
}

func spread(t *strings.Builder, name string, s simulate.Spread, unit string) {
	if s.N == 0 {
		return
	}
	fmt.Fprintf(t, "  %-16s median %.6g, 90 %% within %.6g, least %.6g, most %.6g %s\n", name, s.P50, s.P90, s.Min, s.Max, unit)
}
