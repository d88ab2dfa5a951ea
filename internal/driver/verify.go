package driver

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/state"
)

// Verified is what a whole journal came to.
type Verified struct {
	Lines     int64     `json:"lines"`
	Decisions int64     `json:"decisions"` // derived again from their evidence, with the same result
	Commands  int64     `json:"commands"`
	Writes    int64     `json:"writes"`
	Adopted   int64     `json:"adopted"` // states taken over from the target: their past is in another journal
	First     time.Time `json:"first,omitzero"`
	Last      time.Time `json:"last,omitzero"`
	Head      string    `json:"head"` // sum of the last line: what to keep elsewhere to prove the whole
}

// Verify reads a release's whole journal: sums, chain, and every decision and
// command once more from the evidence stored with it. It ends at the first
// line that is wrong: with a *journal.CorruptError, a *MismatchError, or a
// *CutError where the saved state stands behind the journal's end.
func Verify(ctx context.Context, dir *state.Dir, service string) (*Verified, error) {
	d := &Driver{o: Options{Dir: dir, Config: &config.Config{TargetService: service}}, plans: map[string]*ladder.Plan{}}
	saved, err := dir.Load()
	if err != nil {
		return nil, err
	}
	v := &Verified{}
	r := newRelease(service)
	err = journal.Read(ctx, dir.Journal(), journal.Head{}, func(e *journal.Entry, at journal.Head) error {
		if e.Kind == journal.Config {
			if err := d.learn(e.Configured); err != nil {
				return &MismatchError{Line: e.N, What: err.Error()}
			}
		}
		if err := r.fold(e, d.known); err != nil {
			return err
		}
		r.Head, v.Head = at, at.Sum
		v.count(e)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil {
		err = reaches(saved, r, dir)
	}
	return v, err
}

// known looks up rules among the lines read so far.
func (d *Driver) known(id string) (*ladder.Plan, error) {
	if p := d.plans[id]; p != nil {
		return p, nil
	}
	return nil, errNoConfig
}

// reaches checks that the journal goes as far as the saved state, and leads
// there.
func reaches(saved []byte, r *Release, dir *state.Dir) error {
	var s Release
	if saved == nil || json.Unmarshal(saved, &s) != nil {
		return nil
	}
	if s.Head.N > r.Head.N || s.Head.N == r.Head.N && s.Head != r.Head {
		return &CutError{Path: dir.Journal(), Want: s.Head.N}
	}
	return nil
}

func (v *Verified) count(e *journal.Entry) {
	v.Lines++
	if v.First.IsZero() {
		v.First = e.T
	}
	v.Last = e.T
	switch e.Kind {
	case journal.Decide:
		v.Decisions++
	case journal.Command:
		v.Commands++
	case journal.Write:
		v.Writes++
	case journal.Adopt:
		v.Adopted++
	}
}
