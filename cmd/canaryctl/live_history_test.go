//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/servertest"
	windows "github.com/canaryctl/canaryctl/internal/source"
	"github.com/canaryctl/canaryctl/internal/state"
	"github.com/canaryctl/canaryctl/internal/target"
)

// pastConfig holds its first step for longer than any history here.
var pastConfig = strings.NewReplacer("min_hold_min: 0.002 }\n    - { pct: 0.10", "min_hold_min: 100000 }\n    - { pct: 0.10", "span_min: 0.001", "span_min: 1").Replace(liveConfig)

// past is a source of quiet minutes.
type past struct{}

func (past) Read(_ context.Context, from, now time.Time) (windows.Batch, error) {
	until := now.Truncate(time.Minute)
	b := windows.Batch{Until: until}
	for t := from.Add(time.Minute - 1).Truncate(time.Minute); t.Before(until); t = t.Add(time.Minute) {
		b.Windows = append(b.Windows, release.Window{T: t, Span: time.Minute, Arm: release.Canary, Total: 6, Judged: 6, Solved: 6, Known: release.HasSolved | release.HasViolations})
		b.Newest = until
	}
	return b, nil
}

func (past) Span() time.Duration   { return time.Minute }
func (past) Settle() time.Duration { return 0 }
func (past) String() string        { return "the past" }

// live lets a release be ticked for so many minutes, up to now.
func (s *scene) live(minutes int) {
	s.t.Helper()
	cfg, findings := config.Parse("canary.yaml", []byte(s.read("canary.yaml")))
	if cfg == nil {
		s.t.Fatal(findings)
	}
	dir, err := state.Open(s.path(".canaryctl"), cfg.TargetService)
	if err != nil {
		s.t.Fatal(err)
	}
	to, err := target.New(cfg.Target, target.Options{Service: cfg.TargetService, Ring: cfg.HashRingSlots, Getenv: os.Getenv, Dir: s.dir})
	if err != nil {
		s.t.Fatal(err)
	}
	now := time.Now().Add(-time.Duration(minutes) * time.Minute)
	d := driver.New(driver.Options{
		Config: cfg, Target: to, Source: past{}, Dir: dir, Now: func() time.Time { return now }, Wait: func(context.Context, time.Duration) error { return nil },
		Who: state.Holder{PID: 1, Who: "ops@host", Command: "run"},
	})
	for range minutes {
		if _, err := d.Promote(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		now = now.Add(time.Minute)
	}
}

// used is the time of the processor and the bytes of memory that a command that
// holds takes. A program in between starts it: the system counts for a process
// the memory of the one that it was forked from, and this one is large. Its own
// time is next to none.
func (s *scene) used(args ...string) (cpu time.Duration, peak int64) {
	s.t.Helper()
	program := servertest.Program(s.t, "time", "time")
	cmd := s.command([]string{program, "-q", "-f", "%M", "-o", "used"}, args...)
	if a := ended(s.t, cmd); a.code != 3 {
		s.t.Fatal(a)
	}
	if _, err := fmt.Sscan(s.read("used"), &peak); err != nil {
		s.t.Skipf("SKIPPED: %s is not GNU time: %v", program, err)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), peak << 10 // it counts KiB
}

// TestAPromoteCostsTheSameAfterADayAndAfterAnHour measures the real command.
func TestAPromoteCostsTheSameAfterADayAndAfterAnHour(t *testing.T) {
	cost := func(minutes int) (cpu time.Duration, peak int64) {
		s := newScene(t, pastConfig)
		s.live(minutes)
		cpu = time.Hour
		for range 5 {
			used, most := s.used("promote")
			cpu, peak = min(cpu, used), max(peak, most)
		}
		return cpu, peak
	}
	hourCPU, hourPeak := cost(60)
	dayCPU, dayPeak := cost(1440)
	t.Logf("a promote takes %s and %d MiB after an hour, %s and %d MiB after a day", hourCPU, hourPeak>>20, dayCPU, dayPeak>>20)
	if dayCPU > hourCPU+30*time.Millisecond || dayCPU > 200*time.Millisecond { // 50 ms on an idle machine
		t.Errorf("a promote takes %s after a day, %s after an hour", dayCPU, hourCPU)
	}
	if dayPeak > 64<<20 || dayPeak > hourPeak+16<<20 {
		t.Errorf("a promote needs %d MiB after a day, %d MiB after an hour", dayPeak>>20, hourPeak>>20)
	}
}
