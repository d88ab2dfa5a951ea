package driver

import (
	"context"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
)

// Peek says what [Driver.Promote] would decide now. It writes nothing, neither
// to the target nor to disk, and takes no lock.
func (d *Driver) Peek(ctx context.Context) (*Result, error) {
	rel, err := d.load(ctx)
	if err != nil {
		return nil, err
	}
	seen := d.observe(ctx, rel)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := &session{d: d, rel: rel, sight: seen}
	st, err := clone(&rel.Ladder)
	if err != nil {
		return nil, err
	}
	in := s.shown()
	dec := ladder.Decide(d.plan, st, in.Evidence(), in.Now)
	out := journal.OutcomeOf(&dec, st)
	s.told = &out
	if in.Observed.Known {
		rel.Held = in.Observed
	}
	rel.MovedBy = in.MovedBy
	if in.Newest.After(rel.Newest) {
		rel.Newest = in.Newest
	}
	res := s.result()
	res.DryRun = true
	return res, nil
}
