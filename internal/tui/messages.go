package tui

import (
	"time"

	"github.com/canaryctl/canaryctl/internal/watch"
)

// snapshotMsg is a look at the live release.
type snapshotMsg struct{ snapshot watch.Snapshot }

// lookFailedMsg says that nothing could be seen of it.
type lookFailedMsg struct{ err error }

// lookAgainMsg is the time to look again after that.
type lookAgainMsg struct{}

// secondMsg is a second of the wall clock.
type secondMsg struct{ at time.Time }

// playMsg is the time for the next frames of a replay. turn is of the playing
// that it belongs to: one that was stopped has no more.
type playMsg struct {
	at   time.Time
	turn int
}

// noteMsg is a line for the person.
type noteMsg struct{ text string }

// carriedOutMsg says what came of an action.
type carriedOutMsg struct {
	errand *errand
	action Action
	text   string
	err    error
}

// brokenMsg is the panic of a command, and where it was.
type brokenMsg struct{ text string }
