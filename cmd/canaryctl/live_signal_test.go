//go:build unix

package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/canaryctl/canaryctl/internal/ladder"
)

// TestASignalInAnyStateLeavesAReleaseThatGoesOn: the exit code says which
// signal, the weight is as the journal says, and the next call takes it up.
func TestASignalInAnyStateLeavesAReleaseThatGoesOn(t *testing.T) {
	for _, sig := range []struct {
		signal syscall.Signal
		exit   int
	}{{syscall.SIGTERM, 143}, {syscall.SIGINT, 130}} {
		for _, test := range []struct {
			name   string
			config string
			args   []string
			// at brings it about, and waits until it is so.
			at     func(s *scene) *started
			weight float64
		}{
			{name: "run, between two ticks", at: func(s *scene) *started {
				p := s.start("run")
				eventually(t, "waiting", func() bool { return strings.Contains(p.said(), "held 0 seconds") })
				return p
			}, weight: 0.01},
			{name: "promote --wait, between two looks", at: func(s *scene) *started {
				s.want(0, "promote")
				p := s.start("promote", "--wait")
				eventually(t, "waiting", func() bool { return len(s.entries()) > 5 })
				return p
			}, weight: 0.01},
			{name: "while the target is written", config: execConfig, at: func(s *scene) *started {
				s.climb(1)
				s.serve(traffic{windows: 4})
				s.put("slow", "1")
				p := s.start("run")
				eventually(t, "writing", func() bool { return strings.Contains(s.read("calls.log"), "advance begins") })
				return p
			}, weight: 0.1}, // a write that was begun is finished and read back
			{name: "while the source hangs", config: hangConfig, at: func(s *scene) *started {
				asked, over := make(chan struct{}, 16), make(chan struct{})
				server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
					asked <- struct{}{}
					<-over
				}))
				s.t.Cleanup(func() { close(over); server.Close() })
				s.env = []string{"HANGING_URL=" + server.URL}
				s.put("weights.json", `{"versions":{"stable":{"weight":0.99},"canary":{"weight":0.01}}}`)
				p := s.start("run")
				<-asked
				return p
			}, weight: 0.01},
		} {
			t.Run(sig.signal.String()+"/"+test.name, func(t *testing.T) {
				config := test.config
				if config == "" {
					config = liveConfig
				}
				s := newScene(t, config)
				s.put("write.sh", writeScript)
				s.put("read.awk", readScript)
				s.put("calls.log", "")
				p := test.at(s)
				signalTo(t, p, sig.signal)
				a := p.wait(t)
				if a.code != sig.exit {
					t.Errorf("want exit %d: %s", sig.exit, a)
				}
				s.wantWeight(test.weight)
				r := s.release()
				if hangs := config == hangConfig; !hangs && (r.Ladder.Stage != ladder.Climbing || r.Ladder.Weight.Share() != test.weight) {
					t.Errorf("the release is %s at %s", r.Ladder.Stage, r.Ladder.Weight)
				}
				s.verify()
				if left, err := filepath.Glob(s.path(stateFolder + "*.new")); err != nil || len(left) > 0 {
					t.Errorf("left: %v", left)
				}
				if config != hangConfig {
					s.want(3, "promote")
				}
			})
		}
	}
}

// hangConfig asks a server that does not answer.
var hangConfig = strings.Replace(liveConfig, "windows: { path: windows.jsonl, span_min: 0.001, stale_min: 0 }",
	"prometheus: { url_env: HANGING_URL, queries: { canary: { total: a }, stable: { total: b } }, timeout_s: 300 }", 1)
