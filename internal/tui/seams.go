package tui

import (
	"context"
	"time"

	"github.com/canaryctl/canaryctl/internal/watch"
)

// Feed is where snapshots of a live release come from.
type Feed interface {
	// Next returns the next snapshot as soon as there is something new, and in
	// any case after a while. It is called again and again by one goroutine. An
	// error says that nothing could be seen of the release; the view stays and
	// says so.
	Next(ctx context.Context) (watch.Snapshot, error)
}

// Film is a replay.
type Film interface {
	Len() int                // frames; at least 1
	At(i int) watch.Snapshot // the i-th, from 0
	Time(i int) time.Time    // its time
	Marks() []int            // frames at which something happened, rising
	Span() time.Duration     // of the replay's time from frame to frame
}

// Action is what a person may do from the view.
type Action = watch.Action

// The actions.
const (
	Pause    = watch.Pause
	Resume   = watch.Resume
	Approve  = watch.Approve
	RollBack = watch.RollBack
)

// Actions carries out what a person has confirmed, through the same code as the
// commands.
type Actions interface {
	// Do carries an action out on the release as it stands. An approval is for what
	// the person was shown: that release, attempt, step and configuration, and no
	// worse verdict. It returns what came of it in a line. It goes on when the view ends, and is called by several goroutines.
	Do(a Action, shown *watch.Snapshot, reason string) (string, error)
}
