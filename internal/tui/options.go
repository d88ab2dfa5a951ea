package tui

import (
	"io"
	"time"

	"github.com/muesli/termenv"
)

// Options are what a view needs. Exactly one of Feed and Film is set.
type Options struct {
	Feed Feed
	Film Film
	// Speed is how many seconds of a replay pass in a second.
	Speed float64
	// Actions is nil where the view only shows.
	Actions Actions
	// Driving: the view is over this process's own loop. Interrupting it ends the
	// loop, and is asked for once; leaving it does not.
	Driving bool
	// Notes are lines for the person, of the loop or of what was carried out; nil:
	// none come.
	Notes <-chan string

	In     io.Reader // keys; nil: none come
	Out    io.Writer // the terminal
	Now    func() time.Time
	Colors termenv.Profile
	Dark   bool
	ASCII  bool
}

// Ending is how a view ended.
type Ending uint8

// The endings.
const (
	Left        Ending = iota // by the person: q
	Interrupted               // by the person: ctrl+c
	Cancelled                 // by the context: a signal, or the end of the loop
)
