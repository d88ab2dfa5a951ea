//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/state"
)

const scenesConfig = `
canary:
  target_service: monolith
  steps:
    - { pct: 0.20, min_hold_min: 60 }
    - { pct: 1.00, min_hold_min: 60 }
  share: { check: off }
scenes:
  summaries: { steps: [{ pct: 0.05, min_hold_min: 60 }, { pct: 1.00, min_hold_min: 60 }] }
  answers: {}
source: { windows: { path: windows.jsonl, span_min: 0.001, settle_min: 0 } }
target: { file: { path: weights.json } }
`

const scenesWeights = `{"scenes":{
"summaries":{"versions":{"stable":{"weight":1},"canary":{"weight":0}}},
"answers":{"versions":{"stable":{"weight":1},"canary":{"weight":0}}}}}
`

// weights are the canary's in both scenes.
func (s *scene) weights() (summaries, answers float64) {
	s.t.Helper()
	var doc struct {
		Scenes map[string]struct {
			Versions map[string]struct{ Weight float64 }
		}
	}
	if err := json.Unmarshal([]byte(s.read("weights.json")), &doc); err != nil {
		s.t.Fatal(err)
	}
	return doc.Scenes["summaries"].Versions["canary"].Weight, doc.Scenes["answers"].Versions["canary"].Weight
}

// serveScenes writes windows of both scenes from now on: some violations in the
// canary's summaries, none in its answers.
func (s *scene) serveScenes(windows, violations int) {
	s.t.Helper()
	f, err := os.OpenFile(s.path("windows.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	t := time.Now().Add(2 * liveSpan).Truncate(liveSpan)
	for range windows {
		for _, x := range []struct {
			scene      string
			violations int
		}{{"summaries", violations}, {"answers", 0}} {
			fmt.Fprintf(f, `{"t":%q,"arm":"canary","scene":%q,"total":50,"judged":50,"solved":50,"violations":%d,"transfers":0}`+"\n", t.Format(time.RFC3339Nano), x.scene, x.violations)
		}
		t = t.Add(liveSpan)
	}
	if err := f.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// TestARunOfScenesIsTakenUpWhereItWasKilled: each scene goes on from its own
// journal, and what one has come to is nothing to the other.
func TestARunOfScenesIsTakenUpWhereItWasKilled(t *testing.T) {
	s := newScene(t, scenesConfig)
	s.put("weights.json", scenesWeights)
	kill := func(p *started) {
		t.Helper()
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-p.done
	}
	p := s.start("run")
	eventually(t, "both scenes started", func() bool { a, b := s.weights(); return a == 0.05 && b == 0.2 })
	if again := s.do("run"); again.code != 8 {
		t.Errorf("a second run beside it: %s", again)
	}
	kill(p)
	p = s.start("run")
	eventually(t, "both were taken up", func() bool { return strings.Count(p.said(), "held 0 seconds of 1 hour") == 2 })
	s.serveScenes(3, 3)
	eventually(t, "the summaries were taken back", func() bool { a, _ := s.weights(); return a == 0 })
	kill(p)
	if a, b := s.weights(); a != 0 || b != 0.2 {
		t.Fatalf("summaries at %g, answers at %g", a, b)
	}
	p = s.start("run")
	eventually(t, "the answers go on", func() bool { return strings.Contains(p.said(), "answers    hold") })
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if end := p.wait(t); end.code != 143 {
		t.Errorf("one signal ends all scenes: %s", end)
	}
	s.want(0, "history", "verify")
	for name, trips := range map[string]int64{"summaries": 1, "answers": 0} {
		r, err := driver.Load(t.Context(), state.At(s.path(".canaryctl/monolith/scenes"), name), "monolith/"+name)
		if err != nil {
			t.Fatal(err)
		}
		if r.Counts.Rollbacks != trips || r.Service != "monolith/"+name {
			t.Errorf("%s: %d rollbacks of %s, want %d", name, r.Counts.Rollbacks, r.Service, trips)
		}
	}
	s.want(0, "rollback", "--reason", "all of it")
	if a, b := s.weights(); a != 0 || b != 0 {
		t.Errorf("summaries at %g, answers at %g", a, b)
	}
}
