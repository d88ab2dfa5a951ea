// Package pattern holds regular expressions that are compiled when they are
// first used: a command uses few of those that the program has, and compiling
// all of them would be most of what it takes to start.
package pattern

import (
	"regexp"
	"sync"
)

// A Pattern is a regular expression in RE2 syntax. It may be used by several
// goroutines at once.
type Pattern struct {
	source string
	once   sync.Once
	re     *regexp.Regexp
}

// New returns the pattern of a source that is known to be right: its first use
// panics if it is not. A variable of a package costs nothing at start-up.
func New(source string) *Pattern { return &Pattern{source: source} }

// String returns the source.
func (p *Pattern) String() string { return p.source }

// Regexp compiles the pattern, once.
func (p *Pattern) Regexp() *regexp.Regexp {
	p.once.Do(func() { p.re = regexp.MustCompile(p.source) })
	return p.re
}

// MatchString is [regexp.Regexp.MatchString].
func (p *Pattern) MatchString(s string) bool { return p.Regexp().MatchString(s) }

// FindStringSubmatch is [regexp.Regexp.FindStringSubmatch].
func (p *Pattern) FindStringSubmatch(s string) []string { return p.Regexp().FindStringSubmatch(s) }

// ReplaceAllString is [regexp.Regexp.ReplaceAllString].
func (p *Pattern) ReplaceAllString(s, to string) string { return p.Regexp().ReplaceAllString(s, to) }
