package driver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/state"
)

// CutError says that the journal ends before the place that the saved state
// stands at: lines were taken away.
type CutError struct {
	Path string
	Want int64 // lines
}

// Error implements error.
func (e *CutError) Error() string {
	return fmt.Sprintf("%s ends before line %d, which the saved state stands at: lines were taken away", e.Path, e.Want)
}

// configID names a configuration text.
func configID(c *config.Config) string {
	sum := sha256.Sum256(c.Masked())
	return hex.EncodeToString(sum[:8])
}

// Load returns where the release in a directory stands: the saved state and
// the lines that came after it. It writes nothing and needs no lock.
func Load(ctx context.Context, dir *state.Dir, service string) (*Release, error) {
	d := &Driver{o: Options{Dir: dir}, plans: map[string]*ladder.Plan{}}
	d.o.Config = &config.Config{TargetService: service}
	return d.load(ctx)
}

// load brings the release up to the journal's end.
func (d *Driver) load(ctx context.Context) (*Release, error) {
	r := newRelease(d.o.Config.TargetService)
	b, err := d.o.Dir.Load()
	if err != nil {
		return nil, fmt.Errorf("read the release's state: %w", err)
	}
	if b != nil && json.Unmarshal(b, r) != nil {
		r = newRelease(d.o.Config.TargetService) // the journal has it all
	}
	return r, d.catchUp(ctx, r)
}

// catchUp folds the lines that are behind the release's head.
func (d *Driver) catchUp(ctx context.Context, r *Release) error {
	path := d.o.Dir.Journal()
	if info, err := os.Stat(path); err == nil && info.Size() < r.Head.Size || errors.Is(err, fs.ErrNotExist) && r.Head.N > 0 {
		return &CutError{Path: path, Want: r.Head.N}
	}
	if err := journal.Check(path, r.Head); err != nil {
		return err
	}
	rules := func(id string) (*ladder.Plan, error) { return d.planOf(ctx, id) }
	err := journal.Read(ctx, path, r.Head, func(e *journal.Entry, at journal.Head) error {
		if e.Kind == journal.Config {
			if err := d.learn(e.Configured); err != nil {
				return err
			}
		}
		if err := r.fold(e, rules); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		r.Head = at
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) && r.Head.N == 0 {
		return nil
	}
	return err
}

// learn keeps the rules of a configuration that the journal holds.
func (d *Driver) learn(c *journal.Configured) error {
	if p := d.plans[c.ID]; p != nil && p.Candidate == c.Candidate {
		return nil
	}
	p, err := planFrom(c)
	if err == nil {
		d.plans[c.ID] = p
	}
	return err
}

// planFrom forms the rules of a configuration as the journal holds it. Its
// secrets are masked, so the candidate's id, which they are part of, is taken
// from the line.
func planFrom(c *journal.Configured) (*ladder.Plan, error) {
	cfg, findings := config.Parse("canary.yaml", []byte(c.Text))
	if cfg == nil {
		return nil, fmt.Errorf("the configuration in the journal cannot be read: %s", findings[0].Message)
	}
	p := cfg.LivePlan()
	p.Candidate = c.Candidate
	if p.Digest != c.Digest {
		return nil, errors.New("the configuration in the journal has another digest than its line says")
	}
	return p, nil
}

// planOf looks the rules of a configuration up, in the whole journal if need
// be.
func (d *Driver) planOf(ctx context.Context, id string) (*ladder.Plan, error) {
	if p := d.plans[id]; p != nil {
		return p, nil
	}
	err := journal.Read(ctx, d.o.Dir.Journal(), journal.Head{}, func(e *journal.Entry, _ journal.Head) error {
		if e.Kind == journal.Config {
			return d.learn(e.Configured)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if p := d.plans[id]; p != nil {
		return p, nil
	}
	return nil, errNoConfig
}

// configuredLine is the line that tells of the driver's configuration.
func (d *Driver) configuredLine() (*journal.Configured, error) {
	c := d.o.Config
	line := &journal.Configured{
		ID: d.conf, Digest: d.plan.Digest, Candidate: d.plan.Candidate, Stable: c.Versions.Stable.Digest(),
		Text: string(c.Masked()), Program: d.o.Program, Versions: map[string]json.RawMessage{},
	}
	for _, v := range []*config.Version{c.Versions.Stable, c.Versions.Canary} {
		if v == nil {
			continue
		}
		b, err := json.Marshal(v.Record())
		if err != nil {
			return nil, fmt.Errorf("write down a version: %w", err)
		}
		line.Versions[v.Digest()] = b
	}
	return line, nil
}
