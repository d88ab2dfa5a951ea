package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/canaryctl/canaryctl/internal/journal"
)

const (
	// mostEvents is how many events are kept, the newest.
	mostEvents = 200
	// tailSize is how much of a journal is read at first, some hours of holds, and
	// longTail how much where there are fewEvents in that: a day and more.
	tailSize  = 1 << 20
	longTail  = 16 << 20
	fewEvents = 20
	// mostDamaged is how often reading begins again behind a damaged line.
	mostDamaged = 8
)

// tail follows the newest lines of a journal. Nothing of the file is changed,
// and of its entries only what the view shows is kept.
type tail struct {
	path    string
	head    journal.Head
	events  []Event // oldest first; never changed, but for another slice in its place
	decider Decider
	damage  string // of the journal as it is; "": none was met
	another string // what became of the one before
}

// read brings the tail up to the journal's end. An error says that the file
// could not be read; what it was damaged by is a note.
func (t *tail) read(ctx context.Context, now time.Time) error {
	info, err := os.Stat(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		if t.head.N > 0 {
			t.restart(now, "has gone")
		}
		return nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", t.path)
	}
	if err != nil {
		return err
	}
	if err := t.same(info.Size(), now); err != nil {
		return err
	}
	k := taker{t: t, events: slices.Clone(t.events)}
	if t.head.N == 0 {
		err = t.begin(ctx, info.Size(), &k)
	} else {
		err = journal.Read(ctx, t.path, t.head, k.take)
	}
	err = t.pass(ctx, info.Size(), err, &k)
	t.events = k.newest()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it went away just now
	}
	return err
}

// same starts anew where the file is not the one that was read.
func (t *tail) same(size int64, now time.Time) error {
	if t.head.N == 0 {
		return nil
	}
	err := journal.Check(t.path, t.head)
	if isCorrupt(err) || size < t.head.Size {
		t.restart(now, "is another one: it was put aside or cut off, and what is shown is what it holds now")
		return nil
	}
	return err
}

func isCorrupt(err error) bool {
	_, corrupt := errors.AsType[*journal.CorruptError](err)
	return corrupt
}

// restart forgets a journal that is no longer there.
func (t *tail) restart(now time.Time, what string) {
	*t = tail{path: t.path, another: fmt.Sprintf("%s: the journal %s %s", now.UTC().Format(time.RFC3339), t.path, what)}
}

// begin reads the journal's newest lines, and more of them where those tell of
// holds only.
func (t *tail) begin(ctx context.Context, size int64, k *taker) error {
	k.events = nil
	err := t.newest(ctx, tailSize, k)
	if err == nil && len(k.events) < fewEvents && size > tailSize {
		k.events = nil
		err = t.newest(ctx, longTail, k)
	}
	return err
}

// newest reads the last bytes of the journal, so many.
func (t *tail) newest(ctx context.Context, size int64, k *taker) (err error) {
	t.head, err = journal.Newest(ctx, t.path, size, k.take)
	return err
}

// pass goes on behind lines that are damaged. The line that the chain breaks at
// may itself be good, as where others were taken out before it: then it is the
// first to be read.
func (t *tail) pass(ctx context.Context, size int64, err error, k *taker) error {
	for range mostDamaged {
		if !isCorrupt(err) {
			return err
		}
		t.damage = cmp.Or(t.damage, err.Error()+"; what is shown leaves out what cannot be trusted: canaryctl history verify")
		good := t.head
		if err = t.newest(ctx, size-good.Size, k); isCorrupt(err) && t.head.Size <= good.Size {
			err = t.newest(ctx, size-good.Size-1, k)
		}
		if t.head.Size <= good.Size {
			t.head = good // nothing can be read behind it
			break
		}
	}
	if isCorrupt(err) {
		return nil // said by then
	}
	return err
}

// notes is what is odd about the journal.
func (t *tail) notes() (out []string) {
	for _, n := range []string{t.another, t.damage} {
		if n != "" {
			out = append(out, n)
		}
	}
	return out
}

// taker takes entries in.
type taker struct {
	t      *tail
	events []Event
}

func (k *taker) take(e *journal.Entry, at journal.Head) error {
	k.t.head = at
	if e.Kind == journal.Decide { // a person's word decides nothing about the windows
		k.t.decider = Decider{At: e.T, Who: e.By}
	}
	if ev, told := EventOf(e); told {
		k.events = append(k.events, ev)
	}
	if len(k.events) > 2*mostEvents {
		k.events = slices.Clone(k.newest())
	}
	return nil
}

func (k *taker) newest() []Event { return k.events[max(0, len(k.events)-mostEvents):] }
