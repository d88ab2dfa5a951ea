package target

import (
	"fmt"
	"time"

	"github.com/canaryctl/canaryctl/internal/release"
)

// ConflictError says that the target no longer holds what was read: somebody
// else has moved. Nothing was written.
type ConflictError struct {
	Target string
	Held   *release.Weight // what it holds instead; nil where only the revision differs or is not known
	By     string          // who moved it, where the target can tell
	Err    error           // what the target answered; may be nil
}

// Error implements error.
func (e *ConflictError) Error() string {
	s := e.Target + ": somebody else has moved"
	if e.Held != nil {
		s += fmt.Sprintf(": it holds %s", *e.Held)
	}
	if e.By != "" {
		s += " by " + e.By
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns what the target answered.
func (e *ConflictError) Unwrap() error { return e.Err }

// RefusedError says that the target will not do it, and would not the next
// time: no permission, a protected branch, no such key.
type RefusedError struct {
	Target string
	Err    error
	Hint   string // what to do, or ""
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Target + ": refused: " + e.Err.Error() }

// Unwrap returns what the target answered.
func (e *RefusedError) Unwrap() error { return e.Err }

// UnreachableError says that the target was not reached, broke off or answered
// that it could not just now. A write may or may not have been done.
type UnreachableError struct {
	Target string
	Err    error
	After  time.Duration // how long it asks to wait (Retry-After); 0: it does not say
}

// Error implements error.
func (e *UnreachableError) Error() string { return e.Target + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// ShapeError says that what the target holds is not what the configuration
// says: no such key, no number there, no share of the whole.
type ShapeError struct {
	Target string
	Err    error
	Hint   string
}

// Error implements error.
func (e *ShapeError) Error() string { return e.Target + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ShapeError) Unwrap() error { return e.Err }

// FineError says that a weight is too fine for the target. It is never
// rounded: not to 0, which would stop a release silently, nor to anything
// else, which would not read back as itself.
type FineError struct {
	Target string
	Weight release.Weight
	Finest release.Weight // the smallest share above 0 that it can hold
}

// Error implements error.
func (e *FineError) Error() string {
	return fmt.Sprintf("%s cannot hold %s exactly: its finest step is %s", e.Target, e.Weight, e.Finest)
}
