//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/servertest"
)

// together runs commands at the same time.
func (s *scene) together(commands ...[]string) []answer {
	s.t.Helper()
	out := make([]answer, len(commands))
	var group sync.WaitGroup
	for i, args := range commands {
		cmd := s.command(nil, args...)
		group.Go(func() { out[i] = ended(s.t, cmd) })
	}
	group.Wait()
	return out
}

// wantIntents checks what was decided, and that each was written once.
func (s *scene) wantIntents(want ...string) {
	s.t.Helper()
	if got := s.intents(); !slices.Equal(got, want) {
		s.t.Errorf("decided %q, want %q\n%s", got, want, s.do("history", "--all").out)
	}
	writes := 0
	for _, e := range s.entries() {
		if e.Kind == journal.Write {
			writes++
		}
	}
	if writes != len(want) {
		s.t.Errorf("%d writes, want %d", writes, len(want))
	}
	s.verify()
}

func TestManyPromotesAtOnceAreOneStep(t *testing.T) {
	for _, n := range []int{2, 8} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			s := newScene(t, liveConfig)
			wants := []string{"start to 1 %", "advance to 10 %", "advance to 100 %"}
			for i := range wants {
				answers := s.together(slices.Repeat([][]string{{"promote"}}, n)...)
				stepped := 0
				for _, a := range answers {
					switch a.code {
					case 0:
						stepped++
					case 3, 8: // it held, or somebody else was faster
					default:
						t.Errorf("one of %d promotes: %s", n, a)
					}
				}
				if stepped != 1 {
					t.Errorf("%d of %d took the step", stepped, n)
				}
				s.wantIntents(wants[:i+1]...)
				s.serve(traffic{windows: 4})
			}
			s.wantWeight(1)
		})
	}
}

func TestPromoteAndApproveBesideARun(t *testing.T) {
	s := newScene(t, strings.Replace(liveConfig, "{ pct: 0.10, min_hold_min: 0.002 }", "{ pct: 0.10, min_hold_min: 0.002, gate: [time, metric, approval] }", 1))
	run := s.start("run", "-o", "json")
	eventually(t, "started", func() bool { return s.readBack(0.01) })
	s.do("pause") // another holds the lock in between; it is not the one that runs
	s.want(0, "resume")
	if a := s.want(8, "run"); !strings.Contains(a.err, "another canaryctl run drives this release: ") || !strings.Contains(a.err, fmt.Sprintf(", process %d, since ", run.cmd.Process.Pid)) {
		t.Errorf("a second run does not name the first, process %d: %s", run.cmd.Process.Pid, a)
	}
	s.append(traffic{windows: 6})
	for end := time.Now().Add(10 * time.Second); !s.readBack(0.1) && time.Now().Before(end); {
		if a := s.do("promote"); a.code != 0 && a.code != 3 && a.code != 4 && a.code != 8 {
			t.Fatalf("promote beside run: %s", a)
		}
	}
	s.append(traffic{windows: 6})
	eventually(t, "awaiting", func() bool { return strings.Contains(run.said(), "await_approval") })
	answers := s.together([]string{"approve", "--step", "2", "--reason", "read"}, []string{"approve", "--step", "2", "--reason", "me too"})
	if codes := []int{answers[0].code, answers[1].code}; !slices.Contains(codes, 0) || codes[0]+codes[1] != 0 && codes[0]+codes[1] != 8 {
		t.Errorf("two approvals: %v", answers)
	}
	eventually(t, "at 100 %", func() bool { return s.readBack(1) })
	s.append(traffic{windows: 6})
	if a := run.wait(t); a.code != 0 {
		t.Errorf("run: %s", a)
	}
	s.wantIntents("start to 1 %", "advance to 10 %", "advance to 100 %")
}

func TestApproveTakesNoStepItself(t *testing.T) {
	s := newScene(t, liveConfig)
	if a := s.want(8, "approve"); !strings.Contains(a.err, "does not wait for an approval") {
		t.Error(a)
	}
	s.wantWeight(0)
	s.want(0, "promote")
	s.serve(traffic{windows: 4})
	s.want(8, "approve")
	s.wantWeight(0.01)
}

func TestARollbackTakesTheReleaseFromARunAndFromAWaitingPromote(t *testing.T) {
	for _, args := range [][]string{{"run"}, {"promote", "--wait"}} {
		t.Run(args[0], func(t *testing.T) {
			s := newScene(t, liveConfig)
			s.want(0, "promote")
			waiting := s.start(args...)
			eventually(t, "at it", func() bool { return len(s.entries()) > 6 })
			s.want(0, "rollback", "--reason", "customers")
			s.wantWeight(0)
			if a := waiting.wait(t); a.code != 5 {
				t.Errorf("%s: %s", args[0], a)
			}
			s.wantIntents("start to 1 %", "rollback by a person")
		})
	}
}

// TestAStoppedWriterFindsTheReleaseTakenOver stops a promote while the target's
// lock keeps it from writing, rolls back, and lets it go on.
func TestAStoppedWriterFindsTheReleaseTakenOver(t *testing.T) {
	t.Parallel()
	s := newScene(t, liveConfig)
	s.climb(2)
	s.serve(traffic{windows: 4})
	lock, err := os.OpenFile(s.path("weights.json.lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close() // gives it back
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	stale := s.start("promote")
	eventually(t, "writing", func() bool { return s.release().Ladder.Pending.Move == release.Advance })
	signalTo(t, stale, syscall.SIGSTOP)
	eventually(t, "stopped", func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", stale.cmd.Process.Pid))
		return err != nil || bytes.Contains(b, []byte(") T "))
	})
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	s.want(0, "rollback", "--reason", "customers")
	s.wantWeight(0)
	lines := len(s.entries())
	signalTo(t, stale, syscall.SIGCONT)
	a := stale.wait(t)
	if a.code != 8 || !strings.Contains(a.err, "taken over by rollback") {
		t.Errorf("the stale promote: %s", a)
	}
	s.wantWeight(0)
	if got := len(s.entries()); got != lines {
		t.Errorf("the stale promote wrote %d lines", got-lines)
	}
	s.verify()
	if r := s.release(); r.Ladder.Stage != ladder.RolledBack {
		t.Errorf("the release is %s", r.Ladder.Stage)
	}
}

func signalTo(t *testing.T, p *started, sig syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// TestALineThatIsLateGoesNowhere holds a promote in the middle of the write of
// a line for longer than a rollback waits.
func TestALineThatIsLateGoesNowhere(t *testing.T) {
	strace := servertest.Program(t, "strace", "strace")
	t.Parallel()
	s := newScene(t, liveConfig)
	s.env = []string{oneThread + "=1"}
	s.climb(2)
	stale := s.startUnder([]string{strace, "-f", "-qq", "-o", os.DevNull, "-e", "trace=pwrite64", "-e", "inject=pwrite64:delay_enter=20000000:when=1"}, "promote")
	token := s.place().Holder().Token
	eventually(t, "at it", func() bool { return s.place().Holder().Token > token })
	<-time.After(200 * time.Millisecond) // from the token to the line there is nothing to be seen
	s.want(0, "rollback", "--reason", "customers")
	s.wantWeight(0)
	before := s.read(stateFolder + "journal.jsonl")
	if a := stale.wait(t); a.code != 8 {
		t.Errorf("the stale promote: %s", a)
	}
	if s.read(stateFolder+"journal.jsonl") != before {
		t.Error("the late line is in the journal")
	}
	s.verify()
	s.want(5, "promote")
}

// TestAnExecTargetThatIsWritingWhenARollbackComes lets a program that sets a
// weight sleep, and the rollback take the release over meanwhile: whatever the
// program then does, 0 is the last word.
func TestAnExecTargetThatIsWritingWhenARollbackComes(t *testing.T) {
	s := newScene(t, execConfig)
	s.put("write.sh", writeScript)
	s.put("read.awk", readScript)
	s.put("calls.log", "")
	s.climb(1)
	s.serve(traffic{windows: 4})
	s.put("slow", "1")
	late := s.start("promote")
	eventually(t, "writing", func() bool { return strings.Contains(s.read("calls.log"), "advance begins") })
	s.want(0, "rollback")
	s.wantWeight(0)
	if a := late.wait(t); a.code != 8 {
		t.Errorf("the promote that was overtaken: %s", a)
	}
	s.wantWeight(0)
	s.verify()
	s.want(5, "promote")
}

// execConfig writes weights by a program that takes a second where the file
// `slow` says so.
var execConfig = strings.Replace(liveConfig, "target: { file: { path: weights.json } }",
	"target: { exec: { unit: percent, read: [awk, -f, read.awk, weights.json], write: [sh, write.sh] } }", 1)

const readScript = `{ sub(/.*"canary":{"weight":/, ""); print 100 * $0 }` + "\n"

const writeScript = `echo "$CANARYCTL_MOVE begins" >> calls.log
if [ "$CANARYCTL_MOVE" != roll_back ] && [ -e slow ]; then sleep 1; fi
awk -v p="$CANARYCTL_WEIGHT" 'BEGIN { printf "{\"versions\":{\"stable\":{\"weight\":%.2f},\"canary\":{\"weight\":%.2f}}}\n", 1 - p/100, p/100 }' > weights.new
mv weights.new weights.json
echo "$CANARYCTL_MOVE ends" >> calls.log
`

// newToken is higher than any that is given out in this century.
const newToken = 4_000_000_000_000_000

// TestAStaleTokenIsRefused gives two targets a write under a token that is older
// than one they have seen, by the real command.
func TestAStaleTokenIsRefused(t *testing.T) {
	t.Run("file", func(t *testing.T) {
		s := newScene(t, liveConfig)
		s.want(0, "promote")
		s.put("weights.json.lock", fmt.Sprintf("%020d\n", newToken))
		s.serve(traffic{windows: 4})
		if a := s.want(8, "promote"); !strings.Contains(a.out+a.err, "is older than "+strconv.Itoa(newToken)) {
			t.Error(a)
		}
		s.wantWeight(0.01)
		s.verify()
	})
	t.Run("serve", func(t *testing.T) {
		served := startServe(t, nil, "--dir", t.TempDir())
		if code, _, body := served.do(t, "PUT", "/v1/services/order-service", liveWeights, "If-None-Match: *"); code != 201 {
			t.Fatalf("PUT: %d %s", code, body)
		}
		s := newScene(t, strings.Replace(liveConfig, "target: { file: { path: weights.json } }", "target: { config_api: { url: "+served.url+"/v1/services/order-service } }", 1))
		s.want(0, "promote")
		code, header, body := served.do(t, "GET", "/v1/services/order-service", "")
		if code != 200 || !strings.Contains(body, "0.01") {
			t.Fatalf("after the start: %d %s", code, body)
		}
		if code, _, body := served.do(t, "PUT", "/v1/services/order-service", body, "If-Match: "+header.Get("ETag"), "Canaryctl-Token: "+strconv.Itoa(newToken)); code != 200 && code != 204 {
			t.Fatalf("PUT: %d %s", code, body)
		}
		s.put("weights.json", strings.TrimSpace(body)) // where the traffic's share is taken from
		s.serve(traffic{windows: 4})
		if a := s.want(8, "promote"); !strings.Contains(a.out+a.err, strconv.Itoa(newToken)) {
			t.Error(a)
		}
		if _, _, body := served.do(t, "GET", "/v1/services/order-service", ""); !strings.Contains(body, "0.01") {
			t.Errorf("the stale write was taken: %s", body)
		}
		s.verify()
	})
}
