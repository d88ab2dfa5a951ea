//go:build unix

package driver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/canaryctl/canaryctl/internal/config"
	"github.com/canaryctl/canaryctl/internal/driver"
	"github.com/canaryctl/canaryctl/internal/journal"
	"github.com/canaryctl/canaryctl/internal/ladder"
	"github.com/canaryctl/canaryctl/internal/notify"
	"github.com/canaryctl/canaryctl/internal/release"
	"github.com/canaryctl/canaryctl/internal/source"
	"github.com/canaryctl/canaryctl/internal/state"
	"github.com/canaryctl/canaryctl/internal/target"
)

// crashDir names the folder of a story that is told in a child process, crashAt
// the boundary at which the child kills itself (0 is never), crashEnd the minute
// at which it ends, and crashKeep where it keeps the folder as it was at each
// minute.
const (
	crashDir  = "CANARYCTL_TEST_CRASH_DIR"
	crashAt   = "CANARYCTL_TEST_CRASH_AT"
	crashEnd  = "CANARYCTL_TEST_CRASH_END"
	crashKeep = "CANARYCTL_TEST_CRASH_KEEP"
)

// plot is the story that a child tells, one line a minute of a fake clock: it
// is kept in a file, so that the next child goes on where this one was killed.
type plot struct {
	Minute int                 `json:"minute"`
	Weight release.Weight      `json:"weight"`
	Rev    int                 `json:"rev"`
	Served [storyMinutes]int64 `json:"served"` // slots in force when each minute began
	Told   []string            `json:"told"`   // keys
	Purged []string            `json:"purged"` // keys
	Writes []string            `json:"writes"`
}

// teller tells the story, and counts the boundaries.
type teller struct {
	dir    string
	at     int // boundary to die at
	passed int
	end    int
	kept   string
	names  []string // of the boundaries: minute and call
	plot   plot
}

// boundary dies if it is its turn.
func (c *teller) boundary(name string) {
	c.passed++
	c.names = append(c.names, strconv.Itoa(c.plot.Minute)+" "+name)
	if c.passed == c.at {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (c *teller) file() string { return filepath.Join(c.dir, "plot.json") }

// keep is the world's memory, which no kill of canaryctl touches.
func (c *teller) keep() {
	b, err := json.Marshal(&c.plot)
	if err == nil {
		err = os.WriteFile(c.file(), b, 0o644)
	}
	if err != nil {
		panic(err)
	}
}

const storyMinutes = 62

// tell promotes every minute; people give their word at their minutes.
func (c *teller) tell(t *testing.T) {
	w := &world{t: t, text: strings.Replace(ladder3, "{ pct: 0.10, min_hold_min: 10 }", "{ pct: 0.10, min_hold_min: 10, gate: [time, metric, approval] }", 1), dir: c.dir}
	w.target = &fakeTarget{w: w, weight: c.plot.Weight, rev: c.plot.Rev}
	w.source = &fakeSource{w: w, perMin: 600, solved: 0.9}
	drv := func() *driver.Driver {
		cfg, findings := config.Parse("canary.yaml", []byte(w.text))
		if cfg == nil {
			t.Fatalf("configuration: %v", findings)
		}
		dir, err := state.Open(w.dir, cfg.TargetService)
		if err != nil {
			t.Fatal(err)
		}
		return driver.New(driver.Options{
			Config: cfg, Target: &mortalTarget{w.target, c}, Source: &mortalSource{w.source, c}, Dir: dir, Channels: []notify.Channel{mortalChannel{c}}, Hooks: []notify.Hook{mortalHook{c}},
			Now: func() time.Time { return w.now }, Wait: func(ctx context.Context, d time.Duration) error { c.boundary("wait"); return w.wait(ctx, d) },
			Who: state.Holder{PID: 7, Who: "ops@host", Command: "promote"},
		})
	}
	for ; c.plot.Minute < c.end; c.plot.Minute++ {
		m := c.plot.Minute
		c.keep()
		c.snapshot(t)
		w.now = t0.Add(time.Duration(m) * time.Minute)
		c.word(t, drv(), m)
		if _, err := drv().Promote(t.Context()); err != nil {
			t.Fatalf("minute %d: %v", m, err)
		}
	}
	c.keep()
	c.snapshot(t)
}

// snapshot keeps the folder as it is at the beginning of a minute.
func (c *teller) snapshot(t *testing.T) {
	if c.kept == "" {
		return
	}
	if err := os.CopyFS(minuteDir(c.kept, c.plot.Minute), os.DirFS(c.dir)); err != nil {
		t.Fatal(err)
	}
}

func minuteDir(kept string, minute int) string {
	return filepath.Join(kept, "minute-"+strconv.Itoa(minute))
}

// word gives a person's word where its minute has come. What was said before
// the kill is said again, and refused or not, as it may be.
func (c *teller) word(t *testing.T, d *driver.Driver, minute int) {
	var err error
	switch minute {
	case 5:
		_, err = d.Command(t.Context(), ladder.Command{Verb: ladder.DoPause, Reason: "lunch"})
	case 6:
		_, err = d.Command(t.Context(), ladder.Command{Verb: ladder.DoResume})
	case 41, 58:
		_, err = d.Approve(t.Context(), driver.Shown{Step: 2}, "read")
	case 44:
		_, err = d.RollBack(t.Context(), "customers")
	case 46:
		_, err = d.Command(t.Context(), ladder.Command{Verb: ladder.DoClearLock, Reason: "mended"})
	}
	for _, twice := range []error{ladder.ErrPaused, ladder.ErrNotPaused, ladder.ErrNotAwaiting, ladder.ErrNotLocked, driver.ErrNothing} {
		if errors.Is(err, twice) {
			return
		}
	}
	if err != nil {
		t.Fatalf("minute %d: %v", minute, err)
	}
}

type mortalTarget struct {
	*fakeTarget
	c *teller
}

func (m *mortalTarget) Read(ctx context.Context) (target.Reading, error) {
	m.c.boundary("before read")
	r, err := m.fakeTarget.Read(ctx)
	m.c.boundary("after read")
	return r, err
}

func (m *mortalTarget) Write(ctx context.Context, was target.Reading, x target.Change) error {
	m.c.boundary("before write")
	err := m.fakeTarget.Write(ctx, was, x)
	m.c.plot.Weight, m.c.plot.Rev = m.weight, m.rev
	for minute := m.c.plot.Minute; minute < storyMinutes; minute++ {
		m.c.plot.Served[minute] = m.weight.Slots
	}
	m.c.plot.Writes = append(m.c.plot.Writes, x.To.String()+" "+x.Key)
	m.c.keep()
	m.c.boundary("after write")
	return err
}

type mortalSource struct {
	*fakeSource
	c *teller
}

func (m *mortalSource) Read(ctx context.Context, from, now time.Time) (source.Batch, error) {
	m.c.boundary("before source")
	until := now.Truncate(time.Minute)
	b := source.Batch{Until: until, Newest: until}
	for t := from.Add(time.Minute - 1).Truncate(time.Minute); t.Before(until); t = t.Add(time.Minute) {
		minute := int(t.Sub(t0) / time.Minute)
		if minute < 0 {
			continue
		}
		canary, violations := m.perMin*m.c.plot.Served[minute]/100, int64(0)
		if minute == 14 {
			violations = 4
		}
		b.Windows = append(b.Windows, m.window(t, release.Canary, canary, violations), m.window(t, release.Stable, m.perMin-canary, 0))
	}
	m.c.boundary("after source")
	return b, ctx.Err()
}

type mortalChannel struct{ c *teller }

func (m mortalChannel) Send(_ context.Context, x notify.Message) error {
	m.c.boundary("before message")
	m.c.plot.Told = append(m.c.plot.Told, x.Key)
	m.c.keep()
	m.c.boundary("after message")
	return nil
}

func (mortalChannel) Wants(notify.Event) bool { return true }
func (mortalChannel) String() string          { return "mortal (notify[0])" }

type mortalHook struct{ c *teller }

func (m mortalHook) Run(_ context.Context, x notify.Message) error {
	m.c.boundary("before hook")
	m.c.plot.Purged = append(m.c.plot.Purged, x.Key)
	m.c.keep()
	m.c.boundary("after hook")
	return nil
}

func (mortalHook) String() string { return "purge" }
func (mortalHook) Tries() int     { return 3 }

// TestCrashTeller is the child.
func TestCrashTeller(t *testing.T) {
	dir := os.Getenv(crashDir)
	if dir == "" {
		t.Skip("the child of TestKilledBetweenAnyTwoCallsTheReleaseEndsTheSame")
	}
	at, err := strconv.Atoi(os.Getenv(crashAt))
	if err != nil {
		t.Fatal(err)
	}
	end, err := strconv.Atoi(os.Getenv(crashEnd))
	if err != nil {
		t.Fatal(err)
	}
	c := &teller{dir: dir, at: at, end: end, kept: os.Getenv(crashKeep), plot: plot{Weight: weight(0)}}
	if b, err := os.ReadFile(c.file()); err == nil {
		if err := json.Unmarshal(b, &c.plot); err != nil {
			t.Fatal(err)
		}
	}
	c.tell(t)
	if c.kept != "" {
		err := os.WriteFile(filepath.Join(c.kept, "boundaries"), []byte(strings.Join(c.names, "\n")), 0o644)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// child tells the story from where it stands; killed says that it died. It does
// not wait before it ends, as the race detector does for goroutines left behind.
func child(t *testing.T, dir string, at, end int, env ...string) (killed bool) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrashTeller$", "-test.count=1")
	cmd.Env = append(append(os.Environ(), "GORACE=atexit_sleep_ms=0", crashDir+"="+dir, crashAt+"="+strconv.Itoa(at), crashEnd+"="+strconv.Itoa(end)), env...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || err != nil && cmd.ProcessState.ExitCode() >= 0 {
		t.Errorf("the child: %v\n%s", err, out)
	}
	return err != nil
}

// crashPoint is a boundary of the story.
type crashPoint struct {
	minute, at int // at counts from 1 in its minute
	name       string
}

// crashPoints chooses boundaries: all beside a write, a message or a hook, and
// some of those beside readings; all where CANARYCTL_CRASH_ALL is set.
func crashPoints(names []string) (out []crashPoint) {
	at, minute := 0, -1
	for i, line := range names {
		text, name, _ := strings.Cut(line, " ")
		m, err := strconv.Atoi(text)
		if err != nil {
			panic(err)
		}
		if m != minute {
			at, minute = 0, m
		}
		at++
		reads := strings.HasSuffix(name, "read") || strings.HasSuffix(name, "source")
		if !reads || i%16 == 0 || os.Getenv("CANARYCTL_CRASH_ALL") != "" {
			out = append(out, crashPoint{m, at, name})
		}
	}
	return out
}

// TestKilledBetweenAnyTwoCallsTheReleaseEndsTheSame kills the process before
// and after calls to target, source, channels and hooks; the next process goes
// on in the same minute. Four minutes later it must be as if nothing had
// happened.
func TestKilledBetweenAnyTwoCallsTheReleaseEndsTheSame(t *testing.T) {
	whole := memory(t)
	child(t, memory(t), 0, storyMinutes, crashKeep+"="+whole)
	b, err := os.ReadFile(filepath.Join(whole, "boundaries"))
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Split(string(b), "\n")
	points := crashPoints(names)
	begin := time.Now()
	next := make(chan crashPoint)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for p := range next {
				crashAndGoOn(t, whole, p)
			}
		})
	}
	for _, p := range points {
		next <- p
	}
	close(next)
	workers.Wait()
	t.Logf("killed at %d of %d boundaries in %s", len(points), len(names), time.Since(begin).Round(time.Millisecond))
	if len(points) < 40 {
		t.Errorf("%d points, want 40 or more", len(points))
	}
}

func crashAndGoOn(t *testing.T, whole string, p crashPoint) {
	dir := filepath.Join(memory(t), "story")
	if err := os.CopyFS(dir, os.DirFS(minuteDir(whole, p.minute))); err != nil {
		t.Error(err)
		return
	}
	end := min(p.minute+4, storyMinutes)
	if !child(t, dir, p.at, end) {
		t.Errorf("minute %d, %s: it lives", p.minute, p.name)
		return
	}
	child(t, dir, 0, end)
	if got, want := outcomeOf(t, dir), outcomeOf(t, minuteDir(whole, end)); got != want {
		t.Errorf("killed in minute %d, %s, it ends\n%s\nwant\n%s", p.minute, p.name, got, want)
	}
}

// outcomeOf is what a story came to: where it stands and what happened.
func outcomeOf(t *testing.T, dir string) string {
	place, err := state.Open(dir, "order-service")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := driver.Verify(t.Context(), place, "order-service"); err != nil {
		t.Errorf("the journal does not verify: %v", err)
	}
	r, err := driver.Load(t.Context(), place, "order-service")
	if err != nil {
		t.Fatal(err)
	}
	var p plot
	b, err := os.ReadFile(filepath.Join(dir, "plot.json"))
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	l := &r.Ladder
	fmt.Fprintf(&out, "%s at %s, step %d, attempt %d, %s; held %s; exposure %d; %d rollbacks, outbox %d\n", l.Stage, l.Weight, l.Step+1, l.Attempt, l.Breaker.Phase, p.Weight, r.Exposure.Requests, r.Counts.Rollbacks, len(r.Outbox))
	var told, hooked []string
	err = journal.Read(t.Context(), place.Journal(), journal.Head{}, func(e *journal.Entry, _ journal.Head) error {
		switch {
		case e.Kind == journal.Decide && (e.Decided.Outcome.Write && !e.Decided.Outcome.Again || e.Decided.Outcome.Event != nil || e.Decided.Outcome.Move == release.Complete):
			o := &e.Decided.Outcome
			fmt.Fprintf(&out, "minute %d: %s to %s, step %d, attempt %d, %s\n", int(e.Decided.Now.Sub(t0).Minutes()), o.Move, o.Weight, o.Step, o.Attempt, o.Why)
		case e.Kind == journal.Command:
			if said := fmt.Sprintf("minute %d: %s\n", int(e.Command.At.Sub(t0).Minutes()), e.Command.Verb); !strings.HasSuffix(out.String(), said) { // a person says it again
				out.WriteString(said)
			}
		case e.Kind == journal.Record && e.Record.Final:
			fmt.Fprintf(&out, "record by %s at %s, exposure %d\n", e.Record.By, e.Record.Share, e.Record.Exposure.Requests)
		case e.Kind == journal.Tell && e.Told.OK:
			told = append(told, eventOf(e.Told.Key))
		case e.Kind == journal.Hook && e.Hooked.OK:
			hooked = append(hooked, e.Hooked.Key)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&out, "told %s; %d hooks\n", strings.Join(told, " "), len(hooked))
	distinct := map[string]bool{}
	for _, key := range p.Told {
		distinct[key] = true
	}
	if len(distinct) != len(told) || len(p.Told) > len(told)+1 {
		t.Errorf("%d messages with %d keys were sent, %d are told", len(p.Told), len(distinct), len(told))
	}
	if len(p.Purged) > len(hooked)+1 {
		t.Errorf("hooks ran %d times, %d rollbacks", len(p.Purged), len(hooked))
	}
	keys := map[string]bool{}
	for _, w := range p.Writes {
		keys[w] = true
	}
	fmt.Fprintf(&out, "%d writes with keys of their own\n", len(keys))
	return out.String()
}

// eventOf is the event in a message's key.
func eventOf(key string) string {
	parts := strings.Split(key, "/")
	return parts[len(parts)-2]
}
