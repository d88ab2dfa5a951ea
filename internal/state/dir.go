// Package state keeps where a release stands on disk, and makes sure that one
// process at a time moves it.
//
//	.canaryctl/order-service/
//	  journal.jsonl   what happened; the truth
//	  state.json      where that leaves the release; written anew after each change
//	  fence.json      the newest fencing token and who holds it
//	  lock, run.lock  held by whoever is at it, and by `run`
//	  run.json        who holds run.lock, or did last
//
// [Dir.Acquire] gives a [Lease] with a fencing token that is higher than every
// one before it. A holder that was overtaken, by a rollback that does not wait,
// finds out at the next [Lease.Check]: it writes nothing more.
package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gofrs/flock"
)

// Dir is the place of one service's release.
type Dir struct {
	path string
}

// Holder is who holds the lock.
type Holder struct {
	Token   uint64    `json:"token,omitempty"` // 0: it holds run.lock, which has none
	PID     int       `json:"pid"`
	Who     string    `json:"who"`     // user@host
	Command string    `json:"command"` // run, promote, rollback ...
	Since   time.Time `json:"since"`
}

// same reports whether two are one: two that took the release over at the same
// instant may have the same token.
func (h *Holder) same(o *Holder) bool {
	return h.Token == o.Token && h.PID == o.PID && h.Who == o.Who && h.Command == o.Command && h.Since.Equal(o.Since)
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

// longestFolder is how many bytes of a name every file system takes, with room
// for the digest.
const longestFolder = 200

// folder turns a service's name into the name of a folder. A name that is not
// one as it stands gets a digest, so that team/api and team_api are two.
func folder(service string) string {
	name := strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == ':' || r < ' ' || r == utf8.RuneError {
			return '_'
		}
		return r
	}, service)
	if strings.Trim(name, ".") == "" {
		name = "_" + name
	}
	for len(name) > longestFolder {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	if name == service {
		return name
	}
	sum := sha256.Sum256([]byte(service))
	return name + "-" + hex.EncodeToString(sum[:4])
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
		l.raise(who)
	}
	held, err := l.lock.TryLockContext(ctx, patience)
	switch {
	case preempt && !held:
		l.lock = nil
		l.raise(who)          // once more: somebody who waited for the lock as well may have had it in the meantime
		if ctx.Err() == nil { // nobody holds it, it cannot be had
			l.unwritten = errors.Join(l.unwritten, fmt.Errorf("lock the release: %w", err))
		}
		l.unwritten = errors.Join(l.unwritten, l.unshare())
		return l, nil
	case err != nil && ctx.Err() == nil:
		return nil, fmt.Errorf("lock the release: %w", err)
	case !held:
		return nil, &BusyError{Holder: d.Holder()}
	}
	l.raise(who)
	d.tidy(time.Now(), false)
	return l, nil
}

// Holder returns who held the lock last; the zero Holder if nobody is known.
func (d *Dir) Holder() Holder {
	h, err := d.fence()
	if err != nil {
		return Holder{}
	}
	return h
}

func (d *Dir) fenceFile() string { return filepath.Join(d.path, "fence.json") }

// largestFence bounds what is read of a fence: a name or two and a number.
const largestFence = 64 << 10

// errNoToken says that a fence is none: every token is above 0, and far below
// the end of the numbers.
var errNoToken = errors.New("it holds no fencing token")

// fence reads the newest token. One that cannot be read is a *DamagedError: what
// stands behind it is the lock.
func (d *Dir) fence() (Holder, error) {
	f, err := os.Open(d.fenceFile())
	if errors.Is(err, fs.ErrNotExist) {
		return Holder{}, nil
	}
	var h Holder
	if err == nil {
		var b []byte
		b, err = io.ReadAll(io.LimitReader(f, largestFence))
		err = errors.Join(err, f.Close())
		if err == nil {
			err = json.Unmarshal(b, &h)
		}
		if err == nil && (h.Token == 0 || h.Token > math.MaxInt64) {
			err = errNoToken
		}
	}
	if err != nil {
		return Holder{}, &DamagedError{Path: d.fenceFile(), Err: err}
	}
	return h, nil
}

// Driving takes run.lock, which `run` holds for as long as it runs, so that
// there is one; false: there is one already, [Dir.Runner].
func (d *Dir) Driving(who Holder) (release func() error, ok bool, err error) {
	l := flock.New(filepath.Join(d.path, "run.lock"))
	ok, err = l.TryLock()
	if err != nil || !ok {
		return nil, false, err
	}
	b, err := json.Marshal(who)
	if err == nil {
		err = replace(d.runnerFile(), b, nil)
	}
	if err != nil {
		return nil, false, errors.Join(fmt.Errorf("write down who runs: %w", err), l.Unlock())
	}
	return l.Unlock, true, nil
}

func (d *Dir) runnerFile() string { return filepath.Join(d.path, "run.json") }

// Runner is whoever took run.lock last; the zero Holder if nobody is known.
func (d *Dir) Runner() (h Holder) {
	b, err := os.ReadFile(d.runnerFile())
	if err != nil || json.Unmarshal(b, &h) != nil {
		return Holder{}
	}
	return h
}

// Lease is the right to move a release.
type Lease struct {
	dir       *Dir
	lock      *flock.Flock // nil: taken over from a holder that does not answer
	who       Holder       // with the token
	fenced    Holder       // what the fence holds as long as nobody takes over: who, but for a disk that takes no more
	unwritten error
}

// Token returns the fencing token.
func (l *Lease) Token() uint64 { return l.who.Token }

// Unwritten is why the token could not be written down, as on a full disk, or
// nil. Such a lease is good for a rollback, which is never refused, and for
// nothing else.
func (l *Lease) Unwritten() error { return l.unwritten }

// raise makes a token that is higher than every one before, here and elsewhere.
func (l *Lease) raise(who Holder) {
	h, err := l.dir.fence()
	if err != nil {
		h = Holder{} // it is damaged, and the clock is above whatever it held
	}
	// By the clock where that is higher: another directory, on another machine or
	// in a pipeline's empty folder, may have driven the same target before.
	who.Token = max(h.Token+1, l.who.Token+1, uint64(max(who.Since.UnixMicro(), 0)))
	l.who, l.fenced = who, h
	l.unwritten = l.fence()
}

func (l *Lease) fence() error {
	b, err := json.Marshal(l.who)
	if err == nil {
		err = replace(l.dir.fenceFile(), b, nil)
	}
	if err != nil {
		return fmt.Errorf("take the release's lock: %w", err)
	}
	l.fenced = l.who
	return nil
}

// unshare makes the journal another file than the one that the holder has open,
// so that a line that it is in the middle of writing, and goes on with when it
// wakes up, goes nowhere. A state that it was about to rename goes as well.
func (l *Lease) unshare() error {
	l.dir.tidy(time.Now(), true)
	path := l.dir.Journal()
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = replace(path, b, nil)
	}
	if err != nil {
		return fmt.Errorf("take the journal over: %w", err)
	}
	return nil
}

// Check returns a *LostError once somebody else has taken the release over.
func (l *Lease) Check() error {
	h, err := l.dir.fence()
	if err != nil {
		if l.unwritten != nil {
			return nil // as it was before
		}
		return err
	}
	if !h.same(&l.fenced) {
		return &LostError{Token: l.who.Token, By: h}
	}
	return nil
}

// Save keeps what [Dir.Load] returns: written aside, synced and, if the release
// still is this lease's by then, renamed.
func (l *Lease) Save(b []byte) error {
	if err := errors.Join(l.Check(), l.unwritten); err != nil {
		return err
	}
	err := replace(l.dir.stateFile(), b, l.Check)
	if err == nil {
		return nil
	}
	if lost := l.Check(); lost != nil {
		return lost // whoever took over has taken the file aside away
	}
	return fmt.Errorf("save the release's state: %w", err)
}

// SetAside renames a damaged journal, and the state with it, so that a rollback
// can go on with a new one and nothing is lost. Once somebody else has taken the
// release over they are theirs, and stay.
func (l *Lease) SetAside(now time.Time) (names []string, err error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	paths := []string{l.dir.Journal(), l.dir.stateFile()}
	mark := freeMark(paths, ".damaged-"+now.UTC().Format("20060102T150405Z"))
	for _, path := range paths {
		aside := path + mark
		switch renameErr := os.Rename(path, aside); {
		case renameErr == nil:
			names = append(names, aside)
		case !errors.Is(renameErr, fs.ErrNotExist):
			err = errors.Join(err, renameErr)
		}
	}
	return names, err
}

// freeMark is a mark that no file has yet: two may be put aside in one second.
func freeMark(paths []string, mark string) string {
	free := mark
	for n := 2; slices.ContainsFunc(paths, func(p string) bool { _, err := os.Lstat(p + free); return err == nil }); n++ {
		free = fmt.Sprintf("%s-%d", mark, n)
	}
	return free
}

// Release lets the lock go.
func (l *Lease) Release() error {
	if l.lock == nil {
		return nil
	}
	return l.lock.Unlock()
}
