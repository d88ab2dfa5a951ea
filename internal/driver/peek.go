package driver

import (
	"context"
	"math"

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
	in, err := d.ahead(rel, seen.reading.State)
	if err != nil && seen.targetErr == nil {
		return nil, err
	}
	if in != nil {
		in.Head, in.Outbox = rel.Head, rel.Outbox
		rel = in
	}
	if err := d.expected(rel, seen); err != nil {
		return nil, err
	}
	d.standIn(rel)
	if rel.Candidate == "" {
		rel.Candidate = d.plan.Candidate // as the first line of its journal will say
	}
	s := &session{d: d, rel: rel, sight: seen}
	if err := s.elsewhere(); err != nil {
		seen.targetErr = err
	}
	st, err := clone(&rel.Ladder)
	if err != nil {
		return nil, err
	}
	show := s.shown(math.MaxInt)
	dec := ladder.Decide(d.plan, st, show.Evidence(), show.Now)
	out := journal.OutcomeOf(&dec, st)
	if rel.Exchange.pending() {
		s.peekExchange(&out)
	}
	s.told = &out
	if show.Observed.Known {
		rel.Held = show.Observed
	}
	rel.MovedBy = show.MovedBy
	if show.Newest.After(rel.Newest) {
		rel.Newest = show.Newest
	}
	res := s.result()
	res.DryRun = true
	return res, nil
}

// peekExchange says that an exchange is pending. One that returns comes before
// any decision; the other after it, and if it was made, the weight is 0 for
// that reason.
func (s *session) peekExchange(out *journal.Outcome) {
	if s.rel.Exchange.Back || out.Why == ladder.WhyDrift {
		*out = s.rel.Last
	}
	if !isRollback(out.Move) || s.rel.Exchange.Back {
		out.Reason, s.code = "the exchange of the two versions was begun and not read back: canaryctl promote goes on with it", Failed
	}
}
