//go:build unix

package main

import (
	"testing"
	"time"
)

func TestTheProxyGuideIsWhatHappens(t *testing.T) {
	t.Parallel()
	s := readStory(t, "proxy.md")
	s.needs(map[string]string{"curl": "curl", "bash": "bash"})
	s.ports("PROXY", "STABLE", "CANARY")
	s.run(3 * time.Minute)
	s.hides("sk-stable-0123456789")
}
