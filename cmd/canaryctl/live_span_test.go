//go:build unix

package main

import (
	"strings"
	"testing"
)

// TestWindowsOfAFractionOfASecond climbs a ladder whose windows and holds are
// far below a minute.
func TestWindowsOfAFractionOfASecond(t *testing.T) {
	s := newScene(t, liveConfig)
	s.climb(3)
	s.serve(traffic{windows: 4})
	s.want(0, "promote")
	s.wantWeight(1)
	s.verify()
	if got := strings.Join(s.intents(), ", "); got != "start to 1 %, advance to 10 %, advance to 100 %" {
		t.Errorf("decided %s", got)
	}
}
