//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/servertest"
)

// disk is a program that runs another one with a state directory on a disk of
// its own: full, or read-only. It skips where nobody may mount.
func disk(t *testing.T, s *scene, kind string) []string {
	t.Helper()
	unshare := servertest.Program(t, "unshare", "util-linux")
	before := []string{unshare, "--map-root-user", "--mount"}
	if os.Getuid() == 0 {
		before = []string{unshare, "--mount"}
	}
	script := map[string]string{
		"full": `set -e; cp -a .canaryctl saved; mount -t tmpfs -o size=96k none .canaryctl; cp -a saved/. .canaryctl/
dd if=/dev/zero of=.canaryctl/filler bs=4k 2>/dev/null || true
set +e; "$@"; code=$?; rm .canaryctl/filler; rm -rf saved; mkdir saved; cp -a .canaryctl/. saved/; exit $code`,
		"read-only": `set -e; mount --bind .canaryctl .canaryctl; mount -o remount,ro,bind .canaryctl; set +e; "$@"`,
	}[kind]
	before = append(before, "sh", "-c", script, "sh")
	if out, err := exec.Command(before[0], append(before[1:len(before)-4:len(before)-4], "true")...).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: nobody may mount here: %v %s", err, out)
	}
	return before
}

// TestADiskThatTakesNoMore: no step forward, and a rollback all the same, which
// is told.
func TestADiskThatTakesNoMore(t *testing.T) {
	for _, kind := range []string{"full", "read-only"} {
		t.Run(kind, func(t *testing.T) {
			s := newScene(t, strings.Replace(liveConfig, "cooldown_min: 0.001", "cooldown_min: 1", 1))
			s.climb(2)
			good, bad := s.fork(t), s.fork(t)

			good.serve(traffic{windows: 4})
			a := good.under(disk(t, good, kind), "promote")
			if a.code != 1 || !strings.Contains(a.err, map[string]string{"full": "no space left on device", "read-only": "read-only file system"}[kind]) {
				t.Errorf("a step that could be taken: %s", a)
			}
			good.wantWeight(0.1)
			good.verify()
			good.want(0, "promote")
			good.wantWeight(1)

			bad.serve(traffic{windows: 2, violations: 5})
			a = bad.under(disk(t, bad, kind), "promote")
			if a.code != 6 || !strings.Contains(a.out+a.err, "device") && !strings.Contains(a.out+a.err, "read-only") {
				t.Errorf("a rollback by the breaker: %s", a)
			}
			bad.wantWeight(0)
			bad.verify()
			bad.want(5, "promote")
			bad.wantWeight(0)
			bad.verify()

			a = s.under(disk(t, s, kind), "rollback", "--reason", "customers")
			if a.code != 6 {
				t.Errorf("a rollback by a person: %s", a)
			}
			s.wantWeight(0)
			s.want(0, "rollback", "--reason", "customers")
			s.want(5, "promote")
			s.verify()
		})
	}
}

func TestASavedStateThatIsGarbageOrGoneIsFormedFromTheJournal(t *testing.T) {
	s := newScene(t, liveConfig)
	s.climb(2)
	s.serve(traffic{windows: 1})
	s.want(3, "promote")
	want := s.release().Ladder
	for name, damage := range map[string]func(path string) error{
		"gone":      os.Remove,
		"garbage":   func(path string) error { return os.WriteFile(path, []byte("\x00\x00{neither"), 0o644) },
		"empty":     func(path string) error { return os.WriteFile(path, nil, 0o644) },
		"cut short": func(path string) error { return os.Truncate(path, 100) },
		"another shape": func(path string) error {
			return os.WriteFile(path, []byte(`{"schema":1,"ladder":{"step":"two"}}`), 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := s.fork(t)
			if err := damage(f.path(stateFolder + "state.json")); err != nil {
				t.Fatal(err)
			}
			if got := f.release().Ladder; got.Step != want.Step || got.Attempt != want.Attempt || !got.At.Equal(want.At) || got.Gate != want.Gate {
				t.Errorf("formed anew: %+v, want %+v", got, want)
			}
			f.serve(traffic{windows: 4})
			f.want(0, "promote")
			f.wantWeight(1)
			f.verify()
		})
	}
}

func TestADamagedJournalStopsEverythingButARollback(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(s *scene)
		says   string
	}{
		"a byte of the last line": {func(s *scene) {
			j := s.read(stateFolder + "journal.jsonl")
			s.put(stateFolder+"journal.jsonl", j[:len(j)-200]+"#"+j[len(j)-199:])
		}, "journal.jsonl:7: "},
		"cut by a line": {func(s *scene) {
			j := strings.SplitAfter(s.read(stateFolder+"journal.jsonl"), "\n")
			s.put(stateFolder+"journal.jsonl", strings.Join(j[:len(j)-2], ""))
		}, "ends before line 7"},
		"gone": {func(s *scene) {
			if err := os.Remove(s.path(stateFolder + "journal.jsonl")); err != nil {
				s.t.Fatal(err)
			}
		}, "ends before line 7"},
		"a line in the middle, and no state": {func(s *scene) {
			j := s.read(stateFolder + "journal.jsonl")
			s.put(stateFolder+"journal.jsonl", strings.Replace(j, `"attempt":1`, `"attempt":2`, 1))
			if err := os.Remove(s.path(stateFolder + "state.json")); err != nil {
				s.t.Fatal(err)
			}
		}, "journal.jsonl:2: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, liveConfig)
			s.climb(2)
			s.serve(traffic{windows: 4})
			test.damage(s)
			for _, command := range []string{"promote", "run", "pause", "status"} {
				a := s.want(1, command)
				if !strings.Contains(a.err, test.says) || !strings.Contains(a.err, "hint: canaryctl history verify") {
					t.Errorf("%s: %s", command, a)
				}
			}
			if a := s.want(1, "history", "verify"); !strings.Contains(a.err, test.says) {
				t.Errorf("verify: %s", a)
			}
			s.wantWeight(0.1)
			a := s.want(6, "rollback", "--reason", "nobody can say where it stands")
			if !strings.Contains(a.out+a.err, test.says) {
				t.Errorf("rollback: %s", a)
			}
			s.wantWeight(0)
			kept, err := filepath.Glob(s.path(stateFolder + "*.damaged-*"))
			if err != nil || len(kept) == 0 {
				t.Errorf("nothing was kept: %v", err)
			}
			s.verify()
			s.want(5, "promote") // until a person clears it
			s.want(0, "rollback")
			s.want(0, "resume", "--clear-lock", "--reason", "seen")
			s.want(0, "promote")
			s.wantWeight(0.01)
		})
	}
}

// TestARunWhoseReaderGoesAwayGoesOn: a canary is out, and the breaker with it.
func TestARunWhoseReaderGoesAwayGoesOn(t *testing.T) {
	for name, line := range map[string]string{
		"head":         `exec "$0" run | head -n 1`,
		"head of JSON": `exec "$0" run -o json | head -n 1`,
		"full":         `exec "$0" run > /dev/full`,
		"full, JSON":   `exec "$0" run -o json > /dev/full`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat("/dev/full"); err != nil && strings.Contains(line, "full") {
				t.Skip("SKIPPED: there is no /dev/full")
			}
			s := newScene(t, strings.Replace(liveConfig, "cooldown_min: 0.001", "cooldown_min: 1", 1))
			p := &started{cmd: exec.CommandContext(t.Context(), "sh", "-c", line, canaryctl(t)), done: make(chan struct{})}
			p.cmd.Dir = s.dir
			p.cmd.Stdout, p.cmd.Stderr = tee{p, &p.out}, tee{p, &p.err}
			if err := p.cmd.Start(); err != nil {
				t.Fatal(err)
			}
			go func() { defer close(p.done); _ = p.cmd.Wait() }() // its code is the shell's
			eventually(t, "started", func() bool { return s.readBack(0.01) })
			s.append(traffic{windows: 5})
			eventually(t, "a step further", func() bool { return s.readBack(0.1) })
			s.append(traffic{windows: 3, violations: 5})
			eventually(t, "rolled back", func() bool { return s.readBack(0) })
			s.want(0, "rollback")
			p.wait(t)
			s.verify()
		})
	}
}

func TestAOnceGivenCommandTellsThatItsOutputIsLost(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("SKIPPED: there is no /dev/full")
	}
	s := newScene(t, liveConfig)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `exec "$0" promote > /dev/full`, canaryctl(t))
	cmd.Dir = s.dir
	if a := ended(t, cmd); a.code != 1 || !strings.Contains(a.err, "no space left") {
		t.Error(a)
	}
	s.wantWeight(0.01) // done, and in the journal
	s.verify()
}

func TestAConfigurationThatIsEditedUnderWay(t *testing.T) {
	s := newScene(t, liveConfig)
	s.climb(2)
	tripped := s.fork(t)
	s.serve(traffic{windows: 4})

	changed := s.fork(t)
	changed.edit("min_samples_slow: 50", "min_samples_slow: 60")
	if a := changed.want(3, "promote"); !strings.Contains(a.out, "canaryctl resume --accept-config") {
		t.Errorf("a changed threshold: %s", a)
	}
	changed.wantWeight(0.1)
	changed.want(0, "resume", "--accept-config", "--reason", "agreed")
	changed.want(8, "resume", "--accept-config", "--reason", "again")
	changed.want(0, "promote")
	changed.wantWeight(1)
	changed.verify()

	tripped.edit("min_samples_slow: 50", "min_samples_slow: 60")
	tripped.edit("cooldown_min: 0.001", "cooldown_min: 1")
	tripped.serve(traffic{windows: 2, violations: 5})
	tripped.want(5, "promote") // a change that nobody has accepted does not blind the breaker
	tripped.wantWeight(0)
	tripped.verify()

	s.edit(`prompt_version: "42"`, `prompt_version: "43"`)
	if a := s.want(8, "promote"); !strings.Contains(a.out, "promote --restart") {
		t.Errorf("another candidate: %s", a)
	}
	s.wantWeight(0.1)
	s.want(0, "promote", "--restart", "--reason", "43 replaces 42")
	s.wantWeight(0.01)
	r := s.release()
	if r.Ladder.Stage != ladder.Climbing || r.Ladder.Step != 0 {
		t.Errorf("%s at step %d", r.Ladder.Stage, r.Ladder.Step+1)
	}
	s.wantIntents("start to 1 %", "advance to 10 %", "rollback by a person", "start to 1 %")
}
