package trace

import (
	"fmt"
	"strings"
	"time"
)

// Hinter is an error that knows what the user can do about it; every error
// type of this package is one.
type Hinter interface {
	error
	// Hint is one sentence without a full stop, or "".
	Hint() string
}

// MappingError says that a --map, --arm or --epoch cannot be understood.
type MappingError struct {
	Text   string // what the user wrote
	Msg    string
	Advice string
}

// Error implements error.
func (e *MappingError) Error() string { return fmt.Sprintf("%q: %s", e.Text, e.Msg) }

// Hint implements [Hinter].
func (e *MappingError) Hint() string { return e.Advice }

// InputError says that a file cannot be used: it is missing, cut off, damaged,
// of a format that is not read, or contradicts itself.
type InputError struct {
	File   string
	Line   int64 // 0: the file as a whole
	Msg    string
	Advice string
	Err    error // the cause, or nil
}

// Error implements error.
func (e *InputError) Error() string {
	s := e.File
	if e.Line > 0 {
		s += fmt.Sprintf(":%d", e.Line)
	}
	if e.Msg != "" {
		s += ": " + e.Msg
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Err }

// Hint implements [Hinter].
func (e *InputError) Hint() string { return e.Advice }

// NoTimeError says that no field holds a time.
type NoTimeError struct {
	File    string
	Columns []string // what there is instead
}

// Error implements error.
func (e *NoTimeError) Error() string {
	return fmt.Sprintf("%s: no time in it: neither ts nor t nor a column with a name such as timestamp; it has %s", e.File, list(e.Columns))
}

// Hint implements [Hinter].
func (e *NoTimeError) Hint() string {
	return "say where the time is with --map ts=COLUMN (records) or --map t=COLUMN,total=COLUMN (windows)"
}

// NoCountsError says that rows have times but nothing to count: they are not
// records, and windows need a total.
type NoCountsError struct {
	File        string
	Rows        int64     // rows with a time
	First, Last time.Time // the span that they cover
	Columns     []string  // the other columns
	Time        string    // the column with the time
}

// Span is the time between the first and the last row.
func (e *NoCountsError) Span() time.Duration { return e.Last.Sub(e.First) }

// Error implements error.
func (e *NoCountsError) Error() string {
	return fmt.Sprintf("%s: no counts in it: %d rows over %s (%s to %s) with a time (%s) and without a total of requests; it has %s",
		e.File, e.Rows, roughly(e.Span()), e.First.Format(time.RFC3339), e.Last.Format(time.RFC3339), e.Time, list(e.Columns))
}

// Hint implements [Hinter].
func (e *NoCountsError) Hint() string {
	return fmt.Sprintf("if each row is a request say --map ts=%s; if each is a window say where its counts are: --map t=%s,total=COLUMN,solved=COLUMN",
		e.Time, e.Time)
}

// NoSpanError says that window rows have no span and none was given.
type NoSpanError struct {
	File string
	Step time.Duration // the smallest step between two windows of an arm, 0 if there is one only
}

// Error implements error.
func (e *NoSpanError) Error() string {
	if e.Step == 0 {
		return e.File + ": windows without a span"
	}
	return fmt.Sprintf("%s: windows without a span, %s apart", e.File, FormatSpan(e.Step))
}

// Hint implements [Hinter].
func (e *NoSpanError) Hint() string {
	if e.Step == 0 {
		return "say how long each window is, for example --input-span 5m"
	}
	return "say how long each window is: --input-span " + FormatSpan(e.Step)
}

// NoRowsError says that the files hold no rows at all, which is no data and
// never zero.
type NoRowsError struct {
	Files []string
	Why   string // what was found instead
}

// Error implements error.
func (e *NoRowsError) Error() string {
	return fmt.Sprintf("%s: no data: %s", strings.Join(e.Files, ", "), e.Why)
}

// Hint implements [Hinter].
func (e *NoRowsError) Hint() string { return "" }

// BadLinesError says that more rows could not be read than --max-bad allows.
type BadLinesError struct {
	Bad, Rows int64
	Limit     string    // the share allowed, in percent
	Lines     []BadLine // the first ten
}

// Error implements error.
func (e *BadLinesError) Error() string {
	return fmt.Sprintf("%d of %d lines cannot be read, more than the %s allowed", e.Bad, e.Rows, e.Limit)
}

// Hint implements [Hinter].
func (e *BadLinesError) Hint() string {
	return "mend the input, or allow more with --max-bad SHARE (0.01 is 1 %)"
}

// list names columns, the first dozen of them.
func list(names []string) string {
	if len(names) == 0 {
		return "nothing else"
	}
	shown := make([]string, 0, 12)
	for _, n := range names[:min(len(names), 12)] {
		shown = append(shown, printable(n))
	}
	if more := len(names) - len(shown); more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(shown, ", "), more)
	}
	return strings.Join(shown, ", ")
}

// roughly says a length of time the way a person does, cut to whole units:
// "57 minutes".
func roughly(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d seconds", int64(d/time.Second))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d minutes", int64(d/time.Minute))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d hours", int64(d/time.Hour))
	}
	return fmt.Sprintf("%d days", int64(d/(24*time.Hour)))
}
