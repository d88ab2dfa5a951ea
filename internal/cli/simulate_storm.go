package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/canaryctl/canaryctl/internal/report"
	"github.com/canaryctl/canaryctl/internal/scenario"
	"github.com/canaryctl/canaryctl/internal/simulate"
)

// stormFlags refuses flags that say nothing about a storm.
func (o *simulateOptions) stormFlags(sc *scenario.Scenario) error {
	for _, flag := range []string{"runs", "against", "thin", "approve"} {
		if o.given(flag) {
			return usage(fmt.Errorf("%s is a storm, about clients and not about a release: --%s says nothing about it", sc.Name, flag), "--seed draws it anew")
		}
	}
	return nil
}

// storm lets every client of a storm loose on it and prints what became of
// them.
func (o *simulateOptions) storm(ctx context.Context, r *feedRun) ([]report.Expectation, error) {
	s := r.scenario.Storm
	rep := report.Storm{Name: r.name, About: firstSentence(r.scenario.About), Seconds: s.Storm.Seconds, Seed: o.seed(r), Faults: len(s.Storm.Faults) > 0}
	for _, c := range s.Clients {
		out, err := simulate.RunStorm(&s.Storm, c, rep.Seed, ctx.Err)
		if errors.Is(err, simulate.ErrStormTooLarge) {
			err = usage(fmt.Errorf("%s: %w", r.name, err), "fewer seconds, requests a second or attempts")
		}
		if err != nil {
			return nil, err
		}
		rep.Outcomes = append(rep.Outcomes, out)
	}
	rep.Expectations = expectationsOf(s.Check(rep.Outcomes))
	return rep.Expectations, o.print(&rep, rep.JSON())
}
