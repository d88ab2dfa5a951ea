// Package state keeps where a release stands on disk, and makes sure that one
// process at a time moves it.
//
//	.canaryctl/order-service/
//	  journal.jsonl   what happened; the truth
//	  state.json      where that leaves the release; written anew after each change
//	  fence.json      the newest fencing token and who holds it
//	  lock, run.lock  held by whoever is at it, and by `run`
//
// [Dir.Acquire] gives a [Lease] with a fencing token that is higher than every
// one before it. A holder that was overtaken, by a rollback that does not wait,
// finds out at the next [Lease.Check]: it writes nothing more.
package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// Dir is the place of one service's release.
type Dir struct {
	path string
}

// Holder is who holds the lock.
type Holder struct {
	Token   uint64    `json:"token"`
	PID     int       `json:"pid"`
	Who     string    `json:"who"`     // user@host
	Command string    `json:"command"` // run, promote, rollback ...
	Since   time.Time `json:"since"`
}

// BusyError says that somebody else holds the lock and did not let go in time.
type BusyError struct {
	Holder Holder
}

// Error implements error.
func (e *BusyError) Error() string {
	if e.Holder.Token == 0 {
		return "another canaryctl holds this release"
	}
	return fmt.Sprintf("another canaryctl holds this release: %s of %s, process %d, since %s",
		e.Holder.Command, e.Holder.Who, e.Holder.PID, e.Holder.Since.UTC().Format(time.RFC3339))
}

// LostError says that the lock was taken over: nothing more may be written.
type LostError struct {
	Token uint64 // the one that was held
	By    Holder
}

// Error implements error.
func (e *LostError) Error() string {
	return fmt.Sprintf("the release was taken over by %s of %s (fencing token %d, ours was %d)", e.By.Command, e.By.Who, e.By.Token, e.Token)
}

// DamagedError says that a file of the directory cannot be read as what it is.
type DamagedError struct {
	Path string
	Err  error
}

// Error implements error.
func (e *DamagedError) Error() string { return fmt.Sprintf("%s is damaged: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *DamagedError) Unwrap() error { return e.Err }

// Open makes the directory of a service below dir, if it is not there.
func Open(dir, service string) (*Dir, error) {
	d := At(dir, service)
	if err := os.MkdirAll(d.path, 0o755); err != nil {
		return nil, fmt.Errorf("make the directory of the release's state: %w", err)
	}
	return d, nil
}

// At is [Open] for reading: it makes nothing.
func At(dir, service string) *Dir { return &Dir{path: filepath.Join(dir, folder(service))} }

// folder turns a service's name into the name of a folder.
func folder(service string) string {
	name := strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == ':' || r < ' ' {
			return '_'
		}
		return r
	}, service)
	if strings.Trim(name, ".") == "" {
		return "_" + name
	}
	return name
}

// Path returns the directory's name.
func (d *Dir) Path() string { return d.path }

// Journal returns the name of the journal.
func (d *Dir) Journal() string { return filepath.Join(d.path, "journal.jsonl") }

// Load returns what was saved last, or nil if nothing was.
func (d *Dir) Load() ([]byte, error) {
	b, err := os.ReadFile(d.stateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

func (d *Dir) stateFile() string { return filepath.Join(d.path, "state.json") }

// patience is how long a lock is waited for between two looks.
const patience = 20 * time.Millisecond

// Acquire takes the lock, waiting for its holder until ctx ends, which is a
// *BusyError.
func (d *Dir) Acquire(ctx context.Context, who Holder) (*Lease, error) {
	return d.acquire(ctx, who, false)
}

// Preempt takes the release over: its token is the newest at once, so that the
// holder may write nothing more, and lets go. Where that takes longer than ctx
// allows, as of a process that was stopped, the lease is without the file's
// lock: the token alone keeps the holder out.
func (d *Dir) Preempt(ctx context.Context, who Holder) (*Lease, error) {
	return d.acquire(ctx, who, true)
}

func (d *Dir) acquire(ctx context.Context, who Holder, preempt bool) (*Lease, error) {
	l := &Lease{dir: d, lock: flock.New(filepath.Join(d.path, "lock"))}
	if preempt {
		if err := l.raise(who); err != nil {
			return nil, err
		}
	}
	held, err := l.lock.TryLockContext(ctx, patience)
	switch {
	case err != nil && ctx.Err() == nil:
		return nil, fmt.Errorf("lock the release: %w", err)
	case !held && !preempt:
		return nil, &BusyError{Holder: d.Holder()}
	case !held:
		l.lock = nil
		return l, nil
	}
	if err := l.raise(who); err != nil {
		return nil, errors.Join(err, l.lock.Unlock())
	}
	return l, nil
}

// Holder returns who held the lock last; the zero Holder if nobody is known.
func (d *Dir) Holder() Holder {
	h, _, _ := d.fence()
	return h
}

func (d *Dir) fenceFile() string { return filepath.Join(d.path, "fence.json") }

// fence reads the newest token. A fence that cannot be read counts as none:
// what stands behind it is the lock.
func (d *Dir) fence() (h Holder, there bool, err error) {
	b, err := os.ReadFile(d.fenceFile())
	if errors.Is(err, fs.ErrNotExist) {
		return Holder{}, false, nil
	}
	if err == nil {
		if jsonErr := json.Unmarshal(b, &h); jsonErr != nil {
			err = &DamagedError{Path: d.fenceFile(), Err: jsonErr}
		}
	}
	return h, err == nil, err
}

// Driving takes run.lock, which `run` holds for as long as it runs, so that
// there is one; false: there is one already.
func (d *Dir) Driving() (release func() error, ok bool, err error) {
	l := flock.New(filepath.Join(d.path, "run.lock"))
	ok, err = l.TryLock()
	if err != nil || !ok {
		return nil, false, err
	}
	return l.Unlock, true, nil
}

// Lease is the right to move a release.
type Lease struct {
	dir   *Dir
	lock  *flock.Flock // nil: taken over from a holder that does not answer
	token uint64
}

// Token returns the fencing token.
func (l *Lease) Token() uint64 { return l.token }

// raise makes a token that is higher than every one before: here by counting,
// and elsewhere, where another directory drove the same target, by the clock.
func (l *Lease) raise(who Holder) error {
	h, _, err := l.dir.fence()
	if _, damaged := errors.AsType[*DamagedError](err); err != nil && !damaged {
		return err
	}
	who.Token = max(h.Token+1, l.token+1, uint64(max(who.Since.UnixMicro(), 0)))
	b, err := json.Marshal(who)
	if err != nil {
		return err
	}
	if err := replace(l.dir.fenceFile(), l.dir.fenceFile()+"."+strconv.Itoa(who.PID), b); err != nil {
		return fmt.Errorf("take the release's lock: %w", err)
	}
	l.token = who.Token
	return nil
}

// Check returns a *LostError once somebody else has taken the release over.
func (l *Lease) Check() error {
	h, there, err := l.dir.fence()
	if err != nil {
		return err
	}
	if !there || h.Token != l.token {
		return &LostError{Token: l.token, By: h}
	}
	return nil
}

// Save keeps what [Dir.Load] returns: written aside, synced and renamed.
func (l *Lease) Save(b []byte) error {
	if err := l.Check(); err != nil {
		return err
	}
	if err := replace(l.dir.stateFile(), l.dir.stateFile()+".new", b); err != nil {
		return fmt.Errorf("save the release's state: %w", err)
	}
	return nil
}

// SetAside renames a damaged journal, and the state with it, so that a rollback
// can go on with a new one and nothing is lost.
func (l *Lease) SetAside(now time.Time) (names []string, err error) {
	for _, path := range []string{l.dir.Journal(), l.dir.stateFile()} {
		aside := path + ".damaged-" + now.UTC().Format("20060102T150405Z")
		switch renameErr := os.Rename(path, aside); {
		case renameErr == nil:
			names = append(names, aside)
		case !errors.Is(renameErr, fs.ErrNotExist):
			err = errors.Join(err, renameErr)
		}
	}
	return names, err
}

// Release lets the lock go.
func (l *Lease) Release() error {
	if l.lock == nil {
		return nil
	}
	return l.lock.Unlock()
}

// replace writes a file aside, syncs it and renames it over path. The name
// aside holds what tells writers apart, and is the same for the same one: a
// process that was killed leaves one such file at most, which the next takes.
func replace(path, aside string, data []byte) (err error) {
	f, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer os.Remove(aside) // after the rename there is nothing to remove
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(aside, path); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
