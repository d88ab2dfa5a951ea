// Package diag holds findings about a user's files: where, by which rule, what
// is wrong and what would be right. A finding is data, not a Go error: a parser
// gathers all of them in a [List], sorts it, and the caller renders it as text
// with the source line and a caret, or as JSON.
//
//	list.Add(diag.Finding{File: name, Line: 3, Col: 5, EndCol: 9, Rule: "unknown-key", Message: "..."})
//	list.Sort()
//	if err := list.Text(w, sources); err != nil { ... }
//
// It knows nothing of YAML or of canaryctl's rules, reads no file and imports
// the standard library only.
package diag

import (
	"cmp"
	"fmt"
	"slices"
)

// Severity says whether a finding makes the file unusable.
type Severity uint8

// The severities. The zero value is Error.
const (
	Error   Severity = iota // the file cannot be used
	Warning                 // the file can be used, at a risk that the message names
)

var severityNames = [...]string{"error", "warning"}

// String returns "error" or "warning".
func (s Severity) String() string {
	if int(s) < len(severityNames) {
		return severityNames[s]
	}
	return fmt.Sprintf("severity(%d)", uint8(s))
}

// MarshalText implements [encoding.TextMarshaler].
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *Severity) UnmarshalText(b []byte) error {
	for i, name := range severityNames {
		if name == string(b) {
			*s = Severity(i)
			return nil
		}
	}
	return fmt.Errorf("unknown severity %q", b)
}

// Finding is one thing to say about one place of one file.
type Finding struct {
	File     string   `json:"file"`
	Line     int      `json:"line"`    // from 1
	Col      int      `json:"col"`     // from 1, in runes
	EndCol   int      `json:"end_col"` // the first column after the marked text, on the same line
	Severity Severity `json:"severity"`
	Rule     string   `json:"rule"`    // the rule's id, kebab-case
	Message  string   `json:"message"` // what is wrong, lower case, no full stop
	Hint     string   `json:"hint,omitempty"`
}

// String returns the finding's first line: file:line:col: message [rule]. A
// warning says so before its message.
func (f Finding) String() string {
	kind := ""
	if f.Severity == Warning {
		kind = "warning: "
	}
	return fmt.Sprintf("%s:%d:%d: %s%s [%s]", printable(f.File), f.Line, f.Col, kind, printable(f.Message), f.Rule)
}

// List is a number of findings, in the order in which they were made until
// Sort is called.
type List []Finding

// Add appends a finding.
func (l *List) Add(f Finding) { *l = append(*l, f) }

// Sort orders the findings by file, line, column, rule and message and drops
// exact repetitions, so that output does not depend on the order of checks.
func (l *List) Sort() {
	slices.SortFunc(*l, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	*l = slices.Compact(*l)
}

// HasErrors reports whether any finding is an error.
func (l List) HasErrors() bool { return l.Count(Error) > 0 }

// Count returns the number of findings of a severity.
func (l List) Count(s Severity) int {
	n := 0
	for i := range l {
		if l[i].Severity == s {
			n++
		}
	}
	return n
}
