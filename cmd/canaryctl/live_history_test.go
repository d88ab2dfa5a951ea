//go:build unix

package main

import (
	"context"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/release"
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

// TestAPromoteCostsTheSameAfterADayAndAfterAnHour measures the real command.
func TestAPromoteCostsTheSameAfterADayAndAfterAnHour(t *testing.T) {
	cost := func(minutes int) (cpu time.Duration, peak int64) {
		s := newScene(t, pastConfig)
		if dir, err := os.MkdirTemp("/dev/shm", "canaryctl-history"); err == nil { // a line is a sync
			t.Cleanup(func() { _ = os.RemoveAll(dir) }) // memory, given back
			if err := os.CopyFS(dir, os.DirFS(s.dir)); err != nil {
				t.Fatal(err)
			}
			s.dir = dir
		}
		s.live(minutes)
		cpu = time.Hour
		for range 5 {
			cmd := s.command(nil, "promote")
			if a := ended(t, cmd); a.code != 3 {
				t.Fatal(a)
			}
			usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
			if !ok {
				t.Skip("SKIPPED: nobody tells what a process used here")
			}
			cpu = min(cpu, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
			peak = max(peak, int64(usage.Maxrss))
		}
		if runtime.GOOS != "darwin" {
			peak *= 1024 // it counts KiB
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
