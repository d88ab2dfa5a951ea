package driver

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"time"

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
// command once more from the evidence stored with it; and holds the saved state
// against what the lines come to at the place that it stands at. It ends at the
// first line that is wrong: with a *journal.CorruptError, a *MismatchError, or a
// *CutError where the saved state stands behind the journal's end.
func Verify(ctx context.Context, dir *state.Dir, service string) (*Verified, error) {
	d := reader(dir, service)
	saved, err := dir.Load()
	if err != nil {
		return nil, err
	}
	v := &Verified{}
	r := newRelease(service, dir)
	check := &savedCheck{bytes: saved, path: dir.Journal()}
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
		return check.at(r)
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil {
		err = check.end(r)
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

// savedCheck holds the saved state against the journal.
type savedCheck struct {
	bytes []byte
	path  string
	found error // what is wrong with it; the lines behind it are read first
}

// at compares the saved state with the one that the lines come to, at the line
// that it stands at.
func (c *savedCheck) at(r *Release) error {
	var head struct {
		Head journal.Head `json:"journal"`
	}
	if c.bytes == nil || json.Unmarshal(c.bytes, &head) != nil || head.Head.N != r.Head.N {
		return nil
	}
	if head.Head != r.Head {
		c.found = &MismatchError{Line: r.Head.N, What: "the saved state stands at another line with this number"}
		return nil
	}
	differs, err := differences(c.bytes, r)
	if err != nil {
		return err
	}
	if len(differs) > 0 {
		c.found = &MismatchError{Line: r.Head.N, What: "the saved state is not what the lines up to here lead to; it differs in: " + strings.Join(differs, ", ")}
	}
	return nil
}

// end checks that the journal goes as far as the saved state.
func (c *savedCheck) end(r *Release) error {
	var s Release
	if c.bytes == nil || json.Unmarshal(c.bytes, &s) != nil {
		return nil // it is formed anew with the next look
	}
	if s.Head.N > r.Head.N {
		return &CutError{Path: c.path, Want: s.Head.N}
	}
	return c.found
}

// derived are the parts of a saved state that the journal's lines lead to, all
// but what is about one directory or one machine's channels.
var derived = []string{
	"service", "config", "release", "stable", "ladder", "ladder_digest", "last", "last_at", "until", "newest", "held",
	"exchange", "exposure", "record", "standing", "refused",
}

// differences names the parts in which a saved state is another than the one
// that was derived.
func differences(saved []byte, r *Release) ([]string, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var s Release
	if err := json.Unmarshal(saved, &s); err != nil {
		return nil, err
	}
	a, err := json.Marshal(&s) // in the form of today's canaryctl
	if err != nil {
		return nil, err
	}
	var is, want map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(a, &is), json.Unmarshal(b, &want)); err != nil {
		return nil, err
	}
	var out []string
	for _, name := range derived {
		if string(is[name]) != string(want[name]) {
			out = append(out, name)
		}
	}
	return out, nil
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
