// Package driver moves a real release: it observes target and source, shows
// what it saw to [ladder.Decide], writes the decision down, does it, reads back
// what it did, and writes that down. It holds no judgement of its own.
//
//	d := driver.New(driver.Options{Config: cfg, Target: t, Source: s, Dir: dir, Now: time.Now, Wait: driver.Sleep})
//	result, err := d.Promote(ctx) // one Decide, at most one step forward
//
// The journal is the truth. A line with the evidence and the decision is on
// disk before anything is written to the target, one with the read-back after
// it; the saved state is where the journal's lines lead. So a kill at any point
// leaves a release that the next call goes on with: a write that was asked for
// is asked for again, an unfinished rollback first.
package driver

import (
	"context"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/notify"
	"github.com/canaryctl/canaryctl/internal/source"
	"github.com/canaryctl/canaryctl/internal/state"
	"github.com/canaryctl/canaryctl/internal/target"
)

// Target is where weights are written.
type Target interface {
	Read(ctx context.Context) (target.Reading, error)
	Write(ctx context.Context, was target.Reading, c target.Change) error
	KeepsState() bool
	ReadBack() time.Duration
	String() string
}

// Source is where windows come from.
type Source interface {
	Read(ctx context.Context, from, now time.Time) (source.Batch, error)
	Span() time.Duration
	Settle() time.Duration
	String() string
}

// Options are what a driver works with.
type Options struct {
	Config   *config.Config
	Target   Target
	Source   Source
	Dir      *state.Dir
	Channels []notify.Channel
	Hooks    []notify.Hook

	Now  func() time.Time
	Wait func(ctx context.Context, d time.Duration) error // [Sleep], but for tests

	Who     state.Holder // who and command; token and time are filled in
	RunURL  string       // of the CI's run, for messages
	Program string       // canaryctl's version, for the journal

	// Say is told what a person at the terminal may want to know meanwhile; nil
	// is nobody.
	Say func(format string, args ...any)
}

// Driver drives one release. It is not safe for concurrent use; any number of
// drivers, in any number of processes, may share a release.
type Driver struct {
	o     Options
	plan  *ladder.Plan
	conf  string // id of the configuration, as the journal calls it
	plans map[string]*ladder.Plan
	rel   *Release
	away  map[string]bool // channels and hooks that cannot be used from here
	want  *int            // step that the release must be at; see [Driver.Expect]
}

// New returns a driver.
func New(o Options) *Driver {
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	d := &Driver{o: o, plan: o.Config.LivePlan(), plans: map[string]*ladder.Plan{}, away: map[string]bool{}}
	d.conf = configID(o.Config, d.plan.Candidate)
	d.plans[d.conf] = d.plan
	return d
}

// Plan returns the rules that the driver goes by.
func (d *Driver) Plan() *ladder.Plan { return d.plan }

// Sleep waits for a time or the context's end.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// holder names this process in the lock.
func (d *Driver) holder() state.Holder {
	h := d.o.Who
	h.Since = d.now()
	return h
}

// now is the wall clock's time alone, as a file keeps it.
func (d *Driver) now() time.Time { return d.o.Now().Round(0).UTC() }
