package pattern_test

import (
	"sync"
	"testing"

	"github.com/canaryctl/canaryctl/internal/pattern"
)

func TestPatternIsCompiledOnce(t *testing.T) {
	p := pattern.New(`^(a+)-(b*)$`)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if !p.MatchString("aa-") || p.MatchString("b") {
				t.Error("it matches something else")
			}
		})
	}
	all.Wait()
	first := p.Regexp()
	if p.Regexp() != first {
		t.Error("it is compiled again")
	}
	if m := p.FindStringSubmatch("aa-b"); len(m) != 3 || m[1] != "aa" || m[2] != "b" {
		t.Errorf("parts %q", m)
	}
	if got := p.ReplaceAllString("aa-b", "$2"); got != "b" {
		t.Errorf("replaced by %q", got)
	}
	if p.String() != `^(a+)-(b*)$` {
		t.Errorf("source %s", p)
	}
}

// TestWrongPatternPanicsWhereItIsUsed: not where it is written.
func TestWrongPatternPanicsWhereItIsUsed(t *testing.T) {
	p := pattern.New(`(`)
	defer func() {
		if recover() == nil {
			t.Error("a pattern that is none was used")
		}
	}()
	p.MatchString("")
}
