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

// configID names a configuration: its text without secrets, and both versions
// with them. A key that is replaced by another makes another candidate.
func configID(c *config.Config, candidate string) string {
	h := sha256.New()
	h.Write(c.Masked())
	fmt.Fprintf(h, "\n%s\n%s\n", candidate, c.Versions.Stable.Digest())
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Load returns where the release in a directory stands: the saved state and
// the lines that came after it. It writes nothing and needs no lock.
func Load(ctx context.Context, dir *state.Dir, service string) (*Release, error) {
	return reader(dir, service).load(ctx)
}

// reader is a driver that reads one directory and nothing else.
func reader(dir *state.Dir, service string) *Driver {
	return &Driver{o: Options{Dir: dir, Config: &config.Config{TargetService: service}}, plans: map[string]*ladder.Plan{}}
}

// load brings the release up to the journal's end. A saved state that is not as
// it was saved is formed anew from the journal, which has it all.
func (d *Driver) load(ctx context.Context) (*Release, error) {
	b, err := d.o.Dir.Load()
	if err != nil {
		return nil, fmt.Errorf("read the release's state: %w", err)
	}
	r, whole := d.parse(b)
	if err := d.reaches(r.Head); err != nil {
		return r, err
	}
	if !whole {
		r = d.newRelease()
		r.rebuilt = true
	}
	return r, d.catchUp(ctx, r)
}

// parse reads a saved state; whole is false if it is not what was saved, as far
// as that can be seen.
func (d *Driver) parse(saved []byte) (r *Release, whole bool) {
	r = d.newRelease()
	if saved == nil {
		return r, true
	}
	if json.Unmarshal(saved, r) != nil {
		return d.newRelease(), false
	}
	if r.Digest == "" {
		return r, true
	}
	digest, err := stateDigest(&r.Ladder)
	return r, err == nil && digest == r.Digest
}

// salvage is the best that can be read of a release: what the journal's lines
// come to, or the saved state where that stands behind more lines, or nothing.
func (d *Driver) salvage(ctx context.Context) *Release {
	fresh := d.newRelease()
	b, err := d.o.Dir.Load()
	if err != nil {
		b = nil
	}
	saved, whole := d.parse(b)
	if !whole {
		saved = fresh
	}
	r := d.newRelease()
	if d.catchUp(ctx, r) == nil && r.Head.N >= saved.Head.N {
		return r
	}
	return saved
}

// reaches checks that the journal goes as far as a place, and has there the
// line that it names.
func (d *Driver) reaches(head journal.Head) error {
	path := d.o.Dir.Journal()
	if info, err := os.Stat(path); err == nil && info.Size() < head.Size || errors.Is(err, fs.ErrNotExist) && head.N > 0 {
		return &CutError{Path: path, Want: head.N}
	}
	return journal.Check(path, head)
}

// sayRebuilt says that the saved state was another than was saved, and saves
// the one that the journal leads to.
func (s *session) sayRebuilt() {
	const what = "the saved state was damaged or changed by another hand: it was formed anew from the journal"
	s.d.o.Say("%s", what)
	err := s.append(&journal.Entry{Kind: journal.Note, Note: what})
	if err == nil {
		err = s.save()
	}
	if err != nil {
		s.d.o.Say("%v", err) // the journal has it all: the release goes on
	}
}

// catchUp folds the lines that are behind the release's head.
func (d *Driver) catchUp(ctx context.Context, r *Release) error {
	path := d.o.Dir.Journal()
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
