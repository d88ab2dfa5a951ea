package driver

import (
	"context"
	"fmt"

	"github.com/canaryctl/canaryctl/internal/ladder"
)

// StepError says that the release is not at the step that was expected. Nothing
// was written.
type StepError struct{ At, Want int } // from 1; 0 is not started

// Error implements error.
func (e *StepError) Error() string {
	return fmt.Sprintf("the release is at step %d, not %d: nothing was done", e.At, e.Want)
}

// Expect lets [Driver.Promote] and what calls it act only while the release is
// at a step, from 1 on, with 0 for not started; else they return a *StepError.
// It is looked at under the lock: of two that expect the same step one takes the
// next, and the other none.
func (d *Driver) Expect(step int) { d.want = &step }

// Expected is that look alone, for what is to be done before a Promote.
func (d *Driver) Expected(ctx context.Context) error {
	if d.want == nil {
		return nil
	}
	r, err := d.Where(ctx)
	if err != nil {
		return err
	}
	return d.isAt(r)
}

// expected checks the step on what this directory knows, or on what another
// machine left in the target if that is newer.
func (d *Driver) expected(r *Release, seen *sight) error {
	if d.want == nil {
		return nil
	}
	if seen.targetErr == nil {
		in, err := d.ahead(r, seen.reading.State)
		if err != nil {
			return err
		}
		if in != nil {
			r = in
		}
	}
	return d.isAt(r)
}

func (d *Driver) isAt(r *Release) error {
	d.standIn(r)
	at := 0
	if r.Ladder.Stage != ladder.NotStarted && r.Ladder.Candidate == d.plan.Candidate {
		at = r.Ladder.Step + 1
	}
	if at != *d.want {
		return &StepError{At: at, Want: *d.want}
	}
	return nil
}
