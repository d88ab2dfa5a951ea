//go:build unix

package main

import (
	"strings"
	"testing"
)

// TestWhyIsOfTheAttemptUnderWay: a rollback that a person made in the attempt
// before is not the reason of the one that is due now.
func TestWhyIsOfTheAttemptUnderWay(t *testing.T) {
	t.Parallel()
	s := newScene(t, heldConfig)
	s.want(0, "promote")
	s.want(0, "rollback", "--reason", "wrong totals")
	s.want(0, "resume", "--clear-lock", "--reason", "mended")
	s.want(0, "promote")
	s.serve(traffic{windows: 2, violations: 500})
	out := s.want(0, "status").out
	if !strings.Contains(out, "would roll_back") || !strings.Contains(out, "violations in") || strings.Contains(out, "wrong totals") {
		t.Errorf("status: %s", out)
	}
}
