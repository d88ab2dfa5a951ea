// Package notify tells people and systems what a release did: one message per
// transition, in the form of the channel that carries it, and hooks that undo
// after a rollback what moving the weight cannot.
//
//	ch, err := notify.New(cfg.Notify[0], 0, notify.Options{Getenv: os.Getenv})
//	if ch.Wants(m.Event) {
//		err := ch.Send(ctx, m) // once; another try is due after notify.Pause
//	}
//
// It decides nothing: the driver says what happened and keeps what came of the
// delivery. A failure here never stops a release or a rollback. No error and no
// name shows an address or a secret.
package notify

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Event names a transition.
type Event string

// The transitions. Each is told once.
const (
	Started      Event = "started"
	Advanced     Event = "advanced"
	Completed    Event = "completed"
	RolledBack   Event = "rolled_back" // weight 0 was read back
	Locked       Event = "locked"      // and only a person clears it
	LockCleared  Event = "lock_cleared"
	Incomplete   Event = "rollback_incomplete"
	Probing      Event = "probing"
	Recovered    Event = "recovered"
	Approval     Event = "awaiting_approval"
	Overdue      Event = "overdue" // max_wait_min is over
	Drift        Event = "drift"
	DriftOver    Event = "drift_over"
	Mismatch     Event = "share_mismatch"
	ShareOK      Event = "share_ok"
	SourceLost   Event = "source_lost"
	SourceBack   Event = "source_back"
	TargetLost   Event = "target_lost"
	TargetBack   Event = "target_back"
	WriteRefused Event = "write_refused" // a step forward, again and again
	Paused       Event = "paused"
	Resumed      Event = "resumed"
	HookFailed   Event = "hook_failed"
	Test         Event = "test" // preflight
)

// Message is one transition, ready to be told.
type Message struct {
	Schema  int       `json:"schema"` // 1
	Key     string    `json:"key"`    // release/attempt/step/event/n: the same over retries and restarts
	Event   Event     `json:"event"`
	Time    time.Time `json:"time"`
	Service string    `json:"service"`
	Release string    `json:"release"` // id, the first 12 digits
	Attempt int       `json:"attempt"`
	Step    int       `json:"step"` // from 1
	Steps   int       `json:"steps"`
	Pct     float64   `json:"pct"` // weight in force, a fraction of 1
	Phase   string    `json:"breaker"`
	Reason  string    `json:"reason"` // one sentence
	Next    string    `json:"next"`   // what happens next, or the command to give, verbatim
	RunURL  string    `json:"run_url,omitempty"`
	// Rollback is the rollback record, for the events of a rollback.
	Rollback json.RawMessage `json:"rollback,omitempty"`
}

// Bad reports whether somebody should look now.
func (e Event) Bad() bool {
	switch e {
	case RolledBack, Locked, Incomplete, Drift, Mismatch, SourceLost, TargetLost, WriteRefused, HookFailed, Overdue:
		return true
	}
	return false
}

// Channel carries messages somewhere.
type Channel interface {
	// Send delivers one message once; it does not retry. Whether an answer
	// means success is the channel's own rule. Errors are *DeliveryError, with
	// Retry where a later try could mend it.
	Send(ctx context.Context, m Message) error
	// Wants reports whether the configuration asks for this event here; a test
	// message is always wanted.
	Wants(e Event) bool
	// String names the channel for people, without its secret address:
	// "slack (notify[0])".
	String() string
}

// Hook is something done after a rollback.
type Hook interface {
	// Run does it once; it does not retry. It is given the rollback record,
	// m.Rollback, and fails without one. Errors are *DeliveryError.
	Run(ctx context.Context, m Message) error
	// Tries is how often it is tried in all.
	Tries() int
	String() string
}

// DeliveryError says that a message or a hook did not get through.
type DeliveryError struct {
	To    string
	Err   error
	Retry bool          // trying again may help
	After time.Duration // how long it asks to wait; 0: it does not say
	// Untried: nothing was sent, nor can be from here; it counts for no try.
	Untried bool
}

// Error implements error.
func (e *DeliveryError) Error() string { return e.To + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *DeliveryError) Unwrap() error { return e.Err }

// Options are what channels and hooks need of the world.
type Options struct {
	Getenv func(string) string // nil: the process's environment
	Client *http.Client        // nil: one of its own; redirects and limits of time are set here
	Dir    string              // working directory of commands; "" is the process's
	Now    func() time.Time    // nil: the clock
}

// now returns the clock.
func (o Options) now() func() time.Time {
	if o.Now == nil {
		return time.Now
	}
	return o.Now
}
