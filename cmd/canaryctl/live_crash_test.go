//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/servertest"
)

// boundaries are the calls before which a kill may fall: everything that leaves
// something behind. strace counts each of them for itself. A kill beside a sync
// leaves the same as one beside the write that it belongs to: those are done
// where CANARYCTL_CRASH_ALL is set.
func boundaries() []string {
	calls := []string{"pwrite64", "write", "ftruncate", "rename,renameat,renameat2"}
	if os.Getenv("CANARYCTL_CRASH_ALL") != "" {
		calls = append(calls, "fsync", "unlink,unlinkat")
	}
	return calls
}

// crashConfig asks for a person at the second step, has a hook, and a cooldown
// that outlasts the way from a kill to the next call.
var crashConfig = strings.NewReplacer(
	"{ pct: 0.10, min_hold_min: 0.002 }", "{ pct: 0.10, min_hold_min: 0.002, gate: [time, metric, approval] }",
	"cooldown_min: 0.001", "cooldown_min: 0.05",
).Replace(liveConfig) +
	`hooks: { on_rollback: [ { exec: { name: purge, command: [sh, -c, "echo ran >> hook.log"] } } ] }` + "\n"

// crashStep is a command of the script and what the world does before it.
type crashStep struct {
	name  string
	args  []string
	ready func(s *scene)
	// spoil makes the source unreadable after the kill: a rollback that was
	// begun needs none.
	spoil bool
}

var crashScript = []crashStep{
	{name: "start", args: []string{"promote"}},
	{name: "advance", args: []string{"promote"}, ready: func(s *scene) { s.serve(traffic{windows: 4}) }},
	{name: "trip", args: []string{"promote"}, spoil: true, ready: func(s *scene) { s.serve(traffic{windows: 2, violations: 5}) }},
	{name: "probe", args: []string{"promote"}, ready: func(s *scene) { s.until(s.release().Ladder.At.Add(3 * time.Second)) }},
	{name: "recover", args: []string{"promote"}, ready: func(s *scene) { s.serve(traffic{windows: 4}) }},
	{name: "pause", args: []string{"pause", "--reason", "lunch"}},
	{name: "resume", args: []string{"resume"}},
	{name: "climb again", args: []string{"promote"}, ready: func(s *scene) { s.serve(traffic{windows: 5}) }},
	{name: "await", args: []string{"promote", "--allow-hold"}, ready: func(s *scene) { s.serve(traffic{windows: 4}) }},
	{name: "approve", args: []string{"approve", "--step", "2"}},
	{name: "last step", args: []string{"promote"}},
	{name: "roll back", args: []string{"rollback", "--reason", "customers"}, spoil: true},
	{name: "clear lock", args: []string{"resume", "--clear-lock", "--reason", "mended"}},
	{name: "start anew", args: []string{"promote"}},
	{name: "climb a third time", args: []string{"promote"}, ready: func(s *scene) { s.serve(traffic{windows: 4}) }},
	{name: "await again", args: []string{"promote"}, ready: func(s *scene) { s.serve(traffic{windows: 4}) }},
	{name: "approve again", args: []string{"approve"}},
	{name: "last step again", args: []string{"promote"}},
	{name: "complete", args: []string{"promote"}, ready: func(s *scene) { s.serve(traffic{windows: 4}) }},
}

// TestKilledAtEveryWriteTheReleaseEndsTheSame kills the real command at the
// N-th write, sync, rename or removal, for every N until it survives, gives it
// once more, and compares with what happens without a kill.
func TestKilledAtEveryWriteTheReleaseEndsTheSame(t *testing.T) {
	t.Parallel()
	strace := servertest.Program(t, "strace", "strace")
	s := newScene(t, crashConfig)
	var points atomic.Int64
	var workers sync.WaitGroup
	slots := make(chan struct{}, 3)
	begin := time.Now()
	for _, step := range crashScript {
		if step.ready != nil {
			step.ready(s)
		}
		before := s.fork(t)
		s.do(step.args...)
		want := standingOf(s)
		workers.Add(1)
		go func() {
			defer workers.Done()
			slots <- struct{}{}
			defer func() { <-slots }()
			for _, call := range boundaries() {
				for n := 1; killedOnce(t, strace, before, &step, kill{call, n}, want); n++ {
					points.Add(1)
				}
			}
		}()
	}
	workers.Wait()
	s.verify()
	s.wantWeight(1)
	if r := s.release(); r.Ladder.Stage != ladder.Completed || r.Ladder.Attempt != 3 {
		t.Errorf("the script ends %s in attempt %d", r.Ladder.Stage, r.Ladder.Attempt)
	}
	t.Logf("killed at %d points of %d commands in %s", points.Load(), len(crashScript), time.Since(begin).Round(time.Millisecond))
	if points.Load() < 150 {
		t.Errorf("%d points, want 150 or more", points.Load())
	}
}

// kill is where a command is killed: before the n-th call of a kind.
type kill struct {
	call string
	n    int
}

func (k kill) String() string { return fmt.Sprintf("%s number %d", k.call, k.n) }

// killedOnce runs a step with a kill and then without; it returns false if it
// survived.
func killedOnce(t *testing.T, strace string, before *scene, step *crashStep, at kill, want string) bool {
	dir, err := os.MkdirTemp(filepath.Dir(before.dir), "kill")
	if err == nil {
		err = os.CopyFS(dir, os.DirFS(before.dir))
	}
	if err != nil {
		t.Error(err)
		return false
	}
	defer os.RemoveAll(dir) // thousands of small files; the test's folder goes in the end
	s := &scene{t: t, dir: dir, env: []string{oneThread + "=1"}}
	killed := s.under([]string{strace, "-f", "-qq", "-o", os.DevNull, "-e", "trace=" + at.call, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", at.call, at.n)}, step.args...)
	begun := isPendingRollback(s)
	if begun && step.spoil {
		s.put("windows.jsonl", strings.Repeat("neither JSON nor windows\n", 50))
	}
	s.env = nil
	again := s.do(step.args...)
	if begun && s.weight() != 0 {
		t.Errorf("%s, killed at %s: an unfinished rollback was not finished first: %s", step.name, at, again)
	}
	if begun && step.spoil { // the evidence of after is another
		s.verify()
		return killed.killed
	}
	if got := standingOf(s); got != want {
		t.Errorf("%s, killed at %s (%v), ends otherwise:\n%s\nthe second time: %s\n%s", step.name, at, killed.killed, cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")), again, s.do("history", "--all").out)
	}
	if strings.Contains(again.String(), "goroutine ") {
		t.Errorf("%s, killed at %s: %s", step.name, at, again)
	}
	left, err := filepath.Glob(s.path(stateFolder + "*"))
	if err != nil || len(left) > 7 {
		t.Errorf("%s, killed at %s, leaves %v", step.name, at, left)
	}
	return killed.killed
}

// isPendingRollback reports whether the journal asks for a rollback that was
// not read back.
func isPendingRollback(s *scene) bool {
	r, err := driver.Load(s.t.Context(), s.place(), "order-service")
	if err != nil {
		s.t.Error(err)
		return false
	}
	return r.Ladder.Pending.Move == release.RollBackMove || r.Ladder.Pending.Move == release.Lock
}

var (
	instant = regexp.MustCompile(`"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z"`)
	lineNo  = regexp.MustCompile(`rollback/[0-9]+`)
)

// standingOf is where a release stands and how it came there, without the times
// and without what differs between one tick and two.
func standingOf(s *scene) string {
	s.verify()
	r := s.release()
	var b strings.Builder
	show := func(name string, v any) {
		text, err := json.Marshal(v)
		if err != nil {
			s.t.Error(err)
		}
		text = instant.ReplaceAll(text, []byte(`"T"`))
		fmt.Fprintf(&b, "%s %s\n", name, lineNo.ReplaceAll(text, []byte("rollback/N")))
	}
	l := r.Ladder
	l.PausedFor, l.Stable.Seen = 0, time.Time{}
	show("weight", s.weight())
	show("ladder", l)
	show("exposure", r.Exposure)
	if rec := r.Record; rec != nil {
		kept := *rec
		kept.Hooks, kept.Final = nil, false // how often a hook was tried, and when the last window came in, may differ
		show("record", kept)
	}
	counts := r.Counts
	delete(counts.Decisions, release.Hold.String())
	delete(counts.Decisions, release.AwaitApproval.String())
	show("counts", counts)
	recorded := map[string]bool{}
	for _, e := range s.entries() {
		switch e.Kind {
		case journal.Decide:
			o := &e.Decided.Outcome
			if o.Write && !o.Again || o.Event != nil || o.Move == release.Complete {
				fmt.Fprintf(&b, "decided %s to %s, step %d, attempt %d, %s\n", o.Move, o.Weight, o.Step, o.Attempt, o.Why)
			}
		case journal.Command:
			fmt.Fprintf(&b, "command %s\n", e.Command.Verb)
		case journal.Record:
			if !recorded[e.Record.Key] { // again when hooks and exposure are final
				fmt.Fprintf(&b, "record by %s\n", e.Record.By)
			}
			recorded[e.Record.Key] = true
		case journal.Hook:
			if e.Hooked.OK {
				fmt.Fprintf(&b, "hook %s\n", e.Hooked.Hook)
			}
		}
	}
	return b.String()
}
