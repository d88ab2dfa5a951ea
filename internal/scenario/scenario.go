// Package scenario reads scenario files: a plan, a feed and what is expected
// to come of them. They make a canary.yaml testable as alert rules are.
//
//	sc, list := scenario.Parse("my.yaml", src)
//	if list.HasErrors() { ... }                     // sc is nil then
//	plan := sc.Config.Plan()                        // or another canary.yaml's, where sc.Config is nil
//	out, err := simulate.Run(plan, sc.Feed(plan, sc.Seed), sc.Options())
//	for _, r := range sc.Check(out) { ... }         // want and got, side by side
//
// It opens no file: a scenario that names recorded files says which, and
// whoever reads them runs the replay. The form of the file is described in
// docs/reference/scenario.md.
package scenario

import (
	"fmt"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

// Scenario is a scenario file without errors. Treat it as read-only.
type Scenario struct {
	File  string // its name, for findings
	Name  string // scenario
	About string // what happens, and why that is expected; paragraphs

	// Config is the plan section, a whole canary.yaml; nil where the scenario
	// has none and needs another's.
	Config *config.Config

	// Files are recorded windows or records to replay, by the names written in
	// the file, relative to it; then there is no synthetic feed and Feed must
	// not be called.
	Files []string

	Start   time.Time
	Minutes int    // length of the synthetic feed
	Drawn   bool   // it depends on the seed
	Closed  bool   // the canary gets the weight's share of the service's traffic; else its traffic is given
	Seed    uint64 // of the feed, where the caller has none
	Approve bool   // approvals are given as soon as they are asked for

	// FaultFrom is the minute in which the canary turns bad: fault_from, or the
	// first fault that is the canary's own. Nil: it never does.
	FaultFrom *int

	// Storm is set in a scenario about clients of a throttled upstream; it has
	// neither plan nor feed, and Feed, Check and CheckRuns must not be called.
	Storm *Storm

	// Scene is the scene that it is about; "": the whole service. Scenes are those
	// of a file that has several: each is a scenario by itself, and what is above
	// them is what they have in common. Feed, Check and CheckRuns of a scenario
	// with Scenes must not be called.
	Scene  string
	Scenes []*Scenario

	expect []expectation
	spec   simulate.Spec
}

// Result is one expectation held against an outcome. Want and Got are worded
// alike, to be read side by side.
type Result struct {
	Want string `json:"want"`
	Got  string `json:"got"`
	OK   bool   `json:"ok"`
}

// Feed returns the synthetic feed anew from its start. The plan says how old a
// window is when its labels are read, which matters to a label_lag fault; it
// may be nil. A feed that is not Drawn is the same for every seed.
func (s *Scenario) Feed(plan *ladder.Plan, seed uint64) simulate.Feed {
	spec := s.spec
	spec.Seed = seed
	spec.LabelAge = labelAge(plan)
	feed, err := simulate.NewSynthetic(spec)
	if err != nil {
		panic(fmt.Sprintf("scenario: feed of a Scenario that Parse did not make: %v", err))
	}
	return feed
}

// labelAge is the shortest label lag of any step: how long at least the
// breaker waits for labels.
func labelAge(plan *ladder.Plan) time.Duration {
	if plan == nil || len(plan.Steps) == 0 {
		return 0
	}
	age := plan.Steps[0].Limits.LabelLag
	for i := range plan.Steps {
		age = min(age, plan.Steps[i].Limits.LabelLag)
	}
	return age
}

// Options returns what a replay of this scenario needs besides plan and feed.
func (s *Scenario) Options() simulate.Options {
	return simulate.Options{Approve: s.Approve, BadFrom: s.FaultFrom}
}

// Check holds one replay against every expectation that is about one replay,
// in the order of the file.
func (s *Scenario) Check(out *simulate.Outcome) []Result {
	results := []Result{}
	for _, e := range s.expect {
		if e.one != nil {
			results = append(results, e.one(s, out))
		}
	}
	return results
}

// Runs returns how many runs, from Seed on, the expectations over runs ask
// for; 0 if there are none.
func (s *Scenario) Runs() int {
	n := 0
	for _, e := range s.expect {
		n = max(n, e.of)
	}
	return n
}

// CheckRuns holds a number of replays, one for each seed, against the
// expectations over runs, in the order of the file. One that asks for more
// runs than there are is left out: too few samples are no pass.
func (s *Scenario) CheckRuns(outs []*simulate.Outcome) []Result {
	results := []Result{}
	for _, e := range s.expect {
		if e.runs != nil && e.of <= len(outs) {
			results = append(results, e.runs(s, outs))
		}
	}
	return results
}

// Expectations returns how many expectations the file has, over one replay and
// over runs.
func (s *Scenario) Expectations() (one, runs int) {
	for _, e := range s.expect {
		if e.one != nil {
			one++
		} else {
			runs++
		}
	}
	return one, runs
}

// expectation is a check of one outcome or of many; exactly one is set.
type expectation struct {
	one  func(*Scenario, *simulate.Outcome) Result
	runs func(*Scenario, []*simulate.Outcome) Result
	of   int // runs asked for
}
